"""Functions of numbers, for arrays of them: one value for each distinct combination."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomdp._ground.parameters import Check
from geomdp._inputs import arrays, labels


def each(function: Callable[..., int | float], *given: tuple[str, Any, Check], floats: bool) -> Any:
    """Return a function of numbers, or of arrays, which are broadcast.

    It is evaluated once for each distinct combination. `floats` says whether it returns floats.
    """
    names, values, checks = zip(*given, strict=True)
    bare, labelled = labels.detach(**dict(zip(names, values, strict=True)))
    items = list(zip(names, bare, checks, strict=True))
    if not any(isinstance(value, np.ndarray | list | tuple) for value in bare):
        return function(*(check(name, value) for name, value, check in items))
    columns = arrays.broadcast(*((name, arrays.exact_items(name, *rest)) for name, *rest in items))
    rows = list(zip(*(array.reshape(-1).tolist() for array in columns), strict=True))
    found = {row: function(*row) for row in set(rows)}
    results = [found[row] for row in rows]
    array = np.array(results, dtype=np.float64) if floats else arrays.int64_or_ints(results)
    return labelled(array.reshape(columns[0].shape))
