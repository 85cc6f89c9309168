"""Counts that are published to multiples of a number: the rule, and how far it moves a count.

Noisy counts are rounded, so it is post-processing and costs no privacy. What readers see is the
noisy count and an error that no noise has: at most half a step, whatever the counts are. Intervals
add it for each count that a sum takes (``docs/proofs.md``, lemma 16c).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters

#: The greatest step: sums of errors stay far from the limits of int64.
MOST = 2**31
_LIMITS = np.iinfo(np.int64)


def step(value: Any) -> int:
    """Return the number of whose multiples counts are to be, or refuse it."""
    found = parameters.integer("rounded", value)
    if not 2 <= found <= MOST:
        raise ValueError(parameters.refusal("rounded", value, "an int from 2 to 2**31"))
    return found


def half(of: int | None) -> int:
    """Return the most that rounding moves an integer: half a step, rounded down."""
    return 0 if of is None else of // 2


def nearest(counts: NDArray[np.int64], to: int) -> NDArray[np.int64]:
    """Return the nearest multiples, and of two that are equally near, the even one.

    A count at a limit of int64, which noise may have moved there, stays; one whose multiple is
    beyond a limit becomes that limit.
    """
    times, rest = np.divmod(counts, to)
    up = (2 * rest > to) | ((2 * rest == to) & (times % 2 == 1))
    moves = np.where(up, to - rest, -rest)
    return moved(counts, np.where(_at_limit(counts), 0, moves))


def is_nearest(counts: NDArray[np.int64], to: int) -> bool:
    """Return whether these are counts that :func:`nearest` returns."""
    return bool((_at_limit(counts) | (counts % to == 0)).all())


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
