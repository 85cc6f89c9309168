"""Columns whose levels are bins of numbers, dates or times: `bins=`."""

import datetime
import json
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp.tables import Design, Hierarchy, Words

LABELS = ["under 18", "18 to 64", "65 and over"]
AGES = [-5, 3, 17, 18, 18, 40, 64, 65, 90, 2**62, None]
OPEN = Design({"age": LABELS}, bins={"age": [18, 65]}, other="unknown")
CLOSED = Design({"age": LABELS[:1]}, bins={"age": [18, 65]}, other="unknown")
DAY = datetime.date(2026, 1, 1)


def counted(design: Design, data: Any) -> list[int]:
    """Return the true counts, in the order of the table."""
    return design.count(data)._nodes()[design._axes.shown].reshape(-1).tolist()


#: A column of the same ages, in every library and type.
AS: dict[str, Callable[[], Any]] = {
    "pandas floats": lambda: pd.DataFrame({"age": np.array(AGES, float)}),
    "pandas nullable": lambda: pd.DataFrame({"age": pd.array(AGES, "Int64")}),
    "pandas objects": lambda: pd.DataFrame({"age": pd.Series(AGES, dtype=object)}),
    "pandas categories": lambda: pd.DataFrame({"age": pd.Categorical(pd.array(AGES, "Int64"))}),
    "pandas arrow": lambda: pd.DataFrame({"age": pd.array(AGES, "int64[pyarrow]")}),
    "polars": lambda: pl.DataFrame({"age": AGES}),
    "polars lazy": lambda: pl.LazyFrame({"age": AGES}),
    "polars floats": lambda: pl.DataFrame({"age": pl.Series(AGES, dtype=pl.Float64, strict=False)}),
    "pyarrow": lambda: pa.table({"age": AGES}),
    "decimals": lambda: pa.table({"age": pa.array([x and Decimal(x) for x in AGES])}),
}


@pytest.mark.parametrize("kind", AS)
def test_every_library_counts_in_the_same_bins(kind: str) -> None:
    assert counted(OPEN, AS[kind]()) == [3, 4, 3, 1]
    assert counted(CLOSED, AS[kind]()) == [4, 7]
    alone = Design({"age": LABELS}, bins={"age": [18, 65]})
    assert counted(alone, AS[kind]()) == [3, 4, 3]


def test_duckdb_counts_in_the_same_bins() -> None:
    duckdb = pytest.importorskip("duckdb")
    ages = pa.table({"age": AGES})  # noqa: F841 (the query names it)
    assert counted(OPEN, duckdb.sql("select age from ages")) == [3, 4, 3, 1]


def test_integers_are_counted_without_nulls_by_an_array() -> None:
    """The fast way agrees with the way of single items, at every integer and beside cut points."""
    for cuts in ([18, 65], [-2.5, 18.0, 18.5], [Fraction(-1, 2), 3], [-(2**63), 0, 2**63 - 1]):
        for bins in (len(cuts) + 1, len(cuts) - 1):
            try:
                design = Design({"x": [*map(str, range(bins))]}, bins={"x": [*map(float, cuts)]})
            except ValueError:  # Floats that are equal.
                continue
            [axis] = design._axes
            values = np.array([-(2**63), 2**63 - 1, *range(-4, 70)])
            slow = [axis.bins.place(value) for value in values.tolist()]
            assert axis.of_items(values.tolist(), values.size).tolist() == slow
            fast = axis.of_integers(values)
            assert fast is None or fast.tolist() == slow
    [axis] = OPEN._axes
    assert axis.of_integers(np.array([17, 18, 65])).tolist() == [0, 1, 2]


def test_a_bin_begins_at_its_cut_point_in_the_precision_of_the_column() -> None:
    design = Design({"x": ["a", "b", "c"]}, bins={"x": [0.1, 0.7]})
    for dtype in (np.float32, np.float64):
        values = np.array([0.1, 0.7, 0.69, 0.0999, math.inf, -math.inf, math.nan], dtype)
        assert counted(design, pd.DataFrame({"x": values})) == [2, 2, 2]
        assert counted(design, pl.DataFrame({"x": values})) == [2, 2, 2]


def test_dates_and_times_have_bins() -> None:
    days = [DAY + datetime.timedelta(n) for n in range(-2, 5)]
    design = Design({"day": ["before", "new year", "after"]}, bins={"day": [DAY, days[-1]]})
    assert counted(design, pl.DataFrame({"day": days})) == [2, 4, 1]
    assert counted(design, pa.table({"day": days})) == [2, 4, 1]
    noon = datetime.datetime(2026, 1, 1, 12)
    hours = [noon + datetime.timedelta(hours=n) for n in (-1, 0, 1)]
    design = Design({"time": ["am", "pm"]}, bins={"time": [noon]})
    for frame in (pd.DataFrame({"time": hours}), pl.DataFrame({"time": hours})):
        assert counted(design, frame) == [1, 2]


class Odd:
    """A value that no number compares with."""

    def __lt__(self, other: object) -> bool:
        raise RuntimeError

    __gt__ = __lt__


def test_no_value_of_the_data_is_an_error() -> None:
    odd: list[Any] = [
        Odd(),
        "70",
        b"7",
        [],
        (1,),
        DAY,
        Decimal("sNaN"),
        Decimal("NaN"),
        math.nan,
        None,
        1j,
    ]
    frame = pd.DataFrame({"age": pd.Series([*odd, 20, 20.5, Decimal(70)], dtype=object)})
    assert counted(OPEN, frame) == [0, 2, 1, len(odd)]
    assert {OPEN._axes[0].bins.place(item) for item in odd} == {-1}
    for kind, message in (("str", "text"), ("datetime64[us]", "times"), ("bool", None)):
        values = pd.DataFrame({"age": pd.Series([1, 20], dtype="int64").astype(kind)})
        if message is None:
            assert counted(OPEN, values) == [2, 0, 0, 0]
            continue
        with pytest.raises(ValueError, match=r"levels of 'age' are not accepted: give values of"):
            OPEN.count(values)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_pickles_and_groups_know_the_bins(ending: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [3, 40, 70, 71] * 50, "sex": ["f", "m"] * 100})
    day = Design(
        {"age": LABELS, "sex": ["f", "m"]}, bins={"age": [18.5, 65.25]}, margins={"age": "all"}
    )
    for design, how in ((day, {}), (OPEN, {"at_least": 9})):
        noisy = design.count(frame).release(epsilon=1, **how)
        noisy.save(tmp_path / f"a.{ending}", overwrite=True)
        read = geomdp.read(tmp_path / f"a.{ending}")
        assert read.design == noisy.design == pickle.loads(pickle.dumps(noisy.design))
        assert read.frame.equals(noisy.frame)
    times = [datetime.datetime(2026, 1, 1, 12, 0, 0, 5)]
    design = Design({"time": ["am", "pm"]}, bins={"time": times})
    design.count(pd.DataFrame({"time": times})).release(epsilon=1).save(tmp_path / f"b.{ending}")
    assert geomdp.read(tmp_path / f"b.{ending}").design == design


def test_questions_of_two_releases_compare_bins() -> None:
    frame = pd.DataFrame({"age": [3, 40, 70] * 50})
    one, two = (OPEN.count(frame).release(epsilon=1) for _ in range(2))
    other = Design({"age": LABELS}, bins={"age": [18, 67]}, other="unknown")
    text = Design({"age": LABELS}, other="unknown")
    mapped = text.count(frame.assign(age="under 18")).release(epsilon=1)
    assert len(one.plus(two).frame) == len(one.combine(two).total("age")) == 4
    assert one.plus(two).design == OPEN
    for found in (other.count(frame).release(epsilon=1), mapped):
        for ask in (one.plus, one.combine, lambda x: one.change_since(x, "age")):
            with pytest.raises(ValueError, match="other levels of 'age'"):
                ask(found)
    assert one.design != other


def test_a_median_is_a_bin() -> None:
    frame = pd.DataFrame({"age": [3, 40, 40, 70] * 100})
    noisy = OPEN.count(frame).release(epsilon=5)
    assert noisy.quantile("age", 0.5, alpha=0.05).iloc[0].tolist() == ["18 to 64"] * 3


def test_a_column_by_itself_has_bins_under_its_name() -> None:
    design = Design(LABELS, bins={"level": [18, 65]})
    table = design.count(pd.Series([3, 40, 70, 71], name="age"))
    assert table.design.levels == {"age": LABELS}
    assert table._nodes().tolist() == [1, 1, 2]


def test_an_empty_release_says_which_type_the_data_should_have() -> None:
    with pytest.warns(tables_warning(), match=r"'age' integers \(int\)"):
        OPEN.count(pd.DataFrame({"age": pd.Series(["20"] * 9, dtype=object)})).release(epsilon=1)


def tables_warning() -> Any:
    return geomdp.tables.EmptyTableWarning


@pytest.mark.parametrize(
    ("bins", "error", "words"),
    [
        ({"age": [65, 18]}, ValueError, "bins of 'age' are not accepted: give increasing"),
        ({"age": [18, 18]}, ValueError, "bins of 'age' are empty or repeat one"),
        ({"age": [18]}, ValueError, "1 cut point for 3 levels: give 2, so that the first and the"),
        ({"age": [1, 2, 3]}, ValueError, "3 cut points for 3 levels: give 2, .*, or 4"),
        ({"age": ["18", "65"]}, TypeError, "give numbers, dates or times"),
        ({"age": [True, False]}, TypeError, "give numbers, dates or times"),
        ({"age": [None, 5]}, TypeError, "give numbers, dates or times"),
        ({"age": [math.nan, 5.0]}, ValueError, "give finite numbers"),
        ({"age": [0.0, math.inf]}, ValueError, "give finite numbers"),
        ({"age": [0, 2**63]}, ValueError, "integers of 64 bits"),
        ({"age": [0, DAY]}, ValueError, "one type a column"),
        ({"age": "ab"}, TypeError, "bins of 'age' = 'ab' has type str"),
        ({"age": 5}, TypeError, "bins of 'age' = 5 has type int"),
        ([18, 65], TypeError, "bins .* give a mapping of column names to cut points"),
        ({"sex": [18, 65]}, KeyError, "sex"),
    ],
)
def test_bins_that_cannot_be_are_refused(bins: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        Design({"age": LABELS}, bins=bins)


def test_trees_and_rules_have_no_bins() -> None:
    tree = Hierarchy({"all": None, "a": "all", "b": "all"})
    with pytest.raises(ValueError, match="bins of 'age' are not accepted for a hierarchy"):
        Design({"age": tree}, bins={"age": [3]})
    for rule in (Words("ab", 3), range(10**9)):
        with pytest.raises(ValueError, match="bins are not accepted with levels of 'age'"):
            Design({"age": rule}, bins={"age": [3]})


@pytest.mark.parametrize(
    "bins", [5, "18", [65, 18], [18], [None, 65], [{"date": "x"}, 3], ["a", "b"], [[18], [65]]]
)
def test_forged_bins_are_refused(bins: Any, tmp_path: Path) -> None:
    OPEN.count(pd.DataFrame({"age": [20]})).release(epsilon=5).save(tmp_path / "a.csv")
    path = tmp_path / "a.csv.json"
    whole = json.loads(path.read_text())
    whole["geomdp"]["axes"]["age"]["bins"] = bins
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=r"a\.csv cannot be read"):
        geomdp.read(tmp_path / "a.csv")
