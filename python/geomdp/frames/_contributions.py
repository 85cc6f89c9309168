"""Bounds on the contributions of each individual."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from geomdp import _core
from geomdp._inputs import parameters
from geomdp._inputs.columns import arrow, column, names, narwhals, only
from geomdp._inputs.parameters import Integer
from geomdp.frames._native import categories, joined, refusing_types

_Frame = TypeVar("_Frame")


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
    merged cells: one of them may change by all of ``l0 * linf``. :meth:`Design.count` knows which,
    so prefer it for tables.

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
        If `frame` is not a frame of pandas or Polars, `cells` is not a sequence of names, or a
        number is not an integer.
    ValueError
        If a number is below 1, `linf` is above 1 without cells, or an individual is null.
    KeyError
        If a name does not match exactly one column.
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
    series = [categories(each)[0] for each in columns]
    if series[0].is_null().any():
        raise ValueError(f"column {individual!r} contains nulls: give every row an id")
    keys = [str(place) for place in range(len(series))]
    backend = series[0].implementation
    orders = [shuffled(size), shuffled(size)]
    if cells is None:
        keys, orders = [*keys, "row"], [np.arange(size), *orders]
    series += [nw.new_series("", each, nw.Int64, backend=backend) for each in orders]
    with refusing_types("frame with columns", columns):
        # Arrow takes -0.0 for a value of its own, unlike the counts.
        series = [each.cast(nw.Float64) + 0.0 if each.dtype.is_float() else each for each in series]
        kept = within(joined([*keys, "one", "two"], series), keys)["kept"]
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


def distinct_words(size: int) -> NDArray[np.uint64]:
    """Return uniformly random words without repeats: each order of them is equally likely."""
    while True:
        keys = words(size)
        # Ties would favour some orders.
        if np.diff(np.sort(keys)).all():
            return keys


def shuffled(size: int) -> NDArray[np.intp]:
    """Return 0, ..., size - 1 in a uniformly random order."""
    return np.argsort(distinct_words(size))
