"""The reader of published files without the library, against it, on files of every kind."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from read_without_geomdp import read

import geomdp
from geomdp.tables._publish import formats
from published_kinds import RELEASED, RUN, ends_of_each

ROOT = Path(__file__).parents[2]
CHARACTERS = [*map(chr, range(2**16))]


@pytest.mark.parametrize("name", RELEASED)
def test_the_standard_library_reads_every_kind(name: str, tmp_path: Path) -> None:
    release = RELEASED[name]
    release.save(tmp_path / "a.csv")
    found = pd.DataFrame(read(tmp_path / "a.csv"))
    assert found.iloc[:, len(release.design.levels)].tolist() == [*release.to_dict().values()]
    if name == "top" or "groups" in name:
        assert "lower" not in found
        return
    ends, wanted = found[["lower", "upper"]].to_numpy(), ends_of_each(release, 0.05)
    # An end that bounds leave open is infinite here, and the largest int64 in the library.
    assert (ends.clip(max=np.iinfo(np.int64).max) == wanted).all()


def test_edited_rows_are_refused(tmp_path: Path) -> None:
    RELEASED["flat"].save(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes((tmp_path / "a.csv").read_bytes() + b"\n")
    with pytest.raises(ValueError, match="was edited, or is of another release"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "path",
    [
        "examples/readers/read_without_geomdp.py",
        "examples/readers/r/R/geomdp.R",
        "docs/guides/excel.md",
    ],
)
def test_all_readers_know_the_texts_that_spreadsheets_run(path: str) -> None:
    """Each has its own list of their first characters, and no other than the writer's."""
    written = {first for first in CHARACTERS if formats._escaped(first) != first}
    [listed] = re.findall(r"\*(\[[=][^]]+\])", (ROOT / path).read_text(encoding="utf-8"))
    assert {first for first in CHARACTERS if re.fullmatch(listed, first)} == written == {*RUN}


def test_the_format_lists_the_texts_that_spreadsheets_run() -> None:
    listed = (ROOT / "docs/format.md").read_text(encoding="utf-8")
    [sentence] = re.findall(r"Spreadsheets execute cells that (.+?)\.", listed, re.DOTALL)
    names = {"tab": "\t", "CR": "\r", "LF": "\n", "byte order mark": "\ufeff"}
    found = re.findall(r"`(.)`|\b(tab|CR|LF|byte order mark)\b", sentence)
    assert {shown or names[name] for shown, name in found} == {*RUN}


def test_the_release_that_the_r_package_ships_is_read_by_all() -> None:
    """Its vignette has the command that made it."""
    path = ROOT / "examples/readers/r/inst/extdata/admissions.csv"
    found = geomdp.read(path).intervals(alpha=0.05)
    assert found.shape == (24, 6)
    rows = pd.DataFrame(read(path))
    assert (rows[["lower", "upper"]].to_numpy() == found[["lower", "upper"]].to_numpy()).all()
