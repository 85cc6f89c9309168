"""Published rows in a file, and a description with their digest beside it (docs/format.md).

This module knows no design and no noise. Files appear whole or not at all. A file to read may come
from anybody. Its size and how it begins are compared with its description before the rest is read,
its digest before it is parsed, and sizes and types before columns are made. Any fault of a file is
a ValueError that names it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp import _foreign, _new_file
from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp._kernel import core
from geomdp._notebook import many
from geomdp.tables import _footer

#: The most bytes of a description and of rows, and the most values of a description.
_MOST_TEXT, _MOST_ROWS, _MOST_VALUES = 2**26, 2**31, 2**22
#: A longer description is written without indents, which take Python long.
_SHORT = 2**16
#: The most bytes of a row of a CSV file, whose cells take more; and how many are looked at at once.
_LONGEST_ROW, _PIECE = 2**20, 2**22
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
#: The most characters of an exact number, and its form.
_LONGEST, _FRACTION = 8600, re.compile(r"[0-9]+(/0*[1-9][0-9]*)?")
#: The start of text that spreadsheets run, behind any apostrophes; numbers start alike.
_RUN = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


_NO_DESCRIPTION = "it has no description of a release by geomdp"
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
        self.items: list[Any] = [items[place] for place in order.tolist()]
        self.places: NDArray[np.int64] = new[codes]
        self._as_text = as_text
        if len(set(self.items)) < len(self.items):
            raise ValueError("items of a column repeat")

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

    def among(self, levels: Sequence[Any]) -> NDArray[np.int64]:
        """Return for each row the place of its value among these, or raise a ValueError."""
        shown: Callable[[Any], Any] = _text if self._as_text else lambda level: level
        known = {shown(level): place for place, level in enumerate(levels)}
        try:
            found = [known[item] for item in self.items]
        except (LookupError, TypeError):
            raise ValueError("it has other rows than its description") from None
        return np.array(found, np.int64)[self.places]


class Contents(NamedTuple):
    """The contents of a file."""

    #: The object "geomdp" of the description: JSON of any form.
    facts: dict[str, Any]
    #: The names of the columns.
    names: list[str]
    #: The columns of levels, then the noisy counts.
    columns: list[Any]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The noisy counts: the last column."""
        counts: NDArray[np.int64] = self.columns[-1]
        return counts


# Writing


def write(
    path: Any,
    columns: Mapping[str, Sequence[Any]],
    facts: Mapping[str, Any],
    *,
    overwrite: bool,
    page: Callable[[bytes, bytes], bytes] | None = None,
) -> None:
    """Write columns, the last one with noisy counts, and their description.

    `page` makes a page of the bytes of a CSV file and of its description. If the process is killed,
    a reader finds either the files from before or all of the new ones.
    """
    parameters.check_bool("overwrite", overwrite)
    target = _free("path", path, overwrite=overwrite)
    whole, text = _encoded(target, columns, facts, page)
    if text is not None:
        _write_both(str(target), whole, text, overwrite=overwrite)
        return
    with _new_file.new_file(str(target), overwrite=overwrite) as file:
        file.write(whole)


def rehearse(
    name: str,
    path: Any,
    columns: Mapping[str, Sequence[Any]],
    facts: Mapping[str, Any],
    page: Callable[[bytes, bytes], bytes],
) -> None:
    """Refuse all that :func:`write` would refuse, and write nothing.

    The path is a parameter of this name. Columns have all levels, and any counts.
    """
    target = _free(name, path)
    _new_file.probe(str(target))
    _encoded(target, columns, facts, page)


def _free(name: str, path: Any, *, overwrite: bool = False) -> Path:
    """Return the path of a file to write, unless its name is taken or of no kind of file."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(parameters.foreign(name, path, "a str or a path"))
    target = Path(path)
    if target.suffix not in (".csv", ".parquet", ".html"):
        raise _other_end(target, name)
    for each in (str(target), _beside(str(target)))[: 1 + (target.suffix != ".html")]:
        try:
            os.lstat(each)
        except FileNotFoundError:
            continue
        except ValueError:
            wanted = "a path that this system can hold"
            raise ValueError(parameters.refusal(name, str(path), wanted)) from None
        if not overwrite:
            raise _new_file.taken(each)
    return target


def _encoded(
    target: Path,
    columns: Mapping[str, Sequence[Any]],
    facts: Mapping[str, Any],
    page: Callable[[bytes, bytes], bytes] | None,
) -> tuple[bytes, bytes | None]:
    """Return the bytes of a file, and of the description beside it if there is one."""
    *levels, (name, given) = columns.items()
    counts = np.asarray(given).astype(np.int64, casting="safe")
    made = {
        label: values if isinstance(values, Column) else Column.of(values)
        for label, values in levels
    }
    fields = [{"name": label, "type": type_of(each.items)} for label, each in made.items()]
    about = "noisy count; it may be negative"
    description: dict[str, Any] = {
        "name": "".join(x if x.isalnum() and x.isascii() else "-" for x in target.stem).lower(),
        "path": target.name,
        "profile": "tabular-data-resource",
        "encoding": "utf-8",
        "schema": {
            "fields": [*fields, {"name": name, "type": "integer", "description": about}],
            "primaryKey": list(made),
            "missingValues": [""],
        },
    }
    if target.suffix == ".parquet":
        rows = _parquet(made, counts, description)
    else:
        rows = _csv(made, name, counts)
        description["path"] = f"{target.stem}.csv"
    if len(rows) > _MOST_ROWS:
        raise ValueError(f"a file of {len(rows)} bytes is not accepted: at most {_MOST_ROWS}")
    text = _json(description | {"bytes": len(rows), "hash": _digest(rows), "geomdp": facts})
    if page is None or target.suffix != ".html":
        return rows, text
    return page(rows, text), None


def type_of(items: Sequence[Any]) -> str:
    """Return Frictionless' name of the type of items."""
    found = {type(item) for item in items if item is not None} or {str}
    if len(found) > 1 or not found <= _TYPES.keys():
        names = sorted(kind.__name__ for kind in found)
        raise ValueError(f"a column of types {names} cannot be saved: give one type")
    return _TYPES[found.pop()]


def _write_both(path: str, rows: bytes, text: bytes, *, overwrite: bool) -> None:
    """Write rows and, beside them, their description.

    The rows take their name in one step. The description waits under a name that a reader finds,
    until it can take its own.
    """
    waiting = _new_file.hidden(path, _waiting(path), ".json")

    @contextmanager
    def described() -> Iterator[None]:
        with _new_file.new_file(waiting) as file:
            file.write(text)
        try:
            yield
        except OSError:
            os.unlink(waiting)
            raise
        os.replace(waiting, _beside(path))

    with _new_file.new_file(path, overwrite=overwrite, placing=described) as file:
        file.write(rows)
    _new_file.sync_folder(path)


def _beside(path: str) -> str:
    return path + ".json"


def _waiting(path: str) -> str:
    """Return the start of the names of descriptions that wait for their own."""
    return f"geomdp-{hashlib.sha256(os.path.basename(path).encode()).hexdigest()[:16]}"


def _json(description: Mapping[str, Any]) -> bytes:
    text = json.dumps(description, ensure_ascii=False, allow_nan=False)
    if len(text) < _SHORT:
        text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False)
    _check_size(whole := f"{text}\n".encode())
    return whole


def _csv(levels: Mapping[str, Column], name: str, counts: NDArray[np.int64]) -> bytes:
    text = io.StringIO(newline="")
    cells = []
    for each in levels.values():
        shown = [_escaped(_text(item)) for item in each.items]
        cells.append(map(shown.__getitem__, each.places.tolist()))
    csv.writer(text).writerows(zip(*cells, counts.tolist(), strict=True))
    _check_rows(rows := _header([*levels, name]) + text.getvalue().encode())
    return rows


def _header(names: Sequence[str]) -> bytes:
    """Return the first row of a CSV file."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow(map(_escaped, names))
    return text.getvalue().encode()


def _check_rows(rows: bytes) -> None:
    """Refuse a row that is too long, before its cells are made."""
    inside, start = 0, 0
    for first in range(0, len(rows), _PIECE):
        piece = np.frombuffer(rows, np.uint8, min(_PIECE, len(rows) - first), first)
        ends = piece == ord("\n")
        quotes = piece == ord('"')
        if inside or quotes.any():
            # A line end in quotes is a part of a cell.
            quoted = np.bitwise_xor.accumulate(quotes.view(np.uint8)) ^ inside
            ends &= quoted == 0
            inside = int(quoted[-1])
        bounds = np.concatenate(([start], first + np.flatnonzero(ends), [first + len(piece)]))
        if np.diff(bounds).max() > _LONGEST_ROW:
            raise ValueError(f"a row of more than {_LONGEST_ROW} bytes is not accepted")
        start = int(bounds[-2])


def _text(level: Any) -> str:
    if level is None:
        return ""
    if isinstance(level, bool):
        return str(level).lower()
    return level.isoformat() if isinstance(level, date) else str(level)


def _escaped(text: str) -> str:
    """Return text that spreadsheets do not run: with an apostrophe before it where they would."""
    runs = _RUN.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if runs else text


def _unescaped(cell: str) -> str:
    text = cell[1:] if cell.startswith("'") and _RUN.match(cell) else cell
    if _escaped(text) != cell:
        raise ValueError("a cell starts like a formula")
    return text


def _parquet(
    levels: Mapping[str, Column], counts: NDArray[np.int64], description: dict[str, Any]
) -> bytes:
    with installed_by("geomdp[parquet]"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    schema = _schema(*_fields(description))
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


def _schema(names: Sequence[str], kinds: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    types = {
        "string": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
    }
    return pa.schema([pa.field(*each) for each in zip(names, map(types.get, kinds), strict=True)])


def _digest(rows: bytes) -> str:
    return f"sha256:{hashlib.sha256(rows).hexdigest()}"


# Reading


def read(path: Any) -> Contents:
    """Return the contents of a file that :func:`write` wrote.

    An error of the operating system stays one. Any other fault is a ValueError.
    """
    source = Path(path)
    if source.suffix not in (".csv", ".parquet"):
        raise _other_end(source)
    if source.suffix == ".parquet":
        with installed_by("geomdp[parquet]"):
            import pyarrow.parquet  # noqa: F401, PLC0415
    with damage(source):
        description, rows = _found(source)
        parse = _of_text if source.suffix == ".csv" else _of_parquet
        return parse(description, rows)


@contextmanager
def damage(path: Any) -> Iterator[None]:
    """Raise a ValueError that names the file for any fault of it."""
    try:
        yield
    except Exception as error:
        # Arrow's errors of this kind have no number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{Path(path).name} cannot be read: {_foreign.said(error)}") from None


def fraction(text: Any) -> Fraction:
    """Return a number that a description states: an integer or a fraction, not negative."""
    if not isinstance(text, str) or len(text) > _LONGEST or not _FRACTION.fullmatch(text):
        shown = parameters.given(text)
        raise ValueError(f'a number {shown} is not accepted: give an integer or a fraction, "1/10"')
    return Fraction(text)


def _found(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the description of a file and its bytes, which have the digest that it states."""
    for _ in range(3):  # A save may come between the reads of the two files.
        with _opened(path) as file:
            described = False
            for descriptions in (_stated, _left):
                known = descriptions(path)
                described |= bool(known)
                fit = [each for each in known if _fits(each, file, path.suffix)]
                if fit:
                    digest = _digest(rows := _whole(file, "a file", _MOST_ROWS))
                    fit = [each for each in fit if each.get("hash") == digest]
                # Two: of one save that was killed early, and of another.
                if len(fit) == 1:
                    return fit[0], rows
            file.seek(0)
            start = file.read(_LONGEST_ROW)
    if not described:
        raise ValueError(
            f"its description {_beside(path.name)} is not beside it: get it too. save, geomdp "
            "count and geomdp release --describe write one, and geomdp release alone does not"
        )
    raise ValueError(_edited(start, path.suffix))


def _stated(path: Path) -> list[dict[str, Any]]:
    """Return the description beside a file, if there is one."""
    try:
        with _opened(Path(_beside(str(path)))) as file:
            return [_parsed(_whole(file, "a description", _MOST_TEXT))]
    except FileNotFoundError:
        return []


def _left(path: Path) -> list[dict[str, Any]]:
    """Return the descriptions that killed saves of a file have left, each once."""
    left = {}
    for each in path.parent.glob(f".{_waiting(str(path))}-*.json"):
        with suppress(Exception), _opened(each) as file:
            text = _whole(file, "a description", _MOST_TEXT)
            left[text] = _parsed(text)
    return list(left.values())


def _opened(path: Path) -> io.BufferedReader:
    return io.BufferedReader(_foreign.opened(path, "rb", ValueError("it is no file")))


def _whole(file: BinaryIO, what: str, most: int) -> bytes:
    """Return the bytes of a file, if there are no more than this."""
    if (size := file.seek(0, io.SEEK_END)) > most:
        raise ValueError(f"{what} of {size} bytes is not accepted: at most {most}")
    file.seek(0)
    return file.read(size)


def _fits(description: Mapping[str, Any], file: BinaryIO, end: str) -> bool:
    """Return whether a description can be of a file, by its size and by how it begins."""
    names, _ = _fields(description)
    if file.seek(0, io.SEEK_END) != description.get("bytes"):
        return False
    if end == ".parquet":
        return bool(_footer.found(file, _FOOTER))
    file.seek(0)
    return file.read(len(header := _header(names))) == header


def _edited(rows: bytes, end: str) -> str:
    """Return why a file, which begins with these bytes, does not fit its description."""
    header = rows.partition(b"\n")[0]
    if end == ".parquet":
        why = "they were edited, or are of another release"
    elif rows.startswith(b"\xef\xbb\xbf"):
        why = "they begin with a byte order mark"
    elif b";" in header and b"," not in header:
        why = "semicolons part their cells"
    elif re.search(rb"\.0*\r?\n", rows):
        why = "counts are written like 1.0"
    elif header != rows and not header.endswith(b"\r"):
        why = "lines end with LF instead of CRLF, as git may convert them"
    else:
        why = "they were edited, or are of another release"
    return (
        f"its rows are not those of its description: {why}. Get both files as they were published, "
        "and save changes to them under another name"
    )


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        _check_size(text)
        description = json.loads(
            text.decode(),
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its description is damaged: {error}") from None
    if not isinstance(description, dict) or not isinstance(description.get("geomdp"), dict):
        raise ValueError(_NO_DESCRIPTION)
    return description


def _check_size(text: bytes) -> None:
    values = sum(map(text.count, (b",", b"[", b"{")))
    if len(text) > _MOST_TEXT or values > _MOST_VALUES:
        raise ValueError(
            f"a description of {len(text)} bytes and {values} values is not accepted: "
            f"at most {_MOST_TEXT} and {_MOST_VALUES}"
        )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key repeats")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("a number is beyond float64")
    return number


def _fields(description: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names and types of the columns."""
    fields = description["schema"]["fields"]
    names, kinds = [each["name"] for each in fields], [each["type"] for each in fields]
    if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
        raise ValueError("names of columns repeat, or are not text")
    if not {*kinds} <= {*_TYPES.values()} or kinds[-1] != "integer" or len(kinds) > _MOST_COLUMNS:
        raise ValueError("its columns are not those of a release")
    return names, kinds


def _of_text(description: dict[str, Any], rows: bytes) -> Contents:
    names, _ = _fields(description)
    _check_rows(rows)
    _, levels, counts = core.columns(rows)
    columns: list[Any] = [
        Column([*map(_unescaped, items)], np.frombuffer(places, np.int64), as_text=True)
        for items, places in levels
    ]
    columns.append(np.frombuffer(counts, np.int64).copy())
    return Contents(description["geomdp"], names, columns)


def _of_parquet(description: dict[str, Any], whole: bytes) -> Contents:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    names, kinds = _fields(description)
    rows = _checked_rows(whole, len(names))
    # Only the text that occurs is made, however often it does.
    text = [name for name, kind in zip(names, kinds, strict=True) if kind == "string"]
    file = parquet.ParquetFile(pa.BufferReader(whole), read_dictionary=text)
    wanted = [
        field.with_type(pa.dictionary(pa.int32(), field.type)) if field.name in text else field
        for field in _schema(names, kinds)
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
    return Contents(description["geomdp"], names, [*columns, counts])


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


def _other_end(path: Path, name: str = "path") -> ValueError:
    wanted = "a name that ends in .csv or .parquet; .html is written, and not read"
    return ValueError(parameters.refusal(name, str(path), wanted))
