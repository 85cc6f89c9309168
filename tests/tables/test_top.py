"""The places of the largest noisy counts: exact laws, privacy of neighbours, layouts, errors."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting, tables
from geomdp._inputs.arrays import DTYPES
from geomdp.tables._math import largest
from restated import restate
from statistics_ import rejects

HALF = Fraction(1, 2)
#: The rate of that.
LN2 = Fraction(math.log(2))
#: Noise by its probabilities; None is infinite.
Noise = dict[int | None, Fraction]


def one_sided(a: Fraction, cap: int) -> Noise:
    """Return geometric noise that is infinite from the cap on."""
    noise: Noise = {g: (1 - a) * a**g for g in range(cap)}
    return {**noise, None: a**cap}


def two_sided(a: Fraction, cap: int) -> Noise:
    """Return discrete Laplace noise, lumped at both ends."""
    inside = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(1 - cap, cap)}
    return {**inside, -cap: a**cap / (1 + a), cap: a**cap / (1 + a)}


def law(
    counts: Sequence[int], noise: Noise, total: Callable[[int, int | None], float]
) -> list[Fraction]:
    """Return the probability of each place, by enumeration of all noise."""
    found = [Fraction(0)] * len(counts)
    for drawn in itertools.product(noise.items(), repeat=len(counts)):
        sums = [total(count, value) for count, (value, _) in zip(counts, drawn, strict=True)]
        found[sums.index(max(sums))] += math.prod((mass for _, mass in drawn), start=Fraction(1))
    return found


def unclamped(count: int, noise: int | None) -> float:
    return math.inf if noise is None else count + noise


def neighbours(most: int, cells: int) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Return all pairs of counts with steps of at most 1, and by how much the steps differ."""
    every = list(itertools.product(range(most + 1), repeat=cells))
    pairs = []
    for x, y in itertools.product(every, repeat=2):
        steps = [b - a for a, b in zip(x, y, strict=True)]
        low, high = min(0, *steps), max(0, *steps)
        if -1 <= low <= high <= 1:
            pairs.append((x, y, high - low))
    return pairs


def test_the_loss_of_all_neighbours() -> None:
    """Theorem 22 for ideal noise: an exact bound, and reached."""
    laws = {x: law(x, one_sided(HALF, 3), unclamped) for x in itertools.product(range(3), repeat=3)}
    worst = dict.fromkeys(range(3), Fraction(0))
    for x, y, steps in neighbours(2, 3):
        ratios = [p / q for p, q in zip(laws[x], laws[y], strict=True)]
        worst[steps] = max(worst[steps], *ratios)
    assert worst[0] == 1
    assert worst[1] == 2
    assert Fraction(19, 5) < worst[2] <= 4


def test_sums_that_saturate_lose_more() -> None:
    """The mistake that makes noisy max of a release lose twice the rate."""

    def clamped(count: int, noise: int | None) -> float:
        assert noise is not None
        return min(max(count + noise, 0), 1)

    before, after = (law(x, two_sided(HALF, 3), clamped) for x in [(0, 0, 1), (1, 1, 1)])
    assert before[2] > Fraction(2) * after[2]
    ours = [law(x, one_sided(HALF, 3), unclamped) for x in [(0, 0, 1), (1, 1, 1)]]
    assert all(q / 2 <= p <= 2 * q for p, q in zip(*ours, strict=True))


@pytest.mark.parametrize("counts", [(2, 0), (3, 0, 0), (0, 1, 3), (4, 4, 2), (1, 0, 0, 0)])
def test_one_sided_noise_errs_less(counts: tuple[int, ...]) -> None:
    """The true largest is named more often than with two-sided noise of the same loss."""
    a, best = Fraction(7, 10), counts.index(max(counts))
    one = law(counts, one_sided(a, 12), unclamped)[best]
    two = law(counts, two_sided(a, 8), unclamped)[best]
    assert one > two


def ideal(counts: Sequence[int], epsilon: float) -> list[float]:
    """Return the probability of each place with geometric noise, by its tails."""
    a = math.exp(-epsilon)

    def below(noise: int) -> float:
        return 1 - a ** max(noise, 0)

    def at(i: int) -> float:
        sums = range(counts[i], max(counts) + math.ceil(60 / epsilon))
        masses = ((1 - a) * a ** (total - counts[i]) for total in sums)
        others = [
            math.prod(below(total - c + (j > i)) for j, c in enumerate(counts) if j != i)
            for total in sums
        ]
        return math.fsum(map(math.prod, zip(masses, others, strict=True)))

    return [at(i) for i in range(len(counts))]


@pytest.mark.parametrize(("epsilon", "bounds"), [(1.0, None), (0.3, (0, 5))])
def test_the_law_of_the_package(epsilon: float, bounds: tuple[int, int] | None) -> None:
    mechanism = GeometricMechanism(epsilon, bounds=bounds)
    counts = [3, 5, 0, 5, 4]
    draws = 40_000
    expected: dict[tuple[int, ...], float] = {}
    chances = ideal(counts, epsilon)
    assert math.isclose(math.fsum(chances), 1, rel_tol=1e-9)
    for first, chance in enumerate(chances):
        left = [i for i in range(5) if i != first]
        for second, then in zip(left, ideal([counts[i] for i in left], epsilon), strict=True):
            expected[first, second] = draws * chance * then
    observed = dict.fromkeys(expected, 0)
    for _ in range(draws):
        observed[tuple(mechanism.top(counts, k=2).tolist())] += 1
    assert not rejects(observed.values(), expected.values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_and_dtypes(dtype: str) -> None:
    """Without noise: all layouts name the same places."""
    silent = GeometricMechanism.from_scale(0)
    counts = (np.arange(100) * 37 % 101).astype(dtype)
    order = np.argsort(-counts.astype(int), kind="stable")[:7]
    padded = np.zeros((100, 3), dtype)
    padded[:, 1] = counts
    foreign = counts.astype(counts.dtype.newbyteorder())
    for given in [counts, padded[:, 1], foreign, counts[::-1][::-1], counts.tolist()]:
        found = silent.top(given, k=7)
        assert found.dtype == np.int64
        assert found.tolist() == order.tolist()


def test_threads_name_the_same_places() -> None:
    silent = GeometricMechanism.from_scale(0)
    counts = np.random.default_rng(1).integers(-(10**6), 10**6, 300_000)
    expected = np.argsort(-counts, kind="stable")[:3].tolist()
    for threads in (None, 1, 2, 5):
        assert silent.top(counts, k=3, threads=threads).tolist() == expected


def test_counts_of_few_places() -> None:
    """What tables of many cells use: counts of some places, and 0 elsewhere."""
    silent = GeometricMechanism.from_scale(0)
    places = np.array([0, 5, 2047, 2048, 9_999], np.uint64)
    counts = np.array([3, 9, 4, 9, 1])
    found = silent._core.top_among(places, counts, 10_000, 6, 0)
    assert found == [5, 2048, 2047, 0, 9_999, 1]


@pytest.mark.parametrize(
    ("counts", "k", "error", "message"),
    [
        ([1, 2], 3, ValueError, "k = 3 is not accepted: give at most 2, the number of counts"),
        ([1, 2], 0, ValueError, "k = 0 is not accepted: give an int of at least 1"),
        ([1, 2], 1.0, TypeError, "k = 1.0"),
        ([1.0, 2.0], 1, TypeError, "counts"),
        ([], 1, ValueError, "k = 1 is not accepted: give at most 0, the number of counts"),
        (7, 1, ValueError, r"counts of shape \(\) are not accepted: give one dimension"),
        (np.ones((2, 2), int), 1, ValueError, r"counts of shape \(2, 2\) are not accepted"),
    ],
)
def test_bad_input(counts: object, k: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GeometricMechanism(1).top(counts, k)


def test_a_scale_that_is_too_large() -> None:
    with pytest.raises(ValueError, match=r"scale = .* is not accepted: give a scale of at most"):
        GeometricMechanism.from_scale(2**53 + 2).top([1], 1)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("others", [1, 2, 10, 1000])
def test_the_error_is_that_of_geometric_noise(rate: Fraction, others: int) -> None:
    """The alternating series against the sum over the noise of the largest cell."""
    a = math.exp(-rate)
    for m in (1, 2, 10, 100):
        masses = ((1 - a) * a**b for b in range(math.ceil(50 / rate)))
        beaten = (-math.expm1(others * math.log1p(-(a ** (b + m)))) for b in range(10**4))
        expected = math.fsum(p * q for p, q in zip(masses, beaten, strict=False))
        found = float(largest.exceeds(rate, m, others))
        assert found == 1 or math.isclose(found, expected, rel_tol=1e-9)
        assert found < 1 or expected > 0.96


def test_the_error_by_enumeration() -> None:
    """The greatest probability over all counts of a larger cell that is not named first."""
    noise, t = one_sided(HALF, 12), 1
    worst = Fraction(0)
    for counts in itertools.product(range(4), repeat=3):
        wrong = [max(counts) - count > t for count in counts]
        chances = zip(law(counts, noise, unclamped), wrong, strict=True)
        worst = max(worst, sum((p for p, far in chances if far), start=Fraction(0)))
    # Two others, which lie t + 1 below and come first; the cap moves less than a 500th.
    found = largest.exceeds(LN2, t + 1, 2)
    assert math.isclose(worst, found, rel_tol=1 / 500)


@pytest.mark.parametrize("level", [Fraction(1, 20), Fraction(1, 10**9), Fraction(9, 10)])
@pytest.mark.parametrize("others", [0, 1, 999, 10**8])
def test_the_accuracy_is_the_least(level: Fraction, others: int) -> None:
    rate = Fraction(1, 7)
    found = largest.least(rate, level, others)
    if others:
        assert largest.exceeds(rate, found + 1, others) <= level
        assert found == 0 or largest.exceeds(rate, found, others) > level


DESIGN = tables.Design({"town": ["Oslo", "Rome"], "sex": ["f", "m"]}, margins={"sex": "all"})
pandas = pytest.importorskip("pandas")
PEOPLE = pandas.DataFrame({"town": ["Rome"] * 900 + ["Oslo"] * 500, "sex": ["f", "m"] * 700})


def test_cells_by_name() -> None:
    """The largest cells in order, margins left out, and the loss booked once before any noise."""
    budget = accounting.Budget(epsilon=40)
    data = pandas.concat([PEOPLE, PEOPLE[PEOPLE["sex"] == "m"]])
    top = DESIGN.count(data).top(3, epsilon=30, budget=budget, label="June")
    assert top.frame["town"].tolist() == ["Rome", "Oslo", "Rome"]
    assert top.frame["sex"].tolist() == ["m", "m", "f"]
    assert (top.epsilon, top.privacy_loss(), top.label, len(top)) == (30, 30.0, "June", 3)
    assert budget.spent == [("June", 30.0)]
    assert "900" not in repr(top)
    assert "June" in repr(top)
    assert top.accuracy(0.05) == DESIGN.top_accuracy(3, epsilon=30, alpha=0.05)


def test_a_file_that_names_a_cell_twice(tmp_path: Path) -> None:
    path = tmp_path / "top.csv"
    DESIGN.count(PEOPLE).top(3, epsilon=1).save(path)
    head, first, _, third = path.read_bytes().splitlines()
    second = first[:-1] + b"2"
    path.write_bytes(b"".join(line + b"\r\n" for line in (head, first, second, third)))
    restate(path)
    with pytest.raises(ValueError, match="other rows"):
        geomdp.read(path)


def test_ranks_need_their_name() -> None:
    budget = accounting.Budget(epsilon=1)
    table = tables.count(pandas.DataFrame({"rank": [1, 2]}), {"rank": [1, 2]})
    with pytest.raises(ValueError, match="column named 'rank' is not accepted"):
        table.top(1, epsilon=1, budget=budget)
    assert budget.spent == []


@pytest.mark.parametrize(("neighbours", "times"), [("add-remove", 1), ("change", 2)])
@pytest.mark.parametrize("l0", [1, 4])
def test_the_loss_does_not_depend_on_l0(neighbours: str, times: int, l0: int) -> None:
    levels = {"town": ["Oslo", "Rome"], "sex": ["f", "m"]}
    design = tables.Design(levels, individual="who", l0=l0, linf=3, neighbours=neighbours)
    people = PEOPLE.assign(who=range(1400))
    top = design.count(people).top(2, epsilon="1/2")
    assert top.mechanism.rate == Fraction(1, 2) / (2 * 3 * times)
    assert top.epsilon == Fraction(1, 2)


def test_budgets_of_rho_book_each_name() -> None:
    """Each name is a release of its own loss, which is less together."""
    budget = accounting.Budget(rho=1)
    DESIGN.count(PEOPLE).top(4, epsilon=1, budget=budget)
    assert budget.remaining == pytest.approx(1 - 4 * accounting.zcdp("1/4"), abs=1e-9)


@pytest.mark.parametrize(
    ("k", "epsilon", "error", "message"),
    [
        (5, 1, ValueError, "k = 5 is not accepted: give at most 4, the number of cells"),
        (0, 1, ValueError, "k = 0"),
        (2.0, 1, TypeError, "k = 2.0"),
        (1, 0, ValueError, "epsilon = 0"),
        (1, 2.0**-54, ValueError, "scale = .* is not accepted: give a scale of at most"),
    ],
)
def test_refused_before_it_is_booked(
    k: int, epsilon: float, error: type[Exception], message: str
) -> None:
    budget = accounting.Budget(epsilon=2)
    table = DESIGN.count(PEOPLE)
    with pytest.raises(error, match=message):
        table.top(k, epsilon=epsilon, budget=budget)
    with pytest.raises(error, match=message):
        DESIGN.top_accuracy(k, epsilon=epsilon, alpha=0.05)
    assert budget.spent == []
    with pytest.raises(ValueError, match="only"):
        table.top(1, epsilon=3, budget=budget)


def test_the_largest_of_many_cells() -> None:
    """10^7 cells, of which three have records: those are named, in the memory of three."""
    design = tables.Design({"one": range(10_000), "other": range(1000)})
    data = pandas.DataFrame({"one": [9999] * 900 + [7] * 600 + [0] * 300, "other": 999})
    top = design.count(data).top(3, epsilon=3)
    assert top.frame["one"].tolist() == [9999, 7, 0]


def test_no_accuracy_beyond_the_noise() -> None:
    design = tables.Design({"one": range(10**6), "other": range(10**6)})
    with pytest.raises(
        ValueError, match=r"alpha = .* is not accepted for 1 of 1000000000000 cells"
    ):
        design.top_accuracy(1, epsilon=1, alpha=1e-6)


def test_a_design_without_columns_has_no_names(tmp_path: Path) -> None:
    """It was booked and searched, and then failed."""
    table = tables.Design({}).count(pd.DataFrame({"x": range(9)}))
    budget = accounting.Budget(epsilon=1)
    with pytest.raises(ValueError, match="give a design with at least one column"):
        table.top(1, epsilon=1, budget=budget, save=tmp_path / "x.csv")
    assert budget.spent == []
    assert [*tmp_path.iterdir()] == []
