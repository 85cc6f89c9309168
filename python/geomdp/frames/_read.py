"""The reader of a published table (``docs/format.md``)."""

from __future__ import annotations

import csv
import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp.frames._design import Design
from geomdp.frames._format import FORMAT, GROUPS, KEY, TREE, beside, cell
from geomdp.frames._groups import NoisyGroups
from geomdp.frames._native import Library
from geomdp.frames._noisy import NoisyTable
from geomdp.mechanism import GeometricMechanism


def read(path: Any, *, library: Library | None = None) -> NoisyTable:
    """Return the noisy table in a file that :meth:`geomdp.frames.NoisyTable.save` wrote.

    A reader needs the file alone, with the ``.csv.json`` beside a CSV file: no data and no secret.

    Parameters
    ----------
    path : path
        Ends in ``.csv`` or ``.parquet``.
    library : {"pandas", "polars", "pyarrow"}, optional
        The library of the frame; the first of these that is installed.

    Returns
    -------
    NoisyTable
        With the intervals that the publisher sees.

    Raises
    ------
    ValueError
        If the file is not such a table, of a format that this version does not know, or damaged.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import geomdp
    >>> table = geomdp.frames.count(pd.Series(["no", "yes"], name="sick"), ["yes", "no"])
    >>> noisy = table.release(epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     noisy.save(f"{folder}/sick.parquet")
    ...     read = geomdp.read(f"{folder}/sick.parquet")
    >>> read.to_dict() == noisy.to_dict()
    True

    """
    source = Path(path)
    description, rows, design, mechanisms = _table(source, FORMAT)
    check_rows(source, (row[:-1] for row in rows), design._rows())
    label = description["geomdp"]["label"]
    return NoisyTable(design, mechanisms, label, counts_of(source, rows), library)


def read_groups(path: Any, *, library: Library | None = None) -> NoisyGroups:
    """Return the groups in a file that :meth:`geomdp.frames.NoisyGroups.save` wrote.

    Parameters
    ----------
    path, library
        As in :func:`geomdp.read`, which reads whole tables.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from geomdp import frames
    >>> table = frames.count(pd.Series(["no"] * 500, name="sick"), ["yes", "no"])
    >>> noisy = table.release(epsilon=1, at_least=25)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     noisy.save(f"{folder}/sick.csv")
    ...     read = frames.read_groups(f"{folder}/sick.csv")
    >>> read.to_dict() == noisy.to_dict(), read.at_least
    (True, 25)

    """
    source = Path(path)
    description, rows, design, mechanisms = _table(source, GROUPS)
    with damage(source):
        at_least = design._threshold(description["geomdp"]["at_least"], mechanisms[()])
    cells = _cells(source, design, [row[:-1] for row in rows])
    counts = counts_of(source, rows)
    if min(counts, default=at_least) < at_least:
        raise _other_rows(source)
    label = description["geomdp"]["label"]
    return NoisyGroups(
        design, mechanisms[()], label, counts, library, cells=cells, at_least=at_least
    )


def _table(
    path: Path, form: str
) -> tuple[
    dict[str, Any], list[tuple[Any, ...]], Design, dict[tuple[int, ...], GeometricMechanism]
]:
    """Return the description of a file of this format, its rows, its design and mechanisms."""
    description, header, rows = opened(path, form)
    design, mechanisms = _facts(path, description)
    check_columns(path, header, [*design.levels, design.name])
    return description, rows, design, mechanisms


def opened(source: Path, form: str) -> tuple[dict[str, Any], list[str], list[tuple[Any, ...]]]:
    """Return the description of a file of this format, the names of its columns, and its rows.

    The cells of CSV are text.
    """
    if source.suffix == ".csv":
        description = _parsed(source, beside(source).read_bytes(), form)
        with source.open(newline="", encoding="utf-8") as file:
            header, *cells = csv.reader(file)
        return description, header, [*map(tuple, cells)]
    if source.suffix != ".parquet":
        raise ValueError(
            parameters.refusal("path", str(source), "a name that ends in .csv or .parquet")
        )
    with installed_by("geomdp[parquet]"):
        from pyarrow import parquet  # noqa: PLC0415
    table = parquet.read_table(source)
    description = _parsed(source, (table.schema.metadata or {}).get(KEY, b""), form)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return description, table.schema.names, [*rows]


def counts_of(source: Path, rows: list[tuple[Any, ...]]) -> NDArray[np.int64]:
    """Return the last column."""
    counts = [int(row[-1]) for row in rows]
    if not all(-(2**63) <= count < 2**63 for count in counts):
        raise ValueError(f"{source.name} has counts beyond int64")
    return np.array(counts, np.int64)


def _facts(
    path: Path, description: dict[str, Any]
) -> tuple[Design, dict[tuple[int, ...], GeometricMechanism]]:
    """Return the design and the mechanisms of a description."""
    facts = description["geomdp"]
    with damage(path):
        design = design_of(description)
        labels = list(design.levels)
        mechanisms = {
            tuple(labels.index(label) for label in each["sums_over"]): _of_rate(design, each)
            for each in facts["mechanisms"]
        }
        stated = facts["epsilon"], facts["sensitivity"]
        if not isinstance(facts["label"], str | None):
            raise TypeError("label is no str")
    if list(mechanisms) != list(design._sums()):
        raise ValueError(f"{path.name} has a damaged description: mechanisms of other margins")
    if stated != (str(design._loss(mechanisms)), design.sensitivity):
        raise ValueError(f"{path.name} has a damaged description: another privacy loss")
    compare_plans(path, facts, mechanisms.values())
    return design, mechanisms


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Raise a ValueError for the errors of a damaged description."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"{path.name} has a damaged description: {error}") from None


def design_of(description: Mapping[str, Any]) -> Design:
    """Return the design of a description."""
    facts = description["geomdp"]
    return Design(
        {label: [*map(_decoded, items)] for label, items in facts["levels"].items()},
        name=description["schema"]["fields"][-1]["name"],
        other={label: _decoded(item) for label, item in facts["other"].items()},
        margins={
            label: (_decoded(each["label"]), Fraction(each["share"]))
            for label, each in facts["margins"].items()
        },
        individual=facts["individual"],
        l0=facts["l0"],
        linf=facts["linf"],
        neighbours=facts["neighbours"],
    )


def compare_plans(
    path: Path, facts: Mapping[str, Any], mechanisms: Iterable[GeometricMechanism]
) -> None:
    """Warn if the plans are not those of the release."""
    with damage(path):
        digests = [each["plan_sha256"] for each in facts["mechanisms"]]
        version = facts["version"]
    for stated, mechanism in zip(digests, mechanisms, strict=True):
        digest = hashlib.sha256(mechanism.certificate(np.int64).to_json().encode()).hexdigest()
        if stated != digest:
            warnings.warn(
                f"{path.name} was released by version {version} with another plan: "
                "intervals are those of this version's plan",
                stacklevel=4,
            )


def _of_rate(design: Design, facts: Mapping[str, Any]) -> GeometricMechanism:
    bounds = facts["bounds"]
    sensitivity = design._change if design._uneven else design.sensitivity
    epsilon = Fraction(facts["rate"]) * sensitivity
    return GeometricMechanism(epsilon, sensitivity, None if bounds is None else tuple(bounds))


def _parsed(path: Path, text: bytes, form: str) -> dict[str, Any]:
    try:
        description = json.loads(text)
        found = description["geomdp"]["format"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path.name} has no description of a release by geomdp") from None
    if found != form:
        readers = {
            FORMAT: "geomdp.read",
            GROUPS: "geomdp.frames.read_groups",
            TREE: "geomdp.hierarchy.read",
        }
        hint = f"; {readers[found]} reads it" if found in readers else ""
        raise ValueError(f"{path.name} has the format {found!r}: this version reads {form!r}{hint}")
    return description  # type: ignore[no-any-return]


def check_columns(path: Path, found: list[str], wanted: list[Any]) -> None:
    """Refuse a file with other columns than these."""
    if found != wanted:
        raise ValueError(f"{path.name} has other columns than its description")


def check_rows(path: Path, found: Iterable[tuple[Any, ...]], wanted: list[Any]) -> None:
    """Refuse a file with other rows than these, which are text in CSV."""
    if path.suffix == ".csv":
        wanted = [(*map(cell, row),) for row in wanted]
    if list(found) != wanted:
        raise _other_rows(path)


def _cells(path: Path, design: Design, rows: list[tuple[Any, ...]]) -> NDArray[np.int64]:
    """Return the cells of rows of a file, which must be in the order of the design."""
    shown = cell if path.suffix == ".csv" else lambda level: level
    places = [
        {shown(level): place for place, level in enumerate(items)}
        for items in design.levels.values()
    ]
    try:
        found = [[known[x] for known, x in zip(places, row, strict=True)] for row in rows]
    except (LookupError, TypeError, ValueError):
        raise _other_rows(path) from None
    indices = np.array(found, np.int64).reshape(-1, len(places)).T
    cells = np.ravel_multi_index(tuple(indices), design.shape)
    if (np.diff(cells) <= 0).any():
        raise _other_rows(path)
    return np.asarray(cells)


def _other_rows(path: Path) -> ValueError:
    return ValueError(f"{path.name} has other rows than its description")


def _decoded(level: Any) -> Any:
    if isinstance(level, dict):
        [(kind, text)] = level.items()
        return {"date": date, "datetime": datetime}[kind].fromisoformat(text)
    return level
