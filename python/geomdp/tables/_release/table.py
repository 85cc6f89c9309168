"""Exact counts, which no tool shows, until they are released."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Bounds, Integer, Real
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._columns import native
from geomdp.tables._columns.native import Library
from geomdp.tables._facts.exact_sums import all_nodes
from geomdp.tables._release import bundles, steps
from geomdp.tables._release.bundles import NoisyTiers
from geomdp.tables._release.publishing import publish
from geomdp.tables._release.top import Searched
from geomdp.tables._results.groups import NoisyGroups
from geomdp.tables._results.noisy_table import NoisyTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from geomdp.tables._facts.classes import AtLeast
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._release.steps import Publishing

_Ints: TypeAlias = NDArray[np.int64]


@notebook.showable
class Table(Searched):
    """Exact counts of all cells of a design, made by :meth:`Design.count` or :func:`count`.

    Wherever it is displayed, in notebooks too, it shows its columns and levels but no counts. It
    cannot be pickled or copied. ``dir`` leaves out :attr:`frame`, since inspectors and debuggers
    show the value of every name in it.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp.tables import count
    >>> count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
    <Table of 2 counts, not shown; sick: ['yes', 'no']; sensitivity 1>

    """

    __slots__ = ("_count_id", "_design", "_library", "_occupied")

    def __init__(
        self,
        design: Layout,
        library: Library | None,
        occupied: tuple[_Ints, _Ints],
        count_id: str | None = None,
    ) -> None:
        # Cells in order, all with records among them, and their counts.
        self._design, self._library, self._occupied = design, library, occupied
        # Which count of the records this is, if limits of individuals cut them at random.
        self._count_id = count_id

    @property
    def frame(self) -> Any:
        """The exact counts, in the library of the data. This frame does show and pickle them."""
        design = self._design
        columns: dict[str, Any] = {**design._columns()}
        columns[design.name] = design._shown(self._nodes())
        return native.made(columns, self._library)

    def _nodes(self) -> NDArray[np.int64]:
        """Return the exact counts as an array with an axis for each column; secret.

        Those of an axis are its nodes in the order of its tree: sums first. Chosen tables are one
        after the other, in one axis.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import count
        >>> count(pd.Series(["no", "yes", "no"]), ["yes", "no"], margins="all")._nodes()
        array([3, 1, 2])

        """
        return all_nodes(self._design, self._occupied)

    @property
    def design(self) -> Layout:
        """The design of the table: everything public about it."""
        return self._design

    @property
    def sensitivity(self) -> int:
        """The most by which one individual can change all counts together: :class:`Design`."""
        return self._design.sensitivity

    @overload
    def release(
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Real | None = None,
        shares: Mapping[str, Sequence[Real]] | None = None,
        bounds: Bounds | None = None,
        **publishing: Unpack[Publishing],
    ) -> NoisyTable: ...
    @overload
    def release(
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Real | None = None,
        shares: Mapping[str, Sequence[Real]] | None = None,
        at_least: AtLeast,
        rest: tuple[Any, Real] | None = None,
        people: Integer | None = None,
        **publishing: Unpack[Publishing],
    ) -> NoisyGroups: ...
    @overload
    def release(
        self,
        *,
        tiers: Mapping[str, Real],
        shares: Mapping[str, Sequence[Real]] | None = None,
        bounds: Bounds | None = None,
        **publishing: Unpack[Publishing],
    ) -> NoisyTiers: ...
    def release(  # numpydoc ignore=PR02
        self,
        mechanism: GeometricMechanism | None = None,
        *,
        epsilon: Real | None = None,
        shares: Mapping[str, Sequence[Real]] | None = None,
        bounds: Bounds | None = None,
        at_least: AtLeast | None = None,
        rest: tuple[Any, Real] | None = None,
        people: Integer | None = None,
        tiers: Mapping[str, Real] | None = None,
        **publishing: Unpack[Publishing],
    ) -> NoisyTable | NoisyGroups | NoisyTiers:
        """Return the noisy table, its groups with large noisy counts, or several precisions of it.

        Parameters
        ----------
        mechanism : GeometricMechanism, optional
            Its sensitivity must be at least that of the table.
        epsilon : number or str, optional
            Instead of a mechanism, the privacy loss of the whole table for one individual.
        shares : mapping of column names to sequences of numbers, optional
            With `epsilon`, in what proportion the depths of a column share it, from the root down,
            instead of the shares of the design.
        bounds : (int, int), optional
            With `epsilon`, the bounds to which noisy counts are clamped.
        at_least : int or (int, int), optional
            Publish only the cells whose noisy counts are at least this, for designs with so many
            cells that most are empty, or that nobody can list. Empty cells may be among them as if
            all had got noise, so the privacy loss is the same. :meth:`Design.threshold` returns it;
            for :class:`Words` with common ones, a pair: for cells of common words, and for others.
        rest : pair of a label and a number, optional
            With `at_least` and `epsilon`, a last row with this label for the sum of all groups that
            are left out, and the share of epsilon for its noise. The label is the same in each
            column, or a mapping of column names to labels, and must not be a level. The row appears
            whether or not any group is left out.
        people : int, optional
            With `at_least`, a public number of individuals. Noise is then drawn for as many cells
            as they may change, whichever are occupied, so that its time does not tell how many are.
            If more are occupied, noise is drawn for these, and nothing is refused.
        tiers : mapping of names to numbers, optional
            Instead of `epsilon`, for a table at several precisions: the epsilon of each tier, in
            increasing order, such as ``{"public": "0.1", "researchers": 1}``. Whoever sees several
            tiers learns no more than the greatest of these epsilons allows, so a budget books the
            last one. One call makes all tiers, since two calls would cost the sum. The finest tier
            may be kept back and published later, for the same counts; never add its noise to
            revised counts, which would publish them exactly. Not with `at_least`.
        budget : Budget, optional
            The budget that books the privacy loss before any noise is drawn, and refuses a release
            that would exceed it. With `rho` or a plan, it books the losses of the cells that one
            individual can change, which cost less (:meth:`Design.loss_distribution`).
        label : str, optional
            A name for the release, which the budget's history and readers see.
        threads : int, optional
            The greatest number of threads for a large table; by default, as many as help.
        corrects : NoisyTable, NoisyGroups or Top, optional
            The release that this one replaces, for example as :func:`geomdp.read` returns it. Both
            are paid for. The description says which of the two is out of date, and
            :meth:`NoisyTable.combine` refuses to combine them. Of a sum, correct the part.
        save : str or path, optional
            A file to publish the release to, as :meth:`NoisyTable.save` does. Everything that can
            be wrong with it is refused before anything is booked: its folder, its ending, a missing
            library, levels that it cannot keep, and an existing file of that name, so a second run
            of the same program pays nothing. If a run is interrupted after the booking, the same
            call publishes what was paid for. If the disk fails, the error has the release as its
            attribute ``released``. With `tiers`, a mapping from their names to a file for each.
        rounded : int or str, optional
            With `save`, publish multiples of this number, such as 5 or 10, or with "middle of 6"
            middles of groups, as :meth:`NoisyTable.save` does. The returned table has the noisy
            counts before rounding.
        about : mapping of names to texts, optional
            What to say about the table in its files and on its page: any of `title`, `description`,
            `source`, `period`, `publisher`, `contact` and `licence`. The returned table keeps it,
            and so does :func:`geomdp.read`.

        Returns
        -------
        NoisyTable, NoisyGroups or NoisyTiers
            A NoisyGroups with `at_least`, a NoisyTiers with `tiers`, and otherwise a NoisyTable.

        Raises
        ------
        ValueError
            If the sensitivity of the mechanism is below that of the table, or the budget does not
            allow the release.
        FileExistsError
            If a file with the name in `save` exists. Nothing is booked then.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import accounting, tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> budget = accounting.Budget(epsilon=1)
        >>> noisy = table.release(epsilon=0.5, budget=budget, label="October")
        >>> noisy.frame["sick"].tolist(), budget.spent
        (['yes', 'no'], [('October', 0.5)])

        """
        if shares is not None and mechanism is not None:
            raise TypeError(
                "shares are not accepted with a mechanism, which is the same for all depths: give "
                "them with epsilon"
            )
        design = self._design if shares is None else self._design.with_shares(shares)
        how = steps.only(publishing) | {"bounds": bounds, "count_id": self._count_id}
        if tiers is not None:
            given = mechanism, epsilon, at_least, rest, people
            if any(each is not None for each in given):
                raise TypeError(
                    "tiers are not accepted with mechanism, epsilon, at_least, rest or people: "
                    "give tiers"
                )
            return bundles.release(design, (self._library, self._occupied), tiers, **how)
        how |= {"epsilon": epsilon, "at_least": at_least, "rest": rest, "people": people}
        plan = steps.prepare(design, mechanism, **how)

        def made(drawn: Any, ids: Any) -> NoisyTable | NoisyGroups:
            return steps.made(plan, self._library, drawn, *ids)

        draw = partial(steps.draw, plan, self._occupied)
        return publish([plan], draw, made, steps.zeros(plan), **how)

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{label}: {parameters.shown(each)}" for label, each in self._design.levels.items()
        )
        counts = notebook.many(self._design.cells, "count")
        return f"<Table of {counts}, not shown; {levels}; sensitivity {self.sensitivity}>"

    def _repr_html_(self) -> str:
        return notebook.preformatted(repr(self))
