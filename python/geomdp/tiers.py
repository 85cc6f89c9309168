"""Tiers: noisy counts at several epsilons, for the privacy loss of the largest one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from geomdp import certificate
from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Bounds, Integer, Loss, Real, Typed
from geomdp._ground.uncopied import public
from geomdp._inputs import arrays
from geomdp._inputs.arrays import Array
from geomdp._kernel import core
from geomdp._noise import Noise, limits
from geomdp.certificate import Certificate

__all__ = ["TierPlan", "TierCertificate", "Tiers"]

_FORMAT = "geomdp-tiers-1"


@notebook.showable
@dataclass(frozen=True, slots=True)
class Keep:
    """How often a step keeps a value: `inside` the range and at an `end`, over ``2**bits``.

    A step reads `limbs` words for it, after those of the draw.
    """

    limbs: int
    inside: int
    end: int


@notebook.showable
@dataclass(frozen=True, slots=True)
class Step:
    """One tier: an ordinary plan and, but for the finest tier, its step from the next finer one.

    `kappa` bounds the relative error of a step by its keep probabilities. The certificate's `rate`
    is what the tier promises, and its ``total_variation`` that of the tier.
    """

    certificate: Certificate
    keep: Keep | None
    kappa: Fraction


@notebook.showable
@dataclass(frozen=True, slots=True)
class TierCertificate:
    """The certificate of all tiers together: :meth:`TierPlan.certificate` makes it.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> public, _ = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tier_plans([0.1])
    >>> public.certificate()
    the certificate of 2 tiers, which holds

    """

    #: The plan of each tier, that of the smallest epsilon first.
    tiers: tuple[Step, ...]

    def _bounds(self, place: int) -> tuple[Fraction, Fraction]:
        """Return the relative errors and the floors of a tier and all finer ones, added up."""
        relative, floors = Fraction(), Fraction()
        for tier in self.tiers[place:]:
            relative += (tier.certificate.delta or 0) + tier.kappa
            floors += tier.certificate.floor or 0
        return relative, floors

    def _errors(self, place: int) -> Certificate:
        """Return a certificate whose errors bound those of a tier: docs/proofs.md, section 20."""
        certified = self.tiers[place].certificate
        if certified.sampled_rate is None:
            return certified
        relative, floors = self._bounds(place)
        delta = 2 * relative
        return replace(certified, delta=delta, eta=Fraction(), floor=2 * (1 + delta) * floors)

    @property
    def holds(self) -> bool:
        """Whether the conditions of ``docs/proofs.md``, section 20, hold, in exact arithmetic.

        Each tier, together with all coarser ones, then loses its epsilon and no more.
        """
        finer: Fraction | None = None
        for place, tier in reversed([*enumerate(self.tiers)]):
            own = tier.certificate
            if own.range == 0:
                continue
            if own.rate is None or own.sampled_rate is None or own.floor is None:
                return False
            assert own.eta is not None
            assert own.delta is not None
            assert own.tanh_half_rate is not None
            relative, _ = self._bounds(place)
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
        >>> public, _ = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tier_plans([0.1])
        >>> public.certificate().to_json()[:28]
        '{\n "format": "geomdp-tiers-1'

        """
        return json.dumps({"format": _FORMAT, "tiers": [*map(_document, self.tiers)]}, indent=1)

    def __repr__(self) -> str:
        said = "holds" if self.holds else "does not hold"
        return f"the certificate of {len(self.tiers)} tiers, which {said}"


@notebook.showable
class TierPlan(Noise):
    """The noise of one tier as its readers know it: :meth:`geomdp.GeometricMechanism.tier_plans`.

    It answers all questions that a mechanism answers, and draws nothing, since a tier is drawn
    together with the finer ones. Accuracies and intervals are those of a release at its epsilon,
    except that they allow for the sampling errors of the tier's own distribution
    (``docs/proofs.md``, section 20). `mechanisms` of a noisy table has it for tables
    that ``release(tiers=...)`` made.

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
    >>> from geomdp.tiers import TierPlan
    >>> public = TierPlan("0.1", ["0.1", 1])
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
        self._epsilons = increasing(epsilons)
        if parameters.read(self._epsilon) not in map(parameters.read, self._epsilons):
            wanted = f"one of {', '.join(map(parameters.text, self.epsilons))}"
            raise ValueError(parameters.refusal("epsilon", epsilon, wanted))

    @property
    def epsilons(self) -> tuple[int | float | Fraction, ...]:
        """The privacy loss of each tier, the smallest first."""
        return tuple(map(parameters.plain, self._epsilons))

    def certificate(self, dtype: DTypeLike | None = None) -> TierCertificate:
        """Return the certificate of all tiers together.

        Parameters
        ----------
        dtype : dtype, optional
            As in :meth:`geomdp.GeometricMechanism.certificate`.

        Raises
        ------
        ValueError
            If the epsilons are too close together or too small to be certified.

        Examples
        --------
        >>> from geomdp.tiers import TierPlan
        >>> TierPlan("0.1", ["0.1", 1]).certificate().holds
        True

        """
        kind = arrays.integer_dtype(arrays.dtype_for(self._bounds) if dtype is None else dtype)
        return prepared(self._rates(), self._sensitivity, limits(self, kind))[1]

    def _rates(self) -> tuple[Fraction, ...]:
        """Return the rate of each tier."""
        return tuple(parameters.read(each).drawn / self._sensitivity for each in self._epsilons)

    def _errors(self, dtype: DTypeLike | None = None) -> Certificate:
        return self.certificate(dtype)._errors(self._rates().index(Fraction(self.rate)))

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


def increasing(epsilons: Any, finest: Loss | None = None) -> tuple[Loss, ...]:
    """Return the epsilons of tiers, or of those below the finest one and that."""
    if not isinstance(epsilons, tuple | list) or not epsilons:
        raise TypeError(parameters.refusal("epsilons", epsilons, "a list of numbers"))
    found = parameters.each("epsilons", epsilons, parameters.loss)
    every = found if finest is None else (*found, finest)
    for one, finer in pairwise(map(parameters.read, every)):
        if not (one.stated < finer.stated and one.drawn < finer.drawn):
            wanted = "numbers that increase"
            if finest is not None:
                wanted += f", all below epsilon = {parameters.text(parameters.plain(finest))}"
            raise ValueError(parameters.refusal("epsilons", epsilons, wanted))
    return tuple(every)


def _document(tier: Step) -> dict[str, Any]:
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


def draws_of(plan: TierPlan, limits: tuple[int, int]) -> core.Tiers:
    """Return what draws all tiers of a plan together."""
    return prepared(plan._rates(), plan._sensitivity, limits)[0]


@lru_cache(maxsize=128)
def prepared(
    rates: tuple[Fraction, ...], sensitivity: int, limits: tuple[int, int]
) -> tuple[core.Tiers, TierCertificate]:
    """Return the draw of tiers with these increasing rates, and their certificate."""
    # The core has the finest tier first.
    own = core.Tiers([each.as_integer_ratio() for each in reversed(rates)], limits)

    def step(fields: core._TierFields) -> Step:
        keep = fields["keep"]
        return Step(
            certificate.from_fields(fields, sensitivity),
            keep and Keep(keep[1], *keep[0]),
            Fraction(fields["kappa"][0], 2 ** fields["kappa"][1]),
        )

    return own, TierCertificate(tuple(map(step, reversed(own.certificates()))))


@notebook.showable
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

    def __init__(self, plans: tuple[TierPlan, ...], noisy: tuple[Array, ...]) -> None:
        self._plans = plans
        self._noisy = noisy

    @property
    def plans(self) -> tuple[TierPlan, ...]:
        """The plan of each tier, in the order of their epsilons."""
        return self._plans

    def __getitem__(self, epsilon: Real) -> Array:
        try:
            exact = parameters.positive_fraction("epsilon", epsilon)
        except (TypeError, ValueError, OverflowError) as error:
            raise KeyError(str(error)) from None
        for plan, noisy in zip(self._plans, self._noisy, strict=True):
            if parameters.read(plan._epsilon).stated == exact:
                return noisy
        raise KeyError(parameters.refusal("epsilon", epsilon, f"one of {self._known()}"))

    def __iter__(self) -> Iterator[Real]:
        return (plan.epsilon for plan in self._plans)

    def __len__(self) -> int:
        return len(self._noisy)

    def __repr__(self) -> str:
        shape = self._noisy[0].shape
        said = f"tiers at epsilon {self._known()}: the loss of all is the last"
        return f"{said}; arrays of shape {shape}"

    def _known(self) -> str:
        return ", ".join(parameters.text(plan.epsilon) for plan in self._plans)


public(__name__)
