"""The releases that a sum of tables is made of: what its readers know of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from geomdp._ground import notebook
from geomdp._ground.identity import Identity
from geomdp.tables._facts.tier_names import Tier

if TYPE_CHECKING:
    from geomdp._noise import Noise
    from geomdp.tables._math.products import Block

#: The most noises of a sum: of so many plans a file is read in seconds.
MOST = 2**14


@notebook.showable
@dataclass(frozen=True)
class Part:
    """A release that was added to others: who released it, at which loss, and its noise.

    :attr:`NoisyTable.parts` has one for each release of a sum, those of two releases together
    (:meth:`NoisyTable.combine`) one for each of them, and none has counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> table = tables.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
    >>> north, south = (table.release(epsilon=1, label=name) for name in ("north", "south"))
    >>> [(part.label, part.epsilon) for part in north.plus(south).parts]
    [('north', Fraction(1, 1)), ('south', Fraction(1, 1))]

    """

    #: The id of the release.
    id: str
    #: The ids of the releases that it replaces, the last one first.
    corrects: tuple[str, ...]
    #: The id of the count of records, if limits cut them at random; otherwise None.
    count_id: str | None
    #: The label under which it was booked.
    label: str | None
    #: What its publisher says about it.
    about: Mapping[str, str]
    #: Its exact privacy loss for one individual; infinite without noise.
    epsilon: Fraction | float
    #: The mechanism of each block of the sum, or of the release.
    mechanisms: Mapping[Block, Noise]
    _part_of: Fraction | None
    _tier: Tier | None

    parts = ()
    _at_least = None
    _chosen_by = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_tier": self._tier and tuple(self._tier)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _tier=state["_tier"] and Tier(*state["_tier"]))

    @property
    def name(self) -> str:
        """What readers know it by: its title, its label or its id."""
        return self.about.get("title") or self.label or self.id

    @property
    def loss(self) -> Fraction | float:
        """The privacy loss of one individual by it: for a step of a stream, by the stream."""
        return self.epsilon if self._part_of is None else self._part_of


def of(release: Any) -> tuple[Part, ...]:
    """Return the releases that a release, or answers of several, are made of."""
    if release.parts:
        return release.parts  # type: ignore[no-any-return]
    own = (
        release.id,
        release.corrects,
        release.count_id,
        release.label,
        release.about,
        release.epsilon,
        release.mechanisms,
        release._part_of,
        release._tier,
    )
    return (Part(*own),)


def identity(parts: Sequence[Part]) -> Identity:
    """Return the ids of a sum, which follow from those of its parts in any order."""
    counts = [part.count_id or "" for part in parts]
    return Identity(
        _digest(part.id for part in parts), (), _digest(counts) if any(counts) else None
    )


def loss(parts: Sequence[Part]) -> Fraction | float:
    """Return the most that an individual loses by all parts together."""
    return sum((part.loss for part in parts), Fraction(0))


def _digest(ids: Any) -> str:
    return hashlib.sha256(" ".join(sorted(ids)).encode()).hexdigest()[:32]
