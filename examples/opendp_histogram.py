"""One histogram, three ways: OpenDP with its own noise, OpenDP with ours, and geomdp.measurement.

The first part releases the graduate admissions at Berkeley in 1973 from one CSV row per applicant.
The second part times the noise on made-up records in 10^5 bins. Neighbours differ in one applicant
(symmetric distance 1), and each framework computes epsilon from that.
"""

import argparse
import csv
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import opendp.prelude as dp

import geomdp.compat.opendp
import geomdp.measurement as m

HERE = Path(__file__).parent
SCALE = 2.0
dp.enable_features("contrib")


def applicants() -> Iterator[list[str]]:
    """Yield the records of the table: one row for each applicant."""
    with open(HERE / "berkeley_admissions.csv", newline="") as file:
        for row in csv.DictReader(file):
            cell = [row["department"], row["sex"], row["decision"]]
            yield from itertools.repeat(cell, int(row["count"]))


def load(path: Path) -> list[str]:
    """Return the category of each record of a CSV file, made of its columns."""
    with open(path, newline="") as file:
        return [" ".join(row) for row in csv.reader(file)]


def opendp_counts(categories: list[str]) -> dp.Transformation:
    """Return OpenDP's histogram."""
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    counts = dp.t.then_count_by_categories(categories, MO="L1Distance<i64>", TOA="i64")
    return space >> counts


def pipelines(categories: list[str]) -> dict[str, tuple[Any, Any]]:
    """Return each way's transformation and measurement, ready to join with ``>>``."""
    theirs = opendp_counts(categories)
    ours = m.make_count_by_categories(
        m.vector_domain(m.atom_domain(str)), m.symmetric_distance(), categories
    )
    return {
        "OpenDP": (theirs, theirs.output_space >> dp.m.then_geometric(SCALE)),
        "OpenDP, our noise": (
            theirs,
            theirs.output_space >> geomdp.compat.opendp.then_geometric(SCALE),
        ),
        "geomdp.measurement": (ours, m.make_geometric(*ours.output_space, SCALE)),
    }


def timed(function: Callable[[Any], Any], argument: Any, repeats: int) -> float:
    """Return the median time of a call in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(argument)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def admissions() -> None:
    """Release the 24 counts each way."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "applicants.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows(applicants())
        records = load(path)
    # Public: every possible cell, with or without applicants.
    cells = itertools.product("ABCDEF", ("men", "women"), ("admitted", "rejected"))
    categories = list(map(" ".join, cells))
    releases = {}
    print(f"{len(records)} applicants in {len(categories)} cells, noise of scale {SCALE}")
    for name, (count, noise) in pipelines(categories).items():
        pipeline = count >> noise
        assert pipeline.check(1, 1 / SCALE)
        releases[name] = pipeline(records)
        print(f"    {name}: epsilon {pipeline.map(1)} per applicant")
    true = pipelines(categories)["OpenDP"][0](records)
    print(f"\n{'cell':<20}{'true':>6}" + "".join(f"{name:>20}" for name in releases))
    for i, cell in enumerate([*categories, "others"]):
        row = "".join(f"{noisy[i]:>20}" for noisy in releases.values())
        print(f"{cell:<20}{true[i]:>6}{row}")


def many_bins(bins: int, repeats: int) -> None:
    """Time each way's noise and its whole pipeline."""
    categories = [f"code {i}" for i in range(bins)]
    rng = np.random.default_rng(1973)  # for the made-up records, not for the noise
    records = [categories[i] for i in rng.integers(0, bins, 2 * bins)]
    print(f"\n{len(records)} records in {bins} bins, milliseconds, opendp {version('opendp')}")
    print(f"{'':<20}{'noise':>10}{'times faster':>17}{'whole pipeline':>15}")
    slowest = None
    for name, (count, noise) in pipelines(categories).items():
        # An array, since in a pipeline OpenDP passes its own memory from step to step.
        counts = np.asarray(count(records))
        noising = timed(noise, counts, repeats)
        whole = timed(count >> noise, records, 3)
        slowest = slowest or noising
        times = f"{noising * 1e3:>10.2f}{slowest / noising:>16.0f}x{whole * 1e3:>15.0f}"
        print(f"{name:<20}{times}")


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bins", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    admissions()
    many_bins(arguments.bins, arguments.repeats)


if __name__ == "__main__":
    main()
