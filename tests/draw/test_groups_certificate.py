"""Plans of groups, by the verifier alone; and what is drawn by them."""

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from geomdp._kernel import core
from geomdp._numerics import scatter
from verifier.verify import VerificationError, verify_groups

Cert = dict[str, Any]
ALPHA = 1e-6
RATES = [Fraction(1, n) for n in (10**6, 10**4, 1000, 30, 3, 1)] + [Fraction(3), Fraction(10**3)]


def plan(rate: Fraction = Fraction(1, 10), places: int = 26**32, threshold: int = 1000) -> Any:
    return scatter.plan_of(rate, ((places, threshold), (1000, 3)))


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("places", [1, 2, 1000, 2**40, 26**32, 2**1024])
def test_plans_are_verified(rate: Fraction, places: int) -> None:
    near = max(1, math.ceil(math.log(places) / rate))
    for threshold in {1, 2, 7, near, 10**12}:
        own = plan(rate, places, threshold)
        report = verify_groups(json.dumps(own.certificate()))
        # Beyond a rate of 30, noise is drawn for a rate of 30.
        assert report.rate == min(rate, 30)
        for each, mean in zip(own.classes, report.spurious, strict=True):
            # Parts are rounded up.
            assert 0 <= mean - float(each.mean) <= max(1e-15 * mean, 5e-324)


def scaled(factor: Fraction) -> Callable[[str], str]:
    """Return the text of a multiple of a fraction."""

    def text(given: str) -> str:
        number = Fraction(given) * factor
        return f"{number.numerator}/{number.denominator}"

    return text


def _next(number: str) -> Fraction:
    return Fraction(math.nextafter(float(Fraction(number)), 1))


@pytest.mark.parametrize(
    ("path", "change", "refused"),
    [
        (("theta",), scaled(1 - Fraction(1, 2**20)), "theta"),
        (("theta",), scaled(Fraction(2**40)), "theta"),
        (("rate",), scaled(1 - Fraction(1, 2**20)), "theta"),
        (("stop",), lambda stop: scaled(_next(stop) / Fraction(stop))(stop), "digit"),
        (("stop",), scaled(1 + Fraction(1, 2**60)), "stop"),
        (("fall",), scaled(Fraction(3, 4)), "fall"),
        (("block",), lambda block: str(int(block) + 1), "theta"),
        (("block",), lambda block: str(1000 * int(block)), "block"),
        (("blocks",), lambda blocks: 0 * blocks, "blocks"),
        (("limb_bits",), lambda bits: bits + 1, "limb_bits"),
        (("digits", 0, "thresholds", 1), lambda cut: hex(int(cut, 16) + 2), "digit 0"),
        (("digits", 0, "thresholds", 0), lambda _: "0x1", "digit 0"),
        (("digits", 1, "thresholds", 0), lambda cut: hex(int(cut, 16) - 2), "digit 1"),
        (("digits", 0, "limbs"), lambda limbs: limbs + 1, "digit 0"),
        (("digits", 1, "weight"), lambda weight: str(2 * int(weight)), "digit 1"),
        (("classes", 0, "mean"), scaled(1 - Fraction(1, 2**80)), "class 0: .*seldom"),
        (("classes", 1, "mean"), scaled(1 - Fraction(1, 2**80)), "class 1: .*seldom"),
        (("classes", 1, "mean"), scaled(Fraction(1, 2)), "class 1"),
        (("classes", 1, "parts"), lambda parts: str(2 * int(parts)), "class 1: .*often"),
        (("classes", 1, "threshold"), lambda least: str(int(least) + 5), "class 1: .*often"),
        (("classes", 0, "threshold"), lambda least: str(int(least) - 1), "class 0: .*seldom"),
        (("classes", 0, "places"), lambda places: str(2 * int(places)), "class 0"),
        (("classes", 0, "words"), lambda words: words - 1, "class 0: words"),
        (("classes",), lambda _: [], "classes"),
    ],
)
def test_other_plans_are_refused(path: tuple[Any, ...], change: Any, refused: str) -> None:
    document = plan().certificate()
    verify_groups(document)
    changed = copy.deepcopy(document)
    *most, last = path
    part: Any = changed
    for place in most:
        part = part[place]
    part[last] = change(part[last])
    with pytest.raises(VerificationError, match=f"^{refused}"):
        verify_groups(changed)


def test_hostile_certificates_are_refused_at_once() -> None:
    for path, value in [
        (("rate",), "1/" + "9" * 4000),
        (("block",), str(10**30)),
        (("classes", 0, "places"), "9" * 4000),
        (("classes", 0, "threshold"), "9" * 4000),
        (("classes", 0, "parts"), "0"),
        (("classes", 0, "mean"), "1/3"),
        (("classes", 0, "mean"), "3/2"),
    ]:
        document: Any = plan().certificate()
        part = document
        for place in path[:-1]:
            part = part[place]
        part[path[-1]] = value
        with pytest.raises(VerificationError):
            verify_groups(document)


def test_groups_follow_their_law() -> None:
    """Occupied cells, numbers of points, their values and their places, each apart."""
    rate, key = Fraction(1), core.ReleaseKey(bytes(range(32)))
    own = scatter.plan_of(rate, ((10**6, 9),))
    [expected] = [float(each.mean) for each in own.classes]
    keys = (core.ReleaseKey(n.to_bytes(32, "big")) for n in range(400))
    drawn = [own.points(key=each)[0] for each in keys]
    numbers = np.array([len(values) for values, _ in drawn])
    # A sum of Poisson numbers is one.
    tail = stats.poisson(400 * expected)
    assert min(tail.cdf(numbers.sum()), tail.sf(numbers.sum() - 1)) > ALPHA / 2
    spread = ((numbers - expected) ** 2).sum() / expected
    assert min(stats.chi2.cdf(spread, 400), stats.chi2.sf(spread, 400)) > ALPHA / 2
    above = np.concatenate([values for values, _ in drawn]) - 9
    ideal = (1 - math.exp(-1)) * np.exp(-np.arange(8.0))
    check(np.bincount(np.minimum(above, 8), minlength=9), ideal)
    at = [own.classes[0].place(words) for _, places in drawn for words in places.tolist()]
    check(np.bincount(np.array(at) // 10**5, minlength=10), np.full(9, 0.1))
    counts = np.full(10**5, 50)
    noise = own.reach(counts, np.ones_like(counts), 0, key=key) - 50
    two_sided = math.tanh(0.5) * np.exp(-np.abs(np.arange(-8.0, 9)))
    check(np.bincount(np.clip(noise, -8, 9) + 8, minlength=18), two_sided, first=True)


def check(found: Any, ideal: Any, first: bool = False) -> None:
    """Compare numbers of outcomes, the last of which is all others, by chi-square."""
    if first:
        # The first outcome is all below as well.
        ideal = ideal.copy()
        ideal[0] /= 1 - math.exp(-1)
    expected = np.append(ideal, 1 - ideal.sum()) * found.sum()
    assert stats.chisquare(found, expected).pvalue > ALPHA


def test_more_cells_than_there_are_do_not_change_the_noise() -> None:
    own, key = plan(), bytes(32)
    counts, least = np.arange(1, 3000), np.full(2999, 1000)
    one, other = (
        own.reach(counts, least, number, key=core.ReleaseKey(key), threads=threads)
        for number, threads in ((0, 1), (5000, 3))
    )
    assert (one == other).all()
    assert 0 < np.count_nonzero(one) < one.size
    assert (one[one > 0] >= 1000).all()


def test_each_release_has_its_own_noise() -> None:
    own, counts = plan(), np.full(50, 10**6)
    noisy = [own.reach(counts, np.ones_like(counts), 0) for _ in range(2)]
    assert (noisy[0] != noisy[1]).any()
    first, second = (own.points()[1] for _ in range(2))
    assert not np.isin(first[1], second[1]).any()
