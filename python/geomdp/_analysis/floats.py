"""Powers of ``exp(-rate)`` in float64 arrays, to little more than an ulp, for exact rates.

``exp`` makes the absolute error of its argument a relative one of its result. An argument of 700
that was rounded to a float64 is off by up to ``2**-44``, which is 256 ulp. So here the product of
rate and exponent is an unevaluated sum of two floats, from parts that are multiplied without
rounding (Dekker's way).
"""

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._analysis import decimals

Floats: TypeAlias = NDArray[np.float64]
#: Integers that are not negative: uint64, float64, or Python's own (dtype object).
Steps: TypeAlias = NDArray[Any]

_LOW = np.uint64(2**32 - 1)
_HEAD = np.uint64(2**64 - 2**21)


def quiet() -> np.errstate:
    """Return a context in which results overflow and underflow silently, to what is nearest."""
    return np.errstate(over="ignore", under="ignore")


class Powers:
    """``exp(-rate * steps)`` of one rate, and its logarithm.

    Parameters
    ----------
    rate : Fraction
        Positive, of any size.

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
        """Return ``rate * steps`` as a float and a rest, together off by less than 2**-70 of it.

        Both are infinite, or the rest meaningless, where the product is beyond float64.
        """
        if steps.dtype == object:
            pairs = [_pair(self._rate * int(n)) for n in steps.reshape(-1).tolist()]
            both = np.array(pairs, np.float64).reshape(*steps.shape, 2)
            return both[..., 0], both[..., 1]
        # 21 times 32 bits are exact, and so is their sum as total + rest.
        high, low = _halves(steps)
        first, second = self._head * high, self._head * low
        total = first + second
        rest = second - (total - first) + self._tail * (high + low)
        product = total + rest
        rest -= product - total
        with quiet():
            return np.ldexp(product, self._exponent), np.ldexp(rest, self._exponent)

    def of(self, products: tuple[Floats, Floats]) -> Floats:
        """Return the powers, from :meth:`products`."""
        product, rest = products
        with quiet():
            power = np.exp(-product)
            # The rest is far below 1 but where the power is 0.
            return np.asarray(power - power * np.clip(rest, -1, 1))


def powers(rate: Fraction, steps: Any) -> Floats:
    """Return ``exp(-rate * steps)``.

    Parameters
    ----------
    rate : Fraction
        Not negative.
    steps : int or integer array
        From 0 to ``2**64 - 1``.

    """
    distances = np.asarray(steps).astype(np.uint64)
    if not rate:
        return np.ones(distances.shape)
    law = Powers(rate)
    return law.of(law.products(distances))


def _halves(steps: Steps) -> tuple[Floats, Floats]:
    """Return summands of at most 32 bits; the first is the greater one, or 0."""
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
