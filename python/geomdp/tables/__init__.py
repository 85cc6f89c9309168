"""From records to a published table, and noisy columns, for pandas, Polars and PyArrow.

A :class:`Design` states everything public about a table. It counts records into a :class:`Table`,
which bounds the contributions of each individual and does not show its counts. Releasing that gives
a :class:`NoisyTable`, which has answers with intervals, knows its privacy loss and can be saved.
For a frame that contains counts already, use :func:`release_columns`, and add up the privacy losses
of its columns yourself (``docs/tables.md``).

This module needs the extra ``tables``, and the library of your data, which may be any that narwhals
reads.
"""

from geomdp._ground.uncopied import public
from geomdp.tables._answers.answers import Answers
from geomdp.tables._columns.frames import release_columns
from geomdp.tables._count.contributions import bound_contributions
from geomdp.tables._design import Design, count
from geomdp.tables._facts.hierarchy import Hierarchy
from geomdp.tables._facts.parts import Part
from geomdp.tables._facts.rules import Words
from geomdp.tables._limits import ChosenLimit, choose_limit
from geomdp.tables._reading.report import report
from geomdp.tables._release.bundles import NoisyTiers
from geomdp.tables._release.means import NoisySumAndCount, SumAndCount
from geomdp.tables._release.table import Table
from geomdp.tables._release.top import Top
from geomdp.tables._results.empty import EmptyTableWarning
from geomdp.tables._results.groups import NoisyGroups
from geomdp.tables._results.noisy_table import NoisyTable

__all__ = [
    "Design",
    "Hierarchy",
    "Words",
    "count",
    "Table",
    "NoisyTable",
    "Part",
    "NoisyGroups",
    "Top",
    "SumAndCount",
    "NoisySumAndCount",
    "NoisyTiers",
    "Answers",
    "release_columns",
    "bound_contributions",
    "choose_limit",
    "ChosenLimit",
    "EmptyTableWarning",
    "report",
]

public(__name__)
