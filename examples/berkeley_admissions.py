"""From records to a published table: graduate admissions at Berkeley in 1973.

The table has 24 counts of 4526 applicants by department, sex and decision (Bickel, Hammel and
O'Connell, *Science* 187, 1975). Each applicant is in one cell, so adding or removing an applicant
changes one count by one: the L1 sensitivity of the whole table is 1.
"""

import sys
from pathlib import Path

import pandas as pd
from matplotlib import pyplot

from geomdp import GeometricMechanism, tables
from geomdp.tables import plot

HERE = Path(__file__).parent
EPSILON = 0.5
LEVELS = {
    "department": list("ABCDEF"),
    "sex": ["men", "women"],
    "decision": ["admitted", "rejected"],
}


def main(folder: Path) -> None:
    published = pd.read_csv(HERE / "berkeley_admissions.csv")  # a row for each cell
    design = tables.Design(LEVELS)
    a, of_all = (design.accuracy(epsilon=EPSILON, alpha=0.05, of=of) for of in (None, "all"))
    print(f"in advance: 95% of errors will be at most {a}, and all 24 at once at most {of_all}\n")

    noisy = design.count(published, counts="count").release(epsilon=EPSILON)
    shown = published.merge(noisy.intervals(alpha=0.05), on=list(LEVELS))
    # The true counts are public here. Usually they stay where they are.
    print(shown.to_string(index=False))
    covered = shown["count"].between(shown["lower"], shown["upper"]).sum()
    print(f"\n{covered} of 24 intervals contain the true count")
    print(f"privacy loss of the table for one applicant: {noisy.privacy_loss()}")
    print(f"\n{noisy.total('sex', alpha=0.05).to_string(index=False)}")
    print(f"\n{noisy.percent('decision', alpha=0.05).round(1).to_string(index=False)}\n")

    certificate = GeometricMechanism(EPSILON, bounds=(0, 4526)).certificate(tight=True)
    print(certificate)
    noisy.save(folder / "berkeley_noisy.csv", overwrite=True)
    (folder / "certificate.json").write_text(certificate.to_json())
    cells, mechanism = shown[list(LEVELS)].agg(" ".join, axis=1), GeometricMechanism(EPSILON)
    plot.histogram(mechanism, noisy.frame["count"], true=shown["count"], labels=cells)
    pyplot.savefig(folder / "berkeley.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist/demo")
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
