"""The exact privacy loss of redrawing the noise until the noisy count is in range.

A count x of n records is in ``0..n``. Censoring clamps ``x + Z`` to this range; rejection redraws Z
instead until ``x + Z`` is in it (*Geometric Mechanism Notes*, section 2.4). The output y then has
probability ``a**abs(y - x) / N(x)``, with ``a = exp(-epsilon)``. The normalizer ``N(x)`` depends on
the count too, so the privacy loss exceeds epsilon: nearly 2 epsilon if the noise is wide
(``docs/proofs.md``, section 12).

There is no sampler with rejection: its running time would depend on the count, and a remapped
release within bounds has smaller errors (``remap.py``). An epsilon is a positive number, and a
float means the decimal that its text states; n is at least 1.
"""

import bisect
import math
import struct
import sys
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np


def loss(epsilon: float | Fraction, n: int) -> float:
    """Return the privacy loss of rejection between neighbours, ``epsilon + ln(N(1) / N(0))``.

    It is the maximum of ``abs(ln(P(y | x) / P(y | x + 1)))`` over all counts and outputs from 0 to
    n, with ``P(y | x) = a**abs(y - x) / N(x)``: at most ``2 n / (n + 1)`` times epsilon, and less
    than epsilon + ``ln(5 / 4)``. It is rounded up to the least float that states no less.
    """
    exact = _loss(Fraction(str(epsilon)), n)
    near = float(exact)
    around = (math.nextafter(near, 0), near, math.nextafter(near, math.inf))
    return next(number for number in around if Fraction(str(number)) >= exact)


def calibrated_epsilon(epsilon: float | Fraction, n: int) -> float:
    """Return the greatest float epsilon of the noise with a :func:`loss` of at most `epsilon`.

    It is between ``(n + 1) / (2 n)`` times epsilon, its limit as epsilon goes to 0, and epsilon.
    """
    exact = Fraction(str(epsilon))
    # The loss grows with epsilon, and nonnegative floats grow with their bits.
    floats = range(struct.unpack("<q", struct.pack("<d", sys.float_info.max))[0] + 1)

    def is_too_much(bits: int) -> bool:
        return _loss(Fraction(str(_float(bits))), n) > exact

    return _float(floats[bisect.bisect_left(floats, True, key=is_too_much) - 1])


def pmf(epsilon: float | Fraction, n: int, counts: Any) -> Any:
    """Return the probabilities of the outputs 0 to n for true counts from 0 to n, in a last axis.

    They are ``a**abs(y - x) / N(x)``, with a relative error of less than 1e-12 down to the least
    normal float64.
    """
    distances = np.abs(np.arange(n + 1) - np.asarray(counts)[..., np.newaxis])
    with np.errstate(under="ignore"):
        weights = np.exp(-float(epsilon) * distances)
        return weights / weights.sum(axis=-1, keepdims=True)


def _loss(rate: Fraction, n: int) -> Fraction:
    """Return the loss, its excess over the rate rounded up by less than 1e-39 of it.

    The excess is ``ln(1 + gain)``, with ``gain = a (1 - a) (1 - a**(n - 1)) / (1 - a**(n + 1))``.
    For small rates the loss is close to a rational, ``2 n / (n + 1)`` times the rate, by a share of
    about the rate. So the margin is smaller by the rate.
    """
    if n == 1 or not rate:
        return rate
    # The gain falls for rates above ln 2; there it is below 1e-4000.
    steep = min(rate, Fraction(10**4))
    small = max(0, len(str(steep.denominator)) - len(str(steep.numerator)) + 1)
    context = Context(prec=110 + 3 * small, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    with localcontext(context):
        exponents = (-k * Decimal(steep.numerator) / steep.denominator for k in (1, n - 1, n + 1))
        a, rest, whole = (exponent.exp() for exponent in exponents)
        gain = a * (1 - a) * (1 - rest) / (1 - whole)
        # For rates above 100 the gain is the logarithm, rounded up by less than 1e-40 of it.
        excess = (1 + gain).ln() if steep < 100 else gain
        return rate + Fraction(excess * (1 + Decimal(1).scaleb(-40 - small)))


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
