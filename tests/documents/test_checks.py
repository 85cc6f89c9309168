"""A check is owed exactly if what it runs has changed: `scripts/checks.py`."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import checks
import inputs
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
""",
    "python/geomdp/__init__.py": '_HOMES = {"Name": "home"}\n',
    "python/geomdp/home.py": '"""Of it."""\n\nfrom geomdp import _core\n',
    "python/geomdp/other.py": "x = 1\n",
    "rust/python/lib.rs": "fn f() -> u8 { 1 } // one\n",
    "count.py": 'import geomdp\n\ngeomdp.Name\nTEXT = ROOT / "docs" / "a.md"\n',
    "docs/a.md": "a\n",
    "data/one.txt": "1\n",
    "page.md": "<!-- evidence: count.n --><!-- end -->\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for module in (inputs, checks):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    inputs.blob.cache_clear()
    inputs.blobs.cache_clear()
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "evidence").mkdir()
    git("init", "--initial-branch=main")
    commit()
    assert checks.main(["run", "count"]) == 0
    yield tmp_path
    inputs.blobs().git.communicate()
    inputs.blob.cache_clear()
    inputs.blobs.cache_clear()


def git(*arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=inputs.ROOT, check=True, capture_output=True)


def commit() -> None:
    git("add", ".")
    git("commit", "--message", "change")


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


def test_what_changed_is_named_and_the_gate_runs_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("switch", "--create", "change")
    commit_of = [check.name for check in checks.of_the_change()]
    assert commit_of == ["count"]  # as on main itself, of which nothing is known
    (root / "docs/a.md").write_text("b\n")
    commit()
    assert checks.table()["count"].changed(checks.Tree()) == ["docs/a.md"]
    assert [check.name for check in checks.of_the_change()] == ["count"]
    (root / "docs/a.md").write_text("a\n")
    assert checks.of_the_change() == []


def test_a_failure_takes_the_record(root: Path) -> None:
    assert json.loads((root / "evidence/count.json").read_text())["figures"] == {"n": "12345"}
    (root / "evidence/fails.json").write_text("{}")
    assert checks.main(["run", "fails"]) == 1
    assert not (root / "evidence/fails.json").exists()


def test_figures_of_pages_are_those_of_the_records(root: Path) -> None:
    assert checks.main(["figures"]) == 1
    checks.main(["figures", "--write"])
    assert "12345" in (root / "page.md").read_text()
    assert checks.main(["figures"]) == 0
    (root / "data/one.txt").write_text("2\n")
    assert checks.main(["figures"]) == 1
