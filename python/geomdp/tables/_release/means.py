"""A sum and a count of the same records, and their means."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack, overload

from geomdp._ground import decimals, notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._ground.uncopied import Withheld
from geomdp.tables._answers.selection import Columns
from geomdp.tables._release import steps
from geomdp.tables._release.bundles import Bundle, Noisy, paths_of
from geomdp.tables._release.publishing import publish
from geomdp.tables._results.groups import NoisyGroups
from geomdp.tables._results.noisy_table import NoisyTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from geomdp.tables._facts.classes import AtLeast
    from geomdp.tables._release.steps import Publishing
    from geomdp.tables._release.table import Table


@notebook.showable
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

    @overload
    def release(
        self,
        *,
        epsilon: Real,
        share: Real = ...,
        **publishing: Unpack[Publishing],
    ) -> NoisySumAndCount[NoisyTable]: ...
    @overload
    def release(
        self,
        *,
        epsilon: Real,
        share: Real = ...,
        at_least: AtLeast,
        rest: tuple[Any, Real] | None = None,
        people: Integer | None = None,
        **publishing: Unpack[Publishing],
    ) -> NoisySumAndCount[NoisyGroups]: ...
    def release(
        self,
        *,
        epsilon: Real,
        share: Real = Fraction(1, 2),
        at_least: AtLeast | None = None,
        rest: tuple[Any, Real] | None = None,
        people: Integer | None = None,
        **publishing: Unpack[Publishing],
    ) -> NoisySumAndCount[Any]:
        """Return both noisy tables, or those of the groups with large counts, for one privacy loss.

        Parameters
        ----------
        epsilon : number or str
            The privacy loss of both tables together for one individual, who changes both.
        share : number or str
            The share of epsilon for the sums, above 0 and below 1; the counts get the rest. By
            default, each gets a half. The best share for a mean of bounded values depends on the
            data, but with a half, intervals of means are at most about twice as wide as with the
            best (``docs/proofs.md``, lemma 14e).
        at_least : int or (int, int), optional
            As in :meth:`Table.release`, a threshold on the noisy counts: ``Design.threshold`` of
            their part of epsilon. Both tables are then of the groups whose counts reach it, and the
            others have no sum. The sums get noise after that choice, which costs no more
            (``docs/proofs.md``, theorem 20d).
        rest, people
            As in :meth:`Table.release`, with `at_least`. Either table has a row for the groups left
            out, with that share of its part of epsilon.
        **publishing
            As in :meth:`Table.release`; `save` is a mapping of ``"sums"`` and ``"counts"`` to a
            file for each, and `corrects` a NoisySumAndCount.

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
        total = parameters.read(parameters.loss("epsilon", epsilon))
        wanted = "a number above 0 and below 1"
        part = Fraction(parameters.in_range("share", share, wanted, lambda x: 0 < x < 1))
        how = steps.only(publishing)
        old, save = how.pop("corrects", None), how.pop("save", None)
        if not isinstance(old, NoisySumAndCount | None):
            wanted = "the release of a sum and a count that this one replaces"
            raise TypeError(parameters.foreign("corrects", old, wanted))
        tables = {"sums": (self._sums, part), "counts": (self._counts, 1 - part)}
        paths = paths_of("save", save, tables)
        how |= {"at_least": at_least, "rest": rest}

        def prepared(name: str, **more: Any) -> steps.Release:
            table, each = tables[name]
            return steps.prepare(
                table.design,
                None,
                epsilon=total.part(each),
                corrects=None if old is None else old[name],
                count_id=table._count_id,
                **how,
                **more,
            )

        counts = prepared("counts", people=people)
        sums = prepared("sums", chosen=at_least is not None)

        def draw() -> list[Any]:
            noisy, *cells = steps.draw(counts, self._counts._occupied)
            return [*steps.draw(sums, self._sums._occupied, *cells), noisy, *cells]

        def made(drawn: Any, ids: Any) -> NoisySumAndCount[Any]:
            library, many = self._sums._library, len(drawn) // 2
            found: Any = {
                "sums": steps.made(sums, library, drawn[:many], ids[0], ids[1].id),
                "counts": steps.made(counts, library, drawn[many:], ids[1]),
            }
            return NoisySumAndCount(found, self._bounds)

        zeros = [*steps.zeros(sums), *steps.zeros(counts)]
        return publish([sums, counts], draw, made, zeros, save=paths or None, **how)

    def __repr__(self) -> str:
        cells = notebook.many(self._sums.design.cells, "cell")
        changes = f"{self._sums.sensitivity} and {self._counts.sensitivity}"
        return f"<SumAndCount of {cells}, not shown; sensitivities {changes}>"

    def _repr_html_(self) -> str:
        return notebook.preformatted(repr(self))


class NoisySumAndCount(Bundle[Noisy]):
    """Noisy sums and counts of the same records, made by :meth:`SumAndCount.release`.

    Attributes
    ----------
    sums : NoisyTable or NoisyGroups
        The noisy sums; with a threshold, those of the groups whose counts reached it.
    counts : NoisyTable or NoisyGroups
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
    (<NoisySumAndCount of 2 counts: sums at epsilon 0.5, counts at epsilon 0.5>, \
['town', 'estimate', 'lower', 'upper'])

    """

    __slots__ = ("bounds",)

    def __init__(self, tables: Mapping[str, Noisy], bounds: tuple[int, int]) -> None:
        super().__init__(tables)
        self.bounds = bounds

    @property
    def sums(self) -> Noisy:
        """The noisy sums."""
        return self["sums"]

    @property
    def counts(self) -> Noisy:
        """The noisy counts of the same records, with independent noise."""
        return self["counts"]

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
        return decimals.least(self.epsilon)

    def mean(
        self, by: Columns | None = None, *, alpha: Real | None = 0.05, simultaneous: bool = False
    ) -> Any:
        """Return the mean of the values in each group: its sum over its count.

        Parameters
        ----------
        by : column name or tuple of column names, optional
            The columns to keep; by default all, and of groups all or none. ``()`` is the mean of
            all records, which for groups needs the row for the rest.
        alpha, simultaneous
            As in :meth:`NoisyTable.intervals`. None gives estimates alone.

        Returns
        -------
        data frame
            The columns of `by`, estimate, lower and upper. The intervals are within the bounds of
            values. A group has no estimate, but NaN, if its count cannot be distinguished from 0 at
            level 0.05. For tables read from files, use :meth:`NoisyTable.per`, which does not know
            the bounds.

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
