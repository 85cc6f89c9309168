"""Parameters and rows in a file: an SQLite database that only grows, safe against crashes."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from geomdp._inputs import parameters

#: The format that this version reads.
_FORMAT = 1
#: How long a call waits for other processes, in seconds.
_WAIT = 30
#: Held while a connection is open. So no process is forked then: its copy of the connection would
#: undo a transaction, or keep the lock for ever.
_CONNECTED = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_CONNECTED.acquire,
        after_in_parent=_CONNECTED.release,
        after_in_child=_CONNECTED.release,
    )


class Database:
    """A file with public limits, the same for all who open it. Each call opens a connection.

    A limit of None takes that of the file. `placing` is called once a new file is complete, before
    it gets its name.
    """

    __slots__ = ("_limits", "_path")
    #: How messages call the file; the bytes in its header; its tables.
    _kind: ClassVar[str]
    _application: ClassVar[int]
    _tables: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Mapping[str, str | None],
        placing: Callable[[], object] = lambda: None,
    ) -> None:
        self._path = absolute(path)
        self._limits = dict(limits)
        try:
            os.stat(self._path)
        except FileNotFoundError:
            self._create(placing)
        with self._connection() as file:
            [found] = file.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise self._damaged(found)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit what is written, unless an error is raised; no other process comes in between."""
        with self._connection() as file:
            file.execute("BEGIN IMMEDIATE")
            yield file
            file.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with (
            _CONNECTED,
            self._named_errors(),
            _connected(f"{self._path.as_uri()}?mode=rw") as file,
        ):
            self._check(file)
            for setting, wanted in (("journal_mode", "delete"), ("synchronous", 3)):
                [found] = file.execute(f"PRAGMA {setting}").fetchone()
                if found != wanted:
                    raise self._refused(f"has {setting} {found} instead of {wanted}")
            yield file

    def _check(self, file: sqlite3.Connection) -> None:
        """Refuse a file of another kind or format, or with other limits."""
        [application] = file.execute("PRAGMA application_id").fetchone()
        if application != self._application:
            raise self._refused(f"is no {self._kind} of geomdp")
        [version] = file.execute("PRAGMA user_version").fetchone()
        if version != _FORMAT:
            raise self._refused(f"has format {version}, and this version reads {_FORMAT}")
        found = dict(file.execute("SELECT name, value FROM limits"))
        if found.keys() != self._limits.keys():
            raise self._damaged("it lacks limits")
        for name, wanted in self._limits.items():
            if wanted is not None and found[name] != wanted:
                raise ValueError(
                    f"{name} = {_plain(wanted)} is not accepted: give that of the {self._kind} "
                    f"{self._path.name}, {_plain(found[name])}"
                )

    def _create(self, placing: Callable[[], object]) -> None:
        """Make an empty file, whole or not at all, unless another process was faster."""
        new = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}.new")
        with _CONNECTED, self._named_errors():
            try:
                with _connected(f"{new.as_uri()}?mode=rwc") as file:
                    file.execute("BEGIN")
                    for statement in self._schema():
                        file.execute(statement)
                    file.executemany("INSERT INTO limits VALUES (?, ?)", self._limits.items())
                    file.execute("COMMIT")
                placing()
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

    def _schema(self) -> Iterator[str]:
        yield f"PRAGMA application_id = {self._application}"
        yield f"PRAGMA user_version = {_FORMAT}"
        yield "CREATE TABLE limits (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
        yield from self._tables

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
        return self._refused(f"is damaged, or no {self._kind} of geomdp: {why}")

    def _refused(self, why: str) -> ValueError:
        return ValueError(f"the file {self._path.name} {why}")


def absolute(path: Any) -> Path:
    """Return a path that stays the same if the process changes its folder."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(parameters.foreign("path", path, "a str or a path"))
    return Path(os.path.abspath(os.fspath(path)))


_KINDS: dict[str, type[OSError]] = {
    "SQLITE_BUSY": TimeoutError,
    "SQLITE_READONLY": PermissionError,
    "SQLITE_": OSError,
}


@contextmanager
def _connected(uri: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)) as file:
        # FULL does not write to the disk that the journal is gone: a power cut could then undo a
        # transaction.
        file.execute("PRAGMA synchronous = EXTRA")
        file.execute("PRAGMA fullfsync = ON")
        yield file


def _plain(text: str) -> Any:
    """Return a stored limit as the float that equals it, if one does."""
    try:
        exact = Fraction(text)
        number = float(exact)
    except (ValueError, OverflowError):
        return parameters.shown(text)
    return number if number == exact and exact.denominator > 1 else text
