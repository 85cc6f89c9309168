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

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar, cast

import numpy as np

from geomdp._release.arrays import Array
from geomdp._release.columns import (
    Noise,
    Nulls,
    arrow,
    check_nulls,
    column,
    names,
    narrow,
    narwhals,
    noisy,
    noisy_columns,
    only,
)
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.specification import checked

__all__ = ["count", "release", "release_columns"]

_Column = TypeVar("_Column")
_Frame = TypeVar("_Frame")


def release(
    mechanism: GeometricMechanism,
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
    return cast(_Column, noisy(_noise(mechanism, threads), "counts", counts, nulls))


def release_columns(
    frame: _Frame,
    mechanisms: Mapping[Any, GeometricMechanism],
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
    noises = {name: _noise(each, threads) for name, each in mechanisms.items()}
    return cast(_Frame, noisy_columns(frame, noises, nulls))


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
    nw = narwhals()
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


def _noise(mechanism: GeometricMechanism, threads: int | None) -> Noise:
    checked(mechanism)

    def noise(counts: Array) -> Array:
        return mechanism.release(counts, threads=threads)

    return noise


def _categories(column: Any) -> tuple[Any, Any]:
    """Return narwhals' view of a column to count, and a native column of the type of its levels."""
    if arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        column = pa.chunked_array([column])
    wanted = "a column, or with a mapping of levels a data frame"
    series = narrow("data", column, wanted, series_only=True)
    nw, native = narwhals(), series.to_native()
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series, native
    if arrow(native):
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
        dtype = kind.type if arrow(kind) else kind.dtype
        raise ValueError(f"levels of {label!r} are not accepted: give values of its type, {dtype}")
    return items


def _like(kind: Any, items: list[Any]) -> Any:
    """Return narwhals' view of a column of the library and type of another."""
    if arrow(kind):
        import pyarrow as pa  # noqa: PLC0415

        native = pa.chunked_array([pa.array(items, kind.type)])
    else:
        native = type(kind)(items, dtype=kind.dtype)
    return narwhals().from_native(native, series_only=True)


def _items(series: Any) -> list[Any]:
    """Return the items of a column, each kind of null as None."""
    missing = series.is_null().to_list()
    return [None if null else x for x, null in zip(series.to_list(), missing, strict=True)]


def _joined(names: Sequence[str], series: Sequence[Any]) -> Any:
    """Return a frame of columns by these names."""
    first, *others = (each.alias(name) for name, each in zip(names, series, strict=True))
    return first.to_frame().with_columns(*others)
