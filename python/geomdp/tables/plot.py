"""Plots of distributions, accuracies and noisy counts, with matplotlib (the extra ``plot``).

Each function draws on the given Axes and returns them. Without Axes, it creates a pyplot figure of
800 by 450 pixels, or more for many names. Notebooks show the figure, which stays open until
``pyplot.close``; ``axes.figure.savefig("plot.png")`` writes it to a file. Matplotlib's settings do
not change, and styles such as ``dark_background`` apply. Since distributions of counts are
discrete, they are drawn as stems, or as steps where stems do not fit. Series differ in line style
or marker as well as in colour, and the colours are Okabe and Ito's palette for all kinds of colour
vision. Letters that the font lacks are taken from other fonts of the system, and matplotlib warns
if none has them; it joins and orders the letters of Arabic or Hindi from version 3.11 on. Axes that
you pass keep their margins, so create their figure with ``layout="constrained"`` to leave room for
long names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp import accuracy as _accuracy
from geomdp._ground import parameters
from geomdp._ground.parameters import Integer, Real
from geomdp._ground.uncopied import public
from geomdp._noise import as_counts, limits
from geomdp.distribution import CensoredGeometric
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._pictures import drawing
from geomdp.tables._pictures.charts import histogram, table
from geomdp.tables._pictures.drawing import BLUE, STEMS, STEPS, VERMILION, Floats, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["histogram", "table", "accuracy", "guess", "pmf"]

# Grey, which shows on dark backgrounds too, stands for the palette's black.
_COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#808080")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
#: The numbers of epsilons between the first and the last at which accuracies of counts are drawn,
#: and those of a design, whose sums take longer.
_BETWEEN, _PREVIEWED = 200, 80
#: Probabilities at the ends that are this many times those between make the axis logarithmic.
_STEEP = 20
#: The probability of noise that falls outside the plot of a distribution.
_UNSEEN = Fraction(1, 200)


def pmf(mechanism: GeometricMechanism, counts: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the probability of each noisy count, for one or more true counts.

    This is the ideal distribution, censored at the bounds of the mechanism or the limits of the
    dtype (:class:`geomdp.distribution.CensoredGeometric`; *Geometric Mechanism Notes*, figure 2.1).
    Around each true count, the plot covers all but 1/200 of the noise. If that is more than about
    2000 outputs, it shows only every k-th output from the true count, and both ends. Where bounds
    collect most of the noise, the probabilities are on a logarithmic scale.

    Parameters
    ----------
    mechanism : GeometricMechanism
        The mechanism that releases the counts.
    counts : int, numpy integer, array or sequence of ints
        True counts, at most 7 distinct ones. Those outside the bounds are clamped.
    ax : matplotlib Axes, optional
        The Axes to draw on; a new figure if not given.

    Returns
    -------
    Axes
        Noisy count against probability.

    Examples
    --------
    >>> from geomdp import GeometricMechanism
    >>> from geomdp.tables import plot
    >>> mechanism = GeometricMechanism(epsilon=0.1, bounds=(0, 30))
    >>> axes = plot.pmf(mechanism, [0, 10, 20])

    """
    drawing.check_axes(ax)
    array = as_counts(mechanism, counts)
    ends = limits(mechanism, array.dtype)
    distinct = list(dict.fromkeys(array.reshape(-1).tolist()))
    _check_number("counts", distinct)
    pmfs = {
        drawing.in_full(count): _release(mechanism, ends, count, array.dtype) for count in distinct
    }
    axes = drawing.axes(ax)
    _draw_pmfs(axes, pmfs)
    only = f" for true count {drawing.in_full(distinct[0])}" if len(distinct) == 1 else ""
    return drawing.finish(axes, f"noisy count{only}", "probability", legend="true count")


def accuracy(
    epsilons: Numbers,
    *,
    alpha: Real = 0.05,
    n: Integer | Sequence[Integer] = (1, 10, 100, 1000),
    sensitivity: Real = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against epsilon, for one or more numbers of counts.

    With probability ``1 - alpha`` the errors of all n counts are at most the accuracy
    (:func:`geomdp.accuracy.epsilon_to_accuracy`), for noise without bounds. The curves are steps,
    drawn at the given epsilons and at 200 between the first and the last; up to the next of these,
    a curve stays at the accuracy of the lower one, which is never better.

    Parameters
    ----------
    epsilons : array or sequence of numbers
        At least two positive numbers, in increasing order.
    alpha : number
        The level of the accuracy, above 0 and at most 1.
    n : int or sequence of ints
        Numbers of counts, at most 7; each is a curve.
    sensitivity : number
        The sensitivity of the counts; positive.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        Epsilon against accuracy in counts. Both axes are logarithmic, but accuracies up to 1 are
        linear.

    Examples
    --------
    >>> from geomdp.tables import plot
    >>> axes = plot.accuracy([0.05, 10])

    """
    drawing.check_axes(ax)
    exact, places = _epsilons(epsilons, _BETWEEN)
    level = parameters.level("alpha", alpha)
    reach = parameters.positive_fraction("sensitivity", sensitivity)
    texts = [f"{number:g}" for number in drawing.drawable("alpha or sensitivity", [level, reach])]
    items = [n] if parameters.is_integer(n) else drawing.items("n", n)
    numbers = [parameters.at_least("n", item, 1) for item in items]
    _check_number("numbers n", numbers)
    curves = {
        drawing.in_full(number): drawing.drawable(
            "an accuracy",
            _accuracy.epsilon_to_accuracy(np.array(exact), alpha, sensitivity=reach, n=number),
            positive=False,
        )
        for number in numbers
    }
    axes = drawing.axes(ax)
    _draw_accuracies(axes, places, curves)
    of = f" of all {numbers[0]:,}" if len(numbers) == 1 and numbers != [1] else ""
    given = f", sensitivity {texts[1]}" if reach != 1 else ""
    y = f"accuracy{of} at level {texts[0]}{given} (counts)"
    return drawing.finish(axes, "epsilon", y, legend="counts at once")


def guess(epsilon: Real | Numbers, *, ax: Axes | None = None) -> Axes:
    """Draw how much a release can change a guess about an individual.

    Somebody who knows all other records believes with some probability p that an individual is
    among the data. For each p, a band shows what this probability can become after a release,
    whatever the noisy counts are: from ``p / (p + (1 - p) * exp(epsilon))`` to
    ``p / (p + (1 - p) * exp(-epsilon))``. This is Bayes' rule, since no noisy count is more than
    ``exp(epsilon)`` times as probable with the individual as without it, or the other way round
    (Kasiviswanathan and Smith, *On the 'Semantics' of Differential Privacy*, 2014).

    Parameters
    ----------
    epsilon : number, or array or sequence of numbers
        The privacy loss of the individual over everything published, or up to 7 such losses;
        positive. Each is a band, and the legend shows its range for a guess of 50%. For a group
        known to be among the data together or not at all, give the sum of its members' losses.
    ax
        As in :func:`pmf`.

    Returns
    -------
    Axes
        The probability before the release against those after it.

    Examples
    --------
    >>> from geomdp.tables import plot
    >>> axes = plot.guess([0.1, 0.5, 2])

    """
    drawing.check_axes(ax)
    several = isinstance(epsilon, list | tuple | np.ndarray)
    items = drawing.items("epsilon", epsilon) if several else [epsilon]
    _check_number("epsilons", items)
    exact = [parameters.positive_fraction("epsilon", item) for item in items]
    losses = drawing.drawable("one of epsilon", exact)
    axes = drawing.axes(ax)
    # Closer at the ends, where the curves are steep.
    before = (1 - np.cos(np.linspace(0, math.pi, 201))) / 2
    axes.plot(before, before, color="#808080", linewidth=1, label="no release")
    for loss, colour, line in zip(losses, _COLOURS, _LINES, strict=False):
        # Factors beyond exp(700) would overflow, and draw the same.
        less, more = np.exp(np.array([1, -1]) * min(loss, 700))
        ends = [before / (before + (1 - before) * factor) for factor in (less, more)]
        half = f"{100 / (1 + less):.1f}% to {100 / (1 + more):.1f}%"
        axes.fill_between(before, *ends, color=colour, alpha=0.12, linewidth=0)
        axes.plot(before, ends[0], linestyle=line, color=colour, label=f"{loss:g}: {half}")
        axes.plot(before, ends[1], linestyle=line, color=colour)
    axes.margins(0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    legend = "epsilon:\nwhat 50% becomes"
    # The curves fill the Axes, so the legend is beside them.
    return drawing.finish(
        axes, "guess before the release", "guess after it", legend, loc=(1.02, 0.4)
    )


def preview(
    epsilons: Numbers,
    accuracies: Callable[[list[Fraction]], Mapping[str, Sequence[int]]],
    alpha: Real,
    *,
    ax: Axes | None,
) -> Axes:
    """Draw the accuracies of a design's release by epsilon, for :meth:`Design.plot`."""
    drawing.check_axes(ax)
    exact, places = _epsilons(epsilons, _PREVIEWED)
    [level] = drawing.drawable("alpha", [parameters.level("alpha", alpha)])
    curves = accuracies(exact)
    _check_number("curves", curves)
    axes = drawing.axes(ax)
    _draw_accuracies(axes, places, curves)
    y = f"accuracy at level {level:g} (counts)"
    return drawing.finish(axes, "epsilon of the table", y, legend="accuracy of")


def _release(
    mechanism: GeometricMechanism, limits: tuple[int, int], count: int, dtype: np.dtype[Any]
) -> tuple[Floats, Floats]:
    """Return outputs around a true count, and their probabilities."""
    lower, upper = limits
    center = min(max(count, lower), upper)
    reach = max(_accuracy.scale_to_accuracy(mechanism.scale, _UNSEEN), 2)
    first, last = max(lower, center - reach), min(upper, center + reach)
    step = (last - first) // STEPS + 1
    inside = [*range(center, first, -step), *range(center, last, step)]
    outputs = np.array(sorted({first, last, *inside}), dtype=dtype)
    masses = CensoredGeometric(center, mechanism.scale, limits).pmf(outputs)
    return drawing.increasing("outputs", outputs), masses


def _draw_accuracies(axes: Axes, epsilons: Floats, curves: Mapping[str, Any]) -> None:
    """Draw each accuracy until the next epsilon: there it is no greater."""
    for (label, curve), colour, line in zip(curves.items(), _COLOURS, _LINES, strict=False):
        axes.step(epsilons, curve, where="post", linestyle=line, color=colour, label=label)
    drawing.scale(axes, "x", "log")
    drawing.scale(axes, "y", "symlog", linthresh=1, subs=range(2, 10))
    axes.set_ylim(bottom=-0.1, auto=None)


def _draw_pmfs(axes: Axes, pmfs: Mapping[str, tuple[Floats, Floats]]) -> None:
    inside = max(max(masses[1:-1], default=0) for _, masses in pmfs.values())
    steep = max(masses.max() for _, masses in pmfs.values()) > _STEEP * inside > 0
    few = not steep and sum(len(outputs) for outputs, _ in pmfs.values()) <= STEMS
    shift = min(0.25, 0.7 / len(pmfs))
    for i, (name, (outputs, masses)) in enumerate(pmfs.items()):
        if few:
            # Stems of the same output stand side by side.
            places = outputs + shift * (i - (len(pmfs) - 1) / 2)
            stems = axes.vlines(places, 0, masses, color=_COLOURS[i], linewidth=1)
            stems.sticky_edges.y.append(0)  # No margin below, as for steps.
            axes.plot(places, masses, _MARKERS[i], color=_COLOURS[i], markersize=4, label=name)
        else:
            between = (outputs[:-1] + outputs[1:]) / 2
            edges = np.concatenate([outputs[:1] - 0.5, between, outputs[-1:] + 0.5])
            style: dict[str, Any] = {"color": _COLOURS[i], "linestyle": _LINES[i], "linewidth": 1.5}
            axes.stairs(masses, edges, label=name, **style)
            # A step at a bound would be too thin to see.
            high = [end for end, next_ in ((0, 1), (-1, -2)) if masses[end] > masses[next_]]
            axes.plot(outputs[high], masses[high], _MARKERS[i], color=_COLOURS[i], markersize=4)
    if steep:
        drawing.scale(axes, "y", "log")
        axes.set_ylim(bottom=inside / 1000, auto=None)
    drawing.number(axes, "x")


def _epsilons(epsilons: Any, between: int) -> tuple[list[Fraction], Floats]:
    """Return epsilons and others between them, exactly and as floats."""
    exact = [
        parameters.positive_fraction("epsilons", item)
        for item in drawing.items("epsilons", epsilons)
    ]
    if len(exact) < 2:
        raise ValueError(parameters.refusal("epsilons", epsilons, "two or more"))
    given = drawing.increasing("epsilons", drawing.drawable("one of epsilons", exact)).tolist()
    more = np.geomspace(given[0], given[-1], between + 2)[1:-1].tolist()
    all_ = {each: Fraction(each) for each in more if given[0] < each < given[-1]}
    all_ |= dict(zip(given, exact, strict=True))
    return [all_[each] for each in sorted(all_)], np.array(sorted(all_))


def _check_number(name: str, series: Any) -> None:
    if not 1 <= len(series) <= len(_COLOURS):
        raise ValueError(f"{len(series)} {name} are not accepted: give from 1 to {len(_COLOURS)}")


public(__name__)
