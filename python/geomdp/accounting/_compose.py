"""The loss of many releases together, from the loss of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from geomdp._ground import decimals, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._numerics import composition

MOST_RELEASES = 10**9

#: Privacy losses, or how many releases have each loss.
Losses: TypeAlias = Iterable[Real] | Mapping[Any, Integer]


def compose(losses: Losses, delta: Real = 0) -> float:
    """Return the least epsilon such that the releases are (epsilon, delta)-private together.

    Parameters
    ----------
    losses : iterable of numbers, or mapping of them to int
        The pure privacy loss of each release, or how many releases have each loss; not negative,
        and taken exactly. All functions of this module take an int, float, Fraction, Decimal or
        string. A float means the decimal that its text states: 0.1 is ``"0.1"`` and ``"1/10"``.
    delta : number
        From 0 to 1.

    Returns
    -------
    float
        The least float that states no less than the exact value, if the losses are equal or have
        few different sums. Otherwise an upper bound, which never exceeds the sum of the losses or
        the least epsilon that :func:`rdp` and :func:`zcdp` allow; ``docs/proofs.md``, section 14,
        says how close it is.

    Examples
    --------
    >>> from geomdp.accounting import compose
    >>> compose([0.5, 0.25])
    0.75
    >>> compose([0.1] * 10), compose(["0.1"] * 10)
    (1.0, 1.0)
    >>> round(compose({1: 10, 0.5: 20}, delta=1e-6), 4)
    19.6422

    """
    return composition.epsilon(groups_of(losses), delta_of(delta))


def compose_delta(losses: Losses, epsilon: Real) -> float:
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
        The exact value, rounded up, where :func:`compose` is exact, and otherwise an upper bound. 0
        if epsilon is at least the sum of the losses.

    Examples
    --------
    >>> from geomdp.accounting import compose_delta
    >>> round(compose_delta({0.1: 50}, 3), 9)
    2.971e-06

    """
    return composition.delta(groups_of(losses), not_negative("epsilon", epsilon))


def split(total: Real, n: Integer, delta: Real = 0) -> float:
    """Return the greatest privacy loss of each of n releases that stay within a total.

    Parameters
    ----------
    total : number
        The epsilon of all releases together; not negative.
    n : int
        The number of releases, at most ``10**9``.
    delta : number
        From 0 to below 1.

    Returns
    -------
    float
        At delta 0, the greatest float that states no more than ``total / n``. Otherwise the
        greatest whose :func:`compose` is at most the total, or the one at delta 0 if that is
        greater. It is never too large.

    Examples
    --------
    >>> from geomdp.accounting import split
    >>> split(1, 4), round(split(1, 50, delta=1e-6), 4)
    (0.25, 0.0344)

    """
    whole, releases = not_negative("total", total), parameters.at_least("n", n, 1)
    if releases > MOST_RELEASES:
        raise ValueError(parameters.refusal("n", releases, f"at most {MOST_RELEASES}"))
    level = delta_of(delta)
    if level == 1:
        raise ValueError(parameters.refusal("delta", delta, "a number from 0 to below 1"))
    low = decimals.greatest(whole / releases)

    def beyond(each: float) -> float:
        """Return how far the releases exceed the total; negative or 0 if they do not."""
        losses = {parameters.decimal(each): releases}
        return composition.epsilon(losses, level) - decimals.greatest(whole)

    if not level or beyond(low) > 0:
        return low
    high = 2 * low or 1.0
    while beyond(high) <= 0:
        low, high = high, 2 * high
    return composition.last(beyond, low, high)


def zcdp(loss: Real) -> float:
    """Return the least rho such that every release of this pure loss is rho-zCDP, rounded up.

    ``rho = loss * tanh(loss / 2)`` (Harrison and Manurangsi 2025), which is below ``loss**2 / 2``.
    Losses in zCDP add up, even if they depend on the outputs of earlier releases.

    Parameters
    ----------
    loss : number
        Not negative.

    Examples
    --------
    >>> from geomdp.accounting import zcdp
    >>> zcdp(1)
    0.4621171572600098

    """
    return rdp(loss, 1)


def zcdp_of(groups: Mapping[Any, int]) -> Fraction | float:
    """Return the :func:`zcdp` of releases of these losses together, rounded up to a float."""
    rhos = [(n, math.inf if loss == math.inf else zcdp(loss)) for loss, n in groups.items()]
    if any(rho == math.inf for _, rho in rhos):
        return math.inf
    rho = decimals.least(sum((n * parameters.decimal(rho) for n, rho in rhos), Fraction(0)))
    return rho if rho == math.inf else parameters.decimal(rho)


def rdp(loss: Real, order: Real) -> float:
    """Return the greatest Renyi divergence of a release of this pure loss, rounded up.

    ``log(cosh((order - 1/2) * loss) / cosh(loss / 2)) / (order - 1)``, that of randomised response
    (Mironov 2017, proposition 6).

    Parameters
    ----------
    loss : number
        Not negative.
    order : number
        At least 1. Order 1 is the Kullback-Leibler divergence; infinity gives the loss itself.

    Examples
    --------
    >>> from geomdp.accounting import rdp
    >>> rdp(1, 2)
    0.7353256640555194

    """
    exact = not_negative("loss", loss)
    level = parameters.in_range("order", order, "a number of at least 1", lambda x: x >= 1)
    if not exact or level == math.inf:
        return decimals.least(exact)
    return composition.renyi(exact, Fraction(level))


def not_negative(name: str, value: Any) -> Fraction:
    return parameters.nonnegative_fraction(name, value)


def delta_of(value: Any) -> Fraction:
    return parameters.probability("delta", value)


def groups_of(losses: Any) -> Counter[Fraction]:
    """Return the positive losses, and how many releases have each."""
    if not parameters.has_items(losses):
        raise TypeError(parameters.foreign("losses", losses, "several numbers, or a mapping"))
    groups: Counter[Fraction] = Counter()
    if isinstance(losses, Mapping):
        for loss, count in losses.items():
            exact = not_negative("loss", loss)
            groups[exact] += parameters.at_least(f"losses[{loss!r}]", count, 0)
    else:
        for place, loss in enumerate(losses):
            groups[not_negative(f"losses[{place}]", loss)] += 1
    if groups.total() > MOST_RELEASES:
        raise ValueError(
            f"{groups.total()} releases are not accepted: give at most {MOST_RELEASES}"
        )
    del groups[Fraction(0)]
    return +groups
