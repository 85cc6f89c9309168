"""What a publisher says about a table: in its files, from file to file, and before it is paid."""

import functools
import json
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import geomdp
from geomdp.tables import Design, choose_limit
from geomdp.tables.streams import Stream
from published_kinds import ABOUT, DESIGNS, PEOPLE
from test_publish import CALLS, calls, refused

OTHER = {"title": "Wards", "contact": "statistics@example.org"}


def described(path: Path) -> Any:
    return json.loads(path.with_name(f"{path.name}.json").read_text())


@calls
@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_release_keeps_it_from_file_to_file(name: str, end: str, tmp_path: Path) -> None:
    made = CALLS[name](about=ABOUT, save=tmp_path / f"a.{end}")
    read = geomdp.read(tmp_path / f"a.{end}")
    for each in (made, read, pickle.loads(pickle.dumps(made)), pickle.loads(pickle.dumps(read))):
        assert each.about == ABOUT
        each.about["title"] = "another"  # A copy.
        assert each.about == ABOUT
    read.save(tmp_path / "b.html")
    page = (tmp_path / "b.html").read_text()
    assert "<h1>&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;</h1>" in page
    read.save(tmp_path / "c.csv", about=OTHER)
    assert geomdp.read(tmp_path / "c.csv").about == OTHER
    assert read.about == ABOUT


def test_the_order_of_keys_is_one(tmp_path: Path) -> None:
    given = dict(reversed(ABOUT.items()))
    assert list(CALLS["Table.release"](about=given).about) == list(ABOUT)


@pytest.mark.parametrize("about", [None, {}])
def test_without_it_a_description_says_nothing(about: Any, tmp_path: Path) -> None:
    made = CALLS["Table.release"](about=about, save=tmp_path / "a.csv")
    assert made.about == geomdp.read(tmp_path / "a.csv").about == {}
    assert not {"title", "description", "sources"} & described(tmp_path / "a.csv").keys()
    assert described(tmp_path / "a.csv")["geomdp"]["about"] == {}
    # Saved with nothing, a release loses what it said.
    CALLS["Table.release"](about=OTHER).save(tmp_path / "b.csv", about={})
    assert geomdp.read(tmp_path / "b.csv").about == {}


def test_other_tools_find_it_in_the_properties_of_frictionless(tmp_path: Path) -> None:
    CALLS["Table.release"](about=ABOUT, save=tmp_path / "a.csv")
    found = described(tmp_path / "a.csv")
    assert (found["title"], found["description"]) == (ABOUT["title"], ABOUT["description"])
    assert found["sources"] == [{"title": ABOUT["source"]}]
    assert found["geomdp"]["about"] == ABOUT


@calls
@pytest.mark.parametrize("save", [None, "x.csv", "x.html"])
def test_it_is_refused_before_anything_is_paid(name: str, save: str | None, tmp_path: Path) -> None:
    path = None if save is None else tmp_path / save
    for about, error, message in (
        ({"titel": "x"}, ValueError, "a key of about = 'titel' is not accepted: give .* licence"),
        ({"title": " "}, ValueError, r"about\['title'\] = ' ' is not accepted: give text"),
        ({"title": 7}, TypeError, r"about\['title'\] = 7 has type int: give a str"),
        ("x", TypeError, "about = 'x' has type str: give a mapping of title, "),
    ):
        call = functools.partial(CALLS[name], save=path, about=about)
        refused(call, tmp_path, error, message)


def test_save_refuses_it_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="titel"):
        CALLS["Table.release"]().save(tmp_path / "a.csv", about={"titel": "x"})
    assert not list(tmp_path.iterdir())


def test_steps_of_a_stream_take_it(tmp_path: Path) -> None:
    stream = Stream.open(tmp_path / "s.jsonl", epsilon=1)
    stream.release(0, [[512, 70]])
    stream.table().save(tmp_path / "a.csv", about=ABOUT)
    assert geomdp.read(tmp_path / "a.csv").about == ABOUT


def test_sums_and_counts_take_it_for_both_files(tmp_path: Path) -> None:
    pair = DESIGNS["flat"].sum_and_count(PEOPLE, "age", bounds=(0, 99))
    files = {name: tmp_path / f"{name}.csv" for name in ("sums", "counts")}
    noisy = pair.release(epsilon=1, save=files, about=ABOUT)
    assert [geomdp.read(file).about for file in files.values()] == [ABOUT, ABOUT]
    noisy.save(files, overwrite=True, about=OTHER)
    assert [geomdp.read(file).about for file in files.values()] == [OTHER, OTHER]


def test_the_choice_of_a_limit_takes_it(tmp_path: Path) -> None:
    design = Design({"area": ["A", "B", "C"]}, individual="who", l0=3)
    people = PEOPLE.assign(who=[n // 2 for n in range(len(PEOPLE))])
    chosen = choose_limit(design, people, "l0", epsilon=1, save=tmp_path / "l0.csv", about=OTHER)
    assert chosen.table.about == geomdp.read(tmp_path / "l0.csv").about == OTHER


def test_rounding_and_answers_keep_it(tmp_path: Path) -> None:
    made = CALLS["Table.release"](about=OTHER, save=tmp_path / "a.csv", rounded=10)
    read = geomdp.read(tmp_path / "a.csv")
    assert made.about == read.about == OTHER
    assert isinstance(read.intervals(0.05), pd.DataFrame)
