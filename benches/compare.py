"""Print the speed of geomdp as ratios to numpy in the same run: `make bench`.

The calls take turns, so other load slows all alike. Times on one thread are CPU time and the least
of the turns, which other load changes least; the others are medians of elapsed time.
"""

import argparse
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import geomdp
from geomdp import GeometricMechanism

SCALES = (0.1, 1.0, 10.0, 1000.0, 1e6, 1e9)
BOUNDS = (None, (0, 10**6))
PIECE = 2**13

Array = NDArray[np.int64]


def machine() -> str:
    """Return the processor's name, if the system reports it, and the number of processors."""
    info = Path("/proc/cpuinfo")
    told = re.search(r"^model name\s*: (.*)$", info.read_text() if info.exists() else "", re.M)
    return f"{told[1] if told else platform.machine()}, {os.cpu_count()} processors"


def difference(rng: np.random.Generator, counts: Array, scale: float) -> Array:
    """Return the counts plus numpy's noise: the difference of two geometric numbers."""
    p = -math.expm1(-1 / scale)
    return counts + rng.geometric(p, counts.size) - rng.geometric(p, counts.size)


def one_uniform(rng: np.random.Generator, counts: Array, scale: float, piece: int = PIECE) -> Array:
    """Return the counts plus noise by the fastest formula; like all float formulas it is inexact.

    One uniform number gives the sign and the magnitude: |Z| >= k has probability 2 a**k / (1 + a).
    Its arrays stay in the cache in pieces. Goals are ratios to this; a piece of all counts is what
    a call without a loop costs.
    """
    noisy = np.empty_like(counts)
    shift = -scale * math.log1p(math.exp(-1 / scale))
    for start in range(0, counts.size, piece):
        part = slice(start, start + piece)
        u = rng.random(counts[part].size)
        # Avoid +-0.5, which would give the logarithm of 0 below.
        u -= 0.5 - 2.0**-54
        magnitude = np.abs(u)
        np.subtract(0.5, magnitude, out=magnitude)
        np.log(magnitude, out=magnitude)
        magnitude *= -scale
        magnitude += shift
        np.copysign(magnitude, u, out=magnitude)
        np.add(counts[part], magnitude.astype(np.int64), out=noisy[part])
    return noisy


def turns(
    calls: Sequence[Callable[[], object]], repetitions: int, clock: Callable[[], float]
) -> list[list[float]]:
    """Return the times of each call in seconds, interleaving the calls."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(repetitions):
        for call, seconds in zip(calls, times, strict=True):
            start = clock()
            call()
            seconds.append(clock() - start)
    return times


def medians(calls: Sequence[Callable[[], object]], repetitions: int) -> list[float]:
    """Return the median elapsed time of each call in seconds."""
    return [statistics.median(each) for each in turns(calls, repetitions, time.perf_counter)]


def least(calls: Sequence[Callable[[], object]], repetitions: int) -> list[float]:
    """Return the least CPU time of each call in seconds, for calls on one thread."""
    return [min(each) for each in turns(calls, repetitions, time.process_time)]


def vectors(n: int, repetitions: int) -> None:
    rng = np.random.default_rng()
    counts = rng.integers(0, 10**6, n)
    print(f"{n} int64 counts, one thread, CPU nanoseconds per count (least of {repetitions})\n")
    others = "geometric - geometric", f"one uniform, in pieces of {PIECE}", "the same, whole"
    print("| scale | bounds | geomdp |", *(f"{name} | ratio |" for name in others))
    print("|---" * (3 + 2 * len(others)) + "|")
    for bounds in BOUNDS:
        for scale in SCALES:
            calls: list[Callable[[], object]] = [
                partial(GeometricMechanism.from_scale(scale, bounds).release, counts, threads=1),
                partial(difference, rng, counts, scale),
                partial(one_uniform, rng, counts, scale),
                partial(one_uniform, rng, counts, scale, counts.size),
            ]
            ours, *times = (t / n * 1e9 for t in least(calls, repetitions))
            name = "dtype" if bounds is None else f"(0, 10^{len(str(bounds[1])) - 1})"
            cells = (f"{other:.1f} | **{ours / other:.2f}** |" for other in times)
            print(f"| {scale:g} | {name} | {ours:.1f} |", *cells)
    print()


def dtypes(n: int, repetitions: int) -> None:
    mechanism = GeometricMechanism.from_scale(10.0, (0, 100))
    names = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    arrays = [np.full(n, 50, name) for name in names]
    wide = names.index("int64")
    times = least([partial(mechanism.release, x, threads=1) for x in arrays], repetitions)
    cells = ", ".join(
        f"{name} {seconds / n * 1e9:.1f} ({seconds / times[wide]:.2f})"
        for name, seconds in zip(names, times, strict=True)
    )
    print(f"scale 10, bounds (0, 100), ns per count (ratio to int64): {cells}\n")

    plain, out = np.full(n, 50), np.empty(2 * n, np.int64)
    layouts: dict[str, tuple[NDArray[Any], NDArray[Any] | None]] = {
        "plain": (plain, None),
        "in place": (plain, plain),
        "every second": (np.full(2 * n, 50)[::2], None),
        "backwards": (plain[::-1], None),
        "in the order of Fortran": (plain.reshape(10, -1, order="F"), None),
        "transposed, of some columns": (np.full((n // 10, 20), 50)[:, :10].T, None),
        "in the other byte order": (plain.astype(plain.dtype.newbyteorder()), None),
        "to every second": (plain, out[::2]),
    }
    times = least(
        [partial(mechanism.release, x, out=y, threads=1) for x, y in layouts.values()],
        repetitions,
    )
    cells = ", ".join(
        f"{name} {seconds / times[0]:.2f}" for name, seconds in zip(layouts, times, strict=True)
    )
    print(f"int64, as ratios to a plain array: {cells}\n")


def threads(repetitions: int) -> None:
    """Print the gain from threads by the number of counts."""
    print("| counts | one thread, us | two | as many as pay | one / two |")
    print("|---|---|---|---|---|")
    mechanism = GeometricMechanism.from_scale(10.0)
    for size in (10**4, 3 * 10**4, 10**5, 2**17, 3 * 10**5, 10**6, 10**7):
        counts, out = np.zeros(size, np.int64), np.empty(size, np.int64)
        releases = [
            partial(mechanism.release, counts, out=out, threads=threads) for threads in (1, 2, None)
        ]
        one, two, pay = (t * 1e6 for t in medians(releases, repetitions))
        print(f"| {size} | {one:.0f} | {two:.0f} | {pay:.0f} | {one / two:.2f} |")
    print()


def calls(repetitions: int) -> None:
    mechanism = GeometricMechanism(epsilon=1.0, bounds=(0, 1000))
    fresh = iter(range(1, 10**9))

    def thousand(f: Callable[[], object]) -> Callable[[], None]:
        def loop() -> None:
            for _ in range(1000):
                f()

        return loop

    def first_use() -> None:
        GeometricMechanism(Fraction(next(fresh), 10**6)).release(5)

    timed = {
        "32 bytes of the operating system": thousand(lambda: os.urandom(32)),
        "release of an int": thousand(lambda: mechanism.release(5)),
        **{
            f"release of {n} counts": thousand(partial(mechanism.release, np.full(n, 5)))
            for n in (10, 100, 1000)
        },
        "a new mechanism and its first release, no bounds": thousand(first_use),
        "a mechanism equal to one before": thousand(lambda: GeometricMechanism(0.5, bounds=(0, 9))),
    }
    for name, seconds in zip(timed, medians(list(timed.values()), repetitions), strict=True):
        print(f"{name}: {seconds * 1e3:.2f} us")


#: Peak memory of a separate process beyond the memory held before, when all counts are in memory.
MEMORY = """
import re, numpy as np
from geomdp import GeometricMechanism
def held(what):
    return int(re.search(rf"{{what}}:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
mechanism = GeometricMechanism(1.0)
mechanism.release(np.zeros(10, np.int64), threads=1)
counts = np.ones(10**7, np.int64)
before = held("VmRSS")
noisy = mechanism.release(counts, out={output}, threads={threads})
new = 0 if noisy is counts else noisy.nbytes / 2**20
print(f"{{held('VmHWM') - before - new:.2f}}")
"""


def subprocesses(repetitions: int) -> None:
    def run(code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout

    timed = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    after_numpy = "import numpy; " + timed.format("geomdp")
    seconds = statistics.median(float(run(after_numpy)) for _ in range(repetitions))
    print(f"import, beyond numpy's: {seconds * 1e3:.1f} ms")

    if not Path("/proc/self/status").exists():
        return
    print("peak memory for ten million counts, beyond input and output:")
    for threads in (1, 2):
        for where, output in (("in place", "counts"), ("into a new array", "None")):
            extra = run(MEMORY.format(output=output, threads=threads)).strip()
            print(f"  {where}, {threads} thread{'s' * (threads > 1)}: {extra} MiB")


def heading() -> None:
    """Print the versions and the machine."""
    print(
        f"geomdp {geomdp.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    )
    print(f"{machine()}; kernel {geomdp.kernel()}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[10**5, 10**6])
    parser.add_argument("--repetitions", type=int, default=15)
    arguments = parser.parse_args()
    heading()
    for counts in arguments.counts:
        vectors(counts, arguments.repetitions)
    dtypes(arguments.counts[-1], arguments.repetitions)
    threads(arguments.repetitions)
    calls(arguments.repetitions)
    subprocesses(arguments.repetitions)


if __name__ == "__main__":
    main()
