"""Print the cost of a distributed release: `python benches/clusters.py ENGINE`.

First without an engine: a release of a numpy array in one process, and the work of the adapters in
each task, on Arrow batches. Then on the engine, on this machine: the job that adds noise, and the
same job with a function that returns its batches unchanged, which measures the engine's own part.
Figures are medians of interleaved repetitions. Hours are core hours for 10^12 counts.
"""

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from compare import heading, medians
from scaling import hours

from geomdp import GeometricMechanism, tables
from geomdp.keyed import ReleaseKey

SCALE = 10.0
MECHANISM = GeometricMechanism.from_scale(SCALE)
#: Rows in a batch: Spark's default, ten times that, and a size typical for partitioned tables.
BATCHES = (10_000, 100_000, 10**6)


def table(rows: int) -> pa.Table:
    """Return counts with an integer id, a second integer id, and the first as a string."""
    ids = np.arange(rows, dtype=np.int64)
    texts = pa.array(ids).cast(pa.string())
    return pa.table({"id": ids, "part": ids % 97, "text": texts, "n": ids % 1000})


def adapter(rows: int, repetitions: int) -> None:
    """Print the table without an engine."""
    whole, key = table(rows), ReleaseKey()
    counts = whole["n"].to_numpy()
    cases: list[tuple[str, Sequence[str], int]] = [
        (name, ids, size)
        for size in BATCHES
        for name, ids in [
            ("none, but from Arrow and back", []),
            ("one integer", ["id"]),
            ("a string", ["text"]),
            ("two integers", ["id", "part"]),
        ]
    ]

    def noise(batches: Sequence[pa.RecordBatch], ids: Sequence[str]) -> None:
        mechanisms = {"n": MECHANISM}
        if ids:
            for _ in key.release_batches(batches, mechanisms, ids, threads=1, part=True):
                pass
        else:
            for batch in batches:
                tables.release_columns(batch, mechanisms, threads=1)

    calls: list[Callable[[], object]] = [partial(MECHANISM.release, counts, threads=1)]
    for _, ids, size in cases:
        batches = whole.select([*ids, "n"]).to_batches(max_chunksize=size)
        calls.append(partial(noise, batches, ids))
    single, *times = (seconds / rows * 1e9 for seconds in medians(calls, repetitions))
    print(f"{rows} int64 counts at scale {SCALE:g}, one thread (median of {repetitions})\n")
    print("| ids | rows in a batch | ns per count | speed, of a plain release's | hours |")
    print("|---|---|---|---|---|")
    print(f"| none: a plain release | {rows} | {single:.1f} | 100% | {hours(single)} |")
    for (name, _, size), each in zip(cases, times, strict=True):
        print(f"| {name} | {size} | {each:.1f} | **{single / each:.0%}** | {hours(each)} |")
    print()


def engine(
    name: str, jobs: Mapping[str, Callable[[], object]], rows: int, cores: int, repetitions: int
) -> None:
    """Print the table of an engine. The first job adds no noise; the second does."""
    found = [seconds * cores / rows * 1e9 for seconds in medians([*jobs.values()], repetitions)]
    print(f"{rows} rows on {name}, {cores} cores (median of {repetitions})\n")
    print("| job | rows/s per core | ns per row and core | hours |")
    print("|---|---|---|---|")
    beyond = found[1] - found[0]
    for job, each in [*zip(jobs, found, strict=True), ("noise beyond the first", beyond)]:
        print(f"| {job} | {1e9 / each:.3g} | {each:.1f} | {hours(each)} |")
    print()


def spark(rows: int, cores: int, repetitions: int) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    import geomdp.tables.spark  # noqa: PLC0415
    from geomdp.tables._engines import spark_internals, spark_plan  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # In local mode, too, Python workers are separate processes.
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    folder = tempfile.mkdtemp()
    session.sparkContext.setCheckpointDir(folder)
    size = session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    columns = {"one integer": ["id"], "a string": ["text"]}

    def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def check(frame: Any, ids: list[str]) -> None:
        geomdp.tables.spark.release_columns(frame, {"n": MECHANISM}, ids).wipe()

    for name, ids in columns.items():
        id_ = "id" if ids == ["id"] else "cast(id AS string) AS text"
        frame = session.range(0, rows, 1, cores).selectExpr(id_, "id % 1000 AS n")
        release = geomdp.tables.spark.release_columns(frame, {"n": MECHANISM}, ids)
        plain = frame.mapInArrow(identity, frame.schema)
        jobs: dict[str, Callable[[], object]] = {
            "hands back its batches": plain.write.format("noop").mode("overwrite").save,
            "makes the noise": release.frame.write.format("noop").mode("overwrite").save,
            "is sure that ids are unique": partial(check, frame, ids),
            "is sure that rows stay the same": partial(
                spark_plan.unstable,
                frame._jdf.queryExecution().analyzed(),
                spark_internals.collations(frame),
            ),
            "makes a checkpoint instead": frame.checkpoint,
        }
        title = f"Spark {session.version}, batches of {size} rows, {name} as id"
        engine(title, jobs, rows, cores, repetitions)
        release.wipe()
    session.stop()
    shutil.rmtree(folder)


def dask(rows: int, cores: int, repetitions: int) -> None:
    import dask.dataframe as dd  # noqa: PLC0415
    import distributed  # noqa: PLC0415

    import geomdp.tables.dask  # noqa: PLC0415

    # The partitions are in the workers' memory before the clock starts.
    with (
        distributed.LocalCluster(
            n_workers=cores, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        for name, id_ in {"one integer": "id", "a string": "text"}.items():
            whole = table(rows).select([id_, "n"]).to_pandas()
            frame = dd.from_pandas(whole, npartitions=cores).persist()
            release = geomdp.tables.dask.release_columns(frame, {"n": MECHANISM}, [id_])
            jobs = {
                "hands back": frame.map_partitions(_identity, meta=frame._meta),
                "makes the noise": release.frame,
            }
            # Counting rows evaluates them without moving them off the worker.
            calls = {job: each.map_partitions(len).compute for job, each in jobs.items()}
            title = f"Dask {distributed.__version__}, ids of {name}, {cores} partitions"
            engine(title, calls, rows, cores, repetitions)
            release.wipe()


def ray(rows: int, cores: int, repetitions: int) -> None:
    import ray  # noqa: PLC0415
    import ray.data  # noqa: PLC0415

    import geomdp.tables.ray  # noqa: PLC0415

    ray.init(num_cpus=cores, include_dashboard=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.default_hash_shuffle_parallelism = cores
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    for name, id_ in {"one integer": "id", "a string": "text"}.items():
        whole = table(rows).select([id_, "n"])
        size = -(-rows // cores)
        dataset = ray.data.from_arrow([whole[k : k + size] for k in range(0, rows, size)])
        release = geomdp.tables.ray.release_columns(dataset, {"n": MECHANISM}, [id_])
        plain = dataset.map_batches(_identity, batch_size=None, batch_format="pyarrow")
        jobs = {
            "hands back its blocks": partial(_evaluate, plain),
            "makes the noise": partial(_evaluate, release.frame),
        }
        title = f"Ray {ray.__version__}, {cores} blocks, {name} as id"
        engine(title, jobs, rows, cores, repetitions)
        release.wipe()
    ray.shutdown()


def _evaluate(dataset: Any) -> None:
    for _ in dataset.iter_internal_ref_bundles():
        pass


def _identity(part: object) -> object:
    return part


ENGINES: dict[str, Callable[[int, int, int], None]] = {"spark": spark, "dask": dask, "ray": ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--counts", type=int, default=10**6, help="without an engine")
    parser.add_argument("--rows", type=int, default=4 * 10**6, help="on an engine")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    if not set(arguments.engines) <= set(ENGINES):
        parser.error(f"engines are {', '.join(ENGINES)}")
    heading()
    adapter(arguments.counts, arguments.repetitions)
    for name in arguments.engines:
        ENGINES[name](arguments.rows, arguments.cores, arguments.repetitions)


if __name__ == "__main__":
    main()
