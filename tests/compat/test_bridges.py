"""The rows of docs/migration.md that lead from tables of other libraries to a design."""

import ast
import re
from typing import Any

import pandas as pd
import pytest
from diffprivlib import BudgetAccountant
from diffprivlib.tools import count_nonzero, histogram

import bridges
from geomdp import accounting
from geomdp.tables import Design, Table

VISITS = pd.DataFrame(bridges.VISITS)
NAMES = {"Design": Design, "visits": VISITS, "levels": {"sex": bridges.SEXES}}
ROWS = [(library, row) for library in bridges.LIVE for row in bridges.rows(library)]


@pytest.mark.parametrize(("library", "row"), ROWS, ids=lambda each: getattr(each, "here", each))
def test_our_line_has_the_scale_and_counts_the_records(library: str, row: bridges.Row) -> None:
    made: Any = eval(row.here, dict(NAMES))
    table: Table = made if isinstance(made, Table) else made.count(VISITS)
    assert {float(each.scale) for each in table.design.mechanisms_for(1).values()} == {row.scale}
    assert {*bridges.SEXES} <= {*table.release(epsilon=1).frame["sex"]}


def test_each_table_is_read_whole() -> None:
    """A row that the pattern does not read would be compared with nothing."""
    section = (
        bridges.PAGE.read_text().split("\n## Counts of records by group\n")[1].split("\n## ")[0]
    )
    whole = [line for line in section.splitlines() if line.startswith("| `")]
    assert len(whole) == len(ROWS) + len(results())
    assert {library for library, _ in ROWS} == {*bridges.LIVE}
    for library in bridges.LIVE:
        assert len(bridges.rows(library)) >= 5


def results() -> list[tuple[str, str, str]]:
    """Return the rows whose lines give a result."""
    section = bridges.PAGE.read_text().split("\n### diffprivlib's tools\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+)` \| `(.+)` \| `(.+)` \|$", section, re.MULTILINE)


@pytest.mark.parametrize(
    ("there", "here", "result"), results(), ids=map(str, range(len(results())))
)
def test_both_lines_give_the_result(there: str, here: str, result: str) -> None:
    theirs = {"histogram": histogram, "count_nonzero": count_nonzero}
    theirs |= {"BudgetAccountant": BudgetAccountant}
    for line, names in ((there, theirs), (here, {"accounting": accounting})):
        assert eval(line, {**NAMES, **names}) == ast.literal_eval(result), line
