"""Tables and releases of Dask data frames and arrays: a task that runs again gives the same noise.

This module needs the extra ``dask``. :func:`count` and :func:`sum` work on the workers and return
the table of a design, to be released in this process. A release on the workers has a key, which
determines the noise of each count together with its ids, so partitions, workers and repeated tasks
make no difference (``docs/keyed.md``). With a ``Client``, the scheduler keeps the key until you
wipe it, and tasks fetch it from there. Without a ``Client``, the key is an object of this process.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.parameters import Bounds
from geomdp._ground.uncopied import public, unseen
from geomdp._inputs.columns import Nulls, only
from geomdp.keyed import Release, ReleaseKey
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.tables._columns import ids as _ids
from geomdp.tables._columns.native import Library, categories, of_categories, of_objects
from geomdp.tables._count.counting import columns_of, table, tally
from geomdp.tables._design import Design
from geomdp.tables._facts.exact_sums import merged
from geomdp.tables._facts.layout import counting, summing
from geomdp.tables._limits import ChosenLimit, Limit, Options, chosen
from geomdp.tables._release.table import Table

with installed_by("geomdp[dask]"):
    import dask.array as da
    import dask.dataframe as dd
    from dask.base import compute
    from dask.delayed import delayed
    from distributed import Client, Variable

    from geomdp.tables._engines import dask_internals

__all__ = ["count", "sum", "choose_limit", "release_columns", "release"]


def count(design: Design, frame: dd.DataFrame, *, counts: str | None = None) -> Table:
    """Bound the contributions of each individual, and count the records of each cell.

    This is :meth:`geomdp.tables.Design.count` on the workers. All records of an individual go to
    one partition, which one task bounds and counts, and only the counts by cell come to this
    process, or those of the chosen tables. A task that Dask repeats may choose other cells for its
    individuals, but since only the counts of a single run come here, a table never mixes two
    choices for one individual.

    Parameters
    ----------
    design : Design
        A design whose levels are a mapping of column names.
    frame : DataFrame
        As for :func:`release_columns`. Each task holds a partition in memory.
    counts : str, optional
        As in :meth:`geomdp.tables.Design.count`.

    Returns
    -------
    Table
        The exact counts of all cells, whose frames are frames of pandas in this process. Its
        release draws once, so it needs no key.

    Raises
    ------
    TypeError
        If individuals are not integers, text or bytes in a column of that type, because equal ids
        in a column of another type, such as objects, might go to different tasks.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from geomdp.tables.dask import count
    >>> from geomdp.tables import Design
    >>> visits = pd.DataFrame({"who": [1, 1, 2], "town": ["x", "y", "x"]})
    >>> design = Design({"town": ["x", "y", "z"]}, individual="who", l0=1)
    >>> table = count(design, dd.from_pandas(visits, npartitions=2))
    >>> len(table.release(epsilon=0.5).frame)
    3

    """
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    return _table(counting(design), frame, counts)


def sum(  # noqa: A001
    design: Design, frame: dd.DataFrame, column: str, *, bounds: Bounds | None = None
) -> Table:
    """Sum a column over each cell on the workers, by :meth:`geomdp.tables.Design.sum`.

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
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from geomdp.tables.dask import sum
    >>> from geomdp.tables import Design
    >>> bills = pd.DataFrame({"who": [1], "shop": ["x"], "euros": [90]})
    >>> bills = dd.from_pandas(bills, npartitions=1)
    >>> design = Design({"shop": ["x", "y"]}, individual="who", l1=500)
    >>> sum(design, bills, "euros").sensitivity
    500

    """
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    return _table(summing(design, column, bounds), frame, column)


def choose_limit(
    design: Design, frame: dd.DataFrame, limit: Limit, **options: Unpack[Options]
) -> ChosenLimit:
    """Choose a limit on contributions on the workers, by :func:`geomdp.tables.choose_limit`.

    Parameters
    ----------
    design, frame
        As for :func:`count`.
    limit, **options
        As in :func:`geomdp.tables.choose_limit`.

    Returns
    -------
    ChosenLimit
        The limit, the design with it, and the noisy counts, in this process.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from geomdp.tables import Design
    >>> from geomdp.tables.dask import choose_limit, count
    >>> visits = pd.DataFrame({"who": range(900), "town": "x"})
    >>> visits = dd.from_pandas(visits, npartitions=2)
    >>> design = Design({"town": ["x", "y", "z"]}, individual="who", l0=3)
    >>> chosen = choose_limit(design, visits, "l0", epsilon=1)
    >>> count(chosen.design, visits).sensitivity
    1

    """
    return chosen(design, limit, partial(_counted, frame), **options)


def _table(design: Design, frame: dd.DataFrame, counts: str | None) -> Table:
    """Return the exact counts of a design, or its sums of a column."""
    library, found = _counted(frame, design, counts, tally)
    return table(design, library, merged(design, *found))


def _counted(
    frame: dd.DataFrame, design: Design, counts: str | None, tally: Any
) -> tuple[Library, tuple[Any, Any]]:
    """Return the rows of all tasks and their counts, by a function that counts those of one."""
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(f"frame has type {type(frame).__name__}: give a DataFrame of Dask")
    known = list(frame.columns)
    used, who = columns_of(design, counts, known), list(_ids.columns(design.individual))
    meta = dask_internals.types(frame)[[only(name, known) for name in used]]
    # Without rows, this checks the arguments.
    _, library, _ = tally(design, meta, counts)
    rows = cast(Any, frame)[used].map_partitions(_of_types, dict(meta.dtypes), meta=meta)
    for each in who:
        kind = of_categories(categories(meta[each])).to_native()
        if of_objects(kind):  # Dask compares each partition's objects in its own way.
            raise TypeError(
                f"individuals of type {kind.dtype} are not accepted on a cluster: give "
                "integers, or text of type string[pyarrow]"
            )
    if who:
        rows = rows.shuffle(on=who, ignore_index=True)
    evaluate: Any = compute
    parts = [delayed(_tallied)(part, design, counts, tally) for part in rows.to_delayed()]
    at, sizes = map(np.concatenate, zip(*evaluate(*parts), strict=True))
    return library, (at, sizes)


def release_columns(
    frame: dd.DataFrame,
    mechanisms: Mapping[str, GeometricMechanism],
    ids: Sequence[str],
    *,
    nulls: Nulls = "refuse",
    unique_ids: bool = False,
) -> Release[dd.DataFrame]:
    """Release a frame with noise added to some of its columns.

    The call evaluates the id columns once, to compare them. Each evaluation of the result evaluates
    the frame again.

    Parameters
    ----------
    frame : DataFrame
        A Dask DataFrame. It must have the same rows each time that Dask computes it, because rows
        that change would be released twice, and Dask cannot detect this. Random functions, clocks,
        ``drop_duplicates`` by some columns and files that change may all give other rows. Write
        such a frame, read it back, and release that.
    mechanisms : mapping of column names to mechanisms
        The mechanisms of the columns of counts, which have integer types of 8 to 64 bits.
    ids : sequence of str
        The columns that together identify each row. They are released unchanged. Each of them, and
        each column of counts, must have the same dtype in all partitions, and known categories.
    nulls : {"refuse", "keep"}
        Whether counts with nulls raise an error when the result is evaluated, or keep them.
    unique_ids : bool
        True declares that no two rows have the same ids, so the call neither compares ids nor
        evaluates the frame. If two rows have the same ids after all, they share their noise.

    Returns
    -------
    Release
        A lazy frame with the same columns, types, index and partitions, and its key.

    Raises
    ------
    TypeError
        While a partition is evaluated, if its ids or counts have another dtype than the frame's.
    ValueError
        If two rows have the same ids, or the categories of an id are unknown.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables.dask import release_columns
    >>> counts = dd.from_pandas(pd.DataFrame({"g": [1, 2, 3], "n": [12, 7, 9]}), npartitions=2)
    >>> with release_columns(counts, {"n": GeometricMechanism(1.0)}, ["g"]) as lazy:
    ...     noisy = lazy.compute()
    >>> list(noisy.columns)
    ['g', 'n']

    """
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(f"frame has type {type(frame).__name__}: give a DataFrame of Dask")
    parameters.check_bool("unique_ids", unique_ids)
    key, counts = ReleaseKey(), cast(Any, frame)
    meta = dask_internals.types(frame)
    # Without rows, this checks the arguments.
    key.release_columns(meta, mechanisms, ids, part=True, nulls=nulls)
    mechanisms, ids = dict(mechanisms), list(ids)
    types = dict(meta[[*ids, *mechanisms]].dtypes)
    for name in ids:
        if str(types[name]) == "category" and not counts[name].cat.known:
            raise ValueError(f"unknown categories of {name!r} are not accepted: call cat.as_known")
    if not unique_ids:
        rows = counts[ids].map_partitions(_of_types, types, meta=meta[ids])
        # Equal ids go to the same partition.
        rows = rows.shuffle(on=ids, ignore_index=True)
        if rows.map_partitions(_repeated, meta=(None, bool)).any().compute():
            raise ValueError(f"ids = {ids} are not unique: give columns that identify each row")
    held = _hold(key)
    noisy = counts.map_partitions(_release_columns, held, mechanisms, types, nulls, meta=meta)
    return Release(noisy, held.wipe)


def release(array: da.Array, mechanism: GeometricMechanism) -> Release[da.Array]:
    """Release an array of counts.

    Parameters
    ----------
    array : Array
        A Dask Array of numpy integers of 8 to 64 bits. The id of a count is its position in the
        whole array, so its noise does not depend on the chunks.
    mechanism
        The mechanism that adds the noise.

    Returns
    -------
    Release
        A lazy array with the same shape, dtype and chunks, and its key.

    Raises
    ------
    ValueError
        If the sizes of the chunks are unknown.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables.dask import release
    >>> with release(da.from_array(np.array([[12, 7], [9, 4]])), GeometricMechanism(1.0)) as noisy:
    ...     noisy.compute().shape
    (2, 2)

    """
    if not isinstance(array, da.Array):
        raise TypeError(f"array has type {type(array).__name__}: give an Array of Dask")
    as_mechanism(mechanism)
    if type(meta := dask_internals.types(array)) is not np.ndarray:
        raise TypeError(f"chunks that are {type(meta).__name__} are not accepted")
    mechanism.release(np.zeros(0, array.dtype))
    if np.isnan(array.shape).any():
        raise ValueError("chunks of unknown sizes are not accepted: call compute_chunk_sizes")
    held = _hold(ReleaseKey())
    return Release(_array(array, mechanism, held), held.wipe)


class _Held:
    """Gives tasks the key. Task names contain a random name instead of the key."""

    def __init__(self) -> None:
        self.name = f"geomdp-{uuid.uuid4().hex}"

    def __dask_tokenize__(self) -> str:
        return self.name


class _Here(_Held):
    """Holds the key in this process; tasks in other processes get a copy of this object."""

    def __init__(self, key: ReleaseKey) -> None:
        super().__init__()
        self._key = key

    def key(self) -> AbstractContextManager[ReleaseKey]:
        return nullcontext(self._key)

    def wipe(self) -> None:
        self._key.wipe()

    def __getstate__(self) -> dict[str, Any]:
        if dask_internals.client() is not None:
            # The key could not be wiped on a cluster.
            raise TypeError("a release made without a Client cannot run on one: release again")
        return self.__dict__


class _Scheduled(_Held):
    """Holds the key in the scheduler of a Client, which outlives the workers; tasks fetch it."""

    def __init__(self, key: ReleaseKey, client: Client) -> None:
        super().__init__()
        create: Any = Variable
        self._variable = create(self.name, client)
        self._variable.set(pickle.dumps(key))
        key.wipe()

    @contextmanager
    def key(self) -> Iterator[ReleaseKey]:
        try:
            # The scheduler answers at once if it knows the name.
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
            raise RuntimeError("the Client is closed: the scheduler keeps the key until it ends")
        # Keep the name: tasks would wait for a name that does not exist.
        self._variable.set(None)


def _hold(key: ReleaseKey) -> _Here | _Scheduled:
    client = dask_internals.client()
    return _Here(key) if client is None else _Scheduled(key, client)


@unseen
def _release_columns(
    part: Any,
    held: _Here | _Scheduled,
    mechanisms: dict[str, GeometricMechanism],
    types: dict[str, Any],
    nulls: Nulls,
) -> Any:
    _of_types(part, types)
    ids = [name for name in types if name not in mechanisms]
    with held.key() as key:
        return key.release_columns(part, mechanisms, ids, part=True, nulls=nulls, threads=1)


@unseen
def _tallied(part: Any, design: Design, counts: Any, tally: Any) -> Any:
    """Return the rows of the table that have records of a partition, and how many."""
    return tally(design, part, counts)[2]


@unseen
def _of_types(part: Any, types: dict[str, Any]) -> Any:
    """Refuse other types: equal ids would go to different partitions, and noise follows types."""
    for name, found in part.dtypes.items():
        if found != types.get(name, found):
            raise TypeError(
                f"column {name!r} of type {found} in a partition and {types[name]} in the frame is "
                "not accepted: call astype on the frame"
            )
    return part


@unseen
def _repeated(rows: Any) -> Any:
    return rows.duplicated()


def _array(array: da.Array, mechanism: GeometricMechanism, held: _Here | _Scheduled) -> da.Array:
    apply: Any = da.map_blocks
    noisy: da.Array = apply(
        _release_block, array, held, mechanism, dtype=array.dtype, meta=dask_internals.types(array)
    )
    return noisy


@unseen
def _release_block(
    counts: NDArray[Any],
    held: _Here | _Scheduled,
    mechanism: GeometricMechanism,
    block_info: Any = None,
) -> NDArray[Any]:
    where, shape = block_info[0]["array-location"], block_info[0]["shape"]
    # Flat positions in the whole array.
    places = np.zeros((), np.int64)
    for (start, stop), size in zip(where, shape, strict=True):
        places = places[..., None] * size + np.arange(start, stop)
    with held.key() as key:
        noisy: NDArray[Any] = key.release(
            mechanism, counts, places, name="counts", part=True, threads=1
        )
    return noisy


public(__name__)
