"""Files that appear whole under their names, or not at all."""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import BinaryIO

from geomdp._ground.lock import locked


@contextmanager
def new_file(
    path: str,
    *,
    overwrite: bool = False,
    placing: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[BinaryIO]:
    """Yield a file that gets this name once it is complete and on the disk.

    Until then it has another name in the same folder, and an exception deletes it. It gets its
    name within `placing`.
    """
    part = hidden(path, "geomdp", ".part")
    try:
        with _created(part, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with placing():
            if overwrite:
                os.replace(part, path)
            else:
                place(part, path)
            sync_folder(path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def probe(path: str) -> None:
    """Raise the error of a folder that takes no file of this name; leave nothing there."""
    part = hidden(path, "geomdp", ".part")
    _created(part, path).close()
    os.unlink(part)


def hidden(path: str, start: str, end: str) -> str:
    """Return a new name in the folder of a file."""
    return os.path.join(os.path.dirname(path), f".{start}-{os.urandom(8).hex()}{end}")


def _created(part: str, path: str) -> BinaryIO:
    """Open a new file; errors name the folder, or the file that it is for."""
    try:
        return open(part, "xb")
    except FileNotFoundError as error:
        folder = os.path.dirname(path) or os.curdir
        raise FileNotFoundError(error.errno, "no such folder: create it first", folder) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def place(part: str, path: str) -> None:
    """Give a finished file its name, atomically; raise FileExistsError if the name is taken."""
    try:
        # Unlike a rename, a link does not replace a file.
        os.link(part, path)
    except FileExistsError:
        raise taken(path) from None
    except OSError:
        # The file system has no links. A rename replaces a file that is there, except on Windows,
        # so those who make the same file take turns.
        with nullcontext() if os.name == "nt" else _turn(path):
            if os.path.lexists(path):
                raise taken(path) from None
            os.rename(part, path)


@contextmanager
def _turn(path: str) -> Iterator[None]:
    """Be the only one who makes this file. A process that is killed is in nobody's way."""
    folder, name = os.path.split(path)
    turn = os.path.join(folder, f".geomdp-{hashlib.sha256(os.fsencode(name)).hexdigest()}.turn")
    with locked(turn, lambda: open(turn, "ab", 0)):
        try:
            yield
        finally:
            os.unlink(turn)


def sync_folder(path: str) -> None:
    """Write the names in the folder of a file to the disk."""
    if os.name == "posix":
        folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def taken(path: str) -> FileExistsError:
    """Return the error of a name that a file has."""
    return FileExistsError(errno.EEXIST, "already exists, and is not overwritten", path)
