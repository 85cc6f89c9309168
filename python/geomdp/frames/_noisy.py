"""Noisy counts of a table, with the public facts that say what they mean and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp import consistency, plot
from geomdp._analysis import trees
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.frames._answers import Answers
from geomdp.frames._exact import all_nodes
from geomdp.frames._released import Released

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class NoisyTable(Released, Answers):
    """A released table: noisy counts, and the public facts that a reader needs.

    :meth:`Table.release` makes one, and :func:`geomdp.read` reads one from a file. It holds no
    exact count, so it may be shown, pickled and published. What it answers holds for the true
    counts of the table, after contributions were bounded (:class:`Answers`).

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

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.design, self.mechanisms, self.label, self._library, self.counts
        return type(self), known

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
            kept: self.counts[design.axes.block(block)].reshape([design.sizes[x] for x in kept])
            for kept, block in margins.items()
        }
        found = consistency.consistent(
            self.counts[design.axes.block(cells)],
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
