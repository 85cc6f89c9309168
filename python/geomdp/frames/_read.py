"""The reader of a published table (``docs/format.md``)."""

from __future__ import annotations

import csv
import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp.frames import _native
from geomdp.frames._design import Design
from geomdp.frames._format import FORMAT, KEY, beside, cell
from geomdp.frames._groups import NoisyGroups
from geomdp.frames._noisy import NoisyTable
from geomdp.mechanism import GeometricMechanism


def read(path: Any, *, library: _native.Library | None = None) -> NoisyTable | NoisyGroups:
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
    if source.suffix == ".csv":
        design, mechanisms, label, at_least = _facts(source, beside(source).read_bytes())
        with source.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        if header != [*design.levels, design.name]:
            raise ValueError(f"{source.name} has other columns than its description")
        cells = _cells(source, design, [row[:-1] for row in rows], cell)
        counts = [int(row[-1]) for row in rows]
    elif source.suffix == ".parquet":
        with installed_by("geomdp[parquet]"):
            from pyarrow import parquet  # noqa: PLC0415
        table = parquet.read_table(source)
        metadata = (table.schema.metadata or {}).get(KEY, b"")
        design, mechanisms, label, at_least = _facts(source, metadata)
        *keys, last = [column.to_pylist() for column in table.columns]
        cells = _cells(source, design, list(zip(*keys, strict=True)), lambda level: level)
        counts = [*map(int, last)]
    else:
        raise ValueError(
            parameters.refusal("path", str(source), "a name that ends in .csv or .parquet")
        )
    if not all(-(2**63) <= count < 2**63 for count in counts):
        raise ValueError(f"{source.name} has counts beyond int64")
    if at_least is None:
        whole = len(cells) == design.cells
    else:
        whole = min(counts, default=at_least) >= at_least
    if not whole:
        raise _other_rows(source)
    codes = np.array(cells, np.int64)
    columns: dict[Any, Any] = design._columns_of(codes)
    frame = _native.made(columns | {design.name: np.array(counts, np.int64)}, library)
    if at_least is None:
        return NoisyTable(frame, design, mechanisms, label)
    return NoisyGroups(frame, design, mechanisms[()], label, cells=codes, at_least=at_least)


def _facts(
    path: Path, text: bytes
) -> tuple[Design, dict[tuple[int, ...], GeometricMechanism], str | None, int | None]:
    """Return the design, the mechanisms, the label and the threshold of a description."""
    description = _parsed(path, text)
    facts = description["geomdp"]
    try:
        design = Design(
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
        labels = list(design.levels)
        mechanisms = {
            tuple(labels.index(label) for label in each["sums_over"]): _of_rate(design, each)
            for each in facts["mechanisms"]
        }
        stated = facts["epsilon"], facts["sensitivity"]
        digests = [each["plan_sha256"] for each in facts["mechanisms"]]
        version, label = facts["version"], facts["label"]
        at_least = facts.get("at_least")
        if at_least is not None:
            at_least = parameters.at_least("at_least", at_least, 1)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"{path.name} has a damaged description: {error}") from None
    if list(mechanisms) != list(design._sums()):
        raise ValueError(f"{path.name} has a damaged description: mechanisms of other margins")
    if stated != (str(design._loss(mechanisms)), design.sensitivity):
        raise ValueError(f"{path.name} has a damaged description: another privacy loss")
    for stated_digest, mechanism in zip(digests, mechanisms.values(), strict=True):
        digest = hashlib.sha256(mechanism.certificate(np.int64).to_json().encode()).hexdigest()
        if stated_digest != digest:
            warnings.warn(
                f"{path.name} was released by version {version} with another plan: "
                "intervals are those of this version's plan",
                stacklevel=3,
            )
    return design, mechanisms, label, at_least


def _of_rate(design: Design, facts: Mapping[str, Any]) -> GeometricMechanism:
    bounds = facts["bounds"]
    sensitivity = design._change if design._uneven else design.sensitivity
    epsilon = Fraction(facts["rate"]) * sensitivity
    return GeometricMechanism(epsilon, sensitivity, None if bounds is None else tuple(bounds))


def _parsed(path: Path, text: bytes) -> dict[str, Any]:
    try:
        description = json.loads(text)
        found = description["geomdp"]["format"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path.name} has no description of a release by geomdp") from None
    if found != FORMAT:
        raise ValueError(f"{path.name} has the format {found!r}: this version reads {FORMAT!r}")
    return description  # type: ignore[no-any-return]


def _cells(
    path: Path, design: Design, rows: Sequence[Sequence[Any]], shown: Callable[[Any], Any]
) -> list[int]:
    """Return the cells of rows of levels, as the file shows them; refuse any out of order."""
    places = [
        {shown(level): place for place, level in enumerate(items)}
        for items in design.levels.values()
    ]
    cells: list[int] = []
    for row in rows:
        try:
            found = [known[level] for known, level in zip(places, row, strict=True)]
        except (LookupError, TypeError, ValueError):
            raise _other_rows(path) from None
        cells.append(int(np.ravel_multi_index(found, design.shape)))
        if cells[-2:] != sorted(set(cells[-2:])):
            raise _other_rows(path)
    return cells


def _other_rows(path: Path) -> ValueError:
    return ValueError(f"{path.name} has other rows than its description")


def _decoded(level: Any) -> Any:
    if isinstance(level, dict):
        [(kind, text)] = level.items()
        return {"date": date, "datetime": datetime}[kind].fromisoformat(text)
    return level
