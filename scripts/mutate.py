"""List the changes of changed lines that no test notices: `make survivors`, which gates nothing.

    scripts/mutate.py [COMMIT]     of the package's lines that changed since, or in a day

mutmut makes the changes. Its own runs begin with one of the whole suite and have no copies for
processes that tests start, so these are planted as faults are (`plant_faults.py`): for an hour, in
an order that the commit chooses, each with the files of tests that have planted faults in its file.
"""

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from inputs import ROOT, git, seed
from mutmut.mutation.file_mutation import create_mutations, deep_replace
from plant_faults import Fault, faults, forks

SECONDS = 3600


def mutants(file: str, lines: set[int]) -> Iterator[Fault]:
    """Return the changes of these lines of a file."""
    text = (ROOT / file).read_text()
    module, found, *_ = create_mutations(file, text, lines)
    for each in found:
        if each.contained_by_top_level_function:
            code = deep_replace(module, each.original_node, each.mutated_node).code
            old, new = (module.code_for_node(n) for n in (each.original_node, each.mutated_node))
            yield Fault(f"{file}: {old} -> {new}", file, text, code, "")


def changed(commit: str) -> dict[str, set[int]]:
    """Return the numbers of the lines that changed, by file."""
    lines: dict[str, set[int]] = {}
    for row in git("diff", "-U0", commit, "--", "python/geomdp").splitlines():
        if row.startswith("+++ "):
            file = row.removeprefix("+++ b/")
        elif found := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", row):
            first, number = int(found[1]), int(found[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + number))
    return {file: each for file, each in lines.items() if each and file.endswith(".py")}


def main(commit: str = "") -> int:
    lines = changed(commit or git("rev-list", "-1", "--before=yesterday", "HEAD").strip())
    left = [fault for file, each in lines.items() for fault in mutants(file, each)]
    random.Random(seed()).shuffle(left)
    tests: dict[str, set[str]] = {file: set() for file in lines}
    for fault in faults():
        if fault.is_forked and fault.file in tests:
            tests[fault.file].add(fault.test.split("::")[0])
    chosen = [replace(each, test="\n".join(tests[each.file])) for each in left if tests[each.file]]
    words = Counter[str]()
    for fault, word in forks(chosen, time.monotonic() + SECONDS):
        words[word] += 1
        if word != "caught":
            print(f"{word}: {fault.name}", flush=True)
    print(f"{len(left)} changes in {len(lines)} files: {dict(words)}; the others were not tried")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
