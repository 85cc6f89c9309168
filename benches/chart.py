"""The style of the charts: small SVGs with real text; equal figures give identical files.

A transparent background and mid-tone colours make them readable on white and on black.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
GREY = "#6e7681"
OURS = "#e8590c"
COLOURS = ("#1c7ed6", "#2f9e44", "#ae3ec9", "#0c8599", "#e64980", "#b08800", "#7048e8", "#708090")
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "geomdp",
    "font.size": 9,
    "axes.titlesize": 10,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.titlecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.markersize": 4,
}


@contextmanager
def picture(name: str, width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure, and save it to docs/pictures at the end of the block."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        PICTURES.mkdir(exist_ok=True)
        path = PICTURES / f"{name}.svg"
        figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    print(f"written: {path.relative_to(PICTURES.parent.parent)}")


def log_axes(ax: Axes, which: str = "xy") -> None:
    """Make axes logarithmic, with ticks only at powers of ten."""
    for axis in which:
        getattr(ax, f"set_{axis}scale")("log")
        getattr(ax, f"{axis}axis").set_major_formatter(lambda value, _: power(value))
    ax.minorticks_off()


def power(value: float) -> str:
    """Return a power of ten as text."""
    if 0.01 < value < 10**5:
        return f"{value:g}"
    return "10" + str(round(math.log10(value))).translate(SUPERSCRIPT)


def name_lines(ax: Axes, ends: Sequence[tuple[str, float, str]], apart: float) -> None:
    """Label the right ends of lines in their colours, at least a factor `apart` on a log axis."""
    above = 0.0
    # From bottom to top, each label at least this factor above the previous one.
    for name, end, colour in sorted(ends, key=lambda item: item[1]):
        place = max(end, above)
        above = place * apart
        ax.annotate(
            name,
            (1, place),
            xycoords=ax.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=colour,
        )
