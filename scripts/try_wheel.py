"""Try the installed wheel, in an environment that holds it and numpy alone."""

import importlib
import pkgutil
from importlib import metadata

import numpy as np

import geomdp
import geomdp.measurement as m
from geomdp.compat import diffprivlib, smartnoise
from geomdp.distribution import TwoSidedGeometric
from geomdp.keyed import ReleaseKey
from geomdp.tables._engines import ENGINES

installed = {d.name.lower() for d in metadata.distributions()} - {"pip", "setuptools"}
assert installed == {"geomdp", "numpy"}, installed
mechanism = geomdp.GeometricMechanism(epsilon=1, bounds=(0, 100))
noisy = mechanism.release(np.full(1000, 50))
assert set(noisy) <= set(range(101))
assert len(np.unique(noisy)) > 3
count = (m.vector_domain(m.atom_domain(str)), m.symmetric_distance()) >> m.then_count()
assert (count >> m.then_geometric(2.0)).map(1) == 0.5
assert 0 <= diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=9).randomise(5) <= 9
assert 0 <= smartnoise.simple_geometric_mechanism(5, 1, 1, 0, 9) <= 9
# The libraries of the others are not installed.
others = {"opendp", *ENGINES}
skipped = {"__main__", *others, *(f"{name}_internals" for name in others)}
for module in pkgutil.walk_packages(geomdp.__path__, prefix="geomdp."):
    if module.name.split(".")[-1].lstrip("_") not in skipped:
        importlib.import_module(module.name)
assert mechanism.accuracy(0.05) == 3
assert TwoSidedGeometric(1).ppf(0.5) == 0
key, ids = ReleaseKey(), np.arange(1000)
first, second = (key.release(mechanism, noisy, ids, name="n", part=True) for _ in range(2))
assert (first == second).all()
print("the wheel works in an empty environment:", mechanism, noisy[:5], "numpy", np.__version__)
