"""Published rows in a file: the columns, and a description with their digest (docs/format.md).

This module knows no design and no noise. Files appear whole or not at all. A file to read may come
from anybody: sizes, types and digests are checked before columns are made, and any fault of a file
is a ValueError that names it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp import _core, _new_file
from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp._notebook import many

#: The start of a Parquet file's hash, and the rest while it is computed.
_WHOLE, _ZEROS = "geomdp-parquet-sha256:", "0" * 64
#: The key of the description in a Parquet file.
KEY = b"geomdp"
#: The most bytes of a description and of rows, and the most values of a description.
_MOST_TEXT, _MOST_ROWS, _MOST_VALUES = 2**26, 2**33, 2**22
#: A longer description is written without indents, which take Python long.
_SHORT = 2**16
#: The most rows of a Parquet file, and the most for each of its bytes.
_ROWS, _ROWS_A_BYTE = 2**24, 64
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
_EDITED = "its rows are not those of its description: they were edited, or are of another release"
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
    target = Path(path)
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
        whole = _parquet(made, counts, description, facts)
    elif target.suffix == ".csv" or (page and target.suffix == ".html"):
        rows = _csv(made, name, counts)
        description |= {"path": f"{target.stem}.csv", "bytes": len(rows), "hash": _digest(rows)}
        text = _json(description | {"geomdp": facts})
        if page is None or target.suffix == ".csv":
            _write_both(str(target), rows, text, overwrite=overwrite)
            return
        whole = page(rows, text)
    else:
        raise _other_end(target)
    with _new_file.new_file(str(target), overwrite=overwrite) as file:
        file.write(whole)


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
    for each in (path, _beside(path)):
        if not overwrite and os.path.lexists(each):
            raise _new_file.taken(each)
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
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(map(_escaped, [*levels, name]))
    cells = []
    for each in levels.values():
        shown = [_escaped(_text(item)) for item in each.items]
        cells.append(map(shown.__getitem__, each.places.tolist()))
    writer.writerows(zip(*cells, counts.tolist(), strict=True))
    return text.getvalue().encode()


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
    levels: Mapping[str, Column],
    counts: NDArray[np.int64],
    description: dict[str, Any],
    facts: Mapping[str, Any],
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
    # The hash is last, since levels may have any text.
    text = _json(description | {"geomdp": facts, "hash": _WHOLE + _ZEROS})
    table = pa.table([*arrays, counts], schema)
    for small in (True, False):
        buffer = io.BytesIO()
        # Without compression a page is no longer than the file; types are those of Parquet alone.
        with parquet.ParquetWriter(
            buffer, schema, compression="NONE", use_dictionary=small, store_schema=False
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({KEY: text})
        if len(counts) <= _most_rows(whole := buffer.getvalue()):
            break
    place, digest = _hash_of_whole(whole)
    return whole[:place] + digest.encode() + whole[place + len(digest) :]


def _hash_of_whole(whole: bytes) -> tuple[int, str]:
    """Return where a Parquet file states its hash, and the hash: with zeros in that place."""
    place = whole.rfind(_WHOLE.encode()) + len(_WHOLE)
    zeros = whole[:place] + _ZEROS.encode() + whole[place + len(_ZEROS) :]
    return place, hashlib.sha256(zeros).hexdigest()


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


def _most_rows(whole: bytes) -> int:
    return max(_ROWS, _ROWS_A_BYTE * len(whole))


def _digest(rows: bytes) -> str:
    return f"sha256:{hashlib.sha256(rows).hexdigest()}"


# Reading


def read(path: Any) -> Contents:
    """Return the contents of a file that :func:`write` wrote.

    An error of the operating system stays one. Any other fault is a ValueError.
    """
    source = Path(path)
    if source.suffix == ".csv":
        return _read_csv(source)
    if source.suffix != ".parquet":
        raise _other_end(source)
    with installed_by("geomdp[parquet]"):
        import pyarrow.parquet  # noqa: F401, PLC0415
    whole = _bytes(source, _MOST_ROWS)
    with damage(source):
        return _read_parquet(whole)


@contextmanager
def damage(path: Any) -> Iterator[None]:
    """Raise a ValueError that names the file for any fault of it."""
    try:
        yield
    except Exception as error:
        why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if len(why) > 500:
            why = f"{why[:500]}..."
        raise ValueError(f"{Path(path).name} cannot be read: {why}") from None


def fraction(text: Any) -> Fraction:
    """Return a number that a description states: an integer or a fraction, not negative."""
    if not isinstance(text, str) or len(text) > _LONGEST or not _FRACTION.fullmatch(text):
        shown = parameters.given(text)
        raise ValueError(f'a number {shown} is not accepted: give an integer or a fraction, "1/10"')
    return Fraction(text)


def _read_csv(path: Path) -> Contents:
    # A save may come between the reads of the two files.
    for _ in range(3):
        rows = _bytes(path, _MOST_ROWS)
        text = None
        with suppress(FileNotFoundError):
            text = _bytes(Path(_beside(str(path))), _MOST_TEXT)
        with damage(path):
            description = None if text is None else _parsed(text)
            if description is None or description.get("hash") != _digest(rows):
                description = _left(path, _digest(rows))
            if description is not None:
                return _of_text(description, rows)
    with damage(path):
        if text is None:
            raise ValueError(
                f"its description {_beside(path.name)} is not beside it: get it too. save, geomdp "
                "count and geomdp release --describe write one, and geomdp release alone does not"
            )
        raise ValueError(_edited(rows))


def _left(path: Path, digest: str) -> dict[str, Any] | None:
    """Return the description of these rows that a killed save has left, if there is one."""
    found = {}
    for each in path.parent.glob(f".{_waiting(str(path))}-*.json"):
        with suppress(Exception):
            text = _bytes(each, _MOST_TEXT)
            if (description := _parsed(text)).get("hash") == digest:
                found[text] = description
    # Two descriptions: of one save that was killed early, and of another.
    return found.popitem()[1] if len(found) == 1 else None


def _edited(rows: bytes) -> str:
    """Return why rows are not those of their description."""
    header = rows.partition(b"\n")[0]
    if rows.startswith(b"\xef\xbb\xbf"):
        why = "they begin with a byte order mark"
    elif b";" in header and b"," not in header:
        why = "semicolons part their cells"
    elif re.search(rb"\.0*\r?\n", rows):
        why = "counts are written like 1.0"
    elif not header.endswith(b"\r"):
        why = "lines end with LF instead of CRLF, as git may convert them"
    else:
        why = "they were edited, or are of another release"
    return (
        f"its rows are not those of its description: {why}. Get both files as they were published, "
        "and save changes to them under another name"
    )


def _parsed(text: bytes) -> dict[str, Any]:
    if not text:
        raise ValueError(_NO_DESCRIPTION)
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


def _fields(description: dict[str, Any]) -> tuple[list[str], list[str]]:
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
    header, levels, counts = _core.columns(rows)
    if [*map(_unescaped, header)] != names:
        raise ValueError(_OTHER_COLUMNS)
    columns: list[Any] = [
        Column([*map(_unescaped, items)], np.frombuffer(places, np.int64), as_text=True)
        for items, places in levels
    ]
    columns.append(np.frombuffer(counts, np.int64).copy())
    return Contents(description["geomdp"], names, columns)


def _read_parquet(whole: bytes) -> Contents:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    # Arrow may end the process on a damaged file, so it gets none.
    place, digest = _hash_of_whole(whole)
    if whole[place : place + len(digest)] != digest.encode():
        raise ValueError(_NO_DESCRIPTION if _WHOLE.encode() not in whole else _EDITED)
    metadata = parquet.read_metadata(pa.BufferReader(whole))
    stated = metadata.metadata or {}
    description = _parsed(stated.get(KEY, b""))
    if description.get("hash") != _WHOLE + digest:
        raise ValueError(_EDITED)
    names, kinds = _fields(description)
    _check_sizes(metadata, len(names), whole)
    # Only the text that occurs is made, however often it does.
    text = [name for name, kind in zip(names, kinds, strict=True) if kind == "string"]
    file = parquet.ParquetFile(pa.BufferReader(whole), read_dictionary=text)
    wanted = [
        field.with_type(pa.dictionary(pa.int32(), field.type)) if field.name in text else field
        for field in _schema(names, kinds)
    ]
    # The types of Arrow, if a file states them, could be any.
    if stated.keys() != {KEY} or file.schema_arrow.remove_metadata() != pa.schema(wanted):
        raise ValueError(_OTHER_COLUMNS)
    table = file.read(use_threads=False)
    *levels, last = table.columns
    if last.null_count or table.num_rows != metadata.num_rows:
        raise ValueError("it lacks counts")
    columns, counts = [], last.to_numpy()
    for each in levels:
        coded = each if pa.types.is_dictionary(each.type) else pc.dictionary_encode(each)
        array = coded.combine_chunks()
        items = [*array.dictionary.to_pylist(), None]
        columns.append(Column(items, array.indices.fill_null(len(items) - 1).to_numpy()))
    return Contents(description["geomdp"], names, [*columns, counts])


def _check_sizes(metadata: Any, width: int, whole: bytes) -> None:
    """Refuse a file whose columns would be much larger than it is."""
    rows = 0
    if metadata.num_columns != width or metadata.num_row_groups > 1 + metadata.num_rows // 1000:
        raise ValueError(_OTHER_COLUMNS)
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        rows += group.num_rows
        for column in map(group.column, range(width)):
            if column.compression != "UNCOMPRESSED" or column.num_values != group.num_rows:
                raise ValueError("its columns are compressed, or of another length")
    if rows != metadata.num_rows or rows > _most_rows(whole):
        raise ValueError(f"{many(rows, 'row')} in {len(whole)} bytes are not accepted")


def _bytes(path: Path, most: int) -> bytes:
    """Return the bytes of a file, if there are no more than this."""
    found = path.stat()
    with damage(path):
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no file")
        if found.st_size > most:
            raise ValueError(f"{found.st_size} bytes are not accepted: at most {most}")
    with path.open("rb") as file:
        return file.read(most)


def _other_end(path: Path) -> ValueError:
    wanted = "a name that ends in .csv or .parquet; .html is written, and not read"
    return ValueError(parameters.refusal("path", str(path), wanted))
