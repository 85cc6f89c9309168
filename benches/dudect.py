"""Test whether the time of a release depends on the counts or on the noise: `make dudect`.

This is the test of Reparaz, Balasch and Verbauwhede (*Dude, is my code constant time?*, 2017). It
interleaves calls of two classes at random and compares their times by Welch's t, for all calls and
for those below several percentiles. A |t| above 4.5 counts as a difference. A measurement proves
nothing, and other load hides much. It only supplements `make ct`, which checks the machine code.

* counts: one fixed count against random counts.
* noise: draws with small noise against draws with large noise.

Other samplers are measured for comparison.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

import geomdp

#: Takes an array of one count and returns the noisy count.
Sampler = Callable[[np.ndarray], int]
LIMIT = 4.5


def welch(one: np.ndarray, other: np.ndarray) -> float:
    spread = one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)
    return float((one.mean() - other.mean()) / spread**0.5) if spread else 0.0


def worst(times: np.ndarray, second: np.ndarray) -> float:
    """Return the t of largest magnitude, over all times and those below some percentiles."""
    cuts = [*np.percentile(times, [50, 80, 90, 95, 99]), np.inf]
    chosen = ((times[~second & (times <= cut)], times[second & (times <= cut)]) for cut in cuts)
    return max((welch(*pair) for pair in chosen if min(map(len, pair)) > 100), key=abs)


def measure(sampler: Sampler, samples: int, width: int) -> tuple[float, float, float]:
    """Return t by counts, t by noise, and nanoseconds per call."""
    rng = np.random.default_rng()
    second = rng.integers(0, 2, samples).astype(bool)
    counts = np.where(second, rng.integers(0, width, samples), width // 2)
    times, noisy = np.empty(samples, dtype=np.int64), np.empty(samples, dtype=np.int64)
    clock, one = time.perf_counter_ns, np.empty(1, dtype=np.int64)
    for i in range(samples):
        one[0] = counts[i]
        start = clock()
        result = sampler(one)
        times[i] = clock() - start
        noisy[i] = result
    warm = samples // 100
    times, size, second = times[warm:], np.abs(noisy - counts)[warm:], second[warm:]
    return worst(times, second), worst(times, size > np.median(size)), float(np.median(times))


def samplers(scale: float) -> dict[str, tuple[Sampler, float]]:
    """Return samplers by name, each with the fraction of samples that its speed allows."""
    free = geomdp.GeometricMechanism.from_scale(scale)
    bound = geomdp.GeometricMechanism.from_scale(scale, bounds=(0, 1_000_000))
    out = np.empty(1, dtype=np.int64)

    def array(mechanism: geomdp.GeometricMechanism) -> Sampler:
        return lambda count: mechanism.release(count, out=out)[0]

    rng, p = np.random.default_rng(), -np.expm1(-1 / scale)
    found: dict[str, tuple[Sampler, float]] = {
        "geomdp, array": (array(free), 1),
        "geomdp, array, bounds": (array(bound), 1),
        "geomdp, int": (lambda count: free.release(count[0]), 1),
        "numpy, difference": (lambda count: count[0] + rng.geometric(p) - rng.geometric(p), 0.1),
    }
    try:
        import opendp.prelude as dp  # noqa: PLC0415 (an extra)

        dp.enable_features("contrib")
        space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
        measurement = dp.m.make_geometric(*space, scale=scale)
        found["OpenDP"] = (lambda count: measurement(int(count[0])), 0.01)
    except ImportError:
        pass
    try:
        from diffprivlib.mechanisms import Geometric  # noqa: PLC0415 (an extra)

        other = Geometric(epsilon=1 / scale)
        found["diffprivlib"] = (lambda count: other.randomise(int(count[0])), 0.03)
    except ImportError:
        pass
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--scales", type=float, nargs="+", default=[1.0, 100.0, 1e6])
    arguments = parser.parse_args()
    print(f"a |t| above {LIMIT} is a difference")
    print(f"{'scale':>9}  {'sampler':<24}{'samples':>10}{'t, counts':>12}{'t, noise':>12}{'ns':>9}")
    for scale in arguments.scales:
        for name, (sampler, share) in samplers(scale).items():
            samples = int(arguments.samples * share)
            by_counts, by_noise, nanoseconds = measure(sampler, samples, 1_000_000)
            print(
                f"{scale:>9g}  {name:<24}{samples:>10}{by_counts:>12.1f}{by_noise:>12.1f}"
                f"{nanoseconds:>9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
