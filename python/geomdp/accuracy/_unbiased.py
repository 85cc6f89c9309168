"""Estimates of functions of true counts that are right on average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from geomdp._ground import parameters
from geomdp._inputs import labels
from geomdp._noise import as_released
from geomdp._numerics import inverse
from geomdp.mechanism import GeometricMechanism, as_mechanism

#: Half the loss of this many units, at which a function is last checked, is in float64.
_FAR = 1200
#: The pieces of that way, and the points that are checked in each.
_PIECES, _POINTS = 8, 64
_ONE = "a GeometricMechanism: estimates from several noisy columns vary too much"


def unbiased(
    function: Callable[[NDArray[np.float64]], Any], mechanism: GeometricMechanism
) -> Callable[..., tuple[Any, Any]]:
    """Return a call that estimates a function of true counts from noisy ones, without bias.

    The function of noisy counts itself is not right on average: noise leaves few of many empty
    cells at 0. With ``a = exp(-rate)`` and ``c = a / (1 - a)**2``, the estimate
    ``f(y) - c (f(y + 1) - 2 f(y) + f(y - 1))`` has the mean f(x) at every true count x; at a bound
    it is ``f(y) + a / (1 - a) (f(y) - f(y'))``, with the neighbour y' (``docs/proofs.md``, section
    21; arXiv 2605.06502 has it without bounds, and arXiv 2502.13314 for Laplace noise). A true
    count beyond a bound is taken as that bound.

    This is exact for the ideal distribution, up to rounding: about ``2**-52 * (1 + 4 c)`` of the
    greatest value of the function. The sampled distribution is within the `total_variation` of the
    certificate, at most ``2**-50``, so it moves the mean of an estimate by at most that times the
    difference of the greatest and the least estimate. For a function without limits, such as
    squares, that says little; but noise is ideal noise with probability at least ``1 - 2**-50``.

    Parameters
    ----------
    function : callable
        Takes a float64 array of whole numbers, and returns an array of its shape, of finite numbers
        or bools. It is also called with numbers that noise reaches and no true count has, such as
        -1; any value will do there, and smooth ones have the least variance.
    mechanism : GeometricMechanism
        The mechanism that released the counts. Functions of several noisy columns are not
        estimated: where such a function has a kink, as a ratio or an absolute difference has, the
        variance of its estimate is far above the bias that is removed.

    Returns
    -------
    callable
        Takes `released`, noisy counts as for
        :meth:`geomdp.GeometricMechanism.confidence_interval`, and `dtype` as there, and returns two
        floats, float64 arrays or columns: the estimates, and unbiased estimates of their variances,
        which are never negative. Both add up over counts with independent noise. Counts that were
        chosen by their noise, such as those that reached a threshold, have no such estimates.

    Raises
    ------
    ValueError
        If the function grows as fast as ``exp(rate * abs(y) / 2)``, so that its estimate has no
        variance, or has no finite value at some outputs. Of those within 1,200 scales of 0, or
        between the bounds, up to 1,025 are tried, and each that is estimated.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp import GeometricMechanism, accuracy
    >>> true = np.repeat([0, 1, 7], [6000, 3000, 1000])
    >>> mechanism = GeometricMechanism(epsilon=1)
    >>> empty = accuracy.unbiased(lambda y: y <= 0, mechanism)
    >>> estimates, variances = empty(mechanism.release(true))
    >>> bool(abs(estimates.sum() - 6000) < 6 * variances.sum() ** 0.5 < 1000)
    True

    """
    if not callable(function):
        raise TypeError(parameters.foreign("function", function, "a function of an array"))
    used = as_mechanism(mechanism, _ONE)
    rate = float(used.rate)

    def values(points: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            found = np.asarray(function(points))
        if found.dtype.kind not in "biuf" or found.shape != points.shape:
            raise TypeError(
                f"function returned {found.dtype} of shape {found.shape}: give one that returns a "
                f"number for each of an array, here {points.shape}"
            )
        if not np.isfinite(found).all():
            raise ValueError(
                "function has no finite value at some outputs: give one that is finite at all that "
                "noise can reach, such as -1 without bounds"
            )
        return found.astype(np.float64)

    if used.bounds is None:
        _check_growth(values, rate)
    else:
        values(np.rint(np.linspace(*used.bounds, 2 * _PIECES * _POINTS + 1)))

    def estimate(released: Any, *, dtype: DTypeLike | None = None) -> tuple[Any, Any]:
        [bare], labelled = labels.detach(released=released)
        array, ends = as_released(used, bare, dtype)
        found = inverse.steps(values, array, ends, inverse.weight(rate))
        results = found.estimates, found.covariances(found)
        if parameters.is_integer(bare):
            return float(results[0]), float(results[1])
        return labelled(results[0]), labelled(results[1])

    return estimate


def _check_growth(
    values: Callable[[NDArray[np.float64]], NDArray[np.float64]], rate: float
) -> None:
    """Refuse a function that grows, on one side, in each of the last pieces by half the rate."""
    far = min(max(_FAR / rate, _PIECES * _POINTS), 2.0**53 - 2)
    points = np.rint(np.linspace(0, far, _PIECES * _POINTS + 1))
    for side in (1, -1):
        sizes = np.abs(values(side * points))[1:].reshape(_PIECES, _POINTS).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.diff(np.log(sizes[_PIECES // 2 :]))
        if (grown >= rate * far / _PIECES / 2).all():
            raise ValueError(
                "function grows as fast as the noise falls, so that its estimate has no variance: "
                f"give one that grows more slowly than exp({rate / 2:.3g} * abs(y))"
            )
