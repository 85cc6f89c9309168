"""Questions about totals, which tables and groups that reached a threshold answer alike."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import Real
from geomdp.tables._answers import estimates as _estimates
from geomdp.tables._answers import public_totals, selection
from geomdp.tables._answers.estimates import Estimates
from geomdp.tables._answers.selection import Columns
from geomdp.tables._math.products import Block

_Ints: TypeAlias = NDArray[np.int64]


class OfTotals(Estimates):
    """Totals, their shares and rates, and those of two releases.

    Releases of groups take all columns in `by`, or none: see :class:`NoisyGroups`.
    """

    def total(
        self, by: Columns = (), *, alpha: Real | None = 0.05, simultaneous: bool = False
    ) -> Any:
        """Return the total of each group, summed over the other columns.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep; none for the grand total.
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
        >>> people = pd.DataFrame({"city": ["Rome", "Oslo"] * 9, "sick": ["no", "yes"] * 9})
        >>> design = tables.Design({"city": ["Oslo", "Rome"], "sick": ["yes", "no"]})
        >>> noisy = design.count(people).release(epsilon=1)
        >>> noisy.total("city", alpha=0.05)["city"].tolist()
        ['Oslo', 'Rome']

        """
        return self._total(by, alpha, simultaneous)

    def percent(self, by: Columns, *, alpha: Real | None = 0.05, simultaneous: bool = False) -> Any:
        """Return the percentage of each group in the grand total.

        For a percentage of a part, such as of one area, see :meth:`ratio`.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, percent, lower and upper. The percentages are those of the
            estimates as they are, so those of all groups add up to 100, and one may be negative or
            above 100; the intervals are from 0 to 100, since no true count is negative. All
            percentages are NaN if the noisy total is not positive.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes"] * 500, name="sick"), ["yes", "no"])
        >>> found = table.release(epsilon=1).percent("sick", alpha=0.05)
        >>> list(found.columns), found["sick"].tolist()
        (['sick', 'percent', 'lower', 'upper'], ['yes', 'no'])

        """
        _estimates.refuse_signed("percentage", self)
        rows = self._rows_by(by)
        if self._by_cells and alpha is not None:
            assert isinstance(rows, selection.Rows)
            found = self._shares_of_cells(rows, alpha, simultaneous)
        else:
            asked = self._shares(rows)
            limits = Fraction(0), Fraction(100)
            found = _estimates.ratios(
                asked, alpha, simultaneous, limits, factor=Fraction(100), of_whole=True
            )
        return self._framed(rows, found.columns("percent"))

    def rate(
        self,
        population: Any,
        per: Real = 100_000,
        by: Columns = (),
        *,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the rate of each group: its total per unit of a public population.

        For a denominator from the same release, see :meth:`ratio`.

        Parameters
        ----------
        population : number, mapping, or column
            The public size of each group, above 0: a number for the grand total; a mapping, or a
            pandas column with an index, whose keys are levels of the column in `by`, or tuples of
            levels in the order of the frame; or numbers in the order of the rows. A mapping may
            leave out margins and inner nodes of trees, which are then sums.
        per : number or str
            The unit, such as 100,000 for cases per 100,000.
        by : column name or tuple of column names
            The columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. The ends are those of the total's
            interval, scaled exactly and rounded outwards.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> people = pd.DataFrame({"city": ["Rome", "Oslo"] * 90})
        >>> noisy = tables.count(people, {"city": ["Oslo", "Rome"]}).release(epsilon=1)
        >>> population = {"Oslo": 700_000, "Rome": 2_700_000}
        >>> found = noisy.rate(population, by="city", alpha=0.05)
        >>> list(found.columns), found["city"].tolist()
        (['city', 'estimate', 'lower', 'upper'], ['Oslo', 'Rome'])

        """
        unit = parameters.positive_fraction("per", per)
        return self._total(
            by,
            alpha,
            simultaneous,
            lambda rows: unit / selection.populations(self.design._axes, population, rows),
        )

    def change_since(
        self,
        earlier: OfTotals,
        by: Columns = (),
        *,
        percent: bool = False,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the change of each group's total since an earlier release.

        The two releases have independent noise. An individual may be in both, in which case their
        privacy losses add up as always.

        Parameters
        ----------
        earlier : noisy table or groups
            Another release of the same kind of counts, with the same levels of the columns in `by`.
            Its other columns may differ if they leave out no records: those with `other`, and
            those that a design states to be `complete`. Steps of one stream may share noise, so
            they are not accepted: compare them with :meth:`difference`.
        by : column name or tuple of column names
            The columns to keep. Margins and inner nodes of trees are shown if both releases have
            them.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.
        percent : bool
            Whether to return the change in percent of the earlier total.

        Returns
        -------
        data frame
            The columns of `by`, then estimate or percent, and lower and upper. Intervals of
            percentages are from -100 on. If the earlier total cannot be distinguished from 0, the
            percentage is NaN and its upper end is infinite.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> design = tables.Design({"city": ["Oslo", "Rome"]})
        >>> before, after = (
        ...     design.count(pd.DataFrame({"city": ["Rome", "Oslo"] * n})).release(epsilon=1)
        ...     for n in (500, 600)
        ... )
        >>> found = after.change_since(before, by="city", percent=True, alpha=0.05)
        >>> bool(15 < found["lower"][0] <= found["percent"][0] <= found["upper"][0] < 25)
        True

        """
        asked = self._both("earlier", earlier, by)
        _estimates.refuse_bounds("change", alpha, self, earlier)
        parameters.check_bool("percent", percent)
        if percent:
            signed, whole = self.design.signed or earlier.design.signed, Fraction(100)
            found = _estimates.ratios(
                asked,
                alpha,
                simultaneous,
                (-math.inf if signed else -whole, math.inf),
                factor=whole,
                shift=-whole,
            )
        else:
            found = _estimates.linear(asked, (1, -1), alpha, simultaneous)
        return self._framed(asked.rows, found.columns("percent" if percent else "estimate"))

    def per(
        self,
        other: OfTotals,
        by: Columns | None = None,
        *,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return each total divided by the same total in another table, such as a sum by a count.

        Parameters
        ----------
        other : noisy table or groups
            A release with the columns of `by`, with the same levels as for :meth:`plus` and with
            independent noise, of counts of any kind. For means, these are the counts of the records
            whose values this table adds up, such as the other file of :meth:`SumAndCount.release`;
            nothing checks that. The epsilons of both add up.
        by : column name or tuple of column names, optional
            The columns to keep; by default all. ``()`` is the ratio of the totals.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. The estimate is NaN, and an end is
            infinite, where the other total cannot be distinguished from 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> bills = pd.DataFrame({"shop": [*"AAB"] * 3000, "euros": 20})
        >>> pair = Design({"shop": ["A", "B"]}).sum_and_count(bills, "euros", bounds=(0, 100))
        >>> noisy = pair.release(epsilon=1)
        >>> found = noisy.sums.per(noisy.counts, by=(), alpha=0.05)
        >>> bool(18 < found["lower"][0] <= found["upper"][0] < 22)
        True

        """
        return self._per(other, by, alpha, simultaneous, None)

    def _per(
        self,
        other: OfTotals,
        by: Columns | None,
        alpha: Real | None,
        simultaneous: bool,
        limits: tuple[Fraction, Fraction] | None,
    ) -> Any:
        """Return ratios, within limits if they are known."""
        asked = self._beside(other, by, ratio=True)
        _estimates.refuse_bounds("ratio", alpha, self, other)
        least = min(self._limits[0], other._limits[0])
        found = _estimates.ratios(asked, alpha, simultaneous, limits or (least, math.inf))
        return self._framed(asked.rows, found.columns())

    def with_totals(self, totals: Any) -> Self:
        """Return this release with public totals, which its estimates then add up to.

        Every estimate then has the least variance that the noisy counts and the totals allow, and
        intervals are narrower: with two cells and their total, each variance is halved. Whatever
        follows from the totals alone has an interval of one point, and shares of a public total
        have a denominator without noise. The counts of :meth:`NoisyTable.consistent` add up to the
        totals too.

        Parameters
        ----------
        totals : int, or frame
            The number of records in the table, or a frame with some of its columns, a row for each
            combination of their levels (or of nodes of one depth of a tree), and a column of
            counts. Records that the table leaves out, having no level in one of its columns, are
            in none of them. To add more totals, call the method again. Take totals from a public
            source, not from the data, since epsilon does not cover them. They must be totals of the
            records that remain after contributions are bounded. Groups that reached a threshold
            take the number of all records alone, those left out among them.

        Returns
        -------
        NoisyTable or NoisyGroups
            The same release, with its id. Its files state the totals, so that :func:`geomdp.read`
            answers with them too.

        Raises
        ------
        ValueError
            If totals are negative, two of them contradict each other, they leave out groups or name
            unknown ones, or the release has bounds.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> known = table.release(epsilon=0.5).with_totals(3)
        >>> yes, no = known.estimates()["estimate"]
        >>> abs(yes + no - 3) < 1e-9
        True
        >>> known.total(alpha=0.05).iloc[0].tolist()
        [3.0, 3.0, 3.0]

        """
        _estimates.refuse_signed("known total", self)
        block, counts = public_totals.of(self.design._axes, totals)
        _estimates.refuse_bounds("known total", True, self)
        if block in self._known:
            raise ValueError("totals of these columns are there already: give others")
        return self._knowing({**self._known, block: counts})

    def _knowing(self, known: Mapping[Block, _Ints]) -> Self:
        """Return this release with these public counts, whose depths are those of rooted trees."""
        axes = self.design._axes
        known = {
            block: each.reshape(public_totals.shape(axes, block)) for block, each in known.items()
        }
        public_totals.check(axes, known)
        found = copy.copy(self)
        for name in ("_workload", "_fitted"):
            found.__dict__.pop(name, None)
        found._known = known
        try:
            _ = found._workload
        except ValueError as error:
            raise ValueError(f"totals are not accepted: {error}") from None
        return found
