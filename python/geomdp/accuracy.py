"""How accurate a release is, exactly: from scale or epsilon to accuracy, and back.

The accuracy at level alpha is the least integer a such that an error exceeds a with probability at
most alpha, ``P[|X - z| > a] <= alpha`` (*Geometric Mechanism Accuracy*, definition 1). For noise
without bounds that means ``2 q**(a + 1) / (1 + q) <= alpha``, with ``q = exp(-1 / scale)``.

The functions of a scale or an epsilon describe ideal noise without bounds. The others account for a
mechanism, its bounds and the distribution that it samples. Results that are not exact are rounded
to the safe side, by less than 1e-34 and then to a float.

A level alpha above one half, such as 0.95, is probably a mistake, and causes a UserWarning
everywhere.

All functions also take mappings, such as a Counter, and columns of pandas, Polars and PyArrow in
place of arrays. The results have their keys, or their index and name.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from geomdp._analysis import decimals, moments, sums, tails
from geomdp._inputs import arrays, labels, parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.mechanism import GeometricMechanism, as_counts, as_mechanism, limits

if TYPE_CHECKING:
    from geomdp.mechanism import GeometricMechanism

__all__ = [
    "release_accuracy",
    "confidence_interval",
    "simultaneous_accuracy",
    "sum_accuracy",
    "sum_confidence_interval",
    "ratio_confidence_interval",
    "relative_accuracy",
    "epsilon_to_accuracy",
    "accuracy_to_epsilon",
    "scale_to_accuracy",
    "accuracy_to_scale",
    "bias",
    "variance",
    "mean_absolute_error",
    "discrete_laplacian_scale_to_accuracy",
    "accuracy_to_discrete_laplacian_scale",
]

#: One number, or an array of numbers, which are broadcast.
Numbers: TypeAlias = Real | ArrayLike | Sequence[Real]
Method: TypeAlias = Literal["exact", "ceiling", "continuous"]
Tail: TypeAlias = Literal[">", ">="]
Side: TypeAlias = Literal["both", "lower", "upper"]
Distribution: TypeAlias = Literal["censored", "truncated", "folded"]

_METHODS = ("exact", "ceiling", "continuous")


def scale_to_accuracy(
    scale: Numbers,
    alpha: Numbers,
    *,
    n: Numbers = 1,
    method: Method = "exact",
    tail: Tail = ">",
) -> Any:
    """Return the accuracy at level alpha of noise with this scale, without bounds.

    Parameters
    ----------
    scale : int, float, Fraction or array of them
        ``sensitivity / epsilon``, not negative; 0 means no noise.
    alpha : int, float, Fraction or array of them
        The significance level, above 0 and at most 1. Arrays are broadcast against each other.
    n : int or array of ints
        How many independent counts are to be this accurate at once; at least 1. Each has the level
        ``1 - (1 - alpha)**(1 / n)``.
    method : {"exact", "ceiling", "continuous"}
        "exact": the least integer a with ``P[|Z| > a] <= alpha``. "ceiling": ``ceil(scale * ln(1 /
        alpha))``, which is never less (*Geometric Mechanism Accuracy*, theorem 1). "continuous":
        the same without the ceiling, rounded up to a float (the same, section 0.1); it is the
        accuracy of Laplace noise.
    tail : {">", ">="}
        Whether alpha limits the probability of an error above a, or of a or more. ``">="`` needs
        the exact method; the accuracy is then larger by one, for alpha below 1.

    Returns
    -------
    int, float or array
        Ints for numbers. For arrays int64 arrays, or Python ints (dtype object) if one is beyond
        int64. Floats and float64 arrays for the continuous method.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number or is out of its range, or arrays do not broadcast.

    Examples
    --------
    >>> from geomdp.accuracy import scale_to_accuracy
    >>> scale_to_accuracy(2, alpha=0.05)
    6
    >>> scale_to_accuracy([2, 20], alpha=0.05, n=200)
    array([ 16, 165])

    """
    find = _to_accuracy(method, tail)
    return _each(
        find,
        ("scale", scale, parameters.not_negative),
        ("alpha", alpha, parameters.significance),
        ("n", n, _at_least_one),
        floats=method == "continuous",
    )


def accuracy_to_scale(
    accuracy: Numbers,
    alpha: Numbers,
    *,
    n: Numbers = 1,
    method: Method = "exact",
    tail: Tail = ">",
) -> Any:
    """Return the greatest scale of noise with this accuracy at level alpha, without bounds.

    Parameters
    ----------
    accuracy : int, float, Fraction or array of them
        Not negative; 0 only for the exact method with tail ``">"``, which rounds down to an
        integer. Tail ``">="`` rounds up.
    alpha, n, method, tail
        As in :func:`scale_to_accuracy`. The ceiling and the continuous method are the same here,
        ``accuracy / ln(1 / alpha)`` (*Geometric Mechanism Accuracy*, section 0.1).

    Returns
    -------
    float or float64 array
        Rounded down; infinity for alpha 1, which allows any scale.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number or is out of its range, or arrays do not broadcast.

    Examples
    --------
    >>> from geomdp.accuracy import accuracy_to_scale
    >>> round(accuracy_to_scale(6, alpha=0.05), 4)
    2.1887

    """
    find = _to_rate(method, tail)
    accurate = _accuracy_check(method, tail)

    def scale(accuracy: Fraction, alpha: Fraction, n: int) -> float:
        return _inverse(find(accuracy, alpha, n))

    return _each(
        scale,
        ("accuracy", accuracy, accurate),
        ("alpha", alpha, parameters.significance),
        ("n", n, _at_least_one),
        floats=True,
    )


def epsilon_to_accuracy(
    epsilon: Numbers,
    alpha: Numbers,
    *,
    sensitivity: Numbers = 1,
    n: Numbers = 1,
    method: Method = "exact",
    tail: Tail = ">",
) -> Any:
    """Return the accuracy at level alpha of noise for this epsilon, without bounds.

    Parameters
    ----------
    epsilon : int, float, Fraction or array of them
        Positive.
    alpha, n, method, tail
        As in :func:`scale_to_accuracy`.
    sensitivity : int, float, Fraction or array of them
        Not negative.

    Returns
    -------
    int, float or array
        As in :func:`scale_to_accuracy`, for the scale ``sensitivity / epsilon``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number or is out of its range, or arrays do not broadcast.

    Examples
    --------
    >>> from geomdp.accuracy import epsilon_to_accuracy
    >>> epsilon_to_accuracy([0.5, 1, 2], alpha=0.05)
    array([6, 3, 1])

    """
    find = _to_accuracy(method, tail)

    def accuracy(epsilon: Fraction, alpha: Fraction, n: int, sensitivity: Fraction) -> int | float:
        return find(sensitivity / epsilon, alpha, n)

    return _each(
        accuracy,
        ("epsilon", epsilon, parameters.positive),
        ("alpha", alpha, parameters.significance),
        ("n", n, _at_least_one),
        ("sensitivity", sensitivity, parameters.not_negative),
        floats=method == "continuous",
    )


def accuracy_to_epsilon(
    accuracy: Numbers,
    alpha: Numbers,
    *,
    sensitivity: Numbers = 1,
    n: Numbers = 1,
    method: Method = "exact",
    tail: Tail = ">",
) -> Any:
    """Return the least epsilon of noise with this accuracy at level alpha, without bounds.

    Parameters
    ----------
    accuracy : int, float, Fraction or array of them
        Not negative; 0 only for the exact method with tail ``">"``.
    alpha, n, method, tail
        As in :func:`scale_to_accuracy`.
    sensitivity : int, float, Fraction or array of them
        Not negative.

    Returns
    -------
    float or float64 array
        Rounded up, so that a mechanism with this epsilon has the accuracy; 0 for alpha 1.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number or is out of its range, or arrays do not broadcast.

    Examples
    --------
    >>> from geomdp.accuracy import accuracy_to_epsilon
    >>> round(accuracy_to_epsilon(10, alpha=0.05), 4)
    0.2843

    """
    find = _to_rate(method, tail)

    def epsilon(accuracy: Fraction, alpha: Fraction, n: int, sensitivity: Fraction) -> float:
        with localcontext(decimals.context(50)):
            return decimals.up(find(accuracy, alpha, n) * decimals.of(sensitivity))

    return _each(
        epsilon,
        ("accuracy", accuracy, _accuracy_check(method, tail)),
        ("alpha", alpha, parameters.significance),
        ("n", n, _at_least_one),
        ("sensitivity", sensitivity, parameters.not_negative),
        floats=True,
    )


def discrete_laplacian_scale_to_accuracy(scale: Numbers, alpha: Numbers) -> Any:
    """Return the real-valued accuracy of OpenDP's function of this name.

    That is ``scale * ln(2 / (alpha (1 + q)))``, where ``2 q**a / (1 + q) = alpha``. An error of a
    or more has probability at most alpha, and so has an error above ``floor(a)``.

    The result is a float or a float64 array, rounded up; 0 for scale 0. Parameters and errors are
    those of :func:`scale_to_accuracy`.

    >>> from geomdp.accuracy import discrete_laplacian_scale_to_accuracy
    >>> round(discrete_laplacian_scale_to_accuracy(2, alpha=0.05), 4)
    6.4296
    """

    def accuracy(scale: Fraction, alpha: Fraction) -> float:
        return decimals.up(tails.reach(1 / scale, alpha / 2)) if scale else 0.0

    return _each(
        accuracy,
        ("scale", scale, parameters.not_negative),
        ("alpha", alpha, parameters.significance),
        floats=True,
    )


def accuracy_to_discrete_laplacian_scale(accuracy: Numbers, alpha: Numbers) -> Any:
    """Return the greatest scale with ``P[|Z| >= accuracy] <= alpha``, by OpenDP's name.

    It is the inverse of :func:`discrete_laplacian_scale_to_accuracy`. The result is a float or a
    float64 array, rounded down: 0 for accuracy 0, and infinity for other accuracies with alpha 1.
    Errors and alpha are those of :func:`scale_to_accuracy`.

    Parameters
    ----------
    accuracy : int, float, Fraction or array of them
        Not negative. Between integers the probability is taken as ``2 q**accuracy / (1 + q)``.
    alpha : int, float, Fraction or array of them
        The significance level.

    Examples
    --------
    >>> from geomdp.accuracy import accuracy_to_discrete_laplacian_scale
    >>> round(accuracy_to_discrete_laplacian_scale(6, alpha=0.05), 4)
    1.8581

    """

    def scale(accuracy: Fraction, alpha: Fraction) -> float:
        return _inverse(tails.rate(accuracy, alpha / 2)) if accuracy else 0.0

    return _each(
        scale,
        ("accuracy", accuracy, parameters.not_negative),
        ("alpha", alpha, parameters.significance),
        floats=True,
    )


def release_accuracy(mechanism: GeometricMechanism, alpha: Real, *, counts: Any = None) -> Any:
    """Return the accuracy at level alpha of a mechanism's releases, within its bounds.

    Bounds censor the noise, so near a bound only one tail remains. The probability is an upper
    bound for the sampled distribution (``docs/proofs.md``, section 11). At levels below the mass of
    its floor, at most 2**-52, the accuracy is the width of the bounds.

    Parameters
    ----------
    mechanism : GeometricMechanism
        Its bounds, or the limits of the dtype of the counts, are taken into account.
    alpha : int, float or Fraction
        The significance level, from 0 to 1. At 0 the accuracy is the greatest possible error.
    counts : int, numpy integer, array or sequence of ints, optional
        True counts. Ints and sequences of ints are taken as int64. The error of a count outside the
        bounds is at least its distance from them.

    Returns
    -------
    int or array of ints
        At these true counts. Without counts, in the worst case over all counts within the bounds,
        or within int64 if there are no bounds.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, alpha is out of its range, or the scale is too large to be
        certified without bounds.
    OverflowError
        If the bounds are beyond the dtype of the counts.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accuracy
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 4526))
    >>> accuracy.release_accuracy(mechanism, alpha=0.05)
    6
    >>> accuracy.release_accuracy(mechanism, alpha=0.05, counts=[0, 3, 40])
    array([5, 5, 6])

    """
    level = parameters.significance_or_zero("alpha", alpha)
    if counts is None:
        return _worst(mechanism, arrays.dtype_for(as_mechanism(mechanism).bounds), level)
    [counts], labelled = labels.apart(counts=counts)
    return labelled(_at_counts(mechanism, counts, level))


def simultaneous_accuracy(
    mechanism: GeometricMechanism,
    alpha: Real,
    *,
    n: Integer | None = None,
    counts: Any = None,
) -> int:
    """Return the least a such that all of several errors are at most a, at level alpha.

    The noises are independent, so the condition is ``prod(1 - P[error_i > a]) >= 1 - alpha``. It
    allows a smaller a than the union bound.

    Parameters
    ----------
    mechanism, alpha
        As in :func:`release_accuracy`.
    n : int, optional
        The number of counts; the accuracy is that of the worst case.
    counts : array or sequence of ints, optional
        True counts, instead of their number.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As in :func:`release_accuracy`; and unless exactly one of `n` and `counts` is given.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import simultaneous_accuracy
    >>> simultaneous_accuracy(GeometricMechanism(epsilon=0.5, bounds=(0, 4526)), 0.05, n=24)
    12

    """
    level = parameters.significance_or_zero("alpha", alpha)
    if (n is None) == (counts is None):
        raise TypeError("n and counts are alternatives: give one of them")
    dtype = arrays.dtype_for(as_mechanism(mechanism).bounds)
    if counts is None:
        n = parameters.at_least("n", n, 0)
        return _worst(mechanism, dtype, tails.share(level, n)) if n else 0
    [counts], _ = labels.apart(counts=counts)
    return _all_at_once(mechanism, as_counts(mechanism, counts), level)


def confidence_interval(
    mechanism: GeometricMechanism,
    released: Any,
    alpha: Real,
    *,
    side: Side = "both",
    dtype: DTypeLike | None = None,
) -> tuple[Any, Any]:
    """Return an interval that contains the true count with probability at least 1 - alpha.

    ``[released - a, released + a]``, cut off at the bounds of the mechanism. Two-sided, a is the
    accuracy at level alpha (:func:`release_accuracy`); one-sided, it is the least one with ``P[Z >
    a] <= alpha``, and the other end is the bound. The probability is over the noise, for any true
    count within the bounds, and for each interval on its own.

    A sum of noisy counts is not one noisy count: its noise is larger, which this function cannot
    see. Use :func:`sum_confidence_interval` for totals, margins and differences, and
    :func:`ratio_confidence_interval` for rates and means.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released the counts.
    released : int, numpy integer, array or sequence of ints
        Noisy counts.
    alpha : int, float or Fraction
        The probability that the interval misses the true count: 0.05 for 95% confidence, and 0
        for all counts that are possible.
    side : {"both", "lower", "upper"}
        "lower" gives only a lower end, and "upper" only an upper one.
    dtype : integer dtype, optional
        The dtype in which the counts were released, if `released` has lost it. A list has: without
        bounds, a noisy count of 127 is at the limit of int8, and ``.tolist()`` hides that. If not
        given, ints and sequences of ints are taken as int64, or uint64 if the bounds need it.

    Returns
    -------
    lower, upper : ints or arrays
        They have the type, shape and dtype of `released`, or the given dtype. The interval includes
        both ends.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, alpha or side is out of its range, a released count is not
        within the bounds, or the scale is too large to be certified without bounds.
    OverflowError
        If the bounds are beyond the dtype.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import confidence_interval
    >>> confidence_interval(GeometricMechanism(0.5, bounds=(0, 100)), [3, 40], alpha=0.05)
    (array([ 0, 34]), array([ 9, 46]))

    """
    level = parameters.significance_or_zero("alpha", alpha)
    _choice("side", side, ("both", "lower", "upper"))
    [released], labelled = labels.apart(released=released)
    array, least, most = _released(mechanism, released, dtype)
    if side == "both":
        reach = _worst(mechanism, array.dtype, level)
    else:
        reach = tails.least_of(mechanism.certificate(array.dtype), level, 1)
    native = array.dtype.newbyteorder("=")
    flat = np.array(array, dtype=native).reshape(-1)
    # Modulo the size of the dtype; the differences fit into it.
    step = np.array([reach], dtype=np.uint64).astype(native)
    ends = [np.full_like(flat, least), np.full_like(flat, most)]
    if side != "upper":
        ends[0] = np.maximum(flat, native.type(least + reach)) - step
    if side != "lower":
        ends[1] = np.minimum(flat, native.type(most - reach)) + step
    lower, upper = (end.astype(array.dtype).reshape(array.shape) for end in ends)
    if isinstance(released, np.integer):
        return lower[()], upper[()]
    if parameters.is_integer(released):
        return int(lower), int(upper)
    return labelled(lower), labelled(upper)


def sum_accuracy(mechanism: GeometricMechanism, n: Integer, alpha: Real) -> int:
    """Return the accuracy at level alpha of a sum of n noisy counts.

    That is the least t with ``P[|Z_1 + ... + Z_n| > t] <= alpha``, for the independent noises of
    the counts. It grows with the square root of n.

    Parameters
    ----------
    mechanism : GeometricMechanism
        Without bounds: at a bound the errors all have one sign, and add up. Release without bounds,
        and clamp the total.
    n : int
        How many counts, not negative. Up to 10**5 this is the least t for ideal noise, at the level
        `alpha` minus n times the error of the sampled distribution (``docs/proofs.md``, section
        15). Beyond, it is the least up to ``2**-31`` in the level, or Chernoff's bound.
    alpha : int, float or Fraction
        The significance level, above 0 and at most 1.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, the mechanism has bounds, a number is out of its range,
        alpha is below the error of the sampled distribution, or the scale is too large to be
        certified.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accuracy
    >>> mechanism = GeometricMechanism(epsilon=0.5)
    >>> mechanism.accuracy(alpha=0.05), accuracy.sum_accuracy(mechanism, 200, alpha=0.05)
    (6, 78)

    """
    level = parameters.significance("alpha", alpha)
    n = parameters.at_least("n", n, 0)
    if as_mechanism(mechanism).bounds is not None:
        raise ValueError(
            f"bounds = {mechanism.bounds} are not accepted: errors at a bound have one sign and "
            "add up; give a mechanism without bounds"
        )
    level = _ideal_level(level, [(mechanism, arrays.dtype_for(None), n)])
    return sums.reach(_rate(mechanism), {1: n}, level) if n else 0


def sum_confidence_interval(
    mechanism: GeometricMechanism,
    released: Any,
    alpha: Real,
    *,
    weights: Any = None,
    dtype: DTypeLike | None = None,
) -> tuple[int, int]:
    """Return an interval that contains a sum of true counts with probability at least 1 - alpha.

    For totals, margins, and with `weights` for differences and other weighted sums. The interval is
    the noisy sum plus or minus the accuracy of the sum of noises, within the sums that the bounds
    allow.

    Release without bounds for sums, and clip afterwards, if you must, for the eye. A noisy count at
    a bound may have been moved there. So under bounds one eighth of alpha goes to the simultaneous
    accuracy of the counts: each count at a bound makes that side longer by no more than this, and
    the interval is within the sum of the counts' own intervals. For a mechanism without bounds, a
    noisy count at a limit of its dtype opens that side up to all sums that the dtype allows.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released all of the counts, with independent noise.
    released : int, numpy integer, array or sequence of ints
        Noisy counts; all of them are summed.
    alpha : int, float or Fraction
        The probability that the interval misses the sum: 0.05 for 95% confidence.
    weights : array or sequence of ints, optional
        One for each count, of any size and sign; 1 for each if not given. If all have the same
        absolute value, apart from 0, the accuracy is that of :func:`sum_accuracy`. For others it is
        within ``2**-31`` in the level, or Chernoff's bound where noise is wider than about
        ``2**20`` multiples of the greatest common divisor.
    dtype : integer dtype, optional
        As in :func:`confidence_interval`.

    Returns
    -------
    lower, upper : int
        The interval includes both ends.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As in :func:`confidence_interval` and :func:`sum_accuracy`; and if weights are not one
        integer for each count.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import sum_confidence_interval
    >>> mechanism = GeometricMechanism(epsilon=0.5)
    >>> sum_confidence_interval(mechanism, [1205, 310, 85], alpha=0.05)
    (1590, 1610)
    >>> sum_confidence_interval(mechanism, [1205, 310], alpha=0.05, weights=[1, -1])
    (887, 903)

    """
    level = parameters.significance_or_zero("alpha", alpha)
    [released, weights], _ = labels.apart(released=released, weights=weights)
    array, least, most = _released(mechanism, released, dtype)
    factors = np.ones(array.shape, dtype=object)
    if weights is not None:
        factors = _exactly("weights", weights, parameters.integer)
    if factors.shape != array.shape:
        raise ValueError(f"weights is of shape {factors.shape}: give one of shape {array.shape}")
    pairs: list[tuple[int, int]] = [
        (w, x) for w, x in zip(factors.flat, array.reshape(-1).tolist(), strict=True) if w
    ]
    sizes = Counter(abs(w) for w, _ in pairs)
    level = _ideal_level(level, [(mechanism, array.dtype, len(pairs))])
    total = sum(w * x for w, x in pairs)
    if mechanism.rate == math.inf or not pairs:
        return total, total
    # No noise moved a count by more than this to a bound; without bounds, any distance is possible.
    moved = (most - least) * sum(size * n for size, n in sizes.items())
    if mechanism.bounds is not None:
        moved = tails.least(_rate(mechanism), level * _ONE_BY_ONE, len(pairs))
        level -= level * _ONE_BY_ONE
    reach = sums.reach(_rate(mechanism), sizes, level)

    def room(sign: int) -> int:
        """Return how far the true sum may be below the released one, or with sign -1 above."""
        to_bound = [(abs(w), abs(x - (least if sign * w > 0 else most))) for w, x in pairs]
        at_bound = sum(size for size, far in to_bound if not far)
        return min(reach + at_bound * moved, sum(size * min(far, moved) for size, far in to_bound))

    return total - room(1), total + room(-1)


def ratio_confidence_interval(
    mechanism: GeometricMechanism,
    numerator: Any,
    denominator: Any,
    alpha: Real,
    *,
    denominator_mechanism: GeometricMechanism | None = None,
    dtype: DTypeLike | None = None,
) -> tuple[Any, Any]:
    """Return an interval that contains a ratio of true counts with probability at least 1 - alpha.

    For rates, and for means, which are a sum over a count. It holds all ratios that an exact test
    of the two noisy counts does not reject at alpha / 2 on one of its sides, and is at most one
    count of the numerator wider (``docs/proofs.md``, section 15).

    The noises must be independent. A proportion of a total that contains the numerator is
    ``r / (1 + r)``, for the ratio r of the numerator to the rest.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released the numerators.
    numerator, denominator : int, numpy integer, array or sequence of ints
        Noisy counts, broadcast against each other. True denominators must be positive.
    alpha : int, float or Fraction
        The probability that the interval misses the ratio: 0.05 for 95% confidence.
    denominator_mechanism : GeometricMechanism, optional
        The mechanism that released the denominators, if it is another one.
    dtype : integer dtype, optional
        That of both, as in :func:`confidence_interval`.

    Returns
    -------
    lower, upper : floats or float64 arrays
        Rounded outwards. Minus and plus infinity if the denominator cannot be told from 0 at level
        alpha / 2, or is at its lower bound. A numerator at a bound may have been moved there, and
        makes that side infinite. The lower end is at least 0 if the numerator's lower bound is.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As in :func:`confidence_interval`; and if counts do not broadcast, or alpha is below the
        error of the sampled distributions.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accuracy
    >>> mechanism = GeometricMechanism(epsilon=0.5)
    >>> lower, upper = accuracy.ratio_confidence_interval(mechanism, 310, 1205, alpha=0.05)
    >>> round(lower, 4), round(upper, 4)
    (0.2518, 0.2627)

    """
    level = parameters.significance_or_zero("alpha", alpha)
    [numerator, denominator], labelled = labels.apart(numerator=numerator, denominator=denominator)
    above, least, most = _released(mechanism, numerator, dtype)
    other = mechanism if denominator_mechanism is None else denominator_mechanism
    below, floor, ceiling = _released(other, denominator, dtype)
    sampled = [(mechanism, above.dtype, 1), (other, below.dtype, 1)]
    half = _ideal_level(level, sampled) / 2
    noisy = mechanism.rate != math.inf, other.rate != math.inf
    rates = _rate(mechanism), _rate(other)

    def at(a: int, b: int) -> tuple[float, float]:
        lower = -sums.greatest_ratio((-a, b), rates, half)
        upper = sums.greatest_ratio((a, b), rates, half)
        if noisy[1] and b == ceiling:
            lower, upper = min(lower, 0.0), max(upper, 0.0)
        if noisy[1] and b == floor:
            lower, upper = -math.inf, math.inf
        if noisy[0] and a == least:
            lower = -math.inf
        if noisy[0] and a == most:
            upper = math.inf
        return (max(lower, 0.0) if least >= 0 else lower), upper

    if parameters.is_integer(numerator) and parameters.is_integer(denominator):
        return at(int(numerator), int(denominator))
    pairs = np.broadcast(above, below)
    ends = np.array([at(int(a), int(b)) for a, b in pairs], dtype=np.float64).reshape(-1, 2)
    lower, upper = (end.reshape(pairs.shape) for end in ends.T)
    return labelled(lower), labelled(upper)


def relative_accuracy(mechanism: GeometricMechanism | Real, alpha: Real, *, ratio: Real) -> int:
    """Return the count from which on errors are within a ratio of the count, at level alpha.

    "The private count is within a 10% error margin of the true count, 95% of the time" (*Releasing
    Counts with Differential Privacy*): with ratio 0.1 and alpha 0.05, for true counts of at least
    this.

    Parameters
    ----------
    mechanism : GeometricMechanism, int, float or Fraction
        The mechanism, or the epsilon of one of sensitivity 1 and without bounds. With bounds this
        takes the worst case over the counts within them.
    alpha : int, float or Fraction
        The significance level, above 0 and at most 1.
    ratio : int, float or Fraction
        Above 0, and taken exactly: the float 0.3 is less than ``Fraction(3, 10)``.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, a number is out of its range, or the scale is too large to
        be certified.

    Examples
    --------
    >>> from geomdp.accuracy import relative_accuracy
    >>> relative_accuracy(0.5, alpha=0.05, ratio=0.1)
    60

    """
    level, share = parameters.significance("alpha", alpha), parameters.positive("ratio", ratio)
    if isinstance(mechanism, GeometricMechanism):
        reach = _worst(mechanism, arrays.dtype_for(mechanism.bounds), level)
    else:
        reach = tails.least(parameters.positive("epsilon", mechanism), level)
    return math.ceil(reach / share)


def bias(
    mechanism: GeometricMechanism, counts: Any, *, distribution: Distribution = "censored"
) -> Any:
    """Return the expected noisy count minus the true count.

    This is exact for the ideal distribution, up to rounding to float64. The sampled distribution is
    within ``2**-50`` of it in total variation; for bounds near the limits of 64 bits that says
    little about squares (``docs/proofs.md``, sections 4 and 10).

    Parameters
    ----------
    mechanism : GeometricMechanism
        Its bounds, or the limits of the dtype of the counts, are taken into account.
    counts : int, numpy integer, array or sequence of ints
        True counts. Ints and sequences of ints are taken as int64.
    distribution : {"censored", "truncated", "folded"}
        The mechanism samples "censored": noisy counts beyond a bound are moved to it. For
        comparison, at the same scale: "truncated", conditional on a noisy count within the bounds
        (which costs privacy: :mod:`geomdp.rejection`), and "folded", reflected at the bounds
        (:class:`geomdp.compat.diffprivlib.GeometricFolded`).

    Returns
    -------
    float or float64 array
        For each count.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, or distribution is not one of the three.
    OverflowError
        If the bounds are beyond the dtype of the counts.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import bias
    >>> bias(GeometricMechanism(epsilon=0.5, bounds=(0, 100)), [0, 50, 100]).round(2)
    array([ 0.96,  0.  , -0.96])

    """
    return _moment(mechanism, counts, distribution, "bias")


def variance(
    mechanism: GeometricMechanism, counts: Any, *, distribution: Distribution = "censored"
) -> Any:
    """Return the variance of the noisy count, in units of squared counts.

    Without bounds it is ``2 q / (1 - q)**2`` (*Releasing Counts with Differential Privacy*);
    ``docs/proofs.md``, section 10, has the others. Parameters, shapes and errors are those of
    :func:`bias`.

    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import variance
    >>> variance(GeometricMechanism(epsilon=0.5, bounds=(0, 100)), [0, 50, 100]).round(2)
    array([3.  , 7.84, 3.  ])
    """
    return _moment(mechanism, counts, distribution, "variance")


def mean_absolute_error(
    mechanism: GeometricMechanism, counts: Any, *, distribution: Distribution = "censored"
) -> Any:
    """Return the expected absolute error of the noisy count.

    Without bounds it is ``2 q / (1 - q**2)``; ``docs/proofs.md``, section 10, has the others.
    Parameters, shapes and errors are those of :func:`bias`.

    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import mean_absolute_error
    >>> mean_absolute_error(GeometricMechanism(epsilon=0.5, bounds=(0, 100)), [0, 50]).round(2)
    array([0.96, 1.92])
    """
    return _moment(mechanism, counts, distribution, "absolute")


# Without bounds


def _to_accuracy(method: Any, tail: Any) -> Callable[[Fraction, Fraction, int], int | float]:
    """Return the function from scale, alpha and n to accuracy."""
    _check_method(method, tail)

    def find(scale: Fraction, alpha: Fraction, n: int) -> int | float:
        if method == "ceiling":
            return tails.ceil_log_ratio(scale, alpha, n)
        if method == "continuous":
            return decimals.up(tails.log_ratio(scale, tails.share(alpha, n)))
        # An error of 0 or more has probability 1.
        if tail == ">=" and alpha == 1:
            return 0
        least = tails.least(1 / scale, alpha, n) if scale else 0
        return least + 1 if tail == ">=" else least

    return find


def _to_rate(method: Any, tail: Any) -> Callable[[Fraction, Fraction, int], Decimal]:
    """Return the function from accuracy, alpha and n to the rate, rounded up."""
    _check_method(method, tail)

    def find(accuracy: Fraction, alpha: Fraction, n: int) -> Decimal:
        level = tails.share(alpha, n)
        if method != "exact":
            return tails.log_ratio(1 / accuracy, level)
        steps = accuracy // 1 + 1 if tail == ">" else -(-accuracy // 1)
        return tails.rate(Fraction(steps), level / 2)

    return find


def _accuracy_check(method: Any, tail: Any) -> _Check:
    """Return the check of an accuracy; by some definitions, only no noise has accuracy 0."""
    return parameters.not_negative if (method, tail) == ("exact", ">") else parameters.positive


def _inverse(rate: Decimal) -> float:
    if not rate:
        return float("inf")
    with localcontext(decimals.context(50)):
        return decimals.down(1 / rate)


def _check_method(method: Any, tail: Any) -> None:
    _choice("method", method, _METHODS)
    _choice("tail", tail, (">", ">="))
    if tail == ">=" and method != "exact":
        raise ValueError(f"tail = {tail!r} is not accepted with method = {method!r}: give '>'")


# Within bounds


def _worst(mechanism: GeometricMechanism, dtype: np.dtype[Any], level: Fraction) -> int:
    """Return the accuracy in the worst case over the true counts."""
    distribution = mechanism.certificate(dtype)
    both, one = (tails.least_of(distribution, level, sides) for sides in (2, 1))
    # If no count has room for both tails, the worst one is in the middle or at a bound.
    middle = distribution.range // 2
    return both if both < middle else max(one, middle)


def _at_counts(mechanism: GeometricMechanism, counts: Any, level: Fraction) -> Any:
    """Return the accuracy at each of these true counts."""
    array = as_counts(mechanism, counts)
    least, most = limits(mechanism, array.dtype)
    distribution = mechanism.certificate(array.dtype)
    both, one = (tails.least_of(distribution, level, sides) for sides in (2, 1))

    def at(count: int) -> int:
        place = min(max(count, least), most)
        near, far = sorted((place - least, most - place))
        inside = both if both < near else min(max(near, one), far)
        return abs(place - count) + inside

    if parameters.is_integer(counts):
        return at(int(counts))
    distinct, places = np.unique(array, return_inverse=True)
    accuracies = _integers([at(count) for count in distinct.tolist()])
    return accuracies[places.reshape(-1)].reshape(array.shape)


def _all_at_once(mechanism: GeometricMechanism, counts: arrays.Array, level: Fraction) -> int:
    """Return the least a such that all errors are at most a, at this level."""
    least, most = limits(mechanism, counts.dtype)
    if not counts.size:
        return 0
    distribution = mechanism.certificate(counts.dtype)
    places = [(min(max(count, least), most), count) for count in counts.reshape(-1).tolist()]
    # Distances of counts inside to the nearer and to the farther bound; of others to theirs.
    near = sorted(min(x - least, most - x) for place, x in places if place == x)
    far = sorted(max(x - least, most - x) for place, x in places if place == x)
    away = Counter(abs(place - x) for place, x in places if place != x)

    def none_beyond(a: int) -> bool:
        if away and a < max(away):
            return False
        both = len(near) - bisect_right(near, a)
        groups = [(both, 2, a), (len(far) - bisect_right(far, a) - both, 1, a)]
        groups += [(n, 1, a - d) for d, n in away.items() if a - d < most - least]
        logs = Decimal(0)
        for n, sides, reach in groups:
            beyond = tails.beyond(distribution, reach, sides) if n else Decimal(0)
            logs += n * max(1 - beyond, Decimal(0)).ln()
        return logs >= target

    low, high = -1, max([*far, *(d + most - least for d in away)])
    if not level and mechanism.rate < math.inf:
        return high
    lost = len(places).bit_length() - (decimals.bits(level) if level else 0)
    with localcontext(decimals.context(60 + lost * math.log10(2))):
        target = decimals.log(1 - level) * (1 - tails.SAFE) if level < 1 else -Decimal("inf")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if none_beyond(middle) else (middle, high)
    return high


def _moment(mechanism: GeometricMechanism, counts: Any, distribution: Any, name: str) -> Any:
    _choice("distribution", distribution, tuple(_DISTRIBUTIONS))
    [counts], labelled = labels.apart(counts=counts)
    array = as_counts(mechanism, counts)
    ends = limits(mechanism, array.dtype)
    rate = mechanism.rate if isinstance(mechanism.rate, Fraction) else None

    def at(count: int) -> float:
        moment: float = getattr(_DISTRIBUTIONS[distribution](rate, *ends, count), name)
        return moment

    return at(int(counts)) if parameters.is_integer(counts) else labelled(arrays.of_each(array, at))


def _of_folded(rate: Fraction | None, lower: int, upper: int, count: int) -> moments.Moments:
    return moments.of_folded(rate, (2 * lower, 2 * upper), count)


_DISTRIBUTIONS: dict[str, Callable[[Fraction | None, int, int, int], moments.Moments]] = {
    "censored": moments.of_censored,
    "truncated": moments.of_truncated,
    "folded": _of_folded,
}


# Sums and ratios

#: The part of the level of a sum under bounds that its counts have one by one.
_ONE_BY_ONE = Fraction(1, 8)


def _rate(mechanism: GeometricMechanism) -> Fraction:
    rate = mechanism.rate
    return rate if isinstance(rate, Fraction) else sums.NO_NOISE


def _ideal_level(
    level: Fraction, sampled: Sequence[tuple[GeometricMechanism, np.dtype[Any], int]]
) -> Fraction:
    """Return a level of ideal noise that becomes at most this one for the sampled noise."""
    error = sum(n * Fraction(m.certificate(dtype).total_variation) for m, dtype, n in sampled)
    if level <= error:
        wanted = f"more than {float(error):.3g}, the error of the sampled distribution"
        raise ValueError(parameters.refusal("alpha", float(level), wanted))
    return level - error


# Parameters


#: Returns the exact value of a parameter with this name, or raises.
_Check: TypeAlias = Callable[[str, Any], Fraction | int]


def _at_least_one(name: str, value: Any) -> int:
    return parameters.at_least(name, value, 1)


def _released(
    mechanism: GeometricMechanism, released: Any, dtype: DTypeLike | None
) -> tuple[arrays.Array, int, int]:
    """Return noisy counts as they were released, and the bounds that they are within."""
    array = as_counts(mechanism, released)
    kind = array.dtype if dtype is None else arrays.integer_dtype(dtype)
    least, most = limits(mechanism, kind)
    if array.size and not least <= int(array.min()) <= int(array.max()) <= most:
        # What was released is public.
        raise ValueError(
            f"released counts outside the bounds {(least, most)} are not accepted: "
            "give counts that the mechanism released"
        )
    return array.astype(kind, copy=False), least, most


def _choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(map(repr, choices))
        raise ValueError(parameters.refusal(name, value, f"one of {wanted}"))


def _each(
    function: Callable[..., int | float], *given: tuple[str, Any, _Check], floats: bool
) -> Any:
    """Return a function of numbers, or of arrays, which are broadcast.

    It is evaluated once for each distinct combination. `floats` says whether it returns floats.
    """
    names, values, checks = zip(*given, strict=True)
    bare, labelled = labels.apart(**dict(zip(names, values, strict=True)))
    each = list(zip(names, bare, checks, strict=True))
    if not any(isinstance(value, np.ndarray | list | tuple) for value in bare):
        return function(*(check(name, value) for name, value, check in each))
    columns = arrays.broadcast(*((name, _exactly(name, *rest)) for name, *rest in each))
    rows = list(zip(*(array.reshape(-1).tolist() for array in columns), strict=True))
    found = {row: function(*row) for row in set(rows)}
    results = [found[row] for row in rows]
    array = np.array(results, dtype=np.float64) if floats else _integers(results)
    return labelled(array.reshape(columns[0].shape))


def _exactly(name: str, value: Any, check: _Check) -> NDArray[np.object_]:
    """Return an array of Fractions."""
    arrays.refuse_items(name, [value])
    try:
        items = np.array(value, dtype=object)
    except ValueError:
        raise TypeError(f"{name} of different shapes is not accepted: give an array") from None
    exact = np.empty(items.shape, dtype=object)
    exact.reshape(-1)[:] = parameters.each(name, items.reshape(-1).tolist(), check)
    return exact


def _integers(values: list[Any]) -> NDArray[Any]:
    """Return an int64 array, or one of Python ints if one of them is beyond int64."""
    fit = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, dtype=np.int64 if fit else object)
