"""Rejection sampling and the formulas of the source notes, against sums over the distribution.

Directed rounding is checked in Arb's ball arithmetic (python-flint), which shares no code with the
decimals of the module.
"""

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import flint
import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from exact import censored, noise, power, real, rejected, tail
from geomdp import GeometricMechanism, rejection, remap
from geomdp.rejection import (
    calibrated_epsilon,
    censoring_probabilities,
    expected_errors,
    inflation,
    loss,
    note_epsilon,
    note_extremes,
    note_factor,
    note_ratios,
    pmf,
    rejection_probability,
)

EPSILONS = [1e-12, 1e-3, 0.03, 0.1, math.log(2), 1, Fraction(7, 3), 5, 40, 300]
SIZES = [1, 2, 3, 4, 7, 30]
EXTREME = [5e-324, 1e-310, 1e-300, 1e-30, 1e15, 1e300, Fraction(1, 10**400), 10**400]
#: A few units in the last place, and of the least float.
CLOSE, TINY = mpf(2) ** -50, mpf(2) ** -1072

each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
each_size = pytest.mark.parametrize("n", SIZES)
epsilons = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False),
    st.floats(1e-9, 50),
    st.builds(Fraction, st.integers(1, 2**80), st.integers(1, 2**90)),
)
sizes = st.one_of(st.integers(1, 40), st.integers(1, 2**70))


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(400):
        yield


def close(computed: Any, exact: mpf) -> bool:
    if math.isinf(computed):
        return bool(exact > mpf(2) ** 1023)
    return bool(abs(mpf(float(computed)) - exact) <= max(abs(exact) * CLOSE, TINY))


def beyond(epsilon: Any, room: int) -> mpf:
    """Return ``P(Z > room)``: by symmetry, half the probability of ``|Z| > room``."""
    return (1 - sum(noise(epsilon, z) for z in range(-room, room + 1))) / 2


def truncated(epsilon: Any, n: int, x: int) -> mpf:
    """Return the formula for ``Pr(T_D)``, for any x."""
    return (power(epsilon, x + 1) + power(epsilon, n - x + 1)) / (1 + power(epsilon, 1))


# Balls


def ball(value: Any) -> arb:
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def gain_ball(epsilon: Any, n: int) -> arb:
    """Return ``N(1) / N(0) - 1``, by the closed form of N."""

    def one_minus(k: int) -> arb:
        return -(-ball(epsilon) * k).expm1()

    a = (-ball(epsilon)).exp()
    # (1 - a) N(x) = (1 - a**(x + 1)) + a (1 - a**(n - x)).
    first, second = one_minus(1) + a * one_minus(n), one_minus(2) + a * one_minus(n - 1)
    return (second - first) / first


def above_loss(bound: Any, epsilon: Any, n: int) -> bool:
    """Return whether a bound is at least the exact privacy loss, at sufficient precision."""
    if bound == math.inf:
        return True
    if n == 1 or not epsilon:
        return Fraction(bound) >= Fraction(epsilon)
    room = Fraction(bound) - Fraction(epsilon)
    if room <= 0 or room > 1:
        return room > 0
    if epsilon > 2**12 and room > Fraction(1, 2**1100):
        # The gain is less than exp(-epsilon).
        return True
    for bits in (128, 2**10, 2**13, 2**15):
        with flint.ctx.workprec(bits):
            difference = ball(room).expm1() - gain_ball(epsilon, n)
            if difference > 0 or difference < 0:
                return bool(difference > 0)
    raise AssertionError((bound, epsilon, n))


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


# Section 2.4 of the note, line by line


@each_epsilon
@each_size
def test_censoring_probabilities_are_the_tails_of_the_noise(epsilon: Any, n: int) -> None:
    lower, upper = censoring_probabilities(epsilon, n, np.arange(n + 1))
    for x in range(n + 1):
        inside = sum(noise(epsilon, y - x) for y in range(n + 1))
        assert close(lower[x], beyond(epsilon, x))
        assert close(upper[x], beyond(epsilon, n - x))
        assert close(rejection_probability(epsilon, n, x), 1 - inside)
        assert abs(truncated(epsilon, n, x) - (1 - inside)) < mpf(10) ** -380


@each_epsilon
@each_size
def test_note_ratios_follow_equation_2_2(epsilon: Any, n: int) -> None:
    L, U = note_ratios(epsilon, n, np.arange(n + 1))

    def a(k: int) -> mpf:
        return power(epsilon, k)

    for x in range(n + 1):
        assert close(L[x], (a(2 * x + 1) + a(n + 1)) / (a(2 * x + 2) + a(n)))
        assert close(U[x], (a(2 * x + 1) + a(n + 1)) / (a(2 * x) + a(n + 2)))
    assert note_extremes(epsilon, n) == (L[n], L[1], U[0], U[n - 1])


@each_epsilon
@each_size
def test_note_swaps_its_neighbours(epsilon: Any, n: int) -> None:
    """The note calls L the ratio to the count below; its formula is that of the count above."""
    for x in range(n + 1):
        L, U = note_ratios(epsilon, n, x)
        assert close(L, truncated(epsilon, n, x) / truncated(epsilon, n, x + 1))
        assert close(U, truncated(epsilon, n, x) / truncated(epsilon, n, x - 1))
        assert note_ratios(epsilon, n, n - x)[0] == U


@pytest.mark.parametrize("epsilon", [0.03, 0.1, math.log(2), 1, Fraction(7, 3)], ids=float)
@pytest.mark.parametrize("n", range(1, 13))
def test_signs_of_the_derivatives(epsilon: Any, n: int) -> None:
    rate, a = real(epsilon), mpmath.exp(-real(epsilon))

    def ratio(x: mpf) -> mpf:
        return (a ** (2 * x + 1) + a ** (n + 1)) / (a ** (2 * x + 2) + a**n)

    for x in range(n + 1):
        stated = 2 * (a**2 - 1) * -rate * a ** (2 * x + n + 1) / (a ** (2 * x + 2) + a**n) ** 2
        assert abs(mpmath.diff(ratio, x) + stated) < mpf(10) ** -100
        assert stated > 0
    ratios = note_ratios(epsilon, n, np.arange(n + 1))
    assert (np.diff(ratios[0]) < 0).all()
    assert (np.diff(ratios[1]) > 0).all()


@pytest.mark.parametrize("epsilon", [0.03, 0.1, math.log(2), 1, Fraction(7, 3)], ids=float)
@pytest.mark.parametrize("n", range(1, 40))
def test_note_extremes(epsilon: Any, n: int) -> None:
    extremes = note_extremes(epsilon, n)
    assert extremes.L_n == extremes.U_0 < 1
    assert extremes.U_n_minus_1 == extremes.L_1
    # The note says "L_1 > 1 for all n > 0", which fails for n up to 3.
    assert (extremes.L_1 > 1) == (n > 3)
    assert (extremes.L_1 == 1) == (n == 3)


@each_epsilon
@each_size
def test_note_factor(epsilon: Any, n: int) -> None:
    L_n, L_1, U_0, U_last = note_extremes(epsilon, n)
    factor = note_factor(epsilon, n)
    a = mpmath.exp(-real(epsilon))
    assert close(factor, (1 + a ** (n + 2)) / (a + a ** (n + 1)))
    assert 1 <= factor == max(1 / L_n, 1 / U_0, L_1, U_last)


@each_epsilon
@pytest.mark.parametrize("n", [*SIZES, 1000, 10**5])
def test_note_epsilon(epsilon: Any, n: int) -> None:
    if float(epsilon) * n > 1e4:
        assert note_epsilon(epsilon, n) == 0
        return
    with mpmath.workdps(50 + int(float(epsilon) * n)):
        a = mpmath.exp(-real(epsilon))
        M = (1 + a ** (n + 2)) / (a + a ** (n + 1))
        assert close(note_epsilon(epsilon, n), real(epsilon) - mpmath.log(M))


def test_quoted_probabilities() -> None:
    """The note reads 0.075 and 0.25 off its figure 2.1; both are within 6% of the exact values."""
    mechanism = GeometricMechanism(0.1, bounds=(0, 30))
    zero = remap.risk(mechanism, np.tile(np.arange(31) == 0, (31, 1)) * 1.0)[20]
    ends = remap.risk(mechanism, np.tile(np.isin(np.arange(31), (0, 30)), (31, 1)) * 1.0)[20]
    a = mpmath.exp(mpf(-0.1))
    assert close(zero, a**20 / (1 + a))
    assert close(ends, (a**20 + a**10) / (1 + a))
    assert round(zero, 4) == 0.0710
    assert round(ends, 4) == 0.2642
    assert abs(zero / 0.075 - 1) < 0.06
    assert abs(ends / 0.25 - 1) < 0.06


# The distribution


@each_epsilon
@each_size
def test_pmf(epsilon: Any, n: int) -> None:
    computed = pmf(epsilon, n, np.arange(n + 1))
    assert computed.shape == (n + 1, n + 1)
    for x, row in enumerate(computed):
        assert all(map(close, row, rejected(epsilon, n, x)))


def test_pmf_shapes() -> None:
    whole = pmf(0.3, 6, np.arange(7))
    assert pmf(0.3, 6, 2).shape == (7,)
    np.testing.assert_array_equal(pmf(0.3, 6, 2), whole[2])
    np.testing.assert_array_equal(pmf(0.3, 6, [[0, 5], [6, 2]]), whole[[[0, 5], [6, 2]]])
    assert pmf(0.3, 6, np.zeros((0, 2), dtype=np.int8)).shape == (0, 2, 7)
    np.testing.assert_array_equal(pmf(0.3, 6, np.array(2, dtype=">u8")), whole[2])


def test_epsilon_zero_gives_the_uniform_distribution() -> None:
    for epsilon in (0, 5e-324, Fraction(1, 10**400)):
        np.testing.assert_array_equal(pmf(epsilon, 3, 1), np.full(4, 0.25))
    assert loss(0, 30) == inflation(0, 30) == 0


def test_huge_epsilon_gives_the_count() -> None:
    for epsilon in (1e4, 1e300, 10**400):
        np.testing.assert_array_equal(pmf(epsilon, 3, 1), [0, 1, 0, 0])


def test_products_too_large_for_a_float() -> None:
    n = 2**62
    for epsilon, x in itertools.product(
        (Fraction(1, 10**17), 1e-16, Fraction(1, 3 * 10**18)), (0, 1, n // 3, 123456789123456789, n)
    ):
        lower, upper = censoring_probabilities(epsilon, n, x)
        assert close(lower, tail(epsilon, x + 1))
        assert close(upper, tail(epsilon, n - x + 1))


# Privacy loss


@each_epsilon
@each_size
def test_loss_is_the_maximum_over_neighbours_and_outputs(epsilon: Any, n: int) -> None:
    with mpmath.workdps(200):
        rows = [rejected(epsilon, n, x) for x in range(n + 1)]
        exact = max(
            abs(mpmath.log(one / other))
            for row, following in itertools.pairwise(rows)
            for one, other in zip(row, following, strict=True)
        )
        bound = loss(epsilon, n)
        slack = mpf(10) ** -180
        assert mpf(bound) > exact - slack
        assert mpf(below(bound)) < exact + slack


@given(epsilons, sizes)
@settings(deadline=None, max_examples=150)
@example(5e-324, 2**62)
@example(1e300, 4)
@example(10**400, 3)
@example(Fraction(1, 10**400), 3)
@example(Fraction(2**1024 - 2**970), 30)
@example(745.0, 2)
@example(1e-300, 2**70)
def test_loss_is_the_exact_value_rounded_up(epsilon: Any, n: int) -> None:
    bound = loss(epsilon, n)
    assert above_loss(bound, epsilon, n)
    assert not above_loss(below(bound), epsilon, n)


@given(epsilons, sizes)
@settings(deadline=None, max_examples=150)
@example(5e-324, 2**62)
@example(1e300, 4)
@example(10**400, 3)
@example(Fraction(1, 10**400), 3)
@example(math.log(2), 2**62)
def test_inflation_is_the_exact_value_rounded_up(epsilon: Any, n: int) -> None:
    added = inflation(epsilon, n)
    assert above_loss(Fraction(epsilon) + Fraction(added), epsilon, n)
    if added:
        assert not above_loss(Fraction(epsilon) + Fraction(below(added)), epsilon, n)
    # The documented bounds on the exact value.
    lower = Fraction(below(added)) if added else Fraction(0)
    assert lower <= Fraction(n - 1, n + 1) * Fraction(epsilon)
    with flint.ctx.workprec(256):
        assert n == 1 or gain_ball(min(Fraction(epsilon), 2**12), n) < arb(1) / 4


@given(st.floats(0, 1e300), st.integers(-20, 20))
def test_wrong_guess_is_corrected(limit: float, steps: int) -> None:
    guess = limit
    for _ in range(abs(steps)):
        guess = max(0.0, math.nextafter(guess, math.copysign(math.inf, steps)))
    assert rejection._least(Decimal(guess), lambda value: value >= limit) == limit


def test_supremum_of_the_inflation() -> None:
    """The supremum is ln(5/4), at epsilon = ln 2 as n grows."""
    supremum = math.log(5 / 4)
    assert supremum - inflation(math.log(2), 100) < 1e-15
    gaps = [supremum - inflation(math.log(2), n) for n in (2, 4, 8, 16, 32)]
    assert all(one > 3 * other > 0 for one, other in itertools.pairwise(gaps))
    for n in (2, 5, 50):
        assert max(inflation(epsilon, n) for epsilon in np.geomspace(1e-3, 30, 300)) < supremum


def test_two_outputs_have_no_inflation() -> None:
    """Rejection between 0 and 1 is randomised response."""
    for epsilon in (*EPSILONS, *EXTREME[:6]):
        assert inflation(epsilon, 1) == 0
        assert Fraction(below(loss(epsilon, 1))) < Fraction(epsilon) <= Fraction(loss(epsilon, 1))
    assert loss(0.1, 1) == calibrated_epsilon(0.1, 1) == 0.1


# Calibration


@given(epsilons, sizes)
@settings(deadline=None, max_examples=100)
@example(5e-324, 30)
@example(1e-323, 30)
@example(5e-324, 1)
@example(1e300, 4)
@example(10**400, 3)
@example(10**400, 1)
@example(Fraction(1, 10**400), 3)
@example(Fraction(2**1024 - 2**970), 30)
@example(745.0, 2)
@example(1e-300, 2**70)
def test_calibrated_epsilon_is_the_largest_safe_float(epsilon: Any, n: int) -> None:
    noise = calibrated_epsilon(epsilon, n)
    assert above_loss(Fraction(epsilon), noise, n)
    following = math.nextafter(noise, math.inf)
    assert math.isinf(following) or not above_loss(Fraction(epsilon), following, n)


# The note's factor

#: By n: below this epsilon the note's noise loses more than epsilon, and above it less.
CROSSINGS = {
    2: 0.1596577175,
    3: 0.1629598567,
    5: 0.1345795253,
    10: 0.0855708905,
    30: 0.03363937637,
    100: 0.01070760419,
    1000: 0.001095785483,
    10**5: 1.098583974e-5,
}


def excess(epsilon: Any, n: int) -> mpf:
    """Return the exact privacy loss of the note's noise, minus epsilon."""
    rate = real(epsilon)
    a = mpmath.exp(-rate)
    noise = mpmath.log1p(a**n * (1 - a**2) / (1 + a ** (n + 2)))
    b = mpmath.exp(-noise)
    gain = (
        b * mpmath.expm1(-noise) * mpmath.expm1(-(n - 1) * noise) / -mpmath.expm1(-(n + 1) * noise)
    )
    return noise + mpmath.log1p(gain) - rate


@pytest.mark.parametrize("n", CROSSINGS)
def test_note_is_unsafe_for_small_epsilon(n: int) -> None:
    crossing = CROSSINGS[n]
    # For large n the crossing is at about ln(3) / n.
    assert n < 10**5 or abs(crossing * n - math.log(3)) < 1e-4
    for factor in (1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-8):
        epsilon = crossing * factor
        assert loss(note_epsilon(epsilon, n), n) > epsilon
        assert excess(epsilon, n) > 0
    for factor in (1 + 1e-8, 1.1, 2, 10, 30):
        epsilon = crossing * factor
        assert loss(note_epsilon(epsilon, n), n) < epsilon
        assert excess(epsilon, n) < 0


@pytest.mark.parametrize("n", CROSSINGS)
def test_note_can_lose_nearly_twice_epsilon(n: int) -> None:
    epsilon = 1e-6 / n
    ratio = loss(note_epsilon(epsilon, n), n) / epsilon
    assert abs(ratio - 2 * n / (n + 1)) < 1e-5


def test_note_is_safe_for_one_record() -> None:
    for epsilon in EPSILONS:
        assert loss(note_epsilon(epsilon, 1), 1) < epsilon


@pytest.mark.parametrize("n", [2, 30])
def test_factor_of_the_smaller_noise_is_unsafe_too(n: int) -> None:
    """The note could also mean: noise plus ln M, at the noise's own rate, is at most epsilon."""
    for epsilon in (1e-6, 1e-3, 0.3 / n):
        low, high = Fraction(0), Fraction(epsilon)
        for _ in range(60):
            middle = (low + high) / 2
            stated = middle + Fraction(math.log(note_factor(middle, n)))
            low, high = (middle, high) if stated <= Fraction(epsilon) else (low, middle)
        assert loss(low, n) > 1.01 * epsilon


def test_note_example() -> None:
    """For n = 30 and epsilon 0.1 it is safe, and uses a sixth of the privacy loss."""
    noise = note_epsilon(0.1, 30)
    assert round(noise, 5) == 0.00863
    assert round(loss(noise, 30), 5) == 0.01664
    assert round(calibrated_epsilon(0.1, 30), 5) == 0.05325
    assert round(note_factor(0.1, 30), 4) == 1.0957
    masses = pmf(noise, 30, 20)
    assert 1.18 < masses.max() / masses.min() < 1.19  # "nearly uniform"


# Expected errors


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.5], ids=float)
@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_expected_errors(epsilon: float, n: int) -> None:
    errors = expected_errors(epsilon, n)
    for computed, masses, rate in (
        (errors.censored, censored, epsilon),
        (errors.rejected_note, rejected, note_epsilon(epsilon, n)),
        (errors.rejected_exact, rejected, calibrated_epsilon(epsilon, n)),
    ):
        risks = [
            sum(abs(y - x) * p for y, p in enumerate(masses(rate, n, x))) for x in range(n + 1)
        ]
        assert close(computed.worst, max(risks))
        assert close(computed.average, sum(risks) / (n + 1))


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1, 0.5, 1.5, 6], ids=float)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 30])
def test_remaps_have_the_smallest_error(epsilon: float, n: int) -> None:
    """Rejection with privacy loss up to epsilon is no better than the remaps."""
    errors = expected_errors(epsilon, n)
    assert errors.remapped_minimax is not None
    rivals = [errors.censored, errors.rejected_exact]
    if loss(note_epsilon(epsilon, n), n) <= epsilon:
        rivals.append(errors.rejected_note)
    for rival in (*rivals, errors.remapped_minimax):
        assert errors.remapped_bayes.average <= rival.average * (1 + 1e-9)
    for rival in (*rivals, errors.remapped_bayes):
        assert errors.remapped_minimax.worst <= rival.worst * (1 + 1e-6)


def test_minimax_is_optional() -> None:
    assert expected_errors(0.1, 200, minimax=False).remapped_minimax is None
    assert expected_errors(0.1, 30, minimax=False)[:4] == expected_errors(0.1, 30)[:4]


# Input


def test_result_types() -> None:
    for function in (censoring_probabilities, note_ratios):
        assert [type(value) for value in function(0.1, 30, 20)] == [float, float]
        one, other = function(0.1, 30, [[20, 3]])
        assert one.shape == other.shape == (1, 2)
        assert one.dtype == other.dtype == np.float64
    assert type(rejection_probability(0.1, 30, np.uint8(20))) is float
    counts = np.array([0, 20, 30])
    expected = rejection_probability(0.1, 30, counts)
    for dtype in ("i1", "u1", ">i4", "u8", ">u8"):
        np.testing.assert_array_equal(
            rejection_probability(0.1, 30, counts.astype(dtype)), expected
        )
    assert rejection_probability(0.1, 30, []).shape == (0,)
    for value in (inflation(0.1, 3), loss(0.1, 3), calibrated_epsilon(0.1, 3), note_factor(1, 3)):
        assert type(value) is float
    assert all(type(value) is float for value in note_extremes(0.1, 3))


def test_ratios_beyond_float64() -> None:
    assert note_ratios(1000, 4, 0) == (math.inf, 0)
    assert note_ratios(1000, 4, 4) == (0, math.inf)
    assert note_factor(1e300, 4) == math.inf
    assert note_epsilon(1e300, 4) == 0
    assert note_epsilon(Fraction(1, 10**400), 4) == 0


WITH_COUNTS = [censoring_probabilities, rejection_probability, note_ratios, pmf]
WITHOUT = [inflation, loss, calibrated_epsilon, note_factor, note_epsilon, note_extremes]
EACH: list[Callable[[Any, Any], Any]] = [
    *(lambda epsilon, n, f=f: f(epsilon, n, 0) for f in WITH_COUNTS),
    *WITHOUT,
    expected_errors,
]


@pytest.mark.parametrize("function", EACH)
def test_invalid_epsilon_raises(function: Callable[[Any, Any], Any]) -> None:
    for bad in (None, "1", True, 1j, [1], np.longdouble(1)):
        with pytest.raises(TypeError, match="epsilon"):
            function(bad, 3)
    for bad in (-1, math.nan, math.inf, -5e-324):
        with pytest.raises(ValueError, match="epsilon"):
            function(bad, 3)


@pytest.mark.parametrize(
    "function", [*WITHOUT[2:], expected_errors, lambda e, n: note_ratios(e, n, 0)]
)
def test_epsilon_zero_raises_where_undefined(function: Any) -> None:
    with pytest.raises(
        ValueError, match="epsilon = 0 is not accepted: give a finite number above 0"
    ):
        function(0, 3)


@pytest.mark.parametrize("function", EACH)
def test_invalid_n_raises(function: Callable[[Any, Any], Any]) -> None:
    for bad in (None, "1", True, 1.0, Fraction(2)):
        with pytest.raises(TypeError, match="n = "):
            function(0.1, bad)
    for bad in (0, -1, -(10**30)):
        with pytest.raises(ValueError, match=r"n = .*give an int of at least 1"):
            function(0.1, bad)


@pytest.mark.parametrize("function", WITH_COUNTS)
def test_invalid_counts_raise(function: Callable[[Any, Any, Any], Any]) -> None:
    for bad in (None, "1", True, 1.0, [1.0], np.ones(2), np.ma.array([1, 2])):
        with pytest.raises(TypeError, match="counts"):
            function(0.1, 30, bad)
    for bad in (-1, 31, [3, 31], np.array([[2, 2**64 - 1]], dtype=np.uint64), np.int8(-128)):
        with pytest.raises(ValueError, match=r"counts with .* give counts from 0 to 30"):
            function(0.1, 30, bad)
    with pytest.raises(OverflowError, match="counts beyond int64"):
        function(0.1, 30, 2**63)
    with pytest.raises(OverflowError, match=r"n = .* give at most 2\*\*62"):
        function(0.1, 2**62 + 1, 0)


def test_expected_errors_of_too_large_n_raise() -> None:
    with pytest.raises(ValueError, match="n = 128 is not accepted: give at most 127"):
        expected_errors(0.1, 128)
    with pytest.raises(ValueError, match=r"n = 4611686018427387904 is not accepted: .* 4095"):
        expected_errors(0.1, 2**62, minimax=False)
    with pytest.raises(TypeError, match="minimax"):
        expected_errors(0.1, 3, minimax=1)  # type: ignore[arg-type]
