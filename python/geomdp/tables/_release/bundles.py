"""One table at several precisions, for the privacy loss of the finest."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp.tables._facts import tier_names
from geomdp.tables._pictures import charts
from geomdp.tables._release import steps
from geomdp.tables._release.publishing import publish
from geomdp.tables._results.groups import NoisyGroups
from geomdp.tables._results.noisy_table import NoisyTable
from geomdp.tables._results.released import rehearse

if TYPE_CHECKING:
    from fractions import Fraction
    from os import PathLike

    from matplotlib.axes import Axes

    from geomdp.tables._facts.layout import Layout

#: What one call has released: whole tables, or groups.
Noisy = TypeVar("Noisy", bound=NoisyTable | NoisyGroups)


@notebook.showable
class Bundle(Mapping[str, Noisy], Generic[Noisy]):
    """Tables that one call released, by name: each may be saved, asked and shown by itself."""

    __slots__ = ("_tables",)

    def __init__(self, tables: Mapping[str, Noisy]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> Noisy:
        if name not in self._tables:
            raise KeyError(f"{parameters.shown(name)}: give one of {', '.join(self._tables)}")
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def save(
        self,
        path: Mapping[str, str | PathLike[str]],
        *,
        overwrite: bool = False,
        rounded: Integer | str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write each table to a file of its own, as :meth:`NoisyTable.save` does.

        All paths are checked before the first file is written.

        Parameters
        ----------
        path : mapping of names to paths
            A file for each table. ``tiers["public"].save(path)`` writes one of them.
        overwrite, rounded, about
            As in :meth:`NoisyTable.save`, for all files.

        Examples
        --------
        >>> import os, tempfile
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> tiers = table.release(tiers={"public": "0.1", "researchers": 1})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tiers.save({"public": f"{folder}/public.csv", "researchers": f"{folder}/fine.csv"})
        ...     files = sorted(os.listdir(folder))
        >>> files
        ['fine.csv', 'fine.csv.json', 'public.csv', 'public.csv.json']

        """
        parameters.check_bool("overwrite", overwrite)
        paths = paths_of("path", path, self)
        for name, each in paths.items():
            rehearse(self[name], each, rounded, name="path", overwrite=overwrite)
        for name, each in paths.items():
            self[name].save(each, overwrite=overwrite, rounded=rounded, about=about)

    def __repr__(self) -> str:
        counts = notebook.many(self[[*self][-1]]._values.size, "count")
        each = ", ".join(
            f"{name} at epsilon {parameters.text(table.epsilon)}" for name, table in self.items()
        )
        return f"<{type(self).__name__} of {counts}: {each}>"

    def _repr_html_(self) -> str:
        return notebook.preformatted(repr(self))


class NoisyTiers(Bundle[NoisyTable]):
    """One table at several precisions, made by ``table.release(tiers=...)``.

    A mapping from the name of each tier, the coarsest first, to a :class:`NoisyTable` that can be
    saved, asked and shown like any other. Whoever sees several of them loses the greatest of their
    epsilons and no more. The noise of a tier is that of the next finer one with more added, so they
    are not independent: the finest tier that a reader has is all that the reader needs.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
    >>> tiers = table.release(tiers={"public": "0.1", "researchers": 1})
    >>> tiers
    <NoisyTiers of 2 counts: public at epsilon 0.1, researchers at epsilon 1>
    >>> tiers["public"].privacy_loss(), len(tiers["researchers"].intervals(alpha=0.05))
    (0.1, 2)

    """

    __slots__ = ()

    @property
    def finest(self) -> NoisyTable:
        """The table of the greatest epsilon."""
        return [*self._tables.values()][-1]

    @property
    def id(self) -> str:
        """The id of the release, which all tiers share."""
        return self.finest.id

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of all tiers together for one individual: that of the finest."""
        return self.finest.epsilon

    def plot(self, by: Any = None, *, alpha: Real = 0.05, ax: Axes | None = None) -> Axes:
        """Draw the same rows at each precision, the finest first, as dots with intervals.

        Of more rows than fit, the largest by the finest tier are drawn, with intervals that hold
        for all rows of a tier at once, and the picture says so.

        Parameters
        ----------
        by : column name, optional
            The column to draw, summed over all others; by default the first.
        alpha
            The probability that an interval misses or, where all hold at once, that any of those
            of its tier does.
        ax
            As in :func:`geomdp.tables.plot.pmf`.

        Returns
        -------
        Axes
            Names from top to bottom against counts.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> axes = table.release(tiers={"public": "0.1", "office": 1}).plot()
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['yes', 'no']

        """
        first = next(iter(self.finest.design.levels), ()) if by is None else by
        found = {name: self[name]._drawn(first, alpha) for name in reversed([*self])}
        sides, labels, _, _ = next(iter(found.values()))
        if len(labels) != 1:
            raise ValueError(f"by = {parameters.shown(by)} is not accepted: give one column")
        noise = "; ".join(
            f"{name} has epsilon {parameters.text(self[name].epsilon)}" for name in found
        )
        stated = self.finest._stated(labels, alpha)._replace(
            noise=f"Noise: {noise}. Use the most precise one that you have, alone."
        )
        ends = {name: each[3] for name, each in found.items()}
        return charts.published_tiers(sides[0], ends, stated, ax=ax)


def release(
    design: Layout,
    held: tuple[Any, Any],
    tiers: Mapping[str, Real],
    *,
    corrects: Any = None,
    save: Any = None,
    **how: Any,
) -> NoisyTiers:
    """Return the tiers of a table, after they are booked once: :meth:`Table.release`.

    What the table holds is its library, and its cells with records and their counts.
    """
    epsilons = tier_names.checked(tiers)
    paths = paths_of("save", save, tiers)
    replaced = corrects.finest if isinstance(corrects, NoisyTiers) else corrects
    prepared = [
        steps.prepare(
            design,
            None,
            epsilon=epsilon,
            corrects=replaced,
            tiers=tiers,
            tier=tier,
            **how,
        )
        for tier, epsilon in epsilons.items()
    ]
    finest = prepared[-1]
    stated = tuple((tier.name, epsilon) for tier, epsilon in epsilons.items())
    library, occupied = held

    def made(drawn: Any, ids: Any) -> NoisyTiers:
        found: Any = (
            steps.made(each, library, [counts], *ids)
            for each, counts in zip(prepared, drawn, strict=True)
        )
        return NoisyTiers(dict(zip(tiers, found, strict=True)))

    draw = partial(steps.draw_tiers, prepared, occupied)
    zeros = [counts for each in prepared for counts in steps.zeros(each)]
    return publish([finest], draw, made, zeros, save=paths or None, tiers=stated, **how)


def paths_of(parameter: str, given: Any, names: Collection[str]) -> dict[str, Any]:
    """Return the file of each table, all different, or none for None."""
    if given is None:
        return {}
    wanted = f"a path for each of {parameters.shown([*names])}"
    if not isinstance(given, Mapping):
        raise TypeError(parameters.foreign(parameter, given, f"a mapping with {wanted}"))
    if given.keys() != {*names}:
        raise ValueError(f"{parameter} has other names than the tables: give {wanted}")
    places = []
    for each in given.values():
        if not isinstance(each, str | os.PathLike):
            raise TypeError(parameters.foreign(parameter, each, wanted))
        with suppress(ValueError):  # What no system can hold is refused where it is rehearsed.
            places.append(os.path.realpath(each))
    if len({*places}) < len(places):
        raise ValueError(f"{parameter} does not have different paths: give {wanted}")
    return {name: given[name] for name in names}
