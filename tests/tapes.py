"""The exact distribution that a mechanism samples, over all tapes, by the stand-alone verifier."""

import functools
import math
from fractions import Fraction

from geomdp import GeometricMechanism
from verifier.verify import exact_distribution


class Distribution:
    """Probabilities of the outputs 0 to R for each count, over a common total."""

    def __init__(self, masses: list[list[int]], total: int) -> None:
        self.masses = masses
        self.total = total
        self.of_count: dict[int, list[int]] = {}

    def beyond(self, count: int, a: int) -> int:
        """Return the probability of an error of more than a, for any count."""
        if count not in self.of_count:
            self.of_count[count] = self._tails(count)
        tails = self.of_count[count]
        return tails[a] if a < len(tails) else 0

    def _tails(self, count: int) -> list[int]:
        row = self.masses[min(max(count, 0), len(self.masses) - 1)]
        errors = [0] * (max(count, len(row) - 1 - count) + 1)
        for y, mass in enumerate(row):
            errors[abs(y - count)] += mass
        return [sum(errors[a + 1 :]) for a in range(len(errors))]

    def allows(self, masses: list[int], level: Fraction) -> bool:
        """Return whether the union of these independent events has probability at most level."""
        none = math.prod(self.total - mass for mass in masses)
        most = self.total ** len(masses)
        return none * level.denominator >= most * (level.denominator - level.numerator)


@functools.cache
def sampled_distribution(scale: int | float | Fraction, R: int) -> Distribution:
    """Return the distribution over all tapes, from the thresholds of the certificate."""
    found = GeometricMechanism.from_scale(scale, (0, R)).certificate()
    distribution = exact_distribution(found.digits, found.limb_bits, R)
    return by_count(*distribution, found.floor_value_bits)


def by_count(
    rises: list[int], falls: list[int], floor: int, total: int, value_bits: int
) -> Distribution:
    """Return the distribution of the output for each count, from that of the noise."""
    R, slots, rows = len(rises) - 1, 2**value_bits, []
    for x in range(R + 1):
        # The floor's slot is uniform; values beyond R give R.
        row = [2 * floor] * R + [2 * floor * (slots - R)]
        for m, (rise, fall) in enumerate(zip(rises, falls, strict=True)):
            row[min(x + m, R)] += rise * slots
            row[max(x - m, 0)] += fall * slots
        rows.append(row)
    return Distribution(rows, 2 * slots * total)
