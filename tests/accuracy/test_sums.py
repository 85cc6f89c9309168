"""Accuracy and intervals of sums and ratios, against exact sums over both noises and all tapes."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from exact import noise, real, stated, tail
from geomdp import GeometricMechanism
from geomdp._numerics import sum_tails
from geomdp.accuracy import (
    ratio_confidence_interval,
    relative_accuracy,
    scale_to_accuracy,
    sum_accuracy,
    sum_confidence_interval,
)
from tapes import sampled_distribution

pytestmark = pytest.mark.filterwarnings("ignore:alpha = .* is the probability")
from_scale = GeometricMechanism.from_scale
FREE = GeometricMechanism(epsilon=0.5)


# Sums


def sum_mass(rate: Any, n: int, s: int) -> mpf:
    """Return ``P(Z_1 + ... + Z_n = s)`` by the hypergeometric series of a sum over its halves."""
    q, s = mpmath.exp(-real(rate)), abs(s)
    free = mpmath.binomial(n + s - 1, s) * (1 - q) ** (2 * n) * q**s
    return free * mpmath.hyp2f1(n, n + s, s + 1, q * q)


def masses_of(rate: Any, weights: list[int], reach: int) -> list[mpf]:
    """Return the masses of a weighted sum on -reach to reach, but for the noise beyond it."""
    masses = {0: mpf(1)}
    for weight in weights:
        noises = [(weight * z, noise(rate, z)) for z in range(-reach, reach + 1)]
        grown: dict[int, mpf] = {}
        for s, mass in masses.items():
            for step, more in noises:
                if abs(s + step) <= reach:
                    grown[s + step] = grown.get(s + step, 0) + mass * more
        masses = grown
    return [masses.get(s, mpf(0)) for s in range(-reach, reach + 1)]


@pytest.mark.parametrize("n", [1, 2, 3, 20, 200])
@pytest.mark.parametrize("scale", [0.2, 1, Fraction(7, 3)])
def test_sum_accuracy_is_the_least_integer(n: int, scale: Any) -> None:
    mechanism = from_scale(scale)
    lost = n * mechanism.certificate().total_variation
    with mpmath.workdps(60):
        beyond = [1 - sum_mass(mechanism.rate, n, 0)]
        while beyond[-1] > 1e-7:
            beyond.append(beyond[-1] - 2 * sum_mass(mechanism.rate, n, len(beyond)))
        for alpha in (1, 0.9, 0.5, 0.05, 1e-3, 1e-6):
            t = sum_accuracy(mechanism, n, alpha)
            assert type(t) is int
            assert beyond[t] <= alpha - lost
            assert t == 0 or beyond[t - 1] > alpha - lost
            if n == 1:
                assert t == scale_to_accuracy(scale, alpha)


def test_sums_of_masses_are_right() -> None:
    with mpmath.workdps(40):
        for n in (1, 2, 3):
            plain = masses_of(1, [1] * n, 60)
            for s in range(20):
                assert abs(plain[60 + s] / sum_mass(1, n, s) - 1) < 1e-15


def test_sum_accuracy_of_many_counts_is_the_fourier_transforms() -> None:
    for scale, n in ((10, 10**4), (0.3, 10**4), (3, 10**5), (100, 57)):
        rate = 1 / stated(scale)
        for alpha in (0.5, 0.05, 1e-4):
            t = sum_accuracy(from_scale(scale), n, alpha)
            assert t == sum_tails._by_fourier(rate, {1: n}, stated(alpha))
            assert t == pytest.approx(normal(scale, n, alpha), rel=0.05)
    assert sum_accuracy(from_scale(1e9), 10**4, 0.05) == pytest.approx(
        normal(1e9, 10**4, 0.05), rel=1e-3
    )
    assert sum_accuracy(from_scale(3), 10**6, 0.05) == pytest.approx(
        normal(3, 10**6, 0.05), rel=1e-3
    )


def normal(scale: float, n: int, alpha: float) -> float:
    q = math.exp(-1 / scale)
    z = mpmath.sqrt(2) * mpmath.erfinv(1 - alpha)
    return float(z) * math.sqrt(2 * q * n) / (1 - q)


@pytest.mark.parametrize("rate", [Fraction(1, 2), 3])
@pytest.mark.parametrize("weights", [[1, 2], [1, -1, 3], [2, 2, -5], [6, 4]])
def test_weighted_sums(rate: Any, weights: list[int]) -> None:
    mechanism, zeros = GeometricMechanism(rate), np.zeros(len(weights), int)
    reach = int(30 * max(map(abs, weights)) / rate)
    with mpmath.workdps(20):
        masses = masses_of(rate, weights, reach)
        inside = masses[reach]
        for alpha in (0.5, 0.05, 1e-4):
            low, t = sum_confidence_interval(mechanism, zeros, alpha, weights=weights)
            assert low == -t
            within = inside + 2 * mpmath.fsum(masses[reach + 1 : reach + t + 1])
            assert within >= 1 - alpha
            # The least, at a level that is lower by 2**-30.
            unit = math.gcd(*weights)
            before = within - 2 * mpmath.fsum(masses[reach + t - unit + 1 : reach + t + 1])
            assert t == 0 or before < 1 - alpha + 2.0**-30


def test_wide_weighted_sums_have_chernoffs_bound() -> None:
    weights = [1, 2**40]
    t = sum_confidence_interval(FREE, [0, 0], 0.05, weights=weights)[1]
    # The first weight adds next to nothing.
    assert 2**40 * scale_to_accuracy(2, 0.05) <= t <= 2**42 * scale_to_accuracy(2, 0.05)


def test_weights_without_noise_or_effect() -> None:
    assert sum_confidence_interval(FREE, [3, 5], 0.05, weights=[0, 0]) == (0, 0)
    assert sum_confidence_interval(FREE, [], 0.05) == (0, 0)
    one = FREE.confidence_interval(5, 0.05)
    assert sum_confidence_interval(FREE, 5, 0.05) == one
    assert sum_confidence_interval(FREE, np.int64(5), 0.05) == one
    assert sum_confidence_interval(FREE, [5, 9], 0.05, weights=[-7, 0]) == (
        -7 * one[1],
        -7 * one[0],
    )
    table = np.array([[1, 2], [3, 4]], "i2")
    t = sum_accuracy(FREE, 4, 0.05)
    assert sum_confidence_interval(FREE, table, 0.05) == (10 - t, 10 + t)
    assert sum_confidence_interval(FREE, table, 0.05, weights=[[1, -1], [1, -1]]) == (
        -2 - t,
        -2 + t,
    )
    exact = from_scale(0, (1, 9))
    assert sum_confidence_interval(exact, [2, 8, 4], 0.05) == (14, 14)
    assert sum_confidence_interval(exact, [1, 9, 4], 0.05) == (13, 14 + 2**63 - 10)
    huge = sum_confidence_interval(FREE, [2**62] * 8, 0.05)
    assert huge[0] < 2**65 < huge[1]


def test_sum_accuracy_grows_with_the_square_root() -> None:
    """A total of 200 cells: the figure of the issue."""
    assert FREE.accuracy(0.05) == 6
    assert [sum_accuracy(FREE, n, 0.05) for n in (0, 1, 200)] == [0, 6, 78]


def beyond(R: int) -> list[int]:
    """Return all counts from 0 to R, and some that such bounds move."""
    return [-900, -1, *range(R + 1), R + 1, R + 900]


@pytest.mark.parametrize(
    ("scale", "R", "weights"),
    [(0.4, 7, [1, 1]), (1, 4, [1, 1, 1]), (1, 9, [1, -1]), (0.5, 6, [2, -1]), (0.4, 6, [1, 1, 2])],
)
def test_coverage_of_sums_over_all_tapes(scale: Any, R: int, weights: list[int]) -> None:
    mechanism, dist = from_scale(scale, (-2, R - 2)), sampled_distribution(scale, R)
    total = dist.total ** len(weights)
    for alpha in (0.9, 0.3, 0.05):
        missed: dict[tuple[int, ...], int] = {}
        for released in itertools.product(range(R + 1), repeat=len(weights)):
            noisy = [y - 2 for y in released]
            low, high = sum_confidence_interval(mechanism, noisy, alpha, weights=weights)
            for true in itertools.product(beyond(R), repeat=len(weights)):
                value = sum(w * (x - 2) for w, x in zip(weights, true, strict=True))
                if not low <= value <= high:
                    mass = math.prod(
                        dist.masses[min(max(x, 0), R)][y]
                        for x, y in zip(true, released, strict=True)
                    )
                    missed[true] = missed.get(true, 0) + mass
        assert all(Fraction(mass, total) <= stated(alpha) for mass in missed.values())
        assert alpha < 0.5 or missed


@pytest.mark.parametrize("scale", [0.5, 1])
def test_coverage_of_sums_of_many_counts_at_a_bound(scale: Any) -> None:
    """Errors at a bound have one sign, and add up beyond the accuracy of the sum."""
    n, R, alpha = 25, 2, 0.05
    mechanism, dist = from_scale(scale, (0, R)), sampled_distribution(scale, R)
    missed = dict.fromkeys(range(R + 1), 0)
    for some, more in itertools.product(range(n + 1), repeat=2):
        if some + more > n:
            continue
        times = [n - some - more, some, more]
        released = [y for y in range(R + 1) for _ in range(times[y])]
        low, high = sum_confidence_interval(mechanism, released, alpha)
        ways = math.comb(n, some) * math.comb(n - some, more)
        for x, masses in enumerate(dist.masses):
            if not low <= n * x <= high:
                missed[x] += ways * math.prod(map(pow, masses, times))
    assert all(Fraction(m, dist.total**n) <= stated(alpha) for m in missed.values())
    assert missed[1]


def test_a_noisy_count_at_a_bound_adds_one_noise_to_its_side() -> None:
    mechanism = GeometricMechanism(epsilon=1, bounds=(0, 100))
    t = sum_accuracy(GeometricMechanism(1), 2, Fraction(7, 160))
    # One of two counts, at an eighth of the level.
    a = scale_to_accuracy(1, Fraction(1, 160), n=2)
    assert (t, a) == (4, 6)
    assert sum_confidence_interval(mechanism, [50, 60], 0.05) == (110 - t, 110 + t)
    # The noise of the other count alone is less than that of both.
    assert sum_confidence_interval(mechanism, [0, 60], 0.05) == (60 - a, 60 + t)
    assert sum_confidence_interval(mechanism, [50, 100], 0.05) == (
        150 - t,
        150 + a + 2**63 - 101,
    )
    # One count by itself may be any beyond its bound.
    assert sum_confidence_interval(mechanism, [98], 0.05) == (98 - 3, 2**63 - 1)
    assert sum_confidence_interval(GeometricMechanism(1, bounds=(10, 40)), [12], 0.05)[0] == 0
    assert sum_confidence_interval(mechanism, [0, 60], 0.05, weights=[-1, 1]) == (60 - t, 60 + a)
    assert sum_confidence_interval(mechanism, [0, 60], 0.05, weights=[1, -1]) == (-60 - a, t - 60)
    assert sum_confidence_interval(mechanism, [0, 3], 0.05) == (0, 3 + t)


def test_one_count_at_a_bound_does_not_make_a_sum_useless() -> None:
    """24 counts within the README's bounds: the lower end was 0."""
    noisy = [0] + 23 * [190]
    bounded = GeometricMechanism(epsilon=0.5, bounds=(0, 4526))
    assert sum_confidence_interval(FREE, noisy, 0.05) == (4343, 4397)
    assert sum_confidence_interval(bounded, noisy, 0.05) == (4326, 4398)
    assert sum_confidence_interval(bounded, 24 * [190], 0.05) == (4532, 4588)
    # Two counts above 0: their own intervals say more than the noise of 24.
    few = [4, 500] + 22 * [0]
    assert sum_confidence_interval(bounded, few, 0.05) == (504 - 4 - 16, 504 + 28)


def test_a_limit_of_the_dtype_is_a_bound() -> None:
    """As a list of ints, 127 in an int8 release was no longer at a bound, and 201 of 400 missed."""
    noisy = np.array([127, 3], "i1")
    t = sum_accuracy(FREE, 2, 0.05)
    for released in (noisy, noisy.tolist(), noisy.astype("i8"), tuple(noisy.tolist())):
        assert sum_confidence_interval(FREE, released, 0.05, dtype="i1") == (130 - t, 254)
        lower, upper = FREE.confidence_interval(released, 0.05, dtype=np.int8)
        assert (lower.tolist(), upper.tolist()) == ([121, -3], [127, 9])
        assert lower.dtype == upper.dtype == np.int8
        assert ratio_confidence_interval(FREE, released, 50, 0.05, dtype="i1")[1][0] == math.inf
    assert sum_confidence_interval(FREE, noisy.tolist(), 0.05) == (130 - t, 130 + t)
    assert FREE.confidence_interval(127, 0.05, dtype="i1") == (121, 127)
    for dtype, message in (("f8", "^dtype = float64 is not"), ("x", "^dtype = 'x' is not")):
        with pytest.raises(TypeError, match=message):
            FREE.confidence_interval(3, 0.05, dtype=dtype)
    with pytest.raises(ValueError, match=r"outside the bounds \(-128, 127\)"):
        sum_confidence_interval(FREE, [128], 0.05, dtype="i1")


# Ratios


def overtakes(rates: Any, counts: tuple[int, int], ratio: Fraction) -> mpf:
    """Return ``P(A >= ratio * B or B <= 0)`` for the counts with more noise, A and B."""
    above, below = counts
    total = tail(rates[1], below)
    for m in itertools.count(1):
        x = math.ceil(ratio * m) - above
        more = tail(rates[0], x) if x > 0 else 1 - tail(rates[0], 1 - x)
        total += noise(rates[1], m - below) * more
        if m > below and noise(rates[1], m - below) < 1e-20:
            return total
    raise AssertionError


@pytest.mark.parametrize("counts", [(5, 20), (0, 9), (-4, 12), (40, 30), (3, 200)])
@pytest.mark.parametrize("rates", [(1, 1), (Fraction(1, 2), 2), (3, Fraction(1, 3))])
def test_ratios_are_test_inversions(counts: tuple[int, int], rates: Any) -> None:
    first, second = map(GeometricMechanism, rates)
    for alpha in (0.5, 0.05):
        ends = ratio_confidence_interval(first, *counts, alpha, denominator_mechanism=second)
        for sign, end in zip((-1, 1), ends, strict=True):
            above, below = sign * counts[0], counts[1]
            if math.isinf(end):
                assert tail(rates[1], below) > alpha / 2 - 1e-15
                continue
            ratio = Fraction(sign * end)
            assert overtakes(rates, (above, below), ratio) <= alpha / 2
            # The test with one count more does not reject a ratio just within.
            inner = ratio - abs(ratio - Fraction(above, below)) / 2**20
            assert overtakes(rates, (above + 1, below), inner) > alpha / 2 - 1e-12


@pytest.mark.parametrize(
    ("scales", "R", "alpha"),
    [((0.4, 0.4), 9, 0.05), ((0.3, 1), 8, 0.3), ((2, 0.5), 8, 0.8)],
)
@pytest.mark.parametrize("lowest", [(-3, 0), (2, 3)])
def test_coverage_of_ratios_over_all_tapes(
    scales: Any, R: int, alpha: float, lowest: tuple[int, int]
) -> None:
    first, second = (
        from_scale(scale, (lower, lower + R)) for scale, lower in zip(scales, lowest, strict=True)
    )
    rows = [sampled_distribution(scale, R) for scale in scales]
    lower, upper = ratio_confidence_interval(
        first,
        np.arange(R + 1)[:, None] + lowest[0],
        np.arange(R + 1) + lowest[1],
        alpha,
        denominator_mechanism=second,
    )
    assert lower.shape == upper.shape == (R + 1, R + 1)
    total = rows[0].total * rows[1].total
    narrow = 0
    for a, b in itertools.product(beyond(R), repeat=2):
        above, below = a + lowest[0], b + lowest[1]
        if below < 1 or (above < 0 <= lowest[0]):
            continue
        ratio, near = Fraction(above, below), [min(max(x, 0), R) for x in (a, b)]
        missed = sum(
            rows[0].masses[near[0]][i] * rows[1].masses[near[1]][j]
            for i, j in np.ndindex(R + 1, R + 1)
            if not lower[i, j] <= ratio <= upper[i, j]
        )
        assert Fraction(missed, total) <= stated(alpha)
        narrow += missed > 0
    assert narrow


def test_ratios_at_bounds_and_near_zero() -> None:
    first, second = GeometricMechanism(1, bounds=(0, 100)), GeometricMechanism(1, bounds=(0, 50))
    inf = math.inf

    def interval(a: int, b: int) -> Any:
        return ratio_confidence_interval(first, a, b, 0.05, denominator_mechanism=second)

    lower, upper = interval(50, 40)
    assert 1 < lower < 1.25 < upper < 1.5
    assert interval(50, 2) == (0, inf)
    assert interval(50, 0) == (0, inf)
    assert interval(100, 40)[1] == inf
    assert 2 < interval(100, 40)[0] < 2.5
    assert interval(0, 40)[0] == 0
    assert interval(0, 40)[1] < 0.2
    assert interval(10, 50)[0] == 0
    assert 0.2 < interval(10, 50)[1] < 0.4
    assert ratio_confidence_interval(FREE, 50, 2, 0.05) == (-inf, inf)
    assert ratio_confidence_interval(FREE, -50, 100, 0.05)[1] < 0
    # Without noise: the ratio itself, to the next float.
    exact = from_scale(0)
    for a, b in ((1, 3), (-7, 2), (0, 5), (2**62, 1)):
        lower, upper = ratio_confidence_interval(exact, a, b, 0.05)
        assert Fraction(lower) <= Fraction(a, b) <= Fraction(upper)
        assert upper - lower <= 1e-15 * abs(a / b) + 1e-29


def test_ratios_of_arrays() -> None:
    lower, upper = ratio_confidence_interval(FREE, [[10], [20]], [100, 200, 300], 0.05)
    assert lower.shape == upper.shape == (2, 3)
    assert lower.dtype == upper.dtype == np.float64
    for i, j in np.ndindex(2, 3):
        one = ratio_confidence_interval(FREE, [10, 20][i], np.int64([100, 200, 300][j]), 0.05)
        assert (lower[i, j], upper[i, j]) == one
        assert [type(end) for end in one] == [float, float]
    assert ratio_confidence_interval(FREE, [], [], 0.05)[0].shape == (0,)
    wide = GeometricMechanism(Fraction(1, 2**55))
    assert ratio_confidence_interval(wide, 2**62, 2**62, 0.05)[0] > 0.8
    large = ratio_confidence_interval(FREE, 2**62, 2**62, 0.05)
    assert 1 - 1e-15 < large[0] <= 1 <= large[1] < 1 + 1e-15


# Relative accuracy


@pytest.mark.parametrize("ratio", [0.1, 0.3, Fraction(3, 10), 1, 2.5, 1e-6])
def test_relative_accuracy(ratio: Any) -> None:
    for epsilon, alpha in itertools.product((0.1, 0.5, Fraction(1, 3), 3), (0.9, 0.05, 1e-9)):
        count = relative_accuracy(epsilon, alpha, ratio=ratio)
        assert type(count) is int
        with mpmath.workdps(50):

            def holds(x: int, epsilon: Any = epsilon, alpha: Any = alpha) -> bool:
                return 2 * tail(epsilon, math.floor(stated(ratio) * x) + 1) <= alpha

            assert holds(count)
            assert count == 0 or not holds(count - 1)
        assert relative_accuracy(GeometricMechanism(epsilon), alpha, ratio=ratio) == count
    assert relative_accuracy(0.5, 0.05, ratio=0.1) == 60
    assert relative_accuracy(GeometricMechanism(0.5, bounds=(0, 4)), 0.05, ratio=0.1) == 40


# Invalid parameters


def test_invalid_parameters_raise() -> None:
    bounded = GeometricMechanism(1, bounds=(0, 9))
    with pytest.raises(ValueError, match=r"^bounds = \(0, 9\) are not accepted: .*without bounds$"):
        sum_accuracy(bounded, 3, 0.05)
    for call in (
        lambda alpha: sum_accuracy(FREE, 10, alpha),
        lambda alpha: sum_confidence_interval(FREE, [1, 2], alpha),
        lambda alpha: ratio_confidence_interval(FREE, 1, 2, alpha),
    ):
        with pytest.raises(ValueError, match=r"^alpha = 1e-17 .* the error of the sampled distr"):
            call(1e-17)
        with pytest.raises(ValueError, match=r"^alpha = 0"):
            call(0)
    for n, error in ((-1, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=r"^n = "):
            sum_accuracy(FREE, n, 0.05)  # type: ignore[arg-type]
    for weights, kind in (([1.0, 2], TypeError), ([1], ValueError), ([[1, 2]], ValueError)):
        with pytest.raises(kind, match=r"^weights "):
            sum_confidence_interval(FREE, [1, 2], 0.05, weights=weights)
    for released in (10, [5, -1]):
        with pytest.raises(ValueError, match=r"^released counts outside the bounds \(0, 9\)"):
            sum_confidence_interval(bounded, released, 0.05)
        with pytest.raises(ValueError, match=r"^released counts outside the bounds \(0, 9\)"):
            ratio_confidence_interval(FREE, 5, released, 0.05, denominator_mechanism=bounded)
    with pytest.raises(ValueError, match="broadcast"):
        ratio_confidence_interval(FREE, [1, 2], [1, 2, 3], 0.05)
    for ratio, error in ((0, ValueError), (-1, ValueError), (b"1", TypeError)):
        with pytest.raises(error, match=r"^ratio (=|has type) "):
            relative_accuracy(0.5, 0.05, ratio=ratio)  # type: ignore[arg-type]
    for epsilon, error in ((0, ValueError), (None, TypeError)):
        with pytest.raises(error, match=r"^epsilon = "):
            relative_accuracy(epsilon, 0.05, ratio=0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^scale = about 2\*\*100 is too large"):
        sum_accuracy(from_scale(2.0**100), 3, 0.05)
