"""Trees of columns, paths, codes and files: what nodes are called, and which records they count."""

import csv
import json
import math
import pickle
import re
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geomdp
from geomdp import cli
from geomdp._ground import parameters
from geomdp.tables import Design, Hierarchy
from geomdp.tables._columns import levels as _levels
from geomdp.tables._facts import hierarchy
from geomdp.tables._publish import formats
from leaves import of_leaves
from published_kinds import RUN

NAMES = ["country", "region", "tract"]
PLACES = [
    ("Norway", "Oslo", "Oslo"),
    ("Norway", "Oslo", "Frogner"),
    ("Norway", "Agder", "Evje"),
    ("Norway", "Troms", None),
    ("Svalbard", None, None),
    ("Chad", "Oslo", "Evje"),
]
FRAME = pd.DataFrame(PLACES, columns=NAMES)
LABELS = {"Norway": "Norge", "Norway/Oslo/Oslo": "Sentrum", "Frogner": "the west"}
TREE = Hierarchy.from_columns(FRAME, NAMES, root="all", labels=LABELS)
NODES = [
    *("all", "Norway", "Svalbard", "Chad"),
    *("Norway/Oslo", "Agder", "Troms", "Chad/Oslo"),
    *("Norway/Oslo/Oslo", "Frogner", "Norway/Agder/Evje", "Chad/Oslo/Evje"),
]
KEY = tuple(NAMES)
#: The same object twice, which is not equal to itself.
NAN = float("nan")
#: So little noise that counts are exact but for a probability of exp(-100).
CLEAR = 400


def shortened(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(name for name in row if name is not None)


# What nodes are called


def test_a_node_is_called_by_its_name_if_unique_and_else_by_its_path() -> None:
    assert TREE.nodes == NODES
    assert TREE.labels == {"Norway": "Norge", "Norway/Oslo/Oslo": "Sentrum", "Frogner": "the west"}
    below = Hierarchy.from_columns(FRAME[FRAME["country"] == "Norway"], NAMES)
    assert below.nodes == [
        *("Norway", "Norway/Oslo", "Agder", "Troms"),
        *("Norway/Oslo/Oslo", "Frogner", "Evje"),
    ]
    assert Hierarchy.from_columns(FRAME, NAMES, root="all") != TREE
    assert Hierarchy.from_columns(FRAME, NAMES, root="all", labels=LABELS, leaves_only=True) != TREE
    assert pickle.loads(pickle.dumps(TREE)) == TREE


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_of_any_library_makes_the_same_tree(make: Any) -> None:
    columns = {name: [row[place] for row in PLACES] for place, name in enumerate(NAMES)}
    assert Hierarchy.from_columns(make(columns), NAMES, root="all", labels=LABELS) == TREE
    assert Hierarchy.from_paths(map(shortened, PLACES), root="all", labels=LABELS) == TREE
    written = make({"x": ["/".join(shortened(row)) for row in PLACES]})["x"]
    assert Hierarchy.from_paths(written, root="all", labels=LABELS) == TREE


ROWS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple), min_size=1, max_size=8
)


@st.composite
def leaves(draw: Any) -> list[tuple[str, ...]]:
    """Draw paths of which none begins another."""
    found: list[tuple[str, ...]] = []
    for row in draw(ROWS):
        known = [one for one in found if one[: len(row)] == row or row[: len(one)] == one]
        if not known or known == [row]:
            found.append(row)
    return found


@given(leaves())
@settings(deadline=None)
def test_names_paths_and_parents_are_those_of_a_walk(rows: list[tuple[str, ...]]) -> None:
    tree = Hierarchy.from_paths(rows, root="all")
    paths = list(dict.fromkeys(row[:size] for row in rows for size in range(1, len(row) + 1)))
    times = Counter(path[-1] for path in paths)
    called = {path: path[-1] if times[path[-1]] == 1 else "/".join(path) for path in paths}
    above = {called[path]: called[path[:-1]] if path[1:] else "all" for path in paths}
    assert tree.parents == {"all": None} | above
    assert set(tree.leaves) == {called[row] for row in rows}
    [axis] = Design({"x": tree})._axes
    for path in paths:
        assert tree.nodes[axis.node("x", "/".join(path))] == called[path]
        assert tree.nodes[axis.node("x", called[path])] == called[path]
        name = path[-1]
        if times[name] > 1 and name not in called.values():
            same = [called[each] for each in paths if each[-1] == name]
            with pytest.raises(ValueError, match="the name of several nodes") as refused:
                axis.node("x", name)
            assert all(repr(each) in str(refused.value) for each in same[:5])
    assert pickle.loads(pickle.dumps(tree)) == tree


@given(st.lists(st.text("01", min_size=4, max_size=4), min_size=1), st.sampled_from([1, 2, 3]))
def test_prefixes_are_the_nodes_above_codes(codes: list[str], first: int) -> None:
    tree = Hierarchy.from_prefixes(codes, (first, 4), root="all")
    wanted = {code: code[:first] for code in codes} | {code[:first]: "all" for code in codes}
    assert tree.parents == {"all": None} | wanted
    listed = [*codes, *(code[:first] for code in codes)]
    assert set(Hierarchy.from_prefixes(listed, (first, 4), root="all").nodes) == set(tree.nodes)


def test_integers_that_do_not_repeat_stay_integers() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2], "b": [10, 11, 20]})
    assert Hierarchy.from_columns(frame, ["a", "b"], root=0).nodes == [0, 1, 2, 10, 11, 20]
    twice = pd.DataFrame({"a": [1, 2], "b": [7, 7]})
    with pytest.raises(ValueError, match="7 is the name of several nodes, which paths"):
        Hierarchy.from_columns(twice, ["a", "b"], root=0)


# Which records count where


def counted(data: Any, key: Any, tree: Hierarchy = TREE, **more: Any) -> dict[Any, int]:
    noisy = Design({key: tree}, **more).count(data).release(epsilon=CLEAR)
    return {node: n for node, n in noisy.to_dict().items() if n}


RECORDS = [
    ("Norway", "Oslo", "Oslo"),
    ("Norway", "Oslo", None),
    ("Norway", None, None),
    ("Norway", None, "Evje"),
    ("Norway", "Oslo", "Nowhere"),
    ("Chad", "Oslo", "Evje"),
    (None, "Oslo", "Oslo"),
    (None, None, None),
]
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "categories": lambda columns: pd.DataFrame(columns).astype("category"),
    "polars": pl.DataFrame,
    "lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "arrow": pa.table,
}


@pytest.mark.parametrize("library", FRAMES)
def test_records_are_counted_by_several_columns(library: str) -> None:
    columns = {name: [row[place] for row in RECORDS] for place, name in enumerate(NAMES)}
    data = FRAMES[library](columns | {"who": [*range(len(RECORDS))]})
    found = {
        **{"all": 4, "Norway": 3, "Norway/Oslo": 2, "Norway/Oslo/Oslo": 1},
        **{"Chad": 1, "Chad/Oslo": 1, "Chad/Oslo/Evje": 1},
    }
    assert counted(data, KEY) == found
    assert counted(data, KEY, individual="who", l0=1) == found
    other = {"else": 4, "all": 8}
    assert counted(data, KEY, other="else") == found | other
    strict = Hierarchy.from_columns(FRAME, NAMES, root="all", leaves_only=True)
    below = dict.fromkeys(("Norway", "Norway/Oslo", "Norway/Oslo/Oslo"), 1)
    lowest = {"all": 2, **below, "Chad": 1, "Chad/Oslo": 1, "Chad/Oslo/Evje": 1}
    assert counted(data, KEY, strict) == lowest


def test_a_column_has_names_or_paths() -> None:
    data = pd.DataFrame({"x": ["Frogner", "Norway/Oslo/Frogner", "Norway/Oslo", "Oslo", "Evje"]})
    assert counted(data, "x") == {"all": 3, "Norway": 3, "Norway/Oslo": 3, "Frogner": 2}
    # The name of one leaf alone is enough where all records have leaves.
    strict = Hierarchy.from_columns(FRAME, NAMES, root="all", leaves_only=True)
    found = counted(data, "x", strict)
    assert (found["all"], found["Frogner"], found["Norway/Oslo/Oslo"]) == (3, 2, 1)
    leaves = dict.fromkeys(["Oslo", "Frogner", "Troms", "Svalbard"], 5)
    evje = {"Norway/Agder/Evje": 6, "Chad/Oslo/Evje": 7}
    noisy = of_leaves(strict, leaves | evje).release(epsilon=CLEAR).to_dict()
    assert (noisy["Norway/Oslo/Oslo"], noisy["Norway"], noisy["all"]) == (5, 21, 33)


def test_two_columns_of_a_table_may_read_the_same_of_the_data() -> None:
    design = Design({KEY: TREE, "country": ["Norway", "Chad"]})
    assert design._axes[0].label == "country/region/tract"
    noisy = design.count(FRAME).release(epsilon=3 * CLEAR)
    assert noisy.to_dict()["Norway/Oslo", "Norway"] == 2


def test_questions_resolve_paths_and_refuse_names_of_several_nodes() -> None:
    noisy = Design({KEY: TREE}, shares={KEY: [1, 1, 1, 1]}).count(FRAME).release(epsilon=CLEAR)
    label = "/".join(KEY)

    def difference(one: str, other: str) -> int:
        frame = noisy.difference({label: one}, {label: other}, alpha=0.05)
        return round(float(frame["estimate"].iloc[0]))

    assert difference("Norway", "Chad/Oslo/Evje") == 3
    assert difference("Norway/Oslo/Frogner", "Frogner") == 0
    wanted = re.escape(
        "'Oslo', in one=, is the name of several nodes: give the path of one, of ['Norway/Oslo', "
        "'Chad/Oslo', 'Norway/Oslo/Oslo']"
    )
    with pytest.raises(ValueError, match=wanted):
        difference("Oslo", "Norway")
    with pytest.raises(ValueError, match="'Rome', in one=, is not a node of"):
        difference("Rome", "Norway")
    people = dict.fromkeys(TREE.nodes, 1000) | {"Norway/Oslo/Frogner": 10}
    rate = noisy.rate(people, by=label, per=1000).set_index(label)["estimate"]
    assert round(rate["Frogner"]) == 100


# Files


@pytest.mark.parametrize("suffix", ["csv", "parquet", "html"])
@pytest.mark.parametrize("key", [KEY, "tract"])
@pytest.mark.parametrize("other", [None, "else"])
def test_files_keep_paths_labels_and_columns(
    tmp_path: Path, suffix: str, key: Any, other: Any
) -> None:
    design = Design(
        {key: TREE, "sex": ["f", "m"]}, other=other and {key: other}, individual="who", l0=1
    )
    noisy = design.count(FRAME.assign(sex="f", who=range(6))).release(epsilon=1)
    noisy.save(tmp_path / f"x.{suffix}")
    if suffix == "html":
        text = (tmp_path / "x.html").read_text()
        assert "Sentrum" in text
        return
    read = geomdp.read(tmp_path / f"x.{suffix}")
    assert read.design == noisy.design == pickle.loads(pickle.dumps(noisy)).design
    [axis, _] = read.design._axes
    assert (axis.columns, axis.hierarchy) == ((key,) if key == "tract" else KEY, TREE)
    counts = dict.fromkeys(design.levels["/".join(KEY) if key == KEY else key], 0)
    assert {area for area, _ in read.to_dict()} == counts.keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paths": {"separator": "", "start": 0}}, "paths with ''"),
        ({"paths": {"separator": "/", "start": 2}}, "from depth 2"),
        ({"paths": {"separator": "/", "start": 0}}, "nodes have other paths"),
        ({"columns": ["a", "b"]}, "not accepted for a hierarchy with depths up to 3"),
        ({"columns": ["a", "b", "c"]}, "columns or shares of another form"),
        ({"columns": ["a", "b", "a"]}, "each once"),
        ({"labels": ["x"]}, "shorter"),
        ({"labels": [7] * len(NODES)}, "the label of 'all' has type int"),
    ],
)
def test_other_facts_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    Design({KEY: TREE}).count(FRAME).release(epsilon=1, save=tmp_path / "x.csv")
    described = tmp_path / "x.csv.json"
    facts = json.loads(described.read_text())
    facts["geomdp"]["axes"]["/".join(KEY)] |= change
    described.write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=message):
        geomdp.read(tmp_path / "x.csv")


# The command


def write(path: Path, rows: list[tuple[Any, ...]]) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def test_the_command_takes_a_tree_of_a_file(tmp_path: Path) -> None:
    labels = [("Norway", None, None, "Norge"), *((*row, None) for row in PLACES)]
    tree = write(tmp_path / "tree.csv", [(*NAMES, "label"), *labels])
    data = write(tmp_path / "in.csv", [(*NAMES, "sex"), *((*row, "f") for row in RECORDS)])
    (tmp_path / "sexes.txt").write_text("f\nm\n")
    options = ["--root", "all", "--epsilon", "1000"]
    sexes = ["--by", "sex", "--levels", str(tmp_path / "sexes.txt")]
    out = str(tmp_path / "out.csv")
    by = ["--by", "country/region/tract", "--tree", tree, *sexes]
    assert cli.main(["count", data, out, *by, *options]) == 0
    read = geomdp.read(out)
    assert read.design == Design(
        {
            KEY: Hierarchy.from_columns(FRAME, NAMES, root="all", labels={"Norway": "Norge"}),
            "sex": ["f", "m"],
        }
    )
    assert read.to_dict()["Norway", "f"] == 3
    strict = str(tmp_path / "strict.csv")
    by = ["--by", "tract", "--tree", tree]
    assert cli.main(["count", data, strict, *by, *options, "--leaves-only"]) == 0
    read = geomdp.read(strict)
    assert [axis.key for axis in read.design._axes] == ["tract"]
    assert (read.to_dict()["Norway/Oslo/Oslo"], read.to_dict()["all"]) == (2, 2)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (PLACES, [], "give --root, a name for the sum of all"),
        ([("", "", "")], [], "are empty"),
        ([("A",), ("A", "b", "c")], ["--root", "all"], "has another number of cells"),
        ([("A", "", ""), ("A", "b", "c")], ["--root", "x"], "is a leaf and has nodes below it"),
        ([("A", "1/2", "")], [], "contains '/'"),
    ],
)
def test_the_command_refuses_other_files(
    tmp_path: Path, capsys: Any, rows: Any, options: Any, message: str
) -> None:
    tree = write(tmp_path / "tree.csv", [tuple(NAMES), *rows])
    data = write(tmp_path / "in.csv", [tuple(NAMES), *RECORDS])
    given = ["--by", "tract", "--tree", tree, "--epsilon", "1", *options]
    assert cli.main(["count", data, str(tmp_path / "out.csv"), *given]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_options_of_trees_need_a_tree(tmp_path: Path, capsys: Any) -> None:
    for options in (["--root", "x"], ["--leaves-only"]):
        given = ["count", "in.csv", "out.csv", "--by", "x", "--levels", "l", "--epsilon", "1"]
        assert cli.main([*given, *options]) == 2
        assert "--root and --leaves-only are for a --tree" in capsys.readouterr().err


# What is refused


def of_paths(*paths: Any, **more: Any) -> Any:
    return lambda: Hierarchy.from_paths(paths, **more)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: Hierarchy(["Oslo", "Oslo"], ["Norway", "Chad"]),
            ValueError,
            "'Oslo' is a child twice",
        ),
        (of_paths("a/b", "a//c"), ValueError, "the row ('a', '', 'c') of paths has an empty name"),
        (of_paths((None, "")), ValueError, "paths are empty"),
        (of_paths(()), ValueError, "paths are empty"),
        (of_paths(("a",), (None,)), ValueError, "has no name"),
        (of_paths(""), ValueError, "has an empty name"),
        (of_paths(), ValueError, "paths are empty"),
        (of_paths(7), TypeError, "paths have one of type int: give text"),
        (of_paths("a/b", "a"), ValueError, "the row ('a',) of paths is a leaf and has nodes below"),
        (of_paths(("a", "x/y")), ValueError, "the name 'x/y' contains '/'"),
        (
            of_paths("a/b", "c"),
            ValueError,
            "paths begin with several names, ['a', 'c']: give root=",
        ),
        (of_paths("a", "c", root="a"), ValueError, "root = 'a' is not accepted"),
        (of_paths("a", "c", root="a/b"), ValueError, "the name 'a/b' contains '/'"),
        (of_paths("a", separator=""), ValueError, "separator = '' is not accepted"),
        (of_paths("a", separator=7), TypeError, "separator = 7 has type int"),
        (of_paths("a", labels=7), TypeError, "labels = 7 has type int"),
        (of_paths("a", labels={"b": "x"}), ValueError, "'b', in labels=, is not a node"),
        (of_paths("a/a", labels={"b": "x"}), ValueError, "'b', in labels=, is not a node"),
        (of_paths("r/a/b", "r/c/b", labels={"b": "x"}), ValueError, "of ['r/a/b', 'r/c/b']"),
        (of_paths("a", labels={"a": ""}), ValueError, "the label of 'a' is not accepted"),
        (of_paths("a", labels={"a": 7}), TypeError, "the label of 'a' has type int"),
        (
            lambda: Hierarchy.from_prefixes(["A01", "B1"], (1, 3)),
            ValueError,
            "the code 'B1' has 2 characters, which is not among lengths",
        ),
        (
            lambda: Hierarchy.from_prefixes([101], (1, 3)),
            TypeError,
            "codes have one of type int: give text",
        ),
        (lambda: Hierarchy.from_prefixes(["A"], (3, 1)), ValueError, "in increasing order"),
        (lambda: Hierarchy.from_prefixes(["A"], 3), TypeError, "lengths = 3 has type int"),
        (lambda: Hierarchy.from_columns(FRAME, "tract"), TypeError, "columns = 'tract' has type"),
        (lambda: Hierarchy.from_columns(FRAME, ["x"]), KeyError, "no column 'x' in the frame"),
        (
            lambda: Hierarchy.from_columns(pd.DataFrame({"a": ["x"], "b": [[1]]}), ["a", "b"]),
            TypeError,
            "columns are not accepted: give names that are text or numbers",
        ),
        (
            lambda: Hierarchy.from_columns(
                pd.DataFrame({"a": ["x", "x"], "b": [None, "z"], "c": ["z", "y"]}),
                ["a", "b", "c"],
                root=1,
            ),
            ValueError,
            "the row ('x', 'z') of columns is a leaf and has nodes below it",
        ),
        (
            lambda: Design({("a", "b"): TREE}),
            ValueError,
            "columns ('a', 'b') are not accepted for a hierarchy with depths up to 3",
        ),
        (lambda: Design({("a", "b"): ["x"]}), TypeError, "have one of type str: give tuples"),
        (lambda: Design({("a",): TREE}), ValueError, "give two or more names"),
        (lambda: Design({("a", "b", "a"): TREE}), ValueError, "each once"),
        (lambda: Design({("a", 1, "c"): TREE}), TypeError, "column = 1 has type int"),
        (
            lambda: Design({KEY: TREE, "country/region/tract": ["x"]}),
            ValueError,
            "column 'country/region/tract' is given twice",
        ),
        (lambda: Design({"x": TREE}, other="n/a"), ValueError, "other of 'x', 'n/a' contains '/'"),
        (lambda: Design({KEY: TREE}).count(FRAME[["tract"]]), KeyError, "no column 'country'"),
        (
            lambda: Design({KEY: TREE}).count(FRAME.assign(region=1)),
            ValueError,
            "levels of 'region' are not accepted: give values of its type, int64",
        ),
    ],
)
def test_bad_trees_and_designs_are_refused_by_the_node(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_a_tree_of_many_leaves_has_the_names_of_a_walk() -> None:
    n = 100_000
    places = np.arange(n)
    frame = pd.DataFrame(
        {"a": (places // 1000).astype(str), "b": (places // 10 % 100).astype(str)}
    ).assign(c=(places % 10).astype(str))
    tree = Hierarchy.from_columns(frame, ["a", "b", "c"], root="all")
    assert tree.leaves == [f"{k // 1000}/{k // 10 % 100}/{k % 10}" for k in range(n)]


# A column of names is looked at as a whole; here each is looked at by itself

ODD = st.one_of(
    st.text(alphabet="ab\ud800\udc00'=", max_size=2),
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64]),
    st.sampled_from([None, True, False, 0.0, -0.0, 1.5, math.inf, math.nan, NAN, b"a", (1, 2)]),
    st.sampled_from([np.int64(1), np.float64(2.5), np.str_("a"), np.bool_(True), np.float32(0.1)]),
    st.sampled_from([np.datetime64("2026-01-01"), np.datetime64("2026-01-01T00:00:01", "s")]),
    st.sampled_from([date(2026, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)]),
    st.sampled_from([pd.Timestamp("2026-01-01"), pd.NaT, pd.NA, Decimal(1), Fraction(1)]),
)
ALIKE = st.one_of(
    *(st.lists(each, max_size=5) for each in (st.text(max_size=2), st.integers(), st.floats())),
    st.lists(ODD, max_size=5),
    st.lists(st.one_of(st.none(), st.text(alphabet="ab", max_size=1)), max_size=4),
)


def each_alone(levels: Any) -> list[Any]:
    """Return levels that every library and file keeps, or raise an error, by one at a time."""
    items: list[Any] = []
    for level in levels:
        items.append(level if type(level) in _levels.TYPES else _levels._of_python(level))
    if len(set(items)) < len(items) or not items:
        raise ValueError("are empty or repeat one")
    kinds = {type(item) for item in items if item is not None}
    if kinds == {int, float}:
        items = [None if item is None else _levels._of_equal(float, item) for item in items]
        kinds = {type(item) for item in items if item is not None}
    if len(kinds) > 1 or not kinds <= set(_levels.TYPES):
        raise ValueError("since their types are")
    for item in items:
        if isinstance(item, str) and not parameters.is_text(item):
            raise ValueError("give text in UTF-8")
        if type(item) is int and not -(2**63) <= item < 2**63:
            raise ValueError("give integers of 64 bits")
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError("give finite numbers, and None for nulls")
        if isinstance(item, datetime) and item.tzinfo is not None:
            raise ValueError("give times without a zone")
    if "" in items and None in items:
        raise ValueError("'' and None look alike in CSV")
    return items


def outcome(call: Any) -> Any:
    """Return the types and values that a call returns, or its error."""
    try:
        found = call()
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return [(type(item), repr(item)) for item in found]


@settings(max_examples=1000, deadline=None)
@given(ALIKE)
def test_levels_are_those_that_pass_one_by_one(levels: list[Any]) -> None:
    slow, fast = outcome(lambda: each_alone(levels)), outcome(lambda: _levels.checked("x", levels))
    if isinstance(slow, tuple):
        assert fast[0] == slow[0]
        assert slow[1] in fast[1]
    else:
        assert fast == slow
    array = np.empty(len(levels), object)
    array[:] = [*levels]
    assert outcome(lambda: _levels.checked("x", array)) == fast


@pytest.mark.parametrize(
    "levels",
    [
        pd.Categorical(["b", "a"]).categories.to_numpy(),
        np.array(["a", "\ud800"]),
        np.array([1.5, math.nan]),
        np.array([2**63], np.uint64),
        [-1, -2],  # Of one hash in Python.
        [0, 2**61 - 1],
    ],
)
def test_levels_of_arrays_and_of_equal_hashes_are_those_that_pass_one_by_one(levels: Any) -> None:
    slow = outcome(lambda: each_alone(getattr(levels, "tolist", lambda: levels)()))
    fast = outcome(lambda: _levels.checked("x", levels))
    assert fast == slow or (fast[0] == slow[0] and slow[1] in fast[1])


def one_by_one(children: list[Any], parents: list[Any]) -> dict[Any, Any]:
    """Return the parent of each node, or raise an error, by one pair at a time."""
    found: dict[Any, Any] = {}
    for child, parent in zip(children, parents, strict=True):
        if child in found:
            raise ValueError(f"{parameters.shown(child)} is a child twice: give each one once")
        found[child] = parent
    for name in (*found, *found.values()):
        if name != name:  # noqa: PLR0124 (a NaN is not)
            raise TypeError(f"a node of type {type(name).__name__} is not accepted: give names")
    if None in found:
        raise ValueError("None is a child, which is not accepted: give each node a name")
    if "" in found or "" in found.values():
        raise ValueError("'' is not accepted as a node: give None as the parent of the root")
    known = dict.fromkeys([*found, *(each for each in found.values() if each is not None)])
    return {name: found.get(name) for name in known}


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.sampled_from([*"abcd", "", None, 1, True, 2.0, math.nan, NAN, -1, -2])] * 2),
        max_size=6,
    )
)
def test_pairs_are_those_that_pass_one_by_one(pairs: list[tuple[Any, Any]]) -> None:
    children, parents = [child for child, _ in pairs], [parent for _, parent in pairs]

    def joined(children: list[Any], parents: list[Any]) -> dict[Any, Any]:
        names, above = hierarchy._joined(*hierarchy._pairs(children, parents))
        ends = [*names, None]
        return {name: ends[place] for name, place in zip(names, above.tolist(), strict=True)}

    slow = outcome(lambda: one_by_one(children, parents))
    assert outcome(lambda: joined(children, parents)) == slow
    if isinstance(slow, list):
        assert joined(children, parents) == one_by_one(children, parents)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet=f"a1',{RUN}", max_size=4), max_size=6))
def test_cells_are_those_that_are_written_and_read_one_by_one(texts: list[str]) -> None:
    written = formats._each(formats._escaped, texts)
    assert written == [*map(formats._escaped, texts)]
    assert formats._each(formats._unescaped, written) == texts
    slow = outcome(lambda: [*map(formats._unescaped, texts)])
    assert outcome(lambda: formats._each(formats._unescaped, texts)) == slow


def stated(change: Any, folder: Path) -> Any:
    """Return a tree that was read from a file whose description was changed."""
    tree = Hierarchy({"a": "all", "b": "all", "c": "b"}, leaves_only=True)
    noisy = of_leaves(tree, {"a": 1, "c": 2}).release(epsilon=1)
    noisy.save(folder / "a.csv", overwrite=True)
    said = json.loads((folder / "a.csv.json").read_text())
    change(said["geomdp"]["axes"]["node"])
    (folder / "a.csv.json").write_text(json.dumps(said))
    return geomdp.read(folder / "a.csv").design._axes[0].hierarchy


@pytest.mark.parametrize(
    "parents",
    [
        [-1, 0, 0],
        [-1, 0, 0, 2, 2],
        [-1, 0, 0, True],
        [-1, 0, 0, 2.0],
        [-1, 0, 0, "2"],
        [-1, 0, 0, 4],
        [-1, 0, 0, -2],
        [-1, 0, 0, -1],
        [-1, 0, 0, 3],
        [-1, 0, 0, 2**70],
        [-1, 3, 0, 2],
        None,
    ],
)
def test_a_file_states_places_of_parents_or_is_refused(parents: Any, tmp_path: Path) -> None:
    assert stated(lambda axis: None, tmp_path).parents == {
        "all": None,
        "a": "all",
        "b": "all",
        "c": "b",
    }
    with pytest.raises(ValueError, match="cannot be read"):
        stated(lambda axis: axis.update(parents=parents), tmp_path)


@pytest.mark.parametrize("name", [None, "", "all", 1, [], {}, 1.5, "\ud800", {"date": "x"}])
def test_a_file_states_names_of_nodes_or_is_refused(name: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        stated(lambda axis: axis.update(nodes=["all", "a", "b", name]), tmp_path)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("leaves_only", [True, False])
def test_frames_of_a_tree_share_no_memory_though_its_names_are_made_once(
    library: Any, leaves_only: bool
) -> None:
    tree = Hierarchy({"a": "all", "b": "all"}, leaves_only=leaves_only)
    noisy = Design({"town": tree}).count(library({"town": ["a", "b", "a"]})).release(epsilon=1)
    first, other = noisy.frame, noisy.estimates()
    if library is pd.DataFrame:
        first.loc[0, "town"] = other.loc[1, "town"] = "changed"
    assert [str(name) for name in noisy.frame["town"]] == tree.nodes == ["all", "a", "b"]
    again = pickle.loads(pickle.dumps(tree))
    assert (again, again.nodes, again.parents) == (tree, tree.nodes, tree.parents)
    assert [*again] == again.leaves == ["a", "b"]


def test_a_code_with_zeros_after_it_names_its_node_in_labels() -> None:
    """Lists of counties have the state's own row: 01000 in a tree of states and counties."""
    codes = ["01001", "01003", "02013"]
    tree = Hierarchy.from_prefixes(
        codes, (2, 5), root="US", labels={"01000": "Alabama", "01001": "Autauga", "02": "Alaska"}
    )
    assert tree.labels == {"01": "Alabama", "02": "Alaska", "01001": "Autauga"}
    # The node's own code is first, and a code of the tree is its own node.
    both = {"02000": "Juneau", "02": "Alaska", "01000": "Alabama"}
    tree = Hierarchy.from_prefixes([*codes, "01000"], (2, 5), root="US", labels=both)
    assert tree.labels == {"02": "Alaska", "01000": "Alabama"}
    deep = Hierarchy.from_prefixes(["01001"], (2, 3, 5), labels={"01000": "x"})
    assert deep.labels == {"010": "x"}
    for wrong in ("03000", "010", "01100"):
        with pytest.raises(ValueError, match=f"^'{wrong}', in labels=, is not a node"):
            Hierarchy.from_prefixes(codes, (2, 5), root="US", labels={wrong: "x"})
