"""Answers about groups that reached a threshold: intervals that allow for the choice of rows."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism
from geomdp.tables import Design, NoisyGroups, Words
from geomdp.tables._math import thresholds
from geomdp.tables._results.rest import Rest
from test_answers import outcomes

ALPHA = Fraction(1, 5)


def groups(
    size: int, cells: Any, counts: Any, at_least: int, rate: Any, *, rest: Any = None
) -> Any:
    """Return groups of a column of this size with these noisy counts, as a reader has them."""
    given: Any = {} if rest is None else {"rest": (-1, "1/2")}
    design = Design({"x": range(size)})
    noisy: Any = design.count(pd.DataFrame({"x": [0]})).release(
        epsilon=1, at_least=at_least, **given
    )
    noisy.mechanisms = {(0,): GeometricMechanism(rate)}
    noisy._picked, noisy._values = np.asarray(cells), np.asarray(counts)
    if rest is not None:
        noisy._rest = Rest((-1,), GeometricMechanism(rest))
    return noisy


def each_outcome(true: int, at_least: int, rate: Any, noise: Any) -> Any:
    """Return a release whose cells are outcomes of one cell."""
    noisy = true + noise
    shown = np.flatnonzero(noisy >= at_least)
    return groups(noise.size, shown, noisy[shown], at_least, rate)


def each_of(true: tuple[int, int], noise: Any, at_least: tuple[int, int] = (5, 5)) -> list[Any]:
    """Return two releases whose cells are outcomes of one cell of each."""
    known = zip(true, at_least, noise.T, strict=True)
    return [each_outcome(t, least, Fraction(1, 2), z) for t, least, z in known]


def wrong(found: Any, value: float, masses: Any) -> tuple[float, float]:
    """Return the probability that a row appears, and that it does with an interval that misses."""
    at = found["x"].to_numpy()
    out = (found["lower"] > value + 1e-9) | (value - 1e-9 > found["upper"])
    lost = 1 - masses.sum()
    return float(masses[at].sum()), float(masses[at[out.to_numpy()]].sum() + lost)


# What a threshold leaves out


@pytest.mark.parametrize("rate", [0.02, 0.5, 1, 7])
@pytest.mark.parametrize("level", [Fraction(1, 2), ALPHA, Fraction(1, 10**6)])
def test_the_greatest_count_left_out_is_that_of_the_law(rate: float, level: Fraction) -> None:
    q, threshold = math.exp(-rate), 40
    [most] = thresholds.most_left_out(rate, np.array([threshold]), level).tolist()

    def missed(count: int) -> float:
        """Return the probability that c + Z < T."""
        z = np.arange(-3000, threshold - count)
        return float(((1 - q) / (1 + q) * q ** np.abs(z)).sum())

    if level < Fraction(1, 2):
        assert missed(most) > float(level) * (1 - 1e-6)
    assert missed(most + 1) <= float(level) * (1 + 1e-6)


def test_levels_that_no_float_has_leave_out_no_more_than_int64() -> None:
    design = Design({"word": Words("abcdefghijklmnopqrstuvwxyz", 200)})
    noisy = design.count(pd.DataFrame({"word": ["x"]})).release(epsilon=1, at_least=900)
    both = noisy.most_left_out(alpha=0.05), noisy.most_left_out(alpha=0.05, simultaneous=True)
    assert both[0] == 901
    assert 900 + math.log(design.cells) < both[1] < 905 + math.log(design.cells)
    top = np.array([2**63 - 1, 5])
    found = thresholds.most_left_out(1e-12, top, Fraction(1, 10**9)).tolist()
    assert found[0] == 2**63 - 1 < found[1] + 2**63
    common = Design({"word": Words("ab", 9, common=["a"])}).count(pd.DataFrame({"word": ["x"]}))
    assert common.release(epsilon=1, at_least=(4, 30)).most_left_out(alpha=0.05) == (5, 31)


# Coverage, over all noise of two releases


ASKS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], float]]] = {
    "change": (lambda a, b: a.change_since(b, "x", alpha=ALPHA), lambda x, y: x - y),
    "percent": (
        lambda a, b: a.change_since(b, "x", percent=True, alpha=ALPHA),
        lambda x, y: 100 * x / y - 100,
    ),
    "plus": (lambda a, b: a.plus(b, alpha=ALPHA), lambda x, y: x + y),
    "per": (lambda a, b: a.per(b, alpha=ALPHA), lambda x, y: x / y),
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("true", [(0, 5), (3, 3), (9, 2), (1, 12), (6, 6), (40, 1)])
@pytest.mark.parametrize("at_least", [(5, 5), (1, 8)])
def test_answers_of_two_releases_hold_given_that_a_row_appears(
    ask: str, true: tuple[int, int], at_least: tuple[int, int]
) -> None:
    noise, masses = outcomes((1,), Fraction(1, 2), (2,), 30)
    one, other = each_of(true, noise, at_least)
    asked, value = ASKS[ask]
    found = asked(one, other)
    assert found["x"].tolist() == np.union1d(one._picked, other._picked).tolist()
    shown, missed = wrong(found, value(*true), masses)
    assert missed <= float(ALPHA) * shown
    here = np.isin(found["x"], np.intersect1d(one._picked, other._picked))
    numbers = found.iloc[:, 1].to_numpy()
    assert np.isnan(numbers[~here]).all()
    if ask in ("change", "plus"):
        at = found["x"].to_numpy()[here]
        noisy = np.array(true) + noise[at]
        assert numbers[here].tolist() == (noisy @ (1, -1 if ask == "change" else 1)).tolist()


def test_rows_of_two_releases_take_the_ends_at_a_quarter_of_the_level() -> None:
    one, other = groups(9, [2, 4], [30, 40], 5, 1), groups(9, [4, 7], [20, 50], 8, 1)
    a, b = (each.intervals(ALPHA / 4).set_index("x") for each in (one, other))
    hidden = [each.most_left_out(ALPHA / 4) for each in (one, other)]
    found = one.change_since(other, "x", alpha=ALPHA).set_index("x")
    assert found["lower"].tolist() == [
        a["lower"][2] - hidden[1],
        a["lower"][4] - b["upper"][4],
        0 - b["upper"][7],
    ]
    assert found["upper"].tolist() == [
        a["upper"][2],
        a["upper"][4] - b["lower"][4],
        hidden[0] - b["lower"][7],
    ]
    # Without an upper end of the denominator, a ratio has a lower end, but no upper one.
    ratio = one.per(other, alpha=ALPHA).set_index("x")
    assert ratio["lower"][2] == pytest.approx(a["lower"][2] / hidden[1])
    assert ratio["upper"].tolist()[0] == math.inf
    assert ratio["lower"][7] == 0
    # A group at the threshold may be empty, so there is no ratio by it.
    least = one.per(groups(9, [2, 4], [8, 50], 8, 1), alpha=ALPHA)
    assert least["estimate"].isna().tolist() == [True, False]


@pytest.mark.parametrize("true", [(0, 5), (9, 2), (6, 6)])
def test_answers_that_hold_together(true: tuple[int, int]) -> None:
    """Of two cells with the same counts, whose noises are independent."""
    noise, masses = outcomes((1,), Fraction(1, 2), (2,), 30)
    one, other = each_of(true, noise)
    (shown, first), (_, each) = (
        wrong(one.change_since(other, "x", alpha=level), true[0] - true[1], masses)
        for level in (ALPHA, ALPHA / 2)
    )
    alone, both = 2 * shown * (1 - shown), shown**2
    missed = 2 * first * (1 - shown) + 2 * each * shown - each**2
    assert missed <= float(ALPHA) * (alone + both)
    few = [groups(9, [2, 4], [30, 40], 5, 1), groups(9, [4, 7], [20, 50], 5, 1)]
    together = few[0].change_since(few[1], "x", alpha=ALPHA, simultaneous=True)
    assert together.equals(few[0].change_since(few[1], "x", alpha=ALPHA / 3))


@pytest.mark.parametrize("true", [(0, 3), (4, 4), (9, 6)])
def test_a_table_beside_groups_has_half_of_the_level(true: tuple[int, int]) -> None:
    noise, masses = outcomes((1,), Fraction(1, 2), (2,), 30)
    one = each_outcome(true[0], 5, Fraction(1, 2), noise[:, 0])
    table: Any = (
        Design({"x": range(len(noise))}).count(pd.DataFrame({"x": [0]})).release(epsilon="1/2")
    )
    table._values = true[1] + noise[:, 1]
    for found, sign in (
        (one.change_since(table, "x", alpha=ALPHA), 1),
        (table.change_since(one, "x", alpha=ALPHA), -1),
    ):
        assert found["x"].tolist() == one._picked.tolist()
        shown, missed = wrong(found, sign * (true[0] - true[1]), masses)
        assert missed <= float(ALPHA) * shown


# Shares of a total that is public, or has a row for the rest


@pytest.mark.parametrize("true", [(2, 3), (7, 4)])
def test_shares_and_totals_with_a_row_for_the_rest_hold(true: tuple[int, int]) -> None:
    """Over all noise of three counts, the third of them the row."""
    noise, masses = outcomes((1,), 2, (3,), 3)
    release = groups(3, [], [], 3, 2, rest=2)
    lost = 1 - masses.sum()
    shown, out, without = np.zeros(2), np.full(2, lost), lost
    for z, mass in zip(noise, masses, strict=True):
        noisy = np.array(true) + z[:2]
        here = noisy >= 3
        release._picked = np.flatnonzero(here)
        release._values = np.append(noisy[here], np.array(true)[~here].sum() + z[2])
        found = release.percent("x", alpha=ALPHA)
        for x, lower, upper in zip(found["x"], found["lower"], found["upper"], strict=True):
            shown[x] += mass
            out[x] += mass * (not lower - 1e-9 <= 100 * true[x] / sum(true) <= upper + 1e-9)
        [(_, lower, upper)] = release.total(alpha=ALPHA).itertuples(index=False)
        without += mass * (not lower <= sum(true) <= upper)
    assert (out <= float(ALPHA) * shown).all()
    assert without <= float(ALPHA)


def test_shares_of_a_public_total_and_rates_are_the_ends_of_counts() -> None:
    noisy = groups(9, [2, 4], [30, 40], 5, 1).with_totals(100)
    ends = noisy.intervals(alpha=ALPHA)
    for simultaneous in (False, True):
        ends = noisy.intervals(alpha=ALPHA, simultaneous=simultaneous)
        how = {"by": "x", "alpha": ALPHA, "simultaneous": simultaneous}
        counts, shares = noisy.total(**how), noisy.percent(**how)
        rates = noisy.rate({2: 50, 4: 200, 8: 1}, 100, **how)
        for name in ("lower", "upper"):
            assert counts[name].tolist() == ends[name].tolist()
            assert shares[name].tolist() == pytest.approx(ends[name].tolist())
            assert rates[name].tolist() == [ends[name][0] * 2, ends[name][1] / 2]
        assert counts["estimate"].tolist() == shares["percent"].tolist() == [30, 40]
    assert noisy.total().iloc[0].tolist() == [100] * 3
    assert noisy.left_out(alpha=ALPHA).equals(noisy.left_out(100, alpha=ALPHA))
    with pytest.raises(ValueError, match="population has no number for 4"):
        noisy.rate({2: 50}, by="x")
    # No count is above the total of all.
    assert groups(9, [2], [30], 5, 1).with_totals(31).total("x")["upper"].tolist() == [31]


def test_answers_of_great_counts_are_no_other_numbers() -> None:
    most, design = 2**63 - 1, Design({"w": ["a", "b"]})
    frame = pd.DataFrame({"w": ["a", "b"], "n": np.array([most, most])})
    one, other = (
        design.count(frame, counts="n").release(epsilon=100, at_least=9, rest=("-", "0.5"))
        for _ in range(2)
    )
    for by, each in (("w", most), ((), 2 * most)):
        found = one.plus(other, by, alpha=ALPHA)
        assert found["estimate"].tolist() == [2.0 * each] * len(found)
        assert (found["lower"] <= 2.0 * each).all()
        assert one.change_since(other, by, alpha=ALPHA)["estimate"].tolist() == [0] * len(found)


# Levels in another order, files, and what is refused


def test_levels_may_be_in_another_order() -> None:
    names = [f"p{x}" for x in range(5)]
    designs = [Design({"p": each, "q": [0, 1]}) for each in (names, names[::-1])]
    one, other = (
        design.count(pd.DataFrame({"p": ["p0"] * 90 + ["p3"] * n, "q": 1})).release(
            epsilon=50, at_least=20
        )
        for design, n in zip(designs, (70, 0), strict=True)
    )
    found = one.change_since(other, ("p", "q"), alpha=1e-9)
    assert found[["p", "q"]].to_numpy().tolist() == [["p0", 1], ["p3", 1]]
    assert found["lower"].tolist() == [0, 70 - 19]
    assert found["upper"].tolist() == [0, 70]
    back = other.change_since(one, ("p", "q"), alpha=1e-9)
    assert back["p"].tolist() == ["p3", "p0"]
    assert back["lower"].tolist() == [-70, 0]


#: A domain of each kind, of which a and b have records, and these levels.
DOMAINS: dict[str, tuple[Any, list[Any]]] = {
    "list": ({"w": ["a", "b", "c"]}, [("a",), ("b",)]),
    "words": ({"w": Words("abc", 9)}, [("a",), ("b",)]),
    "common words": ({"w": Words("abc", 9, common=["b"])}, [("a",), ("b",)]),
    "numbers": ({"w": range(2**62)}, [(5,), (2**61,)]),
    "words by a list": ({"w": Words("abc", 9), "k": [0, 1]}, [("a", 1), ("b", 0)]),
    "combinations": ({("w", "k"): [("b", 0), ("c", 2), ("a", 1)]}, [("b", 0), ("a", 1)]),
    "nothing": ({}, [()]),
}
#: What groups answer: by all columns, with another release, with one population for all rows.
ASKED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "change_since": lambda one, other, by: one.change_since(other, by, alpha=ALPHA),
    "per": lambda one, other, by: one.per(other, by, alpha=ALPHA),
    "percent": lambda one, _, by: one.percent(by, alpha=ALPHA),
    "plus": lambda one, other, by: one.plus(other, by, alpha=ALPHA),
    "rate": lambda one, _, by: one.rate([10, 10] if by else 10, by=by, alpha=ALPHA),
    "total": lambda one, _, by: one.total(by, alpha=ALPHA),
    "intervals": lambda one, _, __: one.intervals(alpha=ALPHA),
    "largest": lambda one, _, __: one.largest(9, alpha=ALPHA),
    "left_out": lambda one, _, __: one.left_out(alpha=ALPHA),
    "most_left_out": lambda one, _, __: one.most_left_out(alpha=ALPHA),
}


def test_the_list_of_answers_is_that_of_groups() -> None:
    facts = {"save", "plot", "to_dict", "privacy_loss", "with_complete", "with_totals"}
    calls = {x for x in dir(NoisyGroups) if not x.startswith("_")}
    calls = {x for x in calls if callable(getattr(NoisyGroups, x))}
    assert ASKED.keys() == calls - facts


@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize("asked", ASKED)
def test_every_domain_has_every_answer(kind: str, asked: str) -> None:
    levels, known = DOMAINS[kind]
    design = Design(levels)
    columns = [*design.levels]
    frames = (
        pd.DataFrame(known * n, columns=columns, index=range(n * len(known))) for n in (90, 60)
    )
    one, other = (
        design.count(frame.assign(n=1)).release(epsilon=100, at_least=20) for frame in frames
    )
    one, other = one.with_totals(90 * len(known)), other.with_totals(60 * len(known))
    found = ASKED[asked](one, other, tuple(columns))
    if asked == "most_left_out":
        assert found == 19
    elif asked == "left_out":
        assert found.iloc[0].tolist() == [0, 0]
    else:
        points = {"change_since": 30, "per": 1.5, "percent": 100 / len(known), "plus": 150}
        points["rate"] = 900_000
        value = points.get(asked, 90)
        assert len(found) == len(known)
        assert (found["lower"] <= value).all()
        assert (found["upper"] >= value).all()
        assert sorted(map(tuple, found[columns].to_numpy().tolist())) == sorted(known)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_keep_a_public_total(ending: str, tmp_path: Path) -> None:
    for design in (Design({"w": ["a", "b"]}), Design({"w": Words("ab", 9)})):
        path = tmp_path / f"{design.cells}.{ending}"
        noisy = design.count(pd.DataFrame({"w": ["a"] * 90})).release(epsilon=1, at_least=30)
        known = noisy.with_totals(95)
        known.save(path)
        read = geomdp.read(path)
        assert isinstance(read, NoisyGroups)
        assert read.percent("w").equals(known.percent("w"))
        assert read.total()["upper"].tolist() == [95]


def test_a_page_states_a_public_total_and_a_file_with_other_totals_is_refused(
    tmp_path: Path,
) -> None:
    table = Design({"w": ["a", "b"]}).count(pd.DataFrame({"w": ["a"] * 90}))
    known = table.release(epsilon=1, at_least=30).with_totals(95)
    known.save(tmp_path / "x.html")
    stated = "The total, 95 with the rows that are not shown, is public"
    assert stated in (tmp_path / "x.html").read_text()
    known.save(tmp_path / "x.csv")
    description = tmp_path / "x.csv.json"
    said = json.loads(description.read_text())
    [total] = said["geomdp"]["totals"]
    assert total == {"depths": [0], "counts": [95]}
    for others in (
        [total, total],
        [{"depths": [1], "counts": [95, 0]}],
        [{"depths": [1], "counts": [95]}],
        [{"depths": [0], "counts": [95, 0]}],
        [{"depths": [0], "counts": [-1]}],
        [{"depths": [0, 0], "counts": [95]}],
    ):
        said["geomdp"]["totals"] = others
        description.write_text(json.dumps(said))
        with pytest.raises(ValueError, match="totals"):
            geomdp.read(tmp_path / "x.csv")


def test_a_mean_takes_a_table_of_sums_and_groups_of_counts() -> None:
    """And a sum of releases is a table, too."""
    design = Design({"shop": ["a", "b", "c"]})
    bills = pd.DataFrame({"shop": ["a"] * 900 + ["b"] * 500, "euros": [20] * 900 + [30] * 500})
    sums = design.sum(bills, "euros", bounds=(0, 40)).release(epsilon=10)
    counts = design.count(bills).release(epsilon=10, at_least=20)
    found = sums.per(counts, alpha=1e-6)
    assert found["shop"].tolist() == ["a", "b"]
    for lower, upper, true in zip(found["lower"], found["upper"], (20, 30), strict=True):
        assert true - 1 < lower <= true <= upper < true + 1
    both = design.count(bills).release(epsilon=10).plus(design.count(bills).release(epsilon=10))
    change = both.change_since(counts, "shop", alpha=1e-6)
    assert change["shop"].tolist() == ["a", "b"]
    assert (change["lower"] <= [900, 500]).all()
    assert (change["upper"] >= [900, 500]).all()


def test_what_groups_do_not_answer_is_refused_by_name() -> None:
    design = Design({"p": ["a", "b"], "q": [0, 1]})
    table = design.count(pd.DataFrame({"p": ["a"] * 90, "q": 1}))
    one, other, whole = (table.release(epsilon=1, at_least=x) for x in (20, 30, None))
    by = ("p", "q")
    for name in ("estimates", "ratio", "difference", "sum", "mean", "quantile", "combine"):
        with pytest.raises(AttributeError, match=f"reached a threshold have no {name}"):
            getattr(one, name)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: whole.combine(one), "other is a release of groups that reached a threshold"),
        (lambda: one.total("p"), r"by = 'p' is not accepted .* \('p', 'q'\), or \(\)"),
        (lambda: one.change_since(other, "q"), "by = 'q' is not accepted"),
        (one.total, "groups alone have no total"),
        (lambda: one.percent(by), "groups alone have no total"),
        (lambda: one.change_since(other), "groups alone have no total"),
        (lambda: one.change_since(one, by), "earlier is this release"),
        (lambda: one.with_totals(9).with_totals(9), "totals of these columns are there already"),
        (lambda: one.with_totals(pd.DataFrame({"q": [0, 1], "n": 9})), "totals by columns are not"),
        (
            lambda: (
                Design({"p": ["a", "b"]}, complete=True)
                .count(pd.DataFrame({"p": ["a"]}))
                .release(epsilon=1)
                .change_since(one.with_complete(), "p")
            ),
            r"earlier has the columns \['p', 'q'\]",
        ),
    ]
    for ask, message in refused:
        with pytest.raises(ValueError, match=message):
            ask()
    with pytest.raises(KeyError, match="by = 'z' is no column"):
        one.total("z")
    with pytest.raises(TypeError, match="total is not given"):
        one.left_out()
