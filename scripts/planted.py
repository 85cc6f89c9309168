"""Plant faults in the Python code of the package, each in a child that is forked for it.

A worker has the libraries loaded, and one copy of the package. For each file of tests it forks a
session, which collects the tests; the session forks a child for each fault. Where only functions
change, the child puts the changed code into the functions that are loaded (`hot`), and runs the
tests. Where more changes, or no test fails so, a child of the worker imports the changed file and
the tests anew (`cold`). Processes that a test starts read the changed file in both cases.
"""

import ast
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2
#: Loaded before a worker forks; none of them starts threads when it is loaded.
LIBRARIES = [
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "pyarrow.parquet",
    "duckdb",
    "pytest",
    "hypothesis",
    "scipy.stats",
    "scipy.optimize",
    "mpmath",
    "narwhals",
    "matplotlib.pyplot",
    "_pytest.main",
]
#: Seconds of a child.
HOT, COLD = 25, 600


@dataclass(frozen=True)
class Planted:
    """A changed file, the tests that must fail for it, and what they did."""

    name: str
    file: str
    text: str
    test: str
    #: The tests that run, if not all of `test`.
    items: tuple[str, ...] = ()
    outcome: str = ""
    by: str = ""
    how: str = ""
    seconds: float = 0.0


def parts(text: str) -> tuple[str, dict[str, str]]:
    """Return the code of a module besides its functions, and that of each outermost function."""
    functions: dict[str, str] = {}

    def walk(body: Sequence[ast.stmt], prefix: str) -> list[str]:
        rest = []
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                head = [ast.dump(part) for part in (each.args, *each.decorator_list)]
                rest.append(f"def {each.name} {head}")
                functions[prefix + each.name] = functions.get(prefix + each.name, "") + ast.dump(
                    each
                )
            elif isinstance(each, ast.ClassDef):
                head = [
                    ast.dump(part) for part in (*each.bases, *each.keywords, *each.decorator_list)
                ]
                rest += [f"class {each.name} {head}", *walk(each.body, f"{prefix}{each.name}.")]
            else:
                rest.append(ast.dump(each))
        return rest

    return "\n".join(walk(ast.parse(text).body, "")), functions


def changed_functions(before: str, after: str) -> list[str] | None:
    """Return the outermost functions that differ, or None if more than functions does."""
    (rest, old), (other, new) = parts(before), parts(after)
    if rest != other or old.keys() != new.keys():
        return None
    return [name for name in old if old[name] != new[name]]


def code_of(code: CodeType) -> dict[str, CodeType]:
    """Return the code of all functions by qualified name."""
    found = {code.co_qualname: code}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= code_of(each)
    return found


class Site:
    """A copy of the package, in which files change."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.changes = folder, 0
        shutil.rmtree(folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "python/geomdp", folder / "geomdp", ignore=ignored)
        site = next((ROOT / ".venv").glob("lib/*/site-packages/geomdp/_core*.so"))
        shutil.copy(site, folder / "geomdp")

    def write(self, file: str, text: str) -> None:
        """Change a file, with a time of its own, so that no bytecode of another text is used."""
        path = self.folder / file.removeprefix("python/")
        path.write_text(text)
        self.changes += 1
        os.utime(path, (1, 1_000_000_000 + os.getpid() * 1000 + self.changes))


def forked(run: Callable[[], Any], seconds: float) -> tuple[Any, str]:
    """Return what a forked child returns, as JSON; or None, and how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            os.close(reader)
            os.write(writer, json.dumps(run()).encode())
            code = 0
        except BaseException as error:
            os.write(writer, json.dumps({"error": repr(error)}).encode())
        finally:
            os._exit(code)
    os.close(writer)
    data, end, how = b"", time.monotonic() + seconds, ""
    while True:
        if not select.select([reader], [], [], max(0, end - time.monotonic()))[0]:
            how = "time"
            break
        if not (part := os.read(reader, 1 << 16)):
            break
        data += part
    os.close(reader)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitpid(child, 0)[1]
    if data and not how:
        found = json.loads(data)
        if isinstance(found, dict):
            raise RuntimeError(found["error"])
        return found, ""
    return None, how or f"signal {os.waitstatus_to_exitcode(status)}"


def quiet() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


class Failures:
    """A plugin that keeps the first failure, and hypothesis from shrinking and from its database."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("planted", deadline=None, database=None, phases=phases)
        settings.load_profile("planted")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid or "collection")


OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore:Module already"]


def cold(site: Site, fault: Planted) -> Planted:
    """Import all anew."""

    def run() -> Any:
        import pytest

        quiet()
        failures = Failures()
        # A file may have other tests with a fault than without.
        tests = [fault.test.split("::")[0]] if fault.items else [fault.test]
        code = int(pytest.main([*OPTIONS, *tests], plugins=[failures]))
        return code, failures.failed[:1]

    start = time.monotonic()
    found, how = forked(run, COLD)
    code, by = found or (-1, [how])
    outcome = {0: "passed", 1: "caught", 2: "caught", -1: "caught"}.get(code, f"not run: {code}")
    if code == 2 and not by:
        outcome = "not run"
    seconds = time.monotonic() - start + fault.seconds
    return replace(fault, outcome=outcome, by="".join(by), how="cold", seconds=seconds)


class Session:
    """A plugin that forks a child for each fault, once the tests are collected."""

    def __init__(self, site: Site, faults: list[Planted], done: Callable[[Planted], None]) -> None:
        self.site, self.faults, self.done = site, faults, done

    def pytest_runtestloop(self, session: Any) -> bool:
        for wrapper in [
            each for each in gc.get_objects() if type(each) is functools._lru_cache_wrapper
        ]:
            if str(getattr(wrapper, "__module__", "")).startswith("geomdp"):
                wrapper.cache_clear()
        functions = defaultdict(list)
        for each in gc.get_objects():
            if type(each) is FunctionType and str(self.site.folder) in each.__code__.co_filename:
                functions[each.__code__.co_filename, each.__code__.co_qualname].append(each)
        gc.freeze()
        for fault in self.faults:
            self.done(self.plant(session.items, functions, fault))
        return True

    def plant(self, items: list[Any], functions: Any, fault: Planted) -> Planted:
        before = (ROOT / fault.file).read_text()
        names = changed_functions(before, fault.text)
        if not names:
            return replace(fault, outcome="cold")
        path = str(self.site.folder / fault.file.removeprefix("python/"))
        codes = code_of(compile(fault.text, path, "exec"))
        chosen = [
            item
            for item in items
            if (item.nodeid + "::").startswith(fault.test + "::")
            or item.nodeid.startswith(fault.test + "[")
        ]
        if fault.items:
            wanted = {name: place for place, name in enumerate(fault.items)}
            chosen = [item for item in chosen if item.nodeid in wanted]
            chosen.sort(key=lambda item: wanted[item.nodeid])
        for name in names:
            found = functions.get((path, name), [])
            if not found or any(
                each.__code__.co_freevars != codes[name].co_freevars for each in found
            ):
                return replace(fault, outcome="cold")
        self.site.write(fault.file, fault.text)

        def run() -> Any:
            from _pytest.runner import runtestprotocol

            quiet()
            for name in names:
                for each in functions[path, name]:
                    each.__code__ = codes[name]
            for item, after in zip(chosen, [*chosen[1:], None], strict=True):
                if any(each.failed for each in runtestprotocol(item, log=False, nextitem=after)):
                    return item.nodeid
            return ""

        start = time.monotonic()
        by, how = forked(run, HOT)
        self.site.write(fault.file, before)
        seconds = time.monotonic() - start
        # What did not fail, or ended in another way, is tried in the other way.
        outcome = "caught" if by else "passed" if how == "" else "cold"
        return replace(fault, outcome=outcome, by=by or how, how="hot", seconds=seconds)


def session(site: Site, faults: list[Planted]) -> list[Planted]:
    """Return what one file of tests says of these faults."""
    kept = site.folder.parent / "session"
    kept.write_text("")

    def done(fault: Planted) -> None:
        # A session that ends early keeps what it found.
        with kept.open("a") as file:
            file.write(json.dumps(asdict(replace(fault, text="", items=()))) + "\n")

    def run() -> Any:
        import pytest

        quiet()
        tests = {fault.test.split("::")[0] for fault in faults}
        return int(
            pytest.main([*OPTIONS, *tests], plugins=[Failures(), Session(site, faults, done)])
        )

    forked(run, (HOT + 5) * len(faults) + 60)
    of_name = {fault.name: fault for fault in faults}
    found = []
    for line in kept.read_text().splitlines():
        read = json.loads(line)
        whole = of_name[read["name"]]
        found.append(Planted(**read | {"text": whole.text, "items": whole.items}))
    seen = {fault.name for fault in found}
    return found + [replace(fault, outcome="cold") for fault in faults if fault.name not in seen]


class Runs:
    """A plugin that keeps which functions of the package each test runs, and its seconds."""

    def __init__(self, site: Site, done: Callable[[str, float, list[str]], None]) -> None:
        self.site, self.done = str(site.folder) + "/", done

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        seen: set[CodeType] = set()

        def note(frame: Any, event: str, argument: Any) -> None:
            if event == "call":
                seen.add(frame.f_code)

        start = time.monotonic()
        threading.setprofile(note)
        sys.setprofile(note)
        runtestprotocol(item, log=False, nextitem=nextitem)
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        ours = {
            f"python/{code.co_filename.removeprefix(self.site)}:{code.co_qualname.split('.<')[0]}"
            for code in seen
            if code.co_filename.startswith(self.site)
        }
        self.done(item.nodeid, time.monotonic() - start, sorted(ours))
        return True


def runs(tests: Sequence[str]) -> dict[str, Any]:
    """Return for each of these files its tests, each with its seconds and functions."""
    found = {}
    for name in tests:
        reader, writer = os.pipe()

        def run(name: str = name, writer: int = writer) -> Any:
            site = prepare(0)
            kept: dict[str, Any] = {}

            def done(test: str, seconds: float, functions: list[str]) -> None:
                kept[test] = [round(seconds, 3), functions]

            import pytest

            quiet()
            pytest.main([*OPTIONS[:1], *OPTIONS[2:], name], plugins=[Failures(), Runs(site, done)])
            return [kept]

        found[name] = forked(run, 1200)[0][0]
    return found


def prepare(number: int) -> Site:
    folder = Path(os.environ.get("PLANTED", ROOT / "target/planted")) / str(number)
    site = Site(folder / "site")
    os.environ |= {"PYTHONPATH": str(site.folder), "COLUMNS": "1000", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("TURN", None)  # all cases
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    outside = [p for p in sys.path if Path(p or ".").resolve() != ROOT / "scripts"]
    sys.path[:] = [str(site.folder), *outside]
    os.chdir(ROOT)
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "geomdp" not in sys.modules
    return site


def worker(number: int, jobs: list[list[Planted]], queue: int, out: int) -> None:
    site = prepare(number)
    while place := os.read(queue, 4):
        for fault in session(site, jobs[int(place)]):
            final = fault
            if fault.outcome != "caught" and not fault.items:
                site.write(fault.file, fault.text)
                final = cold(site, fault)
                site.write(fault.file, (ROOT / fault.file).read_text())
            os.write(out, json.dumps(asdict(replace(final, text="", items=()))).encode() + b"\n")


def plant(
    faults: Iterable[Planted],
    show: Callable[[Planted], None] = lambda fault: None,
    split: bool = False,
) -> list[Planted]:
    """Return the faults with what their tests did, in any order; if `split`, one file on all workers."""
    groups: dict[str, list[Planted]] = defaultdict(list)
    for fault in faults:
        groups[fault.test.split("::")[0]].append(fault)
    jobs = sorted(groups.values(), key=len, reverse=True)
    if split:
        jobs = [part for job in jobs for i in range(WORKERS) if (part := job[i::WORKERS])]
    queue, fill = os.pipe()
    os.write(fill, b"".join(b"%4d" % place for place in range(len(jobs))))
    os.close(fill)
    reader, writer = os.pipe()
    children = []
    for number in range(min(WORKERS, len(jobs))):
        if not (child := os.fork()):
            code = 1
            try:
                os.close(reader)
                worker(number, jobs, queue, writer)
                code = 0
            except BaseException as error:
                sys.__stderr__.write(f"worker: {error!r}\n")
            finally:
                os._exit(code)
        children.append(child)
    os.close(writer)
    os.close(queue)
    found = []
    with os.fdopen(reader) as lines:
        for line in lines:
            read = json.loads(line)
            found.append(Planted(**read | {"items": tuple(read["items"])}))
            show(found[-1])
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        sys.exit("a worker ended early")
    return found
