"""What a table has counted: whether two have the same, and for whom their losses add up.

Each fact is compared unless its field says where it may differ (:data:`fields.FIELDS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geomdp._ground import parameters
from geomdp.accounting._bookings import Protects
from geomdp.tables._facts import rules
from geomdp.tables._facts.fields import FIELDS, compared

if TYPE_CHECKING:
    from collections.abc import Container

    from geomdp.tables._facts.axes import Axis
    from geomdp.tables._facts.layout import Layout

#: The facts on which a loss depends: who is protected, and against which change.
_DEFINITION = [key for key in FIELDS if "definition" not in FIELDS[key].differs]
#: What follows from other facts that differ, if one of both has none.
_REPLACED = frozenset(("l0", "linf"))
#: What was counted or added up, which errors name first.
_FIRST = frozenset(("summed", "values", "having"))


def protects(design: Layout) -> Protects:
    """Return whom the losses of a table are about: all of a budget are about the same."""
    return Protects(**{key: getattr(design, key) for key in _DEFINITION})


def check_same_counts(name: str, one: Any, other: Any) -> None:
    """Refuse a release whose true counts are not those of another one, summed over columns."""
    check_independent(name, one, other)
    check_no_correction(one, other)
    labels = [{axis.label for axis in each.design._axes} for each in (one, other)]
    who = one.design.individual
    if who is not None and who == other.design.individual and labels[0] != labels[1]:
        raise ValueError(
            f"{name} has other columns, so that limits of individuals leave out other records: "
            "give a release with the same columns"
        )
    _check_facts(name, one, other, "counts")
    _check_records(name, one.design, other.design, ())
    if one.count_id != other.count_id:
        raise ValueError(
            "limits of individuals keep other records in each count, so that the true counts "
            "of the two releases differ: release both from one count"
        )
    if one._revision != other._revision:
        raise ValueError(
            f"{name} is of the records before or after another correction: give a release that "
            "was corrected as often as this one"
        )


def check_same_sum(name: str, one: Any, *others: Any) -> None:
    """Refuse releases that do not count the same as another one of other people."""
    check_apart(name, one, *others)
    for other in others:
        labels = [[axis.label for axis in each.design._axes] for each in (one, other)]
        if {*labels[0]} != {*labels[1]}:
            raise ValueError(
                f"{name} has the columns {labels[1]}, not {labels[0]}: give a release with the same"
            )
        _check_facts(name, one, other, "sum")
        _check_records(name, one.design, other.design, labels[0])


def check_apart(name: str, *releases: Any) -> None:
    """Refuse releases for their sum that share noise or people."""
    check_independent(name, *releases)
    check_no_correction(*releases)
    check_other_people(name, *releases)


def check_same_question(name: str, one: Any, other: Any, by: Any, *, ratio: bool = False) -> None:
    """Refuse a release that does not count the same of other people, or at another time.

    Of a ratio, the two may count different things, of the same kinds of records.
    """
    check_independent(name, one, other)
    _check_facts(name, one, other, "ratio" if ratio else "question")
    _check_records(name, one.design, other.design, by)


def check_independent(name: str, *releases: Any) -> None:
    """Refuse a release that shares noise with one before it."""
    known: dict[str, Any] = {}
    for each in releases:
        ids = _ids(each)
        shared = [known[x] for x in ids & known.keys()]
        if any(one._tier not in (None, each._tier) for one in shared):
            raise ValueError(
                f"{name} is another tier of the same release, made from the finer one: use the "
                "finest of them alone, which has all that the others have"
            )
        if shared:
            raise ValueError(
                f"{name} is this release, or of the same stream, so that they share noise: give "
                "another release"
            )
        known |= dict.fromkeys(ids, each)


def check_no_correction(*releases: Any) -> None:
    """Refuse a release that corrects another one, or is corrected by it."""
    ids = {own for each in releases for own in _ids(each)}
    if any(not ids.isdisjoint(each.corrects) for each in _all(*releases)):
        raise ValueError("one of the releases corrects the other: use the corrected one alone")


def check_other_people(name: str, *releases: Any) -> None:
    """Refuse releases for their sum that are of one count, or correct the same one."""
    known = set[str]()
    for each in releases:
        own = {told for one in _all(each) for told in (*one.corrects, one.count_id) if told}
        if not known.isdisjoint(own):
            raise ValueError(
                f"{name} is about the same people as this release, of which it is another release "
                "of one count, or another correction: give one of the two"
            )
        known |= own


def _all(*releases: Any) -> list[Any]:
    """Return some releases, and all that they are sums of."""
    return [each for one in releases for each in (one, *one.parts)]


def _ids(of: Any) -> set[str]:
    """Return the ids of all releases whose noise a release has."""
    return {each.id for each in _all(of)}


def _check_facts(name: str, one: Any, other: Any, comparison: str) -> None:
    own, others = (compared(each, comparison) for each in (one, other))
    # Another count is told by itself.
    found = [key for key in own if own[key] != others[key] and key != "count_id"]
    # What was added up comes first, and then whatever limits are left.
    shown = [key for key in found if key not in _REPLACED or None not in (own[key], others[key])]
    if found:
        differ = " and ".join(
            f"{key} = {parameters.shown(others[key])}, not {parameters.shown(own[key])}"
            for key in sorted(shown, key=_FIRST.__contains__, reverse=True)
        )
        raise ValueError(
            f"{name} has {differ}, so that its true counts are others: give a release with the same"
        )


def _check_records(name: str, one: Layout, other: Layout, by: Container[str]) -> None:
    """Refuse a table of other records: a column without `other` leaves out those it does not list.

    Columns in both have the same levels or, if no question is by them, both have all records.
    """
    axes = [{axis.label: axis for axis in design._axes} for design in (one, other)]
    pairs = {x: [own[x] for own in axes if x in own] for x in (axes[0] | axes[1])}
    lost = [x for x, pair in pairs.items() if len(pair) == 1 and not _has_all(pair[0])]
    if lost:
        which = lost[0] if len(lost) == 1 else tuple(lost)
        raise ValueError(
            f"{name} and this release count other records: only one of them has "
            f"{' and '.join(map(repr, lost))}, which leaves out records with other values. Give "
            f"other= in its design or, if you know that every record has one of the levels, "
            f"complete={which!r}; a release that exists takes with_complete({which!r})"
        )
    for label, pair in pairs.items():
        if len(pair) < 2 or _same_levels(*pair):
            continue
        if label in by or not all(map(_has_all, pair)):
            raise ValueError(
                f"{name} has other levels of {label!r}, and so counts other records: give a "
                "release with the same"
            )


def _has_all(axis: Axis) -> bool:
    """Whether a column leaves out no record."""
    return bool(axis.other) or axis.complete


def _same_levels(one: Axis, other: Axis) -> bool:
    """Whether two columns have the same levels, in any order, and the same for other records.

    Levels that are bins have the same cut points, and their order.
    """
    if one.rule is not None or other.rule is not None:
        return rules.same_levels(one.rule, other.rule) and one.other == other.other
    cells = one.cells, other.cells
    if one.cuts != other.cuts or (one.cuts and cells[0] != cells[1]):
        return False
    return one.other == other.other and (cells[0] == cells[1] or {*cells[0]} == {*cells[1]})
