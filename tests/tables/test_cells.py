"""Questions about the cells: the truth without noise, and means and coverage over all noise."""

import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism, tables
from geomdp._numerics import inverse
from geomdp.tables import Design, Hierarchy
from geomdp.tables._facts.axes import Axis
from laws import step_law, times
from test_answers import AREAS, CELLS, CLEAR, TREE_AXES, Table, of_node, records

#: The outcomes of three cells with bounds, each a row of one table.
CELL = Axis("cell", ["a", "b", "c"])
RANGE = 5
OUTCOMES = np.array([*itertools.product(range(RANGE + 1), repeat=3)])
LIMITS: list[dict[str, int]] = [
    {"at_most": 0}, {"at_least": 2}, {"at_least": 1, "at_most": 3}, {"at_least": 2, "at_most": 2},
]  # fmt: skip


def outcomes(epsilon: str) -> Table:
    axes = Axis("outcome", range(len(OUTCOMES))), CELL
    return Table(axes, OUTCOMES, Fraction(epsilon), noise=0, bounds=(0, RANGE))


def law_of(epsilon: str) -> np.ndarray[Any, Any]:
    certificate = GeometricMechanism(epsilon, bounds=(0, RANGE)).certificate(np.int64)
    return np.array(step_law(json.loads(certificate.to_json())), float)


def by_table(epsilon: str) -> Iterator[tuple[np.ndarray[Any, Any], Any]]:
    """Yield each table of true counts, in order, and the probabilities of the outcomes."""
    law = law_of(epsilon)
    for true in itertools.combinations_with_replacement(range(RANGE + 1), 3):
        yield np.array(true), np.prod([law[x][OUTCOMES[:, i]] for i, x in enumerate(true)], axis=0)


def inside(cells: Any, limits: dict[str, int]) -> Any:
    low, high = limits.get("at_least", -(10**9)), limits.get("at_most", 10**9)
    return (cells >= low) & (cells <= high)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
def test_numbers_of_cells_over_all_noise(epsilon: str, limits: dict[str, int]) -> None:
    """Of the sampled law: no bias, and no table whose number is missed more often than alpha."""
    table, missed = outcomes(epsilon), []
    for alpha in (0.05, 0.5):
        found = table.number_of_cells(by="outcome", alpha=alpha, **limits)
        assert found["lower"].dtype == found["upper"].dtype == np.int64
        estimate, lower, upper = (found[each].to_numpy() for each in ("estimate", "lower", "upper"))
        assert ((lower >= 0) & (lower <= upper) & (upper <= 3)).all()
        for true, chances in by_table(epsilon):
            number = inside(true, limits).sum()
            assert abs(chances @ estimate - number) < 1e-12 * np.abs(estimate).max()
            missed.append(chances @ ((number < lower) | (number > upper)))
            assert missed[-1] <= alpha
    assert max(missed) > 0.01 or epsilon == "1/4"


def test_intervals_together_have_their_part_of_alpha() -> None:
    table, n = outcomes("1"), len(OUTCOMES)
    together = table.number_of_cells(at_most=0, by="outcome", alpha=0.5, simultaneous=True)
    alone = table.number_of_cells(at_most=0, by="outcome", alpha=1 - 0.5 ** (1 / n))
    assert together.equals(alone)


def test_each_end_has_half_of_alpha() -> None:
    table = outcomes("1")
    e = inverse.weight(1)
    c = e * (1 + e)
    # At 0, a bound; at 1, beyond the limit of empty cells; further up.
    values, n = np.array([1 + e, -c, 0.0]), np.full(len(OUTCOMES), 3)
    kinds = np.minimum(OUTCOMES, 2)
    tally = np.stack([(kinds == kind).sum(axis=1) for kind in range(3)])
    found = table.number_of_cells(at_most=0, by="outcome", alpha=0.1)
    level = 0.05 * (1 - 1e-9)
    assert found["lower"].tolist() == inverse.least(tally, values, n, c, level).tolist()
    rest = inverse.least(tally, 1 - values, n, c, level)
    assert found["upper"].tolist() == (n - rest).tolist()


@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
def test_variances_over_all_noise(epsilon: str) -> None:
    estimate = outcomes(epsilon).variance("outcome")["estimate"].to_numpy()
    for true, chances in by_table(epsilon):
        assert abs(chances @ estimate - true.var()) < 1e-11 * np.abs(estimate).max()


def plain(index: str, cells: Any) -> tuple[float, float]:
    """Return an index and its standard error, by loops over cells without bounds at epsilon 1."""
    e = 1 / math.expm1(1)
    c = e * (1 + e)
    f = {
        "variance": lambda y: y * y,
        "entropy": lambda y: y * math.log(y) if y > 0 else 0.0,
        "simpson": lambda y: y * (y - 1),
        "herfindahl": lambda y: y * y,
    }[index]

    def inverted(f: Any, y: int) -> float:
        return float(f(y) - c * (f(y + 1) - 2 * f(y) + f(y - 1)))

    cells = cells.tolist()
    n, total, sums = len(cells), sum(cells), sum(inverted(f, y) for y in cells)
    if index == "variance":
        found, one, two = sums / n - (total**2 - 2 * c * n) / n**2, 1 / n, -2 * total / n**2
    elif index == "entropy":
        found = math.log(total) - sums / total
        one, two = -1 / total, 1 / total + sums / total**2
    elif index == "simpson":
        pairs = total * (total - 1)
        found, one, two = 1 - sums / pairs, -1 / pairs, sums * (2 * total - 1) / pairs**2
    else:
        found, one, two = sums / total**2, 1 / total**2, -2 * sums / total**3

    def g(y: int) -> float:
        return float(one * f(y) + two * y)

    return found, math.sqrt(
        sum(inverted(g, y) ** 2 - inverted(lambda y: g(y) ** 2, y) for y in cells)
    )


@pytest.mark.parametrize("index", ["variance", "entropy", "simpson", "herfindahl"])
def test_indices_and_standard_errors_are_those_of_their_definition(index: str) -> None:
    table = Table((Axis("area", ["n", "s"]), Axis("x", range(40))), np.arange(80).reshape(2, 40), 1)
    found = table.variance("area") if index == "variance" else table.diversity(index, "area")  # type: ignore[arg-type]
    assert list(found.columns) == ["area", "estimate", "standard_error"]
    for row, cells in zip(found.to_numpy()[:, 1:].astype(float), table.counts, strict=True):
        assert row == pytest.approx(plain(index, cells), rel=1e-6)


@pytest.mark.parametrize("index", ["entropy", "simpson", "herfindahl"])
def test_standard_errors_are_the_spread_of_releases(index: Any) -> None:
    """Of 400 releases, whose standard deviation has an error of about 4%."""
    true = np.arange(300) % 30
    table = Table((Axis("release", range(400)), Axis("x", range(300))), np.tile(true, (400, 1)), 1)
    found = table.diversity(index, "release")
    shares = true[true > 0] / true.sum()
    wanted = {
        "entropy": -(shares * np.log(shares)).sum(),
        "simpson": 1 - (true * (true - 1)).sum() / (true.sum() * (true.sum() - 1)),
        "herfindahl": (shares**2).sum(),
    }[index]
    spread = found["estimate"].std()
    assert 0.7 < found["standard_error"].mean() / spread < 1.4
    assert abs(found["estimate"].mean() - wanted) < 6 * spread / 20


@pytest.mark.parametrize("by", [(), "area", ("area", "sex"), "age"])
def test_without_noise_answers_about_cells_are_the_truth(by: Any) -> None:
    """Of trees and margins: every node has the cells below it, and margins are no cells."""
    table, whole = Table(TREE_AXES, CELLS, CLEAR), records(TREE_AXES, CELLS)
    kept = by if isinstance(by, tuple) else (by,)
    sides = [[each.nodes[x] for x in each.shown] for each in TREE_AXES if each.label in kept]
    found = table.number_of_cells(at_least=40, at_most=60, by=by, alpha=0.05)
    variance, entropy = table.variance(by), table.diversity("entropy", by)
    assert len(found) == math.prod(map(len, sides))
    for place, row in enumerate(itertools.product(*sides)):
        given = dict(zip(kept, row, strict=True))
        cells = of_node(TREE_AXES, whole, **given)["n"].to_numpy()
        assert [found[label][place] for label in kept] == [*row]
        number = ((cells >= 40) & (cells <= 60)).sum()
        assert found.iloc[place, -3:].tolist() == [number] * 3
        assert variance["estimate"][place] == pytest.approx(cells.var())
        shares = cells / cells.sum()
        assert entropy["estimate"][place] == pytest.approx(-(shares * np.log(shares)).sum())
        assert variance["standard_error"][place] == pytest.approx(0)


def test_cells_of_several_depths_have_their_own_noise() -> None:
    tree = Hierarchy(AREAS | {"n1": "N", "n2": "N"}, leaves_only=True)
    axis = Axis("area", tree, shares=[1, 1, 2])
    table = Table([axis], [0, 5, 5], 1, noise=0)
    by_depth = {depth: float(m.rate) for (depth,), m in table.mechanisms.items()}
    wanted = 0.0
    for node in axis.tree.leaves:
        e = inverse.weight(by_depth[int(axis.tree.depths[node])])
        wanted += 1 + e * (1 + e) if table.counts[node] == 0 else 0.0
    assert table.number_of_cells(at_most=0)["estimate"].tolist() == [pytest.approx(wanted)]


def test_a_tier_is_asked_by_its_own_noise() -> None:
    """Over the exact law of a coarser tier: no bias beyond its total variation."""
    r = 6
    design = Design({"n": range(r + 1)})
    tiers = design.count(pd.DataFrame({"n": [0]})).release(tiers={"a": 0.25, "b": 2}, bounds=(0, r))
    law: list[list[Fraction]] = []
    for name in ("b", "a"):
        noisy = tiers[name]
        [own] = noisy.mechanisms.values()
        tier = json.loads(own.certificate().to_json())["tiers"][1 if name == "b" else 0]
        law = times(law, step_law(tier)) if law else step_law(tier)
        noisy._values[...] = np.arange(r + 1)
        estimates = noisy.number_of_cells(at_most=1, by="n")["estimate"].tolist()
        for x, row in enumerate(law):
            mean = float(sum(p * Fraction(u) for p, u in zip(row, estimates, strict=True)))
            assert abs(mean - (x <= 1)) < 1e-11


def test_a_file_answers_as_the_release_does(tmp_path: Path) -> None:
    people = pd.DataFrame({"n": np.repeat(np.arange(50), 3), "sex": "f"})
    design = Design({"n": range(60), "sex": ["f", "m"]}, margins={"sex": "all"})
    noisy = design.count(people).release(epsilon=1, save=tmp_path / "n.csv")
    read = geomdp.read(tmp_path / "n.csv")
    for table in (read, read.with_totals(150)):
        for by in ((), "sex"):
            one, two = (x.number_of_cells(at_most=0, by=by, alpha=0.1) for x in (noisy, table))
            assert one.equals(two)
            assert noisy.variance(by).equals(table.variance(by))
            assert noisy.diversity("simpson", by).equals(table.diversity("simpson", by))


def test_a_table_without_columns_is_one_cell() -> None:
    noisy = Design({}).count(pd.DataFrame({"n": [1] * 500})).release(epsilon=20)
    assert noisy.number_of_cells(at_least=400, alpha=0.01).to_numpy().tolist() == [[1, 1, 1]]
    assert noisy.variance()["estimate"].tolist() == [pytest.approx(0, abs=1e-6)]


def test_a_million_cells_are_asked_at_once() -> None:
    design = Design({"n": range(10**6)})
    noisy = design.count(pd.DataFrame({"n": np.arange(10**5)})).release(epsilon=1)
    found = noisy.number_of_cells(at_most=0, alpha=1e-7)
    assert found["lower"][0] <= 900_000 <= found["upper"][0]
    assert found["upper"][0] - found["lower"][0] < 30_000


QUESTIONS: dict[str, Any] = {
    "number_of_cells": lambda x: x.number_of_cells(at_most=0),
    "variance": lambda x: x.variance(),
    "diversity": lambda x: x.diversity("entropy"),
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_counts_without_noise_of_their_own_are_refused_by_name(what: str, tmp_path: Path) -> None:
    people = pd.DataFrame({"town": [*"aab"] * 50, "sex": [*"fm"] * 75})
    levels = {"town": ["a", "b"], "sex": ["f", "m"]}
    ask, table = QUESTIONS[what], Design(levels).count(people)
    noisy = table.release(epsilon=1)
    noisy.save(tmp_path / "n.csv", rounded=5)
    for refused, why in (
        (geomdp.read(tmp_path / "n.csv"), "as they were drawn"),
        (noisy.combine(table.release(epsilon=1)), "answers are from several"),
        (Design(levels, tables=["town"]).count(people).release(epsilon=1), "all combinations"),
    ):
        with pytest.raises(ValueError, match=rf"^{what}\(\) needs .*{why}"):
            ask(refused)
    groups = table.release(epsilon=1, at_least=10)
    with pytest.raises(AttributeError, match="chosen by their noise"):
        ask(groups)
    with pytest.raises(AttributeError, match="'NoisyGroups' object has no attribute 'totals'"):
        _ = groups.totals
    with pytest.raises(TypeError, match="NoisyGroups"):
        geomdp.accuracy.unbiased(np.square, GeometricMechanism(1))(groups)


def test_thresholds_are_those_that_bounds_can_tell() -> None:
    noisy = tables.count(pd.Series(["a"], name="x"), ["a"]).release(epsilon=1, bounds=(0, 9))
    for name, refused, taken in (("at_least", [0, 10], [1, 9]), ("at_most", [-1, 9], [0, 8])):
        for limit in refused:
            with pytest.raises(ValueError, match=f"{name} = {limit} .* an int from"):
                noisy.number_of_cells(**{name: limit})
        for limit in taken:
            noisy.number_of_cells(**{name: limit})
    with pytest.raises(ValueError, match="at_least = 5 is not accepted with at_most = 4"):
        noisy.number_of_cells(at_least=5, at_most=4)
    with pytest.raises(TypeError, match="give at_least, at_most or both"):
        noisy.number_of_cells()


def test_sums_of_values_of_either_sign() -> None:
    """Their cells have noise of their own; shares of a total mean nothing."""
    money = pd.DataFrame({"town": ["a", "b", "c"] * 100, "euros": [-3, 0, 2] * 100})
    design = Design({"town": ["a", "b", "c"]})
    noisy = design.sum(money, "euros", bounds=(-3, 3)).release(epsilon=1000)
    assert noisy.number_of_cells(at_most=-1, alpha=0.05).to_numpy().tolist() == [[1, 1, 1]]
    wanted = np.var([-300, 0, 200])
    assert noisy.variance()["estimate"].tolist() == [pytest.approx(wanted)]
    with pytest.raises(ValueError, match="no diversity is known for sums"):
        noisy.diversity("entropy")
