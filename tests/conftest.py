"""Settings of all tests: a slow machine fails none of them; what a change runs of many cases."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("no deadlines", deadline=None)
settings.load_profile("no deadlines")

# Tests run side by side on all processors already. More threads for small matrices only wait for
# each other, and took a fifth of the time of the tests of tables. Numpy reads this as it loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: `make test` sets this to the commit: of a test with 8 cases or more, a third runs, which the
#: commit chooses. All run by night, where it is not set, and in the files of WHOLE: tests that
#: changed, and those of planted faults in files that changed (`scripts/checks.py whole`). On main
#: itself, where nothing says what changed, these are none.
TURN, WHOLE = os.environ.get("TURN"), os.environ.get("WHOLE", "").split()
FEW, PARTS = 8, 3


@pytest.fixture(autouse=True)
def _without_figures() -> Iterator[None]:
    """Close the figures of a test: pyplot keeps them, and warns of the twenty-first."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def pytest_collection_modifyitems(items: list[Any], config: Any) -> None:
    if not TURN:
        return
    cases = defaultdict(list)
    for item in items:
        if item.nodeid.split("::")[0] not in WHOLE:
            cases[item.nodeid.split("[")[0]].append(item)
    left_out = set()
    for each in cases.values():
        if len(each) >= FEW:
            each.sort(key=lambda item: sha256(f"{TURN} {item.nodeid}".encode()).digest())
            left_out.update(each[-(-len(each) // PARTS) :])
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
