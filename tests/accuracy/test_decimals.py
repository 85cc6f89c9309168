"""Decimals of sufficient precision, against fractions and hundreds of digits."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import (
    ROUND_UP,
    Context,
    Decimal,
    FloatOperation,
    Inexact,
    InvalidOperation,
    Overflow,
    Rounded,
    getcontext,
    localcontext,
)
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from exact import power, real
from geomdp._ground import decimals

ratios = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False),
    st.builds(Fraction, st.integers(1, 2**200), st.integers(1, 2**200)),
    st.integers(1, 2000).map(lambda n: Fraction(2**n - 1, 2**n)),
    st.integers(1, 2000).map(lambda n: Fraction(10**n + 1, 10**n)),
    st.integers(-2000, 2000).map(lambda n: Fraction(10) ** n),
).map(Fraction)
offsets = st.builds(
    lambda sign, exponent: sign * Decimal(10) ** exponent,
    st.sampled_from((-1, 0, 1)),
    st.integers(-400, 300),
)


def close_to_floats(value: float, offset: Decimal) -> Decimal:
    with localcontext(decimals.context(2000)):
        return Decimal(value) + offset


values = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False),
    st.builds(close_to_floats, st.floats(allow_nan=False, allow_infinity=False), offsets),
)


@contextmanager
def hostile_context() -> Iterator[None]:
    """Enter a context with one digit and almost all traps."""
    traps = [FloatOperation, Inexact, InvalidOperation, Overflow, Rounded]
    with localcontext(Context(prec=1, rounding=ROUND_UP, Emin=-1, Emax=1, traps=traps)):
        yield


def has_error(value: Decimal, exact: mpf, error: mpf) -> bool:
    """Return whether a value has at most this relative error."""
    numerator, denominator = value.as_integer_ratio()
    return abs(mpf(numerator) / denominator - exact) <= abs(exact) * error


# Powers and logarithms


@given(ratios)
@example(Fraction(1))
@example(Fraction(2**64 - 1, 2**64))
@example(Fraction(2**64, 2**64 - 1))
def test_bits_enclose_the_ratio(ratio: Fraction) -> None:
    n = decimals.bits(ratio)
    assert Fraction(2) ** (n - 1) < ratio < Fraction(2) ** (n + 1)


@pytest.mark.parametrize("digits", [5, 40, 300])
@pytest.mark.parametrize("rate", [0.1, 1e-15, 5e-324, Fraction(1, 3), 7], ids=str)
def test_error_of_powers(rate: float | Fraction, digits: int) -> None:
    exact = Fraction(rate)
    for exponent in (1, 2, 3, 1000, 2**20, 2**64):
        if exact * exponent > 10**6 or exponent > 10 ** (digits - 1):
            # Too small for the reference, or no digit would be right.
            continue
        with mpmath.workdps(2 * digits + 400), localcontext(decimals.context(digits)):
            value = decimals.power(exact, exponent)
            # A unit in the last place is up to 10**(1 - digits) of the value.
            error = (exponent + 1) * mpf(10) ** (1 - digits)
            assert has_error(value, power(exact, exponent), error)


@settings(deadline=None)
@given(ratios, st.sampled_from((3, 40, 200)))
@example(Fraction(2**4000 + 1, 2**4000), 40)
@example(Fraction(2**4000 - 1, 2**4000), 40)
@example(Fraction(10**1000, 1), 3)
@example(Fraction(1), 40)
def test_logarithms_have_all_digits(ratio: Fraction, digits: int) -> None:
    with mpmath.workdps(4000), localcontext(decimals.context(digits)):
        value = decimals.log(ratio)
        assert has_error(value, mpmath.log(real(ratio)), mpf(10) ** (1 - digits))
        assert getcontext().prec == digits


# Rounding to floats


@settings(deadline=None)
@given(values)
@example(Decimal(0))
@example(Decimal("1e-400"))
@example(Decimal("-1e-400"))
@example(Decimal("1e400"))
@example(Decimal("-1e400"))
@example(Decimal("1e-9999"))
@example(Decimal(2**1024 - 2**970))
@example(Decimal(2**1024 - 2**971))
@example(Decimal(2**1024 - 2**971 + 1))
@example(Decimal(2**53 + 1))
@example(Decimal(-(2**53) - 1))
@example(Decimal(2) ** -1074)
@example(Decimal("0.1"))
def test_up_and_down_enclose_the_value(value: Decimal) -> None:
    with hostile_context():
        above, below = decimals.up(value), decimals.down(value)
    assert type(above) is type(below) is float
    for found, away in ((above, -math.inf), (below, math.inf)):
        # No float on this side of the value is nearer.
        sign = 1 if away < 0 else -1
        assert is_at_most(value, found, sign)
        assert not is_at_most(value, math.nextafter(found, away), sign)
    # Floats stay as they are.
    assert (above == below) == (math.isfinite(above) and Decimal(above).compare(value) == 0)


def is_at_most(value: Decimal, found: float, sign: int) -> bool:
    if math.isinf(found):
        return found * sign > 0
    return sign * Fraction(value) <= sign * Fraction(found)


# Ceilings


class Terms:
    """A function that returns these ratios as decimals, and records the digits asked for."""

    def __init__(self, *ratios: Fraction, error: int = 0) -> None:
        self.ratios = ratios
        self.error = error
        self.digits: list[int] = []

    def __call__(self) -> list[Decimal]:
        """Return the ratios with the largest error allowed."""
        digits = getcontext().prec
        self.digits.append(digits)
        wrong = 1 + self.error * Decimal(9).scaleb(decimals.SPARE - digits - 1)
        return [decimals.of(ratio) * wrong for ratio in self.ratios]


def ceiling(*ratios: Fraction, error: int = 0) -> int:
    return decimals.ceiling(Terms(*ratios, error=error))


each_error = pytest.mark.parametrize("error", [-1, 0, 1])


@each_error
@pytest.mark.parametrize("whole", [0, 1, -1, 7, -(2**64), 10**39, 10**40, 10**41, -(10**100)])
@pytest.mark.parametrize("places", [1, 20, 29, 30, 31, 39, 40, 41, 500])
def test_ceilings_close_to_an_integer(whole: int, places: int, error: int) -> None:
    tiny = Fraction(1, 10**places)
    assert ceiling(whole + tiny, error=error) == whole + 1
    assert ceiling(whole - tiny, error=error) == whole
    assert ceiling(Fraction(whole), tiny, error=error) == whole + 1
    assert ceiling(Fraction(whole), -tiny, error=error) == whole


def test_ceilings_use_no_more_digits_than_needed() -> None:
    for places, most in [(1, 40), (20, 40), (40, 80), (1000, 1280)]:
        terms = Terms(5 - Fraction(1, 10**places))
        assert decimals.ceiling(terms) == 5
        assert max(terms.digits) == most
        assert terms.digits == sorted(set(terms.digits))


@given(st.lists(st.fractions(max_denominator=10**60), min_size=1, max_size=5))
@example([Fraction(10**300), Fraction(1, 3), -Fraction(10**300)])
@example([Fraction(10**300), -Fraction(1, 3), -Fraction(10**300)])
def test_ceilings_of_sums(ratios: list[Fraction]) -> None:
    total = sum(ratios)
    assume(total.denominator > 1)
    with hostile_context():
        assert ceiling(*ratios) == math.ceil(total)


def test_ceiling_of_zeros_is_zero() -> None:
    # For other sums that are integers no number of digits is enough.
    assert decimals.ceiling(lambda: [Decimal(0), -Decimal(0)]) == 0
    assert decimals.ceiling(list) == 0
