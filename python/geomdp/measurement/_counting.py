"""Counting as transformations: records in, counts out, one record changing one count by one.

Counts are exact, and saturate at the limit of their type, which brings no two farther apart. None
of this is constant time: it works on the records themselves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._release import parameters
from geomdp.measurement import _metrics, _types
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain
from geomdp.measurement._metrics import AbsoluteDistance, L1Distance, Metric, SymmetricDistance
from geomdp.measurement._steps import Partial, Transformation, unchanged


def _records(domain: VectorDomain, arg: Any) -> Any:
    records = domain._cast(arg)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Histogram:
    """Counts of the records at each of some places, and of all the others."""

    domain: VectorDomain
    #: Categories or edges.
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

    def _places(self, records: Any) -> tuple[NDArray[np.intp], int]:
        """Return the place of each record, and the place of the others, which is the last."""
        raise NotImplementedError


class _ByCategories(_Histogram):
    __slots__ = ()

    def _places(self, records: Any) -> tuple[NDArray[np.intp], int]:
        n = len(self.values)
        if isinstance(records, np.ndarray) and records.dtype.kind != "U":
            order = np.argsort(self.values)
            ordered = self.values[order]
            near = np.minimum(np.searchsorted(ordered, records), n - 1)
            return np.where(ordered[near] == records, order[near], n), n
        index = {category: i for i, category in enumerate(self.values.tolist())}
        # An item of numpy's array of strings takes longer to make than one of a list.
        items = records.tolist() if isinstance(records, np.ndarray) else records
        return np.array([index.get(record, n) for record in items], dtype=np.intp), n


class _ByBins(_Histogram):
    __slots__ = ()

    def _places(self, records: Any) -> tuple[NDArray[np.intp], int]:
        n = len(self.values) - 1
        # What is below all edges, above them or not a number is one of the others.
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
    values = _values("categories", input_domain, input_metric, "Uiub", categories)
    if len(set(values.tolist())) < max(len(values), 1):
        raise ValueError(
            f"categories, {len(values)} in number, are not accepted: give at least one, "
            "all distinct"
        )
    return _histogram(_ByCategories, input_domain, values, null_category, TOA)


def then_count_by_categories(
    categories: Any, null_category: bool = True, TOA: Any = int
) -> Partial:
    """Return :func:`make_count_by_categories` without its first two parameters, for ``>>``."""
    return Partial(make_count_by_categories, (categories, null_category, TOA))


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
    values = _values("edges", input_domain, input_metric, "iuf", edges)
    if len(values) < 2 or not np.all(values[:-1] < values[1:]):
        raise ValueError(
            f"edges, {len(values)} in number, are not accepted: give at least two, increasing"
        )
    return _histogram(_ByBins, input_domain, values, null_category, TOA)


def then_count_by_bins(edges: Any, null_category: bool = True, TOA: Any = int) -> Partial:
    """Return :func:`make_count_by_bins` without its first two parameters, for ``>>``."""
    return Partial(make_count_by_bins, (edges, null_category, TOA))


_KINDS = {"U": "strings", "i": "integers", "b": "bools", "f": "floats"}


def _values(name: str, domain: Any, metric: Any, kinds: str, values: Any) -> NDArray[Any]:
    """Return categories or edges, public values of the type of the records, as an array of our own.

    Raises
    ------
    TypeError
        If the records are of another kind, or the values are not a sequence of their type.
    ValueError
        If domain and metric do not go together.
    OverflowError
        If a value is beyond the type.

    """
    _metrics.check_records(domain, metric)
    if domain.T.kind not in kinds:
        accepted = ", ".join(_KINDS[kind] for kind in kinds if kind in _KINDS)
        raise TypeError(parameters.refusal("input_domain", domain, f"records of {accepted}"))
    T = domain.T
    wanted = f"a sequence of values of type {_types.spell(T)}"
    try:
        items = list(values if _are_numbers(T, values) else domain._cast(values))
        # Each item of numpy's own array of strings is as long as the longest.
        array = np.array(items, dtype=object if T.kind == "U" else T)
    except TypeError:
        raise TypeError(parameters.refusal(name, values, wanted)) from None
    except OverflowError:
        raise OverflowError(parameters.refusal(name, values, wanted)) from None
    if array.ndim != 1:
        raise TypeError(f"{name} is of {array.ndim} dimensions: give {wanted}")
    # numpy rounds numbers.
    if array.tolist() != items:
        raise ValueError(parameters.refusal(name, values, f"{wanted}, exactly"))
    return array


def _are_numbers(T: _types.DType, values: Any) -> bool:
    """Return whether edges for floats are a sequence of ints and floats, or an array."""
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
    parameters.flag("null_category", null_category)
    T = _types.integers("TOA", TOA)
    return Transformation(
        domain,
        SymmetricDistance(),
        VectorDomain(AllDomain(T)),
        L1Distance(T),
        kind(domain, values, null_category, T),
        unchanged,
    )
