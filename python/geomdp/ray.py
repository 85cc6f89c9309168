"""Noise for datasets of Ray, the same each time that a task is run again.

>>> import pyarrow as pa
>>> import ray.data
>>> import geomdp.ray
>>> from geomdp import GeometricMechanism
>>> counts = ray.data.from_arrow(pa.table({"town": ["x", "y"], "n": [12, 7]}))
>>> release = geomdp.ray.release_columns(counts, {"n": GeometricMechanism(1.0)}, ["town"])
>>> with release as noisy:
...     rows = noisy.take_all()  # or noisy.write_parquet(...)
>>> list(rows[0])
['town', 'n']

It needs the extra ``ray``, and geomdp on every node. A release has a key, and the noise of a count
is chosen by the key and by what identifies the count: so it does not matter how the data are cut,
on which worker a task runs, or how often (``docs/distributed.md``). Until it is wiped the key is
with an actor of its own, whom tasks ask for it; if that ends, the release is over.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np

from geomdp._release import columns, parameters
from geomdp._release.columns import Nulls
from geomdp._release.extras import installed_by
from geomdp._release.mechanism import GeometricMechanism
from geomdp.distributed import Release, ReleaseKey, check_arguments

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
    """Return the release of a dataset with noise in some of its columns.

    The dataset is evaluated once here, to compare its ids, and again whenever the result is.

    Parameters
    ----------
    dataset
        Each time that Ray computes it, it must have the same rows, in any order and in any blocks:
        rows that change are released twice. Ray cannot tell. Samples, rows numbered among equals,
        limits without an order, random functions, clocks and files that change may all give other
        rows. Write such a dataset, read it, and release that.
    mechanisms
        For columns of integer types of 8 to 64 bits; nothing is kept of their exact counts.
    ids
        Columns that together tell each row from all others, and are released as they are.
    nulls : {"refuse", "keep"}
        As in :func:`geomdp.frames.release`; one that is to be refused is met when the result is
        evaluated.
    unique_ids : bool
        Whether you know that no two rows have the same ids. Then they are not compared, and the
        dataset is not evaluated here; if two rows have the same ids after all, they share their
        noise.

    Returns
    -------
    Release
        Of a lazy dataset of the same columns and types, as Arrow has them. Ids get the types that
        :meth:`ray.data.Dataset.schema` gives, in all blocks.

    Raises
    ------
    KeyError
        If there is not exactly one column of a name.
    TypeError
        If the dataset is not one of Ray, or a column is of a type that is not accepted.
    ValueError
        If two rows have the same ids, blocks that fail are to be left out
        (``DataContext.max_errored_blocks``), or an argument is not accepted.
    OverflowError
        If the type of a column does not hold the bounds of its mechanism.

    """
    columns.check_nulls(nulls)
    parameters.flag("unique_ids", unique_ids)
    if not isinstance(dataset, ray.data.Dataset):
        raise TypeError(f"dataset is a {type(dataset).__name__}: give a Dataset of Ray")
    if dataset.context.max_errored_blocks:
        raise ValueError("max_errored_blocks is not accepted: which rows are left out may change")
    schema = dataset.schema()
    if schema is not None and not isinstance(schema.base_schema, pa.Schema):
        # Types of pandas: those that its blocks come to us in.
        schema = _map(dataset, _same).schema()
    empty = pa.schema([] if schema is None else schema.base_schema).empty_table()
    check_arguments(mechanisms, ids, empty.column_names)
    mechanisms, ids = dict(mechanisms), list(ids)
    ReleaseKey().release_columns(empty, mechanisms, ids, part=True)
    for name, mechanism in mechanisms.items():
        mechanism.release(np.zeros(0, empty.field(name).type.to_pandas_dtype()))
    kinds = {name: _plain(empty.field(name).type) for name in ids}
    if not unique_ids:
        # By places, since Ray gives names of its own to counts.
        rows = _map(dataset.select_columns(ids), _ids, kinds=kinds)
        groups = rows.groupby([str(place) for place in range(len(ids))]).count()
        # Not by a limit, which versions of Ray put before functions of blocks.
        found = _map(groups, _repeated).iter_batches(batch_size=None, batch_format="pyarrow")
        if any(map(len, found)):
            raise ValueError(f"ids = {ids} are not unique: give columns that tell rows apart")
    keeper = _keeper()
    noisy = _map(
        dataset, _release_columns, keeper=keeper, mechanisms=mechanisms, kinds=kinds, nulls=nulls
    )
    # To be called any number of times, and to wipe once.
    end = ExitStack()
    end.callback(_wipe, keeper)
    return Release(noisy, end.close)


class _Keeper:
    """Where the key is drawn and kept, to go to tasks in answers alone."""

    def __init__(self) -> None:
        self._key = ReleaseKey()

    def key(self) -> ReleaseKey:
        return self._key

    def wipe(self) -> None:
        self._key.wipe()


def _keeper() -> Any:
    # Never started again, as it would draw another key; and with the process that calls, since
    # other nodes may be taken away while nothing runs there.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor: Any = ray.remote(_Keeper)
    # An answer that is lost is asked for again.
    return actor.options(
        num_cpus=0, max_restarts=0, max_task_retries=-1, scheduling_strategy=here
    ).remote()


def _wipe(keeper: Any) -> None:
    # Without the cluster the actor has ended, too.
    if ray.is_initialized():
        with suppress(ActorDiedError):
            ray.get(keeper.wipe.remote())
        ray.kill(keeper)


def _map(dataset: ray.data.Dataset, function: Any, **arguments: Any) -> ray.data.Dataset:
    """Return the dataset after a function of its blocks."""
    return dataset.map_batches(
        function,
        batch_size=None,
        batch_format="pyarrow",
        zero_copy_batch=True,
        fn_kwargs=arguments,
    )


def _same(block: pa.Table) -> pa.Table:
    return block


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _ids(block: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    places = pa.schema([(str(place), kind) for place, kind in enumerate(kinds.values())])
    return block.select([*kinds]).rename_columns(places.names).cast(places)


def _repeated(groups: pa.Table) -> pa.Table:
    return groups.filter(pc.greater(groups["count()"], 1))[:1]


def _release_columns(
    block: pa.Table,
    keeper: Any,
    mechanisms: dict[str, GeometricMechanism],
    kinds: dict[str, pa.DataType],
    nulls: Nulls,
) -> pa.Table:
    try:
        key: ReleaseKey = ray.get(keeper.key.remote())
    except ActorDiedError as error:
        raise ValueError(
            "the key of this release is wiped, or lost with its actor: nothing more is evaluated"
        ) from error
    try:
        for name, kind in kinds.items():
            ids = block[name]
            # The noise of an id depends on its type, which must be the one that was compared.
            if _plain(ids.type) != kind:
                block = block.set_column(block.column_names.index(name), name, ids.cast(kind))
        return key.release_columns(
            block, mechanisms, list(kinds), part=True, nulls=nulls, threads=1
        )
    finally:
        key.wipe()
