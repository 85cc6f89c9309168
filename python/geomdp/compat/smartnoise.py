"""SmartNoise Core's geometric mechanism, and its accuracy, by their old names.

>>> from geomdp.compat.smartnoise import simple_geometric_mechanism
>>> noisy = simple_geometric_mechanism(20, epsilon=0.5, sensitivity=1, min=0, max=30)
>>> 0 <= noisy <= 30
True
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from geomdp import GeometricMechanism, _parameters
from geomdp._parameters import Integer, Real

__all__ = [
    "accuracy_to_privacy_usage",
    "privacy_usage_to_accuracy",
    "simple_geometric_mechanism",
]


def simple_geometric_mechanism(  # noqa: PLR0917 (the order there)
    value: Any,
    epsilon: Real,
    sensitivity: Real,
    min: Integer,  # noqa: A002 (the name there)
    max: Integer,  # noqa: A002 (the name there)
    enforce_constant_time: bool = True,
) -> Any:
    """Return noisy counts from min to max (*Geometric Mechanism Notes*, algorithm 2).

    Parameters
    ----------
    value : int, numpy integer, array or sequence of ints
        The counts, clamped to the bounds first; as in :meth:`geomdp.GeometricMechanism.release`.
    epsilon : int, float or Fraction
        Positive, and taken exactly.
    sensitivity : int, float or Fraction
        Not negative, and taken exactly; 0 adds no noise.
    min, max : int
        Least and greatest output (count_min and count_max in the notes).
    enforce_constant_time : bool
        Makes no difference: the draw takes constant time in any case.

    Returns
    -------
    int, numpy integer or array
        Of the type, dtype and shape of the counts.

    Raises
    ------
    TypeError
        If a parameter is of another type, or the counts are not integers.
    ValueError
        If epsilon is not positive and finite, sensitivity is negative or not finite, or min is
        greater than max.
    OverflowError
        If min or max is beyond the dtype of the counts, or an int is beyond int64.
    OSError
        If the operating system gives no random bytes; nothing is released then.

    """
    scale = _scale(epsilon, sensitivity)
    bounds = _parameters.integer("min", min), _parameters.integer("max", max)
    if bounds[0] > bounds[1]:
        raise ValueError(f"min = {min} is greater than max = {max}: give min <= max")
    _parameters.flag("enforce_constant_time", enforce_constant_time)
    return GeometricMechanism.from_scale(scale, bounds).release(value)


def privacy_usage_to_accuracy(epsilon: Real, alpha: Real, sensitivity: Real = 1) -> int:
    """Return the accuracy a of the geometric mechanism at level alpha: ``P[|Y| > a] <= alpha``.

    ``a = ceil(sensitivity / epsilon * ln(1 / alpha))`` (*Geometric Mechanism Accuracy*, theorem 1),
    for the noise Y without bounds; bounds do not make it worse for counts within them.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Positive.
    alpha : int, float or Fraction
        The significance level, above 0 and at most 1.
    sensitivity : int, float or Fraction
        Not negative.

    Raises
    ------
    TypeError
        If a parameter is not a number.
    ValueError
        If a parameter is out of its range.

    """
    scale, level = _scale(epsilon, sensitivity), _level(alpha)
    with localcontext(_context(scale, level)):
        return math.ceil(_decimal(scale) * -_decimal(level).ln())


def accuracy_to_privacy_usage(accuracy: Real, alpha: Real, sensitivity: Real = 1) -> float:
    """Return an epsilon with which the geometric mechanism has this accuracy at level alpha.

    ``epsilon = sensitivity / accuracy * ln(1 / alpha)`` (*Geometric Mechanism Accuracy*, section
    0.1), rounded up.

    Parameters
    ----------
    accuracy : int, float or Fraction
        Positive.
    alpha : int, float or Fraction
        The significance level, above 0 and at most 1.
    sensitivity : int, float or Fraction
        Not negative.

    Raises
    ------
    TypeError
        If a parameter is not a number.
    ValueError
        If a parameter is out of its range.

    """
    ratio = Fraction(_parameters.number("sensitivity", sensitivity)) / _positive(
        "accuracy", accuracy
    )
    level = _level(alpha)
    with localcontext(_context(ratio, level)):
        epsilon = _decimal(ratio) * -_decimal(level).ln()
        nearest = float(epsilon)
        return nearest if nearest >= epsilon else math.nextafter(nearest, math.inf)


def _scale(epsilon: Any, sensitivity: Any) -> Fraction:
    exact = _positive("epsilon", epsilon)
    return Fraction(_parameters.number("sensitivity", sensitivity)) / exact


def _positive(name: str, value: Any) -> Fraction:
    exact = _parameters.number(name, value)
    if not exact:
        raise ValueError(f"{name} = {value!r} is not accepted: give a positive number")
    return Fraction(exact)


def _level(alpha: Any) -> Fraction:
    level = _positive("alpha", alpha)
    if level > 1:
        raise ValueError(f"alpha = {alpha!r} is not accepted: give a number above 0, at most 1")
    return level


def _context(ratio: Fraction, level: Fraction) -> Context:
    """Return a context with 60 digits behind the point, and of what the level lacks to 1."""
    whole = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    gap = 1 - level
    near = gap.denominator.bit_length() - gap.numerator.bit_length() if gap else 0
    digits = (max(whole, 0) + near) * math.log10(2)
    return Context(prec=60 + math.ceil(digits))


def _decimal(exact: Fraction) -> Decimal:
    return Decimal(exact.numerator) / Decimal(exact.denominator)
