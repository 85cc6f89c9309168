"""Trees of noisy counts: the least squares that add up, in two passes, and their errors.

Nodes are in order of depth, and the children of a node are next to each other; the root is first.
The noise of a node has the variance of its depth. ``docs/proofs.md``, section 17, derives the
formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._analysis import weighted
from geomdp._analysis.weighted import Floats, Term

Ints = NDArray[np.int64]

#: The least variance that counts, as a part of the greatest.
_LEAST = 1e-12
#: Greater rates count as this one, whose noise has probability 1e-260.
_MOST = 600.0


class Tree:
    """The parent of each node, which comes before it; that of the root is -1."""

    def __init__(self, parents: Ints) -> None:
        self.parents = parents
        self.size = len(parents)
        #: The number of children of each node, and the first child.
        self.children = np.bincount(parents[1:], minlength=self.size)
        self.first = 1 + np.cumsum(self.children) - self.children
        self.starts = [0, 1]
        while (end := self._end(self.starts[-1])) > self.starts[-1]:
            self.starts.append(end)
        self.leaves = np.flatnonzero(self.children == 0)

    def _end(self, start: int) -> int:
        """Return the end of the level of the children of the level that ends here."""
        before = self.starts[-2]
        return start + int(self.children[before:start].sum())

    @property
    def depth(self) -> int:
        """The depth of the deepest leaves; that of the root is 0."""
        return len(self.starts) - 2

    def level(self, depth: int) -> slice:
        """Return the nodes of this depth."""
        return slice(self.starts[depth], self.starts[depth + 1])

    @cached_property
    def depths(self) -> Ints:
        """The depth of each node."""
        return np.repeat(np.arange(self.depth + 1), np.diff(self.starts))

    @cached_property
    def inner(self) -> list[Ints]:
        """The nodes with children of each depth above the last."""
        return [
            self.starts[d] + np.flatnonzero(self.children[self.level(d)]) for d in range(self.depth)
        ]

    def below(self, depth: int) -> slice:
        """Return the children of the nodes of this depth."""
        return self.level(depth + 1)

    def over_children(
        self, depth: int, values: NDArray[Any], over: np.ufunc = np.add
    ) -> NDArray[Any]:
        """Return the sums over the children of the inner nodes of a depth, from all children's."""
        places = self.first[self.inner[depth]] - self.below(depth).start
        return over.reduceat(values, places, axis=0)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of leaves, and the sums of those below each other node."""
        found = values.copy()
        for depth in reversed(range(self.depth)):
            found[self.inner[depth]] = self.over_children(depth, found[self.below(depth)])
        return found


class LeastSquares:
    """The unbiased estimates of least variance that add up, for these variances by depth.

    The pass up combines the noisy count of a node with the sum of its children, by the inverses of
    their variances; the pass down gives each child its part of what is left, by its variance.
    """

    def __init__(self, tree: Tree, rates: Sequence[float]) -> None:
        self.tree = tree
        by_depth = np.array([weighted.variance(rate) for rate in rates])
        #: The variances of the noise. A lower bound keeps the numerics in order.
        self.noise = np.maximum(by_depth, by_depth.max() * _LEAST)[tree.depths]
        below = np.zeros(tree.size)
        own = self.noise.copy()
        for depth in reversed(range(tree.depth)):
            inner = tree.inner[depth]
            below[inner] = tree.over_children(depth, own[tree.below(depth)])
            own[inner] = 1 / (1 / self.noise[inner] + 1 / below[inner])
        #: The variances of the sum of the children, and of the estimate from the subtree.
        self.below, self.own = below, own
        #: The parts of its noisy count, and of its children's sum, in a node's own estimate.
        self.weight = np.where(tree.children > 0, below / (self.noise + below), 1.0)
        self.rest = self.noise / (self.noise + below)
        #: The part of a node in what its parent has left to give.
        self.gain = np.zeros(tree.size)
        self.gain[1:] = own[1:] / below[tree.parents[1:]]

    def __call__(self, noisy: Floats) -> Floats:
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
            level = tree.below(depth)
            parents = tree.parents[level]
            found[level] += self.gain[level][more] * (found[parents] - sums[parents])
        return found

    @cached_property
    def variances(self) -> Floats:
        """The variance of the estimate of each node."""
        found: Floats = self.own.copy()
        for depth in range(self.tree.depth):
            level = self.tree.below(depth)
            parents = self.tree.parents[level]
            found[level] -= self.gain[level] ** 2 * (self.below[parents] - found[parents])
        return found

    def weights(self, functional: Floats) -> Floats:
        """Return the weight of each noise in a weighted sum of estimates.

        The estimates are ``H S**-1`` times the noisy counts, for their covariance matrix H and the
        diagonal matrix S of the variances of the noise. So a functional f has the weights
        ``S**-1 H f``: the estimates of ``S f``, over S.
        """
        found: Floats = self(self.noise * functional) / self.noise
        return found


class Reaches:
    """How far estimates are from the true counts, given the rates of the noise by depth."""

    #: The most kinds of nodes, and kinds times nodes, for which each kind has all its weights.
    most, most_in_all = 64, 5 * 10**6

    def __init__(self, tree: Tree, rates: Sequence[Fraction | float]) -> None:
        self.rates = [float(min(rate, _MOST)) for rate in rates]
        self.squares = LeastSquares(tree, self.rates)

    def of_sum(self, functional: Floats, level: float) -> float:
        """Return the reach of a weighted sum of estimates at this level."""
        return weighted.reach(self.terms(functional), level)

    def terms(self, functional: Floats) -> list[Term]:
        tree = self.squares.tree
        weights = np.abs(self.squares.weights(functional))
        found = []
        for depth, rate in enumerate(self.rates):
            values, counts = np.unique(weights[tree.level(depth)], return_counts=True)
            used = values > 0
            found.append(Term(rate, values[used], counts[used].astype(np.float64)))
        return found

    @property
    def one_by_one(self) -> bool:
        """Whether each kind of nodes has all weights of its own."""
        kinds, _ = self.kinds
        return len(kinds) <= self.most and len(kinds) * self.squares.tree.size <= self.most_in_all

    def of_nodes(self, level: float) -> Floats:
        """Return the reach of each node at this level."""
        kinds, kind_of = self.kinds
        if not self.one_by_one:
            return self._in_passes(kinds, level)[kind_of]
        found = np.empty(len(kinds))
        functional = np.zeros(self.squares.tree.size)
        for place, node in enumerate(kinds):
            functional[node] = 1
            found[place] = self.of_sum(functional, level)
            functional[node] = 0
        return found[kind_of]

    @cached_property
    def kinds(self) -> tuple[Ints, Ints]:
        """A node of each kind, and the kind of each node; equal kinds have equal distributions.

        A node's shape is its depth and the shapes of its children. Its kind is its shape and the
        kind of its parent.
        """
        tree = self.squares.tree
        shapes = np.zeros(tree.size, np.int64)
        for depth in reversed(range(tree.depth)):
            inner, below = tree.inner[depth], tree.below(depth)
            if not shapes[below].any():  # All of them are leaves.
                shapes[inner] = tree.children[inner]
                continue
            order = np.lexsort((shapes[below], tree.parents[below]))
            under = shapes[below][order]
            known = 1
            for n in np.unique(tree.children[inner]):
                some = inner[tree.children[inner] == n]
                rows = under[(tree.first[some] - below.start)[:, None] + np.arange(n)]
                _, which = np.unique(rows, axis=0, return_inverse=True)
                shapes[some] = known + which.reshape(-1)
                known += int(which.max()) + 1
        kind_of = np.zeros(tree.size, np.int64)
        known = 1
        for depth in range(tree.depth):
            level = tree.below(depth)
            pairs = kind_of[tree.parents[level]] * tree.size + shapes[level]
            _, which = np.unique(pairs, return_inverse=True)
            kind_of[level] = known + which.reshape(-1)
            known += int(which.max()) + 1
        _, kinds = np.unique(kind_of, return_index=True)
        return kinds, kind_of

    def _in_passes(self, nodes: Ints, level: float) -> Floats:
        """Return the reach of these nodes from the variance and the greatest weight of each.

        The noise of the node itself counts exactly. For the others, the cumulants of a noise are
        not negative, so ``log E[exp(u Z)] / u**2`` grows with u: in the exponential bound, all
        others together are at most as far out as if each had the greatest weight.
        """
        squares, rates = self.squares, np.asarray(self.rates)
        rate_of = rates[squares.tree.depths[nodes]]
        first = (squares.variances / squares.noise)[nodes]
        # More than the rounding errors of the difference.
        whole = squares.variances[nodes]
        rest = np.maximum(whole - first**2 * squares.noise[nodes], 0) + 1e-9 * whole
        widest = self._widest()[nodes] * (1 + 1e-9)
        limit = np.minimum(rate_of / first, 1 / np.maximum(widest, 1e-300))
        # For each part of the greatest tilt, the greatest ratio of a logarithm to its first term.
        parts = np.append(weighted.TILTS, 1.0)
        ratios = np.max(
            [
                weighted.log_mgf(rate, parts * rate)
                / ((parts * rate) ** 2 / 2 * weighted.variance(rate))
                for rate in set(self.rates)
            ],
            axis=0,
        )
        found = np.full(len(nodes), np.inf)
        for part in parts:
            tilts = part * limit
            place = np.minimum(np.searchsorted(parts, tilts * widest), len(parts) - 1)
            total = np.log(2 / level) + tilts**2 * rest / 2 * ratios[place]
            for rate in set(self.rates):
                some = rate_of == rate
                total[some] += weighted.log_first(rate, tilts[some] * first[some])
            found = np.minimum(found, total / tilts)
        return found * (1 + 1e-9)

    def _widest(self) -> Floats:
        """Return the greatest weight over rate in each estimate, but for the node's own noise.

        The weight of the noise of u in the estimate of v is their covariance over the variance of
        the noise of u. That of a node and one below it is the variance of the upper one times the
        gains between them; that of two children of p is the product of their gains times
        ``variance(p) - below(p)``; and every gain on the way to them is a factor.
        """
        squares, tree = self.squares, self.squares.tree
        own = 1 / (squares.noise * np.asarray(self.rates)[tree.depths])
        down, beside = np.zeros(tree.size), np.zeros(tree.size)
        for depth in reversed(range(tree.depth)):
            inner, below = tree.inner[depth], tree.below(depth)
            reached = squares.gain[below] * np.maximum(own[below], down[below])
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
            siblings = (squares.below[p] - squares.variances[p]) * beside[level]
            upper = np.maximum(squares.variances[p] * own[p], siblings)
            out[level] = squares.gain[level] * np.maximum(out[p], upper)
        return np.maximum(out, squares.variances * down)
