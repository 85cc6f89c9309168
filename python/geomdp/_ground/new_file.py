"""Files that appear whole under their names, or not at all."""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from geomdp._ground import foreign
from geomdp._ground.lock import leads_to, locked, tried

#: What fsync says of folders where a file system cannot write their names by themselves, as some
#: network folders do. SQLite and PostgreSQL go on too.
_NO_SYNC = (errno.EINVAL, errno.EBADF)


@contextmanager
def new_file(
    path: str,
    *,
    overwrite: bool = False,
    placing: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[BinaryIO]:
    """Yield a file that gets this name once it is complete and on the disk.

    Until then it has another name in the same folder, and an exception deletes it. It gets its
    name within `placing`. An error of the folder after that leaves the file where it is.
    """
    part = hidden(path, "geomdp", ".part")
    late = None
    try:
        with _created(part, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":  # An open file gets no other name there.
                file.close()
            with placing():
                if overwrite:
                    os.replace(part, path)
                else:
                    place(part, path)
                try:
                    sync_folder(path)
                except OSError as error:
                    late = error
        if late is not None:
            raise late
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


@contextmanager
def rehearsal(path: str) -> Iterator[str]:
    """Yield a hidden name beside a file, with the same ending; remove it and what is beside it.

    Errors name the file.
    """
    part = hidden(path, "geomdp", ".part")
    try:
        with _created(part, path):
            try:
                yield part.removesuffix(".part") + Path(path).suffix
            except OSError as error:
                if error.errno is None:
                    raise
                raise type(error)(error.errno, error.strerror, path) from error
    finally:
        _remove(part)


def tidy(path: str) -> None:
    """Remove what killed processes have left in the folder of a file; those that run are locked."""
    if os.name == "posix":
        for part in Path(path).parent.glob(".geomdp-*.part"):
            with suppress(OSError), foreign.opened(part, "rb+", OSError()) as file:
                if tried(file) and leads_to(part, file):
                    _remove(str(part))


def _remove(part: str) -> None:
    """Remove the files whose names begin like that of a part, itself the last."""
    named = Path(part)
    beside = (each for each in named.parent.glob(f"{named.stem}.*") if each != named)
    for each in (*beside, named):
        with suppress(FileNotFoundError):
            os.unlink(each)


def hidden(path: str, start: str, end: str) -> str:
    """Return a new name in the folder of a file."""
    return os.path.join(os.path.dirname(path), f".{start}-{os.urandom(8).hex()}{end}")


def _created(part: str, path: str) -> BinaryIO:
    """Open a new file, locked while it is open; errors name the folder, or the file it is for."""
    try:
        while True:
            file = open(part, "xb")  # noqa: SIM115 (the caller closes it)
            with suppress(OSError):  # A file system without locks.
                tried(file)
            if os.name == "nt" or leads_to(part, file):
                return file
            file.close()  # It was taken for one of a killed process before it was locked.
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
    except OSError as error:
        # A network may lose the answer of a call that was made.
        with suppress(OSError):
            if os.path.samefile(part, path):
                return
        if isinstance(error, FileExistsError):
            raise taken(path) from None
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
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise
        finally:
            os.close(folder)


def taken(path: str) -> FileExistsError:
    """Return the error of a name that a file has."""
    return FileExistsError(errno.EEXIST, "already exists, and is not overwritten", path)
