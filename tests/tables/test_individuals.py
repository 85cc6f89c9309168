"""Individuals of several columns: equal tuples of ids are one, and others are never one."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp import tables
from geomdp.tables import Design
from geomdp.tables.streams import Stream
from individuals import CELLS, PAIRS, visits

BOTH = ("household", "person")


def of_objects(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame(
        {name: table[name].to_pylist() for name in table.column_names}, dtype=object
    )


def categorical(table: pa.Table) -> pd.DataFrame:
    return of_objects(table).astype("category")


#: Makes a frame of each library of a table of Arrow.
MADE: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda x: x.to_pandas(),
    "pandas, objects": of_objects,
    "pandas, categories": categorical,
    "pandas, types of Arrow": lambda x: x.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": pl.DataFrame,
    "Polars, lazy": lambda x: pl.DataFrame(x).lazy(),
    "Arrow": lambda x: x,
    "Arrow, in chunks": lambda x: pa.concat_tables(x.slice(n, 1) for n in range(len(x))),
    "Arrow, dictionaries": lambda x: pa.table(
        {name: each if pa.types.is_dictionary(each.type) else each.dictionary_encode()
         for name, each in zip(x.column_names, x.columns, strict=True)}
    ),
    "DuckDB": duckdb.from_arrow,
}  # fmt: skip
BOUNDED = [name for name in MADE if not name.startswith(("Arrow", "DuckDB"))]


def counted(frame: Any, individual: Any = BOTH, **limits: int) -> int:
    """Return how many records of all individuals count."""
    table = Design({"n": CELLS}, individual=individual, **limits or {"l0": 1}).count(frame)  # type: ignore[arg-type]
    return int(table._nodes().sum())


def rows(frame: Any) -> int:
    """Return how many rows a frame has."""
    return len(frame.collect() if hasattr(frame, "collect") else frame)


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("library", MADE)
def test_tuples_of_ids_are_one_individual_only_if_they_are_equal(library: str, case: str) -> None:
    """("a", "bc") and ("ab", "c") are two, on every path; and each of both is one."""
    table, size = visits(case)
    frame = MADE[library](table)
    assert counted(frame) == counted(frame, BOTH[::-1]) == size
    assert counted(frame, l1=2) == counted(frame, l0=2) == 2 * size
    if library in BOUNDED:
        for limits, most in (({"l0": 1, "cells": ["n"]}, 1), ({"l0": 2}, 2)):
            assert rows(tables.bound_contributions(frame, BOTH, **limits)) == most * size


def test_a_tuple_of_one_name_is_that_column() -> None:
    table, _ = visits("texts")
    design = Design({"n": CELLS}, individual=("person",), l0=1)
    assert design == Design({"n": CELLS}, individual="person", l0=1)
    assert design.individual == "person"
    assert counted(table, ("person",)) == len(set(table["person"].to_pylist()))


def test_objects_of_python_are_the_ids_that_one_column_takes_them_for() -> None:
    """1 and "1" of one column are one id, and so are a UUID and its text; b"1" is another one."""
    one = uuid.UUID(int=7)
    rows = [(1, "a"), ("1", "a"), (b"1", "a"), (one, 1), (str(one), "1"), (1, str(one))]
    frame = pd.DataFrame([(*row, n) for row in rows for n in CELLS], columns=[*BOTH, "n"])
    assert counted(frame) == len(tables.bound_contributions(frame, BOTH, l0=1)) == 4


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        ([2**200, str(2**200)], 1),  # These were two beyond 128 bits.
        ([-(10**5000), "-1" + 5000 * "0"], 1),  # Python does not print it by itself.
        ([uuid.UUID(int=10), str(uuid.UUID(int=10))], 1),
        # Text is read as nothing else.
        ([uuid.UUID(int=10), str(uuid.UUID(int=10)).upper(), uuid.UUID(int=10).hex], 3),
        ([7, "07", "7 ", "+7"], 4),
        (["a", "a\0", np.array(["a\0"])[0]], 2),
    ],
)
def test_an_object_of_python_is_the_id_of_its_text(rows: list[Any], size: int) -> None:
    for first in (rows, rows[::-1]):
        items = pd.Series([*first, *first], dtype=object)
        frame = pd.DataFrame({"person": items, "n": CELLS[0]})
        assert counted(frame, ("person",)) == size


@pytest.mark.parametrize("kind", ["string", "binary"])
@pytest.mark.parametrize("library", ["pyarrow", "pandas"])
def test_views_of_arrow_are_ids_in_every_call(kind: str, library: str) -> None:
    """`count` refused them in pandas, `sum` took them, `sum_and_count` had an error of Arrow."""
    texts = ["a", "bc" * 20, "a"] if kind == "string" else [b"a", b"bc" * 20, b"a"]
    found = []
    for view in ("", "_view"):
        who = pa.array(texts, getattr(pa, kind + view)())
        frame: Any = pa.table({"person": who, "n": [CELLS[0]] * 3, "v": [2, 2, 2]})
        if library == "pandas":
            frame = frame.to_pandas(types_mapper=pd.ArrowDtype)
        design = Design({"n": CELLS}, individual="person", l0=1)
        both = design.sum_and_count(frame, "v", bounds=(0, 2))
        tables_ = design.count(frame), design.sum(frame, "v", bounds=(0, 2)), both._sums
        found.append([int(each._nodes().sum()) for each in tables_])
    assert found == [[2, 4, 4]] * 2


@pytest.mark.parametrize("column", BOTH)
@pytest.mark.parametrize("library", MADE)
def test_a_null_in_any_column_of_ids_is_refused(library: str, column: str) -> None:
    """A null is no id in one column, so it is none beside another id."""
    table, _ = visits("texts")
    missing = pa.array([None, *table[column].to_pylist()[1:]], pa.string())
    frame = MADE[library](table.set_column(BOTH.index(column), column, missing))
    with pytest.raises(ValueError, match=f"column '{column}' contains nulls"):
        counted(frame)
    if library in BOUNDED:
        with pytest.raises(ValueError, match=f"column '{column}' contains nulls"):
            tables.bound_contributions(frame, BOTH, l0=1).lazy().collect()


@pytest.mark.parametrize("library", MADE)
def test_floats_in_any_column_of_ids_are_refused(library: str) -> None:
    """And names that are no columns, before anything is read."""
    table, _ = visits("texts")
    frame = MADE[library](table.append_column("x", pa.array([0.5] * len(table))))
    for names in (("household", "x"), ("x", "person")):
        if library != "pandas, objects":
            with pytest.raises(TypeError, match=r"individuals of type .* in 'x' are not accepted"):
                counted(frame, names)
            if library in BOUNDED:
                with pytest.raises(TypeError, match="in 'x' are not accepted"):
                    tables.bound_contributions(frame, names, l0=1)
        else:
            with pytest.raises(ValueError, match="column 'x' contains nulls, floats or other"):
                counted(frame, names)
    for name in ("city", "household,person"):
        for names in (name, ("household", name), (name, "person")):
            with pytest.raises(KeyError, match=f"no column '{name}'"):
                counted(frame, names)
            if library in BOUNDED:
                with pytest.raises(KeyError, match=f"no column '{name}'"):
                    tables.bound_contributions(frame, names, l0=1)


def test_a_list_of_columns_is_refused() -> None:
    with pytest.raises(TypeError, match=r"individual has type list: .* or a tuple of such texts"):
        Design({"a": [1]}, individual=["household", "person"], l0=1)  # type: ignore[arg-type]


def test_a_lazy_frame_is_not_read_for_what_is_refused() -> None:
    def fail(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError

    table, _ = visits("texts")
    lazy = pl.DataFrame(table).lazy().map_batches(fail, schema=pl.DataFrame(table).schema)
    for names, error in {
        ("household", "x"): KeyError,
        (): ValueError,
        BOTH * 2: ValueError,
    }.items():
        with pytest.raises(error):
            counted(lazy, names)
        with pytest.raises(error):
            tables.bound_contributions(lazy, names, l0=1)


def test_files_state_all_columns_of_individuals(tmp_path: Path) -> None:
    table, _ = visits("texts")
    design = Design({"n": CELLS}, individual=BOTH, l0=2)
    for name in ("noisy.csv", "noisy.parquet"):
        noisy = design.count(table).release(epsilon=1, save=tmp_path / name)
        read = geomdp.read(tmp_path / name)
        assert read.design == noisy.design == design
        assert read.design.individual == BOTH
    facts = json.loads((tmp_path / "noisy.csv.json").read_text(encoding="utf-8"))["geomdp"]
    assert facts["individual"] == [*BOTH]
    assert "individual=('household', 'person')" in repr(design)


def test_a_stream_counts_records_that_were_bounded_by_two_columns(tmp_path: Path) -> None:
    table, size = visits("texts")
    kept = tables.bound_contributions(pl.DataFrame(table), BOTH, l0=1)
    stream = Stream.open(tmp_path / "visits.jsonl", epsilon=40, horizon=2)
    published = stream.release(0, [tables.count(kept, {"n": CELLS})._nodes()])
    # An error above 2 of the sum has a probability below 1e-6.
    assert abs(int(published[0, 1].sum()) - size) <= 2
