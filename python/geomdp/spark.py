"""Noise in Spark: a DataFrame whose counts are noisy, whichever executor makes it, and how often.

>>> from pyspark.sql import SparkSession
>>> import geomdp.spark
>>> from geomdp import GeometricMechanism
>>> spark = SparkSession.builder.master("local[1]").getOrCreate()
>>> counts = spark.createDataFrame([("x", 12), ("y", 7)], "town string, n int")
>>> release = geomdp.spark.release_columns(counts, {"n": GeometricMechanism(1.0)}, ["town"])
>>> with release as noisy:
...     table = noisy.toArrow()  # or noisy.write.parquet(...)
>>> table.column_names
['town', 'n']

It needs the extra ``spark``, a classic session of Spark 4, and geomdp on every executor. The noisy
DataFrame is lazy as any other: Spark makes it when an action asks for it, and makes parts of it
again when a task is retried or speculated on, or a cached part is lost. That gives the same noisy
counts each time, as their noise is chosen by their ids and by a key, drawn once for the release.
Whoever reads the memory or the traffic of the cluster finds that key, beside the counts:
``docs/distributed.md`` says where it is, and what ``wipe`` takes away.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from geomdp import GeometricMechanism, frames
from geomdp._extras import installed_by
from geomdp.distributed import Release, ReleaseKey, check_arguments
from geomdp.frames import Nulls

with installed_by("geomdp[spark]"):
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

__all__ = ["release_columns"]


def release_columns(
    frame: DataFrame,
    mechanisms: Mapping[str, GeometricMechanism],
    ids: Sequence[str],
    *,
    nulls: Nulls = "refuse",
) -> Release[DataFrame]:
    """Return the release of a DataFrame with noise in some of its columns.

    One job runs at once, which groups the rows by their ids; none of the noise is made by it.

    Parameters
    ----------
    frame : DataFrame
        Of a classic session, not of Spark Connect, and not streaming. Each time that Spark works it
        out it must have the same rows, in any order and in any partitions. Expressions that Spark
        knows to be random, like ``rand()`` and ``monotonically_increasing_id()``, are refused; it
        does not know all: samples, ``now()``, rows numbered among equals, a limit without an order,
        functions in Python, files that change. Then release ``frame.checkpoint()``, since rows that
        come out different are a second release, and whoever sees both learns which have changed.
    mechanisms : mapping of column names to mechanisms
        For columns of type byte, short, integer or long; nothing is kept of their exact counts.
    ids : list of column names
        Columns that tell each row from all others, and are released as they are.
    nulls : {"refuse", "keep"}
        As in :func:`geomdp.frames.release`. Nulls that are to be refused fail the job that meets
        them.

    Returns
    -------
    Release
        Its ``frame`` has the schema of the frame that is given. Its ``wipe`` destroys the broadcast
        that carries the key: what was written, collected or checkpointed stays, and all else that
        comes from the frame fails from then on, even if it is cached.

    Raises
    ------
    TypeError
        If an argument, or a column, is of another type, or the frame is of Spark Connect.
    KeyError
        If there is not exactly one column of a name.
    ValueError
        If the ids are not unique, the frame is streaming or random, or `nulls` is something else.
    OverflowError
        If the type of a column does not hold the bounds of its mechanism.

    """
    frames.check_nulls(nulls)
    if not isinstance(frame, ClassicDataFrame):
        kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
        raise TypeError(f"frame is a {kind}: give a DataFrame of a classic session of Spark")
    names = frame.columns
    check_arguments(mechanisms, ids, names)
    mechanisms, ids = dict(mechanisms), list(ids)
    if frame.isStreaming:
        raise ValueError("a streaming frame is not accepted: give a batch, whose ids are all there")
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise ValueError("a random frame is not accepted: release its checkpoint()")
    # Known by their places: Spark takes a dot in a name for more than that.
    places = [str(place) for place in range(len(names))]
    placed = frame.toDF(*places)
    key = ReleaseKey()
    empty = placed.limit(0).toArrow().rename_columns(names)
    key.release_columns(empty, mechanisms, ids, part=True)
    for name, mechanism in mechanisms.items():
        mechanism.release(np.zeros(0, empty.field(name).type.to_pandas_dtype()))
    groups = placed.groupBy(*(places[names.index(name)] for name in ids)).count()
    if not groups.filter("count > 1").isEmpty():
        raise ValueError(f"ids = {ids} are not unique: give columns that tell rows apart")
    broadcast = frame.sparkSession.sparkContext.broadcast(key)
    key.wipe()

    def noise(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        key = broadcast.value
        yield from key.release_batches(
            batches, mechanisms, ids, part=True, names=names, nulls=nulls, threads=1
        )

    # To be called any number of times, and to destroy once.
    end = ExitStack()
    end.callback(broadcast.destroy, blocking=True)
    return Release(placed.mapInArrow(noise, frame.schema), end.close)
