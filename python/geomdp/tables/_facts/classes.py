"""The cells of groups by threshold: those of public lists of common levels, and all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Integer
from geomdp._numerics import scatter
from geomdp.tables._facts.axes import unraveled

if TYPE_CHECKING:
    from geomdp._numerics.scatter import Plan
    from geomdp.tables._facts.axes import Axes

#: A threshold, or that of common cells and that of all others; and what users give for it.
Thresholds: TypeAlias = int | tuple[int, int]
AtLeast: TypeAlias = Integer | tuple[Integer, Integer]
_Ints: TypeAlias = NDArray[np.int64]
_MOST = 2**63 - 1


def checked(axes: Axes, at_least: Any) -> Thresholds:
    """Return a threshold, or a pair of them where a column has a list of common levels."""
    if not isinstance(at_least, tuple | list):
        return _checked(at_least)
    if len(at_least) != 2 or not has_common(axes):
        raise ValueError(
            f"at_least with {notebook.many(len(at_least), 'threshold')} is not accepted: give one "
            "or, for a column of Words with common=, a pair for common words and for others"
        )
    if not all(map(parameters.is_integer, at_least)):
        raise TypeError("at_least with others than ints is not accepted: give a pair of ints")
    common, others = map(_checked, at_least)
    return common, others


def _checked(at_least: Any) -> int:
    found = parameters.at_least("at_least", at_least, 1)
    if found > _MOST:
        raise ValueError(parameters.refusal("at_least", found, "an int of 64 bits"))
    return found


def said(at_least: Thresholds) -> str:
    """Return a threshold, or two, in words."""
    if not isinstance(at_least, tuple):
        return str(at_least)
    return f"{at_least[0]} (common words) or {at_least[1]} (others)"


def has_common(axes: Axes) -> bool:
    """Whether a column has a list of common levels."""
    return any(axis.common is not None for axis in axes)


class Classes:
    """The cells of each threshold, which points may fall on.

    With two thresholds, the first is of the cells whose levels are common in every column that has
    a list of common ones.
    """

    def __init__(self, axes: Axes, at_least: Thresholds) -> None:
        self._axes = axes
        self.thresholds = at_least if isinstance(at_least, tuple) else (at_least,)
        self._common = [axis.common if len(self.thresholds) > 1 else None for axis in axes]
        #: On how many places the points of each class fall: all cells are those of the last.
        self.places: tuple[int, ...] = (math.prod(axes.sizes),)
        if len(self.thresholds) > 1:
            self.places = (math.prod(self._sizes), *self.places)

    @property
    def _sizes(self) -> list[int]:
        """How many places the cells of the first class have in each column."""
        both = zip(self._axes.sizes, self._common, strict=True)
        return [size if own is None else len(own) for size, own in both]

    def plan(self, rate: Fraction) -> Plan:
        """Return the plan of noise of a rate, and of points of these classes."""
        return scatter.plan_of(rate, tuple(zip(self.places, self.thresholds, strict=True)))

    def of(self, cells: NDArray[Any]) -> _Ints:
        """Return the class of each cell."""
        found = np.zeros(cells.size, np.int64)
        if len(self.thresholds) > 1:
            places = unraveled(cells, self._axes.sizes)
            for own, at in zip(self._common, places, strict=True):
                if own is not None:
                    listed = np.fromiter(own.among(at.tolist()), np.bool_, at.size)
                    found |= ~listed
        return found

    def least(self, cells: NDArray[Any]) -> _Ints:
        """Return the threshold of each cell."""
        return np.array(self.thresholds, np.int64)[self.of(cells)]

    def cells(self, number: int, places: Sequence[int]) -> list[int]:
        """Return the cells on which points of a class have fallen, -1 for those of none."""
        if number < len(self.thresholds) - 1:
            places = [self._listed(place) for place in places]
        kind = np.int64 if self.places[-1] <= 2**62 else object
        cells = np.array(places, kind)
        inside = self.of(cells) == number
        for axis, at in zip(self._axes, unraveled(cells, self._axes.sizes), strict=True):
            if axis.rule is not None:
                inside &= np.fromiter(map(axis.is_level, at.tolist()), bool, at.size)
        return [x if own else -1 for x, own in zip(cells.tolist(), inside.tolist(), strict=True)]

    def _listed(self, place: int) -> int:
        """Return the cell at a place of the first class."""
        cell, step = 0, 1
        columns = zip(self._axes.sizes, self._sizes, self._common, strict=True)
        for size, many, own in reversed([*columns]):
            place, at = divmod(place, many)
            cell, step = cell + (at if own is None else own[at]) * step, step * size
        return cell
