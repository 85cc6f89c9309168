"""Lists of combinations: domains that are no product of their columns."""

import hashlib
import itertools
import json
import pickle
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
from geomdp import GeometricMechanism, accounting, accuracy, tables
from geomdp.tables import Design, Hierarchy
from geomdp.tables._answers.estimates import Source
from geomdp.tables._math.workload import Fitted, Workload

CITIES, KINDS, SEXES = ["Oslo", "Rome", "Bern"], ["flu", "none", "rsv"], ["f", "m"]
PAIRS = [("Oslo", "flu"), ("Oslo", "none"), ("Rome", "flu"), ("Bern", "none"), ("Bern", "rsv")]
COLUMNS = ("city", "kind")
RNG = np.random.default_rng(7)
PEOPLE = pd.DataFrame(
    {
        "who": np.arange(900) // 2,
        "city": RNG.choice([*CITIES, "Paris"], 900),
        "kind": RNG.choice([*KINDS, "cold"], 900),
        "sex": RNG.choice([*SEXES, "x"], 900),
        "age": RNG.integers(0, 9, 900),
        "cents": RNG.integers(-5, 9, 900),
    }
)
PEOPLE.loc[::17, "city"] = None
#: The same records by one column of keys, which no combination outside the list has.
JOINED = PEOPLE.assign(key=PEOPLE["city"].fillna("?") + "|" + PEOPLE["kind"])
KEYS = ["|".join(pair) for pair in PAIRS]
LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "categories": lambda frame: frame.astype({"city": "category", "kind": "category"}),
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
}
LIMITS: list[dict[str, Any]] = [
    {},
    {"neighbours": "change"},
    {"individual": "who", "l0": 2},
    {"individual": "who", "l0": 2, "linf": 2, "neighbours": "change"},
    {"individual": "who", "l1": 4, "neighbours": "change"},
]


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let releases of as many counts have the same noise, as from one tape."""

    def release(mechanism: Any, counts: Any, **_: Any) -> Any:
        drawn = np.random.default_rng(counts.size).geometric(0.4, (2, counts.size))
        noise: Any = (drawn[0] - drawn[1]).reshape(counts.shape)
        return counts + noise

    monkeypatch.setattr(GeometricMechanism, "release", release)


@pytest.mark.usefixtures("same_noise")
@pytest.mark.parametrize("how", LIMITS, ids=str)
@pytest.mark.parametrize("other", [None, "-"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_it_is_a_list_of_joined_keys(library: str, other: Any, how: Any) -> None:
    """Counts, noise and loss are those of a column with the keys, cell for cell."""
    given = LIBRARIES[library]
    one = Design({COLUMNS: PAIRS, "sex": SEXES}, other={COLUMNS: other} if other else None, **how)
    two = Design({"key": KEYS, "sex": SEXES}, other={"key": other} if other else None, **how)
    assert (one.sensitivity, one.cells, one.shape) == (two.sensitivity, two.cells, two.shape)
    assert one.mechanisms_for(1) == two.mechanisms_for(1)
    assert one.top_accuracy(2, epsilon=1) == two.top_accuracy(2, epsilon=1)
    pair = one.count(given(PEOPLE)), two.count(given(JOINED))
    for mine, theirs in zip(*(table._occupied for table in pair), strict=True):
        assert np.array_equal(mine, theirs)
    noisy = [table.release(epsilon=1) for table in pair]
    assert np.array_equal(noisy[0].counts, noisy[1].counts)
    assert noisy[0].epsilon == noisy[1].epsilon == 1
    keyed = {
        (*((other, other) if key == other else key.split("|")), sex): count
        for (key, sex), count in noisy[1].to_dict().items()
    }
    assert noisy[0].to_dict() == keyed
    if "linf" not in how:
        added = [
            x.sum(given(y), "cents", bounds=(-2, 3)) for x, y in ((one, PEOPLE), (two, JOINED))
        ]
        assert added[0].sensitivity == added[1].sensitivity


def ends(design: Design, of: Any, frame: Any) -> Any:
    """Return an interval of each total by its noisy cells, by the formula for sums."""
    [mechanism] = {*design.mechanisms_for(1).values()}
    found = frame.groupby(of, sort=False)["count"].agg(["sum", "size"])
    reach = np.array([accuracy.sum_accuracy(mechanism, n, 0.05) for n in found["size"]])
    return found["sum"].to_numpy(), reach


@pytest.mark.parametrize("of", [*COLUMNS, "sex"])
def test_totals_by_each_column_are_sums_of_cells(of: str) -> None:
    design = Design({COLUMNS: PAIRS, "sex": SEXES})
    noisy = design.count(PEOPLE).release(epsilon=1)
    found, (sums, reach) = noisy.total(of, alpha=0.05), ends(design, of, noisy.frame)
    assert found["estimate"].tolist() == sums.tolist()
    assert (found["upper"] - sums).tolist() == reach.tolist()
    assert (found["lower"] == np.maximum(sums - reach, 0)).all()
    # The worst of them.
    assert design.accuracy(epsilon=1, of=of) == reach.max()
    assert design.preview([1])[f"sum by {of}"][0] == reach.max()


@pytest.mark.parametrize("by", [("kind", "sex"), ("city", "age")])
def test_totals_by_columns_of_two_lists_are_sums_of_cells(by: tuple[str, ...]) -> None:
    design = Design({COLUMNS: PAIRS, ("sex", "age"): [("f", 1), ("f", 2), ("m", 2)]})
    # Sums are too great for noise to bring them below 0, where intervals end.
    noisy = design.count(pd.concat([PEOPLE] * 99)).release(epsilon=1)
    found, (sums, reach) = noisy.total(by, alpha=0.05), ends(design, [*by], noisy.frame)
    assert found["estimate"].tolist() == sums.tolist()
    assert (found["upper"] - sums).tolist() == reach.tolist()


def test_totals_cover_what_they_should() -> None:
    """At this epsilon the noise is wide, so that misses are near the level."""
    design, alpha, many = Design({COLUMNS: PAIRS}), 0.2, 400
    table = design.count(PEOPLE)
    true = table.frame.groupby("city", sort=False)["count"].sum().to_numpy()
    missed = 0
    for _ in range(many):
        found = table.release(epsilon=0.1).total("city", alpha=alpha)
        missed += int(((found["lower"] > true) | (found["upper"] < true)).sum())
    # The misses of each city are binomial, and independent: six standard deviations above the mean
    # are less probable than 1e-6.
    mean = alpha * many * len(CITIES)
    assert mean / 3 < missed <= mean + 6 * (mean * (1 - alpha)) ** 0.5


TWO = {"city": CITIES, "kind": KINDS}
QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "intervals": lambda x, _: x.intervals(0.1),
    "every row at once": lambda x, _: x.intervals(0.1, simultaneous=True),
    "total": lambda x, _: x.total("city"),
    "totals at once": lambda x, _: x.total("kind", simultaneous=True),
    "totals of two": lambda x, _: x.total(("kind", "sex")),
    "totals of both": lambda x, _: x.total(("kind", "city")),
    "grand total": lambda x, _: x.total(),
    "percent": lambda x, _: x.percent("city"),
    "percent of two": lambda x, _: x.percent(("city", "sex"), simultaneous=True),
    "ratio": lambda x, _: x.ratio({"kind": "flu"}, {}, by="city"),
    "ratio of two": lambda x, _: x.ratio({"kind": ["flu", "rsv"]}, {"sex": "f"}, by="city"),
    "ratio of both": lambda x, _: x.ratio({"kind": "flu", "city": ["Oslo", "Rome"]}, {}),
    "ratio beside": lambda x, _: x.ratio({"sex": "f"}, {}, by=("city", "kind")),
    "difference": lambda x, _: x.difference({"kind": "flu"}, {"kind": "rsv"}, by=("city", "sex")),
    "sum": lambda x, _: x.sum("kind", by="city", values={"flu": 1, "none": 0, "rsv": 2}),
    "mean": lambda x, _: x.mean("kind", by="sex", values={"flu": 1, "none": 0, "rsv": 2}),
    "mean by the other": lambda x, _: x.mean("kind", by="city", values={"flu": 1, "rsv": 3}),
    "quantile": lambda x, _: x.quantile("kind", 0.5, by="city"),
    "quantile beside": lambda x, _: x.quantile("kind", "0.3", by="sex"),
    "quantile of another": lambda x, _: x.quantile("sex", 0.5, by="kind"),
    "rate": lambda x, _: x.rate({"Oslo": 900, "Rome": 800, "Bern": 70}, by="city"),
    "rate of both": lambda x, _: x.rate(
        {(city, kind): 99 for city in CITIES for kind in KINDS}, by=("city", "kind")
    ),
    "change": lambda x, y: x.change_since(y, by="city"),
    "change in percent": lambda x, y: x.change_since(y, by=("kind", "sex"), percent=True),
    "plus": lambda x, y: x.plus(y).total("kind"),
    "plus all": lambda x, y: x.plus(y).intervals(),
    "per": lambda x, y: x.per(y, by="city"),
    "combine": lambda x, y: x.combine(y).total("city"),
    "a known total": lambda x, _: x.with_totals(400).total("city"),
    "known totals": lambda x, _: x.with_totals(pd.DataFrame({"sex": SEXES, "n": [99, 300]})).total(
        ("kind", "sex")
    ),
    "number of cells": lambda x, _: x.number_of_cells(at_least=40, by="city"),
    "variance": lambda x, _: x.variance("kind"),
    "diversity": lambda x, _: x.diversity("simpson", "city"),
    "consistent": lambda x, _: x.consistent(),
}
BESIDE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a list": ({"sex": SEXES}, {}),
    "a margin": ({"sex": SEXES}, {"margins": {"sex": "all"}}),
    "a tree": ({"sex": Hierarchy({"f": "all", "m": "all"}, leaves_only=True)}, {}),
}


def same(one: Any, two: Any, step: float = 1e-6) -> None:
    assert list(one.columns) == list(two.columns)
    for name in one.columns:
        if one[name].dtype.kind == "f":
            assert np.allclose(one[name], two[name], rtol=1e-9, atol=step, equal_nan=True), name
        else:
            assert one[name].tolist() == two[name].tolist(), name


@pytest.mark.usefixtures("same_noise")
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("name", QUESTIONS)
def test_all_combinations_answer_as_two_columns_do(name: str, beside: str) -> None:
    """A product that is listed has the answers of the product."""
    levels, how = BESIDE[beside]
    found = []
    for first in ({COLUMNS: [*itertools.product(CITIES, KINDS)]}, TWO):
        design = Design({**first, **levels}, **how, neighbours="change")
        table = design.count(PEOPLE)
        found.append(QUESTIONS[name](table.release(epsilon=1), table.release(epsilon=1)))
    # Ends of ratios are looked for in steps of 2^-7, and may be at the next one.
    same(*found, 100 / 2**7 if name == "change in percent" else 1e-6)


@pytest.mark.usefixtures("same_noise")
@pytest.mark.parametrize(
    "name", ["total", "percent", "difference", "totals of two", "rate", "plus", "intervals"]
)
def test_with_bounds_and_rounded_they_do_so_too(name: str) -> None:
    for release in (
        lambda table: table.release(epsilon=1)._to_multiples(5),
        lambda table: table.release(epsilon="0.5", bounds=(-9, 60)),
    ):
        found = []
        product: Any = [*itertools.product(CITIES, KINDS)]
        for first in ({COLUMNS: product}, TWO):
            table = Design({**first, "sex": SEXES}).count(PEOPLE)
            try:
                found.append(QUESTIONS[name](release(table), release(table)))
            except ValueError as error:
                found.append(pd.DataFrame({"error": [str(error)]}))
        same(*found)


@pytest.mark.usefixtures("same_noise")
@pytest.mark.parametrize("by", [("a",), ("b", "c"), ("a", "c"), ("a", "b", "c"), ("c", "sex")])
def test_of_three_columns_any_have_totals(by: tuple[str, ...]) -> None:
    rows = [(a, b, c) for a in "xyz" for b in (1, 2, 3) for c in (0.5, 1.5) if (b, c) != (2, 0.5)]
    frame = pd.DataFrame(rows * 7, columns=[*"abc"]).assign(sex="f")
    noisy = Design({("a", "b", "c"): rows[::-1], "sex": SEXES}).count(frame).release(epsilon=1)
    found = noisy.total(by, alpha=0.1)
    wanted = noisy.frame.groupby(list(by), sort=False)["count"].sum().reset_index()
    assert list(found.columns) == [*wanted.columns[:-1], "estimate", "lower", "upper"]
    for name in by:
        assert found[name].tolist() == wanted[name].tolist()
    assert found["estimate"].tolist() == wanted["count"].tolist()
    assert noisy.ratio({"a": "x", "b": [1, 2]}, {}, by="c")["estimate"].between(0, 1).all()


def test_two_releases_with_other_orders_of_pairs_are_compared_by_column() -> None:
    one, two = (
        Design({COLUMNS: pairs}).count(PEOPLE).release(epsilon=1) for pairs in (PAIRS, PAIRS[::-1])
    )
    added = one.plus(two)
    for by in ("city", COLUMNS):
        totals = [
            x.total(by).set_index([*np.atleast_1d(by)])["estimate"] for x in (one, two, added)
        ]
        assert totals[2].to_dict() == (totals[0] + totals[1]).to_dict()
        changed = one.change_since(two, by=by).set_index([*np.atleast_1d(by)])["estimate"]
        assert changed.to_dict() == (totals[0] - totals[1]).to_dict()


def test_one_list_and_two_columns_are_compared_where_both_have_all_records() -> None:
    one = Design({COLUMNS: PAIRS}, complete=COLUMNS).count(PEOPLE).release(epsilon=1)
    two = Design(TWO, complete=True).count(PEOPLE).release(epsilon=1)
    assert one.change_since(two, by="city")["city"].tolist() == CITIES
    with pytest.raises(ValueError, match="in a list of combinations"):
        one.change_since(two, by=COLUMNS)


# Other records


def test_a_pair_that_is_not_listed_is_not_counted_or_other() -> None:
    inside = pd.Series([*zip(PEOPLE["city"], PEOPLE["kind"], strict=True)]).isin(PAIRS)
    assert 0 < inside.sum() < len(PEOPLE)
    assert Design({COLUMNS: PAIRS}).count(PEOPLE).frame["count"].sum() == inside.sum()
    table = Design({COLUMNS: PAIRS}, other={COLUMNS: ("(city)", "(kind)")}).count(PEOPLE)
    assert table.frame.iloc[-1].tolist() == ["(city)", "(kind)", (~inside).sum()]
    # Those of Oslo with another kind are other records, and not in a total of Oslo.
    noisy = table.release(epsilon=1)
    assert noisy.total("city")["city"].tolist() == [*CITIES, "(city)"]


def test_nothing_but_the_design_shows_in_the_frame() -> None:
    """Types, categories and order are the same for any data."""
    empty = PEOPLE.iloc[:0]
    one, two = (Design({COLUMNS: PAIRS}).count(x).frame for x in (PEOPLE, empty))
    assert (one.dtypes == two.dtypes).all()
    assert one[["city", "kind"]].equals(two[["city", "kind"]])


def test_groups_of_combinations_answer_by_all_columns_or_none() -> None:
    noisy, other = (
        Design({COLUMNS: pairs, "sex": SEXES})
        .count(PEOPLE)
        .release(epsilon=1, at_least=10)
        .with_totals(900)
        for pairs in (PAIRS, PAIRS[::-1])
    )
    by = (*COLUMNS, "sex")
    assert list(noisy.percent(by).columns) == [*by, "percent", "lower", "upper"]
    found = noisy.change_since(other, by=by)
    assert {*zip(found["city"], found["kind"], strict=True)} <= {*PAIRS}
    sizes = {(*pair, sex): 100 for pair in PAIRS for sex in SEXES}
    assert len(noisy.rate(sizes, by=by)) == len(noisy.frame)
    with pytest.raises(ValueError, match="by = 'city' is not accepted for groups"):
        noisy.total("city")


# Files


DAYS = [date(2026, 1, n) for n in (1, 2, 3)]
TYPED = [
    ("=1+1", DAYS[0], 1, 0.5, True),
    ("=1+1", DAYS[1], 2, 1e-7, False),
    ("é", DAYS[0], 2**60, 0.5, True),
]
NAMES = ("text", "day", "id", "size", "well")
RECORDS = pd.DataFrame(TYPED * 200, columns=[*NAMES]).assign(sex=[*SEXES] * 300)
FILED: dict[str, Callable[[], Any]] = {
    "table": lambda: Design({NAMES: TYPED, "sex": SEXES}).count(RECORDS).release(epsilon=1),
    "other": lambda: (
        Design({NAMES[:3]: [x[:3] for x in TYPED]}, other={NAMES[:3]: ("-", DAYS[2], -1)})
        .count(RECORDS)
        .release(epsilon=1)
    ),
    "margin": lambda: (
        Design({NAMES: TYPED, "sex": SEXES}, margins={"sex": "all"})
        .count(RECORDS)
        .release(epsilon=1)
    ),
    "groups": lambda: (
        Design({NAMES: TYPED, "sex": SEXES}).count(RECORDS).release(epsilon=1, at_least=30)
    ),
    "groups and rest": lambda: (
        Design({COLUMNS: PAIRS}, other="-")
        .count(PEOPLE)
        .release(epsilon=1, at_least=60, rest=("rest", "0.1"))
    ),
    "groups beside words": lambda: (
        Design({COLUMNS: PAIRS, "sex": tables.Words("fmx", 3)})
        .count(PEOPLE)
        .release(epsilon=1, at_least=30)
    ),
    "sum": lambda: (
        Design({COLUMNS: PAIRS, "sex": SEXES})
        .count(PEOPLE)
        .release(epsilon=1)
        .plus(Design({COLUMNS: PAIRS[::-1], "sex": SEXES}).count(PEOPLE).release(epsilon=1))
    ),
    "top": lambda: Design({COLUMNS: PAIRS, "sex": SEXES}).count(PEOPLE).top(3, epsilon=1),
    "tier": lambda: Design({COLUMNS: PAIRS}).count(PEOPLE).release(tiers={"a": "0.1", "b": 1})["a"],
}


@pytest.mark.parametrize("end", ["csv", "parquet", "html"])
@pytest.mark.parametrize("name", FILED)
def test_files_state_combinations(tmp_path: Path, name: str, end: str) -> None:
    noisy, path = FILED[name](), tmp_path / f"a.{end}"
    noisy.save(path)
    assert pickle.loads(pickle.dumps(noisy)).design == noisy.design
    if end == "html":
        assert all(f"<th scope=col>{label}" in path.read_text() for label in noisy.design.levels)
        return
    read = geomdp.read(path)
    assert read.design == noisy.design
    assert read.frame.equals(noisy.frame)
    [facts] = [x for x in described(path)["geomdp"]["axes"].values() if "columns" in x]
    assert len(facts["columns"]) == len(facts["levels"][0])


def described(path: Path) -> Any:
    return json.loads(Path(f"{path}.json").read_text())


def changes() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield what a hostile file has instead of its axis."""
    yield "ragged", lambda axis: axis | {"levels": [*axis["levels"][:-1], ["Oslo"]]}
    yield "longer", lambda axis: axis | {"levels": [[*x, "x"] for x in axis["levels"]]}
    yield "repeated", lambda axis: axis | {"levels": [*axis["levels"][:-1], axis["levels"][0]]}
    yield "null", lambda axis: axis | {"levels": [*axis["levels"][:-1], [None, "flu"]]}
    yield "types", lambda axis: axis | {"levels": [*axis["levels"][:-1], [1, "flu"]]}
    yield "bools", lambda axis: axis | {"levels": [*axis["levels"][:-1], [True, "flu"]]}
    yield "no lists", lambda axis: axis | {"levels": ["ab", *axis["levels"][1:]]}
    yield "nested", lambda axis: axis | {"levels": [*axis["levels"][:-1], [["a"], "flu"]]}
    yield "objects", lambda axis: axis | {"levels": [*axis["levels"][:-1], [{"b": 1}, "flu"]]}
    yield "a rule", lambda axis: axis | {"levels": {"range": [0, 2**60, 1]}}
    yield "none", lambda axis: axis | {"levels": []}
    yield "one column", lambda axis: axis | {"columns": ["city"]}
    yield "twice", lambda axis: axis | {"columns": ["city", "city"]}
    yield "another", lambda axis: axis | {"columns": ["city", "sex"]}
    yield "no names", lambda axis: axis | {"columns": [["city"], 3]}
    yield "no column", lambda axis: {x: y for x, y in axis.items() if x != "columns"}
    yield "other", lambda axis: axis | {"other": [["a", "b", "c"]]}
    yield "a text for others", lambda axis: axis | {"other": [["Oslo", "-"]]}
    yield "margin", lambda axis: axis | {"margin": [["all", "all"]]}
    yield "shares", lambda axis: axis | {"shares": ["1/2", "1/2"]}
    yield "many ragged", lambda axis: axis | {"levels": [["a", "b"]] * 200_000 + [["a"]]}
    yield "many equal", lambda axis: axis | {"levels": [["a", "b"]] * 200_000}
    yield "many", lambda axis: axis | {"levels": [["a", "b"]] * (2**22 // 3 + 1)}
    yield "wide", lambda axis: axis | {"levels": [["a"] * 2**21] * 2}
    yield "wide columns", lambda axis: axis | {"columns": [*map(str, range(2**20))]}


@pytest.mark.parametrize("change", [pytest.param(x, id=name) for name, x in changes()])
def test_hostile_combinations_are_refused_in_a_second(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "a.csv"
    design = Design({COLUMNS: PAIRS, "sex": SEXES})
    design.count(PEOPLE).release(epsilon=1, save=path)
    said = described(path)
    axes = said["geomdp"]["axes"]
    axes["city/kind"] = change(axes["city/kind"])
    Path(f"{path}.json").write_text(json.dumps(said))
    start = time.process_time()
    with pytest.raises(ValueError, match=re.escape(str(path.name))):
        geomdp.read(path)
    # Parsing a million lists, of the file with too many, is most of it.
    assert time.process_time() - start < 3


def test_rows_of_a_file_have_listed_pairs(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    Design({COLUMNS: PAIRS}).count(PEOPLE).release(epsilon=1, at_least=1, save=path)
    rows = path.read_bytes().replace(b"Oslo,flu", b"Oslo,rsv")
    path.write_bytes(rows)
    said = described(path)
    said |= {"bytes": len(rows), "hash": f"sha256:{hashlib.sha256(rows).hexdigest()}"}
    Path(f"{path}.json").write_text(json.dumps(said))
    with pytest.raises(ValueError, match="other rows"):
        geomdp.read(path)


# Refusals


@pytest.mark.parametrize(
    ("levels", "how", "wanted"),
    [
        ({COLUMNS: [*PAIRS, PAIRS[0]]}, {}, "combinations of .* are empty or repeat one"),
        ({COLUMNS: PAIRS}, {"bins": {COLUMNS: [1, 2]}}, "bins of 'city/kind' are not accepted"),
        ({COLUMNS: PAIRS}, {"margins": "all"}, "margins = 'all' is not accepted for the"),
        ({COLUMNS: PAIRS}, {"tables": [("city", "kind")]}, "tables are not accepted with the comb"),
        ({COLUMNS: PAIRS, "sex": SEXES}, {"tables": ["sex"]}, "tables are not accepted with the"),
        ({COLUMNS: PAIRS, "city": CITIES}, {}, "column 'city' is given twice"),
        ({COLUMNS: PAIRS}, {"name": "kind"}, "name = 'kind' is not accepted"),
        ({COLUMNS: PAIRS}, {"shares": {COLUMNS: [1, 2]}}, "shares of 'city/kind', 2 of them"),
        ({COLUMNS: PAIRS}, {"other": "Oslo"}, "levels of 'city' with other = 'Oslo'"),
        ({COLUMNS: PAIRS}, {"other": {COLUMNS: ("a", "b", "c")}}, "other = .* is not accepted"),
        ({COLUMNS: PAIRS}, {"other": {COLUMNS: (1, "b")}}, "levels of 'city' with other = 1"),
    ],
)
def test_what_does_not_go_with_it_is_refused_by_name(levels: Any, how: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        Design(levels, **how)


def test_public_totals_by_its_columns_are_refused() -> None:
    noisy = Design({COLUMNS: PAIRS, "sex": SEXES}).count(PEOPLE).release(epsilon=1)
    with pytest.raises(ValueError, match=r"give columns of the table, of \['sex'\]"):
        noisy.with_totals(pd.DataFrame({"city": CITIES, "n": [100, 100, 100]}))


def test_counts_that_are_named_like_totals_are_refused_in_each_column() -> None:
    counted = pd.DataFrame({"city": ["Oslo"], "kind": ["all kinds"], "n": [3]})
    design, budget = Design({COLUMNS: [("Oslo", "all kinds")]}), accounting.Budget(epsilon=1)
    with pytest.raises(ValueError, match="named like a total"):
        design.count(counted, counts="n")
    table = design.count(counted, counts="n", not_totals=["all kinds"])
    assert table.release(epsilon=1, budget=budget).epsilon == 1


def test_a_type_that_a_column_cannot_have_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="levels of 'kind' are not accepted"):
        Design({COLUMNS: [("Oslo", 1)]}).count(pl.from_pandas(PEOPLE))


# Size


SHARED: dict[str, Callable[[Any, Any], Any]] = {
    "total": lambda x, _: x.total("a"),
    "percent": lambda x, _: x.percent("a"),
    "ratio": lambda x, _: x.ratio({"b": 0}, {}, by="a"),
    "mean": lambda x, _: x.mean("b", by="a"),
    "change": lambda x, y: x.change_since(y, by="a", percent=True),
}


def counted(own: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    """Return a function that counts its calls by name."""

    def call(*given: Any) -> Any:
        calls[own.__name__] += 1
        return own(*given)

    return call


@pytest.mark.parametrize("name", SHARED)
def test_groups_are_added_up_together_and_share_errors_by_size(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What takes a time that grows with the list is not done for each group."""
    calls, found = Counter[str](), []
    for owner, each in ((Fitted, "along"), (Source, "within"), (Workload, "joint")):
        monkeypatch.setattr(owner, each, counted(getattr(owner, each), calls))
    for many in (10, 100):
        pairs = [(a, b) for a in range(many) for b in range(2 + a % 3)]
        table = Design({("a", "b"): pairs}).count(pd.DataFrame(pairs * 99, columns=["a", "b"]))
        pair = table.release(epsilon=1), table.release(epsilon=1)
        calls.clear()
        SHARED[name](*pair)
        found.append(dict(calls))
    assert found[0] == found[1]
    assert 0 < found[0]["along"] <= found[0]["within"]


def test_many_combinations_take_little_time() -> None:
    pairs = [(a, b) for a in range(1000) for b in range(a, a + 100)]
    frame = pd.DataFrame(pairs, columns=["a", "b"])
    start = time.process_time()
    noisy = Design({("a", "b"): pairs}).count(frame).release(epsilon=1)
    found = noisy.total("a")
    assert time.process_time() - start < 20
    assert found["estimate"].tolist() == noisy.counts.reshape(1000, 100).sum(axis=1).tolist()
    assert len({*(found["upper"] - found["estimate"])}) == 1
    assert Fraction(noisy.epsilon) == 1
