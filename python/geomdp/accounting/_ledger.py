"""The file of a budget: an entry for each release."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from geomdp._inputs import parameters
from geomdp._numerics import composition
from geomdp.accounting._bookings import Booking, Decide, Entry, Spent, now
from geomdp.accounting._journal import Journal, parsed


class Ledger(Journal):
    """Bookings in a file."""

    __slots__ = ("_spent",)
    _kind = "ledger"
    _longest = 2**24

    def __init__(self, path: str | os.PathLike[str], limits: Mapping[str, str | None]) -> None:
        self._spent = Spent()
        super().__init__(path, limits)

    def spent(self) -> Spent:
        self._spent.entries = self._items()
        return self._spent

    def book(self, label: str | None, loss: Fraction, decide: Decide) -> None:
        def entry(before: list[Entry]) -> dict[str, Any]:
            self._spent.entries = before
            self._spent.check_new(label)
            taken = decide(self._spent)
            return {
                "label": label,
                "loss": _text(loss),
                "cost": {_text(cost): times for cost, times in taken.items()},
                "time": now().isoformat(),
            }

        self._append(entry)

    def _item(self, line: bytes, start: int, before: str) -> Entry:  # noqa: ARG002 (the base's)
        fields = parsed(line)
        label, loss, cost, time = (fields[name] for name in ("label", "loss", "cost", "time"))
        if not isinstance(label, str | None) or not isinstance(cost, dict):
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
        return Entry(Booking(label, parameters.ratio(loss), composition.total(costs), when), costs)


def _text(number: Fraction) -> str:
    for part in number.as_integer_ratio():
        parameters.printable("loss", part)
    return str(number)
