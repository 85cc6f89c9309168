"""Releases on engines that may run a task twice: the same task gives the same noise.

:mod:`geomdp.tables.spark`, :mod:`geomdp.tables.dask` and :mod:`geomdp.tables.ray` draw the keys
for their engines and check that ids are unique. ``docs/keyed.md`` describes the construction and
proves it private. On one machine use :meth:`geomdp.GeometricMechanism.release`, which keeps no key.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.uncopied import Uncopied, public
from geomdp._inputs import arrays, columns
from geomdp._inputs.arrays import Array
from geomdp._inputs.columns import Nulls
from geomdp._kernel import core
from geomdp.mechanism import GeometricMechanism, as_mechanism, core_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["ReleaseKey", "Release"]

#: Arrow's names for the integer types that the core accepts as ids.
_WIDE = {name: np.dtype(name) for name in ("int64", "uint64")}
#: The number of each of Arrow's units in a second.
_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: Version of the noise construction; a pickled key is only read by the same version.
_VERSION = 2
Frame = TypeVar("Frame")


class ReleaseKey:
    """The secret key of one release: 32 random bytes from the operating system.

    The noise of a count is determined by the key, the name of its column, the mechanism's rate, the
    output range, the integer type, the ids of the count, and the count itself. Counts that differ
    in any of these have independent noise. Mechanisms of equal rate, such as
    ``GeometricMechanism(0.2, 2)`` and ``GeometricMechanism(0.1, 1)``, give the same noise, as do a
    mechanism without bounds and one whose bounds are the limits of the integer type.

    Use a key for one state of one table. If two tables shared a key, equal noise would show which
    of their counts are equal. Changed data therefore needs a new key and costs its epsilon again,
    and a key releases each name once and refuses repeated ids. For parts of one table pass
    ``part=True``, which declares that

    * the caller compared the ids across all parts, and none repeats,
    * and the table does not change while the key is in use.

    A key knows which names it has released. Its pickles and copies do not, so they only release
    parts.

    Anyone with the key can remove the noise, so give it only to processes that hold the exact
    counts, and wipe it after the last release. Pickle it to send it to other processes; nothing
    else reveals its bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp import GeometricMechanism, keyed
    >>> key = keyed.ReleaseKey()
    >>> noisy = key.release(GeometricMechanism(1.0), np.array([12, 7]), np.array([4, 1]), name="n")
    >>> key.wipe()
    >>> noisy.shape
    (2,)

    """

    __slots__ = ("_copied", "_core", "_lock", "_parts")

    def __init__(self) -> None:
        self._begin(core.ReleaseKey(None), copied=False)

    def _begin(self, core: core.ReleaseKey, *, copied: bool) -> None:
        self._core, self._copied = core, copied
        #: Maps each released name to whether it was released in parts.
        self._parts: dict[str, bool] = {}
        self._lock = threading.Lock()

    def release(
        self,
        mechanism: GeometricMechanism,
        counts: Any,
        ids: Any,
        *,
        name: str,
        part: bool = False,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> Any:
        """Return noisy counts.

        Parameters
        ----------
        mechanism
            The mechanism that adds the noise.
        counts : array or column
            Integers, as for :meth:`geomdp.GeometricMechanism.release`.
        ids : array or column, or list or tuple of them
            Values that together identify each count within the release, across all calls. Each has
            one item per count, in the order of the counts. Arrays hold integers or bools; columns
            hold integers, bools, strings, bytes, dates or times. An integer is the same id in any
            integer type, a time in any unit, and a timestamp with a zone in any zone. Null is an id
            too. Dates, times, durations, and timestamps with and without a zone are never equal to
            one another.
        name : str
            The name of the column, not empty. Columns with different names have independent noise.
        part : bool
            Whether the counts are a part of a table, as :class:`ReleaseKey` defines it. By default
            they are a whole table.
        nulls : {"refuse", "keep"}
            Whether a column with nulls raises an error, or keeps them where they are.
        threads : int, optional
            Number of threads, 1 or more. By default it depends on the number of counts.

        Returns
        -------
        array or column
            The noisy counts, with the type and shape of the counts.

        Raises
        ------
        ValueError
            If the key has released the name already and not both releases are parts, ids repeat in
            a whole table, the key is a copy and the counts are a whole table, or the key is wiped.

        Examples
        --------
        >>> import numpy as np
        >>> from geomdp import GeometricMechanism, keyed
        >>> key, mechanism = keyed.ReleaseKey(), GeometricMechanism(1.0)
        >>> first = key.release(mechanism, np.array([12, 7]), np.array([4, 1]), name="n", part=True)
        >>> again = key.release(mechanism, np.array([7]), np.array([1]), name="n", part=True)
        >>> bool(first[1] == again[0])
        True

        """
        columns.check_nulls(nulls)
        self._check([name], part)
        if not name:
            raise ValueError("name = '' is not accepted: give the name of the column")
        parts = list(ids) if isinstance(ids, list | tuple) else [ids]
        if columns.is_column(counts):
            noise = self._noise(mechanism, name, _rows(parts, len(counts), part), threads)
            noisy = columns.noisy(noise, "counts", counts, nulls)
        else:
            array = arrays.as_array(counts)
            noisy = self._noise(mechanism, name, _rows(parts, array.size, part), threads)(array)
        self._record([name], part)
        return noisy

    def release_columns(
        self,
        frame: Frame,
        mechanisms: Mapping[str, GeometricMechanism],
        ids: Sequence[str],
        *,
        part: bool = False,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> Frame:
        """Return the frame with noise added to some of its columns.

        If a column fails, none is released.

        Parameters
        ----------
        frame : data frame
            A pandas or Polars DataFrame, or a PyArrow Table or RecordBatch.
        mechanisms : dict
            Maps the names of the columns to release, all str, to their mechanisms.
        ids : sequence of str
            Columns that together identify each row of the release. They stay as they are.
        part : bool
            Whether the frame is a part of a table, as :class:`ReleaseKey` defines it.
        nulls : {"refuse", "keep"}
            Whether a column with nulls raises an error, or keeps them where they are.
        threads : int, optional
            Number of threads, 1 or more. By default it depends on the number of counts.

        Returns
        -------
        data frame
            The noisy frame, as :func:`geomdp.tables.release_columns` returns it.

        Raises
        ------
        ValueError
            If the key refuses the names or the ids (:meth:`release`).

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import GeometricMechanism
        >>> from geomdp.keyed import ReleaseKey
        >>> frame = pd.DataFrame({"town": ["x", "y"], "n": [12, 7]})
        >>> noisy = ReleaseKey().release_columns(frame, {"n": GeometricMechanism(1.0)}, ["town"])
        >>> noisy["town"].tolist()
        ['x', 'y']

        """
        columns.check_nulls(nulls)
        _check_arguments(mechanisms, ids, columns.names(frame))
        self._check(mechanisms, part)
        parts = [columns.column(frame, name) for name in ids]
        rows = _rows(parts, len(cast(Sized, frame)), part)
        noises = {name: self._noise(each, name, rows, threads) for name, each in mechanisms.items()}
        noisy = columns.noisy_columns(frame, noises, nulls)
        self._record(mechanisms, part)
        return cast(Frame, noisy)

    def release_batches(
        self,
        batches: Iterable[RecordBatch],
        mechanisms: Mapping[str, GeometricMechanism],
        ids: Sequence[str],
        *,
        part: bool = False,
        names: Sequence[str] | None = None,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> Iterator[RecordBatch]:
        """Yield PyArrow batches with the noise that :meth:`release_columns` would add to each.

        This is for engines that pass small batches. Arguments are checked for the first batch and
        whenever the schema changes, instead of for each batch.

        Parameters
        ----------
        batches : iterable of RecordBatch
            Each batch is read when its noisy batch is requested.
        mechanisms, ids, nulls, threads
            As in :meth:`release_columns`.
        part : bool
            Must be True, since each batch is a part and this method never has all ids to compare.
        names : list of str, optional
            Names of all columns, used instead of those in the batches. The noisy batches keep the
            names of the batches.

        Yields
        ------
        RecordBatch
            A noisy batch with the columns and number of rows of its batch, and metadata as
            :func:`geomdp.tables.release_columns` keeps it.

        Raises
        ------
        KeyError, TypeError, ValueError, OverflowError
            When the noisy batch concerned is requested.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from geomdp import GeometricMechanism
        >>> from geomdp.keyed import ReleaseKey
        >>> batch = pa.record_batch({"town": ["x", "y"], "n": [12, 7]})
        >>> mechanisms = {"n": GeometricMechanism(1.0)}
        >>> [noisy] = ReleaseKey().release_batches([batch], mechanisms, ["town"], part=True)
        >>> noisy.schema.names
        ['town', 'n']

        """
        columns.check_nulls(nulls)
        if part is not True:
            raise ValueError(
                f"part = {part} is not accepted: compare the ids of all batches, and give True"
            )
        from pyarrow import RecordBatch  # noqa: PLC0415

        schema: Any = None
        for batch in batches:
            if not isinstance(batch, RecordBatch):
                kind = type(batch).__name__
                raise TypeError(f"batches with a {kind} are not accepted: give RecordBatches")
            if schema is None or not batch.schema.equals(schema, check_metadata=True):
                schema = batch.schema
                known = list(schema.names if names is None else names)
                if len(known) != len(schema):
                    raise ValueError(f"names = {known} are not accepted: give {len(schema)}")
                _check_arguments(mechanisms, ids, known)
                self._check(mechanisms, part)
                places = {name: place for place, name in enumerate(known)}
                among = [places[name] for name in ids]
                released = [
                    (places[name], columns.without_metadata(schema.field(places[name])), name, each)
                    for name, each in mechanisms.items()
                ]
                metadata = columns.public_metadata(schema)
            rows = _rows([batch.column(place) for place in among], batch.num_rows, part)
            noisy = batch
            for place, field, name, mechanism in released:
                noise = self._noise(mechanism, name, rows, threads)
                column = columns.noisy(noise, f"column {name!r}", batch.column(place), nulls)
                noisy = noisy.set_column(place, field, column)
            self._record(mechanisms, part)
            yield noisy.replace_schema_metadata(metadata)

    def wipe(self) -> None:
        """Overwrite the key. Released counts stay; further releases raise ValueError.

        >>> import pickle
        >>> from geomdp.keyed import ReleaseKey
        >>> key = ReleaseKey()
        >>> key.wipe()
        >>> pickle.dumps(key)
        Traceback (most recent call last):
            ...
        ValueError: the release key is wiped: start another release, with a new key
        """
        self._core.wipe()

    def _check(self, names: Iterable[str], part: bool) -> None:
        """Refuse names that this key has released, unless both releases are parts."""
        if not isinstance(part, bool):
            raise TypeError(parameters.refusal("part", part, "True or False"))
        if self._copied and not part:
            raise ValueError(
                "part = False is not accepted: this key is a copy, which only releases parts of a"
                " table; create a ReleaseKey() for a whole table"
            )
        for name in names:
            parameters.check_text("name", name)
            parts = self._parts.get(name)
            if parts is not None and not (parts and part):
                raise ValueError(
                    f"name = {name!r} is not accepted: this key has released it"
                    f" {'in parts' if parts else 'as a whole'}; create a ReleaseKey() for other or"
                    " changed counts, which costs their epsilon again"
                )

    def _record(self, names: Iterable[str], part: bool) -> None:
        """Record names before they are returned. If two threads release one, the second fails."""
        with self._lock:
            self._check(names, part)
            self._parts.update(dict.fromkeys(names, part))

    def _noise(
        self, mechanism: GeometricMechanism, name: str, ids: core.Ids, threads: int | None
    ) -> columns.Noise:
        """Return a function that releases counts: each call takes the next ids."""
        plan, thread_limit = core_of(as_mechanism(mechanism)), parameters.threads(threads)
        start = 0

        def noise(counts: Array) -> Array:
            nonlocal start
            # The ids are in C order, whatever the memory layout of the counts.
            array, first = np.asarray(counts, order="C"), start
            start += array.size

            def draw(source: Array, target: Array) -> None:
                plan.release_keyed(self._core, name, ids, first, source, target, None, thread_limit)

            return arrays.release(array, None, draw)

        return noise

    def __repr__(self) -> str:
        return "ReleaseKey(...)"

    def __reduce__(self) -> tuple[Any, tuple[int, bytes]]:
        return _from_pickle, (_VERSION, self._core.secret())


class Release(Uncopied, Generic[Frame]):
    """A lazy release on an engine, which can be evaluated until its key is wiped.

    A ``with`` statement binds the attribute ``frame``, and wipes the key at the end. It cannot be
    copied or pickled.

    Parameters
    ----------
    frame : lazy object of the engine
        Every evaluation gives the same noisy counts.
    wipe : callable
        Wipes the key; called once or more, without arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, keyed
    >>> key = keyed.ReleaseKey()
    >>> frame = pd.DataFrame({"town": ["x", "y"], "n": [12, 7]})
    >>> noisy = key.release_columns(frame, {"n": GeometricMechanism(1.0)}, ["town"])
    >>> with keyed.Release(noisy, key.wipe) as frame:
    ...     rows = len(frame)
    >>> rows
    2

    """

    _uncopied = "its key must be wiped everywhere"
    __slots__ = ("_wipe", "frame")

    def __init__(self, frame: Frame, wipe: Callable[[], None]) -> None:
        #: The engine's lazy object. Every evaluation gives the same noisy counts.
        self.frame = frame
        self._wipe = wipe

    def wipe(self) -> None:
        """Wipe the key. Written results stay; evaluating the frame again fails.

        >>> from geomdp.keyed import Release
        >>> release = Release("a lazy frame", lambda: print("wiped"))
        >>> release.wipe()
        wiped
        """
        self._wipe()

    def __enter__(self) -> Frame:
        return self.frame

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.wipe()


def _check_arguments(
    mechanisms: Mapping[str, GeometricMechanism], ids: Sequence[str], names: list[str]
) -> None:
    """Check the columns to release and those that identify each row, given all names."""
    if not isinstance(mechanisms, Mapping):
        kind = type(mechanisms).__name__
        raise TypeError(f"mechanisms has type {kind}: give a dict from column names to mechanisms")
    for name, each in mechanisms.items():
        if not isinstance(name, str):
            raise TypeError(f"column {name!r} is not accepted: rename it to a str")
        if not isinstance(each, GeometricMechanism):
            kind = type(each).__name__
            raise TypeError(f"mechanisms contains a {kind}: give GeometricMechanisms")
    if isinstance(ids, str) or not (
        isinstance(ids, Sequence) and all(isinstance(each, str) for each in ids)
    ):
        raise TypeError(parameters.refusal("ids", ids, "a list of column names"))
    if not mechanisms or not ids:
        name = "ids" if mechanisms else "mechanisms"
        raise ValueError(f"{name} is empty: give at least one column")
    if len({*ids, *mechanisms}) != len(ids) + len(mechanisms):
        raise ValueError(
            f"ids = {list(ids)} are not accepted: give each once, and no released column"
        )
    for name in [*ids, *mechanisms]:
        columns.only(name, names)


def _from_pickle(version: int, *content: Any) -> ReleaseKey:
    if version != _VERSION:
        raise ValueError(
            f"a ReleaseKey pickled in version {version} is not accepted: use the same version of"
            f" geomdp for pickling; this one writes version {_VERSION}"
        )
    key = ReleaseKey.__new__(ReleaseKey)
    key._begin(core.ReleaseKey(*content), copied=True)
    return key


def _rows(given: Sequence[Any], size: int, part: bool) -> core.Ids:
    ids, plain = core.Ids(size), [_of_64_bits_or_bytes(column) for column in given]
    for column in plain:
        if (found := len(column)) != size:
            raise ValueError(f"ids of length {found} are not accepted: give {size}, one a count")
    for column in plain:
        if isinstance(column, np.ndarray):
            ids.add_integers(column, None, column.dtype.kind == "i")
        elif (dtype := _WIDE.get(str(column.type))) is not None:
            ids.add_integers(_items(column, dtype), _nulls(column), dtype.kind == "i")
        else:
            data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
            ids.add_bytes(_items(column, _WIDE["int64"], more=1), data, _nulls(column))
    if not part and ids.repeat():
        raise ValueError("ids that repeat are not accepted: give columns that identify each count")
    return ids


def _of_64_bits_or_bytes(column: Any) -> Any:
    """Return ids as 64-bit integers (numpy or Arrow) or as large_binary (Arrow)."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        arrays.refuse_masked("ids", column)
        wide = np.uint64 if column.dtype.kind == "u" else np.int64
        flat = np.ravel(column).astype(wide, copy=False)
        return np.require(flat, requirements="A")
    array = columns.to_arrow("ids", column)
    if str(array.type) in _WIDE:
        return array
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _time(array)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return array if kind == pa.uint64() else array.cast(pa.int64())
    if str(kind).removeprefix("large_").removesuffix("_view") in ("string", "binary"):
        return array.cast(pa.large_binary())
    raise TypeError(
        f"ids of type {kind} are not accepted: give integers, bools, strings, bytes or times"
    )


def _time(array: Any) -> Any:
    """Return dates, times or durations as bytes: their kind, seconds and nanoseconds.

    An engine may store the same time in another unit, or show it in another zone, when it computes
    a table again. So neither is part of an id.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    kind, days = array.type, pa.types.is_date32(array.type)
    if pa.types.is_date(kind):
        name, unit = b"date ", "s" if days else "ms"
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        name, unit = b"time " if pa.types.is_time(kind) else b"duration ", kind.unit
    else:
        name, unit = b"instant " if kind.tz else b"timestamp ", kind.unit
    stored = _items(array, np.dtype(f"int{kind.bit_width}")).astype(np.int64)
    seconds, rest = np.divmod(stored * 86_400 if days else stored, _SECOND[unit])
    value = np.stack([seconds, rest * (10**9 // _SECOND[unit])], axis=1).astype("<i8", copy=False)
    named = np.empty((len(array), len(name) + 16), np.uint8)
    named[:, : len(name)] = np.frombuffer(name, np.uint8)
    named[:, len(name) :] = value.view(np.uint8)
    buffers = [None, pa.py_buffer(named)]
    items = pa.Array.from_buffers(pa.binary(named.shape[1]), len(array), buffers)
    items = items.cast(pa.large_binary())
    return pc.if_else(array.is_valid(), items, None) if array.null_count else items


def _items(array: Any, dtype: np.dtype[Any], more: int = 0) -> NDArray[Any]:
    """Return the items of a PyArrow Array as a numpy array, aligned, without a copy if possible."""
    if not len(array):
        return np.zeros(more, dtype)
    items = columns.memory(array, dtype, more)
    # Buffers that came over a network may be unaligned.
    return items if items.flags.aligned else items.copy()


def _nulls(array: Any) -> NDArray[Any] | None:
    return np.asarray(array.is_null()).view(np.uint8) if array.null_count else None


public(__name__)
