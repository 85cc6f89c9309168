"""Groups chosen by noisy counts: the cells of a design that reached a threshold."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy
from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._numerics import scatter
from geomdp.tables._answers import estimates
from geomdp.tables._answers.answers import Answers
from geomdp.tables._answers.picked import Found, Operand, Picked
from geomdp.tables._answers.selection import Listed, Rows
from geomdp.tables._answers.totals import OfTotals
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import classes, counted, rounding
from geomdp.tables._facts.axes import unraveled
from geomdp.tables._facts.classes import Classes, Thresholds
from geomdp.tables._math import ends, thresholds
from geomdp.tables._math.ends import Ends
from geomdp.tables._pictures import charts
from geomdp.tables._publish.page import shown
from geomdp.tables._results import empty
from geomdp.tables._results.released import Released
from geomdp.tables._results.rest import Rest, ends_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from geomdp._noise import Noise
    from geomdp.tables._facts.axes import Axis
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._math.products import Block

_Ints: TypeAlias = NDArray[np.int64]


class NoisyGroups(Released, OfTotals):
    """The groups of a release whose noisy counts reached a threshold.

    ``Table.release(at_least=...)`` makes one, ``SumAndCount.release(at_least=...)`` one of counts
    and one of the sums of the groups that these have chosen, and :func:`geomdp.read` reads one from
    a file. Empty cells of the design may be among the groups, as if all cells had got noise
    (``docs/proofs.md``, section 22), so the choice of those that appear costs no privacy;
    :meth:`Design.spurious` gives the expected number of empty ones. The object contains no exact
    counts.

    * Counts: `frame`, `counts`, `rest`, `to_dict`, `intervals`, `largest`; of those without a row,
      `left_out` and `most_left_out`.
    * Answers, by all columns: `rate`; `percent`, with a row for the rest or a public total
      (`with_totals`); with another release, `change_since`, `per` and `plus`. ``by=()`` is the
      total of all records, for `total` and the others, where the release knows it.
    * Files and pictures: `save`, `plot`.

    An estimate is a noisy count, which is too high on average, or a sum or ratio of some. Of two
    releases, the rows are the groups of either; where one is left out by a release, there is no
    estimate, but NaN, and the interval allows for all counts that the threshold may hide. Given
    that a row appears, its interval misses with probability at most `alpha` (lemma 20c). Sums over
    some of the columns, and other questions about all cells, are not answered.

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

    __slots__ = ("_at_least", "_chosen_by", "_picked", "_rest")

    _at_least: Thresholds
    _picked: NDArray[Any]

    def __init__(
        self,
        *facts: Any,
        cells: NDArray[np.int64],
        at_least: Thresholds,
        rest: Rest | None = None,
        chosen_by: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*facts, **more)
        # With a row for the rest, its count is the last one.
        self._picked, self._at_least, self._rest = cells, at_least, rest
        self._chosen_by = chosen_by

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(Answers, name):
                raise AttributeError(
                    f"groups that reached a threshold have no {name}: they were chosen by their "
                    "noise, so that no estimate from them is unbiased; release without at_least"
                )
            return super().__getattr__(name)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The noisy counts of the groups, in the order of the frame, without a row for the rest."""
        return self._values[: self._picked.size]

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
        """The threshold, below which noisy counts are left out; or a pair, as it was given.

        Of sums, it is that of the counts that chose their groups.
        """
        return self._at_least

    def intervals(self, alpha: Real = 0.05, *, simultaneous: bool = False) -> Any:
        """Return the frame with an interval for each true count, in columns lower and upper.

        A group appears only if its noise was not too low, so its noisy count is too high on
        average. These intervals allow for that: given that a group appears, its interval misses
        with probability at most `alpha`. If you then pick or sort groups by their counts, use
        `simultaneous`, as :meth:`largest` does, because the greatest of many groups tend to have
        the greatest noise. A lower end of 0 means that the group may be empty. A row for the rest
        has an interval for the sum of all groups left out, which holds whichever these are. The
        noise of groups is taken to be discrete Laplace noise (``docs/proofs.md``, section 18). The
        noise of sums is independent of the counts that chose their groups (theorem 20d).

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
        found = self._ends(alpha, simultaneous=simultaneous)
        return self._made({**self._columns(), **found._asdict()})

    def _ends(self, alpha: Real, *, simultaneous: bool) -> Ends:
        """Return the ends of the intervals."""
        level = parameters.significance("alpha", alpha)
        if simultaneous and self._values.size:
            # Given which groups are here, their noises are independent, and that of the rest.
            level = ends.level(level, self._values.size, independent=True)
        found = self._of_groups(level)
        if self._rest is None:
            return found
        return Ends(*map(np.append, found, self._rest_ends(level)))

    def _rest_ends(self, level: Fraction) -> Ends:
        """Return the ends of the interval of the row for the rest."""
        assert self._rest is not None
        noise, limits = self._rest.mechanism, self._limits
        return ends_of(noise, self._values[-1:], self._rounded, level, limits)

    def _of_groups(self, level: Fraction) -> Ends:
        """Return the ends of the intervals of groups, each given that it appears."""
        if self._chosen_by is not None:
            [noise] = self.mechanisms.values()
            return ends_of(noise, self.counts, self._rounded, level, self._limits)
        off = rounding.half(self._rounded)
        least = self._least(self._picked)
        # Both ends rise with what a count was before rounding, which reached the threshold.
        low, high = (np.maximum(rounding.moved(self.counts, x), least) for x in (-off, off))
        if (rate := self._rate) < math.inf:
            interval = partial(thresholds.interval, rate, threshold=least, level=level)
            low, high = interval(published=low)[0], interval(published=high)[1]
        return Ends(low, high).within(*self._limits)

    def _least(self, cells: NDArray[Any]) -> _Ints:
        """Return the threshold of each cell."""
        return Classes(self.design._axes, self._at_least).least(cells)

    @property
    def _rate(self) -> float:
        """The rate that noise was drawn at."""
        [mechanism] = self.mechanisms.values()
        if mechanism.rate == math.inf:
            return math.inf
        return scatter.plan_of(Fraction(mechanism.rate)).sampled_rate

    def most_left_out(
        self, alpha: Real = 0.05, *, simultaneous: bool = False
    ) -> int | tuple[int, int]:
        """Return the greatest count that a cell without a row may have.

        A cell with a greater count appears, except with probability at most `alpha`. With two
        thresholds these are two counts, as for :attr:`at_least`.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that a cell that you had in mind is left out although its count is
            greater.
        simultaneous : bool
            Whether `alpha` is the probability of that for any cell of the design.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> design = tables.Design({"page": ["home", "help", "blog"]})
        >>> noisy = design.count(pd.DataFrame({"page": ["home"] * 900})).release(
        ...     epsilon=1, at_least=25)
        >>> noisy.most_left_out(alpha=0.05)  # of blogs, there may be up to 26
        26

        """
        parameters.check_bool("simultaneous", simultaneous)
        level = parameters.significance("alpha", alpha)
        if self._chosen_by is not None:
            raise ValueError(
                "sums of groups that their counts chose have no most_left_out: ask the counts"
            )
        if simultaneous:
            level = ends.level(level, max(1, self.design.cells))
        classes = Classes(self.design._axes, self._at_least).thresholds
        found = self._most(np.array(classes, np.int64), level).tolist()
        return found[0] if len(found) == 1 else (found[0], found[1])

    def _most(self, least: _Ints, level: Fraction) -> _Ints:
        """Return the greatest counts that these thresholds leave out."""
        if (rate := self._rate) == math.inf:
            return least - 1
        return thresholds.most_left_out(rate, least, level)

    @property
    def _has_total(self) -> bool:
        """Whether the release knows the total of all cells, those left out among them."""
        return self._rest is not None or self._known_total < math.inf

    def _knowing(self, known: Mapping[Block, _Ints]) -> Self:
        if {*known} != {(0,) * len(self.design._axes)}:
            raise ValueError(
                "totals by columns are not accepted for groups that reached a threshold, which are "
                "shown by all of their columns: give the total of all records"
            )
        found = copy.copy(self)
        found._known = {block: counts.reshape(()) for block, counts in known.items()}
        return found

    def _rows_by(self, by: Any) -> Rows | Listed:
        return Listed(self._picked) if self._columns_of(by) else Rows()

    def _sum(self, rows: Rows | Listed) -> Picked:
        return Picked(rows, self._operand(rows))

    def _shares(self, rows: Rows | Listed) -> Picked:
        return Picked(rows, self._operand(rows), self._operand(Rows()))

    def _operand(self, rows: Rows | Listed) -> Operand:
        if isinstance(rows, Rows):
            return Operand(self._whole, noisy=math.isinf(self._known_total))
        return Operand(partial(self._of_cells_left, rows.cells), picks=True)

    def _of_cells_left(self, cells: NDArray[Any], level: Fraction | None) -> Found:
        """Return what is known of cells, of which some have a row.

        Given that a cell appears, its interval misses with probability at most the level; and with
        at most that, one with a count beyond its interval is left out. Sums of cells left out may
        be anything.
        """
        places = {cell: place for place, cell in enumerate(self._picked.tolist())}
        at = np.array([places.get(cell, -1) for cell in cells.tolist()], np.int64)
        here = at >= 0
        points: NDArray[Any] = self.counts[at[here]]
        if not here.all():
            points = np.full(at.shape, math.nan)
            points[here] = self.counts[at[here]]
        if level is None:
            return Found(points, None)
        lower, upper = (np.full(at.shape, limit, object) for limit in self._limits)
        if self._chosen_by is None:
            upper = self._most(self._least(cells), level).astype(object)
        for each, own in zip((lower, upper), self._of_groups(level), strict=True):
            each[here] = own[at[here]]
        whole = Ends.of(lower.tolist(), upper.tolist(), at.shape)
        return Found(points, whole.within(*self._limits))

    def _whole(self, level: Fraction | None) -> Found:
        """Return the total of all cells: a public one, or the groups shown and the rest."""
        if not self._has_total:
            raise ValueError(
                "groups alone have no total, since nobody knows how many records the cells left "
                "out have: release with rest=, or state a public total by with_totals"
            )
        if (known := self._known_total) < math.inf:
            return Found(np.array(known), None if level is None else _point(int(known)))
        points = np.array(sum(self._values.tolist()))
        if level is None:
            return Found(points, None)
        rest = (int(end[0]) for end in self._rest_ends(level / 2))
        lower, upper = map(sum, zip(self._shown_sum(level / 2), rest, strict=True))
        return Found(points, Ends.of([lower], [upper], ()))

    def left_out(self, total: Integer | Answers | None = None, *, alpha: Real = 0.05) -> Any:
        """Return an interval for the sum of all groups left out, from a total of the same records.

        This costs nothing. The total minus the groups shown would be a biased estimate: a group is
        shown only if its noise was not too low, so the difference tends to be too low. The interval
        allows for that, whichever groups are shown, and widens with their number. A row for the
        rest, by ``release(rest=...)``, has a much narrower interval (``docs/proofs.md``, lemma
        20b).

        Parameters
        ----------
        total : int or NoisyTable, optional
            The number of records in all cells of the design after contributions were bounded, which
            must be public and not taken from the data, since epsilon does not cover it; by default
            that of :meth:`with_totals`. Or another release of the same records, as
            :meth:`NoisyTable.combine` takes it: a column that only one of the two has leaves out no
            records, and with limits of individuals both are of one :meth:`Design.count`.
        alpha : int, float or Fraction
            The probability that the interval misses.

        Returns
        -------
        data frame
            One row: lower and upper, which are not negative. If the groups shown add up to more
            than the total, the interval is that of groups that add up to it.

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
        estimates.refuse_signed("sum of groups left out", self)
        if total is None:
            if math.isinf(self._known_total):
                raise TypeError("total is not given: give it, or state it by with_totals")
            whole: tuple[Any, Any] = (int(self._known_total),) * 2
        elif isinstance(total, Answers):
            counted.check_same_counts("total", self, total)
            _, found = total._totals((), level / 2, simultaneous=False)
            whole = found["lower"].item(), found["upper"].item()
            level /= 2
        else:
            whole = (parameters.at_least("total", total, 0),) * 2
        low, high = self._shown_sum(level)
        # As for a noisy count below 0: a total below the groups shown is taken for theirs.
        lower, upper = max(whole[0] - high, 0), max(whole[1], sum(self.counts.tolist())) - low
        return self._made({"lower": [lower], "upper": [upper]})

    def _shown_sum(self, level: Fraction) -> tuple[int, int]:
        """Return an interval of the sum of the true counts of all groups shown."""
        counts, [mechanism] = self.counts, self.mechanisms.values()
        if not counts.size or mechanism.rate == math.inf:
            return (sum(counts.tolist()),) * 2
        # Half of the level for each end. Given that a group is shown, its noise is no less than
        # other noise in distribution, so the sum of other noises bounds the upper end.
        off = rounding.half(self._rounded)
        most = rounding.moved(counts, off).tolist()
        reach = accuracy.sum_accuracy(mechanism, counts.size, level)
        high = max(sum(most), self._limits[0]) + reach
        if self._chosen_by is not None:
            return max(sum(rounding.moved(counts, -off).tolist()) - reach, self._limits[0]), high
        each = 2 * ends.level(level / 2, counts.size, independent=True)
        return sum(self._of_groups(each).lower.tolist()), high

    def plus(
        self,
        other: OfTotals,
        by: Any = None,
        *,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the count of each group plus the same count in a release about other people.

        The rows are the groups of either release. One that this or the other release left out has
        no estimate, but an interval. So the sums are answers, and no release that could be saved.

        Parameters
        ----------
        other : noisy groups or table
            A release of the same kind of counts, with the same columns and levels.
        by : tuple of column names, optional
            All columns, as by default, or ``()`` for the total of all records.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> design = tables.Design({"page": ["home", "help", "blog"]})
        >>> north, south = (
        ...     design.count(pd.DataFrame({"page": ["home"] * n})).release(epsilon=1, at_least=25)
        ...     for n in (900, 400)
        ... )
        >>> found = north.plus(south, alpha=0.05)
        >>> bool(1280 < found["lower"][0] <= found["upper"][0] < 1320)
        True

        """
        asked = self._beside(other, by)
        counted.check_other_people("other", self, other)
        estimates.refuse_bounds("sum of tables", alpha, self, other)
        limits = min(self._limits[0], other._limits[0]), math.inf
        found = estimates.linear(asked, (1, 1), alpha, simultaneous, limits=limits)
        return self._framed(asked.rows, found.columns())

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
        columns: dict[str, Any] = {**self.design._axes.columns(self._picked[greatest])}
        columns[self.design.name] = counts[greatest]
        if alpha is not None:
            found = self._ends(alpha, simultaneous=True)
            columns |= {name: each[greatest] for name, each in found._asdict().items()}
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
        columns = self.design._axes.columns(self._picked)
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
        places = unraveled(self._picked[lower[: self._picked.size] > 0], axes.sizes)
        return [
            axis
            for axis, at in zip(axes, places, strict=True)
            if axis.other and (at == axis.outside).all()
        ], False

    def _rehearsed(self) -> dict[str, Any]:
        """Return a row for each level of the longest column, or of the examples of a rule.

        Nobody knows which groups appear.
        """
        known = {face.label: face.examples for face in self.design._axes.faces}
        rows = np.arange(max(map(len, known.values()), default=1))
        columns: dict[str, Any] = {x: Coded(each, rows % len(each)) for x, each in known.items()}
        return columns | {self._name: np.zeros_like(rows)}

    def _answers(self) -> shown.Shown:
        """Return what a page shows."""

        def ends(alpha: Real, together: bool) -> Ends:
            return self._ends(alpha, simultaneous=together)

        found = super()._answers()
        found = found._replace(least=None if self.design.signed else 0)
        return found._replace(intervals=shown.intervals(found.numbers, found.least, ends))

    def _title(self) -> str:
        return (
            f"{notebook.many(len(self._picked), 'group')} of {notebook.count(self.design.cells)}, "
            f"each with a noisy count of at least {classes.said(self._at_least)}"
            f"{'' if self._chosen_by is None else ' in another table'}"
            f"{'' if self._rest is None else ', and a row for the rest'}"
        )


def _point(value: int) -> Ends:
    return Ends.of([value], [value], ())


def threshold(
    design: Layout, at_least: Any, mechanism: Noise, *, of_others: bool = False
) -> Thresholds:
    """Return a threshold or two, unless this design or mechanism takes none.

    They may be thresholds of other counts.
    """
    if mechanism.bounds is not None:
        raise ValueError(
            "bounds are not accepted with at_least, whose threshold is for noise without bounds: "
            "release without bounds"
        )
    if design.signed and not of_others:
        raise ValueError(
            f"at_least is not accepted for sums of values that may be negative (bounds = "
            f"{design.values}), of which it would leave out the least: give bounds from 0 on"
        )
    if len(design.blocks) > 1 or design.tables is not None:
        raise ValueError(
            "at_least is not accepted with margins, hierarchies or tables: leave these out"
        )
    least = classes.checked(design._axes, at_least)
    if mechanism.rate != math.inf and not of_others:
        Classes(design._axes, least).plan(Fraction(mechanism.rate))  # One without is refused here.
    return least
