"""The ideal distributions of noise and of noisy counts, with the methods of scipy.stats.

:class:`TwoSidedGeometric` is the distribution of the noise, also called discrete Laplace
(*Geometric Mechanism Notes*, equation 2.1). :class:`CensoredGeometric` is the distribution of a
release within bounds (algorithm 2 there). Neither needs scipy.

``total_variation`` bounds the distance between an ideal distribution and the one that
:class:`geomdp.GeometricMechanism` samples. There is no ``rvs`` method: to protect data, draw noise
with :meth:`geomdp.GeometricMechanism.release`.

Accuracy: at distance d from the center, the relative error of ``pmf``, ``cdf``, ``sf`` and their
logarithms is at most ``2**-50 * (1 + (d + 1) / scale)``. That is about 1e-15 near the center, and
less than 1e-12 down to the least normal float64, unless the scale is below 0.01. Distances are
exact before they are rounded to float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import showable
from geomdp._ground.parameters import Bounds, Real
from geomdp._ground.uncopied import public
from geomdp._inputs import arrays
from geomdp._numerics import count_moments
from geomdp.mechanism import GeometricMechanism

__all__ = ["TwoSidedGeometric", "CensoredGeometric"]

_Floats: TypeAlias = NDArray[np.float64]
_Flags: TypeAlias = NDArray[np.bool_]
#: A function of errors, as floats.
_Function: TypeAlias = Callable[[_Floats], _Floats]


class _Noise:
    """The noise Z as functions of float64 arrays, with ``a = exp(-1 / scale)``."""

    __slots__ = ("above", "log_not_below", "log_zero", "not_below", "scale", "zero")

    def __init__(self, scale: float) -> None:
        # With the least positive scale, 0 has all the probability that float64 can express.
        self.scale = max(scale, 5e-324)
        rate = 1 / self.scale
        a = math.exp(-rate)
        #: P(Z = 0), P(Z > 0) and P(Z >= 0).
        self.zero, self.above, self.not_below = math.tanh(rate / 2), a / (1 + a), 1 / (1 + a)
        self.log_zero = math.log(self.zero) if rate < 1 else math.log1p(-2 * self.above)
        self.log_not_below = -math.log1p(a)

    def pmf(self, z: _Floats) -> _Floats:
        return np.asarray(self.zero * np.exp(-np.abs(z) / self.scale))

    def logpmf(self, z: _Floats) -> _Floats:
        return np.asarray(self.log_zero - np.abs(z) / self.scale)

    def cdf(self, z: _Floats) -> _Floats:
        tail = np.exp(-np.abs(z) / self.scale)
        return np.where(z < 0, self.not_below * tail, 1 - self.above * tail)

    def logcdf(self, z: _Floats) -> _Floats:
        steps = np.abs(z) / self.scale
        # Adding 0 turns -0 into 0.
        right = np.log1p(-self.above * np.exp(-steps)) + 0
        return np.where(z < 0, self.log_not_below - steps, right)

    def quantile(self, q: _Floats, reaches: Callable[[_Floats, _Floats], _Flags]) -> _Floats:
        """Return the least z with ``reaches(cdf(z), q)``, by np.greater or np.greater_equal.

        It is at most 0, as q is at most 1/2. The closed form is off by a few steps at most; the
        last lines correct that.
        """
        with np.errstate(all="ignore"):
            left = np.floor((np.log(q) - self.log_not_below) * self.scale)
            z = np.minimum(left, 0) - 2
            for _ in range(4):
                z = np.where(reaches(self.cdf(z), q), z, z + 1)
        return np.asarray(np.minimum(z, 0))


class _Distribution:
    """A center plus noise, clamped to the bounds, if there are bounds."""

    __slots__ = ("_bounds", "_center", "_noise", "_scale")

    def __init__(self, scale: Any, center: NDArray[Any], bounds: tuple[int, int] | None) -> None:
        self._scale = parameters.nonnegative_number("scale", scale)
        # The centers, within the bounds; 0 if there are none.
        self._center, self._bounds = center, bounds
        self._noise = _Noise(_float(self._scale) if self._rate else 0.0)

    @property
    def scale(self) -> int | float | Fraction:
        """The noise scale, ``1 / rate``, as given."""
        return self._scale

    @property
    def _rate(self) -> Fraction | None:
        """The exact rate; None for no noise, or only one output."""
        one = self._bounds is not None and self._bounds[0] == self._bounds[1]
        return 1 / Fraction(self._scale) if self._scale and not one else None

    def pmf(self, k: ArrayLike) -> Any:
        """Return the probability of k.

        Parameters
        ----------
        k : int, float or array
            Ints within int64 (or uint64, if the bounds need it), sequences of such ints, floats,
            or arrays of any integer dtype or of float16 to float64.

        Returns
        -------
        float or float64 array
            The shape is that of k, broadcast against the centers. The value is 0 where k is not an
            integer, and NaN where k is NaN.

        Examples
        --------
        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> noise.pmf([-1, 0, 1]).round(4)
        array([0.1486, 0.2449, 0.1486])

        """
        return self._masses(k, self._noise.pmf, self._noise.cdf)

    def logpmf(self, k: ArrayLike) -> Any:
        """Return the natural logarithm of :meth:`pmf`, even where that underflows.

        The parameter, shapes and errors are those of :meth:`pmf`.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> noise.pmf(3000), round(noise.logpmf(3000), 4)
        (0.0, -1501.4068)
        """
        return self._masses(k, self._noise.logpmf, self._noise.logcdf)

    def cdf(self, k: ArrayLike) -> Any:
        """Return the probability of k or less.

        The parameter, shapes and errors are those of :meth:`pmf`. k is rounded down.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> round(noise.cdf(0), 4)
        0.6225
        """
        return self._sums(k, self._noise.cdf)

    def logcdf(self, k: ArrayLike) -> Any:
        """Return the natural logarithm of :meth:`cdf`, even where that underflows or is near 1.

        The parameter, shapes and errors are those of :meth:`pmf`.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> round(noise.logcdf(-3000), 4)
        -1500.4741
        """
        return self._sums(k, self._noise.logcdf)

    def sf(self, k: ArrayLike) -> Any:
        """Return the probability of more than k, ``1 - cdf(k)`` without cancellation.

        The parameter, shapes and errors are those of :meth:`pmf`. k is rounded down.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> round(noise.sf(0), 4)
        0.3775
        """
        return self._sums(k, lambda z: self._noise.cdf(-z - 1))

    def logsf(self, k: ArrayLike) -> Any:
        """Return the natural logarithm of :meth:`sf`, even where that underflows or is near 1.

        The parameter, shapes and errors are those of :meth:`pmf`.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> round(noise.logsf(3000), 4)
        -1500.9741
        """
        return self._sums(k, lambda z: self._noise.logcdf(-z - 1))

    def ppf(self, q: ArrayLike) -> Any:
        """Return the least k with ``cdf(k) >= q``.

        For normal floats q and scales up to ``2**40``, k is exact, unless q is the probability of k
        or of ``k - 1`` up to a rounding error of ``2**-42`` of the smaller tail: then it may be the
        next one. ``ppf(cdf(k))`` is k below the center, and ``isf(sf(k))`` is k from the center on,
        where floats resolve these. For larger scales k is off by up to ``2**-48`` of the scale and
        of its distance from the center.

        Parameters
        ----------
        q : int, float, Fraction or array
            Probabilities, from 0 to 1.

        Returns
        -------
        number or array
            The shape is that of q, broadcast against the centers. The type is that of the class's
            outputs. 0 and 1 give the ends of :meth:`support`.

        Examples
        --------
        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> noise.ppf([0, 0.5, 0.95])
        array([-inf,   0.,   5.])

        """
        return self._quantile("q", _probabilities("q", q), beyond=False)

    def isf(self, q: ArrayLike) -> Any:
        """Return the least k with ``sf(k) <= q``.

        The parameter, shapes and errors are those of :meth:`ppf`. 1 and 0 give the ends of
        :meth:`support`. Unlike ``ppf(1 - q)``, it resolves q below the spacing of floats near 1.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> TwoSidedGeometric(scale=2).isf(1e-30)
        137.0
        """
        return self._quantile("q", _probabilities("q", q), beyond=True)

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

        Examples
        --------
        >>> from geomdp.distribution import TwoSidedGeometric
        >>> noise = TwoSidedGeometric(scale=2)
        >>> noise.interval(0.95)
        (-6.0, 6.0)

        """
        tails = (1 - _probabilities("confidence", confidence)) / 2
        return (
            self._quantile("confidence", tails, beyond=False),
            self._quantile("confidence", tails, beyond=True),
        )

    def median(self) -> Any:
        """Return the median, which is exactly the center.

        >>> from geomdp.distribution import CensoredGeometric
        >>> CensoredGeometric(center=3, scale=2, bounds=(0, 100)).median()
        3
        """
        return _bare(self._shifted(np.zeros(self._center.shape), self._center))

    def support(self) -> tuple[Any, Any]:
        """Return the least and the greatest value.

        >>> from geomdp.distribution import CensoredGeometric
        >>> CensoredGeometric(center=3, scale=2, bounds=(0, 100)).support()
        (0, 100)
        """
        ends = (np.full(self._center.shape, end) for end in self._ends)
        lower, upper = (_bare(self._shifted(end, self._center)) for end in ends)
        return lower, upper

    @property
    def total_variation(self) -> float:
        """A bound on the total variation distance between a release and this distribution.

        The release is ``GeometricMechanism.from_scale(scale, bounds).release(center)``; without
        bounds it is of dtype int64, and so is the ideal value, clamped to the limits of int64. The
        bound holds for all centers (``docs/proofs.md``, theorem 3). It is 0 without noise.

        Raises
        ------
        ValueError
            If the scale is too large to be certified, so no such mechanism exists.

        """
        if self._rate is None:
            return 0.0
        return (
            GeometricMechanism.from_scale(self._scale, self._bounds).certificate().total_variation
        )

    def _masses(self, k: Any, inside: _Function, at_bound: _Function) -> Any:
        numbers, z, lowest, greatest = self._errors(k)
        with np.errstate(over="ignore", under="ignore"):
            # A bound has the probability of the whole tail from there on.
            values = np.where(lowest | greatest, at_bound(-np.abs(z)), inside(z))
            values = np.where(np.floor(numbers) == numbers, values, inside(np.array(math.inf)))
        return _known(values, numbers)

    def _sums(self, k: Any, function: _Function) -> Any:
        numbers, z, _, greatest = self._errors(k)
        with np.errstate(over="ignore", under="ignore"):
            return _known(function(np.where(greatest, math.inf, z)), numbers)

    def _errors(self, k: Any) -> tuple[NDArray[Any], _Floats, _Flags, _Flags]:
        """Return k, ``floor(k) - center``, and where k is the lower and the upper bound.

        The error is infinite where k is outside the bounds.
        """
        numbers = _numbers(k, arrays.dtype_for(self._bounds))
        numbers, center = arrays.broadcast(("k", numbers), ("center", self._center))
        if self._bounds is None:
            nowhere = np.zeros(numbers.shape, np.bool_)
            return numbers, np.floor(numbers.astype(np.float64)), nowhere, nowhere
        lower, upper = self._bounds
        places, below, above = _clamped(numbers, self._bounds)
        z = np.where(places < center, -_steps(center, places), _steps(places, center))
        z = np.where(below, -math.inf, np.where(above, math.inf, z))
        inside = ~(below | above)
        return numbers, z, inside & (places == lower), inside & (places == upper)

    def _quantile(self, name: str, levels: _Floats, *, beyond: bool) -> Any:
        """Return the least k with ``cdf(k) >= level``, or with ``sf(k) <= level``."""
        low, high = self._ends
        # Of the two tails the smaller one, which floats resolve; 1 - level is exact above 1/2. By
        # symmetry sf(z) = cdf(-z - 1). It is at most the level if -z - 1 is below the least number
        # whose cdf exceeds the level.
        tails = np.minimum(levels, 1 - levels)
        exceeds, reaches = (self._noise.quantile(tails, x) for x in (np.greater, np.greater_equal))
        z = np.where((levels <= 0.5) == beyond, -exceeds, reaches) + 0.0
        if beyond:
            low, high = high, low
        z = np.where(levels == 0, low, np.where(levels == 1, high, z))
        return _bare(self._shifted(*arrays.broadcast((name, z), ("center", self._center))))

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the greatest value of the noise."""
        return (-math.inf, math.inf) if self._rate else (0.0, 0.0)

    def _shifted(self, z: _Floats, center: NDArray[Any]) -> NDArray[Any]:
        """Return ``center + z``, clamped to the bounds."""
        if self._bounds is None:
            return z
        lower, upper = (np.full_like(center, bound) for bound in self._bounds)
        low, start, high = (array.astype(np.uint64) for array in (lower, center, upper))
        room = np.where(z < 0, np.subtract(start, low), np.subtract(high, start))
        beyond = np.abs(z) >= 2.0**64
        steps = np.minimum(np.where(beyond, 0, np.abs(z)).astype(np.uint64), room)
        steps = np.where(beyond, room, steps)
        # Exact modulo 2**64; unlike operators, these functions wrap without a warning.
        moved = np.where(z < 0, np.subtract(start, steps), np.add(start, steps))
        return moved.astype(center.dtype)


@showable
class TwoSidedGeometric(_Distribution):
    """The noise distribution ``P(Z = z) = (1 - a)/(1 + a) * a**abs(z)``, ``a = exp(-1 / scale)``.

    This is equation 2.1 of *Geometric Mechanism Notes*, for all integers z. Its tails are
    ``P(Z > z) = a**(z + 1) / (1 + a)`` for ``z >= -1`` (section 2.4 there). It is also known as the
    discrete Laplace distribution, ``scipy.stats.dlaplace(1 / scale)``.

    Parameters
    ----------
    scale : number
        The noise scale; not negative, and within float64. 0 means no noise: all probability is at
        0.

    Notes
    -----
    ``ppf``, ``isf``, ``median``, ``interval`` and ``support`` return floats, since the ends of the
    support are infinite. :class:`CensoredGeometric` returns exact integers.

    Examples
    --------
    >>> from geomdp.distribution import TwoSidedGeometric
    >>> noise = TwoSidedGeometric(scale=10)
    >>> noise.cdf(-1) + noise.pmf(0) + noise.sf(0)
    1.0
    >>> noise.pmf([-3, 0, 2]).round(4)
    array([0.037 , 0.05  , 0.0409])
    >>> noise.ppf(0.975)
    30.0
    >>> round(noise.logsf(10**6), 6)
    -100000.744397

    """

    __slots__ = ()

    def __init__(self, scale: Real) -> None:
        super().__init__(scale, np.zeros(()), None)

    def mean(self) -> float:
        """Return the mean, 0.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> TwoSidedGeometric(scale=2).mean()
        0.0
        """
        return 0.0

    def var(self) -> float:
        """Return the variance ``2 a / (1 - a)**2``, or infinity if it is beyond float64.

        The formula is from *Releasing Counts with Differential Privacy*.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> round(TwoSidedGeometric(scale=2).var(), 4)
        7.8354
        """
        return 0.0 if self._rate is None else count_moments.unbounded(self._rate).variance

    def std(self) -> float:
        """Return the standard deviation, even if the variance is beyond float64.

        >>> from geomdp.distribution import TwoSidedGeometric
        >>> round(TwoSidedGeometric(scale=2).std(), 4)
        2.7992
        """
        rate = 1 / self._noise.scale
        return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)

    def __repr__(self) -> str:
        return f"TwoSidedGeometric(scale={self._scale!r})"


@showable
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
        The true count or counts, as :meth:`geomdp.GeometricMechanism.release` accepts them. Centers
        outside the bounds are clamped to the nearest bound, as in a release. Arrays broadcast
        against the arguments of methods. ``mean``, ``var`` and ``std`` return arrays of the
        same shape.
    scale : number
        The noise scale; not negative, and within float64. 0 means no noise.
    bounds : (int, int)
        The least and the greatest output. For a release without bounds, give the limits of its
        dtype.

    Notes
    -----
    ``ppf``, ``isf``, ``median``, ``interval`` and ``support`` return exact integers: ints or arrays
    of int64, or of uint64 if the bounds are beyond int64. Floats beyond ``2**53`` would not be
    exact. ``ppf(0)`` is the lower bound; scipy returns one less, which may not fit the dtype.

    Examples
    --------
    >>> from geomdp.distribution import CensoredGeometric
    >>> release = CensoredGeometric(center=2, scale=5, bounds=(0, 100))
    >>> release.pmf(0) == release.cdf(0), release.sf(100), release.pmf(-1)
    (True, 0.0, 0.0)
    >>> release.interval(0.9)
    (0, 13)
    >>> CensoredGeometric([0, 50, 100], 5, (0, 100)).mean().round(3)
    array([ 2.483, 50.   , 97.517])

    """

    __slots__ = ("_given",)
    _bounds: tuple[int, int]

    def __init__(self, center: ArrayLike, scale: Real, bounds: Bounds) -> None:
        pair = GeometricMechanism.from_scale(0, bounds).bounds
        if pair is None:
            raise TypeError("bounds = None is not accepted: give a pair (lower, upper)")
        self._given = np.array(arrays.as_array(center, arrays.dtype_for(pair), "center"))
        self._given.flags.writeable = False
        super().__init__(scale, _clamped(self._given, pair)[0], pair)

    @property
    def center(self) -> Any:
        """The true count or counts, as given: an int, or a read-only array."""
        return _bare(self._given)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest output."""
        return self._bounds

    def mean(self) -> Any:
        """Return the mean, ``center + (a**(l + 1) - a**(u + 1)) / (1 - a**2)``.

        Here l and u are the distances from the center to the lower and the upper bound
        (``docs/proofs.md``, section 10). The second term is rounded to a float, and so is the sum.

        >>> from geomdp.distribution import CensoredGeometric
        >>> release = CensoredGeometric([0, 3], scale=2, bounds=(0, 100))
        >>> release.mean().round(3)
        array([0.96 , 3.214])
        """
        return self._each(lambda center: float(center + Fraction(self._moments(center).bias)))

    def var(self) -> Any:
        """Return the variance (``docs/proofs.md``, section 10).

        >>> from geomdp.distribution import CensoredGeometric
        >>> release = CensoredGeometric([0, 3], scale=2, bounds=(0, 100))
        >>> release.var().round(3)
        array([2.997, 5.631])
        """
        return self._each(lambda center: self._moments(center).variance)

    def std(self) -> Any:
        """Return the standard deviation, the square root of :meth:`var`.

        >>> from geomdp.distribution import CensoredGeometric
        >>> release = CensoredGeometric([0, 3], scale=2, bounds=(0, 100))
        >>> release.std().round(3)
        array([1.731, 2.373])
        """
        return self._each(lambda center: math.sqrt(self._moments(center).variance))

    def _moments(self, center: int) -> count_moments.Moments:
        return count_moments.of_censored(self._rate, *self._bounds, center)

    def _each(self, function: Callable[[int], float]) -> Any:
        """Return a function of the clamped centers, evaluated once for each distinct one."""
        return _bare(arrays.of_each(self._center, function))

    def __repr__(self) -> str:
        return (
            f"CensoredGeometric(center={self.center!r}, scale={self._scale!r}, "
            f"bounds={self._bounds})"
        )


def _numbers(k: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return k as an array of integers or of float64."""
    if isinstance(k, float | np.floating | np.ndarray):
        arrays.refuse_masked("k", k)
        floats = np.asarray(k)
        if floats.dtype.kind == "f" and floats.dtype.itemsize <= 8:
            return floats.astype(np.float64)
    return arrays.as_array(k, dtype, "k")


def _clamped(numbers: NDArray[Any], bounds: tuple[int, int]) -> tuple[NDArray[Any], _Flags, _Flags]:
    """Return numbers, rounded down, within the bounds, and which were below and above them."""
    dtype = arrays.dtype_for(bounds)
    least, greatest = arrays.limits(dtype)
    if numbers.dtype.kind == "f":
        numbers = np.floor(numbers)
        # The greatest integer of the dtype is no float, but one more is.
        below, above = numbers < float(least), numbers >= float(greatest + 1)
    else:
        below, above = numbers < least, numbers > greatest
    fits = ~(below | above | np.isnan(numbers))
    places = np.where(fits, numbers, numbers.dtype.type(0)).astype(dtype)
    low, high = (dtype.type(bound) for bound in bounds)
    places = np.where(below, low, np.where(above, high, places))
    return np.clip(places, low, high), below | (places < low), above | (places > high)


def _steps(greater: NDArray[Any], lesser: NDArray[Any]) -> _Floats:
    """Return the difference of integers; the subtraction is exact modulo ``2**64``."""
    return np.asarray(np.subtract(greater.astype(np.uint64), lesser.astype(np.uint64)), np.float64)


def _probabilities(name: str, value: Any) -> _Floats:
    """Return probabilities as floats; Fractions are rounded."""
    floats = arrays.weights(name, value)
    if (floats > 1).any():
        raise ValueError(parameters.refusal(name, value, "numbers from 0 to 1"))
    return floats


def _float(scale: float | Fraction) -> float:
    try:
        return float(scale)
    except OverflowError:
        wanted = "a number within float64"
        raise OverflowError(parameters.refusal("scale", scale, wanted)) from None


def _known(values: _Floats, numbers: NDArray[Any]) -> Any:
    """Return values, with NaN where a number is NaN."""
    return _bare(np.where(np.isnan(numbers), math.nan, values))


def _bare(values: NDArray[Any]) -> Any:
    """Return a number instead of an array without dimensions."""
    return np.asarray(values) if np.ndim(values) else values.item()


public(__name__)
