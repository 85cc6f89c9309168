"""Print and draw the cost of a release by size, scale, bounds and threads: `make scaling`.

Counts are int64 and released in place, on one thread unless stated otherwise. Figures are medians
of interleaved repetitions. Hours are processor hours for 10^12 such counts.
"""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from chart import OURS, log_axes, picture, power
from compare import Array, heading, medians

from geomdp import GeometricMechanism

SIZES = tuple(10**k for k in range(1, 9))
SCALES = tuple(10.0**k for k in range(-1, 10))
WIDTHS = tuple(2**k for k in (0, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 63))
SCALE = 10.0
WIDE_SCALE = 1e9

Bounds = tuple[int, int] | None


def affordable(sizes: Sequence[int]) -> list[int]:
    """Return the sizes that fit in memory twice; up to 10^7 if the system does not report it."""
    try:
        told = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        told = None
    room = int(told[1]) * 1024 // 16 if told else 10**7
    return [size for size in sizes if size <= room]


def release(
    scale: float, counts: Array, bounds: Bounds = None, threads: int = 1
) -> Callable[[], object]:
    mechanism = GeometricMechanism.from_scale(scale, bounds)
    return partial(mechanism.release, counts, out=counts, threads=threads)


def hours(nanoseconds: float) -> str:
    return f"{nanoseconds * 1e12 / 3.6e12:.2f}"


def by_size(repetitions: int) -> dict[float, float]:
    sizes = affordable(SIZES)
    memory = np.zeros(sizes[-1], np.int64)

    def often(call: Callable[[], object], times: int) -> None:
        for _ in range(times):
            call()

    loops = [max(10**5 // size, 1) for size in sizes]
    calls = [
        partial(often, release(SCALE, memory[:size]), times)
        for size, times in zip(sizes, loops, strict=True)
    ]
    print(f"| counts, scale {SCALE:g} | a release | ns per count | hours |")
    print("|---|---|---|---|")
    figures = {}
    for size, times, seconds in zip(sizes, loops, medians(calls, repetitions), strict=True):
        total = seconds / times
        figures[float(size)] = total / size * 1e9
        cell = f"{total * 1e6:.2f} us" if total < 1e-3 else f"{total * 1e3:.2f} ms"
        print(f"| {size} | {cell} | {figures[size]:.1f} | {hours(figures[size])} |")
    print()
    return figures


def by_plan(
    title: str, plans: Sequence[tuple[float, float, Bounds]], n: int, repetitions: int
) -> dict[float, float]:
    """Print a table of plans, each given by its label, scale and bounds."""
    counts = np.zeros(n, np.int64)
    calls = [release(scale, counts, bounds) for _, scale, bounds in plans]
    print(f"| {title} | digits | words of tape | ns per count | hours |")
    print("|---|---|---|---|---|")
    figures = {}
    for (key, scale, bounds), seconds in zip(plans, medians(calls, repetitions), strict=True):
        found = GeometricMechanism.from_scale(scale, bounds).certificate("int64")
        figures[key] = seconds / n * 1e9
        name = f"2^{int(key).bit_length() - 1}" if bounds else f"{key:g}"
        print(
            f"| {name} | {len(found.digits)} | {found.words_per_draw} "
            f"| {figures[key]:.1f} | {hours(figures[key])} |"
        )
    print()
    return figures


def by_threads(n: int, repetitions: int) -> None:
    counts = np.zeros(n, np.int64)
    numbers = range(1, (os.cpu_count() or 1) + 1)
    times = medians([release(SCALE, counts, threads=k) for k in numbers], repetitions)
    print(f"| threads, {n} counts | ns per count | times as fast |")
    print("|---|---|---|")
    for k, seconds in zip(numbers, times, strict=True):
        print(f"| {k} | {seconds / n * 1e9:.1f} | {times[0] / seconds:.2f} |")
    print()


def of_largest(n: int, repetitions: int) -> None:
    """Print the time of a search for the largest counts against that of a release."""
    mechanism, counts = GeometricMechanism.from_scale(SCALE), np.zeros(n, np.int64)
    calls = [release(SCALE, counts)]
    calls += [partial(mechanism.top, counts, k, threads=1) for k in (1, 10)]
    whole, *times = medians(calls, repetitions)
    print(f"| the largest of {n} counts | ns per count | times a release |")
    print("|---|---|---|")
    for k, seconds in zip((1, 10), times, strict=True):
        print(f"| {k} | {seconds / n * 1e9:.1f} | {seconds / whole:.2f} |")
    print()


def draw(panels: dict[str, dict[float, float]]) -> None:
    with picture("scaling", 9, 2.8) as figure:
        axes = figure.subplots(1, len(panels), sharey=True)
        for ax, (label, figures) in zip(axes, panels.items(), strict=True):
            log_axes(ax)
            ax.plot(*zip(*figures.items(), strict=True), color=OURS, marker="o")
            ax.set_xlabel(label)
            ax.set_ylim(bottom=1)
        axes[0].set_ylabel("nanoseconds per count")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", type=int, default=10**5, help="for scales and bounds")
    parser.add_argument("--repetitions", type=int, default=7)
    arguments = parser.parse_args()
    n, repetitions = arguments.counts, arguments.repetitions
    heading()
    sizes = by_size(repetitions)
    scales = by_plan(f"scale, {n} counts", [(s, s, None) for s in SCALES], n, repetitions)
    title = f"width of the bounds, at scale {power(WIDE_SCALE)}"
    # Centred on zero, so that the widest fits int64.
    bounded = [(float(w), WIDE_SCALE, (-(w // 2), w - w // 2)) for w in WIDTHS]
    widths = by_plan(title, bounded, n, repetitions)
    by_threads(10**7, repetitions)
    of_largest(10**6, repetitions)
    draw({f"counts, at scale {SCALE:g}": sizes, "scale": scales, title: widths})


if __name__ == "__main__":
    main()
