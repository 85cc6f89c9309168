"""Least squares of any set of tables and their errors, against dense solvers and all noise."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geomdp.tables._math import products, weighted
from geomdp.tables._math.products import Groups
from geomdp.tables._math.trees import Tree
from geomdp.tables._math.workload import UndeterminedError, Workload


def flat(n: int) -> Tree:
    """A list: the sum over it and its levels."""
    return Tree(np.array([-1] + [0] * n))


def balanced(*branching: int) -> Tree:
    parents, start, size = [-1], 0, 1
    for each in branching:
        parents += np.repeat(np.arange(start, start + size), each).tolist()
        start, size = start + size, size * each
    return Tree(np.array(parents))


def ragged(rng: Any, depth: int, most: int, *, even: bool = False, loose: bool = False) -> Tree:
    """A tree with any numbers of children, with leaves at the last depth alone or at any."""
    parents, level = [-1], [0]
    for d in range(depth):
        found = []
        for node in level:
            n = int(rng.integers(1 if even or (d == 0 and node == level[0]) else 0, most + 1))
            found += [node] * n
        if not found:
            break
        level = list(range(len(parents), len(parents) + len(found)))
        parents += found
    return Tree(np.array(parents), loose=loose)


def cells_of(tree: Tree) -> Any:
    """Return the matrix from cells to nodes."""
    found = np.zeros((tree.size, tree.cells.size))
    for place, cell in enumerate(tree.cells.tolist()):
        node = cell
        while node >= 0:
            found[node, place] = 1
            node = int(tree.parents[node])
    return found


def kron(parts: Sequence[Any]) -> Any:
    found = np.ones((1, 1))
    for each in parts:
        found = np.kron(found, np.atleast_2d(each))
    return found


def table_of(trees: Sequence[Tree], block: Sequence[int]) -> Any:
    return kron([cells_of(t)[t.level(d)] for t, d in zip(trees, block, strict=True)])


def shape_of(trees: Sequence[Tree], block: Sequence[int]) -> list[int]:
    return [t.starts[d + 1] - t.starts[d] for t, d in zip(trees, block, strict=True)]


class Dense:
    """Constrained least squares by matrices of all cells."""

    def __init__(self, asked: Workload) -> None:
        self.asked = asked
        tables = [table_of(asked.trees, each.block) for each in asked.released]
        known = [table_of(asked.trees, block) for block in asked.known]
        cells = math.prod(tree.cells.size for tree in asked.trees)
        self.tables = np.vstack([np.zeros((0, cells)), *tables])
        self.known = np.vstack([np.zeros((0, cells)), *known])
        noise = [np.full(len(a), v) for a, v in zip(tables, asked.noise_by_release, strict=True)]
        self.scale = 1 / np.sqrt(np.concatenate([np.zeros(0), *noise]))
        free = np.eye(cells)
        if self.known.size:
            _, s, v = np.linalg.svd(self.known)
            free = v[(s > 1e-9).sum() :].T
        scaled = (self.tables @ free) * self.scale[:, None]
        size = np.abs(self.tables * self.scale[:, None]).max(initial=1e-300)
        #: From noise over its deviation to cells.
        self.inverse = (
            free @ np.linalg.pinv(scaled, rcond=0)
            if not scaled.size
            else free @ (_pinv(scaled, 1e-9 * size))
        )
        self.all = np.vstack([self.tables, self.known])
        self.rank = np.linalg.matrix_rank(self.all) if self.all.size else 0

    def estimates(self, true: Any, noisy: Any) -> Any:
        return true + self.inverse @ ((noisy - self.tables @ true) * self.scale)

    def weights(self, functional: Any) -> Any:
        return (functional @ self.inverse) * self.scale

    def determines(self, functional: Any) -> bool:
        return bool(np.linalg.matrix_rank(np.vstack([self.all, functional])) == self.rank)


def _pinv(a: Any, least: float) -> Any:
    u, s, v = np.linalg.svd(a, full_matrices=False)
    used = s > least
    return v[used].T / s[used] @ u[:, used].T


def workload(rng: Any, trees: Sequence[Tree], released: int, known: int, rate: float = 1.0) -> Any:
    every = list(itertools.product(*(range(t.depth + 1) for t in trees)))
    return Workload(
        trees,
        [
            (every[i], float(rate * 10 ** rng.uniform(-1.5, 0.3)), Fraction(0))
            for i in rng.choice(len(every), released)
        ],
        [every[i] for i in rng.choice(len(every), known)],
    )


def lists(rng: Any) -> list[Tree]:
    return [flat(int(rng.integers(1, 5))) for _ in range(rng.integers(0, 5))]


def regulars(rng: Any) -> list[Tree]:
    return [
        balanced(*rng.integers(1, 4, rng.integers(1, 3)).tolist())
        for _ in range(rng.integers(1, 3))
    ]


def one_uneven(rng: Any, loose: bool = False) -> list[Tree]:
    found = [
        flat(int(rng.integers(1, 4)))
        if rng.integers(2)
        else balanced(*rng.integers(1, 3, 2).tolist())
        for _ in range(rng.integers(0, 3))
    ]
    tree = ragged(rng, int(rng.integers(1, 4)), 2, even=bool(rng.integers(2)), loose=loose)
    found.insert(int(rng.integers(0, len(found) + 1)), tree)
    return found


def loose(rng: Any) -> list[Tree]:
    return one_uneven(rng, loose=True)


def functional(trees: Sequence[Tree], asked: Any, at: Sequence[int]) -> Any:
    """Return the weights of cells in a sum, with a node of each axis that it has by itself."""
    rows = [
        np.eye(tree.size)[node] if each is None else each
        for tree, each, node in zip(trees, asked, at, strict=True)
    ]
    return kron([row @ cells_of(tree) for row, tree in zip(rows, trees, strict=True)])[0]


def a_sum(rng: Any, trees: Sequence[Tree]) -> tuple[list[Any], list[Any]]:
    """Return a random sum, and the nodes of axes that it has by themselves."""
    asked: list[Any] = []
    nodes: list[Any] = []
    for tree in trees:
        kind = rng.integers(5)
        chosen = np.sort(rng.choice(tree.size, rng.integers(1, tree.size + 1), replace=False))
        if kind < 2:
            asked.append(None)
            depth = int(rng.integers(tree.depth + 1))
            nodes.append(chosen if kind else np.arange(tree.size)[tree.level(depth)])
            continue
        weights = np.zeros(tree.size, np.int64)
        if kind == 2:
            weights[0] = 1
        elif kind == 3:
            weights[chosen] = rng.integers(-3, 4, chosen.size)
        else:
            weights = np.repeat(1.5, tree.size) * (tree.depths == rng.integers(tree.depth + 1))
        asked.append(weights)
        nodes.append(None)
    return asked, nodes


def check(rng: Any, asked: Workload) -> tuple[int, int]:
    trees, dense = asked.trees, Dense(asked)
    true = rng.integers(0, 50, dense.tables.shape[1])
    noise = rng.integers(-9, 10, len(dense.tables))
    noisy = (dense.tables @ true + noise).astype(np.int64)
    shapes = [shape_of(trees, each.block) for each in asked.released]
    ends = np.cumsum([0, *map(math.prod, shapes)])
    tables = [noisy[a:b].reshape(s) for a, b, s in zip(ends, ends[1:], shapes, strict=False)]
    known = [
        (table_of(trees, block) @ true).astype(np.int64).reshape(shape_of(trees, block))
        for block in asked.known
    ]
    estimates = dense.estimates(true, noisy)
    fitted = asked.fit(tables, known)
    refused = answered = 0
    for _ in range(8):
        given, nodes = a_sum(rng, trees)
        rows = list(itertools.product(*([0] if x is None else x.tolist() for x in nodes)))
        wanted = [functional(trees, given, at) for at in rows]
        fine = all(map(dense.determines, wanted))
        if not fine:
            with pytest.raises(UndeterminedError):
                fitted.along(given, nodes)
            refused += 1
            continue
        answered += 1
        base, more, rounding = fitted.along(given, nodes)
        found = (base + more).reshape(-1)
        exact = np.array([f @ estimates for f in wanted])
        size = max(1, *(np.abs(f).max() for f in wanted))
        assert found == pytest.approx(exact, abs=1e-8 * size * max(1, np.abs(true).sum()))
        assert (np.abs(found - exact) <= rounding + 1e-9 * size * max(1, np.abs(true).sum())).all()
        at, f = rows[0], wanted[0]
        weights = asked.weights(given, at)
        flatter = np.concatenate([np.zeros(0), *map(np.ravel, weights)])
        ideal = dense.weights(f)
        assert flatter == pytest.approx(ideal, abs=1e-8 * size)
        errors = asked.joint([given, given], at)
        variances = np.concatenate(
            [np.zeros(0)]
            + [
                np.full(math.prod(s), weighted.variance(float(x.rate)))
                for s, x in zip(shapes, asked.released, strict=True)
            ]
        )
        if asked.released and max(float(x.rate) for x in asked.released) <= 3:
            assert errors.covariance == pytest.approx(
                np.full((2, 2), (ideal**2 * variances).sum()), rel=1e-7, abs=1e-7 * size**2
            )
    return answered, refused


@pytest.mark.parametrize("make", [lists, regulars, one_uneven, loose])
def test_any_workload_has_the_constrained_least_squares(make: Any) -> None:
    rng, counts = np.random.default_rng(5), np.zeros(2, int)
    for _ in range(40):
        trees = make(rng)
        asked = workload(rng, trees, int(rng.integers(0, 6)), int(rng.integers(0, 4)))
        counts += check(rng, asked)
    assert (counts > 15).all()


@pytest.mark.parametrize("make", [lists, regulars, one_uneven, loose])
def test_two_passes_are_never_below_and_near(make: Any) -> None:
    rng, level, ratios = np.random.default_rng(6), 0.05, []
    for _ in range(40):
        trees = make(rng)
        asked = workload(rng, trees, int(rng.integers(1, 6)), int(rng.integers(0, 3)))
        for _ in range(4):
            given, nodes = a_sum(rng, trees)
            try:
                wide = asked.bounds(given, nodes, level)
            except UndeterminedError:
                continue
            rows = itertools.product(*([0] if x is None else x.tolist() for x in nodes))
            for reach, at in zip(wide.reshape(-1), rows, strict=True):
                errors = asked.joint([given], at)
                terms = [weighted.Term(float(r), w, n) for r, w, n in errors.of([1.0])]
                if not terms:
                    continue
                tilted = weighted.by_tilting(terms, level)
                # Of small noise, the exact bound is 0.
                assert reach >= errors.reach([1.0], level) - 1e-9
                assert reach >= min(tilted * (1 - 1e-6), errors.reach([1.0], level))
                ratios.append(reach / tilted)
    assert len(ratios) > 60
    assert max(ratios) < 2.5


def test_several_uneven_trees_have_passes_along_each() -> None:
    """Rates are products, and small, so that variances are products."""
    rng, counts = np.random.default_rng(7), np.zeros(2, int)
    for _ in range(25):
        trees = [ragged(rng, 2, 2) for _ in range(2)]
        trees.insert(int(rng.integers(3)), flat(int(rng.integers(1, 3))))
        parts = [rng.uniform(0.2, 1, tree.depth + 1) for tree in trees]
        some = [np.arange(tree.depth + 1)[rng.uniform(size=tree.depth + 1) < 0.7] for tree in trees]
        blocks = list(itertools.product(*(x.tolist() for x in some)))
        rates = [
            1e-4 * math.prod(x[d] for x, d in zip(parts, block, strict=True)) for block in blocks
        ]
        released = [(b, float(r), Fraction(0)) for b, r in zip(blocks, rates, strict=True)]
        counts += check(rng, Workload(trees, released))
    assert (counts > 15).all()


def test_rows_of_one_kind_have_errors_of_equal_distributions() -> None:
    rng = np.random.default_rng(8)
    for make in (lists, regulars, one_uneven, loose):
        for _ in range(10):
            trees = make(rng)
            asked = workload(rng, trees, int(rng.integers(1, 6)), int(rng.integers(0, 3)))
            top = np.max([each.block for each in asked.released], axis=0, initial=0)
            nodes = [
                np.arange(tree.size)[tree.depths <= d] for tree, d in zip(trees, top, strict=False)
            ]
            given = [None] * len(trees)
            _, each = products.kinds([asked], [nodes])
            for rows, [head] in each:
                try:
                    wanted = asked.weights(given, head)
                except UndeterminedError:
                    continue
                for row in itertools.product(*(x.reshape(-1) for x in rows)):
                    at = [int(n[r]) for n, r in zip(nodes, row, strict=True)]
                    found = asked.weights(given, at)
                    for one, other in zip(found, wanted, strict=True):
                        pair = [np.sort(np.abs(x).reshape(-1)) for x in (one, other)]
                        assert pair[0] == pytest.approx(pair[1], abs=1e-9)


# Errors, by enumeration of all noise

SMALL: dict[str, tuple[Any, int]] = {
    "two marginals": (([flat(2), flat(2)], [((1, 0), 1.0), ((0, 1), 2.0)], []), 9),
    "two releases": (([flat(2)], [((1,), 1.5), ((1,), 0.8), ((0,), 1.0)], []), 9),
    "a known margin": (([flat(2), flat(2)], [((1, 1), 1.0)], [(1, 0)]), 10),
    "two known margins": (([flat(2), flat(2)], [((1, 1), 1.2)], [(1, 0), (0, 1)]), 10),
    "a known total of two releases": (([flat(2)], [((1,), 1.0), ((1,), 2.0)], [(0,)]), 10),
    "an uneven tree": (
        (
            [Tree(np.array([-1, 0, 0, 1, 1])), flat(1)],
            [((0, 0), 1.0), ((1, 1), 2.0), ((2, 0), 1.5)],
            [],
        ),
        6,
    ),
    "a known depth": (
        ([Tree(np.array([-1, 0, 0, 1, 1, 2])), flat(1)], [((2, 1), 1.0)], [(1, 0)]),
        10,
    ),
    "no columns": (([], [((), 1.0), ((), 0.5)], []), 40),
}


@pytest.mark.parametrize("name", SMALL)
def test_intervals_hold_over_all_noise(name: str) -> None:
    """The estimates of all sums, from all outcomes: so the least squares and their errors."""
    (trees, released, known), most = SMALL[name]
    asked = Workload(
        trees, [(block, Fraction(rate), Fraction(0)) for block, rate in released], known
    )
    shapes = [shape_of(trees, block) for block, _ in released]
    rates = np.concatenate(
        [np.full(math.prod(s), rate) for s, (_, rate) in zip(shapes, released, strict=True)]
    )
    z = np.arange(-most, most + 1)
    noise = np.array([x.reshape(-1) for x in np.meshgrid(*[z] * rates.size, indexing="ij")])
    masses, left = np.ones(noise.shape[1]), 0.0
    for row, rate in zip(noise, rates, strict=True):
        a = math.exp(-rate)
        masses *= (1 - a) / (1 + a) * a ** np.abs(row)
        left += 2 * a ** (most + 1) / (1 + a)
    assert left < 0.02
    rng, answered = np.random.default_rng(9), 0
    cells = math.prod(tree.cells.size for tree in trees)
    true = rng.integers(0, 9, cells)
    ends = np.cumsum([0, *map(math.prod, shapes)])
    public = [(table_of(trees, b) @ true).astype(int).reshape(shape_of(trees, b)) for b in known]
    for _ in range(12):
        given, nodes = a_sum(rng, trees)
        at = [0 if x is None else int(x[-1]) for x in nodes]
        one = [None if x is None else np.array([n]) for x, n in zip(nodes, at, strict=True)]
        try:
            weights = asked.weights(given, at)
        except UndeterminedError:
            continue
        errors = np.concatenate([x.reshape(-1) for x in weights]) @ noise
        # Some of the outcomes are fitted, and off by these.
        for place in rng.choice(noise.shape[1], 5):
            noisy = [
                (table_of(trees, block) @ true + noise[a:b, place]).astype(int).reshape(shape)
                for (block, _), a, b, shape in zip(released, ends, ends[1:], shapes, strict=False)
            ]
            base, more, rounding = asked.fit(noisy, public).along(given, one)
            off = (base + more).reshape(-1)[0] - functional(trees, given, at) @ true
            assert abs(off - errors[place]) <= rounding + 1e-12
        joint = asked.joint([given], at)
        for alpha in (0.5, 0.1, 0.02):
            reach = joint.reach((1.0,), alpha)
            assert masses[np.abs(errors) > reach + 1e-9].sum() <= alpha
            wide = asked.bounds(given, one, alpha).reshape(-1)[0]
            assert wide >= reach - 1e-9
            spread = math.sqrt(joint.covariance[0, 0])
            nearer = 0.9 * reach - 0.1 * spread - 3 * max(1.0, np.abs(errors).max() / most)
            assert masses[np.abs(errors) > nearer].sum() + left > alpha or reach == 0
        answered += 1
    assert answered > 2


def test_rounding_stays_within_its_bound() -> None:
    """Tables without noise agree, so that all estimates are the true sums, of any size."""
    rng, off = np.random.default_rng(10), 0
    for make in [lists, regulars, one_uneven, loose] * 40:
        trees = make(rng)
        asked = workload(rng, trees, int(rng.integers(1, 6)), int(rng.integers(0, 3)))
        cells = math.prod(tree.cells.size for tree in trees)
        true = rng.integers(0, 10 ** rng.integers(3, 13), cells)
        tables = [
            (table_of(trees, block).astype(np.int64) @ true).reshape(shape_of(trees, block))
            for block in [*(each.block for each in asked.released), *asked.known]
        ]
        noisy, known = tables[: len(asked.released)], tables[len(asked.released) :]
        fitted, n = asked.fit(noisy, known), len(asked.released)
        for _ in range(6):
            given, nodes = a_sum(rng, trees)
            try:
                base, more, rounding = fitted.along(given, nodes)
            except UndeterminedError:
                continue
            rows = itertools.product(*([0] if x is None else x.tolist() for x in nodes))
            for one, two, at in zip(base.reshape(-1), more.reshape(-1), rows, strict=True):
                exact = sum(
                    Fraction(w) * int(x)
                    for w, x in zip(functional(trees, given, at).tolist(), true, strict=True)
                )
                error = abs(Fraction(one.item()) + Fraction(two.item()) - exact)
                assert error <= rounding
                off += error > 0
            heaviest = math.prod(float(np.abs(x).max(initial=0)) for x in given if x is not None)
            assert rounding <= 1e-9 * max(1.0, heaviest) * true.sum() * (n + 1)
    assert off > 20


@pytest.mark.parametrize("weights", [[0, 1, 1, 1, 1, 1, 1], [0, 3, 1, 0, 2, 5, -4]], ids=str)
def test_groups_have_the_sums_of_each_by_itself(weights: list[int]) -> None:
    """Their integers, and floats within the greatest of their bounds."""
    trees = [Tree(np.append(-1, np.zeros(many, np.int64))) for many in (6, 3)]
    released = [(block, Fraction(1), Fraction(0)) for block in ((1, 1), (1, 0))]
    noisy = [np.arange(18) ** 2, np.arange(6) * 97]
    fitted = Workload(trees, released, [(0, 0)]).fit(noisy, [np.array(2000)])
    of, own, nodes = np.array([-1, 0, 2, 0, 1, 1, 2]), np.array(weights), [None, np.arange(4)]
    base, more, rounding = fitted.along([Groups(of, own, 3), None], nodes)
    found = [fitted.along([np.where(of == row, own, 0), None], nodes) for row in range(3)]
    assert base.tolist() == [each.tolist() for each, _, _ in found]
    assert more.any()
    assert np.abs(more - np.array([each for _, each, _ in found])).max() <= rounding
    assert rounding == max(each for _, _, each in found)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("tree", [flat(1), flat(7), flat(50), balanced(5, 2), balanced(2, 3, 2)])
def test_different_rows_of_siblings_are_those_of_all_of_them(tree: Tree, columns: int) -> None:
    """To the bit, since intervals follow from them: of groups, one row in a run is computed."""
    rng = np.random.default_rng(columns)
    noisy = [((depth,), Fraction(1, 3), Fraction(0)) for depth in range(tree.depth + 1)]
    [axis] = Workload([tree], noisy)._axes
    for values, depth in itertools.product(([0, 1], [0.1, 0.7, -2.3]), range(tree.depth + 1)):
        functionals = np.repeat(rng.choice(values, (tree.size, columns)), 2, axis=0)[: tree.size]
        few, times = axis.distinct(functionals, depth)
        rows = axis.rows(functionals, depth)
        every = [row.tobytes() for row in rows + 0.0 if row.any()]
        assert sorted(row.tobytes() for row in few) == sorted({*every})
        assert times.tolist() == [every.count(row.tobytes()) for row in few]


def test_a_node_below_the_deepest_table_without_siblings_is_its_parent() -> None:
    """A bug: it was 0 where floats are of the size of the noise."""
    tree = Tree(np.array([-1, 0, 0, 1, 1, 2, 3]))
    asked = Workload([tree], [((2,), Fraction(1), Fraction(0))])
    base, more, rounding = asked.fit([np.array([5, 6, 7])]).along([None], [np.array([3, 6, 5])])
    assert (base + more).tolist() == [5, 5, 7]
    assert rounding == 0


def test_which_estimates_are_independent() -> None:
    """Rows of one depth, of one table; several tables, public ones too, have errors in common."""

    def of(blocks: Sequence[Any], known: Sequence[Any] = (), tree: Tree | None = None) -> Workload:
        released = [(block, Fraction(1), Fraction(0)) for block in blocks]
        return Workload([flat(3) if tree is None else tree, flat(2)], released, known)

    some = [np.array([1, 3]), None]
    assert of([(1, 0)]).independent(some)
    assert not of([(1, 0)]).independent([np.array([0, 1]), None])
    assert not of([(1, 0), (1, 1)]).independent(some)
    assert not of([(1, 0), (1, 0)]).independent(some)
    assert not of([(1, 0)], [(0, 0)]).independent(some)
    codes = Tree(np.array([-1, 0, 0, 1]), loose=True)
    assert of([(0, 0), (1, 0), (2, 0)], tree=codes).independent([np.arange(4), None])
