"""Print how much faster the backends are than the libraries whose calls they implement.

Each figure is the median of interleaved repetitions in this run: `make bench`.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import opendp.prelude as dp
from compare import medians

import geomdp.compat.diffprivlib as our_diffprivlib
import geomdp.compat.opendp as our_opendp
import geomdp.measurement as m

with warnings.catch_warnings():
    # The import warns about versions of other libraries.
    warnings.simplefilter("ignore")
    import diffprivlib.mechanisms as their_diffprivlib

SCALE = 10.0
dp.enable_features("contrib")

#: Name, then their call and ours, each with the number of counts that it adds noise to.
Row = tuple[str, tuple[Callable[[], object], int], tuple[Callable[[], object], int]]


def opendp_rows(n: int) -> list[Row]:
    counts = np.arange(n)
    vector = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    single = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    own = m.vector_domain(m.atom_domain("i64")), m.l1_distance("i64")
    theirs = dp.m.make_geometric(*vector, SCALE)
    ours = our_opendp.make_geometric(*vector, SCALE)
    alone = m.make_geometric(*own, SCALE)
    few, bounds = counts[: max(n // 1000, 1)], (0, 1000)
    bounded = dp.m.make_geometric(*vector, SCALE, bounds=bounds)
    our_bounded = our_opendp.make_geometric(*vector, SCALE, bounds=bounds)
    one, our_one = dp.m.make_geometric(*single, SCALE), our_opendp.make_geometric(*single, SCALE)
    return [
        ("OpenDP, array", (partial(theirs, counts), n), (partial(ours, counts), n)),
        ("  through geomdp.measurement", (partial(theirs, counts), n), (partial(alone, counts), n)),
        (
            f"OpenDP, array, bounds {bounds}",
            (partial(bounded, few), len(few)),
            (partial(our_bounded, counts), n),
        ),
        ("OpenDP, one count", (partial(one, 5), 1), (partial(our_one, 5), 1)),
    ]


def diffprivlib_rows(n: int) -> list[Row]:
    rows: list[Row] = []
    counts = np.arange(n) % 1000
    few = [int(count) for count in counts[: max(n // 100, 1)]]

    def each(mechanism: Any) -> None:
        for count in few:
            mechanism.randomise(count)

    for name in ("Geometric", "GeometricTruncated", "GeometricFolded"):
        bounds = {} if name == "Geometric" else {"lower": 0, "upper": 1000}
        theirs = getattr(their_diffprivlib, name)(epsilon=1 / SCALE, **bounds)
        ours = getattr(our_diffprivlib, name)(epsilon=1 / SCALE, **bounds)
        by_one = partial(theirs.randomise, 500), 1
        rows += [
            (
                f"{name}, array",
                (partial(each, theirs), len(few)),
                (partial(ours.randomise, counts), n),
            ),
            (f"{name}, one count", by_one, (partial(ours.randomise, 500), 1)),
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("opendp", "diffprivlib", "numpy"))
    print(f"{arguments.n} int64 counts, scale {SCALE}, nanoseconds per count; {libraries}")
    print(f"{'':<32}{'theirs':>12}{'ours':>10}{'times faster':>14}")
    for name, *sides in opendp_rows(arguments.n) + diffprivlib_rows(arguments.n):
        calls, sizes = zip(*sides, strict=True)
        seconds = medians(list(calls), arguments.repetitions)
        theirs, ours = (s / n * 1e9 for s, n in zip(seconds, sizes, strict=True))
        ratio = f"{theirs / ours:.{0 if theirs > 10 * ours else 2}f}"
        print(f"{name:<32}{theirs:>12.0f}{ours:>10.1f}{ratio:>14}")


if __name__ == "__main__":
    main()
