"""The largest cells of a table by name alone: the cost and the accuracy of such a release."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals, parameters
from geomdp._ground.notebook import many
from geomdp._ground.parameters import Integer, Real
from geomdp._ground.uncopied import Withheld
from geomdp._noise import errors_of, exact_loss
from geomdp.mechanism import GeometricMechanism, as_mechanism, top_among
from geomdp.tables._columns.native import Coded, Library
from geomdp.tables._math import largest
from geomdp.tables._pictures import charts
from geomdp.tables._release import steps as _release
from geomdp.tables._release.publishing import publish
from geomdp.tables._results.released import Released

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._release.steps import Publishing


#: The column of ranks, from 1 for the largest.
RANK = "rank"
#: The most cells of a design that are gone through; beyond, it takes hours.
_MOST_CELLS = 10**12


class Top(Released):
    """The largest cells of a table by name, the largest first, and no counts.

    :meth:`Table.top` makes one, and :func:`geomdp.read` reads one from a file. Each name was drawn,
    with noise of its own, from the cells that had not been named yet, so the order is noisy too.
    The object contains no counts, exact or noisy: the last column of :attr:`frame` has the ranks.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> visits = pd.Series(["flu"] * 900 + ["cold"] * 700 + ["gout"] * 20, name="diagnosis")
    >>> table = tables.count(visits, ["cold", "flu", "gout", "mumps"])
    >>> top = table.top(2, epsilon=1)
    >>> top.to_dict(), top.privacy_loss()
    ({'flu': 1, 'cold': 2}, 1.0)
    >>> top.accuracy(alpha=0.05)
    8

    """

    __slots__ = ("_cells",)

    def __init__(self, *facts: Any, cells: NDArray[np.int64], **more: Any) -> None:
        known: Any = *facts, np.arange(1, cells.size + 1)
        super().__init__(*known, **more)
        self._cells = cells

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The ranks, in the order of the frame: from 1, for the largest."""
        return self._values

    @property
    def mechanism(self) -> GeometricMechanism:
        """The mechanism of each name."""
        [mechanism] = self.mechanisms.values()
        return as_mechanism(mechanism)

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of all names for one individual; infinite without noise."""
        return exact_loss(self.mechanism, len(self) * steps(self.design))

    def _levels(self) -> dict[str, Coded]:
        """Return the columns of levels."""
        design = self.design
        places = np.unravel_index(self._cells, design._axes.sizes)
        pairs = zip(design._axes, places, strict=True)
        return {x: each for axis, at in pairs for x, each in axis.columns_of_cells(at).items()}

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values, whose order is that of the frame."""
        return values

    @property
    def _name(self) -> str:
        """The name of the last column."""
        return RANK

    @property
    def _named(self) -> int:
        """How many cells are named."""
        return len(self)

    def accuracy(self, alpha: Real = 0.05) -> int:
        """Return how much larger than a named cell an unnamed one may be, at level alpha.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that some cell is larger than a named one by more than the result, but
            is not named before it.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no"] * 500 + ["yes"] * 900), ["no", "yes"])
        >>> table.top(1, epsilon=1).accuracy(alpha=0.05)
        2

        """
        return accuracy(self.design, len(self), self.mechanism, alpha)

    def plot(self, *, alpha: Real = 0.05, ax: Axes | None = None) -> Axes:
        """Write the names in their order, with ranks, and state their :meth:`accuracy`.

        Parameters
        ----------
        alpha
            As in :meth:`accuracy`.
        ax
            As in :func:`geomdp.tables.plot.pmf`.

        Returns
        -------
        Axes
            A list.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no"] * 500 + ["yes"] * 900), ["no", "yes"])
        >>> [text.get_text() for text in table.top(1, epsilon=1).plot().texts]
        ['1', 'yes']

        """
        share = float(100 * (1 - parameters.significance("alpha", alpha)))
        how = (
            f"In order, as chosen from counts with noise. With {share:g}% confidence, no count "
            f"left out is larger by more than {self.accuracy(alpha):,}. Epsilon "
            f"{parameters.text(self.epsilon)}."
        )
        title = f"The {len(self):,} largest by {' and '.join(self.design.levels)}"
        return charts.published_names(list(self.to_dict()), title, how, ax=ax)

    def __len__(self) -> int:
        return int(self._cells.size)

    def _title(self) -> str:
        label = "" if self.label is None else f", {self.label!r}"
        return f"The {len(self)} largest of {many(base_cells(self.design), 'cell')} by name{label}"


def base_cells(design: Layout) -> int:
    """Return the number of cells, margins left out."""
    return math.prod(design._axes.sizes)


def steps(design: Layout) -> int:
    """Return how much the change of one cell can differ from that of another, for one individual.

    An individual that is added or removed changes all cells in one direction.
    """
    return design._spread * (2 if design.neighbours == "change" else 1)


def mechanism_for(design: Layout, k: Any, epsilon: Any) -> GeometricMechanism:
    """Return the mechanism of each of k names that cost epsilon together, or refuse it."""
    if design.tables is not None:
        raise ValueError("top is not accepted for a design with tables: give one without")
    if not design._axes.sizes:
        raise ValueError("top names cells by their levels: give a design with at least one column")
    number, cells = parameters.at_least("k", k, 1), base_cells(design)
    if number > cells:
        raise ValueError(f"k = {k} is not accepted: give at most {cells}, the number of cells")
    design._axes.check_listed()
    if cells > _MOST_CELLS:
        raise ValueError(
            f"a search among {cells} cells is not accepted, since each gets noise: give a design "
            f"of at most {_MOST_CELLS}"
        )
    mechanism = GeometricMechanism(epsilon, number * steps(design))
    mechanism.top(np.zeros(1, np.int64))  # One without a plan, or of a scale too large, is refused.
    return mechanism


def accuracy(design: Layout, k: int, mechanism: GeometricMechanism, alpha: Any) -> int:
    """Return the accuracy of k names: see :meth:`Design.top_accuracy`."""
    level = parameters.significance("alpha", alpha) / k
    others = base_cells(design) - 1
    # The noise of each cell is within its total variation of the ideal one.
    sampled = errors_of(mechanism, np.int64).total_variation
    rest = level - (others + 1) * Fraction(sampled)
    if rest <= 0:
        raise ValueError(
            f"alpha = {parameters.shown(alpha)} is not accepted for {k} of "
            f"{many(others + 1, 'cell')}: give more than {decimals.up(k * (level - rest)):.1g}"
        )
    return largest.least(Fraction(mechanism.rate), rest, others)


class Searched(Withheld):
    """The search for the largest cells of a table."""

    __slots__ = ()
    _design: Layout
    _library: Library | None
    _occupied: tuple[NDArray[np.int64], NDArray[np.int64]]
    _count_id: str | None

    def top(
        self,
        k: Integer,
        *,
        epsilon: Real,
        **publishing: Unpack[Publishing],
    ) -> Top:
        """Return the k largest cells by name, the largest first, and no counts.

        The cost does not depend on `l0`: the noise scale is ``k * linf / epsilon``, or twice that
        with ``neighbours="change"``. Margins take no part. ``docs/guides/top.md`` explains when the
        largest rows of a noisy table are the better choice.

        Parameters
        ----------
        k : int
            How many cells, from 1 to the number of cells.
        epsilon : number or str
            The privacy loss of all names together.
        **publishing
            As in :meth:`release`, but for `rounded`: there are no counts. With `rho` or a plan, a
            budget books k releases of equal loss.

        Raises
        ------
        ValueError
            If the table has fewer cells, or the budget does not allow the release.
        FileExistsError
            If a file with the name in `save` exists. Nothing is booked then.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> visits = pd.Series(["flu"] * 900 + ["cold"] * 700 + ["gout"] * 20, name="diagnosis")
        >>> table = tables.count(visits, ["cold", "flu", "gout", "mumps"])
        >>> table.top(1, epsilon=1).frame["diagnosis"].tolist()
        ['flu']

        """
        design = self._design
        mechanism = mechanism_for(design, k, epsilon)
        number = mechanism.sensitivity // steps(design)
        if RANK in design.levels:
            raise ValueError(
                f"a column named {RANK!r} is not accepted, since that is the column of ranks: "
                "rename it"
            )
        how = _release.only(publishing)
        mechanisms = {design.blocks[-1]: mechanism}
        given = _release.planned(design, mechanisms, count_id=self._count_id, named=number, **how)
        known = design, mechanisms, given.label, self._library

        def draw() -> list[NDArray[np.int64]]:
            cells = base_cells(design)
            return [top_among(mechanism, self._occupied, cells, number, given.threads)]

        def made(drawn: Any, ids: Any) -> Top:
            [cells], [identity] = drawn, ids
            return Top(*known, cells=cells, identity=identity, about=given.about)

        return publish([given], draw, made, [np.arange(number)], **how)


class Searchable:
    """The accuracy of a search for the largest cells, known from the design."""

    __slots__ = ()

    def top_accuracy(self: Any, k: Integer = 1, *, epsilon: Real, alpha: Real = 0.05) -> int:
        """Return how much larger than a named cell an unnamed one may be, at level alpha.

        The probability that a cell is named before one that is larger by more than t is greatest
        when one cell is larger than all others by ``t + 1``. It is then exactly the probability
        that the greatest noise of the others exceeds the noise of that cell by more than t. Each of
        the k names is given the level alpha / k (``docs/proofs.md``, section 19).

        Parameters
        ----------
        k : int
            How many cells :meth:`Table.top` names.
        epsilon : number or str
            The privacy loss of all names together.
        alpha : int, float or Fraction
            The probability that some difference is greater, above 0 and at most 1.

        Returns
        -------
        int
            In units of counts.

        Examples
        --------
        >>> from geomdp.tables import Design
        >>> design = Design({"diagnosis": range(1000)}, individual="patient", l0=20)
        >>> [design.top_accuracy(k, epsilon=1, alpha=0.05) for k in (1, 10)]
        [9, 115]

        """
        return accuracy(self, int(k), mechanism_for(self, k, epsilon), alpha)
