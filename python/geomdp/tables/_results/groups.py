"""Groups chosen by noisy counts: the cells of a design that reached a threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy
from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._numerics import scatter
from geomdp.tables._answers.answers import Answers
from geomdp.tables._answers.cells import OfCells
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import classes, counted, rounding
from geomdp.tables._facts.classes import Classes, Thresholds
from geomdp.tables._math import ends, thresholds
from geomdp.tables._pictures import charts
from geomdp.tables._publish.page import shown
from geomdp.tables._results import empty
from geomdp.tables._results.released import Released
from geomdp.tables._results.rest import Rest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geomdp._noise import Noise
    from geomdp.tables._facts.axes import Axis
    from geomdp.tables._facts.layout import Layout

_Ints: TypeAlias = NDArray[np.int64]
_ENDS = ("lower", "upper")


class NoisyGroups(Released):
    """The groups of a release whose noisy counts reached a threshold.

    ``Table.release(at_least=...)`` makes one, and :func:`geomdp.read` reads one from a file. Empty
    cells of the design may be among the groups, as if all cells had got noise
    (``docs/proofs.md``, section 22), so the choice of those that appear costs no privacy;
    :meth:`Design.spurious` gives the expected number of empty ones. The object contains no exact
    counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> visits = pd.DataFrame({"page": ["home"] * 900 + ["help"] * 70, "hour": 7})
    >>> design = tables.Design({"page": ["home", "help", "blog"], "hour": range(24)})
    >>> noisy = design.count(visits).release(epsilon=1, at_least=25)
    >>> noisy.frame["page"].tolist(), noisy.privacy_loss()
    (['home', 'help'], 1.0)

    """

    __slots__ = ("_at_least", "_cells", "_rest")

    def __init__(
        self,
        *facts: Any,
        cells: NDArray[np.int64],
        at_least: Thresholds,
        rest: Rest | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*facts, **more)
        # With a row for the rest, its count is the last one.
        self._cells, self._at_least, self._rest = cells, at_least, rest

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and name in vars(OfCells):
                raise AttributeError(
                    f"groups that reached a threshold have no {name}: they were chosen by their "
                    "noise, so that no estimate from them is unbiased; release without at_least"
                )
            return super().__getattr__(name)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The noisy counts of the groups, in the order of the frame, without a row for the rest."""
        return self._values[: self._cells.size]

    @property
    def rest(self) -> int | None:
        """The noisy count of all groups left out together; None without such a row."""
        return None if self._rest is None else int(self._values[-1])

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of the groups, and of a row for the rest, for one individual."""
        return super().epsilon + (0 if self._rest is None else self._rest.loss(self.design))

    @property
    def at_least(self) -> Thresholds:
        """The threshold, below which noisy counts are left out; or a pair, as it was given."""
        return self._at_least

    @property
    def _threshold(self) -> Thresholds:
        return self._at_least

    def intervals(self, alpha: Real = 0.05, *, simultaneous: bool = False) -> Any:
        """Return the frame with an interval for each true count, in columns lower and upper.

        A group appears only if its noise was not too low, so its noisy count is too high on
        average. These intervals allow for that: given that a group appears, its interval misses
        with probability at most `alpha`. If you then pick or sort groups by their counts, use
        `simultaneous`, as :meth:`largest` does, because the greatest of many groups tend to have
        the greatest noise. A lower end of 0 means that the group may be empty. A row for the rest
        has an interval for the sum of all groups left out, which holds whichever these are. The
        noise of groups is taken to be discrete Laplace noise (``docs/proofs.md``, section 18).

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that an interval misses, above 0.
        simultaneous : bool
            Whether `alpha` is the probability that any of the intervals misses.

        Returns
        -------
        data frame
            The rows of :attr:`frame`. The intervals include both ends, which are not negative.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> design = tables.Design({"page": ["home", "help", "blog"]})
        >>> table = design.count(pd.DataFrame({"page": ["home"] * 900}))
        >>> noisy = table.release(epsilon=1, at_least=25).intervals(alpha=0.05)
        >>> (noisy["upper"] - noisy["count"]).tolist()
        [3]

        """
        parameters.check_bool("simultaneous", simultaneous)
        ends = self._ends(alpha, simultaneous=simultaneous)
        return self._made({**self._columns(), **dict(zip(_ENDS, ends, strict=True))})

    def _ends(self, alpha: Real, *, simultaneous: bool) -> tuple[_Ints, _Ints]:
        """Return the ends of the intervals."""
        level = parameters.significance("alpha", alpha)
        counts = self.counts
        if simultaneous and self._values.size:
            # Given which groups are here, their noises are independent, and that of the rest.
            level = ends.level(level, self._values.size, independent=True)
        [mechanism] = self.mechanisms.values()
        if mechanism.rate == math.inf:
            return self._values, self._values
        found = self._of_groups(mechanism, counts, level)
        if self._rest is None:
            return found
        own = self._rest.ends(int(self._values[-1]), self._rounded, level)
        lower, upper = (np.append(each, end) for each, end in zip(found, own, strict=True))
        return lower, upper

    def _of_groups(self, mechanism: Noise, counts: _Ints, level: Fraction) -> tuple[_Ints, _Ints]:
        """Return the ends of the intervals of groups."""
        least = Classes(self.design._axes, self._at_least).least(self._cells)
        rate = scatter.plan_of(Fraction(mechanism.rate)).sampled_rate
        interval = partial(thresholds.interval, rate, threshold=least, level=level)
        if self._rounded is None:
            return interval(published=counts)
        # Both ends rise with what a count was before rounding, which reached the threshold.
        off = rounding.half(self._rounded)
        low, high = (np.maximum(rounding.moved(counts, moves), least) for moves in (-off, off))
        return interval(published=low)[0], interval(published=high)[1]

    def left_out(self, total: Integer | Answers, *, alpha: Real = 0.05) -> Any:
        """Return an interval for the sum of all groups left out, from a total of the same records.

        This costs nothing. The total minus the groups shown would be a biased estimate: a group is
        shown only if its noise was not too low, so the difference tends to be too low. The interval
        allows for that, whichever groups are shown, and widens with their number. A row for the
        rest, by ``release(rest=...)``, has a much narrower interval (``docs/proofs.md``, lemma
        20b).

        Parameters
        ----------
        total : int or NoisyTable
            The number of records in all cells of the design after contributions were bounded, which
            must be public and not taken from the data, since epsilon does not cover it; or another
            release of the same records, as :meth:`NoisyTable.combine` takes it: a column that only
            one of the two has leaves out no records, and with limits of individuals both are of one
            :meth:`Design.count`.
        alpha : int, float or Fraction
            The probability that the interval misses.

        Returns
        -------
        data frame
            One row: lower and upper, which are not negative.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> pages = pd.DataFrame({"page": ["home"] * 900 + ["help"] * 9})
        >>> design = tables.Design({"page": ["home", "help", "blog"]})
        >>> noisy = design.count(pages).release(epsilon=1, at_least=30)
        >>> list(noisy.left_out(909, alpha=0.05).columns)
        ['lower', 'upper']

        """
        level = parameters.significance("alpha", alpha)
        if isinstance(total, Answers):
            counted.check_same_counts("total", self, total)
            _, found = total._totals((), level / 2, simultaneous=False)
            whole: tuple[Any, Any] = found["lower"].item(), found["upper"].item()
            level /= 2
        else:
            whole = (parameters.at_least("total", total, 0),) * 2
        low, high = self._shown_sum(level)
        ends_of = max(whole[0] - high, 0), max(whole[1] - low, 0)
        return self._made(dict(zip(_ENDS, ([each] for each in ends_of), strict=True)))

    def _shown_sum(self, level: Fraction) -> tuple[int, int]:
        """Return an interval of the sum of the true counts of all groups shown."""
        counts, [mechanism] = self.counts, self.mechanisms.values()
        if not counts.size or mechanism.rate == math.inf:
            return (sum(counts.tolist()),) * 2
        # Half of the level for each end. Given that a group is shown, its noise is no less than
        # other noise in distribution, so the sum of other noises bounds the upper end.
        most = rounding.moved(counts, rounding.half(self._rounded)).tolist()
        high = sum(most) + accuracy.sum_accuracy(mechanism, counts.size, level)
        each = 2 * ends.level(level / 2, counts.size, independent=True)
        lower, _ = self._of_groups(mechanism, counts, each)
        return sum(lower.tolist()), high

    def largest(self, k: Integer, *, alpha: Real | None = 0.05) -> Any:
        """Return the k groups with the greatest noisy counts, or all if there are fewer.

        This costs no privacy, whatever k is. Equal counts appear in the order of the design.

        Parameters
        ----------
        k : int
            At least 1.
        alpha : int, float or Fraction, optional
            The probability that any of the intervals, in columns lower and upper, misses. They are
            the :meth:`intervals` that hold for all groups at once, and so for those chosen here.
            None gives none.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no"] * 500 + ["yes"] * 900), ["no", "yes"])
        >>> table.release(epsilon=1, at_least=25).largest(1).iloc[0, 0]
        'yes'

        """
        counts = self.counts
        greatest = np.argsort(-counts, kind="stable")[: parameters.at_least("k", k, 1)]
        columns: dict[str, Any] = {**self.design._axes.columns(self._cells[greatest])}
        columns[self.design.name] = counts[greatest]
        if alpha is not None:
            ends = self._ends(alpha, simultaneous=True)
            columns |= {name: x[greatest] for name, x in zip(_ENDS, ends, strict=True)}
        return self._made(columns)

    def plot(self, *, alpha: Real = 0.05, ax: Axes | None = None) -> Axes:
        """Draw the noisy counts as dots, with their :meth:`intervals` as lines.

        If there are more than 60 groups, only the largest are drawn, with intervals that hold for
        all groups at once, and the picture says so.

        Parameters
        ----------
        alpha
            The probability that an interval misses or, where all hold at once, that any of them
            does.
        ax
            As in :func:`geomdp.tables.plot.pmf`.

        Returns
        -------
        Axes
            Groups from top to bottom against counts.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no"] * 500, name="sick"), ["no", "yes"])
        >>> axes = table.release(epsilon=1, at_least=25).plot()
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['no']

        """
        if not self._values.size:
            raise ValueError("a release without groups has no picture")

        def ends(together: bool) -> NDArray[Any]:
            return np.stack([self._values, *self._ends(alpha, simultaneous=together)])

        names, labels = list(self.to_dict()), list(self.design.levels)
        noise = f"Noise of epsilon {parameters.text(self.epsilon)}."
        stated = charts.stated(self.design.name, labels, noise, alpha, 0)
        return charts.published_rows(names, "", ends, stated, ordered=False, ax=ax)

    def _levels(self) -> dict[str, Coded]:
        """Return the columns of levels."""
        columns = self.design._axes.columns(self._cells)
        return columns if self._rest is None else self._rest.below(columns)

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values, whose order is that of the frame."""
        return values

    def _columns_without_records(self) -> tuple[list[Axis], bool]:
        """Return columns of which no record may have a level, and whether none may be counted."""
        axes = self.design._axes
        lower, _ = self._ends(empty.LEVEL, simultaneous=True)
        if not lower.any():
            return list(axes), True
        seen = self._cells[lower[: self._cells.size] > 0]
        levels = [each.listed() for each in axes.columns(seen).values()]
        return [
            axis
            for axis, items in zip(axes, levels, strict=True)
            if axis.other and {*items} <= {*axis.other}
        ], False

    def _rehearsed(self) -> dict[str, Any]:
        """Return a row for each level of the longest column, or of the examples of a rule.

        Nobody knows which groups appear.
        """
        known = {axis.label: axis.examples for axis in self.design._axes}
        rows = np.arange(max(map(len, known.values()), default=1))
        columns: dict[str, Any] = {x: Coded(each, rows % len(each)) for x, each in known.items()}
        return columns | {self._name: np.zeros_like(rows)}

    def _answers(self) -> shown.Shown:
        """Return what a page shows."""

        def ends(alpha: Real, together: bool) -> tuple[_Ints, _Ints]:
            return self._ends(alpha, simultaneous=together)

        found = super()._answers()
        return found._replace(intervals=shown.intervals(found.numbers, found.least, ends))

    def _title(self) -> str:
        return (
            f"{notebook.many(len(self._cells), 'group')} of {notebook.count(self.design.cells)}, "
            f"each with a noisy count of at least {classes.said(self._at_least)}"
            f"{'' if self._rest is None else ', and a row for the rest'}"
        )


def threshold(design: Layout, at_least: Any, mechanism: Noise) -> Thresholds:
    """Return a threshold or two, unless this design or mechanism takes none."""
    if mechanism.bounds is not None:
        raise ValueError(
            "bounds are not accepted with at_least, whose threshold is for noise without bounds: "
            "release without bounds"
        )
    if design.signed:
        raise ValueError(
            f"at_least is not accepted for sums of values that may be negative (bounds = "
            f"{design.values}), of which it would leave out the least: give bounds from 0 on"
        )
    if len(design.blocks) > 1 or design.tables is not None:
        raise ValueError(
            "at_least is not accepted with margins, hierarchies or tables: leave these out"
        )
    least = classes.checked(design._axes, at_least)
    if mechanism.rate != math.inf:
        Classes(design._axes, least).plan(Fraction(mechanism.rate))  # One without is refused here.
    return least
