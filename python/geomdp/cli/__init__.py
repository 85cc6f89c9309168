"""The command line: plan, count, add noise and publish, for CSV and Parquet files.

Numbers are taken exactly as written. The exit code is 0 on success, 2 if a command or a parameter
is invalid, and 1 for any other failure: files, their data, interrupts. Every error is one line on
standard error.
"""

from __future__ import annotations

import argparse
import errno
import gzip
import io
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from fractions import Fraction
from functools import partial
from typing import Any, BinaryIO, NamedTuple, NoReturn

import geomdp
from geomdp import accounting, accuracy
from geomdp._ground.new_file import new_file, taken
from geomdp._ground.notebook import showable
from geomdp._ground.parameters import shown
from geomdp._inputs.arrays import DTYPES
from geomdp.cli import _delimited, _parquet_file
from geomdp.mechanism import GeometricMechanism, check_dtype
from geomdp.tables._facts import about as _about
from geomdp.tables._facts import rounding
from geomdp.tables._publish import published

__all__ = ["main"]

_DELIMITERS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
#: The largest length of a number; no float needs more characters.
_LONGEST = 1100
#: Seconds between two reports of progress.
_PATIENCE = 1.0


class _TreeFile(str):
    """The name of a file of a tree, among those of levels."""

    __slots__ = ()


class _UsageError(Exception):
    """The command line is invalid."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the name of the program; those of this process if not given.

    Returns
    -------
    int
        The exit code: 0, 1 or 2.

    Examples
    --------
    >>> from geomdp.cli import main
    >>> main(["compose", "0.1x50"])
    5.0
    50 releases with these privacy losses are together (5.0, 0)-differentially private.
    0

    """
    try:
        given = _parser().parse_args(argv)
        _print(given.run(given))
    except SystemExit:
        return 0  # The parser printed help or the version.
    except BrokenPipeError:
        return 1  # The reader closed the pipe.
    except _UsageError as error:
        return _complain(error, 2)
    except OSError as error:
        reason = error.strerror or error
        return _complain(f"{error.filename}: {reason}" if error.filename else reason, 1)
    except (_delimited.DataError, MemoryError) as error:
        return _complain(str(error) or "out of memory", 1)
    except KeyboardInterrupt:
        return _complain("interrupted", 1)
    return 0


def _print(text: str) -> None:
    with _standard_output():
        print(text, end="", flush=True)


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
    except OSError:
        # Otherwise the interpreter flushes again at exit and reports a second error.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _complain(why: object, code: int) -> int:
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in f"geomdp: error: {why}")
    print(line, file=sys.stderr)
    return code


@contextmanager
def _refusing_parameters() -> Iterator[None]:
    """Turn the library's errors for parameters into usage errors, and print its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (TypeError, ValueError, OverflowError) as error:
            raise _UsageError(error) from error
    for warning in caught:
        print(f"geomdp: warning: {warning.message}", file=sys.stderr)


# Commands: each returns the text to print


@_refusing_parameters()
def _accuracy(given: argparse.Namespace) -> str:
    mechanism, n = _mechanism(given), given.simultaneous
    if given.bounds is None:
        a = accuracy.scale_to_accuracy(mechanism.scale, given.alpha, n=n or 1)
    else:
        a = accuracy.simultaneous_accuracy(mechanism, given.alpha, n=n or 1)
    where = "" if given.bounds is None else ", for any true count within the bounds"
    sentence = _sentence(n, a, given.alpha)
    return f"{a}\n{sentence[0].upper()}{sentence[1:]}{where}.\n"


@_refusing_parameters()
def _epsilon(given: argparse.Namespace) -> str:
    n = given.simultaneous
    reach = given.sensitivity or 1
    least = accuracy.accuracy_to_epsilon(given.accuracy, given.alpha, sensitivity=reach, n=n or 1)
    sentence = _sentence(n, given.accuracy, given.alpha)
    return f"{least}\nThis is the least epsilon for which {sentence}.\n"


def _sentence(n: int | None, a: int, alpha: str) -> str:
    subject = "a noisy count" if n in (None, 1) else f"at least one of {n} noisy counts"
    return (
        f"{subject} differs from the true count by more than {a} with probability at most {alpha}"
    )


@_refusing_parameters()
def _compose(given: argparse.Namespace) -> str:
    losses: Counter[Fraction] = Counter()
    for loss, n in given.losses:
        losses[Fraction(loss)] += n
    epsilon = accounting.compose(losses, Fraction(given.delta))
    n = losses.total()
    said = "releases with these privacy losses are together" if n > 1 else "release is"
    return f"{epsilon}\n{n} {said} ({epsilon}, {given.delta})-differentially private.\n"


@_refusing_parameters()
def _certificate(given: argparse.Namespace) -> str:
    certificate = _mechanism(given).certificate(given.dtype, tight=given.tight)
    return f"{certificate.to_json() if given.json else certificate}\n"


def _release(given: argparse.Namespace) -> str:
    if len(set(given.column)) < len(given.column):
        raise _UsageError("--column is given twice for the same column")
    with _refusing_parameters():
        mechanism = _mechanism(given)
    if given.describe:
        if len(given.column) > 1:
            raise _UsageError("--describe takes a single --column: all other columns are levels")
        return _publish(given, mechanism, counts=given.column[0])
    if any(each is not None for each in (given.about, given.budget, given.rounded)):
        raise _UsageError("--about, --budget and --rounded go with --describe")
    of_parquet = {path.lower().endswith(".parquet") for path in (given.source, given.target)}
    if len(of_parquet) == 2:
        raise _UsageError(
            "IN and OUT: give two Parquet files, or two CSV files (- is standard input or output)"
        )
    release: Callable[[Any, BinaryIO, list[str]], None]
    if of_parquet == {True}:
        if given.delimiter != ",":
            raise _UsageError("--delimiter applies to CSV files only")
        release = partial(_parquet_file.release, mechanism=mechanism)
    else:
        with _refusing_parameters():
            check_dtype(mechanism, "int64")
        delimiter = _DELIMITERS[given.delimiter]
        release = partial(_delimited.release, noise=mechanism.release, delimiter=delimiter)
    name = "standard input" if given.source == "-" else given.source
    with _output(given.target) as target, _input(given.source) as source:
        try:
            release(source, target, given.column)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise _delimited.DataError(f"{name}: not a gzip file, or a damaged one") from None
        except _delimited.DataError as error:
            raise _delimited.DataError(f"{name}: {error}") from error
        except ImportError as error:
            raise _delimited.DataError("Parquet needs PyArrow: pip install pyarrow") from error
    return ""


def _count(given: argparse.Namespace) -> str:
    files = given.levels or []
    if len(given.by) != len(files) or len(set(given.by)) < len(given.by):
        raise _UsageError(
            "--by and --levels or --tree: give each column once, with the file of its levels or "
            "of its tree"
        )
    with_tree = any(isinstance(path, _TreeFile) for path in files)
    if (given.root is not None or given.leaves_only) and not with_tree:
        raise _UsageError("--root and --leaves-only are for a --tree: give one")
    if not {*(given.complete or ())} <= {*given.by}:
        raise _UsageError("--complete is for the columns of --by: give one of these")
    levels: dict[Any, Any] = {}
    for name, path in zip(given.by, files, strict=True):
        if isinstance(path, _TreeFile):
            columns, tree = _tree(path, given)
            levels[columns if len(columns) > 1 and name == "/".join(columns) else name] = tree
        else:
            levels[name] = _lines(path)
    with _refusing_parameters():
        design = geomdp.tables.Design(
            levels,
            individual=given.individual and tuple(given.individual),
            l0=given.l0,
            linf=given.linf or 1,
            complete=tuple(given.complete or ()),
            unit=given.unit,
        )
        mechanism = GeometricMechanism(given.epsilon, design.sensitivity, bounds=given.bounds)
    return _publish(given, mechanism, design)


def _publish(
    given: argparse.Namespace,
    mechanism: GeometricMechanism,
    design: Any = None,
    counts: str | None = None,
) -> str:
    """Count, and write the release with its description."""
    from geomdp.cli import _records  # noqa: PLC0415 (other commands need no narwhals)

    name = "standard input" if given.source == "-" else given.source
    about = dict(given.about or ())
    if len(about) < len(given.about or ()):
        raise _UsageError("--about is given twice for the same KEY")
    with _refusing_parameters():
        _about.checked(about)
        if given.rounded is not None:
            rounding.step(given.rounded)
    budget = None if given.budget is None else _ledger(given.budget)
    try:
        with _refusing_parameters():
            published.free("OUT", given.target)
        with _input(given.source) as source, _refusing_parameters():
            table = _records.table(
                source,
                design,
                delimiter=_DELIMITERS[given.delimiter],
                counts=counts,
                l1=None if design is not None else given.sensitivity,
            )
            table.release(
                mechanism,
                budget=budget,
                save=given.target,
                rounded=given.rounded,
                about=about or None,
            )
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise _delimited.DataError(f"{name}: not a gzip file, or a damaged one") from None
    except _delimited.DataError as error:
        raise _delimited.DataError(f"{name}: {error}") from error
    except ModuleNotFoundError as error:
        raise _delimited.DataError(f"{error}: pip install narwhals pandas") from None
    return ""


def _report(given: argparse.Namespace) -> str:
    from geomdp.tables._reading import report as made  # noqa: PLC0415 (other commands read no release)

    with _refusing_parameters():
        made.free("OUT", given.target)
    budget = _ledger(given.ledger)
    try:
        made.report(budget, given.target, given.files)
    except ValueError as error:
        raise _delimited.DataError(str(error)) from None
    return ""


def _ledger(path: str) -> accounting.Budget:
    """Return the budget of a ledger that exists."""
    try:
        return accounting.Budget.open(path)
    except ValueError as error:
        raise _delimited.DataError(error) from None


def _lines(path: str) -> list[str]:
    """Return the lines of a file of levels."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read().splitlines()
    except UnicodeDecodeError:
        raise _delimited.DataError(f"{path}: it is not in UTF-8") from None


def _tree(path: str, given: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
    """Return the tree of a CSV file, and the names of its columns."""
    from geomdp.cli import _records  # noqa: PLC0415 (other commands need no narwhals)

    with _input(path) as source, _refusing_parameters():
        try:
            return _records.hierarchy(
                source,
                delimiter=_DELIMITERS[given.delimiter],
                root=given.root,
                leaves_only=given.leaves_only,
            )
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise _delimited.DataError(f"{path}: not a gzip file, or a damaged one") from None
        except _delimited.DataError as error:
            raise _delimited.DataError(f"{path}: {error}") from None


# Parameters; a number stays text, which the sentences show


_SUCH_AS = "such as 0.5, 1e-3 or 1/3"


def _number(text: str, wanted: str = f"a number {_SUCH_AS}", above: int = -1) -> str:
    # An exponent of unlimited length would take unlimited memory.
    number = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[0-9]+/0*[1-9][0-9]*"
    if len(text) > _LONGEST or not re.fullmatch(number, text) or Fraction(text) <= above:
        _refuse(text, wanted)
    return text


def _integer(
    text: str, wanted: str = "an integer of at most 38 digits", least: float = -math.inf
) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,38}", text) or int(text) < least:
        _refuse(text, wanted)
    return int(text)


def _loss(text: str) -> tuple[str, int]:
    loss, times, n = text.partition("x")
    return _number(loss, f"a number {_SUCH_AS}, or 0.5x20 for 20 releases"), _whole(
        n if times else "1"
    )


def _refuse(text: str, wanted: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"{shown(text)} is not accepted: give {wanted}")


_positive = partial(_number, wanted=f"a positive number {_SUCH_AS}", above=0)
_whole = partial(_integer, wanted="an integer of at least 1 and at most 38 digits", least=1)


def _mechanism(given: argparse.Namespace) -> GeometricMechanism:
    if given.scale is None:
        return GeometricMechanism(given.epsilon, given.sensitivity or 1, bounds=given.bounds)
    if given.sensitivity is not None:
        raise _UsageError("--sensitivity is for --epsilon: leave it out with --scale")
    return GeometricMechanism.from_scale(given.scale, given.bounds)


# Files


@contextmanager
def _input(path: str) -> Iterator[Any]:
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
        yield sys.stdin.buffer
        return
    with _Watched(path) as raw, io.BufferedReader(raw) as file:
        yield gzip.GzipFile(fileobj=file) if _is_zipped(path) else file


class _Watched(io.FileIO):
    """A file that tells a person at a terminal how much of it has been read."""

    _next, _shown = math.inf, ""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._size = os.fstat(self.fileno()).st_size
        if self._size and sys.stderr is not None and sys.stderr.isatty():
            self._next = time.monotonic() + _PATIENCE

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() >= self._next:
            self._show(f"geomdp: {self.tell() / self._size:.0%} read")
            self._next = time.monotonic() + _PATIENCE
        return super().readinto(buffer)

    def close(self) -> None:
        if self._shown:
            self._show(" " * len(self._shown))
            self._show("")
        super().close()

    def _show(self, text: str) -> None:
        self._shown = text
        with suppress(OSError):
            print(f"\r{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def _output(path: str) -> Iterator[Any]:
    """Yield a file to write; on success it becomes the named file, or goes to standard output."""
    if path != "-":
        if os.path.lexists(path):
            raise taken(path)
        with _interrupts() as commit, new_file(path, placing=commit) as file:
            if not _is_zipped(path):
                yield file
                return
            # GzipFile would store the temporary name.
            with gzip.GzipFile("", "wb", 6, file) as zipped:
                yield zipped
        return
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    with _interrupts(), tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        with _standard_output():
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _is_zipped(path: str) -> bool:
    return path.lower().endswith(".gz")


@contextmanager
def _interrupts() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Raise KeyboardInterrupt for the first signal to stop, unless the yielded function was called.

    Later signals are ignored, since they would interrupt the cleanup.
    """
    ignoring = False

    def stop(*_: object) -> None:
        nonlocal ignoring
        if not ignoring:
            ignoring = True
            raise KeyboardInterrupt

    def commit() -> AbstractContextManager[None]:
        nonlocal ignoring
        ignoring = True
        return nullcontext()

    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # Leave signals alone that the parent process set to be ignored, or that C code handles.
            if number is not None and signal.getsignal(number) not in (None, signal.SIG_IGN):
                before[number] = signal.signal(number, stop)
    try:
        yield commit
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# The parser


@showable
class _Parser(argparse.ArgumentParser):
    """Raises errors for main to report; argparse prints several lines, or nothing."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, _: Any = None) -> None:
        _print(message)


@showable
class _Version(argparse.Action):
    """Reads the version when it is asked for: it is in the package's metadata."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(message=f"geomdp {geomdp.__version__}\n")


class _Command(NamedTuple):
    run: Callable[[argparse.Namespace], str]
    summary: str
    about: str
    example: str
    options: str


_COMMANDS = {
    "accuracy": _Command(
        _accuracy,
        "how accurate a release is",
        """\
Print the accuracy at level alpha: the least a for which the probability of an
error of more than a is at most alpha. A sentence that explains it follows.

With --bounds, this is the accuracy of the clamped release, and otherwise that of
the noise alone.""",
        "--epsilon 0.5 --alpha 0.05 --bounds 0 4526 --simultaneous 24",
        "--epsilon --scale --sensitivity --bounds --alpha --simultaneous",
    ),
    "epsilon": _Command(
        _epsilon,
        "the least epsilon for an accuracy",
        """\
Print the least epsilon that gives this accuracy at level alpha, rounded up, for
noise without bounds. A sentence that explains it follows.""",
        "--accuracy 5 --alpha 0.05 --simultaneous 200",
        "--accuracy --alpha --sensitivity --simultaneous",
    ),
    "compose": _Command(
        _compose,
        "the total privacy loss of many releases",
        """\
Print an epsilon for which all the releases together are (epsilon, delta)-private.
It is rounded up, and is the least one wherever that can be computed. A sentence
that explains it follows.

If delta is not 0, all privacy losses must be fixed before the first release.""",
        "--delta 1e-6 0.1x50 0.5x2",
        "--delta losses",
    ),
    "certificate": _Command(
        _certificate,
        "why a release is private",
        "Print the exact data and inequalities that prove the sampled distribution private.",
        "--epsilon 0.5 --bounds 0 4526 --tight",
        "--epsilon --scale --sensitivity --bounds --dtype --tight --json",
    ),
    "release": _Command(
        _release,
        "add noise to columns of a CSV or Parquet file",
        """\
Copy a CSV or Parquet file of any size, adding noise to the counts in the columns
that you name.

Epsilon is the privacy loss of all counts in all these columns together, and the
sensitivity is the most by which one individual can change them in total (L1).
Every run draws fresh noise and costs epsilon again.

Counts outside the bounds are clamped without an error, since an error would
reveal them. Everything else is copied and must be public: the other columns, the
number of rows and their order. OUT must not exist, and appears only when it is
complete.

CSV: Counts are decimal integers within int64. Other cells are copied byte for
byte. IN begins with a header in UTF-8, with or without a byte order mark; its
rows end with LF or CRLF, and its cells are quoted as in RFC 4180. Anything else
is refused, with its line and column. A name that ends with .gz stands for a file
compressed with gzip. IN may be - for standard input, and OUT may be - for
standard output, to which nothing is written before all of IN has been read.

Parquet, if both names end with .parquet: Counts are integers of 8 to 64 bits
without nulls, and keep their type. This needs geomdp[parquet].

The time to draw noise does not depend on the counts, but the time to parse counts
and to write noisy counts does.""",
        "counts.csv noisy.csv --column count --epsilon 0.5 --bounds 0 4526",
        "source target --column --epsilon --scale --sensitivity --bounds --delimiter --describe "
        "--about --budget --rounded",
    ),
    "count": _Command(
        _count,
        "count the records of a CSV file, and publish the noisy counts",
        """\
Count the records of a CSV file by columns, add noise, and write the noisy counts
with a description, which geomdp.read, R and the page understand. OUT ends with
.csv (its description is OUT.json), .parquet or .html, and must not exist.

Follow each --by with its --levels, a file with one level a line, or its --tree.
Both are public, so do not take them from the records. A level without records
counts 0, and records with other levels are not counted.

A tree is a CSV file with a column of names for each of its depths, from the root
down, and a row for each leaf; empty cells, wherever they are, make a shorter
path. A column "label" may give the text that readers see for a node, for inner
nodes in rows of their own. If the first column has several names, --root names
the sum of all of them. The NAME of --by is then a column of IN with the names or
paths of nodes or, if IN has a column for each depth too, the names of these
columns with / between them, such as country/region/tract. With --leaves-only,
records of inner nodes are not counted, and estimates add up.

Without --individual, each record is one individual. With it, an individual counts
in at most --l0 cells, chosen at random, with at most --linf records in each. A
budget adds up the losses of one --unit, the word for whom epsilon protects. Name
with --complete the columns in which, as you state, every record has a level; then
readers may combine the table with one without these columns.

Epsilon is the privacy loss of the whole table for one individual. Every run draws
fresh noise and costs epsilon again; --budget books it in a ledger of
accounting.Budget.open before any noise is drawn, or refuses it. All cells are
read as text, and all of IN is held in memory. This needs geomdp[tables] and
pandas, Polars or PyArrow.""",
        "visits.csv noisy.csv --by sex --levels sexes.txt --epsilon 0.5",
        "source target --by --levels --tree --root --leaves-only --individual --l0 --linf "
        "--unit --complete --epsilon --bounds --delimiter --about --budget --rounded",
    ),
    "report": _Command(
        _report,
        "what was spent of a budget, as a page for auditors",
        """\
Write a page about a budget that is kept in a file, its ledger: the limit, what is
spent and what is left; the time, label and privacy loss of each release; and the
names and SHA-256 digests of published files, each beside the release that has its
id. OUT ends with .html and must not exist.

The ledger is read and not changed, and none of its limits is needed. A FILE ends
with .csv or .parquet, and its description is beside it. One that this budget did
not pay for is listed apart. The page has no count, but it has the labels.""",
        "2026.jsonl report.html 2026-10.csv",
        "ledger target files",
    ),
}

#: The metavariable, the help, and the other arguments of each option.
_OPTIONS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "--about": (
        ("KEY", "TEXT"),
        f"what to say about the table; may be repeated. KEY is {', '.join(_about.KEYS)}",
        {"nargs": 2, "action": "append"},
    ),
    "--accuracy": ("A", "an integer", {"type": _integer, "required": True}),
    "--alpha": ("P", "the probability of a greater error", {"type": _positive, "required": True}),
    "--bounds": (
        ("L", "U"),
        "the least and the greatest noisy count; by default the limits of the signed type",
        {"type": _integer, "nargs": 2},
    ),
    "--budget": (
        "FILE",
        "the ledger of a budget, which books the release or refuses it",
        {},
    ),
    "--by": (
        "NAME",
        "a column to count by; may be repeated, each with its --levels or --tree",
        {"action": "append", "required": True},
    ),
    "--column": (
        "NAME",
        "a column of counts; may be repeated",
        {"action": "append", "required": True},
    ),
    "--complete": (
        "NAME",
        "a column in which every record has one of the levels; may be repeated",
        {"action": "append"},
    ),
    "--delimiter": (
        "D",
        'the delimiter of cells: "," (the default), ";", "|" or "tab"',
        {"choices": [*_DELIMITERS], "default": ","},
    ),
    "--delta": ("D", "from 0 to 1; by default 0", {"type": _number, "default": "0"}),
    "--dtype": (
        "TYPE",
        "the type of the counts, int8 to int64 or uint8 to uint64; by default int64",
        {"choices": list(DTYPES)},
    ),
    "--epsilon": ("E", "the privacy loss", {"type": _positive}),
    "--individual": (
        "NAME",
        "a column that identifies individuals; may be repeated if several do so together",
        {"action": "append"},
    ),
    "--l0": ("N", "the most cells that one individual counts in", {"type": _whole}),
    "--levels": (
        "FILE",
        "a file with the levels of a column, one a line",
        {"action": "append"},
    ),
    "--linf": (
        "N",
        "the most records of one individual in a cell; by default 1",
        {"type": _whole},
    ),
    "--root": ("NAME", "a name for the sum of all, for a tree with several nodes at its top", {}),
    "--rounded": ("N", "publish multiples of N, such as 5 or 10", {"type": _integer}),
    "--scale": ("S", "the noise scale, sensitivity / epsilon", {"type": _positive}),
    "--sensitivity": (
        "S",
        "the most by which one individual can change the counts in total; by default 1",
        {"type": _whole},
    ),
    "--simultaneous": (
        "N",
        "how many counts must be this accurate at once",
        {"type": _whole},
    ),
    "--tree": (
        "FILE",
        "a CSV file with the tree of a column",
        {"action": "append", "dest": "levels", "type": _TreeFile},
    ),
    "files": ("FILE", "a published file; may be repeated", {"nargs": "*"}),
    "ledger": ("LEDGER", "the file of a budget", {}),
    "losses": (
        "E[xN]",
        "the privacy loss of a release, or of each of N releases",
        {"type": _loss, "nargs": "+"},
    ),
    "source": ("IN", "the CSV or Parquet file to read", {}),
    "--unit": ("WORD", "whom epsilon protects, such as person", {}),
    "target": ("OUT", "the file to write", {}),
}
_FLAGS = {
    "--describe": "write a table with a description, as geomdp count does: the --column has the "
    "counts, all other columns are levels; --about, --budget and --rounded go with it",
    "--leaves-only": "every record belongs to a leaf of its tree",
    "--json": "print the whole certificate, for a verifier",
    "--tight": "compute the exact privacy loss, for bounds up to 100000 apart",
}


def _parser() -> argparse.ArgumentParser:
    about = """\
Publish counts with the geometric mechanism of differential privacy, and compute
how accurate the noisy counts are.

Numbers are taken exactly: 0.1 is a tenth, and 1/3 a third.

Exit codes: 0 on success; 2 if a command or a parameter is invalid; 1 for any
other failure. Every error is one line on standard error."""
    parser = _Parser("geomdp", **_help(about, "geomdp accuracy --epsilon 0.5 --alpha 0.05"))
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        example = f"geomdp {name} {command.example}"
        added = commands.add_parser(name, help=command.summary, **_help(command.about, example))
        added.set_defaults(run=command.run)
        options = command.options.split()
        choice = (
            added.add_mutually_exclusive_group(required=True) if "--scale" in options else added
        )
        for option in options:
            group = choice if option in ("--epsilon", "--scale") else added
            if option in _FLAGS:
                group.add_argument(option, action="store_true", help=_FLAGS[option])
            else:
                metavar, text, more = _OPTIONS[option]
                if option == "--epsilon" and group is added:
                    more = more | {"required": True}
                group.add_argument(option, metavar=metavar, help=text, **more)
    return parser


def _help(about: str, example: str) -> dict[str, Any]:
    return {
        "description": about,
        "epilog": f"example:\n  {example}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
