"""The exact privacy loss of redrawing the noise until the noisy count is in range.

A count x of n records is in ``0..n``. Censoring clamps ``x + Z`` to this range; rejection redraws Z
instead until ``x + Z`` is in it (*Geometric Mechanism Notes*, section 2.4). The output y then has
probability ``a**abs(y - x) / N(x)``, with ``a = exp(-epsilon)``. The normalizer ``N(x)`` depends on
the count too, so the privacy loss exceeds epsilon. This module has the formulas of that section as
published (``note_...``), the exact privacy loss, and the noise that keeps the loss within a given
epsilon. The proofs are in ``docs/proofs.md``, section "Rejection".

>>> from geomdp.rejection import calibrated_epsilon, loss, note_epsilon
>>> round(loss(0.1, n=30), 4)
0.1818
>>> round(calibrated_epsilon(0.1, n=30), 4)
0.0533
>>> round(note_epsilon(0.1, n=30), 4)
0.0086

There is no sampler with rejection: its running time would depend on the count, and a remapped
release of a :class:`geomdp.GeometricMechanism` has smaller errors (:func:`expected_errors`).
"""

import bisect
import math
import struct
import sys
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import remap
from geomdp._analysis import decimals
from geomdp._analysis.floats import powers
from geomdp._release import arrays, parameters
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.parameters import Integer, Real

__all__ = [
    "Errors",
    "ExpectedErrors",
    "Extremes",
    "calibrated_epsilon",
    "censoring_probabilities",
    "expected_errors",
    "inflation",
    "loss",
    "note_epsilon",
    "note_extremes",
    "note_factor",
    "note_ratios",
    "pmf",
    "rejection_probability",
]

_Floats: TypeAlias = NDArray[np.float64]

_MAX_N = 2**62


class Extremes(NamedTuple):
    """The ratios of :func:`note_ratios` that *Geometric Mechanism Notes* takes as extreme."""

    L_n: float
    L_1: float
    U_0: float
    U_n_minus_1: float


class Errors(NamedTuple):
    """The expected absolute error, for the worst true count and averaged over true counts."""

    worst: float
    average: float


class ExpectedErrors(NamedTuple):
    """The expected absolute errors of several mechanisms, from :func:`expected_errors`.

    Attributes
    ----------
    censored : Errors
        The release of a :class:`geomdp.GeometricMechanism`.
    rejected_note : Errors
        Rejection, with noise for :func:`note_epsilon`.
    rejected_exact : Errors
        Rejection, with noise for :func:`calibrated_epsilon`.
    remapped_bayes : Errors
        The release, then :func:`geomdp.remap.bayes` for the uniform prior. No mechanism has a
        smaller average.
    remapped_minimax : Errors or None
        The release, then :func:`geomdp.remap.minimax`. No mechanism has a smaller worst case. None
        if it was not computed.

    """

    censored: Errors
    rejected_note: Errors
    rejected_exact: Errors
    remapped_bayes: Errors
    remapped_minimax: Errors | None


def censoring_probabilities(epsilon: Real, n: Integer, counts: Any) -> tuple[Any, Any]:
    """Return the probabilities that noise takes a count below 0, and above n.

    They are ``P(Z < -x) = a**(x + 1) / (1 + a)`` and ``P(Z > n - x) = a**(n - x + 1) / (1 + a)``
    (*Geometric Mechanism Notes*, section 2.4).

    Parameters
    ----------
    epsilon : int, float or Fraction
        The epsilon of the noise; positive, taken exactly.
    n : int
        The greatest count, from 1 to ``2**62``.
    counts : int, numpy integer, array or sequence of ints
        True counts x, from 0 to n.

    Returns
    -------
    below, above : floats or float64 arrays
        The same shape as the counts; accurate to a few units in the last place.

    Raises
    ------
    TypeError
        If a parameter has another type.
    ValueError
        If epsilon is not positive and finite, n is below 1, or a count is not from 0 to n.
    OverflowError
        If n is above ``2**62``, or an int among the counts is beyond int64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, x = _places(n, counts)
    edge = 1 + powers(rate, 1)
    return _plain(powers(rate, x + 1) / edge), _plain(powers(rate, n - x + 1) / edge)


def rejection_probability(epsilon: Real, n: Integer, counts: Any) -> Any:
    """Return the probability that a draw is rejected, ``Pr(T_D)``.

    It is the sum of both :func:`censoring_probabilities`, which takes the same parameters and
    raises the same errors (*Geometric Mechanism Notes*, section 2.4).

    Returns
    -------
    float or float64 array
        The same shape as the counts.

    """
    below, above = censoring_probabilities(epsilon, n, counts)
    return below + above


def note_ratios(epsilon: Real, n: Integer, counts: Any) -> tuple[Any, Any]:
    """Return ``L`` and ``U`` of *Geometric Mechanism Notes*, equation 2.2, as published.

    ``L = (a**(2 x + 1) + a**(n + 1)) / (a**(2 x + 2) + a**n)`` is the rejection probability at x
    divided by the one at ``x + 1``. ``U = (a**(2 x + 1) + a**(n + 1)) / (a**(2 x) + a**(n + 2))``
    is the rejection probability at x divided by the one at ``x - 1``. (The text states the
    converse, since it swaps the formulas of ``Pr(T)`` for the two neighbors.) ``U(x) = L(n - x)``.

    The parameters and errors are those of :func:`censoring_probabilities`.

    Returns
    -------
    L, U : floats or float64 arrays
        The same shape as the counts; infinite where they are beyond float64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, x = _places(n, counts)
    ahead = n - x - x - 1
    return _plain(_ratio(rate, ahead)), _plain(_ratio(rate, -ahead - 2))


def note_extremes(epsilon: Real, n: Integer) -> Extremes:
    """Return ``L_n``, ``L_1``, ``U_0`` and ``U_(n-1)`` of *Geometric Mechanism Notes*, section 2.4.

    ``L_n = U_0 < 1`` and ``L_1 = U_(n-1)``. The latter is above 1 for n of at least 4, 1 for n = 3,
    and below 1 for n = 1 and 2. (The note states that it is above 1 for all n.)

    The parameters and errors are those of :func:`censoring_probabilities`.
    """
    (L_1, L_n), _ = note_ratios(epsilon, n, [1, n])
    _, (U_0, U_n_minus_1) = note_ratios(epsilon, n, [0, n - 1])
    return Extremes(float(L_n), float(L_1), float(U_0), float(U_n_minus_1))


def note_factor(epsilon: Real, n: Integer) -> float:
    """Return ``M`` of *Geometric Mechanism Notes*, section 2.4, the greatest ratio.

    It is ``max(1 / L_n, 1 / U_0, L_1, U_(n-1))``. The first two are the greatest, so ``M = (1 +
    a**(n + 2)) / (a + a**(n + 1))``. M bounds ratios of the rejection probability ``Pr(T)``, but
    the pmf depends on ``1 - Pr(T)``; :func:`loss` accounts for that.

    The parameters and errors are those of :func:`censoring_probabilities`.

    Returns
    -------
    float
        Infinite if it is beyond float64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, _ = _places(n, 0)
    return float(_ratio(rate, np.array(n + 1)))


def note_epsilon(epsilon: Real, n: Integer) -> float:
    """Return ``epsilon - ln M``, the epsilon of the noise in *Geometric Mechanism Notes*.

    It equals ``ln((1 + a**n) / (1 + a**(n + 2)))``. It is always positive, but vanishes as ``n *
    epsilon`` grows, so the output becomes uniform. It is not safe: as epsilon goes to 0, the
    :func:`loss` of this noise goes to ``2 n / (n + 1)`` times epsilon.

    The parameters and errors are those of :func:`censoring_probabilities`.

    Returns
    -------
    float
        Accurate to a few units in the last place; 0 if it is below the least float64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, _ = _places(n, 0)
    far, twice = powers(rate, np.array([n, n + 2])), -2 * float(min(rate, Fraction(2**20)))
    return float(np.log1p(far[0] * -np.expm1(twice) / (1 + far[1])))


def inflation(epsilon: Real, n: Integer) -> float:
    """Return the privacy loss that rejection adds to that of the noise, ``ln(N(1) / N(0))``.

    ``N(1) / N(0) = (1 + a - a**2 - a**n) / (1 - a**(n + 1))``. The inflation is 0 for n = 1.
    Otherwise it is below ``ln(5 / 4)``, and below ``(n - 1) / (n + 1)`` times epsilon.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The epsilon of the noise; not negative, taken exactly. With 0, all outputs are equally
        likely.
    n : int
        The greatest count, at least 1.

    Returns
    -------
    float
        The exact value, rounded up to a float64.

    Raises
    ------
    TypeError
        If a parameter has another type.
    ValueError
        If epsilon is negative or not finite, or n is below 1.

    """
    rate, n = parameters.not_negative("epsilon", epsilon), parameters.at_least("n", n, 1)
    if not rate or n == 1:
        return 0.0
    return _least(_inflation(rate, n), lambda bound: _within(rate, n, rate + Fraction(bound)))


def loss(epsilon: Real, n: Integer) -> float:
    """Return the privacy loss of rejection between neighbors, ``epsilon + ln(N(1) / N(0))``.

    It is the maximum of ``abs(ln(P(y | x) / P(y | x + 1)))`` over all counts and outputs from 0 to
    n, with ``P(y | x) = a**abs(y - x) / N(x)``. It is at most ``2 n / (n + 1)`` times epsilon.

    The parameters and errors are those of :func:`inflation`.

    Returns
    -------
    float
        The exact value, rounded up to a float64; infinite if it is beyond float64.

    """
    rate, n = parameters.not_negative("epsilon", epsilon), parameters.at_least("n", n, 1)
    if not rate:
        return 0.0
    with localcontext(decimals.context(40)):
        guess = decimals.of(rate) + _inflation(rate, n)
    return _least(guess, lambda bound: bound == math.inf or _within(rate, n, Fraction(bound)))


def calibrated_epsilon(epsilon: Real, n: Integer) -> float:
    """Return the greatest epsilon of the noise for which rejection has a loss of at most `epsilon`.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The allowed :func:`loss`; positive, taken exactly.
    n : int
        The greatest count, at least 1.

    Returns
    -------
    float
        The greatest float64 whose exact loss is at most epsilon, or 0 if no positive float64
        qualifies. It is between ``(n + 1) / (2 n)`` times epsilon, its limit as epsilon goes to 0,
        and epsilon.

    Raises
    ------
    TypeError
        If a parameter has another type.
    ValueError
        If epsilon is not positive and finite, or n is below 1.

    """
    exact, n = parameters.positive("epsilon", epsilon), parameters.at_least("n", n, 1)
    largest = Fraction(sys.float_info.max)
    least = float(min(exact * (n + 1) / (2 * n), largest))
    floats = range(max(0, _bits(least) - 1), _bits(float(min(exact, largest))) + 1)

    def is_too_much(bits: int) -> bool:
        return bits > 0 and not _within(Fraction(_float(bits)), n, exact)

    # The loss grows with epsilon, and floats do with their bits.
    return _float(floats[bisect.bisect_left(floats, True, key=is_too_much) - 1])


def pmf(epsilon: Real, n: Integer, counts: Any) -> _Floats:
    """Return the probabilities of the outputs 0 to n with rejection, ``a**abs(y - x) / N(x)``.

    The parameters and errors are those of :func:`censoring_probabilities`, except that epsilon may
    be 0: all outputs are then equally likely.

    Returns
    -------
    float64 array
        The shape of the counts, and a last axis of ``n + 1`` outputs; accurate to a few units in
        the last place.

    """
    rate = parameters.not_negative("epsilon", epsilon)
    return _pmf(rate, *_places(n, counts))


def expected_errors(epsilon: Real, n: Integer, *, minimax: bool = True) -> ExpectedErrors:
    """Return the expected absolute errors of censoring, rejection and remapping.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The privacy loss between neighbors; positive, taken exactly. All mechanisms have this loss,
        except that rejection with :func:`note_epsilon` may have more.
    n : int
        The greatest count: from 1 to 127, or to 4095 without minimax.
    minimax : bool
        Whether to include the minimax remap, which needs scipy.

    Returns
    -------
    ExpectedErrors
        Averages are over true counts from 0 to n, all equally likely.

    Raises
    ------
    TypeError
        If a parameter has another type.
    ValueError
        If epsilon is not positive and finite, or n is out of range.
    ImportError
        If minimax is true and scipy is not installed.

    """
    rate, n = parameters.positive("epsilon", epsilon), parameters.at_least("n", n, 1)
    parameters.flag("minimax", minimax)
    most = remap.MOST_MINIMAX if minimax else remap.MOST
    if n >= most:
        raise ValueError(f"n = {n} is not accepted: give at most {most - 1}")
    mechanism = GeometricMechanism(rate, bounds=(0, n))
    bayes = remap.bayes(mechanism, np.ones(n + 1), "absolute")
    cautious = remap.minimax(mechanism, "absolute") if minimax else None
    x = np.arange(n + 1)

    def rejected(noise: float) -> Errors:
        masses = _pmf(Fraction(noise), n, x)
        return _errors((masses * np.abs(x[:, np.newaxis] - x)).sum(axis=1))

    def released(function: Any) -> Errors:
        return _errors(remap.risk(mechanism, "absolute", function))

    return ExpectedErrors(
        censored=released(None),
        rejected_note=rejected(note_epsilon(rate, n)),
        rejected_exact=rejected(calibrated_epsilon(rate, n)),
        remapped_bayes=released(bayes),
        remapped_minimax=released(cautious) if cautious else None,
    )


def _errors(risks: _Floats) -> Errors:
    return Errors(float(risks.max()), float(risks.mean()))


def _places(n: Any, counts: Any) -> tuple[int, NDArray[np.int64]]:
    n = parameters.at_least("n", n, 1)
    if n > _MAX_N:
        raise OverflowError(f"n = {n} is not accepted: give at most 2**62")
    array = arrays.as_array(counts)
    for count in (int(array.min()), int(array.max())) if array.size else ():
        if not 0 <= count <= n:
            raise ValueError(f"counts with {count} are not accepted: give counts from 0 to {n}")
    return n, array.astype(np.int64)


def _pmf(rate: Fraction, n: int, x: NDArray[np.int64]) -> _Floats:
    weights = powers(rate, np.arange(n + 1))[np.abs(np.arange(n + 1) - x[..., np.newaxis])]
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _ratio(rate: Fraction, ahead: NDArray[np.int64]) -> _Floats:
    """Return the rejection probability at x over that at x + 1, given ``n - 2 x - 1``."""
    a, distance = powers(rate, 1), np.abs(ahead)
    # At most 1; common factors that could underflow are cancelled.
    inwards = np.minimum(1, (a + powers(rate, distance)) / (1 + powers(rate, distance + 1)))
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(ahead < 0, inwards, 1 / inwards)


def _within(rate: Fraction, n: int, bound: Fraction) -> bool:
    """Return whether the loss is at most a bound, computed with as many digits as needed.

    For n > 1 the two are never equal, so the loop ends (``docs/proofs.md``, theorem 12).
    """
    room = bound - rate
    if n == 1:
        return room >= 0
    if not 0 < room < 1:
        return room > 0
    digits = 40
    while True:
        with localcontext(decimals.context(digits)):
            allowed, gain = _gone(room) * _decay(-room), _gain(rate, n)
            if abs(allowed - gain) > (allowed + gain).scaleb(decimals.SPARE - digits):
                return allowed > gain
        digits *= 2


def _inflation(rate: Fraction, n: int) -> Decimal:
    """Return the inflation, accurate to about 20 digits."""
    with localcontext(decimals.context(60)):
        gain = _gain(rate, n)
        return (1 + gain).ln() if gain > Decimal("1e-20") else gain


def _gain(rate: Fraction, n: int) -> Decimal:
    """Return ``N(1) / N(0) - 1 = a (1 - a) (1 - a**(n - 1)) / (1 - a**(n + 1))``."""
    return _decay(rate) * _gone(rate) * _gone((n - 1) * rate) / _gone((n + 1) * rate)


def _decay(exponent: Fraction) -> Decimal:
    """Return ``exp(-exponent)``, to full precision even if the exponent is large."""
    with localcontext() as wide:
        wide.prec += _digits(exponent)
        return (-decimals.of(exponent)).exp()


def _gone(exponent: Fraction) -> Decimal:
    """Return ``1 - exp(-exponent)``, to full precision even if the exponent is small."""
    with localcontext() as wide:
        wide.prec += _digits(1 / exponent) if exponent else 0
        return 1 - (-decimals.of(exponent)).exp()


def _digits(ratio: Fraction) -> int:
    """Return about how many digits a ratio has before the decimal point."""
    return max(0, math.ceil(decimals.bits(abs(ratio)) * math.log10(2)))


def _least(guess: Decimal, holds: Callable[[float], bool]) -> float:
    """Return the least nonnegative float for which a monotone condition holds, from a guess."""
    value = float(guess)
    while not holds(value):
        value = math.nextafter(value, math.inf)
    while value > 0 and holds(lower := math.nextafter(value, 0)):
        value = lower
    return value


def _bits(value: float) -> int:
    """Return the bits of a nonnegative float, which number these floats in increasing order."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _plain(values: _Floats) -> Any:
    """Return a float instead of an array without dimensions."""
    return values if values.ndim else float(values)
