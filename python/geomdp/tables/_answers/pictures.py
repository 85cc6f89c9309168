"""Pictures of what noisy counts say, with the noise that they state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp._ground.parameters import Real
from geomdp.tables._answers.estimates import Estimates
from geomdp.tables._pictures import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geomdp.tables._facts.axes import Axis


class OfPictures(Estimates):
    """Estimates as marks, with their intervals."""

    def plot(self, by: Any = None, *, alpha: Real = 0.05, ax: Axes | None = None) -> Axes:
        """Draw the estimates: a dot and a line for each row of one column, a heat map for two.

        A dot is the estimate as a whole number, which stands beside it while there are few, and a
        line its interval; what noise carried below 0 is drawn at 0. If a column has more than 60
        names, only the largest rows are drawn. Since their noise tends to be large too, they get
        intervals that hold for all rows at once, and the picture says so. A heat map begins at 0,
        which has no colour, and states one distance that holds for all its cells at once. Dates and
        increasing numbers are placed on the axis to scale, and more than 31 of them have a line
        with a band. Margins and the root of a tree are left out, since :meth:`total` gives them;
        every other node of a tree stands above those that it contains, and further left.

        Parameters
        ----------
        by : column name or pair of column names, optional
            The columns to draw, summed over all others; by default the first two, or those of the
            first of chosen tables.
        alpha
            The probability that an interval misses or, where all hold at once, that any of them
            does.
        ax
            As in :func:`geomdp.tables.plot.pmf`. On given Axes, the title has both lines.

        Returns
        -------
        Axes
            Names from top to bottom against counts, counts against dates or numbers, or the levels
            of the second column against those of the first.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> axes = table.release(epsilon=0.5).plot()
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['yes', 'no']

        """
        sides, labels, depths, ends = self._drawn(by, alpha)
        stated = self._stated(labels, alpha)
        if len(labels) == 1:
            return charts.published_rows(
                sides[0], labels[0], ends, stated, ordered=True, depths=depths, ax=ax
            )
        return charts.published_table(sides, labels, ends(True), stated, ax=ax)

    def _drawn(self, by: Any, alpha: Real) -> tuple[list[list[Any]], list[str], Any, Any]:
        """Return what a picture draws: names by column, its columns, depths of a tree, and ends.

        The last is a function that returns estimates and the ends of intervals, each for itself or
        all at once.
        """
        axes = self.design._axes
        # Only the columns of one table are sure to have estimates together.
        tables = [()] if self.design.tables is None else map(self._kept, self.design.blocks)
        own = next(filter(None, tables), range(len(axes)))
        first = [face.label for place in own[:2] for face in axes[place].faces]
        chosen = [each.axis for each in axes.of("by", first if by is None else by).values()]
        if not 1 <= len(chosen) <= 2:
            raise ValueError(f"by = {parameters.shown(by)} is not accepted: give one column or two")
        parameters.level("alpha", alpha)  # Without one there would be no interval.
        listed = [_listed(axis, whole=len(chosen) == 1) for axis in chosen]
        labels = [axis.label for axis in chosen]
        # The rows have all nodes, in another order.
        places = [
            np.argsort(axis.shown)[nodes]
            for axis, (nodes, _, _) in zip(chosen, listed, strict=True)
        ]

        def ends(together: bool) -> NDArray[Any]:
            names = [face.label for axis in chosen for face in axis.faces]
            _, found = self._totals(names, alpha, simultaneous=together)
            whole = np.stack([found[name] for name in ("estimate", "lower", "upper")])
            return whole[np.ix_(np.arange(3), *places)]

        return [names for _, names, _ in listed], labels, listed[0][2], ends

    def _stated(self, labels: list[str], alpha: Real) -> charts.Stated:
        """Return what a picture of some columns states."""
        noise = f"Noise of epsilon {parameters.text(self.epsilon)}."
        if self.parts:
            losses = sorted({each.epsilon for each in self.parts})
            each = " and ".join(parameters.text(x) for x in (losses[0], losses[-1])[: len(losses)])
            noise = f"Noise of {many(len(self.parts), 'release')}, of epsilon {each}."
        if self._part_of is not None:
            noise = f"Noise of epsilon {parameters.text(self._part_of)} for the whole stream."
        return charts.stated(self.design.name, labels, noise, alpha, self._limits[0])


def _listed(
    axis: Axis, *, whole: bool
) -> tuple[NDArray[np.int64], list[Any], NDArray[np.int64] | None]:
    """Return the nodes of a column that a picture has, from top to bottom, their names and depths.

    Only those of a whole tree have depths.
    """
    tree, seen = axis.tree, {} if axis.hierarchy is None else axis.hierarchy.labels
    if axis.hierarchy is None or not whole or tree.size > charts.MOST_ROWS:
        return tree.leaves, [seen.get(level, level) for level in axis.levels], None
    order = tree.from_above[1:]
    names = [seen.get(node, node) for node in axis.nodes]
    return order, [names[x] for x in order], tree.depths[order] - 1
