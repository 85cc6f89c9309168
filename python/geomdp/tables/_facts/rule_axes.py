"""Columns of a table whose levels follow from a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns.native import Coded
from geomdp.tables._facts import rules
from geomdp.tables._facts.axes import NUMBERED, Axis
from geomdp.tables._facts.combinations import CombinationAxis
from geomdp.tables._facts.hierarchy import Hierarchy
from geomdp.tables._facts.rules import Common, Integers, Rule

#: What it has in common with other axes. All else of these lists their levels.
_KEPT = frozenset(
    (
        *("among", "at", "cells_by_depth", "chosen", "coded", "columns", "columns_of", "common"),
        *("complete", "counts", "depths", "even", "examples", "faces", "given", "has", "hierarchy"),
        *(
            "is_level",
            "items",
            "key",
            "label",
            "many",
            "margin",
            "node",
            "of_integers",
            "of_items",
            "of_rows",
            "other",
        ),
        *("outside", "pairs", "paths", "reads", "rooms", "rule", "several", "shares", "size"),
        *("bins", "cuts", "typed", "values", "view"),
    )
)


def axis_of(label: str, levels: Any, **how: Any) -> Axis:
    """Return the axis of a column, of listed levels or of a rule, or that of combinations."""
    if how["columns"] is not None and not isinstance(levels, Hierarchy):
        return CombinationAxis(label, levels, **how)
    rule = rules.of(levels)
    return Axis(label, levels, **how) if rule is None else RuleAxis(label, rule, **how)


class RuleAxis(Axis):
    """A column whose levels follow from a rule. Whatever would list them is refused by name."""

    rule: Rule

    def __init__(
        self,
        label: str,
        rule: Rule,
        *,
        other: Sequence[Any] = (),
        complete: bool = False,
        margin: Sequence[Any] = (),
        chosen: bool = False,
        shares: Any = None,
        columns: tuple[str, ...] | None = None,
        bins: Any = None,
    ) -> None:
        self.label, self.columns, self.rule, self.bins = label, (label,), rule, None
        for what, given in (
            ("margins", len(margin) > 0),
            ("shares", shares is not None),
            ("several columns", columns is not None),
            ("bins", bins is not None),
        ):
            if given:
                raise ValueError(
                    f"{what} are not accepted with levels of {label!r} that are a rule, "
                    f"{parameters.shown(rule)}: leave them out, or give a list of levels"
                )
        self.hierarchy, self.margin, self.chosen, self.complete = None, False, chosen, complete
        self.other, self.shares = list(other), (Fraction(1),)
        if other:
            words = f"levels of {label!r} with other {parameters.given(other[0])}"
            [_, self.other[0]] = _levels.checked(words, [rule.label(0), *other])
            if rule.place(self.other[0]) >= 0:
                raise ValueError(f"{words} are empty or repeat one: give each once")

    def __getattribute__(self, name: str) -> Any:
        if name not in _KEPT and not name.startswith("_"):
            raise ValueError(
                f"levels of {self.label!r} are a rule, {parameters.shown(self.rule)}, which nobody "
                "can list: release groups with at_least=, or give a list of levels"
            )
        return super().__getattribute__(name)

    @property
    def size(self) -> int:
        """The number of places, and one for other records."""
        return self.rule.size + len(self.other)

    @property
    def many(self) -> int:
        """The number of cells."""
        return self.size

    @property
    def depths(self) -> int:
        """The number of depths."""
        return 1

    @property
    def given(self) -> Rule:
        """The rule."""
        return self.rule

    @property
    def outside(self) -> int:
        """The place of other records, or -1."""
        return self.rule.size if self.other else -1

    @property
    def common(self) -> Common | None:
        """The places of a public list of levels, and that of other records, if there is a list."""
        return Common(self.rule, self.size) if self.rule.common else None

    @property
    def typed(self) -> list[Any]:
        """The first and the last level, which have the type of all."""
        return [self.rule.label(0), self.rule.label(self.rule.size - 1)]

    @property
    def examples(self) -> list[Any]:
        """Labels with all that a file has to hold."""
        return [*self.rule.examples(), *self.other]

    # What Axis keeps once it is made; here, it is at hand.
    counts = property(lambda self: [self.size])
    rooms = property(lambda _: [1])
    pairs = property(lambda _: [(0, 0, -1)])
    cells_by_depth = property(lambda self: Counter({0: self.size}))

    def has(self, label: Any) -> bool:
        """Whether this is a level, or the label of other records."""
        return self._place(label) >= 0

    def is_level(self, place: int) -> bool:
        """Whether a place has a level, which some texts are not."""
        return place == self.rule.size or self.rule.place(self.rule.label(place)) == place

    def node(self, name: str, label: Any) -> int:
        """Return the place that a question names in a parameter."""
        if (found := self._place(label)) < 0:
            raise KeyError(f"{name} = {parameters.shown(label)} is no level of {self.label!r}")
        return found

    def coded(self, nodes: NDArray[Any]) -> Coded:
        """Return a column of the labels at places, each made once."""
        known: dict[int, int] = {}
        codes = [known.setdefault(node, len(known)) for node in nodes.tolist()]
        return Coded(list(map(self._label, known)), np.array(codes, np.int64))

    def at(self, places: NDArray[Any]) -> NDArray[Any]:
        """Return the places, which are the nodes."""
        return places

    def of_rows(self, columns: Sequence[Any], rest: Sequence[Any]) -> NDArray[Any]:
        """Return the place of each row's level in the columns of a file, as a list has it."""
        [column] = columns
        known = {column.text_of(x): self.rule.size + n for n, x in enumerate([*self.other, *rest])}
        found = [
            self.rule.place(column.of_text(item, self.rule.of_text)) if at is None else at
            for item, at in zip(column.items, map(known.get, column.items), strict=True)
        ]
        if -1 in found or len({*found}) < len(found):
            raise ValueError("it has other rows than its description")
        places: NDArray[Any] = self._array(found)[column.places]
        return places

    def of_items(self, items: Iterable[Any], size: int) -> NDArray[Any]:
        """Return the place of each item of the data, or that of others."""
        looked = _Looked(self.rule, self.outside)
        return np.fromiter(map(looked.__getitem__, items), self._kind, size)

    def of_integers(self, values: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return the place of each integer, if levels are integers one after the other."""
        if not isinstance(self.rule, Integers) or self.rule.within.step != 1:
            return None
        first, last = self.rule.within[0], self.rule.label(self.rule.size - 1)
        inside = (values >= first) & (values <= last)
        places = self._array(np.where(inside, values, first)) - first
        places[~inside] = self.outside
        return places

    def _array(self, places: Any) -> NDArray[Any]:
        """Return places as an array, of objects if there are more than int64 has."""
        return np.array(places, self._kind)

    @property
    def _kind(self) -> Any:
        """The type of an array of places."""
        return np.int64 if self.size <= NUMBERED else object

    def _place(self, label: Any) -> int:
        if self.other and label == self.other[0]:
            return self.rule.size
        return self.rule.place(label)

    def _label(self, place: int) -> Any:
        return self.other[0] if place == self.rule.size else self.rule.label(place)


class _Looked(dict[Any, int]):
    """The places of items of the data, each looked up once."""

    def __init__(self, rule: Rule, outside: int) -> None:
        super().__init__()
        self._rule, self._outside = rule, outside

    def __missing__(self, item: Any) -> int:
        found = self._rule.place(item)
        self[item] = found = self._outside if found < 0 else found
        return found
