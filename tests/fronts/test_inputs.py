"""Labelled inputs: Series, Index, dict and Counter wherever arrays are taken."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp import GeometricMechanism, accuracy, tables
from geomdp._inputs import arrays
from geomdp.measurement import (
    atom_domain,
    l1_distance,
    make_count_by_categories,
    make_geometric,
    symmetric_distance,
    vector_domain,
)
from geomdp.tables import plot

mpl.use("Agg")

MECHANISM = GeometricMechanism(0.5, bounds=(0, 20))
VALUES = [3, 20, 0, 7]
KEYS = ["c", "a", "d", "b"]


def of_dict(result: Any) -> Any:
    assert type(result) is dict
    assert list(result) == KEYS
    assert all(type(value) in (int, float) for value in result.values())
    return list(result.values())


def of_series(result: Any) -> Any:
    assert isinstance(result, pd.Series)
    assert (result.name, list(result.index)) == ("n", KEYS)
    return result.tolist()


def of_index(result: Any) -> Any:
    assert isinstance(result, pd.Index)
    assert result.name == "n"
    return result.tolist()


def of_polars(result: Any) -> Any:
    assert isinstance(result, pl.Series)
    assert result.name == "n"
    return result.to_list()


def of_arrow(result: Any) -> Any:
    assert isinstance(result, pa.ChunkedArray | pa.Array)
    return result.to_pylist()


def dtype_of(of: str) -> str:
    """Return the dtype of labelled counts, whose limits are the ends that bounds leave open."""
    return "uint8" if of == "Series of Arrow" else "int64"


COUNTS = dict(zip(KEYS, VALUES, strict=True))
#: Labelled counts, and the check that a result has the same labels, which returns its numbers.
LABELLED: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "dict": (COUNTS, of_dict),
    "Counter": (Counter(COUNTS), of_dict),
    "Series": (pd.Series(VALUES, KEYS, name="n"), of_series),
    "Series of Int64": (pd.Series(VALUES, KEYS, "Int64", "n"), of_series),
    "Series of Arrow": (pd.Series(VALUES, KEYS, "uint8[pyarrow]", "n"), of_series),
    "Index": (pd.Index(VALUES, name="n"), of_index),
    "polars": (pl.Series("n", VALUES), of_polars),
    "chunked": (pa.chunked_array([VALUES[:1], VALUES[1:]]), of_arrow),
    "Arrow": (pa.array(VALUES), of_arrow),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "scale_to_accuracy": lambda x: accuracy.scale_to_accuracy(x, 0.05),
    "continuous": lambda x: accuracy.scale_to_accuracy(x, 0.05, method="continuous"),
    "epsilon": lambda x: accuracy.accuracy_to_epsilon(2, 0.05, sensitivity=x),
    "release_accuracy": lambda x: MECHANISM.accuracy(0.05, counts=x),
    "variance": lambda x: accuracy.variance(MECHANISM, x),
    "lower": lambda x: MECHANISM.confidence_interval(x, 0.05)[0],
    "upper": lambda x: MECHANISM.confidence_interval(x, 0.05)[1],
    "ratio": lambda x: accuracy.ratio_confidence_interval(MECHANISM, x, 15, 0.05)[1],
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("of", LABELLED)
def test_results_keep_labels(function: str, of: str) -> None:
    labelled, numbers = LABELLED[of]
    compute = FUNCTIONS[function]
    assert numbers(compute(labelled)) == compute(np.array(VALUES, dtype_of(of))).tolist()


@pytest.mark.parametrize("of", LABELLED)
def test_release_keeps_labels(of: str) -> None:
    labelled, numbers = LABELLED[of]
    released = MECHANISM.release(labelled)
    assert all(0 <= value <= 20 for value in numbers(released))
    fixed = GeometricMechanism.from_scale(0, bounds=(1, 7))
    assert numbers(fixed.release(labelled)) == [3, 7, 1, 7]
    domain = vector_domain(atom_domain("u8" if of == "Series of Arrow" else int))
    measurement = make_geometric(domain, l1_distance(domain.T), 0, bounds=(1, 7))
    assert numbers(measurement(labelled)) == [3, 7, 1, 7]
    total = accuracy.sum_confidence_interval(MECHANISM, labelled, 0.05, weights=labelled)
    plain = np.array(VALUES, dtype_of(of))
    assert total == accuracy.sum_confidence_interval(MECHANISM, plain, 0.05, weights=VALUES)
    assert accuracy.simultaneous_accuracy(MECHANISM, 0.05, counts=labelled) == (
        accuracy.simultaneous_accuracy(MECHANISM, 0.05, counts=VALUES)
    )


TABLE = pd.DataFrame(
    {"year": [2024, 2024, 2025, 2025], "sick": ["yes", "no"] * 2, "n": np.array(VALUES)}
)
PIVOT = TABLE.pivot(index="year", columns="sick", values="n")[["yes", "no"]]


def of_table(result: Any) -> Any:
    table = result.to_pandas() if hasattr(result, "to_pandas") else result
    pd.testing.assert_frame_equal(table[["year", "sick"]], TABLE[["year", "sick"]])
    return table["n"].to_numpy().reshape(2, 2)


def of_pivot(result: Any) -> Any:
    assert result.index.equals(PIVOT.index)
    assert result.columns.equals(PIVOT.columns)
    return result.to_numpy()


#: Two-way tables of noisy counts, and the check of their labels.
TABLES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "pandas": (TABLE, of_table),
    "polars": (pl.from_pandas(TABLE), of_table),
    "Arrow": (pa.Table.from_pandas(TABLE), of_table),
    "batch": (pa.Table.from_pandas(TABLE).to_batches()[0], of_table),
    "pivot": (PIVOT, of_pivot),
    "matrix": (pd.DataFrame(PIVOT.to_numpy()), np.asarray),
}
OF_RELEASED = ("lower", "upper", "ratio")


@pytest.mark.parametrize("function", OF_RELEASED)
@pytest.mark.parametrize("of", TABLES)
def test_results_keep_the_labels_of_tables(function: str, of: str) -> None:
    table, numbers = TABLES[of]
    compute = FUNCTIONS[function]
    bare = np.reshape(VALUES, (2, 2))
    found = compute(table)
    assert isinstance(found, pa.Table if of == "batch" else type(table))
    assert numbers(found).tolist() == compute(bare).tolist()
    total = accuracy.sum_confidence_interval(MECHANISM, table, 0.05)
    assert total == accuracy.sum_confidence_interval(MECHANISM, VALUES, 0.05)
    with pytest.raises(TypeError, match="counts has type"):
        MECHANISM.release(table)


@pytest.mark.parametrize("margins", [None, {"sick": "both"}, {"year": -1, "sick": "both"}])
def test_noisy_table_is_its_cells(margins: Any) -> None:
    design = tables.Design({"year": [2024, 2025], "sick": ["yes", "no"]}, margins=margins)
    noisy = design.count(TABLE[["year", "sick"]]).release(epsilon=1)
    cells = np.array([n for key, n in noisy.to_dict().items() if not {-1, "both"} & set(key)])
    bare, own = cells.reshape(2, 2), list(noisy.mechanisms.values())[-1]
    ends = zip(own.confidence_interval(noisy, 0.1), own.confidence_interval(bare, 0.1), strict=True)
    assert all((one == other).all() for one, other in ends)
    total = accuracy.sum_confidence_interval(own, noisy, 0.1)
    assert total == accuracy.sum_confidence_interval(own, cells, 0.1)


def test_columns_of_records_are_counted() -> None:
    count = make_count_by_categories(
        vector_domain(atom_domain(str)), symmetric_distance(), ["a", "b"]
    )
    for records in (pd.Series(["b", "a", "b"]), pl.Series(["b", "a", "b"]), pd.Index(list("bab"))):
        assert count(records).tolist() == [1, 2, 0]


@pytest.mark.parametrize("of", ["dict", "Series"])
def test_histogram_takes_labels(of: str) -> None:
    labelled, _ = LABELLED[of]
    _, (left, right) = plt.subplots(2)
    axes = plot.histogram(MECHANISM, MECHANISM.release(labelled), true=labelled, ax=left)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == KEYS
    numbered = plot.histogram(MECHANISM, pd.Series(VALUES), ax=right)
    assert numbered.get_xlabel() == "number of the bin"
    plt.close()


def test_different_labels_raise() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    with pytest.raises(ValueError, match="true and noisy have different labels"):
        plot.histogram(MECHANISM, other, true=one)
    with pytest.raises(ValueError, match="scale and alpha have different labels"):
        accuracy.scale_to_accuracy(pd.Series([1, 2]), pd.Series([0.1, 0.2], index=[1, 0]))
    with pytest.raises(ValueError, match="numerator and denominator have different labels"):
        accuracy.ratio_confidence_interval(MECHANISM, PIVOT, PIVOT[["no", "yes"]], 0.05)
    same = accuracy.scale_to_accuracy(pd.Series([1, 2]), pd.Series([0.1, 0.2]))
    assert same.tolist() == [accuracy.scale_to_accuracy(1, 0.1), accuracy.scale_to_accuracy(2, 0.2)]


@pytest.mark.parametrize("dtype", arrays.DTYPES.values(), ids=str)
def test_ints_fit_their_dtype_or_raise(dtype: np.dtype[Any]) -> None:
    """Older versions of numpy wrap negative ints."""
    low, high = arrays.limits(dtype)
    array = arrays.as_array([low, 1, high], dtype)
    assert (array.dtype, array.tolist()) == (dtype, [low, 1, high])
    for beyond in (low - 1, high + 1, -(2**70), 2**70):
        with pytest.raises(OverflowError, match=f"^counts beyond {dtype} are not accepted: give"):
            arrays.as_array([1, beyond], dtype)


def test_dtypes_are_in_one_table() -> None:
    widths = re.compile(r'"u?int(8|16)"|\(8, 16, 32, 64\)')
    files = Path(geomdp.__file__).parent.rglob("*.py")
    assert [path.name for path in files if widths.search(path.read_text())] == ["arrays.py"]
