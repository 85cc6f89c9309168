"""Sums on trees, against all tables of small numbers and another solver of least squares."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from geomdp.tables._math import trees

Ints = NDArray[np.int64]
Problem = tuple[Ints, Ints, NDArray[np.float64]]


def descent(parent: Ints) -> Ints:
    """Return the matrix that takes leaves to all nodes."""
    leaves = [node for node in range(len(parent)) if node not in parent]
    matrix = np.zeros((len(parent), len(leaves)), np.int64)
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            matrix[node, column] = 1
            node = int(parent[node])
    return matrix


@st.composite
def problems(draw: Any, most: int) -> Problem:
    """Draw a forest of nodes in any order, some inner ones without value, some public."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, most))
    order = rng.permutation(n)
    parent = np.full(n, -1)
    for place in range(1, n):
        if rng.random() < 0.9:
            parent[order[place]] = order[rng.integers(place)]
    values = rng.integers(-6, 8, n)
    weights = draw(st.sampled_from([rng.integers(1, 9, n) * 1.0, rng.uniform(0.01, 9, n)]))
    inner = np.isin(np.arange(n), parent)
    weights[inner & (rng.random(n) < 0.2)] = 0
    public = rng.random(n) < draw(st.sampled_from([0.1, 0.5]))
    weights[public] = np.inf
    matrix = descent(parent)
    exact = matrix @ rng.integers(0, 4, matrix.shape[1])
    return parent, np.where(public, exact, values), weights


def costs(x: Ints, values: Ints, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((x - values) ** 2 @ np.where(np.isinf(weights), 0.0, weights))


#: The light leaf takes all of a public total.
LIGHT = np.array([-1, 0, 0]), np.array([12, -6, 7]), np.array([np.inf, 8.0, 0.01])


@settings(max_examples=300)
@example(LIGHT)
@given(problems(9).filter(lambda problem: descent(problem[0]).shape[1] <= 4))
def test_closest_is_the_closest_of_all_tables(problem: Problem) -> None:
    parent, values, weights = problem
    matrix, public = descent(parent), np.isinf(weights)
    # A leaf above all values has only sums above all values over it, none of them public: one less
    # is no further away.
    numbers = range(max(values.max(), 0) + 1)
    tables = np.array(list(itertools.product(numbers, repeat=matrix.shape[1]))) @ matrix.T
    allowed = tables[(tables[:, public] == values[public]).all(axis=1)]
    found = trees.closest(*problem)
    leaves = ~np.isin(np.arange(len(parent)), parent)
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert np.array_equal(matrix @ found[leaves], found)
    assert np.array_equal(found[public], values[public])
    least = costs(allowed, values, weights).min()
    assert costs(found, values, weights) == pytest.approx(least, abs=1e-12)


@settings(max_examples=150)
@given(problems(40))
def test_fit_is_that_of_nnls(problem: Problem) -> None:
    parent, values, weights = problem
    matrix = descent(parent)
    roots = np.sqrt(np.where(np.isinf(weights), 1e9, weights))
    x, _ = optimize.nnls(matrix * roots[:, np.newaxis], values * roots)
    tree, order = trees.arranged(parent)
    found = trees.fitted(tree, values[order], weights[order])
    assert found == pytest.approx((matrix @ x)[order], abs=1e-4)


def test_a_light_leaf_takes_all_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closest integers are far from the least squares here, so the limits are widened."""
    # 40 leaves of 1 + 1/3, by their public total and equal weights, and one of 100.
    parent, values = np.array([-1, *[0] * 41]), np.array([153, *[1] * 40, 100])
    weights = np.array([np.inf, *[1.0] * 40, 0.025])
    rounds = []

    def counted(*args: Any, within: Any = trees.within) -> Any:
        rounds.append(args)
        return within(*args)

    monkeypatch.setattr(trees, "within", counted)
    found = trees.closest(parent, values, weights)
    assert len(rounds) > 1
    # Each leaf of 1 costs 1 more as 2; the light leaf costs 0.025 * gap**2.
    least = min(k + 0.025 * (13 - k) ** 2 for k in range(14))
    assert costs(found, values, weights) == pytest.approx(least)


def test_large_counts_are_as_exact_as_small_ones() -> None:
    """Only differences count, so counts far from 0 may all be moved."""
    parent, noise = np.array([-1, 0, 0, 1, 1]), np.array([3, -4, 7, 1, 0])
    small, large = (descent(parent) @ np.full(3, size) for size in (50, 2**40 - 7))
    found = trees.closest(parent, large + noise, np.ones(5)) - large
    assert np.array_equal(found, trees.closest(parent, small + noise, np.ones(5)) - small)


@pytest.mark.parametrize("fans", [[20_000], [30] * 3, [2] * 14, [1] * 500 + [40]])
def test_wide_and_deep_trees_add_up(fans: list[int]) -> None:
    levels, first = [np.array([-1])], 0
    for fan in fans:
        size = len(levels[-1])
        levels.append(np.repeat(np.arange(first, first + size), fan))
        first += size
    parent = np.concatenate(levels)
    rng = np.random.default_rng(1)
    values = rng.integers(-9, 9, len(parent))
    found = trees.closest(parent, values, np.ones(len(parent)))
    sums = np.zeros(len(parent), np.int64)
    np.add.at(sums, parent[1:], found[1:])
    assert np.array_equal(sums[:first], found[:first])
    assert found.min() >= 0
    # No unit more at any leaf and all above it is closer, and none less.
    for step in (1, -1):
        change = step * (2 * (found - values) * 1.0) + 1
        for node in range(1, len(parent)):
            change[node] += change[parent[node]]
        leaves = slice(first, None)
        assert (change[leaves][(found[leaves] > 0) | (step > 0)] >= 0).all()


def test_cycles_are_refused() -> None:
    with pytest.raises(ValueError, match="without cycles"):
        trees.closest(np.array([-1, 2, 1]), np.zeros(3, np.int64), np.ones(3))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_numbers_of_groups_are_sorted_as_by_two_keys(data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    size, spread = data.draw(st.sampled_from([(0, 1), (1, 1), (40, 3), (300, 2**15)]))
    groups = np.sort(rng.integers(5, 5 + spread, size))
    numbers = data.draw(st.sampled_from([rng.integers(-9, 9, size) * 0.3, rng.normal(size=size)]))
    order = np.lexsort((numbers, groups))
    assert trees._sorted_within(groups, numbers).tolist() == order.tolist()
    few = trees._FEW
    try:
        trees._FEW = 0
        assert trees._sorted_within(groups, numbers).tolist() == order.tolist()
    finally:
        trees._FEW = few


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 9), st.sampled_from([(), (1,), (2,), (2, 3), (0,)]), st.integers(0, 2**32))
def test_runs_are_of_equal_rows(size: int, shape: tuple[int, ...], seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 2, (size, *shape)) * 0.5
    starts, sizes = trees.runs(rows)
    slow = [list(each) for _, each in itertools.groupby(rows.tolist())]
    assert sizes.tolist() == [len(each) for each in slow]
    assert rows[starts].tolist() == [each[0] for each in slow]
    assert np.repeat(rows[starts], sizes, axis=0).tolist() == rows.tolist()
