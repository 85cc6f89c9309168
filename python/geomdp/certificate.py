"""The certificate: public data to verify that the sampled distribution is private."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from geomdp._ground import notebook
from geomdp._ground.notebook import many
from geomdp._ground.uncopied import public

if TYPE_CHECKING:
    from geomdp._kernel import core

__all__ = ["Certificate"]

_FORMAT = "geomdp-certificate-2"

#: The least upper bounds that every certificate keeps: of ``3 * delta / min(1, rate)``, and of the
#: floor's mass. The joint loss of many releases rests on them (``docs/proofs.md``, lemma 14).
SLACK = Fraction(1, 2**54)
FLOOR = Fraction(1, 2**52)


@notebook.showable
@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of the noise: its weight, the number of its own tape words, its thresholds.

    Each threshold is the numerator of a fraction over ``2**(limb_bits * (limbs + 1))``. Those of
    digit 0 bound the floor's slot, each of its values, and zero.
    """

    weight: int
    limbs: int
    thresholds: tuple[int, ...]


@notebook.showable
@dataclass(frozen=True, slots=True)
class Certificate:
    """The exact public data of a mechanism, and the statements that prove it private.

    A draw is a function of a finite tape of ``words_per_draw`` 64-bit words, so its probabilities
    are known exactly. ``docs/proofs.md`` proves the following statements, and ``verifier``
    checks them from :meth:`to_json` without any code of this library:

    * each output's probability, apart from the floor, is within ``delta`` (relative) and ``eta``
      (absolute) of the ideal one at ``sampled_rate``;
    * ``3 * delta <= rate - sampled_rate`` and
      ``eta <= floor * 2**-floor_value_bits * tanh(rate / 2)``, so the privacy loss between
      neighbours is at most ``rate``, exactly (theorem 2);
    * ``3 * delta <= 2**-54 * min(1, rate)`` and ``floor <= 2**-52``, which
      :mod:`geomdp.accounting` relies on (lemma 14);
    * the distribution is within ``total_variation`` of the ideal one at ``rate`` (theorem 3).

    Attributes
    ----------
    rate : Fraction or None
        ``epsilon / sensitivity``; None for scale 0, which gives no privacy.
    range : int
        ``upper - lower``.
    limb_bits : int
        The number of bits in a limb, 63.
    digits : tuple of Digit
        The digits, least significant first, each with its ``weight``, ``limbs`` and
        ``thresholds``; empty if there is no noise.
    words_per_draw : int
        The number of tape words for one count.
    sampled_rate, eta, delta, floor : Fraction or None
        The numbers in the statements above; None if there is no noise.
    tanh_half_rate : Fraction or None
        A lower bound of ``tanh(rate / 2)``; :attr:`holds` uses it.
    floor_value_bits : int
        The floor's value is uniform on this many bits, censored to the range.
    total_variation : float
        A bound on the total variation distance, rounded up.
    tight_epsilon : float or None
        The least float64 that bounds the privacy loss between neighbours of the distribution that
        is actually sampled; None unless requested.
    sensitivity : int
        Only shown, with the epsilon that makes the rate: the statements are about the rate alone.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> proof = GeometricMechanism(epsilon=0.5, bounds=(0, 4526)).certificate()
    >>> proof.rate, proof.range, proof.holds
    (Fraction(1, 2), 4526, True)

    """

    rate: Fraction | None
    range: int
    limb_bits: int
    digits: tuple[Digit, ...]
    words_per_draw: int
    sampled_rate: Fraction | None
    eta: Fraction | None
    delta: Fraction | None
    floor: Fraction | None
    floor_value_bits: int
    tanh_half_rate: Fraction | None
    total_variation: float
    tight_epsilon: float | None
    sensitivity: int = field(default=1, compare=False)

    @property
    def holds(self) -> bool:
        """Whether the inequalities of theorem 2 and lemma 14 hold, evaluated in exact arithmetic.

        True for every mechanism with noise or with a single possible output; False for a mechanism
        without noise and with several possible outputs.
        """
        if self.range == 0:
            return True
        if (
            self.rate is None
            or self.sampled_rate is None
            or self.eta is None
            or self.delta is None
            or self.floor is None
            or self.tanh_half_rate is None
        ):
            return False
        relative = min(self.rate - self.sampled_rate, SLACK, SLACK * self.rate)
        absolute = self.floor * self.tanh_half_rate / 2**self.floor_value_bits
        return 3 * self.delta <= relative and self.eta <= absolute and self.floor <= FLOOR

    def to_json(self) -> str:
        """Return the certificate as JSON, with exact numbers as strings.

        ``verifier`` checks this text without this library.

        >>> import json
        >>> from geomdp import GeometricMechanism
        >>> json.loads(GeometricMechanism(epsilon=0.5).certificate().to_json())["rate"]
        '1/2'
        """
        import json  # noqa: PLC0415, would be a seventh of the import time of geomdp

        return json.dumps(document(self), indent=1)

    def _places(self, digit: int) -> int:
        """Return the number of bits in a digit's thresholds."""
        return self.limb_bits * (self.digits[digit].limbs + 1)

    def __repr__(self) -> str:
        if self.rate is None or not self.digits:
            return "certificate: no noise" + ("" if self.range else ", one output")
        assert self.floor is not None
        assert self.sampled_rate is not None
        limbs = max(digit.limbs for digit in self.digits)
        lines = [
            f"certificate: pure epsilon-DP at rate {notebook.short(self.rate)} (epsilon "
            f"{notebook.short(self.rate * self.sensitivity)}, sensitivity {self.sensitivity}), "
            "exactly",
            f"  {many(len(self.digits), 'digit')}, {many(self.words_per_draw, 'word')} of tape per "
            f"count, thresholds of up to {self.limb_bits * (limbs + 1)} bits",
            f"  inequalities of the proof, in exact arithmetic: {'hold' if self.holds else 'FAIL'}",
            f"  uniform floor of mass {float(self.floor):.3g}; "
            f"total variation to the ideal distribution below {self.total_variation:.3g}",
        ]
        if self.tight_epsilon is not None:
            tight = f"tight epsilon of the sampled distribution per unit: {self.tight_epsilon!r}"
            lines.append(f"  {tight}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return notebook.preformatted(repr(self))


def document(certificate: Certificate) -> dict[str, Any]:
    """Return the object of a certificate's JSON."""
    floor = None
    if certificate.floor is not None:
        floor = _dyadic(certificate.floor, certificate._places(0)) | {
            "value_bits": certificate.floor_value_bits
        }
    return {
        "format": _FORMAT,
        "rate": _text(certificate.rate),
        "sampled_rate": _text(certificate.sampled_rate),
        "range": str(certificate.range),
        "limb_bits": certificate.limb_bits,
        "digits": [
            {
                "weight": str(digit.weight),
                "limbs": digit.limbs,
                "thresholds": [hex(threshold) for threshold in digit.thresholds],
            }
            for digit in certificate.digits
        ],
        "words_per_draw": certificate.words_per_draw,
        "eta": None
        if certificate.eta is None
        else _dyadic(certificate.eta, certificate._places(-1)),
        "delta": None
        if certificate.delta is None
        else _dyadic(certificate.delta, 2 * certificate.limb_bits),
        "floor": floor,
        "total_variation": certificate.total_variation,
        # Infinite without noise, but JSON has no infinity.
        "tight_epsilon": None
        if certificate.tight_epsilon == math.inf
        else certificate.tight_epsilon,
    }


def _text(ratio: Fraction | None) -> str | None:
    return None if ratio is None else f"{ratio.numerator}/{ratio.denominator}"


def _dyadic(value: Fraction, bits: int) -> dict[str, Any]:
    return {"num": hex(int(value * 2**bits)), "bits": bits}


def from_fields(fields: core._Fields, sensitivity: int) -> Certificate:
    """Return the certificate of a plan from the core's description of it."""

    def ratio(pair: tuple[int, int] | None) -> Fraction | None:
        return None if pair is None else Fraction(*pair)

    def dyadic(pair: tuple[int, int] | None) -> Fraction | None:
        return None if pair is None else Fraction(pair[0], 2 ** pair[1])

    return Certificate(
        rate=ratio(fields["rate"]),
        range=fields["range"],
        limb_bits=fields["limb_bits"],
        digits=tuple(Digit(weight, limbs, tuple(t)) for weight, limbs, t in fields["digits"]),
        words_per_draw=fields["words_per_draw"],
        sampled_rate=ratio(fields["sampled_rate"]),
        eta=dyadic(fields["eta"]),
        delta=dyadic(fields["delta"]),
        floor=dyadic(fields["floor"]),
        floor_value_bits=fields["floor_value_bits"],
        tanh_half_rate=dyadic(fields["tanh_half_rate"]),
        total_variation=fields["total_variation"],
        tight_epsilon=fields["tight_epsilon"],
        sensitivity=sensitivity,
    )


public(__name__)
