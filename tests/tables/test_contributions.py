"""How much an individual changes a table, by enumeration, and its privacy loss in many releases."""

import functools
import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting, tables
from geomdp.accounting import loss_distribution
from geomdp.accounting._compose import zcdp_of
from geomdp.tables import Hierarchy
from geomdp.tables._count import contributions, counting
from geomdp.tables._facts import layout
from geomdp.tables._facts.exact_sums import all_nodes

#: Two ways of travel are not counted.
PLACES = list(itertools.product("abc", ["bus", "car", "boat", "foot"]))


def changes(records: set[Any], levels: Any, options: dict[str, Any]) -> set[tuple[int, ...]]:
    """Return how much each set of records of an individual changes the cells of a table."""
    of_one = {}
    for town, by in PLACES:
        frame = pl.DataFrame({"town": [town], "by": [by]})
        of_one[town, by] = tables.count(frame, levels, **options).frame["count"].to_numpy()
    empty = 0 * of_one[PLACES[0]]
    sums = (sum((of_one[place] for place in each), empty) for each in records)
    return {tuple(sorted(filter(None, each.tolist()), reverse=True)) for each in sums}


def kept(l0: int, linf: int, cells: list[str] | None) -> set[Any]:
    """Return what `tables.bound_contributions` may keep of an individual: all that is bounded."""
    most = l0 if cells is None else l0 * linf
    found = set()
    for size in range(most + 1):
        for rows in itertools.combinations_with_replacement(PLACES, size):
            owned = Counter(row[: len(cells)] if cells else row for row in rows)
            if cells is None or (len(owned) <= l0 and max(owned.values(), default=0) <= linf):
                found.add(rows)
    return found


@functools.cache
def masses_of_losses(change: tuple[int, ...], rate: float) -> dict[float, float]:
    """Return the losses of one release of ideal noise whose cells change by these numbers."""
    a, losses = math.exp(-rate), {0.0: 1.0}
    for t in change:
        one = {0: 1 / (1 + a), t: a**t / (1 + a)}
        one |= {k: (1 - a) * a**k / (1 + a) for k in range(1, t)}
        wide: dict[float, float] = {}
        for loss, p in losses.items():
            for k, q in one.items():
                total = round(loss + rate * (t - 2 * k), 9)
                wide[total] = wide.get(total, 0.0) + p * q
        losses = wide
    return losses


def delta_of(change: tuple[int, ...], rate: float, epsilon: float) -> float:
    """Return the delta of such a release."""
    losses = masses_of_losses(change, rate)
    return sum(p * max(0.0, 1 - math.exp(epsilon - loss)) for loss, p in losses.items())


BOTH = {"town": ["a", "b"], "by": ["bus", "car"]}
#: What is counted; the columns of the cells; and whether each cell of the table is one of those.
TABLES: list[tuple[Any, dict[str, Any], Any, bool]] = [
    (BOTH, {}, ["town", "by"], True),
    (BOTH, {"other": "else"}, ["town", "by"], False),
    (BOTH, {"other": {"by": "else"}}, ["town", "by"], False),
    (BOTH, {"margins": "all"}, ["town", "by"], False),
    (BOTH, {"margins": {"by": "all"}}, ["town", "by"], False),
    (BOTH, {"margins": "all", "other": "else"}, ["town", "by"], False),
    ({"town": ["a", "b"]}, {}, ["town", "by"], False),
    (BOTH, {}, ["town"], False),
    (BOTH, {}, None, False),
]


@pytest.mark.parametrize("bounds", [(1, 2), (2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize(("levels", "options", "cells", "same"), TABLES)
def test_loss_distribution_covers_what_an_individual_changes(
    levels: Any, options: Any, cells: Any, same: bool, bounds: tuple[int, int]
) -> None:
    """Enumerates all records that may be kept of one individual."""
    l0, linf = bounds[0], bounds[1] if cells else 1
    rate, sensitivity = 0.5, 2 ** len(levels) if options.get("margins") == "all" else 1
    if isinstance(options.get("margins"), dict):
        sensitivity = 2
    mechanism = GeometricMechanism(rate)
    right = loss_distribution(mechanism, l0=sensitivity, linf=l0 * linf)
    if same:
        right = loss_distribution(mechanism, l0=l0, linf=linf)
    wrong, exceeded = loss_distribution(mechanism, l0=l0, linf=linf), False
    found = changes(kept(l0, linf, cells), levels, options)
    for epsilon in (0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0):
        worst = max(delta_of(change, rate, epsilon) for change in found)
        assert worst <= right.delta_at(epsilon) * (1 + 1e-6)
        exceeded |= worst > wrong.delta_at(epsilon) * (1 + 1e-6)
    # The bounds themselves would promise too little wherever cells are merged.
    finer = cells == ["town"]
    merged = "margins" in options or (l0 > 1 and not same and not finer)
    assert exceeded == merged


def test_lemma_14a_for_pairs_of_changes() -> None:
    """A unit moved from the smaller change to the larger one never lowers delta."""
    for d, e in itertools.combinations_with_replacement(range(1, 7), 2):
        for rate, epsilon in itertools.product((0.1, 0.7, 2.0), np.linspace(0, 12, 13)):
            spread = delta_of((d, e), rate, epsilon)
            assert spread <= delta_of(tuple(filter(None, (d - 1, e + 1))), rate, epsilon) + 1e-12


#: Columns of designs, with more.
SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a list": ({"x": ["a", "b", "c"]}, {}),
    "a cell": ({"x": ["a"]}, {}),
    "two cells": ({"x": ["a", "b"]}, {}),
    "a tree": ({"x": Hierarchy({"a": "r", "b": "r", "c": "b", "d": "b"})}, {}),
    "a tree and a list": ({"x": Hierarchy({"a": "r", "b": "r", "c": "r"}), "y": [0, 1]}, {}),
    "a margin": ({"x": ["a", "b", "c"], "y": [0, 1]}, {"margins": {"x": "all"}}),
    "margins": ({"x": ["a", "b"], "y": [0, 1]}, {"margins": {"x": "all", "y": 2}}),
    "others and a margin": ({"x": ["a", "b"]}, {"other": "else", "margins": "all"}),
}


def parts(design: tables.Design) -> list[tuple[int, ...]]:
    """Return all that one individual may add to the cells of a design."""
    low, high = design.values or (0, design.linf)
    if design.l1 is not None:
        low, high = -design.l1 if low else 0, design.l1 if high else 0
    cells = itertools.product(range(low, high + 1), repeat=math.prod(design._axes.sizes))
    if design.l1 is not None:
        return [each for each in cells if sum(map(abs, each)) <= design.l1]
    return [each for each in cells if np.count_nonzero(each) <= design.l0]


def two_sided(design: tables.Design) -> bool:
    """Return whether values of an individual may have both signs."""
    return design.values is not None and 0 not in design.values


@pytest.mark.parametrize("neighbours", ["add-remove", "change"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "limits",
    [
        *({"l0": l0, "linf": linf} for l0, linf in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]),
        {"l1": 1},
        {"l1": 3},
        *({"l0": l0, "values": ends} for l0, ends in [(1, (-1, 2)), (2, (-1, 1)), (3, (-1, 0))]),
        *({"l1": 2, "values": ends} for ends in [(-1, 2), (-2, 0)]),
    ],
)
def test_what_one_individual_changes_is_bounded_block_by_block(
    shape: str, neighbours: Any, limits: dict[str, Any]
) -> None:
    """Over all records of an individual: the k greatest changes of each block, and the loss.

    Where an individual could leave two of four cells for the other two, it was booked as if it left
    one for three, which have fewer margins to themselves.
    """
    levels, options = SHAPES[shape]
    design = tables.Design(levels, individual="who", neighbours=neighbours, **options, **limits)
    l0 = design.l0
    every = np.arange(math.prod(design._axes.sizes))
    nodes = {
        each: tables.Table(design, None, (every, np.array(each)))._nodes() for each in parts(design)
    }
    pairs = itertools.product(nodes.values(), repeat=2)
    if neighbours == "add-remove":
        pairs = ((each, 0 * each) for each in nodes.values())
    changes = [one - other for one, other in pairs]
    for block in design.blocks:
        bound = sorted(
            (size for n, size in layout.changes(design, block) for _ in range(n)), reverse=True
        )
        most = np.cumsum(bound)
        assert "l1" in limits or most[-1] <= design._step * every.size
        k = min(len(most), np.abs(changes[0][design._axes.block(block)]).size)
        reached = np.zeros(k, np.int64)
        for change in changes:
            found = np.sort(np.abs(change[design._axes.block(block)]).reshape(-1))[::-1].cumsum()
            assert (found[:k] <= most[:k]).all()
            assert found[-1] <= most[-1]
            reached = np.maximum(reached, found[:k])
        # No greater than needed.
        assert neighbours == "change" or reached.tolist() == most[:k].tolist()
        # A sum over all cells changes by no more than what joins them or leaves them.
        if bound == [most[-1]]:
            assert most[-1] <= (1 if "l1" in limits else l0) * design._step
    sizes = {tuple(sorted(filter(None, np.abs(each).flat), reverse=True)) for each in changes}
    assert max(map(sum, sizes)) <= design.sensitivity
    if neighbours == "add-remove" or ((l0 == 1 or "l1" in limits) and not two_sided(design)):
        assert max(map(sum, sizes)) == design.sensitivity
    if len(design.blocks) == 1:
        assert max(map(sum, sizes)) == design.sensitivity == layout.change(design)
    losses = design.loss_distribution(epsilon=Fraction(design.sensitivity, 2))
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        worst = max(delta_of(each, 0.5, epsilon) for each in sizes)
        assert worst <= losses.delta_at(epsilon) * (1 + 1e-6) + 1e-14


#: Trees of small designs, some with nodes alone at their depth, or with few deep leaves.
TREES: list[dict[str, str]] = [
    {"a": "r"},
    {"a": "r", "b": "r"},
    {"a": "r", "b": "a"},
    {"a": "r", "b": "r", "c": "b"},
    {"a": "r", "b": "r", "c": "b", "d": "b"},
    {"a": "r", "b": "a", "c": "a", "d": "b"},
]
LIMITS: list[dict[str, Any]] = [
    *({"l0": l0, "linf": linf} for l0, linf in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (4, 1)]),
    *({"l1": 1}, {"l1": 2}),
    *({"l0": l0, "values": ends} for l0, ends in [(1, (-2, 1)), (2, (-1, 1)), (3, (-1, 0))]),
    {"l1": 2, "values": (-1, 2)},
]


def small_design(rng: random.Random) -> tables.Design:
    """Return a design of few cells."""
    levels: dict[str, Any] = {}
    for label in "xy"[: rng.randint(1, 2)]:
        tree = Hierarchy(rng.choice(TREES), leaves_only=rng.random() < 0.5)
        levels[label] = tree if rng.random() < 0.5 else list(range(rng.randint(1, 3)))
    margins = {x: 9 for x, each in levels.items() if isinstance(each, list) and rng.random() < 0.6}
    design = tables.Design(
        levels,
        margins=margins,
        individual="who",
        neighbours=rng.choice(["add-remove", "change", "change"]),
        **rng.choice(LIMITS),
    )
    return design if math.prod(design._axes.sizes) <= 6 else small_design(rng)


def neighbouring(design: tables.Design) -> Any:
    """Return how all records of an individual, and all changes of them, change each node."""
    of_cell = np.eye(math.prod(design._axes.sizes), dtype=np.int64)
    of_cell = np.array([all_nodes(design, (np.arange(len(x)), x)).reshape(-1) for x in of_cell])
    nodes = np.array(parts(design)) @ of_cell
    if design.neighbours == "add-remove":
        return nodes
    return np.unique((nodes[:, None] - nodes).reshape(-1, nodes.shape[1]), axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_of_one_individual_by_enumeration(seed: int) -> None:
    """Of 400 designs: never below the greatest over all neighbours, and where it is proved that.

    A table and its margins were taken to change by their most at once, which the records that an
    individual moves cannot do: up to twice the truth.
    """
    rng = random.Random(seed)
    for _ in range(100):
        design = small_design(rng)
        changed = np.abs(neighbouring(design))
        own = np.empty(design._axes.shape, object)
        exact = design.l0 == 1 or design.l1 is not None
        exact = design.neighbours == "add-remove" or (exact and not two_sided(design))
        shares = {x.label: [rng.randint(1, 9) for _ in range(x.depths)] for x in design._axes}
        uneven = design.with_shares(shares)
        any_rates = {
            block: GeometricMechanism(Fraction(rng.randint(1, 90), rng.randint(1, 90)))
            for block in design.blocks
        }
        for mechanisms in (
            dict.fromkeys(design.blocks, GeometricMechanism(1)),
            design.mechanisms_for(6),
            uneven.mechanisms_for(2),
            any_rates,
        ):
            for block, each in mechanisms.items():
                own[design._axes.block(block)] = float(each.rate)
            rates = own.reshape(-1).astype(float)
            truth = float((changed @ rates).max())
            said = float(layout.loss(design, mechanisms))
            assert said >= truth * (1 - 1e-12)
            if exact:
                assert said == pytest.approx(truth, rel=1e-12)
            # By theorem 2 alone, whatever the changes of the nodes are.
            losses = changed * rates
            rho = float((losses * np.tanh(losses / 2)).sum(axis=1).max())
            assert float(zcdp_of(layout.losses(design, mechanisms))) >= rho * (1 - 1e-12)
        assert layout.loss(design, dict.fromkeys(design.blocks, GeometricMechanism(1))) == (
            design.sensitivity
        )
        assert (
            layout.loss(design, design.mechanisms_for(6))
            == layout.loss(uneven, uneven.mechanisms_for(6))
            == 6
        )


def test_a_rho_covers_every_split_of_an_individual() -> None:
    """Of four records in groups of three, (3, 1) cost less by theorem 2 than (2, 2)."""
    leaves = {f"{group}{n}": group for group in "ab" for n in range(3)}
    tree = Hierarchy(leaves | {"a": "r", "b": "r"}, leaves_only=True)
    design = tables.Design({"x": tree}, individual="who", l0=4)
    for rate in (Fraction(1, 3), Fraction(4)):
        of_groups = layout.losses(design, {(1,): GeometricMechanism(rate)})
        splits = (zcdp_of(Counter(rate * n for n in split)) for split in ((3, 1), (2, 2)))
        assert float(zcdp_of(of_groups)) >= max(map(float, splits))
    # As before where the worst split is known.
    assert layout.losses(design, {(1,): GeometricMechanism("1/3")}) == {1: 1, Fraction(1, 3): 1}


def test_what_is_moved_changes_no_grand_total() -> None:
    """It was booked twice, beside all that it changes: 8 for one record and two margins, not 6."""
    levels = {"x": ["a", "b"], "y": ["a", "b", "c"]}
    moved = tables.Design(levels, margins="all", neighbours="change")
    assert (moved.sensitivity, layout.change(moved)) == (6, 2)
    rates = [each.rate for each in moved.mechanisms_for(1).values()]
    assert rates == [Fraction(1, 6)] * 4
    one = tables.Design({"x": ["a", "b"]}, margins="all", neighbours="change")
    assert one.sensitivity == 2
    budget = accounting.Budget(epsilon=1)
    moved.count(pd.DataFrame({"x": ["a"], "y": ["b"]})).release(epsilon=1, budget=budget)
    assert budget.epsilon_spent == 1


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_limit_of_all_records_keeps_so_many_of_each_individual(library: Any) -> None:
    people = {"who": [1] * 10 + [2] + [3] * 4, "town": [*"aaabbbcccz", "a", *"zbzb"]}
    design = tables.Design({"town": list("abc")}, individual="who", l1=4)
    seen = set()
    for _ in range(60):
        counts = design.count(library(people))._nodes()
        # Those of 1, of 2, and those of 3 that are in the table.
        assert counts.sum() == 4 + 1 + 2
        assert counts[0] >= 1
        assert counts[1] >= 2
        seen.add(tuple(counts.tolist()))
    assert len(seen) > 3  # It draws anew: the chance of three outcomes in 60 draws is below 1e-9.
    assert (design.l0, design.linf, design.sensitivity) == (4, 4, 4)
    assert repr(design).endswith("individual='who', l1=4)")


def test_every_choice_of_records_is_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """All orders of the draw of an individual's records: two in one cell, one in another."""
    found = Counter[tuple[int, ...]]()
    design = tables.Design({"town": ["a", "b"]}, individual="who", l1=2)
    visits = pd.DataFrame({"who": [1, 1, 1], "town": ["a", "a", "b"]})
    for order in itertools.permutations(range(3)):
        words = np.array(order, np.uint64) << np.uint64(40)
        monkeypatch.setattr(contributions, "words", lambda _, words=words: words)
        found[tuple(design.count(visits)._nodes().tolist())] += 1
    # Of three pairs of records, one has both records of the first cell.
    assert found == {(2, 0): 2, (1, 1): 4}


@pytest.mark.parametrize("more", [{"l0": 1}, {"linf": 2}, {"l0": 3, "linf": 3}])
def test_a_limit_of_all_records_goes_with_no_other(more: Any) -> None:
    with pytest.raises(ValueError, match=r"^l1 = 3 with l0 or linf is not accepted: give the most"):
        tables.Design(["a"], l1=3, **more)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_sums_are_bounded_by_individual_and_cell(library: Any) -> None:
    bills = {
        "who": [1, 1, 1, 2, 3, 3, 4],
        "shop": ["A", "A", "B", "A", "A", "z", "B"],
        "euros": [70, 60, 5, None, -9, 900, 900],
    }
    levels = {"shop": ["A", "B", "C"]}
    design = tables.Design(levels, individual="who", l0=2)
    data = library(bills)
    if isinstance(data, pd.DataFrame):
        data["euros"] = data["euros"].astype("Int64")
    table = design.sum(data, "euros", bounds=(0, 100))
    assert table._nodes().tolist() == [100, 5 + 100, 0]
    assert (table.design.name, table.sensitivity, table.design.linf) == ("euros", 200, 100)
    # Each record by itself, without individuals.
    alone = tables.Design(levels).sum(data, "euros", bounds=(0, 100))
    assert alone._nodes().tolist() == [130, 105, 0]
    assert alone.sensitivity == 100
    for one in (1, 4):  # As few cells as the design says.
        design = tables.Design(levels, individual="who", l0=1)
        rows = [n for n, who in enumerate(bills["who"]) if who == one]
        some = library({name: [each[n] for n in rows] for name, each in bills.items()})
        assert np.count_nonzero(design.sum(some, "euros", bounds=(0, 100))._nodes()) == 1


def test_a_sum_that_wraps_around_stays_within_its_bounds() -> None:
    """It was below 0 then, and no bound held: as of 2**31 rows of an individual with 2**32 each."""
    design = tables.Design({"shop": ["A"]}, individual="who", l0=1, linf=100)
    zeros = np.zeros(2, np.int64)
    _, records = counting._bounded(design, zeros, zeros, np.array([2**62, 2**62]))
    assert records.tolist() == [0]


def test_a_sum_of_its_own_levels_keeps_the_name_of_counts() -> None:
    ages = pd.DataFrame({"age": [1, 2, 2]})
    table = tables.Design({"age": [1, 2]}).sum(ages, "age", bounds=(0, 5))
    assert (table.design.name, table._nodes().tolist()) == ("count", [1, 4])
    assert (
        tables.Design({"age": [1, 2]}, name="n").sum(ages, "age", bounds=(0, 5)).design.name == "n"
    )


@pytest.mark.parametrize(
    ("options", "column", "bounds", "kind", "message"),
    [
        (
            {},
            "x",
            (1, 5),
            ValueError,
            r"bounds = \(1, 5\) are not accepted: give two ints \(lower, upper\)",
        ),
        ({}, "x", (0, 0), ValueError, "bounds .* are not accepted"),
        ({}, "x", (0, 2**32 + 1), ValueError, "bounds .* are not accepted"),
        ({}, "x", (-(2**32) - 1, 0), ValueError, "bounds .* are not accepted"),
        ({}, "x", (50, -50), ValueError, r"bounds = \(50, -50\) are not accepted: give two ints"),
        ({}, "x", (1, 2, 3), ValueError, "bounds with 3 items are not accepted: give two ints"),
        ({}, "x", (1,), ValueError, "bounds with 1 item are not accepted: give two ints"),
        ({}, "x", None, TypeError, "bounds.*None.*: give two ints"),
        ({}, "x", (0, 1.5), TypeError, "bounds with int and float are not accepted: give two ints"),
        ({}, "x", (True, 5), TypeError, "bounds with bool and int are not accepted: give two ints"),
        ({}, "y", (0, 5), TypeError, "values of 'y' of type .* are not accepted: give integers"),
        ({}, "z", (0, 5), KeyError, "z"),
        (
            {"l0": 1, "linf": 2},
            "x",
            (0, 5),
            ValueError,
            "linf = 2 is not accepted for sums",
        ),
        ({"l1": 2**32 + 1}, "x", None, ValueError, "values = .* are not accepted"),
    ],
)
def test_sums_that_cannot_be_bounded_are_refused(
    options: Any, column: str, bounds: Any, kind: type[Exception], message: str
) -> None:
    data = pd.DataFrame({"a": ["b"], "x": [1], "y": [0.5]})
    with pytest.raises(kind, match=message):
        tables.Design({"a": ["b"]}, **options).sum(data, column, bounds=bounds)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_values_are_spent_in_a_random_order_until_their_limit(library: Any) -> None:
    """By absolute values, the last one cut; each of 3! orders is as likely."""
    values = {"A": 3, "B": -4, "C": 2}
    wanted: Counter[tuple[int, ...]] = Counter()
    for order in itertools.permutations(values):
        left, found = 5, dict.fromkeys(values, 0)
        for shop in order:
            size = min(abs(values[shop]), left)
            found[shop], left = size * (1 if values[shop] > 0 else -1), left - size
        wanted[tuple(found.values())] += 1
    n = 6000
    design = tables.Design({"shop": [*values], "who": range(n)}, individual="who", l1=5)
    alpha = 1e-6 / (2 * len(wanted) * 6)
    # Hoeffding: each share is off by more than this with probability 2 exp(-2 n off**2).
    off = math.sqrt(math.log(2 / alpha) / (2 * n))
    for order in itertools.permutations(values):
        data = library(
            {
                "who": np.tile(np.arange(n), 3),
                "shop": [shop for shop in order for _ in range(n)],
                "euros": [values[shop] for shop in order for _ in range(n)],
            }
        )
        nodes = design.sum(data, "euros", bounds=(-5, 5))._nodes()
        assert (np.abs(nodes).sum(axis=0) == 5).all()
        found = Counter(map(tuple, nodes.T.tolist()))
        assert found.keys() <= wanted.keys()
        for each, times in wanted.items():
            assert abs(found[each] / n - times / 6) <= off


def test_a_limit_of_values_holds_for_any_records() -> None:
    """For many individuals at once, of few and many records; with zeros, nulls and both signs."""
    rng = np.random.default_rng(1)
    who, n = rng.integers(0, 50, 3000), rng.integers(-30, 31, 3000)
    totals = np.bincount(who, np.abs(n))
    order = np.argsort(who)
    for most in (1, 7, 900, 10**6):
        kept = contributions.spent(who[order], n[order], most)
        sizes = np.bincount(who[order], np.abs(kept))
        assert (sizes == np.minimum(totals, most)).all()
        assert (kept * n[order] >= 0).all()
        assert (np.abs(kept) <= np.abs(n[order])).all()
        # One record of each is cut, at most.
        cut = (kept != 0) & (kept != n[order])
        assert np.bincount(who[order], cut).max() <= 1
    assert contributions.spent(who[:0], n[:0], 1).size == 0
    same = contributions.spent(np.repeat(np.arange(99), 3), np.tile([3, -4, 2], 99), 5)
    assert len(np.unique(same.reshape(-1, 3), axis=0)) == 5
    data = pd.DataFrame({"a": ["x", "x", "z"], "who": [1, 1, 1], "n": [-9, 20, 70]})
    design = tables.Design({"a": ["x", "y"]}, individual="who", l1=40)
    # Records outside the table do not count towards the limit.
    assert design.sum(data, "n", bounds=(-30, 30))._nodes().tolist() == [11, 0]
    assert design.sum(data, "n")._nodes().tolist() == [20, 0]


def test_sums_of_either_sign_have_intervals_below_0() -> None:
    """No answer ends at 0, or is of a kind that needs counts."""
    data = pd.DataFrame({"shop": ["A", "B"], "n": [-(10**6), 10**6]})
    levels, ends = {"shop": ["A", "B"]}, (-(10**6), 10**6)
    noisy = tables.Design(levels).sum(data, "n", bounds=ends).release(epsilon=10**3)
    assert noisy.design.signed
    assert noisy.intervals(alpha=0.05)["lower"][0] < -(10**5)
    both = pd.DataFrame({"shop": ["A", "B"], "n": [-(10**6), -(10**6)]})
    below = tables.Design(levels).sum(both, "n", bounds=ends).release(epsilon=10**3)
    assert below.total(alpha=0.05)["upper"][0] < -(10**6)
    assert noisy.rate({"A": 1, "B": 1}, 1, "shop", alpha=0.05)["lower"][0] < -(10**5)
    other = tables.Design(levels).sum(data, "n", bounds=ends).release(epsilon=10**3)
    assert noisy.combine(other).intervals(alpha=0.05)["lower"][0] < -(10**5)
    assert noisy.plus(other).intervals(0.05)["lower"][0] < -(10**5)
    ratio = noisy.ratio({"shop": "A"}, {"shop": "B"}, alpha=Fraction(1, 10**6))
    assert ratio["lower"][0] <= -1 <= ratio["upper"][0] < -0.5
    change = noisy.change_since(other, "shop", percent=True, alpha=0.05)
    assert change["upper"][1] < 50
    for call in (
        lambda: noisy.percent("shop"),
        noisy.consistent,
        lambda: noisy.with_totals(-5),
        lambda: tables.Design(levels).sum(data, "n", bounds=ends).release(epsilon=1, at_least=5),
    ):
        with pytest.raises(ValueError, match=r"negative \(bounds = \(-1000000, 1000000\)\)"):
            call()


@pytest.mark.parametrize("limits", [{"l0": 2, "linf": 2}, {"l1": 3}])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_sum_and_a_count_are_of_the_same_records(limits: Any, library: Any) -> None:
    rows = 600
    data: dict[str, Any] = {
        "who": [n % 20 for n in range(rows)],
        "town": [[*"ABCD"][n // 20 % 4] for n in range(rows)],
        "n": [7 if n % 3 else 9 for n in range(rows)],
    }
    frame = library(data)
    design = tables.Design({"town": [*"ABC"]}, individual="who", **limits)
    pair = design.sum_and_count(frame, "n", bounds=(7, 8))
    sums, counts = pair._sums._nodes(), pair._counts._nodes()
    assert counts.sum() == 20 * (3 if "l1" in limits else 4)
    assert ((7 * counts <= sums) & (sums <= 8 * counts)).all()
    assert (pair._sums.sensitivity, pair._counts.sensitivity) == (
        (24, 3) if "l1" in limits else (32, 4)
    )
    # By enumeration: no individual adds more to both at once than their parts of epsilon allow.
    noisy = pair.release(epsilon="1", share="0.25")
    assert (noisy.sums.epsilon, noisy.counts.epsilon) == (Fraction(1, 4), Fraction(3, 4))


def test_a_sum_and_a_count_are_booked_once_and_saved_as_two_files(tmp_path: Path) -> None:
    data = pl.DataFrame({"town": [*"AAB"] * 500, "n": [20, 40, None] * 500})
    pair = tables.Design({"town": [*"AB"]}).sum_and_count(data, "n", bounds=(-10, 50))
    paths = {name: tmp_path / f"{name}.csv" for name in ("sums", "counts")}
    budget = accounting.Budget(epsilon=1)
    noisy = pair.release(epsilon=1, budget=budget, label="n", save=paths)
    assert budget.spent == [("n", 1.0)]
    sums, counts = map(geomdp.read, paths.values())
    assert (sums.design.values, counts.design.values) == ((-10, 50), None)
    assert (sums.id, counts.id) == (noisy.sums.id, noisy.counts.id)
    assert sums.id != counts.id
    found = noisy.mean(alpha=1e-6)
    assert found["lower"][0] <= 30 <= found["upper"][0]
    # Records without a value are in neither: B has none.
    assert (found["lower"][1], found["upper"][1]) == (-10, 50)
    same = sums.per(counts, alpha=1e-6)
    assert same["upper"][0] == found["upper"][0]
    with pytest.raises(FileExistsError):
        pair.release(epsilon=1, budget=budget, save=paths | {"sums": tmp_path / "new.csv"})
    assert len(budget.spent) == 1
    one = paths["sums"]
    for save, kind in [
        (one, TypeError),
        ((one, paths["counts"]), TypeError),
        ({"sums": one}, ValueError),
        ({"sums": one, "counts": one}, ValueError),
        ({"sums": one, "counts": 7}, TypeError),
    ]:
        with pytest.raises(kind, match=r"a path for each of \['sums', 'counts'\]"):
            pair.release(epsilon=1, save=save)
    with pytest.raises(ValueError, match="share = 1 is not accepted: give a number above 0"):
        pair.release(epsilon=1, share=1)
    for bounds in [(5, 5), (9, 0), (0, 2**32 + 1)]:
        with pytest.raises(ValueError, match=r"bounds = .* are not accepted: give two ints"):
            tables.Design({"town": [*"AB"]}).sum_and_count(data, "n", bounds=bounds)
    with pytest.raises(ValueError, match="is one of sums: call sum"):
        sums.design.count(data)
