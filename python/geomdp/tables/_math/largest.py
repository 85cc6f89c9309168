"""The error of a search for the largest of several noisy counts (``docs/proofs.md``, section 19).

The noise G of each count is geometric: ``P(G >= s) = q**s``, with ``q = exp(-rate)``. If a count is
larger than N others by m - 1, one of these is named in its place with probability at most
``P(max of N noises >= G + m)``. With N equal counts before it, this is its probability.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

from geomdp._ground import decimals
from geomdp._numerics import tails

#: If at least this many noises are expected to reach m, the probability is above 0.96.
_MANY = 200


def least(rate: Fraction, level: Fraction, others: int) -> int:
    """Return the least t >= 0 at which ``P(max of the others' noises > G + t)`` is at most a level.

    For levels above 0.96 the result may be larger.
    """
    if not others:
        return 0
    # N q**m / (1 + q) is the first term of an alternating series, and so a bound.
    high = tails.ceil_log_ratio(1 / rate, min(level / others, Fraction(1, 2)))
    low = -1
    with localcontext(decimals.context(60)):
        target = decimals.of(level)
    while high - low > 1:
        middle = (low + high) // 2
        enough = exceeds(rate, middle + 1, others) <= target
        low, high = (low, middle) if enough else (middle, high)
    return high


def exceeds(rate: Fraction, m: int, others: int) -> Decimal:
    """Return ``P(max of the others' noises >= G + m)`` for m >= 1, rounded up; at most 1.

    By inclusion and exclusion it is the sum over j of ``(-1)**(j + 1) * binomial(N, j) * q**(m j)
    * (1 - q) / (1 - q**(j + 1))``. Its terms are at most ``(N q**m)**j / j!`` in size.
    """
    lost = max(0, -decimals.bits(rate))
    with localcontext(decimals.context(60 + lost * 0.302)):
        decay = decimals.of(rate)
        expected = others * (-decay * m).exp()
    if expected > _MANY:
        return Decimal(1)
    # The terms add up to exp(expected) in size.
    with localcontext(decimals.context(70 + lost * 0.302 + float(expected) * 0.87)):
        decay = decimals.of(rate)
        power, single = (-decay * m).exp(), 1 - (-decay).exp()
        total = Decimal(0)
        term = -Decimal(1)
        for j in range(1, others + 1):
            term *= -power * (others - j + 1) / j
            part = term * single / (1 - (-decay * (j + 1)).exp())
            total += part
            # From there on the terms fall, so that the rest is at most the last one.
            if j > expected and abs(part) < tails.SAFE * total:
                break
        return min(Decimal(1), total * (1 + 2 * tails.SAFE))
