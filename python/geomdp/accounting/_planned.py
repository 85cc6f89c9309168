"""Planned losses, and how many are left of each."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from fractions import Fraction
from typing import Any, TypeAlias

from geomdp._ground import parameters
from geomdp.accounting._bookings import Groups, Spent, present

#: The number of entries, what those for everyone leave of each loss, and what each group used.
_Left: TypeAlias = tuple[int, Counter[Fraction], dict[str, Counter[Fraction]]]


class Plan:
    """The privacy losses that a budget allows, and how many releases may have each."""

    __slots__ = ("_left", "losses")

    def __init__(self, losses: Counter[Fraction]) -> None:
        self.losses = losses
        self._left: _Left = 0, losses, {}

    def greatest(self, spent: Spent, groups: Groups) -> Fraction:
        """Return the greatest loss that is left, or 0."""
        _, order = self._unused(spent, groups)
        return order[-1] if order else Fraction(0)

    def least(self, spent: Spent, losses: Counter[Any], groups: Groups) -> Counter[Fraction] | None:
        """Return the least losses left that are enough for these, one for each, or None."""
        left, order = self._unused(spent, groups)
        taken: Counter[Fraction] = Counter()
        for loss, n in sorted(losses.items(), reverse=True):
            missing = n if loss else 0
            place = bisect_left(order, loss)
            while missing:
                if place == len(order):
                    return None
                used = min(missing, left[order[place]] - taken[order[place]])
                taken[order[place]] += used
                missing -= used
                place += 1
        return +taken

    def _unused(self, spent: Spent, groups: Groups) -> tuple[Counter[Fraction], list[Fraction]]:
        """Return how many are left of each loss in all of these groups, and these losses in order.

        Each call goes on from the one before, as for the sums of :class:`Spent`.
        """
        n, left, own = self._left
        if new := spent.entries[n:]:
            names = {name for each in new for name in each.booking.groups or ()}
            left, own = left.copy(), own | {name: Counter(own.get(name, {})) for name in names}
            for booking, costs in new:
                if booking.groups is None:
                    left.subtract(costs)
                for name in booking.groups or ():
                    own[name].update(costs)
            self._left = n + len(new), left, own
        most: Counter[Fraction] = Counter()
        for name in present(own, groups):
            most |= own[name]
        unused = left - most
        return unused, sorted(unused)


def listed(losses: Counter[Fraction]) -> str:
    """Return planned losses as the text that a ledger keeps."""
    return ", ".join(f"{n} of {loss}" for loss, n in sorted(losses.items()))


def unlisted(text: Any) -> Counter[Fraction]:
    """Return the planned losses that have this text; a ValueError for any other."""
    losses: Counter[Fraction] = Counter()
    for each in str(text).split(", ") if text else ():
        times, _, loss = each.partition(" of ")
        losses[parameters.ratio(loss)] = parameters.at_least_one("times", int(times))
    if listed(losses) != text:
        raise ValueError("its planned losses have another form")
    return losses
