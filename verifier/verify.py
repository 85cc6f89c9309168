"""Stand-alone verifier of geomdp privacy certificates.

It shares no code with the library: every statement is recomputed from the certificate's own
numbers, real numbers as balls (python-flint's arb), all others exactly. A comparison of balls
is true only if it is certain, so whatever stays undecided is refused.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

from flint import arb, ctx, fmpq

FORMAT = "geomdp-certificate-2"
TIERS = "geomdp-tiers-1"
GROUPS = "geomdp-groups-1"
LIMB_BITS = 63
MAX_LIMBS = 64  # far above any use; keeps a hostile certificate from asking for huge numbers
MAX_BITS = LIMB_BITS * (MAX_LIMBS + 1)
MAX_DIGITS = 4300  # Python's own limit; a rate of the library has at most 14 054 bits, 4231 digits
TIGHT_RANGE = 2000  # largest range whose exact distribution is recomputed unasked
BRUTE_RANGE = 64  # largest range whose whole output matrix is compared as well


class VerificationError(ValueError):
    """A certificate is malformed, or one of its statements could not be established."""


@dataclass(frozen=True)
class Report:
    """What was established; floats are rounded to the safe side."""

    rate: Fraction | None
    range: int
    worst_threshold_error: float  # in units of 2^-K, of the thresholds less than 2^K - 1
    floor_slack_log2: float  # log2 of the right over the left side of inequality (ii)
    total_variation: float
    tight_epsilon: float | None  # None if it was not checked


@dataclass(frozen=True)
class Digit:
    weight: int
    limbs: int
    thresholds: tuple[int, ...]


@dataclass(frozen=True)
class Certificate:
    rate: Fraction
    sampled_rate: Fraction
    range: int
    word: int  # bits of a limb
    digits: tuple[Digit, ...]
    words_per_draw: int
    eta: tuple[int, int]  # numerator, binary digits after the point
    delta: Fraction
    floor: tuple[int, int]
    value_bits: int
    total_variation: float
    tight_epsilon: float | None

    def bits(self, j: int) -> int:
        """K_j, the bits of digit j's uniform integer."""
        return self.word * (self.digits[j].limbs + 1)

    def radix(self, j: int) -> int:
        # Digit 0's first and last thresholds bound the floor's slot and zero.
        return len(self.digits[j].thresholds) + (1 if j > 0 else -1)

    @property
    def top(self) -> int:
        return len(self.digits) - 1

    @property
    def low(self) -> list[int]:
        """The digits with fewer limbs than the top one; all others are high."""
        return [j for j, d in enumerate(self.digits) if d.limbs < self.digits[-1].limbs]

    @property
    def floor_mass(self) -> Fraction:
        return Fraction(self.floor[0], 1 << self.floor[1])


@dataclass(frozen=True)
class Step:
    """A step from the next finer tier keeps a value if its keep number is less than these."""

    limbs: int
    inside: int
    end: int
    kappa: Fraction


@dataclass(frozen=True)
class TiersReport:
    """What was established of tiers, the smallest rate first: each, together with those before it,
    loses its rate and no more."""

    rates: tuple[Fraction, ...]
    range: int
    total_variation: tuple[float, ...]


@dataclass(frozen=True)
class Class:
    """Cells with one threshold, and the points that fall on their places."""

    places: int
    threshold: int
    parts: int
    mean: Fraction  # of a part
    words: int  # of a place


@dataclass(frozen=True)
class GroupsReport:
    """What was established of groups: the loss for each unit that a count changes by."""

    rate: Fraction
    theta: Fraction
    spurious: tuple[float, ...]  # of each class, the mean number of points, rounded up


def _require(holds: bool, statement: str) -> None:
    if not holds:
        raise VerificationError(statement)


def _real(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _float_above(value: arb) -> float:
    nearest = float(value.upper())
    return nearest if arb(nearest) >= value else math.nextafter(nearest, math.inf)


# ---------------------------------------------------------------------------- reading


def _table(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise VerificationError(f"{name}: not an object")
    return value


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise VerificationError(f"{name}: not a list")
    return value


def _integer(value: object, name: str) -> int:
    """An exact integer of any size: a string, decimal or hexadecimal."""
    if not isinstance(value, str) or len(value) > MAX_DIGITS:
        raise VerificationError(f"{name}: not an integer in a string")
    if re.fullmatch(r"0x[0-9a-fA-F]+|0|[1-9][0-9]*", value) is None:
        raise VerificationError(f"{name}: not a nonnegative integer")
    return int(value, 0)


def _fraction(value: object, name: str) -> Fraction:
    if not isinstance(value, str):
        raise VerificationError(f"{name}: not a fraction in a string")
    num, _, den = value.partition("/")
    numerator, denominator = _integer(num, name), _integer(den, name)
    _require(denominator > 0, f"{name}: its denominator is zero")
    return Fraction(numerator, denominator)


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_BITS:
        raise VerificationError(f"{name}: not an integer in 0..{MAX_BITS}")
    return value


def _number(value: object, name: str) -> float:
    finite = isinstance(value, float | int) and 0 <= value <= sys.float_info.max
    if not isinstance(value, float | int) or isinstance(value, bool) or not finite:
        raise VerificationError(f"{name}: not a finite nonnegative number")
    return float(value)


def _dyadic(value: object, name: str) -> tuple[int, int]:
    table = _table(value, name)
    return _integer(table.get("num"), f"{name}.num"), _count(table.get("bits"), f"{name}.bits")


def _digit(value: object, name: str) -> Digit:
    table = _table(value, name)
    thresholds = _list(table.get("thresholds"), f"{name}: thresholds")
    return Digit(
        weight=_integer(table.get("weight"), f"{name}: weight"),
        limbs=_count(table.get("limbs"), f"{name}: limbs"),
        thresholds=tuple(
            _integer(t, f"{name}: threshold {n}") for n, t in enumerate(thresholds, 1)
        ),
    )


def _distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    _require(len(table) == len(pairs), "a key is given twice")
    return table


def _load(certificate: dict[str, object] | str, *wanted: str) -> dict[str, object]:
    loaded: object = certificate
    if isinstance(certificate, str):
        try:
            loaded = json.loads(certificate, object_pairs_hook=_distinct_keys)
        except (ValueError, RecursionError) as error:
            raise VerificationError(f"format: not plain JSON ({error})") from error
    table = _table(loaded, "certificate")
    _require(table.get("format") in wanted, f"format: not {' or '.join(wanted)}")
    return table


def _parse(table: dict[str, object]) -> Certificate:
    floor = _table(table.get("floor"), "floor")
    tight = table.get("tight_epsilon")
    delta_num, delta_bits = _dyadic(table.get("delta"), "delta")
    return Certificate(
        rate=_fraction(table.get("rate"), "rate"),
        sampled_rate=_fraction(table.get("sampled_rate"), "sampled_rate"),
        range=_integer(table.get("range"), "range"),
        word=_count(table.get("limb_bits"), "limb_bits"),
        digits=tuple(
            _digit(d, f"digit {j}") for j, d in enumerate(_list(table.get("digits"), "digits"))
        ),
        words_per_draw=_count(table.get("words_per_draw"), "words_per_draw"),
        eta=_dyadic(table.get("eta"), "eta"),
        delta=Fraction(delta_num, 1 << delta_bits),
        floor=_dyadic(floor, "floor"),
        value_bits=_count(floor.get("value_bits"), "floor.value_bits"),
        total_variation=_number(table.get("total_variation"), "total_variation"),
        tight_epsilon=None if tight is None else _number(tight, "tight_epsilon"),
    )


# ---------------------------------------------------------------------------- statements


def _check_structure(c: Certificate) -> None:
    _require(c.range > 0, "range: noise is drawn for a range of 0")
    _require(c.rate > 0, "rate: not positive")
    _require(0 < c.sampled_rate <= c.rate, "sampled_rate: not in (0, rate]")
    weight = 1
    for j, digit in enumerate(c.digits):
        limbs, limit = digit.limbs, 1 << c.bits(j)
        _require(1 <= limbs <= MAX_LIMBS, f"digit {j}: limbs not in 1..{MAX_LIMBS}")
        _require(limbs <= c.digits[-1].limbs, f"digit {j}: more limbs than the top digit")
        _require(j > 0 or len(digit.thresholds) >= 2, "digit 0: fewer than two thresholds")
        _require(digit.weight == weight, f"digit {j}: weight is not the radices below multiplied")
        # Only the top digit's radix may be other than a power of two.
        radix = c.radix(j)
        _require(j == c.top or radix.bit_count() == 1, f"digit {j}: radix not a power of two")
        weight *= radix
        ascending = all(a <= b for a, b in pairwise(digit.thresholds))
        _require(ascending, f"digit {j}: thresholds do not ascend")
        _require(all(t < limit for t in digit.thresholds), f"digit {j}: a threshold is not < 2^K")
    own = [digit.limbs for digit in c.digits]
    _require(
        c.words_per_draw == 1 + max(sum(own), own[0] + 1),
        "words_per_draw: not 1 + max(sum of the limbs, limbs of digit 0 + 1)",
    )
    _require(c.floor[1] == c.bits(0), "floor: bits are not those of digit 0")
    _require(c.floor[0] == c.digits[0].thresholds[0], "floor: not digit 0's first threshold")
    # The second bound follows from the mean criterion; here it keeps 2^k small.
    _require(c.range >> c.value_bits == 0, "value_bits: 2^value_bits does not exceed the range")
    _require(c.value_bits <= c.floor[1], "value_bits: more than the floor's bits")


def _one_minus_power(c: Certificate, exponent: int) -> arb:
    """1 - a^exponent for a = exp(-sampled_rate), without cancellation."""
    return -(-_real(c.sampled_rate) * exponent).expm1()


def _zero_mass(c: Certificate) -> arb:
    """P0 = (1-a)/(1+a), the probability that the noise is 0."""
    return (_real(c.sampled_rate) / 2).tanh()


def _ideal_thresholds(c: Certificate, j: int) -> list[arb]:
    weight, radix = c.digits[j].weight, c.radix(j)
    # The geometric sums' common factor 1 - a^B cancels from the cuts of a lower digit.
    scale = arb(1) if j == c.top else _one_minus_power(c, radix * weight)
    cuts = [_one_minus_power(c, k * weight) / scale for k in range(1, radix)]
    if j > 0:
        return cuts
    g = _real(c.floor_mass)
    values = (1 - g) * (1 - _zero_mass(c))
    return [g + values * cut for cut in [arb(0), *cuts, arb(1)]]


def _check_thresholds(c: Certificate) -> float:
    worst = 0.0
    for j, digit in enumerate(c.digits):
        limit = 1 << c.bits(j)
        for n, (stored, ideal) in enumerate(
            zip(digit.thresholds, _ideal_thresholds(c, j), strict=True), 1
        ):
            scaled = ideal * limit
            # No ideal threshold exceeds 1, even where a ball around it does.
            clipped = stored == limit - 1
            close = stored - 1 <= scaled and (clipped or scaled <= stored + 1)
            _require(close, f"digit {j}: threshold {n} is more than one unit off")
            if not clipped:
                worst = max(worst, _float_above(abs(scaled - stored)))
    return worst


def _check_reach(c: Certificate) -> None:
    farthest = (c.radix(c.top) - 1) * c.digits[-1].weight
    negligible = _real(c.sampled_rate) * farthest >= (c.bits(c.top) + 2) * arb.const_log2()
    _require(farthest >= c.range or negligible, "reach: the top digit's is too short")


def _check_eta(c: Certificate) -> None:
    d = len(c.digits)
    h = d - len(c.low)
    _require(c.eta[1] == c.bits(c.top), "eta: bits are not the top digit's")
    _require(c.eta[0] == h * d * (d + 5) // 2 + 1, "eta: not (h d (d+5)/2 + 1) units")


def _least_value_mass(c: Certificate, j: int) -> arb:
    """The least ideal probability of one value of a digit that is not the top one."""
    weight, radix = c.digits[j].weight, c.radix(j)
    rarest = (-_real(c.sampled_rate) * ((radix - 1) * weight)).exp()
    rarest *= _one_minus_power(c, weight) / _one_minus_power(c, radix * weight)
    if j > 0:
        return rarest
    # Noise of 0 can come from half of this mass (lemma 3).
    return (1 - _real(c.floor_mass)) * (1 - _zero_mass(c)) * rarest / 2


def _least_delta(c: Certificate) -> Fraction:
    singles = pairs = total = 0
    for j in c.low:
        # Own words beyond the first are for rarer values.
        inverse = 1 / (_least_value_mass(c, j) * 2 ** (c.word * (c.digits[j].limbs - 1)))
        # 2^(w-2) bounds the sum below, so that a larger one could not pass anyway.
        _require(inverse < 2**c.word, f"delta: a value of low digit {j} is too rare")
        q = inverse.ceil().unique_fmpz()
        if q is None:
            raise VerificationError(f"delta: the least value of digit {j} is not certain")
        singles += 2 * int(q)
        pairs += total * int(q)
        total += int(q)
    _require(total <= 2 ** (c.word - 2), "delta: the low digits' values are too rare together")
    return Fraction(singles + pairs, 1 << (2 * c.word))


def _check_relative_error(c: Certificate) -> None:
    _require(c.delta >= _least_delta(c), "delta: less than the low digits' relative error")
    _require(c.delta <= Fraction(1, 4), "delta: more than 1/4")


def _check_delta(c: Certificate) -> None:
    _check_relative_error(c)
    _require(
        3 * c.delta <= c.rate - c.sampled_rate, "delta: 3 delta exceeds rate - sampled_rate (i)"
    )
    small = 3 * c.delta <= min(Fraction(1), c.rate) / (1 << 54)
    _require(small, "delta: 3 delta exceeds 2^-54 min(1, rate) (iii)")


def _check_floor(c: Certificate, promised: Fraction) -> float:
    """Inequality (ii) at a promised rate; returns a lower bound of its slack."""
    half = (_real(promised) / 2).tanh()
    eta = arb(c.eta[0]) * arb(2) ** -c.eta[1]
    slack = _real(c.floor_mass / (1 << c.value_bits)) * half / eta
    _require(slack >= 1, "floor: eta exceeds g 2^-k tanh(rate/2) (ii)")
    mean = c.floor_mass * (1 << c.value_bits)
    _require(mean <= Fraction(1, 1 << 20), "floor: g 2^k exceeds 2^-20 (mean)")
    _require(c.floor_mass <= Fraction(1, 1 << 52), "floor: g exceeds 2^-52 (iii)")
    log2 = slack.log() / arb.const_log2()
    return max(0.0, -_float_above(-log2))


def _check_total_variation(c: Certificate) -> float:
    bound = c.floor_mass * 3 / 2 + c.delta + 1 - c.sampled_rate / c.rate
    _require(bound <= Fraction(1, 1 << 50), "total_variation: the bound exceeds 2^-50")
    stated = Fraction(c.total_variation)
    _require(stated >= bound, "total_variation: stated is less than the bound")
    _require(stated <= Fraction(1, 1 << 50), "total_variation: stated exceeds 2^-50")
    return _float_above(_real(bound))


# ---------------------------------------------------------------------------- exact distribution


def _count_masses(digit: Digit, word: int, start: int, end: int) -> list[int]:
    """By count: the pairs (own bits, shared word in start..end-1) which give that count."""
    low, size = (1 << word) - 1, end - start
    below = [size * (t >> word) + min(max((t & low) - start, 0), size) for t in digit.thresholds]
    return [b - a for a, b in pairwise([0, *below, size << (word * digit.limbs)])]


def exact_distribution(
    digits: Sequence[Digit], word: int, reach: int
) -> tuple[list[int], list[int], int, int]:
    """The distribution of the noise: the masses of 0..reach-1 and of all beyond, in units of half
    a tape; those of -0..-(reach-1) and of all beyond; the mass of the floor's slot.

    The last number is the total, 2^(word*(1 + sum of limbs)), in units of a tape.
    """
    # Where the other digits' counts do not depend on the shared word, the distribution is linear in
    # the remaining digit's, which may hence be summed over: choose the one with most cuts.
    summed = max(range(len(digits)), key=lambda j: len(digits[j].thresholds))
    cuts = {0, 1 << word}
    for j, digit in enumerate(digits):
        if j != summed:
            cuts.update(t & ((1 << word) - 1) for t in digit.thresholds)
    rises, falls, floor, total = [0] * (reach + 1), [0] * (reach + 1), 0, 0
    for start, end in pairwise(sorted(cuts)):
        masses = [
            _count_masses(digit, word, start, end if j == summed else start + 1)
            for j, digit in enumerate(digits)
        ]
        others = math.prod(sum(mass) for mass in masses[1:])
        total += sum(masses[0]) * others
        floor += masses[0][0] * others
        *values, zero = masses[0][1:]
        # Above digit 0, by what these digits add up to; the top digit's last value saturates.
        joint, unit = [1], 1 if len(digits) == 1 else digits[1].weight
        for digit, mass in zip(digits[1:], masses[1:], strict=True):
            near = mass[: reach // digit.weight + 1]
            if digit is digits[-1]:
                near = near[: len(mass) - 1]
            joint = [q * p for q in near for p in joint][: reach // unit + 1]
        up = [0] * (len(values) + 1)
        up[0] = 2 * zero
        for m, value in enumerate(values, 1):
            up[m if len(digits) == 1 else m % unit] += value
        before = sum(rises), sum(falls)
        for above, mass in enumerate(joint):
            for low, (rise, fall) in enumerate(zip(up, [0, *values], strict=True)):
                at = above * unit + low
                if at < reach:
                    rises[at] += rise * mass
                    falls[at] += fall * mass
        rises[reach] += sum(up) * others - sum(rises) + before[0]
        falls[reach] += sum(values) * others - sum(falls) + before[1]
    return rises, falls, floor, total


def worst_ratio(
    rises: Sequence[int], falls: Sequence[int], floor: int, value_bits: int
) -> Fraction:
    """The largest ratio of an output's probabilities from neighbouring offsets."""
    last = len(rises) - 1
    # An inner output y depends on y-x alone.
    inner = [*falls[last - 1 : 0 : -1], *rises[:last]] if last > 1 else []
    # An end at distance t collects all that goes at least as far; at t = 0, the lower one also 0.
    upper = list(accumulate(reversed(rises)))[::-1]
    lower = list(accumulate(reversed(falls)))[::-1]
    lower[0] += rises[0]
    slots = (1, 1, (1 << value_bits) - last)
    rows = [
        [(mass << value_bits) + 2 * floor * n for mass in row]
        for row, n in zip((inner, lower, upper), slots, strict=True)
    ]
    return max(Fraction(max(a, b), min(a, b)) for row in rows for a, b in pairwise(row))


def brute_ratio(
    rises: Sequence[int], falls: Sequence[int], floor: int, value_bits: int
) -> Fraction:
    """The same from the definition, by the whole matrix of outputs."""
    last = len(rises) - 1
    slots = [1] * last + [(1 << value_bits) - last]
    rows = []
    for x in range(last + 1):
        row = [2 * floor * s for s in slots]
        for m, (rise, fall) in enumerate(zip(rises, falls, strict=True)):
            row[min(x + m, last)] += rise << value_bits
            row[max(x - m, 0)] += fall << value_bits
        rows.append(row)
    return max(
        Fraction(max(p, q), min(p, q))
        for row, following in pairwise(rows)
        for p, q in zip(row, following, strict=True)
    )


def _check_tight(c: Certificate) -> float:
    rises, falls, floor, total = exact_distribution(c.digits, c.word, c.range)
    _require(
        Fraction(floor, total) == c.floor_mass, "tight_epsilon: the distribution's floor differs"
    )
    ratio = worst_ratio(rises, falls, floor, c.value_bits)
    if c.range <= BRUTE_RANGE:
        agrees = ratio == brute_ratio(rises, falls, floor, c.value_bits)
        _require(agrees, "tight_epsilon: the two ways to the worst ratio disagree")
    epsilon = _real(ratio).log()
    _require(epsilon <= _real(c.rate), "tight_epsilon: the exact distribution's exceeds the rate")
    if c.tight_epsilon is None:
        return _float_above(epsilon)
    _require(arb(c.tight_epsilon) >= epsilon, "tight_epsilon: stated is less than the exact")
    below = math.nextafter(c.tight_epsilon, -math.inf)
    _require(epsilon > arb(below), "tight_epsilon: stated is not the least float above")
    return c.tight_epsilon


# ---------------------------------------------------------------------------- tiers


def _parse_step(table: dict[str, object]) -> Step | None:
    kappa, keep = _fraction(table.get("kappa"), "kappa"), table.get("keep")
    if keep is None:
        _require(kappa == 0, "kappa: stated without a step")
        return None
    fields = _table(keep, "keep")
    limbs = _count(fields.get("limbs"), "keep.limbs")
    _require(1 <= limbs <= MAX_LIMBS, f"keep: limbs not in 1..{MAX_LIMBS}")
    inside, end = (_integer(fields.get(name), f"keep.{name}") for name in ("inside", "end"))
    return Step(limbs, inside, end, kappa)


def _check_step(c: Certificate, step: Step, finer: Fraction) -> None:
    """The keep probabilities of the step from a finer sampled rate, and their error."""
    _require(c.sampled_rate < finer, "sampled_rate: not below that of the finer tier")
    coarse, fine, unit = _real(c.sampled_rate), _real(finer), 1 << (c.word * step.limbs)
    # exp(s) - 1 over exp(s') - 1, without numbers that overflow.
    quotient = (-coarse).expm1() / (-fine).expm1()
    end = (coarse - fine).exp() * quotient
    for name, stored, ideal in (("inside", step.inside, end * quotient), ("end", step.end, end)):
        _require(stored < unit, f"keep: {name} is not < 2^K")
        off = abs(ideal * unit - stored)
        _require(off <= 1, f"keep: {name} is more than one unit off")
    for least in (1 - end, (coarse / 2).tanh()):
        _require(_real(step.kappa) * unit * least >= 1, "kappa: less than the step's error")
    _require(step.kappa <= Fraction(1, 4), "kappa: more than 1/4")


def _tiers_variation(c: Certificate, relative: Fraction, floors: Fraction) -> Fraction:
    twice = 2 * relative
    return 1 - c.sampled_rate / c.rate + twice + 2 * (1 + twice) * floors


def verify_tiers(certificate: dict[str, object] | str) -> TiersReport:
    """Verify the certificates of tiers, given as JSON text or as what that decodes to."""
    table = _load(certificate, TIERS)
    tables = [_table(tier, "tiers") for tier in _list(table.get("tiers"), "tiers")]
    _require(tables != [], "tiers: none")
    if all(tier.get("digits") == [] for tier in tables):
        known = [_trivial(tier) for tier in tables]
        _require(all(tier.get("keep") is None for tier in tables), "keep: stated without noise")
        rates = tuple(one.rate for one in known if one and one.rate is not None)
        return TiersReport(rates, 0, (0.0,) * len(known))
    tiers = [(_parse(tier), _parse_step(tier)) for tier in tables]
    least, _ = tiers[0]
    for (c, _), (fine, _) in pairwise(tiers):
        _require(c.rate < fine.rate, "tiers: rates do not increase")
        _require(c.range == fine.range, "tiers: ranges differ")
    relative, floors, finer, found = Fraction(), Fraction(), None, []
    for stated, step in reversed(tiers):
        c = stated
        if step is not None:
            c = replace(stated, words_per_draw=stated.words_per_draw - step.limbs)
        _require(c.word == LIMB_BITS, f"limb_bits: not {LIMB_BITS}")
        _require(c.tight_epsilon is None, "tight_epsilon: stated for a tier")
        _check_structure(c)
        with ctx.workprec(1024 + 2 * c.bits(c.top) + 2 * least.rate.denominator.bit_length()):
            _check_thresholds(c)
            _check_reach(c)
            _check_eta(c)
            _check_relative_error(c)
            # The floor pays for errors at the smallest rate, which all tiers down there promise.
            _check_floor(c, least.rate)
            _require((step is None) == (finer is None), "keep: only the finest tier has none")
            if step is not None and finer is not None:
                _check_step(c, step, finer)
                relative += step.kappa
            relative, floors = relative + c.delta, floors + c.floor_mass
            paid = 3 * relative <= c.rate - c.sampled_rate
            _require(paid, "delta: 3 (delta + kappa), of finer tiers too, exceeds the slack")
            bound = _tiers_variation(c, relative, floors)
            _require(Fraction(c.total_variation) >= bound, "total_variation: stated is less")
            found.append(_float_above(_real(bound)))
        finer = c.sampled_rate
    return TiersReport(tuple(c.rate for c, _ in tiers), least.range, tuple(reversed(found)))


# ---------------------------------------------------------------------------- groups

# What the draw's numbers of points and their places may differ by, of each probability.
POINTS, PLACES = Fraction(1, 1 << 97), 100
MAX_PLACE_BITS = 2048  # of a number of places: more than any domain has
SMALLEST_RATE = Fraction(1, 10**9)  # keeps a hostile certificate from asking for huge numbers


def _class(value: object, name: str) -> Class:
    table = _table(value, name)
    return Class(
        places=_integer(table.get("places"), f"{name}: places"),
        threshold=_integer(table.get("threshold"), f"{name}: threshold"),
        parts=_integer(table.get("parts"), f"{name}: parts"),
        mean=_fraction(table.get("mean"), f"{name}: mean"),
        words=_count(table.get("words"), f"{name}: words"),
    )


def _check_block(digits: Sequence[Digit], stop: Fraction, block: int) -> arb:
    """The digits of a block; returns kappa, the relative error of each of its probabilities."""
    _require(digits != (), "digits: none")
    a, weight, top = 1 - _real(stop), 1, len(digits) - 1
    for j, digit in enumerate(digits):
        # Digit 0 has the floor's slot, without mass.
        cuts = digit.thresholds[1:] if j == 0 else digit.thresholds
        _require(j > 0 or digit.thresholds[:1] == (0,), "digit 0: its floor has mass")
        _require(digit.limbs == 1, f"digit {j}: not of one limb")
        _require(digit.weight == weight, f"digit {j}: weight is not the radices below multiplied")
        radix = len(cuts) + 1
        _require(j == top or radix.bit_count() == 1, f"digit {j}: radix not a power of two")
        whole = arb(1) if j == top else 1 - a ** (radix * weight)
        unit = 1 << (2 * LIMB_BITS)
        for n, stored in enumerate(cuts, 1):
            scaled = (1 - a ** (n * weight)) / whole * unit
            close = stored - 1 <= scaled and (stored == unit - 1 or scaled <= stored + 1)
            _require(close, f"digit {j}: cut {n} is more than one unit off")
            _require(stored < unit, f"digit {j}: a threshold is not < 2^K")
        weight *= radix
    # One more trial than a block has stands for all beyond; the top digit's last value saturates.
    _require(digits[-1].weight * (radix - 1) > block, "block: the top digit's reach is too short")
    units = len(digits) ** 2 * (len(digits) + 5) // 2 + 1
    eta = arb(units) * arb(2) ** (-2 * LIMB_BITS)
    _require(eta <= arb(2) ** -100, "digits: their errors exceed 2^-100")
    rarest = [_real(stop) * a ** (block - 1), a**block]
    return arb(2) ** -100 / (rarest[0] if rarest[0] < rarest[1] else rarest[1])


def _check_class(c: Class, name: str, noise: tuple[arb, arb, arb, arb]) -> None:
    """Condition (C2), for what the draw makes of a class."""
    rate, a, rise, theta = noise
    _require(0 < c.places.bit_length() <= MAX_PLACE_BITS, f"{name}: places out of range")
    _require(c.threshold >= 1, f"{name}: threshold is not positive")
    _require(c.threshold <= 2000 / SMALLEST_RATE, f"{name}: threshold out of range")
    _require(0 < c.mean <= 1 and c.parts >= 1, f"{name}: a part's mean is not in (0, 1]")
    _require(c.mean.denominator.bit_count() == 1, f"{name}: mean is not dyadic")
    _require(64 * c.words >= c.places.bit_length() + PLACES, f"{name}: words of a place too few")
    far = c.threshold - 1
    ideal, off = rise * a**far, (theta * far).exp()
    high, low = ideal * off, ideal / off
    mu = _real(c.parts * c.mean / c.places)
    error = _real((1 + POINTS) * (1 + Fraction(1, 1 << PLACES)) - 1)
    least, most = (-(-mu * (1 + sign * error)).expm1() for sign in (-1, 1))
    up, down = rate.exp(), (-rate).exp()
    _require(down * high <= least, f"{name}: an empty cell appears too seldom (C2)")
    _require(1 - up * (1 - high) <= least, f"{name}: an empty cell is hidden too often (C2)")
    _require(most <= up * low, f"{name}: an empty cell appears too often (C2)")
    _require(most <= 1 - down * (1 - low), f"{name}: an empty cell is hidden too seldom (C2)")


def verify_groups(certificate: dict[str, object] | str) -> GroupsReport:
    """Verify the certificate of groups, given as JSON text or as what that decodes to."""
    table = _load(certificate, GROUPS)
    rate, stop, fall, theta = (
        _fraction(table.get(name), name) for name in ("rate", "stop", "fall", "theta")
    )
    block = _integer(table.get("block"), "block")
    digits = tuple(
        _digit(d, f"digit {j}") for j, d in enumerate(_list(table.get("digits"), "digits"))
    )
    classes = [
        _class(c, f"class {j}") for j, c in enumerate(_list(table.get("classes"), "classes"))
    ]
    _require(table.get("limb_bits") == LIMB_BITS, f"limb_bits: not {LIMB_BITS}")
    _require(_count(table.get("blocks"), "blocks") >= 1, "blocks: none")
    _require(rate >= SMALLEST_RATE, "rate: too small")
    for name, value in (("stop", stop), ("fall", fall)):
        _require(0 < value < 1, f"{name}: not between 0 and 1")
        # A float64, which the draw takes exactly.
        _require(Fraction(float(value)) == value, f"{name}: not a float64")
    _require(1 <= block <= 1 << 40, "block: out of range")
    _require(classes != [], "classes: none")
    places = max(c.places.bit_length() for c in classes)
    with ctx.workprec(8192 + 4 * min(places, MAX_PLACE_BITS)):
        r, a, rise = _real(rate), 1 - _real(stop), 1 - _real(fall)
        kappa = _check_block(digits, stop, block)
        _require(4 * kappa <= 1, "block: kappa exceeds 1/4")
        _require(4 * kappa <= _real(theta), "theta: less than 4 kappa")
        _require(_real(theta) - a.log() <= r, "theta: the noise exceeds the rate (C1)")
        odds = (rise / _real(fall)).log()
        _require(-r <= odds <= r, "fall: the sign exceeds the rate (C1)")
        for j, each in enumerate(classes):
            _check_class(each, f"class {j}", (r, a, rise, _real(theta)))
        means = tuple(_float_above(_real(c.parts * c.mean)) for c in classes)
    return GroupsReport(rate, theta, means)


# ---------------------------------------------------------------------------- entry points


def _trivial(table: dict[str, object]) -> Report | None:
    """The report on a mechanism without noise; None if there is noise."""
    span, rate, digits = table.get("range"), table.get("rate"), table.get("digits")
    constant = digits == [] and _integer(span, "range") == 0
    if rate is None and not constant:
        raise VerificationError("rate: no privacy is claimed")
    if digits != []:
        return None
    _require(constant, "digits: no noise is drawn for a positive range")
    for key in ("sampled_rate", "eta", "delta", "floor"):
        _require(table.get(key) is None, f"{key}: stated for a mechanism without noise")
    for key in ("total_variation", "tight_epsilon"):
        # With one output, both are nothing.
        _require(table.get(key) in (None, 0), f"{key}: stated for a mechanism without noise")
    known = None if rate is None else _fraction(rate, "rate")
    return Report(known, 0, 0.0, math.inf, 0.0, None)


def verify(certificate: dict[str, object] | str, tight: bool | None = None) -> Report:
    """Verify a certificate, given as JSON text or as what that decodes to.

    tight: recompute the exact distribution and its epsilon (True), do not (False), or do if the
    certificate states it and the range is at most 2000 (None).
    """
    table = _load(certificate, FORMAT)
    trivial = _trivial(table)
    if trivial is not None:
        return trivial
    c = _parse(table)
    _require(c.word == LIMB_BITS, f"limb_bits: not {LIMB_BITS}")
    _check_structure(c)
    # Thresholds need K digits after the point; small rates need their leading zeros as well.
    with ctx.workprec(1024 + 2 * c.bits(c.top) + c.rate.denominator.bit_length()):
        worst = _check_thresholds(c)
        _check_reach(c)
        _check_eta(c)
        _check_delta(c)
        slack = _check_floor(c, c.rate)
        bound = _check_total_variation(c)
        if tight is None:
            tight = c.tight_epsilon is not None and c.range <= TIGHT_RANGE
        epsilon = _check_tight(c) if tight else None
    return Report(c.rate, c.range, worst, slack, bound, epsilon)


def main(paths: Sequence[str]) -> int:
    if not paths:
        print("usage: verify.py FILE...", file=sys.stderr)
        return 2
    failed = False
    for path in paths:
        try:
            print(f"ok {path}: {_verified(Path(path).read_text(encoding='utf-8'))}")
        except (OSError, ValueError) as error:
            failed = True
            print(f"FAILED {path}: {error}")
    return 1 if failed else 0


def _verified(text: str) -> str:
    """Verify a certificate of any format, and return what it establishes."""
    table = _load(text, FORMAT, TIERS, GROUPS)
    if table["format"] == GROUPS:
        groups = verify_groups(table)
        means = ", ".join(f"{each:.4g}" for each in groups.spurious)
        return f"groups, rate {groups.rate}, theta {float(groups.theta):.3g}, points {means}"
    if table["format"] == TIERS:
        tiers = verify_tiers(table)
        rates = ", ".join(map(str, tiers.rates))
        distances = ", ".join(f"{each:.3g}" for each in tiers.total_variation)
        return f"tiers, rates {rates}, range {tiers.range}, total variations {distances}"
    report = verify(table)
    tight = report.tight_epsilon
    return (
        f"rate {report.rate}, range {report.range}, "
        f"thresholds within {report.worst_threshold_error:.4f}, "
        f"floor slack 2^{report.floor_slack_log2:.3g}, "
        f"total variation {report.total_variation:.3g}, "
        f"tight epsilon {'not checked' if tight is None else tight}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
