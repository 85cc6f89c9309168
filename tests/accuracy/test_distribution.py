"""The ideal distributions, against mpmath in hundreds of digits, scipy and releases."""

import copy
import math
import pickle
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from exact import power, real, stated
from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from geomdp.distribution import CensoredGeometric, TwoSidedGeometric

NAMES = ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"]
SCALES = [
    *(1e-3, 1 / 745, 1 / 720, 0.0137, 0.1, Fraction(1, 3), 1, math.pi, 20, 1000),
    *(Fraction(10**6, 3), 1e9, 2**40, Fraction(2**160 + 1, 2**100), 1e18, 2**64, 1e30, 1e300),
]
EXTREME = [5e-324, Fraction(1, 10**400), sys.float_info.max]
INT64 = (-(2**63), 2**63 - 1)
UINT64 = (0, 2**64 - 1)
BOUNDS = [(0, 1), (-3, 4), (0, 30), (-(10**6), 10**7), (2**63 - 9, 2**63 + 9), INT64, UINT64]

scales = st.one_of(
    st.floats(1e-3, 1e300),
    st.floats(0.1, 1000),
    st.builds(Fraction, st.integers(1, 2**90), st.integers(1, 2**60)).filter(lambda s: s > 1e-3),
)
int64s = st.integers(*INT64)

each_scale = pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):.6g}")


@pytest.fixture(autouse=True)
def _no_floating_point_flags() -> Iterator[None]:
    with np.errstate(all="raise"), mpmath.workdps(350):
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


def check(dist: Any, k: int, exact: dict[str, mpf], distance: int) -> None:
    """Check each function against the documented relative error, and 4 spacings near 0."""
    error = mpf(2) ** -50 * (1 + (distance + 1) / real(dist.scale))
    for name, value in exact.items():
        computed = getattr(dist, name)(k)
        assert type(computed) is float
        assert math.isinf(computed) == (value < -sys.float_info.max), (dist, name, k, computed)
        if not math.isinf(computed):
            allowed = max(abs(value) * error, mpf(2) ** -1072)
            assert abs(computed - value) <= allowed, (dist, name, k, computed)


def reach(scale: float | Fraction) -> int:
    """Return about where the probabilities underflow."""
    return int(760 * stated(scale)) + 3


def places(scale: float | Fraction) -> list[int]:
    """Return distances near 0, near powers of two, and along the tails."""
    near = {0, 1, 2, 3, 10}
    powers = {2**n + d for n in (8, 21, 31, 32, 33, 52, 53, 54, 62, 63) for d in (-1, 0, 1)}
    top = min(reach(scale), 2**64 - 1)
    along = {top * n // 47 for n in range(48)} | {int(top**share) for share in (0.3, 0.6, 0.9)}
    deep = {int(stated(scale) * n) for n in (700, 708, 709, 720, 740, 743, 744, 745, 746)}
    return sorted(d for d in near | powers | along | deep | {2**64 - 1} if d < 2**64)


# Accuracy


@pytest.mark.parametrize("scale", [*SCALES, *EXTREME], ids=lambda scale: f"{float(scale):.6g}")
def test_noise_is_accurate(scale: float | Fraction) -> None:
    dist, rate = TwoSidedGeometric(scale), 1 / stated(scale)
    for distance in places(scale):
        for k in {distance, -distance, -distance - 1}:
            if -(2**63) <= k < 2**63:
                check(dist, k, noise(rate, k), abs(k))


@each_scale
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_releases_are_accurate(scale: float | Fraction, bounds: tuple[int, int]) -> None:
    lower, upper = bounds
    least, greatest = INT64 if upper < 2**63 else UINT64
    for center in {lower, upper, (lower + upper) // 2, min(lower + 2, upper)}:
        dist = CensoredGeometric(center, scale, bounds)
        near = {center + sign * d for d in places(scale)[::10] for sign in (-1, 1)}
        edges = {bound + d for bound in bounds for d in (-1, 0, 1)}
        for k in {k for k in near if lower <= k <= upper} | edges | {least, greatest}:
            if least <= k <= greatest:
                check(dist, k, release(1 / stated(scale), center, bounds, k), abs(k - center))


@settings(deadline=None)
@given(scale=scales, center=int64s, ends=st.tuples(int64s, int64s), k=int64s)
@example(scale=1e17, center=INT64[0], ends=INT64, k=INT64[1])
@example(scale=1e17, center=INT64[1], ends=INT64, k=INT64[0])
def test_releases_are_accurate_at_random_places(
    scale: float | Fraction, center: int, ends: tuple[int, int], k: int
) -> None:
    lower, upper = min(ends), max(ends)
    dist = CensoredGeometric(center, scale, (lower, upper))
    distance = abs(k - min(max(center, lower), upper))
    check(dist, k, release(1 / stated(scale), center, (lower, upper), k), distance)
    check(TwoSidedGeometric(scale), k, noise(1 / stated(scale), k), abs(k))


# Arguments of every kind


EXAMPLES: list[Any] = [TwoSidedGeometric(7.5), CensoredGeometric(3, 7.5, (-20, 100))]
each_distribution = pytest.mark.parametrize("dist", EXAMPLES, ids=lambda dist: type(dist).__name__)


def one_by_one(dist: Any, name: str, k: Any) -> Any:
    values = [getattr(dist, name)(int(item)) for item in k.reshape(-1)]
    return np.array(values, np.float64).reshape(k.shape)


@each_distribution
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "float64"])
def test_arrays_of_every_dtype(dist: Any, order: str, dtype: str) -> None:
    limits = (-30, 2000) if dtype[0] == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    k = np.array([*range(max(-30, limits[0]), 128), *limits], np.dtype(dtype).newbyteorder(order))
    kept = k.copy()
    for name in NAMES:
        values, function = getattr(dist, name)(k), getattr(dist, name)
        assert type(values) is np.ndarray
        assert values.dtype == np.float64
        if dtype != "uint64":
            np.testing.assert_array_equal(values, one_by_one(dist, name, k))
        assert type(function(k[0])) is float
        assert function(k[0]) == values[0]
        np.testing.assert_array_equal(function(k[::-2].reshape(-1, 1)), values[::-2, np.newaxis])
        assert function(k[:0].reshape(0, 3)).shape == (0, 3)
        if dtype[0] != "f":
            np.testing.assert_array_equal(function(k[:4].tolist()), values[:4])
    np.testing.assert_array_equal(k, kept)


@each_distribution
def test_fractions_nan_and_infinity(dist: Any) -> None:
    k = np.arange(-30, 131) / 1.0
    for name in NAMES:
        function = getattr(dist, name)
        between = -math.inf if name == "logpmf" else 0 if name == "pmf" else function(k)
        np.testing.assert_array_equal(function(k + 0.5), np.broadcast_to(between, k.shape))
        assert math.isnan(function(math.nan))
        ends = [0, 0] if name == "pmf" else [1, 0] if "sf" in name else [0, 1]
        with np.errstate(divide="ignore"):
            ends = np.log(ends) if name.startswith("log") else ends
        ends = [-math.inf] * 2 if name == "logpmf" else ends
        values = function(np.array([-math.inf, math.nan, math.inf]))
        np.testing.assert_array_equal(values, [ends[0], math.nan, ends[1]])


@pytest.mark.parametrize("bounds", [INT64, UINT64, (2**62 + 1, 2**62 + 3), (2**63, 2**63 + 4)])
def test_floats_and_integers_beyond_the_bounds(bounds: tuple[int, int]) -> None:
    dist = CensoredGeometric(bounds[0] + 2, 1e18, bounds)
    below = np.array([-(2.0**63) - 2**11, -math.inf, -1e300])
    above = np.array([2.0**64, math.inf, 1e300])
    for k, sums in ((below, (0, 1)), (above, (1, 0))):
        assert not dist.pmf(k).any()
        assert (dist.cdf(k) == sums[0]).all()
        assert (dist.sf(k) == sums[1]).all()
    if bounds[0] >= 0:
        assert dist.cdf(np.array([-1])) == dist.pmf(np.array([-1])) == 0
    if bounds[1] < 2**63:
        assert dist.cdf(np.array([2**63], np.uint64)) == dist.cdf(2.0**63) == 1
        assert dist.pmf(np.array([2**63], np.uint64)) == dist.pmf(2.0**63) == 0


def test_centers_are_broadcast() -> None:
    centers = np.array([[-30], [-20], [5], [100], [101]], ">i2")
    k, q = np.arange(-25, 106), np.linspace(0, 1, 23)
    dist = CensoredGeometric(centers, Fraction(15, 2), (-20, 100))
    singles = [CensoredGeometric(int(c), 7.5, (-20, 100)) for c in centers[:, 0]]
    for name in NAMES:
        wanted = [getattr(one, name)(k) for one in singles]
        np.testing.assert_array_equal(getattr(dist, name)(k), wanted)
        assert getattr(dist, name)(5).shape == (5, 1)
    for name in ("ppf", "isf", "interval"):
        wanted = [getattr(one, name)(q) for one in singles]
        values = np.moveaxis(getattr(dist, name)(q), -2, 0)
        np.testing.assert_array_equal(values, wanted)
        assert values.dtype == np.int64
    for name in ("mean", "var", "std", "median"):
        values = getattr(dist, name)()
        assert values[:, 0].tolist() == [getattr(one, name)() for one in singles]
    assert dist.support()[0].tolist() == [[-20]] * 5
    assert dist.support()[1].tolist() == [[100]] * 5
    empty = CensoredGeometric([], 2, (0, 9))
    assert empty.mean().shape == empty.pmf(3).shape == empty.ppf([0.5]).shape == (0,)


# Quantiles


PROBABILITIES = np.concatenate(
    [
        np.linspace(0, 1, 101)[1:-1],
        2.0 ** -np.arange(1, 1000),
        1 - 2.0 ** -np.arange(2, 54),
        0.5 + np.array([-1, 1, 2, -5]) * 2.0**-53,
    ]
)


def exact_quantiles(scale: Any, level: float) -> tuple[mpf, mpf]:
    """Return the real numbers whose ceilings are ppf and isf, by the smaller tail."""
    rate = real(1 / stated(scale))
    small = min(Fraction(level), 1 - Fraction(level))
    left = (mpmath.log(real(small)) + mpmath.log1p(mpmath.exp(-rate))) / rate
    return (left, -left - 1) if level <= 0.5 else (-left - 1, left)


LEVELS = PROBABILITIES[(PROBABILITIES > 0) & (PROBABILITIES < 1)]


@pytest.mark.parametrize("scale", [*(s for s in [*SCALES, *EXTREME] if s <= 2**40), 1e9])
def test_quantiles_are_exact(scale: float | Fraction) -> None:
    """Those of 1 - 1e-9 at scale 1e9 were 55 off, since floats near 1 do not resolve a tail."""
    levels = np.append(LEVELS, [1 - 1e-9, 1e-9])
    free = TwoSidedGeometric(scale)
    found = free.ppf(levels), free.isf(levels)
    # The part of a step by which rounding in float64 moves a quantile.
    slack = 2.0**-42 * float(scale)
    for level, *pair in zip(levels.tolist(), *found, strict=True):
        for each, exact in zip(pair, exact_quantiles(scale, level), strict=True):
            assert -slack <= each - exact <= 1 + slack, level
    for bounds in BOUNDS:
        for center in {*bounds, sum(bounds) // 2}:
            dist = CensoredGeometric(center, scale, bounds)
            for each, values in zip(("ppf", "isf"), found, strict=True):
                wanted = [min(max(center + int(z), bounds[0]), bounds[1]) for z in values]
                assert getattr(dist, each)(levels).tolist() == wanted


@pytest.mark.parametrize("scale", [s for s in [*SCALES, *EXTREME] if s <= 2**40])
def test_quantiles_invert_the_smaller_tail(scale: float | Fraction) -> None:
    dist = TwoSidedGeometric(scale)
    k = -np.array([d for d in places(scale) if 0 < d < 2**53], np.float64)
    k = k[dist.cdf(k) > 2.0**-1000]
    np.testing.assert_array_equal(dist.ppf(dist.cdf(k)), k)
    np.testing.assert_array_equal(dist.isf(dist.sf(-k)), -k)


@pytest.mark.parametrize("scale", [2.0**41, 1e15, 1e18, 2.0**64, 1e300])
def test_quantiles_of_large_scales_are_close(scale: float) -> None:
    dist = TwoSidedGeometric(scale)
    for level, *pair in zip(LEVELS.tolist(), dist.ppf(LEVELS), dist.isf(LEVELS), strict=True):
        for each, exact in zip(pair, exact_quantiles(scale, level), strict=True):
            assert abs(each - exact) <= mpf(2) ** -48 * (abs(exact) + scale) + 1


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
@given(scale=st.floats(1e-3, 2.0**40), center=int64s, confidence=st.floats(0, 1))
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
    assert small.ppf([]).shape == (0,)
    assert small.ppf([0, 1, Fraction(1, 2)]).tolist() == [0, 9, 4]
    assert small.ppf(np.array([0, 1], np.int8)).tolist() == [0, 9]
    # Exact beyond 2**53 too.
    assert wide.isf(1e-9) == 2**64 - 1
    assert CensoredGeometric(2**63 + 1, 0.01, UINT64).ppf(0.5) == 2**63 + 1


# Moments


def near(computed: float, exact: mpf, factor: Any = 1) -> bool:
    return bool(abs(computed - exact) <= max(abs(exact) * factor * 2.0**-50, mpf(2) ** -1072))


@pytest.mark.parametrize("scale", [s for s in SCALES if s < 1e30], ids=float)
def test_moments_of_noise(scale: float | Fraction) -> None:
    dist, rate = TwoSidedGeometric(scale), mpf(1) / stated(scale).numerator
    rate *= stated(scale).denominator
    a = mpmath.exp(-rate)
    assert dist.mean() == 0
    assert near(dist.var(), 2 * a / (1 - a) ** 2)
    assert near(dist.std(), mpmath.sqrt(2 * a) / (1 - a), 1 + rate)


def test_moments_of_huge_noise() -> None:
    dist = TwoSidedGeometric(1e300)
    assert dist.var() == math.inf
    assert math.isclose(dist.std(), math.sqrt(2) * 1e300)


@pytest.mark.parametrize("scale", [0.1, 1, Fraction(7, 2), 30, 1e6])
def test_moments_are_sums(scale: float | Fraction) -> None:
    for bounds in ((0, 0), (-3, 4), (5, 60)):
        outputs = range(bounds[0], bounds[1] + 1)
        for center in {bounds[0] - 1, bounds[0], 7, bounds[1]}:
            dist = CensoredGeometric(center, scale, bounds)
            masses = [release(1 / stated(scale), center, bounds, k)["pmf"] for k in outputs]
            mean = mpmath.fdot(masses, outputs)
            square = mpmath.fdot(masses, [(k - mean) ** 2 for k in outputs])
            assert abs(dist.mean() - mean) <= 2.0**-52 * max(map(abs, bounds))
            assert near(dist.var(), square)
            assert near(dist.std(), mpmath.sqrt(square))


def test_mean_of_large_counts_is_the_nearest_float() -> None:
    assert CensoredGeometric(2**64 - 1, 1e-3, UINT64).mean() == 2.0**64
    assert CensoredGeometric(2**53 + 1, 1, (2**53 + 1, 2**53 + 1)).mean() == 2.0**53
    # Half of the scale is added at the lower bound.
    assert CensoredGeometric(2**60, 2.0**30, (2**60, 2**63)).mean() == 2.0**60 + 2.0**29


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
        k = np.array([at - 1, at, at + 1], np.uint64 if at == 2**63 else np.int64)
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
        assert dist.var() == dist.std() == dist.total_variation == 0


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


# Values


@pytest.mark.parametrize(
    "dist",
    [
        TwoSidedGeometric(Fraction(1, 3)),
        CensoredGeometric(5, 2.5, (0, 10)),
        CensoredGeometric(np.array([[1, 2], [3, 4]]), 2.5, UINT64),
    ],
    ids=repr,
)
def test_copies_and_parameters(dist: Any) -> None:
    for other in (copy.deepcopy(dist), pickle.loads(pickle.dumps(dist))):
        assert repr(other) == repr(dist)
        np.testing.assert_array_equal(other.cdf(3), dist.cdf(3))
    assert not hasattr(dist, "rvs")
    for name in ("scale", "center", "bounds", "total_variation", "new"):
        with pytest.raises(AttributeError):
            setattr(dist, name, 1)


def test_centers_are_copied() -> None:
    given_centers = np.array([1, 2])
    dist = CensoredGeometric(given_centers, 2, (0, 10))
    given_centers[:] = 7
    assert dist.center.tolist() == [1, 2]
    assert dist.median().tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        dist.center[0] = 5


# Errors


MASKED = np.ma.masked_array([1, 2], mask=[True, False])
NO_POINTS: list[Any] = [
    *(None, "1", b"1", True, np.True_, 1j, Fraction(1), {1: 2}, np.longdouble(1)),
    *([1, None], [1, "2"], [True], [[1], [1, 2]], [Fraction(1, 2)], MASKED, MASKED.astype(float)),
    *(np.array([1], dtype) for dtype in ("?", "U1", "c16", "m8[s]", "g", object)),
]


@pytest.mark.parametrize("k", NO_POINTS, ids=repr)
def test_invalid_argument_raises(k: Any) -> None:
    for dist in EXAMPLES:
        for name in NAMES:
            with pytest.raises(TypeError, match=r"^k "):
                getattr(dist, name)(k)


@pytest.mark.parametrize("center", [*NO_POINTS, 1.0, [1.0], np.array([1.0])], ids=repr)
def test_invalid_center_raises(center: Any) -> None:
    with pytest.raises(TypeError, match=r"^center "):
        CensoredGeometric(center, 1, (0, 9))


def test_integers_and_scales_beyond_the_dtype_raise() -> None:
    for bounds, beyond in (((0, 9), 2**63), (UINT64, -1), (UINT64, 2**64)):
        with pytest.raises(OverflowError, match=r"^center beyond"):
            CensoredGeometric(beyond, 1, bounds)
        with pytest.raises(OverflowError, match=r"^k beyond"):
            CensoredGeometric(1, 1, bounds).cdf(beyond)
    for make in (TwoSidedGeometric, lambda scale: CensoredGeometric(1, scale, (0, 9))):
        with pytest.raises(OverflowError, match="scale = "):
            make(10**400)


NO_PROBABILITIES: list[tuple[Any, type[Exception]]] = [
    *(
        (value, TypeError)
        for value in (None, b"1", True, 1j, MASKED, [None], [b"1"], [[0.1], [0, 1]])
    ),
    *((np.array([1], dtype), TypeError) for dtype in ("?", "c16", "m8[s]", "g", "U1")),
    *((value, ValueError) for value in (-5e-324, 1 + 2**-52, math.nan, math.inf, -1, 2)),
    *((value, ValueError) for value in (Fraction(-1, 10**400), [0.5, math.nan], [0.5, 2])),
    (np.array([-1, 0]), ValueError),
    (np.array([0.5, 1.5]), ValueError),
]


@pytest.mark.parametrize(("q", "error"), NO_PROBABILITIES, ids=repr)
def test_invalid_probability_raises(q: Any, error: type[Exception]) -> None:
    for dist in EXAMPLES:
        for name in ("ppf", "isf"):
            with pytest.raises(error, match=r"^q "):
                getattr(dist, name)(q)
        with pytest.raises(error, match=r"^confidence "):
            dist.interval(q)
