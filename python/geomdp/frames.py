"""Noise for columns of counts: of pandas, Polars, PyArrow, and what else narwhals reads.

>>> import pandas as pd
>>> from geomdp import GeometricMechanism, frames
>>> counts = pd.Series([12, 7, 9], index=["x", "y", "z"], name="n", dtype="Int16")
>>> noisy = GeometricMechanism(1.0).release(counts)
>>> noisy.dtype, noisy.name, list(noisy.index)
(Int16Dtype(), 'n', ['x', 'y', 'z'])

It needs the extra ``frames``, and no library but that of the columns. A column goes to numpy,
through :meth:`geomdp.GeometricMechanism.release`, and back; its library, type, name, index and
place in the frame stay. What a release protects is as for arrays: several columns that the same
person is counted in are several releases, whose losses add up (``docs/frames.md``).
"""

import importlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geomdp import GeometricMechanism

__all__ = ["count", "release", "release_columns"]

Nulls = Literal["refuse", "keep"]
_FRAME = "a data frame, collected if it is lazy"
_ARROW_FRAMES = ("Table", "RecordBatch")
#: By the names that all libraries give them.
_DTYPES = {
    kind: np.dtype(kind)
    for kind in (f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
}
_Column = TypeVar("_Column")
_Frame = TypeVar("_Frame")


def release(
    mechanism: "GeometricMechanism",
    counts: _Column,
    *,
    nulls: Nulls = "refuse",
    threads: int | None = None,
) -> _Column:
    """Return a noisy column; ``mechanism.release(counts)`` is the same without nulls.

    Parameters
    ----------
    mechanism
        What makes the noise.
    counts : column
        A Series of pandas (of numpy's, pandas' or Arrow's types) or Polars, an Array or
        ChunkedArray of PyArrow, or any other Series that narwhals takes; of an integer type of 8
        to 64 bits.
    nulls : {"refuse", "keep"}
        "keep" leaves null what is null, and makes noise for the others. Then the output tells,
        without any noise, which counts are null: that must be known anyway, or depend on nobody.
        Counts that the library still has in memory behind nulls are neither read nor returned.
    threads : int, optional
        As in :meth:`geomdp.GeometricMechanism.release`.

    Returns
    -------
    column
        Of the library, type, name, index and chunks of the counts, in memory of its own. Behind
        nulls are zeros, or noise added to zeros. The attributes (``attrs``) of pandas are left out.

    Raises
    ------
    TypeError
        If the counts are not a column of integers.
    ValueError
        If there are nulls that are to be refused, `nulls` is something else, or the counts are
        unsigned and the mechanism has no bounds (``docs/bounds.md``).
    ImportError
        If narwhals is not installed, but for PyArrow.

    """
    check_nulls(nulls)
    return cast(_Column, noisy_column(mechanism, "counts", counts, nulls, threads))


def release_columns(
    frame: _Frame,
    mechanisms: "Mapping[Any, GeometricMechanism]",
    *,
    nulls: Nulls = "refuse",
    threads: int | None = None,
) -> _Frame:
    """Return the frame with noise in some of its columns; the others are as they were.

    One person's change of the frame costs the sum of the losses ``mechanism.map(distance)``, each
    for the distance that the person makes in that column.

    Parameters
    ----------
    frame : data frame
        Of pandas or Polars, a Table or RecordBatch of PyArrow, or any other that narwhals takes
        and that is not lazy.
    mechanisms : mapping of column names to mechanisms
        For the columns to be noised. Labels of pandas need not be strings.
    nulls, threads
        As in :func:`release`.

    Returns
    -------
    data frame
        Of the same library, columns in the same order and of the same types, and the same index.
        It is returned as a whole or not at all. The other columns of pandas are copied, since they
        may share an array with the exact counts, and its attributes (``attrs``) are left out. The
        other columns of Arrow and Polars keep their memory.

    Raises
    ------
    KeyError
        If there is not exactly one column of a name.
    TypeError, ValueError, ImportError
        As in :func:`release`.

    """
    check_nulls(nulls)
    if not isinstance(mechanisms, Mapping):
        raise TypeError(
            f"mechanisms is a {type(mechanisms).__name__}: give a mapping of column names"
        )
    known, noisy = names(frame), {}
    for name, mechanism in mechanisms.items():
        only(name, known)
        counts = column(frame, name)
        noisy[known.index(name)] = noisy_column(
            mechanism, f"column {name!r}", counts, nulls, threads
        )
    if _arrow(frame) in _ARROW_FRAMES:
        arrow: Any = frame
        for place, each in noisy.items():
            arrow = arrow.set_column(place, arrow.schema.field(place), each)
        return cast(_Frame, arrow)
    narrow = _narrow("frame", frame, _FRAME, eager_only=True)
    native = narrow.to_native()
    if hasattr(native, "isetitem"):
        # By place, since narwhals takes no labels of pandas but strings.
        native = native.copy(deep=False)
        # They may hold anything.
        native.attrs = {}
        for place, each in noisy.items():
            native.isetitem(place, each.array)
        # Pandas keeps columns of a type in one array, which would still hold the exact counts.
        return cast(_Frame, native.copy())
    nw = _narwhals()
    columns = [nw.from_native(each, series_only=True) for each in noisy.values()]
    return cast(_Frame, narrow.with_columns(*columns).to_native())


def count(
    data: Any, levels: Sequence[Any] | Mapping[Any, Sequence[Any]], *, name: str = "count"
) -> Any:
    """Return how many rows there are of each given level, as a frame to be released.

    The rows of the result and their order follow from the levels alone, and a level that no row has
    counts 0. ``value_counts()`` shows the levels that occur, in the order of their true counts, and
    noise does not hide either.

    Parameters
    ----------
    data : column or data frame
        A Series of pandas or Polars, or an Array or ChunkedArray of PyArrow; or a frame, not lazy.
    levels : sequence, or mapping of column names to sequences
        The levels to count, in the order of the result; for a frame, those of each column. Take
        them from public knowledge, not from the data. Rows with other levels are not counted, nor
        are nulls, unless None is a level.
    name : str
        Of the column of counts.

    Returns
    -------
    data frame
        Of the same library (of PyArrow, a Table). The columns of levels have the names and types of
        the data; categorical ones have the type of their categories, and a column without a name is
        called ``level``. The last column holds the counts, int64. Several columns of levels give
        all combinations, and the last one changes fastest.

    Raises
    ------
    TypeError
        If the data is neither a column nor a frame, or levels are not a sequence of hashable
        values.
    ValueError
        If there are no levels, a level is repeated or not a value of the type of its column, or the
        name is that of a column of levels.
    KeyError
        If there is not exactly one column of a name.
    ImportError
        If narwhals is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, frames
    >>> people = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"]})
    >>> table = frames.count(people, {"city": ["Bern", "Oslo", "Rome"]})
    >>> table["count"].tolist()
    [0, 1, 2]
    >>> noisy = frames.release_columns(table, {"count": GeometricMechanism(1.0)})
    >>> noisy["city"].tolist()
    ['Bern', 'Oslo', 'Rome']

    """
    nw = _narwhals()
    if isinstance(levels, Mapping):
        known = names(data)
        for label in levels:
            only(label, known)
        labels, chosen = list(levels), list(levels.values())
        columns = [column(data, label) for label in labels]
    else:
        own = getattr(data, "name", None)
        labels, chosen, columns = ["level" if own is None else own], [levels], [data]
    if not labels:
        raise ValueError("levels is empty: give those of one column at least")
    if name in labels:
        raise ValueError(f"name = {name!r} is not accepted: give one that no column of levels has")
    # By place, since narwhals takes no labels of pandas but strings.
    keys = [str(place) for place in range(len(labels))]
    series, kinds = zip(*map(_categories, columns), strict=True)
    kept = [_levels(*each) for each in zip(labels, kinds, chosen, strict=True)]
    counted = _joined(keys, series).group_by(keys).agg(nw.len().alias("n"))
    found: Counter[tuple[Any, ...]] = Counter()
    for *row, n in zip(*(_items(counted[key]) for key in (*keys, "n")), strict=True):
        found[tuple(row)] += n
    rows = list(product(*kept))
    columns = [list(values) for values in zip(*rows, strict=True)]
    result = [_like(kind, values) for kind, values in zip(kinds, columns, strict=True)]
    backend = series[0].implementation
    result.append(nw.new_series("", [found[row] for row in rows], nw.Int64, backend=backend))
    table = _joined([*keys, "n"], result)
    return table.rename(dict(zip([*keys, "n"], [*labels, name], strict=True))).to_native()


def is_column(value: Any) -> bool:
    """Return whether this may be a column, without an import of its library."""
    return (
        hasattr(value, "__arrow_c_stream__")
        or hasattr(value, "__arrow_c_array__")
        or type(value).__module__.startswith("pandas.")
    )


def names(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame: strings, or any labels of pandas."""
    if _arrow(frame) in _ARROW_FRAMES:
        return list(frame.schema.names)
    return list(_narrow("frame", frame, _FRAME, eager_only=True).to_native().columns)


def column(frame: Any, name: Hashable) -> Any:
    """Return a column of a frame that has one of this name."""
    place = names(frame).index(name)
    if _arrow(frame) in _ARROW_FRAMES:
        return frame.column(place)
    narrow = _narrow("frame", frame, _FRAME, eager_only=True)
    native = narrow.to_native()
    return native.iloc[:, place] if hasattr(native, "iloc") else narrow[:, place].to_native()


def to_arrow(name: str, column: Any) -> Any:
    """Return a column, or an array of numpy, as an Array of PyArrow."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(column, np.ndarray):
        column = pa.array(column.ravel())
    elif (kind := _arrow(column)) == "Array":
        return column
    elif kind != "ChunkedArray":
        wanted = "arrays or columns"
        column = _narrow(name, column, wanted, series_only=True).to_arrow()
    return column.combine_chunks() if _arrow(column) == "ChunkedArray" else column


def noisy_column(
    mechanism: "GeometricMechanism", name: str, counts: Any, nulls: Nulls, threads: int | None
) -> Any:
    if not callable(getattr(mechanism, "release", None)):
        raise TypeError(f"mechanism is a {type(mechanism).__name__}: give a GeometricMechanism")
    if (kind := _arrow(counts)) == "ChunkedArray":
        import pyarrow as pa  # noqa: PLC0415

        _dtype(name, str(counts.type))
        chunks = [_array(mechanism, name, chunk, nulls, threads) for chunk in counts.chunks]
        return pa.chunked_array(chunks, type=counts.type)
    if kind == "Array":
        return _array(mechanism, name, counts, nulls, threads)
    nw = _narwhals()
    wanted = "a column, or release_columns the frame"
    series = _narrow(name, counts, wanted, series_only=True)
    dtype = _dtype(name, str(series.dtype).lower())
    missing = series.is_null()
    if hidden := _any(name, bool(missing.any()), nulls):
        # The counts behind nulls are not released.
        series = series.fill_null(0)
    noisy = mechanism.release(series.to_numpy().astype(dtype, copy=False), threads=threads)
    column = nw.new_series(series.name, noisy, series.dtype, backend=series.implementation)
    if (index := nw.maybe_get_index(series)) is not None:
        # Narwhals' maybe_set_index takes an index item by item, and its types do not tell those of
        # numpy, pandas and Arrow apart.
        native = column.to_native().set_axis(index).astype(series.to_native().dtype)
        column = nw.from_native(native, series_only=True)
    if hidden:
        # In the noisy column: the old one still holds exact counts behind its nulls.
        column = column.scatter(missing.arg_true(), None)
    return column.to_native()


def memory(array: Any, dtype: np.dtype[Any], more: int = 0) -> NDArray[Any]:
    """Return what an Array of PyArrow that is not empty has in its second buffer; `more` items."""
    start = array.offset * dtype.itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array) + more, start)


def _categories(column: Any) -> tuple[Any, Any]:
    """Return narwhals' view of a column to count, and a native column of the type of its levels."""
    if _arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        column = pa.chunked_array([column])
    wanted = "a column, or with a mapping of levels a data frame"
    series = _narrow("data", column, wanted, series_only=True)
    nw, native = _narwhals(), series.to_native()
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series, native
    if _arrow(native):
        native = native.cast(native.type.value_type)
        return nw.from_native(native, series_only=True), native
    if hasattr(native, "iloc"):
        return series, native.cat.categories.to_series()
    series = series.cast(nw.String)
    return series, series.to_native()


def _levels(label: Hashable, kind: Any, levels: Any) -> list[Any]:
    """Return levels as the items of a column of this type."""
    if not isinstance(levels, Sequence | np.ndarray) or isinstance(levels, str | bytes):
        raise TypeError(f"levels of {label!r} are a {type(levels).__name__}: give a list")
    given = list(levels)
    try:
        repeated = len(set(given)) < len(given)
    except TypeError:
        raise TypeError(f"levels of {label!r} are not accepted: give hashable values") from None
    if repeated or not given:
        raise ValueError(f"levels of {label!r} are empty or repeat one: give each once")
    try:
        items = _items(_like(kind, given))
        same = all(x is y or bool(x == y) for x, y in zip(items, given, strict=True))
    except Exception:  # Each library has its own.
        same = False
    if not same:
        dtype = kind.type if _arrow(kind) else kind.dtype
        raise ValueError(f"levels of {label!r} are not accepted: give values of its type, {dtype}")
    return items


def _like(kind: Any, items: list[Any]) -> Any:
    """Return narwhals' view of a column of the library and type of another."""
    if _arrow(kind):
        import pyarrow as pa  # noqa: PLC0415

        native = pa.chunked_array([pa.array(items, kind.type)])
    else:
        native = type(kind)(items, dtype=kind.dtype)
    return _narwhals().from_native(native, series_only=True)


def _items(series: Any) -> list[Any]:
    """Return the items of a column, each kind of null as None."""
    missing = series.is_null().to_list()
    return [None if null else x for x, null in zip(series.to_list(), missing, strict=True)]


def _joined(names: Sequence[str], series: Sequence[Any]) -> Any:
    """Return a frame of columns by these names."""
    first, *others = (each.alias(name) for name, each in zip(names, series, strict=True))
    return first.to_frame().with_columns(*others)


def _array(
    mechanism: "GeometricMechanism", name: str, array: Any, nulls: Nulls, threads: int | None
) -> Any:
    """Return a noisy Array of PyArrow."""
    import pyarrow as pa  # noqa: PLC0415

    dtype, missing = _dtype(name, str(array.type)), None
    # The very memory of the array, nulls or not. An empty slice has that of its parent.
    counts = memory(array, dtype) if len(array) else np.empty(0, dtype)
    if _any(name, array.null_count > 0, nulls):
        missing = np.asarray(array.is_null())
        # The counts behind nulls are not released.
        counts = np.where(missing, dtype.type(0), counts)
    noisy = mechanism.release(counts, threads=threads)
    if missing is None:
        # As pa.array would, in less time.
        buffers = [None, pa.py_buffer(noisy)]
        return pa.Array.from_buffers(array.type, len(array), buffers)
    return pa.array(noisy, type=array.type, mask=missing)


def _dtype(name: str, kind: str) -> np.dtype[Any]:
    if (dtype := _DTYPES.get(kind)) is None:
        hint = " (astype('Int64') makes such of pandas' floats)" if kind.startswith("float") else ""
        raise TypeError(
            f"{name} of type {kind} is not accepted: give integers of up to 64 bits{hint}"
        )
    return dtype


def _any(name: str, found: bool, nulls: Nulls) -> bool:
    """Return whether there are nulls, if those may be kept."""
    if found and nulls == "refuse":
        raise ValueError(
            f"{name} with nulls is not accepted: "
            "fill them, or give geomdp.frames nulls='keep', which shows them"
        )
    return found


def _narwhals() -> Any:
    try:
        return importlib.import_module("narwhals")
    except ImportError as error:
        raise ImportError("columns need narwhals: pip install 'geomdp[frames]'") from error


def _narrow(name: str, value: Any, wanted: str, **kind: bool) -> Any:
    """Return narwhals' view of a Series or a frame."""
    try:
        return _narwhals().from_native(value, **kind)
    except TypeError:
        raise TypeError(f"{name} is a {type(value).__name__}: give {wanted}") from None


def check_nulls(nulls: str) -> None:
    if nulls not in ("refuse", "keep"):
        raise ValueError(f"nulls = {nulls!r} is not accepted: give 'refuse' or 'keep'")


def only(name: Hashable, names: list[Any]) -> None:
    if (found := names.count(name)) != 1:
        raise KeyError(
            f"column {name!r} is there {found} times: give a name that is once in {names}"
        )


def _arrow(value: Any) -> str:
    """Return which of PyArrow's classes this is of, or "", without importing it."""
    kind: Any = type(value)
    return _arrow_name(kind)


@lru_cache(maxsize=128)
def _arrow_name(kind: type) -> str:
    known = ("Table", "RecordBatch", "Array", "ChunkedArray")
    names = (c.__name__ for c in kind.__mro__ if c.__module__.startswith("pyarrow"))
    return next((name for name in names if name in known), "")
