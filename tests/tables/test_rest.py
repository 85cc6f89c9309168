"""A row for the groups that a threshold left out: its sum, interval, loss, files and refusals."""

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
from exact import stated
from geomdp import GeometricMechanism, accounting, accuracy
from geomdp._ground import identity
from geomdp._numerics import scatter
from geomdp.tables import Design, Words
from geomdp.tables._facts import layout
from geomdp.tables._release import steps
from geomdp.tables._results import rest as _rest
from geomdp.tables._results.rest import Rest, ends_of
from restated import restate
from test_answers import outcomes

PAGES = {"page": ["home", "help", "blog"], "hour": range(24)}
VISITS = pd.DataFrame({"page": ["home"] * 900 + ["help"] * 70, "hour": [7] * 900 + [23] * 70})
OTHERS = {"page": "others", "hour": 99}


def visits(**more: Any) -> Any:
    given: Any = {"epsilon": 2, "at_least": 100, "rest": (OTHERS, "0.1")} | more
    return Design(PAGES).count(VISITS).release(**given)


# The sum, and who is in it


class Shifts(GeometricMechanism):
    """Instead of noise, it adds numbers that are known, and sees the counts."""

    def __init__(self, *shifts: int) -> None:
        super().__init__(1)
        self.shifts, self.seen = shifts, []

    def release(  # type: ignore[override]
        self, counts: Any, *, out: Any = None, threads: Any = None
    ) -> Any:
        self.seen.append(counts.tolist())
        return np.add(counts, self.shifts[: counts.size], out=out)


def no_points(each: scatter.Class) -> Any:
    return np.zeros(0, np.int64), np.zeros((0, each.words), np.uint64)


@pytest.mark.parametrize("most", [0, 3, 2**62])
def test_the_row_sums_the_cells_that_have_no_row(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        counts = rng.integers(0, most + 1, 7) * rng.integers(0, 2, 7)
        occupied, shifts = np.flatnonzero(counts), rng.integers(-9, 9, 7)
        own = Shifts(11)
        new = identity.Identity(identity.fresh())
        release = steps.Release(
            *(Design(range(7)), {(0,): GeometricMechanism(1)}, None, 3, None, new),  # type: ignore[arg-type]
            Rest((99,), own),  # type: ignore[arg-type]
        )
        counts = counts // 8
        noisy = np.where((counts > 0) & (counts + shifts >= 3), counts + shifts, 0)
        monkeypatch.setattr(scatter.Plan, "reach", lambda *_, noisy=noisy[counts > 0], **__: noisy)
        monkeypatch.setattr(scatter.Plan, "points", lambda plan: [no_points(*plan.classes)])
        drawn = steps.draw(release, (occupied, counts[occupied]))
        found: Any = steps.made(release, None, drawn, new)
        shown = noisy > 0
        assert own.seen == [[counts[~shown].sum()]]
        assert next(iter(found._levels().values())).listed() == [*np.flatnonzero(shown), 99]
        assert found._values.tolist() == [*(counts + shifts)[shown], counts[~shown].sum() + 11]
        assert found.counts.tolist() == (counts + shifts)[shown].tolist()
        assert found.rest == found._values[-1]


def test_sums_beyond_int64_stay_at_its_limit() -> None:
    cells = np.arange(3), np.array([2**62] * 3)
    assert _rest.summed(cells, np.array([], np.int64)).tolist() == [2**63 - 1]
    assert _rest.summed(cells, np.array([1, 2])).tolist() == [2**62]
    assert _rest.summed((np.zeros(0, np.int64),) * 2, np.array([0])).tolist() == [0]


def test_a_row_is_there_whether_or_not_a_group_is_left_out(tmp_path: Path) -> None:
    """Nothing but the rows themselves says how many were."""
    stated = []
    for at_least in (1, 10**9):
        release = (
            Design(["a"])
            .count(pd.Series(["a"] * 500))
            .release(
                epsilon=5, at_least=at_least, rest=("b", "0.5"), save=tmp_path / f"{at_least}.csv"
            )
        )
        assert list(release.to_dict())[-1] == "b"
        facts = json.loads((tmp_path / f"{at_least}.csv.json").read_text())["geomdp"]
        # The plan of the groups has their threshold.
        stated.append({**facts, "id": None, "at_least": None, "mechanisms": None})
        lower, upper = release.intervals(0.05)[["lower", "upper"]].to_numpy()[-1]
        # As wide for none as for many.
        reach = GeometricMechanism("5/2").accuracy(0.05)
        count = max(release.rest, 0)
        assert (max(count - reach, 0), count + reach) == (lower, upper)
    assert stated[0] == stated[1]


# Coverage, over all noise


def row(design: Design, rate: Any) -> Rest:
    return Rest(("x",), GeometricMechanism(stated(rate)))


def each_choice(shown: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the places of the outcomes that show the same groups, for each choice of groups."""
    choices = np.unique(shown, axis=0)
    return ((shown == each).all(axis=1) for each in choices)


@pytest.mark.parametrize("true", [(3, 3, 3), (2, 3, 4), (0, 0, 0), (0, 3, 9), (1, 1, 2)])
@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(3, 10)])
def test_intervals_hold_whichever_groups_are_left_out(true: Any, alpha: Fraction) -> None:
    threshold, own = 3, Fraction(1, 2)
    rest, free = row(Design(["a", "b", "c"]), own), GeometricMechanism(1)
    noise, masses = outcomes((1,), 1, (3,), 14)
    far, of_rest = outcomes((1,), own, (1,), 60)
    shown = np.array(true) + noise >= threshold
    left = np.where(shown, 0, true).sum(axis=1)
    missed = np.zeros(len(noise))
    for value in np.unique(left).tolist():
        low, high = ends_of(rest.mechanism, value + far[:, 0], None, alpha, (0, math.inf))
        out = (low > value) | (value > high)
        missed[left == value] = of_rest[out].sum()
    # A total without noise minus the groups shown, by the usual interval of their sum.
    reaches = np.array([math.inf, *(accuracy.sum_accuracy(free, k, alpha) for k in (1, 2, 3))])
    naive = np.abs(np.where(shown, noise, 0).sum(axis=1)) > reaches[shown.sum(axis=1)]
    for same in each_choice(shown):
        assert masses[same] @ missed[same] <= float(alpha) * masses[same].sum()
    if true == (0, 0, 0):
        # Selection makes the difference from a total miss, given that groups are shown.
        all_of_them = shown.all(axis=1)
        assert masses[all_of_them & naive].sum() > float(alpha) * masses[all_of_them].sum()
        assert masses @ missed > 0


@pytest.mark.parametrize("true", [(3, 3, 3), (2, 3, 4), (0, 0, 0), (0, 3, 9), (12, 30, 1)])
@pytest.mark.parametrize("rounded", [None, 5])
def test_sums_of_the_groups_shown_hold_given_which_are_shown(true: Any, rounded: Any) -> None:
    """By noise alone, groups near the threshold are much higher than their true counts."""
    threshold, alpha = 3, Fraction(1, 4)
    release = Design(["a", "b", "c"]).count(pd.Series(["a"])).release(epsilon=1, at_least=threshold)
    noise, masses = outcomes((1,), 1, (3,), 12)
    noisy = np.array(true) + noise
    shown = noisy >= threshold
    # Outcomes with the same counts, in any order, have the same interval.
    ordered = np.sort(np.where(shown, noisy, 0), axis=1)
    found, place = np.unique(ordered, axis=0, return_inverse=True)
    ends = []
    for each in found:
        counts = each[each > 0]
        release._picked, release._values = np.arange(len(counts)), counts
        release._rounded = None
        ends.append(release._to_multiples(rounded)._shown_sum(alpha))
    low, high = np.array(ends, float)[place.reshape(-1)].T
    total = np.where(shown, true, 0).sum(axis=1)
    missed = (total < low) | (high < total)
    for same in each_choice(shown):
        assert masses[same & missed].sum() <= float(alpha) * masses[same].sum() + 1e-4


def test_what_was_left_out_follows_from_a_total() -> None:
    pages = pd.DataFrame({"page": ["home"] * 900 + ["help"] * 70 + ["blog"] * 12})
    design = Design({"page": ["home", "help", "blog", "shop"]})
    table = design.count(pages)
    release, other = table.release(epsilon=1, at_least=40), table.release(epsilon=1)
    alpha = Fraction(1, 10**7)  # three intervals
    for total in (982, other, other._to_multiples(10)):
        low, high = release.left_out(total, alpha=alpha).iloc[0].tolist()
        assert 0 <= low <= 12 <= high <= 250
    n = int(release.counts.sum())
    level = alpha / 2
    reach = accuracy.sum_accuracy(GeometricMechanism(1), 2, level)
    low = int(other.total(alpha=level)["lower"][0]) - n - reach
    assert release.left_out(other, alpha=alpha)["lower"].tolist() == [max(low, 0)]
    # No total below the noisy counts makes it certain that nothing was left out.
    for least in (0, n - 1):
        assert release.left_out(least, alpha=alpha).iloc[0].tolist() == [
            0,
            n - release._shown_sum(alpha)[0],
        ]
    limited = Design(PAGES, individual="who", l0=1)
    of_people = limited.count(VISITS.assign(who=1)).release(epsilon=1)
    away = Design({"page": ["home", "away"]}).count(pages).release(epsilon=1)
    for bad, message in [
        (-1, "total = -1"),
        (1.5, "total = 1.5"),
        (of_people, "total has unit = 'who', not 'record' and individual = 'who'"),
        (away, "total has other levels of 'page', and so counts other records"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            release.left_out(bad, alpha=0.05)  # type: ignore[arg-type]
    other.id = release.id
    with pytest.raises(ValueError, match="total is this release, or of the same stream"):
        release.left_out(other, alpha=0.05)


@pytest.mark.parametrize("rounded", [None, 5, 10])
def test_the_interval_of_a_rounded_row_is_wider_by_half_a_step(rounded: Any) -> None:
    noise, counts, level = row(Design(["a"]), 1).mechanism, np.array([50, -50]), Fraction(1, 20)
    reach = noise.accuracy(0.05) + (rounded or 0) // 2
    lower, upper = ends_of(noise, counts, rounded, level, (0, math.inf))
    assert (lower.tolist(), upper.tolist()) == ([50 - reach, 0], [50 + reach, reach])
    # A sum of values of either sign may be below 0.
    lower, upper = ends_of(noise, counts, rounded, level, (-math.inf, math.inf))
    assert (lower.tolist(), upper.tolist()) == ([50 - reach, -50 - reach], [50 + reach, reach - 50])


def test_all_at_once_hold_with_the_row() -> None:
    release, alpha = visits(), Fraction(1, 10)
    n = len(release.frame)
    each = 1 - (1 - float(alpha)) ** (1 / n)
    found = release.intervals(alpha, simultaneous=True).iloc[-1]
    reach = GeometricMechanism("0.2").accuracy(each)
    assert abs((found["upper"] - found["count"]) - reach) <= 1
    assert len(release.largest(5)) == n - 1
    assert "others" not in release.largest(5, alpha=0.1)["page"].tolist()


# Privacy


@pytest.mark.parametrize("neighbours", ["add-remove", "change"])
@pytest.mark.parametrize("limits", [{"l0": 1}, {"l0": 2, "linf": 2}, {"l0": 3}, {"l1": 2}])
def test_one_individual_changes_no_sum_of_cells_by_more(neighbours: Any, limits: Any) -> None:
    design = Design(["a", "b", "c"], individual="who", neighbours=neighbours, **limits)
    most = limits.get("l1", limits.get("linf", 1))
    own = [
        each
        for each in itertools.product(range(most + 1), repeat=3)
        if ("l1" in limits and sum(each) <= most)
        or ("l0" in limits and sum(x > 0 for x in each) <= limits["l0"])
    ]
    pairs = itertools.product(own, own if neighbours == "change" else [(0, 0, 0)])
    changes = [
        abs(sum(one[x] - other[x] for x in chosen))
        for one, other in pairs
        for size in range(4)
        for chosen in itertools.combinations(range(3), size)
    ]
    assert max(changes) == layout.change_of_sum(design)


@pytest.mark.parametrize("counts", [((3, 2), (2, 2)), ((0, 0), (1, 1)), ((2, 5), (3, 4))])
def test_the_loss_is_the_sum_over_all_outcomes(counts: Any) -> None:
    """Groups, which are chosen by their noise, and then the rest, by exact probabilities."""
    threshold, s, r = 3, 0.4, 0.25
    change = sum(abs(a - b) for a, b in zip(*counts, strict=True))
    of_rest = max(abs(sum(a - b for a, b in zip(*counts, strict=True))), change)

    def log_pmf(rate: float, z: Any) -> float:
        return math.log(math.tanh(rate / 2)) - rate * abs(z)

    def hidden(c: int) -> float:
        # P(c + Z < threshold)
        q, d = math.exp(-s), threshold - c
        return math.log(q ** (1 - d) / (1 + q) if d <= 0 else 1 - q**d / (1 + q))

    worst = 0.0
    values = [None, *range(threshold, threshold + 12)]
    for shown in itertools.product(values, repeat=2):
        logs = []
        for true in counts:
            log = sum(
                hidden(c) if n is None else log_pmf(s, n - c)
                for c, n in zip(true, shown, strict=True)
            )
            left = sum(c for c, n in zip(true, shown, strict=True) if n is None)
            logs.append((log, left))
        for v in range(-15, 25):
            one, other = (log + log_pmf(r, v - left) for log, left in logs)
            worst = max(worst, abs(one - other))
    assert worst <= s * change + r * of_rest + 1e-12


def test_a_threshold_is_planned_with_the_epsilon_that_the_row_leaves() -> None:
    """One planned without the row let 17,000 spurious words appear."""
    words, row = Design({"word": Words("abcdefghijklmnopqrstuvwxyz", 20)}), ("-", "0.1")
    groups = words.count(pd.DataFrame({"word": ["x"]})).release(epsilon=1, at_least=99, rest=row)
    [noise] = groups.mechanisms.values()
    for rest, epsilon in ((row, noise.epsilon), (None, 1)):
        least = words.threshold(1, rest=rest)
        assert least == words.threshold(epsilon)
        assert words.spurious(1, least, rest=rest) == words.spurious(epsilon, least) <= 1
        assert words.missed(70, 1, least, rest=rest) == words.missed(70, epsilon, least)
    assert words.spurious(1, words.threshold(1), rest=row) > 500
    with pytest.raises(ValueError, match="rest of 'word' is null"):
        words.threshold(1, rest=(None, "0.1"))


def test_the_row_has_its_part_of_epsilon_and_is_booked() -> None:
    for design in (Design(PAGES), Design(PAGES, individual="who", l0=3, linf=2)):
        data = VISITS.assign(who=range(len(VISITS)))
        budget = accounting.Budget(2)
        release = design.count(data).release(
            epsilon=2, at_least=100, rest=(OTHERS, "0.1"), budget=budget
        )
        assert release.epsilon == 2
        assert [loss for _, loss in budget.spent] == [2]
        most = layout.change_of_sum(design)
        assert release._rest.mechanism.rate == Fraction(1, 5) / most
        [groups] = release.mechanisms.values()
        assert groups.rate == Fraction(9, 5) / design.sensitivity
    # By rho, the row is one more noisy count.
    with_row, without = (accounting.Budget(rho=9) for _ in range(2))
    Design(["a"]).count(pd.Series(["a"])).release(
        epsilon=1, at_least=5, rest=("b", "0.5"), budget=with_row
    )
    Design(["a"]).count(pd.Series(["a"])).release(epsilon="0.5", at_least=5, budget=without)
    assert with_row.remaining < without.remaining


# Files


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_has_the_row_last_and_answers_by_it(ending: str, tmp_path: Path) -> None:
    release = visits(save=tmp_path / f"a.{ending}")
    found = geomdp.read(tmp_path / f"a.{ending}")
    assert list(found.to_dict()) == [("home", 7), ("others", 99)]
    assert found.to_dict() == release.to_dict()
    assert found.rest == release.rest
    assert found.epsilon == 2
    assert found.intervals(0.05).equals(release.intervals(0.05))
    assert "and a row for the rest" in repr(found)
    found.save(tmp_path / f"b.{ending}", certificate=True, rounded=5)
    assert geomdp.read(tmp_path / f"b.{ending}").rest % 5 == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: rows[:-1],
        lambda rows: rows[::-1],
        lambda rows: [*rows, rows[-1]],
        lambda rows: [*rows[:-1], ["others", "7", "5"]],
        lambda rows: [*rows[:-1], ["home", "99", "5"]],
        lambda rows: [["home", "99", "500"], rows[-1]],
    ],
)
def test_other_rows_are_refused(damage: Any, tmp_path: Path) -> None:
    visits(save=tmp_path / "a.csv")
    header, *rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    text = "\r\n".join(map(",".join, [header, *damage(rows)])) + "\r\n"
    (tmp_path / "a.csv").write_bytes(text.encode())
    restate(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="other rows than its description"):
        geomdp.read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "change",
    [
        lambda rest: None,
        lambda rest: rest | {"labels": ["others"]},
        lambda rest: rest | {"labels": ["home", 99]},
        lambda rest: rest | {"labels": ["others", "99"]},
        lambda rest: rest | {"labels": [None, 99]},
        lambda rest: rest | {"rate": "1/10"},
        lambda rest: rest | {"bounds": [0, 9]},
        lambda rest: {},
        lambda rest: [],
    ],
)
def test_other_facts_are_refused(change: Any, tmp_path: Path) -> None:
    visits(save=tmp_path / "a.csv")
    rest = json.loads((tmp_path / "a.csv.json").read_text())["geomdp"]["rest"]
    restate(tmp_path / "a.csv", rest=change(rest))
    with pytest.raises(ValueError, match=r"^a\.csv cannot be read"):
        geomdp.read(tmp_path / "a.csv")
    Design(["a"]).count(pd.Series(["a"])).release(epsilon=1, save=tmp_path / "b.csv")
    restate(tmp_path / "b.csv", rest=rest)
    with pytest.raises(ValueError, match="a row for the rest, and no threshold"):
        geomdp.read(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"at_least": None}, TypeError, "rest is for at_least"),
        (
            {"epsilon": None, "mechanism": GeometricMechanism(1)},
            TypeError,
            "rest takes a share of epsilon",
        ),
        ({"rest": "others"}, TypeError, "rest = 'others' has type str: give a pair"),
        ({"rest": ("others", 0)}, ValueError, "rest has a share"),
        ({"rest": ("others", 1)}, ValueError, "rest has a share"),
        ({"rest": ("others", -0.5)}, ValueError, "rest has a share"),
        ({"rest": ("others", "x")}, ValueError, "rest has a share"),
        ({"rest": ("others", 0.1)}, ValueError, "levels of 'hour' with the label of rest are not"),
        ({"rest": ({"page": "others"}, 0.1)}, ValueError, "rest has other columns"),
        ({"rest": (OTHERS | {"day": 1}, 0.1)}, ValueError, "rest has other columns"),
        ({"rest": (OTHERS | {"page": "home"}, 0.1)}, ValueError, "rest has 'home', which is a"),
        ({"rest": (OTHERS | {"hour": 23}, 0.1)}, ValueError, "rest has 23, which is a level"),
        ({"rest": (OTHERS | {"page": None}, 0.1)}, ValueError, "rest of 'page' is null"),
        ({"rest": (OTHERS | {"page": "\ud800"}, 0.1)}, ValueError, "label of rest are not acc"),
    ],
)
def test_bad_rows_are_refused_before_anything_is_paid(
    given: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    budget = accounting.Budget(5)
    with pytest.raises(error, match=message):
        visits(budget=budget, save=tmp_path / "a.csv", **given)
    assert (budget.spent, list(tmp_path.iterdir())) == ([], [])
