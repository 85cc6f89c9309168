"""Measurements with privacy maps, after OpenDP's framework, on numpy arrays.

>>> import geomdp.measurement as m
>>> space = m.vector_domain(m.atom_domain(str)), m.symmetric_distance()
>>> histogram = space >> m.then_count_by_categories(["a", "b"]) >> m.then_geometric(scale=2.0)
>>> histogram(["a", "b", "a", "c"]).shape
(3,)
>>> histogram.map(1)
0.5

A *domain* is the set of values that a step takes or gives, a *metric* says how far apart two of
them are. A transformation maps distances to distances, a measurement maps them to a loss of
privacy; and ``>>`` joins steps whose domains and metrics meet. ``docs/proofs.md`` states and proves
what each promises (after *Privacy Proofs for OpenDP: Geometric Measurement*, theorem 1.1).

A type ``T`` is a numpy dtype (``np.int32``, ``"int32"``), one of the names ``"i8"`` to ``"i64"``,
``"u8"`` to ``"u64"``, ``"f32"``, ``"f64"``, ``"bool"`` and ``"String"``, whose numbers are bits, or
``int`` (int64), ``float`` (float64), ``bool`` or ``str``.
"""

from geomdp.measurement._counting import (
    make_count,
    make_count_by_bins,
    make_count_by_categories,
    then_count,
    then_count_by_bins,
    then_count_by_categories,
)
from geomdp.measurement._domains import AllDomain, VectorDomain, atom_domain, vector_domain
from geomdp.measurement._geometric import make_base_geometric, make_geometric, then_geometric
from geomdp.measurement._metrics import (
    AbsoluteDistance,
    L1Distance,
    MaxDivergence,
    SymmetricDistance,
    absolute_distance,
    l1_distance,
    max_divergence,
    symmetric_distance,
)
from geomdp.measurement._steps import Measurement, Transformation

__all__ = [
    "AbsoluteDistance",
    "AllDomain",
    "L1Distance",
    "MaxDivergence",
    "Measurement",
    "SymmetricDistance",
    "Transformation",
    "VectorDomain",
    "absolute_distance",
    "atom_domain",
    "l1_distance",
    "make_base_geometric",
    "make_count",
    "make_count_by_bins",
    "make_count_by_categories",
    "make_geometric",
    "max_divergence",
    "symmetric_distance",
    "then_count",
    "then_count_by_bins",
    "then_count_by_categories",
    "then_geometric",
    "vector_domain",
]
