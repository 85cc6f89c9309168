"""The command line: accuracy, epsilon, certificates, release of CSV and Parquet files, plots.

Numbers are taken exactly as written. The exit code is 0 on success, 2 if a command or a parameter
is invalid, and 1 for any other failure: files, their data, interrupts. Every error is one line on
standard error.
"""

import argparse
import errno
import glob
import gzip
import math
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

from geomdp import __version__
from geomdp._release.mechanism import GeometricMechanism

__all__ = ["main"]

_DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_DELIMITERS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
_PICTURES = (".pdf", ".png", ".svg")
#: The largest length of a number; no float needs more characters.
_LONGEST = 1100
#: The number of epsilons in a plot.
_POINTS = 200


class _UsageError(Exception):
    """The command line is invalid."""


class _CommandError(Exception):
    """The command fails."""


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

    """
    try:
        _print(_run(argv))
    except BrokenPipeError:
        return 1  # The reader closed the pipe.
    except _UsageError as error:
        return _complain(error, 2)
    except OSError as error:
        return _complain(_reason(error), 1)
    except (_CommandError, MemoryError) as error:
        return _complain(str(error) or "out of memory", 1)
    except KeyboardInterrupt:
        return _complain("interrupted", 1)
    return 0


def _run(argv: Sequence[str] | None) -> str:
    try:
        given = _parser().parse_args(argv)
    except SystemExit:
        return ""  # The parser printed help or the version.
    run: Callable[[argparse.Namespace], str] = given.run
    return run(given)


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
    _remark(f"geomdp: error: {why}")
    return code


def _remark(text: str) -> None:
    print(_one_line(text), file=sys.stderr)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


@contextmanager
def _refusing_parameters() -> Iterator[None]:
    """Turn the library's errors for parameters into usage errors."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise _UsageError(error) from error


# Commands: each returns the text to print


def _accuracy(given: argparse.Namespace) -> str:
    from geomdp import accuracy  # noqa: PLC0415 (slow, and not needed for --help)

    ideal = given.bounds is given.count is given.simultaneous is None
    if not ideal and given.method != "exact":
        raise _UsageError(
            f"--method {given.method} applies to noise without bounds only: "
            "leave out --bounds, --count and --simultaneous"
        )
    with _refusing_parameters():
        if ideal:
            a = accuracy.scale_to_accuracy(_scale(given), given.alpha, method=given.method)
        elif given.simultaneous is not None:
            a = accuracy.simultaneous_accuracy(_mechanism(given), given.alpha, given.simultaneous)
        else:
            a = accuracy.release_accuracy(_mechanism(given), given.alpha, given.count)
    n = given.simultaneous
    subject = "A noisy count" if n is None else f"At least one of {n} noisy counts"
    where = ""
    if given.count is not None:
        where = f", for a true count of {given.count}"
    elif given.bounds is not None:
        where = ", for any true count within the bounds"
    return f"{a}\n{_sentence(given, a, subject)}{where}.\n"


def _epsilon(given: argparse.Namespace) -> str:
    from geomdp import accuracy  # noqa: PLC0415

    with _refusing_parameters():
        least = accuracy.accuracy_to_epsilon(
            given.accuracy, given.alpha, given.sensitivity or 1, method=given.method
        )
    # The decimal number may be below the float.
    text = repr(least)
    if Fraction(text) < Fraction(least):
        text = repr(math.nextafter(least, math.inf))
    exact = given.method == "exact"
    start = "This is the least epsilon for which" if exact else "With this epsilon,"
    return f"{text}\n{_sentence(given, given.accuracy, f'{start} a noisy count')}.\n"


def _sentence(given: argparse.Namespace, a: float, subject: str) -> str:
    if given.method == "continuous":
        subject = "A count with Laplace noise"
    return (
        f"{subject} differs from the true count by more than {a} "
        f"with probability at most {given.alpha}"
    )


def _certificate(given: argparse.Namespace) -> str:
    with _refusing_parameters():
        certificate = _mechanism(given).certificate(given.dtype, tight=given.tight)
    return f"{certificate.to_json() if given.json else certificate}\n"


def _release(given: argparse.Namespace) -> str:
    import numpy as np  # noqa: PLC0415

    from geomdp._files import delimited, parquet_file  # noqa: PLC0415

    if len(set(given.column)) < len(given.column):
        raise _UsageError("--column is given twice for the same column")
    mechanism = _mechanism(given)
    of_parquet = [path.lower().endswith(".parquet") for path in (given.source, given.target)]
    if any(of_parquet) and not all(of_parquet):
        raise _UsageError(
            "IN and OUT: give two Parquet files, or two CSV files (- is standard input or output)"
        )
    if all(of_parquet):
        if given.delimiter != ",":
            raise _UsageError("--delimiter applies to CSV files only")
        release: Callable[..., int] = partial(parquet_file.release, mechanism=mechanism)
    else:
        with _refusing_parameters():
            # An empty release checks the bounds against int64.
            mechanism.release(np.zeros(0, np.int64))
        delimiter = _DELIMITERS[given.delimiter]
        release = partial(delimited.release, noise=mechanism.release, delimiter=delimiter)
    name = "standard input" if given.source == "-" else given.source
    with (
        _output(given.target) as file,
        _zipping(given.target, file) as target,
        _input(given.source) as source,
        _progress(source) as progress,
    ):
        try:
            rows = release(
                gzip.GzipFile(fileobj=source) if _is_zipped(given.source) else source,
                target,
                given.column,
                progress=lambda done: progress(source.tell() if _is_zipped(given.source) else done),
            )
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise _CommandError(f"{name}: not a gzip file, or a damaged one") from None
        except delimited.DataError as error:
            raise _CommandError(f"{name}: {error}") from error
        except ImportError as error:
            raise _CommandError("Parquet needs PyArrow: pip install geomdp[parquet]") from error
    done = f"{rows} row{'' if rows == 1 else 's'} with noise written to"
    if given.target != "-":
        return _one_line(f"{done} {given.target}") + "\n"
    _remark(f"{done} standard output")
    return ""


def _plot_pmf(given: argparse.Namespace) -> str:
    mechanism = _mechanism(given)
    return _plot(given, lambda plot, ax: plot.pmf(mechanism, given.count, ax=ax))


def _plot_accuracy(given: argparse.Namespace) -> str:
    alpha, sensitivity = given.alpha, given.sensitivity or 1
    return _plot(
        given,
        lambda plot, ax: plot.accuracy(_grid(given), alpha, sensitivity=sensitivity, ax=ax),
    )


def _plot_variance(given: argparse.Namespace) -> str:
    sensitivity = given.sensitivity or 1
    return _plot(
        given, lambda plot, ax: plot.variance(_grid(given), sensitivity=sensitivity, ax=ax)
    )


def _plot(given: argparse.Namespace, draw: Callable[[Any, Any], object]) -> str:
    """Draw a plot and save it to the given file."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise _CommandError("plots need matplotlib: pip install geomdp[plot]") from error
    from geomdp import plot  # noqa: PLC0415

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    with _refusing_parameters():
        draw(plot, figure.subplots())
    with _new_file(given.output) as target:
        figure.savefig(target, format=Path(given.output).suffix[1:].lower())
    return ""


def _grid(given: argparse.Namespace) -> list[float]:
    """Return numbers from the lower to the higher epsilon, at equal ratios."""
    import numpy as np  # noqa: PLC0415

    low, high = map(float, given.epsilons)
    if not 0 < low < high:
        raise _UsageError("--epsilons: give two numbers, the lower one first")
    epsilons: list[float] = np.geomspace(low, high, _POINTS).tolist()
    return epsilons


# Parameters


class _Number(Fraction):
    """The exact value of a decimal number or a fraction, shown as written."""

    text: str

    def __new__(cls, text: str) -> "_Number":
        """Return the number, exactly."""
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        # From CPython 3.13 on, Fraction.__format__ does not use __str__.
        return format(self.text, spec)


_SUCH_AS = "such as 0.5, 1e-3 or 1/3"


def _number(
    text: str,
    wanted: str = f"a number {_SUCH_AS}",
    accepts: Callable[[Fraction], bool] = lambda _: True,
) -> Fraction:
    decimal = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text)
    ratio = re.fullmatch(r"[+-]?[0-9]+/0*[1-9][0-9]*", text)
    # An exponent of unlimited length would take unlimited memory.
    if len(text) > _LONGEST or not (decimal or ratio) or not accepts(number := _Number(text)):
        _refuse(text, wanted)
    if abs(number) > sys.float_info.max:
        _refuse(text, f"at most {sys.float_info.max}")
    return number


_positive = partial(_number, wanted=f"a positive number {_SUCH_AS}", accepts=lambda x: x > 0)
_level = partial(
    _number,
    wanted="a number above 0, at most 1, such as 0.05 or 1/20",
    accepts=lambda x: 0 < x <= 1,
)


def _integer(
    text: str, wanted: str = "an integer of at most 38 digits", least: float = -math.inf
) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,38}", text) or int(text) < least:
        _refuse(text, wanted)
    return int(text)


_positive_integer = partial(
    _integer, wanted="an integer of at least 1 and at most 38 digits", least=1
)


def _picture(text: str) -> str:
    if not text.lower().endswith(_PICTURES):
        _refuse(text, f"a name that ends with one of {', '.join(_PICTURES)}")
    return text


def _refuse(text: str, wanted: str) -> NoReturn:
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    raise argparse.ArgumentTypeError(f"{shown!r} is not accepted: give {wanted}")


def _scale(given: argparse.Namespace) -> Fraction:
    if given.scale is None:
        return (given.sensitivity or 1) / Fraction(given.epsilon)
    if given.sensitivity is not None:
        raise _UsageError("--sensitivity goes with --epsilon, not with --scale")
    return Fraction(given.scale)


def _mechanism(given: argparse.Namespace) -> GeometricMechanism:
    with _refusing_parameters():
        return GeometricMechanism.from_scale(_scale(given), given.bounds)


# Files


@contextmanager
def _input(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
        yield sys.stdin.buffer
    else:
        with open(path, "rb") as file:
            yield file


@contextmanager
def _output(path: str) -> Iterator[BinaryIO]:
    """Yield a file to write; on success it becomes the named file, or goes to standard output."""
    if path != "-":
        with _new_file(path) as file:
            yield file
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
def _zipping(path: str, file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a file that writes to another one, with gzip if the name ends with .gz."""
    if _is_zipped(path):
        # GzipFile would store the temporary name.
        with gzip.GzipFile("", "wb", 6, file) as zipped:
            yield zipped  # type: ignore[misc]
    else:
        yield file


@contextmanager
def _new_file(path: str) -> Iterator[BinaryIO]:
    """Yield a file that gets this name once it is complete, unless the name is taken.

    Until then it has a temporary name in the same directory. An exception, Ctrl-C or a signal to
    terminate deletes it.
    """
    if os.path.lexists(path):
        raise _exists(path)
    directory = os.path.dirname(path)
    for stale in glob.iglob(os.path.join(glob.escape(directory), ".geomdp-*.part")):
        _remark(
            f"geomdp: note: {stale} is unfinished: delete it unless its command is still running"
        )
    part = os.path.join(directory, f".geomdp-{os.urandom(8).hex()}.part")
    with _interrupts() as commit:
        try:
            try:
                file = open(part, "xb")  # noqa: SIM115 (closed below)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            commit()
            _name(part, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)


def _name(part: str, path: str) -> None:
    """Rename a file atomically; fail if the name is taken."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:
        # The file system has no links. Renaming would replace an existing file, so reserve the
        # name first.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            raise _exists(path) from None
        try:
            os.replace(part, path)
        except BaseException:
            os.unlink(path)
            raise


def _exists(path: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "already exists, and is not overwritten", path)


@contextmanager
def _interrupts() -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt for the first signal to stop, unless the yielded function was called.

    Later signals are ignored, since they would interrupt the cleanup.
    """
    over = False

    def stop(*_: object) -> None:
        nonlocal over
        if not over:
            over = True
            raise KeyboardInterrupt

    def commit() -> None:
        nonlocal over
        over = True

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


@contextmanager
def _progress(source: BinaryIO) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows the number of bytes read so far, if on a terminal."""
    status = os.fstat(source.fileno())
    if not (stat.S_ISREG(status.st_mode) and sys.stderr is not None and sys.stderr.isatty()):
        yield lambda _: None
        return
    shown = -1

    def show(done: int) -> None:
        nonlocal shown
        percent = min(100, 100 * done // max(1, status.st_size))
        if percent != shown:
            shown = percent
            print(
                f"\r[{'#' * (percent // 2):<50}] {percent:3}%", end="", file=sys.stderr, flush=True
            )

    try:
        yield show
    finally:
        print(f"\r{'':<57}\r", end="", file=sys.stderr, flush=True)


# The parser


class _Parser(argparse.ArgumentParser):
    """Raises errors for main to report; argparse prints several lines, or nothing."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, _: Any = None) -> None:
        _print(message)


_ABOUT = """\
Add integer noise to counts with the geometric mechanism of differential privacy,
and compute how accurate the noisy counts are.

Numbers are taken exactly: 0.1 is a tenth, and 1/3 a third.

Exit codes: 0 on success; 2 if a command or a parameter is invalid; 1 for any
other failure. Every error is one line on standard error."""

_ABOUT_ACCURACY = """\
Print the accuracy at level alpha: the least a such that an error of more than a
has probability at most alpha. A sentence that explains it follows.

With --bounds, --count or --simultaneous, this is the accuracy of the release, for
int64 if there are no bounds. Otherwise it is the accuracy of the noise."""

_ABOUT_EPSILON = """\
Print the least epsilon with the given accuracy at level alpha, rounded up. A
sentence that explains it follows. This is for noise without bounds."""

_ABOUT_RELEASE = """\
Copy a CSV or Parquet file of any size, and add noise to counts in some columns.

Epsilon is the privacy loss of all counts in all these columns together. The
sensitivity is the largest total change (L1) of these counts by one individual.
Every run draws fresh noise and costs epsilon again.

Counts outside the bounds are clamped without an error, since an error would
reveal them. All else is copied, and must be public: other columns, the number
and order of rows. OUT must not exist; it appears only when it is complete. The
command then prints its number of rows.

CSV: Counts are decimal integers within int64. Noisy counts are written without
quotes and blanks; all else is copied to the byte. IN begins with a header in
UTF-8, with or without a byte order mark. Its rows end with LF or CRLF, and cells
are quoted as in RFC 4180. Other input is refused with its line and column. A name
that ends with .gz is a file compressed with gzip. IN may be - for standard input.
OUT may be - for standard output; nothing is written before all of IN is read.

Parquet, if both names end with .parquet: Counts are integers of 8 to 64 bits,
without nulls, and keep their type. This needs geomdp[parquet].

The time to draw noise does not depend on the counts. The time to parse counts and
to write noisy counts does."""

_ABOUT_PLOT = """\
Draw a plot to a file that must not exist. This needs matplotlib, from the extra
geomdp[plot]."""


_Commands: TypeAlias = "argparse._SubParsersAction[Any]"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("geomdp", **_help(_ABOUT, "geomdp accuracy --epsilon 0.5 --alpha 0.05"))
    parser.add_argument("--version", action="version", version=f"geomdp {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_accuracy(commands)
    _add_epsilon(commands)
    _add_certificate(commands)
    _add_release(commands)
    _add_plot(commands)
    return parser


def _add_accuracy(commands: _Commands) -> None:
    example = "geomdp accuracy --epsilon 0.5 --alpha 0.05 --bounds 0 4526 --simultaneous 24"
    parser = _add(
        commands, "accuracy", "how accurate a release is", _ABOUT_ACCURACY, example, run=_accuracy
    )
    _add_noise(parser)
    _add_alpha(parser)
    _add_method(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--count", type=_integer, metavar="X", help="a true count")
    which.add_argument(
        "--simultaneous",
        type=_positive_integer,
        metavar="N",
        help="the number of counts that are to be this accurate at once",
    )


def _add_epsilon(commands: _Commands) -> None:
    example = "geomdp epsilon --accuracy 10 --alpha 0.05"
    parser = _add(
        commands,
        "epsilon",
        "the least epsilon for an accuracy",
        _ABOUT_EPSILON,
        example,
        run=_epsilon,
    )
    parser.add_argument("--accuracy", type=_integer, required=True, metavar="A", help="an integer")
    _add_alpha(parser)
    _add_sensitivity(parser)
    _add_method(parser)


def _add_certificate(commands: _Commands) -> None:
    example = "geomdp certificate --epsilon 0.5 --bounds 0 4526 --tight"
    about = "Print the exact data and inequalities that prove the sampled distribution private."
    parser = _add(
        commands, "certificate", "why a release is private", about, example, run=_certificate
    )
    _add_noise(parser)
    parser.add_argument(
        "--dtype",
        choices=_DTYPES,
        metavar="TYPE",
        help="type of the counts: int8 to int64 or uint8 to uint64; int64 if not given",
    )
    parser.add_argument(
        "--tight",
        action="store_true",
        help="compute the exact privacy loss, for bounds up to 100000 apart",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the whole certificate, for a verifier"
    )


def _add_release(commands: _Commands) -> None:
    example = "geomdp release counts.csv noisy.csv --column count --epsilon 0.5 --bounds 0 4526"
    about = "add noise to columns of a CSV or Parquet file"
    parser = _add(commands, "release", about, _ABOUT_RELEASE, example, run=_release)
    parser.add_argument("source", metavar="IN", help="the CSV or Parquet file with the true counts")
    parser.add_argument("target", metavar="OUT", help="the file to write, in the same format")
    parser.add_argument(
        "--column",
        action="append",
        required=True,
        metavar="NAME",
        help="a column of counts; may be repeated",
    )
    _add_noise(parser)
    parser.add_argument(
        "--delimiter",
        choices=[*_DELIMITERS],
        default=",",
        metavar="D",
        help='delimiter of cells: "," (if not given), ";", "|" or "tab"',
    )


def _add_plot(commands: _Commands) -> None:
    example = "geomdp plot accuracy --output accuracy.png"
    parser = _add(commands, "plot", "plots of noise and accuracy", _ABOUT_PLOT, example)
    pictures = parser.add_subparsers(title="plots", metavar="PLOT", required=True)

    example = "geomdp plot pmf --output pmf.png --epsilon 0.5 --bounds 0 30 --count 19 20 21"
    about = "Draw the probability of each noisy count, for the given true counts."
    parser = _add(
        pictures, "pmf", "the distribution of noisy counts", about, example, run=_plot_pmf
    )
    _add_output(parser)
    _add_noise(parser)
    parser.add_argument(
        "--count", type=_integer, nargs="+", required=True, metavar="X", help="true counts"
    )

    example = "geomdp plot accuracy --output accuracy.png --alpha 0.05 --epsilons 0.1 10"
    about = "Draw the accuracy at level alpha against epsilon, exact and by other methods."
    parser = _add(
        pictures, "accuracy", "accuracy against epsilon", about, example, run=_plot_accuracy
    )
    _add_output(parser)
    _add_alpha(parser, default=Fraction(1, 20))
    _add_epsilons(parser)

    example = "geomdp plot variance --output variance.png --epsilons 0.1 10"
    about = "Draw the variance of geometric noise and of Laplace noise against epsilon."
    parser = _add(
        pictures, "variance", "variance against epsilon", about, example, run=_plot_variance
    )
    _add_output(parser)
    _add_epsilons(parser)


def _add(
    commands: _Commands,
    name: str,
    summary: str,
    about: str,
    example: str,
    *,
    run: Callable[[argparse.Namespace], str] | None = None,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, **_help(about, example)
    )
    parser.set_defaults(run=run)
    return parser


def _help(about: str, example: str) -> dict[str, Any]:
    return {
        "description": about,
        "epilog": f"example:\n  {example}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def _add_noise(parser: argparse.ArgumentParser) -> None:
    noise = parser.add_mutually_exclusive_group(required=True)
    noise.add_argument("--epsilon", type=_positive, metavar="E", help="privacy loss")
    noise.add_argument(
        "--scale", type=_positive, metavar="S", help="noise scale: sensitivity / epsilon"
    )
    _add_sensitivity(parser)
    parser.add_argument(
        "--bounds",
        type=_integer,
        nargs=2,
        metavar=("L", "U"),
        help="least and greatest noisy count; if not given, the limits of the signed type",
    )


def _add_sensitivity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sensitivity",
        type=_positive_integer,
        metavar="S",
        help="largest total change of the counts by one individual; 1 if not given",
    )


def _add_alpha(parser: argparse.ArgumentParser, default: Fraction | None = None) -> None:
    parser.add_argument(
        "--alpha",
        type=_level,
        default=default,
        required=default is None,
        metavar="P",
        help="probability of a greater error" + (f"; {default} if not given" if default else ""),
    )


def _add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        choices=["exact", "ceiling", "continuous"],
        default="exact",
        help="exact (if not given); ceiling: ln(1/alpha) times the scale, rounded up to an "
        "integer; continuous: the same without rounding, for Laplace noise",
    )


def _add_epsilons(parser: argparse.ArgumentParser) -> None:
    _add_sensitivity(parser)
    parser.add_argument(
        "--epsilons",
        type=_positive,
        nargs=2,
        default=(0.1, 10),
        metavar=("LOW", "HIGH"),
        help="least and greatest epsilon; 0.1 10 if not given",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    endings = ", ".join(_PICTURES)
    parser.add_argument(
        "--output",
        type=_picture,
        required=True,
        metavar="FILE",
        help=f"the file to write; its name ends with one of {endings}",
    )
