"""Noise for columns of a Parquet file, batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from geomdp import frames
from geomdp._files.delimited import DataError
from geomdp._release.parameters import shown

if TYPE_CHECKING:
    from geomdp import GeometricMechanism

#: Rows that are held at a time, and in a row group of the output.
BATCH = 1 << 17


def release(
    source: BinaryIO,
    target: BinaryIO,
    columns: Sequence[str],
    mechanism: "GeometricMechanism",
    *,
    progress: Callable[[int], None] = lambda _: None,
    batch: int = BATCH,
) -> int:
    """Copy a Parquet file, with noisy counts in some columns, and return how many rows it has.

    Types and the other columns' values are kept, and so are names and metadata of the schema, and
    how each column is compressed; what the file says of its columns, such as their extremes, is of
    the noisy counts.

    Parameters
    ----------
    source, target : binary files
        The source can be sought in.
    columns : sequence of str
        Different names of columns of integers of up to 64 bits, without nulls.
    mechanism
        What makes the noise.
    progress : callable
        Called with the place in the file up to which rows have been read, about.
    batch : int
        How many rows to read at a time.

    Raises
    ------
    DataError
        If the file is not like this, or the mechanism cannot be used for the type of a column.
    ImportError
        If PyArrow is not installed.

    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with _reading():
        file = parquet.ParquetFile(source)
    schema = file.schema_arrow
    for name in columns:
        if schema.names.count(name) != 1:
            raise DataError(f"no column {name!r}, or several: it has {shown(schema.names)}")
        if not pa.types.is_integer(schema.field(name).type):
            raise DataError(f"column {name!r} has the type {schema.field(name).type}, not integers")
        try:
            # What the mechanism refuses for the type, it refuses for no counts too.
            mechanism.release(np.zeros(0, schema.field(name).type.to_pandas_dtype()))
        except (ValueError, OverflowError) as error:
            raise DataError(f"column {name!r}: {error}") from error
    rows, size = 0, source.seek(0, 2)
    codecs = _compression(file.metadata)
    with _reading(), parquet.ParquetWriter(target, schema, compression=codecs) as writer:
        for read in file.iter_batches(batch):
            writer.write_batch(_noisy(read, columns, mechanism))
            rows += read.num_rows
            progress(size * rows // file.metadata.num_rows)
    return rows


def _compression(metadata: Any) -> dict[str, str]:
    """Return the codec of each column, by its path; that of the first row group."""
    group = metadata.row_group(0) if metadata.num_row_groups else None
    columns = [group.column(place) for place in range(group.num_columns)] if group else []
    return {
        column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE")
        for column in columns
    }


@contextmanager
def _reading() -> Iterator[None]:
    """Turn what Arrow says of a file, possibly with a part of it, into an error of the data."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        yield
    except UnicodeDecodeError:
        raise DataError("the name of a column is not UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        # Those of the operating system have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError("not a Parquet file, or a damaged one") from None


def _noisy(read: Any, columns: Sequence[str], mechanism: "GeometricMechanism") -> Any:
    try:
        return frames.release_columns(read, dict.fromkeys(columns, mechanism))
    except ValueError as error:
        raise DataError(str(error).partition(" is not accepted")[0]) from error
