"""A release that shows no record: it says so, and what the columns of the records should be.

Records count where their values equal levels, so a wrong type in a column counts none of them, and
no value of a record raises an error. The noisy counts show it, at no cost in privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._numerics import sum_tails, tails
from geomdp.tables._columns import levels as _levels

if TYPE_CHECKING:
    from geomdp._noise import Noise
    from geomdp.tables._facts.axes import Axis

#: The level of the interval that decides.
LEVEL = Fraction(1, 100)
#: Sums of up to so many counts have the exact reach, which takes long for more.
_FEW = 1000
_WORDS: dict[type | None, str] = {
    None: "nulls",
    str: "text (str)",
    int: "integers (int)",
    float: "numbers (float)",
    bool: "True or False (bool)",
    date: "dates without a time (datetime.date)",
    datetime: "times without a zone (datetime.datetime)",
}


class EmptyTableWarning(UserWarning):
    """A release may be of no record at all, or have them all in `other`.

    It is given after a release if the 99% interval of the number of its records, of all or of those
    with a listed level of a column that has `other`, reaches 0. This is known from the noisy counts
    alone. Sums of values that may be negative, :meth:`Table.top` and the steps of a stream have no
    such warning. For a table that should be as small as its noise, filter it as any warning.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> text = pd.Series(["1", "2"] * 50, dtype=object)
    >>> table = tables.count(text, [1, 2])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     noisy = table.release(epsilon=5)
    >>> [each.category.__name__ for each in caught]
    ['EmptyTableWarning']

    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def types(axes: Sequence[Axis]) -> str:
    """Return what the columns of records have to be, to equal the levels."""
    return ", ".join(
        f"{' and '.join(map(repr, face.columns))} {_WORDS[_levels.type_of(face.values)]}"
        for axis in axes
        for face in axis.faces
    )


def warn(axes: Sequence[Axis], *, whole: bool) -> None:
    """Warn that no record may have a level of these columns, or no record may be there at all."""
    if not axes:
        return
    what = "no record may have been counted"
    if not whole:
        others = " and ".join(f"{axis.other[0]!r} of {axis.label!r}" for axis in axes)
        what = f"all records may have been counted as {others}"
    parameters.warn(
        f"{what}, since a 99% interval by the noisy counts has 0 in it. Records count where their "
        f"values equal levels, which are of these types by column: {types(axes)}",
        EmptyTableWarning,
    )


def reaches_zero(counts: NDArray[Any], mechanism: Noise) -> bool:
    """Return whether an interval for the sum of the true counts has 0 in it.

    It is that of :func:`geomdp.accuracy.sum_confidence_interval`, or wider where that takes long.
    """
    total, n, level = float(counts.sum(dtype=float)), counts.size, LEVEL
    rate = mechanism.rate if isinstance(mechanism.rate, Fraction) else sum_tails.NO_NOISE
    if mechanism.bounds is not None:
        least = mechanism.bounds[0]
        moved = tails.least(rate, level / 8, n)
        # Those near the lower bound may be of no record, and those at it were moved there.
        far = counts > least + moved
        if counts[far].sum(dtype=float) > moved * np.count_nonzero(far):
            return False
        total -= moved * np.count_nonzero(counts == least) + max(least, 0) * np.count_nonzero(~far)
        level *= Fraction(7, 8)
    if any(total > each for each in sum_tails.chernoffs(rate, {1: n}, level)):
        return False
    return bool(n > _FEW or total <= sum_tails.reach(rate, {1: n}, level))
