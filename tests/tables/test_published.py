"""Published files: whole or not at all, and read with care, whoever wrote them."""

import contextlib
import csv
import errno
import hashlib
import io
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import geomdp
from geomdp import tables
from geomdp._ground import new_file
from geomdp.tables._facts.fields import FIELDS, OF_PART
from geomdp.tables._publish import footer as _footer
from geomdp.tables._publish import formats
from geomdp.tables._publish import published as _published
from geomdp.tables._publish.formats import Column, Columns
from geomdp.tables._reading import table_file
from json_schema import errors
from leaves import of_leaves
from published_kinds import DESIGNS, PEOPLE, RELEASED, RUN, TREE
from restated import damaged, restate, spoiled

ENDS = ["csv", "parquet"]
ROWS = {"area": ["a", "a", "b"], "sex": ["f", "m", "f"]}


def columns(*counts: int) -> dict[str, Any]:
    return {**ROWS, "n": np.array(counts, np.int64)}


def content(path: Path) -> tuple[Any, ...]:
    found = _published.read(path)
    return found.facts, found.names, [list(each) for each in found.columns]


# Whole or not at all


class Killed(BaseException):
    """The process is gone."""


class Dying:
    """The module os of a process that is killed after some calls."""

    def __init__(self, left: int, links: bool = True) -> None:
        self.left, self.links = left, links

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        counted = callable(value) and name not in ("urandom", "PathLike", "fspath")
        return self.dying(value) if counted else value

    def dying(self, call: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            if not self.left:
                raise Killed
            self.left -= 1
            if call is os.link and not self.links:
                raise OSError(errno.EPERM, "no links")
            return call(*arguments)

        return counted


def save(path: Path, counts: dict[str, Any], facts: Any, overwrite: bool, dying: Dying) -> bool:
    """Return whether a save comes to its end."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (new_file, _published):
            patch.setattr(module, "os", dying)
        patch.setattr(new_file, "open", dying.dying(open), raising=False)
        try:
            _published.write(path, counts, facts, overwrite=overwrite)
        except Killed:
            return False
    return True


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_a_killed_save_over_another_leaves_one_of_both(
    end: str, links: bool, tmp_path: Path
) -> None:
    steps = ((step, rows) for step in itertools.count() for rows in ([1, 2, 3], [7, 8, 9]))
    for step, rows in steps:
        (folder := tmp_path / f"{step}-{rows[0]}").mkdir()
        path = folder / f"x.{end}"
        _published.write(path, columns(1, 2, 3), {"epsilon": "1000"}, overwrite=False)
        before = content(path)
        done = save(path, columns(*rows), {"epsilon": "1"}, True, Dying(step, links))
        found = content(path)
        after = {"epsilon": "1"}, before[1], [*before[2][:2], rows]
        assert found == after or (not done and found == before)
        # The next save is not in the way of what is left.
        _published.write(path, columns(4, 5, 6), {"epsilon": "2"}, overwrite=True)
        assert content(path)[2][-1] == [4, 5, 6]
        if done:
            assert sorted(os.listdir(folder)) == [f"x.{end}", f"x.{end}.json"]
            break
    assert step > 5


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_a_killed_first_save_does_not_block_the_next(end: str, links: bool, tmp_path: Path) -> None:
    """Without hard links, an empty file was left, which then existed."""
    for step in itertools.count():
        (folder := tmp_path / str(step)).mkdir()
        path = folder / f"x.{end}"
        done = save(path, columns(1, 2, 3), {"epsilon": "1"}, False, Dying(step, links))
        with contextlib.suppress(FileNotFoundError):
            assert content(path)[2][-1] == [1, 2, 3]
            with pytest.raises(FileExistsError):
                _published.write(path, columns(4, 5, 6), {}, overwrite=False)
            if done:
                break
            continue
        _published.write(path, columns(4, 5, 6), {}, overwrite=False)
        assert content(path)[2][-1] == [4, 5, 6]
    assert step > 5


def test_two_descriptions_that_wait_are_not_chosen_from(tmp_path: Path) -> None:
    """One of a save that was killed before its rows had their name, and one of a save after."""
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 3), {"epsilon": "1"}, overwrite=False)
    text = (tmp_path / "x.csv.json").read_text()
    _published.write(path, columns(7, 8, 9), {"epsilon": "9"}, overwrite=True)
    _published.write(tmp_path / "y.csv", columns(1, 2, 3), {"epsilon": "1"}, overwrite=False)
    path.write_bytes((tmp_path / "y.csv").read_bytes())
    left = [Path(_published._waiting(str(path), str(n))) for n in (1, 2)]
    left[0].write_text(text)
    assert content(path)[0] == {"epsilon": "1"}
    left[1].write_text(text.replace('"epsilon": "1"', '"epsilon": "2"'))
    with pytest.raises(ValueError, match="its rows are not those of its description"):
        _published.read(path)


def test_nothing_is_left_of_a_save_that_fails(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(OSError, match=r"x\.csv"):
        _published.write(tmp_path / "x.csv", columns(1, 2, 3), {}, overwrite=True)
    assert os.listdir(tmp_path) == ["x.csv"]
    for end in ENDS:
        with pytest.raises(FileNotFoundError, match=r"no such folder: create it first: .*none'$"):
            _published.write(tmp_path / "none" / f"x.{end}", columns(1, 2, 3), {}, overwrite=True)


# What comes back

LEVELS: list[list[Any]] = [
    ["a", None, 'ü, "quoted"\r\n', "'", " x "],
    [*(n * "'" + first + "x" for first in RUN for n in range(3)), "-1", "-1-1", "+5", "'+5", "'5"],
    [1, -2, 2**62],
    [0.5, 1.0, -1e300, 5e-324],
    [True, False, None],
    [date(2026, 1, 1), date(1, 1, 1), None],
    [datetime(2026, 1, 1, 12, 30, 0, 7), datetime(2026, 1, 1)],
    [None],
]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("end", ENDS)
def test_levels_come_back(levels: list[Any], end: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{end}"
    places = [0, *range(len(levels)), 0]
    given = {"=x": [levels[place] for place in places], "n": np.arange(len(places))}
    _published.write(path, given, {"format": "any"}, overwrite=False)
    found = _published.read(path)
    assert (found.facts, found.names) == ({"format": "any"}, ["=x", "n"])
    assert found.columns[0].among(levels).tolist() == places
    assert found.counts.dtype == np.int64
    assert found.counts.tolist() == list(range(len(places)))
    with pytest.raises(ValueError, match="other rows"):
        found.columns[0].among(levels[1:])


@pytest.mark.parametrize("end", ENDS)
def test_no_rows_come_back(end: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{end}"
    _published.write(path, {"a": [], "n": np.array([], np.int64)}, {}, overwrite=False)
    assert content(path) == ({}, ["a", "n"], [[], []])


MADE: dict[str, Any] = {
    **RELEASED,
    "ints": of_leaves(
        tables.Hierarchy({n: n // 3 for n in range(1, 13)}, leaves_only=True), range(8)
    ).release(epsilon=1),
    "shares": of_leaves(TREE, [3, 5, 8], shares={"node": [1, 2, 3]}).release(
        epsilon="0.7", label="2026"
    ),
    "no group": DESIGNS["texts"].count(PEOPLE).release(epsilon=0.5, at_least=10**9),
    "a name": tables.Design({"sex": ["f", None], "area": TREE}, l0=2, linf=3, name="people")
    .count(PEOPLE)
    .release(epsilon=1),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", MADE)
def test_releases_of_every_kind_come_back(name: str, end: str, tmp_path: Path) -> None:
    """A reader with the file alone has the rows, the facts and the intervals."""
    made, path = MADE[name], tmp_path / f"x.{end}"
    made.save(path)
    found = geomdp.read(path)
    assert type(found) is type(made)
    for fact in ("design", "epsilon", "label", "about", "at_least", "mechanisms", "mechanism"):
        assert getattr(found, fact, None) == getattr(made, fact, None)
    assert found.to_dict() == made.to_dict()
    assert list(found.frame.columns) == list(made.frame.columns)
    if name == "top":
        assert found.accuracy(0.05) == made.accuracy(0.05)
    else:
        pd.testing.assert_frame_equal(found.intervals(0.05), made.intervals(0.05))


#: Texts of all short sequences of what parts and runs cells.
PARTS = ["".join(x) for n in (1, 2, 3) for x in itertools.product("=-\t\n;|,'\"a\ufeff ", repeat=n)]
PARTS += ["Firma;=cmd|' /C calc'!A0;", *LEVELS[1], *(f"{one};{one}1" for one in RUN)]


@pytest.mark.parametrize("separator", [*",;|\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
def test_no_cell_runs_in_a_spreadsheet(separator: str, quoting: Any, tmp_path: Path) -> None:
    """Where Excel parted cells at semicolons, the second half of a level ran."""
    path, levels = tmp_path / "x.csv", [*dict.fromkeys(PARTS)]
    given = {"a": ["b"] * len(levels), "b": levels, "\ufeff=1": levels, "n": np.arange(len(levels))}
    _published.write(path, given, {}, overwrite=False)
    text = path.read_bytes().decode()
    assert not text.startswith("\ufeff")
    csv.field_size_limit(2**24)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting)
    cells = {cell.lstrip("\ufeff") for row in rows for cell in row}
    assert not [x for x in cells if x and x[0] in RUN and not re.fullmatch(r"[+-]\d+", x)]
    found = _published.read(path)
    assert found.names == [*given]
    assert found.columns[1].among(levels).tolist() == found.columns[2].among(levels).tolist()
    assert found.columns[1].among(levels).tolist() == [*range(len(levels))]


@pytest.mark.parametrize("names", [*itertools.combinations(PARTS[:60], 2)][::37])
def test_no_name_of_a_column_runs_in_a_spreadsheet(names: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    given = {**{name: ["a"] for name in names}, "n": np.arange(1)}
    _published.write(path, given, {}, overwrite=False)
    text = path.read_bytes().decode()
    for separator in ",;|\t":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not [x for x in row if x.lstrip("\ufeff")[:1] and x.lstrip("\ufeff")[0] in RUN]
    assert _published.read(path).names == [*given]


def test_a_column_is_in_the_order_in_which_items_appear() -> None:
    column = Column(["a", "b", "c", "d"], [2, 0, 2, 3])
    assert (column.items, column.places.tolist()) == (["c", "a", "d"], [0, 1, 0, 2])
    assert list(column) == ["c", "a", "c", "d"]
    with pytest.raises(ValueError, match="repeat"):
        Column(["a", "a"], [0, 1]).among(["a", "b"])


def test_cells_are_quoted_as_csv_reads_them() -> None:
    known = Columns([*"abn"], ["string", "string", "integer"])
    rng = random.Random(0)
    for _ in range(2000):
        texts = {
            "a" + "".join(rng.choices(' ,"\r\n\0é;\x85\u2028', k=rng.randrange(4)))
            for _ in range(4)
        }
        column = Column.of(rng.choices([*texts], k=5))
        written = formats._csv({"a": column, "b": column}, np.arange(5), known).decode()
        shown = [*map(formats._escaped, column)]
        rows = [known.names, *([x, x, str(n)] for n, x in enumerate(shown))]
        assert [*csv.reader(io.StringIO(written, newline=""))] == rows
        doubled = [text.replace('"', '""') for text in shown]
        cells = [f'"{x}"' if re.search(r"[^\w .-]", x) else x for x in doubled]
        lines = ["a,b,n", *(f"{cell},{cell},{n}" for n, cell in enumerate(cells)), ""]
        assert written == "\r\n".join(lines)


# Whoever wrote them


@pytest.fixture(scope="module")
def released(tmp_path_factory: Any) -> dict[str, tuple[Path, Any, Any]]:
    """Files of each kind, with their readers and what they have."""
    folder = tmp_path_factory.mktemp("released")
    data = pd.DataFrame({"area": ["a"] * 400 + ["b"] * 90, "on": [date(2026, 1, 1)] * 490})
    levels = {"area": ["a", "b"], "on": [date(2026, 1, 1), date(2026, 1, 2)]}
    table = tables.count(data, levels)
    parents = {"a": "all", "b": "all", "b1": "b", "b2": "b"}
    tree, leaves = (tables.Hierarchy(parents, leaves_only=only) for only in (False, True))
    made = {
        "table": (tables.count(data, levels, margins={"area": "all"}).release(epsilon="1/3")),
        "groups": table.release(epsilon="1/3", at_least=60),
        "tree": of_leaves(leaves, [3, 5, 8]).release(epsilon="1/3"),
        "open tree": tables.count(data, {"area": tree}, other="?").release(epsilon="1/3"),
        "top": table.top(2, epsilon="1/3"),
    }
    files = {}
    for (kind, noisy), end in itertools.product(made.items(), ENDS):
        path = folder / f"{kind}.{end}"
        noisy.save(path)
        files[path.name] = path, geomdp.read, public(noisy)
    return files


def public(noisy: Any) -> Any:
    return noisy.to_dict(), noisy.epsilon


def check(name: str, path: Path, read: Any, wanted: Any) -> bool:
    """Return whether a damaged file is read: as it was, or else it is a ValueError, in time."""
    start, why = time.process_time(), None
    try:
        found = public(read(path))
    except ValueError as error:
        why = error
    assert time.process_time() - start < 8
    if why is None:
        assert found == wanted
        return True
    assert type(why) is ValueError
    assert name in str(why)
    assert len(str(why)) < 1000
    return False


@pytest.mark.filterwarnings("ignore:.*another plan")
@pytest.mark.parametrize("kind", ["table", "groups", "tree"])
def test_damaged_bytes_are_read_as_they_were_or_refused(
    kind: str, released: Any, tmp_path: Path
) -> None:
    chance = random.Random(5)
    for end, suffix in itertools.product(ENDS, ("", ".json")):
        path, read, wanted = released[f"{kind}.{end}"]
        for turn in range(150):
            target = tmp_path / path.name
            for each in path.parent.glob(f"{path.name}*"):
                (tmp_path / each.name).write_bytes(each.read_bytes())
            spoilt = tmp_path / f"{path.name}{suffix}"
            spoilt.write_bytes(damaged(spoilt.read_bytes(), chance))
            if turn % 2 and not suffix:
                restate(target)
                # Counts that agree with their digest are counts.
                with contextlib.suppress(ValueError):
                    found = public(read(target))
                    assert (found[0].keys(), found[1]) == (wanted[0].keys(), wanted[1]) or (
                        kind == "groups"
                    )
            else:
                check(path.name, target, read, wanted)


@pytest.mark.filterwarnings("ignore:.*another plan")
@pytest.mark.parametrize("kind", ["table", "groups", "tree"])
@pytest.mark.parametrize("end", ENDS)
def test_hostile_facts_are_refused(kind: str, end: str, released: Any, tmp_path: Path) -> None:
    path, read, wanted = released[f"{kind}.{end}"]
    chance, target = random.Random(6), tmp_path / path.name
    target.write_bytes(path.read_bytes())
    given = described(path)
    read_at_all = 0
    for _ in range(200):
        facts = {"geomdp": spoiled(given["geomdp"], chance)}
        text = json.dumps(given | facts if chance.random() < 0.8 else spoiled(given, chance))
        (tmp_path / f"{path.name}.json").write_text(text)
        read_at_all += check(path.name, target, read, wanted)
    # Fields that no reader needs.
    assert read_at_all < 100


GONE = object()
#: Facts of files, with other values or left out, and what the message says.
UNFIT: list[tuple[str, str, Any, str]] = [
    ("table", "format", "geomdp-release-9", "has the format"),
    ("table", "epsilon", "1/2", "another privacy loss"),
    ("table", "l0", 3, "cannot be read"),
    ("table", "mechanisms", [], "cannot be read"),
    *(("table", name, GONE, "cannot be read") for name in ("axes", "label", "version", "epsilon")),
    ("table", "axes.area.levels", ["x"], "other rows"),
    ("table", "axes.on.margin", ["x"], "cannot be read"),
    ("table", "axes.on.shares", ["1/0"], "cannot be read"),
    ("table", "axes.on.shares", ["1/3", "1/3"], "cannot be read"),
    ("table", "axes.on.shares", ["1/2", "1/2"], "cannot be read"),
    ("table", "mechanisms.0.plan_sha256", GONE, "cannot be read"),
    ("table", "mechanisms.0.rate", "1/0", "cannot be read"),
    ("table", "mechanisms.0.bounds", [0, 2**200], "cannot be read"),
    # These were an OverflowError, and an error without the file's name.
    *(("table", f"mechanisms.{n}.bounds", [0, 2**64 - 1], "cannot be read: Ov") for n in (0, 1)),
    (
        "groups",
        "mechanisms",
        [{"depths": [0, 0], "rate": "1/3"}] * 2,
        r"groups\.csv cannot be read",
    ),
    *(("table", "about", each, "about") for each in (None, [], "x", {"titel": "x"}, {"title": 1})),
    *(("top", "about", {"title": each}, "title") for each in ("", " ", "a\tb", ["x"])),
    ("table", "about", GONE, "cannot be read"),
    ("tree", "epsilon", "2", "another privacy loss"),
    ("tree", "mechanisms.0.rate", "1/5", "cannot be read"),
    ("tree", "mechanisms.0.rate", "0", "cannot be read"),
    ("tree", "mechanisms.0.depths", [0, 0], "cannot be read"),
    ("tree", "axes.nodes", {}, "cannot be read"),
    ("tree", "axes.node.parents", [-1, -1], "cannot be read"),
    ("top", "top", 1, "other rows"),
    ("top", "top", None, "other rows"),
    ("top", "epsilon", "2", "another privacy loss"),
    ("top", "linf", 2, "another privacy loss"),
    ("top", "mechanisms", [], "other depths"),
    # What these states was not read.
    ("groups", "part_of", "9", "a step of what has none"),
    ("groups", "moved", 1, "a sum of what has none"),
    ("top", "part_of", "9", "a step of what has none"),
    ("table", "part_of", "1/9", "a step of a stream with another"),
    *(("groups", f"axes.area.{x}", {}, "are no list") for x in ("other", "margin", "bins")),
]


@pytest.mark.parametrize("unfit", UNFIT)
def test_facts_that_do_not_fit_are_refused(unfit: Any, released: Any, tmp_path: Path) -> None:
    kind, fact, value, message = unfit
    path, _, _ = released[f"{kind}.csv"]
    (tmp_path / path.name).write_bytes(path.read_bytes())
    description = described(path)
    part, (*keys, last) = description["geomdp"], fact.split(".")
    for key in keys:
        part = part[int(key) if key.isdigit() else key]
    part[last] = value
    if value is GONE:
        del part[last]
    (tmp_path / f"{path.name}.json").write_text(json.dumps(description))
    with pytest.raises(ValueError, match=message):
        geomdp.read(tmp_path / path.name)


def test_a_chosen_table_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    design = tables.Design({"area": ["A", "B"], "sex": ["f", "m"]}, tables=["area", "sex"])
    design.count(PEOPLE).release(epsilon=1, save=path)
    description = json.loads(path.with_suffix(".csv.json").read_text())
    stated = description["geomdp"]["tables"]
    stated.append(stated[0] | {"part": "1/3"})
    path.with_suffix(".csv.json").write_text(json.dumps(description))
    with pytest.raises(ValueError, match="it has a table twice"):
        geomdp.read(path)


#: A value of each type of JSON.
VALUES: dict[str, Any] = {
    "null": None, "boolean": True, "integer": 7, "number": 1.5, "string": "x", "array": [],
    "object": {},
}  # fmt: skip


@pytest.mark.parametrize("name", [*FIELDS, *(f"parts.{name}" for name in OF_PART)])
@pytest.mark.parametrize("kind", ["flat", "groups and rest", "top", "sum"])
def test_a_field_has_the_type_that_the_schema_states(kind: str, name: str, tmp_path: Path) -> None:
    """Null for `neighbours`, a delta of 1, and no parts in an object were read."""
    path = tmp_path / "a.csv"
    RELEASED[kind].save(path)
    description = json.loads(path.with_suffix(".csv.json").read_text())
    own, schema = description["geomdp"], FIELDS[name.removeprefix("parts.")].schema
    if "." in name:
        if not own["parts"]:
            return
        own, name = own["parts"][0], name.removeprefix("parts.")
    kinds = schema.get("type", "" if {"const", "enum"} & schema.keys() else "string")
    for other in VALUES.keys() - ({kinds} if isinstance(kinds, str) else {*kinds}):
        value = VALUES[other]
        path.with_suffix(".csv.json").write_text(
            json.dumps(description | {"geomdp": replaced(description["geomdp"], own, name, value)})
        )
        with pytest.raises(ValueError, match=r"a\.csv cannot be read"):
            geomdp.read(path)


def replaced(whole: Any, own: Any, name: str, value: Any) -> Any:
    """Return a description in which one object has another value."""
    if whole is own:
        return whole | {name: value}
    return whole | {"parts": [x | {name: value} if x is own else x for x in whole["parts"]]}


def texts_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where each text of a description is: an object or a list, and its key or place."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in [*pairs]:
        if isinstance(each, str):
            yield value, key
        elif isinstance(each, dict | list):
            yield from texts_of(each)


@pytest.mark.parametrize("kind", ["table", "groups", "tree", "open tree", "top"])
def test_no_text_of_a_file_runs_in_a_terminal(kind: str, released: Any, tmp_path: Path) -> None:
    """A label or the name of a tier cleared the screen of who read the file."""
    path, _, _ = released[f"{kind}.csv"]
    (tmp_path / path.name).write_bytes(path.read_bytes())
    names = []
    for n in itertools.count():
        description = described(path)
        facts = description["geomdp"]
        facts |= {"label": "x", "individual": ["x"], "summed": "x", "having": "x"}
        facts["tier"] = {"name": "x", "epsilons": ["1/3", "1/2"]}
        facts["about"] = {"title": "x"}
        left = [*texts_of(facts)]
        if n == len(left):
            break
        part, key = left[n]
        names.append(key)
        part[key] += "\x1b[2J"
        (tmp_path / f"{path.name}.json").write_text(json.dumps(description))
        why = (
            r"cannot be read: its field '.*' has other than text|cannot be read: it has the format"
        )
        with pytest.raises(ValueError, match=why) as caught:
            geomdp.read(tmp_path / path.name)
        assert str(caught.value).isprintable()
    assert {"label", "unit", "name", "title", "version", "summed", "having"} <= {*names}
    assert len(names) > 20


def rewrite(path: Path, table: Any, **settings: Any) -> None:
    """Write a Parquet file of any rows, which its description states."""
    settings = {"compression": "NONE", "store_schema": False} | settings
    parquet.write_table(table, path, **settings)
    restate(path)


def test_mechanisms_that_repeat_are_refused(released: Any, tmp_path: Path) -> None:
    """The error was one of zip, without the file's name."""
    for kind in ("table", "groups", "tree", "top"):
        path, _, _ = released[f"{kind}.csv"]
        (tmp_path / path.name).write_bytes(path.read_bytes())
        description = described(path)
        mechanisms = description["geomdp"]["mechanisms"]
        mechanisms.append(mechanisms[-1])
        (tmp_path / f"{path.name}.json").write_text(json.dumps(description))
        with pytest.raises(ValueError, match=rf"^{kind}\.csv cannot be read: "):
            geomdp.read(tmp_path / path.name)


def test_hostile_numbers_are_refused() -> None:
    assert table_file.fraction("1/10") == Fraction(1, 10)
    assert table_file.fraction("9" * 4000) == 10**4000 - 1
    for bad in (
        "1e999999999",
        "1.5",
        "-1",
        "1/0",
        "9" * 9000,
        "\uff11",
        "1_0",
        " 1",
        "",
        None,
        1,
        0.5,
    ):
        with pytest.raises(ValueError, match="is not accepted: give an integer or a fraction"):
            table_file.fraction(bad)


DESCRIPTIONS = [
    (b"[" * 10**6, "damaged"),
    (b'{"geomdp": ' * 10**5, "damaged"),
    (b'{"geomdp": {}, "geomdp": {}}', "a key repeats"),
    (b'{"geomdp": {"x": NaN}}', "beyond float64"),
    (b'{"geomdp": {"x": 1e999}}', "beyond float64"),
    (b'{"geomdp": {"x": ' + b"9" * 10**6 + b"}}", "damaged"),
    (b'{"geomdp": {"x": [' + b"0," * 2**22 + b"0]}}", "values is not accepted"),
    (b'{"geomdp": "' + b"x" * 2**26 + b'"}', "a description of .* bytes is not accepted"),
    (b'{"geomdp": {"x": "\xff"}}', "damaged"),
    (b"[]", "no description of a release"),
    (b'{"geomdp": []}', "no description of a release"),
    (b'{"geomdp": {}}', "KeyError: 'schema'"),
    (b"", "damaged"),
]


@pytest.mark.parametrize(("text", "message"), DESCRIPTIONS)
def test_hostile_descriptions_are_refused(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    (tmp_path / "x.csv.json").write_bytes(text)
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"^x\.csv(\.json)? cannot be read: .*{message}"):
        _published.read(path)
    assert time.process_time() - start < 8


COUNTS = [
    "50.9",
    "5_0",
    " 50",
    "50 ",
    "\uff15\uff10",
    "+50",
    "050",
    "-0",
    "",
    "0x5",
    "1e3",
    str(2**63),
    "'-5",
]


@pytest.mark.parametrize("count", COUNTS)
def test_counts_are_integers_as_they_are_written(count: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 77), {}, overwrite=False)
    path.write_bytes(path.read_bytes().replace(b"77", count.encode()))
    restate(path)
    with pytest.raises(ValueError, match=r"^x\.csv cannot be read: "):
        _published.read(path)


HUGE = pa.array(["x" * 10**6])
COLUMNS: list[tuple[Any, Any]] = [
    (pa.array([1.0, 2.0, 50.9]), {}),
    (pa.array([True, False, True]), {}),
    (pa.array([b"1", b"2", b"3"]), {}),
    (pa.array(["1", "2", "5_0"]), {}),
    (pa.array([1, 2, None]), {}),
    (pa.array([1, 2, 3], pa.int32()), {}),
    (pa.array([1, 2, 3], pa.uint64()), {}),
    (pa.array([[1], [2], [3]]), {}),
    (pa.array([{"n": 1}, {"n": 2}, {"n": 3}]), {}),
    (pa.array([1, 2, 3]).dictionary_encode(), {}),
    (pa.array([1, 2, 3]), {"compression": "zstd"}),
    (pa.array([1, 2, 3]), {"store_schema": True}),
]


@pytest.mark.parametrize(("counts", "settings"), COLUMNS)
def test_parquet_has_int64_counts_alone(counts: Any, settings: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    rewrite(path, pa.table({**ROWS, "n": pa.array([1, 2, 3])}))
    assert content(path)[2][-1] == [1, 2, 3]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(np.int64(3).tobytes(), np.int64(4).tobytes()))
    assert path.read_bytes() != whole
    with pytest.raises(ValueError, match="its rows are not those of its description"):
        _published.read(path)
    rewrite(path, pa.table({**ROWS, "n": counts}), **settings)
    if pa.types.is_dictionary(counts.type):
        # The same in Parquet, which knows no such type.
        assert content(path)[2][-1] == [1, 2, 3]
        return
    with pytest.raises(ValueError, match=r"^x\.parquet cannot be read: "):
        _published.read(path)


def test_parquet_that_would_be_larger_than_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    place = pa.array(np.zeros(10**6, np.int32))
    long = pa.DictionaryArray.from_arrays(place, HUGE)
    zeros = pa.array(np.zeros(10**6, np.int64))
    for counts in (["n"], []):
        # Without a dictionary counts are as long as they are.
        table = pa.table({"area": long, "sex": long, "n": zeros})
        rewrite(path, table, use_dictionary=["area", "sex", *counts])
        start = time.process_time()
        if counts:
            assert path.stat().st_size < 3 * 10**6
            with pytest.raises(ValueError, match=r"rows in .* are not accepted"):
                _published.read(path)
        else:
            assert _published.read(path).counts.size == 10**6
        assert time.process_time() - start < 8


@pytest.mark.parametrize("end", ENDS)
def test_a_table_with_hardly_any_noise_comes_back(end: str, tmp_path: Path) -> None:
    """All counts are 0: the smallest file for its rows."""
    given = {"a": Column(["x"], np.zeros(10**6)), "n": np.zeros(10**6, np.int64)}
    path = tmp_path / f"x.{end}"
    _published.write(path, given, {}, overwrite=False)
    assert _published.read(path).counts.size == 10**6


@pytest.mark.parametrize("end", ENDS)
def test_a_million_levels_are_read_in_seconds(end: str, tmp_path: Path) -> None:
    path, levels = tmp_path / f"x.{end}", [f"level {n}" for n in range(10**6)]
    given = {"a": levels, "n": np.arange(10**6)}
    _published.write(path, given, {"levels": {"a": levels}}, overwrite=False)
    start = time.process_time()
    found = _published.read(path)
    assert time.process_time() - start < 8
    assert found.columns[0].among(found.facts["levels"]["a"])[-1] == 10**6 - 1


#: Of a process that reads files with little memory.
READER = """
import io, json, resource, sys, time
import pyarrow.parquet
import geomdp
from geomdp import GeometricMechanism
from geomdp.cli import _parquet_file as parquet_file
from geomdp.cli._delimited import DataError

def refused(path):
    start = time.process_time()
    try:
        geomdp.read(path)
        why = "read"
    except ValueError as error:
        why = str(error)
    return why, time.process_time() - start

def limit():
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 500 * 10**6, resource.RLIM_INFINITY))
"""


def reading(script: str, *arguments: Any) -> Any:
    """Return what a process prints that reads files."""
    run = [sys.executable, "-c", READER + script, *map(str, arguments)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_no_bit_of_a_footer_ends_the_process(tmp_path: Path) -> None:
    """Arrow threw an error that nobody can catch if it was asked for the facts of a column."""
    tables.count(pd.DataFrame(ROWS), {"area": ["a", "b"]}).release(epsilon=1).save(
        tmp_path / "x.parquet"
    )
    script = """
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from restated import restate
path = Path(sys.argv[2])
whole = path.read_bytes()
start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
found = {}
for place in range(8 * start, 8 * len(whole)):
    spoilt = bytearray(whole)
    spoilt[place // 8] ^= 1 << place % 8
    path.write_bytes(spoilt)
    restate(path)
    why, _ = refused(path)
    found[why] = found.get(why, 0) + 1
    try:
        parquet_file.release(io.BytesIO(spoilt), io.BytesIO(), ["count"], GeometricMechanism(1))
    except DataError:
        pass
print(json.dumps(found))
"""
    found = reading(script, Path(__file__).parents[1], tmp_path / "x.parquet")
    assert sum(found.values()) > 1000
    # Facts that no reader needs.
    assert found.pop("read") < 800
    assert all(why.startswith("x.parquet cannot be read: ") for why in found)


#: Footers in Thrift's compact protocol, and why they are refused.
FOOTERS = [
    (b"\x19" * 10**4, "too deep"),
    (b"\x1c" * 10**4, "too deep"),
    (b"\x19\xf8" + b"\xff" * 9 + b"\1", "cut off"),
    (b"\x18" + b"\xff" * 9 + b"\1", "cut off"),
    (b"\x16" + b"\xff" * 10, "more than 64 bits"),
    (b"\x15\2\5\2\0\0", "out of order"),
    (b"\x15\2\5\x88\x80\x08\0\0", "out of order"),
    (b"\x1b\0\0", "another type"),
    (b"\x1d\0\0", "another type"),
    (b"\x49\x15\2\0", "TypeError"),
    (b"\x49\x1c\0\0", "KeyError"),
    (b"\x59\x0c\0", "metadata"),
    (b"", "cut off"),
]


@pytest.mark.parametrize(("footer", "message"), FOOTERS)
def test_hostile_footers_are_refused(footer: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(_footer.groups(footer, alone=True))


@pytest.mark.parametrize("file", [b"", b"PAR1", b"PAR1PAR1", b"PAR1\xff\0\0\0PAR1", bytes(50)])
def test_files_without_a_footer_are_refused(file: bytes) -> None:
    with pytest.raises(ValueError, match="it is no Parquet file"):
        _footer.found(io.BytesIO(file), 2**20)


def test_the_facts_of_a_footer_are_those_of_arrow() -> None:
    data = {"a.b": ["x", None, "y"] * 5, "n": range(15), "l": [[1], None, [2, 3]] * 5}
    file = io.BytesIO()
    codecs = {"a.b": "ZSTD", "n": "NONE", "l.list.element": "SNAPPY"}
    parquet.write_table(pa.table(data), file, compression=codecs, row_group_size=4)
    metadata = parquet.read_metadata(file)
    groups = list(_footer.groups(_footer.found(file, 2**20)))
    assert len(groups) == metadata.num_row_groups == 4
    for n, group in enumerate(groups):
        wanted = metadata.row_group(n)
        assert group.rows == wanted.num_rows
        for place, chunk in enumerate(group.chunks):
            column = wanted.column(place)
            assert chunk.path == column.path_in_schema
            assert chunk.codec.replace("NONE", "UNCOMPRESSED") == column.compression
            assert chunk.values == column.num_values
            assert chunk.size == column.total_compressed_size
            assert chunk.start in (column.dictionary_page_offset, column.data_page_offset)


def sparse(path: Path, start: bytes, size: int) -> None:
    """Write a file with zeros behind its start, which take no room."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)


def large(folder: Path) -> Iterator[Path]:
    """Yield files that are large, or of which much would be made."""
    noisy = tables.count(pd.DataFrame(ROWS), {"area": ["a", "b"]}).release(epsilon=1)

    def saved(name: str) -> tuple[Path, bytes, Any]:
        path = folder / name
        noisy.save(path)
        return path, path.read_bytes(), described(path)

    def stated(path: Path, description: Any, **facts: Any) -> None:
        path.with_name(f"{path.name}.json").write_text(json.dumps(description | facts))

    for end in ENDS:
        for n, size in enumerate((3 * 2**30, 2**31 - 1)):
            path, whole, _ = saved(f"sparse-{n}.{end}")
            sparse(path, whole, size)
            yield path
        path, _, description = saved(f"zeros.{end}")
        sparse(path, b"", 2**31 - 1)
        stated(path, description, bytes=2**31 - 1)
        yield path
        path, _, _ = saved(f"description.{end}")
        sparse(path.with_name(f"{path.name}.json"), b"{", 3 * 2**30)
        yield path
    many = b"," * 10**8
    for n, start in enumerate((b"", b"area,count\r\n", b"area,count\r\na")):
        path, _, _ = saved(f"commas-{n}.csv")
        path.write_bytes(start + (many if n < 2 else b',"\n"' * (25 * 10**6)))
        restate(path)
        yield path
    path = folder / "stream.jsonl"
    sparse(path, b"", 3 * 2**30)
    yield path
    path, _, description = saved("mechanisms.csv")
    one = description["geomdp"]["mechanisms"][0]
    description["geomdp"]["mechanisms"] = [one] * 10**5
    stated(path, description)
    yield path
    path, _, description = saved("depths.csv")
    axis = description["geomdp"]["axes"]["area"] | {"margin": ["all"], "shares": ["1/2"] * 2}
    description["geomdp"]["axes"] = {f"a{n}": axis for n in range(90)}
    stated(path, description)
    yield path
    path, _, description = saved("tiers.csv")
    tier = {"name": "x", "epsilons": [f"{n}/100000" for n in range(1, 10**5 + 1)]}
    description["geomdp"]["tier"] = tier
    stated(path, description)
    yield path
    path, _, description = saved("row.csv")
    sparse(path, b"area,count\r\na,1\r\n", 2**31 - 1)
    stated(path, description, bytes=2**31 - 1)
    yield path
    path, _, description = saved("shares.csv")
    tree = {"nodes": [*range(3000)], "parents": [*range(-1, 2999)]}
    tree["shares"] = [f"1/{10**9 + n}" for n in range(3000)]
    description["geomdp"]["axes"] = {"area": tree}
    stated(path, description)
    yield path


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_what_is_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A file of zeros took 22 seconds and 9 GB, and the columns of a row of commas 40 seconds."""
    files = [*large(tmp_path)]
    script = "limit()\nprint(json.dumps([refused(path) for path in sys.argv[1:]]))"
    for path, (why, seconds) in zip(files, reading(script, *files), strict=True):
        assert path.name in why
        assert "Memory" not in why, (path.name, why)
        assert "alloc" not in why, (path.name, why)
        assert seconds < 5, (path.name, seconds)


@pytest.mark.parametrize("row", [b"a," + b"1" * 2**20, b"," * 2**20, b'"' + b"\n" * 2**20 + b'",1'])
def test_a_row_that_is_too_long_is_refused_by_its_length(row: bytes, tmp_path: Path) -> None:
    """Before its cells are made, in a file that is small enough to be held."""
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    path.write_bytes(path.read_bytes() + row + b"\r\n")
    restate(path)
    with pytest.raises(ValueError, match=f"a row of more than {2**20} bytes is not accepted"):
        _published.read(path)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["x.csv", "x.csv.json", "x.parquet", "x.parquet.json", "x.jsonl"])
def test_a_pipe_in_place_of_a_file_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was put there after its name was checked, and reading it waited for ever."""
    path = tmp_path / name.removesuffix(".json")
    if name != "x.jsonl":
        _published.write(path, columns(1, 2, 3), {}, overwrite=False)
        os.unlink(tmp_path / name)
    regular = os.stat(__file__)
    os.mkfifo(tmp_path / name)
    monkeypatch.setattr(os, "stat", lambda *_, **__: regular)

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        with pytest.raises(ValueError, match=r"it is no file|is no stream"):
            geomdp.read(path)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


# What a message says

MENDED = [
    (lambda text: b"\xef\xbb\xbf" + text, "a byte order mark"),
    (lambda text: text.replace(b",", b";"), "semicolons part their cells"),
    (lambda text: text.replace(b",1\r", b",1.0\r"), "written like 1.0"),
    (lambda text: text.replace(b"\r\n", b"\n"), "end with LF instead of CRLF"),
    (lambda text: text.replace(b",1\r", b",2\r"), "they were edited"),
]


@pytest.mark.parametrize(("edit", "message"), MENDED)
def test_edited_rows_are_refused_with_the_reason(edit: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    path.write_bytes(edit(path.read_bytes()))
    with pytest.raises(ValueError, match=f"{message}.* Get both files as they were published"):
        _published.read(path)


def test_a_missing_description_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    os.unlink(tmp_path / "x.csv.json")
    why = r"^x\.csv cannot be read: its description x\.csv\.json is not"
    with pytest.raises(ValueError, match=why):
        _published.read(path)
    with pytest.raises(FileNotFoundError, match=r"y\.csv"):
        _published.read(tmp_path / "y.csv")
    os.mkfifo(tmp_path / "z.csv")
    with pytest.raises(ValueError, match=r"z\.csv cannot be read: it is no file"):
        _published.read(tmp_path / "z.csv")


def test_a_pair_of_different_releases_is_refused(tmp_path: Path) -> None:
    for name, counts in (("x", [1, 2, 3]), ("y", [1, 2, 4])):
        _published.write(tmp_path / f"{name}.csv", columns(*counts), {}, overwrite=False)
    os.replace(tmp_path / "y.csv.json", tmp_path / "x.csv.json")
    with pytest.raises(ValueError, match="edited, or are of another release"):
        _published.read(tmp_path / "x.csv")


def test_the_digest_is_that_of_the_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    description = json.loads((tmp_path / "x.csv.json").read_text())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert description["hash"] == f"sha256:{digest}"
    assert description["bytes"] == path.stat().st_size


# The page and its schema

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/format.schema.json").read_text())


def described(path: Path) -> Any:
    return json.loads(path.with_name(f"{path.name}.json").read_text())


def test_descriptions_are_those_of_the_schema(released: Any) -> None:
    for path, _, _ in released.values():
        assert errors(described(path), SCHEMA, SCHEMA) == []


def test_the_schema_refuses_other_descriptions(released: Any) -> None:
    """The schema and its validator can fail: nearly every fact with another value is refused."""
    found, free = set(), {"name", "path", "version", "label", "individual"}
    path, _, _ = released["table.csv"]
    given = described(path)
    for part in (given, given["geomdp"], given["geomdp"]["mechanisms"][0], given["schema"]):
        for key, value in list(part.items()):
            for other in (0.5, "x", None, [0]):
                part[key] = other
                found |= {key} if errors(given, SCHEMA, SCHEMA) else set()
            del part[key]
            assert errors(given, SCHEMA, SCHEMA) or key not in SCHEMA["required"]
            part[key] = value
    assert found >= {*given, *given["geomdp"]["mechanisms"][0], *given["schema"]} - {
        "sums_over",
        "depths",
    }
    assert found >= SCHEMA["$defs"]["release"]["properties"].keys() - free - {"at_least"}
    assert errors(given, SCHEMA, SCHEMA) == []
