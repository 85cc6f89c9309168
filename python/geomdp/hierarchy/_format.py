"""The file of a released tree (``docs/format.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    columns = dict(zip(labels, map(list, zip(*noisy._rows(), strict=True)), strict=True))
    parents = noisy.hierarchy.parents
    columns[PARENT] = [parents[node] for node in columns[noise.label]]
    columns[noisy.design.name] = noisy._noisy.reshape(-1).tolist()

    def described() -> dict[str, Any]:
        # With None, as in the column of parents.
        kind = of_table.type_of(noise.label, [None, *noisy.hierarchy.nodes])
        if kind not in KINDS:
            raise ValueError(f"nodes of type {kind} cannot be saved: give all str or all int")
        fields = {
            label: kind if label == noise.label else of_table.type_of(label, items)
            for label, items in noisy.design.levels.items()
        }
        mechanisms = [
            {"depth": depth} | of_table.mechanism_facts(each, certificate)
            for depth, each in enumerate(noisy.mechanisms)
        ]
        form = {"format": of_table.TREE, "tree": noise.label}
        return of_table.resource(noisy, fields | {PARENT: kind}, labels, form, mechanisms)

    of_table.write(path, columns, described, overwrite=overwrite)
