"""The figures of long checks are those of the present sources: `make evidence`."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import evidence

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="needs git")

CHECKS = r"""
[groups]
core = ["core", "lock"]
[checks.count]
command = "make count"
sources = ["core"]
figures = ['^(?P<n>\d+) counted']
shows = "{n} counted"
[checks.never]
command = "make never"
owed = "it takes a week"
sources = ["lock"]
shows = "passed"
"""
PAGE = """Count: <!-- evidence: count -->
<!-- end -->, or <!-- evidence: count.n --> 7 <!-- end -->.

<!-- evidence: all --><!-- end -->
"""


def git(*arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=evidence.ROOT, check=True, capture_output=True)


def commit() -> None:
    git("add", ".")
    git("commit", "--message", "change")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a check that is on record, and its page."""
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setenv("RECORD", "1")
    for name, text in {
        "core/one": "1",
        "lock": "2",
        "page.md": PAGE,
        "evidence/checks.toml": CHECKS,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git("init")
    commit()
    assert evidence.record("count", ["echo", "12345 counted"]) == 0
    commit()
    return tmp_path


def test_page_shows_the_record_and_what_is_owed(root: Path) -> None:
    page = (root / "page.md").read_text()
    assert page.count("12,345 counted (2") == 2
    assert "count.n -->\n\n12345\n\n<!-- end" in page
    assert "| never | `make never` | **owed**: no run is on record; it takes a week |" in page
    assert evidence.pages(write=False) == 0
    kept = json.loads((root / "evidence/count.json").read_text())
    assert kept["figures"] == {"n": "12345"}
    head = subprocess.run(
        ["git", "rev-parse", "HEAD^"], cwd=root, check=True, capture_output=True, text=True
    )
    assert kept["commit"] == head.stdout.strip()


def test_pages_for_users_name_no_debt(root: Path) -> None:
    shown = evidence.render("<!-- evidence: never --><!-- end -->", evidence.checks())
    assert "\n\nno run is on record yet\n\n" in shown


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename"])
def test_changed_source_is_owed(root: Path, change: str) -> None:
    one = root / "core/one"
    if change == "edit":
        one.write_text("3")
    else:
        (root / "core/two").write_text("1")
    if change in {"remove", "rename"}:
        one.unlink()
    if change == "remove":
        one.write_text("1")
        git("add", ".")
        one.unlink()
    # The page still shows the figure.
    assert evidence.pages(write=False) == 1
    evidence.pages(write=True)
    page = (root / "page.md").read_text()
    assert page.count("**owed**: its sources have changed since its run of 2") == 3
    assert "counted (" not in page
    assert evidence.pages(write=False) == 0


def test_figure_changed_by_hand_is_found(root: Path) -> None:
    page = root / "page.md"
    page.write_text(page.read_text().replace("12,345", "12,346", 1))
    assert evidence.pages(write=False) == 1


def test_changes_that_are_not_committed_are_not_recorded(root: Path) -> None:
    (root / "core/two").write_text("")
    with pytest.raises(SystemExit, match=r"not recorded: .*\n\?\? core/two"):
        evidence.record("count", ["false"])


def test_sources_that_change_during_the_run_are_not_recorded(root: Path) -> None:
    with pytest.raises(SystemExit, match="changed meanwhile"):
        evidence.record("count", ["sh", "-c", "echo 1 counted; echo 9 > core/one"])


def test_output_without_the_figure_is_not_recorded(root: Path) -> None:
    with pytest.raises(SystemExit, match="no line of the output matches"):
        evidence.record("count", ["echo", "none counted"])


def test_failure_leaves_no_figure(root: Path) -> None:
    assert evidence.record("count", ["false"]) == 1
    assert "12,345" not in (root / "page.md").read_text()


def test_without_a_request_nothing_is_recorded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECORD")
    assert evidence.record("never", ["true"]) == 0
    assert not (root / "evidence/never.json").exists()


def test_source_that_is_gone_is_named(root: Path) -> None:
    (root / "lock").unlink()
    with pytest.raises(SystemExit, match="lock names no file"):
        evidence.pages(write=False)
