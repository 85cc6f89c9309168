"""Noisy counts of a table, with the public facts that say what they mean and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy, consistency, plot
from geomdp._analysis import tails
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.accuracy._sums import share_confidence_intervals
from geomdp.frames import _native
from geomdp.frames._released import Margin, Released
from geomdp.mechanism import GeometricMechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geomdp.frames._design import Design
    from geomdp.frames._native import Library

#: The name of one column, or a tuple of names; () for the grand total.
Columns: TypeAlias = Any


class Estimate(NamedTuple):
    """An estimate of a sum or difference of true counts, with an interval.

    Attributes
    ----------
    estimate : float
        The noisy sum or difference; of a tree, its least-squares estimate.
    lower, upper : int
        The ends of the interval, which includes both.

    Examples
    --------
    >>> from geomdp.frames import Estimate
    >>> Estimate(estimate=10, lower=2, upper=18).upper
    18

    """

    estimate: float
    lower: int
    upper: int


class NoisyTable(Released):
    """A released table: noisy counts, and the public facts that a reader needs.

    :meth:`Table.release` makes one, and :func:`geomdp.read` reads one from a file. It holds no
    exact count, so it may be shown, pickled and published. Intervals hold for the true counts of
    the table, after contributions were bounded. Each interval misses with probability at most
    `alpha` on its own, or with ``simultaneous=True`` any of them does. They are not cut off at 0:
    a noisy count may be negative, and so may the ends of its interval.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import frames
    >>> people = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "sick": ["no", "yes", "no"]})
    >>> design = frames.Design({"city": ["Oslo", "Rome"], "sick": ["yes", "no"]})
    >>> noisy = design.count(people).release(epsilon=0.5)
    >>> noisy.privacy_loss, list(noisy.intervals(alpha=0.05))
    (0.5, ['city', 'sick', 'count', 'lower', 'upper'])
    >>> len(noisy.total("city", alpha=0.05))
    2

    """

    __slots__ = ()

    def __init__(
        self,
        design: Design,
        mechanisms: Mapping[Margin, GeometricMechanism],
        label: str | None,
        counts: NDArray[np.int64],
        library: Library | None,
    ) -> None:
        super().__init__(design, mechanisms, label, counts.reshape(design.shape), library)

    @property
    def mechanisms(self) -> dict[Margin, GeometricMechanism]:
        """The mechanism of the cells and of each margin, as in :meth:`Design.mechanisms`."""
        return dict(self._mechanisms)

    def intervals(self, alpha: Real, *, simultaneous: bool = False) -> Any:
        """Return the frame with an interval for each true count, in columns lower and upper.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that an interval misses: 0.05 for 95% confidence.
        simultaneous : bool
            Whether `alpha` is the probability that any of the intervals misses.

        Returns
        -------
        data frame
            The rows of :attr:`frame`. The intervals include both ends.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> found = table.release(epsilon=0.5).intervals(alpha=0.05)
        >>> (found["upper"] - found["count"]).tolist()
        [6, 6]

        """
        level = _level(alpha, simultaneous, self._design.cells)
        ends = np.empty((2, *self._counts.shape), np.int64)
        for sums, mechanism in self._mechanisms.items():
            part = self._design._part(sums)
            ends[(slice(None), *part)] = mechanism.confidence_interval(self._counts[part], level)
        lower, upper = ends.reshape(2, -1)
        return self._framed(lower=lower, upper=upper)

    def total(
        self, by: Columns = (), *, alpha: Real | None = None, simultaneous: bool = False
    ) -> Any:
        """Return sums of noisy cells over the other columns, with intervals for the true sums.

        Sums cost no privacy. Margins that were released with noise of their own are not used.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep; none for the grand total.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            A row for each combination of levels of these columns, with its sum, lower and upper.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> people = pd.DataFrame({"city": ["Rome", "Oslo"], "sick": ["no", "yes"]})
        >>> design = frames.Design({"city": ["Oslo", "Rome"], "sick": ["yes", "no"]})
        >>> noisy = design.count(people).release(epsilon=0.5)
        >>> noisy.total("city", alpha=0.05)["city"].tolist()
        ['Oslo', 'Rome']

        """
        kept = self._design._places("by", by)
        groups = self._groups(kept)
        found = {self._design.name: [sum(cells) for cells in groups]}
        if alpha is not None:
            level = _level(alpha, simultaneous, len(groups))
            ends = [self._sum_interval(cells, level) for cells in groups]
            found["lower"], found["upper"] = map(list, zip(*ends, strict=True))
        return self._shown(kept, found)

    def share(self, by: Columns, *, alpha: Real, simultaneous: bool = False) -> Any:
        """Return the percentage of each sum in the grand total, with an interval.

        The interval holds all percentages that an exact test of the sum and the rest of the table
        does not reject at alpha / 2 on one of its sides (``docs/proofs.md``, theorem 16). It knows
        that no true count is negative. With bounds, or with noise of sums beyond about ``2**19``,
        it holds all that intervals for the sum and the rest allow, which is more.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`.

        Returns
        -------
        data frame
            A row for each combination of levels, with columns percent, lower and upper. A
            percentage is NaN if the noisy total is not positive.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes"] * 500, name="sick"), ["yes", "no"])
        >>> found = table.release(epsilon=1).share("sick", alpha=0.05)
        >>> list(found.columns), found["sick"].tolist()
        (['sick', 'percent', 'lower', 'upper'], ['yes', 'no'])

        """
        kept = self._design._places("by", by)
        groups = self._groups(kept)
        # The rests overlap, so that the intervals of several shares are not independent.
        level = parameters.probability("alpha", alpha) / (len(groups) if simultaneous else 1)
        total = sum(map(sum, groups))
        rows = []
        found = share_confidence_intervals(self._mechanisms[()], groups, level)
        for cells, ends in zip(groups, found, strict=True):
            point = sum(cells) / total if total > 0 else math.nan
            rows.append([100 * share for share in (point, *ends)])
        names = ("percent", "lower", "upper")
        return self._shown(kept, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))

    def difference(
        self, one: Mapping[Any, Any], other: Mapping[Any, Any], *, alpha: Real
    ) -> Estimate:
        """Return the difference of two sums of noisy cells, with an interval for the true one.

        Parameters
        ----------
        one, other : mappings of column names to levels
            The cells of each sum: those with these levels.
        alpha
            As in :meth:`intervals`.

        Returns
        -------
        Estimate
            The noisy difference, and the ends of the interval; all are ints.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> noisy = table.release(epsilon=0.5)
        >>> found = noisy.difference({"sick": "no"}, {"sick": "yes"}, alpha=0.05)
        >>> found.upper - found.estimate
        8

        """
        base = self._counts[self._design._part(())]
        weights = np.zeros(base.shape, np.int64)
        for sign, name, levels in ((1, "one", one), (-1, "other", other)):
            weights[self._design._selected(name, levels)] += sign
        used = weights != 0
        estimate = sum(
            w * x for w, x in zip(weights[used].tolist(), base[used].tolist(), strict=True)
        )
        lower, upper = accuracy.sum_confidence_interval(
            self._mechanisms[()], base[used], alpha, weights=weights[used]
        )
        return Estimate(estimate, lower, upper)

    def consistent(self, total: Integer | None = None) -> Any:
        """Return the frame of non-negative integers that add up, nearest to the noisy counts.

        Released margins count, by the variance of their noise. The result is for tables that must
        make sense to the eye; it is biased (``docs/consistency.md``), so compute intervals from
        this object and not from it. Needs scipy.

        Parameters
        ----------
        total : int, optional
            A public total.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> sum(table.release(epsilon=0.5).consistent(total=3)["count"])
        3

        """
        dimensions = range(len(self._design.levels))
        margins = {
            tuple(axis for axis in dimensions if axis not in sums): sums
            for sums in self._mechanisms
            if sums
        }
        cells = consistency.consistent(
            self._counts[self._design._part(())],
            total=total,
            margins={
                axes: self._counts[self._design._part(sums)] for axes, sums in margins.items()
            },
            variances={
                "cells": self._mechanisms[()],
                **{axes: self._mechanisms[sums] for axes, sums in margins.items()},
            },
        )
        whole = np.asarray(cells)
        for axis, label in enumerate(self._design.levels):
            if label in self._design._margins:
                whole = np.concatenate([whole, whole.sum(axis, keepdims=True)], axis)
        return self._framed(**{self._design.name: whole.reshape(-1)})

    def plot(self, *, alpha: Real = 0.05, ax: Axes | None = None) -> Axes:
        """Draw the noisy counts: bars with intervals for one column, a heat map for two.

        Parameters
        ----------
        alpha
            As in :meth:`intervals`.
        ax
            As in :func:`geomdp.plot.pmf`.

        Returns
        -------
        Axes
            Counts against levels (:func:`geomdp.plot.histogram`), or the levels of the second
            column against those of the first (:func:`geomdp.plot.table`).

        Raises
        ------
        ValueError
            If the table has more than two columns of levels: plot a :meth:`total`.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> table.release(epsilon=0.5).plot().get_ylabel()
        'sick'

        """
        if (n := len(self._design.levels)) > 2:
            raise ValueError(f"a table of {n} columns cannot be drawn: make one of two columns")
        return (plot.histogram if n == 1 else plot.table)(self, alpha=alpha, ax=ax)

    def _groups(self, kept: tuple[int, ...]) -> list[list[int]]:
        """Return the noisy cells of each combination of levels of these columns."""
        base = self._counts[self._design._part(())]
        others = [axis for axis in range(base.ndim) if axis not in kept]
        front = base.transpose(*kept, *others)
        rows = math.prod(base.shape[axis] for axis in kept)
        return front.reshape(rows, -1).tolist()

    def _sum_interval(self, cells: Sequence[int], level: Fraction) -> tuple[int, int]:
        if not cells:
            return 0, 0
        return accuracy.sum_confidence_interval(
            self._mechanisms[()], np.array(cells, np.int64), level
        )

    def _shown(self, kept: tuple[int, ...], columns: dict[str, list[Any]]) -> Any:
        """Return a frame of the levels of these columns, with more columns."""
        sizes = self._design._base_shape()
        shape = tuple(sizes[axis] for axis in kept)
        places = np.indices(shape).reshape(len(kept), math.prod(shape))
        labels = list(self._design.levels)
        levels = {
            labels[axis]: _native.Coded(self._design.levels[labels[axis]][: sizes[axis]], each)
            for axis, each in zip(kept, places, strict=True)
        }
        return _native.made(levels | columns, self._library)


def _level(alpha: Any, simultaneous: bool, n: int) -> Fraction:
    """Return the level of each of n independent intervals."""
    parameters.check_bool("simultaneous", simultaneous)
    level = parameters.probability("alpha", alpha)
    return tails.share(level, n) if simultaneous else level
