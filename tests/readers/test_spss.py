"""The syntax of docs/guides/statistics.md for SPSS, as PSPP runs it."""

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd

from geomdp import tables

PAGE = Path(__file__).parents[2] / "docs/guides/statistics.md"
#: Names that only a reader of RFC 4180 in UTF-8 keeps.
LEVELS = ["North", "Zürich", 'a "quoted", one', "007"]


def test_spss_reads_the_counts_and_makes_the_intervals(tmp_path: Path) -> None:
    [syntax] = re.findall(r"^```spss\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    cases = pd.DataFrame({"region": LEVELS[:2] * 40})
    noisy = tables.Design({"region": LEVELS}).count(cases).release(
        epsilon="0.5", save=tmp_path / "cases.csv"
    )  # fmt: skip
    syntax += 'SAVE TRANSLATE /OUTFILE="found.csv" /TYPE=CSV /FIELDNAMES /CELLS=VALUES.\n'
    (tmp_path / "run.sps").write_text(syntax)
    program = shutil.which("pspp")
    assert program is not None, "install the Debian package pspp"
    done = subprocess.run(
        [program, "-O", "format=txt", "run.sps"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stdout.decode()
    found = pd.read_csv(tmp_path / "found.csv", dtype={"region": str})
    assert found["region"].str.rstrip().tolist() == LEVELS
    assert found["count"].tolist() == [*noisy.to_dict().values()]
    ends = noisy.intervals(alpha=0.05)
    for name in ("lower", "upper"):
        assert found[name].tolist() == ends[name].tolist()
