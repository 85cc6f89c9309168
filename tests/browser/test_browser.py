"""The page of a published table in chromium, without a network: `make site` runs these tests."""

import itertools
import json
import math
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright import sync_api

import geomdp
from geomdp import GeometricMechanism, accuracy
from geomdp.tables import Design, Hierarchy
from geomdp.tables._publish import page as _page
from leaves import of_leaves
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
    context = browser.new_context(offline=True, accept_downloads=True)
    wrong: list[str] = []

    def opened(release: Any) -> Any:
        path = tmp_path / "a.html"
        release.save(path, overwrite=True)
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
    context.close()
    assert [each for each in wrong if not each.startswith("blob:")] == []


@pytest.mark.parametrize("rate", ["1/200", "1/3", "1", "9"])
def test_sums_have_the_reach_of_the_library(open_page: Any, rate: str) -> None:
    """Never less, and where it is more, by one: its level is smaller by the transform's errors."""
    mechanism = GeometricMechanism(rate)
    # Wide noise has long transforms.
    numbers = [*range(1, 30), 100, 641] if float(Fraction(rate)) > 0.1 else [1, 2, 3, 29, 641]
    levels = [_page.level(each) / parts for each in _page.CONFIDENCES for parts in (1, 2)]
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


def ends_of(answer: Any) -> Any:
    """Return the ends of intervals as a page has them: what bounds leave open is infinite."""
    ends = answer[["lower", "upper"]].to_numpy().astype(float)
    return np.where(np.abs(ends) < 2.0**53, ends, np.copysign(np.inf, ends))


@pytest.mark.parametrize("name", [name for name in RELEASED if name != "top"])
def test_rows_have_the_intervals_of_the_library(open_page: Any, name: str) -> None:
    release = RELEASED[name]
    page = open_page(release)
    for confidence in _page.CONFIDENCES:
        wanted = release.intervals(_page.level(confidence))
        found = np.array(page.evaluate(f"rows.map((row) => answer(row, {confidence}))"))
        estimates = wanted["estimate" if "estimate" in wanted else release.design.name]
        assert np.allclose(found[:, 0], estimates, atol=0.005)
        assert (found[:, 1:] == ends_of(wanted)).all()

    seen = {label: text for each in release.design.labels.values() for label, text in each.items()}

    # As in the CSV file, but for nulls and labels.
    def text(level: Any) -> str:
        if level is None:
            return "(none)"
        if level in seen:
            return f"{seen[level]} ({level})"
        return str(level).lower() if isinstance(level, bool) else str(level)

    keys = [each if isinstance(each, tuple) else (each,) for each in release.to_dict()]
    levels = [[*map(text, key)] for key in keys]
    assert page.evaluate("rows.map((row) => row.texts)") == levels


def test_chosen_rows_are_added_compared_and_shared(open_page: Any) -> None:
    release = DESIGNS["flat"].count(PEOPLE).release(epsilon="0.5")
    # Fixed, since Python and the browser may round half a tenth of a percent apart.
    release.counts[:] = [[301, 97], [305, 102], [293, 110]]
    page, cells = open_page(release), release.counts.reshape(-1)
    [mechanism] = release.mechanisms.values()
    boxes = page.locator("tbody input")
    for row, column in [(0, 0), (1, 0), (2, 0), (2, 1), (3, 1)]:
        boxes.nth(2 * row + column).check()
    page.get_by_label("Population of A").fill("50000")
    said = page.locator("#answers p").all_inner_texts()

    def between(estimate: Any, reach: int, unit: str = "", factor: float = 1) -> str:
        ends = [factor * (estimate + sign * reach) for sign in (-1, 1)]
        return f"{factor * estimate:,g}{unit}, interval {ends[0]:,g}{unit} to {ends[1]:,g}{unit}"

    level = Fraction(1, 20)
    three = accuracy.sum_accuracy(mechanism, 3, level)
    total = int(cells[:3].sum())
    assert said[0] == f"A, 3 rows: {between(total, three)}"
    assert said[2] == f"A per 100,000: {between(total, three, factor=2)}"
    two = accuracy.sum_accuracy(mechanism, 2, level)
    assert said[3] == f"B, 2 rows: {between(int(cells[2:4].sum()), two)}"
    # The cell that both have adds no noise.
    three = accuracy.sum_accuracy(mechanism, 3, level)
    assert said[4] == f"A minus B: {between(int(cells[:2].sum() - cells[3]), three)}"
    half = accuracy.sum_accuracy(mechanism, 3, level / 2)
    rest = int(cells[3:].sum())
    # Rounded outwards.
    ends = [x * math.ceil(x * 1000 * (total + x * half) / (total + rest)) / 10 for x in (-1, 1)]
    assert said[1] == (
        f"A in all: {round(100 * total / (total + rest), 1):g}%, "
        f"interval {ends[0]:g}% to {ends[1]:g}%"
    )
    page.get_by_role("button", name="Clear A and B").click()
    assert page.locator("#answers").inner_text() == "Choose rows for A and B in the table."


def test_sums_of_rounded_rows_are_those_of_the_library(open_page: Any) -> None:
    """Wider by half a step for each row, or Python and the page would differ."""
    release = RELEASED["rounded"]
    page = open_page(release)
    [mechanism] = release.mechanisms.values()
    for n in range(1, 7):
        found = page.evaluate(f"sum([...Array({n}).keys()], 95).reach")
        # The level of the page is smaller by the errors of its transform.
        assert 0 <= found - (accuracy.sum_accuracy(mechanism, n, Fraction(1, 20)) + 5 * n) <= 1
    one = page.evaluate("difference([0, 1], [1, 2], 95)")
    assert one["upper"] - one["estimate"] == page.evaluate("sum([0, 2], 95).reach")
    page.evaluate("state.chosen = true")
    each = accuracy.sum_accuracy(mechanism, 1, Fraction(1, 20) / 6) + 5
    assert page.evaluate("sum([0, 1, 2], 95).reach") == 3 * each
    assert "rounded to multiples of 10: intervals allow for it" in page.content()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("groups", "These counts cannot be added: they were chosen by their noise."),
        ("top", "These counts cannot be added: they were chosen by their noise."),
        ("bounds", "Counts with bounds cannot be added: errors at a bound share a sign."),
        ("tree", None),
    ],
)
def test_what_cannot_be_added_is_not(open_page: Any, name: str, why: str | None) -> None:
    page = open_page(RELEASED[name])
    if why is not None:
        assert page.locator("#answers").inner_text() == why
        assert page.locator("tbody input").count() == 0
    else:  # Sums of the tree cannot be chosen.
        assert page.evaluate("sum([0, 9], 95).why").startswith("rows that are sums")
        assert page.locator("tbody tr.sum input:enabled").count() == 0


def test_rows_are_searched_sorted_and_turned(open_page: Any) -> None:
    page = open_page(RELEASED["ages"])
    assert page.locator("tbody tr").count() == 50
    assert page.locator("#where").inner_text() == "101 of 101 rows, page 1 of 3"
    page.get_by_role("button", name="Next").click()
    assert page.locator("tbody th").first.inner_text() == "50"
    assert page.evaluate("state.sort") is None
    page.get_by_role("button", name="count").click()
    assert page.evaluate("document.activeElement.textContent") == "count"
    assert page.locator("th[aria-sort=descending]").inner_text() == "count"
    first = int(page.locator("tbody td").first.inner_text().replace(",", ""))
    assert first == RELEASED["ages"].counts.max()
    page.get_by_label("Search").fill("99")
    assert page.locator("tbody th").all_inner_texts() == ["99"]
    page.get_by_label("Confidence").fill("5")
    assert page.locator("#confidence-text").inner_text() == "99.9%"
    assert page.locator("#chart svg").get_attribute("role") == "img"


@pytest.mark.parametrize("name", [name for name in RELEASED if name != "top"])
def test_rows_by_count_have_intervals_that_hold_at_once(open_page: Any, name: str) -> None:
    """Of a page sorted by count, none of the first 30 rows held if all counts were equal."""
    release = RELEASED[name]
    page = open_page(release)
    # The columns of levels are sorted by texts, which noise does not choose.
    levels = len(release.design.levels)
    for sort, together in [(0, levels == 0), (levels, True), (None, False)]:
        page.evaluate(f"state.sort = {json.dumps(sort)}; draw()")
        heading = page.locator("thead th.number").last.inner_text()
        assert heading == f"95% intervals{', all at once' if together else ''}"
        said = page.locator("#where").inner_text()
        assert ("the intervals are wider" in said) == together
        assert not together or f"all {len(release.frame)} contain their true counts" in said
        for confidence in _page.CONFIDENCES:
            wanted = release.intervals(_page.level(confidence), simultaneous=together)
            found = np.array(page.evaluate(f"rows.map((row) => answer(row, {confidence}))"))
            assert (found[:, 1:] == ends_of(wanted)).all()


def test_sums_of_rows_by_count_hold_for_any_choice(open_page: Any) -> None:
    release = DESIGNS["flat"].count(PEOPLE).release(epsilon="0.5")
    release.counts[:] = [[301, 97], [305, 102], [293, 110]]
    page = open_page(release)
    [mechanism] = release.mechanisms.values()
    boxes, answers = page.locator("tbody input"), page.locator("#answers p")
    boxes.nth(0).check()
    boxes.nth(4).check()
    reach = accuracy.sum_accuracy(mechanism, 2, Fraction(1, 20))
    assert answers.first.inner_text() == f"A, 2 rows: 606, interval {606 - reach} to {606 + reach}"
    page.get_by_role("button", name="count").click()
    # Taking a row away is a choice, too.
    boxes.nth(2).uncheck()
    each = accuracy.sum_accuracy(mechanism, 1, Fraction(1, 20) / 6)
    assert answers.first.inner_text() == f"A, 1 rows: 305, interval {305 - each} to {305 + each}"
    boxes.nth(2).check()
    said = answers.all_inner_texts()
    assert said[0] == f"A, 2 rows: 606, interval {606 - 2 * each} to {606 + 2 * each}"
    assert said[-1] == "Chosen by count: these intervals hold for any choice of rows."
    page.get_by_role("button", name="Clear A and B").click()
    page.get_by_role("button", name="count").click()
    page.get_by_role("button", name="count").click()
    boxes.nth(0).check()
    boxes.nth(4).check()
    assert answers.first.inner_text() == f"A, 2 rows: 606, interval {606 - reach} to {606 + reach}"


def test_a_tree_folds(open_page: Any) -> None:
    release = RELEASED["tree"]
    page = open_page(release)
    # Each row is below that of its node's parent, of the same sex, and shown after it.
    keys = page.evaluate("selected().map((row) => row.texts)")
    above = page.evaluate("selected().map((row) => row.above?.texts ?? null)")
    assert sorted(map(tuple, keys)) == sorted(release.to_dict())
    for place, ((area, sex), found) in enumerate(zip(keys, above, strict=True)):
        parent = TREE.parents[area]
        assert found == (None if parent is None else [parent, sex])
        assert found is None or found in keys[:place]
    assert keys[:5] == [["all", "f"], ["South", "f"], ["C", "f"], ["North", "f"], ["A", "f"]]
    north = page.get_by_role("button", name="rows below North, f")
    assert north.get_attribute("aria-expanded") == "true"
    north.press("Enter")
    assert north.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.activeElement.ariaLabel") == "rows below North, f"
    shown = page.locator("tbody tr")
    assert shown.count() == len(keys) - 2
    # Paper shows all rows, and a search or an order the whole table.
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.count() == len(keys)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.get_by_label("Search").fill("A")
    assert "A" in page.locator("tbody th").all_text_contents()
    page.get_by_label("Search").fill("")
    for wanted in (len(keys), len(keys), len(keys) - 2):
        page.get_by_role("button", name="area", exact=True).click()
        assert shown.count() == wanted
    page.get_by_role("button", name="Unfold all rows").click()
    assert shown.count() == len(keys)
    page.get_by_role("button", name="Fold all rows").click()
    assert page.locator("tbody th").all_text_contents() == ["+all", "+all"]


def test_a_large_tree_starts_folded(open_page: Any) -> None:
    tree = Hierarchy(
        {f"town {n}": f"state {n // 50}" for n in range(100)}
        | {f"state {n}": "all" for n in range(2)},
        leaves_only=True,
    )
    page = open_page(of_leaves(tree, [0] * 100).release(epsilon=1))
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("button", name="rows below all").click()
    assert page.locator("tbody tr").count() == 3


#: Roles that a screen reader says by their names.
NAMED = {"button", "checkbox", "slider", "searchbox", "combobox", "spinbutton", "image", "heading"}
NAMED |= {"columnheader", "rowheader", "region", "table"}


@pytest.mark.parametrize("name", ["tree", "days", "top"])
def test_a_screen_reader_names_everything(open_page: Any, name: str) -> None:
    page = open_page(RELEASED[name])
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    said = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    assert [role for role, text in said if role in NAMED and not text.strip()] == []
    assert {"table", "rowheader", "heading", "button", "searchbox"} <= {role for role, _ in said}
    # Not the place on the slider.
    assert page.get_by_label("Confidence").get_attribute("aria-valuetext") == "95%"
    # What changes is said when it changes.
    live = page.locator("[aria-live=polite]").evaluate_all("found => found.map((x) => x.id)")
    assert live == ["where", "answers"]


@pytest.mark.parametrize("name", RELEASED)
def test_downloads_are_the_published_files(open_page: Any, tmp_path: Path, name: str) -> None:
    release = RELEASED[name]
    release.save(tmp_path / "a.csv")
    page = open_page(release)
    for button, file in [("Download CSV", "a.csv"), ("Download its description", "a.csv.json")]:
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        assert download.value.suggested_filename == file
        saved = Path(download.value.path()).read_bytes()
        assert saved == (tmp_path / file).read_bytes()


def test_texts_are_no_markup(open_page: Any) -> None:
    page = open_page(RELEASED["texts"])
    assert page.locator("b").count() == 0
    assert page.locator("tbody th").all_text_contents()[::2] == [*TEXTS, "(none)"]


def test_a_phone_and_paper_show_what_the_publisher_says(open_page: Any) -> None:
    """Below the title, as texts, lines apart, and no wider than the page."""
    page = open_page(RELEASED["texts"])
    assert page.title() == ABOUT["title"]
    for media, width in (("screen", 390), ("print", 390), ("print", 1000)):
        page.emulate_media(media=media)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("h1").inner_text() == ABOUT["title"]
        said = page.locator("main > .about")
        assert [each.is_visible() for each in said.all()] == [True, True]
        assert said.nth(0).inner_text() == ABOUT["description"]
        # A browser shows a line separator as the end of a line, too.
        texts = [text.replace("\u2028", "") for text in page.locator("dd").all_text_contents()]
        assert texts == [ABOUT[key].replace("\u2028", "") for key in [*ABOUT][2:]]
        for each in page.locator("h1, dt, dd, p.about").all():
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
    assert (tmp_path / "a.html").stat().st_size < 2 * 10**6
    assert page.locator("tbody tr").count() == 50
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tbody tr").count() == 10_000


def test_a_page_says_what_it_protects(open_page: Any) -> None:
    sentences = open_page(RELEASED["ages"]).locator("section").first.inner_text()
    assert (
        "the odds that one individual is among the data change by a factor of at most 1.649"
        in sentences
    )
    assert "at most 3 records in all" in sentences
    held = json.loads(open_page(RELEASED["flat"]).locator("#data").text_content())
    assert held["description"].startswith("{")
    assert geomdp.__version__ in held["description"]


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
