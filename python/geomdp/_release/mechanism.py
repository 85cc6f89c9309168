"""The geometric mechanism."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from geomdp._release import arrays, columns, labels, parameters
from geomdp._release.arrays import Array
from geomdp._release.parameters import Integer, Real
from geomdp._release.specification import Specification

_Integer = TypeVar("_Integer", bound=np.integer[Any])


class _HasStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


_Column = TypeVar("_Column", bound=_HasStream)
_Key = TypeVar("_Key")


class GeometricMechanism(Specification):
    """Add two-sided geometric noise to counts, purely private, in constant time.

    ``release(x)`` returns ``clamp(clamp(x) + Z)``, where ``Z`` is z with probability
    ``(1 - a)/(1 + a) * a**abs(z)``, ``a = exp(-epsilon / sensitivity)`` (*Geometric
    Mechanism Notes*, equation 2.1 and algorithm 2; Ghosh, Roughgarden and Sundararajan 2012).
    Clamping is to ``bounds``, or to the limits of the signed dtype of the counts if none are given.
    Unsigned counts need bounds (``docs/bounds.md``).

    Every draw is fresh: the mechanism holds public parameters only, no generator, and may be used
    by any number of threads and processes.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Privacy loss for inputs at distance ``sensitivity``. Positive, and taken exactly: a float is
        the dyadic number that it is.
    sensitivity : int
        The greatest change of a count, or of all counts together (L1), between neighbours.
    bounds : (int, int) or None
        Least and greatest output, both public. Counts outside are clamped, silently.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If epsilon is not positive and finite, sensitivity is below 1, bounds are reversed, or the
        scale is too large to be certified for the range.
    OverflowError
        If no integer dtype holds both bounds, or a parameter has more than 14 000 bits.

    Examples
    --------
    >>> mechanism = GeometricMechanism(epsilon=1, bounds=(0, 100))
    >>> mechanism.release(40) in range(101)
    True
    >>> mechanism.map(1)
    1.0

    """

    __slots__ = ()

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
        counts: Sequence[Any],
        *,
        out: NDArray[np.int64] | None = None,
        threads: int | None = None,
    ) -> NDArray[np.int64]: ...

    @overload
    def release(self, counts: _Column, *, threads: int | None = None) -> _Column: ...
    @overload
    def release(
        self, counts: Mapping[_Key, Integer], *, threads: int | None = None
    ) -> dict[_Key, int]: ...

    def release(self, counts: Any, *, out: Any = None, threads: Integer | None = None) -> Any:
        """Return noisy counts.

        Parameters
        ----------
        counts : int, numpy integer, array or sequence of ints
            Of any of the eight integer dtypes from 8 to 64 bits, any shape, strides and byte order.
            Ints and sequences of ints are taken as int64. Values outside the bounds are clamped.
            Columns of pandas, Polars or PyArrow, without nulls, see :func:`geomdp.frames.release`.
            The values of a mapping, such as a Counter, or a pandas Index. Keys, their order, index
            and name are released as they are: take them from public knowledge, not from the data.
        out : array, optional
            Where to write the noisy counts: of the dtype and shape of the counts, and possibly the
            same array. It is either written completely or left as it was.
        threads : int, optional
            How many share a large array, at most; if none is given, as many as there are processors
            for this process, where that pays. The distribution does not depend on it.

        Returns
        -------
        int, numpy integer or array
            Of the type, dtype and shape of the counts, each count with noise of its own. A mapping
            gives a dict.

        Raises
        ------
        TypeError
            If counts are not integers, or are masked; if `out` is of another dtype.
        ValueError
            If the counts are unsigned and there are no bounds; if `out` is of another shape, or
            cannot be written; if `threads` is below 1; if the scale is too large to be certified
            for the whole dtype and there are no bounds.
        OverflowError
            If an int is beyond int64, or the bounds are beyond the dtype of the counts.
        OSError
            If the operating system gives no random bytes; nothing is released then.
        KeyboardInterrupt
            On Ctrl-C, with `out` untouched; but with a contiguous `out` of native byte order, only
            after it has been written completely.

        """
        most = parameters.threads(threads)
        if out is None and parameters.is_integer(counts):
            if isinstance(counts, np.integer):
                noisy = self._core.release_scalar(int(counts), arrays.code(counts.dtype))
                return type(counts)(noisy)
            try:
                return self._core.release_scalar(counts, "i8")
            except OverflowError:
                # Unless the int is the cause, the bounds are.
                arrays.exact(counts)
                raise

        def noise(source: Array, target: Array, dtype: str, interruptible: bool) -> None:
            self._core.release_into(source, target, dtype, interruptible, most)

        if out is None and type(counts) is not np.ndarray:
            of_array = partial(arrays.release, out=None, noise=noise)
            if labels.alone(counts):
                [values], back = labels.apart(counts=counts)
                return back(of_array(values))
            if columns.is_column(counts):
                return columns.noisy(of_array, "counts", counts, "refuse")
        return arrays.release(counts, out, noise)

    def accuracy(self, alpha: Real, counts: Any = None) -> Any:
        """Return the least a such that an error of more than a has probability `alpha` at most.

        See :func:`geomdp.accuracy.release_accuracy`.
        """
        from geomdp.accuracy import release_accuracy  # noqa: PLC0415 (imports much more)

        return release_accuracy(self, alpha, counts)

    def confidence_interval(
        self, released: Any, alpha: Real, *, side: Literal["both", "lower", "upper"] = "both"
    ) -> tuple[Any, Any]:
        """Return bounds between which the true count is, but for a probability of `alpha`.

        See :func:`geomdp.accuracy.confidence_interval`.
        """
        from geomdp.accuracy import confidence_interval  # noqa: PLC0415 (imports much more)

        return confidence_interval(self, released, alpha, side=side)


def saturating(scale: Any, bounds: Any, dtype: np.dtype[Any]) -> GeometricMechanism:
    """Return the mechanism for counts of a dtype; without bounds, outputs saturate at its limits.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As in :class:`GeometricMechanism`, also for an uncertifiable scale or bounds outside the
        dtype, which would otherwise raise at the first release.

    """
    bounds = arrays.limits(dtype) if bounds is None else bounds
    mechanism = GeometricMechanism.from_scale(scale, bounds)
    mechanism.certificate(dtype)
    return mechanism
