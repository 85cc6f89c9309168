"""From a design to a published file: every step knows what it costs."""

import collections
import csv
import hashlib
import itertools
import json
import math
import os
import pickle
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import pyplot

import geomdp
from geomdp import GeometricMechanism, accounting, tables
from geomdp.tables import Design
from geomdp.tables._columns.native import LIBRARIES
from geomdp.tables._engines import CLUSTERS

MAKERS: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}
in_all = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
REGIONS, DISEASES = ["north", "south"], ["flu", "measles", "none"]
VISITS = {
    "patient": [person for person in range(300) for _ in range(3)],
    "region": [REGIONS[n % 2] for n in range(900)],
    "disease": [DISEASES[n * 7 % 3] for n in range(900)],
}
DESIGN = Design({"region": REGIONS, "disease": DISEASES}, individual="patient", l0=2)
#: So little noise that counts are exact but for a probability of exp(-20).
CLEAR = 400


def rows(table: Any) -> list[int]:
    """Return the counts of a table of any library."""
    column = table.frame["count"]
    return [int(n) for n in (column.to_pylist() if hasattr(column, "to_pylist") else column)]


@in_all
def test_the_block_of_the_readme_runs(make: Any, tmp_path: Path) -> None:
    """The thread as a whole, in every library."""
    assert DESIGN.sensitivity == 2
    assert DESIGN.accuracy(epsilon=0.5, alpha=0.05) == 12
    epsilon = DESIGN.epsilon_for(accuracy=5, alpha=0.05, of="all")
    assert DESIGN.accuracy(epsilon=epsilon, alpha=0.05, of="all") == 5
    assert DESIGN.accuracy(epsilon=epsilon * (1 - 1e-5), alpha=0.05, of="all") > 5
    table = DESIGN.count(make(VISITS))
    budget = accounting.Budget(epsilon=6)
    noisy = table.release(epsilon=0.5, budget=budget, label="2026-10")
    assert budget.spent == [("2026-10", 0.5)]
    assert (noisy.privacy_loss(), noisy.epsilon, noisy.label) == (0.5, Fraction(1, 2), "2026-10")
    kind = {"LazyFrame": "DataFrame"}.get(type(make(VISITS)).__name__, type(make(VISITS)).__name__)
    for frame in (
        noisy.frame,
        noisy.intervals(alpha=0.05),
        noisy.total("region", alpha=0.05),
        noisy.total(alpha=0.05),
        noisy.total(),
        noisy.percent("region", alpha=0.05),
        noisy.consistent(),
    ):
        assert type(frame).__name__ == kind
    for name in ("2026-10.csv", "2026-10.parquet"):
        noisy.save(tmp_path / name)
        read = geomdp.read(tmp_path / name, library="pandas")
        assert read.to_dict() == noisy.to_dict()
        assert (read.design, read.epsilon, read.label) == (DESIGN, noisy.epsilon, "2026-10")
        assert read.mechanisms == noisy.mechanisms
        found = pl.from_pandas(read.intervals(alpha=0.1).astype({"region": str, "disease": str}))
        wanted = noisy.intervals(alpha=0.1)
        wanted = (
            pl.from_arrow(wanted)
            if isinstance(wanted, pa.Table)
            else pl.DataFrame({name: list(wanted[name]) for name in found.columns})
        )
        assert found.rows() == wanted.rows()


WEIGHTED = {"town": ["a", "b", "a", None, None], "sick": ["no", "no", "yes", "no", "no"]}
OF_WEIGHTS = Design({"town": ["a", "b", None], "sick": ["yes", "no"]}, margins={"town": "all"})


@in_all
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_counts_of_a_crosstab_are_so_many_records(make: Any, dtype: str) -> None:
    of = [3, 0, 5, 2, 4]
    counted = OF_WEIGHTS.count(make({**WEIGHTED, "n": np.array(of, dtype)}), counts="n")
    repeated = {name: np.repeat(np.array(each, object), of) for name, each in WEIGHTED.items()}
    wanted = OF_WEIGHTS.count(make({name: list(each) for name, each in repeated.items()}))
    assert rows(counted) == rows(wanted) == [5, 3, 0, 0, 0, 6, 5, 9]
    assert counted.sensitivity == 2
    alone = tables.count(
        make({"n": np.array(of, dtype), "k": [1, 2, 1, 2, 1]}), {"k": [1, 2]}, counts="n"
    )
    assert rows(alone) == [12, 2]


@in_all
def test_no_weight_is_an_error_that_shows_it(make: Any) -> None:
    """Below 0 and null count as 0, and sums end at the limit of int64."""
    most = 2**63 - 1
    towns = {**WEIGHTED, "sick": ["no"] * 5}
    for of, wanted in (
        ([-7, -(2**63), 5, -1, 0], [0, 5, 0, 0, 0, 0, 0, 5]),
        ([most, most, 1, most, most], [0, most, 0, most, 0, most, 0, most]),
        ([most - 1, 2**62, 1, 2**62, 0], [0, most, 0, 2**62, 0, 2**62, 0, most]),
    ):
        data = make({**towns, "n": np.array(of)})
        assert rows(OF_WEIGHTS.count(data, counts="n")) == wanted
    wide = make({**towns, "n": np.array([2**64 - 1, 2**63, 0, 1, 2**63 - 2], np.uint64)})
    found = rows(OF_WEIGHTS.count(wide, counts="n"))
    assert found == [0, most, 0, most, 0, most, 0, most]
    missing: Any = [None, 2, 3, None, 1]
    nulls = make({**WEIGHTED, "n": pd.array(missing, "Int64") if make is pd.DataFrame else missing})
    assert rows(OF_WEIGHTS.count(nulls, counts="n")) == [3, 0, 0, 2, 0, 1, 3, 3]


@in_all
def test_counts_of_another_type_raise(make: Any) -> None:
    for of in ([0.5] * 5, ["1"] * 5, [True] * 5):
        with pytest.raises(
            TypeError, match=r"counts 'n' of type .* give integers .* not survey weights"
        ):
            OF_WEIGHTS.count(make({**WEIGHTED, "n": of}), counts="n")
    data = make({**WEIGHTED, "n": [1] * 5})
    with pytest.raises(KeyError, match="no column 'm'"):
        OF_WEIGHTS.count(data, counts="m")
    bounded = Design({"town": ["a"]}, individual="sick", l0=1)
    with pytest.raises(ValueError, match="counts = 'n' are not accepted with individuals"):
        bounded.count(data, counts="n")
    with pytest.raises(TypeError, match="counts are a column of a frame"):
        Design(["a"]).count(pd.Series(["a"]), counts="n")


def test_categorical_counts_raise_beside_categorical_levels() -> None:
    # Columns that are all categorical are counted by their codes, which ignored the weights.
    data = pd.DataFrame({"a": list("xy") * 9, "n": list("12") * 9}, dtype="category")
    with pytest.raises(TypeError, match="counts 'n' of type Categorical are not accepted"):
        Design({"a": ["x", "y"]}).count(data, counts="n")


@in_all
def test_contributions_are_bounded_within_the_cells_of_the_table(make: Any) -> None:
    """Records outside the table use up nothing, and `other` is one cell."""
    records = {"who": [1] * 6, "town": ["x", "y", "z", "a", "a", "a"]}
    outside = Design({"town": ["a"]}, individual="who", l0=1, linf=2)
    assert rows(outside.count(make(records))) == [2]
    merged = Design({"town": ["a"]}, individual="who", l0=2, linf=2, other="else")
    assert rows(merged.count(make(records))) == [2, 2]


def test_cells_are_drawn_uniformly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exhaustive over the orders of three cells of an individual, whatever is in them."""
    records = pd.DataFrame({"who": [1] * 6, "town": ["a", "a", "a", "b", "b", "c"]})
    design = Design({"town": ["a", "b", "c"]}, individual="who", l0=1)
    found: Any = collections.Counter()
    for order in itertools.permutations(range(3)):
        words = np.array(order, np.uint64)
        monkeypatch.setattr(tables._count.contributions, "words", lambda _, words=words: words)
        found[tuple(rows(design.count(records)))] += 1
    assert found == {(1, 0, 0): 2, (0, 1, 0): 2, (0, 0, 1): 2}


def test_mechanisms_of_too_small_a_sensitivity_raise() -> None:
    table = tables.count(
        pd.DataFrame(VISITS), {"region": REGIONS, "disease": DISEASES}, margins="all"
    )
    assert table.sensitivity == 4
    budget = accounting.Budget(1)
    with pytest.raises(ValueError, match=r"sensitivity 1, .* by up to 4: give epsilon=1"):
        table.release(GeometricMechanism(1.0), budget=budget)
    assert budget.spent == []
    assert table.release(GeometricMechanism(1.0, 4), budget=budget).privacy_loss() == 1
    assert table.release(GeometricMechanism(1.0, 8)).privacy_loss() == 0.5
    assert table.release(epsilon="0.1").epsilon == Fraction(1, 10)
    for wrong in ({}, {"mechanism": GeometricMechanism(1.0, 4), "epsilon": 1}):
        with pytest.raises(TypeError, match=r"epsilon is not given|both given"):
            table.release(**wrong)
    with pytest.raises(TypeError, match="has type float: give epsilon=, or a GeometricMechanism"):
        table.release(0.5)  # type: ignore[call-overload]


def test_a_release_is_booked_before_its_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    table = DESIGN.count(pd.DataFrame(VISITS))
    budget, drawn = accounting.Budget(epsilon=1), list[Any]()
    release = GeometricMechanism.release

    def spy(*arguments: Any, **more: Any) -> Any:
        drawn.append(budget.spent)
        return release(*arguments, **more)

    monkeypatch.setattr(GeometricMechanism, "release", spy)
    table.release(epsilon=0.75, budget=budget, label="2026")
    assert drawn == [[("2026", 0.75)]]
    with pytest.raises(ValueError, match=r"costs 0\.5, but only 0\.25 of 1 is left"):
        table.release(epsilon=0.5, budget=budget)
    with pytest.raises(TypeError, match=r"budget = 1\.0 has type float: give a Budget"):
        table.release(epsilon=0.5, budget=1.0)  # type: ignore[arg-type]
    # What cannot be released is not booked.
    with pytest.raises(ValueError, match=r"scale|epsilon"):
        table.release(epsilon=1e-60, budget=budget)
    assert budget.epsilon_spent == 0.75
    assert len(drawn) == 1


def test_the_picture_of_a_design_is_its_preview() -> None:
    epsilons = [0.1, 0.5, 2]
    axes = DESIGN.plot(epsilons, alpha=0.1)
    frame = DESIGN.preview(epsilons, alpha=0.1, library="pandas")
    assert [line.get_label() for line in axes.get_lines()] == list(frame.columns[1:-1])
    for line in axes.get_lines():
        drawn = dict(line.get_xydata().tolist())
        assert [drawn[each] for each in epsilons] == frame[line.get_label()].tolist()
        assert len(drawn) > 80  # Others between them.
        assert line.get_drawstyle() == "steps-post"  # Never below the accuracy in between.
    assert axes.get_ylabel() == "accuracy at level 0.1 (counts)"
    assert DESIGN.plot(ax=axes) is axes
    pyplot.close("all")
    for wrong, error in (([1, 0.5], "epsilons"), ([1], "two or more"), ([0, 1], "epsilons = 0")):
        with pytest.raises(ValueError, match=error):
            DESIGN.plot(wrong)
    with pytest.raises(TypeError, match="epsilons"):
        DESIGN.plot(0.5)  # type: ignore[arg-type]
    assert DESIGN.preview(0.5)["cell"].tolist() == [12]
    wide = Design({f"column {n}": [1, 2] for n in range(6)})
    with pytest.raises(ValueError, match="9 curves are not accepted: give from 1 to 7"):
        wide.plot([0.5, 1])


def test_simultaneous_intervals_are_those_of_the_accuracy() -> None:
    noisy = DESIGN.count(pd.DataFrame(VISITS)).release(epsilon=0.5)
    for frame, reach in (
        (noisy.intervals(alpha=0.05, simultaneous=True), "all"),
        (noisy.total(("region", "disease"), alpha=0.05, simultaneous=True), "all"),
    ):
        wide = DESIGN.accuracy(epsilon=0.5, alpha=0.05, of=reach)
        assert set(frame["upper"] - frame["estimate"]) == {wide}
    wide, alone = (
        noisy.total("region", alpha=0.05, simultaneous=each)["upper"].sum()
        for each in (True, False)
    )
    assert wide > alone


def test_a_table_without_noise_says_so(tmp_path: Path) -> None:
    table = tables.count(pd.Series(["no", "yes"]), ["yes", "no"])
    clear = table.release(GeometricMechanism.from_scale(0))
    assert clear.privacy_loss() == clear.epsilon == math.inf
    assert "privacy loss inf" in repr(clear)
    with pytest.raises(ValueError, match="without noise cannot be saved"):
        clear.save(tmp_path / "t.csv")


def test_shares_of_margins_add_up_to_epsilon() -> None:
    margins = {"region": ("all", Fraction(1, 5)), "disease": "all"}
    design = Design({"region": REGIONS, "disease": DISEASES}, margins=margins, l0=2)
    noisy = design.count(pd.DataFrame(VISITS)).release(epsilon=1)
    assert noisy.epsilon == 1
    of = {block: each.epsilon for block, each in noisy.mechanisms.items()}
    assert of == {
        (0, 0): Fraction(1, 10),
        (0, 1): Fraction(1, 10),
        (1, 0): Fraction(2, 5),
        (1, 1): Fraction(2, 5),
    }
    with pytest.raises(ValueError, match="shares of epsilon"):
        design.count(pd.DataFrame(VISITS)).release(GeometricMechanism(1, design.sensitivity))
    levels = {"region": REGIONS, "disease": DISEASES}
    table = tables.count(pd.DataFrame(VISITS), levels, margins="all")
    frame = table.release(epsilon=CLEAR).consistent()
    assert frame["count"].tolist() == rows(table)


def test_save_replaces_no_file(tmp_path: Path) -> None:
    noisy = DESIGN.count(pd.DataFrame(VISITS)).release(epsilon=0.5)
    other = DESIGN.count(pd.DataFrame(VISITS)).release(epsilon=1)
    for name in ("a.csv", "b.parquet"):
        noisy.save(tmp_path / name)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(FileExistsError):
            other.save(tmp_path / name)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        other.save(tmp_path / name, overwrite=True)
        assert geomdp.read(tmp_path / name).epsilon == 1
    # The description alone is there: neither file is written.
    os.unlink(tmp_path / "a.csv")
    with pytest.raises(FileExistsError):
        noisy.save(tmp_path / "a.csv")
    assert sorted(os.listdir(tmp_path)) == ["a.csv.json", "b.parquet", "b.parquet.json"]
    with pytest.raises(ValueError, match=r"ends in \.csv, \.parquet or \.html"):
        noisy.save(tmp_path / "c.txt")
    umask = os.umask(0o022)
    os.umask(umask)
    assert (tmp_path / "b.parquet").stat().st_mode & 0o777 == 0o666 & ~umask


def test_files_state_the_release_and_nothing_else(tmp_path: Path) -> None:
    """Two publishers of one table write equal files, wherever they are."""
    noisy = DESIGN.count(pd.DataFrame(VISITS)).release(epsilon=Fraction(1, 3))
    copies = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        pickle.loads(pickle.dumps(noisy)).save(tmp_path / folder / "t.csv")
        noisy.save(tmp_path / folder / "t.parquet")
        copies.append({p.name: p.read_bytes() for p in (tmp_path / folder).iterdir()})
    assert copies[0] == copies[1]
    description = json.loads(copies[0]["t.csv.json"])
    facts = description["geomdp"]
    assert (facts["epsilon"], facts["delta"], facts["sensitivity"]) == ("1/3", "0", 2)
    assert facts["mechanisms"][0]["rate"] == "1/6"
    assert [field["name"] for field in description["schema"]["fields"]] == [
        "region", "disease", "count",
    ]  # fmt: skip
    text = copies[0]["t.csv.json"].decode()
    assert str(tmp_path) not in text
    assert str(Path(__file__).parents[2]) not in text


def test_a_file_written_by_the_standard_library_alone_is_read(tmp_path: Path) -> None:
    """The page of the format is enough to write one."""
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["sick", "n"], ["yes", -3], ["no", 40]])
    mechanism = GeometricMechanism(Fraction(1, 2))
    plan = mechanism.certificate(np.int64).to_json().encode()
    fields = [{"name": "sick", "type": "string"}, {"name": "n", "type": "integer"}]
    facts = {
        "format": "geomdp-release-1",
        "version": "0.1.0",
        "id": "0123456789abcdef" * 2,
        "corrects": [],
        "count_id": None,
        "about": {},
        "label": None,
        "epsilon": "1/2",
        "part_of": None,
        "tier": None,
        "delta": "0",
        "neighbours": "add-remove",
        "individual": None,
        "l0": 1,
        "linf": 1,
        "l1": None,
        "values": None,
        "sensitivity": 1,
        "at_least": None,
        "rest": None,
        "rounded": None,
        "name": "n",
        "top": None,
        "tables": None,
        "totals": [],
        "axes": {"sick": {"levels": ["yes", "no"], "other": [], "margin": [], "shares": ["1"]}},
        "mechanisms": [{"depths": [0], "rate": "1/2", "bounds": None}],
    }
    facts["mechanisms"][0]["plan_sha256"] = hashlib.sha256(plan).hexdigest()  # type: ignore[index]
    rows = (tmp_path / "t.csv").read_bytes()
    description = {"schema": {"fields": fields}, "bytes": len(rows), "geomdp": facts}
    description["hash"] = f"sha256:{hashlib.sha256(rows).hexdigest()}"
    (tmp_path / "t.csv.json").write_text(json.dumps(description))
    read = geomdp.read(tmp_path / "t.csv", library="polars")
    assert read.to_dict() == {"yes": -3, "no": 40}
    # A noisy count below 0 has the interval of 0.
    assert read.intervals(alpha=0.05)["upper"].to_list() == [6, 46]
    facts["mechanisms"][0]["plan_sha256"] = "0" * 64  # type: ignore[index]
    (tmp_path / "t.csv.json").write_text(json.dumps(description))
    with pytest.warns(UserWarning, match="another plan"):
        geomdp.read(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"levels": {"a": [1, 1]}}, ValueError, "empty or repeat"),
        ({"levels": {"a": "xy"}}, TypeError, "give a list"),
        ({"levels": {"a": [[1]]}}, TypeError, "hashable"),
        ({"individual": "who"}, ValueError, "l0 = None"),
        ({"l0": 0}, ValueError, "l0 = 0"),
        ({"linf": 1.5}, TypeError, "linf = 1.5"),
        ({"neighbours": "both"}, ValueError, "neighbours = 'both'"),
        ({"name": "n"}, ValueError, "name = 'n'"),
        ({"name": 1}, TypeError, "name = 1"),
        ({"margins": {"b": "all"}}, KeyError, "no column 'b'"),
        ({"margins": {"n": ("all", 1)}}, ValueError, "have a share"),
        ({"margins": True}, TypeError, "margins = True has type bool: give a label"),
        ({"margins": "all"}, ValueError, "levels of 'n' with margins = 'all' are not accepted"),
        ({"margins": {"town": "a"}}, ValueError, "margins = 'a' are empty or repeat one"),
        ({"margins": {"n": 3}, "other": {"n": 3}}, ValueError, "margins = 3 are empty or repeat"),
        ({"other": False}, TypeError, "other = False has type bool: give a label"),
        ({"other": {"city": "else"}}, KeyError, "no column 'city'"),
    ],
)
def test_invalid_designs_raise(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Design(**({"levels": {"town": ["a"], "n": [1, 2]}} | arguments))


@pytest.mark.parametrize("library", LIBRARIES)
def test_preview_has_the_accuracies(library: Any) -> None:
    frame = DESIGN.preview([0.5, 1], library=library)
    table = (
        frame
        if library == "pyarrow"
        else pa.table({name: list(frame[name]) for name in frame.columns})
    )
    of = {"cell": None, "all cells": "all", "sum by region": "region", "total": ()}
    for name, columns in of.items():
        found = table[name].to_pylist()
        assert found == [DESIGN.accuracy(epsilon=e, alpha=0.05, of=columns) for e in (0.5, 1)]
    types = Design({"day": [date(2026, 1, 1)], "n": [None, 1], "no": [None]}).preview(1)
    assert [*types["types of levels"]] == ["day date, n int, no null"]


def test_designs_are_public_values() -> None:
    design = Design(
        {"region": REGIONS, "disease": DISEASES},
        other="else",
        margins={"region": ("all", Fraction(1, 3))},
        individual="patient",
        l0=3,
        linf=2,
        neighbours="change",
        name="n",
    )
    assert design.sensitivity == 3 * 2 * 2 * 2
    assert (design.shape, design.cells) == ((4, 4), 16)
    assert eval(repr(design), {"Design": Design, "Fraction": Fraction}) == design
    assert pickle.loads(pickle.dumps(design)) == design
    assert design != DESIGN
    assert "north" in design._repr_html_()
    with pytest.raises(AttributeError):
        design.l0 = 5


@pytest.mark.parametrize(("engine", "library"), CLUSTERS.items())
def test_records_on_a_cluster_are_left_to_a_module_that_exists(engine: str, library: str) -> None:
    """The message named geomdp.spark after that module had moved."""
    frame = type("DataFrame", (), {"__module__": f"{library}.frames"})()
    with pytest.raises(TypeError, match="use geomdp") as refused:
        Design(["yes", "no"]).count(frame)
    name = str(refused.value).rpartition(" ")[2]
    assert (name, bool(find_spec(name))) == (f"geomdp.tables.{engine}", True)


TOTAL_LIKE = ["All", "TOTAL", "sum", "Total population", "Grand total", "All ages", "Both sexes"]


@pytest.mark.parametrize("level", TOTAL_LIKE)
def test_levels_named_like_totals_are_refused_with_counts(level: str) -> None:
    """A crosstab's own margins count records again: one person changed 4 for a sensitivity of 1."""
    counted = pd.DataFrame({"sex": ["f", "m", level], "n": [2, 3, 5]})
    design = Design({"sex": ["f", "m", level]})
    message = f"level '{level}' of 'sex', which is named like a total .* give margins= for a total"
    with pytest.raises(ValueError, match=message):
        design.count(counted, counts="n")
    stated = design.count(counted, counts="n", not_totals=[level])
    assert stated._nodes().tolist() == [2, 3, 5]
    # Records have no totals, and the name of a margin is no level.
    assert design.count(counted)._nodes().tolist() == [1, 1, 1]
    margins = Design({"sex": ["f", "m"]}, margins=level)
    assert margins.count(counted[:2], counts="n")._nodes().tolist() == [5, 2, 3]
    for wrong, error in (("x", TypeError), (["x"], ValueError)):
        with pytest.raises(error, match=r"^not_totals "):
            design.count(counted, counts="n", not_totals=wrong)


@pytest.mark.parametrize(
    "level", ["Allan", "small", "Totalitarian", "summer", "Salt all round it", ""]
)
def test_other_levels_are_no_totals(level: str) -> None:
    counted = pd.DataFrame({"sex": ["f", level], "n": [2, 3]})
    assert Design({"sex": ["f", level]}).count(counted, counts="n")._nodes().tolist() == [2, 3]
