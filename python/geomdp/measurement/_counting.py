"""Counting as transformations: records in, counts out, one record changing one count by one.

Counts are exact, and saturate at the limit of their type, which brings no two farther apart. None
of this is constant time: it works on the records themselves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp import _parameters
from geomdp.measurement import _metrics, _types
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain
from geomdp.measurement._metrics import AbsoluteDistance, L1Distance, Metric
from geomdp.measurement._steps import Partial, Transformation, unchanged


def _records(domain: VectorDomain, arg: Any) -> Any:
    records = domain.cast(arg)
    if isinstance(records, np.ndarray) and records.ndim != 1:
        raise TypeError(
            f"arg is an array of {records.ndim} dimensions: give records in one dimension"
        )
    return records


@dataclass(frozen=True, slots=True)
class _Count:
    domain: VectorDomain
    limit: int

    def __call__(self, arg: Any) -> int:
        return min(len(_records(self.domain, arg)), self.limit)


def make_count(input_domain: Domain, input_metric: Metric, TO: Any = int) -> Transformation:
    """Return a transformation that counts records.

    Parameters
    ----------
    input_domain : VectorDomain
        Of records of any type.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in``, in absolute distance.
    TO : type of integers
        Of the count; int64 if none is given.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If domain and metric do not go together.

    """
    _metrics.check_records(input_domain, input_metric)
    assert isinstance(input_domain, VectorDomain)
    T = _types.integers("TO", TO)
    function = _Count(input_domain, int(np.iinfo(T).max))
    return Transformation(
        input_domain, input_metric, AllDomain(T), AbsoluteDistance(T), function, unchanged
    )


def then_count(TO: Any = int) -> Partial:
    """Return :func:`make_count` without its first two parameters, to be given by ``>>``."""
    return Partial(make_count, (TO,))


def _tally(places: NDArray[np.intp], bins: int, others: bool, T: _types.DType) -> NDArray[Any]:
    """Return how often each of ``0..bins`` occurs; the last of them are the others."""
    counts = np.bincount(places, minlength=bins + 1)[: bins + others]
    return np.minimum(counts, np.iinfo(T).max, dtype=np.int64, casting="same_kind").astype(T)


@dataclass(frozen=True, slots=True, eq=False)
class _ByCategories:
    domain: VectorDomain
    categories: NDArray[Any]
    null_category: bool
    T: _types.DType

    def __call__(self, arg: Any) -> NDArray[Any]:
        records = _records(self.domain, arg)
        n = len(self.categories)
        if isinstance(records, np.ndarray):
            order = np.argsort(self.categories)
            ordered = self.categories[order]
            near = np.minimum(np.searchsorted(ordered, records), n - 1)
            places = np.where(ordered[near] == records, order[near], n)
        else:
            index = {category: i for i, category in enumerate(self.categories.tolist())}
            places = np.array([index.get(record, n) for record in records], dtype=np.intp)
        return _tally(places, n, self.null_category, self.T)


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
        Of records that are strings, integers or bools.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in``, in L1 distance: each record is in one category.
    categories : sequence
        Distinct values of the type of the records. Public: fixed before looking at the records.
    null_category : bool
        Whether a last count is added, of the records in no category, which are left out otherwise.
    TOA : type of integers
        Of each count; int64 if none is given.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If domain and metric do not go together, or categories are none or not distinct.
    OverflowError
        If a category is beyond the type of the records.

    """
    _metrics.check_records(input_domain, input_metric)
    assert isinstance(input_domain, VectorDomain)
    if input_domain.T.kind == "f":
        raise TypeError(
            f"input_domain = {input_domain!r} is not accepted: give strings, integers or bools, "
            "or make_count_by_bins"
        )
    _parameters.flag("null_category", null_category)
    values = _values("categories", input_domain, categories)
    if len(np.unique(values)) < max(len(values), 1):
        raise ValueError(
            f"categories, {len(values)} in number, are not accepted: give at least one, "
            "all distinct"
        )
    T = _types.integers("TOA", TOA)
    function = _ByCategories(input_domain, values, null_category, T)
    return _histogram(input_domain, input_metric, function, T)


def then_count_by_categories(
    categories: Any, null_category: bool = True, TOA: Any = int
) -> Partial:
    """Return :func:`make_count_by_categories` without its first two parameters, for ``>>``."""
    return Partial(make_count_by_categories, (categories, null_category, TOA))


@dataclass(frozen=True, slots=True, eq=False)
class _ByBins:
    domain: VectorDomain
    edges: NDArray[Any]
    null_category: bool
    T: _types.DType

    def __call__(self, arg: Any) -> NDArray[Any]:
        records = np.asarray(_records(self.domain, arg))
        bins = len(self.edges) - 1
        # What is below all edges, above them or not a number counts as one of the others.
        places = np.searchsorted(self.edges, records, side="right") - 1
        places[places < 0] = bins
        places[records == self.edges[-1]] = bins - 1
        return _tally(places, bins, self.null_category, self.T)


def make_count_by_bins(
    input_domain: Domain,
    input_metric: Metric,
    edges: Any,
    null_category: bool = True,
    TOA: Any = int,
) -> Transformation:
    """Return a transformation that counts the records in each bin, as ``numpy.histogram`` does.

    Bin i holds ``edges[i] <= x < edges[i + 1]``, and the last one its upper edge too.

    Parameters
    ----------
    input_domain : VectorDomain
        Of records that are integers or floats.
    input_metric : SymmetricDistance
        The stability map is ``d_out = d_in``, in L1 distance: each record is in one bin.
    edges : sequence
        At least two values of the type of the records, increasing. Public, and fixed before looking
        at the records.
    null_category : bool
        Whether a last count is added, of the records in no bin (and of NaN), which are left out
        otherwise.
    TOA : type of integers
        Of each count; int64 if none is given.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If domain and metric do not go together, or edges are too few or do not increase.
    OverflowError
        If an edge is beyond the type of the records.

    """
    _metrics.check_records(input_domain, input_metric)
    assert isinstance(input_domain, VectorDomain)
    if input_domain.T.kind not in "iuf":
        raise TypeError(
            f"input_domain = {input_domain!r} is not accepted: give integers or floats, "
            "or make_count_by_categories"
        )
    _parameters.flag("null_category", null_category)
    values = _values("edges", input_domain, edges)
    if len(values) < 2 or not np.all(values[:-1] < values[1:]):
        raise ValueError(
            f"edges, {len(values)} in number, are not accepted: give at least two, increasing"
        )
    T = _types.integers("TOA", TOA)
    function = _ByBins(input_domain, values, null_category, T)
    return _histogram(input_domain, input_metric, function, T)


def then_count_by_bins(edges: Any, null_category: bool = True, TOA: Any = int) -> Partial:
    """Return :func:`make_count_by_bins` without its first two parameters, for ``>>``."""
    return Partial(make_count_by_bins, (edges, null_category, TOA))


def _histogram(
    domain: VectorDomain, metric: Metric, function: Any, T: _types.DType
) -> Transformation:
    output = VectorDomain(AllDomain(T))
    return Transformation(domain, metric, output, L1Distance(T), function, unchanged)


def _values(name: str, domain: VectorDomain, values: Any) -> NDArray[Any]:
    """Return public values of a type as an array of our own.

    Raises
    ------
    TypeError
        If they are not a sequence of this type.
    OverflowError
        If one is beyond the type.

    """
    try:
        array = np.array(domain.cast(values), ndmin=1)
    except TypeError:
        array = np.zeros((0, 0))
    if array.ndim != 1:
        raise TypeError(
            f"{name} = {values!r} is not accepted: "
            f"give a sequence of values of type {_types.spell(domain.T)}"
        )
    return array
