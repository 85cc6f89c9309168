"""Calls with any value for one of their parameters: errors name it, and show no counts."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import geomdp.measurement as m
from geomdp import (
    GeometricMechanism,
    accounting,
    accuracy,
    sample_bernoulli,
    sample_geometric,
    tables,
)
from geomdp.compat import diffprivlib, opendp_accuracy, smartnoise
from geomdp.distribution import CensoredGeometric, TwoSidedGeometric
from geomdp.keyed import ReleaseKey, check_arguments
from geomdp.notes import rejection, remap

BOUNDED = GeometricMechanism(0.5, bounds=(0, 20))
CENSORED = CensoredGeometric(4, 2, (0, 20))
NOISE = TwoSidedGeometric(Fraction(7, 3))
REMAP = remap.bayes(BOUNDED, np.ones(21), "absolute")
IDS = [np.array([1])]
PEOPLE = pd.DataFrame({"town": ["a", "b"], "who": [1, 2]})
INTS = m.VectorDomain(m.AllDomain("i8")), m.SymmetricDistance()
#: Names of parameters, and calls with any value for them.
CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("epsilon|scale", lambda x: GeometricMechanism(x, bounds=(0, 9)).certificate()),
    ("sensitivity|scale", lambda x: GeometricMechanism(1, x, (0, 9)).certificate()),
    ("prob", sample_bernoulli),
    ("prob|trials", lambda x: sample_geometric(x, 3)),
    ("trials", lambda x: sample_geometric(0.5, 3, x)),
    ("distance", GeometricMechanism(1).privacy_loss),
    ("alpha", BOUNDED.accuracy),
    ("alpha", lambda x: accuracy.scale_to_accuracy(1, x)),
    ("scale", lambda x: accuracy.scale_to_accuracy(x, 0.05)),
    ("scale", lambda x: accuracy.scale_to_accuracy(x, 0.05, method="continuous")),
    ("accuracy", lambda x: accuracy.accuracy_to_scale(x, 0.05)),
    ("accuracy", lambda x: accuracy.accuracy_to_epsilon(x, 0.05, method="ceiling")),
    ("epsilon", lambda x: accuracy.epsilon_to_accuracy(x, 0.05)),
    ("sensitivity", lambda x: accuracy.accuracy_to_epsilon(3, 0.05, sensitivity=x)),
    ("scale", lambda x: opendp_accuracy.discrete_laplacian_scale_to_accuracy(x, 0.05)),
    ("accuracy", lambda x: opendp_accuracy.accuracy_to_discrete_laplacian_scale(x, 0.05)),
    ("n", lambda x: accuracy.simultaneous_accuracy(BOUNDED, 0.05, n=x) if x is not None else 0),
    ("n", lambda x: accuracy.scale_to_accuracy(1, 0.05, n=x)),
    ("weights", lambda x: accuracy.sum_confidence_interval(BOUNDED, [4, 5, 6], 0.05, weights=x)),
    ("ratio", lambda x: accuracy.relative_accuracy(0.5, 0.05, ratio=x)),
    ("released|counts", lambda x: accuracy.ratio_confidence_interval(BOUNDED, 3, x, 0.05)),
    ("side", lambda x: BOUNDED.confidence_interval(3, 0.05, side=x)),
    ("distribution", lambda x: accuracy.bias(BOUNDED, 3, distribution=x)),
    ("scale", lambda x: TwoSidedGeometric(x).pmf([0, 1, 10**15])),
    ("scale", lambda x: CensoredGeometric(3, x, (0, 9)).logsf([-1, 0, 5])),
    ("bounds", lambda x: CensoredGeometric(3, 1, x)),
    ("center|centers|count", lambda x: CensoredGeometric(x, 1, (0, 9)).mean()),
    ("q", NOISE.ppf),
    ("q", CENSORED.isf),
    ("confidence", NOISE.interval),
    ("k", NOISE.cdf),
    ("k", CENSORED.logpmf),
    ("epsilon", lambda x: rejection.loss(x, 30)),
    ("epsilon", lambda x: rejection.calibrated_epsilon(x, 30)),
    ("n", lambda x: rejection.loss(0.5, x)),
    ("counts", lambda x: rejection.pmf(0.5, 20, x)),
    ("prior", lambda x: remap.bayes(BOUNDED, x, "squared")),
    ("loss", lambda x: remap.bayes(BOUNDED, np.ones(21), x)),
    ("released|counts", REMAP),
    ("epsilon|scale", lambda x: diffprivlib.Geometric(epsilon=x).randomise(3)),
    ("sensitivity|scale", lambda x: diffprivlib.Geometric(epsilon=1, sensitivity=x).randomise(3)),
    ("random_state", lambda x: diffprivlib.Geometric(epsilon=1, random_state=x)),
    ("lower|bounds", lambda x: diffprivlib.GeometricTruncated(epsilon=1, lower=x, upper=9)),
    ("upper|bounds", lambda x: diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=x)),
    ("epsilon|scale", lambda x: smartnoise.simple_geometric_mechanism(3, x, 1, 0, 9)),
    ("sensitivity|scale", lambda x: smartnoise.simple_geometric_mechanism(3, 1, x, 0, 9)),
    ("min|max|bounds", lambda x: smartnoise.simple_geometric_mechanism(3, 1, 1, x, 9)),
    ("scale", lambda x: m.make_geometric(m.AllDomain("i8"), m.AbsoluteDistance("i8"), x)),
    ("T", m.AllDomain),
    ("categories", lambda x: m.make_count_by_categories(*INTS, x)),
    ("edges", lambda x: m.make_count_by_bins(*INTS, x)),
    ("TO", lambda x: m.make_count(*INTS, x)),
    ("bounds", lambda x: m.make_sum(*INTS, x)),
    ("bounds", lambda x: m.make_sum(*INTS, (x, 9))),
    ("measurements", m.make_composition),
    ("delta", lambda x: m.make_base_geometric(1).map_approx(1, x)),
    ("bounds", lambda x: GeometricMechanism(1, bounds=x)),
    ("scale", GeometricMechanism.from_scale),
    ("dtype", BOUNDED.certificate),
    ("tight", lambda x: BOUNDED.certificate(tight=x)),
    ("threads", lambda x: BOUNDED.release([1], threads=x)),
    ("nulls", lambda x: BOUNDED.release(pd.Series([1]), nulls=x)),
    ("alpha", BOUNDED.accuracy),
    ("alpha", lambda x: BOUNDED.confidence_interval(3, x)),
    ("alpha", lambda x: accuracy.epsilon_to_accuracy(1, x)),
    ("accuracy", lambda x: accuracy.accuracy_to_epsilon(x, 0.2)),
    ("method", lambda x: accuracy.scale_to_accuracy(1, 0.1, method=x)),
    ("epsilon", accounting.Budget),
    ("delta", lambda x: accounting.Budget(1, x)),
    ("label", lambda x: accounting.Budget(1).spend(BOUNDED, label=x)),
    ("d_in|costs", lambda x: accounting.Budget(1).spend(BOUNDED, x)),
    ("releases|noisy counts", lambda x: accounting.loss_distribution(BOUNDED) * x),
    ("l0|noisy counts", lambda x: accounting.loss_distribution(BOUNDED, l0=x)),
    ("linf", lambda x: accounting.loss_distribution(BOUNDED, linf=x)),
    ("l0", lambda x: tables.bound_contributions(PEOPLE, "who", l0=x)),
    ("column", lambda x: tables.bound_contributions(PEOPLE, x, l0=1)),
    ("column", lambda x: tables.bound_contributions(PEOPLE, "who", l0=1, cells=[x])),
    ("column|unhashable", lambda x: tables.count(PEOPLE, {"town": ["a"]}, other={x: "else"})),
    ("name", lambda x: tables.count(PEOPLE, {"town": ["a"]}, name=x)),
    ("other", lambda x: tables.count(PEOPLE, {"town": ["a"]}, other=[x])),
    ("margins|column", lambda x: tables.count(PEOPLE, {"who": [1]}, margins=x)),
    ("levels", lambda x: tables.count(PEOPLE, {"town": x})),
    ("name", lambda x: ReleaseKey().release(BOUNDED, [1], IDS, name=x)),
    ("part", lambda x: ReleaseKey().release(BOUNDED, [1], IDS, name="n", part=x)),
    ("ids", lambda x: check_arguments({"n": BOUNDED}, x, ["n"])),
]
