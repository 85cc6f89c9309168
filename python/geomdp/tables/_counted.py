"""What a table has counted: whether two have the same, and for whom their losses add up.

Each fact is compared unless its field says where it may differ (:data:`_fields.FIELDS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geomdp._inputs import parameters
from geomdp.accounting._bookings import Protects
from geomdp.tables._fields import FIELDS, KEYWORDS, stated

if TYPE_CHECKING:
    from collections.abc import Container

    from geomdp.tables._axes import Axis
    from geomdp.tables._layout import Layout

#: The facts on which a loss depends: who is protected, and against which change.
_DEFINITION = [key for key in KEYWORDS if "definition" not in FIELDS[key].differs]


def protects(design: Layout) -> Protects:
    """Return whom the losses of a table are about: all of a budget are about the same."""
    return Protects(**{key: getattr(design, key) for key in _DEFINITION})


def check_same_counts(name: str, one: Any, other: Any) -> None:
    """Refuse a release whose true counts are not those of another one, summed over columns."""
    check_independent(name, one, other)
    check_no_correction(one, other)
    _check_facts(name, one.design, other.design, "counts")
    labels = [{axis.label for axis in each.design._axes} for each in (one, other)]
    if one.design.individual is not None and labels[0] != labels[1]:
        raise ValueError(
            f"{name} has other columns, so that limits of individuals leave out other records: "
            "give a release with the same columns"
        )
    _check_records(name, one.design, other.design, ())
    if bool(one.corrects) != bool(other.corrects):
        raise ValueError(
            "only one of the releases corrects another one, so that their records may differ: give "
            "a release of the same records"
        )
    if one.count_id != other.count_id:
        raise ValueError(
            "limits of individuals keep other records in each count, so that the true counts "
            "of the two releases differ: release both from one count"
        )


def check_same_question(name: str, one: Any, other: Any, by: Any, *, ratio: bool = False) -> None:
    """Refuse a release that does not count the same of other people, or at another time.

    Of a ratio, the two may count different things, of the same kinds of records.
    """
    check_independent(name, one, other)
    _check_facts(name, one.design, other.design, "ratio" if ratio else "question")
    _check_records(name, one.design, other.design, by)


def check_independent(name: str, one: Any, other: Any) -> None:
    """Refuse a release that shares noise with another one."""
    if {*one.id.split()}.isdisjoint(other.id.split()):
        return
    if one._tier is not None and one._tier != other._tier:
        raise ValueError(
            f"{name} is another tier of the same release, made from the finer one: use the "
            "finest of them alone, which has all that the others have"
        )
    raise ValueError(
        f"{name} is this release, or of the same stream, so that they share noise: give "
        "another release"
    )


def check_no_correction(one: Any, other: Any) -> None:
    """Refuse a release that corrects another one, or is corrected by it."""
    ids = {*one.id.split(), *other.id.split()}
    if not ids.isdisjoint((*one.corrects, *other.corrects)):
        raise ValueError("one of the releases corrects the other: use the corrected one alone")


def _check_facts(name: str, one: Layout, other: Layout, comparison: str) -> None:
    own, others = stated(one), stated(other)
    found = [
        f"{key} = {parameters.shown(others[key])}, not {parameters.shown(own[key])}"
        for key in KEYWORDS
        if comparison not in FIELDS[key].differs and own[key] != others[key]
    ]
    if found:
        raise ValueError(
            f"{name} has {' and '.join(found)}, so that its true counts are others: give a release "
            "with the same"
        )


def _check_records(name: str, one: Layout, other: Layout, by: Container[str] | None) -> None:
    """Refuse a table of other records: a column without `other` leaves out those it does not list.

    Columns in both have the same levels or, if no question is by them, both have all records.
    """
    axes = [{axis.label: axis for axis in design._axes} for design in (one, other)]
    for label in dict.fromkeys([*axes[0], *axes[1]]):
        pair = [own[label] for own in axes if label in own]
        if len(pair) == 1 and not _has_all(pair[0]):
            raise ValueError(
                f"{name} and this release count other records: only one of them has the column "
                f"{label!r}, which leaves out records with other values. Give that column other= "
                f"or, if every record has one of its levels, complete={label!r} in its design"
            )
        if len(pair) < 2 or _same_levels(*pair):
            continue
        if (by is None or label in by) or not all(map(_has_all, pair)):
            raise ValueError(
                f"{name} has other levels of {label!r}, and so counts other records: give a "
                "release with the same"
            )


def _has_all(axis: Axis) -> bool:
    """Whether a column leaves out no record."""
    return bool(axis.other) or axis.complete


def _same_levels(one: Axis, other: Axis) -> bool:
    """Whether two columns have the same levels, in any order, and the same for other records."""
    cells = one.cells, other.cells
    return one.other == other.other and (cells[0] == cells[1] or {*cells[0]} == {*cells[1]})
