"""From records to exact counts: contributions bounded, cells counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._inputs.columns import column, names, narwhals, only
from geomdp.frames._contributions import drawn, sorted_by, starts
from geomdp.frames._native import (
    by_codes,
    categories,
    check_levels,
    items_of,
    joined,
    like,
    refusing_types,
)
from geomdp.frames._table import Table

if TYPE_CHECKING:
    from geomdp.frames._design import Design

_Ints: TypeAlias = NDArray[np.int64]


def count(design: Design, data: Any) -> Table:
    """Return the exact counts; :meth:`geomdp.frames.Design.count` has the details."""
    design, series, records = _grouped(design, data)
    *columns, people = series if design.individual is not None else [*series, None]
    found, kinds = zip(*map(categories, columns), strict=True)
    of = dict(zip(design.levels, kinds, strict=True))
    for label, words, items in design._steps():
        check_levels(words, of[label], items)
    cells = _cells(design, found)
    inside = cells >= 0
    if people is not None:
        cells, records = _bounded(
            design, _codes(design, people)[inside], cells[inside], records[inside]
        )
    else:
        cells, records = cells[inside], records[inside]
    counts = np.zeros(design._base_shape(), np.int64)
    np.add.at(counts.reshape(-1), cells, records)
    for axis, label in enumerate(design.levels):
        if label in design._margins:
            counts = np.concatenate([counts, counts.sum(axis, keepdims=True)], axis)
    nw, backend = narwhals(), found[0].implementation
    shape = design.shape
    places: Any = [None]
    if len(shape) > 1:
        places = (np.broadcast_to(x, shape).reshape(-1) for x in np.indices(shape, sparse=True))
    shown = list(map(like, kinds, design.levels.values(), places))
    shown.append(nw.new_series("", counts.reshape(-1), nw.Int64, backend=backend))
    labels = [*design.levels, design.name]
    keys = [str(place) for place in range(len(labels))]
    frame = joined(keys, shown).rename(dict(zip(keys, labels, strict=True)))
    return Table(frame.to_native(), design)


def _grouped(design: Design, data: Any) -> tuple[Design, list[Any], _Ints]:
    """Return the columns to count, a row for each group of equal records, and the groups' sizes."""
    nw, wanted = narwhals(), [*design.levels]
    if design.individual is not None:
        wanted.append(design.individual)
    keys = [str(place) for place in range(len(wanted))]
    if design._columns and hasattr(data, "collect_schema") and hasattr(data, "collect"):
        view = nw.from_native(data)
        known = view.collect_schema().names()
        chosen = [
            nw.col(only(label, known)).alias(key) for label, key in zip(wanted, keys, strict=True)
        ]
        found = view.select(*chosen).group_by(keys).agg(nw.len().alias("n")).collect()
    else:
        if design._columns:
            known = names(data)
            columns = [column(data, only(label, known)) for label in wanted]
        elif design.individual is None:
            columns = [data]
        else:
            raise TypeError("levels of one column have no individuals: give a mapping of columns")
        series = [categories(each)[0] for each in columns]
        if not design._columns:
            own = getattr(data, "name", None)
            design = design._named("level" if own is None else own)
        if (coded := by_codes(series)) is not None:
            return design, *coded
        with refusing_types("data", columns):
            found = joined(keys, series).group_by(keys).agg(nw.len().alias("n"))
    return design, [found[key] for key in keys], found["n"].to_numpy().astype(np.int64)


def _cells(design: Design, found: Sequence[Any]) -> _Ints:
    """Return the cell of each group, or -1 for those that are counted nowhere."""
    sizes = design._base_shape()
    cells = np.zeros(len(found[0]), np.int64)
    for (label, levels), series, size in zip(design._base.items(), found, sizes, strict=True):
        places = {level: place for place, level in enumerate(levels)}
        outside = len(levels) if label in design._others else -1
        found_at = map(places.get, items_of(series), repeat(outside))
        at = np.fromiter(found_at, np.int64, len(cells))
        cells = np.where((at < 0) | (cells < 0), -1, cells * size + at)
    return cells


def _codes(design: Design, people: Any) -> _Ints:
    """Return the number of each group's individual."""
    if people.is_null().any():
        raise ValueError(f"column {design.individual!r} contains nulls: give every record an id")
    known: dict[Any, int] = {}
    return np.array([known.setdefault(item, len(known)) for item in items_of(people)], np.int64)


def _bounded(design: Design, people: _Ints, cells: _Ints, records: _Ints) -> tuple[_Ints, _Ints]:
    """Return the cells that individuals keep, and how many records count there.

    Groups of an individual in one cell, as in that of other values, are one. The cells that an
    individual keeps are the first ones in a uniformly random order.
    """
    order = sorted_by(people, cells)
    people, cells, records = people[order], cells[order], records[order]
    first = np.flatnonzero(starts(people) | starts(cells))
    if not first.size:
        return cells, records
    records = np.minimum(np.add.reduceat(records, first), design.linf)
    kept = drawn(people[first], design.l0)
    return cells[first][kept], records[kept]
