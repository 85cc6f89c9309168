"""Tiers: noisy counts at several epsilons, for the privacy loss of the largest one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook, certificate
from geomdp._inputs import parameters
from geomdp._inputs.arrays import Array
from geomdp._inputs.parameters import Loss, Real
from geomdp._kernel import core
from geomdp._numerics import releases

__all__ = ["TierPlans", "Tiers"]

_FORMAT = "geomdp-tiers-1"


@_notebook.showable
@dataclass(frozen=True, slots=True)
class Keep:
    """How often a step keeps a value: `inside` the range and at an `end`, over ``2**bits``.

    A step reads `limbs` words for it, after those of the draw.
    """

    limbs: int
    inside: int
    end: int


@_notebook.showable
@dataclass(frozen=True, slots=True)
class TierPlan:
    """One tier: an ordinary plan and, but for the finest tier, its step from the next finer one.

    `kappa` bounds the relative error of a step by its keep probabilities. The certificate's `rate`
    is what the tier promises, and its ``total_variation`` that of the tier.
    """

    certificate: certificate.Certificate
    keep: Keep | None
    kappa: Fraction


@_notebook.showable
class TierPlans:
    """What is public about tiers: their epsilons, accuracy and certificates. Nothing is drawn.

    :meth:`geomdp.GeometricMechanism.tier_plans` makes them. Wherever a method takes an `epsilon`,
    it is one of :attr:`epsilons` and names a tier.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> plans = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tier_plans([0.1])
    >>> [float(epsilon) for epsilon in plans.epsilons], plans.holds
    ([0.1, 1.0], True)
    >>> plans.accuracy(0.1, alpha=0.05), plans.accuracy(1, alpha=0.05)
    (30, 3)

    """

    __slots__ = ("_epsilons", "_limits", "_tiers")

    def __init__(
        self,
        epsilons: tuple[Loss, ...],
        limits: tuple[int, int],
        tiers: tuple[TierPlan, ...],
    ) -> None:
        self._epsilons = epsilons
        self._limits = limits
        self._tiers = tiers

    @property
    def epsilons(self) -> tuple[int | float | Fraction, ...]:
        """The epsilon of each tier, the smallest first."""
        return tuple(map(parameters.plain, self._epsilons))

    @property
    def tiers(self) -> tuple[TierPlan, ...]:
        """The plan of each tier, that of the smallest epsilon first."""
        return self._tiers

    def _place(self, epsilon: Real) -> int:
        exact = parameters.positive_fraction("epsilon", epsilon)
        stated = [parameters.read(one).stated for one in self._epsilons]
        places = [place for place, one in enumerate(stated) if one == exact]
        if not places:
            known = ", ".join(map(parameters.text, stated))
            raise ValueError(parameters.refusal("epsilon", epsilon, f"one of {known}"))
        return places[0]

    def _errors(self, place: int) -> tuple[Fraction, Fraction]:
        """Return the relative errors and the floors of a tier and all finer ones, added up."""
        relative, floors = Fraction(), Fraction()
        for tier in self._tiers[place:]:
            relative += (tier.certificate.delta or 0) + tier.kappa
            floors += tier.certificate.floor or 0
        return relative, floors

    def total_variation(self, epsilon: Real) -> float:
        """Return a bound on the distance of a tier's distribution to the ideal one.

        Parameters
        ----------
        epsilon : number
            The tier.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> plans = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tier_plans([0.1])
        >>> plans.total_variation(0.1) < 2**-47
        True

        """
        return self._tiers[self._place(epsilon)].certificate.total_variation

    def accuracy(self, epsilon: Real, alpha: Real) -> int:
        """Return the least a such that errors of a tier exceed a with probability at most `alpha`.

        This is the worst case over all counts within the bounds, or within int64 without bounds.

        Parameters
        ----------
        epsilon : number
            The tier.
        alpha : number
            The significance level, from 0 to 1. At 0 the accuracy is the greatest possible error.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=1)
        >>> mechanism.tier_plans([0.1]).accuracy(1, 0.05) == mechanism.accuracy(0.05)
        True

        """
        noise = errors_of(self, epsilon)
        return releases.worst_accuracy(noise, parameters.significance_or_zero("alpha", alpha))

    def confidence_interval(
        self,
        epsilon: Real,
        released: NDArray[Any],
        alpha: Real,
        *,
        side: Literal["both", "lower", "upper"] = "both",
    ) -> tuple[Array, Array]:
        """Return intervals that contain the true counts with probability at least 1 - alpha each.

        Parameters
        ----------
        epsilon : number
            The tier.
        released : array
            The noisy counts of the tier. If you have several tiers, use the finest; the others add
            nothing.
        alpha : number
            The probability that an interval misses the true count.
        side : {"both", "lower", "upper"}
            "lower" gives only a lower end, and "upper" only an upper one.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> tiers = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tiers([120, 40], [0.1])
        >>> lower, upper = tiers.plans.confidence_interval(0.1, tiers[0.1], alpha=0.05)
        >>> bool((lower <= upper).all())
        True

        """
        noise = errors_of(self, epsilon)
        level = parameters.significance_or_zero("alpha", alpha)
        parameters.check_one_of("side", side, ("both", "lower", "upper"))
        return releases.interval(noise, self._limits, released, level, side)

    @property
    def holds(self) -> bool:
        """Whether the conditions of ``docs/proofs.md``, section 20, hold, in exact arithmetic.

        Each tier, together with all coarser ones, then loses its epsilon and no more.
        """
        finer: Fraction | None = None
        for place, tier in reversed([*enumerate(self._tiers)]):
            own = tier.certificate
            if own.range == 0:
                continue
            if own.rate is None or own.sampled_rate is None or own.floor is None:
                return False
            assert own.eta is not None
            assert own.delta is not None
            assert own.tanh_half_rate is not None
            relative, _ = self._errors(place)
            paid = own.floor * own.tanh_half_rate / 2**own.floor_value_bits
            if not (
                own.eta <= paid
                and own.floor <= certificate.FLOOR
                and 3 * relative <= own.rate - own.sampled_rate
                and max(own.delta, tier.kappa) <= Fraction(1, 4)
                and (tier.keep is None) == (finer is None)
                and (finer is None or own.sampled_rate < finer)
            ):
                return False
            finer = own.sampled_rate
        return True

    def to_json(self) -> str:
        r"""Return the certificates of all tiers as JSON, which ``verifier`` checks.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> plans = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tier_plans([0.1])
        >>> plans.to_json()[:28]
        '{\n "format": "geomdp-tiers-1'

        """
        return json.dumps({"format": _FORMAT, "tiers": [*map(_document, self._tiers)]}, indent=1)

    def __repr__(self) -> str:
        shown = ", ".join(map(parameters.text, self.epsilons))
        return f"tiers at epsilon {shown}: the loss of all is the last"


def errors_of(plans: TierPlans, epsilon: Real) -> certificate.Certificate:
    """Return a certificate whose errors bound those of a tier: docs/proofs.md, section 20."""
    place = plans._place(epsilon)
    certified = plans._tiers[place].certificate
    if certified.sampled_rate is None:
        return certified
    relative, floors = plans._errors(place)
    delta = 2 * relative
    return replace(certified, delta=delta, eta=Fraction(), floor=2 * (1 + delta) * floors)


def _document(tier: TierPlan) -> dict[str, Any]:
    document = certificate.document(tier.certificate)
    del document["format"]
    keep = tier.keep
    document["keep"] = keep and {
        "limbs": keep.limbs,
        "inside": hex(keep.inside),
        "end": hex(keep.end),
    }
    document["kappa"] = f"{tier.kappa.numerator}/{tier.kappa.denominator}"
    return document


def prepared(
    epsilons: tuple[Loss, ...], sensitivity: int, limits: tuple[int, int]
) -> tuple[core.Tiers, TierPlans]:
    """Return the draw of tiers with these increasing epsilons, and what is public about it."""
    rates = tuple(parameters.read(each).drawn / sensitivity for each in epsilons)
    own, plans = _prepared(rates, sensitivity, limits)
    return own, TierPlans(epsilons, limits, plans)


@lru_cache(maxsize=128)
def _prepared(
    rates: tuple[Fraction, ...], sensitivity: int, limits: tuple[int, int]
) -> tuple[core.Tiers, tuple[TierPlan, ...]]:
    # The core has the finest tier first.
    own = core.Tiers([each.as_integer_ratio() for each in reversed(rates)], limits)

    def plan(fields: core._TierFields) -> TierPlan:
        keep = fields["keep"]
        return TierPlan(
            certificate.from_fields(fields, sensitivity),
            keep and Keep(keep[1], *keep[0]),
            Fraction(fields["kappa"][0], 2 ** fields["kappa"][1]),
        )

    return own, tuple(map(plan, reversed(own.certificates())))


@_notebook.showable
class Tiers(Mapping[Real, NDArray[np.integer[Any]]]):
    """Noisy counts by epsilon, of one draw: :meth:`geomdp.GeometricMechanism.tiers` makes them.

    This is a mapping from each epsilon, the smallest first, to an array. The privacy loss of any of
    them together is the greatest of their epsilons. They are not independent, and the finest one
    that readers have is all that they need. No call makes another coarse array from a finer one,
    since two such arrays would cost more than either.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> tiers = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tiers([120, 40, 7], [0.1, 0.5])
    >>> list(tiers), tiers[0.1].shape
    ([0.1, 0.5, 1], (3,))

    """

    __slots__ = ("_noisy", "_plans")

    def __init__(self, plans: TierPlans, noisy: tuple[Array, ...]) -> None:
        self._plans = plans
        self._noisy = noisy

    @property
    def plans(self) -> TierPlans:
        """What is public about the tiers: accuracy, intervals, certificates."""
        return self._plans

    def __getitem__(self, epsilon: Real) -> Array:
        try:
            return self._noisy[self._plans._place(epsilon)]
        except (TypeError, ValueError, OverflowError) as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[Real]:
        return iter(self._plans.epsilons)

    def __len__(self) -> int:
        return len(self._noisy)

    def __repr__(self) -> str:
        shape = self._noisy[0].shape
        return f"{self._plans!r}; arrays of shape {shape}"
