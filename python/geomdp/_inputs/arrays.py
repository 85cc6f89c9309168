"""Conversion of counts of any layout to contiguous native arrays and back."""

from array import array as typed
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import is_integer

Array: TypeAlias = NDArray[np.integer[Any]]
#: Writes noisy counts from one contiguous array to another: (counts, out). If it fails, what it has
#: written is 0.
Noise: TypeAlias = Callable[[Array, Array], None]

#: Every dtype of counts by its name. Other names for them derive from these.
DTYPES = {
    name: np.dtype(name)
    for name in (f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
}
#: The same by their names in Rust and OpenDP, such as "i32".
RUST_DTYPES = {
    name.replace("uint", "u").replace("int", "i"): dtype for name, dtype in DTYPES.items()
}
_INT64 = np.iinfo(np.int64)
_HINT = (
    "give integers: an int, a numpy integer, a sequence of ints, or an array of an integer dtype, "
    "such as counts.astype(np.int64)"
)
#: The most dimensions of a numpy array.
_DEEPEST = 64


def code(dtype: np.dtype[Any]) -> str:
    """Return kind and size of a dtype, such as "i8". Reading its name takes longer than a draw."""
    return dtype.str[1:]


#: numpy's characters for them; C has several types of one size.
_INTEGERS = frozenset(np.typecodes["AllInteger"])


def integer_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the integer dtype that a parameter of this name stands for."""
    try:
        resolved: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        raise TypeError(parameters.refusal("dtype", dtype, "an integer dtype")) from None
    if resolved.kind not in "iu":
        raise TypeError(f"dtype = {resolved} is not accepted: give an integer dtype")
    return resolved


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest integer of a dtype."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def ready(array: NDArray[Any]) -> bool:
    """Return whether the core accepts an array unchanged."""
    flags, dtype = array.flags, array.dtype
    plain = flags.c_contiguous and flags.aligned and dtype.byteorder in "=|"
    # The buffer protocol treats arrays without dimensions or items differently.
    return bool(plain and array.ndim and array.size and dtype.char in _INTEGERS)


def as_array(counts: Any, dtype: np.dtype[Any] = _INT64.dtype, name: str = "counts") -> Array:
    """Return counts as an integer array; ints and sequences of ints get the given dtype.

    Messages call them by this name.
    """
    if isinstance(counts, np.ndarray):
        refuse_masked(name, counts)
        if counts.dtype.kind not in "iu":
            raise TypeError(f"{name} of dtype {counts.dtype} are not accepted: {_HINT}")
        return _unsubclassed(counts)
    if isinstance(counts, np.integer) and is_integer(counts):
        return np.asarray(counts)
    if is_integer(counts):
        return np.asarray(as_int(counts, np.iinfo(dtype), name), dtype=dtype)
    if isinstance(counts, Sequence) and not isinstance(
        counts, str | bytes | bytearray | memoryview
    ):
        if set(map(type, counts)) == {int}:
            try:
                # Unlike older versions of numpy, this refuses negative ints for unsigned dtypes.
                return np.asarray(typed(dtype.char, counts))
            except OverflowError:
                raise beyond(name, np.iinfo(dtype)) from None
        items = _objects(name, counts)
        flat, limits = items.ravel().tolist(), np.iinfo(dtype)
        # Checking one item of each type, then the extremes, is faster than checking every item.
        for item in {type(item): item for item in flat}.values():
            as_int(item, limits, name)
        for item in (min(flat), max(flat)) if flat else ():
            as_int(item, limits, name)
        return np.array(flat, dtype=dtype).reshape(items.shape)
    line = parameters.conversion(name, counts)
    wanted = f"give {line}, of integers" if line else _HINT
    raise TypeError(f"{name} of type {type(counts).__name__} are not accepted: {wanted}")


def dtype_for(bounds: tuple[int, int] | None) -> np.dtype[Any]:
    """Return the dtype of Python's ints: int64, or uint64 if the bounds need it."""
    return np.dtype(np.uint64 if bounds is not None and bounds[1] >= 2**63 else np.int64)


def release(counts: Any, out: Any, noise: Noise) -> Array:
    """Return the noisy counts in a new array of the same dtype and shape, or in `out`."""
    if out is None and type(counts) is np.ndarray and ready(counts):
        # Fast path for the common case: the checks below take longer than a draw.
        result: Any = np.empty(counts.shape, counts.dtype)
        noise(counts, result)
        return result  # type: ignore[no-any-return]
    return _release(as_array(counts), out, noise)


def _release(counts: Array, out: Any, noise: Noise) -> Array:
    if out is not None:
        _check_out(counts, out)
    flat = _flat(counts)
    if flat is not None:
        if out is None:
            result = np.empty_like(counts, subok=False)
            noise(flat, _must(_flat(result)))
            return result
        target = _flat(out) if counts.flags.c_contiguous == out.flags.c_contiguous else None
        # Identical items may be shared, since each is read before it is written.
        if target is not None and (
            out is counts or not np.may_share_memory(flat, target) or _same(flat, target)
        ):
            noise(flat, target)
            return out  # type: ignore[no-any-return]
    # Other layouts and byte orders need a contiguous copy.
    native = counts.dtype.newbyteorder("=")
    own = np.array(counts, dtype=native, order="C", subok=False).view(native)
    noise(own.reshape(-1), own.reshape(-1))
    if out is not None:
        np.copyto(out, own, casting="equiv")
        return out  # type: ignore[no-any-return]
    if counts.dtype.isnative:
        return own
    return own.byteswap(inplace=True).view(counts.dtype)


def in_one_dimension(counts: Array) -> Array:
    """Return counts of one dimension as an array that the core accepts."""
    if counts.ndim != 1:
        raise ValueError(f"counts of shape {counts.shape} are not accepted: give one dimension")
    if ready(counts):
        return counts
    native = counts.dtype.newbyteorder("=")
    return np.array(counts, dtype=native, order="C", subok=False).view(native)


def of_each(counts: Array, function: Callable[[int], float]) -> NDArray[np.float64]:
    """Return the values of a function of counts, evaluated once for each distinct count."""
    distinct, places = np.unique(counts, return_inverse=True)
    values = np.array([function(count) for count in distinct.tolist()], dtype=np.float64)
    return np.array(values[places]).reshape(counts.shape)


def as_int(item: Any, limits: "np.iinfo[Any]" = _INT64, name: str = "counts") -> int:
    """Return an integer that fits a dtype as an int."""
    if not is_integer(item):
        raise TypeError(f"{name} with a {type(item).__name__} are not accepted: {_HINT}")
    if not fits(item, limits):
        raise beyond(name, limits)
    return int(item)


def fits(item: int, limits: "np.iinfo[Any]" = _INT64) -> bool:
    """Return whether a dtype holds an integer."""
    return bool(limits.min <= item <= limits.max)


def beyond(name: str, limits: "np.iinfo[Any]" = _INT64) -> OverflowError:
    """Return the error for a count that a dtype does not hold, which it does not show."""
    wider = " (an array of uint64 holds more)" if limits.dtype == np.int64 else ""
    return OverflowError(
        f"{name} beyond {limits.dtype} are not accepted: "
        f"give counts from {limits.min} to {limits.max}{wider}"
    )


def exact_items(name: str, values: Any, check: parameters.Check) -> NDArray[np.object_]:
    """Return an array of the exact values of its items."""
    items = _objects(name, values)
    found = np.empty(items.shape, dtype=object)
    found.reshape(-1)[:] = parameters.each(name, items.reshape(-1).tolist(), check)
    return found


def int64_or_ints(values: Sequence[float]) -> NDArray[Any]:
    """Return an int64 array, or one of Python ints if one of them is beyond int64."""
    fit = all(_INT64.min <= value <= _INT64.max for value in values)
    return np.array(values, dtype=np.int64 if fit else object)


def refuse_masked(name: str, array: Any) -> None:
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, which is not accepted: give its data, or fill it"
        )


def _objects(name: str, values: Any) -> NDArray[np.object_]:
    """Return an array of all that numpy finds in a value, unconverted and to be checked."""
    refuse_items(name, values if isinstance(values, Sequence) else [values])
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        found = np.empty(values.shape, dtype=object)
        # As items they keep their type, whose shortest text is the number that they state.
        found.reshape(-1)[:] = list(values.reshape(-1))
        return found
    try:
        return np.array(values, dtype=object)
    except ValueError:
        raise TypeError(f"{name} has items of different shapes: give an array of numbers") from None


def refuse_items(name: str, values: Sequence[Any], depth: int = 1) -> None:
    """Refuse masked arrays and arrays of times inside lists, which conversion would hide."""
    if depth > _DEEPEST:
        raise TypeError(
            f"lists more than {_DEEPEST} deep are not accepted for {name}: give lists of numbers"
        )
    for item in values:
        refuse_masked(name, item)
        if isinstance(item, np.ndarray) and item.dtype.kind in "mM":
            # Numpy converts some of them to ints.
            raise TypeError(f"{name} of dtype {item.dtype} is not accepted: give numbers")
        if isinstance(item, list | tuple):
            refuse_items(name, item, depth + 1)


def _check_out(counts: Array, out: Any) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out has type {type(out).__name__}: give an array")
    refuse_masked("out", out)
    if out.dtype.newbyteorder("=") != counts.dtype.newbyteorder("="):
        raise TypeError(f"out is of dtype {out.dtype}: give one of dtype {counts.dtype}")
    if out.shape != counts.shape:
        raise ValueError(f"out is of shape {out.shape}: give one of shape {counts.shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only: give a writable array")
    if out.size and _may_share_items(out):
        raise ValueError("out has items that share memory: give an array without such items")


def _may_share_items(array: Array) -> bool:
    """Return whether a stride is shorter than the span of the smaller strides."""
    if array.flags.forc:
        return False
    span = array.itemsize
    for step, n in sorted(
        (abs(step), n) for step, n in zip(array.strides, array.shape, strict=True)
    ):
        if n > 1 and step < span:
            return True
        span += step * (n - 1)
    return False


def _flat(array: Array) -> Array | None:
    """Return a contiguous, native, one-dimensional view, or None if that needs a copy."""
    flags, dtype = array.flags, array.dtype
    # Numpy calls every empty array aligned.
    if not (array.size and dtype.isnative and flags.aligned):
        return None
    if dtype.byteorder not in "=|":
        # The order is native, but the buffer protocol takes the explicit mark as foreign.
        array = array.view(dtype.newbyteorder("="))
    array = _unsubclassed(array)
    if flags.c_contiguous:
        return array.reshape(-1)
    return array.T.reshape(-1) if flags.f_contiguous else None


def _unsubclassed(array: Array) -> Array:
    """Return the array, or a plain view of a subclass such as np.matrix."""
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def _must(array: Array | None) -> Array:
    assert array is not None
    return array


def _same(one: Array, other: Array) -> bool:
    return one.ctypes.data == other.ctypes.data


def broadcast(*named: tuple[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the arrays, broadcast against each other."""
    try:
        return list(np.broadcast_arrays(*(array for _, array in named)))
    except ValueError:
        shapes = " and ".join(f"{name} of shape {array.shape}" for name, array in named)
        raise ValueError(f"{shapes} are not accepted: give shapes that broadcast") from None


def weights(name: str, values: Any) -> NDArray[np.float64]:
    """Return finite nonnegative numbers as a new array of floats."""
    refuse_masked(name, values)
    if not isinstance(values, np.ndarray):
        values = _objects(name, values)
    if values.dtype == object:
        # Checking one value of each type is faster than checking every value.
        kinds = {type(value): value for value in values.ravel().tolist()}
        parameters.each(name, kinds.values())
        if any(issubclass(kind, str | Decimal) for kind in kinds):
            values = exact_items(name, values, parameters.nonnegative_fraction)
    elif values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        raise TypeError(f"{name} of dtype {values.dtype} is not accepted: give ints or floats")
    try:
        floats = np.array(values, dtype=np.float64)
    except OverflowError:
        raise OverflowError(f"{name} beyond float64 is not accepted: give less") from None
    if not ((floats >= 0) & (floats < np.inf)).all():
        raise ValueError(parameters.of_item(name, "a finite number, not negative"))
    return floats
