"""Accuracy and intervals, against ball arithmetic, brute force and the sampled distribution.

Nothing here shares code with `geomdp.accuracy`. Ball arithmetic (python-flint) decides inequalities
about the ideal distribution, at sufficient precision. The stand-alone verifier computes the sampled
distribution, over all tapes, in integers from the thresholds of the certificate.
"""

import decimal
import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exact import censored, stated
from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from geomdp._numerics import count_moments
from geomdp.accuracy import (
    accuracy_to_epsilon,
    accuracy_to_scale,
    bias,
    epsilon_to_accuracy,
    mean_absolute_error,
    ratio_confidence_interval,
    scale_to_accuracy,
    simultaneous_accuracy,
    sum_confidence_interval,
    variance,
)
from geomdp.compat.opendp_accuracy import (
    accuracy_to_discrete_laplacian_scale,
    discrete_laplacian_scale_to_accuracy,
)
from geomdp.distribution import CensoredGeometric, TwoSidedGeometric
from tapes import Distribution, sampled_distribution
from unsigned import limits

pytestmark = pytest.mark.filterwarnings("ignore:alpha = .* is the probability")

# OpenDP turns backtraces on when it is imported.
os.environ["RUST_BACKTRACE"] = "0"

Real: TypeAlias = int | float | Fraction

GREATEST = math.nextafter(math.inf, 0)
# A value this close to a float, relatively, may be rounded to the next float on the safe side.
TIE = Fraction(1, 10**34)
TINIEST = 5e-324
from_scale = GeometricMechanism.from_scale


# The ideal distribution without bounds, in balls


def real(value: Real) -> arb:
    exact = stated(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def is_positive(difference: Callable[[], arb]) -> bool:
    """Return whether a non-zero difference is positive, at sufficient precision."""
    for bits in (2**k for k in range(7, 18)):
        with ctx.workprec(bits):
            ball = difference()
            if ball > 0:
                return True
            if ball < 0:
                return False
    raise AssertionError("undecided")


def log_tail(rate: Fraction, steps: Real) -> arb:
    """Return the logarithm of ``2 q**steps / (1 + q)``."""
    return arb.const_log2() - real(rate) * real(steps) - (-real(rate)).exp().log1p()


def has_tail(rate: Fraction, steps: Real, alpha: Real, n: int = 1) -> bool:
    """Return whether one of n noises errs so with at most alpha; p = ``2 q**steps / (1 + q)``."""
    if n == 1:
        return is_positive(lambda: real(alpha).log() - log_tail(rate, steps))
    return alpha == 1 or is_positive(
        lambda: n * (-log_tail(rate, steps).exp()).log1p() - (-real(alpha)).log1p()
    )


def has_accuracy(scale: Real, accuracy: int, alpha: Real, tail: str = ">", n: int = 1) -> bool:
    """Return whether ``P[any |Z| > accuracy] <= alpha``, or with ``>=``, for any integer."""
    least = accuracy + 1 if tail == ">" else accuracy
    if least <= 0 or not scale:
        return alpha == 1 or least > 0
    return has_tail(1 / greater(scale), least, alpha, n)


def is_accuracy(scale: Real, alpha: Real, accuracy: int, tail: str = ">", n: int = 1) -> bool:
    """Return whether this is the least integer with the accuracy."""
    if not has_accuracy(scale, accuracy, alpha, tail, n):
        return False
    return accuracy == 0 or not has_accuracy(scale, accuracy - 1, alpha, tail, n)


def steps_to(accuracy: Real, tail: str) -> int:
    """Return the least error whose probability alpha limits."""
    exact = stated(accuracy)
    return math.floor(exact) + 1 if tail == ">" else math.ceil(exact)


def is_scale(accuracy: Real, alpha: Real, scale: float, tail: str = ">", n: int = 1) -> bool:
    """Return whether this is the greatest float with the accuracy."""
    steps = steps_to(accuracy, tail)
    return is_greatest(lambda rate: has_tail(rate, steps, alpha, n), alpha, scale)


def is_greatest(holds: Callable[[Fraction], bool], alpha: Real, scale: float) -> bool:
    if math.isinf(scale) or alpha == 1:
        return math.isinf(scale) and alpha == 1
    if scale and not holds(1 / greater(scale)):
        return False
    if scale == GREATEST:
        return True
    following = math.nextafter(scale, math.inf)
    return not holds((1 - TIE) / greater(following))


def is_epsilon(
    accuracy: Real, alpha: Real, sensitivity: Real, epsilon: float, tail: str = ">", *, n: int = 1
) -> bool:
    """Return whether this is the least float with the accuracy."""
    if alpha == 1 or not sensitivity:
        return epsilon == 0
    steps = steps_to(accuracy, tail)
    if not epsilon:
        return False
    if not math.isinf(epsilon):
        # Noise is made for the lesser reading of a float.
        if not has_tail(lesser(epsilon) / stated(sensitivity), steps, alpha, n):
            return False
        if epsilon == TINIEST:
            return True
    before = lesser(math.nextafter(epsilon, 0)) * (1 - TIE)
    return not has_tail(before / stated(sensitivity), steps, alpha, n)


def lesser(number: Real) -> Fraction:
    """Return the lesser reading of a float, for which noise by epsilon is made."""
    return min(stated(number), Fraction(number))


def greater(number: Real) -> Fraction:
    """Return the greater reading of a float, for which noise by scale is made."""
    return max(stated(number), Fraction(number))


def is_rounded_up(
    value: float, exact: Callable[[], arb], read: Callable[[float], Fraction] = Fraction
) -> bool:
    """Return whether a float is a positive real number rounded up."""
    if not math.isinf(value) and not is_positive(lambda: real(read(value)) - exact()):
        return False
    before = read(math.nextafter(value, 0)) * (1 - TIE)
    return is_positive(lambda: exact() - real(before)) if before else value == TINIEST


positive = st.one_of(
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    st.floats(1e-3, 1e6),
    st.integers(-1074, 1023).map(lambda k: 2.0**k),
    st.integers(1, 10**400),
    st.integers(1, 10**400).map(lambda n: Fraction(1, n)),
    st.builds(Fraction, st.integers(1, 2**200), st.integers(1, 2**200)),
)
levels = st.one_of(
    st.floats(min_value=0, max_value=1, exclude_min=True),
    st.floats(1e-12, 1),
    st.integers(0, 1074).map(lambda k: 2.0**-k),
    st.integers(1, 53).map(lambda k: 1 - 2.0**-k),
    st.integers(1, 300).map(lambda k: 1 - Fraction(1, 10**k)),
    st.integers(1, 300).map(lambda k: Fraction(1, 10**k)),
    st.builds(lambda n, m: Fraction(min(n, m), max(n, m)), *[st.integers(1, 2**200)] * 2),
    st.just(1),
)
# One noise, or several at once.
sizes = st.one_of(st.just(1), st.integers(1, 300), st.integers(1, 10**30))
senses = st.sampled_from([">", ">="])
accuracies = st.one_of(
    st.integers(1, 100),
    st.integers(1, 10**320),
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    st.floats(0.01, 1e4),
    st.builds(Fraction, st.integers(1, 2**100), st.integers(1, 2**100)),
)
many = settings(deadline=None, max_examples=200)


@many
@given(positive, levels, sizes, senses)
@example(TINIEST, TINIEST, 1, ">")
@example(TINIEST, 1 - 2.0**-53, 1, ">=")
@example(GREATEST, TINIEST, 1, ">=")
@example(GREATEST, TINIEST, 10**30, ">")
@example(GREATEST, 1 - 2.0**-53, 1, ">")
@example(1, 1, 1, ">=")
@example(GREATEST, 1, 1, ">")
@example(Fraction(1, 10**400), Fraction(1, 10**400), 1, ">=")
@example(1 / 37, 0.05, 1, ">")
@example(1, 0.05, 10**6, ">")
@example(1, 1 - Fraction(1, 10**300), 2, ">=")
def test_accuracy_is_the_least_integer(scale: Real, alpha: Real, n: int, tail: Any) -> None:
    accuracy = scale_to_accuracy(scale, alpha, n=n, tail=tail)
    assert type(accuracy) is int
    assert is_accuracy(scale, alpha, accuracy, tail, n)


@settings(deadline=None, max_examples=100)
@given(positive, levels, positive, sizes, senses)
def test_accuracy_of_epsilon(
    epsilon: Real, alpha: Real, sensitivity: Real, n: int, tail: Any
) -> None:
    accuracy = epsilon_to_accuracy(epsilon, alpha, sensitivity=sensitivity, n=n, tail=tail)
    assert type(accuracy) is int
    assert is_accuracy(stated(sensitivity) / lesser(epsilon), alpha, accuracy, tail, n)


def bracket(value: Callable[[], arb], bits: int) -> tuple[Fraction, Fraction]:
    """Return dyadic numbers just below and just above a real number."""

    def exact(ball: arb) -> Fraction:
        man, exp = (int(part) for part in ball.man_exp())
        return man * Fraction(2) ** exp

    with ctx.workprec(bits):
        ball = value()
        return exact(ball.lower()), exact(ball.upper())


@settings(deadline=None, max_examples=100)
@given(st.floats(0.05, 1e6), st.integers(0, 300), st.sampled_from([200, 400, 1500]))
def test_levels_just_below_and_above_a_tail(scale: float, a: int, bits: int) -> None:
    rate = 1 / greater(scale)
    below, above = bracket(lambda: log_tail(rate, a + 1).exp(), bits)
    assert 0 < above - below < above / 2 ** (bits - 60)
    assert scale_to_accuracy(scale, above) == a
    assert scale_to_accuracy(scale, above, tail=">=") == a + 1
    assert scale_to_accuracy(scale, below) == a + 1
    assert scale_to_accuracy(scale, below, tail=">=") == a + 2


@many
@given(accuracies, levels, sizes, senses)
@example(1, 1 - Fraction(1, 10**300), 1, ">")
@example(10**320, TINIEST, 1, ">=")
@example(10**320, 1 - Fraction(1, 10**300), 1, ">")
@example(TINIEST, 0.5, 1, ">")
@example(2.5, 0.05, 1, ">=")
@example(1, 1 - Fraction(1, 2**200), 1, ">=")
@example(1, 1 - Fraction(1, 10**300), 2, ">=")
@example(1, 1 - Fraction(1, 10**300), 10**30, ">")
def test_scale_is_the_largest_float(accuracy: Real, alpha: Real, n: int, tail: Any) -> None:
    scale = accuracy_to_scale(accuracy, alpha, n=n, tail=tail)
    assert type(scale) is float
    assert is_scale(accuracy, alpha, scale, tail, n)
    if not math.isinf(scale):
        assert scale_to_accuracy(scale, alpha, n=n, tail=tail) <= math.ceil(stated(accuracy))
        larger = math.nextafter(scale, math.inf)
        if not math.isinf(larger):
            assert scale_to_accuracy(larger, alpha, n=n, tail=tail) > math.floor(stated(accuracy))


@many
@given(accuracies, levels, positive, sizes, senses)
@example(1, 0.05, GREATEST, 1, ">")
@example(1, 1 - 2.0**-53, TINIEST, 1, ">")
@example(3, 0.05, 1, 1, ">=")
@example(1, 1 - Fraction(1, 2**200), 1, 1, ">=")
@example(10**320, 0.5, TINIEST, 1, ">")
@example(5, 0.05, 1, 200, ">")
def test_epsilon_is_the_least_float(
    accuracy: Real, alpha: Real, sensitivity: Real, n: int, tail: Any
) -> None:
    epsilon = accuracy_to_epsilon(accuracy, alpha, sensitivity=sensitivity, n=n, tail=tail)
    assert type(epsilon) is float
    assert is_epsilon(accuracy, alpha, sensitivity, epsilon, tail, n=n)
    if epsilon and not math.isinf(epsilon):
        again = epsilon_to_accuracy(epsilon, alpha, sensitivity=sensitivity, n=n, tail=tail)
        assert again <= math.ceil(stated(accuracy))


def test_accuracy_zero() -> None:
    for alpha in (TINIEST, 0.05, 0.5, 1 - 2.0**-53):
        assert is_scale(0, alpha, accuracy_to_scale(0, alpha))
        assert is_epsilon(0, alpha, 1, accuracy_to_epsilon(0, alpha))
    assert accuracy_to_scale(0, 1) == math.inf
    assert accuracy_to_epsilon(0, 1) == 0


@pytest.mark.parametrize("method", ["ceiling", "continuous"])
def test_n_at_once_by_other_methods(method: Any) -> None:
    for n in (2, 200):
        share = 1 - (1 - 0.05) ** (1 / n)
        found = scale_to_accuracy(3, 0.05, n=n, method=method)
        assert found == pytest.approx(scale_to_accuracy(3, share, method=method), rel=1e-12)
        back = accuracy_to_scale(found, 0.05, n=n, method=method)
        assert back == pytest.approx(found / -math.log(share), rel=1e-12)


@settings(deadline=None, max_examples=100)
@given(st.floats(1e-4, 100), st.integers(0, 1000), st.sampled_from([200, 600]))
def test_inverses_round_ties_to_the_safe_side(epsilon: float, a: int, bits: int) -> None:
    # At these levels the least epsilon is too close to a float for any fixed number of digits. They
    # have at most the 14,000 bits that are accepted.
    a = min(a, int(9000 / epsilon) - 1)
    below, above = bracket(lambda: log_tail(stated(epsilon), a + 1).exp(), bits)
    assert accuracy_to_epsilon(a, below) == math.nextafter(epsilon, math.inf)
    assert accuracy_to_epsilon(a, above) in (epsilon, math.nextafter(epsilon, math.inf))
    scale = 1 / epsilon
    below, above = bracket(lambda: log_tail(1 / stated(scale), a + 1).exp(), bits)
    assert accuracy_to_scale(a, below) == math.nextafter(scale, 0)
    assert accuracy_to_scale(a, above) in (scale, math.nextafter(scale, 0))


# The note's formulas


def log_ratio(scale: Real, alpha: Real) -> arb:
    return -real(scale) * real(alpha).log()


@many
@given(positive, levels)
@example(GREATEST, TINIEST)
@example(TINIEST, 1 - 2.0**-53)
@example(GREATEST, 1 - 2.0**-53)
@example(GREATEST, 1)
@example(1, 0.5)
def test_accuracy_by_the_note(scale: Real, alpha: Real) -> None:
    note = scale_to_accuracy(scale, alpha, method="ceiling")
    continuous = scale_to_accuracy(scale, alpha, method="continuous")
    assert (type(note), type(continuous)) == (int, float)
    assert note - scale_to_accuracy(scale, alpha) in (0, 1)
    if alpha == 1:
        assert (note, continuous) == (0, 0)
        return
    drawn = greater(scale)
    assert is_positive(lambda: note - log_ratio(drawn, alpha))
    assert is_positive(lambda: log_ratio(drawn, alpha) - (note - 1))
    assert is_rounded_up(continuous, lambda: log_ratio(drawn, alpha))
    # Up to rounding, as the note's accuracy may not be a float.
    assert Fraction(math.nextafter(continuous, 0)) < note
    assert math.isinf(continuous) or note < Fraction(continuous) + 1
    if note < 2**53:
        assert continuous <= note


@many
@given(accuracies, levels, positive)
@example(GREATEST, TINIEST, 1)
@example(TINIEST, 0.5, GREATEST)
def test_inverse_by_the_note(accuracy: Real, alpha: Real, sensitivity: Real) -> None:
    scale = accuracy_to_scale(accuracy, alpha, method="ceiling")
    epsilon = accuracy_to_epsilon(accuracy, alpha, sensitivity=sensitivity, method="ceiling")
    assert accuracy_to_scale(accuracy, alpha, method="continuous") == scale
    assert (
        accuracy_to_epsilon(accuracy, alpha, sensitivity=sensitivity, method="continuous")
        == epsilon
    )
    if alpha == 1:
        assert (scale, epsilon) == (math.inf, 0)
        return
    ratio = stated(sensitivity) / stated(accuracy)
    assert is_rounded_up(epsilon, lambda: log_ratio(ratio, alpha), lesser)

    def holds(rate: Fraction) -> bool:
        return is_positive(lambda: real(rate) - log_ratio(1 / stated(accuracy), alpha))

    assert is_greatest(holds, alpha, scale)


# OpenDP's


def opendp_accuracy(scale: Real, alpha: Real) -> arb:
    """Return where ``2 q**a / (1 + q) = alpha``, for a real number a."""
    rate = 1 / stated(scale)
    return (log_tail(rate, 0) - real(alpha).log()) / real(rate)


@many
@given(positive, levels)
@example(GREATEST, TINIEST)
@example(TINIEST, TINIEST)
@example(0.001, 0.05)
@example(1e17, 1)
@example(GREATEST, 1)
def test_opendp_accuracy(scale: Real, alpha: Real) -> None:
    accuracy = discrete_laplacian_scale_to_accuracy(scale, alpha)
    assert type(accuracy) is float
    assert is_rounded_up(accuracy, lambda: opendp_accuracy(scale, alpha))


@many
@given(accuracies, levels)
@example(TINIEST, 0.5)
@example(GREATEST, 1 - 2.0**-53)
@example(0.5, 1 - 2.0**-53)
@example(Fraction(1, 2) + Fraction(1, 10**40), 1 - Fraction(1, 10**90))
@example(Fraction(1, 2) - Fraction(1, 10**40), 1 - Fraction(1, 10**90))
@example(0.25, 1 - Fraction(1, 10**90))
def test_opendp_scale(accuracy: Real, alpha: Real) -> None:
    scale = accuracy_to_discrete_laplacian_scale(accuracy, alpha)
    assert type(scale) is float
    assert is_greatest(lambda rate: has_tail(rate, accuracy, alpha), alpha, scale)


@settings(deadline=None, max_examples=200)
@given(st.floats(0.02, 1e6), st.floats(1e-100, 0.99))
def test_opendp_agrees_for_ordinary_parameters(scale: float, alpha: float) -> None:
    accuracy = discrete_laplacian_scale_to_accuracy(scale, alpha)
    assert accuracy == pytest.approx(
        dp.discrete_laplacian_scale_to_accuracy(scale, alpha), rel=1e-9
    )
    back = accuracy_to_discrete_laplacian_scale(accuracy, alpha)
    assert back == pytest.approx(scale, rel=1e-9)
    # OpenDP's search starts from Laplace noise, and stops early for accuracies far below 1.
    if accuracy > 0.1:
        theirs = dp.accuracy_to_discrete_laplacian_scale(accuracy, alpha)
        assert back == pytest.approx(theirs, rel=1e-9)


@many
@given(positive, levels)
@example(2251799813685248.0, Fraction(68147, 90992))
def test_opendp_accuracy_rounded_down_is_exact(scale: Real, alpha: Real) -> None:
    # OpenDP's documentation allows rounding down.
    # OpenDP draws for the number that a float stores.
    scale = Fraction(scale)
    accuracy = discrete_laplacian_scale_to_accuracy(scale, alpha)
    exact = scale_to_accuracy(scale, alpha)
    assert exact <= accuracy
    # Unless rounding up led to an integer.
    if math.isfinite(accuracy) and accuracy % 1 and alpha != 1:
        assert math.floor(accuracy) == exact
        assert scale_to_accuracy(scale, alpha, tail=">=") == exact + 1


# No noise


def test_scale_zero() -> None:
    for zero, alpha in itertools.product((0, -0.0, Fraction(0)), (TINIEST, 0.05, 1)):
        for method, kind in (("exact", int), ("ceiling", int), ("continuous", float)):
            found = scale_to_accuracy(zero, alpha, method=method)  # type: ignore[arg-type]
            assert (found, type(found)) == (0, kind)
        assert scale_to_accuracy(zero, alpha, tail=">=") == (0 if alpha == 1 else 1)
        assert (
            epsilon_to_accuracy(1, alpha, sensitivity=zero)
            == accuracy_to_epsilon(3, alpha, sensitivity=zero)
            == 0
        )
        assert discrete_laplacian_scale_to_accuracy(zero, alpha) == 0
        assert accuracy_to_discrete_laplacian_scale(zero, alpha) == 0


# Arrays


METHODS: list[dict[str, Any]] = [
    *({"method": method} for method in ("exact", "ceiling", "continuous")),
    {"tail": ">="},
]
OF_SCALE: list[Callable[..., Any]] = [
    functools.partial(function, **kind)
    for function in (scale_to_accuracy, accuracy_to_scale, epsilon_to_accuracy, accuracy_to_epsilon)
    for kind in METHODS
] + [discrete_laplacian_scale_to_accuracy, accuracy_to_discrete_laplacian_scale]
INTEGERS = [f for f in OF_SCALE if isinstance(f(3, 0.05), int)]


each_function = pytest.mark.parametrize("function", OF_SCALE)


@each_function
def test_arrays_are_broadcast(function: Callable[..., Any]) -> None:
    wanted = np.int64 if function in INTEGERS else np.float64
    values = np.array([[0.5, 3, 1e10], [7, 0.1, 2]])
    values.flags.writeable = False
    alphas = [0.5, 1e-3, 0.05]
    result = function(values, alphas)
    assert result.dtype == wanted
    assert result.shape == (2, 3)
    for index in np.ndindex(2, 3):
        assert result[index] == function(float(values[index]), alphas[index[1]])
    assert (function(values.T, [[0.5], [1e-3], [0.05]]) == result.T).all()
    assert (function(((0.5, 3, 1e10), (7, 0.1, 2)), tuple(alphas)) == result).all()
    for shape in ((), (1,), (0,), (2, 0), (2, 1, 3)):
        full, half = np.full(shape, 3.0), np.full(shape, 0.05)
        for result in (function(full, 0.05), function(3, half), function(full, half)):
            assert isinstance(result, np.ndarray)
            assert (result.shape, result.dtype) == (shape, wanted)
            assert (result == function(3, 0.05)).all()
    assert function([], []).dtype == wanted
    assert function(np.ones((4, 1)), np.ones(0)).shape == (4, 0)


@pytest.mark.parametrize("function", [scale_to_accuracy, accuracy_to_epsilon])
@pytest.mark.parametrize("dtype", ["f2", "<f4", ">f8", "i1", "u1", ">i2", ">i8", "u8", "O"])
def test_dtypes_are_read_exactly(function: Callable[..., Any], dtype: str) -> None:
    values = np.array([1, 3, 120], dtype)
    assert (function(values, 0.05) == [function(x, 0.05) for x in (1, 3, 120)]).all()
    if np.dtype(dtype).kind == "f":
        values = np.array([0.1, 1 / 3], dtype)
        plain = [float(str(x)) for x in values]
        assert (function(3, values) == [function(3, x) for x in plain]).all()
        scalar = values[0]
        assert function(scalar, scalar) == function(plain[0], plain[0])
        assert type(function(scalar, scalar)) in (int, float)
    mixed = [Fraction(1, 3), 2, 0.5, np.float32(0.1), np.int8(7), Fraction(10**30, 7)]
    assert function(mixed, 0.05).tolist() == [function(x, 0.05) for x in mixed]


def test_fractions_are_exact() -> None:
    third = Fraction(1, 3)
    below, above = bracket(lambda: log_tail(third, 5).exp(), 300)
    assert scale_to_accuracy([3, 3.0, 1 / third], below).tolist() == [5] * 3
    assert scale_to_accuracy([3, 3.0, 1 / third], above).tolist() == [4] * 3
    assert epsilon_to_accuracy([third, Fraction(1 / 3)], above).tolist() == [4, 5]


@pytest.mark.parametrize("function", INTEGERS)
def test_integers_beyond_int64(function: Callable[..., Any]) -> None:
    is_epsilons = function.func is epsilon_to_accuracy  # type: ignore[attr-defined]
    # On both sides of the limit, and far beyond.
    for scale, wanted in ((2.0**61, np.int64), (2.0**62, object), (10**400, object)):
        value = 1 / stated(scale) if is_epsilons else scale
        result = function([value, 1], 0.05)
        assert result.dtype == wanted
        assert result.tolist() == [function(value, 0.05), function(1, 0.05)]
        assert [type(item) for item in result.tolist()] == [int, int]
        array = function(np.array(value, dtype=object), 0.05)
        assert (array.dtype, array.shape) == (wanted, ())


def test_floats_beyond_float64() -> None:
    result = scale_to_accuracy([10**400, 1], 0.05, method="continuous")
    assert result.dtype == np.float64
    assert result[0] == math.inf
    assert accuracy_to_scale(10**400, 0.05) == GREATEST
    assert accuracy_to_scale(Fraction(1, 10**400), 0.05, method="ceiling") == 0
    assert accuracy_to_epsilon(10**400, 0.05) == TINIEST
    assert accuracy_to_epsilon(1, 0.05, sensitivity=10**400) == math.inf


def test_sensitivity_and_n_are_broadcast() -> None:
    epsilons, others = np.array([0.1, 1, 3]), np.array([[1], [2]])
    for function in (epsilon_to_accuracy, accuracy_to_epsilon):
        result = function(epsilons, 0.05, sensitivity=others, n=others)
        assert result.shape == (2, 3)
        for i, j in np.ndindex(2, 3):
            other = others[i, 0]
            assert result[i, j] == function(epsilons[j], 0.05, sensitivity=other, n=other)


@pytest.mark.parametrize(
    "context",
    [
        decimal.Context(prec=1, Emax=2, Emin=-2),
        decimal.Context(prec=3, rounding=decimal.ROUND_UP, traps=[*decimal.getcontext().flags]),
        decimal.Context(prec=1, traps=[decimal.FloatOperation], capitals=0, clamp=1),
    ],
)
def test_decimal_context_of_the_caller_does_not_matter(context: decimal.Context) -> None:
    bounded, free = GeometricMechanism(0.3, bounds=(0, 50)), GeometricMechanism(0.3)

    def everything() -> list[Any]:
        results = [function(x, 0.05) for function in OF_SCALE for x in (0.3, 7, 1e15)]
        results += [epsilon_to_accuracy(0.3, 0.05, n=9), accuracy_to_epsilon(3, 0.05, n=9)]
        results += [bounded.accuracy(0.05), bounded.accuracy(0.05, counts=3)]
        results += [simultaneous_accuracy(bounded, 0.05, counts=[1, 70])]
        results += [sum_confidence_interval(free, [4, 5], 0.05, weights=[1, w]) for w in (1, 2)]
        for kind in ("censored", "truncated", "folded"):
            results += [f(bounded, [-9, 7, 60], distribution=kind) for f in (bias, variance)]
        results += [CensoredGeometric(7, 3.3, (0, 50)).std(), TwoSidedGeometric(3.3).std()]
        results.append(ratio_confidence_interval(free, 4, 50, 0.05))
        return [np.array(each).tolist() for each in results]

    wanted = everything()
    with decimal.localcontext(context) as used:
        before = used.copy()
        assert everything() == wanted
        assert used.flags == before.flags


# Within bounds: the ideal distribution, and the sampled one over all tapes


@functools.cache
def ideal_distribution(scale: Real, R: int, bits: int = 400) -> Distribution:
    """Return the distribution of ``clamp(x + Z)`` by equation 2.1, to more than these bits."""
    with mpmath.workprec(bits + 100 + 8 * R):
        pmfs = [censored(1 / stated(scale), R, x) for x in range(R + 1)]
        return Distribution([[int(mass * 2**bits) for mass in row] for row in pmfs], 2**bits)


def slack_of(scale: Real, R: int) -> Fraction:
    """Return a bound on how far a sampled probability is from the ideal one."""
    return (
        2 * Fraction(from_scale(scale, (0, R)).certificate().total_variation) + Fraction(2) ** -300
    )


SCALES: list[Real] = [
    *(0.01, 0.2, 1 / math.log(3), 1, Fraction(7, 3), 6, 40.0, 1000, 1e9, 2.0**64),
]
ALPHAS: list[Real] = [
    *(1, 1 - 2.0**-53, 0.999, 0.9, 0.75, 0.5, Fraction(1, 3), 0.25, 0.1, 0.05, 0.01),
    *(1e-3, 1e-6, 1e-12, 1e-18, Fraction(1, 10**40), TINIEST),
]
each_scale = pytest.mark.parametrize("scale", SCALES, ids=float)


def accuracies_are_right(scale: Real, R: int, alpha: Real, lower: int = -3) -> bool:
    """Return whether the accuracies at all counts are those of the two distributions."""
    mechanism = from_scale(scale, (lower, lower + R))
    ideal, sampled, slack = (
        ideal_distribution(scale, R),
        sampled_distribution(scale, R),
        slack_of(scale, R),
    )
    counts = range(-4, R + 5)
    found = mechanism.accuracy(alpha, counts=[lower + count for count in counts]).tolist()
    exact = stated(alpha)
    for count, a in zip(counts, found, strict=True):
        out = max(-count, count - R, 0)
        # Never too small, and too large only within the distance of the two distributions.
        if not sampled.allows([sampled.beyond(count, a)], exact) or (a < out and alpha != 1):
            return False
        if out < a and ideal.allows([ideal.beyond(count, a - 1)], exact - slack):
            return False
    inside = [a for count, a in zip(counts, found, strict=True) if 0 <= count <= R]
    return max(inside) == mechanism.accuracy(alpha)


@each_scale
@pytest.mark.parametrize("R", [*range(1, 14), 19, 25])
def test_accuracy_within_bounds(scale: Real, R: int) -> None:
    for alpha in ALPHAS:
        assert accuracies_are_right(scale, R, alpha)


@pytest.mark.parametrize("scale", [0.5, 20, 300.0, 10**5, 2.0**40], ids=float)
def test_accuracy_within_wider_bounds(scale: Real) -> None:
    # Also with low digits, whose errors are relative.
    for alpha in (0.9, 0.5, 0.1, 0.01):
        assert accuracies_are_right(scale, 150, alpha)


def shares(scale: Real, R: int, sides: int) -> Iterator[tuple[int, int, Fraction]]:
    """Yield counts, errors a, and the probability of more than a, with 1 or 2 tails."""
    dist = sampled_distribution(scale, R)
    total = dist.total
    for count in range(R + 1):
        near, far = sorted((count, R - count))
        for a in range(near) if sides == 2 else range(near, far):
            yield count, a, Fraction(dist.beyond(count, a), total)


def no_ties_are_lost(scale: Real, R: int) -> bool:
    """Return whether levels just below a probability over all tapes have a larger accuracy."""
    mechanism = from_scale(scale, (0, R))
    for sides in (1, 2):
        for count, a, share in shares(scale, R, sides):
            if mechanism.accuracy(share * (1 - Fraction(1, 2**400)), counts=count) <= a:
                return False
    return True


@each_scale
@pytest.mark.parametrize("R", [1, 2, 5, 12, 20])
def test_levels_just_below_sampled_probabilities(scale: Real, R: int) -> None:
    assert no_ties_are_lost(scale, R)


def test_levels_below_the_floor_give_the_full_range() -> None:
    for scale, R in itertools.product((1, 20, 1000.0), (1, 9, 1000, 2**64 - 1)):
        mechanism = from_scale(scale, (-5, R - 5) if R < 2**63 else None)
        floor = mechanism.certificate().floor
        assert floor is not None
        assert floor <= Fraction(1, 2**52)
        for alpha in (floor, floor / 2, TINIEST):
            assert mechanism.accuracy(alpha) == simultaneous_accuracy(mechanism, alpha, n=3) == R
            if R < 2**63:
                assert mechanism.accuracy(alpha, counts=[-5, 0, R - 5]).tolist() == [
                    R,
                    max(5, R - 5),
                    R,
                ]
        assert R <= 1000 or mechanism.accuracy(2 * floor) < R


def test_no_noise_or_equal_bounds() -> None:
    for scale, bounds in ((0, (2, 9)), (3, (4, 4)), (0, (4, 4)), (0, None)):
        mechanism = from_scale(scale, bounds)
        lower, upper = bounds or (-(2**63), 2**63 - 1)
        counts = [4, -7, 100]
        away = [abs(min(max(x, lower), upper) - x) for x in counts]
        for alpha in (TINIEST, 0.05, 1):
            assert (
                mechanism.accuracy(alpha) == simultaneous_accuracy(mechanism, alpha, n=10**9) == 0
            )
            assert mechanism.accuracy(alpha, counts=counts).tolist() == away
            assert simultaneous_accuracy(mechanism, alpha, counts=counts) == max(away)
        # A count at a bound may be one beyond it.
        least, most = possible((lower, upper), np.int64)
        both = (4 if lower < 4 else least, 4 if upper > 4 else most)
        for side, wanted in (
            ("both", both),
            ("lower", (both[0], most)),
            ("upper", (least, both[1])),
        ):
            assert mechanism.confidence_interval(4, 0.05, side=side) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_limits_are_bounds(dtype: str) -> None:
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    for scale, alpha in itertools.product((1, 1000, 2.0**40), (0.9, 0.05, 1e-9)):
        free, bounded = from_scale(scale, limits(dtype)), from_scale(scale, (least, most))
        counts = np.array([least, least + 1, most // 2, most - 5, most], dtype)
        found = free.accuracy(alpha, counts=counts)
        assert found.dtype == (np.int64 if found.max() < 2**63 else object)
        assert found.tolist() == [bounded.accuracy(alpha, counts=x) for x in counts.tolist()]
        assert max(found) <= bounded.accuracy(alpha)
        # If both tails fit, it is the accuracy of the noise; at a limit there is one tail.
        ideal = scale_to_accuracy(scale, alpha)
        if ideal < (most - least) // 2:
            assert bounded.accuracy(alpha) == ideal
        # Level alpha for one tail is level 2 alpha for both.
        at_limit = scale_to_accuracy(scale, 2 * alpha) if alpha <= 0.5 else 0
        assert found[0] == found[-1] == min(at_limit, most - least)


def test_bounds_and_counts_at_the_edges_of_64_bits() -> None:
    plain = from_scale(10, (0, 30))
    wanted = plain.accuracy(0.05, counts=np.arange(31)).tolist()
    for lower in (-(2**63), 2**63 - 31, 2**63 - 15, 2**64 - 31):
        mechanism = from_scale(10, (lower, lower + 30))
        assert mechanism.accuracy(0.05) == plain.accuracy(0.05)
        assert mechanism.accuracy(0.05, counts=list(range(lower, lower + 31))).tolist() == wanted
        assert mechanism.accuracy(0.05, counts=lower + 15) == wanted[15]
    # Errors beyond int64.
    small = from_scale(1, (0, 5))
    edge = small.accuracy(0.05, counts=0)
    far = np.array([2**64 - 1, 0, 2**63], np.uint64)
    found = small.accuracy(0.05, counts=far)
    assert found.dtype == object
    assert found.tolist() == [2**64 - 1 - 5 + edge, edge, 2**63 - 5 + edge]
    assert small.accuracy(0.05, counts=far[0]) == found[0]
    assert found[0] <= simultaneous_accuracy(small, 0.05, counts=far) <= 2**64 - 1


def proven(mechanism: GeometricMechanism, dtype: Any, a: int, sides: int, alpha: Real) -> bool:
    """Return whether theorem 10, with the certificate's numbers, bounds these tails by alpha."""
    found = mechanism.certificate(dtype)
    assert found.sampled_rate is not None
    assert None not in (found.delta, found.eta, found.floor)
    rate, delta, eta, floor = found.sampled_rate, *map(real, (found.delta, found.eta, found.floor))

    def room() -> arb:
        tail = log_tail(rate, a + 1).exp() / 2
        return real(alpha) - sides * ((1 + delta) * tail + eta) - floor

    return is_positive(room)


@pytest.mark.parametrize("dtype", DTYPES)
def test_accuracies_of_dtypes_are_the_least_proven(dtype: str) -> None:
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    middle = (most - least) // 2
    for scale, alpha in itertools.product(
        (0.1, 3, 1000.0, 1e6, 2.0**50, 2.0**62, 2.0**70), (0.999, 0.5, 0.05, 1e-9, 1e-15)
    ):
        mechanism = from_scale(scale, limits(dtype))
        for count, sides, last in ((least + middle, 2, middle), (least, 1, most - least)):
            a = mechanism.accuracy(alpha, counts=np.array(count, dtype)).item()
            if a < last:
                assert proven(mechanism, dtype, a, sides, alpha)
                assert a == 0 or not proven(mechanism, dtype, a - 1, sides, alpha)
            else:
                assert not proven(mechanism, dtype, last - 1, sides, alpha)


# Several at once


def counts_of(R: int) -> list[list[int]]:
    half = R // 2
    inside = [[0], [half], [0, R], [0, half, R], [half] * 4, [1, 1, 2, R - 1], [*range(R + 1)][:6]]
    return [*inside, [-2], [-2, R + 5], [-1, -1, 0, half, R + 1]]


def simultaneous_is_right(scale: Real, R: int, alpha: Real) -> bool:
    mechanism = from_scale(scale, (0, R))
    ideal, sampled, slack = (
        ideal_distribution(scale, R),
        sampled_distribution(scale, R),
        slack_of(scale, R),
    )
    exact = stated(alpha)

    def allows(dist: Distribution, counts: list[int], a: int, level: Fraction) -> bool:
        return dist.allows([dist.beyond(x, a) for x in counts], level)

    for counts in counts_of(R):
        a = simultaneous_accuracy(mechanism, alpha, counts=counts)
        out = max(0, *(-x for x in counts), *(x - R for x in counts))
        if not allows(sampled, counts, a, exact) or a < out:
            return False
        if a > out and allows(ideal, counts, a - 1, exact - slack * len(counts)):
            return False
    for n in (1, 2, 5):
        a = simultaneous_accuracy(mechanism, alpha, n=n)
        if not all(allows(sampled, [x] * n, a, exact) for x in range(R + 1)):
            return False
        if a and all(allows(ideal, [x] * n, a - 1, exact - slack * n) for x in range(R + 1)):
            return False
    return True


@each_scale
@pytest.mark.parametrize("R", [1, 2, 7, 16, 25])
def test_simultaneous_accuracy(scale: Real, R: int) -> None:
    for alpha in ALPHAS[1::2]:
        assert simultaneous_is_right(scale, R, alpha)


@settings(deadline=None, max_examples=200)
@given(
    st.floats(0.1, 1e6),
    st.floats(1e-6, 1 - 2.0**-53),
    st.integers(1, 10**12),
    st.sampled_from([None, 1, 30, 1000]),
)
@example(1.0, 0.05, 10**12, None)
@example(1.0, 1e-6, 10**12, None)
@example(1.0, 1 - 2.0**-53, 10**12, None)
@example(2.0, 0.05, 10**12, 30)
def test_simultaneous_accuracy_of_many_counts(
    scale: float, alpha: float, n: int, R: int | None
) -> None:
    mechanism = from_scale(scale, None if R is None else (0, R))
    a = simultaneous_accuracy(mechanism, alpha, n=n)
    assert mechanism.accuracy(alpha) <= a <= mechanism.accuracy(stated(alpha) / n)
    rate = 1 / stated(scale)
    width = 2**64 - 1 if R is None else R
    if a >= width // 2:
        return
    slack = 2 * Fraction(mechanism.certificate().total_variation)

    def none_beyond(b: int, more: Fraction) -> Callable[[], arb]:
        # ln((1 - p)**n) - ln(1 - alpha), for the middle of the bounds.
        def difference() -> arb:
            p = log_tail(rate, b + 1).exp() + real(more)
            return n * (-p).log1p() - (-real(alpha)).log1p()

        return difference

    assert is_positive(none_beyond(a, Fraction(0)))
    assert a == 0 or not is_positive(none_beyond(a - 1, slack))


def test_simultaneous_accuracy_of_n_and_of_counts() -> None:
    mechanism = from_scale(3, (0, 1000))
    for n in (1, np.int8(17), 10**5):
        worst = simultaneous_accuracy(mechanism, 0.05, n=n)
        assert simultaneous_accuracy(mechanism, 0.05, counts=np.full((n, 1), 500, ">u2")) == worst
        assert simultaneous_accuracy(mechanism, 0.05, counts=np.zeros(n, int)) < worst
    # Far beyond 64 bits.
    assert simultaneous_accuracy(mechanism, 0.05, n=10**400) == 1000
    for counts in ([], (), np.empty((3, 0), int)):
        assert simultaneous_accuracy(mechanism, 0.05, counts=counts) == 0
    assert simultaneous_accuracy(mechanism, 0.05, n=0) == 0


# Intervals


def possible(bounds: tuple[int, int], dtype: Any) -> tuple[int, int]:
    """Return the true counts that may be: all of a dtype, and none below 0 if no bound is."""
    info = np.iinfo(dtype)
    return int(info.min) if bounds[0] < 0 else 0, int(info.max)


def covers(scale: Real, R: int, alpha: Real, bounds: tuple[int, int], dtype: str) -> bool:
    """Return whether each kind of interval covers every true count of the dtype, over all tapes.

    Counts beyond a bound have the noise of that bound.
    """
    kind = {-128: "int8", 0: "uint8"}[bounds[0]] if dtype == "own" else dtype
    mechanism = from_scale(scale, limits(kind) if dtype == "own" else bounds)
    dist = sampled_distribution(scale, R)
    released = np.arange(bounds[0], bounds[1] + 1).astype(kind)
    least, greatest = possible(bounds, kind)
    for side in ("both", "lower", "upper"):
        lower, upper = mechanism.confidence_interval(released, alpha, side=side)
        for true in range(least, greatest + 1):
            x = min(max(true - bounds[0], 0), R)
            covered = (lower <= true) & (true <= upper)
            missed = sum(itertools.compress(dist.masses[x], (~covered).tolist()))
            if not dist.allows([missed], stated(alpha)):
                return False
    return True


@each_scale
@pytest.mark.parametrize("R", [1, 2, 5, 12, 25])
@pytest.mark.parametrize("lower", [-9, 0, 100])
def test_coverage(scale: Real, R: int, lower: int) -> None:
    for alpha in ALPHAS:
        assert covers(scale, R, alpha, (lower, lower + R), "int8")


@pytest.mark.parametrize("scale", [1, 20, 150.0, 1e9])
@pytest.mark.parametrize("lower", [-128, 0])
def test_coverage_over_a_whole_dtype(scale: Real, lower: int) -> None:
    for alpha in (0.5, 0.05):
        assert covers(scale, 255, alpha, (lower, lower + 255), "own")


@each_scale
@pytest.mark.parametrize("R", [1, 2, 5, 12, 25])
def test_one_sided_intervals_are_minimal(scale: Real, R: int) -> None:
    ideal, slack = ideal_distribution(scale, R), slack_of(scale, R)
    mechanism = from_scale(scale, (0, R))
    for alpha in ALPHAS[1:]:
        lower, upper = mechanism.confidence_interval(R, alpha, side="lower")
        a = R - lower
        assert upper == 2**63 - 1
        # A count at the lower bound has the upper tail only.
        assert a == 0 or not ideal.allows([ideal.beyond(0, a - 1)], stated(alpha) - slack)
        reach = a if a < R else 2**63 - 1
        assert mechanism.confidence_interval(0, alpha, side="upper") == (0, reach)


def plain_interval(
    released: int, a: int, bounds: tuple[int, int], side: str, dtype: Any
) -> tuple[int, int]:
    (lower, upper), (least, greatest) = bounds, possible(bounds, dtype)
    return (
        least if side == "upper" or released - a <= lower else released - a,
        greatest if side == "lower" or released + a >= upper else released + a,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["both", "lower", "upper"])
def test_intervals_at_the_limits_of_a_dtype(dtype: str, side: Any) -> None:
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    for scale, alpha, inner in itertools.product(
        (0, 0.1, 3, 100, 2.0**20, 2.0**62), (0.9, 0.05, 1e-30), (False, True)
    ):
        bounds = (least + 1, most - 3) if inner else (least, most)
        mechanism = from_scale(scale, bounds if inner else limits(dtype))
        lower, upper = bounds
        middle = (lower + upper) // 2
        near = {lower, lower + 1, middle - 1, middle, middle + 1, upper - 1, upper, 0, 1, 127}
        items = sorted(x for x in near if lower <= x <= upper)
        released = np.array(items, dtype)
        found = mechanism.confidence_interval(released, alpha, side=side)
        if side == "both":
            a = max(mechanism.accuracy(alpha, counts=np.array([lower, middle], dtype)).tolist())
        else:
            a = mechanism.accuracy(alpha, counts=np.array(lower, dtype)).item()
        wanted = [plain_interval(x, a, bounds, side, dtype) for x in items]
        assert list(zip(*(end.tolist() for end in found), strict=True)) == wanted
        assert [end.dtype for end in found] == [released.dtype] * 2
        for x, pair in zip(released, wanted, strict=True):
            scalar = mechanism.confidence_interval(x, alpha, side=side)
            assert scalar == pair
            assert [type(end) for end in scalar] == [released.dtype.type] * 2


def test_intervals_of_ints_and_of_bounds_beyond_int64() -> None:
    mechanism = from_scale(10, (2**63 - 40, 2**63 + 60))
    a = mechanism.accuracy(0.05)
    assert 0 < a < 50
    for side in ("both", "lower", "upper"):
        for x in (2**63 - 40, 2**63 - 1, 2**63, 2**63 + 60):
            reach = a if side == "both" else mechanism.accuracy(0.05, counts=2**63 + 60)
            wanted = plain_interval(x, reach, (2**63 - 40, 2**63 + 60), side, np.uint64)
            found = mechanism.confidence_interval(x, 0.05, side=side)
            assert found == wanted
            assert [type(end) for end in found] == [int, int]
            arrays = mechanism.confidence_interval([x], 0.05, side=side)
            assert [end.dtype for end in arrays] == [np.uint64] * 2
            assert tuple(end.item() for end in arrays) == wanted


# Moments


@pytest.mark.parametrize("kind", ["censored", "truncated", "folded"])
def test_moments_are_those_of_each_distribution(kind: Any) -> None:
    # test_moments.py checks their values.
    for scale, lower, upper in itertools.product((0.7, Fraction(25, 3)), (-2, 0), (1, 14)):
        rate, mechanism = 1 / stated(scale), from_scale(scale, (lower, upper))
        counts = [*range(lower - 3, upper + 4), 40, -40]
        for count in counts:
            exact = {
                "censored": count_moments.of_censored(rate, lower, upper, count),
                "truncated": count_moments.of_truncated(rate, lower, upper, count),
                "folded": count_moments.of_folded(rate, (2 * lower, 2 * upper), count),
            }[kind]
            found = [
                f(mechanism, count, distribution=kind)
                for f in (bias, variance, mean_absolute_error)
            ]
            assert found == list(exact)
            assert kind != "censored" or bias(mechanism, count) == exact.bias
        for f in (bias, variance, mean_absolute_error):
            values = f(mechanism, counts, distribution=kind)
            assert values.dtype == np.float64
            assert values.tolist() == [f(mechanism, x, distribution=kind) for x in counts]


@pytest.mark.parametrize("dtype", DTYPES)
def test_moments_within_the_limits_of_a_dtype(dtype: str) -> None:
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    counts = np.array([least, least + 1, (least + most) // 2, most], dtype)
    for scale, f in itertools.product((0.1, 5, 1e6), (bias, variance, mean_absolute_error)):
        found = f(from_scale(scale, limits(dtype)), counts)
        bounded = from_scale(scale, (least, most))
        assert found.tolist() == [f(bounded, x) for x in counts.tolist()]
        assert found[0] == found[-1] * (-1 if f is bias else 1)


# Invalid parameters

NUMBERS: list[Any] = [
    *(True, np.True_, b"1", None, 1j, np.longdouble(1), range(2)),
    *({"a": None}, {"a": b"1"}),
    *(np.timedelta64(1, "ns"), np.datetime64(1, "ns")),
]
SIZES = [math.nan, math.inf, -math.inf, -1]
LEVELS = [0, 0.0, 1.0000000000000002, 2, Fraction(10**20 + 1, 10**20)]
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
ARRAYS: list[Any] = [
    *(MASKED, [MASKED], np.ma.array([1.0, 2.0]), [1.0, np.ma.masked], np.array([1, None])),
    *([[1.0], [1.0, 2.0]], [np.ones(2), np.ones(3)], [0.5, True]),
    *(np.ones(2, dtype) for dtype in (np.longdouble, complex, bool, [("x", "f8")])),
    np.array([b"1"]),
    *(np.array([1, 2], dtype) for dtype in ("m8[ns]", "M8[ns]", "M8[D]")),
    *([np.array([1, 2], "m8[ns]")], ((np.array([1, 2], "M8[ns]"),),)),
]
NAMES: dict[Any, list[str]] = {
    scale_to_accuracy: ["scale", "alpha"],
    accuracy_to_scale: ["accuracy", "alpha"],
    epsilon_to_accuracy: ["epsilon", "alpha", "sensitivity"],
    accuracy_to_epsilon: ["accuracy", "alpha", "sensitivity"],
    discrete_laplacian_scale_to_accuracy: ["scale", "alpha"],
    accuracy_to_discrete_laplacian_scale: ["accuracy", "alpha"],
}


@pytest.mark.parametrize(("function", "name"), [(f, name) for f in NAMES for name in NAMES[f]])
def test_invalid_numbers_raise_by_name(function: Callable[..., Any], name: str) -> None:
    sizes = [*SIZES, *([0.5, value] for value in SIZES)]
    sizes += LEVELS if name == "alpha" else [0, -0.0, Fraction(0)] if name == "epsilon" else []
    for value in [*NUMBERS, *ARRAYS, *sizes]:
        error = ValueError if any(value is size for size in sizes) else TypeError
        with pytest.raises(error, match=rf"^{name}\b.*: ") as caught:
            function(**dict.fromkeys(NAMES[function], 0.5) | {name: value})
        assert type(caught.value) is error, value
        if isinstance(value, int | float | Fraction | str):
            verb = "is" if error is ValueError else "has type"
            assert f"{name} = {value!r} {verb} " in str(caught.value)


@pytest.mark.parametrize("function", [f for f in NAMES if "laplacian" not in f.__name__])
def test_invalid_method_or_tail_raises(function: Callable[..., Any]) -> None:
    for method in ("Exact", "", None, 1, ["exact"], True):
        with pytest.raises(ValueError, match=r"^method .+ is not accepted: give one of 'exact'"):
            function(1, 0.5, method=method)
    for tail in ("<", "=>", None, 1, (">",)):
        with pytest.raises(ValueError, match=r"^tail .+ is not accepted: give one of '>', '>='"):
            function(1, 0.5, tail=tail)
    for method in ("ceiling", "continuous"):
        # Also for empty arrays.
        with pytest.raises(ValueError, match=rf"^tail = '>=' is not accepted with .*{method}"):
            function([], 0.5, method=method, tail=">=")
    with pytest.raises(ValueError, match="broadcast"):
        function([1, 2], [0.5, 0.5, 0.5])


def test_accuracy_zero_raises_for_other_methods() -> None:
    for kind in METHODS[1:]:
        for function in (accuracy_to_scale, accuracy_to_epsilon):
            for zero in (0, 0.0, Fraction(0)):
                with pytest.raises(ValueError, match=r"^accuracy = .*above 0"):
                    function(zero, 0.5, **kind)


MECHANISM = GeometricMechanism(1, bounds=(0, 300))
OF_COUNTS: list[Callable[[Any, Any], Any]] = [
    lambda m, counts: m.accuracy(0.05, counts=counts),
    lambda m, counts: simultaneous_accuracy(m, 0.05, counts=counts),
    lambda m, counts: m.confidence_interval(counts, 0.05),
    bias,
]
OF_ALPHA: list[Callable[[Any, Any], Any]] = [
    GeometricMechanism.accuracy,
    lambda m, alpha: simultaneous_accuracy(m, alpha, n=5),
    lambda m, alpha: m.confidence_interval(5, alpha),
]


def test_alpha_zero_gives_the_greatest_possible_error() -> None:
    bounded = GeometricMechanism(1, bounds=(0, 9))
    assert bounded.accuracy(0) == 9
    assert bounded.accuracy(0, counts=[0, 4, 12]).tolist() == [9, 5, 12]
    assert simultaneous_accuracy(bounded, 0, n=5) == 9
    assert simultaneous_accuracy(bounded, 0, counts=[4, 5, 12]) == 12
    assert simultaneous_accuracy(bounded, 0, counts=[4, 5]) == 5
    assert bounded.confidence_interval(3, 0) == (0, 2**63 - 1)
    assert GeometricMechanism(1).accuracy(0) == 2**64 - 1
    exact = from_scale(0, (0, 9))
    assert exact.accuracy(0) == simultaneous_accuracy(exact, 0, counts=[4, 5]) == 0
    assert simultaneous_accuracy(exact, 0, counts=[4, 12]) == 3
    # A bounded tail: smaller levels reach it, at the mass of the floor.
    assert bounded.accuracy(Fraction(1, 2**300)) == 9


def test_other_invalid_parameters_raise() -> None:
    of_n: list[Any] = [f for f in NAMES if "laplacian" not in f.__name__]
    for function in of_n:
        for n, error in ((True, TypeError), (5.0, TypeError), ([5.0], TypeError), (0, ValueError)):
            with pytest.raises(error, match=r"^n (= .*|has .*)give an int"):
                function(1, 0.05, n=n)
    for n, error in ((True, TypeError), (5.0, TypeError), ([5], TypeError), (-1, ValueError)):
        with pytest.raises(error, match=r"^n (= .*|has .*)give an int"):
            simultaneous_accuracy(MECHANISM, 0.05, n=n)  # type: ignore[arg-type]
    for both in ((None, None), (3, [1, 2, 3])):
        with pytest.raises(TypeError, match=r"^n and counts "):
            simultaneous_accuracy(MECHANISM, 0.05, n=both[0], counts=both[1])
    for value in ("left", "", None, 1):
        with pytest.raises(ValueError, match=r"^side = .* is not accepted: give one of 'both'"):
            MECHANISM.confidence_interval(5, 0.05, side=value)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^distribution = .* not accepted: give one of 'cens"):
            bias(MECHANISM, 5, distribution=value)  # type: ignore[arg-type]
    for function, counts in itertools.product(OF_COUNTS, (np.array([5], "u1"), np.int8(5))):
        with pytest.raises(OverflowError, match=r"^bounds = \(0, 300\) is not accepted: give"):
            function(MECHANISM, counts)
    for released in (-1, 301, np.int16(301), [5, 301], np.array([-1, 5])):
        with pytest.raises(ValueError, match=r"^released counts outside .*\(0, 300\)"):
            MECHANISM.confidence_interval(released, 0.05)


def test_scale_beyond_certificates_raises() -> None:
    mechanism = from_scale(2.0**100)
    for function in OF_ALPHA:
        with pytest.raises(ValueError, match=r"^scale = about 2\*\*100 is too large to be cert"):
            function(mechanism, 0.05)
    assert mechanism.accuracy(0.05, counts=np.int8(5)) == 128 + 5
    assert from_scale(2.0**100, (0, 9)).accuracy(0.05) == 9
