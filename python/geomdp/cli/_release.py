"""The command release: noise for columns of counts in a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from geomdp.cli import _delimited, _parquet_file
from geomdp.cli._arguments import (
    DELIMITERS,
    Command,
    Option,
    UsageError,
    mechanism,
    refusing,
    shared,
)
from geomdp.cli._files import reading, writing
from geomdp.mechanism import check_dtype


def _release(given: argparse.Namespace) -> str:
    if len(set(given.column)) < len(given.column):
        raise UsageError("--column is given twice for the same column")
    with refusing(given):
        made = mechanism(given)
    of_parquet = {path.lower().endswith(".parquet") for path in (given.source, given.target)}
    if len(of_parquet) == 2:
        raise UsageError(
            "IN and OUT: give two Parquet files, or two CSV files (- is standard input or output)"
        )
    release: Callable[[Any, BinaryIO, list[str]], None]
    if of_parquet == {True}:
        if given.delimiter != ",":
            raise UsageError("--delimiter applies to CSV files only")
        release = partial(_parquet_file.release, mechanism=made)
    else:
        with refusing(given):
            check_dtype(made, "int64")
        delimiter = DELIMITERS[given.delimiter]
        release = partial(_delimited.release, noise=made.release, delimiter=delimiter)
    with writing(given.target) as target, reading(given.source) as source:
        try:
            release(source, target, given.column)
        except ImportError as error:
            raise _delimited.DataError("Parquet needs PyArrow: pip install pyarrow") from error
    return ""


RELEASE = Command(
    _release,
    "add noise to columns of a CSV or Parquet file",
    """\
Copy a CSV or Parquet file of any size, adding noise to the counts in the columns
that you name. The copy has no description: to publish a table of counts with its
intervals, use geomdp count with --counts.

Epsilon is the privacy loss of all counts in all these columns together, and the
sensitivity is the most by which one individual can change them in total (L1).
Every run draws fresh noise and costs epsilon again.

Counts outside the bounds are clamped without an error, since an error would
reveal them. Everything else is copied and must be public: the other columns, the
number of rows and their order. OUT must not exist, and appears only when it is
complete.

CSV: Counts are decimal integers within int64. Other cells are copied byte for
byte. IN begins with a header in UTF-8, with or without a byte order mark; its
rows end with LF or CRLF, and its cells are quoted as in RFC 4180. Anything else
is refused, with its line and column. A name that ends with .gz stands for a file
compressed with gzip. IN may be - for standard input, and OUT may be - for
standard output, to which nothing is written before all of IN has been read.

Parquet, if both names end with .parquet: Counts are integers of 8 to 64 bits
without nulls, and keep their type. This needs geomdp[parquet].

The time to draw noise does not depend on the counts, but the time to parse counts
and to write noisy counts does.""",
    "counts.csv noisy.csv --column count --epsilon 0.5 --bounds 0 4526",
    shared("source", "target")
    | {
        "--column": Option(
            "NAME", "a column of counts; may be repeated", {"action": "append", "required": True}
        )
    }
    | shared("--epsilon", "--scale", "--sensitivity", "--bounds", "--delimiter"),
)
