"""The file of a budget: bookings, one transaction for each release."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

from geomdp._analysis import composition
from geomdp._database import Database
from geomdp._inputs import parameters
from geomdp.accounting._budget import Booking, Decide, listed, now


class Ledger(Database):
    """Bookings in a file."""

    __slots__ = ()
    _kind = "ledger"
    _application = 0x67656F6D  # "geom"
    _tables = (
        "CREATE TABLE bookings (number INTEGER PRIMARY KEY, label TEXT, loss TEXT NOT NULL, "
        "cost TEXT NOT NULL, time TEXT NOT NULL)",
    )

    def __init__(
        self, path: str | os.PathLike[str], limits: Mapping[str, Fraction | str | None]
    ) -> None:
        super().__init__(path, {name: str(limit) for name, limit in limits.items()})
        self.bookings()

    def costs(self) -> Counter[Fraction]:
        with self._connection() as ledger:
            return self._costs(ledger)

    def bookings(self) -> list[Booking]:
        with self._connection() as ledger:
            rows = ledger.execute("SELECT label, loss, cost, time FROM bookings ORDER BY number")
            return [self._booking(*row) for row in rows]

    def book(self, label: str | None, loss: Fraction, decide: Decide) -> None:
        with self._transaction() as ledger:
            taken = decide(self._costs(ledger))
            row = (label, _text(loss), _text_of(taken), now().isoformat())
            ledger.execute(
                "INSERT INTO bookings (label, loss, cost, time) VALUES (?, ?, ?, ?)", row
            )

    def _costs(self, ledger: sqlite3.Connection) -> Counter[Fraction]:
        groups = ledger.execute("SELECT cost, count(*) FROM bookings GROUP BY cost")
        found: Counter[Fraction] = Counter()
        for text, n in groups:
            for cost, times in self._taken(text).items():
                found[cost] += n * times
        return found

    def _booking(self, label: str | None, loss: str, cost: str, time: str) -> Booking:
        try:
            when = datetime.fromisoformat(time)
        except (TypeError, ValueError):
            raise self._damaged(f"{time!r} is no time") from None
        return Booking(label, self._number(loss), composition.total(self._taken(cost)), when)

    def _taken(self, text: str) -> Counter[Fraction]:
        """Return the costs of a booking, from the text of :func:`_text_of`."""
        found: Counter[Fraction] = Counter()
        try:
            for part in text.split(", "):
                times, of, cost = part.rpartition(" of ")
                n = parameters.at_least("times", int(times), 1) if of else 1
                found[self._number(cost)] += n
        except (AttributeError, TypeError, ValueError):
            raise self._damaged(f"{parameters.shown(text)} is no cost") from None
        del found[Fraction(0)]
        return found

    def _number(self, text: str) -> Fraction:
        try:
            number = Fraction(text)
        except (TypeError, ValueError, ZeroDivisionError):
            number = Fraction(-1)
        if number < 0:
            raise self._damaged(f"{parameters.shown(text)} is no privacy loss")
        return number


def _text_of(costs: Counter[Fraction]) -> str:
    """Return what a release cost: one number, or how often it took each."""
    for cost in costs:
        _text(cost)
    if costs.total() > 1:
        return listed(costs)
    return str(next(iter(costs), 0))


def _text(number: Fraction) -> str:
    for part in number.as_integer_ratio():
        parameters.printable("loss", part)
    return str(number)
