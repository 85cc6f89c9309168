"""Releases of columns and frames: one draw for each count, everything else unchanged."""

import ast
import collections
import cProfile
import datetime
import gc
import io
import itertools
import math
import pickle
import pstats
import random
import subprocess
import sys
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import geomdp.tables.polars  # noqa: F401 (registers the namespace)
from geomdp import GeometricMechanism, tables
from geomdp._inputs import columns
from geomdp._inputs.arrays import DTYPES
from geomdp.keyed import ReleaseKey
from geomdp.tables._columns import native as _native
from statistics_ import rejects
from unsigned import accepting

duckdb = pytest.importorskip("duckdb")

NONE = GeometricMechanism.from_scale(0)
NAMED = GeometricMechanism(0.1)
WIDE = GeometricMechanism.from_scale(1e6)


def pandas_nullable(values: list[Any], dtype: str) -> Any:
    return pd.Series(values, dtype=dtype.replace("i", "I").replace("u", "U"), name="n")


def polars(values: list[Any], dtype: str) -> Any:
    kind = dtype.replace("i", "I").replace("u", "U")
    return pl.Series("n", values, dtype=getattr(pl, kind))


def chunked(values: list[Any], dtype: str) -> Any:
    kind = pa.type_for_alias(dtype)
    return pa.chunked_array([values[:2], [], values[2:]], type=kind)


#: Columns that can have nulls.
KINDS: dict[str, Callable[[list[Any], str], Any]] = {
    "pandas, of its types": pandas_nullable,
    "pandas, of Arrow's": lambda x, dtype: pd.Series(x, dtype=f"{dtype}[pyarrow]", name="n"),
    "polars": polars,
    "Array": lambda x, dtype: pa.array(x, type=pa.type_for_alias(dtype)),
    "part of an Array": lambda x, dtype: pa.array([1, *x, 2], pa.type_for_alias(dtype)).slice(
        1, len(x)
    ),
    "ChunkedArray": chunked,
}
PLAIN = {"pandas": lambda x, dtype: pd.Series(x, dtype=dtype, name="n"), **KINDS}


def items(column: Any) -> list[Any]:
    found = (
        column.tolist()
        if isinstance(column, pd.Series)
        else column.to_pylist()
        if isinstance(column, pa.Array | pa.ChunkedArray)
        else column.to_list()
    )
    return [None if item is pd.NA else item for item in found]


def alike(one: Any, other: Any) -> None:
    """Check that everything but the counts is the same."""
    assert type(one) is type(other)
    assert len(one) == len(other)
    if isinstance(one, pa.Array | pa.ChunkedArray):
        assert one.type == other.type
    else:
        assert (one.dtype, one.name) == (other.dtype, other.name)
    if isinstance(one, pd.Series):
        pd.testing.assert_index_equal(one.index, other.index)
    if isinstance(one, pa.ChunkedArray):
        assert [len(chunk) for chunk in one.chunks] == [len(chunk) for chunk in other.chunks]


class Recorder(GeometricMechanism):
    """A mechanism that records the counts and adds one."""

    def __init__(self) -> None:
        super().__init__(1)
        self.counts: list[np.ndarray] = []
        self.threads: list[Any] = []

    def release(
        self, counts: Any, *, out: Any = None, nulls: Any = "refuse", threads: Any = None
    ) -> Any:
        if columns.is_column(counts):
            of_array = partial(self.release, threads=threads)
            return columns.noisy(of_array, "counts", counts, nulls)
        self.counts.append(counts)
        self.threads.append(threads)
        return counts + counts.dtype.type(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", PLAIN)
def test_scale_zero_is_identity(kind: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    for values in ([int(limits.min), 1, int(limits.max), int(limits.max) - 1], []):
        column, none = PLAIN[kind](values, dtype), accepting(NONE, dtype)
        for noisy in (none.release(column), none.release(column, nulls="keep")):
            alike(noisy, column)
            assert items(noisy) == values
        assert items(column) == values


@pytest.mark.parametrize("kind", PLAIN)
def test_counts_have_distinct_noise(kind: str) -> None:
    column = PLAIN[kind]([0] * 1000, "int64")
    noisy = [items(WIDE.release(column)) for _ in range(2)]
    # At scale 10^6 few values coincide by chance; with equal tapes all would.
    assert len(set(noisy[0])) > 990
    assert sum(map(int.__eq__, *noisy)) < 10
    assert items(column) == [0] * 1000


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.startswith("u")])
@pytest.mark.parametrize("kind", PLAIN)
def test_unsigned_columns_need_bounds(kind: str, dtype: str) -> None:
    for column in (PLAIN[kind]([5, 7, 9], dtype), PLAIN[kind]([], dtype)):
        for mechanism in (NONE, WIDE):
            with pytest.raises(ValueError, match=f"bounds = None with counts of type {dtype} "):
                mechanism.release(column)
            with pytest.raises(ValueError, match=f"bounds = None with counts of type {dtype} "):
                ReleaseKey().release(mechanism, column, np.arange(len(column)), name="n")


@pytest.mark.parametrize("kind", PLAIN)
def test_releases_respect_bounds(kind: str) -> None:
    noisy = GeometricMechanism(0.1, bounds=(3, 9)).release(PLAIN[kind]([0, 100] * 50, "uint8"))
    assert set(items(noisy)) <= set(range(3, 10))
    with pytest.raises(OverflowError, match="bounds"):
        GeometricMechanism(0.1, bounds=(-1, 9)).release(PLAIN[kind]([0], "uint8"))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64"])
@pytest.mark.parametrize("kind", KINDS)
def test_nulls(kind: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = [None, int(limits.min), None, int(limits.max)]
    column, none, wide = KINDS[kind](values, dtype), accepting(NONE, dtype), accepting(WIDE, dtype)
    with pytest.raises(ValueError, match="nulls"):
        none.release(column)
    with pytest.raises(ValueError, match="nulls"):
        none.release(column)
    noisy = none.release(column, nulls="keep")
    alike(noisy, column)
    assert items(noisy) == values
    nothing = wide.release(KINDS[kind]([None] * 3, dtype), nulls="keep")
    assert items(nothing) == [None] * 3


# Nothing that leaves the process may contain exact counts.

#: Has distinctive bytes.
SECRET = 0x5EC2E75EC2E75E
IDS = list(range(20))
#: Leaves a count unchanged with probability about 10^-9.
WIDER = GeometricMechanism.from_scale(1e9)


def shows(value: Any, secret: bytes = SECRET.to_bytes(8, "little")) -> bool:
    """Return whether a pickle, a file or any reachable memory contains the secret."""
    arrow: Any = value
    if isinstance(value, pl.Series):
        arrow = value.to_arrow()
    elif isinstance(value, pd.Series):
        arrow = pa.chunked_array(pa.array(value))
    elif not isinstance(value, pa.Array | pa.ChunkedArray):
        arrow = pa.table(value)
    table = arrow if isinstance(arrow, pa.Table) else pa.table([arrow], names=["n"])
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as stream:
        stream.write_table(table)
    found = [pickle.dumps(value, protocol=5), file.getvalue(), *memory(arrow), *memory(value)]
    if isinstance(value, pl.Series):
        found.append(value.to_frame().write_ipc(None).getvalue())
    return any(secret in part for part in found)


def memory(value: Any) -> list[bytes]:
    """Return the memory of all arrays and buffers reachable from a value."""
    found, seen, left = [], {}, [value]
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, type | types.ModuleType | types.FunctionType):
            continue
        # Kept alive so that no id is reused.
        seen[id(value)] = value
        left.extend(gc.get_referents(value))
        if isinstance(value, np.ndarray):
            found.append(value.tobytes())
            left.append(value.base)
        elif isinstance(value, pa.Table | pa.RecordBatch):
            left.extend(value.columns)
        elif isinstance(value, pa.ChunkedArray):
            left.extend(value.chunks)
        elif isinstance(value, pa.Array):
            left.extend(value.buffers())
        elif isinstance(value, pa.Buffer):
            found.append(value.to_pybytes())
            left.append(value.parent)
    return found


def with_secrets_behind_nulls(kind: str) -> Any:
    mask = np.array(IDS) % 3 == 1
    counts = np.where(mask, SECRET, 7)
    array = pa.array(counts, mask=mask)
    made: Any = {
        "pandas, of its types": lambda: pd.Series(pd.arrays.IntegerArray(counts, mask), name="n"),
        "pandas, of Arrow's": lambda: pd.Series(pd.arrays.ArrowExtensionArray(array), name="n"),
        "polars": lambda: pl.Series("n", array),
        "Array": lambda: array,
        "part of an Array": lambda: pa.array(
            np.append(SECRET, counts), mask=np.append(True, mask)
        ).slice(1),
        "ChunkedArray": lambda: pa.chunked_array([array[:5], array[5:5], array[5:]]),
    }
    return made[kind]()


def frame_of(column: Any) -> Any:
    if isinstance(column, pd.Series):
        return pd.DataFrame({"n": column, "id": IDS})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"n": column, "id": IDS})
    return pa.table({"n": column, "id": IDS})


#: Without noise the zeros behind nulls stay zeros, and anything else would show.
WAYS: dict[str, Callable[[Any], Any]] = {
    "release": lambda column: NONE.release(column, nulls="keep"),
    "release_columns": lambda column: tables.release_columns(
        frame_of(column), {"n": NONE}, nulls="keep"
    ),
    "key": lambda column: ReleaseKey().release(NONE, column, np.array(IDS), name="n", nulls="keep"),
    "columns by key": lambda column: ReleaseKey().release_columns(
        frame_of(column), {"n": NONE}, ["id"], nulls="keep"
    ),
    "batches": lambda column: tables.release_columns(
        frame_of(column).to_batches()[0], {"n": NONE}, nulls="keep"
    ),
    "query": lambda column: tables.release_columns(
        frame_of(column).lazy(), {"n": NONE}, nulls="keep"
    ),
}
ONLY = {"batches": "Array", "query": "polars"}


@pytest.mark.parametrize(
    ("kind", "way"),
    [(kind, way) for way in WAYS for kind in KINDS if kind.startswith(ONLY.get(way, ""))],
)
def test_no_output_contains_counts_behind_nulls(kind: str, way: str) -> None:
    column = with_secrets_behind_nulls(kind)
    # The search is not blind.
    assert shows(column)
    assert shows(frame_of(column))
    noisy = WAYS[way](column)
    assert not shows(noisy)
    frame = isinstance(noisy, pd.DataFrame | pl.DataFrame | pa.Table | pa.RecordBatch)
    assert items(noisy["n"] if frame else noisy) == items(column)


NOTHING: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda counts: pd.Series(counts)[:0],
    "pandas, of its types": lambda counts: pd.Series(counts, dtype="Int64")[:0],
    "pandas, of Arrow's": lambda counts: pd.Series(counts, dtype="int64[pyarrow]")[:0],
    "polars": lambda counts: pl.Series("n", counts)[:0],
    "Array": lambda counts: pa.array(counts)[:0],
    "ChunkedArray": lambda counts: pa.chunked_array([pa.array(counts)])[:0],
    "empty chunks": lambda counts: pa.chunked_array([pa.array(counts)[:0], pa.array([1, 2])]),
    "numpy": lambda counts: counts[:0],
}


@pytest.mark.parametrize("kind", NOTHING)
def test_empty_slice_does_not_expose_its_parent(kind: str) -> None:
    column = NOTHING[kind](np.full(20, SECRET))
    noisy = [
        WIDER.release(column),
        ReleaseKey().release(WIDER, column, np.arange(len(column)), name="n"),
    ]
    assert all(each is not column and len(each) == len(column) for each in noisy)
    if kind == "numpy":
        assert not any(SECRET.to_bytes(8, "little") in part for part in memory(noisy))
        return
    assert not any(map(shows, noisy))
    exact = pa.table({"n": np.full(20, SECRET), "id": IDS})
    for frame in (exact[:0], exact[:0].combine_chunks().to_batches(), exact.to_batches()[0][:0]):
        for part in frame if isinstance(frame, list) else [frame]:
            assert not shows(tables.release_columns(part, {"n": WIDER}))


def of_stream(table: pa.Table) -> pa.Table:
    """Return a table whose columns are in one buffer."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def exact_frames() -> dict[str, Any]:
    n, m = np.full(20, SECRET), np.array(IDS)
    plain = pd.DataFrame({"k": m, "n": n, "m": m}, copy=True)
    labelled = plain.set_axis([2019, 2020, 2021], axis=1)
    used = plain.copy()
    used.attrs["counts"] = used["n"]
    # Views of an array with the counts.
    indexed, twice = plain.copy(), plain.copy()
    indexed.index = pd.Index(indexed["k"])
    twice.index = pd.MultiIndex.from_frame(twice[["k", "m"]])
    noted = pa.table({"k": m, "n": pa.array(n), "m": m})
    coded = noted.set_column(0, "k", noted["k"].dictionary_encode())
    secret = SECRET.to_bytes(8, "little")
    noted = noted.set_column(1, noted.schema.field(1).with_metadata({"last": secret}), noted[1])
    noted = noted.replace_schema_metadata({"PANDAS_ATTRS": secret})
    return {
        "index": indexed,
        "indices": twice,
        "metadata": noted,
        "metadata of a RecordBatch": noted.to_batches()[0],
        "one block": plain,
        "of rows of one array": pd.DataFrame(np.array([m, n, m]).T, columns=["k", "n", "m"]),
        "part of it": plain[3:9],
        "labels": labelled,
        "attributes": used,
        "of its types": plain.astype("Int64"),
        "of Arrow's": plain.astype("int64[pyarrow]"),
        "polars": pl.from_pandas(plain),
        "part of polars": pl.from_pandas(plain)[3:9],
        "Table": pa.Table.from_pandas(plain),
        "RecordBatch": pa.RecordBatch.from_pandas(plain),
        "part of a Table": pa.Table.from_pandas(plain)[3:9],
        "Table of a stream": of_stream(pa.Table.from_pandas(plain)),
        "RecordBatch of a stream": of_stream(coded).to_batches()[0],
    }


@pytest.mark.filterwarnings("ignore:Could not serialize pd.DataFrame.attrs")
@pytest.mark.parametrize("kind", exact_frames())
def test_no_exact_count_is_reachable_from_a_noisy_frame(kind: str) -> None:
    if kind == "attributes" and pd.__version__ < "3":
        pytest.skip("Arrow refuses attributes of pandas 2 that are no JSON")
    frame = exact_frames()[kind]
    assert shows(frame)
    label = 2020 if kind == "labels" else "n"
    noisy = tables.release_columns(frame, {label: WIDER})
    assert not shows(noisy)
    assert not any(SECRET.to_bytes(8, "little") in part for part in memory(noisy))
    assert len(noisy) == len(frame)
    if isinstance(frame, pd.DataFrame):
        # A column carries the attributes and the index of its frame.
        for noisy in (
            WIDER.release(frame[label]),
            NAMED.confidence_interval(frame.iloc[:, 0], 0.1)[0],
        ):
            assert not any(SECRET.to_bytes(8, "little") in part for part in memory(noisy))


def test_metadata_keeps_what_pandas_needs_alone() -> None:
    frame = pd.DataFrame({"n": [SECRET], "k": ["x"]}, index=pd.Index(["a"], name="at"))
    frame.attrs = {"counts": [SECRET]}
    exact = pa.Table.from_pandas(frame)
    field = exact.schema.field("k").with_metadata({"about": "towns"})
    exact = exact.set_column(1, field, exact["k"])
    exact = exact.replace_schema_metadata(exact.schema.metadata | {b"PANDAS_ATTRS": b"{}"})
    noisy = tables.release_columns(exact, {"n": WIDER})
    assert noisy.schema.equals(exact.schema)
    assert str(SECRET) in str(exact.schema.metadata)
    assert str(SECRET) not in str(noisy.schema.metadata)
    assert list(noisy.schema.metadata) == [b"pandas"]
    assert noisy.schema.field("k").equals(field, check_metadata=True)
    pd.testing.assert_frame_equal(noisy.to_pandas()[["k"]], frame[["k"]])
    for broken in (b"", b"[]", b"{", b"1"):
        named = exact.replace_schema_metadata({b"pandas": broken})
        assert not tables.release_columns(named, {"n": WIDER}).schema.metadata


LABELS = {
    "years": pd.Index([2020, 2021, 2022], name="year"),
    "numbers beside strings": pd.Index([2020, "2020", None], dtype=object),
    "bools": pd.Index([True, False, "all"]),
    "intervals": pd.interval_range(0, 3, name="age"),
    "timestamps": pd.to_datetime(["2020", "2021", "2022"]).rename("day"),
    "periods": pd.period_range("2020", periods=3, freq="Y"),
    "categories": pd.CategoricalIndex(["x", "y", "z"], ordered=True),
    "tuples": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["x", "y"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_nonstring_labels(kind: str) -> None:
    labels = LABELS[kind]
    frame = pd.DataFrame(np.arange(6).reshape(2, 3), columns=labels, index=pd.Index([7, 7]))
    for place, label in enumerate(labels):
        noisy = tables.release_columns(frame, {label: NONE})
        pd.testing.assert_frame_equal(noisy, frame)
        recorder: Any = Recorder()
        changed = tables.release_columns(frame, {label: recorder})
        assert [counts.tolist() for counts in recorder.counts] == [[place, place + 3]]
        assert (changed != frame).to_numpy().sum(axis=0).tolist() == [
            2 * (other == place) for other in range(3)
        ]
    with pytest.raises(KeyError, match="no column 'unknown'"):
        tables.release_columns(frame, {"unknown": NONE})


def test_arrow_memory_is_not_copied() -> None:
    array = pa.array(range(100)).slice(7)
    chunks = pa.chunked_array([array, array])
    for column in (array, chunks):
        recorder: Any = Recorder()
        assert items(recorder.release(column, threads=3))[:2] == [8, 9]
        for counts in recorder.counts:
            assert counts.ctypes.data == array.buffers()[1].address + 7 * 8
        assert set(recorder.threads) == {3}


def test_pandas_indices_and_names_are_kept() -> None:
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 0)], names=["x", "y"])
    for name in ("n", None, ("two", "levels")):
        counts = pd.Series([1, 2, 3], index=index, name=name, dtype="int16")
        noisy = NONE.release(counts)
        pd.testing.assert_series_equal(noisy, counts)
        assert noisy is not counts


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(
        {"n": np.array([1, 2, 3], np.uint8), "g": ["x", "y", "z"], "m": [4, 5, 6]}, index=[7, 7, 1]
    ),
    "polars": lambda: pl.DataFrame(
        {"n": [1, 2, 3], "g": ["x", "y", "z"], "m": [4, 5, 6]}, schema_overrides={"n": pl.UInt8}
    ),
    "Table": lambda: pa.table(
        {"n": pa.array([1, 2, 3], pa.uint8()), "g": ["x", "y", "z"], "m": [4, 5, 6]}
    ),
    "RecordBatch": lambda: FRAMES["Table"]().to_batches()[0],
}


def same_frame(one: Any, other: Any) -> bool:
    if isinstance(one, pd.DataFrame):
        return list(one.dtypes) == list(other.dtypes) and one.equals(other)
    return type(one) is type(other) and one.equals(other)


@pytest.mark.parametrize("kind", FRAMES)
def test_frame_columns(kind: str) -> None:
    frame = FRAMES[kind]()
    none = {"m": NONE, "n": accepting(NONE, "uint8")}
    assert same_frame(tables.release_columns(frame, none), frame)
    recorder: Any = Recorder()
    noisy = tables.release_columns(frame, {"m": recorder}, threads=2)
    assert [counts.tolist() for counts in recorder.counts] == [[4, 5, 6]]
    assert recorder.threads == [2]
    assert items(noisy["m"] if kind != "RecordBatch" else noisy.column(2)) == [5, 6, 7]
    assert same_frame(tables.release_columns(frame, {}), frame)
    assert same_frame(frame, FRAMES[kind]())


@pytest.mark.parametrize("kind", FRAMES)
def test_invalid_frame_arguments_raise(kind: str) -> None:
    frame = FRAMES[kind]()
    with pytest.raises(KeyError, match=r"'unknown'.*'n', 'g', 'm'"):
        tables.release_columns(frame, {"m": NONE, "unknown": NONE})
    with pytest.raises(TypeError, match="'g' of type"):
        tables.release_columns(frame, {"m": NONE, "g": NONE})
    with pytest.raises(ValueError, match="bounds = None with counts of type uint8 "):
        tables.release_columns(frame, {"m": NONE, "n": NONE})
    with pytest.raises(OverflowError, match="bounds"):
        tables.release_columns(frame, {"n": GeometricMechanism(1, bounds=(-1, 1))})
    with pytest.raises(TypeError, match="mapping"):
        tables.release_columns(frame, ["n"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nulls = 'drop'"):
        tables.release_columns(frame, {"n": NONE}, nulls="drop")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="release_columns"):
        NONE.release(frame)


def test_duplicate_names_raise() -> None:
    table = pa.table([[1], [2]], names=["n", "n"])
    frame = pd.DataFrame([[1, 2]], columns=["n", "n"])
    with pytest.raises(KeyError, match="occurs 2 times"):
        tables.release_columns(table, {"n": NONE})
    with pytest.raises((KeyError, ValueError), match="n"):
        tables.release_columns(frame, {"n": NONE})


@pytest.mark.parametrize(
    "column",
    [
        *(pd.Series(x, dtype=t) for x, t in [([1.0], None), ([True], None), (["a"], None)]),
        *(pd.Series([1], dtype=t) for t in ("object", "category", "Float64", "M8[ns]")),
        *(pl.Series(x) for x in ([1.0], [True], ["a"], [[1]])),
        *(pa.array(x) for x in ([1.0], [True], ["a"], [[1]])),
        *(pl.Series([1], dtype=pl.Int128), pa.array([1], pa.date32()), pa.nulls(2), pa.scalar(1)),
        *(pa.array([1]).dictionary_encode(), pa.chunked_array([[1.0]]), pa.table({"n": [1]})),
        *(pa.chunked_array([], pa.float64()), pl.LazyFrame({"n": [1]}), pd.Index([1]), [1]),
        np.array([1]),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', '')}",
)
def test_noninteger_columns_raise(column: Any) -> None:
    recorder: Any = Recorder()
    with pytest.raises(TypeError, match="counts"):
        columns.noisy(recorder.release, "counts", column, "refuse")
    assert recorder.counts == []


def damaged() -> list[pa.Array]:
    """Return arrays of IPC messages whose buffers do not fit each other."""
    words = pa.array(["ab", "c", "d"])
    made = []
    for array, part, other in (
        (words, np.array([0, 2, 3, 4], np.int32), np.array([0, 2**30, 3, 4], np.int32)),
        (
            words.dictionary_encode(),
            np.arange(3, dtype=np.int32),
            np.array([0, 10**6, 2], np.int32),
        ),
    ):
        file, batch = io.BytesIO(), pa.record_batch([array], names=["c"])
        with pa.ipc.new_stream(file, batch.schema) as stream:
            stream.write_batch(batch)
        message = file.getvalue()
        assert message.count(part.tobytes()) == 1
        message = message.replace(part.tobytes(), other.tobytes())
        made.append(pa.ipc.open_stream(message).read_next_batch()["c"])
    return made


@pytest.mark.parametrize("array", damaged(), ids=["offsets", "codes"])
def test_damaged_arrow_arrays_raise(array: pa.Array) -> None:
    """PyArrow itself reads beyond the buffers and may end the process."""
    for column in (array, pa.chunked_array([array])):
        with pytest.raises(ValueError, match="ids is damaged, which is not accepted: read it aga"):
            ReleaseKey().release(NONE, np.arange(3), [column], name="n")
        with pytest.raises(ValueError, match="data is damaged"):
            tables.count(column, ["ab"])
        with pytest.raises(ValueError, match="data is damaged"):
            tables.count(pa.table({"c": column}), {"c": ["ab"]})
        with pytest.raises(ValueError, match="released is damaged"):
            NAMED.confidence_interval(column, 0.1)


def test_mappings_of_arrays_raise() -> None:
    arrays = {"a": np.array([1, 2]), "b": np.array([3, 4])}
    for counts in (arrays, {"a": [1, 2]}, {"a": pd.Series([1])}, xarray.Dataset({"a": ("x", [1])})):
        for call in (NONE.release, lambda counts: NAMED.confidence_interval(counts, 0.1)):
            with pytest.raises(
                TypeError, match=r"of type \w+ with a \w+ is not accepted: give a map"
            ):
                call(counts)
    assert NONE.release({"a": np.int8(1), "b": 2}) == {"a": 1, "b": 2}


def test_libraries_are_imported_lazily() -> None:
    code = """
import sys
import numpy as np
from geomdp import GeometricMechanism
GeometricMechanism(1).release(np.zeros(3, np.int64)); GeometricMechanism(1).release([1, 2])
print({"pandas", "polars", "pyarrow", "narwhals", "duckdb"} & set(sys.modules))
import pyarrow
GeometricMechanism(1).release(pyarrow.array([1]))
print({"polars", "narwhals", "duckdb"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\nset()\n"


def test_without_narwhals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    for release in (
        lambda: NONE.release(pd.Series([1], dtype="Int64")),
        lambda: tables.release_columns(pd.DataFrame({"n": [1]}, dtype="Int64"), {"n": NONE}),
    ):
        with pytest.raises(ModuleNotFoundError) as error:
            release()
        assert error.value.__notes__ == ["Needed here: pip install 'narwhals>=2.13'"]
    for make in (pd.Series, pl.Series, pa.array):
        assert items(NONE.release(make([1]))) == [1]


# Queries


def test_polars_nulls() -> None:
    series: Any = pl.Series("n", [1, None, 3], dtype=pl.Int16)
    assert series.geomdp.release(NONE, nulls="keep").equals(series)
    with pytest.raises(ValueError, match="nulls"):
        series.geomdp.release(NONE)


@pytest.fixture
def connection() -> Any:
    with duckdb.connect() as connection:
        yield connection


def polars_query(seen: list[int], _: Any) -> Any:
    def see(batch: Any) -> Any:
        seen.append(len(batch))
        return batch

    return pl.LazyFrame({"n": range(50), "m": range(50)}).select(
        pl.col("n").map_batches(see, return_dtype=pl.Int64), "m"
    )


def duckdb_query(seen: list[int], connection: Any) -> Any:
    def see(batch: Any) -> Any:
        seen.append(len(batch))
        return batch

    given = {"type": "arrow", "side_effects": True}
    connection.create_function("see", see, ["BIGINT"], "BIGINT", **given)
    return connection.sql("SELECT see(i) AS n, i AS m FROM range(50) t(i)")


@pytest.mark.parametrize("make", [polars_query, duckdb_query])
def test_a_query_is_evaluated_once_and_drawn_once(make: Any, connection: Any) -> None:
    seen: list[int] = []
    query = make(seen, connection)
    one, two = Recorder(), Recorder()
    noisy = tables.release_columns(query, {"n": one, "m": two})
    assert type(noisy) is (pl.DataFrame if make is polars_query else pa.Table)
    for _ in range(2):  # However often it is read.
        assert items(noisy["n"]) == items(noisy["m"]) == list(range(1, 51))
    assert sum(seen) == 50
    assert [len(each.counts) for each in (one, two)] == [1, 1]


@pytest.mark.parametrize("make", [polars_query, duckdb_query])
def test_a_query_is_counted_where_it_is_evaluated_once(make: Any, connection: Any) -> None:
    seen: list[int] = []
    query = make(seen, connection)
    for times, (design, wanted) in enumerate(
        [
            (tables.Design({"n": [3, 7, 99]}), [1, 1, 0]),
            (tables.Design({"m": [49]}, individual="n", l0=1), [1]),
        ],
        1,
    ):
        table = design.count(query)
        assert type(table.frame) is (pl.DataFrame if make is polars_query else pa.Table)
        assert items(table.frame["count"]) == wanted
        assert sum(seen) == 50 * times
    assert items(tables.Design({}).count(query).frame["count"]) == [50]


def test_texts_of_duckdb_are_compared_by_their_characters(connection: Any) -> None:
    """Whatever the collation of the session, by which its GROUP BY goes."""
    connection.execute("SET default_collation = 'NOCASE'")
    query = connection.sql("SELECT * FROM (VALUES ('a'), ('A'), ('a')) t(x)")
    assert len(connection.sql("SELECT x FROM query GROUP BY x")) == 1
    assert items(tables.Design({"x": ["a", "A"]}).count(query).frame["count"]) == [2, 1]


NAMES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
TYPES = dict(zip(DTYPES, [*NAMES, *(f"U{name}" for name in NAMES)], strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_queries_keep_counts_and_types(connection: Any, dtype: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    rows = ", ".join(f"(({each})::{TYPES[dtype]})" for each in (least, 0, most))
    query = connection.sql(f"SELECT n FROM (VALUES {rows}) t(n)")
    noisy = tables.release_columns(query, {"n": accepting(NONE, dtype)})
    assert noisy["n"].to_pylist() == [least, 0, most]
    assert noisy["n"].type == pa.type_for_alias(dtype)


def test_queries_without_counts_raise(connection: Any) -> None:
    rows = "FROM (VALUES (1), (NULL), (3)) t(x)"
    kept = tables.release_columns(connection.sql(f"SELECT x {rows}"), {"x": NONE}, nulls="keep")
    assert kept["x"].to_pylist() == [1, None, 3]
    for query, error, message in [
        (f"SELECT x {rows}", ValueError, "column 'x' contains nulls"),
        (f"SELECT sum(x) AS x {rows}", TypeError, "column 'x' of type decimal128"),
        ("SELECT 5::UINTEGER AS x", ValueError, "bounds = None with counts of type"),
    ]:
        with pytest.raises(error, match=message):
            tables.release_columns(connection.sql(query), {"x": NONE})
    lengths = pl.LazyFrame({"g": [2, 1, 2]}).select(x=pl.len())
    with pytest.raises(ValueError, match="bounds = None with counts of type uint32"):
        tables.release_columns(lengths, {"x": NONE})


#: The calls by which an engine is given a function or an expression, and where the package has
#: them: what follows from a key, what reads exact data for a count, and limits on exact data.
HOOKS = {
    *("map_batches", "map_elements", "map_groups", "map_partitions", "map_blocks", "map_rows"),
    *("mapInArrow", "mapInPandas", "applyInArrow", "applyInPandas", "udf", "udtf", "pandas_udf"),
    *("create_function", "create_table_function", "register_io_source", "register_plugin_function"),
    *("register_expr_namespace", "register_lazyframe_namespace", "register_dataframe_namespace"),
    *("apply_gufunc", "map_overlap", "blockwise", "delayed", "from_map"),
}
KNOWN = {
    # Noise that follows from a key.
    *(("dask._array", "map_blocks"), ("dask.release_columns", "map_partitions")),
    *(("ray._map", "map_batches"), ("spark.release_columns", "mapInArrow")),
    # Counts, of which the driver makes a table.
    *(("dask._counted", "map_partitions"), ("dask._counted", "delayed")),
    ("spark._counted", "mapInArrow"),
    # Exact data in, exact data out.
    ("contributions.bound_contributions", "map_batches"),
    ("spark.bound_contributions", "mapInArrow"),
}


def test_no_engine_can_draw_a_release_twice() -> None:
    """An expression of Polars drew twice in ``select(x - 5, x + 5)``, and a view of DuckDB too."""
    for kind in (pl.Expr, pl.LazyFrame, pl.DataFrame):
        assert not hasattr(kind, "geomdp")
    found = set()
    for path in Path(tables.__file__).parents[1].rglob("*.py"):
        for function in ast.parse(path.read_text()).body:
            for node in ast.walk(function):
                name = getattr(node, "attr", getattr(node, "id", None))
                if name in HOOKS and isinstance(getattr(node, "ctx", None), ast.Load):
                    found.add((f"{path.stem}.{getattr(function, 'name', '')}", name))
    assert found == KNOWN


# Counting


#: Columns of items, by library.
MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda x: pd.Series(x, name="c", index=[7] * len(x)),
    "pandas, of Arrow's": lambda x: pd.Series(pa.array(x).to_pandas(types_mapper=pd.ArrowDtype)),
    "pandas, categories": lambda x: pd.Series(x, dtype="category", name="c"),
    "polars": lambda x: pl.Series("c", x),
    "Array": pa.array,
    "ChunkedArray": lambda x: pa.chunked_array([x[:1], x[1:]]),
    "dictionaries": lambda x: pa.array(x).dictionary_encode(),
    "pandas, dictionaries": lambda x: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(x).dictionary_encode()), name="c"
    ),
}
#: Levels, and items that are not all among them.
DAY = datetime.date(2020, 2, 29)
ITEMS: dict[str, tuple[list[Any], list[Any]]] = {
    "int": ([30, -1, 7], [7, 30, 30, 5, 7, 7]),
    "str": (["b", "", "z", "a"], ["a", "b", "a", "other", "a"]),
    "bool": ([True, False], [False, False, True]),
    "date": ([DAY, datetime.date(1999, 1, 1)], [DAY, DAY, datetime.date(2000, 1, 1)]),
}


def rows(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a frame."""
    if isinstance(table, pd.DataFrame):
        columns = [items(table.iloc[:, place]) for place in range(table.shape[1])]
    else:
        series = table.columns if isinstance(table, pa.Table) else table.get_columns()
        columns = [items(each) for each in series]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("maker", MAKERS)
def test_count_keeps_order_of_levels(maker: str, kind: str) -> None:
    levels, found = ITEMS[kind]
    column = MAKERS[maker](found)
    for order in (levels, levels[::-1], tuple(levels)):
        table = tables.count(column, order).frame
        assert rows(table) == [(level, found.count(level)) for level in order]
        assert type(table).__module__.split(".")[0] == type(column).__module__.split(".")[0]
        counts = table["count"]
        assert str(getattr(counts, "type", getattr(counts, "dtype", ""))).lower() == "int64"
        released = tables.release_columns(table, {"count": NONE})
        assert rows(released) == rows(table)
    nothing = tables.count(column[:0], levels).frame
    assert rows(nothing) == [(level, 0) for level in levels]


# The first call imports.
@settings(deadline=None)
@given(st.data(), st.sampled_from(["pandas", "polars", "lazy", "Table"]))
def test_count_matches_counter(data: st.DataObject, library: str) -> None:
    strings, numbers = st.sampled_from(["a", "b", "c", None]), st.integers(0, 3)
    people = data.draw(st.lists(st.tuples(strings, numbers, st.booleans()), max_size=30))
    levels = {
        name: data.draw(st.lists(each, min_size=1, unique=True))
        for name, each in {"b": st.booleans(), "x": strings, "n": st.integers(0, 5)}.items()
    }
    schema = {"x": pa.string(), "n": pa.int16(), "b": pa.bool_()}
    columns = zip(*people, strict=True) if people else ([], [], [])
    table = pa.table(
        [pa.array(list(each), kind) for each, kind in zip(columns, schema.values(), strict=True)],
        names=list(schema),
    )
    polars: Any = pl.from_arrow(table)
    made: Any = {"pandas": table.to_pandas, "polars": lambda: polars, "lazy": polars.lazy}
    frame = made.get(library, lambda: table)()
    labels: Any = {"b": [*levels["b"]], "x": [*levels["x"]], "n": [*levels["n"]]}
    other = data.draw(st.sampled_from([None, {"x": "else", "n": 8}, {"n": 9}])) or {}
    margins = data.draw(st.sampled_from([None, {"n": -1, "x": "all"}, {"x": "?"}])) or {}
    for label, more in [*other.items(), *margins.items()]:
        labels[label].append(more)
    wanted: dict[Any, int] = dict.fromkeys(itertools.product(*labels.values()), 0)
    for x, n, b in people:
        places = []
        for label, value in {"b": b, "x": x, "n": n}.items():
            inside = value in levels[label]
            if inside or label in other:
                total = [margins[label]] if label in margins else []
                places.append([value if inside else other[label], *total])
        if len(places) == 3:
            for row in itertools.product(*places):
                wanted[row] += 1
    counted = tables.count(frame, levels, name="rows", other=other, margins=margins)
    assert counted.sensitivity == 2 ** len(margins)
    found = [tuple(None if pd.isna(x) else x for x in row) for row in rows(counted.frame)]
    assert found == [(*row, n) for row, n in wanted.items()]
    native = counted.frame
    names = native.column_names if library == "Table" else list(native.columns)
    assert names == ["b", "x", "n", "rows"]


TRIPS = {"town": ["a", "b", "a", "c", "c"], "by": ["car", "car", "bus", "bus", "boat"]}
LEVELS = {"town": ["a", "b"], "by": ["bus", "car"]}


@pytest.mark.parametrize("other", [None, "else", {"by": "else"}])
@pytest.mark.parametrize("margins", [None, "all", {"town": "all"}])
def test_sensitivity_is_the_change_by_one_record(margins: Any, other: Any) -> None:
    """One record in each place, within the levels and outside."""
    counted = tables.count(pl.DataFrame(TRIPS), LEVELS, margins=margins, other=other)
    changes = set()
    for record in itertools.product(["a", "b", "c"], ["bus", "car", "boat"]):
        added = {name: [*TRIPS[name], value] for name, value in zip(TRIPS, record, strict=True)}
        after = tables.count(pl.DataFrame(added), LEVELS, margins=margins, other=other)
        changes.add((after.frame["count"] - counted.frame["count"]).abs().sum())
    assert (
        counted.sensitivity
        == max(changes)
        == {None: 1, "all": 4}.get(str(margins), 2 if margins else 1)
    )
    assert changes <= {0, counted.sensitivity}
    assert counted.design.privacy_loss(NAMED) == NAMED.privacy_loss(counted.sensitivity)


@pytest.mark.parametrize("library", ["pandas", "polars", "Table"])
def test_tables_release_no_exact_count(library: str) -> None:
    make: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Table": pa.table}[library]
    many = [4321, 8765]
    people = make({"<town>": np.repeat(["a", "b"], many)})
    counted = tables.count(people, {"<town>": ["a", "b"]}, margins="all")
    exact = np.array([*many, sum(many)]).tobytes()
    assert shows(counted.frame, exact)
    assert repr(counted) == (
        "<Table of 3 counts, not shown; <town>: ['a', 'b', 'all']; sensitivity 2>"
    )
    assert "&lt;town&gt;" in counted._repr_html_()
    noisy = counted.release(epsilon=1e-6)  # no noise is zero by chance
    assert type(noisy.frame) is type(counted.frame)
    assert [row[0] for row in rows(noisy.frame)] == ["a", "b", "all"]
    assert not shows(noisy.frame, exact)
    assert exact not in pickle.dumps(noisy)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([3, 5, None]))),
    st.sampled_from([1, 200]),
    st.sampled_from([None, "else"]),
)
def test_counts_by_codes_match_counter(people: Any, unused: int, other: str | None) -> None:
    """Of two columns of categories, with more combinations than rows or fewer."""
    x, n = zip(*people, strict=True) if people else ([], [])
    kinds = pd.CategoricalDtype(["b", "a"]), pd.CategoricalDtype([5, 3, *range(10, 10 + unused)])
    columns = {"x": pd.Series(x, dtype=kinds[0]), "n": pd.Series(n, dtype=kinds[1])}
    levels: Any = {"x": ["a", None], "n": [3, 10, 5]}
    counted = tables.count(pd.DataFrame(columns), levels, other={"x": other} if other else None)
    found = collections.Counter(
        (other if x == "b" else x, n) for x, n in people if x != "b" or other
    )
    wanted = [
        (*row, found[row]) for row in itertools.product(counted.design.levels["x"], levels["n"])
    ]
    assert [
        tuple(None if pd.isna(each) else each for each in row) for row in rows(counted.frame)
    ] == wanted


@pytest.mark.parametrize("maker", ["pandas", "pandas, of Arrow's", "polars", "Array"])
def test_invalid_levels_raise(maker: str) -> None:
    column = MAKERS[maker]([1, 2, 2])
    for wrong in (["1"], [DAY], [datetime.datetime(2026, 1, 1)]):
        # Decided by the type, with or without rows.
        for data in (column, column[:0]):
            with pytest.raises(ValueError, match=r"levels of .* give values of its type, .*nt64"):
                tables.count(data, wrong)
    # A null makes floats of pandas' integers, and must not decide.
    assert rows(tables.count(column, [1.5, 2]).frame) == [(1.5, 0), (2.0, 2)]
    for none in ([], [1, 1], [1, True]):
        with pytest.raises(ValueError, match="empty or repeat one"):
            tables.count(column, none)
    for other in ("12", {1, 2}, 1, iter([1])):
        with pytest.raises(TypeError, match="give a list"):
            tables.count(column, other)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="hashable"):
        tables.count(column, [[1]])


def test_count_of_invalid_data_raises() -> None:
    people = pd.DataFrame({"city": ["a"], "count": [1]})
    with pytest.raises(KeyError, match="no column 'town'"):
        tables.count(people, {"town": ["a"]})
    with pytest.raises(ValueError, match="name = 'count'"):
        tables.count(people, {"count": [1]})
    for data in (people, [1, 2], np.array([1]), pl.LazyFrame({"a": [1]})):
        with pytest.raises(TypeError, match=r"data has type .* levels as a mapping of column"):
            tables.count(data, [1])


# Bounds on contributions

BOTH = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
in_both = pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)


# The first call imports.
@settings(deadline=None, max_examples=60)
@given(
    visits=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["x", "y", "z", None]), st.sampled_from(["u", None])
        ),
        max_size=30,
    ),
    l0=st.integers(1, 4),
    linf=st.integers(1, 3),
    cells=st.sampled_from([None, [], ["town"], ["day", "town"]]),
    library=st.sampled_from(list(BOTH)),
)
def test_contributions_are_bounded(
    visits: Any, l0: int, linf: int, cells: Any, library: str
) -> None:
    who, town, day = (list(each) for each in zip(*visits, strict=True)) if visits else ([], [], [])
    columns = {"who": who, "town": town, "day": day, "row": range(len(who))}
    kinds = {"who": "int64", "town": "str", "day": "str", "row": "int64"}
    frame: Any = pd.DataFrame(columns).astype(kinds).set_axis([7] * len(who))
    if library == "polars":
        frame = pl.from_pandas(frame)
    linf = linf if cells else 1
    kept = tables.bound_contributions(frame, "who", l0=l0, linf=linf, cells=cells)
    places = list(kept["row"])
    # The rows themselves, in the order of the input.
    assert places == sorted(places)
    assert kept.equals(frame.iloc[places] if library == "pandas" else frame[places])
    for individual in set(who):
        taken: Any = collections.defaultdict(int)
        owned: Any = collections.defaultdict(int)
        for row, (one, *where) in enumerate(visits):
            values = dict(zip(["town", "day"], where, strict=True))
            cell = row if cells is None else tuple(values[name] for name in cells)
            if one == individual:
                owned[cell] += 1
                taken[cell] += row in places
        taken = +collections.Counter(taken)
        # As many as the bounds allow.
        assert len(taken) == min(l0, len(owned))
        assert all(taken[cell] == min(linf, owned[cell]) for cell in taken)


#: How many items are drawn from, and the rows that may be kept, with their numbers of orders.
OUTCOMES: list[tuple[Any, list[int], dict[tuple[int, ...], int]]] = [
    ({"l0": 1, "cells": ["town"]}, [2, 2], {(0,): 1, (1,): 1, (2,): 2}),
    ({"l0": 1, "linf": 2, "cells": ["town"]}, [2], {(0, 1): 1, (2,): 1}),
    ({"l0": 2, "cells": ["town"]}, [2], {(0, 2): 1, (1, 2): 1}),
    ({"l0": 2, "linf": 2, "cells": ["town"]}, [], {(0, 1, 2): 1}),
    ({"l0": 1}, [3], {(0,): 2, (1,): 2, (2,): 2}),
    ({"l0": 2}, [3], {(0, 1): 2, (0, 2): 2, (1, 2): 2}),
]


@in_both
@pytest.mark.parametrize("ties", [0, 1, 2])
@pytest.mark.parametrize("case", OUTCOMES)
def test_cells_and_their_records_are_drawn_uniformly(
    make: Any, case: Any, ties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exhaustive: all orders are equally likely, since only distinct words of entropy are used."""
    bounds, sizes, outcomes = case
    frame = make({"who": [1, 1, 1], "town": ["x", "x", "y"], "row": [0, 1, 2]})
    found: Any = collections.Counter()
    for orders in itertools.product(*(itertools.permutations(range(size)) for size in sizes)):
        words = [
            np.array(each, np.uint64)
            for order in orders
            for each in (*[[7] * len(order)] * ties, order)
        ]
        monkeypatch.setattr(
            tables._count.contributions, "words", lambda _, words=words: words.pop(0)
        )
        kept = tables.bound_contributions(frame, "who", **bounds)
        found[tuple(kept["row"])] += 1
        assert not words
    assert found == outcomes


def test_ties_favour_no_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exhaustive over words of two values, and all orders by which ties are decided."""
    found: Any = collections.Counter()
    for each in itertools.product(range(2), repeat=5):
        for order in itertools.permutations(range(5)):
            words = [np.array(each, np.uint64) << np.uint64(1), np.array(order, np.uint64)]
            monkeypatch.setattr(
                tables._count.contributions, "words", lambda _, words=words: words.pop(0)
            )
            kept = tables._count.contributions.drawn(np.array([4, 4, 1, 1, 1]), 1)
            found[tuple(np.flatnonzero(kept).tolist())] += 1
    assert found == dict.fromkeys(itertools.product((0, 1), (2, 3, 4)), 2**5 * 120 // 6)


def test_orders_of_great_numbers() -> None:
    """One number for both would not fit int64."""
    major, minor = np.array([2**40, 3, 2**40, 3]), np.array([2**40, 2**40, 5, 1])
    assert tables._count.contributions.sorted_by(major, minor).tolist() == [3, 1, 2, 0]
    assert tables._count.contributions.sorted_by(major % 7, minor % 7).tolist() == [0, 2, 3, 1]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy_frames_are_bounded_at_each_collect(engine: Any) -> None:
    visits = pl.DataFrame({"who": [1] * 64 + [2] * 64, "town": range(128), "row": range(128)})
    query = tables.bound_contributions(visits.lazy(), "who", l0=20, cells=["town"])
    assert isinstance(query, pl.LazyFrame)
    assert query.collect_schema() == visits.schema
    one, two = query.collect(engine=engine), query.collect(engine=engine)
    for kept in (one, two):
        assert kept["who"].value_counts(sort=True)["count"].to_list() == [20, 20]
        assert kept["row"].is_sorted()
    # Equal with probability below 10^-33.
    assert not one.equals(two)
    # Polars does not move a later filter before the draw: 32 towns would keep 20 of them. Of 64
    # towns, all 20 are among these with probability 10^-8.
    few = query.filter(pl.col("town") < 32).select("row").collect(engine=engine)
    assert few.height < 20
    null = tables.bound_contributions(pl.LazyFrame({"who": [1, None]}), "who", l0=1)
    with pytest.raises(ValueError, match="column 'who' contains nulls"):
        null.collect(engine=engine)


@in_both
def test_kept_records_are_uniform_and_not_seeded(make: Any) -> None:
    """Each of 10,000 individuals keeps one of six pairs of rows; the draws are independent."""
    size, draws = 10_000, []
    frame = make({"who": list(range(size)) * 4, "row": np.repeat(range(4), size)})
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        kept = tables.bound_contributions(frame, "who", l0=2)
        rows = np.zeros(size, np.int64)
        np.add.at(rows, np.asarray(kept["who"]), 1 << np.asarray(kept["row"]))
        draws.append(rows)
        observed = collections.Counter(rows.tolist())
        assert set(observed) == {0b11, 0b101, 0b110, 0b1001, 0b1010, 0b1100}
        assert not rejects(observed.values(), [size / 6] * 6)
    same = int((draws[0] == draws[1]).sum())
    assert not rejects([same, size - same], [size / 6, size * 5 / 6])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"l0": 0}, ValueError, "l0 = 0"),
        ({"l0": 1.0}, TypeError, r"l0 = 1\.0"),
        ({"linf": 0, "cells": ["town"]}, ValueError, "linf = 0"),
        ({"linf": 2}, ValueError, "linf = 2 without cells is not accepted"),
        ({"cells": "town"}, TypeError, "cells = 'town' has type str"),
        ({"cells": {"town"}}, TypeError, "cells has type set: give a list"),
        ({"cells": ["city"]}, KeyError, "no column 'city'"),
        ({"individual": "id"}, KeyError, "no column 'id'"),
        ({"individual": "null"}, ValueError, "column 'null' contains nulls"),
        ({"frame": [1]}, TypeError, "frame has type list"),
        ({"frame": pa.table({"who": [1]})}, TypeError, "frame has type Table: give a frame of"),
        (
            {"frame": duckdb.sql("SELECT 1 AS who")},
            TypeError,
            r"frame has type DuckDBPyRelation: give a frame of pandas or Polars",
        ),
        (
            {"frame": pa.table({"who": [1]}).to_reader()},
            TypeError,
            r"frame has type RecordBatchReader: give pyarrow.table\(frame\)",
        ),
        ({"frame": pl.LazyFrame({"id": [1]})}, KeyError, "no column 'who'"),
    ],
)
def test_invalid_contributions_raise(arguments: Any, error: Any, message: str) -> None:
    for make in BOTH.values():
        frame = make({"who": [1, 1], "town": ["x", "y"], "null": [None, "a"]})
        with pytest.raises(error, match=message):
            tables.bound_contributions(**{"frame": frame, "individual": "who", "l0": 1} | arguments)


def strange() -> dict[str, pa.Array]:
    """Return columns that libraries cannot group by value."""
    items = pa.array([[1], [2], [1]])
    words = pa.array(["1", "2", "3"])
    both = [pa.array([1, 2, 3]), words]
    return {
        "list": items,
        "fixed list": items.cast(pa.list_(pa.int64(), 1)),
        "struct": pa.array([{"a": 1}] * 3),
        "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
        "runs": pa.RunEndEncodedArray.from_arrays([1, 3], [5, 6]),
        "union": pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), both),
        "dense union": pa.UnionArray.from_dense(
            pa.array([0, 1, 0], pa.int8()), pa.array([0, 1, 2], pa.int32()), both
        ),
        "extension": pa.array([b"0" * 16] * 3, pa.uuid()),
        "bools of a byte": pa.ExtensionArray.from_storage(
            pa.bool8(), pa.array([1, 0, 1], pa.int8())
        ),
        "dictionary of lists": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), items[:2]),
        "views": pa.array(["a", "b", "a"], pa.string_view()),
        "halves": pa.array([1, 2, 1], pa.float16()),
        "objects": items,
    }


@pytest.mark.parametrize("kind", strange())
@pytest.mark.parametrize("library", ["pandas", "polars", "Table"])
def test_types_without_equal_values_raise(kind: str, library: str) -> None:
    """Or are accepted, where a library can compare them."""
    array = strange()[kind]
    try:
        column: Any = array
        if library == "pandas":
            column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))
        elif library == "polars":
            column = pl.Series(array)
        if kind == "objects":
            column = pd.Series([[1], [2], [1]])
    except BaseException as error:
        pytest.skip(f"{library} has no such type: {type(error).__name__}")
    make: Any = pa.table if isinstance(column, pa.Array) else type(column.to_frame())
    frame, refused = make({"c": column, "k": [1, 2, 3]}), list[type]()
    for call in (
        lambda: tables.count(column, [b"0" * 16]),
        lambda: tables.count(column, ["1"]),
        lambda: tables.count(frame, {"c": [5], "k": [1]}, other={"k": -1}),
        lambda: tables.bound_contributions(frame, "c", l0=1),
        lambda: tables.bound_contributions(frame, "k", l0=1, cells=["c"]),
        lambda: tables.bound_contributions(frame, "k", l0=1),
    ):
        try:
            call()
        except Exception as error:
            refused.append(type(error))
    # Arrow's errors are subclasses.
    assert set(refused) <= {TypeError, ValueError}
    assert refused or library == "polars" or kind == "halves"


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "double[pyarrow]", "coded"])
def test_bounds_and_counts_take_zeros_as_one(dtype: str) -> None:
    """Otherwise an individual keeps twice as many records as the cell counts."""
    zeros = pd.Series([0.0, -0.0] * 3)
    if dtype == "coded":
        codes = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 3), pa.array([0.0, -0.0]))
        zeros = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([codes])))
    else:
        zeros = zeros.astype(dtype)
    visits = pd.DataFrame({"who": 1, "at": zeros})
    for frame in (visits, pl.from_pandas(visits)) if dtype == "float64" else (visits,):
        for l0 in (1, 2):
            kept: Any = tables.bound_contributions(frame, "who", l0=l0, cells=["at"])
            assert rows(tables.count(kept["at"], [0.0]).frame)[0][1] == 1


def test_contributions_by_other_labels_and_types() -> None:
    frame = pd.DataFrame([[15, "a"], [15, "b"], [20, "a"]], columns=[2020, ("c", 1)])
    frame[("c", 1)] = frame[("c", 1)].astype("category")
    kept = tables.bound_contributions(frame, 2020, l0=1, linf=1, cells=[("c", 1)])
    assert kept[2020].tolist() == [15, 20]
    same = tables.bound_contributions(frame, 2020, l0=math.prod(frame.shape))
    pd.testing.assert_frame_equal(same, frame)


def test_index_is_not_read_item_by_item() -> None:
    """Setting it with Narwhals took ten times as long as everything else."""
    column = pd.Series(np.zeros(20_000, dtype=np.int64), index=np.arange(20_000) * 2)
    with cProfile.Profile() as profile:
        noisy = WIDE.release(column)
    assert pstats.Stats(profile).total_calls < 10_000  # type: ignore[attr-defined]
    assert noisy.index.equals(column.index)


def test_messages_say_what_is_missing() -> None:
    table = tables.count(pd.Series([1, 2]), [1, 2])
    with pytest.raises(TypeError, match="epsilon is not given: give epsilon="):
        table.release()
    with pytest.raises(TypeError, match="mechanism and epsilon are both given"):
        table.release(GeometricMechanism(1), epsilon=1)
    for bounds, said in [((0.5, 3), "tuple with float and int"), ((1, 2, 3), "tuple with 3 items")]:
        with pytest.raises(TypeError, match=f"bounds of type {said} is not accepted: give a pair"):
            table.release(epsilon=1, bounds=bounds)  # type: ignore[call-overload]


def test_a_release_has_a_text_without_a_library_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = tables.count(pd.Series(["a"] * 9), ["a", "b"]).release(epsilon=1)

    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(_native, "import_module", missing)
    assert repr(noisy).endswith(repr(noisy.to_dict()))
    assert repr(noisy.to_dict()["a"]) in noisy._repr_html_()
    with pytest.raises(ModuleNotFoundError) as error:
        _ = noisy.frame
    assert error.value.__notes__ == ["Needed here: pip install 'pandas'"]
