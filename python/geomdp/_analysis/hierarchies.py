"""Trees of noisy counts: the errors of the least squares.

There is one root, and the noise of a node has the variance of its depth. ``docs/proofs.md``,
section 17, derives the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from geomdp._analysis import weighted
from geomdp._analysis.trees import Ints, LeastSquares, Tree
from geomdp._analysis.weighted import Floats, Term

#: The least variance that counts, as a part of the greatest.
_LEAST = 1e-12
#: Greater rates count as this one, whose noise has probability 1e-260.
_MOST = 600.0


def least_squares(tree: Tree, rates: Sequence[float]) -> LeastSquares:
    """Return the least squares for these rates of the noise by depth."""
    by_depth = np.array([weighted.variance(rate) for rate in rates])
    # A lower bound keeps the numerics in order.
    return LeastSquares(tree, np.maximum(by_depth, by_depth.max() * _LEAST)[tree.depths])


class Reaches:
    """How far estimates are from the true counts, given the rates of the noise by depth."""

    #: The most kinds of nodes, and kinds times nodes, for which each kind has all its weights.
    most, most_in_all = 64, 5 * 10**6

    def __init__(self, tree: Tree, rates: Sequence[Fraction | float]) -> None:
        self.rates = [float(min(rate, _MOST)) for rate in rates]
        self.squares = least_squares(tree, self.rates)

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
