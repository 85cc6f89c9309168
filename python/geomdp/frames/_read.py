"""The reader of a published table (``docs/format.md``)."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geomdp import _published
from geomdp._inputs import parameters
from geomdp._published import Contents, damage, fraction
from geomdp.frames._design import Design
from geomdp.frames._format import FORMAT, GROUPS, TREE
from geomdp.frames._groups import NoisyGroups
from geomdp.frames._native import Library
from geomdp.frames._noisy import NoisyTable
from geomdp.mechanism import GeometricMechanism

_OTHER_ROWS = "it has other rows than its description"


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
    contents, design, mechanisms = _table(source, FORMAT)
    with damage(source):
        if contents.counts.size != design.cells:
            raise ValueError(_OTHER_ROWS)
        order = np.unravel_index(np.arange(design.cells), design.shape)
        check_rows(contents, design.levels, order)
    return NoisyTable(design, mechanisms, contents.facts["label"], contents.counts, library)


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
    contents, design, mechanisms = _table(source, GROUPS)
    with damage(source):
        at_least = design._threshold(contents.facts["at_least"], mechanisms[()])
        places = [
            column.among(items)
            for column, items in zip(contents.columns[:-1], design.levels.values(), strict=True)
        ]
        cells = np.ravel_multi_index(tuple(places), design.shape)
        if (np.diff(cells) <= 0).any() or (contents.counts < at_least).any():
            raise ValueError(_OTHER_ROWS)
    label, counts = contents.facts["label"], contents.counts
    return NoisyGroups(
        design, mechanisms[()], label, counts, library, cells=cells, at_least=at_least
    )


def _table(
    path: Path, form: str
) -> tuple[Contents, Design, dict[tuple[int, ...], GeometricMechanism]]:
    """Return what a file of this format has, its design and mechanisms."""
    contents = opened(path, form)
    return contents, *_facts(path, contents)


def opened(path: Path, form: str) -> Contents:
    """Return what a file of this format has."""
    contents = _published.read(path)
    found = contents.facts.get("format")
    if found != form:
        readers = {
            FORMAT: "geomdp.read",
            GROUPS: "geomdp.frames.read_groups",
            TREE: "geomdp.hierarchy.read",
        }
        hint = f"; {readers[found]} reads it" if isinstance(found, str) and found in readers else ""
        raise ValueError(
            f"{path.name} has the format {parameters.shown(found)}: this version reads {form!r}"
            f"{hint}"
        )
    return contents


def _facts(
    path: Path, contents: Contents
) -> tuple[Design, dict[tuple[int, ...], GeometricMechanism]]:
    """Return the design and the mechanisms of a description."""
    facts = contents.facts
    with damage(path):
        design = design_of(contents)
        if contents.names != [*design.levels, design.name]:
            raise ValueError("it has other columns than its description")
        labels = list(design.levels)
        mechanisms = {
            tuple(labels.index(label) for label in each["sums_over"]): _of_rate(design, each)
            for each in facts["mechanisms"]
        }
        if not isinstance(facts["label"], str | None):
            raise TypeError("label is no str")
        if list(mechanisms) != list(design._sums()):
            raise ValueError("it has mechanisms of other margins")
        if (facts["epsilon"], facts["sensitivity"]) != (
            str(design._loss(mechanisms)),
            design.sensitivity,
        ):
            raise ValueError("it states another privacy loss")
    compare_plans(path, facts, mechanisms.values())
    return design, mechanisms


def design_of(contents: Contents) -> Design:
    """Return the design of a description."""
    facts = contents.facts
    return Design(
        {label: [*map(_decoded, items)] for label, items in facts["levels"].items()},
        name=contents.names[-1],
        other={label: _decoded(item) for label, item in facts["other"].items()},
        margins={
            label: (_decoded(each["label"]), fraction(each["share"]))
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
    epsilon = fraction(facts["rate"]) * sensitivity
    return GeometricMechanism(epsilon, sensitivity, None if bounds is None else tuple(bounds))


def check_rows(
    contents: Contents, levels: Mapping[str, Sequence[Any]], wanted: Sequence[NDArray[Any]]
) -> None:
    """Refuse other rows than those of these places among the levels of each column."""
    for (name, items), places in zip(levels.items(), wanted, strict=True):
        found = contents.columns[contents.names.index(name)].among(items)
        if not np.array_equal(found, places):
            raise ValueError(_OTHER_ROWS)


def _decoded(level: Any) -> Any:
    if isinstance(level, dict):
        [(kind, text)] = level.items()
        return {"date": date, "datetime": datetime}[kind].fromisoformat(text)
    return level
