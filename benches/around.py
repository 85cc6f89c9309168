"""Print the cost of the work around the draw, as ratios to the usual way without noise.

Part of `make bench`. A row is a function that makes its data and returns its name and two calls:
ours, and the one that it is compared with. Figures are medians of interleaved turns, in CPU time.
Name rows to run only those: `python benches/around.py count_polars`.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from compare import heading

from geomdp import GeometricMechanism
from geomdp.hierarchy import Hierarchy

Call = Callable[[], object]
Row = Callable[[], tuple[str, Call, Call]]


def list_of_ints() -> tuple[str, Call, Call]:
    mechanism, counts = GeometricMechanism(1.0), np.arange(1000)
    given = counts.tolist()
    return (
        "a list of 1000 ints, to an array",
        lambda: mechanism.release(given),
        lambda: mechanism.release(counts),
    )


def tree_of_a_million_leaves() -> tuple[str, Call, Call]:
    leaves = 10**6
    regions = {n: f"region {n % 1000}" for n in range(leaves)}
    tree = Hierarchy(regions | {f"region {n}": "country" for n in range(1000)})
    mechanism, counts = GeometricMechanism(1.0), np.arange(leaves) % 100

    def ours() -> None:
        noisy = tree.release(counts, epsilon=1)
        noisy.estimates()
        noisy.intervals(alpha=0.05)

    return (
        "release, estimates and intervals of a tree of 10^6 leaves, to noise on the leaves",
        ours,
        lambda: mechanism.release(counts),
    )


ROWS: list[Row] = [list_of_ints, tree_of_a_million_leaves]


def seconds(call: Call) -> float:
    """Return the CPU time of one call, of enough calls that the clock sees them."""
    calls = 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            call()
        if (spent := time.process_time() - start) > 0.02:
            return spent / calls
        calls *= 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help="names of rows; all unless given")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    heading()
    print("| what, to what | ours | theirs | ratio |\n|---|---|---|---|")
    for row in ROWS:
        if arguments.rows and row.__name__ not in arguments.rows:
            continue
        name, ours, theirs = row()
        turns = [(seconds(ours), seconds(theirs)) for _ in range(arguments.turns)]
        a, b = (statistics.median(times) for times in zip(*turns, strict=True))
        print(f"| {name} | {a * 1e3:.4g} ms | {b * 1e3:.4g} ms | **{a / b:.2f}** |", flush=True)


if __name__ == "__main__":
    main()
