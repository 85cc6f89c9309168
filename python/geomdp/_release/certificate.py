"""The certificate: what an auditor needs to check that the sampled law is private."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geomdp import _core

_FORMAT = "geomdp-certificate-1"


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of the noise: its weight, its own words of tape, its thresholds.

    A threshold is an integer over ``2**(limb_bits * (limbs + 1))``.
    """

    weight: int
    limbs: int
    thresholds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The exact public data of a mechanism and the statement that makes it private.

    A draw is a function of a finite tape of ``words_per_draw`` words of 64 bits, so its
    probabilities are known exactly. ``docs/proofs.md`` proves, and ``tests/verifier`` checks from
    :meth:`to_json` without any code of this library, that

    * each output's probability, beside the floor, is within ``delta`` (relative) and ``eta``
      (absolute) of the ideal one at ``sampled_rate``;
    * ``3 * delta <= rate - sampled_rate``, and
      ``eta <= floor * 2**-floor_value_bits * tanh(rate / 2)``, so the loss
      between neighbours is at most ``rate``, exactly (theorem 2);
    * the law is within ``total_variation`` of the ideal one at ``rate`` (theorem 3).

    Attributes
    ----------
    rate : Fraction or None
        ``epsilon / sensitivity``; None for scale 0, which promises no privacy.
    range : int
        ``upper - lower``.
    limb_bits : int
        Bits of a limb, 63.
    digits : tuple of Digit
        Least significant first; empty if there is no noise.
    words_per_draw : int
        Words of tape for one count.
    sampled_rate, eta, delta, floor : Fraction or None
        As above; None if there is no noise.
    tanh_half_rate : Fraction or None
        A lower bound of ``tanh(rate / 2)``, with which :attr:`holds` is decided.
    floor_value_bits : int
        The floor's value is uniform on this many bits, censored to the range.
    total_variation : float
        Rounded up.
    tight_epsilon : float or None
        The least float64 that bounds the loss between neighbours of the law that is really sampled;
        only if it was asked for.

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

    @property
    def holds(self) -> bool:
        """Whether the two inequalities of theorem 2 hold, evaluated in exact arithmetic.

        True of every certificate that a mechanism gives; False if it adds no noise to more than one
        possible output.
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
        allowed = self.floor * self.tanh_half_rate / 2**self.floor_value_bits
        return 3 * self.delta <= self.rate - self.sampled_rate and self.eta <= allowed

    def to_json(self) -> str:
        """Return all of it as JSON, exact numbers as strings."""
        import json  # noqa: PLC0415, a seventh of the time that importing geomdp would take

        floor = None
        if self.floor is not None:
            floor = _dyadic(self.floor, self._places(0)) | {"value_bits": self.floor_value_bits}
        document = {
            "format": _FORMAT,
            "rate": _text(self.rate),
            "sampled_rate": _text(self.sampled_rate),
            "range": str(self.range),
            "limb_bits": self.limb_bits,
            "digits": [
                {
                    "weight": str(digit.weight),
                    "limbs": digit.limbs,
                    "thresholds": [hex(threshold) for threshold in digit.thresholds],
                }
                for digit in self.digits
            ],
            "words_per_draw": self.words_per_draw,
            "eta": None if self.eta is None else _dyadic(self.eta, self._places(-1)),
            "delta": None if self.delta is None else _dyadic(self.delta, 2 * self.limb_bits),
            "floor": floor,
            "total_variation": self.total_variation,
            # JSON has no infinity, which is what a mechanism without noise has.
            "tight_epsilon": None if self.tight_epsilon == math.inf else self.tight_epsilon,
        }
        return json.dumps(document, indent=1)

    def _places(self, digit: int) -> int:
        """Return the bits of a digit's thresholds."""
        return self.limb_bits * (self.digits[digit].limbs + 1)

    def __str__(self) -> str:
        if self.rate is None or not self.digits:
            return "certificate: no noise" + ("" if self.range else ", one output")
        assert self.floor is not None
        assert self.sampled_rate is not None
        limbs = max(digit.limbs for digit in self.digits)
        lines = [
            f"certificate: pure epsilon-DP at rate {_short(self.rate)}, exactly",
            f"  {len(self.digits)} digits, {self.words_per_draw} words of tape per count, "
            f"thresholds of up to {self.limb_bits * (limbs + 1)} bits",
            f"  inequalities of the proof, in exact arithmetic: {'hold' if self.holds else 'FAIL'}",
            f"  uniform floor of mass {float(self.floor):.3g}; "
            f"total variation to the ideal law below {self.total_variation:.3g}",
        ]
        if self.tight_epsilon is not None:
            lines.append(f"  tight epsilon of the sampled law per unit: {self.tight_epsilon!r}")
        return "\n".join(lines)


def _short(rate: Fraction) -> str:
    try:
        return f"{float(rate):.6g}"
    except OverflowError:
        return f"2^{rate.numerator.bit_length() - rate.denominator.bit_length()}, roughly"


def _text(ratio: Fraction | None) -> str | None:
    return None if ratio is None else f"{ratio.numerator}/{ratio.denominator}"


def _dyadic(value: Fraction, bits: int) -> dict[str, Any]:
    return {"num": hex(int(value * 2**bits)), "bits": bits}


def from_fields(fields: "_core._Fields") -> Certificate:
    """Return the certificate of a plan that the core described."""

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
    )
