"""Bookings, and the store that keeps them in memory."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from geomdp._inputs import parameters
from geomdp._numerics import composition


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


class Entry(NamedTuple):
    """A booking, and how often it has each cost, except for 0."""

    booking: Booking
    costs: Counter[Fraction]


class Spent:
    """What the entries of a budget add up to.

    Entries are only added, so each call goes on from the one before. It replaces a sum and the
    number of its entries in one step, since a signal handler or another thread may read meanwhile.
    """

    __slots__ = ("_labels", "_total", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._total = 0, Fraction(0)
        self._labels: tuple[int, dict[str | None, Booking]] = 0, {}

    def total(self) -> Fraction:
        """Return the sum of all costs."""
        n, found = self._total
        if new := self.entries[n:]:
            found = sum((each.booking.cost for each in new), found)
            self._total = n + len(new), found
        return found

    def costs(self) -> Counter[Fraction]:
        """Return how often each cost was booked, except for 0."""
        found: Counter[Fraction] = Counter()
        for each in self.entries:
            found.update(each.costs)
        return found

    def bookings(self) -> list[Booking]:
        """Return all bookings, the first one first."""
        return [each.booking for each in self.entries]

    def check_new(self, label: str | None) -> None:
        """Refuse the label of a release that is booked: the same release runs again."""
        n, found = self._labels
        new = self.entries[n:]
        for each in new:
            found.setdefault(each.booking.label, each.booking)
        self._labels = n + len(new), found
        if label is not None and label in found:
            raise ValueError(
                f"label = {parameters.shown(label)} is not accepted: a release with it was booked "
                f"at {found[label].time:%Y-%m-%d %H:%M:%S} UTC. Use its output; if that is lost, "
                "give another label to release and pay again"
            )


#: Returns the costs of a release, given what is spent; or refuses it.
Decide: TypeAlias = Callable[[Spent], Counter[Fraction]]


class Store(Protocol):
    """Where bookings are kept: in memory or in a ledger."""

    def spent(self) -> Spent:
        """Return what was booked."""

    def book(self, label: str | None, loss: Any, decide: Decide) -> None:
        """Book a release in one step, unless `decide` refuses it or its label is taken."""


class Memory:
    """Bookings in memory. Readers take no lock, since a signal handler may interrupt its owner."""

    __slots__ = ("_lock", "_process", "_spent")

    def __init__(self) -> None:
        self._spent = Spent()
        self._lock, self._process = threading.Lock(), os.getpid()

    def spent(self) -> Spent:
        return self._spent

    def book(self, label: str | None, loss: Fraction, decide: Decide) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "a forked process has a copy of this budget, and each copy could be spent: "
                "open a ledger in each process with Budget.open"
            )
        with self._lock:
            self._spent.check_new(label)
            taken = decide(self._spent)
            booking = Booking(label, loss, composition.total(taken), now())
            self._spent.entries.append(Entry(booking, taken))


def now() -> datetime:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
