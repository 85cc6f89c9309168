"""What was typed is what is said, and true of both readings of a float (proofs, lemma 2a)."""

import json
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geomdp
from exact import stated
from geomdp import GeometricMechanism, accounting, accuracy, tables
from geomdp._ground import decimals, parameters
from geomdp.accounting import Budget
from geomdp.cli import main
from geomdp.tables.streams import Stream

PEOPLE = pd.DataFrame({"town": ["Oslo", "Rome"] * 300, "sex": ["f", "f", "m"] * 200, "age": 30})
TOWNS = ["Oslo", "Rome", "Bern"]
#: The nearest floats of the second, third and fourth are below them.
TYPED: list[Any] = [0.2, 0.3, "0.3", Decimal("0.7"), 0.1, 1, Fraction(1, 3), "1/3", np.float32(0.7)]
SHORT = [k / 10**4 for k in range(1, 10**4)] + [k / 10 for k in range(10, 101)]


def readings(number: float) -> tuple[Fraction, Fraction]:
    return Fraction(repr(number)), Fraction(number)


def test_short_decimals_are_private_by_both_readings() -> None:
    """All decimals of four digits below 1, and those of one digit up to 10."""
    for number in SHORT:
        mechanism = GeometricMechanism(number)
        said, stored = readings(number)
        # Theorem 2: the loss of the noise is at most its rate.
        assert (1 - Fraction(1, 2**53)) * said <= mechanism.rate <= min(said, stored)
        assert mechanism.rate in (said, stored)
        assert mechanism.privacy_loss() == mechanism.epsilon == number
        assert f"{number:g}" == parameters.text(said) == parameters.text(number)
        assert mechanism == GeometricMechanism(repr(number)) != GeometricMechanism(said + 1)
        scale = GeometricMechanism.from_scale(number)
        assert scale.rate == 1 / max(said, stored)
        assert scale.privacy_loss() == decimals.least(1 / said)


def test_certificates_state_the_rate_of_the_draw() -> None:
    for number in [*SHORT[::500], 1e-9, 0.3, 0.7, 1e23]:
        proof = GeometricMechanism(number, bounds=(0, 100)).certificate()
        assert proof.holds
        assert proof.rate == min(readings(number))


@given(st.floats(1e-300, 1e290))
def test_losses_are_the_least_that_state_no_less(number: float) -> None:
    said, stored = readings(number)
    mechanism = GeometricMechanism(number, sensitivity=3)
    assert mechanism.rate * 3 == min(said, stored)
    assert mechanism.privacy_loss() == number
    for exact in (said, stored, said * 7, said / 3, stored * 10**9 + 1):
        least, greatest = decimals.least(exact), decimals.greatest(exact)
        assert stated(least) >= exact > stated(np.nextafter(least, 0))
        assert stated(greatest) <= exact < stated(np.nextafter(greatest, np.inf))


@pytest.mark.parametrize("n", [2, 3, 7, 10, 12, 100])
def test_equal_parts_use_up_a_budget(n: int) -> None:
    for total in SHORT[::331]:
        budget = Budget(n * Fraction(repr(total)))
        for _ in range(n):
            budget.spend(GeometricMechanism(total))
        assert budget.remaining == 0
        each = accounting.split(total, n)
        assert n * stated(each) <= stated(total) < n * stated(np.nextafter(each, 1e9))


def test_what_is_given_out_can_be_given_back() -> None:
    for loss in SHORT[::777]:
        budget = Budget(rho=accounting.zcdp(loss))
        budget.book(loss)
        assert budget.remaining == 0
        plan = {loss: 20}
        whole = accounting.compose(plan, 1e-6)
        assert Budget(whole, 1e-6, plan).epsilon_spent == whole
        assert Budget(whole, accounting.compose_delta(plan, whole / 2), plan).remaining == loss
    for reach in range(1, 60):
        epsilon = accuracy.accuracy_to_epsilon(reach, 0.05)
        assert accuracy.epsilon_to_accuracy(parameters.read(epsilon).drawn, 0.05) == reach
        scale = accuracy.accuracy_to_scale(reach, 0.05)
        mechanism = GeometricMechanism.from_scale(scale)
        assert accuracy.scale_to_accuracy(1 / mechanism.rate, 0.05) == reach


def said_of(epsilon: Any) -> str:
    exact = stated(epsilon) if not isinstance(epsilon, Decimal) else Fraction(epsilon)
    return {"1/3": "1/3", "1": "1"}.get(str(exact), str(float(exact)))


def releases(epsilon: Any, folder: Path, budget: Budget) -> dict[str, Any]:
    """Return releases of all kinds by files."""
    towns = tables.Design({"town": TOWNS})
    both = tables.Design({"town": TOWNS, "sex": ["f", "m"]}, margins={"town": ("all", "0.2")})
    chosen = tables.Design({"town": TOWNS, "sex": ["f", "m"]}, tables=["town", "sex", ()])

    def how(name: str) -> dict[str, Any]:
        return {"epsilon": epsilon, "budget": budget, "save": folder / name, "label": name}

    return {
        "plain.csv": towns.count(PEOPLE).release(**how("plain.csv")),
        "margins.parquet": both.count(PEOPLE).release(**how("margins.parquet")),
        "chosen.csv": chosen.count(PEOPLE).release(**how("chosen.csv")),
        "top.csv": towns.count(PEOPLE).top(2, **how("top.csv")),
        "groups.csv": towns.count(PEOPLE).release(
            at_least=50, rest=("-", 0.1), **how("groups.csv")
        ),
    }


@pytest.mark.parametrize("epsilon", TYPED, ids=repr)
def test_every_text_shows_what_was_typed(epsilon: Any, tmp_path: Path) -> None:
    exact, said = Fraction(said_of(epsilon)), said_of(epsilon)
    budget = Budget.open(tmp_path / "ledger", epsilon=5 * exact)
    made = releases(epsilon, tmp_path, budget)
    assert budget.remaining == 0
    assert {booking.loss for booking in budget.history} == {exact}
    for name, noisy in made.items():
        assert noisy.epsilon == exact
        assert f"privacy loss {said} for one" in noisy._text()
        description = json.loads((tmp_path / f"{name}.json").read_text())["geomdp"]
        assert description["epsilon"] == str(exact)
        read = geomdp.read(tmp_path / name)
        assert read.epsilon == exact
        assert read.mechanisms == noisy.mechanisms
        assert getattr(read, "_rest", None) == getattr(noisy, "_rest", None)
        assert pickle.loads(pickle.dumps(noisy)).mechanisms == noisy.mechanisms
        # The noise of all counts together is private by both readings.
        drawn = min(exact, Fraction(float(exact))) if "/" not in said else exact
        rates = {block: each.rate for block, each in noisy.mechanisms.items()}
        if name == "top.csv":
            [loss] = (2 * rate for rate in rates.values())
        else:
            loss = noisy.design._most(rates)
            loss += 0 if name != "groups.csv" else noisy._rest.mechanism.rate
        assert loss == (exact if isinstance(epsilon, Fraction | int) else drawn)
        read.save(page := tmp_path / f"{name}.html")
        shown = said if "/" not in said else "0.3334"
        assert f"The privacy loss, epsilon, is {shown}: " in page.read_text()
    tables.report(budget, tmp_path / "report.html")
    if "/" not in said:
        assert f">{said}<" in (tmp_path / "report.html").read_text()


def test_a_file_that_states_another_loss_is_refused(tmp_path: Path) -> None:
    noisy = (
        tables.Design({"town": TOWNS}).count(PEOPLE).release(epsilon=0.3, save=tmp_path / "a.csv")
    )
    path = tmp_path / "a.csv.json"
    text = path.read_text()
    for other in ("299/1000", "301/1000", str(noisy.epsilon * (1 + Fraction(1, 2**52)))):
        path.write_text(text.replace('"epsilon": "3/10"', f'"epsilon": "{other}"'))
        with pytest.raises(ValueError, match="privacy loss"):
            geomdp.read(tmp_path / "a.csv")


def test_tiers_streams_sums_and_commands_are_as_typed(tmp_path: Path, capsys: Any) -> None:
    files = {name: tmp_path / f"{name}.csv" for name in ("public", "inner")}
    table = tables.Design({"town": TOWNS}).count(PEOPLE)
    tiers = table.release(tiers={"public": 0.1, "inner": "0.3"}, save=files)
    assert repr(tiers).endswith("public at epsilon 0.1, inner at epsilon 0.3>")
    for name, path in files.items():
        assert geomdp.read(path).mechanisms == tiers[name].mechanisms
    plans = GeometricMechanism(0.3, bounds=(0, 9)).tier_plans(["0.1"])
    assert [plan.epsilon for plan in plans] == [0.1, 0.3]
    assert [plan.rate for plan in plans] == [Fraction(1, 10), Fraction(0.3)]
    path = tmp_path / "stream"
    opened = [Stream.open(path, horizon=9, epsilon=each) for each in (0.3, "0.3", Fraction(3, 10))]
    assert {repr(each) for each in opened} == {repr(opened[0])}
    assert " epsilon 0.3," in repr(opened[0])
    assert opened[0].mechanism == opened[2].mechanism
    assert opened[0].privacy_loss() == 0.3
    pair = tables.Design({"town": TOWNS}).sum_and_count(PEOPLE, "age", bounds=(0, 99))
    noisy = pair.release(epsilon=0.3, share="1/3")
    assert (noisy.privacy_loss(), noisy.sums.privacy_loss()) == (0.3, 0.1)
    main(["compose", *(["0.1"] * 3)])
    assert capsys.readouterr().out.startswith("0.3\n")


def test_a_ledger_takes_the_number_in_any_form(tmp_path: Path) -> None:
    Budget.open(tmp_path / "a", epsilon="0.3")
    for same in (0.3, Decimal("0.3"), Fraction(3, 10), "3/10", np.float32(0.3)):
        assert repr(Budget.open(tmp_path / "a", epsilon=same)) == "<Budget: 0.0 of 0.3 spent>"
    with pytest.raises(ValueError, match=r"epsilon = 0\.1 is not accepted: give .* 0\.3$"):
        Budget.open(tmp_path / "a", epsilon=0.1)
    # The number that the float stores, stated as such.
    with pytest.raises(ValueError, match=r"is not accepted: give that of the ledger a, 0\.3"):
        Budget.open(tmp_path / "a", epsilon=Fraction(0.3))
