"""A release that was paid for, kept whole under a hidden name until its files stand.

The file beside the first file of a release begins with a line of public facts, which is on the disk
before anything is booked; behind it come the drawn noisy counts, and a digest of all. Without these
counts, none were ever shown, so that the same booking may draw again. Only its owner can read it,
and whoever publishes to the same name has a lock on it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import foreign, identity, new_file
from geomdp._ground.identity import Identity
from geomdp._ground.lock import leads_to, tried

_DIGEST = hashlib.sha256().digest_size
#: The most bytes of a line of facts.
_LONGEST = 2**20


class Left(NamedTuple):
    """What an interrupted call has left."""

    #: The public facts: the release that was asked for, and the ledger.
    facts: dict[str, Any]
    identities: list[Identity]
    #: What was drawn; None if nothing was.
    drawn: list[NDArray[np.int64]] | None


class Place:
    """The hidden file of a release, locked."""

    def __init__(self, path: Path, file: io.FileIO) -> None:
        self.path, self._file = path, file
        self.left = _left(file)

    def begin(self, facts: dict[str, Any], identities: Sequence[Identity]) -> None:
        """State what is going to be paid, and bring it to the disk."""
        said = facts | {"identities": [list(each) for each in identities]}
        self._file.truncate(0)
        self._write(f"{json.dumps(said)}\n".encode())
        new_file.sync_folder(str(self.path))

    def keep(self, drawn: Sequence[NDArray[np.int64]]) -> None:
        """Bring what was drawn to the disk."""
        self._file.seek(0)
        content = io.BytesIO()
        content.write(self._file.readall().partition(b"\n")[0] + b"\n")
        for each in drawn:
            np.save(content, each, allow_pickle=False)
        content.write(hashlib.sha256(content.getvalue()).digest())
        self._write(content.getvalue())

    def drop(self) -> None:
        """Remove the file: its release stands, or was not paid for."""
        if os.name == "nt":  # An open file keeps its name there.
            self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def _write(self, content: bytes) -> None:
        self._file.seek(0)
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())


def path_of(path: str) -> Path:
    """Return the hidden file of a release to this name."""
    start = hashlib.sha256(os.path.basename(path).encode()).hexdigest()[:16]
    return Path(os.path.dirname(path), f".geomdp-{start}.kept")


@contextmanager
def place(path: str) -> Iterator[Place]:
    """Yield the hidden file of a release to this name, which nobody else publishes meanwhile."""
    hidden = path_of(path)
    while True:
        with suppress(FileExistsError):
            os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with foreign.opened(hidden, "rb+", new_file.taken(str(hidden))) as file:
            if not tried(file):
                why = "is being published by another call"
                raise FileExistsError(errno.EEXIST, why, path)
            if leads_to(hidden, file):
                yield Place(hidden, file)
                return


def _left(file: io.FileIO) -> Left | None:
    """Return what an interrupted call has left in a file; None if it was not paid for."""
    file.seek(0)
    whole = file.readall()
    line, end, _ = whole[:_LONGEST].partition(b"\n")
    with suppress(Exception):
        facts = json.loads(line)
        identities = [identity.stated(*each) for each in facts.pop("identities")]
        body, digest = whole[:-_DIGEST], whole[-_DIGEST:]
        if end and hashlib.sha256(body).digest() != digest:
            return Left(facts, identities, None)
        content = io.BytesIO(body[len(line) + 1 :])
        drawn = []
        while content.tell() < len(content.getbuffer()):
            drawn.append(np.load(content, allow_pickle=False).astype(np.int64, casting="no"))
        return Left(facts, identities, drawn)
    return None
