"""A row for the groups that a threshold left out: their sum, with noise of its own.

The noisy counts decide which groups are left out. Given these, their sum is one more question about
the data, with its part of epsilon, so its noise is independent of the choice (``docs/proofs.md``,
theorem 20a).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._noise import Noise, exact_loss
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import layout, rounding
from geomdp.tables._facts.exact_sums import among, saturated
from geomdp.tables._math.ends import Ends

if TYPE_CHECKING:
    from geomdp.tables._facts.layout import Layout

_Ints = NDArray[np.int64]


class Rest(NamedTuple):
    """The row: its label in each column, and its noise."""

    labels: tuple[Any, ...]
    mechanism: GeometricMechanism

    def loss(self, design: Layout) -> Fraction | float:
        """Return the exact privacy loss of the row for one individual."""
        return exact_loss(self.mechanism, layout.change_of_sum(design))

    def below(self, columns: Mapping[str, Coded]) -> dict[str, Coded]:
        """Return columns of groups with one more row."""
        return {
            name: Coded([*each.items, label], np.append(each.places, len(each.items)))
            for (name, each), label in zip(columns.items(), self.labels, strict=True)
        }


def ends_of(
    noise: Noise,
    counts: _Ints,
    rounded: int | str | None,
    level: Fraction,
    limits: tuple[int | float, int | float],
) -> Ends:
    """Return intervals of counts whose noise is independent of the choice of groups.

    A noisy count beyond a limit of true counts has the interval of the limit.
    """
    off = rounding.half(rounded)
    base = Ends(counts, counts).within(*limits).lower
    low, high = (
        as_mechanism(noise).confidence_interval(rounding.moved(base, move), level)[side]
        for side, move in enumerate((-off, off))
    )
    return Ends(low, high).within(*limits)


def asked(design: Layout, rest: Any, epsilon: Any) -> tuple[Rest | None, Any]:
    """Return the row that is asked for, if one is, and the epsilon of the groups, or refuse it."""
    if rest is None:
        return None, epsilon
    if not isinstance(rest, tuple) or len(rest) != 2:
        wanted = 'a pair of a label and its share of epsilon, such as ("others", 0.1)'
        raise TypeError(parameters.foreign("rest", rest, wanted))
    try:
        part = Fraction(parameters.in_range("rest", rest[1], "", lambda x: 0 < x < 1))
    except (TypeError, ValueError, OverflowError):
        # Do not show the share: the pair may be two counts.
        raise ValueError(
            "rest has a share that is not accepted: give a pair of a label and a number above 0 "
            "and below 1"
        ) from None
    whole = parameters.read(parameters.loss("epsilon", epsilon))
    noise = GeometricMechanism(whole.part(part), layout.change_of_sum(design))
    noise.certificate(np.int64)  # One without a plan is refused here.
    return Rest(labels(design, rest[0]), noise), whole.part(1 - part)


def labels(design: Layout, given: Any) -> tuple[Any, ...]:
    """Return the label of the row in each column, unless it is a level, or of another type."""
    columns = [axis.label for axis in design._axes.faces]
    by_column = given if isinstance(given, Mapping) else dict.fromkeys(columns, given)
    if by_column.keys() != set(columns):
        raise ValueError(f"rest has other columns: give a label for each of {columns}")
    found = []
    for axis in design._axes.faces:
        label = by_column[axis.label]
        if label is None or (isinstance(label, float) and label != label):  # noqa: PLR0124
            raise ValueError(f"rest of {axis.label!r} is null: give a label")
        if axis.has(label):
            raise ValueError(
                f"rest has {parameters.shown(label)}, which is a level of {axis.label!r}: give "
                "another label"
            )
        name = f"levels of {axis.label!r} with the label of rest"
        found.append(_levels.checked(name, [*axis.typed, label])[-1])
    return tuple(found)


def summed(occupied: tuple[_Ints, _Ints], shown: _Ints) -> _Ints:
    """Return the exact sum of the cells that are not shown, as an array of one count."""
    cells, records = occupied
    left = records[~among(cells, shown)]
    return np.asarray(saturated(left, lambda each: each.sum(keepdims=True, dtype=np.int64)))
