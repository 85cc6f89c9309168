"""What a question selects: rows of nodes, chosen levels, and the values and sizes of groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import notebook, parameters
from geomdp._inputs import labels
from geomdp.tables._math import ends
from geomdp.tables._math.products import Sum

if TYPE_CHECKING:
    from geomdp.tables._columns.native import Coded
    from geomdp.tables._facts.axes import Axes, Axis

#: The name of one column, or a tuple of names; () for the grand total.
Columns: TypeAlias = Any
_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Names that a frame of answers has besides those of columns.
_NAMES = ("estimate", "percent", "lower", "upper", "standard_error")


class Rows(NamedTuple):
    """The rows of an answer: some nodes of each column that it keeps."""

    axes: tuple[int, ...] = ()
    nodes: tuple[_Ints, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.nodes))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def columns(self, axes: Axes) -> dict[str, Coded]:
        """Return the columns of levels."""
        index = np.indices(self.shape, sparse=True)
        return {
            axes[place].label: axes[place].coded(np.broadcast_to(nodes[at], self.shape).reshape(-1))
            for place, nodes, at in zip(self.axes, self.nodes, index, strict=True)
        }


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


def rows_of(axes: Sequence[Axis], by: Columns) -> Rows:
    """Return the rows of a frame that keeps these columns."""
    asked = by if isinstance(by, tuple | list) else (by,)
    kept = tuple(sorted({place_of(axes, "by", label) for label in asked}))
    for place in kept:
        if axes[place].label in _NAMES:
            raise ValueError(
                f"by has {axes[place].label!r}, the name of a column of answers: give others"
            )
    return Rows(kept, tuple(axes[place].asked for place in kept))


def place_of(axes: Sequence[Axis], name: str, label: Any, rows: Rows = _NO_ROWS) -> int:
    """Return the place of a column that rows do not keep."""
    known = [axis.label for axis in axes]
    if label not in known:
        raise KeyError(f"{name} = {label!r} is no column of the table: give one of {known}")
    place = known.index(label)
    if place in rows.axes:
        raise ValueError(f"{name} has {label!r}, which is in by: give it once")
    return place


def sum_of(
    axes: Sequence[Axis], kept: Sequence[int], chosen: Mapping[int, NDArray[Any]] = _ALL
) -> Sum:
    """Return a sum of estimates: over all nodes of the columns not kept, or with weights."""
    return [
        chosen.get(place, None if place in kept else roots(axis)) for place, axis in enumerate(axes)
    ]


def roots(axis: Axis) -> _Ints:
    return axis.root_weights


def choose(axes: Sequence[Axis], name: str, levels: Any, rows: Rows) -> dict[int, NDArray[Any]]:
    """Return for each column of a selection 1 for its nodes, but for those below others."""
    if not isinstance(levels, Mapping):
        raise TypeError(parameters.foreign(name, levels, "a mapping of column names to levels"))
    found: dict[int, NDArray[Any]] = {}
    for label, given in levels.items():
        place = place_of(axes, name, label, rows)
        tree = axes[place].tree
        chosen = np.zeros(tree.size, np.int64)
        for each in given if isinstance(given, list | set) else [given]:
            chosen[axes[place].node(name, each)] = 1
        inside = np.zeros_like(chosen)
        for depth in range(tree.depth):
            below = tree.below(depth)
            above = tree.parents[below]
            inside[below] = np.maximum(inside[above], chosen[above])
        found[place] = chosen * (1 - inside)
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
    axes: Sequence[Axis], column: Any, values: Any, rows: Rows
) -> tuple[int, dict[int, Fraction]]:
    """Return the place of a column, and the values of the leaves that have one."""
    place = place_of(axes, "column", column, rows)
    axis = axes[place]
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
    return place, found


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
    kept = [axes[place] for place in rows.axes]
    whole = np.full([axis.tree.size for axis in kept], math.nan, object)
    for key, number in sizes.items():
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) == len(kept):
            at = [axis.places.get(part) for axis, part in zip(kept, parts, strict=True)]
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
    keys = [
        tuple(axis.nodes[nodes[x]] for axis, nodes, x in zip(kept, rows.nodes, at, strict=True))
        for at in lost[:1]
    ]
    _check_sizes(key if len(key) > 1 else key[0] for key in keys)
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
