"""Tables and releases of Ray datasets: a task that runs again gives the same noise.

This module needs the extra ``ray``, and geomdp on every node. :func:`count` and :func:`sum` work on
the cluster and return the table of a design, to be released in this process. A release on the
cluster has a key, which determines the noise of each count together with its ids, so blocks,
workers and repeated tasks make no difference (``docs/keyed.md``). An actor keeps the key until you
wipe it, and tasks ask the actor for it. If the actor ends, the release is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Unpack

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.parameters import Bounds
from geomdp._ground.uncopied import public, unseen
from geomdp._inputs.columns import Nulls, only
from geomdp.keyed import Release, ReleaseKey
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._columns import ids as individuals
from geomdp.tables._columns.native import Library
from geomdp.tables._count.counting import columns_of, table, tally
from geomdp.tables._design import Design
from geomdp.tables._facts.exact_sums import merged
from geomdp.tables._facts.layout import counting, summing
from geomdp.tables._limits import ChosenLimit, Limit, Options, chosen
from geomdp.tables._release.table import Table

with installed_by("geomdp[ray]"):
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import ray
    import ray.data
    from ray.exceptions import ActorDiedError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

__all__ = ["count", "sum", "choose_limit", "release_columns"]


def count(design: Design, dataset: ray.data.Dataset, *, counts: str | None = None) -> Table:
    """Bound the contributions of each individual, and count the records of each cell.

    This is :meth:`geomdp.tables.Design.count` on the cluster. All records of an individual go to
    one task, which bounds and counts them, and only the counts by cell come to this process, or
    those of the chosen tables. A task that Ray repeats may choose other cells for its individuals,
    but since the counts of a task come here as one object, a table never mixes two choices for one
    individual. The object store holds the columns of the design meanwhile.

    Parameters
    ----------
    design : Design
        A design whose levels are a mapping of column names.
    dataset : Dataset
        As for :func:`release_columns`. There are as many tasks as blocks, and each holds its part
        in memory.
    counts : str, optional
        As in :meth:`geomdp.tables.Design.count`.

    Returns
    -------
    Table
        The exact counts of all cells, whose frames are tables of PyArrow in this process. Its
        release draws once, so it needs no key.

    Raises
    ------
    TypeError
        While a block is read, if one of its columns has another type than the dataset's.
    ValueError
        If failed blocks may be left out (``DataContext.max_errored_blocks``).

    Examples
    --------
    >>> import pyarrow as pa
    >>> import ray.data
    >>> from geomdp.tables import Design
    >>> from geomdp.tables.ray import count
    >>> visits = ray.data.from_arrow(pa.table({"who": [1, 1, 2], "town": ["x", "y", "x"]}))
    >>> design = Design({"town": ["x", "y", "z"]}, individual="who", l0=1)
    >>> table = count(design, visits)
    >>> len(table.release(epsilon=0.5).frame)
    3

    """
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    return _table(counting(design), dataset, counts)


def sum(  # noqa: A001
    design: Design, dataset: ray.data.Dataset, column: str, *, bounds: Bounds | None = None
) -> Table:
    """Sum a column over each cell on the cluster, by :meth:`geomdp.tables.Design.sum`.

    Parameters
    ----------
    design, dataset
        As for :func:`count`.
    column, bounds
        As in :meth:`geomdp.tables.Design.sum`.

    Returns
    -------
    Table
        The exact sums of all cells, as :func:`count` returns counts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import ray.data
    >>> from geomdp.tables import Design
    >>> from geomdp.tables.ray import sum
    >>> bills = ray.data.from_arrow(pa.table({"who": [1], "shop": ["x"], "euros": [90]}))
    >>> design = Design({"shop": ["x", "y"]}, individual="who", l1=500)
    >>> sum(design, bills, "euros").sensitivity
    500

    """
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    return _table(summing(design, column, bounds), dataset, column)


def choose_limit(
    design: Design, dataset: ray.data.Dataset, limit: Limit, **options: Unpack[Options]
) -> ChosenLimit:
    """Choose a limit on contributions on the cluster, by :func:`geomdp.tables.choose_limit`.

    Parameters
    ----------
    design, dataset
        As for :func:`count`.
    limit, **options
        As in :func:`geomdp.tables.choose_limit`.

    Returns
    -------
    ChosenLimit
        The limit, the design with it, and the noisy counts, in this process.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import ray.data
    >>> from geomdp.tables import Design
    >>> from geomdp.tables.ray import choose_limit, count
    >>> visits = ray.data.from_arrow(pa.table({"who": range(900), "town": ["x"] * 900}))
    >>> design = Design({"town": ["x", "y", "z"]}, individual="who", l0=3)
    >>> chosen = choose_limit(design, visits, "l0", epsilon=1)
    >>> count(chosen.design, visits).sensitivity
    1

    """
    return chosen(design, limit, partial(_counted, dataset), **options)


def _table(design: Design, dataset: ray.data.Dataset, counts: str | None) -> Table:
    """Return the exact counts of a design, or its sums of a column."""
    library, found = _counted(dataset, design, counts, tally)
    return table(design, library, merged(design, *found))


def _counted(
    dataset: ray.data.Dataset, design: Design, counts: str | None, tally: Any
) -> tuple[Library, tuple[Any, Any]]:
    """Return the rows of all tasks and their counts, by a function that counts those of one."""
    empty = _empty(dataset)
    known, who = empty.column_names, individuals.columns(design.individual)
    used = columns_of(design, counts, known)
    kinds = {name: _undictionaried(empty.field(only(name, known)).type) for name in used}
    empty = _cast(empty, kinds)
    # Without rows, this checks the arguments.
    _, library, none = tally(design, empty, counts)
    typed = _map(dataset.select_columns(used), _cast, kinds=kinds)
    parts: list[Any] = [[block] for block in typed.to_arrow_refs()]
    if who and len(parts) > 1:
        split: Any = ray.remote(unseen(_split)).options(num_returns=len(parts))
        parts = [*zip(*(split.remote(block, who, len(parts)) for [block] in parts), strict=True)]
    tallied: Any = ray.remote(unseen(_tallied))
    # An object for each task, which are those of a single run.
    found = ray.get([tallied.remote(empty, design, counts, tally, *blocks) for blocks in parts])
    at, sizes = map(np.concatenate, zip(none, *found, strict=True))
    return library, (at, sizes)


def release_columns(
    dataset: ray.data.Dataset,
    mechanisms: Mapping[str, GeometricMechanism],
    ids: Sequence[str],
    *,
    nulls: Nulls = "refuse",
    unique_ids: bool = False,
) -> Release[ray.data.Dataset]:
    """Release a dataset with noise added to some of its columns.

    The call evaluates the dataset once, to compare its ids. Each evaluation of the result evaluates
    it again.

    Parameters
    ----------
    dataset : Dataset
        A Ray Dataset. It must have the same rows, in any order and any blocks, each time that Ray
        computes it, because rows that change would be released twice, and Ray cannot detect this.
        Samples, numbers given to equal rows, limits without an order, random functions, clocks and
        files that change may all give other rows. Write such a dataset, read it back, and release
        that.
    mechanisms : mapping of column names to mechanisms
        The mechanisms of the columns of counts, which have integer types of 8 to 64 bits. The
        result keeps nothing of their exact counts.
    ids : sequence of str
        Columns that together identify each row. They are released unchanged.
    nulls : {"refuse", "keep"}
        Whether counts with nulls raise an error when the result is evaluated, or keep them.
    unique_ids : bool
        True declares that no two rows have the same ids, so the call neither compares ids nor
        evaluates the dataset. If two rows have the same ids after all, they share their noise.

    Returns
    -------
    Release
        A lazy dataset with the same columns and Arrow types, and its key. In all blocks the ids and
        noisy counts have the types in :meth:`ray.data.Dataset.schema`.

    Raises
    ------
    TypeError
        While a block is evaluated, if its counts have another type than the dataset's, or its ids
        are not strings although the dataset's are.
    ValueError
        If two rows have the same ids, or failed blocks may be left out
        (``DataContext.max_errored_blocks``).

    Examples
    --------
    >>> import pyarrow as pa
    >>> import ray.data
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables.ray import release_columns
    >>> counts = ray.data.from_arrow(pa.table({"town": ["x", "y"], "n": [12, 7]}))
    >>> release = release_columns(counts, {"n": GeometricMechanism(1.0)}, ["town"])
    >>> with release as noisy:
    ...     rows = noisy.take_all()  # or noisy.write_parquet(...)
    >>> list(rows[0])
    ['town', 'n']

    """
    parameters.check_bool("unique_ids", unique_ids)
    empty = _empty(dataset)
    # Without rows, this checks the arguments.
    ReleaseKey().release_columns(empty, mechanisms, ids, part=True, nulls=nulls)
    mechanisms, ids = dict(mechanisms), list(ids)
    kinds = {name: _undictionaried(empty.field(name).type) for name in [*ids, *mechanisms]}
    if not unique_ids:
        # Columns are named by position, since Ray names the counts itself.
        rows = _map(dataset.select_columns(ids), _ids, kinds={name: kinds[name] for name in ids})
        groups = rows.groupby([str(place) for place in range(len(ids))]).count()
        # No limit here: some versions of Ray move it before functions of blocks.
        found = _map(groups, _repeated).iter_batches(batch_size=None, batch_format="pyarrow")
        if any(map(len, found)):
            raise ValueError(f"ids = {ids} are not unique: give columns that identify each row")
    keeper = _keeper()
    noisy = _map(
        dataset,
        _release_columns,
        keeper=keeper,
        mechanisms=mechanisms,
        kinds=kinds,
        nulls=nulls,
    )
    # Wipes once, however often it is called.
    end = ExitStack()
    end.callback(_wipe, keeper)
    return Release(noisy, end.close)


def _empty(dataset: Any) -> pa.Table:
    """Return a table without rows, of the dataset's columns and Arrow types."""
    if not isinstance(dataset, ray.data.Dataset):
        raise TypeError(f"dataset has type {type(dataset).__name__}: give a Dataset of Ray")
    if dataset.context.max_errored_blocks:
        raise ValueError("max_errored_blocks is not accepted: the rows left out may change")
    schema = dataset.schema()
    if schema is not None and not isinstance(schema.base_schema, pa.Schema):
        # A pandas schema: map the blocks once to learn their Arrow types.
        schema = _map(dataset, _same).schema()
    return pa.schema([] if schema is None else schema.base_schema).empty_table()


def _split(block: pa.Table, who: Sequence[str], parts: int) -> list[pa.Table]:
    """Return the rows of a block in parts, with equal ids in the part of the same number."""
    hashes = np.zeros(len(block), np.uint64)
    for name in who if len(block) else ():
        individuals.checked(name, block[name])
        hashes = hashes * np.uint64(3) + pd.util.hash_array(block[name].to_numpy())
    places = hashes % np.uint64(parts)
    return [block.filter(places == part) for part in range(parts)]


def _tallied(empty: pa.Table, design: Design, counts: Any, tally: Any, *blocks: pa.Table) -> Any:
    """Return the rows of the table that have records of these blocks, and how many."""
    # Of blocks without rows, Ray drops the columns.
    whole = pa.concat_tables([empty, *filter(len, blocks)])
    return tally(design, whole, counts)[2]


class _Keeper:
    """The actor that draws the key and keeps it; the key leaves it only in answers to tasks."""

    def __init__(self) -> None:
        self._key = ReleaseKey()

    def key(self) -> ReleaseKey:
        return self._key

    def wipe(self) -> None:
        self._key.wipe()


def _keeper() -> Any:
    # A restarted actor would draw another key. It runs on the caller's node, since idle nodes may
    # be removed.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor: Any = ray.remote(_Keeper)
    # Lost answers are requested again.
    return actor.options(
        num_cpus=0, max_restarts=0, max_task_retries=-1, scheduling_strategy=here
    ).remote()


def _wipe(keeper: Any) -> None:
    # The actor ended with the cluster.
    if ray.is_initialized():
        with suppress(ActorDiedError):
            ray.get(keeper.wipe.remote())
        ray.kill(keeper)


def _map(dataset: ray.data.Dataset, function: Any, **arguments: Any) -> ray.data.Dataset:
    """Return the dataset with a function applied to each block."""
    return dataset.map_batches(
        unseen(function),
        batch_size=None,
        batch_format="pyarrow",
        zero_copy_batch=True,
        fn_kwargs=arguments,
    )


def _same(block: pa.Table) -> pa.Table:
    return block


def _undictionaried(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _typed(block: pa.Table, kinds: dict[str, pa.DataType], ids: Sequence[str]) -> pa.Table:
    """Return the block with ids of these types, since the noise depends on them."""
    for name, kind in kinds.items():
        if (found := _undictionaried(block.field(name).type)) == kind:
            continue
        # A failed cast of counts would show one. The text of a number or a time depends on the
        # library that writes it.
        same = pa.types.is_null(found) or (_is_text(kind) and _is_text(found))
        if not (same or (name in ids and not _is_text(kind))):
            raise TypeError(
                f"column {name!r} of type {found} in a block and {kind} in the dataset is not "
                "accepted: cast it"
            )
        block = block.set_column(block.column_names.index(name), name, block[name].cast(kind))
    return block


def _is_text(kind: pa.DataType) -> bool:
    return any(word in str(kind) for word in ("string", "binary"))


def _cast(block: pa.Table, kinds: dict[str, pa.DataType], ids: Sequence[str] = ()) -> pa.Table:
    """Return columns of the block with these types, without dictionaries."""
    return _typed(block.select([*kinds]), kinds, ids).cast(pa.schema([*kinds.items()]))


def _ids(block: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    return _cast(block, kinds, [*kinds]).rename_columns([str(place) for place in range(len(kinds))])


def _repeated(groups: pa.Table) -> pa.Table:
    return groups.filter(pc.greater(groups["count()"], 1))[:1]


def _release_columns(
    block: pa.Table,
    keeper: Any,
    mechanisms: dict[str, GeometricMechanism],
    kinds: dict[str, pa.DataType],
    nulls: Nulls,
) -> pa.Table:
    ids = [name for name in kinds if name not in mechanisms]
    try:
        key: ReleaseKey = ray.get(keeper.key.remote())
    except ActorDiedError as error:
        raise ValueError(
            "the key of this release is wiped, or lost with its actor: nothing can be evaluated"
        ) from error
    try:
        return key.release_columns(
            _typed(block, kinds, ids), mechanisms, ids, part=True, nulls=nulls, threads=1
        )
    finally:
        key.wipe()


public(__name__)
