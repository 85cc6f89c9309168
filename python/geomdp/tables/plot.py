"""Plots of distributions, accuracies and noisy counts, with matplotlib (the extra ``plot``).

Each function draws on the given Axes and returns them. Without Axes it creates a pyplot figure of
800 by 450 pixels, larger for many names. Notebooks show the figure; it stays open until
``pyplot.close``. ``axes.figure.savefig("plot.png")`` writes it to a file. Matplotlib's settings do
not change, and styles such as ``dark_background`` apply. Distributions of counts are discrete, so
they are drawn as stems, or as steps where stems do not fit. Series differ in line style or marker
as well as colour. The colours are Okabe and Ito's palette for all kinds of colour vision. Letters
that the font lacks come from other fonts of the system; matplotlib warns if none has them. It joins
and orders the letters of Arabic or Hindi from version 3.11 on. Given Axes keep their margins:
``layout="constrained"`` in the call that makes their figure leaves room for long names.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy as _accuracy
from geomdp._extras import installed_by
from geomdp._inputs import arrays, parameters
from geomdp._inputs.labels import detach
from geomdp._inputs.parameters import Integer, Real
from geomdp._uncopied import unseen
from geomdp.distribution import CensoredGeometric
from geomdp.mechanism import GeometricMechanism, as_counts, as_mechanism, limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["histogram", "table", "accuracy", "guess", "pmf"]

_Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Sequence[Real] | NDArray[Any]
_Location: TypeAlias = Literal["best", "lower right"] | tuple[float, float]

_BLUE, _VERMILION = "#0072B2", "#D55E00"
# Grey, which shows on dark backgrounds too, stands for the palette's black.
_COLOURS = (_BLUE, _VERMILION, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#808080")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MARKS: dict[str, Any] = {"fmt": "o", "markersize": 4, "elinewidth": 1, "capsize": 2}
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))

#: The colour of the most negative counts of a table, on which white shows as on blue.
_BROWN = "#A34700"

#: The largest number of points drawn as stems; the limit of bars, of the rows and columns of a
#: table, and about that of points per distribution.
_STEMS, _STEPS = 120, 2000
#: The largest number of names that the tallest figure shows.
_NAMED = 200
#: Up to 60 names of a published table are all drawn; of more, the 40 largest.
MOST_ROWS, _LARGEST = 60, 40
#: The largest number of rows or columns of a table whose counts are written into it.
_CELLS = 50
#: The share of the colour in the cells that have most of it, on which black texts show well.
_STRONGEST = 0.7
#: The least contrast of a text, by WCAG 2.2; black or white always has more.
_CONTRAST = 4.5
#: The numbers of epsilons between the first and the last at which accuracies of counts are drawn,
#: and those of a design, whose sums take longer.
_BETWEEN, _PREVIEWED = 200, 80
#: Probabilities at the ends that are this many times those between make the axis logarithmic.
_STEEP = 20
#: The probability of noise that falls outside the plot of a distribution.
_UNSEEN = Fraction(1, 200)
#: The sizes of numbers that fit on logarithmic axes with their margins.
_LEAST, _GREATEST = 1e-150, 1e150


@unseen
def pmf(mechanism: GeometricMechanism, counts: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the probability of each noisy count, for one or more true counts.

    This is the ideal distribution, censored at the bounds of the mechanism or the limits of the
    dtype (:class:`geomdp.distribution.CensoredGeometric`; *Geometric Mechanism Notes*, figure 2.1).
    Around each true count, the plot covers all but 1/200 of the noise. If that is more than about
    2000 outputs, it shows only every k-th output from the true count, and both ends. Where bounds
    collect most of the noise, the probabilities are on a logarithmic scale.

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

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables import plot
    >>> mechanism = GeometricMechanism(epsilon=0.1, bounds=(0, 30))
    >>> axes = plot.pmf(mechanism, [0, 10, 20])

    """
    _check_axes(ax)
    array = as_counts(mechanism, counts)
    ends = limits(mechanism, array.dtype)
    distinct = list(dict.fromkeys(array.reshape(-1).tolist()))
    _check_number("counts", distinct)
    pmfs = {_in_full(count): _release(mechanism, ends, count, array.dtype) for count in distinct}
    axes = _axes(ax)
    _draw_pmfs(axes, pmfs)
    only = f" for true count {_in_full(distinct[0])}" if len(distinct) == 1 else ""
    return _finish(axes, f"noisy count{only}", "probability", legend="true count")


def accuracy(
    epsilons: Numbers,
    *,
    alpha: Real = 0.05,
    n: Integer | Sequence[Integer] = (1, 10, 100, 1000),
    sensitivity: Real = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against epsilon, for one or more numbers of counts.

    With probability ``1 - alpha`` the errors of all n counts are at most the accuracy
    (:func:`geomdp.accuracy.epsilon_to_accuracy`), for noise without bounds. The curves are steps,
    drawn at the given epsilons and at 200 between the first and the last; up to the next of these,
    a curve stays at the accuracy of the lower one, which is never better.

    Parameters
    ----------
    epsilons : array or sequence of numbers
        At least two positive numbers, in increasing order.
    alpha : number
        The level of the accuracy, above 0 and at most 1.
    n : int or sequence of ints
        Numbers of counts, at most 7; each is a curve.
    sensitivity : number
        The sensitivity of the counts; positive.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        Epsilon against accuracy in counts. Both axes are logarithmic, but accuracies up to 1 are
        linear.

    Examples
    --------
    >>> from geomdp.tables import plot
    >>> axes = plot.accuracy([0.05, 10])

    """
    _check_axes(ax)
    exact, places = _epsilons(epsilons, _BETWEEN)
    level = parameters.level("alpha", alpha)
    reach = parameters.positive_fraction("sensitivity", sensitivity)
    texts = [f"{number:g}" for number in _drawable("alpha or sensitivity", [level, reach])]
    items = [n] if parameters.is_integer(n) else _items("n", n)
    numbers = [parameters.at_least("n", item, 1) for item in items]
    _check_number("numbers n", numbers)
    curves = {
        _in_full(number): _drawable(
            "an accuracy",
            _accuracy.epsilon_to_accuracy(np.array(exact), alpha, sensitivity=reach, n=number),
            positive=False,
        )
        for number in numbers
    }
    axes = _axes(ax)
    _draw_accuracies(axes, places, curves)
    of = f" of all {numbers[0]:,}" if len(numbers) == 1 and numbers != [1] else ""
    given = f", sensitivity {texts[1]}" if reach != 1 else ""
    y = f"accuracy{of} at level {texts[0]}{given} (counts)"
    return _finish(axes, "epsilon", y, legend="counts at once")


def guess(epsilon: Real | Numbers, *, ax: Axes | None = None) -> Axes:
    """Draw how much a release can change a guess about an individual.

    Somebody knows all other records, and guesses with some probability p that an individual is
    among the data. For each p, a band shows the probabilities that it can become by a release,
    whatever the noisy counts are: from ``p / (p + (1 - p) * exp(epsilon))`` to
    ``p / (p + (1 - p) * exp(-epsilon))``. This is Bayes' rule, since no noisy count is more than
    ``exp(epsilon)`` times as probable with the individual as without it, or the other way round
    (Kasiviswanathan and Smith, *On the 'Semantics' of Differential Privacy*, 2014).

    Parameters
    ----------
    epsilon : number, or array or sequence of numbers
        The privacy loss of the individual over everything published, or up to 7 such losses;
        positive. Each is a band, and the legend shows its range for a guess of 50%. For a group
        known to be among the data together or not at all, give the sum of its members' losses.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        The probability before the release against those after it.

    Examples
    --------
    >>> from geomdp.tables import plot
    >>> axes = plot.guess([0.1, 0.5, 2])

    """
    _check_axes(ax)
    several = isinstance(epsilon, list | tuple | np.ndarray)
    items = _items("epsilon", epsilon) if several else [epsilon]
    _check_number("epsilons", items)
    exact = [parameters.positive_fraction("epsilon", item) for item in items]
    losses = _drawable("one of epsilon", exact)
    axes = _axes(ax)
    # Closer at the ends, where the curves are steep.
    before = (1 - np.cos(np.linspace(0, math.pi, 201))) / 2
    axes.plot(before, before, color="#808080", linewidth=1, label="no release")
    for loss, colour, line in zip(losses, _COLOURS, _LINES, strict=False):
        # Factors beyond exp(700) would overflow, and draw the same.
        less, more = np.exp(np.array([1, -1]) * min(loss, 700))
        ends = [before / (before + (1 - before) * factor) for factor in (less, more)]
        half = f"{100 / (1 + less):.1f}% to {100 / (1 + more):.1f}%"
        axes.fill_between(before, *ends, color=colour, alpha=0.12, linewidth=0)
        axes.plot(before, ends[0], linestyle=line, color=colour, label=f"{loss:g}: {half}")
        axes.plot(before, ends[1], linestyle=line, color=colour)
    axes.margins(0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    legend = "epsilon:\nwhat 50% becomes"
    # The curves fill the Axes, so the legend is beside them.
    return _finish(axes, "guess before the release", "guess after it", legend, loc=(1.02, 0.4))


def histogram(
    mechanism: GeometricMechanism,
    noisy: Any,
    *,
    true: Any = None,
    alpha: Real = 0.05,
    labels: Iterable[Any] | None = None,
    edges: Numbers | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw noisy counts as bars with intervals.

    An interval contains its true count with probability at least ``1 - alpha``, and is within the
    bounds (:meth:`geomdp.GeometricMechanism.confidence_interval`). The legend shows epsilon and
    this confidence. Named counts are horizontal bars, from top to bottom; dates are steps, with the
    intervals as a band. A line marks 0 if an interval reaches below it. The Axes may be
    logarithmic, which leaves out counts up to 0, or ``symlog``, which does not.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released the counts. Releases of :mod:`geomdp.tables` draw themselves
        (:meth:`geomdp.tables.NoisyTable.plot`).
    noisy : array, sequence, mapping, column or frame
        The noisy counts, at most 2000, or 200 with names. A frame has one column of names and one
        of counts.
    true : array or sequence of ints, optional
        The true counts. They become the bars, and the noisy counts are points. Such a plot is not
        private: do not publish it.
    alpha : number
        The probability that an interval misses its true count. For counts that you sort or pick by
        their noisy values, divide it by the number of all counts that there were to pick from.
    labels : sequence, optional
        The names of the counts, of any type. Two or more increasing dates or times are places on
        the axis, each until the next. A pandas Index with a name, or a Series, names its axis too.
        Without labels and edges, these are the keys of a mapping or the index of a column; counts
        without names are numbered from 0. Names longer than half of the Axes are shortened. Axes
        too small for all names show every k-th.
    edges : array or sequence of numbers, optional
        The edges of the bins, instead of labels: increasing, one more than there are counts. Counts
        and intervals of bins of unequal width are divided by the widths.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        Edges or numbers against counts, or counts against labels.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables import plot
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 500))
    >>> towns = {"Bern": 3, "Lima": 42, "Oslo": 17, "Paris": 61, "Rome": 28}
    >>> axes = plot.histogram(mechanism, mechanism.release(towns))

    """
    _check_axes(ax)
    _check_mechanism(mechanism)
    index = getattr(noisy, "index", None)
    (true, noisy), labelled = detach(true=true, noisy=noisy)
    counts = _counts("noisy", noisy)
    points = _row("noisy", counts)
    bars = points if true is None else _row("true", _counts("true", true), len(points))
    ends = mechanism.confidence_interval(counts, alpha)
    keys = labelled.keys
    numbered = keys == list(range(len(points))) and not labelled.sides
    if labels is None and edges is None and not numbered:
        labels = keys
    if labels is not None and edges is not None:
        raise TypeError("labels and edges are alternatives: give one of them")
    names = None if labels is None else _names("labels", labels, len(points))
    days = None if names is None else _days(names)
    kind, most = ("named counts", _NAMED) if names and days is None else ("counts", _STEPS)
    if len(points) > most:
        raise ValueError(f"noisy has {len(points)} {kind}: draw parts of at most {most}")
    borders = np.arange(-0.5, len(points)) if days is None else days
    if edges is not None:
        borders = _row("edges", _increasing("edges", _finite("edges", edges)), len(points) + 1)
    widths = np.diff(borders)
    drawn = np.array([bars, points, *ends], dtype=np.float64)
    # Widths of equal bins differ by rounding. A month's count is not divided by its days.
    unequal = days is None and np.ptp(widths) > 1e-6 * widths.max()
    if unequal:
        drawn /= widths
    axes = _axes(ax, 0 if names is None or days is not None else 1.5 + 0.25 * len(names))
    style: dict[str, Any] = {
        "color": _VERMILION,
        "label": f"noisy, {_of_mechanism(mechanism)}, {_percent(alpha)} intervals",
    }
    own = {"color": _VERMILION} if true is None else {"color": _BLUE, "label": "true"}
    fill: dict[str, Any] = {"alpha": 0.4, **own}
    named = index if labels is keys else labels
    title = _text(labelled.sides[0][0]) if labelled.sides else _title(named)
    if names is not None and days is None:
        _draw_named(axes, drawn, list(map(_text, names)), style, fill)
        return _finish(axes, "count", title, loc="lower right")
    band = days is not None or len(points) > _STEMS
    _draw_bins(axes, drawn, borders, style, fill, band=band)
    _number(axes, "y", integer=not unequal)
    x = "number of the bin" if edges is None else "value"
    if names is None:
        _number(axes, "x", integer=edges is None)
    else:
        _date(axes, getattr(names[0], "tzinfo", None))
        x = title
    return _finish(axes, x, "count per unit of value" if unequal else "count", loc="best")


def table(
    mechanism: GeometricMechanism,
    noisy: Any,
    *,
    alpha: Real = 0.05,
    rows: Iterable[Any] | None = None,
    columns: Iterable[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a two-way table of noisy counts, as numbers on a heat map.

    The title shows how far all true counts are from the noisy ones at once, at level alpha
    (:func:`geomdp.accuracy.simultaneous_accuracy`), so it holds for the cells that stand out, too.
    The colours range from the least count to the greatest; with negative counts, 0 has no colour,
    and those below it are brown.

    Parameters
    ----------
    mechanism
        As in :func:`histogram`.
    noisy : array of ints, or frame
        The noisy counts, in two dimensions of at most 2000; colours alone show those of more than
        50 rows or columns. A frame is a pivot of pandas, or has two columns of names before its
        column of counts.
    alpha : number
        The probability that a true count is further away than the title says.
    rows, columns : sequence, optional
        The names of rows and columns, of any type, instead of those of a frame; shown as
        in :func:`histogram`. A pandas Index with a name names its axis too. Without names they are
        numbered from 0.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        Columns against rows.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables import plot
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 1000))
    >>> noisy = mechanism.release(np.array([[512, 313], [353, 207], [120, 205]]))
    >>> rows, columns = ["A", "B", "C"], ["admitted", "rejected"]
    >>> axes = plot.table(mechanism, noisy, rows=rows, columns=columns)

    """
    _check_axes(ax)
    _check_mechanism(mechanism)
    [noisy], labelled = detach(noisy=noisy)
    counts = _counts("noisy", noisy)
    if counts.ndim != 2 or not counts.size or max(counts.shape) > _STEPS:
        raise ValueError(
            f"noisy is of shape {counts.shape}: give two dimensions of at most {_STEPS}"
        )
    titles, known = zip(*(labelled.sides or ((None, range(n)) for n in counts.shape)), strict=True)
    y, x = (
        _title(names) if title is None or names is not None else _text(title)
        for title, names in zip(titles, (rows, columns), strict=True)
    )
    sides = [
        list(map(_text, _names(name, own if names is None else names, size)))
        for name, names, own, size in zip(
            ("rows", "columns"), (rows, columns), known, counts.shape, strict=True
        )
    ]
    mechanism.confidence_interval(counts, alpha)  # Checks the counts and alpha.
    reach = _accuracy.simultaneous_accuracy(mechanism, alpha, n=counts.size)
    stated = _all_within("noisy counts", reach, _of_mechanism(mechanism), alpha)
    return _draw_table(ax, counts, sides, (y, x), stated=stated, drawn="noisy count")


def _draw_table(
    ax: Axes | None,
    counts: NDArray[Any],
    sides: Sequence[list[str]],
    titles: tuple[str, str],
    *,
    stated: str,
    drawn: str,
) -> Axes:
    """Draw counts, or estimates, with the names of rows and of columns."""
    height, width = counts.shape
    written = max(height, width) <= _CELLS
    inches = np.array([1 + 0.3 * height, 2 + 0.7 * width])
    if not written:
        inches = inches.clip(max=np.maximum((9, 14), np.array(counts.shape) / 75))
    axes = _axes(ax, *inches)
    # No cell is smaller than a pixel.
    sharp = axes.bbox.height >= height and axes.bbox.width >= width
    values = counts.astype(np.float64)
    least, most = values.min(), values.max()
    reaches = (least, most) if least >= 0 else (-max(-least, most), max(-least, most))
    image = axes.imshow(
        values,
        _colours(signed=least < 0),
        vmin=reaches[0],
        vmax=reaches[1],
        aspect="auto",
        interpolation="nearest" if sharp else "auto",
    )
    _name(axes, "y", sides[0])
    _name(axes, "x", sides[1])
    axes.set_title(stated)
    axes.grid(visible=False)
    _finish(axes, titles[1], titles[0])
    if not written:
        bar = axes.figure.colorbar(image, ax=axes, label=drawn)
        _number(bar.ax, "y")
        if least < 0 and least < most:
            bar.ax.set_ylim(least, most)
            _mark_zero(bar.ax, "y", values)
        return axes
    # The size of a cell is known once the names have been laid out.
    axes.figure.canvas.figure.draw_without_rendering()
    inch = axes.figure.dpi / 72
    texts = [[_in_full(count) for count in row] for row in counts.tolist()]
    digits = max(len(text) for row in texts for text in row)
    across = axes.bbox.width / width / (0.7 * (digits + 1)) / inch
    largest = float(axes.xaxis.get_ticklabels()[0].get_fontsize())
    size = min(largest, across, 0.8 * axes.bbox.height / height / inch)
    colours = _readable(axes, image.to_rgba(values))
    for (row, column), color in np.ndenumerate(colours):
        text = texts[row][column]
        axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color)
    return axes


# Published tables


def published_rows(
    names: Sequence[Any],
    title: str,
    ends: Callable[[bool], NDArray[Any]],
    epsilon: Fraction | float,
    alpha: Real,
    *,
    ordered: bool,
    ax: Axes | None,
) -> Axes:
    """Draw estimates and the ends of their intervals for the levels of a column.

    If levels are ordered, dates and increasing numbers are places on the axis. Of more names than
    fit, the largest estimates are drawn, and the title says so. They were chosen by their noise, so
    they get intervals that hold for all names at once: ``ends(True)`` returns three rows with
    these, and ``ends(False)`` with intervals that hold each.
    """
    _check_axes(ax)
    days = _days(list(names)) if ordered else None
    borders = _borders(names) if ordered and days is None else days
    chosen = borders is None and len(names) > MOST_ROWS
    found = ends(chosen)
    estimates, lower, upper = _drawable("an interval", found.reshape(-1), positive=False).reshape(
        found.shape
    )
    # True counts are not negative, so that an estimate may lie below its interval.
    drawn = np.array([estimates, np.clip(estimates, lower, upper), lower, upper])
    of = f" for all {len(names):,} at once" if chosen else ""
    style: dict[str, Any] = {
        "color": _VERMILION,
        "label": f"estimate, epsilon {float(epsilon):g}, {_percent(alpha)} intervals{of}",
    }
    fill: dict[str, Any] = {"alpha": 0.4, "color": _VERMILION}
    if borders is not None:
        axes = _axes(ax)
        _draw_bins(axes, drawn, borders, style, fill, band=len(names) > _STEMS)
        _number(axes, "y")
        if days is None:
            _number(axes, "x")
        else:
            _date(axes, getattr(names[0], "tzinfo", None))
        return _finish(axes, title, "count", loc="best")
    if chosen:
        largest = np.argsort(-drawn[0], kind="stable")[:_LARGEST]
        title = f"{title}: the {_LARGEST} largest of {len(names):,}"
        names, drawn = [names[place] for place in largest.tolist()], drawn[:, largest]
    axes = _axes(ax, 1.5 + 0.25 * len(names))
    _draw_named(axes, drawn, list(map(_text, names)), style, fill)
    return _finish(axes, "count", title, loc="lower right")


def published_table(
    sides: Sequence[Sequence[Any]],
    titles: tuple[str, str],
    ends: NDArray[Any],
    epsilon: Fraction | float,
    alpha: Real,
    *,
    ax: Axes | None,
) -> Axes:
    """Draw estimates on a heat map; `ends` also has intervals that hold for all cells at once."""
    _check_axes(ax)
    drawn = _drawable("an interval", ends.reshape(-1), positive=False).reshape(ends.shape)
    if max(ends.shape) > _STEPS:
        raise ValueError(
            f"the table is of shape {ends.shape[1:]}: give by, one column or two of at most "
            f"{_STEPS} levels"
        )
    reach = math.ceil((drawn[2] - drawn[0]).max())
    stated = _all_within("estimates", reach, f"epsilon {float(epsilon):g}", alpha)
    names = [list(map(_text, side)) for side in sides]
    counts = np.rint(drawn[0]).astype(np.int64)
    return _draw_table(ax, counts, names, titles, stated=stated, drawn="estimate")


def published_names(names: Sequence[Any], title: str, stated: str, *, ax: Axes | None) -> Axes:
    """Draw names from the first rank, which is the furthest from them, to the last."""
    _check_axes(ax)
    places, last = np.arange(len(names)), len(names) + 1
    axes = _axes(ax, 1.5 + 0.25 * len(names))
    axes.hlines(places, last, places + 1, color="#808080", linewidth=1)
    axes.plot(places + 1, places, "o", color=_BLUE)
    axes.set_ylim(places[-1] + 0.5, -0.5)
    axes.set_xlim(last, 0.5)
    _name(axes, "y", list(map(_text, names)))
    _number(axes, "x")
    axes.set_title(stated)
    return _finish(axes, "rank", title)


def _borders(names: Sequence[Any]) -> _Floats | None:
    """Return edges half-way between two or more increasing numbers; None for other names."""
    if len(names) < 2 or not all(type(name) in (int, float) for name in names):
        return None
    places = np.array(names, dtype=np.float64)
    widths = np.diff(places)
    if not (widths > 0).all():
        return None
    ends = places[0] - widths[0] / 2, places[-1] + widths[-1] / 2
    return np.concatenate([ends[:1], places[:-1] + widths / 2, ends[1:]])


# Distributions


def _release(
    mechanism: GeometricMechanism, limits: tuple[int, int], count: int, dtype: np.dtype[Any]
) -> tuple[_Floats, _Floats]:
    """Return outputs around a true count, and their probabilities."""
    lower, upper = limits
    center = min(max(count, lower), upper)
    reach = max(_accuracy.scale_to_accuracy(mechanism.scale, _UNSEEN), 2)
    first, last = max(lower, center - reach), min(upper, center + reach)
    step = (last - first) // _STEPS + 1
    inside = [*range(center, first, -step), *range(center, last, step)]
    outputs = np.array(sorted({first, last, *inside}), dtype=dtype)
    masses = CensoredGeometric(center, mechanism.scale, limits).pmf(outputs)
    return _increasing("outputs", outputs), masses


def preview(
    epsilons: Numbers,
    accuracies: Callable[[list[Fraction]], Mapping[str, Sequence[int]]],
    alpha: Real,
    *,
    ax: Axes | None,
) -> Axes:
    """Draw the accuracies of a design's release by epsilon, for :meth:`Design.plot`."""
    _check_axes(ax)
    exact, places = _epsilons(epsilons, _PREVIEWED)
    [level] = _drawable("alpha", [parameters.level("alpha", alpha)])
    curves = accuracies(exact)
    _check_number("curves", curves)
    axes = _axes(ax)
    _draw_accuracies(axes, places, curves)
    y = f"accuracy at level {level:g} (counts)"
    return _finish(axes, "epsilon of the table", y, legend="accuracy of")


def _draw_accuracies(axes: Axes, epsilons: _Floats, curves: Mapping[str, Any]) -> None:
    """Draw each accuracy until the next epsilon: there it is no greater."""
    for (label, curve), colour, line in zip(curves.items(), _COLOURS, _LINES, strict=False):
        axes.step(epsilons, curve, where="post", linestyle=line, color=colour, label=label)
    _scale(axes, "x", "log")
    _scale(axes, "y", "symlog", linthresh=1, subs=range(2, 10))
    axes.set_ylim(bottom=-0.1, auto=None)


def _draw_pmfs(axes: Axes, pmfs: Mapping[str, tuple[_Floats, _Floats]]) -> None:
    inside = max(max(masses[1:-1], default=0) for _, masses in pmfs.values())
    steep = max(masses.max() for _, masses in pmfs.values()) > _STEEP * inside > 0
    few = not steep and sum(len(outputs) for outputs, _ in pmfs.values()) <= _STEMS
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
            # A step at a bound would be too thin to see.
            high = [end for end, next_ in ((0, 1), (-1, -2)) if masses[end] > masses[next_]]
            axes.plot(outputs[high], masses[high], _MARKERS[i], color=_COLOURS[i], markersize=4)
    if steep:
        _scale(axes, "y", "log")
        axes.set_ylim(bottom=inside / 1000, auto=None)
    _number(axes, "x")


def _draw_named(
    axes: Axes, drawn: _Floats, names: list[str], style: dict[str, Any], fill: dict[str, Any]
) -> None:
    """Draw bars, noisy counts and the ends of their intervals from top to bottom."""
    bars, points, lower, upper = drawn
    places = np.arange(len(names))
    axes.barh(places, bars, **fill)
    axes.errorbar(
        points, places, xerr=[list(points - lower), list(upper - points)], **_MARKS, **style
    )
    _mark_zero(axes, "x", lower)
    # Below the last bar is room for the legend.
    below = len(names) * 0.6 * axes.figure.dpi / axes.bbox.height
    axes.set_ylim(places[-1] + 0.5 + below, -0.5)
    _name(axes, "y", names)
    _number(axes, "x")


def _draw_bins(
    axes: Axes,
    drawn: _Floats,
    edges: _Floats,
    style: dict[str, Any],
    fill: dict[str, Any],
    *,
    band: bool,
) -> None:
    """Draw bars, noisy counts and the ends of their intervals, as marks or as a band."""
    bars, points, lower, upper = drawn
    axes.stairs(bars, edges, fill=True, **fill)
    if band:
        axes.stairs(upper, edges, baseline=lower, fill=True, color=_VERMILION, alpha=0.3)
        axes.stairs(points, edges, baseline=None, **style)
    else:
        middles = (edges[:-1] + edges[1:]) / 2
        axes.errorbar(
            middles, points, yerr=[list(points - lower), list(upper - points)], **_MARKS, **style
        )
    _mark_zero(axes, "y", lower)


# Axes


def _check_mechanism(mechanism: Any) -> None:
    """Refuse anything but a mechanism; a published table draws itself."""
    as_mechanism(mechanism, "a GeometricMechanism; a noisy table has plot()")


def _check_axes(ax: Any) -> None:
    with installed_by("geomdp[plot]"):
        from matplotlib.axes import Axes  # noqa: PLC0415
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax has type {type(ax).__name__}: give Axes of matplotlib, or None")


def _axes(ax: Axes | None, height: float = 0, width: float = 0) -> Axes:
    """Return the given Axes, or those of a new figure of at least this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # noqa: PLC0415 (an extra)

    _, axes = pyplot.subplots(
        figsize=(max(width, 8), min(max(height, 4.5), 50)), dpi=100, layout="constrained"
    )
    return axes


def _scale(axes: Axes, which: Literal["x", "y"], scale: str, **options: Any) -> None:
    """Scale an axis, with plain numbers at major ticks, and at minor ticks within one decade."""
    (axes.set_xscale if which == "x" else axes.set_yscale)(scale, **options)
    axis = _axis(axes, which)

    def minor(value: float, _: object) -> str:
        low, high = axis.get_view_interval()
        return _in_full(value) if high < 10 * low else ""

    axis.set_major_formatter(lambda value, _: _in_full(value))
    axis.set_minor_formatter(minor)


def _axis(axes: Axes, which: Literal["x", "y"]) -> Axis:
    return axes.xaxis if which == "x" else axes.yaxis


def _letter(axis: Axis) -> float:
    """Return the width of a letter at the ticks, in pixels."""
    return 0.6 * float(axis.get_ticklabels()[0].get_fontsize()) * axis.axes.figure.dpi / 72


def _in_full(value: float) -> str:
    """Return a number as text, with thousands separators."""
    whole = isinstance(value, int) or (abs(value) < 1e16 and float(value).is_integer())
    return (f"{int(value):,}" if whole else f"{value:,.6g}").replace("-", "\N{MINUS SIGN}")


def _number(axes: Axes, which: Literal["x", "y"], *, integer: bool = True) -> None:
    """Write the numbers of a linear axis in full, as far as there is room."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (an extra)

    axis = _axis(axes, which)
    if axis.get_scale() != "linear":
        return
    room: Any = "auto"
    if which == "x":
        letters = max(len(_in_full(round(end))) for end in axis.get_view_interval())
        room = min(max(int(axes.bbox.width / _letter(axis) / (letters + 3)), 1), 9)
    axis.set_major_locator(
        MaxNLocator(room, integer=integer, steps=[1, 2, 5, 10], min_n_ticks=1 if integer else 2)
    )
    axis.set_major_formatter(lambda value, _: _in_full(value))


def _date(axes: Axes, zone: datetime.tzinfo | None) -> None:
    """Show the places below as dates."""
    from matplotlib import dates  # noqa: PLC0415 (an extra)

    auto: Any = dates.AutoDateLocator
    concise: Any = dates.ConciseDateFormatter

    class Dates(concise):  # type: ignore[misc]
        """Names no month beside the axis if a tick names one: the last is not that of all ticks."""

        def format_ticks(self, values: Any) -> list[str]:
            labels: list[str] = super().format_ticks(values)
            self.named = any(map(str.isalpha, "".join(labels)))
            return labels

        def get_offset(self) -> str:
            year_month: str = super().get_offset()
            return year_month[:4] if self.named else year_month

    axes.xaxis.set_major_locator(locator := auto(tz=zone))
    axes.xaxis.set_major_formatter(Dates(locator, tz=zone))


def _mark_zero(axes: Axes, which: Literal["x", "y"], values: _Floats) -> None:
    """Draw a line at 0 if there are values below it, and the axis has a 0."""
    if values.min() < 0 and _axis(axes, which).get_scale() != "log":
        from matplotlib import lines, rcParams  # noqa: PLC0415 (an extra)

        across = axes.get_xaxis_transform() if which == "x" else axes.get_yaxis_transform()
        place = ([0, 0], [0, 1]) if which == "x" else ([0, 1], [0, 0])
        line = lines.Line2D(*place, color=rcParams["axes.edgecolor"], transform=across)
        line.set_linewidth(rcParams["axes.linewidth"])
        # axhline would round its 0 to 1e-14 among the data, and a logarithmic axis begin there.
        axes.add_artist(line)


def _colours(*, signed: bool) -> Any:
    """Return the colours of a table, which begin as those of the page, light or dark."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba  # noqa: PLC0415 (an extra)

    above = [to_rgba(_BLUE, 0), to_rgba(_BLUE, _STRONGEST)]
    below = [to_rgba(_BROWN, _STRONGEST), to_rgba(_BROWN, 0)]
    # Either colour ends at 0 with nothing of it, so that they do not mix.
    ends = [(0, below[0]), (0.5, below[1]), (0.5, above[0]), (1, above[1])]
    return LinearSegmentedColormap.from_list("counts", ends if signed else above)


def _readable(axes: Axes, cells: _Floats) -> NDArray[np.object_]:
    """Return the colour of a text on each cell: that of texts, or black or white by contrast."""
    from matplotlib import rcParams  # noqa: PLC0415 (an extra)
    from matplotlib.colors import to_rgb, to_rgba  # noqa: PLC0415 (an extra)

    def light(colours: Any) -> Any:
        """Return the relative luminance of WCAG 2.2, plus 0.05."""
        parts = np.asarray(colours)
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    seen = np.ones(3)  # White paper, where nothing has a colour.
    for layer in (*map(to_rgba, (axes.figure.get_facecolor(), axes.get_facecolor())), cells):
        colours, share = np.split(np.asarray(layer), [3], axis=-1)
        seen = colours * share + seen * (1 - share)
    given, page = light(to_rgb(rcParams["text.color"])), light(seen)
    contrast = np.maximum(page, given) / np.minimum(page, given)
    other = np.where(page / 0.05 >= 1.05 / page, "black", "white")
    return np.where(contrast >= _CONTRAST, rcParams["text.color"], other)


@functools.lru_cache
def _others(letters: frozenset[str], family: tuple[str, ...]) -> list[str]:
    """Return the fonts of the system with letters that a font lacks."""
    from matplotlib import font_manager  # noqa: PLC0415 (an extra)

    def known(path: str) -> set[str]:
        return set(map(chr, font_manager.get_font(path).get_charmap()))

    first = font_manager.findfont(font_manager.FontProperties(family=list(family)))
    missing, found = letters - known(first), []
    for font in font_manager.fontManager.ttflist:
        if not missing:
            break
        # The font of last resort has a box for every letter.
        if font.style == "normal" and "Last" not in font.name and missing & known(font.fname):
            found.append(font.name)
            missing -= known(font.fname)
    return found


def _fonts(texts: Iterable[str]) -> dict[str, Any]:
    """Return the fonts of texts with letters that matplotlib's own font lacks."""
    from matplotlib import rcParams  # noqa: PLC0415 (an extra)

    letters = {letter for text in texts for letter in text if letter.isprintable()} - {" "}
    family = rcParams["font.family"]
    others = _others(frozenset(letters), tuple(family))
    return {"fontfamily": [*family, *others]} if others else {}


def _name(axes: Axes, which: Literal["x", "y"], names: list[str]) -> None:
    """Name the places 0, 1, ... on an axis as far as there is room."""
    axis = _axis(axes, which)
    size = _letter(axis)
    sides = axes.bbox.width / size, axes.bbox.height / size
    along, across = sides if which == "x" else sides[::-1]
    letters = max(int(across / 2), 2)
    # A line is about two letters high.
    step = math.ceil(2.2 * float(np.ptp(axis.get_view_interval())) / along)
    fit = which == "y" or max(map(len, names)) + 1 <= along / len(names)
    plain = [name.replace("\n", " ") for name in names[::step]]
    shown = [name if len(name) <= letters else f"{name[: letters - 1]}…" for name in plain]
    places = range(0, len(names), step)
    axis.set_ticks(places, shown, parse_math=False, rotation=0 if fit else 90, **_fonts(shown))


def _of_mechanism(mechanism: GeometricMechanism) -> str:
    """Return the epsilon of a mechanism as text."""
    of = f" at sensitivity {mechanism.sensitivity}" if mechanism.sensitivity != 1 else ""
    return f"epsilon {float(mechanism.epsilon):g}{of}"


def _percent(alpha: Real) -> str:
    """Return the confidence of intervals as text."""
    return f"{float(100 * (1 - parameters.probability('alpha', alpha))):g}%"


def _all_within(what: str, reach: int, of: str, alpha: Real) -> str:
    """Return the title of a heat map, on which the cells that stand out are chosen by noise."""
    return f"{what} ± {reach:,}, all at once\n{of}, {_percent(alpha)} confidence"


def _finish(
    axes: Axes, x: str, y: str, legend: str | None = None, *, loc: _Location | None = None
) -> Axes:
    axes.set_xlabel(x, **_fonts([x]))
    axes.set_ylabel(y, **_fonts([y]))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if loc or len(axes.get_legend_handles_labels()[0]) > 1:
        box = axes.legend(title=legend, edgecolor="none", loc=loc or "best")
        for text in box.get_texts():
            text.set(**_fonts([text.get_text()]))
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
        wanted = "a row of at least one number" if length is None else f"a row of {length}"
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


def _epsilons(epsilons: Any, between: int) -> tuple[list[Fraction], _Floats]:
    """Return epsilons and others between them, exactly and as floats."""
    exact = [
        parameters.positive_fraction("epsilons", item) for item in _items("epsilons", epsilons)
    ]
    if len(exact) < 2:
        raise ValueError(parameters.refusal("epsilons", epsilons, "two or more"))
    given = _increasing("epsilons", _drawable("one of epsilons", exact)).tolist()
    more = np.geomspace(given[0], given[-1], between + 2)[1:-1].tolist()
    all_ = {each: Fraction(each) for each in more if given[0] < each < given[-1]}
    all_ |= dict(zip(given, exact, strict=True))
    return [all_[each] for each in sorted(all_)], np.array(sorted(all_))


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


def _check_number(name: str, series: Any) -> None:
    if not 1 <= len(series) <= len(_COLOURS):
        raise ValueError(f"{len(series)} {name} are not accepted: give from 1 to {len(_COLOURS)}")


def _names(name: str, names: Any, length: int) -> list[Any]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(parameters.refusal(name, names, "a sequence"))
    items = list(names)
    if len(items) != length:
        raise ValueError(f"{len(items)} {name} are not accepted: give {length}")
    return items


def _title(names: Any) -> str:
    """Return the name of an index or a column of names."""
    title = getattr(names, "name", None)
    return "" if title is None else _text(title)


def _days(names: list[Any]) -> _Floats | None:
    """Return two or more increasing dates as edges on matplotlib's axis, or None for other names.

    The last is as long as the one before it.
    """
    items = [
        name.astype("datetime64[us]").item() if isinstance(name, np.datetime64) else name
        for name in names
    ]
    # The missing time of pandas is a date without a year.
    known = (isinstance(item, datetime.date) and isinstance(item.year, int) for item in items)
    if len(items) < 2 or not all(known):
        return None
    from matplotlib import dates  # noqa: PLC0415 (an extra)

    number: Any = dates.date2num
    days = np.asarray(number(items), dtype=np.float64)
    widths = np.diff(days)
    return np.append(days, days[-1] + widths[-1]) if (widths > 0).all() else None


def _text(label: Any) -> str:
    """Return a label as text: a date without its midnight, and the parts of a tuple."""
    if isinstance(label, tuple):
        return ", ".join(map(_text, label))
    if isinstance(label, str):
        return label
    text = str(label).removesuffix(" 00:00:00")
    return "missing" if text in ("None", "nan", "NaT", "<NA>") else text
