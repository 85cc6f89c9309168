"""Plots of distributions, accuracies and noisy counts, with matplotlib (the extra ``plot``).

>>> from geomdp import GeometricMechanism, plot
>>> mechanism = GeometricMechanism(epsilon=0.1, bounds=(0, 30))
>>> plot.pmf(mechanism, [19, 20, 21]).figure.savefig("pmf.png")  # doctest: +SKIP

Each function draws on the given Axes and returns them. Without Axes it creates a pyplot figure of
800 by 450 pixels. Notebooks show the figure; it stays open until ``pyplot.close``. Matplotlib's
settings do not change. Distributions of counts are discrete, so they are drawn as stems, or as
steps where stems do not fit. Series differ in line style or marker as well as color. The colors are
Okabe and Ito's palette for all kinds of color vision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geomdp import accuracy as _accuracy
from geomdp._analysis import moments
from geomdp._release import arrays, parameters
from geomdp._release.labels import apart
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.parameters import Real
from geomdp._release.specification import as_counts, limits
from geomdp.distribution import CensoredGeometric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["accuracy", "distribution", "error", "histogram", "pmf", "variance"]

_Floats: TypeAlias = NDArray[np.float64]
_Numbers: TypeAlias = Sequence[Real] | NDArray[Any]

_BLUE, _VERMILION, _BLACK = "#0072B2", "#D55E00", "#000000"
_COLOURS = (_BLUE, _VERMILION, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", _BLACK)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
_LIGHT, _GREY = "#C9D6E8", "#4D4D4D"

#: The largest number of points drawn as stems; the approximate limit of points per distribution.
_STEMS, _STEPS = 120, 2000
#: The probability of noise that falls outside the plot of a distribution.
_UNSEEN = Fraction(1, 200)
#: Marks on the ratio of variances: one at this epsilon, one at the rate where the ratio is 10.
_MARKED_EPSILON, _TENFOLD = 3, 5.836793003415957
#: The sizes of numbers that fit on logarithmic axes with their margins.
_LEAST, _GREATEST = 1e-150, 1e150


def pmf(mechanism: GeometricMechanism, counts: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the probability of each noisy count, for one or more true counts.

    This is the ideal distribution, censored at the bounds of the mechanism or the limits of the
    dtype (:class:`geomdp.distribution.CensoredGeometric`; *Geometric Mechanism Notes*, figure 2.1).
    Around each true count, the plot covers all but 1/200 of the noise. If that is more than about
    2000 outputs, it shows only every k-th output from the true count, and both ends.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that releases the counts.
    counts : int, numpy integer, array or sequence of ints
        True counts, at most 7 distinct ones. Those outside the bounds are clamped.
    ax : matplotlib Axes, optional
        The Axes to draw on; a new figure if not given.

    Returns
    -------
    Axes
        Noisy count against probability.

    Raises
    ------
    TypeError
        If a parameter has another type.
    ValueError
        If there are no counts or too many, or float64 cannot tell the outputs apart.
    OverflowError
        If an int is beyond its dtype, or the bounds are beyond the dtype of the counts.
    ImportError
        If matplotlib is not installed.

    """
    _check_axes(ax)
    array = as_counts(mechanism, counts)
    ends = limits(mechanism, array.dtype)
    distinct = list(dict.fromkeys(array.reshape(-1).tolist()))
    _check_number("counts", distinct)
    pmfs = {str(count): _release(mechanism, ends, count, array.dtype) for count in distinct}
    axes = _axes(ax)
    _draw_pmfs(axes, pmfs)
    only = f" for true count {distinct[0]}" if len(distinct) == 1 else ""
    return _finish(axes, f"noisy count{only}", "probability", legend="true count")


def distribution(
    outputs: Any, probabilities: Mapping[str, ArrayLike], *, ax: Axes | None = None
) -> Axes:
    """Draw distributions of noisy counts, such as those of :func:`geomdp.rejection.pmf`.

    Parameters
    ----------
    outputs : array or sequence of ints
        The outputs, in increasing order.
    probabilities : mapping of str to array
        Maps the name of each distribution, shown in the legend, to the probability of each output.
        At most 7 distributions.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        As in :func:`pmf`.

    Raises
    ------
    TypeError, ValueError, OverflowError, ImportError
        As in :func:`pmf`; also if outputs do not increase, or probabilities are negative, not
        finite or not one for each output.

    """
    _check_axes(ax)
    places = _increasing("outputs", _counts("outputs", outputs))
    pmfs = {
        name: (
            places,
            arrays.weights(f"probabilities[{parameters.shown(name)}]", values, places.shape),
        )
        for name, values in _named("probabilities", probabilities)
    }
    axes = _axes(ax)
    _draw_pmfs(axes, pmfs)
    return _finish(axes, "noisy count", "probability")


def accuracy(
    epsilons: _Numbers,
    alpha: Real = 0.05,
    *,
    sensitivity: Real = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against epsilon: exact, by the source note's theorem, and continuous.

    These are the methods of :func:`geomdp.accuracy.epsilon_to_accuracy`, for noise without bounds.
    The first two are drawn as steps: between two epsilons, the plot shows the accuracy at the lower
    one, which is never better.

    Parameters
    ----------
    epsilons : array or sequence of numbers
        At least two positive numbers, in increasing order.
    alpha : int, float or Fraction
        The level of the accuracy, above 0 and at most 1.
    sensitivity : int, float or Fraction
        The sensitivity of the counts; positive.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        Epsilon against accuracy in counts. Both axes are logarithmic, but accuracies up to 1 are
        linear.

    Raises
    ------
    TypeError, ValueError, OverflowError, ImportError
        As in :func:`pmf`; also if a number is too large or too small for a plot.

    """
    _check_axes(ax)
    exact, places = _epsilons(epsilons)
    level = parameters.level("alpha", alpha)
    reach = parameters.positive("sensitivity", sensitivity)
    texts = [f"{number:g}" for number in _drawable("alpha or sensitivity", [level, reach])]

    def by(method: _accuracy.Method) -> _Floats:
        values = _accuracy.epsilon_to_accuracy(np.array(exact), level, reach, method=method)
        return _drawable("an accuracy", values, positive=False)

    least, note, continuous = by("exact"), by("ceiling"), by("continuous")
    axes = _axes(ax)
    steps: dict[str, Any] = {"drawstyle": "steps-post"}
    axes.plot(places, least, "-", color=_BLUE, label="exact", zorder=3, **steps)
    axes.plot(places, note, "--", color=_VERMILION, label="ceiling", **steps)
    axes.plot(places, continuous, ":", color=_BLACK, label="continuous")
    _scale(axes, "x", "log")
    _scale(axes, "y", "symlog", linthresh=1, subs=range(2, 10))
    axes.set_ylim(bottom=-0.1, auto=None)
    given = f", sensitivity {texts[1]}" if reach != 1 else ""
    return _finish(axes, "epsilon", f"accuracy at level {texts[0]}{given} (counts)")


def variance(epsilons: _Numbers, *, sensitivity: Real = 1, ax: Axes | None = None) -> Axes:
    """Draw the variance of geometric noise and of Laplace noise against epsilon.

    With ``rate = epsilon / sensitivity`` and ``a = exp(-rate)``, the variances are ``2 a / (1 -
    a)**2`` and ``2 / rate**2`` (*Releasing Counts with Differential Privacy*). The plot marks their
    ratio at epsilon 3 and where it reaches 10, if these are in range.

    Parameters
    ----------
    epsilons, sensitivity, ax
        As in :func:`accuracy`.

    Returns
    -------
    Axes
        Epsilon against variance in squared counts, both logarithmic.

    Raises
    ------
    TypeError, ValueError, OverflowError, ImportError
        As in :func:`accuracy`.

    """
    _check_axes(ax)
    exact, places = _epsilons(epsilons)
    reach = parameters.positive("sensitivity", sensitivity)
    rates = [epsilon / reach for epsilon in exact]
    laplace = _drawable("a variance", [2 / rate**2 for rate in rates])
    variances = [moments.unbounded(rate).variance for rate in rates]
    geometric = _drawable("a variance", variances)
    axes = _axes(ax)
    axes.plot(places, laplace, "--", color=_VERMILION, label="Laplace")
    axes.plot(places, geometric, "-", color=_BLUE, label="geometric")
    _scale(axes, "x", "log")
    _scale(axes, "y", "log")
    for rate in (_MARKED_EPSILON / reach, Fraction(_TENFOLD)):
        if rates[0] <= rate <= rates[-1]:
            leftmost = rate**2 < rates[0] * rates[-1]
            _mark_ratio(axes, float(rate * reach), float(rate), on_the_left=leftmost)
    return _finish(axes, "epsilon", "variance (squared counts)")


def error(epsilons: _Numbers, errors: Mapping[str, ArrayLike], *, ax: Axes | None = None) -> Axes:
    """Draw the errors of simulated releases against epsilon, as means and one standard deviation.

    This is the plot of the experiment in *Releasing Counts with Differential Privacy*. A series
    with one row, such as a single run or an expectation, is a line without a band.

    Parameters
    ----------
    epsilons, ax
        As in :func:`accuracy`.
    errors : mapping of str to array
        Maps the name of each series, shown in the legend, to an array of errors, which are not
        negative. Each run is a row, and each epsilon a column. At most 7 series.

    Returns
    -------
    Axes
        Epsilon against error in counts, both logarithmic. Means of 0 and parts of a band below 0
        are not visible. If all means are 0, the error axis is linear.

    Raises
    ------
    TypeError, ValueError, OverflowError, ImportError
        As in :func:`pmf`; also if errors are negative, not finite, too large or too small for a
        plot, or not one for each epsilon.

    """
    _check_axes(ax)
    _, places = _epsilons(epsilons)
    series = {
        name: _bands(f"errors[{parameters.shown(name)}]", values, len(places))
        for name, values in _named("errors", errors)
    }
    axes = _axes(ax)
    for (name, (mean, deviation)), colour, line in zip(
        series.items(), _COLOURS, _LINES, strict=False
    ):
        axes.plot(places, mean, linestyle=line, color=colour, label=name)
        if deviation.any():
            ends = mean - deviation, mean + deviation
            axes.fill_between(places, *ends, color=colour, alpha=0.2, linewidth=0)
    _scale(axes, "x", "log")
    drawn = np.concatenate([np.ravel(line.get_ydata()) for line in axes.get_lines()])
    if drawn.any():
        _scale(axes, "y", "log")
        axes.set_ylim(bottom=drawn[drawn > 0].min() / 2, auto=None)
    return _finish(axes, "epsilon", "error (counts)")


def histogram(
    true: Any,
    noisy: Any,
    *,
    labels: Sequence[str] | None = None,
    edges: _Numbers | None = None,
    accuracy: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw true counts as bars, and noisy counts as points with intervals.

    A plot of true counts is not private. Pass None for them in a plot to be published.

    Parameters
    ----------
    true : array or sequence of ints, or None
        The true counts; None to leave them out.
    noisy : array or sequence of ints
        The noisy counts.
    labels : sequence of str, optional
        The names of the counts. Without labels and edges, these are the keys of a mapping or the
        index of a column, if all are str; otherwise the counts are numbered from 0.
    edges : array or sequence of numbers, optional
        The edges of the bins, instead of labels: increasing, one more than there are counts.
    accuracy : int, or array or sequence of ints, optional
        The half-widths of the intervals, not negative: one number, one per count, or two rows, with
        the distances to the lower and to the upper ends.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        Labels, edges or numbers against counts.

    Raises
    ------
    TypeError, ValueError, OverflowError, ImportError
        As in :func:`pmf`; also if both labels and edges are given, a shape does not match the noisy
        counts, edges do not increase, or an accuracy is negative.

    """
    _check_axes(ax)
    (true, noisy, accuracy), labelled = apart(true=true, noisy=noisy, accuracy=accuracy)
    points = _row("noisy", _counts("noisy", noisy))
    bars = None if true is None else _row("true", _counts("true", true), len(points))
    keys = labelled.keys
    if labels is None and edges is None and keys and all(isinstance(key, str) for key in keys):
        labels = keys
    if labels is not None and edges is not None:
        raise TypeError("labels and edges are alternatives: give one of them")
    names = None if labels is None else _names(labels, len(points))
    borders = np.arange(len(points) + 1) - 0.5
    if edges is not None:
        borders = _row("edges", _increasing("edges", _finite("edges", edges)), len(points) + 1)
    reach = None if accuracy is None else _reach(accuracy, len(points))
    axes = _axes(ax)
    middles = (borders[:-1] + borders[1:]) / 2
    if bars is not None and names is not None:
        axes.bar(middles, bars, color=_LIGHT, label="true")
    elif bars is not None:
        axes.stairs(bars, borders, fill=True, color=_LIGHT, label="true")
    one = (
        "" if reach is None else f" ± {accuracy}" if np.ndim(accuracy) == 0 else ", with intervals"
    )
    style: dict[str, Any] = {"markersize": 4, "elinewidth": 1, "capsize": 2, "color": _VERMILION}
    axes.errorbar(middles, points, yerr=reach, fmt="o", label=f"noisy{one}", **style)
    if names is not None:
        # About a hundred letters fit on a line; longer labels are rotated.
        rotation = 90 if sum(len(name) + 2 for name in names) > 100 else 0
        axes.set_xticks(middles, names, rotation=rotation, parse_math=False)
    elif edges is None:
        _integers_below(axes)
    x = "category" if names is not None else "value" if edges is not None else "number of the bin"
    return _finish(axes, x, "count")


# Distributions


def _release(
    mechanism: GeometricMechanism, limits: tuple[int, int], count: int, dtype: np.dtype[Any]
) -> tuple[_Floats, _Floats]:
    """Return outputs around a true count, and their probabilities."""
    lower, upper = limits
    place = min(max(count, lower), upper)
    reach = max(_accuracy.scale_to_accuracy(mechanism.scale, _UNSEEN), 2)
    least, most = max(lower, place - reach), min(upper, place + reach)
    step = (most - least) // _STEPS + 1
    inside = [*range(place, least, -step), *range(place, most, step)]
    outputs = np.array(sorted({least, most, *inside}), dtype=dtype)
    masses = CensoredGeometric(place, mechanism.scale, limits).pmf(outputs)
    return _increasing("outputs", outputs), masses


def _draw_pmfs(axes: Axes, pmfs: Mapping[str, tuple[_Floats, _Floats]]) -> None:
    few = sum(len(outputs) for outputs, _ in pmfs.values()) <= _STEMS
    shift = min(0.25, 0.7 / len(pmfs))
    for i, (name, (outputs, masses)) in enumerate(pmfs.items()):
        if few:
            # Stems of the same output stand side by side.
            places = outputs + shift * (i - (len(pmfs) - 1) / 2)
            stems = axes.vlines(places, 0, masses, color=_COLOURS[i], linewidth=1)
            stems.sticky_edges.y.append(0)  # No margin below, as for steps.
            axes.plot(places, masses, _MARKERS[i], color=_COLOURS[i], markersize=4, label=name)
        else:
            between = (outputs[:-1] + outputs[1:]) / 2
            edges = np.concatenate([outputs[:1] - 0.5, between, outputs[-1:] + 0.5])
            style: dict[str, Any] = {"color": _COLOURS[i], "linestyle": _LINES[i], "linewidth": 1.5}
            axes.stairs(masses, edges, label=name, **style)
    _integers_below(axes)


# Ratios of variances


def _ratio(rate: float) -> float:
    """Return the variance of Laplace noise divided by that of geometric noise."""
    half = rate / 2
    return (math.sinh(half) / half) ** 2


def _mark_ratio(axes: Axes, epsilon: float, rate: float, *, on_the_left: bool) -> None:
    """Mark a ratio, with text above the curves if it is on the left, else below them."""
    laplace, ratio = 2 / rate**2, _ratio(rate)
    ends = [laplace / ratio, laplace]
    axes.plot([epsilon, epsilon], ends, ".-", color=_GREY, linewidth=1)
    axes.annotate(
        f"ratio {ratio:.3g} at epsilon {epsilon:.3g}",
        (epsilon, ends[on_the_left]),
        xytext=(6, 4) if on_the_left else (-6, -4),
        textcoords="offset points",
        horizontalalignment="left" if on_the_left else "right",
        verticalalignment="center",
        color=_GREY,
    )


# Axes


def _check_axes(ax: Any) -> None:
    try:
        from matplotlib.axes import Axes  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install geomdp[plot]") from error
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax is a {type(ax).__name__}: give Axes of matplotlib, or None")


def _axes(ax: Axes | None) -> Axes:
    """Return the given Axes, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # noqa: PLC0415 (an extra)

    _, axes = pyplot.subplots(figsize=(8, 4.5), dpi=100, layout="constrained")
    return axes


def _scale(axes: Axes, which: str, scale: str, **options: Any) -> None:
    """Scale an axis, with plain numbers at major ticks, and at minor ticks within one decade."""
    (axes.set_xscale if which == "x" else axes.set_yscale)(scale, **options)
    axis = axes.xaxis if which == "x" else axes.yaxis

    def minor(value: float, _: object) -> str:
        low, high = axis.get_view_interval()
        return f"{value:g}" if high < 10 * low else ""

    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(minor)


def _integers_below(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (an extra)

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def _finish(axes: Axes, x: str, y: str, legend: str | None = None) -> Axes:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(title=legend, facecolor="white", edgecolor="none")
    return axes


# Parameters


def _counts(name: str, counts: Any) -> arrays.Array:
    try:
        return arrays.as_array(counts)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{name}: {error}") from None


def _row(name: str, values: NDArray[Any], length: int | None = None) -> _Floats:
    """Return one row of numbers as floats, and check that it has this length, or is not empty."""
    if values.ndim != 1 or not values.size or length not in (None, values.size):
        wanted = "at least one number" if length is None else f"a row of {length}"
        raise ValueError(f"{name} is of shape {values.shape}: give {wanted}")
    return values.astype(np.float64)


def _increasing(name: str, values: NDArray[Any]) -> _Floats:
    """Return a row of numbers as floats, and check that these increase."""
    floats = _row(name, values)
    if not (floats[:-1] < floats[1:]).all():
        raise ValueError(
            f"{name} that do not increase in float64, which plots use, are not accepted: "
            "give increasing numbers"
        )
    return floats


def _items(name: str, values: Any) -> list[Any]:
    """Return the items of a sequence or of a one-dimensional array."""
    if isinstance(values, np.ndarray):
        arrays.refuse_masked(name, values)
        if values.ndim == 1 and values.dtype.kind not in "mM":
            return list(values.tolist())
    elif isinstance(values, list | tuple):
        return list(values)
    raise TypeError(parameters.refusal(name, values, "a sequence or an array of numbers"))


def _finite(name: str, values: Any) -> _Floats:
    exact = [parameters.finite(name, item) for item in _items(name, values)]
    return _drawable(f"one of {name}", exact, positive=False)


def _epsilons(epsilons: Any) -> tuple[list[Fraction], _Floats]:
    """Return epsilons exactly, and as floats."""
    exact = [parameters.positive("epsilons", item) for item in _items("epsilons", epsilons)]
    if len(exact) < 2:
        raise ValueError(parameters.refusal("epsilons", epsilons, "two or more"))
    return exact, _increasing("epsilons", _drawable("one of epsilons", exact))


def _drawable(what: str, values: Iterable[Any], *, positive: bool = True) -> _Floats:
    """Return numbers as floats, and check that they are not too large or too small for an axis."""
    try:
        floats = np.array([float(value) for value in values])
    except OverflowError:
        floats = np.array([math.inf])
    sizes = np.abs(floats)
    fit = (sizes >= _LEAST) & (sizes <= _GREATEST)
    if not (fit | (sizes == 0) & (not positive)).all():
        raise ValueError(
            f"{what} is too large or too small for a plot: give sizes from {_LEAST} to {_GREATEST}"
        )
    return floats


def _named(name: str, series: Any) -> Iterable[tuple[str, Any]]:
    """Return the items of a mapping, and check that its keys are str."""
    if not isinstance(series, Mapping):
        raise TypeError(f"{name} is a {type(series).__name__}: give a mapping from names")
    for key in series:
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {parameters.shown(key)}: give a mapping from str")
    _check_number(name, series)
    return series.items()


def _check_number(name: str, series: Any) -> None:
    most = len(_COLOURS)
    if not 1 <= len(series) <= most:
        raise ValueError(f"{len(series)} {name} are not accepted: give from 1 to {most}")


def _bands(name: str, values: Any, columns: int) -> tuple[_Floats, _Floats]:
    """Return the mean and the standard deviation of each column."""
    rows = len(values) if isinstance(values, list | tuple) or np.ndim(values) else 0
    runs = arrays.weights(name, values, (rows, columns))
    if not rows:
        raise ValueError(f"{name} has no runs: give a row for each")
    _drawable(f"one of {name}", runs.reshape(-1), positive=False)
    return runs.mean(axis=0), runs.std(axis=0)


def _names(labels: Any, length: int) -> list[str]:
    names = labels.tolist() if isinstance(labels, np.ndarray) else labels
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(parameters.refusal("labels", labels, "a sequence of str"))
    if len(names) != length:
        raise ValueError(
            f"{len(names)} labels are not accepted: give one for each of {length} counts"
        )
    return list(names)


def _reach(accuracy: Any, length: int) -> _Floats:
    """Return the distances to the lower and upper ends, of shape (2, length)."""
    array = _counts("accuracy", accuracy)
    if array.shape not in ((), (length,), (2, length)):
        raise ValueError(
            f"accuracy is of shape {array.shape}: give one number, {length} or two rows of {length}"
        )
    if (array < 0).any():
        raise ValueError("accuracy with a negative number is not accepted: give distances")
    return np.broadcast_to(array, (2, length)).astype(np.float64)
