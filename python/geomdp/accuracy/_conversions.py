"""From the scale or epsilon of noise without bounds to its accuracy, and back."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from geomdp._ground import decimals, parameters
from geomdp._ground.parameters import Check, Numbers
from geomdp._numerics import broadcast, tails

Method: TypeAlias = Literal["exact", "ceiling", "continuous"]
Tail: TypeAlias = Literal[">", ">="]


def scale_to_accuracy(
    scale: Numbers,
    alpha: Numbers = 0.05,
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
        How many independent counts must be this accurate at once; at least 1. Each then has the
        level ``1 - (1 - alpha)**(1 / n)``.
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
        An int for numbers. For arrays an int64 array, or one of Python ints (dtype object) if any
        is beyond int64. The continuous method returns a float or a float64 array.

    Examples
    --------
    >>> from geomdp.accuracy import scale_to_accuracy
    >>> scale_to_accuracy(2, alpha=0.05)
    6
    >>> scale_to_accuracy([2, 20], alpha=0.05, n=200)
    array([ 16, 165])

    """
    find = _to_accuracy(method, tail)
    return broadcast.each(
        find,
        ("scale", scale, parameters.greater),
        ("alpha", alpha, parameters.significance),
        ("n", n, parameters.at_least_one),
        floats=method == "continuous",
    )


def accuracy_to_scale(
    accuracy: Numbers,
    alpha: Numbers = 0.05,
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

    Examples
    --------
    >>> from geomdp.accuracy import accuracy_to_scale
    >>> round(accuracy_to_scale(6, alpha=0.05), 4)
    2.1887

    """
    find = _to_rate(method, tail)
    accurate = _accuracy_check(method, tail)

    def scale(accuracy: Fraction, alpha: Fraction, n: int) -> float:
        return tails.scale(find(accuracy, alpha, n))

    return broadcast.each(
        scale,
        ("accuracy", accuracy, accurate),
        ("alpha", alpha, parameters.significance),
        ("n", n, parameters.at_least_one),
        floats=True,
    )


def epsilon_to_accuracy(
    epsilon: Numbers,
    alpha: Numbers = 0.05,
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

    Examples
    --------
    >>> from geomdp.accuracy import epsilon_to_accuracy
    >>> epsilon_to_accuracy([0.5, 1, 2], alpha=0.05)
    array([6, 3, 1])

    """
    find = _to_accuracy(method, tail)

    def accuracy(epsilon: Fraction, alpha: Fraction, n: int, sensitivity: Fraction) -> int | float:
        return find(sensitivity / epsilon, alpha, n)

    return broadcast.each(
        accuracy,
        ("epsilon", epsilon, parameters.drawn),
        ("alpha", alpha, parameters.significance),
        ("n", n, parameters.at_least_one),
        ("sensitivity", sensitivity, parameters.nonnegative_fraction),
        floats=method == "continuous",
    )


def accuracy_to_epsilon(
    accuracy: Numbers,
    alpha: Numbers = 0.05,
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

    Examples
    --------
    >>> from geomdp.accuracy import accuracy_to_epsilon
    >>> round(accuracy_to_epsilon(10, alpha=0.05), 4)
    0.2843

    """
    find = _to_rate(method, tail)

    def epsilon(accuracy: Fraction, alpha: Fraction, n: int, sensitivity: Fraction) -> float:
        with localcontext(decimals.context(50)):
            least = find(accuracy, alpha, n) * decimals.of(sensitivity)
        # Noise is made for the lesser reading of a float (docs/proofs.md, lemma 2a).
        return max(decimals.up(least), decimals.least(least))

    return broadcast.each(
        epsilon,
        ("accuracy", accuracy, _accuracy_check(method, tail)),
        ("alpha", alpha, parameters.significance),
        ("n", n, parameters.at_least_one),
        ("sensitivity", sensitivity, parameters.nonnegative_fraction),
        floats=True,
    )


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


def _accuracy_check(method: Any, tail: Any) -> Check:
    """Return the check of an accuracy; by some definitions, only no noise has accuracy 0."""
    return (
        parameters.nonnegative_fraction
        if (method, tail) == ("exact", ">")
        else parameters.positive_fraction
    )


def _check_method(method: Any, tail: Any) -> None:
    parameters.check_one_of("method", method, ("exact", "ceiling", "continuous"))
    parameters.check_one_of("tail", tail, (">", ">="))
    if tail == ">=" and method != "exact":
        raise ValueError(f"tail = {tail!r} is not accepted with method = {method!r}: give '>'")
