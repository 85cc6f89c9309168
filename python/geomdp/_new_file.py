"""Files that appear whole under their names, and replace none."""

import errno
import os


def place(part: str, path: str) -> None:
    """Give a finished file its name, atomically; raise FileExistsError if the name is taken."""
    try:
        # Unlike a rename, a link does not replace a file.
        os.link(part, path)
    except FileExistsError:
        raise taken(path) from None
    except OSError:
        # The file system has no links. Renaming would replace an existing file, so reserve the
        # name first.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            raise taken(path) from None
        try:
            os.replace(part, path)
        except BaseException:
            os.unlink(path)
            raise


def taken(path: str) -> FileExistsError:
    """Return the error of a name that a file has."""
    return FileExistsError(errno.EEXIST, "already exists, and is not overwritten", path)
