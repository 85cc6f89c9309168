"""Plant the faults of tests/*/faults.toml in a copy of the tree, one at a time: `make faults`.

A fault has a line below its test: `old`, which is in one file of the repository once, becomes `new`,
and the test must fail: a file of Python tests, or `test` in it, a program, or options of `cargo test
-p geomdp-core`. `file` says which file, where `old` is in several. If it
passes, a promise is not checked. `needs` names the processor features without which the test does
not run that code; a processor that lacks one leaves the fault to others. A fault that cargo-mutants
makes by itself (`make mutants`), or that a test plants itself, as tests/draw/test_primitives.py
does, needs no entry.

    scripts/plant_faults.py [WORD ...]   all, or those with one of these words in their names
    ... --of core                        those in Rust and in proofs, or --of package the others
    ... --checked                        the tests are known to pass without a fault
    ... --gate MINUTES                   as --checked, for so long: those whose file, test or entry
                                         is another than on main, and a tenth of the others in turn
    ... --owed                           those that were not caught yet with this file, test and entry

Faults in Python code are planted in forked children (`planted.py`), the others in copies of the tree.
`evidence/faults.tsv` has a line for each fault that was caught, with a hash of the three: branches
that add lines merge by themselves (`.gitattributes`).
"""

import argparse
import fcntl
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import planted
from checks import main_tree, turn
from inputs import Tree

ROOT = Path(__file__).resolve().parent.parent
LAYER = Path("python/geomdp")
#: Number of trees, each with its own builds: the tests, which take longest, use one processor.
WORKERS = 2
PYTHON = str(ROOT / ".venv" / "bin" / "python")
PYTEST = [PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
#: Need the release build; other tests use a faster build with the same draws.
OF_MACHINE_CODE = ("tests/constant_time/check_instructions.py", "tests/draw/prove_machine_code.py")
#: Compares the draw of the proof with the kernel's.
MODEL = "tests/draw/check_proof.py --day Model.v"
#: The gate does not run the first of these, and the others take minutes with a fault.
NIGHT = (
    "tests/draw/prove_",
    "tests/draw/check_proof.py",
    "tests/clusters/",
    "tests/browser/",
    "tests/readers/",
)
#: Folders whose faults are `--of core`: their tests take longest, as most compile the copy.
CORE = ("rust/", "proofs/")
QUICK = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
#: Ends of names of files that have faults.
KINDS = (
    ".py",
    ".rs",
    ".v",
    ".js",
    ".md",
    ".css",
    ".c",
    ".sh",
    ".toml",
    ".R",
    ".html",
    ".json",
    ".yml",
    ".ipynb",
    "Makefile",
)
IGNORED = (".git", ".venv", "target", "dist", "*.so", "__pycache__")
#: The tree of this thread.
local = threading.local()


def target(tree: Path) -> Path:
    """Return the folder of a tree's builds."""
    return ROOT / "target/faults" / tree.name


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


@cache
def sources() -> dict[str, str]:
    """Return the texts in which a fault may be."""
    run = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        name: (ROOT / name).read_text()
        for name in names.splitlines()
        if name.endswith(KINDS) and not name.endswith("faults.toml") and (ROOT / name).is_file()
    }


def place(name: str, old: str, file: str) -> str:
    """Return the file with the place of a fault, or exit if there is not one such place."""
    found = [file] if file else [each for each, text in sources().items() if old in text]
    if len(found) != 1 or (ROOT / found[0]).read_text().count(old) != 1:
        sys.exit(f"{name}: its text is not in {file or 'the repository'} once: {found}")
    return found[0]


def faults() -> list[Fault]:
    """Return all faults; a text that is once in the repository needs no `file`."""
    found = []
    for path in sorted(ROOT.glob("tests/*/faults.toml")):
        for test, each in tomllib.loads(path.read_text()).items():
            for name, row in each.items():
                file = place(name, row["old"], row.get("file", ""))
                whole = f"{test}::{row['test']}" if "test" in row else test
                found.append(Fault(name, file, row["old"], row["new"], whole, row.get("needs", "")))
    return found


def key(fault: Fault, tree: Tree) -> str:
    """Return a hash of what says whether a fault is caught: its entry, its file and its test."""
    test = fault.test.split("::")[0].split()[0]
    if test.startswith(
        "--"
    ):  # `--test draw split::`: the file or folder of that name, or the source
        name = re.search(r"--test (\w+)", fault.test)
        files = (
            tree.below(f"rust/core/tests/{name[1]}*") | tree.below(f"rust/core/tests/{name[1]}/")
            if name
            else set()
        )
    else:
        files = {test} & tree.files.keys()
    return tree.key({fault.file, *files} & tree.files.keys(), fault.old, fault.new, fault.test)


def caught_before() -> set[tuple[str, str]]:
    """Return the names and keys on record."""
    file = ROOT / "evidence/faults.tsv"
    lines = file.read_text().splitlines() if file.exists() else []
    return {(name, key) for name, key in (line.split("\t") for line in lines)}


def record(found: dict[str, str], names: set[str]) -> None:
    """Keep the keys of faults that were caught; a fault that is gone keeps no line."""
    kept = {name: key for name, key in caught_before() if name in names} | found
    lines = [f"{name}\t{key}\n" for name, key in sorted(kept.items())]
    (ROOT / "evidence/faults.tsv").write_text("".join(lines))


def is_forked(fault: Fault) -> bool:
    """Whether a forked child imports the changed file."""
    return (
        fault.file.startswith("python/geomdp/")
        and fault.file.endswith(".py")
        and by_pytest(fault.test)
        and not fault.test.startswith((*NIGHT, "tests/documents/"))
    )


def by_pytest(test: str) -> bool:
    """Whether pytest runs this test; others are programs, or arguments of `cargo test`."""
    return "/test_" in test


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


def catches(fault: Fault, end: float) -> bool | None:
    """Return whether the fault's test fails with the fault and passes without; None after `end`."""
    if time.monotonic() > end:
        return None
    file = local.tree / fault.file
    text = file.read_text()
    file.write_text(text.replace(fault.old, fault.new))
    try:
        test = failure(fault.test, built=not fault.file.startswith("rust/"))
    except NotRunError as error:
        print(f"NOT RUN  {fault.name}: {fault.test}\n{error}", flush=True)
        return False
    finally:
        file.write_text(text)
    word = "caught" if test else "MISSED"
    if test and by_pytest(fault.test):
        # With the package unchanged.
        again = subprocess.run([*PYTEST, test], cwd=ROOT, capture_output=True, check=False)
        word = "FAILS WITHOUT IT" if again.returncode else word
    print(f"{word:>7}  {fault.name}: {test or fault.test}", flush=True)
    return word == "caught"


def forks(chosen: list[Fault]) -> set[str]:
    """Plant faults in forked children; return the names of those that are caught."""
    texts = {file: (ROOT / file).read_text() for file in {fault.file for fault in chosen}}
    all_ = [
        planted.Planted(f.name, f.file, texts[f.file].replace(f.old, f.new), f.test) for f in chosen
    ]

    def show(found: planted.Planted) -> None:
        word = "caught" if found.outcome == "caught" else "MISSED"
        print(f"{word:>7}  {found.name}: {found.by or found.test}", flush=True)

    return {found.name for found in planted.plant(all_, show) if found.outcome == "caught"}


def of_the_change(among: list[Fault]) -> list[Fault]:
    """Return the faults with another key than on main, and a rotating tenth of the others."""
    tree, main, place = Tree(), main_tree(), turn()
    among = [fault for fault in among if not fault.test.startswith(NIGHT)]
    other = [fault for fault in among if main is None or key(fault, tree) != key(fault, main)]
    # If there are too many, each change begins with different ones.
    random.Random(place).shuffle(other)
    others = [fault for fault in among if fault not in other]
    return other + others[place % 10 :: 10]


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of faults; all unless given")
    parser.add_argument("--of", choices=["core", "package"], help="only these; both unless given")
    parser.add_argument("--checked", action="store_true", help="the tests pass without a fault")
    parser.add_argument("--owed", action="store_true", help="those without a record")
    parser.add_argument("--gate", type=float, metavar="MINUTES", help="only those of the change")
    return parser.parse_args(words)


def main() -> int:
    given = options()
    end = time.monotonic() + 60 * given.gate if given.gate else float("inf")
    words = given.words or [""]
    chosen = [fault for fault in faults() if any(word in fault.name for word in words)]
    if given.of:
        chosen = [each for each in chosen if each.file.startswith(CORE) == (given.of == "core")]
    if given.gate:
        chosen = of_the_change(chosen)
    tree, every = Tree(), {fault.name for fault in faults()}
    if given.owed:
        chosen = [each for each in chosen if (each.name, key(each, tree)) not in caught_before()]
    waiting = [fault for fault in chosen if lacked(fault.needs)]
    chosen = [fault for fault in chosen if fault not in waiting]
    forked, chosen = [f for f in chosen if is_forked(f)], [f for f in chosen if not is_forked(f)]
    names = forks(forked)
    # A Python test that fails is run again without the fault; others run once without any.
    tests = set() if given.gate else {each.test for each in chosen if not by_pytest(each.test)}
    if given.checked:
        tests = {test for test in tests if not test.startswith("--")}
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as directory:

        def begin() -> None:
            plant(Path(directory, str(next(numbers))))

        with ThreadPoolExecutor(WORKERS, initializer=begin) as pool:
            # Some take long: nobody waits for them.
            without = pool.map(failure, sorted(tests))
            found = list(pool.map(catches, chosen, itertools.repeat(end)))
            for test in filter(None, without):
                print(f"{test} fails without any fault")
                found.append(False)
    names |= {fault.name for fault, each in zip(chosen, found, strict=False) if each}
    found += [fault.name in names for fault in forked]
    if not given.gate:
        record(
            {fault.name: key(fault, tree) for fault in forked + chosen if fault.name in names},
            every,
        )
    caught = [each for each in found if each is not None]
    print(f"{sum(caught)} of {len(caught)} faults caught")
    for fault in waiting:
        features = " and ".join(lacked(fault.needs))
        print(f"not planted, as this processor lacks {features}: {fault.name}")
    if left := len(found) - len(caught):
        print(f"{left} faults are left for `make nightly`")
    return 0 if all(caught) and (caught or given.owed) else 1


if __name__ == "__main__":
    sys.exit(main())
