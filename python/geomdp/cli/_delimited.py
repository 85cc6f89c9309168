"""Add noise to columns of a CSV file of any size, and copy the other cells as they are."""

from collections.abc import Callable, Sequence
from functools import partial
from io import BufferedIOBase
from typing import BinaryIO, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from geomdp._kernel import core

__all__ = ["DataError", "release"]

_Counts: TypeAlias = NDArray[np.int64]
_Found = TypeVar("_Found")

#: The number of bytes to read at a time.
CHUNK = 2**16


class DataError(Exception):
    """The file cannot be released. The message says where, and never shows the cell."""


def release(
    source: BufferedIOBase,
    target: BinaryIO,
    columns: Sequence[str],
    noise: Callable[[_Counts], _Counts],
    *,
    delimiter: str = ",",
) -> None:
    """Copy a CSV file, with noise added to some columns.

    The rows of the copy end like the first line; all other cells are copied byte for byte. Noisy
    counts are written without the quotes, blanks, plus sign and leading zeros of the true counts,
    which may depend on them. The header is in UTF-8, with or without a byte order mark; other cells
    may be in any encoding that extends ASCII. Counts are decimal integers within int64: up to 40
    ASCII digits, with an optional sign, and optional blanks around them. `noise` maps an int64
    array of shape (rows, columns) to a noisy one; its columns are in the order of the file. A
    DataError names the line in which a row begins.
    """
    rows = core.Rows(delimiter)
    read = partial(source.read, CHUNK)
    while (header := _checked(rows.header, read())) is None:
        pass
    for column in columns:
        # Do not show the header: without one, the first row holds counts.
        if header.count(column) != 1:
            raise DataError(
                f"line 1: column {column!r} must occur exactly once in the header: "
                f"is {delimiter!r} the delimiter?"
            )
    target.write(rows.text(np.empty(0, np.int64)))
    rows.select(sorted((header.index(column), repr(column)) for column in columns))
    at_end = False
    while not at_end:
        chunk = read()
        counts = np.frombuffer(_checked(rows.counts, chunk), np.int64)
        if counts.size:
            target.write(rows.text(noise(counts.reshape(-1, len(columns)))))
        at_end = not chunk


def _checked(read: Callable[[bytes], _Found], chunk: bytes) -> _Found:
    try:
        return read(chunk)
    except ValueError as error:
        raise DataError(error) from None
