"""Noisy counts of a table, with the public facts that say what they mean and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp import consistency, plot
from geomdp._analysis import decimals, products, trees
from geomdp._analysis.products import Product
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.accuracy._sums import share_confidence_intervals
from geomdp.frames._exact import all_nodes
from geomdp.frames._native import Coded
from geomdp.frames._released import Released

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geomdp.frames._axes import Axis
    from geomdp.frames._design import Columns


class Estimate(NamedTuple):
    """An estimate of a sum or difference of true counts, with an interval.

    Attributes
    ----------
    estimate : float
        The difference of least-squares estimates.
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
    (0.5, ['city', 'sick', 'estimate', 'lower', 'upper'])
    >>> len(noisy.total("city", alpha=0.05))
    2

    """

    __slots__ = ("_fitted", "_product")

    @property
    def product(self) -> Product:
        """The noise of the table as a product of trees, for the analysis."""
        if not hasattr(self, "_product"):
            self._product = Product(
                [axis.tree for axis in self.design.axes],
                {block: each.rate for block, each in self.mechanisms.items()},
                {
                    block: Fraction(each.certificate(np.int64).total_variation)
                    for block, each in self.mechanisms.items()
                },
            )
        return self._product

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.design, self.mechanisms, self.label, self._library, self.counts
        return type(self), known

    def intervals(self, alpha: Real, *, simultaneous: bool = False) -> Any:
        """Return an estimate of each true count, with an interval in columns lower and upper.

        The interval is the estimate of :meth:`estimates` plus or minus a bound on its error, which
        is a weighted sum of all independent noises: exact without released sums, and otherwise
        the narrower of two that are proved (``docs/proofs.md``, section 17).

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
        >>> (found["upper"] - found["estimate"]).tolist()
        [6.0, 6.0]

        """
        estimates, reaches, rounding = self._answers(
            (None,) * len(self.design.axes), alpha, simultaneous=simultaneous
        )
        return self._with_ends(self._levels(), estimates, reaches, rounding, self._rows)

    def estimates(self) -> Any:
        """Return the unbiased estimates of least variance that add up, as floats.

        These are the weighted least squares of all noisy counts, with the inverses of the variances
        of the noise as weights (Hay, Rastogi, Miklau and Suciu 2010, for any tree), along one
        column after the other. They may be negative. They equal the noisy counts if no sums were
        released.

        Examples
        --------
        >>> from geomdp.frames import Hierarchy
        >>> noisy = Hierarchy({"a": "all", "b": "all"}).release([3, 5], epsilon=1)
        >>> whole, a, b = noisy.estimates()["estimate"]
        >>> abs(a + b - whole) < 1e-9
        True

        """
        fitted = self._fit()
        return self.made({**self._levels(), "estimate": self._rows(fitted.sums + fitted.more)})

    def total(
        self, by: Columns = (), *, alpha: Real | None = None, simultaneous: bool = False
    ) -> Any:
        """Return sums of the estimates over the other columns, with intervals for the true sums.

        Sums cost no privacy. They use all that was released, margins and hierarchies too.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep; none for the grand total.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            A row for each combination of levels of these columns, or nodes of a hierarchy, with
            columns estimate, lower and upper.

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
        kept = self.design._chosen("by", by)
        asked = [None if axis in kept else _of_leaves(axis) for axis in self.design.axes]
        estimates, reaches, rounding = self._answers(asked, alpha, simultaneous=simultaneous)
        shown = [_shown(axis) if axis in kept else np.zeros(1, int) for axis in self.design.axes]
        shape = tuple(map(len, shown))
        places = np.unravel_index(np.arange(math.prod(shape)), shape)
        levels = {
            axis.label: Coded([axis.nodes[node] for node in nodes.tolist()], each)
            for axis, nodes, each in zip(self.design.axes, shown, places, strict=True)
            if axis in kept
        }
        return self._with_ends(
            levels, estimates, reaches, rounding, lambda x: x[np.ix_(*shown)].reshape(-1)
        )

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
        kept = self.design._chosen("by", by)
        if any(axis.hierarchy for axis in self.design.axes):
            raise ValueError("shares of a table with a hierarchy are not known")
        groups = self._groups(kept)
        # The rests overlap, so that the intervals of several shares are not independent.
        level = parameters.probability("alpha", alpha) / (len(groups) if simultaneous else 1)
        total = sum(map(sum, groups))
        rows = []
        cells = self.mechanisms[self.design.depths[-1]]
        found = share_confidence_intervals(cells, groups, level)
        for each, ends in zip(groups, found, strict=True):
            point = sum(each) / total if total > 0 else math.nan
            rows.append([100 * share for share in (point, *ends)])
        names = ("percent", "lower", "upper")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        shape = tuple(len(axis.levels) for axis in kept)
        places = np.indices(shape).reshape(len(kept), math.prod(shape))
        levels = {a.label: Coded(a.levels, each) for a, each in zip(kept, places, strict=True)}
        return self.made(levels | columns)

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
        8.0

        """
        asked = [self._selected(name, each) for name, each in (("one", one), ("other", other))]
        fitted, level = self._fit(), self._level(alpha, 1)
        errors = self.product.joint(asked, [0] * len(self.design.axes))
        (base, more, rounding), (base_2, more_2, rounding_2) = map(fitted.along, asked)
        whole, rest = int(base.item()) - int(base_2.item()), float(more.item() - more_2.item())
        reach = errors.reach((1.0, -1.0), level) + rounding + rounding_2
        return Estimate(
            whole + rest, whole + math.ceil(rest - reach), whole + math.floor(rest + reach)
        )

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
        if any(axis.hierarchy is not None for axis in self.design.axes):
            whole = self._closest(total)
        else:
            whole = self._consistent(total)
        return self.made({**self._levels(), self.design.name: self._rows(whole)})

    def _consistent(self, total: Integer | None) -> NDArray[np.int64]:
        """Return the consistent counts of all nodes of a table with margins."""
        design, cells = self.design, self.design.depths[-1]
        margins = {
            tuple(place for place, depth in enumerate(block) if depth == cells[place]): block
            for block in design.depths[:-1]
        }
        noisy = {
            kept: self.counts[design._part(block)].reshape([design.sizes[x] for x in kept])
            for kept, block in margins.items()
        }
        found = consistency.consistent(
            self.counts[design._part(cells)],
            total=total,
            margins=noisy,
            variances={
                "cells": self.mechanisms[cells],
                **{kept: self.mechanisms[block] for kept, block in margins.items()},
            },
        )
        return all_nodes(design, (np.arange(found.size), np.asarray(found).reshape(-1)))

    def _closest(self, total: Integer | None) -> NDArray[np.int64]:
        """Return the consistent counts of all nodes of a table with one hierarchy."""
        design = self.design
        [place, *others] = [p for p, axis in enumerate(design.axes) if axis.depths > 1]
        if others:
            raise ValueError(
                "consistent counts are known for one hierarchy without margins: give another table"
            )
        noisy = np.moveaxis(self.counts, place, 0)
        shape, tree = noisy.shape, design.axes[place].tree
        noisy = noisy.reshape(tree.size, -1)
        if np.abs(noisy.astype(np.float64)).max() > consistency.GREATEST:
            raise OverflowError("noisy counts reach beyond 2**40: give smaller counts")
        # A tree for each column, and a node above them for the total.
        offsets = np.arange(noisy.shape[1]) * tree.size
        above = np.where(tree.parents[:, None] < 0, -1, tree.parents[:, None] + offsets)
        variances = self.product.squares[place].noise
        weights = np.repeat((variances.max() / variances)[:, None], noisy.shape[1], axis=1)
        forest = above.T.reshape(-1), noisy.T.reshape(-1), weights.T.reshape(-1)
        if total is not None:
            public = parameters.at_least("total", total, 0)
            if public > consistency.GREATEST:
                raise OverflowError("total reaches beyond 2**40: give a smaller one")
            forest = (
                np.append(np.where(forest[0] < 0, noisy.size, forest[0]), -1),
                np.append(forest[1], public),
                np.append(forest[2], np.inf),
            )
        found = trees.closest(*forest)[: noisy.size].reshape(noisy.T.shape).T
        return np.moveaxis(found.reshape(shape), 0, place)

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
        if (n := len(self.design.axes)) > 2:
            raise ValueError(f"a table of {n} columns cannot be drawn: make one of two columns")
        return (plot.histogram if n == 1 else plot.table)(self, alpha=alpha, ax=ax)

    def _groups(self, kept: list[Axis]) -> list[list[int]]:
        """Return the noisy cells of each combination of levels of these columns."""
        base = self.counts[self.design._leaves()]
        places = [self.design.axes.index(axis) for axis in kept]
        others = [place for place in range(base.ndim) if place not in places]
        rows = math.prod(base.shape[place] for place in places)
        found: list[list[int]] = base.transpose(*places, *others).reshape(rows, -1).tolist()
        return found

    def _fit(self) -> products.Fitted:
        if not hasattr(self, "_fitted"):
            self._fitted = self.product.fit(self.counts)
        return self._fitted

    def _level(self, alpha: Any, n: int) -> float:
        """Return the level of ideal noise for each of n intervals."""
        given = parameters.significance("alpha", alpha)
        level = given - self.product.lost
        if level <= 0:
            wanted = f"more than {float(given - level):.3g}, the error of the sampled distribution"
            raise ValueError(parameters.refusal("alpha", float(given), wanted))
        return decimals.down(level / n)

    def _answers(
        self, asked: Sequence[NDArray[Any] | None], alpha: Any, *, simultaneous: bool
    ) -> tuple[tuple[NDArray[Any], NDArray[Any]], NDArray[Any] | None, float]:
        """Return sums of estimates in two parts, their reaches at a level, and a rounding error."""
        parameters.check_bool("simultaneous", simultaneous)
        base, more, rounding = self._fit().along(asked)
        more = np.broadcast_to(more, base.shape)
        if alpha is None:
            return (base, more), None, rounding
        level = self._level(alpha, base.size if simultaneous else 1)
        nodes = [
            np.arange(size) if x is None else None
            for x, size in zip(asked, base.shape, strict=True)
        ]
        product = self.product
        n, found = products.kinds([product], [nodes])
        reaches = np.empty(base.shape)
        if n <= product.most and n * math.prod(product.shape) <= product.most_in_all:
            for rows, [at] in found:
                index = iter(rows)
                where = tuple(slice(None) if x is None else next(index) for x in nodes)
                reaches[where] = product.joint([asked], at).reach((1.0,), level)
        else:
            all_of = [np.zeros(1, int) if x is None else x for x in nodes]
            reaches = product.bounds(asked, all_of, level)
        return (base, more), reaches, rounding

    def _with_ends(
        self,
        levels: Mapping[str, Any],
        estimates: tuple[NDArray[Any], NDArray[Any]],
        reaches: NDArray[Any] | None,
        rounding: float,
        shown: Callable[[NDArray[Any]], NDArray[Any]],
    ) -> Any:
        """Return a frame of estimates with intervals."""
        base, more = estimates
        columns = {**levels, "estimate": shown(base + more)}
        if reaches is not None:
            reach = reaches + rounding
            columns["lower"] = shown(base + np.ceil(more - reach).astype(np.int64))
            columns["upper"] = shown(base + np.floor(more + reach).astype(np.int64))
        return self.made(columns)

    def _selected(self, name: str, levels: Any) -> list[NDArray[np.int64]]:
        """Return for each column the leaves of the cells with these levels."""
        if not isinstance(levels, Mapping):
            raise TypeError(parameters.foreign(name, levels, "a mapping of column names to levels"))
        found = {axis.label: _of_leaves(axis) for axis in self.design.axes}
        for label, level in levels.items():
            [axis] = self.design._chosen(name, (label,))
            if level not in axis.places:
                raise ValueError(
                    f"{name} has {parameters.shown(level)} in {label!r}: "
                    f"give one of {parameters.shown(axis.levels)}"
                )
            below = np.zeros(axis.tree.size, np.int64)
            below[axis.places[level]] = 1
            for depth in range(axis.tree.depth):
                under = axis.tree.below(depth)
                below[under] |= below[axis.tree.parents[under]]
            found[label] *= below
        return list(found.values())


def _of_leaves(axis: Axis) -> NDArray[np.int64]:
    """Return the weights of the sum of all leaves."""
    found = np.zeros(axis.tree.size, np.int64)
    found[axis.tree.leaves] = 1
    return found


def _shown(axis: Axis) -> NDArray[np.int64]:
    """Return the nodes of an axis that rows by it have: all of a hierarchy, and no margin."""
    return axis.shown[: len(axis.shown) - axis.margin]
