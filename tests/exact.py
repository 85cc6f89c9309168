"""Two-sided geometric noise by equation 2.1 of the source notes, in mpmath at any precision."""

import functools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf


def stated(value: Any) -> Fraction:
    """Return the number that a value states: a float, that of its shortest text."""
    return Fraction(str(value) if isinstance(value, float | np.floating) else value)


def real(value: Any) -> mpf:
    """Return a number of Python, exact up to the working precision."""
    exact = stated(value)
    return mpf(exact.numerator) / exact.denominator


def power(rate: Any, exponent: int) -> mpf:
    """Return ``exp(-rate * exponent)``."""
    return _power(stated(rate), exponent, mpmath.mp.prec)


@functools.lru_cache(100_000)
def _power(rate: Fraction, exponent: int, _prec: int) -> mpf:
    return mpmath.exp(-mpf(rate.numerator) * exponent / rate.denominator)


def noise(rate: Any, z: int) -> mpf:
    """Return ``P(Z = z)``."""
    a = power(rate, 1)
    return (1 - a) / (1 + a) * power(rate, abs(z))


def tail(rate: Any, z: int) -> mpf:
    """Return ``P(Z >= z)``, for z of at least 0."""
    return power(rate, z) / (1 + power(rate, 1))


def censored(rate: Any, n: int, x: int) -> list[mpf]:
    """Return the pmf of ``clamp(x + Z)`` on 0 to n; the tails are at the bounds."""
    pmf = [noise(rate, y - x) for y in range(n + 1)]
    pmf[0] += tail(rate, x + 1)
    pmf[n] += tail(rate, n - x + 1)
    assert abs(sum(pmf) - 1) < mpf(10) ** (8 - mpmath.mp.dps)
    return pmf


def rejected(rate: Any, n: int, x: int) -> list[mpf]:
    """Return the pmf of x + Z on 0 to n, drawn again until it is within them."""
    pmf = [noise(rate, y - x) for y in range(n + 1)]
    total = sum(pmf)
    return [mass / total for mass in pmf]
