"""Noise from a known key, for tests. No output of this module is private.

Anyone who knows the key can subtract the noise. No parameter, state or environment variable makes
the mechanism's own ``release`` use a known key.
"""

from __future__ import annotations

from typing import Any

from geomdp._ground import parameters
from geomdp._ground.uncopied import public
from geomdp._inputs import arrays
from geomdp._inputs.arrays import Array
from geomdp._kernel import core
from geomdp.mechanism import GeometricMechanism, as_mechanism, core_of

__all__ = ["release_not_private"]

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

    ``mechanism.release`` would add the same noise if the operating system returned `key`. It is the
    same on every machine.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism to sample from.
    counts, out, threads
        As in :meth:`geomdp.GeometricMechanism.release`. The result does not depend on the number of
        threads.
    key : bytes
        The 32 bytes to expand into the tape.

    Returns
    -------
    array
        The dtype and shape are those of the counts; an int gives an array without dimensions.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, testing
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 100))
    >>> testing.release_not_private(mechanism, [12, 7, 90], key=bytes(32))
    array([14,  1, 90])

    """
    own = core_of(as_mechanism(mechanism))
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"key is not accepted: give {KEY_BYTES} bytes")
    thread_limit = parameters.threads(threads)

    def noise(source: Array, target: Array) -> None:
        core.release_not_private(own, key, source, target, thread_limit)

    return arrays.release(counts, out, noise)


public(__name__)
