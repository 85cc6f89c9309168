"""Imports and metadata of the package."""

import ast
import doctest
import importlib
import importlib.metadata
import importlib.resources
import inspect
import itertools
import json
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from matplotlib import pyplot

import geomdp
from geomdp import tables
from modules import MODULES, PUBLIC, signature

PUBLIC_MODULES = [importlib.import_module(name) for name in PUBLIC if name != "geomdp.compat"]

#: Prints what has been imported after each module, which no other module of the package prepares.
IMPORTS = """
import json, sys
before, found = set(sys.modules), {}
for module in MODULES:
    for name in [name for name in sys.modules if name.partition(".")[0] == "geomdp"]:
        if name != "geomdp._core":  # Python keeps what is compiled.
            del sys.modules[name]
    __import__(module)
    # The package itself imports nothing before its first use.
    sys.modules["geomdp"].GeometricMechanism
    found[module] = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
print(json.dumps(found))
"""


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout


def test_import_needs_only_numpy() -> None:
    modules = sorted(
        {module.__name__ for module in PUBLIC_MODULES}
        - {"geomdp.compat.opendp", "geomdp.tables.polars", "geomdp.testing"}
    )
    found = json.loads(run(IMPORTS.replace("MODULES", repr(modules))))
    assert list(found) == modules
    for module, names in found.items():
        assert set(names) - sys.stdlib_module_names == {"geomdp", "numpy"}, module


def test_import_leaves_out_testing() -> None:
    assert run("import geomdp, sys; print('geomdp.testing' in sys.modules)") == "False\n"
    assert not hasattr(geomdp.GeometricMechanism, "release_not_private")


def test_metadata_requires_only_numpy() -> None:
    requirements = importlib.metadata.requires("geomdp")
    assert requirements is not None
    always = [line for line in requirements if "extra ==" not in line]
    assert [line.rstrip("0123456789.").rstrip("<>=! ") for line in always] == ["numpy"]


def conda_lines(project: dict[str, Any]) -> set[str]:
    """Return the lines of the conda recipe that repeat the metadata of the package."""
    [(command, function)] = project["scripts"].items()
    needed = {re.sub(r"(?=[<>=])", " ", line, count=1) for line in project["dependencies"]}
    return {f"      - {command} = {function}", *(f"    - {line}" for line in needed)}


def test_files_that_repeat_the_version_and_the_metadata_agree() -> None:
    root = Path(__file__).parents[2]
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    assert geomdp.__version__ == version
    assert f"version: {version}" in (root / "CITATION.cff").read_text().splitlines()
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert not {f'  version: "{version}"', *conda_lines(project)} - set(
        (root / "scripts/conda_recipe.yaml").read_text().splitlines()
    )
    reader = (root / "examples/readers/r/DESCRIPTION").read_text()
    assert f"Version: {version}" in reader.splitlines()
    released = re.findall(r"^## (\d.*?),", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == version


def private_members(source: str) -> tuple[set[str], set[str]]:
    """Return the private names that a file gives to members, and those that it reads of objects."""
    made, read = set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            made.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            made.add(node.value)  # in __slots__
        elif isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            (made if isinstance(node.ctx, ast.Store) or of in ("self", "cls") else read).add(
                node.attr
            )
    return made, read


def test_no_room_reads_a_private_member_of_another() -> None:
    """A member without an underscore is for users; with one, it is for its room."""
    root = Path(geomdp.__path__[0])
    rooms: dict[str, list[tuple[set[str], set[str]]]] = {}
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0]
        rooms.setdefault(room, []).append(private_members(path.read_text()))
    made = {room: set.union(*(each for each, _ in files)) for room, files in rooms.items()}
    read = {room: set.union(*(each for _, each in files)) for room, files in rooms.items()}
    own = set.union(*made.values())
    found = {(room, name) for room in rooms for name in (read[room] & own) - made[room]}
    assert not found


def test_a_private_member_of_another_file_is_noticed() -> None:
    made, read = private_members("class A:\n    __slots__ = ('_b',)\n    def _c(self): self._d = 1")
    assert made >= {"_b", "_c", "_d"}
    assert not read
    assert private_members("x._b + f()._c") == (set(), {"_b", "_c"})


def private_names(source: str) -> set[str]:
    """Return the names of private files that a file takes, one by one, whether by dots or not."""
    rooms, found = {}, set[str]()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                full = f"{node.module}.{each.name}"
                if full in MODULES:
                    rooms[each.asname or each.name] = full
                else:
                    found.add(full)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {f"{rooms[of]}.{node.attr}" for of in {node.value.id} & {*rooms}}
    return {name for name in found if name.startswith("geomdp.") and "._" in name}


def test_publishing_takes_few_private_names_of_the_mechanism() -> None:
    """What publishing needs is public, or on the ground on which both layers stand."""
    root = Path(geomdp.__path__[0])
    publishing = ("accounting", "cli", "compat", "tables")
    found = {
        name
        for room in publishing
        for path in (root / room).rglob("*.py")
        for name in private_names(path.read_text())
        if name.split(".")[1] not in (*publishing, "_ground")
    }
    assert "geomdp._inputs.columns.only" in found
    assert len(found) <= 60, found


def test_each_private_name_of_another_layer_is_counted() -> None:
    taken = "from geomdp._numerics import tails as t\nfrom geomdp._noise import Noise\nt.reach(1)"
    assert private_names(taken + "\nfrom geomdp import accuracy\naccuracy.bias") == {
        "geomdp._numerics.tails.reach",
        "geomdp._noise.Noise",
    }


def test_import_reads_no_metadata() -> None:
    code = "from geomdp.cli import main; main(['epsilon', '--accuracy', '5', '--alpha', '0.05'])"
    assert run(f"{code}; import sys; print('importlib.metadata' in sys.modules)")[-6:] == "False\n"


def test_type_files_are_installed() -> None:
    files = importlib.resources.files("geomdp")
    assert (files / "py.typed").is_file()
    assert (files / "_core.pyi").is_file()
    stub = ast.parse((files / "__init__.pyi").read_text())
    lines = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    names = [name.name for line in lines for name in line.names]
    assert sorted(names) == sorted([*geomdp.__all__, *geomdp._MODULES])


#: The features that decide which code runs, and those of each back end, fastest first.
DECIDING = {
    "x86_64": ["aes", "vaes", "avx2", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
    "aarch64": ["aes", "neon"],
}
BACKENDS = {
    "avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "avx2": {"avx2"},
    "neon": {"neon"},
    "portable": set[str](),
}
#: What computes a tape, the fastest first.
TAPES = {
    "vaes-512": {"aes", "vaes", "avx512f"},
    "vaes-256": {"aes", "vaes", "avx2"},
    "aes": {"aes"},
    "portable": set[str](),
}


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in DECIDING,
    reason="the features are compared with those that Linux reports",
)
def test_kernel_names_the_back_end_and_the_features_that_decide() -> None:
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    assert flags
    present = set(flags[1].replace("asimd", "neon").split())
    has, lacks = (
        " ".join(each for each in DECIDING[platform.machine()] if (each in present) == wanted)
        for wanted in (True, False)
    )
    name = next(name for name, needed in BACKENDS.items() if needed <= set(has.split()))
    tape = next(tape for tape, needed in TAPES.items() if needed <= set(has.split()))
    assert (
        geomdp.kernel() == f"{name}: tape by {tape}; has {has or 'none'}; lacks {lacks or 'none'}"
    )


def test_all_lists_every_public_name() -> None:
    assert sorted(set(geomdp.__all__)) == sorted(geomdp.__all__)
    modules = {name for name in vars(geomdp) if inspect.ismodule(getattr(geomdp, name))}
    public = {name for name in vars(geomdp) if not name.startswith("_")} - modules
    assert public == set(geomdp.__all__)
    parts = {module.__name__.split(".")[1] for module in PUBLIC_MODULES if module is not geomdp}
    assert all(name.startswith("_") or name in parts for name in modules)


def public_objects() -> Iterator[tuple[str, object]]:
    for module in PUBLIC_MODULES:
        yield module.__name__, module
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        ]
        for name in names:
            value = getattr(module, name)
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                bases = [base for base in value.__mro__ if base.__module__.startswith("geomdp")]
                for member, attribute in (pair for base in bases for pair in vars(base).items()):
                    # The class documents the fields of a dataclass.
                    is_field = inspect.ismemberdescriptor(attribute)
                    if not member.startswith("_") and not is_field:
                        yield (
                            f"{module.__name__}.{name}.{member}",
                            getattr(attribute, "__func__", attribute),
                        )


PUBLIC = dict(public_objects())


#: A docstring may leave out what another one says.
POINTER = re.compile(r"(?:[Aa]s in|those of)\s+:\w+:`([\w.]+)`(?:\s+and\s+:\w+:`([\w.]+)`)?")


def pointed_to(name: str, value: object) -> list[object]:
    """Return the objects to which the docstring of an object points."""
    found = []
    for target in itertools.chain(*POINTER.findall(inspect.getdoc(value) or "")):
        scopes = itertools.accumulate(name.split("."), lambda scope, part: f"{scope}.{part}")
        names = {f"{scope}.{target}" for scope in scopes} | {target}
        assert not target or names & PUBLIC.keys(), f"{name} points to {target}"
        found += [PUBLIC[each] for each in names & PUBLIC.keys()]
    return found


def check_untried_version(module: str, package: str, below: str) -> None:
    """Check that a module refuses a package from this version on, as its requirements do."""
    limit = f"<{below.removesuffix('.0')}"
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needs = [n for n in itertools.chain(*extras.values()) if re.match(rf"{package}\b", n)]
    assert needs
    assert all(need.endswith(limit) for need in needs)
    script = f"""if True:
        import importlib.metadata as metadata
        found = metadata.version
        metadata.version = lambda name: "{below}.1" if name == "{package}" else found(name)
        import geomdp.{module}
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, text=True
    )
    assert f"ImportError: {package} {below}.1 is not accepted" in done.stderr
    assert f"pip install '{package}<{below}'" in done.stderr


def test_opendp_with_untried_internals_raises() -> None:
    check_untried_version("compat.opendp", "opendp", "0.17")


def check_documentation(name: str, value: object) -> None:
    """Assert that a docstring is complete, with others that it points to and that point to none."""
    text = inspect.getdoc(value)
    assert text, name
    if not callable(value):
        return
    # The output of a plot is a picture, and plots share their parameters.
    if not name.startswith("geomdp.tables.plot."):
        shown = any(example.want for example in doctest.DocTestParser().get_examples(text))
        assert shown, f"{name} has no example with its output"
        pointers = [each for each in pointed_to(name, value) if POINTER.search(each.__doc__ or "")]
        assert not pointers, f"{name} points to a pointer"
    if inspect.isclass(value) and "Parameters\n" not in text:
        return  # Functions of the package make its instances.
    parameters = set(signature(value).parameters) - {"self", "cls"}
    texts = [text, *(inspect.getdoc(target) or "" for target in pointed_to(name, value))]
    listed = re.findall(
        r"^ *((?:\*{0,2}\w+, )*\*{0,2}\w+)(?: : .*)?\n +\S", "\n".join(texts), re.MULTILINE
    )
    missing = parameters - set(re.findall(r"\w+", " ".join(listed)))
    assert not missing, f"{name} does not document {missing}"


@pytest.mark.parametrize(("name", "value"), PUBLIC.items(), ids=PUBLIC)
def test_public_objects_are_documented(name: str, value: object) -> None:
    check_documentation(name, value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (">>> n = 1", "has no example"),
        (">>> 1\n1", "does not document {'n'}"),
        (">>> 1\n1\n\nAs in :func:`geomdp.unknown`.", "points to geomdp.unknown"),
        (">>> 1\n1\n\nAs in :func:`accuracy.accuracy_to_epsilon`.", "points to a pointer"),
    ],
)
def test_incomplete_documentation_is_noticed(text: str, error: str) -> None:
    def count(n: int) -> int:
        return n

    count.__doc__ = text
    with pytest.raises(AssertionError, match=error):
        check_documentation("geomdp.count", count)


@pytest.mark.parametrize(("name", "value"), PUBLIC.items(), ids=PUBLIC)
def test_signatures_name_types_briefly(name: str, value: object) -> None:
    """``help()`` prints types by their names in the source, instead of pages of unions."""
    if callable(value):
        given = inspect.signature(value)
        for parameter in given.parameters.values():
            assert len(str(parameter)) < 80, f"{parameter} of {name}"
        assert not re.search(r"numpy\.|typing\.|collections\.", str(given)), given


def test_certificate_fields_are_documented() -> None:
    documentation = inspect.getdoc(geomdp.Certificate)
    assert documentation is not None
    for field in geomdp.Certificate.__dataclass_fields__:
        assert field.startswith("_") or field in documentation


@pytest.mark.parametrize("kind", [tables.Design, tables.NoisyTable])
def test_members_are_grouped_by_what_people_look_for(kind: type) -> None:
    text = inspect.getdoc(kind)
    assert text is not None
    groups = re.findall(r"^\* (.*(?:\n  .*)*)", text, re.MULTILINE)
    grouped = re.findall(r"`(\w+)`", "\n".join(groups))
    assert sorted(grouped) == [name for name in dir(kind) if not name.startswith("_")]


class Finder(doctest.DocTestFinder):
    """Finds the examples of a class where it is written, whatever module it names for pickles."""

    def _from_module(self, module: ModuleType, value: Any) -> bool:
        if inspect.isclass(value):
            functions = filter(inspect.isfunction, vars(value).values())
            homes = {id(function.__globals__) for function in functions}
            return value.__module__ == module.__name__ or id(vars(module)) in homes
        return super()._from_module(module, value)


@pytest.mark.parametrize("name", [name for name in MODULES if name != "geomdp.__main__"])
def test_docstring_examples(name: str) -> None:
    # Each example works on its own.
    runner = doctest.DocTestRunner()
    for test in Finder(exclude_empty=True).find(importlib.import_module(name), name, globs={}):
        runner.run(test)
    failed, attempted = runner.summarize(verbose=False)
    pyplot.close("all")
    assert failed == 0
    # A package has those of its modules.
    assert attempted > 0 or "._" in name or hasattr(importlib.import_module(name), "__path__")


@pytest.mark.parametrize(
    ("module", "library", "needed"),
    [
        ("tables.polars", "polars", "'narwhals>=2.13' 'polars'"),
        ("tables.spark", "pyspark", "'narwhals>=2.13' 'pyarrow>=22' 'pyspark>=4,<4.4'"),
        (
            "tables.dask",
            "dask",
            "'dask[array,dataframe]<2027' 'distributed<2027' 'narwhals>=2.13' 'pyarrow>=22'",
        ),
        ("tables.ray", "ray", "'narwhals>=2.13' 'pyarrow>=22' 'ray[data]>=2.52'"),
        ("compat.opendp", "opendp", "'opendp>=0.14,<0.17'"),
    ],
)
def test_missing_library_error_names_what_to_install(
    module: str, library: str, needed: str
) -> None:
    """It works before the package is published, too."""
    code = f"""
import sys, pytest
sys.modules["{library}"] = None
with pytest.raises(ModuleNotFoundError) as error:
    import geomdp.{module}
print(*error.value.__notes__)
"""
    assert run(code).strip() == f"Needed here: pip install {needed}"


def test_no_message_names_the_unpublished_package() -> None:
    for path in Path(geomdp.__file__).parent.rglob("*.py"):
        assert "pip install geomdp" not in path.read_text()
        assert "pip install 'geomdp" not in path.read_text()
