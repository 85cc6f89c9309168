"""The geometric mechanism."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Protocol, Self, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from geomdp import _core, frames
from geomdp._release import arrays, certificate, parameters
from geomdp._release.arrays import Array
from geomdp._release.parameters import Bounds, Integer, Real

_Integer = TypeVar("_Integer", bound=np.integer[Any])


class _HasStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


_Column = TypeVar("_Column", bound=_HasStream)


@lru_cache(maxsize=128)
def _prepared(
    epsilon: Any, sensitivity: int, scale: Any, bounds: tuple[int, int] | None
) -> tuple[Fraction | None, _core.Mechanism]:
    """Return the exact rate and the plans, which equal mechanisms share: they take long to make."""
    rate: Fraction | None
    if scale is None:
        rate = Fraction(epsilon) / sensitivity
        for part in rate.as_integer_ratio():
            parameters.narrow("epsilon / sensitivity", part)
    else:
        rate = 1 / Fraction(scale) if scale else None
    if bounds and max(map(abs, bounds)) >= 2**127:
        # Beyond what the core can even compare.
        raise OverflowError(f"bounds = {bounds} are not accepted: give 64-bit integers")
    return rate, _core.Mechanism(None if rate is None else rate.as_integer_ratio(), bounds)


class GeometricMechanism:
    """Add two-sided geometric noise to counts, purely private, in constant time.

    ``release(x)`` returns ``clamp(clamp(x) + Z)``, where ``Z`` is z with probability
    ``(1 - a)/(1 + a) * a**abs(z)``, ``a = exp(-epsilon / sensitivity)`` (*Geometric
    Mechanism Notes*, equation 2.1 and algorithm 2; Ghosh, Roughgarden and Sundararajan 2012).
    Clamping is to ``bounds``, or to the limits of the signed dtype of the counts if none are given.
    Unsigned counts need bounds (``docs/bounds.md``).

    Every draw is fresh: the mechanism holds public parameters only, no generator, and may be used
    by any number of threads and processes.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Privacy loss for inputs at distance ``sensitivity``. Positive, and taken exactly: a float is
        the dyadic number that it is.
    sensitivity : int
        The greatest change of a count, or of all counts together (L1), between neighbours.
    bounds : (int, int) or None
        Least and greatest output, both public. Counts outside are clamped, silently.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If epsilon is not positive and finite, sensitivity is below 1, bounds are reversed, or the
        scale is too large to be certified for the range.
    OverflowError
        If no integer dtype holds both bounds, or a parameter has more than 14 000 bits.

    Examples
    --------
    >>> mechanism = GeometricMechanism(epsilon=1, bounds=(0, 100))
    >>> mechanism.release(40) in range(101)
    True
    >>> mechanism.map(1)
    1.0

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
        """Return the mechanism with this scale, ``1 / rate``, and sensitivity 1.

        Scale 0 adds no noise: counts are clamped, and ``map`` is infinite.

        Parameters
        ----------
        scale : int, float or Fraction
            Not negative; taken exactly.
        bounds : (int, int) or None
            As in the class.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As in the class.

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
        """The distance at which the loss is ``epsilon``."""
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

    @overload
    def release(self, counts: int, *, out: None = None, threads: int | None = None) -> int: ...
    @overload
    def release(
        self, counts: _Integer, *, out: None = None, threads: int | None = None
    ) -> _Integer: ...
    @overload
    def release(
        self,
        counts: NDArray[_Integer],
        *,
        out: NDArray[_Integer] | None = None,
        threads: int | None = None,
    ) -> NDArray[_Integer]: ...
    @overload
    def release(
        self, counts: int, *, out: NDArray[np.int64], threads: int | None = None
    ) -> NDArray[np.int64]: ...
    @overload
    def release(
        self, counts: _Integer, *, out: NDArray[_Integer], threads: int | None = None
    ) -> NDArray[_Integer]: ...
    @overload
    def release(
        self,
        counts: Sequence[Any],
        *,
        out: NDArray[np.int64] | None = None,
        threads: int | None = None,
    ) -> NDArray[np.int64]: ...

    @overload
    def release(self, counts: _Column, *, threads: int | None = None) -> _Column: ...

    def release(self, counts: Any, *, out: Any = None, threads: Integer | None = None) -> Any:
        """Return noisy counts.

        Parameters
        ----------
        counts : int, numpy integer, array or sequence of ints
            Of any of the eight integer dtypes from 8 to 64 bits, any shape, strides and byte order.
            Ints and sequences of ints are taken as int64. Values outside the bounds are clamped.
            Columns of pandas, Polars or PyArrow, without nulls, see :func:`geomdp.frames.release`.
        out : array, optional
            Where to write the noisy counts: of the dtype and shape of the counts, and possibly the
            same array. It is either written completely or left as it was.
        threads : int, optional
            How many share a large array, at most; if none is given, as many as there are processors
            for this process, where that pays. The law does not depend on it.

        Returns
        -------
        int, numpy integer or array
            Of the type, dtype and shape of the counts, each count with noise of its own.

        Raises
        ------
        TypeError
            If counts are not integers, or are masked; if `out` is of another dtype.
        ValueError
            If the counts are unsigned and there are no bounds; if `out` is of another shape, or
            cannot be written; if `threads` is below 1; if the scale is too large to be certified
            for the whole dtype and there are no bounds.
        OverflowError
            If an int is beyond int64, or the bounds are beyond the dtype of the counts.
        OSError
            If the operating system gives no random bytes; nothing is released then.
        KeyboardInterrupt
            On Ctrl-C, with `out` untouched; but with a contiguous `out` of native byte order, only
            after it has been written completely.

        """
        most = parameters.threads(threads)
        if out is None:
            # The common case first: the checks below take as long as the draw.
            if type(counts) is int and -(2**63) <= counts < 2**63:
                return self._core.release_scalar(counts, "i8")
            if isinstance(counts, np.integer) and parameters.is_integer(counts):
                noisy = self._core.release_scalar(int(counts), arrays.code(counts.dtype))
                return type(counts)(noisy)
            if parameters.is_integer(counts):
                return self._core.release_scalar(arrays.exact(counts), "i8")
            if type(counts) is np.ndarray and (dtype := arrays.ready(counts)):
                result = np.empty(counts.shape, counts.dtype)
                self._core.release_into(counts, result, dtype, True, most)
                return result
            if frames.is_column(counts):
                return frames.release(self, counts, threads=most or None)

        def noise(source: Array, target: Array, dtype: str, interruptible: bool) -> None:
            self._core.release_into(source, target, dtype, interruptible, most)

        return arrays.release(arrays.as_array(counts), out, noise)

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
            0 for distance 0, infinity for scale 0 and any other distance; never less than the exact
            value.

        Raises
        ------
        TypeError
            If `d_in` is not an integer.
        ValueError
            If `d_in` is negative.
        OverflowError
            If `d_in` has more than 14 000 bits.

        """
        return self._core.map(parameters.at_least("d_in", d_in, 0))

    def certificate(
        self, dtype: DTypeLike | None = None, *, tight: bool = False
    ) -> certificate.Certificate:
        """Return the exact data and the inequality that make the sampled law private.

        Parameters
        ----------
        dtype : dtype, optional
            Integer dtype of the counts; int64 if none is given. With bounds, all that hold them
            have the same certificate.
        tight : bool
            Whether to work out the exact loss of the sampled law, over all neighbours and outputs:
            for ranges up to 100 000, in time proportional to the range.

        Raises
        ------
        TypeError
            If the dtype is not one of integers, or `tight` is not a bool.
        ValueError
            If the dtype is unsigned and there are no bounds, `tight` is asked for a larger range,
            or the scale is too large to be certified.
        OverflowError
            If the bounds are beyond the dtype.

        """
        if dtype is None:
            wide = self._bounds is not None and self._bounds[1] >= 2**63
            dtype = np.uint64 if wide else np.int64
        parameters.flag("tight", tight)
        try:
            resolved = np.dtype(dtype)
        except TypeError:
            raise TypeError(parameters.refusal("dtype", dtype, "an integer dtype")) from None
        if resolved.kind not in "iu":
            raise TypeError(f"dtype = {resolved} is not accepted: give an integer dtype")
        return certificate.from_fields(self._core.certificate(arrays.code(resolved), tight))

    def accuracy(self, alpha: Real, counts: Any = None) -> Any:
        """Return the least a such that an error of more than a has probability `alpha` at most.

        See :func:`geomdp.accuracy.release_accuracy`.
        """
        from geomdp.accuracy import release_accuracy  # noqa: PLC0415 (imports much more)

        return release_accuracy(self, alpha, counts)

    def confidence_interval(
        self, released: Any, alpha: Real, *, side: Literal["both", "lower", "upper"] = "both"
    ) -> tuple[Any, Any]:
        """Return bounds between which the true count is, but for a probability of `alpha`.

        See :func:`geomdp.accuracy.confidence_interval`.
        """
        from geomdp.accuracy import confidence_interval  # noqa: PLC0415 (imports much more)

        return confidence_interval(self, released, alpha, side=side)

    def _key(self) -> tuple[Fraction | None, int, tuple[int, int] | None]:
        return self._rate, self._sensitivity, self._bounds

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GeometricMechanism):
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
