"""Bias and variance of the geometric mechanism, exactly: in decimals of as many digits as it takes.

For the wanted law, from which the sampled one is within ``2**-50`` in total variation. With
``a = exp(-rate)`` and ``Z`` as in *Geometric Mechanism Notes*, equation 2.1; derivations in
``docs/proofs.md``, section 10.
"""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

#: Bias and variance.
Moments = tuple[float, float]


def unbounded(rate: Fraction) -> Moments:
    """Return the moments of ``x + Z``: bias 0 and variance ``2 a / (1 - a)**2``."""
    with localcontext(_context(rate, 1)):
        a = _power(rate, 1)
        return 0.0, float(2 * a / (1 - a) ** 2)


def censored(rate: Fraction, below: int | None, above: int | None) -> Moments:
    """Return the moments of ``clamp(x + Z)``, for bounds so far below and above x.

    Parameters
    ----------
    rate : Fraction
        Positive.
    below, above : int or None
        ``x - lower`` and ``upper - x``, not negative; None where there is no bound.

    """
    with localcontext(_context(rate, max(below or 0, above or 0))):
        a = _power(rate, 1)
        one_minus = 1 - a

        def excess(room: int | None) -> Decimal:
            """Return ``E max(Z - room, 0)``."""
            return Decimal(0) if room is None else _power(rate, room + 1) / (one_minus * (1 + a))

        def square(room: int | None) -> Decimal:
            """Return ``E min(max(Z, 0), room)**2``, a sum of ``(2 k - 1) a**k / (1 + a)``."""
            whole = a / one_minus**2
            if room is None:
                return whole
            tail = _power(rate, room)
            return whole * (1 - tail) - 2 * room * a * tail / (one_minus * (1 + a))

        bias = excess(below) - excess(above)
        return float(bias), float(square(below) + square(above) - bias**2)


def folded(rate: Fraction, below: int, above: int, half_below: bool, half_above: bool) -> Moments:
    """Return the moments of ``x + Z`` folded into bounds so far below and above x.

    Both moments ``G`` of the folded count as functions of its place p satisfy
    ``G - k (G(p + 1) - 2 G(p) + G(p - 1)) = f``, with ``k = a / (1 - a)**2`` and ``f = p`` or
    ``p**2``. So they are a polynomial plus multiples of ``a**p`` and ``a**(n - p)``, which the
    reflections at both ends determine.

    Parameters
    ----------
    rate : Fraction
        Positive.
    below, above : int
        How many outputs there are on either side of x.
    half_below, half_above : bool
        Whether the bound itself is half a unit beyond the last output.

    """
    p, n = below, below + above
    if n == 0:
        return 0.0, 0.0
    with localcontext(_context(rate, n)):
        a = _power(rate, 1)
        k = a / (1 - a) ** 2

        def first(q: int) -> Decimal:
            return _power(rate, q + 1)

        def second(q: int) -> Decimal:
            return _power(rate, n - q + 1)

        def lower(f: Callable[[int], Decimal]) -> Decimal:
            return f(-1) - f(0 if half_below else 1)

        def upper(f: Callable[[int], Decimal]) -> Decimal:
            return f(n + 1) - f(n if half_above else n - 1)

        def rest(polynomial: Callable[[int], Decimal]) -> Decimal:
            """Return at p what the reflections add to the polynomial."""
            b, c, d, e = lower(first), lower(second), upper(first), upper(second)
            f, g = -lower(polynomial), -upper(polynomial)
            return ((f * e - c * g) * first(p) + (b * g - f * d) * second(p)) / (b * e - c * d)

        # About the place p itself, so that little is lost by cancellation.
        bias = rest(lambda q: Decimal(q - p))
        square = 2 * k + rest(lambda q: Decimal((q - p) ** 2) + 2 * k)
        return float(bias), float(square - bias**2)


def _power(rate: Fraction, exponent: int) -> Decimal:
    """Return ``exp(-rate * exponent)``."""
    product = rate * exponent
    return (-Decimal(product.numerator) / Decimal(product.denominator)).exp()


def _context(rate: Fraction, distance: int) -> Context:
    """Return a context with digits to spare for what cancels, powers of distance and 1 / rate."""
    lost = max(rate.denominator.bit_length() - rate.numerator.bit_length(), 0)
    digits = 40 + math.ceil((6 * lost + 6 * distance.bit_length()) * math.log10(2))
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
