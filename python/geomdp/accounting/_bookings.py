"""Bookings, and the store that keeps them in memory."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from geomdp._analysis import composition
from geomdp._inputs import parameters

#: Returns the costs of a release, given how often each cost was booked before; or refuses it.
Decide: TypeAlias = Callable[[Counter[Fraction]], Counter[Fraction]]


class Booking(NamedTuple):
    """One release in the history of a budget; ``pandas.DataFrame(budget.history)`` shows them.

    Attributes
    ----------
    label : str or None
        The label that the release was given; no other booking has it.
    loss : Fraction
        The pure privacy loss, exactly.
    cost : Fraction
        Its share of the budget: the loss; with a plan the sum of the planned losses that it uses
        up; or its rho.
    time : datetime
        When it was booked, in UTC to the second.

    Examples
    --------
    >>> from geomdp import accounting
    >>> budget = accounting.Budget(rho=1)
    >>> budget.book("0.1", label="visits")
    >>> [booking] = budget.history
    >>> booking.label, booking.loss, float(booking.cost)
    ('visits', Fraction(1, 10), 0.004995837495787998)

    """

    label: str | None
    loss: Fraction
    cost: Fraction
    time: datetime


class Store(Protocol):
    """Where bookings are kept: in memory or in a ledger."""

    def costs(self) -> Counter[Fraction]:
        """Return how often each cost was booked, except for 0."""

    def bookings(self) -> list[Booking]:
        """Return all bookings, the first one first."""

    def book(self, label: str | None, loss: Any, decide: Decide) -> None:
        """Book a release in one step, unless `decide` refuses it or its label is taken."""


class Memory:
    """Bookings in memory. Readers take no lock, since a signal handler may interrupt its owner."""

    __slots__ = ("_bookings", "_costs", "_lock", "_process")

    def __init__(self) -> None:
        self._bookings: list[Booking] = []
        self._costs: Counter[Fraction] = Counter()
        self._lock, self._process = threading.Lock(), os.getpid()

    def costs(self) -> Counter[Fraction]:
        return self._costs

    def bookings(self) -> list[Booking]:
        return list(self._bookings)

    def book(self, label: str | None, loss: Fraction, decide: Decide) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "a forked process has a copy of this budget, and each copy could be spent: "
                "open a ledger in each process with Budget.open"
            )
        with self._lock:
            check_new(label, self._bookings)
            taken = decide(self._costs)
            self._costs = self._costs + taken
            self._bookings.append(Booking(label, loss, composition.total(taken), now()))


def check_new(label: str | None, bookings: Iterable[Booking]) -> None:
    """Refuse the label of a release that is booked: the same release runs again."""
    for each in bookings:
        if label is not None and each.label == label:
            raise ValueError(
                f"label = {parameters.shown(label)} is not accepted: a release with it was booked "
                f"at {each.time:%Y-%m-%d %H:%M:%S} UTC. Use its output; if that is lost, give "
                "another label to release and pay again"
            )


def now() -> datetime:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
