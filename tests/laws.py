"""The exact laws of releases and tiers of full width, from their certificates."""

from fractions import Fraction
from typing import Any

from verifier.verify import _parse, _parse_step, exact_distribution


def step_law(tier: dict[str, Any]) -> list[list[Fraction]]:
    """The law of a release, or of a tier's draw or step, for each count or finer value."""
    c, step = _parse(tier), _parse_step(tier) if "kappa" in tier else None
    rises, falls, floor, total = exact_distribution(c.digits, c.word, c.range)
    r, n, slot = c.range, 1 << c.value_bits, Fraction(floor, total)
    law = []
    for x in range(r + 1):
        drawn = [Fraction()] * (r + 1)
        for m, (rise, fall) in enumerate(zip(rises, falls, strict=True)):
            drawn[min(x + m, r)] += Fraction(rise, 2 * total)
            drawn[max(x - m, 0)] += Fraction(fall, 2 * total)
        stays = Fraction()
        if step:
            number = step.end if x in (0, r) else step.inside
            stays = Fraction(number, 1 << c.word * step.limbs)
        row = [(1 - stays) * p for p in drawn]
        row[x] += stays * (1 - slot)
        law.append([p + slot * Fraction(n - r if y == r else 1, n) for y, p in enumerate(row)])
    return law


def times(one: list[list[Fraction]], other: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the law of one step after another."""
    columns = [*zip(*other, strict=True)]
    return [[sum(p * q for p, q in zip(row, c, strict=True)) for c in columns] for row in one]
