"""The SmartNoise calls, against the distributions and formulas of its notes."""

import inspect
import math
import re
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from geomdp.compat.smartnoise import (
    accuracy_to_privacy_usage,
    privacy_usage_to_accuracy,
    simple_geometric_mechanism,
)
from statistics_ import Z_LIMIT, censored_pmf, rejects
from strategies import positive_numbers

#: The notes allow any level; tests/accuracy/test_alpha.py has the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*probability of a miss")

DRAWS = 200_000
NOT_NUMBERS: list[Any] = [b"1", None, True, np.True_, 1j, [1], np.longdouble(1)]
NOT_FINITE_OR_NEGATIVE: list[Any] = [math.nan, math.inf, -math.inf, -1, -5e-324, Fraction(-1, 3)]


# The mechanism


def test_setting_of_the_notes() -> None:
    outputs = simple_geometric_mechanism(np.full(DRAWS, 20), 0.1, 1, 0, 30)
    mass = censored_pmf(20, 10, 0, 30)
    assert not rejects(np.bincount(outputs, minlength=31), mass * DRAWS)
    # The notes read 0.075 and 0.25 off their figure.
    assert mass[0] == pytest.approx(0.0710, abs=1e-4)
    assert mass[0] == pytest.approx(0.075, abs=0.005)
    assert mass[0] + mass[-1] == pytest.approx(0.25, abs=0.02)
    for share, p in [
        (np.mean(outputs == 0), mass[0]),
        (np.mean((outputs == 0) | (outputs == 30)), mass[0] + mass[-1]),
    ]:
        # A binomial share is approximately normal.
        assert abs(share - p) <= Z_LIMIT * math.sqrt(p * (1 - p) / DRAWS)


def test_argument_order() -> None:
    parameters = inspect.signature(simple_geometric_mechanism).parameters
    names = "value epsilon sensitivity min max enforce_constant_time"
    assert " ".join(parameters) == names
    assert parameters["enforce_constant_time"].default is True
    # Any other order raises or gives another distribution.
    outputs = simple_geometric_mechanism(np.full(1000, 5), 50.0, 1, 2, 30, False)
    assert (outputs == 5).all()


def named(name: str, value: Any) -> str:
    # Messages do not show containers.
    hidden = isinstance(value, bytes | list | np.ndarray)
    return rf"{name} (has|of) type \w+" if hidden else re.escape(f"{name} = {value!r}")


@pytest.mark.parametrize("flag", [2, -1, None, "True", 1.0, [True], np.array(True)], ids=repr)
def test_invalid_flag_raises(flag: Any) -> None:
    wanted = named("enforce_constant_time", flag) + " is not accepted: give a bool, 0 or 1"
    with pytest.raises(TypeError, match=wanted):
        simple_geometric_mechanism(5, 1.0, 1, 0, 30, flag)


@pytest.mark.parametrize("flag", [False, True, 0, 1, np.False_, np.True_, np.uint8(1)], ids=repr)
def test_flag_spellings(flag: Any) -> None:
    assert simple_geometric_mechanism(5, 1.0, 0, 0, 30, flag) == 5


# Accuracy

HUGE = 10**1000
levels = st.one_of(
    st.floats(1e-12, 1, exclude_max=True),
    st.floats(5e-324, 1, exclude_max=True),
    st.integers(1, 2**60).map(lambda n: 1 - n * 2.0**-60).filter(lambda level: 0 < level < 1),
    st.integers(2, 2**100).map(lambda n: Fraction(1, n)),
)
slight = st.integers(-3, 3)


def log_of_inverse(level: Any) -> mpf:
    exact = Fraction(level)
    return mpmath.log(mpf(exact.denominator) / exact.numerator)


def digits(*numbers: Any) -> int:
    """Return a precision that separates products and quotients of these from integers."""
    exact = [Fraction(number) for number in numbers]
    return 80 + sum(len(str(x.numerator)) + len(str(x.denominator)) for x in exact if x)


def laplace_accuracy(epsilon: Any, alpha: Any, sensitivity: Any) -> mpf:
    scale = Fraction(sensitivity) / Fraction(epsilon)
    return log_of_inverse(alpha) * scale.numerator / scale.denominator


def check_accuracy(epsilon: Any, alpha: Any, sensitivity: Any) -> None:
    with mpmath.workdps(digits(epsilon, alpha, sensitivity)):
        accuracy = privacy_usage_to_accuracy(epsilon, alpha, sensitivity)
        assert type(accuracy) is int
        assert accuracy == int(mpmath.ceil(laplace_accuracy(epsilon, alpha, sensitivity)))


@settings(deadline=None)
@given(positive_numbers, levels, positive_numbers)
@example(1.0, 0.05, 1)
@example(5e-324, 5e-324, 1.7976931348623157e308)
@example(1.7976931348623157e308, 1 - 2.0**-53, 5e-324)
@example(1, 1 - 2.0**-53, 1)
@example(Fraction(1, 10**400), Fraction(1, 10**400), 1)
@example(1, 1 - Fraction(1, HUGE), 1)
@example(Fraction(1, HUGE), 1 - Fraction(1, HUGE), 1)
def test_accuracy_is_formula_rounded_up(epsilon: Any, alpha: Any, sensitivity: Any) -> None:
    check_accuracy(epsilon, alpha, sensitivity)


@settings(deadline=None)
@given(levels, st.integers(1, 2**60), st.sampled_from([1, 3, 0.1]), slight)
@example(0.05, 1, 1, 0)
@example(0.5, 1, 1, 0)
@example(0.5, 1, 1, -1)
@example(0.5, 3, 1, 1)
def test_accuracy_near_integers(alpha: Any, whole: int, sensitivity: Any, steps: int) -> None:
    with mpmath.workdps(digits(alpha, whole)):
        epsilon = float(log_of_inverse(alpha) * mpf(sensitivity) / whole)
    for _ in range(abs(steps)):
        epsilon = math.nextafter(epsilon, math.copysign(math.inf, steps))
    check_accuracy(epsilon, alpha, sensitivity)


def test_accuracy_table() -> None:
    assert privacy_usage_to_accuracy(1.0, 0.05) == 3
    assert privacy_usage_to_accuracy(0.1, 0.05, 2) == 60
    assert privacy_usage_to_accuracy(1, 0.5, 0) == accuracy_to_privacy_usage(3, 0.05, 0) == 0


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), np.float32(1)], ids=repr)
def test_accuracy_at_alpha_one(one: Any) -> None:
    for epsilon, sensitivity in ((1, 1), (5e-324, 1), (1e-300, 10**300), (1e300, 0.1)):
        assert privacy_usage_to_accuracy(epsilon, one, sensitivity) == 0
        assert accuracy_to_privacy_usage(epsilon, one, sensitivity) == 0


@pytest.mark.parametrize("whole", [1, 7, 10**30])
@pytest.mark.parametrize("direction", [-1, 1])
def test_accuracy_within_1e_50_of_integer(whole: int, direction: int) -> None:
    with mpmath.workdps(200):
        near = mpmath.log(2) / whole * (1 + direction * mpf(10) ** -50)
        epsilon = Fraction(int(near * 10**150), 10**150)
    check_accuracy(epsilon, 0.5, 1)


# The privacy usage


def check_privacy_usage(accuracy: Any, alpha: Any, sensitivity: Any) -> None:
    epsilon = accuracy_to_privacy_usage(accuracy, alpha, sensitivity)
    assert type(epsilon) is float
    with mpmath.workdps(digits(accuracy, alpha, sensitivity)):
        ratio = Fraction(sensitivity) / Fraction(accuracy)
        exact = log_of_inverse(alpha) * ratio.numerator / ratio.denominator
        assert mpf(epsilon) >= exact
        if epsilon:
            assert mpf(math.nextafter(epsilon, -math.inf)) < exact


@settings(deadline=None)
@given(positive_numbers, levels, positive_numbers)
@example(3, 0.05, 1)
@example(1.7976931348623157e308, 0.5, 5e-324)
@example(5e-324, 0.5, 1.7976931348623157e308)
@example(Fraction(1, 10**400), 0.05, 1)
@example(10**400, 0.05, 1)
@example(1, 1 - Fraction(1, HUGE), 1)
def test_privacy_usage_is_formula_rounded_up(accuracy: Any, alpha: Any, sensitivity: Any) -> None:
    check_privacy_usage(accuracy, alpha, sensitivity)


@pytest.mark.parametrize("call", [privacy_usage_to_accuracy, accuracy_to_privacy_usage])
def test_invalid_accuracy_argument_raises(call: Any) -> None:
    first = next(iter(inspect.signature(call).parameters))
    assert list(inspect.signature(call).parameters) == [first, "alpha", "sensitivity"]
    right: dict[str, Any] = {first: 1.0, "alpha": 0.05, "sensitivity": 1}
    for name in right:
        for value in (value for value in NOT_NUMBERS if value != [1]):
            with pytest.raises(TypeError, match=named(name, value)):
                call(**right | {name: value})
        assert call(**right | {name: [1]}) == [call(**right | {name: 1})]
        zeros = [] if name == "sensitivity" else [0, 0.0, -0.0, Fraction(0)]
        above = [1 + 2.0**-52, 2, Fraction(101, 100), 10**400] if name == "alpha" else []
        for value in [*NOT_FINITE_OR_NEGATIVE, *zeros, *above]:
            with pytest.raises(ValueError, match=named(name, value)):
                call(**right | {name: value})
