"""The total privacy loss of many releases, exactly, rounded up.

A release of privacy loss l is at worst randomised response, and a release of this package at
distance 1 is no better. So the joint privacy loss of many releases is a finite sum (Kairouz, Oh and
Viswanath 2015, theorem 3.3; Murtagh and Vadhan 2016), and the bounds here are the least that hold
for every choice of releases (``docs/proofs.md``, section 14). Where an individual can change a cell
by more than 1, :func:`loss_distribution` gives less than randomised response does.

Each release may depend on the outputs of earlier ones, on other data too. Their *losses* may do so
only at delta 0; otherwise fix them in advance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from threading import RLock
from typing import Any, TypeAlias

from geomdp import _notebook
from geomdp._analysis import composition, decimals
from geomdp._extras import installed_by
from geomdp._inputs import parameters
from geomdp._inputs.parameters import Exact, Integer
from geomdp._uncopied import Uncopied
from geomdp.mechanism import GeometricMechanism, as_mechanism, exact_loss

__all__ = [
    "compose",
    "compose_delta",
    "split",
    "Budget",
    "loss_distribution",
    "LossDistribution",
    "zcdp",
    "rdp",
]

_MOST = 10**9
#: The greatest ``linf * sqrt(cells)``: the time of a convolution grows with its square.
_WIDEST = 2**12

#: Privacy losses, or how many releases have each loss.
Losses: TypeAlias = Iterable[Exact] | Mapping[Any, Integer]


def compose(losses: Losses, delta: Exact = 0) -> float:
    """Return the least epsilon such that the releases are (epsilon, delta)-private together.

    Parameters
    ----------
    losses : iterable of numbers, or mapping of them to int
        The pure privacy loss of each release; or how many releases have each loss. Not negative,
        and taken exactly. Give ``mechanism.rate * d``: ``mechanism.privacy_loss(d)`` is rounded up.
        All functions of this module take an int, float, Fraction, Decimal or string. The float 0.1
        is more than 1/10; ``Decimal("0.1")``, ``"0.1"`` and ``"1/10"`` are exact.
    delta : number
        From 0 to 1.

    Returns
    -------
    float
        Rounded up: the least float64 that is not below the exact value, if the losses are equal, or
        have few different sums. Otherwise an upper bound, never above the sum of the losses or the
        least epsilon that :func:`rdp` and :func:`zcdp` allow; ``docs/proofs.md``, section 14, says
        how close.

    Raises
    ------
    TypeError, ValueError
        If the losses or delta are not numbers or out of their range, or there are more than 10**9
        releases.

    Examples
    --------
    >>> from geomdp.accounting import compose
    >>> compose([0.5, 0.25])
    0.75
    >>> compose([0.1] * 10), compose(["0.1"] * 10)
    (1.0000000000000002, 1.0)
    >>> round(compose({1: 10, 0.5: 20}, delta=1e-6), 4)
    19.6422

    """
    return _epsilon(_groups(losses), _delta(delta))


def compose_delta(losses: Losses, epsilon: Exact) -> float:
    """Return the least delta such that the releases are (epsilon, delta)-private together.

    Parameters
    ----------
    losses
        As in :func:`compose`.
    epsilon : number
        Not negative.

    Returns
    -------
    float
        Rounded up, where :func:`compose` is exact; otherwise an upper bound. 0 if epsilon is the
        sum of the losses or more.

    Raises
    ------
    TypeError, ValueError
        As in :func:`compose`.

    Examples
    --------
    >>> from geomdp.accounting import compose_delta
    >>> round(compose_delta({0.1: 50}, 3), 9)
    2.971e-06

    """
    groups, most = _groups(losses), _not_negative("epsilon", epsilon)
    if most >= composition.total(groups):
        return 0.0
    if composition.is_exact(groups):
        return composition.exact_delta(groups, most)
    grid = composition.Grid(_cells(groups)).delta(decimals.down(most))
    return min(grid, composition.renyi_delta(groups, most))


def split(total: Exact, n: Integer, delta: Exact = 0) -> float:
    """Return the greatest privacy loss of each of n releases that stay within a total.

    Parameters
    ----------
    total : number
        The epsilon of all releases together; not negative.
    n : int
        The number of releases, at most 10**9.
    delta : number
        From 0 to below 1.

    Returns
    -------
    float
        At delta 0 the greatest float64 that is not above ``total / n``. Otherwise the greatest
        whose :func:`compose` is at most the total, unless that at delta 0 is greater. So it is
        never too large.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not such a number.

    Examples
    --------
    >>> from geomdp.accounting import split
    >>> split(1, 4), round(split(1, 50, delta=1e-6), 4)
    (0.25, 0.0344)

    """
    whole, releases = _not_negative("total", total), parameters.at_least("n", n, 1)
    if releases > _MOST:
        raise ValueError(parameters.refusal("n", releases, f"at most {_MOST}"))
    level = _delta(delta)
    if level == 1:
        raise ValueError(parameters.refusal("delta", delta, "a number from 0 to below 1"))
    low = decimals.down(whole / releases)

    def beyond(each: float) -> float:
        """Return how far the releases exceed the total; negative or 0 if they do not."""
        return _epsilon({Fraction(each): releases}, level) - decimals.down(whole)

    if not level or beyond(low) > 0:
        return low
    high = 2 * low or 1.0
    while beyond(high) <= 0:
        low, high = high, 2 * high
    return composition.last(beyond, low, high)


def zcdp(loss: Exact) -> float:
    """Return the least rho such that every release of this pure loss is rho-zCDP, rounded up.

    ``rho = loss * tanh(loss / 2)`` (Harrison and Manurangsi 2025), which is below ``loss**2 / 2``.
    Losses in zCDP add up, even if they depend on the outputs of earlier releases.

    Parameters
    ----------
    loss : number
        Not negative.

    Raises
    ------
    TypeError, ValueError
        If the loss is not a number, or negative.

    Examples
    --------
    >>> from geomdp.accounting import zcdp
    >>> zcdp(1)
    0.4621171572600098

    """
    return rdp(loss, 1)


def rdp(loss: Exact, order: Exact) -> float:
    """Return the greatest Renyi divergence of a release of this pure loss, rounded up.

    ``log(cosh((order - 1/2) * loss) / cosh(loss / 2)) / (order - 1)``, that of randomised response
    (Mironov 2017, proposition 6).

    Parameters
    ----------
    loss : number
        Not negative.
    order : number
        At least 1. Order 1 is the Kullback-Leibler divergence; infinity gives the loss itself.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number, or out of its range.

    Examples
    --------
    >>> from geomdp.accounting import rdp
    >>> rdp(1, 2)
    0.7353256640555192

    """
    exact = _not_negative("loss", loss)
    stated = parameters.exact("order", order)
    level = parameters.in_range("order", stated, "a number of at least 1", lambda x: x >= 1)
    if not exact or level == math.inf:
        return decimals.up(exact)
    return composition.renyi(exact, Fraction(level))


class LossDistribution:
    """The joint privacy loss of releases in which an individual changes several cells.

    :func:`loss_distribution` makes one. ``x + y`` is the loss of both together, and ``50 * x`` that
    of fifty such releases. Fix the mechanisms and the changes before the first release, as for
    :func:`compose`.

    Fifty releases of a table in which an individual has one record in each of three cells:

    >>> from geomdp import GeometricMechanism, accounting
    >>> table = accounting.loss_distribution(GeometricMechanism(0.1), l0=3)
    >>> round((50 * table).epsilon(delta=1e-6), 2)
    6.07
    >>> round(accounting.compose({0.3: 50}, delta=1e-6), 2)
    11.07
    """

    __slots__ = ("_cells",)

    def __init__(self, cells: composition.Cells) -> None:
        for (_, linf), n in cells.items():
            if (linf > 1 and linf**2 * n > _WIDEST**2) or n > _MOST:
                raise ValueError(
                    f"{n} cells that change by up to linf = {linf} are not accepted: give at most "
                    f"{_MOST if linf == 1 else _WIDEST**2 // linf**2} of them"
                )
        self._cells = cells

    def epsilon(self, delta: Exact = 0) -> float:
        """Return an epsilon such that the releases are (epsilon, delta)-private together.

        Parameters
        ----------
        delta : number
            From 0 to 1.

        Returns
        -------
        float
            As :func:`compose` for cells that change by 1. Otherwise an upper bound, close to the
            least value, that accounts for the difference between ideal and sampled noise. Never
            above :func:`compose` of the losses, and so never above their sum.

        Raises
        ------
        TypeError, ValueError
            If delta is not such a number.

        Examples
        --------
        >>> from geomdp import GeometricMechanism, accounting
        >>> (50 * accounting.loss_distribution(GeometricMechanism(0.1), l0=3)).epsilon()
        15.000000000000002

        """
        level, pure = _delta(delta), self._pure()
        if self._by_one() or not level or level == 1:
            return _epsilon(pure, level)
        return min(composition.Grid(self._cells).epsilon(level), _epsilon(pure, level))

    def delta(self, epsilon: Exact) -> float:
        """Return a delta such that the releases are (epsilon, delta)-private together.

        Parameters
        ----------
        epsilon : number
            Not negative.

        Returns
        -------
        float
            As :func:`compose_delta` for cells that change by 1; otherwise an upper bound, never
            above it.

        Raises
        ------
        TypeError, ValueError
            If epsilon is not such a number.

        Examples
        --------
        >>> from geomdp import GeometricMechanism, accounting
        >>> (50 * accounting.loss_distribution(GeometricMechanism(0.1), l0=3)).delta(epsilon=15.1)
        0.0

        """
        pure, most = self._pure(), _not_negative("epsilon", epsilon)
        if self._by_one() or most >= composition.total(pure):
            return compose_delta(pure, most)
        grid = composition.Grid(self._cells).delta(decimals.down(most))
        return min(grid, compose_delta(pure, most))

    def to_dp_event(self) -> Any:
        """Return these releases as an event of the package ``dp_accounting``.

        Its noise parameters are the rates, rounded up to float64, so it is not more private than
        the releases are with ideal noise. For each cell that changes by more than 1, sampled noise
        adds up to ``2**-49`` to delta and ``2**-54 * rate`` to epsilon (``docs/proofs.md``, lemma
        14).

        An accountant adds its own rounding errors, in both directions: for 5000 cells its delta may
        be too small by 1e-13, that is by 11% at 1e-12. An event cannot carry an allowance for that.
        Below delta 1e-9 use :meth:`to_pld`, which has one, or :meth:`epsilon`, which is tighter.

        Raises
        ------
        ImportError
            If ``dp_accounting`` is not installed (extra ``accounting``).

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> from geomdp.accounting import loss_distribution
        >>> (50 * loss_distribution(GeometricMechanism(0.1))).to_dp_event().events[0].count
        50

        """
        with installed_by("geomdp[accounting]"):
            from dp_accounting import dp_event  # type: ignore[import-untyped] # noqa: PLC0415
        return dp_event.ComposedDpEvent(
            [
                dp_event.SelfComposedDpEvent(
                    dp_event.DiscreteLaplaceDpEvent(decimals.up(rate), linf), n
                )
                for (rate, linf), n in self._cells.items()
            ]
        )

    def to_pld(self, interval: float = 1e-4) -> Any:
        """Return these releases as a privacy loss distribution of ``dp_accounting``.

        It is pessimistic: ``dp_accounting`` rounds each loss up to a multiple of the interval. Its
        convolution has rounding errors, and sampled noise adds those of :meth:`to_dp_event`. So
        this adds a delta of ``1e-12 + n * 2**-48`` for n cells, which is at least 100 times the
        errors of the convolution that we measured. Below that delta every epsilon is infinite; use
        :meth:`epsilon` there.

        Parameters
        ----------
        interval : float
            The step of losses; positive.

        Raises
        ------
        ImportError
            If ``dp_accounting`` is not installed (extra ``accounting``).

        Examples
        --------
        >>> from geomdp import GeometricMechanism, accounting
        >>> loss = (50 * accounting.loss_distribution(GeometricMechanism(0.1))).to_pld()
        >>> round(loss.get_epsilon_for_delta(1e-6), 2)
        3.17

        """
        with installed_by("geomdp[accounting]"):
            from dp_accounting import pld  # noqa: PLC0415
        library = pld.privacy_loss_distribution
        wide = sum(rate * n for (rate, linf), n in self._cells.items() if linf > 1)
        lost = min(1.0, 1e-12 + math.ldexp(sum(self._cells.values()), -48))
        spare = pld.common.DifferentialPrivacyParameters(math.ldexp(decimals.up(wide), -54), lost)
        whole = library.from_privacy_parameters(spare, value_discretization_interval=interval)
        for (rate, linf), n in self._cells.items():
            one = library.from_discrete_laplace_mechanism(
                decimals.up(rate), linf, value_discretization_interval=interval
            )
            whole = whole.compose(one.self_compose(n))
        return whole

    def __add__(self, other: object) -> LossDistribution:
        if not isinstance(other, LossDistribution):
            return NotImplemented
        return LossDistribution(Counter(self._cells) + Counter(other._cells))

    def __mul__(self, releases: Integer) -> LossDistribution:
        many = parameters.at_least("releases", releases, 1)
        return LossDistribution({cell: many * n for cell, n in self._cells.items()})

    __rmul__ = __mul__

    def __repr__(self) -> str:
        cells = ", ".join(
            f"{n} cells of rate {float(rate):g} changed by {linf}"
            for (rate, linf), n in self._cells.items()
        )
        return f"<LossDistribution: {cells}>"

    def _by_one(self) -> bool:
        """Return whether no cell changes by more than 1."""
        return all(linf == 1 for _, linf in self._cells)

    def _pure(self) -> Counter[Fraction]:
        groups: Counter[Fraction] = Counter()
        for (rate, linf), n in self._cells.items():
            groups[rate * linf] += n
        return groups


def loss_distribution(
    mechanism: GeometricMechanism, *, l0: Integer = 1, linf: Integer = 1
) -> LossDistribution:
    """Return the distribution of the privacy loss of one release of a table.

    An individual changes at most l0 cells of it by at most linf each. One number for the
    sensitivity, ``l0 * linf``, would hide that the noise of the cells is independent.

    Parameters
    ----------
    mechanism : GeometricMechanism
        With noise.
    l0 : int
        The greatest number of cells that an individual changes; at least 1.
    linf : int
        The greatest change of a cell; at least 1. ``linf**2 * l0``, times the number of releases,
        may be at most ``2**24`` if linf is above 1.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, a number is out of its range, or the mechanism has no
        noise.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accounting
    >>> table = accounting.loss_distribution(GeometricMechanism(0.1), l0=3, linf=4)
    >>> table.epsilon(), round((30 * table).epsilon(delta=1e-6), 2)
    (1.2000000000000002, 21.76)

    """
    if as_mechanism(mechanism).rate == math.inf:
        raise ValueError("a mechanism without noise has no distribution of privacy losses")
    cells, most = parameters.at_least("l0", l0, 1), parameters.at_least("linf", linf, 1)
    return LossDistribution({(Fraction(mechanism.rate), most): cells})


class Budget(Uncopied):
    """A limit on the total privacy loss, which refuses releases that would exceed it.

    It may be used by any number of threads; it cannot be copied or pickled. A signal handler may
    read it at any time. It is bookkeeping and no security boundary: it counts only the releases it
    is told of, and code with access to the data can bypass it.

    Parameters
    ----------
    epsilon : number
        Not negative. Taken exactly: three times the float 0.1 is more than the float 0.3, but
        ``"0.1"`` and ``Fraction(1, 10)`` are exact.
    delta : number
        From 0 to 1. With 0, the losses of the releases may depend on earlier outputs, and their sum
        is limited.
    losses : iterable of numbers, or mapping of them to int
        The losses of all releases, planned in advance, as for :func:`compose`. Needed if delta is
        not 0, since composition does not cover losses that are chosen in view of earlier outputs.
        Each release uses up the least planned loss that is enough for it. The order is free, and
        planned releases may be left out.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not such a number, delta is not 0 and there is no plan, or the plan
        exceeds epsilon.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accounting
    >>> budget = accounting.Budget(epsilon=1)
    >>> mechanism = GeometricMechanism(epsilon=0.75, bounds=(0, 100))
    >>> noisy = budget.release(mechanism, 40, label="visits")
    >>> budget.spent
    [('visits', 0.75)]
    >>> budget.release(mechanism, 50)
    Traceback (most recent call last):
        ...
    ValueError: this release would raise the privacy loss to 1.5, but the budget is 1
    >>> daily = accounting.Budget(epsilon=3.2, delta=1e-6, losses={0.1: 50})
    >>> noisy = daily.release(GeometricMechanism(0.1), [12, 7], label="Monday")

    """

    _uncopied = "each copy could be spent"
    __slots__ = ("_delta", "_epsilon", "_groups", "_lock", "_plan", "_spending", "_spent")

    def __init__(self, epsilon: Exact, delta: Exact = 0, losses: Losses | None = None) -> None:
        self._epsilon = parameters.number("epsilon", parameters.exact("epsilon", epsilon))
        self._delta = _delta(delta)
        self._groups: Counter[Fraction] = Counter()
        self._plan: Counter[Fraction] | None = None
        self._spent: list[tuple[str | None, float]] = []
        self._lock, self._spending = RLock(), False
        if losses is not None:
            self._plan = self._groups = self._within(_groups(losses), "the planned releases raise")
        elif self._delta:
            raise ValueError(
                f"delta = {delta} is not accepted without losses: give those of all releases"
            )

    def spend(
        self,
        mechanism: GeometricMechanism,
        d_in: Integer | None = None,
        *,
        label: str | None = None,
    ) -> None:
        """Record one release of a mechanism, or refuse it.

        Parameters
        ----------
        mechanism : GeometricMechanism
            Its privacy loss at `d_in` is spent.
        d_in : int, optional
            The greatest distance of neighbouring inputs, L1 for an array. Not negative; the
            sensitivity of the mechanism if not given.
        label : str, optional
            A name for the table :attr:`spent`.

        Raises
        ------
        TypeError, ValueError
            If a parameter has another type, `d_in` is negative, the release would exceed the
            budget, or no planned loss is left for it. The budget is then left as it was.
        RuntimeError
            If a signal handler calls it that interrupted another call in the same thread.

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

    def book(self, loss: Exact, *, label: str | None = None) -> None:
        """Record one release of this privacy loss, or refuse it, as :meth:`spend` does.

        Parameters
        ----------
        loss : number or str
            The privacy loss of the release, taken exactly. Not negative; it may be infinite.
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
        wanted = "a number of at least 0"
        exact = parameters.in_range(
            "loss", parameters.exact("loss", loss), wanted, lambda x: x >= 0
        )
        if label is not None and not isinstance(label, str):
            raise TypeError(parameters.foreign("label", label, "a str or None"))
        with self._lock:
            if self._spending:
                raise RuntimeError("a signal handler that interrupts a spend cannot spend")
            self._spending = True
            try:
                if exact:
                    self._take(exact if exact == math.inf else Fraction(exact))
                self._spent.append((label, decimals.up(exact)))
            finally:
                self._spending = False

    def _take(self, exact: float | Fraction) -> None:
        if self._plan is None:
            more = Counter([exact])
            self._groups = self._within(self._groups + more, "this release would raise")
            return
        enough = [planned for planned in self._plan if planned >= exact]
        if not enough:
            raise ValueError(
                f"no planned release of privacy loss {decimals.up(exact)} or more is left"
            )
        self._plan = self._plan - Counter([min(enough)])

    def _within(self, groups: Counter[Any], action: str) -> Counter[Any]:
        """Return the losses, unless they exceed the budget."""
        infinite = math.inf in groups
        total = math.inf if infinite else _epsilon(groups, self._delta)
        # Rounding up alone exceeds no budget.
        exact = math.inf if infinite else composition.total(groups)
        if total > self._epsilon and exact > self._epsilon:
            message = f"{action} the privacy loss to {total}, but the budget is {self._epsilon}"
            if not self._delta and exact <= self._epsilon * (1 + Fraction(1, 2**40)):
                message += (
                    ": floats are taken exactly, and the float 0.1 is more than 1/10; "
                    "Fraction(1, 10) is exact"
                )
            raise ValueError(message)
        return groups

    def release(
        self,
        mechanism: GeometricMechanism,
        counts: Any,
        *,
        d_in: Integer | None = None,
        label: str | None = None,
    ) -> Any:
        """Return noisy counts, after :meth:`spend`.

        A refused release draws no noise. One that fails later keeps what was spent. Parameters and
        errors are those of :meth:`spend` and :meth:`geomdp.GeometricMechanism.release`.

        >>> from geomdp import GeometricMechanism, accounting
        >>> budget = accounting.Budget(epsilon=1)
        >>> noisy = budget.release(GeometricMechanism(0.5), [12, 7])
        >>> noisy.shape, budget.epsilon_spent
        ((2,), 0.5)
        """
        self.spend(mechanism, d_in, label=label)
        return mechanism.release(counts)

    @property
    def spent(self) -> list[tuple[str | None, float]]:
        """The label and the privacy loss, rounded up, of each release so far."""
        # Read at once, without the lock, which an interrupted spend may hold.
        return list(self._spent)

    @property
    def epsilon_spent(self) -> float:
        """The privacy loss of all releases so far, rounded up; of all planned ones, with a plan."""
        return _epsilon(self._groups, self._delta)

    def __repr__(self) -> str:
        delta = f", delta={self._delta}" if self._delta else ""
        return f"<Budget: {self.epsilon_spent} of {self._epsilon} spent{delta}>"

    def _repr_html_(self) -> str:
        rows = {f"{n}. {label or ''}": loss for n, (label, loss) in enumerate(self.spent, 1)}
        return _notebook.table(repr(self)[1:-1], rows)


def _not_negative(name: str, value: Any) -> Fraction:
    return parameters.not_negative(name, parameters.exact(name, value))


def _delta(value: Any) -> Fraction:
    return parameters.probability("delta", parameters.exact("delta", value))


def _groups(losses: Any) -> Counter[Fraction]:
    """Return the positive losses, and how many releases have each."""
    if not isinstance(losses, Iterable) or isinstance(losses, str | bytes):
        raise TypeError(parameters.foreign("losses", losses, "several numbers, or a mapping"))
    groups: Counter[Fraction] = Counter()
    if isinstance(losses, Mapping):
        for loss, count in losses.items():
            exact = _not_negative("loss", loss)
            groups[exact] += parameters.at_least(f"losses[{loss!r}]", count, 0)
    else:
        for place, loss in enumerate(losses):
            groups[_not_negative(f"losses[{place}]", loss)] += 1
    if groups.total() > _MOST:
        raise ValueError(f"{groups.total()} releases are not accepted: give at most {_MOST}")
    del groups[Fraction(0)]
    return +groups


def _epsilon(groups: composition.Groups, delta: Fraction) -> float:
    total = composition.total(groups)
    if not total or delta == 1:
        return 0.0
    if not delta:
        return decimals.up(total)
    if composition.is_exact(groups):
        return composition.exact_epsilon(groups, delta)
    grid = composition.Grid(_cells(groups)).epsilon(delta)
    return min(decimals.up(total), grid, composition.renyi_epsilon(groups, delta))


def _cells(groups: composition.Groups) -> composition.Cells:
    return {(loss, 1): n for loss, n in groups.items()}
