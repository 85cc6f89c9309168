"""OpenDP's accuracy of the discrete Laplace distribution, rounded to the safe side.

The functions have OpenDP's names and definition, ``P[|Z| >= a]``; :mod:`geomdp.accuracy` has those
of this package. This module does not need OpenDP.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from geomdp._ground import decimals, parameters
from geomdp._ground.parameters import Numbers
from geomdp._ground.uncopied import public
from geomdp._numerics import broadcast, tails

__all__ = ["discrete_laplacian_scale_to_accuracy", "accuracy_to_discrete_laplacian_scale"]


def discrete_laplacian_scale_to_accuracy(scale: Numbers, alpha: Numbers) -> Any:
    """Return the real-valued accuracy of OpenDP's function of this name.

    That is ``scale * ln(2 / (alpha (1 + q)))``, where ``2 q**a / (1 + q) = alpha``. An error of a
    or more has probability at most alpha, and so has an error above ``floor(a)``.

    The result is a float or a float64 array, rounded up; 0 for scale 0. Parameters and errors are
    those of :func:`geomdp.accuracy.scale_to_accuracy`.

    >>> from geomdp.compat.opendp_accuracy import discrete_laplacian_scale_to_accuracy
    >>> round(discrete_laplacian_scale_to_accuracy(2, alpha=0.05), 4)
    6.4296
    """

    def accuracy(scale: Fraction, alpha: Fraction) -> float:
        return decimals.up(tails.reach(1 / scale, alpha / 2)) if scale else 0.0

    return broadcast.each(
        accuracy,
        ("scale", scale, parameters.nonnegative_fraction),
        ("alpha", alpha, parameters.significance),
        floats=True,
    )


def accuracy_to_discrete_laplacian_scale(accuracy: Numbers, alpha: Numbers) -> Any:
    """Return the greatest scale with ``P[|Z| >= accuracy] <= alpha``, by OpenDP's name.

    It is the inverse of :func:`discrete_laplacian_scale_to_accuracy`. The result is a float or a
    float64 array, rounded down: 0 for accuracy 0, and infinity for other accuracies with alpha 1.
    Errors and alpha are those of :func:`geomdp.accuracy.scale_to_accuracy`.

    Parameters
    ----------
    accuracy : int, float, Fraction or array of them
        Not negative. Between integers the probability is taken as ``2 q**accuracy / (1 + q)``.
    alpha : int, float, Fraction or array of them
        The significance level.

    Examples
    --------
    >>> from geomdp.compat.opendp_accuracy import accuracy_to_discrete_laplacian_scale
    >>> round(accuracy_to_discrete_laplacian_scale(6, alpha=0.05), 4)
    1.8581

    """

    def scale(accuracy: Fraction, alpha: Fraction) -> float:
        return tails.scale(tails.rate(accuracy, alpha / 2)) if accuracy else 0.0

    return broadcast.each(
        scale,
        ("accuracy", accuracy, parameters.nonnegative_fraction),
        ("alpha", alpha, parameters.significance),
        floats=True,
    )


public(__name__)
