"""Measurements with privacy maps on numpy arrays, in the manner of OpenDP's framework.

>>> import geomdp.measurement as m
>>> space = m.vector_domain(m.atom_domain(str)), m.symmetric_distance()
>>> histogram = space >> m.then_count_by_categories(["a", "b"]) >> m.then_geometric(scale=2.0)
>>> histogram(["a", "b", "a", "c"]).shape
(3,)
>>> histogram.map(1)
0.5

A *domain* is the set of inputs or outputs of a step, and a *metric* is a distance between its
members. A transformation maps distances to distances. A measurement maps distances to privacy
losses. ``>>`` joins two steps if the output domain and metric of the first are the input domain and
metric of the second. :func:`make_composition` applies several measurements to the same data.
``docs/proofs.md`` states and proves the guarantees (after *Privacy Proofs for OpenDP: Geometric
Measurement*, theorem 1.1).

A type ``T`` is a numpy dtype (``np.int32``, ``"int32"``), a name with the size in bits (``"i8"`` to
``"i64"``, ``"u8"`` to ``"u64"``, ``"f32"``, ``"f64"``), ``"bool"``, ``"String"``, or one of ``int``
(int64), ``float`` (float64), ``bool`` and ``str``.
"""

from types import FunctionType

from geomdp._ground.uncopied import published
from geomdp.measurement import _domains, _geometric, _metrics, _pipeline, _transformations
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
from geomdp.measurement._pipeline import Measurement, Transformation, make_composition
from geomdp.measurement._transformations import (
    make_count,
    make_count_by_bins,
    make_count_by_categories,
    make_sum,
    then_count,
    then_count_by_bins,
    then_count_by_categories,
    then_sum,
)

__all__ = [
    "then_count",
    "then_count_by_categories",
    "then_count_by_bins",
    "then_sum",
    "then_geometric",
    "make_composition",
    "Measurement",
    "Transformation",
    "VectorDomain",
    "vector_domain",
    "AllDomain",
    "atom_domain",
    "SymmetricDistance",
    "symmetric_distance",
    "L1Distance",
    "l1_distance",
    "AbsoluteDistance",
    "absolute_distance",
    "MaxDivergence",
    "max_divergence",
    "make_count",
    "make_count_by_categories",
    "make_count_by_bins",
    "make_sum",
    "make_geometric",
    "make_base_geometric",
]

# Pickles name this module, wherever a class or function is written, and all calls are unseen:
# users have the private ones as functions of measurements.
for _room in (_transformations, _domains, _geometric, _metrics, _pipeline):
    for _name, _value in list(vars(_room).items()):
        if isinstance(_value, type | FunctionType) and _value.__module__ == _room.__name__:
            globals()[_name] = published(_value, __name__)
