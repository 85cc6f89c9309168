"""A registry publishes counts on a hierarchy, whose estimates add up at every level.

python examples/hierarchy_of_groups.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib import pyplot

import geomdp
from geomdp.tables import Design, Hierarchy

VOTERS = Path(__file__).parent / "data/anes_1996.csv"
TREE = Hierarchy(
    {f"{strength} {party}": party for party in ("Democrat", "Republican") for strength in
     ("strong", "weak", "independent")}
    | {"Democrat": "voters", "independent": "voters", "Republican": "voters"},
    leaves_only=True,
)  # fmt: skip


def main(folder: Path) -> None:
    design = Design({"party": TREE}, individual="respondent", l0=1)
    least = [each.accuracy(0.05) for each in design.mechanisms_for(epsilon=1).values()]
    print(f"in advance: 95% of errors are at most {least}, by depth from the top\n")

    design.count(pd.read_csv(VOTERS)).release(epsilon=1, save=folder / "parties.csv")

    published = geomdp.read(folder / "parties.csv")  # what any reader can do
    table = published.intervals(alpha=0.05)
    table.insert(1, "noisy", published.frame["count"])
    print(table.to_string(index=False, float_format="%.1f"))

    ends = abs(table[["lower", "upper"]].T - table["estimate"]).to_numpy()
    table.set_index("party")["estimate"].plot.barh(xerr=ends, xlabel="count", figsize=(8, 4))
    pyplot.tight_layout()
    pyplot.savefig(folder / "parties.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
