"""What a table has counted, and for whom: what is compared, what is booked, what can be asked."""

import ast
import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.acero
import pytest

import geomdp
from geomdp.accounting import Budget, Protects
from geomdp.tables import Design, Hierarchy
from geomdp.tables._facts import counted
from geomdp.tables._facts.fields import FIELDS, Field

PEOPLE = pd.DataFrame(
    {
        "who": range(400),
        "id": range(400),
        "area": ["N", "S"] * 200,
        "age": [1, 2, 3, 3, None] * 80,
        "euros": pd.array([20, None, 5, 7] * 100, "Int64"),
        "tips": 1,
    }
).astype({"age": "Int64"})
AREA, AGE = {"area": ["N", "S"]}, {"age": [1, 2]}
#: How two releases are asked together, by the comparison that decides.
ASKED: dict[str, list[Callable[[Any, Any], Any]]] = {
    "counts": [
        lambda one, other: one.release(epsilon=1).combine(other.release(epsilon=1)),
        lambda one, other: one.release(epsilon=1, at_least=1).left_out(
            other.release(epsilon=1), alpha=0.1
        ),
    ],
    "sum": [lambda one, other: one.release(epsilon=1).plus(other.release(epsilon=1))],
    "question": [
        lambda one, other: one.release(epsilon=1).change_since(other.release(epsilon=1)),
    ],
    "ratio": [lambda one, other: one.release(epsilon=1).per(other.release(epsilon=1))],
    "definition": [
        lambda one, other: [
            x.release(epsilon=1, budget=budget) for budget in [Budget(9)] for x in (one, other)
        ]
    ],
}
LIMITS = {"individual": "who", "l0": 2, "linf": 2, "unit": "person"}


def limited(**other: Any) -> Any:
    """Count by a design with limits that differ in some of them."""
    return Design(AREA, **LIMITS | other).count(PEOPLE)


def summed(column: str, most: int) -> Any:
    return Design(AREA).sum(PEOPLE, column, bounds=(0, most))


def valued(column: str) -> Any:
    return Design(AREA).sum_and_count(PEOPLE, column, bounds=(0, 9))._counts


#: Two tables that differ in a fact, and in what follows from it, by this fact.
DIFFERENT: dict[str, Callable[[], tuple[Any, Any]]] = {
    "neighbours": lambda: (limited(), limited(neighbours="change")),
    "unit": lambda: (limited(), limited(unit="house")),
    "individual": lambda: (limited(), limited(individual="id")),
    "l0": lambda: (limited(), limited(l0=1)),
    "linf": lambda: (limited(), limited(linf=3)),
    "l1": lambda: (limited(l0=None, linf=1, l1=2), limited(l0=None, linf=1, l1=3)),
    "values": lambda: (summed("euros", 20), summed("euros", 30)),
    "summed": lambda: (summed("euros", 20), summed("tips", 20)),
    "having": lambda: (valued("euros"), valued("tips")),
    "count_id": lambda: (limited(l0=1), limited(l0=1)),
    "name": lambda: (Design(AREA).count(PEOPLE), Design(AREA, name="n").count(PEOPLE)),
}


def test_every_fact_is_compared_unless_its_field_says_where_it_may_differ() -> None:
    """``combine`` forgot `neighbours`: a list of what it compares stood beside that of fields."""
    compared = {key for key, field in FIELDS.items() if not field.differs >= {*ASKED}}
    assert compared <= {*DIFFERENT}, "give two tables that differ in the new fact alone"
    assert {*counted._DEFINITION} == {*Protects._fields}


@pytest.mark.parametrize("comparison", ASKED)
@pytest.mark.parametrize("key", DIFFERENT)
def test_a_fact_that_differs_is_refused_where_its_field_does_not_name_it(
    key: str, comparison: str
) -> None:
    one, other = DIFFERENT[key]()
    for ask in ASKED[comparison]:
        for pair in ((one, other), (other, one)):
            if comparison in FIELDS[key].differs:
                ask(*pair)
                continue
            with pytest.raises(ValueError, match=f"{key} = |one count|protects each"):
                ask(*pair)


@pytest.mark.parametrize("comparison", [x for x in ASKED if x != "definition"])
def test_a_new_fact_is_compared_by_default(
    comparison: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Design(AREA).count(PEOPLE)
    monkeypatch.setitem(FIELDS, "new", Field({}, "", lambda release: release.id))
    for ask in ASKED[comparison]:
        with pytest.raises(ValueError, match=r"has new = "):
            ask(table, table)


# Which records


def test_a_smaller_table_of_other_records_is_refused_by_column(tmp_path: Path) -> None:
    """A fifth of the records has no age: 475 to 479 were around neither 400 nor 500."""
    both, alone = Design({**AREA, **AGE}).count(PEOPLE), Design(AREA).count(PEOPLE)
    message = r"only one of them has 'age'.*other= .*complete='age'; .*with_complete\('age'\)"
    for one, other in ((both, alone), (alone, both)):
        made, others = one.release(epsilon=1), other.release(epsilon=1)
        for ask in (made.combine, partial(made.change_since, by="area"), partial(made.per, by=())):
            with pytest.raises(ValueError, match=message):
                ask(others)
    with pytest.raises(ValueError, match=message):
        both.release(epsilon=1, at_least=9).left_out(alone.release(epsilon=1), alpha=0.1)
    with pytest.raises(ValueError, match=message):
        alone.release(epsilon=1).change_since(both.release(epsilon=1), by="area")


@pytest.mark.parametrize("ask", ["change_since", "per"])
def test_a_column_of_one_release_alone_is_no_column_of_an_answer(ask: str) -> None:
    """It hinted at complete=, after which there was "no column" by which it had been asked."""
    both = Design({**AREA, **AGE}, complete=True).count(PEOPLE).release(epsilon=1)
    alone = Design(AREA, complete=True).count(PEOPLE).release(epsilon=1)
    for by in (["age"], ["area", "age"], None)[: 3 if ask == "per" else 2]:
        with pytest.raises(ValueError, match=r"r has no column 'age'.*: give by=\(") as caught:
            getattr(both, ask)(alone, by=by)
        advised = ast.literal_eval(str(caught.value).rpartition("by=")[2])
        assert len(getattr(both, ask)(alone, by=advised))


@pytest.mark.parametrize("kind", ["table", "groups"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_publisher_or_a_reader_states_that_a_column_leaves_out_no_record(
    kind: str, ending: str, tmp_path: Path
) -> None:
    frame, total = PEOPLE.assign(age=1), Design(AREA).count(PEOPLE).release(epsilon=1)
    how = {"at_least": 1} if kind == "groups" else {}

    def joined(release: Any) -> Any:
        return release.left_out(total, alpha=0.1) if how else release.combine(total)

    def reread(release: Any) -> Any:
        release.save(tmp_path / f"a{ending}", overwrite=True)
        return geomdp.read(tmp_path / f"a{ending}")

    def noisy(**more: Any) -> Any:
        return Design({**AREA, **AGE}, **more).count(frame).release(epsilon=1, **how)

    for given in (True, "age", ("age",), ("area", "age")):
        joined(noisy(complete=given))
        joined(reread(noisy(complete=given)))
    some = reread(noisy())
    with pytest.raises(ValueError, match="only one of them has 'age'"):
        joined(some)
    stated = some.with_complete("age")
    joined(stated)
    joined(reread(stated))
    assert stated.id == some.id
    assert stated.frame.equals(some.frame)
    assert stated.with_complete("area").design == noisy(complete=True).design
    with pytest.raises(ValueError, match="not accepted beside other"):
        noisy(other={"age": 9}).with_complete("age")


def test_files_without_the_facts_state_none_of_them(tmp_path: Path) -> None:
    """Descriptions of earlier versions: partial columns, and the names of individuals."""
    path = tmp_path / "a.csv"
    noisy = Design({**AREA, **AGE}, individual="who", l0=1, complete="age").count(PEOPLE)
    sums = Design(AREA, name="money").sum(PEOPLE, "euros", bounds=(0, 9))
    for table, unit, name in ((noisy, "who", None), (sums, "record", "money")):
        table.release(epsilon=1).save(path, overwrite=True)
        whole = json.loads(path.with_suffix(".csv.json").read_text())
        facts = whole["geomdp"]
        for key in ("unit", "summed", "having"):
            del facts[key]
        for axis in facts["axes"].values():
            del axis["complete"]
        path.with_suffix(".csv.json").write_text(json.dumps(whole))
        read = geomdp.read(path).design
        assert (read.unit, read.summed, read.having) == (unit, name, None)
        assert not any(axis.complete for axis in read._axes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda facts: facts.update(unit=3), "unit"),
        (lambda facts: facts.update(unit=""), "unit"),
        (lambda facts: facts.update(summed="euros"), "summed"),
        (lambda facts: facts.update(having=["a"]), "having"),
        (lambda facts: facts["axes"]["age"].update(complete="yes"), "complete"),
        (lambda facts: facts["axes"]["age"].update(complete=True, other=[9]), "complete"),
    ],
)
def test_forged_facts_are_refused(change: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    Design({**AREA, **AGE}).count(PEOPLE).release(epsilon=1).save(path)
    whole = json.loads(path.with_suffix(".csv.json").read_text())
    change(whole["geomdp"])
    path.with_suffix(".csv.json").write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=words):
        geomdp.read(path)


def any_column(rng: np.random.Generator, place: int, *, whole: bool) -> dict[str, Any]:
    """Return the levels of a column, and what a design states of it, if all records have some."""
    levels: Any = [0, 1] if rng.random() < 0.7 else [1, 0, 2]
    if rng.random() < 0.3:
        levels = Hierarchy({0: 9, 1: 9, 2: 9})
    kind = rng.integers(3 if whole else 2)
    return {
        "levels": levels,
        "other": -1 if kind == 1 else None,
        "complete": kind == 2 and place >= 0,
    }


def test_releases_that_are_joined_have_the_same_true_counts() -> None:
    """Whatever their columns are: the totals of both tables agree, and those by common columns."""
    rng, joined, refused = np.random.default_rng(5), 0, 0
    for _ in range(250):
        # Of the first column all records have a level; of the others some have none.
        frame = pd.DataFrame(
            {
                "x": rng.integers(0, 2, 60),
                "y": rng.integers(0, 4, 60),
                "z": rng.integers(0, 3, 60),
            }
        )
        tables = []
        for _ in range(2):
            names = [x for x in "xyz" if rng.random() < 0.6]
            given = {x: any_column(rng, n, whole=x == "x") for n, x in enumerate(names)}
            tables.append(
                Design(
                    {x: each["levels"] for x, each in given.items()},
                    other={x: y["other"] for x, y in given.items() if y["other"] is not None},
                    complete=tuple(x for x, each in given.items() if each["complete"]),
                ).count(frame)
            )
        one, other = (table.release(epsilon=1) for table in tables)
        for ask in (one.combine, one.change_since, one.plus, one.per):
            try:
                ask(other)
            except (KeyError, ValueError):
                refused += 1
                continue
            joined += 1
            a, b = (_total(table) for table in tables)
            assert a == b, (tables[0].design, tables[1].design)
    assert joined > 100
    assert refused > 200


def _total(table: Any) -> int:
    """Return how many records a table without margins has counted in its cells."""
    exact = table._nodes()
    cells = np.ix_(*(axis.tree.cells for axis in table.design._axes))
    for place, axis in enumerate(table.design._axes):
        if axis.tree.loose and axis.tree.depth:
            exact = exact.take(np.flatnonzero(axis.tree.parents < 0), place)
    return int((exact if exact.shape != table.design.shape else exact[cells]).sum())


def test_corrected_records_are_not_joined_with_those_before() -> None:
    table = Design(AREA).count(PEOPLE)
    old = table.release(epsilon=1)
    groups = table.release(epsilon=1, at_least=3, corrects=table.release(epsilon=1, at_least=3))
    with pytest.raises(ValueError, match="before or after another correction"):
        groups.left_out(old, alpha=0.1)
    groups.left_out(table.release(epsilon=1, corrects=old), alpha=0.1)


# For whom


def test_a_budget_has_one_unit_and_one_kind_of_neighbours(tmp_path: Path) -> None:
    """A table of records and one of persons cost 1.0, and person 1 lost 5.5."""
    records = Design(AREA).count(PEOPLE)
    tables = {
        "each 'record', neighbours='change'": Design(AREA, neighbours="change").count(PEOPLE),
        "each 'who', neighbours='add-remove'": Design(AREA, individual="who", l0=1).count(PEOPLE),
        "each 'individual', neighbours='add-remove'": Design(AREA, l0=2).count(PEOPLE),
    }
    for open_budget in (
        lambda name: Budget(epsilon=9, groups=["a"]),
        lambda name: Budget.open(tmp_path / f"{name}.jsonl", epsilon=9, groups=["a"]),
    ):
        for number, (words, table) in enumerate(tables.items()):
            budget = open_budget(number)
            records.release(epsilon=1, budget=budget)
            budget.book(1)  # A loss by itself is about whom the budget is about.
            for release in (
                lambda each, table=table: table.release(epsilon=1, budget=each),
                lambda each, table=table: table.top(1, epsilon=1, budget=each),
                lambda each, table=table: table.release(tiers={"a": 1, "b": 2}, budget=each),
            ):
                with pytest.raises(ValueError, match=f"this release protects {words}, and the"):
                    release(budget)
            assert budget.epsilon_spent == 2
            protects = Protects("record", "add-remove")
            assert [x.protects for x in budget.history] == [protects, None]
    again = Budget.open(tmp_path / "0.jsonl")
    assert [x.protects for x in again.history] == [protects, None]
    named = Design(AREA, individual="who", l0=1, unit="record").count(PEOPLE)
    named.release(epsilon=1, budget=again)
    page = tmp_path / "report.html"
    geomdp.tables.report(again, page)
    assert "each &#x27;record&#x27;, neighbours=&#x27;add-remove&#x27;" in page.read_text()


@pytest.mark.parametrize("limits", [{}, {"l0": 2}])
def test_a_stream_is_booked_for_its_unit(limits: dict[str, Any], tmp_path: Path) -> None:
    table = Design(AREA, unit="person").count(PEOPLE)
    own = "individual" if limits else "record"
    for unit, fits in (("person", True), (None, False)):
        budget = Budget(epsilon=9)
        table.release(epsilon=1, budget=budget)
        path = tmp_path / f"{unit}.jsonl"

        def opened(path: Path = path, unit: Any = unit, budget: Budget = budget) -> Any:
            return geomdp.tables.streams.Stream.open(
                path, horizon=4, epsilon=1, budget=budget, unit=unit, **limits
            )

        if fits:
            opened()
            continue
        with pytest.raises(ValueError, match=f"protects each '{own}'"):
            opened()
        assert not path.exists()


def test_means_are_booked_for_one_unit() -> None:
    budget = Budget(epsilon=9)
    Design(AREA, unit="person").count(PEOPLE).release(epsilon=1, budget=budget)
    pair = Design(AREA).sum_and_count(PEOPLE, "euros", bounds=(0, 9))
    with pytest.raises(ValueError, match="protects each 'record'"):
        pair.release(epsilon=1, budget=budget)
    assert budget.epsilon_spent == 1


# What


def test_the_quantity_is_the_column_and_not_the_name_that_readers_see(tmp_path: Path) -> None:
    money = Design(AREA, name="money")
    euros, tips = (money.sum(PEOPLE, x, bounds=(0, 9)) for x in ("euros", "tips"))
    renamed = Design(AREA, name="income").sum(PEOPLE, "euros", bounds=(0, 9))
    for ask in (*ASKED["counts"], *ASKED["question"]):
        ask(euros, renamed)
        with pytest.raises(ValueError, match="summed = 'tips', not 'euros'"):
            ask(euros, tips)
    counts = Design(AREA).count(PEOPLE)
    with pytest.raises(ValueError, match=r"total has values = \(0, 9\), not None and summed = "):
        counts.release(epsilon=1, at_least=3).left_out(tips.release(epsilon=1), alpha=0.1)
    # A design of sums that is used again has the name of what it sums.
    again = Design(AREA).sum(PEOPLE, "tips", bounds=(0, 9)).design.sum(PEOPLE, "euros")
    assert (again.design.name, again.design.summed) == ("euros", "euros")


def test_counts_of_records_with_a_value_are_not_those_of_all() -> None:
    """Combined with all, their counts missed both truths in 200 of 200 releases."""
    with_value, counts = valued("euros"), Design(AREA).count(PEOPLE)
    for asked in ("counts", "question", "ratio"):
        for ask in ASKED[asked]:
            with pytest.raises(ValueError, match="having = None, not 'euros'"):
                ask(with_value, counts)
    pair = Design(AREA).sum_and_count(PEOPLE, "euros", bounds=(0, 30)).release(epsilon=1)
    pair.sums.per(pair.counts, alpha=0.1)


# Sums


@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow"])
def test_a_sum_is_called_all_and_is_no_level(engine: str, tmp_path: Path) -> None:
    """A null, it doubled the totals of a column and had 100 percent."""
    frame: Any = PEOPLE[["area", "age"]].assign(job="x")
    frame = {"pandas": lambda: frame, "polars": lambda: pl.from_pandas(frame)}.get(
        engine, lambda: pa.Table.from_pandas(frame)
    )()
    levels = {**AREA, "job": ["x", None], "age": [1, 2]}
    design = Design(levels, tables=["area", "job", ("area", "age"), ()])
    noisy = design.count(frame).release(epsilon=9)
    for ending in (None, "csv", "parquet"):
        release = noisy if ending is None else _reread(noisy, tmp_path / f"a.{ending}")
        columns = {k: x.listed() for k, x in release._levels().items()}
        assert columns["area"] == ["N", "S", "all", "all", "N", "N", "S", "S", "all"]
        assert columns["job"][2:4] == ["x", None]
        assert {*columns["job"][4:]} == {"all"}
        # No text stands among numbers.
        assert columns["age"] == [None] * 4 + [1, 2, 1, 2, None]
        for answer in (release.total("area"), release.percent("area", alpha=0.1)):
            assert listed(answer["area"]) == ["N", "S"]
        assert sum(listed(release.percent("area")["percent"])) == pytest.approx(100)


def listed(column: Any) -> list[Any]:
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)


def _reread(release: Any, path: Path) -> Any:
    release.save(path)
    return geomdp.read(path, library=release._library)


@pytest.mark.parametrize(
    ("levels", "margins", "label"),
    [
        (["a", "b"], None, "all"),
        (["a", "b"], "whole", "whole"),
        (["a", "b"], {"x": None}, None),
        (["a", None], None, "all"),
        (["a", ""], None, "all"),
        (["all", "b"], None, None),
        ([1, 2], None, None),
        ([1, 2], 9, 9),
    ],
)
def test_the_label_of_a_sum_beside_its_levels(levels: Any, margins: Any, label: Any) -> None:
    design = Design({"x": levels}, tables=["x", ()], margins=margins)
    table = design.count(pd.DataFrame({"x": levels}))
    assert design.levels["x"] == [*levels, label]
    assert [None if pd.isna(x) else x for x in table.release(epsilon=1).total("x")["x"]] == levels
    known = {"Design": Design, "Fraction": Fraction}
    assert eval(repr(design), known) == design


# Blanks in trees

#: Half of the countries of UN M49 have no region between these.
LANDS = [
    ("Europe", "Northern", None, "Norway"),
    ("Europe", "Northern", "", "Norway"),
    ("Europe", None, None, "Malta"),
    (None, None, None, "Antarctica"),
    ("Europe", "Northern", None, None),
    (None, None, None, None),
]
PATHS = [("Europe", "Northern", "Norway"), ("Europe", "Malta"), ("Antarctica",)]
KNOWN = ("World", "Europe", "Northern", "Norway", "Malta", "Antarctica")
ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "objects": lambda frame: frame.astype(object).where(frame.notna(), None),
    "categories": lambda frame: frame.astype("category"),
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "duckdb": lambda frame: duckdb.sql("select * from frame"),
}


@pytest.mark.parametrize("deepest", [None, "Kenya"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_blank_is_no_node_at_its_depth_in_trees_and_records(
    engine: str, deepest: str | None
) -> None:
    """Records with a blank in the middle vanished, or were refused as if the root had none."""
    # Without a land of all depths, there are as many columns as depths with the root.
    more = [] if deepest is None else [("Africa", "Sub-Saharan", "Eastern", deepest)]
    frame = pd.DataFrame(LANDS + more, columns=[*"rsmc"])
    public, eager = frame.drop(index=[4, 5]), "pandas" if engine in ("lazy", "duckdb") else engine
    trees = [
        Hierarchy.from_columns(ENGINES[eager](public), [*"rsmc"], root="World"),
        Hierarchy.from_paths([*PATHS, *more], root="World"),
        Hierarchy.from_paths([*LANDS[:4], *more], root="World"),
    ]
    for tree in trees:
        assert {*tree.nodes} == {"World", *(x for row in [*PATHS, *more] for x in row)}
        for other in (None, "elsewhere"):
            design = Design({tuple("rsmc"): tree}, other=other)
            noisy = design.count(ENGINES[engine](frame)).release(epsilon=2**10)
            wanted = dict(zip(KNOWN, (5 + len(more), 4, 3, 2, 1, 1), strict=True))
            if other is not None:
                wanted |= {"World": 6 + len(more), "elsewhere": 1}
            found = {key: n for key, n in noisy.to_dict().items() if key in {*KNOWN, other}}
            assert found == wanted


def test_a_column_for_the_root_may_stand_above_blanks() -> None:
    frame = pd.DataFrame(LANDS, columns=[*"rsmc"]).assign(w="World")
    tree = Hierarchy.from_paths(PATHS, root="World")
    table = Design({tuple("wrsmc"): tree}).count(frame)
    assert table.frame["count"].tolist()[:4] == [6, 4, 1, 3]
    with pytest.raises(ValueError, match="has an empty name"):
        Hierarchy.from_paths(["a//b"])


# Depths in previews


def test_a_preview_names_the_depths_that_tables_have() -> None:
    tree = Hierarchy.from_paths(["a/b/c", "a/d/e", "f/g/h"], root="all")
    design = Design({"t": tree, "s": ["x", "y"]}, tables=[("t", 1), (("t", 2), "s"), "s", ()])
    found = design.preview([1])
    names = ["epsilon", "all cells", "t at depth 1", "t at depth 2, s", "s", "total"]
    assert [*found][: len(names)] == names
    noisy = design.count(pd.DataFrame({"t": ["c"], "s": ["x"]})).release(epsilon=1)
    ends = noisy.intervals(alpha=0.05)
    for start, title in ((0, "t at depth 1"), (2, "t at depth 2, s"), (8, "s"), (10, "total")):
        reach = (ends["upper"] - ends["estimate"].clip(0))[start]
        # Ends are whole numbers, and so is an accuracy; estimates are rounded floats.
        assert reach - 1e-9 <= found[title][0] < reach + 2
    assert design.accuracy(epsilon=1, alpha=0.05, of=("t", 1)) == found["t at depth 1"][0]
    for of in (("s", 1), ("t", 9)):
        with pytest.raises(ValueError, match=rf"of has the depth {of[1]} of '{of[0]}'"):
            design.accuracy(epsilon=1, alpha=0.05, of=of)


@pytest.mark.parametrize("threads", [1, 2])
def test_tasks_with_one_thread_of_arrow_group_without_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In tasks of Ray, grouping with threads failed at times: thread index 10 is out of range."""
    real, used = pa.acero._group_by, list[bool]()

    def group_by(*args: Any, use_threads: bool = True) -> Any:
        used.append(use_threads)
        return real(*args, use_threads=use_threads)

    monkeypatch.setattr(pa.acero, "_group_by", group_by)
    monkeypatch.setattr(pa, "cpu_count", lambda: threads)
    records = pa.table({"town": ["x", None, "x"], "who": ["a", "b", "a"]})
    design = Design({"town": ["x", None]}, individual="who", l0=1, linf=9)
    assert design.count(records).frame["count"].to_pylist() == [2, 1]
    assert used == [threads > 1]
