"""Counts of every kind that numpy knows, brought to contiguous native arrays and back."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.integer[Any]]
#: Writes noise for the items of one contiguous array to another: (counts, out, interruptible).
Noise: TypeAlias = Callable[[Array, Array, bool], None]

_HINT = (
    "give integers: an int, a numpy integer, an array of an integer dtype, or a sequence of ints"
)


def as_array(counts: Any) -> Array:
    """Return counts as an integer array; ints and sequences of ints become int64.

    Raises
    ------
    TypeError
        If they are not integers.
    OverflowError
        If an int is beyond int64.

    """
    if isinstance(counts, np.ndarray):
        _refuse_masked("counts", counts)
        if counts.dtype.kind not in "iu":
            raise TypeError(f"counts of dtype {counts.dtype} are not accepted: {_HINT}")
        # Other subclasses, such as np.matrix, would change what indexing means.
        return counts.view(np.ndarray)
    if isinstance(counts, np.integer):
        return np.asarray(counts)
    if isinstance(counts, int) and not isinstance(counts, bool):
        return np.asarray(_int64([counts])[0])
    if isinstance(counts, Sequence) and not isinstance(
        counts, str | bytes | bytearray | memoryview
    ):
        items = np.array(counts, dtype=object)
        return np.array(_int64(items.ravel().tolist()), dtype=np.int64).reshape(items.shape)
    raise TypeError(f"counts of type {type(counts).__name__} are not accepted: {_HINT}")


def release(counts: Array, out: Any, noise: Noise) -> Array:
    """Return the noisy counts in a new array of the same dtype and shape, or in `out`.

    `out` is written only when nothing can go wrong any more, or by a call that cannot be
    interrupted.

    Raises
    ------
    TypeError
        If `out` is not an array of the dtype of the counts.
    ValueError
        If `out` is of another shape, read-only, or has items that share memory.

    """
    if out is not None:
        _check_out(counts, out)
    flat = _flat(counts)
    if flat is not None:
        if out is None:
            result = np.empty_like(counts, subok=False)
            noise(flat, _must(_flat(result)), True)
            return result
        target = _flat(out) if counts.flags.c_contiguous == out.flags.c_contiguous else None
        if target is not None and (_same(flat, target) or not np.may_share_memory(flat, target)):
            noise(flat, target, False)
            return out  # type: ignore[no-any-return]
    # Any other layout or byte order goes through a contiguous copy of our own.
    own = np.array(counts, dtype=counts.dtype.newbyteorder("="), order="C", subok=False)
    noise(own.reshape(-1), own.reshape(-1), True)
    if out is not None:
        np.copyto(out, own, casting="equiv")
        return out  # type: ignore[no-any-return]
    if counts.dtype.isnative:
        return own
    return own.byteswap(inplace=True).view(counts.dtype)


def _int64(items: list[Any]) -> list[int]:
    limits = np.iinfo(np.int64)
    for item in items:
        if not isinstance(item, int | np.integer) or isinstance(item, bool):
            raise TypeError(f"counts with a {type(item).__name__} are not accepted: {_HINT}")
        if not limits.min <= item <= limits.max:
            raise OverflowError(f"counts beyond int64 ({item}): give an array of dtype uint64")
    return items


def _refuse_masked(name: str, array: Any) -> None:
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, which is not accepted: noise its data, or fill it"
        )


def _check_out(counts: Array, out: Any) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}: give an array")
    _refuse_masked("out", out)
    if out.dtype.newbyteorder("=") != counts.dtype.newbyteorder("="):
        raise TypeError(f"out is of dtype {out.dtype}: give one of dtype {counts.dtype}")
    if out.shape != counts.shape:
        raise ValueError(f"out is of shape {out.shape}: give one of shape {counts.shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only: give an array that can be written")
    if any(step == 0 and n > 1 for step, n in zip(out.strides, out.shape, strict=True)):
        raise ValueError("out is broadcast, so that items share memory: give an array of its own")


def _flat(array: Array) -> Array | None:
    """Return a contiguous, native, one-dimensional view, or None if there is none."""
    if array.dtype.isnative and array.flags.aligned:
        if array.flags.c_contiguous:
            return array.reshape(-1).view(np.ndarray)
        if array.flags.f_contiguous:
            return array.T.reshape(-1).view(np.ndarray)
    return None


def _must(array: Array | None) -> Array:
    assert array is not None
    return array


def _same(one: Array, other: Array) -> bool:
    return one.ctypes.data == other.ctypes.data
