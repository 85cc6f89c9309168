"""The errors of numpy's elementary functions, which bounds on numerical errors assume."""

import mpmath
import numpy as np
import pytest

from geomdp._numerics import ratio_tails


@pytest.mark.parametrize("name", ["exp", "expm1"])
def test_numpy_is_within_eight_units_of_the_last_place(name: str) -> None:
    """As lemma 16d assumes of any processor and version: numpy chooses its code by both."""
    rng = np.random.default_rng(1)
    sizes = np.concatenate([2.0 ** rng.uniform(-60, 9, 4000), rng.uniform(0, 700, 2000)])
    # More than a register at a time, and single ones.
    for values in (-sizes, sizes, sizes[:1], -sizes[-3:]):
        found = getattr(np, name)(values)
        with mpmath.workdps(40):
            exact = [getattr(mpmath, name)(mpmath.mpf(x)) for x in values.tolist()]
            off = [abs(mpmath.mpf(x) / y - 1) for x, y in zip(found.tolist(), exact, strict=True)]
        assert max(off) <= ratio_tails._UNIT == 8 * np.finfo(np.float64).eps
