"""The law of groups at small widths: every outcome of every pair of tables, in exact fractions.

The noise is a chain of blocks that are read from a coarse tape, and a sign; the number of points is
counted up by bits of as few digits as the setting says; places are a scaled number of such digits.
The mean of each class is the least that the conditions of ``docs/proofs.md``, section 22, allow. So
this is the theorem without its room: what the plans of the library leave is far more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import pytest
from mpmath import mp, mpf

Law = dict[tuple[int | None, ...], Fraction]


class Setting(NamedTuple):
    """A domain of a few cells, in classes, and the digits of all tapes."""

    epsilon: str
    thresholds: tuple[int, ...] = (3,)
    sizes: tuple[int, ...] = (3,)
    #: What one individual changes: so many cells, each by so much.
    l0: int = 1
    linf: int = 1
    #: Counts are below this; values above a threshold by this or more are one outcome.
    counts: int = 3
    width: int = 2
    block: int = 2
    #: Binary digits of the tape of a block, of the sign, of each bit that counts, of a place.
    noise: int = 40
    sign: int = 40
    points: int = 30
    place: int = 20
    slack: float = 2.0**-12
    parts: int = 1
    #: Controls: a multiple of the mean, a most number of points, and cells that get the noise of a
    #: count whenever some cell has records.
    times: Fraction = Fraction(1)
    most: int | None = None
    listed: tuple[int, ...] = ()


def real(value: Fraction) -> mpf:
    """Return a fraction as a number of many digits."""
    return mpf(value.numerator) / mpf(value.denominator)


class Noise:
    """``P(G = k block + d) = full**k * p[d]``; Z is G, or -1 - G with probability `falls`."""

    def __init__(self, setting: Setting) -> None:
        rate, unit = mpf(setting.epsilon), 2**setting.noise
        stop = 1 - mp.exp(-(rate - mpf(setting.slack) * min(rate, 1)))
        self.stop = Fraction(int(mp.floor(stop * mpf(2) ** 60)), 2**60)
        self.decay, self.block = 1 - self.stop, setting.block
        ideal = [self.stop * self.decay**d for d in range(self.block)]
        ideal.append(self.decay**self.block)
        cuts = [Fraction(round(sum(ideal[:d]) * unit), unit) for d in range(self.block + 1)]
        self.p = [after - before for before, after in itertools.pairwise([*cuts, Fraction(1)])]
        assert min(self.p) > 0
        kappa = max(abs(real(got / want) - 1) for got, want in zip(self.p, ideal, strict=True))
        self.theta = 4 * kappa
        self.falls = Fraction(
            round(self.decay / (1 + self.decay) * 2**setting.sign), 2**setting.sign
        )
        odds = mp.log(real((1 - self.falls) / self.falls))
        #: Condition (C1).
        self.holds = bool(
            kappa <= mpf(1) / 4 and self.theta - mp.log(real(self.decay)) <= rate >= abs(odds)
        )

    def at_least(self, k: int) -> Fraction:
        """Return P(G >= k)."""
        if k <= 0:
            return Fraction(1)
        blocks, rest = divmod(k, self.block)
        return self.p[-1] ** blocks * (1 - sum(self.p[:rest]))

    def both(self, k: int) -> Fraction:
        """Return P(Z >= k)."""
        if k < 0:
            return 1 - self.falls * self.at_least(-k)
        return (1 - self.falls) * self.at_least(k)


def points(mean: Fraction, digits: int) -> tuple[list[Fraction], mpf]:
    """Return the law of a number of points, counted up by rounded bits, and delta."""
    law, left = [], Fraction(1)
    for k in range(45):
        total, term = Fraction(1), Fraction(1)
        for j in range(1, 70):
            term *= mean / (k + j)
            total += term
        more = 1 - 1 / total
        shift = digits - (more.numerator.bit_length() - more.denominator.bit_length())
        more = Fraction(round(more * 2**shift), 2**shift)
        law.append(left * (1 - more))
        left *= more
    ratios = (law[k + 1] * (k + 1) / (law[k] * mean) for k in range(43))
    delta = max(abs(real(ratio) - 1) for ratio in ratios)
    # Of all beyond, whose probability is below 2**-180.
    law[-1] += left
    return law, delta


def places(size: int, digits: int) -> list[Fraction]:
    """Return the law of a place."""
    bits = size.bit_length() + digits
    cuts = [-(-each * 2**bits // size) for each in range(size + 1)]
    return [Fraction(after - before, 2**bits) for before, after in itertools.pairwise(cuts)]


def hit(at: list[Fraction], number: list[Fraction], parts: int) -> dict[int, Fraction]:
    """Return the law of the set of places that are hit, by inclusion and exclusion."""
    law = {}
    for cells in range(2 ** len(at)):
        inside = sum((at[c] for c in range(len(at)) if cells >> c & 1), Fraction())
        within = Fraction()
        for probability in reversed(number):
            within = within * inside + probability
        law[cells] = within**parts
    for c in range(len(at)):
        for cells in range(2 ** len(at)):
            if cells >> c & 1:
                law[cells] -= law[cells ^ 1 << c]
    return law


def points_of(setting: Setting, noise: Noise) -> tuple[dict[int, Fraction], bool]:
    """Return the law of all cells that are hit, and whether (C2) holds."""
    rate, rise, decay = mpf(setting.epsilon), real(1 - noise.falls), real(noise.decay)
    law, holds, first = {0: Fraction(1)}, True, 0
    for threshold, size in zip(setting.thresholds, setting.sizes, strict=True):
        at = places(size, setting.place)
        beta = max(abs(real(each * size) - 1) for each in at)
        error = beta + mpf(2) ** -(setting.points - 4)
        off, ideal = mp.exp(noise.theta * (threshold - 1)), rise * decay ** (threshold - 1)
        least = max(mp.exp(-rate) * ideal * off, 1 - mp.exp(rate) * (1 - ideal * off))
        most = min(mp.exp(rate) * ideal / off, 1 - mp.exp(-rate) * (1 - ideal / off))
        mu = -mp.log(1 - least) / (1 - error) * (1 + mpf(2) ** -60)
        holds &= bool(1 - mp.exp(-mu * (1 + error)) <= most)
        whole = Fraction(int(mp.ceil(mu * size * real(setting.times) * mpf(2) ** 60)), 2**60)
        parts = max(setting.parts, math.ceil(whole))
        number, delta = points(whole / parts, setting.points)
        assert (1 + delta) * (1 + beta) <= 1 + error
        if setting.most is not None:
            number[setting.most :] = [sum(number[setting.most :], Fraction())]
        own = hit(at, number, parts)
        law = {
            cells | more << first: probability * other
            for (cells, probability), (more, other) in itertools.product(law.items(), own.items())
        }
        first += size
    assert sum(law.values()) == 1
    return law, holds


def laws(
    setting: Setting, noise: Noise, fallen: dict[int, Fraction]
) -> Iterator[tuple[tuple[int, ...], Law]]:
    """Yield each table of counts, and the law of what appears."""
    last, width = setting.width - 1, setting.width
    values: list[int | None] = [*range(width)]
    above = {
        value: noise.at_least(value) - (noise.at_least(value + 1) if value < last else 0)
        for value in range(width)
    }

    def occupied(threshold: int, count: int) -> dict[int | None, Fraction]:
        tails = [noise.both(threshold - count + value) for value in range(width)]
        own: dict[int | None, Fraction] = {
            value: tails[value] - (tails[value + 1] if value < last else 0)
            for value in range(width)
        }
        return own | {None: 1 - tails[0]}

    cells = [c for c, size in enumerate(setting.sizes) for _ in range(size)]
    own = {
        (c, count): occupied(threshold, count)
        for c, threshold in enumerate(setting.thresholds)
        for count in range(setting.counts)
    }
    for counts in itertools.product(range(setting.counts), repeat=len(cells)):
        full = {
            place
            for place, count in enumerate(counts)
            if count or (place in setting.listed and any(counts))
        }
        free = [place for place in range(len(cells)) if place not in full]
        seen: dict[int, Fraction] = {}
        for hits, probability in fallen.items():
            hits &= sum(1 << place for place in free)  # noqa: PLW2901
            seen[hits] = seen.get(hits, Fraction()) + probability
        law: Law = {}
        for outcome in itertools.product([None, *values], repeat=len(cells)):
            hits = sum(1 << place for place in free if outcome[place] is not None)
            probability = seen.get(hits, Fraction())
            for place, value in enumerate(outcome):
                if place in full:
                    probability *= own[cells[place], counts[place]][value]
                elif value is not None:
                    probability *= above[value]
            law[outcome] = probability
        assert sum(law.values()) == 1
        yield counts, law


def checked(setting: Setting) -> tuple[bool, mpf, int]:
    """Return whether the conditions hold, the greatest loss beyond epsilon, and the outcomes that
    one of two tables alone can have."""
    with mp.workprec(500):
        noise = Noise(setting)
        fallen, holds = points_of(setting, noise)
        found = dict(laws(setting, noise, fallen))
        worst, alone = mpf("-inf"), 0
        for one, other in itertools.permutations(found, 2):
            moves = [abs(i - j) for i, j in zip(one, other, strict=True)]
            if sum(map(bool, moves)) > setting.l0 or max(moves) > setting.linf:
                continue
            most = Fraction()
            for outcome, probability in found[one].items():
                if below := found[other][outcome]:
                    most = max(most, probability / below)
                else:
                    alone += probability > 0
            worst = max(worst, mp.log(real(most)) - mpf(setting.epsilon) * sum(moves))
        return noise.holds and holds, worst, alone


#: One individual who is added changes some cells by 1 or more; one who changes its records lowers
#: some cells and raises others, which are pairs of tables here as well.
GOOD = [
    *(
        Setting(epsilon, (threshold,))
        for epsilon in ("0.1", "0.5", "1", "2")
        for threshold in (1, 2, 5, 9)
    ),
    Setting("1", sizes=(4,), counts=2, l0=4),
    Setting("1", (4,), width=3, l0=2, linf=2, block=3),
    Setting("0.5", (2,), l0=3, linf=2),
    *(Setting(epsilon, (2, 5), (2, 2), counts=2, l0=2) for epsilon in ("0.1", "1", "2")),
    Setting("1", (1, 3, 6), (1, 2, 1), counts=2, l0=2),
    Setting("1", (2, 7), (1, 2), l0=2, linf=2, parts=3),
    Setting("1", noise=24, sign=24, points=16, place=10, slack=2.0**-6),
]


@pytest.mark.parametrize("setting", GOOD, ids=str)
def test_no_outcome_of_any_neighbours_loses_more_than_epsilon(setting: Setting) -> None:
    holds, worst, alone = checked(setting)
    assert holds
    assert worst <= 0
    assert not alone
    # As tight as the room allows: the mean is the least one.
    assert worst > -(0.001 if setting.noise < 40 else 1e-6)


@pytest.mark.parametrize(
    ("setting", "beyond", "alone"),
    [
        (Setting("1", times=Fraction(1, 2)), "0.68", 0),
        (Setting("1", (2,), most=2), "0.09", 24),
        (Setting("0.1", (6,), times=Fraction(3)), "0.59", 0),
        (Setting("1", (1,), times=Fraction(102, 100), listed=(0, 1)), "0.026", 0),
        (Setting("1", (6,), noise=10, slack=2.0**-20), "0", 0),
    ],
    ids=[
        "half the mean",
        "at most two points",
        "three times the mean",
        "empty cells that are listed get the noise of a count",
        "a tape too short",
    ],
)
def test_the_check_finds_what_is_not_private(setting: Setting, beyond: str, alone: int) -> None:
    holds, worst, found = checked(setting)
    assert worst > mpf(beyond)
    assert found == alone
    # The last one is refused: it has no plan.
    assert holds == (setting.noise == 40)
