"""The levels of a column: of a type that every library and every file keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from geomdp._inputs import parameters

#: The types of levels; a column has one of them, and None for nulls.
TYPES = (str, int, float, bool, date, datetime)
_MOST = 2**63


def checked(name: str, levels: Any) -> list[Any]:
    """Return distinct levels as plain objects of Python; `name` is for errors.

    This refuses all that a frame or a file would refuse later, after a release is paid for.
    """
    if not isinstance(levels, Sequence | np.ndarray) or isinstance(levels, str | bytes):
        raise TypeError(f"{name} are a {type(levels).__name__}: give a list")
    items = _listed(levels)
    try:
        repeated = len(set(items)) < len(items)
    except TypeError:
        raise TypeError(f"{name} are not accepted: give hashable values") from None
    if repeated or not items:
        raise ValueError(f"{name} are empty or repeat one: give each once")
    found = set(map(type, items)) - {type(None)}
    if found == {int, float}:
        items = [None if item is None else _of_equal(float, item) for item in items]
        found = set(map(type, items)) - {type(None)}
    if len(found) > 1 or not found <= set(TYPES):
        names = sorted(kind.__name__ for kind in found)
        raise ValueError(
            f"{name} are not accepted, since their types are {names}: give str, int, float, bool, "
            "or dates or times without a zone, one type a column, and None for nulls"
        )
    for kind in found:
        wanted, fits = _WANTED[kind]
        if not all(fits(item) for item in items if item is not None):
            raise ValueError(f"{name} are not accepted: give {wanted}")
    if "" in items and None in items:
        raise ValueError(f"{name} are not accepted: '' and None look alike in CSV; give one")
    return items


def type_of(items: Sequence[Any]) -> type | None:
    """Return the type of checked levels; None if there are only nulls."""
    return next((type(item) for item in items if item is not None), None)


#: For each type, the values of it that files and frames keep.
_WANTED: dict[type, tuple[str, Callable[[Any], bool]]] = {
    str: ("text that UTF-8 can hold", parameters.is_text),
    int: ("integers of 64 bits", lambda item: -_MOST <= item < _MOST),
    float: ("finite numbers, and None for nulls", math.isfinite),
    datetime: ("times without a zone (docs/guides/keys.md)", lambda item: item.tzinfo is None),
    bool: ("", lambda _: True),
    date: ("", lambda _: True),
}


def _listed(levels: Any) -> list[Any]:
    """Return levels as plain objects of Python, where they are equal to them."""
    if isinstance(levels, np.ndarray) and levels.ndim != 1:
        return list(levels)
    if isinstance(levels, np.ndarray) and levels.dtype.kind in "iubfU":
        return list(levels.tolist())
    return [item if type(item) in TYPES else _of_python(item) for item in levels]


def _of_python(item: Any) -> Any:
    """Return the plain object that equals a number of numpy or a time of pandas or numpy."""
    if isinstance(item, np.datetime64):
        days = np.datetime_data(item.dtype)[0] in ("Y", "M", "W", "D")
        return _of_equal(lambda x: x.astype(f"datetime64[{'D' if days else 'us'}]").item(), item)
    if isinstance(item, np.generic):
        return _of_equal(lambda x: x.item(), item)
    if isinstance(item, datetime) and hasattr(item, "to_pydatetime"):
        return _of_equal(lambda x: x.to_pydatetime(warn=False), item)
    return item


def _of_equal(convert: Callable[[Any], Any], item: Any) -> Any:
    """Return a converted item if it equals the item, otherwise the item."""
    try:
        found = convert(item)
        return found if found == item else item
    except (TypeError, ValueError, OverflowError):
        return item
