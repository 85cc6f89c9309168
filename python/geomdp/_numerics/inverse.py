"""The inverse of the noise: estimates of functions of counts that are right on average.

``docs/proofs.md``, section 21, has the statements. With ``a = exp(-rate)`` and ``e = a / (1 - a)``,
the estimate of f(x) is ``f(y) - e (1 + e) (f(y + 1) - 2 f(y) + f(y - 1))`` at a noisy count y, and
``f(y) - e (f(y') - f(y))`` at a bound with the neighbour y'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Float64 has all integers up to this.
_EXACT = 2.0**53
#: How many tests each end of an interval has, for numbers of cells near a limit from one to all.
_TESTS = 12


def weight(rate: float) -> float:
    """Return ``e``; 0 without noise."""
    return 1 / math.expm1(rate) if rate < 700 else 0.0


class Steps(NamedTuple):
    """A function at noisy counts: its values, its steps up and down, which end at the bounds."""

    here: _Floats
    up: _Floats
    down: _Floats
    e: Any
    edge: NDArray[np.bool_]

    @property
    def estimates(self) -> _Floats:
        """Estimates of the function at the true counts (lemma 23)."""
        inside = self.e * (1 + self.e)
        found = self.here - np.where(self.edge, self.e, inside) * (self.up - self.down)
        return np.asarray(found)

    def covariances(self, other: Steps) -> _Floats:
        """Unbiased estimates of the covariances of both estimates, count by count (lemma 25)."""
        c = self.e * (1 + self.e)
        bends = c * (self.up - self.down) * c * (other.up - other.down)
        slopes = c * (self.up * other.up + self.down * other.down)
        return np.asarray(slopes + np.where(self.edge, 0.0, bends))


def steps(
    function: Callable[[_Floats], Any], counts: NDArray[Any], limits: tuple[Any, Any], e: Any
) -> Steps:
    """Return a function at noisy counts of this noise, whose least and greatest are the limits."""
    y = counts.astype(np.float64)
    if (np.abs(y) >= _EXACT).any():
        raise OverflowError("noisy counts reach beyond 2**53: give smaller counts")
    lower, upper = (np.asarray(x, np.float64) for x in limits)
    points = np.stack([y, np.minimum(y + 1, upper), np.maximum(y - 1, lower)])
    values = np.asarray(function(points.reshape(-1)), np.float64).reshape(points.shape)
    here, above, below = values
    return Steps(here, above - here, here - below, e, (y == lower) | (y == upper))


def least(tally: _Ints, values: _Floats, n: _Ints, spread: float, level: float) -> _Ints:
    """Return the least number of cells with a property that tests at this level do not reject.

    `tally` has a row for each of the `values`, which are estimates of the property, 0 or 1, and a
    column for each group, of `n` cells. No estimate is below `-spread`. By lemma 26, if N cells of
    a group have the property, ``prod(1 + t u) / (1 + t)**N`` has mean 1 for each t, and so has the
    average over several t: it reaches ``1 / level`` with probability at most `level`.
    """
    spread, target = max(spread, 1e-300), -math.log(level)
    top = np.full(n.shape, 0.9 / spread)
    first = np.sqrt(target / 2 / (np.maximum(n, 1) * spread * (1 + spread)))
    t = np.geomspace(np.minimum(first, top / 2), top, _TESTS)
    logs, room = np.zeros(t.shape), n * np.log1p(t) + n
    for row, value in zip(tally, values, strict=True):
        each = row * np.log1p(t * value)
        logs, room = logs + each, room + np.abs(each)
    logs -= 2.0**-44 * room + math.log(_TESTS)

    def kept(numbers: _Ints) -> NDArray[np.bool_]:
        return np.asarray(np.logaddexp.reduce(logs - numbers * np.log1p(t)) < target)

    low, high = np.full_like(n, -1), n.copy()
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        enough = kept(middle)
        high, low = np.where(open_ & enough, middle, high), np.where(open_ & ~enough, middle, low)
    return high
