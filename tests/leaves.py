"""Tables of a tree whose exact counts are given, by leaf."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from geomdp.tables import Design, Hierarchy, Table


def of_leaves(tree: Hierarchy, counts: Mapping[Any, int] | Iterable[int], **more: Any) -> Table:
    """Return the table of a tree with a count of each leaf: by name, or in the tree's order."""
    given = counts if isinstance(counts, Mapping) else dict(zip(tree.leaves, counts, strict=True))
    frame = pd.DataFrame({"node": pd.Series(given.keys(), dtype=object), "n": [*given.values()]})
    return Design({"node": tree}, **more).count(frame, counts="n")
