"""The samplers by their names in the field, on the same core as the mechanism."""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from geomdp import _core
from geomdp._release import parameters
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.parameters import Bounds, Integer, Real

Size = int | tuple[int, ...]
_MAX_TRIALS = 2**63 - 1


def _probability(prob: Any) -> float:
    # A number beyond 1 may not fit a float.
    def accepts(number: Any) -> bool:
        return bool(0 <= number <= 1 and float(number) == number)

    wanted = "a float64 number from 0 to 1"
    return float(parameters.in_range("prob", prob, wanted, accepts))


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
        From 0 to 1, taken as the dyadic number that it is.
    size : int or tuple of ints, optional
        Shape of the array to return; a single bool if there is none.

    Raises
    ------
    TypeError
        If `prob` is not a number, or `size` not of integers.
    ValueError
        If `prob` is not from 0 to 1, or a size is negative.
    OSError
        If the operating system gives no random bytes.

    """
    bits = np.zeros(_shape(size), dtype=np.uint8)
    _core.sample_bernoulli(_probability(prob), bits.reshape(-1))
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

    ``P(G = k) = (1 - prob)**(k - 1) * prob`` for ``k >= 1``; what is above `trials` is counted as
    `trials` (*Geometric Mechanism Notes*, section 2.3). The law is within 2**-100 of this one in
    total variation.

    Parameters
    ----------
    prob : float
        From 0 to 1, taken as the dyadic number that it is.
    size : int or tuple of ints, optional
        Shape of the array to return; a single int if there is none.
    trials : int, optional
        Greatest result; 2**63 - 1 if none is given.

    Raises
    ------
    TypeError
        If `prob` is not a number, `trials` not an integer, or `size` not of integers.
    ValueError
        If `prob` is not from 0 to 1, or is 0 without `trials`; if `trials` is below 1, or a size
        negative.
    OverflowError
        If `trials` is beyond int64.
    OSError
        If the operating system gives no random bytes.

    """
    probability = _probability(prob)
    if trials is None:
        if not probability:
            raise ValueError("prob = 0 without trials is not accepted: there is never a success")
        trials = _MAX_TRIALS
    trials = parameters.at_least("trials", trials, 1)
    if trials > _MAX_TRIALS:
        raise OverflowError(f"trials = {trials} is not accepted: give at most {_MAX_TRIALS}")
    draws = np.zeros(_shape(size), dtype=np.int64)
    _core.sample_geometric(probability, trials, draws.reshape(-1))
    return int(draws) if size is None else draws


def sample_two_sided_geometric(shift: Any, scale: Real, bounds: Bounds | None = None) -> Any:
    """Return a draw of the two-sided geometric law around `shift`, censored at the bounds.

    The same as ``GeometricMechanism.from_scale(scale, bounds).release(shift)``, under the name that
    *Privacy Proofs for OpenDP: Geometric Measurement* gives it (theorem 1.2).

    Parameters
    ----------
    shift : int, numpy integer, array or sequence of ints
        Where the law is centred.
    scale : int, float or Fraction
        Not negative; taken exactly.
    bounds : (int, int) or None
        Least and greatest result; the limits of the dtype of `shift`, which must be signed,
        if there are none.

    Raises
    ------
    TypeError, ValueError, OverflowError, OSError
        As :class:`GeometricMechanism` and its ``release`` do.

    """
    return GeometricMechanism.from_scale(scale, bounds).release(shift)
