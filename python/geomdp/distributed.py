"""Noise for engines that may run a task twice: the same task, the same noise.

>>> import numpy as np
>>> from geomdp import GeometricMechanism
>>> from geomdp.distributed import ReleaseKey
>>> mechanism, counts, cities = GeometricMechanism(1.0), np.array([12, 7, 9]), np.array([4, 1, 7])
>>> key = ReleaseKey()
>>> noisy = key.release(mechanism, counts, cities, name="n", part=True)
>>> again = key.release(mechanism, counts[::-1], cities[::-1], name="n", part=True)
>>> noisy.tolist() == again[::-1].tolist()
True
>>> key.wipe()

A key meets a table once: changed data needs a new key, and is paid for again. :mod:`geomdp.spark`,
:mod:`geomdp.dask` and :mod:`geomdp.ray` see to that for their engines, and check what nobody but
they can. ``docs/distributed.md`` has the construction and why it is private. On one
machine use :meth:`geomdp.GeometricMechanism.release`, which has no key that could be kept.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from geomdp import _core
from geomdp._release import arrays, columns, parameters
from geomdp._release.arrays import Array
from geomdp._release.columns import Nulls
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.specification import checked

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["Release", "ReleaseKey", "check_arguments"]

#: Integers that the core takes as ids, by the names that Arrow gives them.
_WIDE = {name: np.dtype(name) for name in ("int64", "uint64")}
#: Of the construction of the noise: both ends of a pickle must have the same.
_VERSION = 1
_Frame = TypeVar("_Frame")


class ReleaseKey:
    """The secret of one release: 32 bytes of the operating system.

    The noise of a count follows from the key, the name of its column, the rate of the mechanism,
    the range of its outputs, the integer type, the ids of the count, and the count itself. Counts
    that differ in any of these have independent noise. Mechanisms of equal rate, like
    ``GeometricMechanism(0.2, 2)`` and ``GeometricMechanism(0.1, 1)``, make the same noise; so do no
    bounds and the limits of the integer type.

    A key meets a table once. If it met two, equal noise would show which of their counts are equal:
    changed data needs a new key, and is paid for again. So a key releases each name once, and
    refuses ids that repeat. Parts of one table are released with ``part=True``, by which the caller
    declares that

    * the ids were compared over all parts, and none repeats,
    * and the table does not change while the key is in use.

    A key knows which names it has released; its pickles and copies do not, so they release parts
    alone.

    Whoever has the key can take the noise off again. It goes to those who hold the counts anyway,
    and is wiped when all is released. Pickling it is how it goes to other processes; nothing else
    shows its bytes.

    Raises
    ------
    OSError
        If the operating system gives no random bytes.

    """

    __slots__ = ("_copied", "_core", "_lock", "_parts")

    def __init__(self) -> None:
        self._begin(_core.ReleaseKey(None), copied=False)

    def _begin(self, core: _core.ReleaseKey, *, copied: bool) -> None:
        self._core, self._copied = core, copied
        #: The released names, and whether each was released in parts.
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
            What makes the noise.
        counts : array or column
            As in :meth:`geomdp.GeometricMechanism.release`.
        ids : array or column, or list or tuple of them
            What tells each count from all others of the release, here and in other calls: an item
            of each, in the order of the counts. Arrays of integers or bools; columns of these, of
            strings, bytes, dates or times. An integer is the same id in any type, and null is one
            as well. Dates and times of different types or units are different ids.
        name : str
            The name of the column, not empty. Columns with different names have independent noise.
        part : bool
            Whether these counts are a part of a table, as declared above. Otherwise they are a
            whole one.
        nulls, threads
            As in :func:`geomdp.frames.release`.

        Returns
        -------
        array or column
            Of the type and shape of the counts.

        Raises
        ------
        ValueError
            If the key has released the name, unless both releases are parts; if ids repeat, unless
            the counts are a part; if the counts are a whole table and the key is a copy; if the key
            is wiped; if there are more or fewer ids than counts; and as the mechanism does.
        TypeError
            If the ids are of another type, the name is not a str, or `part` is not a bool; and as
            the mechanism does.
        OverflowError
            As the mechanism does.

        """
        if not isinstance(name, str):
            raise TypeError(f"name = {name!r} is not accepted: give a str")
        if not name:
            raise ValueError("name = '' is not accepted: give the name of the column")
        columns.check_nulls(nulls)
        self._check([name], part)
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
        frame: _Frame,
        mechanisms: Mapping[str, GeometricMechanism],
        ids: Sequence[str],
        *,
        part: bool = False,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> _Frame:
        """Return the frame with noise in some of its columns, all of them or none.

        Parameters
        ----------
        frame : data frame
            As in :func:`geomdp.frames.release_columns`: of pandas, Polars or PyArrow.
        mechanisms : dict
            The mechanism for each column to release; the names are str.
        ids : sequence of str
            Columns that together tell each row from all others of the release.
        part
            As in :meth:`release`.
        nulls, threads
            As in :func:`geomdp.frames.release_columns`.

        Raises
        ------
        KeyError, TypeError, ValueError, OverflowError
            As there and in :meth:`release`.

        """
        columns.check_nulls(nulls)
        check_arguments(mechanisms, ids, columns.names(frame))
        self._check(mechanisms, part)
        parts = [columns.column(frame, name) for name in ids]
        rows = _rows(parts, len(cast(Sized, frame)), part)
        noises = {name: self._noise(each, name, rows, threads) for name, each in mechanisms.items()}
        noisy = columns.noisy_columns(frame, noises, nulls)
        self._record(mechanisms, part)
        return cast(_Frame, noisy)

    def release_batches(
        self,
        batches: "Iterable[RecordBatch]",
        mechanisms: Mapping[str, GeometricMechanism],
        ids: Sequence[str],
        *,
        part: bool = False,
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
        part : bool
            Must be True, as each batch is a part: no call here has all ids to compare.
        names : list of str, optional
            Of all columns, for batches that call them otherwise; these keep their own.

        Raises
        ------
        KeyError, TypeError, ValueError, OverflowError
            As there, when the noisy batch that they are about is asked for; none is before.

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
                check_arguments(mechanisms, ids, known)
                self._check(mechanisms, part)
                places = {name: place for place, name in enumerate(known)}
                among = [places[name] for name in ids]
                released = [
                    (places[name], schema.field(places[name]), name, mechanism)
                    for name, mechanism in mechanisms.items()
                ]
            rows = _rows([batch.column(place) for place in among], batch.num_rows, part)
            noisy = batch
            for place, field, name, mechanism in released:
                noise = self._noise(mechanism, name, rows, threads)
                column = columns.noisy(noise, f"column {name!r}", batch.column(place), nulls)
                noisy = noisy.set_column(place, field, column)
            self._record(mechanisms, part)
            yield noisy

    def wipe(self) -> None:
        """Overwrite the key. What it released stays; nothing more can be."""
        self._core.wipe()

    def _check(self, names: Iterable[str], part: bool) -> None:
        """Refuse names that this key has released, unless all are parts."""
        if not isinstance(part, bool):
            raise TypeError(f"part = {part!r} is not accepted: give True or False")
        if self._copied and not part:
            raise ValueError(
                "part = False is not accepted: this key is a copy, which releases parts of a table;"
                " give a whole one a ReleaseKey() of its own"
            )
        for name in names:
            parts = self._parts.get(name)
            if parts is not None and not (parts and part):
                raise ValueError(
                    f"name = {name!r} is not accepted: this key has released it"
                    f" {'in parts' if parts else 'as a whole'}; give other or changed counts"
                    " a ReleaseKey() of their own, which is paid for again"
                )

    def _record(self, names: Iterable[str], part: bool) -> None:
        """Remember what is about to be returned; of two threads that have come so far, one."""
        with self._lock:
            self._check(names, part)
            self._parts.update(dict.fromkeys(names, part))

    def _noise(
        self, mechanism: GeometricMechanism, name: str, ids: _core.Ids, threads: int | None
    ) -> columns.Noise:
        """Return the noise for counts with these ids: each call draws for the next ones."""
        plan, most, start = checked(mechanism)._core, parameters.threads(threads), 0

        def noise(counts: Array) -> Array:
            nonlocal start
            # In the order of the ids, whatever that of the memory.
            array, first = np.asarray(counts, order="C"), start
            start += array.size

            def draw(source: Array, target: Array, dtype: str, interruptible: bool) -> None:
                plan.release_keyed(
                    self._core, name, ids, first, source, target, dtype, interruptible, most
                )

            return arrays.release(array, None, draw)

        return noise

    def __repr__(self) -> str:
        return "ReleaseKey(...)"

    def __reduce__(self) -> tuple[Any, tuple[int, bytes]]:
        return _from_pickle, (_VERSION, self._core.secret())


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
        If `mechanisms` is not a dict of mechanisms, by names that are str, or `ids` not a sequence
        of str.
    ValueError
        If either is empty, an id is given twice, or a column is both.
    KeyError
        If there is no such column, or several of the name.

    """
    if not isinstance(mechanisms, Mapping):
        kind = type(mechanisms).__name__
        raise TypeError(f"mechanisms is a {kind}: give a dict of column names and mechanisms")
    for name, each in mechanisms.items():
        if not isinstance(name, str):
            raise TypeError(f"column {name!r} is not accepted: rename it, to a str")
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
        columns.only(name, names)


def _from_pickle(version: int, *content: Any) -> ReleaseKey:
    if version != _VERSION:
        raise ValueError(
            f"a ReleaseKey pickled in version {version} is not accepted: pickle it by a geomdp that"
            f" writes version {_VERSION}, as this one does"
        )
    key = ReleaseKey.__new__(ReleaseKey)
    key._begin(_core.ReleaseKey(*content), copied=True)
    return key


def _rows(given: Sequence[Any], size: int, part: bool) -> _core.Ids:
    ids, plain = _core.Ids(size), [_plain(column) for column in given]
    for column in plain:
        if (found := len(column)) != size:
            raise ValueError(f"ids for {found} counts are not accepted: give those of {size}")
    if not part and plain and _repeat(plain):
        raise ValueError("ids that repeat are not accepted: give columns that tell counts apart")
    for column in plain:
        if isinstance(column, np.ndarray):
            ids.add_integers(column, None, column.dtype.kind == "i")
        elif (dtype := _WIDE.get(str(column.type))) is not None:
            ids.add_integers(_items(column, dtype), _nulls(column), dtype.kind == "i")
        else:
            offsets = _items(column, _WIDE["int64"], more=1)
            data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
            # A slice has the bytes of the whole array.
            ids.add_bytes(offsets, data[offsets[0] : offsets[-1]], _nulls(column))
    return ids


def _repeat(given: Sequence[Any]) -> bool:
    """Return whether two rows have the same ids."""
    codes = [
        each
        if isinstance(each, np.ndarray)
        else each.dictionary_encode("encode").indices.to_numpy()
        for each in given
    ]
    order = np.lexsort(codes)
    same = np.ones(order[1:].size, np.bool_)
    for each in codes:
        ordered = each[order]
        same &= ordered[1:] == ordered[:-1]
    return bool(same.any())


def _plain(column: Any) -> Any:
    """Return ids as an array of numpy or Arrow, of integers of 64 bits or of large_binary."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        arrays.refuse_masked("ids", column)
        wide = np.uint64 if column.dtype.kind == "u" else np.int64
        flat = np.ravel(column).astype(wide, copy=False)
        return np.require(flat, requirements="A")
    array = columns.to_arrow("ids", column)
    if str(array.type) in _WIDE:
        return array
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        # In memory an integer, which is another time in another unit.
        items = array.view(pa.binary(kind.bit_width // 8)).cast(pa.large_binary())
        name, space = (pa.scalar(text, pa.large_binary()) for text in (str(kind).encode(), b" "))
        return pc.binary_join_element_wise(name, items, space)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
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
    items = columns.memory(array, dtype, more)
    # What came over a network may lie anywhere.
    return items if items.flags.aligned else items.copy()


def _nulls(array: Any) -> NDArray[Any] | None:
    return np.asarray(array.is_null()).view(np.uint8) if array.null_count else None
