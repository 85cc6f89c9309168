"""Conversion of columns of pandas, Polars, PyArrow and narwhals to numpy and back."""

import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._inputs.arrays import DTYPES, Array

#: Returns a noisy array.
Noise: TypeAlias = Callable[[Array], Array]
Nulls = Literal["refuse", "keep"]
REFUSE: Literal["refuse"] = "refuse"
FRAME = "a data frame, collected if it is lazy"
ARROW_FRAMES = ("Table", "RecordBatch")
#: All but the frame's own attributes.
_PANDAS_METADATA = ("index_columns", "column_indexes", "columns", "pandas_version")


def is_column(value: Any) -> bool:
    """Return whether this may be a column, without importing its library."""
    return (
        hasattr(value, "__arrow_c_stream__")
        or hasattr(value, "__arrow_c_array__")
        or type(value).__module__.partition(".")[0] == "pandas"
    )


def native_frame(frame: Any, wanted: str = FRAME) -> Any:
    """Return a frame in its own library, unless it is lazy."""
    if arrow(frame) in ARROW_FRAMES or _library(frame, "DataFrame"):
        return frame
    return as_narwhals("frame", frame, wanted, eager_only=True).to_native()


def lazy(frame: Any) -> str | None:
    """Return ``"polars"`` or ``"duckdb"`` for a lazy frame of one or a relation of the other."""
    kind: Any = type(frame)
    known = {"LazyFrame": "polars", "DuckDBPyRelation": "duckdb"}.get(kind.__name__)
    return known if kind.__module__.partition(".")[0].lstrip("_") == known else None


def collected(frame: Any) -> Any:
    """Return a frame in its own library; a lazy one of Polars or DuckDB is evaluated here, once."""
    if lazy(frame) is None:
        return native_frame(frame)
    # DuckDB's becomes a table of PyArrow.
    return narwhals().from_native(frame).collect().to_native()


def names(frame: Any, having: str = "") -> list[Any]:
    """Return the column names of a frame, which has something: strings, or any labels in pandas."""
    native = native_frame(frame, FRAME + having)
    return list(native.schema.names if arrow(native) else native.columns)


def column(frame: Any, name: Hashable) -> Any:
    """Return the column of a frame with this name."""
    native = native_frame(frame)
    return _at(native, names(native).index(name))


def _at(native: Any, place: int) -> Any:
    """Return the column at this place of a frame in its own library."""
    if arrow(native):
        return native.column(place)
    return native.iloc[:, place] if hasattr(native, "iloc") else native[:, place]


def to_arrow(name: str, column: Any) -> Any:
    """Return a column or numpy array as an Array of PyArrow."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(column, np.ndarray):
        column = pa.array(column.ravel())
    elif not arrow(column):
        wanted = "arrays or columns"
        column = as_narwhals(name, column, wanted, series_only=True).to_arrow()
    refuse_damaged(name, column)
    return column.combine_chunks() if arrow(column) == "ChunkedArray" else column


def noisy(noise: Noise, name: str, counts: Any, nulls: Nulls) -> Any:
    """Return the noisy column in new memory; `name` is for errors."""
    if (kind := arrow(counts)) == "ChunkedArray":
        import pyarrow as pa  # noqa: PLC0415

        _dtype(name, str(counts.type))
        chunks = [_array(noise, name, chunk, nulls) for chunk in counts.chunks]
        return pa.chunked_array(chunks, type=counts.type)
    if kind == "Array":
        return _array(noise, name, counts, nulls)
    if (released := _of_numpy(noise, counts)) is not None:
        return released
    nw = narwhals()
    wanted = "a column (geomdp.tables.release_columns takes frames)"
    if line := parameters.conversion(name, counts):
        wanted = f"a column, or to GeometricMechanism.release {line}"
    series = as_narwhals(name, counts, wanted, series_only=True)
    # Not the categories, which are of the data.
    kind = str(series.dtype).lower().partition("(")[0]
    dtype = _dtype(name, str(series.to_native().dtype).lower() if kind == "unknown" else kind)
    missing = series.is_null()
    if hidden := _any(name, bool(missing.any()), nulls):
        # The counts behind nulls are not released.
        series = series.fill_null(0)
    released = noise(series.to_numpy().astype(dtype, copy=False))
    column = nw.new_series(series.name, released, series.dtype, backend=series.implementation)
    if (index := nw.maybe_get_index(series)) is not None:
        # Narwhals' maybe_set_index reads an index item by item, and its types do not distinguish
        # those of numpy, pandas and Arrow.
        native = column.to_native().set_axis(own(index)).astype(series.to_native().dtype)
        column = nw.from_native(native, series_only=True)
    if hidden:
        # Set nulls in the noisy column: the old one holds exact counts behind them.
        column = column.scatter(np.flatnonzero(missing.to_numpy()), None)
    return column.to_native()


def noisy_columns(frame: Any, noises: Mapping[Any, Noise], nulls: Nulls) -> Any:
    """Return a frame with noise added to some of its columns."""
    native, released = native_frame(frame), {}
    known = names(native)
    for name, noise in noises.items():
        place = known.index(only(name, known))
        released[place] = noisy(noise, f"column {name!r}", _at(native, place), nulls)
    if arrow(native):
        import pyarrow as pa  # noqa: PLC0415

        fields = list(native.schema)
        for place, field in enumerate(fields):
            if place in released:
                fields[place] = without_metadata(field)
            else:
                released[place] = _apart(native, place)
        schema = pa.schema(fields, public_metadata(native.schema))
        return type(native).from_arrays([released[x] for x in range(len(fields))], schema=schema)
    if hasattr(native, "isetitem"):
        # Set columns by position, since narwhals accepts only strings as names in pandas.
        native = native.copy(deep=False)
        # Attributes may contain exact counts.
        native.attrs = {}
        for place, each in released.items():
            native.isetitem(place, each.array)
        # Pandas keeps columns of one type in one array, which still holds the exact counts. The
        # index may be a view of it.
        native = native.copy()
        native.index, native.columns = own(native.index), own(native.columns)
        return native
    if _library(native, "DataFrame"):
        return native.with_columns(*released.values())
    nw = narwhals()
    columns = [nw.from_native(each, series_only=True) for each in released.values()]
    return nw.from_native(native).with_columns(*columns).to_native()


def _apart(frame: Any, place: int) -> Any:
    """Return a column of a frame of PyArrow in memory that no other column is in.

    Arrow reads all columns of a message or file into one buffer, the parent of theirs.
    """
    column, field = frame.column(place), frame.schema.field(place)
    chunks = getattr(column, "chunks", [column])
    buffers = [buffer for chunk in chunks for buffer in chunk.buffers() if buffer is not None]
    # A dictionary has buffers of its own.
    if "dictionary" not in str(field.type) and all(buffer.parent is None for buffer in buffers):
        return column
    import pyarrow as pa  # noqa: PLC0415

    sink, one = pa.BufferOutputStream(), pa.schema([field])
    with pa.ipc.new_stream(sink, one) as stream:
        for chunk in chunks:
            stream.write_batch(pa.RecordBatch.from_arrays([chunk], schema=one))
    copied = [batch.column(0) for batch in pa.ipc.open_stream(sink.getvalue())]
    return pa.chunked_array(copied, field.type) if hasattr(column, "chunks") else copied[0]


def own(index: Any) -> Any:
    """Return an index of pandas in memory of its own."""
    # A range holds no values, and its copy takes longer than a small draw.
    return index[:] if type(index).__name__ == "RangeIndex" else index.copy(deep=True)


def without_metadata(field: Any) -> Any:
    """Return the field of a released column; its metadata may contain exact counts."""
    return field.remove_metadata()


def public_metadata(schema: Any) -> dict[bytes, str] | None:
    """Return the metadata from which pandas restores types and index: others may hold counts."""
    try:
        told = json.loads(schema.metadata[b"pandas"])
        return {b"pandas": json.dumps({key: told[key] for key in _PANDAS_METADATA})}
    except (KeyError, TypeError, ValueError):
        return None


def refuse_damaged(name: str, array: Any) -> None:
    """Refuse an Array or ChunkedArray of PyArrow that makes PyArrow read beyond its buffers."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise ValueError(f"{name} is damaged, which is not accepted: read it again") from None


def memory(array: Any, dtype: np.dtype[Any], more: int = 0) -> NDArray[Any]:
    """Return the data buffer of a nonempty PyArrow Array, with `more` items after its length."""
    start = array.offset * dtype.itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array) + more, start)


def _array(noise: Noise, name: str, array: Any, nulls: Nulls) -> Any:
    """Return a noisy Array of PyArrow."""
    import pyarrow as pa  # noqa: PLC0415

    dtype, missing = _dtype(name, str(array.type)), None
    # Read the array's memory without a copy. An empty slice refers to that of its parent.
    counts = memory(array, dtype) if len(array) else np.empty(0, dtype)
    if _any(name, array.null_count > 0, nulls):
        missing = np.asarray(array.is_null())
        # The counts behind nulls are not released.
        counts = np.where(missing, dtype.type(0), counts)
    released = noise(counts)
    if missing is None:
        # Equivalent to pa.array, but faster.
        buffers = [None, pa.py_buffer(released)]
        return pa.Array.from_buffers(array.type, len(array), buffers)
    return pa.array(released, type=array.type, mask=missing)


def _of_numpy(noise: Noise, counts: Any) -> Any:
    """Return a noisy Series of pandas or Polars; None for others than integers without nulls.

    For a short Series, narwhals takes twenty times as long.
    """
    library, dtype = _library(counts, "Series"), getattr(counts, "dtype", None)
    if library == "pandas" and isinstance(dtype, np.dtype):
        if dtype.kind in "iu" and dtype.isnative:
            released, index = noise(counts.to_numpy()), own(counts.index)
            return type(counts)(released, index, name=counts.name, copy=False)
    elif library == "polars" and str(dtype).lower() in DTYPES and not counts.null_count():
        return type(counts)(counts.name, noise(counts.to_numpy()))
    return None


def _library(value: Any, kind: str) -> str:
    """Return "pandas" or "polars" for their own Series or DataFrame, without importing them."""
    known = ("pandas", "polars")
    return next((x for x in known if type(value) is getattr(sys.modules.get(x), kind, None)), "")


def _dtype(name: str, kind: str) -> np.dtype[Any]:
    """Return the dtype of a column's type, which all libraries name alike."""
    if (dtype := DTYPES.get(kind)) is None:
        raise TypeError(f"{name} of type {kind} is not accepted: give {integers(kind)}")
    return dtype


def integers(kind: str) -> str:
    """Return what to give for integers of another type, with the line that makes them."""
    hints = {
        "float": "pandas' floats, astype('Int64')",
        "sparse": "pandas' sparse columns, sparse.to_dense()",
        **dict.fromkeys(("decimal", "int128", "uint128"), "sums in SQL, CAST(sum(n) AS BIGINT)"),
    }
    hint = next((f" (for {hints[x]})" for x in hints if kind.startswith(x)), "")
    return f"integers of up to 64 bits{hint}"


def _any(name: str, found: bool, nulls: Nulls) -> bool:
    """Return `found`, whether there are nulls; refuse them unless they may be kept."""
    if found and nulls == "refuse":
        raise ValueError(
            f"{name} contains nulls: fill them, or give nulls='keep', which shows them"
        )
    return found


def narwhals() -> Any:
    with installed_by("geomdp[tables]"):
        return importlib.import_module("narwhals")


def as_narwhals(name: str, value: Any, wanted: str, **eager: bool) -> Any:
    """Return narwhals' view of a Series or frame."""
    if arrow(value) == "ChunkedArray":
        refuse_damaged(name, value)
    try:
        return narwhals().from_native(value, **eager)
    except TypeError:
        kind: Any = type(value)
        if wanted.startswith(FRAME) and hasattr(kind, "to_frame"):
            wanted = f"{name}.to_frame(), {wanted}"
        elif wanted.startswith(FRAME) and hasattr(kind, "__arrow_c_stream__"):
            # A relation of DuckDB, a reader of record batches.
            wanted = f"pyarrow.table({name})"
        raise TypeError(f"{name} has type {type(value).__name__}: give {wanted}") from None


def check_nulls(nulls: str) -> None:
    if not isinstance(nulls, str) or nulls not in ("refuse", "keep"):
        raise ValueError(parameters.refusal("nulls", nulls, "'refuse' or 'keep'"))


def only(name: Any, names: list[Any], of: str = "the frame") -> Any:
    """Return a name that one column has, of a frame or of what is named."""
    try:
        found = Counter(names)[name]
    except TypeError:  # It has no hash, as a list.
        found = 0
    given = parameters.given(name).removeprefix("= ")
    if not found:
        raise KeyError(f"no column {given} in {of}: give one of {names}")
    if found > 1:
        raise KeyError(f"column {given} occurs {found} times: rename all but one")
    return name


def arrow(value: Any) -> str:
    """Return the name of the value's PyArrow class, or "", without importing PyArrow."""
    kind: Any = type(value)
    return _arrow_name(kind)


@lru_cache(maxsize=128)
def _arrow_name(kind: type) -> str:
    known = ("Table", "RecordBatch", "Array", "ChunkedArray")
    names = (c.__name__ for c in kind.__mro__ if c.__module__.startswith("pyarrow"))
    return next((name for name in names if name in known), "")
