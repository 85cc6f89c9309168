"""A released table as a file: noisy counts, and all that a reader needs (``docs/format.md``)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import geomdp
from geomdp import _published
from geomdp._inputs import parameters

if TYPE_CHECKING:
    from geomdp.frames._released import Released
    from geomdp.mechanism import GeometricMechanism

FORMAT = "geomdp-release-1"
GROUPS = "geomdp-groups-1"
#: That of a tree: :mod:`geomdp.hierarchy`.
TREE = "geomdp-hierarchy-1"


def save(noisy: Released, path: Any, *, overwrite: bool = False, certificate: bool = False) -> None:
    """Write a noisy table; :meth:`NoisyTable.save` has the details."""
    parameters.check_bool("certificate", certificate)
    design = noisy.design
    if noisy.epsilon == math.inf:
        raise ValueError("a table without noise cannot be saved: release it with an epsilon")
    mechanisms = [
        {"sums_over": [list(design.levels)[place] for place in sums]}
        | mechanism_facts(mechanism, certificate)
        for sums, mechanism in noisy._mechanisms.items()
    ]
    columns: dict[str, Any] = {
        label: _published.Column(*each) for label, each in noisy._columns().items()
    }
    columns[design.name] = noisy._counts.reshape(-1)
    _published.write(path, columns, facts(noisy, noisy._form, mechanisms), overwrite=overwrite)


def facts(noisy: Any, form: Mapping[str, Any], mechanisms: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a file says about a release."""
    design = noisy.design
    return {
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


def _encoded(level: Any) -> Any:
    """Return a level as JSON keeps it; dates, times and floats beyond JSON as text by type."""
    if isinstance(level, datetime):
        return {"datetime": level.isoformat()}
    if isinstance(level, date):
        return {"date": level.isoformat()}
    return level
