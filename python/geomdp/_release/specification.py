"""The public parameters of a mechanism, its privacy map and its certificate."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from geomdp import _core
from geomdp._release import arrays, certificate, notebook, parameters
from geomdp._release.parameters import Bounds, Integer, Real


@lru_cache(maxsize=128)
def _prepared(
    epsilon: Any, sensitivity: int, scale: Any, bounds: tuple[int, int] | None
) -> tuple[Fraction | None, _core.Mechanism]:
    """Return the exact rate and the plans; equal mechanisms share plans, which are slow to make."""
    rate: Fraction | None
    if scale is None:
        rate = Fraction(epsilon) / sensitivity
        for part in rate.as_integer_ratio():
            parameters.narrow("epsilon / sensitivity", part)
    else:
        rate = 1 / Fraction(scale) if scale else None
    if bounds and max(map(abs, bounds)) >= 2**127:
        # The core cannot compare such numbers.
        raise OverflowError(f"bounds = {bounds} are not accepted: give 64-bit integers")
    return rate, _core.Mechanism(None if rate is None else rate.as_integer_ratio(), bounds)


class Specification:
    """Epsilon, sensitivity and bounds, with the privacy map and the certificate.

    :class:`geomdp.GeometricMechanism` adds the release, and documents the parameters.
    """

    __slots__ = ("_bounds", "_core", "_epsilon", "_rate", "_scale", "_sensitivity")

    def __init__(
        self,
        epsilon: Real,
        sensitivity: Integer = 1,
        bounds: Bounds | None = None,
    ) -> None:
        self._epsilon = parameters.positive_number("epsilon", epsilon)
        self._sensitivity = parameters.at_least("sensitivity", sensitivity, 1)
        self._scale: float | Fraction | None = None
        self._bounds = parameters.interval(bounds)
        self._rate, self._core = _prepared(self._epsilon, self._sensitivity, None, self._bounds)

    @classmethod
    def from_scale(cls, scale: Real, bounds: Bounds | None = None) -> Self:
        """Return the mechanism with noise scale `scale` (``1 / rate``) and sensitivity 1.

        Scale 0 adds no noise: counts are only clamped, and ``map`` is infinite.

        Parameters
        ----------
        scale : int, float or Fraction
            The exact scale; not negative.
        bounds : (int, int) or None
            As in :class:`geomdp.GeometricMechanism`.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As in :class:`geomdp.GeometricMechanism`.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> GeometricMechanism.from_scale(2).map(1)
        0.5

        """
        self = cls.__new__(cls)
        self._sensitivity = 1
        self._scale = parameters.number("scale", scale)
        self._bounds = parameters.interval(bounds)
        self._rate, self._core = _prepared(None, 1, self._scale, self._bounds)
        self._epsilon = math.inf if self._rate is None else self._rate
        return self

    @property
    def epsilon(self) -> float | Fraction:
        """Privacy loss at distance ``sensitivity``: as given, or ``1 / scale``."""
        return self._epsilon

    @property
    def sensitivity(self) -> int:
        """The distance at which the privacy loss is ``epsilon``."""
        return self._sensitivity

    @property
    def scale(self) -> float | Fraction:
        """``sensitivity / epsilon``: as given, or an exact Fraction."""
        if self._scale is not None:
            return self._scale
        assert self._rate is not None
        return 1 / self._rate

    @property
    def rate(self) -> float | Fraction:
        """``epsilon / sensitivity``, an exact Fraction; infinite for scale 0."""
        return math.inf if self._rate is None else self._rate

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Least and greatest output; None for the limits of each signed dtype."""
        return self._bounds

    def map(self, d_in: Integer) -> float:
        """Return the privacy loss for inputs at distance `d_in`: ``d_in * rate``, rounded up.

        The distance is absolute for one count, and L1 for an array (*Privacy Proofs for OpenDP:
        Geometric Measurement*, theorem 1.1).

        Parameters
        ----------
        d_in : int
            Not negative.

        Returns
        -------
        float
            The privacy loss, never less than the exact value: 0 for distance 0, and infinity for
            scale 0 and any other distance.

        Raises
        ------
        TypeError, ValueError
            If `d_in` is not an integer, or negative.
        OverflowError
            If `d_in` has more than 14 000 bits.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> GeometricMechanism(epsilon=0.5, sensitivity=2).map(6)
        1.5

        """
        return self._core.map(parameters.at_least("d_in", d_in, 0))

    def certificate(
        self, dtype: DTypeLike | None = None, *, tight: bool = False
    ) -> certificate.Certificate:
        """Return the exact data and inequalities that prove the sampled distribution private.

        Parameters
        ----------
        dtype : dtype, optional
            Integer dtype of the counts; int64 by default. With bounds, all dtypes that hold the
            bounds have the same certificate.
        tight : bool
            Whether to compute the exact privacy loss of the sampled distribution, over all
            neighbours and outputs. The range must be at most 100 000; the time is proportional to
            it.

        Raises
        ------
        TypeError
            If the dtype is not an integer dtype, or `tight` is not a bool.
        ValueError
            If the dtype is unsigned and there are no bounds, `tight` is True for a larger range, or
            the scale is too large to be certified.
        OverflowError
            If the bounds do not fit the dtype.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> proof = GeometricMechanism(epsilon=0.5, bounds=(0, 4526)).certificate(tight=True)
        >>> proof.holds, proof.tight_epsilon <= 0.5, proof.total_variation < 1e-15
        (True, True, True)

        """
        if dtype is None:
            dtype = arrays.dtype_for(self._bounds)
        parameters.flag("tight", tight)
        code = arrays.code(arrays.integer_dtype(dtype))
        return certificate.from_fields(self._core.certificate(code, tight))

    def _key(self) -> tuple[Fraction | None, int, tuple[int, int] | None]:
        return self._rate, self._sensitivity, self._bounds

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Specification):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self._scale is not None:
            return type(self).from_scale, (self._scale, self._bounds)
        return type(self), (self._epsilon, self._sensitivity, self._bounds)

    def __repr__(self) -> str:
        name = type(self).__name__
        bounds = "" if self._bounds is None else f", bounds={self._bounds}"
        if self._scale is not None:
            return f"{name}.from_scale({self._scale!r}{bounds})"
        return f"{name}(epsilon={self._epsilon!r}, sensitivity={self._sensitivity}{bounds})"

    def _repr_html_(self) -> str:
        return notebook.table(
            f"{type(self).__name__}: discrete Laplace noise",
            {
                "epsilon": notebook.short(self.epsilon),
                "sensitivity": self.sensitivity,
                "noise scale": notebook.short(self.scale),
                "bounds": "the limits of the dtype" if self.bounds is None else self.bounds,
            },
        )


def checked(mechanism: Any) -> Any:
    """Return the mechanism."""
    if not isinstance(mechanism, Specification):
        # Do not show the value: it may be counts, given in the wrong place.
        kind = type(mechanism).__name__
        raise TypeError(f"mechanism has type {kind}: give a GeometricMechanism")
    return mechanism


def as_counts(mechanism: Any, counts: Any) -> arrays.Array:
    """Return counts as an array; ints become int64, or uint64 if the bounds need it."""
    return arrays.as_array(counts, arrays.dtype_for(checked(mechanism).bounds))


def loss(mechanism: Specification, d_in: int | Fraction) -> Fraction | float:
    """Return the exact privacy loss at a distance: ``d_in * rate``, also where rate is infinite."""
    if not d_in:
        return Fraction()
    return math.inf if mechanism._rate is None else mechanism._rate * d_in


def limits(mechanism: Specification, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest output for counts of a dtype."""
    return mechanism._core.limits(arrays.code(dtype))
