"""Columns of any library, read and made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp._inputs.columns import arrow, as_narwhals, narwhals
from geomdp.frames._levels import type_of

Library = Literal["pandas", "polars", "pyarrow"]
_LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")


class Coded(NamedTuple):
    """A column of a few items: the place of each row's among them."""

    items: list[Any]
    places: NDArray[np.int64]

    def listed(self) -> list[Any]:
        """Return the item of each row."""
        return [self.items[place] for place in self.places.tolist()]


def library_of(column: Any) -> Library:
    """Return the library of narwhals' view of a column; pandas for those that copy it."""
    name = column.implementation.value
    return next((each for each in _LIBRARIES if each == name), "pandas")


def made(columns: Mapping[str, Any], library: Library | None = None) -> Any:
    """Return a frame of a library, or of the first that is installed.

    Columns are arrays, sequences or :class:`Coded`. Everything about the frame follows from their
    values and the library, and none of its memory is that of an older frame.
    """
    if library is None:
        library = next((each for each in _LIBRARIES if find_spec(each)), "pandas")
    if library not in _LIBRARIES:
        raise ValueError(parameters.refusal("library", library, f"one of {_LIBRARIES}"))
    with installed_by(library):
        module = import_module(library)
    series = {name: _series(module, values) for name, values in columns.items()}
    return module.table(series) if library == "pyarrow" else module.DataFrame(series)


def _series(module: Any, values: Any) -> Any:
    """Return a column of a library."""
    if isinstance(values, Coded):
        column = _series(module, values.items)
        if module.__name__ == "polars":
            return column.gather(values.places)
        return column.take(values.places)
    if module.__name__ == "pyarrow":
        return module.array(values)
    if module.__name__ == "polars":
        return module.Series(values, strict=True)
    kinds = set(map(type, values)) if isinstance(values, list) else set()
    # Without a type, pandas makes floats or objects of these.
    nullable = {int: "Int64", bool: "boolean"} if type(None) in kinds else {}
    dtype = next((nullable[kind] for kind in kinds if kind in nullable), None)
    return module.Series(values, dtype=dtype).array


def categories(column: Any) -> Any:
    """Return narwhals' view of a column to count."""
    if arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        column = pa.chunked_array([column])
    wanted = "a column, or a data frame with levels as a mapping of column names"
    series = as_narwhals("data", column, wanted, series_only=True)
    nw, native = narwhals(), series.to_native()
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series
    if arrow(native):
        with refusing_types("data", [native]):
            native = native.cast(native.type.value_type)
        return nw.from_native(native, series_only=True)
    if kind := getattr(native.dtype, "pyarrow_dtype", None):
        # Pandas' type of Arrow's dictionaries.
        with refusing_types("data", [native]):
            native = native.astype(type(native.dtype)(kind.value_type))
        return nw.from_native(native, series_only=True)
    return series


def by_codes(series: Sequence[Any]) -> tuple[list[Any], NDArray[np.int64]] | None:
    """Return a row for each group of equal rows, and the groups' sizes, for pandas' categoricals.

    None for other columns, or if the categories have more combinations than there are rows.
    """
    columns = [each.to_native() for each in series]
    if not all(_is_categorical(each) and hasattr(each, "iloc") for each in columns):
        return None
    shape = [len(each.cat.categories) + 1 for each in columns]
    if math.prod(shape) > len(columns[0]):
        return None
    # Nulls have the code -1.
    cells, *others = (each.cat.codes.to_numpy().astype(np.int64) + 1 for each in columns)
    for codes, size in zip(others, shape[1:], strict=True):
        cells = cells * size + codes
    sizes = np.bincount(cells)
    found, groups = np.flatnonzero(sizes), []
    for each, places in zip(columns, np.unravel_index(found, shape), strict=True):
        groups.append(type(each)(type(each.array).from_codes(places - 1, dtype=each.dtype)))
    return [narwhals().from_native(each, series_only=True) for each in groups], sizes[found]


def codes_of(series: Any) -> Any:
    """Return the codes of pandas' categories, -1 for nulls; other columns as they are."""
    native = series.to_native()
    if not (_is_categorical(native) and hasattr(native, "iloc")):
        return series
    return narwhals().from_native(native.cat.codes, series_only=True)


def check_levels(name: str, series: Any, items: list[Any]) -> None:
    """Refuse levels of a type that items of a column cannot have.

    Nothing but the type decides: a null makes floats of pandas' integers.
    """
    native = series.to_native()
    if _is_categorical(native) and hasattr(native, "iloc"):
        native = native.cat.categories.to_series()
        series = narwhals().from_native(native, series_only=True)
    shown = shown_type(native)
    if not _fits(shown, series.dtype, type_of(items)):
        raise ValueError(f"{name} are not accepted: give values of its type, {shown}")


def shown_type(column: Any) -> str:
    """Return the name of a column's type, without the categories, which are of the data."""
    kind = column.type if arrow(column) else column.dtype
    return type(kind).__name__.removesuffix("Dtype") if _is_categorical(column) else str(kind)


def _fits(shown: str, dtype: Any, kind: type | None) -> bool:
    """Return whether a column of a type may have items of this one."""
    nw = narwhals()
    # Narwhals looks at the items of object columns for a type.
    if kind is None or shown.lower().partition("[")[0] in ("object", "null"):
        return True
    if kind is str:
        return dtype in (nw.String, nw.Categorical, nw.Enum) or shown.startswith("string_view")
    if kind is date:
        return bool(dtype == nw.Date)
    if kind is datetime:
        return dtype == nw.Datetime and dtype.time_zone is None
    return dtype == nw.Boolean or bool(dtype.is_numeric())


def _is_categorical(kind: Any) -> bool:
    """Return whether this is a categorical column of pandas or Polars."""
    name = type(getattr(kind, "dtype", None)).__name__
    return name in ("CategoricalDtype", "Categorical", "Enum")


def items_of(series: Any) -> list[Any]:
    """Return the items of a column, with None for nulls of any kind."""
    items: list[Any] = series.to_list()
    missing = series.is_null()
    if not missing.any():
        return items
    return [None if null else x for x, null in zip(items, missing.to_list(), strict=True)]


def joined(names: Sequence[str], series: Sequence[Any]) -> Any:
    """Return a frame of columns with these names."""
    first, *others = (each.alias(name) for name, each in zip(names, series, strict=True))
    return first.to_frame().with_columns(*others)


@contextmanager
def refusing_types(name: str, columns: Sequence[Any]) -> Iterator[None]:
    """Raise a TypeError for the errors of a library that cannot group these columns by value."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:  # Each library has its own, whose messages may quote the data.
        kinds = ", ".join(map(shown_type, columns))
        raise TypeError(
            f"{name} of types {kinds} is not accepted: give numbers, bools, strings, bytes or times"
        ) from None
