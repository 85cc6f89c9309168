"""The public design of a table: its cells, its sensitivity, its accuracy and its privacy loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from geomdp import accounting, accuracy
from geomdp._ground import identity, parameters
from geomdp._ground.parameters import Bounds, Integer, Real
from geomdp._numerics import scatter
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.tables import plot
from geomdp.tables._answers import planning
from geomdp.tables._answers.estimates import workload_of
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns import native
from geomdp.tables._columns.native import Library
from geomdp.tables._count import counting
from geomdp.tables._facts import layout, tier_names
from geomdp.tables._facts.axes import Levels
from geomdp.tables._facts.chosen import keys_of, titles
from geomdp.tables._facts.classes import AtLeast, Classes, has_common
from geomdp.tables._facts.layout import Layout
from geomdp.tables._release.means import SumAndCount
from geomdp.tables._release.table import Table
from geomdp.tables._release.top import Searchable
from geomdp.tables._results.groups import threshold
from geomdp.tables._results.rest import asked

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Drawn

#: The name of one column, or a tuple of names; () for the grand total.
Columns: TypeAlias = Any

#: A greater epsilon changes no accuracy, and a smaller one has no plan.
_EPSILONS = (Fraction(1, 2**40), Fraction(2**10))


class Design(Searchable, Layout):
    """The public description of a table of counts. It contains no data.

    A design states the cells of the table and how much one individual can change them, so it knows
    the sensitivity, the accuracy of a release at any epsilon, and the epsilon that an accuracy
    needs. :meth:`count` bounds the contributions of each individual, counts the records, and
    returns a table that does not show its counts.

    * Facts of its rows: `levels`, `labels`, `shape`, `cells`, `blocks`, `tables`, `name`.
    * Facts of whom it protects: `sensitivity`, `individual`, `unit`, `l0`, `linf`, `l1`, `values`,
      `signed`, `summed`, `having`, `neighbours`.
    * To plan a release: `preview`, `plot`, `accuracy`, `epsilon_for`, `with_best_parts`,
      `with_shares`; with a threshold, `threshold`, `spurious`, `missed`; of the largest cells,
      `top_accuracy`.
    * To count: `count`, `sum`, `sum_and_count`.
    * To check what a release costs: `mechanisms_for`, `privacy_loss`, `loss_distribution`.

    Parameters
    ----------
    levels : mapping of column names to sequences, or a sequence
        The levels of each column, in the order of the table: strings, integers, floats, bools,
        dates, or times without a zone; or a :class:`Hierarchy`, whose nodes all get a count. For
        groups alone, also :class:`Words`, or a ``range`` of any length, which nobody lists. If
        several columns of the data spell out the path of a node, from the root down, give a tuple
        of their names, such as ``("region", "tract")``, which the table calls ``region/tract``. A
        tuple of names with a list of tuples, such as ``{("city", "kind"): [("Oslo", "flu"),
        ("Rome", "rsv")]}``, is a list of combinations: a record has one of them, and the table has
        these columns. For data that are a single column, give a sequence alone. Take levels from
        public knowledge, not from the data. Nulls are counted if None is a level.
    name : str
        The name of the column of counts.
    other : label, or mapping of column names to labels
        The label of a row for the records with any other value, nulls included, in each column or
        in those of the mapping. In a hierarchy, this row is one more child of the root. Without it,
        such records are not counted. Combinations have one label for all of their columns, or a
        tuple of one for each.
    complete : column name, tuple of names, or True
        The columns without `other` in which, as you state, every record has one of the levels, such
        as the sex or the date of a register; True for all of them. Nothing of the privacy depends
        on it, and nothing checks it. A table with a column that leaves out records is about other
        records than a table without this column, so :meth:`NoisyTable.combine` and other questions
        of two releases refuse the pair. They accept it if the column has `other`, or if you say
        here that it leaves out none.
    bins : mapping of column names to sequences, optional
        The cut points of columns whose levels are labels of bins, such as ``{"age": [18, 65]}`` for
        the levels ``["under 18", "18 to 64", "65 and over"]``: increasing numbers, dates or times,
        of which each begins a bin that ends before the next one. With one cut point fewer than
        there are levels, the first and the last bin have no end, so every value is in one of them;
        with one more, values below the first cut point and from the last one on are other values.
        Nulls and NaN are in no bin.
    margins : label, or mapping of column names to labels
        To release sums in addition to all combinations of levels: the label of the rows that sum
        over a column, for each column or for those of the mapping. These sums have noise of their
        own. With a pair ``(label, share)``, the sums get this share of epsilon and the other rows
        the rest; with a label alone, each gets half. The shares of several columns multiply. The
        cells are then less accurate, whereas :meth:`NoisyTable.total` adds up noisy cells at no
        cost.
    tables : mapping of columns to parts of epsilon, or list of columns, optional
        To release a few tables instead of all combinations of levels, such as ``[("area", "age"),
        ("area", "job")]`` if nobody asks for ages by job. Each table is a column, a tuple of
        columns, or () for the total; a tree stands for all its depths, and ``("area", 1)`` for one
        of them. The tables of a list share epsilon equally, and those of a mapping in proportion to
        their parts. Estimates use all tables, and questions that no table answers are refused.
        With `tables`, `margins` releases nothing more: it gives the labels that stand in a column
        which a table sums over, by default "all" in a column of text and null in any other. Such a
        sum is no level, and no answer by the column lists it.
    shares : mapping of column names to sequences, optional
        In what proportion the depths of a column share epsilon, from the root down: those of a
        hierarchy, or a margin and its levels. By default all shares are equal. A release may
        override them.
    individual : column name or tuple of column names, optional
        The column that identifies individuals, of integers, text or bytes, or the columns that do
        so together, such as ``("household", "person")``: two records belong to one individual if
        they agree in all of them. Without `individual` nothing is bounded and each record is an
        individual of its own, unless `l0` and `linf` state limits that the data are known to obey.
    unit : str, optional
        One word for whom or what epsilon protects, such as "person"; by default the names of
        `individual`, or "record". A budget adds up the losses of one unit alone, so give the same
        word to tables whose records or individuals stand for the same, such as a table with a row
        for each person and one of their visits by an id.
    l0 : int
        The most cells that one individual counts in, margins aside. Required with `individual`.
    linf : int
        The most records of an individual in one cell.
    l1 : int, optional
        Instead of both, the most records of an individual in all cells together. With a limit of k
        records, the sensitivity is then k instead of ``k * k``. For :meth:`sum`, the most that the
        absolute values of an individual's records may add up to.
    values : (int, int), optional
        For sums, in place of `linf`: the least and the greatest value that an individual adds to a
        cell or, with `l1`, that a single record adds. :meth:`sum` sets it from its bounds.
    summed : column name, optional
        For sums, the column that was added up; :meth:`sum` sets it. Two releases are of the same
        sums if they agree in it and in `values`, whatever the `name` that readers see.
    having : column name, optional
        A column without whose value no record counts; :meth:`sum_and_count` sets it.
    neighbours : {"add-remove", "change"}
        Whether epsilon covers the presence of an individual or a change of all its records. All
        tables of a budget have the same. For changes with `l0` of 2 or more, the sensitivity is an
        upper bound. It may be up to twice the truth in tiny tables, where columns have fewer than
        ``2 * l0`` levels (``docs/proofs.md``, lemma 14c).

    Attributes
    ----------
    levels : dict of column names to lists
        The levels of each column, followed by its labels for other records and for margins, or all
        nodes of a hierarchy, from the root down; the rule of a column of words, or of a long range.
    labels : dict of column names to dicts
        The text that readers see for each node, for hierarchies with labels.
    sensitivity : int
        The most by which one individual can change all counts together: the changes of all rows,
        added up (the L1 norm). An individual who is added or removed changes at most `l0` cells by
        `linf` each, so a table of cells alone has the sensitivity ``l0 * linf``, or `l1`. Released
        sums that contain these cells change with them: in a table of two columns with
        ``margins="all"``, a single record changes four rows. With ``neighbours="change"``, an
        individual may leave its cells for others, which changes both, but not the sums that contain
        the old cell as well as the new one. For such changes of several cells, the number may be
        larger than necessary, but it is never too small (``docs/proofs.md``, lemma 14c).
    cells : int
        The number of rows of the table, margins and sums included.

    Examples
    --------
    >>> from geomdp.tables import Design
    >>> regions, diseases = ["north", "south"], ["flu", "measles", "none"]
    >>> design = Design({"region": regions, "disease": diseases}, individual="patient", l0=2)
    >>> design
    Design({'region': ['north', 'south'], 'disease': ['flu', 'measles', 'none']}, \
individual='patient', l0=2)
    >>> design.sensitivity, design.accuracy(epsilon=0.5, alpha=0.05)
    (2, 12)

    """

    __slots__ = ()

    def count(
        self, data: Any, *, counts: Any = None, not_totals: Sequence[Any] | None = None
    ) -> Table:
        """Bound the contributions of each individual, and count the records of each cell.

        Each individual keeps `l0` of its cells, chosen uniformly at random with fresh system
        entropy, and at most `linf` records in each of them, or `l1` of its records, chosen in the
        same way. Records outside the table do not count towards these limits. The choice for one
        individual does not depend on the others.

        Parameters
        ----------
        data : data frame or column
            A frame of pandas or Polars (lazy too), a Table of PyArrow, or a relation of DuckDB;
            each row is a record. A design of one column also takes that column by itself, unless
            individuals are bounded.
            For data on a cluster, see :func:`geomdp.tables.spark.count`,
            :func:`geomdp.tables.dask.count` and :func:`geomdp.tables.ray.count`.
        counts : column name, optional
            For records that have been counted already, as by ``GROUP BY``: the column that says how
            many records each row stands for, in integers of up to 64 bits. Leave out rows of
            totals, since they count records again; for the same reason `counts` cannot be combined
            with `other`, or with a hierarchy without `leaves_only`. Nor can it be combined with
            `individual`, or used for values such as cents, whose sum one record changes by more
            than 1. No value raises an error, since that would reveal it: nulls and counts below 0
            are taken as 0, and counts beyond int64 as its limit.
        not_totals : sequence of levels, optional
            Levels that are named like totals, as by a first or last word such as "All" or "Total",
            and are none. Others are refused with `counts`. For a noisy total, use `margins`.

        Returns
        -------
        Table
            The exact counts, which the table does not show. All that it takes over from the data is
            their library. The types, order and index of its frames follow from the design, because
            the type or the categories of a column may reveal a single record. Counts are int64, and
            the last column of levels changes fastest.

        Raises
        ------
        TypeError
            If individuals are anything but integers, text or bytes: as floats, long ids would
            merge.
        ValueError
            If levels have another type than their column, or an individual is null.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> visits = pd.DataFrame({"who": [1, 1, 2], "town": ["Rome", "Oslo", "Rome"]})
        >>> Design({"town": ["Oslo", "Rome"]}, individual="who", l0=1).count(visits)
        <Table of 2 counts, not shown; town: ['Oslo', 'Rome']; sensitivity 1>
        >>> counted = pd.DataFrame({"town": ["Rome", "Oslo"], "visits": [2, 1]})
        >>> Design({"town": ["Oslo", "Rome"]}).count(counted, counts="visits")
        <Table of 2 counts, not shown; town: ['Oslo', 'Rome']; sensitivity 1>

        """
        return counting.count(layout.counting(self), data, counts, not_totals)

    def sum(self, data: Any, column: str, *, bounds: Bounds | None = None) -> Table:
        """Bound the contribution of each individual, and sum a column over each cell.

        Values are integers, so express money in cents. A null is taken as 0, and a value beyond a
        bound as that bound. With `l0`, an individual keeps that many cells, as for :meth:`count`,
        and the sum of its values in each is clamped to the bounds as well, so an individual changes
        a cell by at most the bound that is further from 0.

        With `l1`, the values of an individual may be spread over any cells. Its records are taken
        in a uniformly random order, drawn with fresh system entropy, until their absolute values
        add up to `l1`; the last one is cut and those after it are left out, whatever the order of
        the data. An individual therefore changes the whole table by at most `l1`, instead of `l0`
        times a bound.

        Parameters
        ----------
        data : data frame
            As for :meth:`count`.
        column : column name
            The values, integers of up to 64 bits.
        bounds : (int, int)
            The least and the greatest sum that an individual adds to a cell (with `l1`, or without
            an individual, that a record adds), such as ``(0, 100)``, or ``(-50, 50)`` for values
            that may be negative. They must include 0. Bounds are public, so do not take them from
            the data. With `l1` they are ``(0, l1)`` by default.

        Returns
        -------
        Table
            The exact sums, in a column with the name of `column`, unless the design names another
            or has this column among its levels. The design of the table states the bounds as
            ``values``. After a release, :meth:`NoisyTable.total` and all other answers are about
            sums instead of counts, and if the lower bound is below 0, intervals may extend below 0.

        Raises
        ------
        ValueError
            If 0 is not within the bounds, or the design has `linf`.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> bills = pd.DataFrame({"who": [1, 1, 2], "shop": [*"AAB"], "euros": [90, 40, 250]})
        >>> design = Design({"shop": ["A", "B", "C"]}, individual="who", l0=1)
        >>> table = design.sum(bills, "euros", bounds=(0, 100))
        >>> table.sensitivity, table.frame["euros"].tolist()
        (100, [100, 100, 0])
        >>> spread = Design({"shop": ["A", "B", "C"]}, individual="who", l1=300)
        >>> table = spread.sum(bills, "euros")
        >>> table.sensitivity, table.frame["euros"].tolist()
        (300, [130, 250, 0])

        """
        return counting.count(layout.summing(self, column, bounds), data, column)

    def sum_and_count(self, data: Any, column: str, *, bounds: Bounds) -> SumAndCount:
        """Bound contributions, and sum a column as well as count its records, for means.

        Both tables are about the same records: those with a value, of each individual as many as
        :meth:`count` keeps, chosen once for both. A value beyond a bound is taken as that bound.
        The tables are released together, for one epsilon that is booked once.

        Parameters
        ----------
        data : data frame
            As for :meth:`count`.
        column : column name
            The values, integers of up to 64 bits. Records with a null count in neither table.
        bounds : (int, int)
            The least and the greatest value of a record, such as ``(18, 99)`` for ages. Bounds are
            public, so do not take them from the data.

        Returns
        -------
        SumAndCount
            The exact sums and counts, which this object does not show.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> bills = pd.DataFrame({"who": range(9000), "shop": [*"AAB"] * 3000, "euros": 20})
        >>> design = Design({"shop": ["A", "B"]}, individual="who", l0=1)
        >>> noisy = design.sum_and_count(bills, "euros", bounds=(0, 100)).release(epsilon=1)
        >>> found = noisy.mean(alpha=0.05)
        >>> bool(18 < found["lower"][0] <= found["estimate"][0] <= found["upper"][0] < 22)
        True

        """
        sums, counted, values = layout.averaged(layout.counting(self), column, bounds)
        library, counts, added = counting.tally_both(counted, data, column, values)
        # Of both, since the values to add up are of records chosen at random, whatever the limits.
        count_id = None if self.individual is None else identity.fresh()
        tables = Table(sums, library, added, count_id), Table(counted, library, counts, count_id)
        return SumAndCount(*tables, values)

    def accuracy(
        self,
        *,
        epsilon: Real,
        alpha: Real = 0.05,
        of: Columns = None,
        tiers: Mapping[str, Real] | None = None,
    ) -> int:
        """Return the accuracy at level alpha of a release with this epsilon, without bounds.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole table.
        alpha : int, float or Fraction
            The significance level, above 0 and at most 1.
        of : "all", column name or tuple of column names, optional
            What the accuracy is of; by default, of one cell. "all" stands for all cells at once,
            released margins included. Columns stand for a sum of noisy cells over the other
            columns, one sum at a time, and () for the grand total; write ``("all",)`` for a column
            named "all". If combinations are listed, it is the accuracy of the sum of most cells. In
            a design with `tables`, some table must have the columns together; their estimates use
            all tables. There ``("area", 1)`` stands for one depth of a tree.
        tiers : mapping of names to numbers, optional
            The tiers of a release at several precisions, such as ``{"public": "0.1",
            "researchers": 1}``. `epsilon` is then that of one of them, and so is the accuracy.

        Returns
        -------
        int
            In units of counts; the probability that an error exceeds it is at most alpha.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"region": range(10), "sex": ["f", "m"]})
        >>> [design.accuracy(epsilon=0.5, alpha=0.05, of=of) for of in (None, "all", "region", ())]
        [6, 12, 8, 25]

        """
        return self._accuracies_of([of], epsilon, alpha, tiers)[0]

    def _accuracies_of(
        self, asked: Iterable[Columns], epsilon: Real, alpha: Real, tiers: Any
    ) -> list[int]:
        """Return the accuracy of the totals of each of some columns."""
        mechanisms = self.mechanisms_for(epsilon, tiers=tiers)
        workload = cache(lambda: workload_of(self._axes, mechanisms))

        def found(of: Columns) -> int:
            if of is None and self.tables is not None:
                raise ValueError("of is not given: name the columns of a table, or 'all'")
            cells = mechanisms[self.blocks[-1]]
            if of is None:
                return cells.accuracy(alpha)
            self._axes.check_listed()
            if of == "all":
                return max(
                    accuracy.simultaneous_accuracy(each, alpha, n=self.cells)
                    for each in dict.fromkeys(mechanisms.values())
                )
            if self.tables is not None:
                return planning.accuracy(self, workload(), of, alpha)
            kept = self._axes.of("of", of)
            summed = math.prod(
                len(axis.levels) if place not in kept else kept[place].most
                for place, axis in enumerate(self._axes)
            )
            return accuracy.sum_accuracy(cells, summed, alpha)

        return [found(of) for of in asked]

    def epsilon_for(self, *, accuracy: Integer, alpha: Real = 0.05, of: Columns = None) -> float:
        """Return the least epsilon of a release with this accuracy, up to one part in 10^6.

        Parameters
        ----------
        accuracy : int
            In units of counts; not negative.
        alpha, of
            As in :meth:`accuracy`.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"region": range(10), "sex": ["f", "m"]})
        >>> epsilon = design.epsilon_for(accuracy=5, alpha=0.05, of="all")
        >>> round(epsilon, 3), design.accuracy(epsilon=epsilon, alpha=0.05, of="all")
        (1.061, 5)

        """
        target = parameters.at_least("accuracy", accuracy, 0)
        low, high = map(float, _EPSILONS)
        while high / low > 1 + 1e-6:
            middle = math.sqrt(low * high)
            enough = self.accuracy(epsilon=middle, alpha=alpha, of=of) <= target
            low, high = (low, middle) if enough else (middle, high)
        return high

    def spurious(
        self, epsilon: Real, at_least: AtLeast, *, rest: tuple[Any, Real] | None = None
    ) -> float:
        """Return the expected number of empty cells that reach a threshold, if all are empty.

        It is infinite where no float is as large.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole table.
        at_least : int or (int, int)
            The threshold: the least noisy count that is published; or a pair, as :meth:`threshold`
            returns it.
        rest : pair of a label and a number, optional
            The row for the groups left out, as :meth:`Table.release` takes it. Its share of epsilon
            is not that of the groups, whose noise is then greater.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"page": range(10**6), "country": range(250)})
        >>> design.spurious(epsilon=1, at_least=25) < 0.003
        True

        """
        rate, classes = self._classes(epsilon, at_least, rest)
        if rate == math.inf:
            return 0.0
        each, noise = zip(classes.places, classes.thresholds, strict=True), scatter.plan_of(rate)
        return math.fsum(noise.spurious(*pair) for pair in each)

    def missed(
        self,
        count: Integer,
        epsilon: Real,
        at_least: AtLeast,
        *,
        rest: tuple[Any, Real] | None = None,
    ) -> float | tuple[float, float]:
        """Return the probability that a cell with this count does not reach a threshold.

        Of two thresholds, these are two probabilities.

        Parameters
        ----------
        count : int
            The true count of a cell, such as the least that matters.
        epsilon, at_least, rest
            As in :meth:`spurious`.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"page": range(10**6), "country": range(250)})
        >>> [round(design.missed(n, epsilon=1, at_least=25), 3) for n in (20, 25, 30)]
        [0.995, 0.269, 0.002]

        """
        rate, classes = self._classes(epsilon, at_least, rest)
        number = parameters.at_least("count", count, 0)
        if rate == math.inf:
            found = [float(number < least) for least in classes.thresholds]
        else:
            noise = scatter.plan_of(rate)
            found = [noise.missed(number, x) for x in classes.thresholds]
        return found[0] if len(found) == 1 else (found[0], found[1])

    def threshold(
        self, epsilon: Real, spurious: Real = 1, *, rest: tuple[Any, Real] | None = None
    ) -> int | tuple[int, int]:
        """Return the least threshold that at most this many empty cells are expected to reach.

        If a column has :class:`Words` with a list of common ones, these are two thresholds, as
        ``at_least`` takes them: that of the cells with common words alone, and that of all others,
        each with half of `spurious`.

        Parameters
        ----------
        epsilon, rest
            As in :meth:`spurious`.
        spurious : int, float or Fraction
            The greatest expected number of empty cells, from 1e-300 to 1e300.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"page": range(10**6), "country": range(250)})
        >>> design.threshold(epsilon=1), design.threshold(epsilon=1, spurious=0.01)
        (20, 24)
        >>> design.threshold(epsilon=1, rest=(-1, "0.1"))
        22

        """
        wanted, great = "a number from 1e-300 to 1e300", 10**300
        most = Fraction(
            parameters.in_range(
                "spurious", spurious, wanted, lambda x: Fraction(1, great) <= x <= great
            )
        )
        rate, classes = self._classes(epsilon, (1, 1) if has_common(self._axes) else 1, rest)
        if rate == math.inf:
            found = [1 for _ in classes.places]
        else:
            part, noise = most / len(classes.places), scatter.plan_of(rate)
            found = [noise.least_threshold(n, part) for n in classes.places]
        return found[0] if len(found) == 1 else (found[0], found[1])

    def _classes(self, epsilon: Real, at_least: Any, rest: Any) -> tuple[Fraction | float, Classes]:
        """Return the rate of the noise of groups, and their cells by threshold."""
        _, epsilon = asked(self, rest, epsilon)
        mechanism = self.mechanisms_for(epsilon)[self.blocks[-1]]
        return mechanism.rate, Classes(self._axes, threshold(self, at_least, mechanism))

    def loss_distribution(
        self, mechanism: GeometricMechanism | None = None, *, epsilon: Real | None = None
    ) -> accounting.LossDistribution:
        """Return the distribution of the privacy loss of one release, to compose with others.

        It is the loss of an individual who changes `l0` cells by `linf` each, or twice as many with
        ``neighbours="change"``, or all cells if there are fewer. At a margin or at a depth of a
        hierarchy, these cells are in as few sums as have room for them, and each of these sums
        changes by more. No change that the design allows has a greater loss (``docs/proofs.md``,
        lemma 14a). With ``neighbours="change"``, not all sums can change by the most at once, so at
        delta 0 a release costs less than this says.

        Parameters
        ----------
        mechanism : GeometricMechanism
            The mechanism of all cells.
        epsilon : number or str
            Instead of a mechanism: the privacy loss of the whole table.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"town": ["Oslo", "Rome", "Bern"]}, individual="who", l0=3)
        >>> losses = design.loss_distribution(epsilon=0.3)
        >>> round((50 * losses).epsilon_at(delta=1e-6), 2)
        6.07

        """
        parts = [
            accounting.loss_distribution(as_mechanism(each), l0=nodes, linf=change)
            for block, each in layout.mechanisms_by(self, mechanism, epsilon).items()
            for nodes, change in layout.changes(self, block)
        ]
        return sum(parts[1:], start=parts[0])

    def privacy_loss(self, mechanism: GeometricMechanism) -> float:
        """Return the privacy loss of a release of the whole table by one mechanism, rounded up.

        Parameters
        ----------
        mechanism : GeometricMechanism
            The mechanism of all cells, of any sensitivity.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> from geomdp.tables import Design
        >>> Design(["yes", "no"], margins="all").privacy_loss(GeometricMechanism(0.5))
        1.0

        """
        return as_mechanism(mechanism).privacy_loss(self.sensitivity)

    def preview(
        self,
        epsilons: Sequence[Real] | Real | Mapping[str, Real] = (0.1, 0.2, 0.5, 1, 2),
        *,
        alpha: Real = 0.05,
        library: Library | None = None,
    ) -> Any:
        """Return the accuracies of a release by epsilon, for planning without any data.

        Parameters
        ----------
        epsilons : sequence of numbers, or one
            Privacy losses of the whole table. A mapping such as ``{"public": "0.1", "researchers":
            1}`` is for the tiers of one release.
        alpha
            As in :meth:`accuracy`.
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first of these that is installed.

        Returns
        -------
        data frame
            A row for each epsilon, after the name of the tier if there are tiers, with the
            accuracies of one cell, of all cells at once, and of sums of cells for each column and
            for the grand total; with `tables`, those of an estimate of each table instead.
            The last column has the types of the levels, which the columns of records need too.
            :meth:`plot` draws the accuracies.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> found = Design({"region": range(10), "sex": ["f", "m"]}).preview([0.5, 1])
        >>> print(found.drop(columns="types of levels"))
           epsilon  cell  all cells  sum by region  sum by sex  total
        0      0.5     6         12              8          18     25
        1      1.0     3          6              4           9     12
        >>> found["types of levels"][0]
        'region int, sex str'

        """
        items: Any = epsilons if np.ndim(epsilons) else [epsilons]  # type: ignore[arg-type]
        tiers, columns = None, dict[str, list[Any]]()
        if isinstance(epsilons, Mapping):
            tiers, by_tier = epsilons, tier_names.checked(epsilons)
            columns["tier"], items = [tier.name for tier in by_tier], by_tier.values()
        given = [parameters.positive_fraction("epsilon", each) for each in items]
        columns["epsilon"] = [float(each) for each in given]
        columns |= self._accuracies(given, alpha, tiers)
        kinds = (
            f"{x.label} {getattr(_levels.type_of(x.nodes), '__name__', 'null')}"
            for x in self._axes.faces
        )
        columns["types of levels"] = [", ".join(kinds)] * len(given)
        return native.made(columns, library)

    def with_best_parts(self, epsilon: Real = 1) -> Self:
        """Return this design with parts of epsilon that serve all of its tables.

        With these parts, the variances of all rows of the release, each estimated from all tables,
        have about the least possible sum. Take them as a first choice, and compare them in
        :meth:`preview` with parts of your own.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole release; the parts hardly depend on it.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> levels = {"area": range(50), "age": range(20), "job": range(10)}
        >>> design = Design(levels, tables=[("area", "age"), "job", ()]).with_best_parts()
        >>> {key: float(part) for key, part in design.tables.items()}
        {('area', 'age'): 0.796, 'job': 0.203, (): 0.001}

        """
        if self.tables is None:
            raise ValueError(
                "best parts are parts of tables, and this design has none: give tables="
            )
        return type(self)(**(self._arguments() | {"tables": planning.parts(self, epsilon)}))

    def plot(
        self,
        epsilons: Sequence[Real] | None = None,
        *,
        alpha: Real = 0.05,
        ax: Drawn | None = None,
    ) -> Drawn:
        """Draw the accuracies of :meth:`preview` against epsilon, without any data.

        Parameters
        ----------
        epsilons : sequence of numbers
            Two or more privacy losses of the whole table, increasing; by default from 0.1 to 5. The
            curves are drawn at 80 more between the first and the last.
        alpha
            As in :meth:`accuracy`.
        ax
            As in :func:`geomdp.tables.plot.pmf`.

        Returns
        -------
        Axes
            A curve for one cell, one for all cells at once, and one for each kind of sum. Both axes
            are logarithmic, but accuracies up to 1 are linear.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> axes = Design({"region": range(10), "sex": ["f", "m"]}).plot()
        >>> [text.get_text() for text in axes.get_legend().get_texts()]
        ['cell', 'all cells', 'sum by region', 'sum by sex', 'total']

        """
        given = (0.1, 5) if epsilons is None else epsilons
        return plot.preview(given, lambda each: self._accuracies(each, alpha), alpha, ax=ax)

    def _accuracies(
        self, epsilons: Iterable[Real], alpha: Real, tiers: Mapping[str, Real] | None = None
    ) -> dict[str, list[int]]:
        """Return the accuracies of one cell, of all cells and of sums, for each epsilon."""
        of: dict[str, Columns] = {"cell": None, "all cells": "all"}
        if self.tables is not None:
            of = {"all cells": "all"} | titles(keys_of(self.tables, self.levels))
        elif len(self.levels) > 1:
            of |= {f"sum by {label}": (label,) for label in self.levels}
        of["total"] = ()
        rows = [self._accuracies_of(of.values(), each, alpha, tiers) for each in epsilons]
        return {title: [row[place] for row in rows] for place, title in enumerate(of)}


def count(
    data: Any,
    levels: Mapping[str, Levels] | Levels,
    *,
    name: str = "count",
    other: Any = None,
    margins: Any = None,
    counts: Any = None,
    not_totals: Sequence[Any] | None = None,
) -> Table:
    """Count the records of each level or combination of levels; each record is one individual.

    This is short for ``Design(levels, ...).count(data)``. The rows of the table and their order
    follow from the arguments alone, and a level without records counts 0. ``value_counts()``, in
    contrast, shows which levels occur, in the order of their true counts, and noise hides neither
    of these.

    Parameters
    ----------
    data, counts, not_totals
        As in :meth:`Design.count`.
    levels, name, other, margins
        As in :class:`Design`.

    Returns
    -------
    Table
        The exact counts and their sensitivity.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> people = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "sick": ["no", "yes", "no"]})
    >>> cities = ["Bern", "Oslo", "Rome"]
    >>> table = tables.count(people, {"city": cities, "sick": ["yes", "no"]}, margins="all")
    >>> table.sensitivity
    4
    >>> noisy = table.release(epsilon=1)
    >>> noisy.frame["sick"].tolist()[:4]
    ['yes', 'no', 'all', 'yes']

    """
    design = Design(levels, name=name, other=other, margins=margins)
    return design.count(data, counts=counts, not_totals=not_totals)
