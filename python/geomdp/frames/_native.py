"""Columns and frames of any library: their categories and items, rows taken, columns put on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from geomdp._inputs import parameters
from geomdp._inputs.columns import arrow, as_narwhals, narwhals

Library = Literal["pandas", "polars", "pyarrow"]
_LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")


def last_column(frame: Any) -> NDArray[np.int64]:
    """Return the counts of a table, its last column."""
    if arrow(frame):
        return np.array(frame.column(frame.num_columns - 1).to_numpy(), np.int64)
    if hasattr(frame, "iloc"):
        return np.array(frame.iloc[:, -1].to_numpy(), np.int64)
    view = narwhals().from_native(frame)
    return np.array(view[:, len(view.columns) - 1].to_numpy(), np.int64)


def with_columns(frame: Any, new: Mapping[str, Any]) -> Any:
    """Return a frame with columns put in their place, or at the end."""
    arrays = {name: _array(values) for name, values in new.items()}
    if arrow(frame):
        import pyarrow as pa  # noqa: PLC0415

        for name, values in arrays.items():
            known = frame.schema.get_field_index(name)
            column = pa.array(values)
            if known < 0:
                frame = frame.append_column(name, column)
            else:
                frame = frame.set_column(known, name, column)
        return frame
    if hasattr(frame, "iloc"):
        return frame.assign(**arrays)
    nw = narwhals()
    view = nw.from_native(frame)
    columns = [nw.new_series(k, v, backend=view.implementation) for k, v in arrays.items()]
    return view.with_columns(*columns).to_native()


def taken(frame: Any, places: Sequence[int], rows: NDArray[Any], new: Mapping[str, Any]) -> Any:
    """Return these rows of some columns, with more columns."""
    if arrow(frame):
        import pyarrow as pa  # noqa: PLC0415

        if not places:
            return pa.table({name: _array(values) for name, values in new.items()})
        return with_columns(frame.select(list(places)).take(pa.array(rows)), new)
    if hasattr(frame, "iloc"):
        return with_columns(frame.iloc[rows, list(places)].reset_index(drop=True), new)
    nw = narwhals()
    view = nw.from_native(frame)
    if not places:
        own = {name: _array(values) for name, values in new.items()}
        return nw.from_dict(own, backend=view.implementation).to_native()
    return with_columns(view[rows.tolist(), list(places)].to_native(), new)


def made(columns: Mapping[str, Sequence[Any]], library: Library | None) -> Any:
    """Return a frame of a library, or of the first that is installed."""
    if library is None:
        library = next((each for each in _LIBRARIES if find_spec(each)), "pandas")
    if library not in _LIBRARIES:
        raise ValueError(parameters.refusal("library", library, f"one of {_LIBRARIES}"))
    module = import_module(library)
    if library == "pyarrow":
        return module.table({name: module.array(values) for name, values in columns.items()})
    if library == "polars":
        return module.DataFrame(dict(columns), strict=True)
    return module.DataFrame(dict(columns))


def _array(values: Any) -> NDArray[Any]:
    """Return integers as int64, or floats."""
    if isinstance(values, np.ndarray):
        return values
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, np.int64 if whole else np.float64)


def categories(column: Any) -> tuple[Any, Any]:
    """Return narwhals' view of a column to count, and the native column."""
    if arrow(column) == "Array":
        import pyarrow as pa  # noqa: PLC0415

        column = pa.chunked_array([column])
    wanted = "a column, or a data frame with levels as a mapping of column names"
    series = as_narwhals("data", column, wanted, series_only=True)
    nw, native = narwhals(), series.to_native()
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series, native
    if arrow(native):
        with refusing_types("data", [native]):
            native = native.cast(native.type.value_type)
        return nw.from_native(native, series_only=True), native
    if kind := getattr(native.dtype, "pyarrow_dtype", None):
        # Pandas' type of Arrow's dictionaries.
        with refusing_types("data", [native]):
            native = native.astype(type(native.dtype)(kind.value_type))
        return nw.from_native(native, series_only=True), native
    return series, native


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


def check_levels(name: str, kind: Any, levels: list[Any]) -> None:
    """Refuse levels that are not items of a column of this type."""
    kind = _of_items(kind)
    try:
        same = items_of(like(kind, levels)) == levels
    except Exception:  # Each library has its own.
        same = False
    if not same:
        dtype = kind.type if arrow(kind) else kind.dtype
        raise ValueError(f"{name} are not accepted: give values of its type, {dtype}")


def _is_categorical(kind: Any) -> bool:
    """Return whether this is a categorical column of pandas or Polars."""
    name = type(getattr(kind, "dtype", None)).__name__
    return name in ("CategoricalDtype", "Categorical", "Enum")


def _of_items(kind: Any) -> Any:
    """Return a column with the type of the items of another: of its categories."""
    if not _is_categorical(kind):
        return kind
    if hasattr(kind, "iloc"):
        return kind.cat.categories.to_series()
    nw = narwhals()
    return nw.from_native(kind[:0], series_only=True).cast(nw.String).to_native()


def like(kind: Any, items: list[Any], places: Any = None) -> Any:
    """Return narwhals' view of a column with the library and type of another.

    It has the items, or those at some places.
    """
    if arrow(kind):
        import pyarrow as pa  # noqa: PLC0415

        array = pa.array(items, kind.type)
        if places is not None:
            try:
                array = array.take(pa.array(places))
            except pa.ArrowNotImplementedError:  # As for views of strings.
                array = pa.array([items[place] for place in places], kind.type)
        native = pa.chunked_array([array])
    else:
        native = type(kind)(items, dtype=_of_levels(kind, items))
        if places is not None:
            # Pandas' take of a Series would repeat the labels too.
            pandas = hasattr(native, "iloc")
            native = type(kind)(native.array.take(places)) if pandas else native.gather(places)
    return narwhals().from_native(native, series_only=True)


def framed(
    kinds: Sequence[Any],
    levels: Mapping[Any, list[Any]],
    name: str,
    counts: NDArray[np.int64],
    cells: NDArray[np.int64] | None = None,
) -> Any:
    """Return a frame of the levels of all cells, or of some, and their counts.

    The columns of levels have the library and types of `kinds`.
    """
    shape = tuple(map(len, levels.values()))
    places: Any = [None]
    if cells is not None:
        places = np.unravel_index(cells, shape)
    elif len(shape) > 1:
        places = (np.broadcast_to(x, shape).reshape(-1) for x in np.indices(shape, sparse=True))
    shown = list(map(like, kinds, levels.values(), places))
    nw, backend = narwhals(), shown[0].implementation
    shown.append(nw.new_series("", counts.reshape(-1), nw.Int64, backend=backend))
    labels = [*levels, name]
    keys = [str(place) for place in range(len(labels))]
    return joined(keys, shown).rename(dict(zip(keys, labels, strict=True))).to_native()


def _of_levels(kind: Any, items: list[Any]) -> Any:
    """Return the dtype of a column, for these items.

    If they are all its categories, it stays. Otherwise they become its categories, since others
    may come from the data alone. Polars' Categorical has none of its own.
    """
    if not _is_categorical(kind) or type(kind.dtype).__name__ == "Categorical":
        return kind.dtype
    known = [item for item in items if item is not None]
    if set(known) == set(kind.dtype.categories):
        return kind.dtype
    if not hasattr(kind, "iloc"):
        return type(kind.dtype)(known)
    own = type(kind)(known, dtype=kind.cat.categories.dtype)
    return type(kind.dtype)(own, kind.dtype.ordered)


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
        kinds = ", ".join(str(each.type if arrow(each) else each.dtype) for each in columns)
        raise TypeError(
            f"{name} of types {kinds} is not accepted: give numbers, bools, strings, bytes or times"
        ) from None
