"""Replacements for diffprivlib's geometric mechanism classes; diffprivlib is not required.

In contrast to diffprivlib, ``randomise`` takes arrays as well as single counts, the truncated and
the folded mechanism know their bias and variance too, and parameters cannot be changed after
construction.
"""

from __future__ import annotations

import copy
import math
import random
import sys
from fractions import Fraction
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.notebook import showable
from geomdp._ground.uncopied import public
from geomdp._inputs import arrays
from geomdp._inputs.arrays import Array
from geomdp._kernel import core
from geomdp._numerics import count_moments
from geomdp.mechanism import GeometricMechanism, core_of

__all__ = ["Geometric", "GeometricTruncated", "GeometricFolded"]

#: Adds noise to the counts of one dtype.
_Drawer: TypeAlias = core.Mechanism | core.Folded
_INF = math.inf
_INT64, _UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


@showable
class Geometric:
    """The geometric mechanism without bounds; outputs saturate at the limits of the dtype.

    For an unsigned dtype, saturation biases small counts upward (``docs/bounds.md``).

    Parameters
    ----------
    epsilon : number
        The privacy loss for counts at distance ``sensitivity``: positive, taken exactly; infinite
        for no noise.
    sensitivity : int
        At least 0; 0 for no noise.
    random_state : None
        Must not be a seed, since anyone who knows the seed can subtract the noise. numpy's global
        ``RandomState`` and any ``random.SystemRandom`` count as None: diffprivlib's own tools pass
        these on when they are given no seed.

    Raises
    ------
    ValueError
        If `random_state` is a seed.

    Examples
    --------
    >>> from geomdp.compat.diffprivlib import Geometric
    >>> 0 <= Geometric(epsilon=1, random_state=None).randomise(500) <= 1000
    True

    """

    _names: tuple[str, ...] = ("epsilon", "sensitivity")
    #: The limits of the dtype for an int.
    _limits: np.iinfo[Any] = _INT64

    def __init__(self, *, epsilon: Any, sensitivity: Any = 1, random_state: Any = None) -> None:
        infinite = _is_infinite(epsilon) and epsilon > 0
        exact = None if infinite else parameters.drawn("epsilon", epsilon)
        if not _is_unseeded(random_state):
            raise ValueError(
                f"random_state {parameters.given(random_state)} is not accepted, since anyone who "
                "knows it could subtract the noise: give None (for tests, geomdp.testing has "
                "reproducible noise)"
            )
        self._epsilon = epsilon
        self._sensitivity = parameters.at_least("sensitivity", sensitivity, 0)
        #: None for no noise.
        self._rate = exact / self._sensitivity if exact and self._sensitivity else None
        self._drawers: dict[str, _Drawer] = {}

    @property  # type: ignore[misc]
    def __class__(self) -> type[Self]:
        # The class is a virtual subclass of diffprivlib's DPMechanism. isinstance(x, DPMechanism)
        # runs no code of this module but this property. Registering here therefore works however
        # late diffprivlib is imported, and never imports it.
        _register()
        return type(self)

    @property
    def epsilon(self) -> Any:
        """The privacy loss at distance ``sensitivity``, as given."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """Always 0: the mechanism is pure epsilon-DP."""
        return 0.0

    @property
    def random_state(self) -> None:
        """Always None: there is no seed."""
        return None

    @property
    def sensitivity(self) -> int:
        """The distance at which the privacy loss is ``epsilon``."""
        return self._sensitivity

    def randomise(self, value: Any) -> Any:
        """Return noisy counts.

        Parameters
        ----------
        value : int, array or sequence of ints
            Arrays may have any integer dtype, shape and byte order.

        Returns
        -------
        int or array
            An int for a single count, otherwise an array with the dtype and shape of the counts. A
            sequence gives an int64 array.

        Examples
        --------
        >>> from geomdp.compat.diffprivlib import GeometricTruncated
        >>> mechanism = GeometricTruncated(epsilon=0.5, lower=0, upper=100)
        >>> mechanism.randomise([12, 7]).shape
        (2,)

        """
        if type(value) is int or isinstance(value, Integral):
            limits = self._limits_of(value)
            count = arrays.as_int(value, limits)
            code = arrays.code(limits.dtype)
            return self._drawer(code).release_scalar(count, code)
        counts = arrays.as_array(value)
        core = self._drawer(arrays.code(counts.dtype))

        def noise(source: Array, target: Array) -> None:
            core.release_into(source, target, None, 0)

        return arrays.release(counts, None, noise)

    def bias(self, value: Any) -> Any:
        """Return the expectation of the noisy count minus the count.

        The value is that of the ideal distribution, without approximation other than rounding to
        float64. ``docs/proofs.md``, section 10, has the formulas. Without a bound, the limit of the
        dtype takes its place.

        Parameters
        ----------
        value : int, array or sequence of ints
            The counts.

        Returns
        -------
        float or array of float64
            One value for each count.

        Examples
        --------
        >>> from geomdp.compat.diffprivlib import GeometricTruncated
        >>> mechanism = GeometricTruncated(epsilon=0.5, lower=0, upper=100)
        >>> round(mechanism.bias(0), 2)
        0.96

        """
        return self._of_each(value, 0)

    def variance(self, value: Any) -> Any:
        """Return the variance of the noisy count, in units of squared counts.

        The parameter, shapes and errors are those of :meth:`bias`.

        >>> from geomdp.compat.diffprivlib import GeometricTruncated
        >>> mechanism = GeometricTruncated(epsilon=0.5, lower=0, upper=100)
        >>> round(mechanism.variance(50), 2)
        7.84
        """
        return self._of_each(value, 1)

    def mse(self, value: Any) -> Any:
        """Return the mean squared error: the variance plus the square of the bias.

        The parameter, shapes and errors are those of :meth:`bias`.

        >>> from geomdp.compat.diffprivlib import GeometricTruncated
        >>> mechanism = GeometricTruncated(epsilon=0.5, lower=0, upper=100)
        >>> round(mechanism.mse(0), 2)
        3.92
        """
        return self.variance(value) + self.bias(value) ** 2

    def copy(self) -> Self:
        """Return a copy.

        >>> from geomdp.compat.diffprivlib import Geometric
        >>> Geometric(epsilon=1).copy().epsilon
        1
        """
        return copy.copy(self)

    def _of_each(self, value: Any, moment: int) -> Any:
        if parameters.is_integer(value):
            count = parameters.integer("value", value)
            return self._moments_at(count, self._limits_of(value))[moment]
        array = arrays.as_array(value)
        limits = np.iinfo(array.dtype)
        return arrays.of_each(array, lambda x: self._moments_at(x, limits)[moment])

    def _moments_at(self, x: int, limits: np.iinfo[Any]) -> count_moments.Moments:
        return count_moments.of_censored(self._rate, int(limits.min), int(limits.max), x)

    def _limits_of(self, value: Any) -> np.iinfo[Any]:
        """Return the limits of the dtype for a single count."""
        return _UINT64 if isinstance(value, np.uint64) else self._limits

    def _drawer(self, code: str) -> _Drawer:
        """Return the object that adds noise to counts of a dtype."""
        if code not in self._drawers:
            self._drawers[code] = self._prepared(np.iinfo(code))
        return self._drawers[code]

    def _prepared(self, limits: np.iinfo[Any]) -> _Drawer:
        # Pass the limits as bounds, since the mechanism requires bounds for unsigned counts.
        return self._within((int(limits.min), int(limits.max)))

    def _within(self, bounds: tuple[int, int]) -> core.Mechanism:
        scale = 0 if self._rate is None else 1 / self._rate
        return core_of(GeometricMechanism.from_scale(scale, bounds))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_drawers": {}}

    def __repr__(self) -> str:
        names = (*self._names, "random_state")
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__module__}.{type(self).__name__}({values})"


class _Bounded(Geometric):
    """Base class of the truncated and the folded mechanism."""

    _names = ("epsilon", "sensitivity", "lower", "upper")

    def __init__(
        self,
        *,
        epsilon: Any,
        sensitivity: Any = 1,
        lower: Any,
        upper: Any,
        random_state: Any = None,
    ) -> None:
        super().__init__(epsilon=epsilon, sensitivity=sensitivity, random_state=random_state)
        #: Twice the bounds: ints, or infinite.
        self._twice = self._doubled("lower", lower), self._doubled("upper", upper)
        if self._twice[0] > self._twice[1] or self._twice[0] == _INF or self._twice[1] == -_INF:
            raise ValueError(
                f"lower = {lower!r}, upper = {upper!r} are not accepted: give lower <= upper"
            )
        self._lower, self._upper = lower, upper
        # A lower or upper bound exceeds int64.
        if any(2**64 <= twice < _INF for twice in self._twice):
            self._limits = _UINT64
        self._prepared(self._limits)

    @property
    def lower(self) -> Any:
        """The lower bound, as given."""
        return self._lower

    @property
    def upper(self) -> Any:
        """The upper bound, as given."""
        return self._upper

    @staticmethod
    def _doubled(name: str, bound: Any) -> Any:
        raise NotImplementedError

    def _limits_of(self, value: Any) -> np.iinfo[Any]:
        # Negative bounds do not fit uint64, so a uint64 is treated like an int.
        return self._limits if -_INF < self._twice[0] < 0 else super()._limits_of(value)

    def _refuse_beyond(self, limits: np.iinfo[Any]) -> None:
        least, greatest = 2 * int(limits.min) - 1, 2 * int(limits.max) + 1
        for name, twice in zip(("lower", "upper"), self._twice, strict=True):
            if abs(twice) != _INF and not least <= twice <= greatest:
                raise OverflowError(
                    f"{name} = {getattr(self, name)!r} is not accepted: "
                    f"give one from {limits.min} to {limits.max}, the limits of {limits.dtype}"
                )


class GeometricTruncated(_Bounded):
    """The geometric mechanism with outputs clamped to the bounds.

    This is :class:`geomdp.GeometricMechanism`. Counts outside the bounds are clamped first.

    Parameters
    ----------
    epsilon, sensitivity, random_state
        As in :class:`Geometric`.
    lower, upper : int, or infinite
        Least and greatest output. An infinite bound means the limit of the dtype.

    Examples
    --------
    >>> from geomdp.compat.diffprivlib import GeometricTruncated
    >>> 0 <= GeometricTruncated(epsilon=0.5, lower=0, upper=100).randomise(3) <= 100
    True

    """

    @staticmethod
    def _doubled(name: str, bound: Any) -> Any:
        return float(bound) if _is_infinite(bound) else 2 * parameters.integer(name, bound)

    def _prepared(self, limits: np.iinfo[Any]) -> core.Mechanism:
        self._refuse_beyond(limits)
        return self._within(self._reach(limits))

    def _reach(self, limits: np.iinfo[Any]) -> tuple[int, int]:
        """Return finite bounds."""
        lower, upper = self._twice
        least = limits.min if lower == -_INF else lower // 2
        greatest = limits.max if upper == _INF else upper // 2
        return int(least), int(greatest)

    def _moments_at(self, x: int, limits: np.iinfo[Any]) -> count_moments.Moments:
        return count_moments.of_censored(self._rate, *self._reach(limits), x)


class GeometricFolded(_Bounded):
    """The geometric mechanism with outputs reflected at the bounds until they lie between them.

    Parameters
    ----------
    epsilon, sensitivity, random_state
        As in :class:`Geometric`. The scale ``sensitivity / epsilon`` may be at most ``2**56``.
    lower, upper : number
        Integers or half-integers; outputs lie between them. An infinite bound means the limit of
        the dtype, or if that is nearer, the limit of folding: less than ``2**63`` from the other
        bound.

    Raises
    ------
    ValueError
        If there is no integer between the bounds.
    OverflowError
        If the bounds are ``2**63`` or more apart.

    Examples
    --------
    >>> from geomdp.compat.diffprivlib import GeometricFolded
    >>> 0 <= GeometricFolded(epsilon=0.5, lower=-0.5, upper=100.5).randomise(3) <= 100
    True

    """

    @staticmethod
    def _doubled(name: str, bound: Any) -> Any:
        if _is_infinite(bound):
            return float(bound)
        twice = 2 * Fraction(parameters.finite(name, bound))
        if twice.denominator != 1:
            raise ValueError(f"{name} = {bound!r} is not accepted: give an integer or half of one")
        return twice.numerator

    def _reach(self, limits: np.iinfo[Any]) -> tuple[int, int]:
        """Return twice the bounds, finite; at least one bound must be finite."""
        lower, upper = self._twice
        if lower == -_INF:
            lower = max(2 * int(limits.min), upper - (2**64 - 2))
        elif upper == _INF:
            upper = min(2 * int(limits.max), lower + (2**64 - 2))
        return lower, upper

    def _prepared(self, limits: np.iinfo[Any]) -> _Drawer:
        self._refuse_beyond(limits)
        if self._twice == (-_INF, _INF):
            return super()._prepared(limits)
        ratio = None if self._rate is None else self._rate.as_integer_ratio()
        return core.Folded(ratio, self._reach(limits))

    def _moments_at(self, x: int, limits: np.iinfo[Any]) -> count_moments.Moments:
        if self._twice == (-_INF, _INF):
            return super()._moments_at(x, limits)
        return count_moments.of_folded(self._rate, self._reach(limits), x)


def _is_infinite(value: Any) -> bool:
    floating = isinstance(value, float | np.floating) and not isinstance(value, np.longdouble)
    return floating and abs(value) == _INF


def _is_unseeded(random_state: Any) -> bool:
    # diffprivlib's check_random_state takes or returns these if there is no seed.
    unseeded = random_state is None or random_state is np.random.mtrand._rand
    return unseeded or isinstance(random_state, random.SystemRandom)


def _register() -> None:
    base = getattr(sys.modules.get("diffprivlib.mechanisms.base"), "DPMechanism", None)
    if base is not None:
        base.register(Geometric)


# For `issubclass`, which reads no property of an instance; needs diffprivlib imported first.
_register()


public(__name__)
