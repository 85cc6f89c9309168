"""Noisy counts of a tree: estimates that add up, and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook, consistency
from geomdp._analysis import decimals, trees, weighted
from geomdp._analysis.hierarchies import Reaches
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.frames import Design, Estimate, _native
from geomdp.frames._native import Library
from geomdp.hierarchy import _format
from geomdp.mechanism import GeometricMechanism, exact_loss

if TYPE_CHECKING:
    from os import PathLike

    from geomdp.hierarchy._tree import Hierarchy

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

#: The greatest exact count, of the root; noise that reaches it counts as an error.
LIMIT = 2**62


class Interval(NamedTuple):
    """An interval for a true count.

    Attributes
    ----------
    lower, upper : int
        Its ends, which it includes.

    Examples
    --------
    >>> from geomdp.hierarchy import Interval
    >>> Interval(lower=3, upper=7).upper
    7

    """

    lower: int
    upper: int


class Noise:
    """Everything public about the noise of a release."""

    def __init__(
        self, hierarchy: Hierarchy, design: Design, mechanisms: Sequence[GeometricMechanism]
    ) -> None:
        self.hierarchy, self.design, self.mechanisms = hierarchy, design, list(mechanisms)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.hierarchy, self.design, self.mechanisms)

    @property
    def loss(self) -> Fraction:
        """The exact privacy loss for one individual."""
        distance = self.design.sensitivity
        return sum((Fraction(exact_loss(m, distance)) for m in self.mechanisms), Fraction(0))

    @cached_property
    def reaches(self) -> Reaches:
        """The least squares, and how far they are from the true counts."""
        return Reaches(self.hierarchy._tree, [Fraction(each.rate) for each in self.mechanisms])

    @cached_property
    def label(self) -> Any:
        """The name of the column of nodes."""
        return list(self.design.levels)[self.place]

    @cached_property
    def place(self) -> int:
        """The place of the column of nodes in the design."""
        return self.hierarchy._axis(self.design)

    @cached_property
    def others(self) -> dict[Any, list[Any]]:
        """The levels of the columns that cross the tree."""
        return {label: x for label, x in self.design.levels.items() if label != self.label}

    @cached_property
    def width(self) -> int:
        """The number of counts of each node."""
        return math.prod(map(len, self.others.values()))

    def level(self, alpha: Real, *, simultaneous: bool = False, columns: int = 1) -> float:
        """Return the level of ideal noise for an interval, or for each of all intervals."""
        parameters.check_bool("simultaneous", simultaneous)
        given = parameters.significance("alpha", alpha)
        tree, many = self.hierarchy._tree, self.width if simultaneous else columns
        noises = [
            (
                each.rate,
                (tree.starts[depth + 1] - tree.starts[depth]) * many,
                Fraction(each.certificate(np.int64).total_variation),
            )
            for depth, each in enumerate(self.mechanisms)
        ]
        level = weighted.ideal(given, noises, LIMIT)
        if level <= 0:
            wanted = f"more than {float(given - level):.3g}, the error of the sampled distribution"
            raise ValueError(parameters.refusal("alpha", float(given), wanted))
        return decimals.down(level / (tree.size * many if simultaneous else 1))


class ByNode(Mapping[Any, Any]):
    """A public value for each node, as a mapping and as a frame.

    The keys are the nodes from the root down, or tuples in the order of the columns of the design,
    if other columns cross the tree.

    Examples
    --------
    >>> from geomdp.hierarchy import Hierarchy
    >>> tree = Hierarchy({"a": "all", "b": "all"})
    >>> found = tree.release({"a": 3, "b": 5}, epsilon=1).intervals(alpha=0.05)
    >>> list(found), list(found.frame().columns)
    (['all', 'a', 'b'], ['node', 'estimate', 'lower', 'upper'])

    """

    def __init__(
        self,
        noise: Noise,
        columns: Mapping[str, NDArray[Any]],
        value: Callable[..., Any] | None = None,
    ) -> None:
        self._noise, self._columns, self._value = noise, dict(columns), value

    def frame(self, *, library: Library | None = None) -> Any:
        """Return the values as a frame, with a row for each key.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; the first of these that is installed.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> noisy = Hierarchy({"a": "all", "b": "all"}).release({"a": 3, "b": 5}, epsilon=1)
        >>> noisy.frame()["node"].tolist()
        ['all', 'a', 'b']

        """
        noise = self._noise
        rows = zip(*self._rows(), strict=True)
        named = dict(zip(noise.design.levels, map(list, rows), strict=True))
        return _native.made(
            named | {name: x.reshape(-1) for name, x in self._columns.items()}, library
        )

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the levels of each row: nodes from the root down, the last column fastest."""
        noise = self._noise
        for node, other in product(noise.hierarchy.nodes, product(*noise.others.values())):
            yield (*other[: noise.place], node, *other[noise.place :])

    def _index(self, key: Any) -> tuple[int, int]:
        """Return the node and the place of a key in an array of the values."""
        noise = self._noise
        if not noise.others:
            return noise.hierarchy._places[key], 0
        if not isinstance(key, tuple) or len(key) != len(noise.design.levels):
            raise KeyError(key)
        sides = noise.others.values()
        other = [each for place, each in enumerate(key) if place != noise.place]
        if any(each not in side for each, side in zip(other, sides, strict=True)):
            raise KeyError(key)
        at = tuple(side.index(each) for each, side in zip(other, sides, strict=True))
        shape = tuple(map(len, sides))
        return noise.hierarchy._places[key[noise.place]], int(np.ravel_multi_index(at, shape))

    def __getitem__(self, key: Any) -> Any:
        at = self._index(key)
        if self._value is None:
            return next(iter(self._columns.values()))[at].item()
        fields = self._value._fields  # type: ignore[attr-defined] # a named tuple
        return self._value(*(self._columns[name][at].item() for name in fields))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._noise.hierarchy.nodes) if not self._noise.others else self._rows()

    def __len__(self) -> int:
        return len(self._noise.hierarchy.nodes) * self._noise.width

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {self[key]!r}" for key in islice(self, 4))
        more = ", ..." if len(self) > 4 else ""
        return f"<{type(self).__name__} of {len(self)}: {shown}{more}>"

    def _repr_html_(self) -> str:
        return _notebook.preformatted(repr(self))


class NoisyHierarchy(ByNode):
    """Released counts of a tree: a mapping from nodes to noisy counts, and what follows from them.

    :meth:`Hierarchy.release` makes one, and :func:`read` reads one from a file. It holds no
    exact count, so it may be shown, pickled and published. All that it computes comes from the
    noisy counts, so it costs no more privacy.

    Examples
    --------
    >>> from geomdp.hierarchy import Hierarchy
    >>> tree = Hierarchy({"a": "all", "b": "all"})
    >>> noisy = tree.release({"a": 30, "b": 5}, epsilon="0.5")
    >>> list(noisy), noisy.privacy_loss, noisy.mechanisms[0].epsilon
    (['all', 'a', 'b'], 0.5, Fraction(1, 4))

    """

    def __init__(self, noise: Noise, noisy: _Ints, label: str | None = None) -> None:
        super().__init__(noise, {noise.design.name: noisy})
        self._noisy, self._label = noisy, label

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        return self._noise.hierarchy

    @property
    def design(self) -> Design:
        """The design of the leaves' counts, whose column of nodes has the leaves of the tree."""
        return self._noise.design

    @property
    def mechanisms(self) -> list[GeometricMechanism]:
        """The mechanism of each level, from the root down."""
        return list(self._noise.mechanisms)

    @property
    def label(self) -> str | None:
        """The label under which the release was booked."""
        return self._label

    @property
    def epsilon(self) -> Fraction:
        """The exact privacy loss of the whole tree for one individual."""
        return self._noise.loss

    @property
    def privacy_loss(self) -> float:
        """The privacy loss of the whole tree for one individual, rounded up."""
        return decimals.up(self.epsilon)

    def estimates(self) -> ByNode:
        """Return the unbiased estimates of least variance that add up, as floats.

        These are the weighted least squares of all noisy counts, with the inverses of the variances
        of the noise as weights (Hay, Rastogi, Miklau and Suciu 2010, for any tree). Two passes over
        the tree compute them. They may be negative.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> estimates = Hierarchy({"a": "all", "b": "all"}).release({"a": 3, "b": 5}, epsilon=1)
        >>> found = estimates.estimates()
        >>> abs(found["a"] + found["b"] - found["all"]) < 1e-9
        True

        """
        sums, more = self._fitted
        return ByNode(self._noise, {"estimate": sums + more})

    def intervals(self, alpha: Real, *, simultaneous: bool = False) -> ByNode:
        """Return an interval for the true count of each node.

        The interval is the estimate plus or minus a bound on its error, which is a weighted sum of
        all independent noises. The bound is the narrower of two that are proved
        (``docs/proofs.md``, section 17): the inverted characteristic function of the sum, smoothed
        by 2% of its standard deviation; and an exponential bound with the exact tail of the widest
        noise, which is a few percent wider. A large tree whose nodes are of many kinds, by shape
        and place, has the second alone. :attr:`bound` says which.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that an interval misses: 0.05 for 95% confidence.
        simultaneous : bool
            Whether `alpha` is the probability that any of the intervals misses.

        Returns
        -------
        ByNode
            Of :class:`Interval`; its frame has the estimates too. Ends are integers, as true
            counts are, and may be negative.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> noisy = Hierarchy({"a": "all", "b": "all"}).release({"a": 30, "b": 5}, epsilon=1)
        >>> lower, upper = noisy.intervals(alpha=0.05)["a"]
        >>> upper - lower in (8, 9)
        True

        """
        noise = self._noise
        level = noise.level(alpha, simultaneous=simultaneous)
        reaches = noise.reaches.of_nodes(level)[:, None] + self._margin
        sums, more = self._fitted
        lower = sums + np.ceil(more - reaches).astype(np.int64)
        upper = sums + np.floor(more + reaches).astype(np.int64)
        return ByNode(noise, {"estimate": sums + more, "lower": lower, "upper": upper}, Interval)

    def total(self, nodes: Iterable[Any], *, alpha: Real) -> Estimate:
        """Return the estimate of the sum of a union of nodes, with an interval for the true sum.

        Parameters
        ----------
        nodes : iterable of keys
            The keys of the nodes. What several of them contain counts once.
        alpha
            As in :meth:`intervals`.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> tree = Hierarchy({"a": "all", "b": "all", "c": "all"})
        >>> noisy = tree.release({"a": 30, "b": 5, "c": 12}, epsilon=1)
        >>> found = noisy.total(["a", "c"], alpha=0.05)
        >>> found.lower < found.estimate < found.upper
        True

        """
        noise, tree = self._noise, self.hierarchy._tree
        chosen = np.zeros((tree.size, noise.width))
        for key in dict.fromkeys(nodes):
            try:
                chosen[self._index(key)] = 1
            except KeyError:
                raise KeyError(
                    f"nodes have {parameters.shown(key)}, which is no key: give those of nodes"
                ) from None
        inside = np.zeros_like(chosen)
        for depth in range(tree.depth):
            level = tree.level(depth + 1)
            above = tree.parents[level]
            inside[level] = np.maximum(inside[above], chosen[above])
        chosen[inside > 0] = 0
        columns = np.flatnonzero(chosen.any(axis=0))
        level_of_one = noise.level(alpha, columns=max(len(columns), 1))
        terms = [term for column in columns for term in noise.reaches.terms(chosen[:, column])]
        reach = weighted.reach(terms, level_of_one) + self._margin * int(chosen.sum())
        sums, more = self._fitted
        base, rest = int(sums[chosen > 0].sum()), float(more[chosen > 0].sum())
        lower, upper = base + math.ceil(rest - reach), base + math.floor(rest + reach)
        return Estimate(base + rest, lower, upper)

    @property
    def bound(self) -> str:
        """Which bound :meth:`intervals` use: ``"inversion"`` or ``"exponential"``."""
        return "inversion" if self._noise.reaches.one_by_one else "exponential"

    def consistent(self, total: Integer | None = None) -> ByNode:
        """Return the non-negative integers that add up, closest to the noisy counts.

        They have the least sum of squared distances from the noisy counts, over the variances of
        the noise. The result is for tables that must make sense to the eye; where counts are near
        0 it is biased upwards (``docs/consistency.md``), so take intervals from this object.

        Parameters
        ----------
        total : int, optional
            A public total.

        Raises
        ------
        OverflowError
            If a noisy count is beyond ``2**40``.

        Examples
        --------
        >>> from geomdp.hierarchy import Hierarchy
        >>> noisy = Hierarchy({"a": "all", "b": "all"}).release({"a": 30, "b": 0}, epsilon=1)
        >>> found = noisy.consistent(total=31)
        >>> found["all"], found["a"] + found["b"]
        (31, 31)

        """
        noise, noisy = self._noise, self._noisy
        if np.abs(noisy.astype(np.float64)).max() > consistency.GREATEST:
            raise OverflowError("noisy counts reach beyond 2**40: give smaller counts")
        parents = noise.hierarchy._tree.parents
        size, width = noisy.shape
        # A tree for each column, and a node above them for the total.
        offsets = np.arange(width) * size
        above = np.where(parents[:, None] < 0, -1, parents[:, None] + offsets)
        variances = noise.reaches.squares.noise
        weights = np.repeat((variances.max() / variances)[:, None], width, axis=1)
        forest = above.T.reshape(-1), noisy.T.reshape(-1), weights.T.reshape(-1)
        if total is not None:
            public = parameters.at_least("total", total, 0)
            if public > consistency.GREATEST:
                raise OverflowError("total reaches beyond 2**40: give a smaller one")
            forest = (
                np.append(np.where(forest[0] < 0, noisy.size, forest[0]), -1),
                np.append(forest[1], public),
                np.append(forest[2], np.inf),
            )
        found = trees.closest(*forest)[: noisy.size].reshape(width, size).T
        return ByNode(noise, {noise.design.name: found})

    def save(
        self, path: str | PathLike[str], *, overwrite: bool = False, certificate: bool = False
    ) -> None:
        """Write the noisy counts to a file, with all that a reader needs (``docs/format.md``).

        Parameters and errors are those of :meth:`geomdp.frames.NoisyTable.save`. Nodes must be all
        str or all int.

        Examples
        --------
        >>> import tempfile
        >>> import geomdp
        >>> noisy = geomdp.hierarchy.Hierarchy({"a": "all", "b": "all"}).release([3, 5], epsilon=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     noisy.save(f"{folder}/all.csv")
        ...     read = geomdp.hierarchy.read(f"{folder}/all.csv")
        >>> read == noisy, read.intervals(0.05) == noisy.intervals(0.05)
        (True, True)

        """
        _format.save(self, path, overwrite=overwrite, certificate=certificate)

    @cached_property
    def _fitted(self) -> tuple[_Ints, _Floats]:
        """The sums of noisy leaves, and what the least squares add to them.

        The least squares keep counts that add up, so they apply to the differences alone. All
        floats are then of the size of the noise, however large the counts are.
        """
        tree = self.hierarchy._tree
        sums = tree.sums(np.where(tree.children[:, None] > 0, 0, self._noisy))
        return sums, self._noise.reaches.squares((self._noisy - sums).astype(np.float64))

    @cached_property
    def _margin(self) -> float:
        """More than the rounding errors of an estimate.

        A pass makes at most as many roundings as a node has children, and some, at each level; so
        do its weights. Each error is a part of a sum of the differences.
        """
        tree, (sums, _) = self.hierarchy._tree, self._fitted
        roundings = 8 * (tree.depth + 2) ** 2 * (int(tree.children.max()) + 8)
        size = float(np.abs((self._noisy - sums).astype(np.float64)).sum())
        return roundings * size * 2.0**-52

    def __repr__(self) -> str:
        loss = f"privacy loss {_notebook.short(self.epsilon)} for one individual"
        return f"{super().__repr__()[:-1]}; {loss}>"
