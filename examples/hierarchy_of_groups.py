"""A registry publishes counts on a hierarchy, whose estimates add up at every level.

python examples/hierarchy_of_groups.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib import pyplot

from geomdp import hierarchy, plot
from geomdp.frames import Design

VOTERS = Path(__file__).parent / "data/anes_1996.csv"
TREE = hierarchy.Hierarchy(
    {f"{strength} {party}": party for party in ("Democrat", "Republican") for strength in
     ("strong", "weak", "independent")}
    | {"Democrat": "voters", "independent": "voters", "Republican": "voters"}
)  # fmt: skip


def main(folder: Path) -> None:
    design = Design({"party": TREE}, individual="respondent", l0=1)
    least = TREE.accuracy(epsilon=1, alpha=0.05)
    print(f"in advance: 95% of errors are at most {least}, by level from the top\n")

    noisy = TREE.release(design.count(pd.read_csv(VOTERS)), epsilon=1)
    noisy.save(folder / "parties.csv")

    published = hierarchy.read(folder / "parties.csv")  # what any reader can do
    estimates, intervals = published.estimates(), published.intervals(alpha=0.05)
    print(f"{'':<24}{'noisy':>6}{'estimate':>10}   95% interval")
    for node in TREE.nodes:
        lower, upper = intervals[node]
        print(f"{node:<24}{published[node]:>6}{estimates[node]:>10.1f}   [{lower}, {upper}]")

    leaves = {leaf: published[leaf] for leaf in TREE.leaves}
    plot.histogram(noisy.mechanisms[-1], leaves)
    pyplot.savefig(folder / "parties.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
