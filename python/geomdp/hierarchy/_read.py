"""The reader of a released tree (``docs/format.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from geomdp._published import damage, fraction
from geomdp.frames._format import TREE
from geomdp.frames._read import check_rows, compare_plans, design_of, opened
from geomdp.hierarchy._format import KINDS, PARENT
from geomdp.hierarchy._noisy import LIMIT, Noise, NoisyHierarchy
from geomdp.hierarchy._tree import Hierarchy
from geomdp.mechanism import GeometricMechanism


def read(path: Any) -> NoisyHierarchy:
    """Return the released tree in a file that :meth:`NoisyHierarchy.save` wrote.

    A reader needs the file alone, with the ``.csv.json`` beside a CSV file: no data and no secret.

    Parameters
    ----------
    path : path
        Ends in ``.csv`` or ``.parquet``.

    Returns
    -------
    NoisyHierarchy
        With the estimates and intervals that the publisher sees.

    Raises
    ------
    ValueError
        As for :func:`geomdp.read`.

    Examples
    --------
    >>> import tempfile
    >>> from geomdp import hierarchy
    >>> noisy = hierarchy.Hierarchy({"a": "all", "b": "all"}).release([3, 5], epsilon=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     noisy.save(f"{folder}/all.parquet")
    ...     read = hierarchy.read(f"{folder}/all.parquet")
    >>> read == noisy, read.epsilon
    (True, Fraction(1, 1))

    """
    source = Path(path)
    contents = opened(source, TREE)
    facts, counts = contents.facts, contents.counts
    with damage(source):
        design = design_of(contents)
        if contents.names != [*design.levels, PARENT, design.name]:
            raise ValueError("it has other columns than its description")
        kind = KINDS[facts["nodes"]]
        column = contents.columns[contents.names.index(facts["tree"])]
        step = design.cells // len(design.levels[facts["tree"]])
        above = contents.columns[-2]
        nodes = [*map(kind, column.items)]
        first = [above[row] for row in range(0, len(above), step)]
        hierarchy = Hierarchy(nodes, [None if x in ("", None) else kind(x) for x in first])
        sensitivity = design.sensitivity
        mechanisms = [
            GeometricMechanism(fraction(each["rate"]) * sensitivity, sensitivity)
            for each in facts["mechanisms"]
        ]
        noise = Noise(hierarchy, hierarchy._column(design)[0], mechanisms)
        counts = counts.reshape(len(nodes), step)
        sizes = np.abs(counts.astype(np.float64))
        if max(sizes.max(), sizes[hierarchy._tree.leaves].sum(axis=0).max()) > 1.01 * LIMIT:
            raise ValueError("counts beyond those of a release")
        found = NoisyHierarchy(noise, counts, facts["label"])
        stated = facts["epsilon"], facts["sensitivity"], len(mechanisms)
        if stated != (str(noise.loss), sensitivity, hierarchy.depth + 1):
            raise ValueError("it states another privacy loss")
        # Nodes from the root down, the last column fastest.
        nodes = hierarchy.nodes
        levels: dict[str, Any] = {facts["tree"]: nodes, **noise.others}
        shape = [*map(len, levels.values())]
        order = np.unravel_index(np.arange(counts.size), shape)
        place = {node: at for at, node in enumerate([None, *nodes])}
        parents = hierarchy.parents
        of_parents = np.repeat([place[parents[node]] for node in nodes], step)
        levels[PARENT] = [None, *nodes]
        check_rows(contents, levels, [*order, of_parents])
    compare_plans(source, facts, mechanisms)
    return found
