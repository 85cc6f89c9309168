"""The types of single values and their accepted names."""

from typing import Any, TypeAlias

import numpy as np

from geomdp._ground import parameters
from geomdp._inputs import arrays

DType: TypeAlias = np.dtype[Any]

#: numpy's concrete types; abstract ones have no dtype.
_CONCRETE = set(np.sctypeDict.values())
_PLAIN = {int: "int64", float: "float64", bool: "bool", str: "str", np.str_: "str"}
_NAMES = (
    {name: dtype.name for name, dtype in arrays.RUST_DTYPES.items()}
    | {name: name for name in (*arrays.DTYPES, "float32", "float64", "bool", "str")}
    | {"f32": "float32", "f64": "float64", "String": "str"}
)
_WANTED = "a numpy dtype, int, float, bool, str, or a name such as 'i32'"


def atom(name: str, T: Any) -> DType:
    """Return the native numpy dtype of a type of integers, floats, bools or strings."""
    known = None
    if isinstance(T, str):
        # np.dtype would read "i8" as 64 bits.
        known = _NAMES.get(T)
    elif isinstance(T, type) and T in _PLAIN:
        known = _PLAIN[T]
    elif isinstance(T, np.dtype) or (isinstance(T, type) and T in _CONCRETE):
        known = "str" if np.dtype(T).kind == "U" else _NAMES.get(np.dtype(T).name)
    if known is None:
        raise TypeError(parameters.refusal(name, T, _WANTED))
    return np.dtype(known)


def integers(name: str, T: Any) -> DType:
    """Return the numpy dtype of an integer type."""
    dtype = atom(name, T)
    if dtype.kind not in "iu":
        raise TypeError(parameters.refusal(name, T, "an integer type, such as 'i32'"))
    return dtype


def spell(dtype: DType) -> str:
    """Return the name of a type; `atom` reads it back."""
    return "str" if dtype.kind == "U" else dtype.name
