"""A statistician publishes a survey's table: voters by education and vote, with intervals.

python examples/survey_table.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib import pyplot

from geomdp.tables import Design

VOTERS = Path(__file__).parent / "data/anes_1996.csv"
LEVELS = {
    "education": [
        *("grades 1-8", "some high school", "high school", "some college"),
        *("college", "master", "doctorate"),
    ],
    "vote": ["Clinton", "Dole"],
}


def main(folder: Path) -> None:
    # Public: the levels, and that each respondent is one record. Nobody has looked at the data.
    design = Design(LEVELS, individual="respondent", l0=1)
    print(f"in advance: 95% of errors are at most {design.accuracy(epsilon=0.5, alpha=0.05)}\n")

    table = design.count(pd.read_csv(VOTERS))
    noisy = table.release(epsilon=0.5, save=folder / "voters.csv")  # and voters.csv.json
    print(noisy.intervals(alpha=0.05).to_string(index=False))
    print(f"\nper cent\n{noisy.percent('vote', alpha=0.05).round(1).to_string(index=False)}")
    print(f"\nprivacy loss of a respondent: {noisy.privacy_loss()}")

    noisy.plot(alpha=0.05)
    pyplot.savefig(folder / "voters.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
