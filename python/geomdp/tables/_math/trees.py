"""Counts on trees: the least squares that add up, and the closest counts that are not negative."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

#: How far from the least squares the closest integers are sought at first.
_ROOM = 2
#: Among so many numbers a binary search is fast.
_FEW = 2**16
#: Integers within this are counted.
_SPAN = 2.0**20


class Tree:
    """The parent of each node; that of a root is -1.

    Nodes are in order of depth, and the children of a node are next to each other. In a loose tree
    a node may have more than its children together: then every node is a cell, which is counted.
    """

    def __init__(self, parents: Ints, *, loose: bool = False) -> None:
        self.parents, self.loose = parents, loose
        self.size = len(parents)
        self.roots = int(np.searchsorted(parents, 0))
        #: The number of children of each node, and the first child.
        self.children = np.bincount(parents[self.roots :], minlength=self.size)
        self.first = self.roots + np.cumsum(self.children) - self.children
        #: The first node of each depth, and twice the end.
        self.starts = [0, self.roots]
        while self.starts[-2] < self.starts[-1]:
            self.starts.append(self.starts[-1] + int(self.children[self.level(-2)].sum()))
        self.leaves = np.flatnonzero(self.children == 0)
        self.cells = np.arange(self.size) if loose else self.leaves

    @property
    def depth(self) -> int:
        """The depth of the deepest leaves; that of the root is 0."""
        return len(self.starts) - 3

    def level(self, depth: int) -> slice:
        """Return the nodes of this depth."""
        return slice(self.starts[depth], self.starts[depth + 1])

    @cached_property
    def depths(self) -> Ints:
        """The depth of each node."""
        return np.repeat(np.arange(self.depth + 1), np.diff(self.starts[:-1]))

    @property
    def from_above(self) -> Ints:
        """The nodes from top to bottom, each above those that it contains."""
        paths: list[tuple[int, ...]] = []
        for node, parent in enumerate(self.parents.tolist()):
            paths.append((*paths[parent], node) if parent >= 0 else (node,))
        return np.array(sorted(range(self.size), key=paths.__getitem__))

    @cached_property
    def inner(self) -> list[Ints]:
        """The nodes with children of each depth; the last has none."""
        nodes = np.flatnonzero(self.children)
        return np.split(nodes, np.searchsorted(nodes, self.starts[1:-2]))

    @cached_property
    def kinds(self) -> tuple[Ints, Ints]:
        """A node of each kind, and the kind of each node.

        A node's shape is its depth and the shapes of its children. Its kind is its shape and the
        kind of its parent. So a change of the tree that keeps depths leads from a node to any other
        of its kind. In a loose tree that of a node is its depth.
        """
        if self.loose:
            return np.array(self.starts[:-2]), self.depths
        shapes = np.zeros(self.size, np.int64)
        for depth in reversed(range(self.depth)):
            inner, below = self.inner[depth], self.below(depth)
            if not shapes[below].any():  # All of them are leaves.
                shapes[inner] = self.children[inner]
                continue
            order = np.lexsort((shapes[below], self.parents[below]))
            under = shapes[below][order]
            known = 1
            for n in np.unique(self.children[inner]):
                some = inner[self.children[inner] == n]
                rows = under[(self.first[some] - below.start)[:, None] + np.arange(n)]
                which = numbers(rows)
                shapes[some] = known + which.reshape(-1)
                known += int(which.max()) + 1
        kind_of = np.zeros(self.size, np.int64)
        known = 0
        for depth in range(self.depth + 1):
            level = self.level(depth)
            pairs = shapes[level]
            if depth:
                pairs = pairs + kind_of[self.parents[level]] * (self.size + 1)
            starts, sizes = runs(pairs)
            _, which = np.unique(pairs[starts], return_inverse=True)
            kind_of[level] = known + np.repeat(which, sizes)
            known += int(which.max()) + 1
        kinds = np.empty(known, np.int64)
        kinds[kind_of[::-1]] = np.arange(self.size)[::-1]
        return kinds, kind_of

    def below(self, depth: int) -> slice:
        """Return the children of the nodes of this depth."""
        return self.level(depth + 1)

    def of_parents(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of the parent of each node, roots left out."""
        return np.repeat(values, self.children)

    def over_children(
        self, depth: int, values: NDArray[Any], over: np.ufunc = np.add
    ) -> NDArray[Any]:
        """Return the sums over the children of the inner nodes of a depth, from all children's."""
        places = self.first[self.inner[depth]] - self.below(depth).start
        return over.reduceat(values, places, axis=0)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return for each node the sum of its value and of those below it."""
        found = values.copy()
        for depth in reversed(range(self.depth)):
            found[self.inner[depth]] += self.over_children(depth, found[self.below(depth)])
        return found

    def with_leaf(self) -> Tree:
        """Return this tree with one more leaf: the last child of the root."""
        end = self.starts[2]
        moved = np.where(self.parents >= end, self.parents + 1, self.parents)
        return Tree(np.insert(moved, end, 0), loose=self.loose)


def numbers(rows: NDArray[Any]) -> Ints:
    """Return a number for each row, the same for equal ones, in any order."""
    if (rows == rows[:1]).all():
        return np.zeros(len(rows), np.int64)
    # As bytes: numpy compares a field for each column in another way, which takes long.
    keys = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}")
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def runs(rows: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the first of each run of equal rows, and how many it has.

    Siblings are next to each other, so that values of many nodes are often in few runs.
    """
    first = np.arange(len(rows)) == 0
    for column in np.moveaxis(rows, 0, -1).reshape(math.prod(rows.shape[1:]), len(rows)):
        first[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(first)
    return starts, np.diff(starts, append=len(rows))


def arranged(parent: Ints, *, most: int | None = None, loose: bool = False) -> tuple[Tree, Ints]:
    """Return the tree of nodes in any order, and those nodes in the tree's order.

    A tree with more depths than `most` raises the error of one with cycles.
    """
    every = np.arange(len(parent))
    if most is None and len(parent) and (parent < every).all() and (np.diff(parent) >= 0).all():
        # It is in the tree's order.
        return Tree(parent, loose=loose), every
    children = np.argsort(parent, kind="stable")
    first = np.searchsorted(parent[children], np.arange(len(parent) + 1))
    levels: list[Ints] = []
    nodes = children[: first[0]]
    while nodes.size and len(levels) + 1 != most:
        levels.append(nodes)
        sizes = first[nodes + 1] - first[nodes]
        ends = np.cumsum(sizes)
        nodes = children[np.repeat(first[nodes] - ends + sizes, sizes) + np.arange(ends[-1])]
    order = np.concatenate([*levels, nodes])
    if order.size < len(parent):
        raise ValueError("parent is not accepted: give a tree, without cycles")
    places = np.full(len(parent) + 1, -1)
    places[order] = np.arange(order.size)
    return Tree(places[parent[order]], loose=loose), order


class LeastSquares:
    """The unbiased estimates of least variance that add up, for noise of these variances.

    A node of variance 0 is known, and one of infinite variance has no value. What nothing else
    says of nodes without values is their sum: that is divided evenly, so that all estimates add
    up. In a loose tree the estimate of a node is its noisy count, since nothing is known to add up.

    The pass up combines the noisy count of a node with the sum of its children, by the inverses of
    their variances; the pass down divides a parent's difference among its children by variance.
    """

    def __init__(self, tree: Tree, noise: _Floats) -> None:
        self.tree, self.noise = tree, noise
        #: The variances of the sum of the children, and of the estimate from the subtree.
        self.below, self.own = np.zeros(tree.size), noise.copy()
        #: The parts of its noisy count, and of its children's sum, in a node's own estimate.
        self.weight = np.ones(tree.size)
        self.rest = np.zeros(tree.size) if tree.loose else np.ones(tree.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            for depth in reversed(range(0 if tree.loose else tree.depth)):
                inner = tree.inner[depth]
                self.below[inner] = sums = tree.over_children(depth, self.own[tree.below(depth)])
                # Known children leave nothing to their parent.
                np.divide(sums, noise[inner], out=sums, where=sums > 0)
                sums[np.isinf(noise[inner])] = 0
                self.weight[inner], self.rest[inner] = 1 / (1 + 1 / sums), 1 / (1 + sums)
                # Beside a leaf without a value the other children say nothing of their parent.
                left = np.isinf(self.below[inner])
                self.own[inner] = np.where(left, noise[inner], self.below[inner] / (1 + sums))
        #: The part of a node in the difference that its parent divides.
        self.gain = np.zeros(tree.size)
        own, gain = self.own[tree.roots :], self.gain[tree.roots :]
        left = tree.of_parents(self.below)
        if not np.isfinite(own.sum()):
            np.divide(own, left, out=gain, where=(left > 0) & np.isfinite(own))
            lost = np.isinf(own) & (left > 0)
            parents = tree.parents[tree.roots :][lost]
            gain[lost] = 1 / np.bincount(parents, minlength=1)[parents]
        elif left.min(initial=1) > 0:
            np.divide(own, left, out=gain)
        else:
            np.divide(own, left, out=gain, where=left > 0)

    def __call__(self, noisy: _Floats) -> _Floats:
        """Return the estimates, for noisy counts with any further axes."""
        tree, more = self.tree, (slice(None),) + (None,) * (noisy.ndim - 1)
        found = noisy.copy()
        sums = np.zeros_like(found)
        for depth in reversed(range(tree.depth)):
            inner = tree.inner[depth]
            sums[inner] = tree.over_children(depth, found[tree.below(depth)])
            found[inner] *= self.weight[inner][more]
            found[inner] += self.rest[inner][more] * sums[inner]
        for depth in range(tree.depth):
            level, inner = tree.below(depth), tree.inner[depth]
            left = np.repeat(found[inner] - sums[inner], tree.children[inner], axis=0)
            left *= self.gain[level][more]
            found[level] += left
        return found

    @cached_property
    def variances(self) -> _Floats:
        """The variance of the estimate of each node."""
        found: _Floats = self.own.copy()
        for depth in range(self.tree.depth):
            level = self.tree.below(depth)
            gain, parents = self.gain[level], self.tree.parents[level]
            # Beside a node without a value the others say nothing of it, nor it of them.
            some = (gain > 0) & np.isfinite(self.own[level])
            left = np.subtract(self.below[parents], found[parents], out=0 * gain, where=some)
            found[level] -= gain**2 * left
        return found

    def weights(self, functional: _Floats) -> _Floats:
        """Return the weight of each noisy count in a weighted sum of estimates.

        The passes, transposed and in reverse. Further axes are for other functionals.
        """
        tree, more = self.tree, (slice(None),) + (None,) * (functional.ndim - 1)
        found, sums = functional.astype(np.float64), np.zeros(functional.shape)
        for depth in reversed(range(tree.depth)):
            level = tree.below(depth)
            divided = tree.over_children(depth, self.gain[level][more] * found[level])
            found[tree.inner[depth]] += divided
            sums[tree.inner[depth]] -= divided
        for depth in range(tree.depth):
            inner, level = tree.inner[depth], tree.below(depth)
            sums[inner] += self.rest[inner][more] * found[inner]
            found[inner] *= self.weight[inner][more]
            found[level] += sums[tree.parents[level]]
        return found

    def determined(self, functional: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether noisy counts determine a weighted sum of nodes, for each column.

        Children that their subtrees do not determine have an answer only if all of them have one
        weight: it is that of their parent.
        """
        tree, weights, lost = self.tree, functional.copy(), np.isinf(self.own)
        found = np.ones(functional.shape[1:], np.bool_)
        for depth in reversed(range(0 if tree.loose else tree.depth)):
            level, inner = tree.below(depth), tree.inner[depth]
            open_, own = lost[level][:, None], weights[level]
            most = tree.over_children(depth, np.where(open_, own, -np.inf), np.maximum)
            least = tree.over_children(depth, np.where(open_, own, np.inf), np.minimum)
            found &= (most <= least).all(axis=0)
            weights[inner] = weights[inner] + np.where(most == least, least, 0)
            weights[level] = np.where(open_, 0, own)
        return found & ~weights[lost].any(axis=0)

    @cached_property
    def found(self) -> NDArray[np.bool_]:
        """Whether noisy counts determine each node."""
        tree, found = self.tree, np.isfinite(self.own)
        for depth in range(0 if tree.loose else tree.depth):
            level = tree.below(depth)
            found[level] |= (self.gain[level] == 1) & found[tree.parents[level]]
        return found

    def widest(self, factors: _Floats) -> _Floats:
        """Return the greatest weight times its factor in each estimate, but for its own noise.

        The weight of the noise of u in the estimate of v is their covariance over the variance of
        the noise of u. That of a node and one below it is the variance of the upper one times the
        gains between them; that of two children of p is the product of their gains times
        ``variance(p) - below(p)``; and every gain on the way to them is a factor.
        """
        tree, own = self.tree, np.zeros(self.tree.size)
        np.divide(factors, self.noise, out=own, where=self.noise > 0)
        down, beside = np.zeros(tree.size), np.zeros(tree.size)
        known = np.where(np.isfinite(self.variances), self.variances, 0)
        for depth in reversed(range(tree.depth)):
            inner, below = tree.inner[depth], tree.below(depth)
            reached = self.gain[below] * np.maximum(own[below], down[below])
            # The greatest of all children, and of the siblings of each.
            most = tree.over_children(depth, reached, np.maximum)
            down[inner] = most
            sizes = tree.children[inner]
            most = np.repeat(most, sizes)
            first = reached == most
            second = tree.over_children(depth, np.where(first, 0, reached), np.maximum)
            single = tree.over_children(depth, first.astype(np.int64)) == 1
            alone = first & np.repeat(single, sizes)
            beside[below] = np.where(alone, np.repeat(second, sizes), most)
        out = np.zeros(tree.size)
        for depth in range(tree.depth):
            level = tree.below(depth)
            p = tree.parents[level]
            siblings = (
                np.where(np.isfinite(self.below[p]), self.below[p] - known[p], 0) * beside[level]
            )
            upper = np.maximum(known[p] * own[p], siblings)
            out[level] = self.gain[level] * np.maximum(out[p], upper)
        return np.maximum(out, known * down)


def closest(parent: Ints, values: Ints, weights: _Floats) -> Ints:
    """Return the integers with the least ``sum(weights * (x - values)**2)``, as int64.

    The array `parent` has the index of each node's parent, and -1 for a root; there may be several
    roots, and the nodes come in any order. Weight 0 stands for a node without a value: an inner
    node, or at most one leaf below a node. An infinite weight is that of a node whose value is
    public; some numbers that are not negative add up to all of these. Other leaves have positive,
    finite weights.

    The integers are not negative, and each inner node is the sum of its children. None are closer,
    up to the rounding of float64 in sums of multiples of the weights; integer weights have none. If
    several are equally close, the order of the nodes decides.

    The integers are sought within limits around the least squares, and limits that they reach are
    widened. Those strictly within their limits are the closest of all: two tables differ by unit
    changes along paths of the tree, a convex cost is least if none of these lowers it, and each
    changes a node by 1 at most.

    Time grows as ``n log(n)`` for n nodes on a few levels. Memory is about 350 bytes a node.
    """
    tree, order = arranged(parent)
    values, weights = values[order], weights[order]
    middle = np.rint(fitted(tree, values, weights)).astype(np.int64)
    room = np.full(tree.size, _ROOM)
    public = np.isinf(weights)
    while True:
        low, high = np.maximum(middle - room, 0), middle + room
        low[public] = high[public] = values[public]
        # The limits left by the nodes below are no reason to widen: theirs are.
        result = within(tree, values, weights, low, high)
        tight = ((result == low) & (low > 0) | (result == high)) & ~public
        if not tight.any():
            found = np.empty_like(result)
            found[order] = result
            return found
        room[tight] *= 4


def within(tree: Tree, values: NDArray[Any], weights: _Floats, low: Ints, high: Ints) -> Ints:
    """Return the integers with the least squares within limits.

    The least cost of a subtree is a convex function of its sum. So its increments, from one sum to
    the next, are the sorted increments of the children together, plus those of its own square.
    """
    low, high, result = low.copy(), high.copy(), np.zeros(tree.size, np.int64)
    least, merged = low.copy(), []
    # The increments of all nodes of a level, and the node that each belongs to.
    costs, owners = np.zeros(0), np.zeros(0, np.int64)
    for depth in reversed(range(tree.depth + 1)):
        nodes, below, inner = tree.level(depth), tree.below(depth), tree.inner[depth]
        least[inner] = tree.over_children(depth, low[below])
        low[inner] = np.maximum(low, least)[inner]
        high[inner] = np.minimum(high[inner], tree.over_children(depth, high[below]))
        sizes = (high - low)[nodes]
        if (sizes < 0).any():
            raise RuntimeError("no integers within the limits add up")
        parents = tree.parents[owners]
        order = _sorted_within(parents, costs)
        # The increments of the children of a node are next to each other, from its least sum on.
        starts = np.searchsorted(parents, inner)
        merged.append((owners[order], starts))
        inside = costs[order[_ranges(starts + (low - least)[inner], (high - low)[inner])]]
        owners = np.repeat(np.arange(nodes.start, nodes.stop), sizes)
        costs = np.repeat(weights[nodes], sizes)
        # From the low end of each node on, 2 more with each step.
        ends = np.cumsum(sizes)
        steps = np.repeat(2 * ((low - values)[nodes] - ends + sizes) + 1, sizes)
        steps += 2 * np.arange(len(steps))
        costs *= steps
        if inner.size:
            costs[np.repeat(tree.children[nodes] > 0, sizes)] += inside
    roots = tree.level(0)
    result[roots] = low[roots] + np.bincount(owners[costs < 0], minlength=tree.roots)
    for depth, (owners, starts) in enumerate(merged[:0:-1]):
        below, inner = tree.below(depth), tree.inner[depth]
        taken = owners[_ranges(starts, (result - least)[inner])] - below.start
        result[below] = low[below] + np.bincount(taken, minlength=below.stop - below.start)
    return result


def _ranges(starts: Ints, sizes: Ints) -> Ints:
    """Return the integers of ranges of these starts and sizes, one range after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if ends.size else 0)


def _sorted_within(groups: Ints, costs: _Floats) -> Ints:
    """Return the order by cost in each group, where groups are sorted: ``lexsort``, but faster.

    Of few different costs, as those of integers are, a count of 16 bits at a time sorts numbers for
    group and cost.
    """
    if not costs.size:
        return np.lexsort((costs, groups))
    least, most = costs.min(), costs.max()
    if most - least < _SPAN and (np.floor(costs) == costs).all():
        # Those of integers are counted, not sorted.
        codes = (costs - least).astype(np.int64)
        ranks = np.cumsum(np.bincount(codes) > 0) - 1
        codes, many = ranks[codes], int(ranks[-1]) + 1
        if many > _FEW:
            return np.lexsort((costs, groups))
    else:
        known = np.unique(costs)
        if (many := known.size) > _FEW:
            return np.lexsort((costs, groups))
        codes = np.searchsorted(known, costs)
    left = (groups - groups[0]) * many + codes
    order = np.argsort((left & 0xFFFF).astype(np.uint16), kind="stable")
    while (left >> 16).any():
        left = left >> 16
        order = order[np.argsort((left & 0xFFFF).astype(np.uint16)[order], kind="stable")]
    return order


def fitted(tree: Tree, values: NDArray[Any], weights: _Floats) -> _Floats:
    """Return the real numbers with the least squares that are not negative and add up.

    Each round solves the least squares in two passes, from the leaves to the roots and back, and
    holds leaves that are negative at 0 from then on. The inverse of the matrix of the squares,
    which is ultrametric, has no positive entry off its diagonal (Martinez, Michon and San Martin
    1994): raising a leaf to 0 lowers the others. So no leaf is held in vain (Chandrasekaran 1970),
    and there are no more rounds than leaves; usually there are about ten.
    """
    with np.errstate(divide="ignore"):
        noise = 1 / weights
    values, leaf = values.astype(np.float64), tree.children == 0
    while True:
        result = LeastSquares(tree, noise)(values)
        negative = leaf & (result < 0)
        if not negative.any():
            return result
        noise[negative] = values[negative] = 0.0
