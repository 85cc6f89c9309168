"""Exact counts, which no tool shows, until they are released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from geomdp import _notebook
from geomdp._inputs import parameters
from geomdp._inputs.arrays import Array
from geomdp._inputs.columns import noisy_columns
from geomdp._inputs.parameters import Bounds, Integer, Real
from geomdp._uncopied import Withheld
from geomdp.frames import _native
from geomdp.frames._groups import NoisyGroups, reaching
from geomdp.frames._noisy import NoisyTable
from geomdp.mechanism import GeometricMechanism, as_mechanism

if TYPE_CHECKING:
    from geomdp.accounting import Budget
    from geomdp.frames._design import Design


class Table(Withheld):
    """Exact counts of all cells of a design, made by :meth:`Design.count` or :func:`count`.

    Its representations, also in notebooks, show the columns and levels and no count. It cannot be
    pickled or copied. ``dir`` leaves out :attr:`frame`, since inspectors and debuggers show the
    value of each name in it.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp.frames import count
    >>> count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
    <Table of 2 counts, not shown; sick: ['yes', 'no']; sensitivity 1>

    """

    __slots__ = ("_design", "_frame")

    def __init__(self, frame: Any, design: Design) -> None:
        self._frame, self._design = frame, design

    @property
    def frame(self) -> Any:
        """The exact counts, in the library of the data. The frame shows and pickles them."""
        return self._frame

    @property
    def design(self) -> Design:
        """The design of the table: everything public about it."""
        return self._design

    @property
    def levels(self) -> dict[Any, list[Any]]:
        """The levels of each column, followed by its labels for other records and for margins."""
        return self._design.levels

    @property
    def name(self) -> str:
        """The name of the column of counts."""
        return self._design.name

    @property
    def sensitivity(self) -> int:
        """The greatest L1 change of the table by one individual: that of its design."""
        return self._design.sensitivity

    @overload
    def release(
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Real | None = None,
        bounds: Bounds | None = None,
        at_least: None = None,
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
    ) -> NoisyTable: ...
    @overload
    def release(
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Real | None = None,
        at_least: Integer,
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
    ) -> NoisyGroups: ...
    def release(
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Real | None = None,
        bounds: Bounds | None = None,
        at_least: Integer | None = None,
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
    ) -> NoisyTable | NoisyGroups:
        """Return the noisy table, or its groups with large noisy counts.

        Parameters
        ----------
        mechanism : GeometricMechanism, optional
            Its sensitivity must be at least that of the table.
        epsilon : int, float or Fraction, optional
            Instead of a mechanism: the privacy loss of the whole table for one individual.
        bounds : (int, int), optional
            With `epsilon`: noisy counts are clamped to them.
        at_least : int, optional
            Publish only the cells whose noisy counts are at least this: for designs of so many
            cells that most are empty. All cells get noise, so the privacy loss is the same.
        budget : Budget, optional
            Books the privacy loss before any noise is drawn, and refuses a release that exceeds it.
            With `rho` or a plan it books the losses of the cells that one individual can change,
            which is less (:meth:`Design.loss_distribution`).
        label : str, optional
            A name for the release, for the budget's history and for readers.
        threads : int, optional
            As in :meth:`geomdp.GeometricMechanism.release`.

        Returns
        -------
        NoisyTable or NoisyGroups
            With `at_least`, the second.

        Raises
        ------
        ValueError
            If the sensitivity of the mechanism is below that of the table, or the budget does not
            allow the release.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import accounting, frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> budget = accounting.Budget(epsilon=1)
        >>> noisy = table.release(epsilon=0.5, budget=budget, label="October")
        >>> noisy.frame["sick"].tolist(), budget.spent
        (['yes', 'no'], [('October', 0.5)])

        """
        design = self._design
        mechanisms = design._given(mechanism, epsilon, bounds)
        if label is not None and not isinstance(label, str):
            raise TypeError(parameters.foreign("label", label, "a str or None"))
        if at_least is not None:
            at_least = design._threshold(at_least, bounds)
        count = parameters.threads(threads) or None
        for each in mechanisms.values():
            each.certificate()  # A mechanism that has no plan is refused before it is booked.
        if budget is not None:
            budget._book(design._loss(mechanisms), design._losses(mechanisms), label)

        def noise(counts: Array) -> Array:
            noisy = counts.reshape(design.shape).copy()
            for sums, each in mechanisms.items():
                part = design._part(sums)
                noisy[part] = each.release(noisy[part], threads=count)
            return noisy.reshape(-1)

        try:
            if at_least is not None:
                each = mechanisms[()]
                cells, noisy = reaching(each, self._occupied(), design.cells, at_least, count)
                places = range(len(design.levels))
                frame = _native.taken(self._frame, places, cells, {design.name: noisy})
                return NoisyGroups(frame, design, each, label, cells=cells, at_least=at_least)
            frame = noisy_columns(self._frame, {design.name: noise}, "refuse")
        except BaseException as error:
            # The local variables of these calls hold exact counts, and some tracebacks show them.
            raise error.with_traceback(None) from None
        return NoisyTable(frame, design, mechanisms, label)

    def _occupied(self) -> tuple[Array, Array]:
        """Return the cells with records, and how many."""
        counts = _native.last_column(self._frame)
        cells = np.flatnonzero(counts)
        return cells, counts[cells]

    def map(self, mechanism: GeometricMechanism, records: Integer = 1) -> float:
        """Return the privacy loss of a release by this mechanism: ``map(records * sensitivity)``.

        Parameters
        ----------
        mechanism
            The mechanism of the release.
        records : int
            For how many individuals together.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import GeometricMechanism, frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"], margins="all")
        >>> table.map(GeometricMechanism(0.5))
        1.0

        """
        distance = parameters.at_least("records", records, 0) * self.sensitivity
        return as_mechanism(mechanism).map(distance)

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{label}: {parameters.shown(each)}" for label, each in self.levels.items()
        )
        cells = self._design.cells
        return f"<Table of {cells} counts, not shown; {levels}; sensitivity {self.sensitivity}>"

    def _repr_html_(self) -> str:
        return _notebook.preformatted(repr(self))
