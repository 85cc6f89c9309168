"""Bounds on the contributions of each individual."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import Integer
from geomdp._ground.uncopied import unseen
from geomdp._inputs.columns import arrow, column, lazy, names, narwhals, only
from geomdp._kernel import core
from geomdp.tables._columns import ids as _ids
from geomdp.tables._columns.native import codes_of, joined, labels, refusing_types

Frame = TypeVar("Frame")
_Ints: TypeAlias = NDArray[np.int64]


def bound_contributions(
    frame: Frame,
    individual: Any,
    *,
    l0: Integer,
    linf: Integer = 1,
    cells: Sequence[Any] | None = None,
) -> Frame:
    """Keep at most `l0` cells of each individual, and at most `linf` records in each of them.

    One individual can then change counts of the records by at most ``l0 * linf`` in total (L1), and
    by `linf` in each of at most `l0` cells. In a table with ``other``, with margins or by other
    columns, cells are merged, and a single one may change by all of ``l0 * linf``.
    :meth:`Design.count` takes care of this, so prefer it for tables.

    The cells are chosen uniformly at random from those of the individual, and the records from
    those of each cell, with fresh entropy of the operating system. Which rows of one individual are
    kept does not depend on the others.

    Parameters
    ----------
    frame : data frame
        A frame of pandas or Polars, in which each row is a record. A lazy frame of Polars stays
        lazy, and each ``collect`` reads all columns and chooses anew.
    individual : column name or tuple of column names
        The column that identifies individuals, of integers, text or bytes, or the columns that do
        so together.
    l0 : int
        The greatest number of cells per individual; at least 1.
    linf : int
        The greatest number of records of an individual in a cell; at least 1.
    cells : sequence of column names, optional
        The columns that will be counted by: their combinations of values are the cells. Null is a
        value of its own, objects without a hash are all the same value, and -0.0 equals 0.0.
        Without `cells`, each record is a cell of its own, so at most `l0` records of each
        individual are kept, and `linf` must be 1.

    Returns
    -------
    data frame
        The rows that are kept, in the order of the input. They are as secret as the input.

    Raises
    ------
    TypeError
        If `frame` is not a frame of pandas or Polars, individuals are of another type, `cells` is
        not a sequence of names, or a number is not an integer.
    ValueError
        If a number is below 1, `linf` is above 1 without cells, `individual` is an empty tuple or
        repeats a name, or an individual is null.
    KeyError
        If a name does not match exactly one column.
    ImportError
        If narwhals is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> visits = pd.DataFrame({"who": ["a", "a", "a", "b"], "town": ["x", "y", "x", "x"]})
    >>> kept = tables.bound_contributions(visits, "who", l0=1, linf=1, cells=["town"])
    >>> kept["who"].tolist()
    ['a', 'b']

    """
    l0, linf = checked(l0, linf, cells)
    who = _ids.columns(individual) or (None,)
    if arrow(frame) or lazy(frame) == "duckdb":
        raise TypeError(f"frame has type {type(frame).__name__}: give a frame of pandas or Polars")
    bound = partial(_bound, who=who, l0=l0, linf=linf, cells=cells)
    if hasattr(frame, "collect_schema") and hasattr(frame, "map_batches"):
        known = frame.collect_schema()
        for each in (*who, *(cells or ())):
            only(each, list(known))
        for each in who:
            _ids.check_type(each, str(known[each]))
        # A filter or slice that Polars moves before the draw would change it.
        moved = {f"{kind}_pushdown": False for kind in ("predicate", "projection", "slice")}
        return cast(Frame, frame.map_batches(unseen(bound), schema=known, **moved))
    return cast(Frame, bound(frame))


def _bound(
    frame: Any, who: tuple[Any, ...], l0: int, linf: int, cells: Sequence[Any] | None
) -> Any:
    known = names(frame)
    found = [column(frame, only(each, known)) for each in (*who, *(cells or ()))]
    people, columns, size = found[: len(who)], found[len(who) :], len(found[0])
    ids = list(map(_ids.checked, who, people))
    with refusing_types("frame with columns", found):
        person, cell = _numbers(ids), np.zeros(size, np.int64)
        if columns:
            cell = _numbers(list(map(labels, columns)))
    if cells is None:
        cell = np.arange(size)
    order = sorted_by(person, cell)
    kept = np.empty(size, np.bool_)
    kept[order] = kept_of(person[order], cell[order], l0, linf)
    nw = narwhals()
    view = nw.from_native(frame)
    rows = nw.new_series("", kept, nw.Boolean, backend=view.implementation)
    with refusing_types("frame", [column(frame, name) for name in known]):
        return view.filter(rows).to_native()


def _numbers(series: Sequence[Any]) -> _Ints:
    """Return for each row the first row that equals it in these columns."""
    nw = narwhals()
    # Arrow takes -0.0 for a value of its own, unlike the counts.
    with np.errstate(invalid="ignore"):  # numpy warns of a signalling NaN
        series = [each.cast(nw.Float64) + 0.0 if each.dtype.is_float() else each for each in series]
    # Pandas 2 groups by all combinations of categories, and warns.
    series = [codes_of(each) for each in series]
    keys, backend = [str(place) for place in range(len(series))], series[0].implementation
    rows = nw.new_series("", np.arange(len(series[0])), nw.Int64, backend=backend)
    first = joined([*keys, "row"], [*series, rows]).select(nw.col("row").min().over(*keys))["row"]
    return np.asarray(first.to_numpy(), np.int64)


def sorted_by(major: _Ints, minor: _Ints) -> _Ints:
    """Return an order of the rows by two columns of numbers, none negative."""
    most = int(minor.max(initial=0)) + 1
    if (int(major.max(initial=0)) + 1) * most <= np.iinfo(np.int64).max:
        return np.argsort(major * most + minor)  # One sort takes a third of the time of two.
    return np.lexsort((minor, major))


def starts(values: _Ints) -> NDArray[np.bool_]:
    """Return where a run of equal values starts."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def kept_of(people: _Ints, cells: _Ints, l0: int, linf: int) -> NDArray[np.bool_]:
    """Return which records are kept: of `l0` cells of each individual, `linf` in each.

    The records are in the order of individuals, and of cells for each.
    """
    new = starts(people) | starts(cells)
    place = np.cumsum(new) - 1
    chosen: NDArray[np.bool_] = drawn(place, linf) & drawn(people[new], l0)[place]
    return chosen


def drawn(owners: _Ints, most: int) -> NDArray[np.bool_]:
    """Return which items are kept: `most` of each owner, drawn uniformly, or all if it has fewer.

    The items of an owner are adjacent.
    """
    sizes = np.diff(np.flatnonzero(starts(owners)), append=len(owners))
    kept = np.repeat(sizes <= most, sizes)
    if not kept.all():
        sizes = sizes[sizes > most]
        groups = np.repeat(np.arange(len(sizes)), sizes)
        places = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept[np.flatnonzero(~kept)[_shuffled(groups)[places < most]]] = True
    return kept


def spent(owners: _Ints, values: _Ints, most: int) -> _Ints:
    """Return what is kept of each value, so that those of an owner add up to at most this.

    The values of an owner, which are adjacent, are taken in a uniformly random order until their
    absolute values reach the limit. The last one is cut, and those after it are 0.
    """
    first = np.flatnonzero(starts(owners))
    if not first.size:
        return values
    # Only 2**32 values of one owner, each at the limit of a sum, would wrap around.
    sizes = np.abs(values).astype(np.uint64)
    over = np.add.reduceat(sizes, first) > most
    places = np.flatnonzero(np.repeat(over, np.diff(first, append=len(owners))))
    if not places.size:
        return values
    new = starts(owners[places])
    order, begins = places[_shuffled(np.cumsum(new) - 1)], np.flatnonzero(new)
    after = np.cumsum(sizes[order])
    before = after - sizes[order]
    before -= np.repeat(before[begins], np.diff(begins, append=len(order)))
    left = np.minimum(sizes[order], np.uint64(most) - np.minimum(before, np.uint64(most)))
    kept = values.copy()
    kept[order] = np.sign(values[order]) * left.astype(np.int64)
    return kept


def _shuffled(groups: _Ints) -> _Ints:
    """Return a uniformly random order of the items of each group.

    Groups are numbered in their order, and stay in it.
    """
    bits = int(groups[-1]).bit_length()
    keys = groups.astype(np.uint64) << np.uint64(64 - bits) | words(len(groups)) >> np.uint64(bits)
    order = np.argsort(keys)
    if starts(keys[order]).all():
        return order
    while True:
        more = words(len(groups))
        # Ties would favour some orders.
        if starts(np.sort(more)).all():
            return np.lexsort((more, keys))


def checked(l0: Any, linf: Any, cells: Any) -> tuple[int, int]:
    """Return the bounds as ints, after a check of all parameters."""
    l0, linf = parameters.at_least("l0", l0, 1), parameters.at_least("linf", linf, 1)
    if cells is None and linf > 1:
        raise ValueError(f"linf = {linf} without cells is not accepted: give cells, or l0 = {linf}")
    if not (cells is None or isinstance(cells, Sequence)) or isinstance(cells, str):
        raise TypeError(parameters.foreign("cells", cells, "a list of column names"))
    return l0, linf


def words(size: int) -> NDArray[np.uint64]:
    """Return uniformly random words, expanded from 32 bytes of the source of release keys."""
    key = core.ReleaseKey(None).secret()
    return np.frombuffer(hashlib.shake_256(key).digest(8 * size), np.uint64)
