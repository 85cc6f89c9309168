"""Noise by key and ids: the same for the same, and another for all else."""

import copy
import datetime
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp import GeometricMechanism
from geomdp.distributed import Release, ReleaseKey, check_arguments
from unsigned import accepting

#: Two draws at this scale are equal with probability 5e-13 at most, and 10^6 pairs with 5e-7.
WIDE = GeometricMechanism.from_scale(1e12)
NAMED = GeometricMechanism(1.0)
INT64 = np.iinfo(np.int64)


@pytest.fixture
def key() -> ReleaseKey:
    return ReleaseKey()


def table(rows: int = 1000) -> pa.Table:
    places = [f"place {row % 37}" if row % 11 else None for row in range(rows)]
    columns = {"id": np.arange(rows), "place": places, "n": np.arange(rows) % 7, "m": [5] * rows}
    return pa.table(columns)


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "Table": lambda table: table,
    "chunks": lambda table: pa.concat_tables([table.slice(0, 10), table.slice(10)]),
    "RecordBatch": lambda table: table.combine_chunks().to_batches()[0],
    "a part": lambda table: pa.concat_tables([table, table]).slice(len(table)),
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_count_has_the_same_noise_in_any_frame_part_and_order(kind: str, key: ReleaseKey) -> None:
    mechanisms, plain = {"n": WIDE, "m": WIDE}, table()
    expected = key.release_columns(plain, mechanisms, ["id", "place"])
    order = np.random.default_rng(1).permutation(len(plain))
    for part in (order[:300], order[300:301], order[301:]):
        frame = FRAMES[kind](plain.take(part))
        noisy = key.release_columns(frame, mechanisms, ["id", "place"])
        assert type(noisy) is type(frame)
        for name in ("n", "m"):
            found = np.asarray(noisy[name]).tolist()
            assert found == expected[name].take(pa.array(part)).to_pylist()


def test_columns_and_arrays_have_the_same_noise(key: ReleaseKey) -> None:
    counts, ids = np.arange(1000), np.arange(1000) * 3 - 500
    expected = key.release(WIDE, counts, ids, name="n")
    frame = pa.table({"id": ids, "n": counts})
    assert key.release_columns(frame, {"n": WIDE}, ["id"])["n"].to_pylist() == expected.tolist()
    assert key.release(WIDE, pd.Series(counts), [ids], name="n").tolist() == expected.tolist()
    with_none = key.release(WIDE, pa.array([None, 1, *counts[2:]]), ids, name="n", nulls="keep")
    assert with_none.to_pylist() == [None, *expected[1:].tolist()]
    for layout in (np.asfortranarray, lambda x: x[::-1][::-1], lambda x: x.astype(">i8")):
        square = layout(counts.reshape(20, 50))
        noisy = key.release(WIDE, square, ids.reshape(20, 50), name="n")
        assert noisy.shape == (20, 50)
        assert noisy.ravel().tolist() == expected.tolist()


def test_batches_have_the_noise_of_their_rows(key: ReleaseKey) -> None:
    mechanisms, ids = {"m": WIDE, "n": WIDE}, ["place", "id"]
    whole = table().replace_schema_metadata({"of": "all"})
    expected = key.release_columns(whole, mechanisms, ids)
    # Of one row, of none, of another order of columns, and the first again.
    parts = [*whole.to_batches(max_chunksize=300), *whole[:1].to_batches(), whole[:0].to_batches()]
    parts[-1] = pa.record_batch([each[:0].combine_chunks() for each in whole], schema=whole.schema)
    turned = whole.select(["m", "id", "place", "n"]).to_batches(max_chunksize=600)
    marked = parts[0].schema.field("n").with_metadata({"unit": "heads"})
    last = parts[0].set_column(2, marked, parts[0].column("n"))
    batches = [*parts, *turned, parts[0], last]
    found = list(key.release_batches(batches, mechanisms, ids, threads=1))
    for one, other in zip(found, batches, strict=True):
        assert one.schema.equals(other.schema, check_metadata=True)
        assert one.column("id") == other.column("id")
    for some in (found[: len(parts) - 2], found[len(parts) : -2]):
        assert pa.Table.from_batches(some).select(expected.column_names) == expected
    assert [len(found[4]), len(found[5])] == [1, 0]
    assert found[-1] == found[-2] == found[0]


def test_batches_that_call_their_columns_otherwise(key: ReleaseKey) -> None:
    mechanisms, names = {"n": WIDE, "m": WIDE}, table().column_names
    expected = key.release_columns(table(), mechanisms, ["id"])
    other = table().rename_columns(["n", "id", "m", "x"]).to_batches()
    found = list(key.release_batches(other, mechanisms, ["id"], names=names))
    assert found[0].schema == other[0].schema
    assert found[0].rename_columns(names) == expected.to_batches()[0]
    with pytest.raises(ValueError, match=r"names = \['id'\] are not accepted: give 4"):
        next(key.release_batches(other, mechanisms, ["id"], names=["id"]))


def test_batches_are_taken_one_by_one(key: ReleaseKey) -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table().to_batches(max_chunksize=100):
            taken.append(len(batch))
            yield batch

    noisy = key.release_batches(batches(), {"n": WIDE}, ["id"])
    assert taken == []
    next(noisy)
    next(noisy)
    assert taken == [100, 100]
    key.wipe()
    with pytest.raises(ValueError, match="wiped"):
        next(noisy)


def test_bad_batches(key: ReleaseKey) -> None:
    whole = table().to_batches()
    missing = whole[0].set_column(2, "n", pa.array([None] * 1000, pa.int64()))
    bad: Any = [
        (table().to_pandas(), {}, TypeError, "batches with a str are not accepted"),
        ([table()], {}, TypeError, "batches with a Table are not accepted"),
        (whole, {"nulls": "keeep"}, ValueError, "nulls"),
        (whole, {"threads": 0}, ValueError, "threads"),
        (whole, {"ids": ["town"]}, KeyError, "town"),
        (whole, {"mechanisms": {"k": WIDE}}, KeyError, "k"),
        (whole, {"mechanisms": {"n": 1.0}}, TypeError, "mechanisms with a float"),
        ([whole[0], missing], {}, ValueError, "column 'n' with nulls"),
        ([whole[0], whole[0].select(["n"])], {}, KeyError, "id"),
    ]
    for batches, other, error, message in bad:
        arguments = {"mechanisms": {"n": WIDE}, "ids": ["id"], **other}
        with pytest.raises(error, match=message):
            list(key.release_batches(batches, **arguments))
    (kept,) = key.release_batches([missing], {"n": WIDE}, ["id"], nulls="keep")
    assert kept == missing


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_release_in_many_parts(threads: int, key: ReleaseKey) -> None:
    """More rows than are released at a time."""
    rows = table(10_000)
    some = pa.array(np.arange(10_000, dtype=np.uint64), mask=np.arange(10_000) % 5 == 0)
    for ids in ([rows["id"]], [rows["id"], some], [rows["place"], rows["id"]]):
        whole = key.release(WIDE, rows["n"], ids, threads=threads).to_pylist()
        for start in (0, 1, 3000, 9999):
            counts, part = rows["n"][start:], [column[start:] for column in ids]
            assert key.release(WIDE, counts, part, threads=1).to_pylist() == whole[start:]


EQUAL_IDS: dict[str, tuple[Any, Any]] = {
    "integers of any type": (np.array([1, 2, 3], np.int8), pa.array([1, 2, 3], pa.uint64())),
    "large ones": (np.array([2**63 - 1], np.uint64), np.array([2**63 - 1])),
    "with and without nulls elsewhere": (
        np.array([1, 2]),
        pa.array([None, 1, 2], pa.int32()).slice(1),
    ),
    "bools": (np.array([True, False]), pa.array([1, 0])),
    "dates": (pa.array([datetime.date(1970, 1, 5)]), np.array([4])),
    "times": (pa.array([7], pa.timestamp("us")), pa.array([7], pa.timestamp("us", "UTC"))),
    "strings": (pa.array(["å", ""]), pa.array([b"\xc3\xa5", b""])),
    "of numpy": (np.array(["a", "bc"]), pa.array(["a", "bc"], pa.large_string())),
    "views": (pa.array(["a", "bc"]), pa.array(["a", "bc"], pa.string_view())),
    "categories": (pa.array(["a", "bc"]), pd.Series(["a", "bc"], dtype="category")),
    "categories that are integers": (np.array([5, 6]), pa.array([5, 6]).dictionary_encode()),
    "of polars": (pa.array(["a", None]), pl.Series(["a", None])),
    "a slice": (pa.array(["bc", "d"]), pa.array(["a", "bc", "d", "e"], pa.large_string())[1:3]),
    "parts": (pa.array(["a", "b", "c"]), pa.chunked_array([["a"], [], ["b", "c"]])),
}


@pytest.mark.parametrize(("one", "other"), EQUAL_IDS.values(), ids=EQUAL_IDS)
def test_the_same_ids(one: Any, other: Any, key: ReleaseKey) -> None:
    counts = np.zeros(len(one), np.int64)
    noisy = key.release(WIDE, counts, one).tolist()
    assert noisy == key.release(WIDE, counts, other).tolist()
    assert len(set(noisy)) == len(noisy)


def test_ids_and_counts_that_are_not_aligned(key: ReleaseKey) -> None:
    """As Dask has received them."""
    plain = np.arange(10)
    odd = np.frombuffer(b"x" + plain.tobytes(), np.int64, offset=1)
    assert not odd.flags.aligned
    buffer = pa.py_buffer(b"x" + plain.tobytes()).slice(1)
    column = pa.Array.from_buffers(pa.int64(), 10, [None, buffer])
    text = pa.array([str(each) for each in plain]).cast(pa.large_binary())
    _, offsets, data = text.buffers()
    moved = pa.py_buffer(b"x" + offsets.to_pybytes()).slice(1)
    words = pa.Array.from_buffers(text.type, 10, [None, moved, data])
    expected = key.release(WIDE, plain, [plain, plain, text]).tolist()
    assert key.release(WIDE, odd, [odd, column, words]).tolist() == expected
    frame = pa.RecordBatch.from_arrays([column, words, column], ["i", "w", "n"])
    noisy = key.release_columns(frame, {"n": WIDE}, ["i", "w"])["n"]
    assert noisy.to_pylist() == key.release(WIDE, plain, [plain, text], name="n").tolist()


OTHER_IDS: dict[str, tuple[Any, Any]] = {
    "uint64 beyond int64": (np.array([2**64 - 1], np.uint64), np.array([-1])),
    "null, and what lies behind it": (pa.array([None], pa.int64()), np.array([0])),
    "null, and nothing": (pa.array([None], pa.string()), pa.array([""])),
    "a digit, and a number": (pa.array(["1"]), np.array([1])),
    "where a string ends": (
        [pa.array(["ab"]), pa.array(["c"])],
        [pa.array(["a"]), pa.array(["bc"])],
    ),
    "their order": ([np.array([1]), np.array([2])], [np.array([2]), np.array([1])]),
    "twice the same": ([np.array([1]), np.array([1])], [np.array([2]), np.array([2])]),
}


@pytest.mark.parametrize(("one", "other"), OTHER_IDS.values(), ids=OTHER_IDS)
def test_other_ids(one: Any, other: Any, key: ReleaseKey) -> None:
    counts = np.zeros(1, np.int64)
    assert key.release(WIDE, counts, one) != key.release(WIDE, counts, other)


def test_whatever_differs_has_noise_of_its_own(key: ReleaseKey) -> None:
    counts, ids = np.full(1000, 5), np.arange(1000)
    wider = GeometricMechanism.from_scale(2e12)
    bounded = GeometricMechanism.from_scale(1e12, bounds=(INT64.min // 2, INT64.max // 2))
    noises = [
        key.release(WIDE, counts, ids, name="n") - counts,
        key.release(WIDE, counts, ids, name="m") - counts,
        key.release(WIDE, counts, ids + 1000, name="n") - counts,
        # A task that is run again after its counts have changed is another release.
        key.release(WIDE, counts + 1, ids, name="n") - counts - 1,
        key.release(wider, counts, ids, name="n") - counts,
        key.release(bounded, counts, ids, name="n") - counts,
        ReleaseKey().release(WIDE, counts, ids, name="n") - counts,
        WIDE.release(counts) - counts,
    ]
    assert len(set(np.concatenate(noises).tolist())) == 8000


@pytest.mark.parametrize("bounds", [None, (0, 12)])
def test_the_law_is_that_of_the_mechanism(bounds: tuple[int, int] | None, key: ReleaseKey) -> None:
    """Alpha is 1e-6 for all cells together: the normal bound 5.8 has a tail of 6.6e-9 for each."""
    mechanism = GeometricMechanism.from_scale(2.0, bounds=bounds)
    size = 1_000_000
    noisy = key.release(mechanism, np.full(size, 5), np.arange(size))
    ratio = np.exp(-0.5)
    values = np.arange(13)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values - 5)
    if bounds:
        mass[0], mass[12] = ratio**5 / (1 + ratio), ratio**7 / (1 + ratio)
        assert set(noisy.tolist()) <= set(values.tolist())
    found = np.array([(noisy == value).sum() for value in values])
    assert (np.abs(found - size * mass) < 5.8 * np.sqrt(size * mass * (1 - mass))).all()


@given(
    counts=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60),
    start=st.integers(0, 59),
)
def test_neighbours_in_a_batch_do_not_matter(counts: list[int], start: int) -> None:
    key, ids = ReleaseKey(), np.arange(len(counts))
    whole = key.release(NAMED, np.array(counts), ids)
    part = key.release(NAMED, np.array(counts[start:], np.int64), ids[start:])
    assert part.tolist() == whole[start:].tolist()


def test_keys_travel_by_pickle_and_show_nothing(key: ReleaseKey) -> None:
    counts, ids = np.arange(100), np.arange(100)
    expected = key.release(WIDE, counts, ids).tolist()
    for other in (pickle.loads(pickle.dumps(key)), copy.copy(key), copy.deepcopy(key)):
        assert other.release(WIDE, counts, ids).tolist() == expected
        assert repr(other) == str(other) == "ReleaseKey(...)"
    assert not hasattr(key, "__dict__")
    _, (secret,) = key.__reduce__()
    assert len(set(secret)) > 8
    assert not [name for name in dir(key) if "secret" in name]


def test_a_wiped_key_releases_nothing(key: ReleaseKey) -> None:
    counts, ids = np.arange(100), np.arange(100)
    other = pickle.loads(pickle.dumps(key))
    key.wipe()
    key.wipe()
    for use in (lambda: key.release(WIDE, counts, ids), lambda: pickle.dumps(key)):
        with pytest.raises(ValueError, match="wiped"):
            use()
    with pytest.raises(ValueError, match="wiped"):
        key.release_columns(table(), {"n": WIDE}, ["id"])
    other.release(WIDE, counts, ids)


def test_a_release_wipes_at_the_end_of_its_block() -> None:
    wiped: list[int] = []
    release = Release("frame", lambda: wiped.append(1))
    with release as frame:
        assert (frame, wiped) == ("frame", [])
    assert wiped == [1]

    with pytest.raises(KeyError), release:
        raise KeyError
    assert wiped == [1, 1]


COUNTS = np.arange(3)


@pytest.mark.parametrize(
    ("counts", "ids", "error", "message"),
    [
        (COUNTS, np.arange(2), ValueError, "ids for 2 counts are not accepted: give those of 3"),
        (COUNTS, pa.array(["a"] * 4), ValueError, "ids for 4 counts"),
        (COUNTS, [], ValueError, r"ids = \(\) is not accepted"),
        (COUNTS, np.zeros(3), TypeError, "ids of type double are not accepted"),
        (COUNTS, pa.nulls(3), TypeError, "ids of type null"),
        (COUNTS, pa.array([[1], [2], [3]]), TypeError, "ids of type list"),
        (COUNTS, pa.array([1, 2, 3], pa.decimal128(5)), TypeError, "ids of type decimal128"),
        (COUNTS, np.ma.array([1, 2, 3]), TypeError, "masked"),
        (COUNTS, [1, 2, 3], TypeError, "ids is a int: give arrays or columns"),
        (COUNTS, "abc", TypeError, "ids is a str: give arrays or columns"),
        (np.zeros(3), np.arange(3), TypeError, "counts"),
        (pa.array([1, None, 3]), np.arange(3), ValueError, "counts with nulls"),
    ],
)
def test_bad_ids_and_counts(
    counts: Any, ids: Any, error: type[Exception], message: str, key: ReleaseKey
) -> None:
    with pytest.raises(error, match=message):
        key.release(WIDE, counts, ids)


def test_bad_mechanisms(key: ReleaseKey) -> None:
    with pytest.raises(TypeError, match="mechanism is of type float"):
        key.release(1.0, COUNTS, COUNTS)  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="bounds"):
        key.release(GeometricMechanism(1, bounds=(0, 300)), COUNTS.astype(np.int8), COUNTS)
    with pytest.raises(ValueError, match="nulls"):
        key.release_columns(table(), {"n": WIDE}, ["id"], nulls="keeep")  # type: ignore[arg-type]


NAMES = ["id", "place", "n", "n2", "n2"]


@pytest.mark.parametrize(
    ("mechanisms", "ids", "error", "message"),
    [
        ([("n", WIDE)], ["id"], TypeError, "mechanisms is a list"),
        ({"n": 1.0}, ["id"], TypeError, "mechanisms with a float"),
        ({"n": WIDE}, "id", TypeError, "ids = 'id' is not accepted"),
        ({"n": WIDE}, None, TypeError, "ids = None is not accepted"),
        ({}, ["id"], ValueError, "mechanisms is empty"),
        ({"n": WIDE}, [], ValueError, "ids is empty"),
        ({"n": WIDE}, ["id", "id"], ValueError, "give each once"),
        ({"n": WIDE}, ["id", "n"], ValueError, "none that is released"),
        ({"x": WIDE}, ["id"], KeyError, "column 'x'"),
        ({"n": WIDE}, ["x"], KeyError, "column 'x'"),
        ({"n2": WIDE}, ["id"], KeyError, "column 'n2'"),
    ],
)
def test_bad_columns(mechanisms: Any, ids: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_arguments(mechanisms, ids, NAMES)
    check_arguments({"n": WIDE}, ("id", "place"), NAMES)


def test_every_dtype_and_its_limits(key: ReleaseKey) -> None:
    for dtype in (np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)):
        limits = np.iinfo(dtype)
        counts = np.array([limits.min, 0, limits.max] * 100, dtype)
        mechanism = accepting(NAMED, dtype)
        noisy = key.release(mechanism, counts, np.arange(300))
        assert noisy.dtype == dtype
        assert (noisy[::3].astype(object) - limits.min < 60).all()
        assert (limits.max - noisy[2::3].astype(object) < 60).all()
        assert key.release(mechanism, counts[:0], np.arange(0)).dtype == dtype
