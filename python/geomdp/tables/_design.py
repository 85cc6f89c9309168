"""The public design of a table: its cells, its sensitivity, its accuracy and its privacy loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from geomdp import accounting, accuracy
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Bounds, Integer, Real
from geomdp._numerics import decimals, tails
from geomdp._uncopied import unseen
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.tables import _counting, _layout, _native, _plans, _tiers, plot
from geomdp.tables._axes import Levels
from geomdp.tables._chosen import keys_of
from geomdp.tables._groups import threshold
from geomdp.tables._layout import Layout
from geomdp.tables._means import SumAndCount
from geomdp.tables._native import Library
from geomdp.tables._table import Table
from geomdp.tables._top import Searchable

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Drawn

#: The name of one column, or a tuple of names; () for the grand total.
Columns: TypeAlias = Any

#: A greater epsilon changes no accuracy, and a smaller one has no plan.
_EPSILONS = (Fraction(1, 2**40), Fraction(2**10))


class Design(Searchable, Layout):
    """The public description of a table of counts. It contains no data.

    A design knows its cells, and how much one individual can change them. So it gives the
    sensitivity, the accuracy of a release and the epsilon for an accuracy. :meth:`count` bounds the
    contributions of each individual, counts, and returns a table that shows nothing.

    Parameters
    ----------
    levels : mapping of column names to sequences, or a sequence
        The levels of each column, in the order of the table: strings, integers, floats, bools,
        dates, or times without a zone; or a :class:`Hierarchy`, whose nodes all get a count. A
        tuple of names is for a hierarchy of the paths in these columns of the data, from the root
        down: ``("region", "tract")``, which the table calls ``region/tract``. A sequence is for
        data that are a single column. Take levels from public knowledge, not from the data. A null
        is counted if None is a level.
    name : str
        The name of the column of counts.
    other : label, or mapping of column names to labels
        A row of this label counts the records of all other values, nulls included, in each column
        or in those of the mapping; of a hierarchy, one more child of the root. Without it, such
        records are counted nowhere.
    margins : label, or mapping of column names to labels
        A row of this label has the sum over the column, with noise of its own. A pair
        ``(label, share)`` gives the sums this share of epsilon, and the other rows the rest; a
        label alone gives each half. The shares of several columns multiply. Released margins make
        the cells less accurate; :meth:`NoisyTable.total` adds noisy cells at no cost.
    tables : mapping of columns to parts of epsilon, or list of columns, optional
        The tables to release, instead of all combinations of columns: each a column, a tuple of
        columns, or () for the total. Parts are in proportion; those of a list are equal. A tree
        stands for all its depths, or ``("area", 1)`` for one. Estimates use all tables, and what no
        table determines is refused. Beside it, `margins` give the labels of sums alone, without
        which they are null.
    shares : mapping of column names to sequences, optional
        The parts of epsilon of a column's depths, from the root down, in proportion: of a hierarchy
        or of a margin and its levels. By default all are equal. A release may have others.
    individual : column name or tuple of column names, optional
        The column that identifies individuals, of integers, text or bytes, or the columns that do
        so together, such as ``("household", "person")``: two records are of one individual if they
        agree in all of them. Without it nothing is bounded, and each record is one individual,
        unless `l0` and `linf` state limits that are known.
    l0 : int
        The most cells of one individual, not counting margins. Needed with `individual`.
    linf : int
        The most records of an individual in one cell.
    l1 : int, optional
        Instead of both: the most records of an individual, in all cells together. The sensitivity
        of k records is then k, and not the ``k * k`` of `l0` and `linf`. For :meth:`sum`, the most
        that the absolute values of its records add up to.
    values : (int, int), optional
        For sums, as :meth:`sum` states it by its bounds: the least and the greatest that an
        individual adds to a cell, or with `l1` one of its records. It takes the place of `linf`.
    neighbours : {"add-remove", "change"}
        Whether privacy covers the presence of an individual, or a change of all of its records.

    Attributes
    ----------
    levels : dict of column names to lists
        The levels of each column, followed by its labels for other records and for margins; of a
        hierarchy all nodes, from the root down.
    labels : dict of column names to dicts
        What readers see of nodes, for hierarchies with labels.
    sensitivity : int
        The greatest L1 change of the table by one individual: `linf` for each of `l0` cells, or
        `l1`, in each sum that has them. With ``neighbours="change"`` that holds for the cells that
        it leaves and for those that it joins, but what is moved below a node does not change it.
        With changes of several cells it may be more than the greatest, never less, where the nodes
        have no room for such a change (``docs/proofs.md``, lemma 14c).
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

    @unseen
    def count(self, data: Any, *, counts: Any = None) -> Table:
        """Bound the contributions of each individual, and count the records of each cell.

        An individual keeps `l0` of its cells, drawn uniformly by fresh system entropy, and at most
        `linf` records in each; or `l1` of its records, drawn in the same way. Records outside the
        table do not count towards these limits. The draw for one individual does not depend on the
        others.

        Parameters
        ----------
        data : data frame or column
            A frame of pandas or Polars (lazy too), or a Table of PyArrow; each row is a record. A
            design of one column takes that column alone, unless individuals are bounded.
            :func:`geomdp.tables.spark.count` takes frames of Spark.
        counts : column name, optional
            For records that somebody else has counted, as by ``GROUP BY``: the column, of integers
            of up to 64 bits, that says how many records each row stands for. Leave out rows of
            totals, which count records again; so counts do not go with `other`, nor with a
            hierarchy without `leaves_only`. Not with `individual`, and not for values such as
            cents, whose sums one record changes by more than 1.
            No value raises an error, which would show it: those below 0 and nulls are taken for 0,
            and counts above the limit of int64 for that limit.

        Returns
        -------
        Table
            The exact counts, which it does not show. Of the data it keeps the library alone: types,
            order and index of its frames follow from the design, since a column's categories and
            its type may reveal a single record. The counts are int64. The last column of levels
            changes fastest.

        Raises
        ------
        TypeError
            If individuals are of another type than integers, text or bytes: floats merge long ids.
        ValueError
            If levels are not of the type of their column, or an individual is null.

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
        return _counting.count(_layout.counting(self), data, counts)

    @unseen
    def sum(self, data: Any, column: str, *, bounds: Bounds | None = None) -> Table:
        """Bound the contribution of each individual, and sum a column over each cell.

        Values are integers: count money in cents. A null is taken for 0, and a value beyond a bound
        for that bound. With `l0`, an individual keeps so many cells, as for :meth:`count`, and the
        sum of its values in each is clamped to the bounds too. So it changes a cell by at most the
        bound that is further from 0.

        With `l1`, an individual spreads its values over cells as they come: its records are taken
        in a uniformly random order, drawn by fresh system entropy, until their absolute values add
        up to `l1`. The last one is cut, and those after it are left out; the order of the data does
        not matter. So it changes the whole table by at most `l1`, and not by `l0` times a bound.

        Parameters
        ----------
        data : data frame
            As for :meth:`count`.
        column : column name
            The values, integers of up to 64 bits.
        bounds : (int, int)
            The least and the greatest sum that an individual adds to a cell, or a record with `l1`
            or if there is no individual; such as ``(0, 100)``, or ``(-50, 50)`` for values that may
            be negative. 0 is within them. They are public: do not take them from the data. With
            `l1`, ``(0, l1)`` if not given.

        Returns
        -------
        Table
            The exact sums. Its column of sums has the name of `column`, unless the design names
            another, or has the column among its levels, and its design states the bounds as
            ``values``. After a release, :meth:`NoisyTable.total` and the other answers are about
            these sums instead of counts. If the lower bound is below 0, intervals may be, too.

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
        return _counting.count(_layout.summing(self, column, bounds), data, column)

    @unseen
    def sum_and_count(self, data: Any, column: str, *, bounds: Bounds) -> SumAndCount:
        """Bound contributions, and both sum a column and count its records, for means.

        Both tables are about the same records, which are drawn once: those with a value, of each
        individual as many as :meth:`count` keeps. A value beyond a bound is taken for that bound.
        They are released together, for one epsilon that is booked once.

        Parameters
        ----------
        data : data frame
            As for :meth:`count`.
        column : column name
            The values, integers of up to 64 bits. Records with a null are in neither table.
        bounds : (int, int)
            The least and the greatest value of a record, such as ``(18, 99)`` for ages. They are
            public: do not take them from the data.

        Returns
        -------
        SumAndCount
            The exact sums and counts, which it does not show.

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
        counted = _layout.counting(self)
        sums, values = _layout.averaged(counted, column, bounds)
        library, counts, added = _counting.tally_both(counted, data, column, values)
        tables = Table(sums, library, added), Table(counted, library, counts)
        return SumAndCount(*tables, values)

    def accuracy(
        self,
        *,
        epsilon: Real,
        alpha: Real,
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
            "all": all cells at once, released margins included. Columns: their margin as sums of
            noisy cells over the other columns, one sum at a time; () is the grand total. A column
            named "all" is ``("all",)``. By default, one cell. A design with `tables` needs columns
            that a table has together, or "all": the estimates of columns use all tables.
        tiers : mapping of names to numbers, optional
            For a release at several precisions, as in :meth:`Table.release`; `epsilon` is that of
            one of them, and the accuracy is that of this one.

        Returns
        -------
        int
            In units of counts: an error exceeds it with probability at most alpha.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"region": range(10), "sex": ["f", "m"]})
        >>> [design.accuracy(epsilon=0.5, alpha=0.05, of=of) for of in (None, "all", "region", ())]
        [6, 12, 8, 25]

        """
        mechanisms = self.mechanisms_for(epsilon, tiers=tiers)
        if of is None and self.tables is not None:
            raise ValueError("of is not given: name the columns of a table, or 'all'")
        cells = mechanisms[self.blocks[-1]]
        if of is None:
            return cells.accuracy(alpha)
        if of == "all":
            return max(
                accuracy.simultaneous_accuracy(each, alpha, n=self.cells)
                for each in dict.fromkeys(mechanisms.values())
            )
        kept = {axis.label for axis in self._axes.of("of", of)}
        if self.tables is not None:
            return _plans.accuracy(self, mechanisms, kept, alpha)
        summed = math.prod(len(axis.levels) for axis in self._axes if axis.label not in kept)
        return accuracy.sum_accuracy(cells, summed, alpha)

    def epsilon_for(self, *, accuracy: Integer, alpha: Real, of: Columns = None) -> float:
        """Return the epsilon of a release with this accuracy, the least up to one part in 10^6.

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

    def spurious(self, epsilon: Real, at_least: Integer) -> float:
        """Return the expected number of empty cells that reach a threshold, if all are empty.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole table.
        at_least : int
            The threshold: the least noisy count that is published.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"page": range(10**6), "country": range(250)})
        >>> design.spurious(epsilon=1, at_least=25) < 0.003
        True

        """
        mechanism = self.mechanisms_for(epsilon)[self.blocks[-1]]
        least = threshold(self, at_least, mechanism)
        return decimals.up(self.cells * tails.at_least(mechanism.certificate(), least))

    def missed(self, count: Integer, epsilon: Real, at_least: Integer) -> float:
        """Return the probability that a cell with this count does not reach a threshold.

        Parameters
        ----------
        count : int
            The true count of a cell, such as the least that matters.
        epsilon, at_least
            As in :meth:`spurious`.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"page": range(10**6), "country": range(250)})
        >>> [round(design.missed(n, epsilon=1, at_least=25), 3) for n in (20, 25, 30)]
        [0.995, 0.269, 0.002]

        """
        mechanism = self.mechanisms_for(epsilon)[self.blocks[-1]]
        least = threshold(self, at_least, mechanism)
        # The noise is symmetric.
        distance = parameters.at_least("count", count, 0) - least + 1
        return decimals.up(tails.at_least(mechanism.certificate(), distance))

    def threshold(self, epsilon: Real, spurious: Real = 1) -> int:
        """Return the least threshold that at most this many empty cells are expected to reach.

        Parameters
        ----------
        epsilon
            As in :meth:`spurious`.
        spurious : int, float or Fraction
            The greatest expected number of empty cells, above 0.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"page": range(10**6), "country": range(250)})
        >>> design.threshold(epsilon=1), design.threshold(epsilon=1, spurious=0.01)
        (20, 24)

        """
        share = parameters.positive_fraction("spurious", spurious) / self.cells
        mechanism = self.mechanisms_for(epsilon)[self.blocks[-1]]
        threshold(self, 1, mechanism)
        certificate = mechanism.certificate()
        return tails.least_of(certificate, min(share, Fraction(1)), 1) + 1

    def loss_distribution(
        self, mechanism: GeometricMechanism | None = None, *, epsilon: Real | None = None
    ) -> accounting.LossDistribution:
        """Return the distribution of the privacy loss of one release, to compose with others.

        An individual changes at most `l0` cells by `linf` each, or twice as many with
        ``neighbours="change"``, but no more than the table has. Of the sums of a margin or of a
        depth of a hierarchy it changes as few as have room for its cells, each by more. No change
        within these bounds has a greater loss (``docs/proofs.md``, lemma 14a). With
        ``neighbours="change"`` not all sums change by their most at once, so that at delta 0 a
        release costs less than this says.

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
            accounting.loss_distribution(each, l0=nodes, linf=change)
            for block, each in _layout.mechanisms_by(self, mechanism, epsilon).items()
            for nodes, change in _layout.changes(self, block)
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
        """Return the accuracies of a release by epsilon, for planning. It needs no data.

        Parameters
        ----------
        epsilons : sequence of numbers, or one
            Privacy losses of the whole table. A mapping such as ``{"public": "0.1", "researchers":
            1}`` is for the tiers of one release, as in :meth:`Table.release`.
        alpha
            As in :meth:`accuracy`.
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first of these that is installed.

        Returns
        -------
        data frame
            A row for each epsilon, after the name of the tier if there are tiers, with the
            accuracies of one cell, of all cells at once, and of sums of cells for each column and
            in all; with `tables`, of an estimate of each table instead. :meth:`plot` draws it.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> print(Design({"region": range(10), "sex": ["f", "m"]}).preview([0.5, 1]))
           epsilon  cell  all cells  sum by region  sum by sex  total
        0      0.5     6         12              8          18     25
        1      1.0     3          6              4           9     12

        """
        items: Any = epsilons if np.ndim(epsilons) else [epsilons]  # type: ignore[arg-type]
        tiers, columns = None, dict[str, list[Any]]()
        if isinstance(epsilons, Mapping):
            tiers, by_tier = epsilons, _tiers.checked(epsilons)
            columns["tier"], items = [tier.name for tier in by_tier], by_tier.values()
        given = [parameters.positive_fraction("epsilon", each) for each in items]
        columns["epsilon"] = [float(each) for each in given]
        return _native.made(columns | self._accuracies(given, alpha, tiers), library)

    def with_best_parts(self, epsilon: Real = 1) -> Self:
        """Return this design with the parts of epsilon for its tables that are best together.

        The sum of the variances of all rows of the release, as estimated from all tables, is about
        the least. It is a first choice: compare it by :meth:`preview` with parts of your own.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of the whole release, on which the parts depend little.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> levels = {"area": range(50), "age": range(20), "job": range(10)}
        >>> design = Design(levels, tables=[("area", "age"), "job", ()]).with_best_parts()
        >>> {key: float(part) for key, part in design.tables.items()}
        {('area', 'age'): 0.796, 'job': 0.203, (): 0.001}

        """
        if self.tables is None:
            raise ValueError("best parts are those of tables, which this design has not: give some")
        return type(self)(**(self._arguments() | {"tables": _plans.parts(self, epsilon)}))

    def plot(
        self,
        epsilons: Sequence[Real] | None = None,
        *,
        alpha: Real = 0.05,
        ax: Drawn | None = None,
    ) -> Drawn:
        """Draw the accuracies of :meth:`preview` against epsilon. It needs no data.

        Parameters
        ----------
        epsilons : sequence of numbers
            Privacy losses of the whole table, increasing, two or more; from 0.1 to 5 if not given.
            The curves are drawn at 80 more between the first and the last.
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
            keys = [tuple(column for column, _ in key) for key in keys_of(self.tables, self.levels)]
            of = {"all cells": "all"} | {", ".join(key): key for key in keys if key}
        elif len(self.levels) > 1:
            of |= {f"sum by {label}": (label,) for label in self.levels}
        of["total"] = ()
        return {
            title: [
                self.accuracy(epsilon=each, alpha=alpha, of=kept, tiers=tiers) for each in epsilons
            ]
            for title, kept in of.items()
        }


@unseen
def count(
    data: Any,
    levels: Mapping[str, Levels] | Levels,
    *,
    name: str = "count",
    other: Any = None,
    margins: Any = None,
    counts: Any = None,
) -> Table:
    """Count the records of each level or combination of levels; each record is one individual.

    Short for ``Design(levels, ...).count(data)``. The rows of the table and their order follow from
    the arguments alone, and a level without records counts 0. ``value_counts()`` shows the levels
    that occur, in the order of their true counts, and noise hides neither.

    Parameters
    ----------
    data, counts
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
    return Design(levels, name=name, other=other, margins=margins).count(data, counts=counts)
