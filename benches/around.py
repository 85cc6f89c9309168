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
from scipy import sparse
from scipy.optimize import linprog

from geomdp import GeometricMechanism
from geomdp.accuracy import variance
from geomdp.consistency import consistent

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


def consistent_table() -> tuple[str, Call, Call]:
    mechanism, size = GeometricMechanism(0.3), 120
    noisy = mechanism.release(np.full((size, size), 100))
    margins = {axis: mechanism.release(np.full(size, 100 * size)) for axis in (0, 1)}
    # The same number of rounded cells and sums, as one linear program.
    shares = np.random.default_rng(1).random(size**2)
    lines = sparse.eye_array(size), np.ones((1, size))
    sums = sparse.vstack([sparse.kron(*lines), sparse.kron(*lines[::-1])]).tocsr()
    limits = np.concatenate([np.ceil(sums @ shares), -np.floor(sums @ shares)])
    both = sparse.vstack([sums, -sums])
    return (
        "`consistent` of 120 by 120 cells, to the rounding alone as one linear program",
        lambda: consistent(noisy, margins=margins),
        lambda: linprog(1 - 2 * shares, both, limits, bounds=(0, 1), method="highs-ds"),
    )


def moments() -> tuple[str, Call, Call]:
    mechanism = GeometricMechanism(0.5, bounds=(0, 10**6))
    counts = np.random.default_rng(1).integers(0, 10**6, 10**5)
    return (
        "`variance` of 10^5 counts in wide bounds, to `np.unique` of them",
        lambda: variance(mechanism, counts),
        lambda: np.unique(counts, return_inverse=True),
    )


ROWS: list[Row] = [list_of_ints, consistent_table, moments]


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
