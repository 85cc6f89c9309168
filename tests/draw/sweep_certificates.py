"""Sweep the parameters: check certificates of the installed package with the verifier.

The sweep takes a grid of epsilons, sensitivities, dtypes and bounds, and random settings from a
fixed seed. For each, `verifier`, which shares no code with the package, must accept the
certificate for exactly the requested rate and range; up to a range of 2000, with the tight epsilon.
Each refusal must be as documented and name a scale that the library accepts, which is verified
instead. For some rates the tight epsilon of every range up to 2000 must not exceed the map's loss;
one in seven of these certificates goes through the verifier. First the verifier must refuse damaged
certificates, each by its name. The library checks the kernel's tables before it gives a
certificate (docs/proofs.md, section 1).

    make sweep            some minutes
"""

import argparse
import importlib
import itertools
import json
import math
import multiprocessing
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
verifier: Any = importlib.import_module("verifier.verify")

SEED = 20251121
EPSILONS = (2.0**-64, 2.0**-50, 1e-9, 1e-6, 0.001, 0.1, 1 / 3, math.log(2), 1, 3, 10, 50, 300, 700)
SENSITIVITIES = (1, 3, 1000, 2**32)
#: For every range up to 2000.
RATES = (1e-6, 0.01, 0.1, 0.5, 2.0, 20.0)
#: Powers of ten at which the rows of the table begin.
ROWS = (-30, -18, -15, -12, -9, -6, -3, -2, -1, 0, 1, 2, 3)
TITLE = """| rate | settings | refused | thresholds off by | eta / its limit | \
total variation | tight epsilon / loss | words |
|---|---|---|---|---|---|---|---|"""
REFUSAL = re.compile(r"certified for outputs in a range of (\d+): .* at most 2\*\*(\d+), or narrow")


@dataclass(frozen=True)
class Setting:
    """The parameters of a certificate, and whether it goes to the verifier."""

    epsilon: float | Fraction
    sensitivity: int
    dtype: str
    bounds: tuple[int, int] | None
    verified: bool = True

    def range(self) -> int:
        """Return the largest output minus the smallest."""
        limits = np.iinfo(self.dtype)
        lower, upper = self.bounds or (int(limits.min), int(limits.max))
        return upper - lower

    def rate(self) -> Fraction:
        """Return the loss per unit of a count: by the lesser reading of an epsilon (lemma 2a)."""
        stated, binary = Fraction(str(self.epsilon)), Fraction(self.epsilon)
        return min(stated, binary) / self.sensitivity


@dataclass(frozen=True)
class Result:
    """The figures of a certificate, and its fault, if any."""

    setting: Setting
    rate: Fraction
    refused: bool = False
    fault: str = ""
    words: int = 0
    thresholds: int = 0
    loss: float | None = None  # the tight epsilon divided by the map's loss
    report: Any = None


def grid() -> Iterator[Setting]:
    for dtype, epsilon, sensitivity in itertools.product(DTYPES, EPSILONS, SENSITIVITIES):
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        # Two outputs, an edge, off-centre, the largest range with a tight epsilon, and the dtype.
        uneven = (low // 3 if low else 5, high // 5 * 4)
        tight = (high - min(high - low, verifier.TIGHT_RANGE), high)
        for bounds in ((low, low + 1), (high - 10, high), uneven, tight, (low, high)):
            yield Setting(epsilon, sensitivity, dtype, bounds)
        if low:
            yield Setting(epsilon, sensitivity, dtype, None)


def at_random(number: int) -> Iterator[Setting]:
    rng = random.Random(SEED)
    for _ in range(number):
        dtype = rng.choice([*DTYPES])
        limits = np.iinfo(dtype)
        span = rng.randrange(1, 2 ** rng.randint(1, limits.bits))
        lower = rng.randint(int(limits.min), int(limits.max) - span)
        whole = None if limits.min else (0, int(limits.max))
        bounds = rng.choice([(lower, lower + span)] * 3 + [whole])
        epsilon = math.exp(rng.uniform(math.log(2**-64), math.log(700)))
        yield Setting(epsilon, rng.randint(1, 2 ** rng.randint(0, 32)), dtype, bounds)


def every_range() -> Iterator[Setting]:
    for rate, span in itertools.product(RATES, range(1, verifier.TIGHT_RANGE + 1)):
        yield Setting(rate, 1, "int16", (-(span // 3), span - span // 3), span % 7 == 0)


def examine(setting: Setting, damage: Callable[[Any], Any] = lambda _: None) -> Result:
    """Return the figures of a certificate, and the fault that the verifier or this sweep finds."""
    span, rate = setting.range(), setting.rate()
    tight, refused = span <= verifier.TIGHT_RANGE, False
    try:
        mechanism = GeometricMechanism(setting.epsilon, setting.sensitivity, setting.bounds)
        made = mechanism.certificate(setting.dtype, tight=tight)
    except ValueError as error:
        named = REFUSAL.search(str(error))
        if not named or int(named[1]) != span or rate * 2 ** int(named[2]) >= 1:
            return Result(setting, rate, fault=f"refused: {error}")
        rate, refused = Fraction(1, 2 ** int(named[2])), True
        mechanism = GeometricMechanism.from_scale(1 / rate, setting.bounds)
        made = mechanism.certificate(setting.dtype, tight=tight)
    document, report, fault = json.loads(made.to_json()), None, ""
    damage(document)
    loss = document["tight_epsilon"] / mechanism.privacy_loss(1) if tight else None
    if setting.verified:
        try:
            report = verifier.verify(document)
        except verifier.VerificationError as error:
            fault = str(error)
    if loss is not None and not 0 < loss <= 1:
        fault = "the tight epsilon exceeds the map's loss"
    elif report and (report.rate, report.range) != (rate, span):
        fault = "the certificate is of another rate or range"
    elif report and ((report.tight_epsilon is not None) != tight or not made.holds):
        fault = "its tight epsilon was not checked, or it does not hold by itself"
    count = sum(len(digit.thresholds) for digit in made.digits) if report else 0
    return Result(setting, rate, refused, fault, made.words_per_draw, count, loss, report)


def move(units: int, *paths: tuple[str | int, ...]) -> Callable[[Any], None]:
    def damage(document: Any) -> None:
        for *way, last in paths:
            place = document
            for key in way:
                place = place[key]
            place[last] = hex(int(place[last], 16) + units)

    return damage


def tighten(towards: float) -> Callable[[Any], None]:
    def damage(document: Any) -> None:
        document["tight_epsilon"] = math.nextafter(document["tight_epsilon"], towards)

    return damage


def widen_slack(document: Any) -> None:
    """Take four times the slack of lemma 14, and use it up: which is private, but not accounted."""
    document.update(rate=str(1 + Fraction(1, 2**52)))
    document["delta"]["num"] = hex(2**72)


def missed_canaries() -> int:
    """Damage certificates, and return how many damages the verifier does not find by name."""
    small, wide = Setting(0.1, 1, "int16", (0, 1000)), Setting(1.0, 1, "int64", None)
    steep = Setting(300.0, 1, "int16", (0, 1000))
    other = GeometricMechanism(300.0, bounds=(0, 100)).certificate(tight=True)
    slot, first = ("digits", 0, "thresholds", 0), ("digits", 1, "thresholds", 0)
    canaries: tuple[tuple[Setting, Callable[[Any], Any], str], ...] = (
        (small, move(2, first), "digit 1: threshold 1 is more"),
        (wide, move(-2, first), "digit 1: threshold 1 is more"),
        (wide, move(-1, ("floor", "num"), slot), "floor: eta exceeds"),
        (steep, move(-1, ("floor", "num"), slot), "floor: eta exceeds"),
        (wide, move(-1, ("eta", "num")), "eta: not"),
        (wide, lambda d: d["delta"].update(num="0x1"), "delta: less"),
        (wide, lambda d: d.update(rate=d["sampled_rate"]), "delta: 3 delta exceeds"),
        (wide, widen_slack, "delta: 3 delta exceeds 2^-54"),
        (steep, tighten(0.0), "tight_epsilon: stated is less"),
        (steep, tighten(math.inf), "tight_epsilon: stated is not the least"),
        (steep, lambda d: d.update(tight_epsilon=other.tight_epsilon), "tight_epsilon: stated"),
        (small, tighten(math.inf), "the tight epsilon exceeds"),
        (steep, lambda d: d.update(json.loads(other.to_json())), "the certificate is of another"),
    )
    missed = 0
    for setting, damage, name in canaries:
        fault = examine(setting, damage).fault
        if not fault.startswith(name):
            missed += 1
            print(f"MISSED {name}: {fault or 'accepted'}")
    print(f"{len(canaries) - missed} of {len(canaries)} damaged certificates are refused, by name")
    return missed


def row(name: str, results: list[Result]) -> str:
    reports = [result.report for result in results]
    losses = [result.loss for result in results if result.loss is not None]
    spare = -math.expm1(-math.log(2) * min(report.floor_slack_log2 for report in reports))
    cells = (
        name,
        str(len(results)),
        str(sum(result.refused for result in results)),
        f"{max(report.worst_threshold_error for report in reports):.4f}",
        f"1 - {spare:.1e}",
        f"2^{math.log2(max(report.total_variation for report in reports)):.2f}",
        f"{max(losses):.12g}" if losses else "",
        str(max(result.words for result in results)),
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=1000, help="settings at random")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    start = time.monotonic()
    missed = missed_canaries()
    settings = list(dict.fromkeys([*grid(), *at_random(arguments.random)]))
    with multiprocessing.Pool(arguments.processes) as pool:
        results = pool.map(examine, settings, chunksize=16)
        ranges = pool.map(examine, every_range(), chunksize=16)
    faults = [result for result in results + ranges if result.fault]
    for result in faults[:20]:
        print(f"FAULT {result.setting}: {result.fault}")
    print(f"{len(settings)} settings, seed {SEED}; {sum(r.thresholds for r in results)} thresholds")
    if not faults:
        print(TITLE)
        for low, high in itertools.pairwise(ROWS):
            part = [result for result in results if 10.0**low <= result.rate < 10.0**high]
            print(row(f"10^{low} to 10^{high}", part))
        print(row("all", results))
        print(
            f"every range up to {verifier.TIGHT_RANGE} at the rates {', '.join(map(str, RATES))}: "
            f"the tight epsilon is {max(result.loss or 0 for result in ranges):.12g} of the loss "
            f"at most; {sum(result.report is not None for result in ranges)} of these "
            f"{len(ranges)} certificates are verified"
        )
    print(
        f"{len(faults)} faults; {time.monotonic() - start:.0f} s in {arguments.processes} processes"
    )
    return 1 if faults or missed else 0


if __name__ == "__main__":
    sys.exit(main())
