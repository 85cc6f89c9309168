"""Noise for data frames and arrays of Dask, the same each time that a task is run again.

>>> import dask.dataframe as dd
>>> import pandas as pd
>>> import geomdp.dask
>>> from geomdp import GeometricMechanism
>>> counts = dd.from_pandas(pd.DataFrame({"g": [1, 2, 3], "n": [12, 7, 9]}), npartitions=2)
>>> with geomdp.dask.release_columns(counts, {"n": GeometricMechanism(1.0)}, ["g"]) as lazy:
...     noisy = lazy.compute()
>>> list(noisy.columns)
['g', 'n']

It needs the extra ``dask``. A release has a key, and the noise of a count is chosen by the key and
by what identifies the count: so it does not matter how the data are cut, on which worker a task
runs, or how often (``docs/distributed.md``). Until it is wiped the key is with the scheduler of the
``Client``, whose tasks fetch it; without a ``Client`` it is an object of this process.
"""

import pickle
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._release import columns, parameters
from geomdp._release.columns import Nulls
from geomdp._release.extras import installed_by
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.specification import checked
from geomdp.distributed import Release, ReleaseKey, check_arguments

with installed_by("geomdp[dask]"):
    import dask.array as da
    import dask.dataframe as dd
    from dask.base import get_scheduler
    from distributed import Client, Variable

__all__ = ["release", "release_columns"]


def release_columns(
    frame: dd.DataFrame,
    mechanisms: Mapping[str, GeometricMechanism],
    ids: Sequence[str],
    *,
    nulls: Nulls = "refuse",
    unique_ids: bool = False,
) -> Release[dd.DataFrame]:
    """Return the frame with noise in some of its columns; the others are as they were.

    The frame is evaluated once here, for its ids alone, and again whenever the result is.

    Parameters
    ----------
    frame
        Of counts, of integer types of 8 to 64 bits. Each time that Dask computes it, it must have
        the same rows: rows that change are released twice. Dask cannot tell. Random functions,
        clocks, ``drop_duplicates`` by some columns and files that change may all give other rows.
        Write such a frame, read it, and release that.
    mechanisms
        For the columns to be noised.
    ids
        Columns that together tell each row from all others. Each has one dtype in all partitions,
        with known categories if it is categorical.
    nulls : {"refuse", "keep"}
        As in :func:`geomdp.frames.release`; one that is to be refused is met when the result is
        evaluated.
    unique_ids : bool
        Whether you know that no two rows have the same ids. Then they are not compared, and the
        frame is not evaluated here; if two rows have the same ids after all, they share their
        noise.

    Returns
    -------
    Release
        Of a lazy frame of the same columns, types, index and partitions.

    Raises
    ------
    KeyError
        If there is not exactly one column of a name.
    TypeError
        If the frame is not one of Dask, or a column is of a type that is not accepted. When a
        partition is evaluated, if its ids have another dtype than the frame says.
    ValueError
        If two rows have the same ids, the categories of an id are not known, or an argument is not
        accepted.

    """
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(f"frame is a {type(frame).__name__}: give a DataFrame of Dask")
    check_arguments(mechanisms, ids, list(frame.columns))
    columns.check_nulls(nulls)
    parameters.flag("unique_ids", unique_ids)
    key, mechanisms, ids = ReleaseKey(), dict(mechanisms), list(ids)
    # No rows, of these types.
    key.release_columns(frame._meta, mechanisms, ids, part=True)
    counts: Any = frame
    types = dict(frame._meta[ids].dtypes)
    for name, dtype in types.items():
        if str(dtype) == "category" and not counts[name].cat.known:
            raise ValueError(f"unknown categories of {name!r} are not accepted: call cat.as_known")
    if not unique_ids:
        rows = counts[ids].map_partitions(_of_types, types, meta=frame._meta[ids])
        # Rows that are alike go to the same partition.
        rows = rows.shuffle(on=ids, ignore_index=True)
        if rows.map_partitions(_repeated, meta=(None, bool)).any().compute():
            raise ValueError(f"ids = {ids} are not unique: give columns that tell rows apart")
    held = _hold(key)
    noisy = counts.map_partitions(
        _release_columns, held, mechanisms, types, nulls, meta=frame._meta
    )
    return Release(noisy, held.wipe)


def release(array: da.Array, mechanism: GeometricMechanism) -> Release[da.Array]:
    """Return a noisy array, of the same shape, dtype and chunks.

    Parameters
    ----------
    array
        Of counts, of an integer dtype of 8 to 64 bits. What identifies a count is its place in the
        whole array, and so chunks do not matter.
    mechanism
        What makes the noise.

    Returns
    -------
    Release
        Of a lazy array.

    Raises
    ------
    TypeError
        If the array is not one of Dask, of numpy's integers.
    ValueError
        If the sizes of chunks are not known.
    OverflowError
        If the bounds are beyond the dtype.

    """
    if not isinstance(array, da.Array):
        raise TypeError(f"array is a {type(array).__name__}: give an Array of Dask")
    checked(mechanism)
    if type(array._meta) is not np.ndarray:
        raise TypeError(f"chunks that are {type(array._meta).__name__} are not accepted")
    mechanism.release(np.zeros(0, array.dtype))
    if np.isnan(array.shape).any():
        raise ValueError("chunks of unknown sizes are not accepted: call compute_chunk_sizes")
    held = _hold(ReleaseKey())
    return Release(_array(array, mechanism, held), held.wipe)


class _Held:
    """Where tasks find the key. In their names, its own name stands for it."""

    def __init__(self) -> None:
        self.name = f"geomdp-{uuid.uuid4().hex}"

    def key(self) -> AbstractContextManager[ReleaseKey]:
        raise NotImplementedError

    def wipe(self) -> None:
        raise NotImplementedError

    def __dask_tokenize__(self) -> str:
        return self.name


class _Here(_Held):
    """In this process, or in a task's copy of this object."""

    def __init__(self, key: ReleaseKey) -> None:
        super().__init__()
        self._key = key

    def key(self) -> AbstractContextManager[ReleaseKey]:
        return nullcontext(self._key)

    def wipe(self) -> None:
        self._key.wipe()

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(_executor(), Client):
            # From a cluster the key could not be taken back.
            raise TypeError("a release made without a Client is not for one: make it anew")
        return self.__dict__


class _Scheduled(_Held):
    """With the scheduler of a Client, which outlives the workers; tasks fetch it."""

    def __init__(self, key: ReleaseKey, client: Client) -> None:
        super().__init__()
        create: Any = Variable
        self._variable = create(self.name, client)
        self._variable.set(pickle.dumps(key))
        key.wipe()

    @contextmanager
    def key(self) -> Iterator[ReleaseKey]:
        try:
            # A scheduler that knows the name answers at once, however late.
            stored = self._variable.get(timeout=1)
        except TimeoutError:
            stored = None
        if stored is None:
            raise ValueError("the key of this release is wiped: nothing more can be evaluated")
        key: ReleaseKey = pickle.loads(stored)
        try:
            yield key
        finally:
            key.wipe()

    def wipe(self) -> None:
        if self._variable.client.status != "running":
            raise RuntimeError("the Client is closed: the key is in the scheduler until that ends")
        # The name stays, since tasks would wait for one that is not there.
        self._variable.set(None)


def _hold(key: ReleaseKey) -> _Held:
    client = _executor()
    return _Scheduled(key, client) if isinstance(client, Client) else _Here(key)


def _executor() -> Any:
    """Return the Client that would evaluate something now, or anything else if there is none."""
    find: Any = get_scheduler
    return getattr(find(), "__self__", None)


def _release_columns(
    part: Any,
    held: _Held,
    mechanisms: dict[str, GeometricMechanism],
    types: dict[str, Any],
    nulls: Nulls,
) -> Any:
    _of_types(part, types)
    with held.key() as key:
        return key.release_columns(part, mechanisms, list(types), part=True, nulls=nulls, threads=1)


def _of_types(part: Any, types: dict[str, Any]) -> Any:
    """Refuse ids of other types: equal ones go to different partitions, and get other noise."""
    for name, dtype in types.items():
        if part[name].dtype != dtype:
            raise TypeError(
                f"ids {name!r} of type {part[name].dtype} in a partition and {dtype} in the frame "
                "are not accepted: give the frame's astype"
            )
    return part


def _repeated(rows: Any) -> Any:
    return rows.duplicated()


def _array(array: da.Array, mechanism: GeometricMechanism, held: _Held) -> da.Array:
    apply: Any = da.map_blocks
    noisy: da.Array = apply(
        _release_block, array, held, mechanism, dtype=array.dtype, meta=array._meta
    )
    return noisy


def _release_block(
    counts: NDArray[Any], held: _Held, mechanism: GeometricMechanism, block_info: Any = None
) -> NDArray[Any]:
    where, shape = block_info[0]["array-location"], block_info[0]["shape"]
    # The flat places in the whole array.
    places = np.zeros((), np.int64)
    for (start, stop), size in zip(where, shape, strict=True):
        places = places[..., None] * size + np.arange(start, stop)
    with held.key() as key:
        noisy: NDArray[Any] = key.release(
            mechanism, counts, places, name="counts", part=True, threads=1
        )
    return noisy
