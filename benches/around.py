"""Print the cost of the work around the draw, as ratios to the usual way without noise.

Part of `make bench`. A row is a function that makes its data and returns its name and two calls:
ours, and the one that it is compared with. Figures are medians of interleaved turns, in CPU time.
Name rows to run only those: `python benches/around.py count_polars`.
"""

import argparse
import atexit
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from compare import heading

from geomdp import GeometricMechanism, cli
from geomdp.distributed import ReleaseKey

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


def release_csv() -> tuple[str, Call, Call]:
    # 100 000 rows, 1.7 MB.
    rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    given, copy, noisy = (
        os.path.join(folder, f"{name}.csv") for name in ("given", "copy", "noisy")
    )
    areas, sexes = rng.choice(["north", "south, east", "west"], 10**5), rng.choice([*"fm"], 10**5)
    frame = pd.DataFrame({"area": areas, "sex": sexes, "age": rng.integers(0, 90, 10**5)})
    frame.assign(n=rng.integers(0, 4526, 10**5)).to_csv(given, index=False)

    def ours() -> None:
        cli.main(["release", given, noisy, "--column=n", "--epsilon=0.5", "--bounds", "0", "4526"])
        os.unlink(noisy)

    return (
        "`geomdp release` of a CSV file, to pandas reading and writing it",
        ours,
        lambda: pd.read_csv(given).to_csv(copy, index=False),
    )


def keyed_release() -> tuple[str, Call, Call]:
    counts, mechanism = np.zeros(10**6, np.int64), GeometricMechanism(0.5, bounds=(0, 4526))
    ids = np.random.default_rng(0).permutation(len(counts))
    return (
        "a keyed release of 10^6 counts with the check of ids, to one without",
        lambda: ReleaseKey().release(mechanism, counts, ids, name="n"),
        lambda: ReleaseKey().release(mechanism, counts, ids, name="n", part=True),
    )


def first_release(scale: float = 1000) -> tuple[str, Call, Call]:
    # Mechanisms that are alike share a plan.
    others = itertools.count(1)
    return (
        f"a new mechanism of scale {scale:.0e} and its first release, to numpy's generator",
        lambda: GeometricMechanism.from_scale(scale * (1 + next(others) / 2**20)).release(5),
        lambda: np.random.default_rng().geometric(1 / scale),
    )


def first_release_of_many_digits() -> tuple[str, Call, Call]:
    return first_release(1e12)


ROWS: list[Row] = [
    list_of_ints,
    release_csv,
    keyed_release,
    first_release,
    first_release_of_many_digits,
]


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
