"""Noise for engines that may run a task twice: the same task, the same noise.

>>> import numpy as np
>>> from geomdp import GeometricMechanism
>>> from geomdp.distributed import ReleaseKey
>>> mechanism, counts, cities = GeometricMechanism(1.0), np.array([12, 7, 9]), np.array([4, 1, 7])
>>> key = ReleaseKey()
>>> noisy = key.release(mechanism, counts, cities)
>>> again = key.release(mechanism, counts[::-1], cities[::-1])
>>> noisy.tolist() == again[::-1].tolist()
True
>>> key.wipe()

:mod:`geomdp.spark`, :mod:`geomdp.dask` and :mod:`geomdp.ray` do this for their engines, and check
what nobody but they can. ``docs/distributed.md`` has the construction and why it is private. On one
machine use :meth:`geomdp.GeometricMechanism.release`, which has no key that could be kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from geomdp import _arrays, _core, _parameters, frames
from geomdp._arrays import Array
from geomdp._mechanism import GeometricMechanism
from geomdp.frames import Nulls

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["Release", "ReleaseKey", "check_arguments"]

#: Integers that the core takes as ids, by the names that Arrow gives them.
_WIDE = {name: np.dtype(name) for name in ("int64", "uint64")}
_Frame = TypeVar("_Frame")


class ReleaseKey:
    """The secret of one release: 32 bytes of the operating system.

    The noise of a count follows from the key, the name of its column, the mechanism, the integer
    type, the ids of the count, and the count itself. Counts that differ in any of these have
    independent noise.

    A key is for one release of one set of counts. Whoever has it can take the noise off again, so
    it goes to those who hold the counts anyway, and is wiped when all is released. Pickling it is
    how it goes to other processes; nothing else shows its bytes.

    Raises
    ------
    OSError
        If the operating system gives no random bytes.

    """

    __slots__ = ("_core",)

    def __init__(self) -> None:
        self._core = _core.ReleaseKey(None)

    def release(
        self,
        mechanism: GeometricMechanism,
        counts: Any,
        ids: Any,
        *,
        name: str = "",
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> Any:
        """Return noisy counts.

        Parameters
        ----------
        mechanism
            What makes the noise.
        counts : array or column
            As in :meth:`geomdp.GeometricMechanism.release`.
        ids : array or column, or list or tuple of them
            What tells each count from all others of the release, here and in other calls: an item
            of each, in the order of the counts. Arrays of integers or bools; columns of these, of
            strings, bytes, dates or times. An integer is the same id in any type, and null is one
            as well.
        name : str
            Of the column, where a release has several.
        nulls, threads
            As in :func:`geomdp.frames.release`.

        Returns
        -------
        array or column
            Of the type and shape of the counts.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As the mechanism does; and if the ids are of another type or number, or the key is
            wiped.

        """
        columns = list(ids) if isinstance(ids, list | tuple) else [ids]
        if frames.is_column(counts):
            draws = self._draws(mechanism, name, _rows(columns, len(counts)))
            return frames.release(draws, counts, nulls=nulls, threads=threads)
        array = _arrays.as_array(counts)
        draws = self._draws(mechanism, name, _rows(columns, array.size))
        return draws.release(array, threads=threads)

    def release_columns(
        self,
        frame: _Frame,
        mechanisms: Mapping[str, GeometricMechanism],
        ids: Sequence[str],
        *,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> _Frame:
        """Return the frame, or a part of it, with noise in some of its columns.

        Parameters
        ----------
        frame : data frame
            As in :func:`geomdp.frames.release_columns`: of pandas, Polars or PyArrow.
        mechanisms : dict
            The mechanism for each column to release.
        ids : sequence of str
            Columns that together tell each row from all others of the release.
        nulls, threads
            As in :func:`geomdp.frames.release_columns`.

        Raises
        ------
        KeyError, TypeError, ValueError, OverflowError
            As there and in :meth:`release`.

        """
        check_arguments(mechanisms, ids, frames.names(frame))
        columns = [frames.column(frame, name) for name in ids]
        rows = _rows(columns, len(cast(Sized, frame)))
        draws = {name: self._draws(each, name, rows) for name, each in mechanisms.items()}
        return frames.release_columns(frame, draws, nulls=nulls, threads=threads)

    def release_batches(
        self,
        batches: "Iterable[RecordBatch]",
        mechanisms: Mapping[str, GeometricMechanism],
        ids: Sequence[str],
        *,
        names: Sequence[str] | None = None,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> "Iterator[RecordBatch]":
        """Yield batches of Arrow with the noise that :meth:`release_columns` makes in each.

        For engines that hand out small batches: arguments are checked at the first one, and at one
        of another schema, instead of at each.

        Parameters
        ----------
        batches : iterable of RecordBatch
            Of PyArrow. Each is asked for when its noisy one is.
        mechanisms, ids, nulls, threads
            As in :meth:`release_columns`.
        names : list of str, optional
            Of all columns, for batches that call them otherwise; these keep their own.

        Raises
        ------
        KeyError, TypeError, ValueError, OverflowError
            As there, when the noisy batch that they are about is asked for; none is before.

        """
        frames.check_nulls(nulls)
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
                check_arguments(mechanisms, ids, known)
                places = {name: place for place, name in enumerate(known)}
                among = [places[name] for name in ids]
                released = [
                    (places[name], schema.field(places[name]), name, mechanism)
                    for name, mechanism in mechanisms.items()
                ]
            rows = _rows([batch.column(place) for place in among], batch.num_rows)
            noisy = batch
            for place, field, name, mechanism in released:
                draws, counts = self._draws(mechanism, name, rows), batch.column(place)
                column = frames.noisy_column(draws, f"column {name!r}", counts, nulls, threads)
                noisy = noisy.set_column(place, field, column)
            yield noisy

    def wipe(self) -> None:
        """Overwrite the key. What it released stays; nothing more can be."""
        self._core.wipe()

    def _draws(self, mechanism: GeometricMechanism, name: str, ids: _core.Ids) -> Any:
        if not isinstance(mechanism, GeometricMechanism):
            kind = type(mechanism).__name__
            raise TypeError(f"mechanism is of type {kind}: give a GeometricMechanism")
        return _Draws(self._core, mechanism, name, ids)

    def __repr__(self) -> str:
        return "ReleaseKey(...)"

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return _from_secret, (self._core.secret(),)


class Release(Generic[_Frame]):
    """What an engine releases, lazily: :attr:`frame`, until its key is wiped.

    In a ``with`` statement it gives the frame and wipes the key at the end:

        with geomdp.spark.release_columns(counts, {"n": mechanism}, ["city"]) as noisy:
            noisy.write.parquet("noisy")
    """

    __slots__ = ("_wipe", "frame")

    def __init__(self, frame: _Frame, wipe: Callable[[], None]) -> None:
        #: Of the engine. Evaluated again, it gives the same noisy counts.
        self.frame = frame
        self._wipe = wipe

    def wipe(self) -> None:
        """Take the key away. What was written stays; evaluating the frame again fails."""
        self._wipe()

    def __enter__(self) -> _Frame:
        return self.frame

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.wipe()


def check_arguments(
    mechanisms: Mapping[str, GeometricMechanism], ids: Sequence[str], names: list[str]
) -> None:
    """Check which columns are to be released and which are ids, for an adapter to an engine.

    Parameters
    ----------
    mechanisms, ids
        As in :meth:`ReleaseKey.release_columns`.
    names : list of str
        Of all columns.

    Raises
    ------
    TypeError
        If `mechanisms` is not a dict of mechanisms, or `ids` not a sequence of str.
    ValueError
        If either is empty, an id is given twice, or a column is both.
    KeyError
        If there is no such column, or several of the name.

    """
    if not isinstance(mechanisms, Mapping):
        kind = type(mechanisms).__name__
        raise TypeError(f"mechanisms is a {kind}: give a dict of column names and mechanisms")
    for each in mechanisms.values():
        if not isinstance(each, GeometricMechanism):
            kind = type(each).__name__
            raise TypeError(f"mechanisms with a {kind} is not accepted: give GeometricMechanisms")
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        raise TypeError(f"ids = {ids!r} is not accepted: give a list of column names")
    if not mechanisms or not ids:
        name = "ids" if mechanisms else "mechanisms"
        raise ValueError(f"{name} is empty: give one column at least")
    if len({*ids, *mechanisms}) != len(ids) + len(mechanisms):
        raise ValueError(
            f"ids = {list(ids)} are not accepted: give each once, and none that is released"
        )
    for name in [*ids, *mechanisms]:
        frames.only(name, names)


class _Draws:
    """What stands for a mechanism here: each call draws for the next counts."""

    def __init__(
        self,
        key: _core.ReleaseKey,
        mechanism: GeometricMechanism,
        name: str,
        ids: _core.Ids,
    ) -> None:
        self._key, self._mechanism, self._name = key, mechanism._core, name
        self._ids, self._next = ids, 0

    def release(self, counts: Array, *, threads: int | None = None) -> Array:
        most, start = _parameters.threads(threads), self._next
        # In the order of the ids, whatever that of the memory.
        array = np.asarray(counts, order="C")
        self._next += array.size

        def noise(source: Array, target: Array, dtype: str, interruptible: bool) -> None:
            self._mechanism.release_keyed(
                self._key,
                self._name,
                self._ids,
                start,
                source,
                target,
                dtype,
                interruptible,
                most,
            )

        return _arrays.release(array, None, noise)


def _from_secret(secret: bytes) -> ReleaseKey:
    key = ReleaseKey.__new__(ReleaseKey)
    key._core = _core.ReleaseKey(secret)
    return key


def _rows(columns: Sequence[Any], size: int) -> _core.Ids:
    ids = _core.Ids(size)
    for column in columns:
        values, nulls, data = _ids(column)
        if (found := len(values) - (data is not None)) != size:
            raise ValueError(f"ids for {found} counts are not accepted: give those of {size}")
        if data is None:
            ids.add_integers(values, nulls, values.dtype.kind == "i")
        else:
            ids.add_bytes(values, data, nulls)
    return ids


def _ids(column: Any) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
    """Return integers, nulls and None; or the offsets of bytes, nulls and the bytes."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        _arrays.refuse_masked("ids", column)
        wide = np.uint64 if column.dtype.kind == "u" else np.int64
        flat = np.ravel(column).astype(wide, copy=False)
        return np.require(flat, requirements="A"), None, None
    array = frames.to_arrow("ids", column)
    if (dtype := _WIDE.get(str(array.type))) is None:
        array = _plain(array)
        dtype = _WIDE.get(str(array.type))
    if dtype is not None:
        return _items(array, dtype), _nulls(array), None
    offsets = _items(array, _WIDE["int64"], more=1)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    # A slice has the bytes of the whole array.
    return offsets, _nulls(array), data[offsets[0] : offsets[-1]]


def _plain(array: Any) -> Any:
    """Return ids of any type as integers of 64 bits or as bytes."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        # Dates, times and durations are integers in memory.
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_integer(array.type) or pa.types.is_boolean(kind):
        return array if kind == pa.uint64() else array.cast(pa.int64())
    if str(kind).removeprefix("large_").removesuffix("_view") in ("string", "binary"):
        return array.cast(pa.large_binary())
    raise TypeError(
        f"ids of type {kind} are not accepted: give integers, bools, strings, bytes or times"
    )


def _items(array: Any, dtype: np.dtype[Any], more: int = 0) -> NDArray[Any]:
    """Return the memory of an array of PyArrow."""
    if not len(array):
        return np.zeros(more, dtype)
    items = frames.memory(array, dtype, more)
    # What came over a network may lie anywhere.
    return items if items.flags.aligned else items.copy()


def _nulls(array: Any) -> NDArray[Any] | None:
    return np.asarray(array.is_null()).view(np.uint8) if array.null_count else None
