"""The accuracy of chosen tables before any data, and parts of epsilon that serve all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import Real
from geomdp.tables._answers import estimates, selection
from geomdp.tables._facts import chosen
from geomdp.tables._math import products
from geomdp.tables._math.products import Block, Errors
from geomdp.tables._math.workload import LEAST, UndeterminedError, Workload

if TYPE_CHECKING:
    from geomdp.tables._facts.axes import Axis
    from geomdp.tables._facts.layout import Layout

#: The parts are multiples of this, and steps towards them get smaller.
_LEAST, _STEPS = Fraction(1, 1000), (2.0, 1.3, 1.08, 1.02)
#: The most kinds of nodes of a block that are looked at.
_MOST_KINDS = 32


def accuracy(
    design: Layout,
    workload: Workload,
    of: Any,
    alpha: Real,
) -> int:
    """Return the accuracy of the worst estimate of a total of each group of some columns."""
    axes = design._axes
    asked_of = tuple(of) if isinstance(of, list) else of
    kept = dict(chosen.key_of("of has", asked_of, design.levels))
    level = parameters.significance("alpha", alpha) - workload.lost
    if level <= 0:
        raise ValueError(parameters.refusal("alpha", alpha, f"more than {float(workload.lost):g}"))
    nodes = [_kept(axis, kept[axis.label]) if axis.label in kept else None for axis in axes]
    places = [place for place, axis in enumerate(axes) if axis.label in kept]
    asked = estimates.rooted_sum(axes, selection.sum_of(axes, selection.Rows(tuple(places))))
    many, kinds = products.kinds([workload], [nodes])
    try:
        if not workload.one_by_one(many):
            return math.ceil(float(workload.bounds(asked, nodes, float(level)).max()))
        found = [workload.joint([asked], at).reach((1.0,), float(level)) for _, [at] in kinds]
        return math.ceil(max(found))
    except UndeterminedError as error:
        raise ValueError(estimates.undetermined(axes, error)) from None


def _kept(axis: Axis, depth: int | None) -> NDArray[np.int64]:
    """Return the leaves of a column, or its nodes of one depth, in its rooted tree."""
    if depth is None:
        return axis.tree.leaves + axis.rooted[1]
    if axis.hierarchy is None or not 0 <= depth < axis.depths:
        raise ValueError(
            f"of has the depth {depth} of {axis.label!r}, which has no such depth: give its name "
            "alone, or a depth of its tree"
        )
    return np.arange(axis.tree.size)[axis.tree.level(depth)]


def parts(design: Layout, epsilon: Real) -> dict[Any, Fraction]:
    """Return parts of epsilon for the tables with about the least sum of variances of all rows."""
    assert design.tables is not None
    keys = list(design.tables)
    found = np.full(len(keys), 1.0 / len(keys))
    total = parameters.positive_fraction("epsilon", epsilon)
    variance = _variances(design, float(total)) or (
        lambda thousandths: _variance(_with(design, keys, thousandths), epsilon)
    )

    def tried(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        given = np.maximum(np.rint(values / values.sum() * 1000), float(_LEAST * 1000))
        if (known := seen.get(given.tobytes())) is None:
            known = seen[given.tobytes()] = variance(given)
        return known, given

    seen: dict[bytes, float] = {}
    least, best = tried(found)
    for step in _STEPS:
        better = True
        while better:
            better = False
            for place in range(len(keys)):
                for factor in (step, 1 / step):
                    moved = found.copy()
                    moved[place] *= factor
                    value, given = tried(moved)
                    if value < least * (1 - 1e-9):
                        least, best, found, better = value, given, moved, True
    return _parts_of(keys, best)


def _parts_of(keys: list[Any], thousandths: NDArray[np.float64]) -> dict[Any, Fraction]:
    """Return parts that are multiples of a thousandth, by table."""
    return {key: Fraction(int(x), 1000) for key, x in zip(keys, thousandths, strict=True)}


def _with(design: Layout, keys: list[Any], thousandths: NDArray[np.float64]) -> Layout:
    """Return a design with these parts."""
    arguments = design._arguments() | {"tables": _parts_of(keys, thousandths)}
    return type(design)(**arguments)


def _variances(design: Layout, epsilon: float) -> Callable[[NDArray[np.float64]], float] | None:
    """Return the sum of the variances of all rows as a function of the parts of the tables.

    Where all axes are even, the variance of a row is the sum over its components of their squared
    lengths, times the squares of the weights of all tables that have them (``docs/proofs.md``,
    section 17), so that nothing but the rates depends on the parts. None for other axes.
    """
    axes, blocks = design._axes, design.blocks
    workload = estimates.workload_of(axes, design.mechanisms_for(1))
    if not workload.even:
        return None
    # How much of the part of a table each block has.
    asked = chosen.keys_of(design.tables, {axis.label: axis.given for axis in axes})
    mixed = np.zeros((len(blocks), len(asked)))
    places = {block: place for place, block in enumerate(blocks)}
    for column, key in enumerate(asked):
        for block, part in chosen.blocks({key: Fraction(1)}, axes, len(blocks)).items():
            mixed[places[block], column] = float(part)
    rooted = [each.block for each in workload.released]
    sizes = np.array([math.prod(workload._shape(block)) for block in rooted], np.float64)
    # The components of all rows: their squared lengths, and the blocks that have them.
    squared: dict[tuple[int, int], dict[int, float]] = {}
    lengths: dict[Block, float] = {}
    for block, size in zip(rooted, sizes.tolist(), strict=True):
        for place, (axis, depth) in enumerate(zip(workload._axes, block, strict=True)):
            if (place, depth) not in squared:
                one = np.zeros((axis.tree.size, 1))
                one[axis.tree.starts[depth]] = 1
                squared[place, depth] = axis.squared(one)
        for part_of in workload._below(block):
            pairs = enumerate(zip(block, part_of, strict=True))
            each = (squared[place, depth][own] for place, (depth, own) in pairs if depth)
            lengths[part_of] = lengths.get(part_of, 0.0) + size * math.prod(each)
    numbers = {each: number for number, each in enumerate(lengths)}
    inside = np.zeros((len(numbers), len(blocks)))
    for column, block in enumerate(rooted):
        inside[[numbers[each] for each in workload._below(block)], column] = 1
    weights = np.array(list(lengths.values()))
    linear = design.neighbours == "add-remove" and all(len(x.cells_by_depth) == 1 for x in axes)
    steepest = float(design._most(dict.fromkeys(blocks, 1))) / len(blocks)

    def value(thousandths: NDArray[np.float64]) -> float:
        parts = mixed @ thousandths
        most = steepest * parts.sum() if linear else 0.0
        most = most or float(design._most(dict(zip(blocks, parts.tolist(), strict=True))))
        rates = np.minimum(epsilon * parts / most, products.MOST)
        scale = products.of_weights(rates.tolist())
        noise = 0.5 / np.sinh(scale * rates / 2) ** 2
        precision = 1 / np.maximum(noise, noise.max() * LEAST) / sizes
        each = precision**2 * sizes * (0.5 / np.sinh(rates / 2) ** 2)
        return float(weights @ ((inside @ each) / (inside @ precision) ** 2))

    return value


def _variance(design: Layout, epsilon: Real) -> float:
    """Return the sum of the variances of the estimates of all rows."""
    axes, mechanisms = design._axes, design.mechanisms_for(epsilon)
    workload = estimates.workload_of(axes, mechanisms)
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
