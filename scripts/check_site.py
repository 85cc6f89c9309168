"""Check every page of the built site in chromium: light and dark, desktop and telephone.

Findings are broken links and anchors, requests that fail or leave the site, script errors, pages
wider than the window, pictures that are missing or have no background, unrendered formulas, and
public names without an entry. Exits with 1 if there is a finding. Needs playwright, and chromium in
Debian's location or on the path.
"""

import argparse
import ast
import functools
import http.server
import shutil
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Response,
    sync_playwright,
)

ROOT = Path(__file__).parents[1]
WIDTHS = (1280, 390)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

#: Runs in a page: returns its addresses, its anchors, and findings that need the browser.
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
  const bright = colour => { const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
                             return a < 1 ? 0 : (r + g + b) / 3; };
  for (const image of article.querySelectorAll("img")) {
    if (!image.complete || !image.naturalWidth) found.push(`no picture: ${image.src}`);
    else if (image.src.endsWith(".svg") && bright(style(image).backgroundColor) < 200)
      found.push(`a drawing without a light background: ${image.src}`);
  }
  for (const e of text.querySelectorAll("code, pre, script, style")) e.remove();
  for (const math of text.querySelectorAll("math")) {
    if (/[\\&$^_]/.test(math.textContent)) found.push(`not a formula: ${name(math)}`);
    math.remove();
  }
  for (const raw of text.textContent.match(/\$.{0,40}|\\[a-z]+\b.{0,30}|:[a-z]+:(?=`)/g) || [])
    found.push(`not drawn: ${raw}`);
  return {
    found,
    links: [...document.querySelectorAll("a[href]")].map(a => a.href),
    anchors: [...document.querySelectorAll("[id], a[name]")].map(e => e.id || e.name),
  };
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def visit(page: Page, address: str, scheme: str) -> tuple[dict[str, Any], set[str]]:
    """Return the result of LOOK on a page, and the findings."""
    host = urllib.parse.urlsplit(address).netloc
    found: set[str] = set()

    def requested(request: Request) -> None:
        if request.url.startswith("http") and urllib.parse.urlsplit(request.url).netloc != host:
            found.add(f"a request that leaves the site: {request.url}")

    def answered(response: Response) -> None:
        if response.status >= 400:
            found.add(f"{response.status}: {response.url}")

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            found.add(f"console: {message.text}")

    page.on("request", requested)
    page.on("requestfailed", lambda request: found.add(f"a request that failed: {request.url}"))
    page.on("response", answered)
    page.on("pageerror", lambda error: found.add(f"a script failed: {error}"))
    page.on("console", said)
    page.goto(address, wait_until="networkidle")
    is_dark = page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    if is_dark != (scheme == "dark"):
        found.add("its colours are of the other scheme")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        state = page.evaluate(LOOK)
        found |= {f"at {width}: {finding}" for finding in state["found"]}
    return state, found


def names() -> Iterator[str]:
    """Yield every public name of every public module: ``__all__``, or else all definitions."""
    for path in sorted((ROOT / "python/geomdp").rglob("*.py")):
        parts = path.relative_to(ROOT / "python").with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if any(part.startswith("_") for part in parts):
            continue
        body = ast.parse(path.read_text()).body
        listed = [
            ast.literal_eval(node.value)
            for node in body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        defined = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        for name in listed[0] if listed else defined:
            if not name.startswith("_"):
                yield ".".join((*parts, name))


def check(site: Path, address: str, browser: Browser) -> set[str]:
    """Return all findings on the site at an address."""
    findings: set[str] = set()
    links: dict[str, set[str]] = {}
    anchors: dict[str, set[str]] = {}
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        if page == "404.html":
            continue  # Its links are absolute, for the host that will serve it.
        for scheme in SCHEMES:
            tab = browser.new_page(color_scheme=scheme)
            state, found = visit(tab, f"{address}/{page}", scheme)
            tab.close()
            findings |= {f"{page} ({scheme}): {finding}" for finding in found}
            links[page], anchors[page] = set(state["links"]), set(state["anchors"])
    for page, targets in links.items():
        for target in targets:
            parts = urllib.parse.urlsplit(target)
            if f"{parts.scheme}://{parts.netloc}" != address:
                continue
            there = urllib.parse.unquote(parts.path.lstrip("/")) or "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not (site / there).is_file():
                findings.add(f"{page}: leads to {there}, which is not there")
            elif anchor and there in anchors and anchor not in anchors[there]:
                findings.add(f"{page}: leads to {there}#{anchor}, which is not there")
    reference = {a for page, of in anchors.items() if page.startswith("api/") for a in of}
    findings |= {f"no entry in the reference: {name}" for name in names() if name not in reference}
    print(f"{len(links)} pages, {sum(map(len, links.values()))} links, {len(reference)} entries")
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="the directory of the built site")
    site = parser.parse_args().site
    chromium = shutil.which("chromium")
    if chromium is None:
        parser.error("chromium is not installed")
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        findings = check(site, f"http://127.0.0.1:{server.server_port}", browser)
        browser.close()
    for finding in sorted(findings):
        print(finding)
    return 1 if findings or not any(site.rglob("*.html")) else 0


if __name__ == "__main__":
    sys.exit(main())
