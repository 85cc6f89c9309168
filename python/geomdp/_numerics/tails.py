"""Tail probabilities of two-sided geometric noise, solved for the distance or for the rate.

``P(Z > a) = q**(a + 1) / (1 + q)`` for integers ``a >= 0``, with ``q = exp(-rate)``. This is the
sum of *Geometric Mechanism Notes*, equation 2.1, as in its section 2.4. Rates, ratios and levels
are positive Fractions, unless stated otherwise. Every comparison uses as many digits as needed
(``docs/proofs.md``, section 11).
"""

import math
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction

from geomdp._ground import decimals
from geomdp.certificate import Certificate

#: The relative margin of results rounded to the safe side; it exceeds the error of 40 digits.
SAFE = Decimal("1e-35")


def least(rate: Fraction, level: Fraction, n: int = 1) -> int:
    """Return the least integer ``a >= 0`` with ``P(|Z| > a) <= 1 - (1 - level)**(1 / n)``."""

    # q**(a + 1) is transcendental, so no tail equals a level.
    def terms() -> list[Decimal]:
        decay = decimals.of(rate)
        target = Decimal(2).ln() - _log_share(level, n)
        return [target / decay, -(1 + (-decay).exp()).ln() / decay]

    return max(0, decimals.ceiling(terms) - 1)


def rate(steps: Fraction, level: Fraction) -> Decimal:
    """Return the least rate with ``q**steps / (1 + q) <= level``, rounded up; 0 from 1/2 on."""
    if 2 * level >= 1:
        return Decimal(0)
    near = max(0, -decimals.bits(1 - 2 * level))
    with localcontext(decimals.context(60 + near * math.log10(2))):
        n, target = decimals.of(steps), -decimals.log(level)
        # n r + ln(1 + exp(-r)) - target is convex in r, and not negative here, so Newton's method
        # descends to the root from above.
        r = target / n
        while True:
            q = (-r).exp()
            step = (n * r + (1 + q).ln() - target) / (n - q / (1 + q))
            r -= step
            if step < r.scaleb(-40):
                return r * (1 + SAFE)


def scale(rate: Decimal) -> float:
    """Return the scale of noise with this rate, rounded down."""
    if not rate:
        return math.inf
    with localcontext(decimals.context(50)):
        # Noise is made for the greater reading of a float (docs/proofs.md, lemma 2a).
        return min(decimals.down(1 / rate), decimals.greatest(1 / rate))


def reach(rate: Fraction, level: Fraction) -> Decimal:
    """Return the real number a with ``q**a / (1 + q) = level``, at most 1/2, rounded up."""
    lost = max(0, -decimals.bits(rate))
    with localcontext(decimals.context(60 + lost * math.log10(2))):
        decay = decimals.of(rate)
        return (-decimals.log(level) - (1 + (-decay).exp()).ln()) / decay * (1 + SAFE)


def log_ratio(ratio: Fraction, level: Fraction) -> Decimal:
    """Return ``ratio * ln(1 / level)``, rounded up."""
    with localcontext(decimals.context(50)):
        return decimals.of(ratio) * -decimals.log(level) * (1 + SAFE)


def ceil_log_ratio(ratio: Fraction, level: Fraction, n: int = 1) -> int:
    """Return the ceiling of ``ratio * ln(1 / share)``, for the exact :func:`share`."""
    return decimals.ceiling(lambda: [decimals.of(ratio) * -_log_share(level, n)])


def beyond(certificate: Certificate, a: int, sides: int) -> Decimal:
    """Return a bound on the probability of an error above `a`, on one side of x or on both.

    Outside the floor's slot, the sampled tail is at most ``(1 + delta) mu + eta``, where mu is the
    ideal tail at the sampled rate. The slot has the mass of the floor.
    """
    delta, eta, floor = map(decimals.of, _errors(certificate))
    if certificate.sampled_rate is None:
        return Decimal(0)
    q = decimals.power(certificate.sampled_rate, 1)
    mu = decimals.power(certificate.sampled_rate, a + 1) / (1 + q)
    return sides * ((1 + delta) * mu + eta) + floor


def at_least(certificate: Certificate, distance: int) -> Decimal:
    """Return a bound on the probability that the noise is at least a distance of either sign."""
    if distance > 0:
        return beyond(certificate, distance - 1, 1)
    if certificate.sampled_rate is None:
        return Decimal(1)
    q = decimals.power(certificate.sampled_rate, 1)
    below = decimals.power(certificate.sampled_rate, 1 - distance) / (1 + q)
    return min(1 - below + sum(map(decimals.of, _errors(certificate))), Decimal(1))


def least_of(certificate: Certificate, level: Fraction, sides: int) -> int:
    """Return the least ``a >= 0`` whose :func:`beyond` is at most `level`; at most the range."""
    if certificate.sampled_rate is None or level == 1:
        return 0
    delta, eta, floor = _errors(certificate)
    tail = ((level - floor) / sides - eta) / (1 + delta)
    if tail <= 0:
        return certificate.range
    return min(least(certificate.sampled_rate, 2 * tail), certificate.range)


def _errors(certificate: Certificate) -> tuple[Fraction, Fraction, Fraction]:
    """Return delta, eta and the mass of the floor, all 0 if there is no noise."""
    zero = Fraction(0)
    return certificate.delta or zero, certificate.eta or zero, certificate.floor or zero


def share(level: Fraction, n: int) -> Fraction:
    """Return ``1 - (1 - level)**(1 / n)``, rounded down.

    This is the level of each of n independent events that have the given level together.
    """
    if level in (0, 1) or n == 1:
        return level
    with localcontext(_context(level, n, 60)):
        rest = (decimals.log(1 - level) / n).exp()
        return Fraction(1 - rest - SAFE * min(rest, 1 - rest))


def _log_share(level: Fraction, n: int) -> Decimal:
    """Return the logarithm of the exact share, to the precision of the context."""
    if level == 1 or n == 1:
        return decimals.log(level)
    with localcontext(_context(level, n, getcontext().prec + decimals.SPARE)):
        return (1 - (decimals.log(1 - level) / n).exp()).ln()


def _context(level: Fraction, n: int, digits: int) -> Context:
    """Return a context in which a share, and 1 minus it, have this many digits."""
    lost = n.bit_length() - decimals.bits(level) - decimals.bits(1 - level)
    return decimals.context(digits + max(0, lost) * math.log10(2))
