"""One call checks, pays, draws and writes; and releases are told apart by their ids."""

import errno
import functools
import html
import importlib
import inspect
import json
import os
import pickle
import random
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

import geomdp
from exact import stated
from geomdp import GeometricMechanism
from geomdp._ground import identity, new_file
from geomdp.accounting import Budget
from geomdp.tables import Design, Hierarchy, NoisyTable
from geomdp.tables._columns.native import LIBRARIES
from geomdp.tables._release import top as _top
from geomdp.tables.streams import Stream
from leaves import of_leaves
from modules import PUBLIC, signature
from published_kinds import DESIGNS, PEOPLE, least

TREE = Hierarchy({"A": "North", "B": "North", "C": "all", "North": "all"}, leaves_only=True)
FLAT = DESIGNS["flat"].count(PEOPLE)
BRANCHES = of_leaves(TREE, [5, 7, 9])
WIDE = Design({"n": range(20_001)}).count(pd.DataFrame({"n": [1]}))

#: Each call that can publish, by name: it takes a budget, a label and a path.
CALLS: dict[str, Callable[..., Any]] = {
    "Table.release": functools.partial(FLAT.release, epsilon=1),
    "Table.release of groups": functools.partial(FLAT.release, epsilon=1, at_least=5),
    "Table.top": functools.partial(FLAT.top, 2, epsilon=1),
    "Table.release of a tree": functools.partial(BRANCHES.release, epsilon=1),
}
calls = pytest.mark.parametrize("name", CALLS)
ENDS = ["csv", "parquet", "html"]


def made(folder: Path) -> Path:
    (folder / "taken.csv").write_text("x")
    (folder / "described.csv.json").write_text("x")
    (folder / "taken.parquet").mkdir()
    (folder / "link.html").symlink_to("nowhere")
    return folder


#: Paths in a folder to which nothing can be saved, and the error.
UNFIT: dict[str, tuple[Any, type[Exception], str]] = {
    "no folder": ("none/x.csv", FileNotFoundError, "no such folder: create it first"),
    "a file as a folder": ("taken.csv/x.csv", NotADirectoryError, "taken.csv"),
    "a file": ("taken.csv", FileExistsError, "already exists, and is not overwritten"),
    "a description": ("described.csv", FileExistsError, "described.csv.json"),
    "a folder": ("taken.parquet", FileExistsError, "already exists"),
    "a link to nothing": ("link.html", FileExistsError, "already exists"),
    "another ending": ("x.xlsx", ValueError, r"save = .* give a name that ends in \.csv, "),
    "no ending": ("x", ValueError, "give a name that ends in "),
    "a name that is too long": (f"{'x' * 252}.csv", OSError, "File name too long"),
    "no character of a name": ("\0.csv", ValueError, "a path that this system can hold"),
    "no name of a file system": ("\ud800.csv", ValueError, "a path that this system can hold"),
}


def refused(call: Any, folder: Path, error: Any, message: str) -> None:
    """Nothing is booked, drawn or left by a call, and its label is still free."""
    budget, before = Budget(epsilon=1), sorted(os.listdir(folder))
    with pytest.MonkeyPatch.context() as patch:
        for place, name in ((GeometricMechanism, "release"), (_top, "top_among")):
            patch.setattr(place, name, lambda *_, **__: pytest.fail("it drew"))
        with pytest.raises(error, match=message):
            call(budget=budget, label="May")
    assert budget.spent == []
    assert sorted(os.listdir(folder)) == before


@calls
@pytest.mark.parametrize("why", UNFIT)
def test_an_unfit_path_is_refused_before_anything_is_paid(
    name: str, why: str, tmp_path: Path
) -> None:
    path, error, message = UNFIT[why]
    call = functools.partial(CALLS[name], save=str(made(tmp_path) / path))
    refused(call, tmp_path, error, message)
    budget = Budget(epsilon=1)
    CALLS[name](budget=budget, label="May", save=tmp_path / "x.csv")
    assert budget.spent == [("May", 1.0)]


@calls
def test_what_is_no_path_is_refused(name: str, tmp_path: Path) -> None:
    for other in (5, b"x.csv", True, FLAT):
        call = functools.partial(CALLS[name], save=other)
        refused(call, tmp_path, TypeError, "save .*has type .*: give a str or a path")
    call = functools.partial(CALLS[name], corrects="May")
    refused(call, tmp_path, TypeError, "corrects = 'May' has type str: give the release to replace")


@calls
def test_a_folder_that_takes_no_file_is_met_before_anything_is_paid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a disk that is read-only, which no root of a test can make of a folder."""

    def denied(*_: Any) -> Any:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(new_file, "open", denied, raising=False)
    call = functools.partial(CALLS[name], save=tmp_path / "x.csv")
    refused(call, tmp_path, PermissionError, "denied")


@calls
def test_a_missing_library_is_met_before_anything_is_paid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    call = functools.partial(CALLS[name], save=tmp_path / "x.parquet")
    refused(call, tmp_path, ImportError, "Needed here: pip install")


def test_what_no_file_keeps_is_met_before_anything_is_paid(tmp_path: Path) -> None:
    clear = functools.partial(FLAT.release, GeometricMechanism.from_scale(0))
    # Its intervals are not known, so a page has none.
    ragged = functools.partial(BRANCHES.release, epsilon=1)
    bounded = Design({"node": TREE}).count(pd.DataFrame({"node": ["A"]}))
    for call, end, message in (
        (clear, "csv", "without noise cannot be saved"),
        (functools.partial(WIDE.release, epsilon=1), "html", "a page of 20001 rows"),
        (functools.partial(bounded.release, epsilon=1, bounds=(0, 9)), "html", "differ in depth"),
        (functools.partial(ragged, shares={"node": [1]}), "csv", "shares"),
    ):
        path = tmp_path / f"x.{end}"
        refused(functools.partial(call, save=path), tmp_path, ValueError, message)


@calls
def test_a_booking_has_the_id_of_its_release(name: str, tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9)
    found = CALLS[name](budget=budget, save=tmp_path / "x.csv")
    for each in (budget, Budget.open(tmp_path / "2026.jsonl")):
        assert [booking.ids for booking in each.history] == [(found.id,)]
    assert geomdp.read(tmp_path / "x.csv").id == found.id


@calls
def test_a_second_run_meets_the_file_and_not_the_budget(name: str, tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9)
    for end in ENDS:
        path = tmp_path / f"x.{end}"
        # Without a label, so that only the file can refuse it.
        found = CALLS[name](budget=budget, save=path)
        spent, content = budget.spent, path.read_bytes()
        with pytest.raises(FileExistsError):
            CALLS[name](budget=budget, save=path)
        assert (budget.spent, path.read_bytes()) == (spent, content)
        if end != "html":
            assert geomdp.read(path).to_dict() == found.to_dict()
    assert len(budget.spent) == len(ENDS)


@calls
@pytest.mark.parametrize("end", ENDS)
def test_the_file_is_that_of_save(name: str, end: str, tmp_path: Path) -> None:
    found = CALLS[name](save=tmp_path / f"x.{end}")
    (tmp_path / "again").mkdir()
    found.save(tmp_path / "again" / f"x.{end}")
    for each in tmp_path.glob("x.*"):
        assert each.read_bytes() == (tmp_path / "again" / each.name).read_bytes()


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_can_be_published(name: str, tmp_path: Path) -> None:
    """The rehearsal refuses nothing that can be saved."""
    table = DESIGNS[name].count(PEOPLE)
    for end in ENDS:
        table.release(epsilon=1, save=tmp_path / f"x.{end}")
        if name != "no columns":
            table.top(2, epsilon=1, save=tmp_path / f"top.{end}")
        if name not in (
            "margins",
            "other",
            "tree",
            "labels",
            "open tree",
            "no columns",
            "combinations",
        ):
            table.release(epsilon=1, at_least=20, save=tmp_path / f"groups.{end}")


#: What takes a budget and publishes no file of a table.
NO_FILE = {
    # It books before its own file gets its name: tests/tables/test_streams.py.
    "geomdp.tables.streams.Stream.open",
    # It pays for nothing: tests/tables/test_report.py.
    "geomdp.tables.report",
}


def test_every_call_that_pays_and_releases_a_table_can_publish_it() -> None:
    found = set()
    for module in PUBLIC:
        loaded = importlib.import_module(module)
        for public in getattr(loaded, "__all__", []):
            item = getattr(loaded, public)
            inside = {f"{public}.{each}": getattr(item, each) for each in dir(item)}
            for name, value in ({public: item} | (inside if inspect.isclass(item) else {})).items():
                if not callable(value) or name.rpartition(".")[2][0] == "_":
                    continue
                try:
                    given = signature(value).parameters
                except (TypeError, ValueError):
                    continue
                if "budget" in given:
                    found.add(f"{module}.{name}")
                    wanted = {"save", "corrects", "about"}
                    assert wanted <= given.keys() or f"{module}.{name}" in NO_FILE
    named = {f"geomdp.tables.{name.partition(' ')[0]}" for name in CALLS}
    # Those with two files, or with a choice: test_contributions.py, test_limits.py.
    named |= {"geomdp.tables.SumAndCount.release", "geomdp.tables.choose_limit"}
    assert found == NO_FILE | named


# Ids


def copies(made: Any, folder: Path) -> dict[str, Any]:
    """Return a release by every way that brings it to a reader."""
    found = {"itself": made, "pickle": pickle.loads(pickle.dumps(made))}
    for end in ("csv", "parquet"):
        made.save(folder / f"{made.id}.{end}")
        for library in LIBRARIES:
            read = geomdp.read(folder / f"{made.id}.{end}", library=library)
            found[f"{end} in {library}"] = read
    found["a file of a file"] = found["csv in polars"]
    found["a file of a file"].save(folder / f"{made.id}-2.parquet")
    found["a file of a file"] = geomdp.read(folder / f"{made.id}-2.parquet")
    return found


@calls
def test_a_release_has_one_id_wherever_it_is(name: str, tmp_path: Path) -> None:
    first = CALLS[name]()
    second = CALLS[name](corrects=first)
    assert re.fullmatch("[0-9a-f]{32}", first.id)
    assert first.id != second.id
    for made, corrects in ((first, ()), (second, (first.id,))):
        for each in copies(made, tmp_path).values():
            assert (each.id, each.corrects) == (made.id, corrects)
        made.save(tmp_path / f"{made.id}.html")
        page = (tmp_path / f"{made.id}.html").read_text()
        [held] = re.findall(r"data:application/json[^,]*,([^']*)'", page)
        facts = json.loads(html.unescape(unquote(held)))["geomdp"]
        assert (facts["id"], facts["corrects"]) == (made.id, list(corrects))
        assert (f"This table corrects an earlier one (id {first.id})." in page) == bool(corrects)


def test_an_id_is_128_bits_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for _ in range(50):
        random.seed(1)
        np.random.seed(1)
        found.add(FLAT.release(epsilon=1, label="May").id)
    assert len(found) == 50
    monkeypatch.setattr(identity.os, "urandom", lambda size: bytes(range(size)))
    assert identity.fresh() == "000102030405060708090a0b0c0d0e0f"


#: What two releases are asked, and nothing else of an answer takes a second one.
OF_TWO = {
    name
    for name, each in inspect.getmembers(NoisyTable, inspect.isfunction)
    if {"Answers", "NoisyTable", "OfTotals"} & {*list(inspect.get_annotations(each).values())[:-1]}
}


def asked(one: Any, name: str, two: Any, **more: Any) -> Any:
    """Return the answer by area of two releases."""
    if name in ("combine", "plus"):
        return getattr(one, name)(two).total("area", **more)
    return getattr(one, name)(two, by="area", **more)


def test_no_question_of_two_releases_takes_one_twice(tmp_path: Path) -> None:
    """The same release from CSV and Parquet was averaged as if it were two."""
    assert {name for name in OF_TWO if name[0] != "_"} == {"change_since", "combine", "per", "plus"}
    made = copies(FLAT.release(epsilon=1), tmp_path)
    made["with a total"] = made["itself"].with_totals(1200)
    for name in ("change_since", "combine", "per", "plus"):
        for one in made.values():
            for two in made.values():
                for alpha in (None, 0.05):
                    with pytest.raises(ValueError, match="is this release, or of the same stream"):
                        asked(one, name, two, alpha=alpha)
        assert len(asked(made["itself"], name, FLAT.release(epsilon=1))) == 3


def test_a_table_and_its_corrections_are_not_taken_together(tmp_path: Path) -> None:
    """In every order, also with one in between; corrections of other tables are no matter."""
    first = FLAT.release(epsilon=1)
    second = FLAT.release(epsilon=1, corrects=first)
    second.save(tmp_path / "second.csv")
    third = FLAT.release(epsilon=1, corrects=geomdp.read(tmp_path / "second.csv"))
    assert third.corrects == (second.id, first.id)
    third = copies(third, tmp_path)["parquet in polars"]
    for one, two in ((first, second), (second, third), (first, third)):
        for pair in ((one, two), (two, one), (one.with_totals(9), two), (one, two.with_totals(9))):
            for name in ("combine", "plus"):
                with pytest.raises(ValueError, match="one of the releases corrects the other"):
                    asked(pair[0], name, pair[1], alpha=0.05)
        # What the correction changed is a question of its own.
        assert len(two.change_since(one, by="area", alpha=0.05)) == 3
    once = FLAT.release(epsilon=1, corrects=FLAT.release(epsilon=1))
    twice = FLAT.release(epsilon=1, corrects=once)
    assert len(twice.combine(third).total("area")) == len(third.plus(once).total("area")) == 3
    with pytest.raises(ValueError, match="give a release that was corrected as often as this one"):
        once.combine(third)


VISITS = pd.DataFrame({"who": np.repeat(range(300), 4), "area": [*"ABCD"] * 300, "n": 2})
AREAS = {"area": [*"ABCD"]}
#: Counts and sums whose limits leave out records at random.
CUT: dict[str, Callable[[], Any]] = {
    "cells": lambda: Design(AREAS, individual="who", l0=1).count(VISITS),
    "records": lambda: Design(AREAS, individual="who", l1=3).count(VISITS),
    "sums": lambda: Design(AREAS, individual="who", l0=2).sum(VISITS, "n", bounds=(0, 2)),
    "values": lambda: Design(AREAS, individual="who", l1=5).sum(VISITS, "n"),
}
#: Those that keep the same records whenever they count.
WHOLE: dict[str, Callable[[], Any]] = {
    "all cells": lambda: Design(AREAS, individual="who", l0=4).count(VISITS),
    "one cell": lambda: Design({}, individual="who", l1=3).count(VISITS),
    "no individuals": lambda: Design(AREAS, l0=4).count(VISITS),
}


@pytest.mark.parametrize("name", CUT)
def test_separate_counts_under_limits_are_not_combined(name: str, tmp_path: Path) -> None:
    """Their limits keep other records, so that joint intervals missed nearly all true counts."""
    table, again = CUT[name](), CUT[name]()
    one, two, three = (copies(table.release(epsilon=5), tmp_path) for _ in range(3))
    other = copies(again.release(epsilon=5), tmp_path)
    ids = {each.count_id for each in (*one.values(), *two.values())}
    assert len(ids | {other["itself"].count_id}) == 2
    assert re.fullmatch("[0-9a-f]{32}", ids.pop())
    true = table._nodes()
    for way in one:
        for pair in ((one[way], other[way]), (other[way], one["itself"])):
            with pytest.raises(ValueError, match="keep other records in each count"):
                pair[0].combine(pair[1])
            # Of the true counts of both, as they are.
            assert (
                pair[0].plus(pair[1]).design.cells
                == len(pair[0].change_since(pair[1], "area"))
                == 4
            )
        both = one[way].combine(two[way])
        with pytest.raises(ValueError, match="release both from one count"):
            both.combine(other[way])
        for answers in (both, both.combine(three[way]), one[way].with_totals(int(true.sum()))):
            assert answers.count_id == one["itself"].count_id
        ends = both.intervals(alpha=Fraction(1, 10**9))
        assert all(np.array(ends["lower"]) <= true)
        assert all(true <= np.array(ends["upper"]))


@pytest.mark.parametrize("name", WHOLE)
def test_counts_that_keep_the_same_records_are_combined(name: str) -> None:
    one, two = (WHOLE[name]().release(epsilon=5) for _ in range(2))
    assert one.count_id is two.count_id is None
    assert len(one.combine(two).total()) == 1


def test_all_releases_of_one_count_say_so() -> None:
    table = CUT["cells"]()
    tiers = table.release(tiers={"public": 1, "office": 2})
    made = [*tiers.values(), table.release(epsilon=1, at_least=5), table.top(2, epsilon=1)]
    assert {each.count_id for each in made} == {table.release(epsilon=1).count_id}
    with pytest.raises(ValueError, match="keep other records in each count"):
        tiers["office"].combine(CUT["cells"]().release(epsilon=1))
    design = Design(AREAS, individual="who", l0=4)
    pairs = [design.sum_and_count(VISITS, "n", bounds=(0, 3)).release(epsilon=1) for _ in range(2)]
    assert [each.sums.count_id for each in pairs] == [each.counts.count_id for each in pairs]
    # Which value of an individual counts is drawn, although it keeps all its cells.
    with pytest.raises(ValueError, match="keep other records in each count"):
        pairs[0].sums.combine(pairs[1].sums)
    # A mean of two counts is that of their true totals.
    assert len(pairs[0].sums.per(pairs[1].counts, alpha=0.05)) == 4


BAD_IDS: list[Any] = [None, 5, "", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "0" * 31 + "\n", [], {}]


@pytest.mark.parametrize("fact", ["id", "corrects", "count_id"])
def test_ids_of_files_are_judged(fact: str, tmp_path: Path) -> None:
    made, path = FLAT.release(epsilon=1, save=tmp_path / "x.csv"), tmp_path / "x.csv.json"
    description = json.loads(path.read_text())
    bad = {
        "id": BAD_IDS,
        "corrects": [*({} if x == [] else [x] for x in BAD_IDS), [made.id], "", 5],
        "count_id": [x for x in BAD_IDS if x is not None],
    }
    for each in bad[fact]:
        description["geomdp"] |= {fact: each}
        path.write_text(json.dumps(description))
        with pytest.raises(ValueError, match=r"x\.csv cannot be read"):
            geomdp.read(tmp_path / "x.csv")
    del description["geomdp"][fact]
    path.write_text(json.dumps(description))
    with pytest.raises(ValueError, match=r"x\.csv cannot be read"):
        geomdp.read(tmp_path / "x.csv")


def test_tables_of_one_stream_have_its_id(tmp_path: Path) -> None:
    """Those that overlap share noise; another stream with the same parameters shares none."""
    one, two = (
        Stream.open(tmp_path / f"{name}.jsonl", horizon=4, epsilon=1) for name in ("one", "two")
    )
    for stream in (one, two):
        for step in range(4):
            stream.release(step, np.full((step + 1, 2), 40))
    again = Stream.open(tmp_path / "one.jsonl", horizon=4, epsilon=1)
    tables = [
        one.table(0, 2),
        one.table(1, 3),
        again.table(),
        geomdp.read(tmp_path / "one.jsonl").table(),
    ]
    tables[1].save(tmp_path / "steps.csv")
    tables.append(geomdp.read(tmp_path / "steps.csv"))
    assert len({each.id for each in tables}) == 1
    for each in tables:
        with pytest.raises(ValueError, match="or of the same stream, so that they share noise"):
            tables[0].change_since(each, by="cell")
    assert two.table().id != one.table().id
    assert len(two.table().plus(one.table()).total("cell")) == 2


# Tables of different people


@pytest.mark.parametrize("epsilons", [("0.5", "0.5"), ("0.3", "1.5")])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.01])
def test_the_interval_of_a_sum_has_the_noise_of_both(epsilons: Any, alpha: float) -> None:
    one, two = (FLAT.release(epsilon=each) for each in epsilons)
    found = one.plus(two).intervals(alpha=alpha)
    assert (found["estimate"] == one.frame["count"] + two.frame["count"]).all()
    wanted = least([float(stated(each)) for each in epsilons], alpha)
    assert (found["upper"] - found["estimate"] == wanted).all()
    assert (found["lower"] == (found["estimate"] - wanted).clip(0)).all()
    assert two.plus(one).intervals(alpha=alpha).equals(found)


def test_tables_with_other_cells_are_not_added() -> None:
    one = FLAT.release(epsilon=1)
    for levels in ({"area": ["A", "B"], "sex": ["f", "m"]}, {"area": ["A", "B", "C"]}):
        with pytest.raises(ValueError, match=r"other levels of|other has the columns \['area'\]"):
            one.plus(Design(levels).count(PEOPLE).release(epsilon=1))
    with pytest.raises(TypeError, match="give a noisy table"):
        one.plus(FLAT.top(1, epsilon=1))  # type: ignore[arg-type]
    margins = DESIGNS["margins"].count(PEOPLE).release(epsilon=1)
    for found in (one.plus(margins), margins.plus(one)):
        assert found.design.cells == 6
        assert (found.estimates()["estimate"] - 2 * 1200 / 6).abs().max() < 400
