"""The loss of releases in which an individual changes several cells."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from geomdp._ground import decimals, parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.notebook import many, short, showable
from geomdp._ground.parameters import Integer, Real
from geomdp._noise import exact_loss
from geomdp._numerics import composition
from geomdp.accounting._compose import MOST_RELEASES, delta_of, not_negative, zcdp_of
from geomdp.mechanism import GeometricMechanism, as_mechanism

#: The greatest ``linf * sqrt(cells)``: the time of a convolution grows with its square.
_WIDEST = 2**12


@showable
class LossDistribution:
    """The joint privacy loss of releases in which an individual changes several cells.

    :func:`loss_distribution` makes one. ``x + y`` is the loss of two together, and ``50 * x`` that
    of fifty such releases. As for :func:`compose`, fix the mechanisms and the changes before the
    first release.

    For example, fifty releases of a table in which an individual has one record in each of three
    cells:

    >>> from geomdp import GeometricMechanism, accounting
    >>> table = accounting.loss_distribution(GeometricMechanism(0.1), l0=3)
    >>> round((50 * table).epsilon_at(delta=1e-6), 2)
    6.07
    >>> round(accounting.compose({0.3: 50}, delta=1e-6), 2)
    11.07
    """

    __slots__ = ("_cells",)

    def __init__(self, cells: composition.Cells) -> None:
        for (_, linf), n in cells.items():
            most = MOST_RELEASES if linf <= 1 else min(MOST_RELEASES, _WIDEST**2 // linf**2)
            if n > most:
                wanted = f"at most {most} of them" if most else f"a linf of at most {_WIDEST}"
                raise ValueError(
                    f"linf = {linf} for {many(n, 'noisy count')} is not accepted: give {wanted}"
                )
        self._cells = cells

    def epsilon_at(self, delta: Real = 0) -> float:
        """Return an epsilon such that the releases are (epsilon, delta)-private together.

        Parameters
        ----------
        delta : number
            From 0 to 1.

        Returns
        -------
        float
            That of :func:`compose` for cells that change by 1. Otherwise an upper bound, close to
            the least value, that allows for the difference between ideal and sampled noise. It
            never exceeds :func:`compose` of the losses, and so never exceeds their sum.

        Examples
        --------
        >>> from geomdp import GeometricMechanism, accounting
        >>> (50 * accounting.loss_distribution(GeometricMechanism(0.1), l0=3)).epsilon_at()
        15.0

        """
        level, pure = delta_of(delta), self.losses
        if self._by_one() or not level or level == 1:
            return composition.epsilon(pure, level)
        return min(composition.Grid(self._cells).epsilon(level), composition.epsilon(pure, level))

    def delta_at(self, epsilon: Real) -> float:
        """Return a delta such that the releases are (epsilon, delta)-private together.

        Parameters
        ----------
        epsilon : number
            Not negative.

        Returns
        -------
        float
            That of :func:`compose_delta` for cells that change by 1, and otherwise an upper bound
            that never exceeds it.

        Examples
        --------
        >>> from geomdp import GeometricMechanism, accounting
        >>> table = accounting.loss_distribution(GeometricMechanism(0.1), l0=3)
        >>> (50 * table).delta_at(epsilon=15.1)
        0.0

        """
        pure, exact = self.losses, not_negative("epsilon", epsilon)
        if self._by_one() or exact >= composition.total(pure):
            return composition.delta(pure, exact)
        grid = composition.Grid(self._cells).delta(decimals.down(exact))
        return min(grid, composition.delta(pure, exact))

    def zcdp(self) -> float:
        """Return a rho such that the releases are rho-zCDP together, rounded up.

        It is the sum of the :func:`zcdp` of the cells, since their noise is independent. For
        several cells this is less than the :func:`zcdp` of the sum of their losses.

        >>> from geomdp import GeometricMechanism, accounting
        >>> table = accounting.loss_distribution(GeometricMechanism(0.1), l0=3)
        >>> round(table.zcdp(), 4), round(accounting.zcdp("0.3"), 4)
        (0.015, 0.0447)
        """
        return float(zcdp_of(self.losses))

    def to_dp_event(self) -> Any:
        """Return these releases as an event of the package ``dp_accounting``.

        Its noise parameters are the rates, rounded up to float64, so it is not more private than
        the releases are with ideal noise. For each cell that changes by more than 1, sampled noise
        adds up to ``2**-49`` to delta and ``2**-54 * rate`` to epsilon (``docs/proofs.md``, lemma
        14).

        An accountant adds its own rounding errors, in both directions: for 5000 cells its delta may
        be too small by 1e-13, that is by 11% at 1e-12. An event cannot carry an allowance for that.
        Below delta 1e-9 use :meth:`to_pld`, which has one, or :meth:`epsilon_at`, which is tighter.

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

        The result is pessimistic, since ``dp_accounting`` rounds each loss up to a multiple of the
        interval. To allow for the rounding errors of its convolution, and for those of sampled
        noise (:meth:`to_dp_event`), a delta of ``1e-12 + n * 2**-48`` is added for n cells, which
        is at least 100 times the errors of the convolution that we measured. Below that delta every
        epsilon is infinite; use :meth:`epsilon_at` there.

        Parameters
        ----------
        interval : float
            The step of losses; positive.

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
        slack, _ = composition.allowance(self._cells)
        lost = min(1.0, 1e-12 + math.ldexp(sum(self._cells.values()), -48))
        spare = pld.common.DifferentialPrivacyParameters(slack, lost)
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
        counts = "; ".join(
            f"{many(n, 'noisy count')} of rate {short(rate)}, changed by at most {linf}"
            for (rate, linf), n in self._cells.items()
        )
        return f"<LossDistribution: {counts}>"

    def _by_one(self) -> bool:
        """Return whether no cell changes by more than 1."""
        return all(linf == 1 for _, linf in self._cells)

    @property
    def losses(self) -> Counter[Fraction]:
        """The exact privacy losses of the noisy counts, and how many counts have each.

        >>> from geomdp import GeometricMechanism, accounting
        >>> accounting.loss_distribution(GeometricMechanism("0.1"), l0=3, linf=2).losses
        Counter({Fraction(1, 5): 3})
        """
        groups: Counter[Fraction] = Counter()
        for (rate, linf), n in self._cells.items():
            groups[rate * linf] += n
        return groups


def loss_distribution(
    mechanism: GeometricMechanism, *, l0: Integer = 1, linf: Integer = 1
) -> LossDistribution:
    """Return the distribution of the privacy loss of one release of a table.

    An individual changes at most l0 cells of the table, by at most linf each. A single number for
    the sensitivity, ``l0 * linf``, would hide that the noise of the cells is independent.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism of every cell, which must add noise.
    l0 : int
        The greatest number of cells that an individual changes; at least 1.
    linf : int
        The greatest change of a cell; at least 1. ``linf**2 * l0``, times the number of releases,
        must be at most ``2**24`` if linf is above 1.

    Examples
    --------
    >>> from geomdp import GeometricMechanism, accounting
    >>> table = accounting.loss_distribution(GeometricMechanism(0.1), l0=3, linf=4)
    >>> table.epsilon_at(), round((30 * table).epsilon_at(delta=1e-6), 2)
    (1.2, 21.76)

    """
    if as_mechanism(mechanism).rate == math.inf:
        raise ValueError("a mechanism without noise has no distribution of privacy losses")
    cells, change = parameters.at_least("l0", l0, 1), parameters.at_least("linf", linf, 1)
    return LossDistribution({(Fraction(exact_loss(mechanism, 1)), change): cells})
