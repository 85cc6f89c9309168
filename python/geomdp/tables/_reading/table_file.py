"""The reader of a published table (``docs/format.md``)."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import identity as _identity
from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp._ground.parameters import Typed
from geomdp._noise import Noise, readings
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._answers import public_totals
from geomdp.tables._columns import levels as _levels
from geomdp.tables._columns.native import Library
from geomdp.tables._design import Design
from geomdp.tables._facts import (
    about,
    counted,
    fields,
    layout,
    naming,
    parts,
    rounding,
    rules,
    tier_names,
)
from geomdp.tables._facts.axes import raveled
from geomdp.tables._facts.classes import Classes
from geomdp.tables._facts.fields import FORMAT, KEYWORDS, digest, plan, plans
from geomdp.tables._facts.hierarchy import Hierarchy
from geomdp.tables._facts.parts import Part
from geomdp.tables._facts.tier_names import Tier
from geomdp.tables._math.products import Block
from geomdp.tables._publish import published
from geomdp.tables._publish.published import Contents
from geomdp.tables._release.top import RANK, Top, steps
from geomdp.tables._results import rest as _rest
from geomdp.tables._results.groups import NoisyGroups, threshold
from geomdp.tables._results.noisy_table import NoisyTable
from geomdp.tables._results.rest import Rest
from geomdp.tiers import TierPlan

_Known: TypeAlias = tuple[Design, dict[Block, Noise], str | None, Library | None]
#: The most characters of an exact number, and its form.
_LONGEST, _FRACTION = 8600, re.compile(r"[0-9]+(/0*[1-9][0-9]*)?")
#: The types of values of JSON.
_KINDS: dict[str, type] = {
    "string": str, "integer": int, "array": list, "object": dict, "null": type(None)
}  # fmt: skip
#: The most bits of a common denominator: Python prints 14,000.
_MOST_BITS = 2**15
#: What a table alone may be.
_OF_TABLES = {"tier": "tier", "part_of": "step", "parts": "sum", "moved": "sum"}
_OTHER_ROWS = "it has other rows than its description"
_OTHER_DEPTHS = "it has mechanisms of other depths"


def read(path: Any, library: Library | None = None) -> NoisyTable | NoisyGroups | Top:
    """Return the release in a CSV or Parquet file; :func:`geomdp.read` has the details."""
    source = Path(path)
    noisy, stale, _ = opened(source, library)
    for version in stale:
        warnings.warn(
            f"{source.name} was released by version {version} with another plan: "
            "intervals are those of this version's plan",
            stacklevel=3,
        )
    return noisy


def opened(
    source: Path, library: Library | None = None
) -> tuple[NoisyTable | NoisyGroups | Top, list[Any], str]:
    """Return the release in a file, the versions of plans that this one lacks, and its digest."""
    contents = published.read(source)
    with published.damage(source):
        return *_release(contents, library), contents.digest


def _release(
    contents: Contents, library: Library | None
) -> tuple[NoisyTable | NoisyGroups | Top, list[Any]]:
    """Return the release, and the version that made it for each plan that this one lacks."""
    facts = contents.facts
    if facts.get("format") != FORMAT:
        found = parameters.shown(facts.get("format"))
        raise ValueError(f"it has the format {found}: this version reads {FORMAT!r}")
    fields.check(facts)
    # Earlier versions added no releases, and none chose the rows of another.
    facts = {"parts": [], "moved": 0, "chosen_by": None, **facts}
    for each in (facts, *facts["parts"]):
        _check_forms(each)
    contents = contents._replace(facts=facts)
    design = _design(contents)
    mechanisms = _mechanisms(design, facts)
    for name, what in (("rest", "a row for the rest"), ("chosen_by", "groups of another")):
        if facts[name] is not None and facts["at_least"] is None:
            raise ValueError(f"it has {what}, and no threshold")
    noisy = _kind(facts)((design, mechanisms, facts["label"], library), contents)
    if contents.names != [*design.levels, design.name if facts["top"] is None else RANK]:
        raise ValueError("it has other columns than its description")
    if (facts["epsilon"], facts["sensitivity"]) != (str(noisy.epsilon), design.sensitivity):
        raise ValueError("it states another privacy loss")
    version = facts["version"]
    digests = [y["plan_sha256"] for x in (facts, *facts["parts"]) for y in x["mechanisms"]]
    texts = [text for each in (noisy, *noisy.parts) for text in plans(each)]
    if isinstance(noisy, NoisyGroups) and noisy._rest is not None:
        digests.append(facts["rest"]["plan_sha256"])
        texts.append(plan(noisy._rest.mechanism))
    own = map(digest, texts)
    return noisy, [version for one, other in zip(digests, own, strict=True) if one != other]


def _check_forms(facts: Mapping[str, Any]) -> None:
    """Refuse a field of another type than it has, or with another value where it has few."""
    for name in facts.keys() & fields.FIELDS.keys():
        schema, value = fields.FIELDS[name].schema, facts[name]
        few = schema.get("enum", [schema["const"]] if "const" in schema else None)
        kinds = schema.get("type", [])
        known = [_KINDS[each] for each in ([kinds] if isinstance(kinds, str) else kinds)]
        if (few is not None and value not in few) or (known and type(value) not in known):
            raise ValueError(f"its field {name!r} has another form")


def _mechanisms(design: Design, facts: Mapping[str, Any]) -> dict[Block, Noise]:
    """Return the noise of each block."""
    said = facts["mechanisms"]
    if len(said) > len(design.blocks):
        raise ValueError(_OTHER_DEPTHS)
    _fractions(each["rate"] for each in said)
    ratio = _over_drawn(design, facts)
    found = {
        tuple(each["depths"]): _of_tier(facts, of_facts(each, layout.change(design), ratio))
        for each in said
    }
    if len(said) != len(found):
        raise ValueError("depths of its mechanisms repeat")
    return found


def _parts_of(design: Design, facts: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return the releases that a table is the sum of, or none."""
    if len(facts["parts"]) * len(design.blocks) > parts.MOST:
        raise ValueError(f"it is the sum of more than {many(parts.MOST, 'table')}")
    found = []
    for part in facts["parts"]:
        if part.keys() != {*fields.OF_PART}:
            raise ValueError("it has a part with other fields")
        own = {**facts, **part}
        mechanisms = _mechanisms(design, own)
        _check_depths(design, mechanisms)
        if any(each.bounds is not None for each in mechanisms.values()):
            raise ValueError("it has a part with bounds")
        epsilon = fraction(part["epsilon"])
        # It may have more tables than the sum.
        if epsilon < layout.loss(design, mechanisms):
            raise ValueError("it has a part with another privacy loss")
        known = _identity.stated(part["id"], part["corrects"], part["count_id"])
        said = part["label"], about.checked(part["about"]), epsilon
        found.append(Part(*known, *said, mechanisms, _part_of(part), _tier(own)))
    counted.check_apart("a part", *found)
    return tuple(found)


def _part_of(facts: Mapping[str, Any]) -> Fraction | None:
    """Return the privacy loss of the stream of a step, or None."""
    if facts["part_of"] is None:
        return None
    whole = fraction(facts["part_of"])
    if whole < fraction(facts["epsilon"]):
        raise ValueError("it is a step of a stream with another privacy loss")
    return whole


def _tier(facts: Mapping[str, Any]) -> Tier | None:
    """Return which of several precisions of one table this is, or None."""
    if (stated := facts["tier"]) is None:
        return None
    epsilons = tuple(_fractions(stated["epsilons"]))
    tier_names.checked({str(place): epsilon for place, epsilon in enumerate(epsilons)})
    if fraction(facts["epsilon"]) not in epsilons or not isinstance(stated["name"], str):
        raise ValueError("it has tiers of another form")
    return Tier(stated["name"], epsilons)


def _of_tier(facts: Mapping[str, Any], noise: GeometricMechanism) -> Noise:
    """Return a noise as that of a tier, if the table is one of several precisions."""
    if (tier := _tier(facts)) is None:
        return noise
    own = readings(noise).part(Fraction(noise.sensitivity))
    part = own.stated / fraction(facts["epsilon"])
    epsilons = [parameters.by_value(each).part(part) for each in tier.epsilons]
    return TierPlan(own, epsilons, noise.sensitivity, noise.bounds)


def _over_drawn(design: Design, facts: Mapping[str, Any]) -> Fraction:
    """Return the stated loss over the loss that noise was made for: a decimal, over a float."""
    rates = {tuple(each["depths"]): fraction(each["rate"]) for each in facts["mechanisms"]}
    if facts["top"] is not None:
        drawn = sum(rates.values(), Fraction()) * facts["top"] * steps(design)
    elif rates.keys() == {*design.blocks}:
        drawn = Fraction(design._most(rates))
    else:  # They are refused later.
        return Fraction(1)
    if facts["rest"] is not None:
        drawn += fraction(facts["rest"]["rate"]) * layout.change_of_sum(design)
    if not drawn:  # Mechanisms that are not those of the design are refused later.
        return Fraction(1)
    ratio = fraction(facts["epsilon"]) / drawn
    # Half a unit in the last place of a float. Any other loss is refused later.
    return ratio if 1 <= ratio <= 1 / (1 - Fraction(1, 2**53)) else Fraction(1)


def _kind(facts: Mapping[str, Any]) -> Callable[[_Known, Contents], NoisyTable | NoisyGroups | Top]:
    """Return the function that makes a release of this kind."""
    if (facts["top"] or facts["at_least"]) is not None:
        for name, what in _OF_TABLES.items():
            if facts[name] not in (None, [], 0):
                raise ValueError(f"it is a {what} of what has none")
    if facts["top"] is not None:
        return _top
    return _table if facts["at_least"] is None else _groups


def _check_depths(design: Design, mechanisms: Mapping[Block, Noise]) -> None:
    """Refuse mechanisms of other depths than the design has."""
    if list(mechanisms) != design.blocks:
        raise ValueError(_OTHER_DEPTHS)


def _table(known: _Known, contents: Contents) -> NoisyTable:
    """Return a table with a row for each cell."""
    design, mechanisms = known[:2]
    said, added = _said(contents), _parts_of(design, contents.facts)
    own = said["identity"], mechanisms, contents.facts["part_of"], contents.facts["tier"]
    if added and own != (parts.identity(added), {}, None, None):
        raise ValueError("it is not the sum of its parts")
    if not added:
        _check_depths(design, mechanisms)
    if contents.counts.size != design.cells:
        raise ValueError(_OTHER_ROWS)
    wanted = design._columns().values()
    for each, levels in zip(contents.columns, wanted, strict=False):
        if (each.among(levels.items) != levels.places).any():
            raise ValueError(_OTHER_ROWS)
    counts = contents.counts
    if design.tables is None:
        counts = np.empty(design.shape, np.int64)
        counts[design._axes.shown] = contents.counts.reshape(design.shape)
    noisy = NoisyTable(
        *known,
        counts,
        **said,
        part_of=_part_of(contents.facts),
        rounded=_rounded(contents),
        tier=_tier(contents.facts),
        parts=added,
        moved=_moved(contents.facts),
    )
    totals = _public(design, contents.facts["totals"])
    return noisy._knowing(totals) if totals else noisy


def _moved(facts: Mapping[str, Any]) -> int:
    """Return the most that rounding moved the counts of the parts of a sum, added up."""
    moved = parameters.integer("moved", facts["moved"])
    if not 0 <= moved <= parts.MOST * rounding.MOST or (moved and not facts["parts"]):
        raise ValueError("it has counts moved by another number")
    return moved


def _public(design: Design, stated: Any) -> dict[Block, NDArray[np.int64]]:
    """Return the public totals of a description."""
    found: dict[Block, NDArray[np.int64]] = {}
    for each in stated:
        block, counts = tuple(each["depths"]), each["counts"]
        if len(block) != len(design._axes) or block in found:
            raise ValueError("it has totals of other depths")
        for depth, axis in zip(block, design._axes, strict=True):
            if type(depth) is not int or not 0 <= depth <= axis.rooted[0].depth:
                raise ValueError("it has totals of other depths")
        found[block] = public_totals.as_counts(counts).reshape(
            public_totals.shape(design._axes, block)
        )
    return found


def _groups(known: _Known, contents: Contents) -> NoisyGroups:
    """Return the groups of a table that reached a threshold."""
    design, mechanisms = known[:2]
    _check_depths(design, mechanisms)
    [mechanism] = mechanisms.values()
    stated, chosen_by = contents.facts["at_least"], contents.facts["chosen_by"]
    if chosen_by is not None:
        _identity.stated(chosen_by, [contents.facts["id"]])
        if design.values is None:
            raise ValueError("it has counts of groups that another count chose")
    at_least = threshold(design, stated, mechanism, of_others=chosen_by is not None)
    rest = _rest_of(known, contents)
    groups = len(contents.counts) - (rest is not None)
    places = [each[:groups] for each in _places(design, contents, rest)]
    # A design without columns has one cell.
    cells = raveled(places, design.shape, groups) if places else np.arange(groups)
    rounded = _rounded(contents)
    least = Classes(design._axes, at_least).least(cells)
    below = contents.counts[:groups] < least - rounding.half(rounded)
    if (cells[1:] <= cells[:-1]).any() or (chosen_by is None and below.any()):
        raise ValueError(_OTHER_ROWS)
    noisy = NoisyGroups(
        *known,
        contents.counts,
        cells=cells,
        at_least=at_least,
        **_said(contents),
        rounded=rounded,
        rest=rest,
        chosen_by=chosen_by,
    )
    stated = contents.facts["totals"]
    totals = {tuple(x["depths"]): public_totals.as_counts(x["counts"]) for x in stated}
    if len(totals) < len(stated) or any(each.size != 1 for each in totals.values()):
        raise ValueError("it has totals of other depths")
    return noisy._knowing(totals) if totals else noisy


def _top(known: _Known, contents: Contents) -> Top:
    """Return the largest cells by name."""
    design, mechanisms = known[:2]
    if list(mechanisms) != design.blocks[-1:]:
        raise ValueError(_OTHER_DEPTHS)
    levels = zip(design._axes.split(contents.columns[:-1]), design._axes, strict=True)
    places = tuple(axis.cells_of_rows(each) for each, axis in levels)
    cells = np.ravel_multi_index(places, design._axes.sizes)
    [given] = mechanisms.values()
    change = cells.size * steps(design)
    each = readings(given).part(Fraction(change))
    own = {block: GeometricMechanism(each, change) for block in mechanisms}
    top = Top(design, own, *known[2:], cells=cells, **_said(contents))
    stated = contents.facts["top"], given.bounds, contents.facts["rounded"]
    if stated != (np.unique(cells).size, None, None) or (top.ranks != contents.counts).any():
        raise ValueError(_OTHER_ROWS)
    return top


def _rounded(contents: Contents) -> int | str | None:
    """Return what the counts were rounded to, or None."""
    stated = contents.facts["rounded"]
    if stated is None:
        return None
    step = rounding.step(stated)
    if not rounding.is_nearest(contents.counts, step):
        raise ValueError(_OTHER_ROWS)
    return step


def _said(contents: Contents) -> dict[str, Any]:
    """Return the identity of a release, and what its publisher says about it."""
    facts = contents.facts
    identity = _identity.stated(facts["id"], facts["corrects"], facts["count_id"])
    return {"identity": identity, "about": about.checked(facts["about"])}


def _rest_of(known: _Known, contents: Contents) -> Rest | None:
    """Return the row for the groups left out, or None."""
    said, design = contents.facts["rest"], known[0]
    if said is None:
        return None
    given = dict(zip(design.levels, _decoded(said["labels"]), strict=True))
    [group] = map(readings, known[1].values())
    mechanism = of_facts(said, layout.change_of_sum(design), group.stated / group.drawn)
    if mechanism.bounds is not None:
        raise ValueError("its row for the rest has bounds")
    return Rest(_rest.labels(design, given), mechanism)


def _places(design: Design, contents: Contents, rest: Rest | None) -> list[NDArray[np.int64]]:
    """Return the place of each row's level, by column; of the last row, those of the rest."""
    found, axes = [], design._axes
    labels = [()] * len(axes) if rest is None else axes.split(rest.labels)
    for axis, columns, own in zip(axes, axes.split(contents.columns[:-1]), labels, strict=True):
        places = axis.of_rows(columns, own)
        if rest is not None and np.flatnonzero(places == axis.size).tolist() != [len(places) - 1]:
            raise ValueError(_OTHER_ROWS)
        found.append(places)
    return found


def _design(contents: Contents) -> Design:
    """Return the design of a description."""
    facts = contents.facts
    levels: dict[Any, Any] = {}
    labels: dict[str, dict[str, Any]] = {"other": {}, "margin": {}}
    for label, each in facts["axes"].items():
        if "nodes" in each:
            columns = tuple(each["columns"])
            levels[label if columns == (label,) else columns] = _hierarchy(each)
        else:
            said, key = each["levels"], tuple(each["columns"]) if "columns" in each else label
            levels[key] = rules.of_facts(said) if isinstance(said, dict) else _decoded(said)
        if any(type(each.get(name, [])) is not list for name in (*labels, "bins")):
            raise ValueError(f"labels or bins of {label!r} are no list")
        for name, known in labels.items():
            if each.get(name):
                [known[label]] = _decoded(each[name])
    # Earlier versions wrote none of these, and did not say which columns have all records.
    named = None if facts["values"] is None else facts["name"]
    facts = {"unit": None, "summed": named, "having": None, **facts}
    given = {name: facts[name] for name in KEYWORDS if facts[name] is not None}
    complete = [x for x, each in facts["axes"].items() if _flag(each.get("complete", False))]
    if isinstance(who := given.get("individual"), list):
        given["individual"] = tuple(who)
    stated = {label: [*_fractions(each["shares"])] for label, each in facts["axes"].items()}
    # Equal ones are the default, and the only ones of lists beside tables.
    shares = {label: parts for label, parts in stated.items() if len({*parts}) != 1}
    if facts["tables"] is not None:
        keys = [tuple(map(_column, each["columns"])) for each in facts["tables"]]
        if len({*keys}) < len(keys):
            raise ValueError("it has a table twice")
        parts = _fractions(each["part"] for each in facts["tables"])
        given["tables"] = dict(zip(keys, parts, strict=True))
    bins = {x: _decoded(each["bins"]) for x, each in facts["axes"].items() if each.get("bins")}
    given |= {"margins": labels["margin"], "complete": complete, "shares": shares, "bins": bins}
    made = Design(levels, other=labels["other"], **given)
    if {axis.label: [*axis.shares] for axis in made._axes} != stated:
        raise ValueError("it has columns or shares of another form")
    return made


def _flag(value: Any) -> bool:
    """Return whether a column has all records, as a description states."""
    parameters.check_bool("complete", value)
    return bool(value)


def _column(pair: Any) -> Any:
    """Return a column of a chosen table as a design takes it."""
    name, depth = pair
    return name if depth is None else (name, depth)


def fraction(text: Any) -> Fraction:
    """Return a number that a description states: an integer or a fraction, not negative."""
    if not isinstance(text, str) or len(text) > _LONGEST or not _FRACTION.fullmatch(text):
        shown = parameters.given(text)
        raise ValueError(f'a number {shown} is not accepted: give an integer or a fraction, "1/10"')
    return Fraction(text)


def _fractions(texts: Iterable[Any]) -> list[Fraction]:
    """Return numbers of a release, which are parts of one: sums of others could take hours."""
    common, found = 1, [fraction(text) for text in texts]
    for each in found:
        common = math.lcm(common, each.denominator)
        if common.bit_length() > _MOST_BITS:
            raise ValueError(
                f"its numbers have a common denominator of more than {_MOST_BITS} bits"
            )
    return found


def _hierarchy(facts: Mapping[str, Any]) -> Hierarchy:
    nodes, parents = _decoded(facts["nodes"]), facts["parents"]
    if not _levels.kinds(parents) <= {int}:
        raise ValueError("parents are not places of nodes")
    above = np.array(parents, np.int64)
    labels = dict(zip(nodes, facts["labels"], strict=True)) if facts["labels"] else {}
    for label in _decoded(facts["other"]):
        # A leaf of the table, and no node of the tree that it was made of.
        at = nodes.index(label)
        nodes, above = [*nodes[:at], *nodes[at + 1 :]], np.delete(above, at)
        if (above == at).any():
            raise ValueError("other has nodes below it")
        above -= above > at
    return Hierarchy._stated(
        nodes,
        above,
        paths=None if facts["paths"] is None else naming.stated(**facts["paths"]),
        leaves_only=facts["leaves_only"],
        labels={node: label for node, label in labels.items() if label is not None},
    )


def _decoded(levels: list[Any]) -> list[Any]:
    """Return levels of JSON as they were; dates and times are objects, combinations lists."""
    if list in _levels.kinds(levels):
        if dict not in _levels.kinds(chain.from_iterable(levels)):
            return [*map(tuple, levels)]
        return [tuple(map(_dated, each)) for each in levels]
    return [*map(_dated, levels)] if dict in _levels.kinds(levels) else levels


def _dated(level: Any) -> Any:
    if isinstance(level, dict):
        [(kind, text)] = level.items()
        return {"date": date, "datetime": datetime}[kind].fromisoformat(text)
    return level


def of_facts(said: Mapping[str, Any], sensitivity: int, ratio: Fraction) -> GeometricMechanism:
    """Return the noise that a file states, whose stated loss is `ratio` times the drawn one."""
    bounds = said["bounds"]
    drawn = fraction(said["rate"]) * sensitivity
    epsilon: Any = drawn if ratio == 1 else Typed(drawn * ratio, drawn)
    return GeometricMechanism(epsilon, sensitivity, None if bounds is None else tuple(bounds))
