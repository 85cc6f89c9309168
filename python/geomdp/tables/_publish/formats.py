"""The formats of published files: how rows become bytes, and bytes rows (docs/format.md).

:data:`FORMATS` is the only list of them. This module knows no description but the names and types
of columns, and opens no file.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.notebook import many
from geomdp._kernel import core
from geomdp.tables._columns import levels as _levels
from geomdp.tables._publish import footer as _footer

#: The most bytes of a row of a CSV file, whose cells take more; and how many are looked at at once.
LONGEST_ROW, _PIECE = 2**20, 2**22
#: The most bytes of a Parquet file's footer, and the rows of a group: each makes it longer.
_FOOTER, _GROUP = 2**22, 2**23
#: Frictionless' names of types.
_TYPES = {
    str: "string",
    int: "integer",
    bool: "boolean",
    float: "number",
    date: "date",
    datetime: "datetime",
}
#: A design of numpy's arrays has no more.
_MOST_COLUMNS = 100
#: The start of text that spreadsheets run, behind any quotes and apostrophes; numbers start alike.
#: The last five are = + - @ in full width, and a byte order mark, which they leave out.
_FIRST = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20\ufeff"
#: A spreadsheet may part cells at any of these, so that each part of a text is judged. The readers
#: in examples/ have both patterns.
_PART, _RUNS = r"(^|[,;|\t\r\n])", f"['\"]*[{re.escape(_FIRST)}]"
_BEFORE, _MARKED = re.compile(f"{_PART}(?={_RUNS})"), re.compile(f"{_PART}'(?={_RUNS})")
#: Whether any of several texts, with a 0 between them, has such a part.
_SOME = re.compile(_PART.replace("[", "[\0") + _RUNS)
#: A cell that has one is quoted, so that no other separator parts it.
_MARK = re.compile(r"[^\w .-]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_OTHER_COLUMNS = "it has other columns than its description"


class Column(Sequence[Any]):
    """A column with few distinct values: `items`, and for each row the place of its item.

    Items are in the order of their first rows. Those of a CSV file are text.
    """

    __slots__ = ("_as_text", "items", "places")

    def __init__(self, items: Sequence[Any], places: Any, *, as_text: bool = False) -> None:
        codes = np.asarray(places, np.int64)
        first = np.full(len(items), codes.size)
        first[codes[::-1]] = np.arange(codes.size)[::-1]
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < codes.size)]
        new = np.empty(len(items), np.int64)
        new[order] = np.arange(order.size)
        self.items: list[Any] = _levels.taken(items, order)
        self.places: NDArray[np.int64] = new[codes]
        self._as_text = as_text

    @classmethod
    def of(cls, values: Sequence[Any], *, as_text: bool = False) -> Column:
        """Return a column of these values."""
        known = {value: place for place, value in enumerate(dict.fromkeys(values))}
        places = np.fromiter(map(known.__getitem__, values), np.int64, len(values))
        return cls(list(known), places, as_text=as_text)

    def __len__(self) -> int:
        return self.places.size

    def __getitem__(self, row: Any) -> Any:
        return self.items[self.places[row]]

    def text_of(self, label: Any) -> Any:
        """Return a label as an item of this column."""
        return _text(label) if self._as_text else label

    def of_text(self, item: Any, parse: Callable[[str], Any]) -> Any:
        """Return the value of an item, which a function parses where it is text for another."""
        return parse(item) if self._as_text else item

    def among(self, levels: Sequence[Any]) -> NDArray[np.int64]:
        """Return for each row the place of its value among these, or raise a ValueError."""
        shown = texts(levels) if self._as_text else levels
        if self.items == shown:
            return self.places
        if not _levels.distinct(self.items):
            raise ValueError("items of a column repeat")
        known = {level: place for place, level in enumerate(shown)}
        try:
            found = [known[item] for item in self.items]
        except (LookupError, TypeError):
            raise ValueError("it has other rows than its description") from None
        return np.array(found, np.int64)[self.places]


class Columns(NamedTuple):
    """The columns of a file: the last one has the counts."""

    names: list[str]
    #: Frictionless' names.
    types: list[str]

    @classmethod
    def of(cls, levels: Mapping[str, Column], counts: str) -> Columns:
        """Return the columns of levels, and of counts, that are to be written."""
        return cls([*levels, counts], [*map(_type_of, levels.values()), "integer"])

    @classmethod
    def stated(cls, description: Mapping[str, Any]) -> Columns:
        """Return the columns of a description from anybody, or raise an error."""
        fields = description["schema"]["fields"]
        names, kinds = [each["name"] for each in fields], [each["type"] for each in fields]
        if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
            raise ValueError("names of columns repeat, or are not text")
        known = {*kinds} <= {*_TYPES.values()}
        if not known or kinds[-1] != "integer" or len(kinds) > _MOST_COLUMNS:
            raise ValueError("its columns are not those of a release")
        return cls(names, kinds)


def _type_of(column: Column) -> str:
    """Return Frictionless' name of the type of a column's items."""
    found = _levels.kinds(column.items) - {type(None)} or {str}
    if len(found) > 1 or not found <= _TYPES.keys():
        names = sorted(kind.__name__ for kind in found)
        raise ValueError(f"a column of types {names} cannot be saved: give one type")
    return _TYPES[found.pop()]


# CSV


def _csv(levels: Mapping[str, Column], counts: NDArray[np.int64], columns: Columns) -> bytes:
    cells = []
    for each in levels.values():
        shown = _quoted(_each(_escaped, texts(each.items)))
        cells.append(_levels.taken(shown, each.places))
    cells.append(list(map(str, counts.tolist())))
    lines = "\r\n".join(map(",".join, zip(*cells, strict=True)))
    _check_rows(rows := _header(columns.names) + (f"{lines}\r\n" if lines else "").encode())
    return rows


def _quoted(texts: list[str]) -> list[str]:
    """Return texts as cells of a row of several; those of letters and digits need no quotes."""
    if not _MARK.search("".join(texts)):
        return texts
    return ['"' + text.replace('"', '""') + '"' if _MARK.search(text) else text for text in texts]


def _header(names: Sequence[str]) -> bytes:
    """Return the first row of a CSV file."""
    row = ",".join(_quoted([*map(_escaped, names)])) or '""'  # An empty line is no row.
    return f"{row}\r\n".encode()


def _check_rows(rows: bytes) -> None:
    """Refuse a row that is too long, before its cells are made."""
    check = _rows_of()
    for first in range(0, len(rows), _PIECE):
        check(memoryview(rows)[first : first + _PIECE])


def _rows_of() -> Callable[[bytes | memoryview], None]:
    """Return a call for the pieces of a CSV file in turn, which refuses a row that is too long."""
    # Whether the next piece begins in quotes, and how long its first row is already.
    inside, before = 0, 0

    def check(given: bytes | memoryview) -> None:
        nonlocal inside, before
        piece = np.frombuffer(given, np.uint8)
        ends = piece == ord("\n")
        quotes = piece == ord('"')
        if inside or quotes.any():
            # A line end in quotes is a part of a cell.
            quoted = np.bitwise_xor.accumulate(quotes.view(np.uint8)) ^ inside
            ends &= quoted == 0
            inside = int(quoted[-1])
        bounds = np.concatenate(([-before], np.flatnonzero(ends), [len(piece)]))
        if np.diff(bounds).max() > LONGEST_ROW:
            raise ValueError(f"a row of more than {LONGEST_ROW} bytes is not accepted")
        before = int(bounds[-1] - bounds[-2])

    return check


def texts(levels: Sequence[Any]) -> list[str]:
    """Return levels as a CSV file has them, before they are escaped."""
    return list(levels if _levels.kinds(levels) <= {str} else map(_text, levels))


def _each(change: Callable[[str], str], texts: list[str]) -> list[str]:
    """Return texts after a change of those that spreadsheets may run, or that look like these."""
    return [*map(change, texts)] if _SOME.search("\0".join(texts)) else texts


def _text(level: Any) -> str:
    if level is None:
        return ""
    if isinstance(level, bool):
        return str(level).lower()
    return level.isoformat() if isinstance(level, date) else str(level)


def _escaped(text: str) -> str:
    """Return text that spreadsheets do not run: with an apostrophe before parts that they would."""
    return text if _NUMBER.fullmatch(text) else _BEFORE.sub(r"\1'", text)


def _unescaped(cell: str) -> str:
    text = _MARKED.sub(r"\1", cell)
    if _escaped(text) != cell:
        raise ValueError("a cell starts like a formula")
    return text


def _of_text(rows: bytes, _: Columns) -> list[Any]:
    _check_rows(rows)
    levels, counts = core.columns(rows)[1:]
    coded = [
        Column(_each(_unescaped, items), np.frombuffer(places, np.int64), as_text=True)
        for items, places in levels
    ]
    return [*coded, np.frombuffer(counts, np.int64).copy()]


def _has_header(file: BinaryIO, names: Sequence[str]) -> bool:
    file.seek(0)
    return file.read(len(header := _header(names))) == header


def _converted(rows: bytes) -> str | None:
    header = rows.partition(b"\n")[0]
    if rows.startswith(b"\xef\xbb\xbf"):
        return "they begin with a byte order mark"
    if b";" in header and b"," not in header:
        return "semicolons part their cells"
    if re.search(rb"\.0*\r?\n", rows):
        return "counts are written like 1.0"
    if header != rows and not header.endswith(b"\r"):
        return "lines end with LF instead of CRLF, as git may convert them"
    return None


# Parquet


def _parquet(levels: Mapping[str, Column], counts: NDArray[np.int64], columns: Columns) -> bytes:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    schema = _schema(columns)
    arrays = []
    for (label, each), field in zip(levels.items(), schema, strict=False):
        try:
            items = pa.array(each.items, field.type)
        except (OverflowError, pa.ArrowException):
            items = None
        if items is None or items.to_pylist() != each.items:
            raise ValueError(f"levels of {label!r} do not fit into {field.type}: save them as CSV")
        arrays.append(items.take(pa.array(each.places)))
    buffer = io.BytesIO()
    # So the file is longer than its counts, and a reader knows how many it can have.
    with parquet.ParquetWriter(
        buffer,
        schema,
        compression="NONE",
        use_dictionary=list(levels),
        store_schema=False,
        write_statistics=False,
    ) as writer:
        if len(counts):
            writer.write_table(pa.table([*arrays, counts], schema), _GROUP)
    return buffer.getvalue()


def _schema(columns: Columns) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    types = {
        "string": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
    }
    return pa.schema(
        [pa.field(*each) for each in zip(columns.names, map(types.get, columns.types), strict=True)]
    )


def _of_parquet(whole: bytes, known: Columns) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    rows = _checked_rows(whole, len(known.names))
    # Only the text that occurs is made, however often it does.
    text = [name for name, kind in zip(*known, strict=True) if kind == "string"]
    file = parquet.ParquetFile(pa.BufferReader(whole), read_dictionary=text)
    wanted = [
        field.with_type(pa.dictionary(pa.int32(), field.type)) if field.name in text else field
        for field in _schema(known)
    ]
    # Each further fact of a damaged footer that Arrow is asked for may end the process.
    if file.schema_arrow != pa.schema(wanted):
        raise ValueError(_OTHER_COLUMNS)
    table = file.read(use_threads=False)
    *levels, last = table.columns
    if last.null_count or table.num_rows != rows:
        raise ValueError("it lacks counts")
    columns, counts = [], last.to_numpy()
    for each in levels:
        coded = each if pa.types.is_dictionary(each.type) else pc.dictionary_encode(each)
        array = coded.combine_chunks()
        items = [*array.dictionary.to_pylist(), None]
        columns.append(Column(items, array.indices.fill_null(len(items) - 1).to_numpy()))
    return [*columns, counts]


def _has_footer(file: BinaryIO, _: Sequence[str]) -> bool:
    return bool(_footer.found(file, _FOOTER))


def _checked_rows(whole: bytes, width: int) -> int:
    """Return the number of rows that a footer states; refuse one of more than the file can hold.

    The file is its columns one after the other, none twice, without compression.
    """
    footer = _footer.found(io.BytesIO(whole), _FOOTER)
    rows, place = 0, 4
    for n, group in enumerate(_footer.groups(footer, alone=True)):
        rows += group.rows
        if len(group.chunks) != width or n > rows // 1000:
            raise ValueError(_OTHER_COLUMNS)
        for each in group.chunks:
            if each.codec != "NONE" or each.values != group.rows:
                raise ValueError("its columns are compressed, or of another length")
            if each.start != place or each.size < 0:
                raise ValueError("its columns are not one after the other")
            place += each.size
    if place != len(whole) - len(footer) - 8 or not 0 <= 8 * rows <= len(whole):
        raise ValueError(f"{many(rows, 'row')} in {len(whole)} bytes are not accepted")
    return rows


# The table


class Format(NamedTuple):
    """A format of files."""

    #: Returns the bytes of columns of these names and types; the last one has the counts.
    write: Callable[[Mapping[str, Column], NDArray[np.int64], Columns], bytes]
    #: Returns the columns of these names and types in the bytes of a file, or raises an error.
    read: Callable[[bytes, Columns], list[Any]]
    #: Returns whether a file can have columns of these names, without reading it to its end.
    fits: Callable[[BinaryIO, Sequence[str]], bool]
    #: Returns a call for the pieces of a file in turn, which refuses what no file of rows has.
    pieces: Callable[[], Callable[[bytes], None]] = lambda: lambda _: None
    #: Returns how a program changed the bytes of which these are the first; None if unknown.
    edited: Callable[[bytes], str | None] = lambda _: None
    #: The library that it needs.
    needs: str | None = None
    #: The ending of the file that a page of this format holds. A page is written, and not read.
    holds: str | None = None


_CSV = Format(_csv, _of_text, _has_header, _rows_of, _converted)
#: The formats by the ending of their files.
FORMATS = {
    ".csv": _CSV,
    ".parquet": Format(_parquet, _of_parquet, _has_footer, needs="pyarrow"),
    ".html": _CSV._replace(holds=".csv"),
}


def of(name: str, path: Any, *, to_read: bool = False) -> tuple[Path, Format]:
    """Return a path, given as the parameter of this name, and its format, whose library is there.

    An ending that cannot be written, or read, is refused.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(parameters.foreign(name, path, "a str or a path"))
    target = Path(path)
    found = FORMATS.get(target.suffix)
    if found is None or (to_read and found.holds):
        *ends, last = [end for end, each in FORMATS.items() if not (to_read and each.holds)]
        wanted = f"a name that ends in {', '.join(ends)} or {last} (pages cannot be read back)"
        raise ValueError(parameters.refusal(name, str(path), wanted))
    if found.needs:
        with installed_by(found.needs):
            import_module(found.needs)
    return target, found
