"""The command line, in particular its handling of files."""

import csv
import errno
import gzip
import importlib.metadata
import inspect
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import geomdp
from exact import stated
from geomdp import GeometricMechanism, accounting, accuracy, cli
from geomdp import tables as tables_
from geomdp._inputs.arrays import DTYPES
from geomdp.cli import _arguments, _delimited, _files
from geomdp.tables._release.steps import Publishing
from statistics_ import censored_pmf, rejects
from unsigned import limits
from verifier.verify import verify

ROOT = Path(__file__).parents[2]
SECONDS = 60
#: A count that must not appear in any message.
SECRET = "987654321"
PLAIN = ["release", "in.csv", "out.csv", "--column", "count", "--epsilon", "1"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


SILENT = Done(0, "", "")


def quiet(err: str) -> str:
    """Return what a command said, without the warnings of tests: few records, a large epsilon."""
    few = r"(no|all) records? may have been counted|--epsilon = .* is above 10"
    return re.sub(rf"(?m)^geomdp: warning: ({few}).*\n", "", err)


Main = Callable[..., Done]


@pytest.fixture
def main(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Main:
    """Run a command in this process, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: object) -> Done:
        code = cli.main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return Done(code, out, quiet(err))

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


def finish(process: subprocess.Popen[str], text: str | None = None) -> Done:
    out, err = process.communicate(text, timeout=SECONDS)
    return Done(process.returncode, out or "", err and quiet(err))


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


def released(data: bytes, *columns: str, noise: Noise = np.invert, **options: Any) -> bytes:
    target = io.BytesIO()
    _delimited.release(io.BytesIO(data), target, columns or ["count"], noise, **options)
    return target.getvalue()


def read(data: bytes, delimiter: str = ",") -> list[list[str]]:
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    return list(csv.reader(text, delimiter=delimiter, strict=True))


class Table(NamedTuple):
    data: bytes
    #: The same, with the bits of each count inverted.
    expected: bytes
    delimiter: str
    #: The columns of counts.
    columns: list[str]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    delimiter = draw(st.sampled_from([*_arguments.DELIMITERS.values()]))
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

    lines = [[*map(written, row)] for row in rows]
    text = line_end.join(map(delimiter.join, lines)) + draw(st.sampled_from(["", line_end]))
    for line, row in zip(lines[1:], rows[1:], strict=True):
        for place in places:
            line[place] = str(~int(row[place]))
    # The copy takes its line ends from the first line, which may break within a cell.
    end = "\r\n" if text.partition("\n")[0].endswith("\r") and "\n" in text else "\n"
    expected = "".join(delimiter.join(line) + end for line in lines)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig"]))
    columns = [header[place] for place in places]
    return Table(text.encode(encoding), expected.encode(encoding), delimiter, columns)


#: Numbers of bytes to read at a time: rows, cells and line ends are cut anywhere.
chunks = st.integers(1, 64)


@given(tables(), chunks)
@settings(max_examples=150, deadline=None)
def test_only_counts_change(table: Table, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_delimited, "CHUNK", chunk)
        found = released(table.data, *table.columns, delimiter=table.delimiter)
    assert found == table.expected


TOKENS = [
    '"',
    '""',
    ",",
    ",1",
    "\n",
    "\r\n",
    "\r",
    "1",
    "-5",
    '"7"',
    " ",
    "x",
    "\0",
    "\u2028",
    "\xff",
]


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join), chunks)
@settings(max_examples=500, deadline=None)
def test_the_csv_module_reads_the_same_rows(text: str, chunk: int) -> None:
    text = "x,count\n" + text
    # The csv module takes stray quotes for text.
    whole_cell = r'(?<![^,\n])"(?:[^"]++|"")*+"(?![^,\r\n])'
    stray = re.search(r'"|\r(?!\n)', re.sub(whole_cell, "", text))
    rows = [] if stray else [*csv.reader(io.StringIO(text, newline=""), strict=True)]
    accepted = not stray and all(
        len(row) == 2 and re.fullmatch("[ \t]*[+-]?[0-9]+[ \t]*", row[1]) for row in rows[1:]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_delimited, "CHUNK", chunk)
        try:
            found = released(text.encode("latin-1", "backslashreplace"))
        except _delimited.DataError:
            assert not accepted
            return
    assert accepted
    expected = [[cell, str(~int(count))] for cell, count in rows[1:]]
    text = found.decode("latin-1").replace(r"\u2028", "\u2028")
    assert [*csv.reader(io.StringIO(text, newline=""))] == [["x", "count"], *expected]


SPELLINGS = {
    "0": 0,
    "-0": 0,
    "+5": 5,
    "\t 5 \t": 5,
    "007": 7,
    "-" + "0" * 38 + "12": -12,
    '" -12 "': -12,
    "9223372036854775807": 2**63 - 1,
    "+09223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
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


NO_COUNTS = [
    *("", " ", '""', "+", '"-"', "--1", "+-1", "- 1", "1-", "0x1", "1/2", "nan", "NULL", "1\0"),
    *("98765_4321", "98765 4321", "987654321.0", "987654321e0", '"987,654,321"', '"1"""'),
    *("\x0b1", "\xa01", "\u0663", "\uff11", '"1\n"', "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551617", "987654321" * 4, "0" * 40 + "1"),
]


@pytest.mark.parametrize("cell", NO_COUNTS, ids=ascii)
def test_invalid_count_raises(cell: str) -> None:
    data = f'x,"the ""count\n",y\r\nw,1,\n"\n\n",2,\nz,{cell},"\n"\nz,1,\n'
    with pytest.raises(_delimited.DataError) as caught:
        released(data.encode(), 'the "count\n')
    why = "line 7: column 'the \"count\\n': not a decimal integer within int64"
    assert str(caught.value) == why


MISSING = r"line 1: column 'count' must occur exactly once in the header: is ',' the delimiter\?"
NO_ROW = "not a row by RFC 4180: a stray or an open quote, or CR without LF"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        # A message never shows the header: without one, the first row has counts.
        *[(data, MISSING) for data in ("", "\ufeff", "\n1\n", "x,7654321\n1,2\n")],
        *[(data, MISSING) for data in ("Count,count \n1,2\n", "\ufeff\ufeffcount\n1\n")],
        ('"count",x,count\n1,2,3\n', MISSING),
        ("x;count\n1;2\n", MISSING),
        ("count,x\n1,2\n3\n4,5\n", "line 3: a row of 1 cell, where the header has 2"),
        ("count,x\n1,2\n3,4,5\n", "line 3: a row of 3 cells, where the header has 2"),
        ("count,x\n1,2\n\n3,4\n", "line 3: a row of 0 cells, where the header has 2"),
        ('count,x\n1,"2\n\n"\n3', "line 5: a row of 1 cell, where the header has 2"),
        ("count\n\n", "line 2: a row of 0 cells, where the header has 1"),
        ('count,x\n1,2\n3,"4\n5,6\n', f"line 3: {NO_ROW}"),
        ('"count\n', f"line 1: {NO_ROW}"),
        ('x,"a"b\n1,2\n', f"line 1: {NO_ROW}"),
        ("count\r1\r", f"line 1: {NO_ROW}"),
        ("count,x\n1,2\r3,4\n", f"line 2: {NO_ROW}"),
        ("count\n1\r\r\n", f"line 2: {NO_ROW}"),
        *[
            (f"count,x\n1,{cell}\n", f"line 2: {NO_ROW}")
            for cell in ('5" disk,6"', ' "2"', '"2" ', '"a\\"b', '""a', 'a""', '"a" "b"', '"a"""b"')
        ],
    ],
)
def test_invalid_table_raises(data: str, why: str) -> None:
    with pytest.raises(_delimited.DataError) as caught:
        released(data.encode())
    assert re.fullmatch(why, str(caught.value))


def test_other_encodings() -> None:
    # Other cells may use any encoding that extends ASCII.
    assert released(b"count,x\n1,\xff\xe9\n") == b"count,x\n-2,\xff\xe9\n"
    for data in ("count\n1\n".encode("utf-16"), b"count,\xe9\n1,2\n"):
        with pytest.raises(_delimited.DataError, match="line 1: the header is not UTF-8"):
            released(data)


def test_long_row_raises_before_filling_memory() -> None:
    class Endless(io.RawIOBase):
        text, size = b"", 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = (
                (self.text * len(buffer))[: len(buffer)]
                if self.size
                else (b'count,x\n1,"'.ljust(len(buffer)))
            )
            self.size += len(buffer)
            return len(buffer)

    for text in (b"x", b"\n", b'","'):
        source = Endless()
        source.text = text
        with pytest.raises(_delimited.DataError, match=f"line 2: a row of more than {2**17} bytes"):
            _delimited.release(io.BufferedReader(source, 2**13), io.BytesIO(), ["count"], np.invert)
        assert source.size < 2**18
    most = b'1,"' + b"\n" * (2**17 - 6) + b'"\n'
    assert released(b"count,x\n" + most) == b"count,x\n-2" + most[1:]


# Releases


def write_table(path: Path, rows: int, count: int = 7) -> None:
    path.write_text("row,count\n" + "".join(f"{i},{count}\n" for i in range(rows)))


def counts_of(path: Path, place: int = 1) -> NDArray[np.int64]:
    _, *rows = read(path.read_bytes())
    return np.array([int(row[place]) for row in rows], dtype=np.int64)


def test_distribution(main: Main, tmp_path: Path) -> None:
    n, count, (lower, upper) = 200_000, 7, (0, 12)
    write_table(Path("in.csv"), n, count)
    arguments = ["--column=count", "--epsilon=1", "--sensitivity=3", "--bounds", lower, upper]
    assert main("release", "in.csv", "out.csv", *arguments) == SILENT
    observed = np.bincount(counts_of(Path("out.csv")), minlength=upper + 1)
    assert not rejects(observed, censored_pmf(count, 3, lower, upper) * n)


def test_noise_is_fresh(main: Main, tmp_path: Path) -> None:
    # Two of these draws at scale 2**57 are equal with probability below 1e-6.
    path = Path("in.csv")
    path.write_text("a,b,c\n" + "0,x,0\n" * 20_000)
    scale = ["--scale", str(2**57)]
    for out in ("one.csv", "two.csv"):
        assert main("release", path, out, "--column=c", "--column=a", *scale) == SILENT
    noises = [counts_of(Path(out), place) for out in ("one.csv", "two.csv") for place in (0, 2)]
    assert len(np.unique(np.abs(noises))) == 80_000


@pytest.mark.parametrize("delimiter", [",", ";", "|", "tab"])
def test_counts_outside_bounds_are_clamped(main: Main, tmp_path: Path, delimiter: str) -> None:
    text = "x,count\n.,-9223372036854775808\n.,5\n.,9223372036854775807\n"
    between = "\t" if delimiter == "tab" else delimiter
    Path("in.csv").write_text(text.replace(",", between))
    assert main(*PLAIN, "--bounds", 3, 3, "--delimiter", delimiter) == SILENT
    expected = "x,count\n.,3\n.,3\n.,3\n".replace(",", between)
    assert Path("out.csv").read_bytes() == expected.encode()


def test_memory_is_independent_of_file_size(tmp_path: Path) -> None:
    peaks = []
    for rows in (20_000, 80_000):
        write_table(tmp_path / "in.csv", rows)
        before = "import atexit, tracemalloc\ntracemalloc.start()\n" + (
            "atexit.register(lambda: print(tracemalloc.get_traced_memory()[1]))"
        )
        done = finish(start(*PLAIN, cwd=tmp_path, before=before))
        assert done.code == 0, done
        assert len(counts_of(tmp_path / "out.csv")) == rows
        (tmp_path / "out.csv").unlink()
        peaks.append(int(done.out))
    # The second file is half a million bytes longer.
    assert (tmp_path / "in.csv").stat().st_size > 600_000
    assert abs(peaks[1] - peaks[0]) < 100_000
    assert max(peaks) < 20_000_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz"])
def test_progress_is_for_terminals_only(
    main: Main, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = "count\n" + f"{SECRET}\n" * 100_000
    with gzip.open(name, "wt", 0) if name.endswith("gz") else open(name, "w") as file:
        file.write(text)
    monkeypatch.setattr(_files, "_PATIENCE", 0)
    assert main("release", name, "quiet.csv", *PLAIN[3:]) == SILENT
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main("release", name, "out.csv", *PLAIN[3:]).code == 0
    first, *_, blank, last = terminal.getvalue().removeprefix("\r").split("\r")
    assert first == "geomdp: 0% read"
    assert "\rgeomdp: 100% read\r" in terminal.getvalue()
    assert re.fullmatch(" {17}", blank)
    assert last == ""
    assert SECRET not in terminal.getvalue()


def test_existing_files_are_not_overwritten(main: Main, tmp_path: Path) -> None:
    Path("in.csv").write_text("count\n5\n")
    Path("there.csv").write_text("precious")
    os.link("in.csv", "hard.csv")
    os.symlink("in.csv", "soft.csv")
    os.symlink("nowhere.csv", "dangling.csv")
    os.mkdir("directory")
    before = names(tmp_path)
    for out in ["in.csv", "./in.csv", *before]:
        done = main("release", "in.csv", out, *PLAIN[3:])
        check_refused(done, 1, "already exists, and is not overwritten")
    assert names(tmp_path) == before
    assert Path("in.csv").read_text() == "count\n5\n"
    assert Path("there.csv").read_text() == "precious"
    # Before anything is read.
    done = main("release", "no.csv", "there.csv", *PLAIN[3:])
    check_refused(done, 1, "there.csv: already exists")


def test_missing_files(main: Main, tmp_path: Path) -> None:
    check_refused(main(*PLAIN), 1, r"error: in\.csv: No such file or directory")
    Path("in.csv").write_text("count\n5\n")
    done = main("release", "in.csv", "missing/out.csv", *PLAIN[3:])
    check_refused(done, 1, "error: missing: no such folder: create it first")
    check_refused(main("release", ".", "out.csv", *PLAIN[3:]), 1, r"\.: Is a directory")
    assert names(tmp_path) == ["in.csv"]


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
    assert main(*PLAIN, "--bounds", 3, 3) == SILENT
    assert Path("out.csv").read_text() == "count\n3\n"
    check_refused(main(*PLAIN), 1, "already exists")
    os.unlink("out.csv")
    monkeypatch.setattr(os, "rename", no_links)
    check_refused(main(*PLAIN), 1, "Operation not permitted")
    assert names(tmp_path) == ["in.csv"]


@pytest.mark.parametrize("links", [True, False])
def test_output_created_meanwhile_is_not_overwritten(
    main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    Path("in.csv").write_text("count\n5\n")
    sync = os.fsync

    def other(descriptor: int) -> None:
        # The file is complete on the disk before it gets its name.
        assert os.fstat(descriptor).st_size > 6
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
    return finish(start(*argv, cwd=cwd, stdin=subprocess.PIPE, **options), text)


def test_standard_input_and_output(tmp_path: Path) -> None:
    text, options = "x,count\n1,5\n2,6", [*PLAIN[3:], "--bounds", "3", "3"]
    noisy = "x,count\n1,3\n2,3\n"
    assert piped(tmp_path, text, "release", "-", "-", *options) == Done(0, noisy, "")
    assert names(tmp_path) == []
    assert piped(tmp_path, text, "release", "-", "out.csv", *options) == SILENT
    assert (tmp_path / "out.csv").read_text() == noisy
    assert piped(tmp_path, "", "release", "out.csv", "-", *options) == Done(0, noisy, "")
    # `./-` is an ordinary file.
    (tmp_path / "-").write_text(text)
    assert piped(tmp_path, "", "release", "./-", "new.csv", *options) == SILENT
    assert names(tmp_path) == ["-", "new.csv", "out.csv"]


def test_data_errors_leave_no_output(tmp_path: Path) -> None:
    # The error is in a later block.
    text = "count\n" + "1\n" * 100_000 + f"{SECRET}.0\n"
    why = "line 100002: column 'count': not a decimal integer within int64\n"
    (tmp_path / "in.csv").write_text(text)
    check_refused(finish(start(*PLAIN, cwd=tmp_path)), 1, rf"in\.csv: {why}")
    done = piped(tmp_path, text, "release", "-", "-", *PLAIN[3:])
    check_refused(done, 1, f"standard input: {why}")
    assert names(tmp_path) == ["in.csv"]


def test_gzip(main: Main, tmp_path: Path) -> None:
    text = b"x,count\n" + b"'a name',5\n" * 10_000
    noisy = text.replace(b",5", b",3")
    Path("in.csv").write_bytes(text)
    # Two members, as in concatenated files.
    Path("in.csv.GZ").write_bytes(gzip.compress(text[:1001]) + gzip.compress(text[1001:]))
    for source in ("in.csv", "in.csv.GZ"):
        for target in ("out.csv", "out.csv.gz"):
            assert main("release", source, target, *PLAIN[3:], "--bounds", 3, 3) == SILENT
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


# Signals

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
        # More than a batch, and part of a row.
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
    assert finish(waiting.process) == SILENT
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
        with _files.interrupts():
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
    assert main(*PLAIN, "--bounds", 3, 3) == SILENT
    assert Path("out.csv").read_text() == "count\n3\n"


# The other commands

WITHIN = ["--epsilon=0.1", "--sensitivity=3", "--bounds", "-5", "40"]
ERRS = "differs from the true count by more than"
#: See also docs/command_line.md, whose examples are tested.
VALID: list[tuple[list[str], str]] = [
    (["--version"], f"geomdp {geomdp.__version__}\n"),
    (
        ["accuracy", *WITHIN, "--alpha=5e-2"],
        f"45\nA noisy count {ERRS} 45 with probability at most 5e-2, for any true count within "
        "the bounds.\n",
    ),
    (
        ["accuracy", "--scale=.25e1", "--alpha=1/2", "--simultaneous=1000"],
        f"18\nAt least one of 1000 noisy counts {ERRS} 18 with probability at most 1/2.\n",
    ),
    # Exactly 100 times 0.1, and not the sum of floats.
    (
        ["compose", "0.1x50", "0.1", "0.1x49"],
        "10.0\n100 releases with these privacy losses are together (10.0, 0)-differentially "
        "private.\n",
    ),
    (
        ["compose", "0.5", "1/2", "--delta", "1"],
        "0.0\n2 releases with these privacy losses are together (0.0, 1)-differentially private.\n",
    ),
    # The root of 2 q**7 / (1 + q) = 0.05 is 0.456901730181193536991...
    (
        ["epsilon", "--accuracy", "6", "--alpha", "0.05"],
        f"0.45690173018119357\nThis is the least epsilon for which a noisy count {ERRS} 6 with "
        "probability at most 0.05.\n",
    ),
]


@pytest.mark.parametrize(("argv", "out"), VALID, ids=[" ".join(argv) for argv, _ in VALID])
def test_commands(main: Main, argv: list[str], out: str) -> None:
    assert main(*argv) == Done(0, out, "")


def test_warnings_show_levels_as_they_were_typed(main: Main) -> None:
    """It warned of ``alpha = Fraction(1, 1)``."""
    for command in (["accuracy", "--scale=2"], ["epsilon", "--accuracy=6"]):
        done = main(*command, "--alpha=1")
        assert (done.code, "alpha = '1' is the probability" in done.err) == (0, True)


@pytest.mark.filterwarnings("ignore:.*probability of a miss")
@given(
    st.integers(0, 1000),
    st.floats(1e-9, 0.999) | st.sampled_from([0.05, 0.5]),
    st.integers(1, 10**6),
    st.none() | st.integers(1, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_printed_epsilon_is_least(a: int, alpha: float, sensitivity: int, n: int | None) -> None:
    # The printed epsilon gives the accuracy when passed back; a smaller one does not.
    def first_line(*argv: str) -> str:
        options = ["--alpha", repr(alpha), "--sensitivity", str(sensitivity)]
        options += ["--simultaneous", str(n)] if n else []
        given = _arguments.parser(cli._COMMANDS).parse_args([*argv, *options])
        return str(given.run(given)).split("\n")[0]

    text = first_line("epsilon", "--accuracy", str(a))
    library = accuracy.accuracy_to_epsilon(
        a, Fraction(repr(alpha)), sensitivity=sensitivity, n=n or 1
    )
    assert text == str(library)
    assert first_line("accuracy", "--epsilon", text) == str(a)
    less = str(Fraction(text) * Fraction(999_999, 1_000_000))
    assert first_line("accuracy", "--epsilon", less) == str(a + 1)


@given(st.lists(st.floats(0, 5).map(repr), min_size=1, max_size=4), st.floats(1e-9, 0.5).map(repr))
@settings(max_examples=40, deadline=None)
def test_printed_total_is_that_of_library(losses: list[str], delta: str) -> None:
    given = _arguments.parser(cli._COMMANDS).parse_args(["compose", "--delta", delta, *losses])
    text = given.run(given).split("\n")[0]
    library = geomdp.accounting.compose([stated(loss) for loss in losses], stated(delta))
    assert text == str(library)


def test_certificates(main: Main) -> None:
    mechanism = GeometricMechanism(Fraction(1, 10), 3, bounds=(-5, 40))
    assert main("certificate", *WITHIN) == Done(0, f"{mechanism.certificate()}\n", "")
    tight = mechanism.certificate(tight=True)
    assert main("certificate", *WITHIN, "--tight").out == f"{tight}\n"
    found = main("certificate", *WITHIN, "--tight", "--json", "--dtype", "int8").out
    assert found == f"{tight.to_json()}\n"
    assert verify(found).tight_epsilon == tight.tight_epsilon
    for dtype in DTYPES:
        bounds = limits(dtype)
        given = ["--bounds", *map(str, bounds)] if bounds else []
        done = main("certificate", "--scale=2", "--json", "--dtype", dtype, *given)
        whole = GeometricMechanism.from_scale(2, bounds).certificate(dtype)
        assert json.loads(done.out) == json.loads(whole.to_json())


# Parameters


@given(st.floats(0, allow_infinity=False))
def test_float_reprs_are_accepted(number: float) -> None:
    # Likewise all digits, without an exponent.
    for text in (repr(number), str(Decimal(number))):
        assert _arguments.number(text) == text
    assert Fraction(str(Decimal(number))) == Fraction(number)


NO_NUMBERS = [
    *("", " ", "x", "inf", "nan", "1_000", "1,5", "0x1", " 1", "1 ", "1\n", "1e", "e1", "-1", "-0"),
    *("1e999999999", "1e-999999999", "1/0", "1/-3", "1/2/3", "1.5/2", "/2", "1/", ".", "0", "0/3"),
    *("\u0663", "\uff11", "--1", "1j", "True", "9" * 10_000, "1/" + "9" * 10_000),
]


@pytest.mark.parametrize("text", NO_NUMBERS, ids=lambda text: ascii(text[:12]))
def test_invalid_number_raises(main: Main, text: str) -> None:
    begun = time.monotonic()
    for name in ("epsilon", "alpha"):
        options = {"epsilon": "1", "alpha": "0.1"} | {name: text}
        done = main("accuracy", *(f"--{key}={value}" for key, value in options.items()))
        check_refused(done, 2, rf"argument --{name}: .* is not accepted: give a positive number")
        assert len(done.err) < 250
    assert time.monotonic() - begun < 1


NOISE = ["--epsilon", "1"]
ALL_NOISE = [*NOISE, "--alpha", "0.1"]
MISUSES: list[tuple[list[str], str]] = [
    ([], "the following arguments are required: COMMAND"),
    (["accuracy", "--alpha", "0.1"], "one of the arguments --epsilon --scale is required"),
    (["accuracy", *ALL_NOISE, "--scale", "1"], "not allowed with argument --epsilon"),
    (["accuracy", "--alpha=1", "--scale=1", "--sensitivity=2"], "--sensitivity is for"),
    (["accuracy", "--alpha=1", "--scale=0"], "'0' is not accepted: give a positive"),
    (["accuracy", *ALL_NOISE, "extra\nword"], r"unrecognized arguments: extra\\nword"),
    (["accuracy", "--eps", "1", "--alpha", "0.1"], "--eps"),
    (["accuracy", *NOISE, "--alpha", "10/9"], "alpha = .* give a number above 0 and at most 1"),
    (["accuracy", *ALL_NOISE, "--sensitivity", "0"], "'0' .* give an integer of at least 1"),
    (["accuracy", *ALL_NOISE, "--sensitivity", "9" * 39], "at least 1 and at most 38 digits"),
    (["accuracy", *ALL_NOISE, "--bounds", "5", "3"], r"bounds = \(5, 3\) is not accepted"),
    (["accuracy", *ALL_NOISE, "--bounds", "0", "x"], "'x' is not accepted: give an integer"),
    (["accuracy", *ALL_NOISE, "--bounds", "0", str(2**64)], "bounds"),
    (["epsilon", "--alpha", "0.1"], "arguments are required: --accuracy"),
    (["epsilon", "--accuracy", "-1", "--alpha", "0.1"], "accuracy = -1 is not accepted"),
    (["compose", "--delta", "0.1"], r"arguments are required: E\[xN\]"),
    (["compose", "1", "--delta", "2"], "delta = .* give a number from 0 to 1"),
    (["compose", "1", "--delta=-1"], "--delta: '-1' is not accepted: give a number such as"),
    (["compose", "1", "x5"], "'' is not accepted: give a number .* 0.5x20"),
    (["compose", "1x0"], "'0' is not accepted: give an integer of at least 1"),
    (["compose", "0.1x1000000001"], "releases"),
    (["certificate", *NOISE, "--tight"], "100000"),
    (["certificate", *NOISE, "--dtype", "float64"], "invalid choice: 'float64'"),
    (["certificate", *NOISE, "--dtype", "int8", "--bounds", "0", "300"], "bounds"),
    (["certificate", "--epsilon", "1e-30"], "scale = .* too large"),
    (["release", "in.csv", *NOISE, "--column", "count"], "arguments are required: OUT"),
    (["release", "in.csv", "out.csv", *NOISE], "arguments are required: --column"),
    ([*PLAIN, "--column", "x", "--column", "count"], "twice for the same column"),
    ([*PLAIN, "--delimiter", "x"], "invalid choice: 'x'"),
    ([*PLAIN, "--bounds", "0", str(2**63)], "bounds .* the limits of these counts"),
    (["release", "in.parquet", "-", *PLAIN[3:]], "two Parquet files, or two CSV files"),
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


@pytest.mark.parametrize("command", [[], *([name] for name in cli._COMMANDS)], ids=" ".join)
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
    (tmp_path / "visits.csv").write_text("who,sex\n1,f\n")
    (tmp_path / "sexes.txt").write_text("f\nm\n")
    budget = geomdp.accounting.Budget.open(tmp_path / "2026.jsonl", epsilon=6)
    sexes = geomdp.tables.Design({"sex": ["f", "m"]}).count(pd.DataFrame({"sex": ["f"]}))
    sexes.release(epsilon=1, budget=budget, save=tmp_path / "2026-10.csv")
    done = main(*argv)
    assert (done.code, done.err) == (0, "")
    assert bool(done.out) == (argv[:1] not in (["budget"], ["count"], ["release"]))


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


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@each_output
def test_closed_pipe_is_not_reported(
    tmp_path: Path, closed_pipe: int, argv: list[str], unbuffered: str
) -> None:
    write_table(tmp_path / "in.csv", 3)
    done = finish(start(*argv, cwd=tmp_path, stdout=closed_pipe, unbuffered=unbuffered))
    assert done == Done(1, "", "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_release_to_a_file_needs_no_standard_output(
    tmp_path: Path, closed_pipe: int, unbuffered: str
) -> None:
    """It once reported failure after it had written the whole file."""
    write_table(tmp_path / "in.csv", 3)
    done = finish(start(*PLAIN, cwd=tmp_path, stdout=closed_pipe, unbuffered=unbuffered))
    assert done == SILENT
    assert len(counts_of(tmp_path / "out.csv")) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@each_output
def test_standard_output_on_full_disk_fails(
    tmp_path: Path, argv: list[str], unbuffered: str
) -> None:
    write_table(tmp_path / "in.csv", 3)
    with open("/dev/full", "w") as full:
        done = finish(start(*argv, cwd=tmp_path, stdout=full, unbuffered=unbuffered))
    check_refused(done, 1, "No space left on device")


def test_without_standard_streams(tmp_path: Path) -> None:
    Path(tmp_path / "in.csv").write_text("count\n5\n")
    closed = "os.close(1)\nsys.stdout = None"
    assert finish(start(*PLAIN, cwd=tmp_path, before=closed)) == SILENT
    done = finish(start("release", "in.csv", "-", *PLAIN[3:], cwd=tmp_path, before=closed))
    check_refused(done, 1, "standard output: Bad file descriptor")
    closed = "os.close(0)\nsys.stdin = None"
    done = finish(start("release", "-", "new.csv", *PLAIN[3:], cwd=tmp_path, before=closed))
    check_refused(done, 1, "standard input: Bad file descriptor")
    assert names(tmp_path) == ["in.csv", "out.csv"]


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "MODULE":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.argv = ["geomdp", "compose", "0.1"]
"""
IMPORTED = ["geomdp.cli", "geomdp.accounting", "geomdp._core", "numpy", "numpy.linalg", "argparse"]


@pytest.mark.parametrize("module", IMPORTED)
def test_interrupted_import_is_one_line(module: str) -> None:
    of_script = "from geomdp.__main__ import run; sys.exit(run())"
    of_module = "import runpy; runpy.run_module('geomdp', run_name='__main__')"
    for start_it in (of_script, of_module):
        code = INTERRUPTED.replace("MODULE", module) + start_it
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "geomdp: error: interrupted\n"


def test_program_is_the_module() -> None:
    [program] = importlib.metadata.entry_points(group="console_scripts", name="geomdp")
    assert program.value == "geomdp.__main__:run"


# Counting records


@pytest.fixture
def visits(tmp_path: Path) -> list[str]:
    """Return a command that counts 500 visits, of which one person has two in every place."""
    rows = ["who,town,sex", *(f"{who},Oslo,f" for who in range(200))]
    rows += [*(f"x{who},Rome,m" for who in range(300)), *["y,Oslo,m", "y,Rome,f"] * 2]
    (tmp_path / "visits.csv").write_text("\n".join(rows))
    (tmp_path / "towns.txt").write_text("Oslo\nRome\n-\n")
    (tmp_path / "sexes.txt").write_text("f\r\nm")
    columns = ["--by", "town", "--levels", "towns.txt", "--by", "sex", "--levels", "sexes.txt"]
    return ["count", "visits.csv", "noisy.csv", *columns]


def test_records_are_counted_by_a_design(main: Main, visits: list[str]) -> None:
    assert main(*visits, "--individual", "who", "--l0", 2, "--epsilon", 40) == SILENT
    read = geomdp.read("noisy.csv")
    assert read.epsilon == 40
    wanted = {"town": ["Oslo", "Rome", "-"], "sex": ["f", "m"]}
    assert read.design == geomdp.tables.Design(wanted, individual="who", l0=2)
    exact = [200, 1, 1, 300, 0, 0]
    # An error above 1 has the probability 2e-17.
    assert np.abs(np.subtract([*read.to_dict().values()], exact)).max() <= 1


def test_a_table_states_whom_it_protects_and_which_columns_have_all_records(
    main: Main, visits: list[str]
) -> None:
    accounting.Budget.open("budget.jsonl", epsilon=9).book(0)
    paid = ["--epsilon", 1, "--budget", "budget.jsonl", "--label", "visits"]
    stated = ["--unit", "person", "--complete", "town", "--complete", "sex"]
    assert main(*visits, "--individual", "who", "--l0", 2, *stated, *paid) == SILENT
    design = geomdp.read("noisy.csv").design
    assert (design.unit, [axis.complete for axis in design._axes]) == ("person", [True, True])
    again = [each if each != "noisy.csv" else "again.csv" for each in visits]
    code, _, error = main(*again, *paid)
    assert code == 2
    assert "this release protects each 'record'" in error
    assert main(*again, *paid, "--unit", "person", "--label", "again") == SILENT
    other = [each if each != "noisy.csv" else "other.csv" for each in visits]
    code, _, error = main(*other, "--epsilon", 1, "--complete", "nowhere")
    assert code == 2
    assert "--complete = 'nowhere', which is no column" in error


def test_individuals_of_several_columns_repeat_the_option(main: Main, visits: list[str]) -> None:
    """A comma is a part of a name, as in a header."""
    people = [("a", "bc"), ("ab", "c"), ("a,b", "c"), ("a", "b,c")] * 30
    rows = ["house,person,town,sex", *(f'"{a}","{b}",{town},f' for a, b in people
                                       for town in ("Oslo", "Rome"))]  # fmt: skip
    Path("visits.csv").write_text("\n".join(rows))
    who = ["--individual", "house", "--individual", "person", "--l0", 1, "--epsilon", 40]
    assert main(*visits, *who) == SILENT
    read = geomdp.read("noisy.csv")
    assert read.design.individual == ("house", "person")
    # Four individuals. An error above 2 of the sum has a probability below 1e-6.
    assert abs(sum(read.to_dict().values()) - 4) <= 2
    for wrong, code, said in [
        (["house", "house"], 2, "individual"),
        (["house,person"], 1, "column 'house,person'"),
        (["house", "id"], 1, "column 'id'"),
    ]:
        again = [each for name in wrong for each in ("--individual", name)]
        done = main(*visits[:2], "other.csv", *visits[3:], *again, *who[4:])
        assert (done.code, done.out) == (code, "")
        assert said in done.err
    Path("visits.csv").write_text(f"{rows[0]}\n{SECRET},,Oslo,f")
    done = main(*visits[:2], "other.csv", *visits[3:], *who)
    assert (done.code, "'person' has empty cells" in done.err, SECRET in done.err) == (
        1,
        True,
        False,
    )


def test_counts_are_published_with_a_description(main: Main, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("town,sex,count\nOslo,f,120\nRome,m, +90\n")
    command = ["count", "in.csv", "out.csv", "--counts", "count", "--epsilon", "60"]
    assert main(*command, "--l1", 3) == SILENT
    read = geomdp.read("out.csv")
    assert (read.epsilon, read.design.sensitivity, read.design.l1) == (60, 3, 3)
    assert set(read.to_dict()) == {("Oslo", "f"), ("Oslo", "m"), ("Rome", "f"), ("Rome", "m")}
    # Without one, the reader says so, and how to get one.
    assert main(*PLAIN[:2], "plain.csv", *PLAIN[3:]) == SILENT
    with pytest.raises(ValueError, match=r"plain.csv.json is not beside it.* count"):
        geomdp.read("plain.csv")


def test_tables_are_described_booked_and_rounded(main: Main, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("town,sex,count\nOslo,f,120\nRome,m,90\n")
    (tmp_path / "towns.txt").write_text("Oslo\nRome")
    budget = accounting.Budget.open("ledger", epsilon="1.1")
    told = ["--about", "title", "Visits", "--about", "source", "Register"]
    more = ["--epsilon", "0.5", "--budget", "ledger", "--label", "c", "--rounded", 10, *told]
    by = ["--by", "town", "--levels", "towns.txt"]
    for command in (
        ["count", "in.csv", "a.csv", *by],
        ["count", "in.csv", "b.csv", "--counts", "count"],
    ):
        assert main(*command, *more, "--label", command[2]) == SILENT
        read = geomdp.read(command[2])
        assert read.about == {"title": "Visits", "source": "Register"}
        assert json.loads(Path(f"{command[2]}.json").read_text())["geomdp"]["rounded"] == 10
        assert {each % 10 for each in read.to_dict().values()} == {0}
    assert budget.spent == [("a.csv", 0.5), ("b.csv", 0.5)]
    for changed, code, said in [
        (more, 2, "only 0.1 of 1.1 is left"),
        ([*more, "--rounded", 1], 2, "'1' is not accepted: give an integer of at least 2"),
        ([*more, "--rounded", "middle of 1"], 2, "or a text such as 'middle of 6'"),
        ([*more, "--about", "titel", "x"], 2, "'titel'"),
        ([*more, "--about", "title", "x"], 2, "twice for the same KEY"),
        ([*more, "--budget", "none"], 1, "no such ledger"),
        ([*more, "--budget", "in.csv"], 1, "no ledger of geomdp"),
    ]:
        check_refused(main("count", "in.csv", "c.csv", *by, *changed), code, said)
    # A release without a description is not read before it is made, so nothing of it is booked.
    check_refused(main(*PLAIN, "--budget", "ledger"), 2, "unrecognized arguments: --budget")
    assert [loss for _, loss in budget.spent] == [0.5, 0.5]
    assert names(tmp_path) == sorted(
        ["in.csv", "towns.txt", "ledger", "a.csv", "a.csv.json", "b.csv", "b.csv.json"]
    )


def test_records_that_cannot_be_counted_are_refused(main: Main, visits: list[str]) -> None:
    people = ["--individual", "who", "--l0", "2"]
    for changed, code, said in [
        ([*visits, *people], 2, "--epsilon"),
        ([*visits, "--epsilon", "1", "--individual", "who"], 2, "l0"),
        ([*visits[:-2], "--epsilon", "1"], 2, "--by and --levels"),
        ([*visits[:3], "--epsilon", "1"], 2, "give --by for each column, or --counts"),
        ([*visits, "--by", "town", "--levels", "towns.txt", "--epsilon", "1"], 2, "--by and"),
        ([*visits[:2], "noisy.txt", *visits[3:], "--epsilon", "1"], 2, "OUT"),
        ([*visits[:2], "towns.csv", *visits[3:], "--epsilon", "1"], 1, "towns.csv: already"),
        ([*visits, "--individual", "id", "--l0", "1", "--epsilon", "1"], 1, "column 'id'"),
    ]:
        Path("towns.csv").touch()
        done = main(*changed)
        assert (done.code, done.out) == (code, "")
        assert said in done.err
    whole = Path("visits.csv").read_text()
    for damage, said in [
        (f"{whole}\n{SECRET},Oslo", "line 506: it has another number of cells"),
        (f'{whole}\n"{SECRET}"x,Oslo,f', "line 506"),
        (f"{whole}\n,Oslo,f", "'who' has empty cells"),
    ]:
        Path("visits.csv").write_text(damage)
        done = main(*visits, *people, "--epsilon", "1")
        assert (done.code, done.out) == (1, "")
        assert said in done.err
        assert SECRET not in done.err
    Path("in.csv").write_text(f"town,count\nOslo,{SECRET}.5\n")
    done = main("count", "in.csv", "out.csv", "--counts", "count", "--epsilon", "1")
    assert (done.code, done.out) == (1, "")
    assert "column 'count' has a cell that is no integer" in done.err
    assert not [*Path().glob("noisy*"), *Path().glob("out*")]


#: For each fact of the table of fields that has an option: its values, and what the file states.
FACTS: dict[str, tuple[list[str], Any]] = {
    "--about": (["title", "Visits"], {"title": "Visits"}),
    "--at-least": (["3"], 3),
    "--individual": (["who"], "who"),
    "--l0": (["2"], 2),
    "--l1": (["3"], 3),
    "--label": (["May"], "May"),
    "--linf": (["4"], 4),
    "--name": (["visits"], "visits"),
    "--neighbours": (["change"], "change"),
    "--rounded": (["middle of 6"], "middle of 6"),
    "--unit": (["person"], "person"),
}


def test_the_facts_of_the_table_of_fields_are_those_with_options() -> None:
    assert FACTS.keys() == _arguments.STATED.keys()
    assert {*_arguments.STATED} <= {*cli._COMMANDS["count"].options}


@pytest.mark.parametrize("option", FACTS)
def test_each_fact_is_stated_as_it_was_given(main: Main, visits: list[str], option: str) -> None:
    values, stated = FACTS[option]
    needed = ["--l0", 1] if option == "--individual" else []
    assert main(*visits, option, *values, *needed, "--epsilon", 30) == SILENT
    description = json.loads(Path("noisy.csv.json").read_text())["geomdp"]
    assert description[option.removeprefix("--").replace("-", "_")] == stated


#: What Python alone takes: facts of sums, shares of epsilon, releases, threads, and a mechanism;
#: and bins of numbers, since the command reads text.
IN_PYTHON = {"shares", "tables", "values", "summed", "having", "rest", "threads", "corrects"}
IN_PYTHON |= {"bins"}
#: Given by place, or as OUT.
BY_PLACE = {"self", "data", "levels", "mechanism", "save", "publishing"}


def test_what_python_takes_by_name_the_command_takes_too() -> None:
    calls = tables_.Design, tables_.Design.count, tables_.Table.release
    names = {name for call in calls for name in inspect.signature(call).parameters}
    names |= {*Publishing.__annotations__}
    options = {x.strip("-").replace("-", "_") for x in cli._COMMANDS["count"].options}
    assert names - options == IN_PYTHON | BY_PLACE - {"levels"}
    ledger = {*inspect.signature(accounting.Budget.open).parameters} - {"path"}
    assert ledger <= {x.strip("-") for x in cli._COMMANDS["budget"].options}


def test_several_precisions_are_files_beside_each_other(main: Main, visits: list[str]) -> None:
    tiers = ["--tiers", "public", "1/4", "--tiers", "fine", "30"]
    paid = ["--budget", "ledger", "--limit", "40", "--label", "May"]
    assert main(*visits, *tiers, *paid) == SILENT
    public, fine = geomdp.read("noisy-public.csv"), geomdp.read("noisy-fine.csv")
    assert (public.epsilon, fine.epsilon, public.id) == (Fraction(1, 4), 30, fine.id)
    assert accounting.Budget.open("ledger").spent == [("May", 30.0)]
    assert not Path("noisy.csv").exists()
    for wrong, said in [
        (["--tiers", "a/b", "1", "--tiers", "c", "2"], "without a slash"),
        (["--tiers", "a", "1", "--tiers", "a", "2"], "twice for the same NAME"),
        (["--tiers", "a", "2", "--tiers", "b", "1"], "--tiers = "),
        (["--tiers", "a", "1", "--tiers", "b", "x"], "--tiers = 'x' is not accepted"),
        (["--tiers", "a", "1"], "give two or more names"),
        ([*tiers, "--epsilon", "1"], "not allowed with argument"),
        (tiers, "already exists"),
    ]:
        check_refused(main(*visits, *wrong), 1 if "already" in said else 2, said)


def test_columns_get_sums_and_a_row_for_all_other_values(main: Main, visits: list[str]) -> None:
    more = ["--margins", "town", "all", "--other", "sex", "other"]
    assert main(*visits, *more, "--epsilon", 60) == SILENT
    wanted = {"town": ["Oslo", "Rome", "-"], "sex": ["f", "m"]}
    assert geomdp.read("noisy.csv").design == tables_.Design(
        wanted, margins={"town": "all"}, other={"sex": "other"}
    )
    again = [*visits[:2], "again.csv", *visits[3:], "--epsilon", "1"]
    check_refused(main(*again, "--margins", "x", "all"), 2, "--margins")
    check_refused(main(*again, *more, "--other", "sex", "x"), 2, "twice for the same NAME")


def test_combinations_are_the_rows_of_a_file(main: Main) -> None:
    """Their columns are the names of --by, and other columns may stand beside them."""
    rows = [("Oslo", "flu", "f"), ("Oslo", "rsv", "m"), ("Rome", "flu", "f"), ("Rome", "", "m")]
    log = pd.DataFrame(rows * 200, columns=["city", "kind", "sex"])
    log.to_csv("log.csv", index=False)
    Path("pairs.csv").write_text("city,kind\nOslo,flu\nRome,flu\n")
    Path("sexes.txt").write_text("f\nm\n")
    pairs = ["--by", "city/kind", "--combinations", "pairs.csv", "--epsilon", "1"]
    command = ["count", "log.csv", "out.csv", *pairs, "--by", "sex", "--levels", "sexes.txt"]
    assert main(*command, "--other", "city/kind", "-") == SILENT
    levels = {("city", "kind"): [("Oslo", "flu"), ("Rome", "flu")], "sex": ["f", "m"]}
    read = geomdp.read("out.csv")
    assert read.design == tables_.Design(levels, other={("city", "kind"): "-"})
    exact = {("Oslo", "flu", "f"): 200, ("Rome", "flu", "f"): 200, ("-", "-", "m"): 400}
    assert all(abs(n - exact.get(key, 0)) < 40 for key, n in read.to_dict().items())
    for by in ("kind/city", "city", "pairs"):
        wrong = ["--by", by, "--combinations", "pairs.csv", "--epsilon", "1"]
        check_refused(main("count", "log.csv", "two.csv", *wrong), 2, f"--by {by!r} is not accept")
    Path("pairs.csv").write_text("city,kind\nOslo,flu\nOslo,flu\n")
    check_refused(main("count", "log.csv", "two.csv", *pairs), 2, "combinations of")


def test_words_are_counted_without_a_list(main: Main) -> None:
    typed = ["weather"] * 900 + ["news"] * 700 + ["Capital"] * 300 + ["zqk"] * 2
    rows = "".join(f"{n % 1000},{word}\n" for n, word in enumerate(typed))
    Path("log.csv").write_text(f"who,query\n{rows}")
    Path("list.txt").write_text("weather\nsport\n")
    letters = "abcdefghijklmnopqrstuvwxyz"
    command = ["count", "log.csv", "out.csv", "--by", "query", "--words", f"{letters}:20"]
    people = ["--individual", "who", "--l0", "2", "--epsilon", "1", "--people", "1000"]
    groups = ["--spurious", "1/2", "--common", "list.txt", "--other", "query", "(other)"]
    assert main(*command, *people, *groups) == SILENT
    read = geomdp.read("out.csv")
    words = tables_.Words(letters, 20, common=["weather", "sport"])
    design = tables_.Design({"query": words}, individual="who", l0=2, other={"query": "(other)"})
    assert read.design == design
    assert read.at_least == design.threshold(1, Fraction(1, 2))
    assert {"weather", "news", "(other)"} <= {*read.to_dict()}
    again = ["count", "log.csv", "again.csv", *command[3:], *people]
    assert main(*again, "--at-least", "200") == SILENT
    assert geomdp.read("again.csv").at_least == 200
    for wrong, said in [
        (people[:-2], "levels of 'query' are a rule"),
        ([*people, "--at-least", "3"], "empty cells may reach"),
        ([*people, "--at-least", "200", "--spurious", "1"], "instead of --at-least"),
        (["--tiers", "a", "1", "--tiers", "b", "2", "--spurious", "1"], "--spurious is for"),
        ([*people, "--spurious", "0"], "--spurious"),
    ]:
        check_refused(main(*command[:2], "third.csv", *command[3:], *wrong), 2, said)
    for text, said in [("abc", "is not ALPHABET:N"), ("a:20", "alphabet"), ("aab:9", "alphabet"),
                       ("ab:0", "longest"), ("ab:9999", "longest")]:  # fmt: skip
        wrong = [*command[:2], "third.csv", *command[3:-1], text, *people, "--spurious", "1"]
        check_refused(main(*wrong), 2, said)
    no_words = ["--by", "query", "--levels", "list.txt", "--common", "list.txt"]
    check_refused(main("count", "log.csv", "third.csv", *no_words, *people), 2, "--common is for")


def test_levels_named_like_totals_are_refused_unless_they_are_none(main: Main) -> None:
    Path("in.csv").write_text("town,n\nTotal,7\nOslo,5\n")
    command = ["count", "in.csv", "out.csv", "--counts", "n", "--epsilon", "60"]
    check_refused(main(*command), 2, r"--not-totals")
    assert main(*command, "--not-totals", "Total") == SILENT
    assert geomdp.read("out.csv").design.name == "n"


def test_a_second_run_under_another_name_is_not_paid_again(main: Main, visits: list[str]) -> None:
    """It booked epsilon again, without a label."""
    paid = ["--epsilon", "1", "--budget", "ledger", "--limit", "6"]
    check_refused(main(*visits, *paid), 2, "--budget needs --label")
    check_refused(main(*visits, "--epsilon", "1", "--limit", "6"), 2, "--limit is for the ledger")
    assert not Path("ledger").exists()
    assert main(*visits, *paid, "--label", "2026-10") == SILENT
    again = [*visits[:2], "again.csv", *visits[3:], *paid]
    check_refused(main(*again, "--label", "2026-10"), 2, "--label = '2026-10' is not accepted")
    assert accounting.Budget.open("ledger").spent == [("2026-10", 1.0)]
    assert main(*again, "--label", "2026-11") == SILENT
    other = ["--limit", "7", "--label", "2026-12"]
    check_refused(main(*again[:2], "c.csv", *again[3:], *other), 2, "--limit = 7 is not accepted")


def test_the_same_command_completes_a_release_that_was_interrupted(
    main: Main, visits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*visits, "--epsilon", "1", "--budget", "ledger", "--limit", "6", "--label", "May"]
    with monkeypatch.context() as patch:
        place = os.link

        def link(source: Any, target: Any, **how: Any) -> None:
            if os.path.basename(target) == "noisy.csv":
                raise KeyboardInterrupt
            place(source, target, **how)

        patch.setattr(os, "link", link)
        check_refused(main(*command), 1, "interrupted")
    assert accounting.Budget.open("ledger").spent == [("May", 1.0)]
    check_refused(main(*command[:2], "b.csv", *command[3:]), 2, "--label = 'May'")
    assert main(*command) == SILENT
    assert geomdp.read("noisy.csv").label == "May"
    assert accounting.Budget.open("ledger").spent == [("May", 1.0)]


def test_a_budget_is_made_shown_and_reported(main: Main, visits: list[str]) -> None:
    check_refused(main("budget", "ledger"), 1, "no such ledger: make it with --epsilon or --rho")
    made = Done(0, "6.0\nLimit: epsilon 6\nSpent: epsilon 0\nLeft: epsilon 6\n", "")
    assert main("budget", "ledger", "--epsilon", "6") == made
    assert main("budget", "ledger") == made
    paid = ["--epsilon", "1/2", "--budget", "ledger", "--label", "May\tx"]
    assert main(*visits, *paid) == SILENT
    left, _, spent, _, release = main("budget", "ledger").out.splitlines()
    assert (left, spent) == ("5.5", "Spent: epsilon 0.5")
    assert re.fullmatch(r"20..-..-.. ..:..:.. UTC: epsilon 0.5, May x", release)
    check_refused(main("budget", "ledger", "--epsilon", "7"), 2, "--epsilon = 7 is not accepted")
    check_refused(main("budget", "visits.csv"), 1, "no ledger of geomdp")
    check_refused(main("budget", "ledger", "--report", "page.txt"), 2, "--report = 'page.txt'")
    assert main("budget", "ledger", "--report", "page.html", "noisy.csv") == SILENT
    assert "noisy.csv" in Path("page.html").read_text()
    planned = ["--epsilon", "3", "--delta", "1e-6", "--losses", "0.1x20", "--losses", "0.5"]
    assert main("budget", "planned", *planned).out.splitlines()[0] == "0.5"
    groups = ["--groups", "Norway", "--groups", "Chad"]
    assert "\nLeft for Chad: 1\n" in main("budget", "g", "--rho", "1", *groups).out
    check_refused(main("budget", "h", *groups), 2, "give its --epsilon or --rho too")
    check_refused(main("budget", "h", "--epsilon", "3", "--delta", "0.1"), 2, "without losses")


#: Commands that the library refuses, by names of its own parameters.
NAMED = [
    ["--individual", "who"],
    ["--l1", "2", "--l0", "1"],
    ["--name", "town"],
    ["--bounds", "5", "3"],
    ["--at-least", "3", "--bounds", "0", "9"],
    ["--margins", "town", "Oslo"],
    ["--other", "nowhere", "x"],
    ["--complete", "nowhere"],
    ["--complete", "town", "--other", "town", "x"],
    ["--at-least", "1", "--margins", "town", "all"],
    ["--margins", "nowhere", "all"],
    ["--about", "titel", "x"],
    ["--unit", ""],
    ["--counts", "who", "--other", "town", "x"],
    ["--counts", "who", "--individual", "who", "--l0", "1"],
    ["--individual", "who", "--counts", "who", "--l0", "1"],
    ["--label", "May", "--budget", "ledger"],
    ["--label", "April", "--budget", "ledger", "--unit", "house"],
    ["--label", "April", "--budget", "ledger", "--neighbours", "change"],
    ["--label", "April", "--budget", "ledger", "--limit", "1"],
    ["--label", "April", "--budget", "other"],
    ["--root", "x"],
]


@pytest.mark.parametrize("options", NAMED, ids=" ".join)
def test_every_error_names_options_that_exist(
    main: Main, visits: list[str], options: list[str]
) -> None:
    """It named ``--l1`` before that was one, and parameters of Python such as ``unit=``."""
    accounting.Budget.open("ledger", epsilon=9).book(1, label="May")
    made = main(*visits[:2], "first.csv", *visits[3:], "--epsilon", 1, "--budget", "ledger",
                "--label", "first")  # fmt: skip
    assert made == SILENT
    done = main(*visits, "--epsilon", "1", *options)
    check_refused(done, done.code)
    assert done.code
    named = re.findall(r"(?<![\w-])--[a-z][\w-]*", done.err)
    assert {*named} <= {*cli._COMMANDS["count"].options}, done.err
    parameters = {x.strip("-").replace("-", "_") for x in cli._COMMANDS["count"].options}
    words = "|".join(sorted(parameters | IN_PYTHON | BY_PLACE))
    assert not re.search(rf"(?<![-\w])({words})( = |=)|\b(?<!--)(l0|l1|linf)\b", done.err), done.err
