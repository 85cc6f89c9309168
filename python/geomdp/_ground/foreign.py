"""Files that anybody may have written: each reader opens its file here, and never waits."""

import os
import stat
from io import FileIO
from pathlib import Path

from geomdp._ground import parameters

#: Opening a pipe would wait for its other end.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def opened(path: Path, mode: str, refusal: Exception) -> FileIO:
    """Open a file without a buffer, or raise `refusal` if it is a pipe, a device or a folder.

    The open file is judged: its name may stand for another one a moment before or after.
    """

    def opener(name: str, flags: int) -> int:
        number = os.open(name, flags | _AT_ONCE)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise refusal
        return number

    return FileIO(str(path), mode, opener=opener)


def said(error: Exception) -> str:
    """Return what a message says of a fault of a file, whose text it may quote."""
    why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    why = parameters.CONTROLS.sub(lambda found: repr(found[0])[1:-1], why)
    return f"{why[:500]}..." if len(why) > 500 else why
