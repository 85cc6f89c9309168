"""The last steps of every release: refuse, pay, draw and publish, as one act.

All files are rehearsed before anything is booked, and the loss is booked before any noise is drawn.
What was paid is not lost: a call that is interrupted leaves the release under a hidden name
(:mod:`geomdp.tables._publish.kept`), and the same call completes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from geomdp._ground import parameters
from geomdp.accounting._budget import as_budget, book_table, ledger_of, paid
from geomdp.tables._facts import counted
from geomdp.tables._publish import kept, published
from geomdp.tables._publish.kept import Left
from geomdp.tables._release import steps
from geomdp.tables._results import empty
from geomdp.tables._results.released import Released, rehearse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from geomdp._ground.identity import Identity
    from geomdp.accounting import Budget
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._publish.kept import Place
    from geomdp.tables._release.steps import Release

_Made = TypeVar("_Made")
#: What two runs of one call state differently.
_ITS_OWN = ("id", "chosen_by", "count_id", "version")


def publish(
    prepared: Sequence[Release],
    draw: Callable[[], list[NDArray[np.int64]]],
    made: Callable[[Sequence[NDArray[np.int64]], Sequence[Identity]], _Made],
    zeros: Sequence[NDArray[np.int64]],
    *,
    budget: Any = None,
    save: Any = None,
    rounded: Any = None,
    tiers: tuple[tuple[str, Fraction], ...] = (),
    **_: Any,
) -> _Made:
    """Book some prepared releases together, or refuse them; then draw them, and save them.

    `made` returns the release of what was drawn, or of zeros. Of tiers, the release is that of the
    finest one, and each is stated by name.
    """
    _check_rounded(save, rounded)
    ids = [each.identity for each in prepared]
    if budget is not None:
        as_budget(budget)
    files = [] if save is None else _files(made(zeros, ids), save)
    taken = _rehearsed(files, rounded)
    cost = _losses(prepared)
    parameters.ask_about_percent(cost[0])
    if budget is None or save is None:
        if taken is not None:
            raise taken
        if budget is not None:
            _book(prepared, cost, budget, tiers)
        whole = made(draw(), ids)
        return _saved(whole, [] if save is None else _files(whole, save), rounded)
    first = os.fspath(files[0][1])
    if taken is not None and not kept.path_of(first).exists():
        raise taken
    ledger, label = ledger_of(budget), prepared[0].label
    facts = {"label": label, "ledger": ledger, "asked": _asked(files, rounded)}
    with kept.place(first) as place:
        left = _left(place, facts, budget)
        if taken is not None:
            _refuse_taken(place, files, left, taken)
        if left is None:
            left = Left(facts, ids, None)
            place.begin(facts, ids)
            try:
                _book(prepared, cost, budget, tiers)
            except Exception:
                if not _is_paid(budget, left):
                    place.drop()
                raise
        drawn = left.drawn
        if drawn is None:
            drawn = draw()
            place.keep(drawn)
        whole = made(drawn, left.identities)
        return _saved(whole, _files(whole, save), rounded, place.drop)


def check(design: Layout, *, save: Any = None, rounded: Any = None, **how: Any) -> None:
    """Refuse what a release of a table by these arguments would be refused for, but its budget."""
    release = steps.prepare(design, None, **how)
    _check_rounded(save, rounded)
    if save is not None:
        rehearse(steps.made(release, None, steps.zeros(release), release.identity), save, rounded)


def _check_rounded(save: Any, rounded: Any) -> None:
    if save is None and rounded is not None:
        raise TypeError("rounded is for save: only files are rounded")


def _losses(
    prepared: Sequence[Release],
) -> tuple[Fraction | float, Counter[Fraction | float]]:
    """Return the loss of some releases together, and those of their noisy counts."""
    whole: Fraction | float = 0
    losses: Counter[Fraction | float] = Counter()
    for each in prepared:
        one, many = each.losses()
        whole, losses = whole + one, losses + many
    return whole, losses


def _book(
    prepared: Sequence[Release],
    cost: tuple[Fraction | float, Counter[Fraction | float]],
    budget: Budget,
    tiers: tuple[tuple[str, Fraction], ...],
) -> None:
    """Book some releases together, or refuse them."""
    whole, losses = cost
    counts = Counter([whole]) if whole == math.inf else losses
    ids = tuple(each.identity.id for each in prepared)
    how: dict[str, Any] = {"protects": counted.protects(prepared[0].design), "tiers": tiers}
    book_table(budget, whole, counts, prepared[0].label, ids, **how)


def _files(made: Any, save: Any) -> list[tuple[Released, Any]]:
    """Return each table that is published, and its path."""
    if isinstance(save, Mapping):
        return [(made[name], path) for name, path in save.items()]
    return [(made, save)]


def _rehearsed(files: Sequence[tuple[Released, Any]], rounded: Any) -> FileExistsError | None:
    """Refuse files to which nothing can be saved; return the error of one that exists."""
    found = None
    for table, path in files:
        try:
            rehearse(table, path, rounded)
        except FileExistsError as error:
            found = found or error
    return found


def _asked(files: Sequence[tuple[Released, Any]], rounded: Any) -> str:
    """Return a digest of what is to be published, and of the names of its files."""
    asked = []
    for table, path in files:
        facts = table._to_multiples(rounded)._said(certificate=False).facts
        asked.append([os.path.basename(path), {x: facts[x] for x in facts if x not in _ITS_OWN}])
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _left(place: Place, facts: Mapping[str, Any], budget: Budget) -> Left | None:
    """Return what an interrupted call with these facts has paid for, or None."""
    left = place.left
    if left is None:
        return None
    other = left.facts.get("ledger") not in (None, facts["ledger"])
    if not other and not _is_paid(budget, left):
        return None
    if left.facts != facts:
        raise ValueError(
            f"label = {left.facts.get('label')!r} is that of a release that waits for this file: "
            "it was paid for, and interrupted. Repeat its call with the same parameters to "
            f"publish it, or delete {place.path.name} to give it up"
        )
    return left


def _is_paid(budget: Budget, left: Left) -> bool:
    return paid(budget, tuple(each.id for each in left.identities))


def _refuse_taken(
    place: Place,
    files: Sequence[tuple[Released, Any]],
    left: Left | None,
    taken: FileExistsError,
) -> None:
    """Refuse names that are taken, but by files of an interrupted call that has more to write."""
    ids = {each.id for each in (left.identities if left else ())}
    ours = [published.states(path, ids) for _, path in files]
    if left is None or all(ours):
        place.drop()
    others = (os.path.lexists(path) and not own for (_, path), own in zip(files, ours, strict=True))
    if all(ours) or any(others):
        raise taken


def _saved(
    made: _Made,
    files: Sequence[tuple[Released, Any]],
    rounded: Any = None,
    done: Callable[[], None] = lambda: None,
) -> _Made:
    """Return a release that is booked, after it is saved to files that were rehearsed.

    A warning that it may be of no record is an error where users made it one.
    """
    try:
        for table, path in files:
            if not os.path.lexists(path) or not published.states(path, {table.id}):
                table.save(path, rounded=rounded)
        done()
        # Of tiers the finest, and of sums and counts the counts.
        last: Any = [*made.values()][-1] if isinstance(made, Mapping) else made
        axes, whole = last._columns_without_records()
        empty.warn(axes, whole=whole)
    except BaseException as error:
        error.__dict__["released"] = made
        error.add_note(
            "The release is booked. It is the attribute `released` of this error: save it to "
            "another file"
        )
        raise
    return made
