"""Unbiased functions of counts: the mean at every true count, over every output.

The laws are the ideal one in mpmath, and the sampled one from the thresholds of the certificate.
"""

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from exact import censored
from geomdp import GeometricMechanism
from geomdp._numerics import inverse
from geomdp.accuracy import unbiased
from laws import step_law

Function = Callable[[Any], Any]
FUNCTIONS: dict[str, Function] = {
    "empty": lambda y: y <= 0,
    "one value": lambda y: y == 1,
    "between": lambda y: (y >= 1) & (y <= 2),
    "itself": lambda y: y,
    "square": np.square,
    "entropy": lambda y: y * np.log(np.maximum(y, 1)),
    "inverse": lambda y: 1 / (1 + np.abs(y)),
}


def estimated(
    f: Function, mechanism: GeometricMechanism, outputs: Any
) -> tuple[list[float], list[float], list[float]]:
    """Return the function, its estimates and their variances at all outputs."""
    estimates, variances = unbiased(f, mechanism)(outputs)
    found = np.asarray(f(outputs.astype(float)), float), estimates, variances
    return tuple(each.tolist() for each in found)  # type: ignore[return-value]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rate", ["1/20", "1/2", "3"])
@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (0, 2), (-3, 9), (0, 40)])
def test_no_estimate_is_biased_at_any_count(bounds: tuple[int, int], rate: str, name: str) -> None:
    """For ideal noise, up to rounding, the estimate of the variance too; for sampled noise, up to
    what the certificate says.
    """
    mechanism, (lower, upper) = GeometricMechanism(rate, bounds=bounds), bounds
    outputs = np.arange(lower, upper + 1)
    true, estimates, variances = estimated(FUNCTIONS[name], mechanism, outputs)
    assert min(variances) >= 0
    certificate = mechanism.certificate()
    law = step_law(json.loads(certificate.to_json())) if upper > lower else [[Fraction(1)]]
    size = max(map(abs, estimates)) + max(map(abs, true))
    off = certificate.total_variation * (max(estimates) - min(estimates))
    with mpmath.workdps(40):
        for x, f in enumerate(true):
            ideal = censored(Fraction(rate), upper - lower, x) if upper > lower else [mpf(1)]
            mean = sum(p * e for p, e in zip(ideal, estimates, strict=True))
            assert abs(mean - f) <= 2**-48 * size
            square = sum(p * mpf(e) ** 2 for p, e in zip(ideal, estimates, strict=True))
            spread = sum(p * v for p, v in zip(ideal, variances, strict=True))
            assert abs(square - mean**2 - spread) <= 2**-46 * size**2
            sampled = sum(p * Fraction(e) for p, e in zip(law[x], estimates, strict=True))
            assert abs(sampled - Fraction(f)) <= off + 2**-48 * size


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_the_limits_of_a_dtype_are_bounds(dtype: str, name: str) -> None:
    bounds = None if dtype == "int8" else (0, 255)
    mechanism = GeometricMechanism("1/10", bounds=bounds)
    limits = np.iinfo(dtype)
    outputs = np.arange(limits.min, limits.max + 1).astype(dtype)
    true, estimates, _ = estimated(FUNCTIONS[name], mechanism, outputs)
    again = unbiased(FUNCTIONS[name], mechanism)(outputs.tolist(), dtype=dtype)[0]
    assert again.tolist() == estimates
    with mpmath.workdps(40):
        for x in (0, 1, 2, 100, 127, 128, 129, 130, 254, 255):
            law = censored(Fraction(1, 10), 255, x)
            mean = sum(p * e for p, e in zip(law, estimates, strict=True))
            assert abs(mean - true[x]) <= 2**-46 * max(map(abs, estimates))


fractions = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50))


@given(
    fractions, st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=9)
)
def test_the_lemmas_hold_in_rational_arithmetic(a: Fraction, pairs: list[tuple[int, int]]) -> None:
    """Lemmas 23 and 25, at any rational a, for two functions of 0 to n."""
    n, e = len(pairs) - 1, a / (1 - a)
    c = e * (1 + e)

    def inverted(f: list[Fraction]) -> list[Fraction]:
        inside = [f[y] - c * (f[y + 1] - 2 * f[y] + f[y - 1]) for y in range(1, n)]
        return [f[0] - e * (f[1] - f[0]), *inside, f[n] - e * (f[n - 1] - f[n])]

    f, g = ([Fraction(x) for x in each] for each in zip(*pairs, strict=True))
    products = [x * y for x, y in zip(f, g, strict=True)]
    one, two, both = map(inverted, (f, g, products))
    for y in range(n + 1):
        up = (f[y + 1] - f[y], g[y + 1] - g[y]) if y < n else (Fraction(), Fraction())
        down = (f[y] - f[y - 1], g[y] - g[y - 1]) if y else (Fraction(), Fraction())
        found = c * (up[0] * up[1] + down[0] * down[1])
        if 0 < y < n:
            found += c**2 * (up[0] - down[0]) * (up[1] - down[1])
        assert found == one[y] * two[y] - both[y]
    for x in range(n + 1):
        law = [(1 - a) / (1 + a) * a ** abs(y - x) for y in range(n + 1)]
        law[0], law[n] = a**x / (1 + a), a ** (n - x) / (1 + a)
        assert sum(law) == 1
        assert sum(p * u for p, u in zip(law, one, strict=True)) == f[x]


def test_covariances_are_those_of_the_lemma() -> None:
    """Exact at powers of two: with a = 1/2, e is 1 and c is 2."""
    y = np.arange(5)
    one, two = (inverse.steps(f, y, (0, 4), 1.0) for f in (lambda y: y**2, lambda y: y))
    products = inverse.steps(lambda y: y**3, y, (0, 4), 1.0)
    wanted = one.estimates * two.estimates - products.estimates
    assert one.covariances(two).tolist() == wanted.tolist()


def miss(level: float, rate: float, distances: tuple[int, ...]) -> float:
    """Return how often the least number of counts of at least 0 is above the true one.

    The true counts are at these distances from 0; all outcomes are enumerated.
    """
    a = math.exp(-rate)
    e = inverse.weight(rate)
    c = e * (1 + e)
    values = np.array([0.0, -c, 1 + c, 1.0])  # below -1, at -1, at 0, above
    laws = []
    for x in distances:
        noise = [(1 - a) / (1 + a) * a ** abs(y - x) for y in (-1, 0)]
        tails = [(a ** (d + 1) if d >= 0 else 1 + a - a ** (-d)) / (1 + a) for d in (x + 1, -x)]
        laws.append([tails[0], *noise, tails[1]])
        assert abs(sum(laws[-1]) - 1) < 1e-12
    outcomes = [*itertools.product(range(4), repeat=len(distances))]
    tally = np.array([[each.count(kind) for each in outcomes] for kind in range(4)])
    n = np.full(len(outcomes), len(distances))
    found = inverse.least(tally, values, n, c, level)
    true = sum(x >= 0 for x in distances)
    return sum(
        math.prod(law[kind] for law, kind in zip(laws, each, strict=True))
        for each, least in zip(outcomes, found.tolist(), strict=True)
        if least > true
    )


@pytest.mark.parametrize("rate", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.02, 0.3])
def test_the_least_number_holds_for_every_table(rate: float, level: float) -> None:
    missed = [
        miss(level, rate, distances)
        for n in (1, 2, 5)
        for distances in itertools.combinations_with_replacement((-4, -2, -1, 0, 1, 3), n)
    ]
    assert max(missed) <= level * (1 + 1e-12)
    # The tests reject where they can: with as many cells as that takes.
    assert max(missed) > 0 or level == 0.02 or rate == 0.2


def test_an_interval_is_not_much_wider_than_a_normal_one() -> None:
    """Of many cells near a limit: Chernoff's bound for a known variance is 1.39 times as wide."""
    for c, n in itertools.product((0.1, 2.0), (10**3, 10**5, 10**6)):
        tally = np.array([[n // 2], [n // 8], [n // 8], [n // 4]])
        values = np.array([0.0, -c, 1 + c, 1.0])
        [least] = inverse.least(tally, values, np.array([n]), c, 0.025)
        normal = 1.96 * math.sqrt(c * (1 + c) * (n // 4))
        assert 1.6 < ((tally[:, 0] * values).sum() - least) / normal < 1.8


def test_without_noise_the_number_is_known() -> None:
    tally = np.array([[3, 0, 5], [2, 4, 0]])
    found = inverse.least(tally, np.array([0.0, 1.0]), tally.sum(axis=0), 0.0, 1e-9)
    assert found.tolist() == [2, 4, 0]


def test_results_keep_keys_shapes_and_types() -> None:
    call = unbiased(lambda y: y <= 0, GeometricMechanism(1))
    wanted, variances = call(np.array([0, 1]))
    assert call(0) == (wanted[0], variances[0])
    assert call({"a": 0, "b": 1})[0] == {"a": wanted[0], "b": wanted[1]}
    series = pd.Series([0, 1], index=["a", "b"], name="n")
    assert call(series)[1].equals(pd.Series(variances, index=["a", "b"], name="n"))
    for dtype in ("int8", "int16", "int32", "int64", ">i4"):
        found = call(np.array([[0], [1]], dtype))[0]
        assert (found.dtype, found.tolist()) == ("float64", wanted.reshape(2, 1).tolist())
    unsigned = unbiased(lambda y: y >= 1, GeometricMechanism(1, bounds=(0, 2**64 - 1)))
    assert unsigned(np.array([0, 1], "uint64"))[0].shape == (2,)
    with pytest.raises(OverflowError, match=r"beyond 2\*\*53"):
        unsigned(np.array([2**63], "uint64"))


@pytest.mark.parametrize(
    "function",
    [
        *(lambda y: y**40, lambda y: np.exp(0.24 * y), lambda y: y >= 1900, lambda y: y > 10**9),
        *(
            lambda y: 0 * y,
            lambda y: np.where(y > 0, y * np.log(y), 0),
            lambda y: np.exp(-0.24 * y),
        ),
    ],
)
def test_functions_that_grow_slowly_are_taken(function: Function) -> None:
    estimate, variance = unbiased(function, GeometricMechanism("1/2"))(3)
    assert math.isfinite(estimate)
    assert variance >= 0


@pytest.mark.parametrize(
    "function",
    [
        *(
            lambda y: np.exp(0.25 * y),
            lambda y: np.exp(-0.26 * y),
            lambda y: np.exp(0.3 * np.abs(y)),
        ),
        *(lambda y: np.sin(y) * np.exp(0.3 * y), lambda y: np.exp(y * y), lambda y: y * np.log(y)),
    ],
)
def test_functions_that_grow_as_fast_as_noise_falls_are_refused(function: Function) -> None:
    with pytest.raises(ValueError, match=r"function (grows as fast|has no finite value)"):
        unbiased(function, GeometricMechanism("1/2"))


def test_a_function_is_checked_where_it_is_estimated() -> None:
    call = unbiased(lambda y: 1 / (y - 123), GeometricMechanism("1/2"))
    with pytest.raises(ValueError, match="no finite value"):
        call(124)
