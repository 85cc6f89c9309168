"""Metrics and the measure: how far apart inputs are, and how much a release may tell them apart."""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from geomdp._release import parameters
from geomdp.measurement import _types
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain


@dataclass(frozen=True, slots=True, repr=False)
class _Sensitivity:
    """A distance of counts, of type `T`.

    Parameters
    ----------
    T : type of integers
        Of the counts, as described in :mod:`geomdp.measurement`. Distances themselves are ints.

    Raises
    ------
    TypeError
        If `T` is not a type of integers.

    """

    T: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "T", _types.integers("T", self.T))

    def __class_getitem__(cls, T: Any) -> "_Sensitivity":
        return cls(T)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_types.spell(self.T)})"


class AbsoluteDistance(_Sensitivity):
    """``abs(x - x')`` for two single counts."""

    __slots__ = ()


class L1Distance(_Sensitivity):
    """The sum of ``abs(x - x')`` over two arrays of counts of one shape."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, repr=False)
class SymmetricDistance:
    """The number of records to add and to remove to get from one dataset to the other."""

    def __repr__(self) -> str:
        return "SymmetricDistance()"


@dataclass(frozen=True, slots=True, repr=False)
class MaxDivergence:
    """The measure of pure privacy: epsilon, of type `QO`.

    Parameters
    ----------
    QO : type of floats
        float (float64), or float32, to which losses are rounded up then.

    Raises
    ------
    TypeError
        If `QO` is not a type of floats.

    """

    QO: Any = float

    _WIDEST: ClassVar[_types.DType] = np.dtype(np.float64)

    def __post_init__(self) -> None:
        dtype = _types.atom("QO", self.QO)
        if dtype.kind != "f":
            raise TypeError(parameters.refusal("QO", self.QO, "a type of floats, such as float"))
        object.__setattr__(self, "QO", dtype)

    def __class_getitem__(cls, QO: Any) -> "MaxDivergence":
        return cls(QO)

    def _round_up(self, loss: float) -> float:
        """Return the least number of type `QO` that is not below this loss."""
        if self.QO == self._WIDEST:
            return loss
        with np.errstate(all="ignore"):
            nearest = np.float32(loss)
            # As float64: numpy would round the loss to float32 to compare them.
            if float(nearest) < loss:
                nearest = np.nextafter(nearest, np.float32(np.inf))
        return float(nearest)

    def __repr__(self) -> str:
        return f"MaxDivergence({_types.spell(self.QO)})"


Metric: TypeAlias = AbsoluteDistance | L1Distance | SymmetricDistance


def partner(domain: Domain) -> AbsoluteDistance | L1Distance:
    """Return the metric of counts that goes with a domain of integers."""
    metric = L1Distance if isinstance(domain, VectorDomain) else AbsoluteDistance
    return metric(domain.T)


def check_counts(domain: Any, metric: Any) -> None:
    """Refuse all pairs but one count with its absolute distance, and arrays with L1.

    Raises
    ------
    TypeError
        If they are not a domain of integers and a metric.
    ValueError
        If they do not go together.

    """
    if not isinstance(domain, AllDomain | VectorDomain):
        raise TypeError(
            parameters.refusal("input_domain", domain, "AllDomain(T) or VectorDomain(...)")
        )
    if domain.T.kind not in "iu":
        raise TypeError(
            parameters.refusal("input_domain", domain, "one of integers, int8 to uint64")
        )
    _check_metric(metric)
    if metric != partner(domain):
        raise ValueError(
            f"input_metric = {metric!r} does not go with input_domain = {domain!r}: "
            f"give {partner(domain)!r}"
        )


def check_records(domain: Any, metric: Any) -> None:
    """Refuse all pairs but a vector of records with the symmetric distance.

    Raises
    ------
    TypeError
        If they are not a vector domain and a metric.
    ValueError
        If they do not go together.

    """
    if not isinstance(domain, VectorDomain):
        raise TypeError(parameters.refusal("input_domain", domain, "VectorDomain(AllDomain(T))"))
    _check_metric(metric)
    if metric != SymmetricDistance():
        raise ValueError(
            f"input_metric = {metric!r} does not go with records of input_domain = {domain!r}: "
            f"give {SymmetricDistance()!r}"
        )


def _check_metric(metric: Any) -> None:
    if not isinstance(metric, AbsoluteDistance | L1Distance | SymmetricDistance):
        wanted = "AbsoluteDistance(T), L1Distance(T) or SymmetricDistance()"
        raise TypeError(parameters.refusal("input_metric", metric, wanted))


#: The names that OpenDP gives them now.
absolute_distance = AbsoluteDistance
l1_distance = L1Distance
symmetric_distance = SymmetricDistance
max_divergence = MaxDivergence
