"""Limits on the contributions of individuals, chosen from noisy counts of individuals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Required,
    TypeAlias,
    Unpack,
    get_args,
)

import numpy as np
from numpy.typing import NDArray

from geomdp import accuracy
from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp.tables._count import counting
from geomdp.tables._count.contributions import sorted_by, starts
from geomdp.tables._design import Design
from geomdp.tables._facts import layout
from geomdp.tables._facts.exact_sums import merged, numbered
from geomdp.tables._facts.layout import MOST_VALUE
from geomdp.tables._release import publishing
from geomdp.tables._release.steps import Publishing
from geomdp.tables._release.table import Table

if TYPE_CHECKING:
    from geomdp.tables._columns.native import Library
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._results.noisy_table import NoisyTable

Limit: TypeAlias = Literal["l0", "linf", "l1", "bounds"]
_Ints: TypeAlias = NDArray[np.int64]
#: The limits of a design of which only one is chosen.
_OWN = frozenset(("l0", "linf", "values"))
#: Counts the rows of some data for a design and a column, by a function as :func:`_counting.tally`.
_Count: TypeAlias = Callable[[Design, Any, Any], "tuple[Library, tuple[_Ints, _Ints]]"]


class Options(Publishing, total=False):
    """The arguments of :func:`choose_limit` that are given by name."""

    epsilon: Required[Real]
    share: Real
    column: Any
    limits: Sequence[Integer] | None


@notebook.showable
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ChosenLimit:
    """A limit on the contributions of individuals, and the noisy counts that it was chosen from.

    :func:`choose_limit` makes one. It contains only noisy counts, so all of it may be published.

    Attributes
    ----------
    name : str
        What is limited: ``"l0"``, ``"linf"``, ``"l1"`` or ``"bounds"``.
    limit : int
        The limit; for ``"bounds"``, the upper bound, or the lower one with the sign changed.
    share : Fraction
        The share of individuals who should keep all their records.
    design : Design
        The design with this limit; for ``"bounds"``, which go to :meth:`Design.sum`, the design as
        it was given.
    table : NoisyTable
        The noisy numbers of individuals by the least limit that keeps all their records.
        Individuals in the last row need that limit or a greater one.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> visits = pd.DataFrame({"who": range(900), "town": "Rome"})
    >>> design = tables.Design({"town": ["Oslo", "Rome"]}, individual="who", l0=2)
    >>> tables.choose_limit(design, visits, "l0", epsilon=1)
    <ChosenLimit: l0 = 1, for 95% of individuals, privacy loss 1>

    """

    name: Limit
    limit: int
    share: Fraction
    design: Design
    table: NoisyTable

    def cut(self, alpha: Real = 0.05) -> Any:
        """Return how many individuals lose records at each limit.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that any of the intervals misses, so they also hold for a limit that you
            choose after looking at them.

        Returns
        -------
        data frame
            A row for each limit except the greatest, about which the table says nothing: the noisy
            number of individuals who need a greater limit, with an interval, and the share of
            individuals who keep all their records, or NaN if the noisy number of all is not
            positive.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> visits = pd.DataFrame({"who": range(900), "town": "Rome"})
        >>> design = tables.Design({"town": ["Oslo", "Rome"]}, individual="who", l0=2)
        >>> chosen = tables.choose_limit(design, visits, "l0", epsilon=1)
        >>> list(chosen.cut(alpha=0.05).columns)
        ['l0', 'estimate', 'lower', 'upper', 'kept']

        """
        total, above = _above(self.table)
        level = parameters.significance("alpha", alpha) / max(len(above), 1)
        [mechanism] = self.table.mechanisms.values()
        cells = range(len(above), 0, -1)
        reaches = [accuracy.sum_accuracy(mechanism, n, level) for n in cells]
        pairs = list(zip(above, reaches, strict=True))
        kept = [1 - each / total if total > 0 else math.nan for each in above]
        return self.table._made(
            {
                self.name: np.array(self.table.design.levels[self.name][:-1], np.int64),
                "estimate": np.array(above, np.int64),
                "lower": np.array([max(n - reach, 0) for n, reach in pairs], np.int64),
                "upper": np.array([max(n + reach, 0) for n, reach in pairs], np.int64),
                "kept": np.array(kept, np.float64),
            }
        )

    def __repr__(self) -> str:
        loss = parameters.text(self.table.epsilon)
        return (
            f"<ChosenLimit: {self.name} = {self.limit}, for {float(100 * self.share):.6g}% of "
            f"{self.table.design.name}, privacy loss {loss}>"
        )


def choose_limit(  # numpydoc ignore=PR02
    design: Design,
    data: Any,
    limit: Limit,
    **options: Unpack[Options],
) -> ChosenLimit:
    """Choose a limit on the contributions of individuals, for a part of epsilon.

    Each individual is counted once, by the least of some public limits that keeps all of its
    records, and these counts are released at the cost of `epsilon`. The choice follows from them:
    it is the least limit for which the noisy number of individuals above it is at most
    ``1 - share`` of the noisy number of all, or else the greatest.

    The limit is thus a quantile over individuals, as in adaptive clipping (Andrew et al. 2021),
    taken from a noisy histogram; for values, the histogram is by powers of 2, as for the bounds of
    Wilson et al. 2020. A higher share cuts fewer records, and a lower one needs less noise.
    ``docs/guides/limits.md`` says when to depart from the default, and ``docs/proofs.md``, lemma
    14f, what the choice costs.

    Parameters
    ----------
    design : Design
        The design of the table to be released. Its own limit is the greatest that is considered.
    data : data frame
        As for :meth:`Design.count`. Only records that the design counts matter.
    limit : {"l0", "linf", "l1", "bounds"}
        What to choose: the most cells of an individual; the most records in one of its cells; the
        most records in all its cells or, with `column`, the most that the absolute values of its
        records add up to; or a bound for :meth:`Design.sum`, from the greatest absolute value that
        a record of an individual, or the sum of those in a cell, has; without individuals, from
        each record. A bound serves as ``(0, limit)`` or, for values that may be negative, as
        ``(-limit, limit)``: the sensitivity is that of the larger end.
    epsilon : number or str
        The privacy loss of the choice. It adds to that of the table's own release.
    share : number or str
        The share of individuals that should keep all of their records, above 0 and below 1.
    column : column name, optional
        The values, for ``"bounds"``, or for an ``"l1"`` of values instead of records.
    limits : sequence of int, optional
        The limits to choose from, increasing, from 1 to at most that of the design. By default all
        of these, or for values the powers of 2 below it and the limit itself; for ``"bounds"``, up
        to 2**32. They are public, so do not take them from the data.
    budget, label, threads, corrects, save, rounded, about
        For the table of counts, with the meaning that :meth:`Table.release` gives them.

    Returns
    -------
    ChosenLimit
        The limit, the design with it, and the noisy counts.

    Raises
    ------
    TypeError
        If `data` is not a frame that :meth:`Design.count` takes. Records on a cluster go to
        ``choose_limit`` of :mod:`geomdp.tables.spark`, :mod:`geomdp.tables.dask` or
        :mod:`geomdp.tables.ray`.
    ValueError
        If the design has no individual and `limit` is not ``"bounds"``, if it has another kind of
        limit, if `limits` are above its own, or if the budget does not allow the release.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from geomdp import accounting, tables
    >>> who = np.repeat(range(1000), [1] * 600 + [2] * 380 + [8] * 20)
    >>> visits = pd.DataFrame({"who": who, "town": np.arange(len(who)) % 10})
    >>> design = tables.Design({"town": range(10)}, individual="who", l0=5)
    >>> budget = accounting.Budget(epsilon=2)
    >>> chosen = tables.choose_limit(design, visits, "l0", epsilon=1, budget=budget)
    >>> chosen.limit, chosen.design.l0, budget.remaining
    (2, 2, 1.0)

    """
    counting.check_here(data)
    return chosen(
        design,
        limit,
        lambda design, column, tally: tally(design, data, column)[1:],
        **options,
    )


def chosen(design: Design, limit: Limit, count: _Count, **options: Unpack[Options]) -> ChosenLimit:
    """Return a limit from what :func:`choose_limit` counts, once nothing is refused."""
    if not isinstance(design, Design):
        raise TypeError(parameters.foreign("design", design, "a Design"))
    how: dict[str, Any] = dict(options)
    column, budget = how.pop("column", None), how.pop("budget", None)
    share, limits = how.pop("share", "0.95"), how.pop("limits", None)
    _check(layout.counting(design), limit, column)
    kept = parameters.positive_fraction("share", share)
    if kept >= 1:
        raise ValueError(parameters.refusal("share", share, "a number above 0 and below 1"))
    given = _levels(design, limit, limits, of_values=column is not None)
    # Those of one individual in the table of counts: itself once, or each of its records.
    once = 1 if design.individual is not None else design.l0 * design.linf
    facts = layout.facts(design) | {"name": "individuals" if once == 1 else "records", "l1": once}
    counted = Design({limit: given}, **{key: facts[key] for key in facts if key not in _OWN})
    # Refused before anything is read.
    publishing.check(counted, **how)
    library, found = count(design, column, partial(_tally, limit, given))
    exact = merged(counted, *found)
    table = Table(counted, library, exact).release(budget=budget, **how)
    total, above = _above(table)
    fits = (k for k, more in zip(given, above, strict=False) if more <= (1 - kept) * total)
    found_limit = next(fits, given[-1])
    if limit != "bounds":
        design = Design(**(design._arguments() | {limit: found_limit}))
    return ChosenLimit(limit, found_limit, kept, design, table)


def _tally(
    limit: Limit, given: list[int], design: Layout, data: Any, column: Any
) -> tuple[Layout, Library, tuple[_Ints, _Ints]]:
    """Return how many individuals need each of the limits, as :func:`_counting.tally` does cells.

    All records of an individual are in the data.
    """
    bounds = None if column is None else (-given[-1], given[-1])
    design, library, people, cells, records = counting.groups(design, data, column, bounds)
    needed = _needed(limit, people, cells, records)
    places = np.minimum(np.searchsorted(given, needed), len(given) - 1)
    exact = np.arange(len(given)), np.bincount(places, minlength=len(given))
    return design, library, exact


def _check(design: Design, limit: Any, column: Any) -> None:
    """Refuse a limit that the design does not have."""
    if not isinstance(limit, str) or limit not in get_args(Limit):
        wanted = f"one of {get_args(Limit)}"
        raise ValueError(parameters.refusal("limit", limit, wanted))
    if limit == "bounds" and column is None:
        raise ValueError("column is not given: give that of the values, for limit = 'bounds'")
    if limit in ("l0", "linf") and column is not None:
        raise ValueError(
            f"column {parameters.given(column)} is not accepted for limit = {limit!r}, which "
            "limits no values: give 'bounds' or 'l1', or no column"
        )
    if limit != "bounds" and design.individual is None:
        raise ValueError(
            f"limit = {limit!r} is not accepted without an individual, since each record is then "
            "an individual of its own: give a design with an individual"
        )
    if (limit == "l1") != (design.l1 is not None):
        other = "l0 and linf" if design.l1 is None else "l1, so give limit = 'l1'"
        raise ValueError(f"limit = {limit!r} is not accepted: the design has {other}")
    if limit == "bounds" and design.linf > 1:
        raise ValueError("linf is not accepted for sums: bounds limit what an individual adds")


def _levels(design: Design, limit: Limit, limits: Any, *, of_values: bool) -> list[int]:
    """Return the public limits to choose from."""
    most = MOST_VALUE if limit == "bounds" else min(getattr(design, limit), MOST_VALUE)
    if limits is None:
        if of_values:
            return [*(2**power for power in range((most - 1).bit_length())), most]
        return list(range(1, most + 1))
    wanted = f"increasing ints from 1 to {most}" + ", the limit of the design" * (
        limit != "bounds" and most < MOST_VALUE
    )
    if not isinstance(limits, Sequence) or isinstance(limits, str | bytes):
        raise TypeError(parameters.foreign("limits", limits, f"a list of {wanted}"))
    if odd := [type(each).__name__ for each in limits if not parameters.is_integer(each)]:
        raise TypeError(f"limits with {odd[0]} are not accepted: give {wanted}")
    found = list(map(int, limits))
    if not found or not 1 <= found[0] <= found[-1] <= most or found != sorted({*found}):
        problem = "are empty" if not found else "are not accepted"
        raise ValueError(f"limits {problem}: give {wanted}")
    return found


def _needed(limit: Limit, people: _Ints | None, cells: _Ints, records: _Ints) -> _Ints:
    """Return the least limit that keeps everything of each individual; secret."""
    if people is None:
        return np.abs(records)
    cells = numbered(cells)
    order = sorted_by(people, cells)
    people, cells, records = people[order], cells[order], records[order]
    sizes, new = np.abs(records), starts(people)
    first, owners = np.flatnonzero(new | starts(cells)), np.flatnonzero(new)
    if not first.size:
        return records
    if limit == "l1":
        return np.add.reduceat(sizes, owners)
    # A sum cuts values at its bounds before it adds them up.
    whole, alone = np.abs(np.add.reduceat(records, first)), np.maximum.reduceat(sizes, first)
    by_cell = np.maximum(whole, alone) if limit != "l0" else np.ones_like(first)
    join = np.add if limit == "l0" else np.maximum
    return join.reduceat(by_cell, np.flatnonzero(new[first]))


def _above(table: NoisyTable) -> tuple[int, list[int]]:
    """Return the noisy number of individuals, and of those above each limit but the last."""
    counts: list[int] = table.counts.tolist()
    *above, total = accumulate(reversed(counts))
    return total, above[::-1]
