"""Trees of columns, paths, codes and files: what nodes are called, and which records they count."""

import csv
import json
import pickle
import re
from collections import Counter
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
from geomdp.tables import Design, Hierarchy

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
    noisy = strict.release(leaves | evje, epsilon=CLEAR).to_dict()
    assert (noisy["Norway/Oslo/Oslo"], noisy["Norway"], noisy["all"]) == (5, 21, 33)
    with pytest.raises(ValueError, match="counts have 'Evje', the name of several nodes"):
        strict.release(leaves | {"Evje": 1}, epsilon=1)


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
        "one has 'Oslo', the name of several nodes: give the path of one, of ['Norway/Oslo', "
        "'Chad/Oslo', 'Norway/Oslo/Oslo']"
    )
    with pytest.raises(ValueError, match=wanted):
        difference("Oslo", "Norway")
    with pytest.raises(ValueError, match="one has 'Rome', which is no node of"):
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
        ({"columns": ["a", "b"]}, "no column 'country/region/tract' in the frame"),
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
        (PLACES, [], "give root=, a name for the sum of all"),
        ([("Norway", "", "Evje")], [], "has an empty name"),
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
        (of_paths(("a", None)), ValueError, "the path ('a', None) has an empty name"),
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
        (of_paths("a", labels={"b": "x"}), ValueError, "labels have 'b', which is no node"),
        (of_paths("a/a", labels={"b": "x"}), ValueError, "labels have 'b', which is no node"),
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
                pd.DataFrame({"a": ["x"], "b": [None], "c": "z"}), ["a", "b", "c"]
            ),
            ValueError,
            "the row ('x', None, 'z') of columns has no name before another",
        ),
        (
            lambda: Design({("a", "b"): TREE}),
            ValueError,
            "columns ('a', 'b') are not accepted for a hierarchy with depths up to 3",
        ),
        (lambda: Design({("a", "b"): ["x"]}), ValueError, "with a Hierarchy"),
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
