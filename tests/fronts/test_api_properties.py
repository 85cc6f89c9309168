"""Properties of the Python layer for any layout, dtype and parameter."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from numpy.typing import NDArray

import geomdp.measurement as m
import unsigned
from calls import BOUNDED, CALLS, CENSORED, NOISE
from geomdp import GeometricMechanism, accuracy, sample_two_sided_geometric
from geomdp._inputs.arrays import DTYPES
from geomdp._numerics import sum_tails
from geomdp.compat import diffprivlib, smartnoise
from geomdp.distribution import CensoredGeometric
from geomdp.testing import release_not_private

Counts: TypeAlias = NDArray[Any]

KEY = bytes(range(100, 132))
#: The documented exceptions for bad input.
DOCUMENTED = (TypeError, ValueError, OverflowError, KeyError)


def examples(n: int) -> settings:
    """Settings with the same examples in every run."""
    return settings(max_examples=n, derandomize=True, deadline=None, database=None)


class Subclass(np.ndarray[Any, Any]):
    """Fails if a calculation dispatches to the subclass."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a ufunc of a subclass was called")

    def __array_finalize__(self, _: Any) -> None:
        self.seen = True


def values(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Counts:
    """Return counts at the limits of a dtype, near 0, and anywhere."""
    limits = np.iinfo(dtype)
    anywhere = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype)
    small = rng.integers(0, 20, n).astype(dtype)
    corners = np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype)
    return np.choose(
        rng.integers(0, 3, n), [anywhere, small, rng.choice(corners, n).astype(dtype)]
    ).astype(dtype)


class Memory(NamedTuple):
    """A view and its bytes."""

    view: Counts
    bytes: bytearray


def laid_out(draw: Any, items: Counts, dtype: np.dtype[Any], *, writable: bool) -> Memory:
    """Give an array any layout, possibly with items that share memory."""
    ndim = items.ndim
    kind = draw(st.sampled_from(["C", "F", "any"]))
    if kind != "any":
        # Contiguous arrays are not copied.
        buffer = bytearray(items.size * dtype.itemsize)
        view = np.ndarray(items.shape, dtype, buffer, order=kind)
        view[...] = items
        return Memory(view, buffer)
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -3])) for _ in range(ndim)]
    if not writable and draw(st.integers(0, 3)) == 0:
        steps = [0 if draw(st.booleans()) else step for step in steps]
    order = draw(st.permutations(range(ndim)))
    offset = draw(st.sampled_from([0, 0, 0, 1, 8]))
    shape = [max(1, n * abs(step)) if n else 0 for n, step in zip(items.shape, steps, strict=True)]
    shape = [1 if step == 0 and n else n for n, step in zip(shape, steps, strict=True)]
    buffer = bytearray(offset + math.prod(shape) * dtype.itemsize)
    base = np.ndarray([shape[axis] for axis in order], dtype, buffer, offset)
    base = base.transpose(np.argsort(order)) if ndim else base
    view = base[tuple(slice(None, None, step or None) for step in steps)] if ndim else base
    view = np.broadcast_to(view, items.shape) if 0 in steps else view
    if 0 in steps:
        first = tuple(slice(0, 1) if step == 0 else slice(None) for step in steps)
        base[tuple(slice(None, None, step or None) for step in steps)] = items[first]
    else:
        view[...] = items
    if draw(st.integers(0, 5)) == 0:
        view = view.view(Subclass)
    if not writable and draw(st.booleans()):
        view.flags.writeable = False
    return Memory(view, buffer)


shapes = st.lists(st.sampled_from([2, 2, 3, 3, 4, 5, 1, 0]), max_size=4).map(tuple)
dtypes = st.sampled_from([*DTYPES.values()])
orders: Any = st.sampled_from("===<>")


@st.composite
def memories(
    draw: st.DrawFn, *, least: int | None = None, most: int | None = None, writable: bool = False
) -> Memory:
    """Views of counts, from `least` to `most` if given."""
    dtype = draw(dtypes).newbyteorder(draw(orders))
    shape = draw(shapes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    items = values(rng, dtype, math.prod(shape))
    if least is not None and most is not None:
        items = (items % (most - least + 1) + least).astype(dtype)
    return laid_out(draw, items.reshape(shape), dtype, writable=writable)


def native(view: Counts) -> Counts:
    """Return the same counts in C order and native byte order."""
    return np.array(view, view.dtype.newbyteorder("="), order="C", subok=False)


def expected_noise(mechanism: GeometricMechanism, view: Counts) -> list[Counts]:
    """Return the permitted results: noise in item order or, in Fortran order, in memory order."""
    plain = native(view)
    results = [release_not_private(mechanism, plain, KEY)]
    if view.flags.f_contiguous and not view.flags.c_contiguous:
        results.append(release_not_private(mechanism, np.ascontiguousarray(plain.T), KEY).T)
    return results


@st.composite
def mechanisms(draw: st.DrawFn, dtype: np.dtype[Any]) -> GeometricMechanism:
    """Mechanisms of any scale, with or without bounds within a dtype."""
    limits = np.iinfo(dtype)
    inside = st.integers(limits.min, limits.max)
    pairs = st.tuples(inside, inside).map(sorted).map(tuple)
    bounds: Any = draw(st.just(unsigned.limits(dtype)) | pairs)
    scales: Any = st.sampled_from(
        [0, 5e-324, Fraction(1, 10**400), 0.3, 3, Fraction(200, 7), 2.0**70]
    )
    return GeometricMechanism.from_scale(draw(scales), bounds)


def same(one: Counts, other: Counts) -> bool:
    return one.shape == other.shape and bool((np.asarray(one) == np.asarray(other)).all())


# Releases


@examples(150)
@given(st.data(), memories())
def test_release_is_independent_of_layout(data: st.DataObject, memory: Memory) -> None:
    view, before = memory.view, bytes(memory.bytes)
    mechanism = data.draw(mechanisms(view.dtype.newbyteorder("=")))
    noisy = release_not_private(mechanism, view, KEY)
    assert any(same(noisy, expected) for expected in expected_noise(mechanism, view))
    assert type(noisy) is np.ndarray
    assert (noisy.dtype, noisy.shape) == (view.dtype, view.shape)
    assert noisy.flags.writeable
    assert not np.may_share_memory(noisy, view)
    assert memory.bytes == before
    fresh = mechanism.release(view)
    assert type(fresh) is np.ndarray
    assert (fresh.dtype, fresh.shape) == (view.dtype, view.shape)
    lower, upper = mechanism.bounds or (np.iinfo(view.dtype).min, np.iinfo(view.dtype).max)
    assert all(lower <= y <= upper for y in fresh.ravel().tolist())
    assert memory.bytes == before


@examples(120)
@given(memories(), st.integers(-50, 100), st.integers(0, 27))
def test_bounded_noise_is_independent_of_dtype(memory: Memory, lower: int, width: int) -> None:
    view = memory.view
    lower = max(lower, int(np.iinfo(view.dtype).min))
    bounds = lower, lower + width
    mechanism = GeometricMechanism(0.4, bounds=bounds)
    clamped = [min(max(x, bounds[0]), bounds[1]) for x in view.ravel().tolist()]
    counts = np.array(clamped, np.int64).reshape(view.shape)
    plain = release_not_private(mechanism, counts, KEY)
    noisy = release_not_private(mechanism, native(view), KEY)
    assert same(noisy, plain)


@examples(300)
@given(st.data(), memories())
def test_out_of_any_layout(data: st.DataObject, memory: Memory) -> None:
    view = memory.view
    dtype = view.dtype.newbyteorder(data.draw(st.sampled_from("||S")))
    out = laid_out(data.draw, np.zeros(view.shape, dtype), dtype, writable=True)
    mechanism = data.draw(mechanisms(view.dtype.newbyteorder("=")))
    counts_before, out_before = bytes(memory.bytes), bytes(out.bytes)
    assert release_not_private(mechanism, view, KEY, out=out.view) is out.view
    assert any(same(out.view, expected) for expected in expected_noise(mechanism, view))
    assert memory.bytes == counts_before
    # The bytes between the items of out are unchanged.
    np.asarray(out.view)[...] = 0
    assert out.bytes == out_before


def views(n: int) -> Iterator[Callable[[Counts], Counts]]:
    """Yield views of parts of a square array, all of one shape."""
    yield lambda x: x[:n, :n]
    yield lambda x: x[1:, 1:]
    yield lambda x: x[:n, :n].T
    yield lambda x: x[1:, :n][::-1]
    yield lambda x: x[:n, 1:][:, ::-1]
    yield lambda x: x[1:, 1:][::-1, ::-1].T
    yield lambda x: x.reshape(-1)[: n * n].reshape(n, n)
    yield lambda x: x.reshape(-1)[1 : 1 + n * n].reshape(n, n)
    yield lambda x: x.reshape(-1)[1 : 1 + n * n][::-1].reshape(n, n)


@examples(150)
@given(st.sampled_from(range(9)), st.sampled_from(range(9)), dtypes, orders, st.integers(1, 60))
@example(6, 7, np.dtype("int32"), "=", 60)
@example(7, 6, np.dtype("uint64"), "=", 60)
@example(6, 8, np.dtype("int8"), "=", 60)
def test_out_may_overlap_the_counts(
    source: int, target: int, dtype: np.dtype[Any], order: Any, n: int
) -> None:
    kinds = list(views(n))
    rng = np.random.default_rng(n)
    whole = values(rng, dtype.newbyteorder(order), (n + 1) ** 2).reshape(n + 1, n + 1)
    mechanism = GeometricMechanism(0.3, bounds=unsigned.limits(dtype))
    alone = whole.copy()
    choices = expected_noise(mechanism, kinds[source](alone))
    out = kinds[target](whole)
    assert release_not_private(mechanism, kinds[source](whole), KEY, out=out) is out
    assert any(same(out, choice) for choice in choices)
    kinds[target](alone)[...] = out
    assert same(whole, alone)


# Scale 0 adds no noise: only clamping or folding remains


def folded(x: int, twice_lower: int, twice_upper: int) -> int:
    """Reflect x at the bounds until it lies inside."""
    width = twice_upper - twice_lower
    if not width:
        return twice_lower // 2
    place = (2 * x - twice_lower) % (2 * width)
    return (twice_lower + min(place, 2 * width - place)) // 2


@examples(120)
@given(st.data(), memories())
def test_scale_zero_clamps(data: st.DataObject, memory: Memory) -> None:
    view, before = memory.view, bytes(memory.bytes)
    limits = np.iinfo(view.dtype)
    inside = st.integers(limits.min, limits.max)
    lower, upper = sorted(data.draw(st.tuples(inside, inside)))
    wanted = [min(max(x, lower), upper) for x in view.ravel().tolist()]
    T = view.dtype.newbyteorder("=")
    space = m.VectorDomain(m.AllDomain(T)), m.L1Distance(T)
    truncated = diffprivlib.GeometricTruncated(epsilon=1, sensitivity=0, lower=lower, upper=upper)
    calls: list[Callable[[Any], Any]] = [
        GeometricMechanism.from_scale(0, (lower, upper)).release,
        lambda x: sample_two_sided_geometric(x, 0.0, (lower, upper)),
        truncated.randomise,
        lambda x: smartnoise.simple_geometric_mechanism(x, 1, 0, lower, upper),
    ]
    if view.ndim:
        calls.append(m.make_geometric(*space, 0, (lower, upper)))
    for call in calls:
        result = call(view)
        assert type(result) is np.ndarray
        assert (result.dtype, result.shape) == (view.dtype, view.shape)
        assert result.ravel().tolist() == wanted
        assert not np.may_share_memory(result, view)
        assert memory.bytes == before


@examples(120)
@given(st.data(), memories())
def test_scale_zero_folds(data: st.DataObject, memory: Memory) -> None:
    view, before = memory.view, bytes(memory.bytes)
    limits = np.iinfo(view.dtype)
    least = data.draw(st.integers(limits.min, limits.max))
    width = data.draw(st.integers(0, 60) | st.integers(0, 2**63 - 1))
    twice = 2 * least - data.draw(st.integers(0, 1)), 2 * min(least + width, limits.max)
    if twice[1] - twice[0] >= 2**64:
        twice = twice[0], twice[0] + 2**64 - 2
    lower, upper = (Fraction(bound, 2) for bound in twice)
    mechanism = diffprivlib.GeometricFolded(epsilon=1, sensitivity=0, lower=lower, upper=upper)
    result = mechanism.randomise(view)
    assert (result.dtype, result.shape) == (view.dtype, view.shape)
    wanted = [folded(x, *twice) for x in view.ravel().tolist()]
    assert result.ravel().tolist() == wanted
    assert [mechanism.randomise(x) for x in native(view).ravel()] == wanted
    assert memory.bytes == before


# Functions of counts are independent of the layout

RATIOS = cache(sum_tails.greatest_ratio)


def ratios(x: Counts) -> Any:
    """Return intervals of ratios: each of few different pairs is searched once, in milliseconds."""
    with mock.patch.object(sum_tails, "greatest_ratio", RATIOS):
        return accuracy.ratio_confidence_interval(BOUNDED, x, np.full(x.shape, 15), 0.05)


FUNCTIONS: dict[str, Callable[[Counts], Any]] = {
    "accuracy": lambda x: BOUNDED.accuracy(0.05, counts=x),
    "simultaneous_accuracy": lambda x: accuracy.simultaneous_accuracy(BOUNDED, 0.05, counts=x),
    "confidence_interval": lambda x: BOUNDED.confidence_interval(x, 0.05),
    "one-sided": lambda x: BOUNDED.confidence_interval(x, 0.05, side="lower"),
    "sum": lambda x: accuracy.sum_confidence_interval(
        BOUNDED, x, 0.05, weights=np.ones(x.shape, int)
    ),
    "ratio": ratios,
    "bias": lambda x: accuracy.bias(BOUNDED, x),
    "variance": lambda x: accuracy.variance(BOUNDED, x, distribution="folded"),
    "mean_absolute_error": lambda x: accuracy.mean_absolute_error(
        BOUNDED, x, distribution="truncated"
    ),
    "scale_to_accuracy": lambda x: accuracy.scale_to_accuracy(x, 0.05),
    "accuracy_to_scale": lambda x: accuracy.accuracy_to_scale(x, 0.05),
    "epsilon": lambda x: accuracy.accuracy_to_epsilon(x, 0.05, sensitivity=3),
    "pmf": NOISE.pmf,
    "logcdf": NOISE.logcdf,
    "sf": CENSORED.sf,
    "censored pmf": CENSORED.pmf,
    "many centres": lambda x: CensoredGeometric(x, 2, (0, 20)).cdf(7),
    "diffprivlib mse": diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=20).mse,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@examples(25)
@given(memory=memories(least=0, most=20))
def test_functions_are_independent_of_layout(name: str, memory: Memory) -> None:
    view, before = memory.view, bytes(memory.bytes)
    results, plain = FUNCTIONS[name](view), FUNCTIONS[name](native(view))
    assert memory.bytes == before
    pairs = zip(results, plain, strict=True) if isinstance(plain, tuple) else [(results, plain)]
    for result, wanted in pairs:
        assert np.shape(result) == np.shape(wanted)
        assert np.shape(result)[: view.ndim] == (view.shape if np.ndim(wanted) else ())
        np.testing.assert_array_equal(result, wanted)
        if name in {"confidence_interval", "one-sided"}:
            assert (result.dtype, type(result)) == (view.dtype, np.ndarray)
            # The upper end of an interval is open where it reaches the bound.
            most = np.iinfo(view.dtype).max
            assert ((np.asarray(result) >= 0) & (np.asarray(result) <= most)).all()


# Parameters

numpy_numbers = st.sampled_from(
    [np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.longdouble]
).flatmap(lambda T: st.integers(0 if T is np.uint16 else -3, 100).map(T))
numbers = st.one_of(
    st.integers(-5, 50),
    st.integers(-(10**400), 10**400),
    st.sampled_from([10**400, -(10**400), 2**63, 2**64, 2**127, 2**128, 0, 1]),
    st.floats(),
    st.sampled_from([5e-324, 2.0**-1022, math.nextafter(1, 0), 1e308, -0.0, math.inf, math.nan]),
    st.fractions(),
    st.sampled_from([Fraction(1, 10**400), Fraction(10**400, 3), Fraction(1, 2**1074)]),
    numpy_numbers,
)
oddities: Any = [
    np.True_,
    np.timedelta64(3, "s"),
    np.array(1.0),
    np.array([1, 2]),
    {},
]
junk = st.one_of(
    *(st.none(), st.booleans(), st.binary(max_size=3)),
    *(st.complex_numbers(), st.lists(st.integers(), max_size=3), st.sampled_from(oddities)),
)
#: What may state a real number (tests/fronts/test_vocabulary.py), and no integer.
texts = st.decimals() | st.text(max_size=3) | st.just(np.str_("1"))
anything = numbers | junk | texts


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call or its documented exception."""
    try:
        return call()
    except DOCUMENTED as error:
        return error


def accepted_or_named(name: str, call: Callable[[Any], Any], value: Any) -> None:
    result = outcome(lambda: call(value))
    if isinstance(result, Exception):
        # A noise scale of which an epsilon, or a share of it, asks too much.
        names = f"{name}|scale" if name in ("epsilon", "share") else name
        assert re.search(rf"\b({names})\b", str(result)), repr(result)
        assert len(str(result)) < 2000


@pytest.mark.filterwarnings("ignore:.*probability of a miss")
@pytest.mark.parametrize(("name", "call"), CALLS)
@examples(30)
@given(value=anything)
def test_any_parameter_is_accepted_or_named_in_the_error(
    name: str, call: Callable[[Any], Any], value: Any
) -> None:
    accepted_or_named(name, call, value)


#: Values at which conversions of other libraries raise errors of their own, or change the value.
ODD: list[Any] = [
    *(None, True, 1j, b"", b"1", "", "1", "x", np.str_("1"), "\ud800", "9" * 5000, object()),
    *(math.nan, math.inf, 10**400, Fraction(10**400, 3), 5e-324, np.float16(0.5), np.longdouble(1)),
    *(Decimal(text) for text in ("1", "NaN", "sNaN", "Infinity", "1E+999999")),
    *(np.True_, np.timedelta64(3, "s"), np.datetime64("NaT", "s"), pd.NA, pd.NaT, pd.Timestamp(0)),
    *([], {}, set(), {1: 2}, range(2), memoryview(b"1"), ["\ud800"], [None], [math.nan]),
    *(np.array(value) for value in (1, 1.0, "1", None, [], [[1]], [0.5, math.nan], ["1", "2"])),
    *(pd.Series([1]), pd.DataFrame({"a": [1]}), np.ma.masked_array([1, 2], [True, False])),
    # Items of different shapes, and items that numpy converts.
    *([[1, 2], [3]], [1, [2, 3]], ([[0.5]], [[0.5, 0.25]]), [[0.5, 0.5], [1]], [[[1]], [1]]),
    *([np.ones(2), np.ones(3)], [np.ones((1, 3)), np.ones((1, 1))], [np.ones(1), 1]),
    *((np.zeros((2, 2), np.int64), np.zeros((2, 1), np.int64)), deque([np.ones((1, 2)), [[1]]])),
    *([np.ma.masked_array([1], [True])], [[1, np.ma.masked_array([0.5, 0.5], [True, False])]]),
    *([np.array([1], "m8[ns]")], [Decimal("sNaN")], [np.array(1)], [np.array([1, 2])]),
]


@pytest.mark.filterwarnings("ignore:.*probability of a miss")
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_odd_values_are_accepted_or_named_in_the_error(
    name: str, call: Callable[[Any], Any]
) -> None:
    """A quantile of arrays that do not broadcast raised numpy's own error, which named nothing."""
    for value in [*ODD, iter([1])]:  # new for each call, since the first use ends it
        accepted_or_named(name, call, value)
