"""Public totals by group: where a user's frame or number belongs, and whether they agree."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._inputs.columns import column, names, only
from geomdp.tables._columns.native import categories, items_of
from geomdp.tables._math.products import Block

if TYPE_CHECKING:
    from geomdp.tables._facts.axes import Axis

_Ints: TypeAlias = NDArray[np.int64]
#: Sums beyond this may have been moved to a limit of int64.
MOST = 2**62


def of(axes: Sequence[Axis], totals: Any) -> tuple[Block, _Ints]:
    """Return the block of a number or of a frame of totals, on rooted trees, and its counts."""
    if isinstance(totals, int | float | str | np.generic) or totals is None:
        known = parameters.integer("totals", totals)
        if not 0 <= known <= MOST:
            raise ValueError(parameters.refusal("totals", known, "an int from 0 to 2**62"))
        return (0,) * len(axes), np.array(known)
    try:
        known_names, labels = names(totals), [axis.label for axis in axes if len(axis.faces) == 1]
    except TypeError:
        wanted = "an int, or a frame of levels and counts"
        raise TypeError(parameters.foreign("totals", totals, wanted)) from None
    kept = [label for label in known_names if label in labels]
    counted = [label for label in known_names if label not in labels]
    if len(counted) != 1:
        raise ValueError(
            f"totals have the columns {known_names}: give columns of the table, of {labels}, and "
            "one of counts"
        )
    places: list[_Ints] = []
    block, sizes = [], []
    for axis in axes:
        tree, offset = axis.rooted
        if axis.label not in kept:
            block.append(0)
            continue
        nodes = {label: node + offset for node, label in enumerate(axis.nodes)}
        if axis.margin:
            del nodes[axis.nodes[0]]
        series = categories(column(totals, only(axis.label, known_names)))
        found = [nodes.get(item, -1) for item in items_of(series, axis.nodes)]
        if not found or min(found) < 0 or len(depths := {*tree.depths[found].tolist()}) != 1:
            raise ValueError(
                f"totals have other levels of {axis.label!r} than the table, or nodes of several "
                "depths: give all levels, or all nodes of one depth of a tree"
            )
        [depth] = depths
        level = tree.level(depth)
        block.append(depth)
        sizes.append(level.stop - level.start)
        places.append(np.array(found) - level.start)
    counts = as_counts(items_of(categories(column(totals, only(counted[0], known_names)))))
    at = np.ravel_multi_index(tuple(places), tuple(sizes)) if places else np.zeros(len(counts), int)
    if len(counts) != math.prod(sizes) or np.unique(at).size != at.size:
        raise ValueError("totals leave out a group or have it twice: give each combination once")
    table = np.empty(len(counts), np.int64)
    table[at] = counts
    return tuple(block), table.reshape(shape(axes, tuple(block)))


def shape(axes: Sequence[Axis], block: Block) -> tuple[int, ...]:
    """Return how many nodes a block of rooted trees has on each axis where it is not the root.

    Arrays have these axes alone: numpy's have at most 64, and chosen tables may be of more columns.
    """
    pairs = zip(axes, block, strict=True)
    levels = [axis.rooted[0].level(depth) for axis, depth in pairs if depth]
    return tuple(level.stop - level.start for level in levels)


def as_counts(items: Sequence[Any]) -> _Ints:
    """Return counts that may be public."""
    found = parameters.each("totals", items, parameters.integer)
    if not all(0 <= item <= MOST for item in found) or sum(found) > MOST:
        raise ValueError("totals below 0, or above 2**62 in all, are not accepted: give counts")
    return np.array(found, np.int64)


def check(axes: Sequence[Axis], known: Mapping[Block, _Ints]) -> None:
    """Refuse totals that contradict each other: tables with these do not exist.

    Sums over nodes that are a part of another are at most that, and equal to it if they are all.
    """
    blocks = list(known)
    for place, one in enumerate(blocks):
        for other in blocks[:place]:
            common = tuple(map(min, one, other))
            (a, all_a), (b, all_b) = (sums(axes, x, known[x], common) for x in (one, other))
            wrong = (all_b & (a > b)) | (all_a & (b > a))
            if wrong.any():
                raise ValueError(
                    "totals contradict each other: give those of one set of counts, after limits "
                    "of contributions"
                )


def crossing(axes: Sequence[Axis], known: Mapping[Block, _Ints]) -> list[tuple[str, ...]]:
    """Return the columns of three blocks of which none has all depths of another, if any."""

    def of(one: Block, other: Block) -> bool:
        return all(map(operator.le, one, other))

    left = [
        one
        for one in known
        if not any(
            one != other and of(one, other) and sums(axes, other, known[other], one)[1].all()
            for other in known
        )
    ]
    for three in itertools.combinations(left, 3):
        if not any(of(one, other) for one, other in itertools.permutations(three, 2)):
            return [
                tuple(axis.label for axis, at in zip(axes, block, strict=True) if at)
                for block in three
            ]
    return []


def sums(
    axes: Sequence[Axis], block: Block, counts: _Ints, to: Block
) -> tuple[_Ints, NDArray[np.bool_]]:
    """Return sums over the nodes above, and whether they have all of these."""
    whole, place = np.ones(counts.shape, np.bool_), 0
    for axis, depth, above in zip(axes, block, to, strict=True):
        tree = axis.rooted[0]
        for d in range(depth, above, -1):
            upper, lower = tree.level(d - 1), tree.level(d)
            parents = tree.parents[lower] - upper.start
            size = (*counts.shape[:place], upper.stop - upper.start, *counts.shape[place + 1 :])
            index = (slice(None),) * place + (parents,)
            sums, every = np.zeros(size, np.int64), np.ones(size, np.bool_)
            np.add.at(sums, index, counts)
            np.logical_and.at(every, index, whole)
            some = [-1 if x == place else 1 for x in range(counts.ndim)]
            full = (tree.children[upper] > 0) & (not tree.loose)
            counts, whole = sums, every & full.reshape(some)
        if above:
            place += 1
        elif depth:
            counts, whole = counts.squeeze(place), whole.squeeze(place)
    return counts, whole
