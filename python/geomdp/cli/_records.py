"""Records of a CSV file, counted by :class:`geomdp.tables.Design`."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from geomdp.cli._delimited import DataError
from geomdp.tables._columns import ids, native
from geomdp.tables._count.counting import columns_of
from geomdp.tables._design import Design
from geomdp.tables._facts import naming
from geomdp.tables._facts.hierarchy import Hierarchy
from geomdp.tables._facts.rules import Words
from geomdp.tables._release.table import Table

__all__ = ["Design", "Words", "combinations", "hierarchy", "table"]

_COUNT = re.compile(r" *[+-]?[0-9]{1,40} *")


def table(
    source: BinaryIO,
    design: Callable[[Any], Design],
    levels: Mapping[Any, Any],
    *,
    delimiter: str = ",",
    counts: str | None = None,
    not_totals: Sequence[str] | None = None,
) -> Table:
    """Return the exact counts of the records of a CSV file, or of those that a column counts.

    All other cells are text. Without levels, they are those of the other columns, in the order of
    the file: its rows are then public.
    """
    columns = _columns(source, delimiter)
    made = design(levels or {x: [*dict.fromkeys(columns[x])] for x in columns if x != counts})
    data: dict[str, Any] = {}
    for name in columns_of(made, counts, list(columns)):
        if name not in columns:
            # Do not show the header: without one, the first row holds records.
            raise DataError(
                f"line 1: column {name!r} must occur exactly once in the header: "
                f"is {delimiter!r} the delimiter?"
            )
        data[name] = columns[name]
    for name in ids.columns(made.individual):
        if "" in data[name]:
            raise DataError(f"column {name!r} has empty cells: give every record an id")
    if counts is not None:
        data[counts] = [_count(counts, each) for each in data[counts]]
    return made.count(native.made(data), counts=counts, not_totals=not_totals)


def hierarchy(
    source: BinaryIO, *, delimiter: str, root: str | None, leaves_only: bool
) -> tuple[tuple[str, ...], Hierarchy]:
    """Return the tree of a CSV file with a row for each path, and the names of its columns.

    Empty cells make a shorter path. A column ``label`` has the labels of nodes: then
    inner nodes may have rows too, which only say their labels.
    """
    columns = _columns(source, delimiter)
    given = columns.pop("label", None)
    if not columns:
        raise DataError(f"line 1: there is no column of names: is {delimiter!r} the delimiter?")
    rows = [naming.path(row) for row in zip(*columns.values(), strict=True)]
    labels = {"/".join(row): text for row, text in zip(rows, given or (), strict=False) if text}
    inner = {row[:size] for row in rows for size in range(1, len(row))} if given else set()
    leaves = [row for row in rows if row not in inner]
    found = Hierarchy.from_paths(leaves, root=root, leaves_only=leaves_only, labels=labels)
    return tuple(columns), found


def combinations(
    source: BinaryIO, *, delimiter: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the names of the columns of a CSV file, and its rows."""
    columns = _columns(source, delimiter)
    return tuple(columns), [*zip(*columns.values(), strict=True)]


def _columns(source: BinaryIO, delimiter: str) -> dict[str, list[str]]:
    """Return the cells of each column."""
    text = io.TextIOWrapper(source, "utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        rows = [each for each in reader if len(each) == len(header) or _refuse(reader.line_num)]
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"after line {reader.line_num}: it is not in UTF-8") from None
    finally:
        text.detach()
    once = [name for name in header if header.count(name) == 1]
    return {name: [row[header.index(name)] for row in rows] for name in once}


def _refuse(line: int) -> bool:
    raise DataError(f"line {line}: it has another number of cells than the header")


def _count(name: str, cell: str) -> int:
    if not _COUNT.fullmatch(cell) or abs(int(cell)) >= 2**63:
        raise DataError(f"column {name!r} has a cell that is no integer within int64")
    return int(cell)
