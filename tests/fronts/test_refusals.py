"""What every call refuses: numbers, integers, bounds, scales, counts and `out`, each once."""

import ast
import datetime
import itertools
import math
import re
import traceback
from array import array
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from scipy import sparse

import geomdp.measurement as m
from geomdp import (
    GeometricMechanism,
    accuracy,
    sample_bernoulli,
    sample_geometric,
    sample_two_sided_geometric,
    tables,
)
from geomdp.accounting import Budget
from geomdp.compat import diffprivlib
from geomdp.compat.smartnoise import simple_geometric_mechanism as smartnoise
from geomdp.distribution import CensoredGeometric, TwoSidedGeometric
from geomdp.notes import rejection, remap
from geomdp.testing import release_not_private
from unsigned import limits

KEY = bytes(32)
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ONE = m.AllDomain("i32"), m.AbsoluteDistance("i32")
MANY = m.VectorDomain(m.AllDomain("i32")), m.L1Distance("i32")
RECORDS = m.make_count(m.VectorDomain(m.AllDomain(str)), m.SymmetricDistance())
Truncated, Folded = diffprivlib.GeometricTruncated, diffprivlib.GeometricFolded


def named(name: str, value: Any) -> str:
    """Return a pattern of a message that names the parameter; it shows no containers."""
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64 | np.bool_):
        # Shown as the numpy scalar or as a plain number.
        return rf"{name} = ({re.escape(repr(value))}|{re.escape(repr(value.item()))})"
    is_pair = isinstance(value, tuple) and len(value) == 2
    if isinstance(value, Iterable) and not isinstance(value, str) and not is_pair:
        kind = type(value).__name__
        return f"{name} (of|has) type {kind}( with [^:]*)?( is not accepted)?: give "
    return re.escape(f"{name} = {value!r}")


# Numbers

NOT_NUMBERS: list[Any] = [
    *(True, False, np.True_, b"1", None, 1j, np.longdouble(1), np.complex128(1)),
    *(np.timedelta64(1, "s"), [1], {1}, {1: 2}, np.array([1.0])),
]
NAN: list[Any] = [math.nan, np.float32("nan")]
NEGATIVE: list[Any] = [
    *(-math.inf, -1, -0.5, -5e-324, Fraction(-1, 3), -(10**400)),
    *(np.int8(-1), np.float32(-1)),
]
INFINITE: list[Any] = [math.inf, np.float64("inf")]
ZERO: list[Any] = [0, 0.0, -0.0, Fraction(0), np.float64(0)]
NO_SCALE = NAN + NEGATIVE + INFINITE
#: The last two are not exactly a float64.
NO_PROB: list[Any] = [1 + 2**-52, 2, 10**400, Fraction(1, 3), Fraction(1, 10**40)]
#: Calls that take a number, the name of that number, and the numbers out of its range.
NUMBERS: dict[str, tuple[str, Callable[[Any], Any], list[Any]]] = {
    "mechanism": ("epsilon", GeometricMechanism, NO_SCALE + ZERO),
    "from_scale": ("scale", GeometricMechanism.from_scale, NO_SCALE),
    "two-sided": ("scale", lambda scale: sample_two_sided_geometric(3, scale), NO_SCALE),
    "of one": ("scale", lambda scale: m.make_geometric(*ONE, scale), NO_SCALE),
    "of many": ("scale", lambda scale: m.make_geometric(*MANY, scale), NO_SCALE),
    "base": ("scale", m.make_base_geometric, NO_SCALE),
    "base of many": ("scale", lambda scale: m.make_base_geometric(scale, D=MANY[0]), NO_SCALE),
    "smartnoise": ("epsilon", lambda epsilon: smartnoise(5, epsilon, 1, 0, 9), NO_SCALE + ZERO),
    "smartnoise's": ("sensitivity", lambda s: smartnoise(5, 1.0, s, 0, 9), NO_SCALE),
    "ideal noise": ("scale", TwoSidedGeometric, NO_SCALE),
    "ideal release": ("scale", lambda scale: CensoredGeometric(1, scale, (0, 9)), NO_SCALE),
    "loss": ("epsilon", lambda epsilon: rejection.loss(epsilon, 3), NO_SCALE),
    "calibrated": ("epsilon", lambda e: rejection.calibrated_epsilon(e, 3), NO_SCALE + ZERO),
    "pmf": ("epsilon", lambda epsilon: rejection.pmf(epsilon, 3, 0), NO_SCALE),
    "bernoulli": ("prob", sample_bernoulli, NO_SCALE + NO_PROB),
    "geometric": ("prob", sample_geometric, NO_SCALE + NO_PROB),
    # An infinite epsilon adds no noise there.
    "free": ("epsilon", lambda e: diffprivlib.Geometric(epsilon=e), NAN + NEGATIVE + ZERO),
    "truncated": ("epsilon", lambda e: Truncated(epsilon=e, lower=0, upper=9), NAN + NEGATIVE),
    "folded": ("epsilon", lambda e: Folded(epsilon=e, lower=0, upper=9), NAN + NEGATIVE),
}


@pytest.mark.parametrize("call", NUMBERS)
def test_other_types_than_numbers_raise(call: str) -> None:
    name, make, _ = NUMBERS[call]
    for value in NOT_NUMBERS:
        with pytest.raises(TypeError, match=named(name, value)):
            make(value)


@pytest.mark.parametrize("call", NUMBERS)
def test_numbers_out_of_range_raise(call: str) -> None:
    name, make, out_of_range = NUMBERS[call]
    for value in out_of_range:
        with pytest.raises(ValueError, match=named(name, value)):
            make(value)


NOT_INTEGERS: list[Any] = [
    *(True, np.True_, 1.0, math.nan, np.float64(1), Fraction(1), "1", None, 1j, [1]),
    np.timedelta64(1, "s"),
]
#: Calls that take an integer, its name, and the least one.
INTEGERS: dict[str, tuple[str, Callable[[Any], Any], int | None]] = {
    "mechanism": ("sensitivity", lambda s: GeometricMechanism(1, s), 1),
    "smartnoise's min": ("min", lambda least: smartnoise(5, 1, 1, least, 9), None),
    "smartnoise's max": ("max", lambda greatest: smartnoise(5, 1, 1, 0, greatest), None),
    "optional distance": ("distance", GeometricMechanism(1).privacy_loss, 0),
    "distance of counts": ("d_in", m.make_geometric(*ONE, 1).map, 0),
    "distance to check": ("d_in", lambda d: m.make_geometric(*ONE, 1).check(d, 1), 0),
    "distance, approximately": ("d_in", lambda d: m.make_geometric(*ONE, 1).map_approx(d, 0.1), 0),
    "distance of records": ("d_in", RECORDS.map, 0),
    "distance of records to check": ("d_in", lambda d: RECORDS.check(d, 1), 0),
    "loss": ("n", lambda n: rejection.loss(0.1, n), 1),
    "calibrated": ("n", lambda n: rejection.calibrated_epsilon(0.1, n), 1),
    "pmf": ("n", lambda n: rejection.pmf(0.1, n, 0), 1),
    "free": ("sensitivity", lambda s: diffprivlib.Geometric(epsilon=1, sensitivity=s), 0),
    "truncated": (
        "sensitivity",
        lambda s: Truncated(epsilon=1, sensitivity=s, upper=9, lower=0),
        0,
    ),
    "folded": ("sensitivity", lambda s: Folded(epsilon=1, sensitivity=s, upper=9, lower=0), 0),
}


@pytest.mark.parametrize("call", INTEGERS)
def test_other_types_than_integers_and_too_small_ones_raise(call: str) -> None:
    name, make, least = INTEGERS[call]
    for value in NOT_INTEGERS:
        if value is None and call.startswith("optional"):
            continue
        with pytest.raises(TypeError, match=named(name, value)):
            make(value)
    for value in () if least is None else (least - 1, -(2**70), np.int8(-5)):
        with pytest.raises(ValueError, match=named(name, value)):
            make(value)


@pytest.mark.parametrize(
    ("prob", "trials", "error"),
    [
        *((0.5, trials, TypeError) for trials in NOT_INTEGERS if trials is not None),
        *((0.5, trials, ValueError) for trials in (0, -1, np.int8(-5))),
        *((0.5, trials, OverflowError) for trials in (2**63, 10**400)),
        (0, None, ValueError),  # It would take for ever.
    ],
)
def test_trials_that_are_no_number_of_trials_raise(
    prob: float, trials: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"\btrials\b"):
        sample_geometric(prob, trials=trials)


# Bounds

NOT_PAIRS: list[Any] = [
    *(5, (), (1,), (1, 2, 3), "ab", {1, 2}, {1: 2, 3: 4}, np.array([1, 2]), range(2), b"ab"),
]
#: Calls that take a pair of bounds, and the greatest dtype of their counts.
PAIRS: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "mechanism": (lambda bounds: GeometricMechanism(1, bounds=bounds), DTYPES),
    "from_scale": (lambda bounds: GeometricMechanism.from_scale(1, bounds), DTYPES),
    "two-sided": (lambda bounds: sample_two_sided_geometric(3, 1, bounds), DTYPES),
    "of one": (lambda bounds: m.make_geometric(*ONE, 1, bounds), ["int32"]),
    "of many": (lambda bounds: m.make_geometric(*MANY, 0, bounds), ["int32"]),
    "base": (lambda bounds: m.make_base_geometric(1, bounds, ONE[0]), ["int32"]),
    "ideal release": (lambda bounds: CensoredGeometric(1, 1, bounds), DTYPES),
    "sum": (lambda bounds: m.make_sum(MANY[0], m.SymmetricDistance(), bounds), ["int32"]),
}
#: Elsewhere, None means the limits of the dtype.
NEEDED = {"sum", "ideal release"}
BEYOND = [
    *((-1, 2**63), (-(2**63), 2**64 - 1), (0, 2**64), (-(2**63) - 1, 0), (2**64, 2**64)),
    *((0, 2**127 - 1), (0, 2**127), (-(2**127) - 1, 0), (-(2**200), 2**200)),
]
BEYOND_INT32 = [*BEYOND, (0, 2**31), (-(2**31) - 1, 0), (2**31, 2**32)]


@pytest.mark.parametrize("call", PAIRS)
def test_bounds_that_are_no_pair_of_integers_raise(call: str) -> None:
    make, _ = PAIRS[call]
    for bounds in NOT_PAIRS + [None] * (call in NEEDED):
        with pytest.raises(TypeError, match=named("bounds", bounds)):
            make(bounds)
    for value in NOT_INTEGERS:
        for pair in ((value, 5), (0, value)):
            with pytest.raises(
                TypeError, match=r"bounds of type tuple with .* is not accepted: give a pair"
            ):
                make(pair)


def test_bounds_without_an_upper_limit_say_how_to_write_them() -> None:
    """It asked somebody who gave a tuple for a pair, and said nothing of its missing limit."""
    for upper in (None, math.inf):
        with pytest.raises(TypeError, match=r"; \(0, 2\*\*63 - 1\) is without an upper limit"):
            GeometricMechanism(1, bounds=(0, upper))


@pytest.mark.parametrize("call", PAIRS)
def test_reversed_bounds_raise(call: str) -> None:
    make, dtypes = PAIRS[call]
    for dtype in dtypes:
        least, greatest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        for bounds in [(1, 0), (greatest, least), (greatest, greatest - 1), (least + 1, least)]:
            with pytest.raises(ValueError, match=named("bounds", bounds)):
                make(bounds)


@pytest.mark.parametrize("call", PAIRS)
def test_bounds_outside_all_dtypes_raise(call: str) -> None:
    make, dtypes = PAIRS[call]
    for bounds in BEYOND if dtypes is DTYPES else BEYOND_INT32:
        with pytest.raises(OverflowError, match=named("bounds", bounds)):
            make(bounds)


#: Calls with counts of any dtype.
BOUNDED: dict[str, Callable[[Any, int, int], Any]] = {
    "release": lambda x, *bounds: GeometricMechanism(1, bounds=bounds).release(x),
    "two-sided": lambda x, *bounds: sample_two_sided_geometric(x, 1, bounds),
    "smartnoise": lambda x, *bounds: smartnoise(x, 1, 1, *bounds),
    "truncated": lambda x, *of: Truncated(epsilon=1, lower=of[0], upper=of[1]).randomise(x),
    "folded": lambda x, *of: Folded(epsilon=1, lower=of[0], upper=of[1]).randomise(x),
}


@pytest.mark.parametrize("call", BOUNDED)
@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        *(((0, 256), "uint8"), ((-1, 5), "uint8"), ((-1, 5), "uint64"), ((0, 128), "int8")),
        *(((-129, 0), "int8"), ((300, 400), "int8"), ((0, 2**15), "int16"), ((0, 2**16), "uint16")),
        *(((0, 2**31), "int32"), ((0, 2**32), "uint32"), ((2**63, 2**63 + 5), "int64")),
    ],
)
def test_bounds_outside_dtype_raise(call: str, bounds: tuple[int, int], dtype: str) -> None:
    release = BOUNDED[call]
    for counts in (np.array(1, dtype), np.ones(3, dtype), np.array([], dtype)):
        with pytest.raises(OverflowError, match=r"bounds = |(lower|upper) = "):
            release(counts, *bounds)
    within = int(np.iinfo(dtype).max) - 9, int(np.iinfo(dtype).max)
    assert release(np.array([1], dtype), *within).dtype == dtype


def test_smartnoise_bounds_raise() -> None:
    for least, greatest in ((1, 0), (2**64 - 1, -5), (np.int8(3), 2)):
        with pytest.raises(ValueError, match=rf"min = {least} .* max = {greatest}"):
            smartnoise(5, 1.0, 1, least, greatest)
    for least, greatest in ((0, 2**63), (-1, 2**64), (-(2**200), 2**200)):
        with pytest.raises(OverflowError, match=rf"\({least}, {greatest}\)"):
            smartnoise(1, 1.0, 1, least, greatest)


# Scales too large for any certified draw


def of_dtype(dtype: str) -> tuple[Any, Any]:
    return m.VectorDomain(m.AllDomain(dtype)), m.L1Distance(dtype)


#: Calls with counts of a dtype and a scale.
SCALED: dict[str, Callable[[Any, Any], Any]] = {
    "release": lambda x, s: GeometricMechanism.from_scale(s, limits(x.dtype)).release(x),
    "epsilon": lambda x, s: GeometricMechanism(1 / Fraction(s), bounds=limits(x.dtype)).release(x),
    "measurement": lambda x, s: m.make_geometric(*of_dtype(x.dtype.name), s)(x),
    "smartnoise": lambda x, s: smartnoise(x, 1, s, *(limits(x.dtype) or (-5, 5))),
    "free": lambda x, s: diffprivlib.Geometric(epsilon=1 / Fraction(s)).randomise(x),
    "truncated": lambda x, s: Truncated(epsilon=1 / Fraction(s), lower=0, upper=9).randomise(x),
    "folded": lambda x, s: Folded(epsilon=1 / Fraction(s), lower=0, upper=9).randomise(x),
}


def max_scale(refused: Callable[[], object]) -> Fraction:
    with pytest.raises(ValueError, match=r"scale = about 2\*\*\d+ is too large|2\^56") as caught:
        refused()
    found = re.search(r"scale.* of at most 2(\*\*|\^)(-?\d+)", str(caught.value))
    assert found is not None
    return Fraction(2) ** int(found[2])


@pytest.mark.parametrize("call", SCALED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scale_limit_in_message_is_accepted(call: str, dtype: str) -> None:
    release = SCALED[call]
    for counts in (np.zeros(3, dtype), np.array([], dtype)):
        for scale in (2.0**400, 1e308, Fraction(10**300, 7), Fraction(10**400)):
            limit = max_scale(lambda x=counts, s=scale: release(x, s))  # type: ignore[misc]
        assert release(counts, limit).dtype == dtype


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
    assert m.make_geometric(*ONE, 2**400, (7, 7)).map(0) == 0


# Mechanisms

#: Calls with a mechanism.
WITH_MECHANISM: dict[str, Callable[[Any], Any]] = {
    "columns": lambda x: tables.release_columns(pd.DataFrame({"n": [1]}), {"n": x}),
    "table": tables.count(pd.Series(["a"]), ["a"]).design.privacy_loss,
    "budget": Budget(1).spend,
    "accuracy of several": lambda x: accuracy.simultaneous_accuracy(x, 0.5, n=5),
    "bias": lambda x: accuracy.bias(x, 5),
    "sum": lambda x: accuracy.sum_accuracy(x, 3, 0.05),
    "ratio": lambda x: accuracy.ratio_confidence_interval(
        SMALL, 1, 2, 0.05, denominator_mechanism=x
    ),
    "bayes": lambda x: remap.bayes(x, np.ones(4), "absolute"),
    "minimax": lambda x: remap.minimax(x, "absolute"),
    "risk": lambda x: remap.risk(x, "absolute"),
    "expected loss": lambda x: remap.expected_loss(x, np.ones(4), "absolute"),
}


@pytest.mark.parametrize("call", WITH_MECHANISM)
def test_other_types_than_mechanisms_raise(call: str) -> None:
    for value in (1.0, "mechanism", GeometricMechanism):
        with pytest.raises(TypeError, match=r"^mechanism has type .*: give a"):
            WITH_MECHANISM[call](value)


# Counts


class ArrayLike:
    """Like the column of a data frame."""

    def __init__(self, counts: Any = (0, 0, 0)) -> None:
        self.counts = np.array(counts)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.counts


class InterfaceLike:
    def __init__(self, counts: Any) -> None:
        self.__array_interface__ = counts.__array_interface__


class BufferLike:
    def __init__(self, counts: Any) -> None:
        self.counts = counts

    def __buffer__(self, _: int) -> memoryview:
        return memoryview(self.counts)


#: What may carry counts and is no integer array or sequence of ints.
CARRIERS: dict[str, Callable[[Any], Any]] = {
    "__array__": ArrayLike,
    "__array_interface__": InterfaceLike,
    "__buffer__": BufferLike,
    "memoryview": lambda x: memoryview(x.tobytes()),
    "bytes": bytes,
    "bytearray": bytearray,
    "iterator": lambda x: iter(x.tolist()),
    "set": lambda x: set(x.tolist()),
    "dict": lambda x: dict.fromkeys(x.tolist()),
    "values": lambda x: dict.fromkeys(x.tolist()).values(),
    "floats": lambda x: x.astype("f4"),
    "complex": lambda x: x.astype(complex),
    "bools": lambda x: x.astype(bool),
    "strings": lambda x: x.astype(str).astype("U30"),
    "objects": lambda x: x.astype(object),
    "times": lambda x: x.astype("i8").view("m8[s]"),
    "dates": lambda x: x.astype("i8").view("M8[s]"),
    "record": lambda x: np.array(x, [("x", "i8")]),
    "masked": lambda x: np.ma.masked_array(x, mask=x > 3),
    "array of floats": lambda x: array("d", x.tolist()),
    "list of floats": lambda x: [float(v) for v in x],
    "list of bools": lambda x: [v > 3 for v in x.tolist()],
    "list of strings": lambda x: [str(v) for v in x],
    "list of masked": lambda x: [np.ma.masked_array(x)],
    "list of times": lambda x: [[x.astype("i8").view("m8[ns]")]],
    "list of arrays": lambda x: [x.astype(float)],
    "ragged": lambda x: [x[:2].tolist(), x.tolist()],
    "nested at the end": lambda x: [*x.tolist(), x.tolist()],
    "a bool at the end": lambda x: [x.tolist(), [*x.tolist()[1:], True]],
}
NOT_COUNTS: list[Any] = [
    *(True, np.True_, 1.0, float("nan"), np.float64(1), np.longdouble(1), 1j, Decimal(1)),
    *(Fraction(1), "1", b"1", None, object(), np.ma.masked, np.timedelta64(1, "s"), np.str_("1")),
    *(np.datetime64(1, "s"), np.void(b"1"), datetime.timedelta(1)),
    *([1, False], [np.True_], [np.float32(1)], [1, None], [b"1"], [Decimal(1)], [np.ma.masked]),
    *([[1], 2], [{1}], [ArrayLike, 1], [np.timedelta64(1, "s")], [np.array([True])]),
    *(np.zeros(shape, T) for shape in [(), (0,)] for T in ("?", "f4", "O", "M8[s]")),
]
SMALL = GeometricMechanism(1)
#: Calls with counts alone.
COUNTED: dict[str, Callable[[Any], Any]] = {
    # None asks for the accuracy of any count.
    "accuracy": lambda x: SMALL.accuracy(0.05, counts=0.5 if x is None else x),
    "accuracy of several": lambda x: accuracy.simultaneous_accuracy(SMALL, 0.05, counts=x),
    "interval": lambda x: SMALL.confidence_interval(x, 0.05),
    "the bias": lambda x: accuracy.bias(SMALL, x),
    "pmf": lambda x: rejection.pmf(0.1, 30, x),
    "release": SMALL.release,
    "known key": lambda x: release_not_private(SMALL, x, KEY),
    "two-sided": lambda x: sample_two_sided_geometric(x, 1),
    "smartnoise": lambda x: smartnoise(x, 1, 1, 0, 9),
    "measurement": m.make_geometric(*of_dtype("int64"), 1),
    "measurement of one": m.make_geometric(m.AllDomain(int), m.AbsoluteDistance(int), 1),
    **{
        f"{method} of {type(of).__name__}": getattr(of, method)
        for of, method in itertools.product(
            [
                diffprivlib.Geometric(epsilon=1),
                Truncated(epsilon=1, lower=0, upper=9),
                Folded(epsilon=1, lower=0, upper=9),
            ],
            ["randomise", "bias", "variance", "mse"],
        )
    },
}


#: Moments are functions of any int, and a measurement of arrays takes none.
NO_INT64 = {call for call in COUNTED if re.match("pmf|bias|variance|mse|measurement", call)}


@pytest.mark.parametrize("call", COUNTED)
def test_counts_that_are_no_integers_raise(call: str) -> None:
    for counts in NOT_COUNTS:
        with pytest.raises(TypeError, match=r"\b(counts|arg)\b|masked"):
            COUNTED[call](counts)


@pytest.mark.parametrize("call", COUNTED)
def test_errors_are_independent_of_data(call: str) -> None:
    for carrier in CARRIERS.values():
        outcomes = set()
        for seed in range(6):
            rng = np.random.default_rng(seed)
            first = rng.choice([-(2**63), 2**63 - 1, rng.integers(-(2**63), 2**63 - 1), 5])
            with pytest.raises(TypeError, match=r"\b(counts|arg)\b|masked") as error:
                COUNTED[call](carrier(np.array([first, *rng.permutation(9)])))
            # With its causes and notes.
            outcomes.add("".join(traceback.format_exception(error.value)))
        assert len(outcomes) == 1, outcomes


@pytest.mark.parametrize("call", sorted(set(COUNTED) - NO_INT64))
def test_ints_beyond_int64_raise(call: str) -> None:
    release = COUNTED[call]
    for count in (2**63, -(2**63) - 1, 2**300):
        for counts in (count, [1, count], [[1], [count]], range(count, count + 1)):
            with pytest.raises(OverflowError, match="int64"):
                release(counts)
    with pytest.raises(OverflowError, match="int64"):
        release([np.uint64(2**63)])


# out

HUGE = GeometricMechanism.from_scale(2.0**80)


def keyed(counts: Any, *, out: Any) -> Any:
    return release_not_private(HUGE, counts, KEY, out=out)


@pytest.mark.parametrize(
    "out",
    [
        np.full(3, 9, np.uint64),
        np.full(3, 9.0),
        np.ma.array([9, 9, 9]),
        [9, 9, 9],
        ArrayLike(),
        9,
        memoryview(b"9"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_out_of_other_type_raises(out: Any) -> None:
    before = np.copy(out)
    for counts, release in itertools.product(
        (np.zeros(3, np.int64), [0, 0, 0]), (HUGE.release, keyed)
    ):
        with pytest.raises(TypeError, match="out"):
            release(counts, out=out)
    assert np.array_equal(before, np.copy(out))


@pytest.mark.parametrize("shape", [(2,), (1, 3), (0,)])
def test_out_of_other_shape_raises(shape: tuple[int, ...]) -> None:
    out = np.full(shape, 9)
    counted = 5, np.int64(5), np.array(5), np.zeros(3, np.int64)
    for counts, release in itertools.product(counted, (HUGE.release, keyed)):
        with pytest.raises(ValueError, match="out is of shape"):
            release(counts, out=out)
    assert (out == 9).all()


def test_out_that_is_read_only_or_shares_items_raises() -> None:
    memory = np.full(8, 9)
    frozen = memory[:1].copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        HUGE.release([5], out=frozen)
    for out in (
        sliding_window_view(memory, 5, writeable=True),
        np.broadcast_to(memory[:5], (4, 5)),
        as_strided(memory, (4, 5), (0, 8)),
        as_strided(memory, (4, 5), (8, 0)),
    ):
        with pytest.raises(ValueError, match=r"out (is read-only|has items)"):
            HUGE.release(np.zeros((4, 5), np.int64), out=out)
    assert (memory == 9).all()
    assert frozen[0] == 9


@pytest.mark.parametrize(
    ("release", "counts", "dtype", "error"),
    [
        (GeometricMechanism(1, bounds=(0, 300)).release, np.zeros(3, "u1"), "u1", OverflowError),
        (HUGE.release, np.zeros(3, "u1"), "u1", ValueError),
        (GeometricMechanism.from_scale(2.0**300).release, np.zeros(3, "i1"), "i1", ValueError),
        *((HUGE.release, counts, "i8", TypeError) for counts in ([1, 2, True], np.zeros(3))),
        (HUGE.release, [1, 2, 2**63], "i8", OverflowError),
    ],
)
def test_out_is_unchanged_after_errors(
    release: Callable[..., Any], counts: Any, dtype: str, error: type[Exception]
) -> None:
    out = np.full(3, 9, dtype)
    with pytest.raises(error):
        release(counts, out=out)
    assert (out == 9).all()


# Arrays of other libraries


def of_library(name: str, **methods: Any) -> Any:
    """Return an object of a class like that of another library."""
    module, kind = name.split(".")
    return type(kind, (), {"__module__": module, **methods})()


def made(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    return np.array([3, 5])


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        (sparse.csr_array([[3, 5]]), "counts.toarray()"),
        (sparse.coo_matrix([[3, 5]]), "counts.toarray()"),
        (of_library("torch.Tensor", __array__=made), "numpy.asarray(counts)"),
        # Newer versions of xarray offer their arrays as columns of Arrow too.
        (of_library("xarray.DataArray", __array__=made), "numpy.asarray(counts)"),
        (
            of_library("xarray.DataArray", __array__=made, __arrow_c_stream__=made),
            "numpy.asarray(counts)",
        ),
    ],
)
def test_arrays_of_other_libraries_are_refused_with_the_line_that_converts_them(
    counts: Any, line: str
) -> None:
    mechanism = GeometricMechanism.from_scale(0)
    with pytest.raises(TypeError, match=re.escape(line)):
        mechanism.release(counts)
    converted = eval(line, {"counts": counts, "numpy": np})
    assert mechanism.release(converted).ravel().tolist() == [3, 5]
    with pytest.raises(TypeError, match=re.escape(line).replace("counts", "(counts|released)")):
        mechanism.confidence_interval(counts, alpha=0.05)


def test_sparse_columns_are_refused_with_the_line_that_converts_them() -> None:
    counts = pd.Series(pd.arrays.SparseArray([3, 5]))
    mechanism = GeometricMechanism.from_scale(0)
    with pytest.raises(TypeError, match=r"sparse\[int64, 0\] .* sparse\.to_dense\(\)"):
        mechanism.release(counts)
    assert mechanism.release(counts.sparse.to_dense()).tolist() == [3, 5]


# Words

#: Numbers in messages that are never 1, by file.
NEVER_ONE = {
    ("_inputs/columns.py", "found"),
    ("_inputs/labels.py", "len(items)"),  # 1 is handled above it
    ("_inputs/parameters.py", "x.bit_length()"),
    ("_inputs/parameters.py", "value.bit_length()"),
    ("accounting/_compose.py", "groups.total()"),
    ("certificate.py", "self.limb_bits * (limbs + 1)"),
    ("cli.py", "n"),
    ("frames/_groups.py", "design.cells"),
    ("frames/_file.py", "said.rows"),
    ("measurement/_counting.py", "records.ndim"),
    ("measurement/_counting.py", "array.ndim"),
    ("measurement/_steps.py", "n"),
    ("remap.py", "limit"),
    ("_journal.py", "len(line)"),
    ("_published.py", "len(text)"),
    ("_published.py", "values"),
    ("_published.py", "len(whole)"),
    ("_published.py", "len(rows)"),
    ("_published.py", "size"),
    ("frames/_top.py", "cells"),
}
VERB = "contains|reaches|differs|occurs|of|is|has|was|does|without|beyond|reads|and"


def test_numbers_of_things_have_a_singular() -> None:
    """It said "1 digits": only geomdp._notebook.many adds an "s" to what may be one thing."""
    package, found = Path(m.__file__).parents[1], set()
    for path in package.rglob("*.py"):
        for text in ast.walk(ast.parse(path.read_text())):
            if not isinstance(text, ast.JoinedStr):
                continue
            for value, after in itertools.pairwise(text.values):
                if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                number = ast.unparse(value.value)
                thing = re.match(rf" (?!{VERB})(\w+ )?(?!{VERB})[a-z]+s\b", str(after.value))
                if thing and not re.fullmatch("[A-Z_]+", number):
                    found.add((path.relative_to(package).as_posix(), number))
    found.discard(("_notebook.py", "n"))
    assert found == NEVER_ONE
