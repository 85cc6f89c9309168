"""What a page shows of a release beside its files: its tables, their numbers and intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The confidences that a reader may choose, in percent, and the place of the first one shown.
CONFIDENCES: Sequence[float] = (50, 80, 90, 95, 99, 99.9)
MAIN = 3
#: Beyond this a browser rounds integers.
_MOST_NUMBER = 2**53
#: Why a page does not add up rows, and where to ask.
LIBRARY = (
    "This page does not add up these rows. The Python library geomdp gives any sum of the CSV "
    "file, with its interval."
)
BY_NOISE = "The rows shown were chosen by their noise, so this page does not add them up."


class Sheet(NamedTuple):
    """One of the tables of a page."""

    columns: list[str]
    #: The rows of the file, in their order on the page.
    rows: NDArray[np.int64]


class Intervals(NamedTuple):
    """The intervals of rows, as distances from the numbers shown: of few kinds."""

    #: Of each kind, the lower and the upper distance by confidence, for one row and then for all at
    #: once; infinite where an end is open.
    kinds: NDArray[np.float64]
    #: The kind of each row.
    of_rows: NDArray[np.int64]


class Shown(NamedTuple):
    """What a page shows, by row of the file."""

    #: The text of each row, by column.
    levels: Mapping[str, list[str]]
    sheets: list[Sheet]
    #: Counts, or ranks.
    counts: NDArray[np.int64]
    #: Why rows are not added up, or None.
    sums: str | None
    #: None of ranks.
    intervals: Intervals | None = None
    #: Estimates as whole numbers, if they are not the counts.
    estimates: NDArray[np.int64] | None = None
    #: The least that a true count may be, if there is one.
    least: int | None = 0
    #: The place of the column of a tree, if rows are shown as one, and the depth of each row.
    tree: int | None = None
    depths: NDArray[np.int64] | None = None
    #: Which rows are sums of others.
    totals: NDArray[np.bool_] | None = None
    #: Which rows may be added up, and the rate of their noise.
    cells: NDArray[np.bool_] | None = None
    rate: float | None = None
    #: The places of the levels of the only column, if they are ordered numbers or dates.
    ordered: list[float] | None = None

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number that each row shows: 0 for what noise carried below it."""
        numbers = self.counts if self.estimates is None else self.estimates
        return numbers if self.least is None else np.maximum(numbers, self.least)

    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the intervals that a reader sees first."""
        if self.intervals is None:
            raise ValueError("ranks have no intervals")
        found = self.intervals.kinds[self.intervals.of_rows][:, 2 * MAIN : 2 * MAIN + 2]
        lower, upper = self.numbers - found[:, 0], self.numbers + found[:, 1]
        return (lower if self.least is None else np.maximum(lower, self.least)), upper


def level(confidence: float) -> Fraction:
    """Return the significance level of a confidence in percent."""
    return 1 - Fraction(str(confidence)) / 100


def intervals(
    numbers: NDArray[np.int64],
    least: int | None,
    ends: Callable[[Fraction, bool], tuple[NDArray[Any], NDArray[Any]]],
) -> Intervals:
    """Return the intervals around the numbers shown, each for itself and all at once.

    Sorted by its counts, the page shows those that hold at once: the first rows are then those
    whose noise was greatest. Ends that a browser would round are open, and both of such a number.
    """
    large, columns = np.abs(numbers.astype(float)) >= _MOST_NUMBER, []
    for together in (False, True):
        for confidence in CONFIDENCES:
            lower, upper = (each.astype(float) for each in ends(level(confidence), together))
            open_below, open_above = (
                large | (np.abs(each) >= _MOST_NUMBER) for each in (lower, upper)
            )
            below = np.where(open_below, np.inf, numbers - lower).astype(float)
            if least is not None and (cut := (lower <= least) & ~large).any():
                # The page cuts there: any distance as long does, and one for all makes few kinds.
                below[cut] = below[np.isfinite(below)].max(initial=0)
            above = np.where(open_above, np.inf, upper - numbers).astype(float)
            columns += [below, above]
    kinds, of_rows = np.unique(np.stack(columns, axis=-1), axis=0, return_inverse=True)
    return Intervals(kinds, of_rows.reshape(-1))
