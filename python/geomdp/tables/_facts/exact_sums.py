"""Sums of exact counts, which stay at the limits of int64 instead of wrapping around."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import notebook
from geomdp.tables._facts.axes import NUMBERED, raveled, unraveled
from geomdp.tables._facts.rules import MOST_BITS

if TYPE_CHECKING:
    from geomdp.tables._facts.layout import Layout

_Ints: TypeAlias = NDArray[np.int64]
#: The lower half of a count.
_LOW = 2**32 - 1
#: The most cells of a whole table: 8 GB of counts.
_MOST_CELLS = 2**30
#: The most digits of a cell, to the base of the cells that int64 numbers.
_DIGITS = math.ceil(MOST_BITS / (NUMBERED.bit_length() - 1))
#: Floats have all integers up to this.
_EXACT = 2**53


def saturated(counts: NDArray[Any], add: Callable[[NDArray[Any]], _Ints]) -> _Ints:
    """Return the sums that a function makes, or the limit of int64 that they are beyond.

    For up to 2**31 terms the sums of halves do not overflow, nor those of shorter integers.
    """
    if counts.dtype.itemsize < 8:
        return add(counts)
    low = add(counts & _LOW)
    high = add(counts >> 32) + (low >> 32)
    whole = (high << 32) | (low & _LOW)
    least, greatest = -(2**63), 2**63 - 1
    return np.where(high < -(2**31), least, np.where(high >= 2**31, greatest, whole))


def occupied(counts: NDArray[Any]) -> tuple[_Ints, _Ints]:
    """Return all cells, and their counts, of a user's array."""
    # Intervals end at 0, so no count is below.
    greatest = min(np.iinfo(np.int64).max, np.iinfo(counts.dtype).max)
    values = counts.clip(0, greatest).astype(np.int64).reshape(-1)
    return np.arange(values.size), values


def check_size(design: Layout) -> None:
    """Refuse a table of more cells than memory holds, or of cells that nobody can list."""
    design._axes.check_listed()
    if design.cells > _MOST_CELLS:
        way = "release it with at_least=, which publishes the cells with large noisy counts, or "
        raise ValueError(
            f"a whole table of {design.cells} cells is not accepted: "
            f"{way if design.tables is None else ''}give a design of at most {_MOST_CELLS} cells"
        )


def check_countable(design: Layout) -> None:
    """Refuse a table that no call could release, before its records are read."""
    if design.tables is not None:
        check_size(design)
    elif design.cells.bit_length() > MOST_BITS:
        raise ValueError(
            f"a table of {notebook.many(design.cells, 'cell')} is not accepted: give a design of "
            f"at most 2**{MOST_BITS} cells, or tables, a few combinations of its columns"
        )


def all_nodes(design: Layout, occupied: tuple[_Ints, _Ints]) -> _Ints:
    """Return the exact counts of all nodes, given those of some rows; the others are 0.

    Rows are cells, or those of chosen tables, one table after the other: :func:`rows`.
    """
    check_size(design)
    found, records = occupied
    if design.tables is not None:
        counts = np.zeros(design.cells, np.int64)
        counts[found] = records
        return counts
    counts = np.zeros(design._axes.sizes, np.int64)
    counts.reshape(-1)[found] = records
    for place, axis in enumerate(design._axes):
        if axis.tree.depth:
            moved = np.moveaxis(counts, place, 0)
            nodes = np.zeros((axis.tree.size, *moved.shape[1:]), np.int64)
            nodes[axis.tree.cells] = moved
            inner = np.flatnonzero(axis.tree.children)
            nodes[inner] = saturated(nodes, partial(_taken, axis.tree.sums, inner))
            counts = np.moveaxis(nodes, 0, place)
    return np.ascontiguousarray(counts).reshape(design.shape)


def _taken(add: Callable[[NDArray[Any]], _Ints], places: _Ints, counts: NDArray[Any]) -> _Ints:
    """Return some of the sums that a function makes."""
    return add(counts)[places]


def is_packed(cells: NDArray[Any]) -> bool:
    """Whether cells are given by the bytes of their places, not by number."""
    return cells.dtype.kind == "V"


def packed(design: Layout, places: Sequence[_Ints], size: int) -> NDArray[Any]:
    """Return cells, given their places in each column.

    They are numbers: those beyond int64 are objects of Python. Beside tables each of these is the
    bytes of its places, an item that is compared, sorted and picked as a number is.
    """
    sizes = design._axes.sizes
    if design.tables is None or math.prod(sizes) <= NUMBERED:
        return raveled(places, sizes, size)
    kind = np.min_scalar_type(max(sizes) - 1)
    found = np.empty((size, len(sizes)), kind)
    for column, at in enumerate(places):
        found[:, column] = at
    return found.view(f"V{kind.itemsize * len(sizes)}")[:, 0]


def numbered(cells: NDArray[Any]) -> _Ints:
    """Return a number for each cell, the same for equal ones."""
    if cells.dtype == object:
        known: dict[int, int] = {}
        return np.fromiter(map(known.setdefault, cells.tolist(), count()), np.int64, cells.size)
    if not is_packed(cells):
        return cells
    return np.unique(cells, return_inverse=True)[1].reshape(-1)


def among(cells: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of distinct cells are among others."""
    if cells.dtype != object:
        return np.isin(cells, others, assume_unique=True)
    known = {*others.tolist()}
    return np.fromiter(map(known.__contains__, cells.tolist()), np.bool_, cells.size)


def _places(design: Layout, cells: NDArray[Any]) -> list[_Ints]:
    """Return the places of some cells in each column."""
    sizes = design._axes.sizes
    if is_packed(cells):
        kind = np.min_scalar_type(max(sizes) - 1)
        rows = np.ascontiguousarray(cells).view(kind).reshape(len(cells), len(sizes))
        return [rows[:, column].astype(np.int64) for column in range(len(sizes))]
    return unraveled(cells, sizes)


def rows(design: Layout, cells: NDArray[Any], records: _Ints) -> tuple[_Ints, _Ints]:
    """Return distinct rows of a table in order, and their counts, given the cells of groups.

    Without chosen tables, rows are the cells. Else they are those of all chosen tables, one table
    after the other, so that nothing has the size of the product of all columns.
    """
    if design.tables is None:
        return _added(math.prod(design._axes.sizes), cells, records)
    places, start = _places(design, cells), 0
    nodes: dict[tuple[int, int], tuple[Any, bool]] = {}
    found: list[tuple[_Ints, _Ints]] = []
    for block in design.blocks:
        at, inside = None, None
        for number, (axis, depth) in enumerate(zip(design._axes, block, strict=True)):
            if (number, depth) not in nodes:
                above = axis.above(depth) - axis.tree.starts[depth]
                lost, same = bool((above < 0).any()), np.array_equal(above, np.arange(above.size))
                each = places[number] if same else above[places[number]] if above.any() else None
                nodes[number, depth] = each, lost
            each, some = nodes[number, depth]
            if each is not None:
                at = each if at is None else at * axis.counts[depth] + each
            if some:
                inside = (each >= 0) if inside is None else inside & (each >= 0)
        size = math.prod(design._axes.counts(block))
        at = np.zeros(len(records), np.int64) if at is None else at
        kept = slice(None) if inside is None else inside
        one, counts = _added(size, at[kept], records[kept])
        found.append((one + start, counts))
        start += size
    every, counts = map(np.concatenate, zip(*found, strict=True))
    return every, counts


def of_cells(occupied: tuple[_Ints, _Ints], cells: NDArray[Any]) -> _Ints:
    """Return the exact counts of some distinct cells in order, 0 for those without a record."""
    found, records = occupied
    counts = np.zeros(cells.size, np.int64)
    counts[among(cells, found)] = records[among(found, cells)]
    return counts


def sent(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells as files and engines keep them: beyond int64, a row of digits for each."""
    if cells.dtype != object:
        return cells
    found, left = np.empty((cells.size, _DIGITS), np.int64), cells
    for place in reversed(range(_DIGITS)):
        found[:, place], left = left % NUMBERED, left // NUMBERED
    return found


def received(kept: NDArray[Any]) -> NDArray[Any]:
    """Return the cells that :func:`sent` has written."""
    if kept.dtype == object:
        kept = np.array([*kept], np.int64).reshape(-1, _DIGITS)
    elif kept.ndim == 1:
        return kept
    cells = np.zeros(len(kept), object)
    for digits in kept.T:
        cells = cells * NUMBERED + digits.astype(object)
    return cells


def merged(design: Layout, found: _Ints, records: _Ints) -> tuple[_Ints, _Ints]:
    """Return distinct rows in order, and their counts, given those of parts of the records."""
    size = math.prod(design._axes.sizes) if design.tables is None else design.cells
    return _added(size, found, records)


def _added(size: int, found: NDArray[Any], records: _Ints) -> tuple[_Ints, _Ints]:
    """Return distinct rows in order, and how many records each has, given those of groups.

    Rows without records may be among them. Counts are at most the limit of int64.
    """
    if found.dtype == object:
        first, places = np.unique(numbered(found), return_inverse=True)
        order = np.argsort(found[first])
        distinct, places = found[first][order], np.argsort(order)[places]
    elif size > 8 * found.size:
        distinct, places = np.unique(found, return_inverse=True)
    else:
        distinct, places = np.arange(size), found
    ends = int(records.min(initial=0)), int(records.max(initial=0))
    if max(map(abs, ends)) * records.size < _EXACT:
        # Sums of integers below 2**53 are exact.
        return distinct, np.bincount(places, records, distinct.size).astype(np.int64)

    def add(records: _Ints) -> _Ints:
        sums = np.zeros(distinct.size, np.int64)
        np.add.at(sums, places, records)
        return sums

    return distinct, saturated(records, add)
