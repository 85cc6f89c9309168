"""Noise that is drawn again until the count is in range: what it costs in privacy, exactly.

*Geometric Mechanism Notes*, section 2.4, for a count x of n records: instead of censoring ``x + Z``
to ``0..n``, one could reject what is outside. The law is then ``a**abs(y - x) / N(x)`` with
``a = exp(-epsilon)``, and depends on the count by ``N(x)`` too. The section's formulas are here as
they stand (``note_...``), beside the exact loss of that law and the noise that keeps it to an
epsilon. Proofs are in ``docs/proofs.md``, section "Rejection".

>>> from geomdp.rejection import calibrated_epsilon, loss, note_epsilon
>>> round(loss(0.1, n=30), 4)
0.1818
>>> round(calibrated_epsilon(0.1, n=30), 4)
0.0533
>>> round(note_epsilon(0.1, n=30), 4)
0.0086

There is no sampler of it: the time that rejection takes depends on the count, and the release of a
:class:`geomdp.GeometricMechanism`, remapped, errs less (:func:`expected_errors`).
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
    """The ratios of :func:`note_ratios` where the note takes them to be extreme."""

    L_n: float
    L_1: float
    U_0: float
    U_n_minus_1: float


class Errors(NamedTuple):
    """The expected absolute error, for the worst of the true counts and on average over them."""

    worst: float
    average: float


class ExpectedErrors(NamedTuple):
    """What :func:`expected_errors` compares.

    Attributes
    ----------
    censored : Errors
        The release of a :class:`geomdp.GeometricMechanism`.
    rejected_note : Errors
        Rejection, with noise for :func:`note_epsilon`.
    rejected_exact : Errors
        Rejection, with noise for :func:`calibrated_epsilon`.
    remapped_bayes : Errors
        The release, then :func:`geomdp.remap.bayes` for the uniform prior: the least average of all
        mechanisms.
    remapped_minimax : Errors or None
        The release, then :func:`geomdp.remap.minimax`: the least worst case of all mechanisms.

    """

    censored: Errors
    rejected_note: Errors
    rejected_exact: Errors
    remapped_bayes: Errors
    remapped_minimax: Errors | None


def censoring_probabilities(epsilon: Real, n: Integer, counts: Any) -> tuple[Any, Any]:
    """Return how probable noise is that takes a count below 0, and above n.

    ``P(Z < -x) = a**(x + 1) / (1 + a)`` and ``P(Z > n - x) = a**(n - x + 1) / (1 + a)``
    (*Geometric Mechanism Notes*, section 2.4).

    Parameters
    ----------
    epsilon : int, float or Fraction
        Of the noise; positive, and taken exactly.
    n : int
        The greatest count, from 1 to ``2**62``.
    counts : int, numpy integer, array or sequence of ints
        True counts x, from 0 to n.

    Returns
    -------
    below, above : floats or float64 arrays
        Of the shape of the counts; right to a few units in the last place.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If epsilon is not positive and finite, n is below 1, or a count is not from 0 to n.
    OverflowError
        If n is above ``2**62``, or an int among the counts beyond int64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, x = _places(n, counts)
    edge = 1 + powers(rate, 1)
    return _plain(powers(rate, x + 1) / edge), _plain(powers(rate, n - x + 1) / edge)


def rejection_probability(epsilon: Real, n: Integer, counts: Any) -> Any:
    """Return how probable it is that a draw is rejected.

    ``Pr(T_D)`` in *Geometric Mechanism Notes*, section 2.4: the sum of what
    :func:`censoring_probabilities` returns.

    Parameters
    ----------
    epsilon, n, counts
        As in :func:`censoring_probabilities`.

    """
    below, above = censoring_probabilities(epsilon, n, counts)
    return below + above


def note_ratios(epsilon: Real, n: Integer, counts: Any) -> tuple[Any, Any]:
    """Return ``L`` and ``U`` of *Geometric Mechanism Notes*, equation 2.2, as they stand there.

    ``L = (a**(2 x + 1) + a**(n + 1)) / (a**(2 x + 2) + a**n)`` is the rejection probability at x
    over that at ``x + 1``, and ``U = (a**(2 x + 1) + a**(n + 1)) / (a**(2 x) + a**(n + 2))`` that
    at x over that at ``x - 1``. (The text has it the other way round: the formulas of ``Pr(T)`` for
    its two neighbours are exchanged.) ``U(x) = L(n - x)``.

    Parameters
    ----------
    epsilon, n, counts
        As in :func:`censoring_probabilities`.

    Returns
    -------
    L, U : floats or float64 arrays
        Of the shape of the counts; infinite where they are beyond float64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, x = _places(n, counts)
    ahead = n - x - x - 1
    return _plain(_ratio(rate, ahead)), _plain(_ratio(rate, -ahead - 2))


def note_extremes(epsilon: Real, n: Integer) -> Extremes:
    """Return ``L_n``, ``L_1``, ``U_0`` and ``U_(n-1)`` of *Geometric Mechanism Notes*, section 2.4.

    ``L_n = U_0 < 1`` and ``L_1 = U_(n-1)``, which is above 1 only for n of at least 4: it is 1 for
    n = 3 and less for n = 1 and 2, where the note has it above 1 for all n.

    Parameters
    ----------
    epsilon, n
        As in :func:`censoring_probabilities`.

    """
    (L_1, L_n), _ = note_ratios(epsilon, n, [1, n])
    _, (U_0, U_n_minus_1) = note_ratios(epsilon, n, [0, n - 1])
    return Extremes(float(L_n), float(L_1), float(U_0), float(U_n_minus_1))


def note_factor(epsilon: Real, n: Integer) -> float:
    """Return ``M`` of *Geometric Mechanism Notes*, section 2.4: the greatest ratio.

    That is ``max(1 / L_n, 1 / U_0, L_1, U_(n-1))``, of which the first two are the greatest: ``M =
    (1 + a**(n + 2)) / (a + a**(n + 1))``. It bounds ratios of the rejection probability, but the
    law has ``1 - Pr(T)`` in it; see :func:`loss`.

    Parameters
    ----------
    epsilon, n
        As in :func:`censoring_probabilities`.

    Returns
    -------
    float
        Infinite where it is beyond float64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, _ = _places(n, 0)
    return float(_ratio(rate, np.array(n + 1)))


def note_epsilon(epsilon: Real, n: Integer) -> float:
    """Return ``epsilon - ln M``, for which *Geometric Mechanism Notes* would draw the noise.

    That is ``ln((1 + a**n) / (1 + a**(n + 2)))``. It is always positive, but vanishes as ``n *
    epsilon`` grows, so that what is released becomes uniform. And it is not safe: as epsilon goes
    to 0, the :func:`loss` with it goes to ``2 n / (n + 1)`` times epsilon.

    Parameters
    ----------
    epsilon, n
        As in :func:`censoring_probabilities`.

    Returns
    -------
    float
        Right to a few units in the last place; 0 where it is below the least float64.

    """
    rate = parameters.positive("epsilon", epsilon)
    n, _ = _places(n, 0)
    far, twice = powers(rate, np.array([n, n + 2])), -2 * float(min(rate, Fraction(2**20)))
    return float(np.log1p(far[0] * -np.expm1(twice) / (1 + far[1])))


def inflation(epsilon: Real, n: Integer) -> float:
    """Return what rejection adds to the loss of the noise: ``ln(N(1) / N(0))``, rounded up.

    ``N(1) / N(0) = (1 + a - a**2 - a**n) / (1 - a**(n + 1))``. It is 0 for n = 1, and else less
    than ``ln(5 / 4)``, and than ``(n - 1) / (n + 1)`` times epsilon.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Of the noise; not negative, and taken exactly. With 0, all outputs are equally likely.
    n : int
        The greatest count, at least 1.

    Returns
    -------
    float
        The least float64 that is not below the exact value.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If epsilon is negative or not finite, or n is below 1.

    """
    rate, n = parameters.not_negative("epsilon", epsilon), parameters.at_least("n", n, 1)
    if not rate or n == 1:
        return 0.0
    return _least(_inflation(rate, n), lambda bound: _within(rate, n, rate + Fraction(bound)))


def loss(epsilon: Real, n: Integer) -> float:
    """Return the privacy loss of rejection between neighbours: ``epsilon + ln(N(1) / N(0))``.

    The greatest of ``abs(ln(P(y | x) / P(y | x + 1)))``, ``P(y | x) = a**abs(y - x) / N(x)``, over
    all counts and outputs from 0 to n. It is at most ``2 n / (n + 1)`` times epsilon.

    Parameters
    ----------
    epsilon, n
        As in :func:`inflation`.

    Returns
    -------
    float
        The least float64 that is not below the exact value; infinite if there is none.

    """
    rate, n = parameters.not_negative("epsilon", epsilon), parameters.at_least("n", n, 1)
    if not rate:
        return 0.0
    with localcontext(decimals.context(40)):
        guess = decimals.of(rate) + _inflation(rate, n)
    return _least(guess, lambda bound: bound == math.inf or _within(rate, n, Fraction(bound)))


def calibrated_epsilon(epsilon: Real, n: Integer) -> float:
    """Return the greatest epsilon of the noise with which rejection loses no more than `epsilon`.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The :func:`loss` that is allowed; positive, and taken exactly.
    n : int
        The greatest count, at least 1.

    Returns
    -------
    float
        From ``(n + 1) / (2 n)`` times epsilon, which it goes to as epsilon goes to 0, to epsilon.
        The greatest float64 whose exact loss is at most epsilon; 0 if no positive one's is.

    Raises
    ------
    TypeError
        If a parameter is of another type.
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
    """Return the probabilities of the outputs 0 to n with rejection: ``a**abs(y - x) / N(x)``.

    Parameters
    ----------
    epsilon
        As in :func:`inflation`.
    n, counts
        As in :func:`censoring_probabilities`.

    Returns
    -------
    float64 array
        Of the shape of the counts and a last axis of ``n + 1`` outputs; right to a few units in the
        last place.

    """
    rate = parameters.not_negative("epsilon", epsilon)
    return _law(rate, *_places(n, counts))


def expected_errors(epsilon: Real, n: Integer, *, minimax: bool = True) -> ExpectedErrors:
    """Return the expected absolute errors of censoring, rejecting and remapping, side by side.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The loss between neighbours, of all of them; but that with the note's epsilon may be more
        (:func:`note_epsilon`). Positive, and taken exactly.
    n : int
        The greatest count: from 1 to 127, or to 4095 without minimax.
    minimax : bool
        Whether to work out the minimax remap too, which needs scipy.

    Returns
    -------
    ExpectedErrors
        Averages are over true counts from 0 to n, all equally likely.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If epsilon is not positive and finite, or n out of its range.
    ImportError
        If minimax is asked for, and scipy is not there.

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
        law = _law(Fraction(noise), n, x)
        return _errors((law * np.abs(x[:, np.newaxis] - x)).sum(axis=1))

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


def _law(rate: Fraction, n: int, x: NDArray[np.int64]) -> _Floats:
    weights = powers(rate, np.arange(n + 1))[np.abs(np.arange(n + 1) - x[..., np.newaxis])]
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _ratio(rate: Fraction, ahead: NDArray[np.int64]) -> _Floats:
    """Return the rejection probability at x over that at x + 1, given ``n - 2 x - 1``."""
    a, distance = powers(rate, 1), np.abs(ahead)
    # At most 1, and without what would underflow both above and below the line.
    inwards = np.minimum(1, (a + powers(rate, distance)) / (1 + powers(rate, distance + 1)))
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(ahead < 0, inwards, 1 / inwards)


def _within(rate: Fraction, n: int, bound: Fraction) -> bool:
    """Return whether the loss is at most a bound, as decided by as many digits as it takes.

    For n > 1 it is never equal: ``N(1) / N(0)`` would be a power of e, and is not one of a.
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
    """Return the inflation, right to some 20 digits."""
    with localcontext(decimals.context(60)):
        gain = _gain(rate, n)
        return (1 + gain).ln() if gain > Decimal("1e-20") else gain


def _gain(rate: Fraction, n: int) -> Decimal:
    """Return ``N(1) / N(0) - 1 = a (1 - a) (1 - a**(n - 1)) / (1 - a**(n + 1))``."""
    return _decay(rate) * _gone(rate) * _gone((n - 1) * rate) / _gone((n + 1) * rate)


def _decay(exponent: Fraction) -> Decimal:
    """Return ``exp(-exponent)``, with all digits even if it is large."""
    with localcontext() as wide:
        wide.prec += _digits(exponent)
        return (-decimals.of(exponent)).exp()


def _gone(exponent: Fraction) -> Decimal:
    """Return ``1 - exp(-exponent)``, with all digits even if it is small."""
    with localcontext() as wide:
        wide.prec += _digits(1 / exponent) if exponent else 0
        return 1 - (-decimals.of(exponent)).exp()


def _digits(ratio: Fraction) -> int:
    """Return how many digits a ratio has before the point, or 0."""
    return max(0, math.ceil(decimals.bits(abs(ratio)) * math.log10(2)))


def _least(guess: Decimal, holds: Callable[[float], bool]) -> float:
    """Return the least float, from 0, for which this holds, found by steps from close to it."""
    value = float(guess)
    while not holds(value):
        value = math.nextafter(value, math.inf)
    while value > 0 and holds(lower := math.nextafter(value, 0)):
        value = lower
    return value


def _bits(value: float) -> int:
    """Return the place of a float among those that are not negative."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _plain(values: _Floats) -> Any:
    """Return a float for a single one."""
    return values if values.ndim else float(values)
