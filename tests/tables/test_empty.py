"""A release that may be of no record says so, from its noisy counts alone."""

import datetime
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from geomdp import GeometricMechanism, accuracy
from geomdp.accounting import Budget
from geomdp.tables import Design, EmptyTableWarning, Hierarchy, NoisyGroups, NoisyTable, Top
from geomdp.tables._results import empty
from geomdp.tables._results.released import Released

DAYS = [datetime.date(2026, 1, day) for day in range(1, 6)]
TIMES = [datetime.datetime(2026, 1, day, 5) for day in range(1, 6)]
TREE = Hierarchy({"north": "land", "south": "land", "n1": "north", "n2": "north", "s1": "south"})
AREAS = ["n1", "n2", "s1", "n1", "s1"]
NONE = "no record may have been counted, since a 99% interval by the noisy counts has 0 in it. "


def records(days: list[Any], n: int = 400) -> pd.DataFrame:
    """Return records with days of any type, as a column of objects."""
    return pd.DataFrame({"day": pd.Series(days * n, dtype=object), "area": AREAS * n, "x": 2})


def told(make: Callable[[], Any]) -> list[str]:
    """Return the warnings of a release, which are of the place that called the library."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert {each.filename for each in caught} <= {__file__}
    found = [each for each in caught if "is above 10" not in str(each.message)]
    assert {each.category for each in found} <= {EmptyTableWarning}
    return [str(each.message) for each in found]


def designs() -> dict[str, Design]:
    by = {"day": DAYS, "area": TREE}
    return {
        "list": Design({"day": DAYS}),
        "margin": Design({"day": DAYS, "area": AREAS[:3]}, margins={"area": "all"}),
        "tree": Design(by),
        "tables": Design(by, tables=["day", ("day", ("area", 1))]),
    }


#: Each way to release a table: the front ends end in these.
WAYS: dict[str, Callable[[Design, pd.DataFrame], Any]] = {
    "table": lambda design, data: design.count(data).release(epsilon=50),
    "tiers": lambda design, data: design.count(data).release(tiers={"a": 40, "b": 50}),
    "sum": lambda design, data: design.sum(data, "x", bounds=(0, 5)).release(epsilon=50),
    "sum and count": lambda design, data: design.sum_and_count(data, "x", bounds=(-5, 5)).release(
        epsilon=50
    ),
    "groups": lambda design, data: design.count(data).release(epsilon=50, at_least=9),
    "rest": lambda design, data: design.count(data).release(
        epsilon=50, at_least=9, rest=(datetime.date(1900, 1, 1), "0.5")
    ),
    "bounds": lambda design, data: design.count(data).release(epsilon=50, bounds=(0, 9000)),
    "bounds above 0": lambda design, data: design.count(data).release(epsilon=50, bounds=(5, 9000)),
    "corrected": lambda design, data: design.count(data).release(
        epsilon=50, corrects=design.count(records(DAYS)).release(epsilon=50)
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["list", "margin", "tree", "tables"])
def test_a_table_of_zeros_says_so(name: str, way: str) -> None:
    """Times against dates gave zeros, paid, without a word. At epsilon 50, noise is rare."""
    design = designs()[name]
    if name != "list" and way in ("groups", "rest", "bounds above 0"):
        return  # Groups are of lists alone, and sums of bounds above 0 are of no zeros.
    if name in ("tree", "tables") and "bounds" in way:
        return  # These are refused.
    assert not told(lambda: WAYS[way](design, records(DAYS)))
    [message] = told(lambda: WAYS[way](design, records(TIMES)))
    assert message.startswith(NONE)
    assert "'day' dates without a time (datetime.date)" in message


def test_each_column_of_records_is_named_with_the_type_that_it_needs() -> None:
    levels = {
        ("region", "town"): TREE,
        "n": [None, 1],
        "f": [0.5],
        "b": [True],
        "t": TIMES,
        "no": [None],
    }
    data = pd.DataFrame({name: pd.Series([], dtype=object) for name in [*"nfbt", "no"]})
    data = data.assign(region=data["n"], town=data["n"])
    [message] = told(lambda: Design(levels).count(data).release(epsilon=50))
    assert message.endswith(
        "by column: 'region' and 'town' text (str), 'n' integers (int), 'f' numbers (float), "
        "'b' True or False (bool), 't' times without a zone (datetime.datetime), 'no' nulls"
    )


@pytest.mark.parametrize("at_least", [None, 9])
@pytest.mark.parametrize("tree", [False, True])
def test_all_in_other_is_told(at_least: Any, tree: bool) -> None:
    """Text of `pandas.cut` was in `other` to the last record: 0.0 is not 0."""
    levels = Hierarchy({"[0, 20)": "all", "[20, 40)": "all"}) if tree else ["[0, 20)", "[20, 40)"]
    if tree and at_least:
        return
    design = Design({"b": levels, "area": [*"n"]}, other={"b": "other", "area": "elsewhere"})
    cut = pd.cut(pd.Series([1, 19, 20, 35, None] * 99), [0, 20, 40], right=False).astype("str")
    data = pd.DataFrame({"b": cut, "area": "n"})
    [message] = told(lambda: design.count(data).release(epsilon=50, at_least=at_least))
    assert message.startswith("all records may have been counted as 'other' of 'b', since a 99%")
    assert message.endswith("by column: 'b' text (str)")
    data["b"] = data["b"].str.replace(".0", "")
    assert not told(lambda: design.count(data).release(epsilon=50, at_least=at_least))


@pytest.mark.parametrize("bounds", [None, (0, 500), (3, 500)])
@pytest.mark.parametrize("epsilon", ["0.5", 3])
def test_the_interval_decides(bounds: Any, epsilon: Any) -> None:
    """It is that of the accuracy of sums, or wider, and is where the first and last warning are."""
    table = Design({"n": range(20)}).count(pd.DataFrame({"n": []}))
    for pattern in ([1] + [0] * 19, [1] * 20, [5, -1] * 10):
        found = []
        for factor in range(80):
            noisy = table.release(epsilon=epsilon, bounds=bounds)
            counts = np.array(pattern) * factor
            counts = counts if bounds is None else counts.clip(*bounds)
            noisy.counts[...] = counts
            [mechanism] = noisy.mechanisms.values()
            lower, _ = accuracy.sum_confidence_interval(mechanism, counts, Fraction(1, 100))
            axes, whole = noisy._columns_without_records()
            assert bool(axes) == whole
            assert whole or lower > 0
            found.append(whole == (lower <= 0))
        assert sum(found) >= (80 if bounds is None else 76)


def test_many_counts_take_no_time() -> None:
    """The exact reach of 10**5 counts takes seconds: they have a bound on it."""
    [mechanism] = Design({"n": range(10**5)}).mechanisms_for(epsilon=1).values()
    reach = accuracy.sum_accuracy(mechanism, 10**4, 0.01)
    counts = np.zeros(10**4, np.int64)
    for total, wanted in ((0, True), (reach, True), (2 * reach, False)):
        counts[0] = total
        assert empty.reaches_zero(counts, mechanism) is wanted


@pytest.mark.parametrize("bounds", [None, (0, 9)])
@pytest.mark.parametrize("scale", [0, 1e-300, 1e-4])
def test_no_noise_is_no_doubt(scale: float, bounds: Any) -> None:
    mechanism = GeometricMechanism.from_scale(scale, bounds)
    for total in (0, 1):
        assert empty.reaches_zero(np.array([0, total]), mechanism) is (total == 0)


def test_the_best_sum_decides() -> None:
    """Of all tables that have the total, the one with the least noise."""
    design = Design({"n": range(50), "m": range(50)}, margins=-1)
    noisy = design.count(pd.DataFrame({"n": [], "m": []})).release(epsilon=1)
    noisy.counts[...] = 0
    noisy.counts[0, 0] = 100
    assert not noisy._columns_without_records()[0]
    noisy.counts[0, 0] = 0
    noisy.counts[1:, 1:] = 1
    assert noisy._columns_without_records()[1]


def test_what_may_be_0_has_no_warning() -> None:
    data = records(TIMES)
    assert not told(lambda: designs()["list"].sum(data, "x", bounds=(-5, 5)).release(epsilon=50))
    assert not told(lambda: designs()["list"].count(data).top(2, epsilon=50))


def test_a_warning_that_is_an_error_keeps_the_release(tmp_path: Any) -> None:
    budget = Budget(epsilon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EmptyTableWarning)
        with pytest.raises(EmptyTableWarning) as caught:
            designs()["list"].count(records(TIMES)).release(
                epsilon=50, budget=budget, label="x", save=tmp_path / "a.csv"
            )
    assert isinstance(caught.value.released, NoisyTable)  # type: ignore[attr-defined]
    assert (tmp_path / "a.csv").exists()
    assert budget.spent == [("x", 50.0)]


def test_a_new_kind_of_release_has_the_warning_or_is_named_here() -> None:
    kinds = Released.__subclasses__()
    assert {NoisyTable, NoisyGroups, Top} == {*kinds}
    assert [x for x in kinds if "_columns_without_records" not in vars(x)] == [Top]
