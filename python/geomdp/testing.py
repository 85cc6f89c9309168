"""Noise from a known key, for tests. Nothing that comes from here is private.

Whoever knows the key can take the noise off again. The mechanism's own ``release`` has no
parameter, state or environment variable by which it could be made to use a known key.
"""

from typing import Any

from geomdp import _core
from geomdp._release import arrays, parameters
from geomdp._release.arrays import Array
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.specification import checked

KEY_BYTES = 32


def release_not_private(
    mechanism: GeometricMechanism,
    counts: Any,
    key: bytes,
    *,
    out: Any = None,
    threads: int | None = None,
) -> arrays.Array:
    """Return counts with reproducible noise, which is **not private**.

    The noise is what ``mechanism.release`` would add if the operating system had given `key`; it is
    the same on every machine.

    Parameters
    ----------
    mechanism : GeometricMechanism
        Whose law is sampled.
    counts, out, threads
        As in ``mechanism.release``, but the result is always an array. It does not depend on the
        number of threads.
    key : bytes
        The 32 bytes to expand into the tape.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As ``mechanism.release`` does; ValueError also if the key is not 32 bytes.

    """
    checked(mechanism)
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"key is not accepted: give {KEY_BYTES} bytes")
    most = parameters.threads(threads)

    def noise(source: Array, target: Array, dtype: str, _interruptible: bool) -> None:
        _core.release_not_private(mechanism._core, key, source, target, dtype, most)

    return arrays.release(counts, out, noise)
