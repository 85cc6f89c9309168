"""The example of the source notes, and their claims, against independent computations.

The references are sums over the distribution of equation 2.1, in mpmath. The tables are made of
functions of the package, which have tests of their own: here they are compared with the page.
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
from rejection import loss, pmf

from exact import noise, power, real, stated, tail
from geomdp import GeometricMechanism
from geomdp._numerics import count_moments
from geomdp.accuracy import accuracy_to_epsilon, epsilon_to_accuracy
from geomdp.measurement import make_base_geometric
from statistics_ import Z_LIMIT

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(60):
        yield


# Geometric Mechanism Notes


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


def test_note_is_unsafe_for_large_noise() -> None:
    """M bounds ratios of Pr(T), but 1 - Pr(T) matters: the privacy loss is 1.6 times epsilon."""
    rows = {row[:2]: row for row in source_notes.losses()}
    assert [pair for pair, row in rows.items() if "**" in str(row[5])] == [(0.01, 30)]
    assert float(str(rows[0.01, 30][5]).strip("*")) / 0.01 == pytest.approx(1.63, abs=0.005)
    assert float(str(rows[0.01, 30][2])) < float(str(rows[0.01, 30][3]))


def test_errors_are_as_the_page_says() -> None:
    for (epsilon, n), row in zip(source_notes.PAIRS, source_notes.errors(), strict=True):
        assert row[:2] == (epsilon, n)
        cut, note, exact, bayes, minimax = (
            [*map(float, str(cell).split(", "))] for cell in row[2:]
        )
        assert minimax[0] <= min(cut[0], exact[0])
        assert bayes[1] <= min(cut[1], note[1], exact[1])
        assert exact[0] > cut[0]
        assert (exact[1] < cut[1]) == ((epsilon, n) in [(0.01, 30), (0.1, 10)])


# Geometric Mechanism Accuracy


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-12, 0.5))
def test_note_example_has_accuracy_3_at_every_level(alpha: float) -> None:
    """The ceiling makes it 4, so users would pay for an accuracy that they have already."""
    epsilon = accuracy_to_epsilon(source_notes.EXAMPLE, alpha, method="continuous")
    assert epsilon_to_accuracy(epsilon, alpha, method="ceiling") == 4
    assert epsilon_to_accuracy(epsilon, alpha) == 3


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


@pytest.mark.parametrize("epsilon", [0.1, 1, 2])
def test_relative_error_by_chebyshev_and_exactly(epsilon: float) -> None:
    """The post derives "within 10%, 95% of the time" from the variance; that takes more counts."""
    variance = count_moments.unbounded(stated(epsilon)).variance
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
    exact = stated(x)
    laplace = 2 / exact**2
    rounded = float(laplace) if laplace < 2**1023 else math.inf
    assert count_moments.unbounded(exact).variance <= rounded


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
    exact = count_moments.unbounded(stated(epsilon))
    times = mpmath.cosh(rate / 2)
    assert float(square) == pytest.approx(float(times * exact.variance), rel=1e-13)
    assert float(size) == pytest.approx(float(times * exact.absolute), rel=1e-13)


def test_salaries_are_those_of_the_documented_distribution() -> None:
    salaries = source_notes.simulated_salaries()
    assert (salaries == source_notes.simulated_salaries()).all()
    assert salaries.shape == (29_000,)
    # Half of the distribution is above the median, and 10 / 29000 above 300 000.
    for border, expected in ((source_notes.MEDIAN, 14_500), (300_000, 10)):
        assert abs(np.count_nonzero(salaries > border) - expected) < 5 * math.sqrt(expected)


def salary_counts() -> np.ndarray:
    counts, _ = np.histogram(source_notes.simulated_salaries(), source_notes.EDGES)
    return counts


DATA = {
    "salaries": (salary_counts(), source_notes.SALARIES),
    "admissions": (source_notes.admissions(), source_notes.APPLICANTS),
}


@pytest.mark.parametrize("data", DATA)
def test_experiment_agrees_with_its_expectation(data: str) -> None:
    """Each mean is of 500 runs, and each run is a sum of many errors: nearly normal."""
    counts, most = DATA[data]
    epsilons, runs = source_notes.EPSILONS[::5], 500
    found = source_notes.experiment(counts, most, epsilons, runs)
    exact = source_notes.expectation(counts, most, epsilons)
    assert list(found) == list(exact)
    for kind, errors in found.items():
        assert errors.shape == (runs, len(epsilons))
        limit = Z_LIMIT * errors.std(axis=0) / math.sqrt(runs)
        off = abs(errors.mean(axis=0) - exact[kind])
        # With hardly any noise an error is rare, and its sum far from normal.
        usual = epsilons <= 1
        assert (off <= limit)[usual].all(), kind
        assert (limit < 0.1 * exact[kind])[usual].all(), kind


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
