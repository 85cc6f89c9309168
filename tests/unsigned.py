"""Unsigned counts need bounds, which may be the limits of their dtype."""

from typing import Any

import numpy as np

from geomdp import GeometricMechanism


def limits(dtype: Any) -> tuple[int, int] | None:
    """Return the limits of an unsigned dtype, and None for a signed one."""
    info = np.iinfo(np.dtype(dtype))
    return (0, int(info.max)) if info.min == 0 else None


def accepting(mechanism: GeometricMechanism, dtype: Any) -> GeometricMechanism:
    """Return a mechanism without bounds, or the one that takes its place for an unsigned dtype."""
    assert mechanism.bounds is None
    return GeometricMechanism.from_scale(mechanism.scale, limits(dtype))
