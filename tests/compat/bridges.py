"""The tables of docs/migration.md, and what the other libraries make of their cells.

A row has what to write there, what to write here, and the noise scale of each count by both at
epsilon 1. tests/compat/test_bridges.py computes ours. `bridges.py LIBRARY`, which runs beside that
library without geomdp (`make bridges`), computes theirs.
"""

import ast
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[2] / "docs/migration.md"
#: The records of all examples.
VISITS = {
    "id": [1, 1, 2, 3] * 50,
    "sex": [*"fmfm"] * 50,
    "age": [20, 30, 40, 50] * 50,
    "income": [10, 20, 30, 40] * 50,
}
SEXES = ["f", "m"]


class Row(NamedTuple):
    #: The pieces of code that stand there, and the line that stands here.
    there: list[str]
    here: str
    scale: float


def rows(library: str) -> list[Row]:
    """Return the rows of the table below the heading of a library."""
    section = PAGE.read_text().split(f"\n### {library}\n")[1].split("\n## ")[0].split("\n### ")[0]
    cells = re.findall(r"^\| (.+) \| `(.+)` \| ([0-9]+) \|$", section, re.MULTILINE)
    return [Row(re.findall("`(.+?)`", one), two, float(scale)) for one, two, scale in cells]


def smartnoise(there: list[str]) -> float:
    """Return the scale of SmartNoise SQL, for keys of its metadata or an expression of SQL."""
    import pandas as pd  # noqa: PLC0415 (each library has a place of its own)
    import snsql  # noqa: PLC0415

    table: dict[str, Any] = {"max_ids": 1, "censor_dims": False, "sex": {"type": "string"}}
    table["id"] = {"type": "int", "private_id": "row_privacy: True" not in there}
    table["income"] = {"type": "int"}
    asked = "COUNT(*)"
    for each in there:
        key, is_key, value = each.partition(": ")
        if not is_key:
            asked = each
        elif key in ("lower", "upper"):
            table["income"][key] = ast.literal_eval(value)
        else:
            table[key] = ast.literal_eval(value)
    reader = snsql.from_connection(
        pd.DataFrame(VISITS),
        privacy=snsql.Privacy(epsilon=1.0, delta=1e-5),
        metadata={"": {"survey": {"visits": table}}},
    )
    query = f"SELECT sex, {asked} AS n FROM survey.visits GROUP BY sex"
    assert len(reader.execute(query)) == 3
    [*_, mechanism] = reader._get_mechanisms(reader._rewrite(query)[0])
    return float(mechanism.scale)


def tumult(there: list[str]) -> float:
    """Return the scale of Tumult Analytics, for a protected change, constraints and a query."""
    import pandas as pd  # noqa: PLC0415
    import tmlt.analytics as ta  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    spark = SparkSession.builder.master("local[1]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    change, keys, query = ta.AddOneRow(), ta.KeySet.from_dict({"sex": SEXES}), ".count()"
    builder = ta.QueryBuilder("visits")
    for each in there:
        made = None if each.startswith(".") else eval(each, vars(ta))
        if made is None:
            query = each
        elif isinstance(made, ta.KeySet):
            keys = made
        elif each.startswith("Add"):
            change = made
        else:
            builder = builder.enforce(made)
    frame = spark.createDataFrame(pd.DataFrame(VISITS))
    session = ta.Session.from_dataframe(ta.PureDPBudget(3), "visits", frame, change)
    asked = eval(f"groups{query}", {"groups": builder.groupby(keys)})
    [noise] = session._noise_info(asked, ta.PureDPBudget(1))
    assert noise["noise_mechanism"].name == "GEOMETRIC"
    assert session.evaluate(asked, ta.PureDPBudget(1)).count() == len(keys.dataframe().collect())
    assert session.remaining_privacy_budget == ta.PureDPBudget(2)
    return float(noise["noise_parameter"])


def pipelinedp(there: list[str]) -> float:
    """Return the scale of PipelineDP, for arguments of AggregateParams."""
    import pipeline_dp as pdp  # noqa: PLC0415

    given = eval(f"dict({', '.join(there)})", {"Metrics": pdp.Metrics})
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda x: x[0],
        partition_extractor=lambda x: x[1],
        value_extractor=lambda x: x[2],
    )
    records = list(zip(VISITS["id"], VISITS["sex"], VISITS["age"], strict=True))
    parameters = pdp.AggregateParams(noise_kind=pdp.NoiseKind.LAPLACE, **given)
    found = engine.aggregate(records, parameters, extractors, public_partitions=SEXES)
    accountant.compute_budgets()
    assert len(list(found)) == 2
    [scale] = re.findall(r"parameter=(\S+)", engine.explain_computations_report()[0])
    return float(scale)


def opendp(there: list[str]) -> float:
    """Return the scale of OpenDP's Context, for a unit, steps of a query and an aggregate."""
    import opendp.prelude as dp  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    dp.enable_features("contrib")
    unit, steps, asked = dp.unit_of(contributions=1), "", "dp.len()"
    names: dict[str, Any] = {"dp": dp, "pl": pl, "sexes": pl.LazyFrame({"sex": SEXES})}
    margins = [dp.polars.Margin(by=["sex"], invariant="keys", max_length=200)]
    for each in there:
        if each.startswith("dp.unit_of"):
            unit = eval(each, names)
        elif each.startswith("dp.polars.Margin"):
            margins = [eval(each, names)]
        elif each.startswith("."):
            steps += each
        else:
            asked = each
    context = dp.Context.compositor(
        data=pl.LazyFrame(VISITS),
        privacy_unit=unit,
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=margins,
    )
    start, join = steps, ""
    if "truncate" in steps or "Bound" in "".join(there):
        join = ".with_keys(sexes)"
    elif ".with_keys" in steps:
        start, join = "", steps
    whole = f'context.query(){start}.group_by("sex").agg({asked}){join}'
    query = eval(whole, names | {"context": context})
    [summary] = query.summarize().to_dicts()
    if ".truncate_num_groups" not in steps:  # 0.16.0 finds the name of the column twice in these.
        assert query.release().collect().height == 2
    return float(summary["scale"])


LIVE: dict[str, Callable[[list[str]], float]] = {
    "SmartNoise SQL": smartnoise,
    "Tumult Analytics": tumult,
    "PipelineDP": pipelinedp,
    "OpenDP's Context for Polars": opendp,
}


def main(library: str) -> int:
    """Compare the scales of a library with those of its rows."""
    warnings.simplefilter("ignore")
    known = rows(library)
    for row in known:
        found = LIVE[library](row.there)
        if abs(found - row.scale) > 1e-6 * row.scale:
            print(f"{library}: {row.there}: its scale is {found}, and the page has {row.scale}")
            return 1
    print(f"{library}: {len(known)} rows agree")
    return int(not known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
