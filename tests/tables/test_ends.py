"""Ends of intervals: rounded outwards, points without noise, and never wider for less noise.

Without noise the true value is an end of each interval, so that the last digit of each shows.
"""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp import GeometricMechanism, accuracy
from geomdp.tables import Hierarchy
from geomdp.tables._answers.answers import Answers
from geomdp.tables._answers.selection import rows_of
from geomdp.tables._facts.axes import Axis
from geomdp.tables._math import ends, weighted
from geomdp.tables._math.ends import Ends
from geomdp.tables._math.products import Errors, ratio_ends
from test_answers import AREAS, Table, missed, outcomes, with_margin

#: Levels that float64 has, that it has not, and that differ by less than it can tell.
LEVELS: list[list[Any]] = [
    [1, 2, 7],
    [Fraction(0.1), Fraction(0.2), Fraction(0.7)],
    [Fraction(1, 3), Fraction(1, 7), Fraction(22, 7)],
    [Decimal("9.99"), Decimal("0.01"), Decimal("-3.3")],
    [10**18 + 1, 10**18 + 7, 10**18 + 2],
]
FLAT = (Axis("x", [1, 2, 5]), Axis("y", ["a", "b"]))
SHAPES: dict[str, tuple[tuple[Any, ...], Any]] = {
    "flat": (FLAT, [[5, 5], [7, 2], [40, 3]]),
    "margins": (
        (with_margin("x", [1, 2, 5]), with_margin("y", ["a", "b"])),
        [[5, 5], [7, 2], [40, 3]],
    ),
    "tree": (
        (with_margin("x", [1, 2, 5]), Axis("y", Hierarchy(AREAS), shares=[1, 1, 2])),
        [[5, 4, 3], [10, 20, 30], [9, 1, 900]],
    ),
    "bounds": (FLAT, [[5, 5], [7, 2], [40, 3]]),
}


def table(name: str, epsilon: Any) -> Table:
    """Return a table whose noise happens to be 0."""
    axes, cells = SHAPES[name]
    more = {"bounds": (0, 10**9)} if name == "bounds" else {}
    none = np.zeros([each.tree.size for each in axes], np.int64)
    return Table(axes, np.array(cells), epsilon, none, **more)


@functools.cache
def with_earlier(name: str, epsilon: Any, known: bool) -> Table:
    """Return a table, and an earlier one, which all questions share."""
    found = table(name, epsilon)
    answers: Any = found.with_totals(int(np.sum(SHAPES[name][1]))) if known else found
    answers.earlier = table(name, epsilon)
    return answers


def truths(table: Table, by: Any) -> list[np.ndarray]:
    """Return the true counts by level of x, for each row of an answer."""
    counts = np.moveaxis(table.true[table.design._axes[0].tree.leaves], 0, -1)
    y = table.design._axes[1]
    rows = counts[y.shown] if by else [counts[y.tree.leaves].sum(axis=0)]
    return [np.array([int(x) for x in row], object) for row in rows]


Truth = Callable[[np.ndarray, Fraction], Fraction]
X = np.array([1, 2, 5], object)
PUBLIC = Fraction(83_000_001)
#: Each question with alpha: its answer, and the true value from a row's counts and the whole total.
QUESTIONS: dict[str, tuple[Callable[..., Any], Truth]] = {
    "total": (lambda t, by, **k: t.total(by, **k), lambda c, _: c.sum()),
    "percent": (lambda t, by, **k: t.percent(by, **k), lambda c, n: Fraction(100 * c.sum(), n)),
    "ratio": (
        lambda t, by, **k: t.ratio({"x": 1}, {"x": [1, 5]}, by, **k),
        lambda c, _: Fraction(c[0], c[0] + c[2]),
    ),
    "difference": (
        lambda t, by, **k: t.difference({"x": 1}, {"x": 2}, by, **k),
        lambda c, _: c[0] - c[1],
    ),
    "sum": (lambda t, by, **k: t.sum("x", by, **k), lambda c, _: c @ X),
    "mean": (lambda t, by, **k: t.mean("x", by, **k), lambda c, _: Fraction(c @ X, c.sum())),
    "quantile": (lambda t, by, **k: t.quantile("x", 0.4, by, **k), lambda c, _: median(c)),
    "rate": (
        lambda t, by, **k: t.rate(
            [PUBLIC + x for x in range(len(t.design._axes[1].shown))] if by else PUBLIC, by=by, **k
        ),
        lambda c, _: Fraction(0),
    ),
    "change_since": (lambda t, by, **k: t.change_since(t.earlier, by, **k), lambda c, _: 0),
}
#: With bounds, the others are refused.
BOUNDED = ["total", "percent", "difference", "rate"]


def median(counts: np.ndarray) -> int:
    return int(np.repeat(X, [int(x) for x in counts])[math.ceil(0.4 * counts.sum()) - 1])


def cases() -> Iterator[tuple[str, str, Any, bool]]:
    for shape, name, by in itertools.product(SHAPES, QUESTIONS, ("y", ())):
        if (shape == "bounds" and name not in BOUNDED) or (name == "percent" and not by):
            continue
        yield shape, name, by, False
        if shape != "bounds" and name != "change_since":
            yield shape, name, by, True


def asked(shape: str, name: str, by: Any, known: bool, epsilon: Any, **more: Any) -> Any:
    """Return the answer to a question, and the table."""
    answers = with_earlier(shape, epsilon, known)
    return QUESTIONS[name][0](answers, by, **more), answers, int(np.sum(SHAPES[shape][1]))


def test_all_questions_are_tried() -> None:
    """A new question fails here."""
    with_alpha = {
        name
        for name, each in inspect.getmembers(Answers, inspect.isfunction)
        if not name.startswith("_") and "alpha" in inspect.signature(each).parameters
    }
    # The cells of one column are the total by it.
    # `per` is of two tables: tests/tables/test_answers.py; numbers of cells are in test_cells.py,
    # and pictures draw totals.
    assert with_alpha == {"intervals", "per", "number_of_cells", "plot", *QUESTIONS}


@pytest.mark.parametrize(("shape", "name", "by", "known"), [*cases()])
def test_without_noise_each_end_is_the_truth_outwards(
    shape: str, name: str, by: Any, known: bool
) -> None:
    for epsilon in (100, 4000):
        found, given, whole = asked(shape, name, by, known, epsilon, alpha=0.05)
        rows = zip(found["lower"], found["upper"], truths(given, by), strict=True)
        for place, (lower, upper, counts) in enumerate(rows):
            value = Fraction(QUESTIONS[name][1](counts, whole))
            if name == "rate":
                value = 100_000 * Fraction(int(counts.sum())) / (PUBLIC + place)
            assert Fraction(lower) <= value <= Fraction(upper)
            # A few roundings.
            assert upper - lower <= 8 * math.ulp(max(abs(upper), 1e-3))


def test_the_share_of_equal_counts_becomes_a_point() -> None:
    """Its width was 0.0015 at epsilon 12, 3.1 at 16 and 0.78 at 100."""
    for epsilon in (12, 16, 100):
        found = Table([Axis("x", ["a", "b"])], [5, 5], epsilon, np.zeros(2, int))
        answer = found.percent("x", alpha=0.05)
        assert answer["lower"].tolist() == answer["upper"].tolist() == [50, 50]


@pytest.mark.parametrize("levels", LEVELS)
def test_values_count_exactly(levels: list[Any]) -> None:
    counts = [4, 9, 11]
    exact = [Fraction(x) for x in levels]
    whole = sum((n * x for n, x in zip(counts, exact, strict=True)), Fraction(0))
    names = Axis("x", [*"abc"])
    values = dict(zip("abc", levels, strict=True))
    found = Table([names], counts, noise=np.zeros(3, int))
    mean = found.mean("x", values=values, alpha=0.05)
    assert Fraction(mean["lower"][0]) <= whole / 24 <= Fraction(mean["upper"][0])
    assert mean["upper"][0] - mean["lower"][0] <= 64 * math.ulp(max(map(abs, map(float, exact))))
    if max(exact) > 2**53:
        with pytest.raises(ValueError, match="values are not accepted: give numbers that float64"):
            found.sum("x", values=values)
        return
    total = found.sum("x", values=values, alpha=0.05)
    assert Fraction(total["lower"][0]) <= whole <= Fraction(total["upper"][0])


def test_means_of_great_levels_are_no_other_float() -> None:
    """The mean of 10^18 + 1 and 10^18 + 7 had the interval [1e18, 1e18]."""
    found = Table([Axis("x", [10**18 + 1, 10**18 + 7])], [5, 5], noise=np.zeros(2, int))
    answer = found.mean("x", alpha=0.05)
    assert Fraction(answer["lower"][0]) <= 10**18 + 4 <= Fraction(answer["upper"][0])


def test_the_mean_of_one_level_is_it() -> None:
    """Numpy warned of a division by 0; a warning is an error here."""
    for epsilon in (1, 40):
        found = Table([Axis("x", [3])], [50], epsilon, np.zeros(1, int))
        assert found.mean("x", alpha=0.05).iloc[0].tolist() == [3, 3, 3]


naturals = st.integers(1, 10**9)


@given(st.integers(-(2**62), 2**62), naturals, naturals, st.integers(-(10**9), 10**9), naturals)
def test_scaled_ends_are_the_next_floats_outside(
    end: int, unit: int, size: int, above: int, below: int
) -> None:
    factor, shift = Fraction(unit, size), Fraction(above, below)
    for one in (np.array([end]), np.array([float(end)])):
        exact = Fraction(one[0].item()) * factor + shift
        lower, upper = Ends(one, one).scaled(factor, shift=shift)
        assert Fraction(lower[0]) <= exact <= Fraction(upper[0])
        assert (lower[0] == upper[0]) == (Fraction(float(exact)) == exact)
        assert upper[0] <= math.nextafter(lower[0], math.inf)


@given(st.integers(-(2**65), 2**65), st.floats(-1e20, 1e20), st.floats(0, 1e20))
def test_ends_around_an_estimate_hold_all_within_the_reach(
    base: int, more: float, reach: float
) -> None:
    arrays = np.array([more]), np.array([reach])
    first = np.array([base]) if abs(base) < 2**63 else np.array([float(base)])
    exact = Fraction(int(first[0])) + Fraction(more)
    for whole in (False, True):
        lower, upper = Ends.around(first, *arrays, 0.0, (-math.inf, math.inf), whole=whole)
        low, high = exact - Fraction(reach), exact + Fraction(reach)
        if whole:
            low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
            if low > high:
                continue
        assert Fraction(int(lower[0]) if whole else lower[0]) <= low
        assert Fraction(int(upper[0]) if whole else upper[0]) >= high


@given(
    st.integers(-30, 30),
    st.integers(-40, 40),
    st.floats(0, 20),
    st.integers(-9, 0),
    st.integers(0, 9),
)
def test_an_estimate_beyond_a_limit_has_the_interval_of_the_limit(
    base: int, eighths: int, reach: float, least: int, most: int
) -> None:
    """And so one that contains its own, as far as that is possible (lemma 16e)."""

    def around(number: Any, limits: tuple[float, float]) -> Any:
        more = np.array([float(number - int(number))])
        first, reaches = np.array([int(number)]), np.array([reach])
        return np.array(Ends.around(first, more, reaches, 0.0, limits, whole=True))

    estimate = base + Fraction(eighths, 8)
    found = around(estimate, (least, most))
    assert (found == around(min(max(estimate, least), most), (-math.inf, math.inf))).all()
    own = around(estimate, (-math.inf, math.inf))
    for possible in range(least, most + 1):
        assert not own[0] <= possible <= own[1] or found[0] <= possible <= found[1]


def test_limits_are_outwards_too() -> None:
    """A known total of 2**61 + 1 was cut to 2**61."""
    wide = Ends(np.array([0.0]), np.array([2.0**63]))
    assert Fraction(wide.within(0, 2**61 + 1).upper[0]) >= 2**61 + 1
    low = wide.within(Fraction(1, 3), math.inf).lower[0]
    assert math.nextafter(low, math.inf) > Fraction(1, 3) > Fraction(low)


def test_levels_of_rows_chosen_by_their_noise() -> None:
    """The levels of all candidates: those of one row miss in nearly all cases."""
    alpha, n = Fraction(1, 20), 40
    q = math.exp(-1)
    for independent, each in ((True, ends.level(alpha, n, independent=True)), (False, alpha / n)):
        assert ends.level(alpha, n, independent=independent) == each
        reach = GeometricMechanism(1).accuracy(each)
        beyond = 2 * q ** (reach + 1) / (1 + q)
        assert 1 - (1 - beyond) ** n <= alpha
    alone = GeometricMechanism(1).accuracy(alpha)
    assert 1 - (1 - 2 * q ** (alone + 1) / (1 + q)) ** n > 0.6


def test_rows_with_bounds_that_share_cells_have_parts_of_alpha() -> None:
    """They had Sidak's level, which is for rows of their own cells."""
    column, epsilon = with_margin("x", [1, 2]), Fraction(1, 50)
    found = Table([column], [4000, 6000], epsilon, np.zeros(3, int), bounds=(0, 10**6))
    answer = found.total("x", alpha=0.5, simultaneous=True)
    ends_of = {
        accuracy.sum_confidence_interval(found.mechanisms[1,], row, Fraction(1, 6))
        for row in ([4000, 6000], [4000], [6000])
    }
    assert set(zip(answer["lower"], answer["upper"], strict=True)) == ends_of


# Less noise


@pytest.mark.parametrize(("shape", "name", "by", "known"), [*cases()])
def test_widths_never_grow_with_epsilon(shape: str, name: str, by: Any, known: bool) -> None:
    """For equal noisy counts. The search for the end of a ratio stops within a 64th of it."""
    for alpha in (0.3, 1e-3):
        before: Any = math.inf
        for epsilon in (Fraction(1, 4), 1, 3, 10, 25, 60, 1000):
            found, _, _ = asked(shape, name, by, known, epsilon, alpha=alpha)
            # An interval of all numbers has the width NaN.
            now = (found["upper"] - found["lower"]).fillna(math.inf).to_numpy(np.float64)
            assert (now <= before * (1 + 1 / 32) + 1e-9).all(), (alpha, epsilon)
            before = now
        assert now.max() < 1e-9


@pytest.mark.parametrize("level", [0.3, 0.05, 1e-3])
@pytest.mark.parametrize("shares", [[1, 1, 2], [1, 1, 8], [4, 2, 1]])
def test_no_reach_grows_with_epsilon(level: float, shares: list[int]) -> None:
    """It grew from 0.009 to 0.5, as weights of the least variance became those of one block.

    With a level for noise that hardly occurs, it grew from 0.015 to 0.25. Only nodes that are the
    sums of their children have weights of several depths.
    """
    column = Axis("y", Hierarchy(AREAS, leaves_only=True), shares=shares)
    before: dict[int, float] = {}
    for step in range(40):
        found = Table([column], [5, 4, 3], Fraction(2.0 ** (step / 4 - 1)), np.zeros(5, int))
        kinds = found._asked(rows_of(found.design._axes, ("y",)), {}).kinds()[1]
        for place, (_, errors) in enumerate(kinds):
            now = errors.reach((1.0,), level)
            assert now <= before.get(place, math.inf) * (1 + 1e-6), (step, place)
            before[place] = now


@pytest.mark.parametrize("parts", [1.02, 1.2, 2])
def test_the_level_pays_for_the_rarest_noises(parts: float) -> None:
    """Over all noise of two that occur often, and of one that hardly does."""
    noise, masses = outcomes((1, 4), 1.5, (2, 1), 12)
    sums = np.abs(noise @ np.array([0.1, 0.2, 1.0]))
    often = weighted.Term(1.5, np.array([0.1, 0.2]), np.ones(2))
    rare = weighted.Term(6.0, np.ones(1), np.ones(1))
    level = parts * weighted.any_noise([(6.0, rare.counts)])
    assert masses[sums > weighted.reach([often, rare], level)].sum() + 1 - masses.sum() <= level


@pytest.mark.parametrize("epsilon", [3, 4, 6])
def test_intervals_hold_where_noise_is_rare(epsilon: int) -> None:
    """Over all noise, with the total variation of the sampled distribution on top."""
    true = [3, 1]
    noise, masses = outcomes((1,), epsilon, (2,), 6)
    column = Axis("x", [1, 4])
    cells = np.broadcast_to(np.array(true), (len(noise), 2))
    found = Table([Axis("outcome", range(len(noise))), column], cells, epsilon, noise)
    lost = 1 - masses.sum() + float(found._workload.lost)
    some = masses[(noise != 0).any(axis=1)].sum()
    for alpha in (0.3, some * 1.01, some * 0.99, some / 3, some**2):
        for answer, value in (
            (found.total("outcome", alpha=alpha), 4),
            (found.sum("x", "outcome", alpha=alpha), 7),
            (found.mean("x", "outcome", alpha=alpha), 7 / 4),
            (found.ratio({"x": 1}, {}, "outcome", alpha=alpha), 3 / 4),
            (found.quantile("x", 0.5, "outcome", alpha=alpha), 1),
        ):
            assert missed(answer, value, masses) + lost <= alpha


@pytest.mark.parametrize("rate", [5, 8, 12])
@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 0.4], [3.0, 1.0, 0.1]])
def test_rare_noise_is_bounded_one_by_one(rate: float, weights: list[float]) -> None:
    noise, masses = outcomes((1,), rate, (len(weights),), 4)
    sums = np.abs(noise @ np.array(weights))
    term = weighted.Term(float(rate), np.array(weights), np.ones(len(weights)))
    for level in (1e-2, 1e-4, 1e-6, 1e-9):
        reach = weighted.by_union([term], level, 100.0)
        assert masses[sums > reach].sum() <= level
        assert weighted.reach([term], level) <= reach * (1 + 1e-11)


def test_quotients_have_the_ends_of_both_intervals() -> None:
    found = [
        ((2, 6), (2, 3), (Fraction(2, 3), 3)),
        ((-6, 6), (2, 3), (-3, 3)),
        ((-6, -2), (2, 4), (-3, Fraction(-1, 2))),
        ((4, 8), (0, 2), (2, math.inf)),
        ((-8, -4), (0, 2), (-math.inf, -2)),
        ((0, 8), (-1, math.inf), (0, math.inf)),
        ((4, math.inf), (1, 2), (2, math.inf)),
        ((4, 8), (-2, 0), (-math.inf, math.inf)),
    ]
    above, below, wanted = zip(*found, strict=True)
    lower, upper = Ends.of_quotients(above, below, (len(found),))
    own = zip(lower.tolist(), upper.tolist(), strict=True)
    for (low, high), (least, most) in zip(own, wanted, strict=True):
        assert low <= least
        assert most <= high
        assert (low, high) == pytest.approx((float(least), float(most)))


def test_a_denominator_of_0_without_noise_says_nothing() -> None:
    """Not that the ratio is a number beyond all others."""
    errors = Errors([(50.0, np.ones((1, 2)), np.array([1]))])
    lower, upper = ratio_ends((np.array([5.0, 5.0]), np.array([0.0, 2.0])), errors, 0.05, 1e-9)
    assert (lower[0], upper[0]) == (0, math.inf)
    assert (lower[1], upper[1]) == pytest.approx((2.5, 2.5))
