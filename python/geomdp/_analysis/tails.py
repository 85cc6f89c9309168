"""The tails of two-sided geometric noise, solved for where they begin and for the rate.

``P(Z > a) = q**(a + 1) / (1 + q)`` for integers ``a >= 0``, with ``q = exp(-rate)``: the sum of
*Geometric Mechanism Notes*, equation 2.1, as in its section 2.4. Everything is decided by as many
digits as it takes (``docs/proofs.md``, section 11).
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from geomdp._analysis import decimals
from geomdp._release.certificate import Certificate

#: Relative error of what is rounded to the safe side, more than that of 40 digits.
SAFE = Decimal("1e-35")


def least(rate: Fraction, level: Fraction) -> int:
    """Return the least integer ``a >= 0`` with ``P(Z > a) <= level``.

    Parameters
    ----------
    rate, level : Fraction
        Positive.

    """

    # q**(a + 1) is transcendental, so that no tail is equal to a level.
    def terms() -> list[Decimal]:
        decay = decimals.of(rate)
        return [-decimals.log(level) / decay, -(1 + (-decay).exp()).ln() / decay]

    return max(0, decimals.ceiling(terms) - 1)


def rate(steps: Fraction, level: Fraction) -> Decimal:
    """Return the least rate with ``q**steps / (1 + q) <= level``, rounded up; 0 for a level of 1/2.

    Parameters
    ----------
    steps, level : Fraction
        Positive.

    """
    if 2 * level >= 1:
        return Decimal(0)
    near = max(0, -decimals.bits(1 - 2 * level))
    with localcontext(decimals.context(60 + near * math.log10(2))):
        n, target = decimals.of(steps), -decimals.log(level)
        # n r + ln(1 + exp(-r)) - target is convex in r, and not negative here: Newton's steps
        # descend to the root from above.
        r = target / n
        while True:
            q = (-r).exp()
            step = (n * r + (1 + q).ln() - target) / (n - q / (1 + q))
            r -= step
            if step < r.scaleb(-40):
                return r * (1 + SAFE)


def reach(rate: Fraction, level: Fraction) -> Decimal:
    """Return the real number a with ``q**a / (1 + q) = level``, rounded up.

    Parameters
    ----------
    rate, level : Fraction
        Positive, and the level at most 1/2.

    """
    lost = max(0, -decimals.bits(rate))
    with localcontext(decimals.context(60 + lost * math.log10(2))):
        decay = decimals.of(rate)
        return (-decimals.log(level) - (1 + (-decay).exp()).ln()) / decay * (1 + SAFE)


def log_ratio(ratio: Fraction, level: Fraction) -> Decimal:
    """Return ``ratio * ln(1 / level)``, rounded up.

    Parameters
    ----------
    ratio, level : Fraction
        Not negative; positive and at most 1.

    """
    with localcontext(decimals.context(50)):
        return decimals.of(ratio) * -decimals.log(level) * (1 + SAFE)


def ceil_log_ratio(ratio: Fraction, level: Fraction) -> int:
    """Return the ceiling of ``ratio * ln(1 / level)``; else as :func:`log_ratio`."""
    return decimals.ceiling(lambda: [decimals.of(ratio) * -decimals.log(level)])


def beyond(law: Certificate, a: int, sides: int) -> Decimal:
    """Return how probable an error of more than a is, at most, on one side of x or on both.

    Outside the floor's slot, a tail of the sampled law has at most ``(1 + delta) mu + eta``, where
    mu is the ideal one at the sampled rate; the slot has the mass of the floor.
    """
    delta, eta, floor = map(decimals.of, _errors(law))
    if law.sampled_rate is None:
        return Decimal(0)
    q = decimals.power(law.sampled_rate, 1)
    mu = decimals.power(law.sampled_rate, a + 1) / (1 + q)
    return sides * ((1 + delta) * mu + eta) + floor


def least_of(law: Certificate, level: Fraction, sides: int) -> int:
    """Return the least ``a >= 0`` for which :func:`beyond` or the width of the bounds says so."""
    if law.sampled_rate is None or level == 1:
        return 0
    delta, eta, floor = _errors(law)
    tail = ((level - floor) / sides - eta) / (1 + delta)
    return min(least(law.sampled_rate, tail), law.range) if tail > 0 else law.range


def _errors(law: Certificate) -> tuple[Fraction, Fraction, Fraction]:
    """Return delta, eta and the mass of the floor: 0 if there is no noise."""
    return law.delta or Fraction(0), law.eta or Fraction(0), law.floor or Fraction(0)


def share(level: Fraction, n: int) -> Fraction:
    """Return ``1 - (1 - level)**(1 / n)``, rounded down: the level of each of n independent events.

    Parameters
    ----------
    level : Fraction
        Positive, at most 1.
    n : int
        Positive.

    """
    if level == 1 or n == 1:
        return level
    lost = n.bit_length() - decimals.bits(level) + 2
    with localcontext(decimals.context(50 + lost * math.log10(2))):
        return Fraction((1 - (decimals.log(1 - level) / n).exp()) * (1 - SAFE))
