"""Public parameters, checked and taken exactly."""

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np


def exact(name: str, value: Any) -> Fraction:
    """Return the rational number that an int, a float or a Fraction is.

    Raises
    ------
    TypeError
        If it is of another type (a bool too).
    ValueError
        If it is negative, infinite or not a number.

    """
    accepted = isinstance(value, int | float | Fraction | np.integer | np.floating)
    # A long double holds more than a float does.
    if not accepted or isinstance(value, bool | np.longdouble):
        kind = type(value).__name__
        raise TypeError(f"{name} = {value!r} is a {kind}: give an int, a float or a Fraction")
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} = {value!r} is not accepted: give a finite number, not negative")
    return Fraction(value)


def integer(name: str, value: Any) -> int:
    """Return a Python or numpy integer as an int.

    Raises
    ------
    TypeError
        If it is of another type; a bool or a whole float is.

    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return operator.index(value)
    raise TypeError(f"{name} = {value!r} is a {type(value).__name__}: give an int")


def at_least(name: str, value: Any, least: int) -> int:
    """Return an integer that is not below `least`.

    Raises
    ------
    TypeError
        If it is not an integer.
    ValueError
        If it is below `least`.

    """
    number = integer(name, value)
    if number < least:
        raise ValueError(f"{name} = {number} is not accepted: give an int of at least {least}")
    return number


def interval(bounds: Any) -> tuple[int, int] | None:
    """Return the bounds as a pair of ints.

    Raises
    ------
    TypeError
        If they are not None and not a pair of integers.

    """
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise TypeError(f"bounds = {bounds!r} is not accepted: give a pair (lower, upper) or None")
    return integer("bounds[0]", bounds[0]), integer("bounds[1]", bounds[1])
