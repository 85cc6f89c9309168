"""The ideal distributions, against mpmath in hundreds of digits, sums, scipy and releases."""

import copy
import itertools
import math
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from numpy.typing import NDArray
from scipy import stats

from exact import power, real
from geomdp import GeometricMechanism, distribution
from geomdp._analysis import moments
from geomdp._analysis.floats import Powers
from geomdp.distribution import CensoredGeometric, TwoSidedGeometric
from statistics_ import rejects

DIGITS = 350
#: The documented accuracy.
ULPS = 4

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NAMES = ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"]
SCALES = [
    *(1e-3, 1 / 745, 1 / 720, 0.0137, 0.1, Fraction(1, 3), 1, math.pi, 20, 1000),
    *(Fraction(10**6, 3), 1e9, 2**40, Fraction(2**160 + 1, 2**100), 1e18, 2**64, 1e30, 1e300),
]
INT64 = (-(2**63), 2**63 - 1)
UINT64 = (0, 2**64 - 1)
BOUNDS = [(0, 1), (-3, 4), (0, 30), (-(10**6), 10**7), (2**63 - 9, 2**63 + 9), INT64, UINT64]

scales = st.one_of(
    st.floats(1e-3, 1e300),
    st.floats(0.1, 1000),
    st.builds(Fraction, st.integers(1, 2**90), st.integers(1, 2**60)).filter(lambda s: s > 1e-3),
)
int64s = st.integers(*INT64)

each_name = pytest.mark.parametrize("name", NAMES)
each_scale = pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):.6g}")
each_quantile = pytest.mark.parametrize("name", ["ppf", "isf"])


@pytest.fixture(autouse=True)
def _no_floating_point_flags() -> Iterator[None]:
    with np.errstate(all="raise"), mpmath.workdps(DIGITS):
        yield


# The exact distributions


def noise(rate: Fraction, k: int) -> dict[str, mpf]:
    """Return each function at k, for the noise without bounds."""
    a, loss = power(rate, 1), real(rate)
    zero, edge = -mpmath.expm1(-loss) / (1 + a), mpmath.log1p(a)
    tail = power(rate, k + 1 if k >= 0 else -k) / (1 + a)
    log_tail = -loss * (k + 1 if k >= 0 else -k) - edge
    tails = [(tail, log_tail), (1 - tail, mpmath.log1p(-tail))]
    (sf, logsf), (cdf, logcdf) = tails if k >= 0 else reversed(tails)
    # The logarithm of P(Z = 0), accurate near 0 and near 1.
    log_zero = mpmath.log(zero) if zero < 0.5 else mpmath.log1p(-2 * a / (1 + a))
    return {
        "pmf": zero * power(rate, abs(k)),
        "logpmf": log_zero - loss * abs(k),
        "cdf": cdf,
        "logcdf": logcdf,
        "sf": sf,
        "logsf": logsf,
    }


def release(rate: Fraction, center: int, bounds: tuple[int, int], k: int) -> dict[str, mpf]:
    """Return each function at k, for clamped noise."""
    lower, upper = bounds
    center = min(max(center, lower), upper)
    law = noise(rate, k - center)
    if k < lower or k >= upper:
        zero, one = (mpf(0), -mpmath.inf), (mpf(1), mpf(0))
        (cdf, logcdf), (sf, logsf) = (zero, one) if k < lower else (one, zero)
        law |= {"cdf": cdf, "logcdf": logcdf, "sf": sf, "logsf": logsf}
    if k < lower or k > upper:
        law |= {"pmf": mpf(0), "logpmf": -mpmath.inf}
    elif lower == upper:
        law |= {"pmf": mpf(1), "logpmf": mpf(0)}
    elif k == lower:
        law |= {"pmf": law["cdf"], "logpmf": law["logcdf"]}
    elif k == upper:
        before = noise(rate, k - 1 - center)
        law |= {"pmf": before["sf"], "logpmf": before["logsf"]}
    return law


def ulps(computed: float, exact: mpf) -> float:
    """Return the error in units in the last place of the exact value."""
    assert type(computed) is float
    nearest = float(exact) if mpmath.isfinite(exact) else -math.inf
    if math.isinf(nearest):
        return 0 if computed == nearest else math.inf
    return float(abs(mpf(computed) - exact) / math.ulp(nearest))


def check(law: Any, k: int, exact: dict[str, mpf]) -> None:
    for name, value in exact.items():
        computed = getattr(law, name)(k)
        assert ulps(computed, value) <= ULPS, (law, name, k, computed)


def reach(scale: float | Fraction) -> int:
    """Return about where the probabilities underflow."""
    return int(760 * Fraction(scale)) + 3


def places(scale: float | Fraction) -> list[int]:
    """Return distances near 0, near powers of two, and along the tails."""
    near = {0, 1, 2, 3, 10}
    powers = {2**n + d for n in (8, 21, 31, 32, 33, 52, 53, 54, 62, 63) for d in (-1, 0, 1)}
    top = min(reach(scale), 2**64 - 1)
    along = {top * n // 47 for n in range(48)} | {int(top**share) for share in (0.3, 0.6, 0.9)}
    deep = {int(Fraction(scale) * n) for n in (700, 708, 709, 720, 740, 743, 744, 745, 746)}
    return sorted(d for d in near | powers | along | deep | {2**64 - 1} if d < 2**64)


# Accuracy


@each_scale
def test_noise_is_accurate_to_a_few_ulp(scale: float | Fraction) -> None:
    law, rate = TwoSidedGeometric(scale), 1 / Fraction(scale)
    for distance in places(scale):
        for k in {distance, -distance, -distance - 1}:
            check(law, k, noise(rate, k))


@each_scale
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_releases_are_accurate_to_a_few_ulp(
    scale: float | Fraction, bounds: tuple[int, int]
) -> None:
    lower, upper = bounds
    for center in {lower, upper, (lower + upper) // 2, min(lower + 2, upper)}:
        law = CensoredGeometric(center, scale, bounds)
        near = {center + sign * d for d in places(scale)[::10] for sign in (-1, 1)}
        edges = {bound + d for bound in bounds for d in (-1, 0, 1)}
        for k in {k for k in near if lower <= k <= upper} | edges | {-(2**80), 2**80}:
            check(law, k, release(1 / Fraction(scale), center, bounds, k))


@settings(deadline=None)
@given(scale=scales, share=st.floats(-1, 1), low=st.integers(-3, 3))
def test_noise_is_accurate_at_random_places(
    scale: float | Fraction, share: float, low: int
) -> None:
    k = int(min(reach(scale), 2**64 - 8) * Fraction(share)) + low
    check(TwoSidedGeometric(scale), k, noise(1 / Fraction(scale), k))


@settings(deadline=None)
@given(scale=scales, center=int64s, ends=st.tuples(int64s, int64s), k=int64s)
@example(scale=1e17, center=INT64[0], ends=INT64, k=INT64[1])
@example(scale=1e17, center=INT64[1], ends=INT64, k=INT64[0])
def test_releases_are_accurate_at_random_places(
    scale: float | Fraction, center: int, ends: tuple[int, int], k: int
) -> None:
    bounds = min(ends), max(ends)
    law = CensoredGeometric(center, scale, bounds)
    check(law, k, release(1 / Fraction(scale), center, bounds, k))


@settings(deadline=None)
@given(
    scale=st.one_of(
        st.floats(5e-324, 1e-3),
        st.floats(1e300, allow_infinity=False),
        st.builds(Fraction, st.integers(1, 10**330)),
    ),
    k=st.one_of(st.integers(-5, 5), st.integers(-(10**330), 10**330)),
)
@example(scale=5e-324, k=2**64)
@example(scale=Fraction(10) ** 400, k=10**400)
@example(scale=Fraction(1, 10**400), k=-1)
@example(scale=sys.float_info.max, k=-(10**308))
@example(scale=sys.float_info.max, k=10**400)
def test_scales_and_integers_of_any_size(scale: float | Fraction, k: int) -> None:
    check(TwoSidedGeometric(scale), k, noise(1 / Fraction(scale), k))


@given(scale=scales, steps=st.lists(st.integers(0, 2**64 - 1), min_size=1))
@example(scale=math.pi, steps=[2**64 - 1, 2**32 - 1, 2**53 + 1])
def test_products_are_exact_to_70_bits(scale: float | Fraction, steps: list[int]) -> None:
    rate = 1 / Fraction(scale)
    floats = np.array([*map(float, steps), 0, 2.0**64 + 2.0**12, 1e100, 1.7e308])
    for array in (np.array(steps, np.uint64), floats, np.array([0, *steps, 10**50], object)):
        high, low = Powers(rate).products(array)
        for n, *parts in zip(array.tolist(), high.tolist(), low.tolist(), strict=True):
            exact = rate * int(n)
            if exact < sys.float_info.max:
                assert abs(sum(map(Fraction, parts)) - exact) <= exact / 2**70
                assert abs(parts[1]) <= math.ulp(parts[0]) / 2


# Sums


@pytest.mark.parametrize("scale", [0.05, 0.3, 1, Fraction(7, 2), 50, 1e5])
@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (-3, 4), (5, 90)], ids=str)
def test_probabilities_add_up(scale: float | Fraction, bounds: tuple[int, int]) -> None:
    lower, upper = bounds
    outputs = np.arange(lower, upper + 1)
    for center in range(lower - 2, upper + 3):
        law = CensoredGeometric(center, scale, bounds)
        masses = law.pmf(outputs).tolist()
        assert math.isclose(math.fsum(masses), 1, rel_tol=2**-51)
        for n, (below, above) in enumerate(zip(law.cdf(outputs), law.sf(outputs), strict=True)):
            assert math.isclose(math.fsum(masses[: n + 1]), below, rel_tol=2**-49)
            assert math.isclose(math.fsum(masses[n + 1 :]), above, rel_tol=2**-49)
            assert math.isclose(below + above, 1, rel_tol=2**-51)


@given(scale=st.floats(0, 100), k=st.integers(-1000, 1000))
def test_release_is_clamped_noise(scale: float, k: int) -> None:
    law, free = CensoredGeometric(3, scale, (-50, 60)), TwoSidedGeometric(scale)
    assert law.cdf(k) == (0 if k < -50 else 1 if k >= 60 else free.cdf(k - 3))
    assert law.sf(k) == (1 if k < -50 else 0 if k >= 60 else free.sf(k - 3))


@pytest.mark.parametrize("scale", [0.2, 0.5, 1, 3.7, 20, 100])
def test_scipy_agrees(scale: float) -> None:
    ours, theirs = TwoSidedGeometric(scale), stats.dlaplace(1 / scale)
    # scipy's sf is 1 - cdf, and its logarithms follow: accurate unless that is small.
    k, q = np.arange(-10 * scale // 1, 10 * scale), np.linspace(0, 1, 41)
    with np.errstate(all="ignore"):
        for name in NAMES:
            wanted = getattr(theirs, name)(k)
            np.testing.assert_allclose(getattr(ours, name)(k), wanted, rtol=1e-9)
        for name in ("ppf", "isf"):
            np.testing.assert_array_equal(getattr(ours, name)(q), getattr(theirs, name)(q))
        for confidence in (0, 0.3, 0.95, 0.999, 1):
            assert ours.interval(confidence) == theirs.interval(confidence)
        for name in ("mean", "var", "std", "median", "entropy"):
            assert math.isclose(getattr(ours, name)(), getattr(theirs, name)(), rel_tol=1e-9)
        assert ours.support() == theirs.support()


# Arguments of every kind


EXAMPLES: list[Any] = [TwoSidedGeometric(7.5), CensoredGeometric(3, 7.5, (-20, 100))]
each_law = pytest.mark.parametrize("law", EXAMPLES, ids=lambda law: type(law).__name__)


def one_by_one(law: Any, name: str, k: NDArray[Any]) -> NDArray[np.float64]:
    values = [getattr(law, name)(int(item)) for item in k.reshape(-1)]
    return np.array(values, np.float64).reshape(k.shape)


@each_law
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_of_every_dtype(law: Any, order: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    near = range(max(-30, limits.min), 128)
    k = np.array([*near, limits.min, limits.max], np.dtype(dtype).newbyteorder(order))
    kept = k.copy()
    for name in NAMES:
        values = getattr(law, name)(k)
        assert type(values) is np.ndarray
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, one_by_one(law, name, k))
        single = getattr(law, name)(k[0])
        assert type(single) is float
        assert single == values[0]
    np.testing.assert_array_equal(k, kept)


@each_law
@each_name
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8", ">f8"])
def test_floats(law: Any, name: str, dtype: str) -> None:
    k = np.arange(-30, 131, dtype=dtype)
    np.testing.assert_array_equal(getattr(law, name)(k), one_by_one(law, name, k))
    between = getattr(law, name)(k + np.array(0.5, dtype))
    if "pmf" in name:
        assert (between == (-math.inf if name == "logpmf" else 0)).all()
    else:
        np.testing.assert_array_equal(between, getattr(law, name)(k))
    for single in (2.0, np.float16(2), np.array(2.0)):
        assert getattr(law, name)(single) == getattr(law, name)(2)


@each_law
def test_nan_and_infinity(law: Any) -> None:
    k = np.array([math.nan, -math.inf, 0, math.inf])
    kept = k.copy()
    zero, one = [math.nan, 0, 0], [math.nan, 0, 1]
    np.testing.assert_array_equal(law.pmf(k)[[0, 1, 3]], zero)
    np.testing.assert_array_equal(law.cdf(k)[[0, 1, 3]], one)
    np.testing.assert_array_equal(law.sf(k)[[0, 3, 1]], one)
    np.testing.assert_array_equal(law.logpmf(k)[[1, 3]], [-math.inf, -math.inf])
    np.testing.assert_array_equal(law.logcdf(k)[[1, 3]], [-math.inf, 0])
    np.testing.assert_array_equal(law.logsf(k)[[3, 1]], [-math.inf, 0])
    assert math.isnan(law.cdf(math.nan))
    np.testing.assert_array_equal(k, kept)


@pytest.mark.parametrize("scale", [1e3, 2.0**54, 1e30, 1e300, sys.float_info.max])
def test_large_floats_are_exact_integers(scale: float) -> None:
    sizes = [2.0**53 - 1, 2.0**53 + 2, 2.0**62, 2.0**62 + 2.0**10, 2.0**63, 2.0**64]
    sizes += [2.0**64 + 2.0**12, 1e30, 1e300]
    k = np.array([*sizes, *(-size for size in sizes), sys.float_info.max])
    for name in NAMES:
        values = getattr(TwoSidedGeometric(scale), name)(k)
        np.testing.assert_array_equal(values, one_by_one(TwoSidedGeometric(scale), name, k))
        for bounds in (INT64, UINT64, (2**62 + 1, 2**62 + 3)):
            law = CensoredGeometric(2**61, scale, bounds)
            np.testing.assert_array_equal(getattr(law, name)(k), one_by_one(law, name, k))


@each_law
@each_name
def test_shapes_and_layouts(law: Any, name: str) -> None:
    function = getattr(law, name)
    k = np.arange(-12, 12).reshape(2, 3, 4)
    wanted = one_by_one(law, name, k)
    np.testing.assert_array_equal(function(k), wanted)
    np.testing.assert_array_equal(function(np.asfortranarray(k)), wanted)
    np.testing.assert_array_equal(function(k[:, ::-1, ::2]), wanted[:, ::-1, ::2])
    np.testing.assert_array_equal(function(k.tolist()), wanted)
    np.testing.assert_array_equal(function(k.astype(object)), wanted)
    np.testing.assert_array_equal(function(np.broadcast_to(k[:1], (5, 3, 4)))[4], wanted[0])
    np.testing.assert_array_equal(function([-12, -11.5, np.int8(3)])[[0, 2]], function([-12, 3]))
    for shape in ((0,), (3, 0, 2)):
        for dtype in ("int8", "uint64", "float64"):
            assert function(np.zeros(shape, dtype)).shape == shape
    assert function([]).shape == (0,)
    scalar = function(np.array(5))
    assert type(scalar) is np.ndarray
    assert scalar.shape == ()
    assert scalar == function(5)
    long = np.resize(k, 3 * distribution._PART + 5)
    np.testing.assert_array_equal(function(long), np.resize(wanted, long.size))


@each_law
def test_ints_of_any_size(law: Any) -> None:
    k = [-(10**30), -(2**63) - 1, -(2**63), 0, 2**63, 2**64 - 1, 2**64, 10**30]
    for name, part in itertools.product(NAMES, (k, k[2:4], k[3:6], k[3:])):
        wanted = [getattr(law, name)(item) for item in part]
        np.testing.assert_array_equal(getattr(law, name)(part), wanted)


def test_centers_are_broadcast() -> None:
    centers = np.array([[-30], [-20], [5], [100], [101]], ">i2")
    k = np.arange(-25, 106)
    law = CensoredGeometric(centers, Fraction(15, 2), (-20, 100))
    laws = [CensoredGeometric(int(c), 7.5, (-20, 100)) for c in centers[:, 0]]
    for name in NAMES:
        wanted = [getattr(one, name)(k) for one in laws]
        np.testing.assert_array_equal(getattr(law, name)(k), wanted)
        np.testing.assert_array_equal(
            getattr(law, name)(5)[:, 0], [getattr(one, name)(5) for one in laws]
        )
    q = np.linspace(0, 1, 23)
    for name in ("ppf", "isf", "interval"):
        wanted = [getattr(one, name)(q) for one in laws]
        values = np.moveaxis(getattr(law, name)(q), -2, 0)
        np.testing.assert_array_equal(values, wanted)
        assert values.dtype == np.int64
    for name in ("mean", "var", "std", "entropy", "median"):
        values = getattr(law, name)()
        assert values.shape == (5, 1)
        assert values[:, 0].tolist() == [getattr(one, name)() for one in laws]
    lower, upper = law.support()
    assert lower.tolist() == [[-20]] * 5
    assert upper.tolist() == [[100]] * 5


def test_scalar_and_empty_centers() -> None:
    law = CensoredGeometric(np.array(3), 2, (0, 9))
    for value in (law.pmf(3), law.ppf(0.5), law.mean(), law.median(), law.support()[0]):
        assert type(value) is np.ndarray
        assert value.shape == ()
    empty = CensoredGeometric([], 2, (0, 9))
    assert empty.mean().shape == empty.pmf(3).shape == empty.ppf([0.5]).shape == (0,)
    with pytest.raises(ValueError, match="broadcast"):
        CensoredGeometric([1, 2, 3], 2, (0, 9)).pmf([1, 2])


@pytest.mark.parametrize("bounds", [(-5, 9), INT64, UINT64, (2**63, 2**63 + 4)])
def test_centers_outside_the_bounds_are_clamped(bounds: tuple[int, int]) -> None:
    lower, upper = bounds
    for center, place in ((lower - 1, lower), (upper + 1, upper), (-(10**30), lower)):
        law, other = CensoredGeometric(center, 3, bounds), CensoredGeometric(place, 3, bounds)
        assert law.median() == place
        assert law.pmf(lower + 1) == other.pmf(lower + 1)
        assert law.mean() == other.mean()
        assert law.center == center
        assert law != other


# Quantiles


PROBABILITIES = np.concatenate(
    [
        np.linspace(0, 1, 101)[1:-1],
        2.0 ** -np.arange(1, 1075),
        1 - 2.0 ** -np.arange(2, 54),
        0.5 + np.array([-1, 1, 2, -5]) * 2.0**-53,
    ]
)


def before(k: NDArray[Any]) -> NDArray[Any]:
    """Return the previous integers, or for floats the previous integers among floats."""
    if k.dtype != np.float64:
        return k - k.dtype.type(1)
    values = [item - 1 if abs(item) <= 2**53 else math.nextafter(item, -math.inf) for item in k]
    return np.array(values)


@each_quantile
@pytest.mark.parametrize(
    "scale", [*SCALES, 5e-324, Fraction(1, 10**400), sys.float_info.max, Fraction(10**400)]
)
def test_quantiles_are_the_least_that_reach_a_level(name: str, scale: float | Fraction) -> None:
    laws: list[Any] = [TwoSidedGeometric(scale)]
    for bounds in BOUNDS:
        laws += [CensoredGeometric(c, scale, bounds) for c in {*bounds, sum(bounds) // 2}]
    for law in laws:
        k = getattr(law, name)(PROBABILITIES)
        later = k > law.support()[0]
        previous = np.where(later, before(np.where(later, k, 1)), k)
        if name == "ppf":
            assert (law.cdf(k) >= PROBABILITIES).all()
            assert (law.cdf(previous) < PROBABILITIES)[later].all()
        else:
            assert (law.sf(k) <= PROBABILITIES).all()
            assert (law.sf(previous) > PROBABILITIES)[later].all()


@pytest.mark.parametrize("scale", [0.01, 0.3, 1, Fraction(7, 2), 20, 1e3, 1e9, 2.0**48])
def test_quantiles_invert_cdf_and_sf(scale: float | Fraction) -> None:
    deep = [d for d in places(scale) if d < 700 * scale and d <= 2**53 - 2]
    near = np.array(sorted({*deep, *(-d for d in deep)}))
    for law in (TwoSidedGeometric(scale), CensoredGeometric(5, scale, INT64)):
        k = near if isinstance(law, TwoSidedGeometric) else near + 5
        rises = (law.cdf(k) > law.cdf(k - 1)) & (law.cdf(k) < 1)
        np.testing.assert_array_equal(law.ppf(law.cdf(k[rises])), k[rises])
        falls = (law.sf(k) < law.sf(k - 1)) & (law.sf(k) < 1)
        np.testing.assert_array_equal(law.isf(law.sf(k[falls])), k[falls])
        assert rises.sum() > 2
        assert falls.sum() > 2


def test_quantiles_of_zero_and_one() -> None:
    law: Any = TwoSidedGeometric(2.5)
    assert law.support() == (-math.inf, math.inf)
    assert (law.ppf(0), law.ppf(1), law.isf(0), law.isf(1)) == (
        -math.inf,
        math.inf,
        math.inf,
        -math.inf,
    )
    assert law.interval(1) == (-math.inf, math.inf)
    assert law.interval(0) == (0, 0)
    for bounds in BOUNDS:
        law = CensoredGeometric(1, 2.5, bounds)
        assert law.support() == law.interval(1) == bounds
        assert (law.ppf(0), law.ppf(1)) == (law.isf(1), law.isf(0)) == bounds


@settings(deadline=None)
@given(scale=scales, center=int64s, confidence=st.floats(0, 1))
def test_intervals_have_their_confidence(
    scale: float | Fraction, center: int, confidence: float
) -> None:
    law = CensoredGeometric(center, scale, INT64)
    lower, upper = law.interval(confidence)
    tail = (1 - confidence) / 2
    assert (lower, upper) == (law.ppf(tail), law.isf(tail))
    assert lower <= upper or confidence < 1e-9
    assert lower == INT64[0] or law.cdf(lower - 1) <= tail
    assert law.sf(upper) <= tail


def test_quantile_types() -> None:
    free, small = TwoSidedGeometric(3), CensoredGeometric(4, 3, (0, 9))
    wide = CensoredGeometric(2**64 - 1, 1e18, UINT64)
    assert type(free.ppf(0.3)) is float
    assert type(small.ppf(0.3)) is type(small.isf(np.float32(0.5))) is int
    assert type(wide.ppf(Fraction(1, 3))) is int
    assert free.ppf([0.2]).dtype == np.float64
    assert small.ppf(np.float16([0.2])).dtype == small.interval([0.5])[1].dtype == np.int64
    assert wide.ppf([[0.2]]).dtype == CensoredGeometric([1], 1, UINT64).median().dtype == np.uint64
    assert wide.ppf([[0.2]]).shape == (1, 1)
    assert small.ppf(np.array(0.2)).shape == ()
    assert small.ppf([]).shape == (0,)
    assert small.ppf([0, 1, Fraction(1, 2)]).tolist() == [0, 9, 4]
    assert small.ppf(np.array([0, 1], np.int8)).tolist() == [0, 9]
    # Exact beyond 2**53 too.
    assert wide.isf(1e-9) == 2**64 - 1
    assert CensoredGeometric(2**63 + 1, 0.01, UINT64).ppf(0.5) == 2**63 + 1


def test_quantiles_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    search = distribution._least

    def counted(reached: Callable[..., Any], *rest: Any) -> Any:
        def once_more(*args: Any) -> Any:
            calls[-1] += 1
            return reached(*args)

        calls.append(0)
        return search(once_more, *rest)

    monkeypatch.setattr(distribution, "_least", counted)
    ordinary = np.linspace(0.001, 0.999, 999)
    for scale in SCALES:
        for law in (
            TwoSidedGeometric(scale),
            CensoredGeometric(INT64[1], scale, INT64),
            CensoredGeometric(0, scale, UINT64),
        ):
            law.ppf(PROBABILITIES)
            law.isf(PROBABILITIES)
            assert max(calls) <= 130
            calls.clear()
            if 1 <= scale < 2**30:
                law.ppf(ordinary)
                assert max(calls) <= 12
                calls.clear()


@given(
    top=st.integers(1, 2**64 - 1),
    answer=st.integers(0, 2**64 - 1),
    guess=st.integers(0, 2**64 - 1),
)
@example(top=2**64 - 1, answer=2**64 - 1, guess=0)
@example(top=2**64 - 1, answer=0, guess=2**64 - 1)
@example(top=2**64 - 1, answer=2**63 - 1, guess=0)
def test_search_finds_the_answer(top: int, answer: int, guess: int) -> None:
    answer, guess = min(answer, top), min(guess, top)
    calls = 0

    def reached(positions: NDArray[np.uint64], items: NDArray[np.intp]) -> NDArray[np.bool_]:
        nonlocal calls
        calls += 1
        assert items.tolist() == [0]
        assert int(positions[0]) < top
        return positions >= np.uint64(answer)

    found = distribution._least(reached, np.array([guess], np.uint64), np.uint64(0), np.uint64(top))
    assert found.tolist() == [answer]
    assert calls <= 130


# Moments


@pytest.mark.parametrize("scale", [s for s in SCALES if s < 1e30], ids=float)
def test_moments_of_noise(scale: float | Fraction) -> None:
    law, rate = TwoSidedGeometric(scale), mpf(1) / Fraction(scale).numerator
    rate *= Fraction(scale).denominator
    a = mpmath.exp(-rate)
    assert law.mean() == 0
    assert ulps(law.var(), 2 * a / (1 - a) ** 2) <= 1
    assert ulps(law.std(), mpmath.sqrt(2 * a) / (1 - a)) <= 1
    exact = mpmath.log(mpmath.coth(rate / 2)) + rate / mpmath.sinh(rate)
    assert ulps(law.entropy(), exact) <= 2


def test_moments_of_huge_noise() -> None:
    law = TwoSidedGeometric(1e300)
    assert law.var() == math.inf
    assert math.isclose(law.std(), math.sqrt(2) * 1e300)
    assert math.isclose(law.entropy(), 1 + math.log(2e300))


@pytest.mark.parametrize("scale", [0.1, 1, Fraction(7, 2), 30, 1e6])
def test_moments_are_sums(scale: float | Fraction) -> None:
    for bounds in ((0, 0), (-3, 4), (5, 60)):
        outputs = range(bounds[0], bounds[1] + 1)
        for center in {bounds[0] - 1, bounds[0], 7, bounds[1]}:
            law = CensoredGeometric(center, scale, bounds)
            masses = [release(1 / Fraction(scale), center, bounds, k)["pmf"] for k in outputs]
            mean = mpmath.fdot(masses, outputs)
            square = mpmath.fdot(masses, [(k - mean) ** 2 for k in outputs])
            entropy = -sum(p * mpmath.log(p) for p in masses)
            assert abs(law.mean() - mean) <= 2.0**-52 * max(map(abs, bounds))
            assert ulps(law.var(), square) <= 1
            assert ulps(law.std(), mpmath.sqrt(square)) <= 2
            assert ulps(law.entropy(), entropy) <= 2


def test_mean_of_large_counts_is_the_nearest_float() -> None:
    assert CensoredGeometric(2**64 - 1, 1e-3, UINT64).mean() == 2.0**64
    assert CensoredGeometric(2**53 + 1, 1, (2**53 + 1, 2**53 + 1)).mean() == 2.0**53
    # Half of the scale is added at the lower bound.
    assert CensoredGeometric(2**60, 2.0**30, (2**60, 2**63)).mean() == 2.0**60 + 2.0**29


def test_moments_are_computed_once_per_center(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = moments.of_censored

    def counted(rate: Any, lower: int, upper: int, count: int) -> Any:
        asked.append(count)
        return original(rate, lower, upper, count)

    monkeypatch.setattr(moments, "of_censored", counted)
    centers = np.tile(np.arange(5), 1000).reshape(100, 50)
    assert CensoredGeometric(centers, 2, (0, 4)).mean().shape == (100, 50)
    assert sorted(asked) == [0, 1, 2, 3, 4]


# No noise, or one output


def test_scale_zero_is_the_point_mass() -> None:
    laws: list[tuple[Any, Any]] = [
        (TwoSidedGeometric(0), 0),
        (CensoredGeometric(7, 0, (0, 100)), 7),
        (CensoredGeometric(-3, 0, INT64), -3),
        (CensoredGeometric(999, 0.0, (0, 100)), 100),
        (CensoredGeometric(5, 10, (7, 7)), 7),
        (CensoredGeometric(5, 1e300, (7, 7)), 7),
        (CensoredGeometric(5, 0, (2**63, 2**63)), 2**63),
    ]
    for law, at in laws:
        k = [at - 1, at, at + 1]
        np.testing.assert_array_equal(law.pmf(k), [0, 1, 0])
        np.testing.assert_array_equal(law.cdf(k), [0, 1, 1])
        np.testing.assert_array_equal(law.sf(k), [1, 0, 0])
        np.testing.assert_array_equal(law.logpmf(k), [-math.inf, 0, -math.inf])
        np.testing.assert_array_equal(law.logcdf(k), [-math.inf, 0, 0])
        np.testing.assert_array_equal(law.logsf(k), [0, -math.inf, -math.inf])
        for q in (0, 5e-324, 0.5, 1 - 2**-53, 1):
            assert law.ppf(q) == law.isf(q) == at
            assert law.interval(q) == (at, at)
        assert law.median() == law.mean() == at
        assert law.support() == (at, at)
        assert law.var() == law.std() == law.entropy() == law.total_variation == 0


def test_logarithm_of_one_is_positive_zero() -> None:
    for law in (TwoSidedGeometric(0), TwoSidedGeometric(1), CensoredGeometric(3, 1, (0, 9000))):
        for value in (law.logcdf(8000), law.logsf(-8000)):
            assert math.copysign(1, value) == 1
            assert value == 0


# The sampled distribution


@pytest.mark.parametrize("scale", [0.5, 20, Fraction(1000, 7), 2.0**83])
def test_total_variation_is_that_of_the_certificate(scale: float | Fraction) -> None:
    mechanism = GeometricMechanism.from_scale(scale)
    whole = mechanism.certificate().total_variation
    assert TwoSidedGeometric(scale).total_variation == whole
    assert 0 < whole <= 2**-50
    for bounds in ((0, 100), INT64, UINT64):
        bounded = GeometricMechanism.from_scale(scale, bounds).certificate().total_variation
        assert CensoredGeometric([1, 2], scale, bounds).total_variation == bounded
        assert 0 < bounded <= 2**-50


def test_total_variation_without_certificate_raises() -> None:
    for law in (TwoSidedGeometric(1e300), CensoredGeometric(0, 1e300, (0, 10))):
        with pytest.raises(ValueError, match="too large to be certified"):
            _ = law.total_variation


def test_releases_follow_the_distribution() -> None:
    bounds, center, scale, draws = (0, 60), 8, 6.5, 10**6
    outputs = GeometricMechanism.from_scale(scale, bounds).release(np.full(draws, center))
    observed = np.bincount(outputs, minlength=61)
    for factor, wrong in ((1, False), (1.02, True)):
        law = CensoredGeometric(center, scale * factor, bounds)
        assert rejects(observed, law.pmf(np.arange(61)) * draws) == wrong


# Values


LAWS: list[Any] = [
    TwoSidedGeometric(2),
    TwoSidedGeometric(0.1),
    TwoSidedGeometric(Fraction(1, 3)),
    CensoredGeometric(5, 2.5, (0, 10)),
    CensoredGeometric(10**30, 2, UINT64),
    CensoredGeometric([[1, 2], [3, 4]], 2.5, (0, 10)),
    CensoredGeometric(np.array(5, np.uint8), 2.5, (0, 10)),
    CensoredGeometric([], 2.5, (0, 10)),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_copies_are_equal(law: Any) -> None:
    copies = [copy.copy(law), copy.deepcopy(law), pickle.loads(pickle.dumps(law))]
    copies.append(eval(repr(law), vars(np) | vars(distribution)))
    for other in copies:
        assert other == law
        assert hash(other) == hash(law)
        assert repr(other) == repr(law)
        np.testing.assert_array_equal(other.cdf(3), law.cdf(3))


def test_equality_is_by_exact_parameters() -> None:
    assert len({*LAWS, TwoSidedGeometric(2.0), TwoSidedGeometric(np.float32(2))}) == len(LAWS)
    assert TwoSidedGeometric(0.1) != TwoSidedGeometric(Fraction(1, 10))
    law = CensoredGeometric(5, 2.5, (0, 10))
    assert law == CensoredGeometric(np.int8(5), Fraction(5, 2), [np.uint8(0), 10])
    for other in (
        CensoredGeometric(4, 2.5, (0, 10)),
        CensoredGeometric([5], 2.5, (0, 10)),
        CensoredGeometric(np.array(5), 2.5, (0, 10)),
        CensoredGeometric(5, 2, (0, 10)),
        CensoredGeometric(5, 2.5, (0, 11)),
        TwoSidedGeometric(2.5),
        (5, 2.5, (0, 10)),
    ):
        assert law != other
    assert CensoredGeometric([5], 1, (0, 9)) == CensoredGeometric(np.array([5], "u1"), 1, (0, 9))


def test_parameters_are_kept_and_immutable() -> None:
    given_centers = np.array([1, 2], ">u2")
    law = CensoredGeometric(given_centers, Fraction(5, 2), (0, 10))
    assert law.scale == Fraction(5, 2)
    assert law.bounds == (0, 10)
    assert law.center.tolist() == [1, 2]
    assert law.center.dtype == np.uint64
    given_centers[:] = 7
    assert law.center.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        law.center[0] = 5
    assert type(CensoredGeometric(np.int8(3), 1, (0, 9)).center) is int
    for name in ("scale", "center", "bounds", "total_variation", "new"):
        with pytest.raises(AttributeError):
            setattr(law, name, 1)
    assert not hasattr(law, "rvs")
    assert not hasattr(law, "__dict__")


# Errors


@pytest.mark.parametrize(
    "make", [TwoSidedGeometric, lambda scale: CensoredGeometric(1, scale, (0, 9))]
)
def test_invalid_scale_raises(make: Callable[[Any], Any]) -> None:
    for scale in (None, "1", b"1", True, np.True_, 1j, [1], np.longdouble(1), {}):
        with pytest.raises(TypeError, match="scale = "):
            make(scale)
    for number in (-1, -5e-324, math.inf, math.nan, Fraction(-1, 3)):
        with pytest.raises(ValueError, match="scale = "):
            make(number)


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        (None, TypeError),
        (5, TypeError),
        ((0,), TypeError),
        ((0.0, 1), TypeError),
        ((None, 5), TypeError),
        ((True, 5), TypeError),
        ("09", TypeError),
        ((5, 4), ValueError),
        ((-1, 2**63), OverflowError),
        ((0, 2**64), OverflowError),
        ((-(2**63) - 1, 0), OverflowError),
        ((10**40, 10**41), OverflowError),
    ],
    ids=repr,
)
def test_invalid_bounds_raise(bounds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="bounds"):
        CensoredGeometric(1, 1, bounds)


MASKED = np.ma.masked_array([1, 2], mask=[True, False])
NO_POINTS: list[Any] = [
    *(None, "1", b"1", bytearray(b"1"), True, np.True_, 1j, Fraction(1), {1: 2}, range(3)),
    *(np.longdouble(1), [1, None], [1, "2"], [True], [[1], [1, 2]], [Fraction(1, 2)]),
    *([np.longdouble(1)], [np.array([1], "m8[ns]")], MASKED, [MASKED], MASKED.astype(float)),
    *(np.array([1], dtype) for dtype in ("?", "U1", "c16", "m8[s]", "M8[s]", "g")),
    np.array([None]),
]


@pytest.mark.parametrize("k", NO_POINTS, ids=repr)
def test_invalid_argument_raises(k: Any) -> None:
    for law, name in itertools.product(EXAMPLES, NAMES):
        with pytest.raises(TypeError, match=r"^k "):
            getattr(law, name)(k)


def test_mixed_floats_and_large_ints_raise() -> None:
    for law in EXAMPLES:
        with pytest.raises(ValueError, match="k with floats and ints"):
            law.pmf([0.5, 2**53 + 1])


@pytest.mark.parametrize("center", [*NO_POINTS, 1.0, [1.0], np.array([1.0])], ids=repr)
def test_invalid_center_raises(center: Any) -> None:
    with pytest.raises(
        TypeError, match=re.compile("^center .*give (integers|numbers|an array)|mask")
    ):
        CensoredGeometric(center, 1, (0, 9))


NO_PROBABILITIES: list[tuple[Any, type[Exception]]] = [
    *((value, TypeError) for value in (None, "1", True, 1j, range(2), MASKED, [None], ["1"])),
    *((value, TypeError) for value in ([[0.1], [0.1, 0.2]], np.longdouble(0.5))),
    *((np.array([1], dtype), TypeError) for dtype in ("?", "c16", "m8[s]", "g", "U1")),
    *((value, ValueError) for value in (-5e-324, 1 + 2**-52, math.nan, math.inf, -1, 2, 10**400)),
    *((value, ValueError) for value in (Fraction(-1, 10**400), [0.5, math.nan], [0.5, 2])),
    *((np.array([0.5, bad]), ValueError) for bad in (math.nan, -0.1, 1.5, math.inf)),
    (np.array([-1, 0]), ValueError),
]


@each_law
@pytest.mark.parametrize(("q", "error"), NO_PROBABILITIES, ids=repr)
def test_invalid_probability_raises(law: Any, q: Any, error: type[Exception]) -> None:
    for name in ("ppf", "isf"):
        with pytest.raises(error, match=r"^q "):
            getattr(law, name)(q)
    with pytest.raises(error, match=r"^confidence "):
        law.interval(q)
