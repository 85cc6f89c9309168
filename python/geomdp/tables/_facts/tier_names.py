"""Tiers of a table: their names and epsilons."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from geomdp._ground import parameters

#: The most tiers that the core draws together.
MOST = 8
_WANTED = 'names and increasing epsilons, such as {"public": "0.1", "researchers": 1}'


class Tier(NamedTuple):
    """A tier of a table among the others."""

    name: str
    #: The privacy loss of each tier, in increasing order, this one among them.
    epsilons: tuple[Fraction, ...]


def checked(tiers: Any) -> dict[Tier, Fraction]:
    """Return the epsilon of each tier, the smallest first, or refuse them."""
    if not isinstance(tiers, Mapping):
        raise TypeError(parameters.foreign("tiers", tiers, f"a mapping of {_WANTED}"))
    for name in tiers:
        # A name of another type may be counts, given in the wrong place.
        if not isinstance(name, str):
            raise TypeError(f"names of tiers of type {type(name).__name__} are not accepted")
        parameters.check_text("tiers", name)
        if not name:
            raise ValueError(parameters.refusal("tiers", name, "names that are not empty"))
    found = [parameters.positive_fraction("tiers", each) for each in tiers.values()]
    if len(found) < 2 or any(not one < finer for one, finer in pairwise(found)):
        pairs = [(name, parameters.text(each)) for name, each in zip(tiers, found, strict=True)]
        raise ValueError(
            f"tiers = {parameters.shown(pairs)} are not accepted: give two or more {_WANTED}"
        )
    return {Tier(name, tuple(found)): each for name, each in zip(tiers, found, strict=True)}
