"""Estimates from releases: what best to make of a noisy count, on average or in the worst case.

A release by the geometric mechanism serves everyone: whatever is believed about the true count
before, and whatever loss an error means, if only it does not fall with the distance, some function
of the release does as well as the best of all mechanisms with the same privacy loss. That is the
theorem of Ghosh, Roughgarden and Sundararajan (*Universally utility-maximizing privacy mechanisms*,
2012) for an expected loss, :func:`bayes` here, and of Gupte and Sundararajan (*Universally optimal
privacy mechanisms for minimax agents*, 2010) for the worst case, :func:`minimax`.

>>> from geomdp import GeometricMechanism, remap
>>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 5))
>>> estimate = remap.bayes(mechanism, prior=[1, 1, 1, 1, 1, 1], loss="absolute")
>>> estimate.table.tolist()
[1, 1, 2, 3, 4, 4]
>>> noisy = mechanism.release([3, 0, 5])
>>> estimates = estimate(noisy)

A remap sees nothing but the release, so it costs no privacy (``docs/proofs.md``, theorem 7) and
need not take constant time. It is computed in floats, for the ideal distribution; the sampled one
is within ``2**-50`` of it. The theorems are about counts that one record changes by one; with a
greater sensitivity a remap is still the best function of the release.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geomdp._release import arrays, parameters
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.specification import checked

__all__ = ["RandomisedRemap", "Remap", "bayes", "expected_loss", "minimax", "risk"]

_Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = str | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]

#: Losses by name, as functions of the distance between true count and estimate.
_LOSSES: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "absolute": lambda distance: distance,
    "squared": lambda distance: distance**2,
    "zero-one": lambda distance: np.minimum(distance, 1),
}
_NAMES = "give 'absolute', 'squared', 'zero-one', an array, or a function of the distance"

#: Outputs within the bounds, which take their square in memory, or their cube in a linear program.
MOST, MOST_MINIMAX = 4096, 128
#: Rows of a matrix that are worked on at once.
_BLOCK = 512
#: Beyond which a rate makes no difference.
_LARGEST_RATE = Fraction(2**20)
#: More than the relative error of an expected loss, whose terms are not negative.
_TIE = 1e-11
#: What the linear program may lose, relatively, by leaving out estimates that are too bad to use.
_LOST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Function:
    """A function of released counts, which are public."""

    bounds: tuple[int, int]

    def __call__(self, released: Any) -> Any:
        """Return estimates of the true counts.

        Parameters
        ----------
        released : int, numpy integer, array or sequence of ints
            Released counts, within the bounds.

        Returns
        -------
        int, numpy integer or array
            Of the type, dtype and shape of what was released; sequences become arrays.

        Raises
        ------
        TypeError
            If it is not of integers.
        ValueError
            If one is outside the bounds.
        OverflowError
            If the dtype does not hold the bounds.

        """
        lower, upper = self.bounds
        if parameters.is_integer(released):
            self._refuse_outside(int(released), int(released))
        array = arrays.as_array(released, arrays.dtype_for(self.bounds))
        limits = np.iinfo(array.dtype)
        if not limits.min <= lower <= upper <= limits.max:
            raise OverflowError(
                f"released counts of dtype {array.dtype} are not accepted: give a type that holds "
                f"the bounds {self.bounds}"
            )
        if array.size:
            self._refuse_outside(int(array.min()), int(array.max()))
        wide = arrays.dtype_for(self.bounds).type
        places = (array.astype(wide) - wide(lower)).astype(np.intp)
        estimates = np.asarray(self._look_up(places).astype(array.dtype))
        if isinstance(released, np.ndarray) or estimates.ndim:
            return estimates
        return estimates[()] if isinstance(released, np.integer) else int(estimates)

    def _refuse_outside(self, least: int, greatest: int) -> None:
        lower, upper = self.bounds
        for value in (least, greatest):
            if not lower <= value <= upper:
                raise ValueError(
                    f"released = {value} is not accepted: give counts from {lower} to {upper}, "
                    "the bounds of the mechanism"
                )

    def _look_up(self, places: NDArray[np.intp]) -> NDArray[Any]:
        """Return the estimates for released counts, given as offsets from the lower bound."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Remap(_Function):
    """A lookup of the estimate for each released count, as :func:`bayes` makes it.

    Call it with what a mechanism released, or chain it: ``measurement >> remap``. It is immutable,
    and may be pickled.

    Parameters
    ----------
    bounds : (int, int)
        Of the mechanism.
    table : array of ints
        The estimate for each output from the lower to the upper bound, within the bounds. Of int64,
        or uint64 if it takes that to hold the bounds.

    Raises
    ------
    TypeError
        If bounds or table are not integers.
    ValueError
        If the table is not one estimate within the bounds for each output.

    """

    table: NDArray[np.integer[Any]]

    def __post_init__(self) -> None:
        bounds = _interval(self.bounds)
        table = arrays.as_array(self.table, arrays.dtype_for(bounds))
        outputs = bounds[1] - bounds[0] + 1
        if table.shape != (outputs,):
            raise ValueError(
                f"table is of shape {table.shape}: give one estimate for each of {outputs} outputs"
            )
        if not bounds[0] <= int(table.min()) <= int(table.max()) <= bounds[1]:
            raise ValueError(f"table is not within the bounds: give estimates from {bounds}")
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "table", _frozen(table.astype(arrays.dtype_for(bounds))))

    def _look_up(self, places: NDArray[np.intp]) -> NDArray[Any]:
        return np.asarray(self.table[places])


@dataclass(frozen=True, slots=True, eq=False)
class RandomisedRemap(_Function):
    """Probabilities of estimates for each released count, as :func:`minimax` makes them.

    Else as :class:`Remap`. Each call draws anew, with a numpy generator that the operating system
    seeds; privacy does not depend on its quality, since what it adds to is public.

    Parameters
    ----------
    bounds : (int, int)
        Of the mechanism.
    probabilities : float64 array
        Rows for released counts, from the lower to the upper bound, and columns for estimates
        likewise. Each row sums to 1, but for rounding.

    Raises
    ------
    TypeError
        If bounds are not integers, or probabilities not numbers.
    ValueError
        If probabilities are not a row that sums to 1 for each output.

    """

    probabilities: NDArray[np.float64]

    def __post_init__(self) -> None:
        bounds = _interval(self.bounds)
        outputs = bounds[1] - bounds[0] + 1
        rows = arrays.weights("probabilities", self.probabilities, (outputs, outputs))
        if not np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise ValueError("probabilities with other row sums are not accepted: give sums of 1")
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "probabilities", _frozen(rows))

    def _look_up(self, places: NDArray[np.intp]) -> NDArray[Any]:
        generator = np.random.default_rng()
        wide = arrays.dtype_for(self.bounds).type
        values = np.arange(len(self.probabilities)).astype(wide) + wide(self.bounds[0])
        estimates = np.empty(places.shape, dtype=wide)
        for place in np.unique(places):
            here = places == place
            row = self.probabilities[place]
            estimates[here] = generator.choice(values, size=np.count_nonzero(here), p=row)
        return estimates


def bayes(mechanism: GeometricMechanism, prior: ArrayLike, loss: Loss) -> Remap:
    """Return the function of a release that has the least expected loss, for a prior.

    For counts that one record changes by one, and a loss that does not fall with the distance, no
    mechanism with the privacy loss ``mechanism.rate`` has a lesser one (Ghosh, Roughgarden and
    Sundararajan 2012).

    Parameters
    ----------
    mechanism : GeometricMechanism
        With bounds of at most 4096 outputs.
    prior : array
        A weight for each true count from the lower to the upper bound: not negative, and not all 0;
        taken as float64. Their sum makes no difference.
    loss : str, array or callable
        What an error costs: "absolute" (the distance of estimate and true count), "squared",
        "zero-one" (1 for any error); an array of the loss for each true count (rows) and estimate
        (columns); or a function that takes the distances from 0 as an array and returns their
        losses. Finite and not negative.

    Returns
    -------
    Remap
        Of several best estimates for a released count, the one nearest to it, and the lesser if
        there are two. Expected losses are taken for equal up to 1e-11 of them, more than rounding.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If the mechanism has no bounds, or too wide ones; if prior or loss is not of its shape, or
        has a number that is not accepted.

    """
    outputs = _outputs(mechanism, MOST)
    with np.errstate(divide="ignore"):
        logs = np.log(_prior(prior, outputs))
    losses = _scaled(_loss_matrix(loss, outputs))
    rate = float(_rate(mechanism))
    places = np.arange(outputs)
    best = np.empty(outputs, dtype=np.intp)
    for rows in _blocks(outputs):
        expected = _posterior(rate, logs, places[rows]) @ losses
        good = expected <= expected.min(axis=1, keepdims=True) * (1 + _TIE)
        away = places - places[rows, np.newaxis]
        order = np.where(good, 2 * np.abs(away) + (away > 0), 2 * outputs)
        best[rows] = order.argmin(axis=1)
    bounds = _bounds(mechanism)
    wide = arrays.dtype_for(bounds).type
    return Remap(bounds, best.astype(wide) + wide(bounds[0]))


def minimax(mechanism: GeometricMechanism, loss: Loss) -> RandomisedRemap:
    """Return the randomised function of a release whose worst expected loss is the least.

    Over the true counts; for those that one record changes by one, and a loss that does not fall
    with the distance, no mechanism with the privacy loss ``mechanism.rate`` has a lesser one (Gupte
    and Sundararajan 2010). Found by linear programming, to about a millionth, and never worse than
    the release itself. Needs scipy: ``pip install geomdp[remap]``.

    Parameters
    ----------
    mechanism : GeometricMechanism
        With bounds of at most 128 outputs, which take up to some ten seconds.
    loss : str, array or callable
        As in :func:`bayes`.

    Returns
    -------
    RandomisedRemap
        One of several, possibly: which one depends on the version of scipy.

    Raises
    ------
    TypeError, ValueError
        As in :func:`bayes`.
    ImportError
        If scipy is not there.
    RuntimeError
        If the solver finds no optimum.

    """
    outputs = _outputs(mechanism, MOST_MINIMAX)
    losses = _scaled(_loss_matrix(loss, outputs))
    distribution = _release_matrix(mechanism, outputs)
    plain = np.eye(outputs)
    worst = _worst(distribution, plain, losses)
    found = _solve(distribution, losses, worst) if worst else plain
    better = _worst(distribution, found, losses) < worst
    return RandomisedRemap(_bounds(mechanism), found if better else plain)


def risk(
    mechanism: GeometricMechanism, loss: Loss, remap: Remap | RandomisedRemap | None = None
) -> NDArray[np.float64]:
    """Return the expected loss at each true count from the lower to the upper bound.

    Parameters
    ----------
    mechanism, loss
        As in :func:`bayes`.
    remap : Remap or RandomisedRemap, optional
        What is made of the release; the release itself, if none is given.

    Returns
    -------
    float64 array
        For the ideal distribution; accurate to a few units in the last place, and the rounding of
        the sum.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        As in :func:`bayes`; and if the remap has other bounds than the mechanism.

    """
    outputs = _outputs(mechanism, MOST)
    losses = _loss_matrix(loss, outputs)
    if remap is not None and not isinstance(remap, Remap | RandomisedRemap):
        raise TypeError(
            f"remap is a {type(remap).__name__}: give a Remap, a RandomisedRemap or None"
        )
    if remap is not None and remap.bounds != mechanism.bounds:
        raise ValueError(
            f"remap with bounds {remap.bounds} is not accepted: give one with {mechanism.bounds}"
        )
    distribution = _release_matrix(mechanism, outputs)
    if isinstance(remap, RandomisedRemap):
        distribution = distribution @ remap.probabilities
    elif remap is not None:
        losses = losses[:, (remap.table - remap.table.dtype.type(remap.bounds[0])).astype(np.intp)]
    return np.concatenate(
        [(distribution[rows] * losses[rows]).sum(axis=1) for rows in _blocks(outputs)]
    )


def expected_loss(
    mechanism: GeometricMechanism,
    prior: ArrayLike,
    loss: Loss,
    remap: Remap | RandomisedRemap | None = None,
) -> float:
    """Return the mean of :func:`risk` over the prior.

    Parameters
    ----------
    mechanism, prior, loss
        As in :func:`bayes`.
    remap
        As in :func:`risk`.

    """
    weights = _prior(prior, _outputs(mechanism, MOST))
    weights = weights / weights.max()
    return float(weights @ risk(mechanism, loss, remap) / weights.sum())


def _solve(distribution: _Floats, losses: _Floats, worst: float) -> _Floats:
    """Return probabilities of estimates (columns) for releases, with the least worst expected loss.

    It is in units of what the release itself has, so that no optimum is above 1.
    """
    try:
        from scipy import optimize, sparse  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("minimax needs scipy: pip install geomdp[remap]") from error
    outputs = len(distribution)
    with np.errstate(over="ignore"):
        shares = (distribution[:, :, np.newaxis] * losses[:, np.newaxis, :]).reshape(
            outputs, -1
        ) / worst
    # An optimum has no share above 1, so what is left out has this probability in all, for each
    # release; with the release itself instead, no expected loss grows by more than that.
    used = shares.max(axis=0) <= outputs / _LOST
    released = np.repeat(np.arange(outputs), outputs)[used]
    total = sparse.csr_array((np.ones(released.size), (released, np.arange(released.size))))
    objective = np.append(np.zeros(released.size), 1)
    solution = optimize.linprog(
        objective,
        A_ub=sparse.csr_array(np.column_stack([shares[:, used], -np.ones(outputs)])),
        b_ub=np.zeros(outputs),
        A_eq=sparse.hstack([total, sparse.csr_array((outputs, 1))]),
        b_eq=np.ones(outputs),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    found = np.zeros(outputs * outputs)
    found[used] = np.maximum(solution.x[:-1], 0)
    rows = found.reshape(outputs, outputs)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _worst(distribution: _Floats, probabilities: _Floats, losses: _Floats) -> float:
    return float((distribution @ probabilities * losses).sum(axis=1).max())


def _posterior(rate: float, logs: _Floats, released: NDArray[np.intp]) -> _Floats:
    """Return the weights of true counts given releases, each row with about 1 as its greatest.

    They are ``exp(logs - rate * distance)``, with the logarithms of the prior. Distances are taken
    from the likeliest count, as integers, so that nothing that matters underflows or is rounded.
    """
    distances = np.abs(np.arange(len(logs)) - released[:, np.newaxis])
    top = (logs - rate * distances).argmax(axis=1)[:, np.newaxis]
    steps = distances - np.take_along_axis(distances, top, axis=1)
    return np.asarray(np.exp((logs - logs[top]) - rate * steps))


def _release_matrix(mechanism: GeometricMechanism, outputs: int) -> _Floats:
    """Return the ideal probabilities of releases (columns) for each true count (rows)."""
    if outputs == 1:
        return np.ones((1, 1))
    rate = float(_rate(mechanism))
    masses = np.full(outputs, np.tanh(rate / 2))
    masses[[0, -1]] = 1 / (1 + np.exp(-rate))
    with np.errstate(under="ignore"):
        return np.asarray(_toeplitz(np.exp(-rate * np.arange(outputs))) * masses)


def _loss_matrix(loss: Any, outputs: int) -> _Floats:
    """Return the losses of estimates (columns) for each true count."""
    if isinstance(loss, str):
        if loss not in _LOSSES:
            raise ValueError(f"loss = {parameters.shown(loss)} is not accepted: {_NAMES}")
        loss = _LOSSES[loss]
    if callable(loss):
        return _toeplitz(arrays.weights("loss", loss(np.arange(outputs)), (outputs,)))
    return arrays.weights("loss", loss, (outputs, outputs))


def _toeplitz(vector: _Floats) -> _Floats:
    """Return the matrix of ``vector[abs(i - j)]``, as a view that cannot be written to."""
    both = np.concatenate([vector[:0:-1], vector])
    return np.lib.stride_tricks.sliding_window_view(both, len(vector))[::-1]


def _scaled(losses: _Floats) -> _Floats:
    greatest = losses.max()
    return losses / greatest if greatest else losses


def _prior(prior: Any, outputs: int) -> _Floats:
    weights = arrays.weights("prior", prior, (outputs,))
    if not weights.any():
        raise ValueError("prior with no weight is not accepted: give one above 0")
    return weights


def _outputs(mechanism: Any, most: int) -> int:
    """Return how many outputs a mechanism has."""
    lower, upper = _bounds(checked(mechanism))
    if upper - lower >= most:
        raise ValueError(f"bounds = {(lower, upper)} are not accepted: give at most {most} outputs")
    return upper - lower + 1


def _rate(mechanism: GeometricMechanism) -> Fraction:
    """Return the rate, or what makes no difference to it."""
    return Fraction(mechanism.rate) if mechanism.rate < _LARGEST_RATE else _LARGEST_RATE


def _bounds(mechanism: GeometricMechanism) -> tuple[int, int]:
    if mechanism.bounds is None:
        raise ValueError(f"mechanism = {mechanism!r} is not accepted: give one with bounds")
    return mechanism.bounds


def _interval(bounds: Any) -> tuple[int, int]:
    interval = parameters.interval(bounds)
    if interval is None:
        raise TypeError("bounds = None is not accepted: give a pair (lower, upper)")
    if interval[0] > interval[1]:
        raise ValueError(f"bounds = {interval} is not accepted: give lower <= upper")
    return interval


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _blocks(outputs: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, outputs, _BLOCK))
