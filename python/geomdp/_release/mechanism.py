"""The geometric mechanism."""

from __future__ import annotations

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
    """Add discrete Laplace (two-sided geometric) noise to counts, with pure epsilon-DP.

    ``release(x)`` returns ``clamp(clamp(x) + Z)`` in constant time, where ``Z`` is z with
    probability ``(1 - a)/(1 + a) * a**abs(z)`` and ``a = exp(-epsilon / sensitivity)`` (*Geometric
    Mechanism Notes*, equation 2.1 and algorithm 2; Ghosh, Roughgarden and Sundararajan 2012). It
    clamps to ``bounds`` or, without bounds, to the limits of the signed dtype of the counts.
    Unsigned counts need bounds (``docs/bounds.md``).

    Every draw is fresh. The mechanism holds only public parameters and no generator, and any number
    of threads and processes may share it.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Privacy loss for inputs at distance ``sensitivity``. Positive. A float stands for the exact
        dyadic number that it stores.
    sensitivity : int
        The greatest change of a count, or of all counts together (L1), between neighbours.
    bounds : (int, int) or None
        Least and greatest output, both public. Counts outside the bounds are clamped without an
        error, since an error would reveal them.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, epsilon is not positive and finite, sensitivity is below 1,
        bounds are reversed, or the scale is too large to be certified for the range.
    OverflowError
        If no integer dtype holds both bounds, or a parameter has more than 14 000 bits.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
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
            Any integer dtype of 8 to 64 bits, shape, strides and byte order. Ints and sequences of
            ints become int64. Values outside the bounds are clamped. Columns of pandas, Polars or
            PyArrow without nulls (:func:`geomdp.frames.release`), a pandas Index and a mapping such
            as a Counter are accepted as well. Their keys, order, index and name are released as
            they are: take them from public knowledge, not from the data.
        out : array, optional
            The array to write the noisy counts to, with the dtype and shape of the counts; it may
            be the same array. It is either written completely or left unchanged.
        threads : int, optional
            The greatest number of threads for a large array. By default it is the number of
            processors available to this process, where that is faster. The distribution does not
            depend on it.

        Returns
        -------
        int, numpy integer or array
            The noisy counts with the type, dtype and shape of the counts; a dict for a mapping.
            Each count gets independent noise.

        Raises
        ------
        TypeError
            If counts are not integers or are masked, or `out` has another dtype.
        ValueError
            If the counts are unsigned and there are no bounds; if `out` has another shape or is
            read-only; if `threads` is below 1; if there are no bounds and the scale is too large to
            be certified for the whole dtype.
        OverflowError
            If an int does not fit int64, or the bounds do not fit the dtype of the counts.
        OSError
            If the operating system gives no random bytes. Nothing is released then.
        KeyboardInterrupt
            On Ctrl-C, with `out` unchanged; for a contiguous `out` of native byte order, only after
            it has been written completely.

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
        most = parameters.threads(threads)
        if out is None and parameters.is_integer(counts):
            if isinstance(counts, np.integer):
                noisy = self._core.release_scalar(int(counts), arrays.code(counts.dtype))
                return type(counts)(noisy)
            try:
                return self._core.release_scalar(counts, "i8")
            except OverflowError:
                # Either the int is too large, or the bounds are.
                arrays.exact(counts)
                raise

        def noise(source: Array, target: Array, interruptible: bool) -> None:
            self._core.release_into(source, target, interruptible, most)

        if out is None and type(counts) is not np.ndarray:
            of_array = partial(arrays.release, out=None, noise=noise)
            if labels.alone(counts):
                [values], back = labels.apart(counts=counts)
                return back(of_array(values))
            if columns.is_column(counts):
                return columns.noisy(of_array, "counts", counts, "refuse")
        return arrays.release(counts, out, noise)

    def accuracy(self, alpha: Real, counts: Any = None) -> Any:
        """Return the least a such that errors exceed a with probability at most `alpha`.

        :func:`geomdp.accuracy.release_accuracy` gives the details.

        Parameters
        ----------
        alpha : int, float or Fraction
            The significance level, from 0 to 1.
        counts : int, numpy integer, array or sequence of ints, optional
            True counts; without them, the result is that of the worst case.

        Returns
        -------
        int or array of ints
            In units of counts; an array for an array.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As in :func:`geomdp.accuracy.release_accuracy`.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> GeometricMechanism(epsilon=0.5, bounds=(0, 4526)).accuracy(alpha=0.05)
        6

        """
        from geomdp.accuracy import release_accuracy  # noqa: PLC0415 (imports much more)

        return release_accuracy(self, alpha, counts)

    def confidence_interval(
        self, released: Any, alpha: Real, *, side: Literal["both", "lower", "upper"] = "both"
    ) -> tuple[Any, Any]:
        """Return an interval that contains the true count with probability at least 1 - alpha.

        :func:`geomdp.accuracy.confidence_interval` gives the details.

        Parameters
        ----------
        released : int, numpy integer, array or sequence of ints
            Noisy counts of this mechanism.
        alpha : int, float or Fraction
            The probability that the interval misses the true count: 0.05 for 95% confidence.
        side : {"both", "lower", "upper"}
            "lower" gives only a lower end, and "upper" only an upper one.

        Returns
        -------
        lower, upper : ints or arrays
            With the type, dtype and shape of `released`. The interval includes both ends.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As in :func:`geomdp.accuracy.confidence_interval`.

        Examples
        --------
        >>> from geomdp import GeometricMechanism
        >>> GeometricMechanism(epsilon=0.5, bounds=(0, 4526)).confidence_interval(40, alpha=0.05)
        (34, 46)

        """
        from geomdp.accuracy import confidence_interval  # noqa: PLC0415 (imports much more)

        return confidence_interval(self, released, alpha, side=side)


def saturating(scale: Any, bounds: Any, dtype: np.dtype[Any]) -> GeometricMechanism:
    """Return the mechanism for counts of a dtype; without bounds, outputs saturate at its limits.

    Parameters that would only be refused at the first release are refused here.
    """
    bounds = arrays.limits(dtype) if bounds is None else bounds
    mechanism = GeometricMechanism.from_scale(scale, bounds)
    mechanism.certificate(dtype)
    return mechanism
