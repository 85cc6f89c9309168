"""The figures and claims of the source notes, recomputed and drawn.

The source notes are *Geometric Mechanism Notes* (its figures and its statements on rejection),
*Geometric Mechanism Accuracy*, and *Releasing Counts with Differential Privacy* (variances and its
experiment). The output shows each quoted value next to the exact one. The salaries of the
experiment are not part of this project. SIMULATED ones take their place: their lognormal
distribution has 10 of 29,000 above 300,000, as in the post.

Needs matplotlib and scipy. README.md has the printed tables, with comments.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import note_pictures
import numpy as np
import rejection
import remap
from matplotlib.axes import Axes

from geomdp import GeometricMechanism
from geomdp.accuracy import accuracy_to_epsilon, epsilon_to_accuracy, mean_absolute_error, variance
from geomdp.distribution import CensoredGeometric
from geomdp.tables import plot

EXAMPLES = Path(__file__).parents[1]
EPSILONS = np.geomspace(0.01, 10, 31)

# Figures 2.1 and 2.2.
RECORDS, COUNTS, EPSILON = 30, (19, 20, 21), 0.1
QUOTED = {20: (0.075, 0.25)}  # the text's probabilities of 0, and of 0 or 30
PAIRS = [(0.01, 30), (0.1, 10), (0.1, 30), (0.1, 60), (0.5, 30), (1, 30)]

# The experiment: about 29,000 salaries, 50 bins from 40,000 to 400,000, about 10 above 300,000.
SALARIES, EDGES = 29_000, np.linspace(40_000, 400_000, 51)
MEDIAN, HIGH, ABOVE = 88_000, 300_000, 10
APPLICANTS = 4526  # public: the upper bound of every count at Berkeley


def table(header: str, rows: Iterable[Iterable[object]]) -> None:
    """Print a table as Markdown."""
    columns = header.split(" | ")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def least(reaches: Callable[[float], bool], low: float, high: float) -> float:
    """Return the point between two numbers where a condition begins to hold, by bisection."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def new_axes() -> Axes:
    _, axes = plt.subplots(figsize=(8, 4.5), dpi=100, layout="constrained")
    return axes


def save(axes: Axes, path: Path) -> None:
    plt.sca(axes)
    plt.savefig(path)
    plt.close("all")


# Geometric Mechanism Notes


def extremes() -> dict[int, tuple[float, float, float]]:
    """Return for each true count the censored probabilities of 0, of 30, and of either."""
    noisy = {count: CensoredGeometric(count, 1 / EPSILON, (0, RECORDS)) for count in COUNTS}
    ends = {count: release.pmf([0, RECORDS]).tolist() for count, release in noisy.items()}
    return {count: (low, high, low + high) for count, (low, high) in ends.items()}


def rejected(epsilon: float) -> dict[str, np.ndarray]:
    """Return the distributions of figure 2.2 by true count, with noise for this epsilon."""
    pmfs = rejection.pmf(epsilon, RECORDS, COUNTS)
    return dict(zip(map(str, COUNTS), pmfs, strict=True))


def ratios_2_2(epsilon: float, n: int, x: Any) -> tuple[Any, Any]:
    """Return ``L`` and ``U`` of equation 2.2 as published.

    They are the ratios of ``Pr(T)`` at x to that at ``x + 1`` and ``x - 1``; the text says the
    converse.
    """
    a = math.exp(-epsilon)
    top = a ** (2 * x + 1) + a ** (n + 1)
    return top / (a ** (2 * x + 2) + a**n), top / (a ** (2 * x) + a ** (n + 2))


def derivatives(epsilon: float, n: int, x: Any) -> tuple[Any, Any]:
    """Return the derivatives of ``L`` and ``U`` with respect to the count, as published."""
    a = math.exp(-epsilon)
    top = 2 * (a**2 - 1) * -epsilon * a ** (2 * x + n + 1)
    return -top / (a ** (2 * x + 2) + a**n) ** 2, top / (a ** (2 * x) + a ** (n + 2)) ** 2


def note_factor(epsilon: float, n: int) -> float:
    """Return ``M``, which is the greatest of ``1 / L_n``, ``1 / U_0``, ``L_1`` and ``U_(n-1)``."""
    (L_1, L_n), _ = ratios_2_2(epsilon, n, np.array([1, n]))
    _, (U_0, U_last) = ratios_2_2(epsilon, n, np.array([0, n - 1]))
    return float(max(1 / L_n, 1 / U_0, L_1, U_last))


def note_epsilon(epsilon: float, n: int) -> float:
    """Return the note's epsilon', ``epsilon - ln M``, without cancellation."""
    a = math.exp(-epsilon)
    return math.log1p(a**n * -math.expm1(-2 * epsilon) / (1 + a ** (n + 2)))


def estimated_factor(epsilon: float, n: int, estimate: Any) -> Any:
    """Return ``M`` for an estimated count: the greatest ratio of ``Pr(T)`` to a neighbour's."""
    ratios = np.array(ratios_2_2(epsilon, n, np.asarray(estimate)))
    return np.maximum(ratios, 1 / ratios).max(axis=0)


def needed_factor(epsilon: float, n: int) -> np.ndarray:
    """Return for each true count the greatest ratio of ``1 - Pr(T)`` to or from a neighbour's."""
    x = np.arange(n + 1)
    steps = np.abs(np.diff(np.log(np.exp(-epsilon * np.abs(x - x[:, np.newaxis])).sum(axis=1))))
    return np.exp(np.maximum(np.append(steps, 0), np.append(0, steps)))


def scores(epsilon: float, n: int, penalty: float) -> np.ndarray:
    """Return the penalized score of each estimate (columns) for each true count (rows).

    The score is minus the error, and less by the penalty if the estimate's ``M`` is below the ratio
    that the true count needs.
    """
    x = np.arange(n + 1)
    bad = estimated_factor(epsilon, n, x) < needed_factor(epsilon, n)[:, np.newaxis]
    return -np.abs(x - x[:, np.newaxis]) - penalty * bad


def estimates(epsilon: float, n: int, penalty: float) -> tuple[float, np.ndarray]:
    """Return the sensitivity of the score, and the exponential mechanism's pmf of estimates."""
    score = scores(epsilon, n, penalty)
    sensitivity = float(np.abs(np.diff(score, axis=0)).max())
    weights = np.exp(epsilon * (score - score.max(axis=1, keepdims=True)) / (2 * sensitivity))
    return sensitivity, weights / weights.sum(axis=1, keepdims=True)


def penalties() -> Sequence[tuple[object, ...]]:
    """Return how often M from an estimate is too small, by the size of the penalty."""
    rows = []
    for penalty in (0, 1, 10, 1000):
        sensitivity, pmf = estimates(EPSILON, RECORDS, penalty)
        bad = scores(EPSILON, RECORDS, 1) < scores(EPSILON, RECORDS, 0)
        chance = float((pmf * bad).sum(axis=1).max())
        rows.append((penalty, f"{sensitivity:g}", f"{chance:.3f}"))
    return rows


def draw_notes(output: Path) -> None:
    mechanism = GeometricMechanism(EPSILON, bounds=(0, RECORDS))
    axes = plot.pmf(mechanism, COUNTS)
    axes.set_title(f"Figure 2.1: censored, n = {RECORDS}, epsilon = {EPSILON}")
    save(axes, output / "figure_2_1.png")

    _, both = plt.subplots(
        2, figsize=(8, 6.5), dpi=100, sharex=True, sharey=True, layout="constrained"
    )
    ways = {
        "the note's epsilon'": note_epsilon(EPSILON, RECORDS),
        f"the largest with privacy loss {EPSILON}": rejection.calibrated_epsilon(EPSILON, RECORDS),
    }
    for axes, (way, epsilon) in zip(both, ways.items(), strict=True):
        note_pictures.distribution(axes, rejected(epsilon))
        axes.set_title(f"Figure 2.2: rejected, noise for {epsilon:.4f} ({way})")
        axes.legend(title="true count", ncols=3, loc="lower center", framealpha=1)
    both[0].set_xlabel("")
    save(both[0], output / "figure_2_2.png")


def losses() -> Sequence[tuple[object, ...]]:
    """Return the cost of rejection: the note's factor, epsilon' and loss, and the exact values."""
    rows = []
    for epsilon, n in PAIRS:
        noise = note_epsilon(epsilon, n)
        loss = rejection.loss(noise, n)
        exact = math.exp(rejection.loss(epsilon, n) - epsilon)
        shown = f"**{loss:.4g}**" if loss > epsilon else f"{loss:.4g}"
        largest = rejection.calibrated_epsilon(epsilon, n)
        factor = note_factor(epsilon, n)
        row = (f"{factor:.4f}", f"{exact:.4f}", f"{noise:.4g}", shown, f"{largest:.4g}")
        rows.append((epsilon, n, *row))
    return rows


def errors() -> Sequence[tuple[object, ...]]:
    """Return the worst and average expected absolute error of each way to stay in the range.

    The row has only the worst error of minimax remaps, since several exist and their averages
    differ.
    """
    rows = []
    for epsilon, n in PAIRS:
        distance = remap.absolute(n)
        ways = [remap.risk(epsilon, distance)]
        for noise in (note_epsilon(epsilon, n), rejection.calibrated_epsilon(epsilon, n)):
            ways.append((rejection.pmf(noise, n, np.arange(n + 1)) * distance).sum(axis=1))
        bayes = remap.bayes(epsilon, np.ones(n + 1), distance)
        ways.append(remap.risk(epsilon, distance, bayes))
        minimax = remap.risk(epsilon, distance, remap.minimax(epsilon, distance)).max()
        cells = [f"{risks.max():.3f}, {risks.mean():.3f}" for risks in ways]
        rows.append((epsilon, n, *cells, f"{minimax:.3f}"))
    return rows


def notes(output: Path) -> None:
    print("GEOMETRIC MECHANISM NOTES, section 2.4\n")
    print(f"Probabilities of 0 and {RECORDS}, epsilon {EPSILON} (figure 2.1):\n")
    rows: list[tuple[object, ...]] = []
    for count, exact in extremes().items():
        rows.append((count, *(f"{probability:.4f}" for probability in exact)))
        if count in QUOTED:
            low, either = QUOTED[count]
            rows.append((f"{count}, as quoted", low, "", either))
    table(f"true count | 0 | {RECORDS} | 0 or {RECORDS}", rows)
    print("Rejection instead of censoring (figure 2.2):\n")
    header = "epsilon | n | M | exact factor | the note's epsilon' | loss with it"
    table(f"{header} | largest epsilon' with loss epsilon", losses())
    print("Expected absolute error, worst case and average over true counts from 0 to n:\n")
    ways = "censored | rejected, formula | rejected, exact | Bayes remap | minimax remap"
    table(f"epsilon | n | {ways}", errors())
    print("M from an estimate by the exponential mechanism, with a penalized score:\n")
    table("penalty | sensitivity | M too small, at most with probability", penalties())
    draw_notes(output)


# Geometric Mechanism Accuracy

LEVELS = (0.01, 0.05, 0.1)
#: The note's example of a continuous accuracy with the ceiling 4.
EXAMPLE = 3.02


def exact_and_note(epsilon: Any, alpha: float) -> tuple[Any, Any]:
    """Return the least accuracy and the accuracy of the note's theorem."""
    return (
        epsilon_to_accuracy(epsilon, alpha),
        epsilon_to_accuracy(epsilon, alpha, method="ceiling"),
    )


def accuracies() -> Sequence[tuple[object, ...]]:
    """Return the exact, the note's and the continuous accuracy for some epsilons and levels."""
    rows = []
    for epsilon in (0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5):
        row: list[object] = [epsilon]
        for alpha in LEVELS:
            exact, note = exact_and_note(epsilon, alpha)
            continuous = epsilon_to_accuracy(epsilon, alpha, method="continuous")
            row += [f"**{exact}**, {note}" if exact < note else f"{exact}, {note}"]
            row += [f"{continuous:.2f}"]
        rows.append(tuple(row))
    return rows


def share_of_better(alpha: float, epsilons: np.ndarray) -> float:
    """Return the share of epsilons with an exact accuracy less than the note's."""
    exact, note = exact_and_note(epsilons, alpha)
    return float(np.mean(exact < note))


def conversions() -> Sequence[tuple[object, ...]]:
    """Return the exact and the note's least epsilon for some accuracies at level 0.05."""
    rows = []
    for a in (1, 2, 3, 5, 10, 30, 100):
        exact = accuracy_to_epsilon(a, 0.05)
        note = accuracy_to_epsilon(a, 0.05, method="ceiling")
        rows.append((a, f"{exact:.4f}", f"{note:.4f}", f"{1 - exact / note:.1%}"))
    return rows


def example() -> Sequence[tuple[object, ...]]:
    """Return both accuracies for the continuous accuracy in the note's example."""
    rows = []
    for alpha in LEVELS:
        epsilon = accuracy_to_epsilon(EXAMPLE, alpha, method="continuous")
        rows.append((alpha, f"{epsilon:.4f}", EXAMPLE, *exact_and_note(epsilon, alpha)[::-1]))
    return rows


def accuracy_note(output: Path) -> None:
    print("GEOMETRIC MECHANISM ACCURACY\n")
    print("Exact accuracy and the note's (bold where they differ), and without the ceiling:\n")
    levels = " | ".join(f"level {alpha} | continuous" for alpha in LEVELS)
    table(f"epsilon | {levels}", accuracies())
    epsilons = np.geomspace(0.01, 10, 1000)
    shares = ", ".join(f"{share_of_better(alpha, epsilons):.0%}" for alpha in LEVELS)
    print("Share of 1000 epsilons from 0.01 to 10 for which the exact accuracy is one less, at")
    print(f"these levels: {shares}.\n")
    print("The note's example:\n")
    table("level | epsilon | continuous | ceiling | exact", example())
    print("Least epsilon for an accuracy at level 0.05:\n")
    table("accuracy | exact | ceiling | saved", conversions())
    grid = np.geomspace(0.05, 10, 400)
    axes = plot.accuracy(grid, alpha=0.05, n=1)
    axes.lines[0].set_label("exact")
    ceiling = epsilon_to_accuracy(grid, 0.05, method="ceiling")
    axes.step(grid, ceiling, "C1--", where="post", label="ceiling")
    axes.plot(grid, epsilon_to_accuracy(grid, 0.05, method="continuous"), "k:", label="continuous")
    axes.legend()
    save(axes, output / "accuracy.png")


# Releasing Counts with Differential Privacy


def variance_ratio(epsilon: float) -> float:
    """Return the ratio of the variances of Laplace and geometric noise."""
    return 2 / epsilon**2 / variance(GeometricMechanism(epsilon), 0)


def error_ratio(epsilon: float) -> float:
    """Return the ratio of the mean absolute values of Laplace and geometric noise."""
    return 1 / epsilon / mean_absolute_error(GeometricMechanism(epsilon), 0)


def rounded_laplace(epsilon: float) -> tuple[float, float]:
    """Return variance and mean absolute value of Laplace noise rounded to integers.

    They follow from ``P[abs(Z) >= k] = exp(-epsilon * (k - 1/2))`` for ``k >= 1``.
    """
    wave = math.sinh(epsilon / 2)
    return math.cosh(epsilon / 2) / (2 * wave**2), 1 / (2 * wave)


def ratios() -> Sequence[tuple[object, ...]]:
    """Return variances and mean absolute values of both kinds of noise, and their ratios."""
    tenfold = least(lambda epsilon: variance_ratio(epsilon) >= 10, 1, 20)
    rows = []
    for epsilon in sorted([0.1, 0.5, 1, 2, 3, 4, 5, tenfold, 10]):
        mechanism = GeometricMechanism(epsilon)
        spread, size = variance(mechanism, 0), mean_absolute_error(mechanism, 0)
        rounded = rounded_laplace(epsilon)[0] / spread
        numbers = [spread, 2 / epsilon**2, variance_ratio(epsilon)]
        numbers += [size, 1 / epsilon, error_ratio(epsilon), rounded]
        rows.append((f"{epsilon:.4g}", *(f"{number:.4g}" for number in numbers)))
    return rows


def simulated_salaries() -> np.ndarray:
    """Return salaries from a lognormal distribution, with a fixed seed.

    We chose the median; 10 of 29,000 salaries are expected to be above 300,000.
    """
    spread = math.log(HIGH / MEDIAN) / NormalDist().inv_cdf(1 - ABOVE / SALARIES)
    normal = NormalDist(math.log(MEDIAN), spread)
    uniform = np.random.default_rng(2018).random(SALARIES)
    return np.exp([normal.inv_cdf(u) for u in uniform])


def admissions() -> np.ndarray:
    """Return the counts of graduate admissions at Berkeley in 1973."""
    with open(EXAMPLES / "berkeley_admissions.csv", newline="") as file:
        return np.array([int(row["count"]) for row in csv.DictReader(file)])


def experiment(
    counts: np.ndarray, most: int, epsilons: np.ndarray, runs: int
) -> dict[str, np.ndarray]:
    """Return the L1 error of a noisy histogram for each run (rows) and epsilon (columns).

    The releases are independent. They serve to show the noise; nobody would publish so many.
    """
    laid = np.tile(counts, (runs, 1))
    rng = np.random.default_rng()
    errors: dict[str, list[np.ndarray]] = {"geometric": [], "Laplace": [], "geometric, bounds": []}
    for epsilon in epsilons:
        free = GeometricMechanism(epsilon).release(laid)
        bounded = GeometricMechanism(epsilon, bounds=(0, most)).release(laid)
        noise = rng.laplace(scale=1 / epsilon, size=laid.shape)
        for of, error in zip(errors.values(), (free - laid, noise, bounded - laid), strict=True):
            of.append(np.abs(error).sum(axis=1))
    return {name: np.column_stack(columns) for name, columns in errors.items()}


def expectation(counts: np.ndarray, most: int, epsilons: np.ndarray) -> dict[str, np.ndarray]:
    """Return the exact expectations of the errors in `experiment`."""
    free, bounded = [], []
    for epsilon in epsilons:
        free.append(mean_absolute_error(GeometricMechanism(epsilon), counts).sum())
        mechanism = GeometricMechanism(epsilon, bounds=(0, most))
        bounded.append(mean_absolute_error(mechanism, counts).sum())
    return {
        "geometric": np.array(free),
        "Laplace": len(counts) / epsilons,
        "geometric, bounds": np.array(bounded),
    }


def show_experiment(title: str, counts: np.ndarray, most: int, runs: int, path: Path) -> None:
    exact = expectation(counts, most, EPSILONS)
    start = time.perf_counter()
    found = experiment(counts, most, EPSILONS, runs)
    seconds = time.perf_counter() - start
    shown = range(0, len(EPSILONS), 5)
    print(f"Expected L1 error, {title}:\n")
    table(
        "epsilon | " + " | ".join(exact),
        [(f"{EPSILONS[i]:.4g}", *(f"{of[i]:.4g}" for of in exact.values())) for i in shown],
    )
    print(f"Mean and standard deviation of {runs} runs ({seconds:.2f} s for all epsilons):\n")
    bands = {name: (of.mean(axis=0), of.std(axis=0)) for name, of in found.items()}
    table(
        "epsilon | " + " | ".join(found),
        [
            (f"{EPSILONS[i]:.4g}", *(f"{mean[i]:.4g} ± {sd[i]:.3g}" for mean, sd in bands.values()))
            for i in shown
        ],
    )
    axes = new_axes()
    note_pictures.error(axes, EPSILONS, found)
    axes.set_title(f"{title}: {runs} runs, mean and standard deviation")
    save(axes, path)


def draw_histogram(counts: np.ndarray, epsilon: float, path: Path) -> None:
    """Draw the histogram of the simulated salaries with intervals within the bounds."""
    mechanism = GeometricMechanism(epsilon, bounds=(0, SALARIES))
    noisy = mechanism.release(counts)
    axes = plot.histogram(mechanism, noisy, true=counts, edges=EDGES / 1000)
    axes.set_xlabel("salary (thousand dollars)")
    axes.set_ylabel("employees per bin")
    axes.set_title("SIMULATED salaries")
    save(axes, path)


def post(output: Path, runs: int) -> None:
    print("RELEASING COUNTS WITH DIFFERENTIAL PRIVACY\n")
    print("Variance and mean absolute value of geometric and Laplace noise, and their ratios:\n")
    names = "variance | Laplace | ratio | mean abs. | Laplace | ratio | ratio, rounded Laplace"
    table(f"epsilon | {names}", ratios())
    tenfold = least(lambda epsilon: variance_ratio(epsilon) >= 10, 1, 20)
    errors = least(lambda epsilon: error_ratio(epsilon) >= 10, 1, 20)
    print(
        "The post says that the variance is over 10 times smaller for epsilon of at least 3. It is "
        f"{variance_ratio(3):.2f}\ntimes smaller at 3, and 10 times from {tenfold:.3f} on. The "
        f"mean absolute value is {error_ratio(3):.2f} times\nsmaller at 3, and 10 times from "
        f"{errors:.3f} on. At epsilon 1 the ratios are {variance_ratio(1):.3f} and "
        f"{error_ratio(1):.3f}.\n"
    )
    axes = new_axes()
    note_pictures.variance(axes, np.geomspace(0.01, 10, 200))
    save(axes, output / "variance.png")

    salaries = simulated_salaries()
    counts, _ = np.histogram(salaries, EDGES)
    print(
        f"{SALARIES} SIMULATED salaries, {np.count_nonzero(salaries > HIGH)} above {HIGH}, "
        f"{counts.sum()} within the {len(counts)} bins.\n"
    )
    draw_histogram(counts, 0.05, output / "salaries.png")
    title = f"{len(counts)} bins of SIMULATED salaries"
    show_experiment(title, counts, SALARIES, runs, output / "salaries_error.png")
    counts = admissions()
    title = f"{len(counts)} counts of admissions at Berkeley"
    show_experiment(title, counts, APPLICANTS, runs, output / "berkeley_error.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500, help="releases for each epsilon")
    parser.add_argument("--output", type=Path, default=Path("dist/source_notes"))
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error("--runs: give at least 1")
    arguments.output.mkdir(parents=True, exist_ok=True)
    notes(arguments.output)
    accuracy_note(arguments.output)
    post(arguments.output, arguments.runs)
    print(f"wrote {', '.join(str(path) for path in sorted(arguments.output.iterdir()))}")


if __name__ == "__main__":
    main()
