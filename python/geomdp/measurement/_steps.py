"""The steps of a pipeline: transformations, measurements, and the operator that joins them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, overload

import numpy as np

from geomdp._release import parameters
from geomdp._release.parameters import Integer, Real
from geomdp.measurement._domains import Domain
from geomdp.measurement._metrics import MaxDivergence, Metric

#: The input or output side of a step; two steps join where these are equal.
Space = tuple[Domain, Metric]


@dataclass(frozen=True, slots=True)
class _Then:
    """The composition of two functions; unlike a closure it can be pickled."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return self.second(self.first(value))


class _Step:
    """Base class of transformations and measurements."""

    __slots__ = ()

    input_domain: Domain
    input_metric: Metric
    function: Callable[[Any], Any]

    def invoke(self, arg: Any) -> Any:
        """Apply the function to data; for a measurement, the result is a release.

        Parameters
        ----------
        arg : int, numpy integer, array or sequence
            A member of the input domain.

        Raises
        ------
        TypeError
            If the type or the shape of `arg` does not fit the input domain.
        OverflowError
            If `arg` is or contains an int outside the type of the input domain.
        OSError
            If the operating system gives no random bytes. Nothing is released then.

        """
        return self.function(arg)

    __call__ = invoke

    @property
    def input_space(self) -> Space:
        """The input domain and metric."""
        return self.input_domain, self.input_metric


@dataclass(frozen=True, slots=True, eq=False)
class Measurement(_Step):
    """A randomized function of data with its privacy map.

    :func:`make_geometric` and ``>>`` make measurements. They are immutable and can be pickled. Any
    number of threads and processes may share one; every call draws fresh noise.
    """

    input_domain: Domain
    input_metric: Metric
    output_measure: MaxDivergence
    #: The domain of the outputs; None after a custom post-processor.
    output_domain: Domain | None
    function: Callable[[Any], Any] = field(repr=False)
    privacy_map: Callable[[int], float] = field(repr=False)

    def map(self, d_in: Integer) -> float:
        """Return the privacy loss for inputs at distance `d_in`, rounded up.

        Parameters
        ----------
        d_in : int
            A distance in the input metric, at least 0.

        Returns
        -------
        float
            Never less than the exact value; infinite if that overflows the type of the measure.

        Raises
        ------
        TypeError
            If `d_in` is not an integer.
        ValueError
            If `d_in` is negative.

        """
        return self.privacy_map(parameters.at_least("d_in", d_in, 0))

    def check(self, d_in: Integer, d_out: Real) -> bool:
        """Return whether the privacy loss for inputs at distance `d_in` is at most `d_out`.

        Parameters
        ----------
        d_in : int
            A distance in the input metric, at least 0.
        d_out : int, float or Fraction
            A privacy loss, at least 0; may be infinite.

        Raises
        ------
        TypeError
            If `d_in` is not an integer, or `d_out` not a number.
        ValueError
            If `d_in` or `d_out` is negative.

        """
        return self.map(d_in) <= _limit(d_out)

    def __rshift__(self, other: Callable[[Any], Any]) -> "Measurement":
        """Return the measurement followed by a function; post-processing costs no privacy."""
        if isinstance(other, _Step | Partial) or not callable(other):
            return NotImplemented
        function = _Then(self.function, other)
        return Measurement(*self.input_space, self.output_measure, None, function, self.privacy_map)


@dataclass(frozen=True, slots=True, eq=False)
class Transformation(_Step):
    """A function of data with its stability map. Immutable; can be pickled."""

    input_domain: Domain
    input_metric: Metric
    output_domain: Domain
    output_metric: Metric
    function: Callable[[Any], Any] = field(repr=False)
    stability_map: Callable[[int], int] = field(repr=False)

    @property
    def output_space(self) -> Space:
        """The output domain and metric."""
        return self.output_domain, self.output_metric

    def map(self, d_in: Integer) -> int:
        """Return the greatest distance between outputs for inputs at distance `d_in`.

        Parameters
        ----------
        d_in : int
            A distance in the input metric, at least 0.

        Raises
        ------
        TypeError
            If `d_in` is not an integer.
        ValueError
            If `d_in` is negative.

        """
        return self.stability_map(parameters.at_least("d_in", d_in, 0))

    def check(self, d_in: Integer, d_out: Integer) -> bool:
        """Return whether outputs for inputs at distance `d_in` are at most `d_out` apart.

        Parameters
        ----------
        d_in, d_out : int
            Distances in the input metric and the output metric, at least 0.

        Raises
        ------
        TypeError
            If `d_in` or `d_out` is not an integer.
        ValueError
            If `d_in` or `d_out` is negative.

        """
        return self.map(d_in) <= parameters.at_least("d_out", d_out, 0)

    @overload
    def __rshift__(self, other: Measurement) -> Measurement: ...
    @overload
    def __rshift__(self, other: "Transformation") -> "Transformation": ...
    @overload
    def __rshift__(self, other: "Partial") -> "Transformation | Measurement": ...

    def __rshift__(self, other: Any) -> Any:
        """Return this step followed by another.

        Raises
        ------
        ValueError
            If the input space of the other step is not the output space of this one.

        """
        if isinstance(other, Partial):
            other = other(*self.output_space)
        if not isinstance(other, Measurement | Transformation):
            return NotImplemented
        if other.input_space != self.output_space:
            raise ValueError(
                f"input_domain, input_metric = {other.input_domain!r}, {other.input_metric!r} do "
                f"not match the previous step's {self.output_domain!r}, {self.output_metric!r}: "
                "give steps with equal domain and metric where they join"
            )
        function = _Then(self.function, other.function)
        if isinstance(other, Transformation):
            stability_map = _Then(self.stability_map, other.stability_map)
            return Transformation(*self.input_space, *other.output_space, function, stability_map)
        return Measurement(
            *self.input_space,
            other.output_measure,
            other.output_domain,
            function,
            _Then(self.stability_map, other.privacy_map),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """A constructor without its domain and metric; ``(domain, metric) >> partial`` completes it."""

    constructor: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self, input_domain: Domain, input_metric: Metric) -> Any:
        """Return the step."""
        return self.constructor(input_domain, input_metric, *self.arguments)

    def __rrshift__(self, space: Space) -> Any:
        """Return the step for a pair of domain and metric."""
        if not isinstance(space, tuple) or len(space) != 2:
            return NotImplemented
        return self(*space)


def unchanged(d_in: int) -> int:
    """Return the distance itself: the stability map of a transformation with constant 1."""
    return d_in


def _limit(d_out: Any) -> float | Fraction:
    if isinstance(d_out, float | np.floating) and d_out == math.inf:
        return math.inf
    return parameters.number("d_out", d_out)
