"""Fuzz the readers of files with files whose digests fit (`make fuzz`).

Whoever makes a file can make its digests, so what protects a reader from accidents does not protect
it here. Files of every kind get rows, descriptions, footers, pages and entries that are damaged or
hostile, and then the digests of these. Each is read, or refused by a ValueError with its name, in
seconds and little memory. Processes of their own read them, so that one that ends is seen.

    fuzz_readers.py [FILES [SEED]]
"""

import contextlib
import io
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

import geomdp
from geomdp import GeometricMechanism, tables
from geomdp.accounting import Budget, _journal
from geomdp.cli import _parquet_file
from geomdp.cli._delimited import DataError
from geomdp.tables.streams import Stream

sys.path.insert(0, str(Path(__file__).parents[1]))
from leaves import of_leaves
from restated import damaged, restate, spoiled

#: The files that one process reads, and its limits on each: seconds and bytes.
EACH, SECONDS, BYTES = 500, 8, 2**30
#: Numbers of Thrift in place of others: 0, -1, 64 bits, and more than that.
NUMBERS = [b"\0", b"\1", b"\xff" * 9 + b"\1", b"\xfe" * 4 + b"\x0f", b"\xff" * 10]


def made(folder: Path) -> dict[str, Path]:
    """Save releases of every kind, a stream and a budget."""
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    data = pd.DataFrame({"area": ["a"] * 400 + ["b"] * 90, "on": days[:1] * 490})
    levels: dict[str, list[Any]] = {"area": ["a", "b"], "on": days}
    table = tables.count(data, levels)
    tree = tables.Hierarchy({"a": "all", "b": "all", "b1": "b", "b2": "b"}, leaves_only=True)
    released: dict[str, Any] = {
        "table": tables.count(data, levels, margins={"area": "all"}).release(epsilon="1/3"),
        "groups": table.release(epsilon="1/3", at_least=60),
        "tree": of_leaves(tree, [3, 5, 8]).release(epsilon="1/3"),
        "top": table.top(2, epsilon="1/3"),
    }
    words, ids = tables.Words("ab", 40, common=["a"]), range(-(2**63), 2**63)
    ruled = tables.Design({"area": words, "n": ids}).count(data.assign(n=7))
    released["words"] = ruled.release(epsilon="1/3", at_least=(150, 230))
    for name, release in released.items():
        for end in ("csv", "parquet"):
            release.save(folder / f"{name}.{end}")
    stream = Stream.open(folder / "stream.jsonl", horizon=20, epsilon="0.5", arity=2)
    budget = Budget.open(folder / "budget.jsonl", epsilon=4)
    for step in range(5):
        stream.release(step, lambda *_: [7, 8])
        budget.book("1/3", label=f"{step}")
    return {path.name: path for path in folder.iterdir()}


def footer(path: Path, chance: random.Random) -> None:
    """Damage the footer of a Parquet file, and state its new length."""
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    found = bytearray(whole[start:-8])
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[at] ^= 1 << chance.randrange(8)
            case 1:
                found[at : at + 1] = chance.choice(NUMBERS)
            case 2:
                found[at] = chance.randrange(256)
            case 3:
                found[at : at + chance.randrange(8)] = found[: chance.randrange(8)]
    path.write_bytes(whole[:start] + found + len(found).to_bytes(4, "little") + b"PAR1")
    restate(path)


def pages(path: Path, chance: random.Random) -> None:
    """Damage the columns of a Parquet file, and not its footer."""
    whole = bytearray(path.read_bytes())
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(4, start)
        whole[at] = chance.choice([chance.randrange(256), whole[at] ^ 1 << chance.randrange(8)])
    path.write_bytes(whole)
    restate(path)


def rows(path: Path, chance: random.Random) -> None:
    """Damage any bytes of the rows."""
    path.write_bytes(damaged(path.read_bytes(), chance))
    restate(path)


def facts(path: Path, chance: random.Random) -> None:
    """State other facts."""
    beside = path.with_name(f"{path.name}.json")
    given = json.loads(beside.read_bytes())
    if chance.random() < 0.8:
        given["geomdp"] = spoiled(given["geomdp"], chance)
    else:
        given = spoiled(given, chance)
    beside.write_text(json.dumps(given))


def entries(path: Path, chance: random.Random) -> None:
    """Put others in the place of the head or an entry of a journal, and seal all lines again."""
    head, _, *rest = path.read_bytes().splitlines()
    lines = [json.loads(line) for line in (head, *rest)]
    at = chance.randrange(len(lines))
    del lines[at]["digest"]
    lines[at] = spoiled(lines[at], chance)
    sealed, last = [], ""
    for each in lines:
        plain = {k: v for k, v in each.items() if k != "digest"} if isinstance(each, dict) else {}
        sealed.append(_journal._sealed(last, plain))
        last = _journal._digest(last, sealed[-1])
    end = sum(map(len, sealed)) + _journal._MARK
    path.write_bytes(b"".join([sealed[0], _journal._mark(end, last), *sealed[1:]]))


FAULTS: dict[str, list[Callable[[Path, random.Random], None]]] = {
    ".csv": [rows, facts],
    # Some footers end a process that asks Arrow about them.
    ".parquet": [footer, footer, footer, pages, rows, facts],
    ".jsonl": [entries],
}


def used(path: Path) -> Any:
    """Read a file, and all that it says."""
    if path.suffix == ".parquet":
        # The command takes any Parquet file.
        with path.open("rb") as source, contextlib.suppress(DataError):
            _parquet_file.release(source, io.BytesIO(), ["count"], GeometricMechanism(1))
    if path.name == "budget.jsonl":
        budget = Budget.open(path, epsilon=4)
        return budget.history, budget.remaining
    found = geomdp.read(path)
    if isinstance(found, Stream):
        return found.total(0, found.released) if found.released else None
    return found.to_dict(), found.epsilon


def one(path: Path) -> bool:
    """Return whether a file is read; if it is refused, then as it should be."""
    start, refusal = time.process_time(), None
    try:
        used(path)
    except ValueError as error:
        refusal = error
    assert time.process_time() - start < SECONDS, "too slow"
    if refusal is None:
        return True
    why = str(refusal)
    assert type(refusal) is ValueError, repr(refusal)
    assert path.name in why, why
    assert len(why) < 1000, why[:1000]
    assert not re.search("MemoryError|alloc", why), why
    return False


def child(seed: int, first: int) -> None:
    """Read some files; print what came of them."""
    warnings.simplefilter("ignore")
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as given, tempfile.TemporaryDirectory() as target:
        files = made(Path(given))
        for path in files.values():
            if path.suffix != ".json":
                assert one(path)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))
        names = sorted(name for name, path in files.items() if path.suffix != ".json")
        for number in range(first, first + EACH):
            chance = random.Random(f"{seed} {number}")
            path = Path(target, chance.choice(names))
            for name in (path.name, f"{path.name}.json"):
                with contextlib.suppress(KeyError):
                    Path(target, name).write_bytes(files[name].read_bytes())
            fault = chance.choice(FAULTS[path.suffix])
            print(f"file {number}: {fault.__name__} of {path.name}", file=sys.stderr, flush=True)
            fault(path, chance)
            found["read" if one(path) else "refused", path.suffix] += 1
    print(json.dumps([[*key, n] for key, n in found.items()]))


def main(files: int = 26_000, seed: int = 0) -> int:
    """Read so many files; return whether any did harm."""
    found: Counter[str] = Counter()
    for first in range(0, files, EACH):
        run = [sys.executable, __file__, "--child", str(seed), str(first)]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        if done.returncode:
            print(*(line[:500] for line in done.stderr.splitlines()[-12:]), sep="\n")
            print(f"seed {seed}: the process ended with {done.returncode}")
            return 1
        for what, end, n in json.loads(done.stdout):
            found[what] += n
            found[end] += n
    ends = ", ".join(f"{found[end]} {end}" for end in FAULTS)
    total = found["read"] + found["refused"]
    print(f"{total} files, seed {seed}: {ends}; {found['read']} read, {found['refused']} refused")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*map(int, sys.argv[2:]))
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
