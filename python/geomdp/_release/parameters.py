"""Public parameters, checked and taken exactly."""

import math
import reprlib
import sys
from collections.abc import Callable
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


def refusal(name: str, value: Any, wanted: str) -> str:
    """Return the message of an error: the parameter, its value, and everything that is accepted."""
    return f"{name} = {shown(value)} is not accepted: give {wanted}"


def foreign(name: str, value: Any, wanted: str) -> str:
    """Return :func:`refusal` for a value of another type, which it names."""
    return f"{name} = {shown(value)} is a {type(value).__name__}: give {wanted}"


def shown(value: Any) -> str:
    """Return the repr of a public value, shortened: messages are for people to read."""
    return _SHORT.repr(value)


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxlist = self.maxtuple = 10
        self.maxstring = self.maxother = 100

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002 (of the base)
        wide = x.bit_length() > _MOST_BITS
        return f"<int of {x.bit_length()} bits>" if wide else repr(x)


_SHORT = _Short()


def in_range(
    name: str, value: Any, wanted: str, accepts: Callable[[Any], bool]
) -> int | float | Fraction:
    """Return a Python or numpy number as the Python number that it is, exactly.

    Raises
    ------
    TypeError
        If it is not an integer, a float or a Fraction, or is a bool.
    ValueError
        If it is not accepted.
    OverflowError
        If it is too wide to be printed.

    """
    plain = _plain(name, value)
    # Every comparison with a NaN is false.
    if not accepts(plain):
        raise ValueError(refusal(name, value, wanted))
    return plain


def finite(name: str, value: Any) -> int | float | Fraction:
    """Return what :func:`in_range` does, for a finite number."""
    return in_range(name, value, "a finite number", lambda x: -math.inf < x < math.inf)


def number(name: str, value: Any) -> int | float | Fraction:
    """Return what :func:`in_range` does, for a finite number that is not negative."""
    return in_range(name, value, "a finite number, not negative", lambda x: 0 <= x < math.inf)


def not_negative(name: str, value: Any) -> Fraction:
    """Return what :func:`number` does, as a Fraction."""
    return Fraction(number(name, value))


def positive_number(name: str, value: Any) -> int | float | Fraction:
    """Return what :func:`in_range` does, for a finite number above 0."""
    return in_range(name, value, "a positive number that is finite", lambda x: 0 < x < math.inf)


def positive(name: str, value: Any) -> Fraction:
    """Return what :func:`positive_number` does, as a Fraction."""
    return Fraction(positive_number(name, value))


def level(name: str, value: Any) -> Fraction:
    """Return a number above 0 and at most 1, as a Fraction.

    Raises
    ------
    TypeError, ValueError
        As in :func:`in_range`.

    """
    plain = _plain(name, value)
    if not 0 < plain <= 1:
        raise ValueError(refusal(name, value, "a number above 0, at most 1"))
    return Fraction(plain)


def _plain(name: str, value: Any) -> int | float | Fraction:
    plain: int | float | Fraction
    if is_integer(value):
        plain = int(value)
    elif isinstance(value, Fraction):
        plain = value
    elif isinstance(value, _FLOATS) and not isinstance(value, np.longdouble):
        # A long double, which holds more than a float does, is not taken.
        return float(value)
    else:
        raise TypeError(foreign(name, value, "an int, a float or a Fraction"))
    for part in plain.as_integer_ratio():
        narrow(name, part)
    return plain


def narrow(name: str, value: int) -> int:
    """Return an int, or raise an OverflowError if Python might not print it."""
    if value.bit_length() > _MOST_BITS:
        raise OverflowError(
            f"{name} has {value.bit_length()} bits, which is not accepted: "
            f"give a number of at most {_MOST_BITS} bits"
        )
    return value


def integer(name: str, value: Any, wanted: str = "an int") -> int:
    """Return a Python or numpy integer as an int; else say that this is wanted.

    Raises
    ------
    TypeError
        If it is of another type; a bool or a whole float is.

    """
    if is_integer(value):
        return narrow(name, int(value))
    raise TypeError(foreign(name, value, wanted))


def at_least(name: str, value: Any, least: int) -> int:
    """Return an integer that is not below `least`.

    Raises
    ------
    TypeError
        If it is not an integer.
    ValueError
        If it is below `least`.

    """
    wanted = f"an int of at least {least}"
    number = integer(name, value, wanted)
    if number < least:
        raise ValueError(refusal(name, number, wanted))
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
        raise TypeError(foreign(name, value, "a bool"))


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
        raise TypeError(refusal("bounds", bounds, "a pair of ints (lower, upper) or None"))
    return integer("bounds[0]", bounds[0]), integer("bounds[1]", bounds[1])
