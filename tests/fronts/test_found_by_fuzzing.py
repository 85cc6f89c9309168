"""Regression tests for bugs found by fuzzing (`rust/fuzz`, `tests/fronts/fuzz_python.py`)."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geomdp import GeometricMechanism, accuracy, cli, sample_bernoulli, sample_geometric
from geomdp.compat.diffprivlib import Geometric, GeometricFolded, GeometricTruncated
from geomdp.distribution import CensoredGeometric
from geomdp.testing import release_not_private
from verifier.verify import VerificationError, verify

#: By default Python refuses to print it.
VAST = 10**5000


def test_certificate_of_rate_beyond_float64(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["certificate", "--scale", "1e-400", "--bounds", "0", "3"]) == 0
    assert "rate about 2^132" in capsys.readouterr().out


@pytest.mark.parametrize("tight", [False, True])
def test_verifier_accepts_certificate_of_one_output(tight: bool) -> None:
    text = GeometricMechanism(1, bounds=(3, 3)).certificate(tight=tight).to_json()
    assert verify(text).range == 0
    for key in ("total_variation", "tight_epsilon"):
        with pytest.raises(VerificationError, match=key):
            verify(json.loads(text) | {key: 1e-300})


def test_certificate_without_noise_is_valid_json() -> None:
    found = GeometricMechanism.from_scale(0, (0, 3)).certificate(tight=True)
    assert found.tight_epsilon == np.inf

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(found.to_json(), parse_constant=refuse)["tight_epsilon"] is None


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: GeometricMechanism(VAST), "epsilon"),
        (lambda: GeometricMechanism(-VAST), "epsilon"),
        (lambda: GeometricMechanism(1, VAST), "sensitivity"),
        (lambda: GeometricMechanism(Fraction(1, 2**9000), 2**9000), "epsilon / sensitivity"),
        (lambda: GeometricMechanism(1, bounds=(0, VAST)), "bounds"),
        (lambda: GeometricMechanism.from_scale(VAST), "scale"),
        (lambda: GeometricMechanism(1).privacy_loss(VAST), "distance"),
        (lambda: sample_geometric(0.5, trials=VAST), "trials"),
        (lambda: sample_bernoulli(VAST), "prob"),
        (lambda: GeometricFolded(epsilon=1, lower=0, upper=9).variance(VAST), "value"),
        (lambda: Geometric(epsilon=VAST), "epsilon"),
        (lambda: Geometric(epsilon=Fraction(1, VAST)), "epsilon"),
        (lambda: GeometricFolded(epsilon=1, lower=0, upper=Fraction(VAST, 3)), "upper"),
        (lambda: GeometricFolded(epsilon=1, lower=-VAST, upper=0), "lower"),
        (lambda: GeometricTruncated(epsilon=1, lower=0, upper=VAST), "upper"),
        (lambda: accuracy.epsilon_to_accuracy(1, Fraction(1, VAST)), "alpha"),
    ],
)
def test_unprintable_ints_raise(call: Any, name: str) -> None:
    with pytest.raises(OverflowError, match=f"{name}.* bits, which is not accepted"):
        call()


def test_widest_numbers_are_accepted_and_printed() -> None:
    widest = 2**14000 - 1
    mechanism = GeometricMechanism(widest, widest, (0, 3))
    assert str(widest) in repr(mechanism)
    verify(mechanism.certificate().to_json())
    assert str(GeometricMechanism(widest, bounds=(0, 3)).certificate())


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), ("a", TypeError), ((2, 1.5), TypeError), ((2, -1), ValueError)],
)
def test_invalid_size_raises(size: Any, error: type[Exception]) -> None:
    for sample in (sample_bernoulli, sample_geometric):
        with pytest.raises(error, match="size"):
            sample(0.5, size)


def test_invalid_certificate_argument_raises() -> None:
    unknown: Any = "i16"
    with pytest.raises(TypeError, match="dtype"):
        GeometricMechanism(1).certificate(unknown)
    with pytest.raises(TypeError, match="tight"):
        GeometricMechanism(1).certificate(tight=unknown)


def test_release_not_private_requires_a_mechanism() -> None:
    none: Any = 3
    with pytest.raises(TypeError, match="mechanism"):
        release_not_private(none, [1], bytes(32))


def test_incompatible_shapes_raise() -> None:
    release, three = CensoredGeometric([1, 2], 2, (0, 9)), np.full(3, 0.5)
    for call in (release.pmf, release.logsf, release.cdf):
        with pytest.raises(ValueError, match=r"k of shape \(3,\) and center of shape \(2,\)"):
            call(three)
    for call in (release.ppf, release.isf):
        with pytest.raises(ValueError, match=r"q of shape \(3,\) and center"):
            call(three)
    with pytest.raises(ValueError, match=r"confidence of shape \(3,\) and center"):
        release.interval(three)
    with pytest.raises(ValueError, match=r"scale of shape \(2,\) and alpha of shape \(3,\)"):
        accuracy.scale_to_accuracy(np.array([1.0, 2.0]), three)
