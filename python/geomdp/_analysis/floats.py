"""Powers of ``exp(-rate)`` in float64 arrays, within little more than an ulp, for exact rates.

``exp`` turns the absolute error of its argument into a relative error of its result. An argument of
700 that was rounded to float64 is off by up to ``2**-44``, which is 256 ulp. This module therefore
keeps the product of rate and exponent as an unevaluated sum of two floats, and computes it from
parts that multiply without rounding (Dekker's method).
"""

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._analysis import decimals

Floats: TypeAlias = NDArray[np.float64]
#: Nonnegative integers of dtype uint64, float64 or object (Python ints).
Steps: TypeAlias = NDArray[Any]

_LOW = np.uint64(2**32 - 1)
_HEAD = np.uint64(2**64 - 2**21)


def quiet() -> np.errstate:
    """Return a context in which numpy overflows and underflows without a warning."""
    return np.errstate(over="ignore", under="ignore")


class Powers:
    """Computes ``exp(-rate * steps)`` and its logarithm for one rate.

    Parameters
    ----------
    rate : Fraction
        Positive; any size.

    """

    __slots__ = ("_exponent", "_head", "_rate", "_tail")

    def __init__(self, rate: Fraction) -> None:
        self._rate = rate
        # rate = (head + tail) * 2**exponent, with 1/4 < head + tail < 1 and 21 bits in the head.
        self._exponent = decimals.bits(rate) + 1
        mantissa = rate / Fraction(2) ** self._exponent
        head = Fraction(math.floor(mantissa * 2**21), 2**21)
        self._head, self._tail = float(head), float(mantissa - head)

    def products(self, steps: Steps) -> tuple[Floats, Floats]:
        """Return ``rate * steps`` as a float and a remainder.

        The relative error of their sum is below ``2**-70``. Where the product is beyond float64,
        the float is infinite, and the remainder is infinite or meaningless.
        """
        if steps.dtype == object:
            pairs = [_pair(self._rate * int(n)) for n in steps.reshape(-1).tolist()]
            both = np.array(pairs, np.float64).reshape(*steps.shape, 2)
            return both[..., 0], both[..., 1]
        # Products of 21 and 32 bits are exact, and so is their sum, as total + rest.
        high, low = _halves(steps)
        first, second = self._head * high, self._head * low
        total = first + second
        rest = second - (total - first) + self._tail * (high + low)
        product = total + rest
        rest -= product - total
        with quiet():
            return np.ldexp(product, self._exponent), np.ldexp(rest, self._exponent)

    def of(self, products: tuple[Floats, Floats]) -> Floats:
        """Return the powers, given the result of :meth:`products`."""
        product, rest = products
        with quiet():
            power = np.exp(-product)
            # The remainder is far below 1 unless the power is 0.
            return np.asarray(power - power * np.clip(rest, -1, 1))


def powers(rate: Fraction, steps: Any) -> Floats:
    """Return ``exp(-rate * steps)``.

    Parameters
    ----------
    rate : Fraction
        Not negative.
    steps : int or integer array
        From 0 to ``2**64 - 1``.

    Returns
    -------
    float64 array
        Same shape as `steps`.

    """
    distances = np.asarray(steps).astype(np.uint64)
    if not rate:
        return np.ones(distances.shape)
    of_rate = Powers(rate)
    return of_rate.of(of_rate.products(distances))


def _halves(steps: Steps) -> tuple[Floats, Floats]:
    """Split numbers into two parts of 32 significant bits; the first is larger, or 0."""
    if steps.dtype == np.uint64:
        return (steps & ~_LOW).astype(np.float64), (steps & _LOW).astype(np.float64)
    high = (steps.view(np.uint64) & _HEAD).view(np.float64)
    return high, steps - high


def _pair(product: Fraction) -> tuple[float, float]:
    try:
        nearest = float(product)
    except OverflowError:
        return math.inf, 0.0
    return nearest, float(product - Fraction(nearest))
