"""The page of a published table in chromium, without a network: `make site` runs these tests."""

import contextlib
import itertools
import math
import shutil
import urllib.parse
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright import sync_api

import geomdp
from geomdp import GeometricMechanism, accuracy
from geomdp.tables import Design, Hierarchy
from geomdp.tables._publish.page import shown as _page
from geomdp.tables._publish.page.shown import CONFIDENCES
from published_kinds import ABOUT, DESIGNS, PEOPLE, RELEASED, TEXTS, TREE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens the page of a release; whatever goes wrong there fails."""
    wrong: list[str] = []
    with contextlib.ExitStack() as contexts:

        def opened(release: Any, *, scripts: bool = True) -> Any:
            path = tmp_path / "a.html"
            release.save(path, overwrite=True)
            context = browser.new_context(offline=True, java_script_enabled=scripts)
            contexts.callback(context.close)
            page = context.new_page()
            page.on("console", lambda message: wrong.append(message.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "request",
                lambda each: wrong.append(each.url) if each.url != path.as_uri() else None,
            )
            page.goto(path.as_uri())
            return page

        yield opened
    assert wrong == []


def rows_of(page: Any) -> list[tuple[str, ...]]:
    """Return the names of the rows of a page, in its order, as any browser has them."""
    return [
        tuple(each.locator("th").all_text_contents()) for each in page.locator("tbody tr").all()
    ]


def texts_of(release: Any) -> list[tuple[str, ...]]:
    """Return the names of the rows of a release, as in the CSV file but for nulls and labels."""
    seen = {label: text for each in release.design.labels.values() for label, text in each.items()}

    def text(level: Any) -> str:
        if level is None:
            return "not stated"
        if level in seen:
            return f"{seen[level]} ({level})"
        return str(level).lower() if isinstance(level, bool) else str(level)

    keys = [each if isinstance(each, tuple) else (each,) for each in release.to_dict()]
    return [tuple(map(text, key)) or ("all",) for key in keys]


def shown(value: float) -> str:
    return f"{value + 0.0:,.0f}".replace("-", "\N{MINUS SIGN}")


def between(lower: float, upper: float) -> str:
    """Return the interval that a page shows: what bounds leave open has no end."""
    if upper >= 2**53:
        return f"{shown(lower)} or more"
    return f"{shown(lower)} to {shown(upper)}"


def answer_of(release: Any, alpha: Any, **how: Any) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return the number and the interval that the page of a release has to show, by row."""
    wanted = release.intervals(alpha, **how)
    numbers = wanted["estimate" if "estimate" in wanted else release.design.name]
    least = -math.inf if release.design.signed else 0
    return {
        key: (shown(max(np.rint(number), least)), between(lower, upper))
        for key, number, lower, upper in zip(
            texts_of(release), numbers, wanted["lower"], wanted["upper"], strict=True
        )
    }


def cells_of(page: Any) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return the number and the interval that a page shows, by row."""
    found = page.locator("tbody tr").evaluate_all(
        """all => all.map((row) => [
            [...row.querySelectorAll("th")].map((x) => x.lastChild.textContent),
            row.querySelector("th + td").textContent,
            row.querySelector("th + td + td").textContent])"""
    )
    return {tuple(names): (number, ends) for names, number, ends in found}


@pytest.mark.parametrize("rate", ["1/200", "1/3", "1", "9"])
def test_sums_have_the_reach_of_the_library(open_page: Any, rate: str) -> None:
    """Never less, and where it is more, by one: its level is smaller by the transform's errors."""
    mechanism = GeometricMechanism(rate)
    # Wide noise has long transforms.
    numbers = [*range(1, 30), 100, 641] if float(Fraction(rate)) > 0.1 else [1, 2, 3, 29, 641]
    levels = [_page.level(each) / parts for each in CONFIDENCES for parts in (1, 2)]
    page = open_page(RELEASED["flat"])
    found = page.evaluate(
        "([rate, cases]) => cases.map(([n, alpha]) => reach(rate, n, alpha))",
        [
            float(Fraction(rate)),
            [[n, float(level)] for n, level in itertools.product(numbers, levels)],
        ],
    )
    wanted = [
        accuracy.sum_accuracy(mechanism, n, level)
        for n, level in itertools.product(numbers, levels)
    ]
    more = np.array(found) - np.array(wanted)
    assert more.min() >= 0
    assert more.max() <= 1
    assert np.count_nonzero(more) <= 5


@pytest.mark.parametrize("name", [name for name in RELEASED if name != "top"])
def test_rows_have_the_numbers_and_intervals_of_the_library(open_page: Any, name: str) -> None:
    """With scripts at every confidence, without them at 95%: each row, and none below 0."""
    release = RELEASED[name]
    wanted = answer_of(release, _page.level(95))
    plain = open_page(release, scripts=False)
    assert sorted(rows_of(plain)) == sorted(texts_of(release))
    assert cells_of(plain) == wanted
    page = open_page(release)
    for confidence in CONFIDENCES:
        page.select_option("#confidence", str(confidence))
        assert cells_of(page) == answer_of(release, _page.level(confidence))


def test_a_page_without_scripts_is_whole(open_page: Any, tmp_path: Path) -> None:
    release = RELEASED["ages"]
    release.save(tmp_path / "a.csv")
    page = open_page(release, scripts=False)
    shown_rows = page.locator("tbody tr")
    assert shown_rows.count() == 101 == sum(each.is_visible() for each in shown_rows.all())
    assert page.locator("figure svg").get_attribute("role") == "img"
    for text, file in [("CSV file", "a.csv"), ("its description", "a.csv.json")]:
        with page.expect_download() as download:
            page.get_by_text(text, exact=True).click()
        assert Path(download.value.path()).read_bytes() == (tmp_path / file).read_bytes()
    assert not page.locator("button, input, select").first.is_visible()
    page.locator("details").last.locator("summary").click()
    assert "The noise is random" in page.locator("#noise").inner_text()


def test_a_count_below_0_is_shown_as_0_and_why(open_page: Any, tmp_path: Path) -> None:
    release = RELEASED["below 0"]
    page = open_page(release)
    assert not [number for number, _ in cells_of(page).values() if "\N{MINUS SIGN}" in number]
    assert "0 to 0" not in page.content()
    assert (
        "No true count is negative, so the table shows 0" in page.locator("#noise").text_content()
    )
    with page.expect_download() as download:
        page.get_by_text("CSV file", exact=True).click()
    assert ",-47\r\n" in Path(download.value.path()).read_bytes().decode()
    # Sums use the file: numbers cut at 0 would add up too high.
    places = page.evaluate("rows.filter((row) => row.cell).map((row) => row.place)")
    total = int(release.counts[1:, 1:].sum())
    assert page.evaluate(f"sum({places}).total") == total


def add(page: Any, rows: list[int], group: str = "A") -> None:
    """Tick rows for a group."""
    if not page.locator("#sums").is_visible():
        page.get_by_role("button", name="Add up or compare rows").click()
    page.get_by_label(f"group {group}", exact=True).check()
    for row in rows:
        page.locator("tbody input").nth(row).check()


def test_chosen_rows_are_added_compared_and_shared(open_page: Any) -> None:
    release = DESIGNS["flat"].count(PEOPLE).release(epsilon="0.5")
    # Fixed, since Python and the browser may round half a tenth of a percent apart.
    release.counts[:] = [[301, 97], [305, 102], [293, 110]]
    page, cells = open_page(release), release.counts.reshape(-1)
    [mechanism] = release.mechanisms.values()
    add(page, [0, 1, 2])
    add(page, [2, 3], "B")
    page.get_by_label("Population of A").fill("50000")
    said = page.locator("#answers p").all_inner_texts()

    def of(estimate: Any, reach: int) -> str:
        estimate = int(estimate)
        return f"{shown(estimate)}, 95% interval {between(estimate - reach, estimate + reach)}"

    level = Fraction(1, 20)
    three = accuracy.sum_accuracy(mechanism, 3, level)
    total = int(cells[:3].sum())
    assert said[0] == f"A (3 rows): {of(total, three)}"
    per = [f"{2 * each:,.1f}" for each in (total, total - three, total + three)]
    assert said[2] == f"A per 100,000 people: {per[0]}, 95% interval {per[1]} to {per[2]}"
    two = accuracy.sum_accuracy(mechanism, 2, level)
    assert said[3] == f"B (2 rows): {of(cells[2:4].sum(), two)}"
    # The cell that both have adds no noise.
    three = accuracy.sum_accuracy(mechanism, 3, level)
    assert said[4] == f"A minus B: {of(cells[:2].sum() - cells[3], three)}"
    half = accuracy.sum_accuracy(mechanism, 3, level / 2)
    rest = int(cells[3:].sum())
    # Rounded outwards.
    ends = [x * math.ceil(x * 1000 * (total + x * half) / (total + rest)) / 10 for x in (-1, 1)]
    assert said[1] == (
        f"A as a share of the total: {round(100 * total / (total + rest), 1):.1f}%, "
        f"95% interval {ends[0]:.1f}% to {ends[1]:.1f}%"
    )
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#answers").inner_text() == "No rows ticked yet."
    page.get_by_role("button", name="Tick all rows shown").click()
    assert page.locator("#answers p").first.inner_text().startswith("B (6 rows): 1,208")


def test_sums_of_rounded_rows_are_those_of_the_library(open_page: Any) -> None:
    """Wider by half a step for each row, or Python and the page would differ."""
    release = RELEASED["rounded"]
    page = open_page(release)
    [mechanism] = release.mechanisms.values()
    for n in range(1, 7):
        found = page.evaluate(f"sum([...Array({n}).keys()]).reach")
        # The level of the page is smaller by the errors of its transform.
        assert 0 <= found - (accuracy.sum_accuracy(mechanism, n, Fraction(1, 20)) + 5 * n) <= 1
    one = page.evaluate("difference([0, 1], [1, 2])")
    assert one["upper"] - one["estimate"] == page.evaluate("sum([0, 2]).reach")
    page.evaluate("state.chosen = true")
    each = accuracy.sum_accuracy(mechanism, 1, Fraction(1, 20) / 6) + 5
    assert page.evaluate("sum([0, 1, 2]).reach") == 3 * each
    assert "rounded to multiples of 10, which the intervals allow for" in page.content()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("groups", "The rows shown were chosen by their noise, so this page does not add them up."),
        ("top", None),
        ("bounds", "This page does not add up these rows. The Python library geomdp gives any sum"),
        ("tree", None),
    ],
)
def test_what_cannot_be_added_is_not(open_page: Any, name: str, why: str | None) -> None:
    page = open_page(RELEASED[name])
    assert page.locator("#add").is_visible() == (name == "tree")
    if why is not None:
        assert why in page.locator("#noise").text_content()
    elif name == "tree":  # Sums of the tree cannot be ticked.
        add(page, [])
        assert page.locator("tbody tr.sum input").count() == 0
        assert page.locator("tbody input").count() == 6


def test_rows_are_searched_sorted_and_shown(open_page: Any) -> None:
    page = open_page(RELEASED["ages"])
    visible = page.locator("tbody tr:visible")
    assert visible.count() == 100
    page.get_by_role("button", name="Show 1 more row").click()
    assert visible.count() == 101
    assert page.evaluate("state.sort") is None
    button = page.get_by_role("button", name="Sort by count")
    button.click()
    assert page.evaluate("document.activeElement.ariaLabel") == "Sort by count"
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("count")
    counts = [
        int(each.replace(",", "")) for each in page.locator("tbody th + td").all_text_contents()
    ]
    assert counts == sorted(RELEASED["ages"].counts.clip(0).tolist(), reverse=True)
    button.click()
    assert page.locator("th[aria-sort=ascending]").count() == 1
    button.click()
    assert page.locator("th[aria-sort=none]").count() == 2
    assert [names[0] for names in rows_of(page)] == [*map(str, range(100)), str(2**60)]
    page.get_by_label("Search").fill("99")
    assert visible.locator("th").all_inner_texts() == ["99"]
    assert page.locator("#where").inner_text() == "1 of 101 rows."


@pytest.mark.parametrize("name", [name for name in RELEASED if name != "top"])
def test_rows_by_count_have_intervals_that_hold_at_once(open_page: Any, name: str) -> None:
    """Of a page sorted by count, none of the first 30 rows held if all counts were equal."""
    release = RELEASED[name]
    page = open_page(release)
    if len(release.frame) < 3:
        assert page.locator("thead button").count() == 0
        return
    heads = page.locator("thead th button")
    # The columns of levels are sorted by texts, which noise does not choose.
    for sort, together in [(heads.first, False), (heads.last, True), (None, False)]:
        if sort is None:
            page.evaluate("state.sort = null; draw()")
        else:
            sort.click()
        heading = page.locator("thead .i").inner_text()
        assert heading == f"95% interval{', all at once' if together else ''}"
        said = page.locator("#where").text_content()
        assert ("the intervals are wider" in said) == together
        assert not together or f"all {len(release.frame)} contain their true counts" in said
        for confidence in CONFIDENCES:
            page.select_option("#confidence", str(confidence))
            alpha = _page.level(confidence)
            assert cells_of(page) == answer_of(release, alpha, simultaneous=together)
        page.select_option("#confidence", "95")


def test_sums_of_rows_by_count_hold_for_any_choice(open_page: Any) -> None:
    release = DESIGNS["flat"].count(PEOPLE).release(epsilon="0.5")
    release.counts[:] = [[301, 97], [305, 102], [293, 110]]
    page = open_page(release)
    [mechanism] = release.mechanisms.values()
    boxes, answers = page.locator("tbody input"), page.locator("#answers p")
    add(page, [0, 2])
    reach = accuracy.sum_accuracy(mechanism, 2, Fraction(1, 20))
    two = f"A (2 rows): 606, 95% interval {606 - reach} to {606 + reach}"
    assert answers.first.inner_text() == two
    by_count = page.get_by_role("button", name="Sort by count")
    by_count.click()
    # Taking a row away is a choice, too.
    boxes.nth(1).uncheck()
    each = accuracy.sum_accuracy(mechanism, 1, Fraction(1, 20) / 6)
    said = f"A (1 row): 305, 95% interval {305 - each} to {305 + each}"
    assert answers.first.inner_text() == said
    boxes.nth(1).check()
    said = answers.all_inner_texts()
    assert said[0] == f"A (2 rows): 606, 95% interval {606 - 2 * each} to {606 + 2 * each}"
    assert said[-1] == "The rows were sorted by count: these intervals hold for any choice of rows."
    page.get_by_role("button", name="Clear").click()
    by_count.click()
    by_count.click()
    add(page, [0, 2])
    assert answers.first.inner_text() == two


def test_a_tree_folds(open_page: Any) -> None:
    release = RELEASED["tree"]
    page = open_page(release)
    # All rows of a node stand together, each node above those that it contains.
    order = [area for area in ("all", "South", "C", "North", "A", "B") for _ in "fm"]
    keys = page.evaluate("rows.map((row) => row.texts)")
    assert keys == [[area, sex] for area, sex in zip(order, "fm" * 6, strict=True)]
    depths = page.evaluate("rows.map((row) => row.depth)")
    above = {area: sum(1 for _ in ancestors(area)) for area in order}
    assert depths == [above[area] for area in order]
    north = page.get_by_role("button", name="parts of North")
    assert north.get_attribute("aria-expanded") == "true"
    north.press("Enter")
    assert north.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.activeElement.ariaLabel") == "parts of North"
    visible = page.locator("tbody tr:visible")
    assert visible.count() == len(keys) - 4
    # Paper shows all rows, and an order the whole table.
    page.emulate_media(media="print")
    assert visible.count() == len(keys)
    page.emulate_media(media="screen")
    for wanted in (len(keys), len(keys), len(keys) - 4):
        page.get_by_role("button", name="Sort by area").click()
        assert visible.count() == wanted
    page.get_by_role("button", name="Open all levels").click()
    assert visible.count() == len(keys)
    page.get_by_role("button", name="Close all levels").click()
    assert visible.locator("th").all_text_contents() == ["+all", "f", "all", "m"]


def ancestors(area: str) -> Iterator[str]:
    while (area := TREE.parents[area]) is not None:
        yield area


@pytest.mark.parametrize("first", [True, False])
def test_a_large_tree_starts_folded(open_page: Any, first: bool) -> None:
    """In any column, and a search finds what is folded."""
    tree = Hierarchy(
        {f"town {n}": f"state {n // 50}" for n in range(100)}
        | {f"state {n}": "all" for n in range(2)},
        leaves_only=True,
    )
    levels = {"area": tree} if first else {"sex": ["f"], "area": tree}
    data = pd.DataFrame({"area": ["town 1"], "sex": ["f"]})
    page = open_page(Design(levels).count(data).release(epsilon=1))
    visible = page.locator("tbody tr:visible")
    assert visible.count() == 3
    page.get_by_role("button", name="parts of state 1").click()
    assert visible.count() == 53
    page.get_by_label("Search").fill("town 17")
    assert visible.count() == 1


def test_each_chosen_table_has_its_own_columns(open_page: Any) -> None:
    """As of a design with one, and none of them has a word for a sum over the others."""
    design = Design(
        {"area": ["A", "B", "C"], "sex": ["f", "m"], "well": [True, False]},
        tables=[("area", "sex"), "well", ()],
    )
    release = design.count(PEOPLE).release(epsilon=1)
    page = open_page(release)
    captions = page.locator("caption").all_text_contents()
    assert captions == [
        "Table 1. Count by area and sex",
        "Table 2. Count by well",
        "Table 3. Count",
    ]
    assert [each.locator("tbody tr").count() for each in page.locator("table").all()] == [6, 2, 1]
    assert rows_of(page)[-3:] == [("true",), ("false",), ("all",)]
    assert page.locator("tr.sum").count() == 0
    wanted = release.intervals(0.05)
    found = [ends for _, ends in cells_of(page).values()]
    assert found == [between(*ends) for ends in wanted[["lower", "upper"]].to_numpy()]


#: Roles that a screen reader says by their names.
NAMED = {"button", "checkbox", "slider", "searchbox", "combobox", "spinbutton", "image", "heading"}
NAMED |= {"columnheader", "rowheader", "region", "table"}


@pytest.mark.parametrize("name", ["tree", "days", "top"])
def test_a_screen_reader_names_everything(open_page: Any, name: str) -> None:
    page = open_page(RELEASED[name])
    if page.locator("#add").is_visible():
        add(page, [])
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    said = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    assert [role for role, text in said if role in NAMED and not text.strip()] == []
    assert {"table", "rowheader", "heading", "region"} <= {role for role, _ in said}
    # What changes is said when it changes.
    live = page.locator("[aria-live=polite]").evaluate_all("found => found.map((x) => x.id)")
    assert sorted(live) == ["answers", "where"]


@pytest.mark.parametrize("name", RELEASED)
def test_downloads_are_the_published_files(open_page: Any, tmp_path: Path, name: str) -> None:
    release = RELEASED[name]
    release.save(tmp_path / "a.csv")
    page = open_page(release)
    for text, file in [("CSV file", "a.csv"), ("its description", "a.csv.json")]:
        with page.expect_download() as download:
            page.get_by_text(text, exact=True).click()
        assert download.value.suggested_filename == file
        saved = Path(download.value.path()).read_bytes()
        assert saved == (tmp_path / file).read_bytes()


@pytest.mark.parametrize("scripts", [True, False])
def test_texts_are_no_markup(open_page: Any, scripts: bool) -> None:
    page = open_page(RELEASED["texts"], scripts=scripts)
    assert page.locator("b").count() == 0
    assert [names[0] for names in rows_of(page)][::2] == [*TEXTS, "not stated"]


def test_a_phone_and_paper_show_what_the_publisher_says(open_page: Any) -> None:
    """As texts, lines apart, and no wider than the page."""
    page = open_page(RELEASED["texts"])
    assert page.title() == ABOUT["title"]
    for media, width in (("screen", 390), ("print", 390), ("print", 1000)):
        page.emulate_media(media=media)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("h1").inner_text() == ABOUT["title"]
        said = page.locator("p.about")
        assert all(each.is_visible() for each in said.all())
        order = ["description", "period", "source", "publisher", "contact", "licence"]
        texts = [f"{key.capitalize()}: " * (key != "description") + ABOUT[key] for key in order]
        # A browser shows a line separator as the end of a line, too.
        found = [text.replace("\u2028", "") for text in said.all_text_contents()]
        assert found == [text.replace("\u2028", "") for text in texts]
        for each in page.locator("h1, p.about").all():
            box = each.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", RELEASED)
def test_everything_has_a_name_and_fits(open_page: Any, name: str) -> None:
    page = open_page(RELEASED[name])
    nameless = "[...document.querySelectorAll('input, select')].filter((x) => !x.labels.length"
    assert page.evaluate(f"{nameless} && !x.ariaLabel).length") == 0
    for width in (390, 768, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", RELEASED)
def test_axe_finds_nothing(open_page: Any, name: str) -> None:
    """By the rules of axe-core for WCAG and for good practice, contrast among them."""
    page = open_page(RELEASED[name])
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = [
            (rule["id"], node["html"])
            for rule in Axe().run(page).response["violations"]
            for node in rule["nodes"]
        ]
        # A level that is a space is the publisher's.
        assert [each for each in found if not each[1].endswith("> </th>")] == []


def test_words_stay_whole_on_a_telephone(open_page: Any) -> None:
    names = ["Niedersachsen", "Mecklenburg und Vorpommern", "Nordrhein und Westfalen", 60 * "long"]
    levels = {"state": names, "employment": ["unemployed", "selbstst\u00e4ndig"]}
    page = open_page(
        Design(levels).count(pd.DataFrame(levels | {"state": names[:2]})).release(epsilon=1)
    )
    page.set_viewport_size({"width": 390, "height": 900})
    # The boxes around each word.
    lines = page.evaluate("""() => [...document.querySelectorAll("h1, h2, p, th, td")].flatMap(
        (cell) => [...cell.childNodes].filter((x) => x.nodeType === 3).flatMap((text) =>
            [...text.data.matchAll(/\\S+/g)].map((word) => {
                const range = document.createRange();
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                return [word[0], new Set([...range.getClientRects()].map((x) => x.top)).size];
            })))""")
    assert len(lines) > 100
    assert {word for word, number in lines if number > 1} == {names[-1]}
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_ten_thousand_rows_are_printed_whole(open_page: Any, tmp_path: Path) -> None:
    towns = [f"town {n}" for n in range(10_000)]
    data = pd.DataFrame({"town": towns[:500] * 5})
    page = open_page(Design({"town": towns}).count(data).release(epsilon=1))
    assert (tmp_path / "a.html").stat().st_size < 1.1 * 10**6
    assert page.locator("tbody tr:visible").count() == 100
    page.emulate_media(media="print")
    assert page.locator("tbody tr:visible").count() == 10_000


def test_paper_has_the_names_of_columns_and_the_notes(open_page: Any) -> None:
    page = open_page(RELEASED["margins"])
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    heads = page.locator("thead th:visible").all_inner_texts()
    assert heads == ["area", "sex", "count", "95% interval"]
    assert page.locator("#noise").is_visible()
    assert page.locator("button:visible, input:visible, select:visible").count() == 0


def test_the_first_number_is_near_the_top_of_a_phone(open_page: Any) -> None:
    for name in ("margins", "tree"):
        page = open_page(RELEASED[name])
        page.set_viewport_size({"width": 375, "height": 812})
        page.reload()
        assert page.locator("tbody td").first.bounding_box()["y"] < 420


def test_a_page_says_what_it_protects(open_page: Any) -> None:
    page = open_page(RELEASED["ages"])
    sentences = page.locator("#noise").text_content()
    odds = "the odds that a given individual is in the data by a factor of at most 1.65"
    assert odds in sentences
    assert "contributes at most 3 records" in sentences
    address = page.get_by_text("its description", exact=True).get_attribute("href")
    assert geomdp.__version__ in urllib.parse.unquote(address)


@pytest.mark.parametrize(
    "given",
    [
        (100, 10, 1, 1, 0, 95),
        (1000, 999, 3, 2, -1, 80),
        (1, 5, 4, 1, -1, 99),
        (40, 2, 5, 1, -2, 90),
    ],
)
def test_the_planner_has_the_errors_of_the_library(browser: Any, given: tuple[int, ...]) -> None:
    cells, region, l0, linf, power, confidence = given
    text, root = (ROOT / "docs/planner.md").read_text(), ROOT / "python/geomdp/tables/_publish/page"
    for script in (root / "noise.js", ROOT / "docs/javascripts/planner.js"):
        tag = f'<script src="javascripts/{script.name}"></script>'
        assert tag in text
        text = text.replace(tag, f"<script>{script.read_text()}</script>")
    page = browser.new_page()
    page.set_content(text)
    for name, value in [("cells", cells), ("region", region), ("l0", l0), ("linf", linf)]:
        page.fill(f"#plan-{name}", str(value))
    page.fill("#plan-epsilon", str(power))
    page.select_option("#plan-confidence", str(confidence))
    epsilon, alpha = Fraction(10) ** power, 1 - Fraction(confidence, 100)
    # An individual has no more cells than there are.
    mechanism = GeometricMechanism(epsilon, min(l0, cells) * linf)
    wanted = {
        "cell": mechanism.accuracy(alpha),
        "region": accuracy.sum_accuracy(mechanism, min(region, cells), alpha),
        "total": accuracy.sum_accuracy(mechanism, cells, alpha),
        "all": accuracy.simultaneous_accuracy(mechanism, alpha, n=cells),
    }
    for name, error in wanted.items():
        found = page.locator(f"#plan-{name}-error").inner_text()
        assert 0 <= int(found.removeprefix("± ").replace(",", "")) - error <= 1
    namespace: dict[str, Any] = {}
    lines = page.locator("#plan-python").inner_text().replace("[...]", f"range({cells})")
    exec(lines.rpartition("\n")[0], namespace)
    # The picture has the most probable error, none.
    heights = "lines => Math.max(...lines.map((x) => x.y1.baseVal.value - x.y2.baseVal.value))"
    assert page.locator("#plan-picture line").evaluate_all(heights) == pytest.approx(140)
    stated = namespace["design"].accuracy(epsilon=str(float(epsilon)), alpha=alpha)
    assert stated == wanted["cell"]
    page.close()
