"""From records to a published table: graduate admissions at Berkeley in 1973.

The table has 24 counts of 4526 applicants by department, sex and decision (Bickel, Hammel and
O'Connell, *Science* 187, 1975). Each applicant is in one cell, so adding or removing an applicant
changes one count by one: the L1 sensitivity of the whole table is 1.
"""

import argparse
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from geomdp import GeometricMechanism, frames

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

    published = pd.read_csv(HERE / "berkeley_admissions.csv")  # a row for each cell

    departments, sexes = list("ABCDEF"), ["men", "women"]
    levels = {"department": departments, "sex": sexes, "decision": ["admitted", "rejected"]}
    design = frames.Design(levels)
    a = design.accuracy(epsilon=arguments.epsilon, alpha=0.05)
    print(f"in advance: 95% of errors will be at most {a}, and all 24 at once at most", end=" ")
    print(design.accuracy(epsilon=arguments.epsilon, alpha=0.05, of="all"))

    table = design.count(published, weights="count")
    noisy = table.release(epsilon=arguments.epsilon)
    print(f"privacy loss of the table for one applicant: {noisy.privacy_loss}\n")

    true, shown = table.frame["count"].to_numpy(), noisy.intervals(alpha=0.05)
    labels = [" ".join(row) for row in shown[list(levels)].itertuples(index=False)]
    print(f"{'cell':<20}{'true':>6}{'noisy':>7}{'error':>7}   95% interval")
    for label, x, row in zip(labels, true, shown.itertuples(), strict=True):
        y = row[-3]
        print(f"{label:<20}{x:>6}{y:>7}{y - x:>+7}   [{row.lower}, {row.upper}]")
    covered = np.count_nonzero((shown["lower"] <= true) & (true <= shown["upper"]))
    print(f"\n{covered} of {len(true)} intervals contain the true count")
    print(f"\n{noisy.total('sex', alpha=0.05).to_string(index=False)}")
    print(f"\n{noisy.share('decision', alpha=0.05).round(1).to_string(index=False)}\n")

    mechanism = GeometricMechanism(epsilon=arguments.epsilon, bounds=(0, APPLICANTS))
    certificate = mechanism.certificate(tight=True)
    print(certificate)

    noisy.save(arguments.output / "berkeley_noisy.csv", overwrite=True)
    (arguments.output / "certificate.json").write_text(certificate.to_json())
    chart(labels, true, shown["count"].to_numpy(), a, arguments.output / "berkeley.png")
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
