"""Plant the faults of tests/*/faults.toml in a copy of the tree, one at a time: `make faults`.

In the file of a fault's head, `old`, which is there once, becomes `new`, and `test` must fail: a
file of Python tests or one of them, a program, or options of `cargo test -p geomdp-core`. If it
passes, a promise is not checked. `needs` names the processor features without which the test does
not run that code; a processor that lacks one leaves the fault to others. A fault that cargo-mutants
makes by itself (`make mutants`), or that a test plants itself, as tests/draw/test_primitives.py
does, needs no entry.

    scripts/plant_faults.py [WORD ...]   all, or those with one of these words in their names
    ... --of core                        those in Rust and in proofs, or --of package the others
    ... --checked                        the tests are known to pass without a fault
    ... --gate MINUTES                   as --checked, for so long: faults in files that the change
                                         touches, and a tenth of the others in turn
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

from gate import changed, turn

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


def faults() -> list[Fault]:
    """Return all faults; exit if the place of one is not in its file once."""
    layers = [tomllib.loads(path.read_text()) for path in sorted(ROOT.glob("tests/*/faults.toml"))]
    found = [
        Fault(name, file, **fault)
        for layer in layers
        for file, each in layer.items()
        for name, fault in each.items()
    ]
    for fault in found:
        if (ROOT / fault.file).read_text().count(fault.old) != 1:
            sys.exit(f"{fault.name}: its line is not in {fault.file} once")
    return found


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


def of_the_change(among: list[Fault]) -> list[Fault]:
    """Return the faults in files that the change touches, and a rotating tenth of the others."""
    files, place = changed(), turn()
    among = [fault for fault in among if not fault.test.startswith(NIGHT)]
    touched = [fault for fault in among if files is None or fault.file in files]
    # If there are too many, each change begins with different ones.
    random.Random(place).shuffle(touched)
    others = [fault for fault in among if fault not in touched]
    return touched + others[place % 10 :: 10]


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of faults; all unless given")
    parser.add_argument("--of", choices=["core", "package"], help="only these; both unless given")
    parser.add_argument("--checked", action="store_true", help="the tests pass without a fault")
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
    waiting = [fault for fault in chosen if lacked(fault.needs)]
    chosen = [fault for fault in chosen if fault not in waiting]
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
    caught = [each for each in found if each is not None]
    print(f"{sum(caught)} of {len(caught)} faults caught")
    for fault in waiting:
        features = " and ".join(lacked(fault.needs))
        print(f"not planted, as this processor lacks {features}: {fault.name}")
    if left := len(found) - len(caught):
        print(f"{left} faults are left for `make nightly`")
    return 0 if caught and all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
