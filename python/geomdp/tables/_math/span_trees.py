"""The nodes of k-ary trees over steps: which ones make up a span, and how many that takes.

A node of level j is a span of ``arity**j`` steps that starts at a multiple of its length. It closes
when its last step is over. A span of steps is a sum of closed nodes and of negative ones, that is
a path from its start to its stop along nodes, and the shortest path has the fewest.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._numerics import count_moments

#: The greatest arity that :func:`best` tries.
MOST = 64

#: Neighbouring nodes of a level, from one vertex to another: backwards if they are negative.
Run: TypeAlias = tuple[int, int, int]
_Ints: TypeAlias = NDArray[np.int64]


def height(horizon: int, arity: int) -> int:
    """Return the number of levels with nodes that close within the horizon."""
    levels = 1
    while arity**levels <= horizon:
        levels += 1
    return levels


def path(start: int, stop: int, now: int, arity: int, levels: int) -> list[Run]:
    """Return the fewest nodes that make up a span, of those that close in the first `now` steps.

    From a vertex, the ways to the multiples of ``arity**j`` on both sides lead over those of
    ``arity**(j - 1)`` on both sides. A shortest path climbs so from both ends, and runs along nodes
    of its highest level between.
    """
    up, down = {start: list[Run]()}, {stop: list[Run]()}
    found: list[list[Run]] = []
    for level in range(levels):
        if level:
            up, down = (_climbed(each, level, arity, now) for each in (up, down))
        found += [
            [*ways, (level, x, y), *((j, to, of) for j, of, to in reversed(others))]
            for x, ways in up.items()
            for y, others in down.items()
        ]
    shortest = min(found, key=lambda runs: nodes(runs, arity))
    return [run for run in shortest if run[1] != run[2]]


def nodes(runs: list[Run], arity: int) -> int:
    """Return the number of nodes in these runs."""
    return sum(abs(stop - start) // arity**level for level, start, stop in runs)


def _climbed(below: dict[int, list[Run]], level: int, arity: int, now: int) -> dict[int, list[Run]]:
    """Return the shortest ways to the vertices of a level, given those to the level below."""
    size, [*places] = arity**level, below
    lower, upper = min(places) // size * size, -(-max(places) // size) * size
    return {
        to: min(
            ([*ways, (level - 1, of, to)] for of, ways in below.items()),
            key=lambda runs: nodes(runs, arity),
        )
        for to in {lower, upper}
        if to <= now
    }


def total_nodes(horizon: int, arity: int) -> Iterator[int]:
    """Yield, for each number of levels, how many nodes make up all spans in the horizon together.

    Each span is made up on the day it ends. For a span whose ends are in different nodes of level
    j, and in the same of level j + 1, the shortest path has three parts: from the start to the end
    of its node of level j, whole nodes, and from there to the stop, forwards.
    """
    starts, stops = np.arange(horizon), np.arange(1, horizon + 1)
    # From each start to both ends of its node, and to each stop from the start of its node.
    back, on = np.zeros(horizon, np.int64), np.ones(horizon, np.int64)
    ahead, below = np.zeros(horizon, np.int64), 0
    for level in range(height(horizon, arity)):
        size = arity**level
        first, last = starts // size, stops // size
        sums, each = np.append(0, np.cumsum(on - first - 1)), last + ahead
        yield below + _summed(sums, np.zeros_like(stops), last * size, each)
        below += _summed(sums, stops // (size * arity) * size * arity, last * size, each)
        ahead = ahead + last % arity
        place = first % arity
        to_start = np.minimum(back + place, on + place + 1)
        to_end = np.minimum(back + arity - place, on + arity - place - 1)
        back, on = np.minimum(to_start, to_end + 1), np.minimum(to_end, to_start + 1)


def _summed(sums: _Ints, since: _Ints, until: _Ints, each: _Ints) -> int:
    """Return the sum over all stops, and over the starts from `since` to before `until` of each."""
    return int((sums[until] - sums[since] + (until - since) * each).sum())


def best(horizon: int, epsilon: Fraction) -> tuple[int, int]:
    """Return the arity and number of levels with the least mean variance of all spans.

    A node has noise of rate ``epsilon / levels``. Of several such pairs it is the least.
    """
    variances = [
        count_moments.unbounded(epsilon / levels).variance
        for levels in range(1, height(horizon, 2) + 1)
    ]
    pairs = (
        (total * variances[levels - 1], arity, levels)
        for arity in range(2, MOST + 1)
        for levels, total in enumerate(total_nodes(horizon, arity), 1)
    )
    _, arity, levels = min(pairs)
    return arity, levels
