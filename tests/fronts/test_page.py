"""The page of a published table, as bytes; `tests/browser` opens it."""

import base64
import hashlib
import html.parser
import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import geomdp
from geomdp import tables
from geomdp.tables._facts import about as _about
from geomdp.tables._publish import page
from published_kinds import ABOUT as SAID

HOSTILE = ["</script><script>x</script>", "<!--<script>", "{{script}}", "\u2028", "\U0001f600"]
ABOUT = {**SAID, "title": f"<b>{HOSTILE[0]}", "source": "".join(HOSTILE)}
TABLE = tables.Design({"text": HOSTILE}).count(pd.DataFrame({"text": HOSTILE * 30}))
NAMES = ("noise.js", "page.js", "page.css", "page.html")
SOURCES = [Path(page.__file__).with_name(name) for name in NAMES]


class Parts(html.parser.HTMLParser):
    """The elements of a page, and what its scripts and styles have."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.inside: dict[str, str] = {}
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(("", {}))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style"):
            name = attributes.get("id", tag)
            self.inside[name] = self.inside.get(name, "") + data
        if tag:
            self.texts[tag][-1] += data


def saved(release: Any, path: Path) -> Parts:
    release.save(path)
    return Parts(path.read_text())


def held_by(parts: Parts) -> tuple[str, Any]:
    """Return the rows and the description that the links of a page hold."""
    rows, description = (
        urllib.parse.unquote(each["href"].partition(",")[2])
        for _, each in parts.elements
        if "download" in each
    )
    return rows, json.loads(description)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    noisy = TABLE.release(epsilon=1, label=HOSTILE[0], about=ABOUT)
    return saved(noisy, tmp_path / "a.html")


def test_texts_of_a_release_add_no_element(parts: Parts) -> None:
    tags = [tag for tag, _ in parts.elements]
    assert (tags.count("script"), tags.count("style")) == (3, 1)
    assert "b" not in tags
    assert not [name for _, attributes in parts.elements for name in attributes if name[:2] == "on"]
    assert not {"src", "action"} & {name for _, each in parts.elements for name in each}
    # Links go to the notes below, and to what they hold themselves.
    links = [each["href"] for _, each in parts.elements if "href" in each]
    assert [link.partition(",")[0] for link in links] == [
        "#noise",
        "data:text/csv;charset=utf-8",
        "data:application/json;charset=utf-8",
    ]
    assert parts.inside["data"].isascii()
    description = held_by(parts)[1]
    assert description["geomdp"]["label"] == HOSTILE[0]
    assert description["geomdp"]["about"] == ABOUT


def test_a_page_shows_what_its_publisher_says(parts: Parts) -> None:
    """As texts: whatever is in them, they are what a reader sees, and nothing more."""
    assert parts.texts["title"] == parts.texts["h1"] == [ABOUT["title"]]
    told = [text.split(": ", 1) for text in parts.texts["p"] if ": " in text]
    known = [pair for pair in told if pair[0].lower() in ABOUT]
    assert [key for key, _ in known] == ["Period", "Source", "Publisher", "Contact", "Licence"]
    assert [text for _, text in known] == [ABOUT[key.lower()] for key, _ in known]
    assert parts.texts["p"][0] == ABOUT["description"]


@pytest.mark.parametrize(
    ("label", "about", "title"),
    [
        (None, {}, "Noisy counts"),
        ("May", {}, "May"),
        ("May", {"title": "Wards"}, "Wards"),
        (None, {"source": "x"}, "Noisy counts"),
        (None, {"description": "x"}, "Noisy counts"),
    ],
)
def test_the_title_of_a_page(label: Any, about: Any, title: str, tmp_path: Path) -> None:
    found = saved(TABLE.release(epsilon=1, label=label, about=about), tmp_path / "a.html")
    assert found.texts["title"] == found.texts["h1"] == [title]
    assert ("Source: x" in found.texts["p"]) == ("source" in about)
    assert json.loads(found.inside["dataset"])["name"] == title


def test_data_portals_find_a_dataset(parts: Parts) -> None:
    """Each fact in the property of schema.org that has its meaning; a work by its name."""
    found, given = json.loads(parts.inside["dataset"]), ABOUT
    description = held_by(parts)[1]
    assert found.pop("description").startswith(f"{given['description']} Random noise was added")
    assert found == {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "identifier": description["geomdp"]["id"],
        "name": given["title"],
        "isBasedOn": {"@type": "CreativeWork", "name": given["source"]},
        "temporalCoverage": given["period"],
        "publisher": {
            "@type": "Organization",
            "name": given["publisher"],
            "contactPoint": {"@type": "ContactPoint", "name": given["contact"]},
        },
        "license": {"@type": "CreativeWork", "name": given["licence"]},
    }
    assert parts.inside["dataset"].isascii()
    assert "<" not in parts.inside["dataset"]


def test_a_contact_is_no_publisher() -> None:
    """A page said that an e-mail address was an organization."""
    contact = {"@type": "ContactPoint", "email": "office@example.org"}
    [found] = _about.dataset({"contact": "office@example.org"}).values()
    assert found == {"@type": "Organization", "contactPoint": contact}
    [found] = _about.dataset({"publisher": "Office"}).values()
    assert found == {"@type": "Organization", "name": "Office"}
    [found] = _about.dataset({"contact": "Office, office@example.org"}).values()
    assert found["contactPoint"] == {
        "@type": "ContactPoint",
        "name": "Office, office@example.org",
    }


def test_scripts_are_allowed_or_are_data(parts: Parts) -> None:
    """A policy is about scripts that a browser runs: HTML runs no element of another type."""
    kinds = [each.get("type") for tag, each in parts.elements if tag == "script"]
    assert kinds == ["application/ld+json", "application/json", None]


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
    assert sum(len(source.read_text().splitlines()) for source in SOURCES) <= 850


def test_a_page_holds_the_files_that_save_writes(tmp_path: Path) -> None:
    noisy = TABLE.release(epsilon=1)
    noisy.save(tmp_path / "a.csv")
    parts = saved(noisy, tmp_path / "a.html")
    rows, description = held_by(parts)
    assert rows.encode() == (tmp_path / "a.csv").read_bytes()
    assert description == json.loads((tmp_path / "a.csv.json").read_bytes())
    names = [each["download"] for _, each in parts.elements if "download" in each]
    assert names == ["a.csv", "a.csv.json"]
    with pytest.raises(FileExistsError):
        noisy.save(tmp_path / "a.html")
    with pytest.raises(ValueError, match=r"path = .*a\.html.* is not accepted: give a"):
        geomdp.read(tmp_path / "a.html")


def test_a_page_of_too_many_rows_is_refused(tmp_path: Path) -> None:
    table = tables.Design({"n": range(20_001)}).count(pd.DataFrame({"n": [1]}))
    message = "^a page of 20001 rows is not accepted: give at most 20000, or save"
    with pytest.raises(ValueError, match=message):
        table.release(epsilon=1).save(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_ends_that_a_browser_would_round_are_open(tmp_path: Path) -> None:
    """Released with bounds, a table was paid and then refused, if an end was at a limit."""
    # The reach of 95% is above 2**58: a browser would show ends nearer than they are.
    wide = tables.Design({"n": [1]}, linf=2**31).count(pd.DataFrame({"n": [1]}))
    noisy = wide.release(epsilon="1/100000000")
    noisy.counts[...] = 5
    held = json.loads(saved(noisy, tmp_path / "a.html").inside["data"])
    # A lower end of 0 is any distance from 5 on.
    [widths] = held["widths"]
    assert widths[7::12] == [None, None]
    assert held["counts"][0] - widths[6] <= 0 >= held["counts"][0] - widths[18]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ["Each record counts as one individual.", "that a given record is in the data"]),
        (
            {"l0": 2, "linf": 3},
            ["individual is counted in at most 2 cells, at most 3 times in each."],
        ),
        (
            {"individual": "who", "l0": 1},
            ["Each individual is counted at most once; anything beyond that was left out."],
        ),
        (
            {"individual": "who", "l1": 4},
            ["Each individual contributes at most 4 records; anything beyond that was left out."],
        ),
        ({"individual": "who", "l0": 1, "unit": "person"}, ["Privacy is that of each “person”."]),
        ({"neighbours": "change"}, ["the odds between any two guesses about a given record"]),
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
