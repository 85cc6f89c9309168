"""The accuracy of released counts, and intervals for the true ones.

A certificate describes the sampled noise of one count, and `limits` are the least and greatest
output. Levels are Fractions from 0 to 1.
"""

import math
from bisect import bisect_right
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals
from geomdp._inputs import arrays
from geomdp._inputs.arrays import Array
from geomdp._numerics import tails
from geomdp.certificate import Certificate


def worst_accuracy(certificate: Certificate, level: Fraction) -> int:
    """Return the accuracy in the worst case over the true counts within the limits."""
    both, one = (tails.least_of(certificate, level, sides) for sides in (2, 1))
    # If no count has room for both tails, the worst one is in the middle or at a bound.
    middle = certificate.range // 2
    return both if both < middle else max(one, middle)


def accuracies(
    certificate: Certificate, limits: tuple[int, int], counts: Array, level: Fraction
) -> NDArray[Any]:
    """Return the accuracy at each of these true counts."""
    least, greatest = limits
    both, one = (tails.least_of(certificate, level, sides) for sides in (2, 1))

    def at(count: int) -> int:
        clamped = min(max(count, least), greatest)
        near, far = sorted((clamped - least, greatest - clamped))
        inside = both if both < near else min(max(near, one), far)
        return abs(clamped - count) + inside

    distinct, places = np.unique(counts, return_inverse=True)
    found = arrays.int64_or_ints([at(count) for count in distinct.tolist()])
    return found[places.reshape(-1)].reshape(counts.shape)


def simultaneous_accuracy(
    certificate: Certificate, limits: tuple[int, int], counts: Array, level: Fraction
) -> int:
    """Return the least a such that all errors at these true counts are at most a."""
    least, greatest = limits
    pairs = [(min(max(count, least), greatest), count) for count in counts.reshape(-1).tolist()]
    # Distances of counts inside to the nearer and to the farther bound; of others to theirs.
    near = sorted(min(x - least, greatest - x) for clamped, x in pairs if clamped == x)
    far = sorted(max(x - least, greatest - x) for clamped, x in pairs if clamped == x)
    away = Counter(abs(clamped - x) for clamped, x in pairs if clamped != x)

    def none_beyond(a: int) -> bool:
        if away and a < max(away):
            return False
        both = len(near) - bisect_right(near, a)
        groups = [(both, 2, a), (len(far) - bisect_right(far, a) - both, 1, a)]
        groups += [(n, 1, a - d) for d, n in away.items() if a - d < greatest - least]
        logs = Decimal(0)
        for n, sides, reach in groups:
            beyond = tails.beyond(certificate, reach, sides) if n else Decimal(0)
            logs += n * max(1 - beyond, Decimal(0)).ln()
        return logs >= target

    low, high = -1, max([*far, *(d + greatest - least for d in away)])
    if not level and certificate.sampled_rate is not None:
        return high
    lost = len(pairs).bit_length() - (decimals.bits(level) if level else 0)
    with localcontext(decimals.context(60 + lost * math.log10(2))):
        target = decimals.log(1 - level) * (1 - tails.SAFE) if level < 1 else -Decimal("inf")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if none_beyond(middle) else (middle, high)
    return high


def possible(limits: tuple[int, int], dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest true count: bounds move counts, and do not say where they are.

    They are those of the dtype, and not below 0 if the least noisy count is not.
    """
    least, greatest = arrays.limits(dtype)
    return least if limits[0] < 0 else 0, greatest


def interval(
    certificate: Certificate, limits: tuple[int, int], released: Array, level: Fraction, side: str
) -> tuple[Array, Array]:
    """Return the ends of intervals for true counts, of the dtype and shape of the noisy ones.

    An end that reaches a limit is open: a true count beyond it has the noise of that limit.
    """
    least, greatest = limits
    floor, ceiling = possible(limits, released.dtype)
    if side == "both":
        reach = worst_accuracy(certificate, level)
    else:
        reach = tails.least_of(certificate, level, 1)
    dtype, shape = released.dtype, released.shape
    native = dtype.newbyteorder("=")
    flat = np.array(released, dtype=native).reshape(-1)
    # Modulo the size of the dtype; the differences fit into it.
    step = np.array([reach], dtype=np.uint64).astype(native)
    lower, upper = np.full_like(flat, floor), np.full_like(flat, ceiling)
    if side != "upper":
        np.subtract(flat, step, out=lower, where=flat > native.type(least + reach))
    if side != "lower":
        np.add(flat, step, out=upper, where=flat < native.type(greatest - reach))
    return lower.astype(dtype).reshape(shape), upper.astype(dtype).reshape(shape)
