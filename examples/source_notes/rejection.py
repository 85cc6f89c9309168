"""The exact privacy loss of redrawing the noise until the noisy count is in range.

A count x of n records is in ``0..n``. Censoring clamps ``x + Z`` to this range; rejection redraws Z
instead until ``x + Z`` is in it (*Geometric Mechanism Notes*, section 2.4). The output y then has
probability ``a**abs(y - x) / N(x)``, with ``a = exp(-epsilon)``. The normalizer ``N(x)`` depends on
the count too, so the privacy loss exceeds epsilon: nearly 2 epsilon if the noise is wide
(``docs/proofs.md``, section 12).

There is no sampler with rejection: its running time would depend on the count, and a remapped
release of a :class:`geomdp.GeometricMechanism` has smaller errors (``examples/source_notes``).
"""

from __future__ import annotations

import bisect
import math
import struct
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._inputs import arrays

__all__ = ["loss", "calibrated_epsilon", "pmf"]

_MAX_N = 2**20


def loss(epsilon: Real, n: Integer) -> float:
    """Return the privacy loss of rejection between neighbours, ``epsilon + ln(N(1) / N(0))``.

    It is the maximum of ``abs(ln(P(y | x) / P(y | x + 1)))`` over all counts and outputs from 0 to
    n, with ``P(y | x) = a**abs(y - x) / N(x)``. It is at most ``2 n / (n + 1)`` times epsilon, and
    less than epsilon + ``ln(5 / 4)``.

    Parameters
    ----------
    epsilon : number
        The epsilon of the noise; not negative, taken exactly. With 0, all outputs are equally
        likely.
    n : int
        The greatest count, at least 1.

    Returns
    -------
    float
        The least float that states no less than the exact value; infinite if there is none.

    Examples
    --------
    >>> from rejection import loss
    >>> round(loss(0.1, n=30), 4)
    0.1818

    """
    rate, n = parameters.nonnegative_fraction("epsilon", epsilon), parameters.at_least("n", n, 1)
    return decimals.least(_loss(rate, n))


def calibrated_epsilon(epsilon: Real, n: Integer) -> float:
    """Return the greatest epsilon of the noise for which rejection has a loss of at most `epsilon`.

    Parameters
    ----------
    epsilon : number
        The allowed :func:`loss`; positive, taken exactly.
    n : int
        The greatest count, at least 1.

    Returns
    -------
    float
        The greatest float that states an epsilon with a loss of at most this one, or 0 if no
        positive float does. It is between ``(n + 1) / (2 n)`` times epsilon, its limit as epsilon
        goes to 0, and epsilon.

    Examples
    --------
    >>> from rejection import calibrated_epsilon
    >>> round(calibrated_epsilon(0.1, n=30), 4)
    0.0533

    """
    exact, n = parameters.positive_fraction("epsilon", epsilon), parameters.at_least("n", n, 1)
    # The loss grows with epsilon, and nonnegative floats grow with their bits.
    floats = range(struct.unpack("<q", struct.pack("<d", sys.float_info.max))[0] + 1)

    def is_too_much(bits: int) -> bool:
        return _loss(parameters.decimal(_float(bits)), n) > exact

    return _float(floats[bisect.bisect_left(floats, True, key=is_too_much) - 1])


def pmf(epsilon: Real, n: Integer, counts: Any) -> NDArray[np.float64]:
    """Return the probabilities of the outputs 0 to n with rejection, ``a**abs(y - x) / N(x)``.

    Parameters
    ----------
    epsilon : number
        The epsilon of the noise; not negative. With 0, all outputs are equally likely.
    n : int
        The greatest count, from 1 to ``2**20``.
    counts : int, numpy integer, array or sequence of ints
        True counts x, from 0 to n.

    Returns
    -------
    float64 array
        The shape of the counts, and a last axis of ``n + 1`` outputs. The relative error is less
        than 1e-12 down to the least normal float64.

    Examples
    --------
    >>> from rejection import pmf
    >>> pmf(1, n=2, counts=[0, 1]).round(3)
    array([[0.665, 0.245, 0.09 ],
           [0.212, 0.576, 0.212]])

    """
    rate, n = parameters.nonnegative_fraction("epsilon", epsilon), parameters.at_least("n", n, 1)
    if n > _MAX_N:
        raise ValueError(parameters.refusal("n", n, f"at most {_MAX_N}"))
    x = arrays.as_array(counts)
    if ((x < 0) | (x > n)).any():
        raise ValueError(f"counts outside 0 to {n} are not accepted")
    distances = np.abs(np.arange(n + 1) - x.astype(np.int64)[..., np.newaxis])
    # From 2**20 on, only a distance of 0 has a positive probability.
    with np.errstate(under="ignore"):
        weights = np.exp(-float(min(rate, Fraction(2**20))) * distances)
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


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
    small = math.ceil(max(0, -decimals.bits(steep)) * math.log10(2))
    with localcontext(decimals.context(110 + 3 * small)):
        a, rest, whole = ((-decimals.of(k * steep)).exp() for k in (1, n - 1, n + 1))
        gain = a * (1 - a) * (1 - rest) / (1 - whole)
        # For rates above 100 the gain is the logarithm, rounded up by less than 1e-40 of it.
        excess = (1 + gain).ln() if steep < 100 else gain
        return rate + Fraction(excess * (1 + Decimal(1).scaleb(-40 - small)))


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
