"""Tables and releases of Spark DataFrames: a task that runs again gives the same noise.

This module needs the extra ``spark``, a classic session of Spark 4, and geomdp on every executor.
:func:`count` and :func:`sum` work on the executors and return the table of a design, to be released
on the driver. For tables that are too large for this, :func:`release_columns` releases on the
executors. Its noisy DataFrame is lazy: Spark computes it for each action, and computes parts of it
again when a task is retried or speculated on, or a cached part is lost. The noisy counts are the
same each time, since their noise is determined by their ids and a key that is drawn once for each
release. Anyone who can read the memory or the traffic of the cluster can read that key, as well as
the exact counts. ``docs/keyed.md`` says where the key is, and where ``wipe`` removes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Unpack

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.parameters import Bounds, Integer
from geomdp._ground.uncopied import public, unseen
from geomdp._inputs.columns import Nulls, narwhals, only
from geomdp.keyed import Release, ReleaseKey
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._columns import ids as _ids
from geomdp.tables._columns.native import Library
from geomdp.tables._count.contributions import checked, words
from geomdp.tables._count.counting import columns_of, table, tally
from geomdp.tables._design import Design
from geomdp.tables._facts.exact_sums import merged, received, sent
from geomdp.tables._facts.layout import counting, summing
from geomdp.tables._limits import ChosenLimit, Limit, Options, chosen
from geomdp.tables._release.table import Table

with installed_by("geomdp[spark]"):
    from pyarrow import RecordBatch, array
    from pyarrow import Table as ArrowTable
    from pyspark.sql import DataFrame
    from pyspark.sql.types import LongType, StructField, StructType

    from geomdp.tables._engines import spark_internals, spark_plan

__all__ = ["count", "sum", "choose_limit", "release_columns", "bound_contributions"]


def count(design: Design, frame: DataFrame, *, counts: str | None = None) -> Table:
    """Bound the contributions of each individual, and count the records of each cell.

    This is :meth:`geomdp.tables.Design.count` on the executors. All records of an individual go to
    one task, which bounds and counts them. The call runs one job, and only the counts by cell are
    collected on the driver, or those of the chosen tables. A task that Spark repeats may choose
    other cells for its individuals, but since Spark collects the counts of a single attempt, a
    table never mixes two choices for one individual.

    Parameters
    ----------
    design : Design
        A design whose levels are a mapping of column names.
    frame : DataFrame
        A batch DataFrame of a classic session, with a plan that :func:`release_columns` accepts.
        Each task holds the columns of the design in memory.
    counts : str, optional
        As in :meth:`geomdp.tables.Design.count`.

    Returns
    -------
    Table
        The exact counts of all cells, whose frames are tables of PyArrow on the driver. Its release
        draws once, so it needs no key.

    Raises
    ------
    TypeError
        If individuals are not integers, text or bytes, because equal ids of another type might go
        to different tasks.
    ValueError
        If the rows may differ from one reading to the next.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from geomdp.tables.spark import count
    >>> from geomdp.tables import Design
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> visits = spark.sql("SELECT * FROM VALUES (1, 'x'), (1, 'y'), (2, 'x') AS visits(who, town)")
    >>> design = Design({"town": ["x", "y", "z"]}, individual="who", l0=1)
    >>> table = count(design, visits)
    >>> noisy = table.release(epsilon=0.5)
    >>> noisy.frame.column_names, len(noisy.frame)
    (['town', 'count'], 3)

    """
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    return _table(counting(design), frame, counts)


def sum(  # noqa: A001
    design: Design, frame: DataFrame, column: str, *, bounds: Bounds | None = None
) -> Table:
    """Sum a column over each cell on the executors, by :meth:`geomdp.tables.Design.sum`.

    Parameters
    ----------
    design, frame
        As for :func:`count`.
    column, bounds
        As in :meth:`geomdp.tables.Design.sum`.

    Returns
    -------
    Table
        The exact sums of all cells, as :func:`count` returns counts.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from geomdp.tables.spark import sum
    >>> from geomdp.tables import Design
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> bills = spark.sql("SELECT * FROM VALUES (1, 'x', 90) AS bills(who, shop, euros)")
    >>> design = Design({"shop": ["x", "y"]}, individual="who", l1=500)
    >>> sum(design, bills, "euros").sensitivity
    500

    """
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    return _table(summing(design, column, bounds), frame, column)


def choose_limit(
    design: Design, frame: DataFrame, limit: Limit, **options: Unpack[Options]
) -> ChosenLimit:
    """Choose a limit on contributions on the executors, by :func:`geomdp.tables.choose_limit`.

    Parameters
    ----------
    design, frame
        As for :func:`count`.
    limit, **options
        As in :func:`geomdp.tables.choose_limit`.

    Returns
    -------
    ChosenLimit
        The limit, the design with it, and the noisy counts, on the driver.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from geomdp.tables import Design
    >>> from geomdp.tables.spark import choose_limit, count
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> visits = spark.sql("SELECT id AS who, 'x' AS town FROM range(900)")
    >>> design = Design({"town": ["x", "y", "z"]}, individual="who", l0=3)
    >>> chosen = choose_limit(design, visits, "l0", epsilon=1)
    >>> count(chosen.design, visits).sensitivity
    1

    """
    return chosen(design, limit, partial(_counted, frame), **options)


def _table(design: Design, frame: DataFrame, counts: str | None) -> Table:
    """Return the exact counts of a design, or its sums of a column."""
    library, found = _counted(frame, design, counts, tally)
    return table(design, library, merged(design, *found))


def _counted(
    frame: DataFrame, design: Design, counts: str | None, tally: Any
) -> tuple[Library, tuple[Any, Any]]:
    """Return the rows of all tasks and their counts, by a function that counts those of one."""
    _check_batch(frame)
    _check_stable(frame)
    names, places, placed = _placed(frame)
    used, who = columns_of(design, counts, names), _ids.columns(design.individual)
    picked = placed.select(*(places[names.index(only(each, names))] for each in used))
    # Without rows, this checks the arguments.
    _, library, empty = tally(design, picked.limit(0).toArrow().rename_columns(used), counts)
    if who:
        picked = picked.repartition(*(places[names.index(each)] for each in who))

    def counted(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        if read := list(batches):
            rows = ArrowTable.from_batches(read).rename_columns(used)
            _, _, occupied = tally(design, rows, counts)
            columns = [array([*sent(occupied[0])]), array(occupied[1])]
            yield RecordBatch.from_arrays(columns, ["row", "n"])

    kind = "array<long>" if empty[0].dtype == object else "long"
    found = picked.mapInArrow(unseen(counted), f"row {kind}, n long").toArrow()
    at, sizes = (found.column(name).to_numpy() for name in ("row", "n"))
    return library, (received(at), sizes)


def release_columns(
    frame: DataFrame,
    mechanisms: Mapping[str, GeometricMechanism],
    ids: Sequence[str],
    *,
    nulls: Nulls = "refuse",
    unique_ids: bool = False,
) -> Release[DataFrame]:
    """Release a DataFrame with noise added to some of its columns.

    The call runs one job, which groups the rows by their ids and adds no noise. No job is needed if
    the plan ends in a ``groupBy`` whose columns are all ids; filters, sorts, repartitions and
    renamed columns may follow it.

    Parameters
    ----------
    frame : DataFrame
        A batch DataFrame of a classic session, not of Spark Connect. Spark computes it again for
        each action and for each failed task, and must find the same rows each time, in any order,
        because rows that change would be released twice. Its plan may therefore contain only nodes
        and functions that are known to give the same rows. Samples, limits, windows,
        ``dropDuplicates`` by some columns, ``first``, sums of floats, clocks, Python functions,
        RDDs (including lists given to ``createDataFrame``) and collated strings are refused;
        release ``frame.checkpoint()`` instead. Files must not change until the release is wiped.
    mechanisms : mapping of column names to mechanisms
        The mechanisms of the columns of counts, whose types are byte, short, integer or long. The
        result keeps nothing of their exact counts.
    ids : sequence of str
        Columns that together identify each row. They are released unchanged.
    nulls : {"refuse", "keep"}
        Whether counts with nulls fail the job that reads them, or keep them.
    unique_ids : bool
        True declares that no two rows have the same ids, so the call does not compare them. If two
        rows have the same ids after all, they share their noise.

    Returns
    -------
    Release
        A lazy DataFrame with the same schema, and its key. ``wipe`` destroys the broadcast that
        carries the key. Counts that were written, collected, checkpointed or cached remain, but
        tasks that need noise fail from then on.

    Raises
    ------
    ValueError
        If two rows have the same ids, or the rows may differ from one reading to the next.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables.spark import release_columns
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> counts = spark.sql("SELECT * FROM VALUES ('x', 12), ('y', 7) AS counts(town, n)")
    >>> release = release_columns(counts, {"n": GeometricMechanism(1.0)}, ["town"])
    >>> with release as noisy:
    ...     table = noisy.toArrow()  # or noisy.write.parquet(...)
    >>> table.column_names
    ['town', 'n']

    """
    parameters.check_bool("unique_ids", unique_ids)
    _check_batch(frame)
    _check_stable(frame)
    names, places, placed = _placed(frame)
    key = ReleaseKey()
    empty = placed.limit(0).toArrow().schema.empty_table().rename_columns(names)
    # Without rows, this checks the arguments.
    key.release_columns(empty, mechanisms, ids, part=True, nulls=nulls)
    mechanisms, ids = dict(mechanisms), list(ids)
    among = [names.index(name) for name in ids]
    if not (unique_ids or spark_plan.groups_by(spark_internals.analyzed(frame), among)):
        groups = placed.groupBy(*(places[place] for place in among)).count()
        if not groups.filter("count > 1").isEmpty():
            raise ValueError(f"ids = {ids} are not unique: give columns that identify each row")
    broadcast = frame.sparkSession.sparkContext.broadcast(key)
    key.wipe()
    held: Any = spark_internals.Held(broadcast)
    settings = spark_internals.deciding(frame.sparkSession.conf.getAll)

    def noise(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        spark_internals.check_settings(settings)
        key = held.value
        yield from key.release_batches(
            batches, mechanisms, ids, part=True, names=names, nulls=nulls, threads=1
        )

    noisy = placed.mapInArrow(unseen(noise), frame.schema)
    # Destroys once, however often it is called.
    end = ExitStack()
    end.callback(broadcast.destroy, blocking=True)
    end.callback(spark_internals.forgetting(noisy))
    return Release(noisy, end.close)


def bound_contributions(
    frame: DataFrame,
    individual: str | tuple[str, ...],
    *,
    l0: Integer,
    linf: Integer = 1,
    cells: Sequence[str] | None = None,
) -> DataFrame:
    """Keep at most `l0` cells of each individual, and at most `linf` records in each of them.

    See :func:`geomdp.tables.bound_contributions`. The executors draw entropy from their own
    operating systems. The result is lazy, and Spark may choose anew for each action and each
    repeated task. So write it, read it back, and count and release that; :func:`release_columns`
    refuses a frame that is computed from the result itself.

    Parameters
    ----------
    frame : DataFrame
        A batch DataFrame of a classic session, not of Spark Connect, in which each row is a record.
    individual, l0, linf, cells
        As in :func:`geomdp.tables.bound_contributions`. The evaluation fails if an individual is
        null.

    Returns
    -------
    DataFrame
        The rows that are kept, with the same schema, in any order.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from geomdp.tables.spark import bound_contributions
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> visits = spark.sql("SELECT * FROM VALUES (1, 'x'), (1, 'y'), (2, 'x') AS visits(who, town)")
    >>> bound_contributions(visits, "who", l0=1).count()
    2

    """
    l0, linf = checked(l0, linf, cells)
    who = _ids.columns(individual) or (None,)
    _check_batch(frame)
    names, places, placed = _placed(frame)
    keys = [places[names.index(only(each, names))] for each in (*who, *(cells or ()))]
    people = keys[: len(who)]
    for each, read in zip(who, placed.select(*people).limit(0).toArrow().columns, strict=True):
        _ids.checked(each, read)
    drawn = ["one", "two"] if cells is not None else ["one", "two", "row"]

    def draw(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        for batch in batches:
            for each, place in zip(who, people, strict=True):
                _ids.checked(each, batch.column(place))
            size = len(batch)
            random = [array(words(size).view(np.int64)) for _ in drawn]
            yield RecordBatch.from_arrays([*batch.columns, *random], [*places, *drawn])

    schema = [*placed.schema.fields, *(StructField(name, LongType()) for name in drawn)]
    rows = placed.mapInArrow(unseen(draw), StructType(schema))
    rows = _within(rows, people, [*keys, *drawn[2:]], l0, linf)
    return rows.select(*places).toDF(*names)


def _within(frame: DataFrame, people: list[str], keys: list[str], l0: int, linf: int) -> DataFrame:
    """Return the rows to keep, by the columns of individuals, and those of their cells.

    The columns ``one`` and ``two`` put the rows in random orders.
    """
    nw = narwhals()
    view: Any = nw.from_native(frame)
    view = view.with_columns(place=nw.col("one").rank("ordinal").over(*keys))
    # One row stands for each cell. Its turn does not depend on the draw of rows.
    view = view.with_columns(turn=nw.when(nw.col("place") == 1).then(nw.col("two")))
    view = view.with_columns(turn=nw.col("turn").rank("ordinal").over(*people))
    view = view.with_columns(turn=nw.col("turn").min().over(*keys))
    kept: DataFrame = view.filter(nw.col("place") <= linf, nw.col("turn") <= l0).to_native()
    return kept


def _check_batch(frame: Any) -> None:
    if not spark_internals.is_classic(frame):
        kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
        raise TypeError(f"frame has type {kind}: give a DataFrame of a classic session of Spark")
    if frame.isStreaming:
        raise ValueError("a streaming frame is not accepted: give a batch")


def _check_stable(frame: DataFrame) -> None:
    plan = spark_internals.analyzed(frame)
    if (found := spark_plan.unstable(plan, spark_internals.collations(frame))) is not None:
        raise ValueError(
            f"a frame with {found} is not accepted, as its rows may differ from one reading to the "
            "next: call sparkContext.setCheckpointDir and give frame.checkpoint(), or write the "
            "frame, read it back and give that"
        )


def _placed(frame: DataFrame) -> tuple[list[str], list[str], DataFrame]:
    """Return the names of columns, their positions, and the frame with positions as names.

    Spark interprets dots in names.
    """
    names = frame.columns
    places = [str(place) for place in range(len(names))]
    return names, places, frame.toDF(*places)


public(__name__)
