"""Tables at several precisions: what each tier says, what a ledger keeps, and what is refused."""

import html
import json
import os
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp
from exact import stated
from geomdp import GeometricMechanism, tables, testing
from geomdp._ground import parameters
from geomdp._noise import errors_of
from geomdp.accounting import Budget
from geomdp.keyed import ReleaseKey
from geomdp.tables import Design, NoisyTiers
from geomdp.tiers import TierPlan
from laws import step_law, times
from published_kinds import DESIGNS, PEOPLE

TIERS = {"public": "0.1", "researchers": "0.5", "office": 1}
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1))
SMALL = Design({"sick": ["yes", "no"]})
RECORDS = pd.DataFrame({"sick": ["no", "yes", "no"] * 300})
TABLES: dict[str, Callable[[], tables.Table]] = {
    **{name: (lambda design=design: design.count(PEOPLE)) for name, design in DESIGNS.items()},
    "chosen": lambda: Design(
        {"area": ["A", "B", "C"], "sex": ["f", "m"]}, tables={("area", "sex"): 3, "sex": 1}
    ).count(PEOPLE),
    "people": lambda: Design({"area": ["A", "B"]}, individual="age", l0=2, linf=3).count(PEOPLE),
    "signed": lambda: Design({"sex": ["f", "m"]}).sum(
        PEOPLE.assign(n=PEOPLE["age"] - 50), "n", bounds=(-50, 50)
    ),
}


def same(one: Any, other: Any) -> bool:
    """Whether two frames of pandas have the same contents, nulls included."""
    return bool(one.equals(other))


@pytest.mark.parametrize("name", TABLES)
def test_each_tier_is_a_table_of_its_own(name: str, tmp_path: Path) -> None:
    table, budget = TABLES[name](), Budget(epsilon=1)
    paths = {each: tmp_path / f"{each}.csv" for each in TIERS}
    tiers = table.release(tiers=TIERS, budget=budget, label="May", save=paths)
    assert isinstance(tiers, NoisyTiers)
    assert [*tiers] == [*TIERS]
    assert budget.spent == [("May", 1.0)]
    assert tiers.epsilon == tiers.finest.epsilon == 1
    plain = table.design
    for (key, noisy), epsilon in zip(tiers.items(), EPSILONS, strict=True):
        assert noisy.epsilon == epsilon
        assert noisy.id == tiers.id
        for block, each in plain.mechanisms_for(epsilon).items():
            own = noisy.mechanisms[block]
            assert (own.rate, own.sensitivity) == (each.rate, each.sensitivity)
            assert isinstance(own, TierPlan)
            assert own.epsilons == tuple(
                Fraction(plain.mechanisms_for(other)[block].epsilon) for other in EPSILONS
            )
        read = geomdp.read(paths[key])
        facts = json.loads((tmp_path / f"{key}.csv.json").read_text())["geomdp"]
        assert facts["tier"] == {"name": key, "epsilons": ["1/10", "1/2", "1"]}
        for other in (read, pickle.loads(pickle.dumps(noisy))):
            assert (other.id, other.epsilon) == (noisy.id, epsilon)
            assert other.mechanisms == noisy.mechanisms
            assert other.to_dict() == noisy.to_dict()
            one, two = noisy.intervals(alpha=0.05), other.intervals(alpha=0.05)
            assert [*map(str, one["lower"])] == [*map(str, two["lower"])]
        # A file of a file says the same.
        read.save(tmp_path / f"{key}-2.csv")
        again = json.loads((tmp_path / f"{key}-2.csv.json").read_text())["geomdp"]
        assert again == facts
    copied = pickle.loads(pickle.dumps(tiers))
    assert [each.to_dict() for each in copied.values()] == [x.to_dict() for x in tiers.values()]


def test_tiers_are_steps_from_the_finest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block is drawn once, at the finest epsilon, with all coarser ones of that block."""
    drawn, real = [], GeometricMechanism.tiers

    def seen(self: Any, counts: Any, epsilons: Any, **how: Any) -> Any:
        given = tuple(parameters.read(each).stated for each in epsilons)
        drawn.append((self.epsilon, given, counts.copy()))
        return real(self, counts, epsilons, **how)

    monkeypatch.setattr(GeometricMechanism, "tiers", seen)
    monkeypatch.setattr(GeometricMechanism, "release", lambda *_, **__: pytest.fail("it drew"))
    design = Design({"sick": ["yes", "no"]}, margins=("all", "0.2"))
    tiers = design.count(RECORDS).release(tiers=TIERS)
    (one, coarser, total), (two, below, cells) = drawn
    assert (one, coarser) == (Fraction(1, 5), (Fraction(1, 50), Fraction(1, 10)))
    assert (two, below) == (Fraction(4, 5), (Fraction(2, 25), Fraction(2, 5)))
    assert (total.tolist(), cells.tolist()) == ([900], [300, 600])
    assert all(tiers[name].frame["count"].size == 3 for name in tiers)


def test_a_coarser_tier_keeps_counts_of_the_finer_one() -> None:
    """A chance of 2**-100 and less: of 3000 cells each is kept with probability 0.9."""
    design = Design({"n": range(3000)})
    tiers = design.count(pd.DataFrame({"n": [1]})).release(tiers={"a": "0.95", "b": 1})
    kept = sum(np.array(tiers["a"].frame["count"]) == np.array(tiers["b"].frame["count"]))
    assert 2400 < kept < 3000


@pytest.mark.parametrize("alpha", [0.05, 0.5])
@pytest.mark.parametrize("r", [4, 9])
def test_intervals_of_a_tier_cover_by_its_own_law(r: int, alpha: float) -> None:
    """Exact, from the thresholds of the certificates; a cell for each noisy count."""
    design = Design({"n": range(r + 1)})
    tiers = design.count(pd.DataFrame({"n": [0]})).release(tiers={"a": 0.25, "b": 2}, bounds=(0, r))
    law: list[list[Fraction]] = []
    for name in ("b", "a"):
        noisy = tiers[name]
        [own] = noisy.mechanisms.values()
        tier = json.loads(own.certificate().to_json())["tiers"][1 if name == "b" else 0]
        law = times(law, step_law(tier)) if law else step_law(tier)
        noisy._values[...] = np.arange(r + 1)
        ends = noisy.intervals(alpha=alpha)
        for x, row in enumerate(law):
            missed = sum(
                p
                for p, low, high in zip(row, ends["lower"], ends["upper"], strict=True)
                if not low <= x <= high
            )
            assert missed <= stated(alpha)


def test_errors_are_those_of_the_tier() -> None:
    """The error of the sampled distribution is that of the tier, and not that of a release."""
    design = Design({"n": ["a", "b", "c"]}, margins="all")
    tiers = design.count(pd.DataFrame({"n": ["a"]})).release(tiers=TIERS)
    for noisy in tiers.values():
        lost = [
            Fraction(errors_of(each, np.int64).total_variation) * (3 if block[0] else 1)
            for block, each in noisy.mechanisms.items()
        ]
        assert noisy._workload.lost == sum(lost)
        ordinary = design.mechanisms_for(noisy.epsilon)
        for block, each in noisy.mechanisms.items():
            own, release = (errors_of(noise, np.int64) for noise in (each, ordinary[block]))
            assert release.total_variation < own.total_variation < 2**-47
            assert own.floor > release.floor  # type: ignore[operator]


def test_accuracy_in_advance() -> None:
    design = Design({"region": range(10), "sex": ["f", "m"]})
    shown = design.preview(TIERS)
    assert [*shown["tier"]] == [*TIERS]
    for epsilon, cell, total in zip(EPSILONS, shown["cell"], shown["total"], strict=True):
        how: dict[str, Any] = {"epsilon": epsilon, "alpha": 0.05, "tiers": TIERS}
        assert design.accuracy(**how) == cell
        assert design.accuracy(**how, of=()) == total
        [noise] = design.mechanisms_for(epsilon, tiers=TIERS).values()
        assert isinstance(noise, TierPlan)
        assert noise.accuracy(0.05) == cell
    chosen = Design({"a": range(3), "b": range(2)}, tables=["a", "b"])
    assert chosen.accuracy(epsilon=1, alpha=0.05, of="a", tiers=TIERS) > 0
    with pytest.raises(ValueError, match="epsilon = 2 is not accepted: give that of one of the"):
        design.accuracy(epsilon=2, alpha=0.05, tiers=TIERS)


# A tier among others


def test_tiers_of_one_release_are_no_two_releases() -> None:
    first = SMALL.count(RECORDS).release(tiers=TIERS)
    other = SMALL.count(RECORDS).release(tiers=TIERS)
    message = "another tier of the same release, made from the finer one: use the finest of them"
    for call in ("combine", "plus", "change_since"):
        how = {"alpha": 0.05} if call == "change_since" else {}
        with pytest.raises(ValueError, match=message):
            getattr(first["public"], call)(first["office"], **how)
        with pytest.raises(ValueError, match="is this release, or of the same stream"):
            getattr(first["public"], call)(first["public"], **how)
        assert getattr(first["public"], call)(other["office"], **how) is not None


def test_answers_from_several_releases_know_all_of_them() -> None:
    """Nothing is counted twice by combining a part again, nor what another release corrects."""
    one, two = (SMALL.count(RECORDS).release(epsilon=1) for _ in range(2))
    third = SMALL.count(RECORDS).release(epsilon=1, corrects=one)
    both = one.combine(two)
    for other in (one, two):
        for pair in ((both, other), (other, both)):
            with pytest.raises(ValueError, match="share noise"):
                pair[0].combine(pair[1])
    with pytest.raises(ValueError, match="corrects the other"):
        both.combine(third)
    # Nor are corrected records combined with those before, which may be others.
    fourth = SMALL.count(RECORDS).release(epsilon=1, corrects=two)
    for other in (one, two):
        with pytest.raises(ValueError, match="corrects the other"):
            third.combine(fourth).combine(other)
    with pytest.raises(ValueError, match="before or after another correction"):
        third.combine(SMALL.count(RECORDS).release(epsilon=1))
    with pytest.raises(ValueError, match="before or after another correction"):
        third.combine(SMALL.count(RECORDS).release(epsilon=1, corrects=fourth))
    tiers = SMALL.count(RECORDS).release(tiers=TIERS)
    with pytest.raises(ValueError, match="share noise"):
        tiers["public"].combine(two).combine(tiers["office"])


def test_a_correction_of_tiers() -> None:
    first = SMALL.count(RECORDS).release(tiers=TIERS)
    for old in (first, first["public"], first["office"]):
        second = SMALL.count(RECORDS).release(tiers=TIERS, corrects=old)
        assert all(each.corrects == (first.id,) for each in second.values())
        with pytest.raises(ValueError, match="corrects the other"):
            first["public"].combine(second["office"])
    third = SMALL.count(RECORDS).release(epsilon=1, corrects=first["public"])
    assert third.corrects == (first.id,)


def test_a_page_says_which_tier_it_is(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.html" for name in TIERS}
    SMALL.count(RECORDS).release(tiers=TIERS, save=paths)
    said = "This table was published at several levels of precision; this is the one called “{}”."
    texts = {name: path.read_text() for name, path in paths.items()}
    for name, text in texts.items():
        assert html.escape(said.format(name)) in text
        assert (" more precise one" in text.lower()) == (name != "office")
    assert "More precise ones exist (epsilon 0.5 and 1): if you have any of them" in texts["public"]


def test_a_tier_releases_nothing() -> None:
    tier = TierPlan("0.1", ["0.1", 1], bounds=(0, 9))
    assert repr(tier) == "TierPlan(0.1, (0.1, 1), sensitivity=1, bounds=(0, 9))"
    assert tier != GeometricMechanism("1/10", bounds=(0, 9))
    assert tier == pickle.loads(pickle.dumps(tier))
    assert {tier: 1}[pickle.loads(pickle.dumps(tier))] == 1
    assert not {"release", "top", "tiers", "tier_plans", "from_scale"} & {*dir(tier)}
    draws: list[Callable[[Any], Any]] = [
        lambda it: Budget(epsilon=1).release(it, [1]),
        lambda it: SMALL.count(RECORDS).release(it),
        lambda it: testing.release_not_private(it, [1], b"0" * 32),
        lambda it: ReleaseKey().release(it, [1], ids=np.array([1]), name="n"),
        lambda it: tables.release_columns(RECORDS, {"region": it}),
    ]
    for draw in draws:
        with pytest.raises(TypeError, match="mechanism has type TierPlan: give"):
            draw(tier)
    with pytest.raises(ValueError, match=r"epsilon = .* is not accepted: give one of"):
        TierPlan("0.2", ["0.1", 1])


# The ledger


def test_a_ledger_keeps_tiers(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=3)
    table = SMALL.count(RECORDS)
    table.release(tiers=TIERS, budget=budget, label="May")
    table.release(epsilon="0.25", budget=budget, label="one for all")
    table.release(tiers={"public": "0.2", "partners": "0.3"}, budget=budget, label="June")
    for each in (budget, Budget.open(tmp_path / "2026.jsonl")):
        first, second, third = each.history
        assert first.tiers == tuple(zip(TIERS, EPSILONS, strict=True))
        assert (first.loss, first.cost) == (1, 1)
        assert second.tiers == ()
        assert third.loss == Fraction(3, 10)
        assert each.epsilon_spent == pytest.approx(1.55)
        for names, spent in {
            (): 0.25,
            ("public",): 0.1 + 0.25 + 0.2,
            ("public", "researchers"): 0.5 + 0.25 + 0.2,
            ("office", "partners"): 1 + 0.25 + 0.3,
            ("partners",): 0.25 + 0.3,
        }.items():
            assert 0 <= each.epsilon_of(*names) - spent < 1e-15
        with pytest.raises(ValueError, match="tier = 'pubic' is not accepted: give names of tiers"):
            each.epsilon_of("pubic")
        with pytest.raises(ValueError, match="tier of type list is not accepted"):
            each.epsilon_of(["public"])  # type: ignore[arg-type]


def test_groups_of_equal_losses_may_have_other_tiers() -> None:
    """What readers of a tier lose is the greatest of any group."""
    budget = Budget(epsilon=2, groups=["Norway", "Sweden"])
    table = SMALL.count(RECORDS)
    table.release(tiers={"public": "0.2", "office": 1}, budget=budget.group("Norway"))
    table.release(tiers={"public": "0.1", "office": 1}, budget=budget.group("Sweden"))
    assert budget.epsilon_spent == 1
    assert budget.epsilon_of("public") == 0.2
    assert budget.group("Sweden").epsilon_of("public") == 0.1


def test_a_group_without_a_tier_of_others() -> None:
    budget = Budget(epsilon=2, groups=["Norway", "Sweden"])
    with pytest.raises(ValueError, match="no names before a table with tiers is booked"):
        budget.epsilon_of("public")
    table = SMALL.count(RECORDS)
    table.release(tiers={"public": "0.25", "office": 1}, budget=budget.group("Norway"))
    table.release(epsilon="0.5", budget=budget.group("Sweden"))
    assert {name: budget.group(name).epsilon_of("public") for name in budget.groups} == {
        "Norway": 0.25,
        "Sweden": 0.5,
    }


@pytest.mark.parametrize("limit", [{"rho": 2}, {"epsilon": 3, "losses": {1: 2}}])
def test_other_budgets_state_tiers(limit: Any, tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", **limit)
    SMALL.count(RECORDS).release(tiers=TIERS, budget=budget)
    assert Budget.open(tmp_path / "2026.jsonl").epsilon_of("public") == 0.1
    assert budget.history[0].loss == 1


FORGED: list[Any] = [
    {"a": "1/10", "b": "1/10", "c": "1"},
    {"b": "1/2", "a": "1/10", "c": "1"},
    {"a": "1/10"},
    {"a": "0", "c": "1"},
    {"a": "1", "c": "2"},
    {"a": 0.1, "c": "1"},
    ["1"],
    "x",
    {"c": "x"},
]


@pytest.mark.parametrize("tiers", FORGED, ids=str)
def test_a_forged_ledger_is_refused(tiers: Any) -> None:
    from geomdp.accounting._ledger import Ledger  # noqa: PLC0415 (the reader of a line)

    fields = {"label": None, "loss": "1", "cost": {"1": 1}, "time": "2026-11-26T00:00:00+00:00"}
    ledger = Ledger.__new__(Ledger)
    ledger._path = Path("x")
    for given, holds in (({"a": "1/10", "c": "1"}, True), (tiers, False)):
        line = json.dumps(fields | {"tiers": given}).encode()
        if holds:
            assert ledger._item(line, 0, "").booking.tiers == (("a", Fraction(1, 10)), ("c", 1))
            continue
        with pytest.raises(ValueError, match="is damaged"):
            ledger.checked(ledger._item, line, 0, "")


def test_a_report_shows_the_files_of_all_tiers(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=3)
    paths = {name: tmp_path / f"{name}.csv" for name in TIERS}
    tiers = SMALL.count(RECORDS).release(tiers=TIERS, budget=budget, label="May", save=paths)
    assert budget.history[0].ids == (tiers.id,)
    tables.report(budget, tmp_path / "report.html", paths.values())
    text = (tmp_path / "report.html").read_text()
    for name, loss in (("public", 0.1), ("researchers", 0.5), ("office", 1)):
        assert f"{name}.csv (the tier {name}, epsilon {float(loss)})" in text
    assert "did not pay for" not in text


# Refusals


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"tiers": {"a": 1}}, ValueError, "tiers = .* give two or more names"),
    ({"tiers": {}}, ValueError, "tiers = .* give two or more names"),
    ({"tiers": {"a": 1, "b": 1}}, ValueError, "tiers = .* increasing"),
    ({"tiers": {"b": 1, "a": "0.5"}}, ValueError, r"tiers = \[\('b', '1'\), \('a', .*increasing"),
    ({"tiers": {"a": "0.1", "b": 1, "c": "0.5"}}, ValueError, "tiers = .* increasing"),
    ({"tiers": {"a": 0, "b": 1}}, ValueError, "tiers = 0 is not accepted"),
    ({"tiers": {"a": "x", "b": 1}}, ValueError, "tiers = 'x'"),
    ({"tiers": {"a": float("nan"), "b": 1}}, ValueError, "tiers = nan"),
    ({"tiers": {"a": None, "b": 1}}, TypeError, "tiers = None has type NoneType"),
    ({"tiers": {"": 0.1, "b": 1}}, ValueError, "tiers = ''"),
    ({"tiers": {"\ud800": 0.1, "b": 1}}, ValueError, "tiers = .* UTF-8"),
    ({"tiers": {1: 0.1, "b": 1}}, TypeError, "names of tiers of type int"),
    ({"tiers": [0.1, 1]}, TypeError, "tiers has type list"),
    ({"tiers": 0.1}, TypeError, "tiers = 0.1 has type float"),
    ({"tiers": {f"{n}": n for n in range(1, 10)}}, ValueError, "tiers = 9"),
    ({"tiers": {"a": "1e-30", "b": 1}}, ValueError, "too large to be certified"),
    ({"tiers": {"a": 1, "b": 3}}, ValueError, "this release costs 3, but only"),
    ({"tiers": TIERS, "epsilon": 1}, TypeError, "tiers are not accepted with"),
    (
        {"tiers": TIERS, "mechanism": GeometricMechanism(1)},
        TypeError,
        "tiers are not accepted with",
    ),
    ({"tiers": TIERS, "at_least": 5}, TypeError, "tiers are not accepted with"),
    ({"tiers": TIERS, "rest": ("x", "0.1")}, TypeError, "tiers are not accepted with"),
    ({"tiers": TIERS, "save": "x.csv"}, TypeError, "save = 'x.csv' has type str: give a mapping"),
    ({"tiers": TIERS, "save": {"public": "x.csv"}}, ValueError, "save has other names than"),
    (
        {"tiers": TIERS, "save": dict.fromkeys(TIERS, "x.csv")},
        ValueError,
        "save does not have different paths",
    ),
    (
        {"tiers": TIERS, "save": {"public": "x.csv", "researchers": "./x.csv", "office": "y.csv"}},
        ValueError,
        "save does not have different paths",
    ),
    (
        {"tiers": TIERS, "save": {"public": "x.csv", "researchers": "y.csv", "office": "\0.csv"}},
        ValueError,
        "save = .* give a path that this system can hold",
    ),
    (
        {"tiers": TIERS, "save": {"public": "x.csv", "researchers": "y.csv", "office": None}},
        TypeError,
        "save = None has type NoneType",
    ),
    (
        {"tiers": TIERS, "save": {"public": "x.csv", "researchers": "y.csv", "office": "z.x"}},
        ValueError,
        "save = .* give a name that ends in ",
    ),
    (
        {"tiers": TIERS, "save": {"public": "x.csv", "researchers": "y.csv", "office": "here.csv"}},
        FileExistsError,
        "here.csv",
    ),
    ({"tiers": TIERS, "rounded": 5}, TypeError, "rounded is for"),
    ({"tiers": TIERS, "bounds": (0, 2**70)}, OverflowError, "bounds"),
    ({"tiers": TIERS, "about": {"x": "y"}}, ValueError, "about"),
    ({"tiers": TIERS, "corrects": "x"}, TypeError, "corrects = 'x'"),
]


@pytest.mark.parametrize(("given", "error", "message"), REFUSED, ids=str)
def test_refused_before_anything_is_paid_or_drawn(
    given: dict[str, Any],
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.csv").write_text("x")
    table, budget = SMALL.count(RECORDS), Budget(epsilon=2)
    for name in ("release", "tiers"):
        monkeypatch.setattr(GeometricMechanism, name, lambda *_, **__: pytest.fail("it drew"))
    with pytest.raises(error, match=message):
        table.release(budget=budget, label="May", **given)
    assert budget.spent == []
    assert os.listdir() == ["here.csv"]


def test_a_disk_that_fails_leaves_the_tiers_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget, real = Budget(epsilon=1), tables.NoisyTable.save

    def full(self: Any, path: Any, **how: Any) -> None:
        if "office" in str(path):
            raise OSError(28, "no space left")
        real(self, path, **how)

    monkeypatch.setattr(tables.NoisyTable, "save", full)
    with pytest.raises(OSError, match="no space left") as caught:
        SMALL.count(RECORDS).release(
            tiers=TIERS, budget=budget, save={name: tmp_path / f"{name}.csv" for name in TIERS}
        )
    assert budget.epsilon_spent == 1
    assert [*caught.value.released] == [*TIERS]  # type: ignore[attr-defined]


def test_tiers_have_no_other_names() -> None:
    tiers = SMALL.count(RECORDS).release(tiers=TIERS)
    with pytest.raises(KeyError, match="'x': give one of public, researchers, office"):
        tiers["x"]
    assert "x" not in tiers
    assert ", the tier public, privacy loss 0.1 " in repr(tiers["public"])
    assert len(tiers) == 3
    assert not {"tiers", "coarsen", "release"} & {*dir(tiers), *dir(tiers["office"])}


FORGED_FILES: list[Any] = [
    {"name": "public", "epsilons": ["1/10"]},
    {"name": "public", "epsilons": ["1", "1/10"]},
    {"name": "public", "epsilons": ["1/10", "1/10", "1"]},
    {"name": "public", "epsilons": ["1/5", "1"]},
    {"name": 5, "epsilons": ["1/10", "1"]},
    {"name": "public", "epsilons": 5},
    {"name": "public", "epsilons": [0.1, 1]},
    {"name": "public", "epsilons": [f"{n}/10" for n in range(1, 12)]},
    {"name": "public"},
    "public",
]


@pytest.mark.parametrize("tier", FORGED_FILES, ids=str)
def test_a_file_with_other_tiers_is_refused(tier: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    SMALL.count(RECORDS).release(tiers={"public": "0.1", "office": 1})["public"].save(path)
    beside = tmp_path / "x.csv.json"
    said = json.loads(beside.read_text())
    said["geomdp"]["tier"] = tier
    beside.write_text(json.dumps(said))
    with pytest.raises(ValueError, match=r"x\.csv cannot be read"):
        geomdp.read(path)


def test_rounded_tiers_and_about(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.csv" for name in TIERS}
    about = {"title": "Sick people"}
    tiers = SMALL.count(RECORDS).release(tiers=TIERS, save=paths, rounded=10, about=about)
    for path in paths.values():
        read = geomdp.read(path)
        assert read.about == about
        assert all(n % 10 == 0 for n in read.to_dict().values())
        assert read.intervals(alpha=0.05) is not None
    again = {name: tmp_path / f"{name}-2.parquet" for name in TIERS}
    tiers.save(again)
    assert geomdp.read(again["public"]).to_dict() == tiers["public"].to_dict()
    with pytest.raises(ValueError, match="path has other names"):
        tiers.save({"public": "x.csv"})
    there = [*os.scandir(tmp_path)]
    with pytest.raises(FileExistsError, match="office"):
        tiers.save(
            {name: tmp_path / f"{name}.parquet" for name in TIERS} | {"office": again["office"]}
        )
    assert len([*os.scandir(tmp_path)]) == len(there), "no tier is written if one cannot be"
    tiers.save(again, overwrite=True)
