"""Limits and entries in a file that only grows, safe against crashes and under any of its names.

A file has lines of JSON, each with a SHA-256 digest of itself and of the digest before it:

* the *head*: the kind of the file, its format, a random id, and public limits;
* the *mark*: where the last final entry ends, and its digest. No other line changes;
* the entries, each chained to the one before, the first one to the head.

A writer holds the lock, writes an entry behind the mark, brings it to the disk, and then moves the
mark. So a crash leaves a whole entry behind the mark, which the next writer keeps, or a part of
one, which it replaces; or a mark that is partly that of the last entry and partly the one before. A
file of any other form is damaged, and refused.

What an object has checked it does not read again, since each entry behind it has the digest of all
before. It adds nothing to a file that has lost its name, and before its first entry it brings the
name to the disk.

Readers stop at the mark and take no lock: a signal handler may interrupt its owner. The lock
belongs to an open file rather than to a process, so that no other use of the file drops it. No
second file belongs to this one, so that a hard link to it or a mount of it is as good as its name.
"""

from __future__ import annotations

import errno
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
from typing import Any, ClassVar, NamedTuple

from geomdp._ground import foreign, parameters
from geomdp._ground.identity import Identity, fresh, stated
from geomdp._ground.lock import leads_to, locked
from geomdp._ground.new_file import new_file, sync_folder

if sys.platform == "darwin":
    import fcntl

#: The format that this version reads.
_FORMAT = 1
#: How often a mark is read that may be written at this moment.
_TRIES = 5
#: The most bytes of a head.
_LONGEST_HEAD = 2**20


class Seen(NamedTuple):
    """The part of a file that was checked: its head, and its entries up to an end.

    The list of items is the same for all parts of one file. It may have more items meanwhile: it
    gets only those of final entries.
    """

    file: tuple[int, int]
    head: bytes
    end: int
    last: str
    n: int
    items: list[Any]
    #: Where its last line begins, and the digest before it.
    before: tuple[int, str]


_NOTHING = Seen((0, 0), b"", 0, "", 0, [], (0, ""))


class Journal(ABC):
    """A file with public limits, the same for all who open it. Each call opens the file.

    A limit of None takes that of the file, and only a file that exists has one. `placing` is called
    with the id of a new file once it is complete, before it gets its name.
    """

    __slots__ = ("_durable", "_limits", "_path", "_seen")
    #: How messages and the head call the file.
    _kind: ClassVar[str]
    #: The most bytes of a line.
    _longest: ClassVar[int]

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Mapping[str, Any],
        placing: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._path = absolute(path)
        self._limits = dict(limits)
        self._seen = _NOTHING
        #: The file whose name is on the disk.
        self._durable = _NOTHING.file
        try:
            os.stat(self._path)
        except FileNotFoundError:
            if None in self._limits.values():
                why = f"no such {self._kind}, and its limits are not given"
                raise FileNotFoundError(errno.ENOENT, why, str(self._path)) from None
            kind = {"geomdp": self._kind, "format": _FORMAT, "id": (own := fresh())}
            whole = _sealed("", kind | {"limits": self._limits})
            head = self._fitting("a set of limits", whole, _LONGEST_HEAD)
            with suppress(FileExistsError):  # Another process was faster.
                mark = _mark(len(head) + _MARK, _digest("", head))
                _make(self._path, head + mark, lambda: placing(own))
        self._items()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Check the whole file, and write all that is final to a new one."""
        target = absolute(path)
        with self._opened("rb") as file:
            seen, *_ = self._load(file, _NOTHING)
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
        """Return the items of all final entries. The list is not to be changed; it may grow."""
        with self._opened("rb") as file:
            seen, new, _ = self._load(file, self._seen)
        return self._keep(seen, new)

    def _line(self, file: io.FileIO, start: int, before: str) -> dict[str, Any]:
        """Return an entry that was checked before; its file may have been damaged since."""
        with _lines(file, start) as lines:
            line = lines.readline(self._longest)
        if not _digest(before, line):
            raise self._damaged("its digests do not fit")
        found: dict[str, Any] = self.checked(parsed, line)
        return found

    def _check_last(self, file: io.FileIO, seen: Seen) -> None:
        """Refuse a file whose last entry was cut off or edited since it was checked."""
        start, before = seen.before
        with _lines(file, start) as lines:
            line = lines.read(seen.end - start)
        if seen.n and _digest(before, line) != seen.last:
            raise self._damaged("it was cut or edited while it was open")

    def _append(self, decide: Callable[[list[Any]], Mapping[str, Any] | None]) -> bool:
        """Add the entry that `decide` returns for the items before it; None adds no entry.

        Return whether an entry was added; it is then on the disk.
        """
        with locked(self._path, lambda: self._opened("rb+")) as file:
            seen, new, marked = self._load(file, self._seen, beyond=True)
            self._check_last(file, seen)
            if not marked:
                self._finish(file, seen)
            if (fields := decide(self._keep(seen, new))) is None:
                return False
            line = self._fitting("an entry", _sealed(seen.last, fields), self._longest)
            item = self._item(line, seen.end, seen.last)
            if seen.file != self._durable:
                # Whoever made the file may have been killed before that.
                sync_folder(os.path.realpath(self._path))
                self._durable = seen.file
            file.truncate(seen.end)
            try:
                _write(file, seen.end, line)
            except BaseException:
                file.truncate(seen.end)
                raise
            last = line[-_SEAL:][len(_DIGEST) : -3].decode()
            before = seen.end, seen.last
            end = seen.end + len(line)
            seen = seen._replace(end=end, last=last, n=seen.n + 1, before=before)
            self._finish(file, seen)
            if not leads_to(self._path, file):
                raise self._refused("was replaced or deleted while it was written")
            self._keep(seen, [item])
            return True

    def _fitting(self, what: str, line: bytes, most: int) -> bytes:
        if len(line) > most:
            raise ValueError(
                f"{what} of {len(line)} bytes is not accepted in a {self._kind}: "
                f"give at most {most}"
            )
        return line

    def _finish(self, file: io.FileIO, seen: Seen) -> None:
        """Move the mark behind entries."""
        _sync(file)
        _write(file, len(seen.head), _mark(seen.end, seen.last))
        _sync(file)

    def _keep(self, seen: Seen, new: list[Any]) -> list[Any]:
        """Remember what was checked, with the items of its last entries, and return all items.

        A signal handler or another thread may do the same meanwhile: each step is atomic, and items
        are replaced by equal ones.
        """
        seen.items[seen.n - len(new) : seen.n] = new
        self._seen = seen
        return seen.items

    def _load(
        self, file: io.FileIO, known: Seen, *, beyond: bool = False
    ) -> tuple[Seen, list[Any], bool]:
        """Return the part of the file up to the mark, or with whole entries `beyond` it.

        Also the items of its last entries, which were not known, and whether the mark ends it. Only
        these entries are read if the file is the known one and has a mark.
        """
        with _lines(file, 0) as lines:
            head = lines.readline(_LONGEST_HEAD)
        if known.head and head != known.head:
            self._begun(head, file)
            raise self._refused("was replaced by another one")
        mark, written = _read_mark(file, len(head))
        if mark and mark[0] < known.end:
            raise self._refused("has fewer entries than before: it was replaced by a copy")
        # Without a mark, the entry before the last one is needed.
        seen = known if mark and _identity(file) == known.file else self._begun(head, file)
        # The entries have to reach the mark, and to pass what is known.
        ahead = {(known.end, known.last)} if known.head else set()
        ahead |= {mark} if mark else set()
        new: list[Any] = []
        end, last, line = seen.end, seen.last, b""
        before = seen.before
        ahead.discard((end, last))
        with _lines(file, end) as lines:
            while not mark or beyond or end < mark[0]:
                line = lines.readline(self._longest)
                digest = _digest(last, line)
                if not digest:
                    break
                new.append(self.checked(self._item, line, end, last))
                before = end, last
                end, last = end + len(line), digest
                ahead.discard((end, last))
        met = bool(mark) or (not line and _torn(written, _mark(*before), _mark(end, last)))
        if ahead or not met:
            raise self._damaged("its digests do not fit")
        seen = seen._replace(end=end, last=last, n=seen.n + len(new), before=before)
        return seen, new, mark == (end, last)

    def _begun(self, head: bytes, file: io.FileIO) -> Seen:
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
        end = len(head) + _MARK
        return Seen(_identity(file), head, end, digest, 0, [], (end, digest))

    @contextmanager
    def _opened(self, mode: Any) -> Iterator[io.FileIO]:
        refusal = self._refused(f"is no {self._kind} of geomdp")
        with foreign.opened(self._path, mode, refusal) as file:
            yield file

    def checked(self, parse: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a parser of lines, which may be forged: digests have no key."""
        try:
            return parse(*arguments)
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._damaged(foreign.said(error)) from None

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


def _identity(file: io.FileIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _lines(file: io.FileIO, start: int) -> io.BufferedReader:
    """Return a reader of lines from a place on, with nothing in its buffer yet."""
    file.seek(start)
    return open(file.fileno(), "rb", closefd=False)


def _write(file: io.FileIO, at: int, content: bytes) -> None:
    file.seek(at)
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def _sync(file: io.FileIO) -> None:
    """Force the written bytes to the disk."""
    if sys.platform == "darwin":  # Its fsync leaves it in the disk's cache.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file.fileno())


def _readable(text: Any) -> Any:
    """Return a stored limit as messages show it, a number as it was typed."""
    if text == "None":
        return None
    try:
        return parameters.text(parameters.ratio(text))
    except ValueError:
        return parameters.shown(text)
