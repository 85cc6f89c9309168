"""Print the speed of geomdp as ratios to numpy in the same run: `make bench`.

Every figure is a median of interleaved repetitions, so that a busy machine slows all alike.
"""

import argparse
import math
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

import geomdp
from geomdp import GeometricMechanism

SCALES = (0.1, 1.0, 10.0, 1000.0, 1e6)
BOUNDS = (None, (0, 10**6))


def medians(calls: list[Callable[[], object]], repetitions: int) -> list[float]:
    """Return the median time of each call in seconds, the calls taking turns."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(repetitions):
        for call, seconds in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]


def vectors(n: int, repetitions: int) -> None:
    rng = np.random.default_rng()
    counts = rng.integers(0, 10**6, n)

    def difference(p: float) -> np.ndarray:
        return counts + rng.geometric(p, n) - rng.geometric(p, n)

    def formula(log_a: float) -> np.ndarray:
        # One uniform for sign and magnitude: |Z| >= k with probability 2 a**k / (1 + a).
        u = rng.random(n)
        u *= 2
        u -= 1
        zero = math.tanh(-log_a / 2)
        magnitude = np.abs(u)
        magnitude -= 1
        magnitude /= zero - 1
        np.maximum(magnitude, 1e-300, out=magnitude)
        np.log(magnitude, out=magnitude)
        magnitude /= log_a
        magnitude += 1
        np.maximum(magnitude, 0, out=magnitude)
        np.floor(magnitude, out=magnitude)
        np.copysign(magnitude, u, out=magnitude)
        return counts + magnitude.astype(np.int64)

    print(f"{n} int64 counts, one thread, nanoseconds per count (median of {repetitions})\n")
    print("| scale | bounds | geomdp | geometric - geometric | log of a uniform | ratio |")
    print("|---|---|---|---|---|---|")
    for bounds in BOUNDS:
        for scale in SCALES:
            mechanism = GeometricMechanism.from_scale(scale, bounds)
            p = -math.expm1(-1 / scale)
            calls = [
                lambda m=mechanism: m.release(counts, threads=1),
                lambda p=p: difference(p),
                lambda s=scale: formula(-1 / s),
            ]
            ours, numpys, best = (t / n * 1e9 for t in medians(calls, repetitions))
            name = "dtype" if bounds is None else f"(0, 10^{len(str(bounds[1])) - 1})"
            print(
                f"| {scale:g} | {name} | {ours:.1f} | {numpys:.1f} | {best:.1f} "
                f"| **{ours / numpys:.2f}** |"
            )
    print()


def dtypes(n: int, repetitions: int) -> None:
    mechanism = GeometricMechanism.from_scale(10.0, (0, 100))
    names = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    arrays = [np.full(n, 50, name) for name in names]
    times = medians([partial(mechanism.release, x, threads=1) for x in arrays], repetitions)
    cells = ", ".join(
        f"{name} {seconds / n * 1e9:.1f}" for name, seconds in zip(names, times, strict=True)
    )
    print(f"scale 10, bounds (0, 100), ns per count: {cells}\n")

    plain, out = np.full(n, 50), np.empty(2 * n, np.int64)
    layouts: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "plain": (plain, None),
        "in place": (plain, plain),
        "every second": (np.full(2 * n, 50)[::2], None),
        "backwards": (plain[::-1], None),
        "in the order of Fortran": (plain.reshape(10, -1, order="F"), None),
        "transposed, of some columns": (np.full((n // 10, 20), 50)[:, :10].T, None),
        "in the other byte order": (plain.astype(plain.dtype.newbyteorder()), None),
        "to every second": (plain, out[::2]),
    }
    times = medians(
        [partial(mechanism.release, x, out=y, threads=1) for x, y in layouts.values()],
        repetitions,
    )
    cells = ", ".join(
        f"{name} {seconds / times[0]:.2f}" for name, seconds in zip(layouts, times, strict=True)
    )
    print(f"int64, as ratios to a plain array: {cells}\n")


def threads(repetitions: int) -> None:
    """Print what threads gain, and from which size on."""
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

    small = np.full(10, 5)

    def first_use() -> None:
        GeometricMechanism(Fraction(next(fresh), 10**6)).release(5)

    timed = {
        "release of an int": thousand(lambda: mechanism.release(5)),
        "release of ten counts": thousand(lambda: mechanism.release(small)),
        "a new mechanism and its first release, no bounds": thousand(first_use),
        "a mechanism equal to one before": thousand(lambda: GeometricMechanism(0.5, bounds=(0, 9))),
    }
    for name, seconds in zip(timed, medians(list(timed.values()), repetitions), strict=True):
        print(f"{name}: {seconds * 1e3:.2f} us")


def subprocesses(repetitions: int) -> None:
    def run(code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout

    timed = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    after_numpy = "import numpy; " + timed.format("geomdp")
    seconds = statistics.median(float(run(after_numpy)) for _ in range(repetitions))
    print(f"import, beyond numpy's: {seconds * 1e3:.1f} ms")

    memory = """
import resource, numpy as np
from geomdp import GeometricMechanism
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
m = GeometricMechanism(1.0); m.release(np.zeros(10, np.int64))
x = np.zeros(10**7, np.int64); x += 1
before = peak(); m.release(x, out=x); middle = peak(); y = m.release(x)
beyond = peak() - middle - y.nbytes / 2**20
print(f"{middle - before:.1f} MiB in place, {beyond:.1f} MiB beyond the output")
"""
    print(f"peak memory for ten million counts: {run(memory).strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, default=10**6)
    parser.add_argument("--repetitions", type=int, default=15)
    arguments = parser.parse_args()
    print(
        f"geomdp {geomdp.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    )
    print(f"kernel: {geomdp._core.backend()}\n")
    vectors(arguments.counts, arguments.repetitions)
    dtypes(arguments.counts, arguments.repetitions)
    threads(arguments.repetitions)
    calls(arguments.repetitions)
    subprocesses(arguments.repetitions)


if __name__ == "__main__":
    main()
