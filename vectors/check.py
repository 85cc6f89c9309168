"""Check the known answers of this folder, by the text of docs/specification.md alone.

It shares no code with the library and needs only Python 3.11 or later:

    python vectors/check.py [FILE...]

prints a line per file, and a line per vector that fails; the exit status is 1 if any did.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

FORMAT = "geomdp-vectors-1"
#: Of a tape's word, the upper bits alone belong to the numbers that meet thresholds.
LIMB_BITS = 63
LANES = 16


# ---------------------------------------------------------------------------- AES-256 and CMAC


def _substitution() -> list[int]:
    box, power, inverse = [0x63] * 256, 1, 1
    for _ in range(255):
        # The powers of 3 in the field of 256 elements, and their inverses.
        power ^= (power << 1) ^ (0x11B if power & 0x80 else 0)
        for shift in (1, 2, 4):
            inverse ^= inverse << shift & 0xFF
        inverse ^= 0x09 if inverse & 0x80 else 0
        turned = inverse * 0x101
        box[power] = 0x63 ^ inverse
        for shift in (1, 2, 3, 4):
            box[power] ^= turned << shift >> 8 & 0xFF
    return box


BOX = _substitution()
DOUBLE = [(x << 1) ^ (0x11B if x & 0x80 else 0) for x in range(256)]
#: What each byte of a column adds to the next state's column (FIPS 197, SubBytes and MixColumns).
MIX = [
    [
        int.from_bytes((column := [DOUBLE[s], s, s, DOUBLE[s] ^ s])[-row:] + column[:-row])
        for s in BOX
    ]
    for row in range(4)
]


class Aes:
    """AES-256 (FIPS 197), encryption."""

    def __init__(self, key: bytes) -> None:
        words, constant = [int.from_bytes(key[at : at + 4]) for at in range(0, 32, 4)], 1
        for i in range(8, 60):
            word = words[-1]
            if i % 8 == 0:
                word = (word << 8 | word >> 24) & 0xFFFFFFFF
            if i % 4 == 0:
                word = int.from_bytes(BOX[byte] for byte in word.to_bytes(4))
            if i % 8 == 0:
                word, constant = word ^ constant << 24, DOUBLE[constant]
            words.append(words[-8] ^ word)
        self.rounds = [words[at : at + 4] for at in range(0, 60, 4)]

    def __call__(self, block: bytes) -> bytes:
        """Encrypt a block."""
        first, *middle, last = self.rounds
        state = [int.from_bytes(block[4 * c : 4 * c + 4]) ^ first[c] for c in range(4)]
        for keys in middle:
            state = [
                MIX[0][state[c] >> 24]
                ^ MIX[1][state[c - 3] >> 16 & 0xFF]
                ^ MIX[2][state[c - 2] >> 8 & 0xFF]
                ^ MIX[3][state[c - 1] & 0xFF]
                ^ keys[c]
                for c in range(4)
            ]
        rows = bytes(
            BOX[state[(c + row) % 4] >> (24 - 8 * row) & 0xFF] for c in range(4) for row in range(4)
        )
        return xor(rows, b"".join(key.to_bytes(4) for key in last))


def xor(one: bytes, other: bytes) -> bytes:
    """Return the exclusive or of two blocks."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def cmac(key: bytes, message: bytes) -> bytes:
    """Return the CMAC of NIST SP 800-38B with AES-256."""
    aes = Aes(key)
    subkey = int.from_bytes(aes(bytes(16)))
    whole = message and len(message) % 16 == 0
    for _ in range(1 if whole else 2):
        subkey = (subkey << 1) % 2**128 ^ (0x87 if subkey >> 127 else 0)
    if not whole:
        message += b"\x80" + bytes(-(len(message) + 1) % 16)
    state = bytes(16)
    for at in range(0, len(message) - 16, 16):
        state = aes(xor(state, message[at : at + 16]))
    return aes(xor(xor(state, message[-16:]), subkey.to_bytes(16)))


def derive(key: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """Return 256 bits by the key derivation in counter mode of NIST SP 800-108, with CMAC."""
    context = b"".join(len(part).to_bytes(8) + part for part in parts)
    rest = purpose + b"\0" + context + (256).to_bytes(4)
    return cmac(key, b"\1" + rest) + cmac(key, b"\2" + rest)


# ---------------------------------------------------------------------------- the draw


@dataclass(frozen=True)
class Digit:
    """A digit of the noise."""

    weight: int
    own: int  # words
    thresholds: list[int]


class Plan:
    """The public parameters of a mechanism for one dtype, and the numbers of its certificate."""

    def __init__(self, given: dict[str, Any]) -> None:
        dtype, certificate = given["dtype"], given["certificate"]
        bits = int(dtype.lstrip("uint"))
        self.signed = dtype[0] == "i"
        self.least = -(2 ** (bits - 1)) if self.signed else 0
        self.greatest = self.least + 2**bits - 1
        bounds = given["bounds"] or [self.least, self.greatest]
        self.lower, self.upper = map(int, bounds)
        require(self.least <= self.lower <= self.upper <= self.greatest, "bounds")
        epsilon, sensitivity = (Fraction(given[name]) for name in ("epsilon", "sensitivity"))
        self.rate = epsilon / sensitivity
        require(Fraction(certificate["rate"]) == self.rate, "rate")
        self.range = int(certificate["range"])
        require(self.range == self.upper - self.lower, "range")
        require(certificate["limb_bits"] == LIMB_BITS, "limb_bits")
        self.digits, self.words = digits_of(certificate)
        self.value_bits = certificate["floor"]["value_bits"] if self.digits else 0
        #: Of a step between tiers: the words of the keep number, and its limits inside and at ends.
        keep = certificate.get("keep") or {"limbs": 0, "inside": "0x0", "end": "0x0"}
        self.keep_words = keep["limbs"]
        self.keep_limits = [int(keep[name], 16) for name in ("inside", "end")]
        self.words += self.keep_words
        require(certificate["words_per_draw"] == self.words, "words_per_draw")

    def offset(self, count: int) -> int:
        """Return how far the clamped count lies above the lower bound."""
        require(self.least <= count <= self.greatest, "count")
        return min(max(count, self.lower), self.upper) - self.lower

    def noisy(self, count: int, words: Sequence[int]) -> int:
        """Return the noisy count: the draw."""
        require(len(words) == self.words, "tape")
        offset = self.offset(count)
        if not self.digits:
            return self.lower + offset
        shared, *own = words
        kept = joined(own[len(own) - self.keep_words :])
        at_end = offset in (0, self.range)
        value = own[self.digits[0].own] % 2**self.value_bits
        reached = outcomes(self.digits, shared, own)
        if kept < self.keep_limits[at_end] and reached[0] > 0:
            return self.lower + offset
        return self.lower + self.moved(offset, reached, shared & 1 == 1, value)

    def moved(self, offset: int, reached: Sequence[int], falls: bool, value: int) -> int:
        """Return the noisy offset, from the number of thresholds that each digit has reached."""
        if reached[0] == 0:
            return min(value, self.range)
        radix, sole = len(self.digits[0].thresholds) - 1, len(self.digits) == 1
        noise = reached[0]
        if noise > radix:
            noise, falls = 0, False
        elif not falls and not sole:
            noise %= radix
        for digit, outcome in zip(self.digits[1:], reached[1:], strict=True):
            noise += digit.weight * outcome
        if not sole and reached[-1] == len(self.digits[-1].thresholds):
            noise = self.range
        return max(offset - noise, 0) if falls else min(offset + noise, self.range)

    def distribution(self, count: int) -> list[Fraction]:
        """Return the exact probabilities of the outputs from the lower bound to the upper one."""
        offset, all_values = self.offset(count), 2**self.value_bits
        if not self.digits:
            return [Fraction(each == offset) for each in range(self.range + 1)]
        cuts = {0, 2**LIMB_BITS}
        cuts |= {t % 2**LIMB_BITS for digit in self.digits for t in digit.thresholds}
        # The number of tapes, but for the sign's bit and the floor's value, for each outcome.
        tapes: Counter[tuple[int, ...]] = Counter()
        for start, end in itertools.pairwise(sorted(cuts)):
            # For shared words in start..end-1: the number of own words that give each outcome.
            outcomes = []
            for digit in self.digits:
                below = [(t >> LIMB_BITS) + (start < t % 2**LIMB_BITS) for t in digit.thresholds]
                every = [0, *below, 2 ** (LIMB_BITS * digit.own)]
                outcomes.append([b - a for a, b in itertools.pairwise(every)])
            for reached in itertools.product(*(range(len(each)) for each in outcomes)):
                masses = (each[k] for each, k in zip(outcomes, reached, strict=True))
                tapes[reached] += (end - start) * math.prod(masses)
        found = [0] * (self.range + 1)
        for reached, mass in tapes.items():
            for falls in (False, True):
                if reached[0] == 0:
                    for value in range(all_values):
                        found[self.moved(offset, reached, falls, value)] += mass
                else:
                    found[self.moved(offset, reached, falls, 0)] += mass * all_values
        return [Fraction(mass, sum(found)) for mass in found]


def digits_of(certificate: dict[str, Any]) -> tuple[list[Digit], int]:
    """Return the digits that a certificate states, and the words of a draw."""
    digits = [
        Digit(int(each["weight"]), each["limbs"], [int(t, 16) for t in each["thresholds"]])
        for each in certificate["digits"]
    ]
    own = [digit.own for digit in digits]
    return digits, 1 + max(sum(own), own[0] + 1) if own else 0


def outcomes(digits: Sequence[Digit], shared: int, own: Sequence[int]) -> list[int]:
    """Return how many thresholds the number of each digit has reached."""
    found = []
    for digit in digits:
        number = joined([*own[: digit.own], shared])
        own = own[digit.own :]
        found.append(sum(threshold <= number for threshold in digit.thresholds))
    return found


def joined(words: Sequence[int]) -> int:
    """Return the number of the upper bits of words."""
    number = 0
    for word in words:
        number = number << LIMB_BITS | word >> (64 - LIMB_BITS)
    return number


def require(holds: bool, name: str) -> None:
    """Raise ValueError unless this holds."""
    if not holds:
        raise ValueError(f"{name} does not fit the rest")


# ---------------------------------------------------------------------------- tapes


def words(block: bytes) -> list[int]:
    """Return the two words of a block."""
    return [int.from_bytes(block[at : at + 8], "little") for at in (0, 8)]


class Stream:
    """The words of a key."""

    def __init__(self, key: bytes) -> None:
        self.aes, self.blocks = Aes(key), dict[int, list[int]]()

    def __getitem__(self, at: int) -> int:
        if at // 2 not in self.blocks:
            self.blocks[at // 2] = words(self.aes((at // 2).to_bytes(16, "little")))
        return self.blocks[at // 2][at % 2]


def array_tape(stream: Stream, size: int, place: int) -> list[int]:
    """Return the words of a draw in an array, where each has so many."""
    block, lane = divmod(place, LANES)
    return [stream[(block * size + j) * LANES + lane] for j in range(size)]


def tapes_of_key(plan: Plan, vector: dict[str, Any]) -> Iterator[list[int]]:
    """Yield the tape of each count in an array, where the array has a key."""
    stream = Stream(bytes.fromhex(vector["key"]))
    for place in range(len(vector["counts"])):
        yield array_tape(stream, plan.words, place)


def id_numbers(key: bytes, column: dict[str, Any], place: int, sole: bool) -> list[bytes]:
    """Return the number of each id in a column, as a block."""

    def derived(kind: bytes) -> bytes:
        return derive(key, b"geomdp ids", kind, place.to_bytes(4))

    kind, values = column["kind"], column["values"]
    if kind == "integers":
        blocks = [
            None if value is None else int(value).to_bytes(16, "little", signed=True)
            for value in values
        ]
        if not sole:
            aes, null = Aes(derived(b"integers")), (2**127 - 1).to_bytes(16, "little")
            return [aes(block or null) for block in blocks]
        alone = derived(b"alone")
        return [
            alone[16:]
            if block is None
            else block
            if block[15] == 0
            else xor(alone[:16], block[:8] + bytes(8))
            for block in blocks
        ]
    texts: list[bytes | None]
    if kind == "bytes":
        texts = [None if value is None else bytes.fromhex(value) for value in values]
    else:
        texts = [
            None
            if value is None
            else kind.encode()
            + b" "
            + b"".join(int(part).to_bytes(8, "little", signed=True) for part in value)
            for value in values
        ]
    mac = derived(b"bytes")
    null = Aes(mac)(derived(b"null")[:16])
    return [null if text is None else cmac(mac, text) for text in texts]


def tape_key(plan: Plan, key: bytes, name: str) -> bytes:
    """Return the key of the tapes of a column of counts with this name."""
    rate = [little(number) for number in plan.rate.as_integer_ratio()]
    limits = [plan.least, plan.greatest, plan.lower, plan.upper]
    packed = b"".join(limit.to_bytes(16, "little", signed=True) for limit in limits)
    return derive(key, b"geomdp tape", *rate, packed, name.encode())


def tapes_of_ids(plan: Plan, vector: dict[str, Any]) -> Iterator[list[int]]:
    """Yield the tape of each count that has ids, where the release has a key."""
    key, columns = bytes.fromhex(vector["key"]), vector["ids"]
    keys = Aes(tape_key(plan, key, vector["name"]))
    ciphers = [
        Aes(b"".join(keys(number.to_bytes(16, "little")) for number in (2 * j, 2 * j + 1)))
        for j in range((plan.words + 1) // 2)
    ]
    numbers = [
        id_numbers(key, column, place, len(columns) == 1) for place, column in enumerate(columns)
    ]
    for count, *ids in zip(map(int, vector["counts"]), *numbers, strict=True):
        address = bytes(16)
        for number in ids:
            address = xor(address, number)
        place = count + 2**63 if plan.signed else count
        block = xor(address, bytes(8) + place.to_bytes(8, "little"))
        tape = [word for cipher in ciphers for word in words(cipher(block))]
        yield tape[: plan.words]


def little(number: int) -> bytes:
    """Return the fewest bytes of a number, the least significant first."""
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


# ---------------------------------------------------------------------------- groups


class Groups:
    """Noise of groups, and points on a domain, by the numbers of their certificate."""

    def __init__(self, given: dict[str, Any]) -> None:
        certificate = given["certificate"]
        require(certificate["limb_bits"] == LIMB_BITS, "limb_bits")
        self.digits, self.words = digits_of(certificate)
        self.block = int(certificate["block"])
        self.fall = Fraction(certificate["fall"])
        self.classes = certificate["classes"]

    def trials(self, tape: Sequence[int]) -> int:
        """Return the trials of a block, at most one more than it has."""
        shared, *own = tape
        reached = outcomes(self.digits, shared, own)
        pairs = zip(self.digits[1:], reached[1:], strict=True)
        trials = reached[0] + sum(digit.weight * outcome for digit, outcome in pairs)
        if len(reached) > 1 and reached[-1] == len(self.digits[-1].thresholds):
            return self.block + 1
        return min(trials, self.block + 1)

    def geometric(self, key: bytes, part: bytes, number: int, index: int = 0) -> list[int]:
        """Return geometric numbers, each the sum of blocks up to the first that is not full."""
        found, going = [0] * number, list(range(number))
        for block in itertools.count():
            if not going:
                break
            stream, rest = Stream(part_key(key, part, index, block)), []
            for place in going:
                added = self.trials(array_tape(stream, self.words, place)) - 1
                found[place] += added
                if added == self.block:
                    rest.append(place)
            going = rest
        return found

    def noisy(self, key: bytes, counts: Sequence[int], thresholds: Sequence[int]) -> list[int]:
        """Return the noisy counts that reach their thresholds, and 0 for all others."""
        size = max(1, -(-(self.fall.denominator.bit_length() - 1) // 64))
        stream, found = Stream(part_key(key, b"falls")), []
        noise = self.geometric(key, b"noise", len(counts))
        cells = zip(counts, thresholds, noise, strict=True)
        for place, (count, threshold, more) in enumerate(cells):
            number = whole([stream[size * place + j] for j in range(size)])
            falls = number < self.fall * 2 ** (64 * size)
            noisy = count - 1 - more if falls else min(count + more, 2**63 - 1)
            found.append(noisy if count > 0 and noisy >= threshold else 0)
        return found

    def points(self, key: bytes, index: int) -> tuple[list[int], list[int]]:
        """Return the values of the points of a class, and their places."""
        given = self.classes[index]
        mean, threshold = Fraction(given["mean"]), int(given["threshold"])
        stream, at, number = Stream(part_key(key, b"number", index)), 0, 0
        for _ in range(int(given["parts"])):
            for k in itertools.count():
                size, limit = hazard(mean, k)
                word = whole([stream[at + j] for j in range(size)])
                at += size
                if word >= limit:
                    break
                number += 1
        values = self.geometric(key, b"values", number, index)
        size, stream = given["words"], Stream(part_key(key, b"places", index))
        places = (
            whole([stream[size * point + j] for j in range(size)]) * int(given["places"])
            >> 64 * size
            for point in range(number)
        )
        return [min(threshold + value, 2**63 - 1) for value in values], list(places)


def part_key(key: bytes, part: bytes, index: int = 0, block: int = 0) -> bytes:
    """Return the key of the tape of a part of a release."""
    return derive(key, b"geomdp groups", part, index.to_bytes(4), block.to_bytes(4))


def hazard(mean: Fraction, k: int) -> tuple[int, int]:
    """Return the words of the number that decides whether there are more than k, and its limit."""
    size = 1
    while mean * 2 ** (64 * size) < (k + 1) * 2**100:
        size += 1
    term, total = 2 ** (64 * size + 128), 0
    for i in itertools.count(1):
        term = term * mean.numerator // ((k + i) * mean.denominator)
        if not term:
            break
        total += term
    return size, (total << 64 * size) // (2 ** (64 * size + 128) + total)


def whole(given: Sequence[int]) -> int:
    """Return the number of all bits of words, the most significant first."""
    number = 0
    for word in given:
        number = number << 64 | word
    return number


# ---------------------------------------------------------------------------- vectors


def plan_of(given: dict[str, Any]) -> Plan | Groups:
    """Return the plan that a file states."""
    return (Plan if "dtype" in given else Groups)(given)


def tapes(plan: Plan, vector: dict[str, Any]) -> Iterator[list[int]]:
    """Return the tape of each count, in full or by the vector's key."""
    if "tapes" in vector:
        return ([int(word, 16) for word in tape] for tape in vector["tapes"])
    if "ids" in vector:
        return tapes_of_ids(plan, vector)
    return tapes_of_key(plan, vector)


def check(plan: Plan | Groups, vector: dict[str, Any]) -> None:
    """Raise ValueError if the vector is not what the specification gives."""
    if isinstance(plan, Groups):
        key = bytes.fromhex(vector["key"])
        if "class" in vector:
            values, places = plan.points(key, vector["class"])
            require([str(each) for each in values] == vector["values"], "values")
            require([str(each) for each in places] == vector["places"], "places")
            return
        given = [[int(each) for each in vector[name]] for name in ("counts", "thresholds")]
        require([str(each) for each in plan.noisy(key, *given)] == vector["noisy"], "noisy")
        return
    if "masses" in vector:
        bits = vector["bits"]
        stated = [Fraction(int(mass, 16), 2**bits) for mass in vector["masses"]]
        require(plan.distribution(int(vector["count"])) == stated, "masses")
        return
    counts = [int(count) for count in vector["counts"]]
    noisy = [
        plan.noisy(count, tape) for count, tape in zip(counts, tapes(plan, vector), strict=True)
    ]
    require([str(each) for each in noisy] == vector["noisy"], "noisy")


def failures(document: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the document of a file."""
    require(document["format"] == FORMAT, "format")
    plans: dict[str, Plan | Groups] = {}
    for index, vector in enumerate(document["vectors"]):
        try:
            name = vector["plan"]
            plans[name] = plans.get(name) or plan_of(document["plans"][name])
            check(plans[name], vector)
        except (ValueError, LookupError, TypeError, OverflowError) as error:
            yield f"vector {index} ({vector.get('about')}): {error!r}"


def main(paths: Sequence[str], say: Callable[[str], None] = print) -> int:
    """Check files, all in this folder unless given; return the exit status."""
    files = [Path(path) for path in paths] or sorted(Path(__file__).parent.glob("*.json"))
    failed = not files
    for path in files:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            found = list(failures(document))
        except (OSError, ValueError, LookupError, TypeError) as error:
            found = [repr(error)]
        if found:
            failed = True
            say("\n".join(f"FAILED {path.name}: {each}" for each in found))
        else:
            say(f"ok {path.name}: {len(document['vectors'])} vectors")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
