"""Print a hash of noise from known keys, to compare processors: scripts/arm64.sh."""

import hashlib
import itertools

import numpy as np

from geomdp import GeometricMechanism
from geomdp._inputs.arrays import DTYPES
from geomdp.testing import release_not_private

EPSILONS = (10, 1, 0.1, 1e-3, 1e-6, 1e-15)
BOUNDS = (None, (0, 100))

found = hashlib.sha256()
for dtype, epsilon, bounds in itertools.product(DTYPES, EPSILONS, BOUNDS):
    if bounds is not None or dtype[0] == "i":
        mechanism = GeometricMechanism(epsilon, bounds=bounds)
        counts = np.arange(100).astype(dtype)
        found.update(release_not_private(mechanism, counts, key=bytes(range(32))).tobytes())
print(found.hexdigest())
