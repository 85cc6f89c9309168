"""Exact counts, which no tool shows, until they are released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Bounds, Exact, Integer
from geomdp._uncopied import Withheld
from geomdp.accounting import Budget
from geomdp.frames import _native
from geomdp.frames._groups import NoisyGroups, reaching
from geomdp.frames._levels import check_text
from geomdp.frames._native import Library
from geomdp.frames._noisy import NoisyTable
from geomdp.frames._top import Searched
from geomdp.mechanism import GeometricMechanism, as_mechanism

if TYPE_CHECKING:
    from geomdp.frames._design import Design

_Ints: TypeAlias = NDArray[np.int64]
#: The greatest count, and the lower half of one.
_GREATEST, LOW = 2**63 - 1, 2**32 - 1


def capped(high: _Ints, low: _Ints) -> _Ints:
    """Return the sums whose halves add up to these, or the limit of int64 if they are greater."""
    high = high + (low >> 32)
    return np.where(high >> 31, _GREATEST, (high << 32) | (low & LOW))


class Table(Searched, Withheld):
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

    __slots__ = ("_design", "_library", "_occupied")

    def __init__(self, design: Design, library: Library, occupied: tuple[_Ints, _Ints]) -> None:
        # Cells in order, all with records among them, and their counts.
        self._design, self._library, self._occupied = design, library, occupied

    @property
    def frame(self) -> Any:
        """The exact counts, in the library of the data. The frame shows and pickles them."""
        design = self._design
        columns: dict[str, Any] = design._columns_of(np.arange(design.cells))
        columns[design.name] = self._whole().reshape(-1)
        return _native.made(columns, self._library)

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
        epsilon: Exact | None = None,
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
        epsilon: Exact | None = None,
        at_least: Integer,
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
    ) -> NoisyGroups: ...
    def release(
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Exact | None = None,
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
        epsilon : number or str, optional
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
        if label is not None:
            check_text("label", label)
        if at_least is not None:
            at_least = design._threshold(at_least, mechanisms[()])
        count = parameters.threads(threads) or None
        for each in mechanisms.values():
            each.certificate()  # A mechanism that has no plan is refused before it is booked.
        if budget is not None:
            if not isinstance(budget, Budget):
                raise TypeError(parameters.foreign("budget", budget, "a Budget"))
            budget._book(design._loss(mechanisms), design._losses(mechanisms), label)

        try:
            if at_least is not None:
                each = mechanisms[()]
                cells, noisy = reaching(each, self._occupied, design.cells, at_least, count)
                return NoisyGroups(
                    design, each, label, noisy, self._library, cells=cells, at_least=at_least
                )
            exact = self._whole()
            noisy = np.empty_like(exact)
            for sums, each in mechanisms.items():
                part = design._part(sums)
                noisy[part] = each.release(exact[part], threads=count)
        except BaseException as error:
            # The local variables of these calls hold exact counts, and some tracebacks show them.
            raise error.with_traceback(None) from None
        return NoisyTable(design, mechanisms, label, noisy, self._library)

    def _whole(self) -> _Ints:
        """Return the exact counts of all cells and margins, in the shape of the design."""
        design, (cells, records) = self._design, self._occupied
        counts = np.zeros(design._base_shape(), np.int64)
        counts.reshape(-1)[cells] = records
        for axis, label in enumerate(design.levels):
            if label in design._margins:
                halves = (part.sum(axis, keepdims=True) for part in (counts >> 32, counts & LOW))
                counts = np.concatenate([counts, capped(*halves)], axis)
        return counts

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
        counts = _notebook.many(self._design.cells, "count")
        return f"<Table of {counts}, not shown; {levels}; sensitivity {self.sensitivity}>"

    def _repr_html_(self) -> str:
        return _notebook.preformatted(repr(self))
