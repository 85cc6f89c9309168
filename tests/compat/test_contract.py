"""One contract for every interface that adds noise: distribution, fresh noise, bounds."""

import copy
import math
import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from opendp.mod import GLOBAL_FEATURES

import geomdp.compat.opendp
import geomdp.measurement as m
import unsigned
from draws import Setting
from exact import stated
from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from geomdp.compat import diffprivlib, smartnoise

Bounds: TypeAlias = tuple[int, int] | None
#: Adds noise to counts: one count, or an array.
Noise: TypeAlias = Callable[[Any], Any]

DRAWS = 200_000
OF_OPENDP = {"int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64"}


def limits(dtype: str) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def of_release(scale: Any, bounds: Bounds, dtype: str, _: bool) -> Noise:
    return GeometricMechanism.from_scale(scale, bounds or unsigned.limits(dtype)).release


def of_measurement(scale: Any, bounds: Bounds, dtype: str, vector: bool) -> Noise:
    if vector:
        return m.make_geometric(
            m.VectorDomain(m.AllDomain(dtype)), m.L1Distance(dtype), scale, bounds
        )
    return m.make_geometric(m.AllDomain(dtype), m.AbsoluteDistance(dtype), scale, bounds)


def of_opendp(make: Any, scale: Any, bounds: Bounds, dtype: str, vector: bool) -> Noise:
    T = OF_OPENDP[dtype]
    atom: dp.Domain = dp.atom_domain(T=T)
    domain = dp.vector_domain(atom) if vector else atom
    metric = dp.l1_distance(T=T) if vector else dp.absolute_distance(T=T)
    added = {} if bounds is None else {"bounds": bounds}
    GLOBAL_FEATURES.add("contrib")
    noise = make(domain, metric, float(scale), **added)
    return lambda counts: np.array(noise(counts), dtype) if vector else noise(counts)


def of_smartnoise(scale: Any, bounds: Bounds, dtype: str, vector: bool) -> Noise:
    lower, upper = bounds or limits(dtype)
    return partial(
        smartnoise.simple_geometric_mechanism,
        epsilon=Fraction(1, 3),
        sensitivity=stated(scale) / 3,
        min=lower,
        max=upper,
        enforce_constant_time=vector,
    )


def of_diffprivlib(scale: Any, bounds: Bounds, dtype: str, vector: bool) -> Noise:
    epsilon = 1 / stated(scale) if scale else math.inf
    # There, a single count has 64 bits.
    if bounds is None and (vector or dtype in {"int64", "uint64"}):
        return diffprivlib.Geometric(epsilon=epsilon).randomise
    lower, upper = bounds or limits(dtype)
    return diffprivlib.GeometricTruncated(epsilon=epsilon, lower=lower, upper=upper).randomise


def of_folded(scale: Any, _bounds: Bounds, _dtype: str, _: bool) -> Noise:
    epsilon = 1 / stated(scale)
    return diffprivlib.GeometricFolded(epsilon=epsilon, lower=-(2**62), upper=2**62 - 1).randomise


class Interface(NamedTuple):
    """Makes the noise of a scale and bounds, for a dtype, for arrays or for single counts."""

    make: Callable[[Any, Bounds, str, bool], Noise]
    dtypes: Iterable[str] = DTYPES
    bounded: bool = True


INTERFACES = {
    "release": Interface(of_release),
    "measurement": Interface(of_measurement),
    "opendp": Interface(partial(of_opendp, geomdp.compat.opendp.make_geometric), OF_OPENDP),
    "opendp laplace": Interface(
        partial(of_opendp, geomdp.compat.opendp.make_laplace), OF_OPENDP, bounded=False
    ),
    "smartnoise": Interface(of_smartnoise),
    "diffprivlib": Interface(of_diffprivlib),
}


def singles(name: str, counts: NDArray[Any]) -> list[Any]:
    """Return counts one by one; OpenDP takes ints alone."""
    return counts.tolist() if "opendp" in name else list(counts)


each_interface = pytest.mark.parametrize("name", INTERFACES)
TYPED = [(name, dtype) for name, of in INTERFACES.items() for dtype in of.dtypes]
each_dtype = pytest.mark.parametrize(("name", "dtype"), TYPED)
each_bounded_dtype = pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, dtype in TYPED if INTERFACES[name].bounded]
)


def noise_of(name: str, setting: Setting, *, vector: bool) -> Noise:
    return INTERFACES[name].make(setting.scale, setting.bounds, setting.dtype, vector)


def others(setting: Setting) -> list[Setting]:
    """Return settings whose distributions a test must tell from this one."""
    least, greatest = setting.limits()
    start = min(max(setting.count, least), greatest)
    beside = start - 1 if start == greatest else start + 1
    return [
        replace(setting, count=beside),
        replace(setting, scale=Fraction(setting.scale) * Fraction(5, 4)),
    ]


#: The draw itself has its tests: these tell whether an interface hands on scale, bounds and dtype.
SETTINGS = [
    *(Setting(5, "int64", 0.5), Setting(2**63 - 1, "int64", 10), Setting(1, "uint32", 10)),
    *(Setting(120, "int8", 10), Setting(1, "uint32", 10, (0, 50))),
    *(Setting(-3, "int32", 10, (-50, 20)), Setting(-500, "int16", 2, (0, 10))),
    Setting(20, "int64", Fraction(10, 7), (18, 21)),
    Setting(2**64 - 4, "uint64", 3, (2**64 - 11, 2**64 - 1)),
]
CASES = [
    pytest.param(name, setting, id=f"{name} {setting}")
    for name, of in INTERFACES.items()
    for setting in SETTINGS
    if setting.dtype in of.dtypes and (of.bounded or setting.bounds is None)
]


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_arrays_follow_the_distribution(name: str, setting: Setting) -> None:
    counts = np.full(DRAWS, setting.count, setting.dtype)
    outputs = noise_of(name, setting, vector=True)(counts)
    assert outputs.dtype == setting.dtype
    assert (counts == setting.count).all()
    assert not setting.refuses(outputs)
    assert all(other.refuses(outputs) for other in others(setting))


@each_interface
def test_single_counts_follow_the_distribution(name: str) -> None:
    setting = Setting(7, "uint32", 2, (0, 10) if INTERFACES[name].bounded else None)
    noise = noise_of(name, setting, vector=False)
    drawn = [noise(setting.count) for _ in range(5000)]
    assert set(map(type, drawn)) == {int}
    outputs = np.array(drawn, setting.dtype)
    assert not setting.refuses(outputs)
    assert all(other.refuses(outputs) for other in others(setting))


# Fresh noise


@pytest.mark.parametrize("name", [*INTERFACES, "folded"])
def test_calls_and_copies_draw_fresh_noise(name: str) -> None:
    # Noise of 57 bits: a repeat means reused randomness. Among fewer than 1000 draws, two are equal
    # by chance with probability below 1e-10.
    make = of_folded if name == "folded" else INTERFACES[name].make
    one, many = (make(2**56, None, "int64", form) for form in (False, True))
    pairs = [(one, many)] * 2
    if "opendp" not in name:
        pairs += [(copy.deepcopy(one), copy.deepcopy(many))]
        pairs += [pickle.loads(pickle.dumps((one, many))) for _ in range(2)]
    noises = [
        int(noise)
        for single, array in pairs
        for noise in (
            *array(np.zeros(64, np.int64)),
            *array(np.zeros(64, np.int64)[::2]),
            *(single(0) for _ in range(6)),
        )
    ]
    assert len(noises) == 102 * len(pairs)
    # Reused randomness may give the opposite sign.
    assert len({abs(noise) for noise in noises}) == len(noises)


# Bounds


@each_dtype
def test_outputs_saturate_at_the_limits_of_the_dtype(name: str, dtype: str) -> None:
    for scale in (3, 2.0**70):
        one, many = (
            noise_of(name, Setting(0, dtype, scale), vector=form) for form in (False, True)
        )
        for limit in limits(dtype):
            array = many(np.full(1000, limit, dtype))
            assert array.dtype == dtype
            single = singles(name, np.full(200, limit, dtype))
            kept = type(single[0]) if name in {"release", "measurement", "smartnoise"} else int
            assert type(one(single[0])) is kept
            for outputs in (array.tolist(), [int(one(count)) for count in single]):
                # Half of the noise points outwards; an overflow would land at the other limit.
                assert 0.3 < outputs.count(limit) / len(outputs) < 0.8
                near = [abs(output - limit) <= min(300, limits(dtype)[1]) for output in outputs]
                assert all(near) or scale > 3


@each_bounded_dtype
def test_outputs_stay_within_bounds(name: str, dtype: str) -> None:
    least, greatest = limits(dtype)
    counts = np.array([least, 0, 5, 100, greatest] * 400, dtype)
    for lower, upper in ((3, 9), (5, 5), (least, least), (greatest, greatest), (least, greatest)):
        setting = Setting(0, dtype, 5, (lower, upper))
        one, many = (noise_of(name, setting, vector=form) for form in (False, True))
        array = many(counts).tolist()
        for outputs in (array, [int(one(count)) for count in singles(name, counts[:200])]):
            assert lower <= min(outputs) <= max(outputs) <= upper
        assert len(set(array)) == 7 or (lower, upper) != (3, 9)
