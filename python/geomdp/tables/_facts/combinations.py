"""Columns of a table whose levels are a list of combinations: a domain that is no product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts.axes import Axis, View
from geomdp.tables._math.trees import Tree


class CombinationAxis(Axis):
    """Several columns together, whose levels are tuples.

    A record has one of them, so that whatever goes by the place of a level is as in a list. Frames,
    files and questions have the columns, each of which is an axis of the values that it has.
    """

    def __init__(
        self,
        label: str,
        levels: Any,
        *,
        columns: tuple[str, ...],
        other: Sequence[Any] = (),
        complete: bool = False,
        margin: Sequence[Any] = (),
        chosen: bool = False,  # Tables are refused before.
        shares: Any = None,
        bins: Any = None,
    ) -> None:
        if bins is not None:
            raise ValueError(
                f"bins of {label!r} are not accepted for combinations: give them for other columns"
            )
        if margin:
            raise ValueError(
                f"margins {parameters.given(margin[0])} is not accepted for the combinations of "
                f"{columns}, whose totals by column are sums of noisy cells: give margins for "
                "other columns"
            )
        values = _by_column(columns, levels)
        others = [_of_other(columns, each) for each in other]
        self._faces = [
            Axis(name, [*dict.fromkeys(items)], other=[each[place] for each in others])
            for place, (name, items) in enumerate(zip(columns, values, strict=True))
        ]
        self.label, self.columns, self.complete = label, columns, complete
        self.hierarchy, self.bins, self._columns = None, None, {}
        self.margin, self.chosen = False, chosen
        self.other = [tuple(face.other[0] for face in self._faces)] if others else []
        self.nodes = [*zip(*values, strict=True), *self.other]
        self.tree, self.shown = Tree(np.full(len(self.nodes), -1)), np.arange(len(self.nodes))
        self.shares = self._shared(shares)

    @property
    def faces(self) -> Sequence[Axis]:
        """The columns of a table that show its levels."""
        return self._faces

    @property
    def reads(self) -> list[tuple[Axis, str]]:
        """The columns of the data, each with the axis that has its levels."""
        return [(face, face.label) for face in self._faces]

    def view(self, names: Sequence[str]) -> View:
        """Return what rows by some of its faces have: sums over all combinations that share them.

        They are the ones that occur, in the order of the first combination that each is in.
        """
        if len(names) == len(self._faces):
            return View(self, None)
        chosen = [place for place, face in enumerate(self._faces) if face.label in names]
        if len(chosen) == 1:
            return View(self._faces[chosen[0]], self._nodes[chosen[0]])
        parts = [tuple(map(node.__getitem__, chosen)) for node in self.nodes]
        axis = CombinationAxis(
            "/".join(names),
            [*dict.fromkeys(parts[: len(parts) - len(self.other)])],
            columns=tuple(names),
            other=parts[len(parts) - len(self.other) :],
        )
        return View(axis, axis.of_items(parts, len(parts)))

    def columns_of(self, nodes: NDArray[Any]) -> dict[str, Coded]:
        """Return columns of the labels of nodes, by name."""
        pairs = zip(self._faces, self._nodes, strict=True)
        return {face.label: face.coded(own[nodes]) for face, own in pairs}

    def columns_of_cells(self, places: NDArray[Any]) -> dict[str, Coded]:
        """Return columns of the labels of cells, which are the nodes."""
        return self.columns_of(places)

    def items(self, columns: Sequence[list[Any]]) -> Iterable[Any]:
        """Return what each record has in the columns of the data."""
        return zip(*columns, strict=True)

    @cached_property
    def cell_places(self) -> dict[Any, int]:
        """The place of each combination among what is counted."""
        return {each: place for place, each in enumerate(self.nodes)}

    def of_rows(self, columns: Sequence[Any], rest: Sequence[Any]) -> NDArray[Any]:
        """Return the place of each row's combination in the columns of a file.

        That of the row for the rest, whose labels this list has, comes after all of them.
        """
        known = self.cell_places | ({tuple(rest): self.size} if rest else {})
        found = list[list[Any]]()
        for at, (column, face) in enumerate(zip(columns, self._faces, strict=True)):
            labels = [*face.nodes, *rest[at : at + 1]]
            found.append(list(map(labels.__getitem__, column.among(labels).tolist())))
        places = [known.get(row, -1) for row in zip(*found, strict=True)]
        if -1 in places:
            raise ValueError("it has other rows than its description")
        return np.array(places, np.int64)

    def cells_of_rows(self, columns: Sequence[Any]) -> NDArray[Any]:
        """Return the place of each row's combination in the columns of a file."""
        return self.of_rows(columns, ())

    @cached_property
    def _nodes(self) -> list[NDArray[np.int64]]:
        """The node that each combination has in each column."""
        pairs = zip(self._faces, zip(*self.nodes, strict=True), strict=True)
        return [face.of_items(items, self.size) for face, items in pairs]


def _by_column(columns: tuple[str, ...], levels: Any) -> list[list[Any]]:
    """Return the values of each column, of combinations that are distinct and as long as these."""
    name = f"combinations of {columns}"
    if not isinstance(levels, Sequence) or isinstance(levels, str | bytes):
        raise TypeError(parameters.foreign(name, levels, "a list of tuples, or a Hierarchy"))
    for kind in _levels.kinds(levels):
        if not issubclass(kind, tuple | list):
            raise TypeError(f"{name} have one of type {kind.__name__}: give tuples")
    if sizes := {*map(len, levels)} - {len(columns)}:
        raise ValueError(
            f"{name} have one of {many(sizes.pop(), 'value')}: give {len(columns)} in each"
        )
    # To give a million tuples to zip takes ten times as long.
    values = [
        _levels.column(f"levels of {column!r}", [each[place] for each in levels])
        for place, column in enumerate(columns)
    ]
    for column, each in zip(columns, values, strict=True):
        if None in each:
            raise ValueError(
                f"{name} have None in {column!r}: leave them out, and give other= to count records "
                "without a value"
            )
    if not levels or not _levels.distinct([*zip(*values, strict=True)]):
        raise ValueError(f"{name} are empty or repeat one: give each once")
    return values


def _of_other(columns: tuple[str, ...], label: Any) -> tuple[Any, ...]:
    """Return the label of other records in each column: a tuple of labels, or one for all."""
    if not isinstance(label, tuple):
        return (label,) * len(columns)
    if len(label) != len(columns):
        raise ValueError(
            f"other = {parameters.shown(label)} is not accepted for {columns}: give one label, or "
            "one for each of these columns"
        )
    return label
