"""Parquet files on the command line: only counts change."""

import contextlib
import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from geomdp import GeometricMechanism, cli
from geomdp._inputs.arrays import DTYPES
from geomdp.cli import _parquet_file
from geomdp.cli._delimited import DataError
from restated import damaged

# The noise is nonzero with probability below e^-999.
NONE = ["--scale", "0.001"]


def main(*argv: object) -> int:
    return cli.main([str(argument) for argument in argv])


def table(rows: int = 1000) -> pa.Table:
    counts = {dtype: np.arange(rows).astype(dtype) for dtype in DTYPES}
    places = pa.array([f"p{i % 7}" for i in range(rows)]).dictionary_encode()
    half = pa.array([None if i % 2 else i / 2 for i in range(rows)])
    found = pa.table(counts | {"place": places, "half": half})
    return found.replace_schema_metadata({"who": "us"})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    parquet.write_table(table(), tmp_path / "in.parquet")
    return tmp_path / "in.parquet", tmp_path / "out.PARQUET"


def test_without_noise_table_is_unchanged(files: tuple[Path, Path]) -> None:
    columns = [argument for dtype in [*DTYPES][:4] for argument in ("--column", dtype)]
    assert main("release", *files, *columns, *NONE) == 0
    wanted, (source, last) = parquet.read_table(files[0]), files
    for dtype in [*DTYPES][4:]:
        source, last = last, last.with_name(f"{dtype}.parquet")
        limits = ["--bounds", 0, np.iinfo(dtype).max]
        assert main("release", source, last, "--column", dtype, *limits, *NONE) == 0
    found = parquet.read_table(last)
    assert found.equals(wanted)
    assert found.schema == wanted.schema


def test_metadata_of_the_source_is_left_out(files: tuple[Path, Path]) -> None:
    """But for pandas' types and index: it may contain exact counts."""
    frame = table().to_pandas()[["int64"]].set_index(pd.Index(range(7, 1007), name="at"))
    frame.attrs = {"last": 424242}
    frame.to_parquet(files[0])
    exact = parquet.read_table(files[0])
    field = exact.schema.field("int64").with_metadata({"last": "424242"})
    parquet.write_table(exact.set_column(0, field, exact["int64"]), files[0])
    assert b"424242" in files[0].read_bytes()
    assert main("release", *files, "--column", "int64", *NONE) == 0
    assert b"424242" not in files[1].read_bytes()
    pd.testing.assert_frame_equal(pd.read_parquet(files[1]), frame)


def test_unsigned_columns_need_bounds(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("release", *files, "--column", "uint32", *NONE) != 0
    assert "bounds = None with counts of type uint32" in capsys.readouterr().err
    assert not files[1].exists()


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_batches(files: tuple[Path, Path], batch: int) -> None:
    source, target = files
    mechanism = GeometricMechanism(1.0, bounds=(0, 100))
    with open(source, "rb") as read, open(target, "wb") as written:
        _parquet_file.release(read, written, ["int64"], mechanism, batch=batch)
    found, wanted = parquet.read_table(target), parquet.read_table(source)
    assert found.drop("int64").equals(wanted.drop("int64"))
    assert set(found["int64"].to_pylist()) <= set(range(101))
    assert found["int64"].type == pa.int64()
    assert parquet.ParquetFile(target).num_row_groups == -(-1000 // batch)


def test_noise_is_fresh_and_statistics_match_it(files: tuple[Path, Path]) -> None:
    outputs = [files[1].with_name(f"{i}.parquet") for i in range(2)]
    for output in outputs:
        assert main("release", files[0], output, "--column", "int64", "--scale", "1e9") == 0
    one, two = (parquet.read_table(output)["int64"].to_numpy() for output in outputs)
    assert (one == two).sum() < 10
    assert len(np.unique(one)) > 990
    column = parquet.ParquetFile(outputs[0]).metadata.row_group(0)
    said = next(
        column.column(i).statistics
        for i in range(column.num_columns)
        if column.column(i).path_in_schema == "int64"
    )
    assert (said.min, said.max) == (one.min(), one.max())


def test_columns_keep_their_compression(files: tuple[Path, Path]) -> None:
    codecs = dict(zip(DTYPES, ["NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"], strict=False))
    full = table().append_column("nested", pa.array([{"a": [1]}] * 1000))
    codecs |= {"nested.a.list.element": "ZSTD", "half": "GZIP"}
    parquet.write_table(full, files[0], compression=codecs)

    def used(path: Path) -> dict[str, str]:
        group = parquet.ParquetFile(path).metadata.row_group(0)
        columns = [group.column(i) for i in range(group.num_columns)]
        return {column.path_in_schema: column.compression for column in columns}

    assert main("release", *files, "--column", "int64", *NONE) == 0
    assert used(files[1]) == used(files[0])
    assert len(set(used(files[1]).values())) == 6
    assert parquet.read_table(files[1]).equals(full)


def test_non_utf8_names_raise(files: tuple[Path, Path], capsys: Any) -> None:
    full = table().append_column("xxxx", pa.array([{"yyyy": 1}] * 1000))
    for name in (b"xxxx", b"yyyy", b"uint64"):
        parquet.write_table(full, files[0], store_schema=False)
        other = b"\xff\xfe".ljust(len(name), b"x")
        files[0].write_bytes(files[0].read_bytes().replace(name, other))
        assert main("release", *files, "--column", "int64", *NONE) == 1
        error = capsys.readouterr().err
        assert error.endswith("in.parquet: the name of a column is not UTF-8\n")
        assert error.count("\n") == 1
        assert not files[1].exists()


@pytest.mark.parametrize(
    ("column", "noise", "why"),
    [
        ("unknown", NONE, "column 'unknown' must occur exactly once"),
        ("half", NONE, "'half' has the type double"),
        ("place", NONE, "'place' has the type dictionary"),
        ("nulls", NONE, "'nulls' contains nulls"),
        ("int8", ["--scale", "1", "--bounds", "0", "300"], "'int8': bounds"),
        ("twice", NONE, "column 'twice' must occur exactly once"),
    ],
)
def test_invalid_column_leaves_no_file(
    files: tuple[Path, Path], capsys: Any, column: str, noise: list[str], why: str
) -> None:
    nulls = pa.array([None] * 999 + [1])
    full = table().append_column("nulls", nulls)
    for _ in range(2):
        full = full.append_column("twice", pa.array([1] * 1000))
    parquet.write_table(full, files[0])
    assert main("release", *files, "--column", column, *noise) == 1
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1
    assert [path.name for path in files[0].parent.iterdir()] == ["in.parquet"]


def test_invalid_file_raises(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "in.parquet"
    for content in (b"", b"count\n1\n", b"PAR1" + bytes(20) + b"PAR1"):
        source.write_bytes(content)
        assert main("release", source, tmp_path / "out.parquet", "--column", "n", *NONE) == 1
        assert "not a Parquet file" in capsys.readouterr().err
    parquet.write_table(table(), source)
    data = bytearray(source.read_bytes())
    data[4:2000] = bytes(1996)
    source.write_bytes(data)
    assert main("release", source, tmp_path / "out.parquet", "--column", "int64", *NONE) == 1
    assert "a damaged one" in capsys.readouterr().err
    for names in (("in.parquet", "out.csv"), ("in.csv", "out.parquet")):
        argv = [tmp_path / name for name in names]
        assert main("release", *argv, "--column", "n", *NONE) == 2
        assert "two Parquet files" in capsys.readouterr().err
    argv = [source, tmp_path / "out.parquet", "--column", "n", *NONE, "--delimiter", ";"]
    assert main("release", *argv) == 2
    assert "--delimiter" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


def test_no_rows(files: tuple[Path, Path]) -> None:
    parquet.write_table(table(0), files[0])
    assert main("release", *files, "--column", "int64", *NONE) == 0
    assert parquet.read_table(files[1]).equals(parquet.read_table(files[0]))


def test_without_pyarrow(files: tuple[Path, Path], capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main("release", *files, "--column", "int64", *NONE) == 1
    assert "pip install pyarrow" in capsys.readouterr().err
    assert not files[1].exists()


def test_damaged_files_are_data_errors() -> None:
    chance, given = random.Random(3), pa.table({"a": ["x", "y", "z"] * 50, "n": range(150)})
    files = []
    kinds: list[dict[str, Any]] = [{}, {"compression": "NONE"}, {"use_dictionary": False}]
    for settings in kinds:
        file = io.BytesIO()
        parquet.write_table(given, file, **settings)
        files.append(file.getvalue())
    released = 0
    for _ in range(500):
        source = io.BytesIO(damaged(chance.choice(files), chance))
        with contextlib.suppress(DataError):
            _parquet_file.release(source, io.BytesIO(), ["n"], GeometricMechanism(1))
            released += 1
    assert 0 < released < 400
