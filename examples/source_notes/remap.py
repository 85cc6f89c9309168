"""Optimal estimates from releases, on average or in the worst case.

One release by the geometric mechanism serves every user: for any prior on the true count, and any
loss that does not fall with the distance, some function of the release is as good as the best
mechanism with the same privacy loss. Ghosh, Roughgarden and Sundararajan (*Universally
utility-maximizing privacy mechanisms*, 2012) prove it for the expected loss (:func:`bayes`), Gupte
and Sundararajan (*Universally optimal privacy mechanisms for minimax agents*, 2010) for the worst
case (:func:`minimax`).

A remap sees only the release, so it costs no privacy (``docs/proofs.md``, theorem 7) and need not
take constant time. It is computed in floats, for the ideal distribution; the sampled one is within
``2**-50`` of it. Counts and releases are from 0 to n, one record changes a count by one, and a loss
is a matrix: the cost of each estimate (columns) at each true count (rows).
"""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse

from geomdp.distribution import CensoredGeometric

Floats = NDArray[np.float64]

#: Exceeds the relative error of an expected loss, a sum of nonnegative terms.
TIE = 1e-11


def absolute(n: int) -> NDArray[np.int64]:
    """Return the loss that is the distance between estimate and true count."""
    return np.abs(np.arange(n + 1)[:, np.newaxis] - np.arange(n + 1))


def distribution(epsilon: float | Fraction, n: int) -> Floats:
    """Return the probabilities of releases (columns) for each true count (rows)."""
    counts, scale = np.arange(n + 1), 1 / Fraction(str(epsilon))
    return CensoredGeometric(counts[:, np.newaxis], scale, (0, n)).pmf(counts)


def bayes(epsilon: float | Fraction, prior: ArrayLike, loss: ArrayLike) -> NDArray[np.intp]:
    """Return the estimate for each release that has the least expected loss for a prior.

    No mechanism with the privacy loss epsilon has a smaller expected loss, if the loss does not
    fall with the distance. The prior has a weight for each true count. Among estimates that are
    equally good, within 1e-11, it is the one nearest to the release, and the smaller of two.
    """
    losses = np.asarray(loss)
    n = len(losses) - 1
    expected = (distribution(epsilon, n).T * np.asarray(prior)) @ losses
    good = expected <= expected.min(axis=1, keepdims=True) * (1 + TIE)
    places = np.arange(n + 1)
    away = places - places[:, np.newaxis]
    order = np.where(good, 2 * np.abs(away) + (away > 0), 2 * n + 2)
    return order.argmin(axis=1)


def minimax(epsilon: float | Fraction, loss: ArrayLike) -> Floats:
    """Return probabilities of estimates (columns) for releases, with the least worst expected loss.

    The worst case is over the true counts. No mechanism with the privacy loss epsilon has a smaller
    one, if the loss does not fall with the distance. A linear program finds it to about a
    millionth; if there are several, the version of scipy decides which one.
    """
    losses = np.asarray(loss)
    size = len(losses)
    masses = distribution(epsilon, size - 1)
    # The last variable is the worst case: in units of that of the release itself, at most 1.
    worst = risk(epsilon, loss).max() or 1
    shares = (masses[:, :, np.newaxis] * losses[:, np.newaxis, :]).reshape(size, -1) / worst
    solution = optimize.linprog(
        np.append(np.zeros(size * size), 1),
        A_ub=np.column_stack([shares, -np.ones(size)]),
        b_ub=np.zeros(size),
        A_eq=sparse.hstack(
            [sparse.kron(sparse.eye_array(size), np.ones((1, size))), sparse.csr_array((size, 1))]
        ),
        b_eq=np.ones(size),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    found = np.maximum(solution.x[:-1], 0).reshape(size, size)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def risk(epsilon: float | Fraction, loss: ArrayLike, remap: ArrayLike | None = None) -> Floats:
    """Return the expected loss at each true count, with a relative error below 1e-11.

    The remap is what :func:`bayes` or :func:`minimax` returns; without it, the release itself is
    the estimate.
    """
    losses = np.asarray(loss)
    rows = np.eye(len(losses)) if remap is None else np.asarray(remap)
    if rows.ndim == 1:
        rows = np.eye(len(losses))[rows]
    return np.asarray((distribution(epsilon, len(losses) - 1) @ rows * losses).sum(axis=1))
