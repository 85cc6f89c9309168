"""Releases of columns of counts and the steps before them, for pandas, Polars and PyArrow.

This module needs the extra ``frames``, the library of the columns, and no other; any library that
narwhals reads will do. A column is converted to numpy, released by
:meth:`geomdp.GeometricMechanism.release` and converted back; its library, type, name, index and
position in the frame stay. Releases protect columns as they protect arrays: if an individual is
counted in several columns, these are several releases and their privacy losses add up
(``docs/frames.md``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from geomdp import _core
from geomdp._release import notebook, parameters
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
from geomdp._release.parameters import Integer
from geomdp._release.specification import checked
from geomdp._release.uncopied import Uncopied

__all__ = ["release", "release_columns", "count", "Table", "bound_contributions"]

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
        The mechanism that adds the noise.
    counts : column
        A Series of pandas (with numpy, pandas or Arrow types) or Polars, an Array or ChunkedArray
        of PyArrow, or any other Series that narwhals accepts; of an integer type of 8 to 64 bits.
    nulls : {"refuse", "keep"}
        "keep" leaves nulls in place and adds noise to the other counts. The output then shows,
        without any noise, which counts are null: this must be public or depend on no individual.
        Counts that the library still holds in memory behind nulls are neither read nor returned.
    threads : int, optional
        The greatest number of threads for a large column; by default as many as are faster.

    Returns
    -------
    column
        The noisy counts with the same library, type, name, index and chunks, in memory of their
        own. Null slots hold zeros, or noise added to zeros. Pandas' ``attrs`` are left out.

    Raises
    ------
    TypeError
        If the counts are not a column of integers.
    ValueError
        If there are nulls and they are refused, `nulls` has another value, or the counts are
        unsigned and the mechanism has no bounds (``docs/bounds.md``).
    ImportError
        If narwhals is not installed; PyArrow columns do not need it.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, frames
    >>> counts = pd.Series([12, None, 9], name="n", dtype="Int64")
    >>> noisy = frames.release(GeometricMechanism(1.0), counts, nulls="keep")
    >>> noisy.isna().tolist()
    [False, True, False]

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
    """Return the frame with noise added to some of its columns and the others unchanged.

    The privacy loss of an individual is the sum of ``mechanism.map(distance)`` over the columns,
    where `distance` is the individual's greatest change of that column.

    Parameters
    ----------
    frame : data frame
        A frame of pandas or Polars, a Table or RecordBatch of PyArrow, or any other frame that
        narwhals accepts and that is not lazy.
    mechanisms : mapping of column names to mechanisms
        The mechanisms of the columns to release. Pandas' labels need not be strings.
    nulls, threads
        As in :func:`release`, for each column.

    Returns
    -------
    data frame
        A frame of the same library, with the same index and with columns of the same types in the
        same order. If anything fails, nothing is returned. In pandas the other columns and the
        index are copied, since they may share an array with the exact counts, and ``attrs`` are
        left out. In Arrow and Polars the other columns keep their memory. Arrow's metadata of the
        frame and of the released columns are left out, but for the types and index of pandas.

    Raises
    ------
    KeyError
        If a name does not match exactly one column.
    TypeError, ValueError, ImportError
        As in :func:`release`.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, frames
    >>> frame = pd.DataFrame({"town": ["x", "y"], "n": [12, 7]})
    >>> list(frames.release_columns(frame, {"n": GeometricMechanism(1.0)}).columns)
    ['town', 'n']

    """
    check_nulls(nulls)
    if not isinstance(mechanisms, Mapping):
        raise TypeError(
            f"mechanisms has type {type(mechanisms).__name__}: give a mapping of column names"
        )
    noises = {name: _noise(each, threads) for name, each in mechanisms.items()}
    return cast(_Frame, noisy_columns(frame, noises, nulls))


class Withheld(Uncopied):
    """Base class of objects with exact counts, which no tool shows or copies by walking them."""

    __slots__ = ()
    _uncopied = "it holds exact counts"

    def __dir__(self) -> list[str]:
        # Inspectors and debuggers show the values of these names.
        return [name for name in super().__dir__() if name not in ("frame", *self.__slots__)]


class Table(Withheld):
    """Exact counts of all combinations of levels, made by :func:`count`.

    Its representations, also in notebooks, show the columns and levels and no count. It cannot be
    pickled or copied. ``dir`` leaves out :attr:`frame`, since inspectors and debuggers show the
    value of each name in it.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp.frames import count
    >>> count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
    <Table of 2 counts, not shown; sick: ['yes', 'no']; sensitivity 1>

    """

    __slots__ = ("_frame", "_levels", "_name", "_sensitivity")

    def __init__(
        self, frame: Any, levels: dict[Any, list[Any]], name: str, sensitivity: int
    ) -> None:
        self._frame, self._levels, self._name = frame, levels, name
        self._sensitivity = sensitivity

    @property
    def frame(self) -> Any:
        """The exact counts, in the library of the data. The frame shows and pickles them."""
        return self._frame

    @property
    def levels(self) -> dict[Any, list[Any]]:
        """The levels of each column, followed by its labels for other records and for margins."""
        return self._levels

    @property
    def name(self) -> str:
        """The name of the column of counts."""
        return self._name

    @property
    def sensitivity(self) -> int:
        """The number of cells in which one record is counted.

        This is 2 to the number of columns with margins: the L1 distance by which the table changes
        if a record is added or removed.
        """
        return self._sensitivity

    def release(self, mechanism: GeometricMechanism, *, threads: int | None = None) -> Any:
        """Return the frame with noise added to the counts.

        Parameters and errors are those of :func:`geomdp.frames.release`.

        >>> import pandas as pd
        >>> from geomdp import GeometricMechanism, frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> table.release(GeometricMechanism(1.0))["sick"].tolist()
        ['yes', 'no']
        """
        try:
            return release_columns(self._frame, {self._name: mechanism}, threads=threads)
        except BaseException as error:
            # The local variables of these calls hold exact counts, and some tracebacks show them.
            raise error.with_traceback(None) from None

    def map(self, mechanism: GeometricMechanism, records: Integer = 1) -> float:
        """Return the privacy loss of a release: ``mechanism.map(records * sensitivity)``.

        Parameters
        ----------
        mechanism
            The mechanism of the release.
        records : int
            The greatest number of records that an individual adds or removes. An individual whose
            record may change adds one and removes one.

        Raises
        ------
        TypeError, ValueError
            If `mechanism` is not a mechanism, or `records` not an integer of at least 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import GeometricMechanism, frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"], margins="all")
        >>> table.map(GeometricMechanism(0.5))
        1.0

        """
        distance = parameters.at_least("records", records, 0) * self.sensitivity
        return cast(float, checked(mechanism).map(distance))

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{label}: {parameters.shown(each)}" for label, each in self.levels.items()
        )
        cells = math.prod(map(len, self.levels.values()))
        return f"<Table of {cells} counts, not shown; {levels}; sensitivity {self.sensitivity}>"

    def _repr_html_(self) -> str:
        return notebook.preformatted(repr(self))


def count(
    data: Any,
    levels: Sequence[Any] | Mapping[Any, Sequence[Any]],
    *,
    name: str = "count",
    other: Any = None,
    margins: Any = None,
) -> Table:
    """Count the records of each given level, or of each combination of levels.

    The rows of the table and their order follow from the arguments alone, and a level without
    records counts 0. ``value_counts()`` shows the levels that occur, in the order of their true
    counts, and noise hides neither.

    Parameters
    ----------
    data : column or data frame
        A Series of pandas or Polars, an Array or ChunkedArray of PyArrow, or a frame that is not
        lazy. Each row is a record.
    levels : sequence, or mapping of column names to sequences
        The levels to count, in the order of the result; for a frame, those of each column. Take
        them from public knowledge, not from the data. Nulls are counted if None is a level.
    name : str
        The name of the column of counts.
    other : label, or mapping of column names to labels
        A row of this label follows the levels of each column, or of the columns in the mapping, and
        counts the records of all other values, nulls included. Without it, a record outside the
        levels is counted nowhere, in no margin either.
    margins : label, or mapping of column names to labels
        A row of this label comes last in each column, or in the columns of the mapping, and counts
        the sum of the rows above. Each record is then counted in 2 to the number of such columns
        cells. In a row of `margins` or `other`, all records of an individual may be in one cell.

    Returns
    -------
    Table
        The exact counts and their sensitivity. The frame is of the library of the data (a Table of
        PyArrow for Arrow). Its columns of levels have the names and types of the data; categorical
        ones have the type of their categories, and a column without a name is called ``level``. The
        last column holds the counts, int64. The last column of levels changes fastest.

    Raises
    ------
    TypeError
        If the data is neither a column nor a frame, its library cannot compare the values of a
        column (such as lists), levels are not a sequence of hashable values, `name` is not a str,
        or `other` or `margins` is a bool.
    ValueError
        If there are no levels, a level or label is repeated or not a value of the type of its
        column, the name is that of a column of levels, or a column of Arrow is damaged.
    KeyError
        If a name does not match exactly one column.
    ImportError
        If narwhals is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, frames
    >>> people = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "sick": ["no", "yes", "no"]})
    >>> cities = ["Bern", "Oslo", "Rome"]
    >>> table = frames.count(people, {"city": cities, "sick": ["yes", "no"]}, margins="all")
    >>> table.sensitivity
    4
    >>> mechanism = GeometricMechanism(1.0, sensitivity=table.sensitivity)
    >>> table.map(mechanism)
    1.0
    >>> noisy = table.release(mechanism)
    >>> noisy["sick"].tolist()[:4]
    ['yes', 'no', 'all', 'yes']

    """
    nw = narwhals()
    if isinstance(levels, Mapping):
        known = names(data)
        labels, chosen = list(levels), list(levels.values())
        columns = [column(data, only(label, known)) for label in labels]
    else:
        own = getattr(data, "name", None)
        labels, chosen, columns = ["level" if own is None else own], [levels], [data]
    if not labels:
        raise ValueError("levels is empty: give those of one column at least")
    if not isinstance(name, str):
        raise TypeError(parameters.foreign("name", name, "a str"))
    if name in labels:
        raise ValueError(f"name = {name!r} is not accepted: give one that no column of levels has")
    others, totals = _labels("other", other, labels), _labels("margins", margins, labels)
    # Columns are named by position, since narwhals accepts only strings as names in pandas.
    keys = [str(place) for place in range(len(labels))]
    series, kinds = zip(*map(_categories, columns), strict=True)
    places, shown = list[dict[Any, int]](), dict[Any, list[Any]]()
    for label, kind, values in zip(labels, kinds, chosen, strict=True):
        items = _levels(f"levels of {label!r}", kind, values)
        places.append({item: place for place, item in enumerate(items)})
        for what, extra in (("other", others), ("margins", totals)):
            if label in extra:
                items = [*items, extra[label]]
                given = f"{what} {parameters.given(extra[label])}"
                items = _levels(f"levels of {label!r} with {given}", kind, items)
        shown[label] = items
    counts = np.zeros([len(shown[label]) - (label in totals) for label in labels], np.int64)
    outside = [
        len(each) if label in others else None for label, each in zip(labels, places, strict=True)
    ]
    with _refusing_types("data", columns):
        found = _joined(keys, series).group_by(keys).agg(nw.len().alias("n"))
    for *row, n in zip(*(_items(found[key]) for key in (*keys, "n")), strict=True):
        place = tuple(map(dict.get, places, row, outside))
        if None not in place:
            counts[place] += n
    for axis, label in enumerate(labels):
        if label in totals:
            counts = np.concatenate([counts, counts.sum(axis, keepdims=True)], axis)
    rows = zip(*product(*shown.values()), strict=True)
    result = [_like(kind, list(values)) for kind, values in zip(kinds, rows, strict=True)]
    backend = series[0].implementation
    result.append(nw.new_series("", counts.ravel().tolist(), nw.Int64, backend=backend))
    frame = _joined([*keys, "n"], result)
    native = frame.rename(dict(zip([*keys, "n"], [*labels, name], strict=True))).to_native()
    return Table(native, shown, name, 2 ** len(totals))


def bound_contributions(
    frame: _Frame,
    individual: Any,
    *,
    l0: Integer,
    linf: Integer = 1,
    cells: Sequence[Any] | None = None,
) -> _Frame:
    """Keep at most `l0` cells of each individual, and at most `linf` records in each of them.

    One individual then changes counts of the records by at most ``l0 * linf`` (L1), and by `linf`
    in each of at most `l0` cells. A table with ``other`` or margins, or of other columns, has
    merged cells: one of them may change by all of ``l0 * linf``. ``docs/frames.md`` says which
    numbers :func:`geomdp.accounting.loss_distribution` needs.

    The cells are drawn uniformly from those of the individual, and the records uniformly from those
    of each cell, by fresh entropy of the operating system, from the source of release keys. What is
    kept of one individual does not depend on the others.

    Parameters
    ----------
    frame : data frame
        A frame of pandas or Polars, not lazy. Each row is a record.
    individual : column name
        The column that identifies individuals.
    l0 : int
        The greatest number of cells per individual; at least 1.
    linf : int
        The greatest number of records of an individual in a cell; at least 1.
    cells : sequence of column names, optional
        The columns whose combinations of values are the cells: those to be counted. Null is a
        value of its own, and -0.0 equals 0.0. Without them each record is a cell: at most `l0`
        records of each individual are kept, and `linf` must be 1.

    Returns
    -------
    data frame
        The rows kept, in the order of the input. It is as secret as the input.

    Raises
    ------
    TypeError
        If `frame` is not a frame of pandas or Polars, its library cannot compare the values of a
        column (such as lists), `cells` is not a sequence of names, or a number is not an integer.
    ValueError
        If a number is below 1, `linf` is above 1 without cells, or an individual is null.
    KeyError
        If a name does not match exactly one column.
    OSError
        If the operating system gives no random bytes.
    ImportError
        If narwhals is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import frames
    >>> visits = pd.DataFrame({"who": ["a", "a", "a", "b"], "town": ["x", "y", "x", "x"]})
    >>> kept = frames.bound_contributions(visits, "who", l0=1, linf=1, cells=["town"])
    >>> kept["who"].tolist()
    ['a', 'b']

    """
    within = contributions(l0, linf, cells)
    if arrow(frame):
        raise TypeError(f"frame has type {type(frame).__name__}: give a frame of pandas or Polars")
    known = names(frame)
    columns = [column(frame, only(each, known)) for each in (individual, *(cells or ()))]
    nw, size = narwhals(), len(columns[0])
    series = [_categories(each)[0] for each in columns]
    if series[0].is_null().any():
        raise ValueError(f"column {individual!r} with nulls is not accepted: give every row an id")
    keys = [str(place) for place in range(len(series))]
    backend = series[0].implementation
    orders = [_shuffled(size), _shuffled(size)]
    if cells is None:
        keys, orders = [*keys, "row"], [np.arange(size), *orders]
    series += [nw.new_series("", each, nw.Int64, backend=backend) for each in orders]
    with _refusing_types("frame with columns", columns):
        # Arrow takes -0.0 for a value of its own, unlike the counts.
        series = [each.cast(nw.Float64) + 0.0 if each.dtype.is_float() else each for each in series]
        kept = within(_joined([*keys, "one", "two"], series), keys)["kept"]
        return cast(_Frame, nw.from_native(frame).filter(kept).to_native())


def contributions(l0: Any, linf: Any, cells: Any) -> Callable[[Any, list[str]], Any]:
    """Return a function that marks the rows to keep, of a narwhals frame, in a column ``kept``.

    Its second parameter names the columns of individuals and of cells. The frame has two more
    columns, ``one`` and ``two``, that put the rows in random orders.
    """
    l0, linf = parameters.at_least("l0", l0, 1), parameters.at_least("linf", linf, 1)
    if cells is None and linf > 1:
        raise ValueError(f"linf = {linf} without cells is not accepted: give cells, or l0 = {linf}")
    if not (cells is None or isinstance(cells, Sequence)) or isinstance(cells, str):
        raise TypeError(parameters.foreign("cells", cells, "a list of column names"))
    nw = narwhals()

    def within(view: Any, keys: list[str]) -> Any:
        place = nw.col("one").rank("ordinal").over(*keys)
        view = view.with_columns(place.alias("place"))
        # One row stands for each cell. Its turn does not depend on the draw of rows.
        first = nw.when(nw.col("place") == 1).then(nw.col("two"))
        view = view.with_columns(first.alias("turn"))
        view = view.with_columns(nw.col("turn").rank("ordinal").over(keys[0]).alias("turn"))
        turn = nw.col("turn").min().over(*keys)
        view = view.with_columns(turn.alias("turn"))
        kept = (nw.col("place") <= linf) & (nw.col("turn") <= l0)
        return view.with_columns(kept.alias("kept"))

    return within


def words(size: int) -> NDArray[np.uint64]:
    """Return uniformly random words, expanded from 32 bytes of the source of release keys."""
    key = _core.ReleaseKey(None).secret()
    return np.frombuffer(hashlib.shake_256(key).digest(8 * size), np.uint64)


@contextmanager
def _refusing_types(name: str, columns: Sequence[Any]) -> Iterator[None]:
    """Raise a TypeError for the errors of a library that cannot group these columns by value."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:  # Each library has its own, whose messages may quote the data.
        kinds = ", ".join(str(each.type if arrow(each) else each.dtype) for each in columns)
        raise TypeError(
            f"{name} of types {kinds} is not accepted: give numbers, bools, strings, bytes or times"
        ) from None


def _shuffled(size: int) -> NDArray[np.intp]:
    """Return 0, ..., size - 1 in a uniformly random order."""
    while True:
        keys = words(size)
        order = np.argsort(keys)
        # Distinct keys are in each order equally often; ties would favour some.
        if np.diff(keys[order]).all():
            return order


def _noise(mechanism: GeometricMechanism, threads: int | None) -> Noise:
    checked(mechanism)

    def noise(counts: Array) -> Array:
        return mechanism.release(counts, threads=threads)

    return noise


def _categories(column: Any) -> tuple[Any, Any]:
    """Return narwhals' view of a column to count, and a native column with the type of levels."""
    if arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        column = pa.chunked_array([column])
    wanted = "a column, or a data frame with levels as a mapping of column names"
    series = narrow("data", column, wanted, series_only=True)
    nw, native = narwhals(), series.to_native()
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series, native
    if arrow(native):
        with _refusing_types("data", [native]):
            native = native.cast(native.type.value_type)
        return nw.from_native(native, series_only=True), native
    if kind := getattr(native.dtype, "pyarrow_dtype", None):
        # Pandas' type of Arrow's dictionaries.
        with _refusing_types("data", [native]):
            native = native.astype(type(native.dtype)(kind.value_type))
        return nw.from_native(native, series_only=True), native
    if hasattr(native, "iloc"):
        return series, native.cat.categories.to_series()
    series = series.cast(nw.String)
    return series, series.to_native()


def _labels(name: str, value: Any, labels: list[Any]) -> dict[Any, Any]:
    """Return the label of each column that has one."""
    if isinstance(value, bool):
        raise TypeError(f"{name} = {value} has type bool: give a label, such as 'all'")
    if isinstance(value, Mapping):
        return {only(label, labels): each for label, each in value.items()}
    return {} if value is None else dict.fromkeys(labels, value)


def _levels(name: str, kind: Any, levels: Any) -> list[Any]:
    """Return levels as the items of a column of this type."""
    if not isinstance(levels, Sequence | np.ndarray) or isinstance(levels, str | bytes):
        raise TypeError(f"{name} are a {type(levels).__name__}: give a list")
    given = list(levels)
    try:
        repeated = len(set(given)) < len(given)
    except TypeError:
        raise TypeError(f"{name} are not accepted: give hashable values") from None
    if repeated or not given:
        raise ValueError(f"{name} are empty or repeat one: give each once")
    try:
        items = _items(_like(kind, given))
        same = all(x is y or bool(x == y) for x, y in zip(items, given, strict=True))
    except Exception:  # Each library has its own.
        same = False
    if not same:
        dtype = kind.type if arrow(kind) else kind.dtype
        raise ValueError(f"{name} are not accepted: give values of its type, {dtype}")
    return items


def _like(kind: Any, items: list[Any]) -> Any:
    """Return narwhals' view of a column with the library and type of another."""
    if arrow(kind):
        import pyarrow as pa  # noqa: PLC0415

        native = pa.chunked_array([pa.array(items, kind.type)])
    else:
        native = type(kind)(items, dtype=kind.dtype)
    return narwhals().from_native(native, series_only=True)


def _items(series: Any) -> list[Any]:
    """Return the items of a column, with None for nulls of any kind."""
    missing = series.is_null().to_list()
    return [None if null else x for x, null in zip(series.to_list(), missing, strict=True)]


def _joined(names: Sequence[str], series: Sequence[Any]) -> Any:
    """Return a frame of columns with these names."""
    first, *others = (each.alias(name) for name, each in zip(names, series, strict=True))
    return first.to_frame().with_columns(*others)
