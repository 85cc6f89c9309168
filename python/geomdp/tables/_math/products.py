"""The errors of estimates on products of trees: their kinds, and ends of sums and ratios.

A node of the product is a node of each tree. A block, a depth on each tree, has independent noise
of one rate. ``docs/proofs.md``, section 17, derives the formulas.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._numerics import sum_tails
from geomdp.tables._math import weighted
from geomdp.tables._math.ends import EXACT, Ends, around
from geomdp.tables._math.trees import Ints, Tree, runs
from geomdp.tables._math.weighted import Floats, Term

#: Depths on all trees.
Block: TypeAlias = tuple[int, ...]


class Groups(NamedTuple):
    """Weights of the nodes of a list, which are added up group by group."""

    #: The number of the group that each node is in; -1, and the weight 0, if it is in none.
    of: Ints
    weights: NDArray[Any]
    many: int

    def over(self, values: NDArray[Any], axis: int = 0, function: np.ufunc = np.add) -> Any:
        """Return the sums over the nodes of each group, of values along an axis."""
        order = np.argsort(self.of, kind="stable")
        groups, starts = np.unique(self.of[order], return_index=True)
        used = groups >= 0
        sums = function.reduceat(values.take(order, axis), starts[used], axis)
        found = np.zeros((*sums.shape[:axis], self.many, *sums.shape[axis + 1 :]), sums.dtype)
        found[(slice(None),) * axis + (groups[used],)] = sums
        return found


#: A sum of estimates: for each tree weights of its nodes, in groups or not, or None for each node
#: by itself.
Sum: TypeAlias = Sequence[Any]

#: Greater rates count as this one, whose noise has probability 1e-260.
MOST = 600.0
#: Weights are those at this greatest rate, so that those of almost no noise do not become unequal:
#: they would have the least variance, and longer tails.
_WEIGHTS = 3.0
#: A float of this precision.
_ROUNDING = 2.0**-52
#: The parts of the level for the sign of a denominator, the least first.
_OF_SIGN = (1 / 128, 1 / 8, 1 / 2)
#: Ends of ratios are multiples of a power of 2 that is at most this part of their distance.
_GRID = 64
#: The number of ratios at which the reach is computed, for a first guess of the ends.
_MIDDLES = 9
#: How many sums share their frequencies at most, and by which factor their deviations differ.
_AT_ONCE, _ALIKE = 1024, 1.2
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
        shared: dict[Any, float] | None = None,
    ) -> None:
        self.parts = parts
        #: Of each part, the most that its noisy counts were moved after the noise.
        self.offs = [0] * len(parts) if offs is None else list(offs)
        self._known: dict[Any, float] = {}
        #: Reaches by the weights of all noises, which other estimates have too.
        self._shared = {} if shared is None else shared

    def of(self, factors: Sequence[float]) -> list[tuple[Fraction | float, Floats, Floats]]:
        """Return for each rate the weights in a sum of the estimates, and how many have them."""
        by_rate: dict[Any, list[tuple[Fraction | float, Floats, Floats]]] = defaultdict(list)
        given = np.asarray(factors)
        for rate, weights, counts in self.parts:
            values = np.abs(weights @ given)
            if not values.all():
                values, counts = values[values > 0], counts[values > 0]  # noqa: PLW2901
            by_rate[_key(rate)].append((rate, values, counts))
        found = []
        for pairs in by_rate.values():
            rate, values, counts = pairs[0]
            if len(pairs) > 1:
                values, counts = map(np.concatenate, list(zip(*pairs, strict=True))[1:])
            # With parts of their own, most tables give one weight alone.
            if values.size > 1:
                values, which = np.unique(values, return_inverse=True)
                counts = np.bincount(which, counts).astype(np.float64)
            if values.size:
                found.append((rate, values, counts.astype(np.float64)))
        return found

    def reach(self, factors: Sequence[float], level: float) -> float:
        """Return a t that the error of the sum of the estimates exceeds with at most this level.

        It is the least integer multiple for equal weights and one rate.
        """
        key = tuple(factors), level
        if key not in self._known:
            self._known[key] = self._reach(factors, level) + self.off(factors)
        return self._known[key]

    def below(self, values: Floats, level: float) -> NDArray[np.bool_]:
        """Return whether the second error's reach at this level is below each value."""
        factors = (0.0, 1.0)
        if (values > self._tilted(factors, level) + self.off(factors)).all():
            return np.ones(values.shape, np.bool_)
        return values > self.reach(factors, level)

    def bounds(self, level: float) -> Floats:
        """Return a bound on the reach of each estimate, for all of them together (lemma 18)."""
        offs = np.array([self.off(each) for each in np.eye(self.variances.size).tolist()])
        used = [(limited(rate), weights) for rate, weights, counts in self.parts if len(counts)]
        if not used:
            return offs
        noisy, none = self.variances > 0, np.zeros_like(self.variances)
        widest = np.max([np.abs(weights).max(axis=0) / rate for rate, weights in used], axis=0)
        found = weighted.by_cumulants(
            (none + used[0][0], none),
            (np.where(noisy, self.variances, 1), np.where(noisy, widest, 1)),
            [rate for rate, _ in used],
            level,
        )
        return np.asarray(np.where(noisy, found, 0) + offs)

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
        terms = _terms(part for part in self.parts if len(part[2]))
        # Without weights there is no error.
        for places in _alike(weighted.deviations(terms, tried[:, 0])):
            inversion = weighted.Inversion(terms, tried[places, 0], level)
            found[places] = inversion.holds(tried[places, 1])
            for place in () if inversion.room else places.tolist():
                ratio, reach = tried[place].tolist()
                found[place] = self._reach((1.0, -ratio), level) < reach
        return np.asarray(found[which.reshape(-1)])

    def _reach(self, factors: Sequence[float], level: float) -> float:
        parts = self.of(factors)
        if not parts:
            return 0.0
        key = level, tuple((_key(r), *(x.tobytes() for x in more)) for r, *more in parts)
        if key not in self._shared:
            self._shared[key] = self._reach_of(parts, level)
        return self._shared[key]

    @staticmethod
    def _reach_of(parts: Any, level: float) -> float:
        [rate, values, counts], *others = parts
        if not others and values.min() == values.max():
            exact, weight = (
                rate if isinstance(rate, Fraction) else sum_tails.NO_NOISE,
                float(values[0]),
            )
            found = weight * sum_tails.reach(exact, {1: int(counts.sum())}, Fraction(level))
            # Weights that are no integers are rounded.
            return found if weight.is_integer() else found * weighted.ROUNDED
        return weighted.reach(_terms(parts), level)

    def _tilted(self, factors: Sequence[float], level: float) -> float:
        """Return a bound on the reach that takes little time."""
        parts = self.of(factors)
        return weighted.by_tilting(_terms(parts), level) if parts else 0.0

    @cached_property
    def noise(self) -> float:
        """More than the probability that any of the noises is not 0."""
        used = ((rate, counts[weights.any(axis=1)]) for rate, weights, counts in self.parts)
        return weighted.any_noise((limited(rate), counts) for rate, counts in used)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each estimate."""
        parts = [
            weighted.variance(limited(rate)) * (counts @ weights**2)
            for rate, weights, counts in self.parts
        ]
        return np.asarray(sum(parts))

    @cached_property
    def covariance(self) -> Floats:
        """The covariance matrix that chooses weights: no rate is above `_WEIGHTS`."""
        scale = of_weights(rate for rate, _, _ in self.parts)
        parts = [
            weighted.variance(scale * limited(rate)) * (weights.T * counts) @ weights
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


def _key(rate: Fraction | float) -> Any:
    """Return what is equal for equal rates: to hash a fraction takes ten times as long."""
    return rate if isinstance(rate, float) else (rate.numerator, rate.denominator)


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
        starts, sizes = runs(codes.T)
        _, first, which = np.unique(
            codes[:, starts], axis=1, return_index=True, return_inverse=True
        )
        rows = np.repeat(which.reshape(-1), sizes)
        picks.append((rows, [[int(at[f]) for at in axes] for f in starts[first]]))

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
    little more; an end is infinite if the second number cannot be told from 0. All numbers have
    these errors. The rounding is more than the error of each noisy number (``docs/proofs.md``,
    theorem 16a). If any noise is less probable than the level, the ends are those of no noise.
    """
    above, below = counts
    if errors.noise <= level and not any(errors.offs):
        one, two = ([around(float(x), rounding) for x in each.flat] for each in counts)
        # A second number that may be 0 says nothing.
        told = (pair if pair[0] > 0 else (-math.inf, math.inf) for pair in two)
        return Ends.of_quotients(one, told, above.shape)
    lower, upper = np.full(above.shape, -np.inf), np.full(above.shape, np.inf)
    known = np.zeros(above.shape, np.bool_)
    for part in _OF_SIGN:
        some = ~known
        some[some] = errors.below(below[some] - rounding, level * part)
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


def _alike(sizes: Floats) -> Iterator[Ints]:
    """Yield the places of numbers other than 0, of about one size together."""
    order = np.argsort(sizes)[np.count_nonzero(sizes == 0) :]
    while order.size:
        some = sizes[order[:_AT_ONCE]] <= sizes[order[0]] * _ALIKE
        yield order[:_AT_ONCE][some]
        order = order[np.count_nonzero(some) :]


def _terms(parts: Iterable[tuple[Fraction | float, Floats, Floats]]) -> list[Term]:
    return [Term(limited(rate), weights, counts) for rate, weights, counts in parts]


def of_weights(rates: Iterable[Fraction | float]) -> float:
    """Return the part of some rates by which weights are chosen."""
    return min(1.0, _WEIGHTS / max(map(limited, rates)))


def limited(rate: Fraction | float) -> float:
    """Return the rate, or the greatest one that counts."""
    try:
        return min(float(rate), MOST)
    except OverflowError:
        return MOST
