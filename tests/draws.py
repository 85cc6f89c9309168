"""Draws of one count, and statistical tests of their exact distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from geomdp import GeometricMechanism
from statistics_ import rejects
from unsigned import limits

Counts: TypeAlias = NDArray[Any]
#: The probability of the outputs from first to last; None means no end.
Mass: TypeAlias = Callable[[int | None, int | None], float]

DRAWS = 10**7


def mass_of(distribution: Any) -> Mass:
    """Return the probabilities by scipy's formulas."""

    def mass(first: int | None, last: int | None) -> float:
        below = 0.0 if first is None else distribution.cdf(float(first - 1))
        return float((1.0 if last is None else distribution.cdf(float(last))) - below)

    return mass


def censored(mass: Mass, shift: int, lower: int, upper: int) -> Mass:
    """Return the distribution of shift + Z, clamped."""

    def cell(first: int | None, last: int | None) -> float:
        assert first is not None
        assert last is not None
        return mass(
            None if first == lower else first - shift,
            None if last == upper else last - shift,
        )

    return cell


def cuts(shift: int, scale: float, lower: int, upper: int) -> list[int]:
    """Return where cells begin: single outputs near centre and bounds, else a tenth of a scale."""
    step = max(1, round(scale / 10))
    reach = max(30, 17 * math.ceil(scale / step))
    near = {shift + k for k in range(-3, 5)}
    far = {shift + sign * k * step for k in range(reach) for sign in (-1, 1)}
    edges = {lower + 1, lower + 2, upper, upper - 1}
    return [lower, *sorted(cut for cut in near | far | edges if lower < cut <= upper)]


def refuses(outputs: Counts, mass: Mass, first: list[int], upper: int) -> bool:
    """Return whether outputs are outside the bounds, or a chi-square test rejects these masses."""
    lower = first[0]
    if not lower <= int(outputs.min()) <= int(outputs.max()) <= upper:
        return True
    last = [cut - 1 for cut in first[1:]] + [upper]
    expected = [mass(*ends) * outputs.size for ends in zip(first, last, strict=True)]
    cells = np.searchsorted(np.array(first[1:], outputs.dtype), outputs, side="right")
    observed = np.bincount(cells, minlength=len(first)).tolist()
    return rejects(observed, expected)


@dataclass(frozen=True)
class Setting:
    """Draws of one count and their distribution."""

    count: int
    dtype: str
    scale: float | Fraction
    bounds: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.dtype} {self.count} scale {float(self.scale)} bounds {self.bounds}"

    def limits(self) -> tuple[int, int]:
        info = np.iinfo(self.dtype)
        return self.bounds or (int(info.min), int(info.max))

    def draw(self) -> Counts:
        bounds = self.bounds or limits(self.dtype)
        mechanism = GeometricMechanism.from_scale(self.scale, bounds)
        return mechanism.release(np.full(DRAWS, self.count, self.dtype))

    def refuses(self, outputs: Counts) -> bool:
        lower, upper = self.limits()
        shift = min(max(self.count, lower), upper)
        mass = mass_of(stats.dlaplace(float(1 / Fraction(self.scale))))
        first = cuts(shift, float(self.scale), lower, upper)
        return refuses(outputs, censored(mass, shift, lower, upper), first, upper)
