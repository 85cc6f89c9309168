"""Metrics: distances between inputs. The measure: how well a release distinguishes inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.notebook import showable
from geomdp.measurement import _types
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain


@showable
@dataclass(frozen=True, slots=True, repr=False)
class _Sensitivity:
    """A distance between counts of type `T`."""

    T: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "T", _types.integers("T", self.T))

    def __class_getitem__(cls, T: Any) -> _Sensitivity:
        return cls(T)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_types.spell(self.T)})"


class AbsoluteDistance(_Sensitivity):
    """The distance ``abs(x - x')`` between two single counts.

    Parameters
    ----------
    T : integer type
        The type of the counts (:mod:`geomdp.measurement`). Distances themselves are ints.

    Examples
    --------
    >>> from geomdp.measurement import AbsoluteDistance
    >>> AbsoluteDistance("i32")
    AbsoluteDistance(int32)

    """

    __slots__ = ()


class L1Distance(_Sensitivity):
    """The sum of ``abs(x - x')`` over two arrays of counts of one shape.

    Parameters
    ----------
    T : integer type
        The type of the counts (:mod:`geomdp.measurement`). Distances themselves are ints.

    Examples
    --------
    >>> from geomdp.measurement import L1Distance
    >>> L1Distance(int)
    L1Distance(int64)

    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, repr=False)
class SymmetricDistance:
    """The number of records to add or remove to turn one dataset into the other.

    >>> from geomdp.measurement import SymmetricDistance
    >>> SymmetricDistance() == SymmetricDistance()
    True
    """

    def __repr__(self) -> str:
        return "SymmetricDistance()"


@showable
@dataclass(frozen=True, slots=True, repr=False)
class MaxDivergence:
    """The measure of pure epsilon-DP: epsilon, of type `QO`.

    Parameters
    ----------
    QO : float type
        float (float64) or float32. Privacy losses are rounded up to this type.

    Examples
    --------
    >>> from geomdp.measurement import MaxDivergence
    >>> MaxDivergence("f32")
    MaxDivergence(float32)

    """

    QO: Any = float

    _WIDEST: ClassVar[_types.DType] = np.dtype(np.float64)

    def __post_init__(self) -> None:
        dtype = _types.atom("QO", self.QO)
        if dtype.kind != "f":
            raise TypeError(parameters.refusal("QO", self.QO, "a float type, such as float"))
        object.__setattr__(self, "QO", dtype)

    def __class_getitem__(cls, QO: Any) -> MaxDivergence:
        return cls(QO)

    @property
    def is_narrow(self) -> bool:
        """Whether losses are floats of 32 bits."""
        return bool(self.QO != self._WIDEST)

    def _round_up(self, loss: float) -> float:
        if not self.is_narrow:
            return loss
        with np.errstate(all="ignore"):
            nearest = np.float32(loss)
            # Compare as float64; numpy would round the loss to float32.
            if float(nearest) < loss:
                nearest = np.nextafter(nearest, np.float32(np.inf))
        return float(nearest)

    def __repr__(self) -> str:
        return f"MaxDivergence({_types.spell(self.QO)})"


Metric: TypeAlias = AbsoluteDistance | L1Distance | SymmetricDistance


def partner(domain: Domain) -> AbsoluteDistance | L1Distance:
    """Return the metric that matches a domain of counts."""
    metric = L1Distance if isinstance(domain, VectorDomain) else AbsoluteDistance
    return metric(domain.T)


def check_counts(domain: Any, metric: Any) -> None:
    """Accept one count with the absolute distance, or an array of counts with L1."""
    if not isinstance(domain, AllDomain | VectorDomain):
        raise TypeError(
            parameters.refusal("input_domain", domain, "AllDomain(T) or VectorDomain(...)")
        )
    if domain.T.kind not in "iu":
        raise TypeError(
            parameters.refusal("input_domain", domain, "a domain of integers, int8 to uint64")
        )
    _check_metric(metric)
    if metric != partner(domain):
        raise ValueError(
            f"input_metric = {metric!r} does not match input_domain = {domain!r}: "
            f"give {partner(domain)!r}"
        )


def check_records(domain: Any, metric: Any) -> None:
    """Accept a vector of records with the symmetric distance."""
    if not isinstance(domain, VectorDomain):
        raise TypeError(parameters.refusal("input_domain", domain, "VectorDomain(AllDomain(T))"))
    _check_metric(metric)
    if metric != SymmetricDistance():
        raise ValueError(
            f"input_metric = {metric!r} does not match records of input_domain = {domain!r}: "
            f"give {SymmetricDistance()!r}"
        )


def _check_metric(metric: Any) -> None:
    if not isinstance(metric, AbsoluteDistance | L1Distance | SymmetricDistance):
        wanted = "AbsoluteDistance(T), L1Distance(T) or SymmetricDistance()"
        raise TypeError(parameters.refusal("input_metric", metric, wanted))


#: OpenDP's current names.
absolute_distance = AbsoluteDistance
l1_distance = L1Distance
symmetric_distance = SymmetricDistance
max_divergence = MaxDivergence


def rounded_up(measure: MaxDivergence, loss: float) -> float:
    """Return the least number of the type of a measure that is at least a loss."""
    return measure._round_up(loss)
