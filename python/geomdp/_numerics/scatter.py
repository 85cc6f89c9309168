"""Groups of a domain that nobody can go through: noise for occupied cells, and a few empty ones.

Occupied cells get noise whose tail is right at any distance. Independently of the data, a Poisson
number of points falls on uniform places of the domain, and those on empty cells appear with the
noise that a threshold would leave them (``docs/proofs.md``, section 22). So the time is that of the
occupied cells, and of the empty cells that appear.

A :class:`Plan` states both, in public numbers, and draws.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals
from geomdp._kernel import core

_Ints: TypeAlias = NDArray[np.int64]
#: The total variation of a block, and the relative errors of numbers of points and of places.
_TAPE, _POINTS, _PLACES = Decimal(2) ** -100, Decimal(2) ** -96, Decimal(2) ** -100
#: The bits of a place beyond those of their number, and of a mean.
_MORE_BITS, _MEAN_BITS = 100, 128
#: No domain needs a lower tail than exp(-_FAR), which points have for all greater thresholds.
_FAR = 800
#: A block ends at a tail of the first of these numbers of bits whose errors are small beside the
#: rate, even at the greatest threshold; that of a small rate sooner, as its single values are rare.
_BLOCKS, _SMALL = (48, 24, 12, 4), Decimal(2) ** -10
#: So many bits of the tail are drawn whatever the blocks hold.
_ALWAYS = 96
#: At a greater rate, noise is drawn at this one: then one count in 10^13 gets any.
_GREATEST = Fraction(30)
#: At a lower rate than this, errors of blocks add up to more than the room.
_LEAST = Fraction(1, 10**8)
#: The part of the rate that is left for what is not exact.
_ROOM = Decimal(2) ** -24


class Class(NamedTuple):
    """Cells with one threshold, and the points that fall on them."""

    #: On how many places points may fall, those of other classes' cells among them.
    places: int
    #: The least value of a point. Of greater thresholds, a point's value may be below.
    threshold: int
    #: The mean number of points, exactly.
    mean: Fraction

    @property
    def parts(self) -> int:
        """How many numbers of points are added up, each of a mean of at most 1."""
        return max(1, math.ceil(self.mean))

    @property
    def part(self) -> Fraction:
        """The mean of each of them, which the core draws."""
        return _rounded(self.mean / self.parts)

    @property
    def words(self) -> int:
        """How many words of 64 random bits make a place."""
        return -(-(self.places.bit_length() + _MORE_BITS) // 64)

    def place(self, words: Sequence[int]) -> int:
        """Return the place that uniform words of 64 bits make, the greatest ones first."""
        number = 0
        for word in words:
            number = number << 64 | word
        return number * self.places >> 64 * len(words)


class Plan(NamedTuple):
    """Noise that is right relative to each of its probabilities, and points of each class."""

    #: The rate that the noise is proved for: the nominal one, or a lower one.
    rate: Fraction
    #: The probability that a trial ends the noise, a float64; the rest of 1 is the decay a.
    stop: float
    #: The greatest number of trials of a block.
    block: int
    #: The probability that noise falls, a float64.
    fall: float
    #: A bound of ``|ln P(G = g + 1) / P(G = g) - ln a|``.
    theta: Decimal
    classes: tuple[Class, ...]

    @property
    def blocks(self) -> int:
        """How many blocks of noise are drawn whatever they hold."""
        return math.ceil(_ALWAYS * math.log(2) / (self.block * self.sampled_rate))

    @property
    def sampled_rate(self) -> float:
        """The rate that is drawn, ``-ln a``."""
        return -math.log1p(-self.stop)

    def spurious(self, places: int, at_least: int) -> float:
        """Return the expected number of empty places that reach a threshold, if all are empty.

        It is above the exact number by less than a part of ``2**-48``, and infinite where no float
        is.
        """
        near = _class(self, places, at_least)
        if near.mean > sys.float_info.max:
            return math.inf
        # A place with several points appears once. Neither number of a large domain is a float.
        mu = float(near.mean / places)
        once = -math.expm1(-mu) / mu if mu else 1.0
        beyond = math.exp(-(at_least - near.threshold) * self.sampled_rate)
        return float(near.mean) * once * beyond * (1 + 2**-50)

    def missed(self, count: int, at_least: int) -> float:
        """Return the probability that a count misses a threshold, within ``2**-48`` of it."""
        if not count:
            return 1 - self.spurious(1, at_least)
        if count >= at_least:
            return self.fall * math.exp(-self.sampled_rate * (count - at_least))
        return 1 - (1 - self.fall) * math.exp(-self.sampled_rate * (at_least - count))

    def least_threshold(self, places: int, most: Fraction) -> int:
        """Return the least threshold that at most this many empty places are expected to reach."""
        step = self.sampled_rate
        # The number is about places * rho * a**(T - 1), and no less than this by a part of 10^-3.
        lost = math.log(places) - math.log(most) - math.log1p(math.exp(-step)) - 0.001
        least, ahead = max(1, math.floor(lost / step)), 1
        while self.spurious(places, least + ahead - 1) > most:
            ahead *= 2
        thresholds = range(least, least + ahead)
        return thresholds[
            bisect_left(thresholds, x=True, key=lambda x: self.spurious(places, x) <= most)
        ]

    def reach(
        self,
        counts: _Ints,
        thresholds: _Ints,
        number: int,
        *,
        key: core.ReleaseKey | None = None,
        threads: int = 0,
    ) -> _Ints:
        """Return counts above 0 with noise, and 0 for those that do not reach their threshold.

        Noise is drawn for a public number of counts, or for all of them if there are more. The
        time does not depend on anything else. Without a key, which must be of one release, noise
        is fresh.
        """
        # A row of counts, one of thresholds.
        cells = np.zeros((2, max(number, counts.size)), np.int64)
        cells[:, : counts.size] = counts, thresholds
        _core(self).reach(key or core.ReleaseKey(None), cells[0], cells[1], cells[0], threads)
        return cells[0, : counts.size].copy()

    def points(
        self, *, key: core.ReleaseKey | None = None
    ) -> list[tuple[_Ints, NDArray[np.uint64]]]:
        """Return the values of the points of each class, and for each the words of its place."""
        own, found = key or core.ReleaseKey(None), []
        for at, each in enumerate(self.classes):
            mean = each.part.numerator, each.part.denominator.bit_length() - 1
            drawn = _core(self).points(own, at, each.threshold, each.parts, mean, each.words)
            values, random = np.frombuffer(drawn[0], np.int64), np.frombuffer(drawn[1], np.uint64)
            found.append((values, random.reshape(values.size, each.words)))
        return found

    def certificate(self) -> dict[str, Any]:
        """Return the numbers that prove the plan private: ``geomdp-groups-1``."""
        drawn = _core(self)
        return {
            "format": "geomdp-groups-1",
            "rate": _ratio(self.rate),
            "stop": _ratio(Fraction(self.stop)),
            "fall": _ratio(Fraction(self.fall)),
            "theta": _ratio(Fraction(self.theta)),
            "block": str(self.block),
            "blocks": self.blocks,
            "limb_bits": 63,
            "digits": [
                {"weight": str(weight), "limbs": limbs, "thresholds": [hex(each) for each in cuts]}
                for weight, limbs, cuts in drawn.digits()
            ],
            "classes": [
                {
                    "places": str(each.places),
                    "threshold": str(each.threshold),
                    "parts": str(each.parts),
                    "mean": _ratio(each.part),
                    "words": each.words,
                }
                for each in self.classes
            ],
        }


@lru_cache
def plan_of(rate: Fraction, classes: tuple[tuple[int, int], ...] = ()) -> Plan:
    """Return the plan for classes of a number of places and a threshold, or refuse it.

    (C1) and (C2) are conditions of ``docs/proofs.md``, section 22.
    """
    noise = _noise(rate)
    return noise._replace(classes=tuple(_class(noise, *each) for each in classes))


@lru_cache
def _noise(rate: Fraction) -> Plan:
    """Return the noise of a nominal rate, or refuse it: condition (C1)."""
    rate = min(rate, _GREATEST)
    with localcontext(decimals.context(80)):
        r = decimals.of(rate)
        stop = decimals.down(1 - (-(r - _ROOM * min(r, Decimal(1)))).exp())
        a = 1 - decimals.of(Fraction(stop))
        for bits in _BLOCKS:
            block = math.ceil(bits * Decimal(2).ln() / -a.ln())
            kappa = _TAPE / min((1 - a) * a ** (block - 1), a**block)
            theta = Decimal(decimals.up(Fraction(4 * kappa)))
            if kappa * _FAR <= _SMALL * r**2 and theta - a.ln() <= r:
                break
        fall = float(a / (1 + a))
        sign = (decimals.of(1 / Fraction(fall)) - 1).ln()
        if rate < _LEAST or kappa > Decimal(1) / 4 or -a.ln() + theta > r or abs(sign) > r:
            raise ValueError(_no_plan(rate))
    return Plan(rate, stop, block, fall, theta, ())


def _no_plan(rate: Fraction) -> str:
    return (
        f"at_least has no noise of rate {float(rate):.3g}, epsilon by sensitivity: give a rate of "
        f"{float(_LEAST):g} or more"
    )


def _class(noise: Plan, places: int, at_least: int) -> Class:
    """Return a class with the least mean that condition (C2) allows, or refuse it."""
    near = min(at_least, math.ceil(_FAR / noise.sampled_rate))
    digits = places.bit_length() * 0.302 + near * float(noise.rate) * 0.435
    with localcontext(decimals.context(80 + int(2 * digits))):
        r, a = decimals.of(noise.rate), 1 - decimals.of(Fraction(noise.stop))
        rho, far = 1 - decimals.of(Fraction(noise.fall)), near - 1
        e, ideal, off = r.exp(), rho * a**far, (noise.theta * far).exp()
        high, low = ideal * off, ideal / off
        # The relative errors of the numbers of points and of places.
        error = (1 + _POINTS) * (1 + _PLACES) - 1
        least = max(high / e, 1 - e * (1 - high))
        mean = _rounded(Fraction(-(1 - least).ln() / (1 - error) * (1 + _POINTS) * places))
        mu = decimals.of(mean / places)
        shown = [1 - (-mu * (1 + off)).exp() for off in (-error, error)]
        if not (least <= shown[0] and shown[1] <= min(e * low, 1 - (1 - low) / e)):
            raise ValueError(_no_plan(noise.rate))
    return Class(places, near, mean)


def _rounded(mean: Fraction) -> Fraction:
    """Return a number of few bits, above by at most ``2**-126`` of it."""
    shift = _MEAN_BITS - decimals.bits(mean)
    scale = Fraction(2) ** shift
    return math.ceil(mean * scale) / scale


def _ratio(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"


def _core(plan: Plan) -> core.Groups:
    """Return what draws."""
    return core.Groups(plan.stop, plan.block, plan.fall, plan.blocks)
