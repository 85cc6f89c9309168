"""Bias and variance, against sums over the law in hundreds of digits."""

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from geomdp import _moments
from geomdp.compat.diffprivlib import Geometric, GeometricFolded, GeometricTruncated

#: One term of a law: where the noisy count is, relative to the count, and how likely.
Term = tuple[int, mpf]

ROOMS = range(13)
RATES = [1e-14, 1e-9, 2.0**-20, Fraction(1, 1000), 0.03, 0.1, 0.5, math.log(2), 1, 3.7, 40, 700]
ACCURACY = mpf(2) ** -52
TINIEST = mpf(2) ** -1074
CLOSE = mpf(10) ** -60

rooms = st.one_of(st.integers(0, 50), st.integers(0, 2**64), st.integers(0, 64).map(lambda n: 2**n))
rates = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False),
    st.floats(1e-20, 700),
    st.integers(1, 2**100).map(lambda n: Fraction(1, n)),
    st.builds(Fraction, st.integers(1, 2**200), st.integers(1, 2**260)),
).map(Fraction)
each_rate = pytest.mark.parametrize("rate", [Fraction(rate) for rate in RATES], ids=float)


def digits(rate: Fraction, distance: int) -> int:
    """Return enough to leave less than 1e-400 of what cancels."""
    faint = max(0, math.log10(rate.denominator) - math.log10(rate.numerator))
    return 450 + 6 * math.ceil(faint + math.log10(distance + 1))


def power(rate: Fraction, exponent: int) -> mpf:
    return _power(rate, exponent, mpmath.mp.prec)


@functools.lru_cache(10_000)
def _power(rate: Fraction, exponent: int, _prec: int) -> mpf:
    return mpmath.exp(-mpf(rate.numerator) * exponent / rate.denominator)


def moments(terms: Iterator[Term]) -> tuple[mpf, mpf]:
    """Return bias and variance of a law."""
    total, bias, square = mpf(0), mpf(0), mpf(0)
    for place, mass in terms:
        total += mass
        bias += place * mass
        square += place * place * mass
    assert abs(total - 1) < CLOSE
    return bias, square - bias**2


def check(computed: tuple[float, float], exact: tuple[mpf, mpf]) -> None:
    for moment, wanted in zip(computed, exact, strict=True):
        assert type(moment) is float
        if math.isinf(moment):
            assert abs(wanted) > mpf(2) ** 1024 * (1 - mpf(2) ** -54)
            assert moment * wanted > 0
        else:
            assert abs(mpf(moment) - wanted) <= max(abs(wanted) * ACCURACY, TINIEST)


def noise_masses(rate: Fraction, last: int) -> list[mpf]:
    """Return the probabilities of 0 to last, from equation 2.1."""
    a = power(rate, 1)
    return [(1 - a) / (1 + a) * power(rate, z) for z in range(last + 1)]


def censored_law(rate: Fraction, below: int, above: int) -> Iterator[Term]:
    mass = noise_masses(rate, max(below, above))
    a = power(rate, 1)
    if below:
        yield -below, power(rate, below) / (1 + a)
    for z in range(1 - below if below else 0, above):
        yield z, mass[abs(z)]
    if above:
        yield above, power(rate, above) / (1 + a)
    # What lies at a bound and beyond it is all at the bound.
    if not below and not above:
        yield 0, mpf(1)
    elif not below:
        yield 0, a / (1 + a)
    elif not above:
        yield 0, 1 / (1 + a)


def period(n: int, half_below: bool, half_above: bool) -> int:
    return 2 * n + half_below + half_above


def folded_law(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> Iterator[Term]:
    """Yield the masses of all noises that are equal modulo twice the width, for each of these."""
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


def reflect(twice: int, lower: int, upper: int) -> int:
    """Fold as diffprivlib does, step by step."""
    while not lower <= twice <= upper:
        twice = 2 * (lower if twice < lower else upper) - twice
    return twice


def truncated_folded_law(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> Iterator[Term]:
    """Yield the folded places of all noises up to where less than 1e-70 is beyond."""
    lower, upper = -2 * below - half_below, 2 * above + half_above
    last = math.ceil(170 / float(rate))
    for z, mass in enumerate(noise_masses(rate, last)):
        for signed in {z, -z}:
            yield reflect(2 * signed, lower, upper) // 2 if upper > lower else 0, mass


# Small rooms, by the law


@each_rate
def test_unbounded_moments(rate: Fraction) -> None:
    with mpmath.workdps(digits(rate, 1)):
        a = power(rate, 1)
        check(_moments.unbounded(rate), (mpf(0), 2 * a / (1 - a) ** 2))


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(700)], ids=float)
def test_unbounded_moments_are_those_of_the_law(rate: Fraction) -> None:
    with mpmath.workdps(80):
        mass = noise_masses(rate, math.ceil(170 / float(rate)))
        signed = ((sign * z, mass[z] / 2) for z in range(len(mass)) for sign in (-1, 1))
        doubled = ((z, m if z == 0 else 2 * m) for z, m in signed)
        check(_moments.unbounded(rate), moments(doubled))


@each_rate
def test_censored_moments(rate: Fraction) -> None:
    with mpmath.workdps(digits(rate, 12)):
        for below, above in itertools.product(ROOMS, ROOMS):
            exact = moments(censored_law(rate, below, above))
            check(_moments.censored(rate, below, above), exact)


@each_rate
def test_folded_moments(rate: Fraction) -> None:
    with mpmath.workdps(digits(rate, 12)):
        for below, above in itertools.product(ROOMS, ROOMS):
            for halves in itertools.product((False, True), repeat=2):
                exact = moments(folded_law(rate, below, above, *halves))
                check(_moments.folded(rate, below, above, *halves), exact)


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1), Fraction(700)], ids=float)
def test_the_folded_law_is_that_of_folded_noise(rate: Fraction) -> None:
    with mpmath.workdps(80):
        for below, above in itertools.product((0, 1, 2, 4), repeat=2):
            for halves in itertools.product((False, True), repeat=2):
                wrapped = moments(folded_law(rate, below, above, *halves))
                direct = moments(truncated_folded_law(rate, below, above, *halves))
                for one, other in zip(wrapped, direct, strict=True):
                    assert abs(one - other) < CLOSE


# Rooms of any size, by sums in closed form


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


def wide_censored(rate: Fraction, below: int | None, above: int | None) -> tuple[mpf, mpf]:
    a = power(rate, 1)
    bias, square = mpf(0), mpf(0)
    for sign, room in ((-1, below), (1, above)):
        if room is None:
            one, two = a / (1 - a) ** 2, a * (1 + a) / (1 - a) ** 3
        else:
            _, one, two = power_sums(rate, room + 1)
            beyond = power(rate, room + 1) / (1 - a)
            one, two = one + room * beyond, two + mpf(room) ** 2 * beyond
        bias += sign * one
        square += two
    factor = (1 - a) / (1 + a)
    return factor * bias, factor * square - (factor * bias) ** 2


def wide_folded(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> tuple[mpf, mpf]:
    n = below + above
    turn = period(n, half_below, half_above)
    if turn == 0:
        return mpf(0), mpf(0)
    # The noise modulo twice the width leads up, down from the upper bound, and up again.
    pieces = [
        (0, above, 0, 1),
        (above + 1, turn - 1 - below, 2 * above + half_above, -1),
        (turn - below, turn - 1, -turn, 1),
    ]
    sums = [mpf(0)] * 3
    for first, last, start, step in pieces:
        forth = line_sums(rate, first, last, start, step)
        back = line_sums(rate, turn - last, turn - first, start + step * turn, -step)
        sums = [s + f + b for s, f, b in zip(sums, forth, back, strict=True)]
    a = power(rate, 1)
    factor = (1 - a) / (1 + a) / (1 - power(rate, turn))
    assert abs(factor * sums[0] - 1) < CLOSE
    bias, square = factor * sums[1], factor * sums[2]
    return bias, square - bias**2


def test_sums_in_closed_form_are_those_of_the_law() -> None:
    rate = Fraction(3, 10)
    with mpmath.workdps(80):
        for below, above in itertools.product(range(5), repeat=2):
            laws = [(wide_censored(rate, below, above), censored_law(rate, below, above))]
            for halves in itertools.product((False, True), repeat=2):
                wide = wide_folded(rate, below, above, *halves)
                laws.append((wide, folded_law(rate, below, above, *halves)))
            for wide, law in laws:
                for one, other in zip(wide, moments(law), strict=True):
                    assert abs(one - other) < CLOSE


@settings(deadline=None, max_examples=150)
@given(rates, st.one_of(st.none(), rooms), st.one_of(st.none(), rooms))
@example(Fraction(1, 1000), 2**20, 2**20 + 1)
@example(Fraction(1, 2**18), 2**20, 3)
@example(Fraction(1e-14), 2**63, 2**63 - 1)
@example(Fraction(5e-324), 2**63, 0)
@example(Fraction(5e-324), None, None)
@example(Fraction(5e-324), 7, None)
@example(Fraction(1e300), 0, None)
@example(Fraction(1e300), 0, 2**63)
@example(Fraction(745), 0, 2)
def test_censored_moments_of_any_room(rate: Fraction, below: int | None, above: int | None) -> None:
    with mpmath.workdps(digits(rate, max(below or 0, above or 0))):
        check(_moments.censored(rate, below, above), wide_censored(rate, below, above))


@settings(deadline=None, max_examples=150)
@given(rates, rooms, rooms, st.booleans(), st.booleans())
@example(Fraction(1, 1000), 2**20, 2**20 + 1, False, True)
@example(Fraction(1, 2**18), 2**20, 3, True, False)
@example(Fraction(1e-14), 2**62, 2**62 - 1, False, False)
@example(Fraction(1, 2**56), 2**62, 2**62, True, True)
@example(Fraction(5e-324), 2**62, 0, False, True)
@example(Fraction(1e300), 0, 2**62, True, True)
@example(Fraction(1e300), 0, 0, True, True)
@example(Fraction(745), 1, 0, False, False)
def test_folded_moments_of_any_room(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> None:
    halves = half_below, half_above
    with mpmath.workdps(digits(rate, below + above)):
        check(
            _moments.folded(rate, below, above, *halves), wide_folded(rate, below, above, *halves)
        )


# Limits


@each_rate
def test_far_bounds_do_not_matter(rate: Fraction) -> None:
    if rate * 2**62 < 200:
        pytest.skip("not far")
    unbounded = _moments.unbounded(rate)
    for law in (
        _moments.censored(rate, 2**62, 2**62),
        _moments.censored(rate, None, None),
        _moments.folded(rate, 2**62, 2**62, False, True),
    ):
        assert abs(law[0]) < 1e-50
        assert law[1] == unbounded[1]


@pytest.mark.parametrize("n", [1, 2, 100, 2**20, 2**63 - 1])
def test_faint_rates_lead_to_the_uniform_law(n: int) -> None:
    rate = Fraction(5e-324)
    for below in (0, 1, n // 3, n):
        bias, variance = _moments.folded(rate, below, n - below, True, True)
        assert bias == float(Fraction(n, 2) - below)
        assert variance == float(Fraction((n + 1) ** 2 - 1, 12))
        # At an integer there is half of the mass of another place.
        bias, variance = _moments.folded(rate, below, n - below, False, False)
        assert bias == float(Fraction(n, 2) - below)
        assert variance == float(Fraction(n * n + 2, 12))
        # Half of the noise is beyond either bound.
        bias, variance = _moments.censored(rate, below, n - below)
        assert bias == float(Fraction(n, 2) - below)
        assert variance == float(Fraction(n * n, 4))


@pytest.mark.parametrize("rate", [Fraction(1e300), Fraction(10**400), Fraction(1e15)], ids=repr)
def test_steep_rates_add_no_noise(rate: Fraction) -> None:
    assert _moments.unbounded(rate) == (0, 0)
    for below, above in itertools.product((0, 1, 2**63), repeat=2):
        assert _moments.censored(rate, below, above) == (0, 0)
        for halves in itertools.product((False, True), repeat=2):
            assert _moments.folded(rate, below, above, *halves) == (0, 0)


def test_faint_rates_without_bounds_have_infinite_variance() -> None:
    for rate in (Fraction(5e-324), Fraction(1, 10**400)):
        assert _moments.unbounded(rate) == (0, math.inf)
        assert _moments.censored(rate, None, None) == (0, math.inf)
        assert _moments.censored(rate, 0, None) == (math.inf, math.inf)


@each_rate
def test_the_middle_has_no_bias(rate: Fraction) -> None:
    for room in (0, 1, 7, 2**20, 2**62):
        assert _moments.censored(rate, room, room)[0] == 0
        for half in (False, True):
            assert _moments.folded(rate, room, room, half, half)[0] == 0


@settings(deadline=None, max_examples=50)
@given(rates, rooms, rooms, st.booleans(), st.booleans())
def test_the_mirror_image_has_the_opposite_bias(
    rate: Fraction, below: int, above: int, half_below: bool, half_above: bool
) -> None:
    one = _moments.censored(rate, below, above)
    other = _moments.censored(rate, above, below)
    assert one == (-other[0], other[1])
    one = _moments.folded(rate, below, above, half_below, half_above)
    other = _moments.folded(rate, above, below, half_above, half_below)
    assert one == (-other[0], other[1])


# As they are asked for


def test_the_mechanisms_have_these_moments() -> None:
    rate = Fraction(0.3) / 2
    x, lower, upper = 4, -3, 9
    assert Geometric(epsilon=0.3, sensitivity=2).variance(x) == _moments.unbounded(rate)[1]
    truncated = GeometricTruncated(epsilon=0.3, sensitivity=2, lower=lower, upper=upper)
    assert (truncated.bias(x), truncated.variance(x)) == _moments.censored(rate, 7, 5)
    for low, high in itertools.product((False, True), repeat=2):
        folded = GeometricFolded(
            epsilon=0.3, sensitivity=2, lower=lower - low / 2, upper=upper + high / 2
        )
        assert (folded.bias(x), folded.variance(x)) == _moments.folded(rate, 7, 5, low, high)


def test_a_fraction_is_taken_exactly() -> None:
    third = Fraction(1, 3)
    assert Geometric(epsilon=third).variance(0) == _moments.unbounded(third)[1]
    assert Geometric(epsilon=1, sensitivity=3).variance(0) == _moments.unbounded(third)[1]
    # As a float it is 0.
    tiny = Fraction(1, 10**400)
    assert Geometric(epsilon=tiny, sensitivity=0).variance(0) == 0
    assert _moments.unbounded(tiny)[1] == math.inf
    # Where there is no bound, int64 is one, and all the mass is on its limits.
    assert Geometric(epsilon=tiny).variance(0) == 2.0**126
