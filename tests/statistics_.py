"""Statistical tests of draws, each at level ALPHA.

A test rejects the right distribution with probability ALPHA = 1e-6. The test files hold fewer than
500 such tests together, so by the union bound a correct library fails in at most one of 2000 runs
of all of them. Distributions that a test must reject are far enough away to pass with probability
below 1e-9.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ALPHA = 1e-6
#: The absolute value that a standard normal variable exceeds with probability ALPHA.
Z_LIMIT = float(stats.norm.isf(ALPHA / 2))
#: With fewer expected draws in a cell the statistic does not follow the chi-square distribution.
LEAST_EXPECTED = 10


def rejects(observed: Iterable[float], expected: Iterable[float]) -> bool:
    """Return whether a chi-square test at level ALPHA rejects the expected numbers of draws.

    Neighbouring cells are merged until each one expects LEAST_EXPECTED draws.
    """
    merged = [(0.0, 0.0)]
    for o, e in zip(map(float, observed), map(float, expected), strict=True):
        if merged[-1][1] >= LEAST_EXPECTED:
            merged.append((0.0, 0.0))
        merged[-1] = merged[-1][0] + o, merged[-1][1] + e
    if merged[-1][1] < LEAST_EXPECTED and len(merged) > 1:
        o, e = merged.pop()
        merged[-1] = merged[-1][0] + o, merged[-1][1] + e
    assert len(merged) > 1
    totals = [math.fsum(column) for column in zip(*merged, strict=True)]
    assert math.isclose(*totals, rel_tol=1e-9)
    statistic = math.fsum((o - e) ** 2 / e for o, e in merged)
    return bool(statistic > stats.chi2.isf(ALPHA, len(merged) - 1))


def censored_pmf(count: int, scale: float, lower: int, upper: int) -> NDArray[np.float64]:
    """Return the pmf on lower..upper of a count with discrete Laplace noise, both clamped."""
    a = math.exp(-1 / scale)
    below = min(max(count, lower), upper) - lower
    above = upper - lower - below
    pmf: NDArray[np.float64] = (1 - a) / (1 + a) * a ** np.abs(np.arange(-below, above + 1))
    pmf[0], pmf[-1] = a**below / (1 + a), a**above / (1 + a)
    return pmf


def equal_as_often_as_independent(one: Any, other: Any, scale: float) -> bool:
    """Return whether noise of this scale is equal in as many places as independent noise."""
    a = math.exp(-1 / scale)
    chance = ((1 - a) / (1 + a)) ** 2 * (1 + a**2) / (1 - a**2)
    equal = int(np.sum(np.asarray(one) == np.asarray(other)))
    return bool(stats.binomtest(equal, len(one), chance).pvalue > ALPHA)
