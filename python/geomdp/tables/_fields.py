"""What a published table states: each field once, as it is written, read and explained.

From this table follow the keywords of a design that one value states, the description in files
(:mod:`geomdp.tables._file`), its reader, and the schema and the table of ``docs/format.md``, which
``scripts/format_pages.py`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: The format of the description.
FORMAT = "geomdp-release-1"
_TEXT = {"type": "string"}
_MAYBE = {"type": ["integer", "null"], "minimum": 1}
_EXACT = {"$ref": "#/$defs/exact"}


class Field(NamedTuple):
    """A field of the description of a release."""

    #: Its JSON Schema.
    schema: Mapping[str, Any]
    #: What it means, for readers of files.
    meaning: str
    #: Whether it is a keyword of a design, and an attribute of it, and the default of that.
    keyword: bool = False
    default: Any = None


FIELDS: dict[str, Field] = {
    "format": Field(
        {"const": "geomdp-release-1"},
        '`"geomdp-release-1"`. A reader refuses other formats',
    ),
    "version": Field(
        _TEXT,
        "the version of the library that released the table",
    ),
    "id": Field(
        {"$ref": "#/$defs/id"},
        "128 random bits in 32 hexadecimal digits, from the operating system: the same in all "
        "files, pickles and pages of one release, and of all tables of one stream. Two "
        "releases with one id share noise",
    ),
    "corrects": Field(
        {"type": "array", "items": {"$ref": "#/$defs/id"}},
        "the ids of the releases that this one replaces, the last one first; empty for most",
    ),
    "label": Field(
        {"type": ["string", "null"]},
        "the label under which the release was booked, or null",
    ),
    "epsilon": Field(
        _EXACT,
        "the privacy loss of the whole table for one individual, an exact fraction as text",
    ),
    "part_of": Field(
        {"type": ["string", "null"], "pattern": "^[0-9]+(/[1-9][0-9]*)?$"},
        "for steps of a stream, the privacy loss of one record in the whole stream, an exact "
        "fraction; otherwise null",
    ),
    "delta": Field(
        {"const": "0"},
        'always `"0"`: the privacy is pure',
    ),
    "neighbours": Field(
        {"enum": ["add-remove", "change"]},
        '`"add-remove"`: the table with and without an individual; `"change"`: with other '
        "records of an individual",
        keyword=True,
        default="add-remove",
    ),
    "individual": Field(
        {"type": ["string", "null"]},
        "the name of the column that identified individuals, or null if each record was one",
        keyword=True,
        default=None,
    ),
    "l0": Field(
        _MAYBE,
        "the most cells that an individual was counted in; null with `l1`",
        keyword=True,
        default=None,
    ),
    "linf": Field(
        _MAYBE,
        "the most that an individual added to each of these cells: so many records, or that "
        "part of a sum; null with `l1`",
        keyword=True,
        default=1,
    ),
    "l1": Field(
        _MAYBE,
        "null, or how often an individual was counted at most, in all cells together",
        keyword=True,
        default=None,
    ),
    "sensitivity": Field(
        {"type": "integer", "minimum": 1},
        "the greatest L1 change of the whole table by one individual, who changes no more "
        "cells than there are",
    ),
    "at_least": Field(
        _MAYBE,
        "for groups, noisy counts below it are left out: the rows are those of the other "
        "cells, in the order of the design. Otherwise null",
    ),
    "name": Field(
        _TEXT,
        "the name of the column of counts of the design",
        keyword=True,
        default="count",
    ),
    "top": Field(
        _MAYBE,
        "for cells by name alone, how many are named: the rows are their levels, the largest "
        "first, and the last column, `rank`, counts from 1. There is one mechanism, that of "
        "each name, and `epsilon` is `rate * top * linf`, or twice that for changes. "
        "Otherwise null",
    ),
    "axes": Field(
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/axis"}},
        "for each column, in order: `shares`, the parts of epsilon of its depths from the "
        "root down, exact fractions; of a list its `levels`, in `other` none or one label for "
        "other records, in `margin` none or one label for their sum; of a hierarchy its "
        "`nodes` and, for each, the place of its parent in `parents`, -1 for the root, in "
        "`other` none or the one of them that counts other records, and `leaves_only`, "
        "whether records belong to leaves alone, so that a node is the sum of its children. "
        'Dates and times are `{"date": text}` and `{"datetime": text}`',
    ),
    "mechanisms": Field(
        {"type": "array", "items": {"$ref": "#/$defs/mechanism"}},
        "for each combination of depths: `depths`, that of each column; `rate`, epsilon over "
        "sensitivity, an exact fraction; `bounds`, null or two integers; `plan_sha256`, the "
        "digest of the certificate's JSON for int64; on request the `certificate`",
    ),
}
#: The keywords of a design that one value states, with their defaults.
KEYWORDS = {name: field.default for name, field in FIELDS.items() if field.keyword}


def stated(design: Any) -> dict[str, Any]:
    """Return the values of these keywords; None for those that another one replaces."""
    found = {name: getattr(design, name) for name in KEYWORDS}
    return found if design.l1 is None else found | {"l0": None, "linf": None}
