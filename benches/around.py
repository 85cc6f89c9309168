"""Print the cost of the work around the draw, as ratios to the usual way without noise.

Part of `make bench`. A row is a function that makes its data and returns its name and two calls:
ours, and the one that it is compared with. Figures are medians of interleaved turns, in CPU time.
Name rows to run only those: `python benches/around.py count_one_column`.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from compare import heading
from numpy.typing import NDArray

from geomdp import GeometricMechanism, frames

Call = Callable[[], object]
Row = Callable[[], tuple[str, Call, Call]]

MECHANISM = GeometricMechanism(1.0)


def list_of_ints() -> tuple[str, Call, Call]:
    counts = np.arange(1000)
    given = counts.tolist()
    return (
        "a list of 1000 ints, to an array",
        lambda: MECHANISM.release(given),
        lambda: MECHANISM.release(counts),
    )


def records(size: int, **levels: int) -> dict[str, NDArray[np.int64]]:
    """Return columns of random levels, numbered from 0."""
    rng = np.random.default_rng(1)
    return {name: rng.integers(0, most, size) for name, most in levels.items()}


def counted(make: Any, size: int, **levels: int) -> tuple[str, Call, Call]:
    """Polars joins all cells with the groups; pandas reindexes the groups by them."""
    people, each = make(records(size, **levels)), {n: range(most) for n, most in levels.items()}

    def joined() -> object:
        cells = pl.DataFrame({"a": each["a"]})
        for name in list(each)[1:]:
            cells = cells.join(pl.DataFrame({name: each[name]}), how="cross")
        found = people.group_by(list(each)).len()
        counts = cells.join(found, on=list(each), how="left", maintain_order="left")
        filled = counts["len"].fill_null(0).cast(pl.Int64)
        return counts.with_columns(len=MECHANISM.release(filled.to_numpy()))

    def reindexed() -> object:
        counts = people.groupby(list(each)).size()
        return MECHANISM.release(counts.reindex(each["a"], fill_value=0).to_numpy())

    cells = " x ".join(map(written, levels.values()))
    usual, call = ("join", joined) if make is pl.DataFrame else ("reindex", reindexed)
    return (
        f"`frames.count` of {written(size)} records of {library(make)} in {cells} cells and "
        f"release, to group_by, {usual} and release",
        lambda: frames.count(people, each).release(MECHANISM),
        call,
    )


def count_two_columns() -> tuple[str, Call, Call]:
    return counted(pl.DataFrame, 2 * 10**6, a=1000, b=1000)


def count_one_column() -> tuple[str, Call, Call]:
    return counted(pl.DataFrame, 2 * 10**6, a=10**6)


def count_few_polars() -> tuple[str, Call, Call]:
    return counted(pl.DataFrame, 1000, a=10)


def count_few_pandas() -> tuple[str, Call, Call]:
    return counted(pd.DataFrame, 1000, a=10)


def count_categorical() -> tuple[str, Call, Call]:
    towns = [f"town {place}" for place in range(100)]
    codes = records(10**6, town=len(towns))["town"]
    people = pd.DataFrame({"town": pd.Categorical.from_codes(codes, towns)})
    return (
        "`frames.count` of 1 000 000 records of a pandas categorical, to groupby(observed=False)",
        lambda: frames.count(people, {"town": towns}),
        lambda: people.groupby("town", observed=False).size(),
    )


def short(make: Any) -> tuple[str, Call, Call]:
    counts = np.arange(10)
    column = make(counts)
    return (
        f"a Series of {library(make)} of 10, to an array",
        lambda: MECHANISM.release(column),
        lambda: MECHANISM.release(counts),
    )


def short_pandas() -> tuple[str, Call, Call]:
    return short(pd.Series)


def short_polars() -> tuple[str, Call, Call]:
    return short(pl.Series)


def short_column(make: Any) -> tuple[str, Call, Call]:
    counts = np.arange(10)
    frame = make({"n": counts, "k": counts})
    return (
        f"`release_columns` for a column of 10 of {library(make)}, to an array",
        lambda: frames.release_columns(frame, {"n": MECHANISM}),
        lambda: MECHANISM.release(counts),
    )


def short_column_pandas() -> tuple[str, Call, Call]:
    return short_column(pd.DataFrame)


def short_column_polars() -> tuple[str, Call, Call]:
    return short_column(pl.DataFrame)


def bounded(make: Any, size: int) -> tuple[str, Call, Call]:
    """Ten records for each individual, in twenty towns."""
    visits = records(size, who=size // 10, town=20)
    frame, own = pd.DataFrame(visits), make(visits)
    return (
        f"`bound_contributions` of {written(size)} records of {library(make)}, to pandas' sample, "
        "drop_duplicates and head",
        lambda: frames.bound_contributions(own, "who", l0=2, cells=["town"]),
        lambda: frame.sample(frac=1).drop_duplicates().groupby("who").head(2),
    )


def bounded_pandas() -> tuple[str, Call, Call]:
    return bounded(pd.DataFrame, 10**6)


def bounded_polars() -> tuple[str, Call, Call]:
    return bounded(pl.DataFrame, 10**6)


def bounded_few() -> tuple[str, Call, Call]:
    return bounded(pd.DataFrame, 1000)


def written(size: int) -> str:
    return f"{size:_}".replace("_", " ")


def library(make: Any) -> str:
    return {"pandas": "pandas", "polars": "Polars"}[make.__module__.partition(".")[0]]


ROWS: list[Row] = [
    count_two_columns,
    count_one_column,
    count_few_polars,
    count_few_pandas,
    count_categorical,
    short_pandas,
    short_polars,
    short_column_pandas,
    short_column_polars,
    bounded_pandas,
    bounded_polars,
    bounded_few,
    list_of_ints,
]


def seconds(call: Call) -> float:
    """Return the CPU time of one call, of enough calls that the clock sees them."""
    calls = 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            call()
        if (spent := time.process_time() - start) > 0.02:
            return spent / calls
        calls *= 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help="names of rows; all unless given")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    heading()
    print("| what, to what | ours | theirs | ratio |\n|---|---|---|---|")
    for row in ROWS:
        if arguments.rows and row.__name__ not in arguments.rows:
            continue
        name, ours, theirs = row()
        turns = [(seconds(ours), seconds(theirs)) for _ in range(arguments.turns)]
        a, b = (statistics.median(times) for times in zip(*turns, strict=True))
        print(f"| {name} | {a * 1e3:.4g} ms | {b * 1e3:.4g} ms | **{a / b:.2f}** |", flush=True)


if __name__ == "__main__":
    main()
