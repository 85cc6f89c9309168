"""What a published table states: each field once, as it is written, read and explained.

From this table follow the keywords of a design that one value states, the description in files,
its reader, and the schema and the table of ``docs/format.md``, which ``scripts/format_pages.py``
writes.
"""

from __future__ import annotations

import hashlib
import json
import math
from datetime import date, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import geomdp
from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp.tables._columns import levels as _levels
from geomdp.tables._facts import about, classes, tier_names
from geomdp.tables._facts.chosen import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from geomdp._noise import Noise

#: The format of the description.
FORMAT = "geomdp-release-1"
_TEXT = {"type": "string"}
_MAYBE = {"type": ["integer", "null"], "minimum": 1}
_EXACT = {"$ref": "#/$defs/exact"}
#: The most values of a description.
MOST_VALUES = 2**22
#: The names by which JSON keeps dates and times.
_DATED = {date: "date", datetime: "datetime"}


class Field(NamedTuple):
    """A field of the description of a release."""

    #: Its JSON Schema.
    schema: Mapping[str, Any]
    #: What it means, for readers of files.
    meaning: str
    #: Returns its value for a release; None for a keyword of a design, and an attribute of it.
    written: Callable[[Any], Any] | None = None
    #: The default of a keyword.
    default: Any = None
    #: The comparisons in which it may differ (:mod:`geomdp.tables._facts.counted`): by default in
    #: none.
    differs: frozenset[str] = frozenset()
    #: What the command says of its option with this name: its values, and a help. None for those
    #: that have no option.
    option: tuple[str | tuple[str, str], str] | None = None
    #: The most values in it: itself, and all keys and values of lists and objects in it. Columns,
    #: rows and certificates may have as many as a description.
    most: int = 1


#: Whom epsilon protects does not say what was counted of other people, or at other times.
_PROTECTS = frozenset(("question", "ratio"))
#: How many records of an individual count: another year may have other limits.
_LIMITS = _PROTECTS | {"definition"}
#: What was counted of these records: a ratio is of two such quantities.
_QUANTITY = frozenset(("ratio", "definition"))
#: What is true of a release by itself, whatever was counted.
_OWN = _LIMITS | {"counts", "sum"}


#: What a sum states of each release that it is made of.
OF_PART = (
    "id", "corrects", "count_id", "label", "about", "epsilon", "part_of", "tier", "mechanisms"
)  # fmt: skip

FIELDS: dict[str, Field] = {
    "format": Field(
        {"const": FORMAT},
        f'`"{FORMAT}"`; a reader refuses any other format',
        lambda _: FORMAT,
        differs=_OWN,
    ),
    "version": Field(
        _TEXT,
        "the version of the library that released the table",
        lambda _: geomdp.__version__,
        differs=_OWN,
    ),
    "id": Field(
        {"$ref": "#/$defs/id"},
        "128 random bits from the operating system, in 32 hexadecimal digits. All files, pickles "
        "and pages of one release have the same id, as have all tables of one stream. Two "
        "releases with the same id share noise",
        lambda release: release.id,
        differs=_OWN,
    ),
    "corrects": Field(
        {"type": "array", "items": {"$ref": "#/$defs/id"}},
        "the ids of the releases that this one replaces, the latest first; usually empty",
        lambda release: list(release.corrects),
        differs=_OWN,
        most=1 + 2**12,
    ),
    "count_id": Field(
        {"type": ["string", "null"], "pattern": "^[0-9a-f]{32}$"},
        "which count of the records this is of, in random digits like those of `id`, if limits of "
        "individuals chose at random which records count; otherwise null. Each count of records "
        "draws its own, whatever they are. All releases of one count have the same, and only "
        "these are about the same true counts",
        lambda release: release.count_id,
        differs=_LIMITS | {"sum"},
    ),
    "label": Field(
        {"type": ["string", "null"]},
        "the label under which the release was booked, or null",
        lambda release: release.label,
        differs=_OWN,
        option=("TEXT", "the name of the release; a ledger books each name once"),
    ),
    "about": Field(
        {
            "type": "object",
            "properties": dict.fromkeys(about.KEYS, _TEXT),
            "additionalProperties": False,
        },
        "what the publisher says about the table, in any of these texts: "
        + "; ".join(f"`{key}`, {each.meaning}" for key, each in about.KEYS.items()),
        lambda release: release.about,
        differs=_OWN,
        most=1 + 2 * len(about.KEYS),
        option=(
            ("KEY", "TEXT"),
            f"what to say about the table; may be repeated. KEY is {', '.join(about.KEYS)}",
        ),
    ),
    "epsilon": Field(
        _EXACT,
        "the privacy loss of the whole table for one individual, as an exact fraction in a text",
        lambda release: str(release.epsilon),
        differs=_OWN,
    ),
    "part_of": Field(
        {"type": ["string", "null"], "pattern": "^[0-9]+(/[1-9][0-9]*)?$"},
        "for a step of a stream, the privacy loss of one record in the whole stream, as an exact "
        "fraction; otherwise null",
        lambda release: None if release._part_of is None else str(release._part_of),
        differs=_OWN,
    ),
    "tier": Field(
        {
            "type": ["object", "null"],
            "required": ["name", "epsilons"],
            "properties": {
                "name": _TEXT,
                "epsilons": {"type": "array", "items": _EXACT, "minItems": 2},
            },
            "additionalProperties": False,
        },
        "null, or which of several precisions of one table this is: its `name`, and in `epsilons` "
        "the privacy loss of each, increasing exact fractions with `epsilon` among them. All have "
        "one `id`. Readers of several lose the greatest of their epsilons and no more, and need "
        "only the finest. Each count has the noise of a tier (section 20 of the proofs): "
        "`plan_sha256` and `certificate` are of all tiers together",
        lambda release: (
            None
            if release._tier is None
            else {"name": release._tier.name, "epsilons": [*map(str, release._tier.epsilons)]}
        ),
        differs=_OWN,
        most=5 + tier_names.MOST,
    ),
    "delta": Field(
        {"const": "0"},
        'always `"0"`, since the privacy is pure',
        lambda _: "0",
        differs=_OWN,
    ),
    "neighbours": Field(
        {"enum": ["add-remove", "change"]},
        '`"add-remove"` if epsilon compares the table with and without an individual, `"change"` '
        "if it compares tables in which an individual has different records",
        default="add-remove",
        differs=_PROTECTS,
        option=("WHICH", "add-remove (the default), or change: what epsilon compares"),
    ),
    "unit": Field(
        _TEXT,
        "whom or what epsilon protects, in one word or two: one `record`, or one individual, by "
        "the names of the columns that identified individuals unless the publisher gave another "
        "word, such as `person`. Losses add up for tables with the same `unit` and `neighbours`; "
        "files of earlier versions have none, which means these names",
        differs=_PROTECTS,
        option=("WORD", "whom epsilon protects, such as person"),
    ),
    "individual": Field(
        {"type": ["string", "array", "null"], "items": _TEXT},
        "the name of the column that identified individuals, the names of the columns that did so "
        "together, or null if each record was an individual of its own",
        differs=_LIMITS,
        most=1 + 100,
        option=(
            "NAME",
            "a column that identifies individuals; may be repeated if several do so together",
        ),
    ),
    "l0": Field(
        _MAYBE,
        "the most cells in which an individual was counted; null with `l1`",
        differs=_LIMITS,
        option=("N", "the most cells that one individual counts in"),
    ),
    "linf": Field(
        _MAYBE,
        "the most records of an individual counted in each of these cells; null with `l1` or "
        "`values`",
        default=1,
        differs=_LIMITS,
        option=("N", "the most records of one individual in a cell; by default 1"),
    ),
    "l1": Field(
        _MAYBE,
        "null, or the most times that an individual was counted in all cells together; with "
        "`values`, the most that the absolute values of an individual's records added up to",
        differs=_LIMITS,
        option=("N", "instead of both, the most records of one individual in all cells together"),
    ),
    "values": Field(
        {
            "type": ["array", "null"],
            "items": {"type": "integer"},
        },
        "null for counts. For sums of values, the least and the greatest value that an individual "
        "added to a cell or, with `l1`, that one of its records did. If the least is below 0, true "
        "sums may be negative too, and intervals do not end at 0",
        differs=_QUANTITY,
        most=3,
    ),
    "summed": Field(
        {"type": ["string", "null"]},
        "null for counts, or the column whose values were added up; without this field, that is "
        "`name`",
        differs=_QUANTITY,
    ),
    "having": Field(
        {"type": ["string", "null"]},
        "null, or a column without whose value no record counts: that of the values of a mean",
        differs=frozenset(("definition",)),
    ),
    "sensitivity": Field(
        {"type": "integer", "minimum": 1},
        "the most by which one individual can change the whole table, in the L1 norm, given that "
        "nobody changes more cells than there are",
        lambda release: release.design.sensitivity,
        differs=_OWN,
    ),
    "at_least": Field(
        {
            "type": ["integer", "array", "null"],
            "minimum": 1,
            "items": {"type": "integer", "minimum": 1},
        },
        "for groups, the threshold: cells with smaller noisy counts have no row, and the rows of "
        "the others are in the order of the design. If a column has `common` words, this may be "
        "two thresholds, the first for the cells whose words are common in all such columns (the "
        "row for `other` values counts as common) and the second for all other cells. Otherwise "
        "null",
        lambda release: release._at_least,
        differs=_OWN,
        option=("N", "publish only the cells whose noisy counts are at least N"),
        most=3,
    ),
    "chosen_by": Field(
        {"type": ["string", "null"], "pattern": "^[0-9a-f]{32}$"},
        "null, or, for sums of the groups that a count has chosen, the id of its release: the rows "
        "are the cells whose noisy counts there are at least `at_least`. The sums have noise of "
        "their own, which no choice depends on, and may be below 0",
        lambda release: release._chosen_by,
        differs=_OWN,
    ),
    "rest": Field(
        {
            "type": ["object", "null"],
            "required": ["labels", "rate", "bounds", "plan_sha256"],
            "properties": {
                "labels": {"type": "array"},
                "rate": _EXACT,
                "bounds": {"type": "null"},
                "plan_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                "certificate": {"type": "object"},
            },
        },
        "null, or, for groups whose last row is the sum of all cells left out: `labels`, the label "
        "of that row in each column, and its noise, with the keys of `mechanisms` except `depths`. "
        "The row's count is the sum of the cells without a row of their own, plus a single noise "
        "of this `rate`, however many cells that are. Its part of `epsilon` is `rate` times the "
        "most that one individual adds to all cells together",
        lambda release: _rest(getattr(release, "_rest", None)),
        differs=_OWN,
        most=MOST_VALUES,
    ),
    "rounded": Field(
        {"type": ["integer", "string", "null"], "minimum": 2, "pattern": "^middle of [0-9]+$"},
        "null, or the number to whose multiples the noisy counts were rounded. Each became the "
        "nearest multiple, or of two that are equally near the even multiple, so it moved by at "
        "most half of this number, rounded down. A count at a limit of int64 stayed there. "
        'Or a text such as `"middle of 6"`: the noisy counts from 1 to 6 became 3, those from 7 to '
        "12 became 9, and so on, those from -5 to -1 became -3, and 0 stayed, so that each moved "
        "by at most half of the number, too",
        lambda release: release._rounded,
        differs=_OWN,
        option=("N", "publish multiples of N, such as 5 or 10, or the 'middle of 6'"),
    ),
    "name": Field(
        _TEXT,
        "the name of the column of counts, as readers see it",
        default="count",
        differs=_OWN,
        option=("NAME", "the name of the column of noisy counts; by default count"),
    ),
    "top": Field(
        _MAYBE,
        "if the largest cells are named without counts, how many. The rows have their levels, the "
        "largest cell first, and a last column, `rank`, which counts from 1. The one mechanism is "
        "that of each name, and `epsilon` is `rate * top * linf`, or twice that for changes. "
        "Otherwise null",
        lambda release: release._named,
        differs=_OWN,
    ),
    "axes": Field(
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/axis"}},
        "the columns by name, in order, each with its levels or its tree, [as below](#its-columns)",
        lambda release: {axis.label: _axis(axis) for axis in release.design._axes},
        differs=_OWN,
        most=MOST_VALUES,
    ),
    "tables": Field(
        {"type": ["array", "null"], "items": {"$ref": "#/$defs/table"}},
        "null if all combinations of depths are released. Otherwise the chosen tables, each with "
        "its `columns`, pairs of a column's name and a depth (null for all depths, and for columns "
        "without a tree), and its `part` of epsilon, as an exact fraction. The file has all rows "
        "of the first of `mechanisms`, then those of the second, and so on, with the last column "
        "changing fastest in each. A column that a table sums over has its label in `margin` "
        "there",
        lambda release: _tables(release.design),
        differs=_OWN,
        most=MOST_VALUES,
    ),
    "totals": Field(
        {"type": "array", "items": {"$ref": "#/$defs/total"}},
        "public totals, which epsilon does not cover, as they are after contributions were "
        "limited: `depths`, one for each column, 0 for the sum over it, and `counts`, with the "
        "last column changing fastest. Usually empty",
        lambda release: [
            {"depths": list(block), "counts": counts.reshape(-1).tolist()}
            for block, counts in getattr(release, "_known", {}).items()
        ],
        differs=_OWN,
        most=MOST_VALUES,
    ),
    "mechanisms": Field(
        {"type": "array", "items": {"$ref": "#/$defs/mechanism"}},
        "the noise of each combination of depths: `depths`, one for each column; `rate`, epsilon "
        "over sensitivity, as an exact fraction; `bounds`, null or two integers; `plan_sha256`, "
        "the digest of the certificate's JSON, for int64 or, of groups that these counts chose, of "
        "their draw (`geomdp-groups-1`); and on request the `certificate`",
        lambda release: [
            {"depths": list(block), **_mechanism(noise, text)}
            for (block, noise), text in zip(release.mechanisms.items(), plans(release), strict=True)
        ],
        differs=_OWN,
        most=MOST_VALUES,
    ),
    "parts": Field(
        {"type": "array", "items": {"$ref": "#/$defs/part"}},
        "for a sum of releases about different people, each of these, with its own `id`, "
        "`corrects`, `count_id`, `label`, `about`, `epsilon`, `part_of`, `tier` and `mechanisms`. "
        "Each count is the sum of their noisy counts, and has the independent noises of all. Then "
        "`mechanisms` is empty, and `epsilon` is the sum of theirs, the privacy loss of an "
        "individual in all of them. The `id` is the first 32 hexadecimal digits of the SHA-256 of "
        "their ids, sorted and separated by blanks, and so is `count_id` of theirs, each null as "
        "an empty text, unless all are null. Otherwise empty",
        lambda release: [_values(part, OF_PART) for part in release.parts],
        differs=_OWN,
        most=MOST_VALUES,
    ),
    "moved": Field(
        {"type": "integer", "minimum": 0},
        "the most that rounding moved the noisy counts of `parts`, for each count of their sum; "
        "otherwise 0",
        lambda release: release._moved,
        differs=_OWN,
    ),
}
#: The keywords of a design that one value states, with their defaults.
KEYWORDS = {name: field.default for name, field in FIELDS.items() if field.written is None}


def check(facts: Mapping[str, Any]) -> None:
    """Refuse fields of a file with more values than any has, and texts that none has.

    This comes before anything is made of them. What they state is judged later.
    """
    for name, value in facts.items():
        most = FIELDS[name].most if name in FIELDS else 1
        left, size = [name, value], 0
        while left:
            # All values of one depth at a time, since lists of lists may have many.
            kinds = set(map(type, left))
            texts = [each for each in left if isinstance(each, str)] if str in kinds else []
            lists = [each for each in left if isinstance(each, list)] if list in kinds else []
            objects = [each for each in left if isinstance(each, dict)] if dict in kinds else []
            if not parameters.is_text("".join(texts)):
                raise ValueError(f"its field {name!r} has other than {parameters.TEXT}")
            size += len(left)
            if size + sum(map(len, lists)) + 2 * sum(map(len, objects)) > most + 1:
                raise ValueError(f"its field {name!r} has more than {many(most, 'value')}")
            values = (each.values() for each in objects)
            left = [*chain.from_iterable((*lists, *objects, *values))]


def stated(design: Any) -> dict[str, Any]:
    """Return the values of these keywords; None for those that another one replaces."""
    found = {name: getattr(design, name) for name in KEYWORDS}
    if design.l1 is not None:
        return found | {"l0": None, "linf": None}
    return found if design.values is None else found | {"linf": None}


def facts_of(release: Any, certificate: bool) -> dict[str, Any]:
    """Return each field of a release, with the certificates of its noise or without."""
    parameters.check_bool("certificate", certificate)
    if release.epsilon == math.inf:
        raise ValueError("a table without noise cannot be saved: release it with an epsilon")
    found = _values(release, FIELDS)
    if certificate:
        said = [y for x in (found, *found["parts"]) for y in x["mechanisms"]]
        texts = [text for each in (release, *release.parts) for text in plans(each)]
        if found["rest"] is not None:
            said, texts = [*said, found["rest"]], [*texts, plan(release._rest.mechanism)]
        for each, text in zip(said, texts, strict=True):
            each["certificate"] = json.loads(text)
    return found


def compared(release: Any, comparison: str) -> dict[str, Any]:
    """Return the fields of a release that may not differ in a comparison."""
    return _values(release, (x for x in FIELDS if comparison not in FIELDS[x].differs))


def _values(release: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return these fields of a release."""
    written = {name: FIELDS[name].written for name in names}
    given = stated(release.design) if None in written.values() else {}
    return {x: given[x] if write is None else write(release) for x, write in written.items()}


def _tables(design: Any) -> list[dict[str, Any]] | None:
    """Return the chosen tables of a design."""
    if design.tables is None:
        return None
    return [
        {"columns": [list(pair) for pair in key], "part": str(part)}
        for key, part in keys_of(design.tables, design.levels).items()
    ]


def _axis(axis: Any) -> dict[str, Any]:
    """Return the facts of a column: its levels, and labels of other rows, or its tree."""
    shares = [str(share) for share in axis.shares]
    if axis.rule is not None:
        return {
            "levels": axis.rule.facts(),
            "other": _encoded(axis.other),
            "complete": axis.complete,
            "margin": [],
            "shares": shares,
        }
    if axis.hierarchy is not None:
        return {
            "nodes": _encoded(axis.nodes),
            "parents": axis.tree.parents.tolist(),
            "leaves_only": not axis.tree.loose,
            "columns": list(axis.columns),
            "paths": None if axis.paths is None else axis.paths._asdict(),
            "labels": list(
                map(axis.hierarchy.labels.get, axis.nodes * bool(axis.hierarchy.labels))
            ),
            "other": _encoded(axis.other),
            "complete": axis.complete,
            "shares": shares,
        }
    columns = {"columns": list(axis.columns)} if axis.several else {}
    return columns | {
        "levels": _encoded(axis.given),
        "other": _encoded(axis.other),
        "complete": axis.complete,
        "bins": _encoded(axis.cuts),
        "margin": _encoded(axis.nodes[: axis.margin]),
        "shares": shares,
    }


def _rest(rest: Any) -> dict[str, Any] | None:
    """Return the facts of the row for groups left out."""
    if rest is None:
        return None
    noise = rest.mechanism
    return {"labels": _encoded(rest.labels), **_mechanism(noise, plan(noise))}


def _encoded(levels: Sequence[Any]) -> list[Any]:
    """Return levels as JSON keeps them: combinations as lists, dates and times as text by type."""
    if tuple in _levels.kinds(levels):
        return [_encoded(each) for each in levels]
    if not _levels.kinds(levels) & _DATED.keys():
        return list(levels)
    return [
        {_DATED[type(level)]: level.isoformat()} if type(level) in _DATED else level
        for level in levels
    ]


def plan(noise: Noise) -> str:
    """Return the certificate of a noise as JSON."""
    return str(noise.certificate(np.int64).to_json())


def plans(release: Any) -> list[str]:
    """Return the certificate of each noise of a release as JSON: of groups, that of their draw."""
    noises, least = release.mechanisms.values(), release._at_least
    if least is None or release._chosen_by is not None:
        return [plan(noise) for noise in noises]
    drawn = (classes.Classes(release.design._axes, least).plan(each.rate) for each in noises)
    return [json.dumps(each.certificate(), indent=1) for each in drawn]


def digest(text: str) -> str:
    """Return the digest of a certificate."""
    return hashlib.sha256(text.encode()).hexdigest()


def _mechanism(noise: Noise, text: str) -> dict[str, Any]:
    """Return the facts of a noise with this certificate."""
    return {
        "rate": str(noise.rate),
        "bounds": None if noise.bounds is None else list(noise.bounds),
        "plan_sha256": digest(text),
    }
