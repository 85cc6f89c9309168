"""Reports of progress: calls of a function, or a bar of tqdm."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by

#: A function of the number of counts done since its last call, or True for a bar of tqdm.
Progress: TypeAlias = bool | Callable[[int], object]
#: What the core calls.
Report: TypeAlias = Callable[[int], object] | None

_Result = TypeVar("_Result")


def reported(progress: Any, counts: Any, times: int, work: Callable[[Report], _Result]) -> _Result:
    """Return the result of work that reports its progress through some counts, once or more."""
    if progress is False:
        return work(None)
    if progress is not True:
        if not callable(progress):
            wanted = "True, False, or a function of a number of counts"
            raise TypeError(parameters.foreign("progress", progress, wanted))
        return work(progress)
    with installed_by("tqdm"):
        bars = import_module("tqdm.auto")
    with bars.tqdm(total=times * np.size(counts), unit=" counts", unit_scale=True) as bar:
        return work(bar.update)
