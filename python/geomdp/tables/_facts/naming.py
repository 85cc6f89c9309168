"""What the nodes of a tree are called: by their names where these are unique, else by their paths.

A tree of paths has a separator, which no name contains. So the label of a node with a separator in
it is its path, and any other label is its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp.tables._columns import levels
from geomdp.tables._math.trees import Tree

#: A tuple of names, for a column that is made of several.
Path = tuple[Any, ...]


class Paths(NamedTuple):
    """How a tree writes paths."""

    separator: str
    #: The depth at which they begin: that of the root, 0, or below one that only adds up, 1.
    start: int


def path(names: Iterable[Any]) -> Path:
    """Return a path without blanks, which are nulls and empty texts: there is no node at its depth.

    Trees and records take blanks alike, wherever in a row they are.
    """
    return tuple(name for name in names if not _is_blank(name))


def _is_blank(name: Any) -> bool:
    # Only texts are compared: an array is refused later, by its type.
    return name is None or (isinstance(name, str) and not name)


def stated(separator: Any, start: Any) -> Paths:
    """Return how a tree writes paths, as a file states it."""
    if not isinstance(separator, str) or not separator or start not in (0, 1):
        raise ValueError(f"paths with {separator!r} from depth {start!r} are not accepted")
    return Paths(separator, int(start))


def labels(names: list[Any], tree: Tree, paths: Paths | None) -> list[Any]:
    """Return a label for each node in the order of its tree: its name if unique, else its path."""
    if levels.distinct(names):
        return names
    repeated = {name for name, n in Counter(names).items() if n > 1}
    if paths is None:
        raise ValueError(
            f"{parameters.shown(next(iter(repeated)))} is the name of several nodes, which paths "
            "tell apart: give names as text, so that paths can be written"
        )
    return [
        path if name in repeated else name
        for name, path in zip(names, _joined(names, tree, paths), strict=True)
    ]


def names_of(nodes: list[Any], paths: Paths | None) -> list[Any]:
    """Return the name of each node, given their labels."""
    if paths is None:
        return nodes
    return [label.rpartition(paths.separator)[2] for label in nodes]


def written(nodes: list[Any], tree: Tree, paths: Paths | None) -> list[Any]:
    """Return the path of each node as text, given their labels."""
    return nodes if paths is None else _joined(names_of(nodes, paths), tree, paths)


def tuples(nodes: list[Any], tree: Tree, paths: Paths | None, start: int) -> list[Path]:
    """Return the path of each node from this depth on as a tuple of names."""
    found: list[Path] = []
    for name, above, depth in _walk(names_of(nodes, paths), tree):
        found.append((name,) if depth <= start else (*found[above], name))
    return found


def places(
    nodes: list[Any], tree: Tree, paths: Paths | None, among: NDArray[np.int64] | None = None
) -> dict[Any, int]:
    """Return the node of each text that names one: its label or its path.

    With `among`, of these nodes alone, by their places among them: then a name that is unique
    there names its node too.
    """
    chosen: Sequence[int] = range(tree.size) if among is None else among.tolist()
    found = {nodes[node]: place for place, node in enumerate(chosen)}
    if paths is None:
        return found
    whole = written(nodes, tree, paths)
    for place, node in enumerate(chosen):
        found.setdefault(whole[node], place)
    if among is not None:
        names = names_of(nodes, paths)
        counts = Counter(names[node] for node in chosen)
        for place, node in enumerate(chosen):
            if counts[names[node]] == 1:
                found.setdefault(names[node], place)
    return found


def unknown(
    name: str, label: Any, nodes: list[Any], paths: Paths | None, kind: str = "node"
) -> ValueError:
    """Return the error for a label, in a parameter, that names no node, or more than one."""
    same = [node for node, each in zip(nodes, names_of(nodes, paths), strict=True) if each == label]
    if same:
        return ValueError(
            f"{parameters.shown(label)}, in {name}=, is the name of several nodes: give the path "
            f"of one, of {parameters.shown(same)}"
        )
    return ValueError(
        f"{parameters.shown(label)}, in {name}=, is not a {kind}: give one of "
        f"{parameters.shown(nodes)}"
    )


def check_apart(name: str, label: Any, paths: Paths | None) -> None:
    """Refuse a name that contains the separator of paths."""
    if paths is not None and isinstance(label, str) and paths.separator in label:
        raise ValueError(
            f"{name} {parameters.shown(label)} contains {paths.separator!r}, which separates the "
            "names of a path: give another name, or another separator"
        )


def _joined(names: list[str], tree: Tree, paths: Paths) -> list[str]:
    """Return the path of each node as text."""
    found: list[str] = []
    separator, start = paths
    for name, above, depth in _walk(names, tree):
        found.append(name if depth <= start else f"{found[above]}{separator}{name}")
    return found


def _walk(names: list[Any], tree: Tree) -> Any:
    """Return the name of each node, the node above it, and its depth: parents come first."""
    return zip(names, tree.parents.tolist(), tree.depths.tolist(), strict=True)
