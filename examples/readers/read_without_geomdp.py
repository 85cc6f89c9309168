"""Read a table that geomdp published with Python's standard library alone: docs/format.md as code.

    python read_without_geomdp.py cases.csv

Intervals are those of each noisy count by itself. `geomdp.read` also uses what released sums say
about the cells, so its intervals may be narrower.
"""

import csv
import hashlib
import json
import math
import re
import sys
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

#: More than the error of the sampled distribution.
LOST = 2**-50


def read(path: Path, alpha: float = 0.05) -> list[dict[str, Any]]:
    """Return the rows with the ends of intervals that miss with probability at most alpha."""
    content = path.read_bytes()
    description = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    if description["hash"] != f"sha256:{hashlib.sha256(content).hexdigest()}":
        raise ValueError(f"{path} was edited, or is of another release")
    facts = description["geomdp"]
    if facts["format"] != "geomdp-release-1":
        raise ValueError(f"{path} has the format {facts['format']}")
    lines = csv.reader(content.decode().splitlines(keepends=True))
    header, *rows = ([plain(cell) for cell in line] for line in lines)
    found = [dict(zip(header, [*row[:-1], int(row[-1])], strict=True)) for row in rows]
    if facts["top"] is not None or facts["at_least"] is not None:
        return found  # Names alone; or groups, whose intervals geomdp computes.
    depths = [depth_of(axis) for axis in facts["axes"].values()]
    # Combinations have several columns of the table, and a tree one.
    sizes = [1 if "nodes" in x else len(x.get("columns", [""])) for x in facts["axes"].values()]
    # A sum of releases has the noise of each.
    noises: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    for release in facts.get("parts") or [facts]:
        for each in release["mechanisms"]:
            noises.setdefault(tuple(each["depths"]), []).append(each)
    reaches = {
        at: reach([float(Fraction(each["rate"])) for each in some], alpha)
        for at, some in noises.items()
    }
    # True sums of values that may be negative are, too.
    floor = -math.inf if facts["values"] is not None and facts["values"][0] < 0 else 0
    for row, cells in zip(found, rows, strict=True):
        left = iter(cells)
        at = tuple(
            known[next(left)] if size == 1 else known[tuple(islice(left, size))]
            for known, size in zip(depths, sizes, strict=True)
        )
        # The most that rounding moved a count.
        off = int(str(facts["rounded"] or 0).rpartition(" ")[2]) // 2 + facts.get("moved", 0)
        # A noisy count below the floor has the interval of the floor.
        count = max(int(cells[-1]), floor)
        given = count - off, count + off
        row["lower"], row["upper"] = interval(given, noises[at][0], reaches[at], floor)
    return found


def reach(rates: list[float], alpha: float) -> int:
    """Return the least t that the sum of noises of these rates exceeds with at most this level."""
    alpha -= LOST * len(rates)
    if len(rates) == 1:
        [rate] = rates
        return max(math.ceil(-math.log(alpha * (1 + math.exp(-rate)) / 2) / rate - 1), 0)
    middle = sum(math.ceil(40 / rate) for rate in rates)
    law = [0.0] * middle + [1.0] + [0.0] * middle
    for rate in rates:
        # A noise is the sum of a geometric number, and the negative of one.
        a = math.exp(-rate)
        for places in (range(len(law)), range(len(law))[::-1]):
            before = 0.0
            for place in places:
                before = law[place] = (1 - a) * law[place] + a * before
    found, inside = 0, law[middle]
    while inside < 1 - alpha + 1e-9:
        found += 1
        inside += 2 * law[middle + found]
    return found


def interval(
    count: tuple[float, float], mechanism: dict[str, Any], reach: int, floor: float
) -> tuple[float, float]:
    """Return the ends for a noisy count between two numbers; no true count is below the floor."""
    low, high = count
    least, most = mechanism["bounds"] or (-math.inf, math.inf)
    # A count at a bound may have been moved there, and a true count beyond it has its noise.
    lower = floor if low - reach <= least else max(low - reach, floor)
    return lower, math.inf if high + reach >= most else max(high + reach, floor)


def depth_of(axis: dict[str, Any]) -> dict[Any, int]:
    """Return the depth of each label of a column, as the file has it."""
    if "nodes" not in axis:
        deep = dict.fromkeys(map(text, axis["levels"] + axis["other"]), len(axis["margin"]))
        return deep | dict.fromkeys(map(text, axis["margin"]), 0)
    depths: list[int] = []
    for parent in axis["parents"]:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return dict(zip(map(text, axis["nodes"]), depths, strict=True))


def text(level: Any) -> Any:
    """Return a level of the description as the file has it: of a combination, a tuple."""
    if isinstance(level, list):
        return tuple(map(text, level))
    if isinstance(level, dict):
        [level] = level.values()
    return "" if level is None else str(level).lower() if isinstance(level, bool) else str(level)


def plain(cell: str) -> str:
    """Return a cell without the apostrophes that keep spreadsheets from running its parts."""
    runs = r"['\"]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20\ufeff]"
    return re.sub(rf"(^|[,;|\t\r\n])'(?={runs})", r"\1", cell)


if __name__ == "__main__":
    writer = csv.DictWriter(sys.stdout, list((found := read(Path(sys.argv[1])))[0]))
    writer.writeheader()
    writer.writerows(found)
