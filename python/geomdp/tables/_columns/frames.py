"""Releases of columns and of frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from geomdp._inputs.arrays import Array
from geomdp._inputs.columns import Nulls, check_nulls, collected, noisy_columns
from geomdp.mechanism import GeometricMechanism, as_mechanism

Column = TypeVar("Column")
Frame = TypeVar("Frame")


def release_columns(
    frame: Any,
    mechanisms: Mapping[Any, GeometricMechanism],
    *,
    nulls: Nulls = "refuse",
    threads: int | None = None,
) -> Any:
    """Return the frame with noise added to some of its columns and the others unchanged.

    The privacy loss of an individual is the sum of ``mechanism.privacy_loss(distance)`` over the
    columns, where `distance` is the individual's greatest change of that column.

    Parameters
    ----------
    frame : data frame
        A frame of pandas or Polars, a Table or RecordBatch of PyArrow, or any other frame that
        narwhals accepts and that is not lazy. A LazyFrame of Polars or a relation of DuckDB is
        evaluated once, before any noise is drawn.
    mechanisms : mapping of column names to mechanisms
        The mechanisms of the columns to release. Pandas' labels need not be strings.
    nulls, threads
        As in :meth:`geomdp.GeometricMechanism.release`, for each column.

    Returns
    -------
    data frame
        A frame of the same library (a DataFrame for a LazyFrame, and a Table of PyArrow for a
        relation), with the same index and with columns of the same types in the same order. If
        anything fails, nothing is returned. In pandas, the other columns and the index are copied,
        since they may share an array with the exact counts, and ``attrs`` are left out. In Arrow
        and Polars the other columns keep their memory, except for columns of Arrow that were read
        into the same buffer as the counts, which are copied out of it. The metadata that Arrow
        keeps of the frame and of the released columns are left out, apart from pandas' types and
        index.

    Raises
    ------
    KeyError
        If a name does not match exactly one column.
    TypeError, ValueError, ImportError
        As in :meth:`geomdp.GeometricMechanism.release`.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, tables
    >>> frame = pd.DataFrame({"town": ["x", "y"], "n": [12, 7]})
    >>> list(tables.release_columns(frame, {"n": GeometricMechanism(1.0)}).columns)
    ['town', 'n']

    """
    check_nulls(nulls)
    if not isinstance(mechanisms, Mapping):
        raise TypeError(
            f"mechanisms has type {type(mechanisms).__name__}: give a mapping of column names"
        )
    noises = {name: _noise(each, threads) for name, each in mechanisms.items()}
    return noisy_columns(collected(frame), noises, nulls)


def _noise(mechanism: GeometricMechanism, threads: int | None) -> Callable[[Array], Array]:
    release = as_mechanism(mechanism).release

    def noise(counts: Array) -> Array:
        return release(counts, threads=threads)

    return noise
