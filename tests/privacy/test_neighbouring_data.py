"""What is released, and what is refused, is the same for neighbouring data but for the noise.

The noise is replaced by one known value, whatever the counts are. So nothing that anyone can
observe of a release may differ between data with one record more or less.
"""

import datetime
import io
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geomdp import GeometricMechanism, tables
from geomdp._ground import identity
from geomdp._numerics import scatter
from test_frames import memory

Make = Callable[[list[Any]], Any]


class Items(NamedTuple):
    """Levels, the items of the data, those of one more record, and labels for others and sums."""

    levels: list[Any]
    data: list[Any]
    more: list[Any]
    spare: tuple[Any, Any]


TEXT = Items(
    ["Rome", "Oslo"], ["Rome", "Oslo", "Bern", "Rome"], ["Oslo", "Aarau", None], ("?", "*")
)
INTS = Items([7, 3], [3, 7, 7, 5], [3, 1, None], (-1, -2))
BOOLS = Items([True, False], [True, False, True], [False, None], (None, None))
DAY = datetime.date(2026, 1, 1)
DAYS = Items(
    [DAY, DAY.replace(year=2025)], [DAY, DAY], [DAY.replace(year=1999), None], (None, None)
)
NOON = datetime.datetime(2026, 1, 1, 12)
TIMES = Items(
    [NOON, NOON.replace(year=2025)], [NOON], [NOON.replace(year=1999), None], (None, None)
)


def categorical(values: list[Any], ordered: bool = False) -> Any:
    return pd.Series(pd.Categorical(values, ordered=ordered))


def of_enum(values: list[Any]) -> Any:
    """An Enum of the items that occur, as a file with one declares it."""
    return pl.Series(values, dtype=pl.Enum(sorted({x for x in values if x is not None})))


def of_file(column: Any) -> Any:
    """A column of a stream of Arrow, whose buffers have one parent with its neighbours."""
    table, sink = pa.table({"secret": [[1]] * len(column), "x": column}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()["x"]


def of_arrow(kind: Any) -> Make:
    return lambda values: pa.array(values, kind)


KINDS: dict[str, tuple[Items, Make]] = {
    "pandas, objects": (TEXT, lambda x: pd.Series(x, dtype=object)),
    "pandas, objects of any kind": (
        TEXT._replace(more=["\ud800", [1], {}, {1}, (1, [2]), Decimal("sNaN"), 1.5, b"a", DAY]),
        lambda x: pd.Series(x, dtype=object),
    ),
    "pandas, strings": (TEXT, lambda x: pd.Series(x, dtype="str")),
    "pandas, strings of Arrow": (TEXT, lambda x: pd.Series(x, dtype="string[pyarrow]")),
    "pandas, categories": (TEXT, categorical),
    "pandas, ordered categories": (TEXT, lambda x: categorical(x, ordered=True)),
    "pandas, categories of ints": (INTS, categorical),
    "pandas, ints": (INTS, pd.Series),  # floats, with a null
    "pandas, Int64": (INTS, lambda x: pd.Series(x, dtype="Int64")),
    "pandas, objects of ints": (INTS, lambda x: pd.Series(x, dtype=object)),
    "pandas, bools": (BOOLS, pd.Series),  # objects, with a null
    "pandas, boolean": (BOOLS, lambda x: pd.Series(x, dtype="boolean")),
    "pandas, times": (TIMES, lambda x: pd.Series(x, dtype="datetime64[us]")),
    "pandas, days": (DAYS, lambda x: pd.Series(x, dtype=object)),
    "pandas, dictionaries": (
        TEXT,
        lambda x: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(x).dictionary_encode())),
    ),
    "Polars, strings": (TEXT, lambda x: pl.Series(x, dtype=pl.String)),
    "Polars, Categorical": (TEXT, lambda x: pl.Series(x, dtype=pl.Categorical)),
    "Polars, Enum": (TEXT, of_enum),
    "Polars, Int16": (INTS, lambda x: pl.Series(x, dtype=pl.Int16)),
    "Polars, Date": (DAYS, lambda x: pl.Series(x, dtype=pl.Date)),
    "Polars, bools": (BOOLS, lambda x: pl.Series(x, dtype=pl.Boolean)),
    "PyArrow, strings": (TEXT, of_arrow(pa.string())),
    "PyArrow, large strings": (TEXT, of_arrow(pa.large_string())),
    "PyArrow, views of strings": (TEXT, of_arrow(pa.string_view())),
    "PyArrow, dictionaries": (TEXT, lambda x: pa.array(x).dictionary_encode()),
    "PyArrow, ints": (INTS, of_arrow(pa.int16())),
    "PyArrow, days": (DAYS, of_arrow(pa.date32())),
    "PyArrow, of a file": (TEXT, lambda x: of_file(pa.array(x))),
    "PyArrow, chunks": (INTS, lambda x: pa.chunked_array([[each] for each in x])),
    "DuckDB": (TEXT, lambda x: duckdb.from_arrow(frame_of(pa.array(x)))),
}


def kind_of(column: Any) -> str:
    """The type of a column, of its categories if it has any."""
    dtype = getattr(column, "dtype", getattr(column, "type", None))
    categories = getattr(dtype, "categories", None)
    return str(getattr(categories, "dtype", dtype))


def frame_of(column: Any) -> Any:
    """The column in a frame, beside individuals and numbers of records."""
    size = len(column)
    who, n = [*range(size)], [*range(1, size + 1)]
    if isinstance(column, pd.Series):
        return column.set_axis([9] * size).to_frame("x").assign(who=who, n=n)
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": column, "who": who, "n": n})
    if isinstance(column, duckdb.DuckDBPyRelation):
        return column
    table = pa.table({"x": column, "who": who, "n": n})
    return table.replace_schema_metadata({"rows": str(size)})


def ways(items: Items) -> dict[str, Callable[[Any], Any]]:
    levels, (other, margin) = {"x": items.levels}, items.spare
    extra: dict[str, Any] = {}
    if other is not None:
        extra = {"other": other, "margins": margin}
    null = {"x": [*items.levels, None]}
    plain, bounded = tables.Design(levels), tables.Design(null, individual="who", l0=1, linf=2)
    spread = tables.Design(null, individual="who", l1=9)
    wrong = [1] if isinstance(items.levels[0], str) else ["1"]
    return {
        "a column": lambda x: tables.count(x, items.levels).release(epsilon=1),
        "a frame": lambda x: tables.Design(null).count(frame_of(x)).release(epsilon=1, label="x"),
        "all labels": lambda x: (
            tables.Design(levels, **extra).count(frame_of(x)).release(epsilon=1)
        ),
        "individuals": lambda x: bounded.count(frame_of(x)).release(epsilon=1),
        "weights": lambda x: plain.count(frame_of(x), counts="n").release(epsilon=1),
        "a limit": lambda x: tables.choose_limit(bounded, frame_of(x), "linf", epsilon=1).table,
        "a limit of values": lambda x: (
            tables.choose_limit(spread, frame_of(x), "l1", column="n", epsilon=1).table
        ),
        "groups": lambda x: bounded.count(frame_of(x)).release(epsilon=1, at_least=2),
        "no group": lambda x: plain.count(frame_of(x)).release(epsilon=1, at_least=9),
        "wrong levels": lambda x: tables.count(x, wrong).release(epsilon=1),
        "wrong weights": lambda x: plain.count(frame_of(x), counts="x").release(epsilon=1),
        "a wrong column": lambda x: tables.Design({"y": [1]}).count(frame_of(x)),
        "too small a sensitivity": lambda x: (
            tables.Design(levels, linf=2).count(frame_of(x)).release(GeometricMechanism(1))
        ),
    }


def of_frame(frame: Any) -> list[Any]:
    """Everything that can be observed of a frame."""
    if isinstance(frame, pd.DataFrame):
        index, columns = frame.index, frame.columns
        found = [repr(frame.dtypes), repr(index), repr(columns), index.name, frame.attrs]
        found += [pickle.dumps(frame), frame.to_csv(), frame.to_parquet()]
        for _, column in frame.items():
            found.append([(type(each), each) for each in column])
        frame = pa.Table.from_pandas(frame)
    elif isinstance(frame, pl.DataFrame):
        stream = io.BytesIO()
        frame.write_ipc(stream)
        found = [frame.schema, frame.rows(), frame.n_chunks("all"), stream.getvalue()]
        found += [frame.write_csv(), pickle.dumps(frame)]
        frame = frame.to_arrow()
    else:
        found = [pickle.dumps(frame)]
    found += [str(frame.schema), frame.schema.metadata, frame.to_pydict()]
    for column in frame.columns:
        for chunk in column.chunks:
            found.append((chunk.offset, len(chunk), sorted(memory(chunk))))
    return found


def observed(noisy: Any, folder: Path) -> list[Any]:
    """Everything that can be observed of a release."""
    found = [repr(noisy), noisy._repr_html_(), noisy.to_dict(), pickle.dumps(noisy), noisy.design]
    found += [str(getattr(noisy, "mechanisms", "")), noisy.label, noisy.privacy_loss()]
    shown = [noisy.frame, noisy.intervals(alpha=0.1)]
    for name in ("x.csv", "x.parquet"):
        noisy.save(folder / name, overwrite=True)
    found += [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]
    for frame in shown:
        found += [type(frame), *of_frame(frame)]
    return found


def known(_: Any, counts: Any, *, out: Any = None, threads: int | None = None) -> Any:
    """Noise that takes the place of the count: one known value."""
    target = np.empty(np.shape(counts), np.int64) if out is None else out
    target[...] = 4
    return target


def reaching(_: Any, counts: Any, thresholds: Any, *_more: Any, **_named: Any) -> Any:
    """The same of the noise of groups: what does not reach its threshold is 0."""
    return np.where(thresholds <= 4, 4, 0) + 0 * counts


def everywhere(plan: scatter.Plan) -> list[Any]:
    """Points on all places, so that it is no other noise for a cell to be empty."""
    found = []
    for each in plan.classes:
        drawn = [-(-(place << 64 * each.words) // each.places) for place in range(each.places)]
        split = [[x >> 64 * at & 2**64 - 1 for at in reversed(range(each.words))] for x in drawn]
        found.append((np.full(each.places, 4), np.array(split, np.uint64)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_the_noise_tells_neighbours_apart(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GeometricMechanism, "release", known)
    monkeypatch.setattr(scatter.Plan, "reach", reaching)
    monkeypatch.setattr(scatter.Plan, "points", everywhere)
    monkeypatch.setattr(identity, "fresh", lambda: "0" * 32)  # The ids of releases are noise too.
    items, make = KINDS[kind]
    for name, way in ways(items).items():
        found: list[Any] = []
        for data in (items.data, *([*items.data, each] for each in items.more)):
            column = make(data)
            # An error may follow from the type of a column. A null makes another one in pandas.
            if "wrong" in name and kind_of(column) != kind_of(make(items.data)):
                continue
            try:
                found.append(observed(way(column), tmp_path))
            except (TypeError, ValueError, KeyError) as error:
                found.append([type(error), str(error)])
        relation = kind == "DuckDB" and name == "a column"  # which it is not
        if not relation and "wrong" not in name and "too small" not in name:
            assert isinstance(found[0][0], str), found[0]
        for other in found[1:]:
            assert len(other) == len(found[0]), (name, other[:2])
            # One by one, since a message with all of them would be endless.
            for one, two in zip(found[0], other, strict=True):
                assert one == two, name


def test_the_frame_of_a_release_follows_from_the_design() -> None:
    """Strings are strings and integers int64, whatever the data were."""
    levels = {"x": ["b", "a"], "n": [3, None]}
    people = {"x": ["a", "b", "c"], "n": [3, 4, None]}
    wanted = pa.table({"x": ["b", "b", "a", "a"], "n": [3, None, 3, None], "count": [0, 0, 1, 0]})
    coded = pa.table({"x": pa.array(people["x"]).dictionary_encode(), "n": people["n"]})
    clear = tables.Design(levels).count(coded).release(epsilon=400)
    assert clear.frame.schema == wanted.schema
    assert clear.frame["x"].to_pylist() == wanted["x"].to_pylist()
    pandas = pd.DataFrame({"x": pd.Categorical(people["x"]), "n": pd.array(people["n"], "Int8")})
    found = tables.Design(levels).count(pandas).release(epsilon=400).frame
    assert list(map(str, found.dtypes)) == [str(pd.Series(["a"]).dtype), "Int64", "int64"]
    assert found["n"].isna().tolist() == [False, True] * 2
    small = pl.DataFrame({"x": people["x"], "n": pl.Series(people["n"], dtype=pl.Int8)})
    lazy = small.lazy().with_columns(pl.col("x").cast(pl.Categorical))
    assert tables.Design(levels).count(lazy).release(epsilon=1).frame.schema == {
        "x": pl.String,
        "n": pl.Int64,
        "count": pl.Int64,
    }
