"""The example of the source notes, and their claims, against independent computations.

The references are sums over the distribution of equation 2.1, in mpmath. The experiment is random:
Chernoff's bound at level 1e-6 limits each of its means, at any sample size.
"""

import itertools
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import note_pictures
import numpy as np
import pytest
import source_notes
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpmath import mpf

from exact import censored, noise, power, real, rejected, tail
from geomdp import GeometricMechanism
from geomdp._analysis import moments
from geomdp.accuracy import accuracy_to_epsilon, epsilon_to_accuracy
from geomdp.distribution import TwoSidedGeometric
from geomdp.measurement import make_base_geometric
from geomdp.rejection import calibrated_epsilon, loss, pmf
from statistics_ import ALPHA

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(60):
        yield


def numbers(row: tuple[object, ...]) -> list[float]:
    """Return all numbers in a row of a table."""
    return [float(text) for text in re.findall(r"[\d.]+(?:e-?\d+)?", " ".join(map(str, row)))]


# Geometric Mechanism Notes


def test_probabilities_of_figure_2_1() -> None:
    exact = source_notes.extremes()
    for count in (19, 20, 21):
        pmf = censored(0.1, 30, count)
        wanted = [pmf[0], pmf[30], pmf[0] + pmf[30]]
        assert all(
            abs(one - other) < mpf(10) ** -16
            for one, other in zip(exact[count], wanted, strict=True)
        )


def test_quoted_probabilities_are_5_percent_off() -> None:
    """About 5% off: 0.0710 and 0.2642 for "about 0.075, 0.25"."""
    (low, either), (exact_low, _, exact_either) = (
        source_notes.QUOTED[20],
        source_notes.extremes()[20],
    )
    assert (round(exact_low, 4), round(exact_either, 4)) == (0.0710, 0.2642)
    assert round(low - exact_low, 4) == 0.0040
    assert round(either - exact_either, 4) == -0.0142
    # Correct to one digit, and to the nearest 0.05.
    assert abs(low - exact_low) < 0.005
    assert abs(either - exact_either) < 0.025


EPSILONS = [0.03, 0.1, math.log(2), 1, Fraction(7, 3)]
each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS, ids=float)


def truncated(epsilon: Any, n: int, x: int) -> mpf:
    """Return ``Pr(T)``: the probability that noise takes the count x below 0 or above n."""
    return 1 - sum(noise(epsilon, y - x) for y in range(n + 1))


@each_epsilon
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 30])
def test_censoring_probabilities_are_the_tails_of_the_noise(epsilon: Any, n: int) -> None:
    dist = TwoSidedGeometric(1 / Fraction(epsilon))
    for x in range(n + 1):
        below, above = tail(epsilon, x + 1), tail(epsilon, n - x + 1)
        assert dist.cdf(-x - 1) == pytest.approx(float(below), rel=1e-13)
        assert dist.sf(n - x) == pytest.approx(float(above), rel=1e-13)
        assert abs(below + above - truncated(epsilon, n, x)) < mpf(10) ** -50


@each_epsilon
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 30])
def test_ratios_of_equation_2_2(epsilon: Any, n: int) -> None:
    """The note calls L the ratio to the count below; its formula is that of the count above."""
    edge = 1 + power(epsilon, 1)

    def formula(x: int) -> mpf:
        return (power(epsilon, x + 1) + power(epsilon, n - x + 1)) / edge

    L, U = source_notes.ratios_2_2(float(epsilon), n, np.arange(n + 1))
    for x in range(n + 1):
        assert L[x] == pytest.approx(float(formula(x) / formula(x + 1)), rel=1e-12)
        assert U[x] == pytest.approx(float(formula(x) / formula(x - 1)), rel=1e-12)
        assert L[x] == pytest.approx(U[n - x], rel=1e-12)


@each_epsilon
@pytest.mark.parametrize("n", range(1, 13))
def test_derivatives_of_the_ratios(epsilon: Any, n: int) -> None:
    """The note's derivatives and their signs are right, so L falls and U grows."""
    rate = float(epsilon)
    for x in range(n + 1):
        found = source_notes.derivatives(rate, n, x)
        for index, sign in ((0, -1), (1, 1)):
            exact = mpmath.diff(lambda t, i=index: mp_ratios(rate, n, t)[i], x)
            assert found[index] == pytest.approx(float(exact), rel=1e-12)
            assert found[index] * sign > 0


def mp_ratios(epsilon: float, n: int, x: mpf) -> tuple[mpf, mpf]:
    a = mpmath.exp(-mpf(epsilon))
    top = a ** (2 * x + 1) + a ** (n + 1)
    return top / (a ** (2 * x + 2) + a**n), top / (a ** (2 * x) + a ** (n + 2))


@each_epsilon
@pytest.mark.parametrize("n", range(1, 40))
def test_extremes_and_factor_of_the_note(epsilon: Any, n: int) -> None:
    """The note says "L_1 > 1 for all n > 0", which fails for n up to 3."""
    L_1, L_n = (mp_ratios(float(epsilon), n, x)[0] for x in (1, n))
    assert L_n < 1
    assert abs(L_1 - 1) < mpf(10) ** -50 if n == 3 else (L_1 > 1) == (n > 3)
    a = power(float(epsilon), 1)
    M = (1 + a ** (n + 2)) / (a + a ** (n + 1))
    assert source_notes.note_factor(float(epsilon), n) == pytest.approx(float(M), rel=1e-12)
    prime = float(real(float(epsilon)) - mpmath.log(M))
    assert source_notes.note_epsilon(float(epsilon), n) == pytest.approx(prime, rel=1e-12)


#: By n: below this epsilon the note's noise loses more than epsilon, and above it less.
CROSSINGS = {
    2: 0.1596577175,
    3: 0.1629598567,
    5: 0.1345795253,
    10: 0.0855708905,
    30: 0.03363937637,
    100: 0.01070760419,
    1000: 0.001095785483,
    10**5: 1.098583974e-5,
}


@pytest.mark.parametrize("n", CROSSINGS)
def test_note_is_unsafe_for_small_epsilon(n: int) -> None:
    def excess(epsilon: float) -> float:
        return loss(source_notes.note_epsilon(epsilon, n), n) - epsilon

    for factor in (1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-8):
        assert excess(CROSSINGS[n] * factor) > 0
    for factor in (1 + 1e-8, 1.1, 2, 10, 30):
        assert excess(CROSSINGS[n] * factor) < 0
    assert n < 10**5 or abs(CROSSINGS[n] * n - math.log(3)) < 1e-4
    # For a tiny epsilon the loss is nearly twice epsilon, and for n = 1 it is never more.
    tiny = 1e-6 / n
    assert abs(excess(tiny) / tiny + 1 - 2 * n / (n + 1)) < 1e-5
    assert loss(source_notes.note_epsilon(tiny, 1), 1) < tiny


@pytest.mark.parametrize("n", [2, 30])
def test_factor_of_the_smaller_noise_is_unsafe_too(n: int) -> None:
    """The note could also mean: noise plus ln M, at the noise's own rate, is at most epsilon."""
    for epsilon in (1e-4, 1e-3, 0.3 / n):
        noise = source_notes.least(
            lambda e, most=epsilon: e + math.log(source_notes.note_factor(e, n)) > most, 0, epsilon
        )
        assert loss(noise * (1 - 1e-9), n) > 1.01 * epsilon


def test_example_of_the_note() -> None:
    """For n = 30 and epsilon 0.1 it is safe, and uses a sixth of the privacy loss."""
    noise = source_notes.note_epsilon(0.1, 30)
    assert round(noise, 5) == 0.00863
    assert round(loss(noise, 30), 5) == 0.01664
    masses = pmf(noise, 30, 20)
    assert 1.18 < masses.max() / masses.min() < 1.19  # "nearly uniform"


def test_estimated_factor_can_be_too_small() -> None:
    """The note's doubt is right: M from an estimate need not bound the ratio at the true count.

    At the true count itself it does, in this example.
    """
    estimated = source_notes.estimated_factor(0.1, 30, np.arange(31))
    sums = [sum(power(0.1, abs(y - x)) for y in range(31)) for x in range(31)]
    needed = source_notes.needed_factor(0.1, 30)
    for x, factor in enumerate(needed):
        around = [sums[y] for y in (x - 1, x + 1) if 0 <= y <= 30]
        exact = max(max(sums[x] / other, other / sums[x]) for other in around)
        assert factor == pytest.approx(float(exact), rel=1e-13)
    assert (estimated > needed).all()
    assert round(estimated[15], 4) == 1.0050
    assert round(needed[0], 4) == 1.0852


@pytest.mark.parametrize("penalty", [1, 10, 1000, 1e6])
def test_penalized_score_gains_at_most_half_of_epsilon(penalty: float) -> None:
    """Its sensitivity is the worst case, 1 + penalty, so the penalty is nearly without effect."""
    sensitivity, masses = source_notes.estimates(0.1, 30, penalty)
    assert sensitivity == 1 + penalty
    ratios = np.log(masses[1:] / masses[:-1])
    assert np.abs(ratios).max() <= 0.1 * (1 + 1e-9)
    bad = source_notes.scores(0.1, 30, 1) < source_notes.scores(0.1, 30, 0)
    # Two estimates equally far from the true count, one of them penalized.
    for x, row in enumerate(bad):
        for step in range(1, min(x, 30 - x) + 1):
            if row[x - step] != row[x + step]:
                odds = masses[x, x - step] / masses[x, x + step]
                assert abs(math.log(odds)) <= 0.05
    assert (masses[bad] > 0).all()
    assert (masses * bad).sum(axis=1).max() > 0.7


def test_table_of_penalties() -> None:
    for penalty, sensitivity, chance in source_notes.penalties():
        assert float(sensitivity) == 1 + penalty
        assert 0.7 < float(chance) < 0.75


@pytest.mark.parametrize("epsilon", [0.1, 0.0086340184113117, 0.05])
def test_distributions_of_figure_2_2(epsilon: float) -> None:
    pmfs = source_notes.rejected(epsilon)
    assert list(pmfs) == ["19", "20", "21"]
    for count, found in pmfs.items():
        exact = [float(mass) for mass in rejected(epsilon, 30, int(count))]
        assert found == pytest.approx(exact, rel=1e-14)


def test_table_of_losses() -> None:
    rows = source_notes.losses()
    assert [row[:2] for row in rows] == source_notes.PAIRS
    for (epsilon, n), row in zip(source_notes.PAIRS, rows, strict=True):
        a = mpmath.exp(-real(epsilon))
        ratios = [
            (a ** (2 * x + 1) + a ** (n + 1)) / (a ** (2 * x + 2) + a**n) for x in range(1, n + 1)
        ]
        M = max(max(ratio, 1 / ratio) for ratio in ratios)
        prime = real(epsilon) - mpmath.log(M)
        factor, _ = exact_loss(epsilon, n)
        _, loss = exact_loss(prime, n)
        _, _, *texts = row
        assert texts[0] == f"{float(M):.4f}"
        assert texts[1] == f"{float(factor):.4f}"
        assert float(texts[2]) == pytest.approx(float(prime), rel=1e-3)
        shown = str(texts[3])
        assert float(shown.strip("*")) == pytest.approx(float(loss), rel=1e-3)
        assert shown.startswith("**") == (loss > real(epsilon))
        # The largest safe epsilon' is within one unit of the printed last digit.
        unit = mpf(10) ** -(len(str(texts[4]).partition(".")[2]))
        largest = mpf(str(texts[4]))
        assert exact_loss(largest - unit, n)[1] < real(epsilon) < exact_loss(largest + unit, n)[1]


def exact_loss(epsilon: Any, n: int) -> tuple[mpf, mpf]:
    """Return the maximal ratio of two neighbours' sums, and the privacy loss, by enumeration."""
    a = mpmath.exp(-mpf(epsilon) if isinstance(epsilon, mpf) else -real(epsilon))
    sums = [sum(a ** abs(y - x) for y in range(n + 1)) for x in range(n + 1)]
    pairs = list(itertools.pairwise(sums))
    factor = max(max(one / other, other / one) for one, other in pairs)
    return factor, mpmath.log(factor / a)


def test_note_is_unsafe_for_large_noise() -> None:
    """M bounds ratios of Pr(T), but 1 - Pr(T) matters: the privacy loss is 1.6 times epsilon."""
    rows = {row[:2]: row for row in source_notes.losses()}
    assert [pair for pair, row in rows.items() if "**" in str(row[5])] == [(0.01, 30)]
    assert float(str(rows[0.01, 30][5]).strip("*")) / 0.01 == pytest.approx(1.63, abs=0.005)
    assert float(str(rows[0.01, 30][2])) < float(str(rows[0.01, 30][3]))


def test_table_of_errors() -> None:
    for (epsilon, n), row in zip(source_notes.PAIRS, source_notes.errors(), strict=True):
        assert row[:2] == (epsilon, n)
        cut, note, exact, bayes, minimax = (numbers((cell,)) for cell in row[2:])
        pmfs = [censored(epsilon, n, x) for x in range(n + 1)]
        assert [f"{number:.3f}" for number in cut] == worst_and_average(pmfs)
        formula = source_notes.note_epsilon(epsilon, n)
        for found, rate in ((note, formula), (exact, calibrated_epsilon(epsilon, n))):
            pmfs = [rejected(rate, n, x) for x in range(n + 1)]
            assert [f"{number:.3f}" for number in found] == worst_and_average(pmfs)
        # Stated in the example's README.md.
        assert minimax[0] <= min(cut[0], exact[0])
        assert bayes[1] <= min(cut[1], note[1], exact[1])
        assert exact[0] > cut[0]
        assert (exact[1] < cut[1]) == ((epsilon, n) in [(0.01, 30), (0.1, 10)])


def worst_and_average(pmfs: list[list[mpf]]) -> list[str]:
    errors = [sum(mass * abs(y - x) for y, mass in enumerate(pmf)) for x, pmf in enumerate(pmfs)]
    return [f"{float(max(errors)):.3f}", f"{float(sum(errors) / len(errors)):.3f}"]


# Geometric Mechanism Accuracy


def least_accuracy(epsilon: Any, alpha: Any) -> int:
    """Return the least a with ``P[|Z| > a] <= alpha``, by enumeration."""
    q, level = mpmath.exp(-real(epsilon)), real(alpha)
    return next(a for a in itertools.count() if 2 * q ** (a + 1) / (1 + q) <= level)


def note_accuracy(epsilon: Any, alpha: Any) -> int:
    return int(mpmath.ceil(-mpmath.log(real(alpha)) / real(epsilon)))


def test_table_of_accuracies() -> None:
    rows = source_notes.accuracies()
    assert len(rows) == 8
    for epsilon, *cells in rows:
        for alpha, pair, continuous in zip(
            source_notes.LEVELS, cells[::2], cells[1::2], strict=True
        ):
            exact, note = least_accuracy(epsilon, alpha), note_accuracy(epsilon, alpha)
            assert pair == (f"**{exact}**, {note}" if exact < note else f"{exact}, {note}")
            wanted = -mpmath.log(real(alpha)) / real(epsilon)
            assert float(continuous) == pytest.approx(float(wanted), abs=0.00501)


@pytest.mark.parametrize("alpha", source_notes.LEVELS)
def test_share_of_epsilons_with_a_better_accuracy(alpha: float) -> None:
    epsilons = np.geomspace(0.01, 10, 100)
    pairs = [(least_accuracy(e, alpha), note_accuracy(e, alpha)) for e in epsilons.tolist()]
    assert {note - exact for exact, note in pairs} == {0, 1}
    better = sum(exact < note for exact, note in pairs)
    assert source_notes.share_of_better(alpha, epsilons) == better / 100


def test_table_of_conversions() -> None:
    for row in source_notes.conversions():
        a, exact, note, saved = row[0], *map(str, row[1:])
        assert float(note) == pytest.approx(math.log(20) / a, abs=0.00005001)
        # The accuracy changes at the printed last digit.
        assert least_accuracy(Fraction(exact) + Fraction(1, 10_000), 0.05) <= a
        assert least_accuracy(Fraction(exact) - Fraction(1, 10_000), 0.05) > a
        ratio = accuracy_to_epsilon(a, 0.05) / (math.log(20) / a)
        assert float(saved.rstrip("%")) == pytest.approx(100 * (1 - ratio), abs=0.0501)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-12, 0.5))
def test_note_example_has_accuracy_3_at_every_level(alpha: float) -> None:
    """The ceiling makes it 4, so users would pay for an accuracy that they have already."""
    epsilon = accuracy_to_epsilon(source_notes.EXAMPLE, alpha, method="continuous")
    assert epsilon_to_accuracy(epsilon, alpha, method="ceiling") == 4
    assert epsilon_to_accuracy(epsilon, alpha) == 3


def test_table_of_the_example() -> None:
    for alpha, epsilon, continuous, note, exact in source_notes.example():
        assert float(str(epsilon)) == pytest.approx(math.log(1 / alpha) / 3.02, abs=0.00005001)
        assert (continuous, note, exact) == (3.02, 4, 3)


# Releasing Counts with Differential Privacy


@each_epsilon
def test_difference_of_two_geometrics(epsilon: Any) -> None:
    """``G - G'`` with ``P(G = k) = (1 - a) a**(k - 1)``, k from 1, is the noise (equation 2.1)."""
    a = power(epsilon, 1)
    far = int(150 / float(epsilon)) + 10
    masses = [(1 - a) * power(epsilon, k) for k in range(far + 7)]
    for z in range(7):
        convolved = mpmath.fdot(masses[z : far + z], masses[:far])
        assert abs(convolved - noise(epsilon, z)) < mpf(10) ** -50


def test_differencing_attack_is_bounded() -> None:
    """An attacker who knows all other records subtracts them from the exact count.

    From a noisy count the attacker learns little: each output changes the odds by exactly
    ``exp(epsilon)``, one way or the other.
    """
    others, n, epsilon = 19, 30, 0.1
    without, with_ = (censored(epsilon, n, x) for x in (others, others + 1))
    odds = [mpmath.log(one / other) for one, other in zip(with_, without, strict=True)]
    assert all(abs(abs(ratio) - real(epsilon)) < mpf(10) ** -50 for ratio in odds)
    # From even odds, the best guess is right with probability 0.525.
    best = sum(max(one, other) for one, other in zip(with_, without, strict=True)) / 2
    assert abs(best - 1 / (1 + power(epsilon, 1))) < mpf(10) ** -50
    assert round(float(best), 3) == 0.525


@pytest.mark.parametrize("epsilon", [0.1, 1, 2])
def test_relative_error_by_chebyshev_and_exactly(epsilon: float) -> None:
    """The post derives "within 10%, 95% of the time" from the variance; that takes more counts."""
    variance = moments.unbounded(Fraction(epsilon)).variance
    a = epsilon_to_accuracy(epsilon, 0.05)
    exact, chebyshev = 10 * a, 10 * math.sqrt(variance / 0.05)
    assert 2 * tail(epsilon, exact // 10 + 1) <= 0.05 < 2 * tail(epsilon, (exact - 1) // 10 + 1)
    assert chebyshev > 1.5 * exact
    if epsilon == 0.1:
        assert (exact, round(chebyshev)) == (300, 632)


def test_ratios_at_the_quoted_epsilons() -> None:
    """Apple's 2 and 4, and up to 14; RAPPOR's 2."""
    found = [source_notes.variance_ratio(epsilon) for epsilon in (2, 4, 14)]
    assert [f"{ratio:.4g}" for ratio in found] == ["1.381", "3.289", "6136"]


positive = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False),
    st.floats(1e-8, 100),
    st.builds(Fraction, st.integers(1, 10**40), st.integers(1, 10**40)),
)


@settings(max_examples=300, deadline=None)
@given(positive)
@example(5e-324)
@example(1e308)
@example(1e-9)
def test_geometric_noise_has_no_more_variance_than_laplace_noise(x: Any) -> None:
    """The post's inequality for the library's variance, both sides rounded to float64."""
    exact = Fraction(x)
    laplace = 2 / exact**2
    rounded = float(laplace) if laplace < 2**1023 else math.inf
    assert moments.unbounded(exact).variance <= rounded


@settings(max_examples=300, deadline=None)
@given(positive)
@example(5e-324)
def test_inequality_at_the_end_of_the_post(x: Any) -> None:
    """``exp(x/2) - exp(-x/2) > x``, and the derivative of the difference is negative."""
    value = real(min(Fraction(x), 10**6))
    with mpmath.workdps(60 + max(0, -3 * int(mpmath.log10(value)))):
        assert mpmath.exp(value / 2) - mpmath.exp(-value / 2) > value
        derivative = -mpmath.exp(-value / 2) * (mpmath.exp(value / 2) - 1) ** 2 / 2
        assert derivative < 0
        direct = 1 - (mpmath.exp(value / 2) + mpmath.exp(-value / 2)) / 2
        assert abs(derivative - direct) <= abs(direct) * mpf(10) ** -20


def test_ratio_10_is_reached_at_5_84_and_not_at_3() -> None:
    assert round(source_notes.variance_ratio(3), 4) == 2.0150
    root = mpmath.findroot(lambda x: (mpmath.sinh(x / 2) / (x / 2)) ** 2 - 10, 6)
    found = source_notes.least(lambda epsilon: source_notes.variance_ratio(epsilon) >= 10, 1, 20)
    assert abs(found - root) < 1e-13
    assert round(found, 4) == 5.8368
    # The mean error is 10 times smaller from 4.5 on.
    assert round(source_notes.error_ratio(3), 4) == 3.3393
    root = mpmath.findroot(lambda x: mpmath.sinh(x) / x - 10, 4)
    found = source_notes.least(lambda epsilon: source_notes.error_ratio(epsilon) >= 10, 1, 20)
    assert abs(found - root) < 1e-13
    assert round(found, 4) == 4.4999


def lines(axes: Axes) -> dict[str, tuple[Any, Any]]:
    """Return x and y of each line of a plot, by label."""
    return {str(line.get_label()): line.get_data() for line in axes.lines}


def test_picture_of_variances() -> None:
    """It marks the ratios of the variances at epsilon 3 and where it reaches 10."""
    axes, grid = Figure().subplots(), np.geomspace(0.01, 10, 40)
    note_pictures.variance(axes, grid)
    geometric, laplace, *marks = lines(axes).values()
    for x, y, ratio in zip(*geometric, laplace[1] / geometric[1], strict=True):
        a = mpmath.exp(-real(x))
        assert y == pytest.approx(float(2 * a / (1 - a) ** 2), rel=1e-13)
        assert ratio == pytest.approx(source_notes.variance_ratio(x), rel=1e-13)
    assert [text.get_text() for text in axes.texts] == [
        "ratio 2.02 at epsilon 3",
        "ratio 10 at epsilon 5.84",
    ]
    for (places, ends), epsilon, ratio in zip(marks, (3, 5.8368), (2.0150, 10), strict=True):
        assert list(places) == [pytest.approx(epsilon, abs=1e-5)] * 2
        assert ends[1] == 2 / places[0] ** 2
        assert ends[1] / ends[0] == pytest.approx(ratio, rel=1e-4)


def test_picture_of_errors() -> None:
    axes, runs = Figure().subplots(), np.array([[1.0, 2, 0], [3, 2, 0]])
    note_pictures.error(axes, np.array([0.1, 1, 10]), {"a": runs, "b": np.ones((5, 3))})
    assert {label: y.tolist() for label, (_, y) in lines(axes).items()} == {
        "a": [2, 2, 0],
        "b": [1, 1, 1],
    }
    # By one standard deviation of the runs.
    corners = {tuple(corner) for corner in axes.collections[0].get_paths()[0].vertices.tolist()}
    assert {(0.1, 1), (0.1, 3), (1, 2)} <= corners
    assert 0 < axes.get_ylim()[0] < 1


def test_picture_of_distributions() -> None:
    (axes, other), pmfs = Figure().subplots(2, sharey=True), source_notes.rejected(0.1)
    note_pictures.distribution(other, source_notes.rejected(0.01))
    note_pictures.distribution(axes, pmfs)
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > max(map(max, pmfs.values()))
    for (label, (places, heights)), stems in zip(
        lines(axes).items(), axes.collections, strict=True
    ):
        assert (np.round(places) == range(31)).all()
        assert (heights == pmfs[label]).all()
        tops = [segment[1].tolist() for segment in stems.get_segments()]
        assert tops == list(map(list, zip(places, heights, strict=True)))


def test_ratios_at_epsilon_1() -> None:
    """The variance is 9% larger, and the mean error 18%."""
    assert round(source_notes.variance_ratio(1), 4) == 1.0862
    assert round(source_notes.error_ratio(1), 4) == 1.1752


@pytest.mark.parametrize("epsilon", [0.3, 1, 2.5, 8])
def test_rounded_laplace_noise(epsilon: float) -> None:
    """Variance and mean absolute value are both cosh(epsilon / 2) times those of geometric noise.

    The post rounds Laplace noise, which makes its variance more than ``2 / epsilon**2``.
    """
    rate = real(epsilon)
    edges = [mpmath.exp(-rate * (k - mpf(1) / 2)) for k in range(1, 1000)]
    masses = [one - other for one, other in itertools.pairwise(edges)]
    size = sum(k * mass for k, mass in enumerate(masses, start=1))
    square = sum(k**2 * mass for k, mass in enumerate(masses, start=1))
    assert source_notes.rounded_laplace(epsilon) == pytest.approx(
        (float(square), float(size)), rel=1e-13
    )
    exact = moments.unbounded(Fraction(epsilon))
    times = mpmath.cosh(rate / 2)
    assert float(square) == pytest.approx(float(times * exact.variance), rel=1e-13)
    assert float(size) == pytest.approx(float(times * exact.absolute), rel=1e-13)


def test_table_of_ratios() -> None:
    rows = source_notes.ratios()
    assert [float(row[0]) for row in rows] == [0.1, 0.5, 1, 2, 3, 4, 5, 5.837, 10]
    for row in rows:
        epsilon = float(row[0])
        rate = real(epsilon)
        a = mpmath.exp(-rate)
        spread, size = 2 * a / (1 - a) ** 2, 2 * a / (1 - a**2)
        wanted = [spread, 2 / rate**2, 2 / rate**2 / spread, size, 1 / rate, 1 / rate / size]
        wanted.append(mpmath.cosh(rate / 2))
        found = [float(text) for text in row[1:]]
        # The root is printed with four digits.
        close = 1e-3 if epsilon == 5.837 else 5.01e-4
        assert found == pytest.approx([float(number) for number in wanted], rel=close)


def test_salaries_follow_the_documented_distribution() -> None:
    salaries = source_notes.simulated_salaries()
    assert salaries.shape == (29_000,)
    assert (salaries == source_notes.simulated_salaries()).all()
    assert (len(source_notes.EDGES), source_notes.EDGES[0], source_notes.EDGES[-1]) == (
        51,
        40_000,
        400_000,
    )
    assert 28_000 < salary_counts().sum() <= source_notes.SALARIES
    # Half of the distribution is above the median, and 10 / 29000 above 300 000.
    for border, expected in ((source_notes.MEDIAN, 14_500), (300_000, 10)):
        above = int(np.count_nonzero(salaries > border))
        assert abs(above - expected) < 5 * math.sqrt(expected)
    logs = np.sort(np.log(salaries))
    spread = math.log(300 / 88) / -math.sqrt(2) / mpmath.erfinv(2 * mpf(10) / 29_000 - 1)
    scores = (logs - math.log(88_000)) / float(spread)
    below = [float(mpmath.ncdf(score)) for score in scores[::100]]
    # The Dvoretzky-Kiefer-Wolfowitz inequality, with Massart's constant.
    distance = math.sqrt(math.log(2 / ALPHA) / (2 * 29_000))
    ranks = np.arange(0, 29_000, 100) / 29_000
    assert (abs(below - ranks) <= distance + 1 / 29_000).all()


def salary_counts() -> np.ndarray:
    counts, _ = np.histogram(source_notes.simulated_salaries(), source_notes.EDGES)
    return counts


DATA = {
    "salaries": (salary_counts(), source_notes.SALARIES),
    "admissions": (source_notes.admissions(), source_notes.APPLICANTS),
}


@pytest.mark.parametrize("data", DATA)
def test_expectations(data: str) -> None:
    counts, most = DATA[data]
    epsilons = np.array([0.02, 0.5, 3])
    exact = source_notes.expectation(counts, most, epsilons)
    for i, epsilon in enumerate(epsilons.tolist()):
        a = mpmath.exp(-real(epsilon))
        free = len(counts) * 2 * a / (1 - a**2)
        assert exact["geometric"][i] == pytest.approx(float(free), rel=1e-13)
        assert exact["Laplace"][i] == pytest.approx(len(counts) / epsilon, rel=1e-13)
        # Sum P[error >= k], one side at a time.
        bounded = sum(
            (a - a ** (room + 1)) / (1 - a) / (1 + a)
            for x in counts.tolist()
            for room in (x, most - x)
        )
        assert exact["geometric, bounds"][i] == pytest.approx(float(bounded), rel=1e-13)


#: Comparisons of the experiment with its expectation.
COMPARISONS = len(DATA) * 3 * len(source_notes.EPSILONS[::5])


def log_moments(epsilon: float, noise: str, counts: np.ndarray, most: int, t: np.ndarray) -> Any:
    """Return ``log E exp(t * error)``, summed over the counts, for each t below epsilon."""
    a = math.exp(-epsilon)
    if noise == "Laplace":
        return -len(counts) * np.log1p(-t / epsilon)
    tilted = a * np.exp(t)
    if noise == "geometric":
        each = np.log((1 - a) / (1 + a)) + np.log1p(2 * tilted / (1 - tilted))
        return len(counts) * each
    total = np.zeros_like(t)
    for x in counts.tolist():
        moment = np.full_like(t, (1 - a) / (1 + a))
        for room in (x, most - x):
            if room:
                # Distances from 1 to room - 1, and the tail at room.
                series = (tilted - np.exp(room * (t - epsilon))) / (1 - tilted)
                moment += (1 - a) / (1 + a) * series + np.exp(room * (t - epsilon)) / (1 + a)
            else:
                moment += 1 / (1 + a) - (1 - a) / (1 + a)
        total += np.log(moment)
    return total


@pytest.mark.parametrize("data", DATA)
def test_experiment_agrees_with_its_expectation(data: str) -> None:
    """By Chernoff, ``P[max over t of (t S - log E exp(t S)) >= u] <= 2 exp(-u)`` for any sum S.

    The bound rejects an expectation that is 7% off.
    """
    counts, most = DATA[data]
    epsilons, runs = source_notes.EPSILONS[::5], 500
    found = source_notes.experiment(counts, most, epsilons, runs)
    exact = source_notes.expectation(counts, most, epsilons)
    assert list(found) == list(exact)
    limit = math.log(2 * COMPARISONS / ALPHA)
    for kind, errors in found.items():
        assert errors.shape == (runs, len(epsilons))
        for i, epsilon in enumerate(epsilons.tolist()):
            # The expectation is the derivative at 0.
            near = epsilon * np.array([-1e-5, 1e-5])
            slope = np.diff(log_moments(epsilon, kind, counts, most, near)) / np.diff(near)
            assert slope[0] == pytest.approx(exact[kind][i], rel=1e-8)
            t = epsilon * np.linspace(-3, 0.99, 4001)
            moments = log_moments(epsilon, kind, counts, most, t)
            total = errors[:, i].sum()
            assert (t * total - runs * moments).max() < limit, (kind, epsilon)
            if data == "salaries" and epsilon <= 1:
                for factor in (0.93, 1.07):
                    wrong = factor * runs * exact[kind][i]
                    assert (t * wrong - runs * moments).max() > limit, (kind, epsilon)


def test_bounds_lower_the_error_where_there_are_empty_bins() -> None:
    counts, most = DATA["salaries"]
    exact = source_notes.expectation(counts, most, source_notes.EPSILONS)
    assert (exact["geometric, bounds"] < exact["geometric"]).all()
    assert (exact["geometric"] < exact["Laplace"]).all()


# Privacy Proofs for OpenDP: Geometric Measurement


def test_deviations_from_the_geometric_measurement() -> None:
    """Where `docs/migration.md` says that ours differs from the pseudocode."""
    bounds: Any = {"lower": 0, "upper": 3}
    with pytest.raises(TypeError, match=r"^bounds of type dict .* give a pair of ints"):
        make_base_geometric(1.0, bounds)
    assert make_base_geometric(0.0, (0, 3))(5) == 3
    assert make_base_geometric(0.0).map(0) == 0
    for scale, d_in in ((0.0, 1), (1.0, 10**400), (5e-324, 2**31)):
        assert make_base_geometric(scale, (0, 3)).map(d_in) == math.inf


# The whole


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run the example; return its output and the folder of its pictures."""
    output = tmp_path_factory.mktemp("source_notes") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch, open(output.parents[1] / "log", "w+") as log:
        patch.setattr(sys, "argv", ["source_notes.py", "--runs", "30", "--output", str(output)])
        patch.setattr(sys, "stdout", log)
        source_notes.main()
        log.seek(0)
        text = log.read()
    return text, output


PICTURES = [
    "accuracy.png",
    "berkeley_error.png",
    "figure_2_1.png",
    "figure_2_2.png",
    "salaries.png",
    "salaries_error.png",
    "variance.png",
]


def test_pictures_are_written_and_closed(printed: tuple[str, Path]) -> None:
    text, output = printed
    assert sorted(path.name for path in output.iterdir()) == PICTURES
    assert all(str(output / name) in text for name in PICTURES)
    for name in PICTURES:
        pixels = pyplot.imread(output / name)
        assert pixels.shape[1] == 800
        assert pixels.std() > 0.05
    assert not pyplot.get_fignums()


def test_simulated_data_are_marked(printed: tuple[str, Path]) -> None:
    text, _ = printed
    lines = [line for line in text.splitlines() if re.search("salar", line, re.IGNORECASE)]
    shown = [line for line in lines if not line.startswith("wrote ")]
    assert len(shown) >= 2
    assert all("SIMULATED" in line for line in shown)


def test_documented_tables_are_printed(
    printed: tuple[str, Path],
) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", printed[0], re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    rows = re.findall(
        r"^\|.*$", (ROOT / "examples/source_notes/README.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 50
    lines = set(printed[0].splitlines())
    assert [row for row in rows if row not in lines] == []


def test_mechanism_of_the_figures_keeps_its_epsilon() -> None:
    mechanism = GeometricMechanism(source_notes.EPSILON, bounds=(0, source_notes.RECORDS))
    certificate = mechanism.certificate(tight=True)
    assert certificate.tight_epsilon is not None
    assert certificate.tight_epsilon <= 0.1
