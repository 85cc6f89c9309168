"""Bookings, and the store that keeps them in memory."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from geomdp._ground import parameters
from geomdp._numerics import composition

#: Names of groups that a release is for; None for everyone.
Groups: TypeAlias = tuple[str, ...] | None


class Protects(NamedTuple):
    """Whom the loss of a release is about. The losses of a budget are about the same, so they add.

    Attributes
    ----------
    unit : str
        Who is protected: one record, or one individual, as a table's design calls them.
    neighbours : str
        Against which change of their records: "add-remove" or "change".

    Examples
    --------
    >>> from geomdp.accounting import Protects
    >>> str(Protects("record", "add-remove"))
    "each 'record', neighbours='add-remove'"

    """

    unit: str
    neighbours: str

    def __str__(self) -> str:
        return f"each {self.unit!r}, neighbours={self.neighbours!r}"


class Booking(NamedTuple):
    """One release in the history of a budget; ``pandas.DataFrame(budget.history)`` shows them.

    Attributes
    ----------
    label : str or None
        The label of the release, which no other booking for the same people has.
    loss : Fraction
        The exact pure privacy loss.
    cost : Fraction
        What it takes from the budget: its loss or, with a plan, the sum of the planned losses that
        it uses up, or its rho.
    time : datetime
        The time of the booking, in UTC, to the second.
    groups : tuple of str, or None
        The groups whose people may be in the release, or None for everyone.
    ids : tuple of str
        The ids of the tables or of the stream that it paid for, which their files state too; none
        for a loss that was booked by itself.
    tiers : tuple of pairs of str and Fraction
        For a table at several precisions, the name of each tier and the loss by those who see it,
        the last of which is `loss`; empty for most.
    protects : Protects or None
        Whom the loss is about, as a table states; None for a loss that was booked by itself, which
        is taken to be about the individuals of the budget.

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
    groups: Groups
    ids: tuple[str, ...] = ()
    tiers: tuple[tuple[str, Fraction], ...] = ()
    protects: Protects | None = None

    def _loss_of(self, seen: Collection[str]) -> Fraction:
        """Return the loss by readers who see these tiers; releases without tiers are for all."""
        if not self.tiers:
            return self.loss
        return max((loss for name, loss in self.tiers if name in seen), default=Fraction())


class Entry(NamedTuple):
    """A booking, and how often it has each cost, except for 0."""

    booking: Booking
    costs: Counter[Fraction]


class Spent:
    """What the entries of a budget add up to, for the individuals of some groups.

    Nobody is in two groups. So the greatest sum of a group counts, with that of the releases for
    everyone (``docs/proofs.md``, lemma 14g).

    Entries are only added, so each call goes on from the one before. It replaces a sum and the
    number of its entries in one step, since a signal handler or another thread may read meanwhile.
    """

    __slots__ = ("_known", "_total", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._total: tuple[int, Fraction, dict[str, Fraction]] = 0, Fraction(0), {}
        self._known: tuple[int, dict[tuple[str | None, Groups], Booking], Protects | None]
        self._known = 0, {}, None

    def total(self, groups: Groups) -> Fraction:
        """Return the greatest sum of the costs for one individual."""
        n, everyone, own = self._total
        if new := self.entries[n:]:
            own = own.copy()
            for each in new:
                if each.booking.groups is None:
                    everyone += each.booking.cost
                for name in each.booking.groups or ():
                    own[name] = own.get(name, 0) + each.booking.cost
            self._total = n + len(new), everyone, own
        return everyone + max((own[name] for name in present(own, groups)), default=0)

    def histories(self, groups: Groups) -> list[list[Entry]]:
        """Return the entries of the individuals of each group, once for groups of equal losses."""
        everyone: list[Entry] = []
        own: defaultdict[str, list[Entry]] = defaultdict(list)
        for each in self.entries:
            if each.booking.groups is None:
                everyone.append(each)
            for name in each.booking.groups or ():
                own[name].append(each)
        different = {
            frozenset(Counter(map(_losses, own[name])).items()): name
            for name in present(own, groups)
        }
        return [everyone + own[name] for name in different.values()] or [everyone]

    def bookings(self, groups: Groups) -> list[Booking]:
        """Return the bookings with individuals of these groups, the first one first."""
        return [each for each, _ in self.entries if meet(groups, each.groups)]

    def check_new(self, label: str | None, groups: Groups, protects: Protects | None) -> None:
        """Refuse the label of a release that is booked, and losses that do not add up.

        The same release runs again, or it is about others than those before.
        """
        n, found, known = self._known
        new = self.entries[n:]
        for each in new:
            found.setdefault((each.booking.label, each.booking.groups), each.booking)
            known = known or each.booking.protects
        self._known = n + len(new), found, known
        if None not in (protects, known) and protects != known:
            raise ValueError(
                f"this release protects {protects}, and the budget {known}: their losses do not "
                "add up. Give it another budget, or a design with the same; unit= is the word for "
                "whom a record or an individual stands for"
            )
        if label is not None and (label, groups) in found:
            raise ValueError(
                f"label = {parameters.shown(label)} is not accepted: a release with it was booked "
                f"at {found[label, groups].time:%Y-%m-%d %H:%M:%S} UTC. Use its output; if that is "
                "lost, give another label to release and pay again"
            )


def _losses(entry: Entry) -> tuple[Any, ...]:
    """Return all that an entry says of losses."""
    booking = entry.booking
    return booking.loss, booking.tiers, frozenset(entry.costs.items())


def present(own: Iterable[str], groups: Groups) -> Iterable[str]:
    """Return those of some names of groups that the individuals of these groups are in."""
    return own if groups is None else [name for name in groups if name in own]


def meet(one: Groups, other: Groups) -> bool:
    """Return whether an individual may be in both of these groups."""
    return one is None or other is None or not {*one}.isdisjoint(other)


def declared(groups: Any) -> tuple[str, ...]:
    """Return the names of groups in order, or refuse those that overlap or are no names."""
    return tuple(sorted(_names("groups", groups)))


def chosen(groups: tuple[Any, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of groups in order, or refuse those that are not known."""
    if not known:
        raise ValueError("this budget has no groups: declare them when it is made, as groups=[...]")
    wanted = f"names of groups of this budget, such as {parameters.shown(known[0])}"
    if not groups:
        raise TypeError(f"group = () is not accepted: give {wanted}")
    found = tuple(sorted(_names("group", groups)))
    for name in found:
        place = bisect_left(known, name)
        if known[place : place + 1] != (name,):
            raise ValueError(parameters.refusal("group", name, wanted))
    return found


def _names(name: str, groups: Any) -> list[str]:
    if not parameters.has_items(groups) or isinstance(groups, Mapping):
        raise TypeError(parameters.foreign(name, groups, "several names"))
    found = list(groups)
    for each in found:
        if not isinstance(each, str):
            # Do not show the value: it may be counts, given in the wrong place.
            kind = type(each).__name__
            raise TypeError(f"{name} of type {kind} are not accepted: give names of type str")
        parameters.check_text(name, each)
        if not each:
            raise ValueError(parameters.refusal(name, each, "names that are not empty"))
    if twice := [each for each, n in Counter(found).items() if n > 1]:
        raise ValueError(parameters.refusal(name, twice[0], "each name once: groups are disjoint"))
    return found


#: Returns the costs of a release, given what is spent; or refuses it.
Decide: TypeAlias = Callable[[Spent], Counter[Fraction]]


class Asked(NamedTuple):
    """A release that is to be booked."""

    label: str | None
    groups: Groups
    loss: Any
    ids: tuple[str, ...]
    tiers: tuple[tuple[str, Fraction], ...]
    protects: Protects | None


class Store(Protocol):
    """Where bookings are kept: in memory or in a ledger."""

    def spent(self) -> Spent:
        """Return what was booked."""

    def settled(self) -> Spent:
        """Return what was booked, and finish what was left half done."""

    def book(self, asked: Asked, decide: Decide) -> None:
        """Book a release in one step, unless `decide` refuses it or its label is taken."""


class Memory:
    """Bookings in memory. Readers take no lock, since a signal handler may interrupt its owner."""

    __slots__ = ("_lock", "_process", "_spent")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._spent = Spent()
        self._spent.entries += entries
        self._lock, self._process = threading.Lock(), os.getpid()

    def spent(self) -> Spent:
        return self._spent

    settled = spent

    def book(self, asked: Asked, decide: Decide) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "a forked process has a copy of this budget, and each copy could be spent: "
                "open a ledger in each process with Budget.open"
            )
        with self._lock:
            self._spent.check_new(asked.label, asked.groups, asked.protects)
            taken = decide(self._spent)
            label, groups, loss, ids, tiers, protects = asked
            cost = composition.total(taken)
            booking = Booking(label, loss, cost, now(), groups, ids, tiers, protects)
            self._spent.entries.append(Entry(booking, taken))


def now() -> datetime:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
