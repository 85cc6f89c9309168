"""Bins of a column: where its levels begin and end, if it has numbers or dates in the data."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp.tables._columns import levels as _levels

#: The types of values that have bins.
_TYPES = {int, float, date, datetime}


class Bins:
    """Cut points, of which each begins a bin that ends before the next one.

    With one fewer than there are bins, the first bin has no least value and the last one no
    greatest. With one more, values below the first cut point and from the last one on are in none.
    """

    def __init__(self, label: str, cuts: Any, bins: int) -> None:
        name = f"bins of {label!r}"
        if not isinstance(cuts, Sequence | np.ndarray) or isinstance(cuts, str):
            raise TypeError(parameters.foreign(name, cuts, "a list of increasing cut points"))
        self.cuts = _levels.checked(name, cuts)
        if _levels.kinds(self.cuts) - _TYPES:
            raise TypeError(f"{name} are not accepted: give numbers, dates or times")
        if any(one >= two for one, two in pairwise(self.cuts)):
            raise ValueError(f"{name} are not accepted: give increasing cut points")
        if abs(len(self.cuts) - bins) != 1:
            raise ValueError(
                f"{name} have {many(len(self.cuts), 'cut point')} for {many(bins, 'level')}: give "
                f"{bins - 1}, so that the first and the last level have no end, or {bins + 1}"
            )
        self._first, self._bins = len(self.cuts) > bins, bins

    def place(self, item: Any) -> int:
        """Return the place of the bin of a value of the data, or -1; no value is an error."""
        try:
            if item is None or item != item:  # noqa: PLR0124 (a NaN is not)
                return -1
            found = bisect_right(self.cuts, item) - self._first
        except Exception:  # Whatever a class raises.
            return -1
        return found if found < self._bins else -1

    def of_integers(self, values: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the place of each integer as :meth:`place` does; None where cut points are not."""
        if not _levels.kinds(self.cuts) <= {int, float} or abs(self.cuts[0]) >= 2**63:
            return None
        if abs(self.cuts[-1]) >= 2**63:
            return None
        cuts = np.array([math.ceil(cut) for cut in self.cuts], np.int64)
        found = np.searchsorted(cuts, values, side="right") - self._first
        return np.where(found < self._bins, found, -1)
