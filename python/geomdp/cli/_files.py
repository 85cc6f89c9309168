"""Files of the command: read with progress and as gzip, written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from geomdp._ground.new_file import new_file, taken
from geomdp.cli._delimited import DataError

#: Seconds between two reports of progress.
_PATIENCE = 1.0


def print_text(text: str) -> None:
    """Print a text, or raise an OSError once."""
    with _standard_output():
        print(text, end="", flush=True)


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
    except OSError:
        # Otherwise the interpreter flushes again at exit and reports a second error.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


@contextmanager
def reading(path: str) -> Iterator[Any]:
    """Yield a file to read; errors of its content name it."""
    try:
        with _opened(path) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{_named(path)}: not a gzip file, or a damaged one") from None
    except DataError as error:
        raise DataError(f"{_named(path)}: {error}") from error


def _named(path: str) -> str:
    return "standard input" if path == "-" else path


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
        yield sys.stdin.buffer
        return
    with _Watched(path) as raw, io.BufferedReader(raw) as file:
        yield gzip.GzipFile(fileobj=file) if _is_zipped(path) else file


class _Watched(io.FileIO):
    """A file that tells a person at a terminal how much of it has been read."""

    _next, _shown = math.inf, ""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._size = os.fstat(self.fileno()).st_size
        if self._size and sys.stderr is not None and sys.stderr.isatty():
            self._next = time.monotonic() + _PATIENCE

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() >= self._next:
            self._show(f"geomdp: {self.tell() / self._size:.0%} read")
            self._next = time.monotonic() + _PATIENCE
        return super().readinto(buffer)

    def close(self) -> None:
        if self._shown:
            self._show(" " * len(self._shown))
            self._show("")
        super().close()

    def _show(self, text: str) -> None:
        self._shown = text
        with suppress(OSError):
            print(f"\r{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def writing(path: str) -> Iterator[Any]:
    """Yield a file to write; on success it becomes the named file, or goes to standard output."""
    if path != "-":
        if os.path.lexists(path):
            raise taken(path)
        with interrupts() as commit, new_file(path, placing=commit) as file:
            if not _is_zipped(path):
                yield file
                return
            # GzipFile would store the temporary name.
            with gzip.GzipFile("", "wb", 6, file) as zipped:
                yield zipped
        return
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    with interrupts(), tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        with _standard_output():
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _is_zipped(path: str) -> bool:
    return path.lower().endswith(".gz")


@contextmanager
def interrupts() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Raise KeyboardInterrupt for the first signal to stop, unless the yielded function was called.

    Later signals are ignored, since they would interrupt the cleanup.
    """
    ignoring = False

    def stop(*_: object) -> None:
        nonlocal ignoring
        if not ignoring:
            ignoring = True
            raise KeyboardInterrupt

    def commit() -> AbstractContextManager[None]:
        nonlocal ignoring
        ignoring = True
        return nullcontext()

    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # Leave signals alone that the parent process set to be ignored, or that C code handles.
            if number is not None and signal.getsignal(number) not in (None, signal.SIG_IGN):
                before[number] = signal.signal(number, stop)
    try:
        yield commit
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
