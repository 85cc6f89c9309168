"""Write the known answers of vectors/, or with --check compare them with what is there.

All noise comes from the library: from known keys by the installed package, and for tapes in full
from the compiled kernel, by rust/core/examples/proof_model.rs. The exact probabilities are those of
verifier. vectors/check.py shares no code with any of these.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import json
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from geomdp import GeometricMechanism, keyed
from geomdp._inputs.arrays import DTYPES
from geomdp._kernel import core
from geomdp._numerics import scatter
from geomdp.testing import release_not_private

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "vectors"
sys.path[:0] = [str(ROOT), str(FOLDER)]

check: Any = importlib.import_module("check")
verifier: Any = importlib.import_module("verifier.verify")

#: Its plan has digits of one, two and three own words, and its noise uses them all.
SMALLEST = 1e-17
_Vector = dict[str, Any]
#: Mistakes of a program, each with a flag for the vectors that refuse it: its name, and the change
#: to check.py that makes it.
MISTAKES = {
    "words reversed": (
        "a program reads the own words of a digit in reverse order",
        "[*own[: digit.own], shared]",
        "[*own[: digit.own][::-1], shared]",
    ),
    "at a threshold": (
        "a program takes a number at a threshold to be below it",
        "sum(threshold <= number for",
        "sum(threshold < number for",
    ),
    "no tie-break": (
        "a program drops the shared word from numbers",
        "joined([*own[: digit.own], shared])",
        "joined([*own[: digit.own], 0])",
    ),
    "no floor": (
        "a program ignores the floor's slot",
        "return min(value, self.range)",
        "return offset",
    ),
    "zero falls": (
        "a program lets noise fall where its number is zero",
        "noise, falls = 0, False",
        "noise = 0",
    ),
    "digit 0 as it falls": (
        "a program takes digit 0 of noise that rises as if it fell",
        "noise %= radix",
        "pass",
    ),
    "no last value": (
        "a program does not censor the top digit",
        "            noise = self.range\n",
        "            pass\n",
    ),
    "never kept": (
        "a program reads no keep number",
        "if kept < ",
        "if 2**252 < ",
    ),
    "kept at an end": (
        "a program keeps values at an end as often as others",
        "self.keep_limits[at_end]",
        "self.keep_limits[0]",
    ),
    "keep number first": (
        "a program reads the keep number before the digits",
        "kept = joined(own[len(own) - self.keep_words :])",
        "kept, own = joined(own[: self.keep_words]), own[self.keep_words :]",
    ),
    "wraps below": (
        "a program lets noise wrap below the lower bound",
        "max(offset - noise, 0)",
        "(offset - noise) % (self.range + 1)",
    ),
    "count beyond": (
        "a program does not clamp counts",
        "min(max(count, self.lower), self.upper) - self.lower",
        "count - self.lower",
    ),
    "words in order": (
        "a program gives each count of an array successive words",
        "(block * size + j) * LANES + lane",
        "(block * LANES + lane) * size + j",
    ),
    "null": (
        "a program takes null for the empty string",
        "null if text is None else cmac(mac, text)",
        'cmac(mac, text or b"")',
    ),
    "columns": (
        "a program forgets the order of the columns of ids",
        "kind, place.to_bytes(4))",
        "kind, bytes(4))",
    ),
    "count": (
        "a program leaves the count out of the address",
        "place = count + 2**63 if plan.signed else count",
        "place = 0",
    ),
    "name": (
        "a program gives all columns of counts one key",
        "packed, name.encode())",
        "packed)",
    ),
    "negative": (
        "a program takes negative ids as they are",
        "else xor(alone[:16], block[:8] + bytes(8))",
        "else block",
    ),
    "one block": (
        "a program ends the noise of a group at its first block",
        "if added == self.block:",
        "if added > self.block:",
    ),
    "blocks of one tape": (
        "a program reads the same words for two blocks",
        "index.to_bytes(4), block.to_bytes(4)",
        "index.to_bytes(4), (block // 2).to_bytes(4)",
    ),
    "classes of one tape": (
        "a program reads the same words for the points of each class",
        "part, index.to_bytes(4)",
        "part, bytes(4)",
    ),
    "falls by none": (
        "a program lets the noise of a group fall by 0",
        "count - 1 - more if falls",
        "count - more if falls",
    ),
    "empty": (
        "a program adds noise to cells without records",
        "count > 0 and noisy >= threshold",
        "noisy >= threshold",
    ),
    "beyond": (
        "a program shows groups above their threshold, and not at it",
        "count > 0 and noisy >= threshold",
        "count > 0 and noisy > threshold",
    ),
    "wraps above": (
        "a program lets noisy counts of groups exceed 64 bits",
        "else min(count + more, 2**63 - 1)",
        "else count + more",
    ),
    "same hazard": (
        "a program decides on each further point as on the first",
        "size, limit = hazard(mean, k)",
        "size, limit = hazard(mean, 0)",
    ),
    "places reversed": (
        "a program reads the words of a place in reverse order",
        "size * point + j] for j in range(size)]",
        "size * point + j] for j in reversed(range(size))]",
    ),
}


class Setting:
    """A mechanism for counts of a dtype, and its entry in a file."""

    def __init__(
        self,
        epsilon: float | Fraction,
        bounds: tuple[int, int] | None = None,
        dtype: str = "int64",
        sensitivity: int = 1,
    ) -> None:
        # A Fraction, so that the noise is for exactly this number.
        self.mechanism = GeometricMechanism(Fraction(epsilon), sensitivity, bounds)
        self.dtype = np.dtype(dtype)
        self.certificate = self.mechanism.certificate(dtype)
        limits = np.iinfo(dtype)
        self.bounds = bounds or (int(limits.min), int(limits.max))
        near = [edge + step for edge in self.bounds for step in (-1, 0, 1)]
        inside = [sum(self.bounds) // 2, *self.bounds, *near, limits.min, limits.max]
        #: The edges of the bounds and of the dtype, and one off them.
        self.counts = sorted({int(n) for n in inside if limits.min <= n <= limits.max})
        self.name = f"{dtype} {bounds} epsilon {float(epsilon):g} sensitivity {sensitivity}"
        self.entry = {
            "epsilon": str(Fraction(epsilon)),
            "sensitivity": str(sensitivity),
            "bounds": bounds and [str(bound) for bound in bounds],
            "dtype": dtype,
            "certificate": json.loads(self.certificate.to_json()),
        }

    def array(self, counts: list[int]) -> np.ndarray[Any, np.dtype[Any]]:
        """Return counts in the dtype of the setting."""
        return np.array(counts, self.dtype)


def settings() -> list[Setting]:
    """Return mechanisms of every dtype, and plans with few digits and with many."""
    every = [
        Setting(epsilon, bounds, dtype)
        for dtype in DTYPES
        for limits in [np.iinfo(dtype)]
        for bounds in [None if dtype[0] == "i" else (0, int(limits.max))]
        for epsilon in (1.0, 0.001)
    ]
    wide = [Setting(epsilon) for epsilon in (40.0, 10.0, 0.1, 1e-6, 1e-9, SMALLEST)]
    return [*every, *wide, *small(), Setting(0.5, (-100, 100), "int8")]


def small() -> list[Setting]:
    """Return mechanisms with few outputs, whose probabilities can be listed."""
    third = Fraction(1, 3)
    return [
        Setting(1.0, (7, 7), "uint8"),
        Setting(1.0, (0, 1), "uint8"),
        Setting(1e-9, (0, 1), "int8"),
        Setting(40.0, (0, 3), "int64"),
        Setting(third, (-3, 3), "int16", sensitivity=2),
        Setting(0.1, (-128, -120), "int8"),
        Setting(1.0, (2**64 - 6, 2**64 - 1), "uint64"),
        Setting(2.0, (0, 20), "int32"),
    ]


def key(*label: object) -> bytes:
    return hashlib.sha256(repr(("geomdp vectors", *label)).encode()).digest()


def texts(numbers: Any) -> list[str]:
    return [str(int(number)) for number in numbers]


# ---------------------------------------------------------------------------- noise from a key


def keys() -> Iterator[tuple[Setting, _Vector]]:
    for setting in settings():
        # The last array has counts in several blocks of the kernel.
        arrays = [setting.counts, setting.counts[::-1], setting.counts[:1] * 35]
        for index, counts in enumerate(arrays):
            secret = key("key", setting.name, index) if index else bytes(32)
            noisy = release_not_private(setting.mechanism, setting.array(counts), secret)
            yield (
                setting,
                {
                    "about": "an array whose key is known",
                    "key": secret.hex(),
                    "counts": texts(counts),
                    "noisy": texts(noisy),
                },
            )


class Tier(Setting):
    """One of several tiers: its draw or step, whose counts are the values of the next finer one."""

    def __init__(self, of: Setting, epsilons: list[float], certificate: dict[str, Any]) -> None:
        rate = Fraction(certificate["rate"])
        self.name = f"{of.name}, tier of rate {float(rate):g} among {epsilons}"
        numbers = {"epsilon": str(rate), "sensitivity": "1"}
        whole = {"format": "geomdp-certificate-2", **certificate}
        self.entry = of.entry | numbers | {"certificate": whole}


def tiers() -> Iterator[tuple[Setting, _Vector]]:
    chains: list[tuple[Setting, list[float]]] = [
        (Setting(1.0, (0, 1000)), [0.1]),
        (Setting(2.0), [0.1, 0.5]),
        (Setting(8.0, (0, 3), "uint8"), [0.01, 0.5]),
        (Setting(0.5, (-100, 100), "int8"), [0.25]),
        (Setting(1e-6, (0, 2**64 - 1), "uint64"), [1e-8]),
        (Setting(1e-13), [1e-14]),
    ]
    for setting, coarser in chains:
        rates = [Fraction(epsilon).as_integer_ratio() for epsilon in coarser[::-1]]
        finest = setting.mechanism.rate.as_integer_ratio()
        own = core.Tiers([finest, *rates], setting.bounds)
        coarsest, *_ = setting.mechanism.tier_plans([*map(Fraction, coarser)])
        stated = json.loads(coarsest.certificate(setting.dtype).to_json())["tiers"]
        for index in range(4):
            counts = setting.array((setting.counts + [*setting.bounds] * 8)[:: 1 - index % 2 * 2])
            secrets = [key("tiers", setting.name, index, j) for j in range(len(stated))]
            noisy = [np.empty_like(counts) for _ in stated]
            core.tiers_not_private(own, secrets, counts, noisy, 1)
            finer = [counts, *noisy]
            for j, certificate in enumerate(reversed(stated)):
                yield (
                    Tier(setting, coarser, certificate),
                    {
                        "about": "a step from the next finer tier" if j else "the finest tier",
                        "key": secrets[j].hex(),
                        "counts": texts(finer[j]),
                        "noisy": texts(noisy[j]),
                    },
                )


# ---------------------------------------------------------------------------- noise by key and ids

#: Kinds of ids: the column as the package takes it, and as check.py does.
INTEGERS = [0, 1, -1, 2**63 - 1, -(2**63), None, 12]
STRINGS = ["", "a", "Zürich", "x" * 16, "y" * 17, None, "z" * 40]
TIMES = [0, 1, -1, 1_600_000_000_123, -86_400_001, None, 7]


def columns() -> list[tuple[str, list[tuple[Any, _Vector]]]]:
    integers = (
        pa.array(INTEGERS, pa.int64()),
        {
            "kind": "integers",
            "values": [None if each is None else str(each) for each in INTEGERS],
        },
    )
    great = [2**64 - 1, 2**63, *range(5)]
    unsigned = np.array(great, np.uint64), {"kind": "integers", "values": texts(great)}
    strings = (
        pa.array(STRINGS),
        {
            "kind": "bytes",
            "values": [None if each is None else each.encode().hex() for each in STRINGS],
        },
    )

    def times(kind: str, unit: int, arrow: pa.DataType) -> tuple[Any, _Vector]:
        stored = [None if each is None else each % unit_limit(arrow) for each in TIMES]
        parts = [None if each is None else divmod(each, unit) for each in stored]
        scale = 10**9 // unit
        values = [each and [str(each[0]), str(each[1] * scale)] for each in parts]
        array = pa.array(stored, pa.int32() if arrow == pa.time32("ms") else pa.int64())
        return array.cast(arrow), {"kind": kind, "values": values}

    return [
        ("a sole column of integers", [integers]),
        ("a sole column of great integers", [unsigned]),
        ("a sole column of strings", [strings]),
        ("two columns of integers", [integers, unsigned]),
        ("integers and strings", [integers, strings]),
        ("strings and integers", [strings, integers]),
        ("three columns", [strings, unsigned, strings]),
        ("timestamps", [times("timestamp", 1000, pa.timestamp("ms"))]),
        ("timestamps with a zone", [times("instant", 1000, pa.timestamp("ms", "UTC"))]),
        ("durations", [times("duration", 10**9, pa.duration("ns"))]),
        ("times of the day", [times("time", 1000, pa.time32("ms"))]),
    ]


def unit_limit(arrow: pa.DataType) -> int:
    return 86_400_000 if arrow == pa.time32("ms") else 2**63


def release(setting: Setting, secret: bytes, name: str, counts: list[int], ids: Any) -> list[str]:
    known = keyed._from_pickle(keyed._VERSION, secret)
    noisy = known.release(setting.mechanism, setting.array(counts), ids, name=name, part=True)
    assert noisy.dtype == setting.dtype
    return texts(noisy)


def ids() -> Iterator[tuple[Setting, _Vector]]:
    shown = [s for s in settings() if s.mechanism.epsilon == 1 or s.mechanism.bounds is None]
    for setting, (about, given) in itertools.product(shown, columns()):
        secret, name = key("ids", setting.name, about), "n" if given[1:] else "visits, é"
        counts = list(itertools.islice(itertools.cycle(setting.counts), len(INTEGERS)))
        yield (
            setting,
            {
                "about": about,
                "key": secret.hex(),
                "name": name,
                "ids": [column for _, column in given],
                "counts": texts(counts),
                "noisy": release(setting, secret, name, counts, [array for array, _ in given]),
            },
        )


# ------------------------------------------------------------- chosen words, through the package


def chosen() -> Iterator[tuple[Setting, _Vector]]:
    """Yield ties and the floor's slot by ids: for such an id and count, AES gives these words.

    The first block of a count's tape is AES of its id and its count. So for any shared word and
    first own word there are an id and a count that have them, and they are these.
    """
    for setting in settings():
        plan = check.Plan(setting.entry)
        # A count of 64 bits can be any half of a block; the other half is the id.
        if setting.dtype.itemsize < 8 or not plan.digits or plan.digits[0].own > 1:
            continue
        secret, name = key("chosen", setting.name), "n"
        tape_key = check.Aes(check.tape_key(plan, secret, name))
        halves = b"".join(tape_key(n.to_bytes(16, "little")) for n in (0, 1))
        cipher = Cipher(algorithms.AES(halves), modes.ECB())
        for number, threshold in enumerate(plan.digits[0].thresholds, 1):
            rows, counts = [], []
            for near, sign in itertools.product((-1, 0, 1), (0, 1)):
                own, shared = divmod(threshold + near, 2**check.LIMB_BITS)
                words = (2 * shared + sign, 2 * own + sign)
                tape = b"".join(word.to_bytes(8, "little") for word in words)
                block = cipher.decryptor().update(tape)
                row, place = check.words(block)
                rows.append(row)
                counts.append(place - 2**63 if plan.signed else place)
            yield (
                setting,
                {
                    "about": f"digit 0 below, at and above its threshold {number}",
                    "key": secret.hex(),
                    "name": name,
                    "ids": [{"kind": "integers", "values": texts(rows)}],
                    "counts": texts(counts),
                    "noisy": release(setting, secret, name, counts, np.array(rows, np.uint64)),
                },
            )


# ---------------------------------------------------------------------------- groups


class Grouped:
    """The plan of groups, or one with shorter blocks, and its entry in a file."""

    def __init__(self, rate: str, classes: list[tuple[int, int]], block: int | None = None) -> None:
        self.plan = scatter.plan_of(Fraction(rate), tuple(classes))
        sizes = ", ".join(f"{places.bit_length()} bits" for places, _ in classes)
        self.name = f"groups, rate {rate}, {sizes}"
        if block is not None:
            self.plan = self.plan._replace(block=block)
            self.name += f", blocks of {block}, which no plan has"
        self.entry = {"certificate": self.plan.certificate()}


def groups() -> Iterator[tuple[Grouped, _Vector]]:
    known = [
        Grouped("1", [(100, 3)]),
        Grouped("1/10", [(50, 20), (2**40, 260)], block=3),
        Grouped("3", [(26**32, 45), (3, 1), (2**1024, 236)], block=1),
        Grouped("1/1000000", [(2**64, 43_000_000)]),
        Grouped("1/2", [(40, 4), (60, 6), (2**70, 94)], block=4),
        Grouped("1/3", [(40, 1), (7, 2**63 - 2)], block=2),
    ]
    counts = [0, 1, 2, 3, 5, 8, 40, 10**6, 2**62, 2**63 - 2, 2**63 - 1, -1, -(2**63)]
    for setting in known:
        for about, size in [("noise of fewer counts than a block", 7), ("of more", 39)]:
            given = (counts * 3)[:size]
            least = [
                max(1, count + shift) for count, shift in zip(given, itertools.cycle([-2, 0, 1]))
            ]
            least = [min(each, 2**63 - 1) for each in least]
            secret = key("groups", setting.name, size)
            noisy = setting.plan.reach(
                np.array(given, np.int64),
                np.array(least, np.int64),
                size,
                key=core.ReleaseKey(secret),
            )
            yield (
                setting,
                {
                    "about": about,
                    "key": secret.hex(),
                    "counts": texts(given),
                    "thresholds": texts(least),
                    "noisy": texts(noisy),
                },
            )
        secret = key("points", setting.name)
        drawn = setting.plan.points(key=core.ReleaseKey(secret))
        for index, (each, (values, random)) in enumerate(
            zip(setting.plan.classes, drawn, strict=True)
        ):
            if not values.size:
                continue
            yield (
                setting,
                {
                    "about": f"points of class {index}",
                    "key": secret.hex(),
                    "class": index,
                    "values": texts(values),
                    "places": texts(each.place(words) for words in random.tolist()),
                },
            )


# ---------------------------------------------------------------------------- tapes in full


def tapes() -> Iterator[tuple[Setting, _Vector]]:
    command = ["cargo", "run", "--locked", "--quiet", "--release", "-p", "geomdp-core"]
    run = subprocess.run(
        [*command, "--example", "proof_model"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    # The example prints a goal for each of these noise scales: its plan, then tape, count and
    # output of six draws for each threshold of each digit, then arbitrary ones.
    scales = (0.1, 0.3, 1.0, 7.0, 1e3, 1e9, 1e20, 1e38)
    goals = run.stdout.split("Goal ")[1:]
    for scale, goal in zip(scales, goals, strict=True):
        span = int(re.findall(r"Plan 64 63 (\d+)", goal)[0])
        setting = Setting(1 / Fraction(scale), (0, span), "uint64")
        digits = setting.certificate.digits
        numbers, listed = goal.split(" = true.")[0].split("\n  [")
        printed = [
            sum(int(limb) << 63 * at for at, limb in enumerate(reversed(limbs.split("; "))))
            for limbs in re.findall(r"\[(\d[\d; ]*)\]", numbers)
        ]
        assert printed == [t for digit in digits for t in digit.thresholds], "another plan"
        cases = re.findall(r"C (.+?E\)+) (\d+) (\d+)", listed)
        found = [(_words(tape), count, noisy) for tape, count, noisy in cases]
        near = (found[at : at + 6] for at in range(0, len(found), 6))
        for j, digit in enumerate(digits):
            last = len(digit.thresholds)
            for number in range(1, last + 1):
                group = next(near)
                if number in (1, 2, last - 1, last):
                    about = f"digit {j} below, at and above its threshold {number}"
                    yield setting, _tapes(about, group)
        yield setting, _tapes("arbitrary words", next(near))


def _words(tape: str) -> list[str]:
    halves = re.findall(r"W (\d+) (\d+)", tape)
    return [hex(int(high) << 32 | int(low)) for high, low in halves]


def _tapes(about: str, cases: list[tuple[list[str], str, str]]) -> _Vector:
    tape, counts, noisy = zip(*cases, strict=True)
    return {"about": about, "tapes": tape, "counts": counts, "noisy": noisy}


# ---------------------------------------------------------------------------- exact probabilities


def distributions() -> Iterator[tuple[Setting, _Vector]]:
    for setting in small():
        lower, upper = setting.bounds
        for count in range(lower, upper + 1) if upper - lower < 10 else (lower, lower + 7, upper):
            masses = probabilities(setting, count - lower)
            bits = max(mass.denominator for mass in masses).bit_length() - 1
            yield (
                setting,
                {
                    "about": "the probabilities of the outputs from the lower bound up",
                    "count": str(count),
                    "bits": bits,
                    "masses": [hex(int(mass * 2**bits)) for mass in masses],
                },
            )


def probabilities(setting: Setting, offset: int) -> list[Fraction]:
    proof = setting.certificate
    if not proof.digits:
        return [Fraction(1)]
    rises, falls, floor, total = verifier.exact_distribution(
        proof.digits, proof.limb_bits, proof.range
    )
    slots = 2**proof.floor_value_bits
    row = [2 * floor] * proof.range + [2 * floor * (slots - proof.range)]
    for size, (rise, fall) in enumerate(zip(rises, falls, strict=True)):
        row[min(offset + size, proof.range)] += rise * slots
        row[max(offset - size, 0)] += fall * slots
    return [Fraction(mass, 2 * slots * total) for mass in row]


#: What makes each file.
FILES: dict[str, Callable[[], Iterator[tuple[Setting | Grouped, _Vector]]]] = {
    "keys.json": keys,
    "ids.json": ids,
    "chosen.json": chosen,
    "tapes.json": tapes,
    "distributions.json": distributions,
    "tiers.json": tiers,
    "groups.json": groups,
}


class Remembered(check.Aes):  # type: ignore[misc]
    """The slow part, which most mistakes share."""

    __call__ = functools.cache(check.Aes.__call__)


@functools.cache
def mistaken() -> dict[str, tuple[Any, bool]]:
    """Return for each flag the program with the mistake, and whether it makes other tapes."""
    source = (FOLDER / "check.py").read_text(encoding="utf-8")
    found: dict[str, tuple[Any, bool]] = {}
    aes = functools.cache(Remembered)
    for flag, (_, old, new) in MISTAKES.items():
        assert source.count(old) == 1, f"{old} is not in check.py once"
        program = types.ModuleType(f"check, {flag}")
        sys.modules[program.__name__] = program
        exec(compile(source.replace(old, new), program.__name__, "exec"), vars(program))
        program.Aes = aes  # type: ignore[attr-defined]
        found[flag] = program, source.index(old) > source.index("--- tapes")
    return found


def refusing(document: dict[str, Any]) -> list[list[str]]:
    """Return for each vector the flags of the mistakes that it refuses."""
    plans = {name: check.plan_of(plan) for name, plan in document["plans"].items()}
    vectors = []
    for vector in document["vectors"]:
        full = {}
        own = plans[vector["plan"]]
        if isinstance(own, check.Plan) and "counts" in vector:  # AES is slow.
            tapes = check.tapes(own, vector)
            full = {"tapes": [[hex(word) for word in tape] for tape in tapes]}
        vectors.append(vector | full)
    found: list[list[str]] = [[] for _ in vectors]
    for flag, (program, other_tapes) in mistaken().items():
        given = document["vectors"] if other_tapes else vectors
        if other_tapes and not any("key" in vector for vector in given):
            continue
        for failure in program.failures({**document, "vectors": given}):
            found[int(failure.split()[1])].append(flag)
    return found


def text(name: str) -> str:
    """Return a file: a plan or a vector on each line."""
    plans, vectors = {}, []
    for setting, vector in FILES[name]():
        plans[setting.name] = setting.entry
        vectors.append({"plan": setting.name, **vector})

    document = {"format": check.FORMAT, "plans": plans, "vectors": vectors}
    flags = refusing(json.loads(json.dumps(document)))
    vectors = [vector | {"flags": each} for vector, each in zip(vectors, flags, strict=True)]
    notes = {flag: name for flag, (name, *_) in MISTAKES.items() if any(flag in of for of in flags)}

    def line(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    head = f'"format":"{check.FORMAT}","construction":{keyed._VERSION},"notes":{line(notes)}'
    named = ",\n".join(f"{line(name)}:{line(entry)}" for name, entry in plans.items())
    listed = ",\n".join(map(line, vectors))
    return f'{{{head},"plans":{{\n{named}\n}},"vectors":[\n{listed}\n]}}\n'


def main() -> int:
    changed = []
    for name in FILES:
        path, new = FOLDER / name, text(name)
        if "--check" not in sys.argv[1:]:
            path.write_text(new, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != new:
            changed.append(name)
    if changed:
        print(f"changed: {', '.join(changed)}. Without --check, this writes them.")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
