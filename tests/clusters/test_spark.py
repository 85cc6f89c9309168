"""Releases on a Spark cluster that fails, repeats and moves its tasks.

The cluster is Spark's own: a master and two workers at two addresses of this machine, as Spark
speculates on another host only, with an executor each. The law is held against the level ALPHA.
"""

import base64
import doctest
import itertools
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from scipy import stats

import geomdp.spark
from geomdp import GeometricMechanism
from geomdp.distributed import ReleaseKey

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

ALPHA = 1e-6
WIDE = GeometricMechanism.from_scale(1e6)
NONE = GeometricMechanism.from_scale(0)
BATCH = 100
ROWS = 4000
PARTITIONS = 4
# In seconds: more than any test takes.
PATIENCE = 300

# Executors do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


# The cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[SparkSession]:
    (folder / "log").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_LOCAL_DIRS", str(folder / "local"))
        patch.setenv("JAVA_TOOL_OPTIONS", quick)
        options = ["--webui-port", "0", "--host"]
        port = address.partition(":")[2]
        worker = [
            "--cores",
            "1",
            "--memory",
            "1g",
            "-d",
            str(folder / "work"),
            f"spark://{address}",
        ]
        roles = [
            ["master.Master", *options, "127.0.0.1", "--port", port],
            *(["worker.Worker", *options, f"127.0.0.{host}", *worker] for host in (2, 3)),
        ]
        command = str(Path(pyspark.__file__).parent / "bin/spark-class")
        processes = []
        with (folder / "cluster.log").open("w") as log:
            for role, *arguments in roles:
                call = [command, f"org.apache.spark.deploy.{role}", *arguments]
                processes.append(subprocess.Popen(call, stdout=log, stderr=log))
        try:
            session = configured(SparkSession.builder.master(f"spark://{address}"), folder)
            yield session
            session.stop()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


def configured(builder: SparkSession.Builder, folder: Path) -> SparkSession:
    for name, value in {
        "driver.host": "127.0.0.1",
        "eventLog.compress": False,
        "eventLog.dir": (folder / "log").as_uri(),
        "eventLog.enabled": True,
        "executor.memory": "512m",
        "scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "scheduler.minRegisteredResourcesRatio": 1,
        "speculation": True,
        "speculation.minTaskRuntime": "2s",
        "speculation.quantile": 0.5,
        "sql.execution.arrow.maxRecordsPerBatch": BATCH,
        "sql.shuffle.partitions": PARTITIONS,
        "ui.enabled": False,
        "ui.showConsoleProgress": False,
    }.items():
        builder = builder.config(f"spark.{name}", str(value).lower() if value in (0, 1) else value)
    return builder.getOrCreate()


@pytest.fixture
def counts(spark: SparkSession) -> DataFrame:
    return numbers(spark, ROWS)


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    """Return rows with two ids, that differ together only, and equal counts in two columns."""
    return spark.range(0, rows, 1, PARTITIONS).select(
        (F.col("id") % 50).cast("int").alias("i"),
        F.concat(F.lit("town "), (F.col("id") / 50).cast("int")).alias("town"),
        (F.col("id") % 7).alias("n"),
        (F.col("id") % 7).cast("int").alias("m"),
    )


IDS = ["town", "i"]


def rows(frame: DataFrame) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return what a frame has besides the ids, by ids."""
    table = frame.toArrow()
    found = dict(zip(tuples(table, IDS), tuples(table, ["n", "m"]), strict=True))
    assert len(found) == table.num_rows
    return found


def tuples(table: pa.Table, names: list[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the bytes of the keys that are drawn during a test."""
    drawn: list[bytes] = []

    def draw() -> ReleaseKey:
        key = ReleaseKey()
        _, (_, secret) = key.__reduce__()
        drawn.append(secret)
        return key

    monkeypatch.setattr(geomdp.spark, "ReleaseKey", draw)
    return drawn


# One noise for each count, whatever becomes of the tasks


def test_noise_is_the_same_in_any_order_partition_batch_and_plan(
    spark: SparkSession, counts: DataFrame
) -> None:
    release = geomdp.spark.release_columns(counts, {"n": WIDE, "m": WIDE}, IDS)
    first = rows(release.frame)
    assert len(first) == ROWS
    assert rows(release.frame) == first
    assert rows(release.frame.repartition(3, "n").orderBy("m")) == first
    assert rows(release.frame.filter("n > 0").union(release.frame.filter("n <= 0"))) == first
    for name, value in [
        ("spark.sql.execution.arrow.maxRecordsPerBatch", 7),
        ("spark.sql.adaptive.enabled", "false"),
    ]:
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        assert rows(release.frame) == first
        spark.conf.set(name, before)


def test_the_order_of_what_goes_in_does_not_matter(
    counts: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ReleaseKey()
    monkeypatch.setattr(geomdp.spark, "ReleaseKey", lambda: pickle.loads(pickle.dumps(key)))
    found = [
        rows(geomdp.spark.release_columns(frame, {"n": WIDE}, IDS).frame)
        for frame in (counts, counts.orderBy("m", "i").repartition(2), counts.coalesce(1))
    ]
    assert found[0] == found[1] == found[2]


def parent(process: int) -> int:
    """Return the parent of a process, or 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kill_workers() -> None:
    """Kill all Python workers of this executor, this one last."""
    processes = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    workers = [process for process in processes if parent(process) == os.getppid()]
    for worker in sorted(workers, key=os.getpid().__eq__):
        os.kill(worker, signal.SIGKILL)


def kill_executor() -> None:
    """Kill the Java process above the Python workers and their parent."""
    executor = parent(os.getppid())
    assert b"java" in Path(f"/proc/{executor}/cmdline").read_bytes()
    os.kill(executor, signal.SIGKILL)
    time.sleep(PATIENCE)


def dawdle() -> None:
    time.sleep(PATIENCE)


def disturbed(frame: DataFrame, act: Callable[[], None], folder: Path) -> DataFrame:
    """Return the frame as it is after a step that notes what it sees, and once comes to harm.

    That is when two batches are through.
    """
    folder.mkdir()

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            name = f"{context.partitionId()}-{context.taskAttemptId()}-{number}"
            (folder / f"{name}.part").write_bytes(pickle.dumps(batch))
            (folder / f"{name}.part").rename(folder / f"{name}.batch")
            yield batch
            if number == 1:
                try:
                    (folder / "harm").mkdir()
                except FileExistsError:
                    continue
                act()

    return frame.mapInArrow(step, frame.schema)


def seen(folder: Path) -> pa.Table:
    batches = [pickle.loads(path.read_bytes()) for path in folder.glob("*.batch")]
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("act", [kill_workers, kill_executor, dawdle])
def test_tasks_that_run_twice_make_the_noise_once(
    counts: DataFrame, tmp_path: Path, act: Callable[[], None]
) -> None:
    release = geomdp.spark.release_columns(counts, {"n": WIDE, "m": WIDE}, IDS)
    start = time.monotonic()
    found = rows(disturbed(release.frame, act, tmp_path / "seen"))
    assert time.monotonic() - start < PATIENCE
    table = seen(tmp_path / "seen")
    # Some rows were there before the harm, and again after it.
    assert table.num_rows >= ROWS + 2 * BATCH
    assert set(tuples(table, [*IDS, "n", "m"])) == {(*ids, *noisy) for ids, noisy in found.items()}
    assert found == rows(release.frame)


def test_what_is_lost_from_the_cache_comes_back_the_same(counts: DataFrame, tmp_path: Path) -> None:
    release = geomdp.spark.release_columns(counts, {"n": WIDE}, IDS)
    cached = release.frame.cache()
    found = rows(cached)
    assert rows(disturbed(cached, kill_executor, tmp_path / "seen")) == found
    assert rows(cached) == found
    cached.unpersist(blocking=True)
    assert rows(cached) == found


def meet(scale: float) -> float:
    """Return the probability that two draws are equal."""
    a = math.exp(-1 / scale)
    return sum(((1 - a) / (1 + a) * a ** abs(z)) ** 2 for z in range(-2000, 2001))


def equal_as_often_as_independent(pairs: list[tuple[int, int]], scale: float) -> bool:
    equal = sum(x == y for x, y in pairs)
    return bool(stats.binomtest(equal, len(pairs), meet(scale)).pvalue > ALPHA)


def test_releases_and_columns_are_independent(counts: DataFrame) -> None:
    """Even with the first one cached, and with counts that are the same."""
    scale = 5.0
    mechanism = GeometricMechanism.from_scale(scale)
    releases = [
        geomdp.spark.release_columns(counts, {"n": mechanism, "m": mechanism}, IDS)
        for _ in range(2)
    ]
    cached = releases[0].frame.cache()
    one, two = rows(cached), rows(releases[1].frame)
    four = [(*one[ids], *two[ids]) for ids in one]
    for a, b in itertools.combinations(range(4), 2):
        assert equal_as_often_as_independent([(row[a], row[b]) for row in four], scale)
    assert not equal_as_often_as_independent([(x, x) for x, _ in one.values()], scale)
    cached.unpersist()


def test_the_law(spark: SparkSession) -> None:
    frame = numbers(spark, 200_000)
    scales, bounds = {"n": 3.0, "m": 8.0}, {"n": None, "m": (0, 20)}
    mechanisms = {name: GeometricMechanism.from_scale(scales[name], bounds[name]) for name in "nm"}
    table = geomdp.spark.release_columns(frame, mechanisms, IDS).frame.toArrow()
    assert table.num_rows == 200_000
    towns = np.array([int(town[5:]) for town in table["town"].to_pylist()])
    truth = (50 * towns + table["i"].to_numpy()) % 7
    for name, scale in scales.items():
        noisy = table[name].to_numpy()
        lower, upper = bounds[name] or (-(2**62), 2**62)
        for count in range(7):
            found = noisy[truth == count]
            assert found.size > 28_000
            assert not refused(found, count, scale, lower, upper)
            assert refused(found, count, scale * 1.1, lower, upper)


def refused(found: Any, count: int, scale: float, lower: int, upper: int) -> bool:
    """Whether a chi-square test refuses the law of clamped counts."""
    a = math.exp(-1 / scale)
    reach = math.ceil(5 * scale)
    first, last = max(lower, count - reach), min(upper, count + reach)
    # Everything further out is taken with the ends.
    expected = [(1 - a) / (1 + a) * a ** abs(y - count) for y in range(first, last + 1)]
    expected[0], expected[-1] = a ** (count - first) / (1 + a), a ** (last - count) / (1 + a)
    if found.min() < lower or found.max() > upper:
        return True
    observed = np.bincount(found.clip(first, last) - first, minlength=last - first + 1)
    return bool(stats.chisquare(observed, np.array(expected) * found.size).pvalue < ALPHA)


# Columns


def test_schema_order_and_other_columns_stay(spark: SparkSession) -> None:
    count = F.col("id").cast("short").alias("a.count", metadata={"unit": "heads"})
    frame = spark.range(0, 300, 1, 2).select(
        F.concat(F.lit("é`"), F.col("id")).alias("i d"),
        F.when(F.col("id") > 3, (F.col("id") % 100).cast("byte")).alias("count"),
        F.col("id").cast("timestamp").alias("when"),
        count,
        F.col("id").cast("decimal(20,3)").alias("twice"),
        F.array(F.col("id")).alias("twice"),
        F.struct(F.col("id"), F.lit(None).cast("date").alias("day")).alias("pair"),
        F.map_from_arrays(F.array(F.lit("k")), F.array(F.col("id") * 1.5)).alias("map"),
        F.col("id").cast("string").cast("binary").alias("bytes"),
    )
    mechanisms = {"a.count": NONE, "count": NONE}
    release = geomdp.spark.release_columns(frame, mechanisms, ["i d"], nulls="keep")
    assert release.frame.schema == frame.schema
    assert release.frame.schema["a.count"].metadata == {"unit": "heads"}
    assert release.frame.collect() == frame.collect()
    for name in ("bytes", "when"):
        other = geomdp.spark.release_columns(frame, mechanisms, [name], nulls="keep")
        assert other.frame.collect() == frame.collect()
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    assert release.frame.collect() == frame.collect()
    spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


@pytest.mark.parametrize("kind", ["byte", "short", "int", "long"])
def test_limits_of_types(spark: SparkSession, kind: str) -> None:
    bits = {"byte": 8, "short": 16, "int": 32, "long": 64}[kind]
    limits = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
    frame = spark.createDataFrame([(k, limits[k % 2]) for k in range(200)], f"id int, n {kind}")
    for mechanism in (NONE, GeometricMechanism(0.5)):
        noisy = geomdp.spark.release_columns(frame, {"n": mechanism}, ["id"]).frame
        assert noisy.schema == frame.schema
        found = [row.n for row in noisy.orderBy("id").collect()]
        assert all(abs(n - limits[k % 2]) < 100 for k, n in enumerate(found))
        assert (found == limits * 100) == (mechanism is NONE)


def test_the_example(spark: SparkSession) -> None:
    failed, attempted = doctest.testmod(geomdp.spark)
    assert (failed, attempted > 5) == (0, True)


def test_bounds(counts: DataFrame) -> None:
    mechanism = GeometricMechanism.from_scale(50, bounds=(2, 5))
    found = rows(geomdp.spark.release_columns(counts, {"n": mechanism}, IDS).frame)
    assert {n for n, _ in found.values()} == {2, 3, 4, 5}


def test_nulls(spark: SparkSession) -> None:
    """The error of an executor tells of no count."""
    secret = 918_273_645
    frame = spark.createDataFrame([(1, secret), (None, None), (3, secret)], "id int, n int")
    kept = geomdp.spark.release_columns(frame, {"n": NONE}, ["id"], nulls="keep").frame
    assert kept.collect() == frame.collect()
    refusing = geomdp.spark.release_columns(frame, {"n": NONE}, ["id"]).frame
    with pytest.raises(PySparkException, match="column 'n' with nulls") as caught:
        refusing.collect()
    assert str(secret) not in everything(caught.value)


def everything(error: BaseException) -> str:
    """Return all that an error of Spark says, the Java stack included."""
    texts = [str(error), repr(error), repr(vars(error))]
    texts += [str(getattr(error, name, "")) for name in ("desc", "stackTrace", "java_exception")]
    return "\n".join([*texts, *(everything(e) for e in (error.__cause__,) if e)])


# What is refused


def test_ids_that_are_not_unique_are_refused_before_anything_is_released(
    counts: DataFrame, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(type(spark.sparkContext), "broadcast", lambda _, value: made.append(value))
    nulls = spark.createDataFrame([(None, 1), (2, 1), (None, 1)], "id int, n int")
    for frame, ids in [(counts, ["town"]), (counts.union(counts.limit(1)), IDS), (nulls, ["id"])]:
        with pytest.raises(ValueError, match=r"ids = \[.*\] are not unique") as caught:
            geomdp.spark.release_columns(frame, {"n": WIDE}, ids)
        assert "town " not in str(caught.value)
    # Without a key to be had nothing can have run.
    assert made == []


def test_frames_that_are_refused(counts: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    def release(frame: Any) -> None:
        geomdp.spark.release_columns(frame, {"n": WIDE}, IDS)

    other: Any = object.__new__(type("DataFrame", (DataFrame,), {}))
    for wrong in (other, pd.DataFrame({"town": [1], "i": [1], "n": [1]}), None):
        with pytest.raises(
            TypeError, match=r"frame is a .*: give a DataFrame of a classic session"
        ):
            release(wrong)
    stream = spark.readStream.schema(counts.schema).parquet(str(tmp_path))
    with pytest.raises(ValueError, match="streaming"):
        release(stream)
    for random in (F.rand() * 0, F.monotonically_increasing_id(), F.randn(seed=1)):
        frame = counts.withColumn("n", (F.col("n") + random).cast("int"))
        for wrong in (frame, frame.groupBy(*IDS).agg(F.max("n").alias("n")), frame.cache()):
            with pytest.raises(ValueError, match=r"random frame .* checkpoint"):
                release(wrong)
        frame.unpersist()
    release(frame.localCheckpoint())


def test_arguments_that_are_refused(counts: DataFrame) -> None:
    release: Any = geomdp.spark.release_columns
    frame = counts.withColumn("x", F.lit(1.0)).withColumn("d", F.lit(1).cast("decimal"))
    for error, arguments, text in [
        (TypeError, ({"x": WIDE}, IDS), "'x' of type double"),
        (TypeError, ({"town": WIDE}, ["i"]), "'town' of type string"),
        (TypeError, ({"d": WIDE}, IDS), "'d' of type decimal"),
        (TypeError, ({"n": WIDE}, ["x"]), "ids of type double"),
        (TypeError, ({"n": 1.0}, IDS), "mechanism"),
        (TypeError, ({"n": WIDE}, "town"), "ids = 'town'"),
        (KeyError, ({"n": WIDE}, ["city"]), "'city'"),
        (KeyError, ({"N": WIDE}, IDS), "'N'"),
        (ValueError, ({"n": WIDE}, []), "ids is empty"),
        (ValueError, ({}, IDS), "mechanisms is empty"),
        (ValueError, ({"n": WIDE}, ["n"]), "released"),
        (OverflowError, ({"m": GeometricMechanism(1, bounds=(0, 2**31))}, IDS), "bounds"),
    ]:
        with pytest.raises(error, match=text):
            release(frame, *arguments)
    with pytest.raises(ValueError, match="nulls = 'drop'"):
        release(frame, {"n": WIDE}, IDS, nulls="drop")


# The key


def forms(key: bytes) -> list[bytes]:
    shown = repr(key)[2:-1]
    return [
        key,
        key.hex().encode(),
        key.hex().upper().encode(),
        base64.b64encode(key)[:42],
        shown.encode(),
        shown.replace("\\", "\\\\").encode(),
        str(list(key))[1:-1].encode(),
        ",".join(map(str, key)).encode(),
    ]


def shows(text: bytes, key: bytes) -> bool:
    return any(form in text for form in forms(key))


def files_with(folder: Path, key: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and shows(path.read_bytes(), key)]


def test_nothing_shows_the_key(
    counts: DataFrame, keys: list[bytes], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "log/planted").write_bytes(b"... " + base64.b64encode(bytes(range(32))))
    assert len(files_with(folder / "log", bytes(range(32)))) == 1
    broken = counts.withColumn("n", F.when(F.col("i") > 0, F.col("n")))
    texts = []
    for frame in (counts, broken):
        release = geomdp.spark.release_columns(frame, {"n": WIDE}, IDS)
        for mode in ("simple", "extended", "codegen", "cost", "formatted"):
            release.frame.explain(mode=mode)
        texts.append(repr(release) + repr(release.frame) + repr(vars(release.frame)))
        if frame is broken:
            with pytest.raises(PySparkException) as caught:
                release.frame.collect()
            texts.append(everything(caught.value))
        else:
            release.frame.collect()
        release.wipe()
        with pytest.raises(Py4JJavaError, match="destroyed") as late:
            release.frame.collect()
        texts.append(everything(late.value))
    out, err = capfd.readouterr()
    assert out.count("MapInArrow noise") > 10
    text = "".join([*texts, out, err]).encode()
    assert len(keys) == 2
    for key in keys:
        assert not shows(text, key)
        assert files_with(folder / "log", key) == []
    assert any(b"MapInArrow noise" in path.read_bytes() for path in (folder / "log").rglob("*/*"))


def test_a_wiped_release_is_over(counts: DataFrame, keys: list[bytes], folder: Path) -> None:
    release = geomdp.spark.release_columns(counts, {"n": WIDE}, IDS)
    assert len(rows(release.frame)) == ROWS
    later = release.frame.orderBy("n")
    assert files_with(folder / "local", keys[0]) != []
    release.wipe()
    for again in (release.frame, later, release.frame.filter("n > 0")):
        with pytest.raises(Py4JJavaError, match="destroyed"):
            again.collect()
    release.wipe()
    assert len(keys) == 1
    # In files, at least: Spark does not overwrite memory.
    assert files_with(folder / "local", keys[0]) == []
    with geomdp.spark.release_columns(counts, {"n": WIDE}, IDS) as noisy:
        kept = noisy.localCheckpoint()
        cached = noisy.cache()
        found = rows(cached)
    assert rows(kept) == found
    with pytest.raises(Py4JJavaError, match="destroyed"):
        rows(cached)
    cached.unpersist()
