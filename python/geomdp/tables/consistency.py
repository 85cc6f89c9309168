"""Consistent tables from noisy counts: not negative, with a given total and matching margins.

:func:`consistent` fits a table to noisy counts by least squares, weighted by the variances of the
noise and without negative cells, and then rounds it so that margins stay within 1 of the fit. It
uses the released counts alone, so it costs no privacy (``docs/proofs.md``, theorem 7). It draws no
randomness. ``docs/consistency.md`` shows the bias of the result. This module needs the extra
``consistency``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._extras import installed_by
from geomdp._inputs import arrays, labels, parameters
from geomdp._inputs.parameters import Integer, Real
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._analysis import trees

__all__ = ["consistent"]

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]
#: The axes that a margin keeps.
Axes: TypeAlias = int | tuple[int, ...]

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
#: Between variances, for the least squares to be well conditioned.
_FURTHEST = 1e6


def consistent(
    cells: Any,
    *,
    total: Integer | None = None,
    margins: Mapping[Any, Any] | None = None,
    variances: Mapping[Any, Real | GeometricMechanism] | None = None,
    parents: Mapping[Any, Any] | None = None,
) -> Any:
    """Return a table of counts from the best fit to noisy cells and noisy margins.

    The fit is the table ``x >= 0`` with the least ``sum((x - cells)**2) / variance`` plus the same
    sum for each margin. Each cell is then rounded up or down so that the total and each margin of
    the result are those of the fit, rounded up or down. Of all such tables, the result is the
    nearest to the fit. Another table of integers may be nearer to the noisy counts: for the cells 5
    and 2 of variance 5 and the total 8 of variance 3, say. Only with `parents` it is the nearest.

    Such tables exist if the margins form at most two chains, where each margin keeps all axes of
    the next: rows and columns, or ``(0, 1)``, ``0`` and ``2``. With other margins there may be
    none; then a margin of the result differs from that of the fit by less than 1 plus the number of
    margins given, while the total is still that of the fit, rounded up or down.

    Memory is about 700 bytes a cell. A table of 1000 rows and columns with both margins takes about
    ten seconds.

    Parameters
    ----------
    cells : array of ints, column, mapping, frame or NoisyTable
        Noisy counts of a table with any number of axes; columns and mappings have one. A table has
        one for each column of levels, without its margins, and so has a frame whose last column has
        the counts; a pivot of pandas has two. :meth:`geomdp.tables.NoisyTable.consistent` takes the
        released margins and their variances from the table.
    total : int, optional
        A public total, which the result has exactly. A noisy total is the margin ``()``.
    margins : mapping, optional
        Noisy sums of the table, by the axis or the tuple of axes that they keep: ``{0: rows, 1:
        columns, (): total}``.
    variances : mapping, optional
        The variance of the noise of each margin, and of ``"cells"``: a positive number, or the
        mechanism that made them. No variance is more than 10^6 times another. Equal if none are
        given.
    parents : mapping, optional
        A public tree of any depth over cells with one axis: the parent of each cell, by its label
        or its number, and of each inner node. Those without one belong to ``()``, the sum of all
        cells. Margins are then noisy sums at inner nodes, by their names. The result is not a
        rounded fit, but the closest table of integers that are not negative. A tree of 10^6 cells
        takes seconds.

    Returns
    -------
    int64 array
        Of the shape of the cells, or with their labels. Its margins are its sums. If several tables
        are equally near to the fit, the choice depends on the order of rows and columns, and on
        the version of scipy (``docs/consistency.md``).

    Raises
    ------
    OverflowError
        If a count is beyond ``2**40``.
    RuntimeError
        If the numerics do not converge.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables.consistency import consistent
    >>> fine, coarse = GeometricMechanism(1.0), GeometricMechanism(0.1)
    >>> consistent(
    ...     [[8, 1, -3], [4, 0, 2]],
    ...     margins={0: [30, -15]},
    ...     variances={"cells": fine, 0: coarse},
    ... )
    array([[8, 1, 0],
           [4, 0, 2]])

    >>> consistent(
    ...     {"Bern": 8, "Basel": -2, "Oslo": 5},
    ...     parents={"Bern": "Switzerland", "Basel": "Switzerland", "Oslo": "Norway"},
    ...     margins={"Switzerland": 9, "Norway": 8},
    ... )
    {'Bern': 8, 'Basel': 0, 'Oslo': 6}

    """
    [cells], labelled = labels.detach(cells=cells)
    table = _counts("cells", cells)
    if not table.size:
        raise ValueError(f"cells of shape {table.shape} are not accepted: give at least one")
    given = {} if margins is None else _mapping("margins", margins)
    spread = _variances(variances, given)
    if total is not None:
        total = parameters.at_least("total", total, 0)
    if parents is not None:
        keys = labelled.keys or list(range(len(table)))
        above = _mapping("parents", parents)
        return labelled(_on_tree(table, keys, above, given, spread, total=total))
    kept = {key: _axes(key, table.ndim) for key in given}
    parts = []
    for key, values in given.items():
        [bare], _ = labels.detach(**{f"margins[{key!r}]": values})
        margin = _counts(f"margins[{key!r}]", bare)
        shape = tuple(table.shape[axis] for axis in kept[key])
        if margin.shape != shape:
            raise ValueError(f"margins[{key!r}] is of shape {margin.shape}: give shape {shape}")
        parts.append((kept[key], margin, spread[key] / spread["cells"]))
    if total is not None:
        parts.append(((), _counts("total", total), 0.0))
    return labelled(_rounded_fit(table, parts))


def keeping(
    cells: Any,
    margins: Mapping[Any, Any],
    variances: Mapping[Any, Real | GeometricMechanism],
    public: Mapping[Any, _Ints],
) -> _Ints:
    """Return the consistent table with public margins, by the tuples of axes that they keep."""
    spread = _variances(variances, margins)
    noisy = [
        (axes, _counts(f"margins[{axes}]", counts), spread[axes] / spread["cells"])
        for axes, counts in margins.items()
    ]
    known = [(axes, counts, 0.0) for axes, counts in public.items()]
    return _rounded_fit(_counts("cells", cells), noisy + known)


def _rounded_fit(cells: _Ints, margins: Sequence[tuple[tuple[int, ...], _Ints, float]]) -> _Ints:
    """Return the least squares without negative cells, rounded.

    A margin is the axes that it keeps, its counts, and their variance over that of the cells. That
    of a public one is 0: the result has it exactly. Of each three public margins, one keeps all
    axes of another; so the public ones form two chains, and such tables exist if these agree.
    """
    with installed_by("geomdp[consistency]"):
        from scipy import sparse  # noqa: PLC0415

    def sums(axes: tuple[int, ...]) -> Any:
        """Return the matrix that takes the cells to a margin."""
        shape = [cells.shape[axis] for axis in axes]
        places = np.indices(cells.shape)[list(axes)].reshape(len(axes), cells.size)
        rows = np.ravel_multi_index(tuple(places), shape) if axes else np.zeros(cells.size, int)
        entries = np.ones(cells.size), (rows, np.arange(cells.size))
        return sparse.csr_array(entries, (math.prod(shape), cells.size))

    if not margins:
        return np.maximum(cells, 0)
    public = [(axes, counts) for axes, counts, ratio in margins if not ratio]
    # What follows from a public margin says nothing more.
    margins = [
        (axes, counts, ratio)
        for axes, counts, ratio in margins
        if not any({*axes} < {*most} or (ratio and {*axes} == {*most}) for most, _ in public)
    ]
    parts = [(sums(axes), counts.ravel(), ratio) for axes, counts, ratio in margins]
    return near(cells.ravel(), np.ones(cells.size), parts).reshape(cells.shape)


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


def _on_tree(
    cells: _Ints,
    keys: list[Any],
    parents: dict[Any, Any],
    margins: dict[Any, Any],
    spread: dict[Any, float],
    *,
    total: int | None,
) -> _Ints:
    """Return the closest cells of a tree."""
    if cells.ndim != 1:
        raise ValueError(f"cells of shape {cells.shape} have no parents: give one axis")
    # The cells come first.
    places = {node: place for place, node in enumerate(dict.fromkeys([*keys, *parents.values()]))}
    root = places.setdefault((), len(places))
    for name, nodes in ("parents", parents), ("margins", margins):
        for node in nodes:
            if node not in places or (
                node == () if name == "parents" else places[node] < len(keys)
            ):
                wanted = "a cell or an inner node" if name == "parents" else "an inner node, or ()"
                raise ValueError(f"{name} of {parameters.shown(node)} are not accepted: {wanted}")
    if len(set(keys)) < len(keys) or not set(keys).isdisjoint(parents.values()):
        raise ValueError("cells are not accepted: give each its own label, which no parent has")
    parent = np.array([places[parents.get(node, ())] for node in places])
    values, weights = np.zeros(len(places), np.int64), np.zeros(len(places))
    parent[root] = -1
    values[: len(keys)], weights[: len(keys)] = cells, 1.0
    for node, value in margins.items():
        count = _counts(f"margins[{node!r}]", value)
        if count.shape:
            raise ValueError(f"margins[{node!r}] is of shape {count.shape}: give one count")
        values[places[node]], weights[places[node]] = count, spread["cells"] / spread[node]
    if total is not None:
        values[root], weights[root] = _counts("total", total), np.inf
    return trees.closest(parent, values, weights)[: len(keys)]


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


def _counts(name: str, values: Any) -> _Ints:
    counts = arrays.as_array(values)
    if counts.size and max(int(counts.max()), -int(counts.min())) > GREATEST:
        # Released, and so public.
        raise OverflowError(f"{name} reaches beyond 2**40: give smaller counts")
    return counts.astype(np.int64)


def _mapping(name: str, value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(parameters.foreign(name, value, "a mapping"))
    return dict(value)


def _axes(key: Any, dimensions: int) -> tuple[int, ...]:
    """Return the axes that a margin keeps."""
    axes = key if isinstance(key, tuple) else (key,)
    known = all(parameters.is_integer(axis) and 0 <= axis < dimensions for axis in axes)
    if not known or len(set(axes)) < len(axes) or len(axes) == dimensions:
        raise ValueError(
            f"margins of {parameters.shown(key)} are not accepted: give fewer axes than "
            f"{dimensions}, each from 0 to {dimensions - 1} and once"
        )
    return axes


def _variances(variances: Any, margins: Mapping[Any, Any]) -> dict[Any, float]:
    keys = ["cells", *margins]
    if variances is None:
        return dict.fromkeys(keys, 1.0)
    given = _mapping("variances", variances)
    if set(given) != set(keys):
        raise ValueError(f"variances of {list(given)} are not accepted: give those of {keys}")
    found = {key: _variance(f"variances[{key!r}]", value) for key, value in given.items()}
    if max(found.values()) > _FURTHEST * min(found.values()):
        raise ValueError(f"variances = {found} are not accepted: give at most 10^6 times the least")
    return found


def _variance(name: str, value: Any) -> float:
    """Return a variance; that of a mechanism is without its bounds."""
    if isinstance(value, GeometricMechanism):
        rate = float(value.rate)
        value = 2 * math.exp(-rate) / math.expm1(-rate) / math.expm1(-rate)
    return float(parameters.positive_number(name, value))
