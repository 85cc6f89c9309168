"""Answers of noisy tables: the truth without noise, and coverage over all noise.

Most tables here have a column `outcome` with a row for each outcome of the noise. Then one answer
by this column is the answer to every outcome, and the sum of the masses of those that miss is the
probability of a miss.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from geomdp import GeometricMechanism, accuracy
from geomdp._ground import identity
from geomdp.tables import Design, Hierarchy
from geomdp.tables._answers import estimates
from geomdp.tables._answers.answers import Answers
from geomdp.tables._columns.native import made
from geomdp.tables._facts import fields
from geomdp.tables._facts.axes import Axes, Axis
from geomdp.tables._release.means import NoisySumAndCount

#: So little noise that counts are exact but for a probability of exp(-100).
CLEAR = 4000


def with_margin(label: str, levels: Any) -> Axis:
    return Axis(label, levels, margin=["all" if isinstance(levels[0], str) else 99])


AREAS = {"all": None, "N": "all", "S": "all", "n1": "N", "n2": "N"}


class Table(Answers):
    """Noisy counts of cells with noise of their own, or with this noise of all nodes."""

    def __init__(
        self,
        axes: Sequence[Any],
        cells: Any,
        epsilon: Any = CLEAR,
        noise: Any = None,
        *,
        signed: bool = False,
        **more: Any,
    ) -> None:
        whole = Axes(axes)
        parts = {block: whole.block(block) for block in whole.blocks}
        self.design = SimpleNamespace(
            _axes=whole,
            _parts=parts,
            tables=None,
            _columns=whole.columns,
            signed=signed,
            **(fields.KEYWORDS | {"unit": "record"}),
        )
        counts = np.zeros([each.tree.size for each in axes], np.int64)
        counts[np.ix_(*(each.tree.leaves for each in axes))] = cells
        for place, each in enumerate(axes):
            moved = np.ascontiguousarray(np.moveaxis(counts, place, 0))
            counts = np.moveaxis(each.tree.sums(moved), 0, place)
        self.id, self.corrects, self.count_id = identity.Identity(identity.fresh())
        self._revision = len(self.corrects)
        self.label, self.about, self.epsilon = None, {}, epsilon
        self.true = counts
        self._values = counts.copy() if noise is None else counts + noise
        self.mechanisms = {}
        for block in itertools.product(*(range(each.tree.depth + 1) for each in axes)):
            parts = (Fraction(each.shares[d]) for each, d in zip(axes, block, strict=True))
            mechanism = GeometricMechanism(epsilon * math.prod(parts), **more)
            self.mechanisms[block] = mechanism
            at = tuple(each.tree.level(d) for each, d in zip(axes, block, strict=True))
            if noise is None:
                self._values[at] = mechanism.release(np.ascontiguousarray(counts[at]))

    def _made(self, columns: Any) -> Any:
        return made(columns, "pandas")


# Without noise, answers are the truth


CELLS = np.random.default_rng(5).integers(20, 90, (3, 2, 5))
AGES = [20, 30, 40, 50, 60]
TREE_AXES = (
    Axis("area", Hierarchy(AREAS, leaves_only=True), shares=[1, 1, 2]),
    with_margin("sex", ["f", "m"]),
    Axis("age", AGES),
)


def records(axes: Sequence[Any], cells: Any) -> pd.DataFrame:
    """Return the cells as a frame, with the nodes above each leaf."""
    levels = [each.levels for each in axes]
    frame = pd.DataFrame(list(itertools.product(*levels)), columns=[each.label for each in axes])
    frame["n"] = np.asarray(cells).reshape(-1)
    return frame


def of_node(axes: Sequence[Any], frame: pd.DataFrame, **given: Any) -> pd.DataFrame:
    """Return the records of these nodes."""
    for each in axes:
        if each.label in given:
            inside = set()
            for level, leaf in zip(each.levels, each.tree.leaves, strict=True):
                node = leaf
                while node >= 0:
                    if each.nodes[node] == given[each.label]:
                        inside.add(level)
                    node = each.tree.parents[node]
            frame = frame[frame[each.label].isin(inside)]
    return frame


@pytest.mark.parametrize("by", [(), "area", ("area", "sex")])
def test_without_noise_answers_are_the_truth(by: Any) -> None:
    table, whole = Table(TREE_AXES, CELLS), records(TREE_AXES, CELLS)
    before = Table(TREE_AXES, CELLS[::-1])
    kept = by if isinstance(by, tuple) else (by,)
    rows = [
        dict(zip(kept, key, strict=True))
        for key in itertools.product(
            *([each.nodes[x] for x in each.shown] for each in TREE_AXES if each.label in kept)
        )
    ]
    groups = [of_node(TREE_AXES, whole, **row) for row in rows]
    earlier = [of_node(TREE_AXES, records(TREE_AXES, CELLS[::-1]), **row) for row in rows]
    totals = np.array([each["n"].sum() for each in groups])
    old = np.array([each["n"].sum() for each in earlier])
    sums = np.array([(each["n"] * each["age"]).sum() for each in groups])
    young = np.array([each["n"][each["age"] <= 30].sum() for each in groups])
    medians = [np.repeat(each["age"], each["n"]).sort_values() for each in groups]
    population = {
        key[0] if len(key) == 1 else key: 1000 + place
        for place, key in enumerate(tuple(row.values()) for row in rows)
    }
    public = np.arange(1000, 1000 + len(rows))
    for answer, wanted in (
        (table.total(by, alpha=0.05), totals),
        (table.sum("age", by, alpha=0.05), sums),
        (table.mean("age", by, alpha=0.05), sums / totals),
        (table.quantile("age", 0.5, by, alpha=0.05), [x.iloc[(len(x) - 1) // 2] for x in medians]),
        (table.quantile("age", Fraction(1, 4), by), [x.iloc[(len(x) - 1) // 4] for x in medians]),
        (table.ratio({"age": [20, 30]}, {}, by, alpha=0.05), young / totals),
        (table.ratio({"age": 20}, {"age": 60}, by), None),
        (table.difference({"age": [20, 30]}, {}, by, alpha=0.05), young - totals),
        (table.rate(population if by else 1000, 100, by, alpha=0.05), 100 * totals / public),
        (table.change_since(before, by, alpha=0.05), totals - old),
        (table.change_since(before, by, percent=True, alpha=0.05), 100 * (totals / old - 1)),
    ):
        assert list(answer.columns)[: len(kept)] == [x for x in ("area", "sex") if x in kept]
        for row, (_, found) in zip(rows, answer.iterrows(), strict=True):
            assert {name: found[name] for name in row} == row
        if wanted is None:
            continue
        for name in [x for x in answer.columns if x not in kept]:
            assert answer[name].to_numpy() == pytest.approx(np.array(wanted), rel=1e-4, abs=0.01)
    if by:
        shares = table.percent(by, alpha=0.05)
        for name in ("percent", "lower", "upper"):
            wanted = 100 * totals / CELLS.sum()
            assert shares[name].to_numpy() == pytest.approx(wanted, rel=1e-4)


def test_cells_are_intervals_and_estimates() -> None:
    table = Table(TREE_AXES, CELLS, epsilon=1)
    found = table.intervals(0.05)
    assert list(found.columns) == ["area", "sex", "age", "estimate", "lower", "upper"]
    assert len(found) == 5 * 3 * 5
    assert (table.estimates()["estimate"] == found["estimate"]).all()
    assert (found["lower"].dtype, found["upper"].dtype) == (np.int64, np.int64)
    areas = table.total("area", alpha=0.05)
    assert (areas["upper"] - areas["lower"] < 400).all()
    wide = table.total("area", alpha=0.05, simultaneous=True)
    assert (wide["lower"] < areas["lower"]).all()
    assert (wide["upper"] > areas["upper"]).all()
    # Estimates add up.
    by_area = table.estimates().set_index(["area", "sex", "age"])["estimate"].sort_index()
    assert by_area["all", "all"].sum() == pytest.approx(areas["estimate"][0], abs=1e-6)
    assert by_area["N", "f", 20] == pytest.approx(
        by_area["n1", "f", 20] + by_area["n2", "f", 20], abs=1e-9
    )


def test_flat_tables_have_the_exact_bounds() -> None:
    """Never wider than the accuracies of sums, and integers throughout."""
    table = Table(
        [Axis("a", range(6)), Axis("b", range(4))],
        CELLS.reshape(-1)[:24].reshape(6, 4),
        Fraction(1, 2),
    )
    free = GeometricMechanism(Fraction(1, 2))
    for answer, n in (
        (table.intervals(0.05), 1),
        (table.total("a", alpha=0.05), 4),
        (table.total(alpha=0.05), 24),
        (table.difference({"a": 1}, {"a": 3}, alpha=0.05), 8),
    ):
        reach = accuracy.sum_accuracy(free, n, 0.05)
        assert answer["estimate"].dtype == np.int64
        assert set(answer["upper"] - answer["estimate"]) == {reach}
    many = table.total(("a", "b"), alpha=0.05, simultaneous=True)
    least = accuracy.simultaneous_accuracy(free, 0.05, n=24)
    assert set(many["upper"] - many["estimate"]) == {least}


def test_margins_are_used() -> None:
    rng = np.random.default_rng(1)
    cells = rng.poisson(200, (10, 2))
    alone = Table([Axis("a", range(10)), Axis("b", [*"xy"])], cells, Fraction(1, 2))
    both = Table([with_margin("a", range(10)), with_margin("b", [*"xy"])], cells, Fraction(1, 2))
    widths = [
        (found["upper"] - found["lower"])[0] / 2
        for table in (alone, both)
        for found in (table.total(alpha=0.05), table.intervals(0.05))
    ]
    assert widths[2] < widths[0]
    # Without the least squares, a cell has the noise of a quarter of epsilon.
    assert widths[3] < 0.85 * GeometricMechanism(Fraction(1, 8)).accuracy(0.05)


# Coverage, over all noise


def outcomes(shares: Sequence[Any], epsilon: Any, sizes: Any, most: int) -> tuple[Any, Any]:
    """Return all noises of nodes of these sizes by depth, a row each, and their masses."""
    rates = np.concatenate(
        [np.full(n, float(epsilon * s)) for s, n in zip(shares, sizes, strict=True)]
    )
    found = np.indices((2 * most + 1,) * rates.size).reshape(rates.size, -1).T - most
    a = np.exp(-rates)
    return found, ((1 - a) / (1 + a) * a ** np.abs(found)).prod(axis=1)


def small(column: Any, true: Sequence[int], epsilon: Any, most: int) -> tuple[Table, Any]:
    """Return a table with a row for each outcome of the noise of a column, and their masses."""
    sizes = np.diff(column.tree.starts)[: column.tree.depth + 1]
    noise, masses = outcomes(column.shares, epsilon, sizes, most)
    cells = np.broadcast_to(np.array(true), (len(noise), len(true)))
    return Table([Axis("outcome", range(len(noise))), column], cells, epsilon, noise), masses


def give(table: Table, noise: Any) -> None:
    """Give a table this noise instead of its own."""
    table._values = table.true + noise
    table.__dict__.pop("_fitted", None)


def missed(answer: Any, value: float, masses: Any) -> float:
    inside = (answer["lower"] <= value + 1e-12) & (value - 1e-12 <= answer["upper"])
    return float(masses[~inside.to_numpy()].sum())


LISTS = [
    (Axis("x", [0, 1]), [0, 1], 1, 12),
    (Axis("x", [0, 1]), [2, 5], 1, 12),
    (Axis("x", [0, 1]), [0, 40], 1, 12),
    (Axis("x", [-1, 0, 4]), [3, 0, 2], Fraction(3, 2), 5),
    (Axis("x", [-1, 0, 4]), [0, 0, 9], Fraction(3, 2), 5),
    (with_margin("x", [0, 1]), [4, 3], 3, 6),
    (with_margin("x", [0, 3]), [1, 11], 3, 6),
]


#: The later ones, with more outcomes, at one level each.
LEVELS = [*((each, level) for each in LISTS[:4] for level in (0.4, 0.1))]
LEVELS += zip(LISTS[4:], (0.1, 0.4, 0.1), strict=True)


@pytest.mark.parametrize(
    ("column", "true", "epsilon", "most", "alpha"), [(*each, level) for each, level in LEVELS]
)
def test_intervals_hold_over_all_noise(
    column: Any, true: Any, epsilon: Any, most: int, alpha: float
) -> None:
    table, masses = small(column, true, epsilon, most)
    left = 1 - masses.sum()
    assert left < 0.02
    values, n = np.array(column.levels), sum(true)
    first = column.levels[0]
    quantiles = {q: int(np.repeat(values, true)[math.ceil(q * n) - 1]) for q in (0.5, 0.25, 0.9)}
    for answer, value, always in (
        (table.total("outcome", alpha=alpha), n, True),
        (table.sum("x", "outcome", alpha=alpha), values @ true, True),
        (table.sum("x", "outcome", values={first: 1.5}, alpha=alpha), 1.5 * true[0], True),
        (table.mean("x", "outcome", alpha=alpha), values @ true / n, n > 9),
        (table.ratio({"x": first}, {}, "outcome", alpha=alpha), true[0] / n, n > 9 and true[0]),
        (table.difference({"x": first}, {}, "outcome", alpha=alpha), true[0] - n, True),
        (
            table.rate(dict.fromkeys(range(len(masses)), 50), 100, "outcome", alpha=alpha),
            2 * n,
            True,
        ),
        *(
            (table.quantile("x", q, "outcome", alpha=alpha), value, False)
            for q, value in quantiles.items()
        ),
    ):
        probability = missed(answer, value, masses)
        assert probability <= alpha
        # Not in vain: some interval misses.
        assert probability > 0 or not always
        assert (answer["lower"] <= answer["upper"]).all()
        estimate = answer["estimate"].to_numpy()
        near = float(always and isinstance(value, int | np.integer))
        # Estimates may be outside of what is possible; and ends are integers.
        possible = np.clip(estimate, answer["lower"].min(), answer["upper"].max())
        inside = (answer["lower"] - near <= possible) & (possible <= answer["upper"] + near)
        assert (inside | np.isnan(estimate.astype(float))).all()


@pytest.mark.parametrize("true", [([3, 5], [4, 1]), ([0, 9], [1, 0])])
def test_two_releases_hold_over_all_noise(true: Any) -> None:
    """Changes, in percent too, and combined estimates."""
    noise, masses = outcomes((1,), Fraction(3, 2), (4,), 4)
    column = Axis("x", [0, 1])
    one, other = (
        Table(
            [Axis("outcome", range(len(noise))), column],
            np.broadcast_to(np.array(cells), (len(noise), 2)),
            Fraction(3, 2),
            part,
        )
        for cells, part in zip(true, (noise[:, :2], noise[:, 2:]), strict=True)
    )
    new, old = map(sum, true)
    for alpha in (0.4, 0.1):
        for answer, value in (
            (one.change_since(other, "outcome", alpha=alpha), new - old),
            (one.change_since(other, "outcome", percent=True, alpha=alpha), 100 * (new / old - 1)),
        ):
            assert missed(answer, value, masses) <= alpha
            assert (answer["lower"] <= answer["upper"]).all()


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("true", [[-3, 2], [-7, -1], [0, 0]])
def test_sums_of_either_sign_hold_over_all_noise(true: list[int], margin: bool) -> None:
    """No interval ends at 0: that would miss a negative sum for every outcome."""
    column, epsilon, most = Axis("x", [0, 1]), 1, 12
    if margin:
        column, epsilon, most = with_margin("x", [0, 1]), 3, 6
    sizes = np.diff(column.tree.starts)[: column.tree.depth + 1]
    noise, masses = outcomes(column.shares, epsilon, sizes, most)
    axes = [Axis("outcome", range(len(noise))), column]
    cells = np.broadcast_to(np.array(true), (len(noise), 2))
    table = Table(axes, cells, epsilon, noise, signed=True)
    people = dict.fromkeys(range(len(noise)), 50)
    for alpha in (0.4, 0.1):
        each = table.intervals(alpha)
        for answer, value in (
            (table.total("outcome", alpha=alpha), sum(true)),
            (each[each["x"] == 0], true[0]),
            (table.difference({"x": 0}, {"x": 1}, "outcome", alpha=alpha), true[0] - true[1]),
            (table.rate(people, 100, "outcome", alpha=alpha), 2 * sum(true)),
            (
                table.sum("x", "outcome", values={0: 1.5, 1: 1}, alpha=alpha),
                1.5 * true[0] + true[1],
            ),
            (table.sum("x", "outcome", values={0: 1, 1: 1}, alpha=alpha), sum(true)),
            *(
                (
                    table.ratio({"x": one}, {"x": other}, "outcome", alpha=alpha),
                    true[one] / true[other],
                )
                for one, other in [(0, 1), (1, 0)]
                if true[other]
            ),
        ):
            assert missed(answer, value, masses) <= alpha
            assert (answer["lower"] <= answer["upper"]).all()
        assert missed(table.total("outcome", alpha=alpha), sum(true), masses) > 0


@pytest.mark.parametrize(
    ("sums", "counts", "bounds"),
    [
        *(([s], [n], (-1, 2)) for s, n in [(-9, 9), (-2, 3), (0, 12), (24, 12)]),
        *(([s], [n], (0, 2)) for s, n in [(0, 3), (12, 9)]),
        ([-3, 9], [4, 6], (-1, 2)),
    ],
)
def test_means_of_sums_and_counts_hold_over_all_noise(
    sums: list[int], counts: list[int], bounds: tuple[int, int]
) -> None:
    """The sums have twice the noise scale of the counts, as for values of up to 2."""
    k, shares = len(sums), (Fraction(1, 3), Fraction(2, 3))
    noise, masses = outcomes(shares, k, (k, k), 20 if k == 1 else 4)
    axes = [Axis("outcome", range(len(noise))), Axis("x", range(k))]
    low, high = bounds
    one, other = (
        Table(
            axes,
            np.broadcast_to(np.array(cells), (len(noise), k)),
            k * share,
            part,
            signed=signed,
        )
        for cells, share, part, signed in zip(
            (sums, counts), shares, (noise[:, :k], noise[:, k:]), (low < 0, False), strict=True
        )
    )
    both: Any = {"sums": one, "counts": other}
    pair, mean = NoisySumAndCount(both, bounds), sum(sums) / sum(counts)
    for alpha in (0.4, 0.1):
        means = pair.mean("outcome", alpha=alpha)
        ratios = one.per(other, "outcome", alpha=alpha)
        for answer in (means, ratios):
            assert missed(answer, mean, masses) <= alpha
            assert (answer["lower"] <= answer["upper"]).all()
        assert ((low <= means["lower"]) & (means["upper"] <= high)).all()
        # A group that may have no records has no mean.
        noisy, none = other.total("outcome")["estimate"], means["estimate"].isna()
        reach = accuracy.sum_accuracy(GeometricMechanism(k * shares[1]), k, 0.05)
        assert noisy[none].max() <= 1.2 * reach < 1.3 * noisy[~none].min()
        # Not in vain.
        assert sum(counts) < 9 or missed(ratios, mean, masses) > 0
        if low == 0:
            assert (ratios["lower"] >= 0).all()


@pytest.mark.parametrize("true", [[0, 1], [3, 4], [0, 30], [25, 25]])
def test_shares_hold_over_all_noise(true: list[int]) -> None:
    """One outcome at a time, since a share is of the whole table."""
    noise, masses = outcomes((1,), 3, (2,), 2)
    table = Table([Axis("x", ["a", "b"])], true, 3, noise[0])
    for alpha in (0.4, 0.1):
        probability = np.zeros(3)
        for each, mass in zip(noise, masses, strict=True):
            give(table, each)
            for place, simultaneous in ((0, False), (2, True)):
                found = table.percent("x", alpha=alpha, simultaneous=simultaneous)
                assert (found["lower"] >= 0).all()
                assert (found["upper"] <= 100).all()
                assert found["percent"].isna().all() or abs(found["percent"].sum() - 100) < 1e-9
                point = found["percent"].clip(0, 100)
                assert (
                    point.isna() | ((found["lower"] <= point) & (point <= found["upper"]))
                ).all()
                out = (100 * np.array(true) / sum(true) < found["lower"] - 1e-9) | (
                    100 * np.array(true) / sum(true) > found["upper"] + 1e-9
                )
                probability[place : place + 2] += mass * (out.any() if simultaneous else out)
        assert (probability <= alpha).all()


@pytest.mark.parametrize(
    ("column", "true", "epsilon", "most"),
    [
        (Axis("x", [0, 1]), [2, 5], 1, 4),
        (with_margin("x", [0, 3]), [1, 11], 3, 2),
    ],
)
def test_a_known_total_holds_over_all_noise(
    column: Any, true: Any, epsilon: Any, most: int
) -> None:
    sizes = np.diff(column.tree.starts)[: column.tree.depth + 1]
    noise, masses = outcomes(column.shares, epsilon, sizes, most)
    values, n, first = np.array(column.levels), sum(true), column.levels[0]
    alpha, wrong = 0.3, np.zeros(6)
    table = Table([column], true, epsilon, noise[0])
    known = table.with_totals(n)
    squares = np.zeros((2, 2))
    for each, mass in zip(noise, masses, strict=True):
        give(table, each)
        give(known, each)
        assert known.total(alpha=alpha).iloc[0].tolist() == [n] * 3
        cells, alone = known.intervals(alpha), table.intervals(alpha)
        for place, found in enumerate((cells, alone)):
            squares[place] += mass * (found["estimate"][:2] - true) ** 2
        for place, (answer, value) in enumerate(
            (
                (cells[cells["x"] == first], true[0]),
                (known.difference({"x": first}, {}, alpha=alpha), true[0] - n),
                (known.sum("x", alpha=alpha), values @ true),
                (known.mean("x", alpha=alpha), values @ true / n),
                (known.ratio({"x": first}, {}, alpha=alpha), true[0] / n),
                (
                    known.quantile("x", 0.5, alpha=alpha),
                    np.repeat(values, true)[math.ceil(n / 2) - 1],
                ),
            )
        ):
            wrong[place] += missed(answer, value, np.array([mass]))
    assert (wrong <= alpha).all()
    # Not in vain, but for the median, whose levels are few.
    assert (wrong[:5] > 0).all()
    # A cell keeps the part of its variance that the total does not explain.
    kept = 0.75 if len(column.nodes) > 2 else 0.5
    assert squares[0] == pytest.approx(kept * squares[1], rel=1e-9)


def test_a_known_total_of_counts_at_a_limit_or_with_bounds() -> None:
    limit = 2**63 - 1
    found = Table([Axis("x", [1, 2])], [3, 5], 1, np.array([limit - 3, 0])).with_totals(8)
    assert found.intervals(0.05)[["lower", "upper"]].to_numpy().tolist() == [[0, 8]] * 2
    bounded = Table([Axis("x", [1, 2])], [3, 5], 1, bounds=(0, 9))
    with pytest.raises(ValueError, match="no interval for a known total"):
        bounded.with_totals(8)


def test_the_percentage_of_a_part_holds_near_zero_and_with_several_cells() -> None:
    """The interval of a ratio over one plus the ratio missed 42% of the time near 0."""
    rng = np.random.default_rng(7)
    n = 20_000
    epsilon = Fraction(1, 2)
    a = math.exp(-epsilon)
    for true in ([1, 0], [0, 2], [3, 1, 0, 0, 2, 0, 1, 0], [40, 3, 2, 5, 1, 0, 0, 0]):
        noise = rng.geometric(1 - a, (n, len(true))) - rng.geometric(1 - a, (n, len(true)))
        table = Table(
            [Axis("outcome", range(n)), Axis("x", range(len(true)))],
            np.broadcast_to(true, noise.shape),
            epsilon,
            noise,
        )
        found = table.ratio({"x": 0}, {}, "outcome", alpha=0.05)
        rate = missed(found, true[0] / sum(true), np.full(n, 1 / n))
        # A binomial above 0.05 by this much has a probability below 1e-6.
        assert rate < 0.05 + 5 * math.sqrt(0.05 * 0.95 / n)


# What is known, and what cannot be said


def test_ratios_of_estimates_are_not_cut() -> None:
    """Shares that were cut at 0 added up to 138%; the mean of a shop without bills was 200.0."""
    column, flat = Axis("x", ["a", "b"]), Axis("y", [1, 2, 3])
    table = Table([column], [0, 0], 1, np.array([-20, 200]))
    found = table.percent("x", alpha=0.05)
    assert found["percent"].tolist() == pytest.approx([-100 / 9, 1000 / 9])
    assert [found["lower"][0], found["upper"][1]] == [0, 100]
    counts = table.intervals(0.05)
    assert counts["estimate"].tolist() == [-20, 200]
    mean = Table([flat], [0, 0, 0], 1, np.array([-50, 0, 90])).mean("y", alpha=0.05)
    assert mean["estimate"].tolist() == [5.5]
    assert mean["upper"].tolist() == [3]
    for bounds in (None, (0, 300)):
        noisy = np.array([0, 3, 200])
        shares = Table([flat], noisy, 1, noisy * 0, bounds=bounds).percent("y", alpha=0.05)
        assert shares["percent"].sum() == pytest.approx(100)


def test_a_noisy_count_below_0_has_the_interval_of_0() -> None:
    """Its own would shrink to "0 to 0", as if noise of -20 said more than noise of 0."""
    flat, tree = Axis("y", [1, 2, 3]), Axis("x", ["a", "b"], margin=("all",))
    zero, below = (Table([flat], [0, 0, 0], 1, np.array([noisy, 60, 200])) for noisy in (0, -20))
    questions: list[Callable[[Table], Any]] = [
        lambda table: table.intervals(0.05),
        lambda table: table.intervals(0.05, simultaneous=True),
        lambda table: table.rate({1: 10, 2: 10, 3: 10}, by="y", alpha=0.05),
        lambda table: table.ratio({"y": 1}, {"y": 3}, alpha=0.05),
        lambda table: table.change_since(
            Table([flat], [0, 0, 0], 2, np.full(3, 90)), "y", percent=True, alpha=0.05
        ),
        lambda table: table.sum("y", values={1: 7}, alpha=0.05),
    ]
    for ask in questions:
        one, other = (ask(table)[["lower", "upper"]].iloc[0].tolist() for table in (zero, below))
        assert one == other
        assert other[0] < other[1]
    # Of a part of a whole with noise, too: its denominator differs, so the interval does.
    assert below.percent("y", alpha=0.05)["upper"][0] > 0.5
    # A total that everyone knows is a limit like 0.
    known = Table([flat], [0, 0, 0], 1, np.array([400, 2, 9])).with_totals(300).intervals(0.05)
    assert known["lower"][0] < 300 == known["upper"][0]
    for bounds in (None, (-90, 400)):
        noisy = Table([flat], [0, 0, 0], 1, np.array([-20, 0, 0]), bounds=bounds).intervals(0.05)
        assert noisy["upper"].tolist() == [3, 3, 3]
    fitted = Table([tree], [0, 0], 1, np.array([-9, -40, 30])).intervals(0.05)
    assert (fitted["upper"] > 0).all()


def test_intervals_of_counts_near_0_cover_them_exactly() -> None:
    """Over all noise: more often than those that shrink, and none of them is "0 to 0"."""
    rate, alpha = 1.0, Fraction(1, 20)
    reach = GeometricMechanism(rate).accuracy(alpha)
    noise = np.arange(-60, 61)
    mass = np.exp(-rate * np.abs(noise)) * math.tanh(rate / 2)
    axis = Axis("cell", [*range(noise.size)])
    for true in range(6):
        noisy = true + noise
        found = Table([axis], noisy * 0 + true, rate, noise).intervals(alpha)
        assert found["estimate"].tolist() == noisy.tolist()
        lower, upper = (found[name].to_numpy() for name in ("lower", "upper"))
        assert (upper == np.maximum(noisy, 0) + reach).all()
        covered = mass[(lower <= true) & (true <= upper)].sum()
        shrinking = mass[np.abs(noise) <= reach].sum()
        # A noisy count below 0 misses no true count up to the reach.
        more = mass[noise < -reach].sum() if true <= reach else 0
        assert covered == pytest.approx(shrinking + more, abs=1e-12)


def test_a_denominator_that_cannot_be_told_from_0() -> None:
    column = Axis("x", ["a", "b"])
    table = Table([column], [0, 0], 1, np.array([1, 0]))
    found = table.ratio({"x": "a"}, {"x": "b"}, alpha=0.05)
    assert np.isnan(found["estimate"][0])
    assert (found["lower"][0], found["upper"][0]) == (0, math.inf)
    found = table.percent("x", alpha=0.05)
    assert (found["lower"].tolist(), found["upper"].tolist()) == ([0, 0], [100, 100])
    ages = Table([Axis("age", [20, 30])], [0, 0], 1, np.array([1, -1]))
    found = ages.mean("age", alpha=0.05)
    assert (found["lower"][0], found["upper"][0]) == (20, 30)
    assert np.isnan(found["estimate"][0])
    found = ages.quantile("age", 0.5, alpha=0.05)
    assert (found["lower"][0], found["upper"][0]) == (20, 30)
    other = Table([column], [0, 0], 1, np.array([1, 0]))
    found = table.change_since(other, percent=True, alpha=0.05)
    assert (found["lower"][0], found["upper"][0]) == (-100, math.inf)


def test_counts_at_a_limit_of_int64_open_the_interval() -> None:
    limit = 2**63 - 1
    flat = Table([Axis("x", [1, 2])], [limit - 1, 5], 1, np.array([1, 0]))
    found = flat.intervals(0.05)
    assert found["upper"][0] >= limit
    assert found["upper"][1] == 5 + flat.mechanisms[(0,)].accuracy(0.05)
    margin = Table([with_margin("x", [1, 2])], [3, 5], 1, np.array([0, limit - 3, 0]))
    found = margin.intervals(0.05)
    assert (found["lower"] == 0).all()
    assert (found["upper"] == math.inf).all()
    assert margin.mean("x", alpha=0.05)[["lower", "upper"]].to_numpy().tolist() == [[1, 2]]


def test_quantiles_are_those_of_all_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the reaches that decide are found, and all others bounded."""
    rng = np.random.default_rng(12)
    people = pd.DataFrame({"age": rng.binomial(70, 0.4, 900), "place": rng.choice([*"abcd"], 900)})
    tree = Hierarchy({"a": "n", "b": "n", "c": "s", "d": "s", "n": "all", "s": "all"})
    designs = [
        Design({"age": range(71), "place": [*"abcd"]}),
        Design({"age": range(71), "place": [*"abcd"]}, margins={"place": "all"}),
        Design({"age": range(71), "place": tree}),
        Design({"age": [20], "place": [*"abcd"]}),
    ]
    found = []

    def every(asked: Any, shape: Any, level: float, _: Any) -> Any:
        places = range(shape[-1])
        each = [asked(range(k, k + 1)).reaches((1,), level) for k in places]
        return np.stack(each, -1) if each else np.empty(shape)

    for design in designs:
        noisy = design.count(people[people["age"].isin(design.levels["age"])]).release(epsilon=1)
        asks = [
            partial(noisy.quantile, "age", q, by, alpha=alpha)
            for q, by, alpha in itertools.product((0.5, 0.1), ((), "place"), (0.05,))
        ]
        found.append([ask() for ask in asks])
        with monkeypatch.context() as patch:
            patch.setattr(estimates, "deciding", every)
            for ask, quick in zip(asks, found[-1], strict=True):
                pd.testing.assert_frame_equal(ask(), quick)
    widths = [x["upper"] - x["lower"] for x in found[0]]
    assert 0 < max(map(max, widths)) < 70


def test_levels_for_others_have_no_place_among_quantiles() -> None:
    """Nor among means, which took a label such as -1 for the age of all others."""
    column = Axis("age", [20, 30, 40], other=[-1])
    table = Table([column], [10, 10, 11, 900])
    assert table.quantile("age", 0.5, alpha=0.05).iloc[0].tolist() == [30, 30, 30]
    with pytest.raises(ValueError, match="other records of 'age', in -1, have no number"):
        table.mean("age")
    found = table.mean("age", values={20: 20, 30: 30, 40: 40}, alpha=0.05)
    assert found["estimate"][0] == pytest.approx((200 + 300 + 440) / 31)
    nulls = Table([Axis("age", [None, 20, 30])], [900, 10, 5])
    assert nulls.quantile("age", 0.5)["estimate"].tolist() == [20]


def test_populations_of_leaves_are_enough() -> None:
    table = Table(TREE_AXES, CELLS)
    leaves = {"S": 10, "n1": 20, "n2": 30}
    found = table.rate(leaves, 1, by="area")["estimate"]
    totals = table.total("area")["estimate"]
    assert found.to_numpy() == pytest.approx(totals / [60, 50, 10, 20, 30])
    column = pd.Series(leaves)
    assert (table.rate(column, 1, by="area")["estimate"] == found).all()
    listed = table.rate([60, 50, 10, 20, 30], 1, by="area")["estimate"]
    assert (listed == found).all()


def test_releases_with_other_margins_compare() -> None:
    every = Axis("y", [1, 2], complete=True)
    one = Table([with_margin("x", ["a", "b"]), every], [[9, 5], [3, 1]])
    other = Table([Axis("x", ["a", "b"])], [10, 10])
    assert one.change_since(other, "x")["x"].tolist() == ["a", "b"]
    assert one.change_since(other, "x")["estimate"].round().tolist() == [4, -6]
    same = Table([Axis("x", ["b", "a"]), Axis("y", [1, 2])], [[3, 1], [9, 5]])
    found = one.change_since(same, "x", alpha=0.05)
    assert found["estimate"].round().tolist() == [0, 0]
    with pytest.raises(ValueError, match="only one of them has 'y', which leaves out records"):
        same.change_since(other, "x")
    with pytest.raises(ValueError, match="earlier has other levels of 'x', and so counts other"):
        one.change_since(Table([Axis("x", ["a", "c"])], [1, 1]), "x")
    north = {"all": None, "N": "all", "S": "all", "n1": "N", "n2": "S", "s1": "S"}
    moved = {"all": None, "N": "all", "S": "all", "n1": "N", "n2": "N", "s1": "S"}
    trees = [
        Table([Axis("x", Hierarchy(each, leaves_only=True))], [1, 2, 3]) for each in (north, moved)
    ]
    with pytest.raises(ValueError, match="other levels of 'x'"):
        trees[0].change_since(trees[1], "x")


# Bounds


def test_ends_at_a_bound_are_open() -> None:
    """With bounds (10, 40), intervals of true counts beyond them covered 0%."""
    noisy = np.array([12, 25, 38])
    table = Table([Axis("x", [*"abc"])], noisy, 1, noisy * 0, bounds=(10, 40))
    ends = table.intervals(alpha=0.05)[["lower", "upper"]].T.to_numpy().tolist()
    reach = table.mechanisms[0,].accuracy(0.05)
    assert ends == [[0, 25 - reach, 38 - reach], [12 + reach, 25 + reach, 2**63 - 1]]
    whole = table.total(alpha=0.05)
    assert whole["lower"][0] <= 75 - 12 - reach
    assert whole["upper"][0] >= 2**63 - 1
    below = Design({"x": ["a"]}).sum(pd.DataFrame({"x": ["a"], "n": 1}), "n", bounds=(-5, 5))
    with pytest.raises(ValueError, match=r"^bounds = \(0, 9\) are not accepted for sums of values"):
        below.release(epsilon=1, bounds=(0, 9))
    assert below.release(epsilon=9, bounds=(-9, 9)).intervals(0.05)["lower"][0] >= -(2**63)


def test_releases_with_bounds_answer_by_cells() -> None:
    noisy = np.array([[0, 60], [45, 30]])
    table = Table([Axis("x", [*"ab"]), Axis("y", [1, 2])], noisy, 1, noisy * 0, bounds=(0, 100))
    other = Table([Axis("x", [*"ab"]), Axis("y", [1, 2])], noisy, 1, noisy * 0, bounds=(0, 100))
    mechanism = table.mechanisms[0, 0]
    found = table.total("x", alpha=0.05)
    for row, cells in enumerate(noisy):
        lower, upper = accuracy.sum_confidence_interval(mechanism, cells, 0.05)
        assert (found["lower"][row], found["upper"][row]) == (lower, upper)
    found = table.difference({"x": "a"}, {"x": "b"}, alpha=0.05)
    wanted = accuracy.sum_confidence_interval(
        mechanism, noisy.reshape(-1), 0.05, weights=[1, 1, -1, -1]
    )
    assert (found["lower"][0], found["upper"][0]) == wanted
    shares = table.percent("x", alpha=0.05)
    assert (shares["lower"] < shares["percent"]).all()
    assert (shares["percent"] < shares["upper"]).all()
    assert table.rate(1000, alpha=0.05)["lower"][0] > 0
    for ask in (
        lambda: table.mean("y", alpha=0.05),
        lambda: table.sum("y", alpha=0.05),
        lambda: table.quantile("y", 0.5, alpha=0.05),
        lambda: table.ratio({"x": "a"}, {}, alpha=0.05),
        lambda: table.change_since(other, alpha=0.05),
    ):
        with pytest.raises(ValueError, match="a release with bounds has no interval for a "):
            ask()
    ragged = Axis("x", Hierarchy(AREAS, leaves_only=True))
    table = Table([ragged], [1, 2, 3], 1, np.zeros(5, int), bounds=(0, 9))
    with pytest.raises(ValueError, match="with the tree of 'x', whose cells differ in depth"):
        table.total(alpha=0.05)


# Refusals


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda t: t.total("nowhere"), KeyError, "by = 'nowhere' is no column of the table"),
        (lambda t: t.mean("area", "area"), ValueError, "column has 'area', which is in by"),
        (lambda t: t.mean("sex"), ValueError, "level 'f' of 'sex' has no number as its value"),
        (lambda t: t.mean("sex", values={"x": 1}), ValueError, "'x', in values=, is not a level"),
        (lambda t: t.mean("sex", values={}), ValueError, "values are empty"),
        (lambda t: t.mean("sex", values=[1, 2]), TypeError, "values"),
        (lambda t: t.quantile("age", 1), ValueError, "q = 1 is not accepted"),
        (lambda t: t.quantile("age", None), TypeError, "q"),
        (
            lambda t: t.ratio({"sex": "x"}, {}),
            ValueError,
            "'x', in one=, is not a level of 'sex': give one of",
        ),
        (lambda t: t.ratio("f", {}), TypeError, "one = 'f' has type str: give a mapping"),
        (
            lambda t: t.difference({}, {"sex": "f"}, "sex"),
            ValueError,
            "other has 'sex', which is in",
        ),
        (lambda t: t.total(alpha=0), ValueError, "alpha = 0"),
        (lambda t: t.total(alpha=0.05, simultaneous=1), TypeError, "simultaneous = 1"),
        (lambda t: t.mean("age", alpha=1e-19), ValueError, "the error of the sampled distribution"),
        (lambda t: t.rate(0), ValueError, "population = 0 is not accepted"),
        (lambda t: t.rate({"N": 5}, by="area"), ValueError, "population has no number for 'all'"),
        (lambda t: t.rate([1, 2], by="area"), ValueError, "population has 2 numbers: give 5"),
        (lambda t: t.rate(5, by="area"), TypeError, "population = 5 has type int"),
        (lambda t: t.rate(5, per=0), ValueError, "per = 0"),
        (
            lambda t: t.with_totals(-1),
            ValueError,
            "totals = -1 is not accepted: give an int from 0",
        ),
        (lambda t: t.with_totals(2.5), TypeError, "totals = 2.5 has type float"),
        (lambda t: t.change_since(3), TypeError, "earlier = 3 has type int"),
        (
            lambda t: t.change_since(Table(TREE_AXES, CELLS), percent="no"),
            TypeError,
            "percent = 'no'",
        ),
        *(
            (ask, ValueError, "is this release, or of the same stream, so that they share noise")
            for ask in (
                lambda t: t.change_since(t),
                lambda t: t.combine(t),
            )
        ),
    ],
)
def test_wrong_questions_are_refused(ask: Any, error: Any, message: str) -> None:
    table = Table(TREE_AXES, CELLS, 1)
    with pytest.raises(error, match=message):
        ask(table)


def test_columns_have_no_name_of_an_answer() -> None:
    with pytest.raises(ValueError, match="by has 'lower', the name of a column of answers"):
        Table([Axis("lower", [1, 2])], [1, 2]).total("lower")


@pytest.mark.parametrize("epsilon", ["1/1000000000", "1/100000000", "1/10000000"])
def test_intervals_beyond_int64_are_no_other_integers(epsilon: str) -> None:
    """Ends beyond int64 were cast to its least integer: the interval missed its own estimate."""
    table = Design({"a": ["x", "y"]}, linf=2**31).count(pd.DataFrame({"a": ["x"]}))
    noisy = table.release(epsilon=epsilon)
    noisy.counts[:] = 2**61 + 1, -7
    [mechanism] = noisy.mechanisms.values()
    for alpha in (Fraction(1, 2), Fraction(1, 1000)):
        found = noisy.intervals(alpha)
        reach = mechanism.accuracy(alpha)
        ends = zip(found["lower"].tolist(), found["upper"].tolist(), strict=True)
        for count, (lower, upper) in zip(noisy.counts.tolist(), ends, strict=True):
            assert lower <= max(count - reach, 0)
            assert upper >= min(count + reach, 2**63 - 1)
