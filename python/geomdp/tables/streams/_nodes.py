"""The file of a stream: an entry for each step, with the noisy nodes that close then."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._inputs import arrays
from geomdp.accounting._journal import Journal
from geomdp.tables._math import span_trees

Counts: TypeAlias = NDArray[np.int64]
#: A step and the one after its last.
Span: TypeAlias = tuple[int, int]
LEAST, GREATEST = arrays.limits(np.dtype(np.int64))
#: The longest stream: the choice of its arity takes seconds.
LONGEST = 10**5
#: The names of the limits in the head of the file.
PUBLIC = ("horizon", "epsilon", "arity", "levels")


class Nodes(Journal):
    """Noisy nodes in a file, those of each step in one entry."""

    __slots__ = ("_shape",)
    _kind = "stream"
    _longest = 2**31

    def parameters(self) -> tuple[int, Fraction, int, int]:
        """Return horizon, epsilon, arity and levels."""
        found: tuple[int, Fraction, int, int] = self.checked(_public, self.limits())
        return found

    def released(self) -> tuple[int, tuple[int, ...] | None]:
        """Return the number of steps that are released, and the shape of their counts."""
        steps = len(self._items())
        if not steps:
            return 0, None
        # Entries stay as they are, so the first is decoded once.
        shape = getattr(self, "_shape", None)
        if shape is None:
            self._shape = shape = next(self._nodes(0, [0])).shape
        return steps, shape

    def publish(self, step: int, noisy: Counts) -> bool:
        """Write the nodes that close at a step, and return whether no other process was faster."""

        def entry(before: list[Any]) -> dict[str, Any] | None:
            if len(before) != step:
                return None
            little = noisy.astype("<i8", copy=False)
            return {
                "step": step,
                "shape": noisy.shape[1:],
                "nodes": [base64.b64encode(each.tobytes()).decode() for each in little],
            }

        return self._append(entry)

    def read(self, level: int, size: int, first: int, last: int) -> Counts:
        """Return nodes of a level, of `size` steps each, from one place to before another."""
        shape = self.released()[1]
        found = list(self._nodes(level, range((first + 1) * size - 1, last * size, size)))
        if any(each.shape != shape for each in found):
            raise self._damaged("steps have several shapes")
        return np.stack(found)

    def _nodes(self, level: int, steps: Sequence[int]) -> Iterator[Counts]:
        """Yield the nodes of a level that close at these steps."""
        items = self._items()
        with self._opened("rb") as file:
            for step in steps:
                yield self.checked(_decoded, self._line(file, *items[step]), level)

    def _item(self, line: bytes, start: int, before: str) -> tuple[int, str]:  # noqa: ARG002
        return start, before  # A step is read and decoded when it is asked for.


def _public(found: Mapping[str, Any]) -> tuple[int, Fraction, int, int]:
    horizon, epsilon, arity, levels = (parameters.ratio(found[name]) for name in PUBLIC)
    whole = horizon.denominator == arity.denominator == levels.denominator == 1
    if not whole or not 1 <= horizon <= LONGEST or arity < 2 or not float(epsilon):
        raise ValueError(f"limits {parameters.shown(found)}")
    if not 1 <= levels <= span_trees.height(int(horizon), int(arity)):
        raise ValueError(f"limits {parameters.shown(found)}")
    return int(horizon), epsilon, int(arity), int(levels)


def _decoded(fields: Mapping[str, Any], level: int) -> Counts:
    shape = tuple(fields["shape"])
    # Not with a check of each letter, which takes five times as long: the line has a digest.
    node = base64.b64decode(fields["nodes"][level])
    found = np.frombuffer(node, "<i8").reshape(shape)
    if found.shape != shape:
        raise ValueError("a node of another shape")
    return found
