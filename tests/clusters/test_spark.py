"""Releases on a Spark cluster whose tasks fail, repeat and move.

The cluster has a master and two workers with one executor each. The workers have two addresses of
this machine, since Spark speculates only on another host.
"""

import base64
import doctest
import itertools
import math
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

import geomdp.tables.spark
from contract import WIDE, Contract, Engine, Tables, by_ids, copies, night, record_keys, tuples
from forms import shows
from geomdp import GeometricMechanism
from geomdp._ground import identity
from geomdp.keyed import ReleaseKey
from geomdp.tables import Design
from geomdp.tables._engines import spark_internals, spark_plan
from statistics_ import censored_pmf, rejects
from test_examples import publishes
from test_neighbouring_data import known, observed

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

NONE = GeometricMechanism.from_scale(0)
BATCH = 100
ROWS = 4000
PARTITIONS = 4
# In seconds, longer than any test.
PATIENCE = 300
WIPED = "ValueError: the key of this release is wiped"

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
    # Spark's classes are not verified: a fifth of what its five processes take to start.
    quick = (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    )
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
            session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
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
        # Also of a stage of one task.
        "speculation.task.duration.threshold": "2s",
        "sql.execution.arrow.maxRecordsPerBatch": BATCH,
        "sql.shuffle.partitions": PARTITIONS,
        "task.maxFailures": 3,
        "ui.enabled": False,
        "ui.showConsoleProgress": False,
    }.items():
        builder = builder.config(f"spark.{name}", str(value).lower() if value in (0, 1) else value)
    return builder.getOrCreate()


@pytest.fixture
def counts(spark: SparkSession) -> DataFrame:
    return numbers(spark, ROWS)


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    """Return rows with two ids, unique only together, and equal counts in two columns."""
    return spark.range(0, rows, 1, PARTITIONS).select(
        (F.col("id") % 50).cast("int").alias("i"),
        F.concat(F.lit("town "), (F.col("id") / 50).cast("int")).alias("town"),
        (F.col("id") % 7).alias("n"),
        (F.col("id") % 7).cast("int").alias("m"),
    )


IDS = ["town", "i"]


def rows(frame: DataFrame) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the counts of a frame by ids."""
    return by_ids(frame.toArrow(), IDS)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the bytes of the keys drawn during the test."""
    return record_keys(monkeypatch, geomdp.tables.spark)


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    def draw(patch: pytest.MonkeyPatch, key: ReleaseKey) -> None:
        patch.setattr(geomdp.tables.spark, "ReleaseKey", copies(key))

    return Engine(
        spark.createDataFrame,
        geomdp.tables.spark.release_columns,
        DataFrame.toArrow,
        DataFrame.cache,
        draw,
        PySparkException,
        geomdp.tables.spark.count,
        geomdp.tables.spark.sum,
        geomdp.tables.spark.choose_limit,
    )


class TestContract(Contract, Tables):
    """On both executors."""


# One draw for each count, whatever happens to the tasks


def test_release_is_the_same_however_evaluated(spark: SparkSession, counts: DataFrame) -> None:
    release = geomdp.tables.spark.release_columns(
        counts, {"n": WIDE, "m": WIDE}, IDS, unique_ids=True
    )
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
    """Return the frame after a step that records its batches and calls `act` once, after two."""
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


@pytest.mark.parametrize("act", [kill_executor, *night(kill_workers, dawdle)])
def test_repeated_tasks_give_equal_noise(
    counts: DataFrame, tmp_path: Path, act: Callable[[], None]
) -> None:
    release = geomdp.tables.spark.release_columns(
        counts, {"n": WIDE, "m": WIDE}, IDS, unique_ids=True
    )
    start = time.monotonic()
    found = rows(disturbed(release.frame, act, tmp_path / "seen"))
    assert time.monotonic() - start < PATIENCE
    table = seen(tmp_path / "seen")
    # Some rows were recorded before the failure and again after it.
    assert table.num_rows >= ROWS + 2 * BATCH
    assert set(tuples(table, [*IDS, "n", "m"])) == {(*ids, *noisy) for ids, noisy in found.items()}
    assert found == rows(release.frame)


@pytest.mark.night
def test_lost_cache_is_recomputed_equal(counts: DataFrame, tmp_path: Path) -> None:
    release = geomdp.tables.spark.release_columns(counts, {"n": WIDE}, IDS)
    cached = release.frame.cache()
    found = rows(cached)
    assert rows(disturbed(cached, kill_executor, tmp_path / "seen")) == found
    assert rows(cached) == found
    cached.unpersist(blocking=True)
    assert rows(cached) == found


@pytest.mark.night
def test_distribution(spark: SparkSession) -> None:
    frame = numbers(spark, 200_000)
    scales, bounds = {"n": 3.0, "m": 8.0}, {"n": None, "m": (0, 20)}
    mechanisms = {name: GeometricMechanism.from_scale(scales[name], bounds[name]) for name in "nm"}
    table = geomdp.tables.spark.release_columns(frame, mechanisms, IDS).frame.toArrow()
    assert table.num_rows == 200_000
    towns = np.array([int(town[5:]) for town in table["town"].to_pylist()])
    truth = (50 * towns + table["i"].to_numpy()) % 7
    for name, scale in scales.items():
        noisy = table[name].to_numpy()
        lower, upper = bounds[name] or (-(2**62), 2**62)
        for count in range(7):
            found = noisy[truth == count]
            assert found.size > 28_000
            assert not wrong(found, count, scale, lower, upper)
            assert wrong(found, count, scale * 1.2, lower, upper)


def wrong(found: Any, count: int, scale: float, lower: int, upper: int) -> bool:
    """Return whether the noisy counts have another distribution."""
    reach = math.ceil(5 * scale)
    first, last = max(lower, count - reach), min(upper, count + reach)
    if found.min() < lower or found.max() > upper:
        return True
    observed = np.bincount(found.clip(first, last) - first, minlength=last - first + 1)
    return rejects(observed, censored_pmf(count, scale, first, last) * found.size)


# Columns


def test_schema_and_other_columns_are_kept(spark: SparkSession) -> None:
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
    release = geomdp.tables.spark.release_columns(
        frame, mechanisms, ["i d"], nulls="keep", unique_ids=True
    )
    given = frame.collect()
    assert release.frame.schema == frame.schema
    assert release.frame.schema["a.count"].metadata == {"unit": "heads"}
    assert release.frame.collect() == given
    other = geomdp.tables.spark.release_columns(frame, mechanisms, ["when", "bytes"], nulls="keep")
    assert other.frame.collect() == given
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    assert release.frame.collect() == given
    spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


@pytest.mark.night
def test_type_limits(spark: SparkSession) -> None:
    limits = {
        kind: [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
        for kind, bits in {"byte": 8, "short": 16, "int": 32, "long": 64}.items()
    }
    frame = spark.range(200).selectExpr(
        "id",
        *(f"cast(if(id % 2 = 0, {a}, {b}) AS {kind}) AS {kind}" for kind, (a, b) in limits.items()),
    )
    for mechanism in (NONE, GeometricMechanism(0.5)):
        noisy = geomdp.tables.spark.release_columns(
            frame, dict.fromkeys(limits, mechanism), ["id"]
        ).frame
        assert noisy.schema == frame.schema
        rows = noisy.orderBy("id").collect()
        for kind, ends in limits.items():
            found = [row[kind] for row in rows]
            assert all(abs(n - ends[k % 2]) < 100 for k, n in enumerate(found))
            assert (found == ends * 100) == (mechanism is NONE)


@pytest.mark.night
def test_docstring_example(spark: SparkSession) -> None:
    failed, attempted = doctest.testmod(geomdp.tables.spark, globs={})
    assert (failed, attempted > 5) == (0, True)


def everything(error: BaseException) -> str:
    """Return the whole text of a Spark error, with the Java stack."""
    texts = [str(error), repr(error), repr(vars(error))]
    texts += [str(getattr(error, name, "")) for name in ("desc", "stackTrace", "java_exception")]
    return "\n".join([*texts, *(everything(e) for e in (error.__cause__,) if e)])


# Errors


def test_repeated_ids_raise_before_the_release(
    counts: DataFrame, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(type(spark.sparkContext), "broadcast", lambda _, value: made.append(value))
    twice = counts.union(counts.filter("town = 'town 3' AND i = 4"))
    for frame, ids in [(counts, ["town"]), (twice, IDS)]:
        with pytest.raises(ValueError, match=r"ids = \[.*\] are not unique") as caught:
            geomdp.tables.spark.release_columns(frame, {"n": WIDE}, ids)
        assert "town " not in str(caught.value)
    # Without the key nothing can have been released.
    assert made == []


def test_invalid_frame_raises() -> None:
    other: Any = object.__new__(type("DataFrame", (DataFrame,), {}))
    with pytest.raises(TypeError, match=r"frame has type .*: give a DataFrame of a classic"):
        geomdp.tables.spark.release_columns(other, {"n": WIDE}, IDS)


def test_streams_raise(spark: SparkSession, tmp_path: Path) -> None:
    """Sources of streams, what is computed from them, and a table that a stream changes."""
    read = spark.readStream
    rate = read.format("rate").load().select(F.col("value").alias("n"), "timestamp")
    for stream in (
        rate,
        read.format("rate-micro-batch").option("rowsPerBatch", 5).load(),
        read.schema("n long").parquet(str(tmp_path)),
        rate.groupBy(F.window("timestamp", "1 second")).count(),
        rate.join(spark.range(3), F.col("n") == F.col("id")),
        spark.range(3).withColumn("timestamp", F.lit(None)).unionByName(rate, True),
    ):
        with pytest.raises(ValueError, match="a streaming frame is not accepted: give a batch"):
            geomdp.tables.spark.release_columns(
                stream, {stream.columns[0]: WIDE}, [stream.columns[-1]]
            )
    query = rate.writeStream.format("memory").queryName("changing").start()
    try:
        with pytest.raises(ValueError, match="a frame with MemoryPlan is not accepted"):
            geomdp.tables.spark.release_columns(spark.table("changing"), {"n": WIDE}, ["timestamp"])
    finally:
        query.stop()


@pytest.mark.night
def test_spark_connect_raises() -> None:
    script = """if True:
        import geomdp.tables.spark
        from geomdp import GeometricMechanism
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.remote("local[1]").getOrCreate()
        frame = spark.range(5).selectExpr("id", "id AS n")
        assert frame.count() == 5
        mechanism = GeometricMechanism(1.0)
        for use in (
            lambda: geomdp.tables.spark.release_columns(frame, {"n": mechanism}, ["id"]),
            lambda: geomdp.tables.spark.bound_contributions(frame, "id", l0=1),
        ):
            try:
                use()
            except TypeError as error:
                print(error)
        spark.stop()
    """
    found = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, text=True
    )
    refused = (
        "frame has type pyspark.sql.connect.dataframe.DataFrame: give a DataFrame of a classic"
    )
    assert [line.startswith(refused) for line in found.stdout.splitlines()] == [True, True]


# Plans


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    table = {"person": [1, 2, 3, 3], "town": ["Ulm", "Aix", "Ulm", "Aix"], "x": [0.5, 1, 2, 3]}
    frame = spark.createDataFrame(pa.table(table)).withColumn("n", F.col("person") * 2)
    frame.createOrReplaceTempView("people")
    return frame


def unstable(frame: DataFrame) -> str | None:
    return spark_plan.unstable(spark_internals.analyzed(frame), spark_internals.collations(frame))


def test_unstable_plans_raise(people: DataFrame, spark: SparkSession) -> None:
    towns, sql = people.groupBy("town"), spark.sql
    order = Window.partitionBy("person").orderBy("town")
    low = "cast(town AS string COLLATE UTF8_LCASE)"
    for found, frame in [
        ("Deduplicate", people.dropDuplicates(["person"]).groupBy("town").count()),
        ("First", towns.agg(F.first("n").alias("n"))),
        ("AnyValue", towns.agg(F.any_value("n").alias("n"))),
        ("MaxBy", towns.agg(F.max_by("n", "x").alias("n"))),
        ("Mode", towns.agg(F.mode("n").alias("n"))),
        ("CollectList", towns.agg(F.collect_list("n")[0].alias("n"))),
        ("Sum of type double", towns.agg(F.sum("x").cast("int").alias("n"))),
        ("Max of type double", towns.agg(F.max("x").cast("int").alias("n"))),
        ("Max of type struct", towns.agg(F.max(F.struct("x", "n"))["n"].alias("n"))),
        ("Average", towns.agg(F.avg("n").cast("int").alias("n"))),
        ("StddevSamp", towns.agg(F.stddev("n").cast("int").alias("n"))),
        ("Window", people.withColumn("n", F.row_number().over(order))),
        ("GlobalLimit", people.limit(3)),
        ("GlobalLimit", people.orderBy("town").limit(3)),
        ("Offset", people.offset(1)),
        ("GlobalLimit", sql("SELECT * FROM people WHERE n IN (SELECT n FROM people LIMIT 1)")),
        ("Sample", people.sample(0.5, seed=1)),
        ("PythonUDF", people.withColumn("n", F.udf(lambda n: n, "int")("n"))),
        ("MapInPandas", people.mapInPandas(lambda each: each, people.schema)),
        ("LogicalRDD", people.rdd.toDF()),
        ("LogicalRDD", people.limit(3).checkpoint(eager=False)),
        ("Rand", people.withColumn("n", (F.rand() * 9).cast("int"))),
        ("Randn", people.withColumn("n", F.randn(seed=1).cast("int")).cache()),
        ("MonotonicallyIncreasingID", people.withColumn("n", F.monotonically_increasing_id())),
        ("CurrentTimestamp", people.filter(F.current_timestamp() > "2020-01-01")),
        ("CurrentTimestamp", people.filter(F.unix_timestamp() > 5)),
        ("Cast of a word", sql("SELECT * FROM people WHERE date' 2020-01-01' < ' Today UTC'")),
        ("Cast of a word", sql("SELECT * FROM people WHERE to_date('to' || 'day') > '2020-01-01'")),
        ("Cast of a word", people.filter(F.to_timestamp(F.lit("now")) > "2020-01-01")),
        ("a collation", sql(f"SELECT {low} AS town, count(*) AS n FROM people GROUP BY town")),
        ("a collation", sql(f"SELECT cast({low} AS string) AS town FROM people GROUP BY {low}")),
        ("Min of type string collate", sql(f"SELECT cast(min({low}) AS string) FROM people")),
    ]:
        assert (unstable(frame) or "").startswith(found), found
        one = frame.withColumn("one", F.lit(1))
        named = one.toDF(*(f"column {place}" for place in range(len(one.columns))))
        with pytest.raises(ValueError, match=rf"a frame with {found}.*checkpoint\(\)") as caught:
            geomdp.tables.spark.release_columns(named, {"column 1": WIDE}, ["column 0"])
        assert "Ulm" not in str(caught.value)


@pytest.mark.night
def test_stable_plans_are_accepted(people: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    towns, sql = people.groupBy("town"), spark.sql
    people.write.parquet(str(tmp_path / "parquet"))
    people.write.csv(str(tmp_path / "csv"), header=True)
    frames = [
        towns.count().orderBy("count").repartition(3, "count").coalesce(1),
        towns.agg(F.sum("n"), F.min("town"), F.max("n"), F.sum(F.col("n").cast("decimal(9,2)"))),
        towns.agg(F.countDistinct("x", "n"), F.approx_count_distinct("x"), F.bool_or(F.lit(True))),
        towns.pivot("person").count().fillna(0),
        people.rollup("town", "person").count(),
        people.dropDuplicates().distinct().union(people).intersect(people).exceptAll(people),
        people.join(people.select("person").distinct(), "person", "left"),
        people.withColumn("n", F.explode(F.array("n", "person"))).unpivot("town", "n", "a", "b"),
        people.select(F.year(F.to_date("town")), F.timestamp_seconds("n"), F.round(F.col("x") / 3)),
        people.select(
            F.date_trunc("month", F.to_timestamp(F.lit("2020-01-01"))), F.translate("town", "U", "")
        ),
        sql(
            "WITH some AS (SELECT * FROM people WHERE n BETWEEN 1 AND 9) SELECT town, "
            "count(*) FILTER (WHERE n > 1) FROM some WHERE n IN (SELECT n FROM people) AND EXISTS "
            "(SELECT max(n) FROM people) GROUP BY town HAVING count(*) > 0 ORDER BY town"
        ),
        people.limit(3).checkpoint(),
        people.limit(3).localCheckpoint(),
        spark.read.parquet(str(tmp_path / "parquet")),
        spark.read.csv(str(tmp_path / "csv"), header=True, inferSchema=True),
        people.cache(),
    ]
    before = spark.conf.get("spark.sql.sources.useV1SourceList")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    frames.append(spark.read.parquet(str(tmp_path / "parquet")))
    spark.conf.set("spark.sql.sources.useV1SourceList", before)
    assert [unstable(frame) for frame in frames] == [None] * len(frames)
    people.unpersist()


def sources(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """Return frames that read files, by the reason for which they are refused, if any."""
    times = spark.range(40).select(
        "id", F.timestamp_seconds(F.col("id") * 7919).alias("t"), F.lit(1).alias("n")
    )
    texts = times.withColumn("t", F.date_format("t", "yyyy-MM-dd HH:mm:ss"))
    for kind in ("csv", "json"):
        texts.write.format(kind).save(str(folder / kind))
    for kind in ("orc", "parquet"):
        times.write.format(kind).save(str(folder / kind))
    times.write.partitionBy("t").parquet(str(folder / "parts"))

    def read(kind: str, schema: str, name: str = "") -> DataFrame:
        return spark.read.schema(schema).format(kind).load(str(folder / (name or kind)))

    columns = "id long, t timestamp, n int"
    return {
        "zoned timestamps of CSV": read("csv", columns),
        "zoned timestamps of Json": read("json", "id long, t array<timestamp>"),
        "zoned timestamps of Orc": read("orc", columns),
        "zoned timestamps of Parquet": read("parquet", columns, "parts"),
        "LogicalRelation of Binary": spark.read.format("binaryFile").load(str(folder / "csv")),
        "": read("parquet", columns).union(read("csv", columns.replace("p,", "p_ntz,"))),
    }


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.night
def test_files_read_in_a_zone_raise(spark: SparkSession, tmp_path: Path, version: int) -> None:
    name = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(name)
    if version == 2:
        spark.conf.set(name, "")
    found = {reason: unstable(frame) for reason, frame in sources(spark, tmp_path).items()}
    spark.conf.set(name, before)
    assert found.pop("") is None
    assert all((given or "").startswith(reason) for reason, given in found.items()), found


def test_splits_and_languages_raise(people: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    people.write.parquet(str(tmp_path / "files"))
    files = spark.read.parquet(str(tmp_path / "files"))
    renamed = files.select(F.col("_metadata").alias("of"), "n")
    for found, frame in [
        ("_metadata.file_block_start", files.groupBy("_metadata.file_block_start").count()),
        ("_metadata.file_block_length", files.filter("_metadata.file_block_length > 7")),
        ("_metadata.file_block_length", renamed.select("of.file_block_length")),
        ("_metadata", files.select("town", "_metadata").distinct()),
        ("InputFileBlockStart", files.select(F.expr("input_file_block_start()"))),
        ("Upper", people.groupBy(F.upper("town").alias("town")).count()),
        ("Lower", people.filter(F.lower("town") == "ulm")),
        ("ILike", people.filter(F.col("town").ilike("U%"))),
        # With spark.sql.icu.caseMappings.enabled = false.
        ("InitCap", people.groupBy(F.initcap("town").alias("town")).count()),
        (None, files.groupBy("_metadata.file_path", "_metadata.row_index").count()),
        (None, people.withColumn("_metadata", F.struct("n")).select("_metadata.n")),
    ]:
        assert unstable(frame) == found


ZONES = ["UTC", "Etc/UTC", "Asia/Kathmandu", "America/St_Johns"]
TIMES = {
    "a timestamp": lambda frame: frame.select("t", "n"),
    "a window": lambda frame: frame.groupBy(F.window("t", "1 day", "8 hours")["start"]).count(),
    "the time of a window": lambda frame: (
        frame.groupBy(F.window("t", "1 day")).count().select(F.window_time("window"), "count")
    ),
    "a session": lambda frame: (
        frame.groupBy(F.session_window("t", "2 hours"), "n")
        .count()
        .select(F.concat_ws(" ", "session_window.start", "n"), "count")
    ),
    "the end of a session": lambda frame: frame.groupBy(
        F.session_window("t", "1 hour")["end"]
    ).count(),
    "the start of a day": lambda frame: frame.groupBy(F.date_trunc("day", "t")).count(),
    "a date": lambda frame: frame.groupBy(F.to_date("t")).count(),
    "an hour": lambda frame: frame.groupBy(F.hour("t")).count(),
    "a text": lambda frame: frame.groupBy(F.date_format("t", "yyyy-MM-dd HH")).count(),
    "a timestamp without a zone": lambda frame: frame.select(F.col("t").cast("timestamp_ntz"), "n"),
    "a parsed text": lambda frame: frame.select(F.to_timestamp(F.col("t").cast("string")), "n"),
    "a duration": lambda frame: frame.select(F.col("t") - F.lit("2020-01-01").cast("date"), "n"),
}


@pytest.mark.parametrize("kind", ["a timestamp", *night(*[*TIMES][1:])])
def test_noise_is_independent_of_the_zone(spark: SparkSession, kind: str) -> None:
    seconds = F.col("id") * 7919 + 1_700_000_000
    times = spark.range(300).select(F.timestamp_seconds(seconds).alias("t"), F.lit(1).alias("n"))
    frame = TIMES[kind](times).toDF("id", "n")
    found = []
    with geomdp.tables.spark.release_columns(frame, {"n": WIDE}, ["id"], unique_ids=True) as noisy:
        for zone in ZONES:
            spark.conf.set("spark.sql.session.timeZone", zone)
            # Another plan, as Spark keeps that of a frame.
            table = noisy.select("id", "n").toArrow()
            if pa.types.is_timestamp(table["id"].type) and table["id"].type.tz:
                table = table.set_column(0, "id", table["id"].cast(pa.timestamp("us", "UTC")))
            found.append(set(tuples(table, ["id", "n"])))
    spark.conf.unset("spark.sql.session.timeZone")
    assert len(found[0]) > 20
    assert found == found[:1] * len(ZONES)


@pytest.mark.night
def test_changed_settings_raise(spark: SparkSession, tmp_path: Path) -> None:
    """With the first of them, the same plan finds no column of this name in the file."""
    spark.range(0, 5, 1, 1).selectExpr("id", "1 AS n").write.parquet(str(tmp_path / "files"))
    frame = spark.read.schema("id long, N int").parquet(str(tmp_path / "files"))
    with geomdp.tables.spark.release_columns(frame, {"N": WIDE}, ["id"], nulls="keep") as noisy:
        found = noisy.toArrow()
        for name, value in [
            ("caseSensitive", "true"),
            ("ansi.enabled", "false"),
            ("legacy.timeParserPolicy", "LEGACY"),
            ("parquet.int96TimestampConversion", "true"),
            ("unknown", "1"),
        ]:
            before = spark.conf.get(f"spark.sql.{name}", None)
            spark.conf.set(f"spark.sql.{name}", value)
            again = [noisy, spark.range(1).join(noisy)] if name == "caseSensitive" else [noisy]
            for evaluated in again:
                with pytest.raises(
                    PySparkException, match=rf"have changed since the release: .*'spark.sql.{name}'"
                ):
                    evaluated.toArrow()
            spark.conf.unset(f"spark.sql.{name}")
            if before is not None:
                spark.conf.set(f"spark.sql.{name}", before)
        for name, value in [("shuffle.partitions", "3"), ("files.maxPartitionBytes", "256")]:
            before = spark.conf.get(f"spark.sql.{name}")
            spark.conf.set(f"spark.sql.{name}", value)
            assert sorted(noisy.select("*").collect()) == sorted(noisy.collect())
            spark.conf.set(f"spark.sql.{name}", before)
        assert sorted(noisy.collect()) == sorted(noisy.checkpoint().rdd.collect())
        with pytest.raises(PySparkException, match="the rdd of a release is not accepted"):
            noisy.rdd.count()
        assert noisy.toArrow() == found


def test_names_in_plans_exist_in_spark(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    inside = "org.apache.spark.sql.catalyst."
    expressions = ["expressions.", "expressions.aggregate."]
    for names, packages in [
        (spark_plan.NODES, ["plans.logical."]),
        (spark_plan.PASSING, ["plans.logical."]),
        (spark_plan.AGGREGATES, expressions[1:]),
        (spark_plan.EXPRESSIONS, expressions),
    ]:
        missing = set(names)
        for package, name in itertools.product(packages, names):
            if jvm.org.apache.spark.util.Utils.classIsLoadable(f"{inside}{package}{name}"):
                missing.discard(name)
        assert missing == set()


@pytest.mark.night
def test_checkpoint_of_random_rows_is_released_once(counts: DataFrame, tmp_path: Path) -> None:
    draw = F.udf(lambda _: int.from_bytes(os.urandom(5), "big"), "long")
    random = counts.withColumn("n", draw("n"))
    assert rows(random) != rows(random)
    release = geomdp.tables.spark.release_columns(random.checkpoint(), {"n": WIDE}, IDS)
    found = rows(release.frame)
    assert rows(disturbed(release.frame, kill_executor, tmp_path / "seen")) == found
    assert set(tuples(seen(tmp_path / "seen"), [*IDS, "n", "m"])) == {
        (*ids, *noisy) for ids, noisy in found.items()
    }


def jobs(spark: SparkSession, act: Callable[[], object]) -> int:
    """Return how many jobs Spark runs for a call."""
    group = str(time.monotonic_ns())
    spark.sparkContext.setJobGroup(group, "")
    act()
    found = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return found


@pytest.mark.night
def test_ids_unique_by_plan_are_not_compared(counts: DataFrame, spark: SparkSession) -> None:
    grouped = counts.groupBy("town", "i").agg(F.sum("n").alias("n"))
    passed = (
        grouped.filter("n > 0")
        .orderBy("n")
        .repartition(2)
        .select("n", F.col("i").alias("j"), "town")
    )
    by_hash = counts.groupBy(F.hash("town").alias("h"), "i").agg(F.sum("n").alias("n"))
    total = counts.agg(F.sum("n").alias("n")).withColumn("all", F.lit(1))
    for compared, frame, ids in [
        (False, grouped, IDS),
        (False, passed, ["town", "j"]),
        (False, by_hash, ["i", "h"]),
        (False, total, ["all"]),
        (False, grouped.withColumn("k", F.col("i") + 1), ["k", *IDS]),
        # Their plans do not show that these are unique.
        (True, counts, IDS),
        (True, grouped.filter("i = 3"), ["town"]),
        (True, grouped.withColumn("i", F.col("i") + 1), IDS),
        (True, grouped.join(counts.select("i").distinct(), "i"), IDS),
        (True, grouped.select("i", "town", "n", F.explode(F.array(F.lit(1)))), IDS),
        (True, grouped.filter("n > 0").union(grouped.filter("n <= 0")), IDS),
    ]:

        def release(unique: bool, frame: DataFrame = frame, ids: list[str] = ids) -> None:
            geomdp.tables.spark.release_columns(frame, {"n": WIDE}, ids, unique_ids=unique)

        least = jobs(spark, lambda: release(True))
        assert (jobs(spark, lambda: release(False)) > least) == compared
    with pytest.raises(ValueError, match="not unique"):
        geomdp.tables.spark.release_columns(grouped, {"n": WIDE}, ["town"])


def test_decimals_raise(counts: DataFrame) -> None:
    frame = counts.withColumn("d", F.lit(1).cast("decimal"))
    with pytest.raises(TypeError, match="'d' of type decimal"):
        geomdp.tables.spark.release_columns(frame, {"d": WIDE}, IDS)


# Bounds on contributions


@pytest.mark.night
def test_contributions_are_bounded_and_drawn_anew(
    counts: DataFrame, spark: SparkSession, tmp_path: Path
) -> None:
    # 80 individuals with 7 records or more in each of 7 cells.
    visits = counts.select(F.col("town").alias("who.x"), F.col("n").alias("cell"), "i")
    kept = geomdp.tables.spark.bound_contributions(visits, "who.x", l0=3, linf=2, cells=["cell"])
    assert kept.schema == visits.schema
    # Spark's own functions for batches take no names with dots.
    plain = kept.toDF("who", "cell", "i")
    draws = [kept, kept, disturbed(plain, kill_executor, tmp_path / "seen")]
    found = [sorted(map(tuple, frame.collect())) for frame in draws]
    given = set(map(tuple, visits.collect()))
    for rows in found:
        assert len(set(rows)) == len(rows)
        assert given.issuperset(rows)
        cells = Counter(row[:2] for row in rows)
        assert set(cells.values()) == {2}
        assert set(Counter(who for who, _ in cells).values()) == {3}
    # An action may find the shuffled files of another.
    assert len(set(map(tuple, found))) > 1
    # A release needs the same records each time it reads them.
    with pytest.raises(ValueError, match="a frame with Window is not accepted"):
        geomdp.tables.spark.release_columns(kept.groupBy("cell").count(), {"count": WIDE}, ["cell"])
    kept.write.parquet(str(tmp_path / "kept"))
    again = spark.read.parquet(str(tmp_path / "kept")).groupBy("cell").count()
    with geomdp.tables.spark.release_columns(again, {"count": NONE}, ["cell"]) as released:
        assert sum(row["count"] for row in released.collect()) == 80 * 6


def test_kept_records_are_uniform(spark: SparkSession) -> None:
    visits = spark.range(16_000).select((F.col("id") % 4000).alias("who"), "id")
    kept = geomdp.tables.spark.bound_contributions(visits, "who", l0=2)
    pairs = kept.groupBy("who").agg(F.sum(F.expr("shiftleft(1, int(id div 4000))"))).collect()
    observed = Counter(pair for _, pair in pairs)
    assert set(observed) == {0b11, 0b101, 0b110, 0b1001, 0b1010, 0b1100}
    assert not rejects(observed.values(), [4000 / 6] * 6)


@pytest.mark.parametrize("act", [None, *night(kill_executor, dawdle)])
def test_a_table_has_one_draw_of_each_individual(
    counts: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Any
) -> None:
    """The 80 individuals have 7 records or more in each of 7 cells, and 6 of them count."""
    real, harm = geomdp.tables.spark.tally, tmp_path / "harm"

    def tallied(design: Any, data: Any, weights: Any) -> Any:
        found = real(design, data, weights)
        if act is not None and TaskContext.get() and not harm.exists():
            harm.mkdir()
            act()
        return found

    monkeypatch.setattr(geomdp.tables.spark, "tally", tallied)
    design = Design({"a.n": list(range(7))}, individual="who", l0=3, linf=2)
    visits = counts.select(F.col("n").alias("a.n"), F.col("town").alias("who"))
    start = time.monotonic()
    table = geomdp.tables.spark.count(design, visits)
    assert time.monotonic() - start < PATIENCE
    assert harm.exists() == (act is not None)
    found = table.frame["count"].to_pylist()
    assert sum(found) == 80 * 6
    assert all(n % 2 == 0 for n in found)
    assert table.release(epsilon=1).privacy_loss() == 1


def test_nothing_but_the_noise_tells_neighbours_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GeometricMechanism, "release", known)
    monkeypatch.setattr(identity, "fresh", lambda: "0" * 32)
    design, found = Design({"town": ["town 1", "town 0"]}, margins="*"), []
    for rows in (60, 59):
        table = geomdp.tables.spark.count(design, numbers(spark, rows))
        found.append(observed(table.release(epsilon=1), tmp_path))
    assert found[0] == found[1]


def test_uncountable_frames_raise(counts: DataFrame) -> None:
    design, bounded = Design({"n": [1]}), Design({"n": [1]}, individual="i", l0=1)
    count: Any = geomdp.tables.spark.count
    for error, call, text in [
        (ValueError, lambda: count(design, counts.sample(0.5)), "a frame with Sample is not acc"),
        (KeyError, lambda: count(bounded, counts.drop("i")), "no column 'i'"),
        (ValueError, lambda: count(Design({"n": ["1"]}), counts), "levels of 'n' are not accepted"),
        (TypeError, lambda: count(design, counts, counts="town"), "counts 'town' of type string"),
    ]:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.night
def test_invalid_contributions_raise(counts: DataFrame) -> None:
    bound: Any = geomdp.tables.spark.bound_contributions
    stream = counts.sparkSession.readStream.format("rate").load()
    for error, arguments, text in [
        (KeyError, (counts, "who"), "no column 'who'"),
        (KeyError, (counts, "town", ["city"]), "no column 'city'"),
        (TypeError, (pd.DataFrame({"town": ["x"]}), "town"), "frame has type pandas"),
        (ValueError, (stream, "value"), "a streaming frame is not accepted"),
        (TypeError, (counts.select(F.col("i").cast("float")), "i"), "individuals of type float"),
        (TypeError, (counts.select(F.col("i").cast("double")), "i"), "individuals of type double"),
    ]:
        frame, individual, *cells = arguments
        with pytest.raises(error, match=text):
            bound(frame, individual, l0=1, cells=cells[0] if cells else None)
    some = counts.withColumn("town", F.when(F.col("n") > 0, F.col("town")))
    with pytest.raises(PySparkException, match="column 'town' contains nulls"):
        bound(some, "town", l0=1).collect()


# Reruns


DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(?!>>> )(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.M)


@pytest.fixture
def recipes() -> dict[str, Any]:
    """Return the functions that docs/reruns.md defines, and the `publish` they call."""
    found: dict[str, Any] = {"Path": Path}
    [publish] = (block for block in blocks("guides/nightly_spark.md") if "def publish" in block)
    for block in (publish, *blocks("reruns.md")):
        exec(compile(block, "reruns.md", "exec"), found)
    return found


def published(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.glob("[!.]*/**/*") if path.is_file()}


@pytest.mark.night
def test_nightly_guide_releases_once(
    spark: SparkSession,
    keys: list[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run docs/guides/nightly_spark.md, whose job runs twice."""
    monkeypatch.chdir(tmp_path)
    guide: dict[str, Any] = {}
    for block in blocks("guides/nightly_spark.md"):
        exec(compile(block, "nightly_spark.md", "exec"), guide)
    assert keys == []
    [day] = (tmp_path / "published").iterdir()
    assert day.name == guide["noisy"].label == "2026-11-22"
    assert sorted(path.name for path in day.iterdir()) == ["visits.csv", "visits.csv.json"]
    assert (tmp_path / "private").stat().st_mode & 0o077 == 0
    counts = guide["noisy"].to_dict()
    assert list(counts) == ["Bern", "Oslo", "Rome"]
    assert abs(counts["Rome"]) < 200
    assert min(counts["Bern"], counts["Oslo"]) > 1000
    first = published(tmp_path / "published")
    guide["nightly"](spark, "2026-11-22")
    assert published(tmp_path / "published") == first


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.night
def test_failed_stream_batch_is_released_once(
    counts: DataFrame, keys: list[bytes], recipes: dict[str, Any], tmp_path: Path, moment: str
) -> None:
    spark = counts.sparkSession
    counts.write.parquet(str(tmp_path / "in"))
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    release = recipes["release_batch"]("towns", noisy)
    numbers: list[int] = []

    def fail_once(batch: DataFrame, number: int) -> None:
        numbers.append(number)
        if moment == "after" or len(numbers) > 1:
            release(batch, number)
        if len(numbers) == 1:
            raise RuntimeError("the sink has failed")

    def run() -> None:
        stream = spark.readStream.schema(counts.schema).parquet(str(tmp_path / "in"))
        writer = stream.writeStream.foreachBatch(fail_once).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()

    with pytest.raises(PySparkException, match="the sink has failed"):
        run()
    first = published(noisy)
    assert (first != {}) == (moment == "after")
    run()
    # Spark has asked for the same batch twice.
    assert numbers == [0, 0]
    assert first.items() <= published(noisy).items()
    assert [path.name for path in noisy.iterdir()] == ["towns-0"]
    assert len(keys) == 1
    assert spark.read.parquet(str(noisy / "towns-0/noisy")).count() == ROWS // 50


# The key


def files_with(folder: Path, key: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and shows(key, path.read_bytes())]


def test_key_is_not_shown(
    counts: DataFrame, keys: list[bytes], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "log/planted").write_bytes(b"... " + base64.b64encode(bytes(range(32))))
    assert len(files_with(folder / "log", bytes(range(32)))) == 1
    broken = counts.withColumn("n", F.when(F.col("i") > 0, F.col("n")))
    texts = []
    for frame in (counts, broken):
        release = geomdp.tables.spark.release_columns(frame, {"n": WIDE}, IDS, unique_ids=True)
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
        with pytest.raises(PySparkException, match=WIPED) as late:
            release.frame.collect()
        texts.append(everything(late.value))
    out, err = capfd.readouterr()
    assert out.count("MapInArrow noise") > 10
    text = "".join([*texts, out, err]).encode()
    assert len(keys) == 2
    for key in keys:
        assert not shows(key, text)
        assert files_with(folder / "log", key) == []
    assert any(b"MapInArrow noise" in path.read_bytes() for path in (folder / "log").rglob("*/*"))


@pytest.mark.night
def test_wiped_release_raises(counts: DataFrame, keys: list[bytes], folder: Path) -> None:
    release = geomdp.tables.spark.release_columns(counts, {"n": WIDE}, IDS)
    assert len(rows(release.frame)) == ROWS
    later = release.frame.orderBy("n")
    assert files_with(folder / "local", keys[0]) != []
    release.wipe()
    for again in (release.frame, later, release.frame.filter("n > 0")):
        with pytest.raises(PySparkException, match=WIPED):
            again.collect()
    release.wipe()
    assert len(keys) == 1
    # Only in files: Spark does not overwrite memory.
    assert files_with(folder / "local", keys[0]) == []


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.night
def test_key_file_stays_when_the_jvm_is_killed(tmp_path: Path, encrypted: bool) -> None:
    """Hence the documentation asks for encryption, which makes the file useless."""
    script = """if True:
        import os, signal, sys, geomdp.tables.spark
        from geomdp import GeometricMechanism
        from geomdp.keyed import ReleaseKey
        from pyspark.sql import SparkSession

        def draw():
            key = ReleaseKey()
            print(key.__reduce__()[1][-1].hex(), flush=True)
            return key

        geomdp.tables.spark.ReleaseKey = draw
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.io.encryption.enabled", sys.argv[1]).getOrCreate()
        frame = spark.range(100).selectExpr("id", "id % 7 AS n")
        release = geomdp.tables.spark.release_columns(frame, {"n": GeometricMechanism(1.0)}, ["id"])
        release.frame.toArrow()
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os._exit(0)
    """
    places = {"SPARK_LOCAL_DIRS": str(tmp_path), "TMPDIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", script, str(encrypted).lower()],
        env={**os.environ, **places, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        check=True,
    )
    files = files_with(tmp_path, bytes.fromhex(found.stdout.split()[0].decode()))
    assert (files != []) == (not encrypted)


@pytest.mark.night
def test_program_publishes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publishes("spark_job", tmp_path, capsys)
