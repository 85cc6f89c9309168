"""The diffprivlib-compatible mechanisms, against diffprivlib and the exact distributions."""

import copy
import functools
import itertools
import math
import pickle
import random
import secrets
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any, TypeAlias

import diffprivlib.mechanisms as rival
import diffprivlib.models
import diffprivlib.tools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import geomdp.compat.diffprivlib as ours
import statistics_
from geomdp._inputs.arrays import DTYPES

Array: TypeAlias = NDArray[Any]
#: Outputs in order, and their probabilities.
Distribution: TypeAlias = tuple[Array, NDArray[np.float64]]

DRAWS = 200_000
INF = math.inf
TRUNCATED, FOLDED = "GeometricTruncated", "GeometricFolded"
BASE: dict[str, dict[str, Any]] = {
    "Geometric": {"epsilon": 1.0},
    TRUNCATED: {"epsilon": 1.0, "lower": 0, "upper": 10},
    FOLDED: {"epsilon": 1.0, "lower": 0, "upper": 10},
}
#: Groups of classes in the table of differences.
CLASSES = {"ALL": [*BASE], "BOTH": [TRUNCATED, FOLDED]}

each_class = pytest.mark.parametrize("name", BASE)
each_bounded = pytest.mark.parametrize("name", [TRUNCATED, FOLDED])


def make(name: str, **changes: Any) -> Any:
    return getattr(ours, name)(**BASE[name] | changes)


# Accepted arguments and exceptions

SCOPE = {"np": np, "Decimal": Decimal, "Fraction": Fraction, "inf": INF, "nan": math.nan}
VALUES = """
    0; 1; 2; 3; -1; -3; 0.0; -0.0; 0.3; 0.5; 1.0; 2.5; -0.5; -2.5; 1e-10; 5e-324; inf; -inf; nan
    2**53 + 1; 2**62; 2**63 - 1; 2**63; -2**63; -2**63 - 1; 2**64 - 1; 2**64; 10**400; 1e19; 1e300
    2.5 + 1e-9; 2.5 - 1e-9; '1'; b'1'; None; 1j; Decimal(1); Decimal('0.5'); [1]; (1,)
    Fraction(1, 3); Fraction(5, 2); Fraction(0); Fraction(-1, 3)
    Fraction(10**400); Fraction(1, 10**400)
    True; False; np.True_; np.int8(1); np.int8(-1); np.uint8(7); np.int64(-3); np.uint64(3)
    np.float16(0.5); np.float32(0.5); np.float64(2.5); np.float64(0.3); np.float32('nan')
    np.float64('inf'); np.float64('-inf'); np.longdouble(0.5); np.complex128(1)
    np.array(1); np.array([1])
"""
PAIRS = """
    0, 0; 5, 5; -3, -2; 1, 0; 0, -1; 0, 0.0; 0.5, 1; 0.5, 1.5; 2.5, 1.5; 0.5, 0.5; -1.5, -1.5
    0, 0.3; 0.3, 1; 0, 2.5 + 1e-9; 1.5 - 1e-9, 1.5; -inf, inf; 0, inf; -inf, 0; 0.5, inf
    -inf, 2.5; inf, inf; -inf, -inf; inf, -inf; 0, -inf; inf, 0; nan, 0; 0, nan; nan, nan
    '0', 1; 0, '1'; None, 1; 0, None; 1j, 2; 0, 2j; Decimal(0), 1; 0, Decimal(1); True, 5; 0, True
    np.int8(0), np.uint64(7); np.float32(0.5), np.int8(3); np.float64('-inf'), np.float64('inf')
    0, 2**63 - 1; -2**63, -1; -2**62, 2**62; -1, 2**63; -2**63, 2**63 - 1; 2**63, 2**64 - 1
    0, 2**64 - 1; 0, 2**64; -2**63 - 1, 0; 2**64, 2**64; -10**400, 10**400
"""
#: Outcome of diffprivlib, our outcome, classes, arguments, values; comments say why.
DIFFERENCES = """
    # bools are not numbers
    accepted | TypeError | ALL | epsilon | True
    ValueError | TypeError | ALL | epsilon | False
    accepted | TypeError | ALL | sensitivity randomise | True; False
    accepted | TypeError | Geometric | variance mse | True; False
    accepted | TypeError | BOTH | lower upper | True; False
    accepted | TypeError | BOTH | bounds | True, 5; 0, True
    # a bias beyond float64
    accepted | OverflowError | Geometric | variance mse | 10**400
    # a long double has digits that would be lost
    accepted | TypeError | ALL | epsilon | np.longdouble(0.5)
    accepted | TypeError | GeometricFolded | lower upper | np.longdouble(0.5)
    # NaN is not an epsilon
    accepted | ValueError | ALL | epsilon | nan; np.float32('nan')
    # a number beyond the range of floats is taken exactly
    OverflowError | accepted | ALL | epsilon | 10**400; Fraction(10**400)
    ValueError | accepted | Geometric | epsilon | Fraction(1, 10**400)
    OverflowError | accepted | Geometric | sensitivity | 10**400
    # text and Decimals are taken exactly
    TypeError | accepted | ALL | epsilon | '1'; Decimal(1); Decimal('0.5')
    TypeError | accepted | GeometricFolded | lower upper | '1'; Decimal(1); Decimal('0.5')
    TypeError | accepted | GeometricFolded | bounds | '0', 1; 0, '1'; Decimal(0), 1; 0, Decimal(1)
    # the scale is too large
    accepted | ValueError | BOTH | epsilon | 5e-324
    OverflowError | ValueError | BOTH | sensitivity | 10**400
    accepted | ValueError | GeometricFolded | sensitivity | 2**62; 2**63 - 1; 2**63; 2**64 - 1
    accepted | ValueError | GeometricFolded | sensitivity | 2**64
    # there is nothing between the bounds
    accepted | ValueError | BOTH | bounds | inf, inf; -inf, -inf
    accepted | ValueError | GeometricFolded | bounds | 0.5, 0.5; -1.5, -1.5
    # a bound is an integer or half of one, exactly
    accepted | ValueError | GeometricFolded | lower upper | 1e-10; 5e-324; 2.5 + 1e-9; 2.5 - 1e-9
    accepted | ValueError | GeometricFolded | bounds | 0, 2.5 + 1e-9; 1.5 - 1e-9, 1.5
    # a count has 64 bits
    accepted | OverflowError | Geometric GeometricTruncated | randomise | 2**63; -2**63 - 1
    accepted | OverflowError | Geometric GeometricTruncated | randomise | 2**64 - 1; 2**64
    RecursionError | OverflowError | GeometricFolded | randomise | 2**63; -2**63 - 1
    TypeError | OverflowError | GeometricFolded | randomise | 2**64 - 1; 2**64
    # a bound has 64 bits, and folding reaches less than 2**63
    accepted | OverflowError | GeometricTruncated | lower | -2**63 - 1
    accepted | OverflowError | GeometricTruncated | upper | 2**64; 10**400
    accepted | OverflowError | GeometricTruncated | bounds | -1, 2**63; 0, 2**64; -2**63 - 1, 0
    accepted | OverflowError | GeometricTruncated | bounds | 2**64, 2**64; -10**400, 10**400
    accepted | OverflowError | GeometricFolded | upper | 1e19; 1e300
    accepted | OverflowError | GeometricFolded | bounds | -2**62, 2**62
    # there, a bound that numpy cannot round is a TypeError
    TypeError | accepted | GeometricFolded | lower upper | Fraction(5, 2); Fraction(0)
    TypeError | accepted | GeometricFolded | bounds | -2**63, -1; 2**63, 2**64 - 1
    TypeError | ValueError | GeometricFolded | lower upper | Fraction(1, 3); Fraction(-1, 3)
    TypeError | ValueError | GeometricFolded | lower upper | Fraction(1, 10**400)
    TypeError | ValueError | GeometricFolded | lower | 2**63; 2**64 - 1; 2**64; 10**400
    TypeError | ValueError | GeometricFolded | lower | Fraction(10**400)
    TypeError | ValueError | GeometricFolded | upper | -2**63; -2**63 - 1
    TypeError | OverflowError | GeometricFolded | lower | -2**63; -2**63 - 1
    TypeError | OverflowError | GeometricFolded | upper | 2**63; 2**64 - 1; 2**64; 10**400
    TypeError | OverflowError | GeometricFolded | upper | Fraction(10**400)
    TypeError | OverflowError | GeometricFolded | bounds | -1, 2**63; -2**63, 2**63 - 1
    TypeError | OverflowError | GeometricFolded | bounds | 0, 2**64 - 1; 0, 2**64; -2**63 - 1, 0
    TypeError | OverflowError | GeometricFolded | bounds | 2**64, 2**64; -10**400, 10**400
    # there, numpy takes sequences for numbers, and then does not
    ValueError | TypeError | GeometricFolded | lower upper | [1]; (1,)
    # there, folding takes a call for each reflection
    RecursionError | accepted | GeometricFolded | randomise | 2**53 + 1; 2**62; 2**63 - 1; -2**63
    # arrays and sequences are counts
    TypeError | accepted | ALL | randomise | [1]; (1,); np.array(1); np.array([1])
    TypeError | accepted | Geometric | variance mse | [1]; (1,); np.array(1); np.array([1])
"""
EXCEPTIONS = (RecursionError, OverflowError, TypeError, ValueError, Warning)
GIVEN = [
    *itertools.product(BASE, ["epsilon", "sensitivity", "randomise"]),
    *itertools.product([TRUNCATED, FOLDED], ["lower", "upper", "bounds"]),
    ("Geometric", "variance"),
    ("Geometric", "mse"),
]


def texts(block: str) -> list[str]:
    return [text.strip() for line in block.strip().splitlines() for text in line.split(";")]


def outcome(module: ModuleType, name: str, what: str, text: str) -> str:
    """Return "accepted" or the exception for a value of a parameter or of a method."""
    value, base, kind = eval(text, SCOPE), BASE[name], getattr(module, name)
    try:
        if what == "bounds":
            kind(epsilon=1.0, lower=value[0], upper=value[1])
        elif what in {"epsilon", "sensitivity", "lower", "upper"}:
            kind(**base | {what: value})
        else:
            getattr(kind(**base), what)(value)
    except EXCEPTIONS as error:
        return next(kind.__name__ for kind in EXCEPTIONS if isinstance(error, kind))
    return "accepted"


@pytest.mark.parametrize(("name", "what"), GIVEN)
def test_accepts_same_arguments_except_listed_differences(name: str, what: str) -> None:
    differing = {}
    for text in texts(PAIRS if what == "bounds" else VALUES):
        there, here = outcome(rival, name, what, text), outcome(ours, name, what, text)
        if there != here:
            differing[text] = there, here
    expected = {}
    for row in DIFFERENCES.strip().splitlines():
        if not row.strip().startswith("#"):
            there, here, names, given, block = (cell.strip() for cell in row.split(" | "))
            if name in CLASSES.get(names, names.split()) and what in given.split():
                expected |= dict.fromkeys(texts(block), (there, here))
    assert differing == expected


@each_class
@pytest.mark.parametrize(
    "seed",
    [0, 1, 42, np.random.RandomState(1), np.random.RandomState(), random.Random(), "1", 1.0],
    ids=lambda seed: type(seed).__name__,
)
def test_seed_raises(name: str, seed: Any) -> None:
    with pytest.raises(ValueError, match=r"random_state .*, since anyone who knows it could sub"):
        make(name, random_state=seed)
    assert make(name, random_state=None).random_state is None


@each_class
def test_unseeded_generator_is_accepted(name: str) -> None:
    for unseeded in (np.random.mtrand._rand, secrets.SystemRandom(), random.SystemRandom()):
        mechanism = make(name, random_state=unseeded)
        assert mechanism.random_state is None
        assert "random_state=None" in repr(mechanism)
        # A SystemRandom cannot be pickled, and a RandomState is long.
        assert len(pickle.dumps(mechanism)) < 500


def test_diffprivlib_tools_accept_our_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def count(self: Any, **arguments: Any) -> None:
        made.append(type(self).__name__)
        init(self, **arguments)

    init = ours._Bounded.__init__
    monkeypatch.setattr(ours._Bounded, "__init__", count)
    for module, name in [
        (diffprivlib.tools.histograms, TRUNCATED),
        (diffprivlib.models.naive_bayes, TRUNCATED),
        (diffprivlib.models.k_means, FOLDED),
    ]:
        monkeypatch.setattr(module, name, getattr(ours, name))
    records = np.linspace(0, 1, 60).reshape(20, 3)
    noisy, _ = diffprivlib.tools.histogram(records, epsilon=50.0, bins=4, range=(0, 1))
    assert abs(noisy - 15).max() <= 3
    diffprivlib.models.GaussianNB(bounds=(0, 1)).fit(records, np.arange(20) % 2)
    diffprivlib.models.KMeans(n_clusters=2, bounds=(0, 1)).fit(records)
    assert made.count(TRUNCATED) == 2
    assert made.count(FOLDED) >= 1


# Folding and truncation without noise

NOISELESS: list[dict[str, Any]] = [{"epsilon": INF}, {"epsilon": 0.1, "sensitivity": 0}]
each_noiseless = pytest.mark.parametrize("noiseless", NOISELESS, ids=str)


@functools.cache
def rivals(name: str, lower: float, upper: float, values: tuple[int, ...]) -> list[int]:
    """Return the values as folded or truncated by diffprivlib."""
    mechanism = getattr(rival, name)(epsilon=INF, lower=lower, upper=upper)
    move = mechanism._fold if name == FOLDED else mechanism._truncate
    return [int(np.round(move(value))) for value in values]


def fold(x: int, lower: Fraction, upper: Fraction) -> int:
    """Reflect x at the bounds until it lies between them, in one step."""
    place = (x - lower) % (2 * (upper - lower))
    folded = lower + min(place, 2 * (upper - lower) - place)
    assert folded.denominator == 1
    return int(folded)


@settings(deadline=None)
@given(st.integers(-4000, 4000), st.integers(1, 1000), st.data())
def test_folding_matches_diffprivlib(twice: int, width: int, data: st.DataObject) -> None:
    lower, upper = twice / 2, (twice + width) / 2
    x = data.draw(st.integers((twice - 50 * width) // 2, (twice + 50 * width) // 2))
    expected = rivals(FOLDED, lower, upper, (x,))
    assert [fold(x, Fraction(lower), Fraction(upper))] == expected
    assert [make(FOLDED, epsilon=INF, lower=lower, upper=upper).randomise(x)] == expected


# Distributions


def fold_all(places: Array, lower: float, upper: float) -> Array:
    low, high = round(2 * lower), round(2 * upper)
    steps = (2 * places - low) % (2 * (high - low))
    folded: Array = (low + np.minimum(steps, 2 * (high - low) - steps)) // 2
    return folded


def collected(places: Array, masses: NDArray[np.float64]) -> Distribution:
    outputs, index = np.unique(places, return_inverse=True)
    return outputs, np.bincount(index.ravel(), weights=masses)


@dataclass(frozen=True)
class Setting:
    """A count and a mechanism."""

    name: str
    count: int
    epsilon: float
    lower: float = -INF
    upper: float = INF
    sensitivity: int = 1
    dtype: str = "int64"

    def __str__(self) -> str:
        bounds = "" if self.name == "Geometric" else f" in {self.lower}..{self.upper}"
        return f"{self.name} {self.dtype} {self.count} by {self.epsilon}/{self.sensitivity}{bounds}"

    def mechanism(self) -> Any:
        bounds = {} if self.name == "Geometric" else {"lower": self.lower, "upper": self.upper}
        return getattr(ours, self.name)(
            epsilon=self.epsilon, sensitivity=self.sensitivity, **bounds
        )

    def draw(self, draws: int = DRAWS) -> Array:
        outputs: Array = self.mechanism().randomise(np.full(draws, self.count, self.dtype))
        assert outputs.dtype == self.dtype
        return outputs

    def distribution(self) -> Distribution:
        rate = self.epsilon / self.sensitivity
        zero = -math.expm1(-rate) / (1 + math.exp(-rate))
        if self.name == FOLDED and math.isfinite(self.lower + self.upper):
            # Each remainder modulo twice the width has the mass of a geometric series.
            turn = round(2 * (self.upper - self.lower))
            noise = np.arange(turn)
            mass = np.exp(-rate * noise) + np.exp(-rate * (turn - noise))
            mass *= zero / -math.expm1(-rate * turn)
            return collected(fold_all(self.count + noise, self.lower, self.upper), mass)
        # The omitted mass is below 1e-25.
        last = math.ceil(60 / rate)
        noise = np.arange(-last, last + 1)
        mass = zero * np.exp(-rate * np.abs(noise))
        info = np.iinfo(self.dtype)
        if self.name == FOLDED:
            # Folding at the other end of int64 never happens in practice.
            low = -(2**40) if self.lower == -INF else self.lower
            high = 2**40 if self.upper == INF else self.upper
            return collected(fold_all(self.count + noise, low, high), mass)
        least, greatest = max(self.lower, info.min), min(self.upper, info.max)
        start = min(max(self.count, least), greatest)
        return collected((start + noise).clip(least, greatest), mass)

    def rejects(self, outputs: Array) -> bool:
        """Return whether the outputs are not of this distribution."""
        places, masses = self.distribution()
        index = np.searchsorted(places, outputs).clip(0, places.size - 1)
        if (places[index] != outputs).any():
            return True
        observed = np.bincount(index, minlength=places.size)
        return statistics_.rejects(observed, masses * outputs.size)


#: The reflection is proved (test_primitives.py), and exact without noise (test_api_properties.py);
#: test_moments.py has the moments, and test_contract.py the draws of the other classes. These tell
#: whether bounds and sensitivity are handed on.
SETTINGS = [
    Setting("Geometric", -5, 2.0, sensitivity=3),
    *(Setting(FOLDED, count, epsilon, 0, 10) for count, epsilon in [(4, 0.03), (-3, 0.3)]),
    *(Setting(FOLDED, -8, 0.25, *bounds) for bounds in [(-0.5, 7), (-1, 7.5), (0.5, 2)]),
    Setting(FOLDED, 3, 0.2, 0, 40, dtype="uint8"),
    Setting(FOLDED, 40, 1.0, -7.5, 3.5, sensitivity=2**56),
    *(Setting(name, 3, 1.0, 0, 40, sensitivity=7) for name in (TRUNCATED, FOLDED)),
    *(Setting(name, 2, 0.3, 0, INF) for name in (TRUNCATED, FOLDED)),
    *(Setting(name, 9, 0.3, -INF, 8) for name in (TRUNCATED, FOLDED)),
    *(Setting(name, 8, 0.3, -INF, INF) for name in (TRUNCATED, FOLDED)),
]
each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


@each_setting
def test_array_distribution(setting: Setting) -> None:
    assert not setting.rejects(setting.draw())


@each_setting
def test_moments_match_distribution(setting: Setting) -> None:
    mechanism = setting.mechanism()
    places, masses = setting.distribution()
    errors = (places - setting.count).astype(float)
    bias, mse = (math.fsum((errors**i * masses).tolist()) for i in (1, 2))
    assert mechanism.bias(setting.count) == pytest.approx(bias, rel=1e-9, abs=1e-9)
    assert mechanism.mse(setting.count) == pytest.approx(mse, rel=1e-9)
    assert mechanism.variance(setting.count) == pytest.approx(mse - bias**2, rel=1e-9)


def test_uint64_bounds_above_int64() -> None:
    least = 2**64 - 11
    mechanism = make(FOLDED, epsilon=0.3, lower=least, upper=least + 10)
    counts = np.full(DRAWS, least + 7, np.uint64)
    outputs = (mechanism.randomise(counts) - np.uint64(least)).astype(np.int64)
    assert not Setting(FOLDED, 7, 0.3, 0, 10).rejects(outputs)


# Power of the test


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (Setting(TRUNCATED, 0, 0.3, 0, 10), Setting(FOLDED, 0, 0.3, 0, 10)),
        (Setting(FOLDED, 0, 0.3, 0, 10), Setting(FOLDED, 0, 0.3, -0.5, 10)),
        (Setting(FOLDED, 0, 0.3, 0, 10), Setting(FOLDED, 0, 0.3, 0, 10.5)),
        (Setting(FOLDED, -3, 0.3, 0, 10), Setting(FOLDED, 0, 0.3, 0, 10)),
    ],
    ids=str,
)
def test_wrong_distribution_is_rejected(right: Setting, wrong: Setting) -> None:
    assert right.rejects(wrong.draw())


# Bias, variance and mean squared error


@pytest.mark.parametrize("mechanism", [make(name, epsilon=0.2) for name in BASE], ids=str)
def test_moments_of_arrays_match_scalars(mechanism: Any) -> None:
    counts = [-100, -7, -1, 0, 0, 3, 8, 10, 11, 3, 50, 1000]
    for method in (mechanism.bias, mechanism.variance, mechanism.mse):
        single = [method(count) for count in counts]
        assert {type(moment) for moment in single} == {float}
        assert method(counts).tolist() == single
        assert [method(np.int16(count)) for count in counts] == single
        assert float(method(np.array(3))) == method(3)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_geometric_moments_match_diffprivlib(epsilon: float, sensitivity: int) -> None:
    here, there = (m.Geometric(epsilon=epsilon, sensitivity=sensitivity) for m in (ours, rival))
    for x in (-5, 0, 10**6):
        assert here.bias(x) == there.bias(x) == 0
        assert here.variance(x) == pytest.approx(float(there.variance(x)), rel=1e-12)
        assert here.mse(x) == pytest.approx(float(there.mse(x)), rel=1e-12)
    free = ours.GeometricTruncated(epsilon=epsilon, sensitivity=sensitivity, lower=-INF, upper=INF)
    assert (free.bias(3), free.variance(3)) == (here.bias(3), here.variance(3))


@each_noiseless
@each_bounded
def test_moments_without_noise(name: str, noiseless: dict[str, Any]) -> None:
    mechanism = make(name, **noiseless)
    for x in range(-30, 50):
        assert mechanism.bias(x) == mechanism.randomise(x) - x
        assert mechanism.variance(x) == 0
        assert mechanism.mse(x) == (mechanism.randomise(x) - x) ** 2


@each_bounded
def test_moments_at_the_end_of_uint64(name: str) -> None:
    near = make(name, epsilon=0.3, lower=0, upper=10)
    far = make(name, epsilon=0.3, lower=2**64 - 11, upper=2**64 - 1)
    for x in range(-15, 10):
        assert far.bias(2**64 - 11 + x) == near.bias(x)
        assert far.variance(2**64 - 11 + x) == near.variance(x)
    counts = np.array([2**64 - 11, 2**64 - 1, 2**63], np.uint64)
    assert far.bias(counts)[:2].tolist() == [near.bias(0), near.bias(10)]


# Arrays and scalars

MECHANISMS = [
    make("Geometric", epsilon=0.2),
    make("Geometric", epsilon=INF),
    make(TRUNCATED, epsilon=0.2, upper=100),
    make(TRUNCATED, lower=-INF, upper=INF),
    make(FOLDED, epsilon=0.2, upper=100),
    make(FOLDED, epsilon=0.2, lower=-0.5, upper=99.5),
    make(FOLDED, lower=0.5, upper=INF),
    make(FOLDED, lower=-INF, upper=INF),
    make(FOLDED, epsilon=INF),
]


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        *(((-INF, -5), "uint8"), ((-INF, -129), "int8"), ((300, INF), "uint8")),
        *(((10**6, INF), "int8"), ((2**31, INF), "int32")),
    ],
)
@each_bounded
def test_open_bounds_outside_dtype_raise(
    name: str, bounds: tuple[float, float], dtype: str
) -> None:
    mechanism = make(name, lower=bounds[0], upper=bounds[1])
    for shape in ((), (3,), (0,)):
        with pytest.raises(OverflowError, match=r"(lower|upper) = "):
            mechanism.randomise(np.ones(shape, dtype))


def test_half_integer_bounds_at_dtype_limits() -> None:
    mechanism = make(FOLDED, lower=-0.5, upper=255.5)
    assert mechanism.randomise(np.zeros(100, np.uint8)).max() <= 255
    with pytest.raises(OverflowError, match=r"(lower|upper) = "):
        make(FOLDED, lower=-0.5, upper=256).randomise(np.zeros(3, np.uint8))
    with pytest.raises(OverflowError, match=r"(lower|upper) = "):
        make(FOLDED, lower=-1, upper=255).randomise(np.zeros(3, np.uint8))


@each_bounded
def test_widest_bounds(name: str) -> None:
    for lower, upper in ((0, 2**63 - 1), (-(2**63), -1), (2**63, 2**64 - 1), (2**62, INF)):
        mechanism = make(name, lower=lower, upper=upper)
        for x in (lower, min(upper, 2**63 - 1 if upper == INF else upper)):
            assert lower <= mechanism.randomise(x) <= upper


@each_bounded
def test_lower_bound_above_int64_requires_uint64(name: str) -> None:
    mechanism = make(name, lower=2**63, upper=INF)
    counts = np.array([0, 2**63, 2**63 + 50], np.uint64)
    assert (mechanism.randomise(counts) >= 2**63).all()
    with pytest.raises(OverflowError):
        mechanism.randomise(np.array([0]))


def test_ints_are_uint64_if_a_bound_requires_it() -> None:
    mechanism = make(TRUNCATED, lower=0, upper=2**64 - 1)
    assert mechanism.randomise(2**64 - 1) > 2**63
    with pytest.raises(OverflowError, match="beyond uint64"):
        mechanism.randomise(-1)
    with pytest.raises(OverflowError, match="beyond uint64"):
        mechanism.randomise(2**64)
    with pytest.raises(OverflowError, match=r"(lower|upper) = "):
        mechanism.randomise(np.zeros(3, np.int64))


def test_uint64_scalar() -> None:
    greatest = np.uint64(2**64 - 1)
    for name in BASE:
        assert make(name).randomise(greatest) in range(11) or name == "Geometric"
    assert 2**63 < make("Geometric").randomise(greatest) < 2**64
    assert make(FOLDED, epsilon=INF).randomise(greatest) == fold(
        2**64 - 1, Fraction(0), Fraction(10)
    )
    assert make(TRUNCATED, epsilon=INF, upper=INF).randomise(greatest) == greatest
    for name in (TRUNCATED, FOLDED):
        mechanism = make(name, epsilon=INF, lower=-5)
        assert (mechanism.randomise(np.uint64(3)), mechanism.bias(np.uint64(3))) == (3, 0)


def test_infinite_bound_is_the_dtype_limit() -> None:
    for name in (TRUNCATED, FOLDED):
        mechanism = make(name, epsilon=0.01, lower=0, upper=INF)
        for dtype in DTYPES:
            outputs = mechanism.randomise(np.full(5000, 100, dtype))
            assert 0 <= outputs.min() < outputs.max()
            assert outputs.max() <= 127 if dtype == "int8" else outputs.max() > 127


# Parameters

ROUND_TRIPS = [
    *MECHANISMS,
    make("Geometric", epsilon=Fraction(1, 3), sensitivity=10**20),
    make(TRUNCATED, lower=2**63, upper=2**64 - 1),
    make(FOLDED, lower=2**63, upper=2**63 + 5),
    make(FOLDED, lower=Fraction(1, 2), upper=np.float32(7.5)),
]


@each_class
def test_parameters_are_read_only(name: str) -> None:
    mechanism = make(name, epsilon=0.5, sensitivity=2)
    there = getattr(rival, name)(**BASE[name] | {"epsilon": 0.5, "sensitivity": 2})
    before = repr(mechanism)
    for parameter in ("delta", "random_state", "sensitivity", *BASE[name]):
        assert getattr(mechanism, parameter) == getattr(there, parameter)
        with pytest.raises(AttributeError):
            setattr(mechanism, parameter, 3)
        with pytest.raises(AttributeError):
            delattr(mechanism, parameter)
    assert repr(mechanism) == before
    assert mechanism.delta == 0


def test_parameters_keep_their_types() -> None:
    mechanism = make(FOLDED, epsilon=1, sensitivity=np.int8(2), lower=0, upper=Fraction(5, 2))
    assert type(mechanism.epsilon) is int
    assert type(mechanism.sensitivity) is int
    assert (type(mechanism.lower), type(mechanism.upper)) == (int, Fraction)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Geometric", {"epsilon": INF, "sensitivity": 0}),
        (TRUNCATED, {"epsilon": 1e-10, "sensitivity": 3, "lower": -INF, "upper": 7}),
        (FOLDED, {"epsilon": 1.5, "lower": -0.5, "upper": 10.0, "random_state": None}),
    ],
)
def test_repr_matches_diffprivlib(name: str, arguments: dict[str, Any]) -> None:
    here, there = (repr(getattr(module, name)(**arguments)) for module in (ours, rival))
    assert here == there.replace("diffprivlib.mechanisms.geometric", ours.__name__)


@pytest.mark.parametrize("mechanism", ROUND_TRIPS, ids=str)
def test_copies_pickles_and_repr(mechanism: Any) -> None:
    mechanism.randomise(3)
    text = repr(mechanism).removeprefix(f"{ours.__name__}.")
    check_same(mechanism, eval(text, {**vars(ours), **SCOPE}))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        check_same(mechanism, pickle.loads(pickle.dumps(mechanism, protocol)))
    for other in (mechanism.copy(), copy.copy(mechanism), copy.deepcopy(mechanism)):
        assert other is not mechanism
        check_same(mechanism, other)


def check_same(one: Any, other: Any) -> None:
    assert type(other) is type(one)
    assert repr(other) == repr(one)
    for x in (-5, 3, 2**63):
        assert (other.bias(x), other.variance(x)) == (one.bias(x), one.variance(x))
    assert type(other.randomise(3)) is int


IMPORT = {
    "ours": "from geomdp.compat.diffprivlib import GeometricFolded",
    "theirs": "from diffprivlib.mechanisms import DPMechanism, DPMachine",
    "made": "mechanism = GeometricFolded(epsilon=1, lower=0, upper=9)",
    "unpickled": "import pickle; mechanism = pickle.loads(bytes.fromhex('{pickle}'))",
    "asked": "assert issubclass(GeometricFolded, DPMechanism)",
    "own": "class Own(GeometricFolded): pass\nmechanism = Own(epsilon=1, lower=0, upper=9)",
}


@pytest.mark.parametrize("order", ["ours own theirs", "unpickled theirs", "theirs ours asked made"])
def test_isinstance_of_diffprivlib_in_any_import_order(order: str) -> None:
    lines = [IMPORT[step] for step in order.split()]
    lines[-1:] = [
        # We do not import diffprivlib ourselves.
        "import sys; assert 'theirs' in {before} or 'diffprivlib' not in sys.modules",
        lines[-1],
        "assert isinstance(mechanism, DPMechanism) and isinstance(mechanism, DPMachine)",
        "assert not isinstance(1, DPMechanism)",
        "assert mechanism.__class__ is type(mechanism)",
    ]
    code = "\n".join(lines).format(
        pickle=pickle.dumps(make(FOLDED)).hex(), before=order.split()[:-1]
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_subclass_keeps_its_name() -> None:
    mechanism = Derived(epsilon=1.0, lower=0, upper=3)
    assert repr(mechanism) == f"{__name__}.Derived({repr(make(FOLDED, upper=3)).split('(')[1]}"
    assert type(mechanism.copy()) is type(pickle.loads(pickle.dumps(mechanism))) is Derived


class Derived(ours.GeometricFolded):
    pass


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("infinite", [False, True], ids=["unbounded", "half-bounded"])
def test_moments_respect_dtype_limits(dtype: str, infinite: bool) -> None:
    limits = np.iinfo(dtype)
    least = 0 if infinite else int(limits.min)
    bounds = {"lower": 0, "upper": INF} if infinite else {}
    mechanism = make(TRUNCATED if infinite else "Geometric", epsilon=0.01, **bounds)
    narrow = make(TRUNCATED, epsilon=0.01, lower=least, upper=int(limits.max))
    counts = np.array([0, 5, 127], dtype)
    np.testing.assert_array_equal(mechanism.bias(counts), narrow.bias(counts))
    np.testing.assert_array_equal(mechanism.variance(counts), narrow.variance(counts))
    assert mechanism.bias(counts)[2] != mechanism.bias(127)
