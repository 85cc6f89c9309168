"""A check is owed exactly if what it runs has changed: `scripts/checks.py`."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import checks
import inputs
import plant_faults
import pytest

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="needs git")

FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "scripts/checks.toml": r"""
[checks.count]
command = "echo 12345 counted"
when = "touched"
programs = ["count.py"]
reads = ["data/*.txt"]
figures = ['(?P<n>\d+) counted']
shows = "{n} counted"
[checks.fails]
command = "false"
when = "night"
[checks.silent]
command = "true"
when = "night"
figures = ['(?P<n>\d+)']
[checks.turns]
command = "true"
when = "touched"
turn = [0, 1000000000]
programs = ["turns.py"]
""",
    "python/geomdp/__init__.py": '_HOMES = {"Name": "home"}\n',
    "python/geomdp/home.py": '"""Of it."""\n\nfrom geomdp import _core\n',
    "python/geomdp/other.py": "x = 1\n",
    "rust/python/lib.rs": "fn f() -> u8 { 1 } // one\n",
    "count.py": 'import geomdp\n\ngeomdp.Name\nTEXT = ROOT / "docs" / "a.md"\n',
    "docs/a.md": "a\n",
    "data/one.txt": "1\n",
    "turns.py": "import named\n",
    "named.py": "x = 1\n",
}


def forget() -> None:
    """Forget files and end the process that reads them, which other tests may have begun."""
    if inputs.blobs.cache_info().currsize:
        inputs.blobs().communicate()
    inputs.blob.cache_clear()
    inputs.blobs.cache_clear()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("BASE", raising=False)
    monkeypatch.setattr(plant_faults, "placed", lambda: ([], []))
    for module in (inputs, checks):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    forget()
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "evidence").mkdir()
    git("init", "--initial-branch=main")
    commit()
    assert checks.main(["run", "count"]) == 0
    yield tmp_path
    forget()


def git(*arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=inputs.ROOT, check=True, capture_output=True)


def commit() -> None:
    git("add", ".")
    git("commit", "--allow-empty", "--message", "change")


def is_green() -> bool:
    return checks.table()["count"].is_green(checks.Tree())


@pytest.mark.parametrize(
    ("name", "text", "green"),
    [
        ("python/geomdp/home.py", '"""Otherwise."""\n# or so\nfrom geomdp import  _core\n', True),
        ("python/geomdp/home.py", "from geomdp import _core\nx = 1\n", False),
        ("python/geomdp/other.py", "x = 2\n", True),
        ("rust/python/lib.rs", "fn f() -> u8 {\n    1\n}\n", True),
        ("rust/python/lib.rs", "fn f() -> u8 { 2 } // one\n", False),
        ("rust/python/lib.rs", 'fn f() -> &str { "// one" }\n', False),
        ("docs/a.md", "b\n", False),
        ("docs/b.md", "b\n", True),
        ("data/two.txt", "2\n", False),
        ("scripts/checks.toml", FILES["scripts/checks.toml"].replace("12345", "1"), False),
    ],
)
def test_a_check_is_owed_if_what_it_runs_changed(
    name: str, text: str, green: bool, root: Path
) -> None:
    assert is_green()
    (root / name).write_text(text)
    assert is_green() == green
    check = checks.table()["count"]
    assert ("owed" in check.state(checks.Tree())) != green


def names() -> list[str]:
    return [check.name for check in checks.of_the_change()]


def test_a_change_owes_what_differs_from_main(root: Path) -> None:
    git("switch", "--create", "change")
    (root / "docs/a.md").write_text("b\n")
    commit()
    assert checks.table()["count"].changed(checks.Tree()) == ["docs/a.md"]
    assert names() == ["count"]
    assert not is_green()
    assert checks.main(["gate"]) == 0  # passes, and writes no record
    assert not is_green()
    (root / "docs/a.md").write_text("a\n")
    assert names() == []


def test_a_sample_runs_in_turn_or_if_its_own_files_change(root: Path) -> None:
    git("switch", "--create", "change")
    (root / "named.py").write_text("x = 2\n")
    assert names() == []  # of a thousand million turns, this is another
    (root / "turns.py").write_text("import named\n\nnamed.x\n")
    assert names() == ["turns"]


def test_main_itself_owes_what_has_no_record(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit()
    assert names() == []
    (root / "docs/a.md").write_text("b\n")
    commit()
    assert names() == ["count"]
    monkeypatch.setattr(checks, "MINUTES", -1)
    assert checks.main(["gate"]) == 0
    assert "left for the night: count" in capsys.readouterr().out
    monkeypatch.setenv("BASE", "HEAD~1")
    assert names() == ["count"]
    monkeypatch.setenv("BASE", "all")
    assert names() == ["count", "turns"]


def test_a_failure_takes_the_record(root: Path) -> None:
    assert json.loads((root / "evidence/count.json").read_text())["figures"] == {"n": "12345"}
    (root / "evidence/fails.json").write_text("{}")
    assert checks.main(["run", "fails"]) == 1
    assert not (root / "evidence/fails.json").exists()
    assert checks.main(["run", "silent", "count"]) == 1  # no output has its figures
    assert not (root / "evidence/silent.json").exists()


def test_the_site_fills_pages_from_the_records(root: Path) -> None:
    page = "It passed with <!-- evidence: count.n -->: <!-- evidence: count -->\n"
    assert checks.filled(page).startswith("It passed with 12345: 12,345 counted (")
    (root / "data/one.txt").write_text("2\n")
    assert "12,345" not in checks.filled(page)
    assert "12345" not in checks.filled(page)
    assert "| fails | `false` | **owed**" in checks.filled("<!-- evidence: all -->")


ROOT = inputs.ROOT
#: Checks of the mechanism alone.
MECHANISM = (
    "exhaustive-26 proof proof-certificates sweep audit dudect endurance fuzz mutants windows ct "
    "instructions primitives machine-code diffprivlib opendp backends"
)


def test_documents_and_tables_are_no_inputs_of_checks_of_the_mechanism() -> None:
    """A comment is none of any check: the hash leaves it out."""
    tree, table = inputs.Tree(), checks.table()
    assert {*MECHANISM.split()} < table.keys()
    away = ("docs/", "python/geomdp/tables/", "tests/tables/", "tests/documents/", "CHANGELOG.md")
    for name in MECHANISM.split():
        found = table[name].inputs(tree)
        assert len(found) > 40
        assert [file for file in found if file.startswith(away)] == []


def test_each_command_has_a_record_or_a_reason() -> None:
    """Commands without either rotted: one was broken for two days."""
    without = tomllib.loads((ROOT / "scripts/checks.toml").read_text())["without"]
    rows = checks.table().values()
    runs = [f"{check.command} {check.day}" for check in rows]
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][\w-]*):.*##", makefile, re.MULTILINE))
    assert len(targets) > 40
    assert targets - {run.split()[1] for run in runs} == {
        name for name in without if " " not in name
    }
    assert {file.stem for file in ROOT.glob("evidence/*.json")} < checks.table().keys()
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = re.findall(r"\bmake\s+([a-z-]+)\s+([A-Z_]+)=", " ".join(p.read_text() for p in pages))
    assert ("wheel", "TWICE") in named
    for target, option in set(named):
        assert target in targets
        has = any(run.startswith(f"make {target} ") and f"{option}=" in run for run in runs)
        assert has or f"make {target} {option}" in without, (target, option)


def test_places_that_the_site_fills_name_figures_of_checks() -> None:
    table = checks.table()
    found = [pair for page in ROOT.glob("docs/**/*.md") for pair in
             checks.MARKED.findall(page.read_text())]  # fmt: skip
    assert len(found) > 2
    for name, figure in found:
        assert name == "all" or not figure or f"(?P<{figure}>" in "".join(table[name].figures)
