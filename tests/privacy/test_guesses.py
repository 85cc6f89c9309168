"""How sure a reader can become: exact laws of small worlds, and the limits of the guides."""

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import pytest
from matplotlib import pyplot

from geomdp.tables import Design
from tapes import sampled_distribution

PAGE = (Path(__file__).parents[2] / "docs/guides/lawyer.md").read_text()
EPSILON = Fraction(1, 2)
#: The counts of all cells, and how probable a reader holds each world.
World: TypeAlias = tuple[int, ...]
Belief: TypeAlias = Mapping[World, int]
#: The upper bound, which no world reaches.
MOST = 12
KNOWN = range(MOST - 1)
#: The sampled distribution reaches a limit but for its distance from the ideal one.
NEARLY = 1 - Fraction(1, 2**40)


def told(belief: Belief, sensitivity: int = 1) -> list[Fraction]:
    """Return the probability of each table for a reader who believes this, over all tapes."""
    distribution = sampled_distribution(sensitivity / EPSILON, MOST)
    sums: list[int] | None = None
    for world, weight in belief.items():
        rows = itertools.product(*(distribution.masses[count] for count in world))
        masses = [weight * math.prod(cells) for cells in rows]
        sums = masses if sums is None else list(map(int.__add__, sums, masses))
    assert sums is not None
    return [Fraction(mass, sum(sums)) for mass in sums]


def factor(one: Belief, other: Belief, sensitivity: int = 1) -> Fraction:
    """Return the most by which a table can change the odds of one belief against another."""
    laws = told(one, sensitivity), told(other, sensitivity)
    return max(max(p / q, q / p) for p, q in zip(*laws, strict=True))


def power(times: int) -> Fraction:
    """Return exp(times * epsilon), rounded up."""
    return Fraction(math.nextafter(math.exp(times * EPSILON), math.inf))


#: For each row of the page's table: how many epsilons it costs, and the most over all that a reader
#: may know of the others.
CHANGE = Design({"group": ["A", "B"]}, neighbours="change").sensitivity
ROWS = {
    "Is this person in the data?": (1, [factor({(n,): 1}, {(n + 1,): 1}) for n in KNOWN]),
    "In which of two groups is this person": (
        2,
        [factor({(n + 1, n): 1}, {(n, n + 1): 1}) for n in KNOWN],
    ),
    "The same, if the design has": (
        1,
        [factor({(n + 1, n): 1}, {(n, n + 1): 1}, CHANGE) for n in KNOWN],
    ),
    "Is this couple in the data?": (2, [factor({(n,): 1}, {(n + 2,): 1}) for n in KNOWN[:-1]]),
    "In which of two groups is this couple": (
        4,
        [factor({(n + 2, n): 1}, {(n, n + 2): 1}) for n in KNOWN[:-1]],
    ),
    "Are these ten in the data?": (10, [factor({(n,): 1}, {(n + 10,): 1}) for n in KNOWN[:3]]),
}


@pytest.mark.parametrize("question", ROWS)
def test_row_of_the_page_is_the_most_that_a_table_can_tell(question: str) -> None:
    times, factors = ROWS[question]
    assert power(times) * NEARLY < max(factors) <= power(times)
    [row] = re.findall(rf"^\| {re.escape(question)}.*$", PAGE, re.MULTILINE)
    *_, limit, even = row.strip("| ").split(" | ")
    stated = "exp(epsilon)" if times == 1 else f"exp({times} * epsilon)"
    assert f"`{stated}`" in limit
    assert even == f"{100 * float(max(factors) / (1 + max(factors))):.1f}%"


def test_picture_of_the_page_has_the_limits_of_its_table() -> None:
    code = re.findall(r"^>>> (.*guess\(.*)$", PAGE, re.MULTILINE)
    session: dict[str, object] = {}
    exec("\n".join(["from geomdp.tables import plot", *code]), session)
    legend = pyplot.gca().get_legend()
    assert legend is not None
    drawn = {text.get_text().rpartition(" ")[2] for text in legend.get_texts()[1:]}
    pyplot.close("all")
    assert drawn == set(re.findall(r"\| ([\d.]+%) \|$", PAGE, re.MULTILINE))


def beliefs(draws: random.Random, worlds: Iterable[World]) -> Belief:
    return {world: draws.choice([1, 10**3, 10**6, 10**12]) for world in worlds}


def test_reader_who_sees_no_connection_learns_no_more() -> None:
    draws = random.Random(1)
    for _ in range(50):
        others = beliefs(draws, [(n,) for n in range(6)])
        joined: Belief = {(n + 1,): weight for (n,), weight in others.items()}
        assert factor(others, joined) <= power(1)
        both = beliefs(draws, itertools.product(range(3), repeat=2))
        in_a: Belief = {(a + 1, b): weight for (a, b), weight in both.items()}
        in_b: Belief = {(a, b + 1): weight for (a, b), weight in both.items()}
        assert factor(in_a, in_b) <= power(2)
        assert factor(in_a, in_b, CHANGE) <= power(1)


#: Where the person counts, and how often the others do in A and in B.
State: TypeAlias = tuple[str, int, int]
#: The cells in which a person counts.
PLACES = {"": (0, 0), "A": (1, 0), "B": (0, 1)}


def change_by_own_data(
    states: Mapping[State, int], true: Container[State], left_out: str, sensitivity: int
) -> Fraction:
    """Return the most by which the person's data change the odds of a statement."""
    laws: list[list[Fraction]] = []
    for own in (True, False):
        for truth in (True, False):
            belief: Counter[World] = Counter()
            for state, weight in states.items():
                if (state in true) == truth:
                    place, a, b = state
                    own_a, own_b = PLACES[place if own else left_out]
                    belief[a + own_a, b + own_b] += weight
            laws.append(told(belief, sensitivity))
    changes = [(p * s) / (q * r) for p, q, r, s in zip(*laws, strict=True)]
    return max(*changes, *(1 / change for change in changes))


@pytest.mark.parametrize(("sensitivity", "left_out"), [(1, ""), (CHANGE, "A"), (CHANGE, "B")])
def test_own_data_change_the_odds_of_any_statement_by_two_epsilons(
    sensitivity: int, left_out: str
) -> None:
    """Whatever the reader knows of the person and the others together."""
    draws = random.Random(2)
    places = [place for place in PLACES if place or not left_out]
    states = list(itertools.product(places, range(3), range(3)))
    for _ in range(60):
        weights = [draws.choice([1, 10**3, 10**6, 10**12]) for _ in states]
        true = draws.sample(states, draws.randrange(1, len(states)))
        change = change_by_own_data(
            dict(zip(states, weights, strict=True)),
            true,
            left_out,
            sensitivity,
        )
        assert change <= power(2)


def test_own_data_can_change_odds_by_two_epsilons() -> None:
    known = {("A", 3, 3): 1, ("B", 3, 3): 1}
    change = change_by_own_data(known, [("A", 3, 3)], "", 1)
    assert power(2) * NEARLY < change <= power(2)
