"""The privacy loss of rejection, against the distributions in hundreds of digits."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from rejection import calibrated_epsilon, loss, pmf

from exact import power, real, rejected, stated

EPSILONS = [1e-12, 1e-3, 0.03, 0.1, math.log(2), 1, Fraction(7, 3), 5, 40, 300]
SIZES = [1, 2, 3, 4, 7, 30]

each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
each_size = pytest.mark.parametrize("n", SIZES)
epsilons = st.one_of(
    st.floats(5e-324, 1e300),
    st.floats(1e-9, 50),
    st.builds(Fraction, st.integers(1, 2**80), st.integers(1, 2**90)),
)
sizes = st.one_of(st.integers(1, 40), st.integers(1, 2**70))


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(400):
        yield


def excess(rate: Fraction, n: int) -> mpf:
    """Return ``ln(N(1) / N(0))``, by the closed form of N, to hundreds of digits."""
    if n == 1 or not rate:
        return mpf(0)
    # The excess is about (n - 1) / (n + 1) times the rate, and falls like exp(-rate).
    small = max(0, math.ceil(math.log10(rate.denominator) - math.log10(rate.numerator)))
    with mpmath.workdps(400 + 3 * small + int(min(rate, 2000))):
        a = power(rate, 1)
        top, bottom = 1 + a - a**2 - power(rate, n), 1 - power(rate, n + 1)
        return mpmath.log(top / bottom)


def reaches(bound: Any, rate: Any, n: int) -> bool:
    """Return whether a bound is at least the exact privacy loss."""
    room = stated(bound) - stated(rate)
    if room <= 0 or n == 1:
        return room >= 0 if n == 1 or not rate else False
    # Beyond 2000 the excess is less than any difference of the numbers drawn.
    return rate > 2000 or bool(real(room) >= excess(stated(rate), n))


@each_epsilon
@each_size
def test_pmf(epsilon: Any, n: int) -> None:
    computed = pmf(epsilon, n, np.arange(n + 1))
    assert computed.shape == (n + 1, n + 1)
    for x, row in enumerate(computed):
        for mass, exact in zip(row, rejected(epsilon, n, x), strict=True):
            assert abs(mass - exact) <= max(exact * 1e-12, mpf(2) ** -1072)
    np.testing.assert_array_equal(pmf(epsilon, n, 1), computed[1])
    np.testing.assert_array_equal(pmf(epsilon, n, [[0, n]]), computed[[[0, n]]])


def test_pmf_of_extreme_epsilons() -> None:
    for epsilon in (5e-324, Fraction(1, 10**400)):
        np.testing.assert_array_equal(pmf(epsilon, 3, 1), np.full(4, 0.25))
    for epsilon in (1e4, 1e300):
        np.testing.assert_array_equal(pmf(epsilon, 3, 1), [0, 1, 0, 0])


@each_epsilon
@each_size
def test_loss_is_the_maximum_over_neighbours_and_outputs(epsilon: Any, n: int) -> None:
    rows = [rejected(epsilon, n, x) for x in range(n + 1)]
    exact = max(
        abs(mpmath.log(one / other))
        for row, following in itertools.pairwise(rows)
        for one, other in zip(row, following, strict=True)
    )
    bound = loss(epsilon, n)
    slack = mpf(10) ** -180
    assert real(math.nextafter(bound, -math.inf)) - slack < exact < real(bound) + slack


EXTREMES = [
    *((5e-324, 2**62), (5e-324, 1), (1e300, 4), (Fraction(1, 10**400), 3)),
    # The loss is just below a float, 4 / 3 of epsilon.
    (9.529033802412869e-59, 2),
    *((745.0, 2), (1e-300, 2**70), (0.1, 1)),
]


@given(epsilons, sizes)
@settings(deadline=None, max_examples=100)
def test_loss_and_calibration_to_the_last_float(epsilon: Any, n: int) -> None:
    check_rounding(epsilon, n)


@pytest.mark.parametrize(("epsilon", "n"), EXTREMES)
def test_loss_and_calibration_of_extremes(epsilon: Any, n: int) -> None:
    check_rounding(epsilon, n)


def check_rounding(epsilon: Any, n: int) -> None:
    bound = loss(epsilon, n)
    assert reaches(bound, epsilon, n)
    assert not reaches(math.nextafter(bound, -math.inf), epsilon, n)
    noise = calibrated_epsilon(epsilon, n)
    assert reaches(epsilon, noise, n)
    following = math.nextafter(noise, math.inf)
    assert math.isinf(following) or not reaches(epsilon, following, n)


def test_inflation_is_below_5_4() -> None:
    """Its supremum is ln(5/4), at epsilon = ln 2 as n grows; between 0 and 1 there is none."""
    supremum = math.log(5 / 4)
    assert supremum - (loss(math.log(2), 100) - math.log(2)) < 1e-15
    for n in (2, 5, 50):
        assert max(loss(e, n) - e for e in np.geomspace(1e-3, 30, 300)) < supremum
    assert loss(0.1, 1) == calibrated_epsilon(0.1, 1) == 0.1
