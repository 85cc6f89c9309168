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
    dist = noise(rate, k - center)
    if k < lower or k >= upper:
        zero, one = (mpf(0), -mpmath.inf), (mpf(1), mpf(0))
        (cdf, logcdf), (sf, logsf) = (zero, one) if k < lower else (one, zero)
        dist |= {"cdf": cdf, "logcdf": logcdf, "sf": sf, "logsf": logsf}
    if k < lower or k > upper:
        dist |= {"pmf": mpf(0), "logpmf": -mpmath.inf}
    elif lower == upper:
        dist |= {"pmf": mpf(1), "logpmf": mpf(0)}
    elif k == lower:
        dist |= {"pmf": dist["cdf"], "logpmf": dist["logcdf"]}
    elif k == upper:
        before = noise(rate, k - 1 - center)
        dist |= {"pmf": before["sf"], "logpmf": before["logsf"]}
    return dist


def ulps(computed: float, exact: mpf) -> float:
    """Return the error in units in the last place of the exact value."""
    assert type(computed) is float
    nearest = float(exact) if mpmath.isfinite(exact) else -math.inf
    if math.isinf(nearest):
        return 0 if computed == nearest else math.inf
    return float(abs(mpf(computed) - exact) / math.ulp(nearest))


def check(dist: Any, k: int, exact: dict[str, mpf]) -> None:
    for name, value in exact.items():
        computed = getattr(dist, name)(k)
        assert ulps(computed, value) <= ULPS, (dist, name, k, computed)


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
    dist, rate = TwoSidedGeometric(scale), 1 / Fraction(scale)
    for distance in places(scale):
        for k in {distance, -distance, -distance - 1}:
            check(dist, k, noise(rate, k))


@each_scale
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_releases_are_accurate_to_a_few_ulp(
    scale: float | Fraction, bounds: tuple[int, int]
) -> None:
    lower, upper = bounds
    for center in {lower, upper, (lower + upper) // 2, min(lower + 2, upper)}:
        dist = CensoredGeometric(center, scale, bounds)
        near = {center + sign * d for d in places(scale)[::10] for sign in (-1, 1)}
        edges = {bound + d for bound in bounds for d in (-1, 0, 1)}
        for k in {k for k in near if lower <= k <= upper} | edges | {-(2**80), 2**80}:
            check(dist, k, release(1 / Fraction(scale), center, bounds, k))


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
    dist = CensoredGeometric(center, scale, bounds)
    check(dist, k, release(1 / Fraction(scale), center, bounds, k))


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
        dist = CensoredGeometric(center, scale, bounds)
        masses = dist.pmf(outputs).tolist()
        assert math.isclose(math.fsum(masses), 1, rel_tol=2**-51)
        for n, (below, above) in enumerate(zip(dist.cdf(outputs), dist.sf(outputs), strict=True)):
            assert math.isclose(math.fsum(masses[: n + 1]), below, rel_tol=2**-49)
            assert math.isclose(math.fsum(masses[n + 1 :]), above, rel_tol=2**-49)
            assert math.isclose(below + above, 1, rel_tol=2**-51)


@given(scale=st.floats(0, 100), k=st.integers(-1000, 1000))
def test_release_is_clamped_noise(scale: float, k: int) -> None:
    dist, free = CensoredGeometric(3, scale, (-50, 60)), TwoSidedGeometric(scale)
    assert dist.cdf(k) == (0 if k < -50 else 1 if k >= 60 else free.cdf(k - 3))
    assert dist.sf(k) == (1 if k < -50 else 0 if k >= 60 else free.sf(k - 3))


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
each_distribution = pytest.mark.parametrize("dist", EXAMPLES, ids=lambda dist: type(dist).__name__)


def one_by_one(dist: Any, name: str, k: NDArray[Any]) -> NDArray[np.float64]:
    values = [getattr(dist, name)(int(item)) for item in k.reshape(-1)]
    return np.array(values, np.float64).reshape(k.shape)


@each_distribution
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_of_every_dtype(dist: Any, order: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    near = range(max(-30, limits.min), 128)
    k = np.array([*near, limits.min, limits.max], np.dtype(dtype).newbyteorder(order))
    kept = k.copy()
    for name in NAMES:
        values = getattr(dist, name)(k)
        assert type(values) is np.ndarray
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, one_by_one(dist, name, k))
        single = getattr(dist, name)(k[0])
        assert type(single) is float
        assert single == values[0]
    np.testing.assert_array_equal(k, kept)


@each_distribution
@each_name
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8", ">f8"])
def test_floats(dist: Any, name: str, dtype: str) -> None:
    k = np.arange(-30, 131, dtype=dtype)
    np.testing.assert_array_equal(getattr(dist, name)(k), one_by_one(dist, name, k))
    between = getattr(dist, name)(k + np.array(0.5, dtype))
    if "pmf" in name:
        assert (between == (-math.inf if name == "logpmf" else 0)).all()
    else:
        np.testing.assert_array_equal(between, getattr(dist, name)(k))
    for single in (2.0, np.float16(2), np.array(2.0)):
        assert getattr(dist, name)(single) == getattr(dist, name)(2)


@each_distribution
def test_nan_and_infinity(dist: Any) -> None:
    k = np.array([math.nan, -math.inf, 0, math.inf])
    kept = k.copy()
    zero, one = [math.nan, 0, 0], [math.nan, 0, 1]
    np.testing.assert_array_equal(dist.pmf(k)[[0, 1, 3]], zero)
    np.testing.assert_array_equal(dist.cdf(k)[[0, 1, 3]], one)
    np.testing.assert_array_equal(dist.sf(k)[[0, 3, 1]], one)
    np.testing.assert_array_equal(dist.logpmf(k)[[1, 3]], [-math.inf, -math.inf])
    np.testing.assert_array_equal(dist.logcdf(k)[[1, 3]], [-math.inf, 0])
    np.testing.assert_array_equal(dist.logsf(k)[[3, 1]], [-math.inf, 0])
    assert math.isnan(dist.cdf(math.nan))
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
            dist = CensoredGeometric(2**61, scale, bounds)
            np.testing.assert_array_equal(getattr(dist, name)(k), one_by_one(dist, name, k))


@each_distribution
@each_name
def test_shapes_and_layouts(dist: Any, name: str) -> None:
    function = getattr(dist, name)
    k = np.arange(-12, 12).reshape(2, 3, 4)
    wanted = one_by_one(dist, name, k)
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


@each_distribution
def test_ints_of_any_size(dist: Any) -> None:
    k = [-(10**30), -(2**63) - 1, -(2**63), 0, 2**63, 2**64 - 1, 2**64, 10**30]
    for name, part in itertools.product(NAMES, (k, k[2:4], k[3:6], k[3:])):
        wanted = [getattr(dist, name)(item) for item in part]
        np.testing.assert_array_equal(getattr(dist, name)(part), wanted)


def test_centers_are_broadcast() -> None:
    centers = np.array([[-30], [-20], [5], [100], [101]], ">i2")
    k = np.arange(-25, 106)
    dist = CensoredGeometric(centers, Fraction(15, 2), (-20, 100))
    distributions = [CensoredGeometric(int(c), 7.5, (-20, 100)) for c in centers[:, 0]]
    for name in NAMES:
        wanted = [getattr(one, name)(k) for one in distributions]
        np.testing.assert_array_equal(getattr(dist, name)(k), wanted)
        np.testing.assert_array_equal(
            getattr(dist, name)(5)[:, 0], [getattr(one, name)(5) for one in distributions]
        )
    q = np.linspace(0, 1, 23)
    for name in ("ppf", "isf", "interval"):
        wanted = [getattr(one, name)(q) for one in distributions]
        values = np.moveaxis(getattr(dist, name)(q), -2, 0)
        np.testing.assert_array_equal(values, wanted)
        assert values.dtype == np.int64
    for name in ("mean", "var", "std", "entropy", "median"):
        values = getattr(dist, name)()
        assert values.shape == (5, 1)
        assert values[:, 0].tolist() == [getattr(one, name)() for one in distributions]
    lower, upper = dist.support()
    assert lower.tolist() == [[-20]] * 5
    assert upper.tolist() == [[100]] * 5


def test_scalar_and_empty_centers() -> None:
    dist = CensoredGeometric(np.array(3), 2, (0, 9))
    for value in (dist.pmf(3), dist.ppf(0.5), dist.mean(), dist.median(), dist.support()[0]):
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
        dist, other = CensoredGeometric(center, 3, bounds), CensoredGeometric(place, 3, bounds)
        assert dist.median() == place
        assert dist.pmf(lower + 1) == other.pmf(lower + 1)
        assert dist.mean() == other.mean()
        assert dist.center == center
        assert dist != other


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
    distributions: list[Any] = [TwoSidedGeometric(scale)]
    for bounds in BOUNDS:
        distributions += [CensoredGeometric(c, scale, bounds) for c in {*bounds, sum(bounds) // 2}]
    for dist in distributions:
        k = getattr(dist, name)(PROBABILITIES)
        later = k > dist.support()[0]
        previous = np.where(later, before(np.where(later, k, 1)), k)
        if name == "ppf":
            assert (dist.cdf(k) >= PROBABILITIES).all()
            assert (dist.cdf(previous) < PROBABILITIES)[later].all()
        else:
            assert (dist.sf(k) <= PROBABILITIES).all()
            assert (dist.sf(previous) > PROBABILITIES)[later].all()


@pytest.mark.parametrize("scale", [0.01, 0.3, 1, Fraction(7, 2), 20, 1e3, 1e9, 2.0**48])
def test_quantiles_invert_cdf_and_sf(scale: float | Fraction) -> None:
    deep = [d for d in places(scale) if d < 700 * scale and d <= 2**53 - 2]
    near = np.array(sorted({*deep, *(-d for d in deep)}))
    for dist in (TwoSidedGeometric(scale), CensoredGeometric(5, scale, INT64)):
        k = near if isinstance(dist, TwoSidedGeometric) else near + 5
        rises = (dist.cdf(k) > dist.cdf(k - 1)) & (dist.cdf(k) < 1)
        np.testing.assert_array_equal(dist.ppf(dist.cdf(k[rises])), k[rises])
        falls = (dist.sf(k) < dist.sf(k - 1)) & (dist.sf(k) < 1)
        np.testing.assert_array_equal(dist.isf(dist.sf(k[falls])), k[falls])
        assert rises.sum() > 2
        assert falls.sum() > 2


def test_quantiles_of_zero_and_one() -> None:
    dist: Any = TwoSidedGeometric(2.5)
    assert dist.support() == (-math.inf, math.inf)
    assert (dist.ppf(0), dist.ppf(1), dist.isf(0), dist.isf(1)) == (
        -math.inf,
        math.inf,
        math.inf,
        -math.inf,
    )
    assert dist.interval(1) == (-math.inf, math.inf)
    assert dist.interval(0) == (0, 0)
    for bounds in BOUNDS:
        dist = CensoredGeometric(1, 2.5, bounds)
        assert dist.support() == dist.interval(1) == bounds
        assert (dist.ppf(0), dist.ppf(1)) == (dist.isf(1), dist.isf(0)) == bounds


@settings(deadline=None)
@given(scale=scales, center=int64s, confidence=st.floats(0, 1))
def test_intervals_have_their_confidence(
    scale: float | Fraction, center: int, confidence: float
) -> None:
    dist = CensoredGeometric(center, scale, INT64)
    lower, upper = dist.interval(confidence)
    tail = (1 - confidence) / 2
    assert (lower, upper) == (dist.ppf(tail), dist.isf(tail))
    assert lower <= upper or confidence < 1e-9
    assert lower == INT64[0] or dist.cdf(lower - 1) <= tail
    assert dist.sf(upper) <= tail


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
        for dist in (
            TwoSidedGeometric(scale),
            CensoredGeometric(INT64[1], scale, INT64),
            CensoredGeometric(0, scale, UINT64),
        ):
            dist.ppf(PROBABILITIES)
            dist.isf(PROBABILITIES)
            assert max(calls) <= 130
            calls.clear()
            if 1 <= scale < 2**30:
                dist.ppf(ordinary)
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
    dist, rate = TwoSidedGeometric(scale), mpf(1) / Fraction(scale).numerator
    rate *= Fraction(scale).denominator
    a = mpmath.exp(-rate)
    assert dist.mean() == 0
    assert ulps(dist.var(), 2 * a / (1 - a) ** 2) <= 1
    assert ulps(dist.std(), mpmath.sqrt(2 * a) / (1 - a)) <= 1
    exact = mpmath.log(mpmath.coth(rate / 2)) + rate / mpmath.sinh(rate)
    assert ulps(dist.entropy(), exact) <= 2


def test_moments_of_huge_noise() -> None:
    dist = TwoSidedGeometric(1e300)
    assert dist.var() == math.inf
    assert math.isclose(dist.std(), math.sqrt(2) * 1e300)
    assert math.isclose(dist.entropy(), 1 + math.log(2e300))


@pytest.mark.parametrize("scale", [0.1, 1, Fraction(7, 2), 30, 1e6])
def test_moments_are_sums(scale: float | Fraction) -> None:
    for bounds in ((0, 0), (-3, 4), (5, 60)):
        outputs = range(bounds[0], bounds[1] + 1)
        for center in {bounds[0] - 1, bounds[0], 7, bounds[1]}:
            dist = CensoredGeometric(center, scale, bounds)
            masses = [release(1 / Fraction(scale), center, bounds, k)["pmf"] for k in outputs]
            mean = mpmath.fdot(masses, outputs)
            square = mpmath.fdot(masses, [(k - mean) ** 2 for k in outputs])
            entropy = -sum(p * mpmath.log(p) for p in masses)
            assert abs(dist.mean() - mean) <= 2.0**-52 * max(map(abs, bounds))
            assert ulps(dist.var(), square) <= 1
            assert ulps(dist.std(), mpmath.sqrt(square)) <= 2
            assert ulps(dist.entropy(), entropy) <= 2


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
    distributions: list[tuple[Any, Any]] = [
        (TwoSidedGeometric(0), 0),
        (CensoredGeometric(7, 0, (0, 100)), 7),
        (CensoredGeometric(-3, 0, INT64), -3),
        (CensoredGeometric(999, 0.0, (0, 100)), 100),
        (CensoredGeometric(5, 10, (7, 7)), 7),
        (CensoredGeometric(5, 1e300, (7, 7)), 7),
        (CensoredGeometric(5, 0, (2**63, 2**63)), 2**63),
    ]
    for dist, at in distributions:
        k = [at - 1, at, at + 1]
        np.testing.assert_array_equal(dist.pmf(k), [0, 1, 0])
        np.testing.assert_array_equal(dist.cdf(k), [0, 1, 1])
        np.testing.assert_array_equal(dist.sf(k), [1, 0, 0])
        np.testing.assert_array_equal(dist.logpmf(k), [-math.inf, 0, -math.inf])
        np.testing.assert_array_equal(dist.logcdf(k), [-math.inf, 0, 0])
        np.testing.assert_array_equal(dist.logsf(k), [0, -math.inf, -math.inf])
        for q in (0, 5e-324, 0.5, 1 - 2**-53, 1):
            assert dist.ppf(q) == dist.isf(q) == at
            assert dist.interval(q) == (at, at)
        assert dist.median() == dist.mean() == at
        assert dist.support() == (at, at)
        assert dist.var() == dist.std() == dist.entropy() == dist.total_variation == 0


def test_logarithm_of_one_is_positive_zero() -> None:
    for dist in (TwoSidedGeometric(0), TwoSidedGeometric(1), CensoredGeometric(3, 1, (0, 9000))):
        for value in (dist.logcdf(8000), dist.logsf(-8000)):
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
    for dist in (TwoSidedGeometric(1e300), CensoredGeometric(0, 1e300, (0, 10))):
        with pytest.raises(ValueError, match="too large to be certified"):
            _ = dist.total_variation


def test_releases_follow_the_distribution() -> None:
    bounds, center, scale, draws = (0, 60), 8, 6.5, 10**6
    outputs = GeometricMechanism.from_scale(scale, bounds).release(np.full(draws, center))
    observed = np.bincount(outputs, minlength=61)
    for factor, wrong in ((1, False), (1.02, True)):
        dist = CensoredGeometric(center, scale * factor, bounds)
        assert rejects(observed, dist.pmf(np.arange(61)) * draws) == wrong


# Values


DISTRIBUTIONS: list[Any] = [
    TwoSidedGeometric(2),
    TwoSidedGeometric(0.1),
    TwoSidedGeometric(Fraction(1, 3)),
    CensoredGeometric(5, 2.5, (0, 10)),
    CensoredGeometric(10**30, 2, UINT64),
    CensoredGeometric([[1, 2], [3, 4]], 2.5, (0, 10)),
    CensoredGeometric(np.array(5, np.uint8), 2.5, (0, 10)),
    CensoredGeometric([], 2.5, (0, 10)),
]


@pytest.mark.parametrize("dist", DISTRIBUTIONS, ids=repr)
def test_copies_are_equal(dist: Any) -> None:
    copies = [copy.copy(dist), copy.deepcopy(dist), pickle.loads(pickle.dumps(dist))]
    copies.append(eval(repr(dist), vars(np) | vars(distribution)))
    for other in copies:
        assert other == dist
        assert hash(other) == hash(dist)
        assert repr(other) == repr(dist)
        np.testing.assert_array_equal(other.cdf(3), dist.cdf(3))


def test_equality_is_by_exact_parameters() -> None:
    assert len({*DISTRIBUTIONS, TwoSidedGeometric(2.0), TwoSidedGeometric(np.float32(2))}) == len(
        DISTRIBUTIONS
    )
    assert TwoSidedGeometric(0.1) != TwoSidedGeometric(Fraction(1, 10))
    dist = CensoredGeometric(5, 2.5, (0, 10))
    assert dist == CensoredGeometric(np.int8(5), Fraction(5, 2), [np.uint8(0), 10])
    for other in (
        CensoredGeometric(4, 2.5, (0, 10)),
        CensoredGeometric([5], 2.5, (0, 10)),
        CensoredGeometric(np.array(5), 2.5, (0, 10)),
        CensoredGeometric(5, 2, (0, 10)),
        CensoredGeometric(5, 2.5, (0, 11)),
        TwoSidedGeometric(2.5),
        (5, 2.5, (0, 10)),
    ):
        assert dist != other
    assert CensoredGeometric([5], 1, (0, 9)) == CensoredGeometric(np.array([5], "u1"), 1, (0, 9))


def test_parameters_are_kept_and_immutable() -> None:
    given_centers = np.array([1, 2], ">u2")
    dist = CensoredGeometric(given_centers, Fraction(5, 2), (0, 10))
    assert dist.scale == Fraction(5, 2)
    assert dist.bounds == (0, 10)
    assert dist.center.tolist() == [1, 2]
    assert dist.center.dtype == np.uint64
    given_centers[:] = 7
    assert dist.center.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        dist.center[0] = 5
    assert type(CensoredGeometric(np.int8(3), 1, (0, 9)).center) is int
    for name in ("scale", "center", "bounds", "total_variation", "new"):
        with pytest.raises(AttributeError):
            setattr(dist, name, 1)
    assert not hasattr(dist, "rvs")
    assert not hasattr(dist, "__dict__")


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
    for dist, name in itertools.product(EXAMPLES, NAMES):
        with pytest.raises(TypeError, match=r"^k "):
            getattr(dist, name)(k)


def test_mixed_floats_and_large_ints_raise() -> None:
    for dist in EXAMPLES:
        with pytest.raises(ValueError, match="k with floats and ints"):
            dist.pmf([0.5, 2**53 + 1])


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


@each_distribution
@pytest.mark.parametrize(("q", "error"), NO_PROBABILITIES, ids=repr)
def test_invalid_probability_raises(dist: Any, q: Any, error: type[Exception]) -> None:
    for name in ("ppf", "isf"):
        with pytest.raises(error, match=r"^q "):
            getattr(dist, name)(q)
    with pytest.raises(error, match=r"^confidence "):
        dist.interval(q)
