"""Estimates of sums of true counts, and the ends of their intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy
from geomdp._ground import decimals, parameters
from geomdp._ground.parameters import Real
from geomdp._noise import Noise, errors_of
from geomdp.tables._answers import public_totals, selection
from geomdp.tables._answers.picked import Found, Operand, Picked
from geomdp.tables._answers.selection import Columns, Listed, Rows
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import counted
from geomdp.tables._facts import rounding as _rounding
from geomdp.tables._facts.axes import View, raveled, unraveled
from geomdp.tables._math import ends, products
from geomdp.tables._math.ends import Ends
from geomdp.tables._math.products import Block, Errors, Groups, Sum
from geomdp.tables._math.trees import numbers
from geomdp.tables._math.workload import Fitted, UndeterminedError, Workload

if TYPE_CHECKING:
    from geomdp.tables._facts.axes import Axes, Axis
    from geomdp.tables._facts.classes import Thresholds
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._facts.parts import Part
    from geomdp.tables._facts.tier_names import Tier

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]
_Limits: TypeAlias = tuple[int | float, int | float]

#: Limits of true values that have none.
UNLIMITED: _Limits = (-math.inf, math.inf)
#: How many sums have their weights found together.
_TOGETHER = 64
#: The level at which a denominator is told from 0.
_MAY_BE_0 = Fraction(1, 20)


class Source(NamedTuple):
    """Sums of the estimates of one release, for its rows."""

    of: Estimates
    rows: Rows
    sums: list[list[Any]]

    @property
    def nodes(self) -> list[_Ints | None]:
        """The nodes of each axis, in its rooted tree, that the rows keep, or None.

        Groups have all of its nodes, which they share out.
        """
        found: list[_Ints | None] = [None] * len(self.of.design._axes)
        for place, nodes, view in zip(*self.rows, strict=True):
            axis = self.of.design._axes[place]
            found[place] = (nodes if view.of is None else axis.shown) + axis.rooted[1]
        return found

    def within(self, chosen: Mapping[int, int]) -> Source:
        """Return the sums of one row of some axes of the rows, each where it keeps that axis."""
        sums = [list(each) for each in self.sums]
        for at, row in chosen.items():
            place, own = self.rows.axes[at], self.rows.inside(at, row)
            for weights in sums:
                if weights[place] is None:
                    weights[place] = own
                elif isinstance(weights[place], Groups):
                    weights[place] = weights[place].weights * own
        return Source(self.of, self.rows.without(chosen), sums)

    def kinds(self, at: int) -> _Ints:
        """Return numbers of the rows of an axis: those of one have errors of equal distributions.

        The levels of a list are alike, so that nothing but the weights of those in a group matters.
        """
        place, of = self.rows.axes[at], self.rows.of(at)
        if self.rows.views[at].of is None:
            tree, by = self.of.design._axes[place].rooted
            return np.asarray(tree.kinds[1][self.rows.nodes[at] + by])
        own = (x.weights if isinstance(x, Groups) else x for x in (y[place] for y in self.sums))
        codes = numbers(np.stack([*own], 1))
        order = np.lexsort((codes, of))
        parts = np.split(codes[order], np.searchsorted(of[order], np.arange(self.rows.shape[at])))
        known: dict[bytes, int] = {}
        return np.array([known.setdefault(x.tobytes(), len(known)) for x in parts[1:]])

    @property
    def rooted(self) -> list[Sum]:
        """The sums, with weights of the nodes of rooted trees."""
        return [rooted_sum(self.of.design._axes, weights) for weights in self.sums]

    def errors(self, nodes: Sequence[int]) -> Errors:
        """Return the errors of the sums at a node of each axis."""
        return self.of._workload.joint(self.rooted, nodes)

    def found(self) -> list[tuple[NDArray[Any], NDArray[Any], float]]:
        """Return for each sum its integers, floats to add, and more than the rounding error."""
        found = []
        for each in self.rooted:
            try:
                base, more, rounding = self.of._fitted.along(each, self.nodes)
            except UndeterminedError as error:
                raise ValueError(undetermined(self.of.design._axes, error)) from None
            found.append((self._shown(base, each), self._shown(more, each), rounding))
        return found

    def _shown(self, values: NDArray[Any], weights: Sum) -> NDArray[Any]:
        """Return the values of the rows, given those on the axes whose nodes are not added up."""
        kept = (weights[x] is None or isinstance(weights[x], Groups) for x in self.rows.axes)
        shape = [size if each else 1 for size, each in zip(self.rows.shape, kept, strict=True)]
        return np.broadcast_to(values.reshape(shape), self.rows.shape)


class Asked:
    """Sums of estimates for each row, of one release or of two that are independent."""

    def __init__(self, *sources: Source) -> None:
        self.sources, self.rows = sources, sources[0].rows
        #: The axes of the rows with sums over groups.
        self._grouped = sorted({at for source in sources for at in source.rows.grouped})
        #: Whether sums of different rows are independent.
        self.flat = all(source.of._workload.independent(source.nodes) for source in sources)

    @property
    def whole(self) -> bool:
        """Whether sums of noisy cells are estimates, without any floats to add."""
        cells = all(source.of._fitted.base is not None for source in self.sources)
        return self.flat and cells

    @cached_property
    def _alike(self) -> list[tuple[dict[int, NDArray[Any]], Asked]]:
        """The rows of all groups of each kind, on each axis, and what one of these groups asks."""
        # Whoever asks about several axes of one column has no question about their errors.
        assert all(len({*each.rows.axes}) == len(each.rows.axes) for each in self.sources)
        axes = list[list[NDArray[Any]]]()
        for at in self._grouped:
            which = numbers(np.stack([source.kinds(at) for source in self.sources], 1))
            order = np.argsort(which, kind="stable")
            axes.append(np.split(order, np.cumsum(np.bincount(which))[:-1]))
        found = []
        for rows in product(*axes):
            chosen = dict(zip(self._grouped, rows, strict=True))
            one = {at: int(each[0]) for at, each in chosen.items()}
            found.append((chosen, Asked(*(source.within(one) for source in self.sources))))
        return found

    def _index(self, groups: Mapping[int, Any], others: Iterable[NDArray[Any]]) -> Any:
        """Return the index of rows of some groups, and of their rows on the other axes."""
        more = iter(others)
        sides = (
            groups[at] if at in groups else next(more).reshape(-1)
            for at in range(len(self.rows.shape))
        )
        return np.ix_(*sides)

    def _of_alike(self, function: Callable[[Asked], Any]) -> Iterator[tuple[Any, Any]]:
        """Yield where the rows of each kind of groups are, and what a function finds of one."""
        for groups, one in self._alike:
            every = self._index(groups, map(np.arange, one.rows.shape))
            yield every, np.expand_dims(function(one), self._grouped)

    @cached_property
    def _found(self) -> list[tuple[NDArray[Any], NDArray[Any], float]]:
        return [each for source in self.sources for each in source.found()]

    @property
    def values(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """The integers of each sum, and the floats to add to them."""
        return [(base, more) for base, more, _ in self._found]

    @property
    def rounding(self) -> float:
        """More than the rounding error of each sum."""
        return max(rounding for _, _, rounding in self._found)

    @property
    def floats(self) -> list[_Floats]:
        """The sums."""
        return [np.asarray(base + more, np.float64) for base, more in self.values]

    def kinds(self) -> tuple[int, Iterator[tuple[tuple[Any, ...], Errors]]]:
        """Return how many kinds of rows there are, and the rows and errors of each."""
        if self._grouped:
            pairs = [
                (self._index(groups, rows), errors)
                for groups, one in self._alike
                for rows, errors in one.kinds()[1]
            ]
            return len(pairs), iter(pairs)
        many, found = products.kinds(
            [source.of._workload for source in self.sources], [x.nodes for x in self.sources]
        )

        def each() -> Iterator[tuple[tuple[Any, ...], Errors]]:
            for rows, nodes in found:
                one, *more = (
                    source.errors(at) for source, at in zip(self.sources, nodes, strict=True)
                )
                yield rows, one.beside(more[0]) if more else one

        return many, each()

    @property
    def last(self) -> Asked:
        """The last of the sums by itself."""
        last = self.sources[-1]
        return Asked(last._replace(sums=last.sums[-1:]))

    @cached_property
    def _of_one(self) -> list[tuple[tuple[Any, ...], Errors]] | None:
        """The rows and errors of each kind of a single sum; None of very many kinds."""
        many, found = self.kinds()
        return list(found) if self.sources[0].of._workload.one_by_one(many) else None

    def reaches(self, factors: Sequence[float], level: float) -> _Floats:
        """Return the reach of a weighted sum in each row; of very many kinds, in two passes."""
        found = np.empty(self.rows.shape)
        if self._grouped:
            for index, reaches in self._of_alike(lambda like: like.reaches(factors, level)):
                found[index] = reaches
            return found
        kinds: Iterable[tuple[tuple[Any, ...], Errors]] | None
        if sum(len(each.sums) for each in self.sources) == 1:
            kinds = self._of_one
        else:
            kinds = self.kinds()[1]
        if kinds is None:
            [source] = self.sources
            bounds = source.of._workload.bounds(source.rooted[0], source.nodes, level)
            return abs(factors[0]) * bounds.reshape(self.rows.shape)
        for index, errors in kinds:
            found[index] = errors.reach(tuple(map(float, factors)), level)
        return found

    def told(self, level: Fraction) -> NDArray[np.bool_]:
        """Return where the last of the sums is told from 0."""
        return np.asarray(self.floats[-1] > self.last.reaches((1,), self.last.level(level, 1)))

    def quotients(self, alpha: Real, simultaneous: bool, limits: Iterable[float]) -> Ends:
        """Return intervals for the ratios of two sums: one beyond a limit has that of the limit."""
        level, (above, below) = self.level(alpha, number(self.rows, simultaneous)), self.floats
        for limit, beyond in zip(limits, (np.less, np.greater), strict=True):
            if math.isfinite(limit):
                end = limit * below
                above = np.where(beyond(above, end) & (below > 0), end, above)
        found = Ends(np.empty(self.rows.shape), np.empty(self.rows.shape))
        for index, errors in self.kinds()[1]:
            pair, shape = (above[index].reshape(-1), below[index].reshape(-1)), above[index].shape
            kind = products.ratio_ends(pair, errors, level, self.rounding)
            for whole, each in zip(found, kind, strict=True):
                whole[index] = each.reshape(shape)
        return found

    def bounds(self, level: float) -> _Floats:
        """Return bounds on the reaches of each sum by itself, for all sums of a row together."""
        [source] = self.sources
        if self._grouped:
            found = np.empty((*self.rows.shape, len(source.sums)))
            for index, bounds in self._of_alike(lambda like: like.bounds(level)):
                found[index] = bounds
            return found
        many, kinds = self.kinds()
        if not source.of._workload.one_by_one(many):
            each = (Asked(source._replace(sums=[x])).reaches((1,), level) for x in source.sums)
            return np.stack(list(each), -1)
        found = np.empty((*self.rows.shape, len(source.sums)))
        for index, errors in kinds:
            found[index] = errors.bounds(level)
        return found

    def level(self, alpha: Real, n: int, *, independent: bool = False) -> float:
        """Return the level of ideal noise of each of n intervals."""
        given = parameters.significance("alpha", alpha)
        lost = sum((source.of._workload.lost for source in self.sources), Fraction(0))
        each = ends.level(given, n, independent=independent)
        left = each - (lost if independent else lost / n)
        if left <= 0:
            wanted = f"more than {float(lost):.3g}, the error of the sampled distribution"
            raise ValueError(parameters.refusal("alpha", float(given), wanted))
        return decimals.down(left)


def workload_of(
    axes: Sequence[Axis],
    mechanisms: Mapping[Block, Noise],
    known: Iterable[Block] = (),
) -> Workload:
    """Return everything public about the noise of blocks with these mechanisms."""
    noises = [(rooted(axes, x), (noise,), 0) for x, noise in mechanisms.items()]
    return _workload(axes, noises, known)


def _workload(
    axes: Sequence[Axis],
    noises: Iterable[tuple[Block, Sequence[Noise], int]],
    known: Iterable[Block],
) -> Workload:
    released, facts = [], dict[int, Fraction]()
    for block, each, off in noises:
        for noise in each:
            # Tables of equal parts have one mechanism.
            if id(noise) not in facts:
                facts[id(noise)] = Fraction(errors_of(noise, np.int64).total_variation)
        error = sum((facts[id(noise)] for noise in each), Fraction(0))
        rate, *more = (noise.rate for noise in each)
        released.append((block, rate, error, off, tuple(more)))
    return Workload([axis.rooted[0] for axis in axes], released, known)


def rooted(axes: Sequence[Axis], block: Block) -> Block:
    """Return the depths of a block in rooted trees."""
    return tuple(axis.rooted[1] + depth for axis, depth in zip(axes, block, strict=True))


def rooted_sum(axes: Sequence[Axis], weights: Sum) -> Sum:
    """Return a sum with weights of the nodes of rooted trees: no root that is added has one."""

    def padded(axis: Axis, each: Any) -> Any:
        if isinstance(each, Groups):
            return Groups(np.append(-1, each.of), padded(axis, each.weights), each.many)
        if each is None or not axis.rooted[1]:
            return each
        return np.concatenate([np.zeros(axis.rooted[1], each.dtype), each])

    return [padded(*pair) for pair in zip(axes, weights, strict=True)]


def moved(
    of: Estimates, axes: Sequence[Axis]
) -> Iterator[tuple[Block, Sequence[Noise], int, _Ints]]:
    """Yield the tables of a release on some axes, in the depths of rooted trees.

    Its axes are among these, with the same levels in any order. Public totals have no noise.
    """
    own = {axis.label: place for place, axis in enumerate(of.design._axes)}
    given = [own.get(axis.label) for axis in axes]
    known = ((block, (), 0, counts) for block, counts in of._known.items())
    for block, noises, off, counts in (*of._tables, *known):
        sides = [place for place, depth in enumerate(block) if depth]
        kept = [(x, place) for x, place in zip(axes, given, strict=True) if place in sides]
        table = counts.transpose([sides.index(place) for _, place in kept])
        for side, (axis, place) in enumerate(kept):
            if (order := axis.among(of.design._axes[place])) is not None:
                table = table.take(order, side)
        yield tuple(0 if x is None else block[x] for x in given), noises, off, table


def undetermined(axes: Sequence[Axis], error: UndeterminedError) -> str:
    """Return what tables do not determine, by the names of columns."""
    block = min(error.blocks, key=lambda block: (sum(map(bool, block)), block))
    names = [
        repr(axis.label) if axis.hierarchy is None else f"depth {depth} of {axis.label!r}"
        for axis, depth in zip(axes, block, strict=True)
        if depth
    ]
    text = " and ".join(names) or "the sum over all columns"
    return f"no released table has {text}{' together' * (len(names) > 1)}: ask for what one has"


class Estimates:
    """Estimates of the sums of one release, and everything public about their errors."""

    if TYPE_CHECKING:
        # Of the class of published counts.
        design: Layout
        mechanisms: dict[Block, Noise]
        _values: _Ints
        #: The id of the release; of answers from several, all of them.
        id: str
        corrects: tuple[str, ...]
        count_id: str | None

        @property
        def epsilon(self) -> Fraction | float: ...

        @property
        def _revision(self) -> int: ...

        def _made(self, columns: Mapping[str, Any]) -> Any: ...

    #: Public true counts by block, whose depths are those of rooted trees.
    _known: Mapping[Block, _Ints] = MappingProxyType({})
    #: The number of whose multiples the noisy counts are: see :meth:`Released.save`.
    _rounded: int | str | None = None
    #: The most that rounding moved each count before it was added to others.
    _moved: int = 0
    #: Which of several precisions of one table it is.
    _tier: Tier | None = None
    #: The releases that these are answers of, or their sum, as readers know them; empty for one.
    parts: tuple[Part, ...] = ()
    #: The privacy loss by the whole stream, for a step of one.
    _part_of: Fraction | None = None
    #: The least noisy count that has a row; None if all have.
    _at_least: Thresholds | None = None
    #: The id of the release whose counts chose the rows, if another one's did.
    _chosen_by: str | None = None
    #: The cells that the noise has picked.
    _picked: NDArray[Any] = np.empty(0, np.int64)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The noisy counts: an axis for each column, with its nodes in the order of its tree.

        A release of chosen `tables` has no such array: use :attr:`frame`.
        """
        values = self._values  # Answers of two releases have none, and say so.
        if self.design.tables is not None:
            raise ValueError("the counts of chosen tables are not one array: use frame or to_dict")
        return values

    @cached_property
    def _workload(self) -> Workload:
        """Everything public about the noise, for estimates and their errors."""
        return _workload(self.design._axes, [each[:3] for each in self._tables], self._known)

    @property
    def _tables(self) -> list[tuple[Block, Sequence[Noise], int, _Ints]]:
        """The noisy tables.

        The block of each, in the depths of rooted trees, the noises of each of its counts, the most
        that its counts are off by rounding, and these counts.
        """
        axes, parts = self.design._axes, self.design._parts
        off = self._moved + _rounding.half(self._rounded)
        noises = [each.mechanisms for each in self.parts or (self,)]
        blocks = [(x, rooted(axes, x), [each[x] for each in noises]) for x in noises[0]]
        return [
            (block, every, off, self._values[parts[x]].reshape(public_totals.shape(axes, block)))
            for x, block, every in blocks
        ]

    @cached_property
    def _fitted(self) -> Fitted:
        """The estimates from all tables; with bounds, the sums of noisy cells."""
        tables = [counts for *_, counts in self._tables]
        known = list(self._known.values())
        return self._workload.fit(tables, known, leaves_alone=self._bounded)

    @property
    def _known_total(self) -> int | float:
        """The total, if it is public."""
        axes = self.design._axes
        for block, counts in self._known.items():
            if all(not at or axis.hierarchy is None for axis, at in zip(axes, block, strict=True)):
                return int(counts.sum())
        return math.inf

    @property
    def _bounded(self) -> bool:
        """Whether the release has bounds."""
        return any(each.bounds is not None for each in self.mechanisms.values())

    @property
    def _limits(self) -> _Limits:
        """The limits of true counts: none for sums of values that may be negative."""
        return UNLIMITED if self.design.signed else (0, self._known_total)

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(face.label for face in self.design._axes.faces)

    @property
    def _by_cells(self) -> bool:
        """Whether intervals come from single cells, which may be at a limit."""
        picked = self._at_least is not None
        if self._known or self.parts or picked or self.design.tables is not None:
            return False
        lists = not any(axis.tree.depth for axis in self.design._axes)
        return self._bounded or (lists and math.isinf(self._fitted.size))

    def _refuse_chosen(self, what: str) -> None:
        if self.design.tables is not None:
            raise ValueError(
                f"{what} needs all combinations of columns: release a design without tables"
            )

    def _both(self, name: str, other: Any, by: Columns, *, ratio: bool = False) -> Asked | Picked:
        """Return the total of each group of two releases that count the same, or of a ratio."""
        check_table(name, other, picks=True)
        if self._at_least is not None or other._at_least is not None:
            return self._both_picked(name, other, by, ratio=ratio)
        rows = selection.rows_of(self.design._axes, by)
        kept = rows.names
        if lost := [label for label in kept if label not in other._labels]:
            both = tuple(label for label in kept if label not in lost)
            raise ValueError(
                f"{name} has no column {lost[0]!r}, so that it has no totals by it: give by={both}"
            )
        counted.check_same_question(name, self, other, kept, ratio=ratio)
        theirs = selection.rows_of(other.design._axes, kept)
        columns = [[[x.label for x in y.axis.faces] for y in z.views] for z in (rows, theirs)]
        if columns[0] != columns[1]:
            raise ValueError(
                f"{name} has the columns of by in another order, or one of the two in a list of "
                "combinations: give the same"
            )
        pairs = [
            selection.common_nodes(name, one.axis, nodes, two.axis)
            for one, nodes, two in zip(rows.views, rows.nodes, theirs.views, strict=True)
        ]
        sides = [
            (of, own._replace(nodes=tuple(pair[side] for pair in pairs)))
            for side, (of, own) in enumerate(((self, rows), (other, theirs)))
        ]
        return Asked(
            *(Source(of, own, [selection.sum_of(of.design._axes, own)]) for of, own in sides)
        )

    def _both_picked(self, name: str, other: Any, by: Columns, *, ratio: bool) -> Picked:
        """Return what two releases say about the groups of either, or about all records."""
        kept = self._columns_of(by)
        counted.check_same_question(name, self, other, kept, ratio=ratio)
        if not kept:
            return Picked(Rows(), *(each._operand(Rows()) for each in (self, other)))
        own, others = self.design._axes, other.design._axes
        labels = [[axis.label for axis in axes] for axes in (own, others)]
        if labels[0] != labels[1]:
            raise ValueError(
                f"{name} has the columns {labels[1]}, and groups are compared by all of their "
                f"columns: give a release with {labels[0]}"
            )
        cells = [self._picked, renumbered(other._picked, others, own)]
        rows = Listed(np.unique(np.concatenate(cells)))
        theirs = Listed(renumbered(rows.cells, own, others))
        found, choices = self._operand(rows), {self._chosen_by, other._chosen_by}
        if None not in choices or not choices.isdisjoint((self.id, other.id)):
            # Of sums, or one choice made the rows of both (docs/proofs.md, theorem 20d).
            found = found._replace(picks=False)
        return Picked(rows, found, other._operand(theirs))

    def _columns_of(self, by: Columns) -> list[str]:
        """Return the columns of an answer about groups: all of them, or none."""
        axes = self.design._axes
        kept = [face.label for x in axes.of("by", by).values() for face in x.axis.faces]
        if kept and len(kept) < len(self._labels):
            raise ValueError(
                f"by = {parameters.shown(by)} is not accepted for groups that reached a threshold, "
                "whose cells left out have no sums: give all columns, "
                f"{parameters.shown(self._labels)}, or () for all records"
            )
        return kept

    def _rows_by(self, by: Columns) -> Rows | Listed:
        """Return the rows of an answer that keeps these columns."""
        return selection.rows_of(self.design._axes, by)

    def _operand(self, rows: Rows | Listed) -> Operand:
        """Return what this release says about cells, or about all records."""

        def found(level: Fraction | None) -> Found:
            if isinstance(rows, Rows):
                return self._possible(self._asked(rows, {}), level, simultaneous=False)
            axes = self.design._axes
            every = selection.rows_of(axes, self._labels)
            every = every._replace(nodes=tuple(axis.tree.cells for axis in axes))
            whole = self._possible(self._asked(every, {}), level, simultaneous=False)
            at = tuple(unraveled(rows.cells, axes.sizes))
            own = None if whole.ends is None else Ends(*(each[at] for each in whole.ends))
            return Found(whole.points[at], own)

        return Operand(found)

    def _shares(self, rows: Rows | Listed) -> Asked | Picked:
        """Return the total of each row, and that of all records."""
        assert isinstance(rows, Rows)
        pair = [selection.sum_of(self.design._axes, kept) for kept in (rows, Rows())]
        return Asked(Source(self, rows, pair))

    def _beside(self, other: Any, by: Columns | None, *, ratio: bool = False) -> Asked | Picked:
        """Return the totals of two releases, neither of which replaces the other."""
        asked = self._both("other", other, self._labels if by is None else by, ratio=ratio)
        counted.check_no_correction(self, other)
        return asked

    def _selected(
        self, by: Columns, one: Any, other: Any
    ) -> tuple[Rows, list[dict[int, NDArray[Any]]]]:
        """Return the rows, and for each selection the weights of the nodes of its columns."""
        rows = selection.rows_of(self.design._axes, by)
        pairs = (("one", one), ("other", other))
        return rows, [selection.choose(self.design._axes, name, x, rows) for name, x in pairs]

    def _sum(self, rows: Rows | Listed) -> Asked | Picked:
        """Return the total of each row."""
        assert isinstance(rows, Rows)
        return self._asked(rows, {})

    def _asked(self, rows: Rows, *chosen: Mapping[int, NDArray[Any]]) -> Asked:
        axes = self.design._axes
        return Asked(Source(self, rows, [selection.sum_of(axes, rows, each) for each in chosen]))

    def _total(
        self,
        by: Columns,
        alpha: Real | None,
        simultaneous: bool,
        factors: Callable[[Rows | Listed], NDArray[Any]] | None = None,
    ) -> Any:
        rows, found = self._totals(by, alpha, simultaneous, factors)
        return self._framed(rows, found)

    def _every(self, alpha: Real | None, simultaneous: bool) -> Any:
        """Return the estimates of all rows, in their order."""
        return self._made({**self.design._columns(), **self._of_rows(alpha, simultaneous)})

    def _kept(self, block: Block) -> tuple[int, ...]:
        """Return the columns that a chosen table has."""
        axes = self.design._axes
        return tuple(x for x, depth in enumerate(block) if rooted((axes[x],), (depth,)) != (0,))

    def _asked_rows(self) -> list[Asked]:
        """Return what all rows ask, in their order: those of chosen tables table by table."""
        axes = self.design._axes
        if self.design.tables is None:
            return [self._asked(selection.rows_of(axes, self._labels), {})]
        found = []
        for block in self.design.blocks:
            kept = self._kept(block)
            levels = [np.arange(axes[x].tree.size)[axes[x].tree.level(block[x])] for x in kept]
            views = tuple(View(axes[x], None) for x in kept)
            found.append(self._asked(Rows(kept, tuple(levels), views), {}))
        return found

    def _of_rows(
        self, alpha: Real | None, simultaneous: bool, asked: Sequence[Asked] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return the estimates of all rows, in their order, with intervals if there is an alpha.

        Whoever asks for many levels gives what the rows ask, whose errors are then found once.
        """
        parameters.check_bool("simultaneous", simultaneous)
        if self.design.tables is not None and alpha is not None and simultaneous:
            alpha = parameters.significance("alpha", alpha) / self.design.cells
            simultaneous = False
        parts = [
            self._possible(each, alpha, simultaneous).columns()
            for each in (self._asked_rows() if asked is None else asked)
        ]
        return {
            name: np.concatenate([part[name].reshape(-1) for part in parts]) for name in parts[0]
        }

    def _possible(self, asked: Asked | Picked, alpha: Real | None, simultaneous: bool) -> Found:
        """Return totals, with intervals of what true ones may be."""
        if isinstance(asked, Asked) and self._by_cells and alpha is not None:
            return self._of_cells(asked.rows, [{}], alpha, simultaneous, self._limits)
        return linear(asked, (1,), alpha, simultaneous, limits=self._limits)

    def _totals(
        self,
        by: Columns,
        alpha: Real | None,
        simultaneous: bool,
        factors: Callable[[Rows | Listed], NDArray[Any]] | None = None,
    ) -> tuple[Rows | Listed, dict[str, NDArray[Any]]]:
        rows = self._rows_by(by)
        scale = None if factors is None else factors(rows)
        found = self._possible(self._sum(rows), alpha, simultaneous)
        return rows, (found if scale is None else found.scaled(scale)).columns()

    def _of_cells(
        self,
        rows: Rows,
        chosen: Sequence[Mapping[int, NDArray[Any]]],
        alpha: Real,
        simultaneous: bool,
        limits: _Limits = UNLIMITED,
    ) -> Found:
        """Return totals, or differences of two, with intervals by the noisy cells alone."""
        given, n = parameters.significance("alpha", alpha), number(rows, simultaneous)
        # Rows of margins and trees share cells.
        flat = self._asked(rows, {}).flat
        level = ends.level(given, n, independent=flat and len(chosen) == 1)
        cells, known, found = self._cells(), dict[tuple[bytes, bytes], tuple[int, int]](), []
        for w in self._weights(rows, chosen):
            some, own = cells[w != 0], w[w != 0]
            # Most rows of one cell have the count of another.
            if (key := (some.tobytes(), own.tobytes())) not in known:
                known[key] = self._of_sum(some, level, own, limits)
            found.append(known[key])
        signs = (1, -1)[: len(chosen)]
        points = linear(self._asked(rows, *chosen), signs, None, simultaneous).points
        ends_of = Ends.of((x for x, _ in found), (x for _, x in found), rows.shape)
        return Found(points, ends_of.within(*limits))

    def _shares_of_cells(self, rows: Rows, alpha: Real, simultaneous: bool) -> Found:
        """Return the percentages that intervals for each group and for all others allow."""
        given = parameters.significance("alpha", alpha)
        half = ends.level(ends.level(given, number(rows, simultaneous)), 2, independent=True)
        cells, points, lower, upper = self._cells(), [], [], []
        whole = sum(cells.reshape(-1).tolist())
        for w in self._weights(rows, [{}]):
            part, rest = (cells[x] for x in (w != 0, w == 0))
            (a, b), (c, d) = (self._of_sum(x, half, np.ones_like(x), (0, 1)) for x in (part, rest))
            low, high = (max(a, 0), max(d, 0)), (max(b, 0), max(c, 0))
            points.append(100 * sum(part.tolist()) / whole if whole > 0 else math.nan)
            lower.append(Fraction(100 * low[0], sum(low)) if any(low) else 0)
            upper.append(Fraction(100 * high[0], sum(high)) if any(high) else 100)
        return Found(np.reshape(points, rows.shape), Ends.of(lower, upper, rows.shape))

    def _of_sum(
        self, cells: _Ints, level: Fraction, weights: _Ints, limits: _Limits
    ) -> tuple[int, int]:
        """Return an interval of a weighted sum of true cells, by noisy cells alone.

        Each end rises with what the cells were before rounding, and falls with negative weights. A
        sum below its least limit has the interval of the limit.
        """
        mechanism = self.mechanisms[tuple(axis.tree.depth for axis in self.design._axes)]
        # Counts without weights are added up by value, which takes less time.
        own = None if (weights == 1).all() else weights
        interval = partial(accuracy.sum_confidence_interval, mechanism, alpha=level, weights=own)
        if self._rounded is None:
            lower, upper = interval(cells)
        else:
            off = _rounding.half(self._rounded) * np.sign(weights)
            bounds = () if mechanism.bounds is None else (mechanism.bounds,)
            low, high = (_rounding.moved(cells, moves, *bounds) for moves in (-off, off))
            lower, upper = interval(low)[0], interval(high)[1]
        below = limits[0] - sum(map(operator.mul, cells.tolist(), weights.tolist()))
        return lower, upper + int(max(below, 0))

    def _cells(self) -> _Ints:
        """Return the noisy cells."""
        axes = self.design._axes
        check_bounded(axes)
        return self.counts[np.ix_(*(x.tree.leaves for x in axes))]

    def _weights(self, rows: Rows, chosen: Sequence[Mapping[int, NDArray[Any]]]) -> Iterator[_Ints]:
        """Yield for each row the weight of each cell, with the sign - in a second selection."""
        axes = self.design._axes
        for at in np.ndindex(rows.shape):
            found = np.zeros([len(axis.levels) for axis in axes], np.int64)
            for sign, each in zip((1, -1), chosen, strict=False):
                own = {
                    place: selection.cell_weights(x, each.get(place, selection.roots(x)))
                    for place, x in enumerate(axes)
                }
                for number, (place, row) in enumerate(zip(rows.axes, at, strict=True)):
                    own[place] = own[place] * selection.cell_weights(
                        axes[place], rows.inside(number, row)
                    )
                found += sign * math.prod(np.ix_(*own.values()))
            yield found

    def _framed(self, rows: Rows | Listed, found: Mapping[str, Any]) -> Any:
        shaped = {
            name: each if isinstance(each, Coded) else np.ascontiguousarray(each).reshape(-1)
            for name, each in found.items()
        }
        return self._made(rows.columns(self.design._axes) | shaped)


def check_bounded(axes: Iterable[Axis]) -> None:
    """Refuse bounds where cells differ in depth: their sums are of counts with other noise."""
    for axis in axes:
        if axis.tree.starts[axis.tree.depth] != axis.tree.cells[0]:
            raise ValueError(
                f"bounds are not accepted with the tree of {axis.label!r}, whose cells differ in "
                "depth, so that no question would have an interval: release without bounds"
            )


def check_table(name: str, other: Any, *, picks: bool = False) -> None:
    """Refuse what is no noisy table, or has rows that its noise picked."""
    if not isinstance(other, Estimates):
        raise TypeError(parameters.foreign(name, other, "a noisy table"))
    if other._at_least is not None and not picks:
        raise ValueError(
            f"{name} is a release of groups that reached a threshold, whose noise chose them: give "
            "a table that was released without at_least"
        )


def renumbered(cells: NDArray[Any], own: Axes, other: Axes) -> NDArray[Any]:
    """Return the numbers of cells on other axes, which have the same levels in any order."""
    found = []
    for one, two, at in zip(own, other, unraveled(cells, own.sizes), strict=True):
        places = one.among(two)
        found.append(at if places is None else places[at])
    return raveled(found, other.sizes, cells.size)


def linear(
    asked: Asked | Picked,
    factors: Sequence[int],
    alpha: Real | None,
    simultaneous: bool,
    *,
    whole: bool = True,
    limits: _Limits = UNLIMITED,
) -> Found:
    """Return weighted sums of sums of estimates, by integers, with intervals within limits.

    The true sums may be known to be whole numbers.
    """
    if isinstance(asked, Picked):
        return asked.linear(factors, alpha, simultaneous, limits)
    rows, level = asked.rows, 0.0
    if alpha is not None:
        independent = asked.flat and len(asked.values) == 1
        level = asked.level(alpha, number(rows, simultaneous), independent=independent)
    parts = zip(*asked.values, strict=True)
    base, more = (np.asarray(sum(map(operator.mul, factors, x))) for x in parts)
    rounding = sum(map(abs, factors)) * asked.rounding
    reaches = asked.reaches(factors, level) if alpha is not None else more
    exact = base.dtype.kind == "i" and asked.whole and math.isfinite(rounding)
    points = base if exact else base + more
    if alpha is None:
        return Found(points, None)
    found = Ends.around(base, more, reaches, rounding, limits, whole=whole)
    return Found(points, found.within(*limits))


def deciding(
    asked: Callable[[range], Asked],
    shape: tuple[int, ...],
    level: float,
    decides: Callable[[_Floats], NDArray[np.bool_]],
) -> _Floats:
    """Return bounds on the reaches of many sums in each row, the last axis of the shape.

    They are the reaches where bounds decide about an answer, as `decides` says. All others are
    greater, and take less time.
    """
    found, left = np.empty(shape), np.ones(shape, np.bool_)
    for start in range(0, shape[-1], _TOGETHER):
        some = range(start, min(start + _TOGETHER, shape[-1]))
        found[..., some] = asked(some).bounds(level)
    while (wanted := left & decides(found)).any():
        for place in np.flatnonzero(wanted.reshape(-1, shape[-1]).any(axis=0)).tolist():
            found[..., place] = asked(range(place, place + 1)).reaches((1,), level)
            left[..., place] = False
    return found


def ratios(
    asked: Asked | Picked,
    alpha: Real | None,
    simultaneous: bool,
    limits: tuple[Fraction | float, Fraction | float],
    *,
    factor: Fraction = Fraction(1),
    shift: Fraction = Fraction(0),
    off: Fraction = Fraction(0),
    of_whole: bool = False,
) -> Found:
    """Return ratios of two sums of estimates, times `factor`, moved by `shift`.

    The intervals are within limits. The true values may differ from those of the ratios by up to
    `off`. Where the second sum may be 0 there is no estimate, or with `of_whole`, where it is the
    same in all rows, only if it is not positive itself.
    """
    rows, (above, below) = asked.rows, asked.floats
    points = np.full(rows.shape, math.nan)
    np.divide(above, below, out=points, where=below > 0 if of_whole else asked.told(_MAY_BE_0))
    points = points * float(factor) + float(shift)
    if alpha is None:
        return Found(points, None)
    given = [float((x - shift) / factor) for x in limits]
    found = asked.quotients(alpha, simultaneous, given)
    return Found(points, found.scaled(factor, shift=shift, off=off).within(*limits))


def number(rows: Rows, simultaneous: bool) -> int:
    """Return how many intervals have the level together."""
    parameters.check_bool("simultaneous", simultaneous)
    return rows.size if simultaneous else 1


def refuse_signed(what: str, *tables: Estimates) -> None:
    """Refuse what has no meaning for values that may be negative."""
    for table in tables:
        if table.design.signed:
            raise ValueError(
                f"no {what} is known for sums of values that may be negative (bounds = "
                f"{table.design.values}): give bounds from 0 on"
            )


def refuse_bounds(what: str, alpha: Any, *tables: Estimates) -> None:
    """Refuse intervals that errors at a bound would make wrong."""
    if alpha is not None and any(table._bounded for table in tables):
        raise ValueError(
            f"a release with bounds has no interval for a {what}, since all errors at a "
            "bound have the same sign: release without bounds, or give alpha=None for estimates"
        )
