"""The geometric mechanism: its public parameters, its release, its privacy map, its certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from geomdp import certificate
from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Bounds, Integer, Real, Typed
from geomdp._ground.uncopied import hide, public
from geomdp._inputs import arrays, columns, labels
from geomdp._inputs.arrays import Array
from geomdp._inputs.columns import REFUSE, Nulls
from geomdp._inputs.progress import Progress, Report, reported
from geomdp._kernel import core
from geomdp._noise import Noise, as_counts, limits, prepared

if TYPE_CHECKING:
    from geomdp.tiers import TierPlan, Tiers

__all__ = ["GeometricMechanism"]

# Pickles name a public module.
Typed.__module__ = __name__

_Integer = TypeVar("_Integer", bound=np.integer[Any])


class _HasStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Column = TypeVar("Column", bound=_HasStream)
_Key = TypeVar("_Key")


@notebook.showable
class GeometricMechanism(Noise):
    """Add discrete Laplace (two-sided geometric) noise to counts, with pure epsilon-DP.

    ``release(x)`` returns ``clamp(clamp(x) + Z)`` in constant time, where ``Z`` is z with
    probability ``(1 - a)/(1 + a) * a**abs(z)`` and ``a = exp(-epsilon / sensitivity)`` (*Geometric
    Mechanism Notes*, equation 2.1 and algorithm 2; Ghosh, Roughgarden and Sundararajan 2012). It
    clamps to ``bounds`` or, without bounds, to the limits of the signed dtype of the counts.
    Unsigned counts need bounds (``docs/bounds.md``).

    Every draw is fresh. A mechanism consists of public parameters and has no generator, so any
    number of threads and processes may share it.

    Parameters
    ----------
    epsilon : number
        The privacy loss for inputs at distance ``sensitivity``; positive. A float means the decimal
        that its text states, and so does text such as "0.1"; a Fraction is exact. The noise is made
        for the lesser of a decimal and its nearest float, so the loss is at most either of them
        (``docs/proofs.md``, lemma 2a).
    sensitivity : int
        The most by which neighbouring data can differ in a count, or in all counts together (L1).
    bounds : (int, int) or None
        The least and the greatest output, both public. Counts outside the bounds are clamped
        without an error, since an error would reveal them.

    Raises
    ------
    ValueError
        If the scale is too large to be certified for the range.
    OverflowError
        If no integer dtype holds both bounds, or a parameter has more than 14,000 bits.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> mechanism = GeometricMechanism(epsilon=1, bounds=(0, 100))
    >>> mechanism.release(40) in range(101)
    True
    >>> mechanism.privacy_loss()
    1.0

    """

    __slots__ = ("_scale",)

    def __init__(
        self,
        epsilon: Real | Typed,
        sensitivity: Integer = 1,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(epsilon, sensitivity, bounds)
        self._scale: float | Fraction | None = None

    @classmethod
    def from_scale(cls, scale: Real, bounds: Bounds | None = None) -> Self:
        """Return the mechanism with noise scale `scale` (``1 / rate``) and sensitivity 1.

        Scale 0 adds no noise: counts are only clamped, and the privacy loss is infinite.

        Parameters
        ----------
        scale : number
            The scale; not negative. The noise is made for the greater of a decimal and its nearest
            float.
        bounds : (int, int) or None
            As in :class:`geomdp.GeometricMechanism`.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> GeometricMechanism.from_scale(2).privacy_loss()
        0.5

        """
        self = cls.__new__(cls)
        self._sensitivity = 1
        stated = parameters.nonnegative_number("scale", scale)
        self._scale = parameters.as_typed(scale, stated)
        self._bounds = parameters.interval(bounds)
        self._stated = self._rate = None
        if stated:
            self._stated = 1 / Fraction(stated)
            self._rate = 1 / parameters.greater("scale", scale)
        self._epsilon = math.inf if self._stated is None else self._stated
        self._core = prepared(self._rate, self._bounds)
        return self

    @property
    def scale(self) -> float | Fraction:
        """``sensitivity / epsilon``: as given, or an exact Fraction."""
        return super().scale if self._scale is None else self._scale

    def certificate(
        self, dtype: DTypeLike | None = None, *, tight: bool = False
    ) -> certificate.Certificate:
        """Return the exact data and inequalities that prove the sampled distribution private.

        Parameters
        ----------
        dtype : dtype, optional
            Integer dtype of the counts; int64 by default. With bounds, all dtypes that hold the
            bounds have the same certificate.
        tight : bool
            Whether to compute the exact privacy loss of the sampled distribution, over all
            neighbours and outputs. The range must be at most 100,000; the time is proportional to
            it.

        Raises
        ------
        ValueError
            If the dtype is unsigned and there are no bounds, or `tight` is True for a larger range.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> proof = GeometricMechanism(epsilon=0.5, bounds=(0, 4526)).certificate(tight=True)
        >>> proof.holds, proof.tight_epsilon <= 0.5, proof.total_variation < 1e-15
        (True, True, True)

        """
        if dtype is None:
            dtype = arrays.dtype_for(self._bounds)
        parameters.check_bool("tight", tight)
        code = arrays.code(arrays.integer_dtype(dtype))
        return certificate.from_fields(self._core.certificate(code, tight), self._sensitivity)

    _errors = certificate

    @overload
    def release(self, counts: int, *, out: None = None, threads: int | None = None) -> int: ...
    @overload
    def release(
        self, counts: _Integer, *, out: None = None, threads: int | None = None
    ) -> _Integer: ...
    @overload
    def release(
        self,
        counts: NDArray[_Integer],
        *,
        out: NDArray[_Integer] | None = None,
        threads: int | None = None,
        progress: Progress = False,
    ) -> NDArray[_Integer]: ...
    @overload
    def release(
        self, counts: int, *, out: NDArray[np.int64], threads: int | None = None
    ) -> NDArray[np.int64]: ...
    @overload
    def release(
        self, counts: _Integer, *, out: NDArray[_Integer], threads: int | None = None
    ) -> NDArray[_Integer]: ...
    @overload
    def release(
        self,
        counts: Sequence[int] | list[Any] | tuple[Any, ...],
        *,
        out: NDArray[np.int64] | None = None,
        threads: int | None = None,
        progress: Progress = False,
    ) -> NDArray[np.int64]: ...

    @overload
    def release(
        self,
        counts: Column,
        *,
        nulls: Nulls = "refuse",
        threads: int | None = None,
        progress: Progress = False,
    ) -> Column: ...
    @overload
    def release(
        self, counts: Mapping[_Key, Integer], *, threads: int | None = None
    ) -> dict[_Key, int]: ...

    def release(
        self,
        counts: Any,
        *,
        out: Any = None,
        nulls: Nulls = REFUSE,
        threads: Integer | None = None,
        progress: Progress = False,
    ) -> Any:
        """Return noisy counts.

        Parameters
        ----------
        counts : int, numpy integer, array or sequence of ints
            The counts, of any integer dtype of 8 to 64 bits, shape, strides and byte order. Ints
            and sequences of ints become int64, and values outside the bounds are clamped. Columns
            are accepted as well: a Series of pandas (with numpy, pandas or Arrow types) or Polars,
            an Array or ChunkedArray of PyArrow, any other Series that narwhals reads, a pandas
            Index, or a mapping such as a Counter. Their keys, order, index and name are released as
            they are, so take these from public knowledge, not from the data.
        out : array, optional
            The array to write the noisy counts to, with the dtype and shape of the counts; it may
            be `counts` itself. A release that is interrupted leaves no noise there.
        nulls : {"refuse", "keep"}
            What to do about nulls in a column. "keep" leaves them in place and adds noise to the
            other counts. The output then shows, without any noise, which counts are null, so this
            must be public or depend on no individual. Counts that the library still holds in memory
            behind nulls are neither read nor returned.
        threads : int, optional
            The greatest number of threads for a large array; by default, where that is faster, the
            number of processors available to this process. The distribution does not depend on it.
        progress : bool or callable
            How to report progress through a large array: a function that is called now and then
            with the number of counts done since the last call, such as ``bar.update`` of tqdm, or
            True for a bar of tqdm. An exception that it raises ends the release, as Ctrl-C does.

        Returns
        -------
        int, numpy integer or array
            The noisy counts, with the type, dtype and shape of the counts, or a dict for a mapping.
            Each count gets independent noise. A column keeps its library, type, name, index and
            chunks, but has memory of its own, in which null slots hold zeros, or noise added to
            zeros; pandas' ``attrs`` are left out.

        Raises
        ------
        ValueError
            If there are no bounds and the counts are unsigned, or the scale is too large to be
            certified for the whole dtype (``docs/bounds.md``), or if a column has nulls and they
            are refused.
        ImportError
            If narwhals is not installed and the column needs it, like pandas' nullable types.
        OverflowError
            If an int does not fit int64, or the bounds do not fit the dtype of the counts.
        KeyboardInterrupt
            On Ctrl-C, with `out` unchanged, or with 0 in place of each noisy count that had been
            written to it, so that no part of a release passes for the whole.

        Examples
        --------
        >>> import numpy as np
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 255))
        >>> noisy = mechanism.release(np.array([[12, 7], [0, 90]], np.uint8))
        >>> noisy.dtype, noisy.shape
        (dtype('uint8'), (2, 2))
        >>> list(mechanism.release({"yes": 12, "no": 7}))
        ['yes', 'no']

        """
        try:  # As `unseen` would, which takes an eighth of the time of one count.
            if progress is False:
                if threads is None and nulls is REFUSE and type(counts) is np.ndarray:
                    # The checks of other arguments take as long as a small draw.
                    return arrays.release(counts, out, self._draw)
                return self._noisy(counts, out, nulls, threads)
            return reported(progress, counts, 1, partial(self._noisy, counts, out, nulls, threads))
        except BaseException as error:
            del self, counts, out, nulls, threads, progress
            hide(error)
            raise

    def _draw(self, counts: Array, out: Array) -> None:
        """Write noisy counts."""
        self._core.release_into(counts, out, None, 0)

    def _noisy(
        self,
        counts: Any,
        out: Any,
        nulls: Nulls,
        threads: Integer | None,
        report: Report = None,
    ) -> Any:
        """Return noisy counts: :meth:`release`."""
        thread_limit = parameters.threads(threads)
        if nulls is not REFUSE:  # The default, which a small call need not check.
            columns.check_nulls(nulls)
        if out is None and parameters.is_integer(counts):
            if isinstance(counts, np.integer):
                noisy = self._core.release_scalar(int(counts), arrays.code(counts.dtype))
                return type(counts)(noisy)
            try:
                return self._core.release_scalar(counts, "i8")
            except OverflowError:
                # Either the int is too large, or the bounds are.
                if arrays.fits(counts):
                    raise
                raise arrays.beyond("counts") from None

        def noise(source: Array, target: Array) -> None:
            self._core.release_into(source, target, report, thread_limit)

        return _with_noise(noise, counts, out, nulls)

    def tier_plans(self, epsilons: Sequence[Real | Typed]) -> tuple[TierPlan, ...]:
        """Return the plan of each tier of :meth:`tiers`: its accuracy and certificate.

        Parameters
        ----------
        epsilons : sequence of numbers
            The epsilons of the coarser tiers, increasing, and all below this mechanism's epsilon.

        Returns
        -------
        tuple of :class:`geomdp.tiers.TierPlan`
            The coarsest first, and that of this mechanism's epsilon last.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> public, own = GeometricMechanism(epsilon=1, bounds=(0, 1000)).tier_plans([0.1])
        >>> public.accuracy(alpha=0.05), own.accuracy(alpha=0.05), public.certificate().holds
        (30, 3, True)

        """
        from geomdp.tiers import TierPlan, increasing  # noqa: PLC0415 (no release needs it)

        if self._rate is None:
            given = f"scale = {self._scale} is not accepted for tiers"
            raise ValueError(f"{given}: give a scale above 0")
        found = increasing(epsilons, self._epsilon)
        return tuple(TierPlan(one, found, self._sensitivity, self._bounds) for one in found)

    def tiers(
        self, counts: Any, epsilons: Sequence[Real | Typed], *, threads: Integer | None = None
    ) -> Tiers:
        """Return noisy counts at this epsilon and at smaller ones, for the price of this one.

        Whoever sees some of the tiers learns no more than the largest of their epsilons allows:
        between counts at the distance ``sensitivity``, ``P[the tiers up to epsilon are in S]``
        changes by a factor of at most ``exp(epsilon)``. So a coarse table may be public while some
        readers get a finer one of the same counts, or a coarse one may be published first and a
        finer one later.

        Each tier is made from the next finer one: a noisy count stays as it is with a certain
        probability, and otherwise gets more noise (``docs/proofs.md``, section 20). One call makes
        all tiers. To make a second coarse array from the same fine one would cost more privacy, as
        would keeping the noise and adding it to revised counts.

        Parameters
        ----------
        counts : array or sequence of ints
            Any integer dtype of 8 to 64 bits, and any shape. Counts outside the bounds are clamped.
        epsilons : sequence of numbers
            The epsilons of the coarser tiers, for the same sensitivity: at most 7, increasing, and
            all below this mechanism's epsilon.
        threads : int, optional
            As in :meth:`release`.

        Returns
        -------
        Tiers
            An array for each epsilon, with the shape of the counts and their dtype in native byte
            order.

        Raises
        ------
        ValueError
            If the epsilons do not increase, reach that of the mechanism, or are too close together
            or too small to be certified, or if the counts are unsigned and there are no bounds.
        OverflowError
            If an int does not fit int64, or the bounds do not fit the dtype of the counts.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=1, bounds=(0, 1000))
        >>> tiers = mechanism.tiers([120, 40, 7], [0.1])
        >>> public, researchers = tiers[0.1], tiers[1]
        >>> public.shape, researchers.dtype
        ((3,), dtype('int64'))

        """
        from geomdp import tiers  # noqa: PLC0415 (no other release needs it)

        plans = self.tier_plans(epsilons)
        thread_limit = parameters.threads(threads)
        given = as_counts(self, counts)
        own = tiers.draws_of(plans[0], limits(self, given.dtype))
        native = np.dtype(given.dtype.newbyteorder("="))
        noisy = [np.empty(given.shape, native) for _ in plans]
        if given.size:
            flat = np.require(given, native, ["C", "A"]).view(native).reshape(-1)
            # The core draws the finest tier first.
            own.release_into(flat, [each.reshape(-1) for each in reversed(noisy)], thread_limit)
        return tiers.Tiers(plans, tuple(noisy))

    def top(
        self,
        counts: Any,
        k: Integer = 1,
        *,
        threads: Integer | None = None,
        progress: Progress = False,
    ) -> NDArray[np.int64]:
        """Return the places of the k largest noisy counts, the largest first, and no counts.

        The places are drawn one after the other, with fresh noise. Each is, among the places that
        are left, the first with the greatest sum of count and noise. The noise is G with
        probability ``(1 - a) * a**G``, and no sum is clamped (``docs/proofs.md``, section 19).

        The privacy loss does not depend on the number of counts that an individual changes. If an
        individual changes all of them in one direction, each by at most D, the loss is
        ``privacy_loss(distance=k * D)``. If an individual may raise some and lower others, the loss
        is twice that.

        Parameters
        ----------
        counts : array or sequence of ints
            The counts, in one dimension and of any integer dtype of 8 to 64 bits. Counts outside
            the bounds are clamped, as are, without bounds or with bounds wider than ``2**62``,
            those beyond the ``2**62`` values nearest to 0. Unsigned counts need no bounds.
        k : int
            How many places to return, from 1 to the number of counts.
        threads, progress
            As in :meth:`release`. Each place takes a pass through all counts.

        Returns
        -------
        array of int64
            k different places, from 0 on.

        Raises
        ------
        ValueError
            If `counts` does not have exactly one dimension, `k` exceeds the number of counts, or
            the scale is above ``2**53``.
        OverflowError
            If an int does not fit int64, or the bounds do not fit the dtype of the counts.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> mechanism = GeometricMechanism(epsilon=0.5)
        >>> mechanism.top([120, 3, 950, 410], k=2)
        array([2, 3])
        >>> mechanism.privacy_loss(distance=2)
        1.0

        """
        thread_limit = parameters.threads(threads)
        [bare], _ = labels.detach(counts=counts)
        array = arrays.in_one_dimension(as_counts(self, bare))
        number = parameters.at_least("k", k, 1)
        if number > array.size:
            raise ValueError(
                f"k = {k} is not accepted: give at most {array.size}, the number of counts"
            )
        found = reported(
            progress,
            array,
            number,
            lambda report: self._core.top(array, number, report, thread_limit),
        )
        return np.array(found, np.int64)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self._scale is not None:
            return type(self).from_scale, (self._scale, self._bounds)
        return type(self), (self._epsilon, self._sensitivity, self._bounds)

    def __repr__(self) -> str:
        name = type(self).__name__
        bounds = "" if self._bounds is None else f", bounds={self._bounds}"
        if self._scale is not None:
            return f"{name}.from_scale({self._scale!r}{bounds})"
        return f"{name}(epsilon={self.epsilon!r}, sensitivity={self._sensitivity}{bounds})"


def as_mechanism(value: object, wanted: str = "a GeometricMechanism") -> GeometricMechanism:
    """Return the value if it is a mechanism, and raise otherwise."""
    if not isinstance(value, GeometricMechanism):
        # Do not show the value: it may be counts, given in the wrong place.
        kind = type(value).__name__
        raise TypeError(f"mechanism has type {kind}: give {wanted}")
    return value


def _with_noise(noise: arrays.Noise, counts: Any, out: Any, nulls: Nulls) -> Any:
    """Return counts to which `noise` was added, of any type that a release takes."""
    if out is None and type(counts) is not np.ndarray:
        of_array = partial(arrays.release, out=None, noise=noise)
        if labels.is_mapping_or_index(counts):
            [values], back = labels.detach(counts=counts)
            return back(of_array(values))
        if columns.is_column(counts):
            return columns.noisy(of_array, "counts", counts, nulls)
    return arrays.release(counts, out, noise)


def rehearse(mechanism: GeometricMechanism, counts: Any) -> None:
    """Raise now each error of a release of these counts; draw nothing."""

    def noise(source: Array, _: Array) -> None:
        mechanism._noisy(np.empty(0, source.dtype), None, REFUSE, None)

    _with_noise(noise, counts, None, REFUSE)


def check_dtype(mechanism: GeometricMechanism, dtype: DTypeLike) -> None:
    """Raise now each error of a release of this dtype that depends on no count."""
    mechanism.release(np.empty(0, dtype))


def top_among(
    mechanism: GeometricMechanism,
    occupied: tuple[NDArray[np.int64], NDArray[np.int64]],
    size: int,
    k: int,
    threads: int | None,
) -> NDArray[np.int64]:
    """Return the places of the k largest of `size` noisy counts: :meth:`GeometricMechanism.top`.

    `occupied` are some places, in order, and their counts; all other counts are 0.
    """
    places, counts = occupied
    limit = parameters.threads(threads)
    found = mechanism._core.top_among(
        np.ascontiguousarray(places, np.uint64), np.ascontiguousarray(counts), size, k, limit
    )
    return np.array(found, np.int64)


def core_of(mechanism: GeometricMechanism) -> core.Mechanism:
    """Return the mechanism of the Rust core, which draws."""
    return mechanism._core


def saturating(scale: Any, bounds: Any, dtype: np.dtype[Any]) -> GeometricMechanism:
    """Return the mechanism for counts of a dtype; without bounds, outputs saturate at its limits.

    Parameters that would only be refused at the first release are refused here.
    """
    bounds = arrays.limits(dtype) if bounds is None else bounds
    mechanism = GeometricMechanism.from_scale(scale, bounds)
    check_dtype(mechanism, dtype)
    return mechanism


public(__name__)
