"""Releases on a Dask cluster draw once for each count, whatever happens to the tasks."""

import base64
import gzip
import logging
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster, Status, wait

import geomdp.tables.dask
from contract import WIDE, Contract, Engine, Tables, copies, night, record_keys
from forms import shows
from geomdp import GeometricMechanism
from geomdp._ground import identity
from geomdp.keyed import ReleaseKey
from geomdp.tables import Design
from geomdp.tables.dask import release, release_columns
from statistics_ import Z_LIMIT, censored_pmf, equal_as_often_as_independent, rejects
from test_neighbouring_data import known, observed

NONE = GeometricMechanism.from_scale(0)
ROWS, PARTS = 1000, 6
SCHEDULERS = ["threads", "distributed", *night("processes")]
ALL = pytest.mark.parametrize("scheduler", SCHEDULERS, indirect=True)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        # On a busy machine a killed worker restarts later than the default allows.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def whole(client: Client) -> None:
    """Wait until a killed worker has restarted."""
    local: Any = client.cluster
    while not all(nanny.status == Status.running for nanny in local.workers.values()):
        time.sleep(0.05)
    client.wait_for_workers(2)


@pytest.fixture
def cluster(client: Client) -> Iterator[Client]:
    """Make the client the default for all evaluations."""
    whole(client)
    with client.as_current():
        yield client


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Return processes for all tests; Dask itself starts new ones for each evaluation."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@pytest.fixture(params=["threads", *night("distributed")])
def scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.param
    if name == "distributed":
        request.getfixturevalue("cluster")
        yield name
    else:
        pool = request.getfixturevalue("pool") if name == "processes" else None
        with dask.config.set(scheduler=name, num_workers=2, pool=pool):
            yield name


def pandas_frame(rows: int = ROWS) -> pd.DataFrame:
    numbers = np.arange(rows)
    return pd.DataFrame(
        {
            "n": np.zeros(rows, np.int64),
            "city": [f"city {i // 2}" for i in numbers],
            "m": np.zeros(rows, np.int64),
            "sex": numbers % 2 == 0,
            "other": numbers / 2,
        },
        index=pd.Index(numbers * 3, name="row"),
    )


IDS = ["city", "sex"]


def counts(rows: int = ROWS) -> dd.DataFrame:
    return dd.from_pandas(pandas_frame(rows), npartitions=PARTS)


def compute(lazy: Any) -> Any:
    """Return rows in the order of their index, whatever the partitions."""
    found = lazy.compute()
    return found.sort_index() if isinstance(found, pd.DataFrame) else found


def dying(path: Path) -> Callable[[Any], Any]:
    """Return a function of partitions that kills its process once, after some partitions."""

    def function(part: pd.DataFrame) -> pd.DataFrame:
        if len(part) and part.index[0] > 1000:
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                return part
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    return function


def through(lazy: Any, function: Callable[[Any], Any]) -> Any:
    return lazy.map_partitions(function, meta=lazy._meta)


@pytest.fixture
def engine() -> Engine:
    def frame(table: pa.Table) -> Any:
        return dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)

    def draw(patch: pytest.MonkeyPatch, key: ReleaseKey) -> None:
        patch.setattr(geomdp.tables.dask, "ReleaseKey", copies(key))

    def found(lazy: Any) -> pa.Table:
        return pa.Table.from_pandas(lazy.compute())

    def keep(lazy: Any) -> Any:
        return lazy.persist()

    dask = geomdp.tables.dask
    tables = dask.count, dask.sum, dask.choose_limit
    return Engine(frame, release_columns, found, keep, draw, ValueError, *tables)


class TestContract(Contract, Tables):
    """On threads."""


# Repeated tasks give equal noise


@ALL
def test_release_is_the_same_however_evaluated(scheduler: str) -> None:
    with release_columns(counts(), {"n": WIDE, "m": WIDE}, IDS) as noisy:
        first = compute(noisy)
        assert first["n"].nunique() > 0.99 * ROWS
        again: list[Any] = [noisy, noisy.repartition(npartitions=2)]
        if scheduler == "distributed":
            # With its own way to move rows.
            again += [noisy.shuffle("n")]
        if scheduler == "threads":
            again += [
                noisy.repartition(npartitions=11),
                noisy.shuffle("n"),
                noisy.sort_values("m"),
                # Chained, so that the optimiser has work.
                noisy[noisy["sex"]],
                noisy[["n"]],
                noisy[["city", "m"]],
                noisy.partitions[2:4],
            ]
        for lazy in again:
            found = compute(lazy)
            assert len(found) > 0
            pd.testing.assert_frame_equal(found, first.loc[found.index, found.columns])
        assert noisy["n"].sum().compute() == first["n"].sum()
    assert (noisy.npartitions, noisy.divisions) == (PARTS, counts().divisions)


@pytest.mark.parametrize("place", [*night("before"), "behind"])
def test_killed_worker(cluster: Client, tmp_path: Path, place: str) -> None:
    die, mark = dying(tmp_path / "died"), tmp_path / "died"
    frame: Any = counts()
    # Behind the noise it dies with noisy counts that nobody else has.
    release_ = release_columns(
        through(frame, die) if place == "before" else frame,
        {"n": WIDE},
        IDS,
        unique_ids=place == "behind",
    )
    noisy = release_.frame if place == "before" else through(release_.frame, die)
    # Before the noise it has died while ids were compared, and dies again below.
    assert mark.exists() == (place == "before")
    mark.unlink(missing_ok=True)
    whole(cluster)
    first = compute(noisy)
    assert mark.exists()
    pd.testing.assert_frame_equal(compute(release_.frame), first)
    release_.wipe()


@pytest.mark.night
def test_lost_persisted_counts(cluster: Client) -> None:
    with release_columns(counts(), {"n": WIDE}, IDS) as noisy:
        kept = noisy.persist()
        wait(kept)
        first = compute(kept)
        held = cluster.has_what()
        address, keys = max(held.items(), key=lambda item: len(item[1]))
        assert any("release_columns" in str(key) for key in keys)
        os.kill(cluster.run(os.getpid)[address], signal.SIGKILL)
        while address in cluster.scheduler_info()["workers"]:
            time.sleep(0.05)
        pd.testing.assert_frame_equal(compute(kept), first)


@pytest.mark.night
def test_stolen_tasks(cluster: Client) -> None:
    """All partitions are on one worker, and the other steals some."""
    frame: Any = counts()
    one = next(iter(cluster.scheduler_info()["workers"]))
    there = cluster.persist(frame, workers=[one], allow_other_workers=True)
    wait(there)

    def slow(part: pd.DataFrame) -> pd.DataFrame:
        time.sleep(0.3)
        return part

    def where(part: pd.DataFrame) -> pd.DataFrame:
        return part.assign(other=float(os.getpid()))

    processes: list[int] = []
    with release_columns(there, {"n": WIDE}, IDS) as noisy:
        first = compute(noisy)
        # Usually it happens the first time.
        while len(processes) < 20 and 2 not in processes:
            found = compute(through(through(noisy, slow), where))
            pd.testing.assert_series_equal(found["n"], first["n"])
            processes.append(found["other"].nunique())
    assert 2 in processes


# Releases are independent


def test_releases_are_independent(scheduler: str) -> None:
    mechanism = GeometricMechanism(1)
    frame = counts()
    with (
        release_columns(frame, {"n": mechanism}, IDS) as one,
        release_columns(frame, {"n": mechanism}, IDS) as other,
    ):
        assert one.expr._name != other.expr._name
        assert not set(one.dask) & set(other.dask) - set(frame.optimize().dask)
        # Also in one graph.
        first, second = dask.compute(one, other)
        assert equal_as_often_as_independent(first["n"], second["n"], 1.0)
        assert not equal_as_often_as_independent(first["n"], first["n"], 1.0)
        pd.testing.assert_frame_equal(compute(one), first)
    array = da.zeros(ROWS, dtype=np.int64, chunks=300)
    arrays = [release(array, mechanism).frame for _ in range(2)]
    assert arrays[0].name != arrays[1].name
    assert equal_as_often_as_independent(*dask.compute(*arrays), 1.0)


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_distribution(cluster: Client, kind: str) -> None:
    rows, scale = 200_000, 10.0
    mechanism = GeometricMechanism.from_scale(scale)
    if kind == "frame":
        whole = pd.DataFrame({"id": np.arange(rows), "n": np.full(rows, 7)})
        frame: Any = dd.from_pandas(whole, npartitions=3)
        with release_columns(frame, {"n": mechanism}, ["id"]) as noisy:
            noise = noisy["n"].compute().to_numpy() - 7
    else:
        with release(da.full((500, 400), 7, chunks=(130, 170)), mechanism) as lazy:
            noise = lazy.compute().ravel() - 7
    observed = np.bincount(noise.clip(-60, 60) + 60, minlength=121)
    assert not rejects(observed, censored_pmf(0, scale, -60, 60) * rows)
    # Neighbours by id are uncorrelated.
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < Z_LIMIT / rows**0.5


# Only counts change


@pytest.mark.parametrize("strings", [True, False])
def test_other_columns_are_kept(strings: bool) -> None:
    numbers = range(20)
    with dask.config.set({"dataframe.convert-string": strings}):
        whole = pd.DataFrame(
            {
                "plain": np.arange(20, dtype=np.uint8),
                "text": pd.array([f"t{i}" for i in numbers], pd.ArrowDtype(pa.string())),
                "nullable": pd.array([*range(19), None], dtype="Int16"),
                "arrow": pd.array([None, *range(19)], pd.ArrowDtype(pa.uint64())),
                "time": pd.date_range("2020", periods=20, tz="Europe/Berlin"),
                "kind": pd.Categorical([f"k{i}" for i in numbers]),
            },
            index=pd.Index([7] * 20, name="seven"),
        )
        frame: Any = dd.from_pandas(whole, npartitions=3)
        # Unsigned counts need bounds.
        bounds = {"plain": (0, 255), "nullable": None, "arrow": (0, 2**64 - 1)}
        mechanisms = {name: GeometricMechanism.from_scale(0, each) for name, each in bounds.items()}
        for ids in (["text"], ["time", "kind"], ["kind"]):
            found = release_columns(frame, mechanisms, ids, nulls="keep").frame
            assert found.divisions == frame.divisions
            pd.testing.assert_frame_equal(found._meta, frame._meta)
            pd.testing.assert_frame_equal(found.compute(), frame.compute())
        # Also partitions without rows.
        few = frame[frame["plain"] < 3]
        found = release_columns(few, {"plain": mechanisms["plain"]}, ["text"]).frame
        pd.testing.assert_frame_equal(found.compute(), few.compute())


def test_no_output_contains_counts_behind_nulls() -> None:
    secret, mask = 0x5EC2E75EC2E75E, np.array([False, True] * 10)
    counts: Any = pd.arrays.IntegerArray(np.where(mask, secret, 7), mask)
    whole = pd.DataFrame({"i": range(20), "n": counts})
    frame: Any = dd.from_pandas(whole, npartitions=2)
    assert secret.to_bytes(8, "little") in pickle.dumps(frame.compute())
    noisy = release_columns(frame, {"n": NONE}, ["i"], nulls="keep").frame.compute()
    assert secret.to_bytes(8, "little") not in pickle.dumps(noisy)
    assert secret not in noisy["n"].array._data
    assert noisy["n"].isna().tolist() == mask.tolist()


# Errors


def test_repeated_ids_raise(scheduler: str) -> None:
    whole = pandas_frame()
    row = whole.iloc[[400]]
    for twice in (
        # In two partitions, and in one.
        dd.concat([dd.from_pandas(whole, npartitions=PARTS), dd.from_pandas(row, npartitions=1)]),
        dd.from_pandas(pd.concat([whole, row]).sort_index(), npartitions=PARTS),
    ):
        with pytest.raises(ValueError, match=r"ids = \['city', 'sex'\] are not unique") as caught:
            release_columns(twice, {"n": WIDE}, IDS)
        assert "city 200" not in str(caught.value)
    with pytest.raises(ValueError, match="not unique"):
        release_columns(counts(), {"n": WIDE}, ["city"])


def test_ids_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def repeated(rows: pd.DataFrame) -> Any:
        compared.append(len(rows))
        assert list(rows.columns) == IDS
        return rows.duplicated()

    monkeypatch.setattr(geomdp.tables.dask, "_repeated", repeated)
    with dask.config.set(scheduler="synchronous"):
        release_columns(counts(), {"n": WIDE}, IDS)
    assert sum(compared) == ROWS
    assert max(compared) < 2 * ROWS / PARTS


def test_ids_in_other_units_between_partitions() -> None:
    """5 s and 5 ms are two ids, and 5 s and 5000 ms are one."""

    def part(unit: str, step: int) -> pd.DataFrame:
        return pd.DataFrame({"i": np.arange(1, 200).astype(f"timedelta64[{unit}]") * step, "n": 0})

    for step in (1, 1000):
        parts = [part("s", 1), part("ms", step)]
        frame: Any = dd.from_map(lambda each: each, parts, meta=parts[0][:0])
        for unique in (False, True):
            with pytest.raises(TypeError, match=r"'i' of type timedelta64\[ms\] in a partition"):
                release_columns(frame, {"n": WIDE}, ["i"], unique_ids=unique).frame.compute()
        same = frame.astype({"i": "timedelta64[ms]"})
        if step == 1:
            noisy = release_columns(same, {"n": WIDE}, ["i"]).frame.compute()
            assert noisy["i"].nunique() == len(noisy) == 398
            assert noisy["n"].nunique() > 390
        else:
            with pytest.raises(ValueError, match="not unique"):
                release_columns(same, {"n": WIDE}, ["i"])
    counted: Any = dd.from_map(
        lambda each: each, [part("s", 1).astype({"n": "int32"})], meta=part("s", 1)[:0]
    )
    with pytest.raises(TypeError, match="column 'n' of type int32 in a partition and int64 in"):
        release_columns(counted, {"n": WIDE}, ["i"]).frame.compute()
    unknown = counts().astype({"city": "category"})
    with pytest.raises(ValueError, match="unknown categories of 'city'"):
        release_columns(unknown, {"n": WIDE}, IDS)
    known = unknown.assign(city=unknown["city"].cat.as_known())
    assert len(release_columns(known, {"n": WIDE}, IDS).frame.compute()) == ROWS


def test_unique_ids_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []

    def note(part: pd.DataFrame) -> pd.DataFrame:
        read.append(len(part))
        return part

    frame = through(counts(), note)
    with dask.config.set(scheduler="synchronous"):
        release_columns(frame, {"n": WIDE}, IDS, unique_ids=True)
        assert sum(read) == 0
        release_columns(frame, {"n": WIDE}, IDS)
    assert sum(read) == ROWS


@pytest.mark.filterwarnings("ignore:.*inplace keyword")
@pytest.mark.night
def test_rows_differing_between_readings_are_not_noticed(cluster: Client, tmp_path: Path) -> None:
    """Hence the documentation asks to write and read them first."""

    def draw(part: pd.DataFrame) -> pd.DataFrame:
        return part.assign(n=np.frombuffer(os.urandom(8 * len(part)), np.int64) >> 8)

    frame = through(counts(), draw)
    with release_columns(frame, {"n": WIDE}, IDS) as noisy:
        first = compute(noisy)
        while any(cluster.has_what().values()):
            time.sleep(0.05)
        assert not first["n"].equals(compute(noisy)["n"])
    kept = frame.persist()
    wait(kept)
    frame.to_parquet(str(tmp_path))
    releases = [release_columns(x, {"n": WIDE}, IDS) for x in (kept, dd.read_parquet(tmp_path))]
    firsts = [compute(each.frame)["n"] for each in releases]

    def same() -> list[bool]:
        pairs = zip(releases, firsts, strict=True)
        return [first.equals(compute(each.frame)["n"]) for each, first in pairs]

    assert same() == [True, True]
    # Dask recomputes what a lost worker had persisted.
    for process in cluster.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)
    whole(cluster)
    assert same() == [False, True]


def test_invalid_arrays_and_objects_raise() -> None:
    array = da.zeros(4, dtype=np.int64)
    wrong: list[tuple[Any, str, Callable[[], Any]]] = [
        (TypeError, "Array of Dask", lambda: release(np.zeros(3, int), NONE)),
        (TypeError, "mechanism has type", lambda: release(array, 1.0)),  # type: ignore[arg-type]
        (TypeError, "float64", lambda: release(array * 1.0, NONE)),
        (TypeError, "bool", lambda: release(array == 1, NONE)),
        (TypeError, "MaskedArray", lambda: release(da.ma.masked_equal(array, 1), NONE)),
        (ValueError, "compute_chunk_sizes", lambda: release(array[array > 1], NONE)),
        (
            OverflowError,
            "bounds",
            lambda: release(array.astype("u1"), GeometricMechanism(1, bounds=(-1, 1))),
        ),
    ]
    for kind, text, call in wrong:
        with pytest.raises(kind, match=text):
            call()
    with dask.config.set({"dataframe.convert-string": False}):
        # Each partition would have its own type of ids.
        some = dd.from_pandas(pd.DataFrame({"id": pd.Series([b"a"], dtype=object), "n": [1]}))
        with pytest.raises(TypeError, match="ids of type"):
            release_columns(some, {"n": NONE}, ["id"])


# Arrays


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((), ()),
        ((0,), (1,)),
        ((1000,), (300,)),
        ((30, 40), (7, 40)),
        ((30, 40), (30, 11)),
        ((5, 6, 7), (2, 6, 3)),
    ],
)
def test_noise_is_independent_of_chunks(shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    array = da.from_array(np.arange(np.prod(shape), dtype=np.int32).reshape(shape), chunks=chunks)
    noisy = release(array, WIDE).frame
    assert (noisy.shape, noisy.dtype, noisy.chunks) == (array.shape, array.dtype, array.chunks)
    first = noisy.compute()
    assert len(np.unique(first)) > 0.99 * first.size or first.size < 2
    if shape and first.size:
        np.testing.assert_array_equal(noisy.rechunk(4).compute(), first)
        np.testing.assert_array_equal(noisy[::-1].compute(), first[::-1])
        np.testing.assert_array_equal(noisy[2:5].compute(), first[2:5])
    np.testing.assert_array_equal(release(array, NONE).frame.compute(), array.compute())
    # Other chunks before the release, under one key.
    held = geomdp.tables.dask._Here(ReleaseKey())
    one, other = (
        geomdp.tables.dask._array(each, WIDE, held) for each in (array, array.rechunk(-1))
    )
    np.testing.assert_array_equal(one.compute(), other.compute())


@pytest.mark.night
def test_array_on_killed_worker(cluster: Client, tmp_path: Path) -> None:
    mark = tmp_path / "died"

    def die(block: Any, block_info: Any = None) -> Any:
        if block_info and block_info[0]["chunk-location"] == (2,) and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    with release(da.zeros(1000, dtype=np.int16, chunks=200), WIDE) as noisy:
        found = noisy.map_blocks(die, dtype=noisy.dtype, meta=noisy._meta).compute()
        assert mark.exists()
        np.testing.assert_array_equal(found, noisy.compute())


# The key


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the bytes of each key drawn during the test."""
    return record_keys(monkeypatch, geomdp.tables.dask)


def test_search_finds_all_forms() -> None:
    secret = bytes(range(100, 132))
    for place in (secret, b"x" + secret, f"{secret!r}", secret.hex(), list(secret), [[secret]]):
        assert shows(secret, "nothing", place)
    assert shows(secret, base64.b64encode(secret).decode(), "nothing")
    assert shows(secret, pickle.dumps({"a": secret}))
    assert not shows(secret, "nothing", bytes(32))


@ALL
def test_key_is_not_shown(
    scheduler: str, secrets: list[bytes], client: Client, tmp_path: Path
) -> None:
    one = release_columns(counts(), {"n": WIDE}, IDS, unique_ids=True)
    array = release(da.zeros((40, 30), chunks=(7, 30), dtype=np.int64), WIDE)
    assert len(secrets) == 2
    for release_, secret in zip((one, array), secrets, strict=True):
        lazy: Any = release_.frame
        graph = dict(lazy.dask)
        places: list[Any] = [repr(lazy), lazy._repr_html_(), *graph, *map(repr, graph.values())]
        places += [repr(release_), vars(release_._wipe.__self__)]  # type: ignore[attr-defined]
        if isinstance(lazy, dd.DataFrame):
            places += [lazy.expr._name, str(lazy.expr), repr(lazy.optimize().expr)]
        for task in graph.values():
            # The arguments of tasks.
            places += [getattr(task, "args", ""), getattr(task, "kwargs", "")]
        if scheduler == "distributed":
            places += [pickle.dumps(lazy), *map(pickle.dumps, graph.values())]
            lazy = lazy.persist()
            wait(lazy)
            client.dump_cluster_state(str(tmp_path / "dump"))
            [dump] = tmp_path.glob("dump*")
            state = gzip.decompress(dump.read_bytes())
            places += [state, client.get_scheduler_logs(), client.get_worker_logs()]
            assert b"release" in state
            dump.unlink()
        assert not shows(secret, *places)
        del lazy
        release_.wipe()
        with pytest.raises(ValueError, match="wiped") as caught:
            release_.frame.compute()
        assert not shows(secret, *traceback.format_exception(caught.value))


def test_wiping_removes_key_from_scheduler(cluster: Client, secrets: list[bytes]) -> None:
    def stored(dask_scheduler: Any) -> Any:
        return dask_scheduler.extensions["variables"].variables

    release_ = release_columns(counts(), {"n": WIDE}, IDS)
    assert shows(secrets[0], cluster.run_on_scheduler(stored))
    release_.wipe()
    assert not shows(secrets[0], cluster.run_on_scheduler(stored))


def test_key_stays_where_it_can_be_wiped(client: Client) -> None:
    release_ = release_columns(counts(), {"n": WIDE}, IDS)
    first = compute(release_.frame)
    with client.as_current(), pytest.raises(TypeError) as caught:
        release_.frame.compute()
    assert "made without a Client" in str(caught.value.__cause__)
    pd.testing.assert_frame_equal(compute(release_.frame), first)


def test_closed_client(client: Client) -> None:
    address = client.scheduler.address
    with Client(address, set_as_default=False) as short, short.as_current():
        release_ = release_columns(counts(), {"n": WIDE}, IDS)
    with pytest.raises(RuntimeError, match="closed"):
        release_.wipe()


# Tables of a design


VISITS = pd.DataFrame(
    {
        "who": np.arange(4000) % 80,
        "n": np.arange(4000) // 80 % 7,
        "town": np.array(["a", "b", "z"])[np.arange(4000) % 3],
    }
)


@ALL
def test_a_table_has_one_draw_of_each_individual(scheduler: str) -> None:
    """The 80 individuals have 7 records or more in each of 7 cells, and 6 of them count."""
    design = Design({"n": list(range(7))}, individual="who", l0=3, linf=2)
    table = geomdp.tables.dask.count(design, dd.from_pandas(VISITS, npartitions=PARTS))
    found = table.frame["count"].tolist()
    assert sum(found) == 80 * 6
    assert all(n % 2 == 0 for n in found)


def test_nothing_but_the_noise_tells_neighbours_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GeometricMechanism, "release", known)
    monkeypatch.setattr(identity, "fresh", lambda: "0" * 32)
    design, found = Design({"town": ["Rome", "Oslo"]}, margins="*"), []
    for more in ([], ["Aarau"], [None]):
        towns = pd.DataFrame({"town": pd.Categorical(["Rome", "Oslo", *more])})
        table = geomdp.tables.dask.count(design, dd.from_pandas(towns, npartitions=2))
        found.append(observed(table.release(epsilon=1), tmp_path))
    assert found[0] == found[1] == found[2]


def test_individuals_of_mixed_types_raise() -> None:
    frame = dd.from_pandas(VISITS, npartitions=PARTS)
    mixed = frame.map_partitions(lambda part: part.assign(who=part["who"].astype(object)))
    with pytest.raises(TypeError, match="individuals of type object are not accepted on a cl"):
        geomdp.tables.dask.count(Design({"n": [1]}, individual="who", l0=1), mixed)
