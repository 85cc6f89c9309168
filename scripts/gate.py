"""Run the gates of a change besides the tests, three steps at a time: `make gate`.

Some steps always run. Others run if the change touches the files that they check. Planted faults
come last, in the time that is left. The change is
what HEAD and the working tree have and main has not: all since their last common commit, and files
that git does not know yet. BASE=COMMIT takes another commit for main. On main itself nothing says
where the change begins, so every step runs, as with BASE=all.
"""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The first that exists is main.
MAIN = ("origin/main", "main")
#: How long the steps may take: 18 minutes, less those of `make test`. The planted faults get the
#: rest of it, within these limits.
MINUTES = 9
FAULTS = (1, 6)
#: Steps that look at the machine code and at the files of the package.
ALWAYS = ["ct", "lint", "instructions", "wheel", "demo", "evidence"]
#: Steps at a time: on two processors, since clusters and installers often wait.
STEPS = 3
#: A long step that begins last would run alone.
LONG = ["ct", "proof", "clusters", "wheel", "lint", "site"]
#: Steps of which the gate runs a part; `make nightly` runs all.
PARTS = {step: [step, "DAY=1"] for step in ("clusters", "site", "proof", "ct", "backends")}
#: What each check covers.
CHECKS = tomllib.loads((ROOT / "scripts/checks.toml").read_text())


def git(*arguments: str) -> str:
    run = ["git", *arguments]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def base() -> str:
    """Return the commit that the change starts from, or "" if all files count as changed."""
    given = os.environ.get("BASE")
    for name in [given] if given else MAIN:
        try:
            found = git("merge-base", "HEAD", name)
        except subprocess.CalledProcessError:
            continue  # not a commit here
        return found if given or found != git("rev-parse", "HEAD") else ""
    return ""


def changed() -> list[str] | None:
    """Return the changed files, or None if all files count as changed."""
    if not (since := base()):
        return None
    new = git("ls-files", "--others", "--exclude-standard")
    return [*git("diff", "--name-only", "--no-renames", since).splitlines(), *new.splitlines()]


def turn() -> int:
    """Return the number of commits: it chooses what a gate checks in turn."""
    return int(git("rev-list", "--count", "HEAD"))


def touched(checks: Mapping[str, Sequence[str]], files: Sequence[str]) -> list[str]:
    """Return the checks that cover one of these files."""
    return [
        check
        for check, paths in checks.items()
        if any(file.startswith(tuple(paths)) for file in files)
    ]


def steps() -> list[str]:
    """Return the steps to run before the planted faults, the longest first."""
    files = changed()
    others = CHECKS["steps"]
    chosen = [*(others if files is None else touched(others, files)), *ALWAYS]
    return sorted(chosen, key=lambda step: LONG.index(step) if step in LONG else len(LONG))


def run(step: str) -> tuple[str, float, int]:
    """Run a step. Print its time and the last lines of its output, or all of it if it failed."""
    start = time.monotonic()
    done = subprocess.run(
        ["make", "--no-print-directory", *PARTS.get(step, step.split())],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    word = "failed" if done.returncode else "passed"
    shown = lines if done.returncode else lines[-8:]
    seconds = time.monotonic() - start
    print(f"\n=== make {step}: {word} in {seconds:.0f} s", *shown, sep="\n", flush=True)
    return step, seconds, done.returncode


def main() -> int:
    # Install once for all steps, since they run in parallel.
    subprocess.run(["make", "--no-print-directory", "develop"], cwd=ROOT, check=True)
    start = time.monotonic()
    with ThreadPoolExecutor(STEPS) as pool:
        results = list(pool.map(run, steps()))
    left = MINUTES - (time.monotonic() - start) / 60
    results.append(run(f"faults FAULTS=--gate={sorted([left, *FAULTS])[1]:.1f}"))
    failed = [step for step, _, code in results if code]
    minutes = (time.monotonic() - start) / 60
    print(f"\n{len(results) - len(failed)} passed, {len(failed)} failed")
    times = ", ".join(f"{step} {seconds:.0f} s" for step, seconds, _ in results)
    print(f"The gate took {minutes:.1f} minutes: {times}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
