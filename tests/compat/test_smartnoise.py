"""The SmartNoise calls, against the distributions and formulas of its notes."""

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exact import stated
from geomdp.accuracy import scale_to_accuracy
from geomdp.compat.smartnoise import (
    accuracy_to_privacy_usage,
    privacy_usage_to_accuracy,
    simple_geometric_mechanism,
)
from strategies import positive_numbers

#: The notes allow any level; tests/accuracy/test_alpha.py has the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*probability of a miss")

levels = st.floats(5e-324, 1) | st.integers(2, 2**100).map(lambda n: Fraction(1, n))


# The mechanism


def test_argument_order() -> None:
    parameters = inspect.signature(simple_geometric_mechanism).parameters
    names = "value epsilon sensitivity min max enforce_constant_time"
    assert " ".join(parameters) == names
    assert parameters["enforce_constant_time"].default is True
    # Any other order raises or gives another distribution.
    outputs = simple_geometric_mechanism(np.full(1000, 5), 50.0, 1, 2, 30, False)
    assert (outputs == 5).all()


@pytest.mark.parametrize("flag", [2, -1, None, "True", 1.0, [True], np.array(True)], ids=repr)
def test_invalid_flag_raises(flag: Any) -> None:
    wanted = r"^enforce_constant_time (= .*|of type \w+) is not accepted: give a bool, 0 or 1"
    with pytest.raises(TypeError, match=wanted):
        simple_geometric_mechanism(5, 1.0, 1, 0, 30, flag)


@pytest.mark.parametrize("flag", [False, True, 0, 1, np.False_, np.True_, np.uint8(1)], ids=repr)
def test_flag_spellings(flag: Any) -> None:
    assert simple_geometric_mechanism(5, 1.0, 0, 0, 30, flag) == 5


# Accuracy, and the privacy usage


@settings(deadline=None)
@given(positive_numbers, levels, positive_numbers)
@example(1.0, 0.05, 1)
@example(1, 1, 0.1)
@example(1, 1 - Fraction(1, 10**1000), 1)
@example(5e-324, 5e-324, 1.7976931348623157e308)
def test_accuracy_and_privacy_usage_are_those_of_the_note(
    number: Any, alpha: Any, sensitivity: Any
) -> None:
    """They pass to geomdp.accuracy, whose tests have the formulas and what is refused."""
    scale = stated(sensitivity) / stated(number)
    found = privacy_usage_to_accuracy(number, alpha, sensitivity)
    drawn = stated(sensitivity) / min(stated(number), Fraction(number))
    assert found == scale_to_accuracy(drawn, alpha, method="ceiling")
    # The note's formula is symmetric: epsilon times accuracy is sensitivity times ln(1 / alpha).
    usage = accuracy_to_privacy_usage(number, alpha, sensitivity)
    least = scale_to_accuracy(scale, alpha, method="continuous")
    # It may be the next float, whose text states no less.
    assert usage in (least, math.nextafter(least, math.inf))


def test_accuracy_table() -> None:
    assert privacy_usage_to_accuracy(1.0, 0.05) == 3
    assert privacy_usage_to_accuracy(0.1, 0.05, 2) == 60
    assert privacy_usage_to_accuracy(1, 0.5, 0) == accuracy_to_privacy_usage(3, 0.05, 0) == 0
    for call in (privacy_usage_to_accuracy, accuracy_to_privacy_usage):
        assert list(inspect.signature(call).parameters)[1:] == ["alpha", "sensitivity"]
        assert call([1], 0.05) == [call(1, 0.05)]
