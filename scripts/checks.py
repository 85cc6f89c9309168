"""Run the checks whose inputs changed, and say which have passed on these inputs.

A check is owed if an input changed since it passed: a file that its programs import or name, or one
that `scripts/checks.toml` states. Its key is a hash of its command and of what runs of these files
(`inputs.py`). `evidence/NAME.json` keeps the key, commit and figures of a check that passed.

    scripts/checks.py [NAME ...]    the state of all checks, or of these, with what changed
    scripts/checks.py run [NAME ..] run these, or all that are owed by night, and record what passes
    scripts/checks.py gate          run what a change owes
    scripts/checks.py quick         the tests of what changed since the last commit, for a while
    scripts/checks.py whole         the files of tests of which a change runs all cases

A change owes the checks that always run, and those whose key is another than on main. It writes no
record: a landing would then change files that each other landing changes too. On main itself the
records stand for what is known, and no check begins after MINUTES: the night runs what is left.

doit keeps such keys in a database of one machine, which no clone of main has, and pytest-testmon
the tests of a change; neither compares with another commit.
"""

import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import plant_faults
from inputs import ROOT, Tree, base, git, seed

#: On main itself, after these no check begins.
MINUTES = 2
#: Steps at a time: on two processors, since clusters and installers often wait.
STEPS = 3
#: A place on a page that the site fills: a check's state, CHECK.FIGURE, or `all`.
MARKED = re.compile(r"<!-- evidence: ([\w-]+)(?:\.(\w+))? -->")


@dataclass
class Check:
    """A row of the table."""

    name: str
    when: str
    command: str = ""
    day: str = ""
    turn: tuple[int, int] = 0, 1
    programs: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    shows: str = "passed"

    def stated(self, tree: Tree) -> set[str]:
        """Return the programs, and what the table names beside them."""
        files = {file for each in (*self.programs, *self.reads) for file in tree.below(each)}
        return {file for file in files if not file.startswith(tuple(self.apart))}

    def inputs(self, tree: Tree) -> set[str]:
        """Return the files that decide what the check finds."""
        stated, apart = self.stated(tree), (*self.apart, "evidence/")
        programs = {file for each in self.programs for file in tree.below(each)}
        reached = {f for f in tree.closure(programs & stated) if not f.startswith(apart)}
        return {file for file in reached | stated if not file.endswith("faults.toml")}

    def key(self, tree: Tree) -> str:
        return tree.key(self.inputs(tree), self.command, *self.figures)

    @property
    def file(self) -> Path:
        return ROOT / f"evidence/{self.name}.json"

    @cached_property
    def record(self) -> dict[str, Any]:
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def is_green(self, tree: Tree) -> bool:
        return bool(self.record) and self.record["key"] == self.key(tree)

    def changed(self, tree: Tree) -> list[str]:
        """Return the inputs that differ from those of the record."""
        before = Tree(self.record["commit"])
        return sorted(
            file for file in self.inputs(before) | self.inputs(tree)
            if {file} - before.files.keys() or {file} - tree.files.keys()
            or before.key([file]) != tree.key([file])
        )  # fmt: skip

    def state(self, tree: Tree) -> str:
        if not self.record:
            return "**owed**: no run is on record"
        run = f"{self.record['date']}, commit {self.record['commit'][:10]}"
        if not self.is_green(tree):
            return f"**owed**: its inputs have changed since its run of {run}"
        figures = {
            name: re.sub(r"\b\d{5,}\b", lambda found: f"{int(found[0]):,}", value)
            for name, value in self.record["figures"].items()
        }
        minutes = -(-self.record["seconds"] // 60)
        return f"{self.shows.format(**figures)} ({run}, {minutes} min)"


def table() -> dict[str, Check]:
    rows = Tree().toml("scripts/checks.toml")["checks"]
    return {name: Check(name, **{"command": f"make {name}"} | row) for name, row in rows.items()}


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.M) if info.exists() else []
    return names[0] if names else platform.machine()


def run(check: Check, day: bool, end: float = float("inf")) -> tuple[str, float, int | None]:
    """Run a check and print its last lines, or all if it failed; by night, keep what passed."""
    start, key = time.time(), "" if day else check.key(Tree())
    if start > end:
        return check.name, 0, None
    command = f"{check.command} {check.day.format(seed=seed())}" if day else check.command
    done = subprocess.run(
        command.split(), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    found = [re.search(pattern, done.stdout, re.MULTILINE) for pattern in check.figures]
    # By night, an output without the figures that it must have is a failure too.
    code = done.returncode or int(not day and None in found)
    lines, seconds = done.stdout.splitlines(), time.time() - start
    word = "failed" if code else "passed"
    shown = lines if code else lines[-8:]
    print(f"\n=== {command}: {word} in {seconds:.0f} s", *shown, sep="\n", flush=True)
    if code and not day:
        check.file.unlink(missing_ok=True)  # an earlier success is not shown beside this failure
    elif not day and check.key(Tree()) == key:
        kept = {
            "commit": git("rev-parse", "HEAD").strip(),
            "date": time.strftime("%Y-%m-%d", time.gmtime(start)),
            "figures": {k: v for each in found if each for k, v in each.groupdict().items()},
            "key": key,
            "processor": processor(),
            "seconds": round(seconds),
        }
        check.file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return check.name, seconds, code


def of_the_change() -> list[Check]:
    """Return the checks that always run, and those with another key than on main, or their turn."""
    tree, main, every = Tree(), base(), os.environ.get("BASE") == "all"

    def is_owed(check: Check) -> bool:
        if check.when != "touched" or every:
            return check.when in {"always", "touched"}
        if main and tree.key(check.stated(tree)) != main.key(check.stated(main)):
            return True
        turn, turns = check.turn
        known = check.key(main) == check.key(tree) if main else check.is_green(tree)
        return seed() % turns == turn and not known

    return [check for check in table().values() if is_owed(check)]


def run_all(checks: list[Check], day: bool, minutes: float = float("inf")) -> int:
    """Run checks, by day side by side, and name those that fail and those that are left."""
    start = time.time()
    with ThreadPoolExecutor(STEPS if day else 1) as pool:
        results = list(pool.map(lambda check: run(check, day, start + 60 * minutes), checks))
    failed = [name for name, _, code in results if code]
    left = [name for name, _, code in results if code is None]
    times = ", ".join(f"{name} {seconds:.0f} s" for name, seconds, _ in results)
    print(f"\n{(time.time() - start) / 60:.1f} minutes: {times}")
    print(f"failed: {', '.join(failed) or 'none'}", end="")
    print(f"; left for the night: {', '.join(left)}" if left else "")
    return bool(failed)


def gate() -> int:
    checks, on_main = of_the_change(), base() is None and os.environ.get("BASE") != "all"
    random.Random(seed()).shuffle(checks)  # what is left on main is not always the same
    checks.sort(key=lambda check: check.when)
    return run_all(checks, day=True, minutes=MINUTES if on_main else float("inf"))


def whole() -> list[str]:
    """Return the files of tests that changed, and those of planted faults in files that changed."""
    main, tree = base(), Tree()
    if main is None:
        return []
    files = {file for file, blob in tree.files.items() if main.files.get(file) != blob}
    tests = {fault.test.split("::")[0] for fault in plant_faults.faults() if fault.file in files}
    tests |= {file for file in files if "/test_" in file}
    away = ("tests/browser/", "tests/clusters/", "tests/readers/")
    return sorted(file for file in tests & tree.files.keys() if not file.startswith(away))


def quick(seconds: int = 80) -> int:
    """Run the tests of `whole` since the last commit, and examples of changed modules."""
    os.environ.setdefault("BASE", "HEAD")
    main, tree = base(), Tree()
    assert main
    files = {file for file, blob in tree.files.items() if main.files.get(file) != blob}
    if any(file.startswith("rust/core/") for file in files):
        cargo = "cargo test --locked --quiet -p geomdp-core --lib --tests"
        if code := subprocess.run(cargo.split(), cwd=ROOT, check=False).returncode:
            return code
    chosen = [*whole(), *(f for f in files if re.fullmatch(r"python/geomdp/.*\.py", f))]
    options = "-m pytest -q -x --numprocesses=auto --doctest-modules --doctest-ignore-import-errors"
    run = [sys.executable, *options.split(), *chosen]
    try:
        return (
            subprocess.run(run, cwd=ROOT, check=False, timeout=seconds).returncode if chosen else 0
        )
    except subprocess.TimeoutExpired:
        print(f"stopped after {seconds} s: the rest is left for `make test`")
        return 0


def filled(text: str) -> str:
    """Return a page with the state of checks in its marked places."""
    checks, tree = table(), Tree()

    def fill(found: re.Match[str]) -> str:
        name, figure = found.groups()
        if name == "all":
            rows = [f"| {c.name} | `{c.command}` | {c.state(tree)} |" for c in checks.values()]
            rows.append(f"| faults | `make faults` | {plant_faults.state(tree)} |")
            return "\n".join(["| check | command | on these inputs |", "|---|---|---|", *rows])
        is_figure = figure and checks[name].is_green(tree)
        return checks[name].record["figures"][figure] if is_figure else checks[name].state(tree)

    return MARKED.sub(fill, text)


def show(names: list[str]) -> int:
    checks, tree, owed = table(), Tree(), []
    for check in [checks[name] for name in names] or checks.values():
        state = check.state(tree).split("\n")[0]
        print(f"{check.name:<18} {state}")
        if "owed" in state:
            owed.append(check.name)
            if names and check.record:
                print(*(f"    {file}" for file in check.changed(tree)), sep="\n")
    print(f"{'faults':<18} {plant_faults.state(tree)}")
    print(
        f"{len(names or checks) - len(owed)} have passed on these inputs; owed: {', '.join(owed)}"
    )
    return 0


def main(words: list[str]) -> int:
    match words:
        case ["gate"]:
            return gate()
        case ["quick"]:
            return quick()
        case ["whole"]:
            print(*whole())
            return 0
        case ["run", *names]:
            tree = Tree()
            named = [table()[name] for name in names]
            owed = (c for c in table().values() if c.when != "release" and not c.is_green(tree))
            return run_all(named or list(owed), day=False)
    return show(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
