"""Public parameters: represented exactly, or an error with the name."""

import copy
import inspect
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geomdp import GeometricMechanism
from geomdp._ground import parameters
from geomdp._noise import exact_loss

NUMBERS: list[tuple[Any, Fraction]] = [
    (1, Fraction(1)),
    (2**80, Fraction(2**80)),
    (10**400, Fraction(10**400)),
    (0.1, Fraction(1, 10)),
    (1e308, Fraction(10**308)),
    (5e-324, Fraction(5, 10**324)),
    ("0.3", Fraction(3, 10)),
    (Decimal("0.7"), Fraction(7, 10)),
    (Fraction(3, 10), Fraction(3, 10)),
    (Fraction(1, 3), Fraction(1, 3)),
    (Fraction(10**400, 3), Fraction(10**400, 3)),
    (Fraction(1, 10**400), Fraction(1, 10**400)),
    (np.int8(3), Fraction(3)),
    (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
    (np.float16(0.1), Fraction(1, 10)),
    (np.float32(0.1), Fraction(1, 10)),
    (np.float64(0.1), Fraction(1, 10)),
]
MECHANISMS: list[GeometricMechanism] = [
    GeometricMechanism(0.1),
    GeometricMechanism(1, 3),
    GeometricMechanism(Fraction(1, 3), sensitivity=2**70, bounds=None),
    GeometricMechanism(0.1, bounds=(-5, 5)),
    GeometricMechanism(np.float32(0.1), np.int16(2), (np.int8(0), np.uint64(2**64 - 1))),
    GeometricMechanism.from_scale(0),
    GeometricMechanism.from_scale(0.0, (0, 1)),
    GeometricMechanism.from_scale(Fraction(7, 3), (2, 2)),
    GeometricMechanism.from_scale(np.float32(0.1)),
]

each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)


@pytest.mark.parametrize(("value", "exact"), NUMBERS, ids=lambda v: repr(v)[:30])
def test_epsilon_is_what_was_typed(value: Any, exact: Fraction) -> None:
    """Noise is made for the lesser reading of a float or of text, and is exact for others."""
    mechanism = GeometricMechanism(value, sensitivity=7)
    typed = isinstance(value, float | np.floating | Decimal | str)
    drawn = min(exact, Fraction(float(exact))) if typed else exact
    assert mechanism.epsilon == (float(exact) if typed else value)
    assert exact_loss(mechanism, 7) == exact
    assert mechanism.sensitivity == 7
    assert mechanism.rate == drawn / 7
    assert mechanism.scale == 7 / drawn
    assert mechanism.bounds is None


@pytest.mark.parametrize(("value", "exact"), NUMBERS, ids=lambda v: repr(v)[:30])
def test_scale_is_what_was_typed(value: Any, exact: Fraction) -> None:
    mechanism = GeometricMechanism.from_scale(value)
    typed = isinstance(value, float | np.floating | Decimal | str)
    assert mechanism.scale == (float(exact) if typed else value)
    assert 1 / mechanism.rate == (max(exact, Fraction(float(exact))) if typed else exact)
    assert mechanism.epsilon == 1 / exact
    assert mechanism.sensitivity == 1


def test_sensitivity_is_any_int() -> None:
    assert GeometricMechanism(1).sensitivity == 1
    assert GeometricMechanism(1, np.uint8(3)).rate == Fraction(1, 3)
    assert type(GeometricMechanism(1, np.uint8(3)).sensitivity) is int
    assert GeometricMechanism(0.5, 2**2000).rate == Fraction(1, 2**2001)


@pytest.mark.parametrize(
    "bounds",
    [
        *((0, 0), (-3, 5), (-(2**63), 2**63 - 1), (0, 2**64 - 1), (2**64 - 1, 2**64 - 1)),
        (np.int8(-3), np.uint64(7)),
    ],
)
def test_bounds_are_a_pair_of_ints(bounds: tuple[int, int]) -> None:
    for pair in (bounds, list(bounds)):
        mechanism = GeometricMechanism(1, bounds=pair)
        assert mechanism.bounds == bounds
        assert [type(mechanism.bounds), *map(type, mechanism.bounds or ())] == [tuple, int, int]


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, Fraction(0), np.float32(0), np.int8(0)], ids=repr)
def test_scale_zero_adds_no_noise(zero: Any) -> None:
    mechanism = GeometricMechanism.from_scale(zero)
    counts = np.arange(-1000, 1000)
    np.testing.assert_array_equal(mechanism.release(counts), counts)
    assert mechanism.release(5) == 5
    assert mechanism.scale == 0
    assert mechanism.rate == math.inf
    assert mechanism.epsilon == math.inf
    assert mechanism.privacy_loss(0) == 0
    assert mechanism.privacy_loss(1) == math.inf


def test_huge_epsilon_adds_no_noise() -> None:
    for epsilon in (1e308, 10**400, Fraction(10**400)):
        mechanism = GeometricMechanism(epsilon)
        counts = np.arange(-500, 500)
        np.testing.assert_array_equal(mechanism.release(counts), counts)


def test_equal_parameters_compare_equal() -> None:
    one = GeometricMechanism(0.5, bounds=(0, 9))
    for other in (
        GeometricMechanism(Fraction(1, 2), 1, (0, 9)),
        GeometricMechanism(np.float32(0.5), np.int8(1), (np.int8(0), 9)),
        GeometricMechanism.from_scale(2, (0, 9)),
    ):
        assert one == other
        assert hash(one) == hash(other)
    assert len({one, GeometricMechanism.from_scale(2.0, (0, 9))}) == 1


def test_different_parameters_compare_unequal() -> None:
    different: list[Any] = [
        *(GeometricMechanism(rate) for rate in (0.1, Fraction(0.1), 0.3, Fraction(3, 10))),
        *(GeometricMechanism(epsilon, 2) for epsilon in (0.1, 0.2)),
        *(GeometricMechanism(0.1, bounds=(0, upper)) for upper in (1, 2)),
        *(GeometricMechanism.from_scale(0), GeometricMechanism.from_scale(0, (0, 1))),
        *(0.1, None, "GeometricMechanism(epsilon=0.1, sensitivity=1)"),
    ]
    assert len(set(different)) == len(different)
    for i, one in enumerate(different):
        assert [j for j, other in enumerate(different) if one == other] == [i]


@each_mechanism
def test_copies_pickles_and_repr(mechanism: GeometricMechanism) -> None:
    scope = {"GeometricMechanism": GeometricMechanism, "Fraction": Fraction, "inf": math.inf}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        check_same(mechanism, pickle.loads(pickle.dumps(mechanism, protocol)))
    for other in (copy.copy(mechanism), copy.deepcopy(mechanism), eval(repr(mechanism), scope)):
        check_same(mechanism, other)


@each_mechanism
def test_notebooks_show_parameters_and_four_lines_of_a_certificate(
    mechanism: GeometricMechanism,
) -> None:
    html = mechanism._repr_html_()
    certificate = mechanism.certificate()
    for value in (
        parameters.text(mechanism.epsilon),
        mechanism.bounds or "the limits of the dtype",
    ):
        assert f"<td>{value}</td>" in html
    text = certificate._repr_html_()
    assert repr(certificate) == str(certificate)
    assert len(repr(certificate).splitlines()) == (4 if certificate.digits else 1)
    assert text == f"<pre>{certificate}</pre>"
    assert max(map(len, text.splitlines())) < 120
    tight = GeometricMechanism(1, bounds=(0, 9)).certificate(tight=True)
    assert repr(tight).splitlines()[4].endswith(repr(tight.tight_epsilon))


def test_huge_numbers_are_shown_briefly() -> None:
    html = GeometricMechanism(10**400)._repr_html_()
    assert "<td>about 2^1329</td>" in html
    assert "<td>about 2^-1329</td>" in html


def check_same(one: GeometricMechanism, other: GeometricMechanism) -> None:
    assert type(other) is GeometricMechanism
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    for name in ("epsilon", "sensitivity", "scale", "rate", "bounds"):
        assert getattr(one, name) == getattr(other, name)


def test_subclass_copies() -> None:
    for mechanism in (Derived(1, 2, (0, 3)), Derived.from_scale(2)):
        for other in (copy.copy(mechanism), pickle.loads(pickle.dumps(mechanism))):
            assert type(other) is Derived
            assert other == mechanism
            assert repr(other).startswith("Derived")


class Derived(GeometricMechanism):
    __slots__ = ()


@pytest.mark.parametrize("name", ["epsilon", "bounds", "new"])
def test_mechanism_is_immutable(name: str) -> None:
    mechanism = GeometricMechanism(1)
    with pytest.raises(AttributeError):
        setattr(mechanism, name, 2)


def test_signatures_have_no_seed() -> None:
    for call, names in [
        (GeometricMechanism, "epsilon sensitivity bounds"),
        (GeometricMechanism.from_scale, "scale bounds"),
        (GeometricMechanism.release, "self counts out nulls threads progress"),
    ]:
        assert " ".join(inspect.signature(call).parameters) == names


def test_equal_mechanisms_share_their_plans() -> None:
    mechanism = GeometricMechanism(0.5, 2, (0, 10))
    for equal in (
        GeometricMechanism(Fraction(1, 2), np.int8(2), [0, 10]),
        pickle.loads(pickle.dumps(mechanism)),
    ):
        assert equal._core is mechanism._core
    for other in (
        GeometricMechanism(0.5, 1, (0, 10)),
        GeometricMechanism(0.25, 2, (0, 10)),
        GeometricMechanism(0.5, 2, (0, 11)),
        GeometricMechanism(0.5, 2),
        GeometricMechanism.from_scale(0.5, (0, 10)),
    ):
        assert other._core is not mechanism._core
        assert other.privacy_loss(7) == float(7 * other.rate)


def test_errors_repeat() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="bounds"):
            GeometricMechanism(1.0, bounds=(3, 2))
        with pytest.raises(OverflowError, match="bounds"):
            GeometricMechanism(1.0, bounds=(0, 2**200))


@pytest.mark.parametrize("order", [1, -1])
def test_equal_numbers_of_two_types_state_their_own_texts(order: int) -> None:
    """A float is read once, and float32(0.1) equals a float whose text is longer."""
    parameters.decimal.cache_clear()
    for number in (np.float32(0.1), float(np.float32(0.1)))[::order]:
        assert parameters.decimal(number) == Fraction(str(number))
