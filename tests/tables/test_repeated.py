"""A process that repeats a call keeps no object more, whatever it calls."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting
from geomdp.tables import Design

PEOPLE = pd.DataFrame({"town": ["a", "b"] * 500, "sex": ["f", "f", "m", "m"] * 250})
DESIGN = Design({"town": ["a", "b"], "sex": ["f", "m"]}, margins="all")
TABLE = DESIGN.count(PEOPLE)
NOISY = TABLE.release(epsilon=1)
#: Calls in a round; so many blocks of memory are left by one that keeps an object.
CALLS = 50


def reading(ending: str) -> Callable[[Path], Callable[[], object]]:
    def made(folder: Path) -> Callable[[], object]:
        NOISY.save(folder / f"a{ending}")
        return lambda: geomdp.read(folder / f"a{ending}")

    return made


def refused() -> object:
    with pytest.raises(TypeError):
        DESIGN.count([1])
    return None


REPEATED: dict[str, Callable[[Path], Callable[[], object]]] = {
    "read csv": reading(".csv"),
    "read parquet": reading(".parquet"),
    "save": lambda folder: lambda: NOISY.save(folder / "b.csv", overwrite=True),
    "count": lambda _: lambda: DESIGN.count(PEOPLE),
    "release": lambda _: lambda: TABLE.release(epsilon=1),
    "answer": lambda _: NOISY.total,
    "draw": lambda _: lambda: GeometricMechanism(1).release([1, 2]),
    "pay": lambda _: lambda: accounting.Budget(1).release(GeometricMechanism(1), [1, 2]),
    "refuse": lambda _: refused,
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_repeated_call_keeps_no_object(name: str, tmp_path: Path) -> None:
    """Caches fill in the first rounds; one that grows for ever grows in each of them."""
    call = REPEATED[name](tmp_path)
    found = []
    for _ in range(20):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(CALLS):
            call()
        gc.collect()
        found.append(sys.getallocatedblocks() - before)
        if found[-1] < CALLS // 2:
            return
    pytest.fail(f"blocks that each round left: {found}")
