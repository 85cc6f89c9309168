"""Bounds of many ratios of noisy counts at once: :func:`geomdp._numerics.sum_tails.greatest_ratio`.

In float64, with bounds on its errors; what these do not decide is decided exactly, so that the
results are equal to those of the function for each pair.
"""

import math
from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals
from geomdp._numerics import sum_tails
from geomdp._numerics.tails import SAFE

_Floats = NDArray[np.float64]
#: More than the errors of exp and expm1, and than those of a few operations, in float64.
_UNIT = 8 * 2.0**-52
#: Greater counts and rates are left to exact numbers.
_MOST_COUNT, _MOST_RATE = 2**50, 700


def greatest(
    above: Sequence[int], below: Sequence[int], rates: tuple[Fraction, Fraction], level: Fraction
) -> list[float]:
    """Return :func:`sums.greatest_ratio` of each pair of counts."""
    with localcontext(decimals.context(60)):
        target = decimals.of(level) * (1 - SAFE)
    found = [math.inf] * len(above)
    # The test of the denominator alone falls with it.
    least = _least(rates, target, max(below, default=0))
    apart = [place for place, b in enumerate(below) if least is not None and b >= least]
    small = [p for p in apart if abs(above[p]) <= _MOST_COUNT and below[p] <= _MOST_COUNT]
    if max(rates) > _MOST_RATE or float(target) < 1e-200:
        small = []
    known: dict[int, float] = {}
    if small:
        counts = (
            np.array([above[p] for p in small], float),
            np.array([below[p] for p in small], float),
        )
        steps, highs, sure = _crossings(counts, (float(rates[0]), float(rates[1])), float(target))
        for place, step, high, fine in zip(
            small, steps.tolist(), highs.tolist(), sure.tolist(), strict=True
        ):
            pair = above[place], below[place]
            start, each = Fraction(*pair), Fraction(step) / 2**24 if math.isfinite(step) else None
            if each is None or not 2**23 < high <= 2**24:
                continue
            end = start + each * int(high)
            if fine or (
                sum_tails._overtakes(pair, rates, end) <= target
                and sum_tails._overtakes(pair, rates, end - each) > target
            ):
                known[place] = decimals.up(end)
    for place in apart:
        if place in known:
            found[place] = known[place]
        else:
            found[place] = sum_tails.greatest_ratio((above[place], below[place]), rates, level)
    return found


def _least(rates: tuple[Fraction, Fraction], target: object, most: int) -> int | None:
    """Return the least denominator that can be told from 0, or None if that is above the most."""
    if most < 1 or sum_tails._overtakes((0, most), rates, None) > target:  # type: ignore[operator]
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        wide = sum_tails._overtakes((0, middle), rates, None) > target  # type: ignore[operator]
        low, high = (middle, high) if wide else (low, middle)
    return high


def _crossings(
    counts: tuple[_Floats, _Floats], rates: tuple[float, float], target: float
) -> tuple[_Floats, _Floats, NDArray[np.bool_]]:
    """Return for each pair the power of 2, its multiple over 2**24, and whether these are sure.

    The tail falls with the ratio, so that there is one multiple that is excluded, unlike the one
    before it.
    """
    above, below = counts

    def tails(distance: _Floats, some: NDArray[np.intp]) -> tuple[_Floats, _Floats]:
        return _overtakes((above[some], below[some]), rates, distance)

    every = np.arange(len(above))
    step = np.exp2(np.round(np.log2((1 / rates[0] + np.abs(above / below) / rates[1]) / below)))
    left = every
    for _ in range(300):
        left = left[tails(step[left], left)[0] > target]
        if not left.size:
            break
        step[left] *= 2
    step[left] = np.inf
    left = every[np.isfinite(step)]
    for _ in range(300):
        left = left[tails(step[left] / 2, left)[0] <= target]
        if not left.size:
            break
        step[left] /= 2
    step[left] = np.inf
    some = every[np.isfinite(step)]
    low, high, each = np.full(some.size, 2.0**23), np.full(some.size, 2.0**24), step[some] / 2**24
    for _ in range(23):
        middle = (low + high) / 2
        inside = tails(each * middle, some)[0] <= target
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    after, before = tails(each * high, some), tails(each * low, some)
    highs, sure = np.zeros(len(above)), np.zeros(len(above), np.bool_)
    highs[some] = high
    sure[some] = (after[0] + after[1] < target) & (before[0] - before[1] > target)
    return step, highs, sure


def _overtakes(
    counts: tuple[_Floats, _Floats], rates: tuple[float, float], distance: _Floats
) -> tuple[_Floats, _Floats]:
    """Return :func:`sums._overtakes` at these distances from the noisy ratios, and error bounds.

    A denominator that is j above the noisy one has ``x = ratio * j + distance * below``: no
    difference of counts, which would lose digits. All terms of a sum are positive, or at least half
    of what they are a difference of, so that relative errors do not grow (``docs/proofs.md``).
    """
    (above, below), (r, s) = counts, rates
    ratio, shift = above / below + distance, distance * below
    q = math.exp(-s)
    half = 1 / (1 + math.exp(-r))
    with np.errstate(all="ignore"):
        turn = np.where(ratio > 0, np.ceil(-shift / ratio), np.floor(-shift / ratio) + 1)
    turn = np.clip(np.where(ratio == 0, 1 - below, turn), 1 - below, 2.0**60)
    ends = np.minimum(turn, 1), np.maximum(turn, 1)
    total = np.exp(-s * below) / (1 + q)
    error = total * _UNIT * (4 + s * below)
    scale = -math.expm1(-s) / (1 + q)
    starts = 1 - below, ends[0], ends[1]

    def between(first: _Floats, after: _Floats) -> tuple[_Floats, _Floats]:
        """Return the sum of these terms, of which there may be none, and an error bound."""
        count = after - first
        up = np.where(first <= 0, s, -s)
        x = ratio * first + shift
        positive = np.where(np.abs(x) < 1e-300, True, x >= 0)

        def series(factor: float, moved: float) -> tuple[_Floats, _Floats]:
            """Return the sum of exp(-s |j| + factor * (x - moved)), and an error bound."""
            step = up + factor * ratio
            at = np.where((step >= 0) & np.isfinite(after), after - 1, first)
            inner = factor * (ratio * at + shift - moved)
            size = s * np.abs(at) + abs(factor) * (np.abs(ratio * at) + shift + moved)
            down, many = np.abs(step), np.where(np.isinf(count), 2.0**62, count)
            with np.errstate(all="ignore"):
                times = np.where(down == 0, many, np.expm1(-down * many) / np.expm1(-down))
                mean = np.minimum(many - 1, 1 / down)
            sum_of = np.exp(inner - s * np.abs(at)) * times
            loose = (s + abs(factor) * np.abs(ratio)) * mean
            bound = sum_of * _UNIT * (8 + size + loose)
            # A sum without an end must fall.
            lost = np.isinf(count) & (step >= 0)
            return sum_of, np.where(lost, np.inf, bound)

        with np.errstate(all="ignore"):
            (a, da), (b, db), (c, dc) = series(-r, 0.0), series(0.0, 0.0), series(r, 1.0)
            value = np.where(positive, half * a, b - half * c)
            off = np.where(positive, half * da, db + half * dc)
            # A term on the other side of its turn, by rounding.
            off = off + np.abs(value) * _UNIT * (8 + 4 * r * np.abs(shift))
        used = count > 0
        return np.where(used, scale * value, 0.0), np.where(used, scale * off, 0.0)

    for first, after in zip(starts, (*ends, np.full_like(below, np.inf)), strict=True):
        value, off = between(first, after)
        total, error = total + value, error + off * (1 + _UNIT)
    # That of the target, and of the sum.
    return total, 2 * error + total * _UNIT * 8
