"""What is released can be saved, read and asked; what cannot is refused before it is paid.

Designs are drawn at random from all that a design may state: lists, trees, and trees with records
of inner nodes, margins, chosen tables, limits, sums, thresholds, tiers and bounds.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism
from geomdp.accounting import Budget
from geomdp.tables import Design, Hierarchy, count
from geomdp.tables._answers.selection import Rows
from geomdp.tables._facts.axes import View
from geomdp.tables._math import weighted
from geomdp.tiers import TierPlan

#: Why a question has no answer, as its documentation says; each from public facts alone.
UNANSWERED = re.compile(
    "no released table has|of values that may be negative|has no number as its value|"
    "has bounds has|release with bounds|needs all combinations|"
    "totals are not accepted: tables of several uneven trees|of which it is another release of one"
)
TREES: list[dict[Any, Any]] = [
    {"A": "N", "B": "N", "C": "S", "N": "top", "S": "top"},
    {"A": "N", "B": "N", "C": "top", "N": "top"},
    {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "a": "t", "b": "t"},
    {1: 0, 2: 0, 3: 0},
]
LISTS: list[list[Any]] = [["p", "q", "r"], [1, 2], ["x", None], [0.5, 1.5, 2.5], ["one"]]


def any_design(rng: np.random.Generator) -> tuple[Design, pd.DataFrame]:
    """Return a design, which may be refused, and records for it."""
    levels: dict[Any, Any] = {}
    data: dict[str, Any] = {"who": rng.integers(0, 40, 120), "value": rng.integers(-9, 9, 120)}
    more: dict[str, Any] = {}
    for name in "uvw"[: rng.integers(0, 4)]:
        if rng.random() < 0.5:
            tree = Hierarchy(TREES[rng.integers(len(TREES))], leaves_only=bool(rng.integers(2)))
            levels[name], items = tree, tree.nodes
        else:
            levels[name] = items = LISTS[rng.integers(len(LISTS))]
        data[name] = [items[x] for x in rng.integers(0, len(items), 120)]
        known = {type(x) for x in items if x is not None}
        if rng.random() < 0.2:
            more.setdefault("other", {})[name] = {str: "else", int: 99, float: 99.5}[known.pop()]
        elif rng.random() < 0.2 and not isinstance(levels[name], Hierarchy):
            more.setdefault("margins", {})[name] = {str: "sum", int: 98, float: 98.5}[known.pop()]
    if rng.random() < 0.5:
        more["tables"] = list({any_table(rng, levels): None for _ in range(rng.integers(1, 4))})
    if rng.random() < 0.3:
        more |= {"individual": "who"} | ({"l1": 3} if rng.random() < 0.4 else {"l0": 2, "linf": 1})
    if rng.random() < 0.3:
        more["neighbours"] = "change"
    if rng.random() < 0.2:
        more |= {
            "unit": "person",
            "complete": tuple(x for x in levels if x not in more.get("other", ())),
        }
    return Design(levels, **more), pd.DataFrame(data)


def any_table(rng: np.random.Generator, levels: dict[Any, Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for name, items in levels.items():
        if rng.random() < 0.6:
            depth = isinstance(items, Hierarchy) and rng.random() < 0.5
            found.append((name, int(rng.integers(0, 4))) if depth else name)
    return tuple(found)


def any_release(rng: np.random.Generator, design: Design, frame: Any) -> Any:
    """Return a function that releases one table, for a budget, and returns all that it made."""
    kind = rng.integers(8)
    if kind == 0:
        pair = design.sum_and_count(frame, "value", bounds=(-5, 5))
        return lambda budget: [*pair.release(epsilon=2, budget=budget).values()]
    if kind == 1:
        low = int(rng.integers(-1, 1)) * 5
        table = design.sum(frame, "value", bounds=(low, 5) if design.l1 is None else None)
    else:
        table = design.count(frame)
    how: dict[str, Any] = {"epsilon": 2} | {3: {"at_least": 3}, 4: {"bounds": (0, 50)}}.get(
        kind, {}
    )
    if kind == 2:
        tiers = {"a": "0.1", "b": 2}
        return lambda budget: [*table.release(tiers=tiers, budget=budget).values()]
    if kind == 5:
        return lambda budget: [table.top(1, epsilon=2, budget=budget)]
    return lambda budget: [table.release(**how, budget=budget)]


def questions(noisy: Any, other: Any) -> Iterator[Any]:
    """Yield what a release can be asked."""
    labels = [axis.label for axis in noisy.design._axes]
    for alpha in (None, 0.1):
        for by in ((), *((x,) for x in labels[:1]), tuple(labels)):
            yield lambda by=by, alpha=alpha: noisy.total(by, alpha=alpha)
            yield lambda by=by, alpha=alpha: noisy.percent(by, alpha=alpha, simultaneous=True)
            yield lambda by=by, alpha=alpha: noisy.per(other, by=by, alpha=alpha)
            yield lambda by=by, alpha=alpha: noisy.change_since(other, by=by, alpha=alpha)
            yield lambda by=by, alpha=alpha: noisy.plus(other).total(by, alpha=alpha)
        yield lambda: noisy.combine(other).total((), alpha=0.1)
        yield lambda: noisy.with_totals(99).total((), alpha=0.1)
        for axis in noisy.design._axes:
            level = axis.levels[0]
            yield lambda x=axis.label, y=level, a=alpha: noisy.ratio({x: y}, {}, alpha=a)
            yield lambda x=axis.label, y=level, a=alpha: noisy.difference({x: y}, {}, alpha=a)
            yield lambda x=axis.label, a=alpha: noisy.quantile(x, 0.5, alpha=a)
            values = dict.fromkeys(axis.levels, 2)
            yield lambda x=axis.label, v=values, a=alpha: noisy.sum(x, values=v, alpha=a)
            yield lambda x=axis.label, v=values, a=alpha: noisy.mean(x, values=v, alpha=a)
    yield noisy.consistent


def check_answers(noisy: Any, other: Any, tmp_path: Path) -> int:
    """Save a release, read it, and ask it everything; return how many answers it has."""
    found = 0
    for ending in (".csv", ".parquet", ".html"):
        path = tmp_path / f"a{ending}"
        noisy.save(path, overwrite=True)
        if ending != ".html":
            again = geomdp.read(path, library="pandas")
            assert again.frame.equals(noisy.frame)
            assert again.design == noisy.design
            assert repr(again) == repr(noisy)
    if hasattr(noisy, "intervals"):
        for at_once in (False, True):
            ends = noisy.intervals(alpha=0.1, simultaneous=at_once)
            assert (ends["lower"] <= ends["upper"]).all()
            assert len(ends) == len(noisy.frame)
    if hasattr(noisy, "total"):
        assert len(noisy.estimates()) == len(noisy.frame)
        for ask in questions(noisy, other):
            try:
                ask()
                found += 1
            except ValueError as error:
                if not UNANSWERED.search(str(error)):
                    raise
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_released_is_answered_and_what_is_refused_is_not_paid(
    seed: int, tmp_path: Path
) -> None:
    rng, found = np.random.default_rng(seed), Counter[str]()
    for _ in range(12):
        try:
            design, frame = any_design(rng)
        except (KeyError, ValueError):
            found["no designs"] += 1
            continue
        budget = Budget(epsilon=9)
        try:
            release = any_release(rng, design, frame)
            released = release(budget)
        except (TypeError, ValueError):
            assert budget.epsilon_spent == 0
            assert budget.history == []
            found["refused"] += 1
            continue
        assert budget.epsilon_spent == 2
        for one, other in zip(released, release(Budget(9)), strict=True):
            found["answers"] += check_answers(one, other, tmp_path)
            found["released"] += 1
    assert found["released"] > 5
    assert found["answers"] > 40


def test_a_mechanism_that_cannot_draw_is_refused_before_it_is_paid(tmp_path: Path) -> None:
    tier, budget = TierPlan("0.1", ["0.1", 1]), Budget(epsilon=1)
    table = count(pd.Series(["no", "yes"]), ["no", "yes"])
    for call in (
        lambda: table.release(tier, budget=budget),
        lambda: table.release(tier, at_least=1, budget=budget),
        lambda: budget.release(tier, table),
        lambda: budget.release(tier, [3, 4]),
        lambda: table.release(tier, budget=budget, save=tmp_path / "a.csv"),
    ):
        with pytest.raises(TypeError, match="mechanism has type TierPlan: give"):
            call()
    assert budget.history == []
    assert not [*tmp_path.iterdir()]
    assert table.release(GeometricMechanism(1), budget=budget).epsilon == 1


def test_bounds_with_cells_of_several_depths_are_refused_before_they_are_paid() -> None:
    budget = Budget(epsilon=1)
    counted = Design({"place": Hierarchy({"A": "N", "B": "N", "C": "top", "N": "top"})}).count(
        pd.DataFrame({"place": ["A", "C"]})
    )
    with pytest.raises(ValueError, match="tree of 'place', whose cells differ in depth"):
        counted.release(GeometricMechanism(1, 3, bounds=(0, 9)), budget=budget)
    assert budget.history == []
    assert counted.release(epsilon=1, budget=budget).intervals() is not None


def dense(noisy: Any) -> tuple[Any, Any]:
    """Return the least squares of all rows over all products of cells, and their variances."""
    axes, rows, counts, weights = noisy.design._axes, [], [], []
    inside = []
    for axis in axes:
        matrix = np.zeros((axis.tree.size, len(axis.cells)))
        for column, cell in enumerate(axis.tree.cells.tolist()):
            node = cell
            while node >= 0:
                matrix[node, column] = 1
                node = int(axis.tree.parents[node])
        inside.append(matrix)
    for block, mechanism in noisy.mechanisms.items():
        row = np.ones((1, 1))
        for each, axis, depth in zip(inside, axes, block, strict=True):
            row = np.kron(row, each[axis.tree.level(depth)])
        rows.append(row)
        counts.append(noisy._values[noisy.design._parts[block]].reshape(-1))
        weights.append(np.full(len(row), weighted.variance(float(mechanism.rate)) ** -0.5))
    matrix, scale = np.concatenate(rows), np.concatenate(weights)[:, None]
    fit, *_ = np.linalg.lstsq(matrix * scale, np.concatenate(counts) * scale[:, 0], rcond=1e-11)
    spread = np.linalg.pinv((matrix * scale).T @ (matrix * scale), rcond=1e-11)
    return matrix @ fit, np.diag(matrix @ spread @ matrix.T)


def open_designs() -> Iterator[Design]:
    """Yield designs of chosen tables with trees, of which most have records of inner nodes."""
    rng = np.random.default_rng(3)
    for _ in range(35):
        loose = rng.random(2) < 0.7
        u, v = (Hierarchy(TREES[n], leaves_only=not loose[n]) for n in (0, 1))
        keys = []
        for _ in range(rng.integers(1, 5)):
            items = ("x", ("u", int(rng.integers(3))), ("v", int(rng.integers(3))))
            keys.append(tuple(x for x in items if rng.random() < 0.75))
        with suppress(ValueError):  # The same table twice, by the depth 0 of a tree.
            yield Design({"x": list("pqr"), "u": u, "v": v}, tables=list(dict.fromkeys(keys)))


def test_estimates_of_open_trees_beside_any_tables_are_the_least_squares() -> None:
    """A chosen table of a depth below the root was estimated as 0 in every row."""
    rng, found = np.random.default_rng(3), 0
    frame = pd.DataFrame(
        {
            "x": rng.choice(list("pqr"), 300),
            "u": rng.choice([*"ABC", "N", "S"], 300),
            "v": rng.choice([*"ABC", "N"], 300),
        }
    )
    for design in open_designs():
        budget = Budget(epsilon=2)
        try:
            noisy = design.count(frame).release(epsilon=2, budget=budget)
        except ValueError as error:
            if "several uneven trees" not in str(error):
                raise
            assert not budget.history
            continue
        wanted, variances = dense(noisy)
        assert noisy.estimates()["estimate"].to_numpy() == pytest.approx(wanted, abs=1e-6)
        found, start = found + 1, 0
        for block in design.blocks:
            nodes = [
                np.arange(x.tree.size)[x.tree.level(depth)]
                for x, depth in zip(design._axes, block, strict=True)
            ]
            views = tuple(View(each, None) for each in design._axes)
            asked = noisy._asked(Rows((0, 1, 2), tuple(nodes), views), {})
            own = np.empty([each.size for each in nodes])
            for index, errors in asked.kinds()[1]:
                own[index] = errors.variances[0]
            end = start + own.size
            assert own.reshape(-1) == pytest.approx(variances[start:end], rel=1e-9)
            # Those that are found in two passes are no less.
            [source], reaches = asked.sources, asked.reaches((1,), 0.05)
            bounds = noisy._workload.bounds(source.rooted[0], source.nodes, 0.05)
            assert (bounds.reshape(-1) >= reaches.reshape(-1) - 1e-9).all()
            start = end
    assert found > 15
