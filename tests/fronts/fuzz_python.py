"""Fuzz the Python layer with atheris (`make fuzz`).

Calls may only raise TypeError, ValueError and OverflowError, with the parameter's name. The command
reports errors in one line, and leaves a file only if it succeeds. Certificates satisfy the
verifier.

Arguments are libFuzzer's: -max_total_time=60, a directory for the corpus, a file to run again.
"""

import contextlib
import csv
import importlib
import io
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import atheris
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
verify: Any = importlib.import_module("verifier.verify")

with atheris.instrument_imports(include=["geomdp"]):
    import geomdp.measurement as m
    from geomdp import (
        GeometricMechanism,
        accuracy,
        cli,
        distribution,
        sample_bernoulli,
        sample_geometric,
    )
    from geomdp._inputs.arrays import DTYPES
    from geomdp.compat import diffprivlib, smartnoise
    from geomdp.testing import release_not_private

OTHERS = ["?", "f4", "f8", "c8", "O", "S3", "U3", "m8[s]", "M8[D]", "V4", "g"]
KEY = bytes(32)
#: Cells and separators of tables.
TOKENS = [b"a", b"b", b"1", b"-7", b"+3", b"007", b" 5 ", b'"4"', b'"', b'""', b",", b";", b"\n"]
TOKENS += [b"\r\n", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff", b"9223372036854775807", b"1e5", b"\t"]


class Source:
    """Makes choices from the bytes of an input, then from zeros."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        """Return `n` bytes."""
        part = self.data[self.at : self.at + n]
        self.at += n
        return part.ljust(n, b"\0")

    def below(self, n: int) -> int:
        """Return a number below `n`."""
        return int(int.from_bytes(self.take(1 if n <= 256 else 4), "little") % n)

    def pick(self, of: Any) -> Any:
        """Return an item of a sequence."""
        return of[self.below(len(of))]

    def integer(self) -> int:
        """Return an int, often near the limit of a type."""
        sign = -1 if self.below(3) == 0 else 1
        if self.below(2):
            return sign * self.below(300)
        shift: int = self.pick([0, 7, 8, 15, 16, 31, 32, 62, 63, 64, 126, 127, 128, 1100])
        offset: int = self.pick([-1, 0, 1, self.below(2**32)])
        return sign * ((1 << shift) + offset)

    def floating(self) -> float:
        """Return any float."""
        if self.below(2):
            return float(np.frombuffer(self.take(8), np.float64)[0])
        special = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 5e-324, 1e308, 0.1]
        return float(self.pick(special))

    def number(self) -> Any:
        """Return a number of any type."""
        match self.below(5):
            case 0:
                return self.integer()
            case 1:
                return self.floating()
            case 2:
                return Fraction(self.integer(), abs(self.integer()) or 1)
            case 3:
                with np.errstate(all="ignore"):
                    T = self.pick([np.float16, np.float32, np.float64, np.longdouble])
                    return T(self.floating())
            case _:
                T = self.pick([*DTYPES.values()])
                return np.frombuffer(self.take(T.itemsize), T)[0]

    def anything(self, depth: int = 0) -> Any:
        """Return an object that a caller might pass by mistake."""
        kind = self.below(16)
        if kind < 8:
            return self.number()
        if kind < 10 and depth < 3:
            items = [self.anything(depth + 1) for _ in range(self.below(4))]
            return items if kind == 8 else tuple(items)
        if kind < 12:
            return self.array()
        plain = [None, True, False, "1", "", b"1", 1j, Decimal("0.1"), {}, {1: 2}, object(), int]
        plain += [range(3), np.True_, np.timedelta64(1, "s"), np.str_("x"), slice(1), math.nan]
        plain.append(memoryview(b"1"))
        return self.pick(plain)

    def array(self) -> np.ndarray[Any, Any]:
        """Return an array of any dtype, shape and layout."""
        dtype = np.dtype(self.pick([*DTYPES] if self.below(4) else OTHERS))
        shape = tuple(self.below(4) for _ in range(self.below(4)))
        n = math.prod(shape)
        if dtype.kind == "O":
            array = np.array([self.integer() for _ in range(n)], dtype).reshape(shape)
        elif dtype.kind == "U":
            array = np.full(shape, "1", dtype)
        else:
            array = np.frombuffer(bytearray(self.take(n * dtype.itemsize)), dtype, n).reshape(shape)
        for _ in range(self.below(4)):
            match self.below(7):
                case 0:
                    array = array.T
                case 1 if array.ndim:
                    array = array[:: self.pick([2, -1, -2])]
                case 2:
                    array = array.astype(array.dtype.newbyteorder(), copy=False)
                case 3 if array.ndim < 4:
                    array = np.broadcast_to(array, (self.below(3), *array.shape))
                case 4:
                    array = np.ma.masked_array(array)
                case 5:
                    array = array.view()
                    array.flags.writeable = False
                case _:
                    array = np.array(array, order=self.pick("CF"), subok=True)
        return array

    def text(self, alphabet: str, most: int) -> str:
        """Return a text of fewer than `most` characters."""
        return "".join(self.pick(alphabet) for _ in range(self.below(most)))


def calling(names: str, call: Callable[[], Any]) -> Any:
    """Return the result of a call, or None if it refuses a parameter of one of these names."""
    try:
        return call()
    except (TypeError, ValueError, OverflowError) as error:
        if not re.search(rf"\b({names})\b", str(error)):
            raise AssertionError(f"the message names none of {names}: {error!r}") from error
        return None


def releases(source: Source) -> None:
    """Try a mechanism with any arguments, and its releases of any array."""
    names = ["epsilon|sensitivity|bounds|scale", "scale|bounds"]
    bounds = None if source.below(3) else (source.integer(), source.integer())
    if source.below(8) == 0:
        bounds = source.anything()
    if source.below(2):
        arguments = source.number(), 1 if source.below(2) else source.anything(), bounds
        mechanism = calling(names[0], lambda: GeometricMechanism(*arguments))
    else:
        scale = source.anything()
        mechanism = calling(names[1], lambda: GeometricMechanism.from_scale(scale, bounds))
    if mechanism is None:
        return
    # Python refuses to write ints far beyond float64.
    assert repr(mechanism)
    distance = source.anything()
    loss = calling("distance", lambda: mechanism.privacy_loss(distance))
    assert loss is None or loss >= 0
    counts = source.anything() if source.below(2) else source.array()
    before = counts.tobytes() if isinstance(counts, np.ndarray) else b""
    noisy = calling("counts|bounds|scale", lambda: release_not_private(mechanism, counts, KEY))
    if isinstance(counts, np.ndarray):
        assert counts.tobytes() == before
    if noisy is None:
        return
    again = calling("counts|bounds|scale", lambda: mechanism.release(counts))
    assert np.shape(again) == noisy.shape
    if isinstance(counts, np.ndarray):
        assert (noisy.dtype, noisy.shape) == (counts.dtype, counts.shape)
        limits = np.iinfo(noisy.dtype)
        lower, upper = mechanism.bounds or (limits.min, limits.max)
        assert all(lower <= y <= upper for y in noisy.ravel().tolist())
    out = source.anything()
    written = calling("out|counts", lambda: release_not_private(mechanism, counts, KEY, out=out))
    assert written is None or (written is out) or (out is None)


def tops(source: Source) -> None:
    """Name the largest of any array, and of any buffer that the core is given."""
    scale = Fraction(1 + source.below(200), 1 + source.below(200))
    bounds = None if source.below(3) else (source.integer(), source.integer())
    mechanism = calling("bounds", lambda: GeometricMechanism.from_scale(scale, bounds))
    if mechanism is None:
        return
    counts = source.anything() if source.below(4) == 0 else source.array()
    before = counts.tobytes() if isinstance(counts, np.ndarray) else b""
    k = source.below(6) if source.below(4) else source.anything()
    found = calling("counts|k|bounds|scale|threads", lambda: mechanism.top(counts, k, threads=2))
    if found is not None:
        assert len({*found.tolist()}) == int(k) == found.size
        assert 0 <= found.min() <= found.max() < np.size(counts)
    buffer, core = source.array(), mechanism._core
    n, places = buffer.size, np.arange(buffer.size, dtype=np.uint64)
    calls = [lambda: core.top(buffer, 1, 1), lambda: core.top_among(places, buffer, n, 1, 1)]
    for call in calls if n else []:
        with contextlib.suppress(TypeError, ValueError, OverflowError, BufferError):
            [place] = call()
            assert place < n
    if isinstance(counts, np.ndarray):
        assert counts.tobytes() == before


def others(source: Source) -> None:
    """Try samplers, measurements, other libraries' calls, accuracy, distributions."""
    x, y, z = source.anything(), source.anything(), source.anything()
    integers = m.VectorDomain(m.AllDomain(source.pick(["i8", "u64"])))
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("prob", lambda: sample_bernoulli(x)),
        ("prob|trials", lambda: sample_geometric(x, 3, y)),
        ("scale|bounds|arg|counts", lambda: m.make_base_geometric(x, y)(z)),
        ("T|arg|counts", lambda: m.AllDomain(x).member(y)),
        (
            "scale|bounds|arg|counts",
            lambda: m.make_geometric(integers, m.L1Distance(integers.T), x, y)(z),
        ),
        (
            "categories|arg|counts",
            lambda: m.make_count_by_categories(integers, m.SymmetricDistance(), x)(y),
        ),
        (
            "epsilon|sensitivity|scale|counts|random_state",
            lambda: diffprivlib.Geometric(epsilon=x, sensitivity=y).randomise(z),
        ),
        (
            "lower|upper|bounds|counts",
            lambda: diffprivlib.GeometricTruncated(epsilon=1, lower=x, upper=y).randomise(z),
        ),
        (
            "lower|upper|bounds|counts|scale",
            lambda: diffprivlib.GeometricFolded(epsilon=1, lower=x, upper=y).randomise(z),
        ),
        (
            "min|max|bounds|counts|epsilon|scale|sensitivity",
            lambda: smartnoise.simple_geometric_mechanism(z, x, y, -3, 99),
        ),
        ("min|max|bounds|counts", lambda: smartnoise.simple_geometric_mechanism(z, 1, 1, x, y)),
        ("scale|alpha|shape mismatch|arrays", lambda: accuracy.scale_to_accuracy(x, y)),
        ("accuracy|alpha|shape mismatch|arrays", lambda: accuracy.accuracy_to_epsilon(x, y)),
        ("scale|k", lambda: distribution.TwoSidedGeometric(x).cdf(y)),
        ("scale|q", lambda: distribution.TwoSidedGeometric(x).ppf(y)),
        (
            "center|centers|counts|scale|bounds|k",
            lambda: distribution.CensoredGeometric(x, y, (0, 9)).pmf(z),
        ),
    ]
    names, call = source.pick(calls)
    calling(names, call)


def certificates(source: Source) -> None:
    """Check certificates with the verifier, which shares no code with the library."""
    numerator, denominator = 1 + source.below(200), 1 + source.below(200)
    scale = Fraction(numerator, denominator) * Fraction(2) ** (source.below(200) - 20)
    range_ = (1 << source.below(65)) - 1 - source.below(2)
    tight = range_ <= 40
    mechanism = calling(
        "scale", lambda: GeometricMechanism.from_scale(scale, (0, max(0, min(range_, 2**64 - 1))))
    )
    if mechanism is not None:
        certificate = mechanism.certificate(tight=tight)
        assert certificate.holds
        assert str(certificate)
        verify.verify(certificate.to_json())


def table(source: Source) -> bytes:
    """Return the bytes of a table, possibly malformed."""
    if source.below(3) == 0:
        return bytes(source.data[source.at :])
    if source.below(2):
        return b"".join(source.pick(TOKENS) for _ in range(source.below(60)))
    end = b"\r\n" if source.below(2) else b"\n"
    counts = [source.integer() if source.below(20) > 18 else source.below(300) for _ in range(9)]
    cells = [source.pick([b"4", b'"x\ny"', b"\xff", *TOKENS[:10]]) for _ in counts]
    rows = [b"%d,%b" % row for row in zip(counts, cells, strict=True)]
    return end.join([b"a,b", *rows, source.pick([b"", b"", b"", *TOKENS])])


def rows(path: Path) -> list[list[str]]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.reader(file))


def commands(source: Source) -> None:
    """Run a command: one line for an error, no traceback, and a file only if it succeeds."""
    with tempfile.TemporaryDirectory(prefix="geomdp-fuzz-", dir=SCRATCH) as directory:
        given, target = os.path.join(directory, "given.csv"), os.path.join(directory, "new.csv")
        data = table(source)
        Path(given).write_bytes(data)
        needed = {"--epsilon": "1", "--alpha": "1/20", "--accuracy": "3", "--column": "a"}
        needed |= {"--by": "a", "--levels": given, "--individual": "b", "--l0": "2", "--linf": "2"}
        needed |= {"source": given, "target": target, "losses": "0.5x2", "ledger": given}
        values = ["1", "0.5", "1/3", "1e-3", "1e300", "1e-300", "1e-400", "0", "-1", "x", "", "\n"]
        values += ["9" * 38, "9" * 39, "tab", ";", "int8", "uint64", "a", "b", "\udcff", "0.1x30"]

        def value() -> str:
            made = source.text("0123456789./e+-x", 12), source.text('ab"\t,', 4)
            return str(source.pick([*values, *made, str(source.integer()), str(source.integer())]))

        command = source.pick(["release", *cli._COMMANDS])
        options = cli._COMMANDS[command].options
        argv = [command]
        for option in options:
            if option in ("source", "target", "ledger"):
                argv.append(needed[option])
            elif option in needed and source.below(20) < 19:
                argv += [option] if option.startswith("-") else []
                argv.append(needed[option] if source.below(8) < 7 else value())
        for _ in range(source.pick([0, 0, 1, 2, 3])):
            option = source.pick([*filter(lambda name: name.startswith("-"), options), "--no"])
            how = options[option].how if option in options else {}
            count = 0 if how.get("action") == "store_true" else 1 + (how.get("nargs") == 2)
            # Ledgers and pages are files.
            held = {"--budget": given, "--report": given}
            argv += [option, *(held.get(option) or value() for _ in range(count))]
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = cli.main(argv)
        assert code in (0, 1, 2), code
        warned = "geomdp: warning: "  # of an alpha that may be meant as the confidence
        lines = [line for line in errors.getvalue().splitlines() if not line.startswith(warned)]
        assert len(lines) == (code != 0), (argv, lines)
        assert all(line.startswith("geomdp: error: ") for line in lines), lines
        left = sorted(os.listdir(directory))
        done = code == 0 and command in ("count", "release")
        described = command == "count"
        made = ["new.csv", "new.csv.json"] if described else ["new.csv"]
        assert left == ["given.csv", *(made if done else [])], (argv, code, left)
        assert Path(given).read_bytes() == data
        if done and not described and "--delimiter" not in argv:
            assert len(rows(Path(target))) == len(rows(Path(given)))


TARGETS = [releases, tops, others, commands, commands, certificates]
#: Files in memory, if possible.
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None


def one(data: bytes) -> None:
    """Run one input."""
    source = Source(data)
    source.pick(TARGETS)(source)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
