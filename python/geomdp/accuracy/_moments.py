"""Bias, variance and mean absolute error of a mechanism's releases."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from geomdp._ground import parameters
from geomdp._inputs import arrays, labels
from geomdp._noise import Noise, as_counts, limits
from geomdp._numerics import count_moments

Distribution: TypeAlias = Literal["censored", "truncated", "folded"]


def bias(mechanism: Noise, counts: Any, *, distribution: Distribution = "censored") -> Any:
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
        The mechanism samples "censored", in which noisy counts beyond a bound are moved to it. The
        others are for comparison at the same scale: "truncated" is conditional on a noisy count
        within the bounds (which costs privacy: ``docs/proofs.md``, section 12), and "folded" is
        reflected at the bounds (:class:`geomdp.compat.diffprivlib.GeometricFolded`).

    Returns
    -------
    float or float64 array
        For each count.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.accuracy import bias
    >>> bias(GeometricMechanism(epsilon=0.5, bounds=(0, 100)), [0, 50, 100]).round(2)
    array([ 0.96,  0.  , -0.96])

    """
    return _moment(mechanism, counts, distribution, "bias")


def variance(mechanism: Noise, counts: Any, *, distribution: Distribution = "censored") -> Any:
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
    mechanism: Noise, counts: Any, *, distribution: Distribution = "censored"
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


def _moment(mechanism: Noise, counts: Any, distribution: Any, name: str) -> Any:
    parameters.check_one_of("distribution", distribution, tuple(_DISTRIBUTIONS))
    [counts], labelled = labels.detach(counts=counts)
    array = as_counts(mechanism, counts)
    lower, upper = ends = limits(mechanism, array.dtype)
    rate = mechanism.rate if isinstance(mechanism.rate, Fraction) else None
    if rate and (far := lower + count_moments.reach(rate)) < (last := upper + lower - far):
        # All counts far from both bounds have the same moments, so take one of them.
        array = array.copy()
        array[(array > far) & (array <= last)] = far

    def at(count: int) -> float:
        moment: float = getattr(_DISTRIBUTIONS[distribution](rate, *ends, count), name)
        return moment

    return at(int(counts)) if parameters.is_integer(counts) else labelled(arrays.of_each(array, at))


def _of_folded(rate: Fraction | None, lower: int, upper: int, count: int) -> count_moments.Moments:
    return count_moments.of_folded(rate, (2 * lower, 2 * upper), count)


_DISTRIBUTIONS: dict[str, Callable[[Fraction | None, int, int, int], count_moments.Moments]] = {
    "censored": count_moments.of_censored,
    "truncated": count_moments.of_truncated,
    "folded": _of_folded,
}
