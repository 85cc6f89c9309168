"""Consistent tables, against other least-squares solvers and all roundings of small tables."""

import itertools
import math
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, sparse

from geomdp import GeometricMechanism
from geomdp._ground import identity as _identity
from geomdp.accuracy import variance
from geomdp.tables import Design, Hierarchy, NoisyTable
from geomdp.tables._answers import consistency
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


def with_table(design: Design, noisy: NDArray[np.int64], bounds: Any = None) -> NoisyTable:
    identity = _identity.Identity(_identity.fresh())
    mechanisms = design.mechanisms_for(1, bounds)
    return NoisyTable(design, mechanisms, None, "pandas", noisy, identity=identity)


def made(
    shape: tuple[int, ...], noisy: Any, shares: dict[int, str] | None = None
) -> tuple[NoisyTable, Floats, Margins, dict[Any, float]]:
    """Return a release of noisy counts, and its cells, margins and variances for a reference.

    Columns with a share have a margin. The noisy counts are a table with the sums of the margins
    before its cells, or a function of what a margin keeps.
    """
    shares = shares or {}
    names = "abc"[: len(shape)]
    design = Design(
        {name: range(size) for name, size in zip(names, shape, strict=True)},
        margins={names[place]: (-1, share) for place, share in shares.items()},
    )
    counts = np.zeros(design.shape, np.int64)
    sums: Margins = {}
    spread: dict[Any, float] = {}
    for block, mechanism in design.mechanisms_for(1).items():
        # A column without a margin has the cells alone.
        keeps = tuple(p for p, deep in enumerate(block) if deep or p not in shares)
        part = counts[design._axes.block(block)]
        part[:] = np.asarray(noisy(keeps) if callable(noisy) else noisy).reshape(part.shape)
        sums[keeps] = part.reshape([shape[p] for p in keeps])
        spread[keeps] = variance(mechanism, 0)
    whole = tuple(range(len(shape)))
    cells, spread["cells"] = sums.pop(whole), spread.pop(whole)
    return with_table(design, counts), cells, sums, spread


def consistent_cells(table: NoisyTable, total: int | None = None) -> NDArray[np.int64]:
    """Return the consistent cells, as an array."""
    rows, columns = table.consistent(total), [axis.label for axis in table.design._axes]
    for column in columns:
        rows = rows[rows[column] != -1]
    found = rows["count"].to_numpy(np.int64)
    return found.reshape(table.design._axes.sizes)


@st.composite
def problems(draw: Any, most: int) -> tuple[NoisyTable, tuple[Any, ...]]:
    """Return a release whose margins form at most two chains, and its least-squares problem."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(
        lambda shape: math.prod(shape) <= most
    ))  # fmt: skip
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = rng.integers(-5, draw(st.sampled_from([1, 6, 60])), shape)
    places = draw(st.sets(st.sampled_from(range(len(shape))), max_size=2))
    shares = {place: draw(st.sampled_from(["0.5", "0.1", "0.8"])) for place in places}
    all_of_them = tuple(range(len(shape)))
    table, *facts = made(
        tuple(shape),
        lambda key: cells if key == all_of_them else margin(cells, key) + rng.integers(-9, 10),
        shares,
    )
    return table, (*facts, draw(st.one_of(st.none(), st.integers(0, 80))))


@settings(max_examples=300)
@given(problems(48))
def test_margins_are_within_1_of_the_least_squares(problem: Any) -> None:
    table, facts = problem
    _, margins, _, total = facts
    check(consistent_cells(table, total), fitted(*facts), margins, total)


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
    table, facts = problem
    cells, margins, _, total = facts
    fit = best_support(*system(*facts)).reshape(cells.shape)
    result = consistent_cells(table, total)

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
    units = np.eye(cells.size, dtype=np.int64).reshape(-1, *cells.shape)
    parts = [
        (sparse.csr_array([margin(unit, key).ravel() for unit in units]).T, noisy.ravel(), 1.0)
        for key, noisy in margins.items()
    ]
    public = sparse.csr_array(np.ones((1, cells.size))), np.array([total]), 0.0
    # No release has these margins without the sums of two of them.
    found = consistency.near(cells.ravel(), np.ones(cells.size), [*parts, public])
    assert len(programs) >= least
    result = found.reshape(cells.shape)
    check(result, fitted(cells, margins, None, total), margins, total, within=4)


@pytest.mark.parametrize("seed", range(10))
def test_all_margins_of_three_columns_are_near_the_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, *facts = made(
        (3, 3, 3), lambda key: rng.integers(-2, 6 * 3 ** (3 - len(key)), 3 ** len(key)),
        dict.fromkeys(range(3), "0.5"),
    )  # fmt: skip
    total = int(rng.integers(0, 60))
    # There are seven noisy margins.
    check(consistent_cells(table, total), fitted(*facts, total), facts[1], total, within=8)


@pytest.mark.parametrize(
    ("shape", "places"),
    [((10_000,), ()), ((100, 100), (0, 1)), ((5000, 2), (0, 1)), ((22, 22, 22), (0, 1, 2))],
)
@pytest.mark.parametrize("full", [0.02, 1.0])
def test_ten_thousand_cells(shape: tuple[int, ...], places: Any, full: float) -> None:
    rng = np.random.default_rng(1)
    true = (rng.random(shape) < full) * rng.integers(0, 200, shape)
    # With noise from known keys: a mean of unlucky noise may be farther after the rounding.
    known = partial(release_not_private, GeometricMechanism(0.3))
    keys = map(bytes, itertools.product(range(256), repeat=32))
    table, noisy, *_ = made(
        shape, lambda key: known(margin(true, key), next(keys)), dict.fromkeys(places, "0.5")
    )
    total = int(true.sum())
    result = consistent_cells(table, total)
    assert result.min() >= 0
    assert result.sum() == total
    # Closer than what was released, as a projection must be, but for the rounding.
    assert np.abs(result - true).mean() < np.abs(noisy - true).mean()
    assert np.array_equal(result, consistent_cells(table, total))


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
    result = consistent_cells(made(cells.shape, cells)[0], 2**40)
    assert result.sum() == 2**40
    assert set(result.ravel()) == {2**40 // 2500, 2**40 // 2500 + 1}


def test_consistent_table_is_kept() -> None:
    true = np.arange(24).reshape(2, 3, 4)
    table, *_ = made(true.shape, partial(margin, true), {0: "0.5", 1: "0.2", 2: "0.7"})
    assert np.array_equal(consistent_cells(table, 276), true)


def test_mechanism_is_worth_its_variance() -> None:
    counts: Margins = {(0, 1): np.array([[80, 40, 60], [70, 10, 20]]), (0,): np.array([230, 60])}
    table, *facts = made((2, 3), counts.__getitem__, {1: "0.1"})
    check(consistent_cells(table), fitted(*facts, None), facts[1], None)
    alike, *_ = made((2, 3), counts.__getitem__, {1: "0.5"})
    assert not np.array_equal(consistent_cells(table), consistent_cells(alike))
    # Bounds far from the counts change nothing.
    bounded = with_table(table.design, table.counts, bounds=(0, 10**6))
    assert np.array_equal(consistent_cells(bounded), consistent_cells(table))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("public", [False, True])
def test_cells_of_a_ragged_tree_are_the_closest(seed: int, public: bool) -> None:
    rng = np.random.default_rng(seed)
    parents = {"a": "one", "b": "one", "c": "two", "one": "two", "d": "all", "two": "all"}
    tree = Hierarchy(parents, leaves_only=True)
    design = Design({"n": tree}, shares={"n": rng.integers(1, 5, 4).tolist()})
    spread = [variance(mechanism, 0) for mechanism in design.mechanisms_for(1).values()]
    noisy = rng.integers(-4, 7, 7)
    noisy[[tree.nodes.index(node) for node in ("all", "one", "two")]] = rng.integers(-4, 12, 3)
    total = int(rng.integers(9)) if public else None

    def distance(x: dict[str, int]) -> float:
        one = x["a"] + x["b"]
        counts = x | {"one": one, "two": one + x["c"], "all": one + x["c"] + x["d"]}
        if public and counts["all"] != total:
            return math.inf
        gaps = np.array([counts[node] for node in tree.nodes]) - noisy
        return float((gaps**2 / np.array(spread)[tree._tree.depths]).sum())

    rows = with_table(design, noisy).consistent(total)
    found = dict(zip(rows["n"], rows["count"].tolist(), strict=True))
    assert [*found] == tree.nodes
    assert found["two"] == found["one"] + found["c"] == found["a"] + found["b"] + found["c"]
    assert found["all"] == found["two"] + found["d"]
    tables = (
        dict(zip("abcd", each, strict=True)) for each in itertools.product(range(13), repeat=4)
    )
    best = min(map(distance, tables))
    assert distance({leaf: found[leaf] for leaf in "abcd"}) == pytest.approx(best)


# Public totals


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
    beside = margin(true, (0, 2)) + rng.integers(-3, 4, (5, 5))
    counts = {(0, 2): beside, (0, 1, 2): true + rng.integers(-9, 10, true.shape)}
    table, noisy, margins, spread = made(true.shape, counts.__getitem__, {1: "0.5"})
    known = {kept: margin(true, kept) for kept in [(0, 1), (1, 2)]}
    found = consistent_cells(knowing(table, true, "ab", "bc"))
    fit = fitted(noisy, margins | known, spread | dict.fromkeys(known, 1e-9), None)
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


#: More noise in the sums than in the cells, or the other way round, than is well conditioned.
FAR = Design({"a": [0, 1]}, margins={"a": (-1, "0.0001")})
FLAT = Design({"a": [0, 1]})


@pytest.mark.parametrize(
    ("table", "total", "error", "message"),
    [
        (with_table(FLAT, np.array([2**40 + 1, 0])), None, OverflowError, "noisy counts reach"),
        (with_table(FLAT, np.array([0, -(2**40) - 1])), None, OverflowError, "noisy counts reach"),
        (with_table(FLAT, np.array([1, 2])), -1, ValueError, "total = -1"),
        (with_table(FLAT, np.array([1, 2])), 1.0, TypeError, "total"),
        (with_table(FLAT, np.array([1, 2])), 2**40 + 1, OverflowError, "total reaches"),
        (with_table(FAR, np.array([1, 2, 3])), None, ValueError, "10\\^6 times"),
    ],
)
def test_invalid_parameter_raises(
    table: NoisyTable, total: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        table.consistent(total)


def test_missing_scipy_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError) as error:
        with_table(FLAT, np.array([1, 2])).consistent()
    assert "pip install 'scipy>=1.16'" in error.value.__notes__[0]


# The figures of the page


def test_biases_are_those_of_the_page() -> None:
    text = (Path(__file__).parents[2] / "docs/consistency.md").read_text()
    rows = re.findall(r"^\| .* \| (-?[\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    known = partial(release_not_private, GeometricMechanism(0.5))
    true = np.zeros((20, 10), np.int64)
    true[0] = 100
    errors: list[list[NDArray[Any]]] = [[] for _ in rows]
    for run in range(200):
        cells = known(true, key=run.to_bytes(32))
        counts = {(0, 1): cells, (0,): known(true.sum(axis=1), key=(1000 + run).to_bytes(32))}
        alone, *_ = made(true.shape, cells)
        beside, *_ = made(true.shape, counts.__getitem__, {1: "0.5"})
        estimates = (
            cells,
            np.maximum(cells, 0),
            consistent_cells(alone, 1000),
            consistent_cells(beside),
            consistent_cells(beside, 1000),
        )
        for found, each in zip(errors, estimates, strict=True):
            found.append(each - true)
    for row, found in zip(rows, errors, strict=True):
        mean = np.mean(found, axis=0)
        parts = mean[0].mean(), mean[1:].mean(), mean.sum(), np.abs(found).mean()
        assert [float(x) for x in row] == [round(float(part), 2) for part in parts]
