"""Code for OpenDP or diffprivlib keeps its calls and gets this noise.

python examples/other_libraries.py [FOLDER]
"""

import csv
import sys
import tempfile
from pathlib import Path

import opendp.prelude as dp
import pandas as pd
from matplotlib import pyplot

from geomdp import GeometricMechanism
from geomdp.compat.diffprivlib import Geometric  # was: from diffprivlib.mechanisms
from geomdp.compat.opendp import then_laplace  # was: dp.m.then_laplace
from geomdp.tables import plot

VOTERS = Path(__file__).parent / "data/anes_1996.csv"
PARTIES = ["Democrat", "independent", "Republican"]
SCALE = 2.0


def main(folder: Path) -> None:
    with open(VOTERS, newline="") as file:
        parties = [row["party"].split()[-1] for row in csv.DictReader(file)]

    dp.enable_features("contrib")
    pipeline = (
        (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
        >> dp.t.then_count_by_categories(PARTIES, MO="L1Distance<i64>", TOA="i64")
        >> then_laplace(SCALE)
    )
    noisy = list(pipeline(parties))[: len(PARTIES)]  # the last counts all others
    by_class = Geometric(epsilon=1 / SCALE, sensitivity=1)
    table = pd.DataFrame({"party": PARTIES, "count": noisy})
    print(table.to_string(index=False))
    print(f"privacy loss by OpenDP's map, for a respondent: {pipeline.map(1)}")
    print(f"diffprivlib's class: {by_class.randomise(parties.count('independent'))} independents")

    table.to_csv(folder / "parties.csv", index=False)
    plot.histogram(GeometricMechanism.from_scale(SCALE), noisy, labels=PARTIES)
    pyplot.savefig(folder / "parties.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
