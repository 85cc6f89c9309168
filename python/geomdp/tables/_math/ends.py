"""The ends of intervals: all that makes, scales or cuts one rounds it outwards.

Where the true value is an end, the last digit decides whether the interval contains it. So an end
is an exact number, or the next float outside it. Scaled ends are computed as ratios of integers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._numerics import tails

_Floats: TypeAlias = NDArray[np.float64]
_Number: TypeAlias = int | float | Fraction

#: Float64 has all integers up to this.
EXACT = 2.0**53
#: Beyond this, sums of an integer and an end may be beyond int64.
_LARGEST = 2.0**62
_INT64 = np.iinfo(np.int64)


def level(alpha: Fraction, n: int, *, independent: bool = False) -> Fraction:
    """Return the level of each of n intervals that miss together with probability at most alpha.

    An interval of a row that was chosen by its noisy value, among n rows, needs this level too: the
    largest rows are those whose noise was greatest, and only what holds for all rows at once holds
    for any choice of them. Levels multiply (Sidak's are a little greater) if each interval depends
    on noises of its own; rows that share a noise have equal parts of alpha.
    """
    return tails.share(alpha, n) if independent else alpha / n


class Ends(NamedTuple):
    """The lower and upper ends of intervals, which include them: int64, or float64 outwards."""

    lower: NDArray[Any]
    upper: NDArray[Any]

    @classmethod
    def of(cls, lower: Iterable[_Number], upper: Iterable[_Number], shape: Sequence[int]) -> Ends:
        """Return exact ends: as int64 if all of them are such integers, or as the floats around."""
        low, high = list(lower), list(upper)
        if all(isinstance(x, int) and _INT64.min <= x <= _INT64.max for x in (*low, *high)):
            return cls(*(np.array(each, np.int64).reshape(shape) for each in (low, high)))
        floats = [_below(*_ratio(x)) for x in low], [_above(*_ratio(x)) for x in high]
        return cls(*(np.array(each, np.float64).reshape(shape) for each in floats))

    @classmethod
    def around(
        cls,
        base: NDArray[Any],
        more: _Floats,
        reaches: _Floats,
        rounding: float,
        limits: tuple[int | float, int | float],
        *,
        whole: bool,
    ) -> Ends:
        """Return the ends at these reaches from ``base + more``, which is off by the rounding.

        True values may be whole numbers. Then the base has such numbers too, as int64 or floats.
        They are within the limits, and a value beyond one has the interval of the limit
        (``docs/proofs.md``, lemma 16e), which is not yet cut there.
        """
        for limit, beyond in zip(limits, (np.less, np.greater), strict=True):
            if (far := beyond(base + more, limit)).any():
                base, more = np.where(far, limit, base), np.where(far, 0.0, more)
        reaches = _added(reaches, np.full_like(reaches, rounding), math.inf)
        lower, upper = _added(more, -reaches, -math.inf), _added(more, reaches, math.inf)
        if whole:
            lower, upper = np.ceil(lower), np.floor(upper)
            # Where there is no integer between, the two around it.
            lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
        if base.dtype.kind != "i":
            return cls(_added(base, lower, -math.inf), _added(base, upper, math.inf))
        size = np.abs(base.astype(np.float64)) + np.maximum(np.abs(lower), np.abs(upper))
        if whole and (size < _LARGEST).all():
            return cls(base + lower.astype(np.int64), base + upper.astype(np.int64))
        low, high = (map(_sum, base.flat, each.flat) for each in (lower, upper))
        return cls.of(low, high, base.shape)

    @classmethod
    def of_quotients(
        cls,
        above: Iterable[tuple[_Number, _Number]],
        below: Iterable[tuple[_Number, _Number]],
        shape: Sequence[int],
    ) -> Ends:
        """Return the ends of the quotients of numbers in these intervals, the second above 0.

        An end is infinite where the second number may be too small to tell.
        """
        found: list[tuple[_Number, _Number]] = []
        for (least, most), (small, great) in zip(above, below, strict=True):
            found.append((-_quotient(-least, small, great), _quotient(most, small, great)))
        return cls.of((x for x, _ in found), (x for _, x in found), shape)

    def within(self, least: _Number, most: _Number = math.inf) -> Ends:
        """Return the parts of the intervals between two numbers that no true value is beyond."""
        if self.lower.dtype.kind == "i":
            return Ends(*(np.clip(x, *_int64(least, most)) for x in self))
        low, high = _ratio(least), _ratio(most)
        return Ends(
            np.clip(self.lower, _below(*low), _below(*high)),
            np.clip(self.upper, _above(*low), _above(*high)),
        )

    def scaled(
        self,
        factors: Fraction | NDArray[Any],
        *,
        shift: Fraction = Fraction(0),
        off: Fraction = Fraction(0),
    ) -> Ends:
        """Return the ends times positive factors, moved by `shift`, and outwards by `off`."""
        times = np.broadcast_to(np.asarray(factors, object), self.lower.shape)
        lower = map(_moved, self.lower.flat, times.flat, [shift - off] * times.size)
        upper = map(_moved, self.upper.flat, times.flat, [shift + off] * times.size)
        return Ends(
            np.array([_below(*x) for x in lower], np.float64).reshape(times.shape),
            np.array([_above(*x) for x in upper], np.float64).reshape(times.shape),
        )


def _added(one: NDArray[Any], two: _Floats, outwards: float) -> _Floats:
    """Return sums of floats, rounded towards an infinity."""
    found = np.asarray(one + two, np.float64)
    with np.errstate(invalid="ignore"):
        # The exact rounding error, by Knuth; NaN beside infinity.
        rest = found - one
        wrong = (one - (found - rest)) + (two - rest)
    inwards = wrong * math.copysign(1, outwards) > 0
    return np.nextafter(found, outwards, out=found, where=inwards)


def _sum(base: Any, more: Any) -> _Number:
    """Return the exact sum of an int64 and a float."""
    return int(base) + Fraction(float(more)) if math.isfinite(more) else float(more)


def _quotient(most: _Number, small: _Number, great: _Number) -> _Number:
    """Return the greatest quotient of a number up to `most` and one above 0 in an interval."""
    by = small if most > 0 else great
    if by == math.inf:
        return 0
    return math.inf if by <= 0 or most == math.inf else Fraction(most) / Fraction(by)


def around(value: float, rounding: float) -> tuple[Fraction, Fraction] | tuple[float, float]:
    """Return numbers below and above all that a noisy number may stand for."""
    if not math.isfinite(rounding):
        return -math.inf, math.inf
    # Floats may be rounded integers.
    exact, room = Fraction(value), Fraction(rounding)
    if abs(value) > EXACT:
        room += abs(exact) / 2**52
    return exact - room, exact + room


def _int64(least: _Number, most: _Number) -> tuple[int, int]:
    """Return limits of int64 ends, which are integers or infinite."""
    return (
        _INT64.min if least == -math.inf else int(least),
        _INT64.max if most == math.inf else int(most),
    )


def _ratio(value: _Number) -> tuple[int, int]:
    """Return a number as a ratio of integers; an infinite one has the denominator 0."""
    if isinstance(value, float) and math.isinf(value):
        return (1, 0) if value > 0 else (-1, 0)
    return value.as_integer_ratio()


def _moved(end: Any, factor: Fraction, shift: Fraction) -> tuple[int, int]:
    """Return ``end * factor + shift`` as a ratio of integers."""
    n, d = _ratio(end if isinstance(end, float) else int(end))
    return (
        n * factor.numerator * shift.denominator + shift.numerator * d * factor.denominator,
        d * factor.denominator * shift.denominator,
    )


def _below(n: int, d: int) -> float:
    """Return the greatest float at or below a ratio."""
    if d == 0:
        return math.copysign(math.inf, n)
    try:
        # Rounded to the nearest.
        found = n / d
    except OverflowError:
        return sys.float_info.max if n > 0 else -math.inf
    a, b = found.as_integer_ratio()
    return math.nextafter(found, -math.inf) if a * d > n * b else found


def _above(n: int, d: int) -> float:
    """Return the least float at or above a ratio."""
    # Not -0.0 for 0.
    return 0.0 - _below(-n, d)
