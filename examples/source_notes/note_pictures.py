"""The kinds of pictures in the source notes: distributions, variances, and errors by epsilon.

Each function draws on the given Axes. ``geomdp.tables.plot`` has the pictures of releases.
"""

import math
from collections.abc import Mapping

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes

from geomdp import GeometricMechanism, accuracy

GREY = "#808080"
STYLES = cycler(color=["#0072B2", "#D55E00", "#009E73"], linestyle=["-", "--", ":"])
#: The rate where the variance of Laplace noise is 10 times that of geometric noise.
TENFOLD = 5.836793003415957


def distribution(axes: Axes, pmfs: Mapping[str, np.ndarray]) -> None:
    """Draw distributions of outputs from 0, by their names, as stems side by side."""
    axes.set_prop_cycle(STYLES)
    for i, (name, masses) in enumerate(pmfs.items()):
        places = np.arange(len(masses)) + 0.25 * (i - (len(pmfs) - 1) / 2)
        [points] = axes.plot(places, masses, "os^"[i], markersize=4, label=name)
        stems = axes.vlines(places, 0, masses, color=points.get_color(), linewidth=1)
        stems.sticky_edges.y.append(0)  # No margin below; the Axes may share theirs.
    axes.set(xlabel="noisy count", ylabel="probability")


def variance(axes: Axes, epsilons: np.ndarray) -> None:
    """Draw the variances of geometric and of Laplace noise, and mark two ratios of them."""
    axes.set_prop_cycle(STYLES)
    axes.plot(epsilons, [_variance(epsilon) for epsilon in epsilons], label="geometric")
    axes.plot(epsilons, 2 / epsilons**2, label="Laplace")
    for epsilon in (3, TENFOLD):
        ends = [_variance(epsilon), 2 / epsilon**2]
        axes.plot([epsilon, epsilon], ends, ".-", color=GREY, linewidth=1)
        axes.annotate(
            f"ratio {ends[1] / ends[0]:.3g} at epsilon {epsilon:.3g}",
            (epsilon, ends[0]),
            xytext=(-6, -4),
            textcoords="offset points",
            horizontalalignment="right",
            verticalalignment="center",
        )
    _logarithmic(axes, "variance (squared counts)")


def error(axes: Axes, epsilons: np.ndarray, errors: Mapping[str, np.ndarray]) -> None:
    """Draw the mean of each series of runs (rows) by epsilon, within one standard deviation."""
    axes.set_prop_cycle(STYLES)
    means = {name: runs.mean(axis=0) for name, runs in errors.items()}
    for name, mean in means.items():
        [line] = axes.plot(epsilons, mean, label=name)
        deviation = errors[name].std(axis=0)
        ends = mean - deviation, mean + deviation
        axes.fill_between(epsilons, *ends, color=line.get_color(), alpha=0.2, linewidth=0)
    _logarithmic(axes, "L1 error (counts)")
    # A band may reach below 0, and the mean of few runs may be 0.
    axes.set_ylim(bottom=min(mean[mean > 0].min(initial=math.inf) for mean in means.values()) / 2)


def _variance(epsilon: float) -> float:
    return float(accuracy.variance(GeometricMechanism(epsilon), 0))


def _logarithmic(axes: Axes, y: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=y)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()
