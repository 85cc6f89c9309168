"""A release as a file: noisy counts, and all that a reader needs (``docs/format.md``)."""

from __future__ import annotations

import itertools
import math
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import geomdp
from geomdp import _page, _published
from geomdp._inputs import parameters
from geomdp.frames._native import Coded
from geomdp.frames._noise import facts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from geomdp._analysis.products import Block
    from geomdp.frames._axes import Axis
    from geomdp.frames._layout import Layout
    from geomdp.frames._noise import Noise

FORMAT = "geomdp-release-1"


def save(
    path: Any,
    columns: Mapping[str, Coded | NDArray[np.int64]],
    design: Layout,
    mechanisms: Mapping[Block, Noise],
    *,
    epsilon: Fraction | float,
    label: str | None,
    part_of: Fraction | None,
    at_least: int | None,
    top: int | None,
    answers: Callable[[], Mapping[str, Any]],
    overwrite: bool,
    certificate: bool,
) -> None:
    """Write the columns of a release, and on a page its answers.

    :meth:`Released.save` has the details.
    """
    parameters.check_bool("certificate", certificate)
    if epsilon == math.inf:
        raise ValueError("a table without noise cannot be saved: release it with an epsilon")
    said = {
        "format": FORMAT,
        "version": geomdp.__version__,
        "label": label,
        "epsilon": str(epsilon),
        "part_of": None if part_of is None else str(part_of),
        "delta": "0",
        "neighbours": design.neighbours,
        "individual": design.individual,
        "l0": design.l0,
        "linf": design.linf,
        "l1": design.l1,
        "sensitivity": design.sensitivity,
        "at_least": at_least,
        "name": design.name,
        "top": top,
        "axes": {axis.label: _axis(axis) for axis in design.axes},
        "mechanisms": [
            {"depths": list(block), **facts(each, certificate)}
            for block, each in mechanisms.items()
        ],
    }
    kept: dict[str, Any] = {
        label: _published.Column(*each) if isinstance(each, Coded) else each
        for label, each in columns.items()
    }

    def page(rows: bytes, description: bytes) -> bytes:
        *_, counts = columns.values()
        if (size := len(counts)) > _page.MOST_ROWS:
            raise ValueError(
                f"a page of {size} rows is not accepted: at most {_page.MOST_ROWS}; save CSV"
            )
        found = answers()
        _page.check([counts, *itertools.chain(*found["ends"] or [])])
        return _page.page(rows, description, found)

    _published.write(path, kept, said, page=page, overwrite=overwrite)


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
