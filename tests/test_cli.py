"""The command line, in particular its handling of files."""

import argparse
import contextlib
import csv
import errno
import gzip
import io
import json
import math
import os
import pty
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import geomdp
from geomdp import GeometricMechanism, accuracy, cli
from geomdp._files import delimited
from statistics_ import censored_pmf, rejects
from unsigned import limits
from verifier.verify import verify

ROOT = Path(__file__).parent.parent
SECONDS = 60
#: A count that must not appear in any message.
SECRET = "987654321"
PLAIN = ["release", "in.csv", "out.csv", "--column", "count", "--epsilon", "1"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


def released_to(name: str, rows: int) -> Done:
    return Done(0, f"{rows} row{'s' * (rows != 1)} with noise written to {name}\n", "")


Main = Callable[..., Done]


@pytest.fixture
def main(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Main:
    """Run a command in this process, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: object) -> Done:
        code = cli.main([str(word) for word in argv])
        return Done(code, *capsys.readouterr())

    return run


def start(
    *argv: object, cwd: Path, before: str = "", unbuffered: str = "", **options: Any
) -> subprocess.Popen[str]:
    """Start a command in its own process, after some lines of Python."""
    run = "runpy.run_module('geomdp', run_name='__main__', alter_sys=True)"
    script = f"import os, resource, runpy, signal, sys\n{before}\n{run}"
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, argv)],
        cwd=cwd,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )


def finish(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=SECONDS)
    return Done(process.returncode, out, err)


def check_refused(done: Done, code: int, pattern: str = "") -> None:
    assert done.code == code, done
    assert done.out == ""
    assert done.err.startswith("geomdp: error: ")
    assert done.err.endswith("\n")
    assert len(done.err.splitlines()) == 1
    assert re.search(pattern, done.err), done.err
    assert SECRET not in done.err


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# CSV dialect

Noise = Callable[[NDArray[np.int64]], NDArray[np.int64]]


def released(data: bytes, *columns: str, noise: Noise = np.array, **options: Any) -> bytes:
    target = io.BytesIO()
    delimited.release(io.BytesIO(data), target, columns or ["count"], noise, **options)
    return target.getvalue()


def read(data: bytes, delimiter: str = ",") -> list[list[str]]:
    """Read with Python's csv module."""
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    return list(csv.reader(text, delimiter=delimiter, strict=True))


class Table(NamedTuple):
    data: bytes
    rows: list[list[str]]
    delimiter: str
    #: Indices of the columns of counts.
    places: list[int]

    @property
    def columns(self) -> list[str]:
        return [self.rows[0][place] for place in self.places]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    delimiter = draw(st.sampled_from(delimited.DELIMITERS))
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    special = set(delimiter + '"\r\n')
    nasty = st.text(st.sampled_from([*special, "a", "1", " ", "\u2028", "é", "\0"]), max_size=4)
    other = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | nasty
    count = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)

    width = draw(st.integers(1, 4))
    places = draw(st.lists(st.integers(0, width - 1), min_size=1, unique=True))
    header = draw(st.lists(other, min_size=width, max_size=width, unique=True))
    header = [name.replace("\ufeff", "x") + str(i) for i, name in enumerate(header)]
    cells = [count.map(str) if place in places else other for place in range(width)]
    rows = [header, *draw(st.lists(st.tuples(*cells).map(list), max_size=8))]

    def written(cell: str) -> str:
        if special & set(cell) or draw(st.booleans()):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    text = line_end.join(delimiter.join(map(written, row)) for row in rows)
    text += draw(st.sampled_from(["", line_end]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig"]))
    return Table(text.encode(encoding), rows, delimiter, places)


def negated(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return ~counts


@given(tables(), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_only_counts_change(table: Table, block: int) -> None:
    def change(data: bytes) -> bytes:
        return released(data, *table.columns, noise=negated, delimiter=table.delimiter, block=block)

    once = change(table.data)
    expected = [
        [str(~int(cell)) if place in table.places else cell for place, cell in enumerate(row)]
        for row in table.rows[1:]
    ]
    assert read(once, table.delimiter) == [table.rows[0], *expected]
    # Byte for byte, except for quotes around counts.
    twice = change(once)
    assert read(twice, table.delimiter) == table.rows
    assert change(change(twice)) == twice
    bare = re.compile(rb'"([-0-9]+)"')
    assert bare.sub(rb"\1", twice) == bare.sub(rb"\1", table.data)
    assert once.endswith(b"\n") == table.data.endswith(b"\n")
    assert once.startswith(b"\xef\xbb\xbf") == table.data.startswith(b"\xef\xbb\xbf")


@given(st.text(st.sampled_from('",;\n\r 1-+a\t0'), max_size=14), st.integers(1, 20))
@settings(max_examples=1000, deadline=None)
def test_parsing_agrees_with_csv_module(body: str, block: int) -> None:
    # An accepted file is read the same by another reader.
    data = f"count,x\n{body}".encode()
    seen: list[int] = []

    def noise(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        seen.extend(counts.reshape(-1).tolist())
        return np.full_like(counts, 77)

    try:
        noisy = released(data, noise=noise, block=block)
    except delimited.DataError:
        with pytest.raises(delimited.DataError):
            released(data)
        return
    header, *rows = read(data)
    assert header == ["count", "x"]
    assert [int(count) for count, _ in rows] == seen
    assert read(noisy) == [header, *(["77", other] for _, other in rows)]
    assert released(data, noise=lambda counts: np.full_like(counts, 77)) == noisy


SPELLINGS = {
    "0": 0,
    "-0": 0,
    "+5": 5,
    "-5": -5,
    " 5": 5,
    "\t 5 \t": 5,
    "007": 7,
    "-" + "0" * 60 + "12": -12,
    '"12"': 12,
    '" -12 "': -12,
    "9223372036854775807": 2**63 - 1,
    "+09223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "1000000000000000000": 10**18,
}


def test_count_spellings() -> None:
    seen: list[int] = []

    def noise(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        assert counts.shape == (len(SPELLINGS), 1)
        seen.extend(counts.reshape(-1).tolist())
        return np.full_like(counts, -3)

    data = "".join(f"x,{cell}\n" for cell in ["count", *SPELLINGS])
    # Neither the length nor the sign of a true count remains.
    assert released(data.encode(), noise=noise) == b"x,count\n" + b"x,-3\n" * len(SPELLINGS)
    assert seen == list(SPELLINGS.values())


REFUSED = {
    "an empty cell": ["", " ", '""', '" \t"'],
    "not an integer": [
        *("+", "-", '"-"', "--1", "+-1", "- 1", "1-", "0x1", "1/2", ":", "nan", "NULL", "1\0"),
        *("98765_4321", "98765 4321", "987654321.0", "987654321e0", '"987,654,321"', '"1"""'),
        *("\x0b1", "\xa01", "\u0663", "\uff11", '"1\n"'),
    ],
    "an integer beyond int64": [
        *("9223372036854775808", "-9223372036854775809", "18446744073709551616"),
        *("18446744073709551617", "-18446744073709551615", "99999999999999999999"),
        "987654321" * 7,
    ],
    "more than 64 characters": ["0" * 64 + "1"],
}


@pytest.mark.parametrize(
    ("cell", "why"),
    [pytest.param(cell, why, id=ascii(cell)) for why, cells in REFUSED.items() for cell in cells],
)
def test_invalid_count_raises(cell: str, why: str) -> None:
    data = f'x,"the ""count\n",y\r\n\r,1,\n"\n\n",2,\nz,{cell},"\n"\nz,1,\n'.replace("\r,", "w,")
    with pytest.raises(delimited.DataError) as caught:
        released(data.encode(), 'the "count\n')
    assert str(caught.value) == f"line 7: column 'the \"count\\n': {why}"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "the file is empty: it must begin with a header"),
        ("\ufeff", "the file is empty: it must begin with a header"),
        ("x,y\n1,2\n", r"line 1: .* no column 'count': the header has \['x', 'y'\]"),
        ("Count, count,count \n1,2,3\n", r"line 1: .* has \['Count', ' count', 'count '\]"),
        ("\ufeff\ufeffcount\n1\n", r"line 1: .* no column 'count': .*\['\\ufeffcount'\]"),
        (
            'x;"count"\n1;2\n',
            "line 1: .* no column 'count': try --delimiter ';'",
        ),
        ("x\tcount\n1\t2\n", "line 1: .* no column 'count': try --delimiter 'tab'"),
        ('x,"a"b\n1,2\n', "line 1: a stray quote: quote the cell, and double the quotes in it"),
        # Without a header, the first row has counts.
        ("a 1,7654321,é;7\n", r"line 1: .* the header has \['a 1', '\.\.\.', '\.\.\.'\]"),
        ("count,count\n1,2\n", "line 1: there is more than one column 'count'"),
        ('"count",x,count\n1,2,3\n', "line 1: there is more than one column 'count'"),
        ("count,x\n1,2\n3\n4,5\n", "line 3: a row of 1 cells, where the header has 2"),
        ("count,x\n1,2\n3,4,5\n", "line 3: a row of 3 cells, where the header has 2"),
        ("count,x\n1,2\n\n3,4\n", "line 3: a row of 1 cells, where the header has 2"),
        ("count,x\n1,2\n\n", "line 3: a row of 1 cells, where the header has 2"),
        ('count,x\n1,"2\n\n"\n3', "line 5: a row of 1 cells, where the header has 2"),
        ("count\n\n", "line 2: column 'count': an empty cell"),
        ("count\r\n\r\n", "line 2: column 'count': an empty cell"),
        ('count,x\n1,2\n3,"4\n5,6\n', "line 3: the file ends within this row: is a quote open?"),
        ('"count\n', "line 1: the file ends within this row: is a quote open?"),
        ("count\r1\r", "line 1: CR without LF: rows must end with LF or CRLF"),
        ("count,x\n1,2\r3,4\n", "line 2: CR without LF: rows must end with LF or CRLF"),
        ("count\n1\r\r\n", "line 2: CR without LF: rows must end with LF or CRLF"),
        (
            'count,x\n1,5" disk,6"\n',
            "line 2: a stray quote: quote the cell, and double the quotes in it",
        ),
        ('count,x\n1, "2"\n', "line 2: a stray quote: quote the cell, and double the quotes in it"),
        ('count,x\n1,"2" \n', "line 2: a stray quote: quote the cell, and double the quotes in it"),
        (
            'count,x\n1,"a\\"b\n',
            "line 2: a stray quote: quote the cell, and double the quotes in it",
        ),
        ('count,x\n1,""a\n', "line 2: a stray quote: quote the cell, and double the quotes in it"),
    ],
)
def test_invalid_table_raises(data: str, why: str) -> None:
    for block in (1, 3, 2**17):
        with pytest.raises(delimited.DataError) as caught:
            released(data.encode(), block=block)
        assert re.fullmatch(why.replace("?", r"\?"), str(caught.value))


def test_other_encodings() -> None:
    # Other cells may use any encoding that extends ASCII.
    assert released(b"count,x\n1,\xff\xe9\n", noise=negated) == b"count,x\n-2,\xff\xe9\n"
    for data in ("count\n1\n".encode("utf-16"), b"count,\xe9\n1,2\n"):
        with pytest.raises(delimited.DataError, match="line 1: the header is not UTF-8"):
            released(data)


def test_tables_without_rows() -> None:
    for data in (b"count", b"x,count\n", b"\xef\xbb\xbfcount\r\n"):
        assert released(data, noise=negated) == data


def test_long_row_raises_before_filling_memory() -> None:
    class Endless(io.RawIOBase):
        size = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = b"x" * len(buffer) if self.size else b'count,x\n1,"'.ljust(len(buffer))
            self.size += len(buffer)
            return len(buffer)

    source = Endless()
    with pytest.raises(delimited.DataError, match=f"line 2: a row of more than {2**20} bytes"):
        delimited.release(io.BufferedReader(source), io.BytesIO(), ["count"], negated)
    assert source.size < 2**21
    most = b'1,"' + b"\n" * (2**20 - 5) + b'"'
    data = b"count,x\n" + most + b"\n3,4"
    assert released(data, noise=negated) == data.replace(b"1,", b"-2,").replace(b"3,", b"-4,")


@pytest.mark.parametrize("row", ["y" * 10**6, '"\\n"' * 3 * 10**5, "," * 10**6])
def test_long_row_raises_quickly(row: str) -> None:
    begun = time.monotonic()
    with pytest.raises(delimited.DataError, match="line 2: a row of"):
        released(f"count,x\n{row}\n".encode())
    assert time.monotonic() - begun < 5


# Releases


def write_table(path: Path, rows: int, count: int = 7) -> None:
    path.write_text("row,count\n" + "".join(f"{i},{count}\n" for i in range(rows)))


def counts_of(path: Path, place: int = 1) -> NDArray[np.int64]:
    _, *rows = read(path.read_bytes())
    return np.array([int(row[place]) for row in rows], dtype=np.int64)


def test_release(main: Main, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/berkeley_admissions.csv", tmp_path / "in.csv")
    release = ["release", "in.csv", "out.csv", "--column=count", "--epsilon=1", "--bounds", 0, 800]
    assert main(*release) == released_to("out.csv", 24)
    true, noisy = read(Path("in.csv").read_bytes()), read(Path("out.csv").read_bytes())
    assert [row[:3] for row in noisy] == [row[:3] for row in true]
    assert noisy[0] == true[0]
    assert max(abs(counts_of(Path("in.csv"), 3) - counts_of(Path("out.csv"), 3))) < 60
    assert names(tmp_path) == ["in.csv", "out.csv"]


def test_distribution(main: Main, tmp_path: Path) -> None:
    n, count, (lower, upper) = 200_000, 7, (0, 12)
    write_table(Path("in.csv"), n, count)
    arguments = ["--column=count", "--epsilon=1", "--sensitivity=3", "--bounds", lower, upper]
    assert main("release", "in.csv", "out.csv", *arguments).code == 0
    observed = np.bincount(counts_of(Path("out.csv")), minlength=upper + 1)
    assert not rejects(observed, censored_pmf(count, 3, lower, upper) * n)


def test_noise_is_fresh(main: Main, tmp_path: Path) -> None:
    # Two of these draws at scale 2**57 are equal with probability below 1e-6.
    path = Path("in.csv")
    path.write_text("a,b,c\n" + "0,x,0\n" * 20_000)
    scale = ["--scale", str(2**57)]
    for out in ("one.csv", "two.csv"):
        assert main("release", path, out, "--column=c", "--column=a", *scale).code == 0
    noises = [counts_of(Path(out), place) for out in ("one.csv", "two.csv") for place in (0, 2)]
    assert len(np.unique(np.abs(noises))) == 80_000


def test_counts_outside_bounds_are_clamped(main: Main, tmp_path: Path) -> None:
    Path("in.csv").write_text("count\n-9223372036854775808\n5\n9223372036854775807\n")
    assert main(*PLAIN, "--bounds", 3, 3) == released_to("out.csv", 3)
    assert Path("out.csv").read_bytes() == b"count\n3\n3\n3\n"


@pytest.mark.parametrize("delimiter", [",", ";", "|", "tab"])
def test_delimiters(main: Main, tmp_path: Path, delimiter: str) -> None:
    between = "\t" if delimiter == "tab" else delimiter
    Path("in.csv").write_text(f"x{between}count\n.{between}5\n")
    assert main(*PLAIN, "--bounds", 3, 3, "--delimiter", delimiter).code == 0
    assert Path("out.csv").read_text() == f"x{between}count\n.{between}3\n"


def test_memory_is_independent_of_file_size(tmp_path: Path) -> None:
    peaks = []
    for rows in (40_000, 160_000):
        write_table(tmp_path / "in.csv", rows)
        before = "import atexit, tracemalloc\ntracemalloc.start()\n" + (
            "atexit.register(lambda: print(tracemalloc.get_traced_memory()[1]))"
        )
        done = finish(start(*PLAIN, cwd=tmp_path, before=before))
        assert done.code == 0, done
        assert len(counts_of(tmp_path / "out.csv")) == rows
        (tmp_path / "out.csv").unlink()
        peaks.append(int(done.out.splitlines()[-1]))
    # The second file is a million bytes longer.
    assert (tmp_path / "in.csv").stat().st_size > 1_300_000
    assert abs(peaks[1] - peaks[0]) < 200_000
    assert max(peaks) < 20_000_000


def test_existing_files_are_not_overwritten(main: Main, tmp_path: Path) -> None:
    Path("in.csv").write_text("count\n5\n")
    Path("there.csv").write_text("precious")
    os.link("in.csv", "hard.csv")
    os.symlink("in.csv", "soft.csv")
    os.symlink("nowhere.csv", "dangling.csv")
    os.mkdir("directory")
    before = names(tmp_path)
    for out in ["in.csv", "./in.csv", *before]:
        arguments = ["release", "in.csv", out, "--column", "count", "--epsilon", "1"]
        check_refused(main(*arguments), 1, "already exists, and is not overwritten")
    assert names(tmp_path) == before
    assert Path("in.csv").read_text() == "count\n5\n"
    assert Path("there.csv").read_text() == "precious"
    # Before anything is read.
    check_refused(
        main("release", "no.csv", "there.csv", *PLAIN[3:]), 1, "there.csv: already exists"
    )


def test_data_errors_leave_no_output(main: Main, tmp_path: Path) -> None:
    # The error is in a later block.
    text = "count,x\n" + "1,2\n" * 100_000 + f"{SECRET}.0,2\n"
    Path("in.csv").write_text(text)
    check_refused(main(*PLAIN), 1, r"in\.csv: line 100002: column 'count': not an integer\n")
    assert names(tmp_path) == ["in.csv"]


def test_missing_files(main: Main, tmp_path: Path) -> None:
    check_refused(main(*PLAIN), 1, r"error: in\.csv: No such file or directory")
    Path("in.csv").write_text("count\n5\n")
    out = "missing/out.csv"
    check_refused(
        main("release", "in.csv", out, *PLAIN[3:]), 1, f"{out}: No such file or directory"
    )
    check_refused(main("release", ".", "out.csv", *PLAIN[3:]), 1, r"\.: Is a directory")
    assert names(tmp_path) == ["in.csv"]


def test_output_permissions_follow_umask(main: Main, tmp_path: Path) -> None:
    Path("in.csv").write_text("count\n5\n")
    for mask in (0o022, 0o027):
        old = os.umask(mask)
        try:
            assert main(*PLAIN).code == 0
        finally:
            os.umask(old)
        assert stat.S_IMODE(os.stat("out.csv").st_mode) == 0o666 & ~mask
        os.unlink("out.csv")


def test_full_disk_leaves_no_file(tmp_path: Path) -> None:
    write_table(tmp_path / "in.csv", 10_000)
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    check_refused(finish(start(*PLAIN, cwd=tmp_path, before=limit)), 1, "File too large")
    assert names(tmp_path) == ["in.csv"]


def no_links(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_without_hard_links(main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", no_links)
    Path("in.csv").write_text("count\n5\n")
    assert main(*PLAIN, "--bounds", 3, 3) == released_to("out.csv", 1)
    assert Path("out.csv").read_text() == "count\n3\n"
    check_refused(main(*PLAIN), 1, "already exists")
    os.unlink("out.csv")
    monkeypatch.setattr(os, "replace", no_links)
    check_refused(main(*PLAIN), 1, "Operation not permitted")
    assert names(tmp_path) == ["in.csv"]


@pytest.mark.parametrize("links", [True, False])
def test_output_created_meanwhile_is_not_overwritten(
    main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    Path("in.csv").write_text("count\n5\n")
    sync = os.fsync

    def other(descriptor: int) -> None:
        sync(descriptor)
        Path("out.csv").write_text("precious")

    monkeypatch.setattr(os, "fsync", other)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    check_refused(main(*PLAIN), 1, r"out\.csv: already exists, and is not overwritten")
    assert Path("out.csv").read_text() == "precious"
    assert names(tmp_path) == ["in.csv", "out.csv"]


# Standard input and output, gzip


def piped(cwd: Path, text: str, *argv: object, **options: Any) -> Done:
    """Run a command with this text on standard input."""
    process = start(*argv, cwd=cwd, stdin=subprocess.PIPE, **options)
    out, err = process.communicate(text, timeout=SECONDS)
    return Done(process.returncode, out, err)


def test_standard_input_and_output(tmp_path: Path) -> None:
    text, options = "x,count\n1,5\n2,6", [*PLAIN[3:], "--bounds", "3", "3"]
    noisy, told = "x,count\n1,3\n2,3", "2 rows with noise written to standard output\n"
    assert piped(tmp_path, text, "release", "-", "-", *options) == Done(0, noisy, told)
    assert names(tmp_path) == []
    done = piped(tmp_path, text, "release", "-", "out.csv", *options)
    assert done == released_to("out.csv", 2)
    assert (tmp_path / "out.csv").read_text() == noisy
    assert piped(tmp_path, "", "release", "out.csv", "-", *options) == Done(0, noisy, told)
    # `./-` is an ordinary file.
    (tmp_path / "-").write_text(text)
    done = piped(tmp_path, "", "release", "./-", "new.csv", *options)
    assert done == released_to("new.csv", 2)
    assert names(tmp_path) == ["-", "new.csv", "out.csv"]


def test_errors_leave_standard_output_empty(tmp_path: Path) -> None:
    text = "count\n" + "1\n" * 200_000 + f"{SECRET}.0\n"
    done = piped(tmp_path, text, "release", "-", "-", *PLAIN[3:])
    check_refused(done, 1, "standard input: line 200002: column 'count': not an integer")
    for other in ("in.parquet", "-"):
        done = piped(tmp_path, text, "release", other, "-", *PLAIN[3:], "--delimiter=x")
        check_refused(done, 2)
    done = piped(tmp_path, text, "release", "in.parquet", "-", *PLAIN[3:])
    check_refused(done, 2, "two Parquet files, or two CSV files")
    assert names(tmp_path) == []


def test_gzip(main: Main, tmp_path: Path) -> None:
    text = b"x,count\n" + b"'a name',5\n" * 100_000
    noisy = text.replace(b",5", b",3")
    Path("in.csv").write_bytes(text)
    # Two members, as in concatenated files.
    Path("in.csv.GZ").write_bytes(gzip.compress(text[:1001]) + gzip.compress(text[1001:]))
    for source in ("in.csv", "in.csv.GZ"):
        for target in ("out.csv", "out.csv.gz"):
            done = main("release", source, target, *PLAIN[3:], "--bounds", 3, 3)
            assert done == released_to(target, 100_000)
            found = Path(target).read_bytes()
            assert (gzip.decompress(found) if target.endswith(".gz") else found) == noisy
            assert b".part" not in found
            os.unlink(target)
    assert names(tmp_path) == ["in.csv", "in.csv.GZ"]


def test_damaged_gzip_raises(main: Main, tmp_path: Path) -> None:
    whole = gzip.compress(f"count\n{SECRET}\n".encode())
    wrong = [SECRET.encode(), whole[:-1], whole[:14], whole + b"x", whole[:-8] + bytes(8)]
    for data in [*wrong, whole[:12] + b"\xff" * 9]:
        Path("in.csv.gz").write_bytes(data)
        done = main("release", "in.csv.gz", "out.csv.gz", *PLAIN[3:])
        check_refused(done, 1, r"in\.csv\.gz: not a gzip file, or a damaged one")
        assert names(tmp_path) == ["in.csv.gz"]
    Path("in.csv.gz").write_bytes(gzip.compress(f"count\n{SECRET}.0\n".encode()))
    done = main("release", "in.csv.gz", "out.csv.gz", *PLAIN[3:])
    check_refused(done, 1, r"in\.csv\.gz: line 2: column 'count': not an integer")
    assert names(tmp_path) == ["in.csv.gz"]


def test_leftover_of_killed_command_is_reported(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    waiting.process.kill()
    finish(waiting.process)
    waiting.input.close()
    (part,) = tmp_path.glob(".geomdp-*.part")
    (tmp_path / "new.csv").write_text("count\n5\n")
    for directory in (tmp_path, tmp_path.parent):
        target = tmp_path / f"{directory.name}.csv"
        done = finish(start("release", tmp_path / "new.csv", target, *PLAIN[3:], cwd=directory))
        assert done[:2] == released_to(str(target), 1)[:2]
        assert done.err.startswith(f"geomdp: note: {part} is unfinished: ")
        assert len(done.err.splitlines()) == 1
    assert part.exists()


# The parent process may ignore signals, as shells do for background jobs.
DEFAULTS = """
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""


class Waiting:
    """A release waiting for more input."""

    def __init__(self, directory: Path, before: str = DEFAULTS) -> None:
        self.directory = directory
        os.mkfifo(directory / "in.csv")
        self.process = start(*PLAIN, cwd=directory, before=before)
        self.input = (directory / "in.csv").open("wb", buffering=0)
        # More than a block, and part of a row.
        self.input.write(b"count\n" + b"12345\n" * 40_000 + b"1")
        deadline = time.monotonic() + SECONDS
        while not self.written():
            assert time.monotonic() < deadline
            assert self.process.poll() is None
            time.sleep(0.01)

    def written(self) -> int:
        return sum(path.stat().st_size for path in self.directory.glob(".geomdp-*.part"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_release_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    waiting = Waiting(tmp_path)
    assert len(names(tmp_path)) == 2
    waiting.process.send_signal(number)
    check_refused(finish(waiting.process), 1, "error: interrupted\n")
    waiting.input.close()
    assert names(tmp_path) == ["in.csv"]


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, before="signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    waiting.process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    waiting.input.write(b"\n")
    waiting.input.close()
    assert finish(waiting.process) == released_to("out.csv", 40_001)
    assert names(tmp_path) == ["in.csv", "out.csv"]
    assert len((tmp_path / "out.csv").read_bytes().splitlines()) == 40_002


def test_signal_handlers_are_restored(main: Main, tmp_path: Path) -> None:
    Path("in.csv").write_text("count\n5\n")
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    for code in (0, 1):
        assert main(*PLAIN).code == code
        assert [signal.getsignal(number) for number in numbers] == before


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_second_interrupt_does_not_stop_cleanup(interruptible: None) -> None:
    def interrupted() -> None:
        with cli._interrupts():
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_interrupt_while_naming_the_file_is_deferred(
    main: Main, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    Path("in.csv").write_text("count\n5\n")
    link = os.link

    def interrupt(*names: str) -> None:
        signal.raise_signal(signal.SIGINT)
        link(*names)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "link", interrupt)
    assert main(*PLAIN, "--bounds", 3, 3) == released_to("out.csv", 1)
    assert Path("out.csv").read_text() == "count\n3\n"


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    write_table(tmp_path / "in.csv", 50_000)
    reader, terminal = pty.openpty()
    done = finish(start(*PLAIN, cwd=tmp_path, stderr=terminal))
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(reader, 2**16):
            shown += more
    os.close(reader)
    assert done.code == 0
    bars = shown.decode().split("\r")
    percents = [int(bar.split()[-1].rstrip("%")) for bar in bars if "%" in bar]
    assert percents == sorted(set(percents))
    assert len(percents) > 2
    assert percents[-1] == 100
    assert bars[-2:] == [" " * 57, ""]
    assert max(map(len, bars)) <= 57


# The other commands


@pytest.mark.parametrize("method", ["exact", "ceiling", "continuous"])
@pytest.mark.parametrize("alpha", ["0.05", "1/3", "1e-30", "1"])
def test_accuracy_matches_library(main: Main, method: str, alpha: str) -> None:
    level, arguments = Fraction(alpha), ["--alpha", alpha, "--method", method]
    for noise, scale in [
        (["--epsilon", "0.1"], Fraction(10)),
        (["--epsilon", "1/3", "--sensitivity", "5"], Fraction(15)),
        (["--scale", ".25e1"], Fraction(5, 2)),
        (["--epsilon", "1e-400"], Fraction(10**400)),
    ]:
        done = main("accuracy", *noise, *arguments)
        first, sentence = done.out.splitlines()
        assert first == repr(accuracy.scale_to_accuracy(scale, level, method=method))  # type: ignore[arg-type]
        assert f" more than {first} with " in sentence
        assert f" probability at most {alpha}" in sentence
        assert ("Laplace" in sentence) == (method == "continuous")
        assert (done.code, done.err) == (0, "")


def test_accuracy_of_releases(main: Main) -> None:
    mechanism = GeometricMechanism(Fraction(1, 10), 3, bounds=(-5, 40))
    noise = ["--epsilon", "0.1", "--sensitivity", "3", "--bounds", "-5", "40", "--alpha", "0.05"]
    expected = {
        "": accuracy.release_accuracy(mechanism, Fraction(1, 20)),
        "--count=-3": accuracy.release_accuracy(mechanism, Fraction(1, 20), -3),
        "--count=90": accuracy.release_accuracy(mechanism, Fraction(1, 20), 90),
        "--simultaneous=4": accuracy.simultaneous_accuracy(mechanism, Fraction(1, 20), 4),
    }
    found = {more: main("accuracy", *noise, *filter(None, [more])) for more in expected}
    assert {more: done.out.split("\n")[0] for more, done in found.items()} == {
        more: str(a) for more, a in expected.items()
    }
    assert "the bounds.\n" in found[""].out
    assert "for a true count of -3.\n" in found["--count=-3"].out
    assert "At least one of 4 noisy counts" in found["--simultaneous=4"].out
    # Without bounds the limits of int64 apply.
    whole = GeometricMechanism(1)
    for more, a in [
        ("--count=9223372036854775807", accuracy.release_accuracy(whole, 0.5, 2**63 - 1)),
        ("--simultaneous=1000", accuracy.simultaneous_accuracy(whole, 0.5, 1000)),
    ]:
        assert main("accuracy", "--epsilon=1", "--alpha=1/2", more).out.startswith(f"{a}\n")


@given(
    st.integers(0, 1000),
    st.floats(1e-9, 0.999) | st.sampled_from([0.05, 0.5]),
    st.integers(1, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_printed_epsilon_is_least(a: int, alpha: float, sensitivity: int) -> None:
    # The printed epsilon gives the accuracy when passed back; a smaller one does not.
    level = Fraction(repr(alpha))
    options = ["--alpha", repr(alpha), "--sensitivity", str(sensitivity)]
    text = cli._run(["epsilon", "--accuracy", str(a), *options]).split("\n")[0]
    library = accuracy.accuracy_to_epsilon(a, level, sensitivity)
    assert Fraction(library) <= Fraction(text) <= Fraction(library) * (1 + Fraction(1, 2**50))
    assert float(text) in (library, math.nextafter(library, math.inf))
    assert cli._run(["accuracy", "--epsilon", text, *options]).startswith(f"{a}\n")
    less = str(Fraction(text) * Fraction(999_999, 1_000_000))
    assert cli._run(["accuracy", "--epsilon", less, *options]).startswith(f"{a + 1}\n")


def test_epsilon(main: Main) -> None:
    # The root of 2 q**7 / (1 + q) = 0.05 is 0.456901730181193536991...
    done = main("epsilon", "--accuracy", "6", "--alpha", "0.05")
    assert done.out == (
        "0.45690173018119357\nThis is the least epsilon for which a noisy count differs from the "
        "true count by more than 6 with probability at most 0.05.\n"
    )
    for method, start in [
        ("ceiling", "With this epsilon, a"),
        ("continuous", "A count with Laplace"),
    ]:
        done = main("epsilon", "--accuracy", "6", "--alpha", "0.05", "--method", method)
        first, sentence = done.out.splitlines()
        library = accuracy.accuracy_to_epsilon(6, Fraction(1, 20), method=method)  # type: ignore[arg-type]
        assert float(first) in (library, math.nextafter(library, math.inf))
        assert sentence.startswith(start)
        assert (done.code, done.err) == (0, "")


def test_certificates(main: Main) -> None:
    mechanism = GeometricMechanism(Fraction(1, 10), 3, bounds=(-5, 40))
    noise = ["--epsilon", "0.1", "--sensitivity", "3", "--bounds", "-5", "40"]
    assert main("certificate", *noise) == Done(0, f"{mechanism.certificate()}\n", "")
    tight = mechanism.certificate(tight=True)
    assert main("certificate", *noise, "--tight").out == f"{tight}\n"
    found = main("certificate", *noise, "--tight", "--json", "--dtype", "int8").out
    assert found == f"{tight.to_json()}\n"
    report = verify(found)
    assert report.tight_epsilon == tight.tight_epsilon
    for dtype in cli._DTYPES:
        bounds = limits(dtype)
        given = ["--bounds", *map(str, bounds)] if bounds else []
        done = main("certificate", "--scale=2", "--json", "--dtype", dtype, *given)
        whole = GeometricMechanism.from_scale(2, bounds).certificate(dtype)
        assert json.loads(done.out) == json.loads(whole.to_json())


# Parameters


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("+2.", Fraction(2)),
        ("1e-3", Fraction(1, 1000)),
        ("2.5E+2", Fraction(250)),
        ("1/3", Fraction(1, 3)),
        ("-6/004", Fraction(-3, 2)),
        ("5e-324", Fraction(5, 10**324)),
        ("1.7976931348623157e308", Fraction(17976931348623157 * 10**292)),
    ],
)
def test_numbers_are_exact(text: str, number: Fraction) -> None:
    assert cli._number(text) == number
    assert str(cli._number(text)) == text


def test_numbers_are_shown_as_written(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in CPython 3.13 and later.
    monkeypatch.setattr(
        Fraction, "__format__", lambda x, _: f"{x.numerator}/{x.denominator}", raising=False
    )
    for alpha in ("0.05", "5e-2", "2/40"):
        done = main("accuracy", "--epsilon", "0.5", "--alpha", alpha)
        assert done.out.endswith(f"with probability at most {alpha}.\n")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float_reprs_are_accepted(number: float) -> None:
    assert cli._number(repr(number)) == Fraction(repr(number))
    # Likewise all digits, without an exponent.
    assert cli._number(str(Decimal(number))) == Fraction(number)


NO_NUMBERS = [
    *("", " ", "x", "inf", "-inf", "nan", "1_000", "1,5", "0x1", " 1", "1 ", "1\n", "1e", "e1"),
    *("1e400", "1e999999999", "1e-999999999", "1/0", "1/-3", "1/2/3", "1.5/2", "/2", "1/", "."),
    *("\u0663", "\uff11", "--1", "1j", "True", "9" * 400, "9" * 10_000, "1/" + "9" * 10_000),
]


@pytest.mark.parametrize("text", NO_NUMBERS, ids=lambda text: ascii(text[:12]))
def test_invalid_number_raises(main: Main, text: str) -> None:
    begun = time.monotonic()
    for name in ("epsilon", "alpha"):
        options = {"epsilon": "1", "alpha": "0.1"} | {name: text}
        done = main("accuracy", *(f"--{key}={value}" for key, value in options.items()))
        check_refused(done, 2, rf"argument --{name}: .* is not accepted: give ")
        assert len(done.err) < 200
    assert time.monotonic() - begun < 1


NOISE = ["--epsilon", "1"]
ALL_NOISE = [*NOISE, "--alpha", "0.1"]
MISUSES: list[tuple[list[str], str]] = [
    ([], "the following arguments are required: COMMAND"),
    (["releases"], "invalid choice: 'releases'"),
    (["--epsilon", "1"], "COMMAND|invalid choice"),
    (["accuracy"], "arguments are required: --alpha"),
    (["accuracy", *NOISE], "arguments are required: --alpha"),
    (["accuracy", "--alpha", "0.1"], "one of the arguments --epsilon --scale is required"),
    (["accuracy", *ALL_NOISE, "--scale", "1"], "not allowed with argument --epsilon"),
    (["accuracy", "--alpha=1", "--scale=1", "--sensitivity=2"], "--sensitivity goes with"),
    (["accuracy", *ALL_NOISE, "extra\nword"], r"unrecognized arguments: extra\\nword"),
    (["accuracy", "--eps", "1", "--alpha", "0.1"], "--eps"),
    (["accuracy", "--epsilon", "--alpha", "0.1"], "--epsilon: expected one argument"),
    (["accuracy", "--epsilon", "0", "--alpha", "0.1"], "'0' is not accepted: give a positive"),
    (["accuracy", "--epsilon=-1/2", "--alpha", "0.1"], "'-1/2' is not accepted: give a positive"),
    (["accuracy", "--scale", "0", "--alpha", "0.1"], "'0' is not accepted: give a positive"),
    (["accuracy", *NOISE, "--alpha", "2"], "'2' is not accepted: give a number above 0, at most 1"),
    (
        ["accuracy", *NOISE, "--alpha", "10/9"],
        "'10/9' is not accepted: give a number above 0, at most 1",
    ),
    (["accuracy", *NOISE, "--alpha", "0"], "'0' is not accepted: give a number above 0, at most 1"),
    (["accuracy", *ALL_NOISE, "--sensitivity", "0"], "'0' .* give an integer of at least 1"),
    (["accuracy", *ALL_NOISE, "--sensitivity", "1.5"], "'1.5' .* give an integer"),
    (["accuracy", *ALL_NOISE, "--sensitivity", "9" * 39], "at least 1 and at most 38 digits"),
    (["accuracy", *ALL_NOISE, "--method", "best"], "invalid choice: 'best'"),
    (["accuracy", *ALL_NOISE, "--bounds", "0"], "expected 2 arguments"),
    (["accuracy", *ALL_NOISE, "--bounds", "5", "3"], r"bounds = \(5, 3\) is not accepted"),
    (["accuracy", *ALL_NOISE, "--bounds", "0", "x"], "'x' is not accepted: give an integer"),
    (["accuracy", *ALL_NOISE, "--bounds", "0", str(2**64)], "bounds"),
    (["accuracy", *ALL_NOISE, "--bounds=0", "5", "--method=ceiling"], "argument|--method"),
    (
        ["accuracy", *ALL_NOISE, "--method=ceiling", "--bounds", "0", "5"],
        "noise without bounds only",
    ),
    (["accuracy", *ALL_NOISE, "--method=ceiling", "--count", "0"], "noise without bounds only"),
    (["accuracy", *ALL_NOISE, "--count", "1", "--simultaneous", "1"], "not allowed with"),
    (["accuracy", *ALL_NOISE, "--count", str(2**63)], "counts beyond int64"),
    (["accuracy", *ALL_NOISE, "--simultaneous", "0"], "give an integer of at least 1"),
    (["accuracy", "--epsilon", "1e-40", "--alpha", "1", "--count", "1"], "scale = .* too large"),
    (["epsilon", "--alpha", "0.1"], "arguments are required: --accuracy"),
    (["epsilon", "--accuracy", "-1", "--alpha", "0.1"], "accuracy = -1 is not accepted"),
    (["epsilon", "--accuracy", "1.5", "--alpha", "0.1"], "'1.5' .* give an integer"),
    (
        ["epsilon", "--accuracy=0", "--alpha=0.1", "--method=ceiling"],
        "accuracy = 0 is not accepted",
    ),
    (["epsilon", "--accuracy", "1", "--alpha", "2"], "--alpha: '2' is not accepted"),
    (["certificate"], "one of the arguments --epsilon --scale is required"),
    (["certificate", *NOISE, "--tight"], "100000"),
    (["certificate", *NOISE, "--dtype", "float64"], "invalid choice: 'float64'"),
    (["certificate", *NOISE, "--dtype", "int8", "--bounds", "0", "300"], "bounds"),
    (["certificate", "--epsilon", "1e-30"], "scale = .* too large"),
    (["release", "in.csv", *NOISE, "--column", "count"], "arguments are required: OUT"),
    (["release", "in.csv", "out.csv", "--column", "count"], "--epsilon --scale is required"),
    (["release", "in.csv", "out.csv", *NOISE], "arguments are required: --column"),
    ([*PLAIN, "--column", "x", "--column", "count"], "twice for the same column"),
    ([*PLAIN, "--delimiter", "x"], "invalid choice: 'x'"),
    ([*PLAIN, "--delimiter", ""], "invalid choice: ''"),
    ([*PLAIN, "--scale", "1"], "not allowed with argument"),
    ([*PLAIN, "--bounds", "5", "3"], r"bounds = \(5, 3\) is not accepted"),
    ([*PLAIN, "--bounds", "0", str(2**63)], "bounds .* the limits of these counts"),
    ([*PLAIN[:-1], "1e-30"], "scale = .* too large"),
    ([*PLAIN[:-2], "--scale", "0"], "'0' is not accepted: give a positive number"),
    (["plot"], "arguments are required: PLOT"),
    (["plot", "pie"], "invalid choice: 'pie'"),
    (["plot", "variance"], "arguments are required: --output"),
    (["plot", "variance", "--output", "x.exe"], "'x.exe' .* ends with one of .pdf, .png, .svg"),
    (["plot", "variance", "--output", "png"], "'png' is not accepted"),
    (["plot", "variance", "--output=x.png", "--epsilons", "1"], "expected 2 arguments"),
    (["plot", "variance", "--output=x.png", "--epsilons", "2", "1"], "the lower one first"),
    (["plot", "accuracy", "--output=x.png", "--alpha", "2"], "--alpha: '2' is not accepted"),
    (["plot", "pmf", "--output=x.png", *NOISE], "arguments are required: --count"),
    (["plot", "pmf", "--output=x.png", *NOISE, "--count", "1.5"], "give an integer"),
]


@pytest.mark.parametrize(
    ("argv", "pattern"), MISUSES, ids=[" ".join(argv)[:60] for argv, _ in MISUSES]
)
def test_misuse_raises(main: Main, tmp_path: Path, argv: list[str], pattern: str) -> None:
    Path("in.csv").write_text(f"count\n{SECRET}\n")
    check_refused(main(*argv), 2, pattern)
    assert names(tmp_path) == ["in.csv"]


def test_names_are_escaped_in_messages(main: Main, tmp_path: Path) -> None:
    Path("in\n\x1b[1m\u2028.csv").write_text("count\n5\n")
    check_refused(main("release", "in\n\x1b[1m\u2028.csv", "o\nut.csv", *NOISE, "--column=a\nb"), 1)
    check_refused(main("release", "in\n\x1b[1m\u2028.csv", "out.csv", *NOISE, "--column=\udcff"), 1)
    check_refused(main("release", "no\n.csv", "out.csv", *NOISE, "--column=count"), 1)
    assert len(names(tmp_path)) == 1


# Help and standard output


def commands(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """Yield all commands as lists of words."""
    yield parser.prog.split()[1:]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from commands(command)


COMMANDS = list(commands(cli._parser()))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_examples_work(main: Main, tmp_path: Path, command: list[str]) -> None:
    shutil.copy(ROOT / "examples/berkeley_admissions.csv", tmp_path / "counts.csv")
    done = main(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 82
    text, example = done.out.split("\nexample:\n")
    assert "usage: geomdp" in text
    program, *argv = shlex.split(example)
    assert program == "geomdp"
    assert argv[: len(command)] == command
    if "plot" in argv:
        pytest.importorskip("matplotlib")
    done = main(*argv)
    assert (done.code, done.err) == (0, "")
    assert bool(done.out) == ("plot" not in argv)


def test_version(main: Main) -> None:
    assert main("--version") == Done(0, f"geomdp {geomdp.__version__}\n", "")


def test_as_a_module(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "geomdp", "accuracy", "--epsilon", "0.5", "--alpha", "0.05"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("6\n")
    assert done.stderr == ""
    argv[-1] = "x"
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    check_refused(Done(done.returncode, done.stdout, done.stderr), 2)


def test_help_imports_lazily(tmp_path: Path) -> None:
    before = (
        "import atexit\n"
        "late = ['geomdp.accuracy', 'geomdp._files.delimited', 'geomdp.plot', 'matplotlib']\n"
        "atexit.register(lambda: print([name for name in late if name in sys.modules]))"
    )
    done = finish(start("--help", cwd=tmp_path, before=before))
    assert done.out.endswith("--alpha 0.05\n[]\n")


#: Buffered and unbuffered: the interpreter flushes a buffer again at exit.
each_output = pytest.mark.parametrize(
    ("argv", "unbuffered"),
    [
        (["--help"], ""),
        (["--help"], "1"),
        (["certificate", "--epsilon=1", "--json"], ""),
        (["release", "in.csv", "-", "--column=count", "--epsilon=1"], ""),
    ],
)


@each_output
def test_closed_pipe_is_not_reported(tmp_path: Path, argv: list[str], unbuffered: str) -> None:
    write_table(tmp_path / "in.csv", 3)
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*argv, cwd=tmp_path, stdout=writer, unbuffered=unbuffered)
    os.close(writer)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@each_output
def test_standard_output_on_full_disk_fails(
    tmp_path: Path, argv: list[str], unbuffered: str
) -> None:
    write_table(tmp_path / "in.csv", 3)
    with open("/dev/full", "w") as full:
        process = start(*argv, cwd=tmp_path, stdout=full, unbuffered=unbuffered)
        _, err = process.communicate(timeout=SECONDS)
    check_refused(Done(process.returncode, "", err), 1, "No space left on device")


def test_without_standard_output(tmp_path: Path) -> None:
    Path(tmp_path / "in.csv").write_text("count\n5\n")
    closed = "os.close(1)\nsys.stdout = None"
    assert finish(start(*PLAIN, cwd=tmp_path, before=closed)) == Done(0, "", "")
    assert names(tmp_path) == ["in.csv", "out.csv"]
    done = finish(start("release", "in.csv", "-", *PLAIN[3:], cwd=tmp_path, before=closed))
    check_refused(done, 1, "standard output: Bad file descriptor")
    closed = "os.close(0)\nsys.stdin = None"
    done = finish(start("release", "-", "new.csv", *PLAIN[3:], cwd=tmp_path, before=closed))
    check_refused(done, 1, "standard input: Bad file descriptor")
    assert names(tmp_path) == ["in.csv", "out.csv"]


# Plots

PICTURES = {
    "pmf": ["--scale=2", "--count", "-3", "0"],
    "accuracy": ["--sensitivity=2", "--alpha=1/3"],
    "variance": ["--epsilons", "1/2", "3"],
}


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize(
    ("ending", "start"), [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")]
)
def test_plots(main: Main, tmp_path: Path, name: str, ending: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    plot = ["plot", name, "--output", f"picture{ending}", *PICTURES[name]]
    assert main(*plot) == Done(0, "", "")
    picture = Path(f"picture{ending}").read_bytes()
    assert picture.startswith(start)
    check_refused(main(*plot), 1, f"picture{ending}: already exists, and is not overwritten")
    assert Path(f"picture{ending}").read_bytes() == picture
    assert names(tmp_path) == [f"picture{ending}"]


def test_invalid_plot_raises(main: Main, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    many = map(str, range(9))
    for argv in (
        ["pmf", *NOISE, "--count", *many],
        ["pmf", *NOISE, "--count", str(2**70)],
        ["accuracy", "--epsilons", "1e-999", "1"],
        ["variance", "--epsilons", "1e-300", "1"],
    ):
        check_refused(main("plot", *argv, "--output", "x.png"), 2)
    check_refused(main("plot", "variance", "--output", "no/x.png"), 1, "no/x.png: No such file")
    assert names(tmp_path) == []


def test_without_matplotlib(tmp_path: Path) -> None:
    missing = "sys.modules['matplotlib'] = None"
    done = finish(start("plot", "variance", "--output=x.png", cwd=tmp_path, before=missing))
    check_refused(done, 1, r"geomdp\[plot\]")
    assert names(tmp_path) == []
