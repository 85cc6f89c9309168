"""Transformations from records to counts and sums.

One record changes one count by one. Counts and sums are exact and saturate at the limits of their
type, which never increases a distance. They do not take constant time, since they read the records
themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import many, showable
from geomdp._ground.parameters import Bounds
from geomdp._inputs import arrays
from geomdp.measurement import _metrics, _types
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain, as_member
from geomdp.measurement._metrics import AbsoluteDistance, L1Distance, Metric, SymmetricDistance
from geomdp.measurement._pipeline import Partial, Times, Transformation


def _records(domain: VectorDomain, arg: Any) -> Any:
    records = as_member(domain, arg)
    if isinstance(records, np.ndarray) and records.ndim != 1:
        raise TypeError(
            f"arg is an array of {records.ndim} dimensions: give a one-dimensional array"
        )
    return records


@showable
@dataclass(frozen=True, slots=True)
class _Count:
    domain: VectorDomain
    limit: int

    def __call__(self, arg: Any) -> int:
        return min(len(_records(self.domain, arg)), self.limit)

    def __str__(self) -> str:
        return "count records"


def make_count(input_domain: Domain, input_metric: Metric, TO: Any = int) -> Transformation:
    """Return a transformation that counts records.

    Parameters
    ----------
    input_domain : VectorDomain
        The records, of any type.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in``; the output metric is the absolute distance.
    TO : integer type
        The type of the count; int64 by default.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, symmetric_distance, vector_domain
    >>> from geomdp.measurement import make_count
    >>> make_count(vector_domain(atom_domain(str)), symmetric_distance())(["a", "b", "a"])
    3

    """
    _metrics.check_records(input_domain, input_metric)
    assert isinstance(input_domain, VectorDomain)
    T = _types.integers("TO", TO)
    function = _Count(input_domain, int(np.iinfo(T).max))
    return Transformation(
        input_domain, input_metric, AllDomain(T), AbsoluteDistance(T), function, Times(1)
    )


def then_count(TO: Any = int) -> Partial:
    """Return a step that counts records, to be joined by ``>>``.

    Parameters and errors are those of :func:`make_count`; ``>>`` gives the first two.

    >>> import geomdp.measurement as m
    >>> records = m.vector_domain(m.atom_domain(str)), m.symmetric_distance()
    >>> (records >> m.then_count())(["a", "b", "a"])
    3
    """
    return Partial(make_count, (TO,))


@showable
@dataclass(frozen=True, slots=True)
class _Sum:
    domain: VectorDomain
    bounds: tuple[int, int]
    limits: tuple[int, int]

    def __call__(self, arg: Any) -> int:
        clamped = np.clip(_records(self.domain, arg), *self.bounds)
        # Python ints do not overflow.
        exact = int(np.sum(clamped, dtype=object))
        return min(max(exact, self.limits[0]), self.limits[1])

    def __str__(self) -> str:
        return f"sum records clamped to {self.bounds}"


def make_sum(
    input_domain: Domain, input_metric: Metric, bounds: Bounds, TO: Any = int
) -> Transformation:
    """Return a transformation that clamps integers to bounds and sums them.

    The sum is exact and saturates at the limits of its type. It cannot overflow.

    Parameters
    ----------
    input_domain : VectorDomain
        The records: integers.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in * max(abs(lower), abs(upper))``, since one record
        changes the sum by its clamped value; the output metric is the absolute distance.
    bounds : (int, int)
        The lower and the upper bound of each record, of the type of the records. Records outside
        are clamped without an error. The bounds are public, so fix them before looking at the
        records.
    TO : integer type
        The type of the sum; int64 by default.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, symmetric_distance, vector_domain
    >>> from geomdp.measurement import make_sum
    >>> hours = vector_domain(atom_domain("u8")), symmetric_distance()
    >>> total = make_sum(*hours, bounds=(0, 24))
    >>> total([8, 3, 200]), total.map(1)
    (35, 24)

    """
    _check_kinds(input_domain, input_metric, "iu")
    assert isinstance(input_domain, VectorDomain)
    pair = parameters.interval(bounds)
    least, greatest = arrays.limits(input_domain.T)
    if pair is None:
        raise TypeError(parameters.refusal("bounds", bounds, "a pair of ints (lower, upper)"))
    if pair[0] > pair[1]:
        raise ValueError(f"bounds = {pair} are not accepted: give lower <= upper")
    if pair[0] < least or pair[1] > greatest:
        wanted = f"bounds from {least} to {greatest}, the limits of the records"
        raise OverflowError(f"bounds = {pair} are not accepted: give {wanted}")
    T = _types.integers("TO", TO)
    return Transformation(
        input_domain,
        input_metric,
        AllDomain(T),
        AbsoluteDistance(T),
        _Sum(input_domain, pair, arrays.limits(T)),
        Times(max(map(abs, pair))),
    )


def then_sum(bounds: Bounds, TO: Any = int) -> Partial:
    """Return a step that clamps integers to bounds and sums them, to be joined by ``>>``.

    Parameters and errors are those of :func:`make_sum`; ``>>`` gives the first two.

    >>> import geomdp.measurement as m
    >>> records = m.vector_domain(m.atom_domain("u8")), m.symmetric_distance()
    >>> (records >> m.then_sum(bounds=(0, 24)))([8, 3, 200])
    35
    """
    return Partial(make_sum, (bounds, TO))


@showable
@dataclass(frozen=True, slots=True, eq=False)
class _Histogram:
    """Counts the records at each place, and optionally all other records."""

    domain: VectorDomain
    #: The categories or the edges.
    values: NDArray[Any]
    null_category: bool
    T: _types.DType

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.domain, self.values, self.null_category, self.T)

    def __call__(self, arg: Any) -> NDArray[Any]:
        places, others = self._places(_records(self.domain, arg))
        counts = np.bincount(places, minlength=others + 1)[: others + self.null_category]
        limit = min(int(np.iinfo(self.T).max), 2**63 - 1)
        return np.minimum(counts, limit).astype(self.T)

    def __str__(self) -> str:
        others = " and a count of all others" if self.null_category else ""
        return f"count by {self._size()}{others}"

    def _size(self) -> str:
        raise NotImplementedError

    def _places(self, records: Any) -> tuple[NDArray[np.intp], int]:
        """Return the place of each record, and the last place, which holds all other records."""
        raise NotImplementedError


class _ByCategories(_Histogram):
    __slots__ = ()

    def _size(self) -> str:
        return many(len(self.values), "category")

    def _places(self, records: Any) -> tuple[NDArray[np.intp], int]:
        n = len(self.values)
        if isinstance(records, np.ndarray) and records.dtype.kind != "U":
            order = np.argsort(self.values)
            ordered = self.values[order]
            near = np.minimum(np.searchsorted(ordered, records), n - 1)
            return np.where(ordered[near] == records, order[near], n), n
        index = {category: i for i, category in enumerate(self.values.tolist())}
        # Iterating over a list of strings is faster than over a numpy array of them.
        items = records.tolist() if isinstance(records, np.ndarray) else records
        return np.array([index.get(record, n) for record in items], dtype=np.intp), n


class _ByBins(_Histogram):
    __slots__ = ()

    def _size(self) -> str:
        return many(len(self.values) - 1, "bin")

    def _places(self, records: Any) -> tuple[NDArray[np.intp], int]:
        n = len(self.values) - 1
        # Records below all edges, above all edges or NaN count as others.
        places = np.searchsorted(self.values, records, side="right") - 1
        places[places < 0] = n
        places[records == self.values[-1]] = n - 1
        return places, n


def make_count_by_categories(
    input_domain: Domain,
    input_metric: Metric,
    categories: Any,
    null_category: bool = True,
    TOA: Any = int,
) -> Transformation:
    """Return a transformation that counts the records of each category.

    Parameters
    ----------
    input_domain : VectorDomain
        The records: strings, integers or bools.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in`` and the output metric L1, since each record is in one
        category.
    categories : sequence
        Distinct values of the type of the records. They are public, so fix them before looking at
        the records.
    null_category : bool
        Whether to append a count of the records in no category. If False, these records are left
        out.
    TOA : integer type
        The type of each count; int64 by default.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, symmetric_distance, vector_domain
    >>> from geomdp.measurement import make_count_by_categories
    >>> answers = vector_domain(atom_domain(str)), symmetric_distance()
    >>> make_count_by_categories(*answers, ["yes", "no"])(["yes", "yes", "perhaps"])
    array([2, 0, 1])

    """
    values = _values("categories", input_domain, input_metric, "Uiub", categories)
    if len(set(values.tolist())) < max(len(values), 1):
        raise ValueError(
            f"categories of length {len(values)} are not accepted: give at least one, all distinct"
        )
    return _histogram(_ByCategories, input_domain, values, null_category, TOA)


def then_count_by_categories(
    categories: Any, null_category: bool = True, TOA: Any = int
) -> Partial:
    """Return a step that counts the records of each category, to be joined by ``>>``.

    Parameters and errors are those of :func:`make_count_by_categories`; ``>>`` gives the first two.

    >>> import geomdp.measurement as m
    >>> records = m.vector_domain(m.atom_domain(str)), m.symmetric_distance()
    >>> count = records >> m.then_count_by_categories(["yes", "no"], null_category=False)
    >>> count(["yes", "yes", "perhaps"])
    array([2, 0])
    """
    return Partial(make_count_by_categories, (categories, null_category, TOA))


def make_count_by_bins(
    input_domain: Domain,
    input_metric: Metric,
    edges: Any,
    null_category: bool = True,
    TOA: Any = int,
) -> Transformation:
    """Return a transformation that counts the records in each bin, as ``numpy.histogram`` does.

    Bin i holds ``edges[i] <= x < edges[i + 1]``. The last bin includes its upper edge.

    Parameters
    ----------
    input_domain : VectorDomain
        The records: integers or floats.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in`` and the output metric L1, since each record is in at
        most one bin.
    edges : sequence
        At least two increasing values of the type of the records. They are public, so fix them
        before looking at the records. The first and the last may be infinite; in a list or tuple
        for integers, ``-math.inf`` and ``math.inf`` stand for the limits of their type.
    null_category : bool
        Whether to append a count of the records in no bin, including NaN. If False, these records
        are left out.
    TOA : integer type
        The type of each count; int64 by default.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, symmetric_distance, vector_domain
    >>> from geomdp.measurement import make_count_by_bins
    >>> ages = vector_domain(atom_domain(int)), symmetric_distance()
    >>> make_count_by_bins(*ages, [0, 18, 65])([4, 18, 30, 65, 70])
    array([1, 3, 1])

    """
    values = _values("edges", input_domain, input_metric, "iuf", _of_integers(input_domain, edges))
    if len(values) < 2 or not np.all(values[:-1] < values[1:]):
        raise ValueError(
            f"edges of length {len(values)} are not accepted: give at least two, increasing"
        )
    return _histogram(_ByBins, input_domain, values, null_category, TOA)


def _of_integers(domain: Any, edges: Any) -> Any:
    """Return edges with the limits of the type for infinite ends, if the records are integers."""
    known = isinstance(domain, VectorDomain) and domain.T.kind in "iu"
    if not known or not isinstance(edges, list | tuple):
        return edges
    ends = dict(zip((-math.inf, math.inf), arrays.limits(domain.T), strict=True))
    return [ends.get(x, x) if isinstance(x, float) else x for x in edges]


def then_count_by_bins(edges: Any, null_category: bool = True, TOA: Any = int) -> Partial:
    """Return a step that counts the records in each bin, to be joined by ``>>``.

    Parameters and errors are those of :func:`make_count_by_bins`; ``>>`` gives the first two.

    >>> import geomdp.measurement as m
    >>> records = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
    >>> (records >> m.then_count_by_bins([0, 18, 65]))([4, 18, 30, 65, 70])
    array([1, 3, 1])
    """
    return Partial(make_count_by_bins, (edges, null_category, TOA))


_KINDS = {"U": "strings", "i": "integers", "b": "bools", "f": "floats"}


def _check_kinds(domain: Any, metric: Any, kinds: str) -> None:
    """Accept a vector of records of certain kinds with the symmetric distance."""
    _metrics.check_records(domain, metric)
    if domain.T.kind not in kinds:
        accepted = ", ".join(_KINDS[kind] for kind in kinds if kind in _KINDS)
        raise TypeError(parameters.refusal("input_domain", domain, f"records of {accepted}"))


def _values(name: str, domain: Any, metric: Any, kinds: str, values: Any) -> NDArray[Any]:
    """Return public categories or edges as a new array of the type of the records."""
    _check_kinds(domain, metric, kinds)
    T = domain.T
    wanted = f"a sequence of values of type {_types.spell(T)}"
    try:
        items = list(values if _are_numbers(T, values) else as_member(domain, values))
        # In a numpy string array every item takes as much memory as the longest.
        array = np.array(items, dtype=object if T.kind == "U" else T)
    except TypeError:
        raise TypeError(parameters.refusal(name, values, wanted)) from None
    except OverflowError:
        raise OverflowError(parameters.refusal(name, values, wanted)) from None
    if array.ndim != 1:
        raise TypeError(f"{name} has {array.ndim} dimensions: give {wanted}")
    # numpy rounds numbers that the type cannot represent.
    if array.tolist() != items:
        raise ValueError(parameters.refusal(name, values, f"{wanted}, exactly"))
    return array


def _are_numbers(T: _types.DType, values: Any) -> bool:
    """Return whether the type is a float and the values are a sequence or array of numbers."""
    if T.kind != "f":
        return False
    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.kind in "iuf"
    return isinstance(values, list | tuple | range) and all(
        parameters.is_integer(value) or isinstance(value, float) for value in values
    )


def _histogram(
    kind: type[_Histogram], domain: Any, values: NDArray[Any], null_category: Any, TOA: Any
) -> Transformation:
    parameters.check_bool("null_category", null_category)
    T = _types.integers("TOA", TOA)
    return Transformation(
        domain,
        SymmetricDistance(),
        VectorDomain(AllDomain(T)),
        L1Distance(T),
        kind(domain, values, null_category, T),
        Times(1),
    )
