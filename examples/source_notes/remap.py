"""Optimal estimates from releases, on average or in the worst case.

One release by the geometric mechanism serves every user: for any prior on the true count, and any
loss that does not fall with the distance, some function of the release is as good as the best
mechanism with the same privacy loss. Ghosh, Roughgarden and Sundararajan (*Universally
utility-maximizing privacy mechanisms*, 2012) prove it for the expected loss (:func:`bayes`), Gupte
and Sundararajan (*Universally optimal privacy mechanisms for minimax agents*, 2010) for the worst
case (:func:`minimax`).

A remap sees only the release, so it costs no privacy (``docs/proofs.md``, theorem 7) and need not
take constant time. It is computed in floats, for the ideal distribution; the sampled one is within
``2**-50`` of it. The theorems hold for counts that one record changes by one; at a greater
sensitivity a remap is still the best function of the release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geomdp._ground import parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.notebook import showable
from geomdp._inputs import arrays
from geomdp.mechanism import GeometricMechanism, as_mechanism

__all__ = ["bayes", "minimax", "Remap", "RandomisedRemap", "risk", "expected_loss"]

_Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = str | ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]

#: Losses by name, as functions of the distance between true count and estimate.
_LOSSES: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "absolute": lambda distance: distance,
    "squared": lambda distance: distance**2,
    "zero-one": lambda distance: np.minimum(distance, 1),
}
_NAMES = "give 'absolute', 'squared', 'zero-one', an array, or a function of the distance"

#: The most outputs. Memory grows with their square, and the linear program's with their cube.
MOST_OUTPUTS, MOST_OUTPUTS_MINIMAX = 4096, 128
#: The number of matrix rows to process at once.
_BLOCK = 512
#: Greater rates give the same floats.
_LARGEST_RATE = 2**20
#: Exceeds the relative error of an expected loss, a sum of nonnegative terms.
_TIE = 1e-11
#: The relative loss allowed for leaving estimates out of the linear program.
_LOST = 1e-6


@showable
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
            The type, dtype and shape are those of the argument; sequences become arrays.

        Raises
        ------
        ValueError
            If a released count, which is public, is outside the bounds.

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
        if not lower <= least <= greatest <= upper:
            raise ValueError(
                f"released counts outside {lower} to {upper}, the bounds of the mechanism, are not "
                "accepted"
            )

    def _look_up(self, places: NDArray[np.intp]) -> NDArray[Any]:
        """Return the estimates for released counts, given as offsets from the lower bound."""
        raise NotImplementedError


@showable
@dataclass(frozen=True, slots=True, eq=False)
class Remap(_Function):
    """A table of estimates, one for each released count, from :func:`bayes`.

    Call it with released counts, or chain it: ``measurement >> remap``. It is immutable, and can be
    pickled.

    Parameters
    ----------
    bounds : (int, int)
        The bounds of the mechanism.
    table : array of ints
        The estimate for each output from the lower to the upper bound, itself within the bounds;
        stored as int64, or as uint64 if the bounds need it.

    Examples
    --------
    >>> from remap import Remap
    >>> estimate = Remap((0, 3), [1, 1, 2, 2])
    >>> estimate([0, 3])
    array([1, 2])

    """

    table: NDArray[np.integer[Any]]

    def __post_init__(self) -> None:
        bounds = _interval(self.bounds)
        table = arrays.as_array(self.table, arrays.dtype_for(bounds))
        outputs = bounds[1] - bounds[0] + 1
        if table.shape != (outputs,):
            raise ValueError(
                f"table is of shape {table.shape}: give one estimate for each output, {(outputs,)}"
            )
        if not bounds[0] <= int(table.min()) <= int(table.max()) <= bounds[1]:
            raise ValueError(f"table is not within the bounds: give estimates from {bounds}")
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "table", _frozen(table.astype(arrays.dtype_for(bounds))))

    def _look_up(self, places: NDArray[np.intp]) -> NDArray[Any]:
        return np.asarray(self.table[places])


@showable
@dataclass(frozen=True, slots=True, eq=False)
class RandomisedRemap(_Function):
    """Probabilities of estimates for each released count, from :func:`minimax`.

    It is used like a :class:`Remap`. Each call draws anew, with a numpy generator seeded by the
    operating system. Privacy does not depend on that generator, since its input is public.

    Parameters
    ----------
    bounds : (int, int)
        The bounds of the mechanism.
    probabilities : float64 array
        A row for each released count and a column for each estimate, both from the lower to the
        upper bound. Each row sums to 1, up to rounding.

    Examples
    --------
    >>> from remap import RandomisedRemap
    >>> estimate = RandomisedRemap((0, 1), [[0.5, 0.5], [0, 1]])
    >>> estimate(1)
    1

    """

    probabilities: NDArray[np.float64]

    def __post_init__(self) -> None:
        bounds = _interval(self.bounds)
        outputs = bounds[1] - bounds[0] + 1
        rows = arrays.weights("probabilities", self.probabilities, (outputs, outputs))
        if not np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise ValueError("the rows of probabilities do not sum to 1: give rows that do")
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
    """Return the function of a release with the least expected loss for a prior.

    No mechanism with the privacy loss ``mechanism.rate`` has a smaller expected loss, if one record
    changes the count by one and the loss does not fall with the distance (Ghosh, Roughgarden and
    Sundararajan 2012).

    Parameters
    ----------
    mechanism : GeometricMechanism
        A mechanism with bounds, and at most 4096 outputs.
    prior : array
        A weight for each true count from the lower to the upper bound: not negative, not all 0, and
        rounded to float64. Only their ratios matter.
    loss : str, array or callable
        The cost of an error: "absolute" (the distance between estimate and true count), "squared",
        "zero-one" (1 for any error); an array of the loss for each true count (rows) and estimate
        (columns); or a function that takes an array of distances, from 0, and returns their losses.
        Losses are finite and not negative.

    Returns
    -------
    Remap
        Among estimates that are equally good for a released count, it has the one nearest to that
        count, and the smaller of two. Expected losses within 1e-11 of each other count as equal.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> import remap
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 5))
    >>> remap.bayes(mechanism, prior=[1, 1, 1, 1, 1, 1], loss="absolute").table.tolist()
    [1, 1, 2, 3, 4, 4]

    """
    outputs = _outputs(mechanism, MOST_OUTPUTS)
    with np.errstate(divide="ignore"):
        logs = np.log(_prior(prior, outputs))
    losses = _scaled(_loss_matrix(loss, outputs))
    rate = _rate(mechanism)
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
    """Return the randomised function of a release with the least worst-case expected loss.

    The worst case is over the true counts. No mechanism with the privacy loss ``mechanism.rate``
    has a smaller one, if one record changes the count by one and the loss does not fall with the
    distance (Gupte and Sundararajan 2010). A linear program finds it to about a millionth; it is
    never worse than the release itself. It needs the extra ``remap``.

    Parameters
    ----------
    mechanism : GeometricMechanism
        A mechanism with bounds, and at most 128 outputs, which can take about ten seconds.
    loss : str, array or callable
        As in :func:`bayes`.

    Returns
    -------
    RandomisedRemap
        An optimum. If there are several, the version of scipy decides which one.

    Raises
    ------
    RuntimeError
        If the solver finds no optimum.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> import remap
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 5))
    >>> estimate = remap.minimax(mechanism, loss="absolute")
    >>> remap.risk(mechanism, "absolute", estimate).round(2)
    array([1.13, 1.13, 1.13, 1.13, 1.13, 1.13])

    """
    outputs = _outputs(mechanism, MOST_OUTPUTS_MINIMAX)
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
        A function of the release; without it, the release itself is the estimate.

    Returns
    -------
    float64 array
        The expected losses under the ideal distribution, with a relative error below 1e-11.

    Raises
    ------
    ValueError
        If the bounds of the remap and the mechanism differ.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> import remap
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 5))
    >>> remap.risk(mechanism, loss="absolute").round(2)
    array([0.88, 1.21, 1.35, 1.35, 1.21, 0.88])

    """
    outputs = _outputs(mechanism, MOST_OUTPUTS)
    losses = _loss_matrix(loss, outputs)
    if remap is not None and not isinstance(remap, Remap | RandomisedRemap):
        raise TypeError(
            f"remap has type {type(remap).__name__}: give a Remap, a RandomisedRemap or None"
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
    remap : Remap or RandomisedRemap, optional
        A function of the release; without it, the release itself is the estimate.

    Returns
    -------
    float
        In the units of the loss.

    Raises
    ------
    ValueError
        If the bounds of the remap and the mechanism differ.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> import remap
    >>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 5))
    >>> prior = [1, 1, 1, 1, 1, 1]
    >>> estimate = remap.bayes(mechanism, prior, "absolute")
    >>> round(remap.expected_loss(mechanism, prior, "absolute"), 4)
    1.1466
    >>> round(remap.expected_loss(mechanism, prior, "absolute", estimate), 4)
    1.0605

    """
    weights = _prior(prior, _outputs(mechanism, MOST_OUTPUTS))
    weights = weights / weights.max()
    return float(weights @ risk(mechanism, loss, remap) / weights.sum())


def _solve(distribution: _Floats, losses: _Floats, worst: float) -> _Floats:
    """Return probabilities of estimates (columns) for releases, with the least worst expected loss.

    Losses are in units of `worst`, that of the release itself, so no optimum is above 1.
    """
    with installed_by("geomdp[remap]"):
        from scipy import optimize, sparse  # noqa: PLC0415
    outputs = len(distribution)
    with np.errstate(over="ignore"):
        shares = (distribution[:, :, np.newaxis] * losses[:, np.newaxis, :]).reshape(
            outputs, -1
        ) / worst
    # No share of an optimum is above 1. So for each release, the estimates left out have at most
    # the probability _LOST together. Replacing them by the release costs no more than that.
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
    """Return the weights of true counts given releases; the greatest in each row is about 1.

    They are ``exp(logs - rate * distance)``, with the logarithms of the prior. Distances are exact
    integers, relative to that of the likeliest count, so no weight that matters underflows.
    """
    distances = np.abs(np.arange(len(logs)) - released[:, np.newaxis])
    top = (logs - rate * distances).argmax(axis=1)[:, np.newaxis]
    steps = distances - np.take_along_axis(distances, top, axis=1)
    return np.asarray(np.exp((logs - logs[top]) - rate * steps))


def _release_matrix(mechanism: GeometricMechanism, outputs: int) -> _Floats:
    """Return the ideal probabilities of releases (columns) for each true count (rows)."""
    if outputs == 1:
        return np.ones((1, 1))
    rate = _rate(mechanism)
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
    """Return the matrix of ``vector[abs(i - j)]``, as a read-only view."""
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


def _outputs(mechanism: Any, limit: int) -> int:
    """Return the number of outputs of a mechanism."""
    lower, upper = _bounds(as_mechanism(mechanism))
    if upper - lower >= limit:
        raise ValueError(
            f"bounds = {(lower, upper)} are not accepted: give at most {limit} outputs"
        )
    return upper - lower + 1


def _rate(mechanism: GeometricMechanism) -> float:
    """Return the rate as a float, or a lesser one that gives the same floats."""
    return float(min(mechanism.rate, _LARGEST_RATE))


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
