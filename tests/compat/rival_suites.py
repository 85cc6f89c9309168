"""Run the test suites of other libraries twice: with their own classes, and with ours instead.

    python tests/compat/rival_suites.py diffprivlib
    python tests/compat/rival_suites.py opendp --suite CHECKOUT

Prints how many tests pass in each run, and every test that only passes in the first run.
diffprivlib's source distribution contains its tests. OpenDP's does not: give a checkout of its
version. ``.venv/rivals`` keeps the downloads and the logs.
"""

import argparse
import atexit
import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: PLC0415 (the process that swaps imports the library)
import pytest

ROOT = Path(__file__).parents[2]


def swap_diffprivlib() -> None:
    import diffprivlib.models
    import diffprivlib.tools  # noqa: F401 (swapped below)
    from diffprivlib import mechanisms

    import geomdp.compat.diffprivlib as ours

    count_calls(ours.Geometric, "randomise")
    swap({getattr(mechanisms, name): getattr(ours, name) for name in ours.__all__})


def swap_opendp() -> None:
    import opendp.prelude as dp
    from opendp.context import constructors

    import geomdp.compat.opendp as ours

    count_calls(ours._Noise, "__call__")

    def make_laplace(
        input_domain: dp.Domain, input_metric: dp.Metric, *arguments: Any, **options: Any
    ) -> dp.Measurement:
        return ours._then_any_laplace(*arguments, **options)(input_domain, input_metric)

    # Our functions call theirs first: keep the originals.
    theirs = SimpleNamespace(**vars(dp.m))
    vars(ours)["dp"] = SimpleNamespace(**vars(dp) | {"m": theirs})
    ours.register(replace_laplace=True)
    constructors["geometric"] = ours.then_geometric, True
    swap(
        {
            theirs.make_geometric: ours.make_geometric,
            theirs.then_geometric: ours.then_geometric,
            theirs.make_laplace: make_laplace,
            theirs.then_laplace: ours._then_any_laplace,
        }
    )


def swap(ours: Mapping[Any, Any]) -> None:
    """Replace theirs by ours in all of their modules."""
    packages = {old.__module__.partition(".")[0] for old in ours}
    by_id = {id(old): new for old, new in ours.items()}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages:
            for attribute, value in list(vars(module).items()):
                if id(value) in by_id:
                    setattr(module, attribute, by_id[id(value)])


def count_calls(owner: type, name: str) -> None:
    """Print at exit how often ours were called, to show that the swap worked."""
    calls, method = 0, getattr(owner, name)

    def counting(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return method(*arguments, **options)

    setattr(owner, name, counting)
    atexit.register(lambda: print(f"{calls} releases by ours", file=sys.__stderr__))


class Outcomes:
    """A pytest plugin: records the outcome of every test and the start of the error line."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            crash = getattr(report.longrepr, "reprcrash", None)
            self.of[report.nodeid] = (
                outcome,
                str(getattr(crash, "message", "")).split("\n")[0][:100],
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self.of[report.nodeid] = report.outcome, "in collection"


def run_here(library: str, noise: str, tests: str, results: str) -> None:
    """Run the tests in this process."""
    if noise == "ours":
        SWAPS[library]()
    outcomes = Outcomes()
    # Libraries newer than the suite may warn.
    options = [
        "-q",
        "--tb=short",
        "-Wdefault",
        "-pno:cacheprovider",
        "--continue-on-collection-errors",
    ]
    pytest.main([*options, f"--rootdir={Path(tests).parent}", tests], plugins=[outcomes])
    Path(results).write_text(json.dumps(outcomes.of))


def run(library: str, noise: str, directory: Path, tests: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome of every test and its reason, from a separate process."""
    log, results = directory / f"{noise}.log", directory / f"{noise}.json"
    results.unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, __file__, "run-here", library, noise, str(tests), str(results)],
        cwd=tests.parent,
        env=os.environ | {"PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=log.open("w"),
        check=False,
    )
    outcomes: dict[str, tuple[str, str]] = json.loads(results.read_text())
    counts = Counter(outcome for outcome, _ in outcomes.values())
    print(f"with {noise}:", ", ".join(f"{count} {name}" for name, count in counts.items()))
    return outcomes


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def diffprivlib(directory: Path, version: str) -> Path:
    """Return the tests in diffprivlib's source distribution."""
    if not directory.is_dir():
        options = "--no-binary=:all:", "--no-deps", f"--dest={directory}"
        pip("download", *options, f"diffprivlib=={version}")
    (packed,) = directory.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        tests = [member for member in archive if member.name.split("/")[1:2] == ["tests"]]
        archive.extractall(directory, tests, filter="data")
    return directory / packed.name.removesuffix(".tar.gz") / "tests"


def opendp(directory: Path, version: str, checkout: Path) -> Path:
    """Install OpenDP with its required libraries, and return the tests in the checkout."""
    if not directory.is_dir():
        pip("install", f"--target={directory}", f"opendp[polars]=={version}")
    return checkout.resolve() / "python/test"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("library", choices=SWAPS)
    parser.add_argument("--suite", type=Path, help="a checkout of OpenDP")
    parser.add_argument("--version", help="of OpenDP; that of the checkout, unless given")
    given = parser.parse_args()
    if given.library == "diffprivlib":
        version = importlib.metadata.version("diffprivlib")
    elif given.suite:
        version = given.version or (given.suite / "VERSION").read_text().strip()
    else:
        parser.error("OpenDP's tests are not on PyPI: give --suite, a checkout of OpenDP")
    directory = ROOT / ".venv/rivals" / f"{given.library}-{version}"
    tests = (
        opendp(directory, version, given.suite)
        if given.library == "opendp"
        else diffprivlib(directory, version)
    )
    print(given.library, version)
    theirs, ours = (run(given.library, noise, directory, tests) for noise in ("theirs", "ours"))
    for test, (outcome, _) in sorted(theirs.items()):
        # Some test names contain addresses, which differ between runs.
        if outcome == "passed" and (now := ours.get(test, (outcome,)))[0] != outcome:
            print(*now, test, sep="\t")


SWAPS = {"diffprivlib": swap_diffprivlib, "opendp": swap_opendp}

if __name__ == "__main__":
    if sys.argv[1:2] == ["run-here"]:
        run_here(*sys.argv[2:])
    else:
        main()
