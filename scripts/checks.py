"""Run the checks whose inputs changed, and say which are green on these inputs.

A check is owed if an input changed since it passed: a file that its programs import or name, or one
that `scripts/checks.toml` states. The key of a check is a hash of what runs of these files and of
its command (`inputs.py`). A check that passes keeps its key, commit and figures in
`evidence/NAME.json`; a change of nothing else changes no record, and the site shows them.

    scripts/checks.py [NAME ...]        the state of all checks, or of these, with what changed
    scripts/checks.py run [NAME ...]    run these, or all that are owed by night, and record them
    scripts/checks.py gate              those of a change: always, or with other inputs than main
    scripts/checks.py quick             the tests of what changed since the last commit, for a while
    scripts/checks.py whole             the files of tests of which a change runs all cases
    scripts/checks.py figures [--write] compare the figures on the pages with the records
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from inputs import ROOT, RUST, Tree, blob, git

#: The first that exists is main.
MAIN = ("origin/main", "main")
#: Steps at a time: on two processors, since clusters and installers often wait.
STEPS = 3
#: A figure on a page, CHECK.FIGURE or CHECK for its sentence.
MARKED = re.compile(r"(<!-- evidence: (\S+) -->).*?(<!-- end -->)", re.DOTALL)


@dataclass
class Check:
    """A row of the table."""

    name: str
    command: str
    when: str
    day: str = ""
    programs: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    shows: str = "passed"
    owed: str = ""
    parts: int = 1

    def inputs(self, tree: Tree) -> set[str]:
        programs = {file for each in self.programs for file in tree.below(each)}
        paths = [
            path for each in self.reads for path in RUST.get(each.removeprefix("rust:"), [each])
        ]
        apart = (*self.apart, "evidence/")
        reached = {
            file
            for file in tree.closure(programs)
            if not file.startswith(apart) and not file.endswith("faults.toml")
        }
        return programs | reached | {file for path in paths for file in tree.below(path)}

    def key(self, tree: Tree) -> str:
        return tree.key(self.inputs(tree), self.command, *self.figures)

    @cached_property
    def record(self) -> dict[str, Any]:
        file = ROOT / f"evidence/{self.name}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def is_green(self, tree: Tree) -> bool:
        return self.record.get("key") == self.key(tree)

    def changed(self, tree: Tree) -> list[str]:
        """Return the inputs that differ from those of the record."""
        try:
            before = Tree(self.record["commit"])
        except (KeyError, subprocess.CalledProcessError):
            return []
        files = self.inputs(before) | self.inputs(tree)
        return sorted(
            file for file in files
            if file not in before.files or file not in tree.files
            or before.key([file]) != tree.key([file])
        )  # fmt: skip

    def landed(self, tree: Tree) -> int:
        """Return how many parts the changes ran that landed with these inputs."""
        files = sorted(self.inputs(tree))
        last = git("log", "-1", "--first-parent", "--format=%H", "--", *files).strip()
        turns = git("rev-list", "--first-parent", f"{last}^..HEAD").split()
        return len({turn(commit) % self.parts for commit in turns})

    def state(self, tree: Tree) -> str:
        kept = self.record
        run = f"{kept['date']}, commit {kept['commit'][:10]}" if kept else ""
        if kept and self.is_green(tree):
            grouped = {
                key: re.sub(r"\b\d{5,}\b", lambda found: f"{int(found[0]):,}", value)
                for key, value in kept["figures"].items()
            }
            return f"{self.shows.format(**grouped)} ({run}, {-(-kept['seconds'] // 60)} min)"
        why = f"its inputs have changed since its run of {run}" if kept else "no run is on record"
        if self.parts > 1:
            return f"sampled: {self.landed(tree)} of {self.parts} parts on these inputs; {why}"
        return f"**owed**: {why}" + (f"; {self.owed}" if self.owed else "")


def table() -> dict[str, Check]:
    return {
        name: Check(name, **row)
        for name, row in Tree().toml("scripts/checks.toml")["checks"].items()
    }


def turn(commit: str = "HEAD") -> int:
    """Return the number of commits: it chooses what a change checks in turn."""
    return int(git("rev-list", "--count", commit))


def figures_in(output: str, patterns: list[str]) -> dict[str, str]:
    """Return the named groups of all patterns; every pattern must match."""
    figures = {}
    for pattern in patterns:
        if not (found := re.search(pattern, output, re.MULTILINE)):
            sys.exit(f"not recorded: no line of the output matches {pattern}")
        figures.update(found.groupdict())
    return figures


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.M) if info.exists() else []
    return names[0] if names else platform.machine()


def run(check: Check, day: bool = False, record: bool = False) -> tuple[str, float, int]:
    """Run a check, print its last lines, or all if it failed, and keep what passed whole."""
    start, before = time.time(), Tree()
    command = f"{check.command} {check.day}" if day else check.command
    done = subprocess.run(
        command.split(), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    lines, seconds = done.stdout.splitlines(), time.time() - start
    word = "failed" if done.returncode else "passed"
    shown = lines if done.returncode else lines[-8:]
    print(f"\n=== {command}: {word} in {seconds:.0f} s", *shown, sep="\n", flush=True)
    file = ROOT / f"evidence/{check.name}.json"
    whole = not day or not check.day
    if done.returncode:
        file.unlink(missing_ok=True)  # what an earlier run found is not shown beside this failure
    elif record and whole and check.key(Tree()) == check.key(before):
        kept = {
            "commit": git("rev-parse", "HEAD").strip(),
            "date": time.strftime("%Y-%m-%d", time.gmtime(start)),
            "figures": figures_in(done.stdout, check.figures),
            "key": check.key(before),
            "processor": processor(),
            "seconds": round(seconds),
        }
        file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return check.name, seconds, done.returncode


def main_tree() -> Tree | None:
    """Return the files of main where this change began, or None on main itself."""
    for name in [os.environ["BASE"]] if "BASE" in os.environ else MAIN:
        try:
            found = git("merge-base", "HEAD", name).strip()
        except subprocess.CalledProcessError:
            continue
        return (
            Tree(found)
            if "BASE" in os.environ or found != git("rev-parse", "HEAD").strip()
            else None
        )
    return None


def of_the_change() -> list[Check]:
    """Return the checks that always run, and those with other inputs than on main."""
    tree, main = Tree(), main_tree()
    return [
        check for check in table().values()
        if check.when == "always"
        or (check.when == "touched" and (main is None or check.key(main) != check.key(tree)))
    ]  # fmt: skip


def run_all(checks: list[Check], day: bool, record: bool) -> int:
    """Run checks side by side, the longest first, and name those that fail."""
    checks = sorted(checks, key=lambda check: -check.record.get("seconds", 60))
    start = time.monotonic()
    with ThreadPoolExecutor(STEPS if day else 1) as pool:
        results = list(pool.map(lambda check: run(check, day, record), checks))
    failed = [name for name, _, code in results if code]
    times = ", ".join(f"{name} {seconds:.0f} s" for name, seconds, _ in results)
    print(f"\n{len(results) - len(failed)} passed, failed: {', '.join(failed) or 'none'}")
    print(f"{(time.monotonic() - start) / 60:.1f} minutes: {times}")
    return bool(failed)


def quick(seconds: int = 80) -> int:
    """Run changed tests, those that run a changed function, and examples of changed modules.

    `scripts/mutate.py` keeps which functions each test runs. A module of which that is not known has
    the tests of its planted faults.
    """
    os.environ.setdefault("BASE", "HEAD")
    main, tree = main_tree(), Tree()
    assert main
    files = [file for file, blob in tree.files.items() if main.files.get(file) != blob]
    if any(file.startswith("rust/core/") for file in files):
        cargo = "cargo test --locked --quiet -p geomdp-core --lib --tests"
        if code := subprocess.run(cargo.split(), cwd=ROOT, check=False).returncode:
            return code
    known = ROOT / "target/planted/runs.json"
    runs = json.loads(known.read_text()) if known.exists() else {}
    functions = {f"{file}:{name}" for file in files if file.startswith("python/")
                 for name in differing(main, tree, file)}  # fmt: skip
    tests = [
        (seconds, test) for found in runs.values() for test, (seconds, ran) in found.items()
        if functions & {*ran}
    ]  # fmt: skip
    chosen = [
        file
        for file in files
        if re.fullmatch(r"tests/(?!browser|clusters|readers)\w+/test_\w+\.py", file)
    ]
    chosen += [test for _, test in sorted(tests)] or of_faults(tree, files)
    chosen += [file for file in files if re.fullmatch(r"python/geomdp/.*\.py", file)]
    if not chosen:
        return 0
    pytest = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "--numprocesses=auto",
        "--doctest-modules",
    ]
    run = [*pytest, "--doctest-ignore-import-errors", *dict.fromkeys(chosen)]
    try:
        return subprocess.run(run, cwd=ROOT, check=False, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        print(f"stopped after {seconds} s: the rest is left for `make test`")
        return 0


def of_faults(tree: Tree, files: list[str]) -> list[str]:
    """Return the files of tests that have planted faults in these files."""
    from plant_faults import faults  # noqa: PLC0415 (it imports this module)

    found = {fault.test.split("::")[0] for fault in faults() if fault.file in files}
    return sorted(found & tree.files.keys())


def whole() -> list[str]:
    """Return the files of tests that a change runs whole: changed ones, and those of its faults."""
    main, tree = main_tree(), Tree()
    if main is None:
        return sorted(tree.below("tests/*/test_*.py"))
    files = [file for file, blob in tree.files.items() if main.files.get(file) != blob]
    return sorted({*of_faults(tree, files), *(file for file in files if "/test_" in file)})


def differing(main: Tree, tree: Tree, file: str) -> list[str]:
    """Return the functions of a file that differ from those on main, or all."""
    from planted import changed_functions, parts

    after = blob(tree.files[file]).decode()
    before = blob(main.files[file]).decode() if file in main.files else ""
    found = changed_functions(before, after) if before else None
    return list(parts(after)[1]) if found is None else found


def render(text: str, checks: dict[str, Check], tree: Tree) -> str:
    """Return a page with figures between its marks; `all` is a table, which the site shows."""

    def between(found: re.Match[str]) -> str:
        name, _, figure = found[2].partition(".")
        if name == "all":
            rows = [f"| {c.name} | `{c.command}` | {c.state(tree)} |" for c in checks.values()]
            shown = "\n".join(["| check | command | on these inputs |\n|---|---|---|", *rows])
        elif not checks[name].is_green(tree):
            shown = "no run is on record yet"
        else:
            shown = checks[name].record["figures"][figure] if figure else checks[name].state(tree)
        return f"{found[1]}\n\n{shown}\n\n{found[3]}"

    return MARKED.sub(between, text)


def main(words: list[str]) -> int:
    command, checks, tree = (words or [""])[0], table(), Tree()
    if command == "gate":
        return run_all(of_the_change(), day=True, record=False)
    if command == "whole":
        print(*whole())
        return 0
    if command == "quick":
        return quick()
    if command == "run":
        chosen = [checks[name] for name in words[1:]] or [
            check for check in checks.values() if check.when != "hours" and not check.is_green(tree)
        ]
        return run_all(chosen, day=False, record=True)
    if command == "figures":
        wrong = 0
        for name in git("ls-files", "--", "*.md").split():
            text = (ROOT / name).read_text()
            if "evidence: all" not in text and (new := render(text, checks, tree)) != text:
                wrong += 1
                print(f"{name} shows other figures than the records give")
                if words[1:] == ["--write"]:
                    (ROOT / name).write_text(new)
        return wrong if words[1:] != ["--write"] else 0
    for check in [checks[name] for name in words] or checks.values():
        print(f"{check.name:<18} {check.state(tree)}")
        if words or "owed" in check.state(tree):
            print(*(f"    {file}" for file in check.changed(tree)[:12]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
