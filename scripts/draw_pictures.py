"""Draw pictures for the docs: `make pictures`; the site also draws the examples of geomdp.plot.

The noise in pictures of releases is new every run. The figures behind the picture of streams are
printed too.
"""

import csv
import doctest
import io
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from geomdp import GeometricMechanism, accuracy, plot
from geomdp._analysis import span_trees
from geomdp.accounting import compose, zcdp
from geomdp.frames import Design

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from chart import COLOURS, OURS, STYLE, log_axes, picture  # noqa: E402

EPSILON = 0.2
#: A daily release of this privacy loss, for a year.
DAILY, DAYS, DELTA = 0.1, 365, 1e-6


def main() -> None:
    release()
    composition()
    streams()
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


def tree(arity: int, levels: int) -> Callable[[int], int]:
    """Return the accuracy of spans by their length, the worst on the day that they end."""
    mechanism = GeometricMechanism(Fraction(1, levels))

    def of(length: int) -> int:
        paths = (
            span_trees.path(stop - length, stop, stop, arity, levels)
            for stop in range(length, DAYS + 1)
        )
        most = max(span_trees.nodes(runs, arity) for runs in paths)
        return accuracy.sum_accuracy(mechanism, most, 0.05)

    return of


def ways() -> dict[str, Callable[[int], int]]:
    """Return the accuracies of counts over spans of days, with privacy loss 1 of a record."""
    running, window = (GeometricMechanism(Fraction(1, n)) for n in (DAYS, 30))
    return {
        "the running total each day, epsilon / 365": lambda length: accuracy.sum_accuracy(
            # A difference of two, but for the total since the first day.
            running,
            1 if length == DAYS else 2,
            0.05,
        ),
        "the last 30 days each day, epsilon / 30": lambda length: accuracy.sum_accuracy(
            window, length // 30, 0.05
        ),
        "each day alone, epsilon": tree(2, 1),
        "Stream with arity 2": tree(2, span_trees.height(DAYS, 2)),
        "Stream": tree(*span_trees.best(DAYS, Fraction(1))),
    }


#: The spans of the table.
SPANS = {"a day": 1, "a week": 7, "30 days": 30, "90 days": 90, "the year": DAYS}


def stream_table() -> str:
    """Return a table of the accuracies for spans of days, in Markdown."""
    lines = [f"| released | {' | '.join(SPANS)} |", "|---|" + "---|" * len(SPANS)]
    for name, way in ways().items():
        cells = ["" if "30" in name and n % 30 else str(way(n)) for n in SPANS.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def streams() -> None:
    print(stream_table())
    lengths = sorted({*range(1, 30), *range(30, DAYS, 5), *SPANS.values()})
    with picture("streams", 7, 3.6) as figure:
        axes = figure.subplots()
        colours = (*COLOURS[:4], OURS)
        for (name, way), style, colour in zip(ways().items(), "-o:--", colours, strict=True):
            shown = [n for n in lengths if "30" not in name or n % 30 == 0]
            axes.plot(shown, [way(n) for n in shown], style, label=name, color=colour)
        log_axes(axes, "y")
        axes.set(xlabel="days of a span", ylabel="95% of errors are at most", xlim=(0, DAYS))
        figure.legend(loc="outside upper center", ncols=2)


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
    with picture("release", 4.6, 3.4) as figure:  # Readable at the width of a telephone.
        axes = figure.subplots()
        plot.histogram(mechanism, mechanism.release(true), true=true, labels=labels, ax=axes)
        axes.set_title("Berkeley admissions of 1973, women")


if __name__ == "__main__":
    main()
