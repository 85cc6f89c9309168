"""Tiers of a table: their names and epsilons, and the noise of one tier as its readers know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from numpy.typing import DTypeLike

from geomdp import _notebook
from geomdp._inputs import arrays, parameters
from geomdp._inputs.parameters import Bounds, Integer, Real, Typed
from geomdp.certificate import Certificate
from geomdp.mechanism import GeometricMechanism, limits
from geomdp.tiers import TierPlans, errors_of, prepared

_WANTED = 'names and increasing epsilons, such as {"public": "0.1", "researchers": 1}'
_NO_DRAW = (
    "a tier is drawn together with the finer ones, and this is what its readers know of it: give "
    "a GeometricMechanism"
)


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


@_notebook.showable
@dataclass(frozen=True, slots=True)
class _TierCertificate(Certificate):
    """What bounds the errors of one tier. What makes it private is the certificate of them all."""

    plans: TierPlans | None = None

    @property
    def holds(self) -> bool:
        """Whether the certificate of all tiers holds."""
        assert self.plans is not None
        return self.plans.holds

    def to_json(self) -> str:
        """Return the certificate of all tiers as JSON."""
        assert self.plans is not None
        return self.plans.to_json()


@_notebook.showable
class TierMechanism(GeometricMechanism):
    """The noise of one tier of a table, as its readers know it. It releases nothing.

    :attr:`NoisyTable.mechanisms` has it for tables that ``release(tiers=...)`` made. Accuracies and
    intervals are those of a release at this epsilon, except that they allow for the sampling errors
    of the tier's own distribution (``docs/proofs.md``, section 20). :meth:`certificate` states
    these errors; its JSON is the certificate of all tiers together.

    Parameters
    ----------
    epsilon : number
        Privacy loss of this tier and all coarser ones together.
    epsilons : sequence of numbers
        Those of all tiers, increasing, this one among them.
    sensitivity, bounds
        As in :class:`geomdp.GeometricMechanism`.

    Examples
    --------
    >>> from geomdp.tables import TierMechanism
    >>> public = TierMechanism("0.1", ["0.1", 1])
    >>> public.accuracy(alpha=0.05), public.certificate().holds
    (30, True)

    """

    __slots__ = ("_epsilons",)

    def __init__(
        self,
        epsilon: Real | Typed,
        epsilons: Sequence[Real | Typed],
        sensitivity: Integer = 1,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(epsilon, sensitivity, bounds)
        given = tuple(epsilons)
        finest = GeometricMechanism(given[-1], sensitivity, bounds)
        self._epsilons = finest._tier_epsilons(given[:-1])
        if parameters.read(self._epsilon) not in map(parameters.read, self._epsilons):
            wanted = f"one of {', '.join(map(parameters.text, self.epsilons))}"
            raise ValueError(parameters.refusal("epsilon", epsilon, wanted))

    @property
    def epsilons(self) -> tuple[int | float | Fraction, ...]:
        """The privacy loss of each tier, the smallest first."""
        return tuple(map(parameters.plain, self._epsilons))

    def certificate(self, dtype: DTypeLike | None = None, *, tight: bool = False) -> Certificate:
        """Return the errors of this tier's distribution, with the certificate of all tiers.

        Parameters
        ----------
        dtype
            As in :meth:`geomdp.GeometricMechanism.certificate`.
        tight
            Must be False.

        Examples
        --------
        >>> from geomdp.tables import TierMechanism
        >>> proof = TierMechanism("0.1", ["0.1", 1]).certificate()
        >>> proof.holds, proof.total_variation < 2**-47
        (True, True)

        """
        if tight:
            raise ValueError("tight = True is not accepted for a tier: give tight = False")
        if dtype is None:
            dtype = arrays.dtype_for(self._bounds)
        ends = limits(self, arrays.integer_dtype(dtype))
        _, plans = prepared(self._epsilons, self._sensitivity, ends)
        errors = errors_of(plans, self.epsilon)
        known = {each.name: getattr(errors, each.name) for each in fields(errors)}
        return _TierCertificate(**known, plans=plans)

    def _draw(self, *_: Any) -> NoReturn:
        raise TypeError(_NO_DRAW)

    _noisy = _tier_epsilons = top = from_scale = _draw  # type: ignore[assignment]

    def _key(self) -> Any:
        return *super()._key(), *map(parameters.read, self._epsilons)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self._epsilon, self._epsilons, self._sensitivity, self._bounds)

    def __repr__(self) -> str:
        bounds = "" if self._bounds is None else f", bounds={self._bounds}"
        return (
            f"{type(self).__name__}({self.epsilon!r}, {self.epsilons!r}, "
            f"sensitivity={self._sensitivity}{bounds})"
        )
