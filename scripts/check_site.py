"""Check every page of the built site in chromium, in dark colours, from a desktop to a telephone.

Findings on a page are requests that fail or leave the site, script errors, pages wider than the
window, code that scrolls, tables that scroll and do not show it, drawings for light pages,
unrendered formulas, copy buttons that copy prompts or outputs, and a header without version and
repository; links to nothing; on users' pages the names of files that they do not have; in the
reference private names. Others are searches that do not find their page, also without a server,
notebooks that cannot be downloaded or do not show all outputs, and public names and options of the
command without an entry. Exits with 1 if there is a finding. Needs playwright, and chromium on the
path.
"""

from __future__ import annotations

import argparse
import ast
import functools
import http.server
import json
import re
import shutil
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import inputs

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
WIDTHS = (1400, 700, 390)
#: The header of every page shows these; the metadata need not name a repository.
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository")
#: Searches, and the page that each must find first.
SEARCHES = {
    "discrete Laplace": "index.html",
    "two-sided geometric": "index.html",
    "laplace": "index.html",
    "noisy counts": "tutorial.html",
    "epsilon": "choosing_epsilon.html",
    "missing values": "guides/missing.html",
    "percentage": "guides/rates.html",
    "quantile": "guides/faq.html",
    "hierarchy": "guides/hierarchy.html",
    "lawyer": "guides/lawyer.html",
}
#: One page of each kind, and a search: what `make site DAY=1` visits besides a tenth in turn.
KINDS = {
    "404.html",
    "api/streams.html",
    "cookbook/sums.html",
    "evidence.html",
    "gallery.html",
    "index.html",
    "project/examples/notebooks/histogram.ipynb.html",
    "project/examples/spark_job.py.html",
    "proofs.html",
    "tutorial.html",
    "epsilon",
}
#: An index of no pages, for pages whose search is not tried.
NO_INDEX = {
    "config": {"lang": ["en"], "separator": " ", "pipeline": [], "fields": {}},
    "docs": [],
}
#: The README, and pages for auditors and maintainers, who have the repository.
REPOSITORY_PAGES = re.compile(
    "(project/|(index|best_practices|check_us|evidence|guarantees|paper_mapping|performance|proofs"
    "|related_work|nist_sp_800_226|releasing|specification)\\.html)"
)
#: Files and commands of the repository, and private names.
FILES = re.compile(
    r"(?<![\w/.-])(?:docs|examples|python|rust|scripts|tests)/[\w./]+|^make [a-z]+\b"
)
PRIVATE = re.compile(r"(?<![\w.])_[A-Z]\w*|\b(?<!\w)_(?:native|types|inputs)\b")

#: Runs in a page: returns the findings that need its layout.
LOOK = r"""() => {
  const found = [], article = document.querySelector("article");
  const text = article.cloneNode(true), wide = document.documentElement.clientWidth;
  const name = e => `<${e.tagName.toLowerCase()}> ${e.textContent.trim().slice(0, 50)}`;
  const style = e => getComputedStyle(e);
  if (document.documentElement.scrollWidth > wide) {
    // The innermost elements that stick out, other than inside of what scrolls by itself.
    const scrolls = e => e !== article && (/auto|scroll/.test(style(e).overflowX)
                                           || scrolls(e.parentElement));
    const out = [...article.querySelectorAll("*")].filter(
      e => e.getBoundingClientRect().right > wide + 1 && !scrolls(e));
    const inner = out.filter(e => !out.some(other => other !== e && e.contains(other)));
    found.push(`wider than its window: ${inner.slice(0, 3).map(name).join("; ") || "the page"}`);
  }
  for (const code of article.querySelectorAll("pre > code")) {
    if (code.scrollWidth > code.clientWidth + 1) found.push(`code that scrolls: ${name(code)}`);
  }
  for (const around of document.querySelectorAll(".md-typeset__scrollwrap")) {
    const told = /gradient/.test(style(around).backgroundImage);
    if (around.scrollWidth > around.clientWidth + 1 && !told)
      found.push(`a table that scrolls and does not show it: ${name(around)}`);
  }
  for (const image of article.querySelectorAll("img")) {
    const dark = image.src.endsWith("-dark.svg#only-dark") || /invert/.test(style(image).filter);
    if (/\.svg|:image\/svg/.test(image.src) && image.offsetWidth && !dark)
      found.push(`a drawing for light pages: ${image.src.slice(0, 100)}`);
  }
  // The hat of an estimate is a circumflex.
  for (const e of text.querySelectorAll("code, pre, script, style, mover > mo")) e.remove();
  for (const math of text.querySelectorAll("math")) {
    if (/[\\&$^_]/.test(math.textContent)) found.push(`not a formula: ${name(math)}`);
    math.remove();
  }
  for (const raw of text.textContent.match(/\$.{0,40}|\\[a-z]+\b.{0,30}|:[a-z]+:(?=`)/g) || [])
    found.push(`not drawn: ${raw}`);
  return found;
}"""

#: Runs in a page: returns a finding if a button copies other text than its code.
COPY = r"""async place => {
  const button = document.querySelectorAll("[data-clipboard-target]")[place];
  const text = document.querySelector(button.dataset.clipboardTarget).textContent.trimEnd();
  const prompt = /^(>>>|\.\.\.|\$)( |$)/, session = prompt.test(text);
  const lines = text.split("\n").filter(line => !session || prompt.test(line));
  const code = lines.map(line => session ? line.replace(prompt, "") : line).join("\n");
  button.click();
  const copied = await navigator.clipboard.readText();
  return copied === code ? null : `a button copies: ${copied.slice(0, 50)}`;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def visit(page: Page, host: str, paths: Iterable[str]) -> set[str]:
    """Return the findings on pages, whose search finds nothing: each would build its index."""
    found: set[str] = set()
    path = ""

    def check(condition: bool, finding: str) -> None:
        if condition:
            found.add(f"{path}: {finding}")

    page.on("request", lambda r: check(not r.url.startswith((host, "data:")), f"leaves: {r.url}"))
    page.on("requestfailed", lambda r: check(True, f"a request that failed: {r.url}"))
    page.on("response", lambda r: check(r.status >= 400, f"{r.status}: {r.url}"))
    page.on("pageerror", lambda error: check(True, f"a script failed: {error}"))
    page.on("console", lambda said: check(said.type == "error", f"console: {said.text}"))
    page.route("**/search_index.json", lambda route: route.fulfill(json=NO_INDEX))
    for path in paths:
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        page.goto(host + path, wait_until="networkidle")
        scheme = page.evaluate("document.body.dataset.mdColorScheme")
        check(scheme != "slate", "its colours are light")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for finding in page.evaluate(LOOK):
                check(True, f"at {width}: {finding}")
        # One call for each, as a browser copies only for some seconds after what a user does.
        for place in range(page.locator("[data-clipboard-target]").count()):
            if finding := page.evaluate(COPY, place):
                check(True, finding)
        header = page.locator(".md-header")
        check(VERSION not in header.inner_text(), "no version in the header")
        links = header.locator(f'a[href="{REPOSITORY}"]')
        check(REPOSITORY is not None and not links.count(), "no link to the repository")
    page.close()
    return found


def search(page: Page, host: str, query: str) -> str:
    """Return the page that a search finds first."""
    from playwright.sync_api import TimeoutError as Late  # noqa: PLC0415

    page.goto(f"{host}index.html", wait_until="networkidle")
    for _ in range(3):  # A script that has not started yet misses what is typed.
        page.locator(".md-search__input").fill("")
        page.locator(".md-search__input").press_sequentially(query)  # `fill` presses no key.
        with suppress(Late):
            page.wait_for_selector(".md-search-result__link", state="attached", timeout=10_000)
            break
    links, link, before = page.locator(".md-search-result__link"), "", "nothing"
    while link != before:  # On a busy machine, what was typed first is found first.
        before = link
        page.wait_for_timeout(500)
        link = (links.count() and links.first.get_attribute("href")) or "nothing"
    page.close()
    return re.split("[?#]", link.removeprefix(host))[0]


def unshown(site: Path) -> Iterator[str]:
    """Yield a finding for each notebook whose page does not show all outputs."""
    for path in sorted((ROOT / "dist/notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        outputs = sum(len(cell.get("outputs", [])) for cell in cells)
        text = (site / f"project/examples/notebooks/{path.name}.html").read_text()
        shown = len(re.findall(r'<div class="[^"]*\boutput\b|src="data:image/svg', text))
        if shown != outputs or not outputs:
            yield f"{path.name}: {shown} of {outputs} outputs are shown"
        if f'href="{path.name}" download' not in text:
            yield f"{path.name}: no link to download it"


def dead(html: str) -> Iterator[str]:
    """Yield a finding for each name of a file in a page for users that is no link."""
    article = html.partition("<article")[2].partition("</article>")[0]
    article = re.sub(r"<a .*?</a>", "", article, flags=re.DOTALL)
    for code in re.findall(r"<code>(.*?)</code>", article, re.DOTALL):
        for name in FILES.findall(code):
            yield f"a file that users do not have: {name}"
    if told := re.search(
        r"\b[Tt]he tests run\b.{0,30}", " ".join(re.sub("<[^>]*>", "", article).split())
    ):
        yield f"talk for developers: {told[0]}"


def private(html: str) -> Iterator[str]:
    """Yield a finding for each private name in a page of the reference."""
    for name in PRIVATE.findall(re.sub("<[^>]*>", "", html)):
        yield f"a private name: {name}"


def unlinked(site: Path, page: Path, ids: dict[Path, set[str]]) -> Iterator[str]:
    """Yield a finding for each link of a page to a file or place of the site that is not there."""
    for link, place in re.findall(r'(?:href|src)="([^"#?:]*)(?:#([^"]*))?"', page.read_text()):
        there = (page.parent / unquote(link)).resolve() if link else page
        there = there / "index.html" if there.is_dir() else there
        if not there.is_file() or not there.is_relative_to(site):
            yield f"a link to nothing: {link}"
        elif place and there in ids and unquote(place) not in ids[there]:
            yield f"a link to no place: {link}#{place}"


def names() -> Iterator[str]:
    """Yield every name in the ``__all__`` of a public module."""
    for path in sorted((ROOT / "python/geomdp").rglob("*.py")):
        parts = path.relative_to(ROOT / "python").with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        if module in ("geomdp.mechanism", "geomdp.samplers", "geomdp.certificate"):
            module = "geomdp"  # which has their names
        stub = path.with_suffix(".pyi")
        for node in ast.parse((stub if stub.exists() else path).read_text()).body:
            if not isinstance(node, ast.Assign) or "._" in module:
                continue
            if ast.unparse(node.targets[0]) == "__all__":
                yield from (f"{module}.{name}" for name in ast.literal_eval(node.value))


def by_day(among: list[str], turn: int) -> list[str]:
    """Return a tenth of pages or searches, which changes with the turn, and one of each kind."""
    return [each for place, each in enumerate(among) if each in KINDS or place % 10 == turn % 10]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="the directory of the built site")
    parser.add_argument("--day", action="store_true", help="visit some pages, others in turn")
    given = parser.parse_args()
    site = given.site.resolve()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415, the tests do without

    chromium = shutil.which("chromium")
    if chromium is None:
        parser.error("chromium is not installed")
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}/"
    pages = sorted(site.rglob("*.html"))
    paths = [page.relative_to(site).as_posix() for page in pages]
    queries = [*SEARCHES]
    findings = {f"no page: {name}" for name in KINDS.difference(paths, queries)}
    if given.day:
        paths, queries = (by_day(each, inputs.seed()) for each in (paths, queries))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(
            color_scheme="dark", permissions=["clipboard-read", "clipboard-write"]
        )
        findings |= visit(context.new_page(), host, paths)
        for query in queries:
            if (first := search(context.new_page(), host, query)) != SEARCHES[query]:
                findings.add(f"a search for {query!r} finds {first}, not {SEARCHES[query]}")
        for query in {"epsilon", "quantile"}.intersection(queries):
            if (first := search(context.new_page(), f"{site.as_uri()}/", query)) != SEARCHES[query]:
                findings.add(f"without a server, a search for {query!r} finds {first}")
        browser.close()
    findings |= set(unshown(site))
    ids = {page: set(re.findall(r' id="?([^" >]+)', page.read_text())) for page in pages}
    for page in pages:
        name, html = page.relative_to(site).as_posix(), page.read_text()
        found = list(unlinked(site, page, ids)) if name != "404.html" else []
        found += [] if REPOSITORY_PAGES.match(name) else dead(html)
        found += private(html) if name.startswith("api/") else []
        findings |= {f"{name}: {each}" for each in found}
    text = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    entries = set(re.findall(r'id="(geomdp[\w.]*)"', text))
    options = re.findall(r'"(--[a-z-]+)"', (ROOT / "python/geomdp/cli/__init__.py").read_text())
    command = (site / "api/cli.html").read_text()
    findings |= {f"api/cli.html: no {option}" for option in options if option not in command}
    findings |= {f"no entry in the reference: {name}" for name in names() if name not in entries}
    print(f"{len(pages)} pages, {len(entries)} entries")
    for finding in sorted(findings):
        print(finding)
    return 1 if findings or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
