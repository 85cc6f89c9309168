"""How accurate a release is, exactly: from scale or epsilon to accuracy, and back.

The accuracy at level alpha is the least integer a such that an error exceeds a with probability at
most alpha, ``P[|X - z| > a] <= alpha`` (*Geometric Mechanism Accuracy*, definition 1). For noise
without bounds that means ``2 q**(a + 1) / (1 + q) <= alpha``, with ``q = exp(-1 / scale)``.

Functions of a scale or an epsilon describe ideal noise without bounds, while functions of a
mechanism allow for its bounds and for the distribution that it samples. Results that are not exact
are rounded to the safe side, by less than 1e-34 and then to a float.

A level alpha above one half, such as 0.95, is probably a mistake, and causes a UserWarning
everywhere.

In place of arrays, all functions also take mappings, such as a Counter, and columns of pandas,
Polars and PyArrow. The results have the same keys, or the same index and name.

>>> from geomdp import accuracy
>>> accuracy.epsilon_to_accuracy(0.5, alpha=0.05)
6
"""

from geomdp._ground.uncopied import public
from geomdp.accuracy._conversions import (
    accuracy_to_epsilon,
    accuracy_to_scale,
    epsilon_to_accuracy,
    scale_to_accuracy,
)
from geomdp.accuracy._counts import relative_accuracy, simultaneous_accuracy
from geomdp.accuracy._moments import bias, mean_absolute_error, variance
from geomdp.accuracy._sums import ratio_confidence_interval, sum_accuracy, sum_confidence_interval
from geomdp.accuracy._unbiased import unbiased

__all__ = [
    "simultaneous_accuracy",
    "sum_accuracy",
    "sum_confidence_interval",
    "ratio_confidence_interval",
    "relative_accuracy",
    "epsilon_to_accuracy",
    "accuracy_to_epsilon",
    "scale_to_accuracy",
    "accuracy_to_scale",
    "bias",
    "variance",
    "mean_absolute_error",
    "unbiased",
]

public(__name__)
