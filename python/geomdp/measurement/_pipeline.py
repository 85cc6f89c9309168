"""The steps of a pipeline: transformations, measurements, and the operator that joins them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, overload

import numpy as np

from geomdp._ground import decimals, notebook, parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._numerics import composition
from geomdp.measurement._domains import Domain
from geomdp.measurement._metrics import MaxDivergence, Metric, rounded_up

#: The input or output side of a step; two steps join where these are equal.
Space = tuple[Domain, Metric]


@notebook.showable
@dataclass(frozen=True, slots=True)
class _Then:
    """The composition of two functions; unlike a closure it can be pickled."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return self.second(self.first(value))

    def __str__(self) -> str:
        return f"{_described(self.first)}, then {_described(self.second)}"


@notebook.showable
@dataclass(frozen=True, slots=True)
class Times:
    """The stability map of a transformation: distances grow by at most a constant factor."""

    factor: int

    def __call__(self, d_in: int) -> int:
        return self.factor * d_in


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
        arg : int, numpy integer, array, sequence or column
            A member of the input domain. Noisy counts have the index and name of a column, or the
            keys of a mapping.

        Examples
        --------
        >>> import geomdp.measurement as m
        >>> counts = m.vector_domain(m.atom_domain(int)), m.l1_distance(int)
        >>> noise = counts >> m.then_geometric(scale=2)
        >>> noise.invoke([12, 7]).shape
        (2,)

        """
        return self.function(arg)

    __call__ = invoke

    @property
    def input_space(self) -> Space:
        """The input domain and metric."""
        return self.input_domain, self.input_metric


@notebook.showable
@dataclass(frozen=True, slots=True, eq=False)
class Measurement(_Step):
    """A randomised function of data with its privacy map.

    :func:`make_geometric`, ``>>`` and :func:`make_composition` make measurements. They are
    immutable and can be pickled. Any number of threads and processes may share one; every call
    draws fresh noise.

    Attributes
    ----------
    input_domain : VectorDomain or AllDomain
        The set of inputs.
    input_metric : SymmetricDistance, L1Distance or AbsoluteDistance
        The distance between inputs.
    output_measure : MaxDivergence
        The measure of the privacy loss.
    output_domain : VectorDomain, AllDomain or None
        The set of outputs; None for a composition, and after a function joined by ``>>``.

    Examples
    --------
    >>> import geomdp.measurement as m
    >>> ages = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
    >>> noisy_count = ages >> m.then_count() >> m.then_geometric(scale=2)
    >>> type(noisy_count([30, 40, 50])), noisy_count.map(1)
    (<class 'int'>, 0.5)

    """

    input_domain: Domain
    input_metric: Metric
    output_measure: MaxDivergence
    output_domain: Domain | None
    function: Callable[[Any], Any] = field(repr=False)
    #: The exact pure privacy loss of each release inside, for inputs at a distance.
    losses: Callable[[int], list[Fraction | float]] = field(repr=False)

    def map(self, d_in: Integer) -> float:
        """Return the privacy loss for inputs at distance `d_in`, rounded up.

        Parameters
        ----------
        d_in : int
            A distance in the input metric, at least 0.

        Returns
        -------
        float
            Its text never states less than the exact value; infinite if that overflows the type of
            the measure.

        Examples
        --------
        >>> import geomdp.measurement as m
        >>> counts = m.vector_domain(m.atom_domain(int)), m.l1_distance(int)
        >>> noise = counts >> m.then_geometric(scale=2)
        >>> noise.map(3)
        1.5

        """
        losses = self.losses(parameters.at_least("d_in", d_in, 0))
        if math.inf in losses:
            return math.inf
        total = composition.total(Counter(Fraction(loss) for loss in losses))
        # Floats of 32 bits are read as the numbers that they store.
        rounded = decimals.up if self.output_measure.is_narrow else decimals.least
        return rounded_up(self.output_measure, rounded(total))

    def map_approx(self, d_in: Integer, delta: Real) -> float:
        """Return an epsilon such that outputs are (epsilon, delta)-private at distance `d_in`.

        This is :func:`geomdp.accounting.compose` for the releases of the measurement. For many
        releases it is far below their sum (``docs/proofs.md``, section 14).

        Parameters
        ----------
        d_in : int
            A distance in the input metric, at least 0.
        delta : number
            From 0 to 1.

        Returns
        -------
        float
            The epsilon, rounded up. It equals :meth:`map` for delta 0, and is infinite if `d_in` is
            positive and a release adds no noise.

        Examples
        --------
        >>> from geomdp.measurement import (
        ...     absolute_distance, atom_domain, make_composition, make_geometric
        ... )
        >>> daily = make_geometric(atom_domain(int), absolute_distance(int), scale=10)
        >>> month = make_composition([daily] * 30)
        >>> month.map(1), round(month.map_approx(1, delta=1e-6), 2)
        (3.0, 2.35)

        """
        losses = self.losses(parameters.at_least("d_in", d_in, 0))
        level = parameters.probability("delta", delta)
        groups = Counter(Fraction(loss) for loss in losses if 0 < loss < math.inf)
        epsilon = math.inf if math.inf in losses else composition.epsilon(groups, level)
        return rounded_up(self.output_measure, epsilon)

    def check(self, d_in: Integer, d_out: Real) -> bool:
        """Return whether the privacy loss for inputs at distance `d_in` is at most `d_out`.

        Parameters
        ----------
        d_in : int
            A distance in the input metric, at least 0.
        d_out : number
            A privacy loss, at least 0; may be infinite.

        Examples
        --------
        >>> import geomdp.measurement as m
        >>> counts = m.vector_domain(m.atom_domain(int)), m.l1_distance(int)
        >>> noise = counts >> m.then_geometric(scale=2)
        >>> noise.check(d_in=1, d_out=0.5), noise.check(d_in=2, d_out=0.5)
        (True, False)
        >>> (counts >> m.then_geometric(scale=10)).check(d_in=1, d_out=0.1)
        True

        """
        loss, limit = self.map(d_in), _limit(d_out)
        if loss == math.inf or self.output_measure.is_narrow:
            return loss <= limit
        return parameters.decimal(loss) <= limit

    def __rshift__(self, other: Callable[[Any], Any]) -> Measurement:
        """Return the measurement followed by a function; post-processing costs no privacy.

        >>> import geomdp.measurement as m
        >>> space = m.atom_domain(int), m.absolute_distance(int)
        >>> rounded = space >> m.then_geometric(scale=2) >> (lambda noisy: round(noisy, -1))
        >>> rounded(120) % 10, rounded.map(1)
        (0, 0.5)
        """
        if isinstance(other, _Step | Partial) or not callable(other):
            return NotImplemented
        function = _Then(self.function, other)
        return Measurement(*self.input_space, self.output_measure, None, function, self.losses)

    def _repr_html_(self) -> str:
        return notebook.table(
            "Measurement",
            {
                "input": f"{self.input_domain!r}, {self.input_metric!r}",
                "function": _described(self.function),
                "privacy loss at distance 1": f"{self.map(1)!r}, {self.output_measure!r}",
            },
        )


@notebook.showable
@dataclass(frozen=True, slots=True)
class _Each:
    """Applies several functions to one value."""

    functions: tuple[Callable[[Any], Any], ...]

    def __call__(self, value: Any) -> list[Any]:
        return [function(value) for function in self.functions]

    def __str__(self) -> str:
        times = Counter(map(_described, self.functions))
        return "; ".join(f"{n} times: {text}" if n > 1 else text for text, n in times.items())


def make_composition(measurements: Sequence[Measurement]) -> Measurement:
    """Return a measurement that applies several measurements to the same data.

    Its privacy loss is the sum of theirs: :meth:`Measurement.map` adds the exact losses and rounds
    up once, and :meth:`Measurement.map_approx` composes them for a delta
    (:func:`geomdp.accounting.compose`).

    Parameters
    ----------
    measurements : list or tuple of Measurement
        At least one; all with the same input domain, input metric and output measure.

    Returns
    -------
    Measurement
        Its function returns the list of outputs, in order.

    Examples
    --------
    A noisy mean, as a noisy sum over a noisy count:

    >>> import geomdp.measurement as m
    >>> ages = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
    >>> count = ages >> m.then_count() >> m.then_geometric(scale=2)
    >>> total = ages >> m.then_sum((0, 120)) >> m.then_geometric(scale=240)
    >>> both = m.make_composition([count, total])
    >>> both.map(1)
    1.0
    >>> n, years = both([30, 40, 50] * 1000)
    >>> abs(years / n - 40) < 5
    True

    """
    wanted = "a list or tuple of at least one Measurement"
    if not isinstance(measurements, list | tuple):
        raise TypeError(parameters.foreign("measurements", measurements, wanted))
    if not measurements:
        raise ValueError(parameters.refusal("measurements", measurements, wanted))
    first: Measurement = measurements[0]
    for place, part in enumerate(measurements):
        if not isinstance(part, Measurement):
            kind = type(part).__name__
            raise TypeError(f"measurements[{place}] has type {kind}: give a Measurement")
        same_space = part.input_space == first.input_space
        if not same_space or part.output_measure != first.output_measure:
            raise ValueError(
                f"measurements[{place}] = {part!r} does not match {first!r}: give measurements "
                "with equal input domain, input metric and output measure"
            )
    return Measurement(
        *first.input_space,
        first.output_measure,
        None,
        _Each(tuple(part.function for part in measurements)),
        _Then(_Each(tuple(part.losses for part in measurements)), _flat),
    )


def _flat(lists: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


@notebook.showable
@dataclass(frozen=True, slots=True, eq=False)
class Transformation(_Step):
    """An immutable function of data, with its stability map, which can be pickled.

    Attributes
    ----------
    input_domain, output_domain : VectorDomain or AllDomain
        The sets of inputs and of outputs.
    input_metric, output_metric : SymmetricDistance, L1Distance or AbsoluteDistance
        The distances between inputs and between outputs.

    Examples
    --------
    >>> import geomdp.measurement as m
    >>> ages = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
    >>> count = ages >> m.then_count()
    >>> count([30, 40, 50]), count.map(2)
    (3, 2)

    """

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

        Examples
        --------
        >>> import geomdp.measurement as m
        >>> ages = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
        >>> (ages >> m.then_sum(bounds=(0, 120))).map(2)
        240

        """
        return self.stability_map(parameters.at_least("d_in", d_in, 0))

    def check(self, d_in: Integer, d_out: Integer) -> bool:
        """Return whether outputs for inputs at distance `d_in` are at most `d_out` apart.

        Parameters
        ----------
        d_in, d_out : int
            Distances in the input metric and the output metric, at least 0.

        Examples
        --------
        >>> import geomdp.measurement as m
        >>> ages = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
        >>> (ages >> m.then_count()).check(d_in=1, d_out=1)
        True

        """
        return self.map(d_in) <= parameters.at_least("d_out", d_out, 0)

    @overload
    def __rshift__(self, other: Measurement) -> Measurement: ...
    @overload
    def __rshift__(self, other: Transformation) -> Transformation: ...
    @overload
    def __rshift__(self, other: Partial) -> Transformation | Measurement: ...

    def __rshift__(self, other: Any) -> Any:
        """Return this step followed by another, whose input space is this one's output space.

        >>> import geomdp.measurement as m
        >>> ages = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
        >>> noisy = m.make_count(*ages) >> m.then_geometric(scale=2)
        >>> noisy.map(1)
        0.5
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
            _Then(self.stability_map, other.losses),
        )


@notebook.showable
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


def _described(function: Callable[[Any], Any]) -> str:
    """Return a description of a function, without its address or the values that it holds."""
    kind: Any = type(function)
    if kind.__str__ is object.__str__:
        return str(getattr(function, "__name__", kind.__name__))
    return str(function)


def _limit(d_out: Any) -> float | Fraction:
    if isinstance(d_out, float | np.floating) and d_out == math.inf:
        return math.inf
    return parameters.nonnegative_number("d_out", d_out)
