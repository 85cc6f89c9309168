"""The noise of released counts as everyone knows it: its parameters, and the questions about it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike

from geomdp._ground import decimals, notebook, parameters
from geomdp._ground.parameters import Bounds, Integer, Loss, Real, Typed
from geomdp._inputs import arrays, labels
from geomdp._inputs.arrays import Array
from geomdp._kernel import core
from geomdp.certificate import Certificate


@lru_cache(maxsize=128)
def prepared(rate: Fraction | None, bounds: tuple[int, int] | None) -> core.Mechanism:
    """Return the plans of a rate; equal mechanisms share plans, which are slow to make."""
    for part in rate.as_integer_ratio() if rate is not None else ():
        parameters.printable("epsilon / sensitivity", part)
    if bounds and max(map(abs, bounds)) >= 2**127:
        # The core cannot compare such numbers.
        raise OverflowError(f"bounds = {bounds} are not accepted: give 64-bit integers")
    return core.Mechanism(None if rate is None else rate.as_integer_ratio(), bounds)


@notebook.showable
class Noise:
    """What a mechanism and the plan of a tier have in common. It answers, and draws nothing."""

    __slots__ = ("_bounds", "_core", "_epsilon", "_rate", "_sensitivity", "_stated")

    def __init__(self, epsilon: Real | Typed, sensitivity: Integer, bounds: Bounds | None) -> None:
        self._epsilon: Loss = parameters.loss("epsilon", epsilon)
        self._sensitivity = parameters.at_least("sensitivity", sensitivity, 1)
        self._bounds = parameters.interval(bounds)
        #: The loss at distance 1 that is stated, and the one that noise is made for.
        self._stated: Fraction | None
        self._rate: Fraction | None
        self._stated, self._rate = parameters.read(self._epsilon).part(
            Fraction(1, self._sensitivity)
        )
        self._core = prepared(self._rate, self._bounds)

    @property
    def scale(self) -> float | Fraction:
        """``1 / rate``, an exact Fraction."""
        return 1 / Fraction(self.rate)

    if TYPE_CHECKING:

        def certificate(self, dtype: DTypeLike | None = None) -> Any: ...

    def _errors(self, dtype: DTypeLike | None = None) -> Certificate:
        """Return a certificate whose numbers bound the errors of counts of a dtype."""
        raise NotImplementedError

    @property
    def epsilon(self) -> float | Fraction:
        """The privacy loss at distance ``sensitivity``, as given, or ``1 / scale``."""
        return parameters.plain(self._epsilon)

    @property
    def sensitivity(self) -> int:
        """The distance at which the privacy loss is ``epsilon``."""
        return self._sensitivity

    @property
    def rate(self) -> float | Fraction:
        """The exact rate of the noise, a Fraction; infinite for scale 0.

        It is ``epsilon / sensitivity``, for the lesser of a decimal and its nearest float.
        """
        return math.inf if self._rate is None else self._rate

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest output; None for the limits of each signed dtype."""
        return self._bounds

    def privacy_loss(self, distance: Integer | None = None) -> float:
        """Return the privacy loss for inputs at this distance, rounded up to a float.

        It is ``distance * epsilon / sensitivity``. The distance is absolute for one count, and L1
        for an array (*Privacy Proofs for OpenDP: Geometric Measurement*, theorem 1.1).

        Parameters
        ----------
        distance : int, optional
            Not negative; at most 14,000 bits. By default, the sensitivity.

        Returns
        -------
        float
            The decimal that its text states is never less than the exact value; 0 for distance 0,
            and infinity for scale 0 and any other distance.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=0.5, sensitivity=2)
        >>> mechanism.privacy_loss(), mechanism.privacy_loss(distance=6)
        (0.5, 1.5)
        >>> GeometricMechanism("0.3").privacy_loss(), GeometricMechanism(0.1).privacy_loss(3)
        (0.3, 0.3)

        """
        given = self._sensitivity if distance is None else distance
        return decimals.least(exact_loss(self, parameters.at_least("distance", given, 0)))

    @overload
    def accuracy(self, alpha: Real = 0.05, *, counts: int | None = None) -> int: ...
    @overload
    def accuracy(self, alpha: Real = 0.05, *, counts: Any) -> Any: ...
    def accuracy(self, alpha: Real = 0.05, *, counts: Any = None) -> Any:
        """Return the least a such that errors exceed a with probability at most `alpha`.

        Bounds censor the noise, so near a bound only one tail remains. The probability is an upper
        bound for that of the sampled distribution (``docs/proofs.md``, section 11). At levels below
        the mass of its floor, which is at most ``2**-52``, the accuracy is the width of the bounds.

        Parameters
        ----------
        alpha : number
            The significance level, from 0 to 1. At 0 the accuracy is the greatest possible error.
        counts : int, numpy integer, array or sequence of ints, optional
            True counts, within the bounds or the limits of their dtype. Ints and sequences of ints
            are taken as int64. A count outside the bounds has an error of at least its distance
            from them.

        Returns
        -------
        int or array of ints
            The accuracy at each of these true counts. Without counts, the worst case over all
            counts within the bounds, or within int64 if there are no bounds.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 4526))
        >>> mechanism.accuracy(alpha=0.05)
        6
        >>> mechanism.accuracy(alpha=0.05, counts=[0, 3, 40])
        array([5, 5, 6])

        """
        from geomdp._numerics import one_count  # noqa: PLC0415 (no release needs it)

        level = parameters.significance_or_zero("alpha", alpha)
        if counts is None:
            return one_count.worst_accuracy(self._errors(), level)
        [bare], labelled = labels.detach(counts=counts)
        array = as_counts(self, bare)
        ends = limits(self, array.dtype)
        found = one_count.accuracies(self._errors(array.dtype), ends, array, level)
        return int(found) if parameters.is_integer(bare) else labelled(found)

    def confidence_interval(
        self,
        released: Any,
        alpha: Real = 0.05,
        *,
        side: Literal["both", "lower", "upper"] = "both",
        dtype: DTypeLike | None = None,
    ) -> tuple[Any, Any]:
        """Return an interval that contains the true count with probability at least 1 - alpha.

        The interval is ``[released - a, released + a]``. If it is two-sided, a is the
        :meth:`accuracy` at level alpha; if it is one-sided, a is the least one with
        ``P[Z > a] <= alpha``, and the other end is open. An end that reaches a bound is open too,
        since a true count beyond the bound has the noise of that bound: it is the limit of the
        dtype or, if no bound is negative, 0 below. The probability is over the noise, for any true
        count of the dtype, which is not negative if no bound is, and for each interval on its own.

        A sum of noisy counts has more noise than a single noisy count, which this method cannot
        know. Use :func:`geomdp.accuracy.sum_confidence_interval` for totals, margins and
        differences, and :func:`geomdp.accuracy.ratio_confidence_interval` for rates and means.

        Parameters
        ----------
        released : int, numpy integer, array or sequence of ints
            Noisy counts of this mechanism.
        alpha : number
            The probability that the interval misses the true count: 0.05 for 95% confidence, and 0
            for all counts that are possible.
        side : {"both", "lower", "upper"}
            "lower" gives only a lower end, and "upper" only an upper one.
        dtype : integer dtype, optional
            The dtype of the release, if `released` has lost it, as lists do. Without bounds, a
            noisy count of 127 is at the limit of int8, for example, and ``.tolist()`` hides that.
            By default, ints and sequences of ints are taken as int64, or as uint64 if the bounds
            need it.

        Returns
        -------
        lower, upper : ints or arrays
            The ends, which the interval includes, with the type, shape and dtype of `released`, or
            with the given dtype.

        Raises
        ------
        ValueError
            If a released count is not within the bounds.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 100))
        >>> mechanism.confidence_interval([3, 40], alpha=0.05)
        (array([ 0, 34]), array([ 9, 46]))

        """
        from geomdp._numerics import one_count  # noqa: PLC0415 (no release needs it)

        level = parameters.significance_or_zero("alpha", alpha)
        parameters.check_one_of("side", side, ("both", "lower", "upper"))
        [bare], labelled = labels.detach(released=released)
        array, ends = as_released(self, bare, dtype)
        certified = self._errors(array.dtype)
        lower, upper = one_count.interval(certified, ends, array, level, side)
        if isinstance(bare, np.integer):
            return lower[()], upper[()]
        if parameters.is_integer(bare):
            return int(lower), int(upper)
        return labelled(lower), labelled(upper)

    def _key(self) -> Any:
        return self._stated, self._rate, self._sensitivity, self._bounds

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noise):
            return NotImplemented
        return bool(self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def _repr_html_(self) -> str:
        return notebook.table(
            f"{type(self).__name__}: discrete Laplace noise",
            {
                "epsilon": parameters.text(self.epsilon),
                "sensitivity": self.sensitivity,
                "noise scale": notebook.short(self.scale),
                "bounds": "the limits of the dtype" if self.bounds is None else self.bounds,
            },
        )


def as_noise(value: object, wanted: str = "a GeometricMechanism") -> Noise:
    """Return the value if it is a mechanism or the plan of a tier, and raise otherwise."""
    if not isinstance(value, Noise):
        # Do not show the value: it may be counts, given in the wrong place.
        kind = type(value).__name__
        raise TypeError(f"mechanism has type {kind}: give {wanted}")
    return value


def errors_of(noise: Noise, dtype: DTypeLike | None = None) -> Certificate:
    """Return a certificate whose numbers bound the errors of counts of a dtype."""
    return noise._errors(dtype)


def readings(mechanism: Noise) -> Typed:
    """Return the loss at distance 1 that is stated, and the one that noise is made for."""
    assert mechanism._stated is not None
    assert mechanism._rate is not None
    return Typed(mechanism._stated, mechanism._rate)


def exact_loss(mechanism: Noise, distance: int | Fraction) -> Fraction | float:
    """Return the exact privacy loss at a distance; infinite without noise, unless it is 0.

    Every caller that needs a loss adds up these exact losses, and rounds up once.
    """
    if not distance:
        return Fraction()
    return math.inf if mechanism._stated is None else mechanism._stated * distance


def limits(mechanism: Noise, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest output for counts of a dtype."""
    return mechanism._core.limits(arrays.code(dtype))


def as_counts(mechanism: Any, counts: Any) -> Array:
    """Return counts as an array; ints become int64, or uint64 if the bounds need it."""
    return arrays.as_array(counts, arrays.dtype_for(as_noise(mechanism).bounds))


def as_released(
    mechanism: Any, released: Any, dtype: DTypeLike | None
) -> tuple[Array, tuple[int, int]]:
    """Return noisy counts as they were released, and the least and greatest output."""
    array = as_counts(mechanism, released)
    kind = array.dtype if dtype is None else arrays.integer_dtype(dtype)
    least, greatest = limits(mechanism, kind)
    if array.size and not least <= int(array.min()) <= int(array.max()) <= greatest:
        # Noisy counts are public.
        raise ValueError(
            f"released counts outside the bounds {(least, greatest)} are not accepted: "
            "give counts that the mechanism released"
        )
    return array.astype(kind, copy=False), (least, greatest)
