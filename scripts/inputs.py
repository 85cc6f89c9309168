"""What a check reads: the files that its programs import or name, in any commit.

The inputs of a program are its file, the files that these import or name, and so on. A text that is
the path of a file or folder of the repository names it, and `geomdp._core` stands for the Rust
code. Their hash leaves out comments, docstrings and layout, so that it is of what runs. grimp,
which checks our layers, sees neither tests nor texts nor other commits.
"""

import ast
import atexit
import os
import pickle
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: Rust code by crate; each has what it depends on.
CORE = ["rust/core/src/", "rust/core/Cargo.toml", "Cargo.lock", ".cargo/config.toml"]
RUST = {"rust:core": CORE, "rust:binding": [*CORE, "rust/python/"]}
#: What does not run, by the end of a file's name; strings stay.
LEFT_OUT = {
    "rs": r'("(?:\\.|[^"\\])*"|r(?P<h>#+)".*?"(?P=h))|//[^\n]*|/\*.*?\*/|\s+',
    "v": r"(\"[^\"]*\")|\(\*.*?\*\)|\s+",
    "toml": r"()^\s*#[^\n]*\n|^\s*\n",
    "sh": r"()^\s*#(?!!)[^\n]*\n|^\s*\n",
}


def git(*arguments: str, **environment: str) -> str:
    run = ["git", *arguments]
    return subprocess.run(
        run, cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ | environment
    ).stdout


@cache
def blobs() -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(["git", "cat-file", "--batch"], cwd=ROOT, stdin=pipe, stdout=pipe)


@cache
def blob(name: str) -> bytes:
    """Return the contents of a file, by the hash that git gives them."""
    batch = blobs()
    assert batch.stdin
    assert batch.stdout
    batch.stdin.write(f"{name}\n".encode())
    batch.stdin.flush()
    size = int(batch.stdout.readline().split()[2])
    return batch.stdout.read(size + 1)[:-1]


class Code(NamedTuple):
    """What a file of Python has: names of modules, texts, paths, and a hash of what runs."""

    imports: set[tuple[int, str, str]]
    texts: set[str]
    used: set[str]
    paths: set[str]
    hash: str


def kept(function: Callable[[str], Code]) -> Callable[[str], Code]:
    """Keep results of contents between runs, as long as this file does not change."""
    version = sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    file = ROOT / f"target/checks/{version}.pickle"
    found: dict[str, Code] = pickle.loads(file.read_bytes()) if file.exists() else {}
    size = len(found)

    def save() -> None:
        if len(found) > size:
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps(found))
            new.replace(file)

    def wrapped(name: str) -> Code:
        if name not in found:
            found[name] = function(name)
        return found[name]

    atexit.register(save)
    return wrapped


def path_of(node: ast.AST) -> str:
    """Return the path in `ROOT / "a" / "b"`, where the first is a constant of any name."""
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=str(part))):
            before = path_of(left)
            return f"{before}/{part}".strip("/") if before != "?" else "?"
        case ast.Name(id=name) if name.isupper():
            return ""
    return "?"


@kept
def code(name: str) -> Code:
    tree = ast.parse(blob(name))
    found, within = Code(set(), set(), set(), set(), ""), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.imports.update((0, each.name, "") for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                found.imports.update((level, module or "", each.name) for each in names)
            case ast.Constant(value=str(text)) if "\n" not in text and len(text) < 200:
                found.texts.update({text, *text.split()})
            case ast.BinOp(op=ast.Div()):
                found.paths.add(path_of(node))
                within.add(path_of(node.left))
            case ast.Attribute(value=ast.Name(id="geomdp"), attr=attr):
                found.used.add(attr)
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                match node.body:
                    case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                        node.body = rest or [ast.Pass()]
    runs = sha256(ast.dump(tree).encode()).hexdigest()
    return found._replace(paths=found.paths - within, hash=runs)


@cache
def hash_of(name: str, suffix: str) -> str:
    """Return a hash of what runs of a file."""
    if suffix == "py":
        try:
            return code(name).hash
        except SyntaxError:
            return name
    if suffix in LEFT_OUT:
        between = " " if suffix in "rs v" else ""
        left = re.sub(
            LEFT_OUT[suffix], lambda found: found[1] or between, blob(name).decode(),
            flags=re.DOTALL | re.MULTILINE,
        )  # fmt: skip
        return sha256(re.sub(r" +", " ", left).encode()).hexdigest()
    return name


class Tree:
    """The files of a commit, or of the working tree with files that git does not know yet."""

    def __init__(self, commit: str = "") -> None:
        if not commit:
            with tempfile.TemporaryDirectory() as folder:
                index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
                git("read-tree", "HEAD", **index)
                git("add", "--all", **index)
                commit = git("write-tree", **index).strip()
        self.files: dict[str, str] = {}
        for line in git("ls-tree", "-r", commit).splitlines():
            head, path = line.split("\t")
            self.files[path] = head.split()[2]
        self.folders = {str(parent) for path in self.files for parent in Path(path).parents}
        table = "scripts/checks.toml"
        self.reads = self.toml(table).get("reads", {}) if table in self.files else {}
        roots = self.toml("pyproject.toml")["tool"]["pytest"]["ini_options"]["pythonpath"]
        self.roots = ["python", *roots]
        self.reached: dict[str, set[str]] = {}

    def toml(self, path: str) -> dict[str, Any]:
        return tomllib.loads(blob(self.files[path]).decode())

    def below(self, path: str) -> set[str]:
        """Return the files that a path, a folder with its slash, a pattern or a crate names."""
        if path in RUST:
            return {file for each in RUST[path] for file in self.below(each)}
        if path in self.files:
            return {path}
        if "*" in path:
            pattern = re.escape(path).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            return {each for each in self.files if re.fullmatch(pattern, each)}
        return {each for each in self.files if each.startswith(path.rstrip("/") + "/")}

    def module(self, name: str) -> str | None:
        for root in self.roots:
            stem = ("" if root == "." else root + "/") + name.replace(".", "/")
            for path in (f"{stem}.py", f"{stem}/__init__.py"):
                if path in self.files:
                    return path
        return None

    @cached_property
    def homes(self) -> dict[str, str]:
        """Return where the package finds its names as they are used."""
        for node in ast.parse(blob(self.files["python/geomdp/__init__.py"])).body:
            match node:
                case ast.Assign(targets=[ast.Name(id="_HOMES")], value=value):
                    return dict(ast.literal_eval(value))
        return {}

    def steps(self, path: str) -> set[str]:
        """Return the files that a file of Python imports or names."""
        read, found = code(self.files[path]), set[str]()
        for each in self.reads.get(path, ()):
            found |= self.below(each)

        def add(name: str) -> None:
            parts = name.split(".")
            for i in range(1, len(parts) + 1):
                found.update(filter(None, [self.module(".".join(parts[:i]))]))
            if name == "geomdp._core":
                found.update(self.below("rust:binding"))

        package = path.removeprefix("python/").split("/")[:-1]
        for level, module, name in read.imports:
            above = package[: len(package) - level + 1] if level else []
            base = ".".join([*above, *filter(None, [module])])
            add(base)
            if name:
                add(f"{base}.{name}")
            if base == "geomdp" and name in self.homes:
                add(f"geomdp.{self.homes[name]}")
        if not path.startswith("python/"):
            for name in read.used:
                add(f"geomdp.{self.homes.get(name, name)}")
        for each in read.paths:
            found |= self.below(each)
        for text in read.texts:
            if text in self.files and text != "pyproject.toml":
                found.add(text)
            elif text.rstrip("/") in self.folders and "/" in text:
                found |= self.below(text)
            elif re.fullmatch(r"[\w.]+", text) and "." in text and (file := self.module(text)):
                found.add(file)
            elif re.fullmatch(r"[\w.-]+\.\w+", text):
                found.update({f"{Path(path).parent}/{text}"} & self.files.keys())
        return found

    def closure(self, starts: Iterable[str]) -> set[str]:
        """Return the inputs of programs: these files, what they import or name, and so on."""
        left, seen = list(starts), set[str]()
        while left:
            if (path := left.pop()) in seen:
                continue
            seen.add(path)
            if path.endswith(".py"):
                if path not in self.reached:
                    self.reached[path] = self.steps(path)
                left += self.reached[path]
        return seen

    def key(self, files: Iterable[str], *others: str) -> str:
        """Return a hash of what runs of these files."""
        parts = [*others]
        for path in sorted(files):
            parts.append(f"{path} {hash_of(self.files[path], path.rsplit('.', 1)[-1])}")
        return sha256("\n".join(parts).encode()).hexdigest()[:16]


def seed() -> int:
    """Return a number that the commit gives: it chooses what a change checks in turn."""
    return int(git("rev-parse", "HEAD")[:7], 16)


def base() -> Tree | None:
    """Return main where this change began, or BASE; None on main itself, and for BASE=all.

    What landed last is not known there: a clone of main has no other name for the commit before.
    """
    for name in [os.environ["BASE"]] if os.environ.get("BASE") else ["origin/main", "main"]:
        try:
            found = git("merge-base", "HEAD", name).strip()
        except subprocess.CalledProcessError:
            continue
        main = Tree(found)
        is_main = git("rev-parse", "HEAD").strip() == found and main.files == Tree().files
        return None if is_main and name != "HEAD" else main
    return None
