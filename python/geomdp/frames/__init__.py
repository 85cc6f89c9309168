"""From records to a published table, and noisy columns, for pandas, Polars and PyArrow.

A :class:`Design` states all that is public about a table. It counts records, with the contributions
of each individual bounded, into a :class:`Table`, which shows nothing. Its release is a
:class:`NoisyTable`, which knows its privacy loss, its intervals and how to save itself. For a frame
that holds counts already, use :func:`release_columns`; the privacy losses of its columns are yours
to add up (``docs/frames.md``).

This module needs the extra ``frames`` and the library of the columns: any that narwhals reads.
"""

from geomdp.frames._answers import Answers
from geomdp.frames._columns import release_columns
from geomdp.frames._contributions import bound_contributions
from geomdp.frames._design import Design, count
from geomdp.frames._groups import NoisyGroups
from geomdp.frames._hierarchy import Hierarchy
from geomdp.frames._noisy import NoisyTable
from geomdp.frames._table import Table
from geomdp.frames._top import Top

__all__ = [
    "Design",
    "Hierarchy",
    "count",
    "Table",
    "NoisyTable",
    "NoisyGroups",
    "Top",
    "Answers",
    "release_columns",
    "bound_contributions",
]

# Pickles name this module, wherever a class is written.
for _class in (Answers, Design, Hierarchy, NoisyGroups, NoisyTable, Table, Top):
    _class.__module__ = __name__
