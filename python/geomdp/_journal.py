"""Limits and entries in a file that only grows, safe against crashes and under any of its names.

A file has lines of JSON, each with a SHA-256 digest of itself and of the digest before it:

* the *head*: the kind of the file, its format, a random id, and public limits;
* the *mark*: where the last final entry ends, and its digest. No other line changes;
* the entries, each chained to the one before, the first one to the head.

A writer holds the lock, writes an entry behind the mark, brings it to the disk, and then moves the
mark. So a crash leaves a whole entry behind the mark, which the next writer keeps, or a part of
one, which it replaces; or a mark that is partly that of the last entry and partly the one before. A
file of any other form is damaged, and refused.

Readers stop at the mark and take no lock: a signal handler may interrupt its owner. The lock
belongs to an open file rather than to a process, so that no other use of the file drops it. No
second file belongs to this one, so that a hard link to it or a mount of it is as good as its name.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, NamedTuple

from geomdp import _foreign
from geomdp._identity import Identity, fresh, stated
from geomdp._inputs import parameters
from geomdp._new_file import new_file

#: The format that this version reads.
_FORMAT = 1
#: The most bytes of a head.
_HEAD = 2**24
#: How long a writer waits for the lock, in seconds.
_WAIT = 30
#: How often a mark is read that may be written at this moment.
_TRIES = 5
#: Held by writers. So no process is forked meanwhile: its copy of the open file would keep the
#: lock.
_WRITING = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_WRITING.acquire,
        after_in_parent=_WRITING.release,
        after_in_child=_WRITING.release,
    )


class _Seen(NamedTuple):
    """The part of a file that was checked: its head, and its entries up to an end."""

    head: bytes
    end: int
    last: str
    items: list[Any]


_NOTHING = _Seen(b"", 0, "", [])


class Journal(ABC):
    """A file with public limits, the same for all who open it. Each call opens the file.

    A limit of None takes that of the file. `placing` is called once a new file is complete, before
    it gets its name.
    """

    __slots__ = ("_limits", "_path", "_seen")
    #: How messages and the head call the file.
    _kind: ClassVar[str]
    #: The most bytes of a line.
    _longest: ClassVar[int]

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Mapping[str, str | None],
        placing: Callable[[], object] = lambda: None,
    ) -> None:
        self._path = absolute(path)
        self._limits = dict(limits)
        self._seen = _NOTHING
        try:
            os.stat(self._path)
        except FileNotFoundError:
            kind = {"geomdp": self._kind, "format": _FORMAT, "id": fresh()}
            head = _sealed("", kind | {"limits": self._limits})
            with suppress(FileExistsError):  # Another process was faster.
                _make(self._path, head + _mark(len(head) + _MARK, _digest("", head)), placing)
        self._items()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Check the whole file, and write all that is final to a new one."""
        target = absolute(path)
        with self._opened("rb") as file:
            seen, _ = self._load(file, _NOTHING)
            file.seek(len(seen.head) + _MARK)
            entries = file.read(seen.end - file.tell())
        _make(target, seen.head + _mark(seen.end, seen.last) + entries)

    def limits(self) -> dict[str, Any]:
        """Return the limits of the file."""
        found: dict[str, Any] = parsed(self._seen.head)["limits"]
        return found

    def identity(self) -> Identity:
        """Return the id of the file, which tells it from another one with the same limits."""
        found: Identity = self.checked(stated, parsed(self._seen.head).get("id"), [])
        return found

    @abstractmethod
    def _item(self, line: bytes, start: int, before: str) -> Any:
        """Return the item to keep for an entry, given its first byte and the digest before it."""

    def _items(self) -> list[Any]:
        """Return the items of all final entries."""
        with self._opened("rb") as file:
            self._seen, _ = self._load(file, self._seen)
        return self._seen.items

    def _line(self, file: io.FileIO, start: int, before: str) -> dict[str, Any]:
        """Return an entry that was checked before; its file may have been damaged since."""
        with _lines(file, start) as lines:
            line = lines.readline(self._longest)
        if not _digest(before, line):
            raise self._damaged("its digests do not fit")
        found: dict[str, Any] = self.checked(parsed, line)
        return found

    def _append(self, decide: Callable[[list[Any]], Mapping[str, Any] | None]) -> bool:
        """Add the entry that `decide` returns for the items before it; None adds no entry.

        Return whether an entry was added; it is then on the disk.
        """
        with self._locked() as file:
            seen, marked = self._load(file, self._seen, beyond=True)
            if not marked:
                self._finish(file, seen)
            if (fields := decide(seen.items)) is None:
                return False
            line = _sealed(seen.last, fields)
            if len(line) > self._longest:
                raise ValueError(
                    f"an entry of {len(line)} bytes is not accepted in a {self._kind}: "
                    f"give at most {self._longest}"
                )
            file.truncate(seen.end)
            try:
                _write(file, seen.end, line)
            except BaseException:
                file.truncate(seen.end)
                raise
            last = line[-_SEAL:][len(_DIGEST) : -3].decode()
            item = self._item(line, seen.end, seen.last)
            self._finish(file, _Seen(seen.head, seen.end + len(line), last, [*seen.items, item]))
            return True

    def _finish(self, file: io.FileIO, seen: _Seen) -> None:
        """Move the mark behind entries."""
        _sync(file)
        _write(file, len(seen.head), _mark(seen.end, seen.last))
        _sync(file)
        self._seen = seen

    def _load(self, file: io.FileIO, seen: _Seen, *, beyond: bool = False) -> tuple[_Seen, bool]:
        """Return the entries up to the mark, or whole ones `beyond` it, and whether it ends them.

        Only those that were not seen before are read.
        """
        with _lines(file, 0) as lines:
            head = lines.readline(min(_HEAD, self._longest))
        if not seen.head or head != seen.head:
            seen = self._begun(head, seen)
        mark, written = _read_mark(file, len(head))
        if mark and mark[0] < seen.end:
            raise self._refused("has fewer entries than before: it was replaced by a copy")
        if not mark:
            seen = self._begun(head, _NOTHING)  # The entry before the last one is needed.
        new: list[Any] = []
        end, last, line = seen.end, seen.last, b""
        before = end, last
        met = mark == before
        with _lines(file, end) as lines:
            while not mark or beyond or end < mark[0]:
                line = lines.readline(self._longest)
                digest = _digest(last, line)
                if not digest:
                    break
                new.append(self.checked(self._item, line, end, last))
                before = end, last
                end, last = end + len(line), digest
                met = met or mark == (end, last)
        if not mark:
            met = not line and _torn(written, _mark(*before), _mark(end, last))
        if not met:
            raise self._damaged("its digests do not fit")
        if new:
            seen = _Seen(head, end, last, seen.items + new)
        return seen, mark == (end, last)

    def _begun(self, head: bytes, seen: _Seen) -> _Seen:
        """Refuse a file of another kind or format, or with other limits."""
        digest = _digest("", head)
        if not digest:
            raise self._damaged("its head does not fit its digest")
        fields = self.checked(parsed, head)
        if fields.get("geomdp") != self._kind:
            raise self._refused(f"is no {self._kind} of geomdp")
        if fields.get("format") != _FORMAT:
            shown = parameters.shown(fields.get("format"))
            raise self._refused(f"has format {shown}, and this version reads {_FORMAT}")
        found = fields.get("limits")
        if not isinstance(found, dict) or found.keys() != self._limits.keys():
            raise self._damaged("it lacks limits")
        for name, wanted in self._limits.items():
            if wanted is not None and found[name] != wanted:
                raise ValueError(
                    f"{name} = {_readable(wanted)} is not accepted: give that of the {self._kind} "
                    f"{self._path.name}, {_readable(found[name])}"
                )
        if seen.head:
            raise self._refused("was replaced by another one")
        return _Seen(head, len(head) + _MARK, digest, [])

    @contextmanager
    def _locked(self) -> Iterator[io.FileIO]:
        with _WRITING, self._opened("rb+") as file:
            end = time.monotonic() + _WAIT
            while not _acquired(file):
                if time.monotonic() > end:
                    raise TimeoutError(f"{self._path.name} is locked by another process")
                time.sleep(0.005)
            yield file  # Closing it releases the lock.

    @contextmanager
    def _opened(self, mode: Any) -> Iterator[io.FileIO]:
        refusal = self._refused(f"is no {self._kind} of geomdp")
        with _foreign.opened(self._path, mode, refusal) as file:
            yield file

    def checked(self, parse: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a parser of lines, which may be forged: digests have no key."""
        try:
            return parse(*arguments)
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._damaged(_foreign.said(error)) from None

    def _damaged(self, why: object) -> ValueError:
        return self._refused(f"is damaged, or no {self._kind} of geomdp: {why}")

    def _refused(self, why: str) -> ValueError:
        return ValueError(f"the file {self._path.name} {why}")


def absolute(path: Any) -> Path:
    """Return a path that stays the same if the process changes its folder."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(parameters.foreign("path", path, "a str or a path"))
    return Path(os.path.abspath(os.fspath(path)))


def parsed(line: bytes) -> dict[str, Any]:
    """Return the fields of a line, or raise a ValueError or RecursionError."""
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("a line is no object")
    return fields


_DIGEST = b', "digest": "'
#: The bytes of a line from its digest on.
_SEAL = len(_DIGEST) + 64 + 3


def _sealed(before: str, fields: Mapping[str, Any]) -> bytes:
    """Return a line with a digest, of itself and of the digest before."""
    text = json.dumps(fields).encode()[:-1]
    return text + _DIGEST + _of(before, text) + b'"}\n'


def _digest(before: str, line: bytes) -> str:
    """Return the digest that a line ends with, or "" if it is not that of the line."""
    at = len(line) - _SEAL
    if at < 0:
        return ""
    digest = _of(before, memoryview(line)[:at])
    return digest.decode() if line[at:] == _DIGEST + digest + b'"}\n' else ""


def _of(before: str, text: bytes | memoryview) -> bytes:
    """Return the digest of a line without its end, which is not copied."""
    found = hashlib.sha256(before.encode())
    found.update(text)
    found.update(b"}")
    return found.hexdigest().encode()


def _mark(end: int, last: str) -> bytes:
    return _sealed("mark", {"end": f"{end:020d}", "last": last})


_MARK = len(_mark(0, "0" * 64))


def _read_mark(file: io.FileIO, start: int) -> tuple[tuple[int, str] | None, bytes]:
    """Return where the last final entry ends, and its digest, or None; and all of the mark."""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(0.01)
        file.seek(start)
        line = file.read(_MARK)
        with suppress(LookupError, TypeError, ValueError, OverflowError, RecursionError):
            fields = parsed(line)
            found = int(fields["end"]), str(fields["last"])
            if line == _mark(*found):
                return found, line
    return None, line


def _torn(mark: bytes, old: bytes, new: bytes) -> bool:
    """Return whether a mark is the start of one of these and the rest of the other."""
    return any(
        mark == one[:cut] + other[cut:]
        for one, other in ((old, new), (new, old))
        for cut in range(1, _MARK)
    )


def _make(path: Path, content: bytes, placing: Callable[[], object] = lambda: None) -> None:
    """Make a file, whole or not at all; raise FileExistsError if the name is taken."""
    with new_file(str(path), placing=lambda: nullcontext(placing())) as file:
        file.write(content)


def _lines(file: io.FileIO, start: int) -> io.BufferedReader:
    """Return a reader of lines from a place on, with nothing in its buffer yet."""
    file.seek(start)
    return open(file.fileno(), "rb", closefd=False)


def _write(file: io.FileIO, at: int, content: bytes) -> None:
    file.seek(at)
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


if sys.platform == "win32":
    import msvcrt

    def _acquired(file: io.FileIO) -> bool:
        """Try to lock a byte behind any entry, since other processes cannot read it then."""
        file.seek(2**31 - 2)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _acquired(file: io.FileIO) -> bool:
        """Try to lock the file, under all its names and until this open file is closed."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _sync(file: io.FileIO) -> None:
    """Force the written bytes to the disk."""
    if sys.platform == "darwin":  # Its fsync leaves it in the disk's cache.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file.fileno())


def _readable(text: Any) -> Any:
    """Return a stored limit as the float that equals it, if one does."""
    try:
        exact = parameters.ratio(text)
        number = float(exact)
    except (ValueError, OverflowError):
        return parameters.shown(text)
    return number if number == exact and exact.denominator > 1 else text
