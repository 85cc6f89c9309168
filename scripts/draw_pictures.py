"""Draw pictures for the docs: `make pictures`; the site also draws those of its examples.

The noise in pictures of releases is new every run. The figures behind the picture of streams are
printed too.
"""

import contextlib
import doctest
import html
import io
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot

from geomdp import GeometricMechanism, accuracy
from geomdp.accounting import compose, zcdp
from geomdp.tables import Design, plot
from geomdp.tables._math import span_trees

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from chart import COLOURS, GREY, OURS, STYLE, log_axes, picture  # noqa: E402

#: The texts of examples on a light page, and those of all pictures on a dark one.
INK, PALE = "#1b1f24", "#d0d7de"
#: The size of their letters, in points of a figure of 8 inches, for telephones.
SIZE = 13
#: The rows of a file that a page shows.
ROWS = 12
#: Files are not searched: the search fails for "epsilon" if it has read their JSON.
UNSOUGHT = "data-search-exclude"
#: The readers of tables by suffix.
TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": pd.read_csv,
    ".parquet": pd.read_parquet,
}

EPSILON = 0.2
#: A daily release of this privacy loss, for a year.
DAILY, DAYS, DELTA = 0.1, 365, 1e-6


def main() -> None:
    release()
    tiers()
    composition()
    streams()


def dark(svg: str) -> str:
    """Return a picture for a dark page."""
    return svg.replace(INK, PALE).replace(GREY, PALE)


def run(session: str, names: dict[str, Any]) -> list[str]:
    """Run a session in the style of the site; return the figures that it draws, as SVG."""
    pyplot.switch_backend("agg")  # Opens no window.
    ink = {key: INK for key, value in STYLE.items() if value == GREY and key != "grid.color"}
    drawn = []
    with (
        mpl.rc_context({**STYLE, **ink, "font.size": SIZE, "axes.titlesize": SIZE}),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for part in doctest.DocTestParser().get_examples(session):
            with contextlib.suppress(*[Exception] if part.exc_msg else []):
                exec(compile(part.source, "example", "exec"), names)
        for number in pyplot.get_fignums():
            text = io.StringIO()
            pyplot.figure(number).savefig(text, format="svg", transparent=True)
            drawn.append(re.sub(" *<metadata>.*?</metadata>\n", "", text.getvalue(), flags=re.S))
        pyplot.close("all")
    return drawn


def example(name: str) -> str:
    """Run the example in the docstring of a plot function; return its picture."""
    [drawn] = run(getattr(plot, name).__doc__, {})
    return drawn


def page(sessions: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Run the sessions of a page; yield the pictures and the files that each leaves, as HTML."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        seen: set[Path] = set()
        for session in sessions:
            drawn = run(session, names)
            new = [path for path in sorted(Path().iterdir()) if path not in seen]
            seen.update(new)
            tables = [path for path in new if path.suffix in TABLES]
            # Of many tables, the last stands for all.
            left_out = set(map(str, tables[:-1] if len(tables) > 3 else ()))
            shown = [path for path in new if left_out.isdisjoint({str(path), path.stem})]
            more = [f"<p>and {len(left_out)} more such files</p>"] if left_out else []
            yield drawn, [*(text for path in shown if (text := file(path))), *more]


def file(path: Path) -> str | None:
    """Return a published file as HTML, or None for one that no page shows."""
    if path.suffix in TABLES:
        frame = TABLES[path.suffix](path)
        table = frame.head(ROWS).to_html(index=False, na_rep="")
        rest = f"<p>and {len(frame) - ROWS:,} more rows</p>" if len(frame) > ROWS else ""
        table = re.sub(r"<(table|tr)[^>]*>", r"<\1>", table)
        return f'<p><code>{path}</code>:</p><div class="output" {UNSOUGHT}>{table}</div>{rest}'
    if path.suffix in (".json", ".txt"):
        text = html.escape(path.read_text().rstrip())
        return (
            f"<details {UNSOUGHT}><summary><code>{path}</code></summary>"
            f'<pre class="no-copy"><code>{text}</code></pre></details>'
        )
    return None


def tiers() -> None:
    """Draw the intervals of two tiers of one release around the true counts."""
    counts = {"Ash": 135, "Birch": 110, "Cedar": 88, "Elm": 57, "Oak": 30, "Yew": 12}
    people = pd.DataFrame({"ward": np.repeat([*counts], [*counts.values()])})
    table = Design({"ward": [*counts]}).count(people)
    noisy = table.release(tiers={"public": "0.1", "researchers": 1})
    with picture("tiers", 4.6, 2.6) as figure:
        axes = figure.subplots()
        for (name, each), colour, width in zip(noisy.items(), (GREY, OURS), (6, 3), strict=True):
            ends, places = each.intervals(alpha=0.05), np.arange(len(counts))
            label = f"{name}, epsilon {each.privacy_loss():g}"
            axes.hlines(places, ends["lower"], ends["upper"], colour, linewidth=width, label=label)
        axes.plot([*counts.values()], places, "|", color=INK, ms=14, label="true count", zorder=3)
        axes.set_yticks(places, [*counts])
        axes.invert_yaxis()
        axes.set(xlabel="count", xlim=(0, None))
        figure.legend(loc="outside upper center", ncols=2)


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


def release() -> None:
    """Draw the release of the README, whose examples run for it; print its table and its page."""
    text = (ROOT / "README.md").read_text()
    example = text[text.index(">>> import pandas") : text.index("The true counts are 0")]
    session: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(doctest.script_from_examples(example), session)
        screenshot(Path("wards.html").resolve())
    print(session["noisy"].intervals(alpha=0.05))
    with picture("release", 4.6, 2.2) as figure:  # Readable at the width of a telephone.
        session["noisy"].plot(ax=figure.subplots())


def screenshot(path: Path) -> None:
    """Draw a page as a browser shows it."""
    from playwright import sync_api  # noqa: PLC0415 (only this picture needs it)

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        view = browser.new_page(viewport={"width": 720, "height": 400}, device_scale_factor=2)
        view.goto(path.as_uri())
        view.screenshot(path=ROOT / "docs/pictures/page.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
