"""The ideal distributions of noise and of noisy counts, with the methods of scipy.stats.

:class:`TwoSidedGeometric` is the distribution of the noise (*Geometric Mechanism Notes*, equation
2.1). :class:`CensoredGeometric` is the distribution of a release within bounds (*Geometric
Mechanism Notes*, algorithm 2). Neither needs scipy.

>>> from geomdp.distribution import CensoredGeometric, TwoSidedGeometric
>>> noise = TwoSidedGeometric(scale=2)
>>> noise.interval(0.95)
(-6.0, 6.0)
>>> release = CensoredGeometric(center=3, scale=2, bounds=(0, 100))
>>> release.pmf([0, 1, 2, 3]).round(4)
array([0.1389, 0.0901, 0.1486, 0.2449])

``total_variation`` bounds the distance between an ideal distribution and the one that
:class:`geomdp.GeometricMechanism` samples. There is no ``rvs`` method: to protect data, draw noise
with :meth:`geomdp.GeometricMechanism.release`.

Accuracy: ``pmf``, ``cdf``, ``sf`` and their logarithms are within 4 ulp of the exact values for the
exact scale, in the tails too. Values below the least normal float64 are within 4 of the spacings
there. This assumes an ``exp`` with an error of about one ulp, such as numpy's.
"""

import abc
import math
import sys
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geomdp._analysis import decimals, moments
from geomdp._analysis.floats import Floats, Powers, Steps, quiet
from geomdp._release import arrays, parameters
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.parameters import Bounds, Real

__all__ = ["CensoredGeometric", "TwoSidedGeometric"]

_Flags: TypeAlias = NDArray[np.bool_]
_Positions: TypeAlias = NDArray[np.uint64]

#: The number of items to evaluate at once.
_PART = 2**12
_ONE = np.uint64(1)
#: For positions of floats: the position of 0; the distance from it up to which all integers are
#: floats; the offset from larger distances to the bits of floats.
_ZERO, _DENSE = np.uint64(2**63), np.uint64(2**53)
_SPARSE = np.uint64(int(np.float64(2**53).view(np.uint64)) - 2**53)
_LARGEST = sys.float_info.max
_LARGEST_BELOW_2_64 = math.nextafter(2.0**64, 0)
_NOWHERE = np.zeros(1, np.bool_)
#: A rate so large that even the logarithm of exp(-rate) is beyond float64.
_NO_NOISE_RATE = Fraction(2) ** 1100


class _Weights(NamedTuple):
    """Normalizing constants for the pmf and tails of the noise Z, with ``a = exp(-rate)``."""

    #: ``P(Z = 0) = (1 - a) / (1 + a)``.
    zero: float
    #: ``P(Z > 0) = a / (1 + a)``.
    above: float
    #: ``P(Z >= 0) = 1 / (1 + a)``.
    not_below: float
    log_zero: float
    log_above: float
    log_not_below: float


class _Points(NamedTuple):
    """Numbers, rounded down to integers."""

    #: Of dtype int64, uint64, float64 or object (Python ints); 0 for NaN.
    integers: NDArray[Any]
    fractional: _Flags
    missing: _Flags


class _Places(NamedTuple):
    """Where integers are; their probabilities depend on this alone."""

    #: The distance to the center.
    distance: Steps
    #: At or above the center.
    right: _Flags
    #: Below all outputs.
    below: _Flags
    #: At or above the greatest output, unless `below` holds.
    last: _Flags
    #: The least or the greatest output, which has the mass beyond it too.
    bound: _Flags
    #: Not an output.
    outside: _Flags


class _Distribution(abc.ABC):
    """A distribution on integers; a uint64 position numbers each possible value."""

    __slots__ = ("_ends", "_origin", "_powers", "_rate", "_scale", "_shape", "_weights")

    def __init__(
        self,
        scale: int | float | Fraction,
        ends: _Positions,
        origin: _Positions,
        shape: tuple[int, ...] | None,
    ) -> None:
        self._scale = scale
        #: The positions of the least and greatest value, and of the centers.
        self._ends, self._origin = ends, origin
        #: The shape of the centers; None for a number, () for an array without dimensions.
        self._shape = shape
        #: None if there is no noise, or only one value.
        self._rate = 1 / Fraction(scale) if scale and ends[0] < ends[1] else None
        rate = _NO_NOISE_RATE if self._rate is None else self._rate
        self._powers, self._weights = Powers(rate), _weights(rate)

    # Defined by each distribution

    @abc.abstractmethod
    def _locate(self, integers: NDArray[Any], origin: _Positions) -> _Places:
        """Return the places of integers."""

    @abc.abstractmethod
    def _places(self, positions: _Positions, origin: _Positions) -> _Places:
        """Return the places of positions."""

    @abc.abstractmethod
    def _values(self, positions: _Positions) -> NDArray[Any]:
        """Return the integers at positions."""

    @abc.abstractmethod
    def _guess(self, left: _Flags, distance: Floats, origin: _Positions) -> _Positions:
        """Return a position at about this distance, to the left or right of the center."""

    @abc.abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """Return all parameters, exactly."""

    # Shared by all

    @property
    def scale(self) -> int | float | Fraction:
        """The noise scale, ``1 / rate``, as given."""
        return self._scale

    def pmf(self, k: ArrayLike) -> Any:
        """Return the probability of k.

        Parameters
        ----------
        k : int, float or array
            Integers, taken exactly: Python ints of any size; arrays of any integer dtype and byte
            order, or of float16 to float64; sequences of these numbers.

        Returns
        -------
        float or float64 array
            The shape is that of k, broadcast against the centers. The value is 0 where k is not an
            integer, and NaN where k is NaN.

        Raises
        ------
        TypeError
            If k has another type, such as bool, longdouble or a masked array.
        ValueError
            If k does not broadcast against the centers.

        """
        return self._at(k, self._mass)

    def logpmf(self, k: ArrayLike) -> Any:
        """Return the natural logarithm of :meth:`pmf`, even where that underflows."""
        return self._at(k, self._log_mass)

    def cdf(self, k: ArrayLike) -> Any:
        """Return the probability of k or less.

        It takes and returns the same types and shapes as :meth:`pmf`, and rounds k down.
        """
        return self._at(k, self._cumulated)

    def logcdf(self, k: ArrayLike) -> Any:
        """Return the natural logarithm of :meth:`cdf`, even where that underflows or is near 1."""
        return self._at(k, self._log_cumulated)

    def sf(self, k: ArrayLike) -> Any:
        """Return the probability of more than k, ``1 - cdf(k)`` without cancellation.

        It takes and returns the same types and shapes as :meth:`pmf`, and rounds k down.
        """
        return self._at(k, self._beyond)

    def logsf(self, k: ArrayLike) -> Any:
        """Return the natural logarithm of :meth:`sf`, even where that underflows or is near 1."""
        return self._at(k, self._log_beyond)

    def ppf(self, q: ArrayLike) -> Any:
        """Return the least k with ``cdf(k) >= q``.

        The search uses :meth:`cdf` as computed, so ``ppf(cdf(k))`` is k wherever ``cdf(k)`` is
        above ``cdf(k - 1)`` and below 1. (At scales beyond ``2**50``, neighbors differ by less than
        the error of ``cdf``. Then the result is some k with ``cdf(k) >= q > cdf(k - 1)``.)

        Parameters
        ----------
        q : int, float, Fraction or array
            Probabilities, from 0 to 1.

        Returns
        -------
        number or array
            The shape is that of q, broadcast against the centers. The type is that of the class's
            outputs. 0 and 1 give the ends of :meth:`support`.

        Raises
        ------
        TypeError
            If q is not a number.
        ValueError
            If q is not from 0 to 1, or does not broadcast against the centers.

        """
        return self._quantile("q", _probabilities("q", q), _single(q), beyond=False)

    def isf(self, q: ArrayLike) -> Any:
        """Return the least k with ``sf(k) <= q``.

        It takes and returns the same types and shapes as :meth:`ppf`. 1 and 0 give the ends of
        :meth:`support`. Unlike ``ppf(1 - q)``, it resolves q below the spacing of floats near 1.
        """
        return self._quantile("q", _probabilities("q", q), _single(q), beyond=True)

    def interval(self, confidence: ArrayLike) -> tuple[Any, Any]:
        """Return an interval that leaves at most ``(1 - confidence) / 2`` on each side.

        Parameters
        ----------
        confidence : int, float, Fraction or array
            Probabilities, from 0 to 1.

        Returns
        -------
        lower, upper : numbers or arrays
            ``ppf`` and ``isf`` of ``(1 - confidence) / 2``. The shape is that of the confidence,
            broadcast against the centers.

        Raises
        ------
        TypeError
            If the confidence is not a number.
        ValueError
            If it is not from 0 to 1, or does not broadcast against the centers.

        """
        tails = (1 - _probabilities("confidence", confidence)) / 2
        single = _single(confidence)
        return (
            self._quantile("confidence", tails, single, beyond=False),
            self._quantile("confidence", tails, single, beyond=True),
        )

    def median(self) -> Any:
        """Return the median, which is exactly the center."""
        return self._shaped(self._values(self._origin), (), True)

    def support(self) -> tuple[Any, Any]:
        """Return the least and the greatest value."""
        lower, upper = (self._values(end) for end in self._support())
        return self._shaped(lower, (), True), self._shaped(upper, (), True)

    def _support(self) -> tuple[_Positions, _Positions]:
        if self._rate is None:
            return self._origin, self._origin
        first, last = (np.full_like(self._origin, end) for end in self._ends)
        return first, last

    # Probabilities at places

    def _mass(self, places: _Places) -> Floats:
        weights = np.where(places.bound, self._weights.not_below, self._weights.zero)
        powers = self._powers.of(self._powers.products(places.distance))
        return _set(weights * powers, (places.outside, 0))

    def _log_mass(self, places: _Places) -> Floats:
        weights = np.where(places.bound, self._weights.log_not_below, self._weights.log_zero)
        products, _ = self._powers.products(places.distance)
        return _set(weights - products, (places.outside, -math.inf))

    def _cumulated(self, places: _Places) -> Floats:
        return _set(self._tail(places, places.right), (places.last, 1), (places.below, 0))

    def _beyond(self, places: _Places) -> Floats:
        return _set(self._tail(places, ~places.right), (places.last, 0), (places.below, 1))

    def _log_cumulated(self, places: _Places) -> Floats:
        logs = self._log_tail(places, places.right)
        return _set(logs, (places.last, 0), (places.below, -math.inf))

    def _log_beyond(self, places: _Places) -> Floats:
        logs = self._log_tail(places, ~places.right)
        return _set(logs, (places.last, -math.inf), (places.below, 0))

    def _tail(self, places: _Places, rest: _Flags) -> Floats:
        """Return ``P(Y > k)`` where k is on the right, else ``P(Y <= k)``; complement at `rest`."""
        # Both are at most 1/2, and P(Z > k) = a**k P(Z > 0), P(Z <= -k) = a**k P(Z >= 0).
        weights = np.where(places.right, self._weights.above, self._weights.not_below)
        tail = weights * self._powers.of(self._powers.products(places.distance))
        return np.where(rest, 1 - tail, tail)

    def _log_tail(self, places: _Places, rest: _Flags) -> Floats:
        """Return the logarithm of :meth:`_tail`."""
        weights = np.where(places.right, self._weights.above, self._weights.not_below)
        logs = np.where(places.right, self._weights.log_above, self._weights.log_not_below)
        products = self._powers.products(places.distance)
        # Adding 0 turns -0 into 0.
        others = np.log1p(-weights * self._powers.of(products)) + 0
        return np.where(rest, others, logs - products[0])

    def _at(self, k: Any, function: Callable[[_Places], Floats]) -> Any:
        """Evaluate a function at the places of k."""
        points, shape = _points(k)
        arrays.broadcast(("k", points[0]), ("center", self._origin))
        columns = np.broadcast_arrays(*points, self._origin)
        flat = [column.reshape(-1) for column in columns]
        values = np.empty(flat[0].size)
        with quiet():
            # Each part fits the cache.
            for start in range(0, values.size, _PART):
                part = slice(start, start + _PART)
                integers, fractional, missing, origin = (column[part] for column in flat)
                places = self._locate(integers, origin)
                places = places._replace(outside=places.outside | fractional)
                values[part] = _set(function(places), (missing, math.nan))
        return self._shaped(values, shape, _single(k))

    # Quantiles

    def _quantile(self, name: str, q: Floats, single: bool, *, beyond: bool) -> Any:
        """Return the least k with ``cdf(k) >= q``, or with ``sf(k) <= q``."""
        levels, origin = arrays.broadcast((name, np.atleast_1d(q)), ("center", self._origin))
        first, last = self._support()
        positions = np.where((levels == 0) == beyond, last, first)
        inside = (levels > 0) & (levels < 1)
        if self._rate is not None:
            with quiet():
                positions[inside] = self._search(levels[inside], origin[inside], beyond)
        return self._shaped(self._values(positions), q.shape, single)

    def _search(self, q: Floats, origin: _Positions, beyond: bool) -> _Positions:
        def reached(positions: _Positions, items: NDArray[np.intp]) -> _Flags:
            places = self._places(positions, origin[items])
            if beyond:
                return self._beyond(places) <= q[items]
            return self._cumulated(places) >= q[items]

        # On the left, P(Y <= k) must reach `lower`; on the right, P(Y > k) must reach `upper`.
        lower, upper = (1 - q, q) if beyond else (q, 1 - q)
        left = lower <= self._weights.above
        scale = float(min(Fraction(self._scale), Fraction(_LARGEST)))
        to_left = (self._weights.log_not_below - np.log(lower)) * scale
        to_right = (max(self._weights.log_above, -_LARGEST) - np.log(upper)) * scale
        distance = np.where(left, np.floor(to_left), np.ceil(to_right))
        guess = self._guess(left, np.maximum(distance, 0), origin)
        return _least(reached, guess, *self._ends)

    def _shaped(self, values: NDArray[Any], shape: tuple[int, ...], single: bool) -> Any:
        """Return a number if both the argument and the center are numbers, else an array."""
        if single and self._shape is None:
            return values.item()
        return values.reshape(np.broadcast_shapes(shape, self._shape or ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))


class TwoSidedGeometric(_Distribution):
    """The noise distribution ``P(Z = z) = (1 - a)/(1 + a) * a**abs(z)``, ``a = exp(-1 / scale)``.

    This is equation 2.1 of *Geometric Mechanism Notes*, for all integers z. Its tails are
    ``P(Z > z) = a**(z + 1) / (1 + a)`` for ``z >= -1`` (section 2.4 there). It is also known as the
    discrete Laplace distribution, ``scipy.stats.dlaplace(1 / scale)``.

    Parameters
    ----------
    scale : int, float or Fraction
        The noise scale; not negative, taken exactly. 0 means no noise: all probability is at 0.

    Raises
    ------
    TypeError
        If scale is not a number.
    ValueError
        If it is negative, infinite or NaN.

    Notes
    -----
    ``ppf``, ``isf``, ``median``, ``interval`` and ``support`` return floats, since the ends of the
    support are infinite. Integers beyond ``2**53`` are rounded up to a float, so
    ``cdf(ppf(q)) >= q`` still holds. :class:`CensoredGeometric` returns exact integers.

    Examples
    --------
    >>> noise = TwoSidedGeometric(scale=10)
    >>> noise.cdf(-1) + noise.pmf(0) + noise.sf(0)
    1.0
    >>> noise.pmf([-3, 0, 2.5]).round(4)
    array([0.037, 0.05 , 0.   ])
    >>> noise.ppf(0.975)
    30.0
    >>> noise.logsf(10**6)
    -100000.74439666007

    """

    __slots__ = ()

    def __init__(self, scale: Real) -> None:
        positions = _positions(np.array([-math.inf, math.inf, 0]))
        super().__init__(parameters.number("scale", scale), positions[:2], positions[2:], None)

    @property
    def total_variation(self) -> float:
        """A bound on the total variation distance between a release and the ideal distribution.

        The release is ``GeometricMechanism.from_scale(scale).release(x)`` with x of dtype int64.
        The ideal distribution is that of ``x + Z``, clamped to the limits of int64. The bound holds
        for all x (``docs/proofs.md``, theorem 3). It is 0 for scale 0.

        Raises
        ------
        ValueError
            If the scale is too large to be certified, so no such mechanism exists.

        """
        if self._rate is None:
            return 0.0
        return GeometricMechanism.from_scale(self._scale).certificate().total_variation

    def mean(self) -> float:
        """Return the mean, 0."""
        return 0.0

    def var(self) -> float:
        """Return the variance ``2 a / (1 - a)**2``, or infinity if it is beyond float64.

        The formula is from *Releasing Counts with Differential Privacy*.
        """
        return 0.0 if self._rate is None else moments.unbounded(self._rate).variance

    def std(self) -> float:
        """Return the standard deviation, even if the variance is beyond float64."""
        if self._rate is None:
            return 0.0
        with localcontext(_digits(self._rate)):
            a = decimals.power(self._rate, 1)
            return float((2 * a).sqrt() / (1 - a))

    def entropy(self) -> float:
        """Return the entropy ``log((1 + a)/(1 - a)) + 2 rate a / (1 - a**2)``, in nats."""
        return 0.0 if self._rate is None else moments.entropy(self._rate, None, None)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self._scale,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(scale={self._scale!r})"

    def _key(self) -> tuple[Any, ...]:
        return (Fraction(self._scale),)

    # Positions number the floats that are integers in increasing order, with 0 in the middle.

    def _locate(self, integers: NDArray[Any], origin: _Positions) -> _Places:  # noqa: ARG002
        distance = np.abs(integers)
        below = last = _NOWHERE
        if integers.dtype == np.int64:
            # This includes the least int64, whose absolute value is not an int64.
            distance = distance.view(np.uint64)
        elif integers.dtype == np.float64:
            below, last = integers == -math.inf, integers == math.inf
            distance = np.where(below | last, 0, distance)
        return _Places(
            distance=distance,
            right=(integers >= 0).astype(np.bool_),
            below=below,
            last=last,
            bound=_NOWHERE,
            outside=below | last,
        )

    def _places(self, positions: _Positions, origin: _Positions) -> _Places:
        return self._locate(self._values(positions), origin)

    def _values(self, positions: _Positions) -> Floats:
        left = positions < _ZERO
        index = np.where(left, _ZERO - positions, positions - _ZERO)
        dense = np.minimum(index, _DENSE).astype(np.float64)
        sizes = np.where(index > _DENSE, (index + _SPARSE).view(np.float64), dense)
        return np.where(left, -sizes, sizes)

    def _guess(self, left: _Flags, distance: Floats, origin: _Positions) -> _Positions:  # noqa: ARG002
        return _positions(np.where(left, -distance, distance))


def _positions(values: Floats) -> _Positions:
    """Return the positions of floats that are integers."""
    sizes = np.abs(values)
    dense = np.minimum(sizes, 2.0**53).astype(np.uint64)
    index = np.where(sizes > 2.0**53, sizes.view(np.uint64) - _SPARSE, dense)
    return np.where(values < 0, _ZERO - index, _ZERO + index)


class CensoredGeometric(_Distribution):
    """The distribution of a release, ``clamp(center + Z)``, with Z of :class:`TwoSidedGeometric`.

    Between the bounds, ``P(Y = y) = (1 - a)/(1 + a) * a**abs(y - center)``, with ``a = exp(-1 /
    scale)``. A bound at distance d from the center has probability ``a**d / (1 + a)``, which
    includes the tail beyond it (*Geometric Mechanism Notes*, algorithm 2 and section 2.4).
    ``GeometricMechanism.from_scale(scale, bounds).release(center)`` samples this distribution
    within :attr:`total_variation`.

    Parameters
    ----------
    center : int, or array or sequence of ints
        The true count or counts: arrays of any integer dtype, or Python ints of any size. Centers
        outside the bounds are clamped to the nearest bound, as in a release. Arrays broadcast
        against the arguments of methods. ``mean``, ``var``, ``std`` and ``entropy`` return arrays
        of the same shape.
    scale : int, float or Fraction
        The noise scale; not negative, taken exactly. 0 means no noise.
    bounds : (int, int)
        The least and the greatest output. For a release without bounds, give the limits of its
        dtype.

    Raises
    ------
    TypeError
        If a parameter has another type, or the bounds are None.
    ValueError
        If the scale is negative, infinite or NaN, or the bounds are reversed.
    OverflowError
        If no integer dtype holds both bounds.

    Notes
    -----
    ``ppf``, ``isf``, ``median``, ``interval`` and ``support`` return exact integers: ints or arrays
    of int64, or of uint64 if the bounds are beyond int64. Floats beyond ``2**53`` would not be
    exact. ``ppf(0)`` is the lower bound; scipy returns one less, which may not fit the dtype.

    Examples
    --------
    >>> release = CensoredGeometric(center=2, scale=5, bounds=(0, 100))
    >>> release.pmf(0) == release.cdf(0), release.sf(100), release.pmf(-1)
    (True, 0.0, 0.0)
    >>> release.interval(0.9)
    (0, 13)
    >>> CensoredGeometric([0, 50, 100], 5, (0, 100)).mean().round(3)
    array([ 2.483, 50.   , 97.517])

    """

    __slots__ = ("_bounds", "_center")

    def __init__(self, center: ArrayLike, scale: Real, bounds: Bounds) -> None:
        scale = parameters.number("scale", scale)
        self._bounds = _bounds(bounds)
        self._center = _centers(center)
        lower, upper = self._bounds
        _, _, origin = self._offsets(np.atleast_1d(self._center))
        shape = None if _single(center) else self._center.shape
        super().__init__(scale, np.array([0, upper - lower], np.uint64), origin, shape)

    @property
    def center(self) -> Any:
        """The true count or counts, as given: an int, or a read-only array."""
        return self._center.item() if self._shape is None else self._center

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest output."""
        return self._bounds

    @property
    def total_variation(self) -> float:
        """A bound on the total variation distance between a release and this distribution.

        The release is ``GeometricMechanism.from_scale(scale, bounds).release(center)``. The bound
        holds for all centers (``docs/proofs.md``, theorem 3). It is 0 for scale 0, and if there is
        only one output.

        Raises
        ------
        ValueError
            If the scale is too large to be certified, so no such mechanism exists.

        """
        if self._rate is None:
            return 0.0
        mechanism = GeometricMechanism.from_scale(self._scale, self._bounds)
        return mechanism.certificate().total_variation

    def mean(self) -> Any:
        """Return the mean, ``center + (a**(l + 1) - a**(u + 1)) / (1 - a**2)``.

        Here l and u are the distances from the center to the lower and the upper bound
        (``docs/proofs.md``, section 10). The second term is rounded to a float, and so is the sum.
        """
        return self._each(lambda center: float(center + Fraction(self._moments_at(center).bias)))

    def var(self) -> Any:
        """Return the variance (``docs/proofs.md``, section 10)."""
        return self._each(lambda center: self._moments_at(center).variance)

    def std(self) -> Any:
        """Return the standard deviation, the square root of :meth:`var`."""
        return self._each(lambda center: math.sqrt(self._moments_at(center).variance))

    def entropy(self) -> Any:
        """Return the entropy in nats (``docs/proofs.md``, section 10)."""
        lower, upper = self._bounds

        def entropy(center: int) -> float:
            if self._rate is None:
                return 0.0
            return moments.entropy(self._rate, center - lower, upper - center)

        return self._each(entropy)

    def _moments_at(self, center: int) -> moments.Moments:
        return moments.of_censored(self._rate, *self._bounds, center)

    def _each(self, function: Callable[[int], float]) -> Any:
        """Return a function of the clamped centers, evaluated once for each distinct one."""
        return self._shaped(arrays.of_each(self._values(self._origin), function), (), True)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self.center, self._scale, self._bounds)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(center={self.center!r}, scale={self._scale!r}, bounds={self._bounds})"

    def _key(self) -> tuple[Any, ...]:
        centers = tuple(self._center.reshape(-1).tolist())
        return self._shape, centers, Fraction(self._scale), self._bounds

    # The position of an output is its distance from the lower bound.

    def _locate(self, integers: NDArray[Any], origin: _Positions) -> _Places:
        below, above, offsets = self._offsets(integers)
        places = self._places(offsets, origin)
        return places._replace(below=below, outside=below | above)

    def _offsets(self, integers: NDArray[Any]) -> tuple[_Flags, _Flags, _Positions]:
        """Return which integers are below and above the bounds, and the positions of all."""
        lower, upper = self._bounds
        below, above = _less(integers, lower), ~_less(integers, upper + 1)
        first, last = np.uint64(0), np.uint64(upper - lower)
        offsets = _modulo(integers) - np.uint64(lower % 2**64)
        return below, above, np.where(below, first, np.where(above, last, offsets))

    def _places(self, positions: _Positions, origin: _Positions) -> _Places:
        right = positions >= origin
        last = positions == self._ends[1]
        return _Places(
            distance=np.where(right, positions - origin, origin - positions),
            right=right,
            below=_NOWHERE,
            last=last,
            bound=last | (positions == 0),
            outside=_NOWHERE,
        )

    def _values(self, positions: _Positions) -> NDArray[Any]:
        lower, upper = self._bounds
        values = positions + np.uint64(lower % 2**64)
        return values if upper >= 2**63 else values.view(np.int64)

    def _guess(self, left: _Flags, distance: Floats, origin: _Positions) -> _Positions:
        steps = np.minimum(distance, _LARGEST_BELOW_2_64).astype(np.uint64)
        down, up = np.minimum(steps, origin), np.minimum(steps, self._ends[1] - origin)
        return np.where(left, origin - down, origin + up)


def _less(integers: NDArray[Any], bound: int) -> _Flags:
    """Return which integers, of a dtype of `_Points`, are below a bound of any size."""
    if integers.dtype == np.float64:
        # Rounding the bound up does not change which floats are below it.
        return np.asarray(integers < decimals.up(Decimal(bound)))
    if integers.dtype == object:
        return (integers < bound).astype(np.bool_)
    limits = np.iinfo(integers.dtype)
    if not limits.min < bound <= limits.max:
        return np.full(integers.shape, bound > limits.max)
    return np.asarray(integers < integers.dtype.type(bound))


def _modulo(integers: NDArray[Any]) -> _Positions:
    """Return integers modulo 2**64; floats of size 2**64 or more give 0."""
    if integers.dtype == object:
        return (integers % 2**64).astype(np.uint64)
    if integers.dtype == np.float64:
        sizes = np.abs(integers)
        sizes = np.where(sizes < 2.0**64, sizes, 0).astype(np.uint64)
        return np.where(integers < 0, ~sizes + _ONE, sizes)
    return integers.astype(np.uint64)


def _least(
    reached: Callable[[_Positions, NDArray[np.intp]], _Flags],
    guess: _Positions,
    first: np.uint64,
    last: np.uint64,
) -> _Positions:
    """Return for each item the least position that satisfies a monotone condition.

    ``reached(positions, items)`` evaluates the condition for the items with these indices. The last
    position satisfies it. The search starts at the guess, doubles its step until it brackets the
    result, and then bisects. It takes at most 130 calls, and two if the guess is right.
    """
    low, high = np.full_like(guess, first), np.full_like(guess, last)
    items = np.arange(guess.size)
    probe, step = np.minimum(guess, last - _ONE), _ONE
    while items.size:
        hit = reached(probe, items)
        high[items] = np.where(hit, probe, high[items])
        low[items] = np.where(hit, low[items], probe + _ONE)
        open_ = low[items] < high[items]
        items, hit = items[open_], hit[open_]
        half = (high[items] - low[items]) // np.uint64(2)
        down = np.maximum(np.minimum(step, half), _ONE)
        up = np.minimum(step - _ONE, half)
        probe = np.where(hit, high[items] - down, low[items] + up)
        step = np.minimum(step, np.uint64(2**62)) * np.uint64(2)
    return low


def _weights(rate: Fraction) -> _Weights:
    """Return the normalizing constants, each correctly rounded."""
    with localcontext(_digits(rate)):
        a = decimals.power(rate, 1)
        zero, not_below = (1 - a) / (1 + a), 1 / (1 + a)
        log_not_below = not_below.ln()
        return _Weights(
            zero=float(zero),
            above=float(a * not_below),
            not_below=float(not_below),
            log_zero=float(zero.ln()),
            log_above=float(log_not_below - decimals.of(rate)),
            log_not_below=float(log_not_below),
        )


def _digits(rate: Fraction) -> Context:
    """Return a context with enough digits for ``1 - a`` and for logarithms of ``1 + a``."""
    lost = max(-decimals.bits(rate), 0)
    return decimals.context(
        40 + lost * math.log10(2) + float(min(rate, Fraction(800))) / math.log(10)
    )


def _set(values: Floats, *cases: tuple[_Flags, float]) -> Floats:
    for where, value in cases:
        np.copyto(values, value, where=where)
    return values


# Parameters


def _single(value: Any) -> bool:
    """Return whether a value is one number; an array without dimensions is not."""
    return not isinstance(value, np.ndarray | list | tuple)


def _bounds(bounds: Any) -> tuple[int, int]:
    pair = GeometricMechanism.from_scale(0, bounds).bounds
    if pair is None:
        raise TypeError("bounds = None is not accepted: give a pair (lower, upper)")
    return pair


def _centers(value: Any) -> NDArray[Any]:
    """Return integers as a read-only array."""
    array = _numbers("center", value, "integers")
    if array.dtype == np.float64:
        raise TypeError("center with a float is not accepted: give integers")
    array.flags.writeable = False
    return array


def _points(k: Any) -> tuple[_Points, tuple[int, ...]]:
    """Return k with at least one dimension, and its original shape."""
    array = _numbers("k", k, "integers or floats")
    numbers = np.atleast_1d(array)
    if numbers.dtype != np.float64:
        return _Points(numbers, _NOWHERE, _NOWHERE), array.shape
    missing = np.isnan(numbers)
    numbers[missing] = 0
    integers = np.floor(numbers)
    return _Points(integers, integers != numbers, missing), array.shape


def _probabilities(name: str, value: Any) -> Floats:
    """Return probabilities as floats; Fractions are rounded."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        array = _numbers(name, value, "numbers")
        # NaN is wrong too.
        wrong = ~((array >= 0) & (array <= 1))
        if wrong.any():
            _probability(name, array[wrong][0])
        return array.astype(np.float64)
    items = _objects(name, value)
    flat = [_probability(name, item) for item in items.reshape(-1).tolist()]
    return np.array(flat, np.float64).reshape(items.shape)


def _probability(name: str, value: Any) -> float:
    return float(parameters.in_range(name, value, "a number from 0 to 1", lambda x: 0 <= x <= 1))


def _numbers(name: str, value: Any, wanted: str) -> NDArray[Any]:
    """Return numbers exactly, in a new array of int64, uint64, float64 or Python ints."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype == object:
        return _unboxed(name, _objects(name, value), wanted)
    arrays.refuse_masked(name, value)
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind not in "iuf" or array.dtype.char == "g":
        raise TypeError(f"{name} of dtype {array.dtype} is not accepted: give {wanted}")
    return array.astype({"i": np.int64, "u": np.uint64, "f": np.float64}[kind])


def _objects(name: str, value: Any) -> NDArray[np.object_]:
    """Return an object array of the items of a sequence, or of the value itself."""
    arrays.refuse_items(name, [value])
    if _single(value):
        items = np.empty((), dtype=object)
        items[()] = value
        return items
    try:
        return np.array(value, dtype=object)
    except ValueError:
        raise TypeError(f"{name} with ragged items is not accepted: give an array") from None


def _unboxed(name: str, items: NDArray[np.object_], wanted: str) -> NDArray[Any]:
    """Return numbers in an array of the dtype that :func:`_dtype` chooses."""
    flat: list[int | float] = []
    for item in items.reshape(-1).tolist():
        if parameters.is_integer(item):
            flat.append(int(item))
        elif isinstance(item, float | np.floating) and not isinstance(item, np.longdouble):
            flat.append(float(item))
        else:
            kind = type(item).__name__
            raise TypeError(f"{name} with a {kind} is not accepted: give {wanted}")
    return np.array(flat, _dtype(name, flat)).reshape(items.shape)


def _dtype(name: str, numbers: list[int | float]) -> type[Any]:
    ints = [number for number in numbers if isinstance(number, int)]
    least, most = min(ints, default=0), max(ints, default=0)
    if len(ints) < len(numbers):
        if max(-least, most) > 2**53:
            raise ValueError(f"{name} with floats and ints beyond 2**53: give one kind per array")
        return np.float64
    if least >= -(2**63) and most < 2**63:
        return np.int64
    return np.uint64 if least >= 0 and most < 2**64 else object
