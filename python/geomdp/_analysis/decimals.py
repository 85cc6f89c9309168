"""Decimals of as many digits as it takes: what accuracy and moments are computed in.

``exp`` and ``ln`` of Decimal are correctly rounded, so that an expression is off by no more than
what cancels in it, for which its context has digits to spare.
"""

import functools
import math
from collections.abc import Callable, Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from fractions import Fraction

#: Digits beyond those of a float64 that are left for the rounding of single operations.
SPARE = 10


def context(digits: float) -> Context:
    """Return a context of so many digits, in which nothing overflows or raises."""
    return Context(prec=math.ceil(digits), Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def of(ratio: Fraction) -> Decimal:
    """Return a ratio, rounded."""
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def bits(ratio: Fraction) -> int:
    """Return the exponent of a positive ratio: it is between ``2**(n - 1)`` and ``2**(n + 1)``."""
    return ratio.numerator.bit_length() - ratio.denominator.bit_length()


def power(rate: Fraction, exponent: int) -> Decimal:
    """Return ``exp(-rate * exponent)``, off by up to the exponent in its last digit."""
    # Of a power that is too small for Decimal, 0, there is no zeroth power.
    return _base(rate, getcontext().prec) ** exponent if exponent else Decimal(1)


@functools.lru_cache(maxsize=256)
def _base(rate: Fraction, digits: int) -> Decimal:
    with localcontext(context(digits)):
        return (-of(rate)).exp()


def log(ratio: Fraction) -> Decimal:
    """Return the logarithm of a positive ratio, with all digits even where it is near 0."""
    return _log(ratio, getcontext().prec)


@functools.lru_cache(maxsize=256)
def _log(ratio: Fraction, digits: int) -> Decimal:
    if ratio == 1:
        return Decimal(0)
    near = max(0, -bits(abs(1 - ratio)))
    with localcontext(context(digits + near * math.log10(2) + 1)):
        return of(ratio).ln()


def up(value: Decimal) -> float:
    """Return the least float that is not below a value."""
    nearest = float(value)
    # Unlike a comparison with a float, this cannot be trapped by the caller's context.
    above = Decimal.from_float(nearest) >= value
    return nearest if above else math.nextafter(nearest, math.inf)


def down(value: Decimal) -> float:
    """Return the greatest float that is not above a value."""
    return -up(value.copy_negate())


def ceiling(terms: Callable[[], Iterable[Decimal]]) -> int:
    """Return the ceiling of a sum that is not an integer, by as many digits as that takes.

    Each term must be right but for ``SPARE`` of the digits of the context in which it is asked for.
    """
    digits = 4 * SPARE
    while True:
        with localcontext(context(digits)):
            parts = list(terms())
            value = sum(parts, Decimal(0))
            wrong = sum(map(abs, parts), Decimal(0)).scaleb(SPARE - digits)
            least, most = math.ceil(value - wrong), math.ceil(value + wrong)
            if least == most:
                return least
        digits *= 2
