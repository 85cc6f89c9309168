"""Checks of public parameters and their exact conversion to Python numbers."""

from __future__ import annotations

import math
import re
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from geomdp._ground.notebook import many, short, showable

Integer: TypeAlias = int | np.integer[Any]
#: A float means the decimal that its shortest text states, as strings such as "0.1" or "1/10" do.
Real: TypeAlias = Integer | float | Fraction | np.floating[Any] | Decimal | str
#: One number, or an array of numbers, which are broadcast.
Numbers: TypeAlias = Real | ArrayLike | Sequence[Real]
Bounds: TypeAlias = tuple[Integer, Integer]
#: Returns the exact value of a parameter with this name, or raises.
Check: TypeAlias = Callable[[str, Any], Fraction | int]

# Made once, since making a union of types takes longer than isinstance itself.
_INTEGERS = (int, np.integer)
_NO_INTEGERS = (bool, np.timedelta64)
_FLOATS = (float, np.floating)
_PAIRS = (tuple, list)
#: The types of the values that messages show. Others, such as arrays, may be counts in the wrong
#: place.
_SHOWN = (
    *_INTEGERS,
    *_FLOATS,
    complex,
    Fraction,
    Decimal,
    str,
    type,
    np.dtype,
    np.bool_,
    type(None),
)
#: The most bits of a numerator or denominator. Errors and certificates print numbers, and Python
#: refuses to print ints of more than 4300 digits.
_MOST_BITS = 14_000
#: Characters that a terminal may run, and no page shows; a tab and the ends of lines are text.
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: What :func:`is_text` takes.
TEXT = "text in UTF-8 without control characters other than tabs and line ends"
#: The most bits of a numerator or denominator that texts show.
_SHORT_BITS = 40
_RATIO = r"\d{1,4300}(/[1-9]\d{0,4299})?"
_STATED = r"[+-]?(\d+/0*[1-9]\d*|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?)"


def is_integer(value: Any) -> bool:
    """Return whether a value is a Python or numpy integer; bools and times are not."""
    # Fast path: most values are ints.
    return type(value) is int or (
        isinstance(value, _INTEGERS) and not isinstance(value, _NO_INTEGERS)
    )


def has_items(value: Any) -> bool:
    """Return whether a value is a collection: no text, and no array without dimensions."""
    if isinstance(value, str | bytes) or getattr(value, "ndim", 1) == 0:
        return False
    return isinstance(value, Iterable)


def refusal(name: str, value: Any, wanted: str) -> str:
    """Return an error message with the parameter, its value and the accepted values."""
    return f"{name} {given(value)} is not accepted: give {wanted}"


def foreign(name: str, value: Any, wanted: str) -> str:
    """Return an error message with the parameter, its value, its type and the accepted values."""
    value_too = f" {given(value)}" if isinstance(value, _SHOWN) else ""
    return f"{name}{value_too} has type {type(value).__name__}: give {wanted}"


def given(value: Any) -> str:
    """Return "= value" for a message, or the type alone if the value may be counts."""
    shows = isinstance(value, _SHOWN)
    return f"= {shown(value)}" if shows else f"of type {type(value).__name__}"


def conversion(name: str, value: Any) -> str:
    """Return the line of code that makes a numpy array of another library's array, or "".

    There is none for a frame, whose columns may have other types.
    """
    if hasattr(type(value), "toarray"):  # A sparse one of scipy.
        return f"{name}.toarray()"
    is_frame = hasattr(type(value), "columns")
    return f"numpy.asarray({name})" if hasattr(type(value), "__array__") and not is_frame else ""


def shown(value: Any) -> str:
    """Return the repr of a public value, shortened for messages.

    Of any object other than numbers, text, dates, what this package makes, and lists of these, it
    is the type alone, since frames and arrays in the wrong place may be data.
    """
    return _SHORT.repr(value)


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxlist = self.maxtuple = 10
        self.maxstring = self.maxother = 100

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002 (the base's signature)
        wide = x.bit_length() > _MOST_BITS
        return f"<int of {x.bit_length()} bits>" if wide else repr(x)

    def repr_instance(self, x: Any, level: int) -> str:
        own = type(x).__module__.partition(".")[0] == __name__.partition(".")[0]
        if own or isinstance(x, (*_SHOWN, date, np.datetime64, range)):
            return super().repr_instance(x, level)
        return f"<{type(x).__name__}>"

    repr_array = repr_deque = repr_instance


_SHORT = _Short()


class Typed(NamedTuple):
    """A loss as it was typed, and the loss that noise is made for (``docs/proofs.md``, lemma 2a).

    A float can be read as the decimal of its text and as the number that it stores. The decimal is
    what is stated, and noise for the lesser of both makes either statement true.
    """

    stated: Fraction
    drawn: Fraction

    def part(self, share: Fraction) -> Typed:
        """Return a share of it."""
        return Typed(self.stated * share, self.drawn * share)


@lru_cache(64, typed=True)
def decimal(number: float | np.floating[Any]) -> Fraction:
    """Return the number that the shortest text of a finite float states."""
    # numpy's own repr names the type. A mechanism asks four times for that of one number, and
    # equal numbers of two types have other texts.
    return Fraction(str(number))


#: A loss that was checked: as given, except that text has become a number.
Loss: TypeAlias = int | float | Fraction | Typed


def loss(name: str, value: Any) -> Loss:
    """Return a loss above 0. A Fraction, and text that no float has, are exact."""
    return value if isinstance(value, Typed) else as_typed(value, positive_number(name, value))


def as_typed(value: Any, stated: int | float | Fraction) -> int | float | Fraction:
    """Return the float that states a value, if a float or a decimal was given, or the value."""
    if not isinstance(stated, Fraction) or isinstance(value, Fraction):
        return stated
    if isinstance(value, str) and "/" in value:
        return stated
    return _float_of(stated)


def read(number: Loss) -> Typed:
    """Return the stated and the lesser reading of a loss; only a float has two."""
    if isinstance(number, Typed):
        return number
    if not isinstance(number, float):
        return Typed(Fraction(number), Fraction(number))
    stated = decimal(number)
    return Typed(stated, min(stated, Fraction(number)))


def drawn(name: str, value: Any) -> Fraction:
    """Return the loss above 0 that noise is made for."""
    return read(loss(name, value)).drawn


def greater(name: str, value: Any) -> Fraction:
    """Return the greater reading of a number of at least 0 that makes noise greater."""
    stated = nonnegative_fraction(name, value)
    return max(stated, Fraction(as_typed(value, stated)))


def plain(number: Loss) -> int | float | Fraction:
    """Return the number that users see: that a share of a loss states, or the number."""
    return number.stated if isinstance(number, Typed) else number


def by_value(stated: Fraction) -> Typed:
    """Return a loss of which only the stated value is known: that of a float if one states it."""
    return read(_float_of(stated))


def _float_of(stated: Fraction) -> float | Fraction:
    """Return the float whose text states this number, or the number."""
    try:
        nearest = float(stated)
    except OverflowError:
        return stated
    return nearest if decimal(nearest) == stated else stated


def is_typed(number: Fraction) -> bool:
    """Return whether a float states a number: decimals of up to 15 digits, and some longer ones."""
    return isinstance(_float_of(number), float)


def text(number: float | Fraction) -> str:
    """Return a number as a decimal that equals it, if there is a short one, or as a fraction.

    Any other is shortened to six digits.
    """
    if isinstance(number, float) and not math.isfinite(number):
        return str(number)
    exact = decimal(number) if isinstance(number, float) else Fraction(number)
    if max(map(int.bit_length, exact.as_integer_ratio())) <= _SHORT_BITS and (
        exact.denominator == 1 or not is_typed(exact)
    ):
        return str(exact)
    nearest = _float_of(exact)
    if isinstance(nearest, float):
        return str(nearest)
    return short(exact)


def in_range(
    name: str, value: Any, wanted: str, accepts: Callable[[Any], bool]
) -> int | float | Fraction:
    """Return the number that a value states, if it is accepted; only infinity is a float."""
    plain = _number(name, value)
    # Every comparison with a NaN is false.
    if not accepts(plain):
        raise ValueError(refusal(name, value, wanted))
    return plain


def finite(name: str, value: Any) -> int | float | Fraction:
    """Return a finite number."""
    return in_range(name, value, "a finite number", lambda x: -math.inf < x < math.inf)


def nonnegative_number(name: str, value: Any) -> int | float | Fraction:
    """Return a finite number of at least 0."""
    return in_range(name, value, "a finite number, not negative", lambda x: 0 <= x < math.inf)


def each(
    name: str, items: Iterable[Any], check: Callable[[str, Any], Any] = nonnegative_number
) -> list[Any]:
    """Return the checked items of an array. Errors do not show them: see _SHOWN."""
    try:
        return [check(name, item) for item in items]
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(of_item(name, str(error).rpartition(": give ")[2])) from None


def of_item(name: str, wanted: str) -> str:
    """Return an error message for an item of an array, with the accepted values."""
    return f"{name} has an item that is not accepted: give {wanted}"


def nonnegative_fraction(name: str, value: Any) -> Fraction:
    """Return a finite number of at least 0 as a Fraction."""
    return Fraction(nonnegative_number(name, value))


def positive_number(name: str, value: Any) -> int | float | Fraction:
    """Return a finite number above 0."""
    return in_range(name, value, "a finite number above 0", lambda x: 0 < x < math.inf)


def positive_fraction(name: str, value: Any) -> Fraction:
    """Return a finite number above 0 as a Fraction."""
    return Fraction(positive_number(name, value))


def level(name: str, value: Any) -> Fraction:
    """Return a number in (0, 1] as a Fraction."""
    return Fraction(in_range(name, value, "a number above 0 and at most 1", lambda x: 0 < x <= 1))


def probability(name: str, value: Any) -> Fraction:
    """Return a number in [0, 1] as a Fraction."""
    return Fraction(in_range(name, value, "a number from 0 to 1", lambda x: 0 <= x <= 1))


@showable
class _Level(Fraction):
    """A level that a call has read, of which what it calls does not warn again."""

    __slots__ = ()


def significance(name: str, value: Any) -> Fraction:
    """Return a number in (0, 1] as a Fraction, with a warning if it seems to be the confidence."""
    return value if isinstance(value, _Level) else _unconfident(name, value, level(name, value))


def significance_or_zero(name: str, value: Any) -> Fraction:
    """Return a number in [0, 1] as a Fraction, with a warning if it seems to be the confidence."""
    return _unconfident(name, value, probability(name, value))


def _unconfident(name: str, value: Any, exact: Fraction) -> Fraction:
    if 2 * exact > 1:
        warn(
            f"{name} = {shown(value)} is the probability of a miss or of a greater error: "
            "give 0.05 for 95% confidence"
        )
        return _Level(exact)
    return exact


#: The greatest epsilon that a release has without a question.
_MOST_USUAL = 10


def warn(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Warn where the library was called."""
    depth, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "geomdp":
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


def ask_about_percent(epsilon: Fraction | float) -> None:
    """Ask whether the epsilon of a release was meant in percent, before it is spent."""
    if _MOST_USUAL < epsilon < math.inf:
        given = text(epsilon)
        warn(
            f"epsilon = {given} is above {_MOST_USUAL}: with the records of an individual, an "
            f"outcome may be exp({given}) times as probable as without them. Was a percentage "
            f"meant? {given}% is epsilon = {text(Fraction(epsilon) / 100)}. If {given} is meant, "
            "ignore this warning"
        )


def _number(name: str, value: Any) -> int | float | Fraction:
    plain: int | float | Fraction
    if is_integer(value):
        plain = int(value)
    elif isinstance(value, Fraction):
        plain = value
    elif isinstance(value, _FLOATS) and not isinstance(value, np.longdouble):
        # A long double is refused, since a float cannot hold its value.
        return decimal(value) if math.isfinite(value) else float(value)
    elif isinstance(value, Decimal | str):
        plain = exact(name, value)
        if isinstance(plain, float):  # An infinity or a NaN.
            return plain
    else:
        raise TypeError(foreign(name, value, 'a number, or a str such as "0.1" or "1/10"'))
    for part in plain.as_integer_ratio():
        printable(name, part)
    return plain


def exact(name: str, value: Any) -> Any:
    """Return the exact number that a Decimal or a string states; other values as they are."""
    if isinstance(value, str):
        wanted = 'a number such as "0.1", "1e-6" or "1/10"'
        # Python refuses to convert longer ones.
        if len(value) > 4300 or not re.fullmatch(_STATED, value, re.ASCII):
            raise ValueError(refusal(name, value, wanted))
        numerator, _, denominator = value.partition("/")
        if denominator:
            return Fraction(int(numerator), int(denominator))
        value = Decimal(numerator)
    if not isinstance(value, Decimal):
        return value
    if not value.is_finite():
        return math.nan if value.is_nan() else math.copysign(math.inf, value)
    if max(abs(value.adjusted()), abs(int(value.as_tuple().exponent))) > _MOST_BITS:
        # Its conversion could take unlimited memory and time.
        wanted = "a smaller exponent, or fewer digits"
        raise OverflowError(refusal(name, value, wanted))
    return Fraction(value)


def ratio(text: Any) -> Fraction:
    """Return the Fraction whose str is this text of a file; a ValueError for any other text."""
    # Python refuses to convert longer ones.
    if isinstance(text, str) and re.fullmatch(_RATIO, text, re.ASCII):
        found = Fraction(text)
        if str(found) == text:
            return found
    raise ValueError(f"{shown(text)} is no fraction in lowest terms")


def printable(name: str, value: int) -> int:
    """Return an int, or raise an OverflowError if Python might refuse to print it."""
    if value.bit_length() > _MOST_BITS:
        raise OverflowError(
            f"{name} has {value.bit_length()} bits, which is not accepted: "
            f"give a number of at most {_MOST_BITS} bits"
        )
    return value


def integer(name: str, value: Any, wanted: str = "an int") -> int:
    """Return a Python or numpy integer as an int."""
    if is_integer(value):
        return printable(name, int(value))
    raise TypeError(foreign(name, value, wanted))


def at_least(name: str, value: Any, least: int) -> int:
    """Return an integer of at least `least` as an int."""
    wanted = f"an int of at least {least}"
    number = integer(name, value, wanted)
    if number < least:
        raise ValueError(refusal(name, number, wanted))
    return number


def at_least_one(name: str, value: Any) -> int:
    """Return an integer of at least 1 as an int."""
    return at_least(name, value, 1)


def check_one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    """Check that a value is one of these strings."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(refusal(name, value, f"one of {', '.join(map(repr, choices))}"))


def threads(value: Any) -> int:
    """Return the thread count for the core; 0, for None, lets the core choose."""
    if value is None:
        return 0
    # No array needs more threads than the core's type can express.
    return min(at_least("threads", value, 1), sys.maxsize)


def check_bool(name: str, value: Any) -> None:
    """Check that a value is a bool."""
    if not isinstance(value, bool):
        raise TypeError(foreign(name, value, "a bool"))


def check_text(name: str, value: Any) -> None:
    """Refuse the name of something that a file cannot hold."""
    if not isinstance(value, str):
        raise TypeError(foreign(name, value, "a str"))
    if not is_text(value):
        raise ValueError(refusal(name, value, TEXT))


def is_text(value: str) -> bool:
    """Return whether a file can hold a string, and a terminal can show it.

    Lone surrogates have no bytes in UTF-8, and control characters may run in a terminal.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return not CONTROLS.search(value)


def interval(bounds: Any) -> tuple[int, int] | None:
    """Return the bounds as a pair of ints, or None."""
    if bounds is None:
        return None
    if not isinstance(bounds, _PAIRS) or len(bounds) != 2 or not all(map(is_integer, bounds)):
        wanted = "a pair of ints (lower, upper), or None; (0, 2**63 - 1) is without an upper limit"
        if not isinstance(bounds, _PAIRS):
            raise TypeError(refusal("bounds", bounds, wanted))
        kinds = [type(each).__name__ for each in bounds]
        inside = " and ".join(kinds) if len(kinds) == 2 else many(len(kinds), "item")
        kind = type(bounds).__name__
        raise TypeError(f"bounds of type {kind} with {inside} is not accepted: give {wanted}")
    return integer("bounds[0]", bounds[0]), integer("bounds[1]", bounds[1])
