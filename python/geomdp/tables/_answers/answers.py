"""The questions that noisy counts answer: totals, shares, means, quantiles, rates and changes."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals, notebook, parameters
from geomdp._ground.parameters import Real
from geomdp._noise import Noise
from geomdp.tables._answers import estimates as _estimates
from geomdp.tables._answers import public_totals, selection
from geomdp.tables._answers.cells import OfCells
from geomdp.tables._answers.estimates import Asked
from geomdp.tables._answers.pictures import OfPictures
from geomdp.tables._answers.selection import Columns, Rows
from geomdp.tables._answers.totals import OfTotals
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import counted, layout
from geomdp.tables._facts import parts as _parts
from geomdp.tables._math.products import Block

_Ints: TypeAlias = NDArray[np.int64]


class Answers(OfTotals, OfCells, OfPictures):
    """Estimates and intervals from noisy counts: the base class of :class:`NoisyTable`.

    Every answer is a frame in the library of the data, with a row for each combination of the
    columns in `by`, released margins and inner nodes of trees included, or a single row without
    `by`. All answers are computed from the noisy counts, so they cost no further privacy.

    **Estimates.** Without released sums, an estimate is a sum of noisy cells. With margins or
    trees, it is the weighted least-squares estimate: the unbiased estimate of least variance from
    all noisy counts, up to the rounding of the weights (``docs/proofs.md``, section 17; if some
    noise has a scale below a third, the weights are those at a third). In a tree without
    `leaves_only`, a node may have more records than its children together, so each noisy count is
    its own estimate. Estimates of counts may be negative, because they are unbiased; this lets
    errors cancel where counts are added up.

    **Intervals.** With `alpha`, the frame also has the ends of intervals, each of which misses its
    true value with probability at most `alpha`. With ``simultaneous=True``, this is the probability
    that any interval of the frame misses. Intervals allow for the noise alone, not for the sampling
    error of a survey. Since true counts are integers and not negative, so are the ends of their
    intervals. An estimate below 0 has the interval of an estimate of 0, which contains its own
    (``docs/proofs.md``, lemma 16e). Other ends are rounded outwards. A noisy count at a limit of
    int64 may have been moved there, so intervals that depend on it are infinite.

    **Ratios**, which include shares, means and changes in percent, have intervals of all values
    that a test does not reject (theorem 16a). Such an interval says nothing about a group whose
    true denominator is 0. If the denominator cannot be distinguished from 0, the interval contains
    all possible values, and its ends may be infinite. The estimate is the ratio of the estimates as
    they are, so it may lie outside the possible values and its interval, as that of a count may be
    negative. It is NaN where the denominator cannot be distinguished from 0 at level 0.05:
    a group without records has no mean.

    **Releases with bounds** (``release(bounds=...)``) answer with sums of noisy cells and the
    intervals of :func:`geomdp.accuracy.sum_confidence_interval`, for counts, totals, differences,
    rates and shares. Other intervals are refused, because all errors at a bound have the same sign.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> people = pd.DataFrame({"age": [30, 41, 52] * 100, "sex": ["f", "m", "f"] * 100})
    >>> design = tables.Design({"age": range(20, 70), "sex": ["f", "m"]})
    >>> noisy = design.count(people).release(epsilon=1)
    >>> list(noisy.mean("age", by="sex", alpha=0.05).columns)
    ['sex', 'estimate', 'lower', 'upper']

    """

    def intervals(self, alpha: Real = 0.05, *, simultaneous: bool = False) -> Any:
        """Return an estimate and an interval for each true count.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that an interval misses: 0.05 for 95% confidence.
        simultaneous : bool
            Whether `alpha` is the probability that any of the intervals misses.

        Returns
        -------
        data frame
            The columns of levels, estimate, lower and upper. The intervals include both ends.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes"] * 50), ["yes", "no"])
        >>> found = table.release(epsilon=0.5).intervals(alpha=0.05)
        >>> (found["upper"] - found["estimate"]).tolist()
        [6, 6]

        """
        parameters.level("alpha", alpha)  # Without one there would be no interval.
        return self._every(alpha, simultaneous)

    def estimates(self) -> Any:
        """Return the estimate of each true count.

        Returns
        -------
        data frame
            The columns of levels, and estimate. The estimate of a sum is the sum of the estimates,
            except where a node of a tree may have more records than its children together.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"]), ["yes", "no"], margins="all")
        >>> yes, no, whole = table.release(epsilon=1).estimates()["estimate"]
        >>> abs(yes + no - whole) < 1e-9
        True

        """
        return self._every(None, simultaneous=False)

    def ratio(
        self,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        by: Columns = (),
        *,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the ratio of the totals of two selections of cells, which may overlap.

        For example, ``ratio({"sick": "yes"}, {}, by="city")`` is the proportion of the sick in each
        city.

        Parameters
        ----------
        one, other : mappings of column names to levels
            The cells of each total: those with these levels, or with one of a list of levels. A
            level may be a node of a tree. ``{}`` selects all cells.
        by : column name or tuple of column names
            The columns to keep, none of them in `one` or `other`.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. Unless values may be negative, intervals
            begin at 0 or above, and end at most at 1 if `other` selects all cells of `one`. An
            estimate is NaN where the noisy total of `other` is not positive.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> people = pd.DataFrame({"city": [*"ROO"] * 900, "sick": ["yes", "yes", "no"] * 900})
        >>> design = tables.Design({"city": ["O", "R"], "sick": ["yes", "no"]})
        >>> noisy = design.count(people).release(epsilon=1)
        >>> found = noisy.ratio({"sick": "yes"}, {}, by="city", alpha=0.05)
        >>> found["estimate"].round(1).tolist()
        [0.5, 1.0]

        """
        rows, chosen = self._selected(by, one, other)
        _estimates.refuse_bounds("ratio", alpha, self)
        part = selection.is_part(self.design._axes, *chosen) and not self.design.signed
        limits = self._limits[0], Fraction(1) if part else math.inf
        found = _estimates.ratios(self._asked(rows, *chosen), alpha, simultaneous, limits)
        return self._framed(rows, found.columns())

    def difference(
        self,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        by: Columns = (),
        *,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the difference of the totals of two selections of cells.

        Parameters
        ----------
        one, other : mappings of column names to levels
            The cells of each total: those with these levels, or with one of a list of levels. A
            level may be a node of a tree. ``{}`` selects all cells.
        by : column name or tuple of column names
            The columns to keep, none of them in `one` or `other`.
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
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> noisy = table.release(epsilon=0.5)
        >>> found = noisy.difference({"sick": "no"}, {"sick": "yes"}, alpha=0.05)
        >>> (found["upper"] - found["estimate"]).tolist()
        [8]

        """
        rows, chosen = self._selected(by, one, other)
        if self._by_cells and alpha is not None:
            found = self._of_cells(rows, chosen, alpha, simultaneous)
        else:
            found = _estimates.linear(self._asked(rows, *chosen), (1, -1), alpha, simultaneous)
        return self._framed(rows, found.columns())

    def sum(
        self,
        column: str,
        by: Columns = (),
        *,
        values: Mapping[Any, Real] | None = None,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the sum of a column's values over the records of each group.

        Parameters
        ----------
        column : column name
            Its levels are numbers, or `values` has them.
        by : column name or tuple of column names
            The other columns to keep.
        values : mapping from levels to numbers, optional
            The value of each level, such as the middle of an age band. Values are numbers that
            float64 holds exactly, or multiples of one number by integers up to 2**53, such as
            decimals with few digits. Records of levels without a value are left out.
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
        >>> homes = pd.Series([1, 2, 2, 4] * 50, name="rooms")
        >>> noisy = tables.count(homes.to_frame(), {"rooms": [1, 2, 3, 4]}).release(epsilon=1)
        >>> found = noisy.sum("rooms", alpha=0.05)
        >>> bool(found["upper"][0] - found["lower"][0] < 40)
        True

        """
        rows = selection.rows_of(self.design._axes, by)
        place, view, given = selection.values_of(self.design._axes, column, values, rows)
        _estimates.refuse_bounds("sum of values", alpha, self)
        weights, unit, off = selection.weights_of(view.axis.tree.size, given)
        if off:
            raise ValueError(
                "values are not accepted: give numbers that float64 has, or that are multiples of "
                "one number by integers up to 2**53"
            )
        whole = bool((weights == np.rint(weights)).all())
        asked = self._asked(rows, {place: view.lifted(weights)})
        limits = _estimates.UNLIMITED
        if not self.design.signed:
            least = 0 if weights.min() >= 0 else -math.inf
            limits = least, 0 if weights.max() <= 0 else math.inf
        found = _estimates.linear(asked, (1,), alpha, simultaneous, whole=whole, limits=limits)
        return self._framed(rows, (found if unit == 1 else found.scaled(unit)).columns())

    def mean(
        self,
        column: str,
        by: Columns = (),
        *,
        values: Mapping[Any, Real] | None = None,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return the mean of a column's values over the records of each group.

        Parameters
        ----------
        column : column name
            Its levels are numbers, or `values` has them.
        by : column name or tuple of column names
            The other columns to keep.
        values : mapping from levels to numbers, optional
            The value of each level, such as the middle of an age band. Records of levels without a
            value are left out.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. Intervals are between the least and the
            greatest value.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> homes = pd.Series([1, 2, 2, 4] * 50, name="rooms")
        >>> noisy = tables.count(homes.to_frame(), {"rooms": [1, 2, 3, 4]}).release(epsilon=1)
        >>> found = noisy.mean("rooms", alpha=0.05)
        >>> bool(2 < found["lower"][0] <= found["estimate"][0] <= found["upper"][0] < 2.5)
        True

        """
        rows = selection.rows_of(self.design._axes, by)
        place, view, given = selection.values_of(self.design._axes, column, values, rows)
        _estimates.refuse_bounds("mean", alpha, self)
        _estimates.refuse_signed("mean of a column", self)
        limits = min(given.values()), max(given.values())
        # Smaller numbers have smaller rounding errors.
        middle, size = (limits[0] + limits[1]) / 2, view.axis.tree.size
        weights, unit, off = selection.weights_of(
            size, {x: each - middle for x, each in given.items()}
        )
        used, _, _ = selection.weights_of(size, dict.fromkeys(given, Fraction(1)))
        asked = self._asked(rows, *({place: view.lifted(each)} for each in (weights, used)))
        found = _estimates.ratios(
            asked, alpha, simultaneous, limits, factor=unit, shift=middle, off=off
        )
        return self._framed(rows, found.columns())

    def quantile(
        self,
        column: str,
        q: Real,
        by: Columns = (),
        *,
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return a quantile of a column in each group: the median for ``q=0.5``.

        This is the least level such that at least the fraction `q` of the group's records are at or
        below it.

        Parameters
        ----------
        column : column name
            A column whose levels are in order, the least first. Records with other values or None
            are left out.
        q : int, float or Fraction
            Above 0 and below 1.
        by : column name or tuple of column names
            The other columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`. None gives estimates alone. Time grows with the
            number of levels.

        Returns
        -------
        data frame
            The columns of `by`, and estimate, lower and upper, which are levels of the column. At
            this confidence, all levels below the interval are too low, and all above it too high
            (``docs/proofs.md``, theorem 16b).

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> ages = pd.DataFrame({"age": [20, 21, 22, 22, 23] * 40})
        >>> noisy = tables.count(ages, {"age": range(18, 30)}).release(epsilon=1)
        >>> noisy.quantile("age", 0.5, alpha=0.05).iloc[0].tolist()
        [22, 22, 22]

        """
        part = float(
            parameters.in_range("q", q, "a number above 0 and below 1", lambda x: 0 < x < 1)
        )
        rows = selection.rows_of(self.design._axes, by)
        place, view = selection.column_of(self.design._axes, "column", column, rows)
        _estimates.refuse_bounds("quantile", alpha, self)
        _estimates.refuse_signed("quantile", self)
        axis = view.axis
        without = (None, *axis.other)
        places = [x for x, level in enumerate(axis.levels) if level not in without]
        levels, leaves = [axis.levels[x] for x in places], axis.tree.leaves[places]
        kept = sorted([*zip(*rows, strict=True), (place, leaves, view)], key=operator.itemgetter(0))
        of_cells = self._asked(Rows(*zip(*kept, strict=True)), {})
        [cells] = of_cells.floats
        cells = np.moveaxis(cells, [each is view for _, _, each in kept].index(True), -1)
        below = np.cumsum(cells, axis=-1)
        # Not negative from the quantile on, and always for the last level.
        excess = (below - part * below[..., -1:])[..., :-1]
        found = {"estimate": _first_of(excess >= 0)}
        if alpha is not None:
            level = of_cells.level(alpha, _estimates.number(rows, simultaneous))
            last = len(leaves) - 1

            def asked(places: range) -> Asked:
                weights = np.zeros((len(places), axis.tree.size))
                below = np.arange(len(leaves)) <= np.array(places)[:, None]
                weights[:, leaves] = np.where(below, 1 - part, -part)
                return self._asked(rows, *({place: each} for each in view.lifted(weights)))

            # No weight is above 1.
            size = float(np.abs(cells).sum())
            room = len(leaves) * (of_cells.rounding + 8 * 2.0**-52 * size)

            def ends_by(reaches: NDArray[np.float64]) -> tuple[_Ints, _Ints]:
                lower = _first_of(excess >= -(reaches + room))
                # From the end, the first that is not surely enough.
                return lower, last - _first_of((excess <= reaches + room)[..., ::-1])

            def decides(reaches: NDArray[np.float64]) -> NDArray[np.bool_]:
                lower, upper = ends_by(reaches)
                k = np.arange(last)
                return np.asarray((k == lower[..., None]) | (k == upper[..., None] - 1))

            found["lower"], found["upper"] = ends_by(
                _estimates.deciding(asked, excess.shape, level, decides)
            )
        coded = {name: Coded(levels, each.reshape(-1)) for name, each in found.items()}
        return self._framed(rows, coded)

    def combine(self, other: Answers) -> Combined:
        """Return an object that answers from two releases of the same counts together.

        It answers questions about the columns of both, from the tables of both, so each estimate
        has the least variance that all noisy counts together allow. Public totals of either hold.
        It can be drawn, and combined with a third release. It has no file of its own: a file states
        one set of noisy counts, and readers of both files combine them in one line,
        ``geomdp.read(one).combine(geomdp.read(other))``.

        Parameters
        ----------
        other : noisy table
            Another release, with independent noise, of the same counts of the same records. Columns
            that both have need the same levels, and a column that only one has must leave out no
            records, as with `other` or where its design states that it is `complete`
            (:meth:`NoisyTable.with_complete` states it afterwards). Tables, margins, names and
            privacy loss may differ. The same release in another file is not accepted, nor is a
            correction of this one, a release that was corrected more or less often, or one that
            bounds contributions differently, since its true counts differ. If individuals have
            limits, both need the same columns, and have to be released from one
            :meth:`Design.count`: each count chooses anew, at random, which records of an individual
            it keeps. All releases of a count state its `count_id`, in files too, and others are
            refused. Records that were cut by :func:`bound_contributions` have to be cut once for
            both, which nothing checks.

        Returns
        -------
        Answers
            Of all tables of both. Its `epsilon` and its `privacy_loss` are the sums of those of
            both, and its `parts` name them.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> people = pd.DataFrame({"city": ["Rome", "Oslo"] * 500})
        >>> table = tables.count(people, {"city": ["Oslo", "Rome"]})
        >>> one, other = table.release(epsilon="0.1"), table.release(epsilon="0.1")
        >>> alone, both = (
        ...     x["upper"][0] - x["lower"][0] for x in (
        ...         one.intervals(alpha=0.05), one.combine(other).intervals(alpha=0.05))
        ... )
        >>> bool(both < alone)
        True

        """
        return Combined(self, other)


@notebook.showable
class Combined(Answers):
    """Answers from the tables of two releases."""

    #: Each of the parts states what it replaces.
    corrects = ()

    def __init__(self, one: Answers, other: Any) -> None:
        _estimates.check_table("other", other)
        counted.check_same_counts("other", one, other)
        _estimates.refuse_bounds("combination", True, one, other)
        self.id, self._one = f"{one.id} {other.id}", one
        self.design = layout.united(one.design, other.design)
        self.count_id = one.count_id
        tables = [x for each in (one, other) for x in _estimates.moved(each, self._axes)]
        self._found = [table for table in tables if table[1]]
        self.mechanisms, self.parts = {}, (*_parts.of(one), *_parts.of(other))
        known: dict[Block, _Ints] = {}
        for block, noises, _, counts in tables:
            if not noises and not np.array_equal(known.setdefault(block, counts), counts):
                raise ValueError("totals of the two releases contradict each other")
        public_totals.check(self.design._axes, known)
        self._known = known

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                return self.__getattribute__(name)  # Which raises the error of the attribute.
            raise AttributeError(
                f"answers of two releases have no {name!r}: noisy counts, and a file that states "
                "them, are those of one release. Save each, and readers combine what they read; "
                ".parts names the releases, and .estimates() has a row for each count"
            )

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of both releases together for one individual."""
        return _parts.loss(self.parts)

    def privacy_loss(self) -> float:
        """Return the privacy loss of both releases together for one individual, rounded up."""
        return decimals.least(self.epsilon)

    @property
    def _axes(self) -> Any:
        return self.design._axes

    @property
    def _revision(self) -> int:
        return self._one._revision

    @property
    def _tables(self) -> list[tuple[Block, Sequence[Noise], int, _Ints]]:
        return self._found

    @property
    def _bounded(self) -> bool:
        return False

    def _made(self, columns: Mapping[str, Any]) -> Any:
        return self._one._made(columns)

    def __repr__(self) -> str:
        return (
            f"<Answers of {notebook.many(len(self.parts), 'release')}, privacy loss "
            f"{parameters.text(self.epsilon)} for one individual in all of them: {self.design!r}>"
        )


def _first_of(found: NDArray[np.bool_]) -> _Ints:
    """Return the place of the first true item along the last axis, or the length."""
    ended = np.ones((*found.shape[:-1], 1), np.bool_)
    return np.asarray(np.concatenate([found, ended], axis=-1).argmax(axis=-1))
