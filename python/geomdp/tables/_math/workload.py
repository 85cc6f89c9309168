"""Estimates from any set of noisy tables, and the errors of these estimates.

An axis is a tree with one root, the sum over its column. A block, a depth on each axis, is a table
of the nodes at these depths. Some blocks were released with independent noise, each perhaps several
times, and some are public. ``docs/proofs.md``, section 17, derives the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp.tables._math import weighted
from geomdp.tables._math.ends import EXACT
from geomdp.tables._math.products import Block, Errors, Groups, Sum, limited, of_weights
from geomdp.tables._math.trees import Ints, LeastSquares, Tree, runs
from geomdp.tables._math.weighted import Floats

#: The nodes of each axis that a sum has each by itself; of the other axes, None.
Nodes: TypeAlias = Sequence[Ints | None]
#: An array for each component: a depth on each even axis, and 0 on the others.
Parts: TypeAlias = dict[Block, Floats]

#: Variances below this part of the greatest are raised to it.
LEAST = 1e-12
#: Noisy counts whose sum may be beyond this are not added up exactly.
_LARGEST = 2.0**62
#: A float of this precision.
_ROUNDING = 2.0**-52


class Release(NamedTuple):
    """A block with noise of this rate, and the total variation of all sampled noise of a count."""

    block: Block
    rate: Fraction | float
    error: Fraction
    #: The most that each noisy count is off besides, by rounding.
    off: int = 0
    #: The rates of more independent noises of each count, if it is a sum of several noisy counts.
    more: tuple[Fraction | float, ...] = ()

    @property
    def rates(self) -> tuple[Fraction | float, ...]:
        """The rates of all noises of a count."""
        return (self.rate, *self.more)

    def variance(self, scale: float) -> float:
        """Return the variance of a count whose noises have their rates times this part.

        It is the same in any order of the noises.
        """
        return math.fsum(weighted.variance(scale * limited(rate)) for rate in self.rates)


class UndeterminedError(ValueError):
    """No noisy or public table says anything of the differences within these blocks."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = sorted(set(blocks))
        super().__init__(f"no table determines {self.blocks}")


class Workload:
    """Everything public about the noise of some tables, and which tables are public.

    Arrays of blocks have the axes on which a block is not at the root.

    Parameters
    ----------
    trees
        One for each axis, each with one root.
    released
        The blocks with noise.
    known
        The blocks that are public.

    """

    #: The most kinds of rows, and kinds times nodes, for which each kind has all its weights.
    most, most_in_all = 256, 5 * 10**6

    def __init__(
        self,
        trees: Sequence[Tree],
        released: Iterable[tuple[Any, ...]],
        known: Iterable[Block] = (),
    ) -> None:
        self.trees, self.known = list(trees), list(known)
        self.released = [Release(*each) for each in released]
        blocks = [*(each.block for each in self.released), *self.known]
        used = [sorted({block[x] for block in blocks} or {0}) for x in range(len(self.trees))]
        self._axes = [
            _kind(tree, max(depths))(tree, depths)
            for tree, depths in zip(self.trees, used, strict=True)
        ]
        self._uneven = {x: axis for x, axis in enumerate(self._axes) if isinstance(axis, _Uneven)}
        #: The axes of an array of the finest cells.
        self._wide = self._live([axis.top for axis in self._axes])
        #: Whether components of all axes are means over siblings, for which there are closed forms.
        self.even = all(isinstance(axis, _Even) for axis in self._axes)
        #: More than the roundings on the way of a number to a component.
        self._steps = 4 * (len(blocks) + 8) + sum(axis.steps for axis in self._axes)
        rates = [rate for each in self.released for rate in each.rates]
        scale = of_weights(rates) if rates else 1.0
        noise = [each.variance(scale) for each in self.released]
        # A lower bound keeps the numerics in order.
        least = max(noise, default=0.0) * LEAST
        #: The variances that choose weights.
        self.noise_by_release = [max(each, least) for each in noise]
        #: The precision of each table in the means over even axes that are its components.
        self._precisions = [
            1 / variance / self._cells(each.block)
            for each, variance in zip(self.released, self.noise_by_release, strict=True)
        ] + [math.inf] * len(self.known)
        #: For each component, precisions by depth on uneven axes, and the passes along these.
        self._tables: dict[Block, Floats] = {}
        for block, precision in zip(self._blocks, self._precisions, strict=True):
            for key in self._below(block):
                if key not in self._tables:
                    self._tables[key] = np.zeros([self.trees[x].depth + 1 for x in self._uneven])
                self._tables[key][self._depths(block)] += precision
        self._squares = {
            key: [
                axis.squares(noise)
                for axis, noise in zip(self._uneven.values(), _factors(table), strict=True)
            ]
            for key, table in self._tables.items()
        }

    @property
    def _blocks(self) -> list[Block]:
        return [*(each.block for each in self.released), *self.known]

    def _live(self, depths: Sequence[int]) -> list[int]:
        """Return the axes of an array of a component: not those where it has a root alone.

        Numpy's arrays have at most 64 axes, and there may be more columns.
        """
        return [x for x, depth in enumerate(depths) if depth or x in self._uneven]

    def _level(self, place: int, depth: int) -> slice:
        """Return where the nodes of a table are in an array of a component."""
        return self.trees[place].level(depth) if place in self._uneven else slice(None)

    def _shaped(self, table: NDArray[Any], block: Block, places: Sequence[int]) -> NDArray[Any]:
        """Return the counts of a table by its nodes on these axes."""
        sizes = self._shape(block)
        return table.reshape([sizes[x] for x in places])

    def _depths(self, block: Block) -> Block:
        """Return the depths on the axes that are not even."""
        return tuple(block[place] for place in self._uneven)

    def _cells(self, block: Block) -> int:
        """Return the number of nodes of a block on all even axes together."""
        return math.prod(
            axis.sizes[depth] if isinstance(axis, _Even) else 1
            for axis, depth in zip(self._axes, block, strict=True)
        )

    def _below(self, block: Block) -> Iterator[Block]:
        """Return the components of a block that do not vanish."""
        return product(*(x.below(depth) for x, depth in zip(self._axes, block, strict=True)))

    def check(self, asked: Sum, nodes: Nodes, busy: Sequence[int] | None = None) -> None:
        """Refuse a sum that the tables do not determine, for some of the nodes.

        The error has the blocks that would: a component, with a depth of nodes of other axes.
        """
        lost: list[Block] = []
        seen: dict[int, int | None] = {}
        busy = self._busy([asked], nodes) if busy is None else busy
        for _, key in self._touched(asked, nodes, busy):
            if key not in self._tables:
                lost.append(key)
                continue
            for (place, axis), squares in zip(
                self._uneven.items(), self._squares[key], strict=True
            ):
                if id(squares) not in seen:
                    seen[id(squares)] = axis.missing(squares, asked[place], nodes[place])
                if (depth := seen[id(squares)]) is not None:
                    lost.append((*key[:place], depth, *key[place + 1 :]))
        if lost:
            raise UndeterminedError(lost)

    def _busy(self, asked: Sequence[Sum], nodes: Nodes) -> list[int]:
        """Return the axes on which sums are anything but the root of an even axis by itself."""
        return [
            place
            for place, (axis, at) in enumerate(zip(self._axes, nodes, strict=True))
            if not isinstance(axis, _Even) or any(not axis.is_root(x[place], at) for x in asked)
        ]

    def _touched(
        self, asked: Sum, nodes: Nodes, busy: Sequence[int]
    ) -> Iterator[tuple[Block, Block]]:
        """Yield the components that a sum has: on the busy axes alone, and on all."""
        whole = [0] * len(self._axes)
        for key in product(*(self._axes[x].touched(asked[x], nodes[x]) for x in busy)):
            for place, depth in zip(busy, key, strict=True):
                whole[place] = depth
            yield key, tuple(whole)

    @cached_property
    def _single(self) -> bool:
        """Whether there is one table, but for the depths of loose trees."""
        loose = [tree.loose for tree in self.trees]
        single = {
            tuple(0 if x else d for x, d in zip(loose, block, strict=True))
            for block in self._blocks
        }
        return len(single) <= 1 and len(set(self._blocks)) == len(self._blocks)

    def independent(self, nodes: Nodes) -> bool:
        """Whether estimates at different nodes of these have no noise in common."""
        return self._single and (
            all(
                at is None or tree.loose or len(runs(tree.depths[at])[0]) <= 1
                for tree, at in zip(self.trees, nodes, strict=True)
            )
        )

    # Estimates

    def fit(
        self, noisy: Sequence[Ints], known: Sequence[Ints] = (), *, leaves_alone: bool = False
    ) -> Fitted:
        """Return the weighted least squares of noisy tables that agree with the public ones.

        Where there are tables of all finest cells, the least squares apply to the differences from
        their sums: floats are of the size of the noise. If estimates are to be sums of noisy cells
        alone, there are no differences.
        """
        limits = np.iinfo(np.int64)
        pairs = zip(self._blocks, [*noisy, *known], strict=True)
        tables = [
            self._shaped(each, block, np.flatnonzero(block).tolist()) for block, each in pairs
        ]
        small = all(limits.min < each.min() and each.max() < limits.max for each in noisy) and all(
            np.abs(each.astype(np.float64)).sum() < _LARGEST for each in tables
        )
        base = self._base(tables) if small else None
        if base is not None and leaves_alone:
            return Fitted(self, base, {}, 0.0)
        sums, fixed, size = Parts(), Parts(), 0.0
        for block, precision, table in zip(self._blocks, self._precisions, tables, strict=True):
            more = (table - (0 if base is None else self._read(base, block))).astype(np.float64)
            if not more.any():
                continue
            size = max(size, float(np.abs(more).sum()))
            key = max(self._below(block))
            live = self._live(key)
            more = self._shaped(more, block, live)
            found, empty = (fixed, math.nan) if math.isinf(precision) else (sums, 0.0)
            if key not in found:
                found[key] = np.full([self._axes[x].nodes_at(key[x]) for x in live], empty)
            levels = [self._level(x, block[x]) for x in live]
            if found is fixed:
                found[key][tuple(levels)] = more
            else:
                found[key][tuple(levels)] += more * precision
        self._cascade(sums, known=False)
        self._cascade(fixed, known=True)
        parts = {key: self._fitted(key, sums.get(key), fixed.get(key)) for key in {*sums, *fixed}}
        return Fitted(self, base, parts, size if small else math.inf)

    def _cascade(self, found: Parts, *, known: bool) -> None:
        """Add to each component the sums of those above it; known ones are the same everywhere."""
        for place, axis in enumerate(self._axes):
            for depth, above in pairwise(reversed(axis.below(axis.top))):
                for key in [key for key in found if key[place] == depth]:
                    to, at = (*key[:place], above, *key[place + 1 :]), self._live(key).index(place)
                    more = axis.sums(found[key], at, above)
                    more = more if above else more.squeeze(at)
                    if to in found:
                        own = found[to]
                        more = np.where(np.isnan(own), more, own) if known else own + more
                    found[to] = more

    def _fitted(self, key: Block, sums: Floats | None, known: Floats | None) -> Floats:
        """Return the least squares of a component, from sums that were weighed by precision."""
        cells, part = self._cells(key), np.zeros(())
        if sums is not None:
            part = sums * (self._inverse(key) * cells)
        if known is not None:
            part = np.where(np.isnan(known), part, known * cells)
        part = np.asarray(part, order="C")
        live = self._live(key)
        for at, place in enumerate(live):
            axis = self._axes[place]
            if isinstance(axis, _Even):
                groups = _groups(part, at, axis.above(key[place]))
                groups -= groups.mean(axis=at + 1, keepdims=True)
        for place, squares in zip(self._uneven, self._squares[key], strict=True):
            part = _over(part, live.index(place), squares)
        return part

    def _inverse(self, key: Block) -> Floats:
        """Return for the nodes of axes that are not even one over the precision, or 0."""
        table, trees = self._tables[key], [self.trees[place] for place in self._uneven]
        with np.errstate(divide="ignore"):
            inverse = np.where(table > 0, 1 / table, 0.0)
        shape = [self._axes[x].size if x in self._uneven else 1 for x in self._live(key)]
        return np.asarray(inverse[np.ix_(*(tree.depths for tree in trees))].reshape(shape))

    def _base(self, tables: Sequence[Ints]) -> Ints | None:
        """Return the sums of a table of the finest cells, which may be several blocks."""
        first = dict(reversed([*zip(self._blocks, tables, strict=True)]))
        first |= dict(zip(self.known, tables[len(self.released) :], strict=True))
        blocks = list(product(*(axis.with_cells for axis in self._axes)))
        if not all(block in first for block in blocks):
            return None
        if self.even:
            return first[blocks[0]]
        found = np.zeros([self._axes[x].size for x in self._wide], np.int64)
        for block in blocks:
            pairs = [self._axes[x].cells(block[x]) for x in self._wide]
            table = self._shaped(first[block], block, self._wide)
            found[np.ix_(*(x for x, _ in pairs))] = table[np.ix_(*(x for _, x in pairs))]
        for place in self._uneven:
            found = _over(found, self._wide.index(place), self.trees[place].sums)
        return found

    def _read(self, base: Ints, block: Block) -> Ints:
        """Return the sums at the nodes of a block."""
        for at, place in enumerate(self._wide):
            base = self._axes[place].sums(base, at, block[place])
        return self._shaped(base, block, np.flatnonzero(block).tolist())

    # Errors

    def joint(self, asked: Sequence[Sum], nodes: Sequence[int]) -> Errors:
        """Return the errors of sums, at a node of each axis where they have each by itself."""
        if self.even:
            return self._joint(asked, nodes)
        rows, known = self._functionals(asked, nodes), dict[tuple[int, int], Any]()
        parts = [
            (each, *self._weights(place, rows, len(asked), _distinct, known))
            for place, each in enumerate(self.released)
        ]
        return Errors(*_by_noise(parts))

    def _joint(self, asked: Sequence[Sum], nodes: Sequence[int]) -> Errors:
        """Return the errors of sums where all axes are even.

        Tables that agree on the busy axes have the same weights, times their precisions: what they
        have besides is summed over (``docs/proofs.md``, section 17).
        """
        busy = self._busy(asked, [*np.array(nodes)[:, None]] if nodes else ())
        ones: Nodes = [None if x not in busy else np.array([node]) for x, node in enumerate(nodes)]
        for each in asked:
            self.check(each, ones, busy)
        depths, sizes, precisions, kinds = self._faces
        known: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        groups: dict[Block, list[int]] = {}
        for place, face in enumerate(map(tuple, depths[:, busy].tolist())):
            groups.setdefault(face, []).append(place)
        parts: list[tuple[Release, Floats, Floats]] = []
        for face, places in groups.items():
            whole = [0] * len(self._axes)
            for at, depth in zip(busy, face, strict=True):
                whole[at] = depth
            # The precision, rate and rounding of tables, and how many cells they are summed over.
            counts = np.bincount(kinds[places], self._spread_over(sizes[places], busy))
            found = np.flatnonzero(counts)
            first = np.array(places)[np.unique(kinds[places], return_index=True)[1]]
            table = precisions[first][:, None] / self._totals(tuple(whole))
            table = np.tile(table[:, None, :, None], len(asked))
            times = np.ones(1)
            for at, depth in zip(busy, face, strict=True):
                alone = len(asked) == 1 and asked[0][at] is None
                rows = self._axes[at].few if alone else known
                key = (nodes[at] if alone else at, depth)
                if key not in rows and alone:
                    rows[key] = self._axes[at].rows_of(nodes[at], depth)
                elif key not in rows:
                    given = self._functional(at, [x[at] for x in asked], nodes[at])
                    rows[key] = self._axes[at].distinct(given, depth)
                few, many = rows[key]
                left = table.shape[-2] // few.shape[1]
                shape = len(first), len(times), few.shape[1], left, len(asked)
                table = (table.reshape(shape)[:, :, None] * few[:, :, None]).sum(axis=3)
                table = table.reshape(len(first), len(times) * len(few), left, len(asked))
                times = (times[:, None] * many).reshape(-1)
            table = table.reshape(len(first), len(times), len(asked))
            for row, place in enumerate(first.tolist()):
                parts.append((self.released[place], table[row], times * counts[found[row]]))
        return Errors(*_by_noise(parts), self._reaches)

    @cached_property
    def _faces(self) -> tuple[Ints, Ints, Floats, Ints]:
        """The depths, sizes by axis, precision, and kind of each released block, as arrays."""
        pairs = list(zip(self.released, self._precisions, strict=False))
        numbers: dict[Any, int] = {}
        kinds = [numbers.setdefault((x.rates, x.off, p), len(numbers)) for x, p in pairs]
        return (
            np.array([x.block for x, _ in pairs], np.int64).reshape(len(pairs), len(self.trees)),
            np.array([self._shape(x.block) for x, _ in pairs], np.int64).reshape(
                len(pairs), len(self.trees)
            ),
            np.array([p for _, p in pairs]),
            np.array(kinds, np.int64),
        )

    @cached_property
    def _reaches(self) -> dict[Any, float]:
        """Reaches by the weights of all noises."""
        return {}

    @staticmethod
    def _spread_over(sizes: Ints, busy: list[int]) -> Floats:
        """Return the number of nodes of tables on all axes but the busy ones."""
        own = sizes[:, busy].prod(axis=1)
        found: Floats = (sizes.prod(axis=1) // own).astype(np.float64)
        return found

    def _totals(self, block: Block) -> Floats:
        """Return the precision of all tables for each component of a block of even axes."""
        if block not in self._precision_of:
            totals = np.array([self._tables[x][()] for x in self._below(block)])
            self._precision_of[block] = totals
        return self._precision_of[block]

    @cached_property
    def _precision_of(self) -> dict[Block, Floats]:
        return {}

    def weights(self, asked: Sum, nodes: Sequence[int]) -> list[Floats]:
        """Return the weights of the noises of each released block in a sum, in its shape."""
        rows, found = self._functionals([asked], nodes), []
        for place, (block, *_) in enumerate(self.released):
            weights, _ = self._weights(place, rows, 1, lambda x: (x, np.ones(len(x))), {})
            shape = self._shape(block)
            # Axes that are not even come first.
            order = [
                *self._uneven,
                *(x for x in range(len(self._axes)) if x not in self._uneven),
            ]
            shaped = weights[:, 0].reshape([shape[x] for x in order])
            found.append(np.transpose(shaped, np.argsort(order)))
        return found

    def _functionals(self, asked: Sequence[Sum], nodes: Sequence[int]) -> list[Floats]:
        """Return for each axis the weights of its nodes, a column for each sum."""
        found = []
        for place, node in enumerate(nodes):
            found.append(self._functional(place, [each[place] for each in asked], node))
        for each in asked:
            self.check(each, [np.array([node]) for node in nodes])
        return found

    def _functional(self, place: int, asked: Sum, node: int) -> Floats:
        """Return the weights of the nodes of an axis, a column for each sum."""
        found = np.zeros((self.trees[place].size, len(asked)))
        for column, own in enumerate(asked):
            found[node if own is None else slice(None), column] = 1 if own is None else own
        return found

    @cached_property
    def _shares(self) -> list[Floats]:
        """The part of each released block in the mean of each of its components."""
        found = []
        for (block, *_), precision in zip(self.released, self._precisions, strict=False):
            depths = self._depths(block)
            found.append(
                precision / np.array([self._tables[x][depths] for x in self._below(block)])
            )
        return found

    def _weights(
        self, place: int, rows: list[Floats], wanted: int, distinct: Any, known: dict[Any, Any]
    ) -> tuple[Floats, Floats]:
        """Return the different weights of the noises of a released block, and how many have them.

        What is `known` of even axes and depths is kept.
        """
        block, counts = self.released[place].block, np.ones(1)
        table = np.tile(self._shares[place][None, :, None], wanted)
        for number, at in enumerate(self._uneven):
            # Each component has its own weights along an axis that is not even.
            squares = [self._squares[key][number] for key in self._below(block)]
            found = {id(each): each.weights(rows[at]) for each in squares}
            level = self.trees[at].level(block[at])
            each = np.moveaxis(np.stack([found[id(x)][level] for x in squares]), 0, 1)
            few, times = distinct(each)
            few = few.reshape(len(few), *each.shape[1:])
            table = (table[:, None] * few).reshape(-1, *each.shape[1:])
            counts = (counts[:, None] * times).reshape(-1)
        for at, (axis, depth) in enumerate(zip(self._axes, block, strict=True)):
            if isinstance(axis, _Uneven):
                continue
            if (at, depth) not in known:
                each = axis.rows(rows[at], depth)
                few, times = distinct(each)
                known[at, depth] = few.reshape(len(few), *each.shape[1:]), times
            few, times = known[at, depth]
            left = table.shape[1] // few.shape[1]
            table = table.reshape(len(table), few.shape[1], left, wanted)
            table = (table[:, None] * few[:, :, None]).sum(axis=2)
            table = table.reshape(len(table) * len(few), left, wanted)
            counts = (counts[:, None] * times).reshape(-1)
        return table[:, 0], counts

    def bounds(self, asked: Sum, nodes: Nodes, level: float) -> Floats:
        """Return the reach of each of many sums in two passes along each axis, by lemma 18.

        Of each there is the noise of the node itself, the variance of all noises, and no less than
        the greatest weight over rate of any other.
        """
        self.check(asked, nodes)
        lines = [
            list(_lines(axis, each, at))
            for axis, each, at in zip(self._axes, asked, nodes, strict=True)
        ]
        kept = [place for place, each in enumerate(asked) if each is None]
        found = np.zeros([sum(len(each.places) for each in lines[x]) for x in kept])
        if self.noise <= level:
            return found
        rates = {limited(x.rate): weighted.variance(limited(x.rate)) for x in self.released}
        for chosen in product(*lines):
            rate, first, variance, widest = self._pieces(chosen, kept)
            # More than the rounding errors of the difference.
            exact = first**2 * np.vectorize(rates.__getitem__)(rate)
            rest = np.maximum(variance - exact, 0) + 1e-9 * variance
            some, reach = (variance > 0) & np.isfinite(variance), np.zeros(rate.shape)
            reach[some] = weighted.by_cumulants(
                (rate[some], first[some]), (rest[some], widest[some]), rates, level
            )
            for at in np.argwhere(np.isinf(variance)).tolist():
                # The rest of a parent has no noise of its own.
                ends = dict(zip(kept, at, strict=True))
                row = [int(np.append(x.nodes, 0)[ends.get(p, 0)]) for p, x in enumerate(chosen)]
                reach[tuple(at)] = self.joint([asked], row).reach((1.0,), level)
            index = np.ix_(*(chosen[place].places for place in kept))
            found[index] = np.broadcast_to(reach, found[index].shape)
        return found

    def _pieces(
        self, lines: Sequence[_Line], kept: Sequence[int]
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what lemma 18 asks of sums whose nodes on each even axis are alike.

        The rate and weight of the own noise, the variance, and the greatest other weight over rate;
        on the axes whose nodes are kept.
        """
        along = [lines[place] for place in self._uneven]
        shape = [len(lines[x].places) if x in self._uneven else 1 for x in kept]
        first, variance, widest = (np.zeros(shape) for _ in range(3))
        rate = np.full(shape, limited(self.released[0].rate))

        def outer(factors: Iterable[Floats]) -> Floats:
            return _outer(factors).reshape(shape)

        worst = max(
            weighted.variance(limited(each.rate)) / noise
            for each, noise in zip(self.released, self.noise_by_release, strict=True)
        )
        squared = [
            {0: 1.0} if isinstance(axis, _Uneven) else axis.squared(line.weights)
            for axis, line in zip(self._axes, lines, strict=True)
        ]
        for key, table in self._tables.items():
            part = math.prod(x[d] for x, d in zip(squared, key, strict=True))
            if part:
                squares = self._squares[key]
                alone = [x.variances(each) for x, each in zip(along, squares, strict=True)]
                if scale := worst * part * _scale(table, squares):
                    variance += scale * outer(alone)
        for place, (block, given, *_) in enumerate(self.released):
            keys, r = list(self._below(block)), limited(given)
            own = all(x.has(depth) for x, depth in zip(lines, block, strict=True))
            # The different cells on even axes; the first is the own one, if there is one.
            table = self._shares[place][None]
            for at, (axis, line) in enumerate(zip(self._axes, lines, strict=True)):
                if not isinstance(axis, _Uneven):
                    depths = axis.below(block[at])
                    rows = axis.rows(line.weights, block[at])[:, :, 0]
                    if line.has(block[at]):
                        node = int(line.nodes[0]) - self.trees[at].starts[block[at]]
                        rows = np.vstack([rows[[node]], _distinct(np.delete(rows, node, 0))[0]])
                    else:
                        rows, _ = _distinct(rows)
                    rows = rows[:, [depths.index(key[at]) for key in keys]]
                    table = (table[:, None] * rows).reshape(-1, len(keys))
            groups: dict[tuple[int, ...], list[int]] = {}
            for number, key in enumerate(keys):
                groups.setdefault(tuple(map(id, self._squares[key])), []).append(number)
            mine, beside, most = np.zeros(shape), np.zeros(shape), np.zeros((len(table), *shape))
            for numbers in groups.values():
                sums = table[:, numbers].sum(axis=1)
                squares = self._squares[keys[numbers[0]]]
                pairs = [
                    x.reached(each, depth)
                    for x, each, depth in zip(along, squares, self._depths(block), strict=True)
                ]
                tops = [np.maximum(*pair) for pair in pairs]
                most += np.multiply.outer(np.abs(sums), outer(tops))
                if own:
                    mine += sums[0] * outer(x for x, _ in pairs)
                    for a, (_, other) in enumerate(pairs):
                        # At most this much by each, and any may be the greatest.
                        beside += abs(sums[0]) * outer([*tops[:a], other, *tops[a + 1 :]])
            rest = np.maximum(beside, most[1 if own else 0 :].max(axis=0, initial=0)) / r
            mine = np.abs(mine)
            better = mine / r > first / rate
            widest = np.max([widest, rest, np.where(better, first / rate, mine / r)], axis=0)
            first, rate = np.where(better, mine, first), np.where(better, r, rate)
        return rate, first, variance, widest

    @cached_property
    def lost(self) -> Fraction:
        """The total variation between all sampled noises together and the ideal ones, or more."""
        return sum((x.error * math.prod(self._shape(x.block)) for x in self.released), Fraction(0))

    @cached_property
    def noise(self) -> float:
        """More than the probability that any noise is not 0."""
        return weighted.any_noise(
            (limited(rate), math.prod(self._shape(x.block)))
            for x in self.released
            for rate in x.rates
        )

    def _shape(self, block: Block) -> list[int]:
        """Return how many nodes a block has on each axis."""
        pairs = zip(self.trees, block, strict=True)
        return [tree.starts[depth + 1] - tree.starts[depth] for tree, depth in pairs]

    def one_by_one(self, kinds: int) -> bool:
        """Whether each of this many kinds of rows has all its weights."""
        # Only all weights tell by how much rounding moves a sum, or have the noises of sums.
        return any(each.off or each.more for each in self.released) or (
            kinds <= self.most
            and kinds * max((x.size for x in self.trees), default=1) <= self.most_in_all
        )


class Fitted(NamedTuple):
    """Estimates: integers for the finest cells, if there are any, and components to add to them.

    The size is the sum of the absolute values that these are made of. It is infinite if a noisy
    count may have been moved to a limit of its type.
    """

    of: Workload
    base: Ints | None
    parts: Parts
    size: float

    def along(self, weights: Sum, nodes: Nodes) -> tuple[NDArray[Any], Floats, float]:
        """Return sums of estimates: integers (for integer weights), floats to add, and a bound.

        They have the axes whose nodes are not added up.
        """
        busy = self.of._busy([weights], nodes)
        self.of.check(weights, nodes, busy)
        axes = list(zip(self.of._axes, weights, nodes, strict=True))
        kept = [x for x, each in enumerate(weights) if each is None or isinstance(each, Groups)]
        shape = [len(nodes[x]) if weights[x] is None else weights[x].many for x in kept]  # type: ignore[arg-type]
        found = {}
        for key, on_all in self.of._touched(weights, nodes, busy):
            if on_all in self.parts:
                lost = [at for at, x in enumerate(busy) if x not in self.of._live(on_all)]
                found[key] = np.expand_dims(self.parts[on_all], lost)
        for number, place in reversed([*enumerate(busy)]):
            axis, each, at = axes[place]
            groups: dict[Block, dict[int, Floats]] = {}
            for key, part in found.items():
                groups.setdefault(key[:number], {})[key[number]] = part
            found = {key: axis.read(group, number, each, at) for key, group in groups.items()}
        more = np.zeros(shape)
        if found:
            sizes = dict(zip(busy, found[()].shape, strict=True))
            more = np.broadcast_to(found[()].reshape([sizes.get(x, 1) for x in kept]), shape)
        steps, rounding = self.of._steps + sum(x.size for x in self.of._axes), 0.0
        if self.size:
            # That of the root by itself is 1.
            grown = math.prod(axes[x][0].grown(*axes[x][1:]) for x in busy)
            rounding = self.size * steps * _ROUNDING * grown
        if self.base is None:
            return np.zeros(shape, np.int64), more, rounding
        base, of_base = self._of_cells(self.base, weights, nodes)
        return base, more, rounding + of_base

    def _of_cells(self, cells: Ints, weights: Sum, nodes: Nodes) -> tuple[NDArray[Any], float]:
        """Return sums of the finest cells, and a bound on their rounding."""
        base: NDArray[Any] = cells
        added, kept = list[NDArray[Any]](), list[int]()
        for place, (axis, each) in enumerate(zip(self.of._axes, weights, strict=True)):
            before = len(kept)
            if place not in self.of._wide:
                base = np.expand_dims(base, before)
            if each is None or isinstance(each, Groups):
                kept.append(place)
            if each is not None:
                own = axis.spread(each)
                base = _contracted(base, before, own)
                base = base if isinstance(own, Groups) else base.squeeze(before)
                added.append(own.weights if isinstance(own, Groups) else own)
        for number, place in enumerate(kept):
            if weights[place] is None:
                base = self.of._axes[place].nodes(base, number, nodes[place])
        return base, _rounded(cells, added) if base.dtype.kind == "f" else 0.0


class _Even:
    """An axis whose nodes of one depth have equally many leaves, down to the deepest that matters.

    Depths below are in no table.
    """

    def __init__(self, tree: Tree, used: Sequence[int]) -> None:
        self.tree, self.top = tree, (top := used[-1])
        self.sizes = [tree.starts[depth + 1] - tree.starts[depth] for depth in range(top + 1)]
        self.size = self.sizes[-1]
        self.with_cells = [top]
        self.steps = 4 * (sum(map(self._each, range(top))) + 2 * top + 2)
        #: By a node and a depth, the different rows there of the node's components, and how many.
        self.few: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._root: NDArray[Any] | None = None
        self._below = [
            [0, *(d for d in range(1, depth + 1) if self.sizes[d] > self.sizes[d - 1])]
            for depth in range(top + 1)
        ]

    def is_root(self, weights: NDArray[Any] | None, nodes: Ints | None) -> bool:
        """Whether a sum has the root and no other node."""
        if weights is None:
            return nodes is not None and not np.any(nodes)
        if isinstance(weights, Groups):
            return False
        if weights is self._root:
            return True
        found = bool(weights[0] == 1 and np.count_nonzero(weights) == 1)
        if found and not weights.flags.writeable:
            self._root = weights
        return found

    def _each(self, depth: int) -> int:
        """Return how many children a node of this depth has."""
        return self.sizes[depth + 1] // self.sizes[depth]

    def below(self, depth: int) -> list[int]:
        """Return the depths up to this one at which there is more than one sibling."""
        return self._below[depth]

    def nodes_at(self, depth: int) -> int:
        """Return the length of an array of a component along this axis."""
        return self.sizes[depth]

    def above(self, depth: int) -> int:
        """Return the number of parents of the nodes of a depth, the last ones with siblings."""
        return next(n for n in reversed(self.sizes[:depth]) if n < self.sizes[depth])

    def touched(self, weights: NDArray[Any] | None, nodes: Ints | None) -> list[int]:
        """Return the depths of the components that a sum has."""
        if weights is None:
            inside, lost = self._inside(nodes)
            return self.below(int(self.tree.depths[inside.max(initial=0)])) + lost
        if isinstance(weights, Groups):
            return self.below(self.top)
        raised, lost = _raised(self.tree, weights, self.top)
        sums = self._sums(raised)[0]
        found = [0] if sums[0].any() else []
        for depth in range(1, self.top + 1):
            groups = sums[depth].reshape(self.sizes[depth - 1], -1)
            if (groups != groups[:, :1]).any():
                found.append(depth)
        return found + lost

    def grown(self, weights: NDArray[Any] | None, nodes: Ints | None) -> float:
        """Return how much a sum, or a value, may exceed all numbers that it is made of."""
        if weights is None:
            return 2.0 * max(self.touched(None, nodes)) + 1
        if isinstance(weights, Groups):
            sizes = np.abs(weights.over(weights.weights)) / self.size
            return float((sizes + 2 * weights.over(np.abs(weights.weights), 0, np.maximum)).max())
        sums = self._sums(_raised(self.tree, weights, self.top)[0])[0]
        return sum(
            (2 if depth else 1) * float(np.abs(each).max()) / (self.size // self.sizes[depth])
            for depth, each in enumerate(sums)
        )

    def _inside(self, nodes: Ints | None) -> tuple[Ints, list[int]]:
        """Return the nodes of tables that are equal to these, and depths of those without."""
        assert nodes is not None
        lost = set()
        while self.top < self.tree.depth and (deep := self.tree.depths[nodes] > self.top).any():
            above = self.tree.parents[nodes[deep]]
            if self.tree.loose or (self.tree.children[above] > 1).any():
                lost.add(int(self.tree.depths[nodes].max()))
            nodes = nodes.copy()
            nodes[deep] = above
        return nodes, sorted(lost)

    def _sums(self, weights: NDArray[Any]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Return for each node of each depth the sum over the finest cells below it.

        That is of the weights of nodes from the depth on, and then of those below the depth alone;
        any further axes are kept.
        """
        found, below = [weights[self.tree.level(self.top)]], list[NDArray[Any]]()
        for depth in reversed(range(self.top)):
            groups = found[0].reshape(self.sizes[depth], -1, *weights.shape[1:])
            own = weights[self.tree.level(depth)] * (self.size // self.sizes[depth])
            below.insert(0, groups.sum(axis=1))
            found.insert(0, own + below[0])
        return found, below

    def rows(self, functionals: Floats, depth: int) -> NDArray[Any]:
        """Return at each node of a depth the components of functionals, as means of cells."""
        sums = self._sums(_raised(self.tree, functionals, self.top)[0])
        return self._rows(*sums, depth, np.arange(self.sizes[depth]))

    def distinct(self, functionals: Floats, depth: int) -> tuple[Floats, Floats]:
        """Return the different :meth:`rows` but for 0, and how many nodes have each."""
        if depth != 1:
            return _distinct(self.rows(functionals, depth))
        # The rows of siblings follow from their sums, which are often in few runs.
        sums = self._sums(_raised(self.tree, functionals, self.top)[0])
        starts, times = runs(sums[0][1])
        return _distinct(self._rows(*sums, depth, starts), times)

    def _rows(
        self, sums: list[NDArray[Any]], below: list[NDArray[Any]], depth: int, places: Ints
    ) -> NDArray[Any]:
        """Return the rows at some nodes of a depth, among them one of each that differs."""
        found = []
        for d in self.below(depth):
            each = sums[d][places // (self.sizes[depth] // self.sizes[d])]
            if d:
                many = self.sizes[d] // self.sizes[d - 1]
                above = places // (self.sizes[depth] // self.sizes[d - 1])
                # Equal ones have none.
                same = (each == sums[d][above * many]).all(axis=0)
                each = each - below[d - 1][above] / many
                each[:, same] = 0
            found.append(each / (self.size // self.sizes[d]))
        return np.moveaxis(np.stack(found), 0, 1)

    def rows_of(self, node: int, depth: int) -> tuple[Floats, Floats]:
        """Return the different :meth:`rows` of the functional that is 1 at a node, and how many.

        A component differs from 0 at the nodes above the node, or at it, and at their siblings: a
        row is that of the nodes of this depth whose deepest ancestor among those above is of one
        depth. Nothing but the depth of the node decides.
        """
        node = int(self._inside(np.array([node]))[0][0])
        own, keys = int(self.tree.depths[node]), self.below(depth)
        whole, last = float(self.size // self.sizes[own]), min(own, depth)
        # At each depth the value above the node, and beside.
        at, beside = [], []
        for d in keys:
            if d > own:
                at.append(0.0)
                beside.append(0.0)
                continue
            mean = whole / (self.sizes[d] // self.sizes[d - 1]) if d else 0.0
            at.append((whole - mean) / (self.size // self.sizes[d]))
            beside.append((0.0 - mean) / (self.size // self.sizes[d]) if d else 0.0)
        found, counts = [], []
        for e in range(last + 1):
            # Those below the node above of depth e, and below no deeper one.
            many = self.sizes[depth] // self.sizes[e]
            many -= self.sizes[depth] // self.sizes[e + 1] if e < last else 0
            if many:
                row = [
                    a if d <= e else b if d == e + 1 else 0.0
                    for d, a, b in zip(keys, at, beside, strict=True)
                ]
                found.append(row)
                counts.append(float(many))
        return np.array(found)[:, :, None], np.array(counts)

    def squared(self, functional: Floats) -> dict[int, float]:
        """Return the squared length of each component of a functional, over the finest cells."""
        rows = self.rows(functional, self.top)[:, :, 0]
        sizes = ((rows**2).sum(axis=0) / self.size).tolist()
        return dict(zip(self.below(self.top), sizes, strict=True))

    def read(
        self, parts: dict[int, Floats], place: int, weights: NDArray[Any] | None, nodes: Ints | None
    ) -> Floats:
        """Return the sum along this axis, or the values at its nodes, from components."""
        if isinstance(weights, Groups):
            own = self.spread(weights)
            own = own._replace(weights=own.weights / self.size)
            return np.asarray(sum(_contracted(x, place, own) for x in parts.values()))
        if weights is not None:
            sums = self._sums(_raised(self.tree, weights.astype(np.float64), self.top)[0])[0]
            return sum(_contracted(x, place, sums[d] / self.size) for d, x in parts.items())  # type: ignore[return-value]
        shape = list(next(iter(parts.values())).shape)

        def level(depth: int) -> Floats:
            shape[place] = self.sizes[depth]
            found = np.zeros(1)
            for d, part in parts.items():
                if d <= depth:
                    times = 1 if d == 0 else self.sizes[depth] // self.sizes[d]
                    found = found + (part if times == 1 else np.repeat(part, times, place))
            return np.broadcast_to(found / self.sizes[depth], shape)

        return self._picked(level, place, nodes)

    def _picked(
        self, level: Callable[[int], NDArray[Any]], place: int, nodes: Ints | None
    ) -> NDArray[Any]:
        """Return the values at some nodes, from those of all nodes of a depth."""
        nodes, _ = self._inside(nodes)
        if not nodes.size:
            return np.take(level(0), nodes, place)
        depths, order, picked = self.tree.depths[nodes], None, []
        if (np.diff(depths) < 0).any():
            order = np.argsort(depths, kind="stable")
            nodes, depths = nodes[order], depths[order]
        for some in np.split(nodes, runs(depths)[0][1:]):
            depth = int(self.tree.depths[some[0]])
            values, places = level(depth), some - self.tree.starts[depth]
            if not np.array_equal(places, np.arange(self.sizes[depth])):
                values = np.take(values, places, place)
            picked.append(values)
        found: NDArray[Any] = picked[0] if len(picked) == 1 else np.concatenate(picked, place)
        return found if order is None else found.take(np.argsort(order), place)

    def cells(self, depth: int) -> tuple[Ints, Ints]:  # noqa: ARG002
        """Return the places of the finest cells, in an array of these and in a table."""
        return np.arange(self.size), np.arange(self.size)

    def sums(self, base: NDArray[Any], place: int, depth: int) -> NDArray[Any]:
        """Return the sums at the nodes of a depth, from the finest cells."""
        if base.shape[place] == self.sizes[depth]:
            return base
        return np.asarray(_groups(base, place, self.sizes[depth]).sum(place + 1))

    def nodes(self, base: NDArray[Any], place: int, nodes: Ints | None) -> NDArray[Any]:
        """Return the sums at some nodes, from the finest cells."""
        return self._picked(lambda depth: self.sums(base, place, depth), place, nodes)

    def spread(self, weights: Any) -> Any:
        """Return the weights of the finest cells that stand for those of nodes."""
        if isinstance(weights, Groups):
            assert self.top == self.tree.depth == 1  # They are of a list.
            of, own = (each[self.tree.level(1)] for each in weights[:2])
            return Groups(of, own, weights.many)
        raised, _ = _raised(self.tree, weights, self.top)
        found = raised[:1]
        for depth in range(1, self.top + 1):
            found = np.repeat(found, self._each(depth - 1)) + raised[self.tree.level(depth)]
        return found


class _Apart:
    """A tree whose nodes may have records of their own: nothing is known of one depth by another.

    So each depth is a component, and an estimate is that of its own table alone.
    """

    def __init__(self, tree: Tree, used: Sequence[int]) -> None:
        self.tree, self.top, self.size, self.with_cells = tree, used[-1], tree.size, list(used)
        self.steps = 4

    def below(self, depth: int) -> list[int]:
        return [depth]

    def nodes_at(self, depth: int) -> int:
        return len(self.cells(depth)[0])

    def touched(self, weights: NDArray[Any] | None, nodes: Ints | None) -> list[int]:
        """Return the depths of the nodes that a sum has."""
        chosen = nodes if weights is None else np.flatnonzero(weights)
        return np.unique(self.tree.depths[chosen]).tolist()  # type: ignore[no-any-return]

    def grown(self, weights: NDArray[Any] | None, nodes: Ints | None) -> float:  # noqa: ARG002
        return 1.0 if weights is None else float(np.abs(weights).sum())

    def rows(self, functionals: Floats, depth: int) -> NDArray[Any]:
        return functionals[self.tree.level(depth)][:, None]

    def squared(self, functional: Floats) -> dict[int, float]:
        """Return the squared length of a functional at each depth."""
        levels = map(self.tree.level, range(self.top + 1))
        return {d: float((functional[each] ** 2).sum()) for d, each in enumerate(levels)}

    def read(
        self, parts: dict[int, Floats], place: int, weights: NDArray[Any] | None, nodes: Ints | None
    ) -> Floats:
        """Return the sum along this axis, or the values at its nodes, from those of depths."""
        if weights is not None:
            levels = {depth: weights[self.tree.level(depth)] for depth in parts}
            return sum(_contracted(x, place, levels[d]) for d, x in parts.items())  # type: ignore[return-value]
        shape = list(next(iter(parts.values())).shape)
        shape[place] = self.size
        found = np.zeros(shape)
        for depth, part in parts.items():
            found[(slice(None),) * place + (self.tree.level(depth),)] = part
        return found.take(nodes, place)  # type: ignore[arg-type]

    def cells(self, depth: int) -> tuple[Ints, Ints]:
        level = self.tree.level(depth)
        found = np.arange(level.start, level.stop)
        return found, found - level.start

    def sums(self, base: NDArray[Any], place: int, depth: int) -> NDArray[Any]:
        return base[(*(slice(None),) * place, self.tree.level(depth))]

    def nodes(self, base: NDArray[Any], place: int, nodes: Ints | None) -> NDArray[Any]:
        return base.take(nodes, place)  # type: ignore[arg-type]

    def spread(self, weights: NDArray[Any]) -> NDArray[Any]:
        return weights


class _Uneven:
    """Any other axis: each component of the even ones has two passes along it."""

    def __init__(self, tree: Tree, used: Sequence[int]) -> None:
        self.tree, self.top, self.size = tree, used[-1], tree.size
        self.steps = 8 * (tree.depth + 2) ** 2 * (int(tree.children.max()) + 8)
        self._known: dict[tuple[float, ...], LeastSquares] = {}
        self.with_cells = [d for d in range(self.top + 1) if len(self.cells(d)[0])]

    def nodes_at(self, depth: int) -> int:  # noqa: ARG002
        return self.size

    def below(self, depth: int) -> list[int]:  # noqa: ARG002
        return [0]

    def touched(self, weights: NDArray[Any] | None, nodes: Ints | None) -> list[int]:  # noqa: ARG002
        return [0]

    def squares(self, noise: Floats) -> LeastSquares:
        """Return the least squares for these variances by depth, up to a factor."""
        used = noise[(noise > 0) & np.isfinite(noise)]
        noise = noise / used.max() if used.size else noise
        key = tuple(float(f"{x:.12g}") for x in noise)
        if key not in self._known:
            self._known[key] = LeastSquares(self.tree, noise[self.tree.depths])
        return self._known[key]

    def grown(self, weights: NDArray[Any] | None, nodes: Ints | None) -> float:  # noqa: ARG002
        """Return how much a sum, or a value, may exceed all numbers that it is made of."""
        depth, heaviest = self.tree.depth, 1.0
        if weights is not None:
            heaviest = (depth + 1) * float(np.abs(weights).max())
        return (2 * depth + 1) * heaviest

    def missing(
        self, squares: LeastSquares, weights: NDArray[Any] | None, nodes: Ints | None
    ) -> int | None:
        """Return the depth of nodes that the tables do not determine, if a sum has some."""
        if weights is None:
            assert nodes is not None
            lost = nodes[~squares.found[nodes]]
        elif squares.determined(weights[:, None])[0]:
            return None
        else:
            lost = np.flatnonzero((weights != 0) & ~squares.found)
            lost = lost if lost.size else np.flatnonzero(weights)
        return int(self.tree.depths[lost].min()) if lost.size else None

    def read(
        self, parts: dict[int, Floats], place: int, weights: NDArray[Any] | None, nodes: Ints | None
    ) -> Floats:
        if weights is None:
            return np.take(parts[0], nodes, place)  # type: ignore[arg-type]
        return _contracted(parts[0], place, weights)

    def cells(self, depth: int) -> tuple[Ints, Ints]:
        level = self.tree.level(depth)
        found = np.arange(level.start, level.stop)
        if depth < self.top:
            found = found[self.tree.children[level] == 0]
        return found, found - level.start

    def sums(self, base: NDArray[Any], place: int, depth: int) -> NDArray[Any]:
        return base[(*(slice(None),) * place, self.tree.level(depth))]

    def nodes(self, base: NDArray[Any], place: int, nodes: Ints | None) -> NDArray[Any]:
        assert nodes is not None
        # Below the deepest table only a child without siblings has an answer: its parent's.
        while (deep := self.tree.depths[nodes] > self.top).any():
            nodes = np.where(deep, self.tree.parents[nodes], nodes)
        return np.take(base, nodes, place)

    def spread(self, weights: NDArray[Any]) -> NDArray[Any]:
        return _raised(self.tree, weights, self.top)[0]


class _Line:
    """Nodes of an axis, or one weighted sum of nodes, whose errors have bounds together."""

    def __init__(self, tree: Tree, places: Ints, nodes: Ints, weights: Floats | None) -> None:
        self.tree, self.places, self.nodes = tree, places, nodes
        #: A column of weights; on an axis that is even the nodes are alike, and these the first's.
        self.weights = np.zeros((tree.size, 1)) if weights is None else weights[:, None]
        if weights is None:
            self.weights[nodes[:1]] = 1

    def has(self, depth: int) -> bool:
        """Whether a noise at this depth is that of a node itself."""
        return bool((self.tree.depths[self.nodes] == depth).any())

    def variances(self, squares: LeastSquares) -> Floats:
        """Return the variance of each estimate."""
        if self.nodes.size:
            return squares.variances[self.nodes]
        weights = squares.weights(self.weights)[:, 0]
        return np.array([weights**2 @ np.where(np.isinf(squares.noise), 0, squares.noise)])

    def reached(self, squares: LeastSquares, depth: int) -> tuple[Floats, Floats]:
        """Return the weight of the own noise of each, and the greatest other one, of a depth."""
        at = squares.tree.depths == depth
        if not self.nodes.size:
            weights = np.abs(squares.weights(self.weights)[at])
            return np.zeros(1), weights.max(axis=0)
        own = np.zeros(at.size)
        some = at & (squares.noise > 0) & np.isfinite(squares.own)
        np.divide(squares.variances, squares.noise, out=own, where=some)
        return own[self.nodes], squares.widest(at.astype(np.float64))[self.nodes]


def _lines(
    axis: _Even | _Apart | _Uneven, weights: NDArray[Any] | None, nodes: Ints | None
) -> Iterator[_Line]:
    """Yield the nodes of an axis, by depth if nodes of one depth are alike, or the weighted sum."""
    tree = axis.tree
    if weights is not None:
        chosen = np.flatnonzero(weights)
        nodes = chosen if chosen.size == 1 and weights[chosen[0]] == 1 else chosen[:0]
        own = None if nodes.size else weights.astype(np.float64)
        yield _Line(tree, np.zeros(1, np.int64), nodes, own)
    elif not isinstance(axis, _Uneven):
        assert nodes is not None
        depths = tree.depths[nodes]
        for depth in np.flatnonzero(np.bincount(depths)).tolist():
            places = np.flatnonzero(depths == depth)
            yield _Line(tree, places, nodes[places], None)
    else:
        assert nodes is not None
        yield _Line(tree, np.arange(len(nodes)), nodes, None)


def _by_noise(
    parts: Iterable[tuple[Release, Floats, Floats]],
) -> tuple[list[tuple[Fraction | float, Floats, Floats]], list[int]]:
    """Return the rate and the weights of each noise, and how far rounding moved the counts."""
    pairs = [
        ((rate, weights, counts), 0 if place else release.off)
        for release, weights, counts in parts
        for place, rate in enumerate(release.rates)
    ]
    return [part for part, _ in pairs], [off for _, off in pairs]


def _scale(table: Floats, squares: Sequence[LeastSquares]) -> float:
    """Return the greatest variance of the mean of a component over that of its least squares."""
    noise = _outer(each.noise[each.tree.starts[:-2]] for each in squares).reshape(table.shape)
    used = (table > 0) & np.isfinite(table)
    return float((1 / table[used] / noise[used]).max(initial=0))


def _outer(factors: Iterable[Floats]) -> Floats:
    """Return the products of an item of each, the last one changing fastest."""
    found = np.ones(1)
    for each in factors:
        found = (found[:, None] * each).reshape(-1)
    return found


def _kind(tree: Tree, top: int) -> type[Any]:
    """Return the kind of an axis, of which tables have depths down to `top`."""
    if tree.loose and top:
        return _Apart
    levels = [tree.children[tree.level(depth)] for depth in range(top)]
    return _Even if all(x.min() == x.max() for x in levels) else _Uneven


def may_answer_nothing(trees: Sequence[Tree]) -> bool:
    """Return whether some tables have no workload: those of one uneven tree, or none, have one."""
    return sum(_kind(tree, tree.depth) is _Uneven for tree in trees) > 1


def _raised(tree: Tree, weights: NDArray[Any], top: int) -> tuple[NDArray[Any], list[int]]:
    """Return weights of nodes at a depth and above that stand for others, and depths without.

    Where the children of a node have one weight, it is that of the node.
    """
    found, lost = weights if top == tree.depth else weights.copy(), []
    for depth in reversed(range(top, tree.depth)):
        level, inner = tree.below(depth), tree.inner[depth]
        if tree.loose:
            if found[level].any():
                lost.append(depth + 1)
            continue
        least, most = (tree.over_children(depth, found[level], x) for x in (np.minimum, np.maximum))
        if (least < most).any():
            lost.append(depth + 1)
        found[inner] += least
        found[level] = 0
    return found, lost[::-1]


def _factors(table: Floats) -> list[Floats]:
    """Return variances by depth on each axis whose products are in proportion to 1 / precisions.

    If they are not products, those at the greatest depths of the other axes.
    """
    if not table.ndim:
        return []
    used, known = table > 0, np.isinf(table)
    free = used & ~known
    most = tuple(int(x.max(initial=0)) for x in np.nonzero(free if free.any() else used))
    found, fits = [], np.ones(table.shape, np.bool_)
    given = np.zeros(table.shape, np.bool_)
    for axis in range(table.ndim):
        others = tuple(x for x in range(table.ndim) if x != axis)
        some = used.any(axis=others)
        all_known = some & ~free.any(axis=others)
        shape = [-1 if x == axis else 1 for x in range(table.ndim)]
        fits &= some.reshape(shape)
        given |= all_known.reshape(shape)
        own = table[tuple(slice(None) if x == axis else at for x, at in enumerate(most))]
        with np.errstate(divide="ignore"):
            noise = np.where(some, np.where(all_known, 0.0, 1 / own), np.inf)
        found.append(noise)
    if (fits != used).any() or ((given & used) != known).any():
        raise ValueError(
            "tables of several uneven trees are accepted for all combinations of some depths of "
            "each, with those of some depths known or not: give these"
        )
    return found


def _groups(values: NDArray[Any], axis: int, many: int) -> NDArray[Any]:
    """Return a view with an axis for groups of siblings, and one for the siblings of each."""
    shape = values.shape
    return values.reshape(*shape[:axis], many, shape[axis] // many, *shape[axis + 1 :])


def _over(values: NDArray[Any], axis: int, function: Any) -> NDArray[Any]:
    """Return the result of a function of the first axis, applied to this one."""
    moved = np.ascontiguousarray(np.moveaxis(values, axis, 0))
    found: NDArray[Any] = np.moveaxis(function(moved), 0, axis)
    return found


def _contracted(values: NDArray[Any], axis: int, weights: NDArray[Any] | Groups) -> NDArray[Any]:
    """Return the weighted sum along an axis, which keeps length 1, or that of each group."""
    if isinstance(weights, Groups):
        shape = (-1, *[1] * (values.ndim - axis - 1))
        return np.asarray(weights.over(values * weights.weights.reshape(shape), axis))
    used = np.flatnonzero(weights)
    found: NDArray[Any]
    if used.size == weights.size and (weights == 1).all():
        found = values.sum(axis=axis)
    else:
        found = np.tensordot(np.take(values, used, axis=axis), weights[used], axes=(axis, 0))
    return np.expand_dims(found, axis)


def _rounded(values: NDArray[Any], added: list[NDArray[Any]]) -> float:
    """Return a bound on the rounding of weighted sums of integers along axes."""
    size = float(np.abs(values.astype(np.float64)).sum())
    heaviest = math.prod(float(np.abs(each).max()) for each in added)
    # Small integers are exact.
    if all((each == np.rint(each)).all() for each in added) and heaviest * size < EXACT:
        return 0.0
    return (sum(each.size for each in added) + 4) * _ROUNDING * heaviest * size


def _distinct(rows: Floats, times: Ints | None = None) -> tuple[Floats, Floats]:
    """Return the different rows but for 0, and how often each occurs: each is there so often."""
    starts, sizes = runs(rows)
    shape, sizes = rows.shape[1:], sizes if times is None else np.add.reduceat(times, starts)
    # Rows are compared as bytes, which 0 and -0 do not share.
    rows = rows[starts].reshape(len(starts), math.prod(shape)) + 0.0
    keys = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}")
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    counts, found = np.bincount(codes.reshape(-1), sizes), rows[first]
    used = found.any(axis=1)
    return found[used].reshape(-1, *shape), counts[used].astype(np.float64)
