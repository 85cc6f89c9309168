"""Columns of any library, read and made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from numbers import Number
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._inputs.columns import arrow, as_narwhals, narwhals
from geomdp.tables._columns.levels import type_of

Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
#: What may equal a level.
_LABELS = str, Number, np.bool_, date


class Coded(NamedTuple):
    """A column of a few items: the place of each row's among them."""

    items: list[Any]
    places: NDArray[np.int64]
    #: The columns of items that were made, by library.
    known: dict[str, Any] | None = None

    def listed(self) -> list[Any]:
        """Return the item of each row."""
        return [self.items[place] for place in self.places.tolist()]


def library_of(column: Any) -> Library:
    """Return the library of narwhals' view of a column; pandas for those that copy it."""
    name = column.implementation.value
    return next((each for each in LIBRARIES if each == name), "pandas")


def made(columns: Mapping[str, Any], library: Library | None = None) -> Any:
    """Return a frame of a library, or of the first that is installed.

    Columns are arrays, sequences or :class:`Coded`. Everything about the frame follows from their
    values and the library, and none of its memory is that of an older frame.
    """
    if library is None:
        library = next((each for each in LIBRARIES if find_spec(each)), "pandas")
    if library not in LIBRARIES:
        raise ValueError(parameters.refusal("library", library, f"one of {LIBRARIES}"))
    with installed_by(library):
        module = import_module(library)
    series = {name: _series(module, values) for name, values in columns.items()}
    return module.table(series) if library == "pyarrow" else module.DataFrame(series)


def _series(module: Any, values: Any) -> Any:
    """Return a column of a library."""
    if isinstance(values, Coded):
        known = {} if values.known is None else values.known
        if module.__name__ not in known:
            known[module.__name__] = _series(module, values.items)
        column = known[module.__name__]
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


def labels(column: Any) -> Any:
    """Return narwhals' view of a column of labels that every library can group by value.

    Objects of Python may be anything. In pandas they become categories, one for all that have no
    hash, such as lists. No item makes an error, which would show it.
    """
    series = categories(column)
    native = series.to_native()
    if not of_objects(native):
        return series
    import pandas as pd  # noqa: PLC0415

    known: dict[Any, int] = {}
    unhashable = object()

    def place(item: Any) -> int:
        try:
            return known.setdefault(item, len(known))
        except Exception:  # A TypeError, or whatever a class raises.
            return known.setdefault(unhashable, len(known))

    places = np.fromiter(map(place, native.tolist()), np.int64, len(native))
    # Others equal no level. Pandas would compare some of them by their items, and takes a date and
    # a datetime64 for each other, whose hashes differ.
    scalars = ((item, pd.api.types.is_scalar(item)) for item in known)
    items = [
        item if scalar and (pd.isna(item) or isinstance(item, _LABELS)) else object()
        for item, scalar in scalars
    ]
    missing = np.array([pd.isna(item) for item in items], np.bool_)
    codes = np.where(missing, -1, np.cumsum(~missing) - 1)
    found = [item for item, null in zip(items, missing, strict=True) if not null]
    dtype = pd.CategoricalDtype(pd.Index(found, dtype=native.dtype))
    coded = pd.Categorical.from_codes(codes[places], dtype=dtype)
    return narwhals().from_native(type(native)(coded, index=native.index), series_only=True)


def of_objects(column: Any) -> bool:
    """Return whether this is a column of pandas that holds objects of Python."""
    dtype = getattr(column, "dtype", None)
    return hasattr(column, "iloc") and (
        str(dtype) == "object" or getattr(dtype, "storage", None) == "python"
    )


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
    series, kind = of_categories(series), type_of(items)
    shown, zone = shown_type(series.to_native()), getattr(series.dtype, "time_zone", None)
    if zone is not None and kind is not None and issubclass(kind, date):
        raise ValueError(
            f"{name} are not accepted: the times of the column have a zone, and levels have none. "
            "Remove it from the column first, with .dt.tz_localize(None) in pandas, "
            ".dt.replace_time_zone(None) in Polars, or pyarrow.compute.local_timestamp "
            "(docs/guides/keys.md)"
        )
    if not _fits(shown, series.dtype, kind):
        raise ValueError(f"{name} are not accepted: give values of its type, {shown}")
    most = _WHOLE.get(str(series.dtype))
    if most and kind is int and any(abs(item) > most for item in items if item is not None):
        raise ValueError(
            f"{name} are not accepted, as a column of type {shown} rounds such integers: read it "
            "as integers (pandas makes floats of those with nulls, unless dtype='Int64')"
        )
    if (precise := _precise(series.dtype)) is not None and kind is float:
        numbers = [precise(item) for item in items if item is not None]
        if len(set(numbers)) < len(numbers) or not all(map(math.isfinite, numbers)):
            raise ValueError(f"{name} are not accepted: give distinct numbers of its type, {shown}")


#: Up to which integer a column of floats tells each from the next.
_WHOLE = {"Float16": 2**11, "Float32": 2**24, "Float64": 2**53}


def of_categories(series: Any) -> Any:
    """Return a column of the type of pandas' categories, without them, or else the column."""
    native = series.to_native()
    if not (_is_categorical(native) and hasattr(native, "iloc")):
        return series
    return narwhals().from_native(native.cat.categories[:0].to_series(), series_only=True)


def _precise(dtype: Any) -> Any:
    """Return the function from a float to the number of this type that it is written as, if any.

    0.1 is another number in 32 bits than in 64, and in decimals.
    """
    kinds: dict[str, Any] = {
        "Float16": np.float16,
        "Float32": np.float32,
        "Decimal": lambda x: Decimal(repr(x)),
    }
    found = kinds.get(str(dtype).partition("(")[0])
    if found is None:
        return None

    def precise(item: float) -> Any:
        with np.errstate(over="ignore"):
            return found(item)

    return precise


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


def items_of(series: Any, levels: Sequence[Any] = ()) -> list[Any]:
    """Return the items of a column, with None for nulls of any kind.

    Items are compared with levels in the precision of the column, and equal ones become those.
    """
    items: list[Any] = series.to_list()
    if type_of(levels) is float and (precise := _precise(of_categories(series).dtype)) is not None:
        same = {precise(level): level for level in levels if level is not None}
        items = [same.get(item, item) for item in items]
    try:
        missing = series.is_null()
    except ArithmeticError:  # From pandas, for a signalling NaN among objects.
        return items
    if not missing.any():
        return items
    return [None if null else x for x, null in zip(items, missing.to_list(), strict=True)]


def plain_integers(series: Any) -> NDArray[np.int64] | None:
    """Return a column of signed integers without nulls as an array; None for any other."""
    nw = narwhals()
    if series.dtype not in (nw.Int8, nw.Int16, nw.Int32, nw.Int64) or series.is_null().any():
        return None
    numbers = series.to_numpy()
    return numbers.astype(np.int64) if numbers.dtype.kind == "i" else None


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
