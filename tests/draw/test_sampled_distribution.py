"""The distribution of releases and samples, drawn with fresh randomness, against exact formulas."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from draws import DRAWS, Counts, Setting, censored, cuts, mass_of, refuses
from geomdp import sample_bernoulli, sample_geometric, sample_two_sided_geometric
from statistics_ import rejects

#: test_vectors.py has the exact noise of a known key for every dtype; `make exhaustive` and
#: the proofs have its law. These draw with fresh randomness.
SETTINGS = [
    *(Setting(0, "int64", scale) for scale in (0.1, 3.7, 2.0**40)),
    *(Setting(int(np.iinfo(dtype).max), dtype, 3.7) for dtype in ("int8", "uint64")),
    *(Setting(count, "int8", 200) for count in (-128, 5)),
    *(Setting(count, "int64", 20, (-7, 90)) for count in (-7, 45, 10**6)),
    *(Setting(0, dtype, 2.5, (0, 1)) for dtype in ("uint8", "int32")),
    Setting(2**63, "uint64", 10, (2**63 - 5, 2**63 + 5)),
    Setting(0, "int16", Fraction(2, 5)),
    Setting(0, "int32", Fraction(10**6, 3)),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_releases_follow_the_censored_distribution(setting: Setting) -> None:
    outputs = setting.draw()
    assert outputs.dtype == setting.dtype
    assert not setting.refuses(outputs)


# Wrong distributions are rejected.


@pytest.mark.parametrize("scale", [1, 3.7, 20, 1000])
@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_scale_off_by_one_percent_is_rejected(scale: float, factor: float) -> None:
    assert Setting(0, "int64", scale).refuses(Setting(0, "int64", scale * factor).draw())


@pytest.mark.parametrize("scale", [0.5, 3.7, 20])
@pytest.mark.parametrize("shift", [-1, 1])
def test_shift_by_one_is_rejected(scale: float, shift: int) -> None:
    setting = Setting(0, "int64", scale)
    assert setting.refuses(setting.draw() + shift)


# The samplers


@pytest.mark.parametrize(
    ("prob", "trials"),
    [(0.1, None), (0.5, None), (1e-3, None), (1 - 2**-10, None), (0.1, 5), (0.5, 2), (1e-3, 1000)],
)
def test_geometric_draws_follow_the_distribution(prob: float, trials: int | None) -> None:
    draws = sample_geometric(prob, DRAWS, trials)
    assert draws.dtype == np.int64
    assert not refuses_geometric(draws, prob, trials)


def refuses_geometric(draws: Counts, prob: float, trials: int | None) -> bool:
    upper = 2**63 - 1 if trials is None else trials
    mass = censored(mass_of(stats.geom(prob)), 0, 1, upper)
    return refuses(draws, mass, cuts(1, 1 / prob, 1, upper), upper)


def test_wrong_geometric_draws_are_rejected() -> None:
    assert refuses_geometric(sample_geometric(0.101, DRAWS), 0.1, None)
    assert refuses_geometric(sample_geometric(0.1, DRAWS) + 1, 0.1, None)
    assert refuses_geometric(sample_geometric(0.1, DRAWS), 0.1, 5)
    assert refuses_geometric(sample_geometric(0.1, DRAWS, 5), 0.1, None)


def test_geometric_draws_without_randomness() -> None:
    assert (sample_geometric(1.0, DRAWS) == 1).all()
    assert (sample_geometric(1.0, DRAWS, 7) == 1).all()
    assert (sample_geometric(0.3, DRAWS, 1) == 1).all()
    assert (sample_geometric(0.0, DRAWS, 7) == 7).all()
    assert (sample_geometric(0, 10, 2**63 - 1) == 2**63 - 1).all()


def test_rare_successes_saturate() -> None:
    # Lower draws have probability 2**63 * 2**-160.
    assert (sample_geometric(2.0**-160, 1000) == 2**63 - 1).all()
    assert (sample_geometric(5e-324, 1000, 10**6) == 10**6).all()


@pytest.mark.parametrize("prob", [0.5, 0.1, 1e-3, 0.999])
def test_bits_follow_the_distribution(prob: float) -> None:
    bits = sample_bernoulli(prob, DRAWS)
    assert bits.dtype == np.bool_
    observed = [np.count_nonzero(bits), np.count_nonzero(~bits)]
    assert not rejects(observed, [DRAWS * prob, DRAWS * (1 - prob)])
    assert rejects(observed, [DRAWS * prob * 0.8, DRAWS * (1 - prob * 0.8)])


def test_bits_without_randomness() -> None:
    for zero in (0, 0.0, -0.0, Fraction(0), 2.0**-70, 5e-324):
        assert not sample_bernoulli(zero, DRAWS // 10).any()
    for one in (1, 1.0, Fraction(1)):
        assert sample_bernoulli(one, DRAWS // 10).all()
    # Each is 0 with probability 2**-53.
    assert sample_bernoulli(1 - 2**-53, DRAWS // 10).all()


@pytest.mark.parametrize(
    "setting",
    [
        Setting(0, "int64", 3.7),
        Setting(4, "uint8", Fraction(2, 5), (0, 10)),
        Setting(90, "int32", 20, (-7, 90)),
    ],
    ids=str,
)
def test_two_sided_geometric_draws_follow_the_distribution(setting: Setting) -> None:
    shift = np.full(DRAWS, setting.count, setting.dtype)
    draws = sample_two_sided_geometric(shift, setting.scale, setting.bounds)
    assert draws.dtype == setting.dtype
    assert not setting.refuses(draws)


@pytest.mark.parametrize("draw", [sample_bernoulli, sample_geometric])
def test_sample_shapes(draw: Callable[..., Any]) -> None:
    single = draw(0.5)
    assert type(single) is (bool if draw is sample_bernoulli else int)
    for size in (0, 1, 7, 3000):
        assert draw(0.5, size).shape == (size,)
    for shape in ((), (0,), (3,), (2, 3), (3, 0, 2), (50, 60)):
        sample = draw(0.5, shape)
        assert type(sample) is np.ndarray
        assert sample.shape == shape
        assert sample.dtype == (np.bool_ if draw is sample_bernoulli else np.int64)
    assert len(np.unique(draw(0.5, (50, 60)))) > 1


def test_two_sided_geometric_shapes() -> None:
    assert type(sample_two_sided_geometric(5, 2.0)) is int
    assert type(sample_two_sided_geometric(np.uint8(5), 2.0, bounds=(0, 255))) is np.uint8
    assert sample_two_sided_geometric([5, 6], 2.0).dtype == np.int64
    assert sample_two_sided_geometric(np.zeros((3, 0, 2), "i2"), 2.0).shape == (3, 0, 2)
    assert sample_two_sided_geometric(5, 0) == 5
    assert sample_two_sided_geometric(5, 0, bounds=(7, 9)) == 7
