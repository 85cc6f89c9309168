"""Tails of sums of independent noises with real weights and several rates.

A term is a rate, absolute weights of its noises, and how many noises have each weight. Each bound
holds for the ideal noise; ``docs/proofs.md``, section 17, derives them.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: More than the rounding errors of float64 in a sum of logarithms.
ROUNDED = 1 + 1e-9
#: The half-width of the kernel that smooths a sum, in standard deviations, and its uniforms.
_WIDTH, _UNIFORMS = 0.02, 8
#: The part of the level for each error of the inversion, and the error of float64 in it.
_PART, _LOST = 1e-3, 1e-10
#: The most frequencies, and products below which a frequency counts as 0.
_FREQUENCIES, _NONE = 2**17, 1e-15
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


def log_mgf(rate: float, tilts: Floats) -> Floats:
    """Return ``log E[exp(u Z)]`` for ``0 <= u < rate``, and infinity from there on."""
    parts: Floats = np.sinh(np.minimum(tilts, rate) / 2) / math.sinh(rate / 2)
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
    for term in terms:
        counts = term.counts.copy()
        if term is widest:
            counts[place] -= 1
        others = counts > 0
        total = total + counts[others] @ log_mgf(term.rate, np.outer(term.weights[others], tilts))
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
    found = Inversion([Term(x.rate, x.weights[:, None], x.counts) for x in terms], level)
    low, high, width = 0.0, most, float(found.width[0])
    if not found.holds(np.array([high]))[0]:
        return most
    while high - low > width / 64:
        middle = (low + high) / 2
        low, high = (low, middle) if found.holds(np.array([middle]))[0] else (middle, high)
    return high * ROUNDED


class Inversion:
    """The tails of sums by lemma 19: a column of weights for each sum."""

    def __init__(self, terms: Sequence[Term], level: float) -> None:
        self.level = level
        variances = [variance(x.rate) * (x.counts @ x.weights**2) for x in terms]
        self.width = _WIDTH * np.sqrt(np.sum(variances, axis=0))
        self.half = _by_chernoff(terms, level * _PART) + self.width
        self.step = math.pi / self.half
        lost = (2 / math.pi / _UNIFORMS / (level * _PART)) ** (1 / _UNIFORMS)
        sizes = np.ceil(_UNIFORMS / (self.step * self.width) * lost)
        #: Whether there is room for a sum's frequencies; the sum of each, and the frequencies.
        self.room = (sizes <= _FREQUENCIES) & (level * _PART >= _LOST)
        self.of = np.repeat(np.arange(sizes.size), np.where(self.room, sizes, 0).astype(np.int64))
        self.k = np.arange(1.0, self.of.size + 1)
        self.k -= np.searchsorted(self.of, self.of)
        smooth = self.step * self.width / _UNIFORMS / math.pi
        product = np.sinc(self.k * smooth[self.of]) ** _UNIFORMS
        rows = [
            (weights, count, math.sinh(x.rate / 2))
            for x in terms
            for weights, count in zip(x.weights, x.counts, strict=True)
        ]
        # The widest first: most products are soon 0.
        rows.sort(key=lambda x: -float(x[1] * np.max(x[0] / x[2]) ** 2))
        for weights, count, sinh in rows:
            angles = self.k * (weights * (self.step / 2))[self.of]
            product *= np.exp(-count * np.log1p((np.sin(angles) / sinh) ** 2))
            kept = np.abs(product) > _NONE
            self.of, self.k, product = self.of[kept], self.k[kept], product[kept]
        self._product = product * (2 / (math.pi * self.k))

    def holds(self, reaches: Floats) -> NDArray[np.bool_]:
        """Return for each sum whether it exceeds a reach with at most the level."""
        inside = reaches - self.width
        waves = self._product * np.sin(self.k * (self.step * inside)[self.of])
        found = inside / self.half + np.bincount(self.of, waves, self.half.size)
        wanted = 1 - self.level + 2 * self.level * _PART + _LOST
        return np.asarray(self.room & (inside > 0) & (found >= wanted))


def _by_chernoff(terms: Sequence[Term], level: float) -> Floats:
    """Return the reach of each column of weights by Chernoff's bound, over few tilts."""
    widest = np.max([x.weights.max(axis=0) / x.rate for x in terms], axis=0)
    found = np.full(widest.size, np.inf)
    for part in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        tilts = part / widest
        total = math.log(2 / level) + sum(
            x.counts @ log_mgf(x.rate, x.weights * tilts) for x in terms
        )
        found = np.minimum(found, total / tilts)
    return found * ROUNDED


def ideal(
    level: Fraction, noises: Iterable[tuple[Fraction | float, int, Fraction]], limit: int
) -> Fraction:
    """Return a level minus the errors of the sampled noise.

    The noises are given by rate: their number, and the total variation of one. Noise that reaches
    the limit, where a count may be clamped, is an error as well.
    """
    return level - sum(
        (
            n * (variation + 2 * Fraction(math.exp(-min(float(rate * limit), 690.0))))
            for rate, n, variation in noises
        ),
        Fraction(0),
    )
