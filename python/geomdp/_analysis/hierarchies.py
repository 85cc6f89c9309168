"""Trees of noisy counts: the errors of the least squares.

There is one root, and the noise of a node has the variance of its depth. ``docs/proofs.md``,
section 17, derives the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

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
        kinds, _ = self.squares.tree.kinds
        return len(kinds) <= self.most and len(kinds) * self.squares.tree.size <= self.most_in_all

    def of_nodes(self, level: float) -> Floats:
        """Return the reach of each node at this level."""
        kinds, kind_of = self.squares.tree.kinds
        if not self.one_by_one:
            return self._in_passes(kinds, level)[kind_of]
        found = np.empty(len(kinds))
        functional = np.zeros(self.squares.tree.size)
        for place, node in enumerate(kinds):
            functional[node] = 1
            found[place] = self.of_sum(functional, level)
            functional[node] = 0
        return found[kind_of]

    def _in_passes(self, nodes: Ints, level: float) -> Floats:
        """Return the reach of these nodes from the variance and the greatest weight of each.

        The noise of the node itself counts exactly. For the others, the cumulants of a noise are
        not negative, so ``log E[exp(u Z)] / u**2`` grows with u: in the exponential bound, all
        others together are at most as far out as if each had the greatest weight.
        """
        squares = self.squares
        depths, rates = squares.tree.depths, np.asarray(self.rates)
        first = (squares.variances / squares.noise)[nodes]
        # More than the rounding errors of the difference.
        whole = squares.variances[nodes]
        rest = np.maximum(whole - first**2 * squares.noise[nodes], 0) + 1e-9 * whole
        widest = squares.widest(1 / rates[depths])[nodes]
        return weighted.by_cumulants(
            (rates[depths[nodes]], first), (rest, widest), self.rates, level
        )
