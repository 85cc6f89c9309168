"""Sums of exact counts, which stay at the limits of int64 instead of wrapping around."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geomdp.tables._analysis.products import Block
    from geomdp.tables._layout import Layout

_Ints: TypeAlias = NDArray[np.int64]
#: The lower half of a count.
_LOW = 2**32 - 1
#: The most cells of a whole table: 8 GB of counts.
_MOST_CELLS = 2**30


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
        return np.concatenate([_block(design, block, cells, records) for block in design.blocks])
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


def _block(design: Layout, block: Block, cells: _Ints, records: _Ints) -> _Ints:
    """Return the exact counts of a block, given those of some cells."""
    at, inside = np.zeros_like(cells), np.ones(cells.shape, np.bool_)
    rest, strides = cells, []
    for axis in reversed(design._axes):
        strides.append(rest % len(axis.cells))
        rest = rest // len(axis.cells)
    for axis, depth, places in zip(design._axes, block, reversed(strides), strict=True):
        level = axis.tree.level(depth)
        found = axis.above(depth)[places] - level.start
        inside &= found >= 0
        at = at * (level.stop - level.start) + found
    at, records = at[inside], records[inside]
    size = math.prod(design._axes.counts(block))

    def add(records: _Ints) -> _Ints:
        found = np.zeros(size, np.int64)
        np.add.at(found, at, records)
        return found

    return saturated(records, add)
