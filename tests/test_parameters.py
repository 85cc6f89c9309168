"""Public parameters: represented exactly, or an error with the name."""

import collections
import copy
import inspect
import math
import pickle
import re
import traceback
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomdp import GeometricMechanism, accounting, accuracy, frames, sample_bernoulli
from geomdp.distributed import ReleaseKey, check_arguments
from unsigned import limits

NUMBERS: list[tuple[Any, Fraction]] = [
    (1, Fraction(1)),
    (2**80, Fraction(2**80)),
    (10**400, Fraction(10**400)),
    (0.1, Fraction(3602879701896397, 2**55)),
    (1e308, Fraction(int(1e308))),
    (5e-324, Fraction(1, 2**1074)),
    (Fraction(1, 3), Fraction(1, 3)),
    (Fraction(10**400, 3), Fraction(10**400, 3)),
    (Fraction(1, 10**400), Fraction(1, 10**400)),
    (np.int8(3), Fraction(3)),
    (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
    (np.float16(0.1), Fraction(819, 2**13)),
    (np.float32(0.1), Fraction(13421773, 2**27)),
    (np.float64(0.1), Fraction(3602879701896397, 2**55)),
]
NOT_NUMBERS: list[Any] = [
    *(True, False, np.True_, "1", b"1", None, 1j, Decimal(1), np.longdouble(1), np.complex128(1)),
    *(np.timedelta64(1, "s"), [1], np.array([1.0])),
]
NOT_INTEGERS: list[Any] = [
    *(True, np.True_, 1.0, np.float64(1), Fraction(1), "1", None, np.timedelta64(1, "s"), [1]),
]
NOT_FINITE: list[Any] = [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf")]
NEGATIVE: list[Any] = [-1, -0.5, -5e-324, Fraction(-1, 3), np.int8(-1), -(10**400)]
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


def is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def named(name: str, value: Any) -> str:
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64 | np.bool_):
        # Shown as the numpy scalar or as a plain number.
        return rf"{name} = ({re.escape(repr(value))}|{re.escape(repr(value.item()))})"
    if isinstance(value, Iterable) and not isinstance(value, str) and not is_pair(value):
        # It may be counts in the wrong place.
        return f"{name} (of|has) type {type(value).__name__}( is not accepted)?: give "
    return re.escape(f"{name} = {value!r}")


@pytest.mark.parametrize(("value", "exact"), NUMBERS, ids=lambda v: repr(v)[:30])
def test_epsilon_is_exact(value: Any, exact: Fraction) -> None:
    mechanism = GeometricMechanism(value, sensitivity=7)
    assert mechanism.epsilon == value
    assert mechanism.sensitivity == 7
    assert mechanism.rate == exact / 7
    assert mechanism.scale == 7 / exact
    assert mechanism.bounds is None


@pytest.mark.parametrize(("value", "exact"), NUMBERS, ids=lambda v: repr(v)[:30])
def test_scale_is_exact(value: Any, exact: Fraction) -> None:
    mechanism = GeometricMechanism.from_scale(value)
    assert mechanism.scale == value
    assert mechanism.rate == 1 / exact
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
    assert mechanism.map(0) == 0
    assert mechanism.map(1) == math.inf


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_nonnumber_raises(value: Any) -> None:
    with pytest.raises(TypeError, match=named("epsilon", value)):
        GeometricMechanism(value)
    with pytest.raises(TypeError, match=named("scale", value)):
        GeometricMechanism.from_scale(value)


@pytest.mark.parametrize("value", NOT_FINITE + NEGATIVE, ids=lambda v: repr(v)[:30])
def test_nonfinite_or_negative_raises(value: Any) -> None:
    with pytest.raises(ValueError, match=named("epsilon", value)):
        GeometricMechanism(value)
    with pytest.raises(ValueError, match=named("scale", value)):
        GeometricMechanism.from_scale(value)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, Fraction(0), np.float64(0)], ids=repr)
def test_epsilon_zero_raises(value: Any) -> None:
    with pytest.raises(ValueError, match=named("epsilon", value)):
        GeometricMechanism(value)


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
def test_noninteger_raises(value: Any) -> None:
    with pytest.raises(TypeError, match=named("sensitivity", value)):
        GeometricMechanism(1, value)
    for bounds in [(value, 5), (0, value)]:
        with pytest.raises(TypeError, match="bounds of type tuple is not accepted: give a pair"):
            GeometricMechanism(1, bounds=bounds)


@pytest.mark.parametrize("value", [0, -1, -(2**70), np.int8(-5)], ids=repr)
def test_sensitivity_below_one_raises(value: Any) -> None:
    with pytest.raises(ValueError, match=named("sensitivity", value)):
        GeometricMechanism(1, value)


@pytest.mark.parametrize(
    "bounds", [5, (), (1,), (1, 2, 3), "ab", {1, 2}, {1: 2, 3: 4}, np.array([1, 2]), range(2)]
)
def test_bounds_not_a_pair_raise(bounds: Any) -> None:
    for make in (GeometricMechanism, GeometricMechanism.from_scale):
        with pytest.raises(TypeError, match=named("bounds", bounds)):
            make(1, bounds=bounds)


@pytest.mark.parametrize("bounds", [(1, 0), (5, -5), (2**64 - 1, 0), (2**63 - 1, -(2**63))])
def test_reversed_bounds_raise(bounds: tuple[int, int]) -> None:
    for make in (GeometricMechanism, GeometricMechanism.from_scale):
        with pytest.raises(ValueError, match=named("bounds", bounds)):
            make(1, bounds=bounds)


@pytest.mark.parametrize(
    "bounds",
    [
        *((-1, 2**63), (-(2**63), 2**64 - 1), (0, 2**64), (-(2**63) - 1, 0), (2**64, 2**64)),
        *((0, 2**127 - 1), (0, 2**127), (-(2**127) - 1, 0), (-(2**200), 2**200)),
    ],
)
def test_bounds_outside_all_dtypes_raise(bounds: tuple[int, int]) -> None:
    for make in (GeometricMechanism, GeometricMechanism.from_scale):
        with pytest.raises(OverflowError, match=named("bounds", bounds)):
            make(1, bounds=bounds)


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        *(((0, 256), "uint8"), ((-1, 5), "uint8"), ((-1, 5), "uint64"), ((0, 128), "int8")),
        *(((-129, 0), "int8"), ((300, 400), "int8"), ((0, 2**15), "int16"), ((0, 2**16), "uint16")),
        *(((0, 2**31), "int32"), ((0, 2**32), "uint32"), ((0, 2**63), "int64")),
    ],
)
def test_bounds_outside_dtype_raise(bounds: tuple[int, int], dtype: str) -> None:
    mechanism = GeometricMechanism(1, bounds=bounds)
    one = np.dtype(dtype).type(1)
    for counts in (one, np.array([one]), np.array([], dtype)):
        with pytest.raises(OverflowError, match=named("bounds", bounds)):
            mechanism.release(counts)
    within = limits(dtype) or (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    assert type(GeometricMechanism(1, bounds=within).release(one)) is np.dtype(dtype).type


def test_huge_epsilon_adds_no_noise() -> None:
    for epsilon in (1e308, 10**400, Fraction(10**400)):
        mechanism = GeometricMechanism(epsilon)
        counts = np.arange(-500, 500)
        np.testing.assert_array_equal(mechanism.release(counts), counts)


def test_uncertifiable_epsilon_raises() -> None:
    for epsilon in (5e-324, Fraction(1, 10**400)):
        with pytest.raises(ValueError, match=r"scale = about 2\*\*\d+ is too large"):
            GeometricMechanism(epsilon, bounds=(0, 1))
        mechanism = GeometricMechanism(epsilon)
        for counts in (1, np.int8(1), [1], np.array([], np.int16)):
            with pytest.raises(ValueError, match=r"scale = about 2\*\*\d+ is too large"):
                mechanism.release(counts)


def max_scale(refused: Callable[[], object]) -> Fraction:
    with pytest.raises(ValueError, match=r"scale = about 2\*\*\d+ is too large") as caught:
        refused()
    found = re.search(r"scale of at most 2\*\*(-?\d+)", str(caught.value))
    assert found is not None
    return Fraction(2) ** int(found[1])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("scale", [2.0**400, 1e308, Fraction(10**300, 7)], ids=float)
def test_scale_limit_in_message_is_accepted_for_dtype(dtype: str, scale: Any) -> None:
    counts = np.zeros(3, dtype)
    limit = max_scale(lambda: GeometricMechanism.from_scale(scale, limits(dtype)).release(counts))
    assert GeometricMechanism.from_scale(limit, limits(dtype)).release(counts).dtype == dtype
    assert GeometricMechanism(1 / limit, bounds=limits(dtype)).release(counts).dtype == dtype


def check_limit(upper: int, factor: Fraction) -> None:
    limit = max_scale(lambda: GeometricMechanism.from_scale(2.0**400, bounds=(0, upper)))
    assert GeometricMechanism.from_scale(limit * factor, bounds=(0, upper)).bounds == (0, upper)


@pytest.mark.parametrize("bits", range(1, 65))
def test_scale_limit_in_message_is_accepted_for_width(bits: int) -> None:
    for upper in {2 ** (bits - 1), 2**bits - 1}:
        check_limit(upper, Fraction(1))


@settings(deadline=None)
@given(
    st.integers(1, 64).flatmap(lambda bits: st.integers(1, 2**bits - 1)),
    st.fractions(min_value=0, max_value=1).filter(bool),
)
def test_scales_up_to_limit_are_accepted(upper: int, factor: Fraction) -> None:
    check_limit(upper, factor)


def test_scale_limit_of_unbounded_64_bit_counts_and_of_one_output() -> None:
    limit = max_scale(lambda: GeometricMechanism.from_scale(2.0**100).release(1))
    assert 2**64 < limit < 2**100
    mechanism = GeometricMechanism.from_scale(2**400, bounds=(7, 7))
    assert mechanism.release([0, 7, 100]).tolist() == [7, 7, 7]


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
        *(GeometricMechanism(rate) for rate in (0.1, Fraction(1, 10), np.float32(0.1))),
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
    for value in (f"{float(mechanism.epsilon):.6g}", mechanism.bounds or "the limits of the dtype"):
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
    assert "<td>2^1328, roughly</td>" in html
    assert "<td>2^-1328, roughly</td>" in html


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
        (GeometricMechanism.release, "self counts out threads"),
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
        assert other.map(7) == float(7 * other.rate)


def test_errors_repeat() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="bounds"):
            GeometricMechanism(1.0, bounds=(3, 2))
        with pytest.raises(OverflowError, match="bounds"):
            GeometricMechanism(1.0, bounds=(0, 2**200))


#: Counts in the wrong place.
COUNTS: dict[str, Any] = {
    "array": np.array([98761, 98762]),
    "list": [98761, 98762, 98763],
    "pair": (98761.0, 98762.0),
    "dict": {"a": 98761},
    "Counter": collections.Counter(a=98761),
    "Series": pd.Series([98761, 98762]),
    "Series of Polars": pl.Series([98761, 98762]),
    "Array": pa.array([98761, 98762]),
    "DataFrame": pd.DataFrame({"n": [98761]}),
    "numpy record": np.array([(98761,)], [("n", "i8")])[0],
    "bytes": b"98761",
}
PEOPLE = pd.DataFrame({"town": ["a", "b"], "who": [1, 2]})
ONE = GeometricMechanism(1, bounds=(0, 9))
TAKES: dict[str, Callable[[Any], Any]] = {
    "epsilon": GeometricMechanism,
    "sensitivity": lambda value: GeometricMechanism(1, value),
    "bounds": lambda value: GeometricMechanism(1, bounds=value),
    "scale": GeometricMechanism.from_scale,
    "d_in": ONE.map,
    "dtype": ONE.certificate,
    "tight": lambda value: ONE.certificate(tight=value),
    "threads": lambda value: ONE.release([1], threads=value),
    "nulls": lambda value: frames.release(ONE, pd.Series([1]), nulls=value),
    "alpha": ONE.accuracy,
    "alpha of an interval": lambda value: ONE.confidence_interval(3, value),
    "alpha, one for each": lambda value: accuracy.epsilon_to_accuracy(1, value),
    "accuracy": lambda value: accuracy.accuracy_to_epsilon(value, 2),
    "method": lambda value: accuracy.scale_to_accuracy(1, 0.1, method=value),
    "side": lambda value: ONE.confidence_interval(3, 0.1, side=value),
    "n": lambda value: accuracy.simultaneous_accuracy(ONE, 0.1, value),
    "budget": accounting.Budget,
    "delta": lambda value: accounting.Budget(1, value),
    "label": lambda value: accounting.Budget(1).spend(ONE, label=value),
    "distance": lambda value: accounting.Budget(1).spend(ONE, value),
    "releases": lambda value: accounting.loss_distribution(ONE) * value,
    "l0": lambda value: accounting.loss_distribution(ONE, l0=value),
    "linf": lambda value: accounting.loss_distribution(ONE, linf=value),
    "l0 of frames": lambda value: frames.bound_contributions(PEOPLE, "who", l0=value),
    "individual": lambda value: frames.bound_contributions(PEOPLE, value, l0=1),
    "cells": lambda value: frames.bound_contributions(PEOPLE, "who", l0=1, cells=[value]),
    "column": lambda value: frames.count(PEOPLE, {"town": ["a"]}, other={value: "else"}),
    "name": lambda value: frames.count(PEOPLE, {"town": ["a"]}, name=value),
    "other": lambda value: frames.count(PEOPLE, {"town": ["a"]}, other=[value]),
    "margins": lambda value: frames.count(PEOPLE, {"who": [1]}, margins=value),
    "levels": lambda value: frames.count(PEOPLE, {"town": value}),
    "records": lambda value: frames.count(PEOPLE, {"town": ["a"]}).map(ONE, value),
    "mechanism": lambda value: frames.release(value, pd.Series([1])),
    "name by key": lambda value: ReleaseKey().release(ONE, [1], [1], name=value),
    "part": lambda value: ReleaseKey().release(ONE, [1], [1], name="n", part=value),
    "ids": lambda value: check_arguments({"n": ONE}, value, ["n"]),
    "prob": sample_bernoulli,
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("counts", COUNTS)
def test_messages_do_not_show_counts_in_the_wrong_place(name: str, counts: str) -> None:
    try:
        TAKES[name](COUNTS[counts])
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        text = "".join(traceback.format_exception(error))
        assert "9876" not in text


def test_messages_show_public_values() -> None:
    for value in (-3, -0.5, Fraction(-1, 3), "98761", None, True, np.int8(-3), np.float32(-1)):
        with pytest.raises((TypeError, ValueError), match=re.escape(f"epsilon = {value!r} ")):
            GeometricMechanism(value)
