"""How pictures look: their axes, the texts of these, and the numbers that fit on them."""

from __future__ import annotations

import datetime
import functools
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.parameters import Real
from geomdp._inputs import arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Sequence[Real] | NDArray[Any]
_Location: TypeAlias = Literal["best", "lower right"] | tuple[float, float]

BLUE, VERMILION = "#0072B2", "#D55E00"
#: The colour of what is less important, on light and dark backgrounds.
QUIET = "#808080"
#: The largest number of points drawn as stems; the limit of bars, of the rows and columns of a
#: table, and about that of points per distribution.
STEMS, STEPS = 120, 2000
#: The sizes of numbers that fit on logarithmic axes with their margins.
_LEAST, _GREATEST = 1e-150, 1e150


def check_axes(ax: Any) -> None:
    with installed_by("geomdp[plot]"):
        from matplotlib.axes import Axes  # noqa: PLC0415
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax has type {type(ax).__name__}: give Axes of matplotlib, or None")


def axes(ax: Axes | None, height: float = 0, width: float = 0) -> Axes:
    """Return the given Axes, or those of a new figure of at least this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # noqa: PLC0415 (an extra)

    _, axes = pyplot.subplots(
        figsize=(max(width, 8), min(max(height, 4.5), 50)), dpi=100, layout="constrained"
    )
    return axes


def scale(axes: Axes, which: Literal["x", "y"], scale: str, **options: Any) -> None:
    """Scale an axis, with plain numbers at major ticks, and at minor ticks within one decade."""
    (axes.set_xscale if which == "x" else axes.set_yscale)(scale, **options)
    axis = _axis(axes, which)

    def minor(value: float, _: object) -> str:
        low, high = axis.get_view_interval()
        return in_full(value) if high < 10 * low else ""

    axis.set_major_formatter(lambda value, _: in_full(value))
    axis.set_minor_formatter(minor)


def _axis(axes: Axes, which: Literal["x", "y"]) -> Axis:
    return axes.xaxis if which == "x" else axes.yaxis


def _letter(axis: Axis) -> float:
    """Return the width of a letter at the ticks, in pixels."""
    return 0.6 * float(axis.get_ticklabels()[0].get_fontsize()) * axis.axes.figure.dpi / 72


def in_full(value: float) -> str:
    """Return a number as text, with thousands separators."""
    whole = isinstance(value, int) or (abs(value) < 1e16 and float(value).is_integer())
    return (f"{int(value):,}" if whole else f"{value:,.6g}").replace("-", "\N{MINUS SIGN}")


def number(axes: Axes, which: Literal["x", "y"], *, integer: bool = True) -> None:
    """Write the numbers of a linear axis in full, as far as there is room."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (an extra)

    axis = _axis(axes, which)
    if axis.get_scale() != "linear":
        return
    room: Any = "auto"
    if which == "x":
        letters = max(len(in_full(round(end))) for end in axis.get_view_interval())
        room = min(max(int(axes.bbox.width / _letter(axis) / (letters + 3)), 1), 9)
    axis.set_major_locator(
        MaxNLocator(room, integer=integer, steps=[1, 2, 5, 10], min_n_ticks=1 if integer else 2)
    )
    axis.set_major_formatter(lambda value, _: in_full(value))


def date(axes: Axes, zone: datetime.tzinfo | None) -> None:
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


def mark_zero(axes: Axes, which: Literal["x", "y"], values: Floats) -> None:
    """Draw a line at 0 if there are values below it, and the axis has a 0."""
    if values.min() < 0 and _axis(axes, which).get_scale() != "log":
        from matplotlib import lines, rcParams  # noqa: PLC0415 (an extra)

        across = axes.get_xaxis_transform() if which == "x" else axes.get_yaxis_transform()
        place = ([0, 0], [0, 1]) if which == "x" else ([0, 1], [0, 0])
        line = lines.Line2D(*place, color=rcParams["axes.edgecolor"], transform=across)
        line.set_linewidth(rcParams["axes.linewidth"])
        # axhline would round its 0 to 1e-14 among the data, and a logarithmic axis begin there.
        axes.add_artist(line)


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


def fonts(texts: Iterable[str]) -> dict[str, Any]:
    """Return how texts are written: as they are, and with letters that the usual font lacks.

    Dollar signs of names would set them as formulas, or make a picture an error.
    """
    from matplotlib import rcParams  # noqa: PLC0415 (an extra)

    letters = {letter for text in texts for letter in text if letter.isprintable()} - {" "}
    family = rcParams["font.family"]
    others = _others(frozenset(letters), tuple(family))
    return {"parse_math": False} | ({"fontfamily": [*family, *others]} if others else {})


def name(axes: Axes, which: Literal["x", "y"], names: list[str]) -> None:
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
    shown = [shortened(name, letters) for name in plain]
    places = range(0, len(names), step)
    axis.set_ticks(places, shown, rotation=0 if fit else 90, **fonts(shown))


def headed(axes: Axes, title: str, how: str, *, own: bool) -> Axes:
    """Write a title and how to read the picture, from the left edge of a figure of our own.

    Given Axes have both as their title, since the figure may have others.
    """
    figure = axes.figure
    letters = int(axes.bbox.width / figure.dpi * 13) if not own else int(figure.bbox.width / 7.7)
    title, how = (
        "\n".join(textwrap.wrap(each, int(letters * part)))
        for each, part in ((title, 0.8), (how, 1))
    )
    if not own:
        axes.set_title(f"{title}\n{how}", loc="left", **fonts([title]))
        return axes
    # The layout keeps room for the empty lines, on which the other text is.
    lines, room = title.count("\n") + 1, how.count("\n") + 1
    figure.suptitle(
        title + "\n" * room,
        x=0.015,
        ha="left",
        fontsize=13,
        fontweight="bold",
        **fonts([title]),
    )
    from matplotlib.transforms import ScaledTranslation  # noqa: PLC0415 (an extra)

    below = ScaledTranslation(0, -(0.07 + 0.22 * lines), figure.dpi_scale_trans)
    told: dict[str, Any] = {"va": "top", "fontsize": 9.5, "color": QUIET}
    told |= {"transform": figure.transFigure + below, **fonts([how])}
    figure.text(0.015, 1, how, **told).set_in_layout(False)
    return axes


def plain(axes: Axes, which: Literal["x", "y"]) -> None:
    """Leave a grid along an axis, with few numbers, and no frame."""
    for side in axes.spines.values():
        side.set_visible(False)
    number(axes, which)
    axes.grid(visible=True, axis=which, color="#808080", alpha=0.35, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def lines_of(
    names: Sequence[str], width: int = 36, most: int = 3
) -> tuple[list[str], Floats, float]:
    """Return names over a few lines, their places from the top in inches, and the whole height.

    Longer ones are cut in the middle, so that the ends, where long names differ, stay.
    """
    labels = [
        "\n".join(textwrap.wrap(shortened(name.replace("\n", " "), width * most - 4), width))
        or name
        for name in names
    ]
    heights = np.array([0.27 + 0.16 * label.count("\n") for label in labels])
    return labels, np.cumsum(heights) - heights / 2, float(heights.sum())


def room(axes: Axes) -> int:
    """Return how many letters the names of rows may have beside given Axes."""
    return max(int(axes.bbox.width / _letter(axes.yaxis) / 2), 5)


def shortened(name: str, letters: int) -> str:
    """Return a name of at most so many letters, cut in the middle."""
    if len(name) <= letters:
        return name
    end = letters // 3
    return f"{name[: letters - 1 - end]}…{name[len(name) - end :]}"


def name_rows(
    axes: Axes, places: Floats, labels: list[str], depths: NDArray[np.int64] | None = None
) -> None:
    """Name rows; those of a tree from the left, each further in than the one it is part of."""
    axis = axes.yaxis
    # A line is about a sixth of an inch high.
    step = math.ceil(len(labels) / 6 * axes.figure.dpi / axes.bbox.height)
    shown = labels[::step]
    axis.set_ticks(places[::step].tolist(), shown, **fonts(shown))
    axes.tick_params(axis="y", length=0, pad=9)
    if depths is None or not depths.any():
        return
    from matplotlib.transforms import ScaledTranslation  # noqa: PLC0415 (an extra)

    ticks = axis.get_ticklabels()
    for label, depth in zip(ticks, depths[::step].tolist(), strict=True):
        label.set_horizontalalignment("left")
        label.set_fontweight("normal" if depth else "bold")
    axes.figure.canvas.figure.draw_without_rendering()
    figure, inch = axes.figure, axes.figure.dpi
    width = max(label.get_window_extent().width for label in ticks) * 72 / inch
    axes.tick_params(axis="y", pad=width + 10 * int(depths.max()) + 9)
    for label, depth in zip(ticks, depths[::step].tolist(), strict=True):
        inwards = ScaledTranslation(0.14 * depth, 0, figure.dpi_scale_trans)
        label.set_transform(label.get_transform() + inwards)


def finish(
    axes: Axes, x: str, y: str, legend: str | None = None, *, loc: _Location | None = None
) -> Axes:
    axes.set_xlabel(x, **fonts([x]))
    axes.set_ylabel(y, **fonts([y]))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if loc or len(axes.get_legend_handles_labels()[0]) > 1:
        box = axes.legend(title=legend, edgecolor="none", loc=loc or "best")
        for text in box.get_texts():
            text.set(**fonts([text.get_text()]))
    return axes


# Numbers


def row(name: str, values: NDArray[Any], length: int | None = None) -> Floats:
    """Return one row of numbers as floats, and check that it has this length, or is not empty."""
    if values.ndim != 1 or not values.size or length not in (None, values.size):
        wanted = "a row of at least one number" if length is None else f"a row of {length}"
        raise ValueError(f"{name} is of shape {values.shape}: give {wanted}")
    return values.astype(np.float64)


def increasing(name: str, values: NDArray[Any]) -> Floats:
    """Return a row of numbers as floats, and check that these increase."""
    floats = row(name, values)
    if not (floats[:-1] < floats[1:]).all():
        raise ValueError(
            f"{name} that do not increase in float64, which plots use, are not accepted: "
            "give increasing numbers"
        )
    return floats


def items(name: str, values: Any) -> list[Any]:
    """Return the items of a sequence or of a one-dimensional array."""
    if isinstance(values, np.ndarray):
        arrays.refuse_masked(name, values)
        if values.ndim == 1 and values.dtype.kind not in "mM":
            return list(values.tolist())
    elif isinstance(values, list | tuple):
        return list(values)
    raise TypeError(parameters.refusal(name, values, "a sequence or an array of numbers"))


def drawable(what: str, values: Iterable[Any], *, positive: bool = True) -> Floats:
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
