"""Run the tests of what changed since the last commit: `make quick`.

`scripts/checks.toml` says which tests check a file. They run here for at most SECONDS, with the
changed tests and the examples of the changed modules. The steps of the gate and the nightly checks
take longer and are only named. BASE=COMMIT takes another commit.
"""

import os
import re
import shlex
import signal
import subprocess
import sys

from gate import CHECKS, ROOT, changed, touched

SECONDS = 80
PYTEST = [sys.executable, "-m", "pytest", "-q", "--numprocesses=auto", "--doctest-modules"]
#: The others need clusters, a browser or R.
TESTS = r"tests/(?!browser|clusters|readers)\w+/test_\w+\.py"
#: The paths that each test checks.
COVERED = {
    f"tests/{layer}/{name}.py": paths
    for layer, tests in CHECKS["tests"].items()
    for name, paths in tests.items()
}


def closest(file: str) -> list[str]:
    """Return the tests with the longest path that leads to this file."""
    found = {
        test: max((len(path) for path in paths if file.startswith(path)), default=0)
        for test, paths in COVERED.items()
    }
    return [test for test, length in found.items() if length and length == max(found.values())]


def main() -> int:
    os.environ.setdefault("BASE", "HEAD")
    files = [file for file in changed() or [] if (ROOT / file).exists()]
    for command in touched(CHECKS["commands"], files):
        if code := subprocess.run(shlex.split(command), cwd=ROOT, check=False).returncode:
            return code
    tests = [file for file in files if re.fullmatch(TESTS, file)]
    tests += [test for file in files for test in closest(file)]
    tests += [file for file in files if re.fullmatch(r"python/geomdp/.*\.py", file)]
    code = 0
    if run := list(dict.fromkeys(tests)):
        print(f"pytest {shlex.join(run)}", flush=True)
        # The engines are not installed, and their modules have their own tests.
        process = subprocess.Popen([*PYTEST, "--doctest-ignore-import-errors", *run], cwd=ROOT)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
            print(f"stopped after {SECONDS} s: the rest is left for `make test`")
    for kind, later in [("the gate", "steps"), ("the night", "nightly")]:
        if names := touched(CHECKS[later], files):
            print(f"of {kind}, this change touches: make {' '.join(names)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
