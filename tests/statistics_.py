"""Statistical tests of draws, each at level ALPHA.

A test rejects the right distribution with probability ALPHA = 1e-6. The test files hold fewer than
500 such tests together, so by the union bound a correct library fails in at most one of 2000 runs
of all of them. Distributions that a test must reject are far enough away to pass with probability
below 1e-9.
"""

import math
from collections.abc import Iterable

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
