"""Releases of Ray datasets: a task that runs again gives the same noise.

This module needs the extra ``ray``, and geomdp on every node. Each release has a key, which
determines the noise of each count together with its ids, so blocks, workers and repeated tasks make
no difference (``docs/keyed.md``). An actor keeps the key until you wipe it, and tasks ask the actor
for it. If the actor ends, the release is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.uncopied import public, unseen
from geomdp._inputs.columns import Nulls
from geomdp.keyed import Release, ReleaseKey
from geomdp.mechanism import GeometricMechanism

with installed_by("geomdp[ray]"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import ray
    import ray.data
    from ray.exceptions import ActorDiedError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

__all__ = ["release_columns"]


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
    if not isinstance(dataset, ray.data.Dataset):
        raise TypeError(f"dataset has type {type(dataset).__name__}: give a Dataset of Ray")
    if dataset.context.max_errored_blocks:
        raise ValueError("max_errored_blocks is not accepted: the rows left out may change")
    schema = dataset.schema()
    if schema is not None and not isinstance(schema.base_schema, pa.Schema):
        # A pandas schema: map the blocks once to learn their Arrow types.
        schema = _map(dataset, _same).schema()
    empty = pa.schema([] if schema is None else schema.base_schema).empty_table()
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
        if name not in ids or (_is_text(kind) and not (_is_text(found) or pa.types.is_null(found))):
            raise TypeError(
                f"column {name!r} of type {found} in a block and {kind} in the dataset is not "
                "accepted: cast it"
            )
        block = block.set_column(block.column_names.index(name), name, block[name].cast(kind))
    return block


def _is_text(kind: pa.DataType) -> bool:
    return any(word in str(kind) for word in ("string", "binary"))


def _ids(block: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    places = pa.schema([(str(place), kind) for place, kind in enumerate(kinds.values())])
    return _typed(block.select([*kinds]), kinds, [*kinds]).rename_columns(places.names).cast(places)


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
