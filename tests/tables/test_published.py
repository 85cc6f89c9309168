"""Published files: whole or not at all, and read with care, whoever wrote them."""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import random
import re
import time
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
from geomdp import _new_file, _published, frames
from geomdp._published import Column
from json_schema import errors
from published_kinds import DESIGNS, PEOPLE, RELEASED, TREE
from restated import damaged, restate

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

    def __init__(self, left: int, links: bool) -> None:
        self.left, self.links = left, links

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        return self.dying(value) if callable(value) and name != "urandom" else value

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
        for module in (_new_file, _published):
            patch.setattr(module, "os", dying)
        patch.setattr(_new_file, "open", dying.dying(open), raising=False)
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
            assert sorted(os.listdir(folder)) == [f"x.{end}", "x.csv.json"][: 1 + (end == "csv")]
            break
    assert step > 5


@pytest.mark.parametrize("end", ENDS)
def test_a_killed_first_save_does_not_block_the_next(end: str, tmp_path: Path) -> None:
    for step in itertools.count():
        (folder := tmp_path / str(step)).mkdir()
        path = folder / f"x.{end}"
        done = save(path, columns(1, 2, 3), {"epsilon": "1"}, False, Dying(step, links=True))
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
    start = f".{_published._waiting(str(path))}"
    (tmp_path / f"{start}-1.json").write_text(text)
    assert content(path)[0] == {"epsilon": "1"}
    (tmp_path / f"{start}-2.json").write_text(text.replace('"epsilon": "1"', '"epsilon": "2"'))
    with pytest.raises(ValueError, match="its rows are not those of its description"):
        _published.read(path)


def test_nothing_is_left_of_a_save_that_fails(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(OSError, match=r"x\.csv"):
        _published.write(tmp_path / "x.csv", columns(1, 2, 3), {}, overwrite=True)
    assert os.listdir(tmp_path) == ["x.csv"]
    for end in ENDS:
        with pytest.raises(FileNotFoundError, match=r"no such folder, make it first: .*none'$"):
            _published.write(tmp_path / "none" / f"x.{end}", columns(1, 2, 3), {}, overwrite=True)


# What comes back

LEVELS: list[list[Any]] = [
    ["a", None, 'ü, "quoted"\r\n', "'", " x "],
    ["=1+1", "-1", "+ others", "'=x", "''@y", "@home", "\tz", "\rz", "-1-1", "+5", "--", "'5"],
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
    "ints": frames.Hierarchy({n: n // 3 for n in range(1, 13)}).release(range(8), epsilon=1),
    "shares": TREE.release([3, 5, 8], epsilon="0.7", label="2026", shares=[1, 2, 3]),
    "no group": DESIGNS["texts"].count(PEOPLE).release(epsilon=0.5, at_least=10**9),
    "a name": frames.Design({"sex": ["f", None], "area": TREE}, l0=2, linf=3, name="people")
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
    for fact in ("design", "epsilon", "label", "at_least", "mechanisms", "mechanism"):
        assert getattr(found, fact, None) == getattr(made, fact, None)
    assert found.to_dict() == made.to_dict()
    assert list(found.frame.columns) == list(made.frame.columns)
    if name == "top":
        assert found.accuracy(0.05) == made.accuracy(0.05)
    else:
        pd.testing.assert_frame_equal(found.intervals(0.05), made.intervals(0.05))


def test_no_cell_runs_in_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    given = {"=x": LEVELS[1], "n": np.arange(len(LEVELS[1]))}
    _published.write(path, given, {}, overwrite=False)
    cells = pd.read_csv(path, dtype=str, keep_default_na=False)
    for cell in [*cells.columns, *cells.iloc[:, 0]]:
        assert not re.match(r"[=+\-@\t\r]", cell) or re.fullmatch(r"[+-]\d+", cell)


def test_a_column_is_in_the_order_in_which_items_appear() -> None:
    column = Column(["a", "b", "c", "d"], [2, 0, 2, 3])
    assert (column.items, column.places.tolist()) == (["c", "a", "d"], [0, 1, 0, 2])
    assert list(column) == ["c", "a", "c", "d"]
    with pytest.raises(ValueError, match="repeat"):
        Column(["a", "a"], [0, 1])


# Whoever wrote them


@pytest.fixture(scope="module")
def released(tmp_path_factory: Any) -> dict[str, tuple[Path, Any, Any]]:
    """Files of each kind, with their readers and what they have."""
    folder = tmp_path_factory.mktemp("released")
    data = pd.DataFrame({"area": ["a"] * 400 + ["b"] * 90, "on": [date(2026, 1, 1)] * 490})
    levels = {"area": ["a", "b"], "on": [date(2026, 1, 1), date(2026, 1, 2)]}
    table = frames.count(data, levels)
    tree = frames.Hierarchy({"a": "all", "b": "all", "b1": "b", "b2": "b"})
    made = {
        "table": (frames.count(data, levels, margins={"area": "all"}).release(epsilon="1/3")),
        "groups": table.release(epsilon="1/3", at_least=60),
        "tree": tree.release([3, 5, 8], epsilon="1/3"),
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


#: Values in place of others.
HOSTILE: list[Any] = [
    None, True, -1, 0, 50.9, 2**70, 10**400, 1e308, "", "1e999999999", "9" * 10**5, "1/0", "-1",
    "NaN", "\uff15\uff10", " 1", "1_0", [], {}, [None], [[]], {"date": "x"}, {"date": 5}, {"x": 1},
    [0, 2**200], "\0", "x" * 10**6, ["a"] * 3, [*range(10**5)], {"a": {"share": "2"}},
]  # fmt: skip


def spoiled(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with a part replaced, dropped or repeated."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        keys = [*value] if isinstance(value, dict) else [*range(len(value))]
        key = chance.choice(keys)
        found: Any = dict(value) if isinstance(value, dict) else [*value]
        if chance.random() < 0.1:
            del found[key]
        else:
            found[key] = spoiled(value[key], chance)
        return found
    return chance.choice(HOSTILE)


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
    for end, suffix in (("csv", ""), ("csv", ".json"), ("parquet", "")):
        path, read, wanted = released[f"{kind}.{end}"]
        for turn in range(150):
            target = tmp_path / path.name
            for each in path.parent.glob(f"{path.name}*"):
                (tmp_path / each.name).write_bytes(each.read_bytes())
            spoilt = tmp_path / f"{path.name}{suffix}"
            spoilt.write_bytes(damaged(spoilt.read_bytes(), chance))
            if turn % 2 and end == "csv" and not suffix:
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
    whole = path.read_bytes()
    if end == "csv":
        target.write_bytes(whole)
        given = json.loads((path.parent / f"{path.name}.json").read_bytes())
    else:
        given = json.loads(parquet.read_metadata(path).metadata[b"geomdp"])
        table = parquet.read_table(path)
    read_at_all = 0
    for _ in range(200):
        facts = {"geomdp": spoiled(given["geomdp"], chance)}
        text = json.dumps(
            given | facts if chance.random() < 0.8 else spoiled(given, chance)
        ).encode()
        if end == "csv":
            (tmp_path / f"{path.name}.json").write_bytes(text)
        else:
            rewrite(target, table, text)
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
    ("table", "mechanisms.0.plan_sha256", GONE, "cannot be read"),
    ("table", "mechanisms.0.rate", "1/0", "cannot be read"),
    ("table", "mechanisms.0.bounds", [0, 2**200], "cannot be read"),
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


def rewrite(path: Path, table: Any, text: bytes, *, seal: bool = True, **settings: Any) -> None:
    """Write a Parquet file with any rows and description, and the hash that it needs."""
    settings = {"compression": "NONE", "store_schema": False} | settings
    with parquet.ParquetWriter(path, table.schema, **settings) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"geomdp": text})
    before, mark, after = path.read_bytes().rpartition(b"geomdp-parquet-sha256:")
    if seal and mark:
        digest = hashlib.sha256(before + mark + b"0" * 64 + after[64:]).hexdigest()
        path.write_bytes(before + mark + digest.encode() + after[64:])


def test_hostile_numbers_are_refused() -> None:
    assert _published.fraction("1/10") == Fraction(1, 10)
    assert _published.fraction("9" * 4000) == 10**4000 - 1
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
            _published.fraction(bad)


DESCRIPTIONS = [
    (b"[" * 10**6, "damaged"),
    (b'{"geomdp": ' * 10**5, "damaged"),
    (b'{"geomdp": {}, "geomdp": {}}', "a key repeats"),
    (b'{"geomdp": {"x": NaN}}', "beyond float64"),
    (b'{"geomdp": {"x": 1e999}}', "beyond float64"),
    (b'{"geomdp": {"x": ' + b"9" * 10**6 + b"}}", "damaged"),
    (b'{"geomdp": {"x": [' + b"0," * 2**22 + b"0]}}", "values is not accepted"),
    (b'{"geomdp": "' + b"x" * 2**26 + b'"}', "bytes are not accepted"),
    (b'{"geomdp": {"x": "\xff"}}', "damaged"),
    (b"[]", "no description of a release"),
    (b'{"geomdp": []}', "no description of a release"),
    (b'{"geomdp": {}}', "are not those of its description"),
    (b"", "no description of a release"),
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
    text = parquet.read_metadata(path).metadata[b"geomdp"]
    rewrite(path, pa.table({**ROWS, "n": pa.array([1, 2, 3])}), text)
    assert content(path)[2][-1] == [1, 2, 3]
    rewrite(path, pa.table({**ROWS, "n": pa.array([1, 2, 4])}), text, seal=False)
    with pytest.raises(ValueError, match="its rows are not those of its description"):
        _published.read(path)
    rewrite(path, pa.table({**ROWS, "n": counts}), text, **settings)
    if pa.types.is_dictionary(counts.type):
        # The same in Parquet, which knows no such type.
        assert content(path)[2][-1] == [1, 2, 3]
        return
    with pytest.raises(ValueError, match=r"^x\.parquet cannot be read: "):
        _published.read(path)


def test_parquet_that_would_be_larger_than_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    _published.write(path, columns(1, 2, 3), {}, overwrite=False)
    text = parquet.read_metadata(path).metadata[b"geomdp"]
    place = pa.array(np.zeros(10**6, np.int32))
    long = pa.DictionaryArray.from_arrays(place, HUGE)
    few = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2 * 10**7, np.int32)), pa.array(["x"]))
    for area in (long, few):
        zeros = pa.array(np.zeros(len(area), np.int64))
        rewrite(path, pa.table({"area": area, "sex": area, "n": zeros}), text)
        start = time.process_time()
        if area is long:
            assert _published.read(path).counts.size == 10**6
        else:
            with pytest.raises(ValueError, match=r"rows? in .* are not accepted"):
                _published.read(path)
        assert time.process_time() - start < 8


def test_a_table_with_hardly_any_noise_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All counts are 0: the file would be too small for its rows."""
    monkeypatch.setattr(_published, "_ROWS", 10**5)
    given = {"a": Column(["x"], np.zeros(10**6)), "n": np.zeros(10**6, np.int64)}
    _published.write(tmp_path / "x.parquet", given, {}, overwrite=False)
    assert _published.read(tmp_path / "x.parquet").counts.size == 10**6


@pytest.mark.parametrize("end", ENDS)
def test_a_million_levels_are_read_in_seconds(end: str, tmp_path: Path) -> None:
    path, levels = tmp_path / f"x.{end}", [f"level {n}" for n in range(10**6)]
    given = {"a": levels, "n": np.arange(10**6)}
    _published.write(path, given, {"levels": {"a": levels}}, overwrite=False)
    start = time.process_time()
    found = _published.read(path)
    assert time.process_time() - start < 8
    assert found.columns[0].among(found.facts["levels"]["a"])[-1] == 10**6 - 1


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
    with pytest.raises(ValueError, match=r"its description x\.csv\.json is not beside it"):
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
    if path.suffix == ".parquet":
        return json.loads(parquet.read_metadata(path).metadata[b"geomdp"])
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
