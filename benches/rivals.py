"""Print and draw the time that libraries take for geometric noise on int64 counts: `make rivals`.

Each library runs in its own process. The processes take turns, so other load slows all alike; a
figure is the median over the turns. All are called on one thread, in their fastest way: with an
array if they take one. Libraries that are not installed are skipped, with one line each.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
from chart import COLOURS, GREY, OURS, log_axes, name_lines, picture
from compare import SCALES, Array, difference, heading, one_uniform

from geomdp import GeometricMechanism

BOUNDS = (0, 1000)
Noise = Callable[[Array], object]


def of_geomdp(bounds: tuple[int, int] | None) -> Callable[[float], Noise]:
    def noise(scale: float) -> Noise:
        return partial(GeometricMechanism.from_scale(scale, bounds).release, threads=1)

    return noise


def of_numpy(
    formula: Callable[[np.random.Generator, Array, float], Array],
) -> Callable[[float], Noise]:
    rng = np.random.default_rng()
    return lambda scale: lambda counts: formula(rng, counts, scale)


def whole(rng: np.random.Generator, counts: Array, scale: float) -> Array:
    return one_uniform(rng, counts, scale, counts.size)


def of_scipy() -> Callable[[float], Noise]:
    dlaplace, rng = importlib.import_module("scipy.stats").dlaplace, np.random.default_rng()
    return lambda scale: (
        lambda counts: counts + dlaplace.rvs(1 / scale, size=counts.size, random_state=rng)
    )


def of_randomgen() -> Callable[[float], Noise]:
    # numpy's sampler on random bits from AES.
    rng = np.random.Generator(importlib.import_module("randomgen").AESCounter())
    return lambda scale: lambda counts: difference(rng, counts, scale)


def of_opendp(bounds: tuple[int, int] | None) -> Callable[[float], Noise]:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return lambda scale: dp.m.make_geometric(*space, scale, bounds=bounds)


def one_by_one(noise: Callable[[int], object]) -> Noise:
    """Return a call on arrays for a library that takes single counts."""
    return lambda counts: [noise(count) for count in counts.tolist()]


def of_diffprivlib() -> Callable[[float], Noise]:
    mechanisms = importlib.import_module("diffprivlib.mechanisms")
    return lambda scale: one_by_one(mechanisms.Geometric(epsilon=1 / scale).randomise)


def of_pydp() -> Callable[[float], Noise]:
    mechanisms = importlib.import_module("pydp.algorithms.numerical_mechanisms")
    return lambda scale: one_by_one(mechanisms.LaplaceMechanism(1 / scale, 1.0).add_noise)


@dataclass(frozen=True)
class Library:
    """A call, the package that provides it, and for slow calls the divisor of the counts."""

    distribution: str
    noise: Callable[[], Callable[[float], Noise]]
    part: int = 1
    against: str = "geomdp"


BOUNDED = f"geomdp, bounds {BOUNDS}"
LIBRARIES = {
    "geomdp": Library("geomdp", lambda: of_geomdp(None)),
    "numpy, one uniform, in pieces": Library("numpy", lambda: of_numpy(one_uniform)),
    "the same, whole": Library("numpy", lambda: of_numpy(whole)),
    "numpy, geometric - geometric": Library("numpy", lambda: of_numpy(difference)),
    "scipy.stats.dlaplace": Library("scipy", of_scipy),
    "randomgen AESCounter": Library("randomgen", of_randomgen),
    "PyDP, Laplace, rounded": Library("python-dp", of_pydp, part=50),
    "diffprivlib Geometric": Library("diffprivlib", of_diffprivlib, part=50),
    "opendp make_geometric": Library("opendp", lambda: of_opendp(None), part=50),
    BOUNDED: Library("geomdp", lambda: of_geomdp(BOUNDS)),
    f"opendp make_geometric, bounds {BOUNDS}": Library(
        "opendp", lambda: of_opendp(BOUNDS), part=5000, against=BOUNDED
    ),
}

#: The lines of the picture: labels and colours, grey for noise that is not private.
DRAWN = {
    "geomdp": ("geomdp", OURS),
    "numpy, one uniform, in pieces": ("numpy, fastest, not private", GREY),
    "numpy, geometric - geometric": ("numpy geometric, not private", GREY),
    "PyDP, Laplace, rounded": ("PyDP, rounded Laplace", COLOURS[0]),
    "diffprivlib Geometric": ("diffprivlib", COLOURS[1]),
    "opendp make_geometric": ("OpenDP", COLOURS[2]),
}


def serve(library: Library, counts: int) -> None:
    """Print the version; then, for each scale read, the time of a call in ns per count."""
    try:
        with warnings.catch_warnings():
            # Some imports warn about versions of other libraries.
            warnings.simplefilter("ignore")
            noise = cache(library.noise())
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({"version": version(library.distribution)}), flush=True)
    part = np.full(max(counts // library.part, 1), 500)
    for line in sys.stdin:
        call = noise(float(line))
        # Warm up: other processes used the processor and its caches in between.
        call(part)
        start = time.perf_counter()
        call(part)
        print((time.perf_counter() - start) / part.size * 1e9, flush=True)


class Process:
    """The process of a library."""

    def __init__(self, name: str, counts: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--library", name, "--counts", str(counts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.about: dict[str, str] = self._answer()

    def time(self, scale: float) -> float:
        """Return the time of a call in ns per count."""
        assert self._process.stdin
        print(scale, file=self._process.stdin, flush=True)
        return float(self._answer())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())


def measured(processes: dict[str, Process], rounds: int) -> dict[str, list[float]]:
    """Return the median times by scale."""
    figures: dict[str, list[float]] = {name: [] for name in processes}
    for scale in SCALES:
        turns = [
            {name: process.time(scale) for name, process in processes.items()}
            for _ in range(rounds)
        ]
        for name, medians in figures.items():
            medians.append(statistics.median(turn[name] for turn in turns))
    return figures


def table(figures: dict[str, list[float]]) -> None:
    def digits(x: float) -> str:
        return f"{x:.{1 if x < 99.95 else 0}f}"

    print("| |", *(f"scale {scale:g} |" for scale in SCALES))
    print("|---" * (len(SCALES) + 1) + "|")
    for name, times in figures.items():
        ours = figures[LIBRARIES[name].against]
        pairs = zip(times, ours, strict=True)
        print(f"| {name} |", *(f"{digits(t)} ({digits(t / our)}) |" for t, our in pairs))
    print()


def draw(figures: dict[str, list[float]]) -> None:
    """Draw one line for each kind of noise; the printed table has all."""
    least, most = min(figures["geomdp"]), max(figures["geomdp"])
    with picture("speed", 6.6, 3.6) as figure:
        ax = figure.add_subplot(
            xlabel="noise scale",
            ylabel="nanoseconds per count",
            title=f"geomdp: private noise in {least:.0f} to {most:.0f} nanoseconds per count",
        )
        log_axes(ax)
        ends = []
        for name, (label, colour) in DRAWN.items():
            times = figures[name]
            width, dashes = (2.5 if colour == OURS else 1.2), ("--" if colour == GREY else "-")
            ax.plot(SCALES, times, dashes, color=colour, marker="o", linewidth=width)
            ends.append((label, times[-1], colour))
        ax.set_ylim(bottom=1)
        name_lines(ax, ends, 1.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", type=int, default=10**5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.library:
        serve(LIBRARIES[arguments.library], arguments.counts)
        return

    heading()
    processes = {name: Process(name, arguments.counts) for name in LIBRARIES}
    present = {name: p for name, p in processes.items() if "version" in p.about}
    versions = {LIBRARIES[name].distribution: p.about["version"] for name, p in present.items()}
    print("versions:", ", ".join(f"{name} {number}" for name, number in versions.items()))
    for name, process in processes.items():
        if name not in present:
            print(f"not measured: {name} ({process.about['missing']})")
    print(
        f"{arguments.counts} int64 counts, fewer for the slow; nanoseconds per count and the ratio "
        f"to geomdp with the same bounds (median of {arguments.rounds} turns)\n"
    )
    figures = measured(present, arguments.rounds)
    for process in processes.values():
        process.end()
    table(figures)
    if len(present) == len(LIBRARIES):
        draw(figures)
    else:
        print("not drawn, since the picture shows all libraries")


if __name__ == "__main__":
    main()
