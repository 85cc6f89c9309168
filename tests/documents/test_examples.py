"""The programs in examples/, one for each kind of user."""

import runpy
from pathlib import Path

import pytest
from matplotlib import pyplot

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
#: tests/clusters has it.
ON_A_CLUSTER = "spark_job"


def publishes(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a program, which prints its table and writes a file and a picture."""
    # "Agg" is the tests' back end too, so the programs may choose it.
    runpy.run_path(str(ROOT / f"examples/{name}.py"))["main"](folder)
    pyplot.close("all")
    printed = capsys.readouterr().out
    tables = [path for path in folder.iterdir() if path.suffix in (".csv", ".parquet")]
    pictures = [path for path in folder.iterdir() if path.suffix == ".png"]
    assert len(tables) == len(pictures) == 1
    assert pictures[0].read_bytes().startswith(b"\x89PNG")
    if tables[0].suffix == ".csv":
        counts = [row.rsplit(",", 1)[1] for row in tables[0].read_text().splitlines()[1:]]
        assert len(counts) >= 2
        assert all(count in printed for count in counts)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60


@pytest.mark.parametrize(
    "name", [path.stem for path in PROGRAMS if path.stem != ON_A_CLUSTER], ids=str
)
def test_program_publishes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publishes(name, tmp_path, capsys)


def test_readme_has_every_program_and_the_source_of_its_data() -> None:
    text = (ROOT / "examples/README.md").read_text()
    files = [*(ROOT / "examples").glob("*.csv"), *(ROOT / "examples/data").glob("*.csv")]
    assert files
    assert all(path.name in text for path in (*files, *PROGRAMS))
