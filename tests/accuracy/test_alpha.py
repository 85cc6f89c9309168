"""The level alpha of every public function: a confidence given by mistake warns."""

import atexit
import inspect
import math
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from geomdp import GeometricMechanism, accuracy, tables
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
from geomdp.tables import plot, streams

BOUNDED, FREE = GeometricMechanism(1, bounds=(0, 9)), GeometricMechanism(1)
DESIGN = tables.Design({"age": [1, 2], "sick": ["no", "yes"]}, individual="who", l0=1)
PEOPLE = pd.DataFrame({"age": [1, 2] * 500, "sick": ["no", "yes"] * 500, "who": range(1000)})
NOISY, OTHER = (DESIGN.count(PEOPLE).release(epsilon=1) for _ in range(2))
GROUPS = DESIGN.count(PEOPLE).release(epsilon=1, at_least=9)
TIERS = DESIGN.count(PEOPLE).release(tiers={"public": "0.1", "own": 1})
TOP = DESIGN.count(PEOPLE).top(2, epsilon=1)
MEANS = DESIGN.sum_and_count(PEOPLE, "age", bounds=(0, 9)).release(epsilon=1)
LIMIT = tables.choose_limit(DESIGN, PEOPLE, "l0", epsilon=1)
FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
STREAM = streams.Stream.open(f"{FOLDER.name}/days.jsonl", horizon=9, epsilon=1)
STREAM.release(0, [5])

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
    tables.Design.accuracy: lambda alpha: DESIGN.accuracy(epsilon=1, alpha=alpha),
    tables.Design.epsilon_for: lambda alpha: DESIGN.epsilon_for(accuracy=5, alpha=alpha),
    tables.Design.preview: lambda alpha: DESIGN.preview([1], alpha=alpha),
    tables.Design.top_accuracy: lambda alpha: DESIGN.top_accuracy(1, epsilon=1, alpha=alpha),
    tables.Design.plot: lambda alpha: DESIGN.plot(alpha=alpha),
    tables.NoisyTable.intervals: NOISY.intervals,
    tables.NoisyTable.plot: lambda alpha: NOISY.plot(alpha=alpha),
    tables.NoisyTiers.plot: lambda alpha: TIERS.plot(alpha=alpha),
    tables.NoisyGroups.intervals: GROUPS.intervals,
    tables.NoisyGroups.left_out: lambda alpha: GROUPS.left_out(1000, alpha=alpha),
    tables.NoisyGroups.most_left_out: GROUPS.most_left_out,
    tables.NoisyGroups.plot: lambda alpha: GROUPS.plot(alpha=alpha),
    tables.Top.accuracy: TOP.accuracy,
    tables.Top.plot: lambda alpha: TOP.plot(alpha=alpha),
    tables.ChosenLimit.cut: LIMIT.cut,
    streams.Stream.interval: lambda alpha: STREAM.interval(0, 1, alpha),
    streams.Stream.plot: lambda alpha: STREAM.plot(alpha=alpha),
}
#: Questions, which give estimates alone without alpha.
QUESTIONS: dict[Callable[..., Any], Callable[[Any], Any]] = {
    tables.Answers.total: lambda alpha: NOISY.total("age", alpha=alpha),
    tables.Answers.percent: lambda alpha: NOISY.percent("age", alpha=alpha),
    tables.Answers.ratio: lambda alpha: NOISY.ratio({"sick": "no"}, {}, alpha=alpha),
    tables.Answers.difference: lambda alpha: NOISY.difference({"age": 1}, {"age": 2}, alpha=alpha),
    tables.Answers.sum: lambda alpha: NOISY.sum("age", alpha=alpha),
    tables.Answers.mean: lambda alpha: NOISY.mean("age", alpha=alpha),
    tables.Answers.quantile: lambda alpha: NOISY.quantile("age", 0.5, alpha=alpha),
    tables.Answers.rate: lambda alpha: NOISY.rate(1000, per=10, alpha=alpha),
    tables.Answers.change_since: lambda alpha: NOISY.change_since(OTHER, alpha=alpha),
    tables.Answers.per: lambda alpha: NOISY.per(OTHER, alpha=alpha),
    tables.NoisyTable.number_of_cells: lambda alpha: NOISY.number_of_cells(at_most=0, alpha=alpha),
    tables.NoisyGroups.plus: lambda alpha: GROUPS.plus(OTHER, alpha=alpha),
    tables.NoisyGroups.largest: lambda alpha: GROUPS.largest(1, alpha=alpha),
    tables.NoisySumAndCount.mean: lambda alpha: MEANS.mean(alpha=alpha),
}
OF_ALPHA |= QUESTIONS


def public_functions() -> Iterator[Callable[..., Any]]:
    for module in (accuracy, opendp_accuracy, smartnoise, diffprivlib, plot):
        yield from filter(inspect.isfunction, vars(module).values())
    published = (getattr(x, name) for x in (tables, streams) for name in x.__all__)
    for kind in (GeometricMechanism, *filter(inspect.isclass, published)):
        for name in dir(kind):
            member = inspect.getattr_static(kind, name)
            if inspect.isfunction(member):
                yield member


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
        if alpha is None and function in QUESTIONS:
            assert "lower" not in QUESTIONS[function](None)
            continue
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
    drawn = {plot.histogram, plot.table, plot.preview}
    assert {*found} - drawn == {*OF_ALPHA}
    for function in {*found} - {plot.preview}:
        compat = function.__module__.startswith("geomdp.compat")
        assert compat or inspect.signature(function).parameters["alpha"].default == 0.05, function
    for call in (accuracy_to_epsilon, epsilon_to_accuracy):
        with pytest.raises(TypeError, match="positional"):
            call(5, 0.05, 200)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        BOUNDED.accuracy(0.05, 24)  # type: ignore[misc]
