"""What a budget states at one moment, all of it public: its limit, what is spent, what is left."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from geomdp._ground import decimals, parameters
from geomdp._numerics import composition
from geomdp.accounting._bookings import Booking, Memory
from geomdp.accounting._budget import Budget, as_budget
from geomdp.accounting._ledger import Ledger
from geomdp.accounting._planned import Plan


class Statement(NamedTuple):
    """A budget at one moment. Numbers are texts: losses rounded up, the limit and the rest down."""

    limit: str
    spent: str
    left: str
    #: The name, what is spent and what is left of each group.
    groups: list[tuple[str, str, str]]
    bookings: list[Booking]
    #: The privacy loss of each booking, and its share of the budget.
    losses: list[tuple[str, str]]
    #: The digest of a ledger's last entry, which is one of all entries before it too.
    digest: str | None


def statement(value: Any) -> Statement:
    """Return what a budget states now; other processes may spend meanwhile."""
    given = as_budget(value)
    store, plan, digest = given._store, given._plan, None
    if isinstance(store, Ledger):
        entries, digest = store.final()
    else:
        entries = store.spent().entries
    budget = given._view(_store=Memory(entries), _plan=None if plan is None else Plan(plan.losses))
    unit = "rho" if budget._by_rho else "epsilon"
    limit = f"{unit} {_text(Fraction(budget._limit), decimals.greatest)}"
    spent, left = _state(budget)
    if plan is None:
        spent, left = f"{unit} {spent}", f"{unit} {left}"
    else:
        whole = _text(composition.total(plan.losses), decimals.least)
        limit += f" at delta {parameters.text(budget._delta)}, for planned losses of {whole}"
        spent, left = f"planned losses of {spent}", f"a planned loss of {left}"
    bookings = budget.history
    return Statement(
        limit,
        spent,
        left,
        [(name, *_state(budget.group(name))) for name in budget.groups],
        bookings,
        [(_text(x.loss, decimals.least), _text(x.cost, decimals.least)) for x in bookings],
        digest,
    )


def _state(budget: Budget) -> tuple[str, str]:
    """Return what is spent of a budget, and the most that a release may still cost."""
    spent = budget._store.spent()
    total = spent.total(budget._groups)
    if budget._plan is None:
        left = Fraction(budget._limit) - total
    else:
        left = budget._plan.greatest(spent, budget._groups)
    return _text(total, decimals.least), _text(left, decimals.greatest)


def _text(exact: Fraction, rounded: Callable[[Fraction], float]) -> str:
    """Return a number as a decimal that equals it, if there is a short one, or as a float."""
    number = rounded(exact)
    short = f"{number:.12g}"
    return short if math.isfinite(number) and Fraction(short) == exact else str(number)
