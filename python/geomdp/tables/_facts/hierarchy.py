"""The public tree of a column: such as districts in regions in a country."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from itertools import pairwise, repeat, zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import many, showable
from geomdp._ground.parameters import Integer
from geomdp._inputs import columns as _columns
from geomdp.tables._columns import levels, native
from geomdp.tables._facts import named_rows, naming
from geomdp.tables._facts.naming import Paths
from geomdp.tables._math import trees

#: The most depths of a column. Each has noise of its own.
MOST_DEPTHS = 100
#: The types whose objects all have a hash and equal themselves.
_NAMES = {str, int, bool, date, datetime, type(None)}


@showable
class Hierarchy:
    """A public tree, of any depth; branches may differ in size and depth.

    A hierarchy takes the place of a column's levels, as in
    ``Design({"area": hierarchy, "sex": ["f", "m"]})``. A release then has a noisy count of every
    node. Iterating over a hierarchy gives its leaves.

    Parameters
    ----------
    children : mapping, or column
        The parent of each node, as a mapping from child to parent or as a column of children. The
        root may be left out, or have None as its parent. Take the tree from public knowledge, not
        from the data.
    parents : column, optional
        The parents, to go with a column of children.
    leaves_only : bool
        Whether every record belongs to a leaf. By default a record may name an inner node alone,
        such as a county without a municipality. It then counts there and above, so a node has at
        least the records of its children. If you know from public sources that there are no such
        records, say so here: nodes are then the sums of their children, which estimates make use
        of, and a record of an inner node is treated as one with any other value.
    labels : mapping, optional
        For trees of codes, a mapping from nodes to the text that readers see. Files state it, and
        pages and readers show it, while data and questions use the codes.

    Attributes
    ----------
    nodes, leaves : lists
        The nodes and the leaves, from the root down. Siblings are next to each other, in the order
        given. A node is called by its name, or by its path if several nodes have that name
        (:meth:`from_columns`).
    labels : dict
        The label of each node that has one.
    depth : int
        The depth of the deepest leaves; that of the root is 0.

    Raises
    ------
    ValueError
        If the tree does not have exactly one root, a node has two parents, there is a cycle, or
        there are more than 100 depths.

    Examples
    --------
    >>> from geomdp.tables import Hierarchy
    >>> tree = Hierarchy({"North": "all", "South": "all", "A": "North", "B": "North"})
    >>> tree.nodes, tree.leaves, tree.depth
    (['all', 'North', 'South', 'A', 'B'], ['South', 'A', 'B'], 2)

    """

    __slots__ = ("_made", "_paths", "_tree", "labels", "nodes")

    def __init__(
        self,
        children: Any,
        parents: Any = None,
        *,
        leaves_only: bool = False,
        labels: Mapping[Any, str] | None = None,
    ) -> None:
        names, above = _joined(*_pairs(children, parents))
        if not names:
            raise ValueError("children are empty: give at least one pair of a child and a parent")
        self._fill(names, above, leaves_only, labels)

    def _fill(
        self,
        names: list[Any],
        above: NDArray[np.int64],
        leaves_only: bool,
        labels: Any,
        *,
        label: Callable[[list[Any], trees.Tree], list[Any]] = lambda names, _: names,
        paths: Paths | None = None,
    ) -> None:
        """Take nodes in any order, by their names, and the place of the parent of each, or -1.

        A function returns the label of each by its name, in the order of the tree.
        """
        parameters.check_bool("leaves_only", leaves_only)
        roots = np.flatnonzero(above < 0)
        if len(roots) > 1:
            found = parameters.shown([names[place] for place in roots])
            raise ValueError(f"the nodes {found} have no parent: give a tree with one root")
        try:
            tree, order = trees.arranged(above, most=MOST_DEPTHS, loose=not leaves_only)
        except ValueError:
            if (inside := _cycle(names, above)) is not None:
                raise ValueError(f"{inside} is below itself: give a tree without cycles") from None
            raise ValueError(
                f"a tree of more than {MOST_DEPTHS} depths is not accepted, since each has noise "
                "of its own: give a tree of fewer"
            ) from None
        self.nodes = levels.checked("nodes", label(levels.taken(names, order), tree))
        self._tree, self._paths = tree, paths
        #: What is made once, when it is asked for: the columns of nodes by library, for one.
        self._made: dict[str, Any] = {}
        self.labels = _labels(self.nodes, tree, paths, labels)

    @classmethod
    def from_columns(
        cls,
        frame: Any,
        columns: Sequence[str],
        *,
        root: Any = None,
        leaves_only: bool = False,
        separator: str = "/",
        labels: Mapping[Any, str] | None = None,
    ) -> Self:
        """Return the tree whose leaves are the rows of a public frame, such as a list of tracts.

        A name may occur again below another parent, as Oslo does in Oslo. A node is called by its
        name if that is unique, and otherwise by its path, such as ``"Norway/Oslo"``. Questions, and
        data in a single column, may use the path of any node. If the data have a column for each
        depth themselves, count by all of them:
        ``Design({("country", "region", "tract"): hierarchy})``.

        Parameters
        ----------
        frame : data frame
            A frame of pandas or Polars, or a Table of PyArrow. Rows may be repeated. Blanks, which
            are nulls and empty texts, make a shorter path: a country without a region is a child
            of what stands above regions. Records with blanks in the same places count there.
        columns : sequence of str
            The columns of names, from the root down.
        root : label, optional
            The name of a node above the first column, for the sum of all. It is required if that
            column has more than one name. Paths begin below it.
        leaves_only
            Whether every record belongs to a leaf, so that nodes are the sums of their children.
        separator : str
            The text between the names of a path. No name may contain it.
        labels
            The text that readers see: a mapping from nodes, or their paths, to text.

        Returns
        -------
        Hierarchy
            Its depths are the columns.

        Raises
        ------
        ValueError
            If a name contains the separator, a row has no name, or a shorter row ends at a node
            that has others below it.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Hierarchy
        >>> tracts = pd.DataFrame({"country": "Norway", "region": ["Oslo", "Agder"], \
"tract": ["Oslo", "Evje"]})
        >>> Hierarchy.from_columns(tracts, ["country", "region", "tract"]).nodes
        ['Norway', 'Norway/Oslo', 'Agder', 'Norway/Oslo/Oslo', 'Evje']

        """
        if isinstance(columns, str) or not isinstance(columns, Sequence) or not len(columns):
            raise TypeError(parameters.foreign("columns", columns, "a list of column names"))
        known = _columns.names(frame)
        items = [
            _items(name, _columns.column(frame, _columns.only(name, known))) for name in columns
        ]
        return cls._of_rows(
            "columns",
            [*map(list, zip_longest(*map(naming.path, zip(*items, strict=True))))],
            root=root,
            separator=separator,
            leaves_only=leaves_only,
            labels=labels,
        )

    @classmethod
    def from_paths(
        cls,
        paths: Any,
        *,
        root: Any = None,
        leaves_only: bool = False,
        separator: str = "/",
        labels: Mapping[Any, str] | None = None,
    ) -> Self:
        """Return the tree whose leaves are at the ends of these paths.

        Parameters
        ----------
        paths : column
            Text such as ``"Norway/Oslo/Oslo"``, or tuples of names, from the root down.
        root, leaves_only, separator, labels
            As in :meth:`from_columns`.

        Returns
        -------
        Hierarchy
            Paths may differ in length.

        Raises
        ------
        ValueError
            As from :meth:`from_columns`.

        Examples
        --------
        >>> from geomdp.tables import Hierarchy
        >>> tree = Hierarchy.from_paths(["Norway/Oslo/Oslo", "Norway/Agder/Evje", "Norway/Troms"])
        >>> tree.leaves
        ['Troms', 'Norway/Oslo/Oslo', 'Evje']

        """
        _check_separator(separator)
        found = []
        for path in _items("paths", paths):
            names = path.split(separator) if isinstance(path, str) else path
            if not isinstance(names, tuple | list):
                raise TypeError(
                    f"paths have one of type {type(path).__name__}: give text, or tuples of names"
                )
            found.append(names if isinstance(path, str) else naming.path(names))
        rows = [*map(list, zip_longest(*found))]
        return cls._of_rows(
            "paths", rows, root=root, separator=separator, leaves_only=leaves_only, labels=labels
        )

    @classmethod
    def from_prefixes(
        cls,
        codes: Any,
        lengths: Sequence[Integer],
        *,
        root: Any = None,
        leaves_only: bool = False,
        labels: Mapping[Any, str] | None = None,
    ) -> Self:
        """Return the tree of codes whose first characters are the codes of the nodes above them.

        Parameters
        ----------
        codes : column
            Codes as text. Those of inner nodes may be listed too, as classifications do, or left
            out.
        lengths : sequence of int
            The length of the codes at each depth, increasing, such as (2, 5, 11, 12) for states,
            counties, tracts and block groups. Dots count as well, as in (1, 3, 5, 6) for A01.11 of
            NACE.
        root, leaves_only, labels
            As in :meth:`from_columns`. Where labels have the code of a node with zeros after it, as
            01000 for the state 01 of counties, and the tree has no such code, it is that node's.

        Returns
        -------
        Hierarchy
            A tree whose names are the codes, which must be text in the data too.

        Raises
        ------
        ValueError
            If a code has another length.

        Examples
        --------
        >>> from geomdp.tables import Hierarchy
        >>> titles = {"A": "Agriculture, forestry and fishing", "A01": "Crops and animals"}
        >>> tree = Hierarchy.from_prefixes(["A01.11", "A01.12"], (1, 3, 5, 6), labels=titles)
        >>> tree.nodes, tree.labels["A01"]
        (['A', 'A01', 'A01.1', 'A01.11', 'A01.12'], 'Crops and animals')

        """
        if isinstance(lengths, str) or not isinstance(lengths, Sequence) or not len(lengths):
            raise TypeError(parameters.foreign("lengths", lengths, "a sequence of integers"))
        sizes = [parameters.at_least("lengths", length, 1) for length in lengths]
        if any(one >= two for one, two in pairwise(sizes)):
            raise ValueError("lengths are not accepted: give them in increasing order")
        items = _items("codes", codes)
        for code in items:
            if not isinstance(code, str):
                raise TypeError(
                    f"codes have one of type {type(code).__name__}: give text, which keeps zeros"
                )
            if len(code) not in sizes:
                raise ValueError(
                    f"the code {parameters.shown(code)} has {many(len(code), 'character')}, which "
                    "is not among lengths: give the length of the codes of each depth"
                )
        rows = [[code[:n] if len(code) >= n else None for code in items] for n in sizes]
        if isinstance(labels, Mapping):
            labels = _of_nodes(labels, {code for row in rows for code in row}, sizes)
        return cls._of_rows("codes", rows, root=root, leaves_only=leaves_only, labels=labels)

    @classmethod
    def _of_rows(
        cls,
        what: str,
        columns: list[list[Any]],
        *,
        root: Any,
        separator: str | None = None,
        leaves_only: bool,
        labels: Mapping[Any, str] | None,
    ) -> Self:
        """Return the tree of rows of names, or without a separator of codes that include others."""
        if separator is not None:
            _check_separator(separator)
        names, above = named_rows.tree(what, columns, inner=separator is None)
        first = [names[place] for place in np.flatnonzero(above < 0).tolist()]
        if root is None and len(first) > 1:
            raise ValueError(
                f"{what} begin with several names, {parameters.shown(first)}: give root=, a name "
                "for the sum of all"
            )
        paths = None
        if separator is not None and all(map(str.__instancecheck__, names)):
            paths = Paths(separator, int(root is not None))
        if root is not None:
            [root] = levels.checked("root", [root])
            if root in first or root == "":
                raise ValueError(parameters.refusal("root", root, "a name that no node below has"))
            names, above = [root, *names], np.concatenate([[-1], above + 1])
        for name in names if paths is not None else ():
            naming.check_apart("the name", name, paths)
        found = cls.__new__(cls)
        label = partial(naming.labels, paths=paths)
        found._fill(names, above, leaves_only, labels, label=label, paths=paths)
        return found

    @classmethod
    def _stated(
        cls,
        nodes: list[Any],
        parents: NDArray[np.int64],
        *,
        paths: Paths | None,
        leaves_only: bool,
        labels: Mapping[Any, str],
    ) -> Self:
        """Return the tree that a file or a pickle states, by the labels of its nodes.

        The parent of each node is its place among them, or -1.
        """
        _check_names(nodes, [])
        if len(parents) != len(nodes) or not ((parents >= -1) & (parents < len(nodes))).all():
            raise ValueError("parents are not those of nodes")
        found = cls.__new__(cls)
        found._fill(nodes, parents, leaves_only, labels, paths=paths)
        if found.nodes != nodes:
            raise ValueError("nodes are not in the order of their tree")
        if paths is not None:
            written = naming.written(found.nodes, found._tree, paths)
            if any(
                paths.separator in node and node != whole
                for node, whole in zip(found.nodes, written, strict=True)
            ):
                raise ValueError("nodes have other paths than their parents say")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        facts: dict[str, Any] = {
            "paths": self._paths,
            "leaves_only": self.leaves_only,
            "labels": self.labels,
        }
        return partial(type(self)._stated, **facts), (self.nodes, self._tree.parents)

    @property
    def leaves(self) -> list[Any]:
        """The nodes without children."""
        if "leaves" not in self._made:
            self._made["leaves"] = levels.taken(self.nodes, self._tree.leaves)
        found: list[Any] = self._made["leaves"]
        return found

    def __len__(self) -> int:
        return len(self._tree.leaves)

    def __getitem__(self, place: Any) -> Any:
        return self.leaves[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.leaves)

    @property
    def leaves_only(self) -> bool:
        """Whether every record belongs to a leaf."""
        return not self._tree.loose

    @property
    def depth(self) -> int:
        """The depth of the deepest leaves; that of the root is 0."""
        return self._tree.depth

    @property
    def parents(self) -> dict[Any, Any]:
        """The parent of each node; None for the root."""
        above = map(self.nodes.__getitem__, self._tree.parents[1:].tolist())
        return dict(zip(self.nodes, [None, *above], strict=True))

    def at_depth(self, depth: int) -> list[Any]:
        """Return the nodes of this depth.

        Parameters
        ----------
        depth : int
            0 for the root.

        Examples
        --------
        >>> from geomdp.tables import Hierarchy
        >>> Hierarchy({"a": "all", "b": "all"}).at_depth(1)
        ['a', 'b']

        """
        at = parameters.at_least("depth", depth, 0)
        if at > self.depth:
            raise ValueError(parameters.refusal("depth", at, f"an int of at most {self.depth}"))
        return self.nodes[self._tree.level(at)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        same_tree = self.leaves_only == other.leaves_only and np.array_equal(
            self._tree.parents, other._tree.parents
        )
        same_names = (self._paths, self.labels) == (other._paths, other.labels)
        return self is other or (same_tree and same_names and self.nodes == other.nodes)

    __hash__ = None  # type: ignore[assignment]  # its nodes may be many

    def __repr__(self) -> str:
        root = parameters.shown(self.nodes[0])
        return (
            f"<Hierarchy of {many(len(self.nodes), 'node')} with root {root}, "
            f"leaves: {len(self)}, depth {self.depth}{', leaves only' * self.leaves_only}>"
        )


def _pairs(children: Any, parents: Any) -> tuple[list[Any], list[Any]]:
    """Return the children, each once, and the parent of each."""
    if isinstance(children, Mapping):
        if parents is not None:
            raise TypeError("parents are for a column of children: a mapping already has both")
        both = [[*children], [*children.values()]]
    elif parents is None:
        raise TypeError(
            parameters.foreign("children", children, "a mapping from child to parent, or a column")
        )
    else:
        both = [_items("children", children), _items("parents", parents)]
        if len(both[0]) != len(both[1]):
            raise ValueError(f"children are {len(both[0])} and parents {len(both[1])}: give pairs")
        if not levels.distinct(both[0]):
            first = {child: place for place, child in reversed([*enumerate(both[0])])}
            twice = next(child for place, child in enumerate(both[0]) if first[child] < place)
            raise ValueError(f"{parameters.shown(twice)} is a child twice: give each one once")
    _check_names(*both)
    return both[0], both[1]


def _check_names(children: list[Any], parents: list[Any]) -> None:
    """Refuse children and parents that name no node."""
    kinds = levels.kinds(children), levels.kinds(parents)
    for names, found in zip((children, parents), kinds, strict=True):
        for name in names if found - _NAMES else ():
            try:
                fine = hash(name) is not None and name == name  # noqa: PLR0124 (a NaN is not)
            except TypeError:
                fine = False
            if not fine:
                raise TypeError(f"a node of type {type(name).__name__} is not accepted: give names")
    if type(None) in kinds[0]:
        raise ValueError("None is a child, which is not accepted: give each node a name")
    if "" in children or "" in parents:
        raise ValueError("'' is not accepted as a node: give None as the parent of the root")


def _joined(children: list[Any], parents: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the names of all nodes, children first, and the place of the parent of each, or -1.

    Different parents are few, so each is looked for among the children, and no child among all.
    """
    codes = {name: code for code, name in enumerate(dict.fromkeys(parents))}
    own = np.fromiter(map(codes.get, children, repeat(-1)), np.int64, len(children))
    inner = np.flatnonzero(own >= 0)
    places = np.full(len(codes), -1)
    places[own[inner]] = inner
    tops = [name for name, at in zip(codes, places.tolist(), strict=True) if at < 0]
    tops = [name for name in tops if name is not None]
    places[[codes[name] for name in tops]] = len(children) + np.arange(len(tops))
    above = places[np.fromiter(map(codes.__getitem__, parents), np.int64, len(parents))]
    return [*children, *tops], np.append(above, np.full(len(tops), -1))


def _of_nodes(labels: Mapping[Any, Any], known: set[Any], sizes: list[int]) -> dict[Any, Any]:
    """Return labels by the codes of nodes, given those of nodes with zeros up to another length."""
    found: dict[Any, Any] = {}
    for code, label in labels.items():
        node = code
        if code not in known and isinstance(code, str) and len(code) in sizes:
            shorter = (
                code[:n] for n in reversed(sizes) if n < len(code) and not code[n:].strip("0")
            )
            node = next((each for each in shorter if each in known), code)
        if node == code or node not in labels:
            found[node] = label
    return found


def _labels(nodes: list[Any], tree: trees.Tree, paths: Paths | None, labels: Any) -> dict[Any, str]:
    """Return the label of each node that has one, by the node, in the order of the tree."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        wanted = "a mapping from nodes to their labels"
        raise TypeError(parameters.foreign("labels", labels, wanted))
    if not labels:
        return {}
    known = naming.places(nodes, tree, paths)
    found: dict[int, str] = {}
    for node, label in labels.items():
        if node not in known:
            raise naming.unknown("labels", node, nodes, paths)
        what = f"the label of {parameters.shown(node)}"
        if not isinstance(label, str):
            raise TypeError(f"{what} has type {type(label).__name__}: give text")
        if not label or not parameters.is_text(label):
            raise ValueError(f"{what} is not accepted: give {parameters.TEXT}, or leave it out")
        found[known[node]] = label
    return {nodes[place]: found[place] for place in sorted(found)}


def _check_separator(separator: Any) -> None:
    """Refuse separators that cannot be between names."""
    parameters.check_text("separator", separator)
    if not separator:
        raise ValueError(parameters.refusal("separator", separator, "text such as '/'"))


def _items(name: str, column: Any) -> list[Any]:
    """Return the items of a column, with None for nulls."""
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return list(column.tolist())
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    if _columns.is_column(column):
        return native.items_of(_columns.as_narwhals(name, column, "a column", series_only=True))
    if not parameters.has_items(column) or isinstance(column, np.ndarray):
        raise TypeError(parameters.foreign(name, column, "a column"))
    return list(column)


def _cycle(names: list[Any], parents: NDArray[Any]) -> str | None:
    """Return a node of a cycle, or None if there is none."""
    above, seen = parents.tolist(), dict[int, int]()
    for start in range(len(above)):
        place = start
        while place >= 0 and place not in seen:
            seen[place] = start
            place = above[place]
        if place >= 0 and seen[place] == start:
            return parameters.shown(names[place])
    return None
