"""A limit on the total loss, kept in memory or in a file."""

from __future__ import annotations

import math
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Literal

from geomdp._ground import decimals, notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._ground.uncopied import Uncopied, Withheld
from geomdp._noise import exact_loss
from geomdp._numerics import composition
from geomdp.accounting._bookings import (
    Asked,
    Booking,
    Entry,
    Groups,
    Memory,
    Protects,
    Spent,
    Store,
    chosen,
    declared,
)
from geomdp.accounting._compose import Losses, delta_of, groups_of, zcdp_of
from geomdp.accounting._journal import absolute
from geomdp.accounting._ledger import Ledger
from geomdp.accounting._losses import LossDistribution
from geomdp.accounting._planned import Plan, listed, unlisted
from geomdp.mechanism import GeometricMechanism, as_mechanism, rehearse

#: What a ledger has for limits that its budget does without.
_ABSENT = {"epsilon": "None", "delta": "0", "losses": "None", "rho": "None", "groups": []}


@notebook.showable
class Budget(Uncopied):
    """A limit on the total privacy loss, which refuses releases that would exceed it.

    All its tables protect the same individuals against the same change, as their designs say by
    `unit` and `neighbours`: the first one decides, and others are refused, since their losses would
    not add up. A loss that is booked by itself says neither, so book only those of the same.

    A ``Budget(...)`` ends with its process, whereas :meth:`open` keeps a budget in a file. Any
    number of threads may share one, but it cannot be copied or pickled. A signal handler may read
    it at any time. A budget is bookkeeping and not a security boundary: it counts only the releases
    that it is told of, and code with access to the data can bypass it.

    Parameters
    ----------
    epsilon : number, optional
        The limit, not negative. A float means the decimal that its text states, so ten releases at
        0.1 use up a budget of 1.
    delta : number
        From 0 to 1. With 0, the sum of the losses is limited, and losses may depend on earlier
        outputs.
    losses : iterable of numbers, mapping of them to int, or LossDistribution
        The losses of all releases, planned in advance, as for :func:`compose`. A plan is required
        if delta is not 0, since composition does not cover losses that are chosen after seeing
        earlier outputs. Each release uses up the least planned loss that is enough for it. A
        distribution plans the losses of cells, and each table uses up those of the cells that one
        individual can change. Releases may come in any order, and planned ones may be left out.
    rho : number, optional
        Instead of the others, the limit under zero-concentrated differential privacy. Each release
        costs its :func:`zcdp`, and the sum of these is limited. Losses may depend on earlier
        outputs.
    groups : iterable of str, optional
        The names of groups of individuals, such as countries or schools, that have nobody in
        common; :meth:`group` explains what that allows. Some individuals may be in none of them.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accounting
    >>> budget = accounting.Budget(epsilon=1)
    >>> mechanism = GeometricMechanism(epsilon=0.75, bounds=(0, 100))
    >>> noisy = budget.release(mechanism, 40, label="visits")
    >>> budget.spent, budget.remaining
    ([('visits', 0.75)], 0.25)
    >>> budget.release(mechanism, 50)
    Traceback (most recent call last):
        ...
    ValueError: this release costs 0.75, but only 0.25 of 1 is left: 0.5 too much
    >>> daily = accounting.Budget(epsilon=3.2, delta=1e-6, losses={0.1: 50})
    >>> noisy = daily.release(GeometricMechanism(0.1), [12, 7], label="Monday")

    An individual changes three cells of this table. Fifty releases of it need a smaller epsilon
    than fifty of a mechanism with the same privacy loss:

    >>> from geomdp.tables import Design
    >>> design = Design({"town": ["Oslo", "Rome", "Bern"]}, individual="who", l0=3)
    >>> plan = 50 * design.loss_distribution(epsilon=0.3)
    >>> round(accounting.Budget(epsilon=6.1, delta=1e-6, losses=plan).epsilon_spent, 2)
    6.07
    >>> round(accounting.compose({0.3: 50}, delta=1e-6), 2)
    11.07

    """

    _uncopied = "each copy could be spent"
    __slots__ = (
        "_by_rho",
        "_declared",
        "_delta",
        "_groups",
        "_limit",
        "_plan",
        "_planned",
        "_spenders",
        "_store",
    )

    def __init__(
        self,
        epsilon: Real | None = None,
        delta: Real = 0,
        losses: Losses | LossDistribution | None = None,
        *,
        rho: Real | None = None,
        groups: Iterable[str] = (),
    ) -> None:
        if (epsilon is None) == (rho is None):
            raise TypeError("a budget has one limit: give either epsilon or rho")
        self._by_rho = epsilon is None
        name, given = ("rho", rho) if self._by_rho else ("epsilon", epsilon)
        self._limit = _limit(name, given)
        self._delta = delta_of(delta)
        self._plan = None if losses is None else Plan(_counted(losses))
        self._declared = declared(groups)
        #: Whose losses this object says, and who may be in the releases that it books.
        self._groups: Groups = None
        self._store: Store = Memory()
        self._spenders: set[tuple[int, int]] = set()
        if self._by_rho:
            if self._delta or self._plan is not None:
                raise ValueError("rho limits losses at every delta: give no delta and no losses")
        elif self._plan is not None:
            self._planned = composition.epsilon(self._plan.losses, self._delta)
            exact = composition.total(self._plan.losses)
            # Rounding up alone exceeds no budget.
            if parameters.decimal(self._planned) > self._limit and exact > self._limit:
                raise ValueError(
                    f"the planned releases raise the privacy loss to {self._planned}, but the "
                    f"budget is {parameters.text(self._limit)}"
                )
        elif self._delta:
            raise ValueError(
                f"delta = {delta} is not accepted without losses: give those of all releases"
            )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        losses: Losses | LossDistribution | None = None,
        rho: Real | None = None,
        groups: Iterable[str] | None = None,
    ) -> Budget:
        """Return the budget that is kept in a file, its ledger, or a new one if there is none.

        Any number of threads and processes may open the same ledger, under any of its names, and
        spend from it. Each release is booked and on the disk before any noise is drawn, so a
        process that is killed in between may lose budget but never privacy. Calls that save a table
        lose neither: the same call completes what was paid for. No file stays open between calls.

        The ledger is a text file that only grows. It has a line of JSON for its head, for its end
        and for each release, with the label, the exact loss, the time, the groups that the release
        is for, whom it protects, its tiers and the ids of its tables, and nothing of the data. Each
        line has a digest of itself and of the line before, so damage is noticed. Keep the ledger on
        a local file system: on a network file system locks may fail, and two processes could spend
        the same remainder. A ledger that is deleted, edited or replaced by an older copy forgets
        releases; see :meth:`backup`. :func:`geomdp.tables.report` shows a ledger to an auditor.

        Parameters
        ----------
        path : str or path
            The ledger.
        epsilon, delta, losses, rho, groups
            As for :class:`Budget`, for a new ledger. An existing ledger has its own, so none are
            needed; any that are given must be the same, except for the order of groups. Whoever may
            only read the file can still look at the budget.

        Raises
        ------
        FileNotFoundError
            If there is no such file and no limit is given to create it.
        ValueError
            If the file is a ledger with other limits or of another format, is no ledger, or is
            damaged. The file is left as it is.
        TimeoutError
            If another process holds the lock for half a minute. Nothing is booked then. Later calls
            may raise this too, as well as other errors of the file, such as ``PermissionError`` if
            it is read-only.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp import GeometricMechanism, accounting
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "2026.jsonl"
        >>> budget = accounting.Budget.open(path, epsilon=6)
        >>> noisy = budget.release(GeometricMechanism(0.5), [12, 7], label="2026-10")
        >>> accounting.Budget.open(path).remaining
        5.5
        >>> accounting.Budget.open(path, epsilon=7)
        Traceback (most recent call last):
            ...
        ValueError: epsilon = 7 is not accepted: give that of the ledger 2026.jsonl, 6
        >>> folder.cleanup()

        """
        plan = None if losses is None else _counted(losses)
        known = None if groups is None else declared(groups)
        given: dict[str, Any] = {
            "epsilon": None if epsilon is None else str(Fraction(_limit("epsilon", epsilon))),
            "delta": None if delta is None else str(delta_of(delta)),
            "losses": None if plan is None else listed(plan),
            "rho": None if rho is None else str(Fraction(_limit("rho", rho))),
            "groups": None if known is None else [*known],
        }
        if (epsilon is rho is None) or absolute(path).exists():
            ledger = Ledger(path, given)
            budget: Budget = ledger.checked(cls._of, ledger.limits())
        else:
            budget = cls(epsilon, 0 if delta is None else delta, plan, rho=rho, groups=known or ())
            own = {name: text for name, text in given.items() if text is not None}
            ledger = Ledger(path, _ABSENT | own)
        budget._store = ledger
        return budget

    @classmethod
    def _of(cls, limits: Mapping[str, Any]) -> Budget:
        """Return a budget with the limits of a ledger, which may be forged."""
        epsilon, rho = (
            None if limits[name] == _ABSENT[name] else parameters.ratio(limits[name])
            for name in ("epsilon", "rho")
        )
        plan = None if limits["losses"] == _ABSENT["losses"] else unlisted(limits["losses"])
        return cls(
            epsilon, parameters.ratio(limits["delta"]), plan, rho=rho, groups=limits["groups"]
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups that this budget, or this view of it, is for."""
        return self._declared if self._groups is None else self._groups

    def group(self, *names: str) -> Budget:
        """Return a view of this budget for releases about the individuals of some groups alone.

        A release that the whole budget books adds to the loss of every group; one that this view
        books adds to the loss of these groups alone. So each group may use up the whole limit, and
        what the budget has spent is the loss of the group that lost most. The view is the budget as
        these individuals see it: :attr:`history` has the releases that concern them,
        :attr:`epsilon_spent` is their loss, and :attr:`remaining` is what is left for them; for
        several groups, those of the group that lost most.

        The budget cannot check two conditions, so they are the publisher's responsibility. Which
        group an individual is in must be a fixed fact that does not depend on the individual's
        records, and a release for a group must count no records of anybody else. An individual who
        moves from one group to another incurs the losses of both, added up: if a pupil may change
        schools during the time of the budget, count the pupil's records in one of the schools only,
        or book all schools together. Likewise, the fact that somebody is in one group and not in
        another is protected by the sum of both losses alone (``docs/proofs.md``, lemma 14g). A
        table with ``neighbours="change"`` is refused, since such a change may move its individual
        to another group; book it for everyone.

        Parameters
        ----------
        *names : str
            One or several of :attr:`groups`, such as those of the Nordic countries for a release
            about all of them. With planned losses, such a release uses up the same in each group.

        Returns
        -------
        Budget
            A view that can be used wherever a budget can. It books each label once, but another
            group may have the same label.

        Raises
        ------
        ValueError
            If the budget does not have these groups, or a name is given twice.

        Examples
        --------
        >>> from geomdp import accounting
        >>> budget = accounting.Budget(epsilon=1, groups=["Norway", "Sweden", "Denmark"])
        >>> budget.group("Norway").book("0.5", label="towns")
        >>> budget.group("Sweden").book("0.75", label="towns")
        >>> budget.book("0.25", label="countries")
        >>> budget.epsilon_spent, budget.remaining
        (1.0, 0.0)
        >>> {name: budget.group(name).epsilon_spent for name in budget.groups}
        {'Denmark': 0.25, 'Norway': 0.75, 'Sweden': 1.0}
        >>> budget.group("Norway", "Denmark").remaining
        0.25

        """
        return self._view(_groups=chosen(names, self.groups))

    def _view(self, **other: Any) -> Budget:
        """Return this budget with other values of some members."""
        view = type(self).__new__(type(self))
        for slot in Budget.__slots__:
            if hasattr(self, slot):
                setattr(view, slot, other.get(slot, getattr(self, slot)))
        return view

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Check the ledger, and write a copy of it to a new file.

        The copy is written completely or not at all, and others may spend meanwhile. It is a record
        for auditors. If you ever put it in place of the ledger, :meth:`book` all releases since, or
        the budget forgets them.

        Parameters
        ----------
        path : str or path
            The copy; it must not exist.

        Raises
        ------
        FileExistsError
            If the copy exists.
        ValueError
            If the ledger is damaged, or the budget is in memory.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp import accounting
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "2026.jsonl"
        >>> budget = accounting.Budget.open(path, epsilon=6)
        >>> budget.book(0.5, label="2026-10")
        >>> budget.backup(path.with_name("copy.jsonl"))
        >>> accounting.Budget.open(path.with_name("copy.jsonl")).spent
        [('2026-10', 0.5)]
        >>> folder.cleanup()

        """
        if not isinstance(self._store, Ledger):
            raise ValueError("a budget in memory has no file: open one with Budget.open")
        self._store.backup(path)

    def spend(
        self,
        mechanism: GeometricMechanism,
        d_in: Integer | None = None,
        *,
        label: str | None = None,
    ) -> None:
        """Book one release of a mechanism, or refuse it.

        Parameters
        ----------
        mechanism : GeometricMechanism
            The mechanism whose privacy loss at `d_in` is spent.
        d_in : int, optional
            The greatest distance of neighbouring inputs, in L1 for an array; not negative. By
            default the sensitivity of the mechanism.
        label : str, optional
            The name of the release in :attr:`spent` and :attr:`history`. A budget books each name
            once for the same groups, so a second run of the same release is refused instead of
            being paid for again.

        Raises
        ------
        ValueError
            If the release would exceed the budget, no planned loss is left for it, or its label is
            taken. The budget is left as it was.
        RuntimeError
            If a signal handler spends while it interrupts another spend in the same thread, or if a
            forked process spends from a budget in memory.

        Examples
        --------
        >>> from geomdp import GeometricMechanism, accounting
        >>> budget = accounting.Budget(epsilon=1)
        >>> budget.spend(GeometricMechanism(0.25), d_in=2, label="visits")
        >>> budget.epsilon_spent
        0.5

        """
        distance = as_mechanism(mechanism).sensitivity if d_in is None else d_in
        at = parameters.at_least("d_in", distance, 0)
        self.book(exact_loss(mechanism, at), label=label)

    def book(
        self, loss: Real | Mapping[Any, Integer] | LossDistribution, *, label: str | None = None
    ) -> None:
        """Book one release of this privacy loss, or refuse it, as :meth:`spend` does.

        Parameters
        ----------
        loss : number, str, mapping or LossDistribution
            The privacy loss of the release, taken exactly; not negative, possibly infinite. A
            distribution, or a mapping from losses to numbers of counts, states the losses of
            several noisy counts. With `rho`, these cost :meth:`LossDistribution.zcdp`, which is
            less than the :func:`zcdp` of their sum. With a plan, each count uses up a planned loss,
            unless a single planned loss for all of them is less. It must be that of the individuals
            and the neighbours that the budget is about: tables state theirs, a number does not.
        label
            As in :meth:`spend`.

        Examples
        --------
        >>> from geomdp import accounting
        >>> budget = accounting.Budget(epsilon=1)
        >>> budget.book(0.5, label="visits")
        >>> budget.epsilon_spent
        0.5

        """
        if isinstance(loss, LossDistribution | Mapping):
            cells = loss.losses if isinstance(loss, LossDistribution) else groups_of(loss)
            self._book(composition.total(cells), cells, label)
            return
        exact = parameters.in_range("loss", loss, "a number of at least 0", lambda x: x >= 0)
        exact = exact if exact == math.inf else Fraction(exact)
        self._book(exact, Counter([exact]), label)

    def _book(
        self,
        exact: Any,
        cells: Counter[Any],
        label: str | None,
        ids: tuple[str, ...] = (),
        *,
        tiers: tuple[tuple[str, Fraction], ...] = (),
        protects: Protects | None = None,
    ) -> None:
        """Book one release of this loss, given the losses of the cells that it consists of."""
        cost = zcdp_of(cells) if self._by_rho else exact
        if label is not None:
            parameters.check_text("label", label)
        with self._spending():
            asked = Asked(label, self._groups, exact, ids, tiers, protects)
            self._store.book(asked, lambda spent: self._take(cost, cells, spent))

    @contextmanager
    def _spending(self) -> Iterator[None]:
        """Refuse a second spend in this thread, which would wait for the first for ever."""
        spender = os.getpid(), threading.get_ident()
        if spender in self._spenders:
            raise RuntimeError("a signal handler that interrupts a spend cannot spend")
        self._spenders.add(spender)
        try:
            yield
        finally:
            self._spenders.discard(spender)

    def _take(self, cost: Any, cells: Counter[Any], spent: Spent) -> Counter[Fraction]:
        """Return the costs of a release to the budget, or refuse it."""
        if self._plan is not None:
            costs = cells, Counter([cost])
            found = [self._plan.least(spent, each, self._groups) for each in costs]
            enough = [taken for taken in found if taken is not None]
            if not enough:
                raise ValueError(
                    f"no planned release of privacy loss {decimals.least(cost)} or more is left"
                )
            return min(enough, key=composition.total)
        left = Fraction(self._limit) - spent.total(self._groups)
        if cost > left:
            rho, excess, text = "rho " if self._by_rho else "", cost - left, parameters.text
            raise ValueError(
                f"this release costs {rho}{text(cost)}, but only {rho}{text(left)} of "
                f"{text(self._limit)} is left: {text(excess)} too much"
            )
        return +Counter({cost: int(cost > 0)})  # An infinite one is refused.

    def release(
        self,
        mechanism: GeometricMechanism,
        counts: Any,
        *,
        d_in: Integer | None = None,
        label: str | None = None,
    ) -> Any:
        """Return noisy counts, after :meth:`spend`.

        A refused release draws no noise, and counts that the mechanism refuses cost nothing. A
        table of :mod:`geomdp.tables` knows its sensitivity, so it takes no `d_in`, and its own loss
        is booked, as by ``table.release(mechanism, budget=budget)``. Parameters and errors are
        those of :meth:`spend` and :meth:`geomdp.GeometricMechanism.release`.

        >>> from geomdp import GeometricMechanism, accounting
        >>> budget = accounting.Budget(epsilon=1)
        >>> noisy = budget.release(GeometricMechanism(0.5), [12, 7])
        >>> noisy.shape, budget.epsilon_spent
        ((2,), 0.5)
        """
        if isinstance(counts, Withheld) and hasattr(counts, "design"):
            if d_in is not None:
                raise ValueError("d_in is not accepted for a table, which knows its sensitivity")
            return counts.release(mechanism, budget=self, label=label)  # type: ignore[attr-defined]
        rehearse(as_mechanism(mechanism), counts)
        self.spend(mechanism, d_in, label=label)
        return mechanism.release(counts)

    @property
    def history(self) -> list[Booking]:
        """All releases so far, as the fields of a :class:`Booking` each."""
        return self._store.spent().bookings(self._groups)

    @property
    def spent(self) -> list[tuple[str | None, float]]:
        """The label and the privacy loss, rounded up, of each release so far."""
        return [(each.label, decimals.least(each.loss)) for each in self.history]

    @property
    def remaining(self) -> float:
        """The greatest privacy loss, or rho, that a release may still cost, rounded down."""
        spent = self._store.spent()
        if self._plan is not None:
            return decimals.greatest(self._plan.greatest(spent, self._groups))
        return decimals.greatest(Fraction(self._limit) - spent.total(self._groups))

    @property
    def epsilon_spent(self) -> float:
        """The privacy loss of all releases so far, or with a plan of all planned ones, rounded up.

        This is the greatest loss of any individual; with groups, that of the group that lost most.
        """
        return self.epsilon_at(0) if self._plan is None else self._planned

    def epsilon_of(self, *tiers: str) -> float:
        """Return the privacy loss by readers who have seen only these tiers of each table.

        Of a table at several precisions (``table.release(tiers=...)``), the finest of these tiers
        counts, and nothing if it has none of them. All other releases count in full, since anybody
        may see them. It holds for what these readers see if no release that they see was chosen in
        view of a finer tier: if researchers pick the next public table after a look at theirs, what
        they picked says something of it.

        Parameters
        ----------
        *tiers : str
            Names of tiers; none of them for readers who have seen no table with tiers.

        Returns
        -------
        float
            The sum of the pure losses, rounded up; with groups, that of the group that lost most.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import accounting, tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> budget = accounting.Budget(epsilon=2)
        >>> tiers = table.release(tiers={"public": "1/8", "researchers": 1}, budget=budget)
        >>> noisy = table.release(epsilon="0.25", budget=budget)
        >>> budget.epsilon_spent, budget.epsilon_of("public"), budget.epsilon_of("researchers")
        (1.25, 0.375, 1.25)

        """
        spent = self._store.spent()
        entries = spent.histories(self._groups)
        # Of the whole budget: a group may have no release with the tiers of others.
        known = {name for each in spent.bookings(None) for name, _ in each.tiers}
        for name in tiers:
            if not isinstance(name, str) or name not in known:
                booked = f"names of tiers that were booked, such as {parameters.shown([*known])}"
                wanted = booked if known else "no names before a table with tiers is booked"
                raise ValueError(parameters.refusal("tier", name, wanted))
        return decimals.least(
            max(sum((x.booking._loss_of(tiers) for x in one), Fraction(0)) for one in entries)
        )

    @property
    def rho_spent(self) -> float:
        """The rho of all releases so far, rounded up; 0 for a budget without `rho`."""
        return decimals.least(self._store.spent().total(self._groups)) if self._by_rho else 0.0

    def epsilon_at(self, delta: Real, *, of: Literal["spent", "all"] = "spent") -> float:
        """Return an epsilon such that the releases are (epsilon, delta)-private together.

        Parameters
        ----------
        delta : number
            From 0 to 1.
        of : {"spent", "all"}
            The releases so far, or any releases that the budget allows. At a positive delta, only
            "all" is valid if losses are chosen after seeing earlier outputs.

        Returns
        -------
        float
            The greatest epsilon of any individual, rounded up. It comes from :func:`compose` or,
            with `rho`, from the conversion of zCDP (Canonne, Kamath and Steinke 2020, proposition
            12), or is the sum of the losses if that is less.

        Examples
        --------
        >>> from geomdp import accounting
        >>> budget = accounting.Budget(rho=0.5)
        >>> for _ in range(100):
        ...     budget.book("0.05")
        >>> round(budget.rho_spent, 4), round(budget.epsilon_at(1e-6), 2)
        (0.125, 2.42)
        >>> round(budget.epsilon_at(1e-6, of="all"), 2)
        5.22

        """
        level = delta_of(delta)
        if of not in ("spent", "all"):
            raise ValueError(parameters.refusal("of", of, "'spent' or 'all'"))
        spent = self._store.spent()
        if of == "all":
            whole = Fraction(self._limit)
            if self._by_rho:
                return _of_rho(whole, math.inf, level)
            planned = Counter([whole]) if self._plan is None else self._plan.losses
            return composition.epsilon(planned, level)
        if not level and not self._by_rho:
            return decimals.least(spent.total(self._groups))
        return max(self._of_one(each, level) for each in spent.histories(self._groups))

    def _of_one(self, entries: list[Entry], delta: Fraction) -> float:
        """Return the epsilon of an individual who is in all of these releases."""
        if self._by_rho:
            rho = sum((each.booking.cost for each in entries), Fraction(0))
            total = sum((each.booking.loss for each in entries), Fraction(0))
            return _of_rho(rho, decimals.least(total), delta)
        costs: Counter[Fraction] = Counter()
        for each in entries:
            costs.update(each.costs)
        return composition.epsilon(costs, delta)

    def __repr__(self) -> str:
        of = "" if self._groups is None else f" for {parameters.shown(self._groups)}"
        limit = parameters.text(self._limit)
        if self._by_rho:
            return f"<Budget{of}: rho {self.rho_spent} of {limit} spent>"
        delta = f", delta={parameters.text(self._delta)}" if self._delta else ""
        return f"<Budget{of}: {self.epsilon_spent} of {limit} spent{delta}>"

    def _repr_html_(self) -> str:
        rows: dict[str, float] = {}
        for n, each in enumerate(self.history, 1):
            named = "" if each.groups is None else f" ({parameters.shown(each.groups)})"
            rows[f"{n}. {each.label or ''}{named}"] = decimals.least(each.loss)
        return notebook.table(repr(self)[1:-1], rows)


def as_budget(value: Any) -> Budget:
    """Return the value if it is a budget, and raise otherwise."""
    if not isinstance(value, Budget):
        raise TypeError(parameters.foreign("budget", value, "a Budget"))
    return value


def _of_rho(rho: Fraction, total: float, delta: Fraction) -> float:
    """Return the epsilon of releases with this rho, and this sum of losses."""
    if not rho or delta == 1:
        return 0.0
    return min(total, composition.zcdp_epsilon(rho, delta) if delta else math.inf)


def _limit(name: str, value: Any) -> int | Fraction:
    return parameters.nonnegative_fraction(name, value)


def _counted(losses: Any) -> Counter[Fraction]:
    """Return planned losses, and how many releases have each."""
    return losses.losses if isinstance(losses, LossDistribution) else groups_of(losses)


def book_table(
    budget: Budget,
    whole: Fraction | float,
    losses: Counter[Any],
    label: str | None,
    ids: tuple[str, ...],
    *,
    protects: Protects,
    tiers: tuple[tuple[str, Fraction], ...] = (),
) -> None:
    """Book a release with the loss of the whole, which is at most the sum of those of its counts.

    A user's :meth:`Budget.book` takes that sum, and knows no ids of tables.
    """
    if budget._groups is not None and protects.neighbours == "change":
        raise ValueError(
            "a table with neighbours='change' is not accepted for a group: a change may move its "
            "individual to another group. Give the budget of all groups, or count with "
            "neighbours='add-remove'"
        )
    budget._book(whole, losses, label, ids, tiers=tiers, protects=protects)


def ledger_of(budget: Budget) -> str | None:
    """Return the id of the ledger of a budget; None for one in memory."""
    store = budget._store
    return store.identity().id if isinstance(store, Ledger) else None


def paid(budget: Budget, ids: tuple[str, ...]) -> bool:
    """Return whether a budget has booked the release of these ids."""
    return any(each.booking.ids == ids for each in budget._store.settled().entries)
