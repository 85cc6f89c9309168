"""Samplers under their common names, on the same core as the mechanism."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import parameters
from geomdp._ground.parameters import Bounds, Integer, Real
from geomdp._ground.uncopied import public
from geomdp._kernel import core
from geomdp.mechanism import GeometricMechanism

__all__ = ["sample_two_sided_geometric", "sample_geometric", "sample_bernoulli"]

Size = int | tuple[int, ...]
_MAX_TRIALS = 2**63 - 1


def _probability(prob: Any) -> float:
    # Of a float, the number that it stores is drawn, and not the decimal that it states.
    stored = isinstance(prob, float | np.float32 | np.float16)

    # Compare first: a number above 1 may not fit a float.
    def accepts(number: Any) -> bool:
        return bool(0 <= number <= 1 and (stored or float(number) == number))

    number = parameters.in_range("prob", prob, "a float64 number from 0 to 1", accepts)
    return float(prob if stored else number)


def _shape(size: Any) -> tuple[int, ...]:
    if size is None:
        return ()
    sizes = size if isinstance(size, tuple | list) else (size,)
    return tuple(parameters.at_least("size", n, 0) for n in sizes)


@overload
def sample_bernoulli(prob: Real, size: None = None) -> bool: ...
@overload
def sample_bernoulli(prob: Real, size: Size) -> NDArray[np.bool_]: ...
def sample_bernoulli(prob: Real, size: Size | None = None) -> bool | NDArray[np.bool_]:
    """Return True with exactly this probability, in constant time.

    Parameters
    ----------
    prob : float
        From 0 to 1; the exact dyadic value of the float is used.
    size : int or tuple of ints, optional
        The shape of the array to return; a single bool by default.

    Returns
    -------
    bool or bool array
        Independent draws.

    Examples
    --------
    >>> from geomdp import sample_bernoulli
    >>> sample_bernoulli(1), sample_bernoulli(0.25, size=(2, 3)).shape
    (True, (2, 3))

    """
    bits = np.zeros(_shape(size), dtype=np.uint8)
    core.sample_bernoulli(_probability(prob), bits.reshape(-1))
    return bool(bits) if size is None else bits.view(np.bool_)


@overload
def sample_geometric(prob: Real, size: None = None, trials: Integer | None = None) -> int: ...
@overload
def sample_geometric(
    prob: Real, size: Size, trials: Integer | None = None
) -> NDArray[np.int64]: ...
def sample_geometric(
    prob: Real, size: Size | None = None, trials: Integer | None = None
) -> int | NDArray[np.int64]:
    """Return the number of trials up to the first success, at most `trials`, in constant time.

    ``P(G = k) = (1 - prob)**(k - 1) * prob`` for ``k >= 1``; results above `trials` become `trials`
    (*Geometric Mechanism Notes*, section 2.3). The sampled distribution is within ``2**-100`` of
    this one in total variation.

    Parameters
    ----------
    prob : float
        From 0 to 1; the exact dyadic value of the float is used.
    size : int or tuple of ints, optional
        The shape of the array to return; a single int by default.
    trials : int, optional
        The greatest result; ``2**63 - 1`` by default. Required if `prob` is 0.

    Returns
    -------
    int or int64 array
        Independent draws, from 1 to `trials`.

    Examples
    --------
    >>> from geomdp import sample_geometric
    >>> sample_geometric(1), sample_geometric(0.25, size=1000, trials=8).shape
    (1, (1000,))

    """
    probability = _probability(prob)
    if trials is None:
        if not probability:
            raise ValueError(
                "prob = 0 is not accepted without trials, since no trial succeeds: give trials or "
                "a prob above 0"
            )
        trials = _MAX_TRIALS
    trials = parameters.at_least("trials", trials, 1)
    if trials > _MAX_TRIALS:
        raise OverflowError(f"trials = {trials} is not accepted: give at most {_MAX_TRIALS}")
    draws = np.zeros(_shape(size), dtype=np.int64)
    core.sample_geometric(probability, trials, draws.reshape(-1))
    return int(draws) if size is None else draws


def sample_two_sided_geometric(shift: Any, scale: Real, bounds: Bounds | None = None) -> Any:
    """Draw from the two-sided geometric distribution around `shift`, censored at the bounds.

    This is ``GeometricMechanism.from_scale(scale, bounds).release(shift)`` under its name in
    *Privacy Proofs for OpenDP: Geometric Measurement* (theorem 1.2).

    Parameters
    ----------
    shift : int, numpy integer, array or sequence of ints
        The center of the distribution.
    scale : number
        The noise scale: at least 0, taken exactly.
    bounds : (int, int) or None
        The least and the greatest result. With None, these are the limits of the dtype of `shift`,
        which must be signed.

    Returns
    -------
    int, numpy integer or array
        Draws with the type, dtype and shape of `shift`.

    Examples
    --------
    >>> from geomdp import sample_two_sided_geometric
    >>> sample_two_sided_geometric([0, 50, 100], scale=2.0, bounds=(0, 100)).shape
    (3,)

    """
    return GeometricMechanism.from_scale(scale, bounds).release(shift)


public(__name__)
