"""Draw for a long time through the installed package, and check that nothing leaks.

Each round makes releases of every dtype, of one to two million counts, at seven scales, into new
arrays, given arrays, in place, strided and byte-swapped; single releases; mechanisms; samples; and
refused calls. After each round it records resident memory, open files and threads. The numbers of
files and threads must not change. Memory may grow by 2 MiB from the maximum over the first tenth of
the rounds, which covers every size of array, to the minimum over the last tenth. That is less than
a tenth of the smallest leak, malloc's 32 bytes in each of a million single releases. Short runs
that leak on purpose come first and must be noticed.

    make endurance       10^9 draws
    ... --canary          only the short runs
"""

import argparse
import itertools
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp import GeometricMechanism, sample_bernoulli, sample_geometric
from geomdp._inputs.arrays import DTYPES
from geomdp.compat.diffprivlib import GeometricFolded

SIZES = (1, 100, 2047, 65_537, 300_000, 2**21 + 5)
LAYOUTS = ("new", "out", "in place", "strided", "swapped")
SCALES = (0.1, 1, 10, 1000, 10**6)
MIB = 2**20
GROWTH = 2 * MIB
SINGLE = 10**6
MECHANISMS = 10**4
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Case:
    """A release of the given counts."""

    mechanism: GeometricMechanism
    counts: NDArray[Any]
    out: NDArray[Any] | None


def cases() -> list[Case]:
    mechanisms = [GeometricMechanism.from_scale(scale) for scale in SCALES]
    mechanisms += [GeometricMechanism.from_scale(scale, (0, 100)) for scale in (3, 300)]
    made = []
    for n in range(len(DTYPES) * len(LAYOUTS)):
        dtype, layout, size = [*DTYPES][n // len(LAYOUTS)], LAYOUTS[n % 5], SIZES[n % 6]
        counts: NDArray[Any] = np.full(size, 50, dtype)
        if layout == "strided":
            counts = np.full(2 * size, 50, dtype)[::2]
        elif layout == "swapped":
            counts = counts.astype(counts.dtype.newbyteorder())
        out = {"out": np.empty_like(counts), "in place": counts}.get(layout)
        mechanism = mechanisms[n % 7]
        if mechanism.bounds is None and counts.dtype.kind == "u":
            limits = (0, int(np.iinfo(dtype).max))
            mechanism = GeometricMechanism.from_scale(mechanism.scale, limits)
        made.append(Case(mechanism, counts, out))
    return made


@dataclass(frozen=True)
class Sample:
    """The resources of the process after a round."""

    resident: int
    files: int
    threads: int


def sample() -> Sample:
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    files, threads = (len(os.listdir(f"/proc/self/{name}")) for name in ("fd", "task"))
    return Sample(pages * resource.getpagesize(), files, threads)


def forget(_: Any) -> None:
    """Keep nothing."""


def others(single: int, mechanisms: int, keep: Callable[[Any], None]) -> None:
    """Make single releases, mechanisms, samples and refused calls."""
    mechanism = GeometricMechanism(0.5)
    for n in range(single):
        keep(mechanism.release(n if n % 2 else np.int64(n)))
    for n in itertools.islice(NUMBERS, mechanisms):
        # All different, since equal mechanisms share their plans.
        GeometricMechanism(0.01, n + 1, (-n, 1000 * n) if n % 2 else None).release(n)
    sample_geometric(0.1, 1000)
    sample_bernoulli(0.1, 1000)
    GeometricFolded(epsilon=0.1, lower=0, upper=100).randomise(np.arange(100))
    refusals: tuple[Any, ...] = (np.zeros(3), [1, 2.5], 2**70)
    for refused in refusals:
        try:
            mechanism.release(refused)
        except (TypeError, OverflowError):
            continue
        raise AssertionError(f"{refused} was accepted")


def run(chosen: list[Case], number: int, keep: Callable[[Any], None]) -> list[Sample]:
    """Return the resources of the process after each of `number` rounds."""
    samples = []
    for _ in range(number):
        for case in chosen:
            case.mechanism.release(case.counts, out=case.out)
        others(-(-SINGLE // number), -(-MECHANISMS // number), keep)
        samples.append(sample())
    return samples


def growth(samples: list[Sample]) -> int:
    tenth = len(samples) // 10
    first, last = ([s.resident for s in part] for part in (samples[:tenth], samples[-tenth:]))
    return min(last) - max(first)


def piled_up(samples: list[Sample]) -> set[str]:
    """Return the names of the resources that have grown."""
    names = {"memory"} if growth(samples) > GROWTH else set()
    names |= {"files"} if len({s.files for s in samples}) > 1 else set()
    return names | ({"threads"} if len({s.threads for s in samples}) > 1 else set())


def missed_canaries() -> int:
    """Return how many short runs, each of which leaks one resource, do not report just that one."""
    few = [case for case in cases() if case.counts.size < 10**5]
    kept: list[Any] = []
    files: list[int] = []
    stop = threading.Event()

    def one_file(_: Any) -> None:
        if next(calls) == SINGLE // 2:
            files.append(os.dup(1))

    def one_thread(_: Any) -> None:
        if next(calls) == SINGLE // 2:
            threading.Thread(target=stop.wait).start()

    missed = 0
    keepers = {"memory": kept.append, "files": one_file, "threads": one_thread, "": forget}
    for name, keep in keepers.items():
        calls = itertools.count()
        found = piled_up(run(few, 50, keep))
        missed += found != ({name} - {""})
        kept.clear()
        while files:
            os.close(files.pop())
        print(f"a short run that keeps {name or 'nothing'}: {', '.join(found) or 'nothing'} found")
    stop.set()
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=float, default=1e9)
    parser.add_argument("--canary", action="store_true", help="the short runs alone")
    arguments = parser.parse_args()
    missed = missed_canaries()
    if missed or arguments.canary:
        return 1 if missed else 0
    chosen = cases()
    draws = sum(case.counts.size for case in chosen)
    number = max(50, math.ceil(arguments.draws / draws))
    start = time.monotonic()
    samples = run(chosen, number, forget)
    seconds = time.monotonic() - start
    # The kernel counts the two differently; they may differ by some pages.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = max(peak, *(found.resident for found in samples))
    first, last = samples[0], samples[-1]
    print(
        f"{number * draws:.4g} draws in {number * len(chosen)} releases of arrays, "
        f"{number * -(-SINGLE // number)} single ones, "
        f"{number * -(-MECHANISMS // number)} mechanisms: "
        f"{seconds:.0f} s, {number * draws / seconds:.3g} draws a second"
    )
    print(
        f"resident MiB after the first round {first.resident / MIB:.2f}, after the last one "
        f"{last.resident / MIB:.2f}, at the peak {peak / MIB:.2f}; growth from the first tenth to "
        f"the last {growth(samples) / MIB:.3f}"
    )
    print(f"files {first.files} and {last.files}, threads {first.threads} and {last.threads}")
    found = piled_up(samples)
    print(f"piled up: {', '.join(found) or 'nothing'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
