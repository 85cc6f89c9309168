"""The levels of a column: of a type that every library and every file keeps.

A column is looked at as a whole: the set of its types first, and then what values of one type may
be. So a million names take a few passes in C, and no call of Python for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters

#: The types of levels; a column has one of them, and None for nulls.
TYPES = (str, int, float, bool, date, datetime)
_NULL = {type(None)}
_MOST = 2**63


def checked(name: str, levels: Any) -> list[Any]:
    """Return distinct levels as plain objects of Python; `name` is for errors.

    This refuses all that a frame or a file would refuse later, after a release is paid for.
    """
    if not isinstance(levels, Sequence | np.ndarray) or not parameters.has_items(levels):
        raise TypeError(f"{name} are a {type(levels).__name__}: give a list")
    items, found = _listed(levels)
    try:
        repeated = not distinct(items)
    except TypeError:
        raise TypeError(f"{name} are not accepted: give hashable values") from None
    if repeated or not items:
        raise ValueError(f"{name} are empty or repeat one: give each once")
    return _of_one_type(name, items, found)


def column(name: str, items: Sequence[Any]) -> list[Any]:
    """Return levels that may repeat as plain objects of Python, refused as :func:`checked` does."""
    return _of_one_type(name, *_listed(items))


def _of_one_type(name: str, items: list[Any], found: set[type]) -> list[Any]:
    """Return plain objects of one type that every library and every file keeps."""
    if found - _NULL == {int, float}:
        items = [None if item is None else _of_equal(float, item) for item in items]
        found = kinds(items)
    given = [item for item in items if item is not None] if found & _NULL else items
    found -= _NULL
    if len(found) > 1 or not found <= set(TYPES):
        names = sorted(kind.__name__ for kind in found)
        raise ValueError(
            f"{name} are not accepted, since their types are {names}: give str, int, float, bool, "
            "or dates or times without a zone, one type a column, and None for nulls"
        )
    for kind in found:
        wanted, fit = _WANTED[kind]
        if not fit(given):
            raise ValueError(f"{name} are not accepted: give {wanted}")
    if len(given) < len(items) and "" in given:
        raise ValueError(f"{name} are not accepted: '' and None look alike in CSV; give one")
    return items


def kinds(items: Iterable[Any]) -> set[type]:
    """Return the types of items."""
    return set(map(type, items))


def type_of(items: Sequence[Any]) -> type | None:
    """Return the type of checked levels; None if there are only nulls."""
    return next((type(item) for item in items if item is not None), None)


def distinct(items: Sequence[Any]) -> bool:
    """Return whether no item repeats, or raise a TypeError for one without a hash.

    Items whose hashes all differ do. Sorting these is faster than a set of many items.
    """
    hashes = np.fromiter(map(hash, items), np.int64, len(items))
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all()) or len(set(items)) == len(items)


def taken(items: Sequence[Any], places: NDArray[np.int64]) -> list[Any]:
    """Return the items at some places; a list itself, for all of its places in order."""
    if isinstance(items, list) and places.size and (np.diff(places) == 1).all():
        start, stop = int(places[0]), int(places[-1]) + 1
        return items if stop - start == len(items) else items[start:stop]
    return list(map(items.__getitem__, places.tolist()))


#: For each type, what files and frames keep, and whether they keep all of these values.
_WANTED: dict[type, tuple[str, Callable[[list[Any]], bool]]] = {
    # UTF-8 has no bytes for half of a pair, and two halves that are joined make no pair.
    str: (parameters.TEXT, lambda items: parameters.is_text("".join(items))),
    int: ("integers of 64 bits", lambda items: min(items) >= -_MOST and max(items) < _MOST),
    float: ("finite numbers, and None for nulls", lambda items: all(map(math.isfinite, items))),
    datetime: (
        "times without a zone (docs/guides/keys.md)",
        lambda items: all(item.tzinfo is None for item in items),
    ),
    bool: ("", lambda _: True),
    date: ("", lambda _: True),
}


def _listed(levels: Any) -> tuple[list[Any], set[type]]:
    """Return levels as plain objects of Python, where they are equal to them, and their types."""
    plain = isinstance(levels, np.ndarray) and levels.ndim == 1 and levels.dtype.kind in "iubfU"
    items = list(levels.tolist() if plain else levels)
    found = kinds(items)
    if found <= {*TYPES, *_NULL} or np.ndarray in found:
        return items, found
    items = [item if type(item) in TYPES else _of_python(item) for item in items]
    return items, kinds(items)


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
