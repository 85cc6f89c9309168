"""Draw the README's picture of a release: `make pictures`. The noise differs on every run."""

import csv
import sys
from pathlib import Path

import numpy as np

from geomdp import GeometricMechanism, plot

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from chart import picture  # noqa: E402

EPSILON = 0.2


def main() -> None:
    with open(ROOT / "examples/berkeley_admissions.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["sex"] == "women"]
    true = np.array([int(row["count"]) for row in rows])
    labels = [f"{row['department']} {row['decision']}" for row in rows]
    mechanism = GeometricMechanism(EPSILON, bounds=(0, int(true.max())))
    small = GeometricMechanism(EPSILON, bounds=(0, 30))
    with picture("release", 9, 3.2) as figure:
        left, right = figure.subplots(1, 2)
        plot.pmf(small, [0, 5, 20], ax=left)
        left.set_title(f"epsilon {EPSILON}, bounds (0, 30)")
        noisy = mechanism.release(true)
        reach = mechanism.accuracy(alpha=0.05)
        plot.histogram(true, noisy, labels=labels, accuracy=reach, ax=right)
        right.tick_params(axis="x", rotation=90)
        right.set_title(f"women at Berkeley in 1973, epsilon {EPSILON}")


if __name__ == "__main__":
    main()
