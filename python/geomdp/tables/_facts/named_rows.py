"""Rows of names, from the root down, made into a tree."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters

_Ints: TypeAlias = NDArray[np.int64]


def tree(what: str, columns: list[list[Any]], *, inner: bool) -> tuple[list[Any], _Ints]:
    """Return the name of each node, and the place of its parent, or -1.

    A row ends before its first null. With `inner` it may end at a node that has others below it.
    Nodes come by depth, in the order of the rows.
    """
    rows = len(columns[0]) if columns else 0
    if not rows:
        raise ValueError(f"{what} are empty: give at least one row")
    names: list[Any] = []
    above: list[_Ints] = []
    # The node of each row, that of the depth before, and the nodes at which rows end.
    nodes, live, ends = np.full(rows, -1), np.ones(rows, np.bool_), np.full(rows, -1)
    for items in columns:
        known, codes = _coded(what, items)
        if "" in known:
            raise ValueError(f"{_row(what, columns, items.index(''))} has an empty name: give all")
        here = codes >= 0
        if (lost := np.flatnonzero(here & ~live)).size:
            raise ValueError(
                f"{_row(what, columns, int(lost[0]))} has no name before another: give all"
            )
        if not names and not here.all():
            empty = _row(what, columns, int(np.flatnonzero(~here)[0]))
            raise ValueError(f"{empty} has no name: give at least one")
        ends[live & ~here] = nodes[live & ~here]
        pairs, first, which = np.unique(
            nodes[here] * len(known) + codes[here], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        above.append(pairs[order] // max(len(known), 1))
        start = len(names)
        names += map(known.__getitem__, (pairs[order] % max(len(known), 1)).tolist())
        places = np.empty_like(order)
        places[order] = np.arange(start, len(names))
        nodes = nodes.copy()
        nodes[here] = places[which.reshape(-1)]
        live = here
    parents = np.concatenate(above)
    split = np.flatnonzero(np.isin(ends, parents) & (ends >= 0))
    if split.size and not inner:
        raise ValueError(
            f"{_row(what, columns, int(split[0]))} is a leaf and has nodes below it: give the "
            "paths of leaves alone"
        )
    return names, parents


def _coded(what: str, items: list[Any]) -> tuple[list[Any], _Ints]:
    """Return the distinct names of a column, and the place of each row's among them, or -1."""
    try:
        known = dict.fromkeys(items)
    except TypeError:
        raise TypeError(f"{what} are not accepted: give names that are text or numbers") from None
    known.pop(None, None)
    places = {name: place for place, name in enumerate(known)}
    places[None] = -1
    return list(known), np.fromiter(map(places.__getitem__, items), np.int64, len(items))


def _row(what: str, columns: list[list[Any]], row: int) -> str:
    """Return the text for a row of an error."""
    names = tuple(items[row] for items in columns)
    while names and names[-1] is None:
        names = names[:-1]
    return f"the row {parameters.shown(names)} of {what}"
