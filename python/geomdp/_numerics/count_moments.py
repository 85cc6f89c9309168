"""Moments of the release of a count, computed in decimals with as many digits as needed.

They are the moments of the ideal distribution; the sampled one is within total variation distance
``2**-50`` of it. Throughout, the rate is a positive Fraction, ``a = exp(-rate)``, and the noise Z
has the distribution of *Geometric Mechanism Notes*, equation 2.1. ``below`` and ``above`` are the
distances ``x - lower`` and ``upper - x`` to the bounds, not negative. ``docs/proofs.md``, section
10, derives the formulas.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from geomdp._ground import decimals
from geomdp._ground.decimals import power


class Moments(NamedTuple):
    """Bias, variance, and mean absolute error."""

    bias: float
    variance: float
    absolute: float


def unbounded(rate: Fraction) -> Moments:
    """Return the moments of ``x + Z``."""
    with localcontext(_context(rate)):
        a = power(rate, 1)
        return Moments(0.0, float(2 * a / (1 - a) ** 2), float(2 * a / (1 - a**2)))


def censored(rate: Fraction, below: int, above: int) -> Moments:
    """Return the moments of ``clamp(x + Z)``, given the distances from x to the bounds."""
    with localcontext(_context(rate)):
        a = power(rate, 1)

        def side(distance: int) -> tuple[Decimal, Decimal, Decimal]:
            """Return ``E max(Z - d, 0)``, and mean and mean square of ``min(max(Z, 0), d)``.

            Here d is the distance. The first two are sums of ``a**k / (1 + a)``, the third of
            ``(2 k - 1) a**k / (1 + a)``.
            """
            tail = power(rate, distance)
            beyond = a * tail / (1 - a**2)
            square = a * (1 - tail) / (1 - a) ** 2 - 2 * distance * beyond
            return beyond, a * (1 - tail) / (1 - a**2), square

        (low, down, square), (high, up, other) = side(below), side(above)
        bias = low - high
        variance = square + other - bias**2
        return Moments(float(bias), float(variance), float(down + up))


def truncated(rate: Fraction, below: int, above: int) -> Moments:
    """Return the moments of ``x + Z``, given that it is within the bounds."""
    with localcontext(_context(rate)):
        a = power(rate, 1)

        def sums(distance: int) -> tuple[Decimal, Decimal, Decimal, Decimal]:
            """Return the sums of ``a**k``, ``k a**k`` and ``k**2 a**k`` for k from 1 to `distance`.

            The fourth value is the sum of ``k a**k`` for k above `distance`.
            """
            tail, width = power(rate, distance), distance * (1 - a)
            beyond = tail * (1 + width)
            return (
                a * (1 - tail) / (1 - a),
                a * (1 - beyond) / (1 - a) ** 2,
                a * ((1 + a) * (1 - tail) - tail * width * (2 + width)) / (1 - a) ** 3,
                a * beyond / (1 - a) ** 2,
            )

        (mass, down, square, low), (more, up, other, high) = sums(below), sums(above)
        mass += more + 1
        # Not (up - down), which cancels to 0 far from the bounds.
        bias = (low - high) / mass
        variance = (square + other) / mass - bias**2
        return Moments(float(bias), float(variance), float((down + up) / mass))


def folded(rate: Fraction, below: int, above: int, half_below: bool, half_above: bool) -> Moments:
    """Return the moments of ``x + Z`` folded into bounds on both sides of x.

    Each moment is the expectation ``G(p)`` of some function ``f`` of the folded count, where p is
    the number of outputs below x. It satisfies ``G - k (G(p + 1) - 2 G(p) + G(p - 1)) = f``, with
    ``k = a / (1 - a)**2``. The solution is the one without bounds plus multiples of ``a**p`` and
    ``a**(n - p)``; the reflections at both ends determine these multiples.

    `below` and `above` are the numbers of outputs below and above x. The flags say whether a bound
    is half a unit beyond the last output.
    """
    p, n = below, below + above
    if n == 0:
        return Moments(0.0, 0.0, 0.0)
    with localcontext(_context(rate)):
        a = power(rate, 1)
        k, tail = a / (1 - a) ** 2, 2 * a / (1 - a**2)

        def first(q: int) -> Decimal:
            return power(rate, q + 1)

        def second(q: int) -> Decimal:
            return power(rate, n - q + 1)

        def lower(f: Callable[[int], Decimal]) -> Decimal:
            return f(-1) - f(0 if half_below else 1)

        def upper(f: Callable[[int], Decimal]) -> Decimal:
            return f(n + 1) - f(n if half_above else n - 1)

        b, c, d, e = lower(first), lower(second), upper(first), upper(second)

        one, other, scale = first(p), second(p), b * e - c * d

        def at_p(free: Callable[[int], Decimal]) -> Decimal:
            """Return the solution at p, given the solution without bounds."""
            f, g = -lower(free), -upper(free)
            return free(p) + ((f * e - c * g) * one + (b * g - f * d) * other) / scale

        # Moments about p itself cancel little.
        bias = at_p(lambda q: Decimal(q - p))
        square = at_p(lambda q: Decimal((q - p) ** 2) + 2 * k)
        absolute = at_p(lambda q: abs(q - p) + tail * power(rate, abs(q - p)))
        return Moments(float(bias), float(square - bias**2), float(absolute))


def reach(rate: Fraction) -> int:
    """Return a distance at and beyond which a bound changes no moment, up to rounding to float64.

    ``docs/proofs.md``, section 10, has the argument.
    """
    return math.ceil((800 + 2 * max(0, 1 - decimals.bits(rate))) / rate) + 1


def of_censored(rate: Fraction | None, lower: int, upper: int, count: int) -> Moments:
    """Return the moments of a censored release about any true count; no rate means no noise."""
    return _of_clamped(censored, rate, lower, upper, count)


def of_truncated(rate: Fraction | None, lower: int, upper: int, count: int) -> Moments:
    """Return the moments about any true count, given that the noisy count is within the bounds."""
    return _of_clamped(truncated, rate, lower, upper, count)


def of_folded(rate: Fraction | None, twice: tuple[int, int], count: int) -> Moments:
    """Return the moments of a folded release about any true count.

    The bounds are doubled, since they may be half-integers.
    """
    lower, upper = twice
    period = 2 * (upper - lower)
    phase = (2 * count - lower) % period if period else 0
    center = (lower + min(phase, period - phase)) // 2
    below, above = center + -lower // 2, upper // 2 - center
    halves = bool(lower % 2), bool(upper % 2)
    at_center = None if rate is None else folded(rate, below, above, *halves)
    return _about(count, center, at_center)


def _of_clamped(
    moments: Callable[[Fraction, int, int], Moments],
    rate: Fraction | None,
    lower: int,
    upper: int,
    count: int,
) -> Moments:
    center = min(max(count, lower), upper)
    at_center = None if rate is None else moments(rate, center - lower, upper - center)
    return _about(count, center, at_center)


def _about(count: int, center: int, at_center: Moments | None) -> Moments:
    """Return the moments about `count`, given those about `center`, or None for no noise."""
    shift = center - count
    if at_center is None:
        return Moments(float(shift), 0.0, float(abs(shift)))
    if shift == 0:
        return at_center
    # All outputs are on one side of the count.
    bias = float(Fraction(at_center.bias) + shift)
    return Moments(bias, at_center.variance, abs(bias))


def _context(rate: Fraction) -> Context:
    """Return a context with enough digits for the cancellation, up to the fourth power of 1 / rate.

    Distances cost little: unless ``a**n`` is below every positive float, n is at most 750 / rate,
    so the error of the power is at most that many units in its last digit.
    """
    lost = max(-decimals.bits(rate), 0)
    return decimals.context(40 + 5 * lost * math.log10(2))
