"""The site's sources, as far as that needs no mkdocs: `make site` builds it and looks at it."""

import json
import re
from pathlib import Path

import pytest

from test_documents import FENCED, run
from test_import import PUBLIC_MODULES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
#: What the site shows, from the end of its settings.
NAV = re.findall(r"^ +- (?:.+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


def test_every_page_is_in_the_nav_once() -> None:
    assert sorted(page for page in NAV if not page.startswith("project/")) == PAGES


def test_every_notebook_is_in_the_nav() -> None:
    shown = {page for page in NAV if page.startswith("project/")}
    assert shown == {f"project/{path.relative_to(ROOT)}.md" for path in NOTEBOOKS}


def members(page: Path) -> list[str]:
    """Return the modules whose public names a page has, all of each."""
    text = page.read_text()
    assert "members" not in text, "a page shows all names of a module"
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


def test_every_public_module_is_in_the_reference_once() -> None:
    shown = [module for page in sorted((DOCS / "api").glob("*.md")) for module in members(page)]
    assert len(set(shown)) == len(shown)
    files = {f"geomdp.{path.stem}" for path in (ROOT / "python/geomdp").glob("[!_]*.py")}
    assert files | {module.__name__ for module in PUBLIC_MODULES} == set(shown)
    for name in shown:
        path = ROOT / "python" / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_clean_and_ends_in_assertions(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    last = "".join(notebook["cells"][-1]["source"])
    assert len(re.findall("^assert ", last, re.MULTILINE)) >= 3


def test_notebooks_are_found() -> None:
    assert {"berkeley", "histogram"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize(
    ("page", "examples"), [("index.md", 4), ("choosing_epsilon.md", 7), ("bounds.md", 8)]
)
def test_the_examples_of_pages(page: str, examples: int) -> None:
    failed, attempted = run("\n".join(FENCED.findall((DOCS / page).read_text())), page)
    assert failed == 0
    assert attempted >= examples


def test_nothing_in_the_site_comes_from_elsewhere() -> None:
    """But names of pages to read, which nothing loads."""
    for path in (ROOT / "mkdocs.yml", *DOCS.glob("stylesheets/*")):
        assert not re.search("https?://", path.read_text())
