"""Budgets of groups that no individual shares: exactly what any one individual loses, and no more.

And every call that books: what it refuses is refused before anything is booked.
"""

import inspect
import itertools
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from geomdp import GeometricMechanism, tables
from geomdp.accounting import Budget, compose
from geomdp.tables import Design, Hierarchy, streams
from geomdp.tables.streams import Stream
from leaves import of_leaves
from modules import signature

GROUPS = ("a", "b", "c")


class Count(NamedTuple):
    """A release of the number of people of some groups, or of all, clamped to 0 to 2."""

    groups: tuple[str, ...] | None
    epsilon: float

    def pmf(self, people: dict[str, int]) -> list[float]:
        """Return the probabilities of 0, 1 and 2."""
        x = min(sum(people.values() if self.groups is None else map(people.get, self.groups)), 2)
        a = math.exp(-self.epsilon)
        tail = [a ** abs(x - y) / (1 + a) for y in range(3)]
        return (
            [tail[0], (1 - a) * tail[1], tail[2]] if x != 1 else [tail[0], 1 - 2 * tail[0], tail[2]]
        )


RELEASES = [
    [Count(("a",), 0.5), Count(("b",), 0.25), Count(("b",), 0.5), Count(None, 0.125)],
    [Count(("a", "b"), 0.5), Count(("c",), 0.75), Count(("b", "c"), 0.125)],
    [Count(None, 0.5), Count(None, 0.25)],
    [Count(("a",), 1.0), Count(("b",), 1.0), Count(("c",), 1.0), Count(("a", "b", "c"), 0.5)],
]


def joint(releases: Sequence[Count], people: dict[str, int]) -> np.ndarray:
    """Return the probability of each sequence of outputs."""
    found = np.ones(1)
    for each in releases:
        found = np.multiply.outer(found, each.pmf(people)).ravel()
    return found


def neighbours() -> Iterator[tuple[dict[str, int], dict[str, int], str]]:
    """Yield all small data sets with one individual more in one group, and that group."""
    for counts in itertools.product(range(2), repeat=len(GROUPS)):
        people = dict(zip(GROUPS, counts, strict=True))
        for name in GROUPS:
            yield people, people | {name: people[name] + 1}, name


def booked(releases: Sequence[Count], budget: Budget) -> Budget:
    for each in releases:
        view = budget if each.groups is None else budget.group(*each.groups)
        view.spend(GeometricMechanism(each.epsilon, bounds=(0, 2)))
    return budget


@pytest.mark.parametrize("releases", RELEASES)
def test_what_is_spent_is_the_loss_of_all_outputs_for_any_individual(
    releases: list[Count],
) -> None:
    """Over all sequences of outputs, of each pair of neighbours; by epsilon, delta and rho."""
    budget = booked(releases, Budget(9, groups=GROUPS))
    by_rho = booked(releases, Budget(rho=9, groups=GROUPS))
    lost = dict.fromkeys(GROUPS, 0.0)
    rhos = {name: by_rho.group(name).rho_spent for name in GROUPS}
    assert by_rho.rho_spent == max(rhos.values())
    epsilons = {
        (name, delta): [each.group(name).epsilon_at(delta) for each in (budget, by_rho)]
        for name in GROUPS
        for delta in (1e-3, 0.1)
    }
    for (_, delta), found in epsilons.items():
        worst = [each.epsilon_at(delta) for each in (budget, by_rho)]
        assert all(x <= most for x, most in zip(found, worst, strict=True))
    for one, other, name in neighbours():
        for p, q in itertools.permutations([joint(releases, one), joint(releases, other)]):
            assert p.sum() == pytest.approx(1)
            log = np.log(p / q)
            lost[name] = max(lost[name], float(log.max()))
            for order in (1.5, 2, 8):
                divergence = math.log(float(p @ np.exp((order - 1) * log))) / (order - 1)
                assert divergence <= rhos[name] * order + 1e-12
            for (own, delta), found in epsilons.items():
                if own == name:
                    for epsilon in found:
                        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta + 1e-12
    for name, loss in lost.items():
        assert budget.group(name).epsilon_spent == pytest.approx(loss, abs=1e-12)
    assert (
        budget.epsilon_spent
        == by_rho.epsilon_spent
        == max(budget.group(name).epsilon_spent for name in GROUPS)
    )


def test_an_individual_who_moves_loses_the_sum_of_two_groups() -> None:
    """Hence the group has to be a fixed fact, and tables of changes are refused (lemma 14g)."""
    releases = [Count(("a",), 0.5), Count(("b",), 0.75), Count(("c",), 0.25)]
    budget = booked(releases, Budget(9, groups=GROUPS))
    p, q = (joint(releases, dict(zip(GROUPS, x, strict=True))) for x in ((1, 0, 1), (0, 1, 1)))
    moved = float(np.log(p / q).max())
    assert moved == pytest.approx(0.5 + 0.75)
    assert budget.epsilon_spent == 0.75 < moved
    assert budget.group("a").epsilon_spent + budget.group("b").epsilon_spent == 1.25
    people = pd.DataFrame({"who": [1], "town": ["x"]})
    design = Design({"town": ["x", "y"]}, individual="who", l0=1, neighbours="change")
    for call in (
        lambda each: design.count(people).release(epsilon=1, budget=each),
        lambda each: design.count(people).top(1, epsilon=1, budget=each),
        lambda each: each.release(GeometricMechanism(1, 2), design.count(people)),
    ):
        with pytest.raises(ValueError, match="neighbours='change' is not accepted for a group"):
            call(budget.group("a"))
        assert len(budget.history) == 3
        call(Budget(1, groups=GROUPS))


@pytest.fixture(params=["memory", "ledger"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Budget]:
    path = tmp_path / "a.jsonl"
    return Budget if request.param == "memory" else lambda **limits: Budget.open(path, **limits)


def refuses(budget: Budget, loss: Fraction, limits: dict[str, Any]) -> bool:
    """Return whether a budget refuses a loss, which it is not told of."""
    trial = Budget(**limits)
    for each in budget.history:
        trial.book(each.loss)
    try:
        trial.book(loss)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("limits", [{"epsilon": 2}, {"rho": "0.5"}])
def test_each_group_is_limited_as_if_it_were_the_only_one(
    limits: dict[str, Any], make: Callable[..., Budget]
) -> None:
    """Against a budget without groups for each of them, which is told the releases that it sees."""
    seed = random.randrange(2**32)
    chance, budget = random.Random(seed), make(groups=GROUPS, **limits)
    alone = {name: Budget(**limits) for name in GROUPS}
    choices = [None, *(x for n in (1, 1, 2, 3) for x in itertools.combinations(GROUPS, n))]
    refused = 0
    for step in range(60):
        groups, loss = chance.choice(choices), Fraction(chance.randrange(40), 100)
        view = budget if groups is None else budget.group(*groups)
        assert view.remaining == min(alone[name].remaining for name in groups or GROUPS), seed
        try:
            view.book(loss, label=f"{step}")
        except ValueError:
            refused += 1
            assert any(refuses(alone[name], loss, limits) for name in groups or GROUPS), seed
            continue
        for name in groups or GROUPS:
            alone[name].book(loss, label=f"{step}")
    assert refused
    for name, other in alone.items():
        view = budget.group(name)
        assert [each[:3] for each in view.history] == [each[:3] for each in other.history]
        for of in (lambda x: x.epsilon_spent, lambda x: x.rho_spent, lambda x: x.epsilon_at(1e-3)):
            assert of(view) == of(other), seed
    for of in (lambda x: x.epsilon_spent, lambda x: x.rho_spent, lambda x: x.epsilon_at(1e-3)):
        assert of(budget) == max(map(of, alone.values())), seed


def test_no_individual_uses_up_more_than_was_planned(make: Callable[..., Budget]) -> None:
    """At each step, and whatever is booked in whichever order; groups share no planned loss."""
    seed = random.randrange(2**32)
    chance, plan = random.Random(seed), Counter({Fraction(n, 16): 3 for n in (1, 2, 4)})
    budget = make(epsilon=3, delta="1e-3", losses=plan, groups=GROUPS)
    choices = [None, *(x for n in (1, 1, 2) for x in itertools.combinations(GROUPS, n))]
    refused = 0
    for _ in range(60):
        groups, loss = chance.choice(choices), Fraction(chance.randrange(1, 9), 32)
        view = budget if groups is None else budget.group(*groups)
        used = {
            name: sum((Counter({x.cost: 1}) for x in budget.group(name).history), Counter())
            for name in GROUPS
        }
        left = [x for x in plan if all(used[name][x] < plan[x] for name in groups or GROUPS)]
        assert view.remaining == max(left, default=0), seed
        if fitting := [x for x in left if x >= loss]:
            view.book(loss)
            assert budget.history[-1].cost == min(fitting), seed
        else:
            refused += 1
            with pytest.raises(ValueError, match="no planned release"):
                view.book(loss)
    assert refused
    assert budget.epsilon_spent == compose(plan, "1e-3")


def test_a_plan_is_used_up_by_each_group_apart(make: Callable[..., Budget]) -> None:
    budget = make(epsilon=1, losses={"1/4": 2, "1/2": 1}, groups=["a", "b"])
    for name in ("a", "b"):
        budget.group(name).book("1/4", label="May")
        budget.group(name).book("1/4", label="June")
    with pytest.raises(ValueError, match=r"of privacy loss 0\.75 or more"):
        budget.group("a").book("0.75")
    budget.book("1/8", label="all")
    assert [each.cost for each in budget.history] == [Fraction(1, 4)] * 4 + [Fraction(1, 2)]
    assert budget.remaining == budget.group("a").remaining == 0


def test_a_label_is_booked_once_for_the_same_groups(make: Callable[..., Budget]) -> None:
    budget = make(epsilon=9, groups=GROUPS)
    views = [budget, budget.group("a"), budget.group("b"), budget.group("b", "a")]
    for view in views:
        view.book(1, label="2026")
    for view in (*views, budget.group("a", "b"), budget.group("a", "b").group("a")):
        with pytest.raises(ValueError, match="label = '2026' is not accepted"):
            view.book(1, label="2026")
    assert [each.groups for each in budget.history] == [None, ("a",), ("b",), ("a", "b")]
    assert [each.groups for each in budget.group("c").history] == [None]
    assert (budget.epsilon_spent, budget.group("c").epsilon_spent) == (3, 1)


def test_a_ledger_keeps_its_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    names = ["Schweden", "Norwegen", "\u00c5land", "\U0001f600", "None"]
    budget = Budget.open(path, epsilon=1, groups=iter(names))
    budget.group("\u00c5land", "Norwegen").book("0.5")
    budget.book("0.25")
    for given in ({}, {"groups": names}, {"groups": reversed(names)}, {"epsilon": 1}):
        again = Budget.open(path, **given)
        assert again.groups == tuple(sorted(names))
        assert again.history == budget.history
        assert again.group("None").remaining == 0.75
        assert again.remaining == 0.25
    for other in ([], names[1:], [*names, "more"]):
        with pytest.raises(ValueError, match=r"groups = \[.*\] is not accepted: give that of the"):
            Budget.open(path, groups=other)
    budget.backup(path.with_name("copy"))
    assert Budget.open(path.with_name("copy")).history == budget.history
    assert Budget.open(tmp_path / "b", epsilon=1).groups == ()
    with pytest.raises(ValueError, match="groups = "):
        Budget.open(tmp_path / "b", groups=["a"])
    with pytest.raises(TypeError, match="groups has type dict: give several names"):
        Budget(epsilon=1, groups={"Norway": ["Oslo"]})


def test_groups_that_a_head_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a set of limits of \d+ bytes is not accepted"):
        Budget.open(tmp_path / "a", epsilon=1, groups=map(str, range(10**6)))
    assert not list(tmp_path.iterdir())


def test_notebooks_show_the_groups() -> None:
    budget = Budget(1, groups=["<a>", "b"])
    budget.group("<a>").book(0.5, label="May")
    assert repr(budget) == "<Budget: 0.5 of 1 spent>"
    assert repr(budget.group("b")) == "<Budget for ('b',): 0.0 of 1 spent>"
    assert "1. May (" in budget._repr_html_()
    assert "<a>" not in budget._repr_html_()


BOOKING = """
import sys
from geomdp.accounting import Budget
budget = Budget.open("a.jsonl", epsilon=3, groups=["a", "b"])
view = budget if sys.argv[1] == "everyone" else budget.group(sys.argv[1])
print("ready", flush=True)
sys.stdin.read(1)
for n in range(200):
    try:
        view.book("0.1", label=f"{n}")
    except ValueError as error:
        assert "is left" in str(error), error
        break
"""


@pytest.mark.parametrize("crash", [False, True])
def test_processes_book_for_different_groups_at_once(tmp_path: Path, crash: bool) -> None:
    """One of them may be killed between any two of its steps; the others go on."""
    Budget.open(tmp_path / "a.jsonl", epsilon=3, groups=["a", "b"])
    names = ["a", "b", "everyone"]
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", BOOKING, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=tmp_path,
        )
        for name in names
    ]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write(b"x")
        runner.stdin.flush()
    if crash:
        runners[2].kill()
    for runner in runners:
        runner.communicate(timeout=60)
    assert [runner.returncode for runner in runners[:2]] == [0, 0]
    budget = Budget.open(tmp_path / "a.jsonl")
    n = Counter(each.groups for each in budget.history)
    for name in ("a", "b"):
        # Who is not killed stops when a step more would be too much.
        assert n[None] + n[(name,)] == 30
        assert budget.group(name).remaining == 0
    assert len({(each.label, each.groups) for each in budget.history}) == n.total()


# Every call that books


PEOPLE = pd.DataFrame({"who": [1, 2, 3], "town": ["x", "y", "x"]})
TABLE = Design({"town": ["x", "y"]}, individual="who", l0=1).count(PEOPLE)
TREE = Hierarchy({"x": "all", "y": "all"}, leaves_only=True)
VISITS = Design({"town": ["x", "y"]}, individual="who", l0=2)
PAIR = VISITS.sum_and_count(PEOPLE, "who", bounds=(0, 3))
ONE = GeometricMechanism(1)
#: Each call that books a release of itself: good arguments, and bad values of each.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, list[Any]]]] = {
    "Budget.release": (
        lambda budget, label, **more: budget.release(label=label, **more),
        {"mechanism": ONE, "counts": [1, 2]},
        {
            "mechanism": [None, 1, [1, 2], "x"],
            "counts": [
                None,
                0.5,
                "12",
                b"12",
                [0.5],
                [1, "2"],
                [[1], [1, 2]],
                {"a": 0.5},
                {1.5},
                True,
                [True],
                2**63,
                [2**63],
                np.array([0.5]),
                np.array([True]),
                np.array(["1"]),
                np.ma.masked_array([1, 2], [True, False]),
                np.array([1], object),
                np.array([1], np.uint8),
                np.uint64(1),
                pd.Series([0.5]),
                pd.Series([True]),
                pd.Series(["a"]),
                pd.Series([1, None], dtype="Int64"),
                pd.DataFrame({"a": [1]}),
                pd.Series([1], dtype="uint64"),
                pd.Series([1, None], dtype="int64[pyarrow]"),
                object(),
                iter([1]),
                lambda: 1,
                TREE,
            ],
            "d_in": [-1, 0.5, "1"],
        },
    ),
    "Table.release": (
        TABLE.release,
        {"epsilon": 1},
        {
            "epsilon": [None, 0, -1, "x", math.nan, math.inf, "1e-300", 1e300],
            "mechanism": [1, ONE],
            "bounds": [1, (2, 1), (0.5, 1), (0, 2**70)],
            "shares": [1, {"town": [1, 2]}, {"other": [1]}],
            "at_least": [0.5, "x", 0],
            "threads": [-1, 0.5, "x"],
            "corrects": [1, TABLE, "x"],
            "save": [1, "x", "no/x.csv", "x.xlsx"],
        },
    ),
    "Table.top": (
        TABLE.top,
        {"k": 1, "epsilon": 1},
        {
            "k": [0, 3, 0.5, "x", None],
            "epsilon": [None, 0, -1, "x", math.nan, math.inf, "1e-300", 1e300],
            "threads": [-1, 0.5, "x"],
            "corrects": [1, TABLE],
            "save": [1, "x", "no/x.csv"],
        },
    ),
    "SumAndCount.release": (
        PAIR.release,
        {"epsilon": 1},
        {
            "epsilon": [None, 0, -1, "x", math.nan, math.inf, "1e-300", 1e300],
            "share": [None, 0, 1, "x"],
            "threads": [-1, 0.5, "x"],
            "corrects": [1, TABLE],
            "save": [
                *(1, "x", ("a.csv", "b.csv"), {"sums": "a.csv"}),
                *({"sums": "a.csv", "counts": other} for other in ("no/x.csv", "x.xlsx", "a.csv")),
            ],
        },
    ),
    "choose_limit": (
        tables.choose_limit,
        {"design": VISITS, "data": PEOPLE, "limit": "l0", "epsilon": 1},
        {
            "design": [None, TABLE],
            "data": [None, 1, PEOPLE[["who"]]],
            "limit": [None, "l1", "linf2", 1],
            "epsilon": [None, 0, -1, "x", math.nan, math.inf, "1e-300", 1e300],
            "share": [None, 0, 1, "x"],
            "limits": [1, [], [0], [2, 1], ["x"]],
            "corrects": [1, TABLE],
            "save": [1, "x", "no/x.csv"],
        },
    ),
    "Stream.open": (
        Stream.open,
        {"path": "a.jsonl", "epsilon": 1, "horizon": 9},
        {
            "path": [1, None, "no/a.jsonl", "\0", "."],
            "horizon": [0, 0.5, "x", 10**6, None],
            "epsilon": [None, 0, -1, "x", math.nan, math.inf, "1e-300", 1e300],
            "arity": [1, 0.5, "x"],
            "l0": [0, 0.5, None],
            "linf": [0, 0.5, None],
        },
    ),
    "Budget.spend": (
        lambda budget, label, **more: budget.spend(label=label, **more),
        {"mechanism": ONE},
        {"mechanism": [None, 1, "x"], "d_in": [-1, 0.5, "1"]},
    ),
    "Budget.book": (
        lambda budget, label, **more: budget.book(label=label, **more),
        {"loss": 1},
        {"loss": [None, -1, "x", math.nan, math.inf, {1: -1}, {-1: 1}, {"x": 1}, [1]]},
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("grouped", [False, True])
def test_what_a_call_refuses_is_refused_before_it_is_booked(
    name: str, grouped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Budget.release booked counts that the mechanism then refused."""
    monkeypatch.chdir(tmp_path)
    call, good, bad = CALLS[name]
    budget = Budget(10**9, groups=["a"])
    view = budget.group("a") if grouped else budget
    for parameter, values in (bad | {"label": [1, b"x", ("x",)]}).items():
        for value in values:
            given = good | {"label": "May", parameter: value}
            if parameter == "mechanism" and name == "Table.release":
                given["epsilon"] = 1
            try:
                call(budget=view, **given)
            except (TypeError, ValueError, OverflowError, OSError, KeyError):
                assert not budget.history, (parameter, value)
                continue
            raise AssertionError(f"{name} accepts {parameter} = {value!r}")


def test_every_call_that_books_is_listed() -> None:
    found = {
        f"Budget.{name}"
        for name in dir(Budget)
        if name[0] != "_"
        and callable(call := getattr(Budget, name))
        and "label" in signature(call).parameters
    }
    for module in (tables, streams):
        for public in (getattr(module, each) for each in module.__all__):
            if inspect.isfunction(public) and "budget" in signature(public).parameters:
                found.add(public.__name__)
            for name in dir(public) if inspect.isclass(public) else ():
                call = getattr(public, name)
                # A warning has methods of C without a signature.
                ours = inspect.isfunction(call) or inspect.ismethod(call)
                if name[0] != "_" and ours and "budget" in signature(call).parameters:
                    found.add(f"{public.__name__}.{name}")
    # A report reads a budget, and books nothing.
    assert found == CALLS.keys() | {"report"}


@pytest.mark.parametrize("name", [name for name in CALLS if name[:7] != "Budget."])
def test_what_is_no_budget_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stream.open had an AttributeError for it."""
    monkeypatch.chdir(tmp_path)
    call, good, _ = CALLS[name]
    for other in (1, "a", TABLE, ["a"]):
        with pytest.raises(TypeError, match=r"budget .* a Budget$"):
            call(budget=other, **good)
    assert not list(tmp_path.iterdir())


def test_tables_and_streams_are_booked_for_a_group(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "budget.jsonl", epsilon=9, groups=["a", "b"])
    view = budget.group("a")
    first = TABLE.release(epsilon=1, budget=view, label="1", save=tmp_path / "1.csv")
    TABLE.release(epsilon=1, budget=view, label="2", corrects=first)
    TABLE.release(epsilon=1, budget=view, label="3", at_least=5)
    TABLE.top(1, epsilon=1, budget=view, label="4")
    of_leaves(TREE, [1, 2], unit="who").release(epsilon=1, budget=view, label="5")
    view.release(ONE, TABLE, label="6")
    view.release(ONE, [1, 2], label="7")
    view.spend(ONE, label="8")
    Stream.open(tmp_path / "9", epsilon=1, horizon=9, budget=view, unit="who")
    assert {each.groups for each in budget.history} == {("a",)}
    assert [each.label for each in view.history] == [*"123456789"]
    assert (view.remaining, budget.group("b").remaining, budget.remaining) == (0, 9, 0)
