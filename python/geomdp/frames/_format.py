"""A released table as a file: noisy counts, and all that a reader needs (``docs/format.md``)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import geomdp
from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp._new_file import place

if TYPE_CHECKING:
    from geomdp.frames._released import Released
    from geomdp.mechanism import GeometricMechanism

FORMAT = "geomdp-release-1"
GROUPS = "geomdp-groups-1"
#: That of a tree: :mod:`geomdp.hierarchy`.
TREE = "geomdp-hierarchy-1"
#: The key of the description in a Parquet file.
KEY = b"geomdp"
#: Frictionless' names of types.
_TYPES = {str: "string", int: "integer", bool: "boolean", float: "number"}


def save(noisy: Released, path: Any, *, overwrite: bool = False, certificate: bool = False) -> None:
    """Write a noisy table; :meth:`NoisyTable.save` has the details."""
    parameters.check_bool("certificate", certificate)
    columns = {label: each.listed() for label, each in noisy._columns().items()}
    columns[noisy.design.name] = noisy._counts.reshape(-1).tolist()
    write(path, columns, lambda: described(noisy, certificate=certificate), overwrite=overwrite)


def write(
    path: Any,
    columns: Mapping[str, list[Any]],
    describe: Callable[[], dict[str, Any]],
    *,
    overwrite: bool,
) -> None:
    """Write columns, of which the last has noisy counts, and their description."""
    parameters.check_bool("overwrite", overwrite)
    target = Path(path)
    name = "".join(x if x.isalnum() and x.isascii() else "-" for x in target.stem).lower()
    description = {"name": name, "path": target.name, **describe()}
    text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if target.suffix == ".csv":
        files = {beside(target): text.encode(), target: _csv(columns).encode()}
    elif target.suffix == ".parquet":
        files = {target: _parquet(columns, text.encode())}
    else:
        raise ValueError(
            parameters.refusal("path", str(target), "a name that ends in .csv or .parquet")
        )
    _write(files, overwrite=overwrite)


def described(noisy: Released, *, certificate: bool) -> dict[str, Any]:
    """Return the description: a resource of Frictionless, and the facts of the release."""
    design = noisy.design
    if noisy.epsilon == math.inf:
        raise ValueError("a table without noise cannot be saved: release it with an epsilon")
    fields = {label: type_of(label, items) for label, items in design.levels.items()}
    mechanisms = [
        {"sums_over": [list(design.levels)[place] for place in sums]}
        | mechanism_facts(mechanism, certificate)
        for sums, mechanism in noisy._mechanisms.items()
    ]
    return resource(noisy, fields, list(fields), noisy._form, mechanisms)


def resource(
    noisy: Any,
    fields: Mapping[Any, str],
    key: list[Any],
    form: Mapping[str, Any],
    mechanisms: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return a description: the types of the columns before the counts, their key, and facts."""
    design = noisy.design
    for label in fields:
        if not isinstance(label, str):
            raise ValueError(f"column {label!r} cannot be saved: give columns names that are str")
    counts = {
        "name": design.name,
        "type": "integer",
        "description": "noisy count; it may be negative",
    }
    return {
        "profile": "tabular-data-resource",
        "encoding": "utf-8",
        "schema": {
            "fields": [*({"name": label, "type": kind} for label, kind in fields.items()), counts],
            "primaryKey": key,
            "missingValues": [""],
        },
        "geomdp": {
            **form,
            "version": geomdp.__version__,
            "label": noisy.label,
            "epsilon": str(noisy.epsilon),
            "delta": "0",
            "neighbours": design.neighbours,
            "individual": design.individual,
            "l0": design.l0,
            "linf": design.linf,
            "sensitivity": design.sensitivity,
            "levels": {label: [*map(_encoded, items)] for label, items in design._base.items()},
            "other": {label: _encoded(item) for label, item in design._others.items()},
            "margins": {
                label: {"label": _encoded(item), "share": str(design._shares[label])}
                for label, item in design._margins.items()
            },
            "mechanisms": mechanisms,
        },
    }


def mechanism_facts(mechanism: GeometricMechanism, certificate: bool) -> dict[str, Any]:
    """Return what a file says about a mechanism."""
    text = mechanism.certificate(np.int64).to_json()
    facts = {
        "rate": str(mechanism.rate),
        "bounds": None if mechanism.bounds is None else list(mechanism.bounds),
        "plan_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    return facts | ({"certificate": json.loads(text)} if certificate else {})


def beside(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _csv(columns: Mapping[str, list[Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(map(cell, row) for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def _parquet(columns: Mapping[str, list[Any]], text: bytes) -> bytes:
    with installed_by("geomdp[parquet]"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    *levels, (name, counts) = columns.items()
    # Made anew: metadata of the frame may hold anything.
    table = pa.table({**dict(levels), name: np.array(counts, np.int64)})
    buffer = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({KEY: text}), buffer)
    return buffer.getvalue()


def cell(level: Any) -> str:
    if level is None:
        return ""
    if isinstance(level, bool):
        return str(level).lower()
    return level.isoformat() if isinstance(level, date) else str(level)


def type_of(label: str, levels: list[Any]) -> str:
    """Return Frictionless' name of the type of levels."""
    found = {type(level) for level in levels if level is not None}
    if found == {date}:
        return "date"
    if found == {datetime} and all(level.tzinfo is None for level in levels if level):
        return "datetime"
    if found == {int, float}:
        return "number"
    if len(found) > 1 or not found <= _TYPES.keys():
        names = sorted(kind.__name__ for kind in found)
        raise ValueError(
            f"levels of {label!r} of types {names} cannot be saved: give str, int, float, bool, "
            "or dates or times without a zone, and one type a column"
        )
    if found == {str} and None in levels and "" in levels:
        raise ValueError(f"levels of {label!r} cannot be saved: None and '' look alike in CSV")
    return _TYPES[found.pop()] if found else "string"


def _encoded(level: Any) -> Any:
    """Return a level as JSON keeps it; dates, times and floats beyond JSON as text by type."""
    if isinstance(level, datetime):
        return {"datetime": level.isoformat()}
    if isinstance(level, date):
        return {"date": level.isoformat()}
    return level


def _write(files: Mapping[Path, bytes], *, overwrite: bool) -> None:
    """Write all files or none: each appears whole, and none replaces another unless told."""
    parts: dict[Path, Path] = {}
    made: list[Path] = []
    try:
        for target, content in files.items():
            part = target.with_name(f".geomdp-{os.urandom(8).hex()}.part")
            with part.open("xb") as file:
                parts[target] = part
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for target, part in parts.items():
            if overwrite:
                os.replace(part, target)
            else:
                place(str(part), str(target))
                made.append(target)
    except BaseException:
        for target in made:
            target.unlink()
        raise
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
