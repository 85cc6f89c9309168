"""The report of a budget: each release beside its files, and nothing of the counts."""

import hashlib
import re
from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from geomdp import cli, tables
from geomdp.accounting import Budget, _journal, _statement, zcdp
from geomdp.tables._publish import page as _page
from geomdp.tables.streams import Stream
from published_kinds import ABOUT

DESIGN = tables.Design({"town": ["a", "b"]})
PEOPLE = pd.DataFrame({"town": ["a", "b", "b"], "age": [30, 40, 50]})
TABLE = DESIGN.count(PEOPLE)
HOSTILE = "</td><script>x</script>{{policy}}&amp;\u2028"
DIGEST = re.compile("[0-9a-f]{64}")


class Parts(HTMLParser):
    """The tags of a page, its facts, and the rows of its tables by heading."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.headings: list[str] = []
        self.rows: dict[str, list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {}
        self._tag = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self._tag = tag
        assert not {"src", "href", "action", "onload"} & {name for name, _ in attrs}
        if tag == "tr":
            self.rows.setdefault(self.texts["h2"][-1], []).append([])
        elif tag in ("td", "th"):
            self.rows[self.texts["h2"][-1]][-1].append("")
        else:
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, _: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag in ("td", "th"):
            self.rows[self.texts["h2"][-1]][-1][-1] += data
        elif self._tag:
            self.texts[self._tag][-1] += data

    @property
    def facts(self) -> dict[str, str]:
        return dict(zip(self.texts["dt"], self.texts["dd"], strict=True))


def reported(budget: Budget, folder: Path, *files: str, **options: Any) -> Parts:
    tables.report(budget, folder / "r.html", [folder / each for each in files], **options)
    return Parts(folder / "r.html")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_each_release_is_beside_its_files_of_every_kind(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=9, groups=["x", "y"])
    for group in budget.groups:
        TABLE.release(
            epsilon="0.4", budget=budget.group(group), label="May", save=tmp_path / f"{group}.csv"
        )
    pair = DESIGN.sum_and_count(PEOPLE, "age", bounds=(0, 99))
    both = {"sums": tmp_path / "sums.csv", "counts": tmp_path / "counts.parquet"}
    pair.release(epsilon=1, budget=budget, label="ages", save=both)
    stream = Stream.open(tmp_path / "s.jsonl", horizon=4, epsilon="0.5", budget=budget)
    stream.release(0, [5])
    stream.table().save(tmp_path / "step.csv")
    TABLE.top(1, epsilon=2, budget=budget, save=tmp_path / "top.csv").save(tmp_path / "again.csv")
    budget.book("0.25", label="by hand")
    TABLE.release(epsilon=3, label="May", save=tmp_path / "apart.csv")
    files = [path.name for end in ("csv", "parquet") for path in sorted(tmp_path.glob(f"*.{end}"))]
    before = (tmp_path / "2026.jsonl").read_bytes()
    page = reported(Budget.open(tmp_path / "2026.jsonl"), tmp_path, *files)
    assert (tmp_path / "2026.jsonl").read_bytes() == before
    names, *rows = page.rows["Releases"]
    assert names == ["Booked (UTC)", "Label", "Groups", "Privacy loss", "File", "SHA-256"]
    assert [row[1:5] for row in rows] == [
        ["May", "x", "0.4", "x.csv"],
        ["May", "y", "0.4", "y.csv"],
        ["ages", "all", "1", "sums.csv"],
        ["ages", "all", "1", "counts.parquet"],
        ["s.jsonl", "all", "0.5", "step.csv"],
        ["", "all", "2", "again.csv"],
        ["", "all", "2", "top.csv"],
        ["by hand", "all", "0.25", ""],
    ]
    assert [row[5] for row in rows] == [digest(tmp_path / row[4]) if row[4] else "" for row in rows]
    apart = ["apart.csv", "May", "3.0", digest(tmp_path / "apart.csv")]
    assert page.rows["Files that this budget did not pay for"][1:] == [apart]
    assert page.rows["Groups"][1:] == [["x", "4.15", "4.85"], ["y", "4.15", "4.85"]]
    assert page.facts["Last digest of the ledger"].encode() in before
    # Seen by one group, releases of the other are left out.
    (tmp_path / "r.html").unlink()
    own = reported(budget.group("x"), tmp_path, "x.csv", "y.csv")
    assert [row[4] for row in own.rows["Releases"][1:5]] == ["x.csv", "", "", ""]
    assert [row[0] for row in own.rows["Files that this budget did not pay for"][1:]] == ["y.csv"]


class Stated(NamedTuple):
    """A budget, the losses that it books, and what a report states."""

    budget: Callable[[], Budget]
    booked: list[str]
    limit: str
    spent: str
    left: str
    #: The privacy loss of each release, and its cost if a column shows it.
    rows: list[list[str]]


STATED = [
    Stated(lambda: Budget(6), ["0.5"], "epsilon 6", "epsilon 0.5", "epsilon 5.5", [["0.5"]]),
    Stated(lambda: Budget(6), [], "epsilon 6", "epsilon 0", "epsilon 6", []),
    # Spent is rounded up, and what is left down.
    Stated(
        lambda: Budget("1/3"),
        ["0.1"],
        "epsilon 0.3333333333333333",
        "epsilon 0.1",
        "epsilon 0.2333333333333333",
        [["0.1"]],
    ),
    Stated(
        lambda: Budget(rho=1),
        ["0.1"],
        "rho 1",
        f"rho {zcdp('0.1')}",
        f"rho {float(1 - Fraction(zcdp('0.1')))}",
        [["0.1", str(zcdp("0.1"))]],
    ),
    Stated(
        lambda: Budget(3, delta="1e-6", losses={"0.1": 10, "0.5": 1}),
        ["0.1", "0.2"],
        "epsilon 3 at delta 1e-06, for planned losses of 1.5",
        "planned losses of 0.6",
        "a planned loss of 0.1",
        [["0.1", "0.1"], ["0.2", "0.5"]],
    ),
]


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: stated.limit)
def test_a_report_states_the_budget(stated: Stated, tmp_path: Path) -> None:
    made = stated.budget()
    for each in stated.booked:
        made.book(each)
    page = reported(made, tmp_path)
    facts = page.facts
    assert (facts["Limit"], facts["Spent"], facts["Left"]) == stated[2:5]
    assert facts["Releases"] == str(len(stated.booked))
    assert "Last digest of the ledger" not in facts
    names, *found = page.rows["Releases"]
    assert ("Cost" in names) == any(len(row) == 2 for row in stated.rows)
    assert [row[2:-2] for row in found] == stated.rows


def test_the_page_is_the_same_whatever_the_counts(tmp_path: Path) -> None:
    """But for ids, digests and times."""
    pages = []
    for times in (1, 1234567):
        folder = tmp_path / str(times)
        folder.mkdir()
        counted = DESIGN.count(PEOPLE.assign(n=times), counts="n")
        budget = Budget.open(folder / "2026.jsonl", epsilon=1)
        counted.release(epsilon=1, budget=budget, label="May", save=folder / "a.csv")
        reported(budget, folder, "a.csv")
        text = DIGEST.sub("", (folder / "r.html").read_text())
        pages.append(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "", text))
    assert pages[0] == pages[1]


def test_texts_of_a_report_add_no_element(tmp_path: Path) -> None:
    budget = Budget(epsilon=9, groups=[HOSTILE])
    budget.group(HOSTILE).book(1, label=HOSTILE)
    name = "<b>&amp;.csv"
    TABLE.release(epsilon=1, label=HOSTILE, save=tmp_path / name)
    page = reported(budget, tmp_path, name, about=ABOUT)
    assert not {"script", "b"} & {*page.tags}
    assert page.rows["Releases"][1][1:3] == [HOSTILE, HOSTILE]
    assert page.rows["Groups"][1][0] == HOSTILE
    assert page.rows["Files that this budget did not pay for"][1][:2] == [name, HOSTILE]
    assert page.texts["title"] == page.texts["h1"] == [ABOUT["title"]]
    assert f"Contact: {ABOUT['contact']}" in page.texts["p"]
    text = (tmp_path / "r.html").read_text()
    [style] = page.texts["style"]
    assert f'{_page._policy(style)}"' in text
    assert "script" not in _page._policy(style)


def test_a_report_is_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may spend while its numbers are computed."""
    state = _statement._state
    kinds: list[dict[str, Any]] = [{"epsilon": 9}, {"epsilon": 9, "losses": {1: 9}}, {"rho": 9}]
    for given in kinds:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        budget, other = Budget.open(path, **given), Budget.open(path)
        budget.book(1)
        before = _statement.statement(budget)

        def late(each: Budget, other: Budget = other, budget: Budget = budget) -> Any:
            other.book(1)
            assert len(budget.history) > 1
            return state(each)

        with monkeypatch.context() as patch:
            patch.setattr(_statement, "_state", late)
            assert _statement.statement(budget) == before


def test_huge_numbers_and_names_that_are_no_text_are_reported(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "2026.jsonl", epsilon=10**400)
    budget.book(10**400 - 1)
    name = b"\xff.csv".decode(errors="surrogateescape")
    TABLE.release(epsilon=1, budget=budget, save=tmp_path / "a.csv")
    (tmp_path / "a.csv").rename(tmp_path / name)
    (tmp_path / "a.csv.json").rename(tmp_path / f"{name}.json")
    page = reported(budget, tmp_path, name)
    assert (page.facts["Spent"], page.facts["Left"]) == ("epsilon inf", "epsilon 0")
    assert page.rows["Releases"][2][-2] == "\ufffd.csv"


def test_what_cannot_be_reported_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    budget = Budget(epsilon=9)
    TABLE.release(epsilon=1, save=tmp_path / "a.csv")
    TABLE.release(epsilon=1, save=tmp_path / "a.html")
    TABLE.release(epsilon=1, save=tmp_path / "edited.csv")
    with (tmp_path / "edited.csv").open("ab") as file:  # two releases may be equal
        file.write(b"c,1\n")
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "r.html"
    refused: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
        ((budget, tmp_path / "r.csv"), {}, ValueError, r"path = .*r\.csv' .* ends in \.html"),
        ((budget, tmp_path / "a.html"), {}, FileExistsError, "already exists"),
        ((budget, 5), {}, TypeError, "path = 5 has type int"),
        (("2026.jsonl", out), {}, TypeError, "budget = .* give a Budget"),
        ((budget, out, str(tmp_path / "a.csv")), {}, TypeError, "files = .*: give several paths"),
        ((budget, out, [5]), {}, TypeError, "files = 5 has type int"),
        ((budget, out, [tmp_path / "a.html"]), {}, ValueError, r"files = .* in \.csv or \.parq"),
        ((budget, out, [tmp_path / "edited.csv"]), {}, ValueError, r"edited\.csv cannot be read"),
        ((budget, out, [tmp_path / "none.csv"]), {}, FileNotFoundError, "none"),
        ((budget, out), {"about": {"x": "y"}}, ValueError, "a key of about = 'x'"),
        ((budget, out), {"overwrite": 1}, TypeError, "overwrite"),
    ]
    for arguments, options, error, message in refused:
        with pytest.raises(error, match=message):
            tables.report(*arguments, **options)
        assert sorted(tmp_path.iterdir()) == before
    tables.report(budget, tmp_path / "a.html", overwrite=True)
    assert Parts(tmp_path / "a.html").texts["h1"] == ["Privacy budget"]


def test_a_ledger_is_opened_to_be_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An auditor has no permission to write it, and does not know its limits."""
    Budget.open(tmp_path / "2026.jsonl", epsilon=9).book(1, label="May")
    modes = []
    opened = _journal.foreign.opened

    def watched(path: Path, mode: str, refusal: Exception) -> Any:
        modes.append(mode)
        return opened(path, mode, refusal)

    monkeypatch.setattr(_journal.foreign, "opened", watched)
    given = ["budget", str(tmp_path / "2026.jsonl"), "--report", str(tmp_path / "r.html")]
    assert cli.main(given) == 0
    assert {*modes} == {"rb"}
    assert Parts(tmp_path / "r.html").rows["Releases"][1][1] == "May"
