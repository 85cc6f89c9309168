"""Releases of columns and of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from geomdp._inputs.arrays import Array
from geomdp._inputs.columns import Noise, Nulls, check_nulls, noisy, noisy_columns
from geomdp._uncopied import unseen
from geomdp.frames._noise import GeometricMechanism, as_noise

Column = TypeVar("Column")
Frame = TypeVar("Frame")


@unseen
def release(
    mechanism: GeometricMechanism,
    counts: Column,
    *,
    nulls: Nulls = "refuse",
    threads: int | None = None,
) -> Column:
    """Return a noisy column; ``mechanism.release(counts)`` is the same without nulls.

    Parameters
    ----------
    mechanism
        The mechanism that adds the noise.
    counts : column
        A Series of pandas (with numpy, pandas or Arrow types) or Polars, an Array or ChunkedArray
        of PyArrow, or any other Series that narwhals accepts; of an integer type of 8 to 64 bits.
    nulls : {"refuse", "keep"}
        "keep" leaves nulls in place and adds noise to the other counts. The output then shows,
        without any noise, which counts are null: this must be public or depend on no individual.
        Counts that the library still holds in memory behind nulls are neither read nor returned.
    threads : int, optional
        The greatest number of threads for a large column; by default as many as help.

    Returns
    -------
    column
        The noisy counts with the same library, type, name, index and chunks, in memory of their
        own. Null slots hold zeros, or noise added to zeros. Pandas' ``attrs`` are left out.

    Raises
    ------
    TypeError
        If the counts are not a column of integers.
    ValueError
        If there are nulls and they are refused, `nulls` has another value, or the counts are
        unsigned and the mechanism has no bounds (``docs/bounds.md``).
    ImportError
        If narwhals is not installed, and the column needs it, like pandas' nullable types.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, frames
    >>> counts = pd.Series([12, None, 9], name="n", dtype="Int64")
    >>> noisy = frames.release(GeometricMechanism(1.0), counts, nulls="keep")
    >>> noisy.isna().tolist()
    [False, True, False]

    """
    check_nulls(nulls)
    return cast(Column, noisy(_noise(mechanism, threads), "counts", counts, nulls))


@unseen
def release_columns(
    frame: Frame,
    mechanisms: Mapping[Any, GeometricMechanism],
    *,
    nulls: Nulls = "refuse",
    threads: int | None = None,
) -> Frame:
    """Return the frame with noise added to some of its columns and the others unchanged.

    The privacy loss of an individual is the sum of ``mechanism.privacy_loss(distance)`` over the
    columns, where `distance` is the individual's greatest change of that column.

    Parameters
    ----------
    frame : data frame
        A frame of pandas or Polars, a Table or RecordBatch of PyArrow, or any other frame that
        narwhals accepts and that is not lazy.
    mechanisms : mapping of column names to mechanisms
        The mechanisms of the columns to release. Pandas' labels need not be strings.
    nulls, threads
        As in :func:`release`, for each column.

    Returns
    -------
    data frame
        A frame of the same library, with the same index and with columns of the same types in the
        same order. If anything fails, nothing is returned. In pandas the other columns and the
        index are copied, since they may share an array with the exact counts, and ``attrs`` are
        left out. In Arrow and Polars the other columns keep their memory, but Arrow's columns that
        were read into one buffer with the counts are copied out of it. Arrow's metadata of the
        frame and of the released columns are left out, but for the types and index of pandas.

    Raises
    ------
    KeyError
        If a name does not match exactly one column.
    TypeError, ValueError, ImportError
        As in :func:`release`.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import GeometricMechanism, frames
    >>> frame = pd.DataFrame({"town": ["x", "y"], "n": [12, 7]})
    >>> list(frames.release_columns(frame, {"n": GeometricMechanism(1.0)}).columns)
    ['town', 'n']

    """
    check_nulls(nulls)
    if not isinstance(mechanisms, Mapping):
        raise TypeError(
            f"mechanisms has type {type(mechanisms).__name__}: give a mapping of column names"
        )
    noises = {name: _noise(each, threads) for name, each in mechanisms.items()}
    return cast(Frame, noisy_columns(frame, noises, nulls))


def _noise(mechanism: GeometricMechanism, threads: int | None) -> Noise:
    release = as_noise(mechanism).release

    def noise(counts: Array) -> Array:
        return release(counts, threads=threads)

    return noise
