"""Audit the installed package as a black box, for a privacy loss above the nominal one.

The audit counts outputs over many releases for pairs of neighbouring counts, at the edges and in
the middle of the ranges of every dtype. A lower confidence bound for the probability of an event at
one count and an upper bound at the other (Clopper and Pearson) give a lower bound for the privacy
loss. The events are single outputs, all outputs up to one, and all outputs from one on. All bounds
hold together with probability at least 1 - 1e-6 (Bonferroni), so a lower bound above the map's loss
is a violation. The audit must also find a violation when it is given a smaller epsilon.

    make audit            10^9 draws, a minute or two
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

import geomdp
from geomdp._inputs.arrays import DTYPES

ALPHA = 1e-6
BATCH = 10_000_000


@dataclass(frozen=True)
class Setting:
    """A mechanism and a count; its neighbour is the count plus one."""

    epsilon: float
    dtype: str
    bounds: tuple[int, int] | None
    count: int

    def limits(self) -> tuple[int, int]:
        """Return the least and greatest output."""
        limits = np.iinfo(self.dtype)
        return self.bounds or (int(limits.min), int(limits.max))

    def frequencies(self, count: int, draws: int) -> np.ndarray:
        """Return how often each output occurs."""
        mechanism = geomdp.GeometricMechanism(self.epsilon, bounds=self.bounds)
        lower, upper = self.limits()
        found = np.zeros(upper - lower + 1, dtype=np.int64)
        counts: np.ndarray = np.full(min(draws, BATCH), count, dtype=self.dtype)
        noisy = np.empty_like(counts)
        for start in range(0, draws, len(counts)):
            part = noisy[: draws - start]
            mechanism.release(counts[: len(part)], out=part)
            # Unsigned, so that differences up to the width of the dtype do not overflow.
            offsets = part.astype(np.uint64) - np.uint64(lower % 2**64)
            found += np.bincount(offsets.astype(np.int64), minlength=len(found))
        return found


def settings() -> Iterator[Setting]:
    for dtype, epsilon in itertools.product(DTYPES, (0.1, 1.0)):
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        # Bounds at both ends of the dtype, with counts at each bound and in the middle.
        for bounds in ((low, low + 10), (high - 10, high)):
            for count in (bounds[0], bounds[0] + 5, bounds[1] - 1):
                yield Setting(epsilon, dtype, bounds, count)
        if limits.bits == 8:
            for count in (low, low + 100, high - 1):
                # Unsigned counts need bounds.
                yield Setting(epsilon, dtype, None if low else (low, high), count)


def least_loss(one: np.ndarray, other: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return a lower bound for the loss at this level, and the largest observed loss."""
    draws = int(one.sum())
    # Single outputs, all outputs up to each, and all from each on.
    one, other = (np.concatenate([n, n.cumsum(), n[::-1].cumsum()]) for n in (one, other))
    level = alpha / (4 * len(one))
    bound, observed = 0.0, 0.0
    for first, second in ((one, other), (other, one)):
        low = np.nan_to_num(beta.ppf(level, first, draws - first + 1))
        high = np.nan_to_num(beta.isf(level, second + 1, draws - second), nan=1.0)
        with np.errstate(divide="ignore"):
            bound = max(bound, float(np.log(low / high).max()))
        often = np.minimum(first, second) >= 100_000
        if often.any():
            observed = max(observed, float(np.log(first[often] / second[often]).max()))
    return bound, observed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=float, default=1e9, help="in all")
    arguments = parser.parse_args()
    chosen = list(settings())
    draws = int(arguments.draws / (2 * len(chosen)))
    alpha = ALPHA / len(chosen)
    violations = unseen = 0
    print(f"{len(chosen)} pairs of neighbours, {draws} draws at each count, level {ALPHA} in all")
    worst: dict[float, tuple[float, float]] = {}
    for setting in chosen:
        one, other = (setting.frequencies(setting.count + more, draws) for more in (0, 1))
        bound, observed = least_loss(one, other, alpha)
        violations += bound > setting.epsilon
        # An audit of 0.8 epsilon would miss a violation here.
        unseen += bound <= 0.8 * setting.epsilon
        before = worst.get(setting.epsilon, (0.0, 0.0))
        worst[setting.epsilon] = max(before[0], bound), max(before[1], observed)
    for epsilon, (bound, observed) in sorted(worst.items()):
        print(
            f"epsilon {epsilon}: the loss is at least {bound:.4f}, by confidence bounds; "
            f"the greatest observed is {observed:.4f}"
        )
    print(f"{violations} violations; {unseen} pairs where 0.8 epsilon would not have been one")
    return 1 if violations or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
