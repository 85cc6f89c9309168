"""Individuals of two columns that a rule of joined texts, or of one column, would take for others.

Each case has the types of Arrow of its columns, and pairs of ids that are all different.
"""

from typing import Any

import pyarrow as pa

PAIRS: dict[str, tuple[Any, Any, list[tuple[Any, Any]]]] = {
    "texts": (
        pa.string(),
        pa.string(),
        [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("bc", "a"), ("a", "a"), ("b", "a")],
    ),
    "separators": (
        pa.string(),
        pa.string(),
        [
            *(pair for sep in (",", "\0", "|", "_", "-", " ", "', '", '","', "\x1f", "\n")
              for pair in ((f"a{sep}b", "c"), ("a", f"b{sep}c"), (f"a{sep}", "b"))),
            *(("None", "a"), ("null", "a"), ("__null_token_value__", "a"), ("", "a"), ("nan", "a")),
        ],
    ),
    "integers": (pa.int64(), pa.int64(), [(1, 23), (12, 3), (123, 0), (2**62, 1), (2**62 + 1, 1)]),
    "integers of two sizes": (pa.int8(), pa.int64(), [(1, 1), (-1, 1), (1, -1), (1, 2**63 - 1)]),
    "integers and texts": (pa.int64(), pa.string(), [(1, "1"), (11, "1"), (1, "11"), (1, "01")]),
    "bytes": (pa.binary(), pa.binary(), [(b"a", b"bc"), (b"ab", b"c"), (b"\0", b""), (b"", b"\0")]),
    "texts and bytes": (pa.string(), pa.binary(), [("a", b"bc"), ("ab", b"c"), ("a", b"b")]),
    "dictionaries": (
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int32(), pa.string()),
        [("a", "bc"), ("ab", "c"), ("a", "c"), ("ab", "bc")],
    ),
}  # fmt: skip
#: The cells that each of these individuals visits.
CELLS = [1, 2, 3]


def visits(case: str) -> tuple[pa.Table, int]:
    """Return visits of each individual of a case to each cell, in any order, and how many it has.

    Of each, one cell counts with ``l0=1``: so a table has as many records as individuals.
    """
    one, other, pairs = PAIRS[case]
    rows = [(*pair, n) for n in CELLS for pair in pairs[:: (-1) ** n]]
    columns = {"household": one, "person": other, "n": pa.int64()}
    arrays = [pa.array(each, kind) for each, kind in zip(zip(*rows, strict=True), columns.values(),
                                                         strict=True)]  # fmt: skip
    return pa.table(arrays, names=list(columns)), len(pairs)
