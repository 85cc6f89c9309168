"""A release as a file: noisy counts, and all that a reader needs (``docs/format.md``)."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import geomdp
from geomdp._inputs import parameters
from geomdp.tables import _page, _published
from geomdp.tables._fields import FIELDS, FORMAT, stated
from geomdp.tables._formats import Column
from geomdp.tables._native import Coded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from geomdp.mechanism import GeometricMechanism
    from geomdp.tables._axes import Axes, Axis


class Said(NamedTuple):
    """What a file says about a release beside its rows."""

    #: The object "geomdp" of the description.
    facts: Mapping[str, Any]
    #: Returns the answers of a page.
    answers: Callable[[], Mapping[str, Any]]
    #: How many rows the release has.
    rows: int


def facts_of(release: Any, certificate: bool) -> dict[str, Any]:
    """Return the facts of a :class:`Released`: each field of ``_fields``."""
    parameters.check_bool("certificate", certificate)
    if release.epsilon == math.inf:
        raise ValueError("a table without noise cannot be saved: release it with an epsilon")
    design = release.design
    found = {
        "format": FORMAT,
        "version": geomdp.__version__,
        "id": release.id,
        "corrects": list(release.corrects),
        "label": release.label,
        "epsilon": str(release.epsilon),
        "part_of": None if release.part_of is None else str(release.part_of),
        "delta": "0",
        **stated(design),
        "sensitivity": design.sensitivity,
        "at_least": release.at_least,
        "top": release._named,
        "axes": {axis.label: _axis(axis) for axis in design.axes},
        "mechanisms": [
            {"depths": list(block), **facts(each, certificate)}
            for block, each in release.mechanisms.items()
        ],
    }
    return {name: found.pop(name) for name in FIELDS}


def save(
    path: Any,
    columns: Mapping[str, Coded | NDArray[np.int64]],
    said: Said,
    *,
    overwrite: bool,
) -> None:
    """Write the columns of a release, and on a page its answers.

    :meth:`Released.save` has the details.
    """
    *_, counts = columns.values()
    page = partial(_paged, said, counts)
    _published.write(path, _kept(columns), said.facts, page=page, overwrite=overwrite)


def rehearse(name: str, path: Any, axes: Axes, counts: str, said: Said) -> None:
    """Refuse what :func:`save` would refuse, whatever the counts, whose column has this name.

    A row for each level of the longest column has all that a file may hold.
    """
    rows = np.arange(max(axes.shape))
    columns: dict[str, Coded | NDArray[np.int64]] = {
        axis.label: Coded(axis.shown_nodes, rows % axis.tree.size) for axis in axes
    }
    columns[counts] = np.zeros_like(rows)
    page = partial(_paged, said, columns[counts])
    _published.rehearse(name, path, _kept(columns), said.facts, page)


def _kept(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {
        label: Column(*each) if isinstance(each, Coded) else each for label, each in columns.items()
    }


def _paged(said: Said, counts: Any, rows: bytes, description: bytes) -> bytes:
    """Return a page of the bytes of a CSV file and of its description."""
    if said.rows > _page.MOST_ROWS:
        raise ValueError(
            f"a page of {said.rows} rows is not accepted: at most {_page.MOST_ROWS}; save CSV"
        )
    found = said.answers()
    kinds = (found[kind] or [] for kind in ("ends", "together"))
    _page.check([counts, *itertools.chain(*itertools.chain(*kinds))])
    return _page.page(rows, description, found)


def _axis(axis: Axis) -> dict[str, Any]:
    """Return the facts of a column: its levels, and labels of other rows, or its tree."""
    shares = [str(share) for share in axis.shares]
    if axis.hierarchy is not None:
        return {
            "nodes": [_encoded(node) for node in axis.nodes],
            "parents": axis.tree.parents.tolist(),
            "leaves_only": not axis.tree.loose,
            "other": [_encoded(label) for label in axis.other],
            "shares": shares,
        }
    return {
        "levels": [_encoded(level) for level in axis.given],
        "other": [_encoded(label) for label in axis.other],
        "margin": [_encoded(label) for label in axis.nodes[: axis.margin]],
        "shares": shares,
    }


def _encoded(level: Any) -> Any:
    """Return a level as JSON keeps it; dates and times as text by type."""
    if isinstance(level, datetime):
        return {"datetime": level.isoformat()}
    return {"date": level.isoformat()} if isinstance(level, date) else level


def plan(noise: GeometricMechanism) -> tuple[str, str]:
    """Return the certificate of a noise as JSON, and its digest."""
    text = noise.certificate(np.int64).to_json()
    return text, hashlib.sha256(text.encode()).hexdigest()


def facts(noise: GeometricMechanism, certificate: bool) -> dict[str, Any]:
    """Return the facts of a noise for a file, with its certificate or without."""
    text, digest = plan(noise)
    found = {
        "rate": str(noise.rate),
        "bounds": None if noise.bounds is None else list(noise.bounds),
        "plan_sha256": digest,
    }
    return found | ({"certificate": json.loads(text)} if certificate else {})
