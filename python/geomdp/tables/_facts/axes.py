"""The axes of a table: the public levels of each column, and the released sums over them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import naming
from geomdp.tables._facts.bins import Bins
from geomdp.tables._facts.hierarchy import Hierarchy
from geomdp.tables._facts.rules import Common, Rule
from geomdp.tables._math.products import Block
from geomdp.tables._math.trees import Tree

#: What a design takes as the levels of a column.
Levels: TypeAlias = Sequence[Any] | Hierarchy | Rule
#: Cells are numbered by int64 up to this many, and beyond by objects of Python.
NUMBERED = 2**62


class Axis:
    """A column of a table: a forest of its levels. Every node is released.

    A list of levels has a root for each. With a margin it has one root, the sum of all, and the
    levels below it. A hierarchy is a tree of any depth.

    Attributes
    ----------
    label : str
        The name of the column.
    columns : tuple of str
        The columns of the data that it is made of: itself, or those of the names of a path.
    nodes : list
        The label of every node, in the order of the tree.
    tree : Tree
        The parent of each node.
    shares : tuple of Fractions
        The part of epsilon of each depth; they add up to 1.
    shown : array of int64
        The nodes in the order of a frame: a margin last, a hierarchy from the root down.
    other : list
        The label for other records, if there is one: that of the last level of a list, or of a leaf
        below the root of a hierarchy.
    complete : bool
        Whether the publisher states that every record has one of the levels.
    margin : bool
        Whether there is a sum over a list.
    chosen : bool
        Whether it is an axis of chosen tables, where a sum over it is no level that answers list.
    hierarchy : Hierarchy or None
        The tree that it was made from.
    bins : Bins or None
        Where the levels of a list begin and end.
    rule : Rule or None
        What states its levels, of a :class:`RuleAxis`.

    """

    rule: Rule | None = None

    def __init__(
        self,
        label: str,
        levels: Any,
        *,
        other: Sequence[Any] = (),
        complete: bool = False,
        margin: Sequence[Any] = (),
        chosen: bool = False,
        shares: Any = None,
        columns: tuple[str, ...] | None = None,
        bins: Any = None,
    ) -> None:
        self.label, self.hierarchy = label, levels if isinstance(levels, Hierarchy) else None
        self.other, self.margin, self.complete = list(other), bool(margin), complete
        self.chosen = chosen
        self._columns: dict[str, Any] = {}
        self.columns = (label,) if columns is None else columns
        words, items = f"levels of {label!r}", levels
        if self.hierarchy is not None:
            if margin:
                raise ValueError(
                    f"margins {parameters.given(margin[0])} is not accepted for {label!r}, a "
                    "hierarchy, which has its sums already: give margins for other columns"
                )
            self.nodes, self.tree = self.hierarchy.nodes, self.hierarchy._tree
            # Where all paths have a blank, there are more columns than depths.
            most = self.depths if self.paths is None else len(self.columns)
            if self.several and not self.tree.depth <= len(self.columns) <= most:
                raise ValueError(
                    f"columns {self.columns} are not accepted for a hierarchy with depths up to "
                    f"{self.tree.depth}: give one for each, with that of the root or without"
                )
            if other:
                naming.check_apart(f"other of {label!r},", other[0], self.paths)
                self.tree = self.tree.with_leaf()
                end = self.tree.starts[2] - 1
                items = _levels.checked(
                    f"nodes of {label!r} with other {parameters.given(other[0])}",
                    [*self.nodes, *other],
                )
                self.nodes = [*items[:end], items[-1], *items[end:-1]]
            self.shown = np.arange(self.tree.size)
        else:
            items = _levels.checked(words, levels)
            for name, extra in (("other", other), ("margins", margin)):
                if extra:
                    words += f" with {name} {parameters.given(extra[0])}"
                    items = _levels.checked(words, [*items, *extra])
            size = len(items)
            parents = np.full(size, -1)
            self.shown = np.arange(size)
            if margin:
                parents[1:] = 0
                items, self.shown = [items[-1], *items[:-1]], np.append(self.shown[1:], 0)
            self.nodes, self.tree = items, Tree(parents)
        self.bins: Bins | None = None
        if bins is not None:
            if self.hierarchy is not None:
                raise ValueError(
                    f"bins of {label!r} are not accepted for a hierarchy: give a list of levels"
                )
            self.bins = Bins(label, bins, len(items) - len(other) - len(margin))
        self.shares = self._shared(shares)

    @cached_property
    def levels(self) -> list[Any]:
        """The labels of the leaves, in the order of the tree."""
        return _levels.taken(self.nodes, self.tree.leaves)

    @cached_property
    def cells(self) -> list[Any]:
        """What is counted: leaves, and nodes with records of their own, in the tree's order."""
        return _levels.taken(self.nodes, self.tree.cells)

    def coded(self, nodes: NDArray[np.int64]) -> Coded:
        """Return a column of the labels of nodes."""
        tree = self.hierarchy
        shared = tree is not None and self.nodes is tree.nodes
        return Coded(self.nodes, nodes, tree._made if tree and shared else self._columns)

    def at(self, places: NDArray[Any]) -> NDArray[Any]:
        """Return the nodes at places in the order of a frame."""
        return np.asarray(self.shown[places])

    @property
    def size(self) -> int:
        """The number of nodes."""
        return self.tree.size

    @property
    def many(self) -> int:
        """The number of cells."""
        return len(self.cells)

    @property
    def common(self) -> Common | None:
        """The places of a public list of levels with a threshold of their own, if there is one."""
        return None

    @property
    def faces(self) -> Sequence[Axis]:
        """The columns of a table that show its levels: itself, or those of combinations."""
        return (self,)

    @property
    def reads(self) -> list[tuple[Axis, str]]:
        """The columns of the data, each with the axis that has its levels."""
        return [(self, column) for column in self.columns]

    def view(self, names: Sequence[str]) -> View:  # noqa: ARG002 (itself, whatever its name)
        """Return what rows by some of its faces have."""
        return View(self, None)

    def columns_of(self, nodes: NDArray[Any]) -> dict[str, Coded]:
        """Return columns of the labels of nodes, by name."""
        return {self.label: self.coded(nodes)}

    def columns_of_cells(self, places: NDArray[Any]) -> dict[str, Coded]:
        """Return columns of the labels of cells, by name."""
        return {self.label: Coded(self.cells, places)}

    def items(self, columns: Sequence[list[Any]]) -> Iterable[Any]:
        """Return what each record has in the columns of the data, as :meth:`of_items` takes it."""
        return map(naming.path, zip(*columns, strict=True)) if self.several else columns[0]

    @property
    def typed(self) -> list[Any]:
        """Levels that have the type of all, in the precision of all."""
        return self.cells

    @property
    def values(self) -> list[Any]:
        """What has the type of the data: levels, or the cut points of bins."""
        return self.cuts or self.typed

    @property
    def cuts(self) -> list[Any]:
        """The cut points of bins; none of other levels."""
        return [] if self.bins is None else self.bins.cuts

    @property
    def examples(self) -> list[Any]:
        """Labels of a frame with all that a file has to hold."""
        return self.shown_nodes

    def has(self, label: Any) -> bool:
        """Whether this is a level, or the label of other records."""
        return label in self.levels

    def is_level(self, _: int) -> bool:
        """Whether a place has a level."""
        return True

    def of_rows(self, columns: Sequence[Any], rest: Sequence[Any]) -> NDArray[Any]:
        """Return the place of each row's level in the columns of a file.

        That of the row for the rest, whose labels this list has, comes after all levels.
        """
        return np.asarray(columns[0].among([*self.shown_nodes, *rest]))

    def cells_of_rows(self, columns: Sequence[Any]) -> NDArray[Any]:
        """Return the place among what is counted of each row's level in the columns of a file."""
        return np.asarray(columns[0].among(self.cells))

    @property
    def depths(self) -> int:
        """The number of depths."""
        return self.tree.depth + 1

    @cached_property
    def rooted(self) -> tuple[Tree, int]:
        """The tree with the sum over the column as its root, and by how much nodes move."""
        if self.margin or self.hierarchy is not None:
            return self.tree, 0
        return Tree(np.append(-1, np.zeros(self.tree.size, np.int64))), 1

    @cached_property
    def root_weights(self) -> NDArray[np.int64]:
        """1 for roots and 0 for other nodes; nobody changes it."""
        found = np.where(self.tree.parents < 0, 1, 0)
        found.flags.writeable = False
        return found

    @cached_property
    def counts(self) -> list[int]:
        """The number of nodes of each depth."""
        return np.diff(self.tree.starts[:-1]).tolist()

    def _shared(self, shares: Any) -> tuple[Fraction, ...]:
        """Return the parts of epsilon by depth, which may be given."""
        if shares is None:
            return self._even
        return _shares(f"shares of {self.label!r}", shares, self.depths)

    @property
    def _even(self) -> tuple[Fraction, ...]:
        return (Fraction(1, self.depths),) * self.depths

    @property
    def even(self) -> bool:
        """Whether all depths have equal shares."""
        return self.shares == self._even

    @cached_property
    def shown_nodes(self) -> list[Any]:
        """The labels of the nodes in the order of a frame."""
        return _levels.taken(self.nodes, self.shown)

    @property
    def unnamed(self) -> bool:
        """Whether it has a sum without a label: that of a chosen table over the column."""
        return self.margin and self.nodes[0] is None

    @property
    def asked(self) -> NDArray[np.int64]:
        """The nodes of an answer by this column: the sum of a chosen table is no level of it."""
        return self.shown[:-1] if self.margin and self.chosen else self.shown

    @property
    def several(self) -> bool:
        """Whether it is made of several columns of the data."""
        return len(self.columns) > 1

    @property
    def key(self) -> str | tuple[str, ...]:
        """Its key among the levels of a design."""
        return self.columns if self.several else self.label

    @property
    def paths(self) -> naming.Paths | None:
        """How a tree writes paths, if it does."""
        return None if self.hierarchy is None else self.hierarchy._paths

    @cached_property
    def places(self) -> dict[Any, int]:
        """The node of each label, and of each path."""
        found = naming.places(self.nodes, self.tree, self.paths)
        if self.unnamed:
            del found[None]
        return found

    def node(self, name: str, label: Any) -> int:
        """Return the node that a question names in a parameter."""
        if label not in self.places:
            kind = "level" if self.hierarchy is None else "node"
            nodes = self.nodes[self.unnamed :]
            raise naming.unknown(name, label, nodes, self.paths, f"{kind} of {self.label!r}")
        return self.places[label]

    def among(self, other: Axis) -> NDArray[np.int64] | None:
        """Return the place of each level in a column that has the same ones; None if its own."""
        if self.rule is not None or self.cells == other.cells:
            return None
        places = {level: place for place, level in enumerate(other.cells)}
        return np.array([places[level] for level in self.cells], np.int64)

    @cached_property
    def cell_places(self) -> dict[Any, int]:
        """The place among what is counted of each item of the data: a tuple if it is of several."""
        if not self.several:
            return naming.places(self.nodes, self.tree, self.paths, self.tree.cells)
        found: dict[Any, int] = {}
        depths, known = self.tree.depths.tolist(), {*self.other}
        for start in self._starts:
            whole = naming.tuples(self.nodes, self.tree, self.paths, start)
            for place, node in enumerate(self.tree.cells.tolist()):
                if depths[node] >= start and self.nodes[node] not in known:
                    found.setdefault(whole[node], place)
        return found

    def of_items(self, items: Iterable[Any], size: int) -> NDArray[Any]:
        """Return the place among what is counted of each item of the data, or that of others."""
        if self.bins is not None:
            return self._inside(np.fromiter(map(self.bins.place, items), np.int64, size))
        return np.fromiter(map(self.cell_places.get, items, repeat(self.outside)), np.int64, size)

    @cached_property
    def _from_least(self) -> tuple[int, NDArray[np.int64]] | None:
        """The least level and the place of each integer from there, if levels are close integers.

        The last item is the place of all other integers.
        """
        cells = self.cells
        if self.several or self.paths is not None or _levels.kinds(cells) != {int}:
            return None
        least, size = min(cells), max(cells) - min(cells) + 1
        if size > 8 * len(cells):
            return None
        places = np.full(size + 1, self.outside)
        places[np.array(cells, np.int64) - least] = np.arange(len(cells))
        return least, places

    def of_integers(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the place of each integer, as :attr:`cell_places` has it; None if levels are not.

        A million look-ups in a dict take ten times as long.
        """
        if self.bins is not None:
            found = self.bins.of_integers(values)
            return None if found is None else self._inside(found)
        if self._from_least is None:
            return None
        least, places = self._from_least
        # Those below the least are above all others.
        beyond = (values - least).view(np.uint64)
        return places[np.minimum(beyond, np.uint64(places.size - 1))]

    def _inside(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return places of bins, with that of other records where there is none."""
        return np.where(places < 0, self.outside, places)

    @property
    def _starts(self) -> list[int]:
        """The depths at which the names of a record may begin: the root has a column, or none.

        With blanks, the number of columns does not tell: paths below a root of its own have none.
        """
        tree = self.hierarchy._tree  # type: ignore[union-attr]
        if len(self.columns) <= tree.depth:
            return [1]
        return [0, 1] if self.paths is not None and self.paths.start else [0]

    @property
    def leaf_nodes(self) -> dict[Any, int]:
        """The node of each leaf, by all that names it among leaves."""
        leaves = self.tree.leaves
        found = naming.places(self.nodes, self.tree, self.paths, leaves)
        return {label: int(leaves[place]) for label, place in found.items()}

    @property
    def outside(self) -> int:
        """The place of other records among those that are counted, or -1."""
        return next((self.cells.index(label) for label in self.other), -1)

    def above(self, depth: int) -> NDArray[np.int64]:
        """Return the node of a depth that has each cell, or -1."""
        found = self.tree.cells.copy()
        while (deep := self.tree.depths[found] > depth).any():
            found[deep] = self.tree.parents[found[deep]]
        return np.where(self.tree.depths[found] == depth, found, -1)

    @cached_property
    def rooms(self) -> list[int]:
        """The greatest number of cells below a node, or at it, of each depth."""
        below = np.zeros(self.tree.size, np.int64)
        below[self.tree.cells] = 1
        below = self.tree.sums(below)
        return [int(below[self.tree.level(depth)].max()) for depth in range(self.depths)]

    @cached_property
    def pairs(self) -> list[tuple[int, int, int]]:
        """The depths of two cells, and of the deepest node that has both, or -1.

        Only those pairs that no other excels, by deeper cells and a common node that is less deep.
        """
        tree = self.tree
        deepest, second = tree.depths.copy(), np.full(tree.size, -1)
        for depth in reversed(range(tree.depth)):
            inner, below = tree.inner[depth], deepest[tree.below(depth)]
            most = tree.over_children(depth, below, np.maximum)
            first = below == np.repeat(most, tree.children[inner])
            others = tree.over_children(depth, np.where(first, -1, below), np.maximum)
            alone = tree.over_children(depth, first.astype(np.int64)) == 1
            deepest[inner] = most
            # A node may have a cell of its own.
            second[inner] = np.maximum(np.where(alone, others, most), depth if tree.loose else -1)
        # By the depth of the common node and of the deeper cell, that of the other.
        found = np.full((tree.depth + 2, tree.depth + 2), -1)
        found[-1, -2] = tree.depth
        roots = np.sort(deepest[tree.level(0)])
        if roots.size > 1:
            found[0, roots[-1]] = roots[-2]
        some = np.flatnonzero(second >= 0)
        np.maximum.at(found, (tree.depths[some] + 1, deepest[some]), second[some])
        least = np.maximum.accumulate(np.maximum.accumulate(found, axis=0)[:, ::-1], axis=1)[
            :, ::-1
        ]
        shallower = np.concatenate([np.full((1, tree.depth + 2), -1), least[:-1]])
        deeper = np.pad(least[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
        kept = np.argwhere(found > np.maximum(shallower, deeper)).tolist()
        sides = [(one, int(found[place, one]), place - 1) for place, one in kept]
        return list(dict.fromkeys([*sides, *((two, one, at) for one, two, at in sides)]))

    @cached_property
    def cells_by_depth(self) -> Counter[int]:
        """How many cells each depth has."""
        counts = np.bincount(self.tree.depths[self.tree.cells]).tolist()
        return Counter({depth: count for depth, count in enumerate(counts) if count})

    @property
    def given(self) -> Any:
        """The levels without that of other records, or the hierarchy."""
        known = self.levels[: len(self.levels) - len(self.other)]
        return known if self.hierarchy is None else self.hierarchy


class View(NamedTuple):
    """What rows of an answer have of a column: nodes of it, or sums over groups of them."""

    #: What the rows are called by.
    axis: Axis
    #: For each node of the table's own axis, that of the sum which has it; None if it is itself.
    of: NDArray[np.int64] | None

    @property
    def most(self) -> int:
        """The most nodes that a sum has."""
        return 1 if self.of is None else int(np.bincount(self.of).max())

    def lifted(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return weights of the table's own nodes that stand for these of sums."""
        return weights if self.of is None else np.asarray(weights[..., self.of])


class Axes(tuple[Axis, ...]):
    """The axes of a table, which is their product: its shape, and places in arrays of its nodes."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes of each axis."""
        return tuple(axis.size for axis in self)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each axis."""
        return tuple(axis.many for axis in self)

    @property
    def blocks(self) -> list[Block]:
        """All blocks. The last one has the finest cells."""
        return list(product(*(range(axis.depths) for axis in self)))

    def joined(self, labels: Sequence[Any]) -> list[Any]:
        """Return the label of each axis, which is a tuple of those of its faces if it has many."""
        return [own[0] if len(own) == 1 else tuple(own) for own in self.split(labels)]

    def separate(self, labels: Iterable[Any]) -> list[Any]:
        """Return the label of each face, given those of axes."""
        found = list[Any]()
        for axis, label in zip(self, labels, strict=True):
            found += [label] if len(axis.faces) == 1 else label
        return found

    def block(self, depths: Block) -> tuple[slice, ...]:
        """Return the index of a block in an array of all nodes."""
        return tuple(axis.tree.level(depth) for axis, depth in zip(self, depths, strict=True))

    def counts(self, depths: Block) -> tuple[int, ...]:
        """Return how many nodes a block has on each axis."""
        return tuple(axis.counts[depth] for axis, depth in zip(self, depths, strict=True))

    @property
    def reads(self) -> list[tuple[Axis, str]]:
        """The columns of the data that are read for levels, each with an axis of its levels."""
        return [each for axis in self for each in axis.reads]

    @property
    def faces(self) -> list[Axis]:
        """The columns of a table that show levels."""
        return [face for axis in self for face in axis.faces]

    def split(self, columns: Sequence[Any]) -> list[Sequence[Any]]:
        """Return what stands beside each face, of a sequence of these, by axis."""
        ends = np.cumsum([len(axis.faces) for axis in self]).tolist()
        return [columns[end - len(axis.faces) : end] for axis, end in zip(self, ends, strict=True)]

    @property
    def leaves(self) -> tuple[NDArray[Any], ...]:
        """The index of the cells that are counted in an array of all nodes."""
        return np.ix_(*(axis.tree.leaves for axis in self))

    @property
    def shown(self) -> tuple[NDArray[Any], ...]:
        """The index that brings an array of all nodes into the order of a frame."""
        return np.ix_(*(axis.shown for axis in self))

    def columns(self, rows: NDArray[np.int64] | None = None) -> dict[str, Coded]:
        """Return the levels of some rows of a frame, or of all, by column."""
        if rows is None:
            self.check_listed()
            rows = np.arange(math.prod(self.shape))
        pairs = zip(self, self.nodes_of(rows), strict=True)
        return {x: each for axis, nodes in pairs for x, each in axis.columns_of(nodes).items()}

    def nodes_of(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the node of each axis that some rows of a frame have."""
        places = unraveled(rows, self.shape)
        return [axis.at(each) for axis, each in zip(self, places, strict=True)]

    def check_listed(self) -> None:
        """Refuse what lists all levels, where a rule states some."""
        for axis in self:
            if axis.rule is not None:
                axis.nodes  # noqa: B018 (it is refused by name)

    def of(self, name: str, columns: Any) -> dict[int, View]:
        """Return what some columns, given as an argument of this name, have of each axis."""
        asked = columns if isinstance(columns, tuple | list) else (columns,)
        places = self.places
        for label in asked:
            known = f"give one of {list(places)}"
            if not isinstance(label, str):
                # A number is not shown: it may be a count.
                raise TypeError(f"{name} of type {type(label).__name__} is not accepted: {known}")
            if label not in places:
                what = parameters.shown(label)
                raise KeyError(f"{name} = {what} is no column of the table: {known}")
        chosen: dict[int, set[str]] = {}
        for label in asked:
            chosen.setdefault(places[label], set()).add(label)
        return {
            place: self[place].view([x.label for x in self[place].faces if x.label in names])
            for place, names in sorted(chosen.items())
        }

    @property
    def places(self) -> dict[str, int]:
        """The place of the axis that each column of a table is of."""
        return {face.label: place for place, axis in enumerate(self) for face in axis.faces}


def raveled(places: Sequence[NDArray[Any]], sizes: Sequence[int], many: int) -> NDArray[Any]:
    """Return the numbers of cells, many of them, given their places on each axis."""
    cells = np.zeros(many, np.int64 if math.prod(sizes) <= NUMBERED else object)
    for at, size in zip(places, sizes, strict=True):
        cells *= size
        cells += at
    return cells


def unraveled(cells: NDArray[Any], sizes: Sequence[int]) -> list[NDArray[Any]]:
    """Return the places of cells on each axis."""
    found = list[NDArray[Any]]()
    if math.prod(sizes) > NUMBERED:
        cells = cells.astype(object)
    for size in reversed(sizes):
        cells, at = cells // size, cells % size
        found.append(at.astype(np.int64) if size <= NUMBERED else at)
    return found[::-1]


def _shares(name: str, shares: Any, depths: int) -> tuple[Fraction, ...]:
    """Return the parts of epsilon by depth, which are given in proportion."""
    if not isinstance(shares, Sequence | np.ndarray) or isinstance(shares, str):
        raise TypeError(parameters.foreign(name, shares, "a sequence of numbers"))
    if len(shares) != depths:
        raise ValueError(
            f"{name}, {len(shares)} of them, are not accepted: give {depths}, from the root down"
        )
    parts = [parameters.positive_fraction(name, share) for share in shares]
    whole = sum(parts)
    return tuple(part / whole for part in parts)
