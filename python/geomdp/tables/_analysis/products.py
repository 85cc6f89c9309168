"""Noisy counts on a product of trees: least squares, and the errors of the estimates.

A node of the product is a node of each tree. A block, a depth on each tree, has independent noise
of one rate. ``docs/proofs.md``, section 17, derives the formulas.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._numerics import sums
from geomdp.tables._analysis import weighted
from geomdp.tables._analysis.ends import EXACT, Ends
from geomdp.tables._analysis.trees import Ints, LeastSquares, Tree
from geomdp.tables._analysis.weighted import Floats, Term

#: Depths on all trees.
Block: TypeAlias = tuple[int, ...]
#: A sum of estimates: for each tree weights of its nodes, or None for each node by itself.
Sum: TypeAlias = Sequence[NDArray[Any] | None]

#: Variances below this part of the greatest are raised to it.
_LEAST = 1e-12
#: Greater rates count as this one, whose noise has probability 1e-260.
_MOST = 600.0
#: Weights are those at this greatest rate, so that those of almost no noise do not become unequal:
#: they would have the least variance, and longer tails.
_WEIGHTS = 3.0
#: Noisy counts whose sum may be beyond this are not added up exactly.
_LARGEST = 2.0**62
#: A float of this precision.
_ROUNDING = 2.0**-52
#: The parts of the level for the sign of a denominator, the least first.
_OF_SIGN = (1 / 128, 1 / 8, 1 / 2)
#: Ends of ratios are multiples of a power of 2 that is at most this part of their distance.
_GRID = 64
#: The number of ratios at which the reach is computed, for a first guess of the ends.
_MIDDLES = 9
#: The most frequencies at once.
_AT_ONCE = 2**19
#: The most steps from a first guess of an end to one that is tested.
_STEPS = 64


class HasTrees(Protocol):
    """What rows have kinds in."""

    trees: list[Tree]


class Errors:
    """The errors of some estimates: sums of the same independent noises.

    A part has a rate, the weights of a noise in each estimate, a row for noises with equal weights,
    and how many noises have these.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Fraction | float, Floats, Floats]],
        offs: Sequence[int] | None = None,
    ) -> None:
        self.parts = parts
        #: Of each part, the most that its noisy counts were moved after the noise.
        self.offs = [0] * len(parts) if offs is None else list(offs)
        self._known: dict[Any, float] = {}

    def of(self, factors: Sequence[float]) -> list[tuple[Fraction | float, Floats, Floats]]:
        """Return for each rate the weights in a sum of the estimates, and how many have them."""
        by_rate = defaultdict(list)
        for rate, weights, counts in self.parts:
            values = np.abs(weights @ np.asarray(factors))
            by_rate[rate].append((values[values > 0], counts[values > 0]))
        found = []
        for rate, pairs in by_rate.items():
            values, counts = map(np.concatenate, zip(*pairs, strict=True))
            if values.size:
                found.append((rate, values, counts))
        return found

    def reach(self, factors: Sequence[float], level: float) -> float:
        """Return a t that the error of the sum of the estimates exceeds with at most this level.

        It is the least integer multiple for equal weights and one rate.
        """
        key = tuple(factors), level
        if key not in self._known:
            self._known[key] = self._reach(factors, level) + self.off(factors)
        return self._known[key]

    def off(self, factors: Sequence[float]) -> float:
        """Return the most that moves of the noisy counts change the sum (lemma 16c)."""
        found, exact = 0.0, True
        for (_, weights, counts), off in zip(self.parts, self.offs, strict=True):
            if off and len(counts):
                values = np.abs(weights @ np.asarray(factors))
                found += off * float(values @ counts)
                exact = exact and bool((values == np.rint(values)).all())
        return found if exact and found < EXACT else found * weighted.ROUNDED

    def within(self, ratios: Floats, reaches: Floats, level: float) -> NDArray[np.bool_]:
        """Return whether the first error minus a ratio times the second is within each reach.

        That is, whether it exceeds it with at most this level, by a proved bound.
        """
        if any(self.offs):
            reaches = reaches - [self.off((1.0, -ratio)) for ratio in ratios.tolist()]
        tried, which = np.unique(np.stack([ratios, reaches], 1), axis=0, return_inverse=True)
        found = tried[:, 1] > 0
        size = max(1, _AT_ONCE // max(1600, sum(len(counts) for _, _, counts in self.parts)))
        for start in range(0, len(tried), size):
            some = slice(start, start + size)
            terms = [
                Term(_limited(rate), np.abs(weights[:, :1] - tried[some, 0] * weights[:, 1:]), n)
                for rate, weights, n in self.parts
                if len(n)
            ]
            # Without weights there is no error.
            noisy = np.any([x.weights.any(axis=0) for x in terms], axis=0)
            terms = [Term(x.rate, x.weights[:, noisy], x.counts) for x in terms]
            places = start + np.flatnonzero(noisy)
            if not places.size:
                continue
            inversion = weighted.Inversion(terms, level)
            found[places] = inversion.holds(tried[places, 1])
            for place in places[~inversion.room].tolist():
                ratio, reach = tried[place].tolist()
                found[place] = self._reach((1.0, -ratio), level) < reach
        return np.asarray(found[which.reshape(-1)])

    def _reach(self, factors: Sequence[float], level: float) -> float:
        parts = self.of(factors)
        if not parts:
            return 0.0
        [rate, values, counts], *others = parts
        if not others and values.min() == values.max():
            exact, weight = rate if isinstance(rate, Fraction) else sums.NO_NOISE, float(values[0])
            found = weight * sums.reach(exact, {1: int(counts.sum())}, Fraction(level))
            # Weights that are no integers are rounded.
            return found if weight.is_integer() else found * weighted.ROUNDED
        terms = [Term(_limited(rate), x, n) for rate, x, n in parts]
        return weighted.reach(terms, level)

    @cached_property
    def noise(self) -> float:
        """More than the probability that any of the noises is not 0."""
        used = ((rate, counts[weights.any(axis=1)]) for rate, weights, counts in self.parts)
        return weighted.any_noise((_limited(rate), counts) for rate, counts in used)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance matrix that chooses weights: no rate is above `_WEIGHTS`."""
        scale = _of_weights(rate for rate, _, _ in self.parts)
        parts = [
            weighted.variance(scale * _limited(rate)) * (weights.T * counts) @ weights
            for rate, weights, counts in self.parts
        ]
        return np.asarray(sum(parts))

    @cached_property
    def mirrored(self) -> Errors:
        """The errors, with the first estimate's sign changed."""
        parts = [(rate, weights * [-1, 1], counts) for rate, weights, counts in self.parts]
        return Errors(parts, self.offs)

    def beside(self, other: Errors) -> Errors:
        """Return the errors of these estimates and of others, from independent noises."""
        own, theirs = (each.parts[0][1].shape[1] for each in (self, other))
        return Errors(
            [(rate, np.pad(w, ((0, 0), (0, theirs))), n) for rate, w, n in self.parts]
            + [(rate, np.pad(w, ((0, 0), (own, 0))), n) for rate, w, n in other.parts],
            [*self.offs, *other.offs],
        )


class Fitted(NamedTuple):
    """Estimates of all nodes: integers, floats to add to them, and a bound on rounding errors.

    The bound is infinite if a noisy count may have been moved to a limit of its type.
    """

    sums: Ints
    more: Floats
    rounding: float

    def along(self, weights: Sum) -> tuple[NDArray[Any], Floats, float]:
        """Return sums of estimates: integers (for integer weights), floats to add, and a bound.

        Trees whose nodes are added up keep an axis of length 1.
        """
        base, more = self.sums, self.more
        for axis, each in enumerate(weights):
            if each is not None:
                base, more = (_contracted(x, axis, each) for x in (base, more))
        given = [each for each in weights if each is not None]
        # An infinite bound stays infinite.
        heaviest = math.prod(max(float(np.abs(each).max()), 1e-300) for each in given)
        rounding = self.rounding * heaviest * (self.more.size // max(more.size, 1))
        size = float(np.abs(self.sums).sum() + np.abs(self.more).sum())
        whole = all((each == np.rint(each)).all() for each in given) and not self.more.any()
        # Small integers are exact.
        if base.dtype.kind == "f" and not (whole and heaviest * size < EXACT):
            rounding += (sum(each.size for each in given) + 4) * _ROUNDING * heaviest * size
        return base, more, rounding


class Product:
    """Everything public about the noise of a product of trees.

    Parameters
    ----------
    trees
        One for each axis.
    rates, errors
        By block: the rate of the noise, and the total variation between one sampled noise and the
        ideal one.
    off
        The most that each noisy count was moved after the noise.

    """

    #: The most kinds of rows, and kinds times nodes, for which each kind has all its weights.
    most, most_in_all = 256, 5 * 10**6

    def __init__(
        self,
        trees: Sequence[Tree],
        rates: Mapping[Block, Fraction | float],
        errors: Mapping[Block, Fraction],
        off: int = 0,
    ) -> None:
        self.trees, self.rates, self.errors = list(trees), dict(rates), dict(errors)
        self.off = off
        self.shape = tuple(tree.size for tree in self.trees)
        self.flat = all(tree.flat for tree in self.trees)
        deepest = tuple(tree.depth for tree in self.trees)
        #: The rates by depth on each axis, with the greatest depths on the others.
        self._by_depth = [
            [
                _limited(rates[(*deepest[:axis], depth, *deepest[axis + 1 :])])
                for depth in range(tree.depth + 1)
            ]
            for axis, tree in enumerate(self.trees)
        ]
        scale = _of_weights(rates.values())
        self.squares = [
            least_squares(tree, [rate * scale for rate in by_depth])
            for tree, by_depth in zip(self.trees, self._by_depth, strict=True)
        ]

    def fit(self, noisy: Ints, *, leaves_alone: bool = False) -> Fitted:
        """Return the weighted least squares of noisy counts, in the shape of the product.

        The least squares keep numbers that add up, so they apply to the differences from the sums
        of noisy leaves alone: floats are of the size of the noise. If they are to be sums of leaves
        alone, there are no differences.
        """
        limits = np.iinfo(np.int64)
        inside = limits.min < noisy.min() and noisy.max() < limits.max
        found, more = noisy, np.zeros((1,) * noisy.ndim)
        small = inside and np.abs(noisy.astype(np.float64)).sum() < _LARGEST
        if not small:
            more = noisy.astype(np.float64)
            found = np.zeros_like(noisy)
        if self.flat:
            return Fitted(found, more, 0.0 if small else math.inf)
        if small:
            added = [(axis, tree) for axis, tree in enumerate(self.trees) if not tree.flat]
            for axis, tree in added:
                inner = (slice(None),) * axis + (tree.children > 0,)
                found = found.copy()
                found[inner] = 0
            for axis, tree in added:
                found = _over(found, axis, tree.sums)
            if leaves_alone:
                return Fitted(found, more, 0.0)
            more = (noisy - found).astype(np.float64)
        size, steps, grown = float(np.abs(more).sum()), 0, 1
        for axis, (tree, squares) in enumerate(zip(self.trees, self.squares, strict=True)):
            if not tree.flat:
                more = _over(more, axis, squares)
                # More than the roundings of a pass up and one down, and how much they let a value
                # grow.
                steps += 8 * (tree.depth + 2) ** 2 * (int(tree.children.max()) + 8)
                grown *= 2 * tree.depth + 1
        return Fitted(found, more, size * steps * grown * _ROUNDING if small else math.inf)

    @cached_property
    def lost(self) -> Fraction:
        """The total variation between all sampled noises together and the ideal ones, or more."""
        return sum(
            (error * self._number(block) for block, error in self.errors.items()), Fraction(0)
        )

    @cached_property
    def noise(self) -> float:
        """More than the probability that any noise is not 0."""
        return weighted.any_noise((_limited(x), self._number(at)) for at, x in self.rates.items())

    def _number(self, block: Block) -> int:
        """Return how many nodes a block has."""
        return math.prod(
            int(tree.starts[depth + 1] - tree.starts[depth])
            for tree, depth in zip(self.trees, block, strict=True)
        )

    def one_by_one(self, kinds: int) -> bool:
        """Whether each of this many kinds of rows has all its weights."""
        return kinds <= self.most and kinds * max(self.shape) <= self.most_in_all

    def joint(self, asked: Sequence[Sum], nodes: Sequence[int]) -> Errors:
        """Return the errors of sums, at a node of each axis where they have each by itself."""
        by_axis = [
            self._rows(axis, [each[axis] for each in asked], node)
            for axis, node in enumerate(nodes)
        ]
        parts = []
        for block, rate in self.rates.items():
            weights, counts = np.ones((1, len(asked))), np.ones(1)
            for rows, depth in zip(by_axis, block, strict=True):
                more, times = rows[depth]
                weights = (weights[:, None] * more).reshape(-1, len(asked))
                counts = (counts[:, None] * times).reshape(-1)
            parts.append((rate, weights, counts))
        return Errors(parts, [self.off] * len(parts))

    def _rows(
        self, axis: int, vectors: Sequence[NDArray[Any] | None], node: int
    ) -> list[tuple[Floats, Floats]]:
        """Return the different rows of weights of each depth of an axis, and how often they are."""
        tree = self.trees[axis]
        functionals = np.zeros((tree.size, len(vectors)))
        for place, each in enumerate(vectors):
            if each is None:
                functionals[node, place] = 1
            else:
                functionals[:, place] = each
        weights = self.squares[axis].weights(functionals)
        return [_distinct(weights[tree.level(depth)]) for depth in range(tree.depth + 1)]

    def bounds(self, asked: Sum, nodes: Sequence[Ints | None], level: float) -> Floats:
        """Return the reach of each of many sums in two passes along each axis, by lemma 18.

        The nodes are those of the axes with each node by itself. On each axis there is the part of
        the noise of the node in its own estimate, the variance of all, and the greatest weight over
        rate; and the products of these, for the product.
        """
        own, whole, widest, most, depths, lengths = [], [], [], [], [], []
        for axis, (each, tree, squares) in enumerate(
            zip(asked, self.trees, self.squares, strict=True)
        ):
            factors = 1 / np.asarray(self._by_depth[axis])[tree.depths]
            given = nodes[axis]
            at = given if each is None and given is not None else np.flatnonzero(each)  # type: ignore[arg-type]
            if each is None or (at.size == 1 and each[at[0]] == 1):
                first = (squares.variances / squares.noise)[at]
                variance, other = squares.variances[at], squares.widest(factors)[at]
                scaled, length = first * factors[at], squares.lengths[at]
            else:
                at, first = np.zeros(1, np.int64), np.zeros(1)
                weights = np.abs(squares.weights(each.astype(np.float64)))
                variance = np.atleast_1d(weights**2 @ squares.noise)
                other, scaled = np.atleast_1d((weights * factors).max()), np.zeros(1)
                length = np.atleast_1d(weights.sum())
            own.append(first)
            whole.append(variance)
            widest.append(other)
            most.append(np.maximum(scaled, other))
            depths.append(tree.depths[at])
            lengths.append(length)
        offs = np.asarray(self.off * _outer(lengths) * weighted.ROUNDED)
        offs = offs.reshape([len(each) for each in depths])
        if self.noise <= level:
            return offs
        table = np.empty([tree.depth + 1 for tree in self.trees])
        by_kind = 0.0, 0.0
        for block, rate in self.rates.items():
            table[block] = _limited(rate)
            pairs = [
                (self.squares[axis].noise[self.trees[axis].starts[d]], 1 / self._by_depth[axis][d])
                for axis, d in enumerate(block)
            ]
            products = [math.prod(x) for x in zip(*pairs, strict=True)]
            by_kind = (
                max(by_kind[0], weighted.variance(table[block]) / products[0]),
                max(by_kind[1], 1 / table[block] / products[1]),
            )
        rates = table[np.ix_(*depths)].reshape(-1)
        first, variance = _outer(own), by_kind[0] * _outer(whole)
        by_rate = {rate: weighted.variance(rate) for rate in set(table.reshape(-1).tolist())}
        exact = first**2 * np.vectorize(by_rate.__getitem__)(rates)
        # More than the rounding errors of the difference.
        rest = np.maximum(variance - exact, 0) + 1e-9 * variance
        others = np.max(
            [
                _outer([widest[x] if x == axis else most[x] for x in range(len(most))])
                for axis in range(len(most))
            ],
            axis=0,
        )
        found = weighted.by_cumulants((rates, first), (rest, by_kind[1] * others), by_rate, level)
        return np.asarray(found.reshape(offs.shape) + offs)


def kinds(
    products: Sequence[HasTrees], nodes: Sequence[Sequence[Ints | None]]
) -> tuple[int, Iterator[tuple[tuple[Any, ...], list[list[int]]]]]:
    """Return how many kinds of rows there are, and for each its rows and a node of each product.

    A product has nodes on each axis that its rows keep, and None on the others. All products have
    equally many of them. Rows of one kind have errors of equal distributions.
    """
    picks: list[tuple[NDArray[Any], list[list[int]]]] = []
    for axes in zip(*([y for y in x if y is not None] for x in nodes), strict=True):
        kept = [[a for a, y in enumerate(x) if y is not None][len(picks)] for x in nodes]
        codes = np.stack(
            [
                each.trees[axis].kinds[1][at]
                for each, axis, at in zip(products, kept, axes, strict=True)
            ]
        )
        _, first, which = np.unique(codes, axis=1, return_index=True, return_inverse=True)
        picks.append((which.reshape(-1), [[int(at[f]) for at in axes] for f in first]))

    def each() -> Iterator[tuple[tuple[Any, ...], list[list[int]]]]:
        for chosen in product(*(range(len(found)) for _, found in picks)):
            rows = [np.flatnonzero(which == c) for (which, _), c in zip(picks, chosen, strict=True)]
            found = [list[int]() for _ in products]
            for place, given in enumerate(nodes):
                heads = iter(zip(picks, chosen, strict=True))
                for at in given:
                    if at is None:
                        found[place].append(0)
                    else:
                        (_, firsts), c = next(heads)
                        found[place].append(firsts[c][place])
            yield tuple(np.ix_(*rows)), found

    return math.prod(len(found) for _, found in picks), each()


def ratio_ends(
    counts: tuple[Floats, Floats], errors: Errors, level: float, rounding: float
) -> Ends:
    """Return intervals for ratios of two true numbers, the second of them positive.

    Each holds all ratios that a test does not reject at half the level on one of its sides, and a
    little more; both ends are infinite if the second number cannot be told from 0. All numbers have
    these errors. The rounding is more than the error of each noisy number (``docs/proofs.md``,
    theorem 16a). If any noise is less probable than the level, the ends are those of no noise.
    """
    above, below = counts
    if errors.noise <= level and not any(errors.offs):
        return Ends.of_quotients(above, below, rounding)
    lower, upper = np.full(above.shape, -np.inf), np.full(above.shape, np.inf)
    known = np.zeros(above.shape, np.bool_)
    for part in _OF_SIGN:
        some = ~known & (below - rounding > errors.reach((0.0, 1.0), level * part))
        known |= some
        if some.any():
            left = math.nextafter(level * (1 - part), 0.0)
            pair = above[some], below[some]
            upper[some] = _greatest(pair, errors, left, rounding)
            lower[some] = -_greatest((-pair[0], pair[1]), errors.mirrored, left, rounding)
    return Ends(lower, upper)


def _greatest(
    counts: tuple[Floats, Floats], errors: Errors, level: float, rounding: float
) -> Floats:
    """Return ratios that the test rejects as too great."""
    above, below = counts
    start = above / below
    (aa, ab), (_, bb) = errors.covariance.tolist()

    def spread(ratio: Floats) -> Floats:
        return np.asarray(np.sqrt(np.maximum(aa - 2 * ratio * ab + ratio**2 * bb, 0)))

    # The reach in standard deviations, at few ratios and between.
    middles = np.unique(np.quantile(start, np.linspace(0, 1, _MIDDLES), method="nearest"))
    reaches = [errors.reach((1.0, -ratio), level) for ratio in middles.tolist()]
    wide = np.divide(reaches, spread(middles), out=0 * middles, where=spread(middles) > 0)
    times = np.interp(start, middles, wide) ** 2
    # Where the distance is as many standard deviations.
    square, middle = below**2 - times * bb, above * below - times * ab
    rest = middle**2 - square * (above**2 - times * aa)
    fine = (square > 0) & (rest > 0)
    guess = np.where(fine, middle + np.sqrt(np.where(fine, rest, 0)), above)
    guess = np.maximum(guess / np.where(fine, square, below), start)
    width = np.maximum(np.maximum(guess - start, rounding / below), np.abs(start) * 2.0**-40)
    # Not so little that squares of it are 0, which a numerator without noise would ask for.
    step = 2.0 ** np.floor(np.log2(np.maximum(width, 2.0**-200) / _GRID))
    found, left = np.ceil(guess / step) * step, np.arange(start.size)
    for more in range(_STEPS):
        ratio = found[left]
        room = rounding * (1 + np.abs(ratio))
        room += 4 * _ROUNDING * (np.abs(ratio * below[left]) + np.abs(above[left]))
        far = ratio * below[left] - above[left] - room
        left = left[~errors.within(ratio, far, level)]
        if not left.size:
            return found
        found[left] += step[left] * 2**more
    found[left] = np.inf
    return found


def least_squares(tree: Tree, rates: Sequence[float]) -> LeastSquares:
    """Return the least squares for these rates of the noise by depth."""
    by_depth = np.array([weighted.variance(rate) for rate in rates])
    # A lower bound keeps the numerics in order.
    return LeastSquares(tree, np.maximum(by_depth, by_depth.max() * _LEAST)[tree.depths])


def _of_weights(rates: Iterable[Fraction | float]) -> float:
    """Return the part of some rates by which weights are chosen."""
    return min(1.0, _WEIGHTS / max(map(_limited, rates)))


def _limited(rate: Fraction | float) -> float:
    return float(min(rate, _MOST))


def _over(
    values: NDArray[Any], axis: int, function: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """Return the result of a function of the first axis, applied to this one."""
    moved = np.ascontiguousarray(np.moveaxis(values, axis, 0))
    found: NDArray[Any] = np.moveaxis(function(moved), 0, axis)
    return found


def _contracted(values: NDArray[Any], axis: int, weights: NDArray[Any]) -> NDArray[Any]:
    """Return the weighted sum along an axis, which keeps length 1; an axis of length 1 is all 0."""
    if values.shape[axis] == 1 != weights.size:
        return np.zeros_like(values)
    used = np.flatnonzero(weights)
    found: NDArray[Any]
    if used.size == weights.size and (weights == 1).all():
        found = values.sum(axis=axis)
    else:
        found = np.tensordot(np.take(values, used, axis=axis), weights[used], axes=(axis, 0))
    return np.expand_dims(found, axis)


def _distinct(rows: Floats) -> tuple[Floats, Floats]:
    """Return the different rows but for 0, and how often each occurs."""
    codes = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, which = np.unique(column, return_inverse=True)
        codes = codes * len(values) + which.reshape(-1)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    found = rows[first]
    used = found.any(axis=1)
    return found[used], counts[used].astype(np.float64)


def _outer(factors: Sequence[Floats]) -> Floats:
    """Return the products of an item of each, the last one changing fastest."""
    found = np.ones(1)
    for each in factors:
        found = (found[:, None] * each).reshape(-1)
    return found
