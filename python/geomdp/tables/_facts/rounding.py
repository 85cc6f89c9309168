"""Counts that are published to multiples or middles: the rule, and how far it moves a count.

Noisy counts are rounded, so it is post-processing and costs no privacy. What readers see is the
noisy count and an error that no noise has: at most half a step, whatever the counts are. Intervals
add it for each count that a sum takes (``docs/proofs.md``, lemma 16c).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters

#: The greatest step: sums of errors stay far from the limits of int64.
MOST = 2**31
_MIDDLE = re.compile("middle of ([1-9][0-9]{0,9})")
_LIMITS = np.iinfo(np.int64)


def step(value: Any) -> int | str:
    """Return what counts are rounded to, a number or a text such as "middle of 6", or refuse it."""
    found = _MIDDLE.fullmatch(value) if isinstance(value, str) else None
    number = parameters.integer("rounded", int(found[1]) if found else value)
    if not 2 <= number <= MOST:
        wanted = "an int from 2 to 2**31, or a text such as 'middle of 6'"
        raise ValueError(parameters.refusal("rounded", value, wanted))
    return value if found else number


def size(of: int | str) -> int:
    """Return how far multiples, or middles, are from each other."""
    return of if isinstance(of, int) else int(of.rpartition(" ")[2])


def said(of: int | str) -> str:
    """Return in words what counts were rounded to."""
    kind = "multiples" if isinstance(of, int) else "the middles of groups"
    return f"{kind} of {size(of):,}"


def half(of: int | str | None) -> int:
    """Return the most that rounding moves an integer: half a step, rounded down."""
    return 0 if of is None else size(of) // 2


def nearest(counts: NDArray[np.int64], to: int | str) -> NDArray[np.int64]:
    """Return the nearest multiples, and of two that are equally near, the even one; or the middles.

    The middle of 6 is 3 for counts from 1 to 6, 9 from 7 to 12, and so on, -3 from -5 to -1, and 0
    for 0. A count at a limit of int64, which noise may have moved there, stays; one whose multiple
    is beyond a limit becomes that limit.
    """
    step = size(to)
    times, rest = np.divmod(counts, step)
    if isinstance(to, str):
        moves = np.where(counts == 0, 0, (step - rest) % step - step // 2)
    else:
        up = (2 * rest > step) | ((2 * rest == step) & (times % 2 == 1))
        moves = np.where(up, step - rest, -rest)
    return moved(counts, np.where(_at_limit(counts), 0, moves))


def is_nearest(counts: NDArray[np.int64], to: int | str) -> bool:
    """Return whether these are counts that :func:`nearest` returns."""
    step = size(to)
    fine = counts % step == (-(step // 2) % step if isinstance(to, str) else 0)
    if isinstance(to, str):
        fine |= counts == 0
    return bool((_at_limit(counts) | fine).all())


def moved(
    counts: NDArray[np.int64],
    moves: NDArray[np.int64] | int,
    bounds: tuple[int, int] = (_LIMITS.min, _LIMITS.max),
) -> NDArray[np.int64]:
    """Return counts moved by so much, up to the bounds."""
    room = _LIMITS.min - np.minimum(counts, 0), _LIMITS.max - np.maximum(counts, 0)
    return np.asarray(np.clip(counts + np.clip(moves, *room), *bounds))


def added(*tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of two tables of counts.

    A count at a limit of int64, which noise may have moved there, stays at a limit, and a sum
    beyond one becomes it.
    """
    one, other = tables
    found = moved(one, other)
    for each in tables:
        found = np.where(_at_limit(each), each, found)
    return found


def _at_limit(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray((counts == _LIMITS.min) | (counts == _LIMITS.max))
