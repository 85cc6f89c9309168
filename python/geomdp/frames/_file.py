"""A release as a file: noisy counts, and all that a reader needs (``docs/format.md``)."""

from __future__ import annotations

import hashlib
import json
import math
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import geomdp
from geomdp import _published
from geomdp._inputs import parameters

if TYPE_CHECKING:
    from geomdp.frames._axes import Axis
    from geomdp.frames._released import Released
    from geomdp.mechanism import GeometricMechanism

FORMAT = "geomdp-release-1"


def save(noisy: Released, path: Any, *, overwrite: bool = False, certificate: bool = False) -> None:
    """Write a release; :meth:`Released.save` has the details."""
    parameters.check_bool("certificate", certificate)
    if noisy.epsilon == math.inf:
        raise ValueError("a table without noise cannot be saved: release it with an epsilon")
    columns: dict[str, Any] = {
        label: _published.Column(each.items, each.places) for label, each in noisy._levels().items()
    }
    design = noisy.design
    columns[noisy._name] = noisy._rows(noisy.counts)
    facts = {
        "format": FORMAT,
        "version": geomdp.__version__,
        "label": noisy.label,
        "epsilon": str(noisy.epsilon),
        "delta": "0",
        "neighbours": design.neighbours,
        "individual": design.individual,
        "l0": design.l0,
        "linf": design.linf,
        "sensitivity": design.sensitivity,
        "at_least": noisy.at_least,
        "name": design.name,
        "top": noisy._named,
        "axes": {axis.label: _axis(axis) for axis in design.axes},
        "mechanisms": [
            {"depths": list(block), **_mechanism(each, certificate)}
            for block, each in noisy.mechanisms.items()
        ],
    }
    _published.write(path, columns, facts, overwrite=overwrite)


def _axis(axis: Axis) -> dict[str, Any]:
    """Return the facts of a column: its levels, and labels of other rows, or its tree."""
    shares = [str(share) for share in axis.shares]
    if axis.hierarchy is not None:
        nodes = [_encoded(node) for node in axis.nodes]
        return {"nodes": nodes, "parents": axis.tree.parents.tolist(), "shares": shares}
    return {
        "levels": [_encoded(level) for level in axis.given],
        "other": [_encoded(level) for level in axis.levels[len(axis.given) :]],
        "margin": [_encoded(label) for label in axis.nodes[: axis.margin]],
        "shares": shares,
    }


def _mechanism(mechanism: GeometricMechanism, certificate: bool) -> dict[str, Any]:
    text = mechanism.certificate(np.int64).to_json()
    facts = {
        "rate": str(mechanism.rate),
        "bounds": None if mechanism.bounds is None else list(mechanism.bounds),
        "plan_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    return facts | ({"certificate": json.loads(text)} if certificate else {})


def _encoded(level: Any) -> Any:
    """Return a level as JSON keeps it; dates and times as text by type."""
    if isinstance(level, datetime):
        return {"datetime": level.isoformat()}
    return {"date": level.isoformat()} if isinstance(level, date) else level
