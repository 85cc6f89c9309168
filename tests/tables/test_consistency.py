"""Consistent tables, against other least-squares solvers and all roundings of small tables."""

import itertools
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, sparse

from geomdp import GeometricMechanism, _identity
from geomdp.accuracy import variance
from geomdp.tables import Design, Hierarchy, NoisyTable, consistency
from geomdp.tables.consistency import consistent
from geomdp.testing import release_not_private
from test_workload import cells_of

Floats = NDArray[np.float64]
Margins = dict[Any, NDArray[np.int64]]

#: More than the error of a reference.
NEAR = 1e-5


def kept(key: Any) -> tuple[int, ...]:
    return key if isinstance(key, tuple) else (key,)


def margin(table: NDArray[Any], key: Any) -> NDArray[Any]:
    """Return the sums of a table that keep these axes, in their order."""
    sums = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept(key)))
    return np.asarray(sums).transpose([sorted(kept(key)).index(axis) for axis in kept(key)])


def system(
    cells: NDArray[np.int64], margins: Margins, variances: Any, total: int | None
) -> tuple[Floats, Floats]:
    """Return the weighted least-squares problem, with a large weight for the public total."""
    variances = variances or dict.fromkeys(["cells", *margins], 1.0)
    units = np.eye(cells.size).reshape(-1, *cells.shape)
    parts = [(np.eye(cells.size), cells.ravel(), variances["cells"])]
    for key, noisy in margins.items():
        columns = np.array([margin(unit, key).ravel() for unit in units])
        parts.append((columns.T, noisy.ravel(), variances[key]))
    if total is not None:
        parts.append((np.ones((1, cells.size)), np.array([total]), 1e-9))
    matrix = np.vstack([rows / math.sqrt(each) for rows, _, each in parts])
    return matrix, np.concatenate([wanted / math.sqrt(each) for _, wanted, each in parts])


def fitted(cells: NDArray[np.int64], margins: Margins, variances: Any, total: int | None) -> Floats:
    found, _ = optimize.nnls(*system(cells, margins, variances, total))
    return np.asarray(found).reshape(cells.shape)


def check(result: NDArray[Any], fit: Floats, keys: Any, total: int | None, within: int = 1) -> None:
    assert (result.dtype, result.shape) == (np.dtype(np.int64), fit.shape)
    assert result.min() >= 0
    assert np.abs(result - fit).max() < 1 + NEAR
    assert abs(result.sum() - fit.sum()) < 1 + NEAR
    assert total is None or result.sum() == total
    for key in keys:
        assert np.abs(margin(result, key) - margin(fit, key)).max() < within + NEAR


#: Margins that form at most two chains, by number of axes.
CHAINS: dict[int, list[tuple[Any, ...]]] = {
    1: [(), ((),)],
    2: [(), (0,), (1, 0), ((), 0, 1)],
    3: [((1, 0), 1, 2), (0, 2), ((), (0, 1), (2,)), ((0, 2), (2, 1))],
}


@st.composite
def problems(draw: Any, most: int) -> tuple[NDArray[np.int64], Margins, Any, int | None]:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(
        lambda shape: math.prod(shape) <= most
    ))  # fmt: skip
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = rng.integers(-5, draw(st.sampled_from([1, 6, 60])), shape)
    keys = draw(st.sampled_from(CHAINS[len(shape)]))
    margins = {key: margin(cells, key) + rng.integers(-9, 10) for key in keys}
    variances = draw(st.one_of(st.none(), st.just({key: rng.uniform(0.1, 9) for key in keys})))
    if variances is not None:
        variances["cells"] = 1.5
    return cells, margins, variances, draw(st.one_of(st.none(), st.integers(0, 80)))


@settings(max_examples=300)
@given(problems(48))
def test_margins_are_within_1_of_the_least_squares(problem: Any) -> None:
    cells, margins, variances, total = problem
    result = consistent(cells, margins=margins, variances=variances, total=total)
    check(result, fitted(*problem), margins, total)


def best_support(matrix: Floats, wanted: Floats) -> Floats:
    """Return the least squares without negative entries, of the solutions with each support."""
    size = matrix.shape[1]
    best, found = math.inf, np.zeros(size)
    for support in itertools.product([False, True], repeat=size):
        x = np.zeros(size)
        x[list(support)] = np.linalg.lstsq(matrix[:, support], wanted, rcond=None)[0]
        error = float(((matrix @ x - wanted) ** 2).sum())
        if x.min() >= 0 and error < best:
            best, found = error, x
    return found


@settings(max_examples=60)
@given(problems(6))
def test_result_is_the_best_of_all_tables(problem: Any) -> None:
    cells, margins, variances, total = problem
    fit = best_support(*system(*problem)).reshape(cells.shape)
    result = consistent(cells, margins=margins, variances=variances, total=total)

    def allowed(table: NDArray[Any]) -> bool:
        sums = [(margin(table, key), margin(fit, key)) for key in [(), *margins]]
        rounded = all((np.abs(a - b) < 1 - NEAR).all() for a, b in sums)
        return rounded and (total is None or table.sum() == total)

    choices = [sorted({math.floor(x + NEAR), math.ceil(x - NEAR)}) for x in fit.ravel().tolist()]
    tables = [np.reshape(each, cells.shape) for each in itertools.product(*choices)]
    least = min(((table - fit) ** 2).sum() for table in tables if allowed(table))
    assert allowed(result)
    assert ((result - fit) ** 2).sum() == pytest.approx(least, abs=100 * NEAR)


#: The vertex of the last one is fractional, and rounded by another program.
@pytest.mark.parametrize(("seed", "least"), [*((seed, 1) for seed in range(20)), (235, 2)])
def test_margins_of_three_chains_are_within_4(
    seed: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(-2, 6, (3, 3, 3))
    margins: Margins = {key: rng.integers(-2, 16, (3, 3)) for key in [(0, 1), (0, 2), (1, 2)]}
    total = int(rng.integers(0, 60))
    programs = []

    def counted(*args: Any, solve: Callable[..., Any] = optimize.linprog, **options: Any) -> Any:
        programs.append(args)
        return solve(*args, **options)

    monkeypatch.setattr(optimize, "linprog", counted)
    result = consistent(cells, margins=margins, total=total)
    assert len(programs) >= least
    check(result, fitted(cells, margins, None, total), margins, total, within=4)


@pytest.mark.parametrize(
    ("shape", "keys"),
    [
        ((10_000,), ()),
        ((100, 100), (0, 1)),
        ((5000, 2), (0, 1, ())),
        ((22, 22, 22), ((0, 1), (0, 2), (1, 2))),
    ],
)
@pytest.mark.parametrize("full", [0.02, 1.0])
def test_ten_thousand_cells(shape: tuple[int, ...], keys: Any, full: float) -> None:
    rng = np.random.default_rng(1)
    true = (rng.random(shape) < full) * rng.integers(0, 200, shape)
    # With noise from known keys: a mean of unlucky noise may be farther after the rounding.
    known = partial(release_not_private, GeometricMechanism(0.3))
    noisy = known(true, bytes(32))
    margins = {key: known(margin(true, key), bytes([n]) * 32) for n, key in enumerate(keys, 1)}
    total = int(true.sum())
    result = consistent(noisy, margins=margins, total=total)
    assert result.min() >= 0
    assert result.sum() == total
    # Closer than what was released, as a projection must be, but for the rounding.
    assert np.abs(result - true).mean() < np.abs(noisy - true).mean()
    assert np.array_equal(result, consistent(noisy, margins=margins, total=total))


@pytest.mark.parametrize("seed", range(5))
def test_vertex_of_few_cells_at_first_is_that_of_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    ones = np.ones((1, 20))
    matrix = sparse.csc_array(np.vstack([np.kron(np.eye(20), ones), np.kron(ones, np.eye(20))]))
    least, widths = matrix @ rng.integers(0, 2, 400) - rng.integers(0, 2, 40), np.ones(40)
    costs = rng.uniform(-1, 1, 400)
    monkeypatch.setattr(consistency, "_CELLS_OF_A_SUM", 1)
    found = consistency._vertex(costs, matrix, least, widths)
    both, ends = sparse.vstack([matrix, -matrix]), np.concatenate([least + widths, -least])
    assert (both @ found <= ends + NEAR).all()
    assert costs @ found == pytest.approx(optimize.linprog(costs, both, ends, bounds=(0, 1)).fun)


def test_total_is_exact_for_large_counts() -> None:
    cells = np.full((50, 50), 2**40 - 7)
    rows = cells.sum(axis=1)[:1]
    assert int(rows[0]) > 2**40
    result = consistent(cells, total=2**40)
    assert result.sum() == 2**40
    assert set(result.ravel()) == {2**40 // 2500, 2**40 // 2500 + 1}


def test_consistent_table_is_kept() -> None:
    table = np.arange(24).reshape(2, 3, 4)
    margins = {key: margin(table, key) for key in [(0, 1), (2, 0), 1, ()]}
    assert np.array_equal(consistent(table, margins=margins, total=276), table)


def test_mechanism_is_worth_its_variance() -> None:
    fine, coarse = GeometricMechanism(1.0), GeometricMechanism(0.1, bounds=(0, 10**6))
    cells, rows = [[80, 40, 60], [70, 10, 20]], [230, 60]
    numbers = {"cells": variance(fine, 0), 0: variance(GeometricMechanism(0.1), 0)}
    by_number = consistent(cells, margins={0: rows}, variances=numbers)
    by_mechanism = consistent(cells, margins={0: rows}, variances={"cells": fine, 0: coarse})
    assert np.array_equal(by_mechanism, by_number)
    assert not np.array_equal(by_mechanism, consistent(cells, margins={0: rows}))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("public", [False, True])
def test_cells_of_a_ragged_tree_are_the_closest(seed: int, public: bool) -> None:
    rng = np.random.default_rng(seed)
    labels, noisy = list("abcd"), rng.integers(-4, 7, 4)
    parents = {"a": "one", "b": "one", "c": "two", "one": "two"}
    margins = dict(zip(["one", "two", ()], rng.integers(-4, 12, 3).tolist(), strict=True))
    variances = {"cells": 1.0, "one": 0.25, "two": 2.0, (): 0.5}
    total = int(rng.integers(9)) if public else None

    def distance(x: Any) -> float:
        sums = {"one": x[0] + x[1], "two": sum(x[:3]), (): sum(x)}
        if public and sum(x) != total:
            return math.inf
        gaps = ((sums[key] - margins[key]) ** 2 / variances[key] for key in margins)
        return float(((np.array(x) - noisy) ** 2).sum()) + sum(gaps)

    given = dict(zip(labels, noisy.tolist(), strict=True))
    options: Any = {"margins": margins, "variances": variances, "total": total}
    found = consistent(given, parents=parents, **options)
    assert list(found) == labels
    best = min(map(distance, itertools.product(range(13), repeat=4)))
    assert distance(list(found.values())) == pytest.approx(best)
    numbered = {labels.index(key) if key in labels else key: up for key, up in parents.items()}
    assert consistent(noisy, parents=numbered, **options).tolist() == list(found.values())


# Public totals


def with_table(design: Design, noisy: NDArray[np.int64]) -> NoisyTable:
    identity = _identity.Identity(_identity.fresh())
    return NoisyTable(design, design.mechanisms_for(1), None, "pandas", noisy, identity=identity)


def knowing(table: NoisyTable, true: NDArray[np.int64], *public: str) -> NoisyTable:
    """Return a release with the totals of a table of all cells, by columns of one letter."""
    levels = {axis.label: axis.levels for axis in table.design._axes}
    for names in public:
        frame = pd.DataFrame(itertools.product(*(levels[x] for x in names)), columns=list(names))
        sums = margin(true, tuple([*levels].index(x) for x in names))
        table = table.with_totals(frame.assign(n=sums.ravel()) if names else int(sums))
    return table


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("margins", ["", "ab", "abc"])
@pytest.mark.parametrize(
    "public",
    [["a"], ["bc"], ["ab", "bc", "b"], ["ab", "c", ""], ["a", "b"], ["abc"]],
)
def test_public_totals_are_exact(public: list[str], margins: str, seed: int) -> None:
    """No other rounding of the least squares with these totals is nearer to it."""
    rng = np.random.default_rng(seed)
    design = Design({name: [0, 1] for name in "abc"}, margins=dict.fromkeys(margins, 9))
    true, noisy = rng.integers(0, 3, (2, 2, 2)), rng.integers(-5, 8, design.shape)
    sums: Margins = {}
    spread: dict[Any, float] = {}
    for block, mechanism in design.mechanisms_for(1).items():
        kept = tuple(n for n, axis in enumerate(design._axes) if block[n] == axis.tree.depth)
        sums[kept] = noisy[design._axes.block(block)].reshape([2] * len(kept))
        spread[kept] = variance(mechanism, 0)
    cells, spread["cells"] = sums.pop((0, 1, 2)), spread.pop((0, 1, 2))
    known = [tuple("abc".index(name) for name in names) for names in public]
    exact = {kept: margin(true, kept) for kept in known}
    fit = fitted(cells, sums | exact, spread | dict.fromkeys(known, 1e-9), None)
    table = knowing(with_table(design, noisy), true, *public)
    rows = table.consistent(int(true.sum()))
    assert rows.equals(table.consistent())
    shown = rows.set_index([*"abc"])["count"]
    result = np.array([shown[cell] for cell in np.ndindex(2, 2, 2)]).reshape(2, 2, 2)
    check(result, fit, [], int(true.sum()))

    open_ = [one for one in sums if not any({*one} <= {*other} for other in known)]
    chains = not any(
        all(not {*one} <= {*other} for one, other in itertools.permutations(three, 2))
        for three in itertools.combinations([*open_, *known], 3)
    )

    def allowed(table: NDArray[Any]) -> bool:
        exact = all(np.array_equal(margin(table, kept), margin(true, kept)) for kept in known)
        gaps = [np.abs(margin(table, kept) - margin(fit, kept)).max() for kept in open_]
        return exact and (not chains or max(gaps, default=0) < 1 - NEAR)

    assert allowed(result)
    if not chains:
        return
    choices = [sorted({math.floor(x + NEAR), math.ceil(x - NEAR)}) for x in fit.ravel().tolist()]
    tables = [np.reshape(each, cells.shape) for each in itertools.product(*choices)]
    least = min(((each - fit) ** 2).sum() for each in tables if allowed(each))
    assert ((result - fit) ** 2).sum() == pytest.approx(least, abs=100 * NEAR)


@pytest.mark.parametrize("seed", [0, 2, 7, 31])
def test_public_totals_are_exact_beside_a_margin_that_crosses_them(seed: int) -> None:
    """Vertices are fractional, without a sum of few cells for the last three seeds."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, (5, 5, 5))
    margins = {(0, 2): margin(true, (0, 2)) + rng.integers(-3, 4, (5, 5))}
    noisy, public = true + rng.integers(-9, 10, true.shape), [(0, 1), (1, 2)]
    known = {kept: margin(true, kept) for kept in public}
    found = consistency.keeping(noisy, margins, dict.fromkeys(["cells", (0, 2)], 1.0), known)
    fit = fitted(noisy, margins | known, {"cells": 1, (0, 2): 1} | dict.fromkeys(known, 1e-9), None)
    check(found, fit, [], None)
    assert all(np.array_equal(margin(found, kept), known[kept]) for kept in known)


CLOSED = Hierarchy({"p": "r", "q": "r", "s": "p", "t": "p"}, leaves_only=True)
OPEN = Hierarchy({"p": "r", "s": "p", "t": "p"})
SIDES = {"x": ["f", "m"], "y": ["all"]}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("levels", "public"),
    [
        ({"n": CLOSED}, [(1,)]),
        ({"n": CLOSED}, [(2,), (0,)]),
        ({"n": OPEN}, [(1,)]),
        ({"n": OPEN}, [(0,), (2,)]),
        ({"n": CLOSED, **SIDES}, [(1, 1, 1)]),
        ({**SIDES, "n": CLOSED}, [(0, 0, 0), (1, 0, 0), (1, 0, 2)]),
        ({"n": CLOSED, **SIDES}, [(0, 0, 1)]),
    ],
)
def test_cells_of_a_tree_are_the_closest_with_public_totals(
    levels: Any, public: list[Any], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    design = Design(levels)
    axes = design._axes
    matrix = np.ones((1, 1), np.int64)
    for axis in axes:
        matrix = np.kron(matrix, cells_of(axis.tree).astype(np.int64))
    tables = np.array(list(itertools.product(range(6), repeat=matrix.shape[1]))) @ matrix.T

    def totals(nodes: NDArray[np.int64], block: Any) -> NDArray[np.int64]:
        """Return those of a block, of tables whose nodes are on the last axis."""
        found = nodes.reshape(-1, *axes.shape)
        for place, (axis, depth) in enumerate(zip(axes, block, strict=True), 1):
            if axis.hierarchy is not None:
                level = axis.tree.level(depth)
                found = found.take(range(level.start, level.stop), place)
            elif not depth:
                found = found.sum(axis=place, keepdims=True)
        return found

    true = matrix @ rng.integers(0, 3, matrix.shape[1])
    noisy = rng.integers(-3, 5, design.shape)
    table = with_table(design, noisy)._knowing({block: totals(true, block)[0] for block in public})
    found = np.array(table.consistent()["count"])
    variances = np.zeros(design.shape)
    for block, mechanism in design.mechanisms_for(1).items():
        variances[axes.block(block)] = variance(mechanism, 0)
    allowed = np.ones(len(tables), np.bool_)
    for block in public:
        gaps = totals(tables, block) != totals(true, block)
        allowed &= ~gaps.reshape(len(tables), -1).any(axis=1)
    costs = ((tables[allowed] - noisy.ravel()) ** 2 / variances.ravel()).sum(axis=1)
    assert (tables[allowed] == found).all(axis=1).any()
    assert ((found - noisy.ravel()) ** 2 / variances.ravel()).sum() == pytest.approx(costs.min())
    assert np.array_equal(table.counts, noisy)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tree", [CLOSED, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize(
    "public", [[(1, 0)], [(0, 0), (2, 0)], [(1, 0), (0, 1)], [(2, 0), (1, 1)], [(1, 0), (2, 1)]]
)
def test_totals_across_a_tree_are_exact_and_the_rest_is_near_the_least_squares(
    public: list[Any], tree: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    design = Design({"n": tree, "x": ["f", "m"]})
    axes = design._axes
    inside = cells_of(axes[0].tree).astype(np.int64)
    true = inside @ rng.integers(0, 4, (inside.shape[1], 2))
    noisy = true + rng.integers(-4, 5, true.shape)
    rows, wanted = [np.kron(inside, np.eye(2))], [noisy.ravel()]
    weights = np.zeros(design.shape)
    for block, mechanism in design.mechanisms_for(1).items():
        weights[axes.block(block)] = variance(mechanism, 0) ** -0.5
    scales = [weights.ravel()]
    known: dict[tuple[int, ...], Any] = {}
    for depth, kept in public:
        level = axes[0].tree.level(depth)
        sums = np.eye(2) if kept else np.ones((1, 2))
        known[depth, kept] = true[level] @ sums.T.astype(np.int64)
        rows.append(np.kron(inside[level], sums))
        wanted.append(known[depth, kept].ravel())
        scales.append(np.full(wanted[-1].size, 1e4))
    scale = np.concatenate(scales)
    fit, _ = optimize.nnls(np.vstack(rows) * scale[:, None], np.concatenate(wanted) * scale)
    found = np.array(with_table(design, noisy)._knowing(known).consistent()["count"])
    found = found.reshape(true.shape)
    cells = np.linalg.lstsq(inside, found, rcond=None)[0].round().astype(np.int64)
    assert np.array_equal(inside @ cells, found)
    assert cells.min() >= 0
    for (depth, kept), counts in known.items():
        nodes = found[axes[0].tree.level(depth)]
        assert np.array_equal(nodes if kept else nodes.sum(axis=1, keepdims=True), counts)
    assert np.abs(cells.ravel() - fit).max() < 1 + 1e-3
    if public != [(2, 0), (1, 1)]:
        assert np.abs(found.ravel() - rows[0] @ fit).max() < 1 + 1e-3


def by(*names: str) -> pd.DataFrame:
    """Return totals of 1 by these columns."""
    return pd.DataFrame(itertools.product([0, 1], repeat=len(names)), columns=list(names)).assign(
        count_of=2 ** (3 - len(names))
    )


def test_totals_that_no_rounding_keeps_are_refused() -> None:
    lists = with_table(Design({name: [0, 1] for name in "abc"}), np.ones((2, 2, 2), np.int64))
    three = lists.with_totals(by("a", "b")).with_totals(by("b", "c")).with_totals(by("a", "c"))
    with pytest.raises(ValueError, match=r"cannot keep with_totals of \[\('a', 'b'\), .* together"):
        three.consistent()
    for total in (7, 9):
        for known in (lists.with_totals(8), lists.with_totals(by("a"))):
            with pytest.raises(ValueError, match="contradict"):
                known.consistent(total)
    tree = with_table(Design({"n": CLOSED, "a": [0, 1], "b": [0, 1]}), np.ones((5, 2, 2), np.int64))
    nodes = pd.DataFrame({"n": ["p", "q"], "count_of": 4})
    crossing = tree.with_totals(nodes).with_totals(by("a")).with_totals(by("b"))
    with pytest.raises(ValueError, match=r"totals of \[\('n',\), \('a',\), \('b',\)\] together"):
        crossing.consistent()
    with pytest.raises(OverflowError, match=r"totals reach beyond 2\*\*40"):
        lists.with_totals(2**41).consistent()
    with pytest.raises(OverflowError, match=r"total reaches beyond 2\*\*40"):
        lists.consistent(2**41)


@pytest.mark.parametrize(
    ("cells", "options", "error", "message"),
    [
        ([[1]], {"parents": {}}, ValueError, "one axis"),
        ([1], {"parents": ["a"]}, TypeError, "parents"),
        ([1], {"parents": {1: "a"}}, ValueError, "parents of 1 are"),
        ([1], {"parents": {(): "a"}}, ValueError, r"parents of \(\) are"),
        ([1, 2], {"parents": {0: 1}}, ValueError, "own label"),
        ([1], {"parents": {0: "a", "a": "b", "b": "a"}}, ValueError, "without cycles"),
        ([1], {"parents": {0: "a"}, "margins": {"b": 1}}, ValueError, "margins of 'b' are"),
        ([1], {"parents": {0: "a"}, "margins": {0: 1}}, ValueError, "margins of 0 are"),
        ([1], {"parents": {0: "a"}, "margins": {"a": [1]}}, ValueError, "one count"),
        ([1.5], {}, TypeError, "float"),
        ([], {}, ValueError, "give at least one"),
        ([2**40 + 1], {}, OverflowError, "cells"),
        ([1], {"total": -1}, ValueError, "total = -1"),
        ([1], {"total": 1.0}, TypeError, "total"),
        ([[1]], {"margins": [1]}, TypeError, "margins"),
        ([[1]], {"margins": {2: [1]}}, ValueError, "margins of 2"),
        ([[1]], {"margins": {"rows": [1]}}, ValueError, "margins of 'rows'"),
        ([[1]], {"margins": {(0, 0): [1]}}, ValueError, "once"),
        ([[1]], {"margins": {(0, 1): [[1]]}}, ValueError, "fewer axes than 2"),
        ([[1, 2]], {"margins": {1: [1]}}, ValueError, r"margins\[1\] is of shape \(1,\)"),
        ([1], {"margins": {(): 2**41}}, OverflowError, r"margins\[\(\)\]"),
        ([1], {"variances": 3}, TypeError, "variances"),
        ([1], {"variances": {}}, ValueError, "cells"),
        ([1], {"variances": {"cells": 0}}, ValueError, r"variances\['cells'\] = 0"),
        (
            [1],
            {"variances": {"cells": GeometricMechanism.from_scale(0)}},
            ValueError,
            r"variances\['cells'\] = 0.0",
        ),
        (
            [1],
            {"margins": {(): 3}, "variances": {"cells": 1, (): 2e6}},
            ValueError,
            "10\\^6 times",
        ),
    ],
)
def test_invalid_parameter_raises(
    cells: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        consistent(cells, **options)


def test_missing_scipy_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError) as error:
        consistent([1])
    assert "pip install 'scipy>=1.16'" in error.value.__notes__[0]
