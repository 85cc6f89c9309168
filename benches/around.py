"""Print the cost of the work around the draw, as ratios to the usual way without noise.

Part of `make bench`. A row is a function that makes its data and returns its name and two calls:
ours, and the one that it is compared with. Figures are medians of interleaved turns, in CPU time.
Name rows to run only those: `python benches/around.py count_polars`.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
from compare import heading

from geomdp import GeometricMechanism
from geomdp.streams import Stream

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


def year_of_stream() -> tuple[str, Call, Call]:
    mechanism = GeometricMechanism(0.5)
    counts = np.random.default_rng(1).integers(100, size=(365, 10**5))

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            stream = Stream.open(f"{folder}/a.db")
            for day in range(365):
                stream.release(day, counts[: day + 1])

    def theirs() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for day, row in enumerate(counts):
                np.save(f"{folder}/{day}.npy", mechanism.release(row))

    return "a year of days of 10^5 cells in a stream, to noisy files of days alone", ours, theirs


ROWS: list[Row] = [list_of_ints, year_of_stream]


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
