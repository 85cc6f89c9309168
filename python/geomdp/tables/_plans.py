"""The accuracy of chosen tables before any data, and parts of epsilon that serve all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp._inputs import parameters
from geomdp._inputs.parameters import Real
from geomdp.tables import _estimates, _selection
from geomdp.tables._analysis import products
from geomdp.tables._analysis.products import Block, Errors
from geomdp.tables._analysis.workload import UndeterminedError, Workload

if TYPE_CHECKING:
    from geomdp.mechanism import GeometricMechanism
    from geomdp.tables._layout import Layout

#: The parts are multiples of this, and steps towards them get smaller.
_LEAST, _STEPS = Fraction(1, 1000), (2.0, 1.3, 1.08, 1.02)
#: The most kinds of nodes of a block that are looked at.
_MOST_KINDS = 32


def accuracy(
    design: Layout,
    mechanisms: Mapping[Block, GeometricMechanism],
    kept: Collection[str],
    alpha: Real,
) -> int:
    """Return the accuracy of the worst estimate of a total of each group of some columns."""
    axes = design._axes
    workload = _estimates.workload_of(axes, mechanisms)
    level = parameters.significance("alpha", alpha) - workload.lost
    if level <= 0:
        raise ValueError(parameters.refusal("alpha", alpha, f"more than {float(workload.lost):g}"))
    nodes = [axis.tree.leaves + axis.rooted[1] if axis.label in kept else None for axis in axes]
    places = [place for place, axis in enumerate(axes) if axis.label in kept]
    asked = _estimates.rooted_sum(axes, _selection.sum_of(axes, places))
    many, kinds = products.kinds([workload], [nodes])
    try:
        if not workload.one_by_one(many):
            return math.ceil(float(workload.bounds(asked, nodes, float(level)).max()))
        found = [workload.joint([asked], at).reach((1.0,), float(level)) for _, [at] in kinds]
        return math.ceil(max(found))
    except UndeterminedError as error:
        raise ValueError(_estimates.undetermined(axes, error)) from None


def parts(design: Layout, epsilon: Real) -> dict[Any, Fraction]:
    """Return parts of epsilon for the tables with about the least sum of variances of all rows."""
    assert design.tables is not None
    keys = list(design.tables)
    found = [1.0 / len(keys)] * len(keys)

    def tried(values: list[float]) -> tuple[float, dict[Any, Fraction]]:
        whole = sum(values)
        given = {
            key: max(_LEAST, Fraction(round(each / whole * 1000), 1000))
            for key, each in zip(keys, values, strict=True)
        }
        arguments = design._arguments() | {"tables": given}
        return _variance(type(design)(**arguments), epsilon), given

    least, best = tried(found)
    for step in _STEPS:
        better = True
        while better:
            better = False
            for place in range(len(keys)):
                for factor in (step, 1 / step):
                    moved = [x * factor if at == place else x for at, x in enumerate(found)]
                    value, given = tried(moved)
                    if value < least * (1 - 1e-9):
                        least, best, found, better = value, given, moved, True
    return best


def _variance(design: Layout, epsilon: Real) -> float:
    """Return the sum of the variances of the estimates of all rows."""
    axes, mechanisms = design._axes, design.mechanisms_for(epsilon)
    workload = _estimates.workload_of(axes, mechanisms)
    return sum(
        many * float(errors.variances[0])
        for block in design.blocks
        for many, errors in _kinds(workload, design, block)
    )


def _kinds(workload: Workload, design: Layout, block: Block) -> Iterator[tuple[float, Errors]]:
    """Yield how many cells of a block have errors of each kind, of the first kinds."""
    axes = design._axes
    nodes = [
        np.arange(axis.tree.size)[at] + axis.rooted[1]
        for axis, at in zip(axes, axes.block(block), strict=True)
    ]
    asked: list[Any] = [None] * len(axes)
    many, kinds = products.kinds([workload], [nodes])
    for _, (index, [at]) in zip(range(_MOST_KINDS), kinds, strict=False):
        size = math.prod(each.size for each in index)
        yield size * max(1.0, many / _MOST_KINDS), workload.joint([asked], at)
