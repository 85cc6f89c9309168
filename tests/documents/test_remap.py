"""Remaps, against brute force and against a linear program over all private mechanisms.

The theorems: for counts 0 to n, the best remap of a geometric release is as good as the best
mechanism with the same privacy loss, for every prior and every loss that does not fall with the
distance (Ghosh, Roughgarden and Sundararajan), and in the worst case (Gupte and Sundararajan).
"""

import functools
import itertools
import math
import pickle
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from numpy.typing import NDArray
from remap import RandomisedRemap, Remap, bayes, expected_loss, minimax, risk
from scipy import optimize, sparse

import geomdp.measurement as m
from exact import censored
from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from statistics_ import rejects

Floats = NDArray[np.float64]

#: The error of an optimum by HiGHS, relative to the greatest loss. Constraints hold to 1e-9, which
#: moves the optimum by that times the sum of the dual values.
SOLVED = 1e-7

EPSILONS = [0.02, 0.3, 1.0, 2.5]
each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)


def mechanism(epsilon: Any, n: int) -> GeometricMechanism:
    return GeometricMechanism(epsilon, bounds=(0, n))


def distances(n: int) -> NDArray[np.int64]:
    return np.abs(np.arange(n + 1)[:, np.newaxis] - np.arange(n + 1))


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
    d = distances(n)
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
        mine = mechanism(epsilon, n)
        found = expected_loss(mine, prior, loss, bayes(mine, prior, loss))
        assert abs(found - best) <= SOLVED * max(1, loss.max())
        gains.append(expected_loss(mine, prior, loss) - found)
    assert min(gains) > -1e-12
    assert max(gains) > 0.01


@each_epsilon
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_minimax_is_the_best_of_all_mechanisms(epsilon: float, n: int) -> None:
    gains = []
    for loss in losses(n).values():
        best = least_worst_of_all(epsilon, loss)
        mine = mechanism(epsilon, n)
        found = risk(mine, loss, minimax(mine, loss)).max()
        assert abs(found - best) <= SOLVED * max(1, loss.max())
        gains.append(risk(mine, loss).max() - found)
    assert min(gains) > -1e-12
    assert n == 1 or max(gains) > 1e-3


@pytest.mark.parametrize("n", [2, 5, 8])
@each_epsilon
def test_asymmetric_losses(epsilon: float, n: int) -> None:
    """Beyond the theorems: losses three times as great above the true count as below it."""
    x = np.arange(n + 1)
    loss = np.where(x > x[:, np.newaxis], 3.0, 1.0) * distances(n)
    for prior in priors(n).values():
        mine = mechanism(epsilon, n)
        found = expected_loss(mine, prior, loss, bayes(mine, prior, loss))
        assert abs(found - best_of_all(epsilon, prior, loss)) <= SOLVED * loss.max()


def test_falling_loss_needs_another_mechanism() -> None:
    """The theorems need their condition: for the parity, randomised response is better."""
    n, epsilon = 4, 0.5
    prior, loss = np.ones(n + 1), distances(n) % 2 * 1.0
    mine = mechanism(epsilon, n)
    assert best_of_all(epsilon, prior, loss) <= 1 / (1 + math.exp(epsilon)) + SOLVED
    assert expected_loss(mine, prior, loss, bayes(mine, prior, loss)) > 0.39
    assert abs(least_worst_of_all(epsilon, loss) - 1 / (1 + math.exp(epsilon))) < SOLVED
    assert risk(mine, loss, minimax(mine, loss)).max() > 0.4


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
    n = data.draw(st.integers(0, 6))
    epsilon = data.draw(st.sampled_from([0.01, 0.1, Fraction(1, 3), 0.5, 1, 2.5, 20]))
    weights = st.integers(0, 5) | st.sampled_from([0, 1, 10**6])
    prior = data.draw(st.lists(weights, min_size=n + 1, max_size=n + 1).filter(any))
    loss = data.draw(st.sampled_from(list(losses(max(n, 1)).values())))[: n + 1, : n + 1]
    with mpmath.workdps(50):
        expected = brute_force(epsilon, prior, loss)
    assert bayes(mechanism(epsilon, n), prior, loss).table.tolist() == expected


def test_ties_that_rounding_could_break() -> None:
    """In exact arithmetic all estimates between the inner two of four counts are equally good."""
    for n, epsilon in itertools.product((6, 20, 100), np.linspace(0.01, 1, 40)):
        prior = np.zeros(n + 1)
        prior[[0, 1, n - 1, n]] = 1
        assert bayes(mechanism(epsilon, n), prior, "absolute").table[n // 2] == n // 2


@pytest.mark.parametrize("n", [0, 1, 5])
@each_epsilon
def test_risk_against_brute_force(epsilon: float, n: int) -> None:
    mine = mechanism(epsilon, n)
    rng = np.random.default_rng(n)
    loss = rng.exponential(size=(n + 1, n + 1))
    table = rng.integers(0, n + 1, n + 1)
    rows = rng.dirichlet(np.ones(n + 1), n + 1)
    with mpmath.workdps(50):
        masses = [censored(epsilon, n, i) for i in range(n + 1)]
    x, y, z = itertools.repeat(range(n + 1), 3)
    expected = {
        None: [sum(masses[i][j] * loss[i, j] for j in y) for i in x],
        Remap((0, n), table): [sum(masses[i][j] * loss[i, table[j]] for j in y) for i in x],
        RandomisedRemap((0, n), rows): [
            sum(masses[i][j] * rows[j, k] * loss[i, k] for j in y for k in z) for i in x
        ],
    }
    prior = rng.exponential(size=n + 1)
    for function, risks in expected.items():
        np.testing.assert_allclose(risk(mine, loss, function), np.array(risks, float), rtol=1e-14)
        mean = sum(p * one for p, one in zip(prior, risks, strict=True)) / sum(prior)
        assert abs(expected_loss(mine, prior, loss, function) / float(mean) - 1) < 1e-14


# Extremes


@pytest.mark.parametrize("greatest", [1.0, 1e308])
def test_priors_of_all_magnitudes(greatest: float) -> None:
    prior = np.zeros(61)
    prior[[0, 60]] = 5e-324, greatest
    table = bayes(mechanism(30, 60), prior, "zero-one").table
    with mpmath.workdps(50):
        ratio = mpmath.log(mpf(5e-324) / mpf(greatest))
        last = max(y for y in range(61) if ratio - 30 * y > -30 * (60 - y))
    assert 0 < last < 30
    assert table.tolist() == [0] * (last + 1) + [60] * (60 - last)


@pytest.mark.parametrize("factor", [5e-324, 1e-300, 1e-9, 1e9, 1e306])
def test_units_of_prior_and_loss_do_not_matter(factor: float) -> None:
    mine, prior, loss = mechanism(0.3, 20), priors(20)["random"], distances(20) * factor
    table = bayes(mine, prior, "absolute").table
    np.testing.assert_array_equal(bayes(mine, prior, loss).table, table)
    if factor > 5e-324:
        np.testing.assert_array_equal(bayes(mine, prior * factor, "absolute").table, table)
    np.testing.assert_allclose(
        minimax(mine, loss).probabilities, minimax(mine, "absolute").probabilities, atol=1e-9
    )
    great = expected_loss(mine, np.full(21, 1.7e308), "absolute")
    assert abs(great - risk(mine, "absolute").mean()) < 1e-13


def test_losses_by_name_function_and_array() -> None:
    mine, prior, d = mechanism(0.4, 9), np.arange(10), distances(9)
    for name, function, array in (
        ("absolute", lambda k: k, d),
        ("squared", lambda k: k**2, d.astype(np.float32) ** 2),
        ("zero-one", lambda k: (k > 0).astype(np.uint8), (d > 0).astype(int).tolist()),
    ):
        tables = [bayes(mine, prior, loss).table.tolist() for loss in (name, function, array)]
        assert tables[0] == tables[1] == tables[2]


def test_no_noise_keeps_the_release() -> None:
    exact = GeometricMechanism.from_scale(0, bounds=(-3, 3))
    for loss in ("absolute", "squared", "zero-one"):
        assert bayes(exact, np.ones(7), loss).table.tolist() == list(range(-3, 4))
        np.testing.assert_array_equal(minimax(exact, loss).probabilities, np.eye(7))
        assert not risk(exact, loss).any()


def test_numbers_of_outputs() -> None:
    estimate = bayes(mechanism(0.01, 4095), np.ones(4096), "absolute")
    # The release itself far from the ends, and the posterior median at them: ln 2 / 0.01.
    assert (estimate.table[2048], estimate.table[0]) == (2048, 69)
    assert minimax(mechanism(4, 127), "absolute").probabilities.shape == (128, 128)
    with pytest.raises(ValueError, match=r"bounds = \(0, 4096\) .* give at most 4096 outputs"):
        risk(mechanism(1, 4096), "absolute")
    with pytest.raises(ValueError, match=r"bounds = \(0, 128\) .* give at most 128 outputs"):
        minimax(mechanism(1, 128), "absolute")


# Applying a remap

LOWER = 10
#: For five outputs.
LOOKUP = Remap((LOWER, LOWER + 4), np.array([11, 11, 12, 13, 13]))
RANDOM = RandomisedRemap((LOWER, LOWER + 4), np.eye(5)[[1, 1, 2, 3, 3]])
each_function = pytest.mark.parametrize("function", [LOOKUP, RANDOM])


@each_function
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(function: Any, dtype: str, order: Any) -> None:
    released = np.array([[10, 14, 12], [11, 13, 10]], np.dtype(dtype).newbyteorder(order))
    expected = np.array([[11, 13, 12], [11, 13, 11]])
    for index in (np.s_[:], np.s_[:, ::-1], np.s_[:0], np.s_[0, 1]):
        array = released[index]
        estimates = pickle.loads(pickle.dumps(function))(array)
        np.testing.assert_array_equal(estimates, expected[index])
        assert (type(estimates), estimates.dtype) == (type(array), array.dtype)
    assert function(released.tolist()).tolist() == expected.tolist()
    assert type(function(10)) is int
    assert function([]).shape == (0,)


@each_function
def test_released_outside_the_bounds_raises(function: Any) -> None:
    for bad in (9, 15, -1, 10**30, [10, 15], np.array([9]), np.int8(-128), np.uint64(2**64 - 1)):
        with pytest.raises(ValueError, match="released counts outside 10 to 14, the bounds"):
            function(bad)
    for bad in (None, "10", True, 10.0, [10.0], np.array([10.0]), np.ma.array([10]), [True]):
        with pytest.raises(TypeError):
            function(bad)
    for dtype in ("uint8", "int8"):
        with pytest.raises(OverflowError, match=rf"dtype {dtype} .* holds the bounds \(0, 300\)"):
            Remap((0, 300), np.arange(301))(np.zeros(0, dtype))


@pytest.mark.parametrize(
    ("lower", "dtype"),
    [(-(2**63), np.int64), (2**63 - 5, np.int64), (2**63 - 2, np.uint64), (2**64 - 5, np.uint64)],
)
def test_edges_of_64_bits(lower: int, dtype: Any) -> None:
    bounds = lower, lower + 4
    mine = GeometricMechanism(0.5, bounds=bounds)
    table = bayes(mine, np.ones(5), "absolute")
    assert table.table.dtype == dtype
    assert table.table.tolist() == [lower + k for k in (1, 1, 2, 3, 3)]
    outputs = np.array([lower + k for k in range(5)], dtype)
    np.testing.assert_array_equal(table(outputs), table.table)
    estimates = minimax(mine, "zero-one")(outputs)
    assert all(lower <= int(estimate) <= lower + 4 for estimate in estimates)
    assert table(lower) == lower + 1


def test_remaps_are_immutable_copies() -> None:
    table, rows = np.array([0, 1, 1], dtype=np.int8), np.eye(3)
    lookup, randomised = Remap((0, 2), table), RandomisedRemap((0, 2), rows)
    table[0], rows[0] = 2, 9
    assert lookup.table.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(randomised.probabilities, np.eye(3))
    for array in (lookup.table, randomised.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        lookup.bounds = 0, 1  # type: ignore[misc]


def test_randomised_remap_follows_its_distribution() -> None:
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(5), 5)
    rows[0] = 0.25, 0, 0.5, 0, 0.25
    rows[4] = 0, 0, 0, 0, 1
    function = RandomisedRemap((-2, 2), rows)
    size = 40_000
    released = np.tile(np.arange(-2, 3, dtype=np.int8), size)
    estimates = function(released)
    for place, row in enumerate(rows):
        counts = np.bincount(estimates[released == place - 2] + 2, minlength=5)
        likely = row > 0
        assert not counts[~likely].any()
        if likely.sum() > 1:
            expected = row[likely] * size
            assert not rejects(counts[likely], expected)


def test_randomised_remap_draws_fresh_randomness() -> None:
    """Two calls are equal with probability 2**-1000, and so are all draws of one."""
    coin = RandomisedRemap((0, 1), np.full((2, 2), 0.5))
    released = np.zeros(1000, dtype=np.int64)
    assert coin(released).tolist() != coin(released).tolist()
    assert set(coin(released).tolist()) == {0, 1}
    np.random.seed(1)
    one = coin(released)
    np.random.seed(1)
    assert one.tolist() != coin(released).tolist()


def test_in_a_measurement() -> None:
    """Post-processing keeps the privacy map (theorem 7)."""
    bounds = 0, 20
    space = m.vector_domain(m.atom_domain(str)), m.symmetric_distance()
    counted = space >> m.then_count_by_categories(["yes", "no"]) >> m.then_geometric(2.0, bounds)
    estimated = counted >> Remap(bounds, np.full(21, 7))
    assert estimated.map(3) == counted.map(3) == 1.5
    assert estimated(["yes", "no", "yes"]).tolist() == [7, 7, 7]


# Input


def test_minimax_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ModuleNotFoundError) as error:
        minimax(mechanism(1, 3), "absolute")
    assert error.value.__notes__ == ["Needed here: pip install 'scipy>=1.16'"]
    assert bayes(mechanism(1, 3), np.ones(4), "absolute").table.tolist() == [0, 1, 2, 3]


def test_minimax_raises_if_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = optimize.OptimizeResult(success=False, message="none")
    monkeypatch.setattr(optimize, "linprog", lambda *args, **kwargs: failure)
    with pytest.raises(RuntimeError, match="not solved: none"):
        minimax(mechanism(1, 3), "absolute")


MINE = mechanism(0.5, 3)
WITH_LOSS: list[Callable[[Any], Any]] = [
    lambda loss: bayes(MINE, np.ones(4), loss),
    lambda loss: minimax(MINE, loss),
    lambda loss: risk(MINE, loss),
    lambda loss: expected_loss(MINE, np.ones(4), loss),
]
WITH_PRIOR: list[Callable[[Any], Any]] = [
    lambda prior: bayes(MINE, prior, "absolute"),
    lambda prior: expected_loss(MINE, prior, "absolute"),
]


def test_a_mechanism_without_bounds_raises() -> None:
    for call in (bayes, expected_loss):
        with pytest.raises(ValueError, match=r"mechanism = .* give one with bounds"):
            call(GeometricMechanism(0.5), np.ones(4), "absolute")
    for call in (minimax, risk):
        with pytest.raises(ValueError, match=r"mechanism = .* give one with bounds"):
            call(GeometricMechanism(0.5), "absolute")


@pytest.mark.parametrize("function", WITH_PRIOR)
def test_invalid_prior_raises(function: Callable[[Any], Any]) -> None:
    ones = np.ones(4)
    for bad in (None, b"1111", 1j * ones, ones > 0, [1, 1, 1, True], np.ma.array(ones)):
        with pytest.raises(TypeError, match="prior"):
            function(bad)
    for bad in (np.ones(3), np.ones((4, 1)), 1.0, "1", []):
        with pytest.raises(ValueError, match=r"prior is of shape .*: give one of shape \(4,\)"):
            function(bad)
    for value in (-1, math.nan, math.inf, -5e-324):
        for bad in ([1, 1, 1, value], np.array([value, 1, 1, 1])):
            with pytest.raises(ValueError, match=r"prior .*give .*finite number.*, not negative"):
                function(bad)
    with pytest.raises(ValueError, match="prior with no weight is not accepted"):
        function(np.zeros(4))
    with pytest.raises(OverflowError, match="prior"):
        function([10**400, 1, 1, 1])


@pytest.mark.parametrize("function", WITH_LOSS)
def test_invalid_loss_or_remap_raises(function: Callable[[Any], Any]) -> None:
    square = np.ones((4, 4))
    for bad in ("l1", "", "Absolute"):
        with pytest.raises(ValueError, match=r"loss = .* is not accepted: give 'absolute'"):
            function(bad)
    for bad in (None, square > 0, square * 1j, lambda d: d > 1, lambda d: None, b"absolute"):
        with pytest.raises(TypeError, match="loss"):
            function(bad)
    for bad in (np.ones(4), np.ones((4, 3)), 1, lambda d: 1.0, lambda d: d[1:], lambda d: square):
        with pytest.raises(ValueError, match=r"loss is of shape"):
            function(bad)
    for bad in (-square, square * math.nan, square * math.inf, lambda d: 1 - d):
        with pytest.raises(
            ValueError, match=r"loss has an item .* give a finite number, not negative"
        ):
            function(bad)
    with pytest.raises(TypeError, match="remap has type"):
        risk(MINE, "absolute", np.arange(4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"remap with bounds .* give one with \(0, 3\)"):
        risk(MINE, "absolute", Remap((1, 4), np.arange(1, 5)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Remap(None, np.arange(4)), TypeError, "bounds"),  # type: ignore[arg-type]
        (lambda: RandomisedRemap((0, 1.5), np.eye(4)), TypeError, "bounds"),  # type: ignore[arg-type]
        (lambda: Remap((3, 0), np.arange(4)), ValueError, "bounds"),
        (lambda: Remap((0, 3), np.arange(3)), ValueError, "table is of shape"),
        (
            lambda: Remap((0, 3), np.array([0, 1, 2, 4])),
            ValueError,
            "table is not within the bounds",
        ),
        (lambda: Remap((0, 3), np.ones(4)), TypeError, "float64"),  # type: ignore[arg-type]
        (
            lambda: RandomisedRemap((0, 3), np.eye(4) * 0.999),
            ValueError,
            "probabilities do not sum to 1",
        ),
        (lambda: RandomisedRemap((0, 1), np.ones(2)), ValueError, "probabilities is of shape"),
    ],
)
def test_invalid_table_or_probabilities_raise(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()
