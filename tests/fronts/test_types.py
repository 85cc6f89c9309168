"""A user's script under mypy --strict: what it takes, and what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOOD = """
import numpy as np
import geomdp
from geomdp import GeometricMechanism, accounting, tables

m = GeometricMechanism(epsilon=0.5)
one: int = m.release(3)
a: int = m.accuracy(alpha=0.05)
several = m.release([1, 2, 3]).sum()
nested = m.release([[1, 2], [3, 4]]).shape
column = m.release(np.array([1, 2], np.int16)).dtype
design = geomdp.tables.Design({"a": ["x", "y"]}, individual="who", l0=2)
total: int = design.accuracy(epsilon=0.5, alpha=0.05, of="all")
noisy: tables.NoisyTable = design.count(None).release(epsilon=0.5, budget=accounting.Budget(6))
loss: float = noisy.privacy_loss()
read: tables.NoisyTable = geomdp.read("file.csv")
"""
BAD = ['m.release("oops")', "m.release(2.5)", "design.release(epsilon=1)", "m.accuracy(0.05, 3)"]


def test_types_of_a_users_script(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(GOOD + "\n".join(BAD) + "\n")
    options = ["--strict", "--ignore-missing-imports", "--no-error-summary", "--no-incremental"]
    run = [sys.executable, "-m", "mypy", *options, str(script)]
    found = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    first = GOOD.count("\n") + 1
    lines = {int(line.split(":")[1]) for line in found.stdout.splitlines() if ": error:" in line}
    assert lines == set(range(first, first + len(BAD))), found.stdout
