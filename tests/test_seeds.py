"""The example of the seed documents, and what they claim, against numbers worked out on their own.

The references are mpmath's digits and plain sums over the law of equation 2.1. The experiment is
random: each of its means is within what Chernoff's bound allows at the level 1e-6, whatever the
size of the sample.
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

from geomdp import GeometricMechanism
from geomdp._analysis import moments
from geomdp.accuracy import accuracy_to_epsilon, epsilon_to_accuracy

ROOT = Path(__file__).parents[1]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seeds", ROOT / "examples/seeds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


seeds = load()
LEVEL = 1e-6


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(60):
        yield


def real(value: Any) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


def noise(epsilon: Any, z: int) -> mpf:
    """Equation 2.1."""
    a = mpmath.exp(-real(epsilon))
    return (1 - a) / (1 + a) * a ** abs(z)


def censored(epsilon: Any, n: int, x: int) -> list[mpf]:
    """Return the law of a release, the ends being what is left on either side."""
    a = mpmath.exp(-real(epsilon))
    law = [noise(epsilon, y - x) for y in range(n + 1)]
    law[0], law[n] = a**x / (1 + a), a ** (n - x) / (1 + a)
    assert abs(sum(law) - 1) < mpf(10) ** -50
    return law


def rejected(epsilon: Any, n: int, x: int) -> list[mpf]:
    law = [noise(epsilon, y - x) for y in range(n + 1)]
    return [mass / sum(law) for mass in law]


def numbers(row: tuple[object, ...]) -> list[float]:
    """Return all numbers in a row of a table."""
    return [float(text) for text in re.findall(r"[\d.]+(?:e-?\d+)?", " ".join(map(str, row)))]


# Geometric Mechanism Notes


def test_the_probabilities_of_figure_2_1() -> None:
    exact = seeds.extremes()
    for count in (19, 20, 21):
        law = censored(0.1, 30, count)
        wanted = [law[0], law[30], law[0] + law[30]]
        assert all(
            abs(one - other) < mpf(10) ** -16
            for one, other in zip(exact[count], wanted, strict=True)
        )


def test_how_far_the_probabilities_that_the_text_quotes_are_from_the_exact_ones() -> None:
    """Beyond their last digits, by some 5 percent: 0.0710 and 0.2642 for "about 0.075, 0.25"."""
    (low, either), (exact_low, _, exact_either) = seeds.QUOTED[20], seeds.extremes()[20]
    assert (round(exact_low, 4), round(exact_either, 4)) == (0.0710, 0.2642)
    assert round(low - exact_low, 4) == 0.0040
    assert round(either - exact_either, 4) == -0.0142
    # Right to one digit, and to the nearest 0.05.
    assert abs(low - exact_low) < 0.005
    assert abs(either - exact_either) < 0.025


@pytest.mark.parametrize("epsilon", [0.1, 0.0086340184113117, 0.05])
def test_the_laws_of_figure_2_2(epsilon: float) -> None:
    laws = seeds.rejected(epsilon)
    assert list(laws) == ["19", "20", "21"]
    for count, law in laws.items():
        exact = [float(mass) for mass in rejected(epsilon, 30, int(count))]
        assert law == pytest.approx(exact, rel=1e-14)


def test_the_table_of_losses() -> None:
    rows = seeds.losses()
    assert [row[:2] for row in rows] == seeds.PAIRS
    for (epsilon, n), row in zip(seeds.PAIRS, rows, strict=True):
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
        # Of the largest epsilon' its last digit alone is too much, or the one below too little.
        unit = mpf(10) ** -(len(str(texts[4]).partition(".")[2]))
        largest = mpf(str(texts[4]))
        assert exact_loss(largest - unit, n)[1] < real(epsilon) < exact_loss(largest + unit, n)[1]


def exact_loss(epsilon: Any, n: int) -> tuple[mpf, mpf]:
    """Return the greatest ratio of two neighbours' sums, and of their probabilities, by trying."""
    a = mpmath.exp(-mpf(epsilon) if isinstance(epsilon, mpf) else -real(epsilon))
    sums = [sum(a ** abs(y - x) for y in range(n + 1)) for x in range(n + 1)]
    pairs = list(itertools.pairwise(sums))
    factor = max(max(one / other, other / one) for one, other in pairs)
    return factor, mpmath.log(factor / a)


def test_the_note_is_not_safe_where_noise_is_wide() -> None:
    """Its M bounds ratios of Pr(T), but the law has 1 - Pr(T): the loss is 1.6 times epsilon."""
    rows = {row[:2]: row for row in seeds.losses()}
    assert [pair for pair, row in rows.items() if "**" in str(row[5])] == [(0.01, 30)]
    assert float(str(rows[0.01, 30][5]).strip("*")) / 0.01 == pytest.approx(1.63, abs=0.005)
    assert float(str(rows[0.01, 30][2])) < float(str(rows[0.01, 30][3]))


def test_the_table_of_errors() -> None:
    for (epsilon, n), row in zip(seeds.PAIRS, seeds.errors(), strict=True):
        assert row[:2] == (epsilon, n)
        cut, note, exact, bayes, minimax = (numbers((cell,)) for cell in row[2:])
        laws = [censored(epsilon, n, x) for x in range(n + 1)]
        assert [f"{number:.3f}" for number in cut] == worst_and_average(laws)
        noise_of = {"exact": seeds.rejection.calibrated_epsilon(epsilon, n)}
        noise_of["note"] = seeds.rejection.note_epsilon(epsilon, n)
        for found, name in ((note, "note"), (exact, "exact")):
            laws = [rejected(noise_of[name], n, x) for x in range(n + 1)]
            assert [f"{number:.3f}" for number in found] == worst_and_average(laws)
        # What docs/utility.md says of them.
        assert minimax[0] <= min(cut[0], exact[0])
        assert bayes[1] <= min(cut[1], note[1], exact[1])
        assert exact[0] > cut[0]
        assert (exact[1] < cut[1]) == ((epsilon, n) in [(0.01, 30), (0.1, 10)])


def worst_and_average(laws: list[list[mpf]]) -> list[str]:
    errors = [sum(mass * abs(y - x) for y, mass in enumerate(law)) for x, law in enumerate(laws)]
    return [f"{float(max(errors)):.3f}", f"{float(sum(errors) / len(errors)):.3f}"]


# Geometric Mechanism Accuracy


def least_accuracy(epsilon: Any, alpha: Any) -> int:
    """Return the least a with ``P[|Z| > a] <= alpha``, by trying."""
    q, level = mpmath.exp(-real(epsilon)), real(alpha)
    return next(a for a in itertools.count() if 2 * q ** (a + 1) / (1 + q) <= level)


def note_accuracy(epsilon: Any, alpha: Any) -> int:
    return int(mpmath.ceil(-mpmath.log(real(alpha)) / real(epsilon)))


def test_the_table_of_accuracies() -> None:
    rows = seeds.accuracies()
    assert len(rows) == 8
    for epsilon, *cells in rows:
        for alpha, pair, continuous in zip(seeds.LEVELS, cells[::2], cells[1::2], strict=True):
            exact, note = least_accuracy(epsilon, alpha), note_accuracy(epsilon, alpha)
            assert pair == (f"**{exact}**, {note}" if exact < note else f"{exact}, {note}")
            wanted = -mpmath.log(real(alpha)) / real(epsilon)
            assert float(continuous) == pytest.approx(float(wanted), abs=0.00501)


@pytest.mark.parametrize("alpha", seeds.LEVELS)
def test_the_share_of_epsilons_with_a_better_accuracy(alpha: float) -> None:
    epsilons = np.geomspace(0.01, 10, 100)
    pairs = [(least_accuracy(e, alpha), note_accuracy(e, alpha)) for e in epsilons.tolist()]
    assert {note - exact for exact, note in pairs} == {0, 1}
    better = sum(exact < note for exact, note in pairs)
    assert seeds.share_of_better(alpha, epsilons) == better / 100


def test_the_table_of_conversions() -> None:
    for row in seeds.conversions():
        a, exact, note, saved = row[0], *map(str, row[1:])
        assert float(note) == pytest.approx(math.log(20) / a, abs=0.00005001)
        # The table's last digit is where the accuracy begins.
        assert least_accuracy(Fraction(exact) + Fraction(1, 10_000), 0.05) <= a
        assert least_accuracy(Fraction(exact) - Fraction(1, 10_000), 0.05) > a
        ratio = accuracy_to_epsilon(a, 0.05) / (math.log(20) / a)
        assert float(saved.rstrip("%")) == pytest.approx(100 * (1 - ratio), abs=0.0501)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-12, 0.9))
def test_the_example_of_the_note_has_accuracy_3_at_every_level(alpha: float) -> None:
    """It is taken to 4 by the ceiling, and the user would pay for what they have already."""
    epsilon = accuracy_to_epsilon(seeds.EXAMPLE, alpha, method="continuous")
    assert epsilon_to_accuracy(epsilon, alpha, method="note") == 4
    assert epsilon_to_accuracy(epsilon, alpha) == 3


def test_the_table_of_the_example() -> None:
    for alpha, epsilon, continuous, note, exact in seeds.example():
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
    """The post's inequality, for the library's variance: both sides rounded to float64."""
    exact = Fraction(x)
    laplace = 2 / exact**2
    rounded = float(laplace) if laplace < 2**1023 else math.inf
    assert moments.unbounded(exact).variance <= rounded


@settings(max_examples=300, deadline=None)
@given(positive)
@example(5e-324)
def test_the_inequality_at_the_end_of_the_post(x: Any) -> None:
    """``exp(x/2) - exp(-x/2) >= x``, strictly, and its derivative, which is negative."""
    value = real(min(Fraction(x), 10**6))
    with mpmath.workdps(60 + max(0, -3 * int(mpmath.log10(value)))):
        assert mpmath.exp(value / 2) - mpmath.exp(-value / 2) > value
        derivative = -mpmath.exp(-value / 2) * (mpmath.exp(value / 2) - 1) ** 2 / 2
        assert derivative < 0
        direct = 1 - (mpmath.exp(value / 2) + mpmath.exp(-value / 2)) / 2
        assert abs(derivative - direct) <= abs(direct) * mpf(10) ** -20


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 300))
@example(1e-6)
def test_the_ratios_of_variances_and_errors(x: float) -> None:
    half = real(x) / 2
    ratio = (mpmath.sinh(half) / half) ** 2
    assert seeds.variance_ratio(x) == pytest.approx(float(ratio), rel=1e-14)
    assert seeds.error_ratio(x) == pytest.approx(float(mpmath.sinh(2 * half) / (2 * half)), 1e-14)


def test_the_variance_is_10_times_smaller_from_5_84_on_and_not_from_3() -> None:
    assert round(seeds.variance_ratio(3), 4) == 2.0150
    root = mpmath.findroot(lambda x: (mpmath.sinh(x / 2) / (x / 2)) ** 2 - 10, 6)
    found = seeds.least(lambda epsilon: seeds.variance_ratio(epsilon) >= 10, 1, 20)
    assert abs(found - root) < 1e-13
    assert round(found, 4) == 5.8368


def test_the_mean_error_is_10_times_smaller_from_4_5_on() -> None:
    assert round(seeds.error_ratio(3), 4) == 3.3393
    root = mpmath.findroot(lambda x: mpmath.sinh(x) / x - 10, 4)
    found = seeds.least(lambda epsilon: seeds.error_ratio(epsilon) >= 10, 1, 20)
    assert abs(found - root) < 1e-13
    assert round(found, 4) == 4.4999


def test_what_barely_noticeable_is_at_epsilon_1() -> None:
    """A variance that is 9% larger, and a mean error that is 18% larger."""
    assert round(seeds.variance_ratio(1), 4) == 1.0862
    assert round(seeds.error_ratio(1), 4) == 1.1752


@pytest.mark.parametrize("epsilon", [0.3, 1, 2.5, 8])
def test_rounded_laplace_noise(epsilon: float) -> None:
    """Variance and mean absolute value are both cosh(epsilon / 2) times those of geometric noise.

    The post rounds Laplace noise to integers, for which its variance is not ``2 / epsilon**2``.
    """
    rate = real(epsilon)
    edges = [mpmath.exp(-rate * (k - mpf(1) / 2)) for k in range(1, 1000)]
    masses = [one - other for one, other in itertools.pairwise(edges)]
    size = sum(k * mass for k, mass in enumerate(masses, start=1))
    square = sum(k**2 * mass for k, mass in enumerate(masses, start=1))
    assert seeds.rounded_laplace(epsilon) == pytest.approx((float(square), float(size)), rel=1e-13)
    exact = moments.unbounded(Fraction(epsilon))
    times = mpmath.cosh(rate / 2)
    assert float(square) == pytest.approx(float(times * exact.variance), rel=1e-13)
    assert float(size) == pytest.approx(float(times * exact.absolute), rel=1e-13)


def test_the_table_of_ratios() -> None:
    rows = seeds.ratios()
    assert [float(row[0]) for row in rows] == [0.1, 0.5, 1, 2, 3, 4, 5, 5.837, 10]
    for row in rows:
        epsilon = float(row[0])
        rate = real(epsilon)
        a = mpmath.exp(-rate)
        spread, size = 2 * a / (1 - a) ** 2, 2 * a / (1 - a**2)
        wanted = [spread, 2 / rate**2, 2 / rate**2 / spread, size, 1 / rate, 1 / rate / size]
        wanted.append(mpmath.cosh(rate / 2))
        found = [float(text) for text in row[1:]]
        # The root itself is given to four digits.
        close = 1e-3 if epsilon == 5.837 else 5.01e-4
        assert found == pytest.approx([float(number) for number in wanted], rel=close)


def test_the_salaries_are_of_the_law_that_is_documented() -> None:
    salaries = seeds.simulated_salaries()
    assert salaries.shape == (29_000,)
    assert (salaries == seeds.simulated_salaries()).all()
    # Half of the law is above its median, and 10 / 29000 of it above 300 000.
    for border, expected in ((seeds.MEDIAN, 14_500), (300_000, 10)):
        above = int(np.count_nonzero(salaries > border))
        assert abs(above - expected) < 5 * math.sqrt(expected)
    logs = np.sort(np.log(salaries))
    spread = math.log(300 / 88) / -math.sqrt(2) / mpmath.erfinv(2 * mpf(10) / 29_000 - 1)
    scores = (logs - math.log(88_000)) / float(spread)
    below = [float(mpmath.ncdf(score)) for score in scores[::100]]
    # The inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant.
    distance = math.sqrt(math.log(2 / LEVEL) / (2 * 29_000))
    ranks = np.arange(0, 29_000, 100) / 29_000
    assert (abs(below - ranks) <= distance + 1 / 29_000).all()


def test_there_are_50_bins_from_40_000_to_400_000() -> None:
    assert len(seeds.EDGES) == 51
    assert (seeds.EDGES[0], seeds.EDGES[-1]) == (40_000, 400_000)
    counts, _ = np.histogram(seeds.simulated_salaries(), seeds.EDGES)
    assert 28_000 < counts.sum() <= seeds.SALARIES


def test_the_admissions_are_those_of_the_file() -> None:
    counts = seeds.admissions()
    assert counts.shape == (24,)
    assert counts.sum() == seeds.APPLICANTS


def salary_counts() -> np.ndarray:
    counts, _ = np.histogram(seeds.simulated_salaries(), seeds.EDGES)
    return counts


DATA = {
    "salaries": (salary_counts(), seeds.SALARIES),
    "admissions": (seeds.admissions(), seeds.APPLICANTS),
}


@pytest.mark.parametrize("data", DATA)
def test_expectations(data: str) -> None:
    counts, most = DATA[data]
    epsilons = np.array([0.02, 0.5, 3])
    exact = seeds.expectation(counts, most, epsilons)
    for i, epsilon in enumerate(epsilons.tolist()):
        a = mpmath.exp(-real(epsilon))
        free = len(counts) * 2 * a / (1 - a**2)
        assert exact["geometric"][i] == pytest.approx(float(free), rel=1e-13)
        assert exact["Laplace"][i] == pytest.approx(len(counts) / epsilon, rel=1e-13)
        # By summation of P[error >= k], one side at a time.
        bounded = sum(
            (a - a ** (room + 1)) / (1 - a) / (1 + a)
            for x in counts.tolist()
            for room in (x, most - x)
        )
        assert exact["geometric, bounds"][i] == pytest.approx(float(bounded), rel=1e-13)


#: How often the experiment is compared with its expectation.
COMPARISONS = len(DATA) * 3 * len(seeds.EPSILONS[::5])


def log_moments(epsilon: float, law: str, counts: np.ndarray, most: int, t: np.ndarray) -> Any:
    """Return ``log E exp(t * error)``, summed over the counts, for each t below epsilon."""
    a = math.exp(-epsilon)
    if law == "Laplace":
        return -len(counts) * np.log1p(-t / epsilon)
    tilted = a * np.exp(t)
    if law == "geometric":
        each = np.log((1 - a) / (1 + a)) + np.log1p(2 * tilted / (1 - tilted))
        return len(counts) * each
    total = np.zeros_like(t)
    for x in counts.tolist():
        moment = np.full_like(t, (1 - a) / (1 + a))
        for room in (x, most - x):
            if room:
                # Distances from 1 to room - 1, and all that is cut off at room.
                series = (tilted - np.exp(room * (t - epsilon))) / (1 - tilted)
                moment += (1 - a) / (1 + a) * series + np.exp(room * (t - epsilon)) / (1 + a)
            else:
                moment += 1 / (1 + a) - (1 - a) / (1 + a)
        total += np.log(moment)
    return total


@pytest.mark.parametrize("data", DATA)
def test_the_experiment_agrees_with_its_expectation(data: str) -> None:
    """By Chernoff: ``P[max over t of (t S - log E exp(t S)) >= u] <= 2 exp(-u)``, for any sum S."""
    counts, most = DATA[data]
    epsilons, runs = seeds.EPSILONS[::5], 500
    found = seeds.experiment(counts, most, epsilons, runs)
    exact = seeds.expectation(counts, most, epsilons)
    assert list(found) == list(exact)
    limit = math.log(2 * COMPARISONS / LEVEL)
    for law, errors in found.items():
        assert errors.shape == (runs, len(epsilons))
        for i, epsilon in enumerate(epsilons.tolist()):
            # The bound is that of the law with this expectation.
            near = epsilon * np.array([-1e-5, 1e-5])
            slope = np.diff(log_moments(epsilon, law, counts, most, near)) / np.diff(near)
            assert slope[0] == pytest.approx(exact[law][i], rel=1e-8)
            t = epsilon * np.linspace(-3, 0.99, 4001)
            moments = log_moments(epsilon, law, counts, most, t)
            total = errors[:, i].sum()
            assert (t * total - runs * moments).max() < limit, (law, epsilon)


@pytest.mark.parametrize("wrong", [0.93, 1.07])
def test_the_bound_on_the_experiment_would_see_an_error_of_7_percent(wrong: float) -> None:
    counts, most = DATA["salaries"]
    for epsilon in (0.01, 0.1, 1):
        for law in ("geometric", "Laplace", "geometric, bounds"):
            expected = seeds.expectation(counts, most, np.array([epsilon]))[law][0]
            t = epsilon * np.linspace(-3, 0.99, 4001)
            moments = log_moments(epsilon, law, counts, most, t)
            bound = (t * 500 * wrong * expected - 500 * moments).max()
            assert bound > math.log(2 * COMPARISONS / LEVEL)


def test_bounds_lower_the_error_where_there_are_empty_bins() -> None:
    counts, most = DATA["salaries"]
    exact = seeds.expectation(counts, most, seeds.EPSILONS)
    assert (exact["geometric, bounds"] < exact["geometric"]).all()
    assert (exact["geometric"] < exact["Laplace"]).all()


# The whole


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run the example, and return what it prints and where it wrote to."""
    output = tmp_path_factory.mktemp("seeds") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch, open(output.parents[1] / "log", "w+") as log:
        patch.setattr(sys, "argv", ["seeds.py", "--runs", "30", "--output", str(output)])
        patch.setattr(sys, "stdout", log)
        seeds.main()
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


def test_the_pictures_are_written_and_closed(printed: tuple[str, Path]) -> None:
    text, output = printed
    assert sorted(path.name for path in output.iterdir()) == PICTURES
    assert all(str(output / name) in text for name in PICTURES)
    for name in PICTURES:
        pixels = pyplot.imread(output / name)
        assert pixels.shape[1] == 800
        assert pixels.std() > 0.05
    assert not pyplot.get_fignums()


def test_simulated_data_are_said_to_be_simulated(printed: tuple[str, Path]) -> None:
    text, _ = printed
    lines = [line for line in text.splitlines() if re.search("salar", line, re.IGNORECASE)]
    shown = [line for line in lines if not line.startswith("wrote ")]
    assert len(shown) >= 2
    assert all("SIMULATED" in line for line in shown)


def test_rows_of_tables_are_as_long_as_their_headers(printed: tuple[str, Path]) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", printed[0], re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_the_tables_in_the_documentation_are_those_that_are_printed(
    printed: tuple[str, Path],
) -> None:
    rows = re.findall(r"^\|.*$", (ROOT / "docs/utility.md").read_text(), re.MULTILINE)
    assert len(rows) > 50
    lines = set(printed[0].splitlines())
    assert [row for row in rows if row not in lines] == []


def test_least() -> None:
    assert seeds.least(lambda value: value * value >= 2, 0, 10) == math.sqrt(2)
    assert seeds.least(lambda value: value >= 3, 1, 20) == 3


def test_the_mechanism_of_the_figures_is_private_at_its_epsilon() -> None:
    mechanism = GeometricMechanism(seeds.EPSILON, bounds=(0, seeds.RECORDS))
    certificate = mechanism.certificate(tight=True)
    assert certificate.tight_epsilon is not None
    assert certificate.tight_epsilon <= 0.1
