"""Add noise to columns of a CSV file of any size, and copy everything else to the byte.

The dialect is RFC 4180, read strictly: rows end with LF or CRLF, a cell that contains a delimiter,
a line end or a quote is quoted, and quotes in it are doubled. A file on which CSV readers disagree
is refused, so no count is mistaken for part of another cell.

Python's csv module would requote the other cells, and it accepts stray quotes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedIOBase
from typing import BinaryIO, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._release.parameters import shown

__all__ = ["DELIMITERS", "DataError", "release"]

_Counts: TypeAlias = NDArray[np.int64]

DELIMITERS = ",;|\t"
#: The number of bytes to read at a time, and the largest length of a row.
BLOCK, LONGEST_ROW = 2**17, 2**20
#: The largest length of a count, with blanks and zeros.
LONGEST_COUNT = 64

_BOM = b"\xef\xbb\xbf"
# All quantifiers are possessive, so matching takes linear time.
_QUOTED = re.compile(rb'"[^"]*+"')
_ROW = re.compile(rb'(?:[^"\n]++|%b)*+\n' % _QUOTED.pattern)
_ROWS = re.compile(rb"(?:%b)*+" % _ROW.pattern)
_COUNT = re.compile(rb'"?(?![^"]{%d})[ \t]*+([+-]?[0-9]++)[ \t]*+"?' % (LONGEST_COUNT + 1))
#: A name of a column: it has a letter, and no delimiter.
_NAME = re.compile(rf"[^{DELIMITERS}]*[^\W\d_][^{DELIMITERS}]*")


class DataError(Exception):
    """The file cannot be released. The message says where, and never shows the cell."""


def release(
    source: BufferedIOBase,
    target: BinaryIO,
    columns: Sequence[str],
    noise: Callable[[_Counts], _Counts],
    *,
    delimiter: str = ",",
    progress: Callable[[int], None] = lambda _: None,
    block: int = BLOCK,
) -> int:
    """Copy a CSV file, with noise added to some columns, and return its number of rows.

    Noisy counts are written without the quotes, blanks, plus sign and leading zeros of the true
    counts, which may depend on them.

    Parameters
    ----------
    source, target : binary files
        The first row is the header, in UTF-8, with or without a byte order mark.
    columns : sequence of str
        Distinct names. The cells in these columns are decimal integers within int64: ASCII digits,
        with an optional sign, and optional blanks around them.
    noise : callable
        Maps an int64 array of shape (rows, columns) to a noisy one of the same shape.
    delimiter : str
        One of ``DELIMITERS``.
    progress : callable
        Called with the number of bytes read so far.
    block : int
        The number of bytes to read at a time. Memory use depends on this and on the longest row.

    Returns
    -------
    int
        The number of rows below the header.

    Raises
    ------
    DataError
        If the file is invalid. The message names the line in which the row begins.

    """
    table: _Table | None = None
    n = 0
    for data, line, unended in _complete_rows(source, target, progress, block):
        header = b""
        if table is None:
            header = _ROW.findall(data)[0]
            table = _Table(header, delimiter, columns)
        parts, counts = table.split(data[len(header) :], line + header.count(b"\n"))
        for place, noisy in enumerate(noise(counts).T.tolist()):
            parts[2 * place + 1 :: table.stride] = map(b"%d".__mod__, noisy)
        written = header + b"".join(parts)
        target.write(written[:-1] if unended else written)
        n += len(counts)
    if table is None:
        raise DataError("the file is empty: it must begin with a header")
    return n


def _complete_rows(
    source: BufferedIOBase, target: BinaryIO, progress: Callable[[int], None], block: int
) -> Iterator[tuple[bytes, int, bool]]:
    """Yield all rows in blocks: their text, the first line's number, and whether we added an LF.

    Copies a byte order mark to the target.
    """
    head, rest = source.read(len(_BOM)), b""
    done, line = 0, 1
    if head == _BOM:
        target.write(head)
        done, head = len(head), b""
    while True:
        # read1 reads a pipe once; read would loop until the block is full and delay signals.
        new, head = head + source.read1(block), b""
        done += len(new)
        progress(done)
        unended = bool(rest) and not new
        data = rest + (b"\n" if unended else new)
        if not data:
            return
        complete = _ROWS.match(data)
        assert complete
        data, rest = complete[0], data[complete.end() :]
        after = line + data.count(b"\n")
        if unended and rest:
            raise DataError(f"line {after}: the file ends within this row: is a quote open?")
        if len(rest) > LONGEST_ROW:
            raise DataError(
                f"line {after}: a row of more than {LONGEST_ROW} bytes: is a quote open?"
            )
        if data:
            yield data, line, unended
            line = after


class _Table:
    """The columns of the header; splits rows into the counts and the text around them."""

    def __init__(self, header: bytes, delimiter: str, columns: Sequence[str]) -> None:
        self._delimiter = delimiter.encode()
        between = re.escape(self._delimiter)
        cell = rb'(?:(?:%b)++|[^"\r\n%b]*+)' % (_QUOTED.pattern, between)
        self._any_row = re.compile(rb"%b(?:%b%b)*+\r?\n" % (cell, between, cell))
        names = _names(header, delimiter) if self._any_row.fullmatch(header) else []
        for column in set(columns).difference(names):
            _suggest_delimiter(column, header, set(DELIMITERS) - {delimiter})
        self._width = self._width_of(header, 1)
        for column in columns:
            if names.count(column) > 1:
                raise DataError(f"line 1: there is more than one column {column!r}")
            if column not in names:
                # If there is no header, this row may hold counts: do not show them.
                told = shown([name if _NAME.fullmatch(name) else "..." for name in names])
                raise DataError(f"line 1: there is no column {column!r}: the header has {told}")
        places = sorted(map(names.index, columns))
        self._columns = [names[place] for place in places]
        #: The number of parts of a row: the counts, and the text around them.
        self.stride = 2 * len(places) + 1
        pattern, after = b"", 0
        for place in places:
            # Text before the first count ends with a delimiter; text after a count begins with one.
            start = between if after else b""
            kept = rb"%b(?:%b%b){%d}" % (start, cell, between, place - after)
            pattern += rb"(%b)(%b)" % (kept, cell)
            after = place + 1
        kept = rb"(?:%b%b){%d}\r?\n" % (between, cell, self._width - after)
        self._row = re.compile(rb"%b(%b)" % (pattern, kept))

    def split(self, data: bytes, line: int) -> tuple[list[bytes], _Counts]:
        """Return the parts of all rows, and the counts, of shape (rows, columns)."""
        parts: list[bytes] = []
        done = 0
        while row := self._row.match(data, done):
            parts += row.groups()
            done = row.end()
        cells = [parts[place :: self.stride] for place in range(1, self.stride, 2)]
        found = [list(map(_COUNT.fullmatch, column)) for column in cells]
        if done < len(data) or not all(map(all, found)):
            self._refuse(data, line)
        try:
            counts = np.array([[int(count[1]) for count in x if count] for x in found], np.int64)
        except OverflowError:
            self._refuse(data, line)
        return parts, counts.T

    def _refuse(self, data: bytes, line: int) -> NoReturn:
        """Raise a DataError for the first invalid row."""
        for text in _ROW.findall(data):
            row = self._row.fullmatch(text)
            if not row:
                width = self._width_of(text, line)
                raise DataError(
                    f"line {line}: a row of {width} cells, where the header has {self._width}"
                )
            for column, cell in zip(self._columns, row.groups()[1::2], strict=True):
                if why := _wrong(cell[1:-1] if cell.startswith(b'"') else cell):
                    raise DataError(f"line {line}: column {column!r}: {why}")
            line += text.count(b"\n")
        raise AssertionError("all rows are valid")

    def _width_of(self, text: bytes, line: int) -> int:
        """Return the number of cells of a row or of the header."""
        if not self._any_row.fullmatch(text):
            returns = re.search(rb"\r(?!\n)", _QUOTED.sub(b"x", text))
            raise DataError(
                f"line {line}: CR without LF: rows must end with LF or CRLF"
                if returns
                else f"line {line}: a stray quote: quote the cell, and double the quotes in it"
            )
        return _QUOTED.sub(b"", text).count(self._delimiter) + 1


def _wrong(count: bytes) -> str:
    """Return why the text is not a valid count, or an empty string."""
    if len(count) > LONGEST_COUNT:
        return f"more than {LONGEST_COUNT} characters"
    if not count.strip(b" \t"):
        return "an empty cell"
    if not _COUNT.fullmatch(count):
        return "not an integer"
    return "" if -(2**63) <= int(count) < 2**63 else "an integer beyond int64"


def _names(header: bytes, delimiter: str) -> list[str]:
    try:
        text = header.decode()
    except UnicodeDecodeError:
        raise DataError("line 1: the header is not UTF-8") from None
    cell = rf'((?:"[^"]*+")++|[^"\r\n{re.escape(delimiter)}]*+)(?:{re.escape(delimiter)}|\r?\n)'
    cells = re.findall(cell, text)
    return [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]


def _suggest_delimiter(column: str, header: bytes, others: Iterable[str]) -> None:
    """Raise a DataError if the header has this column with another delimiter."""
    for other in others:
        cells = header.rstrip(b"\r\n").split(other.encode())
        if column.encode(errors="surrogatepass") in (cell.strip(b'"') for cell in cells):
            word = "tab" if other == "\t" else other
            raise DataError(f"line 1: there is no column {column!r}: try --delimiter {word!r}")
