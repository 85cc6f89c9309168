"""Counts on a tree: estimates, intervals by enumeration of all noise, files, budgets, errors."""

import gc
import itertools
import math
import pickle
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from exact import stated
from geomdp import GeometricMechanism, accounting
from geomdp._ground import identity as _identity
from geomdp._numerics import sum_tails
from geomdp.tables import Design, Hierarchy, NoisyTable
from geomdp.tables._math import weighted
from geomdp.tables._math.trees import LeastSquares, Tree
from geomdp.tables._math.workload import Workload
from leaves import of_leaves
from test_documents import COUNTIES
from test_products import all_noise
from test_workload import cells_of

#: Ragged in both ways: branches differ in size and in depth.
RAGGED = {
    **{"North": "all", "South": "all", "West": "all"},
    **{f"n{i}": "North" for i in range(4)},
    **{f"s{i}": "South" for i in range(6)},
    **{"s0a": "s0", "s0b": "s0"},
}
TREE = Hierarchy(RAGGED, leaves_only=True)
NORTH, SOUTH = ["n0", "n1", "n2", "n3"], ["s1", "s2", "s3", "s4", "s5"]
COUNTS = {leaf: 100 + 7 * place for place, leaf in enumerate(TREE.leaves)}
TABLE = of_leaves(TREE, COUNTS)
#: So little noise that counts are exact but for a probability of exp(-100).
CLEAR = 400
#: The identity of releases made by hand.
NEW = _identity.Identity(_identity.fresh())


def sums_of(tree: Hierarchy, counts: dict[Any, int]) -> dict[Any, int]:
    found = dict.fromkeys(tree.nodes, 0)
    parents = tree.parents
    for leaf, count in counts.items():
        node = leaf
        while node is not None:
            found[node] += count
            node = parents[node]
    return found


# The tree and the estimates


def test_the_tree_is_ordered_from_the_root_down() -> None:
    assert TREE.nodes[:4] == ["all", "North", "South", "West"]
    assert TREE.nodes[4:] == [*NORTH, "s0", *SOUTH, "s0a", "s0b"]
    assert TREE.leaves == ["West", *NORTH, *SOUTH, "s0a", "s0b"]
    assert [TREE.at_depth(d)[0] for d in range(4)] == ["all", "North", "n0", "s0a"]
    assert TREE.parents == {"all": None, **RAGGED}
    assert (len(TREE), list(TREE), TREE.depth) == (12, TREE.leaves, 3)
    pairs = list(RAGGED), list(RAGGED.values())
    for columns in (
        pairs,
        map(pd.Series, pairs),
        map(pl.Series, pairs),
        map(pa.array, pairs),
        map(np.array, pairs),
        ([*pairs[0], "all"], [*pairs[1], None]),
    ):
        assert Hierarchy(*columns, leaves_only=True) == TREE
    assert Hierarchy({"only": None}).leaves == ["only"]
    assert Hierarchy(RAGGED) != TREE
    assert pickle.loads(pickle.dumps(TREE)) == TREE


def test_counts_of_a_release_add_up_by_name() -> None:
    noisy = of_leaves(TREE, dict(reversed(COUNTS.items()))).release(epsilon=CLEAR)
    assert noisy.to_dict() == sums_of(TREE, COUNTS)
    assert list(noisy.to_dict()) == TREE.nodes
    in_order = of_leaves(TREE, COUNTS.values())
    assert in_order.release(epsilon=CLEAR).to_dict() == noisy.to_dict()
    assert column(noisy.consistent(), "count") == column(noisy.frame, "count")
    assert np.rint(column(noisy.estimates(), "estimate")).tolist() == column(noisy.frame, "count")


def column(frame: Any, name: str) -> list[Any]:
    return list(frame[name])


def ends(noisy: NoisyTable, alpha: Any, **more: Any) -> dict[Any, tuple[int, int]]:
    """The interval of each row."""
    frame = noisy.intervals(alpha, **more)
    return dict(zip(noisy.to_dict(), zip(frame["lower"], frame["upper"], strict=True), strict=True))


RATES = [0.3, 0.7, 0.2, 1.5]


def least_squares(tree: Tree, rates: list[float]) -> LeastSquares:
    return LeastSquares(tree, np.array([weighted.variance(rate) for rate in rates])[tree.depths])


def dense(tree: Hierarchy, rates: list[float]) -> tuple[Any, Any]:
    """Return the covariance of the best unbiased estimates, and the variances of the noise."""
    a = cells_of(tree._tree)
    variances = np.array([1 / (2 * math.sinh(rates[d] / 2) ** 2) for d in tree._tree.depths])
    inverse = np.diag(1 / variances)
    return a @ np.linalg.inv(a.T @ inverse @ a) @ a.T, variances


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        (RAGGED, RATES),
        (RAGGED, [2.0, 0.05, 1.0, 0.5]),
        (RAGGED, [0.1, 0.1, 3.0, 0.1]),
        ({"b": "r", "c": "b"}, [2.0, 0.01, 1.0]),
    ],
)
def test_two_passes_are_the_weighted_least_squares(given: Any, rates: list[float]) -> None:
    tree = Hierarchy(given, leaves_only=True)
    covariance, variances = dense(tree, rates)
    squares = least_squares(tree._tree, rates)
    rng = np.random.default_rng(1)
    noisy = rng.normal(size=(len(tree.nodes), 3))
    assert squares(noisy) == pytest.approx(covariance / variances @ noisy, abs=1e-12)
    assert squares.variances == pytest.approx(np.diag(covariance), rel=1e-12)
    functional = rng.normal(size=len(variances))
    wanted = functional @ covariance / variances
    assert squares.weights(functional) == pytest.approx(wanted, abs=1e-12)
    shares = np.abs(covariance / variances) / np.array(rates)[tree._tree.depths]
    np.fill_diagonal(shares, 0)
    assert squares.widest(1 / np.array(rates)[tree._tree.depths]) == pytest.approx(
        shares.max(axis=1), rel=1e-9
    )


# Intervals


SMALL = {
    "star": ({"a": "r", "b": "r", "c": "r"}, [2, 2], 10),
    "chain": ({"b": "r", "c": "b", "d": "c"}, [2, 1, 2, 2], 15),
    "ragged": ({"a": "r", "b": "r", "c": "a", "d": "a"}, [3, 2, 2], 6),
    "pair": ({"a": "r", "b": "r"}, ["0.5", "0.4"], 55),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("one_by_one", [True, False])
def test_intervals_hold_by_enumeration(
    name: str, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each interval, of nodes, of unions and of all at once, over all outcomes of the noise."""
    if not one_by_one:
        monkeypatch.setattr(Workload, "most", 0)
    given, epsilons, most = SMALL[name]
    tree = Hierarchy(given, leaves_only=True)
    mechanisms = [GeometricMechanism(stated(each)) for each in epsilons]
    rates = [float(each.rate) for each in mechanisms]
    outcomes, masses, left = all_noise(np.array(rates)[tree._tree.depths], most)
    assert left < 1e-3
    assert math.fsum(masses) + left >= 1 - 1e-12  # But for rounding.
    true = (cells_of(tree._tree) @ np.arange(5, 5 + len(tree))).astype(int)
    of_depth = {(depth,): each for depth, each in enumerate(mechanisms)}
    zero = NoisyTable(Design({"node": tree}), of_depth, None, "pandas", true, identity=NEW)
    assert column(zero.estimates(), "estimate") == pytest.approx(true)
    squares = least_squares(tree._tree, rates)
    errors, spreads = squares(outcomes.astype(float)), np.sqrt(squares.variances)
    for alpha in (Fraction(1, 2), Fraction(1, 10), Fraction(1, 50)):
        for simultaneous in (False, True):
            if alpha == Fraction(1, 2) and simultaneous:
                continue
            found = zero.intervals(alpha, simultaneous=simultaneous)
            # Those of other noisy counts are as far out, up to the rounding to integers.
            out = (np.array(found["upper"]) - true)[:, None]
            missed = np.abs(errors) >= out + 1
            each = missed.any(axis=0)[None] if simultaneous else missed
            assert (each @ masses <= alpha).all()
            if simultaneous:
                continue
            # The reach is near the least that holds.
            for node, reach in enumerate(out[:, 0]):
                nearer = 0.96 * reach - (0.1 if one_by_one else 0.25) * spreads[node] - 1
                assert masses[np.abs(errors[node]) > nearer].sum() > alpha


@pytest.mark.parametrize("rate", [0.01, 0.5, 2.0, 9.0])
def test_exponential_bounds_hold(rate: float) -> None:
    """Of the tail at each point and of the moments, against sums of masses."""
    a = math.exp(-rate)
    z = np.arange(-int(60 / rate) - 60, int(60 / rate) + 61)
    masses = (1 - a) / (1 + a) * a ** np.abs(z)
    above = np.append(np.cumsum(masses[::-1])[::-1], 0)
    for part in (1e-3, 0.1, 0.5, 0.8, 0.95, 1.0):
        u = part * rate
        bound = float(weighted.log_first(rate, np.array([u]))[0])
        # P(Z > y) for y just below each integer is the mass from it on.
        assert (np.log(np.maximum(above[:-1], 1e-300)) + u * z <= bound + 1e-6 * (1 + u)).all()
        moment = float(weighted.log_mgf(rate, np.array([u]))[0])
        assert bound <= moment + 1e-12
        if part <= 0.5:
            assert moment == pytest.approx(math.log(math.fsum(masses * np.exp(u * z))), rel=1e-6)


@pytest.mark.parametrize("rate", [Fraction(1, 10**4), Fraction(1, 10), Fraction(2), Fraction(9)])
@pytest.mark.parametrize("n", [1, 2, 30, 1000])
def test_reaches_of_equal_noises_are_just_above_the_least(rate: Fraction, n: int) -> None:
    """Lemma 15 has the least integer that holds, from exact sums."""
    weights, counts = np.ones(1), np.array([float(n)])
    terms = [weighted.Term(float(rate), weights, counts)]
    for level in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)):
        least = sum_tails.reach(rate, {1: n}, level)
        found = weighted.reach(terms, float(level))
        assert least <= math.floor(found)
        assert found <= least + 1 + 0.05 * math.sqrt(terms[0].variance)
        assert math.floor(weighted.by_tilting(terms, float(level))) >= least


# Privacy


def test_the_loss_is_the_sum_of_the_levels() -> None:
    shares = [1, "0.5", 2, Fraction(1, 3)]
    noisy = TABLE.release(epsilon="0.1", shares={"node": shares})
    assert noisy.epsilon == Fraction(1, 10)
    assert noisy.privacy_loss() >= 0.1
    parts = [each.epsilon for each in noisy.mechanisms.values()]
    assert [part / parts[0] for part in parts] == [1, Fraction(1, 2), 2, Fraction(1, 3)]
    table = Design({"who": TREE, "sex": ["f", "m"]}, individual="id", l0=3, linf=2)
    mechanism = table.mechanisms_for(1)[0, 0]
    assert (mechanism.sensitivity, mechanism.rate) == (6, Fraction(1, 24))
    assert table.sensitivity == 6 * 4


def test_a_tree_under_a_rho_books_what_its_counts_cost() -> None:
    """The losses of a tree's depths are of independent noises, like those of a table's cells."""
    budget = accounting.Budget(rho=1)
    TABLE.release(epsilon=1, budget=budget)
    assert budget.rho_spent == pytest.approx(4 * accounting.zcdp("0.25"), rel=1e-12)
    assert budget.rho_spent < 0.3 * accounting.zcdp(1)


def test_all_noise_comes_from_the_mechanism_and_sums_are_not_kept(tmp_path: Path) -> None:
    """No exact count of a node is in what a release leaves: objects, pickles, text, files."""
    counts = {leaf: 10**9 + 1234567 * (place + 1) for place, leaf in enumerate(TREE.leaves)}
    exact = sums_of(TREE, counts)
    noisy = of_leaves(TREE, counts).release(epsilon="1e-8")
    noisy.estimates(), noisy.intervals(0.05), noisy.consistent()
    noisy.save(tmp_path / "a.csv", certificate=True)
    noisy.save(tmp_path / "a.parquet")
    left = [pickle.dumps(noisy), repr(noisy).encode(), noisy._repr_html_().encode()]
    left += [pickle.dumps(noisy.intervals(0.05)), str(noisy.frame).encode()]
    left += [path.read_bytes() for path in tmp_path.iterdir()]
    for count in exact.values():
        for secret in (b"%d" % count, np.int64(count).tobytes(), np.float64(count).tobytes()):
            assert not [each for each in left if secret in each]
    whole = noisy.to_dict()["all"]
    assert np.int64(whole).tobytes() in left[0]
    arrays = [x for x in reached(noisy) if isinstance(x, np.ndarray) and x.dtype.kind in "iuf"]
    assert any((x == whole).any() for x in arrays)
    assert not [x for x in arrays if np.isin(x, list(exact.values())).any()]
    assert not {x for x in reached(noisy) if type(x) is int} & set(exact.values())


def reached(value: Any) -> list[Any]:
    """Return all objects that an object refers to, but for code."""
    found, left = dict[int, Any](), [value]
    while left:
        each = left.pop()
        if id(each) not in found and not isinstance(each, type | ModuleType | FunctionType):
            found[id(each)] = each
            left += gc.get_referents(each)
    return list(found.values())


def test_counts_beyond_the_limit_are_clamped_and_do_not_wrap() -> None:
    tree = Hierarchy({"a": "r", "b": "r"}, leaves_only=True)
    most = 2**63 - 1

    def noisy(counts: list[int], dtype: Any) -> dict[Any, int]:
        frame = pd.DataFrame({"node": ["a", "b"], "n": np.array(counts, dtype)})
        table = Design({"node": tree}).count(frame, counts="n")
        found: dict[Any, int] = table.release(epsilon=CLEAR).to_dict()
        return found

    for dtype in (np.int64, np.uint64):
        found = noisy([np.iinfo(dtype).max, 0], dtype)
        assert found["r"] == found["a"] == most
        assert noisy([np.iinfo(dtype).max] * 2, dtype)["r"] == most
    # Intervals end at 0, so they would miss a count below it.
    assert noisy([-(2**63), -1], np.int64) == {"r": 0, "a": 0, "b": 0}
    assert noisy([100, -128], np.int8)["r"] == 100


# Tables


@pytest.mark.parametrize("order", [("area", "sex"), ("sex", "area")])
def test_a_tree_crosses_other_columns(order: tuple[str, str]) -> None:
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"area": rng.choice(TREE.leaves, 500), "sex": rng.choice([*"fm"], 500)})
    sides: dict[str, Any] = {"area": TREE, "sex": ["m", "f"]}
    design = Design({name: sides[name] for name in order}, other={"sex": "?"})
    table = design.count(people)
    noisy = table.release(epsilon=CLEAR)
    found, intervals = noisy.to_dict(), ends(noisy, 0.05)
    counted = people.groupby(["area", "sex"]).size()
    for sex in "mf?":
        some = counted.xs(sex, level="sex").to_dict() if sex != "?" else {}
        for node, total in sums_of(TREE, some).items():
            key = (node, sex) if order[0] == "area" else (sex, node)
            assert found[key] == total
            assert intervals[key] == (total, total)
    assert list(noisy.frame.columns) == [*order, "count"]
    assert len(found) == len(TREE.nodes) * 3
    known = Design({name: sides[name] for name in order})
    again = known.count(counted.rename("n").reset_index(), counts="n").release(epsilon=CLEAR)
    assert again.to_dict() == {key: count for key, count in found.items() if "?" not in key}
    fitted = noisy.consistent(total=600)
    assert fitted["count"][fitted["area"] == "all"].sum() == 600


def test_consistent_counts_are_the_closest() -> None:
    tree = Hierarchy({"a": "r", "b": "r", "c": "a", "d": "a"}, leaves_only=True)
    design = Design({"node": tree}, shares={"node": [1, 2, 3]})
    mechanisms = design.mechanisms_for(2)
    spread = [2 * math.exp(-m.rate) / (1 - math.exp(-m.rate)) ** 2 for m in mechanisms.values()]
    variances = np.array(spread)[tree._tree.depths]
    rng = np.random.default_rng(9)
    leaves = np.array(list(itertools.product(range(9), repeat=3))).T
    everything = cells_of(tree._tree) @ leaves
    for _ in range(20):
        noisy = rng.integers(-3, 6, (5, 1))
        released = NoisyTable(design, mechanisms, None, "pandas", noisy[:, 0], identity=NEW)
        cost = ((everything - noisy) ** 2 / variances[:, None]).sum(axis=0)
        for total in (None, 4):
            allowed = cost if total is None else np.where(everything[0] == total, cost, np.inf)
            found = np.array(released.consistent(total)["count"])
            assert ((found - noisy[:, 0]) ** 2 / variances).sum() == pytest.approx(allowed.min())
            assert (cells_of(tree._tree) @ found[tree._tree.leaves] == found).all()


# Records of inner nodes


#: The tree of the issue that found them in no count.
CODES = {"b1": "Total", "b2": "Total", "b2.1": "b2", "b2.2": "b2"}


@pytest.mark.parametrize("given", [CODES, RAGGED, {"only": None}, {"a": "r", "b": "a"}])
@pytest.mark.parametrize("leaves_only", [False, True])
@pytest.mark.parametrize("other", [None, "elsewhere"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_each_record_counts_at_its_node_and_above(
    given: Any, leaves_only: bool, other: Any, library: Any
) -> None:
    """Records known to a county alone were in no count. Against a walk from each record."""
    tree = Hierarchy(given, leaves_only=leaves_only)
    rng = np.random.default_rng(53)
    codes = [*rng.choice([*tree.nodes, "else"], 300).tolist(), None, other]
    sexes = rng.choice([*"fm"], len(codes)).tolist()
    root, counts = tree.nodes[0], Counter[Any]()
    for code, sex in zip(codes, sexes, strict=True):
        known = tree.leaves if leaves_only and (len(tree.nodes) > 1 or not other) else tree.nodes
        if leaves_only and other and tree.depth == 0:
            known = []  # Its only node has a leaf for others.
        if code in known:
            node = code
        elif other:
            counts[other, sex] += 1
            node = root
        else:
            continue
        while node is not None:
            counts[node, sex] += 1
            node = tree.parents[node]
    design = Design({"code": tree, "sex": ["f", "m"]}, other=other and {"code": other})
    table = design.count(library({"code": pd.Series(codes, dtype=object).tolist(), "sex": sexes}))
    noisy = table.release(epsilon=CLEAR)
    assert {key: count for key, count in noisy.to_dict().items() if count} == dict(counts)
    assert list(noisy.estimates()["code"]) == [node for node in design.levels["code"] for _ in "fm"]
    assert column(noisy.estimates(), "estimate") == pytest.approx([*noisy.to_dict().values()])
    assert column(noisy.consistent(), "count") == [*noisy.to_dict().values()]
    for node, wanted in zip(
        design.levels["code"], column(noisy.total("code", alpha=0.05), "lower"), strict=True
    ):
        assert wanted == sum(counts[node, sex] for sex in "fm")
    whole = sum(counts[root, sex] for sex in "fm")
    assert column(noisy.total(alpha=0.05), "upper") == [whole]
    if tree.depth:
        inside = sum(counts[tree.nodes[1], sex] for sex in "fm")
        assert column(noisy.ratio({"code": tree.nodes[1]}, {}), "estimate") == [
            pytest.approx(inside / whole)
        ]


def test_the_example_of_codes_of_inner_nodes() -> None:
    codes = ["b1"] * 5 + ["b2"] * 7 + ["b2.1"] * 3 + ["Total"] * 2
    table = Design({"code": Hierarchy(CODES)}).count(pd.DataFrame({"code": codes}))
    found = dict(zip(table.frame["code"], table.frame["count"], strict=True))
    assert found == {"Total": 17, "b1": 5, "b2": 10, "b2.1": 3, "b2.2": 0}
    # No depth more, so that each has as much epsilon.
    assert table.sensitivity == 3


def test_an_open_tree_is_its_noisy_counts_with_their_intervals() -> None:
    """Nothing is known to add up, so that each error is that of one noise."""
    design = Design({"code": Hierarchy(CODES)}, shares={"code": [1, 2, 3]})
    # So many in each node that no interval is cut at 0.
    people = pd.DataFrame({"code": [*CODES] * 100})
    table = design.count(people)
    noisy = table.release(epsilon=3)
    assert column(noisy.estimates(), "estimate") == list(noisy.to_dict().values())
    of_depth = [each.accuracy(Fraction(1, 20)) for each in noisy.mechanisms.values()]
    found = noisy.intervals(Fraction(1, 20))
    reaches = np.array(found["upper"]) - np.array(found["estimate"])
    assert np.abs(reaches - np.array(of_depth)[[0, 1, 1, 2, 2]]).max() <= 1
    # The part of a node that its children have may be exceeded by the node.
    above = noisy.ratio({"code": "b2"}, {"code": ["b2.1", "b2.2"]}, alpha=0.05)
    assert above["upper"][0] > 1
    known = noisy.with_totals(400)
    assert column(known.estimates(), "estimate")[0] == 400
    assert column(known.estimates(), "estimate")[1:] == list(noisy.to_dict().values())[1:]
    with pytest.raises(ValueError, match="other has other levels of 'code'"):
        noisy.combine(
            Design({"code": Hierarchy(CODES, leaves_only=True)}).count(people).release(epsilon=1)
        )
    with pytest.raises(ValueError, match="with the tree of 'code', whose cells differ in depth"):
        table.release(epsilon=1, bounds=(0, 100))


def test_consistent_counts_of_an_open_tree_are_the_closest() -> None:
    """Among all arrays where a node has at least what its children have."""
    tree = Hierarchy({"a": "r", "b": "r", "c": "a", "d": "a"})
    design = Design({"node": tree}, shares={"node": [1, 2, 3]})
    mechanisms = design.mechanisms_for(2)
    variances = np.array([weighted.variance(float(m.rate)) for m in mechanisms.values()])
    variances = variances[tree._tree.depths]
    cells = np.array(list(itertools.product(range(5), repeat=5))).T
    everything = np.apply_along_axis(tree._tree.sums, 0, cells)
    rng = np.random.default_rng(10)
    for _ in range(20):
        noisy = rng.integers(-3, 5, 5)
        released = NoisyTable(design, mechanisms, None, "pandas", noisy, identity=NEW)
        cost = ((everything - noisy[:, None]) ** 2 / variances[:, None]).sum(axis=0)
        for total in (None, 4):
            allowed = cost if total is None else np.where(everything[0] == total, cost, np.inf)
            found = np.array(released.consistent(total)["count"])
            assert ((found - noisy) ** 2 / variances).sum() == pytest.approx(allowed.min())
            assert (everything == found[:, None]).all(axis=0).any()


def test_estimates_of_an_open_tree_and_a_margin_are_the_least_squares() -> None:
    """Against a dense fit that has a cell below each inner node, which no noisy count has."""
    tree = Hierarchy({"a": "r", "b": "r", "c": "a", "d": "a"})
    design = Design({"x": ["f", "m"], "node": tree}, margins={"x": ("all", "0.3")})
    mechanisms = design.mechanisms_for(1)
    inside = np.apply_along_axis(tree._tree.sums, 0, np.eye(tree._tree.size))
    matrix = np.kron(np.array([[1, 1], [1, 0], [0, 1]]), inside)
    variances = np.concatenate(
        [
            [weighted.variance(float(mechanisms[side, depth].rate)) for depth in tree._tree.depths]
            for side in (0, 1, 1)
        ]
    )
    counts = np.random.default_rng(11).integers(-9, 60, (3, tree._tree.size))
    noisy = NoisyTable(design, mechanisms, None, "pandas", counts, identity=NEW)
    weights = 1 / np.sqrt(variances)
    fit, *_ = np.linalg.lstsq(matrix * weights[:, None], counts.reshape(-1) * weights, rcond=None)
    wanted = (matrix @ fit).reshape(counts.shape)[[1, 2, 0]].reshape(-1)
    assert column(noisy.estimates(), "estimate") == pytest.approx(wanted, abs=1e-9)


def test_rates_of_an_open_tree_take_populations_as_sums_of_those_below() -> None:
    design = Design({"code": Hierarchy(CODES)})
    noisy = design.count(pd.DataFrame({"code": ["b2"] * 30})).release(epsilon=CLEAR)
    found = noisy.rate({"b1": 10, "b2.1": 20, "b2.2": 30}, 60, "code")
    assert column(found, "estimate") == [30, 0, 36, 0, 0]


@pytest.mark.parametrize("weights", ["n"])
def test_a_crosstab_with_rows_of_totals_is_refused_where_they_would_count(weights: str) -> None:
    """A row of totals fell into `other`, and a person changed the table by 2 instead of 1."""
    crosstab = pd.DataFrame({"code": ["b1", "b2", "b2.1", "Total"], "n": [1, 2, 2, 3]})
    message = "counts = 'n' are not accepted with other = 'else' of 'code', where rows of totals"
    for levels in (["b1", "b2"], Hierarchy(CODES, leaves_only=True)):
        with pytest.raises(ValueError, match=message):
            Design({"code": levels}, other="else").count(crosstab, counts=weights)
    with pytest.raises(ValueError, match="with records of inner nodes of 'code', where rows of"):
        Design({"code": Hierarchy(CODES)}).count(crosstab, counts=weights)
    known = Design({"code": Hierarchy(CODES, leaves_only=True)}).count(crosstab, counts=weights)
    assert known._nodes().tolist() == [3, 1, 2, 2, 0]
    table = Design({"code": ["b1", "b2"]}).count(crosstab, counts=weights)
    assert table._nodes().tolist() == [1, 2]


# Errors


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (({"a": "b", "b": "a"},), ValueError, "'a' is below itself: give a tree without cycles"),
        (({"a": "r", "b": "c", "c": "b"},), ValueError, "'b' is below itself"),
        (({"a": "a"},), ValueError, "'a' is below itself"),
        (({"a": "r", "b": "s"},), ValueError, r"\['r', 's'\] have no parent"),
        ((["a", "a"], ["r", "s"]), ValueError, "'a' is a child twice"),
        ((["a"], ["r", "s"]), ValueError, "children are 1 and parents 2: give pairs"),
        (({},), ValueError, "children are empty"),
        (({None: "r"},), ValueError, "None is a child"),
        # It was a root, one depth above the others, with a part of their epsilon.
        (({"a": "r", "r": ""},), ValueError, "'' is not accepted as a node: give None as the"),
        ((["a", ""], ["r", "r"]), ValueError, "'' is not accepted as a node"),
        (({n: n + 1 for n in range(100)},), ValueError, "more than 100 depths is not accepted"),
        (({"a": math.nan},), TypeError, "a node of type float is not accepted"),
        (({"a": ["r"]},), TypeError, "a node of type list is not accepted"),
        (
            ({"a": 1},),
            ValueError,
            r"nodes are not accepted, since their types are \['int', 'str'\]",
        ),
        (({("a", "b"): "r"},), ValueError, "nodes are not accepted, since their types"),
        ((7,), TypeError, "children = 7 has type int: give a mapping"),
        (({"a": "r"}, ["r"]), TypeError, "parents are for a column of children"),
        ((["a"], 7), TypeError, "parents = 7 has type int: give a column"),
    ],
)
def test_a_bad_tree_is_refused_by_name(given: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Hierarchy(*given)


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon = 0 is not accepted"),
        ({"epsilon": "x"}, ValueError, "epsilon = 'x' is not accepted"),
        (
            {"shares": {"node": [1, 2]}},
            ValueError,
            "shares of 'node', 2 of them, are not accepted: give 4",
        ),
        ({"shares": {"node": [1, 2, 3, 0]}}, ValueError, "shares of 'node' = 0 is not accepted"),
        ({"shares": {"node": 7}}, TypeError, "shares of 'node' = 7 has type int"),
        ({"shares": [1, 2, 3, 4]}, TypeError, "shares"),
        ({"label": 7}, TypeError, "label = 7 has type int"),
        ({"threads": 0}, ValueError, "threads = 0 is not accepted"),
    ],
)
def test_bad_releases_are_refused_by_name_before_anything_is_spent(
    more: Any, error: Any, message: str
) -> None:
    budget = accounting.Budget(epsilon=10)
    with pytest.raises(error, match=message):
        TABLE.release(**({"epsilon": 1, "budget": budget} | more))
    assert budget.spent == []


@pytest.mark.parametrize(
    "counts", [COUNTS, pd.Series(COUNTS), [1, 2], np.ones(12), np.ones(12, np.int64)]
)
def test_counts_without_a_frame_are_refused_with_the_way_to_give_them(counts: Any) -> None:
    with pytest.raises(
        TypeError, match=r"frame has type \w+: give .*a data frame, .* a column that counts= names"
    ):
        Design({"node": TREE}).count(counts)


def test_bad_questions_are_refused() -> None:
    noisy = TABLE.release(epsilon=1)
    with pytest.raises(ValueError, match="margins = 'm' is not accepted for 'area'"):
        Design({"area": TREE}, margins="m")
    with pytest.raises(ValueError, match="nodes of 'area' with other = 'n0' are empty or repeat"):
        Design({"area": TREE}, other="n0")
    with pytest.raises(ValueError, match="total = -1 is not accepted"):
        noisy.consistent(total=-1)
    with pytest.raises(ValueError, match="depth = 4 is not accepted"):
        TREE.at_depth(4)
    with pytest.raises(OverflowError, match=r"beyond 2\*\*40"):
        of_leaves(TREE, [2**50] * 12).release(epsilon=1).consistent()


# The figures of the guide

#: The number of counties of each state of the United States, from Alabama to Wyoming.
STATES = [
    *[67, 30, 15, 75, 58, 64, 9, 3, 1, 67, 159, 5, 44, 102, 92, 99, 105, 120, 64, 16, 24, 14, 83],
    *[87, 82, 115, 56, 93, 17, 10, 21, 33, 62, 100, 53, 88, 77, 36, 67, 5, 46, 66, 95, 254, 29],
    *[14, 133, 39, 55, 72, 23],
]


def test_errors_against_other_ways_are_those_of_the_guide() -> None:
    text = (Path(__file__).parents[2] / "docs/guides/hierarchy.md").read_text()
    stated = [
        [float(x) for x in row]
        for row in re.findall(r"([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    ]
    found = []
    for sizes in (COUNTIES.values(), STATES):
        regions = {f"{r}.{n}": f"{r}" for r, size in enumerate(sizes) for n in range(size)}
        regions |= dict.fromkeys(set(regions.values()), "all")
        tree = Hierarchy(regions, leaves_only=True)
        part, whole = weighted.variance(1 / 3), weighted.variance(1)
        estimates = least_squares(tree._tree, [1 / 3] * 3).variances
        # The mean over children of their variances, once their errors add up to the parent's.
        region = part * (1 - 1 / len(sizes)) + part / len(sizes) ** 2
        leaf = sum(part * (n - 1) + region / n for n in sizes) / sum(sizes)
        alone = [sum(sizes) * whole, sum(sizes) / len(sizes) * whole, whole]
        for depth, (down, up) in enumerate(zip([part, region, leaf], alone, strict=True)):
            here = estimates[tree._tree.level(depth)].mean()
            found.append([round(math.sqrt(x), 2) for x in (here, down, up)])
    assert found == stated


# Size


def test_long_and_wide_trees() -> None:
    wide = Hierarchy(
        {n: n % 300 - 300 for n in range(30_000)} | dict.fromkeys(range(-300, 0), -1000),
        leaves_only=True,
    )
    noisy = of_leaves(wide, [1] * 30_000).release(epsilon=1)
    intervals = {name: np.array(x) for name, x in noisy.intervals(0.01).items()}
    assert (intervals["lower"] <= intervals["upper"]).all()
    missed = 1 - ((intervals["lower"] <= 1) & (intervals["upper"] >= 1))[301:].mean()
    assert missed < 0.02
    chain = Hierarchy({n: n + 1 for n in range(99)}, leaves_only=True)
    found = of_leaves(chain, [7]).release(epsilon=100 * CLEAR)
    assert ends(found, 0.05)[99] == (7, 7)


def test_weights_are_exact_for_rates_far_apart() -> None:
    """Against 60 digits, in the standard deviation of the difference."""
    tree = TREE._tree
    for rates in ([1e-5, 0.3, 1e-4, 2.0], [3.0, 1e-5, 2.0, 1e-3]):
        squares = least_squares(tree, rates)
        with mpmath.workdps(60):
            a = mpmath.matrix(cells_of(tree).tolist())
            noise = [mpmath.mpf(x) for x in squares.noise.tolist()]
            inverse = mpmath.diag([1 / x for x in noise])
            covariance = a * mpmath.inverse(a.T * inverse * a) * a.T
            for node in range(tree.size):
                functional = np.zeros(tree.size)
                functional[node] = 1
                wanted = [covariance[node, u] / noise[u] for u in range(tree.size)]
                pairs = list(zip(squares.weights(functional).tolist(), wanted, noise, strict=True))
                off = mpmath.fsum((w - x) ** 2 * s for w, x, s in pairs)
                assert off <= mpmath.mpf(10) ** -20 * covariance[node, node]
