"""Remaps, against brute force and against a linear program over all private mechanisms.

The theorems: for counts 0 to n, the best remap of a geometric release is as good as the best
mechanism with the same privacy loss, for every prior and every loss that does not fall with the
distance (Ghosh, Roughgarden and Sundararajan), and in the worst case (Gupte and Sundararajan).
"""

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from numpy.typing import NDArray
from remap import absolute, bayes, minimax, risk
from scipy import optimize, sparse

from exact import censored

Floats = NDArray[np.float64]

#: The error of an optimum by HiGHS, relative to the greatest loss. Constraints hold to 1e-9, which
#: moves the optimum by that times the sum of the dual values.
SOLVED = 1e-7

EPSILONS = [0.02, 0.3, 1.0, 2.5]
each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)


def expected_loss(epsilon: Any, prior: Any, loss: Any, remap: Any = None) -> float:
    weights = np.asarray(prior)
    return float(weights @ risk(epsilon, loss, remap) / weights.sum())


# The linear program over all mechanisms


@functools.lru_cache(64)
def privacy(epsilon: float, n: int) -> sparse.csr_array:
    """Return the rows of ``P[x, y] - exp(epsilon) P[x', y] <= 0``, for neighbours x and x'."""
    factor = math.exp(epsilon)
    up = sparse.eye_array(n, n + 1) - factor * sparse.eye_array(n, n + 1, k=1)
    down = sparse.eye_array(n, n + 1, k=1) - factor * sparse.eye_array(n, n + 1)
    return sparse.kron(sparse.vstack([up, down]), sparse.eye_array(n + 1)).tocsr()


def solve(objective: Floats, rows: Any, sums: Any) -> float:
    solution = optimize.linprog(
        objective,
        A_ub=rows,
        b_ub=np.zeros(rows.shape[0]),
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    assert solution.success
    return float(solution.fun)


def best_of_all(epsilon: float, prior: Floats, loss: Floats) -> float:
    """Return the least expected loss of all mechanisms with privacy loss at most epsilon."""
    n = len(prior) - 1
    sums = sparse.kron(sparse.eye_array(n + 1), np.ones((1, n + 1)))
    weights = (prior / prior.sum())[:, np.newaxis]
    return solve((weights * loss).ravel(), privacy(epsilon, n), sums)


def least_worst_of_all(epsilon: float, loss: Floats) -> float:
    """Return the least worst-case loss of all mechanisms with privacy loss at most epsilon."""
    n = len(loss) - 1
    sums = sparse.kron(sparse.eye_array(n + 1), np.ones((1, n + 1)))
    private = privacy(epsilon, n)
    risks = sparse.block_diag([sparse.csr_array(row[np.newaxis]) for row in loss])
    rows = sparse.vstack(
        [
            sparse.hstack([private, sparse.csr_array((private.shape[0], 1))]),
            sparse.hstack([risks, sparse.csr_array(-np.ones((n + 1, 1)))]),
        ]
    )
    objective = np.append(np.zeros((n + 1) ** 2), 1)
    return solve(objective, rows, sparse.hstack([sums, sparse.csr_array((n + 1, 1))]))


def priors(n: int) -> dict[str, Floats]:
    x = np.arange(n + 1)
    rng = np.random.default_rng(n)
    return {
        "uniform": np.ones(n + 1),
        "point": np.where(x == n // 2, 1.0, 0.0),
        "nearly a point": np.where(x == n // 3, 1.0, 1e-3),
        "skewed": 0.5**x,
        "at both ends": np.where((x == 0) | (x == n), 1.0, 0.05),
        "even only": (x % 2 == 0) * 1.0,
        "random": rng.dirichlet(np.full(n + 1, 0.3)),
    }


def losses(n: int) -> dict[str, Floats]:
    """Return losses that do not fall with the distance."""
    d = absolute(n)
    rng = np.random.default_rng(n)
    steps = rng.exponential(size=n + 1) * rng.integers(0, 2, n + 1)
    each = np.cumsum(rng.exponential(size=(n + 1, n + 1)), axis=1)
    return {
        "absolute": d * 1.0,
        "squared": d**2.0,
        "zero-one": (d > 0) * 1.0,
        "capped": np.minimum(d, 2.0),
        "more than one": (d > 1) * 1.0,
        "random": np.cumsum(steps)[d],
        # A different function of the distance for each true count.
        "random by count": np.take_along_axis(each, d, axis=1),
    }


@each_epsilon
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
def test_bayes_is_the_best_of_all_mechanisms(epsilon: float, n: int) -> None:
    gains = []
    for (_, prior), (_, loss) in itertools.product(priors(n).items(), losses(n).items()):
        best = best_of_all(epsilon, prior, loss)
        found = expected_loss(epsilon, prior, loss, bayes(epsilon, prior, loss))
        assert abs(found - best) <= SOLVED * max(1, loss.max())
        gains.append(expected_loss(epsilon, prior, loss) - found)
    assert min(gains) > -1e-12
    assert max(gains) > 0.01


@each_epsilon
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_minimax_is_the_best_of_all_mechanisms(epsilon: float, n: int) -> None:
    gains = []
    for loss in losses(n).values():
        best = least_worst_of_all(epsilon, loss)
        found = risk(epsilon, loss, minimax(epsilon, loss)).max()
        assert abs(found - best) <= SOLVED * max(1, loss.max())
        gains.append(risk(epsilon, loss).max() - found)
    assert min(gains) > -1e-12
    assert n == 1 or max(gains) > 1e-3


@pytest.mark.parametrize("n", [2, 5, 8])
@each_epsilon
def test_asymmetric_losses(epsilon: float, n: int) -> None:
    """Beyond the theorems: losses three times as great above the true count as below it."""
    x = np.arange(n + 1)
    loss = np.where(x > x[:, np.newaxis], 3.0, 1.0) * absolute(n)
    for prior in priors(n).values():
        found = expected_loss(epsilon, prior, loss, bayes(epsilon, prior, loss))
        assert abs(found - best_of_all(epsilon, prior, loss)) <= SOLVED * loss.max()


def test_falling_loss_needs_another_mechanism() -> None:
    """The theorems need their condition: for the parity, randomised response is better."""
    n, epsilon = 4, 0.5
    prior, loss = np.ones(n + 1), absolute(n) % 2 * 1.0
    assert best_of_all(epsilon, prior, loss) <= 1 / (1 + math.exp(epsilon)) + SOLVED
    assert expected_loss(epsilon, prior, loss, bayes(epsilon, prior, loss)) > 0.39
    assert abs(least_worst_of_all(epsilon, loss) - 1 / (1 + math.exp(epsilon))) < SOLVED
    assert risk(epsilon, loss, minimax(epsilon, loss)).max() > 0.4


# Against brute force


def brute_force(epsilon: Any, prior: list[int], loss: NDArray[Any]) -> list[int]:
    """Return the best estimates; among ties the nearest, then the smaller."""
    n = len(prior) - 1
    masses = [censored(epsilon, n, x) for x in range(n + 1)]
    table = []
    for y in range(n + 1):
        costs = [
            sum(prior[x] * masses[x][y] * mpf(float(loss[x, z])) for x in range(n + 1))
            for z in range(n + 1)
        ]
        least = min(costs)
        ties = [z for z in range(n + 1) if costs[z] <= least * (1 + mpf(10) ** -12)]
        # Floats can tell the others apart.
        assume(all(z in ties or costs[z] > least * (1 + mpf(10) ** -10) for z in range(n + 1)))
        table.append(min(ties, key=lambda z: (abs(z - y), z)))
    return table


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_table_against_brute_force(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    epsilon = data.draw(st.sampled_from([0.01, 0.1, Fraction(1, 3), 0.5, 1, 2.5, 20]))
    weights = st.integers(0, 5) | st.sampled_from([0, 1, 10**6])
    prior = data.draw(st.lists(weights, min_size=n + 1, max_size=n + 1).filter(any))
    loss = data.draw(st.sampled_from(list(losses(n).values())))
    with mpmath.workdps(50):
        expected = brute_force(epsilon, prior, loss)
    assert bayes(epsilon, prior, loss).tolist() == expected


def test_ties_that_rounding_could_break() -> None:
    """In exact arithmetic all estimates between the inner two of four counts are equally good."""
    for n, epsilon in itertools.product((6, 20, 100), np.linspace(0.01, 1, 40)):
        prior = np.zeros(n + 1)
        prior[[0, 1, n - 1, n]] = 1
        assert bayes(epsilon, prior, absolute(n))[n // 2] == n // 2


@pytest.mark.parametrize("n", [1, 5])
@each_epsilon
def test_risk_against_brute_force(epsilon: float, n: int) -> None:
    rng = np.random.default_rng(n)
    loss = rng.exponential(size=(n + 1, n + 1))
    table = rng.integers(0, n + 1, n + 1)
    rows = rng.dirichlet(np.ones(n + 1), n + 1)
    with mpmath.workdps(50):
        masses = [censored(epsilon, n, i) for i in range(n + 1)]
    x, y, z = itertools.repeat(range(n + 1), 3)
    plain = [sum(masses[i][j] * loss[i, j] for j in y) for i in x]
    looked_up = [sum(masses[i][j] * loss[i, table[j]] for j in y) for i in x]
    drawn = [sum(masses[i][j] * rows[j, k] * loss[i, k] for j in y for k in z) for i in x]
    for remap, risks in ((None, plain), (table, looked_up), (rows, drawn)):
        np.testing.assert_allclose(risk(epsilon, loss, remap), np.array(risks, float), rtol=1e-13)


def test_minimax_raises_if_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = optimize.OptimizeResult(success=False, message="none")
    monkeypatch.setattr(optimize, "linprog", lambda *args, **kwargs: failure)
    with pytest.raises(RuntimeError, match="not solved: none"):
        minimax(1, absolute(3))
