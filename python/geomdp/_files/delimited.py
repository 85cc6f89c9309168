"""Add noise to columns of a CSV file of any size, and copy the other cells by value.

The dialect is RFC 4180: rows end with LF or CRLF, a cell that contains a delimiter, a line end or a
quote is quoted, and quotes in it are doubled. Python's csv module reads and writes it, but accepts
stray quotes. They are refused here, since CSV readers disagree on them and could take a count for
part of another cell.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedIOBase
from itertools import chain, islice
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataError", "release"]

_Counts: TypeAlias = NDArray[np.int64]

#: The number of rows to read at a time, and the most bytes in a row: the csv module's limit for a
#: cell.
BATCH, LONGEST_ROW = 1024, 2**17

_BOM = b"\xef\xbb\xbf"
_STRAY = re.compile(r'"|\r(?!\n)')
_COUNT = re.compile(r"[ \t]*[+-]?[0-9]{1,40}[ \t]*")


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

    The copy quotes only cells that need it, and its rows end like the header. Noisy counts are
    written without the blanks, plus sign and leading zeros of the true counts, which may depend on
    them. The header is in UTF-8, with or without a byte order mark; other cells may be in any
    encoding that extends ASCII. Counts are decimal integers within int64: up to 40 ASCII digits,
    with an optional sign, and optional blanks around them. `noise` maps an int64 array of shape
    (rows, columns) to a noisy one. A DataError names the line in which a row begins.
    """
    lines = iter(partial(source.readline, LONGEST_ROW + 1), b"")
    first = next(lines, b"")
    if first.startswith(_BOM):
        target.write(_BOM)
    end = b"\r\n" if first.endswith(b"\r\n") else b"\n"
    rows = _rows(chain([first.removeprefix(_BOM)], lines), delimiter)
    _, header = next(rows)
    try:
        "".join(header).encode()
    except UnicodeEncodeError:
        raise DataError("line 1: the header is not UTF-8") from None
    for column in columns:
        # Do not show the header: without one, the first row holds counts.
        if header.count(column) != 1:
            raise DataError(
                f"line 1: column {column!r} must occur exactly once in the header: "
                f"is {delimiter!r} the delimiter?"
            )
    places = [*map(header.index, columns)]
    _write(target, [header], delimiter, end)
    while batch := [*islice(rows, BATCH)]:
        counts = [_counts(line, row, header, places) for line, row in batch]
        for (_, row), noisy in zip(batch, noise(np.array(counts, np.int64)).tolist(), strict=True):
            for place, count in zip(places, noisy, strict=True):
                row[place] = str(count)
        _write(target, [row for _, row in batch], delimiter, end)


def _rows(lines: Iterator[bytes], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each row, and its cells."""
    row: list[str] = []
    start = 1

    def decoded() -> Iterator[str]:
        size = 0
        for line in lines:
            size = len(line) + (size if row else 0)
            if size > LONGEST_ROW:
                raise DataError(
                    f"line {start}: a row of more than {LONGEST_ROW} bytes: is a quote open?"
                )
            row.append(line.decode(errors="surrogateescape"))
            yield row[-1]

    quoted = re.compile(
        rf'(?<![^{delimiter}])"(?:[^"]++|"")*+"(?![^{delimiter}\r\n])'  # a whole cell
    )
    reader = csv.reader(decoded(), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if _STRAY.search(quoted.sub("", "".join(row))):
                raise csv.Error
            yield start, cells
            row.clear()
            start = reader.line_num + 1
    except csv.Error:
        raise DataError(
            f"line {start}: not a row by RFC 4180: a stray or an open quote, or CR without LF"
        ) from None


def _counts(line: int, row: list[str], header: list[str], places: list[int]) -> list[int]:
    if len(row) != len(header):
        raise DataError(
            f"line {line}: a row of {len(row)} cells, where the header has {len(header)}"
        )
    counts = []
    for place in places:
        cell = row[place]
        if not _COUNT.fullmatch(cell) or not -(2**63) <= int(cell) < 2**63:
            raise DataError(
                f"line {line}: column {header[place]!r}: not a decimal integer within int64"
            )
        counts.append(int(cell))
    return counts


class _Lines(list[bytes]):
    def write(self, line: str) -> None:
        self.append(line[:-2].encode(errors="surrogateescape"))


def _write(target: BinaryIO, rows: list[list[str]], delimiter: str, end: bytes) -> None:
    # The writer ends rows with CRLF, and so quotes CR and LF in every version of Python.
    lines = _Lines()
    csv.writer(lines, delimiter=delimiter).writerows(rows)
    target.write(b"".join(line + end for line in lines))
