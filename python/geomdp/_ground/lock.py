"""A lock that belongs to an open file, and to the name under which it was opened."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import BinaryIO

#: How long to wait for a lock, in seconds.
_WAIT = 30
#: Held with every lock. So no process is forked meanwhile: its copy of the open file would keep the
#: lock.
_HELD = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_HELD.acquire,
        after_in_parent=_HELD.release,
        after_in_child=_HELD.release,
    )


@contextmanager
def locked(
    path: str | os.PathLike[str], opened: Callable[[], AbstractContextManager[io.FileIO]]
) -> Iterator[io.FileIO]:
    """Yield the file that has this name, locked until it is closed.

    While a process waits, whoever has the lock may give the name to another file. So each attempt
    opens the name again.
    """
    with _HELD:
        end = time.monotonic() + _WAIT
        while True:
            with opened() as file:
                if _acquired(file) and leads_to(path, file):
                    yield file
                    return
            if time.monotonic() > end:
                raise TimeoutError(f"{os.path.basename(path)} is locked by another process")
            time.sleep(0.005)


def tried(file: io.FileIO | BinaryIO) -> bool:
    """Lock an open file until it is closed, unless another process or thread has the lock.

    An OSError comes from a file system without locks. A process that is forked meanwhile keeps the
    lock too, so the file is not left before both are gone.
    """
    return _acquired(file)


def leads_to(path: str | os.PathLike[str], file: io.FileIO | BinaryIO) -> bool:
    """Return whether an open file has this name, still."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _acquired(file: io.FileIO | BinaryIO) -> bool:
        """Try to lock a byte behind any entry, since other processes cannot read it then."""
        file.seek(2**31 - 2)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _acquired(file: io.FileIO | BinaryIO) -> bool:
        """Try to lock the file, under all its names and until this open file is closed."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
