"""Views that pick or order rows by their noisy values: their intervals hold after the choice."""

import itertools
import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import tables
from geomdp._ground.identity import Identity
from geomdp.tables import plot
from geomdp.tables._pictures import charts
from geomdp.tables._publish.page import shown as page
from geomdp.tables._results.groups import NoisyGroups
from published_kinds import RELEASED
from test_page import saved

mpl.use("Agg")

#: Noisy counts that a view shows, and for each the ends of its interval.
Shown: TypeAlias = dict[int, tuple[float, float]]
ALPHA, RATE, CELLS, FIRST, LEAST = 0.05, 0.5, 1000, 40, 25
NAMES = [f"town {n}" for n in range(CELLS)]
ONE = tables.Design({"town": NAMES})
TWO = tables.Design({"town": NAMES[: CELLS // 5], "year": range(5)})


def released(design: tables.Design, counts: np.ndarray) -> Any:
    """Return a release of these noisy counts."""
    empty = pd.DataFrame({label: pd.Series([], dtype=object) for label in design.levels})
    noisy = design.count(empty).release(epsilon=RATE)
    noisy.counts[...] = counts.reshape(noisy.counts.shape)
    return noisy


def grouped(counts: np.ndarray) -> NoisyGroups:
    """Return a release of groups with these noisy counts."""
    noisy = released(ONE, counts)
    cells = np.arange(CELLS)
    return NoisyGroups(
        noisy.design,
        noisy.mechanisms,
        None,
        "pandas",
        counts,
        cells=cells,
        at_least=LEAST,
        identity=Identity(noisy.id),
    )


def bars(axes: Any) -> Shown:
    """Return the dots of a picture, and the intervals through them."""
    [dots], [ends] = axes.lines, axes.collections
    segments = np.array(ends.get_segments())[:, :, 0]
    return dict(zip(map(int, dots.get_xdata()), map(tuple, segments.tolist()), strict=False))


def as_shown(found: Shown, counts: np.ndarray) -> Shown:
    """Return the intervals of noisy counts, which pictures show as 0 below it."""
    return {each: found[max(each, 0)] for each in counts.tolist() if max(each, 0) in found}


def stated(axes: Any, counts: np.ndarray) -> Shown:
    """Return the counts of a heat map, and the intervals by what it states."""
    text = " ".join(axes.figure.texts[-1].get_text().split())
    [reach] = re.findall("true counts are within ([0-9,]+) of the numbers", text)
    t = int(reach.replace(",", ""))
    return {each: (each - t, each + t) for each in counts.reshape(-1).tolist()}


def by_count(release: Any, folder: Path) -> Shown:
    """Return the rows of a page that is sorted by count."""
    held = json.loads(saved(release, folder / "a.html").inside["data"])
    (folder / "a.html").unlink()
    assert held["confidences"].index(95) == 3
    ends = [each[18:20] for each in ends_of(held)]
    return dict(zip(held["counts"], map(tuple, ends), strict=True))


def ends_of(held: Any) -> list[list[float | None]]:
    """Return the ends of the intervals of each row, as the script of a page computes them."""
    numbers = held["counts"] if held["estimates"] is None else held["estimates"]
    kinds = held["kinds"] or [0] * len(numbers)
    least = -math.inf if held["signed"] else 0
    return [
        [
            None if width is None else max(max(number, least) + sign * width, least)
            for sign, width in zip(itertools.cycle([-1, 1]), held["widths"][kind])
        ]
        for number, kind in zip(numbers, kinds, strict=True)
    ]


def rows(frame: pd.DataFrame) -> Shown:
    ends = zip(frame["lower"], frame["upper"], strict=True)
    return dict(zip(frame["count"], ends, strict=True))


#: The views of noisy counts, those of groups last; they show at least the 40 largest.
VIEWS: dict[str, Callable[[np.ndarray, Path], Shown]] = {
    "picture": lambda counts, _: as_shown(bars(released(ONE, counts).plot()), counts),
    "heat map": lambda counts, _: as_shown(
        stated(released(TWO, counts).plot(), counts.clip(0)), counts
    ),
    "plot.table": lambda counts, _: stated(
        plot.table(geomdp.GeometricMechanism(RATE), counts.reshape(-1, 5)), counts
    ),
    "page": lambda counts, folder: by_count(released(ONE, counts), folder),
    "largest groups": lambda counts, _: rows(grouped(counts).largest(FIRST, alpha=ALPHA)),
    "picture of groups": lambda counts, _: bars(grouped(counts).plot()),
    "page of groups": lambda counts, folder: by_count(grouped(counts), folder),
}


def first_hold(law: dict[int, float], ends: Shown, true: int) -> float:
    """Return the probability that the largest noisy counts are in intervals with the true one.

    All cells have the same count, and independent noise. The noisy counts whose intervals contain
    it are neighbours. So the largest are among them if none is above them, and enough are in them.
    """
    held = [value for value, (lower, upper) in ends.items() if lower <= true <= upper]
    assert held == [*range(held[0], held[-1] + 1)]
    inside = math.fsum(law[value] for value in held)
    below = math.fsum(mass for value, mass in law.items() if value < held[0])
    fewer = (math.comb(CELLS, n) * inside**n * below ** (CELLS - n) for n in range(FIRST))
    return (inside + below) ** CELLS - math.fsum(fewer)


@pytest.mark.parametrize("true", [0, 20, 200])
@pytest.mark.parametrize("name", VIEWS)
def test_intervals_hold_for_rows_that_noise_chose(name: str, true: int, tmp_path: Path) -> None:
    """The exact probability, where all cells are equal: of 40 rows of 1000 it was below 1e-4."""
    least, q = max(LEAST if "groups" in name else -80, true - 80), math.exp(-RATE)
    values = np.arange(least, least + 4 * FIRST)
    masses = q ** np.abs(values - true).astype(float)
    law = dict(zip(values.tolist(), (masses / masses.sum()).tolist(), strict=True))
    ends: Shown = {}
    for some in values.reshape(-1, FIRST):
        counts = np.full(CELLS, least)  # The others are no larger.
        counts[CELLS // 2 :][:FIRST] = some
        shown = VIEWS[name](counts, tmp_path)
        ends |= {value: shown[value] for value in some.tolist()}
    assert first_hold(law, ends, true) >= 1 - ALPHA
    release = grouped if "groups" in name else partial(released, ONE)
    frame = release(np.resize(values, CELLS)).intervals(ALPHA)
    frame["count"] = np.resize(values, CELLS)
    assert first_hold(law, rows(frame), true) < 1e-4


@pytest.mark.parametrize("name", [name for name in RELEASED if name != "top"])
def test_a_page_by_count_has_intervals_that_hold_at_once(name: str, tmp_path: Path) -> None:
    """`test_answers` and `test_groups` show that these hold, for margins, trees and bounds too."""
    release = RELEASED[name]
    held = json.loads(saved(release, tmp_path / "a.html").inside["data"])
    order = np.concatenate([sheet.rows for sheet in release._answers().sheets])
    found = ends_of(held)
    asked = itertools.product((False, True), held["confidences"])
    for place, (together, confidence) in enumerate(asked):
        wanted = release.intervals(page.level(confidence), simultaneous=together)
        wanted = wanted[["lower", "upper"]].iloc[order]
        ends = [each[2 * place : 2 * place + 2] for each in found]
        # Ends at the limits of int64 are open.
        assert ends == wanted.astype(object).where(wanted.abs() < 2**53, None).to_numpy().tolist()


@pytest.mark.parametrize("name", ["flat", "margins", "other", "tree", "bounds", "groups"])
def test_a_picture_of_the_largest_has_intervals_that_hold_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, whole = RELEASED[name], name == "groups"
    by = next(iter(release.design.levels))

    def drawn() -> tuple[list[tuple[float, float]], str]:
        axes = release.plot() if whole else release.plot(by)
        return [*bars(axes).values()], axes.figure.texts[-1].get_text()

    def ends(together: bool) -> set[tuple[float, float]]:
        found = (
            release.intervals(ALPHA, simultaneous=together)
            if whole
            else release.total(by, alpha=ALPHA, simultaneous=together)
        )
        both = found[["lower", "upper"]]
        # An open end is drawn as far as the furthest of the others.
        numbers = found.select_dtypes("number")
        most = numbers[numbers < 2**62].max().max()
        return set(both.clip(upper=most).itertuples(index=False, name=None))

    found, label = drawn()
    assert set(found) <= ends(False)
    assert label == "Dot: estimate. Line: 95% interval. Noise of epsilon 0.5."
    monkeypatch.setattr(charts, "MOST_ROWS", 1)
    monkeypatch.setattr(charts, "_LARGEST", 1)
    found, label = drawn()
    assert set(found) <= ends(True)
    assert re.search(r"95% interval \(wider, so that all \d+ hold at once\)", label)


def test_pictures_in_the_order_of_levels_have_an_interval_each() -> None:
    axes = RELEASED["ages"].plot()
    [band] = axes.collections
    corners = band.get_paths()[0].vertices
    wanted = RELEASED["ages"].intervals(ALPHA)
    for place, *ends in wanted[["age", "lower", "upper"]].itertuples(index=False):
        here = corners[corners[:, 0] == place][:, 1]
        assert [here.min(), here.max()] == ends
    [line] = axes.lines
    assert line.get_ydata().tolist() == wanted["estimate"].clip(0).tolist()
    assert axes.figure.texts[-1].get_text().startswith("Line: estimate. Band: 95% interval of each")


def test_every_view_by_noisy_value_is_tested_here() -> None:
    """A new one needs intervals that hold after the choice, and a place among the views."""
    orders = re.compile(r"argsort\(-|argpartition\(|nlargest|\.sort\(key\)|sort_values|heapq")
    root, found = Path(geomdp.__file__).parent, set()
    for path in [*root.rglob("*.py"), *root.rglob("*.js")]:
        if orders.search(path.read_text()):
            found.add(path.relative_to(root).as_posix())
    assert found == {
        "tables/_pictures/charts.py",
        "tables/_results/groups.py",
        "tables/_publish/page/page.js",
    }
