"""Plots: their artists against exact data, and that texts fit into the figure without overlap."""

import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import matplotlib as mpl
import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text

from exact import noise, real, stated, tail
from geomdp import GeometricMechanism, tables
from geomdp.accuracy import simultaneous_accuracy
from geomdp.distribution import CensoredGeometric
from geomdp.tables import plot
from geomdp.tables._pictures import charts
from geomdp.tables.streams import Stream
from test_documents import run

mpl.use("Agg")

CLOSE = 2.0**-49
MINUS = "\N{MINUS SIGN}"
GRID = np.geomspace(0.05, 10, 60)
MECHANISM = GeometricMechanism(epsilon=0.1, bounds=(0, 30))

#: A plot of each kind, which takes `ax`.
PICTURES: dict[str, Callable[..., Axes]] = {
    "pmf": partial(plot.pmf, MECHANISM, [19, 20, 21]),
    "accuracy": partial(plot.accuracy, GRID),
    "guess": partial(plot.guess, [0.5, 2]),
    "histogram": partial(plot.histogram, MECHANISM, [4, 9], true=[5, 6]),
    "table": partial(plot.table, MECHANISM, [[4, 9, 0], [30, 5, 6]]),
}

each_picture = pytest.mark.parametrize("name", PICTURES)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Check that no figure is open before a test, and close all after it."""
    assert not pyplot.get_fignums()
    with mpmath.workdps(60):
        yield
    pyplot.close("all")


@pytest.fixture
def ax() -> Axes:
    """Return Axes unknown to pyplot."""
    return axes_of_a_figure()


def axes_of_a_figure() -> Axes:
    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def mass(rate: Any, x: int, bounds: tuple[int, int], y: int) -> float:
    """Return ``P(clamp(x + Z) = y)``, for x within different bounds."""
    return float(tail(rate, abs(y - x)) if y in bounds else noise(rate, y - x))


def close(drawn: Any, exact: Any) -> bool:
    drawn, exact = np.asarray(drawn, dtype=float), np.asarray(exact, dtype=float)
    return drawn.shape == exact.shape and bool((abs(drawn - exact) <= CLOSE * abs(exact)).all())


def points(axes: Axes) -> dict[str, tuple[Any, Any]]:
    """Return x and y of each series of stems or lines, by label."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    return {str(line.get_label()): (line.get_xdata(), line.get_ydata()) for line in lines}


def steps(axes: Axes) -> dict[str, tuple[Any, Any]]:
    """Return edges and heights of each series of steps, by label."""
    patches = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    return {str(patch.get_label()): patch.get_data()[1::-1] for patch in patches}


def legend(axes: Axes) -> list[str] | None:
    box = axes.get_legend()
    return None if box is None else [text.get_text() for text in box.get_texts()]


def side(axes: Axes, which: str) -> list[str]:
    """Return the names at the ticks of an axis."""
    return [tick.get_text() for tick in getattr(axes, f"get_{which}ticklabels")()]


def render(axes: Axes) -> None:
    """Draw the figure, which raises matplotlib's warnings."""
    FigureCanvasAgg(axes.figure).draw()  # type: ignore[arg-type]


def check_band(axes: Axes, noisy: Any) -> Any:
    """Check that steps show the counts, over a band of their intervals; return the edges."""
    bars, band, line = (patch.get_data() for patch in axes.patches)  # type: ignore[attr-defined]
    lower, upper = np.clip(MECHANISM.confidence_interval(noisy, 0.05), 0, 30)
    assert np.array_equal([bars.values, line.values], [noisy, noisy])
    assert np.array_equal([band.baseline, band.values], [lower, upper])
    return bars.edges


# All plots


@each_picture
def test_draws_on_the_given_axes(name: str, ax: Axes) -> None:
    before = dict(mpl.rcParams)
    ax.plot([1, 9], [1, 5000])
    assert PICTURES[name](ax=ax) is ax
    assert not pyplot.get_fignums()
    assert dict(mpl.rcParams) == before
    # The limits cover everything drawn, before and after; those of a table are its cells.
    ax.plot([1, 9], [1, 70000])
    assert ax.get_ylim()[1] >= 70000 or name == "table"


@each_picture
def test_makes_one_pyplot_figure_without_axes(name: str) -> None:
    before = dict(mpl.rcParams)
    axes = PICTURES[name](ax=None)
    assert dict(mpl.rcParams) == before
    assert isinstance(axes, Axes)
    assert pyplot.get_fignums() == [axes.figure.number]  # type: ignore[union-attr]
    assert axes.figure.axes == [axes]
    assert axes.figure.bbox.bounds == (0, 0, 800, 450)


@pytest.mark.parametrize(
    ("name", "x", "y", "series"),
    [
        ("pmf", "noisy count", "probability", 3),
        ("accuracy", "epsilon", "accuracy at level 0.05 (counts)", 4),
        ("guess", "guess before the release", "guess after it", 3),
        ("histogram", "number of the bin", "count", 2),
        ("table", "", "", 0),
    ],
)
def test_labels_and_legends(name: str, x: str, y: str, series: int, ax: Axes) -> None:
    PICTURES[name](ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (x, y)
    names = ax.get_legend_handles_labels()[1]
    assert len(names) == series
    # One series needs no legend.
    assert legend(ax) == (names if series > 1 else None)


def test_pyplot_is_not_imported_for_given_axes() -> None:
    script = """
import sys
from geomdp import GeometricMechanism, tables
from geomdp.tables import plot
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
axes = Figure().subplots()
plot.pmf(GeometricMechanism(1), 3, ax=axes)
plot.accuracy([1, 2], ax=axes)
plot.guess(1, ax=Figure().subplots())
plot.histogram(GeometricMechanism(1), [2], true=[1], ax=axes)
plot.table(GeometricMechanism(1), [[2]], ax=Figure().subplots())
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@each_picture
def test_missing_matplotlib_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ModuleNotFoundError) as error:
        PICTURES[name](ax=None)
    assert error.value.__notes__ == ["Needed here: pip install 'matplotlib>=3.10.8'"]


# Texts


def shown_texts(figure: Figure) -> list[tuple[str, Any]]:
    """Return all visible texts with their boxes in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found: list[Text] = []
    for axes in figure.axes:
        found += [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            found += [t.label1 for t in ticks if low <= t.get_loc() <= high and t.label1]
        box = axes.get_legend()
        found += [*box.get_texts(), box.get_title()] if box else []
    return [
        (text.get_text(), text.get_window_extent(canvas.get_renderer()))
        for text in found
        if text.get_text() and text.get_visible()
    ]


NAMES = [f"department {letter}, women, rejected" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"]
WIDE = GeometricMechanism(0.5, bounds=(0, 10**6))
SQUARES = np.arange(50) ** 2
DAYS = pd.date_range("2026-01-01", periods=60, name="day")


def one_of_four(draw: Callable[..., Axes]) -> Callable[..., Axes]:
    """Return a plot on an eighth of a figure, which has other Axes below and beside it."""

    def small(ax: Axes) -> Axes:
        figure, _ = ax.figure, ax.remove()
        return draw(ax=figure.subplots(2, 2)[0, 0])  # type: ignore[union-attr]

    return small


LOOKS: dict[str, Callable[..., Axes]] = {
    **PICTURES,
    "pmf of one count": partial(plot.pmf, GeometricMechanism(0.5), 7),
    "pmf of seven": partial(plot.pmf, MECHANISM, range(0, 28, 4)),
    "pmf in steps": partial(plot.pmf, GeometricMechanism(0.01), [10**6, 10**6 + 200]),
    "pmf of vast counts": partial(plot.pmf, GeometricMechanism(1), [2**53 - 40]),
    "accuracy, narrow": partial(plot.accuracy, np.linspace(0.2, 0.5, 50), alpha=0.01),
    "accuracy, wide": partial(plot.accuracy, np.geomspace(1e-9, 50, 50)),
    "accuracy, sensitive": partial(plot.accuracy, GRID, alpha=1e-9, sensitivity=1000),
    "guess, one": partial(plot.guess, 1),
    "guess, seven": partial(plot.guess, [1e-9, 0.01, 0.1, 1, 5, 40, 1e9]),
    "histogram, bins": partial(
        plot.histogram, WIDE, SQUARES, true=SQUARES, edges=np.linspace(40_000, 400_000, 51)
    ),
    "histogram, ordinary names": partial(
        plot.histogram, WIDE, range(8), labels=[f"department {letter}" for letter in "ABCDEFGH"]
    ),
    "histogram, long names": partial(
        plot.histogram, WIDE, range(24), labels=[3 * name for name in NAMES]
    ),
    "histogram, many names": partial(
        plot.histogram, WIDE, range(200), labels=list(map(str, range(200)))
    ),
    "histogram, few names": partial(
        plot.histogram, WIDE, range(5), labels=["young", "old", "$ of {", "_", "in\nbetween"]
    ),
    "histogram, small": one_of_four(partial(plot.histogram, WIDE, [4] * 6, labels=list("abcdef"))),
    "table, names": partial(
        plot.table, WIDE, np.full((6, 24), 10**6), rows=NAMES[:6], columns=NAMES
    ),
    "table, small": one_of_four(
        partial(plot.table, WIDE, np.full((9, 20), 123), rows=NAMES[:9], columns=NAMES[:20])
    ),
    "pmf of 10^12": partial(plot.pmf, GeometricMechanism(0.01), [10**12, 10**12 + 900]),
    "histogram, below 0": partial(plot.histogram, GeometricMechanism(1), [-4, -1, 3, 0]),
    "histogram, one": partial(plot.histogram, GeometricMechanism(1), [3]),
    "histogram, huge": partial(
        plot.histogram, GeometricMechanism(1), {"a": 10**12, "b": 3 * 10**12}
    ),
    "histogram, huge and small": one_of_four(
        partial(plot.histogram, GeometricMechanism(1), {"a": 10**12, "b": -(10**12)})
    ),
    "histogram, dates": partial(plot.histogram, WIDE, pd.Series(range(60), DAYS)),
    "table, huge": partial(plot.table, GeometricMechanism(1), [[10**12, 3], [123456789, -5]]),
    "table, large": partial(plot.table, WIDE, np.full((40, 10), 123)),
}


def check_texts(axes: Axes) -> None:
    """Check that the texts of a figure fit into it, and that none overlap."""
    texts = shown_texts(axes.figure)  # type: ignore[arg-type]
    assert len(texts) > 5
    for text, box in texts:
        assert 0 <= box.x0 < box.x1 <= 800, text
        assert 0 <= box.y0 < box.y1 <= 450, text
    for (one, box), (other, second) in itertools.combinations(texts, 2):
        # Boxes are slightly larger than the text.
        width = min(box.x1, second.x1) - max(box.x0, second.x0)
        height = min(box.y1, second.y1) - max(box.y0, second.y0)
        assert width < 1 or height < 1, (one, other)


@pytest.mark.parametrize("name", LOOKS)
def test_texts_fit_and_do_not_overlap(name: str, ax: Axes) -> None:
    check_texts(LOOKS[name](ax=ax))


@pytest.mark.parametrize("name", plot.__all__)
def test_example_draws(name: str) -> None:
    assert run(getattr(plot, name).__doc__, name) == (0, ANY)
    check_texts(pyplot.gca())


# Distributions


@pytest.mark.parametrize("counts", [[19, 20, 21], [0], [30, 0]])
def test_stems_show_the_pmf(counts: list[int], ax: Axes) -> None:
    plot.pmf(MECHANISM, counts, ax=ax)
    drawn = points(ax)
    assert list(drawn) == [str(count) for count in counts]
    stems = [stem for stem in ax.collections if isinstance(stem, LineCollection)]
    for i, (count, collection) in enumerate(zip(counts, stems, strict=True)):
        places, heights = drawn[str(count)]
        assert close(heights, [mass(0.1, count, (0, 30), y) for y in range(31)])
        # Side by side, close to their integer.
        assert (np.round(places) == range(31)).all()
        assert (abs(places - np.arange(31)) < 0.4).all()
        for j, segment in enumerate(collection.get_segments()):
            assert segment.tolist() == [[places[j], 0], [places[j], heights[j]]]
        assert i == 0 or (places != drawn[str(counts[i - 1])][0]).all()


@pytest.mark.parametrize("rate", [0.02, Fraction(1, 300), 0.1])
def test_steps_show_the_pmf(rate: Any, ax: Axes) -> None:
    counts, bounds = [400, 0, 1000], (0, 1000)
    plot.pmf(GeometricMechanism(rate, bounds=bounds), counts, ax=ax)
    for count in counts:
        edges, heights = steps(ax)[f"{count:,}"]
        outputs = (edges[:-1] + edges[1:]) / 2
        assert (np.diff(edges) == 1).all()
        assert close(heights, [mass(rate, count, bounds, int(y)) for y in outputs])
        # The tails beyond the plot are small.
        assert 1 - math.fsum(heights) <= 1 / 200
        assert 0 <= outputs[0] <= count <= outputs[-1] <= 1000


def test_wide_distributions_are_thinned_out(ax: Axes) -> None:
    bounds = (0, 10**6)
    mechanism = GeometricMechanism(1e-5, bounds=bounds)
    plot.pmf(mechanism, [200_000, 10**6], ax=ax)
    for count in (200_000, 10**6):
        edges, heights = steps(ax)[f"{count:,}"]
        assert 500 < len(heights) <= 2003
        # The true count and both ends are drawn.
        exact = CensoredGeometric(count, mechanism.scale, bounds)
        assert heights.max() == max(exact.pmf(count), exact.pmf(0), exact.pmf(10**6))
        ends = [int(edges[0] + 0.5), int(edges[-1] - 0.5)]
        assert heights[[0, -1]].tolist() == exact.pmf(ends).tolist()
        assert (edges[0] == -0.5) == (count == 200_000)
        assert (edges[-1] == 10**6 + 0.5) == (count == 10**6)
        # Each step is about its output, and edges are halfway between outputs.
        outputs = list(itertools.accumulate(edges[1:-1], lambda y, e: 2 * e - y, initial=ends[0]))
        assert outputs[-1] == ends[1]
        assert heights.tolist() == exact.pmf(list(map(int, outputs))).tolist()


def test_mass_at_bounds_does_not_flatten_the_rest(ax: Axes) -> None:
    mechanism = GeometricMechanism(0.01, bounds=(0, 4526))
    plot.pmf(mechanism, [20, 2000], ax=ax)
    # The bound has 100 times the mass of any other output.
    exact = CensoredGeometric(20, mechanism.scale, (0, 4526))
    assert exact.pmf(0) > 80 * exact.pmf(20)
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert low < exact.pmf(500) < exact.pmf(0) < high
    # Its step is thinner than the axis, so a point marks it.
    marks = [(line.get_xdata(), line.get_ydata()) for line in ax.lines]
    assert [(x.tolist(), y.tolist()) for x, y in marks] == [([0], [exact.pmf(0)]), ([], [])]
    ax.clear()
    plot.pmf(MECHANISM, [19, 20, 21], ax=ax)
    assert ax.get_yscale() == "linear"


def test_counts_at_and_outside_limits(ax: Axes) -> None:
    plot.pmf(MECHANISM, [-5, 0], ax=ax)
    assert points(ax)[f"{MINUS}5"][1].tolist() == points(ax)["0"][1].tolist()
    plot.pmf(GeometricMechanism(1), np.array([-128], dtype=np.int8), ax=ax)
    places, heights = points(ax)[f"{MINUS}128"]
    outputs = np.round(places).astype(int).tolist()
    assert outputs[0] == -128
    assert close(heights, [mass(1, -128, (-128, 127), y) for y in outputs])
    bounds, rate = (0, 2**64 - 1), Fraction(1, 2**50)
    plot.pmf(GeometricMechanism(rate, bounds=bounds), [2**64 - 1], ax=ax)
    ((_, heights),) = steps(ax).values()
    assert close(heights[-1], mass(rate, 2**64 - 1, bounds, 2**64 - 1))


def test_true_counts_are_named_once(ax: Axes) -> None:
    plot.pmf(MECHANISM, np.array([[20], [20]]), ax=ax)
    assert ax.get_xlabel() == "noisy count for true count 20"
    assert legend(ax) is None
    ax.clear()
    plot.pmf(MECHANISM, np.array([[19, 21], [19, 20]]), ax=ax)
    assert legend(ax) == ["19", "21", "20"]
    assert ax.get_legend().get_title().get_text() == "true count"


@pytest.mark.parametrize("bounds", [None, (0, 9), (5, 5)])
def test_no_noise_is_one_stem(bounds: Any, ax: Axes) -> None:
    plot.pmf(GeometricMechanism.from_scale(0, bounds), 5, ax=ax)
    ((places, heights),) = points(ax).values()
    assert {place: height for place, height in zip(places, heights, strict=True) if height} == {
        5: 1
    }


# Accuracy


@pytest.mark.parametrize("n", [1, (1, 10, 1000), [np.int8(7)]])
def test_accuracies_by_number_of_counts(n: Any, ax: Axes) -> None:
    plot.accuracy(GRID, alpha=Fraction(1, 20), n=n, sensitivity=2, ax=ax)
    drawn = points(ax)
    assert list(drawn) == [f"{number:,}" for number in np.atleast_1d(n)]
    for number, (places, heights) in drawn.items():
        assert set(GRID) < set(places)
        # The least a such that all errors are at most a with probability 0.95.
        all_ = int(number.replace(",", ""))
        for epsilon, a in zip(places, heights, strict=True):
            q = mpmath.exp(-real(epsilon) / 2)
            within = [(1 - 2 * q ** (int(m) + 1) / (1 + q)) ** all_ for m in (a - 1, a)]
            assert within[1] >= real(Fraction(19, 20)) > (within[0] if a else -1)
    assert {line.get_drawstyle() for line in ax.lines} == {"steps-post"}


def test_accuracy_between_two_epsilons_is_no_cliff(ax: Axes) -> None:
    plot.accuracy([0.1, 2], n=1, ax=ax)
    ((places, heights),) = points(ax).values()
    assert max(places[1:] / places[:-1]) < 1.02
    assert set(heights) == set(range(1, 31))


@pytest.mark.parametrize(
    "epsilons", [[1, np.nextafter(1, 2)], [0.1, 0.2, 0.3], [Fraction(1, 3), 5]]
)
def test_accuracies_are_at_the_given_epsilons_too(epsilons: list[Any], ax: Axes) -> None:
    plot.accuracy(epsilons, n=1, ax=ax)
    ((places, _),) = points(ax).values()
    assert set(map(float, epsilons)) <= set(places.tolist())
    assert (places[0], places[-1]) == (float(epsilons[0]), float(epsilons[-1]))
    assert (np.diff(places) > 0).all()


def test_accuracy_says_for_how_many_counts(ax: Axes) -> None:
    plot.accuracy([1, 2], n=[10], sensitivity=2, ax=ax)
    assert ax.get_ylabel() == "accuracy of all 10 at level 0.05, sensitivity 2 (counts)"
    ax.clear()
    plot.accuracy([1, 2], n=[1, 10], ax=ax)
    assert legend(ax) == ["1", "10"]
    assert ax.get_legend().get_title().get_text() == "counts at once"


def test_accuracy_zero_is_visible(ax: Axes) -> None:
    plot.accuracy([1, 20], alpha=0.5, n=1, ax=ax)
    assert points(ax)["1"][1].tolist()[:: plot._BETWEEN + 1] == [1, 0]
    assert ax.get_ylim()[0] < 0
    assert ax.get_yscale() == "symlog"
    assert ax.get_xscale() == "log"


# Guesses


@pytest.mark.parametrize("epsilon", [1e-12, Fraction(1, 3), 0.5, 2, 30, 10**9])
def test_guesses_are_those_of_a_release_that_tells_most(epsilon: Any, ax: Axes) -> None:
    """Bayes' rule on the two outcomes of randomised response, whose loss is epsilon both ways."""
    plot.guess(epsilon, ax=ax)
    _, below, above = (np.asarray(line.get_ydata(), np.float64) for line in ax.lines)
    before = np.asarray(ax.lines[0].get_xdata(), np.float64)
    assert (before[0], before[-1]) == (0, 1)
    truth = 1 / (1 + mpmath.exp(-real(stated(epsilon))))
    for p, least, most in zip(before, below, above, strict=True):
        after = [
            p * told / (p * told + (1 - p) * (1 - told)) if 0 < p < 1 else p
            for told in (1 - truth, truth)
        ]
        assert [least, most] == [pytest.approx(float(each), abs=1e-12) for each in after]
    with pytest.raises(ValueError, match="8 epsilons are not accepted: give from 1 to 7"):
        plot.guess([*range(1, 9)], ax=ax)
    with pytest.raises(ValueError, match="epsilon = 0 is not accepted"):
        plot.guess([1, 0], ax=ax)


# Histograms


def errorbar(
    axes: Axes, *, across: bool = False
) -> tuple[list[float], list[float], list[list[float]]]:
    """Return x, y, and lower and upper ends; of horizontal bars with `across`."""
    (container,) = [item for item in axes.containers if isinstance(item, ErrorbarContainer)]
    line, _, bars = container.lines
    ends = [segment[:, 1 - across].tolist() for bar in bars for segment in bar.get_segments()]
    return line.get_xdata().tolist(), line.get_ydata().tolist(), ends


#: By `MECHANISM`, whose accuracy at level 0.05 is 23, and 30 with bounds (0, 60).
STATED = "noisy, epsilon 0.1, 95% intervals"


def test_histogram_with_edges(ax: Axes) -> None:
    noisy = np.array([4, 0, 50], ">i4")
    mechanism = GeometricMechanism(0.1, bounds=(0, 60))
    plot.histogram(mechanism, noisy, true=[5, 0, 7], edges=[0, 0.1, 0.2, 0.3], ax=ax)
    ((edges, heights),) = steps(ax).values()
    assert (edges.tolist(), heights.tolist()) == ([0, 0.1, 0.2, 0.3], [5, 0, 7])
    places, counts, ends = errorbar(ax)
    assert np.allclose(places, [0.05, 0.15, 0.25])
    assert counts == [4, 0, 50]
    assert ends == [[0, 34], [0, 30], [20, 60]]
    assert legend(ax) == ["true", STATED]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("value", "count")


def test_unequal_bins_show_counts_per_unit(ax: Axes) -> None:
    mechanism = GeometricMechanism(0.1, bounds=(0, 60))
    plot.histogram(mechanism, [4, 8, 10], true=[2, 0, 6], edges=[0, 1, 3, 3.5], ax=ax)
    ((edges, heights),) = steps(ax).values()
    assert (edges.tolist(), heights.tolist()) == ([0, 1, 3, 3.5], [2, 0, 12])
    assert errorbar(ax) == ([0.5, 2, 3.25], [4, 4, 20], [[0, 34], [0, 19], [0, 80]])
    assert ax.get_ylabel() == "count per unit of value"


def test_named_counts_are_horizontal_bars(ax: Axes) -> None:
    names = ["$a_{$", "", "c"]
    plot.histogram(MECHANISM, [4, 2, 9], true=[5, 0, 7], labels=np.array(names), ax=ax)
    bars = [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    assert [bar.get_width() for bar in bars] == [5, 0, 7]
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == [0, 1, 2]
    assert ax.yaxis_inverted()
    assert errorbar(ax, across=True) == ([4, 2, 9], [0, 1, 2], [[0, 27], [0, 25], [0, 30]])
    assert side(ax, "y") == names
    assert legend(ax) == ["true", STATED]
    render(ax)


def test_publishable_histogram_has_a_legend(ax: Axes) -> None:
    mechanism = GeometricMechanism(Fraction(1, 4), sensitivity=3)
    plot.histogram(mechanism, [4, 2], alpha=0.1, ax=ax)
    assert legend(ax) == ["noisy, epsilon 0.25 at sensitivity 3, 90% intervals"]
    # The bars are the noisy counts.
    ((edges, heights),) = steps(ax).values()
    assert (edges.tolist(), heights.tolist()) == ([-0.5, 0.5, 1.5], [4, 2])
    plot.histogram(GeometricMechanism.from_scale(0), [1], labels=["a"], ax=ax)
    assert legend(ax)[-1] == "noisy, epsilon inf, 95% intervals"  # type: ignore[index]


@pytest.mark.parametrize("height", [9, 1.5])
def test_names_without_room_are_shortened_or_left_out(height: float) -> None:
    names = [3 * name for name in NAMES]
    for draw, counts, names_of in ((plot.histogram, [4], "labels"), (plot.table, [[4]], "rows")):
        axes = Figure(figsize=(8, height), layout="constrained").subplots()
        draw(WIDE, counts * 24, **{names_of: names}, ax=axes)
        texts = side(axes, "y")
        assert len(texts) == 24 if height == 9 else 2 <= len(texts) <= 8
        # The first and last letters of every k-th.
        for text, name in zip(texts, names[:: math.ceil(24 / len(texts))], strict=True):
            assert len(text) > 20
            # Names differ at their ends, too.
            start, _, end = text.partition("…")
            assert name.startswith(start)
            assert end == name[len(name) - len(end) :]
            assert len(end) == len(text) // 3


def test_figure_has_room_for_all_names() -> None:
    names = [f"town {i}" for i in range(200)]
    axes = plot.histogram(WIDE, range(200), labels=names)
    assert side(axes, "y") == names
    names = names[:50]
    table = plot.table(WIDE, np.ones((50, 50), dtype=int), rows=names, columns=names)
    assert side(table, "y") == names
    assert side(table, "x") == names


def test_histogram_of_many_bins_is_steps_with_a_band(ax: Axes) -> None:
    noisy = np.arange(2000) % 31
    plot.histogram(MECHANISM, noisy, ax=ax)
    assert not ax.containers
    check_band(ax, noisy)
    assert legend(ax) == [STATED]


def zero_lines(axes: Axes) -> int:
    return sum(
        [0, 0] in (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes.lines
        if line.get_marker() == "None"
    )


@pytest.mark.parametrize("labels", [None, ["a", "b"], DAYS[:2]])
def test_a_line_marks_zero_where_intervals_are_below_it(labels: Any, ax: Axes) -> None:
    mechanism = GeometricMechanism(0.5)
    assert mechanism.accuracy(0.05) == 6
    for noisy, lines in (([6, 9], 0), ([5, 9], 1), ([-4, -9], 1)):
        ax.clear()
        plot.histogram(mechanism, noisy, labels=labels, ax=ax)
        assert zero_lines(ax) == lines


@pytest.mark.parametrize("labels", [None, ["a", "b", "c", "d"], DAYS[:4]])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scale", ["log", "symlog"])
def test_bars_and_intervals_show_on_logarithmic_axes(
    scale: str, when: str, labels: Any, ax: Axes
) -> None:
    which = "x" if isinstance(labels, list) else "y"
    if when == "before":
        getattr(ax, f"set_{which}scale")(scale)
    noisy = [-4, 2, 120, 4000]
    plot.histogram(GeometricMechanism(0.5), noisy, labels=labels, ax=ax)
    if when == "after":
        getattr(ax, f"set_{which}scale")(scale)
    render(ax)
    low, high = getattr(ax, f"get_{which}lim")()
    assert high > 4006
    assert 1 < low <= 2 if scale == "log" else low <= -10
    assert zero_lines(ax) == (scale == "symlog" or when == "after")
    ticks = [text.get_text() for text in getattr(ax, f"get_{which}ticklabels")()]
    assert any("10^{3}" in text for text in ticks)


def test_letters_of_other_scripts_come_from_other_fonts() -> None:
    with mpl.rc_context({"font.family": ["cmtt10"]}):
        ax = axes_of_a_figure()
        names = pd.Index(["Αθήνα", "Москва"], name="город")
        plot.histogram(MECHANISM, [4, 2], labels=names, ax=ax)
        table = axes_of_a_figure()
        plot.table(MECHANISM, [[4, 2]], columns=names, ax=table)
        for axes in (ax, table):
            render(axes)  # warns of missing glyphs
        first, *others = ax.yaxis.label.get_fontfamily()
        assert (first, bool(others)) == ("cmtt10", True)
        assert all(tick.get_fontfamily()[1:] for tick in ax.get_yticklabels())
        assert all(tick.get_fontfamily()[1:] for tick in table.get_xticklabels())
        # A font that has all letters stays alone.
        assert ax.xaxis.label.get_fontfamily() == ["cmtt10"]


def test_histogram_of_extreme_counts(ax: Axes) -> None:
    mechanism = GeometricMechanism(1, bounds=(0, 2**64 - 1))
    noisy = np.array([2**64 - 1, 0], dtype=np.uint64)
    plot.histogram(mechanism, noisy, true=[-(2**63), 2], alpha=0, ax=ax)
    plot.histogram(mechanism, noisy, edges=[0, 1e-150, 1], ax=ax)
    edges, heights = next(iter(steps(ax).values()))
    assert (edges.tolist(), heights.tolist()) == ([-0.5, 0.5, 1.5], [-(2.0**63), 2])
    render(ax)


# Tables


def test_table_shows_every_count_and_its_accuracy(ax: Axes) -> None:
    noisy = np.array([[4, 1234567, 0], [-1000, 999, 6]], dtype=np.int32)
    plot.table(GeometricMechanism(1e-4), noisy, rows=["x", "y"], columns=["a", "b", "c"], ax=ax)
    shown = {text.get_position()[::-1]: text.get_text() for text in ax.texts}
    numbers = ["4", "1,234,567", "0", f"{MINUS}1,000", "999", "6"]
    assert shown == dict(zip(itertools.product(range(2), range(3)), numbers, strict=True))
    assert ax.images[0].get_array().tolist() == noisy.tolist()  # type: ignore[union-attr]
    assert side(ax, "y") == ["x", "y"]
    assert side(ax, "x") == ["a", "b", "c"]
    reach = simultaneous_accuracy(GeometricMechanism(1e-4), 0.05, n=6)
    title, how = ax.get_title(loc="left").split("\n", 1)
    assert title == "Noisy counts"
    assert " ".join(how.split()) == (
        f"With 95% confidence, all 6 true counts are within {reach:,} of the numbers. Noise of "
        "epsilon 0.0001."
    )


def number(text: Text) -> int:
    return int(text.get_text().replace(",", "").replace(MINUS, "-"))


#: Colours of texts, of figures and of Axes. The last is the site's, whose pictures are transparent.
PAGES = {
    "dark": ("white", "black", "black"),
    "transparent": ("black", "white", "none"),
    "in between": ("#262626", "white", "#9a9a9a"),
    "light": ("black", "white", "white"),
    "site": ("#1b1f24", "none", "none"),
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("least", [-1200, 0, 500])
def test_numbers_contrast_with_their_cells(page: str, least: int) -> None:
    """Between black and white, one has a contrast of 4.58 or more, by the definition of WCAG."""
    names = ("text.color", "figure.facecolor", "axes.facecolor")
    with mpl.rc_context(dict(zip(names, PAGES[page], strict=True))):
        counts = np.linspace(least, 1200, 400, dtype=int)
        axes = plot.table(GeometricMechanism(1), counts.reshape(50, 8))

    def luminance(colors: Any) -> Any:
        parts = np.array(colors)
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    (image,) = axes.images
    behind = {"dark": "black", "in between": "#9a9a9a"}.get(page, "white")
    cells = image.to_rgba(np.array([number(text) for text in axes.texts]))
    share = cells[:, 3:]
    seen = luminance(cells[:, :3] * share + np.array(to_rgb(behind)) * (1 - share))
    written = luminance([to_rgb(text.get_color()) for text in axes.texts])
    contrast = (np.maximum(seen, written) + 0.05) / (np.minimum(seen, written) + 0.05)
    assert contrast.shape == (400,)
    # Black on the strongest blue of a light page looked dark, at 4.6.
    assert contrast.min() >= (5.5 if page in ("light", "transparent") else 4.5)
    # The site takes the colour of its texts for another one on a dark page.
    assert page != "site" or {text.get_color() for text in axes.texts} == {PAGES["site"][0]}


def test_table_colors_begin_at_zero_which_has_none(ax: Axes) -> None:
    plot.table(GeometricMechanism(1), [[500, 505, 510]], ax=ax)
    assert ax.images[0].get_clim() == (0, 510)
    ax.clear()
    plot.table(GeometricMechanism(1), [[-5, 0, 20]], ax=ax)
    (image,) = ax.images
    below, zero, above = image.to_rgba([-5, 0, 20])
    assert zero[3] < 1 / 128  # as the page, light or dark
    # The same distance from 0 has the same strength.
    assert np.isclose(below[3], image.to_rgba(5)[3], atol=1 / 64)
    assert below[0] > below[2]
    assert above[0] < above[2]
    assert above[3] == charts._STRONGEST


def test_table_of_many_rows_shows_colors_alone() -> None:
    axes = plot.table(GeometricMechanism(1), np.arange(120).reshape(60, 2) - 10)
    assert not axes.texts
    [bar] = axes.figure.axes[1:]
    # A colour needs less room than a number: 240 rows were 5000 pixels high.
    for shape, height, width in [
        ((240, 3), 900, 800),
        ((3, 240), 450, 1400),
        ((2000, 51), 2667, 1400),
    ]:
        axes = plot.table(GeometricMechanism(1), np.zeros(shape, int))
        box = axes.figure.bbox
        assert (box.height, box.width) == pytest.approx((height, width), abs=1)
        # Each cell has a pixel or more, so that none is blurred or left out.
        assert axes.images[0].get_interpolation() == "nearest"
    assert bar.get_ylim() == (-10, 109)
    # A line marks zero beside the colors.
    assert [list(line.get_ydata()) for line in bar.lines if len(line.get_ydata())][-1] == [0, 0]
    design = tables.Design({"age": range(51), "sex": ["f", "m"]})
    axes = design.count(pd.DataFrame({"age": [1], "sex": ["f"]})).release(epsilon=1).plot()
    assert len(axes.figure.axes) == 2
    assert axes.images[0].get_clim()[0] == 0


# Tables, frames, columns


PEOPLE = pd.DataFrame({"year": [2024, 2025, 2025, None] * 9, "sick": ["no", "yes", "no"] * 12})
PEOPLE["year"] = PEOPLE["year"].astype("Int64")
YEARS, SICK = [2024, 2025, None], ["yes", "no"]
LEVELS = {"year": YEARS, "sick": SICK}


TREE = tables.Hierarchy({"A": "North", "B": "North", "C": "South", "North": "all", "South": "all"})
#: Designs, what is drawn, and the names of rows and columns.
PUBLISHED: dict[str, tuple[dict[str, Any], Any, list[str], list[str]]] = {
    "column": ({"levels": {"year": YEARS}}, None, ["2024", "2025", "missing"], []),
    "margin": ({"levels": {"year": YEARS}, "margins": -1}, "year", ["2024", "2025", "missing"], []),
    "two": ({"levels": LEVELS}, None, ["2024", "2025", "missing"], ["yes", "no"]),
    "two, margins": (
        {"levels": LEVELS, "margins": {"year": -1, "sick": "both"}},
        ("year", "sick"),
        ["2024", "2025", "missing"],
        ["yes", "no"],
    ),
    "tree": (
        {"levels": {"area": TREE, **LEVELS}},
        "area",
        ["North", "A", "B", "South", "C"],
        [],
    ),
    "three": (
        {"levels": {"area": TREE, **LEVELS}},
        None,
        ["A", "B", "C"],
        ["2024", "2025", "missing"],
    ),
    "one of three": ({"levels": {"area": TREE, **LEVELS}}, ["sick"], ["yes", "no"], []),
}


def told(axes: Axes) -> tuple[str, str]:
    """Return the title of a picture with a figure of its own, and the line below it."""
    figure: Any = axes.figure
    title = figure.get_suptitle().strip()
    return title, " ".join(figure.texts[-1].get_text().split())


def intervals(axes: Axes) -> Any:
    """Return the ends of the lines of a picture of rows."""
    [lines] = axes.collections
    return np.array(lines.get_segments())[:, :, 0]  # type: ignore[attr-defined]


def dots(axes: Axes) -> list[float]:
    """Return the numbers that a picture of rows shows."""
    [line] = axes.lines
    return list(line.get_xdata())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_noisy_table_draws_its_estimates(name: str) -> None:
    given, by, rows, columns = PUBLISHED[name]
    design = tables.Design(**given)
    people = PEOPLE.assign(area=["A", "B", "C"] * 12)
    noisy = design.count(people).release(epsilon=4)
    axes = noisy.plot(by, alpha=0.1)
    assert side(axes, "y") == rows
    title, how = told(axes)
    drawn = title.removeprefix("Count by ").split(" and ")
    found = noisy.total(tuple(drawn), alpha=0.1)
    # Pandas 2 makes floats of integers with nulls.
    keys = found[drawn].map(
        lambda level: "missing" if pd.isna(level) else str(level).removesuffix(".0")
    )
    found = found.set_index([keys[label] for label in drawn])
    if columns:
        assert side(axes, "x") == columns
        wanted = found.loc[[*itertools.product(rows, columns)]]
        shown = wanted["estimate"].clip(0)
        assert [number(text) for text in axes.texts] == shown.round().tolist()
        assert [axes.get_ylabel(), axes.get_xlabel()] == drawn
        together = noisy.total(tuple(drawn), alpha=0.1, simultaneous=True)
        together = together.set_index([keys[label] for label in drawn]).loc[wanted.index]
        middle = together["estimate"].clip(0)
        reach = max((together["upper"] - middle).max(), (middle - together["lower"]).max())
        assert how == (
            f"Estimates. With 90% confidence, all {len(wanted)} true counts are within "
            f"{math.ceil(reach)} of the numbers. Noise of epsilon 4."
        )
    else:
        wanted = found.loc[rows]
        shown = wanted["estimate"].clip(0).round()
        assert dots(axes) == shown.tolist()
        assert close(intervals(axes), wanted[["lower", "upper"]])
        assert [number(text) for text in axes.texts] == shown.tolist()
        assert how == "Dot: estimate. Line: 90% interval. Noise of epsilon 4."
        weights = [label.get_fontweight() for label in axes.get_yticklabels()]
        assert weights == [
            "bold" if name == "tree" and row in ("North", "South") else "normal" for row in rows
        ]
    texts = shown_texts(axes.figure)  # type: ignore[arg-type]
    width, height = axes.figure.canvas.get_width_height()  # type: ignore[attr-defined]
    assert all(0 <= box.x0 < box.x1 <= width for _, box in texts)
    assert all(0 <= box.y0 < box.y1 <= height for _, box in texts)


def test_increasing_numbers_are_places_on_the_axis() -> None:
    ages = tables.Design({"age": [0, 18, 65]}).count(pd.DataFrame({"age": [18] * 90}))
    noisy = ages.release(epsilon=1)
    axes = noisy.plot()
    assert axes.get_xlabel() == "age"
    [line] = axes.lines
    assert np.asarray(line.get_xdata()).tolist() == [0, 18, 65]
    assert np.asarray(line.get_ydata()).tolist() == noisy.counts.clip(0).tolist()
    assert [number(text) for text in axes.texts] == [max(noisy.counts.tolist()[-1], 0)]
    # More of them have a line with a band.
    many = tables.Design({"age": range(40)}).count(pd.DataFrame({"age": [18] * 90}))
    axes = many.release(epsilon=1).plot()
    assert len(axes.collections) == len(axes.lines) == 1
    assert told(axes)[1] == "Line: estimate. Band: 95% interval of each. Noise of epsilon 1."


def test_tiers_are_drawn_together_and_named() -> None:
    wards = tables.Design({"ward": ["Births", "Eyes"]}).count(pd.DataFrame({"ward": ["Eyes"] * 88}))
    made = wards.release(tiers={"public": "0.1", "researchers": 1})
    axes = made.plot()
    assert side(axes, "y") == ["Births", "Eyes"]
    ends = [
        np.array(lines.get_segments())[:, :, 0]  # type: ignore[attr-defined]
        for lines in axes.collections
    ]
    for drawn, tier in zip(ends, ["researchers", "public"], strict=True):
        assert close(drawn, made[tier].intervals(0.05)[["lower", "upper"]])
    names = [text.get_text().split() for text in axes.texts]
    assert [name for _, name in names] == ["researchers"] * 2 + ["public"] * 2
    title, how = told(axes)
    assert title == "Count by ward, at 2 precisions"
    assert "researchers has epsilon 1; public has epsilon 0.1. Use the most precise one" in how
    two = tables.Design({"a": [1], "b": [1]}).count(pd.DataFrame({"a": [1], "b": [1]}))
    made = two.release(tiers={"public": "0.1", "office": 1})
    with pytest.raises(ValueError, match="give one column"):
        made.plot(("a", "b"))


def test_a_stream_states_the_epsilon_of_the_whole_stream(tmp_path: Path) -> None:
    """Not that of a step, which was half of it."""
    stream = Stream.open(tmp_path / "visits.jsonl", epsilon=1)
    for day in range(2):
        stream.release(day, [512, 70][: day + 1])
    assert told(stream.plot())[1].endswith("Noise of epsilon 1 for the whole stream.")


def test_pictures_on_given_axes_leave_the_figure_alone(ax: Axes) -> None:
    noisy = tables.Design(LEVELS).count(PEOPLE).release(epsilon=1)
    for by in ("sick", None):
        ax.clear()
        assert noisy.plot(by, ax=ax) is ax
        figure: Any = ax.figure
        assert not figure.get_suptitle()
        assert ax.get_title(loc="left").startswith("Count by ")
        assert not pyplot.get_fignums()


def test_long_names_that_differ_stay_different() -> None:
    long = [f"{'activities nowhere else classified, ' * 5}{n}" for n in range(3)]
    noisy = tables.Design({"industry": long}).count(pd.DataFrame({"industry": long}))
    assert len({*side(noisy.release(epsilon=1).plot(), "y")}) == 3
    assert len({*side(noisy.release(epsilon=1).plot(ax=axes_of_a_figure()), "y")}) == 3


def test_an_estimate_below_zero_is_drawn_at_zero_with_the_interval_of_zero() -> None:
    table = tables.Design({"town": [f"t{x}" for x in range(40)]}).count(
        pd.DataFrame({"town": ["t0"]})
    )
    noisy = table.release(epsilon="0.1")
    axes = noisy.plot()
    found = noisy.intervals(0.05)
    assert found["estimate"].min() < 0 == min(dots(axes))
    assert close(intervals(axes), found[["lower", "upper"]])


def test_of_many_rows_the_largest_are_drawn() -> None:
    towns = [f"town {x}" for x in range(1000)]
    table = tables.Design({"town": towns}).count(pd.DataFrame({"town": towns[:45] * 50}))
    noisy = table.release(epsilon=1)
    axes = noisy.plot()
    title, how = told(axes)
    assert title == "Count by town: the 40 largest of 1,000"
    assert "95% interval (wider, so that all 1,000 hold at once)" in how
    largest = noisy.total("town").nlargest(40, "estimate", keep="first")
    assert side(axes, "y") == largest["town"].tolist()
    groups = table.release(epsilon=1, at_least=30)
    axes = groups.plot()
    frame = groups.intervals(0.05)
    assert side(axes, "y") == frame["town"].tolist()
    assert close(intervals(axes), frame[["lower", "upper"]])
    with pytest.raises(ValueError, match=r"^a release without groups has no picture$"):
        table.release(epsilon=1, at_least=10**6).plot()


def test_the_largest_are_drawn_by_name_alone() -> None:
    data = pd.DataFrame({"town": ["x"] * 900 + ["y"] * 500, "sick": ["no"] * 1400})
    top = tables.Design({"town": ["x", "y"], "sick": ["yes", "no"]}).count(data).top(2, epsilon=1)
    axes = top.plot()
    # No mark shows a quantity, since none is published.
    assert not axes.lines
    assert not axes.collections
    assert [text.get_text() for text in axes.texts] == ["1", "x, no", "2", "y, no"]
    assert told(axes) == (
        "The 2 largest by town and sick",
        "In order, as chosen from counts with noise. With 95% confidence, no count left out is "
        f"larger by more than {top.accuracy(0.05)}. Epsilon 1.",
    )


def test_pictures_of_too_many_columns_are_refused() -> None:
    noisy = tables.Design(LEVELS).count(PEOPLE).release(epsilon=1)
    for by, kind, message in [
        ((), ValueError, r"^by = \(\) is not accepted: give one column or two"),
        ("area", KeyError, "by = 'area' is no column of the table"),
    ]:
        with pytest.raises(kind, match=message):
            noisy.plot(by)
    wide = tables.Design({"a": range(2001), "b": [1, 2]}).count(pd.DataFrame({"a": [1], "b": [1]}))
    with pytest.raises(ValueError, match=r"^the table is of shape \(2001, 2\): give by"):
        wide.release(epsilon=1).plot()


@pytest.mark.parametrize("of_library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_a_release_are_drawn(of_library: Callable[[pd.DataFrame], Any]) -> None:
    data = of_library(PEOPLE)
    cells = tables.Design(LEVELS).count(data).release(epsilon=2)
    axes = plot.table(cells.mechanisms[0, 0], cells.frame)
    assert side(axes, "y") == ["2024", "2025", "missing"]
    assert [number(text) for text in axes.texts] == list(cells.to_dict().values())
    years = tables.Design({"year": YEARS}).count(data).release(epsilon=2)
    axes = plot.histogram(years.mechanisms[0,], years.frame)
    assert axes.get_ylabel() == "year"
    assert side(axes, "y") == ["2024", "2025", "missing"]
    with pytest.raises(ValueError, match=r"^noisy is a frame whose rows are not all combinations"):
        plot.histogram(years.mechanisms[0,], years.intervals(0.05))


def test_pivot_is_drawn_with_its_labels() -> None:
    noisy = tables.Design({"sick": SICK, "year": YEARS[:2]}).count(PEOPLE.dropna())
    frame = noisy.release(epsilon=2).frame.astype({"year": "int64"})
    pivot = frame.pivot(index="year", columns="sick", values="count")
    axes = plot.table(GeometricMechanism(2), pivot)
    assert (side(axes, "y"), side(axes, "x")) == (["2024", "2025"], ["no", "yes"])
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("year", "sick")
    assert [number(text) for text in axes.texts] == pivot.to_numpy().ravel().tolist()


@pytest.mark.parametrize(
    ("index", "names"),
    [
        ([2024, 2025, 2026], ["2024", "2025", "2026"]),
        (pd.date_range("2026-01-31", periods=3), ["2026-01-31", "2026-02-01", "2026-02-02"]),
        (["nan", np.nan, pd.NA], ["nan", "missing", "missing"]),
        ([0.5, 1.5, np.nan], ["0.5", "1.5", "missing"]),
        (pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), ["a, 1", "a, 2", "b, 1"]),
        (pd.period_range("2026-01", periods=3, freq="M"), ["2026-01", "2026-02", "2026-03"]),
    ],
)
def test_any_index_names_the_counts(index: Any, names: list[str]) -> None:
    if not isinstance(index, pd.DatetimeIndex):
        axes = plot.histogram(MECHANISM, pd.Series([4, 2, 9], index))
        assert side(axes, "y") == names
    axes = plot.table(MECHANISM, [[4, 2, 9]], columns=index, rows=pd.Index(["one"], name="age"))
    assert (side(axes, "x"), side(axes, "y"), axes.get_ylabel()) == (names, ["one"], "age")


@pytest.mark.parametrize(
    "days",
    [
        DAYS,
        DAYS.tz_localize("Asia/Tokyo"),
        pl.Series("day", DAYS.to_list()),
        pd.Index(DAYS.date, name="day"),
        pd.Series(DAYS.to_numpy(), name="day"),
    ],
)
def test_dates_are_an_axis_with_a_band(days: Any, ax: Axes) -> None:
    noisy = np.arange(60) % 31
    plot.histogram(MECHANISM, noisy, labels=days, ax=ax)
    edges = check_band(ax, noisy)
    # Each count lasts until the next day.
    start = mpl.dates.date2num(next(iter(days)))
    assert np.allclose(edges, start + np.arange(61), rtol=0, atol=1e-6)
    render(ax)
    assert side(ax, "x")[:3] == ["Jan", "08", "15"]
    assert ax.get_xlabel() == "day"


@pytest.mark.parametrize(("days", "offset"), [(31, "2026"), (20, "2026-Oct")])
def test_days_of_one_month_do_not_show_the_next(days: int, offset: str, ax: Axes) -> None:
    index = pd.date_range("2026-10-03", periods=days, name="day")
    plot.histogram(MECHANISM, pd.Series(range(days), index=index), ax=ax)
    render(ax)
    assert ax.xaxis.get_offset_text().get_text() == offset
    assert ax.get_xlabel() == "day"


def test_months_are_not_divided_by_their_days(ax: Axes) -> None:
    months = pd.date_range("2026-01-01", periods=3, freq="MS")
    plot.histogram(MECHANISM, [20, 20, 20], labels=months, ax=ax)
    bars = next(patch.get_data() for patch in ax.patches if isinstance(patch, StepPatch))
    assert bars.values.tolist() == [20, 20, 20]
    assert ax.get_ylabel() == "count"


@pytest.mark.parametrize(
    "names",
    [
        [DAYS[0]],
        [DAYS[1], DAYS[0]],
        [DAYS[0], DAYS[0]],
        [DAYS[0], pd.NaT],
        [DAYS[0], "all"],
        np.array(["9999-01-01", "20000-01-01"], dtype="datetime64[D]"),
    ],
)
def test_dates_that_are_no_axis_are_names(names: Any, ax: Axes) -> None:
    plot.histogram(MECHANISM, [4] * len(names), labels=names, ax=ax)
    assert not [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    assert len(side(ax, "y")) == len(names)


# Invalid parameters


MASKED = np.ma.masked_array([1, 2], mask=[True, False])
TIMES = np.array([1, 2], dtype="timedelta64[ns]")
accuracy = plot.accuracy
pmf, histogram = partial(plot.pmf, MECHANISM), partial(plot.histogram, MECHANISM)
table = partial(plot.table, MECHANISM)
small, wide = GeometricMechanism(1, bounds=(0, 200)), GeometricMechanism(1)


REFUSED: list[tuple[Callable[..., Axes], Any, type[Exception], str]] = [
    (pmf, [], ValueError, "0 counts are not accepted: give from 1 to 7"),
    (pmf, range(8), ValueError, "8 counts are not accepted: give from 1 to 7"),
    (pmf, [1, 2.0], TypeError, "counts with a float are not accepted"),
    (partial(plot.pmf, small), np.int8(1), OverflowError, r"bounds = \(0, 200\) is not accepted"),
    (partial(plot.pmf, 0.5), 1, TypeError, "mechanism has type float: give a GeometricMechanism"),
    (partial(plot.pmf, wide), 2**62, ValueError, "outputs that do not increase in float64"),
    (histogram, [], ValueError, r"noisy is of shape \(0,\): give a row of at least one number"),
    (partial(histogram, true=[1, 2]), [1], ValueError, r"true is of shape \(2,\): give a row of 1"),
    (partial(histogram, true=[1.0]), [1], TypeError, "true: counts with a float are not accepted"),
    (partial(plot.histogram, 0.5), [1], TypeError, "mechanism has type float: give a Geometric"),
    (
        partial(plot.histogram, tables.Design([1])),
        [1],
        TypeError,
        "mechanism has type Design: give a GeometricMechanism; a noisy table has plot",
    ),
    (histogram, [31], ValueError, r"released counts outside the bounds \(0, 30\) are not accepted"),
    (histogram, [True], TypeError, "noisy: counts with a bool are not accepted"),
    (histogram, [2**64], OverflowError, "noisy: counts beyond int64 are not accepted"),
    (partial(histogram, labels=["a"], edges=[0, 1]), [1], TypeError, "labels and edges are alter"),
    (histogram, [1] * 2001, ValueError, "noisy has 2001 counts: draw parts of at most 2000"),
    (histogram, dict.fromkeys(map(str, range(201)), 1), ValueError, "noisy has 201 named counts: "),
    (partial(histogram, labels="a"), [1], TypeError, "labels = 'a' is not accepted"),
    (partial(histogram, labels=[]), [1], ValueError, "0 labels are not accepted: give 1"),
    (partial(histogram, edges=[0]), [1], ValueError, r"edges is of shape \(1,\): give a row of 2"),
    (partial(histogram, edges=[1, 1]), [1], ValueError, "edges that do not increase in float64"),
    (partial(histogram, edges=[0, math.inf]), [1], ValueError, "edges = inf is not accepted"),
    (partial(histogram, edges=[0, 1e200]), [1], ValueError, "one of edges is too large"),
    (partial(histogram, alpha=2), [1], ValueError, "alpha = 2 is not accepted"),
    (table, [1], ValueError, r"noisy is of shape \(1,\): give two dimensions"),
    (
        table,
        np.ones((2001, 1), int),
        ValueError,
        r"noisy is of shape \(2001, 1\): give two dimensi",
    ),
    (table, [[]], ValueError, r"noisy is of shape \(1, 0\): give two dimensions"),
    (table, [[31]], ValueError, r"released counts outside the bounds \(0, 30\) are not accepted"),
    (table, [[0.5]], TypeError, "noisy: counts with a float are not accepted"),
    (partial(table, rows=["a", "b"]), [[1]], ValueError, "2 rows are not accepted: give 1"),
    (partial(table, columns=3), [[1]], TypeError, "columns = 3 is not accepted: give a sequence"),
    (partial(plot.table, 0.5), [[1]], TypeError, "mechanism has type float: give a Geometric"),
    (partial(accuracy, alpha=0), [1, 2], ValueError, "alpha = 0 is not accepted"),
    (partial(accuracy, n=0), [1, 2], ValueError, "n = 0 is not accepted"),
    (partial(accuracy, n="1"), [1, 2], TypeError, "n = '1' is not accepted"),
    (partial(accuracy, n=[]), [1, 2], ValueError, "0 numbers n are not accepted: give from 1 to 7"),
    (partial(accuracy, sensitivity=0), [1, 2], ValueError, "sensitivity = 0 is not accepted"),
    (partial(accuracy, alpha=1e-200), [1, 2], ValueError, "alpha or sensitivity is too large or"),
    (partial(accuracy, sensitivity=1e20), [1e-140, 1], ValueError, "an accuracy is too large"),
]
EPSILONS: list[tuple[Any, type[Exception], str]] = [
    ([], ValueError, r"epsilons of type list is not accepted: give two or more"),
    (1, TypeError, "epsilons = 1 is not accepted: give a sequence or an array of numbers"),
    ([1, b"2"], TypeError, "epsilons has type bytes"),
    ([0, 1], ValueError, "epsilons = 0 is not accepted: give a finite number above 0"),
    ([2, 1], ValueError, "epsilons that do not increase in float64"),
    ([1, 1 + Fraction(1, 10**30)], ValueError, "epsilons that do not increase in float64"),
    ([5e-324, 1], ValueError, "one of epsilons is too large or too small for a plot"),
    ([Fraction(1, 10**400), 1], ValueError, "one of epsilons is too large or too small"),
    (np.array([[1, 2]]), TypeError, "epsilons .*is not accepted: give a sequence"),
    (MASKED, TypeError, "epsilons is a masked array"),
    (TIMES, TypeError, "epsilons (= .*|of type \\w+) is not accepted"),
]
REFUSED += [(accuracy, *case) for case in EPSILONS]


@pytest.mark.parametrize(("draw", "value", "kind", "message"), REFUSED)
def test_invalid_parameters_raise_and_draw_nothing(
    draw: Callable[..., Axes], value: Any, kind: type[Exception], message: str, ax: Axes
) -> None:
    for axes in (None, ax):
        with pytest.raises(kind, match=f"^{message}"):
            draw(value, ax=axes)
    assert not pyplot.get_fignums()
    assert not ax.has_data()
    assert not ax.get_xlabel()


@each_picture
def test_invalid_axes_raise(name: str) -> None:
    with pytest.raises(TypeError, match=r"^ax has type module: give Axes of matplotlib, or None$"):
        PICTURES[name](ax=pyplot)


# Any parameters


extreme = st.one_of(
    st.floats(1e-140, 1e140),
    st.floats(0.01, 10),
    st.builds(Fraction, st.integers(1, 10**30), st.integers(1, 10**30)),
)


def refusal(draw: Callable[[], Axes]) -> str | None:
    """Return the message of an expected ValueError, or None if the plot was drawn."""
    try:
        draw()
    except ValueError as error:
        reasons = ("too large or too small for a plot", "do not increase in float64")
        if any(reason in str(error) for reason in reasons):
            return str(error)
        raise
    return None


@settings(max_examples=15, deadline=None)
@given(st.lists(extreme, min_size=2, max_size=5), st.floats(1e-100, 0.5), extreme)
@example([1, 1.0000000000000002], 0.05, 1)
@example([1e-140, 1e140], 0.5, 1)
def test_accepted_numbers_can_be_drawn(epsilons: list[Any], alpha: float, reach: Any) -> None:
    """Accepted numbers cause neither warnings nor errors of matplotlib."""
    axes = axes_of_a_figure()
    if refusal(lambda: plot.accuracy(epsilons, alpha=alpha, sensitivity=reach, ax=axes)) is None:
        render(axes)


@settings(max_examples=15, deadline=None)
@given(
    st.one_of(st.floats(1e-15, 100), st.integers(1, 2**40).map(lambda n: Fraction(1, n))),
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**62)),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=7),
)
@example(1, (0, 0), [0])
@example(1, (2**53 - 5, 10), [2**53])
def test_distributions_of_any_width_can_be_drawn(
    epsilon: Any, interval: tuple[int, int], counts: list[int]
) -> None:
    lower, width = interval
    mechanism = GeometricMechanism(epsilon, bounds=(lower, min(lower + width, 2**63 - 1)))
    axes = axes_of_a_figure()
    if refusal(lambda: plot.pmf(mechanism, counts, ax=axes)) is not None:
        return
    render(axes)
    drawn = [*points(axes).values(), *steps(axes).values()]
    assert len(drawn) == len(set(counts))
    assert all(0 <= height <= 1 for _, heights in drawn for height in heights)


def test_no_name_is_a_formula() -> None:
    """A column "price ($)" beside "tax ($)" stood in italics, and "$\\x$" was an error."""
    names = ["$a_{$", "$\\x$"]
    pairs, people = [*zip(names, names, strict=True)], {"$\\x$": names * 40, "y$\\x$": names * 40}
    listed = tables.Design({("$\\x$", "y$\\x$"): pairs, "z$\\x$": names}, name="$n\\x$")
    frame = pd.DataFrame(people | {"z$\\x$": names[:1] * 80})
    one, other = (listed.count(frame).release(epsilon=1) for _ in range(2))
    words = tables.Design({"$w\\x$": tables.Words("$\\x{_^", 4)}).count(
        frame[["$\\x$"]].set_axis(["$w\\x$"], axis=1)
    )
    drawn = [
        one.plot,
        *(partial(each.plot, "$\\x$") for each in (one, one.plus(other), one.combine(other))),
        lambda: words.release(epsilon=9, at_least=9).plot(),
        listed.plot,
        lambda: tables.Design({"$\\x$": names}, tables=["$\\x$"]).plot(),
    ]
    for draw in drawn:
        axes = draw()
        axes.figure.canvas.draw()
        pyplot.close("all")
