"""The public tree: its nodes, what a release costs, how accurate it is, and the release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp import frames
from geomdp._analysis import trees
from geomdp._inputs import arrays, columns, labels, parameters
from geomdp._inputs.parameters import Exact, Real
from geomdp._notebook import many
from geomdp.frames import Design, _native
from geomdp.hierarchy._noisy import LIMIT, Noise, NoisyHierarchy
from geomdp.mechanism import GeometricMechanism

if TYPE_CHECKING:
    from geomdp.accounting import Budget

#: The name of the column of nodes, unless a table has another.
NODE = "node"


class Hierarchy(Sequence[Any]):
    """A public tree, of any depth; branches may differ in size and depth.

    A hierarchy is the sequence of its leaves, so it may stand for the levels of a column of a
    :class:`geomdp.frames.Design`: ``Design({"area": hierarchy, "sex": ["f", "m"]})``.

    Parameters
    ----------
    children : mapping, or column
        The parent of each node: a mapping from child to parent, or a column of children. The root
        may be left out, or have None as its parent. Take the tree from public knowledge, not from
        the data.
    parents : column, optional
        The parents, beside a column of children.

    Attributes
    ----------
    nodes, leaves : lists
        From the root down. Siblings are next to each other, in the order in which they were given.
    depth : int
        The depth of the deepest leaves; that of the root is 0.

    Raises
    ------
    ValueError
        If there is not exactly one root, a node has two parents, or there is a cycle.

    Examples
    --------
    >>> from geomdp.hierarchy import Hierarchy
    >>> tree = Hierarchy({"North": "all", "South": "all", "A": "North", "B": "North"})
    >>> tree.nodes, tree.leaves, tree.depth
    (['all', 'North', 'South', 'A', 'B'], ['South', 'A', 'B'], 2)
    >>> noisy = tree.release({"A": 210, "B": 42, "South": 385}, epsilon=1)
    >>> estimates = noisy.estimates()
    >>> abs(estimates["A"] + estimates["B"] - estimates["North"]) < 1e-9
    True
    >>> lower, upper = noisy.intervals(alpha=0.05)["North"]
    >>> upper - lower in (11, 12)
    True

    """

    __slots__ = ("_places", "_tree", "leaves", "nodes")

    def __init__(self, children: Any, parents: Any = None) -> None:
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
            self._tree, order = trees.arranged(above)
        except ValueError:
            found = _cycle(names, above)
            raise ValueError(f"{found} is below itself: give a tree without cycles") from None
        self.nodes: list[Any] = [names[place] for place in order.tolist()]
        self.leaves: list[Any] = [self.nodes[place] for place in self._tree.leaves.tolist()]
        self._places: dict[Any, int] = {name: place for place, name in enumerate(self.nodes)}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parents,)

    @property
    def depth(self) -> int:
        """The depth of the deepest leaves; that of the root is 0."""
        return self._tree.depth

    @property
    def parents(self) -> dict[Any, Any]:
        """The parent of each node; None for the root."""
        above = (self.nodes[place] for place in self._tree.parents[1:].tolist())
        return dict(zip(self.nodes, [None, *above], strict=True))

    def level(self, depth: int) -> list[Any]:
        """Return the nodes of this depth.

        Parameters
        ----------
        depth : int
            0 for the root.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> Hierarchy({"a": "all", "b": "all"}).level(1)
        ['a', 'b']

        """
        at = parameters.at_least("depth", depth, 0)
        if at > self.depth:
            raise ValueError(parameters.refusal("depth", at, f"an int of at most {self.depth}"))
        return self.nodes[self._tree.level(at)]

    def mechanisms(
        self,
        epsilon: Exact,
        shares: Sequence[Exact] | None = None,
        *,
        design: Design | None = None,
    ) -> list[GeometricMechanism]:
        """Return the mechanism of each level, from the root down.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole tree. A str such as "0.1" is exact.
        shares : sequence of numbers, optional
            The parts of epsilon for the levels, from the root down, in proportion. By default all
            are equal: the noise of the noisiest count is then as small as it can be, and so is the
            sum of its variances over the levels.
        design : Design, optional
            The design of the counts, for its sensitivity; otherwise an individual changes one leaf
            by 1.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> tree = Hierarchy({"a": "all", "b": "all"})
        >>> [mechanism.epsilon for mechanism in tree.mechanisms(1, shares=[1, 3])]
        [Fraction(1, 4), Fraction(3, 4)]

        """
        total = parameters.positive_fraction("epsilon", parameters.exact("epsilon", epsilon))
        levels = self.depth + 1
        parts = [Fraction(1)] * levels
        if shares is not None:
            if not isinstance(shares, Sequence | np.ndarray) or isinstance(shares, str):
                raise TypeError(parameters.foreign("shares", shares, "a sequence of numbers"))
            if len(shares) != levels:
                raise ValueError(
                    f"shares of length {len(shares)} are not accepted: give {levels}, from the "
                    "root down"
                )
            parts = [
                parameters.positive_fraction(f"shares[{d}]", parameters.exact("shares", share))
                for d, share in enumerate(shares)
            ]
        sensitivity = 1 if design is None else _checked(design).sensitivity
        whole = sum(parts)
        return [GeometricMechanism(total * part / whole, sensitivity) for part in parts]

    def accuracy(
        self,
        *,
        epsilon: Exact,
        alpha: Real,
        shares: Sequence[Exact] | None = None,
        design: Design | None = None,
        simultaneous: bool = False,
    ) -> list[int]:
        """Return the accuracy at level alpha of the estimates of each level, from the root down.

        It is that of the least accurate node of the level: its error exceeds it with probability at
        most `alpha`. No data are needed.

        Parameters
        ----------
        epsilon, shares, design
            As in :meth:`mechanisms`.
        alpha : int, float or Fraction
            The significance level, above 0 and at most 1.
        simultaneous : bool
            Whether `alpha` is the probability that any node's error is larger.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> tree = Hierarchy({n: f"region {n // 10}" for n in range(40)} | {
        ...     f"region {n}": "country" for n in range(4)})
        >>> tree.accuracy(epsilon=1, alpha=0.05)
        [8, 8, 9]

        """
        mechanisms = self.mechanisms(epsilon, shares, design=design)
        noise = Noise(self, self._column(design)[0], mechanisms)
        reaches = noise.reaches.of_nodes(noise.level(alpha, simultaneous=simultaneous))
        return [
            math.ceil(reaches[self._tree.level(depth)].max()) for depth in range(self.depth + 1)
        ]

    def release(
        self,
        counts: Any,
        *,
        epsilon: Exact,
        shares: Sequence[Exact] | None = None,
        design: Design | None = None,
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
    ) -> NoisyHierarchy:
        """Return noisy counts of all nodes.

        Parameters
        ----------
        counts : mapping, column, array or Table
            The exact count of each leaf: a mapping from leaves, a pandas Series with the leaves as
            its index, or integers in the order of :attr:`leaves`. All leaves must be there, those
            with a count of 0 too. A :class:`geomdp.frames.Table` has the leaves as the levels of
            one column, and no margins; its other columns cross the tree. Counts beyond ``2**62``
            over the number of leaves are clamped to that.
        epsilon, shares
            As in :meth:`mechanisms`.
        design : Design, optional
            That of counts other than a table: it may have other columns, and its sensitivity
            counts. An array then has the shape of the design, with leaves in the order of its
            levels.
        budget : Budget, optional
            Books the privacy loss before any noise is drawn, and refuses a release that exceeds it.
        label : str, optional
            A name for the release, for the budget's history and for readers.
        threads : int, optional
            The greatest number of threads for a large level; by default as many as are faster.

        Returns
        -------
        NoisyHierarchy
            One individual changes one path from a leaf to the root, or as many as the sensitivity
            says, so the losses of the levels add up to `epsilon`.

        Raises
        ------
        ValueError
            If names of counts are not those of the leaves, or the budget does not allow the
            release.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.frames import Design
        >>> from geomdp.hierarchy import Hierarchy
        >>> tree = Hierarchy({"Oslo": "Europe", "Rome": "Europe"})
        >>> people = pd.DataFrame({"town": ["Oslo", "Rome", "Rome"], "sex": ["f", "m", "f"]})
        >>> table = Design({"town": tree, "sex": ["f", "m"]}).count(people)
        >>> noisy = tree.release(table, epsilon=1)
        >>> list(noisy)[:3], noisy.privacy_loss
        ([('Europe', 'f'), ('Europe', 'm'), ('Oslo', 'f')], 1.0)

        """
        if label is not None and not isinstance(label, str):
            raise TypeError(parameters.foreign("label", label, "a str or None"))
        if isinstance(counts, frames.Table):
            if design is not None:
                raise TypeError("design goes with counts other than a table, which has its own")
            design = counts.design
        mechanisms = self.mechanisms(epsilon, shares, design=design)
        own, order = self._column(design)
        noise = Noise(self, own, mechanisms)
        count = parameters.threads(threads) or None
        for each in mechanisms:
            each.certificate()  # A mechanism that has no plan is refused before it is booked.

        def booked(leaves: NDArray[np.int64]) -> NDArray[np.int64]:
            if budget is not None:
                budget.book(noise.loss, label=label)
            return self._noisy(leaves, mechanisms, count)

        try:
            noisy = booked(self._counts(counts, own, order))
        except BaseException as error:
            # The local variables of these calls hold exact counts, and some tracebacks show them.
            raise error.with_traceback(None) from None
        return NoisyHierarchy(noise, noisy, label)

    def _counts(self, counts: Any, design: Design, order: NDArray[Any]) -> NDArray[np.int64]:
        """Return the counts of leaves, with an axis for all other columns."""
        if isinstance(counts, frames.Table):
            values: Any = counts._whole()
        else:
            [bare], named = labels.detach(counts=counts)
            values = arrays.as_array(bare)
            if named.keys is not None and len(design.levels) == 1:
                values = values[self._order("counts", named.keys)]
                order = np.arange(len(self.leaves))
            if values.shape != design.shape:
                raise ValueError(
                    f"counts are of shape {values.shape}: give one for each leaf, of shape "
                    f"{design.shape}"
                )
        limit = LIMIT // len(self.leaves)
        info = np.iinfo(values.dtype)
        values = values.clip(max(-limit, int(info.min)), min(limit, int(info.max)))
        place = self._axis(design)
        moved: NDArray[np.int64] = np.moveaxis(values.astype(np.int64), place, 0)[order]
        return moved.reshape(len(self.leaves), -1)

    def _noisy(
        self,
        leaves: NDArray[np.int64],
        mechanisms: Sequence[GeometricMechanism],
        threads: int | None,
    ) -> NDArray[np.int64]:
        """Add up the counts of all nodes, and return them with noise."""
        tree = self._tree
        counts = np.zeros((tree.size, leaves.shape[1]), np.int64)
        counts[tree.leaves] = leaves
        counts = tree.sums(counts)
        for depth, mechanism in enumerate(mechanisms):
            level = tree.level(depth)
            counts[level] = mechanism.release(counts[level], threads=threads)
        return counts

    def _column(self, design: Design | None) -> tuple[Design, NDArray[Any]]:
        """Return the design with the leaves in the order of the tree, and their places in it."""
        if design is None:
            return Design({NODE: self.leaves}), np.arange(len(self))
        label = list(_checked(design).levels)[self._axis(design)]
        order = self._order(f"levels of {label!r}", design.levels[label])
        given = design._arguments()
        levels = {**design._base, label: self.leaves}
        return Design(**(given | {"levels": levels})), order

    def _axis(self, design: Design) -> int:
        """Return the place of the column of a design whose levels are the leaves, or nearest to."""
        if len(design.levels) == 1:
            return 0
        common = [sum(each in self._places for each in levels) for levels in design.levels.values()]
        return int(np.argmax(common))

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

    def __len__(self) -> int:
        return len(self.leaves)

    def __getitem__(self, place: Any) -> Any:
        return self.leaves[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.parents == other.parents and self.nodes == other.nodes

    __hash__ = None  # type: ignore[assignment]  # its nodes may be many

    def __repr__(self) -> str:
        root = parameters.shown(self.nodes[0])
        return (
            f"<Hierarchy of {many(len(self.nodes), 'node')} with root {root}, "
            f"leaves: {len(self)}, depth {self.depth}>"
        )


def _checked(design: Any) -> Design:
    """Return a design that may be that of the leaves."""
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    if design._margins:
        raise ValueError(
            "a design with margins is not accepted: the tree has its own sums; give one without"
        )
    return design


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


def _cycle(names: list[Any], parents: NDArray[Any]) -> str:
    """Return a node of a cycle."""
    above, seen = parents.tolist(), dict[int, int]()
    for start in range(len(above)):
        place = start
        while place >= 0 and place not in seen:
            seen[place] = start
            place = above[place]
        if place >= 0 and seen[place] == start:
            return parameters.shown(names[place])
    raise AssertionError
