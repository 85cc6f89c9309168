"""SmartNoise Core's geometric mechanism and its accuracy functions under their old names."""

from __future__ import annotations

from typing import Any

import numpy as np

import geomdp.accuracy
from geomdp._ground import parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._ground.uncopied import public
from geomdp.mechanism import GeometricMechanism

__all__ = [
    "simple_geometric_mechanism",
    "privacy_usage_to_accuracy",
    "accuracy_to_privacy_usage",
]


def simple_geometric_mechanism(  # noqa: PLR0917 (SmartNoise's order)
    value: Any,
    epsilon: Real,
    sensitivity: Real,
    min: Integer,  # noqa: A002 (SmartNoise's name)
    max: Integer,  # noqa: A002 (SmartNoise's name)
    enforce_constant_time: bool = True,
) -> Any:
    """Return noisy counts between min and max (*Geometric Mechanism Notes*, algorithm 2).

    Parameters
    ----------
    value : int, numpy integer, array or sequence of ints
        The counts (:meth:`geomdp.GeometricMechanism.release`). They are clamped to the bounds
        first.
    epsilon : number
        Positive, taken exactly.
    sensitivity : number
        At least 0, taken exactly; 0 adds no noise.
    min, max : int
        Least and greatest output (count_min and count_max in the notes).
    enforce_constant_time : bool, 0 or 1
        Has no effect: the draw always takes constant time.

    Returns
    -------
    int, numpy integer or array
        The type, dtype and shape are those of the counts.

    Examples
    --------
    >>> from geomdp.compat.smartnoise import simple_geometric_mechanism
    >>> 0 <= simple_geometric_mechanism(20, epsilon=0.5, sensitivity=1, min=0, max=30) <= 30
    True

    """
    exact = parameters.drawn("epsilon", epsilon)
    scale = parameters.greater("sensitivity", sensitivity) / exact
    bounds = parameters.integer("min", min), parameters.integer("max", max)
    if bounds[0] > bounds[1]:
        raise ValueError(f"min = {min} is greater than max = {max}: give min <= max")
    flag = enforce_constant_time
    if not isinstance(flag, int | np.integer | np.bool_) or flag not in {0, 1}:
        raise TypeError(parameters.refusal("enforce_constant_time", flag, "a bool, 0 or 1"))
    return GeometricMechanism.from_scale(scale, bounds).release(value)


def privacy_usage_to_accuracy(epsilon: Any, alpha: Any, sensitivity: Any = 1) -> Any:
    """Return the accuracy a of the geometric mechanism at level alpha: ``P[|Y| > a] <= alpha``.

    ``a = ceil(sensitivity / epsilon * ln(1 / alpha))`` (*Geometric Mechanism Accuracy*, theorem 1),
    for the noise Y without bounds; bounds make no count within them less accurate. This is
    :func:`geomdp.accuracy.epsilon_to_accuracy` with ``method="ceiling"``.

    Parameters
    ----------
    epsilon : int, float, Fraction or array of them
        Positive.
    alpha : int, float, Fraction or array of them
        The significance level, above 0 and at most 1.
    sensitivity : int, float, Fraction or array of them
        At least 0.

    Returns
    -------
    int or array of ints
        An array if a parameter is one; arrays are broadcast against each other.

    Examples
    --------
    >>> from geomdp.compat.smartnoise import privacy_usage_to_accuracy
    >>> privacy_usage_to_accuracy(0.5, alpha=0.05)
    6

    """
    return geomdp.accuracy.epsilon_to_accuracy(
        epsilon, alpha, sensitivity=sensitivity, method="ceiling"
    )


def accuracy_to_privacy_usage(accuracy: Any, alpha: Any, sensitivity: Any = 1) -> Any:
    """Return an epsilon that gives the geometric mechanism this accuracy at level alpha.

    ``epsilon = sensitivity / accuracy * ln(1 / alpha)`` (*Geometric Mechanism Accuracy*, section
    0.1), rounded up. This is :func:`geomdp.accuracy.accuracy_to_epsilon` with
    ``method="ceiling"``.

    Parameters
    ----------
    accuracy : int, float, Fraction or array of them
        Positive.
    alpha : int, float, Fraction or array of them
        The significance level, above 0 and at most 1.
    sensitivity : int, float, Fraction or array of them
        At least 0.

    Returns
    -------
    float or float64 array
        An array if a parameter is one; arrays are broadcast against each other.

    Examples
    --------
    >>> from geomdp.compat.smartnoise import accuracy_to_privacy_usage
    >>> round(accuracy_to_privacy_usage(6, alpha=0.05), 4)
    0.4993

    """
    return geomdp.accuracy.accuracy_to_epsilon(
        accuracy, alpha, sensitivity=sensitivity, method="ceiling"
    )


public(__name__)
