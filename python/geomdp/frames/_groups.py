"""Groups that the noise chose: of all cells of a design, those with large noisy counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook
from geomdp._analysis import tails, thresholds
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.frames import _format, _native
from geomdp.frames._released import Released
from geomdp.mechanism import GeometricMechanism

if TYPE_CHECKING:
    from geomdp.frames._design import Design
    from geomdp.frames._native import Library

#: The most cells of a design that are gone through; beyond, it takes hours.
MOST_CELLS = 10**12
#: Cells at a time: they fit in the cache, and are enough for threads.
_CHUNK = 2**20


class NoisyGroups(Released):
    """The groups of a release whose noisy counts reached a threshold.

    ``Table.release(at_least=...)`` makes one, and :func:`read_groups` reads one from a file. All
    cells of the design got noise, so the choice of those that appear costs no privacy, and empty
    cells may be among them: :meth:`Design.spurious` says how many to expect. It holds no exact
    count.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import frames
    >>> visits = pd.DataFrame({"page": ["home"] * 900 + ["help"] * 70, "hour": 7})
    >>> design = frames.Design({"page": ["home", "help", "blog"], "hour": range(24)})
    >>> noisy = design.count(visits).release(epsilon=1, at_least=25)
    >>> noisy.frame["page"].tolist(), noisy.privacy_loss
    (['home', 'help'], 1.0)

    """

    __slots__ = ("_at_least", "_cells")

    def __init__(
        self,
        design: Design,
        mechanism: GeometricMechanism,
        label: str | None,
        counts: NDArray[np.int64],
        library: Library | None,
        *,
        cells: NDArray[np.int64],
        at_least: int,
    ) -> None:
        super().__init__(design, {(): mechanism}, label, counts, library)
        self._cells, self._at_least = cells, at_least

    @property
    def mechanism(self) -> GeometricMechanism:
        """The mechanism of all cells."""
        return self._mechanisms[()]

    @property
    def at_least(self) -> int:
        """The threshold: noisy counts below it are not here."""
        return self._at_least

    def intervals(self, alpha: Real, *, simultaneous: bool = False) -> Any:
        """Return the frame with an interval for each true count, in columns lower and upper.

        A group is here because its noise was not too low, so its noisy count is too high on
        average. These intervals allow for that: given that a group appears, its interval misses
        with probability at most `alpha`. A lower end of 0 says that the group may be empty. The
        noise is taken as discrete Laplace (``docs/proofs.md``, section 18).

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
        >>> from geomdp import frames
        >>> design = frames.Design({"page": ["home", "help", "blog"]})
        >>> table = design.count(pd.DataFrame({"page": ["home"] * 900}))
        >>> noisy = table.release(epsilon=1, at_least=25).intervals(alpha=0.05)
        >>> (noisy["upper"] - noisy["count"]).tolist()
        [3]

        """
        parameters.check_bool("simultaneous", simultaneous)
        level = parameters.significance("alpha", alpha)
        counts = self._counts
        if simultaneous and counts.size:
            level = tails.share(level, counts.size)
        lower = upper = counts
        if self.mechanism.rate != math.inf:
            rate = float(self.mechanism.rate)
            lower, upper = thresholds.interval(rate, counts, self._at_least, level)
        return self._framed(lower=lower, upper=upper)

    def top(self, k: Integer) -> Any:
        """Return the k groups with the greatest noisy counts, or all if there are fewer.

        It costs no privacy, whatever k is. Equal counts are in the order of the design.

        Parameters
        ----------
        k : int
            At least 1.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no"] * 500 + ["yes"] * 900), ["no", "yes"])
        >>> table.release(epsilon=1, at_least=25).top(1).iloc[0, 0]
        'yes'

        """
        counts = self._counts
        greatest = np.argsort(-counts, kind="stable")[: parameters.at_least("k", k, 1)]
        columns: dict[str, Any] = self._design._columns_of(self._cells[greatest])
        columns[self._design.name] = counts[greatest]
        return _native.made(columns, self._library)

    @property
    def _form(self) -> dict[str, Any]:
        return {"format": _format.GROUPS, "at_least": self._at_least}

    def _columns(self) -> dict[str, Any]:
        return self._design._columns_of(self._cells)

    def _title(self) -> str:
        return (
            f"{_notebook.many(len(self._cells), 'group')} of {self._design.cells}, each with a "
            f"noisy count of at least {self._at_least}"
        )


def reaching(
    mechanism: GeometricMechanism,
    occupied: tuple[NDArray[np.int64], NDArray[np.int64]],
    size: int,
    at_least: int,
    threads: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells whose noisy counts reach a threshold, and these counts.

    `occupied` are the distinct cells with records, in order, and their exact counts. Every one of
    the `size` cells gets noise.
    """
    cells, records = occupied
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    ends = np.searchsorted(cells, np.arange(_CHUNK, size + _CHUNK, _CHUNK)).tolist()
    counts = np.empty(min(_CHUNK, size), np.int64)
    start = 0
    for first, end in zip(range(0, size, _CHUNK), ends, strict=True):
        chunk = counts[: size - first]
        chunk.fill(0)
        chunk[cells[start:end] - first] = records[start:end]
        mechanism.release(chunk, out=chunk, threads=threads)
        reached = np.flatnonzero(chunk >= at_least)
        found.append((reached + first, chunk[reached]))
        start = end
    chosen, noisy = zip(*found, strict=True)
    return np.concatenate(chosen), np.concatenate(noisy)
