"""A Spark pipeline counts on the cluster and publishes a table from the driver.

python examples/spark_job.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

from matplotlib import pyplot
from pyspark.sql import SparkSession

import geomdp.tables.spark
from geomdp.accounting import Budget
from geomdp.tables import Design

VOTERS = Path(__file__).parent / "data/anes_1996.csv"
DESIGN = Design(
    {"age": ["18-29", "30-44", "45-64", "65+"], "vote": ["Clinton", "Dole"]},
    individual="respondent",
    l0=1,
)


def main(folder: Path) -> None:
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    voters = spark.read.csv(str(VOTERS), header=True, inferSchema=True)
    table = geomdp.tables.spark.count(DESIGN, voters)  # tasks may run twice: there is no noise yet

    # The budget is a file that all jobs share. It refuses a release that would exceed it.
    budget = Budget.open(folder / "budget.jsonl", epsilon=1)
    noisy = table.release(
        epsilon=0.5, budget=budget, label="voters by age", save=folder / "voters.parquet"
    )
    print(noisy.intervals(alpha=0.05).to_pandas().to_string(index=False))
    print(budget)

    noisy.plot(alpha=0.05)
    pyplot.savefig(folder / "voters.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
    print(f"written to {folder}")
