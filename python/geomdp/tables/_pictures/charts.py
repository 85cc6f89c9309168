"""Pictures of releases: counts with intervals, heat maps, and those of published tables.

Of published tables, one mark shows one number: a dot the number that the page shows, a line its
interval. The title says what is drawn, and a line below it how to read it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy
from geomdp._ground import parameters
from geomdp._ground.parameters import Real
from geomdp._inputs import arrays
from geomdp._inputs.labels import detach
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.tables._pictures import drawing
from geomdp.tables._pictures.drawing import BLUE, STEMS, STEPS, VERMILION, Floats, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS: dict[str, Any] = {"fmt": "o", "markersize": 4, "elinewidth": 1, "capsize": 2}
#: The colour of the most negative counts of a table, on which white shows as on blue.
_BROWN = "#A34700"
#: The largest number of names that the tallest figure shows.
_NAMED = 200
#: Up to 60 names of a published table are all drawn; of more, the 40 largest.
MOST_ROWS, _LARGEST = 60, 40
#: From this size on, an end is a limit of its type: it is open.
_OPEN = 2.0**62
#: The most rows with their numbers beside them, and the most dates with a dot each.
_WRITTEN, _DOTS = 40, 31
#: How much of its colour an interval has.
_FAINT = 0.45
#: The largest number of rows or columns of a table whose counts are written into it.
_CELLS = 50
#: The share of the colour in the cells that have most of it, on which black texts show well.
_STRONGEST = 0.7
#: The least contrast of a text, by WCAG 2.2; black or white always has more.
_CONTRAST = 4.5


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
    """Draw noisy counts with their intervals, as points by name or as bars of bins.

    An interval contains its true count with probability at least ``1 - alpha``
    (:meth:`geomdp.GeometricMechanism.confidence_interval`), and is drawn within the bounds: one
    that reaches a bound goes on there. The legend shows epsilon and this confidence. Counts with
    names are points from top to bottom, and dates are steps, with the intervals as a band. A line
    marks 0 if an interval reaches below it. The Axes may be logarithmic, which leaves out counts of
    0 and below, or ``symlog``, which does not.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that released the counts. Releases of :mod:`geomdp.tables` draw themselves
        (:meth:`geomdp.tables.NoisyTable.plot`).
    noisy : array, sequence, mapping, column or frame
        The noisy counts, at most 2000, or 200 with names. A frame has one column of names and one
        of counts.
    true : array or sequence of ints, optional
        The true counts. They become the bars, and the noisy counts points. Such a plot is not
        private, so do not publish it.
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
        As in :func:`geomdp.tables.plot.pmf`.

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
    drawing.check_axes(ax)
    _check_mechanism(mechanism)
    index = getattr(noisy, "index", None)
    (true, noisy), labelled = detach(true=true, noisy=noisy)
    counts = _counts("noisy", noisy)
    points = drawing.row("noisy", counts)
    bars = points if true is None else drawing.row("true", _counts("true", true), len(points))
    ends = mechanism.confidence_interval(counts, alpha)
    if mechanism.bounds is not None:
        ends = np.clip(ends, *mechanism.bounds)
    keys = labelled.keys
    numbered = keys == list(range(len(points))) and not labelled.sides
    if labels is None and edges is None and not numbered:
        labels = keys
    if labels is not None and edges is not None:
        raise TypeError("labels and edges are alternatives: give one of them")
    names = None if labels is None else _names("labels", labels, len(points))
    days = None if names is None else _days(names)
    kind, most = ("named counts", _NAMED) if names and days is None else ("counts", STEPS)
    if len(points) > most:
        raise ValueError(f"noisy has {len(points)} {kind}: draw parts of at most {most}")
    borders = np.arange(-0.5, len(points)) if days is None else days
    if edges is not None:
        borders = drawing.row(
            "edges", drawing.increasing("edges", _finite("edges", edges)), len(points) + 1
        )
    widths = np.diff(borders)
    drawn = np.array([bars, points, *ends], dtype=np.float64)
    # Widths of equal bins differ by rounding. A month's count is not divided by its days.
    unequal = days is None and np.ptp(widths) > 1e-6 * widths.max()
    if unequal:
        drawn /= widths
    axes = drawing.axes(ax, 0 if names is None or days is not None else 1.5 + 0.25 * len(names))
    style: dict[str, Any] = {
        "color": VERMILION,
        "label": f"noisy, {_of_mechanism(mechanism)}, {_percent(alpha)} intervals",
    }
    own = {"color": VERMILION} if true is None else {"color": BLUE, "label": "true"}
    fill: dict[str, Any] = {"alpha": 0.4, **own}
    named = index if labels is keys else labels
    title = _text(labelled.sides[0][0]) if labelled.sides else _title(named)
    if names is not None and days is None:
        # One mark for one number: bars are those of true counts.
        fill = {} if true is None else fill
        _draw_named(axes, drawn, list(map(_text, names)), style, fill)
        return drawing.finish(axes, "count", title, loc="lower right")
    band = days is not None or len(points) > STEMS
    _draw_bins(axes, drawn, borders, style, fill, band=band)
    drawing.number(axes, "y", integer=not unequal)
    x = "number of the bin" if edges is None else "value"
    if names is None:
        drawing.number(axes, "x", integer=edges is None)
    else:
        drawing.date(axes, getattr(names[0], "tzinfo", None))
        x = title
    return drawing.finish(axes, x, "count per unit of value" if unequal else "count", loc="best")


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

    The line below the title says how far all true counts, if they are within the bounds, are from
    the noisy ones at once, at level alpha (:func:`geomdp.accuracy.simultaneous_accuracy`), so it
    holds for the cells that stand out, too. The colours begin at 0, which has none; counts below it
    are brown.

    Parameters
    ----------
    mechanism
        As in :func:`histogram`.
    noisy : array of ints, or frame
        The noisy counts, in two dimensions of at most 2000; colours alone show those of more than
        50 rows or columns. A frame is a pivot of pandas, or has two columns of names before its
        column of counts.
    alpha : number
        The probability that a true count is further away than the picture says.
    rows, columns : sequence, optional
        The names of rows and columns, of any type, instead of those of a frame; shown as
        in :func:`histogram`. A pandas Index with a name names its axis too. Without names they are
        numbered from 0.
    ax
        As in :func:`geomdp.tables.plot.pmf`.

    Returns
    -------
    Axes
        Columns, whose names stand above, against rows.

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
    drawing.check_axes(ax)
    _check_mechanism(mechanism)
    [noisy], labelled = detach(noisy=noisy)
    counts = _counts("noisy", noisy)
    if counts.ndim != 2 or not counts.size or max(counts.shape) > STEPS:
        raise ValueError(
            f"noisy is of shape {counts.shape}: give two dimensions of at most {STEPS}"
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
    reach = accuracy.simultaneous_accuracy(mechanism, alpha, n=counts.size)
    stated = (
        f"With {_percent(alpha)} confidence, {_all(counts.size)} within {reach:,} of the numbers. "
        f"Noise of {_of_mechanism(mechanism)}."
    )
    axes = _draw_table(ax, counts, sides, (y, x))
    by = [drawn_by for drawn_by in (y, x) if drawn_by]
    title = f"Noisy counts by {' and '.join(by)}" if by else "Noisy counts"
    return drawing.headed(axes, title, stated, own=ax is None)


# Published tables


class Stated(NamedTuple):
    """What a picture of a published table states."""

    #: What is counted, as its column is called, and by what.
    title: str
    #: The epsilon, and of what.
    noise: str
    alpha: Real
    #: The least that a true count may be.
    least: float

    @property
    def confidence(self) -> str:
        """The confidence of intervals as text."""
        return _percent(self.alpha)

    def numbers(self, found: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
        """Return the numbers shown, and ends of intervals that can be drawn.

        What noise carried below the least possible count is shown as that.
        """
        estimates, lower, upper = drawing.drawable(
            "an interval", found.reshape(-1), positive=False
        ).reshape(found.shape)
        if (near := np.abs(found) < _OPEN).any():
            # An open end is drawn as far as the furthest of the others.
            lower, upper = (x.clip(found[near].min(), found[near].max()) for x in (lower, upper))
        return np.rint(np.maximum(estimates, self.least)) + 0.0, lower, upper


def stated(name: str, labels: Sequence[str], noise: str, alpha: Real, least: float) -> Stated:
    """Return what a picture of counts by some columns states."""
    return Stated(f"{name[:1].upper()}{name[1:]} by {' and '.join(labels)}", noise, alpha, least)


def published_rows(
    names: Sequence[Any],
    label: str,
    ends: Callable[[bool], NDArray[Any]],
    stated: Stated,
    *,
    ordered: bool,
    depths: NDArray[np.int64] | None = None,
    ax: Axes | None,
) -> Axes:
    """Draw estimates and their intervals for the levels of a column: a dot and a line each.

    If levels are ordered, dates and increasing numbers are places on the axis. Of more names than
    fit, the largest estimates are drawn, and the title says so. They were chosen by their noise, so
    they get intervals that hold for all names at once: ``ends(True)`` returns three rows with
    these, and ``ends(False)`` with intervals that hold each.
    """
    drawing.check_axes(ax)
    items = [x.astype("M8[us]").item() if isinstance(x, np.datetime64) else x for x in names]
    days = ordered and _days(items) is not None
    if days or (ordered and _borders(items) is not None):
        return _draw_line(items, label, stated.numbers(ends(False)), stated, days=days, ax=ax)
    chosen = len(names) > MOST_ROWS
    middle, lower, upper = stated.numbers(ends(chosen))
    title, of = stated.title, ""
    if chosen:
        largest = np.argsort(-middle, kind="stable")[:_LARGEST]
        title += f": the {_LARGEST} largest of {len(names):,}"
        of = f" (wider, so that all {len(names):,} hold at once)"
        names = [names[place] for place in largest.tolist()]
        middle, lower, upper = (each[largest] for each in (middle, lower, upper))
    texts = list(map(_text, names))
    labels, places, height = drawing.lines_of(texts)
    axes = drawing.axes(ax, 1.6 + height)
    if ax is not None:
        labels = [drawing.shortened(text, drawing.room(axes)) for text in texts]
        places, height = np.arange(len(texts), dtype=np.float64), len(texts) - 0.5
    _draw_marks(axes, places, middle, lower, upper)
    axes.set_ylim(height, 0 if ax is None else -0.5)
    drawing.name_rows(axes, places, labels, depths)
    if len(names) <= _WRITTEN:
        _write(axes, places, [drawing.in_full(int(each)) for each in middle.tolist()])
    how = f"Dot: estimate. Line: {stated.confidence} interval{of}. {stated.noise}"
    return drawing.headed(axes, title, how, own=ax is None)


def published_tiers(
    names: Sequence[Any],
    ends: Mapping[str, Callable[[bool], NDArray[Any]]],
    stated: Stated,
    *,
    ax: Axes | None,
) -> Axes:
    """Draw the same rows at several precisions, the finest first, each named where it is drawn."""
    drawing.check_axes(ax)
    count, chosen = len(ends), len(names) > MOST_ROWS // 2
    found = {tier: stated.numbers(of(chosen)) for tier, of in ends.items()}
    title, of_all = f"{stated.title}, at {count} precisions", ""
    if chosen:
        finest = next(iter(found.values()))[0]
        largest = np.argsort(-finest, kind="stable")[: _LARGEST // 2]
        title += f": the {_LARGEST // 2} largest of {len(names):,}"
        of_all = f" (wider, so that all {len(names):,} of a tier hold at once)"
        names = [names[place] for place in largest.tolist()]
        found = {
            tier: (middle[largest], lower[largest], upper[largest])
            for tier, (middle, lower, upper) in found.items()
        }
    labels = drawing.lines_of(list(map(_text, names)))[0]
    height = 0.24 * count + 0.16
    axes = drawing.axes(ax, 1.8 + height * len(names))
    starts = np.arange(len(names), dtype=np.float64) * height + 0.08
    for row, (tier, (middle, lower, upper)) in enumerate(found.items()):
        places: Floats = (starts + 0.24 * (row + 0.5)).astype(np.float64)
        _draw_marks(axes, places, middle, lower, upper)
        texts = [f"{drawing.in_full(int(each))}   {tier}" for each in middle.tolist()]
        _write(axes, places, texts, start=True)
    axes.set_ylim(height * len(names), 0)
    drawing.name_rows(axes, starts + 0.12 * count, labels)
    how = f"Dot: estimate. Line: {stated.confidence} interval{of_all}. {stated.noise}"
    return drawing.headed(axes, title, how, own=ax is None)


def published_table(
    sides: Sequence[Sequence[Any]],
    titles: Sequence[str],
    ends: NDArray[Any],
    stated: Stated,
    *,
    ax: Axes | None,
) -> Axes:
    """Draw estimates on a heat map; `ends` also has intervals that hold for all cells at once."""
    drawing.check_axes(ax)
    drawn = drawing.drawable("an interval", ends.reshape(-1), positive=False).reshape(ends.shape)
    if max(ends.shape) > STEPS:
        raise ValueError(
            f"the table is of shape {ends.shape[1:]}: give by, one column or two of at most "
            f"{STEPS} levels"
        )
    middle = np.maximum(drawn[0], stated.least)
    reaches = drawn[2] - middle
    near = reaches < _OPEN
    reach = math.ceil(max(reaches[near].max(initial=0), (middle - drawn[1])[near].max(initial=0)))
    which = "" if near.all() else " of numbers that reach no bound"
    how = (
        f"Estimates. With {stated.confidence} confidence, {_all(middle.size, which)} within "
        f"{reach:,} of the numbers. {stated.noise}"
    )
    names = [list(map(_text, side)) for side in sides]
    axes = _draw_table(ax, np.rint(middle).astype(np.int64), names, titles)
    return drawing.headed(axes, stated.title, how, own=ax is None)


def published_names(names: Sequence[Any], title: str, how: str, *, ax: Axes | None) -> Axes:
    """Write names in their order, each with its rank: a list says it best."""
    drawing.check_axes(ax)
    places = np.arange(len(names))
    axes = drawing.axes(ax, 1.6 + 0.27 * len(names))
    texts = drawing.lines_of(list(map(_text, names)), width=70, most=1)[0]
    for place, text in zip(places.tolist(), texts, strict=True):
        fonts = drawing.fonts([text])
        axes.text(0.05, place, f"{place + 1}", ha="right", va="center", color=drawing.QUIET)
        axes.text(0.08, place, text, va="center", **fonts)
    axes.set_ylim(places[-1] + 0.6, -0.6)
    axes.set_xlim(0, 1)
    axes.set_axis_off()
    return drawing.headed(axes, title, how, own=ax is None)


def _draw_line(
    names: Sequence[Any],
    label: str,
    numbers: tuple[Floats, Floats, Floats],
    stated: Stated,
    *,
    days: bool,
    ax: Axes | None,
) -> Axes:
    """Draw dots and lines at few dates or numbers, or a line with a band; the last in words."""
    middle, lower, upper = numbers
    axes, places = drawing.axes(ax), list(names)
    band = len(names) > _DOTS
    if band:
        axes.fill_between(places, lower, upper, color=BLUE, alpha=_FAINT, linewidth=0)
        axes.plot(places, middle, color=BLUE, linewidth=1.5)
        how = f"Line: estimate. Band: {stated.confidence} interval of each. {stated.noise}"
    else:
        axes.vlines(places, lower, upper, color=BLUE, alpha=_FAINT, linewidth=5)
        axes.plot(places, middle, "o", color=BLUE, markersize=5)
        how = f"Dot: estimate. Line: {stated.confidence} interval. {stated.noise}"
    low = min(0, float(lower.min()))
    axes.set_ylim(low * 1.05, max(float(upper.max()), 1) * 1.05)
    axes.margins(x=0.02)
    drawing.plain(axes, "y")
    axes.set_xlabel(label, **drawing.fonts([label]))
    if days:
        drawing.date(axes, getattr(names[0], "tzinfo", None))
    else:
        drawing.number(axes, "x")
    axes.annotate(
        drawing.in_full(int(middle[-1])),
        (places[-1], middle[-1]),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        color=BLUE,
        fontweight="bold",
        annotation_clip=False,
    )
    return drawing.headed(axes, stated.title, how, own=ax is None)


def _draw_marks(axes: Axes, places: Floats, middle: Floats, lower: Floats, upper: Floats) -> None:
    """Draw a dot at each number and a line for its interval, with the axis above."""
    axes.hlines(places, lower, upper, color=BLUE, alpha=_FAINT, linewidth=5)
    axes.plot(middle, places, "o", color=BLUE, markersize=5.5, clip_on=False)
    low, high = axes.get_xlim() if len(axes.collections) > 1 else (0.0, 1.0)
    axes.set_xlim(min(low, float(lower.min())), max(high, 1.02 * float(upper.max())))
    drawing.plain(axes, "x")
    axes.xaxis.tick_top()


def _write(axes: Axes, places: Floats, texts: Sequence[str], *, start: bool = False) -> None:
    """Write texts beside the rows, at the right."""
    for place, text in zip(places.tolist(), texts, strict=True):
        axes.annotate(
            text,
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(8 if start else 10 + 6 * max(map(len, texts)), 0),
            textcoords="offset points",
            ha="left" if start else "right",
            va="center",
            annotation_clip=False,
            **drawing.fonts([text]),
        )


# Bars and cells


def _draw_table(
    ax: Axes | None,
    counts: NDArray[Any],
    sides: Sequence[list[str]],
    titles: Sequence[str],
) -> Axes:
    """Draw counts, or estimates, from 0 on, with the names of rows and of columns."""
    height, width = counts.shape
    written = max(height, width) <= _CELLS
    inches = np.array([1 + 0.3 * height, 2 + 0.7 * width])
    if not written:
        inches = inches.clip(max=np.maximum((9, 14), np.array(counts.shape) / 75))
    axes = drawing.axes(ax, *inches)
    # No cell is smaller than a pixel.
    sharp = axes.bbox.height >= height and axes.bbox.width >= width
    values = counts.astype(np.float64)
    least, most = min(values.min(), 0), max(values.max(), 1)
    reaches = (0, most) if least == 0 else (-max(-least, most), max(-least, most))
    image = axes.imshow(
        values,
        _colours(signed=least < 0),
        vmin=reaches[0],
        vmax=reaches[1],
        aspect="auto",
        interpolation="nearest" if sharp else "auto",
    )
    drawing.name(axes, "y", sides[0])
    drawing.name(axes, "x", sides[1])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set_ylabel(titles[0], **drawing.fonts(titles[:1]))
    axes.set_xlabel(titles[1], **drawing.fonts(titles[1:]))
    for side in axes.spines.values():
        side.set_visible(False)
    if not written:
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.5, aspect=15)
        drawing.number(bar.ax, "y")
        if least < 0:
            bar.ax.set_ylim(least, most)
            drawing.mark_zero(bar.ax, "y", values)
        return axes
    # The size of a cell is known once the names have been laid out.
    axes.figure.canvas.figure.draw_without_rendering()
    inch = axes.figure.dpi / 72
    texts = [[drawing.in_full(count) for count in row] for row in counts.tolist()]
    digits = max(len(text) for row in texts for text in row)
    across = axes.bbox.width / width / (0.7 * (digits + 1)) / inch
    largest = float(axes.xaxis.get_ticklabels()[0].get_fontsize())
    size = min(largest, across, 0.8 * axes.bbox.height / height / inch)
    colours = _readable(axes, image.to_rgba(values))
    for (row, column), color in np.ndenumerate(colours):
        text = texts[row][column]
        axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color)
    return axes


def _draw_named(
    axes: Axes, drawn: Floats, names: list[str], style: dict[str, Any], fill: dict[str, Any]
) -> None:
    """Draw noisy counts and the ends of their intervals from top to bottom, over bars if given."""
    bars, points, lower, upper = drawn
    places = np.arange(len(names))
    if fill:
        axes.barh(places, bars, **fill)
    axes.errorbar(
        points, places, xerr=[list(points - lower), list(upper - points)], **_MARKS, **style
    )
    drawing.mark_zero(axes, "x", lower)
    # Below the last bar is room for the legend.
    below = len(names) * 0.6 * axes.figure.dpi / axes.bbox.height
    axes.set_ylim(places[-1] + 0.5 + below, -0.5)
    drawing.name(axes, "y", names)
    drawing.number(axes, "x")


def _draw_bins(
    axes: Axes,
    drawn: Floats,
    edges: Floats,
    style: dict[str, Any],
    fill: dict[str, Any],
    *,
    band: bool,
) -> None:
    """Draw bars, noisy counts and the ends of their intervals, as marks or as a band."""
    bars, points, lower, upper = drawn
    axes.stairs(bars, edges, fill=True, **fill)
    if band:
        axes.stairs(upper, edges, baseline=lower, fill=True, color=VERMILION, alpha=0.3)
        axes.stairs(points, edges, baseline=None, **style)
    else:
        middles = (edges[:-1] + edges[1:]) / 2
        axes.errorbar(
            middles, points, yerr=[list(points - lower), list(upper - points)], **_MARKS, **style
        )
    drawing.mark_zero(axes, "y", lower)


def _colours(*, signed: bool) -> Any:
    """Return the colours of a table, which begin as those of the page, light or dark."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba  # noqa: PLC0415 (an extra)

    above = [to_rgba(BLUE, 0), to_rgba(BLUE, _STRONGEST)]
    below = [to_rgba(_BROWN, _STRONGEST), to_rgba(_BROWN, 0)]
    # Either colour ends at 0 with nothing of it, so that they do not mix.
    ends = [(0, below[0]), (0.5, below[1]), (0.5, above[0]), (1, above[1])]
    return LinearSegmentedColormap.from_list("counts", ends if signed else above)


def _readable(axes: Axes, cells: Floats) -> NDArray[np.object_]:
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


# Texts and parameters


def _check_mechanism(mechanism: Any) -> None:
    """Refuse anything but a mechanism; a published table draws itself."""
    as_mechanism(mechanism, "a GeometricMechanism; a noisy table has plot()")


def _of_mechanism(mechanism: GeometricMechanism) -> str:
    """Return the epsilon of a mechanism as text."""
    of = f" at sensitivity {mechanism.sensitivity}" if mechanism.sensitivity != 1 else ""
    return f"epsilon {parameters.text(mechanism.epsilon)}{of}"


def _all(n: int, which: str = "") -> str:
    """Return how a sentence on all true counts of a picture begins."""
    return f"the true count{which} is" if n == 1 else f"all {n:,} true counts{which} are"


def _percent(alpha: Real) -> str:
    """Return the confidence of intervals as text."""
    return f"{float(100 * (1 - parameters.probability('alpha', alpha))):g}%"


def _counts(name: str, counts: Any) -> arrays.Array:
    try:
        return arrays.as_array(counts)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{name}: {error}") from None


def _finite(name: str, values: Any) -> Floats:
    exact = [parameters.finite(name, item) for item in drawing.items(name, values)]
    return drawing.drawable(f"one of {name}", exact, positive=False)


def _names(name: str, names: Any, length: int) -> list[Any]:
    if not parameters.has_items(names):
        raise TypeError(parameters.refusal(name, names, "a sequence"))
    items = list(names)
    if len(items) != length:
        raise ValueError(f"{len(items)} {name} are not accepted: give {length}")
    return items


def _title(names: Any) -> str:
    """Return the name of an index or a column of names."""
    title = getattr(names, "name", None)
    return "" if title is None else _text(title)


def _text(label: Any) -> str:
    """Return a label as text: a date without its midnight, and the parts of a tuple."""
    if isinstance(label, tuple):
        return ", ".join(map(_text, label))
    if isinstance(label, str):
        return label
    text = str(label).removesuffix(" 00:00:00")
    return "missing" if text in ("None", "nan", "NaT", "<NA>") else text


def _days(names: list[Any]) -> Floats | None:
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


def _borders(names: Sequence[Any]) -> Floats | None:
    """Return edges half-way between two or more increasing numbers; None for other names."""
    if len(names) < 2 or not all(type(name) in (int, float) for name in names):
        return None
    places = np.array(names, dtype=np.float64)
    widths = np.diff(places)
    if not (widths > 0).all():
        return None
    ends = places[0] - widths[0] / 2, places[-1] + widths[-1] / 2
    return np.concatenate([ends[:1], places[:-1] + widths / 2, ends[1:]])
