"""The reader of every published file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from geomdp.tables._reading import table_file
from geomdp.tables.streams import _stream

if TYPE_CHECKING:
    from os import PathLike

    from geomdp.tables._columns.native import Library


def read(path: str | PathLike[str], *, library: Library | None = None) -> Any:
    """Return the release that ``save`` wrote to a file, or the stream that a file keeps.

    All that a reader needs is the file and, for a release, the description beside it (``.csv.json``
    or ``.parquet.json``). No data and no secret are required.

    Parameters
    ----------
    path : path
        Ends in ``.csv`` or ``.parquet``, or in ``.jsonl`` for a stream.
    library : {"pandas", "polars", "pyarrow"}, optional
        The library of the frame of a release; by default the first of these that is installed.

    Returns
    -------
    NoisyTable, NoisyGroups, Top or Stream
        The release or stream, with the accuracy and the intervals that the publisher gets.

    Raises
    ------
    ValueError
        If the file contains neither, is damaged, or has a format that this version does not know.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import geomdp
    >>> table = geomdp.tables.count(pd.Series(["no", "yes"], name="sick"), ["yes", "no"])
    >>> noisy = table.release(epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     noisy.save(f"{folder}/sick.parquet")
    ...     read = geomdp.read(f"{folder}/sick.parquet")
    >>> read.to_dict() == noisy.to_dict()
    True

    """
    source = Path(path)
    if source.suffix != ".jsonl":
        return table_file.read(source, library)
    if library is not None:
        raise TypeError("library is for releases: for a stream, give it to Stream.table")
    return _stream.read(source)
