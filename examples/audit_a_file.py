"""An auditor verifies a published table: its privacy loss, its plan, its intervals.

The verifier shares no code with the library; it needs python-flint.

    python examples/audit_a_file.py [FOLDER]
"""

import hashlib
import json
import math
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import pandas as pd
from matplotlib import pyplot

import geomdp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "verifier"))
from verify import verify  # type: ignore[import-not-found]  # noqa: E402


def published(folder: Path) -> Path:
    """Return the file that the auditor gets. Its description has the certificate."""
    design = geomdp.tables.Design({"vote": ["Clinton", "Dole"]}, individual="respondent", l0=1)
    voters = pd.read_csv(ROOT / "examples/data/anes_1996.csv")
    design.count(voters).release(epsilon=0.5).save(folder / "votes.csv", certificate=True)
    return folder / "votes.csv"


def main(folder: Path) -> None:
    file = published(folder)
    stated = json.loads(Path(f"{file}.json").read_text())["geomdp"]
    [mechanism] = stated["mechanisms"]
    plan = json.dumps(mechanism["certificate"], indent=1)
    rate = verify(plan).rate  # of the noise, recomputed from the thresholds of the draw
    assert hashlib.sha256(plan.encode()).hexdigest() == mechanism["plan_sha256"]
    loss = rate * stated["l0"] * stated["linf"]  # of one individual
    assert loss == Fraction(stated["epsilon"])
    print(f"the plan is private at rate {rate}; the table costs an individual {loss}\n")
    # The least a such that more than 95% of errors are at most a: a formula of docs/format.md.
    q = math.exp(-rate)
    a = next(a for a in range(10**6) if 2 * q ** (a + 1) / (1 + q) <= 0.05)
    table = pd.read_csv(file).assign(lower=lambda t: t["count"] - a, upper=lambda t: t["count"] + a)
    print(table.to_string(index=False))
    noisy, ends = geomdp.read(file), ["lower", "upper"]
    assert noisy.intervals(alpha=0.05)[ends].equals(table[ends])  # The library says the same.
    noisy.plot(alpha=0.05)
    pyplot.savefig(folder / "votes.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
