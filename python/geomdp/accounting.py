"""The total privacy loss of many releases, exactly, rounded up.

A release of privacy loss l is at worst randomised response, and a release of this package at
distance 1 is no better. So the joint privacy loss of many releases is a finite sum (Kairouz, Oh and
Viswanath 2015, theorem 3.3; Murtagh and Vadhan 2016), and the bounds here are the least that hold
for every choice of releases (``docs/proofs.md``, section 14).

>>> from geomdp.accounting import compose
>>> compose({0.1: 50})
5.000000000000001
>>> round(compose({0.1: 50}, delta=1e-6), 4)
3.1729

Each release may depend on the outputs of earlier ones, on other data too. Their *losses* may do so
only at delta 0; otherwise fix them in advance.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from threading import Lock
from typing import Any, TypeAlias

from geomdp._analysis import composition
from geomdp._release import parameters
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.parameters import Integer, Real
from geomdp._release.specification import checked

__all__ = ["Budget", "compose", "compose_delta", "rdp", "zcdp"]

_MOST = 10**9

#: Privacy losses, or how many releases have each loss.
Losses: TypeAlias = Iterable[Real] | Mapping[Any, Integer]


def compose(losses: Losses, delta: Real = 0) -> float:
    """Return the least epsilon such that the releases are (epsilon, delta)-private together.

    Parameters
    ----------
    losses : iterable of int, float or Fraction, or mapping of them to int
        The pure privacy loss of each release; or how many releases have each loss. Not negative,
        and taken exactly. Give ``mechanism.rate * d``, since ``mechanism.map(d)`` is rounded up.
    delta : int, float or Fraction
        From 0 to 1.

    Returns
    -------
    float
        Rounded up: the least float64 that is not below the exact value, if the losses are equal, or
        have few different sums. Otherwise an upper bound, never above the sum of the losses;
        ``docs/proofs.md``, section 14, says how close.

    Raises
    ------
    TypeError
        If the losses or delta are not numbers.
    ValueError
        If a number is out of its range, or there are more than 10**9 releases.

    Examples
    --------
    >>> compose([0.5, 0.25])
    0.75
    >>> round(compose({1: 10, 0.5: 20}, delta=1e-6), 4)
    19.6422

    """
    return _epsilon(_groups(losses), _probability(delta))


def compose_delta(losses: Losses, epsilon: Real) -> float:
    """Return the least delta such that the releases are (epsilon, delta)-private together.

    Parameters
    ----------
    losses
        As in :func:`compose`.
    epsilon : int, float or Fraction
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
    >>> round(compose_delta({0.1: 50}, 3), 9)
    2.971e-06

    """
    groups, most = _groups(losses), parameters.not_negative("epsilon", epsilon)
    if most >= composition.total(groups):
        return 0.0
    if composition.is_exact(groups):
        return composition.exact_delta(groups, most)
    return composition.Grid(groups).delta(-composition.up(-most))


def zcdp(loss: Real) -> float:
    """Return the least rho such that every release of this pure loss is rho-zCDP, rounded up.

    ``rho = loss * tanh(loss / 2)`` (Harrison and Manurangsi 2025), which is below ``loss**2 / 2``.
    Losses in zCDP add up, even if they depend on the outputs of earlier releases.

    Parameters
    ----------
    loss : int, float or Fraction
        Not negative.

    Raises
    ------
    TypeError, ValueError
        If the loss is not such a number.

    Examples
    --------
    >>> zcdp(1)
    0.4621171572600098

    """
    return rdp(loss, 1)


def rdp(loss: Real, order: Real) -> float:
    """Return the greatest Renyi divergence of a release of this pure loss, rounded up.

    ``log(cosh((order - 1/2) * loss) / cosh(loss / 2)) / (order - 1)``, that of randomised response
    (Mironov 2017, proposition 6).

    Parameters
    ----------
    loss : int, float or Fraction
        Not negative.
    order : int, float or Fraction
        At least 1. Order 1 is the Kullback-Leibler divergence; infinity gives the loss itself.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not such a number.

    Examples
    --------
    >>> rdp(1, 2)
    0.7353256640555192

    """
    exact = parameters.not_negative("loss", loss)
    level = parameters.in_range("order", order, "a number of at least 1", lambda x: x >= 1)
    if not exact or level == math.inf:
        return composition.up(exact)
    return composition.renyi(exact, Fraction(level))


class Budget:
    """A limit on the total privacy loss, which refuses releases that would exceed it.

    It may be used by any number of threads; it cannot be copied or pickled. It is bookkeeping, no
    security boundary: it knows of no release but those that it is told of, and code that has the
    data can pass it by.

    The total is that of :func:`compose`. If delta is not 0, fix the losses before the first
    release: the total is no bound for losses chosen in view of earlier outputs.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Not negative. Taken exactly: three times the float 0.1 is more than the float 0.3, but
        ``Fraction(1, 10)`` is exact.
    delta : int, float or Fraction
        From 0 to 1.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not such a number.

    Examples
    --------
    >>> budget = Budget(epsilon=1)
    >>> mechanism = GeometricMechanism(epsilon=0.75, bounds=(0, 100))
    >>> noisy = budget.release(mechanism, 40, label="visits")
    >>> budget.spent
    [('visits', 0.75)]
    >>> budget.release(mechanism, 50)
    Traceback (most recent call last):
        ...
    ValueError: this release would raise the privacy loss to 1.5, but the budget is 1

    """

    __slots__ = ("_delta", "_epsilon", "_groups", "_lock", "_spent")

    def __init__(self, epsilon: Real, delta: Real = 0) -> None:
        self._epsilon = parameters.number("epsilon", epsilon)
        self._delta = _probability(delta)
        self._groups: Counter[Fraction] = Counter()
        self._spent: list[tuple[str | None, float]] = []
        self._lock = Lock()

    def spend(
        self, mechanism: GeometricMechanism, d_in: Integer = 1, *, label: str | None = None
    ) -> None:
        """Record one release of a mechanism, or refuse it.

        Parameters
        ----------
        mechanism : GeometricMechanism
            Its privacy loss at `d_in` is spent.
        d_in : int
            The greatest distance of neighbouring inputs, L1 for an array. Not negative.
        label : str, optional
            A name for the table :attr:`spent`.

        Raises
        ------
        TypeError
            If an argument is of another type.
        ValueError
            If the release would exceed the budget, which is left as it was; or if `d_in` is
            negative.

        """
        shown = checked(mechanism).map(d_in)
        if label is not None and not isinstance(label, str):
            raise TypeError(parameters.foreign("label", label, "a str or None"))
        # Exact, while the map is rounded up. Scale 0 has an infinite rate.
        loss = mechanism.rate * int(d_in) if d_in else Fraction(0)
        with self._lock:
            total = math.inf
            if loss < math.inf:
                groups = self._groups + Counter([Fraction(loss)] if loss else [])
                total = _epsilon(groups, self._delta)
            if total > self._epsilon and (
                total == math.inf or composition.total(groups) > self._epsilon
            ):
                raise ValueError(
                    f"this release would raise the privacy loss to {total}, but the budget is "
                    f"{self._epsilon}"
                )
            self._groups = groups
            self._spent.append((label, shown))

    def release(
        self,
        mechanism: GeometricMechanism,
        counts: Any,
        *,
        d_in: Integer = 1,
        label: str | None = None,
    ) -> Any:
        """Return noisy counts, after :meth:`spend`.

        A refused release draws no noise. One that fails later keeps what was spent.

        Parameters
        ----------
        mechanism, d_in, label
            As in :meth:`spend`.
        counts
            As in :meth:`geomdp.GeometricMechanism.release`.

        Raises
        ------
        TypeError, ValueError, OverflowError, OSError
            As in :meth:`spend` and :meth:`geomdp.GeometricMechanism.release`.

        """
        self.spend(mechanism, d_in, label=label)
        return mechanism.release(counts)

    @property
    def spent(self) -> list[tuple[str | None, float]]:
        """The label and the privacy loss, rounded up, of each release so far."""
        with self._lock:
            return list(self._spent)

    @property
    def epsilon_spent(self) -> float:
        """The least epsilon, rounded up, of all releases so far at the budget's delta."""
        with self._lock:
            groups = self._groups
        return _epsilon(groups, self._delta)


def _groups(losses: Any) -> Counter[Fraction]:
    """Return the positive losses, and how many releases have each."""
    if not isinstance(losses, Iterable):
        raise TypeError(parameters.foreign("losses", losses, "several numbers, or a mapping"))
    groups: Counter[Fraction] = Counter()
    if isinstance(losses, Mapping):
        for loss, count in losses.items():
            exact = parameters.not_negative("loss", loss)
            groups[exact] += parameters.at_least(f"losses[{loss!r}]", count, 0)
    else:
        for place, loss in enumerate(losses):
            groups[parameters.not_negative(f"losses[{place}]", loss)] += 1
    if groups.total() > _MOST:
        raise ValueError(f"{groups.total()} releases are not accepted: give at most {_MOST}")
    del groups[Fraction(0)]
    return +groups


def _probability(delta: Any) -> Fraction:
    wanted = "a number from 0 to 1"
    return Fraction(parameters.in_range("delta", delta, wanted, lambda x: 0 <= x <= 1))


def _epsilon(groups: composition.Groups, delta: Fraction) -> float:
    total = composition.total(groups)
    if not total or delta == 1:
        return 0.0
    if not delta:
        return composition.up(total)
    if composition.is_exact(groups):
        return composition.exact_epsilon(groups, delta)
    return min(composition.up(total), composition.Grid(groups).epsilon(delta))
