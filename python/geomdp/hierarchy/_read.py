"""The reader of a released tree (``docs/format.md``)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from geomdp.frames._format import TREE
from geomdp.frames._read import (
    check_columns,
    check_rows,
    compare_plans,
    counts_of,
    damage,
    design_of,
    opened,
)
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
    description, header, rows = opened(source, TREE)
    facts = description["geomdp"]
    with damage(source):
        design = design_of(description)
        kinds = {each["name"]: KINDS.get(each["type"]) for each in description["schema"]["fields"]}
        kind = kinds[facts["tree"]]
        check_columns(source, header, [*design.levels, PARENT, design.name])
        step = design.cells // len(design.levels[facts["tree"]])
        place = header.index(facts["tree"])
        if kind is None:
            raise ValueError("nodes of another type")
        nodes = [kind(row[place]) for row in rows[::step]]
        above = [row[-2] for row in rows[::step]]
        hierarchy = Hierarchy(nodes, [None if x in ("", None) else kind(x) for x in above])
        sensitivity = design.sensitivity
        mechanisms = [
            GeometricMechanism(Fraction(each["rate"]) * sensitivity, sensitivity)
            for each in facts["mechanisms"]
        ]
        noise = Noise(hierarchy, hierarchy._column(design)[0], mechanisms)
        stated = facts["epsilon"], facts["sensitivity"], len(mechanisms)
        counts = counts_of(source, rows).reshape(len(nodes), step)
        sizes = np.abs(counts.astype(np.float64))
        if max(sizes.max(), sizes[hierarchy._tree.leaves].sum(axis=0).max()) > 1.01 * LIMIT:
            raise ValueError("counts beyond those of a release")
        found = NoisyHierarchy(noise, counts, facts["label"])
    if stated != (str(noise.loss), sensitivity, hierarchy.depth + 1):
        raise ValueError(f"{source.name} has a damaged description: another privacy loss")
    parents = hierarchy.parents
    wanted = [(*row, parents[row[place]]) for row in found._rows()]
    check_rows(source, (row[:-1] for row in rows), wanted)
    compare_plans(source, facts, mechanisms)
    return found
