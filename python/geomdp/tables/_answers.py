"""Estimates from noisy counts: totals, shares, means, quantiles, rates and changes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook, accuracy
from geomdp._inputs import labels, parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp._numerics import decimals
from geomdp.tables._analysis import ends, products
from geomdp.tables._analysis.ends import Ends
from geomdp.tables._analysis.products import Block, Errors, Fitted, Product, Sum
from geomdp.tables._native import Coded

if TYPE_CHECKING:
    from geomdp.mechanism import GeometricMechanism
    from geomdp.tables._axes import Axis
    from geomdp.tables._layout import Layout

#: The name of one column, or a tuple of names; () for the grand total.
Columns: TypeAlias = Any
_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Names that a frame of answers has besides those of columns.
_NAMES = ("estimate", "percent", "lower", "upper")


#: Sums beyond this may have been moved to a limit of int64.
_MOST_TOTAL = 2**62


class _Rows(NamedTuple):
    """The rows of an answer: some nodes of each column that it keeps."""

    axes: tuple[int, ...] = ()
    nodes: tuple[_Ints, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.nodes))

    @property
    def size(self) -> int:
        return math.prod(self.shape)


_NO_ROWS = _Rows()
#: A selection of all cells.
_ALL: Mapping[int, NDArray[Any]] = {}


class _Found(NamedTuple):
    """Estimates, and the ends of their intervals if there is an alpha."""

    points: NDArray[Any]
    ends: Ends | None

    def columns(self, name: str = "estimate") -> dict[str, NDArray[Any]]:
        """Return them by the names of columns."""
        return {name: self.points, **({} if self.ends is None else self.ends._asdict())}

    def within(self, least: int | float, most: int | float = math.inf) -> _Found:
        """Return intervals from the least to the greatest value, with the same estimates."""
        return _Found(self.points, None if self.ends is None else self.ends.within(least, most))

    def scaled(self, factors: Fraction | NDArray[Any]) -> _Found:
        """Return both times public factors."""
        points = self.points * np.asarray(factors, np.float64)
        return _Found(points, None if self.ends is None else self.ends.scaled(factors))


class _Source(NamedTuple):
    """Sums of the estimates of one release, for its rows."""

    of: Answers
    rows: _Rows
    sums: list[Sum]

    @property
    def nodes(self) -> list[_Ints | None]:
        """The nodes of each axis that the rows keep, or None."""
        found: list[_Ints | None] = [None] * len(self.of.design._axes)
        for place, nodes in zip(self.rows.axes, self.rows.nodes, strict=True):
            found[place] = nodes
        return found

    def errors(self, nodes: Sequence[int]) -> Errors:
        """Return the errors at a node of each axis of the sums, and of the total if it is known."""
        more = [] if self.of._known_total is None else [_sum(self.of.design._axes, ())]
        return self.of._product.joint([*self.sums, *more], nodes)

    def found(self) -> list[tuple[NDArray[Any], NDArray[Any], float]]:
        """Return for each sum its integers, floats to add, and more than the rounding error."""
        found = [self._along(each) for each in self.sums]
        if self.of._known_total is None:
            return found
        base, more, rounding = self._along(_sum(self.of.design._axes, ()))
        missing = (self.of._known_total - base) - more
        added, most = [np.zeros(self.rows.shape) for _ in found], 0.0
        for index, [nodes] in products.kinds([self.of._product], [self.nodes])[1]:
            _, factors = self.errors(nodes).known
            most = max(most, float(np.abs(factors).max()))
            for each, factor in zip(added, factors, strict=True):
                each[index] = factor * missing[index]
        # More than the rounding errors of the factors and of the sums below.
        room = most * (rounding + 2.0**-50 * float(np.abs(missing).max())) if most else 0.0
        return [
            (a, b + c, x + room + 2.0**-52 * float(np.abs(b).max(initial=0)))
            for (a, b, x), c in zip(found, added, strict=True)
        ]

    def _along(self, each: Sum) -> tuple[NDArray[Any], NDArray[Any], float]:
        base, more, rounding = self.of._fitted.along(each)
        return self._shown(base), self._shown(more), rounding

    def _shown(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the rows, from those of all nodes of their axes."""
        # An axis of length 1 has the same value everywhere.
        index = [
            np.zeros(1, np.int64) if nodes is None or size == 1 else nodes
            for nodes, size in zip(self.nodes, values.shape, strict=True)
        ]
        found = values[np.ix_(*index)]
        return np.broadcast_to(
            found.reshape([found.shape[place] for place in self.rows.axes]), self.rows.shape
        )


class _Asked:
    """Sums of estimates for each row, of one release or of two that are independent."""

    def __init__(self, *sources: _Source) -> None:
        self.sources, self.rows = sources, sources[0].rows
        found = [each for source in sources for each in source.found()]
        #: The integers of each sum, and the floats to add to them.
        self.values = [(base, more) for base, more, _ in found]
        #: More than the rounding error of each sum.
        self.rounding = max(rounding for _, _, rounding in found)
        self.known = any(source.of._known_total is not None for source in sources)
        #: Whether sums of different cells are independent.
        self.flat = all(source.of._product.flat for source in sources) and not self.known

    @property
    def floats(self) -> list[_Floats]:
        """The sums."""
        return [np.asarray(base + more, np.float64) for base, more in self.values]

    def kinds(self) -> tuple[int, Iterator[tuple[tuple[Any, ...], Errors]]]:
        """Return how many kinds of rows there are, and the rows and errors of each."""
        many, found = products.kinds(
            [source.of._product for source in self.sources], [x.nodes for x in self.sources]
        )

        def each() -> Iterator[tuple[tuple[Any, ...], Errors]]:
            for rows, nodes in found:
                one, *more = (
                    errors if source.of._known_total is None else errors.known[0]
                    for source, at in zip(self.sources, nodes, strict=True)
                    for errors in [source.errors(at)]
                )
                yield rows, one.beside(more[0]) if more else one

        return many, each()

    def reaches(self, factors: Sequence[float], level: float) -> _Floats:
        """Return the reach of a weighted sum in each row; of very many kinds, in two passes."""
        found, (many, kinds) = np.empty(self.rows.shape), self.kinds()
        product, nodes = self.sources[0].of._product, self.sources[0].nodes
        if len(self.values) == 1 and not self.known and not product.one_by_one(many):
            bounds = product.bounds(self.sources[0].sums[0], nodes, level)
            return abs(factors[0]) * bounds.reshape(self.rows.shape)
        for index, errors in kinds:
            found[index] = errors.reach(tuple(map(float, factors)), level)
        return found

    def level(self, alpha: Real, n: int, *, independent: bool = False) -> float:
        """Return the level of ideal noise of each of n intervals."""
        given = parameters.significance("alpha", alpha)
        lost = sum((source.of._product.lost for source in self.sources), Fraction(0))
        each = ends.level(given, n, independent=independent)
        left = each - (lost if independent else lost / n)
        if left <= 0:
            wanted = f"more than {float(lost):.3g}, the error of the sampled distribution"
            raise ValueError(parameters.refusal("alpha", float(given), wanted))
        return decimals.down(left)


class Answers:
    """Estimates and intervals from noisy counts: the base class of :class:`NoisyTable`.

    Every answer is a frame of the library of the data. Its rows are those of the release for the
    columns in `by`: levels, and released margins and inner nodes of trees; one row without `by`.
    All answers come from the noisy counts, so they cost no more privacy.

    **Estimates.** Without released sums, an estimate is the sum of noisy cells. With margins or
    trees, it is the unbiased estimate of least variance that uses all noisy counts, up to the
    rounding of the weights (weighted least squares; ``docs/proofs.md``, section 17; if some noise
    has a scale below a third, the weights are those at a third). In a tree without `leaves_only`, a
    node may have more than its children, so each noisy count is an estimate by itself. Estimates of
    counts may be negative: they are unbiased, so that errors cancel where counts are added.

    **Intervals.** With `alpha`, the frame has the ends of intervals, each of which misses its true
    value with probability at most `alpha`. With ``simultaneous=True``, that is the probability that
    any interval of the frame misses. Intervals allow for the noise alone, not for the sampling
    error of a survey. True counts are integers and not negative, and so are the ends of intervals
    of counts: an estimate below 0 is outside. Other ends are rounded outwards. If a noisy count is
    at a limit of int64, it may have been moved there, and intervals that depend on it are infinite.

    **Ratios**, and so shares, means and changes in percent, have intervals of all values that a
    test does not reject (theorem 16a). Such an interval says nothing of a group whose true
    denominator is 0. If the denominator cannot be told from 0, the interval has all possible
    values, and its ends may be infinite. An estimate whose noisy denominator is not positive is
    NaN.

    **Releases with bounds** (``release(bounds=...)``) answer by sums of noisy cells, with the
    intervals of :func:`geomdp.accuracy.sum_confidence_interval`. They have intervals of counts,
    totals, differences, rates and shares. Others are refused: errors at a bound have one sign.

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

    if TYPE_CHECKING:
        # Of the class of published counts.
        design: Layout
        mechanisms: dict[Block, GeometricMechanism]
        _values: _Ints
        id: str
        corrects: tuple[str, ...]

        def _made(self, columns: Mapping[str, Any]) -> Any: ...

    #: The true total, where it is public: see :meth:`NoisyTable.with_total`.
    _known_total: int | None = None

    @property
    def counts(self) -> _Ints:
        """The noisy counts: an axis for each column, with its nodes in the order of its tree."""
        return self._values

    def intervals(self, alpha: Real, *, simultaneous: bool = False) -> Any:
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
        return self._total(self._labels, alpha, simultaneous)

    def estimates(self) -> Any:
        """Return the estimate of each true count.

        Returns
        -------
        data frame
            The columns of levels, and estimate. Estimates of sums are the sums of estimates, but
            where a node of a tree may have more than its children.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"]), ["yes", "no"], margins="all")
        >>> yes, no, whole = table.release(epsilon=1).estimates()["estimate"]
        >>> abs(yes + no - whole) < 1e-9
        True

        """
        return self._total(self._labels, None, simultaneous=False)

    def total(
        self, by: Columns = (), *, alpha: Real | None = None, simultaneous: bool = False
    ) -> Any:
        """Return the total of each group, over the other columns.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep; none for the grand total.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

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

    def percent(self, by: Columns, *, alpha: Real | None = None, simultaneous: bool = False) -> Any:
        """Return the percentage of each group in the grand total.

        For a percentage of a part, such as of one area, see :meth:`ratio`.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            The columns of `by`, percent, lower and upper. All are from 0 to 100, since no true
            count is negative; a percentage is NaN if the noisy total is not positive.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes"] * 500, name="sick"), ["yes", "no"])
        >>> found = table.release(epsilon=1).percent("sick", alpha=0.05)
        >>> list(found.columns), found["sick"].tolist()
        (['sick', 'percent', 'lower', 'upper'], ['yes', 'no'])

        """
        axes, rows = self.design._axes, _rows(self.design._axes, by)
        if self._by_cells and alpha is not None:
            found = self._shares_of_cells(rows, alpha, simultaneous)
        else:
            asked = _Asked(_Source(self, rows, [_sum(axes, rows.axes), _sum(axes, ())]))
            limits = Fraction(0), Fraction(100)
            found = _ratios(asked, alpha, simultaneous, limits, factor=Fraction(100))
        return self._framed(rows, found.columns("percent"))

    def ratio(
        self,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        by: Columns = (),
        *,
        alpha: Real | None = None,
        simultaneous: bool = False,
    ) -> Any:
        """Return the ratio of the totals of two selections of cells, which may overlap.

        ``ratio({"sick": "yes"}, {}, by="city")`` is the proportion of the sick in each city.

        Parameters
        ----------
        one, other : mappings of column names to levels
            The cells of each total: those with these levels, or with one of a list of levels. A
            level may be a node of a tree. ``{}`` selects all cells.
        by : column name or tuple of column names
            The columns to keep, none of them in `one` or `other`.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. They are not negative, and at most 1 if
            `other` selects all cells of `one`.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> people = pd.DataFrame({"city": ["Rome", "Oslo"] * 900, "sick": ["no", "yes"] * 900})
        >>> design = tables.Design({"city": ["Oslo", "Rome"], "sick": ["yes", "no"]})
        >>> noisy = design.count(people).release(epsilon=1)
        >>> found = noisy.ratio({"sick": "yes"}, {}, by="city", alpha=0.05)
        >>> found["estimate"].round(1).tolist()
        [1.0, 0.0]

        """
        rows, chosen = self._selected(by, one, other)
        _refuse_bounds("ratio", alpha, self)
        limits = Fraction(0), Fraction(1) if _part_of(self.design._axes, *chosen) else math.inf
        found = _ratios(self._asked(rows, *chosen), alpha, simultaneous, limits)
        return self._framed(rows, found.columns())

    def difference(
        self,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        by: Columns = (),
        *,
        alpha: Real | None = None,
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
            As in :meth:`intervals`. Without `alpha` there are no intervals.

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
            found = _linear(self._asked(rows, *chosen), (1, -1), alpha, simultaneous)
        return self._framed(rows, found.columns())

    def sum(
        self,
        column: str,
        by: Columns = (),
        *,
        values: Mapping[Any, Real] | None = None,
        alpha: Real | None = None,
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
            The value of each level, such as the middle of an age band: numbers that float64 has, or
            multiples of one number by integers up to 2**53, such as decimals with few digits.
            Records of levels without a value are left out.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

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
        rows = _rows(self.design._axes, by)
        place, given = _values(self.design._axes, column, values, rows)
        _refuse_bounds("sum of values", alpha, self)
        size = self.design._axes[place].tree.size
        weights, unit, off = _weights(size, given)
        if off:
            raise ValueError(
                "values are not accepted: give numbers that float64 has, or that are multiples of "
                "one number by integers up to 2**53"
            )
        whole = bool((weights == np.rint(weights)).all())
        asked = self._asked(rows, {place: weights})
        found = _linear(asked, (1,), alpha, simultaneous, whole=whole)
        least = 0 if weights.min() >= 0 else -math.inf
        found = found.within(least, 0 if weights.max() <= 0 else math.inf)
        return self._framed(rows, (found if unit == 1 else found.scaled(unit)).columns())

    def mean(
        self,
        column: str,
        by: Columns = (),
        *,
        values: Mapping[Any, Real] | None = None,
        alpha: Real | None = None,
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
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. All are between the least and the
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
        rows = _rows(self.design._axes, by)
        place, given = _values(self.design._axes, column, values, rows)
        _refuse_bounds("mean", alpha, self)
        limits = min(given.values()), max(given.values())
        # Smaller numbers have smaller rounding errors.
        middle, size = (limits[0] + limits[1]) / 2, self.design._axes[place].tree.size
        weights, unit, off = _weights(size, {x: each - middle for x, each in given.items()})
        used, _, _ = _weights(size, dict.fromkeys(given, Fraction(1)))
        asked = self._asked(rows, {place: weights}, {place: used})
        found = _ratios(asked, alpha, simultaneous, limits, factor=unit, shift=middle, off=off)
        return self._framed(rows, found.columns())

    def quantile(
        self,
        column: str,
        q: Real,
        by: Columns = (),
        *,
        alpha: Real | None = None,
        simultaneous: bool = False,
    ) -> Any:
        """Return a quantile of a column in each group: the median for ``q=0.5``.

        That is the least level with at least a part `q` of the group's records at or below it.

        Parameters
        ----------
        column : column name
            Its levels are in order, the least first. Records at its level for other values, or at
            None, are left out.
        q : int, float or Fraction
            Above 0 and below 1.
        by : column name or tuple of column names
            The other columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals. Time grows with the
            number of levels.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper, which are levels of the column. The
            interval goes from the first level that is not surely too low to the last that is not
            surely too high (``docs/proofs.md``, theorem 16b).

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
        rows = _rows(self.design._axes, by)
        place = _place(self.design._axes, "column", column, rows)
        _refuse_bounds("quantile", alpha, self)
        axis = self.design._axes[place]
        without = (None, *axis.other)
        places = [x for x, level in enumerate(axis.levels) if level not in without]
        levels, leaves = [axis.levels[x] for x in places], axis.tree.leaves[places]
        kept = sorted(
            [*zip(rows.axes, rows.nodes, strict=True), (place, leaves)], key=operator.itemgetter(0)
        )
        [cells] = self._asked(_Rows(*zip(*kept, strict=True)), {}).floats
        cells = np.moveaxis(cells, [x for x, _ in kept].index(place), -1)
        below = np.cumsum(cells, axis=-1)
        # Not negative from the quantile on, and always for the last level.
        excess = (below - part * below[..., -1:])[..., :-1]
        found = {"estimate": _first_of(excess >= 0)}
        if alpha is not None:
            n, reaches = _number(rows, simultaneous), np.empty(excess.shape)
            for k in range(len(leaves) - 1):
                weights = np.zeros(axis.tree.size)
                weights[leaves] = np.where(np.arange(len(leaves)) <= k, 1 - part, -part)
                asked = self._asked(rows, {place: weights})
                reaches[..., k] = asked.reaches((1,), asked.level(alpha, n)) + asked.rounding
            reaches += 8 * len(leaves) * 2.0**-52 * float(np.abs(cells).sum())
            found["lower"] = _first_of(excess >= -reaches)
            # From the end, the first that is not surely enough.
            found["upper"] = len(leaves) - 1 - _first_of((excess <= reaches)[..., ::-1])
        coded = {name: Coded(levels, each.reshape(-1)) for name, each in found.items()}
        return self._framed(rows, coded)

    def rate(
        self,
        population: Any,
        per: Real = 100_000,
        by: Columns = (),
        *,
        alpha: Real | None = None,
        simultaneous: bool = False,
    ) -> Any:
        """Return the rate of each group: its total per unit of a public population.

        For a denominator from the same release, see :meth:`ratio`.

        Parameters
        ----------
        population : number, mapping, or column
            The public size of each group, above 0: one number for the grand total; a mapping, or a
            column of pandas with an index, from levels of the column in `by`, or tuples of levels
            in the order of the frame; or numbers in the order of the rows. A mapping may leave out
            margins and inner nodes of trees, which are then sums.
        per : number or str
            The unit: 100,000 for cases per 100,000.
        by : column name or tuple of column names
            The columns to keep.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

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
        unit = parameters.positive_fraction("per", parameters.exact("per", per))
        return self._total(
            by,
            alpha,
            simultaneous,
            lambda rows: unit / _population(self.design._axes, population, rows),
        )

    def change_since(
        self,
        earlier: Answers,
        by: Columns = (),
        *,
        percent: bool = False,
        alpha: Real | None = None,
        simultaneous: bool = False,
    ) -> Any:
        """Return the change of each group's total since an earlier release.

        The noise of the releases is independent. An individual may be in both: the privacy losses
        add up as before.

        Parameters
        ----------
        earlier : noisy table
            Another release with the same levels of the columns in `by`. Its other columns may
            differ. Tables of the steps of one stream may share noise, so they are not accepted:
            compare steps by :meth:`difference`.
        by : column name or tuple of column names
            The columns to keep. Margins and inner nodes of trees are shown if both releases have
            them.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.
        percent : bool
            Whether to return the change in percent of the earlier total.

        Returns
        -------
        data frame
            The columns of `by`, estimate, or percent, lower and upper. A percentage is at least
            -100; it is NaN if the earlier noisy total is not positive, and its upper end is
            infinite if that total cannot be told from 0.

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
        _refuse_bounds("change", alpha, self, earlier)
        parameters.check_bool("percent", percent)
        if percent:
            limits, whole = (Fraction(-100), math.inf), Fraction(100)
            found = _ratios(asked, alpha, simultaneous, limits, factor=whole, shift=-whole)
        else:
            found = _linear(asked, (1, -1), alpha, simultaneous)
        return self._framed(asked.rows, found.columns("percent" if percent else "estimate"))

    def combine(
        self,
        other: Answers,
        by: Columns | None = None,
        *,
        alpha: Real | None = None,
        simultaneous: bool = False,
    ) -> Any:
        """Return one estimate of each count, from two releases of the same counts.

        It weights each estimate by the inverse of its variance, which is public (for noise of a
        scale below a third, as in :class:`Answers`).

        Parameters
        ----------
        other : noisy table
            Another release, with independent noise, of the same table: it has the same columns and
            levels. It may have other margins, trees and privacy losses. The same release in another
            file is not accepted, and neither is a correction of this one, whose true counts differ.
        by : column name or tuple of column names, optional
            The columns to keep; by default all. Margins and inner nodes of trees are shown if both
            releases have them.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> people = pd.DataFrame({"city": ["Rome", "Oslo"] * 500})
        >>> table = tables.count(people, {"city": ["Oslo", "Rome"]})
        >>> one, other = table.release(epsilon="0.1"), table.release(epsilon="0.1")
        >>> alone, both = (
        ...     x["upper"][0] - x["lower"][0] for x in (
        ...         one.intervals(alpha=0.05), one.combine(other, alpha=0.05))
        ... )
        >>> bool(both < alone)
        True

        """
        asked = self._beside(other, by)
        _refuse_bounds("combination", alpha, self, other)

        def weigh(errors: Errors) -> tuple[float, float]:
            (one, _), (_, two) = errors.covariance.tolist()
            part = two / (one + two) if one + two > 0 else 0.5
            return part, 1 - part

        found = _linear(asked, weigh, alpha, simultaneous)
        return self._framed(asked.rows, found.within(0).columns())

    def plus(
        self,
        other: Answers,
        by: Columns | None = None,
        *,
        alpha: Real | None = None,
        simultaneous: bool = False,
    ) -> Any:
        """Return the sum of each count and of its count in a table about other people.

        The noise of both adds up, and the intervals are those of the sum of both noises. An
        individual with records in both tables is counted in both.

        Like every answer, the sum costs no privacy. Anybody with records in one of the tables
        alone, whatever the data are, has the privacy loss of that one, so if nobody can be in both,
        both together cost the greater of the two losses. Anybody who can be in both, or whose
        records can move from one to the other, has the sum of the losses. No file tells who can.

        Parameters
        ----------
        other : noisy table
            A release with the same columns and levels. It may have other margins, trees and privacy
            losses. The same release in another file is not accepted, and neither is a correction of
            this one, which is about the same people.
        by : column name or tuple of column names, optional
            The columns to keep; by default all. Margins and inner nodes of trees are shown if both
            releases have them.
        alpha, simultaneous
            As in :meth:`intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> design = tables.Design({"ward": ["A", "B"]})
        >>> north, south = (
        ...     design.count(pd.DataFrame({"ward": ["A"] * a + ["B"] * b})).release(epsilon=0.5)
        ...     for a, b in ((312, 90), (128, 45))
        ... )
        >>> found = north.plus(south, alpha=0.05)
        >>> (found["upper"] - found["estimate"]).tolist()
        [8, 8]

        """
        asked = self._beside(other, by)
        _refuse_bounds("sum of tables", alpha, self, other)
        found = _linear(asked, (1, 1), alpha, simultaneous)
        return self._framed(asked.rows, found.within(0).columns())

    def with_total(self, total: Integer) -> Answers:
        """Return the answers for counts whose true total is public.

        Every estimate then has the least variance that the noisy counts and the total allow, and
        intervals are narrower (``docs/proofs.md``, lemma 19b): with two cells, each variance is
        halved. Shares have a denominator without noise.

        Parameters
        ----------
        total : int
            The number of records in the table, after contributions were bounded. Take it from a
            public source, not from the data: epsilon does not cover it.

        Returns
        -------
        Answers
            It has the methods of this object. Save the release itself: a reader can do the same.

        Raises
        ------
        ValueError
            If `total` is negative or above 2**62, or the release has bounds.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> known = table.release(epsilon=0.5).with_total(3)
        >>> yes, no = known.estimates()["estimate"]
        >>> abs(yes + no - 3) < 1e-9
        True
        >>> known.total(alpha=0.05).iloc[0].tolist()
        [3.0, 3.0, 3.0]

        """
        known = parameters.integer("total", total)
        if not 0 <= known <= _MOST_TOTAL:
            raise ValueError(parameters.refusal("total", known, "an int from 0 to 2**62"))
        _refuse_bounds("known total", True, self)
        return _WithTotal(self, known)

    @cached_property
    def _product(self) -> Product:
        """Everything public about the noise, for estimates and their errors."""
        return Product(
            [axis.tree for axis in self.design._axes],
            {block: each.rate for block, each in self.mechanisms.items()},
            {
                block: Fraction(each.certificate(np.int64).total_variation)
                for block, each in self.mechanisms.items()
            },
        )

    @cached_property
    def _fitted(self) -> Fitted:
        """The estimates of all nodes; with bounds, the sums of noisy cells."""
        return self._product.fit(self.counts, leaves_alone=self._bounded)

    @property
    def _bounded(self) -> bool:
        """Whether the release has bounds."""
        return any(each.bounds is not None for each in self.mechanisms.values())

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(axis.label for axis in self.design._axes)

    @property
    def _by_cells(self) -> bool:
        """Whether intervals come from single cells, which may be at a limit."""
        if self._known_total is not None:
            return False
        lists = not any(axis.tree.depth for axis in self.design._axes)
        return self._bounded or (lists and math.isinf(self._fitted.rounding))

    def _both(self, name: str, other: Any, by: Columns) -> _Asked:
        """Return the total of each group of two releases."""
        if not isinstance(other, Answers):
            raise TypeError(parameters.foreign(name, other, "a noisy table"))
        if other.id == self.id:
            raise ValueError(
                f"{name} is this release, or of the same stream, so that they share noise: give "
                "another release"
            )
        rows = _rows(self.design._axes, by)
        kept = [self._labels[place] for place in rows.axes]
        places = tuple(_place(other.design._axes, "by", label) for label in kept)
        if sorted(places) != list(places):
            raise ValueError(f"{name} has the columns of by in another order: give the same")
        pairs = [
            _common(name, self.design._axes[one], nodes, other.design._axes[two])
            for one, nodes, two in zip(rows.axes, rows.nodes, places, strict=True)
        ]
        return _Asked(
            *(
                _Source(of, _Rows(axes, nodes), [_sum(of.design._axes, axes)])
                for of, axes, nodes in (
                    (self, rows.axes, tuple(one for one, _ in pairs)),
                    (other, places, tuple(two for _, two in pairs)),
                )
            )
        )

    def _beside(self, other: Any, by: Columns | None) -> _Asked:
        """Return the totals of two releases with the same cells, neither of which replaces one."""
        asked = self._both("other", other, self._labels if by is None else by)
        pairs = zip_longest(self.design._axes, other.design._axes)
        if any(
            one is None or two is None or (one.label, set(one.cells)) != (two.label, set(two.cells))
            for one, two in pairs
        ):
            raise ValueError("other has other columns or levels: give a release with the same")
        if self.id in other.corrects or other.id in self.corrects:
            raise ValueError("one of the releases corrects the other: use the corrected one alone")
        return asked

    def _selected(
        self, by: Columns, one: Any, other: Any
    ) -> tuple[_Rows, list[dict[int, NDArray[Any]]]]:
        """Return the rows, and for each selection the weights of the nodes of its columns."""
        rows = _rows(self.design._axes, by)
        pairs = (("one", one), ("other", other))
        return rows, [_chosen(self.design._axes, name, x, rows) for name, x in pairs]

    def _asked(self, rows: _Rows, *chosen: Mapping[int, NDArray[Any]]) -> _Asked:
        axes = self.design._axes
        return _Asked(_Source(self, rows, [_sum(axes, rows.axes, each) for each in chosen]))

    def _total(
        self,
        by: Columns,
        alpha: Real | None,
        simultaneous: bool,
        factors: Callable[[_Rows], NDArray[Any]] | None = None,
    ) -> Any:
        rows, found = self._totals(by, alpha, simultaneous, factors)
        return self._framed(rows, found)

    def _totals(
        self,
        by: Columns,
        alpha: Real | None,
        simultaneous: bool,
        factors: Callable[[_Rows], NDArray[Any]] | None = None,
    ) -> tuple[_Rows, dict[str, NDArray[Any]]]:
        rows = _rows(self.design._axes, by)
        scale = None if factors is None else factors(rows)
        if self._by_cells and alpha is not None:
            found = self._of_cells(rows, [{}], alpha, simultaneous)
        else:
            found = _linear(self._asked(rows, {}), (1,), alpha, simultaneous)
        found = found.within(0, math.inf if self._known_total is None else self._known_total)
        return rows, (found if scale is None else found.scaled(scale)).columns()

    def _of_cells(
        self,
        rows: _Rows,
        chosen: Sequence[Mapping[int, NDArray[Any]]],
        alpha: Real,
        simultaneous: bool,
    ) -> _Found:
        """Return totals, or differences of two, with intervals by the noisy cells alone."""
        given, n = parameters.significance("alpha", alpha), _number(rows, simultaneous)
        # Rows of margins and trees share cells.
        level = ends.level(given, n, independent=self._product.flat and len(chosen) == 1)
        mechanism, cells = self._cells()
        found = [
            accuracy.sum_confidence_interval(mechanism, cells[w != 0], level, weights=w[w != 0])
            for w in self._weights(rows, chosen)
        ]
        signs = (1, -1)[: len(chosen)]
        points = _linear(self._asked(rows, *chosen), signs, None, simultaneous).points
        return _Found(points, Ends.of((x for x, _ in found), (x for _, x in found), rows.shape))

    def _shares_of_cells(self, rows: _Rows, alpha: Real, simultaneous: bool) -> _Found:
        """Return the percentages that intervals for each group and for all others allow."""
        given = parameters.significance("alpha", alpha)
        half = ends.level(ends.level(given, _number(rows, simultaneous)), 2, independent=True)
        mechanism, cells = self._cells()
        points, lower, upper = [], [], []
        for w in self._weights(rows, [{}]):
            part, rest = (cells[x] for x in (w != 0, w == 0))
            (a, b), (c, d) = (
                accuracy.sum_confidence_interval(mechanism, x, half) for x in (part, rest)
            )
            low, high = (max(a, 0), max(d, 0)), (max(b, 0), max(c, 0))
            whole = sum(map(int, cells.flat))
            share = 100 * sum(map(int, part)) / whole if whole > 0 else math.nan
            points.append(min(max(share, 0.0), 100.0) if whole > 0 else math.nan)
            lower.append(Fraction(100 * low[0], sum(low)) if any(low) else 0)
            upper.append(Fraction(100 * high[0], sum(high)) if any(high) else 100)
        return _Found(np.reshape(points, rows.shape), Ends.of(lower, upper, rows.shape))

    def _cells(self) -> tuple[GeometricMechanism, _Ints]:
        """Return the noisy cells, and their mechanism."""
        axes = self.design._axes
        for axis in axes:
            if axis.tree.starts[axis.tree.depth] != axis.tree.cells[0]:
                raise ValueError(
                    f"a release with bounds has no intervals by the tree of {axis.label!r}, whose "
                    "cells differ in depth: release without bounds"
                )
        deepest = tuple(axis.tree.depth for axis in axes)
        return self.mechanisms[deepest], self.counts[np.ix_(*(x.tree.leaves for x in axes))]

    def _weights(
        self, rows: _Rows, chosen: Sequence[Mapping[int, NDArray[Any]]]
    ) -> Iterator[_Ints]:
        """Yield for each row the weight of each cell, with the sign - in a second selection."""
        axes = self.design._axes
        for at in np.ndindex(rows.shape):
            found = np.zeros([len(axis.levels) for axis in axes], np.int64)
            for sign, each in zip((1, -1), chosen, strict=False):
                own = {
                    place: _of_cells(x, each.get(place, _roots(x))) for place, x in enumerate(axes)
                }
                for place, nodes, row in zip(rows.axes, rows.nodes, at, strict=True):
                    one = np.zeros(axes[place].tree.size, np.int64)
                    one[nodes[row]] = 1
                    own[place] = _of_cells(axes[place], one)
                found += sign * math.prod(np.ix_(*own.values()))
            yield found

    def _framed(self, rows: _Rows, found: Mapping[str, Any]) -> Any:
        columns: dict[str, Any] = {}
        index = np.indices(rows.shape, sparse=True)
        for place, nodes, at in zip(rows.axes, rows.nodes, index, strict=True):
            axis = self.design._axes[place]
            places = np.broadcast_to(nodes[at], rows.shape).reshape(-1)
            columns[axis.label] = Coded(axis.nodes, places)
        shaped = {
            name: each if isinstance(each, Coded) else np.ascontiguousarray(each).reshape(-1)
            for name, each in found.items()
        }
        return self._made(columns | shaped)


@_notebook.showable
class _WithTotal(Answers):
    """Answers from noisy counts whose true total is public."""

    def __init__(self, noisy: Answers, total: int) -> None:
        self.design, self.mechanisms, self._values = noisy.design, noisy.mechanisms, noisy.counts
        self.id, self.corrects = noisy.id, noisy.corrects
        self._known_total, self._noisy = total, noisy

    def _made(self, columns: Mapping[str, Any]) -> Any:
        return self._noisy._made(columns)

    def __repr__(self) -> str:
        return f"<Answers of {_notebook.many(self.design.cells, 'count')} and a known total>"


def _linear(
    asked: _Asked,
    factors: Sequence[int] | Callable[[Errors], Sequence[float]],
    alpha: Real | None,
    simultaneous: bool,
    *,
    whole: bool = True,
) -> _Found:
    """Return weighted sums of sums of estimates; the weights are integers, or follow from errors.

    The true sums may be known to be whole numbers.
    """
    rows, level = asked.rows, 0.0
    if alpha is not None:
        independent = asked.flat and len(asked.values) == 1
        level = asked.level(alpha, _number(rows, simultaneous), independent=independent)
    if callable(factors):
        base, more, reaches = (np.zeros(rows.shape) for _ in range(3))
        values = asked.floats
        for index, errors in asked.kinds()[1]:
            weights = factors(errors)
            more[index] = sum(w * x[index] for w, x in zip(weights, values, strict=True))
            if alpha is not None:
                reaches[index] = errors.reach(tuple(weights), level)
        size = float(max(np.abs(x).max(initial=0) for x in values))
        rounding = 2 * asked.rounding + 2.0**-50 * size
    else:
        parts = zip(*asked.values, strict=True)
        base, more = (np.asarray(sum(map(operator.mul, factors, x))) for x in parts)
        rounding = sum(map(abs, factors)) * asked.rounding
        reaches = asked.reaches(factors, level) if alpha is not None else more
    exact = base.dtype.kind == "i" and asked.flat and math.isfinite(rounding)
    points = base if exact else base + more
    if alpha is None:
        return _Found(points, None)
    return _Found(points, Ends.around(base, more, reaches, rounding, whole=whole))


def _ratios(
    asked: _Asked,
    alpha: Real | None,
    simultaneous: bool,
    limits: tuple[Fraction, Fraction | float],
    *,
    factor: Fraction = Fraction(1),
    shift: Fraction = Fraction(0),
    off: Fraction = Fraction(0),
) -> _Found:
    """Return ratios of two sums of estimates, times `factor`, moved by `shift`, within limits.

    The true values may differ from those of the ratios by up to `off`.
    """
    rows, (above, below) = asked.rows, asked.floats
    points = np.full(rows.shape, math.nan)
    np.divide(above, below, out=points, where=below > 0)
    points = points * float(factor) + float(shift)
    points = np.clip(points, float(limits[0]), float(limits[1]))
    if alpha is None:
        return _Found(points, None)
    level = asked.level(alpha, _number(rows, simultaneous))
    found = Ends(np.empty(rows.shape), np.empty(rows.shape))
    for index, errors in asked.kinds()[1]:
        pair, shape = (above[index].reshape(-1), below[index].reshape(-1)), above[index].shape
        kind = products.ratio_ends(pair, errors, level, asked.rounding)
        for whole, each in zip(found, kind, strict=True):
            whole[index] = each.reshape(shape)
    return _Found(points, found.scaled(factor, shift=shift, off=off).within(*limits))


def _first_of(found: NDArray[np.bool_]) -> _Ints:
    """Return the place of the first true item along the last axis, or the length."""
    ended = np.ones((*found.shape[:-1], 1), np.bool_)
    return np.asarray(np.concatenate([found, ended], axis=-1).argmax(axis=-1))


def _number(rows: _Rows, simultaneous: bool) -> int:
    """Return how many intervals have the level together."""
    parameters.check_bool("simultaneous", simultaneous)
    return rows.size if simultaneous else 1


def _place(axes: Sequence[Axis], name: str, label: Any, rows: _Rows = _NO_ROWS) -> int:
    """Return the place of a column that rows do not keep."""
    known = [axis.label for axis in axes]
    if label not in known:
        raise KeyError(f"{name} = {label!r} is no column of the table: give one of {known}")
    place = known.index(label)
    if place in rows.axes:
        raise ValueError(f"{name} has {label!r}, which is in by: give it once")
    return place


def _rows(axes: Sequence[Axis], by: Columns) -> _Rows:
    """Return the rows of a frame that keeps these columns."""
    asked = by if isinstance(by, tuple | list) else (by,)
    kept = tuple(sorted({_place(axes, "by", label) for label in asked}))
    for place in kept:
        if axes[place].label in _NAMES:
            raise ValueError(
                f"by has {axes[place].label!r}, the name of a column of answers: give others"
            )
    return _Rows(kept, tuple(axes[place].shown for place in kept))


def _sum(
    axes: Sequence[Axis], kept: Sequence[int], chosen: Mapping[int, NDArray[Any]] = _ALL
) -> Sum:
    """Return a sum of estimates: over all nodes of the columns not kept, or with weights."""
    return [
        chosen.get(place, None if place in kept else _roots(axis))
        for place, axis in enumerate(axes)
    ]


def _roots(axis: Axis) -> _Ints:
    return np.where(axis.tree.parents < 0, 1, 0)


def _chosen(axes: Sequence[Axis], name: str, levels: Any, rows: _Rows) -> dict[int, NDArray[Any]]:
    """Return for each column of a selection 1 for its nodes, but for those below others."""
    if not isinstance(levels, Mapping):
        raise TypeError(parameters.foreign(name, levels, "a mapping of column names to levels"))
    found: dict[int, NDArray[Any]] = {}
    for label, given in levels.items():
        place = _place(axes, name, label, rows)
        tree, nodes = axes[place].tree, axes[place].nodes
        known = {each: node for node, each in enumerate(nodes)}
        chosen = np.zeros(tree.size, np.int64)
        for each in given if isinstance(given, list | set) else [given]:
            if each not in known:
                raise ValueError(
                    f"{name} has {parameters.shown(each)} in {label!r}: "
                    f"give one of {parameters.shown(nodes)}"
                )
            chosen[known[each]] = 1
        inside = np.zeros_like(chosen)
        for depth in range(tree.depth):
            below = tree.below(depth)
            above = tree.parents[below]
            inside[below] = np.maximum(inside[above], chosen[above])
        found[place] = chosen * (1 - inside)
    return found


def _of_cells(axis: Axis, weights: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of cells that stand for those of nodes."""
    found = weights.copy()
    for depth in range(axis.tree.depth):
        below = axis.tree.below(depth)
        found[below] += found[axis.tree.parents[below]]
    return np.asarray(found[axis.tree.cells])


def _part_of(
    axes: Sequence[Axis], one: Mapping[int, NDArray[Any]], other: Mapping[int, NDArray[Any]]
) -> bool:
    """Return whether a selection is a part of another."""
    return all(
        bool((_of_cells(axes[x], one.get(x, _roots(axes[x]))) <= _of_cells(axes[x], each)).all())
        for x, each in other.items()
    )


def _values(
    axes: Sequence[Axis], column: Any, values: Any, rows: _Rows
) -> tuple[int, dict[int, Fraction]]:
    """Return the place of a column, and the values of the leaves that have one."""
    place = _place(axes, "column", column, rows)
    axis = axes[place]
    if values is None:
        # The label of other records is not their value, even if it is a number.
        values = dict(zip(axis.levels, axis.levels, strict=True)) | dict.fromkeys(axis.other)
    if not isinstance(values, Mapping):
        raise TypeError(parameters.foreign("values", values, "a mapping from levels to numbers"))
    leaves = dict(zip(axis.levels, axis.tree.leaves.tolist(), strict=True))
    found: dict[int, Fraction] = {}
    for level, value in values.items():
        if level not in leaves:
            raise ValueError(
                f"values has {parameters.shown(level)}, which is no level of {column!r}"
            )
        try:
            found[leaves[level]] = Fraction(parameters.finite("values", value))
        except (TypeError, ValueError):
            if value is None and axis.other and level == axis.levels[-1]:
                raise ValueError(
                    f"other records of {column!r}, in {parameters.shown(level)}, have no number as "
                    "their value: give values, a mapping from levels to numbers; records of levels "
                    "that it leaves out do not count"
                ) from None
            raise ValueError(
                f"level {parameters.shown(level)} of {column!r} has no number as its value: give "
                "values, a mapping from levels to numbers"
            ) from None
    if not found:
        raise ValueError("values are empty: give the value of at least one level")
    return place, found


def _weights(size: int, values: Mapping[int, Fraction]) -> tuple[_Floats, Fraction, Fraction]:
    """Return the values of some nodes as weights, their unit, and the most that one is off.

    They are integers if float64 has these.
    """
    unit = Fraction(1, math.lcm(*(each.denominator for each in values.values())))
    if max(abs(each / unit) for each in values.values()) > ends.EXACT:
        unit = Fraction(1)
    found = np.zeros(size)
    for node, each in values.items():
        found[node] = float(each / unit)
    off = max(abs(Fraction(found[node]) * unit - each) for node, each in values.items())
    return found, unit, off


def _population(axes: Sequence[Axis], population: Any, rows: _Rows) -> NDArray[Any]:
    """Return the public size of each row's group, as a Fraction."""
    if not rows.axes:
        return np.array(parameters.positive_fraction("population", population), object)
    [bare], named = labels.detach(population=population)
    if isinstance(bare, str) or not isinstance(bare, Iterable):
        wanted = "a mapping from groups to numbers"
        raise TypeError(parameters.foreign("population", population, wanted))
    numbers = parameters.each("population", bare, parameters.positive_fraction)
    if named.keys is None:
        if len(numbers) != rows.size:
            raise ValueError(
                f"population has {_notebook.many(len(numbers), 'number')}: give {rows.size}, one "
                "for each row"
            )
        return np.array(numbers, object).reshape(rows.shape)
    sizes, kept = dict(zip(named.keys, numbers, strict=True)), [axes[place] for place in rows.axes]
    whole = np.full([axis.tree.size for axis in kept], math.nan, object)
    for at in np.ndindex(whole.shape):
        key = tuple(axis.nodes[node] for axis, node in zip(kept, at, strict=True))
        whole[at] = sizes.get(key if len(key) > 1 else key[0], math.nan)
    added = whole
    for place, axis in enumerate(kept):
        leaves = np.moveaxis(added, place, 0).copy()
        leaves[axis.tree.children > 0] = 0
        added = np.moveaxis(axis.tree.sums(leaves), 0, place)
    # Only NaN is not itself.
    found = np.where(whole == whole, whole, added)[np.ix_(*rows.nodes)]  # noqa: PLR0124
    for at in np.argwhere(found != found)[:1].tolist():  # noqa: PLR0124
        key = tuple(
            axis.nodes[nodes[x]] for axis, nodes, x in zip(kept, rows.nodes, at, strict=True)
        )
        raise ValueError(
            f"population has no number for {parameters.shown(key if len(key) > 1 else key[0])}: "
            "give one for each group"
        )
    return found


def _common(name: str, one: Axis, nodes: _Ints, two: Axis) -> tuple[_Ints, _Ints]:
    """Return those of the nodes of a column that another release has too, and its nodes."""
    facts, others = ((x.nodes, x.cells, x.tree.parents.tolist()) for x in (one, two))
    if facts == others:
        return nodes, nodes
    below, theirs = map(_levels_below, (one, two))
    if set(one.cells) != set(two.cells) or any(
        theirs.get(label, levels) != levels for label, levels in below.items()
    ):
        raise ValueError(
            f"{name} has other levels of {one.label!r}, which is in by: give a release with the "
            "same"
        )
    places = {label: node for node, label in enumerate(two.nodes)}
    own = [node for node in nodes.tolist() if one.nodes[node] in places]
    return np.array(own), np.array([places[one.nodes[node]] for node in own])


def _levels_below(axis: Axis) -> dict[Any, set[Any]]:
    """Return the levels below each node, or of it."""
    found = {label: set[Any]() for label in axis.nodes}
    for level, cell in zip(axis.cells, axis.tree.cells.tolist(), strict=True):
        node = cell
        while node >= 0:
            found[axis.nodes[node]].add(level)
            node = int(axis.tree.parents[node])
    return found


def _refuse_bounds(what: str, alpha: Any, *tables: Answers) -> None:
    if alpha is not None and any(table._bounded for table in tables):
        raise ValueError(
            f"a release with bounds has no interval for a {what}, since errors at a bound have one "
            "sign: release without bounds"
        )
