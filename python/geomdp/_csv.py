"""Noise for columns of a CSV file of any size; all else stays as it is, to the byte.

The dialect is that of RFC 4180, read strictly: rows end with LF or CRLF, a cell with a delimiter, a
line end or a quote in it is quoted, and quotes in it are doubled. What readers of CSV disagree
about is refused, so that no count passes for a part of another cell.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["DELIMITERS", "DataError", "release"]

_Bytes: TypeAlias = NDArray[np.uint8]
_Counts: TypeAlias = NDArray[np.int64]
_Flags: TypeAlias = NDArray[np.bool_]
_Places: TypeAlias = NDArray[np.intp]

DELIMITERS = ",;|\t"
#: How many bytes are read at a time, and the most that a row may have.
BLOCK, LONGEST_ROW = 2**17, 2**20
#: The most characters that a count may have, with blanks and zeros.
LONGEST_COUNT = 64

_BOM = b"\xef\xbb\xbf"
_LF, _CR, _QUOTE, _PLUS, _MINUS, _ZERO = b'\n\r"+-0'


class DataError(Exception):
    """The file cannot be released as it is. The message says where, but not what is there."""


def release(
    source: BufferedIOBase,
    target: BinaryIO,
    columns: Sequence[str],
    noise: Callable[[_Counts], _Counts],
    *,
    delimiter: str = ",",
    progress: Callable[[int], None] = lambda _: None,
    block: int = BLOCK,
) -> None:
    """Copy a CSV file, with noisy counts in some columns.

    A noisy count is written without what the true one had around it: quotes, blanks, a plus,
    zeros. They may depend on the true count.

    Parameters
    ----------
    source, target : binary files
        The first row is the header, in UTF-8, with or without a byte order mark.
    columns : sequence of str
        Different names. Cells below them are decimal integers within int64, of ASCII digits, signed
        or not, with blanks around them or not.
    noise : callable
        Takes an int64 array of rows with these columns, and returns such an array.
    delimiter : str
        One of ``DELIMITERS``.
    progress : callable
        Called with the number of bytes that have been read.
    block : int
        How many bytes to read at a time. The memory that is needed depends on this and on the
        length of the longest row.

    Raises
    ------
    DataError
        If the file is not like this.

    """
    names: list[str] = []
    places: list[int] = []
    for rows in _complete_rows(source, target, ord(delimiter), progress, block):
        header = 0
        if not names:
            names = _names(rows)
            places = _places(names, columns)
            header = len(names)
        cells = _cells(rows, header, names, places)
        target.write(_spliced(rows, cells, noise(_counts(cells).reshape(-1, len(places)))))
    if not names:
        raise DataError("the file is empty: it must begin with a header")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows of a file, at the beginning of its data."""

    data: bytes
    #: The number of the first line.
    line: int
    #: Where cells end, and whether rows do.
    ends: _Places
    last: _Flags
    #: Whether the file lacks the last line end of the data.
    unended: bool

    @property
    def text(self) -> _Bytes:
        return np.frombuffer(self.data, np.uint8)

    @property
    def stop(self) -> int:
        """Where the last row ends."""
        return int(self.ends[-1]) + 1 if self.ends.size else 0

    def line_at(self, place: int) -> int:
        return self.line + self.data.count(b"\n", 0, place)

    def refuse(self, places: Iterable[int], why: str) -> None:
        """Refuse the file, if there are such places, for the first of them."""
        for place in places:
            raise DataError(f"line {self.line_at(place)}: {why}")


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of some columns, row by row."""

    rows: _Rows
    #: The columns' names.
    names: Sequence[str]
    starts: _Places
    ends: _Places

    def refuse(self, wrong: _Flags, why: str) -> None:
        """Refuse the file, if there are such cells, for the first of them."""
        for cell in np.flatnonzero(wrong):
            name = self.names[int(cell) % len(self.names)]
            self.rows.refuse([self.starts[cell]], f"column {name!r}: {why}")


def _complete_rows(
    source: BufferedIOBase,
    target: BinaryIO,
    delimiter: int,
    progress: Callable[[int], None],
    block: int,
) -> Iterator[_Rows]:
    """Yield all rows, some at a time; a byte order mark is copied."""
    head, rest = source.read(len(_BOM)), b""
    done, line = 0, 1
    if head == _BOM:
        target.write(head)
        done, head = len(head), b""
    while True:
        # One read of a pipe, and not as many as it takes, between which signals would have to wait.
        new, head = head + source.read1(block), b""
        done += len(new)
        progress(done)
        unended = bool(rest) and not new
        data = rest + (b"\n" if unended else new)
        if not data:
            return
        rows = _parsed(data, line, delimiter, unended)
        rest = data[rows.stop :]
        if unended and rest:
            rows.refuse([rows.stop], "this row has no end: is a quote open?")
        if len(rest) > LONGEST_ROW:
            rows.refuse([rows.stop], f"a row of more than {LONGEST_ROW} bytes: is a quote open?")
        if rows.stop:
            yield rows
            line = rows.line_at(rows.stop)


def _parsed(data: bytes, line: int, delimiter: int, unended: bool) -> _Rows:
    """Return the rows that are complete.

    What has an odd number of quotes before it is inside of a quoted cell.
    """
    text = np.frombuffer(data, np.uint8)
    special = (text == delimiter) | (text == _LF) | (text == _CR) | (text == _QUOTE)
    places = np.flatnonzero(special)
    kinds = text[places]
    quotes = kinds == _QUOTE
    outside = np.cumsum(quotes, dtype=np.uint8) % 2 == 0
    row_ends = np.flatnonzero(outside & (kinds == _LF))
    complete = slice(row_ends[-1] + 1 if row_ends.size else 0)
    places, kinds = places[complete], kinds[complete]
    quotes, outside = quotes[complete], outside[complete]
    cell_ends = outside & ~quotes & (kinds != _CR)
    rows = _Rows(data, line, places[cell_ends], kinds[cell_ends] == _LF, unended)

    returns = places[outside & (kinds == _CR)]
    rows.refuse(returns[text[returns + 1] != _LF], "CR without LF: rows must end with LF or CRLF")
    # A quote has another one, or an end of the cell, on its outer side.
    opening, closing = places[quotes].reshape(-1, 2).T
    before, after = np.where(opening > 0, text[opening - 1], _LF), text[closing + 1]
    stray = [
        opening[~np.isin(before, [delimiter, _LF, _QUOTE])],
        closing[~np.isin(after, [delimiter, _LF, _CR, _QUOTE])],
    ]
    rows.refuse(np.sort(np.concatenate(stray)), "a quote that is not doubled within a cell")
    return rows


def _names(rows: _Rows) -> list[str]:
    """Return the names of the columns, from the first row."""
    ends = rows.ends[: np.argmax(rows.last) + 1].tolist()
    header = rows.data[: ends[-1]].removesuffix(b"\r")
    starts = [0, *(end + 1 for end in ends[:-1])]
    try:
        cells = [header[start:end].decode() for start, end in zip(starts, ends, strict=True)]
    except UnicodeDecodeError:
        raise DataError("line 1: the header is not UTF-8") from None
    return [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]


def _places(names: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return where these columns are, from left to right."""
    for column in columns:
        if names.count(column) != 1:
            found = "more than one" if column in names else "no"
            raise DataError(f"line 1: there is {found} column {column!r}")
    return sorted(map(names.index, columns))


def _cells(rows: _Rows, header: int, names: Sequence[str], places: list[int]) -> _Cells:
    """Return the cells at these places of all rows, beyond the first so many cells."""
    ends, last = rows.ends[header:], rows.last[header:]
    starts = np.concatenate([[0], rows.ends[:-1] + 1])[header:]
    row_ends = np.flatnonzero(last)
    widths = np.diff(row_ends, prepend=-1)
    for row in np.flatnonzero(widths != len(names)):
        first = starts[row_ends[row] + 1 - widths[row]]
        rows.refuse([first], f"a row of {widths[row]} cells, where the header has {len(names)}")
    # A CR at the end of a row belongs to its end.
    ends = ends - (last & (rows.text[ends - 1] == _CR))
    starts, ends = (x.reshape(-1, len(names))[:, places].reshape(-1) for x in (starts, ends))
    return _Cells(rows, [names[place] for place in places], starts, ends)


def _counts(cells: _Cells) -> _Counts:
    """Return the integers that cells hold."""
    text = cells.rows.text
    quoted = text[cells.starts] == _QUOTE
    starts, ends = cells.starts + quoted, cells.ends - quoted
    cells.refuse(ends - starts > LONGEST_COUNT, f"more than {LONGEST_COUNT} characters")

    def skip(these: bytes, stops: _Places) -> None:
        nonlocal starts
        while (more := (starts < stops) & np.isin(text[starts], list(these))).any():
            starts = starts + more

    skip(b" \t", ends)
    while (more := (starts < ends) & np.isin(text[ends - 1], list(b" \t"))).any():
        ends = ends - more
    cells.refuse(starts == ends, "an empty cell")
    minus = text[starts] == _MINUS
    starts = starts + (minus | (text[starts] == _PLUS))
    wrong = starts == ends
    skip(b"0", ends - 1)
    digits = ends - starts
    values = np.zeros(len(starts), np.uint64)
    for place in range(digits.max(initial=0)):
        inside = place < digits
        digit = text[np.minimum(starts + place, ends)] - np.uint8(_ZERO)
        wrong |= inside & (digit > 9)
        values = np.where(inside, 10 * values + digit, values)
    cells.refuse(wrong, "not an integer")
    # More digits than fit into 64 bits have wrapped.
    largest = np.where(minus, np.uint64(2**63), np.uint64(2**63 - 1))
    cells.refuse((digits > 19) | (values > largest), "an integer beyond int64")
    return np.where(minus, np.negative(values), values).view(np.int64)


def _spliced(rows: _Rows, cells: _Cells, counts: _Counts) -> bytes:
    """Return the rows with these counts in these cells."""
    starts, ends = cells.starts.tolist(), cells.ends.tolist()
    kept = map(slice, [0, *ends], [*starts, rows.stop - rows.unended])
    parts = [b""] * (2 * len(starts) + 1)
    parts[::2] = map(rows.data.__getitem__, kept)
    parts[1::2] = map(b"%d".__mod__, counts.reshape(-1).tolist())
    return b"".join(parts)
