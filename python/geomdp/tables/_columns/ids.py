"""Ids of individuals: the types that identify, and which of them are equal, on every path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._inputs.columns import narwhals
from geomdp.tables._columns.native import (
    categories,
    of_categories,
    of_objects,
    plain_integers,
    shown_type,
)

#: Types by the names that all libraries give them. Equal ids have one representation in each, and
#: so one hash. A float is no id: NaN differs from itself, 0.0 equals -0.0, long ids are rounded.
_TYPES = re.compile(
    r"(?i:u?int\d+|str|(large_)?(string|binary)(_view)?|fixed_size_binary|categorical|enum)|object"
)
#: Arrow's views, and the types of the same values.
_VIEWS = {"string_view": "large_string", "binary_view": "large_binary"}
_WANTED = "the name of a column, or a tuple of such texts, each once"


def columns(individual: Any) -> tuple[Any, ...]:
    """Return the columns that identify individuals together: those of a tuple, one, or none.

    Each of them is an id of its own, and tuples of ids are compared item by item on every path:
    texts are never joined, since ("a", "bc") and ("ab", "c") are two individuals.
    """
    if not isinstance(individual, tuple):
        if isinstance(individual, list):
            raise TypeError(parameters.foreign("individual", individual, _WANTED))
        return () if individual is None else (individual,)
    texts = all(isinstance(name, str) for name in individual)
    if not texts or len(set(individual)) != max(len(individual), 1):
        kind = ValueError if texts else TypeError
        raise kind(parameters.refusal("individual", individual, _WANTED))
    return individual


def one_or_all(names: tuple[Any, ...]) -> Any:
    """Return what a design says of these columns: None, the name of one, or all as a tuple."""
    return names if len(names) > 1 else next(iter(names), None)


def numbers(series: Sequence[Any]) -> NDArray[np.int64]:
    """Return a number for each row of columns of ids: the same where all of them are equal."""
    if len(series) == 1 and (found := plain_integers(series[0])) is not None:
        # A million look-ups in a dict take ten times as long.
        return np.unique(found, return_inverse=True)[1].reshape(-1)
    known: dict[Any, int] = {}
    first, *others = (each.to_list() for each in series)
    rows = zip(first, *others, strict=True) if others else first
    return np.array([known.setdefault(row, len(known)) for row in rows], np.int64)


def check_type(name: Any, shown: str) -> None:
    """Refuse a column whose type, by its name, cannot identify individuals."""
    if not _TYPES.fullmatch(re.split(r"[\[(]", shown)[0]):
        raise TypeError(
            f"individuals of type {shown} in {name!r} are not accepted: read them as text or Int64"
        )


def checked(name: Any, column: Any) -> Any:
    """Return narwhals' view of a column of ids, of which a library can group equal ones.

    The type is refused before anything is read; then nulls. Objects of Python become numbers. An
    integer or a UUID among them is the id of its text, since a file read in pieces may have both.
    """
    series, what = categories(column), "nulls"
    native, kind = series.to_native(), of_categories(series).to_native()
    check_type(name, shown := shown_type(kind))
    if shown.startswith(tuple(_VIEWS)):
        series, native = _of_views(native, shown.partition("[")[0])
    if of_objects(kind):
        what = "nulls, floats or other objects that are no ids"
        known: dict[Any, int] = {None: -1}
        numbers = [known.setdefault(_plain(item), len(known)) for item in native.tolist()]
        native = type(native)(np.array(numbers, np.int64), index=native.index)
        series = narwhals().from_native(native, series_only=True)
        missing = -1 in numbers
    else:
        missing = series.is_null().any()
    if missing:
        raise ValueError(f"column {name!r} contains {what}: give every record an id")
    return series


def _of_views(native: Any, shown: str) -> tuple[Any, Any]:
    """Return a column of Arrow's views, which few of its calls take, as one of plain text or bytes.

    The first is narwhals' view of it.
    """
    import pyarrow as pa  # noqa: PLC0415

    plain = getattr(pa, _VIEWS[shown])()
    if hasattr(native, "array"):  # Of pandas, whose own conversion does not know them.
        values = type(native.array)(native.array.__arrow_array__().cast(plain))
        found = type(native)(values, index=native.index, name=native.name)
    else:
        found = native.cast(plain)
    return narwhals().from_native(found, series_only=True), found


def _plain(item: Any) -> str | bytes | None:
    """Return what identifies among objects, the same for equal ids; None if it is no id."""
    if isinstance(item, np.generic):
        item = item.item()
    if type(item) is int:
        # Python refuses to print integers of more than 4300 digits.
        return format(Decimal(item), "f")
    if type(item) is UUID:
        return str(item)
    return item if type(item) in (str, bytes) else None
