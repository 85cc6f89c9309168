"""Rows that noise has picked: the groups of one release or two, and intervals that allow for it.

Each release has intervals of its own for these rows, and every answer takes their ends. So its
level is that of all intervals that it takes (``docs/proofs.md``, lemma 20c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import Real
from geomdp.tables._answers.selection import Listed, Rows
from geomdp.tables._math import ends
from geomdp.tables._math.ends import Ends

_Number: TypeAlias = int | float | Fraction


class Found(NamedTuple):
    """Estimates, and the ends of their intervals if there is an alpha."""

    points: NDArray[Any]
    ends: Ends | None

    def columns(self, name: str = "estimate") -> dict[str, NDArray[Any]]:
        """Return them by the names of columns."""
        return {name: self.points, **({} if self.ends is None else self.ends._asdict())}

    def scaled(self, factors: Fraction | NDArray[Any]) -> Found:
        """Return both times public factors."""
        points = self.points * np.asarray(factors, np.float64)
        return Found(points, None if self.ends is None else self.ends.scaled(factors))


class Operand(NamedTuple):
    """What one release says about the rows."""

    #: Its estimates, and intervals of a level, or none.
    found: Callable[[Fraction | None], Found]
    #: Whether its noise picks rows.
    picks: bool = False
    #: Whether it has noise, so that its intervals need a part of the level.
    noisy: bool = True


class Picked:
    """Rows that were picked, and what one release or two say about each."""

    def __init__(self, rows: Listed | Rows, *operands: Operand) -> None:
        self.rows, self.operands = rows, operands

    def linear(
        self,
        factors: Sequence[int],
        alpha: Real | None,
        simultaneous: bool,
        limits: tuple[_Number, _Number],
    ) -> Found:
        """Return weighted sums of what the releases say, by integers."""
        found = self._each(alpha, simultaneous)
        points = [each.points for each in found]
        if len(points) > 1:  # Their sums may be beyond int64.
            points = [each.astype(object) for each in points]
        summands = [f * each for f, each in zip(factors, points, strict=True)]
        whole = summands[0] if len(points) == 1 else np.asarray(sum(summands), np.float64)
        pairs = [[*map(_exact, each.ends)] for each in found if each.ends is not None]
        if not pairs:
            return Found(whole, None)

        def summed(upper: bool) -> Iterator[_Number]:
            # A negative factor takes the other end.
            each = zip(factors, pairs, strict=True)
            parts = [[f * end for end in pair[(f > 0) is upper]] for f, pair in each]
            return map(sum, zip(*parts, strict=True))

        own = Ends.of(summed(upper=False), summed(upper=True), self.rows.shape)
        return Found(whole, own.within(*limits))

    @property
    def floats(self) -> list[NDArray[np.float64]]:
        """The estimates of each release, NaN for what it left out."""
        return [each.points.astype(np.float64) for each in self._each(None, simultaneous=False)]

    def told(self, level: Fraction) -> NDArray[np.bool_]:
        """Return where what the last release counts is told from 0."""
        found = self.operands[-1].found(level)
        assert found.ends is not None
        return np.asarray(found.ends.lower > 0)

    def quotients(
        self,
        alpha: Real,
        simultaneous: bool,
        limits: Sequence[float],  # noqa: ARG002 (no interval is beyond one alone)
    ) -> Ends:
        """Return intervals for the ratios of what two releases count."""
        found = [each.ends for each in self._each(alpha, simultaneous) if each.ends is not None]
        above, below = (zip(*map(_exact, each), strict=True) for each in found)
        return Ends.of_quotients(above, below, self.rows.shape)

    def _each(self, alpha: Real | None, simultaneous: bool) -> list[Found]:
        """Return what each release says, with intervals that hold together if there is an alpha.

        If two releases pick rows, a row of either is there for one and perhaps left out of the
        other, and each has a quarter of its level.
        """
        parameters.check_bool("simultaneous", simultaneous)
        if alpha is None:
            return self._found(None)
        given = parameters.significance("alpha", alpha)
        many = max(1, sum(each.noisy for each in self.operands))
        if simultaneous:
            given = ends.level(given, max(self.rows.size, 1), independent=many == 1)
        level = given / (many * max(1, sum(each.picks for each in self.operands)))
        return self._found(level)

    def _found(self, level: Fraction | None) -> list[Found]:
        """Return what each release says, in the shape of the rows."""
        shape, found = self.rows.shape, [each.found(level) for each in self.operands]
        return [
            Found(
                np.broadcast_to(points, shape),
                None if both is None else Ends(*(np.broadcast_to(x, shape) for x in both)),
            )
            for points, both in found
        ]


def _exact(values: NDArray[Any]) -> list[_Number]:
    """Return ends as exact numbers, or infinite floats."""
    return [
        Fraction(x) if isinstance(x, float) and math.isfinite(x) else x
        for x in values.reshape(-1).tolist()
    ]
