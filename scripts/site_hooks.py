"""Hooks for mkdocs: formulas, notebooks, and links to files outside docs/.

Formulas use the syntax of code hosts, ``$`a^2`$`` and fenced ``math`` blocks. They become MathML,
which browsers draw without scripts. A file outside docs/ that a page links to becomes a page below
``project/``, so the same link works on the site and on a code host; the README is the first page.
Notebooks are shown with the outputs that `scripts/run_notebooks.py` wrote to dist/notebooks. The
sessions of the cookbook, the guides and the gallery run, and what they draw and write follows them.
Pictures have a version for dark pages. Pages show the state of the checks.
"""

import base64
import functools
import itertools
import json
import os
import posixpath
import re
import sys
import textwrap
import tomllib
import unittest.mock
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.extensions.toc import slugify
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from geomdp import cli
from geomdp.cli import _arguments

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import checks  # noqa: E402
import draw_pictures  # noqa: E402

LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)(?=[)#])")
PICTURE = re.compile(r"!\[([^\]]*)\]\((\S+)\.svg\)")
SESSIONS = re.compile(r"^```python\n(>>> .*?)^```\n", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^    \$ .*(?:\n+    .*)*", re.MULTILINE)
SESSION = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)
ROLE = re.compile(r":(?:attr|func|meth|class|mod):`~?([\w.]+)`")
#: The start of a line of output with three or more columns that is too long for a telephone.
ROW = re.compile(r'<span class="go">(?=[^<]{44})(?=[^<]*\S {2,}[^< ][^<]* {2,}[^< ])')
#: A file or a folder of the repository, and the section of a document.
PATH = re.compile(r"``((?:docs|tests|examples)/[\w./]+)``(,\s+sections?\s+(\d+))?")
#: Names that share a line of a section of parameters without a type.
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n +\S", re.MULTILINE)


# Formulas


NAMES = {"Pr", "cosh", "exp", "ln", "max", "min", "sinh", "tanh"}
MINUS, PRIMES = "\N{MINUS SIGN}", {"\N{PRIME}", "\N{DOUBLE PRIME}"}
RELATIONS = {"=", "<", ">", "≤", "≥", "∈"}


def tidy(parent: ET.Element) -> None:
    """Set attributes that the converter omits: spaces around names, and signs that begin a term."""
    bars = itertools.cycle(["prefix", "postfix"])
    for before, element, after in zip([None, *parent], parent, [*parent, None][1:], strict=False):
        if element.text == "|":
            element.set("form", next(bars))
        elif element.text == MINUS and before is not None and before.text == "(":
            element.set("form", "prefix")
        elif element.text in NAMES:
            free = before is not None and (before.tag != "mo" or before.text == ")")
            called = after is not None and after.text == "("
            spaces = {"lspace": "0.167em" if free else "0", "rspace": "0" if called else "0.167em"}
            element.tag, element.attrib = "mo", {"form": "prefix", **spaces}
        elif element.tag == "msup" and element[1].text in PRIMES:
            # The sign alone is a superscript.
            element.tag = "mrow"
            element[1].tag, element[1].attrib = "mo", {"lspace": "0", "rspace": "0"}
        tidy(element)


def formula(source: str, display: str = "inline") -> str:
    """Return a formula as MathML; an inline formula may break after each relation."""
    text = convert(source, display=display).replace(
        ' xmlns="http://www.w3.org/1998/Math/MathML"', ""
    )
    math = ET.fromstring(text)
    row = math[0]
    tidy(row)
    if display == "block":
        return ET.tostring(math, encoding="unicode")
    pieces: list[list[ET.Element]] = [[]]
    depth = 0
    for element in row:
        pieces[-1].append(element)
        depth += (element.text in {"(", "["}) - (element.text in {")", "]"})
        if not depth and element.text in RELATIONS:
            pieces.append([])
    shown = []
    for piece in pieces:
        math = ET.Element("math")
        ET.SubElement(math, "mrow").extend(piece)
        shown.append(ET.tostring(math, encoding="unicode"))
    return "<wbr>".join(shown)


class Inline(InlineProcessor):
    """An inline formula."""

    def handleMatch(  # type: ignore[override]  # noqa: N802
        self,
        m: re.Match[str],
        data: str,  # noqa: ARG002
    ) -> tuple[str, int, int]:
        """Return the formula with the punctuation that must stay with it, and its position."""
        first, wbr, last = formula(m[1]).rpartition("<wbr>")
        text = f'{first}{wbr}<span class="formula">{last}{m[2]}</span>'
        return self.md.htmlStash.store(text), m.start(), m.end()


class Formulas(Extension):
    """Inline formulas, handled before code, since they contain code."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (the name there)
        """Register the processor."""
        md.inlinePatterns.register(Inline(r"\$`([^`]+)`\$([,.;:)]*)", md), "formula", 200)


def block(source: str, *_: Any, **__: Any) -> str:
    """Return a display formula."""
    return formula(source, "block")


def on_config(config: MkDocsConfig) -> None:
    """Add formulas to Markdown, and the version and the repository to the header."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config.site_name = f"geomdp {version}"
    config.repo_url = project.get("urls", {}).get("Repository")
    config.repo_name = "Repository"
    config.markdown_extensions.append(Formulas())  # type: ignore[arg-type]
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": block}]


# Files outside of docs/


def origin(page: str) -> str:
    """Return the path in the repository of the source of a page."""
    if page == HOME:
        return "README.md"
    path = page.removeprefix("project/")
    if path == page:
        return f"docs/{page}"
    return path if (ROOT / path).is_file() else path.removesuffix(".md")


def target(page: str, link: str) -> str:
    """Return the page or other file of the site that a link on a page points to."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin(page)), link))
    if path == "README.md":
        return HOME
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"project/{path}" if path.endswith(".md") else f"project/{path}.md"


def shown(output: dict[str, Any]) -> str:
    """Return an output of a notebook's cell as Markdown."""
    data = output.get("data", output)
    if svg := "".join(data.get("image/svg+xml", "")):
        source = base64.b64encode(svg.encode()).decode()
        return f"![Plot drawn by the code above](data:image/svg+xml;base64,{source})"
    if html := "".join(data.get("text/html", "")):
        # The theme formats only tables without attributes.
        html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
        html = re.sub(r"<table[^>]*>", "<table>", html)
        return f'<div class="output">{html}</div>'
    text = "".join(data.get("text/plain") or data["text"])
    return f"````{{.text .output .no-copy}}\n{text}\n````"


def notebook(name: str) -> str:
    """Return a notebook that has run as Markdown."""
    parts = []
    for cell in json.loads((ROOT / "dist/notebooks" / name).read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        parts += map(shown, cell.get("outputs", []))
    link = f'*Run when this site was built:* <a href="{name}" download>download the notebook</a>.'
    return "\n\n".join([parts[0], link, *parts[1:]])


def text_of(path: Path) -> str:
    """Return the Markdown that shows a file."""
    if path.suffix == ".md":
        return path.read_text()
    language = {".py": "python", ".rs": "rust"}.get(path.suffix, "text")
    return f"# {path.name}\n\n```{language}\n{path.read_text()}\n```"


#: The README is the first page.
HOME = "index.md"
#: What follows each session of a page that runs, as Markdown.
FOLLOWING: dict[str, list[str]] = {}


def runs(page: File) -> bool:
    """Whether the sessions of a page run when the site is built."""
    return page.src_uri.startswith(("cookbook/", "guides/")) or page.src_uri == "gallery.md"


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the notebooks, pictures and their dark versions, and all files that pages link to."""

    def add(name: str, picture: str) -> None:
        light, dark = f"pictures/{name}.svg", f"pictures/{name}-dark.svg"
        if light not in files.src_uris:
            files.append(File.generated(config, light, content=picture))
        files.append(File.generated(config, dark, content=draw_pictures.dark(picture)))

    noise = (ROOT / "python/geomdp/tables/_publish/page/noise.js").read_text()
    files.append(File.generated(config, "javascripts/noise.js", content=noise))
    for path in sorted((ROOT / "docs/pictures").glob("*.svg")):
        add(path.stem, path.read_text())
    for name in draw_pictures.plot.__all__:
        add(f"plot_{name}", draw_pictures.example(name))
    for page in filter(runs, list(files.documentation_pages())):
        FOLLOWING[page.src_uri] = []
        stem = page.src_uri.removesuffix(".md").replace("/", "_")
        up = "../" * page.src_uri.count("/")
        sessions = SESSIONS.findall(page.content_string)
        for n, (drawn, written) in enumerate(draw_pictures.page(sessions)):
            names = [f"{stem}_{n}_{k}" for k in range(len(drawn))]
            for name, picture in zip(names, drawn, strict=True):
                add(name, picture)
            shown = [f"![Drawn by the code above]({up}pictures/{name}.svg)" for name in names]
            FOLLOWING[page.src_uri].append("\n\n".join([*shown, *written, ""]))
    for path in sorted((ROOT / "examples/notebooks").glob("*.ipynb")):
        page = f"project/{path.relative_to(ROOT)}"
        files.append(File.generated(config, page, content=path.read_text()))
        files.append(File.generated(config, f"{page}.md", content=notebook(path.name)))
    files.append(File.generated(config, HOME, content=(ROOT / "README.md").read_text()))
    waiting = list(files.documentation_pages())
    while waiting:
        source = waiting.pop()
        for link in LINK.findall(source.content_string):
            page = target(source.src_uri, link)
            path = ROOT / origin(page)
            if page.startswith("project/") and path.is_file() and page not in files.src_uris:
                file = File.generated(
                    config, page, content=text_of(path), inclusion=InclusionLevel.NOT_IN_NAV
                )
                files.append(file)
                waiting.append(file)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Redirect links to the pages for files, and set what the theme knows of a page.

    A block that begins with a prompt is a session, whose copy button leaves out the outputs.
    """
    here = page.file.src_uri
    if here in config.extra["wide"] or here.endswith(".ipynb.md"):
        page.meta["hide"] = ["toc"]
    page.meta["tags"] = config.extra["keywords"].get(here, [])
    following = iter(FOLLOWING.get(here, ()))
    if here in FOLLOWING:
        markdown = SESSIONS.sub(lambda m: f"{m[0]}\n{next(following)}\n", markdown)
    markdown = PICTURE.sub(both, markdown)
    if checks.MARKED.search(markdown):
        markdown = checks.filled(markdown)
    if here == "api/cli.md":
        markdown += commands()
    markdown = markdown.replace("```python\n>>> ", "```pycon\n>>> ")
    markdown = SHELL.sub(lambda m: f"```console\n{textwrap.dedent(m[0])}\n```", markdown)

    def lead(match: re.Match[str]) -> str:
        there = target(here, match[1])
        if there in files.src_uris:
            return posixpath.relpath(there, posixpath.dirname(here) or ".")
        return match[1]

    return LINK.sub(lead, markdown)


def both(match: re.Match[str]) -> str:
    """Return a picture and its dark version, of which the theme shows one."""
    alt, path = match.groups()
    return f"![{alt}]({path}.svg#only-light)![{alt}]({path}-dark.svg#only-dark)"


def commands() -> str:
    """Return the help of every command, as Markdown."""
    parser = _arguments.parser(cli._COMMANDS)
    [choices] = (each.choices for each in parser._actions if isinstance(each.choices, dict))
    shown = {"geomdp": parser} | {f"geomdp {name}": each for name, each in choices.items()}
    with unittest.mock.patch.dict(os.environ, COLUMNS="80"):  # Of the lines.
        texts = {name: each.format_help() for name, each in shown.items()}
    return "".join(f"\n\n## {name}\n\n```text\n{text}```" for name, text in texts.items())


def on_page_content(html: str, **_: Any) -> str:
    """Let names of tests break after their file, and mark the long rows of printed tables."""
    return ROW.sub('<span class="go row">', html.replace(".py::", ".py::<wbr>"))


def on_post_page(output: str, **_: Any) -> str:
    """Make the link to the repository a plain one, which does not ask its host for numbers."""
    return output.replace(' data-md-component="source"', "")


on_post_template = on_post_page  # for 404.html


# The API reference


class Docstrings(griffe.Extension):
    """Converts docstrings: references, paths, examples outside sections, types of parameters."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change the docstrings of a package before they are parsed."""
        documented = {obj.path for obj in walk(pkg) if obj.docstring is not None}
        # The page of a module shows what it exports under its public names.
        for module in (obj for obj in walk(pkg) if obj.is_module and "._" not in obj.path):
            for public in (module[str(name)] for name in module.exports or ()):
                members = (f"{public.path}.{name}" for name in public.all_members)
                documented |= {public.path, *members}
        for public in (pkg[str(name)] for name in pkg.exports or ()):
            # A class shows the parameters of its own constructor alone.
            if "__init__" in public.all_members:
                public.members.setdefault("__init__", public.all_members["__init__"])
        classes = [obj for obj in walk(pkg) if isinstance(obj, griffe.Class)]
        made = [cls for cls in classes if made_by_users(cls)]
        kept = {base.path for cls in made for base in (cls, *cls.mro())}
        for cls in classes:
            if cls.path not in kept:
                cls.members.pop("__init__", None)
        # The pictures are written in more files than one.
        plots = [getattr(draw_pictures.plot, name) for name in draw_pictures.plot.__all__]
        pictured = {f"{plot.__module__}.{plot.__name__}" for plot in plots}
        for obj in walk(pkg):
            if obj.docstring is not None:
                text, heading, rest = obj.docstring.value.partition("\nExamples\n---")
                text = SESSION.sub(r"```pycon\n\1\n```", text)
                text = re.sub(" +# doctest: .*", "", text)
                lead = functools.partial(cross_reference, obj, documented)
                text = PATH.sub(path_reference, text)
                obj.docstring.value = ROLE.sub(lead, text + heading + rest)
                if obj.path in pictured:
                    alt = f"Example of {obj.name}"
                    picture = f"![{alt}](../pictures/plot_{obj.name}.svg)"
                    obj.docstring.value += f"\n\n{PICTURE.sub(both, picture)}"
                give_types(obj)
            elif isinstance(obj, griffe.Attribute) and obj.value is not None:
                path = resolved(obj, str(obj.value))
                if path in documented and path != obj.path:
                    text = f"Another name of [`{obj.value}`][{path}]."
                    obj.docstring = griffe.Docstring(text, parent=obj)


def walk(obj: griffe.Object) -> Iterator[griffe.Object]:
    """Yield an object and all within it."""
    yield obj
    for member in obj.members.values():
        if isinstance(member, griffe.Object):
            yield from walk(member)


def made_by_users(cls: griffe.Class) -> bool:
    """Return whether a class describes its parameters; a dataclass describes its attributes."""
    init = cls.members.get("__init__")
    texts = [each.docstring.value for each in (cls, init) if each is not None and each.docstring]
    dataclass = any("dataclass" in str(each.value) for each in cls.decorators)
    return dataclass or any("Parameters\n---" in text for text in texts)


def give_types(obj: griffe.Object) -> None:
    """Give parameters that share a line each its own type and default, and types no parentheses."""
    assert obj.docstring is not None
    text = obj.docstring.value
    shared = {name for names in SHARED.findall(text) for name in names.split(", ")}
    own = obj.parameters if isinstance(obj, griffe.Function | griffe.Class) else {}
    for section in obj.docstring.parsed:
        for element in section.value if isinstance(section.value, list) else ():
            if section.kind is griffe.DocstringSectionKind.parameters and element.name in own:
                element.value = own[element.name].default
                if element.name in shared:
                    element.annotation = own[element.name].annotation
            annotation = getattr(element, "annotation", None)
            if isinstance(annotation, griffe.ExprTuple):
                annotation.implicit = str(annotation) not in text


def path_reference(match: re.Match[str]) -> str:
    """Return a link from a page of the reference to a page for a file or folder."""
    path, more, section = match.groups(default="")
    page = path.removeprefix("docs/") if path.startswith("docs/") else f"project/{path}/README.md"
    name = Path(path).stem.replace("_", " ").capitalize() + " ".join(more.split())
    if section:
        [heading] = re.findall(rf"^## ({section}\. .*)$", (ROOT / path).read_text(), re.MULTILINE)
        page += f"#{slugify(heading, '-')}"
    return f"[{name}](../{page})"


def resolved(obj: griffe.Object, name: str) -> str | None:
    """Return the full path of a name in the scope of an object."""
    try:
        return obj.resolve(name)
    except griffe.NameResolutionError:
        return name if name.startswith("geomdp.") else None


def cross_reference(obj: griffe.Object, documented: set[str], match: re.Match[str]) -> str:
    """Return a link to a name, or the name alone if it has no entry."""
    name = match[1]
    path = resolved(obj, name)
    return f"[`{name}`][{path}]" if path in documented else f"`{name}`"
