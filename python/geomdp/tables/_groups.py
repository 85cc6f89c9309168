"""Groups chosen by noisy counts: the cells of a design that reached a threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.tables import _page, _pictures
from geomdp.tables._analysis import ends, thresholds
from geomdp.tables._native import Coded, Library
from geomdp.tables._released import Released

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from geomdp._identity import Identity
    from geomdp.mechanism import GeometricMechanism
    from geomdp.tables._analysis.products import Block
    from geomdp.tables._layout import Layout

_Ints: TypeAlias = NDArray[np.int64]
_ENDS = ("lower", "upper")
#: The most cells of a design that are gone through; beyond, it takes hours.
MOST_CELLS = 10**12


class NoisyGroups(Released):
    """The groups of a release whose noisy counts reached a threshold.

    ``Table.release(at_least=...)`` makes one, and :func:`geomdp.read` reads one from a file. All
    cells of the design got noise, so the choice of those that appear costs no privacy, and empty
    cells may be among them: :meth:`Design.spurious` gives their expected number. It holds no exact
    count.

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

    __slots__ = ("_at_least", "_cells")

    def __init__(
        self,
        design: Layout,
        mechanisms: Mapping[Block, GeometricMechanism],
        label: str | None,
        library: Library | None,
        counts: NDArray[np.int64],
        *,
        cells: NDArray[np.int64],
        at_least: int,
        identity: Identity,
    ) -> None:
        super().__init__(design, mechanisms, label, library, counts, identity=identity)
        self._cells, self._at_least = cells, at_least

    @property
    def counts(self) -> NDArray[np.int64]:
        """The noisy counts of the groups, in the order of the frame."""
        return self._values

    @property
    def at_least(self) -> int:
        """The threshold: noisy counts below it are left out."""
        return self._at_least

    @property
    def _threshold(self) -> int:
        return self._at_least

    def intervals(self, alpha: Real, *, simultaneous: bool = False) -> Any:
        """Return the frame with an interval for each true count, in columns lower and upper.

        A group is here because its noise was not too low, so its noisy count is too high on
        average. These intervals allow for that: given that a group appears, its interval misses
        with probability at most `alpha`. For groups that you then pick or sort by their counts,
        use `simultaneous`, as :meth:`largest` does: of many groups, the greatest are those
        whose noise was greatest. A lower end of 0 says that the group may be empty. The noise is
        taken as discrete Laplace (``docs/proofs.md``, section 18).

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
        if simultaneous and counts.size:
            # Given which groups are here, their noises are independent.
            level = ends.level(level, counts.size, independent=True)
        [mechanism] = self.mechanisms.values()
        if mechanism.rate == math.inf:
            return counts, counts
        return thresholds.interval(float(mechanism.rate), counts, self._at_least, level)

    def largest(self, k: Integer, *, alpha: Real | None = None) -> Any:
        """Return the k groups with the greatest noisy counts, or all if there are fewer.

        It costs no privacy, whatever k is. Equal counts are in the order of the design.

        Parameters
        ----------
        k : int
            At least 1.
        alpha : int, float or Fraction, optional
            The probability that any of the intervals misses, in columns lower and upper. They are
            those of :meth:`intervals` for all groups at once, of which these are a choice.
            Without `alpha` there are none.

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
        """Draw the noisy counts as bars, with their :meth:`intervals`.

        Of more than 60 groups, only the largest are drawn, with intervals that hold for all groups
        at once, and the legend says so.

        Parameters
        ----------
        alpha
            The probability that an interval misses; where all hold at once, that any does.
        ax
            As in :func:`geomdp.tables.plot.pmf`.

        Returns
        -------
        Axes
            Counts against groups.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no"] * 500, name="sick"), ["no", "yes"])
        >>> table.release(epsilon=1, at_least=25).plot().get_ylabel()
        'sick'

        """
        if not self.counts.size:
            raise ValueError("a release without groups has no picture")

        def ends(together: bool) -> NDArray[Any]:
            return np.stack([self.counts, *self._ends(alpha, simultaneous=together)])

        names, title = list(self.to_dict()), ", ".join(self.design.levels)
        return _pictures.published_rows(
            names, title, ends, self.epsilon, alpha, ordered=False, ax=ax
        )

    def _levels(self) -> dict[str, Coded]:
        """Return the columns of levels."""
        return self.design._axes.columns(self._cells)

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values, whose order is that of the frame."""
        return values

    def _answers(self) -> dict[str, Any]:
        """Return the ends of the intervals by confidence."""

        def ends(alpha: Real, together: bool) -> tuple[_Ints, _Ints]:
            return self._ends(alpha, simultaneous=together)

        return super()._answers() | _page.intervals(ends)

    def _title(self) -> str:
        return (
            f"{_notebook.many(len(self._cells), 'group')} of {self.design.cells}, each with a "
            f"noisy count of at least {self._at_least}"
        )


def threshold(design: Layout, at_least: Any, mechanism: GeometricMechanism) -> int:
    """Return a threshold, unless this design or mechanism takes none."""
    if mechanism.bounds is not None:
        raise ValueError("bounds do not go with at_least: a threshold needs noise without bounds")
    if len(design.blocks) > 1 or design.tables is not None:
        raise ValueError(
            "at_least does not go with margins, hierarchies or tables: give a design without them"
        )
    if design.cells > MOST_CELLS:
        raise ValueError(
            f"at_least does not go with {design.cells} cells, since each gets noise: give a "
            f"design of at most {MOST_CELLS}"
        )
    return parameters.at_least("at_least", at_least, 1)
