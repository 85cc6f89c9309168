"""Least squares and errors on products of trees, against dense solvers and all noise."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geomdp._numerics import sums
from geomdp.tables._analysis import products, weighted
from geomdp.tables._analysis.products import Errors, Product
from geomdp.tables._analysis.trees import Tree

HALVES = [Fraction(1, 2)] * 2


def flat(n: int) -> Tree:
    return Tree(np.full(n, -1))


def star(n: int) -> Tree:
    """A root with n children: a list with a margin."""
    return Tree(np.array([-1] + [0] * n))


#: Branches differ in size and depth.
RAGGED = Tree(np.array([-1, 0, 0, 0, 1, 1, 3]))
#: Two trees, one of them a leaf.
FOREST = Tree(np.array([-1, -1, 0, 0, 0]))


def of(trees: Sequence[Tree], shares: Sequence[Sequence[Any]], epsilon: Any = 1) -> Product:
    rates = {
        block: epsilon * math.prod((Fraction(s[d]) for s, d in zip(shares, block, strict=True)))
        for block in itertools.product(*(range(tree.depth + 1) for tree in trees))
    }
    return Product(trees, rates, dict.fromkeys(rates, Fraction(0)))


PRODUCTS = {
    "flat": of([flat(3), flat(2)], [[1], [1]]),
    "margins": of([star(3), star(2)], [["1/3", "2/3"], HALVES]),
    "one margin": of([flat(2), star(3), flat(2)], [[1], ["1/5", "4/5"], [1]], Fraction(1, 10)),
    "tree": of([RAGGED, star(2)], [["1/2", "1/4", "1/4"], HALVES], 2),
    "forest": of([FOREST, flat(2)], [HALVES, [1]]),
    "loud": of([RAGGED, star(2)], [["1/2", "1/4", "1/4"], HALVES], 40),
}


def leaves_of(tree: Tree) -> Any:
    """Return the matrix from leaves to nodes."""
    found = np.zeros((tree.size, tree.leaves.size))
    for place, leaf in enumerate(tree.leaves.tolist()):
        node = leaf
        while node >= 0:
            found[node, place] = 1
            node = int(tree.parents[node])
    return found


def kron(parts: Sequence[Any]) -> Any:
    found = np.ones((1, 1)) if np.ndim(parts[0]) > 1 else np.ones(1)
    for each in parts:
        found = np.kron(found, each)
    return found


def dense(asked: Product) -> tuple[Any, Any]:
    """Return the covariance of the estimates of all nodes, and the variances that weigh them."""
    a = kron([leaves_of(tree) for tree in asked.trees])
    s = kron([squares.noise for squares in asked.squares])
    return a @ np.linalg.inv(a.T @ (a / s[:, None])) @ a.T, s


def rates_of(asked: Product) -> Any:
    """Return the rate of each node, in the shape of the product."""
    found = np.empty(asked.shape)
    for block, rate in asked.rates.items():
        level = (tree.level(d) for tree, d in zip(asked.trees, block, strict=True))
        found[tuple(level)] = float(rate)
    return found


@pytest.mark.parametrize("name", PRODUCTS)
def test_one_axis_after_the_other_is_the_least_squares(name: str) -> None:
    asked = PRODUCTS[name]
    covariance, s = dense(asked)
    rng = np.random.default_rng(3)
    noisy = rng.integers(-(10**6), 10**6, asked.shape)
    found = asked.fit(noisy)
    wanted = (covariance / s @ noisy.reshape(-1)).reshape(asked.shape)
    assert found.sums + found.more == pytest.approx(wanted, abs=1e-6)
    assert np.abs(found.sums + found.more - wanted).max() <= found.rounding + 1e-7
    if asked.flat:
        assert (found.sums == noisy).all()
        assert found.rounding == 0


@pytest.mark.parametrize("name", PRODUCTS)
def test_weights_of_sums_of_products_are_those_of_the_dense_solver(name: str) -> None:
    asked = PRODUCTS[name]
    covariance, s = dense(asked)
    rng, rates = np.random.default_rng(4), rates_of(asked).reshape(-1)
    one: list[Any] = [rng.normal(size=tree.size) for tree in asked.trees]
    other: list[Any] = [rng.integers(0, 2, tree.size) for tree in asked.trees]
    one[0] = other[-1] = None
    nodes = [tree.size - 1 for tree in asked.trees]
    functionals = [
        kron(
            [
                np.eye(tree.size)[node] if each is None else each
                for tree, node, each in zip(asked.trees, nodes, given, strict=True)
            ]
        )
        for given in (one, other)
    ]
    errors = asked.joint([one, other], nodes)
    weights = np.array([f @ covariance / s for f in functionals])
    # No weights are those of almost no noise.
    part = min(1, 3 / max(rates))
    variances = np.array([weighted.variance(part * rate) for rate in rates])
    assert errors.covariance == pytest.approx((weights * variances) @ weights.T, rel=1e-9)
    for factors in ([1.0, 0.0], [1.0, -0.3], [2.0, 5.0]):
        combined = np.abs(factors @ weights)
        used = combined > 1e-12
        wanted = weighted.reach(
            [
                weighted.Term(
                    rate, combined[used & (rates == rate)], np.ones((used & (rates == rate)).sum())
                )
                for rate in set(rates)
            ],
            0.05,
        )
        # With rates beyond 600 the least squares see other variances.
        assert errors.reach(factors, 0.05) == pytest.approx(wanted, rel=1e-3, abs=1e-6)
    noisy = rng.integers(-1000, 1000, asked.shape)
    for given, functional in zip((one, other), functionals, strict=True):
        base, more, rounding = asked.fit(noisy).along(given)
        at = tuple(n if e is None else 0 for n, e in zip(nodes, given, strict=True))
        value = np.broadcast_to(base + more, base.shape)[at]
        exact = functional @ covariance / s @ noisy.reshape(-1)
        assert value == pytest.approx(exact, abs=1e-6)
        assert abs(value - exact) <= rounding + 1e-7


@pytest.mark.parametrize("name", PRODUCTS)
def test_rows_of_one_kind_have_errors_of_equal_distributions(name: str) -> None:
    asked = PRODUCTS[name]
    covariance, s = dense(asked)
    weights, rates = np.abs(covariance / s), rates_of(asked).reshape(-1)
    nodes = [np.arange(tree.size)[::-1] for tree in asked.trees]
    many, each = products.kinds([asked], [nodes])
    seen = np.zeros(asked.shape, int)
    for rows, [head] in each:
        seen[rows] += 1
        wanted = weights[np.ravel_multi_index(head, asked.shape)]
        for row in itertools.product(*(x.reshape(-1) for x in rows)):
            at = [int(n[r]) for n, r in zip(nodes, row, strict=True)]
            found = weights[np.ravel_multi_index(at, asked.shape)]
            for rate in set(rates):
                one, other = (np.sort(x[rates == rate]) for x in (found, wanted))
                assert one == pytest.approx(other, abs=1e-12)
        many -= 1
    assert (seen == 1).all()
    assert many == 0


def test_a_table_of_many_cells_has_one_kind() -> None:
    asked = of([flat(500), flat(200)], [[1], [1]])
    many, _ = products.kinds([asked], [[np.arange(500), np.arange(200)]])
    assert many == 1
    regular = Tree(np.array([-1, *[0] * 5, *np.repeat(range(1, 6), 5)]))
    assert len(regular.kinds[0]) == 3


# Errors, by enumeration of all noise


def all_noise(asked: Product, most: int) -> tuple[Any, Any, float]:
    """Return all outcomes of the noise up to this size, their masses, and the mass left out."""
    z = np.arange(-most, most + 1)
    rates = rates_of(asked).reshape(-1)
    outcomes = np.array([x.reshape(-1) for x in np.meshgrid(*[z] * rates.size, indexing="ij")])
    masses, left = np.ones(outcomes.shape[1]), 0.0
    for row, rate in zip(outcomes, rates, strict=True):
        a = math.exp(-rate)
        masses *= (1 - a) / (1 + a) * a ** np.abs(row)
        left += 2 * a ** (most + 1) / (1 + a)
    return outcomes, masses, left


SMALL = {
    "flat": (of([flat(2), flat(2)], [[1], [1]], 1), 12),
    "margins": (of([star(1), star(2)], [HALVES, ["1/3", "2/3"]], 10), 4),
    "a margin and a list": (of([star(2), flat(2)], [HALVES, [1]], 4), 4),
    "a tree and a list": (of([Tree(np.array([-1, 0, 0, 1])), flat(1)], [["1/3"] * 3, [1]], 4), 12),
}


@pytest.mark.parametrize("name", SMALL)
def test_reaches_hold_by_enumeration(name: str) -> None:
    """Of all nodes, of sums, differences and weighted sums, by each bound."""
    asked, most = SMALL[name]
    outcomes, masses, left = all_noise(asked, most)
    assert left < 5e-3
    covariance, s = dense(asked)
    errors = covariance / s @ outcomes
    ones = [np.where(tree.parents < 0, 1, 0) for tree in asked.trees]
    weighing = [np.arange(tree.size) * (tree.children == 0) for tree in asked.trees]
    for alpha in (0.5, 0.1, 0.02):
        for node in itertools.product(*(range(tree.size) for tree in asked.trees)):
            given = [None] * len(node)
            joint = asked.joint([given, ones, weighing], node)
            rows = np.array(
                [
                    np.eye(len(s))[np.ravel_multi_index(node, asked.shape)],
                    kron(ones),
                    kron(weighing),
                ]
            )
            for factors in ([1, 0, 0], [0, 1, 0], [1, -1, 0], [0, 0, 1], [0.3, 0, -1.0]):
                reach = joint.reach(factors, alpha)
                beyond = masses[np.abs(factors @ rows @ errors) > reach + 1e-9].sum()
                assert beyond <= alpha
                spread = math.sqrt(max(factors @ joint.covariance @ factors, 0))
                nearer = 0.9 * reach - 0.1 * spread - max(map(abs, factors)) * 3
                assert masses[np.abs(factors @ rows @ errors) > nearer].sum() + left > alpha
        nodes = [np.arange(tree.size) for tree in asked.trees]
        passes = asked.bounds([None] * len(nodes), nodes, float(alpha)).reshape(-1)
        for error, reach in zip(errors, passes, strict=True):
            assert masses[np.abs(error) > reach + 1e-9].sum() <= alpha


@pytest.mark.parametrize("name", PRODUCTS)
def test_two_passes_are_never_below_and_near(name: str) -> None:
    asked, level = PRODUCTS[name], 0.05
    ones = np.where(asked.trees[-1].parents < 0, 1, 0)
    for last in (None, ones):
        given = [*[None] * (len(asked.trees) - 1), last]
        nodes = [np.arange(tree.size) for tree in asked.trees]
        wide = asked.bounds(given, nodes, level)
        for at in np.ndindex(wide.shape):
            errors = asked.joint([given], at)
            [parts] = [errors.of([1.0])]
            terms = [weighted.Term(float(min(r, 600)), w, n) for r, w, n in parts]
            tilted = weighted.by_tilting(terms, 0.05)
            # Of small noise, the exact bound is 0.
            assert wide[at] >= errors.reach([1.0], level) - 1e-9
            assert wide[at] >= tilted * (1 - 1e-6)
            assert wide[at] <= 1.5 * tilted + 1


def test_equal_weights_have_the_exact_bound() -> None:
    asked, level = of([flat(6), flat(5)], [[1], [1]], Fraction(1, 3)), 0.05
    ones = [np.ones(6, np.int64), np.ones(5, np.int64)]
    for given, n in (([None, None], 1), ([None, ones[1]], 5), (ones, 30)):
        found = asked.joint([given], [0, 0]).reach([1.0], level)
        assert found == sums.reach(Fraction(1, 3), {1: n}, Fraction(level))
    one, other = np.eye(6)[:2]
    found = asked.joint([[one, ones[1]], [other, ones[1]]], [0, 0]).reach([1.0, -1.0], level)
    assert found == sums.reach(Fraction(1, 3), {1: 10}, Fraction(level))


def test_counts_at_a_limit_say_nothing() -> None:
    for asked in (PRODUCTS["flat"], PRODUCTS["margins"]):
        noisy = np.zeros(asked.shape, np.int64)
        for limit in (2**63 - 1, -(2**63)):
            noisy[0, 0] = limit
            ones = [np.where(tree.parents < 0, 1, 0) for tree in asked.trees]
            for given in ([None, None], ones, [None, np.full(asked.shape[1], 0.0)]):
                assert asked.fit(noisy).along(given)[2] == math.inf
    large = np.full((2, 2), 2**62)
    assert of([flat(2), flat(2)], [[1], [1]]).fit(large).rounding == math.inf


# Ratios


@pytest.mark.parametrize(
    ("asked", "most", "true", "values"),
    [
        (of([flat(2)], [[1]], Fraction(3, 2)), 7, [0, 1], [1, 0]),
        (of([flat(2)], [[1]], Fraction(3, 2)), 7, [3, 4], [2.5, -1.0]),
        (of([flat(2)], [[1]], Fraction(3, 2)), 7, [1, 30], [1, 0]),
        (of([star(2)], [HALVES], 6), 3, [2, 3], [1, 0]),
        (of([star(2)], [HALVES], 6), 3, [12, 1], [0, 3]),
    ],
)
def test_ratios_hold_by_enumeration(asked: Product, most: int, true: Any, values: Any) -> None:
    """Of a part to the whole, and of weighted sums: means."""
    [tree] = asked.trees
    outcomes, masses, left = all_noise(asked, most)
    counts = np.zeros(tree.size, np.int64)
    counts[tree.leaves] = true
    counts = tree.sums(counts)
    weights = np.zeros(tree.size)
    weights[tree.leaves] = values
    whole = np.where(tree.children == 0, 1, 0)
    ratio = float(weights @ counts) / sum(true)
    errors = asked.joint([[weights], [whole]], [0])
    base = np.array([weights, whole]).astype(float)
    covariance, s = dense(asked)
    estimates = covariance / s @ (counts[:, None] + outcomes)
    for alpha in (0.5, 0.1):
        above, below = base @ estimates
        lower, upper = products.ratio_ends((above, below), errors, alpha, 1e-9)
        assert (lower <= upper).all()
        known = np.isfinite(lower)
        points = above[known] / below[known]
        assert ((lower[known] <= points) & (points <= upper[known])).all()
        missed = masses[(ratio < lower) | (ratio > upper)].sum()
        assert missed <= alpha
        # Where the denominator is far from 0, not much less.
        assert sum(true) < 10 or missed + left > alpha / 8


def test_ends_of_ratios_are_near_the_test() -> None:
    """The test does not reject a ratio a little nearer."""
    rng = np.random.default_rng(8)
    for name in ("flat", "margins", "tree"):
        asked = PRODUCTS[name]
        ones = [np.where(tree.parents < 0, 1, 0) for tree in asked.trees]
        part = [*ones[:-1], np.arange(asked.shape[-1]) / asked.shape[-1]]
        errors = asked.joint([part, ones], [0] * len(ones))
        for below in (30.0, 300.0, 1e6):
            above = float(rng.uniform(-1, 1) * below)
            alpha = 0.05
            ends = products.ratio_ends((np.array([above]), np.array([below])), errors, alpha, 0.0)
            for end in np.concatenate(ends).tolist():
                if math.isinf(end):
                    assert errors.reach([0.0, 1.0], alpha / 2) >= below
                    continue
                inner = end + (above / below - end) / 10
                assert abs(inner * below - above) <= errors.reach([1.0, -inner], alpha)


def test_independent_errors_beside_each_other() -> None:
    one, other = (PRODUCTS[name].joint([[None, None]], [1, 1]) for name in ("margins", "flat"))
    both = one.beside(other)
    wanted = np.diag([one.covariance[0, 0], other.covariance[0, 0]])
    assert both.covariance == pytest.approx(wanted)
    for factors, each in (([1.0, 0.0], one), ([0.0, 1.0], other)):
        assert both.reach(factors, 0.05) == each.reach([1.0], 0.05)
    assert Errors([]).reach([1.0], 0.05) == 0
