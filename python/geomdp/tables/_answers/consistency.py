"""Consistent tables from noisy counts: not negative, with public totals and matching margins."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground.extras import installed_by
from geomdp.tables._answers import public_totals
from geomdp.tables._facts.exact_sums import all_nodes

if TYPE_CHECKING:
    from geomdp.tables._facts.axes import Axis
    from geomdp.tables._math.products import Block

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]
#: The largest count: sums of millions of them are exact.
GREATEST = 2**40
#: Nearer to an integer than this is that integer.
_NEAR = 1e-6
#: The relative error of a sum of changes.
_ROUNDING = 1e-12
_MOST_STEPS = 200
#: So many cells for each sum are in a linear program at first.
_CELLS_OF_A_SUM = 64
_INFEASIBLE = 2
#: The variance of what was not released, over the greatest: it has nearly no weight.
_LIGHT = 1e3
#: Between variances, for the least squares to be well conditioned.
_FURTHEST = 1e6


def fitted(noisy: Any, known: Mapping[Block, _Ints]) -> _Ints:
    """Return the least squares of a table without negative cells, rounded, at all of its nodes.

    A block is a part: each of its nodes is a sum of cells. What follows from a public one says
    nothing more. Of each three public ones, one has all depths of another; so they form two chains,
    and such tables exist if these agree. Records of inner nodes have no noisy count of their own,
    and nearly no weight.
    """
    with installed_by("geomdp[consistency]"):
        from scipy import sparse  # noqa: F401, PLC0415
    axes, own = noisy.design._axes, noisy.counts.copy()
    if max(int(own.max()), -int(own.min())) > GREATEST:
        raise OverflowError("noisy counts reach beyond 2**40: give smaller ones")
    variances = np.array(noisy._workload.noise_by_release) / noisy._workload.noise_by_release[-1]
    if variances.max() > _FURTHEST * variances.min():
        raise ValueError("variances are not accepted: give at most 10^6 times the least")
    spread, leaf = np.full(own.shape, _LIGHT * variances.max()), np.ones((1,) * own.ndim, np.bool_)
    for place, axis in enumerate(axes):
        at, tree = (slice(None),) * place, axis.tree
        if tree.loose:
            rest = noisy.counts[(*at, slice(tree.roots, None))]
            np.subtract.at(own, (*at, tree.parents[tree.roots :]), rest)
        leaf = leaf & (tree.children == 0).reshape(
            [-1 if p == place else 1 for p in range(own.ndim)]
        )
    parts = []
    for (block, _, _, table), each in zip(noisy._tables, variances, strict=True):
        index = axes.block(tuple(d - axis.rooted[1] for d, axis in zip(block, axes, strict=True)))
        single = leaf[index]
        counts = table.reshape(single.shape)
        spread[index] = np.where(single, each, spread[index])
        if not single.all() and not any(
            public_totals.sums(axes, x, known[x], block)[1].all()
            for x in known
            if all(map(operator.le, block, x))
        ):
            parts.append((_inside(axes, block)[~single.reshape(-1)], counts[~single], each))
    for block, counts in known.items():
        if not any(
            x != block
            and all(map(operator.le, block, x))
            and public_totals.sums(axes, x, known[x], block)[1].all()
            for x in known
        ):
            parts.append((_inside(axes, block), counts.reshape(-1), 0.0))
    cells = np.ix_(*(axis.tree.cells for axis in axes))
    if parts:
        found = near(own[cells].reshape(-1), spread[cells].reshape(-1), parts)
    else:
        found = np.maximum(own[cells].reshape(-1), 0)
    return all_nodes(noisy.design, (np.arange(found.size), found))


def _inside(axes: Sequence[Axis], block: Block) -> Any:
    """Return the matrix that takes the cells to the nodes of a block of rooted trees."""
    from scipy import sparse  # noqa: PLC0415

    found = sparse.eye_array(1)
    for axis, depth in zip(axes, block, strict=True):
        level, nodes = axis.rooted[0].level(depth), axis.tree.cells + axis.rooted[1]
        while (deep := axis.rooted[0].depths[nodes] > depth).any():
            nodes = np.where(deep, axis.rooted[0].parents[nodes], nodes)
        at = np.flatnonzero(nodes >= level.start)
        shape = level.stop - level.start, nodes.size
        found = sparse.kron(
            found, sparse.csr_array((np.ones(at.size), (nodes[at] - level.start, at)), shape), "csr"
        )
    return found


def near(cells: _Ints, spread: _Floats, parts: Sequence[tuple[Any, _Ints, float]]) -> _Ints:
    """Return the least squares without negative cells, rounded.

    The spread is the variance of each cell. A part is a matrix, what it makes of the cells, and the
    variance of these: 0 if they are public.
    """
    from scipy import sparse  # noqa: PLC0415

    matrix = sparse.vstack([sums for sums, *_ in parts]).tocsr()
    gaps = np.concatenate([counts for _, counts, _ in parts]) - matrix @ cells
    ratios = np.concatenate([np.full(counts.size, ratio) for _, counts, ratio in parts])
    changes = _fit(cells, spread, matrix, gaps, ratios)
    # The total of the fit is rounded too, or public.
    total, others = np.nan, []
    for sums, counts, ratio in parts:
        whole = sums.nnz == cells.size
        if whole and not ratio:
            total = counts.sum() - cells.sum()
        others.append(np.full(counts.size, counts.size > 1 or not whole))
    some = np.concatenate(others)
    limited = sparse.vstack([np.ones((1, cells.size)), matrix[some]]).tocsr()
    exact = np.append(total, np.where(ratios > 0, np.nan, gaps)[some])
    return cells + _rounded(changes, limited, exact, sum(ratio > 0 for *_, ratio in parts))


def _fit(cells: _Ints, spread: _Floats, matrix: Any, gaps: _Ints, ratios: _Floats) -> _Floats:
    """Return the changes of the cells with the least squares, where no cell becomes negative.

    The squares are those of ``changes`` and of ``matrix @ changes - gaps``; the second are divided
    by the ratios of their variances to that of the cells, and a ratio of 0 closes a gap exactly.
    The first are divided by the spread. This is Newton's method for the dual problem, whose
    unknowns are one force per gap. The changes are ``-spread * (matrix.T @ forces)``, but at least
    ``-cells``; the gradient is 0 at the solution, and linear for a given set of positive cells. All
    numbers are of the size of the noise, however large the counts are.
    """
    from scipy.optimize import brentq  # noqa: PLC0415
    from scipy.sparse import diags_array  # noqa: PLC0415
    from scipy.sparse.linalg import spsolve  # noqa: PLC0415

    def at(forces: _Floats) -> tuple[_Floats, _Floats]:
        changes = np.maximum(-spread * (matrix.T @ forces), -cells)
        return changes, matrix @ changes - gaps - ratios * forces

    forces, largest = np.zeros(len(gaps)), spread.max()
    changes, gradient = at(forces)
    for _ in range(_MOST_STEPS):
        size = np.abs(changes).sum() + np.abs(gaps).max() + largest * np.abs(forces).max()
        if np.abs(gradient).max() <= _ROUNDING * size:
            return changes
        places = np.flatnonzero(changes > -cells)
        positive = matrix[:, places]
        # A gap to be closed exactly needs the small summand while it has no positive cell.
        small = diags_array(np.where(ratios, ratios, 1e-9))
        hessian = positive.multiply(spread[places]) @ positive.T + small
        step = spsolve(hessian.tocsc(), gradient)

        def slope(part: float, forces: _Floats = forces, step: _Floats = step) -> float:
            return float(at(forces + part * step)[1] @ step)

        # The small summand may make a step very long, of which a tiny part is right.
        exact = {"xtol": 1e-20, "maxiter": 1000}
        forces = forces + (1 if slope(1) >= 0 else brentq(slope, 0, 1, **exact)) * step
        changes, gradient = at(forces)
    raise RuntimeError(f"the least squares did not converge in {_MOST_STEPS} steps")


def _rounded(changes: _Floats, matrix: Any, exact: _Floats, margins: int) -> _Ints:
    """Return the changes, rounded up or down so that their sums by the matrix are rounded too.

    Sums are the exact ones, where these are numbers; the first is that of all changes. A vertex of
    the linear program is integral if the margins form two chains, since the matrix is totally
    unimodular then. Otherwise its integral cells are kept, and other sums with no more cells left
    than there are noisy margins are given up. Without public margins there always is such a sum or
    an integral cell: otherwise there would be more cells than sums, which no vertex has. Beside
    public margins, the sums with the fewest cells are given up if there is none; the public ones
    alone have integral vertices.
    """
    low, high = _between(changes)
    result = low.astype(np.int64)
    left = np.flatnonzero(low < high)
    below, above = (np.where(np.isnan(exact), sums, exact) for sums in _between(matrix @ changes))
    kept = ~np.isnan(exact)
    kept[0] = True
    rows = np.arange(len(below))
    while left.size:
        part, taken = matrix[rows][:, left], (matrix @ result)[rows]
        costs = 1 - 2 * (changes - low)[left]
        found = _vertex(costs, part.tocsc(), below[rows] - taken, (above - below)[rows])
        result[left[found > 1 - _NEAR]] += 1
        between = (found >= _NEAR) & (found <= 1 - _NEAR)
        cells = part @ between
        stay = (cells > margins) | kept[rows]
        if stay.all() and between.all():
            stay = (cells > cells[~kept[rows]].min()) | kept[rows]
        rows, left = rows[stay], left[between]
    return result


def _vertex(costs: _Floats, matrix: Any, least: _Floats, widths: _Floats) -> _Floats:
    """Return the vertex of least cost, for cells from 0 to 1 and sums from the least one on.

    The margins move few cells away from the end that their costs prefer, and these have costs near
    0. So only such cells are in the linear program at first, the others are at that end. The prices
    of the sums then say which others would lower the cost if they moved; they join the program.
    When there are none, the vertex is that of the whole program.
    """
    from scipy.optimize import linprog  # noqa: PLC0415
    from scipy.sparse import eye_array, hstack  # noqa: PLC0415

    sums, found = len(least), (costs < 0).astype(np.float64)
    upper, ranks = found > 0, np.argsort(np.argsort(np.abs(costs), kind="stable"))
    moving = ranks < (most := _CELLS_OF_A_SUM * sums)
    while True:
        cells = np.flatnonzero(moving)
        program: dict[str, Any] = {
            "c": np.concatenate([costs[cells], np.zeros(sums)]),
            "A_eq": hstack([matrix[:, cells], -eye_array(sums)]),
            "b_eq": least - matrix[:, ~moving] @ found[~moving],
            "bounds": np.stack([np.zeros(cells.size + sums), [*np.ones(cells.size), *widths]], 1),
        }
        solution = linprog(**program, method="highs-ipm")
        # The interior point moves to a vertex at the end. Fractions raise a doubt that it did.
        if solution.success and (np.abs(solution.x - np.rint(solution.x)) > _NEAR).any():
            solution = linprog(**program, method="highs-ds")
        if solution.status == _INFEASIBLE and not moving.all():
            moving |= ranks < (most := 2 * most)
            continue
        if not solution.success:
            raise RuntimeError(f"the linear program was not solved: {solution.message}")
        found[cells] = solution.x[: cells.size]
        reduced = costs - matrix.T @ solution.eqlin.marginals
        wrong = ~moving & (np.where(upper, reduced, -reduced) > _ROUNDING)
        if not wrong.any():
            return found
        moving |= wrong


def _between(values: _Floats) -> tuple[_Floats, _Floats]:
    """Return the integers below and above."""
    nearest = np.rint(values)
    near = np.abs(values - nearest) < _NEAR
    return np.where(near, nearest, np.floor(values)), np.where(near, nearest, np.ceil(values))
