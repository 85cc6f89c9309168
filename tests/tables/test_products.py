"""Errors of estimates, their kinds, and ends of ratios, against dense solvers and all noise."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from geomdp._numerics import sum_tails
from geomdp.tables._math import products, weighted
from geomdp.tables._math.products import Errors
from geomdp.tables._math.trees import Tree
from geomdp.tables._math.workload import Workload
from test_workload import Dense, cells_of, flat, functional, kron, shape_of

#: The shares of the depths of a list, without its sum and with it.
LIST, HALVES = [0, 1], [Fraction(1, 2)] * 2
#: Branches differ in size and depth.
RAGGED = Tree(np.array([-1, 0, 0, 0, 1, 1, 3]))
#: Two trees, one of them a leaf, below a root.
FOREST = Tree(np.array([-1, 0, 0, 1, 1, 1]))


def of(trees: Sequence[Tree], shares: Sequence[Sequence[Any]], epsilon: Any = 1) -> Workload:
    """Return the workload of all blocks whose depths have shares of epsilon that are not 0."""
    rates = {
        block: epsilon * math.prod((Fraction(s[d]) for s, d in zip(shares, block, strict=True)))
        for block in itertools.product(*(range(tree.depth + 1) for tree in trees))
    }
    return Workload(trees, [(block, rate, Fraction(0)) for block, rate in rates.items() if rate])


WORKLOADS = {
    "flat": of([flat(3), flat(2)], [LIST, LIST]),
    "margins": of([flat(3), flat(2)], [["1/3", "2/3"], HALVES]),
    "one margin": of([flat(2), flat(3), flat(2)], [LIST, ["1/5", "4/5"], LIST], Fraction(1, 10)),
    "tree": of([RAGGED, flat(2)], [["1/2", "1/4", "1/4"], HALVES], 2),
    "forest": of([FOREST, flat(2)], [[0, *HALVES], LIST]),
    "loud": of([RAGGED, flat(2)], [["1/2", "1/4", "1/4"], HALVES], 40),
}


def size_of(asked: Workload) -> tuple[int, ...]:
    return tuple(tree.size for tree in asked.trees)


def weights_of(asked: Workload) -> Any:
    """Return the weights of all noises in the estimate of each product of nodes."""
    return Dense(asked).weights(kron([cells_of(tree) for tree in asked.trees]))


def rates_of(asked: Workload) -> Any:
    """Return the rate of each noise."""
    return np.concatenate(
        [
            np.full(math.prod(shape_of(asked.trees, each.block)), float(each.rate))
            for each in asked.released
        ]
    )


def whole(asked: Workload) -> list[Any]:
    """Return the sum over everything."""
    return [np.where(tree.parents < 0, 1, 0) for tree in asked.trees]


@pytest.mark.parametrize("name", WORKLOADS)
def test_sums_of_products_have_the_errors_of_the_dense_solver(name: str) -> None:
    asked = WORKLOADS[name]
    rng, rates = np.random.default_rng(4), rates_of(asked)
    one: list[Any] = [rng.normal(size=tree.size) for tree in asked.trees]
    other: list[Any] = [rng.integers(0, 2, tree.size) for tree in asked.trees]
    one[0] = other[-1] = None
    nodes, dense = [tree.size - 1 for tree in asked.trees], Dense(asked)
    errors = asked.joint([one, other], nodes)
    weights = np.array([dense.weights(functional(asked.trees, x, nodes)) for x in (one, other)])
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
        assert errors.reach(factors, 0.05) == pytest.approx(wanted, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("name", WORKLOADS)
def test_rows_of_one_kind_have_errors_of_equal_distributions(name: str) -> None:
    asked = WORKLOADS[name]
    weights, rates, shape = np.abs(weights_of(asked)), rates_of(asked), size_of(asked)
    nodes = [np.arange(tree.size)[::-1] for tree in asked.trees]
    many, each = products.kinds([asked], [nodes])
    seen = np.zeros(shape, int)
    for rows, [head] in each:
        seen[rows] += 1
        wanted = weights[np.ravel_multi_index(head, shape)]
        for row in itertools.product(*(x.reshape(-1) for x in rows)):
            at = [int(n[r]) for n, r in zip(nodes, row, strict=True)]
            found = weights[np.ravel_multi_index(at, shape)]
            for rate in set(rates):
                one, other = (np.sort(x[rates == rate]) for x in (found, wanted))
                assert one == pytest.approx(other, abs=1e-12)
        many -= 1
    assert (seen == 1).all()
    assert many == 0


def test_a_table_of_many_cells_has_one_kind() -> None:
    asked = of([flat(500), flat(200)], [LIST, LIST])
    many, _ = products.kinds([asked], [[np.arange(1, 501), np.arange(1, 201)]])
    assert many == 1
    regular = Tree(np.array([-1, *[0] * 5, *np.repeat(range(1, 6), 5)]))
    assert len(regular.kinds[0]) == 3


# Errors, by enumeration of all noise


def all_noise(rates: Any, most: int) -> tuple[Any, Any, float]:
    """Return all outcomes of the noise up to this size, their masses, and the mass left out."""
    z = np.arange(-most, most + 1)
    outcomes = np.array([x.reshape(-1) for x in np.meshgrid(*[z] * rates.size, indexing="ij")])
    masses, left = np.ones(outcomes.shape[1]), 0.0
    for row, rate in zip(outcomes, rates, strict=True):
        a = math.exp(-rate)
        masses *= (1 - a) / (1 + a) * a ** np.abs(row)
        left += 2 * a ** (most + 1) / (1 + a)
    return outcomes, masses, left


SMALL = {
    "flat": (of([flat(2), flat(2)], [LIST, LIST], 1), 12),
    "margins": (of([flat(1), flat(2)], [HALVES, ["1/3", "2/3"]], 10), 4),
    "a margin and a list": (of([flat(2), flat(2)], [HALVES, LIST], 4), 4),
    "a tree and a list": (of([Tree(np.array([-1, 0, 0, 1])), flat(1)], [["1/3"] * 3, LIST], 4), 12),
}


@pytest.mark.parametrize("name", SMALL)
def test_reaches_hold_by_enumeration(name: str) -> None:
    """Of all nodes, of sums, differences and weighted sums, by each bound."""
    asked, most = SMALL[name]
    outcomes, masses, left = all_noise(rates_of(asked), most)
    assert left < 5e-3
    errors, ones, shape = weights_of(asked) @ outcomes, whole(asked), size_of(asked)
    weighing = [np.arange(tree.size) * (tree.children == 0) for tree in asked.trees]
    for alpha in (0.5, 0.1, 0.02):
        for node in itertools.product(*(range(tree.size) for tree in asked.trees)):
            given = [None] * len(node)
            joint = asked.joint([given, ones, weighing], node)
            rows = np.array(
                [
                    np.eye(len(errors))[np.ravel_multi_index(node, shape)],
                    kron(ones)[0],
                    kron(weighing)[0],
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


@pytest.mark.parametrize("name", WORKLOADS)
def test_bounds_on_all_reaches_are_no_less(name: str) -> None:
    asked, rng = WORKLOADS[name], np.random.default_rng(9)
    sums_of = [[rng.normal(size=tree.size) for tree in asked.trees] for _ in range(6)]
    # No noise is in a sum without weights.
    sums_of.append([np.zeros(tree.size) for tree in asked.trees])
    errors = asked.joint(sums_of, [0] * len(asked.trees))
    for level in (0.3, 0.05, 1e-6):
        reaches = [errors.reach(each, level) for each in np.eye(7).tolist()]
        bounds = errors.bounds(level)
        assert (bounds * (1 + 1e-9) >= reaches).all()
        assert bounds[-1] == 0


def test_equal_weights_have_the_exact_bound() -> None:
    asked, level = of([flat(6), flat(5)], [LIST, LIST], Fraction(1, 3)), 0.05
    ones = whole(asked)
    for given, n in (([None, None], 1), ([None, ones[1]], 5), (ones, 30)):
        found = asked.joint([given], [1, 1]).reach([1.0], level)
        assert found == sum_tails.reach(Fraction(1, 3), {1: n}, Fraction(level))
    one, other = np.eye(7)[1:3]
    found = asked.joint([[one, ones[1]], [other, ones[1]]], [0, 0]).reach([1.0, -1.0], level)
    assert found == sum_tails.reach(Fraction(1, 3), {1: 10}, Fraction(level))


def test_counts_at_a_limit_say_nothing() -> None:
    for asked in (WORKLOADS["flat"], WORKLOADS["margins"]):
        noisy = [np.zeros(shape_of(asked.trees, each.block), np.int64) for each in asked.released]
        nodes = [np.arange(tree.size) for tree in asked.trees]
        ones = whole(asked)
        for limit in (2**63 - 1, -(2**63)):
            noisy[-1][0, 0] = limit
            for given in ([None, None], ones, [None, ones[1]]):
                at = [x if y is None else None for x, y in zip(nodes, given, strict=True)]
                assert asked.fit(noisy).along(given, at)[2] == math.inf
    large = np.full((2, 2), 2**62)
    assert of([flat(2), flat(2)], [LIST, LIST]).fit([large]).size == math.inf


# Ratios


@pytest.mark.parametrize(
    ("asked", "most", "true", "values"),
    [
        (of([flat(2)], [LIST], Fraction(3, 2)), 7, [0, 1], [1, 0]),
        (of([flat(2)], [LIST], Fraction(3, 2)), 7, [3, 4], [2.5, -1.0]),
        (of([flat(2)], [LIST], Fraction(3, 2)), 7, [1, 30], [1, 0]),
        (of([flat(2)], [HALVES], 6), 3, [2, 3], [1, 0]),
        (of([flat(2)], [HALVES], 6), 3, [12, 1], [0, 3]),
    ],
)
def test_ratios_hold_by_enumeration(asked: Workload, most: int, true: Any, values: Any) -> None:
    """Of a part to the whole, and of weighted sums: means."""
    [tree] = asked.trees
    outcomes, masses, left = all_noise(rates_of(asked), most)
    counts = np.zeros(tree.size, np.int64)
    counts[tree.leaves] = true
    counts = tree.sums(counts)
    weights = np.zeros(tree.size)
    weights[tree.leaves] = values
    total = np.where(tree.children == 0, 1, 0)
    ratio = float(weights @ counts) / sum(true)
    errors = asked.joint([[weights], [total]], [0])
    base = np.array([weights, total]).astype(float)
    estimates = counts[:, None] + weights_of(asked) @ outcomes
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
        asked = WORKLOADS[name]
        ones, [*_, last] = whole(asked), asked.trees
        part = [*ones[:-1], np.arange(last.size) / last.size * (last.children == 0)]
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
    one, other = (WORKLOADS[name].joint([[None, None]], [1, 1]) for name in ("margins", "flat"))
    both = one.beside(other)
    wanted = np.diag([one.covariance[0, 0], other.covariance[0, 0]])
    assert both.covariance == pytest.approx(wanted)
    for factors, each in (([1.0, 0.0], one), ([0.0, 1.0], other)):
        assert both.reach(factors, 0.05) == each.reach([1.0], 0.05)
    assert Errors([]).reach([1.0], 0.05) == 0


# Inversion


def tails(weights: Any, rates: Any, ratio: Fraction) -> tuple[Any, Any]:
    """Return the sizes of a sum of noises, and the probability beyond each.

    The weights are two rows of integers: those of a first sum, and of one times the ratio.
    """
    whole = [int(a * ratio.denominator - b * ratio.numerator) for a, b in weights.T.tolist()]
    most = [math.ceil(36 / rate) for rate in rates]
    size = 2 * sum(abs(w) * z for w, z in zip(whole, most, strict=True)) + 1
    size = 1 << size.bit_length()
    product = np.ones(size // 2 + 1, complex)
    for weight, rate, z in zip(whole, rates, most, strict=True):
        places, a = np.arange(-z, z + 1), math.exp(-rate)
        masses = np.bincount(
            weight * places % size, (1 - a) / (1 + a) * a ** np.abs(places), minlength=size
        )
        product *= np.fft.rfft(masses)
    found = np.fft.irfft(product, size)
    found = found[: size // 2] + np.append(0, found[: size // 2 : -1])
    return np.arange(size // 2) / ratio.denominator, 1 - np.cumsum(found)


@pytest.mark.parametrize(
    ("rates", "first", "second"),
    [
        ([1.0] * 24, range(24), [1] * 24),
        ([0.6] * 20, [*range(10), *range(40, 50)], [1] * 10 + [2] * 10),
        ([2.5] * 30, np.arange(30) ** 2 % 17, [1] * 30),
        ([0.7] * 12 + [1.3] * 12, [*range(12)] * 2, [1] * 12 + [0] * 12),
        ([3.0] * 6, [1, 2, 3, 5, 8, 13], [1, 1, 0, 0, -1, 2]),
        ([0.9] * 2, [1, 0], [1, 1]),
    ],
)
def test_reaches_of_many_ratios_are_those_of_exact_tails(
    rates: list[float], first: Any, second: Any
) -> None:
    """All ratios together, each against its exact distribution: lemmas 19 and 19d."""
    weights = np.array([list(first), list(second)], float)
    exact = [Fraction(n, 4) for n in (*range(-7, 65, 12), 200)]
    ratios, levels = np.array(exact, float), (0.3, 0.05, 1e-4)
    of_rate = [(rate, np.array(rates) == rate) for rate in sorted(set(rates))]
    terms = [weighted.Term(rate, weights.T[some], np.ones(some.sum())) for rate, some in of_rate]
    for alike in products._alike(weighted.deviations(terms, ratios)):
        # So many that lemma 19d is used.
        places = np.tile(alike, 9)
        known = [tails(weights, rates, exact[place]) for place in alike] * 9
        for level in levels:
            inversion = weighted.Inversion(terms, ratios[places], level)
            # The least that the level allows, and that all errors together leave.
            least, enough = (
                np.array([sizes[np.argmax(beyond <= allowed)] for sizes, beyond in known])
                for allowed in (level, level * 0.998 - 2e-10)
            )
            assert not inversion.holds(least * (1 - 1e-9)).any()
            assert inversion.holds((enough + 2 * inversion.width) * (1 + 1e-9)).all()


@hypothesis.given(
    st.lists(st.tuples(st.floats(-9, 9), st.sampled_from([0.0, 1.0, -0.5])), min_size=1),
    st.floats(1e-3, 5),
    st.floats(-20, 20),
)
def test_no_ratio_has_less_damping(
    weights: list[tuple[float, float]], rate: float, ratio: float
) -> None:
    """Lemma 19d."""
    pairs, counts = np.array(weights), np.arange(1.0, len(weights) + 1)
    frequencies = np.linspace(0, 7, 50)
    least = weighted.damping([weighted.Term(rate, pairs, counts)], frequencies)
    angles = np.outer(pairs @ [1, -ratio], frequencies / 2)
    logs = counts @ np.log1p((np.sin(angles) / math.sinh(rate / 2)) ** 2)
    assert (least >= -1e-9).all()
    assert (least <= logs * (1 + 1e-9) + 1e-9).all()
    # Some ratio makes the weight of one noise 0.
    assert len(weights) > 1 or (least <= 1e-9).all()


def test_damping_is_near_where_values_spread() -> None:
    """Of 50 noises with the values 0 to 49, nine tenths of what its harmonics can be."""
    pairs = np.stack([np.arange(50.0), np.ones(50)], 1)
    [found] = weighted.damping([weighted.Term(1.0, pairs, np.ones(50))], np.array([1.0]))
    assert found > 0.9 * 100 * sum(math.exp(-m) / m for m in range(1, 5))
