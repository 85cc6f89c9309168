"""The geometric mechanism of differential privacy: exactly private, constant time, fast.

>>> from geomdp import GeometricMechanism
>>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 4526))
>>> noisy = mechanism.release([512, 313, 353, 207])
>>> mechanism.map(1)
0.5
"""

from geomdp._kernel import kernel
from geomdp.certificate import Certificate
from geomdp.mechanism import GeometricMechanism
from geomdp.samplers import sample_bernoulli, sample_geometric, sample_two_sided_geometric

__version__ = "0.1.0"

__all__ = [
    "GeometricMechanism",
    "Certificate",
    "sample_two_sided_geometric",
    "sample_geometric",
    "sample_bernoulli",
    "kernel",
]
