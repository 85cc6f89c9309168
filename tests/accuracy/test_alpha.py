"""The level alpha of every public function: a confidence given by mistake warns."""

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

from geomdp import GeometricMechanism, accuracy
from geomdp.accuracy import (
    accuracy_to_epsilon,
    accuracy_to_scale,
    epsilon_to_accuracy,
    ratio_confidence_interval,
    relative_accuracy,
    scale_to_accuracy,
    simultaneous_accuracy,
    sum_accuracy,
    sum_confidence_interval,
)
from geomdp.compat import diffprivlib, opendp_accuracy, smartnoise
from geomdp.compat.opendp_accuracy import (
    accuracy_to_discrete_laplacian_scale,
    discrete_laplacian_scale_to_accuracy,
)
from geomdp.tables import plot
from geomdp.tables._pictures import charts

BOUNDED, FREE = GeometricMechanism(1, bounds=(0, 9)), GeometricMechanism(1)

#: Calls with any alpha.
OF_ALPHA: dict[Callable[..., Any], Callable[[Any], Any]] = {
    GeometricMechanism.accuracy: lambda alpha: BOUNDED.accuracy(alpha, counts=[3]),
    GeometricMechanism.confidence_interval: lambda alpha: BOUNDED.confidence_interval(3, alpha),
    simultaneous_accuracy: lambda alpha: simultaneous_accuracy(BOUNDED, alpha, n=3),
    sum_accuracy: lambda alpha: sum_accuracy(FREE, 3, alpha),
    sum_confidence_interval: lambda alpha: sum_confidence_interval(BOUNDED, [3, 4], alpha),
    ratio_confidence_interval: lambda alpha: ratio_confidence_interval(BOUNDED, 3, 4, alpha),
    relative_accuracy: lambda alpha: relative_accuracy(0.5, alpha, ratio=0.1),
    epsilon_to_accuracy: lambda alpha: epsilon_to_accuracy(0.5, alpha),
    accuracy_to_epsilon: lambda alpha: accuracy_to_epsilon(5, [0.05, alpha]),
    scale_to_accuracy: lambda alpha: scale_to_accuracy(2, alpha),
    accuracy_to_scale: lambda alpha: accuracy_to_scale(2, alpha),
    discrete_laplacian_scale_to_accuracy: partial(discrete_laplacian_scale_to_accuracy, 2),
    accuracy_to_discrete_laplacian_scale: partial(accuracy_to_discrete_laplacian_scale, 2),
    smartnoise.privacy_usage_to_accuracy: partial(smartnoise.privacy_usage_to_accuracy, 1),
    smartnoise.accuracy_to_privacy_usage: partial(smartnoise.accuracy_to_privacy_usage, 1),
    plot.accuracy: lambda alpha: plot.accuracy([0.1, 0.2], alpha=alpha),
}


def public_functions() -> Iterator[Callable[..., Any]]:
    for module in (accuracy, opendp_accuracy, smartnoise, diffprivlib, charts, plot):
        yield from filter(inspect.isfunction, vars(module).values())
    for kind in GeometricMechanism.__mro__:
        yield from filter(inspect.isfunction, vars(kind).values())


each_function = pytest.mark.parametrize(
    "function", OF_ALPHA, ids=lambda function: function.__qualname__
)


@each_function
def test_a_confidence_as_alpha_warns_everywhere(function: Callable[..., Any]) -> None:
    for alpha in (0.95, Fraction(19, 20), 1):
        wanted = rf"^alpha = {re.escape(repr(alpha))} is .*: give 0\.05 for 95% confidence$"
        with pytest.warns(UserWarning, match=wanted) as caught:
            OF_ALPHA[function](alpha)
        assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OF_ALPHA[function](0.5)
        OF_ALPHA[function](Fraction(1, 20))
    pyplot.close("all")  # One of them draws.


@each_function
def test_other_alphas_raise_by_name(function: Callable[..., Any]) -> None:
    for alpha in (True, b"1", None, 1j, np.longdouble(1), np.array([0.05, None])):
        with pytest.raises(TypeError, match=r"^alpha\b.*: "):
            OF_ALPHA[function](alpha)
    for alpha in (-1, math.nan, math.inf, 1 + 2**-52, Fraction(10**20 + 1, 10**20)):
        with pytest.raises(ValueError, match=r"^alpha\b.*: "):
            OF_ALPHA[function](alpha)


def test_no_parameter_after_alpha_is_positional() -> None:
    """``accuracy_to_epsilon(5, 0.05, 200)`` took 200 counts for a sensitivity of 200."""
    found = []
    for function in public_functions():
        parameters = inspect.signature(function).parameters
        if "alpha" in parameters and not function.__name__.startswith("_"):
            found.append(function)
            later = list(parameters.values())[list(parameters).index("alpha") + 1 :]
            ours = function.__module__ != smartnoise.__name__
            assert not ours or all(p.kind is p.KEYWORD_ONLY for p in later), function
    # These draw confidence intervals, and the last what Design.plot computes.
    published = {charts.published_rows, charts.published_table}
    drawn = {plot.histogram, plot.table, *published, plot.preview}
    assert {*found} - drawn == {*OF_ALPHA}
    for function in {*found} - {*published, plot.preview}:
        compat = function.__module__.startswith("geomdp.compat")
        assert compat or inspect.signature(function).parameters["alpha"].default == 0.05, function
    for call in (accuracy_to_epsilon, epsilon_to_accuracy):
        with pytest.raises(TypeError, match="positional"):
            call(5, 0.05, 200)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        BOUNDED.accuracy(0.05, 24)  # type: ignore[misc]
