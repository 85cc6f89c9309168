"""Plant the faults of tests/*/faults.toml, one at a time: `make faults`.

A fault has a line below its test: `old`, which is in one file of the repository once, becomes
`new`, and the test must fail: a file of Python tests, or `test` in it, a program, or options of
`cargo test -p geomdp-core`. `file` says which file, where `old` is in several. If the test passes,
a promise is not checked. `needs` names the processor features without which it does not run that
code; a processor that lacks one leaves the fault to others. A fault that cargo-mutants (`make
mutants`) or mutmut (`make survivors`) makes by itself, or that a test plants itself, as
tests/draw/test_primitives.py does, needs no entry.

    scripts/plant_faults.py [WORD ...]   all, or those with one of these words in their names
    ... --checked                        the tests are known to pass without a fault
    ... --owed                           those not caught yet with this file, test and entry
    ... --gate MINUTES                   as --checked: those whose file, test or entry is another
                                         than on main, and of the others a tenth, for so long
    ... --places                         only say which texts are not in one place

On main itself the gate plants what its minutes allow, in an order that the commit chooses. A fault
in Python code of the package is planted in a process that is forked for it with the libraries
loaded, others in copies of the tree. `evidence/faults.tsv` has a line for each that was caught,
with a hash of the three: branches that add lines merge by themselves (`.gitattributes`).
"""

import argparse
import contextlib
import fcntl
import importlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inputs import ROOT, Tree, base, seed

LAYER = Path("python/geomdp")
RECORD = ROOT / "evidence/faults.tsv"
#: Processes or trees, each with its own builds: the tests, which take longest, use one processor.
WORKERS = 2
#: Seconds after which a test that does not end is one that fails.
LONGEST = 300
PYTHON = str(ROOT / ".venv/bin/python")
PYTEST = [PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
#: Loaded once for all forked processes; none of them starts threads when it is loaded.
LIBRARIES = (
    "numpy pandas polars pyarrow pyarrow.parquet duckdb pytest _pytest.main hypothesis scipy.stats "
    "scipy.optimize mpmath narwhals matplotlib.pyplot"
)
#: Need the release build; other tests use a faster build with the same draws.
OF_MACHINE_CODE = ("tests/constant_time/check_instructions.py", "tests/draw/prove_machine_code.py")
#: Compares the draw of the proof with the kernel's.
MODEL = "tests/draw/check_proof.py --day Model.v"
#: The gate does not run the first of these, and the others take minutes with a fault.
NIGHT = (
    "tests/draw/prove_", "tests/draw/check_proof.py", "tests/clusters/", "tests/browser/",
    "tests/readers/",
)  # fmt: skip
QUICK = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
#: Ends of names of files that have faults.
KINDS = re.compile(r".*(\.(py|rs|v|js|md|css|c|sh|toml|R|html|json|yml|ipynb)|Makefile)")
IGNORED = (".git", ".venv", "target", "dist", "*.so", "__pycache__")
#: The tree of this thread.
local = threading.local()
#: Times of files that change, so that no bytecode of another text is used.
clock = itertools.count(10**9)


class NotRunError(Exception):
    """A tree does not build, or a test does not run: nothing is known of the fault."""


@dataclass(frozen=True)
class Fault:
    """A change to one place, and the test that must fail for it."""

    name: str
    file: str
    old: str
    new: str
    test: str
    needs: str = ""

    @property
    def is_forked(self) -> bool:
        """Whether a forked process imports the changed file."""
        package = self.file.startswith("python/geomdp/") and self.file.endswith(".py")
        return package and by_pytest(self.test) and not self.test.startswith((*NIGHT, "tests/doc"))


def by_pytest(test: str) -> bool:
    """Return whether pytest runs this test; others are programs, or arguments of `cargo test`."""
    return "/test_" in test


# The registry


def entries(tree: Tree) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the test and the entry of each fault of a tree."""
    tomls = sorted(tree.below("tests/*/faults.toml"))
    tests = [pair for path in tomls for pair in tree.toml(path).items()]
    return {name: (test, row) for test, rows in tests for name, row in rows.items()}


@cache
def placed() -> tuple[list[Fault], list[str]]:
    """Return all faults that have one place, and what is wrong with the others."""
    tree, found, lost = Tree(), [], []
    texts = {
        name: (ROOT / name).read_text()
        for name in tree.files
        if KINDS.fullmatch(name) and not name.endswith("faults.toml") and (ROOT / name).is_file()
    }
    for name, (test, row) in entries(tree).items():
        files = [row["file"]] if "file" in row else [f for f in texts if row["old"] in texts[f]]
        if [texts[file].count(row["old"]) for file in files if file in texts] != [1]:
            lost.append(f"{test}: {name}: {row['old']!r} is not in one place: {files}")
        else:
            whole = f"{test}::{row['test']}" if "test" in row else test
            found.append(Fault(name, files[0], row["old"], row["new"], whole, row.get("needs", "")))
    return found, lost


def faults() -> list[Fault]:
    return placed()[0]


def key(fault: Fault, tree: Tree) -> str:
    """Return a hash of what says whether a fault is caught: its entry, its file and its test."""
    files = {fault.file, fault.test.split("::")[0].split()[0]}
    if name := re.search(r"--test (\w+)", fault.test):  # a file or a folder of Cargo's
        files |= tree.below(f"rust/core/tests/{name[1]}*") | tree.below(
            f"rust/core/tests/{name[1]}/"
        )
    return tree.key(files & tree.files.keys(), fault.old, fault.new, fault.test)


def recorded() -> set[tuple[str, str]]:
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    return {(name, key) for name, key in (line.split("\t") for line in lines)}


def record(caught: list[Fault], tree: Tree) -> None:
    """Keep the keys of faults that were caught; a fault that is gone keeps no line."""
    names = {fault.name for fault in faults()}
    kept = {name: key for name, key in recorded() if name in names}
    kept |= {fault.name: key(fault, tree) for fault in caught}
    RECORD.write_text("".join(f"{name}\t{each}\n" for name, each in sorted(kept.items())))


def state(tree: Tree) -> str:
    known, lost = recorded(), placed()[1]
    caught = sum((fault.name, key(fault, tree)) in known for fault in faults())
    return f"{caught} of {len(faults()) + len(lost)} were caught with this file, test and entry"


def of_the_change(among: list[Fault]) -> tuple[list[Fault], list[Fault]]:
    """Return the faults with another key than on main, and a tenth of the others, or all there."""
    tree, main, chance = Tree(), base(), random.Random(seed())
    others = [fault for fault in among if not fault.test.startswith(NIGHT)]
    chance.shuffle(others)
    if main is None:
        return [], others
    here, there = entries(tree), entries(main)
    changed = [
        fault for fault in others
        if here[fault.name] != there.get(fault.name) or key(fault, tree) != key(fault, main)
    ]  # fmt: skip
    others = [fault for fault in others if fault not in changed]
    return changed, others[: -(-len(others) // 10)]


# In forked processes


class Once:
    """A plugin that keeps hypothesis from shrinking and from its database."""

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings  # noqa: PLC0415 (loaded once, for all)

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("planted", deadline=None, database=None, phases=phases)
        settings.load_profile("planted")


def fork(site: Path, test: str) -> int:
    """Return a new process, which runs a test, or lines of tests, with a folder's package."""
    if child := os.fork():
        return child
    code = 70
    try:
        os.setpgid(0, 0)
        signal.alarm(LONGEST)
        log = os.open(site / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.path.insert(0, str(site))
        os.environ["PYTHONPATH"] = str(site)
        pytest = importlib.import_module("pytest")
        options = [*PYTEST[3:], "-p", "no:xdist", "-W", "ignore:Module already"]
        code = int(pytest.main([*options, *test.split("\n")], plugins=[Once()]))
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Return the exit code of a process once it has ended, and end those that it left."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return code


def site_of(number: int) -> Path:
    """Return a folder with a copy of the package."""
    site = ROOT / f"target/faults/site{number}"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / LAYER, site / "geomdp", ignore=shutil.ignore_patterns(*IGNORED))
    shutil.copy(installed("geomdp._core.__file__"), site / "geomdp")
    return site


def write(path: Path, text: str) -> None:
    """Change a file of the package, with a time of its own."""
    path.write_text(text)
    os.utime(path, (1, next(clock)))


def forks(chosen: list[Fault], end: float) -> Iterator[tuple[Fault, str]]:
    """Plant faults in forked processes, until `end`; yield each with what was found."""
    if not chosen:
        return
    os.environ |= {"COLUMNS": "1000", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("TURN", None)  # a fault may need any case of its test
    for name in LIBRARIES.split():
        importlib.import_module(name)
    assert "geomdp" not in sys.modules
    left, free = [*reversed(chosen)], [site_of(number) for number in range(WORKERS)]
    running: dict[int, tuple[Fault, Path, str]] = {}
    while running or (left and time.monotonic() < end):
        if left and free and time.monotonic() < end:
            fault, site = left.pop(), free.pop()
            path = site / Path(fault.file).relative_to("python")
            text = path.read_text()
            write(path, text.replace(fault.old, fault.new))
            running[fork(site, fault.test)] = fault, site, text
            continue
        child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid  # type: ignore[union-attr]
        fault, site, text = running.pop(child)
        code = ended(child)
        write(site / Path(fault.file).relative_to("python"), text)
        # What ends in another way than by a failure passes without the fault.
        word = {0: "MISSED", 1: "caught"}.get(code) or (
            "caught" if ended(fork(site, fault.test)) == 0 else f"NOT RUN: {code}"
        )
        free.append(site)
        yield fault, word


# In copies of the tree


def target(tree: Path) -> Path:
    """Return the folder of a tree's builds."""
    return ROOT / "target/faults" / tree.name


@cache
def installed(expression: str) -> str:
    """Return what an expression of the installed package is."""
    run = [PYTHON, "-c", f"import geomdp, geomdp._core; print({expression})"]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def lacked(needs: str) -> list[str]:
    """Return the features among these that this processor lacks."""
    found = re.search("; has (.*); lacks", installed("geomdp.kernel()"))
    assert found
    return [name for name in needs.split() if name not in found[1].split()]


def failure(test: str, built: bool = False) -> str | None:
    """Return the test that fails on this thread's tree, if any; raise NotRunError if none runs.

    If `built`, the Rust code is that of the installed package.
    """
    tree: Path = local.tree
    environment = os.environ | {"CARGO_TARGET_DIR": str(target(tree))}
    if test.startswith("--"):
        run = ["cargo", "test", "--quiet", "--locked", "-p", "geomdp-core", *test.split()]
        build([*run, "--no-run"], tree, environment)
    elif test.split(maxsplit=1)[0].endswith(".sh"):
        run = ["bash", *test.split()]
    elif test == "tests/constant_time/count_instructions.py":
        run = [PYTHON, test]
    elif test == MODEL:
        # As `make proof` does.
        example = "cargo run --locked --quiet -p geomdp-core --example proof_model > Model.v"
        run = ["bash", "-c", f"{example} && {PYTHON} {test}"]
    else:
        site = tree / "site"
        shutil.rmtree(site, ignore_errors=True)
        if built:
            shutil.copytree(tree / LAYER, site / "geomdp")
            shutil.copy(installed("geomdp._core.__file__"), site / "geomdp")
        else:
            profile = environment | ({} if test in OF_MACHINE_CODE else QUICK)
            profile["PATH"] = f"{Path(PYTHON).parent}:{profile['PATH']}"  # for maturin
            run = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
            build([*run, "--target", str(site), "."], tree, profile)
        environment |= {"PYTHONPATH": str(site), "COLUMNS": "1000"}
        run = [*PYTEST, test] if by_pytest(test) else [PYTHON, test]
    done = subprocess.run(
        run, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    return failing(test, done)


def failing(test: str, done: subprocess.CompletedProcess[str]) -> str | None:
    """Return the test that failed in a run of `test`, if any."""
    if done.returncode == 0:
        return None
    # A fault may end the process of its test by a signal.
    if not by_pytest(test) or done.returncode < 0:
        return test
    name = re.search(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if done.returncode != 1 or not name:
        raise NotRunError(done.stdout + done.stderr)
    return name[1]


def build(run: list[str], tree: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        run, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotRunError(done.stdout + done.stderr)


def plant(tree: Path) -> None:
    """Make the tree of this thread, with the crates of others that `make test` has built."""
    local.tree = tree
    built, copy = ROOT / "target/debug", target(tree) / "debug"
    if built.exists() and not copy.exists():
        with (built / ".cargo-lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            shutil.copytree(built, copy, ignore=shutil.ignore_patterns("incremental"))
    # With new timestamps, so that Cargo does not reuse builds of other sources.
    ignore = shutil.ignore_patterns(*IGNORED)
    shutil.copytree(ROOT, tree, ignore=ignore, copy_function=shutil.copy)


def catches(fault: Fault, end: float) -> tuple[Fault, str]:
    """Return whether the fault's test fails with the fault and passes without, before `end`."""
    if time.monotonic() > end:
        return fault, "left"
    file = local.tree / fault.file
    text = file.read_text()
    file.write_text(text.replace(fault.old, fault.new))
    try:
        test = failure(fault.test, built=not fault.file.startswith("rust/"))
    except NotRunError as error:
        return fault, f"NOT RUN: {error}\n"
    finally:
        file.write_text(text)
    if test and by_pytest(fault.test):
        # With the package unchanged.
        again = subprocess.run([*PYTEST, test], cwd=ROOT, capture_output=True, check=False)
        return fault, "FAILS WITHOUT IT" if again.returncode else "caught"
    return fault, "caught" if test else "MISSED"


def in_trees(chosen: list[Fault], tests: set[str], end: float) -> Iterator[tuple[Fault, str]]:
    """Plant faults in copies of the tree, until `end`, and run tests without any."""
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as directory:

        def begin() -> None:
            plant(Path(directory, str(next(numbers))))

        with ThreadPoolExecutor(WORKERS, initializer=begin) as pool:
            # Some take long: nobody waits for them.
            without = pool.map(failure, sorted(tests))
            yield from pool.map(catches, chosen, itertools.repeat(end))
            for test in filter(None, without):
                yield Fault("no fault", "", "", "", test), "FAILS"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of faults; all unless given")
    parser.add_argument("--checked", action="store_true", help="the tests pass without a fault")
    parser.add_argument("--owed", action="store_true", help="those without a record")
    parser.add_argument("--gate", type=float, metavar="MINUTES", help="only those of the change")
    parser.add_argument("--places", action="store_true", help="only compare texts and places")
    given = parser.parse_args(words)
    half, never = 30 * (given.gate or 0), float("inf")
    tree, (chosen, lost) = Tree(), placed()
    print(*lost, sep="\n", end="\n" if lost else "")
    if given.places:
        return bool(lost)
    chosen = [each for each in chosen if any(word in each.name for word in given.words or [""])]
    known = recorded() if given.owed else set()
    chosen = [each for each in chosen if (each.name, key(each, tree)) not in known]
    waiting = [fault for fault in chosen if lacked(fault.needs)]
    chosen = [fault for fault in chosen if fault not in waiting]
    first, then = of_the_change(chosen) if given.gate else (chosen, [])
    copied = [fault for fault in first + then if not fault.is_forked]
    # A Python test that fails is run again without the fault; others run once without any.
    tests = set() if given.gate else {each.test for each in copied if not by_pytest(each.test)}
    tests = {test for test in tests if not (given.checked and test.startswith("--"))}
    found: list[tuple[Fault, str]] = []
    for run in (
        lambda: forks([fault for fault in first if fault.is_forked], never),
        lambda: forks([fault for fault in then if fault.is_forked], time.monotonic() + half),
        lambda: in_trees(copied, tests, time.monotonic() + half if given.gate else never),
    ):
        for fault, word in run():
            if word != "left":
                found.append((fault, word))
                print(f"{word:>7}  {fault.name}: {fault.test}", flush=True)
    caught = [fault for fault, word in found if word == "caught"]
    if not given.gate:
        record(caught, tree)
    print(f"{len(caught)} of {len(found)} faults caught")
    for fault in waiting:
        features = " and ".join(lacked(fault.needs))
        print(f"not planted, as this processor lacks {features}: {fault.name}")
    if left := len(first + then) - len(found):
        print(f"{left} faults are left for `make nightly`")
    return len(caught) < len(found) or bool(lost)


if __name__ == "__main__":
    if Path(sys.prefix) != ROOT / ".venv":  # which has the libraries
        os.execv(PYTHON, [PYTHON, *sys.argv])
    sys.exit(main(sys.argv[1:]))
