"""The tables that a design releases, where it chooses some: their keys, parts and blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from geomdp._ground import parameters
from geomdp.tables._math.products import Block

#: What a sum over a column is called.
ALL = "all"
#: Columns in the order of the design, each with a depth of its tree, or None for all of them.
Key: TypeAlias = tuple[tuple[str, int | None], ...]


def keys_of(tables: Any, levels: Mapping[str, Any]) -> dict[Key, Fraction]:
    """Return the key of each table and its part of epsilon; the parts add up to 1."""
    wanted = "a mapping of columns to parts of epsilon, or a list of columns, () for the total"
    if isinstance(tables, str) or not isinstance(tables, Mapping | Sequence | set):
        raise TypeError(parameters.foreign("tables", tables, wanted))
    for each in tables:
        if not isinstance(each, str | tuple):
            wanted = "a column or a tuple of columns"
            raise TypeError(f"tables have a key of type {type(each).__name__}: give {wanted}")
    try:
        parts = tables if isinstance(tables, Mapping) else dict.fromkeys(tables, 1)
    except TypeError:
        raise TypeError(f"tables have a key without a hash: give {wanted}") from None
    if not parts or len(parts) < len(tables):
        raise ValueError(f"tables are empty or repeat one: give {wanted}")
    found: dict[Key, Fraction] = {}
    for given, part in parts.items():
        key = key_of("tables have", given, levels)
        if key in found:
            raise ValueError(f"tables have {parameters.shown(shown(key))} twice: give it once")
        found[key] = parameters.positive_fraction("tables", part)
    whole = sum(found.values())
    return {key: part / whole for key, part in found.items()}


def key_of(name: str, given: Any, levels: Iterable[str]) -> Key:
    """Return the columns of a table, and the depth of those that have one; `name` begins errors."""
    columns = list(levels)
    items = given if isinstance(given, tuple) and not _is_depth(given) else (given,)
    pairs = [item if _is_depth(item) else (item, None) for item in items]
    for column, _ in pairs:
        if not isinstance(column, str) or column not in columns:
            # A number may be a count.
            what = parameters.shown(column) if isinstance(column, str) else "a key"
            raise KeyError(f"{name} {what}, which is no column: give one of {columns}")
    if len({column for column, _ in pairs}) < len(pairs):
        raise ValueError(f"{name} a key with a column twice: give each column once")
    return tuple(sorted(pairs, key=lambda pair: columns.index(pair[0])))


def _is_depth(item: Any) -> bool:
    """Whether an item is a column with a depth of its tree."""
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[1], int)
        and not isinstance(item[1], bool)
    )


def titles(keys: Iterable[Key]) -> dict[str, tuple[Any, ...]]:
    """Return the columns of each table but the total by what a preview calls it."""
    return {
        ", ".join(x if depth is None else f"{x} at depth {depth}" for x, depth in key): _items(key)
        for key in keys
        if key
    }


def shown(key: Key) -> Any:
    """Return a key as a user writes it."""
    found = _items(key)
    return found[0] if len(found) == 1 else found


def _items(key: Key) -> tuple[Any, ...]:
    """Return the columns of a key, in pairs with their depths."""
    return tuple(column if depth is None else (column, depth) for column, depth in key)


def check_shares(margins: Any, shares: Mapping[str, Any], levels: Mapping[str, Any]) -> None:
    """Refuse shares of a list's margin beside tables, which have parts of their own."""
    if margins:
        raise ValueError(
            "margins have a share beside tables, which is not accepted: give labels alone"
        )
    for label in shares:
        if not is_tree(levels[label]):
            raise ValueError(
                f"shares of {label!r} are not accepted beside tables: give each table its part of "
                "epsilon, as tables={...: part}"
            )


def is_tree(levels: Any) -> bool:
    """Whether the levels of a column are a hierarchy."""
    return hasattr(levels, "leaves")


def sums(
    keys: Mapping[Key, Fraction],
    levels: Mapping[str, Any],
    labels: Mapping[str, Any],
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the label of the sum over each list that a table leaves out; None without one."""
    found = dict(labels)
    for column, items in levels.items():
        if all(column in dict(key) for key in keys) or is_tree(items):
            continue
        known = [*items, others[column]] if column in others else list(items)
        label = found.setdefault(column, sum_label(known))
        if label is None and any(item is None or item == "" for item in known):
            raise ValueError(
                f"a table sums over {column!r}, whose levels have a null or an empty text, which "
                "stands for the sum: give margins, a label for it"
            )
    return found


def sum_label(levels: Sequence[Any]) -> str | None:
    """Return what stands in a column of these levels for the sum over it: null if not of text."""
    text = all(isinstance(level, str) for level in levels if level is not None)
    return ALL if text and ALL not in levels else None


def blocks(keys: Mapping[Key, Fraction], axes: Sequence[Any], most: int) -> dict[Block, Fraction]:
    """Return the released blocks, and the part of epsilon of each."""
    found: dict[Block, Fraction] = {}
    for key, part in keys.items():
        asked, sides = dict(key), []
        for axis in axes:
            depth = asked.get(axis.label, 0)
            if axis.label not in asked:
                sides.append([(0, Fraction(1))])
            elif axis.hierarchy is None:
                if depth is not None:
                    raise ValueError(
                        f"tables have a depth of {axis.label!r}, which is a list: give its name"
                    )
                sides.append([(axis.tree.depth, Fraction(1))])
            elif depth is None:
                sides.append([*enumerate(axis.shares)])
            elif 0 <= depth < axis.depths:
                sides.append([(depth, Fraction(1))])
            else:
                raise ValueError(
                    f"tables have the depth {depth} of {axis.label!r}: give one from 0 to "
                    f"{axis.depths - 1}"
                )
        if math.prod(map(len, sides)) + len(found) > most:
            raise ValueError(f"depths of tables multiply to more than {most}: give fewer tables")
        for pairs in product(*sides):
            block = tuple(depth for depth, _ in pairs)
            if block in found:
                raise ValueError(
                    f"tables have {parameters.shown(shown(key))}, and another table has some of "
                    "its depths too: give each combination of depths once"
                )
            found[block] = part * math.prod((share for _, share in pairs), start=Fraction(1))
    return found
