"""The steps of a pipeline: what they take, what they promise, and how they are joined."""

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

#: Joins two steps, or the constructor of one.
Space = tuple[Domain, Metric]


@dataclass(frozen=True, slots=True)
class _Then:
    """One function after the other: a class, not a closure, so that it can be pickled."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return self.second(self.first(value))


class _Step:
    """What transformations and measurements have in common."""

    __slots__ = ()

    input_domain: Domain
    input_metric: Metric
    function: Callable[[Any], Any]

    def __call__(self, arg: Any) -> Any:
        """Return what the function makes of data: see :meth:`invoke`."""
        return self.function(arg)

    def invoke(self, arg: Any) -> Any:
        """Return what the function makes of data: for a measurement, a release of them.

        Parameters
        ----------
        arg : int, numpy integer, array or sequence
            From the input domain.

        Raises
        ------
        TypeError
            If `arg` is not in the input domain, as far as types and shapes show it.
        OverflowError
            If it is an int, or has one, that is beyond the type of the input domain.
        OSError
            If the operating system gives no random bytes; nothing is released then.

        """
        return self.function(arg)

    @property
    def input_space(self) -> Space:
        """Input domain and metric."""
        return self.input_domain, self.input_metric

    def _must_follow(self, domain: Domain, metric: Metric) -> None:
        if (domain, metric) != self.input_space:
            raise ValueError(
                f"input_domain, input_metric = {self.input_domain!r}, {self.input_metric!r} do not "
                f"follow {domain!r}, {metric!r}: give steps that meet in the same space"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Measurement(_Step):
    """A randomised function of data, and its greatest loss of privacy at each distance of the data.

    Made by :func:`make_geometric`, and by ``>>`` from others. Immutable; may be pickled, and used
    by any number of threads and processes, each call with noise of its own.
    """

    input_domain: Domain
    input_metric: Metric
    output_measure: MaxDivergence
    #: The domain of what comes out; None after a post-processor of one's own.
    output_domain: Domain | None
    function: Callable[[Any], Any] = field(repr=False)
    privacy_map: Callable[[int], float] = field(repr=False)

    def map(self, d_in: Integer) -> float:
        """Return the privacy loss of data at distance `d_in`, rounded up.

        Parameters
        ----------
        d_in : int
            In units of the input metric; not negative.

        Returns
        -------
        float
            Never less than the exact value; infinite where that is beyond the type of the measure.

        Raises
        ------
        TypeError
            If `d_in` is not an integer.
        ValueError
            If `d_in` is negative.

        """
        return self.privacy_map(parameters.at_least("d_in", d_in, 0))

    def check(self, d_in: Integer, d_out: Real) -> bool:
        """Return whether data at distance `d_in` lose at most `d_out`.

        Parameters
        ----------
        d_in : int
            In units of the input metric; not negative.
        d_out : int, float or Fraction
            The loss that would be allowed: not negative; may be infinite.

        Raises
        ------
        TypeError, ValueError
            As `map` does, and for `d_out` likewise.

        """
        return self.map(d_in) <= _limit(d_out)

    def __rshift__(self, other: Callable[[Any], Any]) -> "Measurement":
        """Return the measurement followed by a function of its releases, which costs nothing."""
        if isinstance(other, _Step | Partial) or not callable(other):
            return NotImplemented
        function = _Then(self.function, other)
        return Measurement(*self.input_space, self.output_measure, None, function, self.privacy_map)


@dataclass(frozen=True, slots=True, eq=False)
class Transformation(_Step):
    """A function of data, and how far apart it can bring them: its stability map.

    Immutable; may be pickled.
    """

    input_domain: Domain
    input_metric: Metric
    output_domain: Domain
    output_metric: Metric
    function: Callable[[Any], Any] = field(repr=False)
    stability_map: Callable[[int], int] = field(repr=False)

    @property
    def output_space(self) -> Space:
        """Output domain and metric."""
        return self.output_domain, self.output_metric

    def map(self, d_in: Integer) -> int:
        """Return the greatest distance of outputs for data at distance `d_in`.

        Parameters
        ----------
        d_in : int
            In units of the input metric; not negative.

        Raises
        ------
        TypeError
            If `d_in` is not an integer.
        ValueError
            If `d_in` is negative.

        """
        return self.stability_map(parameters.at_least("d_in", d_in, 0))

    def check(self, d_in: Integer, d_out: Integer) -> bool:
        """Return whether outputs for data at distance `d_in` are at most `d_out` apart.

        Parameters
        ----------
        d_in, d_out : int
            In units of the input and of the output metric; not negative.

        Raises
        ------
        TypeError, ValueError
            As `map` does, and for `d_out` likewise.

        """
        return self.map(d_in) <= parameters.at_least("d_out", d_out, 0)

    @overload
    def __rshift__(self, other: Measurement) -> Measurement: ...
    @overload
    def __rshift__(self, other: "Transformation") -> "Transformation": ...
    @overload
    def __rshift__(self, other: "Partial") -> "Transformation | Measurement": ...

    def __rshift__(self, other: Any) -> Any:
        """Return this step followed by another, whose input space must be this output space.

        Raises
        ------
        ValueError
            If it is not.

        """
        if isinstance(other, Partial):
            other = other(*self.output_space)
        if isinstance(other, Measurement):
            other._must_follow(*self.output_space)
            return Measurement(
                *self.input_space,
                other.output_measure,
                other.output_domain,
                _Then(self.function, other.function),
                _Then(self.stability_map, other.privacy_map),
            )
        if isinstance(other, Transformation):
            other._must_follow(*self.output_space)
            return Transformation(
                *self.input_space,
                *other.output_space,
                _Then(self.function, other.function),
                _Then(self.stability_map, other.stability_map),
            )
        return NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """A constructor that waits for its input domain and metric: ``(domain, metric) >> partial``."""

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
    """Return the distance itself: the stability map of what brings no data farther apart."""
    return d_in


def _limit(d_out: Any) -> float | Fraction:
    if isinstance(d_out, float | np.floating) and d_out == math.inf:
        return math.inf
    return parameters.number("d_out", d_out)
