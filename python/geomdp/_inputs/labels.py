"""Labels of numbers: the index of a column, the keys of a mapping, the sides of a table."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from operator import ne
from typing import Any

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.notebook import showable
from geomdp._inputs import columns
from geomdp._inputs.columns import is_column


@showable
@dataclass(frozen=True, slots=True)
class Labels:
    """Call it to give a result the labels of the values that it comes from."""

    #: The keys of a mapping, or the index of a column; None for a column without an index.
    keys: list[Any] | None = None
    put_on: Callable[[Any], Any] | None = None
    length: int = 0
    #: Of a table: the name and the labels of each axis.
    sides: tuple[tuple[Any, list[Any]], ...] = ()

    def __call__(self, result: Any) -> Any:
        shape = tuple(len(side) for _, side in self.sides) or (self.length,)
        if self.put_on is None or np.shape(result) != shape:
            return result
        return self.put_on(result)


def is_mapping_or_index(values: Any) -> bool:
    """Return whether these are labelled values other than columns: a mapping, or an Index."""
    # On the type: a Series of pandas searches its labels for a missing attribute.
    kind: Any = type(values)
    return _labelled(kind)


@lru_cache(maxsize=128)
def _labelled(kind: type) -> bool:
    return issubclass(kind, Mapping) or hasattr(kind, "to_flat_index")


#: The parameters that are noisy counts, and so may be a whole table of them.
_RELEASED = {"noisy", "released", "numerator", "denominator", "cells"}


def is_released_table(value: Any) -> bool:
    """Return whether this is a table such as :class:`geomdp.tables.NoisyTable`, of a room above."""
    return hasattr(type(value), "__noisy_cells__")


def detach(**named: Any) -> tuple[list[Any], Labels]:
    """Return the values of parameters without their labels, and these labels.

    Mappings become lists; columns of pandas (also an Index), Polars and PyArrow become arrays.
    Other values stay as they are. Nulls and labels that differ are refused, and frames too, unless
    they are noisy counts: those of a table, or of a frame, become an array with an axis for each
    column of labels (:func:`_of_frame`).
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
        elif name in _RELEASED and is_released_table(value):
            array, found[name] = _of_released(value)
            bare.append(array)
        elif name in _RELEASED and _is_frame(value):
            array, found[name] = _of_frame(name, value)
            bare.append(array)
        elif isinstance(value, np.ndarray) or not is_column(value):
            bare.append(value)
        else:
            array, found[name] = _of_column(name, value)
            bare.append(array)
    first = next(iter(found), "")
    for name, labels in found.items():
        if _differ(labels, found[first]):
            raise ValueError(f"{first} and {name} have different labels: give both the same")
    return bare, found.get(first, Labels())


def _differ(one: Labels, other: Labels) -> bool:
    sides = [[side for _, side in labels.sides] for labels in (one, other)]
    return one.keys != other.keys or (all(sides) and sides[0] != sides[1])


def _of_mapping(keys: list[Any]) -> Labels:
    return Labels(keys, lambda result: dict(zip(keys, result.tolist(), strict=True)), len(keys))


def _of_column(name: str, column: Any) -> tuple[Any, Labels]:
    nw = columns.narwhals()
    of_index = hasattr(column, "to_flat_index")
    native = column.to_series() if of_index else column
    if columns.arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        native = pa.chunked_array([column])
    wanted = parameters.conversion(name, column) or "an array or a column"
    series = columns.as_narwhals(name, native, wanted, series_only=True)
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


def _of_released(table: Any) -> tuple[Any, Labels]:
    """Return the noisy cells of a table, without its margins."""
    levels, cells = table.__noisy_cells__()
    sides = tuple(levels.items())
    return cells, Labels(sides[0][1] if len(sides) == 1 else None, sides=sides)


def _is_frame(value: Any) -> bool:
    return is_column(value) and (
        hasattr(value, "columns") or columns.arrow(value) in columns.ARROW_FRAMES
    )


def _of_frame(name: str, frame: Any) -> tuple[Any, Labels]:
    """Return the counts of a frame.

    In a pivot of pandas, whose index is named or not of integers, each cell is a count; and so in a
    frame whose rows and columns are numbered. In other frames, such as
    :attr:`geomdp.tables.NoisyTable.frame`, the last column has the counts, and those before it the
    labels. Of several columns of labels each is an axis; the rows are all their combinations.
    """
    if not (known := columns.names(frame)):
        raise ValueError(f"{name} is a frame without columns: give one of counts at least")
    index = getattr(frame, "index", None)
    if index is not None and (not _is_numbered(index) or _is_numbered(frame.columns)):
        each = [
            _of_column(f"{name}[{label!r}]", frame.iloc[:, place])[0]
            for place, label in enumerate(known)
        ]

        def framed(result: Any) -> Any:
            return type(frame)(result, columns.own(index), columns.own(frame.columns))

        sides = tuple((side.name, list(side)) for side in (index, frame.columns))
        return np.stack(each, axis=1), Labels(None, framed, sides=sides)
    if columns.arrow(frame) == "RecordBatch":
        import pyarrow as pa  # noqa: PLC0415

        frame = pa.Table.from_batches([frame])

    def counted(result: Any) -> Any:
        values = np.reshape(result, -1)
        if hasattr(frame, "isetitem"):
            native = frame.copy()
            native.isetitem(len(known) - 1, values)
            return native
        view = columns.as_narwhals(name, frame, columns.FRAME)
        new = columns.narwhals().new_series(known[-1], values, backend=view.implementation)
        return view.with_columns(new).to_native()

    counts, _ = _of_column(name, columns.column(frame, known[-1]))
    items = [_with_none(name, columns.column(frame, label)) for label in known[:-1]]
    if len(items) < 2:
        sides = tuple(zip(known[:-1], items, strict=True))
        return counts, Labels(items[0] if items else None, counted, len(counts), sides)
    sides = tuple((n, list(dict.fromkeys(side))) for n, side in zip(known[:-1], items, strict=True))
    shape = tuple(len(side) for _, side in sides)
    rows = zip(*items, strict=True)
    if math.prod(shape) != len(counts) or any(map(ne, rows, product(*(s for _, s in sides)))):
        raise ValueError(
            f"{name} is a frame whose rows are not all combinations of its first {len(items)} "
            "columns, in order: give columns of labels, then one of counts"
        )
    return counts.reshape(shape), Labels(None, counted, sides=sides)


def _with_none(name: str, column: Any) -> list[Any]:
    """Return the items of a column, with None for nulls of any kind."""
    series = columns.as_narwhals(name, column, "a frame", series_only=True)
    missing = series.is_null().to_list()
    return [None if null else x for x, null in zip(series.to_list(), missing, strict=True)]


def _is_numbered(index: Any) -> bool:
    """Return whether labels of pandas are integers without a name."""
    return index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
