"""Add noise to columns of a Parquet file, batch by batch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from geomdp._ground.parameters import shown
from geomdp.cli._delimited import DataError
from geomdp.mechanism import check_dtype
from geomdp.tables._columns.frames import release_columns
from geomdp.tables._publish import footer

if TYPE_CHECKING:
    from geomdp import GeometricMechanism

#: The number of rows per batch, and per row group of the output.
BATCH = 1 << 17
#: The most bytes of a footer.
_FOOTER = 1 << 26


def release(
    source: BinaryIO,
    target: BinaryIO,
    columns: Sequence[str],
    mechanism: "GeometricMechanism",
    *,
    batch: int = BATCH,
) -> None:
    """Copy a Parquet file, with noise added to some columns of integers without nulls.

    The copy keeps the names and types, the metadata as
    :func:`geomdp.tables.release_columns` does, the compression of each column, and the values of
    all other columns. The column statistics in the file, such as minimum and maximum,
    describe the noisy counts. The source must be seekable; `batch` rows are read at a time. Raises
    DataError if the file is invalid or a column is not accepted.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with _reading():
        codecs = _codecs(source)
        file = parquet.ParquetFile(source)
    schema = file.schema_arrow
    for name in columns:
        if schema.names.count(name) != 1:
            raise DataError(
                f"column {name!r} must occur exactly once: the columns are {shown(schema.names)}"
            )
        if not pa.types.is_integer(schema.field(name).type):
            raise DataError(f"column {name!r} has the type {schema.field(name).type}, not integers")
        try:
            check_dtype(mechanism, schema.field(name).type.to_pandas_dtype())
        except (ValueError, OverflowError) as error:
            raise DataError(f"column {name!r}: {error}") from error
    # The schema of the copy.
    schema = _noisy(schema.empty_table(), columns, mechanism).schema
    with _reading(), parquet.ParquetWriter(target, schema, compression=codecs) as writer:
        for read in file.iter_batches(batch):
            writer.write_batch(_noisy(read, columns, mechanism))


def _codecs(source: BinaryIO) -> dict[str, str]:
    """Return the codec of each column in the first row group, by column path."""
    # Arrow would end the process on some damaged files.
    group = next(footer.groups(footer.found(source, _FOOTER)), None)
    return {} if group is None else {each.path: each.codec for each in group.chunks}


@contextmanager
def _reading() -> Iterator[None]:
    """Raise a DataError for Arrow's errors, whose messages may quote the file."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        yield
    except UnicodeDecodeError:
        raise DataError("the name of a column is not UTF-8") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        # Errors of the operating system have an errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError("not a Parquet file, or a damaged one") from None


def _noisy(read: Any, columns: Sequence[str], mechanism: "GeometricMechanism") -> Any:
    try:
        return release_columns(read, dict.fromkeys(columns, mechanism))
    except ValueError as error:
        raise DataError(str(error).partition(": fill them")[0]) from error
