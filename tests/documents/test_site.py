"""The sources of the site; `make site` builds and checks the site itself."""

import json
import re
import tomllib
from pathlib import Path

import check_site
import draw_pictures
import pytest

import geomdp
from geomdp.tables import plot
from test_import import PUBLIC_MODULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: The paper is for a journal.
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if path.parent != DOCS / "paper"
)
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
#: The pages of the site, from its navigation.
NAV = re.findall(r"^ +- (?:.+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


def test_navigation_has_every_page_once() -> None:
    assert len(set(NAV)) == len(NAV)
    # The README is the first page.
    assert NAV[0] == "index.md"
    assert sorted(page for page in NAV[1:] if not page.startswith("project/")) == PAGES


def test_navigation_has_every_notebook() -> None:
    shown = {page for page in NAV if page.endswith(".ipynb.md")}
    assert shown == {f"project/{path.relative_to(ROOT)}.md" for path in NOTEBOOKS}


def members(page: Path) -> list[str]:
    """Return the modules whose public names a page lists in full."""
    text = page.read_text()
    # The package's own page orders them by use.
    if page.stem != "geomdp":
        assert "members" not in text, "a page shows all names of a module"
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


def test_reference_has_every_public_module_once() -> None:
    shown = [module for page in sorted((DOCS / "api").glob("*.md")) for module in members(page)]
    assert len(set(shown)) == len(shown)
    # Those of engines, too, which are not imported here.
    paths = [path.relative_to(ROOT / "python") for path in (ROOT / "python").rglob("[!_]*.py")]
    files = {".".join(path.with_suffix("").parts) for path in paths if "/_" not in str(path)}
    modules = files | {module.__name__ for module in PUBLIC_MODULES}
    # The package's own page shows the names that it takes from a module.
    modules -= {f"geomdp.{name}" for name in ("mechanism", "samplers", "certificate")}
    homes = {vars(geomdp)[name].__module__ for name in geomdp.__all__} - {"geomdp"}
    assert homes & modules == set()
    assert modules | {f"geomdp.{name}" for name in geomdp.__all__} == set(shown)
    methods = re.search(r"\[([\w, \n]+)\]", (DOCS / "api/geomdp.md").read_text())
    public = [name for name in dir(geomdp.GeometricMechanism) if name[0] != "_"]
    assert methods
    assert sorted(re.findall(r"\w+", methods[1])) == public
    for name in modules:
        path = ROOT / "python" / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_clean_and_ends_in_assertions(path: Path) -> None:
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


def test_site_loads_nothing_from_other_hosts() -> None:
    """Links to other sites are fine; nothing is loaded from them."""
    for path in (ROOT / "mkdocs.yml", *DOCS.glob("stylesheets/*")):
        assert not re.search("https?://", path.read_text())


def test_what_a_session_draws_and_writes_is_shown() -> None:
    sessions = [
        ">>> import pandas as pd\n>>> from matplotlib import pyplot\n>>> 1 / 0\n"
        "Traceback (most recent call last):\n    ...\nZeroDivisionError: division by zero\n",
        '>>> pd.DataFrame({"a<": range(13)}).to_csv("t.csv", index=False)\n'
        '>>> from pathlib import Path\n>>> _ = Path("t.csv.json").write_text("{<}")\n'
        '>>> print("t")\nt\n',
        ">>> _ = pyplot.subplots()\n>>> _ = pyplot.subplots()\n",
        ">>> for day in range(5):\n"
        '...     pd.DataFrame({"day": [day]}).to_csv(f"day-{day}.csv", index=False)\n'
        '...     _ = Path(f"day-{day}.csv.json").write_text(str(day))\n',
    ]
    nothing, files, pictures, days = draw_pictures.page(sessions)
    assert nothing == ([], [])
    (table, description), drawn = files[1], files[0]
    assert drawn == []
    assert "<th>a&lt;</th>" in table
    assert table.count("<td>") == draw_pictures.ROWS
    assert "and 1 more rows" in table
    assert "<code>{&lt;}</code>" in description
    # The search for "epsilon" fails if it has read a description.
    assert all("data-search-exclude" in text for text in files[1])
    last, described, more = days[1]
    assert "<td>4</td>" in last
    assert "<code>4</code>" in described
    assert more == "<p>and 4 more such files</p>"
    assert pictures[1] == []
    assert len(pictures[0]) == 2
    for light in pictures[0]:
        assert draw_pictures.INK in light
        shown = draw_pictures.dark(light)
        assert draw_pictures.INK not in shown
        assert draw_pictures.PALE in shown


def test_gallery_has_every_plot() -> None:
    headings = re.findall("^## .*`(.*)`$", (DOCS / "gallery.md").read_text(), re.MULTILINE)
    methods = [f"{each}.plot" for each in ("Design", "NoisyTable", "NoisyTiers", "Top")]
    assert sorted(headings) == sorted([*methods, *(f"plot.{name}" for name in plot.__all__)])


def test_wrong_session_stops_the_site() -> None:
    with pytest.raises(ZeroDivisionError):
        list(draw_pictures.page([">>> 1 / 0\n"]))


def test_table_of_extras_has_all_for_users() -> None:
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    for_developers = {
        "clusters",
        "demo",
        "lint",
        "machine-code",
        "mutants",
        "notebooks",
        "site",
        "test",
    }
    text = (DOCS / "install.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == extras - for_developers


@pytest.mark.parametrize(
    ("check", "html", "finding"),
    [
        ("dead", "<article>See <code>docs/proofs.md</code>.</article>", "docs/proofs.md"),
        ("dead", "<article>By <code>make pictures</code>.</article>", "make pictures"),
        ("dead", "<article>The tests run\nevery example.</article>", "The tests run every"),
        ("private", "<code>frame: <span>_Frame</span></code>", "_Frame"),
        ("private", "<span>library</span>: <span>_native</span>.Library", "_native"),
    ],
)
def test_check_of_pages_finds_planted_faults(check: str, html: str, finding: str) -> None:
    [found] = getattr(check_site, check)(html)
    assert finding in " ".join(found.split())


def test_check_of_pages_accepts_links_and_public_names() -> None:
    linked = '<article><a href="../proofs.html"><code>docs/proofs.md</code></a> it tests</article>'
    assert not [*check_site.dead(linked), *check_site.private("<code>__init__ Frame</code>")]


def test_pages_are_visited_by_day_in_turn() -> None:
    pages = [*map(str, range(30)), "index.html"]
    days = [check_site.by_day(pages, turn) for turn in range(7, 17)]
    assert all(day[-1] == "index.html" and 4 <= len(day) <= 5 for day in days)
    assert {page for day in days for page in day} == {*pages}


def test_check_of_links_finds_planted_faults(tmp_path: Path) -> None:
    page, other = tmp_path / "page.html", tmp_path / "other.html"
    page.write_text(
        '<a href="other.html#here">a</a><a href="other.html#gone">b</a><a href="no.html">'
    )
    other.write_text('<h2 id="here">')
    found = list(check_site.unlinked(tmp_path, page, {other: {"here"}}))
    assert found == ["a link to no place: other.html#gone", "a link to nothing: no.html"]
