"""The file of a budget: an SQLite database that only grows, one transaction for each release."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import Any

from geomdp._analysis import composition
from geomdp._inputs import parameters
from geomdp.accounting._budget import Booking, Decide, listed, now

#: The bytes "geom" in the header of the file, and the format that this version reads.
_APPLICATION, _FORMAT = 0x67656F6D, 1
_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
    "CREATE TABLE limits (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE bookings (number INTEGER PRIMARY KEY, label TEXT, loss TEXT NOT NULL, "
    "cost TEXT NOT NULL, time TEXT NOT NULL)",
)
#: How long a call waits for other processes, in seconds.
_WAIT = 30
#: Held while a connection is open. So no process is forked then: its copy of the connection would
#: undo the booking, or keep the lock for ever.
_CONNECTED = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_CONNECTED.acquire,
        after_in_parent=_CONNECTED.release,
        after_in_child=_CONNECTED.release,
    )


class Ledger:
    """Bookings in a file. Each call opens a connection, and closes it again."""

    __slots__ = ("_limits", "_path")

    def __init__(
        self, path: str | os.PathLike[str], limits: Mapping[str, Fraction | str | None]
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(parameters.foreign("path", path, "a str or a path"))
        self._path = Path(os.path.abspath(os.fspath(path)))  # The process may change its folder.
        self._limits = {name: str(limit) for name, limit in limits.items()}
        try:
            os.stat(self._path)
        except FileNotFoundError:
            self._create()
        with self._connection() as ledger:
            [found] = ledger.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise self._damaged(found)
        self.bookings()

    def costs(self) -> Counter[Fraction]:
        with self._connection() as ledger:
            return self._costs(ledger)

    def bookings(self) -> list[Booking]:
        with self._connection() as ledger:
            rows = ledger.execute("SELECT label, loss, cost, time FROM bookings ORDER BY number")
            return [self._booking(*row) for row in rows]

    def book(self, label: str | None, loss: Fraction, decide: Decide) -> None:
        with self._connection() as ledger:
            ledger.execute("BEGIN IMMEDIATE")
            taken = decide(self._costs(ledger))
            row = (label, _text(loss), _text_of(taken), now().isoformat())
            ledger.execute(
                "INSERT INTO bookings (label, loss, cost, time) VALUES (?, ?, ?, ?)", row
            )
            ledger.execute("COMMIT")

    def _costs(self, ledger: sqlite3.Connection) -> Counter[Fraction]:
        groups = ledger.execute("SELECT cost, count(*) FROM bookings GROUP BY cost")
        found: Counter[Fraction] = Counter()
        for text, n in groups:
            for cost, times in self._taken(text).items():
                found[cost] += n * times
        return found

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with (
            _CONNECTED,
            self._named_errors(),
            _connected(f"{self._path.as_uri()}?mode=rw") as ledger,
        ):
            self._check(ledger)
            for setting, wanted in (("journal_mode", "delete"), ("synchronous", 3)):
                [found] = ledger.execute(f"PRAGMA {setting}").fetchone()
                if found != wanted:
                    raise self._refused(f"has {setting} {found} instead of {wanted}")
            yield ledger

    def _check(self, ledger: sqlite3.Connection) -> None:
        """Refuse a file that is no ledger, or that of another budget."""
        [application] = ledger.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            raise self._refused("is no ledger of geomdp")
        [version] = ledger.execute("PRAGMA user_version").fetchone()
        if version != _FORMAT:
            raise self._refused(f"has format {version}, and this version reads {_FORMAT}")
        found = dict(ledger.execute("SELECT name, value FROM limits"))
        if found.keys() != self._limits.keys():
            raise self._damaged("it lacks limits")
        for name, wanted in self._limits.items():
            if found[name] != wanted:
                raise ValueError(
                    f"{name} = {_plain(wanted)} is not accepted: give that of the ledger "
                    f"{self._path.name}, {_plain(found[name])}"
                )

    def _create(self) -> None:
        """Make an empty ledger, whole or not at all, unless another process was faster."""
        new = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}.new")
        with _CONNECTED, self._named_errors():
            try:
                with _connected(f"{new.as_uri()}?mode=rwc") as ledger:
                    ledger.execute("BEGIN")
                    for statement in _SCHEMA:
                        ledger.execute(statement)
                    ledger.executemany("INSERT INTO limits VALUES (?, ?)", self._limits.items())
                    ledger.execute("COMMIT")
                with suppress(FileExistsError):
                    os.link(new, self._path)
            finally:
                new.unlink(missing_ok=True)
        if os.name == "posix":
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

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

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "")
            # The module itself raises errors without a code, for text that is no UTF-8.
            if code in ("", "SQLITE_ERROR") or code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise self._damaged(error) from error
            for start, kind in _KINDS.items():
                if code.startswith(start):
                    raise kind(
                        f"{self._path.name} could not be read or written: {error}"
                    ) from error
            raise

    def _damaged(self, why: object) -> ValueError:
        return self._refused(f"is damaged, or no ledger of geomdp: {why}")

    def _refused(self, why: str) -> ValueError:
        return ValueError(f"the file {self._path.name} {why}")


_KINDS: dict[str, type[OSError]] = {
    "SQLITE_BUSY": TimeoutError,
    "SQLITE_READONLY": PermissionError,
    "SQLITE_": OSError,
}


@contextmanager
def _connected(uri: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)) as ledger:
        # FULL does not write to the disk that the journal is gone: a power cut could then undo a
        # booking.
        ledger.execute("PRAGMA synchronous = EXTRA")
        ledger.execute("PRAGMA fullfsync = ON")
        yield ledger


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


def _plain(text: str) -> Any:
    """Return a stored limit as the float that equals it, if one does."""
    try:
        exact = Fraction(text)
        number = float(exact)
    except (ValueError, OverflowError):
        return parameters.shown(text)
    return number if number == exact and exact.denominator > 1 else text
