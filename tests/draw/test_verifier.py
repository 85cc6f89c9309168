"""The stand-alone verifier, on certificates made here without the library."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import arb, ctx, fmpq

from tapes import by_count
from verifier import verify as verifier
from verifier.verify import (
    Digit,
    VerificationError,
    brute_ratio,
    exact_distribution,
    verify,
    worst_ratio,
)

Shape = list[tuple[int, int]]  # radix and limbs of each digit
Cert = dict[str, Any]
WORD = 63


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with ctx.workprec(2000):
        yield


def real(value: Fraction | int) -> arb:
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def whole(value: arb) -> int:
    found = value.upper().floor().unique_fmpz()
    assert found is not None
    return int(found)


def ideal_cuts(rate: Fraction, shape: Shape, j: int) -> list[arb]:
    weight, radix = math.prod(r for r, _ in shape[:j]), shape[j][0]
    step = (-real(rate) * weight).exp()
    if j == len(shape) - 1:
        return [1 - step**k for k in range(1, radix)]
    sums = list(itertools.accumulate((step**i for i in range(radix)), initial=arb(0)))
    return [part / sums[-1] for part in sums[1:-1]]


def stored_digits(
    rate: Fraction,
    shape: Shape,
    floor: int,
    word: int = WORD,
    off: Callable[[], int] = lambda: 0,
) -> list[Digit]:
    """Return rounded thresholds; add `off` if they stay within one unit."""
    digits = []
    for j, (_, limbs) in enumerate(shape):
        bits = word * (limbs + 1)
        ideal, exact = ideal_cuts(rate, shape, j), []
        if j == 0:
            exact, g = [floor], real(Fraction(floor, 2**bits))
            zero = (1 - (-real(rate)).exp()) / (1 + (-real(rate)).exp())
            ideal = [g + (1 - g) * (1 - zero) * c for c in [*ideal, arb(1)]]
        for value in ideal:
            scaled = value * 2**bits
            near = min(whole(scaled + real(Fraction(1, 2))), 2**bits - 1)
            moved = min(max(near + off(), 0), 2**bits - 1)
            exact.append(moved if abs(moved - scaled) <= 1 else near)
        weight = math.prod(r for r, _ in shape[:j])
        digits.append(Digit(weight, limbs, tuple(itertools.accumulate(exact, max))))
    return digits


def eta_units(shape: Shape) -> int:
    d = len(shape)
    high = sum(limbs == shape[-1][1] for _, limbs in shape)
    return high * d * (d + 5) // 2 + 1


def least_floor(rate: Fraction, shape: Shape, value_bits: int, word: int = WORD) -> int:
    units = real(eta_units(shape)) * 2 ** (word * (shape[0][1] - shape[-1][1]) + value_bits)
    return whole(units / (real(rate) / 2).tanh()) + 1


def least_delta(rate: Fraction, shape: Shape, floor: int, word: int = WORD) -> int:
    """Return the least delta, in units of 2^-2w."""
    inverses = []
    for j, (_, limbs) in enumerate(shape[:-1]):
        if limbs == shape[-1][1]:
            continue
        cuts = [arb(0), *ideal_cuts(rate, shape, j), arb(1)]
        masses = [b - a for a, b in itertools.pairwise(cuts)]
        if j == 0:
            zero = (1 - (-real(rate)).exp()) / (1 + (-real(rate)).exp())
            g = real(Fraction(floor, 2 ** (word * (limbs + 1))))
            masses = [(1 - g) * (1 - zero) * m / 2 for m in masses]
        skipped = 2 ** (word * (limbs - 1))
        inverses.append(max(whole(1 / (m * skipped)) + 1 for m in masses))
    pairs = sum(q * r for q, r in itertools.combinations(inverses, 2))
    return 2 * sum(inverses) + pairs


def build(
    span: int,
    rate: Fraction,
    shape: Shape,
    sampled: Fraction | None = None,
    *,
    floor_change: int = 0,
    value_bits: int | None = None,
    tight: bool = False,
) -> Cert:
    sampled = rate if sampled is None else sampled
    k = span.bit_length() if value_bits is None else value_bits
    floor = least_floor(rate, shape, k) + floor_change
    digits = stored_digits(sampled, shape, floor)
    bits = [WORD * (limbs + 1) for _, limbs in shape]
    delta = least_delta(sampled, shape, floor)
    bound = Fraction(3 * floor, 2 ** (bits[0] + 1)) + Fraction(delta, 2 ** (2 * WORD))
    bound += (rate - sampled) / rate
    limbs = [digit.limbs for digit in digits]
    cert: Cert = {
        "format": "geomdp-certificate-2",
        "mechanism": "made by a test",
        "rate": f"{rate.numerator}/{rate.denominator}",
        "sampled_rate": f"{sampled.numerator}/{sampled.denominator}",
        "range": str(span),
        "limb_bits": WORD,
        "digits": [
            {
                "weight": str(digit.weight),
                "limbs": digit.limbs,
                "thresholds": [hex(t) for t in digit.thresholds],
            }
            for digit in digits
        ],
        "words_per_draw": 1 + max(sum(limbs), limbs[0] + 1),
        "eta": {"num": str(eta_units(shape)), "bits": bits[-1]},
        "delta": {"num": str(delta), "bits": 2 * WORD},
        "floor": {"num": hex(floor), "bits": bits[0], "value_bits": k},
        "total_variation": math.nextafter(abs(float(bound)), 1.0),
        "tight_epsilon": None,
    }
    if tight:
        cert["tight_epsilon"] = least_float_above(real(plain_ratio(digits, span, k)).log())
    return cert


def least_float_above(value: arb) -> float:
    near = float(value)
    return near if arb(near) >= value else math.nextafter(near, math.inf)


def plain_ratio(digits: list[Digit], span: int, value_bits: int, word: int = WORD) -> Fraction:
    """Return the worst ratio by the definition, in fractions."""
    edges = {0, 2**word} | {t % 2**word for digit in digits for t in digit.thresholds}
    outputs = [[Fraction(0)] * (span + 1) for _ in range(span + 1)]
    for start, end in itertools.pairwise(sorted(edges)):
        pmfs: list[list[Fraction]] = []
        for digit in digits:
            own = 2 ** (word * digit.limbs)
            cuts = [t // 2**word + (start < t % 2**word) for t in digit.thresholds]
            pmfs.append([Fraction(b - a, own) for a, b in itertools.pairwise([0, *cuts, own])])
        for counts in itertools.product(*(range(len(pmf)) for pmf in pmfs)):
            mass = math.prod(pmf[n] for pmf, n in zip(pmfs, counts, strict=True))
            mass *= Fraction(end - start, 2**word)
            above = sum(n * d.weight for d, n in zip(digits[1:], counts[1:], strict=True))
            saturated = len(digits) > 1 and counts[-1] == len(pmfs[-1]) - 1
            low, is_zero = counts[0], counts[0] == len(pmfs[0]) - 1
            wrapped = low % digits[1].weight if len(digits) > 1 else low
            rise, fall = above + (0 if is_zero else wrapped), above + low
            for x in range(span + 1):
                if low == 0:
                    for y in range(span):
                        outputs[x][y] += mass / 2**value_bits
                    outputs[x][span] += mass * (1 - Fraction(span, 2**value_bits))
                    continue
                outputs[x][span if saturated else min(x + rise, span)] += mass / 2
                if is_zero:
                    outputs[x][span if saturated else min(x + rise, span)] += mass / 2
                else:
                    outputs[x][0 if saturated else max(x - fall, 0)] += mass / 2
    assert all(sum(row) == 1 for row in outputs)
    return max(
        max(p / q, q / p)
        for row, following in itertools.pairwise(outputs)
        for p, q in zip(row, following, strict=True)
    )


ONE = Fraction(1)
NEAR_ONE = 1 - Fraction(1, 2**54)
BOUNDED: Shape = [(8, 1), (8, 1), (13, 1)]
MIXED: Shape = [(8, 1), (4, 1), (6, 2)]
SMALL: Shape = [(4, 1), (9, 1)]
#: The library accepts rates of 14,000 bits.
LONG = 1 - Fraction(1, 2**13999)


def bounded() -> Cert:
    return build(1000, ONE, BOUNDED)


def mixed() -> Cert:
    return build(2**64 - 1, ONE, MIXED, NEAR_ONE)


def small() -> Cert:
    return build(30, Fraction(3, 10), SMALL, tight=True)


def slack() -> Cert:
    """The rate is reduced by four times the slack that lemma 14 allows."""
    return build(2**64 - 1, ONE, MIXED, 1 - Fraction(1, 2**52))


def steep() -> Cert:
    """A rate above 1, by which the slack grows, but not that of lemma 14."""
    return build(30, Fraction(4), [(2, 1), (16, 2)], 4 * NEAR_ONE)


CERTIFICATES: dict[str, Callable[[], Cert]] = {
    "bounded": bounded,
    "mixed": mixed,
    "small": small,
    "slack": slack,
    "steep": steep,
    "tiny": lambda: build(5, ONE, [(6, 1)], tight=True),
    "two values": lambda: build(1, Fraction(2), [(2, 1)], tight=True),
    "high top": lambda: build(
        9, Fraction(1, 2), [(2, 1), (2, 1), (4, 2)], Fraction(1, 2) * NEAR_ONE
    ),
    "wide floor": lambda: build(30, ONE, SMALL, value_bits=9, tight=True),
    "small rate": lambda: build(5, Fraction(1, 2**20), [(2, 2), (4, 2)], tight=True),
    "huge rate": lambda: build(5, Fraction(10**30), [(2, 1), (3, 1)]),
    "long rate": lambda: build(30, LONG, SMALL, tight=True),
    "long sampled rate": lambda: build(2**64 - 1, LONG, MIXED, LONG * NEAR_ONE),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_verifies(name: str) -> None:
    cert = CERTIFICATES[name]()
    report = verify(cert)
    assert report == verify(json.dumps(cert))
    assert report.range == int(cert["range"])
    assert report.worst_threshold_error <= 0.51
    assert report.floor_slack_log2 >= 0
    assert report.total_variation <= cert["total_variation"]
    assert report.tight_epsilon == cert["tight_epsilon"]
    assert verify(cert, tight=False).tight_epsilon is None


def test_tight_epsilon_is_optional() -> None:
    cert = build(2000, Fraction(1, 50), [(64, 1), (33, 1)])
    assert verify(cert).tight_epsilon is None
    asked = verify(cert, tight=True).tight_epsilon
    assert asked is not None
    assert asked <= 0.02
    cert["tight_epsilon"] = asked
    assert verify(cert).tight_epsilon == asked


def test_no_noise() -> None:
    constant: Cert = {"format": "geomdp-certificate-2", "range": "0", "digits": [], "rate": "1/1"}
    assert verify(constant).total_variation == 0.0
    assert verify(constant | {"rate": None}).rate is None
    with pytest.raises(VerificationError, match="no privacy is claimed"):
        verify(constant | {"range": "7", "rate": None})
    with pytest.raises(VerificationError, match="positive range"):
        verify(constant | {"range": "7"})
    with pytest.raises(VerificationError, match="without noise"):
        verify(constant | {"tight_epsilon": 0.5})


def refused(cert: object, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        verify(json.dumps(cert))


def move_threshold(cert: Cert, j: int, n: int, units: int) -> None:
    thresholds = cert["digits"][j]["thresholds"]
    thresholds[n] = hex(int(thresholds[n], 16) + units)


@pytest.mark.parametrize("units", [-2, 2])
@pytest.mark.parametrize("made", [bounded, mixed, small])
def test_every_threshold_is_checked(made: Callable[[], Cert], units: int) -> None:
    good = made()
    for j, digit in enumerate(good["digits"]):
        for n in range(len(digit["thresholds"])):
            cert = copy.deepcopy(good)
            move_threshold(cert, j, n, units)
            # The certificate states the floor's threshold twice, and both must agree. Thresholds in
            # the tail are so close to each other and to 1 that a move can break their order.
            name = f"digit {j}: (threshold {n + 1} is|thresholds do not ascend|a threshold is)"
            name = "floor: not" if j == n == 0 else name
            refused(cert, name)


def change(**values: object) -> Callable[[Cert], object]:
    return lambda cert: cert.update(values)


def part(key: str, name: str, add: int) -> Callable[[Cert], object]:
    def apply(cert: Cert) -> None:
        old = cert[key][name]
        cert[key][name] = old + add if isinstance(old, int) else str(int(old, 0) + add)

    return apply


def ulp(key: str, towards: float) -> Callable[[Cert], object]:
    return lambda cert: cert.update({key: math.nextafter(cert[key], towards)})


def swap(cert: Cert) -> None:
    thresholds = cert["digits"][1]["thresholds"]
    thresholds[2:4] = thresholds[3:1:-1]


def drop_last(cert: Cert) -> None:
    cert["digits"][1]["thresholds"].pop()


def understate_total_variation(cert: Cert) -> None:
    cert["total_variation"] = math.nextafter(verify(cert).total_variation, 0.0)


FAULTS: list[tuple[Callable[[], Cert], Callable[[Cert], object], str]] = [
    (bounded, swap, "digit 1: thresholds do not ascend"),
    (bounded, drop_last, "digit 1: radix"),
    (bounded, lambda c: c["digits"][1].update(weight="16"), "digit 1: weight"),
    (bounded, lambda c: c["digits"][0].update(limbs=2), "digit 0: more limbs"),
    (bounded, lambda c: move_threshold(c, 2, 11, 2**126), "digit 2: a threshold is not < 2"),
    (bounded, part("floor", "num", -1), "floor: not digit 0's first"),
    (bounded, part("floor", "value_bits", -1), "value_bits"),
    (bounded, part("floor", "value_bits", 1), r"floor: eta exceeds .*\(ii\)"),
    (bounded, part("floor", "bits", 1), "floor: bits"),
    (bounded, part("eta", "num", -1), "eta: not"),
    (bounded, part("eta", "bits", 1), "eta: bits"),
    (mixed, part("delta", "num", -1), "delta: less"),
    (mixed, part("delta", "num", 2**74), r"delta: 3 delta exceeds .*\(i\)"),
    (bounded, part("delta", "num", 1), r"delta: 3 delta exceeds .*\(i\)"),
    (slack, part("delta", "num", 2**71), r"delta: 3 delta exceeds .*\(iii\)"),
    (steep, part("delta", "num", 2**71), r"delta: 3 delta exceeds .*\(iii\)"),
    (bounded, change(words_per_draw=3), "words_per_draw"),
    (bounded, change(words_per_draw=5), "words_per_draw"),
    (bounded, understate_total_variation, "total_variation: stated"),
    (mixed, understate_total_variation, "total_variation: stated"),
    (bounded, change(total_variation=1e-15), "total_variation: stated exceeds"),
    (small, ulp("tight_epsilon", 0.0), "tight_epsilon: stated is less"),
    (small, ulp("tight_epsilon", 9.0), "tight_epsilon: stated is not the least"),
    (bounded, change(format="geomdp-certificate-1"), "format"),
    (bounded, change(limb_bits=62), "limb_bits"),
    (bounded, change(rate=None), "rate: no privacy is claimed"),
    (bounded, change(rate="0/1"), "rate: not positive"),
    (bounded, change(rate="1/0"), "rate: its denominator"),
    (bounded, change(rate=1.0), "rate: not a fraction"),
    (bounded, change(range="0"), "range"),
    (bounded, change(range="-5"), "range"),
    (bounded, change(range=1000), "range"),
    (bounded, change(digits=None), "digits: not a list"),
    (bounded, change(eta=None), "eta: not an object"),
    (bounded, change(words_per_draw=True), "words_per_draw: not an integer"),
    (bounded, change(total_variation=math.nan), "total_variation: not a finite"),
]


@pytest.mark.parametrize(("made", "spoil", "message"), FAULTS)
def test_fault_is_refused(
    made: Callable[[], Cert], spoil: Callable[[Cert], object], message: str
) -> None:
    cert = made()
    spoil(cert)
    refused(cert, f"^{message}")


def test_consistent_fault_is_refused() -> None:
    """The rest of the certificate fits these faults, so that one statement alone fails."""
    refused(build(1000, ONE, BOUNDED, floor_change=-1), r"^floor: eta exceeds .*\(ii\)")
    refused(build(30, Fraction(3, 10), SMALL, floor_change=-1), r"^floor: eta exceeds")
    refused(build(30, Fraction(3, 10), SMALL, floor_change=2**75), r"^floor: g exceeds .*\(iii\)")
    refused(build(1000, ONE, BOUNDED, 2 - NEAR_ONE), "^sampled_rate")
    refused(build(1000, ONE, [(8, 1), (8, 1), (2, 1)]), "^reach")
    refused(build(30, Fraction(3, 10), [(4, 1), (8, 1)]), "^reach")
    refused(build(2**64 - 1, ONE, MIXED, 1 - Fraction(1, 2**49)), "^total_variation: the bound")
    refused(build(2**64 - 1, ONE, BOUNDED), "^floor: g 2.k exceeds")
    refused(build(1000, ONE, [(8, 1), (8, 3), (13, 2)], NEAR_ONE), "^digit 1: more limbs")
    refused(build(1000, Fraction(8), [(8, 1), (8, 2)], 8 * NEAR_ONE), "^delta: a value of low")
    refused(build(1000, ONE, [(64, 1), (4, 2)], NEAR_ONE), "^delta: a value of low")
    refused(build(1000, ONE, [(16, 1), (3, 1), (13, 1)]), "^digit 1: radix")


def test_invalid_json_is_refused() -> None:
    for text in ("", "[]", "nonsense", '{"format": 1, "format": 2}', "[" * 100_000):
        with pytest.raises(VerificationError):
            verify(text)


def test_exact_distribution_by_enumeration() -> None:
    """Enumerate all words of two bits."""
    source = random.Random(1)
    for shape, reach in (([(2, 1), (3, 2)], 6), ([(2, 1), (2, 1), (2, 1)], 3), ([(4, 2)], 4)):
        digits = []
        for j, (radix, limbs) in enumerate(shape):
            count = radix + 1 if j == 0 else radix - 1
            drawn = sorted(source.randrange(1, 4 ** (limbs + 1)) for _ in range(count))
            digits.append(Digit(math.prod(r for r, _ in shape[:j]), limbs, tuple(drawn)))
        rises, falls, floor = [0] * (reach + 1), [0] * (reach + 1), 0
        for v in range(4):
            for own in itertools.product(*(range(4**digit.limbs) for digit in digits)):
                low, *upper = (
                    sum(t <= 4 * u + v for t in digit.thresholds)
                    for digit, u in zip(digits, own, strict=True)
                )
                value = sum(n * d.weight for n, d in zip(upper, digits[1:], strict=True))
                if upper and upper[-1] == len(digits[-1].thresholds):
                    value = reach
                if low == 0:
                    floor += 1
                elif low == len(digits[0].thresholds):
                    rises[min(value, reach)] += 2
                else:
                    falls[min(value + low, reach)] += 1
                    rises[min(value + (low % digits[1].weight if upper else low), reach)] += 1
        found = exact_distribution(digits, 2, reach)
        assert found == (rises, falls, floor, (sum(rises) + sum(falls)) // 2 + floor)
        bits = reach.bit_length()
        assert worst_ratio(rises, falls, floor, bits) == brute_ratio(rises, falls, floor, bits)
        assert worst_ratio(rises, falls, floor, bits) == plain_ratio(digits, reach, bits, word=2)


ShortWords = tuple[Fraction, Fraction, Fraction, tuple[list[int], list[int], int, int]]


def short_words(number: int) -> Iterator[ShortWords]:
    """Yield the rates of certified plans with short words, delta, the floor's mass and the exact
    distributions of the noise, which are far from the ideal ones.
    """
    source = random.Random(2)
    tried = 0
    while tried < number:
        word = source.randint(5, 9)
        low, high = source.randint(0, 2), source.randint(1, 2)
        most = source.choice([1, 2] if low == 0 else [2, 3])
        limbs = [source.randint(1, most - 1) for _ in range(low)] + [most] * high
        shape = [(2 ** source.randint(1, 2), n) for n in limbs]
        shape[-1] = (source.randint(2, 6), limbs[-1])
        sampled = Fraction(source.randint(1, 40), 20)
        reach = (shape[-1][0] - 1) * math.prod(r for r, _ in shape[:-1])
        floor = 0
        rate = sampled
        for _ in range(2):  # the floor depends on the rate, and delta (slightly) on the floor
            delta = Fraction(least_delta(sampled, shape, floor, word), 4**word)
            rate = sampled + 3 * delta
            floor = least_floor(rate, shape, reach.bit_length(), word)
        if floor >= 2 ** (word * (limbs[0] + 1)) // 4 or delta > Fraction(1, 4):
            continue
        digits = stored_digits(sampled, shape, floor, word, lambda: source.choice([-1, 0, 1]))
        g = Fraction(floor, 2 ** (word * (limbs[0] + 1)))
        yield rate, delta, g, exact_distribution(digits, word, reach)
        tried += 1


def test_theorem_for_short_words() -> None:
    for rate, _, g, (rises, falls, mass, total) in short_words(60):
        assert mass == g * total
        assert real(worst_ratio(rises, falls, mass, len(rises).bit_length())).log() <= real(rate)


Cell = list[tuple[arb, arb]]


def least_delta_of(cells: Iterable[Cell], epsilon: arb) -> arb:
    """Return the least delta at epsilon, from each output's two probabilities in each cell."""
    joint: Cell = [(real(1), real(1))]
    for cell in cells:
        joint = [(p * r, q * s) for p, q in joint for r, s in cell]
    terms = [p - epsilon.exp() * q for p, q in joint]
    return sum((term for term in terms if term > 0), arb(0))


def response(loss: arb) -> Cell:
    true, false = 1 / (1 + (-loss).exp()), 1 / (1 + loss.exp())
    return [(true, false), (false, true)]


def ideal_row(rate: arb, x: int, last: int) -> list[arb]:
    a = (-rate).exp()
    inside = [(1 - a) * a ** abs(y - x) for y in range(1, last)]
    return [mass / (1 + a) for mass in (a**x, *inside, a ** (last - x))]


def test_lemma_14_for_short_words() -> None:
    """One or two cells that change by several, beside a release of pure loss."""
    seen = 0
    for rate, beta, g, found in short_words(40):
        last, nominal = len(found[0]) - 1, real(rate)
        sampled = by_count(*found, last.bit_length())
        n, d = (2 if last <= 12 else 1), min(3, last)
        x = (last - d) // 2

        def ideal(change: int, x: int = x, last: int = last, rate: arb = nominal) -> Cell:
            return [*zip(ideal_row(rate, x, last), ideal_row(rate, x + change, last), strict=True)]

        exact = ([real(Fraction(m, sampled.total)) for m in sampled.masses[y]] for y in (x, x + d))
        cell, other = [*zip(*exact, strict=True)], response(nominal)
        for share in (Fraction(0), Fraction(2, 5), Fraction(4, 5)):
            epsilon = nominal * (n * d + 1) * real(share)
            spent = least_delta_of([*[cell] * n, other], epsilon)
            # A plan of a budget: each cell is a release of loss rate * d.
            assert spent <= least_delta_of([*[response(nominal * d)] * n, other], epsilon)
            added = real((1 + beta + 2 * g) ** n - (1 + beta) ** n)
            below = least_delta_of([*[ideal(d)] * n, other], epsilon - real(3 * beta * n))
            assert spent <= real((1 + beta) ** n) * below + added
            below = least_delta_of([*[ideal(d - 1)] * n, other], epsilon - real(3 * beta * n))
            seen += spent > real((1 + beta) ** n) * below + added
    assert seen > 60, "a smaller change would do as well"


def test_command_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    cert = small()
    good.write_text(json.dumps(cert))
    bad.write_text(json.dumps(cert | {"words_per_draw": 9}))
    script = str(Path(str(verifier.__file__)))
    run = subprocess.run(
        [sys.executable, script, str(good), str(bad)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr == ""
    first, second = run.stdout.splitlines()
    assert first.startswith(f"ok {good}: rate 3/10, range 30,")
    assert second.startswith(f"FAILED {bad}: words_per_draw")
    assert verifier.main([str(good)]) == 0
    assert verifier.main([str(good), str(tmp_path / "absent.json")]) == 1
    assert verifier.main([]) == 2
