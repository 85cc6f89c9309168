"""Decimal arithmetic with as many digits as a result needs, for accuracy and moments.

Decimal rounds ``exp`` and ``ln`` correctly, so an expression loses digits only by cancellation.
Each caller's context has enough spare digits for that.
"""

import functools
import math
import sys
from collections.abc import Callable, Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from typing import Any

from geomdp._ground import parameters

#: Digits set aside for the rounding errors of single operations.
SPARE = 10


def context(digits: float) -> Context:
    """Return a context with this many digits, rounded up; nothing in it overflows or raises."""
    return Context(prec=math.ceil(digits), Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def of(ratio: Fraction) -> Decimal:
    """Return a ratio, rounded to the current context."""
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def bits(ratio: Fraction) -> int:
    """Return an n such that a positive ratio is between ``2**(n - 1)`` and ``2**(n + 1)``."""
    return ratio.numerator.bit_length() - ratio.denominator.bit_length()


def power(rate: Fraction, exponent: int) -> Decimal:
    """Return ``exp(-rate * exponent)``; the error is up to `exponent` units in the last digit."""
    # The base may underflow to 0, and Decimal does not define 0 ** 0.
    return _base(rate, getcontext().prec) ** exponent if exponent else Decimal(1)


@functools.lru_cache(maxsize=256)
def _base(rate: Fraction, digits: int) -> Decimal:
    with localcontext(context(digits)):
        return (-of(rate)).exp()


def log(ratio: Fraction) -> Decimal:
    """Return the logarithm of a positive ratio, to full precision even if the ratio is near 1."""
    return _log(ratio, getcontext().prec)


@functools.lru_cache(maxsize=256)
def _log(ratio: Fraction, digits: int) -> Decimal:
    if ratio == 1:
        return Decimal(0)
    near = max(0, -bits(abs(1 - ratio)))
    with localcontext(context(digits + near * math.log10(2) + 1)):
        return of(ratio).ln()


def up(value: Decimal | Fraction | float) -> float:
    """Return the least float at or above a value."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    # The caller's context may trap comparisons of a Decimal with a float.
    exact = Decimal.from_float(nearest) if isinstance(value, Decimal) else nearest
    return nearest if exact >= value else math.nextafter(nearest, math.inf)


def down(value: Decimal | Fraction | float) -> float:
    """Return the greatest float at or below a value."""
    # Not -up(...), which is -0.0 for 0.
    return 0.0 - up(value.copy_negate() if isinstance(value, Decimal) else -value)


def least(value: Decimal | Fraction | float) -> float:
    """Return the least float whose text states at least a value: a loss that users see."""
    found = down(value)
    while math.isfinite(found) and _said(found, value) < value:
        found = math.nextafter(found, math.inf)
    return found


def greatest(value: Decimal | Fraction | float) -> float:
    """Return the greatest float whose text states at most a value: what may be spent."""
    found = up(value)
    while math.isfinite(found) and _said(found, value) > value:
        found = math.nextafter(found, -math.inf)
    return found if math.isfinite(found) else down(value)


def _said(number: float, value: Decimal | Fraction | float) -> Any:
    """Return what the text of a float states, to be compared with a value exactly."""
    # A Fraction of a Decimal with a large exponent would take unlimited memory.
    return Decimal(str(number)) if isinstance(value, Decimal) else parameters.decimal(number)


def ceiling(terms: Callable[[], Iterable[Decimal]]) -> int:
    """Return the ceiling of a sum, with as many digits as needed; the sum must not be an integer.

    `terms` is called in contexts of growing precision. Each term may be wrong in the last ``SPARE``
    digits of the context.
    """
    digits = 4 * SPARE
    while True:
        with localcontext(context(digits)):
            parts = list(terms())
            value = sum(parts, Decimal(0))
            wrong = sum(map(abs, parts), Decimal(0)).scaleb(SPARE - digits)
            least, greatest = math.ceil(value - wrong), math.ceil(value + wrong)
            if least == greatest:
                return least
        digits *= 2
