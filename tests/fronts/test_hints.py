"""Each line of code that an error advises, executed: what it makes is accepted.

A line that no test here executes is in :data:`OTHERS`, which says why.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy
import pandas as pd
import polars as pl
import pyarrow
import pytest
from scipy import sparse

import geomdp
from calls import ArrayLike
from geomdp import GeometricMechanism, tables

MECHANISM = GeometricMechanism(1)
DESIGN = tables.Design({"town": ["a", "b"]})
PEOPLE = pd.DataFrame(
    {"town": ["a", "b"], "n": [1, 2], "time": pd.Timestamp("2026-01-01", tz="UTC")}
)
TOWNS = pyarrow.table({"town": ["a"]})
RELATION = duckdb.sql("SELECT 'a' AS town, sum(1) AS n")


class Hint(NamedTuple):
    #: The line, as the source has it.
    line: str
    call: Callable[[Any], Any]
    #: What is refused, and the name that the line has for it.
    value: Any
    name: str = "counts"
    #: What the line belongs to.
    of: str = ""


def count(frame: Any) -> Any:
    return DESIGN.count(frame)


def by_time(column: Any) -> Any:
    return tables.count(column, [pd.Timestamp("2026-01-01").to_pydatetime()])


HINTS = [
    Hint("counts.astype(np.int64)", MECHANISM.release, numpy.array([1.0])),
    Hint("astype('Int64')", MECHANISM.release, pd.Series([1.0]), of="counts."),
    Hint(
        "sparse.to_dense()", MECHANISM.release, pd.Series(pd.arrays.SparseArray([1])), of="counts."
    ),
    Hint("{}.toarray()", MECHANISM.release, sparse.csr_array([[1, 0]])),
    Hint("numpy.asarray({})", MECHANISM.release, ArrayLike()),
    Hint("pyarrow.table({})", count, TOWNS.to_reader(), "frame"),
    Hint("{}.to_frame()", count, PEOPLE["town"], "frame"),
    Hint("{}.to_frame()", count, pl.Series("town", ["a"]), "frame"),
    Hint(".dt.tz_localize(None)", by_time, PEOPLE["time"], of="column"),
    Hint(".dt.replace_time_zone(None)", by_time, pl.from_pandas(PEOPLE)["time"], of="column"),
    Hint(
        "with_complete({})",
        DESIGN.count(PEOPLE).release(epsilon=9).combine,
        tables.Design({"town": ["a", "b"], "n": [1, 2]}).count(PEOPLE).release(epsilon=9),
        of="column.",
    ),
]
#: Lines of clusters, which their tests execute, and those that are no calls on what was given.
OTHERS = {
    *("checkpoint()", "frame.checkpoint()"),
    *("plot()", "ReleaseKey()", "abs(y)", "exp(epsilon)", "sum(n)"),
    *("AllDomain(T)", "VectorDomain(...)", "AbsoluteDistance(T)", "L1Distance(T)"),
    # tests/tables/test_operations.py executes the first, test_hurried.py beside it the last two.
    *(".estimates()", "SymmetricDistance()", "exp({})", ".save(path)", ".to_dict()"),
}


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module in one line, without docstrings; a value in braces is {}."""
    inside = {
        id(part)
        for whole in ast.walk(tree)
        if isinstance(whole, ast.JoinedStr | ast.Expr)
        for part in ast.walk(whole)
        if part is not whole and isinstance(part, ast.Constant)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            parts = (x.value if isinstance(x, ast.Constant) else "{}" for x in each.values)
            yield "".join(map(str, parts))
        elif isinstance(each, ast.Constant) and id(each) not in inside:
            yield str(each.value)


def test_every_line_that_is_advised_is_executed() -> None:
    package, found = Path(geomdp.__file__).parent, set()
    for path in package.rglob("*.py"):
        for text in texts(ast.parse(path.read_text())):
            calls = re.findall(r"[\w.{}]*[\w}]\([^()\s]*\)", text)
            alone = re.fullmatch(r"\{\}\.\w+\(\)|\w+\.\w+\(\{\}\)", text)
            found |= set(calls if " " in text or alone else [])
    assert found - OTHERS == {hint.line for hint in HINTS}


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: hint.line)
def test_what_a_hint_makes_is_accepted(hint: Hint) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        hint.call(hint.value)
    pattern = re.sub(r"^\\{\\}", hint.name, re.escape(hint.line))
    pattern = pattern.replace(re.escape("{}"), r"(?:[^()]|\([^()]*\))+?")
    [line] = re.findall(pattern, str(error.value))
    names = {"np": numpy, "numpy": numpy, "pyarrow": pyarrow, hint.name: hint.value}
    hint.call(eval(hint.of + line, names | {"column": hint.value}))


@pytest.mark.parametrize("made", [RELATION.pl, lambda: pyarrow.table(RELATION)])
def test_a_sum_in_sql_is_counted_once_it_is_cast_as_the_error_says(made: Any) -> None:
    """DuckDB's sums are of 128 bits, which its neighbours read as decimals."""
    with pytest.raises(TypeError, match=r"CAST\(sum\(n\) AS BIGINT\)"):
        DESIGN.count(made(), counts="n")
    query = "SELECT 'a' AS town, CAST(sum(n) AS BIGINT) AS n FROM (SELECT 1 AS n)"
    assert DESIGN.count(pyarrow.table(duckdb.sql(query)), counts="n").release(epsilon=99)


def test_a_recipe_for_weights_makes_integers() -> None:
    page = Path(__file__).parents[2] / "docs/cookbook/weights.md"
    [line] = re.findall(r"`(\(100 \* weight\)[^`]+)`", page.read_text())
    values = eval(line, {"weight": pd.Series([0.5, 1.25])})
    frame = PEOPLE.assign(weight=values)
    assert DESIGN.sum(frame, "weight", bounds=(0, 300)).release(epsilon=9)


def test_an_unknown_parameter_names_the_call_that_was_made() -> None:
    """It said Layout.__init__(), which nobody calls."""
    with pytest.raises(TypeError, match=r"^Design\(\) got an unexpected .* 'neighbors'"):
        tables.Design({"town": ["a"]}, neighbors="change")  # type: ignore[call-arg]


def test_frames_of_populations_are_refused_without_a_line_that_fails() -> None:
    noisy = DESIGN.count(PEOPLE).release(epsilon=9)
    population = pd.DataFrame({"town": ["a", "b"], "n": [100, 200]})
    for frame in (population, pl.from_pandas(population), pyarrow.Table.from_pandas(population)):
        with pytest.raises(TypeError, match=r"population has type .*: give an array or a column"):
            noisy.rate(frame, by="town")
    assert len(noisy.rate(population.set_index("town")["n"], by="town")) == 2
