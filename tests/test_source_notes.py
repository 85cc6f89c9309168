"""The example of the source notes, and their claims, against independent computations.

The references are sums over the distribution of equation 2.1, in mpmath. The experiment is random:
Chernoff's bound at level 1e-6 limits each of its means, at any sample size.
"""

import importlib.util
import itertools
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from mpmath import mpf

from exact import censored, real, rejected
from geomdp import GeometricMechanism
from geomdp._analysis import moments
from geomdp.accuracy import accuracy_to_epsilon, epsilon_to_accuracy
from statistics_ import ALPHA

ROOT = Path(__file__).parents[1]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("source_notes", ROOT / "examples/source_notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


source_notes = load()


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


@pytest.mark.parametrize("epsilon", [0.1, 0.0086340184113117, 0.05])
def test_distributions_of_figure_2_2(epsilon: float) -> None:
    pmfs = source_notes.rejected(epsilon)
    assert list(pmfs) == ["19", "20", "21"]
    for count, pmf in pmfs.items():
        exact = [float(mass) for mass in rejected(epsilon, 30, int(count))]
        assert pmf == pytest.approx(exact, rel=1e-14)


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
        noise_of = {"exact": source_notes.rejection.calibrated_epsilon(epsilon, n)}
        noise_of["ceiling"] = source_notes.rejection.note_epsilon(epsilon, n)
        for found, name in ((note, "ceiling"), (exact, "exact")):
            pmfs = [rejected(noise_of[name], n, x) for x in range(n + 1)]
            assert [f"{number:.3f}" for number in found] == worst_and_average(pmfs)
        # Stated in docs/utility.md.
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
@given(st.floats(1e-12, 0.9))
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
    for noise, errors in found.items():
        assert errors.shape == (runs, len(epsilons))
        for i, epsilon in enumerate(epsilons.tolist()):
            # The expectation is the derivative at 0.
            near = epsilon * np.array([-1e-5, 1e-5])
            slope = np.diff(log_moments(epsilon, noise, counts, most, near)) / np.diff(near)
            assert slope[0] == pytest.approx(exact[noise][i], rel=1e-8)
            t = epsilon * np.linspace(-3, 0.99, 4001)
            moments = log_moments(epsilon, noise, counts, most, t)
            total = errors[:, i].sum()
            assert (t * total - runs * moments).max() < limit, (noise, epsilon)
            if data == "salaries" and epsilon <= 1:
                for factor in (0.93, 1.07):
                    wrong = factor * runs * exact[noise][i]
                    assert (t * wrong - runs * moments).max() > limit, (noise, epsilon)


def test_bounds_lower_the_error_where_there_are_empty_bins() -> None:
    counts, most = DATA["salaries"]
    exact = source_notes.expectation(counts, most, source_notes.EPSILONS)
    assert (exact["geometric, bounds"] < exact["geometric"]).all()
    assert (exact["geometric"] < exact["Laplace"]).all()


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
    rows = re.findall(r"^\|.*$", (ROOT / "docs/utility.md").read_text(), re.MULTILINE)
    assert len(rows) > 50
    lines = set(printed[0].splitlines())
    assert [row for row in rows if row not in lines] == []


def test_mechanism_of_the_figures_keeps_its_epsilon() -> None:
    mechanism = GeometricMechanism(source_notes.EPSILON, bounds=(0, source_notes.RECORDS))
    certificate = mechanism.certificate(tight=True)
    assert certificate.tight_epsilon is not None
    assert certificate.tight_epsilon <= 0.1
