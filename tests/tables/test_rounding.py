"""Counts published to multiples of a number: the rule, the widths, coverage, and refusals."""

import itertools
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting, accuracy
from geomdp.tables import Design
from geomdp.tables._facts import layout, rounding
from geomdp.tables._facts.axes import Axis
from geomdp.tables._math.workload import Workload
from published_kinds import DESIGNS, PEOPLE, RELEASED
from restated import restate
from test_answers import LISTS, Table, missed, outcomes, small
from test_ends import QUESTIONS, SHAPES, table

LIMITS = np.iinfo(np.int64)
STEPS = [2, 3, 4, 5, 7, 10, 100, 2**31]


def moved(of: Any, step: Any) -> Any:
    """Return a table of a test with its noisy counts rounded."""
    of._values, of._rounded = rounding.nearest(of._values, step), step
    return of


# The rule


@pytest.mark.parametrize("step", STEPS)
def test_the_nearest_multiple_or_the_even_one_of_two(step: int) -> None:
    edges = [LIMITS.min, LIMITS.max, *(LIMITS.min + n for n in (1, 2, 5, step, step + 1))]
    edges += [LIMITS.max - n for n in (1, 2, 5, step, step + 1)]
    counts = [*range(-60, 61), *edges, *(n * step + step // 2 for n in range(-5, 5))]
    found = rounding.nearest(np.array(counts), step).tolist()
    for count, each in zip(counts, found, strict=True):
        # Python rounds fractions so, too.
        wanted = step * round(Fraction(count, step))
        if count in (LIMITS.min, LIMITS.max):
            wanted = count
        assert each == min(max(wanted, LIMITS.min), LIMITS.max)
        if abs(count) < 2**62:
            assert abs(each - count) <= rounding.half(step) <= step / 2
    assert rounding.is_nearest(np.array(found), step)
    assert not rounding.is_nearest(np.array([step, step + 1]), step)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 10, 2**31])
def test_counts_become_the_middle_of_their_group(size: int) -> None:
    """1 to 6 became 3 for middles of 6, 7 to 12 became 9; and 0 stays."""
    text = f"middle of {size}"
    assert rounding.step(text) == text
    counts = [*range(-60, 61), LIMITS.min, LIMITS.max, LIMITS.min + 1, LIMITS.max - 1]
    found = rounding.nearest(np.array(counts), text).tolist()
    for count, each in zip(counts, found, strict=True):
        wanted = -(-count // size) * size - size // 2 if count else 0
        if count in (LIMITS.min, LIMITS.max):
            wanted = count
        assert each == min(max(wanted, LIMITS.min), LIMITS.max)
        if abs(count) < 2**62:
            assert abs(each - count) <= rounding.half(text) == size // 2
    assert rounding.is_nearest(np.array(found[:-3]), text)
    assert rounding.nearest(np.array([1, 6, 7, 12, 13]), "middle of 6").tolist() == [3, 3, 9, 9, 15]
    assert not rounding.is_nearest(np.array([size // 2 + size, size // 2 + size - 1]), text)
    for bad in ("middle of 1", "middle of 0", "middle of 4294967296", "middle of 06", "middle of"):
        with pytest.raises((TypeError, ValueError), match=r"^rounded "):
            rounding.step(bad)


def test_a_file_states_its_middles(tmp_path: Path) -> None:
    release = (
        DESIGNS["flat"]
        .count(PEOPLE)
        .release(epsilon=1, save=tmp_path / "a.csv", rounded="middle of 6")
    )
    found = geomdp.read(tmp_path / "a.csv")
    assert {count % 6 for count in found.to_dict().values()} == {3}
    assert "rounded to the middles of groups of 6" in repr(found)
    plain, wider = release.intervals(0.05), found.intervals(0.05)
    assert (wider["upper"] - found.frame["count"] - 3 == plain["upper"] - plain["estimate"]).all()
    found.save(tmp_path / "a.html")
    assert "rounded to the middles of groups of 6, which" in (tmp_path / "a.html").read_text()
    with pytest.raises(
        ValueError, match=r"rounded = 6 is not accepted for counts that are the mid"
    ):
        found.save(tmp_path / "b.csv", rounded=6)


def test_a_count_that_noise_may_have_moved_to_a_limit_opens_its_interval() -> None:
    """Rounded to a multiple, it would be no limit, and its interval finite."""
    release = Design(["a", "b"]).count(pd.Series(["a"])).release(epsilon=1)
    release._values[:] = [LIMITS.max, 20]
    found = release._to_multiples(5).intervals(0.05)
    reach = GeometricMechanism(1).accuracy(0.05) + 2
    assert found["upper"].tolist() == [LIMITS.max, 20 + reach]
    assert found["lower"].tolist() == [LIMITS.max - reach, 20 - reach]


# Widths: what rounding adds is the most that it can move the estimate, exactly


def most_moved(of: Any, estimates: Any, off: int) -> np.ndarray:
    """Return the most that moves of each noisy count by so much change estimates, one by one."""
    start, found = estimates(of), np.zeros(len(estimates(of)))
    values = of._values.copy()
    for at in np.ndindex(values.shape):
        of._values = values.copy()
        of._values[at] += 1000
        of.__dict__.pop("_fitted", None)
        found += np.abs(estimates(of) - start) / 1000 * off
    of._values = values
    of.__dict__.pop("_fitted", None)
    return found


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "bounds"])
@pytest.mark.parametrize("many_kinds", [False, True])
@pytest.mark.parametrize("step", [5, 10])
def test_reaches_grow_by_the_weights_times_half_a_step(
    shape: str, many_kinds: bool, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for by in [("x", "y"), "y", ()]:
        plain, rounded = table(shape, Fraction(1, 2)), table(shape, Fraction(1, 2))
        rounded._rounded = step
        rows = plain._asked(geomdp.tables._answers.selection.rows_of(plain.design._axes, by), {})
        wider = rounded._asked(rows.rows, {})
        level = rows.level(0.05, 1)
        narrow = rows.reaches((1,), level)
        with monkeypatch.context() as patch:
            if many_kinds:
                patch.setattr(Workload, "most", 0)
            more = wider.reaches((1,), level) - narrow

        def points(of: Any, by: Any = by) -> Any:
            return of._totals(by, None, False)[1]["estimate"].reshape(-1)

        wanted = most_moved(plain, points, step // 2)
        assert np.allclose(more.reshape(-1), wanted, rtol=1e-6)
        if shape == "flat" and not many_kinds:
            assert (more.reshape(-1) == np.rint(wanted)).all()


def test_sums_of_cells_are_wider_by_half_a_step_for_each() -> None:
    release = DESIGNS["flat"].count(PEOPLE).release(epsilon=Fraction(1, 2))
    free = GeometricMechanism(Fraction(1, 2))
    for step, off in [(5, 2), (10, 5), (4, 2), (3, 1)]:
        rounded = release._to_multiples(step)
        for answer, n in [
            (rounded.intervals(0.05), 1),
            (rounded.total("area", alpha=0.05), 2),
            (rounded.total(alpha=0.05), 6),
            (rounded.difference({"area": "A"}, {"area": "B"}, alpha=0.05), 4),
        ]:
            reach = accuracy.sum_accuracy(free, n, 0.05) + n * off
            assert set(answer["upper"] - answer["estimate"]) == {reach}
        # A cell of both selections has no part in their difference.
        same = rounded.difference({"area": ["A", "B"]}, {"area": "B"}, alpha=0.05)
        reach = accuracy.sum_accuracy(free, 2, 0.05) + 2 * off
        assert (same["upper"] - same["estimate"]).tolist() == [reach]
        weighted = rounded.sum("area", values={"A": 3, "B": -1}, alpha=0.05)
        plain = release.sum("area", values={"A": 3, "B": -1}, alpha=0.05)
        wider = [each["upper"][0] - each["estimate"][0] for each in (plain, weighted)]
        assert wider[1] - wider[0] == (3 * 2 + 2) * off


# Coverage, over all noise


@pytest.mark.parametrize("step", [2, 5, 10, "middle of 6"])
@pytest.mark.parametrize(("column", "true", "epsilon", "most"), LISTS)
def test_intervals_of_rounded_counts_hold_over_all_noise(
    column: Any, true: Any, epsilon: Any, most: int, step: Any
) -> None:
    found, masses = small(column, true, epsilon, most)
    rounded, values, n = moved(found, step), np.array(column.levels), sum(true)
    first, alpha = column.levels[0], 0.1
    by, x = "outcome", "x"
    answers = [
        (rounded.total(by, alpha=alpha), n),
        (rounded.sum(x, by, alpha=alpha), values @ true),
        (rounded.mean(x, by, alpha=alpha), values @ true / n),
        (rounded.ratio({x: first}, {}, by, alpha=alpha), true[0] / n),
        (rounded.difference({x: first}, {}, by, alpha=alpha), true[0] - n),
        (rounded.with_totals(n * len(masses)).total(by, alpha=alpha), n),
    ]
    for answer, value in answers:
        assert missed(answer, value, masses) <= alpha


def test_without_the_step_intervals_do_not_hold() -> None:
    """The test above can fail: of counts that are rounded in one direction."""
    found, masses = small(Axis("x", [0, 1]), [7, 7], Fraction(3), 5)
    found._values = rounding.nearest(found._values, 5)
    assert missed(found.total("outcome", alpha=0.1), 14, masses) > 0.5
    found._rounded = 5
    del found.__dict__["_workload"]
    assert missed(found.total("outcome", alpha=0.1), 14, masses) <= 0.1


@pytest.mark.parametrize("epsilon", [Fraction(3, 2), 50])
def test_two_releases_of_other_steps_hold(epsilon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    noise, masses = outcomes((1,), epsilon, (4,), 4 if epsilon == Fraction(3, 2) else 1)
    true, column = ([12, 8], [17, 3]), Axis("x", [0, 1])
    one, other = (
        moved(
            Table(
                [Axis("outcome", range(len(noise))), column],
                np.broadcast_to(np.array(cells), (len(noise), 2)),
                epsilon,
                part,
            ),
            step,
        )
        for cells, part, step in zip(true, (noise[:, :2], noise[:, 2:]), (5, 10), strict=True)
    )
    for answer, value in [
        (one.change_since(other, "outcome", alpha=0.1), 0),
        (one.change_since(other, "outcome", percent=True, alpha=0.1), 0),
    ]:
        assert missed(answer, value, masses) <= 0.1
    same = Table(one.design._axes, one.true, epsilon, noise[:, :2])
    # Both have one design, which is none of a file.
    monkeypatch.setattr(layout, "united", lambda design, _: design)
    both = one.combine(same).intervals(alpha=0.1)
    assert missed(both.iloc[::2], 12, masses) <= 0.1


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_contain_what_any_rounding_may_hide(name: str) -> None:
    """Almost without noise, the interval contains the answer to every table that rounds so."""
    cells = np.array([[12, 8], [17, 23], [48, 31]])
    axes = (Axis("x", [1, 2, 5]), Axis("y", ["a", "b"]))

    def of(counts: Any) -> Any:
        made = Table(axes, counts, 4000)
        made.earlier = Table(axes, cells, 4000)
        return made

    rounded = moved(of(cells), 5)
    ask = QUESTIONS[name][0]
    found = ask(rounded, (), alpha=0.05)
    kept = "percent" if name == "percent" else "estimate"
    for moves in itertools.product((-2, 0, 2), repeat=4):
        counts = rounded._values.copy()
        counts.flat[:4] += np.array(moves)
        # The upper tail of a mean, a share or a quantile moves cells in both directions.
        counts.flat[4:] -= moves[0]
        point = ask(of(counts), ())[kept][0]
        assert found["lower"][0] - 1e-9 <= point <= found["upper"][0] + 1e-9


def test_bounds_open_where_rounding_may_hide_them() -> None:
    """Over all noise within the bounds, for every true count."""
    mechanism = GeometricMechanism(Fraction(1, 2), bounds=(0, 23))
    z, q = np.arange(-120, 121), np.exp(-0.5)
    of_noise = (1 - q) / (1 + q) * q ** np.abs(z)
    values = np.arange(24)
    axes = (Axis("outcome", values.tolist()), Axis("x", [0]))
    for true in range(24):
        masses = np.bincount(np.clip(true + z, 0, 23), of_noise)
        cells = np.full((values.size, 1), true)
        noise = values[:, None] - true
        of = moved(Table(axes, cells, mechanism.epsilon, noise, bounds=(0, 23)), 10)
        assert missed(of.total("outcome", alpha=0.1), true, masses) <= 0.1
        assert (of._values <= 23 + 5).all()


@pytest.mark.parametrize("step", [5, 10, "middle of 6"])
def test_intervals_of_rounded_groups_hold_given_that_they_appear(step: Any) -> None:
    threshold, rate = 12, 0.5
    published = np.arange(threshold, threshold + 150)
    design = Design(range(published.size))
    release = design.count(pd.Series([1])).release(epsilon=rate, at_least=threshold)
    release._picked, release._values = np.arange(published.size), published
    rounded = release._to_multiples(step)
    found = rounded.intervals(Fraction(1, 5))
    for true in range(60):
        masses = np.exp(-rate * np.abs(published - true))
        inside = (found["lower"] <= true) & (true <= found["upper"])
        assert masses[inside].sum() / masses.sum() >= 0.8 - 1e-12


# Files


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", [name for name in RELEASED if "rounded" not in name])
def test_a_file_states_its_step_and_answers_by_it(name: str, ending: str, tmp_path: Path) -> None:
    release, path = RELEASED[name], tmp_path / f"a.{ending}"
    if name == "top":
        with pytest.raises(ValueError, match=r"^rounded is not accepted for names alone"):
            release.save(path, rounded=5)
        assert not list(tmp_path.iterdir())
        return
    before = list(release.to_dict().values())
    release.save(path, rounded=5)
    assert list(release.to_dict().values()) == before
    found = geomdp.read(path)
    wanted = rounding.nearest(np.array(before), 5).tolist()
    assert list(found.to_dict().values()) == wanted
    assert json.loads((tmp_path / f"a.{ending}.json").read_text())["geomdp"]["rounded"] == 5
    assert found.epsilon == release.epsilon
    assert found.id == release.id
    assert "rounded to multiples of 5" in repr(found)
    again = pickle.loads(pickle.dumps(found))
    assert again._rounded == 5
    assert again.intervals(0.05).equals(release._to_multiples(5).intervals(0.05))
    # A further file keeps the step, and takes no other.
    found.save(tmp_path / f"b.{ending}")
    assert geomdp.read(tmp_path / f"b.{ending}")._rounded == 5
    with pytest.raises(ValueError, match="rounded = 10 is not accepted for counts that are mult"):
        found.save(tmp_path / f"c.{ending}", rounded=10)


def test_a_release_is_saved_rounded_and_refused_before_it_is_paid(tmp_path: Path) -> None:
    design, budget = DESIGNS["flat"], accounting.Budget(1)
    counted = design.count(PEOPLE)
    for bad, error in [(1, ValueError), (0, ValueError), (2**31 + 1, ValueError), (5.0, TypeError)]:
        with pytest.raises(error, match=r"^rounded "):
            counted.release(epsilon=1, budget=budget, save=tmp_path / "a.csv", rounded=bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^rounded is for save"):
        counted.release(epsilon=1, budget=budget, rounded=5)
    assert (budget.spent, list(tmp_path.iterdir())) == ([], [])
    release = counted.release(epsilon=1, save=tmp_path / "a.csv", rounded=10)
    assert release._rounded is None
    wanted = rounding.nearest(release.counts, 10)
    assert (geomdp.read(tmp_path / "a.csv").counts == wanted).all()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        *(("flat", {"rounded": bad}) for bad in (10, 1, 0, -5, 2.5, "5", True, [5], 10**30)),
        *(("flat", {"rounded": f"middle of {bad}"}) for bad in ("6", "1", "x", "-6")),
        ("top", {"rounded": 5}),
    ],
)
def test_files_that_state_another_step_are_refused(name: str, facts: Any, tmp_path: Path) -> None:
    release = RELEASED[name]
    if name == "flat":
        release = DESIGNS["flat"].count(PEOPLE).release(epsilon=1)
        release._values[0, 0] = 15
        release = release._to_multiples(5)
    release.save(tmp_path / "a.csv")
    restate(tmp_path / "a.csv", **facts)
    with pytest.raises(ValueError, match=r"^a\.csv cannot be read"):
        geomdp.read(tmp_path / "a.csv")
