"""Sums of the groups that a count has chosen: which are drawn, their intervals, loss and files."""

import copy
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting
from geomdp.tables import Design, NoisyGroups, Words
from geomdp.tables._publish.page.sentences import meaning
from geomdp.tables._results.rest import Rest
from restated import restate
from test_answers import outcomes
from test_picked import ALPHA, wrong

LETTERS = "aeiklmrtu"
PEOPLE = pd.DataFrame(
    {
        "who": range(1000),
        "word": ["tea"] * 600 + ["milk"] * 380 + ["rum"] * 20,
        "cups": [3, -1] * 500,
    }
)
WORDS = Design({"word": Words(LETTERS, 4)}, individual="who", l0=1)
PAIR = WORDS.sum_and_count(PEOPLE, "cups", bounds=(-2, 5))
#: Nearly without noise.
SURE: Any = {"epsilon": 400, "at_least": 50}
REST: Any = {"rest": ("-", "1/10")}


def made(
    size: int,
    cells: Any,
    counts: Any,
    values: Any,
    *,
    rates: Any = (1, Fraction(1, 2)),
    low: int = 0,
    rest: Any = None,
) -> tuple[Any, Any]:
    """Return sums and counts of groups of a column of this size, as a reader has them.

    The rates are those of the noise of counts and sums; of the rows for the rest, both are 1.
    """
    pair = Design({"x": range(size)}).sum_and_count(
        pd.DataFrame({"x": [0], "v": [0]}), "v", bounds=(low, 9)
    )
    noisy: Any = pair.release(epsilon=1, at_least=5, rest=rest and (-1, "1/2"))
    for each, rate, given in zip((noisy.counts, noisy.sums), rates, (counts, values), strict=True):
        each.mechanisms = {(0,): GeometricMechanism(rate)}
        each._picked, each._values = np.asarray(cells), np.asarray(given)
        if rest:
            each._rest = Rest((-1,), GeometricMechanism(1))
    return noisy.sums, noisy.counts


# What is drawn


@pytest.mark.parametrize("rest", [None, ("<rest>", "1/4")])
def test_the_groups_are_those_of_the_counts_and_have_their_sums(rest: Any) -> None:
    noisy = PAIR.release(**SURE, rest=rest)
    left = {} if rest is None else {"<rest>": 20}
    assert noisy.counts.to_dict() == {"milk": 380, "tea": 600} | left
    assert noisy.sums.to_dict() == {"milk": 380, "tea": 600} | left
    assert noisy.sums.at_least == noisy.counts.at_least == 50
    assert noisy.sums._chosen_by == noisy.counts.id != noisy.sums.id
    assert noisy.mean(alpha=None)["estimate"].tolist() == [1, 1]
    assert "in another table" in repr(noisy.sums)
    assert "in another table" not in repr(noisy.counts)


def test_empty_groups_that_appear_have_a_sum_of_noise_alone() -> None:
    design = Design({"word": range(10**6)})
    data = pd.DataFrame({"word": [3] * 900, "cups": 7})
    noisy = design.sum_and_count(data, "cups", bounds=(0, 9)).release(
        epsilon=100, share="99/100", at_least=4
    )
    found = noisy.sums.to_dict()
    assert len(found) > 100
    assert {word for word, value in found.items() if abs(value) > 40} == {3}
    assert abs(found[3] - 6300) < 40


@pytest.mark.parametrize("rest", [None, ("<rest>", "1/4")])
def test_no_group_may_reach_the_threshold(rest: Any, tmp_path: Path) -> None:
    paths = {"sums": tmp_path / "s.csv", "counts": tmp_path / "c.csv"}
    noisy = PAIR.release(epsilon=1, at_least=10**6, rest=rest, save=paths)
    assert len(noisy.sums.frame) == len(noisy.counts.frame) == (rest is not None)
    assert len(noisy.mean()) == 0
    assert geomdp.read(paths["sums"]).frame.equals(noisy.sums.frame)


def test_a_design_of_more_columns_and_people_have_sums_of_groups() -> None:
    design = Design({"word": Words(LETTERS, 4, common=["tea", "rum"]), "big": [True, False]})
    data = PEOPLE.assign(big=PEOPLE["who"] % 2 == 0)
    pair = design.sum_and_count(data, "cups", bounds=(-2, 5))
    noisy = pair.release(epsilon=400, at_least=(5, 50), people=5000)
    wanted = data.groupby(["word", "big"])["cups"].sum().to_dict()
    assert noisy.sums.to_dict() == wanted
    assert len(noisy.sums.per(noisy.counts)) == len(wanted) == 6


# The loss


def test_both_tables_have_their_parts_of_one_epsilon() -> None:
    for share in (Fraction(1, 2), Fraction(1, 5)):
        budget = accounting.Budget(epsilon=1)
        noisy = PAIR.release(
            epsilon=1, share=share, at_least=60, budget=budget, label="cups", **REST
        )
        assert budget.spent == [("cups", 1.0)]
        assert (noisy.epsilon, noisy.sums.epsilon) == (1, share)
        [of_sums], [of_counts] = (each.mechanisms.values() for each in noisy.values())
        assert of_sums.rate == share * Fraction(9, 10) / 5
        assert of_counts.rate == (1 - share) * Fraction(9, 10)
        assert noisy.sums._rest.mechanism.rate == share / 50
    # By rho, each table is a noisy count, and so is the row for the rest of each.
    whole = Design({"word": ["tea", "milk"]}).sum_and_count(PEOPLE, "cups", bounds=(-2, 5))
    left = []
    for pair, given in ((whole, {}), (PAIR, {"at_least": 60}), (PAIR, {"at_least": 60} | REST)):
        by_rho = accounting.Budget(rho=9)
        pair.release(epsilon=1, budget=by_rho, **given)
        left.append(by_rho.remaining)
    assert left[0] == left[1] < left[2]


@pytest.mark.parametrize("given", [{"at_least": 0}, {"at_least": (5, 9)}, {"rest": ("tea", "1/4")}])
def test_what_the_counts_refuse_is_refused_before_payment(given: Any, tmp_path: Path) -> None:
    budget = accounting.Budget(epsilon=1)
    paths = {"sums": tmp_path / "s.csv", "counts": tmp_path / "c.csv"}
    with pytest.raises(ValueError, match=r"at_least|rest"):
        PAIR.release(epsilon=1, budget=budget, save=paths, **({"at_least": 5} | given))
    assert not budget.spent
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["rest", "people"])
def test_what_is_for_groups_is_refused_without_a_threshold(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is for at_least"):
        Design({"word": ["tea"]}).sum_and_count(PEOPLE, "cups", bounds=(0, 9)).release(
            epsilon=1,
            **{name: ("-", "1/4") if name == "rest" else 5},  # type: ignore[arg-type]
        )


# Coverage, over all noise of counts and sums


@pytest.mark.parametrize("low", [0, -9])
@pytest.mark.parametrize(("count", "total"), [(0, 0), (3, 1), (6, 20), (9, 2), (40, 70)])
def test_sums_and_means_hold_given_that_a_group_appears(count: int, total: int, low: int) -> None:
    noise, masses = outcomes((1, 1), Fraction(1, 2), (1, 1), 30)
    noisy = np.array([count, total]) + noise
    shown = np.flatnonzero(noisy[:, 0] >= 5)
    of_sums, of_counts = made(
        len(noise), shown, *noisy[shown].T, rates=[Fraction(1, 2)] * 2, low=low
    )
    of_cells = of_sums.intervals(ALPHA)
    reach = GeometricMechanism(Fraction(1, 2)).accuracy(ALPHA)
    least = 0 if low == 0 else -math.inf
    assert (of_cells["lower"] == (of_cells["v"].clip(least) - reach).clip(least)).all()
    appears, missed = wrong(of_cells, total, masses)
    assert missed <= float(ALPHA) * appears
    if count:
        appears, missed = wrong(of_sums.per(of_counts, alpha=ALPHA), total / count, masses)
        assert missed <= float(ALPHA) * appears


def test_means_take_half_of_the_level_for_each() -> None:
    added, counts = made(9, [2, 4], [90, 70], [300, 800])
    one, other = (each.intervals(ALPHA / 2) for each in (added, counts))
    for found in (added.per(counts, alpha=ALPHA), added.per(counts, ("x",), alpha=ALPHA)):
        assert found["estimate"].tolist() == [300 / 90, 800 / 70]
        for side, end in (("lower", "upper"), ("upper", "lower")):
            assert np.allclose(found[side], one[side] / other[end], rtol=1e-15)
    together = added.per(counts, alpha=ALPHA, simultaneous=True)
    assert together.equals(added.per(counts, alpha=ALPHA / 2))
    # The counts of another release have chosen other rows.
    _, others = made(9, [2, 7], [90, 70], [300, 800])
    found = added.per(others, alpha=ALPHA).set_index("x")
    quarter = [each.intervals(ALPHA / 4).set_index("x") for each in (added, others)]
    assert found["lower"][2] == pytest.approx(quarter[0]["lower"][2] / quarter[1]["upper"][2])
    assert found["upper"][4] == math.inf
    assert math.isnan(found["estimate"][4])


def test_sums_of_two_releases_take_half_of_the_level_and_know_nothing_of_others() -> None:
    (one, _), (other, _) = (
        made(9, cells, [90, 70], values)
        for cells, values in (([2, 4], [300, 2**60 + 1]), ([4, 7], [400, 300]))
    )
    own, theirs = (each.intervals(ALPHA / 2).set_index("x") for each in (one, other))
    found = one.change_since(other, "x", alpha=ALPHA).set_index("x")
    assert found.index.tolist() == [2, 4, 7]
    assert found["lower"][2] == -math.inf
    assert found["upper"][2] == own["upper"][2]
    exact = int(own["lower"][4]) - int(theirs["upper"][4])
    assert exact * (1 - 1e-15) <= int(found["lower"][4]) <= exact
    assert math.isnan(found.iloc[0, 0])
    assert found["upper"][7] == math.inf
    added = one.plus(other, alpha=ALPHA).set_index("x")
    assert added["upper"].tolist()[::2] == [math.inf] * 2
    assert added["lower"][2] == own["lower"][2]


@pytest.mark.parametrize("low", [0, -9])
@pytest.mark.parametrize("true", [(0, 0), (9, 4), (1, 30)])
def test_totals_hold_with_the_row_for_the_rest(true: tuple[int, int], low: int) -> None:
    """The noises of two groups, one of them shown or not, and of the row."""
    noise, masses = outcomes((1, 1, 1), 1, (1, 1, 1), 5)
    values, missed = np.array([*true, 7]), 1 - masses.sum()
    added, _ = made(9, [1, 5], [50, 60, 8], values, rates=(1, 1), low=low, rest=True)
    for row, mass in zip(noise, masses.tolist(), strict=True):
        added._values = values + row
        lower, upper = added._whole(ALPHA).ends
        missed += mass * (not lower <= values.sum() <= upper)
    assert missed <= float(ALPHA)


def test_the_total_of_the_groups_shown_takes_the_noise_of_a_sum() -> None:
    counts, given = [50, 60, 70, 8], np.array([90, 80, 10, 20])
    added, _ = made(9, [1, 2, 5], counts, given, low=-9, rest=True)
    reach = geomdp.accuracy.sum_accuracy(GeometricMechanism(Fraction(1, 2)), 3, ALPHA / 2)
    reach += GeometricMechanism(1).accuracy(ALPHA / 2)
    assert added.total(alpha=ALPHA).iloc[0].tolist() == [200, 200 - reach, 200 + reach]
    below, _ = made(9, [1, 2, 5], counts, -given, rest=True)
    assert below.total(alpha=ALPHA).iloc[0].tolist() == [-200, 0, reach]


def test_rounded_sums_are_wider_by_half_a_step() -> None:
    added, _ = made(9, [1, 2], [50, 60, 8], [100, -40, 20], low=-9, rest=True)
    found, rounded = added.intervals(ALPHA), added._to_multiples(10).intervals(ALPHA)
    assert (rounded["lower"] == found["lower"] - 5).all()
    assert (rounded["upper"] == found["upper"] + 5).all()


def test_what_is_unknown_of_sums_is_refused_by_name() -> None:
    noisy = PAIR.release(**SURE)
    with pytest.raises(ValueError, match="have no most_left_out: ask the counts"):
        noisy.sums.most_left_out()
    with pytest.raises(ValueError, match="no sum of groups left out is known"):
        noisy.sums.left_out(1000)
    with pytest.raises(ValueError, match="groups alone have no total"):
        noisy.mean(())
    of_cups = WORDS.sum_and_count(PEOPLE, "cups", bounds=(0, 5)).release(**SURE)
    total, shown = 1500, sum(of_cups.sums.counts.tolist())
    [[lower, upper]] = of_cups.sums.left_out(total).to_numpy().tolist()
    assert 0 <= lower <= total - shown <= upper <= lower + 9


# Files


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_keep_who_chose_the_groups(ending: str, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.{ending}" for name in ("sums", "counts")}
    noisy = PAIR.release(epsilon=9, at_least=9, rest=("-", "1/4"), save=paths)
    read = {name: geomdp.read(path) for name, path in paths.items()}
    assert isinstance(read["sums"], NoisyGroups)
    assert read["sums"]._chosen_by == noisy.counts.id
    assert read["sums"].intervals().equals(noisy.sums.intervals())
    of_both = read["sums"].per(read["counts"], alpha=ALPHA)
    assert of_both["estimate"].equals(noisy.mean(alpha=ALPHA)["estimate"])
    kept = copy.copy(read["sums"])
    kept.save(paths["sums"], overwrite=True, certificate=True)
    assert geomdp.read(paths["sums"]).to_dict() == noisy.sums.to_dict()


@pytest.mark.parametrize(
    ("name", "facts", "why"),
    [
        ("sums", {"chosen_by": "x"}, "an id is not 32 hexadecimal digits"),
        ("sums", {"chosen_by": 5}, "its field 'chosen_by' has another form"),
        ("sums", {"chosen_by": "own"}, "replaces itself"),
        ("sums", {"at_least": None, "rest": None}, "groups of another, and no threshold"),
        ("sums", {"chosen_by": None}, "at_least is not accepted for sums of values that may be"),
        ("counts", {"chosen_by": 32 * "0"}, "counts of groups that another count chose"),
    ],
)
def test_a_forged_choice_is_refused(name: str, facts: Any, why: str, tmp_path: Path) -> None:
    paths = {each: tmp_path / f"{each}.csv" for each in ("sums", "counts")}
    noisy = PAIR.release(epsilon=9, at_least=9, rest=("-", "1/4"), save=paths)
    if facts.get("chosen_by") == "own":
        facts = {"chosen_by": noisy[name].id}
    restate(paths[name], **facts)
    with pytest.raises(ValueError, match=rf"^{name}\.csv cannot be read.*{why}"):
        geomdp.read(paths[name])


def test_a_page_says_which_counts_were_large() -> None:
    sentences = "in another table (id "
    noisy = PAIR.release(epsilon=9, at_least=9)
    said = noisy.sums._said(certificate=False)
    assert said.facts["chosen_by"] == noisy.counts.id
    told = " ".join(meaning(said.facts, said.answers()))
    assert f"{sentences}{noisy.counts.id}) is at least 9 are shown" in told
    of_counts = noisy.counts._said(certificate=False)
    assert sentences not in " ".join(meaning(of_counts.facts, of_counts.answers()))
