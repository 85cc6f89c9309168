"""Groups that are published because their noisy counts reached a threshold."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting, tables
from geomdp._ground import identity
from geomdp._numerics import scatter
from geomdp.tables._columns.native import LIBRARIES
from geomdp.tables._math import thresholds
from geomdp.tables._release import steps
from restated import restate
from statistics_ import ALPHA

PAGES = {"page": ["home", "help", "blog"], "hour": range(24)}


def visits(library: str = "pandas") -> Any:
    data = {"page": ["home"] * 900 + ["help"] * 70, "hour": [7] * 900 + [23] * 70}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](data)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("threshold", [1, 2, 25])
@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(3, 10), Fraction(1)])
def test_intervals_hold_given_that_a_group_appears(
    rate: float, threshold: int, alpha: Fraction
) -> None:
    # Every outcome whose probability matters, for every true count near the threshold.
    q, reach = math.exp(-rate), math.ceil(45 / rate)
    published = np.arange(threshold, threshold + 60 + reach)
    lower, upper = thresholds.interval(rate, published, threshold, alpha)
    coverages = []
    for count in range(threshold + 60):
        masses = q ** np.abs(published - count).astype(float)
        covered = masses[(lower <= count) & (count <= upper)]
        coverages.append(math.fsum(covered) / math.fsum(masses))
    assert min(coverages) >= 1 - alpha - 1e-12
    # Not wider than they must be: the noise has atoms, of mass (1 - q) / (1 + q) on each side.
    assert min(coverages) <= 1 - alpha + 2 * alpha * (1 - q) + 1e-12


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 10**9)])
def test_intervals_of_very_wide_noise_end_at_int64(alpha: Fraction) -> None:
    """They raised an OverflowError without a name, or wrapped around.

    Noise and counts that are a million times smaller have ends that are so, but for rounding.
    """
    most, factor = 2**63 - 1, 10**6
    published = np.array([1, 10**17, 2**61, 2**62 + 1, most - 10**9, most])
    for rate in (1e-16, 1e-17, 1e-18, 2.5e-19):
        lower, upper = thresholds.interval(rate, published, 1, alpha)
        assert np.all((lower >= 0) & (lower <= published) & (published <= upper))
        small = thresholds.interval(rate * factor, published // factor + 1, 1, alpha)
        for ends, wanted in zip((lower, upper), small, strict=True):
            limited = [min(int(each) * factor, most) for each in wanted]
            assert np.allclose(ends.astype(float), limited, rtol=1e-4, atol=2 * factor)


def test_usual_intervals_do_not_hold_given_that_a_group_appears() -> None:
    mechanism, threshold = GeometricMechanism(0.5), 25
    published = np.arange(threshold, threshold + 200)
    lower, upper = mechanism.confidence_interval(published, 0.05)
    masses = np.exp(-0.5 * np.abs(published - 10.0))
    assert masses[(lower <= 10) & (upper >= 10)].sum() / masses.sum() < 0.5


def test_planning_agrees_with_the_sums() -> None:
    design, epsilon = tables.Design({"page": range(1000), "hour": range(24)}), Fraction(1, 2)
    q = math.exp(-0.5)

    def tail(distance: int) -> float:
        masses = [(1 - q) / (1 + q) * q ** abs(z) for z in range(distance, 200)]
        return math.fsum(masses)

    for threshold in (1, 10, 40):
        expected = design.cells * tail(threshold)
        # The room of a plan makes them more: none, or hardly any, are less than the ideal.
        found = design.spurious(epsilon, threshold)
        assert expected * (1 - 1e-6) <= found <= expected * (1 + 1e-4)
        for count in (0, threshold - 1, threshold, threshold + 30):
            expected = 1 - tail(threshold - count)
            assert design.missed(count, epsilon, threshold) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("spurious", [1e-6, 0.01, 1, 30, 10**9])
def test_the_threshold_is_the_least(spurious: float) -> None:
    design = tables.Design({"page": range(1000), "hour": range(24)})
    least = design.threshold(0.5, spurious)
    assert design.spurious(0.5, least) <= spurious
    assert least == 1 or design.spurious(0.5, least - 1) > spurious


def test_the_least_threshold_is_that_of_a_search_step_by_step() -> None:
    for rate, places in itertools.product(("1/9", 1, 7), (1, 10**6, 10**40)):
        plan = scatter.plan_of(Fraction(rate))
        for most in (Fraction(1, 10**4), Fraction(1), Fraction(places)):
            each = (x for x in itertools.count(1) if plan.spurious(places, x) <= most)
            assert plan.least_threshold(places, most) == next(each)


def test_the_least_threshold_is_found_at_once_at_any_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 15 seconds at a rate of 10^-8, and 10^5 steps."""
    asked, spurious = [], scatter.Plan.spurious
    monkeypatch.setattr(
        scatter.Plan, "spurious", lambda *given: asked.append(given) or spurious(*given)
    )
    plan = scatter.plan_of(Fraction(1, 10**8))
    least = plan.least_threshold(10**9, Fraction(1))
    assert len(asked) < 80
    assert plan.spurious(10**9, least) <= 1 < plan.spurious(10**9, least - 1)


class Drawn:
    """Instead of noise, it adds a number that is known, and lets points fall on cells."""

    def __init__(self, shift: int, cells: list[list[int]]) -> None:
        self.shift, self.cells = shift, cells
        self.seen: list[list[int]] = []
        self.numbers: list[int] = []

    def reach(self, counts: Any, thresholds: Any, number: int, *, threads: int) -> Any:
        assert threads == 0
        self.seen.append(counts.tolist())
        self.numbers.append(number)
        noisy = counts + self.shift
        return np.where(noisy >= thresholds, noisy, 0)

    def points(self, plan: scatter.Plan) -> Any:
        found = []
        for each, cells in zip(plan.classes, self.cells, strict=True):
            # Whole words that make these places, the greatest first.
            numbers = [-((-cell << 64 * each.words) // each.places) for cell in cells]
            words = [
                [number >> 64 * at & (2**64 - 1) for at in reversed(range(each.words))]
                for number in numbers
            ]
            values = each.threshold + np.arange(len(cells))
            found.append((values, np.array(words, np.uint64).reshape(-1, each.words)))
        return found


def draws(monkeypatch: pytest.MonkeyPatch, shift: int, *cells: list[int]) -> Drawn:
    drawn = Drawn(shift, [*cells])

    def points(plan: scatter.Plan) -> Any:
        return drawn.points(plan)

    monkeypatch.setattr(scatter.Plan, "reach", drawn.reach)
    monkeypatch.setattr(scatter.Plan, "points", points)
    return drawn


@pytest.mark.parametrize("size", [1, 6, 21, 300])
def test_every_occupied_cell_gets_noise_and_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Points on empty cells appear beside them, the first of each cell; a count of 0 is empty."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        counts = rng.integers(0, 3, size) * rng.integers(0, 50, size)
        listed = np.flatnonzero(counts + rng.integers(0, 2, size))
        fallen = rng.integers(size, size=rng.integers(0, 9)).tolist()
        drawn = draws(monkeypatch, 5, fallen)
        release = given(tables.Design(range(size)), 30)
        found = steps.made(release, None, steps.draw(release, (listed, counts[listed])), NEW)
        expected = {cell: counts[cell] + 5 for cell in np.flatnonzero(counts + 5 >= 30).tolist()}
        for number, cell in reversed([*enumerate(fallen)]):
            if not counts[cell]:
                expected[cell] = 30 + number
        assert drawn.seen == [counts[counts > 0].tolist()]
        assert [*found.to_dict().items()] == sorted(expected.items())


NEW = identity.Identity(identity.fresh())


def given(design: tables.Design, at_least: int, **facts: Any) -> Any:
    known = design, {(0,): GeometricMechanism(1)}, None, at_least, None
    return steps.Release(*known, NEW, **facts)


def test_noise_is_drawn_for_a_public_number_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or for the cells of the design, if these are fewer; more occupied cells are not refused."""
    data = pd.DataFrame({"page": [1, 2, 3], "who": [1, 2, 3]})
    table = tables.Design({"page": range(100)}, individual="who", l0=3).count(data)
    for people, number in [(None, 0), (1, 3), (20, 60), (10**6, 100)]:
        drawn = draws(monkeypatch, 40, [])
        shown = table.release(epsilon=1, at_least=30, people=people)
        assert drawn.numbers == [number]
        assert shown.counts.tolist() == [41, 41, 41]
    monkeypatch.undo()
    assert len(table.release(epsilon=100, at_least=1, people=1).counts) == 3


def test_as_many_empty_cells_appear_as_the_design_says() -> None:
    # A Poisson number, to within 1e-9: the cells are independent, each with probability 3e-5.
    design = tables.Design({"page": range(100_000), "hour": range(10)})
    threshold = design.threshold(epsilon=1, spurious=50)
    expected = design.spurious(1, threshold)
    empty = pd.DataFrame({"page": pd.Series([], dtype=int), "hour": pd.Series([], dtype=int)})
    found = len(design.count(empty).release(epsilon=1, at_least=threshold).frame)
    # Chernoff: P(|X - m| >= t) <= 2 exp(-t^2 / (2 m + 2 t / 3)).
    bound = math.log(2 / ALPHA)
    assert abs(found - expected) <= bound / 3 + math.sqrt(bound**2 / 9 + 2 * expected * bound)


@pytest.mark.parametrize("library", LIBRARIES)
def test_groups_of_each_library(library: str) -> None:
    noisy = tables.Design(PAGES).count(visits(library)).release(epsilon=2, at_least=30)
    assert type(noisy.frame) is type(visits(library))
    assert list(noisy.to_dict()) == [("home", 7), ("help", 23)]
    assert noisy.epsilon == 2
    largest = noisy.largest(1)
    assert dict(zip(("page", "hour"), next(iter(noisy.to_dict())), strict=True)) == {
        name: (largest[name].to_pylist() if library == "pyarrow" else largest[name].to_list())[0]
        for name in ("page", "hour")
    }


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: [*rows, rows[0]],
        lambda rows: rows[::-1],
        lambda rows: [["away", "7", "40"]],
        lambda rows: [["home", "7", "29"]],  # below the threshold
    ],
)
def test_damaged_groups_are_refused(tmp_path: Any, damage: Any) -> None:
    tables.Design(PAGES).count(visits()).release(epsilon=2, at_least=30).save(tmp_path / "may.csv")
    header, *rows = [line.split(",") for line in (tmp_path / "may.csv").read_text().splitlines()]
    text = "\r\n".join(map(",".join, [header, *damage(rows)])) + "\r\n"
    (tmp_path / "may.csv").write_bytes(text.encode())
    with pytest.raises(ValueError, match="its rows are not those of its description: they were ed"):
        geomdp.read(tmp_path / "may.csv")
    restate(tmp_path / "may.csv")
    with pytest.raises(ValueError, match="other rows than its description"):
        geomdp.read(tmp_path / "may.csv")


def test_bad_parameters_are_refused_before_anything_is_spent() -> None:
    budget = accounting.Budget(epsilon=1)
    table = tables.Design(PAGES).count(visits())
    huge = tables.Design({str(place): range(10**5) for place in range(3)})
    nothing = pd.DataFrame({str(place): pd.Series([], dtype=int) for place in range(3)})
    margins = tables.count(visits()["page"], ["home", "help"], margins="all")
    for each, given, message in [
        (table, {"at_least": 0}, "at_least = 0 is not accepted"),
        (table, {"at_least": 2.5}, "at_least = 2.5"),
        (table, {"at_least": 30, "bounds": (0, 9)}, "bounds are not accepted with at_least"),
        (
            huge.count(nothing),
            {"at_least": 10},
            "at_least = 10 is not accepted, which .* empty cells may reach",
        ),
        (margins, {"at_least": 30}, "at_least is not accepted with margins"),
        (table, {"people": 30}, "people is for at_least"),
        (table, {"at_least": 30, "people": 0}, "people = 0 is not accepted"),
        (huge.count(nothing), {"at_least": 99, "people": 2**30}, "people = 1073741824 is not acc"),
        (
            table,
            {"at_least": 30, "mechanism": GeometricMechanism(1, bounds=(0, 100))},
            "bounds are not accepted with at_least",
        ),
    ]:
        epsilon: Any = {} if "mechanism" in given else {"epsilon": 1}
        with pytest.raises((ValueError, TypeError), match=message):
            each.release(budget=budget, **epsilon, **given)
    assert not budget.spent
    with pytest.raises(ValueError, match="spurious = 0 is not accepted"):
        tables.Design(PAGES).threshold(1, 0)
    with pytest.raises(ValueError, match="count = -1"):
        tables.Design(PAGES).missed(-1, 1, 30)


def test_groups_hold_nothing_exact(tmp_path: Any) -> None:
    noisy = tables.Design(PAGES).count(visits()).release(epsilon=0.001, at_least=1)
    noisy.save(tmp_path / "may.csv")
    facts = json.loads((tmp_path / "may.csv.json").read_text())["geomdp"]
    assert facts["at_least"] == 1
    slots = {name for kind in type(noisy).__mro__ for name in vars(kind).get("__slots__", ())}
    known = {
        "_about",
        "_at_least",
        "_chosen_by",
        "_label",
        "_library",
        "_part_of",
        "_picked",
        "_rest",
        "_rounded",
        "_tier",
        "_values",
        "corrects",
        "count_id",
        "design",
        "id",
        "mechanisms",
    }
    assert slots == known
    assert not vars(noisy)


def test_a_table_beyond_memory_is_refused_by_its_design_alone() -> None:
    """With the way out: it was a MemoryError, of the exact counts after the booking."""
    design = tables.Design({"x": range(10**5), "y": range(10**5)})
    table, budget = design.count(pd.DataFrame({"x": [1], "y": [2]})), accounting.Budget(1)
    refused = "10000000000 cells is not accepted: release it with at_least=, which"
    with pytest.raises(ValueError, match=refused):
        table.release(epsilon=1, budget=budget)
    with pytest.raises(ValueError, match=refused):
        table._nodes()
    assert budget.spent == []


def test_bounds_of_other_dtypes_are_refused_before_they_are_paid() -> None:
    table, budget = tables.Design(["a"]).count(pd.Series(["a"])), accounting.Budget(1)
    with pytest.raises(OverflowError, match="bounds"):
        table.release(GeometricMechanism(1, bounds=(0, 2**64 - 1)), budget=budget)
    assert budget.spent == []
