"""Run the proved checker on certificates of the installed package: part of `make proof`.

It must accept the certificates of the sweep's settings and of the mechanisms in the README and on
the pages of the documentation. It must refuse each with one threshold moved by two units, and
others that are damaged in one place. The checker knows no setting, so this script compares rate and
range with those requested.
"""

import ast
import copy
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from geomdp import GeometricMechanism
from sweep_certificates import SEED, Setting, at_random, grid, move, widen_slack

ROOT = Path(__file__).resolve().parents[2]
CHECKER = ROOT / "target" / "checker"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CALL = re.compile(r"GeometricMechanism(?:\.from_scale)?\([^()]*(?:\([^()]*\))?[^()]*\)")
#: Bits of a word of the tape.
WORD = 64
SMALL, WIDE = Setting(0.5, 1, "int16", (0, 4526)), Setting(1.0, 1, "int64", None)


def compile_checker() -> Path:
    """Compile the extracted checker with the program that reads certificates; return its path."""
    program = CHECKER / "check_certificates"
    source = program.with_suffix(".ml")
    source.write_text((ROOT / "proofs" / source.name).read_text())
    units = ["checker.mli", "checker.ml", source.name]
    run = ["ocamlopt", "-I", "+zarith", "zarith.cmxa", *units, "-o", program.name]
    subprocess.run(run, cwd=CHECKER, check=True)
    return program


def digit(table: Any, limb: int) -> tuple[int, int, list[list[int]]]:
    """Return the bits of a digit's weight, its own words, and the limbs of its thresholds."""
    weight, own = int(table["weight"], 0), table["limbs"]
    if weight.bit_count() != 1:
        raise ValueError(f"the weight {weight} is not a power of two")

    def limbs(value: int) -> list[int]:
        # A number that is too large leaves a limb that is too large.
        lower = (value >> limb * i & (1 << limb) - 1 for i in reversed(range(own)))
        return [value >> limb * own, *lower]

    return weight.bit_length() - 1, own, [limbs(int(value, 0)) for value in table["thresholds"]]


def fields(certificate: Any) -> tuple[list[int], list[Any], list[int]]:
    """Return what the proof calls a certificate: numbers of its plan, the digits, other numbers."""
    limb, floor, delta = certificate["limb_bits"], certificate["floor"], certificate["delta"]
    digits = [digit(table, limb) for table in certificate["digits"]]
    if delta["bits"] != 2 * limb or floor["bits"] != limb * (digits[0][1] + 1):
        raise ValueError("the floor or delta has another unit")
    rates = (Fraction(certificate[name]) for name in ("rate", "sampled_rate"))
    others = [number for rate in rates for number in rate.as_integer_ratio()]
    others += [int(floor["num"], 0), int(delta["num"], 0)]
    return [WORD, limb, int(certificate["range"], 0), floor["value_bits"]], digits, others


def line(certificate: Any) -> str:
    """Return a certificate as the program reads it."""
    plan, digits, others = fields(certificate)
    first, *rest = (
        [weight, own, len(thresholds), *(limb for limbs in thresholds for limb in limbs)]
        for weight, own, thresholds in digits
    )
    numbers = [*plan, *first, len(rest), *(number for table in rest for number in table), *others]
    return " ".join(map(str, numbers))


def documented() -> Iterator[Setting]:
    """Yield the mechanisms of README and documentation whose arguments are literals."""
    for document in DOCUMENTS:
        for call in CALL.findall(document.read_text()):
            try:
                tree = ast.parse(call, mode="eval").body
                assert isinstance(tree, ast.Call)
                by_scale = isinstance(tree.func, ast.Attribute)
                names = ("scale", "bounds") if by_scale else ("epsilon", "sensitivity", "bounds")
                values = dict(zip(names, tree.args, strict=False))
                values |= {word.arg: word.value for word in tree.keywords if word.arg}
                given = {name: ast.literal_eval(value) for name, value in values.items()}
            except (SyntaxError, ValueError):
                continue
            if "scale" in given:
                given["epsilon"] = 1 / Fraction(given["scale"])
            if "epsilon" in given:
                yield Setting(
                    given["epsilon"], given.get("sensitivity", 1), "int64", given.get("bounds")
                )


def made(setting: Setting) -> Any:
    """Return the certificate of a setting, or None if the library refuses it."""
    try:
        mechanism = GeometricMechanism(setting.epsilon, setting.sensitivity, setting.bounds)
        return json.loads(mechanism.certificate(setting.dtype, tight=False).to_json())
    except ValueError:
        return None


def is_of(setting: Setting, certificate: Any) -> bool:
    """Return whether the certificate has the setting's rate and range."""
    found = Fraction(certificate["rate"]), int(certificate["range"])
    return found == (setting.rate(), setting.range())


def with_moved_threshold(certificate: Any, rng: random.Random) -> Any:
    damaged = copy.deepcopy(certificate)
    digit = rng.choice(damaged["digits"])
    place = rng.randrange(len(digit["thresholds"]))
    value = int(digit["thresholds"][place], 0)
    digit["thresholds"][place] = hex(value + 2 if value < 2 else value + rng.choice([-2, 2]))
    return damaged


def damaged() -> Iterator[tuple[str, Any]]:
    slot, floor = ("digits", 0, "thresholds", 0), ("floor", "num")
    half = hex(int(made(WIDE)["floor"]["num"], 0) // 2)

    def halve(d: Any) -> None:
        d["floor"]["num"] = d["digits"][0]["thresholds"][0] = half

    for name, setting, damage in (
        ("a threshold is two units too high", SMALL, move(2, ("digits", 1, "thresholds", 0))),
        ("a threshold is two units too low", WIDE, move(-2, ("digits", 1, "thresholds", 0))),
        ("the floor has one unit less", SMALL, move(-1, floor, slot)),
        ("the floor has half the mass", WIDE, halve),
        ("the floor is not digit 0's first threshold", WIDE, move(1, floor)),
        ("delta is too small", WIDE, lambda d: d["delta"].update(num="0x1")),
        ("delta is too large", WIDE, lambda d: d["delta"].update(num=hex(2**80))),
        ("delta is too large for lemma 14", WIDE, widen_slack),
        ("the sampled rate is above the nominal one", SMALL, lambda d: d.update(rate="499/1000")),
        ("the sampled rate has no slack", WIDE, lambda d: d.update(rate=d["sampled_rate"])),
        ("the range exceeds the floor's values", SMALL, lambda d: d.update(range="8192")),
        ("a weight is doubled", SMALL, lambda d: d["digits"][1].update(weight="64")),
        ("the top digit is missing", WIDE, lambda d: d["digits"].pop()),
        ("thresholds do not ascend", SMALL, lambda d: d["digits"][1]["thresholds"].reverse()),
    ):
        certificate = made(setting)
        damage(certificate)
        yield name, certificate


def main() -> int:
    start, rng, program = time.monotonic(), random.Random(SEED), compile_checker()

    def count(accepted: bool, certificates: Sequence[tuple[object, Any]]) -> int:
        """Check certificates, print those with another answer, and return their number."""
        text = "".join(f"{line(certificate)}\n" for _, certificate in certificates)
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
        others = 0
        for (name, _), answer in zip(certificates, done.stdout.split(), strict=True):
            if answer != str(accepted).lower():
                others += 1
                print(f"FAULT {name}: {'refused' if accepted else 'accepted'}")
        return others

    named = set(documented())
    settings = list(dict.fromkeys([*named, *grid(), *at_random(1000)]))
    good = [(setting, found) for setting in settings if (found := made(setting))]
    moved = [(setting, with_moved_threshold(found, rng)) for setting, found in good]
    bad = list(damaged())
    faults = count(True, good) + count(False, moved) + count(False, bad)
    for setting, found in good:
        if not is_of(setting, found):
            faults += 1
            print(f"FAULT {setting}: its certificate is of another rate or range")
    for other in (
        replace(SMALL, epsilon=0.75),
        replace(SMALL, sensitivity=2),
        replace(SMALL, bounds=(0, 4527)),
    ):
        if is_of(SMALL, made(other)):
            faults += 1
            print(f"FAULT: the certificate of {other} passes for that of {SMALL}")
    print(
        f"the proved checker: {len(good)} certificates, {len(named)} of them of mechanisms in the "
        f"documentation; {len(moved)} with a moved threshold; {len(bad)} damaged otherwise; "
        f"{faults} faults; {time.monotonic() - start:.0f} s"
    )
    if not named:
        print("FAULT: no mechanism found in the documentation")
    return 1 if faults or not named else 0


if __name__ == "__main__":
    sys.exit(main())
