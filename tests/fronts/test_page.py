"""The page of a published table, as bytes; `tests/browser` opens it."""

import base64
import hashlib
import html.parser
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import geomdp
from geomdp import tables
from geomdp.tables import _page

HOSTILE = ["</script><script>x</script>", "<!--<script>", "{{script}}", "\u2028", "\U0001f600"]
TABLE = tables.Design({"text": HOSTILE}).count(pd.DataFrame({"text": HOSTILE * 30}))
NAMES = ("noise.js", "page.js", "page.css", "page.html")
SOURCES = [Path(_page.__file__).with_name(name) for name in NAMES]


class Parts(html.parser.HTMLParser):
    """The elements of a page, and what its scripts and styles have."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.inside: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(("", {}))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style"):
            name = attributes.get("id", tag)
            self.inside[name] = self.inside.get(name, "") + data


def saved(release: Any, path: Path) -> Parts:
    release.save(path)
    return Parts(path.read_text())


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return saved(TABLE.release(epsilon=1, label=HOSTILE[0]), tmp_path / "a.html")


def test_texts_of_a_release_add_no_element(parts: Parts) -> None:
    tags = [tag for tag, _ in parts.elements]
    assert (tags.count("script"), tags.count("style")) == (2, 1)
    assert not [name for _, attributes in parts.elements for name in attributes if name[:2] == "on"]
    assert not {"src", "href", "action"} & {name for _, each in parts.elements for name in each}
    assert parts.inside["data"].isascii()
    description = json.loads(json.loads(parts.inside["data"])["description"])
    assert description["geomdp"]["label"] == HOSTILE[0]


def test_the_policy_allows_its_own_script_and_style_alone(parts: Parts) -> None:
    [policy] = [each["content"] for _, each in parts.elements if "http-equiv" in each]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for rule, name in [("script-src", "script"), ("style-src", "style")]:
        digest = hashlib.sha256(parts.inside[name].encode()).digest()
        assert rules[rule] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules.keys() == {"default-src", "script-src", "style-src", "base-uri", "form-action"}


def test_the_script_makes_no_markup_of_texts_and_asks_no_network() -> None:
    text = "".join(source.read_text() for source in SOURCES)
    text = text.replace('"http://www.w3.org/2000/svg"', "")  # the name of a kind of elements
    sinks = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(|srcdoc"
    network = r"fetch|XMLHttp|WebSocket|sendBeacon|import\(|https?:|@import|url\("
    assert not re.findall(f"{sinks}|{network}", text)
    assert sum(len(source.read_text().splitlines()) for source in SOURCES) <= 900


def test_a_page_holds_the_files_that_save_writes(tmp_path: Path) -> None:
    noisy = TABLE.release(epsilon=1)
    noisy.save(tmp_path / "a.csv")
    held = json.loads(saved(noisy, tmp_path / "a.html").inside["data"])
    assert held["csv"].encode() == (tmp_path / "a.csv").read_bytes()
    assert held["description"].encode() == (tmp_path / "a.csv.json").read_bytes()
    assert held["name"] == "a.csv"
    with pytest.raises(FileExistsError):
        noisy.save(tmp_path / "a.html")
    with pytest.raises(ValueError, match=r"path = .*a\.html.* is not accepted: give a"):
        geomdp.read(tmp_path / "a.html")


def test_a_page_of_too_many_rows_is_refused(tmp_path: Path) -> None:
    table = tables.Design({"n": range(20_001)}).count(pd.DataFrame({"n": [1]}))
    with pytest.raises(ValueError, match=r"^a page of 20001 rows is not accepted: at most 20000"):
        table.release(epsilon=1).save(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_numbers_that_a_browser_would_round_are_refused(tmp_path: Path) -> None:
    # The reach of 95% is above 2**58: a browser would show ends nearer than they are.
    wide = tables.Design({"n": [1]}, linf=2**31).count(pd.DataFrame({"n": [1]}))
    with pytest.raises(ValueError, match=r"^a page of numbers from 2\*\*53 on is not accepted"):
        wide.release(epsilon="1/100000000").save(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ["Each record counts as one individual.", "that one record is among the data"]),
        (
            {"l0": 2, "linf": 3},
            ["counts in at most 2 cells, at most 3 times in each."],
        ),
        ({"individual": "who", "l0": 1}, ["in at most 1 cell, once in each; further records"]),
        (
            {"individual": "who", "l1": 4},
            ["with at most 4 records in all; further records were left"],
        ),
        ({"neighbours": "change"}, ["the odds between two guesses about one record change"]),
    ],
)
def test_a_page_says_what_is_protected(options: Any, said: list[str], tmp_path: Path) -> None:
    data = pd.DataFrame({"text": HOSTILE, "who": range(5)})
    noisy = tables.Design({"text": HOSTILE}, **options).count(data).release(epsilon=2)
    saved(noisy, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    # exp(2) is 7.3890...
    for each in [*said, "The privacy loss, epsilon, is 2: ", "by a factor of at most 7.39."]:
        assert each in text
