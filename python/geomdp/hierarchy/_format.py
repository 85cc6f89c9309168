"""The file of a released tree (``docs/format.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geomdp import _published
from geomdp._inputs import parameters
from geomdp.frames import _format as of_table

if TYPE_CHECKING:
    from geomdp.hierarchy._noisy import NoisyHierarchy

#: The name of the column of parents.
PARENT = "parent"
#: The types of nodes that a file keeps.
KINDS = {"string": str, "integer": int}


def save(
    noisy: NoisyHierarchy, path: Any, *, overwrite: bool = False, certificate: bool = False
) -> None:
    """Write a released tree; :meth:`NoisyHierarchy.save` has the details."""
    parameters.check_bool("certificate", certificate)
    noise = noisy._noise
    labels = list(noisy.design.levels)
    if PARENT in (*labels, noisy.design.name):
        raise ValueError(f"a design with a column {PARENT!r} cannot be saved: give another name")
    columns: dict[str, Any] = dict(
        zip(labels, map(list, zip(*noisy._rows(), strict=True)), strict=True)
    )
    parents = noisy.hierarchy.parents
    # With None, as in the column of parents.
    kind = _published.type_of([None, *noisy.hierarchy.nodes])
    if kind not in KINDS:
        raise ValueError(f"nodes of type {kind} cannot be saved: give all str or all int")
    columns[PARENT] = [parents[node] for node in columns[noise.label]]
    mechanisms = [
        {"depth": depth} | of_table.mechanism_facts(each, certificate)
        for depth, each in enumerate(noisy.mechanisms)
    ]
    form = {"format": of_table.TREE, "tree": noise.label, "nodes": kind}
    facts = of_table.facts(noisy, form, mechanisms)
    columns[noisy.design.name] = noisy._noisy.reshape(-1)
    _published.write(path, columns, facts, overwrite=overwrite)
