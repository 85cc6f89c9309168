"""Labels of numbers: the index and name of a column, the keys of a mapping."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._inputs import columns
from geomdp._inputs.columns import is_column


@dataclass(frozen=True, slots=True)
class Labels:
    """Call it to give a result the labels of the values that it comes from."""

    #: The keys of a mapping, or the index of a column; None for a column without an index.
    keys: list[Any] | None = None
    put_on: Callable[[Any], Any] | None = None
    length: int = 0

    def __call__(self, result: Any) -> Any:
        if self.put_on is None or np.shape(result) != (self.length,):
            return result
        return self.put_on(result)


def is_mapping_or_index(values: Any) -> bool:
    """Return whether these are labelled values other than columns: a mapping, or an Index."""
    return isinstance(values, Mapping) or hasattr(values, "to_flat_index")


def detach(**named: Any) -> tuple[list[Any], Labels]:
    """Return the values of parameters without their labels, and these labels.

    Mappings become lists; columns of pandas (also an Index), Polars and PyArrow become arrays.
    Other values stay as they are. Frames, nulls and labels that differ are refused.
    """
    bare, found = [], dict[str, Labels]()
    for name, value in named.items():
        if isinstance(value, Mapping):
            items = list(value.values())
            for kind in set(map(type, items)):
                if hasattr(kind, "__len__") and not issubclass(kind, str):
                    raise TypeError(
                        f"{name} of type {type(value).__name__} with a {kind.__name__} is not "
                        "accepted: give a mapping of numbers, or one array"
                    )
            bare.append(items)
            found[name] = _of_mapping(list(value))
        elif isinstance(value, np.ndarray) or not is_column(value):
            bare.append(value)
        else:
            array, found[name] = _of_column(name, value)
            bare.append(array)
    first = next(iter(found), "")
    for name, labels in found.items():
        if labels.keys != found[first].keys:
            raise ValueError(f"{first} and {name} have different labels: give both the same")
    return bare, found.get(first, Labels())


def _of_mapping(keys: list[Any]) -> Labels:
    return Labels(keys, lambda result: dict(zip(keys, result.tolist(), strict=True)), len(keys))


def _of_column(name: str, column: Any) -> tuple[Any, Labels]:
    nw = columns.narwhals()
    of_index = hasattr(column, "to_flat_index")
    native = column.to_series() if of_index else column
    if columns.arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        native = pa.chunked_array([column])
    series = columns.as_narwhals(name, native, "an array or a column", series_only=True)
    if series.is_null().any():
        raise ValueError(f"{name} contains nulls: fill or drop them")
    array = series.to_numpy()
    if series.dtype.is_integer():
        # Pandas has arrays of objects for its own types.
        array = array.astype(str(series.dtype).lower(), copy=False)
    index = None if of_index else nw.maybe_get_index(series)

    def put_on(result: Any) -> Any:
        if of_index:
            import pandas as pd  # noqa: PLC0415

            return pd.Index(result, name=column.name)
        new = nw.new_series(series.name, result, backend=series.implementation).to_native()
        return new if index is None else new.set_axis(columns.own(index))

    return array, Labels(None if index is None else list(index), put_on, len(array))
