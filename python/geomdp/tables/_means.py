"""A sum and a count of the same records, and their means."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from geomdp import _notebook
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp._numerics import decimals
from geomdp._uncopied import Withheld, unseen
from geomdp.tables import _release
from geomdp.tables._noisy import NoisyTable
from geomdp.tables._selection import Columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from geomdp.accounting import Budget
    from geomdp.tables._table import Table


@_notebook.showable
class SumAndCount(Withheld):
    """The exact sums and counts of the same records, made by :meth:`Design.sum_and_count`.

    The object shows no counts or sums, and cannot be pickled or copied.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp.tables import Design
    >>> people = pd.DataFrame({"town": ["Rome", "Oslo"], "age": [30, 40]})
    >>> Design({"town": ["Oslo", "Rome"]}).sum_and_count(people, "age", bounds=(18, 99))
    <SumAndCount of 2 cells, not shown; sensitivities 99 and 1>

    """

    __slots__ = ("_bounds", "_counts", "_sums")

    def __init__(self, sums: Table, counts: Table, bounds: tuple[int, int]) -> None:
        self._sums, self._counts, self._bounds = sums, counts, bounds

    @unseen
    def release(
        self,
        *,
        epsilon: Real,
        share: Real = Fraction(1, 2),
        budget: Budget | None = None,
        label: str | None = None,
        threads: int | None = None,
        corrects: NoisySumAndCount | None = None,
        save: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> NoisySumAndCount:
        """Return both noisy tables, for one privacy loss.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of both tables together for one individual, who changes both.
        share : number or str
            The share of epsilon for the sums, above 0 and below 1; the counts get the rest. By
            default, each gets a half. The best share for a mean of bounded values depends on the
            data, but with a half, intervals of means are at most about twice as wide as with the
            best (``docs/proofs.md``, lemma 14e).
        budget : Budget, optional
            The budget that books the privacy loss of both together before any noise is drawn.
        label : str, optional
            A name for the release, which the budget's history and the readers of both files see.
        threads : int, optional
            As in :meth:`geomdp.GeometricMechanism.release`.
        corrects : NoisySumAndCount, optional
            The release that this one replaces. Each table names its own predecessor.
        save : pair of paths, optional
            The files to publish the sums and the counts to, as :meth:`Table.release` does.
        about : mapping of names to texts, optional
            What to say about both tables: any of `title`, `description`, `source`, `period`,
            `contact` and `licence`.

        Returns
        -------
        NoisySumAndCount
            The noisy sums, the noisy counts and their means.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import accounting, tables
        >>> people = pd.DataFrame({"town": ["Rome", "Oslo"] * 90, "age": [30, 40] * 90})
        >>> pair = tables.Design({"town": ["Oslo", "Rome"]}).sum_and_count(
        ...     people, "age", bounds=(18, 99))
        >>> budget = accounting.Budget(epsilon=1)
        >>> noisy = pair.release(epsilon=1, budget=budget, label="ages")
        >>> noisy.sums.epsilon, noisy.counts.epsilon, budget.spent
        (Fraction(1, 2), Fraction(1, 2), [('ages', 1.0)])

        """
        total = parameters.positive_fraction("epsilon", parameters.exact("epsilon", epsilon))
        wanted = "a number above 0 and below 1"
        exact = parameters.exact("share", share)
        part = Fraction(parameters.in_range("share", exact, wanted, lambda x: 0 < x < 1))
        paths = _paths(save)
        if not isinstance(corrects, NoisySumAndCount | None):
            wanted = "the release of a sum and a count that this one replaces"
            raise TypeError(parameters.foreign("corrects", corrects, wanted))
        replaced = (None, None) if corrects is None else (corrects.sums, corrects.counts)
        prepared = [
            _release.prepare(
                table.design,
                None,
                epsilon=total * each,
                label=label,
                threads=threads,
                corrects=old,
                count_id=table._count_id,
                save=path,
                about=about,
            )
            for table, each, old, path in zip(
                (self._sums, self._counts), (part, 1 - part), replaced, paths, strict=True
            )
        ]
        whole: Fraction | float = 0
        losses: Counter[Fraction | float] = Counter()
        for each in prepared:
            one, many = each.losses()
            whole += one
            losses += many
        identities = (each.identity for each in prepared)
        _release.spend(budget, self._counts.design, whole, losses, label, *identities)
        sums, counts = (
            _release.draw(each, table._library, table._occupied)
            for each, table in zip(prepared, (self._sums, self._counts), strict=True)
        )
        assert isinstance(sums, NoisyTable)
        assert isinstance(counts, NoisyTable)
        return _release.saved(NoisySumAndCount(sums, counts, self._bounds), save)

    def __repr__(self) -> str:
        cells = _notebook.many(self._sums.design.cells, "cell")
        changes = f"{self._sums.sensitivity} and {self._counts.sensitivity}"
        return f"<SumAndCount of {cells}, not shown; sensitivities {changes}>"

    def _repr_html_(self) -> str:
        return _notebook.preformatted(repr(self))


@_notebook.showable
@dataclass(frozen=True, repr=False, eq=False)
class NoisySumAndCount:
    """Noisy sums and counts of the same records, made by :meth:`SumAndCount.release`.

    Attributes
    ----------
    sums : NoisyTable
        The noisy sums.
    counts : NoisyTable
        The noisy counts of the same records, with independent noise.
    bounds : (int, int)
        The least and the greatest value of a record.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp.tables import Design
    >>> people = pd.DataFrame({"town": ["Rome", "Oslo"] * 90, "age": [30, 40] * 90})
    >>> pair = Design({"town": ["Oslo", "Rome"]}).sum_and_count(people, "age", bounds=(18, 99))
    >>> noisy = pair.release(epsilon=1)
    >>> noisy, list(noisy.mean(alpha=0.05))
    (<NoisySumAndCount of 2 cells, privacy loss 1 for one individual>, \
['town', 'estimate', 'lower', 'upper'])

    """

    sums: NoisyTable
    counts: NoisyTable
    bounds: tuple[int, int]

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of both tables for one individual."""
        return self.sums.epsilon + self.counts.epsilon

    def privacy_loss(self) -> float:
        """Return the privacy loss of both tables for one individual.

        Returns
        -------
        float
            :attr:`epsilon`, rounded up.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> people = pd.DataFrame({"town": ["Rome", "Oslo"], "age": [30, 40]})
        >>> pair = Design({"town": ["Oslo", "Rome"]}).sum_and_count(people, "age", bounds=(18, 99))
        >>> pair.release(epsilon="0.1").privacy_loss()
        0.1

        """
        return decimals.up(self.epsilon)

    def mean(
        self, by: Columns | None = None, *, alpha: Real | None = None, simultaneous: bool = False
    ) -> Any:
        """Return the mean of the values in each group: its sum over its count.

        Parameters
        ----------
        by : column name or tuple of column names, optional
            The columns to keep; by default all. ``()`` is the mean of all records.
        alpha, simultaneous
            As in :meth:`NoisyTable.intervals`. Without `alpha` there are no intervals.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper, all within the bounds of values. The
            estimate of a group is NaN unless its noisy count is positive. For tables read from
            files, use :meth:`NoisyTable.per`, which does not know the bounds.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> people = pd.DataFrame({"town": ["Rome", "Oslo"] * 4500, "age": [30, 40] * 4500})
        >>> pair = Design({"town": ["Oslo", "Rome"]}).sum_and_count(people, "age", bounds=(18, 99))
        >>> found = pair.release(epsilon=1).mean((), alpha=0.05)
        >>> bool(34 < found["lower"][0] <= found["upper"][0] < 36)
        True

        """
        low, high = map(Fraction, self.bounds)
        return self.sums._per(self.counts, by, alpha, simultaneous, (low, high))

    def save(
        self,
        path: tuple[str | PathLike[str], str | PathLike[str]],
        *,
        overwrite: bool = False,
        rounded: Integer | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write both tables to files, as :meth:`NoisyTable.save` does.

        Parameters
        ----------
        path : pair of paths
            The file of the sums and that of the counts.
        overwrite : bool
            Whether files of these names may be replaced.
        rounded, about
            As in :meth:`NoisyTable.save`, for both files.

        Examples
        --------
        >>> import os, tempfile
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> people = pd.DataFrame({"town": ["Rome", "Oslo"], "age": [30, 40]})
        >>> pair = Design({"town": ["Oslo", "Rome"]}).sum_and_count(people, "age", bounds=(18, 99))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pair.release(epsilon=1).save((f"{folder}/ages.csv", f"{folder}/people.csv"))
        ...     files = sorted(os.listdir(folder))
        >>> files
        ['ages.csv', 'ages.csv.json', 'people.csv', 'people.csv.json']

        """
        for table, each in zip((self.sums, self.counts), _paths(path), strict=True):
            table.save(each, overwrite=overwrite, rounded=rounded, about=about)

    def __repr__(self) -> str:
        cells = _notebook.many(self.sums.design.cells, "cell")
        loss = f"privacy loss {_notebook.short(self.epsilon)} for one individual"
        return f"<NoisySumAndCount of {cells}, {loss}>"

    def _repr_html_(self) -> str:
        return _notebook.preformatted(repr(self))


def _paths(save: Any) -> tuple[Any, Any]:
    """Return the paths of sums and of counts, which differ, or None twice."""
    if save is None:
        return None, None
    wanted = "two paths, of the sums and of the counts"
    if not isinstance(save, tuple | list) or not all(isinstance(x, str | PathLike) for x in save):
        raise TypeError(parameters.foreign("save", save, wanted))
    if len(save) != 2 or fspath(save[0]) == fspath(save[1]):
        raise ValueError(f"save does not have two different paths: give {wanted}")
    return save[0], save[1]
