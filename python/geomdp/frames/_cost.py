"""The mechanisms of a release, the changes by one individual, and their privacy losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from geomdp._analysis.products import Block
from geomdp.frames._noise import Noise, as_noise, loss

if TYPE_CHECKING:
    from geomdp._inputs.parameters import Bounds
    from geomdp.frames._design import Design


def mechanisms(
    design: Design, mechanism: Any, epsilon: Any, bounds: Bounds | None = None
) -> dict[Block, Noise]:
    """Return the mechanisms of a release by one mechanism, or with this epsilon."""
    if (mechanism is None) == (epsilon is None):
        raise TypeError("mechanism and epsilon are alternatives: give one of them")
    if mechanism is None:
        return design.mechanisms_for(epsilon, bounds)
    if bounds is not None:
        raise TypeError("bounds go with epsilon: a mechanism has its own")
    found = as_noise(mechanism, "epsilon=, or a GeometricMechanism")
    if found.sensitivity < design.sensitivity:
        raise ValueError(
            f"mechanism has sensitivity {found.sensitivity}, but one individual changes this "
            f"table by up to {design.sensitivity}: give epsilon={float(found.epsilon):g} instead "
            f"of the mechanism, or a mechanism with sensitivity={design.sensitivity}"
        )
    if not all(axis.even for axis in design.axes):
        raise ValueError("depths have shares of epsilon: give epsilon instead of a mechanism")
    return dict.fromkeys(design.depths, found)


def changes(design: Design, block: Block) -> Iterator[tuple[int, int]]:
    """Yield how many nodes of a block one individual changes, and by how much each.

    The cells that it joins, and those that it leaves, lie in as few nodes as have room for them:
    the greatest changes have the greatest loss (``docs/proofs.md``, lemma 14a).
    """
    axes = zip(design.axes, block, strict=True)
    room = math.prod(axis.rooms[depth] for axis, depth in axes)
    for records, together in _moved(design):
        most = min(room * design.linf, together)
        full, rest = divmod(records, most)
        yield full, most
        if rest:
            yield 1, rest


def change(design: Design) -> int:
    """Return how much one individual changes each block, in all."""
    return sum(records for records, _ in _moved(design))


def losses(design: Design, mechanisms: Mapping[Block, Noise]) -> Counter[Fraction | float]:
    """Return the exact privacy losses of the noisy counts that one individual changes."""
    found: Counter[Fraction | float] = Counter()
    for block, each in mechanisms.items():
        for nodes, size in changes(design, block):
            found[loss(each, size)] += nodes
    return found


def _moved(design: Design) -> list[tuple[int, int]]:
    """Return how many records one individual adds to cells and, with changes, takes from others.

    Beside each number stands the most of them that can be in one node. There are no more cells than
    the table has. If each of them may change, the individual may leave any of them for the rest:
    half of them lie in more full nodes than `l0` and the rest do.
    """
    cells, change = math.prod(design.sizes), design.neighbours == "change"
    if design.l1 is not None:
        return [(design.l1, design.l1)] * (2 if change and cells > 1 else 1)
    joined = min(design.l0, cells)
    moved = min(2 * joined, cells) if change else joined
    together = joined * design.linf
    if moved == 2 * joined:
        return [(together, together)] * 2
    return [(moved * design.linf, together)]
