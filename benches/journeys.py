"""How far data walk in the package: calls, files and changes of file of everyday calls.

    python benches/journeys.py

A call is one of a function of the package, and a change of file is two calls in a row that are of
functions in different files. Each journey is made once before, so that no import is counted.

The goal for `Table.release` was 325 calls, 17 files and 120 changes, from before it warned of empty
tables, stated the losses of its noisy counts and kept what it drew. On 28 November 2026 it had 818,
27 and 263. One rehearsal for each mechanism, no workload where every question has one, and a bound
that ends where it decides left 494, 24 and 210; it then asked whether epsilon was a percentage,
with losses that are added up once, and every public call then hid what it was given: 553, 26 and
236. About 120 of these state losses, 63 find the mechanisms, 73 look for empty tables and 27 hide.
Reading a file has 249 calls of 1,152 in the check of its description, which goes level by level.
"""

import itertools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd

import geomdp
from geomdp import GeometricMechanism, tables
from geomdp.accounting import Budget

PACKAGE = str(Path(geomdp.__file__).parent)


def walked(journey: Callable[[], object]) -> list[str]:
    """Return the file of each call within the package, in order."""
    files: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            files.append(file)

    journey()
    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(None)
    return files


def journeys(folder: str) -> dict[str, Callable[[], object]]:
    """Return everyday calls by what they are: of a table of three towns, with all totals."""
    levels = {"town": ["a", "b", "c"], "sick": ["no", "yes"]}
    people = pd.DataFrame({"town": list("abc") * 200, "sick": ["no", "yes"] * 300})
    design = tables.Design(levels, margins={"town": "all", "sick": "both"})
    exact = [design.count(people) for _ in range(3)]  # Each is released once.
    mechanism, noisy = GeometricMechanism(1), exact.pop().release(epsilon=1)
    noisy.save(f"{folder}/table.csv")
    return {
        "release of an array": lambda: mechanism.release(np.arange(5)),
        "Design.count": lambda: design.count(people),
        "Table.release": lambda: exact.pop().release(epsilon=1, budget=Budget(1)),
        "read": lambda: geomdp.read(f"{folder}/table.csv"),
        "percentages of three rows": lambda: noisy.percent("town", alpha=0.05),
        "save as a page": lambda: noisy.save(f"{folder}/table.html", overwrite=True),
    }


if __name__ == "__main__":
    print(f"{'':26} calls files changes")
    with tempfile.TemporaryDirectory() as temporary:
        for name, journey in journeys(temporary).items():
            files = walked(journey)
            changes = sum(one != other for one, other in itertools.pairwise(files))
            print(f"{name:26} {len(files):5} {len(set(files)):5} {changes:7}")
