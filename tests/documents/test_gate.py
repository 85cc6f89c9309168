"""Faults, programs that are installed, and files that commands name."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plant_faults
import pytest

import conftest

ROOT = plant_faults.ROOT


def test_places_of_faults_and_their_tests_exist() -> None:
    found, lost = plant_faults.placed()
    assert lost == []  # `scripts/plant_faults.py --places` says so too
    assert len({fault.name for fault in found}) == len(found) > 300
    tests = {fault.test.split("::")[0].split()[0] for fault in found}
    assert [test for test in tests if test[0] != "-" and not (ROOT / test).is_file()] == []
    # A fault stands beside its test.
    for path in (ROOT / "tests").glob("*/faults.toml"):
        beside = re.findall(r'^\["tests/(\w+)/', path.read_text(), re.MULTILINE)
        assert {*beside} <= {path.parent.name}


def test_functions_of_tests_of_faults_exist() -> None:
    """A test that has another name now would end the run of its fault."""
    for fault in plant_faults.faults():
        if plant_faults.by_pytest(fault.test) and "::" in fault.test:
            file, *names = fault.test.split("[")[0].split("::")
            # A class may have its tests from a module beside it.
            beside = {*(ROOT / file).parent.glob("*.py")} - {*(ROOT / file).parent.glob("test_*")}
            places = [ROOT / file, *(beside if len(names) > 1 else ())]
            found = (re.search(rf"\b(def|class) {names[-1]}\b", p.read_text()) for p in places)
            assert any(found), fault


@pytest.mark.parametrize(("body", "word"), [("x = 1", "MISSED"), ("x = 2", "caught"),
                                            ("import os; os.abort()", "caught")])  # fmt: skip
def test_a_forked_fault_is_caught_only_by_a_failure(
    body: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of nothing is missed, and what ends a process passes without the fault."""
    (tmp_path / "a_test.py").write_text(
        "def test_x():\n    import planted\n    assert planted.x == 1\n"
    )
    program = (
        "import sys; from pathlib import Path; import plant_faults as pf\n"
        f"site = Path({str(tmp_path)!r})\n"
        "pf.site_of = lambda number: site\n"
        "(site / 'planted.py').write_text('x = 1\\n')\n"
        f"fault = pf.Fault('f', 'python/planted.py', 'x = 1', {body!r}, str(site / 'a_test.py'))\n"
        "pf.WORKERS = 1\n"
        "print([word for _, word in pf.forks([fault], float('inf'))])\n"
    )
    run = [sys.executable, "-c", program]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{[word]}\n", done.stderr


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("pass", None),
        ("assert False", "test_it.py::test_it"),
        # The tests of damaged arrays crashed so, and ended the run of all faults.
        ("import os; os.abort()", "./test_it.py"),
        ("import os; os._exit(5)", plant_faults.NotRunError),
    ],
)
def test_crash_is_a_failure_of_a_test(body: str, found: Any, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    if found is plant_faults.NotRunError:
        with pytest.raises(found):
            plant_faults.failing("./test_it.py", done)
    else:
        assert plant_faults.failing("./test_it.py", done) == found


def test_fault_waits_for_a_processor_that_runs_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CI once ran on a processor without AVX-512, whose code no fault can break there."""
    needed = {fault.name: fault.needs for fault in plant_faults.faults() if fault.needs}
    named = set(re.findall(r'"(\w+)"', (ROOT / "rust/core/src/draw/simd.rs").read_text()))
    assert {name for needs in needed.values() for name in needs.split()} <= named
    script = (ROOT / "scripts/constant_time.sh").read_text()
    looked_for = re.findall(r"grep -qw (\w+) /proc/cpuinfo", script)
    [(waiting, needs)] = [
        (fault.name, fault.needs) for fault in plant_faults.faults() if fault.test.endswith(" msan")
    ]
    assert [needs] == looked_for

    placed = plant_faults.faults()
    # The second of these words' faults is in the same code, and its test runs anywhere.
    monkeypatch.setattr(plant_faults, "plant", lambda tree: None)
    words = {True: "MISSED", False: "caught"}
    monkeypatch.setattr(plant_faults, "catches", lambda f, end: (f, words[f.name == waiting]))
    monkeypatch.setattr(plant_faults, "of_the_change", lambda among: (among, []))
    monkeypatch.setattr(plant_faults, "placed", lambda: (placed, []))
    for has, status in [("aes avx2", 0), ("aes avx2 avx512dq", 1)]:
        kernel = f"its name: tape by aes; has {has}; lacks what it lacks"
        monkeypatch.setattr(plant_faults, "installed", lambda expression, kernel=kernel: kernel)
        assert plant_faults.main(["--gate", "1", waiting]) == status
    shown = re.sub(r" *(caught|MISSED|left) .*\n", "", capsys.readouterr().out)
    few, all_ = shown.split("1 of 1 faults caught\n")[1].split("\n", 1)
    assert few == f"not planted, as this processor lacks avx512dq: {waiting}"
    assert all_ == "1 of 2 faults caught\n"


@pytest.mark.parametrize("given", [{}, {"CI": "true"}, {"INSTALL": "1"}])
def test_programs_are_installed_only_under_ci_or_on_request(
    given: dict[str, str], tmp_path: Path
) -> None:
    for name in ("apt-get", "cargo"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> "$0.log"\n')
        (tmp_path / name).chmod(0o755)
    rest = {name: value for name, value in os.environ.items() if name not in {"CI", "INSTALL"}}
    environment = {**rest, **given, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def install(*arguments: str) -> subprocess.CompletedProcess[str]:
        run = ["bash", str(ROOT / "scripts/install.sh"), *arguments]
        return subprocess.run(run, env=environment, capture_output=True, text=True, check=False)

    assert install("program", "bash").returncode == 0
    assert list(tmp_path.glob("*.log")) == []
    for arguments, called, package in [
        (("program", "no-such", "its-package"), "apt-get", "Debian package its-package"),
        (("crate", "no-such-crate"), "cargo", "crate no-such-crate"),
    ]:
        done = install(*arguments)
        assert done.returncode == (0 if given else 1)
        assert (tmp_path / f"{called}.log").exists() == bool(given)
        assert done.stderr.count("\n") == (0 if given else 1)
        assert given or package in done.stderr


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_only_the_script_installs_programs_and_demo_and_test_need_none() -> None:
    def recipes(*targets: str) -> str:
        run = ["make", "--dry-run", "--always-make", *targets]
        rest = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(run, cwd=ROOT, env=rest, capture_output=True, text=True, check=True)
        return done.stdout

    assert "install.sh program" in recipes("proof")
    assert "install.sh" not in recipes("demo", "test")
    others = [ROOT / "Makefile", *(ROOT / "scripts").glob("*.sh")]
    calls = ("apt-get install", "cargo install")
    assert [file.name for file in others if any(call in file.read_text() for call in calls)] == [
        "install.sh"
    ]


def test_each_arrow_of_the_picture_has_a_command_and_a_fault_that_it_catches() -> None:
    text = (ROOT / "proofs/README.md").read_text()
    picture = re.findall(r"[├└]─ ([\w ]+?) ─*▶", text)
    rows = re.findall(r"^\| ([\w ]+) \| `make (\w+)` \| (.+) \|$", text, re.MULTILINE)
    assert len(picture) > 15
    assert picture == [arrow for arrow, _, _ in rows]
    makefile = (ROOT / "Makefile").read_text()

    def recipe(target: str) -> str:
        found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert found, target
        return found[1]

    tests = {fault.name: fault.test for fault in plant_faults.faults()}
    for _, command, fault in rows:
        called = recipe(command)
        # A command may call others, or a script that calls the next one.
        called += "".join(map(recipe, re.findall(r"\btest-\w+", called)))
        called += "".join(
            (ROOT / each).read_text() for each in re.findall(r"scripts/\w+\.sh", called)
        )
        test = tests[fault]
        program = "pytest" if plant_faults.by_pytest(test) else test.split()[0]
        assert ("cargo test" if program.startswith("--") else program) in called, fault


def test_files_that_commands_name_exist() -> None:
    """A night's script once named a test that had another name by then."""
    commands = [ROOT / "Makefile", ROOT / ".ci/run", *ROOT.glob("scripts/*.sh")]
    rooms = "benches|evidence|examples|proofs|rust|scripts|tests"
    paths = re.compile(rf"(?<![\w/.])(?:{rooms})/[\w./-]+\.(?:c|csv|json|md|py|rs|sh|toml|v)\b")
    named = {(each.name, name) for each in commands for name in paths.findall(each.read_text())}
    assert len(named) > 30
    assert not {(each, name) for each, name in named if not (ROOT / name).exists()}


@dataclass(frozen=True)
class Case:
    nodeid: str


def by_day(items: list[Case]) -> list[Case]:
    """Return the cases that run, of which those that do not are told."""
    kept, left_out = items.copy(), []
    hook = SimpleNamespace(pytest_deselected=lambda **told: left_out.extend(told["items"]))
    conftest.pytest_collection_modifyitems(kept, SimpleNamespace(hook=hook))
    assert kept == [item for item in items if item not in left_out]
    return kept


@pytest.mark.parametrize("turn", ["", "a", "b"])
def test_a_third_of_many_cases_runs_by_day_and_all_of_few(
    turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "TURN", turn)
    monkeypatch.setattr(conftest, "WHOLE", ["tests/b.py"])
    sizes = {"tests/a.py::few": 7, "tests/a.py::many": 8, "tests/a.py::of": 40, "tests/b.py::x": 40}
    items = [Case(f"{test}[{n}]") for test, size in sizes.items() for n in range(size)]
    found = Counter(item.nodeid.split("[")[0] for item in by_day([*items, Case("tests/a.py::one")]))
    thirds = {"tests/a.py::many": 3, "tests/a.py::of": 14} if turn else {}
    assert found == sizes | {"tests/a.py::one": 1} | thirds


def test_each_case_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "WHOLE", [])
    ran = Counter[Case]()
    for turn in range(200):
        monkeypatch.setattr(conftest, "TURN", str(turn))
        ran.update(by_day([Case(f"tests/a.py::many[{n}]") for n in range(9)]))
    assert len(ran) == 9
    assert min(ran.values()) > 40  # of 67 or so; turns are always the same
