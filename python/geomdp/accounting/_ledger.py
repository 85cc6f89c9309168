"""The file of a budget: an entry for each release."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from geomdp._ground import parameters
from geomdp._ground.identity import stated
from geomdp._numerics import composition
from geomdp.accounting._bookings import (
    Asked,
    Booking,
    Decide,
    Entry,
    Protects,
    Spent,
    chosen,
    declared,
    now,
)
from geomdp.accounting._journal import Journal, Seen, parsed


class Ledger(Journal):
    """Bookings in a file."""

    __slots__ = ("_groups", "_spent")
    _kind = "ledger"
    _longest = 2**24

    def __init__(self, path: str | os.PathLike[str], limits: Mapping[str, Any]) -> None:
        self._spent = Spent()
        super().__init__(path, limits)

    def spent(self) -> Spent:
        self._spent.entries = self._items()
        return self._spent

    def settled(self) -> Spent:
        """Return what was booked, with a whole entry that a killed process left, which is final."""
        self._append(lambda _: None)
        return self.spent()

    def final(self) -> tuple[list[Entry], str]:
        """Return all final entries, and the digest of the last one, with all before it."""
        self._items()
        seen = self._seen
        return seen.items[: seen.n], seen.last

    def book(self, asked: Asked, decide: Decide) -> None:
        def entry(before: list[Entry]) -> dict[str, Any]:
            self._spent.entries = before
            self._spent.check_new(asked.label, asked.groups, asked.protects)
            taken = decide(self._spent)
            return {
                "label": asked.label,
                "loss": _text(asked.loss),
                "cost": {_text(cost): times for cost, times in taken.items()},
                "time": now().isoformat(),
                **({} if asked.groups is None else {"groups": asked.groups}),
                **({"ids": asked.ids} if asked.ids else {}),
                **({"tiers": _texts(asked.tiers)} if asked.tiers else {}),
                **({} if asked.protects is None else {"protects": asked.protects._asdict()}),
            }

        self._append(entry)

    def _begun(self, head: bytes, file: io.FileIO) -> Seen:
        seen = super()._begun(head, file)
        self._groups: tuple[str, ...] = self.checked(grouped, parsed(head)["limits"]["groups"])
        return seen

    def _item(self, line: bytes, start: int, before: str) -> Entry:  # noqa: ARG002 (the base's)
        fields = parsed(line)
        label, loss, cost, time = (fields[name] for name in ("label", "loss", "cost", "time"))
        if label is not None:
            parameters.check_text("label", label)
        if not isinstance(cost, dict):
            raise ValueError("it has a booking of another form")
        costs = Counter(
            {
                parameters.ratio(each): parameters.at_least_one("times", times)
                for each, times in cost.items()
            }
        )
        del costs[Fraction(0)]
        when = datetime.fromisoformat(time)
        if when.isoformat() != time:
            raise ValueError("it has a time of another form")
        groups = fields.get("groups")
        if (
            groups is not None
            and list(groups := chosen(tuple(groups), self._groups)) != fields["groups"]
        ):
            raise ValueError("it has groups of another form")
        ids = fields.get("ids")
        if ids is not None:
            first, others, _ = stated(ids[0], ids[1:])
            ids = (first, *others)
        whole, exact = composition.total(costs), parameters.ratio(loss)
        tiers = _tiers(fields.get("tiers", {}), exact)
        protects = _protects(fields.get("protects"))
        return Entry(Booking(label, exact, whole, when, groups, ids or (), tiers, protects), costs)


def grouped(listed: Any) -> tuple[str, ...]:
    """Return the groups that a ledger lists; a ValueError for any other list."""
    groups = declared(listed)
    if list(groups) != listed:
        raise ValueError("its groups have another form")
    return groups


def _texts(tiers: Iterable[tuple[str, Fraction]]) -> dict[str, str]:
    return {name: _text(each) for name, each in tiers}


def _tiers(listed: Any, loss: Fraction) -> tuple[tuple[str, Fraction], ...]:
    """Return tiers of a release of this loss; a ValueError for any others."""
    if not isinstance(listed, dict):
        raise TypeError("it has tiers of another form")
    for name in listed:
        parameters.check_text("tiers", name)
    tiers = tuple((name, parameters.ratio(each)) for name, each in listed.items())
    # Each of them loses more than the one before, and the last one all.
    losses = [Fraction(0), *(each for _, each in tiers)]
    if losses != sorted({*losses}) or losses[-1] != (loss if tiers else 0):
        raise ValueError("it has tiers of another form")
    return tiers


def _protects(listed: Any) -> Protects | None:
    """Return whom a loss is about, as an entry lists it; older ones do not."""
    if listed is None:
        return None
    if not isinstance(listed, dict) or [*listed] != [*Protects._fields]:
        raise ValueError("it has individuals of another form")
    for name, text in listed.items():
        parameters.check_text(name, text)
    return Protects(**listed)


def _text(number: Fraction) -> str:
    for part in number.as_integer_ratio():
        parameters.printable("loss", part)
    return str(number)
