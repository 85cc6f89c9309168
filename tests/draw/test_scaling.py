"""The cost of a draw, by counting: it grows with the logarithms of scale and bounds.

`make scaling` prints times.
"""

import itertools
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from geomdp import GeometricMechanism

SCALES = [Fraction(2) ** k for k in range(-10, 65, 3)]
WIDTHS = [2**k - 1 for k in (1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 24, 28, 32, 40, 48, 56, 63, 64)]
#: Noise beyond this many scales has probability below 2**-254, less than thresholds resolve.
TAIL = Fraction(254 * math.log(2))
MIB = 2**20


def bits(scale: Fraction, width: int) -> float:
    """Return the number of bits of the largest noise."""
    return math.log2(min(Fraction(width), TAIL * scale + 1))


def test_plans_grow_with_the_bits_of_the_noise() -> None:
    for scale, width in itertools.product(SCALES, WIDTHS):
        plan = GeometricMechanism.from_scale(scale, (0, width)).certificate()
        # On average a digit has at least three bits.
        digits = 1 + (1 + bits(scale, width)) / 3
        assert len(plan.digits) <= digits, (scale, width)
        # Up to three words for each digit, and two for all. At moderate scales one word is enough
        # for all but the last few digits.
        limbs = max(digit.limbs for digit in plan.digits)
        words = 3 + digits if scale <= 2**26 else 2 + limbs * digits
        assert plan.words_per_draw <= words, (scale, width)
        # At most 31 for five bits, and three more.
        thresholds = sum(len(digit.thresholds) for digit in plan.digits)
        assert thresholds <= 3 + 31 / 5 * bits(scale, width), (scale, width)


# Peak memory minus the memory before, when all pages of the counts are in use.
MEMORY = """
import re, sys
import numpy as np
from geomdp import GeometricMechanism

def held(what):
    with open("/proc/self/status") as status:
        return int(re.search(rf"{what}:\\s+(\\d+) kB", status.read())[1]) * 1024

n, threads, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
mechanism = GeometricMechanism.from_scale(1000.0)
mechanism.release(np.ones(10, np.int64), threads=1)
counts = np.ones(n, np.int64)
before = held("VmRSS")
mechanism.release(counts, out=counts if place == "in place" else None, threads=threads)
print(held("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", ["in place", "new"])
@pytest.mark.parametrize("n", [10**6, 10**7])
def test_working_memory_does_not_grow(n: int, place: str, threads: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(n), str(threads), place],
        check=True,
        capture_output=True,
        text=True,
    )
    output = 0 if place == "in place" else 8 * n
    # Linux counts pages in batches. The lower limit shows that the output is measured.
    assert 0.9 * output - MIB <= int(done.stdout) <= output + threads * MIB
