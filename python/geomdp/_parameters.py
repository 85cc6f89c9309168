"""Public parameters, checked and taken exactly."""

import math
import sys
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

Integer: TypeAlias = int | np.integer[Any]
Real: TypeAlias = Integer | float | Fraction | np.floating[Any]
Bounds: TypeAlias = tuple[Integer, Integer]

# Made once: the union of two types takes longer to make than to look at.
_INTEGERS = (int, np.integer)
_NO_INTEGERS = (bool, np.timedelta64)
_FLOATS = (float, np.floating)
_PAIRS = (tuple, list)


#: Of numerators and denominators: Python does not print ints of more than 4300 digits, as errors
#: and certificates do.
_MOST_BITS = 14_000


def is_integer(value: Any) -> bool:
    """Return whether a value is a Python or numpy integer, which bools and times are not."""
    # An int itself first, which most are.
    return type(value) is int or (
        isinstance(value, _INTEGERS) and not isinstance(value, _NO_INTEGERS)
    )


def finite(name: str, value: Any) -> int | float | Fraction:
    """Return a Python or numpy number as the Python number that it is, exactly.

    Raises
    ------
    TypeError
        If it is not an integer, a float or a Fraction, or is a bool.
    ValueError
        If it is infinite or not a number.
    OverflowError
        If it is too wide to be printed.

    """
    plain = _plain(name, value)
    if not -math.inf < plain < math.inf:
        raise ValueError(f"{name} = {value!r} is not accepted: give a finite number")
    return plain


def number(
    name: str, value: Any, wanted: str = "a finite number, not negative"
) -> int | float | Fraction:
    """Return what :func:`finite` does, if it is not negative; else say what is wanted.

    Raises
    ------
    TypeError
        If it is not an integer, a float or a Fraction, or is a bool.
    ValueError
        If it is negative, infinite or not a number.
    OverflowError
        If it is too wide to be printed.

    """
    plain = _plain(name, value)
    # Every comparison with a NaN is false.
    if not 0 <= plain < math.inf:
        raise ValueError(f"{name} = {value!r} is not accepted: give {wanted}")
    return plain


def not_negative(name: str, value: Any) -> Fraction:
    """Return what :func:`number` does, as a Fraction."""
    return Fraction(number(name, value))


def positive(name: str, value: Any) -> Fraction:
    """Return what :func:`not_negative` does, if it is not 0; else a ValueError is raised too."""
    wanted = "a positive number that is finite"
    exact = Fraction(number(name, value, wanted))
    if not exact:
        raise ValueError(f"{name} = {value!r} is not accepted: give {wanted}")
    return exact


def level(name: str, value: Any) -> Fraction:
    """Return what :func:`positive` does, if it is at most 1; else a ValueError is raised too."""
    exact = Fraction(finite(name, value))
    if not 0 < exact <= 1:
        raise ValueError(f"{name} = {value!r} is not accepted: give a number above 0, at most 1")
    return exact


def narrow(name: str, value: int) -> int:
    """Return an int, or raise an OverflowError if Python might not print it."""
    if value.bit_length() > _MOST_BITS:
        raise OverflowError(
            f"{name} has {value.bit_length()} bits, which is not accepted: "
            f"give a number of at most {_MOST_BITS}"
        )
    return value


def _plain(name: str, value: Any) -> int | float | Fraction:
    plain: int | float | Fraction
    if is_integer(value):
        plain = narrow(name, int(value))
    elif isinstance(value, _FLOATS) and not isinstance(value, np.longdouble):
        # A long double, which holds more than a float does, is not taken.
        plain = float(value)
    elif isinstance(value, Fraction):
        for part in value.as_integer_ratio():
            narrow(name, part)
        plain = value
    else:
        kind = type(value).__name__
        raise TypeError(f"{name} = {value!r} is a {kind}: give an int, a float or a Fraction")
    return plain


def integer(name: str, value: Any) -> int:
    """Return a Python or numpy integer as an int.

    Raises
    ------
    TypeError
        If it is of another type; a bool or a whole float is.

    """
    if is_integer(value):
        return narrow(name, int(value))
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


def threads(value: Any) -> int:
    """Return a number of threads that the core takes: 0 for None, which leaves it to the core.

    Raises
    ------
    TypeError
        If it is not an integer.
    ValueError
        If it is below 1.

    """
    if value is None:
        return 0
    # No array takes more than the greatest one that the core knows.
    return min(at_least("threads", value, 1), sys.maxsize)


def flag(name: str, value: Any) -> None:
    """Refuse what is not a bool.

    Raises
    ------
    TypeError
        If it is of another type, or a bool of numpy's.

    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} = {value!r} is a {type(value).__name__}: give a bool")


def interval(bounds: Any) -> tuple[int, int] | None:
    """Return the bounds as a pair of ints.

    Raises
    ------
    TypeError
        If they are not None and not a pair of integers.

    """
    if bounds is None:
        return None
    if not isinstance(bounds, _PAIRS) or len(bounds) != 2:
        raise TypeError(f"bounds = {bounds!r} is not accepted: give a pair (lower, upper) or None")
    return integer("bounds[0]", bounds[0]), integer("bounds[1]", bounds[1])
