"""The public facts of a table: its axes and limits, and what one individual changes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Bounds, Integer, Real
from geomdp._inputs.columns import only
from geomdp._noise import Noise, exact_loss
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.tables._columns import ids
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import chosen as _chosen
from geomdp.tables._facts import rules, tier_names
from geomdp.tables._facts.axes import Axes, Axis, Levels
from geomdp.tables._facts.fields import KEYWORDS, stated
from geomdp.tables._facts.hierarchy import Hierarchy
from geomdp.tables._facts.rule_axes import axis_of
from geomdp.tables._math.products import Block
from geomdp.tiers import TierPlan

_Made = TypeVar("_Made", bound="Layout")
Neighbours: TypeAlias = Literal["add-remove", "change"]

#: The most combinations of depths of all columns. Each has noise of its own, and a plan in files.
_MOST_BLOCKS = 2**12
#: The most columns of an array of counts: numpy's have at most 64, and some need another.
_MOST_COLUMNS = 60
#: The greatest part of a sum: those of 2**31 records of one individual do not overflow.
MOST_VALUE = 2**32
#: The zCDP of randomised response is convex in its loss up to here.
_STEEP = 2


@notebook.showable
class Layout:
    """The public facts of a table, without any data: the base of :class:`geomdp.tables.Design`."""

    __slots__ = (
        "_axes",
        "_blocks",
        "_by_columns",
        "having",
        "individual",
        "l0",
        "l1",
        "levels",
        "linf",
        "name",
        "neighbours",
        "summed",
        "tables",
        "unit",
        "values",
    )

    def __init__(
        self,
        levels: Mapping[Any, Levels] | Levels,
        *,
        name: str = "count",
        other: Any = None,
        complete: Any = (),
        bins: Mapping[str, Sequence[Any]] | None = None,
        margins: Any = None,
        shares: Mapping[str, Sequence[Real]] | None = None,
        tables: Any = None,
        individual: str | tuple[str, ...] | None = None,
        unit: str | None = None,
        l0: Integer | None = None,
        linf: Integer = 1,
        l1: Integer | None = None,
        values: Bounds | None = None,
        summed: str | None = None,
        having: str | None = None,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        alone = isinstance(levels, Mapping) and not levels
        if individual is not None and l0 is None and l1 is None and not alone:
            raise ValueError(
                "l0 = None is not accepted with an individual: give the most cells, or l1"
            )
        if neighbours not in ("add-remove", "change"):
            wanted = "'add-remove' or 'change'"
            raise ValueError(parameters.refusal("neighbours", neighbours, wanted))
        self._by_columns = isinstance(levels, Mapping)
        columns, given, names = _by_label(
            levels if isinstance(levels, Mapping) else {"level": levels}
        )
        words = [("summed", summed), ("having", having)]
        words = [("name", name), *(("column", label) for label in names), *filter(_given, words)]
        for what, each in words:
            parameters.check_text(what, each)
        who = ids.columns(individual)
        for each in who:
            parameters.check_text("individual", each)
        if name in names:
            raise ValueError(f"name = {name!r} is not accepted: give one that no column has")
        self.name, self.individual, self.neighbours = name, ids.one_or_all(who), neighbours
        self.l0 = parameters.at_least("l0", 1 if l0 is None else l0, 1)
        self.linf = parameters.at_least("linf", linf, 1)
        self.l1 = None if l1 is None else parameters.at_least("l1", l1, 1)
        if self.l1 is not None:
            _check_alone(l0, self.linf, self.l1)
            self.l0 = self.linf = self.l1
        self.values = None if values is None else values_of("values", values)
        #: The column whose values are added up, and one without whose value no record counts.
        self.summed, self.having = _of_sums(summed, self.values), having
        if self.values is not None and self.l1 is None and self.linf == 1:
            self.linf = max(map(abs, self.values))
        elif self.values is not None:
            _check_values(self.values, self.linf, self.l1)
        #: Whom or what epsilon protects: losses add up for one kind of individual.
        self.unit = self._own_unit if unit is None else word_of(unit)
        others = _labels("other", other, list(given))
        known = _complete("complete", complete, list(given), others)
        sums, parts = _margins(margins, list(given), named=tables is None)
        own, cuts = (
            _by_column(what, each, list(given), items)
            for what, each, items in (
                ("shares", shares, "shares by depth"),
                ("bins", bins, "cut points"),
            )
        )
        if tables is not None:
            _check_lists(columns, given)
            _chosen.check_shares(parts, own, given)
            asked = _chosen.keys_of(tables, given)
            sums = _chosen.sums(asked, given, sums, others)
        parts |= own
        self._axes = Axes(
            axis_of(
                label,
                items,
                other=[others[label]] if label in others else (),
                complete=label in known,
                margin=[sums[label]] if label in sums else (),
                chosen=tables is not None,
                shares=parts.get(label),
                columns=columns.get(label),
                bins=cuts.get(label),
            )
            for label, items in given.items()
        )
        #: The part of epsilon of each released table, or None for all combinations of depths.
        self.tables: dict[Any, Fraction] | None = None
        if tables is not None:
            self._blocks = _chosen.blocks(asked, self._axes, _MOST_BLOCKS)
            self.tables = {_chosen.shown(key): part for key, part in asked.items()}
        elif math.prod(axis.depths for axis in self._axes) > _MOST_BLOCKS:
            raise ValueError(
                f"depths of all columns multiply to more than {_MOST_BLOCKS}, which is not "
                "accepted: give fewer margins"
            )
        else:
            _check_product(self._axes)
            self._blocks = {
                block: math.prod(
                    (axis.shares[depth] for axis, depth in zip(self._axes, block, strict=True)),
                    start=Fraction(1),
                )
                for block in self._axes.blocks
            }
        self.levels: dict[str, Any] = {
            face.label: face.shown_nodes if face.rule is None else face.rule
            for face in self._axes.faces
        }

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, "levels"):
            raise AttributeError(f"a Design cannot be changed: make another one with this {name}")
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._arguments()), ()

    @property
    def _own_unit(self) -> str:
        """The word for whom epsilon protects, unless the publisher gives another."""
        once = self.l1 is None and self.l0 == 1 and (self.values is not None or self.linf == 1)
        return "/".join(ids.columns(self.individual)) or ("record" if once else "individual")

    @property
    def signed(self) -> bool:
        """Whether true values may be below 0: sums of values that may be."""
        return self.values is not None and self.values[0] < 0

    @property
    def _spread(self) -> int:
        """How far the greatest part of an individual in a cell is above its least, 0 included."""
        if self.values is None or self.l1 is None:
            return self.linf if self.values is None else self.values[1] - self.values[0]
        return self.l1 * sum(end != 0 for end in self.values)

    @property
    def _step(self) -> int:
        """The most that one individual changes a cell."""
        return self._spread if self.neighbours == "change" else self.linf

    @property
    def sensitivity(self) -> int:
        """The most by which one individual can change all counts together, in the L1 norm.

        It may be larger than necessary, but never too small: :class:`Design` says when.
        """
        return int(self._most(dict.fromkeys(self.blocks, 1)))

    @property
    def labels(self) -> dict[str, dict[Any, str]]:
        """What readers see of nodes that are codes, by column: the labels of each hierarchy."""
        trees = {axis.label: axis.hierarchy for axis in self._axes}
        return {name: dict(tree.labels) for name, tree in trees.items() if tree and tree.labels}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each column, with its labels for other records and sums."""
        return self._axes.shape

    @property
    def blocks(self) -> list[Block]:
        """The released blocks: a depth on each axis. Without `tables` the last has the cells."""
        return list(self._blocks)

    @property
    def cells(self) -> int:
        """The number of cells, sums included."""
        if self.tables is None:
            return math.prod(self.shape)
        return sum(math.prod(self._axes.counts(block)) for block in self._blocks)

    @property
    def _parts(self) -> dict[Block, Any]:
        """Where the counts of each block are in the values of a release."""
        if self.tables is None:
            return {block: self._axes.block(block) for block in self._blocks}
        sizes = [math.prod(self._axes.counts(block)) for block in self._blocks]
        ends = np.cumsum(sizes).tolist()
        return {
            block: slice(end - size, end)
            for block, size, end in zip(self._blocks, sizes, ends, strict=True)
        }

    def _columns(self) -> dict[str, Coded]:
        """Return the columns of levels of all rows."""
        if self.tables is None:
            return self._axes.columns()
        sizes, parts = list(map(self._axes.counts, self._blocks)), list(self._parts.values())
        columns = {}
        for place, axis in enumerate(self._axes):
            starts = [axis.tree.starts[block[place]] for block in self._blocks]
            nodes = np.repeat(starts, [part.stop - part.start for part in parts])
            for part, size in zip(parts, sizes, strict=True):
                if size[place] > 1:
                    shape = -1, size[place], math.prod(size[place + 1 :])
                    nodes[part].reshape(shape)[:] += np.arange(size[place])[:, None]
            columns[axis.label] = axis.coded(nodes)
        return columns

    def _shown(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a release in the order of the rows of a frame."""
        if self.tables is None:
            values = np.asarray(values[self._axes.shown])
        return values.reshape(-1)

    def mechanisms_for(
        self,
        epsilon: Real,
        bounds: Bounds | None = None,
        *,
        tiers: Mapping[str, Real] | None = None,
    ) -> dict[Block, Noise]:
        """Return the mechanism of each block of the table, for this epsilon.

        A key is the depth of the block in each column, 0 for a root. The epsilons of blocks are in
        proportion to the parts of their tables and to the products of their depths' shares, and as
        great as the privacy loss of the whole allows. With ``neighbours="change"`` they may add up
        to more than that, since no individual changes all blocks by the most at once: records that
        move from cell to cell do not change the grand total, for example.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole table.
        bounds : (int, int), optional
            The bounds of each mechanism.
        tiers : mapping of names to epsilons, optional
            The tiers of a release at several precisions. The mechanisms are then those of the tier
            with this epsilon, each a :class:`geomdp.tiers.TierPlan`, which releases nothing.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> Design(["yes", "no"]).mechanisms_for(0.5)
        {(0,): GeometricMechanism(epsilon=0.5, sensitivity=1)}
        >>> uneven = Design(["yes", "no"], margins=("all", "0.2")).mechanisms_for(1)
        >>> uneven[0,].epsilon, uneven[1,].epsilon
        (Fraction(1, 5), Fraction(4, 5))

        """
        given = parameters.loss("epsilon", epsilon)
        total = parameters.read(given)
        every = None
        if tiers is not None:
            # Readers of a file know what a tier states, and no more.
            every = [parameters.by_value(each) for each in tier_names.checked(tiers).values()]
            given = total = parameters.by_value(total.stated)
            if total not in every:
                raise ValueError(parameters.refusal("epsilon", epsilon, "that of one of the tiers"))
        known: dict[Fraction, Noise] = {}
        shares, size = self._blocks, change(self)
        rest = size / Fraction(self._most(shares))
        for share in shares.values():
            if share not in known:
                part = given if share * rest == 1 else total.part(share * rest)
                if every is None:
                    known[share] = GeometricMechanism(part, size, bounds)
                else:
                    parts = [each.part(share * rest) for each in every]
                    known[share] = TierPlan(part, parts, size, bounds)
        return {block: known[share] for block, share in shares.items()}

    def with_shares(self, shares: Mapping[str, Sequence[Real]]) -> Self:
        """Return this design with other shares of epsilon.

        Parameters
        ----------
        shares : mapping of column names to sequences
            As in :class:`Design`. Other columns keep theirs.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"sick": ["yes", "no"]}, margins="all").with_shares({"sick": [1, 3]})
        >>> [float(each.epsilon) for each in design.mechanisms_for(1).values()]
        [0.25, 0.75]

        """
        given = self._arguments()
        labels = [axis.label for axis in self._axes]
        known = given.get("shares", {}) | _by_column("shares", shares, labels, "shares by depth")
        return type(self)(**(given | {"shares": known}))

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments that make this design, without those at their defaults."""
        levels = {axis.key: axis.given for axis in self._axes}
        found = {
            "levels": levels if self._by_columns else levels["level"],
            "other": {axis.label: axis.other[0] for axis in self._axes if axis.other},
            "complete": tuple(axis.label for axis in self._axes if axis.complete),
            "bins": {axis.label: axis.cuts for axis in self._axes if axis.cuts},
            "margins": {
                axis.label: axis.nodes[0]
                for axis in self._axes
                if axis.margin
                and (self.tables is None or axis.nodes[0] != _chosen.sum_label(axis.levels))
            },
            "tables": self.tables,
            "shares": {axis.label: list(axis.shares) for axis in self._axes if not axis.even},
            **stated(self),
        }
        default = KEYWORDS | ({"l0": 1} if self.individual is None else {})
        default["unit"] = self._own_unit
        return {
            key: value
            for key, value in found.items()
            if (key == "levels" or value not in ({}, (), None))
            and (key not in default or value != default[key])
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self._arguments() == other._arguments()

    def __repr__(self) -> str:
        others = self._arguments()
        levels = others.pop("levels", {})
        more = "".join(f", {key}={_text(value)}" for key, value in others.items())
        return f"{type(self).__name__}({_text(levels)}{more})"

    def _repr_html_(self) -> str:
        rows = {key: _text(value) for key, value in self._arguments().items()}
        return notebook.table(f"Design of {notebook.many(self.cells, 'count')}", rows)

    def _most(self, rates: Mapping[Block, Fraction | int]) -> Any:
        """Return the most that one individual changes the table, weighted by block.

        The records that it adds to cells, and those that it takes away, are in pairs as far as
        there are both (``docs/proofs.md``, lemmas 14c and 14d).
        """
        upto = self._upto(rates)
        kinds = sorted(
            (
                (upto[depths], math.prod(map(Counter.__getitem__, counts, depths)))
                for counts in [[axis.cells_by_depth for axis in self._axes]]
                for depths in product(*counts)
            ),
            reverse=True,
        )
        best = kinds[0][0]
        pair = max(
            upto[one] + upto[two] - (2 * upto[common] if min(common, default=0) >= 0 else 0)
            for one, two, common in (
                tuple(zip(*each, strict=True)) or ((), (), ())
                for each in product(*(axis.pairs for axis in self._axes))
            )
        )
        change = self.neighbours == "change"
        if self.l1 is not None:
            return max(self.l1 * pair, self._spread * best) if change else self.l1 * best
        cells = math.prod(self._axes.sizes)
        own = min(self.l0, cells)

        def alone(cells: int) -> Any:
            """Return the most that so many cells change it."""
            found, left = 0 * best, cells
            for weight, n in kinds:
                taken = min(n, left)
                found, left = found + weight * taken, left - taken
            return found

        def both(left: int) -> Any:
            """Return no less than the most, if so many cells are left for others."""
            others = min(own, cells - left)
            return min(left * pair + alone(others - left), alone(others + left))

        def signed(left: int) -> Any:
            """Return no less than the most, if values of both signs leave so many cells."""
            return more * alone(own - left) + self.linf * alone(own + left)

        more = self._spread - self.linf if change else 0
        found, most = (signed, min(own, cells - own)) if more else (both, min(own, cells // 2))
        # A concave function.
        low, high = 0, most if change else 0
        while low < high:
            middle = (low + high) // 2
            rises = found(middle + 1) > found(middle)
            low, high = (middle + 1, high) if rises else (low, middle)
        if more:
            return min(signed(low), own * max(self.linf * pair, self._spread * best))
        return self.linf * both(low)

    def _upto(self, rates: Mapping[Block, Any]) -> Any:
        """Return the sums of the rates of all blocks up to each: an array, or what is asked for."""
        if math.prod(axis.depths for axis in self._axes) > 4 * len(rates):
            return _Sums(rates)
        upto: Any = np.zeros([axis.depths for axis in self._axes], object)
        for block, rate in rates.items():
            upto[block] = rate
        for place in range(upto.ndim):
            upto = np.cumsum(upto, axis=place)
        return upto

    def _moved(self) -> list[tuple[int, int]]:
        """Return how many records one individual adds to cells and, with changes, takes away.

        Beside each number stands the most of them that can be in one node. There are no more cells
        than the table has. If each of them may change, the individual may leave any of them for
        the rest: half of them lie in more full nodes than `l0` and the rest do.
        """
        cells, change = math.prod(self._axes.sizes), self.neighbours == "change"
        if change and self._spread > self.linf:
            # What is added and what is taken away may have opposite signs, and add up in a node.
            own = 1 if self.l1 is not None else min(self.l0, cells)
            twice = max(0, 2 * own - cells)
            moved = twice * self._spread + 2 * (own - twice) * self.linf
            return [(moved, own * self._spread)]
        if self.l1 is not None:
            return [(self.l1, self.l1)] * (2 if change and cells > 1 else 1)
        joined = min(self.l0, cells)
        moved = min(2 * joined, cells) if change else joined
        together = joined * self.linf
        if moved == 2 * joined:
            return [(together, together)] * 2
        return [(moved * self.linf, together)]

    __hash__ = None  # type: ignore[assignment]  # its levels may be of any type


#: In Python's own errors, the name that users call.
Layout.__init__.__qualname__ = "Design"


class _Sums(dict[Block, Any]):
    """Sums of the rates of all blocks up to one, made when it is asked for."""

    def __init__(self, rates: Mapping[Block, Any]) -> None:
        super().__init__()
        self._blocks = np.array(list(rates), np.int64).reshape(len(rates), -1)
        self._rates = list(rates.values())

    def __missing__(self, depths: Block) -> Any:
        inside = np.flatnonzero((self._blocks <= np.array(depths)).all(axis=1))
        self[depths] = found = sum(map(self._rates.__getitem__, inside.tolist()))
        return found


def mechanisms_by(
    layout: Layout,
    mechanism: Any,
    epsilon: Any,
    bounds: Bounds | None = None,
    tiers: Mapping[str, Real] | None = None,
) -> dict[Block, Noise]:
    """Return the mechanisms of a release by one mechanism, or with this epsilon."""
    if mechanism is epsilon is None:
        raise TypeError(
            "epsilon is not given: give epsilon=, the privacy loss of the whole table, or a "
            "mechanism instead"
        )
    if mechanism is not None and epsilon is not None:
        raise TypeError("mechanism and epsilon are both given: give one of them")
    if mechanism is None:
        return layout.mechanisms_for(epsilon, bounds, tiers=tiers)
    if bounds is not None:
        raise TypeError(
            "bounds are not accepted with a mechanism, which has its own: give them with epsilon"
        )
    found = as_mechanism(mechanism, "epsilon=, or a GeometricMechanism")
    if found.sensitivity < layout.sensitivity:
        raise ValueError(
            f"mechanism has sensitivity {found.sensitivity}, but one individual changes this "
            f"table by up to {layout.sensitivity}: give epsilon={parameters.text(found.epsilon)} "
            f"instead "
            f"of the mechanism, or a mechanism with sensitivity={layout.sensitivity}"
        )
    if len(set(layout._blocks.values())) > 1:
        raise ValueError(
            "depths or tables have shares of epsilon: give epsilon instead of a mechanism"
        )
    return dict.fromkeys(layout.blocks, found)


def changes(layout: Layout, block: Block) -> Iterator[tuple[int, int]]:
    """Yield how many nodes of a block one individual changes, and by how much each.

    The cells that it joins, and those that it leaves, lie in as few nodes as have room for
    them: the greatest changes have the greatest loss (``docs/proofs.md``, lemma 14a).
    """
    axes = list(zip(layout._axes, block, strict=True))
    room = math.prod(axis.rooms[depth] for axis, depth in axes)
    nodes = math.prod(axis.counts[depth] for axis, depth in axes)
    for records, together in layout._moved():
        most = min(room * layout._step, together)
        if nodes == 1:
            # Records that stay in the node do not change it.
            yield 1, most
            return
        full, rest = divmod(records, most)
        yield full, most
        if rest:
            yield 1, rest


def losses(layout: Layout, mechanisms: Mapping[Block, Noise]) -> Counter[Fraction | float]:
    """Return exact privacy losses of noisy counts that are no more private than the table.

    They cost at least the rho of all changes of an individual, and their sum may be more than
    :meth:`loss` (``docs/proofs.md``, lemma 14b).
    """
    found: Counter[Fraction | float] = Counter()
    for block, each in mechanisms.items():
        sizes = list(changes(layout, block))
        most = max(size for _, size in sizes)
        steep = exact_loss(each, most) > _STEEP
        for nodes, size in sizes:
            found[exact_loss(each, most if steep else size)] += nodes
    return found


def loss(layout: Layout, mechanisms: Mapping[Block, Noise]) -> Fraction | float:
    """Return the exact privacy loss of all noisy counts together for one individual."""
    rates = {block: exact_loss(each, 1) for block, each in mechanisms.items()}
    if math.inf in rates.values():
        return math.inf
    return Fraction(layout._most({block: Fraction(rate) for block, rate in rates.items()}))


def change(layout: Layout) -> int:
    """How much one individual changes each block, in all: the L1 sensitivity of the cells."""
    return sum(records for records, _ in layout._moved())


def change_of_sum(layout: Layout) -> int:
    """How much one individual changes a sum of cells, whichever these are."""
    return max(together for _, together in layout._moved())


def word_of(unit: Any) -> str:
    """Return a word for whom epsilon protects."""
    parameters.check_text("unit", unit)
    if not unit:
        raise ValueError(parameters.refusal("unit", unit, "a word, such as 'person'"))
    return str(unit)


def _of_sums(summed: str | None, values: Any) -> str | None:
    """Return the column of a design of sums."""
    if summed is not None and values is None:
        raise ValueError(
            f"summed = {summed!r} is not accepted without values, the bounds of sums: call sum of "
            "a design without it"
        )
    return summed


def _check_alone(l0: Any, linf: int, l1: int) -> None:
    """Refuse other limits beside that of all records."""
    if l0 is not None or linf > 1:
        raise ValueError(
            f"l1 = {l1} with l0 or linf is not accepted: give the most records in all, or the most "
            "cells and the most records in each"
        )


def _check_values(values: tuple[int, int], linf: int, l1: int | None) -> None:
    """Refuse values of sums beside other limits than one of all values together."""
    if l1 is None or max(map(abs, values)) > l1 or l1 > MOST_VALUE:
        raise ValueError(
            f"values = {values} with linf = {linf} and l1 = {l1} are not accepted: "
            f"give values without linf, and no greater than l1, an int up to {MOST_VALUE}"
        )


def values_of(name: str, given: Any) -> tuple[int, int]:
    """Return the least and the greatest part of an individual in a cell of a sum, checked."""
    wanted = (
        f"two ints (lower, upper) from -{MOST_VALUE} to {MOST_VALUE}, the lower at most 0 and "
        "the upper at least 0, such as (0, 100) or (-50, 50): who is not in a cell adds 0"
    )
    low, high = pair_of(name, given, wanted)
    if not -MOST_VALUE <= low <= 0 <= high <= MOST_VALUE or low == high:
        raise ValueError(f"{name} = ({low}, {high}) are not accepted: give {wanted}")
    return low, high


def pair_of(name: str, given: Any, wanted: str) -> tuple[int, int]:
    """Return two ints, whose order nobody has checked."""
    if not isinstance(given, tuple | list):
        raise TypeError(parameters.foreign(name, given, wanted))
    if len(given) != 2:
        items = notebook.many(len(given), "item")
        raise ValueError(f"{name} with {items} are not accepted: give {wanted}")
    if not all(map(parameters.is_integer, given)):
        kinds = " and ".join(type(each).__name__ for each in given)
        raise TypeError(f"{name} with {kinds} are not accepted: give {wanted}")
    return int(given[0]), int(given[1])


def summing(layout: _Made, column: Any, bounds: Bounds | None) -> _Made:
    """Return the design of the sums of a column, of which an individual adds so much to a cell."""
    if layout.linf > 1 and layout.l1 is None and layout.values is None:
        raise ValueError(
            f"linf = {layout.linf} is not accepted for sums: bounds limit what an individual adds"
        )
    if bounds is not None:
        low, high = values_of("bounds", bounds)
    elif layout.values is not None:
        low, high = layout.values
    elif layout.l1 is not None:
        low, high = 0, layout.l1
    else:
        values_of("bounds", bounds)
    if layout.l1 is not None:
        low, high = max(low, -layout.l1), min(high, layout.l1)
    return with_values(layout, column, (low, high))


def averaged(layout: _Made, column: Any, bounds: Any) -> tuple[_Made, _Made, tuple[int, int]]:
    """Return the designs of sums and counts of the records with a value, and their bounds."""
    wanted = (
        f"two ints (lower, upper) from -{MOST_VALUE} to {MOST_VALUE}, the lower below the upper, "
        "such as (18, 99), so that the sum of an individual in a cell is within these numbers, too"
    )
    low, high = pair_of("bounds", bounds, wanted)
    records = 1 if layout.l1 is not None else layout.linf
    most = (layout.l1 or records) * max(abs(low), abs(high))
    if low >= high or most > MOST_VALUE:
        raise ValueError(f"bounds = ({low}, {high}) are not accepted: give {wanted}")
    limits = {} if layout.l1 is None else {"l1": most}
    part = records * min(low, 0), records * max(high, 0)
    counted = type(layout)(**(layout._arguments() | {"having": column}))
    return with_values(counted, column, part, **limits), counted, (low, high)


def cut(layout: Layout) -> bool:
    """Return whether limits of individuals choose at random which of their records count."""
    if layout.individual is None:
        return False
    cells = math.prod(layout._axes.sizes)
    if layout.l1 is not None:
        # A single cell has the least of the limit and of what there is, in any order of one sign.
        return cells > 1 or layout.signed
    return layout.l0 < cells


def counting(layout: _Made) -> _Made:
    """Return a design, unless it is one of sums, which do not count records."""
    if layout.values is not None:
        raise ValueError(
            f"a design with values = {layout.values} is one of sums: call sum with a column, or "
            "give a design without values"
        )
    if layout.having is not None:
        raise ValueError(
            f"a design with having = {layout.having!r} is one of means: call sum_and_count of a "
            "design without it"
        )
    return layout


def with_values(layout: _Made, column: Any, values: tuple[int, int], **more: Any) -> _Made:
    """Return this design for sums of a column."""
    own = layout.name in ("count", layout.summed) and column not in layout.levels
    given = layout._arguments() | {"values": values, "summed": column} | more
    given |= {"name": column if own else layout.name}
    if layout.l1 is None:
        given |= {"l0": layout.l0}
        given.pop("linf", None)
    return type(layout)(**given)


def completed(layout: _Made, columns: Any) -> _Made:
    """Return this design with the statement that these columns, too, leave out no records."""
    labels = [axis.label for axis in layout._axes]
    others = [axis.label for axis in layout._axes if axis.other]
    more = _complete("columns", columns, labels, others)
    known = {axis.label for axis in layout._axes if axis.complete}
    whole = tuple(label for label in labels if label in known | more)
    return type(layout)(**(layout._arguments() | {"complete": whole}))


def named(layout: Layout, label: str) -> Layout:
    """Return this design of one unnamed column, with this name for it."""
    given = layout._arguments()
    for key in ("other", "bins", "margins", "shares"):
        if key in given:
            [given[key]] = ({label: item} for item in given[key].values())
    if "complete" in given:
        given["complete"] = label
    return type(layout)(**(given | {"levels": {label: given["levels"]}}))


def _by_label(
    levels: Mapping[Any, Any],
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any], list[Any]]:
    """Return the columns of each that is made of several, all levels, and the table's columns.

    The first two are by the name of an axis, and combinations have several columns of the table.
    """
    columns: dict[str, tuple[str, ...]] = {}
    given: dict[str, Any] = {}
    for key, items in levels.items():
        if isinstance(key, tuple):
            for each in key:
                parameters.check_text("column", each)
            if len({*key}) < len(key) or len(key) < 2:
                raise ValueError(
                    f"columns {key} are not accepted: give two or more names, each once, with a "
                    "list of combinations, or with a Hierarchy, from the root down"
                )
            columns[_label(key)] = key
        if _label(key) in given:
            raise ValueError(f"column {_label(key)!r} is given twice: give each once")
        given[_label(key)] = items
    names = list[Any]()
    for label, items in given.items():
        own = label in columns and not isinstance(items, Hierarchy)
        names += columns[label] if own else (label,)
    if twice := [name for name, many in Counter(names).items() if many > 1]:
        raise ValueError(f"column {twice[0]!r} is given twice: give each once")
    return columns, given, names


def _check_lists(columns: Mapping[str, tuple[str, ...]], given: Mapping[str, Any]) -> None:
    """Refuse levels that are a rule, or combinations, beside tables, whose rows are listed."""
    for label, each in given.items():
        if label in columns and not isinstance(each, Hierarchy):
            raise ValueError(
                f"tables are not accepted with the combinations of {columns[label]}: leave them "
                "out, since totals by each of these columns are sums of noisy cells"
            )
        if (rule := rules.of(each)) is not None:
            raise ValueError(
                f"tables are not accepted with levels of {label!r} that are a rule, "
                f"{parameters.shown(rule)}: leave them out, or give a list of levels"
            )


def _check_product(axes: Axes) -> None:
    """Refuse all combinations of columns where they are too many for an array, or for noise."""
    if len(axes) > _MOST_COLUMNS:
        raise ValueError(
            f"{len(axes)} columns are not accepted without tables: give at most {_MOST_COLUMNS}, "
            "or tables, a few of their combinations"
        )
    if math.prod(axis.depths for axis in axes) > _MOST_BLOCKS:
        raise ValueError(
            f"depths of all columns multiply to more than {_MOST_BLOCKS}, which is not "
            "accepted: give fewer margins"
        )


def _label(key: Any) -> Any:
    """Return the name of a column of the table, which may be made of several of the data."""
    names = isinstance(key, tuple) and all(isinstance(each, str) for each in key)
    return "/".join(key) if names else key


def united(one: Layout, other: Layout) -> Layout:
    """Return the design of all tables of two releases, which :mod:`_counted` calls the same."""
    axes = {axis.label: axis for axis in one._axes}
    more = {axis.label: axis for axis in other._axes}
    for label in axes.keys() & more.keys():
        if axes[label].given != more[label].given or axes[label].cuts != more[label].cuts:
            raise ValueError(
                f"other has other levels of {label!r}: give a release with the same, in their order"
            )
    whole_of = [(x.tables, x.blocks, list(x.levels)) for x in (one, other)]
    if one.tables is None and whole_of[0] == whole_of[1]:
        return one
    order = [*axes, *(label for label in more if label not in axes)]
    tables = [_key(each, block, order) for each in (one, other) for block in each.blocks]
    return _of_tables(one, [*more.values(), *axes.values()], order, tables)


def common(one: Layout, other: Layout) -> Layout:
    """Return the design of the tables that two releases with the same columns both have."""
    order, more = _labels_of(one), {axis.label: axis for axis in other._axes}
    for axis in one._axes:
        if axis.hierarchy is not None and axis.given != more[axis.label].given:
            raise ValueError(f"other has another tree of {axis.label!r}: give the same")
    own, theirs = ([_key(each, block, order) for block in each.blocks] for each in (one, other))
    tables = [key for key in own if key in theirs]
    if not tables:
        raise ValueError("other has none of the tables of this release: give one that has some")
    if len(tables) == len(own):
        found = one
    elif len(tables) == len(theirs) and order == _labels_of(other):
        found = other
    elif one.tables is None and other.tables is None:
        # All combinations of the depths that each column has in both.
        margins = {x.label: x.nodes[0] for x in one._axes if x.margin and more[x.label].margin}
        found = type(one)(**(one._arguments() | {"margins": margins, "shares": {}}))
    else:
        found = _of_tables(one, one._axes, order, tables)
    both = {x.label for x in one._axes if x.complete and more[x.label].complete}
    whole = tuple(axis.label for axis in found._axes if axis.complete)
    if {*whole} == both:
        return found
    return type(found)(**(found._arguments() | {"complete": tuple(both)}))


def alike(one: Layout, other: Layout) -> dict[Block, Block]:
    """Return for each block of a design the block of another one with the same nodes."""
    order = _labels_of(one)
    theirs = {_key(other, block, order): block for block in other.blocks}
    return {block: theirs[_key(one, block, order)] for block in one.blocks}


def _labels_of(layout: Layout) -> list[str]:
    """Return the names of the axes of a table."""
    return [axis.label for axis in layout._axes]


def _of_tables(
    layout: Layout, axes: Sequence[Axis], order: Sequence[str], tables: Sequence[Any]
) -> Layout:
    """Return the design of some tables that states what another one does.

    Of two axes of one column, the last one counts, and any margin.
    """
    whole = {axis.label: axis for axis in axes}
    return Layout(
        {whole[label].key: whole[label].given for label in order},
        other={label: x.other[0] for label, x in whole.items() if x.other},
        complete=tuple(label for label, x in whole.items() if x.complete),
        bins={label: x.cuts for label, x in whole.items() if x.cuts},
        margins={x.label: x.nodes[0] for x in axes if x.margin and x.nodes[0] is not None},
        tables=list(dict.fromkeys(tables)),
        **facts(layout),
    )


def facts(layout: Layout) -> dict[str, Any]:
    """Return all that a design states but its columns and tables: for one with others."""
    own = {key: value for key, value in layout._arguments().items() if key in KEYWORDS}
    return own | {"unit": layout.unit}


def _key(design: Layout, block: Block, order: list[str]) -> tuple[Any, ...]:
    """Return the columns of a block as a key of ``tables``, in this order."""
    depths = {axis.label: (axis, depth) for axis, depth in zip(design._axes, block, strict=True)}
    found: list[Any] = []
    for label in order:
        axis, depth = depths.get(label, (None, 0))
        if axis is not None and axis.rooted[1] + depth:
            found.append(label if axis.hierarchy is None else (label, depth))
    return tuple(found)


def _given(pair: tuple[str, Any]) -> bool:
    """Whether an argument has a value."""
    return pair[1] is not None


def _complete(name: str, value: Any, labels: list[str], others: Container[str]) -> set[str]:
    """Return the columns in which every record has one of the levels, as the publisher states."""
    if isinstance(value, bool):
        return {label for label in labels if value and label not in others}
    alone = not isinstance(value, list | tuple) or _label(value) in labels
    found = list(map(_label, (value,) if alone else value))
    for label in found:
        if not isinstance(label, str):
            # Do not show the value: it may be counts, given in the wrong place.
            kind = type(label).__name__
            raise TypeError(f"{name} of type {kind} is not accepted: give columns, or True")
        if label not in labels:
            known = f"{parameters.shown(label)}, which is no column: give one of {labels}"
            raise KeyError(f"{name} = {known}")
    if both := [label for label in found if label in others]:
        raise ValueError(
            f"{name} = {both[0]!r} is not accepted beside other, which has the records with "
            "other values: give one of them"
        )
    return {*found}


def _labels(name: str, value: Any, labels: list[Any]) -> dict[Any, Any]:
    """Return the label of each column that has one."""
    if isinstance(value, bool):
        raise TypeError(f"{name} = {value} has type bool: give a label, such as 'all'")
    if isinstance(value, Mapping):
        of = f"the table, for {name}="
        return {only(_label(key), labels, of): each for key, each in value.items()}
    return {} if value is None else dict.fromkeys(labels, value)


def _margins(
    margins: Any, labels: list[str], *, named: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the label of each column's margin, and shares of epsilon where they are given."""
    sums, parts = {}, {}
    for label, pair in _labels("margins", margins, labels).items():
        sums[label] = pair
        if pair is None and named:
            raise ValueError(f"margins of {label!r} have no label: give one, such as 'all'")
        if isinstance(pair, tuple) and len(pair) == 2:
            sums[label], share = pair
            try:
                part = Fraction(parameters.in_range("share", share, "", lambda x: 0 < x < 1))
            except (TypeError, ValueError, OverflowError):
                # Do not show the share: the pair may be two counts.
                raise ValueError(
                    f"margins of {label!r} have a share that is not accepted: give a label, or a "
                    "pair of a label and a number above 0 and below 1"
                ) from None
            parts[label] = [part, 1 - part]
    return sums, parts


def _by_column(name: str, value: Any, labels: list[str], items: str) -> dict[str, Any]:
    """Return the items of each column that has some."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(parameters.foreign(name, value, f"a mapping of column names to {items}"))
    of = f"the table, for {name}="
    return {only(_label(key), labels, of): each for key, each in value.items()}


def _text(value: Any) -> str:
    """Return the repr of a public value, shortened; a mapping keeps its order."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {parameters.shown(x)}' for key, x in value.items())}}}"
    return parameters.shown(value)
