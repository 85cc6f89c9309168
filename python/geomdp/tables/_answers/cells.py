"""Questions about the cells themselves: how many have a property, and how the counts are spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._noise import limits
from geomdp._numerics import inverse
from geomdp.tables._answers import estimates, selection
from geomdp.tables._answers.estimates import Estimates
from geomdp.tables._answers.selection import Columns, Rows
from geomdp.tables._facts import rounding as _rounding

_Floats: TypeAlias = NDArray[np.float64]
#: A number of cells has thresholds up to this, which float64 holds with its neighbours.
_MOST = 2**52


class OfCells(Estimates):
    """Unbiased estimates of functions of the cells, from their own noise alone."""

    def number_of_cells(
        self,
        *,
        at_least: Integer | None = None,
        at_most: Integer | None = None,
        by: Columns = (),
        alpha: Real | None = 0.05,
        simultaneous: bool = False,
    ) -> Any:
        """Return how many cells have a true count within limits, such as 0, 10 or more, 1 to 4.

        The cells are the combinations of levels, or of leaves of trees, without margins. Counting
        noisy counts would be biased: noise leaves few of many empty cells at 0. This estimate has
        the mean of the true number at any true counts (``docs/proofs.md``, section 21). It uses the
        noise of each cell, and neither margins nor public totals.

        Parameters
        ----------
        at_least, at_most : int, optional
            The limits, which include themselves: ``at_most=0`` asks for empty cells. Of a release
            with bounds, a limit is above the lower bound, or below the upper one, since true counts
            beyond a bound cannot be told from it.
        by : column name or tuple of column names
            The columns to keep: of each of their combinations, the cells that it has.
        alpha, simultaneous
            As in :meth:`NoisyTable.intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. The estimate is a float that may be
            negative, because it is unbiased. The interval holds for any true counts, without a
            normal approximation (lemma 26); where many cells are near the limits, a 95% interval is
            1.65 to 1.8 times as wide as one of 1.96 standard errors.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from geomdp import tables
        >>> cases = pd.DataFrame({"village": np.repeat(np.arange(600), 40)})
        >>> noisy = tables.count(cases, {"village": range(1000)}).release(epsilon=1)
        >>> found = noisy.number_of_cells(at_most=0, alpha=0.05)
        >>> bool(200 < found["lower"][0] < found["estimate"][0] < found["upper"][0] < 600)
        True

        """
        low, high = self._thresholds(at_least, at_most)
        rows = selection.rows_of(self.design._axes, by)
        found = self._steps("number_of_cells()", lambda y: (y >= low) & (y <= high))
        columns: dict[str, Any] = {"estimate": self._over(rows, found.estimates)}
        if alpha is not None:
            asked, many = self._asked(rows, {}), estimates.number(rows, simultaneous)
            level = asked.level(alpha, many, independent=asked.flat) / 2
            values, kinds = np.unique(found.estimates, return_inverse=True)
            each = [kinds.reshape(found.here.shape) == kind for kind in range(values.size)]
            tally = np.stack([self._over(rows, x.astype(np.int64)).reshape(-1) for x in each])
            c, n = float(np.max(found.e * (1 + found.e))), tally.sum(axis=0)
            least = inverse.least(tally, values, n, c, level)
            # An estimate for a single count may be 1 + 2 c, for others 1 + c.
            rest = inverse.least(tally, 1 - values, n, 2 * c if low == high else c, level)
            ends = {"lower": np.minimum(least, n - rest), "upper": np.maximum(least, n - rest)}
            columns |= {name: end.reshape(rows.shape) for name, end in ends.items()}
        return self._framed(rows, columns)

    def variance(self, by: Columns = ()) -> Any:
        """Return the variance of the true counts over the cells: their mean squared deviation.

        The variance of the noisy counts has that of the noise on top; this estimate has the mean of
        the true variance (``docs/proofs.md``, section 21). For the variance of the noise, see
        :func:`geomdp.accuracy.variance`.

        Parameters
        ----------
        by : column name or tuple of column names
            The columns to keep: of each of their combinations, the cells that it has.

        Returns
        -------
        data frame
            The columns of `by`, estimate and standard_error. The estimate may be negative, because
            it is unbiased; its divisor is the number of cells. The standard error is that of the
            noise, not of a sample: it is estimated from the noisy counts, to the first order.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> cases = pd.DataFrame({"month": [*range(12)] * 50 + [5] * 600})
        >>> noisy = tables.count(cases, {"month": range(12)}).release(epsilon=1)
        >>> found = noisy.variance()
        >>> bool(24000 < found["estimate"][0] < 31000), bool(50 < found["standard_error"][0] < 500)
        (True, True)

        """
        rows = selection.rows_of(self.design._axes, by)
        counts = self._steps("variance()", lambda y: y)
        # Smaller numbers have smaller rounding errors.
        middle = float(np.rint(counts.here.mean()))
        one = counts._replace(here=counts.here - middle)
        two = self._steps("variance()", lambda y: (y - middle) ** 2)
        n, total, squares, *variances = self._moments(rows, one, two)
        estimate = squares / n - (total**2 - variances[0]) / n**2
        return self._framed(
            rows, {"estimate": estimate, **_error(-2 * total / n**2, 1 / n, *variances)}
        )

    def diversity(
        self, index: Literal["entropy", "simpson", "herfindahl"], by: Columns = ()
    ) -> Any:
        """Return how evenly the records are spread over the cells.

        With the shares p of the cells, these are the entropy ``-sum(p * ln(p))``, in nats, whose
        exponential is the effective number of cells; Simpson's index, the probability that two
        records taken without replacement are in different cells; and Herfindahl's index
        ``sum(p**2)``.

        Parameters
        ----------
        index : {"entropy", "simpson", "herfindahl"}
            Which of them.
        by : column name or tuple of column names
            The columns to keep: of each of their combinations, the spread over the cells that it
            has.

        Returns
        -------
        data frame
            The columns of `by`, estimate and standard_error. An index is a sum over the cells,
            whose estimate is unbiased, divided by the total or its square. So its bias is of the
            order of the squared relative error of the total; the estimate is cut to the values that
            the index may have, and NaN if the noisy total is at most 1. The standard error is as
            for :meth:`variance`.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> sold = pd.DataFrame({"shop": [*"AAABB"] * 1000})
        >>> noisy = tables.count(sold, {"shop": ["A", "B"]}).release(epsilon=1)
        >>> float(noisy.diversity("herfindahl")["estimate"].round(2)[0])
        0.52

        """
        parameters.check_one_of("index", index, ("entropy", "simpson", "herfindahl"))
        estimates.refuse_signed("diversity", self)
        rows = selection.rows_of(self.design._axes, by)
        functions: dict[str, Callable[[_Floats], _Floats]] = {
            "entropy": lambda y: y * np.log(np.maximum(y, 1)),
            "simpson": lambda y: y * (y - 1),
            "herfindahl": np.square,
        }
        one, two = (self._steps("diversity()", f) for f in (lambda y: y, functions[index]))
        n, total, sums, *variances = self._moments(rows, one, two)
        total = np.where(total > 1, total, math.nan)
        # The index follows from a share of the sum, by a divisor whose derivative is the slope.
        pairs, slope = {
            "entropy": (total, np.ones_like(total)),
            "simpson": (total * (total - 1), 2 * total - 1),
            "herfindahl": (total**2, 2 * total),
        }[index]
        share, factor = sums / pairs, -sums * slope / pairs**2
        if index == "entropy":
            found, factor = np.clip(np.log(total) - share, 0, np.log(n)), factor - 1 / total
        elif index == "simpson":
            found = np.clip(1 - share, 0, 1)
        else:
            found = np.clip(share, 1 / n, 1)
        return self._framed(rows, {"estimate": found, **_error(factor, 1 / pairs, *variances)})

    def _thresholds(self, at_least: Any, at_most: Any) -> tuple[float, float]:
        """Return the limits of a number of cells, infinite for None."""
        if at_least is None and at_most is None:
            raise TypeError("give at_least, at_most or both: for empty cells, at_most=0")
        given = {"at_least": at_least, "at_most": at_most}
        signed = self.design.signed
        lower, upper = -_MOST if signed else 0, _MOST
        for mechanism in self.mechanisms.values():
            if mechanism.bounds is not None:
                lower, upper = max(lower, mechanism.bounds[0]), min(upper, mechanism.bounds[1])
        ends = {"at_least": (lower + 1, upper), "at_most": (lower, upper - 1)}
        found = {"at_least": -math.inf, "at_most": math.inf}
        for name, value in given.items():
            if value is not None:
                least, most = ends[name]
                if not least <= (limit := parameters.integer(name, value)) <= most:
                    wanted = f"an int from {least} to {most}"
                    raise ValueError(parameters.refusal(name, limit, wanted))
                found[name] = limit
        if found["at_least"] > found["at_most"]:
            raise ValueError(
                f"at_least = {at_least} is not accepted with at_most = {at_most}: give at_least <= "
                "at_most"
            )
        return found["at_least"], found["at_most"]

    def _steps(self, what: str, function: Callable[[_Floats], Any]) -> inverse.Steps:
        """Return a function at the noisy cells, each with noise of its own."""
        if self.parts:
            raise ValueError(
                f"{what} needs the noise of one release in each count, and these answers are from "
                "several: ask each of them"
            )
        self._refuse_chosen(what)
        if self._rounded is not None:
            raise ValueError(
                f"{what} needs the noisy counts as they were drawn, and these are rounded to "
                f"{_rounding.said(self._rounded)}: ask the release before it was rounded"
            )
        axes = self.design._axes
        e, lower, upper = (np.empty(axes.shape) for _ in range(3))
        for block, mechanism in self.mechanisms.items():
            at = axes.block(block)
            e[at] = inverse.weight(float(mechanism.rate))
            lower[at], upper[at] = limits(mechanism, np.dtype(np.int64))
        leaves = axes.leaves
        ends = lower[leaves], upper[leaves]
        return inverse.steps(function, self.counts[leaves], ends, e[leaves])

    def _over(self, rows: Rows, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the sums over the cells of each row."""
        for place, axis in enumerate(self.design._axes):
            moved = np.moveaxis(cells, place, 0)
            if place in rows.axes:
                number = rows.axes.index(place)
                of, tree = rows.views[number].of, rows.views[number].axis.tree
                nodes = np.zeros((tree.size, *moved.shape[1:]), cells.dtype)
                np.add.at(nodes, axis.tree.leaves if of is None else of, moved)
                moved = tree.sums(nodes)[rows.nodes[number]]
            else:
                moved = moved.sum(axis=0, keepdims=True)
            cells = np.moveaxis(moved, 0, place)
        return cells.reshape(rows.shape)

    def _moments(self, rows: Rows, one: inverse.Steps, two: inverse.Steps) -> list[NDArray[Any]]:
        """Return how many cells a row has, estimates of two sums over them, and what these vary.

        That is the variance of the first sum, the covariance of both and the variance of the other.
        """
        pairs = ((one, one), (one, two), (two, two))
        found = [one.estimates, two.estimates, *(f.covariances(g) for f, g in pairs)]
        return [self._over(rows, each) for each in (np.ones(one.here.shape), *found)]


def _error(one: Any, two: Any, own: Any, both: Any, other: Any) -> dict[str, Any]:
    """Return the standard error of two sums, with a factor each."""
    variance = one**2 * own + 2 * one * two * both + two**2 * other
    return {"standard_error": np.sqrt(np.maximum(variance, 0))}
