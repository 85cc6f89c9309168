"""The public tree of a column: such as districts in regions in a country."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp._inputs import arrays, columns, labels, parameters
from geomdp._inputs.parameters import Real
from geomdp._notebook import many, showable
from geomdp._uncopied import unseen
from geomdp.tables import _levels, _native
from geomdp.tables._analysis import trees
from geomdp.tables._axes import MOST_DEPTHS, Branches
from geomdp.tables._design import Design
from geomdp.tables._exact import occupied
from geomdp.tables._table import Table

if TYPE_CHECKING:
    from os import PathLike

    from geomdp.accounting import Budget
    from geomdp.tables._noisy import NoisyTable
    from geomdp.tables._released import Released

#: The name of the column of nodes, for counts without a design.
NODE = "node"


@showable
class Hierarchy(Branches):
    """A public tree, of any depth; branches may differ in size and depth.

    It stands for the levels of a column, ``Design({"area": hierarchy, "sex": ["f", "m"]})``: a
    release then has a noisy count of every node. Its items are its leaves.

    Parameters
    ----------
    children : mapping, or column
        The parent of each node: a mapping from child to parent, or a column of children. The root
        may be left out, or have None as its parent. Take the tree from public knowledge, not from
        the data.
    parents : column, optional
        The parents, beside a column of children.
    leaves_only : bool
        Whether each record is known to a leaf. By default a record may have an inner node alone,
        such as a county without a municipality: it counts there and above, so that a node has at
        least the records of its children. Say so from public knowledge if there are none of these:
        nodes are then the sums of their children, and estimates use that. Records of inner nodes
        are then records of other values.

    Attributes
    ----------
    nodes, leaves : lists
        From the root down. Siblings are next to each other, in the order given.
    depth : int
        The depth of the deepest leaves; that of the root is 0.

    Raises
    ------
    ValueError
        If there is not exactly one root, a node has two parents, there is a cycle, or there are
        more than 100 depths.

    Examples
    --------
    >>> from geomdp.tables import Hierarchy
    >>> tree = Hierarchy({"North": "all", "South": "all", "A": "North", "B": "North"})
    >>> tree.nodes, tree.leaves, tree.depth
    (['all', 'North', 'South', 'A', 'B'], ['South', 'A', 'B'], 2)
    >>> noisy = tree.release({"A": 210, "B": 42, "South": 385}, epsilon=1)
    >>> list(noisy.intervals(alpha=0.05))
    ['node', 'estimate', 'lower', 'upper']

    """

    __slots__ = ("_places",)

    def __init__(self, children: Any, parents: Any = None, *, leaves_only: bool = False) -> None:
        parameters.check_bool("leaves_only", leaves_only)
        given = _pairs(children, parents)
        known = dict.fromkeys(given)
        known.update(dict.fromkeys(parent for parent in given.values() if parent is not None))
        names = list(known)
        if not names:
            raise ValueError("children are empty: give at least one pair of a child and a parent")
        places = {name: place for place, name in enumerate(names)}
        above = np.array([places.get(given.get(name), -1) for name in names], np.int64)
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
        super().__init__(_levels.checked("nodes", [names[place] for place in order.tolist()]), tree)
        self._places: dict[Any, int] = {name: place for place, name in enumerate(self.nodes)}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), leaves_only=self.leaves_only), (self.parents,)

    @property
    def leaves_only(self) -> bool:
        """Whether each record is known to a leaf."""
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

    @unseen
    def release(
        self,
        counts: Any,
        *,
        epsilon: Real,
        shares: Sequence[Real] | None = None,
        design: Design | None = None,
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
        corrects: Released | None = None,
        save: str | PathLike[str] | None = None,
    ) -> NoisyTable:
        """Return noisy counts of all nodes, given the exact counts of the leaves.

        Inner nodes have the sums of these alone, whatever :attr:`leaves_only` is.
        :meth:`Design.count` counts records, and bounds the contributions of each individual.

        Parameters
        ----------
        counts : mapping, column or array
            The exact count of each leaf: a mapping from leaves, a pandas Series with the leaves as
            its index, or integers in the order of :attr:`leaves`. All leaves must be there, those
            with a count of 0 too. No value raises an error, which would show it: those below 0 are
            taken for 0.
        epsilon : number or str
            The privacy loss of the whole tree. A str such as "0.1" is exact.
        shares : sequence of numbers, optional
            The parts of epsilon for the depths, from the root down, in proportion. By default all
            are equal: the noise of the noisiest count is then as small as it can be, and so is the
            sum of its variances over the depths.
        design : Design, optional
            The design of the counts, with the tree as a column, with `leaves_only`: it may have
            other columns, and its sensitivity applies. Counts are then an array with an axis for
            each column. Otherwise an individual changes one leaf by 1.
        budget : Budget, optional
            Books the privacy loss before any noise is drawn, and refuses a release that exceeds it.
        label : str, optional
            A name for the release, for the budget's history and for readers.
        threads : int, optional
            The greatest number of threads for a large depth; by default as many as help.
        corrects : NoisyTable, NoisyGroups or Top, optional
            The release that this one replaces.
        save : str or path, optional
            A file to publish the release to. All that can be wrong with it is refused before
            anything is booked, as by :meth:`Table.release`.

        Returns
        -------
        NoisyTable
            One individual changes one path from a leaf to the root for each of its cells, so the
            losses of the depths add up to `epsilon`.

        Raises
        ------
        ValueError
            If names of counts are not those of the leaves, or the budget does not allow the
            release.
        FileExistsError
            If `save` has the name of a file. Nothing is booked then.

        Examples
        --------
        >>> from geomdp.tables import Hierarchy
        >>> tree = Hierarchy({"Oslo": "Europe", "Rome": "Europe"})
        >>> noisy = tree.release({"Oslo": 210, "Rome": 42}, epsilon=1)
        >>> list(noisy.to_dict()), noisy.privacy_loss()
        (['Europe', 'Oslo', 'Rome'], 1.0)

        """
        if isinstance(counts, Table):
            raise TypeError("counts of a table know their design: call its own release")
        added = self._added()
        whole = Design({NODE: added}) if design is None else design
        if not isinstance(whole, Design):
            raise TypeError(parameters.foreign("design", design, "a Design"))
        column = next((axis.label for axis in whole._axes if axis.hierarchy == added), None)
        if column is None:
            raise ValueError(
                "design has no column of this hierarchy with leaves_only: give one that has"
            )
        table = Table(whole, None, occupied(self._array(counts, whole)))
        by_depth = None if shares is None else {column: shares}
        return table.release(
            epsilon=epsilon,
            shares=by_depth,
            budget=budget,
            label=label,
            threads=threads,
            corrects=corrects,
            save=save,
        )

    def _added(self) -> Hierarchy:
        """Return this tree, with nodes that are the sums of their children."""
        if self.leaves_only:
            return self
        found = Hierarchy.__new__(Hierarchy)
        Branches.__init__(found, self.nodes, trees.Tree(self._tree.parents))
        found._places = self._places
        return found

    def _array(self, counts: Any, design: Design) -> NDArray[Any]:
        """Return the counts in the order of the leaves."""
        [bare], named = labels.detach(counts=counts)
        values = arrays.as_array(bare)
        if named.keys is not None and len(design._axes) == 1:
            values = values[self._order("counts", named.keys)]
        if values.shape != design._axes.sizes:
            raise ValueError(
                f"counts are of shape {values.shape}: give one for each leaf, of shape "
                f"{design._axes.sizes}"
            )
        return values

    def _order(self, name: str, keys: Sequence[Any]) -> NDArray[Any]:
        """Return the place of each leaf among keys, which must be the leaves."""
        places = {key: place for place, key in enumerate(keys)}
        for key in places:
            if key not in self._places:
                raise ValueError(f"{name} have {parameters.shown(key)}, which is no node")
            if self._tree.children[self._places[key]]:
                raise ValueError(
                    f"{name} have {parameters.shown(key)}, which is no leaf: give those of leaves"
                )
        missing = [leaf for leaf in self.leaves if leaf not in places]
        if missing:
            raise ValueError(
                f"{name} are without {parameters.shown(missing)}: give every leaf, also those "
                "without records"
            )
        if len(places) < len(keys):
            raise ValueError(f"{name} have a leaf twice: give each once")
        return np.array([places[leaf] for leaf in self.leaves])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        same_tree = self.leaves_only == other.leaves_only and np.array_equal(
            self._tree.parents, other._tree.parents
        )
        return self is other or (same_tree and self.nodes == other.nodes)

    __hash__ = None  # type: ignore[assignment]  # its nodes may be many

    def __repr__(self) -> str:
        root = parameters.shown(self.nodes[0])
        return (
            f"<Hierarchy of {many(len(self.nodes), 'node')} with root {root}, "
            f"leaves: {len(self)}, depth {self.depth}{', leaves only' * self.leaves_only}>"
        )


def _pairs(children: Any, parents: Any) -> dict[Any, Any]:
    """Return the parent of each child."""
    if isinstance(children, Mapping):
        if parents is not None:
            raise TypeError("parents go with a column of children: a mapping has both")
        found = dict(children)
    elif parents is None:
        raise TypeError(
            parameters.foreign("children", children, "a mapping from child to parent, or a column")
        )
    else:
        both = [_items("children", children), _items("parents", parents)]
        if len(both[0]) != len(both[1]):
            raise ValueError(f"children are {len(both[0])} and parents {len(both[1])}: give pairs")
        found = {}
        for child, parent in zip(*both, strict=True):
            if child in found:
                raise ValueError(f"{parameters.shown(child)} is a child twice: give each one once")
            found[child] = parent
    for name in (*found, *found.values()):
        try:
            fine = hash(name) is not None and name == name  # noqa: PLR0124 (a NaN is not)
        except TypeError:
            fine = False
        if not fine:
            raise TypeError(f"a node of type {type(name).__name__} is not accepted: give names")
    if None in found:
        raise ValueError("None is a child, which is not accepted: give each node a name")
    if "" in found or "" in found.values():
        raise ValueError("'' is not accepted as a node: give None as the parent of the root")
    return found


def _items(name: str, column: Any) -> list[Any]:
    """Return the items of a column, with None for nulls."""
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    if columns.is_column(column):
        return _native.items_of(columns.as_narwhals(name, column, "a column", series_only=True))
    if not isinstance(column, Iterable) or isinstance(column, str | bytes):
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
