"""Draw pictures for the docs: `make pictures`; the site also draws the examples of geomdp.plot.

The noise in pictures of releases is new every run.
"""

import csv
import doctest
import io
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from geomdp import GeometricMechanism, plot
from geomdp.accounting import compose, zcdp
from geomdp.frames import Design

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from chart import STYLE, picture  # noqa: E402

EPSILON = 0.2
#: A daily release of this privacy loss, for a year.
DAILY, DAYS, DELTA = 0.1, 365, 1e-6


def main() -> None:
    release()
    composition()
    plan()


def example(name: str) -> str:
    """Run the example in the docstring of a plot function; return its picture as SVG."""
    session: dict[str, Any] = {}
    pyplot.switch_backend("agg")  # Opens no window.
    with mpl.rc_context({**STYLE, "font.size": 11, "axes.titlesize": 11}):
        for part in doctest.DocTestParser().get_examples(getattr(plot, name).__doc__):
            exec(compile(part.source, f"plot.{name}", "exec"), session)
        text, figure = io.StringIO(), session["axes"].figure
        figure.savefig(text, format="svg", transparent=True)
        pyplot.close(figure)
    return text.getvalue()


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
        axes.legend()


def plan() -> None:
    """Draw the accuracies of the design in docs/guides/plan.md."""
    design = Design({"region": [f"region {n}" for n in range(1, 11)], "sex": ["f", "m"]})
    with picture("plan", 7, 3.6) as figure:
        design.plot(ax=figure.subplots())


def release() -> None:
    with open(ROOT / "examples/berkeley_admissions.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["sex"] == "women"]
    true = np.array([int(row["count"]) for row in rows])
    labels = [f"{row['department']} {row['decision']}" for row in rows]
    mechanism = GeometricMechanism(EPSILON, bounds=(0, 4526))
    small = GeometricMechanism(EPSILON, bounds=(0, 30))
    with picture("release", 7.6, 3.4) as figure:
        left, right = figure.subplots(1, 2)
        plot.pmf(small, [0, 5, 20], ax=left)
        left.set_title(f"noise of epsilon {EPSILON} within bounds (0, 30)")
        plot.histogram(mechanism, mechanism.release(true), true=true, labels=labels, ax=right)
        right.set_title("Berkeley admissions of 1973, women")


if __name__ == "__main__":
    main()
