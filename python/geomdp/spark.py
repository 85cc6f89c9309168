"""Noise in Spark: a DataFrame whose counts are noisy, whichever executor makes it, and how often.

>>> from pyspark.sql import SparkSession
>>> import geomdp.spark
>>> from geomdp import GeometricMechanism
>>> spark = SparkSession.builder.master("local[1]").getOrCreate()
>>> counts = spark.sql("SELECT * FROM VALUES ('x', 12), ('y', 7) AS counts(town, n)")
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
from typing import Any

import numpy as np

from geomdp._engines import spark_plan
from geomdp._release import columns, parameters
from geomdp._release.columns import Nulls
from geomdp._release.extras import installed_by
from geomdp._release.mechanism import GeometricMechanism
from geomdp.distributed import Release, ReleaseKey, check_arguments

with installed_by("geomdp[spark]"):
    from pyarrow import RecordBatch
    from pyspark.core.broadcast import Broadcast, _from_id
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import DataFrame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

__all__ = ["release_columns"]


def release_columns(
    frame: DataFrame,
    mechanisms: Mapping[str, GeometricMechanism],
    ids: Sequence[str],
    *,
    nulls: Nulls = "refuse",
    unique_ids: bool = False,
) -> Release[DataFrame]:
    """Return the release of a DataFrame with noise in some of its columns.

    One job runs at once, which groups the rows by their ids; it adds no noise. Spark runs none if
    the plan ends in a ``groupBy`` whose columns are all ids; filters, sorts, repartitions and new
    names may follow.

    Parameters
    ----------
    frame : DataFrame
        Of a classic session, not of Spark Connect, and not streaming. Spark computes it again for
        each action and for each task that fails, and must find the same rows each time, in any
        order: rows that change are released twice. So its plan may only have nodes and functions
        that are known to give the same rows. Samples, limits, windows, ``dropDuplicates`` by some
        columns, ``first``, sums of floats, clocks, Python functions, RDDs (and lists given to
        ``createDataFrame``, which are RDDs) and collated strings are refused. Release
        ``frame.checkpoint()`` instead. Files must not change until the release is wiped.
    mechanisms : mapping of column names to mechanisms
        For columns of type byte, short, integer or long; nothing is kept of their exact counts.
    ids : list of column names
        Columns that tell each row from all others, and are released as they are.
    nulls : {"refuse", "keep"}
        As in :func:`geomdp.frames.release`. Nulls that are to be refused fail the job that meets
        them.
    unique_ids : bool
        Whether you know that no two rows have the same ids. Then they are not compared; if two
        rows have the same ids after all, they share their noise.

    Returns
    -------
    Release
        Its ``frame`` has the schema of the frame that is given. Its ``wipe`` destroys the broadcast
        that carries the key. What was written, collected, checkpointed or cached stays; whatever
        needs more noise fails from then on.

    Raises
    ------
    TypeError
        If an argument, or a column, is of another type, or the frame is of Spark Connect.
    KeyError
        If there is not exactly one column of a name.
    ValueError
        If the ids are not unique, the frame is streaming, its rows may differ between two readings,
        or `nulls` is something else.
    OverflowError
        If the type of a column does not hold the bounds of its mechanism.

    """
    columns.check_nulls(nulls)
    parameters.flag("unique_ids", unique_ids)
    if not isinstance(frame, ClassicDataFrame):
        kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
        raise TypeError(f"frame is a {kind}: give a DataFrame of a classic session of Spark")
    names = frame.columns
    check_arguments(mechanisms, ids, names)
    mechanisms, ids = dict(mechanisms), list(ids)
    if frame.isStreaming:
        raise ValueError("a streaming frame is not accepted: give a batch, whose ids are all there")
    plan = frame._jdf.queryExecution().analyzed()
    if (found := spark_plan.unstable(frame.sparkSession._jvm, plan)) is not None:
        raise ValueError(
            f"a frame with {found} is not accepted, as its rows may differ from one reading to the "
            "next: call sparkContext.setCheckpointDir and give frame.checkpoint(), or write the "
            "frame and give what you read back"
        )
    # Known by their places: Spark takes a dot in a name for more than that.
    places = [str(place) for place in range(len(names))]
    placed = frame.toDF(*places)
    key = ReleaseKey()
    empty = placed.limit(0).toArrow().rename_columns(names)
    key.release_columns(empty, mechanisms, ids, part=True)
    for name, mechanism in mechanisms.items():
        mechanism.release(np.zeros(0, empty.field(name).type.to_pandas_dtype()))
    among = [names.index(name) for name in ids]
    if not (unique_ids or spark_plan.groups_by(plan, among)):
        groups = placed.groupBy(*(places[place] for place in among)).count()
        if not groups.filter("count > 1").isEmpty():
            raise ValueError(f"ids = {ids} are not unique: give columns that tell rows apart")
    broadcast = frame.sparkSession.sparkContext.broadcast(key)
    key.wipe()
    held: Any = _Held(broadcast)

    def noise(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        key = held.value
        yield from key.release_batches(
            batches, mechanisms, ids, part=True, names=names, nulls=nulls, threads=1
        )

    noisy = placed.mapInArrow(noise, frame.schema)
    # To be called any number of times, and to destroy once.
    end = ExitStack()
    end.callback(broadcast.destroy, blocking=True)
    # Tasks without the broadcast name the key; for a destroyed one Spark cannot make tasks.
    end.callback(
        noisy._jdf.queryExecution().analyzed().expressions().head().func().broadcastVars().pop
    )
    return Release(noisy, end.close)


class _Held:
    """A broadcast of a key, which is the broadcast itself again in tasks."""

    def __init__(self, broadcast: Broadcast[ReleaseKey]) -> None:
        self._broadcast = broadcast

    def __reduce__(self) -> tuple[Any, ...]:
        # Notes that tasks with this function need the broadcast.
        _, arguments = self._broadcast.__reduce__()
        return _fetch, arguments


def _fetch(number: int) -> Broadcast[ReleaseKey]:
    try:
        return _from_id(number)
    except PySparkRuntimeError as error:
        raise ValueError(
            "the key of this release is wiped: nothing more can be evaluated"
        ) from error
