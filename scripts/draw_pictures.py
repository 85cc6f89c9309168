"""Draw pictures for the docs: `make pictures`. The noise in that of a release is new every run."""

import csv
import math
import sys
from pathlib import Path

import numpy as np

from geomdp import GeometricMechanism, plot
from geomdp.accounting import compose, zcdp

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from chart import picture  # noqa: E402

EPSILON = 0.2
#: A daily release of this privacy loss, for a year.
DAILY, DAYS, DELTA = 0.1, 365, 1e-6


def main() -> None:
    release()
    composition()


def composition() -> None:
    """Draw the privacy loss of daily releases, four ways."""
    days = np.arange(1, DAYS + 1)
    log = math.log(1 / DELTA)
    rho = days * zcdp(DAILY)
    advanced = DAILY * np.sqrt(2 * log * days) + days * DAILY * math.expm1(DAILY)
    ways = {
        "sum (delta = 0)": days * DAILY,
        "advanced composition (Dwork, Rothblum, Vadhan)": advanced,
        "zCDP (Bun, Steinke)": rho + 2 * np.sqrt(rho * log),
        "compose: optimal": [compose({DAILY: int(n)}, DELTA) for n in days],
    }
    with picture("composition", 7, 3.6) as figure:
        axes = figure.subplots()
        for (label, epsilons), style in zip(ways.items(), (":", "-.", "--", "-"), strict=True):
            axes.plot(days, epsilons, style, label=label)
        axes.set(xlabel=f"daily releases of privacy loss {DAILY}", ylabel="total epsilon")
        axes.set(ylim=(0, 25), xlim=(0, DAYS), title=f"delta = {DELTA:g}")
        axes.legend(frameon=False)


def release() -> None:
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
