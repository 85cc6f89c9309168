"""What a question selects: rows of nodes, chosen levels, and the values and sizes of groups."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import notebook, parameters
from geomdp._inputs import labels
from geomdp.tables._facts.axes import Axes
from geomdp.tables._math import ends
from geomdp.tables._math.products import Groups

if TYPE_CHECKING:
    from geomdp.tables._columns.native import Coded
    from geomdp.tables._facts.axes import Axis, View

#: The name of one column, or a tuple of names; () for the grand total.
Columns: TypeAlias = Any
_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Names that a frame of answers has besides those of columns.
_NAMES = ("estimate", "percent", "lower", "upper", "standard_error")


class Rows(NamedTuple):
    """The rows of an answer: some nodes of each column that it keeps, or sums over groups."""

    axes: tuple[int, ...] = ()
    nodes: tuple[_Ints, ...] = ()
    views: tuple[View, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.nodes))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def names(self) -> list[str]:
        """The columns that it keeps."""
        return [face.label for view in self.views for face in view.axis.faces]

    @property
    def grouped(self) -> list[int]:
        """Which of the axes have sums over groups."""
        return [at for at, view in enumerate(self.views) if view.of is not None]

    def of(self, at: int) -> _Ints:
        """Return the row of an axis that has each of its nodes, or -1."""
        view, nodes = self.views[at], self.nodes[at]
        found = np.full(view.axis.tree.size, -1)
        found[nodes] = np.arange(len(nodes))
        return view.lifted(found)

    def groups(self, place: int, weights: NDArray[Any]) -> Groups:
        """Return weights of the nodes of a column in groups, by all axes that are of it."""
        of, many = np.zeros(len(weights), np.int64), 1
        for at in (at for at, own in enumerate(self.axes) if own == place):
            own, size = self.of(at), self.shape[at]
            of, many = np.where((of < 0) | (own < 0), -1, of * size + own), many * size
        return Groups(of, np.where(of < 0, 0, weights), many)

    def inside(self, at: int, row: int) -> _Ints:
        """Return 1 for the nodes of an axis that a row has, and 0 for others."""
        return np.asarray(self.of(at) == row, np.int64)

    def without(self, some: Container[int]) -> Rows:
        """Return the rows without some of their axes."""
        kept = [each for at, each in enumerate(zip(*self, strict=True)) if at not in some]
        return Rows(*zip(*kept, strict=True))

    def columns(self, _: Axes) -> dict[str, Coded]:
        """Return the columns of levels."""
        found: dict[str, Coded] = {}
        index = np.indices(self.shape, sparse=True)
        for view, nodes, at in zip(self.views, self.nodes, index, strict=True):
            found |= view.axis.columns_of(np.broadcast_to(nodes[at], self.shape).reshape(-1))
        return found


class Listed(NamedTuple):
    """The rows of an answer about some cells, by all columns."""

    cells: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.cells.shape

    @property
    def size(self) -> int:
        return self.cells.size

    def columns(self, axes: Axes) -> dict[str, Coded]:
        """Return the columns of levels."""
        return axes.columns(self.cells)


_NO_ROWS = Rows()
#: A selection of all cells.
_ALL: Mapping[int, NDArray[Any]] = {}


def rows_of(axes: Axes, by: Columns) -> Rows:
    """Return the rows of a frame that keeps these columns."""
    views = axes.of("by", by)
    found = Rows(
        tuple(views), tuple(view.axis.asked for view in views.values()), tuple(views.values())
    )
    if named := [label for label in found.names if label in _NAMES]:
        raise ValueError(f"by has {named[0]!r}, the name of a column of answers: give others")
    return found


def column_of(axes: Axes, name: str, label: Any, rows: Rows) -> tuple[int, View]:
    """Return the place of the axis of a column that rows do not keep, and what it has of it."""
    [found] = axes.of(name, (label,)).items()
    if label in rows.names:
        raise ValueError(f"{name} has {label!r}, which is in by: give it once")
    return found


def sum_of(
    axes: Sequence[Axis], rows: Rows, chosen: Mapping[int, NDArray[Any]] = _ALL
) -> list[Any]:
    """Return a sum of estimates: over all nodes of the columns not kept, or with weights."""
    every = [chosen.get(place, roots(axis)) for place, axis in enumerate(axes)]
    found: list[Any] = [None if place in rows.axes else each for place, each in enumerate(every)]
    for place in {rows.axes[at] for at in rows.grouped}:
        found[place] = rows.groups(place, every[place])
    return found


def roots(axis: Axis) -> _Ints:
    return axis.root_weights


def choose(axes: Axes, name: str, levels: Any, rows: Rows) -> dict[int, NDArray[Any]]:
    """Return for each column of a selection 1 for its nodes, but for those below others."""
    if not isinstance(levels, Mapping):
        raise TypeError(parameters.foreign(name, levels, "a mapping of column names to levels"))
    found: dict[int, NDArray[Any]] = {}
    for label, given in levels.items():
        place, view = column_of(axes, name, label, rows)
        tree = view.axis.tree
        chosen = np.zeros(tree.size, np.int64)
        for each in given if isinstance(given, list | set) else [given]:
            try:
                hash(each)
            except TypeError:
                wanted = "levels, or lists of levels"
                raise TypeError(parameters.foreign(name, each, wanted)) from None
            chosen[view.axis.node(name, each)] = 1
        inside = np.zeros_like(chosen)
        for depth in range(tree.depth):
            below = tree.below(depth)
            above = tree.parents[below]
            inside[below] = np.maximum(inside[above], chosen[above])
        own = view.lifted(chosen * (1 - inside))
        found[place] = own if place not in found else found[place] * own
    return found


def cell_weights(axis: Axis, weights: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of cells that stand for those of nodes."""
    found = weights.copy()
    for depth in range(axis.tree.depth):
        below = axis.tree.below(depth)
        found[below] += found[axis.tree.parents[below]]
    return np.asarray(found[axis.tree.cells])


def is_part(
    axes: Sequence[Axis], one: Mapping[int, NDArray[Any]], other: Mapping[int, NDArray[Any]]
) -> bool:
    """Return whether a selection is a part of another."""
    return all(
        bool(
            (cell_weights(axes[x], one.get(x, roots(axes[x]))) <= cell_weights(axes[x], each)).all()
        )
        for x, each in other.items()
    )


def values_of(
    axes: Axes, column: Any, values: Any, rows: Rows
) -> tuple[int, View, dict[int, Fraction]]:
    """Return the place of a column, what it has there, and the values of leaves that have one."""
    place, view = column_of(axes, "column", column, rows)
    axis = view.axis
    if values is None:
        # The label of other records is not their value, even if it is a number.
        values = dict(zip(axis.levels, axis.levels, strict=True)) | dict.fromkeys(axis.other)
    if not isinstance(values, Mapping):
        raise TypeError(parameters.foreign("values", values, "a mapping from levels to numbers"))
    leaves = axis.leaf_nodes
    found: dict[int, Fraction] = {}
    for level, value in values.items():
        if level not in leaves:
            raise ValueError(f"{parameters.shown(level)}, in values=, is not a level of {column!r}")
        try:
            found[leaves[level]] = Fraction(parameters.finite("values", value))
        except (TypeError, ValueError):
            if value is None and axis.other and level == axis.levels[-1]:
                raise ValueError(
                    f"other records of {column!r}, in {parameters.shown(level)}, have no number as "
                    "their value: give values, a mapping from levels to numbers; records of levels "
                    "that it leaves out do not count"
                ) from None
            raise ValueError(
                f"level {parameters.shown(level)} of {column!r} has no number as its value: give "
                "values, a mapping from levels to numbers"
            ) from None
    if not found:
        raise ValueError("values are empty: give the value of at least one level")
    return place, view, found


def weights_of(size: int, values: Mapping[int, Fraction]) -> tuple[_Floats, Fraction, Fraction]:
    """Return the values of some nodes as weights, their unit, and the most that one is off.

    They are integers if float64 has these.
    """
    unit = Fraction(1, math.lcm(*(each.denominator for each in values.values())))
    if max(abs(each / unit) for each in values.values()) > ends.EXACT:
        unit = Fraction(1)
    found = np.zeros(size)
    for node, each in values.items():
        found[node] = float(each / unit)
    off = max(abs(Fraction(found[node]) * unit - each) for node, each in values.items())
    return found, unit, off


def populations(axes: Axes, population: Any, rows: Rows | Listed) -> NDArray[Any]:
    """Return the public size of each row's group, as a Fraction."""
    if rows.shape == ():
        return np.array(parameters.positive_fraction("population", population), object)
    [bare], named = labels.detach(population=population)
    if not parameters.has_items(bare):
        wanted = "a mapping from groups to numbers"
        raise TypeError(parameters.foreign("population", population, wanted))
    numbers = parameters.each("population", bare, parameters.positive_fraction)
    if named.keys is None:
        if len(numbers) != rows.size:
            raise ValueError(
                f"population has {notebook.many(len(numbers), 'number')}: give {rows.size}, one "
                "for each row"
            )
        return np.array(numbers, object).reshape(rows.shape)
    sizes = dict(zip(named.keys, numbers, strict=True))
    if isinstance(rows, Listed):
        levels = [each.listed() for each in rows.columns(axes).values()]
        keys = levels[0] if len(levels) == 1 else [*zip(*levels, strict=True)]
        _check_sizes(key for key in keys if key not in sizes)
        return np.array([sizes[key] for key in keys], object)
    kept = Axes(each.axis for each in rows.views)
    whole = np.full([axis.tree.size for axis in kept], math.nan, object)
    for key, number in sizes.items():
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) == len(rows.names):
            named_by = zip(kept, kept.joined(parts), strict=True)
            at = [axis.places.get(part) for axis, part in named_by]
            if None not in at:
                whole[tuple(at)] = number
    added = whole
    for place, axis in enumerate(kept):
        leaves = np.moveaxis(added, place, 0).copy()
        leaves[axis.tree.children > 0] = 0
        added = np.moveaxis(axis.tree.sums(leaves), 0, place)
    # Only NaN is not itself.
    found = np.where(whole == whole, whole, added)[np.ix_(*rows.nodes)]  # noqa: PLR0124
    lost = np.argwhere(found != found).tolist()  # noqa: PLR0124
    labels_of = [
        kept.separate(
            axis.nodes[nodes[x]] for axis, nodes, x in zip(kept, rows.nodes, at, strict=True)
        )
        for at in lost[:1]
    ]
    _check_sizes(tuple(key) if len(key) > 1 else key[0] for key in labels_of)
    return found


def _check_sizes(lost: Iterable[Any]) -> None:
    """Refuse sizes of groups that lack one."""
    for key in lost:
        raise ValueError(
            f"population has no number for {parameters.shown(key)}: give one for each group"
        )


def common_nodes(name: str, one: Axis, nodes: _Ints, two: Axis) -> tuple[_Ints, _Ints]:
    """Return those of the nodes of a column that another release has too, and its nodes."""
    facts, others = ((x.nodes, x.cells, x.tree.parents.tolist()) for x in (one, two))
    if facts == others:
        return nodes, nodes
    below, theirs = map(_levels_below, (one, two))
    if set(one.cells) != set(two.cells) or any(
        theirs.get(label, levels) != levels for label, levels in below.items()
    ):
        raise ValueError(
            f"{name} has other levels of {one.label!r}, which is in by: give a release with the "
            "same"
        )
    places = {label: node for node, label in enumerate(two.nodes)}
    own = [node for node in nodes.tolist() if one.nodes[node] in places]
    return np.array(own), np.array([places[one.nodes[node]] for node in own])


def _levels_below(axis: Axis) -> dict[Any, set[Any]]:
    """Return the levels below each node, or of it."""
    found = {label: set[Any]() for label in axis.nodes}
    for level, cell in zip(axis.cells, axis.tree.cells.tolist(), strict=True):
        node = cell
        while node >= 0:
            found[axis.nodes[node]].add(level)
            node = int(axis.tree.parents[node])
    return found
