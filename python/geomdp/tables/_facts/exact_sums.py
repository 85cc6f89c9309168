"""Sums of exact counts, which stay at the limits of int64 instead of wrapping around."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geomdp.tables._facts.layout import Layout

_Ints: TypeAlias = NDArray[np.int64]
#: The lower half of a count.
_LOW = 2**32 - 1
#: The most cells of a whole table: 8 GB of counts.
_MOST_CELLS = 2**30
#: Cells are numbered by int64 up to this many, and floats have all integers up to this.
_NUMBERED, _EXACT = 2**62, 2.0**53


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
    """Refuse a table of more cells than memory holds."""
    if design.cells > _MOST_CELLS:
        raise ValueError(
            f"a whole table of {design.cells} cells is not accepted: release it with at_least=, "
            f"which publishes the cells with large noisy counts, or give a design of at most "
            f"{_MOST_CELLS} cells"
        )


def all_nodes(design: Layout, occupied: tuple[_Ints, _Ints]) -> _Ints:
    """Return the exact counts of all nodes, given those of some cells; the others are 0.

    Those of chosen tables are one after the other, and need no array of all cells.
    """
    check_size(design)
    cells, records = occupied
    if design.tables is not None:
        return np.concatenate(list(_blocks(design, _places(design, cells), records)))
    counts = np.zeros(design._axes.sizes, np.int64)
    counts.reshape(-1)[cells] = records
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

    They are numbers while int64 has all of them. Else each is the bytes of its places: an item
    that is compared, sorted and picked as a number is.
    """
    sizes = design._axes.sizes
    if math.prod(sizes) <= _NUMBERED:
        cells = np.zeros(size, np.int64)
        for at, many in zip(places, sizes, strict=True):
            cells *= many
            cells += at
        return cells
    kind = np.min_scalar_type(max(sizes) - 1)
    found = np.empty((size, len(sizes)), kind)
    for column, at in enumerate(places):
        found[:, column] = at
    return found.view(f"V{kind.itemsize * len(sizes)}")[:, 0]


def numbered(cells: NDArray[Any]) -> _Ints:
    """Return a number for each cell, the same for equal ones."""
    if not is_packed(cells):
        return cells
    return np.unique(cells, return_inverse=True)[1].reshape(-1)


def _places(design: Layout, cells: NDArray[Any]) -> list[_Ints]:
    """Return the places of some cells in each column."""
    sizes = design._axes.sizes
    if is_packed(cells):
        kind = np.min_scalar_type(max(sizes) - 1)
        rows = np.ascontiguousarray(cells).view(kind).reshape(len(cells), len(sizes))
        return [rows[:, column].astype(np.int64) for column in range(len(sizes))]
    found = list[_Ints]()
    for size in reversed(sizes):
        cells, place = np.divmod(cells, size)
        found.append(place)
    return found[::-1]


def _blocks(design: Layout, places: Sequence[_Ints], records: _Ints) -> Iterable[_Ints]:
    """Yield the exact counts of each block, given the places of some cells and theirs."""
    one, small = bool((records == 1).all()), float(np.abs(records.astype(float)).sum()) < _EXACT
    floats = records.astype(np.float64) if small and not one else None
    nodes: dict[tuple[int, int], tuple[Any, bool]] = {}
    for block in design.blocks:
        at, inside = None, None
        for number, (axis, depth) in enumerate(zip(design._axes, block, strict=True)):
            if (number, depth) not in nodes:
                above = axis.above(depth) - axis.tree.starts[depth]
                lost, same = bool((above < 0).any()), np.array_equal(above, np.arange(above.size))
                found = places[number] if same else above[places[number]] if above.any() else None
                nodes[number, depth] = found, lost
            found, some = nodes[number, depth]
            if found is not None:
                at = found if at is None else at * axis.counts[depth] + found
            if some:
                inside = (found >= 0) if inside is None else inside & (found >= 0)
        size = math.prod(design._axes.counts(block))
        at = np.zeros(len(records), np.int64) if at is None else at
        kept = slice(None) if inside is None else inside
        if one:
            yield np.bincount(at[kept], minlength=size)
        elif floats is not None:
            # Sums of integers below 2**53 are exact.
            yield np.bincount(at[kept], floats[kept], size).astype(np.int64)
        else:
            yield saturated(records[kept], partial(_added, at[kept], size))


def _added(at: _Ints, size: int, records: _Ints) -> _Ints:
    """Return the sums of records by place."""
    found = np.zeros(size, np.int64)
    np.add.at(found, at, records)
    return found
