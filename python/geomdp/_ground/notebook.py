"""How public objects and numbers are shown."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

_Kind = TypeVar("_Kind", bound=type)


def showable(kind: _Kind) -> _Kind:
    """Return the class, whose objects have a text before they are whole: tools print tracebacks."""
    for name in ("__repr__", "_repr_html_"):
        if (text := getattr(kind, name, None)) not in (None, object.__repr__):
            setattr(kind, name, _of_any(text))
    return kind


def _of_any(text: Callable[[Any], str]) -> Callable[[Any], str]:
    @wraps(text)
    def safe(self: Any) -> str:
        try:
            return text(self)
        except AttributeError:
            return f"{type(self).__name__}, half made"

    return safe


def table(title: str, rows: dict[str, Any]) -> str:
    """Return an HTML table with a row for each name and value, escaped."""
    from html import escape  # noqa: PLC0415 (only notebooks need it)

    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"


def preformatted(text: str) -> str:
    """Return text as HTML that keeps its lines."""
    from html import escape  # noqa: PLC0415 (only notebooks need it)

    return f"<pre>{escape(text)}</pre>"


def many(n: int, noun: str) -> str:
    """Return a number of things, such as "1 bit", "2 bits" or "2 categories"."""
    if n == 1:
        return f"1 {noun}"
    shown = count(n)
    return f"{shown} {noun[:-1]}ies" if noun.endswith("y") else f"{shown} {noun}s"


def count(n: int) -> str:
    """Return a number of things; its power of two beyond 64 bits."""
    return str(n) if n < 2**64 else f"about 2^{math.log2(n):.0f}"


def short(number: float | Fraction) -> str:
    """Return a number that is not negative to six digits, or its power of two beyond floats."""
    try:
        shown = float(number)
    except OverflowError:
        shown = 0.0
    if shown or not number:
        return f"{shown:.6g}"
    ratio = Fraction(number)
    return f"about 2^{round(math.log2(ratio.numerator) - math.log2(ratio.denominator))}"
