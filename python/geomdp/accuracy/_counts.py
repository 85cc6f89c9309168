"""The accuracy of one count and of several at once, and intervals for each."""

from __future__ import annotations

import math
from typing import Any

from geomdp._ground import parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._inputs import labels
from geomdp._noise import Noise, as_counts, as_noise, errors_of, limits
from geomdp._numerics import one_count, tails


def simultaneous_accuracy(
    mechanism: Noise,
    alpha: Real = 0.05,
    *,
    n: Integer | None = None,
    counts: Any = None,
) -> int:
    """Return the least a such that all of several errors are at most a, at level alpha.

    As the noise of the counts is independent, the condition is
    ``prod(1 - P[error_i > a]) >= 1 - alpha``, which allows a smaller a than the union bound.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that releases all of the counts.
    alpha
        As in :meth:`geomdp.GeometricMechanism.accuracy`.
    n : int, optional
        The number of counts, whose accuracy is then that of the worst case.
    counts : array or sequence of ints, optional
        True counts, instead of their number.

    Raises
    ------
    TypeError
        Unless exactly one of `n` and `counts` is given.

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
    found = as_noise(mechanism)
    if counts is None:
        n = parameters.at_least("n", n, 0)
        return one_count.worst_accuracy(errors_of(found), tails.share(level, n)) if n else 0
    [counts], _ = labels.detach(counts=counts)
    array = as_counts(found, counts)
    ends = limits(found, array.dtype)
    if not array.size:
        return 0
    return one_count.simultaneous_accuracy(errors_of(found, array.dtype), ends, array, level)


def relative_accuracy(mechanism: Noise | Real, alpha: Real = 0.05, *, ratio: Real) -> int:
    """Return the least count from which errors stay within a ratio of the count, at level alpha.

    With ratio 0.1 and alpha 0.05, for example, "the private count is within a 10% error margin of
    the true count, 95% of the time" (*Releasing Counts with Differential Privacy*) for true counts
    of at least this.

    Parameters
    ----------
    mechanism : GeometricMechanism or number
        The mechanism, or the epsilon of one with sensitivity 1 and no bounds. With bounds, the
        result is for the worst case over the counts within them.
    alpha : number
        The significance level, above 0 and at most 1.
    ratio : number
        Above 0, and taken exactly: 0.3 is ``Fraction(3, 10)``.

    Examples
    --------
    >>> from geomdp.accuracy import relative_accuracy
    >>> relative_accuracy(0.5, alpha=0.05, ratio=0.1)
    60

    """
    level, share = (
        parameters.significance("alpha", alpha),
        parameters.positive_fraction("ratio", ratio),
    )
    if isinstance(mechanism, Noise):
        reach = one_count.worst_accuracy(errors_of(mechanism), level)
    else:
        reach = tails.least(parameters.positive_fraction("epsilon", mechanism), level)
    return math.ceil(reach / share)
