"""What questions select, against sets of cells and exact numbers."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geomdp.tables import Design, Hierarchy
from geomdp.tables._answers import selection
from geomdp.tables._facts import rounding
from geomdp.tables._math import ends

EXACT, LIMITS = int(ends.EXACT), np.iinfo(np.int64)
PATHS = ["N/o/1", "N/o/2", "N/a/3", "S/b/4", "S/b/5"]


def below(leaves_only: bool) -> dict[str, dict[str, set[str]]]:
    """Return the nodes of each column, with the cells below them: leaves, or all nodes."""
    paths = [["all", *path.split("/")] for path in PATHS]
    nodes = {
        node: {each for path in paths if node in path for each in path[path.index(node) :]}
        for path in paths
        for node in path
    }
    leaves = {path[-1] for path in paths}
    places = {node: each & leaves if leaves_only else each for node, each in nodes.items()}
    return {"place": places, "sex": {"f": {"f"}, "m": {"m"}, "both": {"f", "m"}}}


@pytest.mark.parametrize("leaves_only", [False, True])
def test_a_part_of_a_selection_has_no_cell_beside_it(leaves_only: bool) -> None:
    tree = Hierarchy.from_paths(PATHS, root="all", leaves_only=leaves_only)
    axes = Design({"place": tree, "sex": ["f", "m"]}, margins={"sex": "both"})._axes
    nodes = below(leaves_only)
    places = [
        [],
        *([node] for node in nodes["place"]),
        *map(list, itertools.combinations(nodes["place"], 2)),
    ]
    asked: list[dict[str, list[str]]] = [
        {label: each for label, each in [("place", place), ("sex", sex)] if each}
        for place in places
        for sex in ([], ["f"], ["both"])
    ]
    chosen = [selection.choose(axes, "levels", each, selection._NO_ROWS) for each in asked]
    inside = [
        {
            *itertools.product(
                *(
                    set().union(*(nodes[label][node] for node in each.get(label, [root])))
                    for label, root in [("place", "all"), ("sex", "both")]
                )
            )
        }
        for each in asked
    ]
    for one, other in itertools.product(range(len(asked)), repeat=2):
        is_part = selection.is_part(axes, chosen[one], chosen[other])
        assert is_part == (inside[one] <= inside[other]), (asked[one], asked[other])


@given(
    st.lists(st.fractions(-(2**55), 2**55, max_denominator=60), min_size=1, max_size=5).filter(any)
)
@example([Fraction(1, 2), Fraction(EXACT, 2)])
@example([Fraction(1, 2), Fraction(EXACT + 1, 2)])
@example([Fraction(1, 2), -Fraction(EXACT + 1, 2)])
@example([Fraction(EXACT + 1)])
def test_weights_are_off_by_no_more_than_they_say(values: list[Fraction]) -> None:
    given = dict(enumerate(values, 1))
    found, unit, off = selection.weights_of(len(values) + 1, given)
    wrong = [abs(Fraction(found[node]) * unit - each) for node, each in given.items()]
    assert found[0] == 0
    assert off == max(wrong)
    common = np.lcm.reduce([each.denominator for each in values], dtype=object)
    fits = max(abs(each) for each in values) * int(common) <= EXACT
    assert unit == (Fraction(1, int(common)) if fits else 1)
    assert not fits or off == 0
    assert not fits or all(each.is_integer() for each in found)


@pytest.mark.parametrize("bounds", [(LIMITS.min, LIMITS.max), (0, LIMITS.max), (-7, 9)])
def test_counts_at_limits_of_int64_are_moved_up_to_the_bounds(bounds: tuple[int, int]) -> None:
    """A sum that wraps would be at the other end."""
    near = [0, 1, 2, 5, 2**31]
    numbers = [*(-n for n in near), *near, *(LIMITS.min + n for n in near)]
    numbers += [LIMITS.max - n for n in near]
    pairs = np.array([*itertools.product(numbers, repeat=2)])
    found = rounding.moved(pairs[:, 0], pairs[:, 1], bounds).tolist()
    least, most = bounds
    assert found == [min(max(count + move, least), most) for count, move in pairs.tolist()]
    assert rounding.moved(pairs[:, 0], 3, bounds).tolist() == [
        min(max(count + 3, least), most) for count, _ in pairs.tolist()
    ]
