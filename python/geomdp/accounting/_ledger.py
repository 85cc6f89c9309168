"""The file of a budget: bookings, one transaction for each release."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

from geomdp._database import Database
from geomdp._inputs import parameters
from geomdp.accounting._budget import Booking, Decide, now


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
            cost = decide(self._costs(ledger))
            row = (label, _text(loss), _text(cost), now().isoformat())
            ledger.execute(
                "INSERT INTO bookings (label, loss, cost, time) VALUES (?, ?, ?, ?)", row
            )

    def _costs(self, ledger: sqlite3.Connection) -> Counter[Fraction]:
        groups = ledger.execute("SELECT cost, count(*) FROM bookings GROUP BY cost")
        return +Counter({self._number(cost): n for cost, n in groups if cost != "0"})

    def _booking(self, label: str | None, loss: str, cost: str, time: str) -> Booking:
        try:
            when = datetime.fromisoformat(time)
        except (TypeError, ValueError):
            raise self._damaged(f"{time!r} is no time") from None
        return Booking(label, self._number(loss), self._number(cost), when)

    def _number(self, text: str) -> Fraction:
        try:
            number = Fraction(text)
        except (TypeError, ValueError, ZeroDivisionError):
            number = Fraction(-1)
        if number < 0:
            raise self._damaged(f"{parameters.shown(text)} is no privacy loss")
        return number


def _text(number: Fraction) -> str:
    for part in number.as_integer_ratio():
        parameters.printable("loss", part)
    return str(number)
