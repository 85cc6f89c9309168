"""Tails of sums and ratios of noisy counts, with two-sided geometric noise.

``docs/proofs.md``, section 15, derives the formulas.
"""

import math
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals
from geomdp._numerics.tails import SAFE

#: More than the error of the Fourier transform, and the mass that it may leave out.
_LOST = 2.0**-31
#: The most points of a Fourier transform, and the most points times different weights.
_POINTS, _WORK = 2**21, 2**25
#: The most noises for which their sum's tail is summed exactly.
_TERMS = 10**5
#: Greater rates are replaced by this one, whose noise has probability 1e-304.
_MOST = Fraction(700)
#: Stands for the rate of no noise.
NO_NOISE = Fraction(10**30)
#: Smaller distances from a ratio are rounded up to this one.
_LEAST = Fraction(1, 2**1100)


def reach(rate: Fraction, sizes: Mapping[int, int], level: Fraction) -> int:
    """Return a t with ``P(|S| > t) <= level``, for a weighted sum S of independent noises.

    It is the least one for up to 10**5 equal sizes. Otherwise it is the least up to ``2**-31`` in
    the level, if a Fourier transform has room for the distribution, or Chernoff's bound. `sizes`
    maps each absolute value of a weight to the number of such weights.
    """
    return _reach(rate, tuple(sorted(sizes.items())), level)


@lru_cache(maxsize=1024)
def _reach(rate: Fraction, sums_of: tuple[tuple[int, int], ...], level: Fraction) -> int:
    """Return :func:`reach`, which may take a second and recurs for the sums of a table."""
    sizes: Mapping[int, int] = dict(sums_of)
    rate, unit = min(rate, _MOST), math.gcd(*sizes)
    sizes = {size // unit: n for size, n in sizes.items()}
    # Another sum is 0 if no noise is probable.
    if 2 * sum(sizes.values()) * math.exp(-rate) * (1 + 1e-9) <= level:
        return 0
    upper = chernoff(rate, sizes, level)
    if list(sizes) == [1] and sizes[1] <= _TERMS:
        return unit * _least(rate, sizes[1], level, upper)
    nearer = _by_fourier(rate, sizes, level)
    return unit * (upper if nearer is None else min(nearer, upper))


def chernoff(rate: Fraction, sizes: Mapping[int, int], level: Fraction) -> int:
    """Return the least t that ``P(|S| > t) <= 2 E[exp(u (S - t))]`` allows, over several u."""
    return math.floor(min(chernoffs(rate, sizes, level)))


def chernoffs(rate: Fraction, sizes: Mapping[int, int], level: Fraction) -> Iterator[Fraction]:
    """Yield what each u allows, of which the least is that of :func:`chernoff`."""
    rate, largest = min(rate, _MOST), max(sizes)
    half, widths = _half(rate), np.array([size / largest for size in sizes])
    with localcontext(decimals.context(20)):
        target = -float(decimals.log(level / 2))

    def bound(part: Fraction) -> Fraction:
        tilts = np.sinh(float(part) * half * widths) / np.sinh(half)
        total = target - float(np.dot(list(sizes.values()), np.log1p(-(tilts**2))))
        # More than the rounding errors of float64.
        return Fraction(total * (1 + 1e-9)) / (rate * part) * largest

    parts = [Fraction(k, 2 ** (j + 1)) for j in range(3, 40, 3) for k in (1, 2, 4)]
    parts += [1 - Fraction(1, 2**j) for j in range(1, 10)]
    return map(bound, parts)


def _half(rate: Fraction) -> float:
    """Return half of a rate h; ratios of ``sinh(x h)`` no longer change with smaller ones."""
    return max(float(rate) / 2, 1e-100)


def _least(rate: Fraction, n: int, level: Fraction, upper: int) -> int:
    """Return the least t with ``P(|S| > t) <= level`` for n noises, given that `upper` has that."""
    with localcontext(_context(rate)):
        target = decimals.of(level) / 2 * (1 - SAFE)
        q = (-decimals.of(rate)).exp()
        # sums[k] is the sum of f_0 to f_k in lemma 15.
        before, mass = Decimal(0), (q / (1 + q)) ** n
        sums = [mass]
        for k in range(n - 1):
            grown = (n - k + 2 * q * q * k) * mass + q * (1 - q) * (k - 1) * before
            before, mass = mass, grown / (q * (1 + q) * (k + 1))
            sums.append(sums[-1] + mass)
        odds = (1 - q) / q

        def beyond(t: int) -> Decimal:
            ended, total = (-decimals.of(rate * t)).exp(), Decimal(0)
            for i in range(min(n, t + 1)):
                total += ended * sums[n - 1 - i]
                ended *= odds * (t - i) / (i + 1)
            return total

        low, high = -1, upper
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if beyond(middle) <= target else (middle, high)
        return high


def _by_fourier(rate: Fraction, sizes: Mapping[int, int], level: Fraction) -> int | None:
    """Return a t with ``P(|S| > t) <= level`` from the characteristic function, or None."""
    if (masses := _masses(rate, tuple(sizes.items()))) is None:
        return None
    inside = masses[0] + 2 * np.append(0, np.cumsum(masses[1:]))
    enough = inside >= 1 - float(level) + _LOST
    return int(np.argmax(enough)) if enough.any() else None


@lru_cache(maxsize=16)
def _masses(rate: Fraction, sums_of: tuple[tuple[int, int], ...]) -> NDArray[np.float64] | None:
    """Return the probabilities of a sum S at 0, 1, ..., but for a mass; None if there is no room.

    They and the mass that is left out make any sum of them wrong by less than ``_LOST``.
    """
    sizes = dict(sums_of)
    half = chernoff(rate, sizes, Fraction(_LOST) / 4)
    points = 2 << (half + 1).bit_length()
    if points > _POINTS or points * len(sizes) > _WORK:
        return None
    half_rate = _half(rate)
    logs = np.zeros(points // 2 + 1)
    for size, n in sizes.items():
        # Reduced in integers, so that the sine is accurate.
        angles = np.arange(logs.size) * (size % points) % points * (math.pi / points)
        logs -= n * np.log1p((np.sin(angles) / np.sinh(half_rate)) ** 2)
    masses: NDArray[np.float64] = np.fft.irfft(np.exp(logs), points)[: half + 1]
    return masses


def _context(rate: Fraction, digits: float = 60) -> Context:
    """Return a context in which ``1 - exp(-rate)`` has this many digits."""
    return decimals.context(digits + max(0, -decimals.bits(rate)) * math.log10(2))


def greatest_ratio(
    counts: tuple[int, int], rates: tuple[Fraction, Fraction], level: Fraction
) -> float:
    """Return a bound that the ratio of two true counts exceeds with at most this probability.

    Counts and rates are those of numerator and denominator; the level is at most 1/2. The bound is
    rounded up by less than ``2**-24`` of its distance from the noisy ratio, and infinite if the
    denominator cannot be told from 0.
    """
    above, below = counts
    with localcontext(decimals.context(60)):
        target = decimals.of(level) * (1 - SAFE)
    if below < 1 or _overtakes(counts, rates, None) > target:
        return math.inf
    start = Fraction(above, below)

    def excluded(distance: Fraction) -> bool:
        return _overtakes(counts, rates, start + distance) <= target

    step = Fraction(2) ** decimals.bits((1 / rates[0] + abs(start) / rates[1]) / below)
    while not excluded(step):
        step *= 2
    while excluded(step / 2) and step > _LEAST:
        step /= 2
    low, high = 2**23, 2**24
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if excluded(step * middle / 2**24) else (middle, high)
    return decimals.up(start + step * high / 2**24)


def _overtakes(
    counts: tuple[int, int], rates: tuple[Fraction, Fraction], ratio: Fraction | None
) -> Decimal:
    """Return ``P(A >= ratio * B or B <= 0)`` for counts with more noise, A and B, or a bound on it.

    Without a ratio it is the part of ``B <= 0``; B has a positive mean.
    """
    (above, below), (r, s) = counts, rates
    with localcontext(_context(s)):
        share, scale = (1 + (-decimals.of(s)).exp()), 1 - (-decimals.of(s)).exp()
        total = (-decimals.of(s * below)).exp() / share
        if ratio is None:
            return total
        # P(Z >= x) <= exp(-r x) / (1 + q) for x >= 0, and 1 - exp(r (x - 1)) / (1 + q) below 0, for
        # x = ratio * m - above and each m = B.
        half = 1 / (1 + (-decimals.of(r)).exp())
        turn = 1
        if ratio:
            turn = -(-above / ratio // 1) if ratio > 0 else above / ratio // 1 + 1
        starts = sorted({1, below + 1, max(1, int(turn))})
        for first, after in zip(starts, [*starts[1:], None], strict=True):
            count = None if after is None else after - first
            up = s if first <= below else -s
            log, x = -s * abs(first - below), ratio * first - above
            if x >= 0:
                parts = half * _series(log - r * x, up - r * ratio, count)
            else:
                parts = _series(log, up, count)
                parts -= half * _series(log + r * (x - 1), up + r * ratio, count)
            total += scale / share * parts
        return total


def _series(log: Fraction, step: Fraction, count: int | None) -> Decimal:
    """Return the sum of ``exp(log + i * step)`` for i below the count, or for all i."""
    if step >= 0:
        # From the greatest term on: no exponential overflows.
        assert count is not None
        log, step = log + step * (count - 1), -step
    first = decimals.of(log).exp()
    if step == 0:
        return first * (count or 0)
    with localcontext(_context(abs(step), getcontext().prec)):
        ratio = decimals.of(step).exp()
        last = Decimal(0) if count is None else decimals.of(step * count).exp()
        return first * (1 - last) / (1 - ratio)
