"""The accuracy of one count and of several at once, and intervals for each."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from numpy.typing import DTypeLike

from geomdp._analysis import releases, tails
from geomdp._inputs import labels, parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp._uncopied import unseen
from geomdp.mechanism import GeometricMechanism, as_counts, as_mechanism, limits


@overload
def release_accuracy(
    mechanism: GeometricMechanism, alpha: Real, *, counts: int | None = None
) -> int: ...
@overload
def release_accuracy(mechanism: GeometricMechanism, alpha: Real, *, counts: Any) -> Any: ...
@unseen
def release_accuracy(mechanism: GeometricMechanism, alpha: Real, *, counts: Any = None) -> Any:
    """Return the accuracy at level alpha of a mechanism's releases, within its bounds.

    This is ``mechanism.accuracy(alpha, counts=counts)``.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism.
    alpha, counts
        As in :meth:`geomdp.GeometricMechanism.accuracy`.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accuracy
    >>> accuracy.release_accuracy(GeometricMechanism(epsilon=0.5, bounds=(0, 4526)), alpha=0.05)
    6

    """
    return as_mechanism(mechanism).accuracy(alpha, counts=counts)


@unseen
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
    mechanism : GeometricMechanism
        The mechanism that releases all of the counts.
    alpha
        As in :meth:`geomdp.GeometricMechanism.accuracy`.
    n : int, optional
        The number of counts; the accuracy is that of the worst case.
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
    found = as_mechanism(mechanism)
    if counts is None:
        n = parameters.at_least("n", n, 0)
        return releases.worst_accuracy(found.certificate(), tails.share(level, n)) if n else 0
    [counts], _ = labels.detach(counts=counts)
    array = as_counts(found, counts)
    ends = limits(found, array.dtype)
    if not array.size:
        return 0
    return releases.simultaneous_accuracy(found.certificate(array.dtype), ends, array, level)


def confidence_interval(
    mechanism: GeometricMechanism,
    released: Any,
    alpha: Real,
    *,
    side: Literal["both", "lower", "upper"] = "both",
    dtype: DTypeLike | None = None,
) -> tuple[Any, Any]:
    """Return an interval that contains the true count with probability at least 1 - alpha.

    This is ``mechanism.confidence_interval(released, alpha, side=side, dtype=dtype)``.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released the counts.
    released, alpha, side, dtype
        As in :meth:`geomdp.GeometricMechanism.confidence_interval`.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import confidence_interval
    >>> confidence_interval(GeometricMechanism(0.5, bounds=(0, 100)), 40, alpha=0.05)
    (34, 46)

    """
    return as_mechanism(mechanism).confidence_interval(released, alpha, side=side, dtype=dtype)


def relative_accuracy(mechanism: GeometricMechanism | Real, alpha: Real, *, ratio: Real) -> int:
    """Return the least count from which errors stay within a ratio of the count, at level alpha.

    "The private count is within a 10% error margin of the true count, 95% of the time" (*Releasing
    Counts with Differential Privacy*): with ratio 0.1 and alpha 0.05, for true counts of at least
    this.

    Parameters
    ----------
    mechanism : GeometricMechanism or number
        The mechanism, or the epsilon of one of sensitivity 1 and without bounds. With bounds this
        takes the worst case over the counts within them.
    alpha : number
        The significance level, above 0 and at most 1.
    ratio : number
        Above 0, and taken exactly: the float 0.3 is less than ``Fraction(3, 10)``.

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
    if isinstance(mechanism, GeometricMechanism):
        reach = releases.worst_accuracy(mechanism.certificate(), level)
    else:
        reach = tails.least(parameters.positive_fraction("epsilon", mechanism), level)
    return math.ceil(reach / share)
