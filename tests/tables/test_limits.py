"""Limits on contributions that are chosen from noisy counts of individuals."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting, tables
from geomdp.distribution import TwoSidedGeometric
from geomdp.tables import Design, choose_limit

#: Of this rate, noise is not 0 with a probability below 1e-25.
CLEAR = 60
LIBRARIES: list[Callable[[Any], Any]] = [
    pd.DataFrame,
    pl.DataFrame,
    lambda x: pl.DataFrame(x).lazy(),
    pa.table,
]
#: Some records of one individual, in cells "a" and "b", and with a value each.
RECORDS = [("a", 1), ("a", -3), ("b", 0), ("b", 5), ("z", 9)]
LEVELS = {"town": ["a", "b", "c"]}
DESIGNS: dict[Any, Design] = {
    "l0": Design(LEVELS, individual="who", l0=4, linf=4),
    "linf": Design(LEVELS, individual="who", l0=4, linf=4),
    "l1": Design(LEVELS, individual="who", l1=4),
    "l1 of values": Design(LEVELS, individual="who", l1=100),
    "bounds": Design(LEVELS, individual="who", l0=2),
}
OF_VALUES = "l1 of values", "bounds"


def asked(what: str, **options: Any) -> dict[str, Any]:
    """Return the arguments that ask for a limit of the design with this name."""
    limit, column = what.partition(" of ")[0], "n" if what in OF_VALUES else None
    return {"design": DESIGNS[what], "limit": limit, "column": column} | options


def frame(people: list[tuple[Any, ...]]) -> pd.DataFrame:
    rows = [(who, *record) for who, each in enumerate(people) for record in each]
    return pd.DataFrame(rows, columns=["who", "town", "n"]).astype({"who": int, "n": int})


def of_one(limit: str, records: Any) -> int | None:
    """Return the least limit that keeps all records of an individual, None without any."""
    inside = [record for record in records if record[0] != "z"]
    cells = Counter(town for town, _ in inside)
    if not cells:
        return None
    sums = Counter[str]()
    for town, n in inside:
        sums[town] += n
    values = [n for _, n in inside]
    needed = {
        "l0": len(cells),
        "linf": max(cells.values()),
        "l1": len(inside),
        "l1 of values": sum(map(abs, values)),
        "bounds": max(map(abs, [*values, *sums.values()])),
    }
    return max(needed[limit], 1)


def noisy(what: str, data: Any, **options: Any) -> list[int]:
    """Return the counts of individuals by limit, with noise that is 0."""
    how = asked(what, data=data, epsilon=CLEAR, **options)
    found: list[int] = choose_limit(**how).table.counts.tolist()
    return found


@pytest.mark.parametrize("make", LIBRARIES)
@pytest.mark.parametrize("limit", DESIGNS)
def test_each_individual_is_counted_once_where_all_of_its_records_are_kept(
    limit: str, make: Any
) -> None:
    people = [
        each for n in range(4) for each in itertools.combinations_with_replacement(RECORDS, n)
    ]
    limits = [1, 2, 4] if limit in OF_VALUES else [1, 2]
    places = [
        min(int(np.searchsorted(limits, needed)), len(limits) - 1)
        for each in people
        if (needed := of_one(limit, each)) is not None
    ]
    wanted = np.bincount(places, minlength=len(limits)).tolist()
    rows = {name: each.tolist() for name, each in frame(people).items()}
    assert noisy(limit, make(rows), limits=limits) == wanted


@pytest.mark.parametrize("neighbours", ["add-remove", "change"])
@pytest.mark.parametrize("limit", DESIGNS)
def test_one_individual_changes_the_table_by_what_is_booked(limit: str, neighbours: str) -> None:
    """Over all neighbours of data of up to three records an individual: the loss, and no less."""
    design = Design(**(DESIGNS[limit]._arguments() | {"neighbours": neighbours}))
    limits = [1, 2, 4]
    sets = [each for n in range(4) for each in itertools.combinations(RECORDS, n)]
    others: list[Any] = [RECORDS[:2], RECORDS[2:3]]
    found = {
        each: np.array(noisy(limit, frame([*others, each]), limits=limits, design=design))
        for each in sets
    }
    pairs = itertools.product(found.values(), repeat=2)
    if neighbours == "add-remove":
        pairs = ((each, found[()]) for each in found.values())
    most = max(int(np.abs(one - other).sum()) for one, other in pairs)
    budget = accounting.Budget(epsilon=3)
    how = asked(limit, design=design, limits=limits, epsilon=1, budget=budget)
    chosen = choose_limit(data=frame(others), **how)
    [mechanism] = chosen.table.mechanisms.values()
    assert most * mechanism.rate == budget.epsilon_spent == 1
    assert most == chosen.table.design.sensitivity == (2 if neighbours == "change" else 1)


def test_each_record_of_an_individual_that_is_not_known_counts() -> None:
    """The publisher states that an individual has two cells, a record in each: so both move."""
    design = Design(LEVELS, l0=2)
    people = frame([RECORDS, RECORDS[:3]])
    assert noisy("bounds", people, design=design, limits=[1, 4]) == [4, 3]
    chosen = choose_limit(design, people, "bounds", column="n", epsilon=1, limits=[1, 4])
    [mechanism] = chosen.table.mechanisms.values()
    assert (chosen.table.design.sensitivity, mechanism.rate) == (2, Fraction(1, 2))
    assert chosen.table.design.name == "records"


def test_the_least_limit_that_keeps_a_share_is_chosen_from_noisy_counts_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For all noisy counts of a small range, whatever the data are; of any sign."""
    given: list[int] = []

    def known(_: Any, counts: Any, *, out: Any = None, threads: Any = None) -> Any:
        target = np.empty(np.shape(counts), np.int64) if out is None else out
        target[...] = np.reshape(given, np.shape(counts))
        return target

    monkeypatch.setattr(GeometricMechanism, "release", known)
    design = Design(LEVELS, individual="who", l0=5, linf=2)
    limits = [1, 2, 5]
    seen = set()
    for counts, share in itertools.product(
        itertools.product([-4, 0, 5, 20], repeat=3), ["0.5", 0.75]
    ):
        given[:] = counts
        total = sum(counts)
        fits = [
            k
            for place, k in enumerate(limits[:2])
            if sum(counts[place + 1 :]) <= (1 - Fraction(share)) * total
        ]
        found = []
        for people in ([RECORDS], [RECORDS[:1]] * 3):
            chosen = choose_limit(
                design, frame(people), "l0", epsilon=1, share=share, limits=limits
            )
            found.append((chosen.limit, chosen.design.l0, repr(chosen)))
            cut = chosen.cut(alpha=0.5)
            assert cut["estimate"].tolist() == [counts[1] + counts[2], counts[2]]
            if total > 0:
                assert cut["kept"].tolist() == [1 - x / total for x in cut["estimate"]]
            else:
                assert cut["kept"].isna().all()
        assert found[0] == found[1]
        assert found[0][:2] == (min(fits, default=5),) * 2
        seen.add(found[0][0])
    assert seen == {*limits}


def test_what_was_cut_has_intervals_that_hold_together() -> None:
    """The exact probability that any misses is at most alpha: each has its part of it."""
    design = Design(LEVELS, individual="who", l0=5)
    for epsilon, alpha in itertools.product([0.3, 1.0], [0.05, 0.3]):
        chosen = choose_limit(design, frame([RECORDS] * 3000), "l0", epsilon=epsilon)
        cut, noise = chosen.cut(alpha), TwoSidedGeometric(1 / epsilon)
        assert cut["l0"].tolist() == [1, 2, 3, 4]
        one = noise.pmf(np.arange(-400, 401))
        law, missed = np.ones(1), 0.0
        for place in (3, 2, 1, 0):
            law = np.convolve(law, one)
            reach = int(cut["upper"][place] - cut["estimate"][place])
            assert cut["lower"][place] == max(cut["estimate"][place] - reach, 0)
            middle = len(law) // 2
            outside = 1 - float(law[middle - reach : middle + reach + 1].sum())
            assert outside <= alpha / 4
            missed += outside
        assert missed <= alpha


def test_a_chosen_bound_is_that_of_a_sum() -> None:
    people = [[("a", 700)]] * 97 + [[("a", 700), ("a", 800)]] * 3
    data, design = frame(people), DESIGNS["bounds"]
    chosen = choose_limit(design, data, "bounds", column="n", epsilon=CLEAR)
    assert (chosen.limit, chosen.share) == (1024, Fraction(95, 100))
    assert chosen.design == design
    assert len(chosen.table.counts) == 33
    kept = design.sum(data, "n", bounds=(0, chosen.limit)).frame["n"].tolist()
    assert kept == [97 * 700 + 3 * 1024, 0, 0]
    above = choose_limit(design, data, "bounds", column="n", epsilon=CLEAR, share="0.99")
    assert above.limit == 2048
    # Nulls count as 0, as in a sum, and the greatest values are at the last limit.
    odd = pd.DataFrame({"who": range(4), "town": "a", "n": pd.array([-5, None, 2**62, 3], "Int64")})
    assert noisy("bounds", odd)[:4] == [1, 0, 1, 1]
    assert noisy("bounds", odd)[-1] == 1


def test_a_limit_of_all_values_is_chosen_by_what_they_add_up_to() -> None:
    """Over all cells, and without their signs: so a sum with this limit cuts nobody below it."""
    most = [("a", 20), ("a", -20), ("b", 10), ("z", 99)]
    data, design = frame([most] * 97 + [[("a", 90)]] * 3), DESIGNS["l1 of values"]
    chosen = choose_limit(design, data, "l1", column="n", epsilon=CLEAR)
    assert (chosen.name, chosen.limit, chosen.design.l1) == ("l1", 64, 64)
    assert chosen.table.design.levels["l1"] == [1, 2, 4, 8, 16, 32, 64, 100]
    assert chosen.table.counts.tolist() == [0] * 6 + [97, 3]
    kept = chosen.design.sum(data, "n", bounds=(-64, 64))
    assert kept.sensitivity == 64
    assert kept.frame["n"].tolist() == [3 * 64, 97 * 10, 0]
    budget = accounting.Budget(epsilon=1)
    exact = choose_limit(
        design, data, "l1", column="n", epsilon=1, budget=budget, limits=[49, 50], share="0.9"
    )
    assert exact.limit == 50
    assert budget.epsilon_spent == 1
    # Those of records are still their number.
    assert choose_limit(design, data, "l1", epsilon=CLEAR).limit == 3
    # A sum takes no greater limit than this, so there is none to choose.
    wide = Design(LEVELS, individual="who", l1=2**40)
    last = choose_limit(wide, data, "l1", column="n", epsilon=CLEAR).table.design.levels["l1"][-1]
    assert last == 2**32


def test_a_bound_of_values_of_either_sign_is_that_of_the_larger_end() -> None:
    """Values are cut before they are added up, so that one of them may need more than the sum."""
    design = DESIGNS["bounds"]
    for people, limit, sums in (
        ([[("a", -50)]] * 99, 64, [-50 * 99, 0, 0]),
        ([[("a", -50), ("a", -20)]] * 99, 128, [-70 * 99, 0, 0]),
        ([[("a", 50), ("a", -45), ("b", 3)]] * 99, 64, [5 * 99, 3 * 99, 0]),
    ):
        data = frame(people)
        chosen = choose_limit(design, data, "bounds", column="n", epsilon=CLEAR)
        assert chosen.limit == limit
        kept = design.sum(data, "n", bounds=(-limit, limit))
        assert (kept.sensitivity, kept.frame["n"].tolist()) == (2 * limit, sums)
        # Without an individual, each record is cut alone.
        found = choose_limit(Design(LEVELS), data, "bounds", column="n", epsilon=CLEAR)
        assert found.limit == 64
    # The least values of a narrow type have no opposite in it.
    data = pd.DataFrame({"who": range(99), "town": "a", "n": np.full(99, -128, np.int8)})
    assert choose_limit(design, data, "bounds", column="n", epsilon=CLEAR).limit == 128


@pytest.mark.parametrize("what", [each for each in DESIGNS if each != "bounds"])
def test_limits_above_that_of_the_design_are_refused(what: str) -> None:
    budget, most = accounting.Budget(epsilon=1), DESIGNS[what].l1 or 4
    how = asked(what, data=frame([RECORDS]), epsilon=1, budget=budget)
    said = rf"limits are not accepted: give increasing ints from 1 to {most}, the limit of the"
    with pytest.raises(ValueError, match=said):
        choose_limit(limits=[1, most + 1], **how)
    assert budget.spent == []
    assert choose_limit(limits=[1, most], **how).limit in (1, most)


def test_an_empty_frame_has_a_limit(tmp_path: Path) -> None:
    for limit in DESIGNS:
        assert not any(noisy(limit, frame([]), limits=[1, 2]))
        assert not any(noisy(limit, frame([(("z", 1),)]), limits=[1, 2]))


def test_the_table_of_a_limit_is_published_like_any_other(tmp_path: Path) -> None:
    design = Design(LEVELS, individual=("who", "n"), l0=3)
    path = tmp_path / "limits.csv"
    chosen = choose_limit(design, frame([RECORDS] * 50), "l0", epsilon="0.5", label="l0", save=path)
    read = geomdp.read(path)
    assert read.to_dict() == chosen.table.to_dict()
    assert (read.epsilon, read.label, read.design.individual) == (
        Fraction(1, 2),
        "l0",
        ("who", "n"),
    )
    assert read.design == Design(
        {"l0": [1, 2, 3]}, name="individuals", individual=("who", "n"), l1=1
    )
    with pytest.raises(FileExistsError):
        choose_limit(design, frame([RECORDS]), "l0", epsilon=1, save=path)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"limit": "l2"}, ValueError, "limit = 'l2'"),
        ({"limit": "l1"}, ValueError, "the design has l0 and linf"),
        ({"limit": "bounds"}, ValueError, "^column is not given: give that of the values"),
        ({"column": "n"}, ValueError, "column = 'n' is not accepted for limit = 'l0'"),
        ({"limit": "l1", "column": "n"}, ValueError, "the design has l0 and linf"),
        (
            {"limit": "l1", "column": "n", "design": Design(LEVELS, l1=3)},
            ValueError,
            "'l1' is not accepted without an individual",
        ),
        (
            {"limit": "bounds", "column": "n", "design": DESIGNS["l0"]},
            ValueError,
            "linf is not accepted for sums",
        ),
        (
            {"limit": "bounds", "column": "n", "design": DESIGNS["l1"]},
            ValueError,
            "the design has l1, so give limit = 'l1'",
        ),
        ({"design": DESIGNS["l1"]}, ValueError, "the design has l1"),
        ({"design": Design(LEVELS)}, ValueError, "'l0' is not accepted without an individual"),
        ({"design": LEVELS}, TypeError, "give a Design"),
        ({"share": 1}, ValueError, "share"),
        ({"share": 0}, ValueError, "share = 0"),
        ({"limits": []}, ValueError, "limits are empty: give increasing ints"),
        ({"limits": [2, 2]}, ValueError, "limits are not accepted: give increasing ints"),
        ({"limits": [0, 2]}, ValueError, "limits are not accepted: give increasing ints from 1"),
        ({"limits": [1, 2.5]}, TypeError, "limits with float are not accepted: give increasing"),
        ({"limits": "12"}, TypeError, "limits = '12' has type str: give a list of increasing ints"),
        (
            {"limit": "bounds", "column": "n", "limits": [1, 2**33]},
            ValueError,
            "limits are not accepted: give increasing ints from 1 to 4294967296$",
        ),
        ({"epsilon": 0}, ValueError, "epsilon = 0"),
        ({"label": 5}, TypeError, "label"),
        ({"save": "limits.txt"}, ValueError, "save"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_read(
    arguments: Any, error: Any, said: str
) -> None:
    def fail(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError

    data = pl.DataFrame({"who": [1], "town": ["a"], "n": [1]})
    lazy = data.lazy().map_batches(fail, schema=data.schema)
    budget = accounting.Budget(epsilon=1)
    given = {"design": Design(LEVELS, individual="who", l0=2), "limit": "l0", "epsilon": 1}
    with pytest.raises(error, match=said):
        choose_limit(**(given | {"data": lazy, "budget": budget} | arguments))
    assert budget.epsilon_spent == 0


def test_a_limit_that_a_budget_does_not_allow_is_not_chosen() -> None:
    design, budget = DESIGNS["l0"], accounting.Budget(epsilon="0.5")
    with pytest.raises(ValueError, match=r"only 0\.5 of 0\.5 is left"):
        choose_limit(design, frame([RECORDS]), "l0", epsilon=1, budget=budget)
    chosen = choose_limit(design, frame([RECORDS]), "l0", epsilon="0.2", budget=budget, label="l0")
    assert chosen.table.privacy_loss() == 0.2
    assert budget.spent == [("l0", 0.2)]
    assert math.isclose(budget.remaining, 0.3)
    with pytest.raises(TypeError, match="data has its records on a cluster"):
        choose_limit(
            design, type("DataFrame", (), {"__module__": "pyspark.sql"})(), "l0", epsilon=1
        )
    with pytest.raises(TypeError, match="values to sum are a column of a frame"):
        choose_limit(Design(["a"]), pd.Series(["a"]), "bounds", column="n", epsilon=1)
    assert tables.ChosenLimit.__module__ == "geomdp.tables"
