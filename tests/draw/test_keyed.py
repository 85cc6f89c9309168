"""Noise by key and ids: equal for equal keys, names, ids and counts, else independent."""

import copy
import datetime
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geomdp import GeometricMechanism, _core, keyed
from geomdp.keyed import Release, ReleaseKey, _check_arguments

#: Two draws at this scale are equal with probability at most 5e-13; among 10^6 pairs, 5e-7.
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
def test_noise_is_independent_of_frame_part_and_order(kind: str, key: ReleaseKey) -> None:
    mechanisms, plain = {"n": WIDE, "m": WIDE}, table()
    expected = key.release_columns(plain, mechanisms, ["id", "place"], part=True)
    order = np.random.default_rng(1).permutation(len(plain))
    for part in (order[:300], order[300:301], order[301:]):
        frame = FRAMES[kind](plain.take(part))
        noisy = key.release_columns(frame, mechanisms, ["id", "place"], part=True)
        assert type(noisy) is type(frame)
        for name in ("n", "m"):
            found = np.asarray(noisy[name]).tolist()
            assert found == expected[name].take(pa.array(part)).to_pylist()


def test_columns_and_arrays_have_equal_noise(key: ReleaseKey) -> None:
    counts, ids = np.arange(1000), np.arange(1000) * 3 - 500
    expected = key.release(WIDE, counts, ids, name="n", part=True)
    frame = pa.table({"id": ids, "n": counts})
    assert (
        key.release_columns(frame, {"n": WIDE}, ["id"], part=True)["n"].to_pylist()
        == expected.tolist()
    )
    assert (
        key.release(WIDE, pd.Series(counts), [ids], name="n", part=True).tolist()
        == expected.tolist()
    )
    with_none = key.release(
        WIDE, pa.array([None, 1, *counts[2:]]), ids, name="n", nulls="keep", part=True
    )
    assert with_none.to_pylist() == [None, *expected[1:].tolist()]
    for layout in (np.asfortranarray, lambda x: x[::-1][::-1], lambda x: x.astype(">i8")):
        square = layout(counts.reshape(20, 50))
        noisy = key.release(WIDE, square, ids.reshape(20, 50), name="n", part=True)
        assert noisy.shape == (20, 50)
        assert noisy.ravel().tolist() == expected.tolist()


def test_batches_have_noise_of_their_rows(key: ReleaseKey) -> None:
    mechanisms, ids = {"m": WIDE, "n": WIDE}, ["place", "id"]
    whole = table().replace_schema_metadata({"of": "all"})
    expected = key.release_columns(whole, mechanisms, ids, part=True)
    # Batches with one row, no rows, another column order, and the first batch again.
    parts = [*whole.to_batches(max_chunksize=300), *whole[:1].to_batches(), whole[:0].to_batches()]
    parts[-1] = pa.record_batch([each[:0].combine_chunks() for each in whole], schema=whole.schema)
    turned = whole.select(["m", "id", "place", "n"]).to_batches(max_chunksize=600)
    marked = parts[0].schema.field("n").with_metadata({"unit": "heads"})
    last = parts[0].set_column(2, marked, parts[0].column("n"))
    batches = [*parts, *turned, parts[0], last]
    found = list(key.release_batches(batches, mechanisms, ids, threads=1, part=True))
    for one, other in zip(found, batches, strict=True):
        assert one.schema == other.schema
        assert not one.schema.metadata
        assert not one.schema.field("n").metadata
        assert one.column("id") == other.column("id")
    for some in (found[: len(parts) - 2], found[len(parts) : -2]):
        assert pa.Table.from_batches(some).select(expected.column_names) == expected
    assert [len(found[4]), len(found[5])] == [1, 0]
    assert found[-1] == found[-2] == found[0]


def test_batches_with_other_column_names(key: ReleaseKey) -> None:
    mechanisms, names = {"n": WIDE, "m": WIDE}, table().column_names
    expected = key.release_columns(table(), mechanisms, ["id"], part=True)
    other = table().rename_columns(["n", "id", "m", "x"]).to_batches()
    found = list(key.release_batches(other, mechanisms, ["id"], names=names, part=True))
    assert found[0].schema == other[0].schema
    assert found[0].rename_columns(names) == expected.to_batches()[0]
    with pytest.raises(ValueError, match=r"names = \['id'\] are not accepted: give 4"):
        next(key.release_batches(other, mechanisms, ["id"], names=["id"], part=True))


def test_batches_are_read_lazily(key: ReleaseKey) -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table().to_batches(max_chunksize=100):
            taken.append(len(batch))
            yield batch

    noisy = key.release_batches(batches(), {"n": WIDE}, ["id"], part=True)
    assert taken == []
    next(noisy)
    next(noisy)
    assert taken == [100, 100]
    key.wipe()
    with pytest.raises(ValueError, match="wiped"):
        next(noisy)


def test_invalid_batches_raise(key: ReleaseKey) -> None:
    whole = table().to_batches()
    missing = whole[0].set_column(2, "n", pa.array([None] * 1000, pa.int64()))
    bad: Any = [
        (table().to_pandas(), {}, TypeError, "batches with a str are not accepted"),
        ([table()], {}, TypeError, "batches with a Table are not accepted"),
        (whole, {"nulls": "keeep"}, ValueError, "nulls"),
        (whole, {"threads": 0}, ValueError, "threads"),
        (whole, {"ids": ["town"]}, KeyError, "town"),
        (whole, {"mechanisms": {"k": WIDE}}, KeyError, "k"),
        (whole, {"mechanisms": {"n": 1.0}}, TypeError, "mechanisms contains a float"),
        ([whole[0], missing], {}, ValueError, "column 'n' contains nulls"),
        ([whole[0], whole[0].select(["n"])], {}, KeyError, "id"),
    ]
    for batches, other, error, message in bad:
        arguments = {"mechanisms": {"n": WIDE}, "ids": ["id"], **other}
        with pytest.raises(error, match=message):
            list(key.release_batches(batches, **arguments, part=True))
    (kept,) = key.release_batches([missing], {"n": WIDE}, ["id"], nulls="keep", part=True)
    assert kept == missing


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_noise_is_independent_of_parts(threads: int, key: ReleaseKey) -> None:
    """More rows than one internal batch."""
    rows = table(10_000)
    some = pa.array(np.arange(10_000, dtype=np.uint64), mask=np.arange(10_000) % 5 == 0)
    for ids in ([rows["id"]], [rows["id"], some], [rows["place"], rows["id"]]):
        whole = key.release(WIDE, rows["n"], ids, threads=threads, name="n", part=True).to_pylist()
        for start in (0, 1, 3000, 9999):
            counts, part = rows["n"][start:], [column[start:] for column in ids]
            assert (
                key.release(WIDE, counts, part, threads=1, name="n", part=True).to_pylist()
                == whole[start:]
            )


DAY = 86_400_000
EQUAL_IDS: dict[str, tuple[Any, Any]] = {
    "integers of any type": (np.array([1, 2, 3], np.int8), pa.array([1, 2, 3], pa.uint64())),
    "large ones": (np.array([2**63 - 1], np.uint64), np.array([2**63 - 1])),
    "with and without nulls elsewhere": (
        np.array([1, 2]),
        pa.array([None, 1, 2], pa.int32()).slice(1),
    ),
    "bools": (np.array([True, False]), pa.array([1, 0])),
    "times": (np.array([7], "datetime64[us]"), pa.array([None, 7], pa.timestamp("us"))[1:]),
    "dates": (pa.array([-3, 4], pa.date32()), pa.array([-3 * DAY, 4 * DAY], pa.date64())),
    "times of the day": (pa.array([5], pa.time32("s")), pa.array([5 * 10**9], pa.time64("ns"))),
    "durations": (pa.array([-5], pa.duration("ms")), np.array([-5000], "timedelta64[us]")),
    "timestamps": (
        pa.array([-1, 2**33], pa.timestamp("s")),
        pa.array([-(10**9), 2**33 * 10**9], pa.timestamp("ns")),
    ),
    "zones": (
        pa.array([7, None], pa.timestamp("us", "Etc/UTC")),
        pd.Series([7 * 10**3, None]).astype("datetime64[ns, Asia/Tokyo]"),
    ),
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
def test_equal_ids_have_equal_noise(one: Any, other: Any, key: ReleaseKey) -> None:
    counts = np.zeros(len(one), np.int64)
    noisy = key.release(WIDE, counts, one, name="n", part=True).tolist()
    assert noisy == key.release(WIDE, counts, other, name="n", part=True).tolist()
    assert len(set(noisy)) == len(noisy)


def test_unaligned_ids_and_counts(key: ReleaseKey) -> None:
    """As received by Dask workers."""
    plain = np.arange(10)
    odd = np.frombuffer(b"x" + plain.tobytes(), np.int64, offset=1)
    assert not odd.flags.aligned
    buffer = pa.py_buffer(b"x" + plain.tobytes()).slice(1)
    column = pa.Array.from_buffers(pa.int64(), 10, [None, buffer])
    text = pa.array([str(each) for each in plain]).cast(pa.large_binary())
    _, offsets, data = text.buffers()
    moved = pa.py_buffer(b"x" + offsets.to_pybytes()).slice(1)
    words = pa.Array.from_buffers(text.type, 10, [None, moved, data])
    expected = key.release(WIDE, plain, [plain, plain, text], name="n", part=True).tolist()
    assert key.release(WIDE, odd, [odd, column, words], name="n", part=True).tolist() == expected
    frame = pa.RecordBatch.from_arrays([column, words, column], ["i", "w", "n"])
    noisy = key.release_columns(frame, {"n": WIDE}, ["i", "w"], part=True)["n"]
    assert (
        noisy.to_pylist() == key.release(WIDE, plain, [plain, text], name="n", part=True).tolist()
    )


OTHER_IDS: dict[str, tuple[Any, Any]] = {
    "uint64 beyond int64": (np.array([2**64 - 1], np.uint64), np.array([-1])),
    "null, and what lies behind it": (pa.array([None], pa.int64()), np.array([0])),
    "null, and nothing": (pa.array([None], pa.string()), pa.array([""])),
    "a digit, and a number": (pa.array(["1"]), np.array([1])),
    "where a string ends": (
        [pa.array(["ab"]), pa.array(["c"])],
        [pa.array(["a"]), pa.array(["bc"])],
    ),
    "seconds, and milliseconds": (
        pa.array([5], pa.duration("s")),
        pa.array([5], pa.duration("ms")),
    ),
    "times of the day": (pa.array([5], pa.time32("s")), pa.array([5], pa.time32("ms"))),
    "a date, and its midnight": (
        pa.array([5], pa.date32()),
        pa.array([5 * 86_400], pa.timestamp("s")),
    ),
    "a time, and a duration": (pa.array([5], pa.time32("s")), pa.array([5], pa.duration("s"))),
    "a nanosecond, and a second": (
        pa.array([1], pa.duration("ns")),
        pa.array([1], pa.duration("s")),
    ),
    "a time here, and there": (
        pa.array([7], pa.timestamp("us")),
        pa.array([7], pa.timestamp("us", "UTC")),
    ),
    "a date, and a number": (pa.array([datetime.date(1970, 1, 5)]), np.array([4])),
    "their order": ([np.array([1]), np.array([2])], [np.array([2]), np.array([1])]),
    "twice the same": ([np.array([1]), np.array([1])], [np.array([2]), np.array([2])]),
}


@pytest.mark.parametrize(("one", "other"), OTHER_IDS.values(), ids=OTHER_IDS)
def test_different_ids_have_different_noise(one: Any, other: Any, key: ReleaseKey) -> None:
    counts = np.zeros(1, np.int64)
    assert key.release(WIDE, counts, one, name="n", part=True) != key.release(
        WIDE, counts, other, name="n", part=True
    )


EQUAL_NOISE = {
    "epsilon over sensitivity": (GeometricMechanism(0.2, 2), GeometricMechanism(0.1, 1)),
    "the limits": (NAMED, GeometricMechanism(1.0, bounds=(INT64.min, INT64.max))),
}


@pytest.mark.parametrize(("one", "other"), EQUAL_NOISE.values(), ids=EQUAL_NOISE)
def test_key_releases_a_name_once(
    one: GeometricMechanism, other: GeometricMechanism, key: ReleaseKey
) -> None:
    """A second table would show which counts are equal, even for unequal equivalent mechanisms."""
    counts, ids = np.arange(1000), np.arange(1000)
    noisy = key.release(one, counts, ids, name="n").tolist()
    for mechanism in (one, other, WIDE):
        for part in (False, True):
            with pytest.raises(ValueError, match=r"name = 'n' is not accepted: .* as a whole"):
                key.release(mechanism, counts, ids, name="n", part=part)
    key.release(one, counts, ids, name="m")
    other_key = ReleaseKey()
    assert other_key.release(one, counts, ids, name="n", part=True).tolist() != noisy
    # Parts are not checked. These are equal, which is why the key raises above.
    noises = [other_key.release(each, counts, ids, name="m", part=True) for each in (one, other)]
    assert noises[0].tolist() == noises[1].tolist()
    with pytest.raises(ValueError, match=r"name = 'm' is not accepted: .* in parts"):
        other_key.release(one, counts, ids, name="m")


def test_columns_are_released_once_and_together(key: ReleaseKey) -> None:
    key.release(WIDE, np.arange(3), np.arange(3), name="m")
    for part in (False, True):
        with pytest.raises(ValueError, match="name = 'm' is not accepted"):
            key.release_columns(table(), {"n": WIDE, "m": WIDE}, ["id"], part=part)
        with pytest.raises(ValueError, match="name = 'm' is not accepted"):
            next(key.release_batches(table().to_batches(), {"m": WIDE}, ["id"], part=True))
    key.release_columns(table(), {"n": WIDE}, ["id"])
    with pytest.raises(ValueError, match="name = 'n' is not accepted"):
        key.release_columns(table(), {"n": WIDE}, ["id"])
    other = ReleaseKey()
    list(other.release_batches(table().to_batches(), {"n": WIDE}, ["id"], part=True))
    with pytest.raises(ValueError, match="name = 'n' is not accepted"):
        other.release_columns(table(), {"n": WIDE, "m": WIDE}, ["id"])
    other.release_columns(table(), {"m": WIDE}, ["id"])


def test_failed_release_does_not_use_the_name(key: ReleaseKey) -> None:
    counts, ids = np.arange(3), np.arange(3)
    for bad in (counts * 0.5, counts[:2]):
        with pytest.raises((TypeError, ValueError)):
            key.release(WIDE, bad, ids, name="n")
    with pytest.raises(TypeError):
        key.release_columns(table(), {"n": WIDE, "place": WIDE}, ["id"])
    with pytest.raises(TypeError):
        key.release_columns(table(), {"n": WIDE, "place": WIDE}, ["id"], part=True)
    key.release(WIDE, counts, ids, name="n")


def test_only_one_of_two_threads_releases(monkeypatch: pytest.MonkeyPatch, key: ReleaseKey) -> None:
    both, rows, found = threading.Barrier(2), keyed._rows, list[Any]()

    def late(*arguments: Any) -> Any:
        both.wait(60)
        return rows(*arguments)

    def release() -> None:
        try:
            found.append(key.release(WIDE, np.arange(3), np.arange(3), name="n"))
        except ValueError as error:
            found.append(str(error))

    monkeypatch.setattr(keyed, "_rows", late)
    threads = [threading.Thread(target=release) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 2
    (refused,) = [each for each in found if isinstance(each, str)]
    assert "name = 'n' is not accepted" in refused


REPEATED: dict[str, Any] = {
    "integers": np.array([1, 2, 1]),
    "of Arrow": pa.array([1, 2, 1], pa.uint8()),
    "nulls": pa.array([None, 0, None], pa.int64()),
    "strings": pa.chunked_array([["a", "b"], ["a"]]),
    "views": pa.array(["a", "b", "a"], pa.string_view()),
    "a slice": pa.array(["a", "b", "c", "b"])[1:],
    "categories": pd.Series(["x", "y", "x"], dtype="category"),
    "times": pa.array([5, 6, 5], pa.timestamp("s")),
    "of polars": pl.Series(["a", None, "a"]),
    "rows": [np.array([1, 2, 1]), pa.array(["a", "a", "a"])],
}


@pytest.mark.parametrize("ids", REPEATED.values(), ids=REPEATED)
def test_repeated_ids_raise(ids: Any, key: ReleaseKey) -> None:
    with pytest.raises(ValueError, match="ids that repeat are not accepted") as refused:
        key.release(WIDE, np.array([777, 777, 777]), ids, name="n")
    assert "777" not in str(refused.value)
    noisy = key.release(WIDE, np.zeros(3, np.int64), ids, name="n", part=True)
    assert len(set(noisy.tolist())) < 3


UNIQUE: dict[str, Any] = {
    "nulls": pa.array([None, 0, 1], pa.int64()),
    "a null, and nothing": pa.array([None, "", "a"]),
    "rows": [np.array([1, 2, 1]), pa.array(["a", "a", None])],
    "of numpy": np.array([["b", "a", "c"]]),
    "large ones": pa.array([2**64 - 1, 2**63, 2**63 - 1], pa.uint64()),
}


@pytest.mark.parametrize("ids", UNIQUE.values(), ids=UNIQUE)
def test_unique_ids(ids: Any, key: ReleaseKey) -> None:
    assert len(set(key.release(WIDE, np.zeros(3, np.int64), ids, name="n").tolist())) == 3
    assert key.release(WIDE, np.arange(0), np.arange(0), name="none").size == 0
    key.release(WIDE, np.arange(1), pa.array([None], pa.string()), name="one")


def test_tables_with_repeated_ids_raise(key: ReleaseKey) -> None:
    twice = pa.concat_tables([table(), table()[7:8]])
    for ids in (["id"], ["id", "place"]):
        with pytest.raises(ValueError, match="ids that repeat are not accepted"):
            key.release_columns(twice, {"n": WIDE}, ids)
    key.release_columns(table(), {"n": WIDE}, ["id", "place"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "name"),
        ({"name": ""}, ValueError, "name = '' is not accepted: give the name of the column"),
        ({"name": 2020}, TypeError, "name = 2020 has type int: give a str"),
        ({"name": "n", "part": 1}, TypeError, "part = 1 is not accepted: give True or False"),
    ],
)
def test_invalid_name_or_part_raises(
    arguments: Any, error: Any, message: str, key: ReleaseKey
) -> None:
    with pytest.raises(error, match=message):
        key.release(WIDE, np.arange(3), np.arange(3), **arguments)


def test_batches_require_part(key: ReleaseKey) -> None:
    with pytest.raises(ValueError, match="part = False is not accepted: compare the ids"):
        next(key.release_batches(table().to_batches(), {"n": WIDE}, ["id"]))


def test_any_difference_gives_different_noise(key: ReleaseKey) -> None:
    counts, ids = np.full(1000, 5), np.arange(1000)
    wider = GeometricMechanism.from_scale(2e12)
    bounded = GeometricMechanism.from_scale(1e12, bounds=(INT64.min // 2, INT64.max // 2))
    noises = [
        key.release(WIDE, counts, ids, name="n", part=True) - counts,
        key.release(WIDE, counts, ids, name="m", part=True) - counts,
        key.release(WIDE, counts, ids + 1000, name="n", part=True) - counts,
        # A task repeated with changed counts is another release.
        key.release(WIDE, counts + 1, ids, name="n", part=True) - counts - 1,
        key.release(wider, counts, ids, name="n", part=True) - counts,
        key.release(bounded, counts, ids, name="n", part=True) - counts,
        ReleaseKey().release(WIDE, counts, ids, name="n", part=True) - counts,
        WIDE.release(counts) - counts,
    ]
    assert len(set(np.concatenate(noises).tolist())) == 8000
    # So do counts of another integer type, even with equal plans.
    narrow = GeometricMechanism(0.1, bounds=(0, 100))
    one, other = (
        key.release(narrow, counts.astype(dtype), ids, name="n", part=True)
        for dtype in (np.uint8, np.uint64)
    )
    assert (one != other).any()


def test_keys_pickle_and_show_nothing(key: ReleaseKey) -> None:
    counts, ids = np.arange(100), np.arange(100)
    expected = key.release(WIDE, counts, ids, name="n", part=True).tolist()
    for other in (pickle.loads(pickle.dumps(key)), copy.copy(key), copy.deepcopy(key)):
        assert other.release(WIDE, counts, ids, name="n", part=True).tolist() == expected
        assert repr(other) == str(other) == "ReleaseKey(...)"
        # A copy does not know what else is released.
        with pytest.raises(ValueError, match="part = False is not accepted: this key is a copy"):
            other.release(WIDE, counts, ids, name="m")
    assert not hasattr(key, "__dict__")
    _, (_, secret) = key.__reduce__()
    assert len(set(secret)) > 8
    assert not [name for name in dir(key) if "secret" in name]


def test_pickle_of_other_version_raises(key: ReleaseKey) -> None:
    make, (version, secret) = key.__reduce__()
    assert (version, len(secret)) == (2, 32)
    for other in [(1, secret), (3, secret, "more")]:
        with pytest.raises(ValueError, match=r"pickled in version [13] is not") as info:
            make(*other)
        assert repr(secret) not in str(info.value)


def test_wiped_key_raises(key: ReleaseKey) -> None:
    counts, ids = np.arange(100), np.arange(100)
    other = pickle.loads(pickle.dumps(key))
    key.wipe()
    key.wipe()
    for use in (
        lambda: key.release(WIDE, counts, ids, name="n", part=True),
        lambda: pickle.dumps(key),
    ):
        with pytest.raises(ValueError, match="wiped"):
            use()
    with pytest.raises(ValueError, match="wiped"):
        key.release_columns(table(), {"n": WIDE}, ["id"], part=True)
    other.release(WIDE, counts, ids, name="n", part=True)


def test_release_wipes_at_end_of_block() -> None:
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
        (COUNTS, np.arange(2), ValueError, "ids of length 2 are not accepted: give 3"),
        (COUNTS, pa.array(["a"] * 4), ValueError, "ids of length 4"),
        (COUNTS, [], ValueError, r"ids = \(\) is not accepted"),
        (COUNTS, np.zeros(3), TypeError, "ids of type double are not accepted"),
        (COUNTS, pa.nulls(3), TypeError, "ids of type null"),
        (COUNTS, pa.array([[1], [2], [3]]), TypeError, "ids of type list"),
        (COUNTS, pa.array([1, 2, 3], pa.decimal128(5)), TypeError, "ids of type decimal128"),
        (COUNTS, np.ma.array([1, 2, 3]), TypeError, "masked"),
        (COUNTS, [1, 2, 3], TypeError, "ids has type int: give arrays or columns"),
        (COUNTS, "abc", TypeError, "ids has type str: give arrays or columns"),
        (np.zeros(3), np.arange(3), TypeError, "counts"),
        (pa.array([1, None, 3]), np.arange(3), ValueError, "counts contains nulls"),
    ],
)
def test_invalid_ids_or_counts_raise(
    counts: Any, ids: Any, error: type[Exception], message: str, key: ReleaseKey
) -> None:
    with pytest.raises(error, match=message):
        key.release(WIDE, counts, ids, name="n", part=True)


def test_invalid_mechanisms_raise(key: ReleaseKey) -> None:
    with pytest.raises(TypeError, match="mechanism has type float"):
        key.release(1.0, COUNTS, COUNTS, name="n", part=True)  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="bounds"):
        key.release(
            GeometricMechanism(1, bounds=(0, 300)),
            COUNTS.astype(np.int8),
            COUNTS,
            name="n",
            part=True,
        )
    with pytest.raises(ValueError, match="nulls"):
        key.release_columns(table(), {"n": WIDE}, ["id"], nulls="keeep", part=True)  # type: ignore[arg-type]


def test_core_accepts_any_shape() -> None:
    """Two dimensions caused a panic."""
    square, key = np.zeros((3, 3), np.int64), _core.ReleaseKey(None)
    bad: Any = np.zeros((9, 2), np.int64)
    mechanism, ids = WIDE._core, _core.Ids(9)
    with pytest.raises(ValueError, match="one id for each count"):
        ids.add_integers(bad, None, True)
    with pytest.raises(ValueError, match="one id for each count"):
        ids.add_integers(np.arange(9), bad.view(np.uint8), True)
    ids.add_integers(np.arange(9), None, True)
    out = np.zeros_like(square)
    mechanism.release_keyed(key, "n", ids, 0, square, out, None, 1)
    assert len(set(out.ravel().tolist())) == 9
    with pytest.raises(ValueError, match="more counts than ids"):
        mechanism.release_keyed(key, "n", ids, 1, square, out, None, 1)


@pytest.mark.parametrize("offsets", [[0, 2, 1], [-1, 0, 1], [0, 1, 4]])
def test_core_refuses_offsets_of_other_data(offsets: list[int]) -> None:
    ids, counts = _core.Ids(2), np.zeros(2, np.int64)
    ids.add_bytes(np.array(offsets), np.zeros(3, np.uint8), None)
    with pytest.raises(ValueError, match="offsets = "):
        WIDE._core.release_keyed(
            _core.ReleaseKey(None), "n", ids, 0, counts, np.zeros_like(counts), None, 1
        )


NAMES = ["id", "place", "n", "n2", "n2"]


@pytest.mark.parametrize(
    ("mechanisms", "ids", "error", "message"),
    [
        ([("n", WIDE)], ["id"], TypeError, "mechanisms has type list"),
        ({"n": 1.0}, ["id"], TypeError, "mechanisms contains a float"),
        ({2020: WIDE}, ["id"], TypeError, "column 2020 is not accepted"),
        ({"n": WIDE}, "id", TypeError, "ids = 'id' is not accepted"),
        ({"n": WIDE}, None, TypeError, "ids = None is not accepted"),
        ({}, ["id"], ValueError, "mechanisms is empty"),
        ({"n": WIDE}, [], ValueError, "ids is empty"),
        ({"n": WIDE}, ["id", "id"], ValueError, "give each once"),
        ({"n": WIDE}, ["id", "n"], ValueError, "no released column"),
        ({"x": WIDE}, ["id"], KeyError, "column 'x'"),
        ({"n": WIDE}, ["x"], KeyError, "column 'x'"),
        ({"n2": WIDE}, ["id"], KeyError, "column 'n2'"),
    ],
)
def test_invalid_columns_raise(
    mechanisms: Any, ids: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        _check_arguments(mechanisms, ids, NAMES)
    _check_arguments({"n": WIDE}, ("id", "place"), NAMES)
