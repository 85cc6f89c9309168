"""The privacy map, in exact rational numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exact import stated
from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from strategies import MAX, check_rounded_up, positive_numbers

counting = st.one_of(
    st.integers(1, MAX),
    st.integers(1, 2**1100),
    st.integers(0, 80).map(lambda n: 2**n),
)


@settings(deadline=None)
@given(positive_numbers, counting, counting)
@example(0.1, 3, 2**53 + 1)
@example(0.1, 7, 7)
@example(2**1024 + 1, 2**1000, 3)
@example(Fraction(3 * 2**1030 + 1, 3), 2**1000, 1)
@example(5e-324, 1, 1)
@example(5e-324, MAX, 1)
@example(1.7976931348623157e308, 1, 1)
@example(1.7976931348623157e308, 1, 2)
@example(2**1024 - 2**970 - 1, 1, 1)
@example(2**1024 - 2**971 + 1, 1, 1)
@example(Fraction(1, 2**1074), 1, 1)
@example(Fraction(1, 2**1075), 1, 1)
@example(Fraction(2**53 + 1), 1, 1)
@example(Fraction(2**54 + 1, 2**1075), 1, 1)
def test_privacy_loss_is_rounded_up(epsilon: float | Fraction, sensitivity: int, d_in: int) -> None:
    mechanism = GeometricMechanism(epsilon, sensitivity)
    check_rounded_up(mechanism.privacy_loss(d_in), stated(epsilon) * d_in / sensitivity)


@settings(deadline=None)
@given(positive_numbers, counting)
@example(3.0, 1)
@example(3.0, 3)
@example(2**1024 + 1, 1)
@example(Fraction(3 * 2**1030 + 1, 3), 2**1000)
@example(5e-324, 1)
@example(1.7976931348623157e308, 1)
def test_privacy_loss_of_a_scale_is_rounded_up(scale: float | Fraction, d_in: int) -> None:
    check_rounded_up(GeometricMechanism.from_scale(scale).privacy_loss(d_in), d_in / stated(scale))


@settings(deadline=None)
@given(st.one_of(st.just(0), positive_numbers))
def test_distance_zero_has_no_privacy_loss(scale: float | Fraction) -> None:
    loss = GeometricMechanism.from_scale(scale).privacy_loss(0)
    assert loss == 0
    assert math.copysign(1, loss) == 1


def test_bounds_do_not_matter() -> None:
    assert GeometricMechanism(0.3, 2, (0, 5)).privacy_loss(7) == GeometricMechanism(
        0.3, 2
    ).privacy_loss(7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_distances(dtype: str) -> None:
    mechanism = GeometricMechanism(0.3)
    for d_in in (0, 1, 3, int(np.iinfo(dtype).max)):
        assert mechanism.privacy_loss(np.dtype(dtype).type(d_in)) == mechanism.privacy_loss(d_in)
