"""Moments of a release, against sums over the distribution in hundreds of digits."""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from exact import censored, noise, power, rejected
from geomdp import GeometricMechanism
from geomdp._numerics import count_moments
from geomdp._numerics.count_moments import Moments
from geomdp.accuracy import bias, mean_absolute_error, variance

#: The error of a noisy count, and its probability.
Term = tuple[int, mpf]
Halves = tuple[bool, bool]


class Exact(NamedTuple):
    """Exact `Moments`."""

    bias: mpf
    variance: mpf
    absolute: mpf


#: The relative error of the nearest float, up to 1e-9 of its last place.
NEAREST = mpf(2) ** -53 * (1 + mpf(10) ** -9)
#: The relative error of the sum of such a float and an integer.
ACCURACY = mpf(2) ** -52
TINIEST = mpf(2) ** -1074
CLOSE = mpf(10) ** -60
#: About the last power of exp(-1) that Decimal can hold.
LAST_POWER = 2302585092994045682
HALVES: list[Halves] = list(itertools.product((False, True), repeat=2))

rooms = st.one_of(st.integers(0, 50), st.integers(0, 2**64), st.integers(0, 64).map(lambda n: 2**n))
rates = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False),
    st.floats(1e-20, 700),
    st.integers(1, 2**100).map(lambda n: Fraction(1, n)),
    st.builds(Fraction, st.integers(1, 2**200), st.integers(1, 2**260)),
    st.integers(LAST_POWER - 100, LAST_POWER + 100),
).map(Fraction)
int64s = st.one_of(st.integers(-30, 30), st.integers(-(2**63), 2**63 - 1))
counts = st.one_of(st.integers(-50, 50), st.integers(-(2**70), 2**70))


def digits(rate: Fraction, distance: int) -> int:
    """Return enough digits for 400 to remain after cancellation."""
    faint = max(0, math.log10(rate.denominator) - math.log10(rate.numerator))
    return 450 + 6 * math.ceil(faint + math.log10(distance + 1))


def gather(terms: Iterable[Term]) -> dict[int, mpf]:
    """Return a pmf; several terms may be at one place."""
    masses: Counter[int] = Counter()
    for place, mass in terms:
        masses[place] += mass
    total = sum(masses.values())
    assert abs(total - 1) < CLOSE
    return {place: mass / total for place, mass in masses.items()}


def moments_of(terms: Iterable[Term]) -> Exact:
    pmf = gather(terms).items()
    bias = sum(place * mass for place, mass in pmf)
    variance = sum((place - bias) ** 2 * mass for place, mass in pmf)
    return Exact(bias, variance, sum(abs(place) * mass for place, mass in pmf))


def check(computed: Moments, exact: Exact, accuracy: mpf = NEAREST) -> None:
    assert type(computed) is Moments
    assert computed._fields == exact._fields
    for moment, wanted in zip(computed, exact, strict=True):
        check_float(moment, wanted, accuracy)


def check_float(moment: float, wanted: mpf, accuracy: mpf = NEAREST) -> None:
    assert type(moment) is float
    if math.isinf(moment):
        assert abs(wanted) > mpf(2) ** 1024 * (1 - mpf(2) ** -54)
        assert moment * wanted > 0
    else:
        assert abs(mpf(moment) - wanted) <= max(abs(wanted), TINIEST * 2**52) * accuracy


def noise_terms(rate: Fraction, more: int = 0) -> Iterator[Term]:
    """Yield the pmf of the noise up to a tail of 1e-70, plus `more` values."""
    # In pairs, so that sums of symmetric terms are exactly 0.
    for z in range(math.ceil(170 / float(rate)) + more + 1):
        for signed in {z, -z}:
            yield signed, noise(rate, z)


def censored_terms(rate: Fraction, below: int, above: int) -> Iterator[Term]:
    return zip(itertools.count(-below), censored(rate, below + above, below), strict=False)


def truncated_terms(rate: Fraction, below: int, above: int) -> Iterator[Term]:
    return zip(itertools.count(-below), rejected(rate, below + above, below), strict=False)


def period(n: int, half_below: bool, half_above: bool) -> int:
    return 2 * n + half_below + half_above


def folded_terms(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> Iterator[Term]:
    """Yield the pmf of the noise modulo twice the width, folded."""
    n = below + above
    turn = period(n, half_below, half_above)
    if turn == 0:
        yield 0, mpf(1)
        return
    a = power(rate, 1)
    factor = (1 - a) / (1 + a) / (1 - power(rate, turn))
    for v in range(turn):
        place = (below + v) % turn
        place = place if place <= n else 2 * n + half_above - place
        yield place - below, factor * (power(rate, v) + power(rate, turn - v))


@functools.lru_cache(100_000)
def reflect(twice: int, lower: int, upper: int) -> int:
    """Reflect at the bounds step by step, as diffprivlib does."""
    while not lower <= twice <= upper:
        twice = 2 * (lower if twice < lower else upper) - twice
    return twice


# Any count, by sums over the noise

each_noise = pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1), Fraction(40)], ids=float)
BOUNDS = [(0, 0), (-3, -3), (0, 1), (-2, 5), (3, 7)]
TWICE = [(0, 0), (-6, -6), (0, 1), (-1, 0), (-1, 1), (0, 2), (-5, 10), (-4, 10), (5, 9), (6, 13)]
COUNTS = range(-16, 17)


@each_noise
def test_moments_of_any_count(rate: Fraction) -> None:
    with mpmath.workdps(1000):
        terms = list(noise_terms(rate, more=30))
        for (lower, upper), count in itertools.product(BOUNDS, COUNTS):
            place = median(lower, count, upper)
            clamped = moments_of((median(lower, place + z, upper) - count, m) for z, m in terms)
            check(count_moments.of_censored(rate, lower, upper, count), clamped, ACCURACY)
            # Clamping a count first makes no difference to truncation: the noise is memoryless.
            kept = [(z, mass) for z, mass in terms if lower <= count + z <= upper]
            total = sum(mass for _, mass in kept)
            exact = moments_of((z, mass / total) for z, mass in kept)
            check(count_moments.of_truncated(rate, lower, upper, count), exact, ACCURACY)


@each_noise
@pytest.mark.parametrize("twice", TWICE, ids=str)
def test_folded_moments_of_any_count(rate: Fraction, twice: tuple[int, int]) -> None:
    # Folding the count first makes no difference, as the noise is symmetric.
    lower, upper = twice
    with mpmath.workdps(200):
        terms = list(noise_terms(rate))
        for count in COUNTS:
            if lower == upper:
                exact = moments_of([(lower // 2 - count, mpf(1))])
            else:
                ends = ((reflect(2 * (count + z), lower, upper) // 2, mass) for z, mass in terms)
                exact = moments_of((end - count, mass) for end, mass in ends)
            check(count_moments.of_folded(rate, twice, count), exact, ACCURACY)


def test_error_without_noise() -> None:
    for count in COUNTS:
        for lower, upper in BOUNDS:
            away = median(lower, count, upper) - count
            error = Moments(away, 0, abs(away))
            assert count_moments.of_censored(None, lower, upper, count) == error
            assert count_moments.of_truncated(None, lower, upper, count) == error
        for lower, upper in TWICE:
            place = reflect(2 * count, lower, upper) // 2 if lower < upper else lower // 2
            away = place - count
            assert count_moments.of_folded(None, (lower, upper), count) == (away, 0, abs(away))


def median(*places: int) -> int:
    return sorted(places)[1]


# Any bounds, by closed forms


def power_sums(rate: Fraction, count: int) -> tuple[mpf, mpf, mpf]:
    """Return the sums of ``v**i * a**v`` over v from 0 to count - 1, for i from 0 to 2."""
    a = power(rate, 1)
    end, n, rest = power(rate, count), mpf(count), 1 - a
    return (
        (1 - end) / rest,
        (a - end * (n - (n - 1) * a)) / rest**2,
        (a + a**2 - end * (n**2 - (2 * n**2 - 2 * n - 1) * a + (n - 1) ** 2 * a**2)) / rest**3,
    )


def line_sums(rate: Fraction, first: int, last: int, start: int, step: int) -> tuple[mpf, mpf, mpf]:
    """Return the sums of ``(start + step * v)**i * a**v`` over v from first to last."""
    if last < first:
        return mpf(0), mpf(0), mpf(0)
    zero, one, two = (power(rate, first) * s for s in power_sums(rate, last - first + 1))
    c = mpf(start + step * first)
    return zero, c * zero + step * one, c**2 * zero + 2 * c * step * one + step**2 * two


def wide_unbounded(rate: Fraction) -> Exact:
    """Return the moments by the sums of ``k a**k`` and ``k**2 a**k`` over all k."""
    a = power(rate, 1)
    factor = 2 * (1 - a) / (1 + a)
    return Exact(mpf(0), factor * a * (1 + a) / (1 - a) ** 3, factor * a / (1 - a) ** 2)


def wide_censored(rate: Fraction, below: int, above: int) -> Exact:
    a = power(rate, 1)
    bias, square, absolute = mpf(0), mpf(0), mpf(0)
    for sign, room in ((-1, below), (1, above)):
        _, one, two = power_sums(rate, room + 1)
        beyond = power(rate, room + 1) / (1 - a)
        one, two = one + room * beyond, two + mpf(room) ** 2 * beyond
        bias += sign * one
        square += two
        absolute += one
    factor = (1 - a) / (1 + a)
    return Exact(factor * bias, factor * square - (factor * bias) ** 2, factor * absolute)


def wide_truncated(rate: Fraction, below: int, above: int) -> Exact:
    zero, one, two = power_sums(rate, above + 1)
    back = line_sums(rate, 1, below, 0, -1)
    mass = zero + back[0]
    bias, square = (one + back[1]) / mass, (two + back[2]) / mass
    return Exact(bias, square - bias**2, (one - back[1]) / mass)


def wide_folded(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> Exact:
    n = below + above
    turn = period(n, half_below, half_above)
    if turn == 0:
        return Exact(mpf(0), mpf(0), mpf(0))
    # The noise modulo twice the width goes up, down from the upper bound, and up again. On the way
    # down the error changes sign at zero.
    down, zero, end = above + 1, 2 * above + half_above, turn - 1 - below
    pieces = [
        (0, above, 0, 1),
        (down, min(zero, end), zero, -1),
        (max(down, zero + 1), end, zero, -1),
        (turn - below, turn - 1, -turn, 1),
    ]
    sums = [mpf(0)] * 4
    for (first, last, start, step), sign in zip(pieces, (1, 1, -1, -1), strict=True):
        forth = line_sums(rate, first, last, start, step)
        back = line_sums(rate, turn - last, turn - first, start + step * turn, -step)
        mass, one, two = (f + b for f, b in zip(forth, back, strict=True))
        sums = [s + t for s, t in zip(sums, (mass, one, two, sign * one), strict=True)]
    a = power(rate, 1)
    factor = (1 - a) / (1 + a) / (1 - power(rate, turn))
    assert abs(factor * sums[0] - 1) < CLOSE
    bias, square, absolute = (factor * s for s in sums[1:])
    return Exact(bias, square - bias**2, absolute)


@pytest.mark.parametrize("rate", [Fraction(3, 10), Fraction(1), Fraction(40)], ids=float)
def test_closed_forms_equal_sums(rate: Fraction) -> None:
    with mpmath.workdps(120):
        pairs = [(wide_unbounded(rate), moments_of(noise_terms(rate)))]
        for below, above in itertools.product(range(5), repeat=2):
            rooms = (rate, below, above)
            pairs.append((wide_censored(*rooms), moments_of(censored_terms(*rooms))))
            pairs.append((wide_truncated(*rooms), moments_of(truncated_terms(*rooms))))
            for halves in HALVES:
                folded = moments_of(folded_terms(*rooms, *halves))
                pairs.append((wide_folded(*rooms, *halves), folded))
        for wide, summed in pairs:
            for one, other in zip(wide, summed, strict=True):
                assert abs(one - other) < CLOSE


@settings(deadline=None, max_examples=150)
@given(rates, rooms, rooms, st.sampled_from(HALVES))
@example(Fraction(1, 1000), 2**20, 2**20 + 1, (False, True))
@example(Fraction(1, 2**18), 2**20, 3, (True, False))
@example(Fraction(1e-14), 2**63, 2**63 - 1, (False, False))
@example(Fraction(1, 2**56), 2**62, 2**62, (True, True))
@example(Fraction(5e-324), 2**63, 0, (False, True))
@example(Fraction(5e-324), 7, 2**20, (True, True))
@example(Fraction(1, 10**400), 2**63, 2**64, (True, False))
@example(Fraction(1, 10**400), 0, 1, (False, False))
# Far from the bounds the bias is faint: about 1e-20 or less.
@example(Fraction(1), 50, 101, (False, False))
@example(Fraction(1), 200, 300, (False, True))
@example(Fraction(1), 50, 10**6, (False, False))
@example(Fraction(1e300), 0, 2**63, (True, True))
@example(Fraction(1e300), 0, 0, (True, True))
@example(Fraction(10**400), 3, 0, (False, False))
@example(Fraction(LAST_POWER), 1, 0, (False, True))
@example(Fraction(744), 1, 1, (False, False))
@example(Fraction(745), 0, 2, (False, False))
@example(Fraction(751), 0, 1, (False, False))
@example(Fraction(801), 0, 1, (False, False))
def test_moments_of_any_room(rate: Fraction, below: int, above: int, halves: Halves) -> None:
    room = rate, below, above
    with mpmath.workdps(digits(rate, below + above)):
        check(count_moments.unbounded(rate), wide_unbounded(rate))
        check(count_moments.censored(*room), wide_censored(*room))
        check(count_moments.truncated(*room), wide_truncated(*room))
        check(count_moments.folded(*room, *halves), wide_folded(*room, *halves))


@settings(deadline=None, max_examples=100)
@given(rates, st.tuples(int64s, int64s).map(sorted), st.sampled_from(HALVES), counts)
@example(Fraction(1, 2**60), [-(2**63), 2**63 - 1], (False, False), 2**63 + 12345)
@example(Fraction(1, 10), [0, 2**62], (False, False), -(2**53) - 1)
# The bias and the distance to the bound have opposite signs.
@example(Fraction(5e-324), [0, 3113246305240764704], (False, False), -3094947995045997324)
@example(Fraction(5e-324), [-4, 9], (False, True), -17)
@example(Fraction(1, 10), [0, 10], (True, True), 2**70)
def test_moments_of_any_count_and_bounds(
    rate: Fraction, bounds: list[int], halves: Halves, count: int
) -> None:
    def expect(computed: Moments, exact: Exact, away: int) -> None:
        if away:
            exact = Exact(exact.bias + away, exact.variance, abs(exact.bias + away))
        check(computed, exact, ACCURACY)

    lower, upper = bounds
    twice = 2 * lower - halves[0], 2 * upper + halves[1]
    with mpmath.workdps(digits(rate, 2**71)):
        place = median(lower, count, upper)
        rooms = rate, place - lower, upper - place
        found = count_moments.of_censored(rate, lower, upper, count)
        expect(found, wide_censored(*rooms), place - count)
        found = count_moments.of_truncated(rate, lower, upper, count)
        expect(found, wide_truncated(*rooms), place - count)
        # A wave of triangles.
        width = twice[1] - twice[0]
        wave = abs((2 * count - twice[0]) % (2 * width) - width) if width else width
        place = (twice[1] - wave if width else twice[0]) // 2
        rooms = rate, place - lower, upper - place
        expect(
            count_moments.of_folded(rate, twice, count), wide_folded(*rooms, *halves), place - count
        )


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1), Fraction(7, 2), Fraction(900)])
@pytest.mark.parametrize("distribution", ["censored", "truncated", "folded"])
def test_counts_far_from_bounds_have_the_moments_of_each(rate: Fraction, distribution: Any) -> None:
    lower, upper = -7, 2 * count_moments.reach(rate) + 90
    mechanism = GeometricMechanism(rate, bounds=(lower, upper))
    ends = np.arange(lower - 3, lower + 40)
    far = count_moments.reach(rate) + np.arange(-40, 120)
    counts = np.concatenate([ends, far, upper + lower - ends])
    for moment in (bias, variance, mean_absolute_error):
        each = [moment(mechanism, int(count), distribution=distribution) for count in counts]
        assert np.array_equal(moment(mechanism, counts, distribution=distribution), each)
