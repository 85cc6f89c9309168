"""Accuracies of sums, and intervals for sums and ratios of counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from geomdp._ground import parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._inputs import arrays, labels
from geomdp._noise import Noise, as_noise, as_released, errors_of
from geomdp._numerics import one_count, ratio_tails, sum_tails, tails


def sum_accuracy(mechanism: Noise, n: Integer, alpha: Real = 0.05) -> int:
    """Return the accuracy at level alpha of a sum of n noisy counts.

    This is the least t with ``P[|Z_1 + ... + Z_n| > t] <= alpha``, for the independent noise of
    each count. It grows with the square root of n.

    Parameters
    ----------
    mechanism : GeometricMechanism
        A mechanism without bounds, because errors at a bound all have the same sign and add up.
        Release without bounds, and clamp the total.
    n : int
        The number of counts, not negative. Up to 100,000, the result is the least t for ideal
        noise, at the level `alpha` minus n times the error of the sampled distribution
        (``docs/proofs.md``, section 15). Beyond that, it is the least up to ``2**-31`` in the
        level, or Chernoff's bound.
    alpha : int, float or Fraction
        The significance level, above 0 and at most 1.

    Raises
    ------
    ValueError
        If the mechanism has bounds, or alpha is at most the error of the sampled distribution.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accuracy
    >>> mechanism = GeometricMechanism(epsilon=0.5)
    >>> mechanism.accuracy(alpha=0.05), accuracy.sum_accuracy(mechanism, 200, alpha=0.05)
    (6, 78)

    """
    level = parameters.significance("alpha", alpha)
    n = parameters.at_least("n", n, 0)
    if as_noise(mechanism).bounds is not None:
        raise ValueError(
            f"bounds = {mechanism.bounds} are not accepted: all errors at a bound have the "
            "same sign and add up; give a mechanism without bounds"
        )
    level = _ideal_level(level, [(mechanism, arrays.dtype_for(None), n)])
    return sum_tails.reach(_rate(mechanism), {1: n}, level) if n else 0


def sum_confidence_interval(
    mechanism: Noise,
    released: Any,
    alpha: Real = 0.05,
    *,
    weights: Any = None,
    dtype: DTypeLike | None = None,
) -> tuple[int, int]:
    """Return an interval that contains a sum of true counts with probability at least 1 - alpha.

    Use this for totals and margins and, with `weights`, for differences and other weighted sums.
    The interval is the noisy sum plus or minus the accuracy of the total noise.

    If counts will be summed, release them without bounds, and clamp them only for display. With
    bounds the interval is wider, because a noisy count at a bound may have been clamped from beyond
    it, by up to the simultaneous accuracy of all the counts, on which one eighth of alpha is spent.
    So each count at its lower bound lowers the lower end by at most this accuracy, and each at its
    upper bound raises the upper end likewise; with `weights`, times the weight, and at the other
    end if that is negative. The interval stays within the sum of the counts' own intervals of this
    accuracy, and a count whose own interval reaches a bound may be beyond it, as for
    :meth:`geomdp.GeometricMechanism.confidence_interval`. For a mechanism without bounds, a noisy
    count at a limit of its dtype extends the interval on that side to the last sum that the dtype
    allows.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released all of the counts, with independent noise.
    released : int, numpy integer, array or sequence of ints
        The noisy counts, all of which are summed.
    alpha : int, float or Fraction
        The probability that the interval misses the sum: 0.05 for 95% confidence.
    weights : array or sequence of ints, optional
        An integer for each count, of any size and sign; by default 1 for each. If all weights other
        than 0 have the same absolute value, the accuracy is that of :func:`sum_accuracy`. Otherwise
        it is within ``2**-31`` in the level, or Chernoff's bound where the noise is wider than
        about ``2**20`` multiples of the greatest common divisor.
    dtype : integer dtype, optional
        As in :meth:`geomdp.GeometricMechanism.confidence_interval`.

    Returns
    -------
    lower, upper : int
        The interval includes both ends.

    Raises
    ------
    ValueError
        If a released count is not within the bounds, or alpha is at most the error of the sampled
        distribution.

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
    [released, weights], _ = labels.detach(released=released, weights=weights)
    array, (least, greatest) = as_released(mechanism, released, dtype)
    # Many counts have few values, so each occurs with its number.
    pairs: Counter[tuple[int, int]]
    if weights is None:
        values, numbers = np.unique(array, return_counts=True)
        ones = ((1, x) for x in values.tolist())
        pairs = Counter(dict(zip(ones, numbers.tolist(), strict=True)))
    else:
        factors = arrays.exact_items("weights", weights, parameters.integer)
        if factors.shape != array.shape:
            wanted = f"give one of shape {array.shape}"
            raise ValueError(f"weights is of shape {factors.shape}: {wanted}")
        pairs = Counter(zip(factors.reshape(-1).tolist(), array.reshape(-1).tolist(), strict=True))
    sizes: Counter[int] = Counter()
    for (w, _), n in pairs.items():
        sizes[abs(w)] += n
    sizes.pop(0, None)
    level = _ideal_level(level, [(mechanism, array.dtype, sizes.total())])
    total = sum(w * x * n for (w, x), n in pairs.items())
    if not sizes:
        return total, total
    floor, ceiling = one_count.possible((least, greatest), array.dtype)
    # No noise moved a count by more than this to a bound; without bounds, any distance is possible.
    moved = (greatest - least) * sum(size * n for size, n in sizes.items())
    if mechanism.bounds is not None:
        moved = tails.least(_rate(mechanism), level * _ONE_BY_ONE, sizes.total())
        level -= level * _ONE_BY_ONE
    reach = 0 if mechanism.rate == math.inf else sum_tails.reach(_rate(mechanism), sizes, level)

    def room(sign: int) -> int:
        """Return how far the true sum may be below the released one, or with sign -1 above."""
        to_bound = [
            (abs(w) * n, abs(x - (least if sign * w > 0 else greatest)))
            for (w, x), n in pairs.items()
        ]
        at_bound = sum(size for size, far in to_bound if not far)
        inside = min(
            reach + at_bound * moved, sum(size * min(far, moved) for size, far in to_bound)
        )
        # A true count beyond a bound has the noise of that bound.
        more = [
            (size, far, (least, floor) if sign * w > 0 else (greatest, ceiling))
            for (size, far), (w, _) in zip(to_bound, pairs, strict=True)
            if far <= moved
        ]
        beyond = sum(size * abs(last - bound) for size, _, (bound, last) in more)
        # An end that the limit of a type opens is that limit, and 0 is none.
        limit = (
            size * (far + abs(last - bound))
            for size, far, (bound, last) in more
            if bound != last != 0
        )
        return max(inside + beyond, sum(limit))

    return total - room(1), total + room(-1)


def ratio_confidence_interval(
    mechanism: Noise,
    numerator: Any,
    denominator: Any,
    alpha: Real = 0.05,
    *,
    denominator_mechanism: Noise | None = None,
    dtype: DTypeLike | None = None,
) -> tuple[Any, Any]:
    """Return an interval that contains a ratio of true counts with probability at least 1 - alpha.

    Use this for rates, and for means, which are sums divided by counts. The interval contains all
    ratios that an exact test of the two noisy counts does not reject at alpha / 2 on one of its
    sides, and is wider than that by at most one count of the numerator (``docs/proofs.md``, section
    15).

    Numerator and denominator must have independent noise. To get the proportion of a total that
    contains the numerator, take ``r / (1 + r)``, for the ratio r of the numerator to the rest.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released the numerators.
    numerator, denominator : int, numpy integer, array or sequence of ints
        Noisy counts, broadcast against each other. True denominators must be positive.
    alpha : int, float or Fraction
        The probability that the interval misses the ratio: 0.05 for 95% confidence.
    denominator_mechanism : GeometricMechanism, optional
        The mechanism that released the denominators, if it is a different one.
    dtype : integer dtype, optional
        That of both, as in :meth:`geomdp.GeometricMechanism.confidence_interval`.

    Returns
    -------
    lower, upper : floats or float64 arrays
        The ends, rounded outwards. They are minus and plus infinity if the denominator cannot be
        distinguished from 0 at level alpha / 2, or is at its lower bound. A count whose own
        interval at level alpha reaches a bound may be beyond it, so the ends allow for any such
        count: one at the upper bound makes the upper end infinite. The lower end is at least 0 if
        the numerator's lower bound is.

    Raises
    ------
    ValueError
        If a released count is not within the bounds, or alpha is at most the error of the sampled
        distributions.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accuracy
    >>> mechanism = GeometricMechanism(epsilon=0.5)
    >>> lower, upper = accuracy.ratio_confidence_interval(mechanism, 310, 1205, alpha=0.05)
    >>> round(lower, 4), round(upper, 4)
    (0.2518, 0.2627)

    """
    level = parameters.significance_or_zero("alpha", alpha)
    [numerator, denominator], labelled = labels.detach(numerator=numerator, denominator=denominator)
    above, (least, greatest) = as_released(mechanism, numerator, dtype)
    other = mechanism if denominator_mechanism is None else denominator_mechanism
    below, (floor, ceiling) = as_released(other, denominator, dtype)
    sampled = [(mechanism, above.dtype, 1), (other, below.dtype, 1)]
    half = _ideal_level(level, sampled) / 2
    rates = _rate(mechanism), _rate(other)
    least_above, most_above = _far(mechanism, above.dtype, (least, greatest), half)
    least_below, most_below = _far(other, below.dtype, (floor, ceiling), half)

    def at(a: int, b: int, lower: float, upper: float) -> tuple[float, float]:
        if ceiling - b <= most_below:
            lower, upper = min(lower, 0.0), max(upper, 0.0)
        if b - floor <= least_below:
            lower, upper = -math.inf, math.inf
        if a - least <= least_above:
            lower = -math.inf
        if greatest - a <= most_above:
            upper = math.inf
        return (max(lower, 0.0) if least >= 0 else lower), upper

    pairs = np.broadcast(above, below)
    one, two = (
        ([int(x) for x in each] for each in zip(*pairs, strict=True)) if pairs.size else ((), ())
    )
    lows = [-x for x in ratio_tails.greatest([-x for x in one], two, rates, half)]
    highs = ratio_tails.greatest(one, two, rates, half)
    found = list(map(at, one, two, lows, highs))
    if parameters.is_integer(numerator) and parameters.is_integer(denominator):
        return found[0]
    ends = np.array(found, dtype=np.float64).reshape(-1, 2)
    lower, upper = (end.reshape(pairs.shape) for end in ends.T)
    return labelled(lower), labelled(upper)


#: The part of the level of a sum under bounds that goes to its counts one by one.
_ONE_BY_ONE = Fraction(1, 8)


def _far(
    mechanism: Noise, dtype: np.dtype[Any], outputs: tuple[int, int], half: Fraction
) -> list[int]:
    """Return how near to each of its limits a noisy count says nothing on that side.

    One at a limit may have been moved there. Where true counts may be beyond a bound, one within
    the reach of its noise may be of such a count.
    """
    noisy = mechanism.rate != math.inf
    reach = tails.least(_rate(mechanism), 2 * half) if noisy else 0
    ends = zip(outputs, one_count.possible(outputs, dtype), strict=True)
    return [reach if bound != last else 0 if noisy else -1 for bound, last in ends]


def _rate(mechanism: Noise) -> Fraction:
    rate = mechanism.rate
    return rate if isinstance(rate, Fraction) else sum_tails.NO_NOISE


def _ideal_level(level: Fraction, sampled: Sequence[tuple[Noise, np.dtype[Any], int]]) -> Fraction:
    """Return a level of ideal noise that becomes at most this one for the sampled noise."""
    error = sum(n * Fraction(errors_of(m, dtype).total_variation) for m, dtype, n in sampled)
    if level <= error:
        wanted = f"more than {float(error):.3g}, the error of the sampled distribution"
        raise ValueError(parameters.refusal("alpha", float(level), wanted))
    return level - error
