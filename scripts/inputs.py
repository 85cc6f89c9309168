"""What a check reads: the files that its programs import or name, in any commit.

The inputs of a program are its file, the files that these import or name, and so on. A text that is
the path of a file or folder of the repository names it. `geomdp._core` stands for the Rust code.
Their hash leaves out comments, docstrings and layout, so that it is of what runs.
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
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: Rust code by crate; each has what it depends on.
RUST = {
    "core": ["rust/core/src/", "rust/core/Cargo.toml", "Cargo.lock", ".cargo/config.toml"],
    "binding": ["rust/core/src/", "rust/core/Cargo.toml", "Cargo.lock", ".cargo/config.toml",
                "rust/python/"],
}  # fmt: skip
STRINGS = r'"(?:\\.|[^"\\])*"|r(?P<h>#+)".*?"(?P=h)'
#: What does not run, by the end of a file's name.
LEFT_OUT = {
    "rs": rf"({STRINGS})|//[^\n]*|/\*.*?\*/|\s+",
    "v": r"(\"[^\"]*\")|\(\*.*?\*\)|\s+",
    "toml": r"()^\s*#[^\n]*\n|^\s*\n",
    "sh": r"()^\s*#(?!!)[^\n]*\n|^\s*\n",
}


def git(*arguments: str, **environment: str) -> str:
    run = ["git", *arguments]
    return subprocess.run(
        run, cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ | environment
    ).stdout


class Blobs:
    """The contents of files, by the hash that git gives them."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.git = subprocess.Popen(
            ["git", "cat-file", "--batch"], cwd=ROOT, stdin=pipe, stdout=pipe
        )

    def __call__(self, name: str) -> bytes:
        assert self.git.stdin and self.git.stdout
        self.git.stdin.write(f"{name}\n".encode())
        self.git.stdin.flush()
        size = int(self.git.stdout.readline().split()[2])
        return self.git.stdout.read(size + 1)[:-1]


@cache
def blob(name: str) -> bytes:
    return blobs()(name)


@cache
def blobs() -> Blobs:
    return Blobs()


class Code(NamedTuple):
    """What a file of Python has: names of modules, texts, and a hash of what runs."""

    imports: frozenset[tuple[int, str, str]]
    texts: frozenset[str]
    used: frozenset[str]
    paths: frozenset[str]
    hash: str


def path_of(node: ast.AST) -> str:
    """Return the path in `ROOT / "a" / "b"`, where the first is a constant of any name."""
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=str(part))):
            before = path_of(left)
            return f"{before}/{part}".strip("/") if before != "?" else "?"
        case ast.Name(id=name) if name.isupper():
            return ""
    return "?"


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the results of a function of contents between runs, as long as it does not change."""
    version = sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    file = ROOT / f"target/checks/{function.__name__}-{version}.pickle"
    found: dict[Any, Any] = pickle.loads(file.read_bytes()) if file.exists() else {}
    size = len(found)

    def save() -> None:
        if len(found) > size:
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps(found))
            new.replace(file)

    atexit.register(save)

    def wrapped(*key: str) -> Any:
        if key not in found:
            found[key] = function(*key)
        return found[key]

    return wrapped


@kept
def code(name: str) -> Code:
    tree = ast.parse(blob(name))
    imports, texts, used, paths, within = (set() for _ in range(5))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imports.update((0, each.name, "") for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                imports.update((level, module or "", each.name) for each in names)
            case ast.Constant(value=str(text)) if "\n" not in text:
                texts.update({text, *text.split()} if len(text) < 200 else ())
            case ast.BinOp(op=ast.Div()):
                paths.add(path_of(node))
                within.add(path_of(node.left))
            case ast.Attribute(value=ast.Name(id="geomdp"), attr=attr):
                used.add(attr)
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                match node.body:
                    case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                        node.body = rest or [ast.Pass()]
    return Code(
        frozenset(imports), frozenset(texts), frozenset(used), frozenset(paths - within),
        sha256(ast.dump(tree).encode()).hexdigest(),
    )  # fmt: skip


@kept
def hash_of(name: str, suffix: str) -> str:
    """Return a hash of what runs of a file."""
    if suffix == "py":
        try:
            return code(name).hash
        except SyntaxError:
            return name
    if suffix in LEFT_OUT:
        kept = re.sub(
            LEFT_OUT[suffix], lambda found: found[1] or " " * (suffix in "rs v"),
            blob(name).decode(), flags=re.DOTALL | re.MULTILINE,
        )  # fmt: skip
        # Layout around punctuation is not code either.
        return sha256(re.sub(r" +", " ", kept).encode()).hexdigest()
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
        self.reads: dict[str, list[str]] = {}
        if (table := "scripts/checks.toml") in self.files:
            self.reads = self.toml(table).get("reads", {})
        roots = self.toml("pyproject.toml")["tool"]["pytest"]["ini_options"]["pythonpath"]
        self.roots = ["python", *roots]
        self.reached: dict[str, frozenset[str]] = {}

    def toml(self, path: str) -> dict:  # type: ignore[type-arg]
        return tomllib.loads(blob(self.files[path]).decode())

    def below(self, path: str) -> set[str]:
        """Return the files that a path, a folder with its slash or a pattern names."""
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

    @cache  # noqa: B019 (few trees)
    def homes(self) -> dict[str, str]:
        """Return where the package finds its names as they are used."""
        for node in ast.parse(blob(self.files["python/geomdp/__init__.py"])).body:
            match node:
                case ast.Assign(targets=[ast.Name(id="_HOMES")], value=value):
                    return dict(ast.literal_eval(value))
        return {}

    def steps(self, path: str) -> set[str]:
        """Return what a file of Python imports or names: files, and `rust`."""
        read, found = code(self.files[path]), set[str]()
        for each in self.reads.get(path, ()):
            found |= {"rust"} if each == "rust" else self.below(each)

        def add(name: str) -> None:
            parts = name.split(".")
            for i in range(1, len(parts) + 1):
                if file := self.module(".".join(parts[:i])):
                    found.add(file)
            if name == "geomdp._core":
                found.add("rust")

        ours = path.startswith("python/")
        package = path.removeprefix("python/").split("/")[:-1]
        for level, module, name in read.imports:
            base = ".".join([*package[: len(package) - level + 1], *filter(None, [module])])
            base = base if level else module
            add(base)
            if name:
                add(f"{base}.{name}")
            if base == "geomdp" and name in self.homes():
                add(f"geomdp.{self.homes()[name]}")
        if not ours:
            for name in read.used:
                add(f"geomdp.{self.homes().get(name, name)}")
        for path_ in read.paths:
            found |= self.below(path_)
        for text in read.texts:
            if text in self.files and (text != "pyproject.toml"):
                found.add(text)
            elif text.rstrip("/") in self.folders and "/" in text:
                found |= self.below(text)
            elif re.fullmatch(r"[\w.]+", text) and "." in text and (file := self.module(text)):
                found.add(file)
            elif re.fullmatch(r"[\w.-]+\.\w+", text):
                beside = f"{Path(path).parent}/{text}"
                found.update({beside} & self.files.keys())
        return found

    def closure(self, starts: Iterable[str]) -> set[str]:
        """Return the inputs of programs: these files, what they import or name, and so on."""
        left, seen = list(starts), set[str]()
        while left:
            if (path := left.pop()) in seen:
                continue
            seen.add(path)
            if path == "rust":
                seen.update(file for each in RUST["binding"] for file in self.below(each))
            elif path.endswith(".py") and path in self.files:
                if path not in self.reached:
                    self.reached[path] = frozenset(self.steps(path))
                left += self.reached[path]
        return seen - {"rust"}

    def key(self, files: Iterable[str], *others: str) -> str:
        """Return a hash of what runs of these files."""
        parts = [*others]
        for path in sorted(files):
            parts.append(f"{path} {hash_of(self.files[path], path.rsplit('.', 1)[-1])}")
        return sha256("\n".join(parts).encode()).hexdigest()[:16]
