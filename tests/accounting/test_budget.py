"""Budgets, in memory and in ledgers: one limit, whoever spends and whenever it is interrupted."""

import contextlib
import io
import itertools
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from exact import stated
from geomdp import GeometricMechanism, tables
from geomdp._ground import lock
from geomdp.accounting import Booking, Budget, _journal, compose, loss_distribution, zcdp

Open = Callable[..., Budget]


@pytest.fixture(params=["memory", "ledger"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return Budget, or Budget.open of a new file at each call."""
    names = iter(range(100))

    def ledger(*limits: Any, **more: Any) -> Budget:
        named = dict(zip(("epsilon", "delta", "losses"), limits, strict=False))
        return Budget.open(tmp_path / f"{next(names)}.db", **named, **more)

    return Budget if request.param == "memory" else ledger


@pytest.mark.parametrize("tenth", [0.1, "0.1", Decimal("0.1"), np.float32(0.1), Fraction(1, 10)])
def test_ten_tenths_are_one(make: Open, tenth: Any) -> None:
    budget = make(1)
    for n in range(10):
        assert budget.epsilon_spent == n / 10
        assert budget.remaining == (10 - n) / 10
        budget.spend(GeometricMechanism(tenth))
    assert (budget.epsilon_spent, budget.remaining) == (1, 0)
    with pytest.raises(
        ValueError, match=r"^this release costs 0\.1, but only 0 of 1 is left: 0\.1"
    ):
        budget.spend(GeometricMechanism(tenth))


def test_a_refused_release_draws_no_noise(make: Open) -> None:
    class Spy(GeometricMechanism):
        drawn = 0

        def release(self, *args: object, **kwargs: object) -> object:
            type(self).drawn += 1
            return super().release(*args, **kwargs)

    budget = make(Fraction(3, 10))
    mechanism = Spy(Fraction(1, 10), bounds=(0, 10))
    for label in "abc":
        assert budget.release(mechanism, 3, label=label) in range(11)
    message = "this release costs 0.1, but only 0 of 0.3 is left: 0.1 too much"
    with pytest.raises(ValueError, match=message):
        budget.release(mechanism, 3)
    assert Spy.drawn == 3
    assert budget.spent == [(label, mechanism.privacy_loss(1)) for label in "abc"]
    assert budget.epsilon_spent == 0.3


def test_a_map_that_is_rounded_up_is_booked_exactly(make: Open) -> None:
    # The third of sensitivity 3 is not a float: the map is rounded up, the sum is not.
    exact = make(1)
    for _ in range(3):
        exact.spend(GeometricMechanism(1, sensitivity=3), 1)
    assert exact.epsilon_spent == 1


def test_budget_spends_epsilon_unless_given_a_distance(make: Open) -> None:
    """An individual of sensitivity 2 loses epsilon, not half of it."""
    budget = make(1)
    mechanism = GeometricMechanism(0.75, sensitivity=2)
    budget.release(mechanism, [3, 4])
    with pytest.raises(
        ValueError, match=r"costs 0\.75, but only 0\.25 of 1 is left: 0\.5 too much$"
    ):
        budget.spend(mechanism)
    assert budget.spent == [(None, 0.75)]


def test_a_plan_allows_more_releases_in_any_order(make: Open) -> None:
    many = next(n for n in range(100) if compose({0.05: n + 1, 0.1: 1}, 1e-6) > 1)
    assert many > 20
    with pytest.raises(ValueError, match=r"planned releases raise .* but the budget is 1$"):
        make(1, 1e-6, {0.05: many + 1, 0.1: 1})
    budget = make(1, 1e-6, {0.05: many, 0.1: 1})
    assert budget.epsilon_spent == compose({0.05: many, 0.1: 1}, 1e-6)
    budget.spend(GeometricMechanism(0.01))
    budget.spend(GeometricMechanism(0.05), 2)
    for _ in range(many - 1):
        budget.spend(GeometricMechanism(0.05))
    for loss in (0.05, 0.001):
        with pytest.raises(ValueError, match=f"no planned release of privacy loss {loss} or more"):
            budget.spend(GeometricMechanism(loss))
    assert [loss for _, loss in budget.spent] == [0.01, 0.1] + [0.05] * (many - 1)


def test_losses_chosen_later_are_no_plan(make: Open) -> None:
    with pytest.raises(ValueError, match="delta = 1e-06 is not accepted without losses"):
        make(1, 1e-6)


def test_distances_and_no_noise(make: Open) -> None:
    budget = make(1)
    budget.spend(GeometricMechanism(0.25), d_in=np.int64(4))
    budget.spend(GeometricMechanism.from_scale(0), d_in=0)
    assert budget.spent == [(None, 1.0), (None, 0.0)]
    clear, noisy = GeometricMechanism.from_scale(0), GeometricMechanism(1)
    for allowed, mechanism, distance in (
        *((each, clear, None) for each in (budget, make(10**300))),
        *((make(1), each, 2**1024) for each in (clear, noisy)),
    ):
        costs = r"this release costs (inf|about 2\^1024), but only .* is left: \1 too much$"
        with pytest.raises(ValueError, match=costs):
            allowed.spend(mechanism, distance)
    with pytest.raises(ValueError, match="of privacy loss inf or more"):
        make(1, 1, [3]).spend(GeometricMechanism.from_scale(0))


def test_a_release_that_fails_after_its_booking_keeps_what_was_spent(make: Open) -> None:
    class Failing(GeometricMechanism):
        def release(self, *_: object, **__: object) -> Any:
            raise MemoryError

    budget = make(1)
    with pytest.raises(MemoryError):
        budget.release(Failing(0.5), 3)
    assert budget.epsilon_spent == 0.5


def test_threads_do_not_exceed_a_budget(make: Open) -> None:
    budget, mechanism = make(5), GeometricMechanism(Fraction(1, 10), bounds=(0, 10))
    done: list[object] = []

    def many() -> None:
        for _ in range(20):
            with contextlib.suppress(ValueError):
                done.append(budget.release(mechanism, 5))

    workers = [threading.Thread(target=many) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(done) == len(budget.spent) == 50
    assert budget.epsilon_spent == 5


def test_notebooks_show_what_was_spent(make: Open) -> None:
    budget = make(1)
    budget.spend(GeometricMechanism(0.25), label="<b>")
    budget.spend(GeometricMechanism(0.5))
    assert repr(budget) == "<Budget: 0.75 of 1 spent>"
    html = budget._repr_html_()
    assert html.index("0.75 of 1") < html.index("1. &lt;b&gt;") < html.index("0.25")
    assert "<td>0.5</td>" in html
    assert repr(make(2, 1, [1])) == "<Budget: 0.0 of 2 spent, delta=1>"
    assert repr(make(2, 1e-6, [1])).endswith(" of 2 spent, delta=1e-06>")


SIGNALLED = """
import signal
from geomdp import GeometricMechanism
from geomdp.accounting import Budget

class Interrupted(Budget):
    __slots__ = ()

    def _take(self, *arguments):
        signal.raise_signal(signal.SIGINT)
        return super()._take(*arguments)

def handler(*_):
    print(budget.epsilon_spent, budget.spent, budget)
    try:
        budget.spend(mechanism)
    except RuntimeError as error:
        print(error)

budget = OPENED
mechanism = GeometricMechanism(0.5)
signal.signal(signal.SIGINT, handler)
budget.spend(mechanism)
budget.spend(mechanism)
print(budget.epsilon_spent)
"""


@pytest.mark.parametrize("opened", ["Interrupted(1)", 'Interrupted.open("a.db", epsilon=1)'])
def test_a_signal_handler_can_read_a_budget_while_it_is_spent(opened: str, tmp_path: Path) -> None:
    """In a process of its own, since a deadlock would not end."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED.replace("OPENED", opened)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    refusal = "a signal handler that interrupts a spend cannot spend"
    assert done.stdout.splitlines() == [
        "0.0 [] <Budget: 0.0 of 1 spent>",
        refusal,
        "0.5 [(None, 0.5)] <Budget: 0.5 of 1 spent>",
        refusal,
        "1.0",
    ]


def test_decimals_and_strings_fit_ten_times(make: Open) -> None:
    for tenth in ("0.1", Decimal("0.1"), Fraction(1, 10)):
        budget = make("1")
        for _ in range(10):
            budget.book(tenth)
        assert (budget.epsilon_spent, repr(budget.remaining)) == (1, "0.0")
        with pytest.raises(ValueError, match=r"only 0 of 1 is left"):
            budget.book("1e-300")


def test_history_is_exact(make: Open) -> None:
    budget, before = make(2), datetime.now(UTC) - timedelta(seconds=1)
    many = [("\u00e4 'b'\t\n", "1/3"), (None, 0.1), ("", 0), ("Oct", Decimal("1e-30"))]
    for label, loss in many:
        budget.book(loss, label=label)
    history = budget.history
    assert [each[:3] for each in history] == [
        (label, stated(loss), stated(loss)) for label, loss in many
    ]
    assert all(before <= each.time <= datetime.now(UTC) for each in history)
    assert list(pd.DataFrame(history).columns) == list(Booking._fields)
    exact = sum(stated(loss) for _, loss in many)
    assert stated(math.nextafter(budget.epsilon_spent, 0)) < exact <= stated(budget.epsilon_spent)


def test_a_rho_limits_the_sum_of_zcdp(make: Open) -> None:
    budget = make(rho=0.5)
    for _ in range(400):
        budget.book("0.05")
    rho = 400 * stated(zcdp("0.05"))
    assert stated(budget.rho_spent) >= rho > stated(math.nextafter(budget.rho_spent, 0))
    assert {each.cost for each in budget.history} == {stated(zcdp("0.05"))}
    assert repr(budget) == f"<Budget: rho {budget.rho_spent} of 0.5 spent>"
    with pytest.raises(ValueError, match=r"costs rho 0\.462\d+, but only rho 0\.000\d+ of 0\.5 is"):
        budget.book(1)
    with pytest.raises(ValueError, match="costs rho inf, but"):
        budget.spend(GeometricMechanism.from_scale(0))
    assert budget.epsilon_at(0) == budget.epsilon_spent == 20
    assert budget.epsilon_at(1) == 0
    # Losses that are fixed in advance cost less than zCDP allows for all of that rho.
    assert compose({"0.05": 400}, 1e-6) < budget.epsilon_at(1e-6)


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-6, 0.1, 0.9])
@pytest.mark.parametrize("rho", [1e-9, 0.01, 0.5, 20])
def test_epsilon_of_rho_is_the_least_of_the_conversion(rho: float, delta: float) -> None:
    """Against a search over a million orders, in float64."""
    t = np.geomspace(1e-9, 1e12, 10**6)
    least = ((1 + t) * rho + np.log(t / (1 + t)) - (math.log(delta) + np.log1p(t)) / t).min()
    found = Budget(rho=rho).epsilon_at(delta, of="all")
    assert max(least, 0) * (1 - 1e-9) - 1e-9 <= found <= max(least, 0) * (1 + 1e-6) + 1e-9


def test_a_table_of_several_cells_costs_less_rho() -> None:
    table = loss_distribution(GeometricMechanism(0.1), l0=3)
    budget = Budget(rho=1)
    budget.book(table)
    [booking] = budget.history
    assert booking.loss == Fraction(3, 10)
    assert booking.cost == stated(table.zcdp())
    assert booking.cost == pytest.approx(3 * zcdp(0.1), rel=1e-15)
    assert 2.9 * booking.cost < zcdp(booking.loss)
    pure = Budget(1)
    pure.book(table)
    assert pure.history[0].cost == booking.loss


@pytest.mark.parametrize("neighbours", ["add-remove", "change"])
@pytest.mark.parametrize("margins", [None, "all"])
@pytest.mark.parametrize(("l0", "linf"), [(1, 1), (2, 1), (2, 2)])
def test_a_table_books_the_rho_of_its_cells(
    neighbours: Any, margins: Any, l0: int, linf: int
) -> None:
    """Against the divergences of all changes by one individual, in float64."""
    levels = ["a", "b", "c"]
    design = tables.Design(
        {"town": levels}, individual="who", l0=l0, linf=linf, neighbours=neighbours, margins=margins
    )
    people = pd.DataFrame({"who": [1, 2], "town": ["a", "b"]})
    budget = Budget(rho=50)
    noisy = design.count(people).release(epsilon=2, budget=budget)
    [booking] = budget.history
    assert booking.loss == noisy.epsilon == 2
    own = [
        each
        for each in itertools.product(range(linf + 1), repeat=3)
        if sum(n > 0 for n in each) <= l0
    ]
    changes = set(own)
    if neighbours == "change":
        changes = {
            tuple(x - y for x, y in zip(*pair, strict=True))
            for pair in itertools.product(own, repeat=2)
        }
    rate = 2 / design.sensitivity
    x = np.arange(-400, 401)
    log = -rate * np.abs(x)
    log -= np.log(np.exp(log).sum())
    shifted = {d: -rate * np.abs(x - d) + log[400] for d in range(-8, 9)}

    def rho(d: int) -> float:
        """Return the greatest divergence per order; order 1 is that of Kullback and Leibler."""
        p, q = log, shifted[d]
        orders = (1.25, 1.5, 2, 3, 5, 9)
        found = [float(np.exp(p) @ (p - q))]
        found += [np.log(np.exp(a * p + (1 - a) * q).sum()) / (a - 1) / a for a in orders]
        return max(found)

    of = {d: rho(d) for d in shifted}
    wanted = max(sum(of[d] for d in (*each, *([sum(each)] if margins else []))) for each in changes)
    assert wanted <= float(booking.cost) + 1e-12
    if linf == 1 and not (margins and l0 > 1) and neighbours == "add-remove":
        assert float(booking.cost) == pytest.approx(wanted, abs=1e-9)
    assert booking.cost <= stated(zcdp(2))


def test_a_table_of_many_records_in_a_cell_is_booked() -> None:
    """LossDistribution has a limit for them, which its zCDP does not need."""
    design = tables.Design({"town": ["a", "b"]}, individual="who", l0=1, linf=5000)
    table = design.count(pd.DataFrame({"who": [1], "town": ["a"]}))
    for budget in (Budget(rho=1), Budget(1), Budget(1, 1e-6, [0.5])):
        table.release(epsilon=0.5, budget=budget)
        assert budget.spent == [(None, 0.5)]
    clear = tables.count(pd.Series(["a"], name="town"), ["a", "b"])
    with pytest.raises(ValueError, match="costs rho inf"):
        clear.release(GeometricMechanism.from_scale(0), budget=Budget(rho=1))


def test_a_plan_of_cells_allows_no_more_than_was_planned(make: Open) -> None:
    design = tables.Design({"town": ["a", "b", "c"]}, individual="who", l0=3)
    table = design.count(pd.DataFrame({"who": [1], "town": ["a"]}))
    plan = 2 * design.loss_distribution(epsilon=0.375)
    epsilon = plan.epsilon_at(0.01)
    assert epsilon < compose({0.375: 2}, 0.01)
    budget = make(epsilon=epsilon, delta=0.01, losses=plan)
    table.release(epsilon=0.375, budget=budget, label="1")
    budget.book(0.125, label="a count")
    with pytest.raises(ValueError, match=r"no planned release of privacy loss 0\.375 or more"):
        table.release(epsilon=0.375, budget=budget)
    budget.book(0.07)
    assert budget.remaining == 0.125
    budget.book(1e-9, label="the last")
    assert budget.remaining == 0
    assert [booking.cost * 8 for booking in budget.history] == [3, 1, 1, 1]
    with pytest.raises(ValueError, match="no planned release"):
        budget.book(1e-9)


def test_a_table_takes_the_least_of_what_was_planned(make: Open) -> None:
    design = tables.Design({"town": ["a", "b", "c"]}, individual="who", l0=3)
    table = design.count(pd.DataFrame({"who": [1], "town": ["a"]}))
    budget = make(epsilon=2, delta=0, losses={0.375: 3, 0.125: 3, 0.25: 2})
    for _ in range(4):
        table.release(epsilon=0.375, budget=budget)
    # Three cells, then the table as a whole three times: two cells of 0.25 are not enough.
    assert [booking.cost * 8 for booking in budget.history] == [3, 3, 3, 3]
    assert budget.remaining == 0.25


def test_epsilon_at_a_delta() -> None:
    budget = Budget(1)
    for _ in range(20):
        budget.book("0.05")
    assert budget.epsilon_at(1e-6) == compose({"0.05": 20}, 1e-6) < 1
    assert budget.epsilon_at(1e-6, of="all") == compose([1], 1e-6)
    planned = Budget(3.2, 1e-6, {0.1: 50})
    planned.book(0.07)
    assert planned.epsilon_at(0) == 0.1
    assert planned.epsilon_at(1e-6, of="all") == planned.epsilon_spent <= 3.2
    assert planned.remaining == 0.1


def test_a_table_books_its_own_loss() -> None:
    """Budget.spend booked 0.5 for a table that costs 1.0."""
    people = pd.DataFrame({"sick": ["yes", "no"]})
    table = tables.count(people, {"sick": ["yes", "no"]}, margins="all")
    assert table.sensitivity == 2
    budget = Budget(1)
    noisy = budget.release(GeometricMechanism(0.5, sensitivity=2), table, label="x")
    assert (noisy.privacy_loss(), budget.spent) == (0.5, [("x", 0.5)])
    with pytest.raises(ValueError, match="sensitivity"):
        budget.release(GeometricMechanism(0.5), table)
    with pytest.raises(ValueError, match="d_in is not accepted for a table"):
        budget.release(GeometricMechanism(0.5, sensitivity=2), table, d_in=1)
    assert budget.epsilon_spent == 0.5


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({}, (TypeError, FileNotFoundError), "give either epsilon or rho|limits are not given"),
        ({"epsilon": 1, "rho": 1}, TypeError, "give either epsilon or rho"),
        ({"rho": -1}, ValueError, "rho = -1 is not accepted"),
        ({"rho": 1, "delta": 0.1}, ValueError, "give no delta and no losses"),
        ({"rho": 1, "losses": [1]}, ValueError, "give no delta and no losses"),
        ({"epsilon": 1, "delta": 0.1}, ValueError, "delta = 0.1 is not accepted without losses"),
    ],
)
def test_bad_limits_raise(limits: dict[str, Any], error: Any, message: str, tmp_path: Path) -> None:
    for call in (Budget, lambda **each: Budget.open(tmp_path / "a.db", **each)):
        with pytest.raises(error, match=message):
            call(**limits)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="of = 'each' is not accepted"):
        Budget(1).epsilon_at(0, of="each")  # type: ignore[arg-type]


def test_a_ledger_survives_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    budget = Budget.open("2026 #?%.db", epsilon="1.5")
    code = (
        "from geomdp.accounting import Budget\n"
        "Budget.open('2026 #?%.db', epsilon=1.5).book('0.1', label='other')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.chdir("/")
    budget.book(0.25, label="own")
    assert [each[:2] for each in budget.history] == [("other", Fraction(1, 10)), ("own", 0.25)]
    assert os.listdir(tmp_path) == ["2026 #?%.db"]
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(budget)


@pytest.mark.parametrize(
    ("own", "other", "message"),
    [
        ({"epsilon": 6}, {"epsilon": 7}, "epsilon = 7 is not accepted: give that of the ledger "),
        ({"epsilon": "0.1"}, {"epsilon": 0.2}, "epsilon = 0.2 is not accepted: .* a.db, 0.1$"),
        ({"epsilon": 1}, {"rho": 1}, "rho = 1 is not accepted: .* a.db, None$"),
        ({"rho": 1}, {"rho": "1/2"}, "rho = 0.5 is not accepted: .* a.db, 1$"),
        (
            {"epsilon": 9, "delta": "1e-6", "losses": {"0.1": 50}},
            {"epsilon": 9, "delta": "1e-7", "losses": {"0.1": 50}},
            "delta = 1e-07 is not accepted: .* a.db, 1e-06$",
        ),
        (
            {"epsilon": 9, "losses": {"0.1": 50, 1: 2}},
            {"epsilon": 9, "losses": {"0.1": 51, 1: 2}},
            "losses = '51 of 1/10, 2 of 1' is not accepted: .* a.db, '50 of 1/10, 2 of 1'$",
        ),
        ({"epsilon": 9, "losses": [1]}, {"epsilon": 9, "losses": []}, "losses = '' .* '1 of 1'$"),
    ],
)
def test_other_limits_for_a_ledger_raise(
    own: dict[str, Any], other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    budget = Budget.open(path, **own)
    with pytest.raises(ValueError, match=message):
        Budget.open(path, **other)
    # Another ledger in its place is noticed by those who have it open.
    path.unlink()
    Budget.open(path, **other)
    with pytest.raises(ValueError, match=r"is not accepted: give that of the ledger a\.db"):
        budget.book(0)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.db"):
        budget.book(0)
    assert not path.exists()


@pytest.mark.parametrize(
    "own",
    [
        {"epsilon": 6},
        {"epsilon": 0.1},
        {"epsilon": "1/3", "delta": 0},
        {"epsilon": 10**300},
        {"rho": 0.5},
        {"epsilon": 9, "losses": []},
        {"epsilon": 9, "delta": "1e-6", "losses": {"0.1": 50, 1: 2}},
        {"epsilon": 9, "losses": 5 * loss_distribution(GeometricMechanism(0.5), l0=2)},
    ],
)
def test_an_existing_ledger_opens_with_its_own_limits(own: dict[str, Any], tmp_path: Path) -> None:
    """It had to be opened with all of its limits, which an auditor of the file may not know."""
    path = tmp_path / "a.db"
    made = Budget.open(path, **own)
    parts = (itertools.combinations(own.items(), n) for n in range(len(own) + 1))
    for given in itertools.chain(*parts):
        budget = Budget.open(path, **dict(given))
        assert repr(budget) == repr(made)
        with contextlib.suppress(ValueError):
            budget.book("0.01")
        assert (budget.history, budget.remaining) == (made.history, made.remaining)
        messages = []
        for each in (made, budget):
            with pytest.raises(ValueError, match="is left") as refused:
                each.book(math.inf)
            messages.append(str(refused.value))
        assert len({*messages}) == 1
    assert made.history or own.get("losses") == []


def test_planned_losses_may_be_a_generator(make: Open) -> None:
    assert make(9, losses=iter([1, 2])).epsilon_spent == 3


def test_a_plan_too_long_for_a_ledger_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal, "_LONGEST_HEAD", 500)
    plan = {Fraction(n, 2**20): 1 for n in range(1, 100)}
    with pytest.raises(ValueError, match=r"a set of limits of \d+ bytes is not accepted"):
        Budget.open(tmp_path / "a.db", epsilon=10**6, losses=plan)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [3, None, b"a.db", "a\0.db"])
def test_bad_paths_raise(path: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"path .* give a str or a path|null"):
        Budget.open(path, epsilon=1)


def test_folders_and_missing_folders_raise(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no ledger of geomdp"):
        Budget.open(tmp_path, epsilon=1)
    with pytest.raises(FileNotFoundError, match=r"missing'$"):
        Budget.open(tmp_path / "missing" / "a.db", epsilon=1)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def user() -> Iterator[Path]:
    """Return a folder of a user without privileges, whom this process is meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            yield Path(folder)
            return
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_read_only_ledger_is_read_and_not_spent(user: Path) -> None:
    path = user / "a.db"
    budget = Budget.open(path, epsilon=1)
    budget.book(0.5)
    path.chmod(0o400)
    for each in (budget, Budget.open(path, epsilon=1), Budget.open(path)):
        with pytest.raises(PermissionError, match=r"a\.db"):
            each.release(GeometricMechanism(0.1), 3)
        assert each.remaining == 0.5


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_locked_ledger_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl  # noqa: PLC0415 (of POSIX)

    monkeypatch.setattr(lock, "_WAIT", 0.1)
    budget = Budget.open(tmp_path / "a.db", epsilon=1)
    with (tmp_path / "a.db").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match=r"a\.db is locked by another process"):
            budget.book(0.1)
        assert budget.remaining == 1
    budget.book(0.1)


class Work(NamedTuple):
    """The bytecodes that a call runs, the bytes of memory that it takes, and those it reads."""

    bytecodes: int
    memory: int
    read: int


def work(call: Callable[[], object]) -> Work:
    """Return the least work of several calls: at times a list or a dict grows by more than one."""
    found = []
    for _ in range(5):
        bytecodes, before = 0, read_so_far()

        def count(frame: Any, event: str, _: Any) -> Any:
            nonlocal bytecodes
            frame.f_trace_opcodes = True
            bytecodes += event == "opcode"
            return count

        sys.settrace(count)
        try:
            call()
        finally:
            sys.settrace(None)
        read = read_so_far() - before
        tracemalloc.start()
        call()
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        found.append(Work(bytecodes, memory, read))
    return Work(*(min(each) for each in zip(*found, strict=True)))


def read_so_far() -> int:
    """Return how many bytes this process has read, where Linux counts them."""
    counters = Path("/proc/self/io")
    return int(counters.read_text().split()[1]) if counters.exists() else 0


PLANS = {
    "no plan": {"epsilon": 10**6},
    "rho": {"rho": 10**6},
    "one loss": {"epsilon": 10**6, "losses": {"0.001": 10**5}},
    "many losses": {"epsilon": 10**6, "losses": {Fraction(n, 10**6): 9 for n in range(900, 1200)}},
    "groups": {"epsilon": 10**6, "groups": ["a", "b"]},
    "groups of a plan": {"epsilon": 10**6, "losses": {"0.001": 10**5}, "groups": ["a", "b"]},
}


@pytest.mark.parametrize("limits", PLANS.values(), ids=PLANS)
def test_the_work_of_a_booking_does_not_grow_with_the_history(
    make: Open, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 5000 entries a booking took 14.5 ms."""
    monkeypatch.setattr(_journal, "_sync", lambda file: None)
    budget, labels = make(**limits), map(str, itertools.count())
    views = [budget, *map(budget.group, budget.groups)]

    def book() -> None:
        for view in views:
            view.book("0.001", label=next(labels))

    def look() -> None:
        assert budget.remaining > 0
        assert budget.rho_spent >= 0
        assert (budget.rho_spent > 0) or budget.epsilon_spent > 0

    for _ in range(50):
        book()
    early = [work(book), work(look)]
    for _ in range(800):
        book()
    for before, after in zip(early, [work(book), work(look)], strict=True):
        assert after.bytecodes < 1.2 * before.bytecodes, (before, after)
        assert after.memory < before.memory + 1000, (before, after)
        # Each of up to three reads fills a buffer: 128 KiB since Python 3.14, which is more than
        # the early history, and 8 KiB before.
        ahead = 3 * len(views) * (io.DEFAULT_BUFFER_SIZE - 8192)
        assert after.read < before.read + ahead + 1000, (before, after)


def test_killed_between_booking_and_release_loses_budget(tmp_path: Path) -> None:
    code = (
        "import os, signal, geomdp\n"
        "class Killed(geomdp.GeometricMechanism):\n"
        "    def release(self, *_, **__):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "geomdp.accounting.Budget.open('a.db', epsilon=1).release(Killed(0.25), 3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert Budget.open(tmp_path / "a.db", epsilon=1).remaining == 0.75


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_share_a_ledger_and_refuse_a_copy_in_memory(tmp_path: Path) -> None:
    """Forked while another thread spends: no child inherits its transaction."""
    ledger, memory = Budget.open(tmp_path / "a.db", epsilon=100), Budget(100)
    stop = threading.Event()

    def spend() -> None:
        while not stop.is_set():
            ledger.book("0.01")
            memory.book("0.01")

    spender = threading.Thread(target=spend)
    spender.start()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_spend_in_child, args=(ledger, memory)) for _ in range(10)]
    try:
        for child in children:
            child.start()
        end = time.monotonic() + 30
        for child in children:
            child.join(max(end - time.monotonic(), 0))
            child.kill()
    finally:
        stop.set()
        spender.join()
    assert [child.exitcode for child in children] == [0] * 10
    labels = [each.label for each in ledger.history]
    assert len(set(labels) - {None}) == 10
    assert ledger.epsilon_spent == compose({"0.01": len(labels)})


def _spend_in_child(ledger: Budget, memory: Budget) -> None:
    ledger.book("0.01", label=f"child {os.getpid()}")
    with pytest.raises(RuntimeError, match="forked process has a copy of this budget"):
        memory.book("0.01")
    assert memory.remaining <= 100


def test_a_label_is_booked_once(make: Open) -> None:
    """A script that runs twice neither pays nor draws twice."""
    budget = make(1)
    budget.book("0.25", label="2026")
    table = tables.count(pd.Series(["a"], name="town"), ["a", "b"])
    for again in (
        lambda: budget.book("0.25", label="2026"),
        lambda: budget.spend(GeometricMechanism("0.25"), label="2026"),
        lambda: table.release(epsilon="0.25", budget=budget, label="2026"),
    ):
        with pytest.raises(
            ValueError, match=r"^label = '2026' .* booked at 2\d{3}-.* UTC\. Use its"
        ):
            again()
    assert budget.spent == [("2026", 0.25)]
    for label in (None, None, "2026, again"):
        budget.book("0.25", label=label)
    assert budget.remaining == 0
