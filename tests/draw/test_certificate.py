"""Certificates of the library, checked by the stand-alone verifier, without shared code."""

import dataclasses
import math
import pickle
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geomdp import Certificate, GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from unsigned import limits
from verifier.verify import VerificationError, verify

RATES = [
    Fraction(1, 2**64),
    Fraction(1, 2**40) + Fraction(1, 2**90),
    Fraction(1, 10**9),
    *(Fraction(x) for x in (1e-6, 1e-4, 0.001, 0.01, 0.05, 0.1, 1 / 3, 0.5, math.log(2))),
    *(Fraction(x) for x in (1, 1.5, 2, math.pi, 5, 10, 20, 50, 100, 300, 700)),
]
RANGES = [
    *(1, 2, 3, 4, 5, 7, 8, 10, 16, 50, 100, 255, 1000, 4526, 2**16 - 1, 10**6),
    *(2**31, 2**32 - 1, 2**40 + 1, 2**53, 10**18, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1),
]


def certificate(rate: Fraction, top: int, **options: Any) -> Certificate:
    return GeometricMechanism(rate, bounds=(0, top)).certificate(**options)


def test_grid_of_rates_and_ranges() -> None:
    # The verifier derives thresholds, errors, floor and inequalities with Arb.
    shapes = set()
    for rate in RATES:
        for top in RANGES:
            found = certificate(rate, top)
            report = verify(found.to_json())
            assert found.holds
            assert report.worst_threshold_error <= 0.51
            assert report.total_variation <= found.total_variation <= 2**-50
            shapes.add(tuple(sorted({digit.limbs for digit in found.digits})))
    assert len(RATES) * len(RANGES) >= 500
    # One, two and three words for a digit, and low digits below high ones.
    assert {(1,), (2,), (1, 2), (1, 3)} <= shapes


def test_random_rates_and_ranges() -> None:
    rng = random.Random(1)
    for _ in range(300):
        rate = Fraction(math.exp(rng.uniform(math.log(2**-64), math.log(700))))
        verify(certificate(rate, rng.randrange(1, 2 ** rng.randrange(1, 65))).to_json())


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("top", [1, 2, 3, 5, 30, 64, 300, 2000])
def test_tight_epsilon(rate: float, top: int) -> None:
    found = certificate(Fraction(rate), top, tight=True)
    report = verify(found.to_json())
    assert report.tight_epsilon == found.tight_epsilon
    assert found.tight_epsilon is not None
    assert found.tight_epsilon <= rate


def test_tight_epsilon_of_a_large_range_raises() -> None:
    with pytest.raises(ValueError, match="100000"):
        certificate(Fraction(1), 10**5 + 1, tight=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_range_of_each_dtype(dtype: str) -> None:
    found = GeometricMechanism(0.1, bounds=limits(dtype)).certificate(dtype)
    assert found.range == 2 ** (8 * np.dtype(dtype).itemsize) - 1
    verify(found.to_json())


def test_default_dtype() -> None:
    assert GeometricMechanism(1.0).certificate().range == 2**64 - 1
    assert certificate(Fraction(1), 2**64 - 1).range == 2**64 - 1
    assert GeometricMechanism(1.0, bounds=(-5, 5)).certificate(np.int8).range == 10


def test_no_noise() -> None:
    one_output = GeometricMechanism(1.0, bounds=(7, 7)).certificate(tight=True)
    assert one_output.tight_epsilon == 0
    no_privacy = GeometricMechanism.from_scale(0, (0, 9)).certificate()
    assert no_privacy.rate is None
    assert no_privacy.digits == ()
    with pytest.raises(VerificationError, match="no privacy"):
        verify(no_privacy.to_json())
    assert "no noise" in str(no_privacy)
    assert one_output.holds
    assert not no_privacy.holds


def test_damaged_certificate_does_not_hold() -> None:
    found = certificate(Fraction(1), 1000)
    assert found.floor is not None
    assert found.delta is not None
    less = found.floor - Fraction(1, 2**126)
    assert not dataclasses.replace(found, floor=less).holds
    assert not dataclasses.replace(found, delta=found.delta + Fraction(1, 2**126)).holds


def test_certificate_shows_epsilon_beside_the_rate() -> None:
    found = GeometricMechanism(0.5, sensitivity=2, bounds=(0, 1)).certificate()
    first, second, *_ = repr(found).splitlines()
    assert first.endswith("pure epsilon-DP at rate 0.25 (epsilon 0.5, sensitivity 2), exactly")
    assert second.startswith("  1 digit, ")
    assert found == certificate(Fraction(1, 4), 1)  # The statements are about the rate alone.


def test_certificate_is_frozen_and_picklable() -> None:
    found = certificate(Fraction(1), 10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.range = 3  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(found)) == found
    assert "rate 1" in str(found)


def test_invalid_dtype_raises() -> None:
    mechanism = GeometricMechanism(1.0, bounds=(0, 300))
    with pytest.raises(TypeError, match="float64"):
        mechanism.certificate("float64")
    with pytest.raises(OverflowError, match="bounds"):
        mechanism.certificate("uint8")
