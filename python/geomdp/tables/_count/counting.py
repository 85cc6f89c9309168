"""From records to exact counts: contributions bounded, cells counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import identity, parameters
from geomdp._inputs.arrays import DTYPES
from geomdp._inputs.columns import arrow, column, integers, lazy, names, narwhals, only
from geomdp.tables._columns import ids
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns.native import (
    Library,
    by_codes,
    categories,
    check_levels,
    items_of,
    joined,
    labels,
    library_of,
    plain_integers,
    refusing_types,
    shown_type,
)
from geomdp.tables._count.contributions import drawn, kept_of, sorted_by, spent, starts
from geomdp.tables._engines import CLUSTERS
from geomdp.tables._facts import layout
from geomdp.tables._facts.exact_sums import check_countable, numbered, packed, rows
from geomdp.tables._release.table import Table

if TYPE_CHECKING:
    from geomdp.tables._facts.layout import Layout

_Ints: TypeAlias = NDArray[np.int64]
#: What a design counts. Many have counts already, as a mapping or a Series.
_WANTED = ", in which a column that counts= names may have numbers of records"


#: Words by which crosstabs call their totals, in part or in whole.
_TOTAL_WORDS = (
    "all",
    "any",
    "both",
    "combined",
    "ensemble",
    "everyone",
    "gesamt",
    "insgesamt",
    "overall",
    "subtotal",
    "sum",
    "suma",
    "summe",
    "sums",
    "total",
    "totale",
    "totals",
)
_TOTALS = re.compile("|".join(_TOTAL_WORDS), re.IGNORECASE)
#: Those that a rule may have among its words.
_TOTALS_LISTED = [x for word in _TOTAL_WORDS for x in (word, word.capitalize(), word.upper())]


def count(design: Layout, data: Any, counts: Any = None, not_totals: Any = None) -> Table:
    """Return the exact counts; :meth:`geomdp.tables.Design.count` has the details."""
    stated = [] if not_totals is None else _levels.checked("not_totals", not_totals)
    if unknown := [x for x in stated if not any(face.has(x) for face in design._axes.faces)]:
        raise ValueError(
            f"not_totals have {parameters.shown(unknown[0])}: give levels of the table"
        )
    return table(*tally(design, data, counts, stated))


def table(design: Layout, library: Library | None, occupied: tuple[_Ints, _Ints]) -> Table:
    """Return the table of a count of records, with an id if another count keeps other records.

    The id follows from the design and from nothing in the data.
    """
    return Table(design, library, occupied, identity.fresh() if layout.cut(design) else None)


def tally(
    design: Layout, data: Any, counts: Any, not_totals: Sequence[Any] = ()
) -> tuple[Layout, Library, tuple[_Ints, _Ints]]:
    """Return the design, the library of the data, and rows of the table with their counts.

    `counts` are numbers of records; or, of a design of sums, values of records within its bounds.
    """
    if counts is not None and design.values is None:
        _check_no_totals(design, counts, not_totals)
    design, library, people, cells, records = _read(design, data, counts, design.values)
    if people is not None:
        cells, records = _bounded(design, people, cells, records)
    return design, library, rows(design, cells, records)


def tally_both(
    design: Layout, data: Any, column: Any, bounds: tuple[int, int]
) -> tuple[Library, tuple[_Ints, _Ints], tuple[_Ints, _Ints]]:
    """Return the library of the data, and rows with their counts and with sums of a column.

    Both are about the same records: those with a value, of each individual as many as counted.
    """
    _, library, people, cells, values = _read(design, data, column, bounds, alone=True)
    if people is not None:
        cells, values = _drawn(design, people, cells, values)
    return (
        library,
        rows(design, cells, np.ones(len(cells), np.int64)),
        rows(design, cells, values),
    )


def _read(
    design: Layout, data: Any, counts: Any, bounds: tuple[int, int] | None, *, alone: bool = False
) -> tuple[Layout, Library, _Ints | None, _Ints, _Ints]:
    """Return the design, the library of the data, and :func:`groups`, after all refusals."""
    check_here(data)
    check_countable(design)
    if counts is not None and bounds is None and design.individual is not None:
        raise ValueError(
            f"counts {parameters.given(counts)} are not accepted with individuals, which counts "
            "do not tell apart: give the records, or a design without an individual"
        )
    return groups(design, data, counts, bounds, alone=alone)


def check_here(data: Any) -> None:
    """Refuse data whose records are on a cluster."""
    root = type(data).__module__.partition(".")[0]
    if engine := next((name for name, library in CLUSTERS.items() if library == root), None):
        raise TypeError(f"data has its records on a cluster: use geomdp.tables.{engine}")


def groups(
    design: Layout, data: Any, counts: Any, bounds: tuple[int, int] | None, *, alone: bool = False
) -> tuple[Layout, Library, _Ints | None, _Ints, _Ints]:
    """Return groups of equal records that the table counts, before any limit on individuals.

    Of each group the number of its individual, its cell, and how many records or which value it
    has. Without an individual in the design, the first are None. With bounds, counts are values
    within them. Rows outside the table are left out, and those without a value, if values do not
    count `alone`.
    """
    if counts is not None and not design._by_columns:
        what = "counts are" if bounds is None else "values to sum are"
        raise TypeError(f"{what} a column of a frame: give levels as a mapping of columns")
    if not design._by_columns and design.individual is not None:
        raise TypeError(
            "an individual is not accepted beside a list of levels, which is for a single column: "
            "give levels as a mapping of columns"
        )
    design, series, records, one = _grouped(design, data, counts, bounds, alone)
    size = len(design._axes.reads)
    columns, people = series[:size], series[size:]
    cells, inside = _cells(design, list(map(categories, columns)), len(records))
    who = ids.numbers(people)[inside] if people else None
    return design, library_of(categories(one)), who, cells[inside], records[inside]


def _check_no_totals(design: Layout, counts: Any, not_totals: Sequence[Any]) -> None:
    """Refuse designs that would count a crosstab's own totals, and so its records twice."""
    for axis in design._axes.faces:
        for level in axis.levels if axis.rule is None else filter(axis.has, _TOTALS_LISTED):
            words = re.findall(r"\w+", level) if isinstance(level, str) else []
            # The first and the last.
            like = any(map(_TOTALS.fullmatch, words[:: max(len(words) - 1, 1)]))
            if like and level not in not_totals:
                raise ValueError(
                    f"counts {parameters.given(counts)} are not accepted with the level "
                    f"{parameters.shown(level)} of {axis.label!r}, which is named like a total and "
                    "would count records again: leave it out of the levels, and give margins= for "
                    "a total; or give it as not_totals= if it is none"
                )
        if axis.other or (axis.rule is None and axis.tree.loose):
            found, way = (
                (f"other = {parameters.shown(axis.other[0])} of", "give each label as a level")
                if axis.other
                else ("records of inner nodes of", "give a Hierarchy with leaves_only=True")
            )
            raise ValueError(
                f"counts {parameters.given(counts)} are not accepted with {found} "
                f"{axis.label!r}, where rows of totals would count again: {way}"
            )


def columns_of(design: Layout, counts: Any, known: Sequence[Any]) -> list[Any]:
    """Return the columns that a count reads, each once; any of them if it needs none."""
    return list(dict.fromkeys(_wanted(design, counts))) or list(known[:1])


def _wanted(design: Layout, counts: Any) -> list[Any]:
    """Return the columns of levels, of ids, and of counts."""
    more = [] if counts is None else [counts]
    return [*(column for _, column in design._axes.reads), *ids.columns(design.individual), *more]


def _grouped(
    design: Layout, data: Any, counts: Any, bounds: tuple[int, int] | None, alone: bool
) -> tuple[Layout, list[Any], _Ints, Any]:
    """Return the columns to count, a row for each group of equal records, and the groups' sizes.

    With counts each row is a group. Beside them is a column of the library of the data.
    """
    nw, wanted = narwhals(), _wanted(design, counts)
    keys = [str(place) for place in range(len(wanted))]
    if not wanted:
        return design, [], *_alone(data)
    if design._by_columns and lazy(data) == "polars":
        found = _chosen(design, nw.from_native(data), wanted, keys)
        if counts is None:
            found = found.group_by(keys).agg(nw.len().alias("n"))
        found = found.collect()
        _viewed(design, [found[key].to_native() for key in keys])
    else:
        columns = _picked(design, data, wanted) if design._by_columns else [data]
        # Levels of the type of these columns: pandas makes other types of the items of groups.
        series = _viewed(design, columns)
        if not design._by_columns:
            own = getattr(data, "name", None)
            if isinstance(own, str) and own:
                design = layout.named(design, own)
        if counts is None and (coded := by_codes(series)) is not None:
            return design, *coded, series[0]
        with refusing_types("data", columns):
            found = joined(keys, series)
            found = _sized(found) if counts is None else found
    if counts is None:
        sizes = found["n"].to_numpy().astype(np.int64)
    else:
        if alone:
            found = found.filter(~nw.col(keys[-1]).is_null())
        sizes = _records(counts, found[keys.pop()], bounds)
    return design, [found[key] for key in keys], sizes, found["0"]


def _sized(frame: Any) -> Any:
    """Return the distinct rows of a frame, with the number of each in the column ``n``."""
    nw, keys, native = narwhals(), frame.columns, frame.to_native()
    if not arrow(native):
        return frame.group_by(keys).agg(nw.len().alias("n"))
    import pyarrow as pa  # noqa: PLC0415

    # Tasks of Spark and Ray have one thread of Arrow's, with which its search for the number of a
    # thread has failed at times: "thread index 10 is out of range".
    groups = native.group_by(keys, use_threads=pa.cpu_count() > 1)
    return nw.from_native(groups.aggregate([([], "count_all")])).rename({"count_all": "n"})


def _alone(data: Any) -> tuple[_Ints, Any]:
    """Return the number of records, which have no column to count by, and any column."""
    nw = narwhals()
    if lazy(data):
        found = nw.from_native(data).select(nw.len().alias("n")).collect()["n"]
        return found.to_numpy().astype(np.int64), found
    if not (known := names(data)):
        raise ValueError("data has no columns: give a frame with at least one")
    one = categories(column(data, known[0]))
    return np.array([len(one)], np.int64), one


def _picked(design: Layout, data: Any, wanted: Sequence[Any]) -> list[Any]:
    """Return these columns of a frame, or of what a relation of DuckDB gives."""
    if lazy(data):
        # Equal records are found here: a session of DuckDB may compare texts by a collation.
        keys = [str(place) for place in range(len(wanted))]
        found = _chosen(design, narwhals().from_native(data), wanted, keys).collect()
        return [found[key].to_native() for key in keys]
    known = names(data, _WANTED)
    return [column(data, only(label, known)) for label in wanted]


def _chosen(design: Layout, view: Any, wanted: Sequence[Any], keys: Sequence[str]) -> Any:
    """Return these columns of a lazy frame, after a check of the types of ids, which reads none."""
    schema, nw = view.collect_schema(), narwhals()
    known = schema.names()
    for who in ids.columns(design.individual):
        ids.check_type(who, str(schema[only(who, known)]))
    return view.select(
        *(nw.col(only(label, known)).alias(key) for label, key in zip(wanted, keys, strict=True))
    )


def _viewed(design: Layout, columns: Sequence[Any]) -> list[Any]:
    """Return narwhals' views of columns of labels, of ids and of counts that are accepted."""
    size = len(design._axes.reads)
    views = [*map(labels, columns[:size]), *map(categories, columns[size:])]
    for place, who in enumerate(ids.columns(design.individual), size):
        views[place] = ids.checked(who, columns[place])
    for (axis, name), each in zip(design._axes.reads, views, strict=False):
        check_levels(f"levels of {name!r}", each, axis.values)
    return views


def _records(name: Any, series: Any, bounds: tuple[int, int] | None) -> _Ints:
    """Return how much each row counts, within bounds; no value is an error, which would show it."""
    if (dtype := DTYPES.get(str(series.dtype).lower())) is None:
        what, wanted = (
            ("counts", "numbers of records, not survey weights")
            if bounds is None
            else ("values of", "whole units, such as cents")
        )
        raise TypeError(
            f"{what} {name!r} of type {shown_type(series.to_native())} are not accepted: "
            f"give {integers(str(series.dtype).lower())}: {wanted}"
        )
    # Nulls are filled before numpy would make floats of a column with nulls.
    values: NDArray[Any] = series.fill_null(0).to_numpy().astype(dtype, copy=False)
    low, high = bounds or (0, 2**63 - 1)
    least, most = (min(max(end, np.iinfo(dtype).min), np.iinfo(dtype).max) for end in (low, high))
    found: _Ints = values.clip(least, most).astype(np.int64).clip(low, high)
    return found


def _cells(
    design: Layout, found: Sequence[Any], size: int
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the cell of each group, and whether it is counted anywhere.

    A cell is its number in the table, or the bytes of its places (:func:`_exact.packed`).
    """
    columns, places = iter(found), list[_Ints]()
    for axis in design._axes:
        own = list(islice(columns, len(axis.columns)))
        numbers = None if axis.several else plain_integers(own[0])
        at = None if numbers is None else axis.of_integers(numbers)
        if at is None:
            read = zip(own, axis.reads, strict=True)
            items = axis.items([items_of(series, known.values) for series, (known, _) in read])
            at = axis.of_items(items, size)
        places.append(at)
    inside = np.ones(size, np.bool_)
    for at in places:
        inside &= at >= 0
    return packed(design, places, size), inside


def _bounded(design: Layout, people: _Ints, cells: _Ints, records: _Ints) -> tuple[_Ints, _Ints]:
    """Return the cells that individuals keep, and how many records count there.

    Groups of an individual in one cell, as in that of other values, are one. The cells that an
    individual keeps are the first ones in a uniformly random order. With a limit of all records, or
    of all values, those are.
    """
    if design.l1 is not None:
        each = np.argsort(people)
        if design.values is None:
            each = np.repeat(each, records[each])
            records = np.ones(len(cells), np.int64)
        return cells[each], spent(people[each], records[each], design.l1)
    order = sorted_by(people, numbered(cells))
    people, cells, records = people[order], cells[order], records[order]
    first = np.flatnonzero(starts(people) | starts(cells))
    if not first.size:
        return cells, records
    # A sum of 2**31 values of one individual may wrap around; its part stays within the bounds.
    records = np.add.reduceat(records, first).clip(*(design.values or (0, design.linf)))
    kept = drawn(people[first], design.l0)
    return cells[first][kept], records[kept]


def _drawn(design: Layout, people: _Ints, cells: _Ints, values: _Ints) -> tuple[_Ints, _Ints]:
    """Return the cells and values of the records that individuals keep."""
    if design.l1 is not None:
        order = np.argsort(people)
        order = order[drawn(people[order], design.l1)]
        return cells[order], values[order]
    order = sorted_by(people, numbered(cells))
    kept = kept_of(people[order], cells[order], design.l0, design.linf)
    return cells[order][kept], values[order][kept]
