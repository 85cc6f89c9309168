"""A plugin of pytest that repeats each test with noise as unlucky as one release in a million.

No test may fail by chance with probability above 1e-6. `make unlucky` runs each test as it is, to
count its releases, and then in turns. In the first turn no release has any noise, as long as all of
them together have none with a probability above 1e-6: two releases are equal then, and estimates
are exact. In each other turn one release has noise in a tail of probability 1e-6: either one of its
counts is as far off as that, or the sum of all its noise is. A test that fails so, and not without,
fails by chance. Noise from a known key stays as it is, and so do the
places of `top`, tiers, folded noise, samplers and the noise of other processes.

UNLUCKY_TURNS is the number of turns of each test, UNLUCKY_SECONDS the time after which a test gets
no further turn, and UNLUCKY_SEED (`make unlucky SEED=...`) chooses the turns.
"""

import math
import os
import random
import time
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol

from geomdp import _core

CHANCE = 1e-6
DEVIATIONS = NormalDist().inv_cdf(1 - CHANCE)
#: The most counts whose sum is off: tests of more are about the shape of the noise.
MOST = 256
TURNS = int(os.environ.get("UNLUCKY_TURNS", "10"))
SECONDS = float(os.environ.get("UNLUCKY_SECONDS", "3"))
SEED = os.environ.get("UNLUCKY_SEED", "")
Core, release_not_private = _core.Mechanism, _core.release_not_private


class Turn:
    """The releases of a turn so far, and the unlucky one, if any."""

    def __init__(self, seed: str = "", among: int = 0, silent: bool = False) -> None:
        self.choice, self.releases, self.done = random.Random(seed), 0, "as it is"
        self.unlucky = self.choice.randrange(among) if among else None
        #: The logarithm of the probability that is left for releases without noise.
        self.left = -math.log(CHANCE) if silent else 0.0

    def silence(self, exact: Any, out: Any, rate: float, limits: tuple[int, int]) -> None:
        """Leave out the noise of a release, while that is likely enough."""
        a = math.exp(-rate)
        cost = out.size * math.log((1 + a) / -math.expm1(-rate))
        if cost <= self.left:
            self.left -= cost
            self.done = f"no noise, which has probability {CHANCE * math.exp(self.left):.2g}"
            out[:] = [min(max(int(each), limits[0]), limits[1]) for each in exact]

    def spoil(self, exact: Any, out: Any, ratio: Any, limits: tuple[int, int]) -> None:
        """Give a release its luck; the counts are in one dimension."""
        self.releases += 1
        if self.left and ratio is not None and out.size and Fraction(*ratio) > 2.0**-60:
            self.silence(exact, out, float(Fraction(*ratio)), limits)
        rare = ratio is None or not 2.0**-60 < Fraction(*ratio) < -math.log(CHANCE)
        if self.releases - 1 != self.unlucky or not out.size or rare:
            return
        rate = float(Fraction(*ratio))
        a, sign = math.exp(-rate), self.choice.choice((-1, 1))
        inside = 1 < out.size <= MOST and not any(end in limits for end in out.tolist())
        if inside and self.choice.random() < 0.5:
            deviation = math.sqrt(2 * a / out.size) / -math.expm1(-rate) * DEVIATIONS
            shifts = [sign * int(deviation + self.choice.random()) for _ in out]
            out[:] = np.clip(out.astype(object) + shifts, *limits)
            self.done = f"release {self.unlucky}, all of {out.size} counts: {sign * deviation}"
        else:  # a**m / (1 + a) = CHANCE
            m = sign * int(-math.log(CHANCE * (1 + a)) / rate)
            place = self.choice.choice((0, out.size - 1, self.choice.randrange(out.size)))
            least, most = limits
            out[place] = min(max(min(max(int(exact[place]), least), most) + m, least), most)
            self.done = f"release {self.unlucky}, count {place} of {out.size}: {m}"


class Mechanism:
    """The mechanism of the core, with the luck of the turn."""

    turn = Turn()

    def __init__(self, rate: Any, bounds: Any) -> None:
        self.inner, self.rate = Core(rate, bounds), rate

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def release_scalar(self, count: int, dtype: str) -> int:
        out = np.array([self.inner.release_scalar(count, dtype)], object)
        self.turn.spoil([count], out, self.rate, self.inner.limits(dtype))
        return int(out[0])

    def release_into(self, counts: Any, out: Any, report: Any, threads: int) -> None:
        exact = counts.copy()
        self.inner.release_into(counts, out, report, threads)
        limits = self.inner.limits(out.dtype.str[1:])
        self.turn.spoil(exact.reshape(-1), out.reshape(-1), self.rate, limits)


def _release_not_private(mechanism: Any, *arguments: Any) -> None:
    release_not_private(getattr(mechanism, "inner", mechanism), *arguments)


_core.Mechanism, _core.release_not_private = Mechanism, _release_not_private  # type: ignore


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> bool:
    """Run a test in turns until it fails."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    Mechanism.turn, last = Turn(), time.monotonic() + SECONDS
    reports = runtestprotocol(item, log=False, nextitem=None)
    among = Mechanism.turn.releases
    for number in range(-1 if among else 0, min(TURNS, 3 * among)):
        if time.monotonic() > last or not all(each.passed for each in reports):
            break
        Mechanism.turn = Turn(f"{SEED} {item.nodeid} {number}", among * (number >= 0), number < 0)
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=None)
    for each in reports:
        each.sections.append(("luck", f"turn {Mechanism.turn.done}"))
        item.ihook.pytest_runtest_logreport(report=each)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
