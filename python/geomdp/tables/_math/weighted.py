"""Tails of sums of independent noises with real weights and several rates.

A term is a rate, absolute weights of its noises, and how many noises have each weight. Each bound
holds for the ideal noise; ``docs/proofs.md``, section 17, derives them.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: More than the rounding errors of float64 in a sum of logarithms.
ROUNDED = 1 + 1e-9
#: The half-width of the kernel that smooths a sum, in standard deviations.
_WIDTH = 0.02
#: The part of the level for each of three errors of the inversion, and the error of float64 in it.
_PART, _LOST = 6e-4, 1e-10
#: The least level of an inversion, its most frequencies, the part of an error below which a product
#: counts as 0, and how many factors there are from one look to the next.
_LEVEL, _FREQUENCIES, _NONE, _ROWS = 1e-7, 2**17, 0.1, 4
#: How many harmonics of a product bound it for all ratios, for how many different weights for each
#: further ratio that saves time, and the most numbers at once.
_HARMONICS, _SHARED, _AT_ONCE = 4, 4, 2**17
#: The parts of the greatest tilt that the exponential bounds try.
TILTS = np.concatenate([np.geomspace(2.0**-30, 0.04, 31), np.linspace(0.05, 0.95, 19)])


class Term(NamedTuple):
    """Independent noises of one rate, at most 600."""

    rate: float
    weights: Floats
    counts: Floats

    @property
    def variance(self) -> float:
        """The variance of their weighted sum."""
        return float(self.weights**2 @ self.counts) * variance(self.rate)


def variance(rate: float) -> float:
    """Return the variance of a noise."""
    return 0.5 / math.sinh(rate / 2) ** 2


def reach(terms: Sequence[Term], level: float) -> float:
    """Return a t with ``P(|S| > t) <= level``, the least of the bounds below.

    Each bounds the sum of all noises, and those without the rarest, for which a part of the level
    pays (lemma 17a).
    """
    terms = sorted((term for term in terms if term.weights.size), key=lambda term: -term.rate)
    if any_noise((term.rate, term.counts) for term in terms) <= level:
        return 0.0
    found, left = math.inf, level
    for start, rarest in enumerate(terms):
        some = terms[start:]
        found = min(found, by_tilting(some, left))
        found = by_inversion(some, left, found)
        found = by_union(some, left, found)
        left = math.nextafter(left - any_noise([(rarest.rate, rarest.counts)]), -1.0)
        if left <= 0:
            break
    return found


def any_noise(noises: Iterable[tuple[float, Floats | float]]) -> float:
    """Return more than the probability that any of some noises, given by rate, is not 0."""
    each = (float(np.sum(counts)) * 2 / (1 + math.exp(rate)) for rate, counts in noises)
    return sum(each) * ROUNDED


def by_union(terms: Sequence[Term], level: float, most: float) -> float:
    """Return the reach if at most one noise is not 0, or `most` if that is less (lemma 17a)."""
    left = level - any_noise((term.rate, term.counts) for term in terms) ** 2 / 2 * ROUNDED
    if left <= 0:
        return most

    def holds(t: float) -> bool:
        # Any noise that exceeds t is at least the number of steps.
        beyond = (
            term.counts
            @ np.exp(-term.rate * np.floor(t / (ROUNDED * term.weights)))
            * (2 / (1 + math.exp(term.rate)))
            for term in terms
        )
        return float(sum(beyond)) * ROUNDED <= left

    low, high = 0.0, most
    if not holds(high):
        return most
    while high - low > high * 2.0**-40:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def log_mgf(rate: float | Floats, tilts: Floats) -> Floats:
    """Return ``log E[exp(u Z)]`` for ``0 <= u < rate``, and infinity from there on."""
    parts: Floats = np.sinh(np.minimum(tilts, rate) / 2) / np.sinh(np.asarray(rate) / 2)
    with np.errstate(divide="ignore"):
        return -np.log1p(-(np.minimum(parts, 1) ** 2))  # type: ignore[no-any-return]


def log_first(rate: float, tilts: Floats) -> Floats:
    """Return the log of the least A with ``P(Z > y) <= A exp(-u y)`` for the tail's upper curve.

    Also at ``u = rate``; it is at most :func:`log_mgf`.
    """
    a = math.exp(-rate)
    parts = np.minimum(tilts / rate, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = parts * np.log(parts * (1 + a) / (a * (1 + parts))) - np.log1p(parts)
    return np.where(parts >= a, -math.log1p(a), inner)


def by_tilting(terms: Sequence[Term], level: float) -> float:
    """Return the reach by an exponential bound, with the exact tail of the widest noise."""
    widest = max(terms, key=lambda term: float(term.weights.max()) / term.rate)
    place = int(np.argmax(widest.weights))
    first = float(widest.weights[place])
    limit = widest.rate / first
    tilts = np.append(TILTS, 1.0) * limit
    total = math.log(2 / level) + log_first(widest.rate, tilts * first)
    # Many at once: with parts of their own, hundreds of tables are as many terms.
    sizes = [term.weights.size for term in terms]
    rates = np.repeat([term.rate for term in terms], sizes)
    weights = np.concatenate([term.weights for term in terms])
    counts = np.concatenate([term.counts for term in terms])
    counts[sum(sizes[: next(n for n, x in enumerate(terms) if x is widest)]) + place] -= 1
    rates, weights, counts = (each[counts > 0] for each in (rates, weights, counts))
    many = _AT_ONCE // tilts.size
    for start in range(0, counts.size, many):
        some = slice(start, start + many)
        logs = log_mgf(rates[some, None], np.outer(weights[some], tilts))
        total = total + counts[some] @ logs
    return float(np.min(total / tilts)) * ROUNDED


def by_cumulants(
    own: tuple[Floats, Floats],
    others: tuple[Floats, Floats],
    all_rates: Iterable[float],
    level: float,
) -> Floats:
    """Return the reaches of many sums, by lemma 18.

    Of each sum: the rate and weight of the noise that counts exactly (0 for none); the variance of
    all others together, and their greatest weight over rate. `all_rates` are those of any noise.
    """
    (rates, first), (rest, widest) = own, others
    known, widest = sorted(set(all_rates)), widest * (1 + 1e-9)
    limit = 1 / np.maximum(np.maximum(first / rates, widest), 1e-300)
    # For each part of the greatest tilt, the greatest ratio of a logarithm to its first term.
    parts = np.append(TILTS, 1.0)
    ratios = np.max(
        [
            log_mgf(rate, parts * rate) / ((parts * rate) ** 2 / 2 * variance(rate))
            for rate in known
        ],
        axis=0,
    )
    found = np.full(len(rates), np.inf)
    for part in parts:
        tilts = part * limit
        place = np.minimum(np.searchsorted(parts, tilts * widest), len(parts) - 1)
        total = np.log(2 / level) + tilts**2 * rest / 2 * ratios[place]
        for rate in known:
            some = (rates == rate) & (first > 0)
            total[some] += log_first(rate, tilts[some] * first[some])
        found = np.minimum(found, total / tilts)
    return found * ROUNDED


def by_inversion(terms: Sequence[Term], level: float, most: float) -> float:
    """Return the reach from the characteristic function of a smoothed sum, at most `most`.

    It is within about 2% of a standard deviation of the least one.
    """
    pairs = [Term(x.rate, x.weights[:, None] * (1.0, 0.0), x.counts) for x in terms]
    found = Inversion(pairs, np.zeros(1), level)
    low, high = 0.0, most
    if not found.holds(np.array([high]))[0]:
        return most
    while high - low > found.width / 64:
        middle = (low + high) / 2
        low, high = (low, middle) if found.holds(np.array([middle]))[0] else (middle, high)
    return high * ROUNDED


class Inversion:
    """The tails of sums by lemma 19: for each ratio, a sum minus the ratio times another one.

    A term has a column of weights for each of both. The sums have standard deviations of about one
    size, since they share all frequencies.
    """

    def __init__(self, terms: Sequence[Term], ratios: Floats, level: float) -> None:
        self.level, self._parts = level, list[tuple[slice, Floats, Floats]]()
        self.width = _WIDTH * float(deviations(terms, ratios).min())
        self.half = _by_chernoff(terms, ratios, level * _PART) + self.width
        self.step = math.pi / self.half
        # By Chernoff's bound the half is above three standard deviations.
        bend = math.asinh((1 + _WIDTH) / (level * _PART))
        size = bend / (self.step * self.width)
        #: Whether there is room for the frequencies.
        self.room = size <= _FREQUENCIES and level >= _LEVEL
        if not self.room:
            return
        k, most = np.arange(1.0, math.floor(size) + 1), 1 / (level * _PART * _NONE)
        below = np.sqrt(np.maximum(bend**2 - (k * self.step * self.width) ** 2, 1e-300))
        inverse = math.sinh(bend) / bend * below / np.sinh(below)
        if _different(terms) < _SHARED * (ratios.size - 1):
            kept = np.log(inverse) + damping(terms, k * self.step) < math.log(most)
            k, inverse = k[kept], inverse[kept]
        many = max(1, _AT_ONCE // max(1, k.size))
        for start in range(0, ratios.size, many):
            some = slice(start, start + many)
            with np.errstate(over="ignore"):
                found = self._factors(terms, ratios[some], k, inverse, most)
            self._parts.append((some, *found))

    def _factors(
        self, terms: Sequence[Term], ratios: Floats, k: Floats, inverse: Floats, most: float
    ) -> tuple[Floats, Floats]:
        """Return the frequencies that count, and for each ratio the factors of their sines."""
        rows = [
            (one, two, count, x.rate / 2)
            for x in terms
            for (one, two), count in zip(x.weights.tolist(), x.counts.tolist(), strict=True)
        ]
        # The widest first: most products are soon too small to matter.
        ends = float(ratios.min()), float(ratios.max())

        def size(row: tuple[float, float, float, float]) -> float:
            one, two, count, rate = row
            return count * (max(abs(one - end * two) for end in ends) / math.sinh(rate)) ** 2

        rows.sort(key=size, reverse=True)
        found = np.tile(inverse, (ratios.size, 1))
        for place, (one, two, count, rate) in enumerate(rows, 1):
            # The tangent is faster than the sine, whose square follows.
            squares = np.tan(np.outer(one - ratios * two, k * (self.step / 2)))
            squares *= squares
            if count == 1:
                found *= 1 + squares / math.tanh(rate) ** 2
                squares += 1
                found /= squares
            else:
                squares /= (1 + squares) * math.sinh(rate) ** 2
                found *= np.exp(count * np.log1p(squares))
            if place % _ROWS == 0:
                kept = (found < most).any(axis=0)
                k, found = k[kept], found[:, kept]
        return k, 2 / (math.pi * k * found)

    def holds(self, reaches: Floats) -> NDArray[np.bool_]:
        """Return for each sum whether it exceeds a reach with at most the level."""
        inside = reaches - self.width
        found = inside / self.half
        for some, k, factors in self._parts:
            waves = np.sin(np.outer(inside[some] * self.step, k))
            found[some] += (factors * waves).sum(axis=1)
        wanted = 1 - self.level + 3 * self.level * _PART + _LOST
        return np.asarray(self.room & (inside > 0) & (found >= wanted))


def deviations(terms: Sequence[Term], ratios: Floats) -> Floats:
    """Return the standard deviation of each sum of a first one minus a ratio times a second."""
    found, many = np.zeros(ratios.shape), max(1, _AT_ONCE // max(1, _different(terms)))
    for x in terms:
        for start in range(0, ratios.size, many):
            some = slice(start, start + many)
            weights = x.weights[:, :1] - ratios[some] * x.weights[:, 1:]
            found[some] += variance(x.rate) * (x.counts @ weights**2)
    return np.sqrt(found)


def _different(terms: Sequence[Term]) -> int:
    """Return how many different weights there are."""
    return sum(x.counts.size for x in terms)


def damping(terms: Sequence[Term], frequencies: Floats) -> Floats:
    """Return what minus the logarithm of the characteristic function is at least, for any ratio.

    It is that at each frequency, by lemma 19d, of sums as :class:`Inversion` takes them.
    """
    found = np.zeros(frequencies.size)
    for x in terms:
        order = np.argsort(x.weights[:, 1])
        (first, second), counts = x.weights[order].T, x.counts[order, None]
        starts = np.flatnonzero(np.diff(second, prepend=np.nan))
        many = max(1, _AT_ONCE // counts.size)
        for start in range(0, frequencies.size, many):
            some = slice(start, start + many)
            turns = np.exp(1j * np.outer(first, frequencies[some]))
            powers = counts * turns
            for m in range(1, _HARMONICS + 1):
                together = np.abs(np.add.reduceat(powers, starts)).sum(axis=0)
                found[some] += 2 * math.exp(-m * x.rate) / m * (counts.sum() - together)
                powers *= turns
    return found


def _by_chernoff(terms: Sequence[Term], ratios: Floats, level: float) -> float:
    """Return a reach of all sums by Chernoff's bound, over few tilts.

    The bound for a tilt is convex in the ratio, so it is greatest at the least or the greatest.
    """
    ends = np.array([ratios.min(), ratios.max()])
    sizes, each = [x.counts.size for x in terms], np.concatenate([x.weights for x in terms])
    weights, counts = (
        np.abs(each[:, :1] - ends * each[:, 1:]),
        np.concatenate([x.counts for x in terms]),
    )
    rates = np.repeat([x.rate for x in terms], sizes)[:, None]
    lengths = np.repeat([math.sinh(x.rate / 2) for x in terms], sizes)[:, None]
    widest, found = float((weights / rates).max()), math.inf
    for part in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        # All tilts are below the rates.
        tilt = part / widest
        logs = counts @ -np.log1p(-((np.sinh(weights * (tilt / 2)) / lengths) ** 2))
        found = min(found, float(math.log(2 / level) + np.max(logs)) / tilt)
    return found * ROUNDED
