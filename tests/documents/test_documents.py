"""Examples and references in the documents."""

import doctest
import math
import re
import shlex
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import format_pages
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from geomdp import GeometricMechanism, cli, tables
from geomdp.accounting import Budget
from geomdp.accuracy import epsilon_to_accuracy
from geomdp.distribution import TwoSidedGeometric
from published_kinds import RUN

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "docs/cookbook").glob("[!i]*.md"))
PROOFS = ROOT / "docs" / "proofs.md"
FENCED = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run(text: str, name: str, flags: int = 0) -> doctest.TestResults:
    """Run examples as one session."""
    session = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(session)
    return runner.summarize(verbose=False)


@pytest.mark.parametrize(
    ("document", "examples"),
    [
        ("tutorial.md", 40),
        ("gallery.md", 20),
        ("install.md", 1),
        ("choosing_epsilon.md", 20),
        ("tables.md", 20),
        ("guides/plan.md", 9),
        ("guides/lawyer.md", 2),
        ("guides/limits.md", 20),
        ("guides/nightly_spark.md", 7),
        ("guides/groups.md", 10),
        ("guides/searches.md", 15),
        ("guides/ids.md", 8),
        ("guides/top.md", 10),
        ("guides/schools.md", 15),
        ("guides/tiers.md", 14),
        ("guides/rates.md", 15),
        ("guides/chosen_tables.md", 20),
        ("guides/missing.md", 12),
        ("guides/keys.md", 20),
        ("guides/corrections.md", 10),
        ("guides/excel.md", 10),
        ("guides/page.md", 5),
        ("guides/statistics.md", 8),
        ("guides/rounding.md", 10),
        ("guides/suppression.md", 18),
        ("accuracy.md", 18),
        ("bounds.md", 8),
        ("consistency.md", 10),
        ("reruns.md", 15),
        ("migration.md", 9),
    ],
)
def test_examples(
    document: str, examples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # Some write files.
    text = "\n".join(FENCED.findall((ROOT / "docs" / document).read_text()))
    failed, attempted = run(text, document)
    pyplot.close("all")
    assert failed == 0
    assert attempted > examples


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_is_short_and_ends_in_a_file_or_a_picture(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [block] = FENCED.findall(path.read_text())
    assert block.count("\n>>> ") <= 13
    failed, attempted = run(block, path.name)
    assert failed == 0
    assert attempted > 3
    assert [*tmp_path.glob("*.csv"), *pyplot.get_fignums()]
    pyplot.close("all")
    index = (path.parent / "index.md").read_text()
    assert index.count(f"]({path.name})") == 1


def test_interval_of_an_ab_test_covers_the_effect() -> None:
    """The function of the recipe, for 300 people of whom 30% and 40% buy, at epsilon 1.

    The share of 40,000 fixed draws has a standard deviation of 0.0011. The rest of the tolerance
    is for the normal approximation.
    """
    [block] = FENCED.findall((ROOT / "docs/cookbook/ab_test.md").read_text())
    examples = doctest.DocTestParser().get_examples(block)
    [source] = [each.source for each in examples if each.source.startswith("def effect")]
    names: dict[str, Any] = {"np": np}
    exec(source, names)
    rng, size = np.random.default_rng(2026), (2, 40_000)

    def noise() -> Any:
        stop = 1 - np.exp(-1)
        return rng.geometric(stop, size) - rng.geometric(stop, size)

    bought = rng.binomial(150, [[0.3], [0.4]], size)
    yes, no = bought + noise(), 150 - bought + noise()
    lower, _, upper = names["effect"](yes, no, TwoSidedGeometric(scale=1).var())
    assert abs(((lower <= 0.1) & (upper >= 0.1)).mean() - 0.95) < 0.01
    # With intervals for the noise alone, most of the effects are missed, as the recipe says.
    rate, total = yes / (yes + no), yes + no
    alone = TwoSidedGeometric(scale=1).var() * (rate**2 + (1 - rate) ** 2) / total**2
    covered = abs(rate[1] - rate[0] - 0.1) <= 1.96 * np.sqrt(alone.sum(axis=0))
    assert covered.mean() < 0.35


def test_copies_for_spreadsheets_keep_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the guide: the bytes that a double click needs, and no cell that runs."""
    monkeypatch.chdir(tmp_path)
    blocks = FENCED.findall((ROOT / "docs/guides/excel.md").read_text())
    [block] = [each for each in blocks if "cases-excel.csv" in each]
    [names] = [each for each in blocks if "names = " in each]
    levels = ["Zürich", "=1+1", "'@x", "10-19", "007", "NA", "a;b", "-1", *RUN]
    made = tables.Design({"region": levels}).count(pd.DataFrame({"region": levels * 50}))
    noisy = made.release(epsilon=1, save="cases.csv")
    examples = doctest.DocTestParser().get_examples(block + names)
    found = {"pd": pd, "noisy": noisy}
    exec("".join(each.source for each in examples[:-1]), found)
    cells = pd.read_csv("cases.csv", dtype=str, keep_default_na=False)
    for name in ("cases", "percent"):
        content = Path(f"{name}-excel.csv").read_bytes()
        assert content.startswith(b"\xef\xbb\xbfregion;")
        again = pd.read_csv(f"{name}-excel.csv", sep=";", dtype=str, keep_default_na=False)
        assert len(again) == len(levels)
        if name == "cases":
            pd.testing.assert_frame_equal(again, cells)
        else:
            assert again["percent"].str.contains(",").any()
            assert not again["percent"].str.contains(".", regex=False).any()
    # But for numbers, the apostrophes are those of the file.
    known = cells["region"].where(cells["region"] != "-1", "'-1")
    assert found["names"].tolist() == known.tolist()


#: Of each program: the page, and its names of what Python calls otherwise.
FORMULAS: dict[str, tuple[str, dict[str, str]]] = {
    "stata": ("statistics", {"`rate'": "rate", "`error'": "error", "ln(": "log("}),
    "sas": ("statistics", {}),
    "spss": ("statistics", {"LN(": "log(", "TRUNC(": "trunc("}),
    "powerquery": (
        "statistics",
        {"List.Max({": "max(", "})": ")", "Number.RoundUp": "ceil", "Number.Ln": "log",
         "Number.Exp": "exp"},
    ),
    "tableau": ("statistics", {"LN(": "log(", "CEILING": "ceil"}),
    "excel": ("excel", {"LN(": "log(", "E1": "rate", "E2": "error", "B2": "count"}),
}  # fmt: skip


def formulas(program: str) -> dict[str, str]:
    """Return the expressions of a program that make an error and its ends, in Python."""
    page, words = FORMULAS[program]
    text = (ROOT / f"docs/guides/{page}.md").read_text()
    if program == "excel":
        found = dict(re.findall(r"^\| (error|lower|upper) .*\| `=(.+?)`", text, re.MULTILINE))
    else:
        [block] = re.findall(rf"^```{program}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        block = block.replace('Table.AddColumn(Typed, "lower", each', "(")
        block = block.replace('Table.AddColumn(Lower, "upper", each', "(")
        pattern = r"^ *(?:\w+ )?(most|error|lower|upper)\b(?: =|:) (.+?)[.;,]?$"
        found = {
            name.lower(): each for name, each in re.findall(pattern, block, re.MULTILINE | re.I)
        }
    for name in found:
        for old, new in words.items():
            found[name] = found[name].replace(old, new)
        found[name] = re.sub(r"ROUNDUP\((.+), 0\)\)", r"ceil(\1))", found[name])
        found[name] = re.sub(r"[\[\]]", "", found[name]).lower()
    return found


@pytest.mark.parametrize("program", FORMULAS)
def test_formulas_of_other_programs_have_the_accuracy_and_the_intervals(program: str) -> None:
    known = {x: getattr(math, x) for x in ("ceil", "exp", "log", "trunc")} | {"max": max}
    parts = {name: compile(each, program, "eval") for name, each in formulas(program).items()}
    assert {*parts} - {"most"} == {"error", "lower", "upper"}
    for n in range(1, 201):
        rate = Fraction(n, 37)
        names: dict[str, Any] = {"rate": float(rate)}
        for name in ("most", "error"):
            if name in parts:
                names[name] = eval(parts[name], dict(known), names)
        assert names["error"] == GeometricMechanism(rate).accuracy(alpha=0.05), rate
    records = pd.DataFrame({"town": ["a"] * 30 + ["b"] * 3})
    for _ in range(20):
        noisy = tables.Design({"town": ["a", "b", "c"]}).count(records).release(epsilon="0.5")
        ends = noisy.intervals(alpha=0.05)
        for count, lower, upper in zip(
            noisy.frame["count"], ends["lower"], ends["upper"], strict=True
        ):
            names = {"rate": 0.5, "count": count, "error": 6}
            found = [eval(parts[name], dict(known), names) for name in ("lower", "upper")]
            assert found == [lower, upper], count


def test_a_change_of_two_percent_is_found_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts of the recipe: over all noise, and for samples whose size varies too."""
    monkeypatch.chdir(tmp_path)
    [block] = FENCED.findall((ROOT / "docs/cookbook/change.md").read_text())
    assert run(block, "change").failed == 0
    plan = pd.read_csv("plan.csv")
    rng, size = np.random.default_rng(2026), 40_000
    for epsilon, error, count, sample in plan.itertuples(index=False):
        reach = 40 * error
        pmf = TwoSidedGeometric(scale=2 / epsilon).pmf(np.arange(-reach, reach + 1))
        noise = np.convolve(pmf, pmf)  # of a difference, from -2 * reach
        value = np.arange(-2 * reach, 2 * reach + 1)
        assert noise[abs(value) > error].sum() <= 0.05 < noise[abs(value) >= error].sum()

        def found(change: float, noise: Any = noise, value: Any = value, error: Any = error) -> Any:
            return noise[change + value > error].sum()

        assert count * 0.02 == 2 * error + 1
        assert found(count * 0.02) >= 0.975
        assert found(error - 0.5) < 0.5
        before, after = rng.poisson([[sample], [1.02 * sample]], (2, size))
        change = after - before + rng.choice(value, size, p=noise / noise.sum())
        reached = change > (error**2 + 1.96**2 * (before + after)) ** 0.5
        assert abs(reached.mean() - 0.975) < 0.006


#: The number of municipalities of each county of Norway.
COUNTIES = {
    **{"Oslo": 1, "Rogaland": 23, "Møre og Romsdal": 27, "Nordland": 41, "Østfold": 12},
    **{"Akershus": 21, "Buskerud": 18, "Innlandet": 46, "Vestfold": 6, "Telemark": 17},
    **{"Agder": 25, "Vestland": 43, "Trøndelag": 38, "Troms": 21, "Finnmark": 18},
}
AREAS = [
    "Norway",
    *COUNTIES,
    *(f"{county} {n + 1}" for county, size in COUNTIES.items() for n in range(size)),
]
PLACES = [
    *("Norway", "Norway/Oslo", "Innlandet", "Vestland", "Norway/Oslo/Oslo"),
    *("Norway/Innlandet/Os", "Hamar", "Norway/Vestland/Os", "Bergen"),
]
#: The files that each guide publishes, with the levels of their rows in order.
GUIDES: dict[str, dict[str, list[Any]]] = {
    "registry": {
        "2026-10.csv": [
            (region, disease)
            for region in ("North", "South", "West")
            for disease in ("influenza", "measles", "pertussis", "tetanus")
        ]
    },
    "app_events": {
        "2026-11-22.csv": ["open", "search", "buy", "refund"],
        "2026-11-22-users.parquet": ["open", "search", "buy", "refund"],
    },
    "crosstab": {
        "cells.csv": [
            (age, transport)
            for age in ("young", "middle", "old")
            for transport in ("bicycle", "bus", "car", "train")
        ],
        "crosstab.csv": ["young", "middle", "old", "all"],
    },
    "streams": {
        f"day-{day}.csv": [(day, country) for country in ("Chile", "Ghana", "Nepal", "Tonga")]
        for day in range(10)
    },
    "hierarchy": dict.fromkeys(["founders.csv", "figures.csv"], AREAS),
    "trees": {
        "visits.csv": PLACES,
        "firms.csv": [
            *("all industries", "A", "F", "A01", "F43", "A01.1", "F43.2"),
            *("A01.11", "A01.12", "F43.21"),
        ],
        "homes.csv": [
            *("United States", "01", "02", "01001", "02013", "01001020100", "02013000100"),
            *("010010201001", "010010201002", "020130001001"),
        ],
        "noisy.csv": PLACES,
        # Not published.
        "places.csv": ["Norway"] * 5,
        "records.csv": [*range(400)],
    },
    "replacing_laplace": {"after.csv": ["Airport", "Harbour", "Market", "Park"]},
    "explaining_epsilon": {"options.csv": [0.1, 0.3, 0.5, 1, 2, 4]},
}


@pytest.mark.parametrize("guide", GUIDES)
def test_guide_publishes_every_row_once(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run must not replace the files; tests/clusters has the guide on Spark."""
    monkeypatch.chdir(tmp_path)
    text = "\n".join(FENCED.findall((ROOT / f"docs/guides/{guide}.md").read_text()))
    failed, attempted = run(text, guide)
    assert failed == 0
    assert attempted > 9
    # The budget's file is not published.
    published = {path.name: path.read_bytes() for path in tmp_path.glob("*[!l]")}
    described = {f"{name}.json" for name in published}
    assert published.keys() - described == GUIDES[guide].keys()
    for name, rows in GUIDES[guide].items():
        table = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
        labels = table.iloc[:, : 2 if isinstance(rows[0], tuple) else 1]
        assert list(labels.itertuples(index=False, name=None)) == [
            row if isinstance(row, tuple) else (row,) for row in rows
        ]
    run(text, guide)
    pyplot.close("all")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*[!l]")} == published


@pytest.mark.parametrize("wrong", [">>> 1 + 1\n3\n", ">>> 1 / 0\n", ">>> unknown\n"])
def test_wrong_example_fails(wrong: str) -> None:
    assert run(wrong, "wrong").failed == 1


def test_examples_of_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These show noisy counts, which differ on every run and are not compared."""
    monkeypatch.chdir(tmp_path)
    text = "\n".join(FENCED.findall((ROOT / "README.md").read_text()))
    noise_elided = re.sub(r"^array\(\[.*\]\)$", "array([...])", text, flags=re.MULTILINE)
    # The rows of a table.
    noise_elided = re.sub(r"^(\d +[A-Z]\w+ ).+$", r"\1...", noise_elided, flags=re.MULTILINE)
    failed, attempted = run(noise_elided, "README.md", doctest.ELLIPSIS)
    assert failed == 0
    assert attempted >= 10


def test_accuracies_of_readme() -> None:
    text = (ROOT / "README.md").read_text()
    table = re.search(r"^\| epsilon \|.*\n.*\n\| 95%.*\n\| with.*\n", text, re.MULTILINE)
    assert table is not None
    rows = [row.strip(" |").split(" | ")[1:] for row in table[0].splitlines()]
    epsilons = [float(cell) for cell in rows[0]]
    for cells, n in zip(rows[2:], [1, 100], strict=True):
        assert [int(cell) for cell in cells] == list(epsilon_to_accuracy(epsilons, 0.05, n=n))


def test_rerun_releases_once(tmp_path: Path) -> None:
    """The recipes of docs/reruns.md without an engine; tests/clusters has the others."""
    session: dict[str, Any] = {"Path": Path}
    for name, function in [("guides/nightly_spark", "publish"), ("reruns", "release_day")]:
        blocks = FENCED.findall((ROOT / f"docs/{name}.md").read_text())
        [block] = (each for each in blocks if f"def {function}(" in each)
        exec(compile(block, name, "exec"), session)
    counts = pd.DataFrame({"town": ["x", "y"] * 500, "n": [12, 7] * 500})
    final = tmp_path / "2026-11-22"

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def die(folder: Path) -> None:
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "some").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session["publish"](final, die)
    assert not final.exists()
    [left] = files()
    assert left.parent.name.startswith(".2026-11-22-")
    left.unlink()

    # Of two concurrent attempts the first to finish wins.
    def slow(folder: Path) -> None:
        session["release_day"](counts, final.name, tmp_path)
        (folder / "other").touch()

    with pytest.raises(OSError, match="not empty"):
        session["publish"](final, slow)
    published = {path: content for path, content in files().items() if path.parent == final}
    assert [path.name for path in published] == ["noisy.parquet"]
    assert pd.read_parquet(final)["n"].nunique() > 10
    session["release_day"](counts, final.name, tmp_path)
    assert published.items() <= files().items()
    assert len(files()) == 2


#: Commands and their indented output.
COMMANDS = re.findall(
    r"^    \$ geomdp (.+)\n((?:    .+\n)*)",
    (ROOT / "docs/command_line.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_commands(
    command: str,
    printed: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copy(ROOT / "examples/berkeley_admissions.csv", tmp_path / "counts.csv")
    (tmp_path / "visits.csv").write_text("who,town,sex\n1,Oslo,f\n2,Rome,m\n")
    for name, levels in {"towns": "Oslo\nRome\n", "sexes": "f\nm\n"}.items():
        (tmp_path / f"{name}.txt").write_text(levels)
    monkeypatch.chdir(tmp_path)
    towns = tables.count(pd.Series(["Oslo"], name="town"), ["Oslo", "Rome"])
    towns.release(epsilon=1, budget=Budget.open("2026.jsonl", epsilon=6), save="2026-10.csv")
    assert cli.main(shlex.split(command)) == 0
    assert capsys.readouterr().out == re.sub("^    ", "", printed, flags=re.MULTILINE)


#: Numbers of unsafe blocks by file, from the table in docs/evidence.md.
UNSAFE = {
    file: int(blocks)
    for file, blocks in re.findall(
        r"^\| `(rust/.+)` \| (\d+) \|", (ROOT / "docs/evidence.md").read_text(), re.MULTILINE
    )
}


def test_table_of_unsafe_code() -> None:
    found = {}
    for file in sorted((ROOT / "rust").glob("*/src/**/*.rs")):
        lines = file.read_text().split("#[cfg(test)]\nmod tests")[0].splitlines()
        blocks = [line for line in lines if re.search(r"^(?!\s*//).*\bunsafe\b", line)]
        if blocks:
            found[str(file.relative_to(ROOT))] = len(blocks)
    assert UNSAFE
    assert found == UNSAFE


def test_proofs_list_all_code_that_splits_work() -> None:
    found = set()
    for path in (*ROOT.glob("rust/core/src/draw/**/*.rs"), *ROOT.glob("rust/python/src/*.rs")):
        name = ""
        for line in path.read_text().split("#[cfg(test)]")[0].splitlines():
            name = begun[1] if (begun := re.search(r"\bfn (\w+)", line)) else name
            if re.search(r"\.(r?chunks|as_chunks|step_by|split_at|seek|spawn)\w*\(", line):
                found.add((path.relative_to(ROOT / "rust").as_posix(), name))
    rows = re.findall(r"^\| `((?:core|python)/\S+)`: (.+?) \|", PROOFS.read_text(), re.MULTILINE)
    assert found == {(path, name) for path, names in rows for name in re.findall(r"\w+", names)}


def test_mapping_of_source_notes_names_existing_tests() -> None:
    """Each row of docs/paper_mapping.md ends in names of existing tests."""
    rows = re.findall(r"^\| .*\| (.+) \|$", (ROOT / "docs/paper_mapping.md").read_text(), re.M)[1:]
    assert len(rows) > 50
    for row in rows:
        python = re.findall(r"`(tests/\S+\.py)::(\w+)`", row)
        rust = re.findall(r"rust `(\w+)` in `(\w+\.rs)`", row)
        assert len(python) + len(rust) == row.count(",") + 1, row
        for file, name in python:
            assert f"\ndef {name}(" in (ROOT / file).read_text(), row
        for name, file in rust:
            assert any(
                f"fn {name}(" in path.read_text() for path in ROOT.glob(f"rust/core/**/{file}")
            ), row


def lists_in_a_paragraph(text: str) -> list[str]:
    """Return the first items of lists that follow a line of text: the site joins them to it."""
    return re.findall(r"^(?![ |]|[-*] |\d+\. ).+\n([-*] \S.*)$", text, re.MULTILINE)


def test_lists_stand_apart() -> None:
    assert lists_in_a_paragraph("These:\n- one\n- two\n\n* three\n") == ["- one"]
    pages = [path for path in ROOT.rglob("*.md") if not {".venv", "target", "dist"} & {*path.parts}]
    found = {path.name: lists_in_a_paragraph(path.read_text()) for path in pages}
    assert [name for name, lists in found.items() if lists] == []


def test_pages_of_the_format_have_each_field_once() -> None:
    rendered = format_pages.pages()
    assert {path: path.read_text() for path in rendered} == rendered


PAPER = ROOT / "docs/paper/paper.md"


def test_paper_is_of_the_length_and_has_the_sections_of_joss() -> None:
    text = PAPER.read_text().split("---\n", 2)[2]
    assert 750 <= len(text.split()) <= 1750
    sections = re.findall("^# (.+)$", text, re.MULTILINE)
    wanted = ["Summary", "Statement of need", "State of the field", "Software design"]
    assert [each for each in sections if each in wanted] == wanted
    assert sections[-2:] == ["Research impact statement", "References"]
    cited = {*re.findall(r"@(\w+)", text)}
    assert cited == {*re.findall(r"^@\w+\{(\w+),", PAPER.with_suffix(".bib").read_text(), re.M)}


def test_paper_claims_what_the_readme_claims_and_names_checks_that_exist() -> None:
    text = " ".join(PAPER.read_text().split())
    readme = " ".join((ROOT / "README.md").read_text().split())
    shares = re.findall(r"\d+% to \d+%", text)
    assert len(shares) == 4
    assert [share for share in shares if share not in readme] == []
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"`make ([a-z-]+)`", text)
    assert len(commands) > 10
    assert [name for name in commands if f"\n{name}:" not in makefile] == []
    paths = [*re.findall(r"`(?:pytest )?((?:tests|docs|vectors)[\w./]*/[\w.]*)`", text)]
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
    # The authors are those of the citation.
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^  - name: (.+)$", PAPER.read_text(), re.MULTILINE) == re.findall(
        r"^  - name: (.+)$", citation, re.MULTILINE
    )


def test_documents_name_files_that_exist() -> None:
    """The proofs named files of a folder that had moved."""
    apart = {".venv", "target", "dist", ".git"}
    files = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.*") if not apart & {*path.parts}]
    for page in ("docs/proofs.md", "docs/paper_mapping.md", "docs/evidence.md", "CONTRIBUTING.md"):
        named = {*re.findall(r"`([\w./-]+\.(?:py|rs|v|toml|sh|js))`", (ROOT / page).read_text())}
        assert len(named) > 1, page
        missing = [each for each in named if not any(f"/{x}".endswith(f"/{each}") for x in files)]
        assert missing == [], page
