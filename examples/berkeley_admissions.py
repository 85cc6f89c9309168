"""Add noise to real counts: graduate admissions at Berkeley in 1973.

The table has 24 counts of 4526 applicants by department, sex and decision (Bickel, Hammel and
O'Connell, *Science* 187, 1975). Each applicant is in one cell, so adding or removing an applicant
changes one count by one: the L1 sensitivity of the whole table is 1.
"""

import argparse
import csv
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from geomdp import GeometricMechanism

HERE = Path(__file__).parent
APPLICANTS = 4526  # public: the upper bound of every count


def chart(labels: list[str], true: np.ndarray, noisy: np.ndarray, a: int, path: Path) -> None:
    """Draw the true and the noisy counts, with intervals around the noisy ones."""
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    places = np.arange(len(labels))
    axes.bar(places, true, color="#c9d6e8", label="true")
    axes.errorbar(places, noisy, yerr=a, fmt=".", color="#b03a2e", capsize=3, label="noisy, 95%")
    axes.set_xticks(places, labels, rotation=90)
    axes.set_ylabel("applicants")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--output", type=Path, default=Path("dist/demo"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)

    with open(HERE / "berkeley_admissions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    true = np.array([int(row["count"]) for row in rows])

    mechanism = GeometricMechanism(epsilon=arguments.epsilon, bounds=(0, APPLICANTS))
    noisy = mechanism.release(true)

    a = mechanism.accuracy(alpha=0.05)
    lower, upper = mechanism.confidence_interval(noisy, alpha=0.05)
    labels = [f"{row['department']} {row['sex']} {row['decision']}" for row in rows]
    print(f"{mechanism}\nprivacy loss of the table per applicant: {mechanism.privacy_loss()}\n")
    print(f"{'cell':<20}{'true':>6}{'noisy':>7}{'error':>7}   95% interval")
    for label, x, y, low, high in zip(labels, true, noisy, lower, upper, strict=True):
        print(f"{label:<20}{x:>6}{y:>7}{y - x:>+7}   [{low}, {high}]")
    covered = np.count_nonzero((lower <= true) & (true <= upper))
    print(f"{'total':<20}{true.sum():>6}{noisy.sum():>7}{noisy.sum() - true.sum():>+7}")
    print(f"\n{covered} of {len(true)} intervals of +-{a} contain the true count")
    certificate = mechanism.certificate(tight=True)
    print(certificate)

    with open(arguments.output / "berkeley_noisy.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["department", "sex", "decision", "noisy_count"])
        for row, y in zip(rows, noisy, strict=True):
            writer.writerow([row["department"], row["sex"], row["decision"], y])
    (arguments.output / "certificate.json").write_text(certificate.to_json())
    chart(labels, true, noisy, a, arguments.output / "berkeley.png")
    print(f"wrote {', '.join(str(path) for path in sorted(arguments.output.iterdir()))}\n")

    many = np.tile(true, 10_000_000 // len(true) + 1)[:10_000_000]
    start = time.perf_counter()
    mechanism.release(many, out=many)
    seconds = time.perf_counter() - start
    print(
        f"ten million counts in {seconds:.3f} s: {len(many) / seconds / 1e6:.0f} million a second"
    )


if __name__ == "__main__":
    main()
