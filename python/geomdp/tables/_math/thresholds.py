"""Intervals for counts that were published because their noisy counts reached a threshold.

For a true count c, noise Z and threshold T, the published n = c + Z has the distribution of c + Z
given c + Z >= T. It grows with c in the order of likelihood ratios, since the noise is log-concave.
So the counts whose conditional tails beyond n exceed a level form an interval
(``docs/proofs.md``, section 18).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Ints: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]
_Flags: TypeAlias = NDArray[np.bool_]
#: More than the relative rounding errors of the tails in float64.
_ROUNDING = 1e-9
#: The greatest distance that is looked at.
_FAR = 2**62


def interval(
    rate: float, published: _Ints, threshold: int | _Ints, level: Fraction
) -> tuple[_Ints, _Ints]:
    """Return the non-negative true counts that no conditional tail of half the level excludes.

    Published counts are at least their threshold, which is above 0. A lower end of 0 means that
    even an empty cell is not excluded.
    """
    tail = float(level) / 2 * (1 - _ROUNDING)
    q, above = math.exp(-rate), published - threshold
    beyond = _decay(rate, above)

    def greater(count: _Ints) -> _Flags:
        """Return whether P(N >= n | N >= T) is above the level for c = T + count, up to n."""
        limit: _Floats = tail * (q - np.expm1(-rate * (count + 1.0)))
        return _decay(rate, above - count) > limit

    def less(excess: _Ints) -> _Flags:
        """Return whether P(N <= n | N >= T) is above the level for c = n + excess, from n on."""
        mass: _Floats = -np.expm1(-rate * (above + 1.0)) * _decay(rate, excess)
        limit: _Floats = tail * (q - np.expm1(-rate * (above + 1.0 + excess)))
        return mass > limit

    # Every count below T has the tail q**(n - T), and c = n has half of it or more.
    lower = np.where(beyond > tail, 0, threshold + _first(greater, above))
    # At this distance the tail is below the level, whatever the threshold is.
    most = min(math.ceil((1 - math.log(tail)) / rate) + 1, _FAR)
    excess = _first(lambda excess: ~less(excess), np.full_like(above, most)) - 1
    # No count is beyond int64. One that is further away than was looked is not excluded.
    room = np.iinfo(np.int64).max - published
    excess = np.where(excess < _FAR - 1, np.minimum(excess, room), room)
    return lower, published + np.maximum(excess, 0)


def most_left_out(rate: float, threshold: _Ints, level: Fraction) -> _Ints:
    """Return the greatest counts that miss their thresholds with a probability above a level."""
    # P(c + Z < T) is q**(c - T + 1) / (1 + q) from c = T - 1 on. No float has some levels.
    log = math.log(level.numerator) - math.log(level.denominator)
    distance = (-log - math.log1p(math.exp(-rate))) / rate
    beyond = max(0, math.floor(min(distance + (1 + abs(distance)) * _ROUNDING, _FAR)))
    found: _Ints = threshold - 1 + np.minimum(beyond, np.iinfo(np.int64).max - threshold + 1)
    return found


def _decay(rate: float, distance: _Ints) -> _Floats:
    found: _Floats = np.exp(-rate * distance.astype(np.float64))
    return found


def _first(holds: Callable[[_Ints], _Flags], greatest: _Ints) -> _Ints:
    """Return the least integers from 0 for which a condition holds; it holds for the greatest."""
    low, high = np.full_like(greatest, -1), greatest.copy()
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        found = holds(middle)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return high
