"""Run the tests of what changed since the last commit: `make quick`.

The table of CONTRIBUTING.md says for each file what to run. Its tests run here for at most SECONDS,
with the changed tests and the examples of the changed modules. Its commands of make take longer and
are only named. BASE=COMMIT takes another commit.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from gate import changed

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 80
PYTEST = [sys.executable, "-m", "pytest", "-q", "--numprocesses=auto", "--doctest-modules"]
#: The others need clusters, a browser or R.
TESTS = r"tests/(?!browser|clusters|readers)\w+/test_\w+\.py"
Row = tuple[list[str], list[str]]


def rows() -> list[Row]:
    """Return the places of each row of the table, and its commands."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things are")[2]
    cells = re.findall(r"^\|[^|]+\|([^|]+)\|([^|]+)\|$", text.partition("\n## ")[0], re.MULTILINE)
    return [
        (re.findall(r"`(.+?)`", places), re.findall(r"`(.+?)`", run)) for places, run in cells[2:]
    ]


def closeness(file: str, place: str) -> int:
    """Return 0 if the file is not in this place, which a row names by the end of its path."""
    inside = re.search(rf"/{re.escape(place.strip('/'))}(\.py)?(/|$)", "/" + file)
    return len(place) if inside else 0


def commands(files: list[str]) -> list[list[str]]:
    """Return the commands of the rows that name the closest places of these files."""
    found: list[str] = []
    for file in files:
        close = [max(closeness(file, place) for place in places) for places, _ in rows()]
        for (_, run), each in zip(rows(), close, strict=True):
            found += run if each and each == max(close) else []
    return [shlex.split(command) for command in dict.fromkeys(found)]


def main() -> int:
    os.environ.setdefault("BASE", "HEAD")
    files = [file for file in changed() or [] if (ROOT / file).exists()]
    tests = [file for file in files if re.fullmatch(TESTS, file)]
    examples = [file for file in files if re.fullmatch(r"python/geomdp/.*\.py", file)]
    later = []
    for command in commands(files):
        if command[0] == "pytest":
            tests += command[1:]
        elif command[0] == "make":
            later.append(shlex.join(command))
        elif code := subprocess.run(
            [*command, "--locked", "--quiet"], cwd=ROOT, check=False
        ).returncode:
            return code
    code = 0
    if run := [*dict.fromkeys(tests), *examples]:
        print(f"pytest {shlex.join(run)}", flush=True)
        # The engines are not installed, and their modules have their own tests.
        process = subprocess.Popen([*PYTEST, "--doctest-ignore-import-errors", *run], cwd=ROOT)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
            print(f"stopped after {SECONDS} s: the rest is left for `make test`")
    if later:
        print(f"before you propose the change: {'; '.join(later)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
