"""Plots: their artists against exact data, and that texts fit into the figure without overlap."""

import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import matplotlib as mpl
import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text
from mpmath import mpf

from exact import noise, real, tail
from geomdp import GeometricMechanism, plot, rejection
from geomdp.accuracy import epsilon_to_accuracy
from geomdp.distribution import CensoredGeometric

mpl.use("Agg")

CLOSE = 2.0**-49
GRID = np.geomspace(0.05, 10, 60)
RUNS = {"geometric": np.array([[1.0, 2, 3], [3, 2, 9]]), "Laplace": np.ones((5, 3))}
MECHANISM = GeometricMechanism(epsilon=0.1, bounds=(0, 30))
NARROW = [0.1, 1, 10]

#: A plot of each kind.
PICTURES: dict[str, Callable[[Any], Axes]] = {
    "pmf": lambda ax: plot.pmf(MECHANISM, [19, 20, 21], ax=ax),
    "distribution": lambda ax: plot.distribution(
        range(31), {"a": rejection.pmf(0.1, 30, 20)}, ax=ax
    ),
    "accuracy": lambda ax: plot.accuracy(GRID, ax=ax),
    "variance": lambda ax: plot.variance(GRID, ax=ax),
    "error": lambda ax: plot.error(NARROW, RUNS, ax=ax),
    "histogram": lambda ax: plot.histogram([5, 6], [4, 9], accuracy=3, ax=ax),
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


# All plots


@each_picture
def test_draws_on_the_given_axes(name: str, ax: Axes) -> None:
    before = dict(mpl.rcParams)
    ax.plot([1, 9], [1, 5000])
    assert PICTURES[name](ax) is ax
    assert not pyplot.get_fignums()
    assert dict(mpl.rcParams) == before
    # The limits cover everything drawn, before and after.
    ax.plot([1, 9], [1, 70000])
    assert ax.get_ylim()[1] >= 70000


@each_picture
def test_makes_one_pyplot_figure_without_axes(name: str) -> None:
    before = dict(mpl.rcParams)
    axes = PICTURES[name](None)
    assert dict(mpl.rcParams) == before
    assert isinstance(axes, Axes)
    assert pyplot.get_fignums() == [axes.figure.number]  # type: ignore[union-attr]
    assert axes.figure.axes == [axes]
    assert axes.figure.bbox.bounds == (0, 0, 800, 450)


@pytest.mark.parametrize(
    ("name", "x", "y", "series"),
    [
        ("pmf", "noisy count", "probability", 3),
        ("distribution", "noisy count", "probability", 1),
        ("accuracy", "epsilon", "accuracy at level 0.05 (counts)", 3),
        ("variance", "epsilon", "variance (squared counts)", 2),
        ("error", "epsilon", "error (counts)", 2),
        ("histogram", "number of the bin", "count", 2),
    ],
)
def test_labels_and_legends(name: str, x: str, y: str, series: int, ax: Axes) -> None:
    PICTURES[name](ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (x, y)
    names = ax.get_legend_handles_labels()[1]
    assert len(names) == series
    # One series needs no legend.
    assert legend(ax) == (names if series > 1 else None)


def test_pyplot_is_not_imported_for_given_axes() -> None:
    script = """
import sys
from geomdp import GeometricMechanism, plot
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
axes = Figure().subplots()
plot.pmf(GeometricMechanism(1), 3, ax=axes)
plot.accuracy([1, 2], ax=axes)
plot.variance([1, 2], ax=axes)
plot.error([1, 2], {"a": [[1, 2]]}, ax=axes)
plot.histogram([1], [2], ax=axes)
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@each_picture
def test_missing_matplotlib_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install geomdp\[plot\]"):
        PICTURES[name](None)


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


def many_bins(ax: Any) -> Axes:
    counts = np.arange(50) ** 2
    return plot.histogram(counts, counts, edges=np.linspace(40_000, 400_000, 51), ax=ax)


def many_names(ax: Any) -> Axes:
    names = [f"department {letter}, women, rejected" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"]
    return plot.histogram(range(24), range(24), labels=names, accuracy=5, ax=ax)


LOOKS: dict[str, Callable[[Any], Axes]] = {
    **PICTURES,
    "pmf of one count": lambda ax: plot.pmf(GeometricMechanism(0.5), 7, ax=ax),
    "pmf of seven": lambda ax: plot.pmf(MECHANISM, range(0, 28, 4), ax=ax),
    "pmf in steps": lambda ax: plot.pmf(GeometricMechanism(0.01), [10**6, 10**6 + 200], ax=ax),
    "pmf of vast counts": lambda ax: plot.pmf(GeometricMechanism(1), [2**53 - 40], ax=ax),
    "accuracy, narrow": lambda ax: plot.accuracy(np.linspace(0.2, 0.5, 50), 0.01, ax=ax),
    "accuracy, wide": lambda ax: plot.accuracy(np.geomspace(1e-9, 50, 50), ax=ax),
    "accuracy, sensitive": lambda ax: plot.accuracy(GRID, 1e-9, sensitivity=1000, ax=ax),
    "variance, narrow": lambda ax: plot.variance(np.linspace(2.9, 6, 50), ax=ax),
    "variance, wide": lambda ax: plot.variance(np.geomspace(1e-6, 50, 50), ax=ax),
    "histogram, bins": many_bins,
    "histogram, names": many_names,
    "histogram, few names": lambda ax: plot.histogram(
        None, range(5), labels=["young", "old", "$ of {", "_", "in\nbetween"], ax=ax
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_texts_fit_and_do_not_overlap(name: str, ax: Axes) -> None:
    LOOKS[name](ax)
    texts = shown_texts(ax.figure)  # type: ignore[arg-type]
    assert len(texts) > 5
    for text, box in texts:
        assert 0 <= box.x0 < box.x1 <= 800, text
        assert 0 <= box.y0 < box.y1 <= 450, text
    for (one, box), (other, second) in itertools.combinations(texts, 2):
        # Boxes are slightly larger than the text.
        width = min(box.x1, second.x1) - max(box.x0, second.x0)
        height = min(box.y1, second.y1) - max(box.y0, second.y0)
        assert width < 1 or height < 1, (one, other)


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
        edges, heights = steps(ax)[str(count)]
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
        edges, heights = steps(ax)[str(count)]
        assert 500 < len(heights) <= 2003
        # The true count and both ends are drawn.
        exact = CensoredGeometric(count, mechanism.scale, bounds)
        assert heights.max() == max(exact.pmf(count), exact.pmf(0), exact.pmf(10**6))
        ends = [int(edges[0] + 0.5), int(edges[-1] - 0.5)]
        assert heights[[0, -1]].tolist() == exact.pmf(ends).tolist()
        assert (edges[0] == -0.5) == (count == 200_000)
        assert (edges[-1] == 10**6 + 0.5) == (count == 10**6)


def test_counts_at_and_outside_limits(ax: Axes) -> None:
    plot.pmf(MECHANISM, [-5, 0], ax=ax)
    assert points(ax)["-5"][1].tolist() == points(ax)["0"][1].tolist()
    plot.pmf(GeometricMechanism(1), np.array([-128], dtype=np.int8), ax=ax)
    places, heights = points(ax)["-128"]
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


def test_steps_around_uneven_outputs(ax: Axes) -> None:
    outputs = np.arange(200) ** 2
    plot.distribution(outputs, {"a": np.ones(200)}, ax=ax)
    edges, _ = steps(ax)["a"]
    assert (edges[0], edges[-1]) == (-0.5, 199**2 + 0.5)
    assert edges[1:-1].tolist() == ((outputs[1:] + outputs[:-1]) / 2).tolist()


# Accuracy


def test_accuracies_by_each_method(ax: Axes) -> None:
    plot.accuracy(GRID, Fraction(1, 20), sensitivity=2, ax=ax)
    drawn = points(ax)
    assert set(drawn) == {"exact", "ceiling", "continuous"}
    for method, (places, heights) in drawn.items():
        assert places.tolist() == GRID.tolist()
        wanted = epsilon_to_accuracy(GRID, Fraction(1, 20), 2, method=method)
        assert heights.tolist() == wanted.tolist()
    for epsilon, a in zip(GRID, drawn["exact"][1], strict=True):
        q = mpmath.exp(-real(epsilon) / 2)
        beyond = [2 * q ** (int(n) + 1) / (1 + q) for n in (a - 1, a)]
        assert beyond[1] <= real(Fraction(1, 20)) < (beyond[0] if a else 1)
    assert ax.get_ylabel() == "accuracy at level 0.05, sensitivity 2 (counts)"


def test_accuracies_are_drawn_as_steps(ax: Axes) -> None:
    plot.accuracy([0.5, 1, 2], ax=ax)
    styles = {line.get_label(): line.get_drawstyle() for line in ax.lines}
    assert styles == {"exact": "steps-post", "ceiling": "steps-post", "continuous": "default"}


def test_accuracy_zero_is_visible(ax: Axes) -> None:
    plot.accuracy([1, 20], 0.5, ax=ax)
    assert points(ax)["exact"][1].tolist() == [1, 0]
    assert ax.get_ylim()[0] < 0
    assert ax.get_yscale() == "symlog"
    assert ax.get_xscale() == "log"


# Variance


def geometric_variance(rate: Any) -> mpf:
    a = mpmath.exp(-real(rate))
    return 2 * a / (1 - a) ** 2


@pytest.mark.parametrize("sensitivity", [1, 3, Fraction(1, 7), 0.3])
def test_variances(sensitivity: Any, ax: Axes) -> None:
    plot.variance(GRID, sensitivity=sensitivity, ax=ax)
    drawn = points(ax)
    rates = [Fraction(epsilon) / Fraction(sensitivity) for epsilon in GRID]
    assert close(drawn["geometric"][1], [float(geometric_variance(rate)) for rate in rates])
    assert close(drawn["Laplace"][1], [float(2 / real(rate) ** 2) for rate in rates])
    assert (drawn["geometric"][0] == GRID).all()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def tenfold() -> mpf:
    """Return the root of ``(sinh(x / 2) / (x / 2))**2 = 10``."""
    return mpmath.findroot(lambda x: (mpmath.sinh(x / 2) / (x / 2)) ** 2 - 10, 6)


def marks(axes: Axes) -> dict[str, tuple[Any, Any]]:
    """Return the texts of marks, with the line between the two variances."""
    lines = [line for line in axes.lines if str(line.get_label()).startswith("_")]
    assert len(lines) == len(axes.texts)
    return {
        text.get_text(): (line.get_xdata(), line.get_ydata())
        for text, line in zip(axes.texts, lines, strict=True)
    }


def test_ratios_are_marked_at_epsilon_3_and_where_they_reach_10(ax: Axes) -> None:
    plot.variance(GRID, ax=ax)
    drawn = marks(ax)
    assert list(drawn) == ["ratio 2.02 at epsilon 3", "ratio 10 at epsilon 5.84"]
    for epsilon, ratio, (places, ends) in zip(
        (3, tenfold()), (2.0150, 10), drawn.values(), strict=True
    ):
        assert places[0] == places[1] == pytest.approx(float(epsilon), rel=1e-14)
        assert close(ends, [float(geometric_variance(places[0])), 2 / places[0] ** 2])
        assert ends[1] / ends[0] == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize(
    ("first", "last", "sensitivity", "shown"),
    [
        (0.1, 2.9, 1, []),
        (0.1, 3, 1, ["ratio 2.02 at epsilon 3"]),
        (3, 4, 1, ["ratio 2.02 at epsilon 3"]),
        (3.01, 5.8, 1, []),
        (4, 5.85, 1, ["ratio 10 at epsilon 5.84"]),
        (0.1, 12, 2, ["ratio 1.2 at epsilon 3", "ratio 10 at epsilon 11.7"]),
    ],
)
def test_marks_are_within_the_plot(
    first: float, last: float, sensitivity: int, shown: list[str], ax: Axes
) -> None:
    plot.variance([first, last], sensitivity=sensitivity, ax=ax)
    assert list(marks(ax)) == shown


# Errors


def test_errors_are_means_and_bands(ax: Axes) -> None:
    plot.error(NARROW, RUNS, ax=ax)
    drawn = points(ax)
    assert list(drawn) == ["geometric", "Laplace"]
    assert drawn["geometric"][0].tolist() == NARROW
    assert drawn["geometric"][1].tolist() == [2, 2, 6]
    assert drawn["Laplace"][1].tolist() == [1, 1, 1]
    # Only one of the series has a deviation, by one standard deviation of its runs.
    (band,) = [item for item in ax.collections if isinstance(item, PolyCollection)]
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert {(0.1, 1), (0.1, 3), (1, 2), (10, 3), (10, 9)} <= corners
    assert corners <= {(0.1, 1), (0.1, 3), (1, 2), (10, 3), (10, 9), (0, 0)}


def test_small_means_are_visible(ax: Axes) -> None:
    plot.error([1, 2], {"none": np.zeros((3, 2), dtype=np.int64)}, ax=ax)
    assert ax.get_yscale() == "linear"
    ax.clear()
    plot.error([1, 2, 3], {"a": [[5, 1, 0], [1, 0, 0]], "b": [[9, 8, 7]]}, ax=ax)
    assert 0 < ax.get_ylim()[0] < 0.5
    assert ax.get_ylim()[1] > 9


# Histograms


def errorbar(axes: Axes) -> tuple[list[float], list[float], list[list[float]]]:
    """Return x, y, and lower and upper ends."""
    (container,) = [item for item in axes.containers if isinstance(item, ErrorbarContainer)]
    line, _, bars = container.lines
    ends = [segment[:, 1].tolist() for bar in bars for segment in bar.get_segments()]
    return line.get_xdata().tolist(), line.get_ydata().tolist(), ends


def test_histogram_with_edges(ax: Axes) -> None:
    plot.histogram([5, 0, 7], np.array([4, -2, 9], ">i4"), edges=[0, 1, 3, 3.5], accuracy=2, ax=ax)
    ((edges, heights),) = steps(ax).values()
    assert (edges.tolist(), heights.tolist()) == ([0, 1, 3, 3.5], [5, 0, 7])
    assert errorbar(ax) == ([0.5, 2, 3.25], [4, -2, 9], [[2, 6], [-4, 0], [7, 11]])
    assert legend(ax) == ["true", "noisy ± 2"]
    assert ax.get_xlabel() == "value"


def test_histogram_with_labels(ax: Axes) -> None:
    names = ["$a_{$", "", "c"]
    plot.histogram([5, 0, 7], [4, 2, 9], labels=np.array(names), accuracy=[1, 2, 3], ax=ax)
    bars = [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    assert [bar.get_height() for bar in bars] == [5, 0, 7]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == [0, 1, 2]
    assert errorbar(ax) == ([0, 1, 2], [4, 2, 9], [[3, 5], [0, 4], [6, 12]])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names
    assert legend(ax) == ["true", "noisy, with intervals"]
    FigureCanvasAgg(ax.figure).draw()  # type: ignore[arg-type]


def test_histogram_without_labels_or_edges(ax: Axes) -> None:
    plot.histogram(None, [4, 2], accuracy=[[1, 2], [3, 4]], ax=ax)
    assert errorbar(ax) == ([0, 1], [4, 2], [[3, 7], [0, 6]])
    assert not ax.patches
    assert legend(ax) is None
    plot.histogram(np.array([2**64 - 1, 0], dtype=np.uint64), [-(2**63), 2], ax=ax)
    ((edges, heights),) = steps(ax).values()
    assert (edges.tolist(), heights.tolist()) == ([-0.5, 0.5, 1.5], [2.0**64, 0])


def test_histogram_of_a_release_with_intervals(ax: Axes) -> None:
    true = np.array([3, 0, 400, 17])
    mechanism = GeometricMechanism(0.2, bounds=(0, 400))
    noisy = mechanism.release(true)
    lower, upper = mechanism.confidence_interval(noisy, alpha=0.05)
    plot.histogram(true, noisy, accuracy=[noisy - lower, upper - noisy], ax=ax)
    pairs = zip(lower.tolist(), upper.tolist(), strict=True)
    assert errorbar(ax)[2] == [list(pair) for pair in pairs]


# Invalid parameters


MASKED = np.ma.masked_array([1, 2], mask=[True, False])
TIMES = np.array([1, 2], dtype="timedelta64[ns]")
accuracy, variance = plot.accuracy, plot.variance
pmf, histogram = partial(plot.pmf, MECHANISM), partial(plot.histogram, [1])
small, wide = GeometricMechanism(1, bounds=(0, 200)), GeometricMechanism(1)


def distribution(outputs: Any, *masses: Any, **options: Any) -> Axes:
    return plot.distribution(outputs, dict(zip("abcdefgh", masses, strict=False)), **options)


def error(rows: Any, epsilons: Any = (1, 2), **options: Any) -> Axes:
    return plot.error(epsilons, {"a": rows}, **options)


REFUSED: list[tuple[Callable[..., Axes], Any, type[Exception], str]] = [
    (pmf, [], ValueError, "0 counts are not accepted: give from 1 to 7"),
    (pmf, range(8), ValueError, "8 counts are not accepted: give from 1 to 7"),
    (pmf, [1, 2.0], TypeError, "counts with a float are not accepted"),
    (partial(plot.pmf, small), np.int8(1), OverflowError, r"bounds = \(0, 200\) is not accepted"),
    (partial(plot.pmf, 0.5), 1, TypeError, "mechanism is a float: give a GeometricMechanism"),
    (partial(plot.pmf, wide), 2**62, ValueError, "outputs that do not increase in float64"),
    (partial(distribution, [1, 1]), [0.5, 0.5], ValueError, "outputs that do not increase in fl"),
    (partial(distribution, []), [], ValueError, r"outputs is of shape \(0,\): give at least one"),
    (partial(distribution, [1.5]), [1], TypeError, "outputs: counts with a float are not acc"),
    (partial(distribution, [2**70]), [1], OverflowError, "outputs: counts beyond int64"),
    (distribution, [1], ValueError, "0 probabilities are not accepted: give from 1 to 7"),
    (partial(distribution, [1], *[[1]] * 7), [1], ValueError, "8 probabilities are not accepted"),
    (partial(plot.distribution, [1]), [1], TypeError, "probabilities is a list: give a mapping"),
    (partial(plot.distribution, [1]), {3: [1]}, TypeError, "probabilities has the key 3: give a"),
    (partial(distribution, [1]), [1, 2], ValueError, r"probabilities\['a'\] is of shape \(2,\)"),
    (partial(distribution, [1]), [-0.1], ValueError, r"probabilities\['a'\] = -0.1 is not accept"),
    (partial(distribution, [1]), [True], TypeError, r"probabilities\['a'\] = True is a bool"),
    (histogram, [], ValueError, r"noisy is of shape \(0,\): give at least one number"),
    (partial(plot.histogram, [1, 2]), [1], ValueError, r"true is of shape \(2,\): give a row of 1"),
    (partial(plot.histogram, [1.0]), [1], TypeError, "true: counts with a float are not accepted"),
    (histogram, [True], TypeError, "noisy: counts with a bool are not accepted"),
    (histogram, MASKED, TypeError, "noisy: counts is a masked array"),
    (histogram, [2**64], OverflowError, "noisy: counts beyond int64 are not accepted"),
    (partial(histogram, labels=["a"], edges=[0, 1]), [1], TypeError, "labels and edges are alter"),
    (partial(histogram, labels="a"), [1], TypeError, "labels = 'a' is not accepted"),
    (partial(histogram, labels=[]), [1], ValueError, "0 labels are not accepted: give one for"),
    (partial(histogram, edges=[0]), [1], ValueError, r"edges is of shape \(1,\): give a row of 2"),
    (partial(histogram, edges=[1, 1]), [1], ValueError, "edges that do not increase in float64"),
    (partial(histogram, edges=[0, math.inf]), [1], ValueError, "edges = inf is not accepted"),
    (partial(histogram, edges=[0, 1e200]), [1], ValueError, "one of edges is too large"),
    (partial(histogram, accuracy=-1), [1], ValueError, "accuracy with a negative number"),
    (partial(histogram, accuracy=[1, 2]), [1], ValueError, r"accuracy is of shape \(2,\)"),
    (partial(histogram, accuracy=0.5), [1], TypeError, "accuracy: counts of type float"),
    (partial(accuracy, alpha=0), [1, 2], ValueError, "alpha = 0 is not accepted"),
    (partial(accuracy, sensitivity=0), [1, 2], ValueError, "sensitivity = 0 is not accepted"),
    (partial(accuracy, alpha=1e-200), [1, 2], ValueError, "alpha or sensitivity is too large or"),
    (partial(accuracy, sensitivity=1e20), [1e-140, 1], ValueError, "an accuracy is too large"),
    (partial(variance, sensitivity=True), [1, 2], TypeError, "sensitivity = True is a bool"),
    (variance, [1, 1000], ValueError, "a variance is too large or too small for a plot"),
    (variance, [1e-80, 1], ValueError, "a variance is too large or too small for a plot"),
    (partial(plot.error, [1, 2]), None, TypeError, "errors is a NoneType: give a mapping from"),
    (error, np.ones((0, 2)), ValueError, r"errors\['a'\] has no runs"),
    (error, [1, 2], ValueError, r"errors\['a'\] is of shape \(2,\): give one of shape"),
    (error, [[1, 2], [3]], TypeError, r"errors\['a'\] = \[.*\] is a list"),
    (error, [[1, -2]], ValueError, r"errors\['a'\] = -2 is not accepted"),
    (error, [[1, 1e200]], ValueError, r"one of errors\['a'\] is too large"),
    (error, np.array([[True, True]]), TypeError, r"errors\['a'\] of dtype bool"),
    (error, "12", TypeError, r"errors\['a'\] = '12' is a str"),
]
EPSILONS: list[tuple[Any, type[Exception], str]] = [
    ([], ValueError, r"epsilons = \[\] is not accepted: give two or more"),
    (1, TypeError, "epsilons = 1 is not accepted: give a sequence or an array of numbers"),
    ([1, "2"], TypeError, "epsilons = '2' is a str"),
    ([1, True], TypeError, "epsilons = True is a bool"),
    ([0, 1], ValueError, "epsilons = 0 is not accepted: give a finite number above 0"),
    ([1, math.inf], ValueError, "epsilons = inf is not accepted"),
    ([2, 1], ValueError, "epsilons that do not increase in float64"),
    ([1, 1 + Fraction(1, 10**30)], ValueError, "epsilons that do not increase in float64"),
    ([5e-324, 1], ValueError, "one of epsilons is too large or too small for a plot"),
    ([Fraction(1, 10**400), 1], ValueError, "one of epsilons is too large or too small"),
    (np.array([[1, 2]]), TypeError, "epsilons = .* is not accepted: give a sequence"),
    (MASKED, TypeError, "epsilons is a masked array"),
    (TIMES, TypeError, "epsilons = .* is not accepted"),
]
for refused, kind, message in EPSILONS:
    REFUSED += [(draw, refused, kind, message) for draw in (accuracy, variance)]
    REFUSED.append((partial(error, [[1, 2]]), refused, kind, message))


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
    with pytest.raises(TypeError, match=r"^ax is a module: give Axes of matplotlib, or None$"):
        PICTURES[name](pyplot)


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


@settings(max_examples=60, deadline=None)
@given(st.lists(extreme, min_size=2, max_size=5), st.floats(1e-100, 1), extreme)
@example([1, 1.0000000000000002], 0.05, 1)
@example([1e-140, 1e140], 1.0, 1)
def test_accepted_numbers_can_be_drawn(epsilons: list[Any], alpha: float, reach: Any) -> None:
    """Accepted numbers cause neither warnings nor errors of matplotlib."""
    rows = {"a": [[0.0] * len(epsilons), [float(value) for value in epsilons]]}
    axes = axes_of_a_figure()
    for draw in (
        lambda: plot.accuracy(epsilons, alpha, sensitivity=reach, ax=axes),
        lambda: plot.variance(epsilons, sensitivity=reach, ax=axes),
        lambda: plot.error(epsilons, rows, ax=axes),
    ):
        axes.clear()
        if refusal(draw) is None:
            FigureCanvasAgg(axes.figure).draw()  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
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
    FigureCanvasAgg(axes.figure).draw()  # type: ignore[arg-type]
    drawn = [*points(axes).values(), *steps(axes).values()]
    assert len(drawn) == len(set(counts))
    assert all(0 <= height <= 1 for _, heights in drawn for height in heights)
