"""Exact counts of spans of steps, from the counts that a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomdp._inputs import arrays
from geomdp.tables._facts.exact_sums import saturated
from geomdp.tables._release.table import Table
from geomdp.tables.streams._nodes import Counts, Span


def spans_sums(
    counts: Any, spans: Sequence[Span], *, of_spans: bool, cells: tuple[int, ...] | None
) -> Counts:
    """Return the exact counts of spans that end with the same step, the shortest first."""
    if of_spans:
        rows = [_array(each)[np.newaxis] for each in counts]
    else:
        whole, steps = _array(counts), spans[0][1]
        if whole.ndim == 0 or len(whole) != steps:
            raise ValueError(
                f"counts_so_far of shape {whole.shape} is not accepted: give a row for each step, "
                f"{steps} in all"
            )
        rows = [whole[start:] for start, _ in spans]
    wanted = rows[0].shape[1:] if cells is None else cells
    for each in rows:
        if each.shape[1:] != wanted:
            raise ValueError(
                f"counts_so_far with steps of shape {each.shape[1:]} is not accepted: all steps "
                f"have shape {wanted}"
            )
    return np.stack([summed(each) for each in rows])


def _array(counts: Any) -> arrays.Array:
    if not isinstance(counts, Table):
        return arrays.as_array(counts, name="counts_so_far")
    design = counts.design
    one = design.individual is None and design.neighbours == "add-remove"
    one = one and design.values is None
    # Not the sensitivity: a table of a single step has few cells to change.
    whole = design.tables is None and len(design.blocks) == 1
    if not one or not whole or design.l0 * design.linf > 1:
        raise ValueError(
            "counts_so_far of this design are not accepted: give a Table of a design without an "
            "individual, margins, tables and changes, whose l0 and linf are 1: bound contributions "
            "once, and before the first release"
        )
    return counts._nodes()


def summed(rows: arrays.Array) -> Counts:
    """Return the sum of the rows, or the limit of int64 that it is beyond."""
    return saturated(rows, lambda part: np.asarray(part.sum(axis=0, dtype=np.int64)))
