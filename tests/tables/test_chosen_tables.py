"""Designs that choose their tables, public totals by group, and counts without columns."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import geomdp
from geomdp.tables import Design, Hierarchy, choose_limit
from geomdp.tables._facts.layout import loss
from geomdp.tables._math.weighted import variance

LEVELS: dict[str, Any] = {"a": [0, 1, 2], "b": ["x", "y"], "c": [5, 6, 7, 8]}
TABLES = {("a", "b"): "0.5", ("a", "c"): "0.3", "a": "0.2"}
TREE = Hierarchy({"N": "all", "S": "all", "n1": "N", "n2": "N"}, leaves_only=True)
CLEAR = 2**10


def people(n: int = 60, levels: Mapping[str, Any] = LEVELS, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            name: [list(items)[x] for x in rng.integers(0, len(items), n)]
            for name, items in levels.items()
        }
    )


def true_rows(design: Design, frame: pd.DataFrame) -> list[int]:
    """Count the rows of each line of the design's frame by a filter."""
    empty = design.count(frame.iloc[:0]).frame
    found = []
    for row in empty.drop(columns="count").itertuples(index=False):
        inside = np.ones(len(frame), bool)
        for name, level in zip(empty.columns, row, strict=False):
            if not pd.isna(level) and level != "all":
                inside &= np.array([_is_in(name, x, level) for x in frame[name]])
        found.append(int(inside.sum()))
    return found


def _is_in(name: str, item: Any, level: Any) -> bool:
    if name != "area":
        return bool(item == level)
    while item is not None and item != level:
        item = TREE.parents.get(item)
    return item is not None


DESIGNS = {
    "lists": Design(LEVELS, tables=TABLES),
    "a total": Design(LEVELS, tables=[("b", "c"), ()]),
    "a tree": Design({"area": TREE, "b": ["x", "y"]}, tables=["area", "b"]),
    "a depth": Design(
        {"area": TREE, "b": ["x", "y"]}, tables={("area", 1): 1, (("area", 2), "b"): 2}
    ),
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("engine", ["pandas", "polars", "lazy", "arrow"])
def test_each_table_counts_its_records(name: str, engine: str) -> None:
    design = DESIGNS[name]
    levels = {k: LEVELS.get(k, TREE.leaves) for k in design.levels}
    frame = people(levels=levels)
    given: Any = frame
    if engine != "pandas":
        given = pl.from_pandas(frame)
        given = given.lazy() if engine == "lazy" else given
        given = given.to_arrow() if engine == "arrow" else given
    table = design.count(given)
    wanted = true_rows(design, frame)
    assert table._nodes().tolist() == wanted
    noisy = table.release(epsilon=CLEAR)
    assert list(noisy.to_dict().values()) == wanted
    assert design.cells == len(wanted)


def test_counting_needs_no_array_of_the_product() -> None:
    levels = {str(n): range(1000) for n in range(6)}
    design = Design(levels, tables=["0", "5"])
    counts = design.count(pd.DataFrame({name: [1, 1, 999] for name in levels}))._nodes()
    assert (counts.sum(), counts[1], counts[999], counts[1001]) == (6, 2, 1, 2)
    assert Design({str(n): range(1000) for n in range(7)}, tables=["0"]).cells == 1000


def test_more_columns_than_an_array_has_axes(tmp_path: Path) -> None:
    """Every answer of 64 columns raised the error of numpy, when the release was paid for."""
    levels: dict[str, Any] = {f"c{n}": ["no", "yes"] for n in range(70)}
    pairs = [("c0", "c1"), ("c1", "c69")]
    design = Design(levels, tables=[*levels, *pairs])
    frame = people(40, levels)
    noisy = design.count(frame).release(epsilon=CLEAR, save=tmp_path / "a.csv")
    frames = [noisy, geomdp.read(tmp_path / "a.csv"), noisy.with_totals(40)]
    frames.append(noisy.combine(design.count(frame).release(epsilon=CLEAR)))
    for each in frames:
        rows = each.total(("c1", "c69"), alpha=0.05)
        shown = {tuple(row[:2]): row[2:] for row in rows.itertuples(index=False, name=None)}
        for (one, other), found in shown.items():
            true = ((frame["c1"] == one) & (frame["c69"] == other)).sum()
            assert found == pytest.approx((true, true, true))
        assert each.total(alpha=0.05)["upper"].tolist() == [40]
        yes = (frame["c69"] == "yes").mean() * 100
        assert each.percent("c69", alpha=0.05)["percent"][1] == pytest.approx(yes)
        with pytest.raises(ValueError, match="no released table has 'c1' and 'c2' together"):
            each.total(("c1", "c2"), alpha=0.05)
    assert noisy.intervals(0.05)["upper"].tolist() == true_rows(design, frame)
    assert design.with_best_parts(1).tables.keys() == design.tables.keys()  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="70 columns are not accepted without tables: give at"):
        Design(levels)


#: More columns than int64 has numbers for: their levels multiply to 3**70.
MANY: dict[str, Any] = {f"c{n}": [0, 1, 2] for n in range(70)}
MANY_TABLES = ["c0", *((f"c{n}", f"c{n + 1}") for n in range(69)), ("c0", "c30", "c69"), ()]
LIBRARIES: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "Polars": pl.from_pandas,
    "a query of Polars": lambda frame: pl.from_pandas(frame).lazy(),
    "Arrow": pa.Table.from_pandas,
    "DuckDB": lambda frame: duckdb.sql("SELECT * FROM frame"),
    "DuckDB by Arrow": lambda frame: pa.table(duckdb.sql("SELECT * FROM frame")),
    "DuckDB by Polars": lambda frame: duckdb.sql("SELECT * FROM frame").pl(),
}


@pytest.fixture(scope="module")
def many() -> tuple[pd.DataFrame, list[int]]:
    """Return records, some with no level in a column and so in no table, and the true rows."""
    frame = people(300, MANY).assign(who=np.arange(300) // 3)
    frame.loc[::50, "c9"] = 3
    inside = frame[frame["c9"] < 3]
    return frame, true_rows(Design(MANY, tables=MANY_TABLES), inside)


@pytest.mark.parametrize("library", LIBRARIES)
def test_seventy_columns_are_counted_alike_in_every_library(
    library: str, many: tuple[pd.DataFrame, list[int]]
) -> None:
    frame, wanted = many
    given = LIBRARIES[library](frame)
    for limits in ({}, {"l0": 3}, {"l0": 9, "linf": 9}, {"l1": 3}):
        who = {"individual": "who"} if limits else {}
        table = Design(MANY, tables=MANY_TABLES, **who, **limits).count(given)
        counts = table._nodes().tolist()
        assert counts == wanted
        assert (counts[-1], len(counts)) == (294, 3 + 69 * 9 + 27 + 1)
        # One number for each row of a table, and none for a combination of all columns.
        assert table._occupied[0].tolist() == list(range(len(counts)))
    added = Design(MANY, tables=MANY_TABLES).sum(given, "who", bounds=(0, 99))._nodes()
    assert added[-1] == frame["who"][frame["c9"] < 3].sum()


@pytest.mark.parametrize("limits", [{"l0": 1}, {"l1": 1}], ids=["l0", "l1"])
def test_all_tables_count_the_same_records_of_an_individual(limits: Any) -> None:
    frame = people(300, MANY).assign(who=np.arange(300) // 3)
    noisy = Design(MANY, tables=MANY_TABLES, individual="who", **limits).count(frame)
    counts, start = noisy._nodes(), 0
    by_column: dict[int, list[NDArray[np.int64]]] = {n: [] for n in range(70)}
    for key in MANY_TABLES:
        columns = [key] if isinstance(key, str) else key
        block = counts[start : (start := start + 3 ** len(columns))].reshape((3,) * len(columns))
        assert block.sum() == 100
        for place, column in enumerate(columns):
            others = tuple(x for x in range(len(columns)) if x != place)
            by_column[int(column[1:])].append(block.sum(others))
    for each in by_column.values():
        assert all(np.array_equal(each[0], x) for x in each)


@pytest.mark.parametrize("limit", ["l0", "linf", "l1"])
def test_a_limit_is_chosen_for_seventy_columns(limit: Any) -> None:
    """Cells without a number were compared as one."""
    frame = people(300, MANY).assign(who=np.arange(300) // 3)
    if limit == "linf":
        frame = frame.iloc[np.repeat(np.arange(300), 2)]
    design = Design(
        MANY, tables=MANY_TABLES, individual="who", **({"l1": 5} if limit == "l1" else {"l0": 5})
    )
    if limit == "linf":
        design = Design(**(design._arguments() | {"linf": 4}))
    chosen = choose_limit(design, frame, limit, epsilon=CLEAR)
    assert chosen.limit == (2 if limit == "linf" else 3)


def test_tables_beyond_memory_are_refused_before_records_are_read() -> None:
    levels = {str(n): range(1000) for n in range(7)}
    with pytest.raises(ValueError, match=r"table of 10{21} cells is not accepted: give a"):
        Design(levels, tables=[tuple(levels)]).count({"no": "frame"})
    # Its groups can be released.
    counted = Design(levels).count(pd.DataFrame({name: [1, 2] for name in levels}))
    with pytest.raises(ValueError, match=r"table of 10{21} cells is not accepted: release it with"):
        counted.release(epsilon=1)


def rows_of(design: Design) -> list[tuple[Any, NDArray[np.float64]]]:
    """Return each released block, and the cells that each of its rows adds up."""
    found = []
    for block in design.blocks:
        matrix = np.ones((1, 1))
        for axis, depth in zip(design._axes, block, strict=True):
            side = np.zeros((axis.counts[depth], len(axis.cells)))
            above = axis.above(depth)
            some = np.flatnonzero(above >= 0)
            side[above[some] - axis.tree.starts[depth], some] = 1
            matrix = np.kron(matrix, side)
        found.append((block, matrix))
    return found


def all_variances(design: Design) -> float:
    """Return the sum of the variances of the least squares of all rows, by dense matrices."""
    mechanisms, rows = design.mechanisms_for(1), rows_of(design)
    noise = [np.full(len(x), variance(float(mechanisms[block].rate))) for block, x in rows]
    matrix, each = np.vstack([x for _, x in rows]), np.concatenate(noise)
    scaled = matrix / np.sqrt(each)[:, None]
    return float(np.trace(matrix @ np.linalg.pinv(scaled.T @ scaled, rcond=1e-12) @ matrix.T))


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        ({"a": range(2), "b": range(9)}, Fraction(173, 500)),
        ({"a": range(3), "b": range(3)}, None),
        ({"area": TREE, "b": ["x", "y"]}, None),
    ],
)
def test_best_parts_have_the_least_sum_of_variances(levels: Any, wanted: Any) -> None:
    """Another module made one of its rows the length of a dict, and the parts 27/100 and 73/100."""
    one, other = levels
    best = Design(levels, tables=[one, other]).with_best_parts(1).tables
    assert best is not None
    assert wanted is None or best == {one: wanted, other: 1 - wanted}

    def of(thousandths: int) -> float:
        parts = {one: Fraction(thousandths, 1000), other: Fraction(1000 - thousandths, 1000)}
        return all_variances(Design(levels, tables=parts))

    least = min(map(of, range(10, 1000, 10)))
    assert of(int(best[one] * 1000)) <= least * (1 + 1e-9)


def test_estimates_of_several_tables_with_an_open_tree_are_the_least_squares() -> None:
    """Nodes of different depths are cells of their own: nothing ties them to each other."""
    nodes = {f"{side}{n}": side for side in "NS" for n in (1, 2)}
    tree = Hierarchy(nodes | {"N": "all", "S": "all"})
    tables: dict[Any, Any] = {"n": "0.4", ("n", "x"): "0.6"}
    design = Design({"n": tree, "x": ["f", "m"]}, tables=tables)
    rng = np.random.default_rng(5)
    noisy = design.count(
        pd.DataFrame({"n": rng.choice(tree.nodes, 400), "x": rng.choice(["f", "m"], 400)})
    ).release(epsilon=1)
    matrix, variances = [], []
    for block, mechanism in noisy.mechanisms.items():
        level = tree._tree.level(block[0])
        side = np.eye(2) if block[1] else np.ones((1, 2))
        matrix.append(np.kron(np.eye(tree._tree.size)[level], side))
        variances.append(np.full(len(matrix[-1]), variance(float(mechanism.rate))))
    rows, weights = np.vstack(matrix), 1 / np.sqrt(np.concatenate(variances))
    counts = np.array(noisy.frame["count"], float)
    fit, *_ = np.linalg.lstsq(rows * weights[:, None], counts * weights, rcond=None)
    assert noisy.estimates()["estimate"].tolist() == pytest.approx((rows @ fit).tolist(), abs=1e-8)


def test_parts_are_parts_of_epsilon() -> None:
    design = DESIGNS["lists"]
    found = [each.epsilon for each in design.mechanisms_for(1).values()]
    assert found == [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    equal = Design(LEVELS, tables=list(TABLES)).mechanisms_for(1).values()
    assert {each.epsilon for each in equal} == {Fraction(1, 3)}


@pytest.mark.parametrize("neighbours", ["add-remove", "change"])
@pytest.mark.parametrize("l0", [1, 2])
@pytest.mark.parametrize("name", DESIGNS)
def test_the_loss_is_that_of_all_neighbours(name: str, l0: int, neighbours: Any) -> None:
    """No change of one individual costs more, and with one cell one of them costs all of it."""
    given = DESIGNS[name]._arguments()
    design = Design(**(given | {"individual": "who", "l0": l0, "neighbours": neighbours}))
    mechanisms = design.mechanisms_for(1)
    assert loss(design, mechanisms) == 1
    levels = [axis.cells for axis in design._axes]
    rates = np.concatenate(
        [
            np.full(int(np.prod(design._axes.counts(block))), float(each.rate))
            for block, each in mechanisms.items()
        ]
    )
    plain = Design(**given)
    rows = []
    for cell in itertools.product(*levels):
        one = pd.DataFrame([cell], columns=[axis.label for axis in design._axes])
        rows.append(plain.count(one)._nodes())
    own = [
        sum(some, np.zeros(len(rates), np.int64))
        for n in range(l0 + 1)
        for some in itertools.combinations(rows, n)
    ]
    most = max(
        float(np.abs(one - other) @ rates)
        for one in own
        for other in (own if neighbours == "change" else own[:1])
    )
    assert most <= 1 + 1e-12
    if l0 == 1:
        assert most == pytest.approx(1)


def dense(design: Design, mechanisms: Any, known: Any = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix of all rows over the cells, and the weight of each row."""
    cells = list(itertools.product(*(axis.cells for axis in design._axes)))
    plain = Design(**design._arguments())
    columns = [axis.label for axis in design._axes]
    matrix = np.stack(
        [plain.count(pd.DataFrame([cell], columns=columns))._nodes() for cell in cells], axis=1
    )
    weights = np.concatenate(
        [
            np.full(int(np.prod(design._axes.counts(block))), variance(float(each.rate)) ** -0.5)
            for block, each in mechanisms.items()
        ]
    )
    return matrix, weights


def test_estimates_use_all_tables() -> None:
    """Against a dense fit."""
    design = Design(LEVELS, tables=TABLES)
    noisy = design.count(people()).release(epsilon="0.3")
    matrix, weights = dense(design, noisy.mechanisms)
    counts = np.array(list(noisy.frame["count"]))
    fit, *_ = np.linalg.lstsq(matrix * weights[:, None], counts * weights, rcond=None)
    assert np.array(noisy.estimates()["estimate"]) == pytest.approx(matrix @ fit, abs=1e-8)


@pytest.mark.parametrize(
    ("ask", "names"),
    [
        (lambda t: t.total(("b", "c")), "no released table has 'b' and 'c' together"),
        (lambda t: t.total(("a", "b", "c"), alpha=0.05), "'b' and 'c' together"),
        (lambda t: t.ratio({"b": "x", "c": 5}, {"b": "x"}), "'b' and 'c' together"),
    ],
)
def test_what_no_table_determines_is_refused_by_name(ask: Any, names: str) -> None:
    noisy = DESIGNS["lists"].count(people()).release(epsilon=1)
    with pytest.raises(ValueError, match=names):
        ask(noisy)


@pytest.mark.parametrize("name", DESIGNS)
def test_chosen_tables_are_drawn(name: str) -> None:
    """They were refused, although each of their columns has totals."""
    noisy = DESIGNS[name].count(people(levels={"area": TREE.leaves, **LEVELS})).release(epsilon=9)
    first = {"lists": "a and b", "a total": "b and c"}.get(name, "area")
    figure: Any = noisy.plot().figure
    assert figure.texts[0].get_text().strip() == f"Count by {first}"
    for by in noisy.design.levels:
        try:
            noisy.total(by)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                noisy.plot(by)
        else:
            assert noisy.plot(by).figure


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.consistent(),
        lambda t: t.counts,
        lambda t: t.__noisy_cells__(),
    ],
)
def test_what_needs_all_combinations_is_refused(ask: Any) -> None:
    noisy = DESIGNS["lists"].count(people()).release(epsilon=1)
    with pytest.raises(ValueError, match="tables"):
        ask(noisy)


@pytest.mark.parametrize("more", [{"at_least": 5}, {"bounds": (0, 9)}], ids=["at_least", "bounds"])
def test_releases_of_other_kinds_are_refused_before_they_are_paid(more: Any) -> None:
    budget = geomdp.accounting.Budget(epsilon=1)
    table = DESIGNS["lists"].count(people())
    with pytest.raises(ValueError, match="tables"):
        table.release(epsilon=1, budget=budget, **more)
    with pytest.raises(ValueError, match="tables"):
        table.top(1, epsilon=1, budget=budget)
    assert budget.spent == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", DESIGNS)
def test_files_keep_tables_and_totals(name: str, ending: str, tmp_path: Path) -> None:
    design = DESIGNS[name]
    frame = people(levels={k: LEVELS.get(k, TREE.leaves) for k in design.levels})
    noisy = design.count(frame).release(epsilon=1)
    for place, given in enumerate((noisy, noisy.with_totals(len(frame)))):
        path = tmp_path / f"{place}.{ending}"
        given.save(path)
        for found in (geomdp.read(path), pickle.loads(pickle.dumps(given))):
            assert (found.design, found.id, found.to_dict()) == (design, given.id, given.to_dict())
            assert found.intervals(0.05).equals(given.intervals(0.05))
    for given, states in ((noisy, False), (noisy.with_totals(len(frame)), True)):
        given.save(tmp_path / "page.html", overwrite=True)
        assert (b"add up to public totals" in (tmp_path / "page.html").read_bytes()) == states
    assert b"does not add up these rows" in (tmp_path / "page.html").read_bytes()


def test_totals_by_group_are_points_and_others_add_up_to_them() -> None:
    frame = people(6000)
    design = Design(LEVELS, tables=[("a", "b"), ("a", "c")])
    noisy = design.count(frame).release(epsilon="0.2")
    totals = frame.groupby("a").size().reindex(LEVELS["a"], fill_value=0)
    known = noisy.with_totals(totals.rename("n").reset_index().iloc[::-1])
    exact = [int(n) for n in totals]
    found = known.total("a", alpha=0.05)
    for name in ("estimate", "lower", "upper"):
        assert found[name].tolist() == pytest.approx(exact, abs=1e-9)
    cells = known.total(("a", "b"), alpha=0.05)
    # The sum over b is a row of its own.
    inside = cells[cells["b"].notna()]
    assert inside.groupby("a")["estimate"].sum().tolist() == pytest.approx(exact)
    before = noisy.total(("a", "b"), alpha=0.05)
    # Integer ends may be 1 further for another estimate; none is cut at 0.
    widths = [each["upper"] - each["lower"] for each in (cells, before)]
    assert (widths[0] <= widths[1] + 1).all()
    assert widths[0].sum() < widths[1].sum()
    assert known.id == noisy.id
    again = known.with_totals(len(frame))
    assert again.total("a")["estimate"].tolist() == pytest.approx(exact)


@pytest.mark.parametrize(
    ("totals", "error", "words"),
    [
        (pd.DataFrame({"a": [0, 1, 2], "n": [1, 2, 99]}), ValueError, "contradict"),
        (pd.DataFrame({"a": [0, 1, 3], "n": [1, 2, 57]}), ValueError, "other levels of 'a'"),
        (pd.DataFrame({"a": [0, 1], "n": [1, 59]}), ValueError, "leave out a group"),
        (pd.DataFrame({"a": [0, 1, 1], "n": [1, 2, 57]}), ValueError, "leave out a group"),
        (pd.DataFrame({"a": [0, 1, 2], "n": [1.5, 2, 57]}), TypeError, "totals"),
        (pd.DataFrame({"a": [0, 1, 2], "n": [-1, 2, 57]}), ValueError, "totals"),
        (pd.DataFrame({"z": [0, 1, 2], "n": [1, 2, 57]}), ValueError, "totals have the columns"),
        (61, ValueError, "there already"),
        ("60", TypeError, "totals"),
    ],
)
def test_wrong_totals_are_refused(totals: Any, error: Any, words: str) -> None:
    known = DESIGNS["lists"].count(people()).release(epsilon=1).with_totals(60)
    with pytest.raises(error, match=words):
        known.with_totals(totals)


def test_intervals_of_tables_hold_over_all_noise() -> None:
    """The probability of a miss is at most alpha, by enumeration of the noise of two tables."""
    design = Design({"a": [0, 1], "b": [0, 1]}, tables={"a": 1, "b": 2})
    epsilon, alpha, most = 6, 0.1, 4
    frame = pd.DataFrame({"a": [0, 0, 1], "b": [1, 0, 1]})
    table = design.count(frame)
    exact = table._nodes()
    noisy = table.release(epsilon=epsilon)
    r = np.repeat([float(each.rate) for each in noisy.mechanisms.values()], 2)
    missed, inside = np.zeros(5), 0.0
    truth = np.array([*exact, 3])
    for noise in itertools.product(range(-most, most + 1), repeat=4):
        mass = float(np.prod(np.tanh(r / 2) * np.exp(-r * np.abs(noise))))
        if mass < 1e-5:  # what is left out counts as missed
            continue
        inside += mass
        noisy._values = exact + np.array(noise)
        noisy.__dict__.pop("_fitted", None)
        rows, whole = noisy.intervals(alpha), noisy.total(alpha=alpha)
        lower, upper = (np.append(rows[x], whole[x]) for x in ("lower", "upper"))
        missed += mass * ((truth < lower) | (truth > upper))
    assert (missed + 1 - inside <= alpha).all()


@pytest.mark.parametrize("engine", ["pandas", "polars", "lazy", "arrow"])
def test_a_count_without_columns_is_one_number(engine: str, tmp_path: Path) -> None:
    frame: Any = people()
    if engine != "pandas":
        frame = pl.from_pandas(frame)
        frame = frame.lazy() if engine == "lazy" else frame
        frame = frame.to_arrow() if engine == "arrow" else frame
    design = Design({})
    assert (repr(design), design.cells, design.sensitivity) == ("Design({})", 1, 1)
    noisy = design.count(frame).release(epsilon=CLEAR)
    assert noisy.to_dict() == {(): 60}
    for ending in ("csv", "parquet", "html"):
        noisy.save(tmp_path / f"all.{ending}")
    for found in (noisy, geomdp.read(tmp_path / "all.csv"), geomdp.read(tmp_path / "all.parquet")):
        assert found.to_dict() == {(): 60}
        assert len(found.frame) == 1
        for answer in (found.total(alpha=0.05), found.intervals(0.05)):
            values = pl.DataFrame(answer).row(0) if engine != "pandas" else tuple(answer.iloc[0])
            assert values == (60, 60, 60)


def test_a_count_of_individuals_without_columns() -> None:
    frame = pd.DataFrame({"who": [1, 1, 2, 5, 5, 5]})
    for neighbours in ("add-remove", "change"):
        design = Design({}, individual="who", neighbours=neighbours)
        assert (design.count(frame)._nodes().tolist(), design.sensitivity) == (3, 1)
    with_counts = Design({}).count(pd.DataFrame({"n": [4, 5]}), counts="n")
    assert with_counts._nodes().tolist() == 9


@pytest.mark.parametrize(
    ("tables", "error", "words"),
    [
        ({"z": 1}, KeyError, "which is no column"),
        ([("a", "a")], ValueError, "each column once"),
        ([], ValueError, "tables are empty"),
        (["a", ("a",)], ValueError, "twice"),
        ({"a": -1}, ValueError, "tables = -1"),
        ({"a": "x"}, ValueError, "tables"),
        ("a", TypeError, "tables"),
        (5, TypeError, "tables"),
        ([("a", 1)], ValueError, "which is a list"),
        ([["a", "b"]], TypeError, "a key of type list: give a column or a tuple"),
        ({None: 1}, TypeError, "a key of type NoneType"),
    ],
)
def test_wrong_tables_are_refused(tables: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        Design(LEVELS, tables=tables)


def test_shares_of_margins_and_depths_beyond_a_tree_are_refused() -> None:
    with pytest.raises(ValueError, match="give labels alone"):
        Design(LEVELS, margins=("all", "0.2"), tables=["b"])
    with pytest.raises(ValueError, match="shares of 'a' are not accepted beside tables"):
        Design(LEVELS, tables=["a", "b"], shares={"a": [1, 9]})
    with pytest.raises(ValueError, match="shares of 'a' are not accepted beside tables"):
        Design(LEVELS, tables=["a", "b"]).with_shares({"a": [1, 9]})
    with pytest.raises(ValueError, match="give one from 0 to 2"):
        Design({"area": TREE}, tables=[("area", 3)])
    with pytest.raises(ValueError, match="and another table has some of its depths too"):
        Design({"area": TREE}, tables=["area", ("area", 1)])
    with pytest.raises(ValueError, match="which stands for the sum"):
        Design({"a": [1, None], "b": [2]}, tables=["b"])


def test_best_parts_have_no_more_variance_than_equal_ones() -> None:
    design = Design(LEVELS, tables=[("a", "b"), ("a", "c"), "c"])
    best = design.with_best_parts()
    assert best.tables is not None
    assert sum(best.tables.values()) == 1
    known = design.preview([0.1]), best.preview([0.1])
    columns = ["epsilon", "all cells", "a, b", "a, c", "c", "total", "types of levels"]
    assert list(known[0]) == columns
    with pytest.raises(ValueError, match="best parts are parts of tables"):
        Design(LEVELS).with_best_parts()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Design({"a": [0, 1], "b": [0, 1]}), Design({"a": [0, 1], "b": [0, 1]})),
        (Design({"a": [0, 1]}, margins=9), Design({"b": [0, 1], "a": [0, 1]}, complete="b")),
        (Design({"area": TREE}, complete=True), Design({"b": [0, 1]}, complete=True, margins=9)),
    ],
)
def test_two_releases_are_the_least_squares_of_their_tables(one: Design, other: Design) -> None:
    levels = {k: x if k != "area" else TREE.leaves for k, x in (other.levels | one.levels).items()}
    frame = people(levels={k: [x for x in v if x not in ("all", 9)] for k, v in levels.items()})
    pair = [one.count(frame).release(epsilon="0.2"), other.count(frame).release(epsilon="0.4")]
    found = pair[0].combine(pair[1])
    whole = Design({k: TREE if k == "area" else sorted(set(frame[k])) for k in levels})
    cells = list(itertools.product(*(axis.cells for axis in whole._axes)))
    rows, counts, weights = [], [], []
    for noisy in pair:
        plain = Design(**noisy.design._arguments())
        each = [plain.count(pd.DataFrame([x], columns=list(levels)))._nodes() for x in cells]
        parts = noisy.design._parts
        for block, mechanism in noisy.mechanisms.items():
            rows.append(np.stack([x[parts[block]].reshape(-1) for x in each], axis=1))
            counts.append(noisy._values[parts[block]].reshape(-1))
            weights.append(np.full(counts[-1].size, variance(float(mechanism.rate)) ** -0.5))
    matrix, count, weight = np.concatenate(rows), np.concatenate(counts), np.concatenate(weights)
    fit, *_ = np.linalg.lstsq(matrix * weight[:, None], count * weight, rcond=None)
    assert found.total()["estimate"][0] == pytest.approx(fit.sum(), abs=1e-6)
    for label in levels:
        answer = found.total(label, alpha=0.05)
        for level, estimate in zip(answer[label], answer["estimate"], strict=True):
            if pd.isna(level):
                continue
            inside = [
                x[list(levels).index(label)] == level
                or (label == "area" and _is_in("area", x[list(levels).index(label)], level))
                for x in cells
            ]
            if any(inside):
                assert estimate == pytest.approx(fit[inside].sum(), abs=1e-6)
    assert len(found.intervals(0.05)) >= len(pair[0].intervals(0.05))


def test_releases_of_other_counts_are_not_combined() -> None:
    design = Design({"a": [0, 1]}, individual="who", l0=1)
    frame = pd.DataFrame({"who": [1, 2], "a": [0, 1], "b": [1, 1]})
    noisy = design.count(frame).release(epsilon=1)
    for other, words in (
        (Design({"a": [0, 1]}, individual="who", l0=2), "other has l0 = 2, not 1"),
        (Design({"a": [0, 1]}), "other has unit = 'record', not 'who' and individual = None"),
        (Design({"b": [0, 1]}, individual="who", l0=1), "other columns"),
        (Design({"a": [1, 2]}, individual="who", l0=1), "other levels of 'a'"),
        (Design({"a": [1, 0]}, individual="who", l0=1), "release both from one count"),
    ):
        with pytest.raises(ValueError, match=words):
            noisy.combine(other.count(frame).release(epsilon=1))
    one, two = (Design({"a": x}).count(frame).release(epsilon=1) for x in ([0, 1], [1, 0]))
    with pytest.raises(ValueError, match="other levels of 'a': give a release with the same, in"):
        one.combine(two)
    with pytest.raises(ValueError, match="is this release"):
        noisy.combine(noisy.with_totals(2))
    table = design.count(frame)
    with pytest.raises(ValueError, match="with bounds"):
        table.release(epsilon=1).combine(table.release(epsilon=1, bounds=(0, 5)))
    one, two = (table.release(epsilon=1).with_totals(n) for n in (2, 3))
    with pytest.raises(ValueError, match="contradict"):
        one.combine(two)


@pytest.mark.parametrize("linf", [1, 3])
def test_answers_from_two_releases_keep_the_limits_of_both(linf: int) -> None:
    """A release without limits, or with others, has other true counts than the two together."""
    frame = pd.DataFrame({"who": [1, 1, 1, 2], "a": [0, 0, 1, 1], "b": [1, 1, 1, 1]})
    levels = {"a": [0, 1], "b": [0, 1]}
    # Of all cells, so that nothing is drawn.
    known = [Design(levels, individual="who", l0=4, linf=linf, margins=x) for x in (None, 9)]
    one, two, three = (x.count(frame).release(epsilon=1) for x in (*known, known[0]))
    both = one.combine(two)
    assert both.combine(three).total("a")["a"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="unit = 'record', not 'who' and individual = None"):
        both.combine(Design(levels, margins=9).count(frame).release(epsilon=1))


@pytest.mark.parametrize("more", [1, -1])
def test_totals_of_lists_that_disagree_are_refused_either_way(more: int) -> None:
    noisy = DESIGNS["lists"].count(people()).release(epsilon=1)
    totals = people().groupby("a").size().rename("n").reset_index()
    for first, second in ((60 + more, totals), (totals, 60 + more)):
        with pytest.raises(ValueError, match="contradict"):
            noisy.with_totals(first).with_totals(second)


def test_depths_of_a_tree_share_the_part_of_its_table() -> None:
    design = Design(
        {"area": TREE, "b": ["x", "y"]}, tables={"area": 1, "b": 1}, shares={"area": [1, 1, 2]}
    )
    found = {block: each.epsilon for block, each in design.mechanisms_for(1).items()}
    half = Fraction(1, 2)
    assert found == {(0, 0): half / 4, (1, 0): half / 4, (2, 0): half / 2, (0, 1): half}
