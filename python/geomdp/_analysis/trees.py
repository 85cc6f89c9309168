"""Counts on a tree: the closest ones that are not negative and add up.

A tree is the array `parent` with the index of each node's parent, and -1 for a root; there may be
several roots, and the nodes come in any order. Each node has a value, and a weight: the inverse of
its variance. Weight 0 stands for an inner node without a value, and an infinite weight for a root
whose value is public and not negative. Leaves, the nodes without children, have positive, finite
weights.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]
_Flags: TypeAlias = NDArray[np.bool_]

#: How far from the least squares the closest integers are sought at first.
_ROOM = 2


class _Level(NamedTuple):
    """The nodes at one depth, and those that have children.

    The next level has the children of the first such node, then those of the second, and so on.
    """

    nodes: _Ints
    inner: _Ints
    #: How many children each inner node has, and the place of its first one in the next level.
    sizes: _Ints
    starts: _Ints


_NONE = _Level(*[np.zeros(0, np.int64)] * 4)


def closest(parent: _Ints, values: _Ints, weights: _Floats) -> _Ints:
    """Return the integers with the least ``sum(weights * (x - values)**2)``, as int64.

    They are not negative, and each inner node is the sum of its children. None are closer, up to
    the rounding of float64 in sums of multiples of the weights; integer weights have none. If
    several are equally close, the order of the nodes decides.

    The integers are sought within limits around the least squares, and limits that they reach are
    widened. Those strictly within their limits are the closest of all: two tables differ by unit
    changes along paths of the tree, a convex cost is least if none of these lowers it, and each
    changes a node by 1 at most.

    Time grows as ``n log(n)`` for n nodes on a few levels. Memory is about 350 bytes a node.
    """
    middle = np.rint(fitted(parent, values, weights)).astype(np.int64)
    room = np.full(len(parent), _ROOM)
    public = np.isinf(weights)
    while True:
        low, high = np.maximum(middle - room, 0), middle + room
        low[public] = high[public] = values[public]
        result, low, high = within(parent, values, weights, low, high)
        tight = ((result == low) & (low > 0) | (result == high)) & ~public
        if not tight.any():
            return result
        room[tight] *= 4


def within(
    parent: _Ints, values: NDArray[Any], weights: _Floats, low: _Ints, high: _Ints
) -> tuple[_Ints, _Ints, _Ints]:
    """Return the integers with the least squares within limits, and the limits of their sums.

    The limits of a node become those that the limits below it leave.

    The least cost of a subtree is a convex function of its sum. So its increments, from one sum to
    the next, are the sorted increments of the children together, plus those of its own square.
    """
    low, high, result = low.copy(), high.copy(), np.zeros(len(parent), np.int64)
    levels, merged = _levels(parent), []
    # The increments of all nodes of a level, and the place of the node that each belongs to.
    costs, owners = np.zeros(0), np.zeros(0, np.int64)
    for level, below in zip(levels[::-1], [_NONE, *levels[:0:-1]], strict=True):
        nodes, inner = level.nodes, level.nodes[level.inner]
        least = _sums(low[below.nodes], level)
        low[inner] = np.maximum(low[inner], least)
        high[inner] = np.minimum(high[inner], _sums(high[below.nodes], level))
        sizes = (high - low)[nodes]
        if (sizes < 0).any():
            raise RuntimeError("no integers within the limits add up")
        groups = np.repeat(np.arange(inner.size), level.sizes)[owners]
        order = np.lexsort((costs, groups))
        ranks = np.arange(order.size) - np.searchsorted(groups, np.arange(inner.size))[groups]
        merged.append((owners[order], ranks, groups, least))
        start, end = (low[inner] - least)[groups], (high[inner] - least)[groups]
        inside = costs[order][(ranks >= start) & (ranks < end)]
        owners = np.repeat(np.arange(sizes.size), sizes)
        steps = np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners]
        costs = (2 * (low - values)[nodes][owners] + 2 * steps + 1) * weights[nodes][owners]
        costs[np.isin(owners, level.inner)] += inside
    roots = levels[0].nodes
    result[roots] = low[roots] + np.bincount(owners[costs < 0], minlength=roots.size)
    for (level, below), (owners, ranks, groups, least) in zip(
        pairwise(levels), merged[:0:-1], strict=True
    ):
        taken = ranks < (result[level.nodes[level.inner]] - least)[groups]
        result[below.nodes] = low[below.nodes] + np.bincount(
            owners[taken], minlength=below.nodes.size
        )
    return result, low, high


def fitted(parent: _Ints, values: NDArray[Any], weights: _Floats) -> _Floats:
    """Return the real numbers with the least squares that are not negative and add up.

    Each round solves the least squares in two passes, from the leaves to the roots and back, and
    holds leaves that are negative at 0 from then on. The inverse of the matrix of the squares,
    which is ultrametric, has no positive entry off its diagonal (Martinez, Michon and San Martin
    1994): raising a leaf to 0 lowers the others. So no leaf is held in vain (Chandrasekaran 1970),
    and there are no more rounds than leaves; usually there are about ten.
    """
    levels = _levels(parent)
    leaf = np.ones(len(parent), bool)
    leaf[parent[parent >= 0]] = False
    free = leaf.copy()
    while True:
        result = _least_squares(levels, values, weights, free)
        negative = leaf & (result < 0)
        if not negative.any():
            return result
        free &= ~negative


def _least_squares(
    levels: list[_Level], values: NDArray[Any], weights: _Floats, free: _Flags
) -> _Floats:
    """Return the real numbers with the least squares that add up, where other leaves are 0."""
    public = np.isinf(weights)
    own = np.where(public, 0.0, weights)
    # The best estimate of each node from its subtree alone, and its variance; and the sums of the
    # children's.
    best, spread = np.where(free, values, 0.0), np.zeros(len(own))
    spread[free] = 1 / own[free]
    sums, spreads = np.zeros(len(own)), np.zeros(len(own))
    for level, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        inner = level.nodes[level.inner]
        sums[inner] = total = _sums(best[below.nodes], level)
        spreads[inner] = variance = _sums(spread[below.nodes], level)
        spread[inner] = variance / (1 + variance * own[inner])
        best[inner] = total + spread[inner] * own[inner] * (values[inner] - total)
    result = np.where(public, values, best)
    for level, below in pairwise(levels):
        inner = level.nodes[level.inner]
        gaps, variance = result[inner] - sums[inner], spreads[inner]
        share = np.divide(gaps, variance, out=np.zeros(inner.size), where=variance > 0)
        changes = spread[below.nodes] * np.repeat(share, level.sizes)
        result[below.nodes] = best[below.nodes] + changes
    return result


def _levels(parent: _Ints) -> list[_Level]:
    """Return the levels of a tree, from its roots on."""
    children = np.argsort(parent, kind="stable")
    first = np.searchsorted(parent[children], np.arange(len(parent) + 1))
    levels, nodes = [], children[: first[0]]
    while nodes.size:
        sizes = first[nodes + 1] - first[nodes]
        inner = np.flatnonzero(sizes)
        sizes = sizes[inner]
        starts = np.cumsum(sizes) - sizes
        levels.append(_Level(nodes, inner, sizes, starts))
        places = np.repeat(first[nodes[inner]] - starts, sizes) + np.arange(sizes.sum())
        nodes = children[places]
    if sum(level.nodes.size for level in levels) < len(parent):
        raise ValueError("parent is not accepted: give a tree, without cycles")
    return levels


def _sums(values: NDArray[Any], level: _Level) -> NDArray[Any]:
    """Return the sums over the children of each inner node of a level."""
    return np.add.reduceat(values, level.starts) if level.starts.size else values[:0]
