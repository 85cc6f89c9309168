"""The geometric mechanism of differential privacy: exactly private, constant time, fast.

>>> from geomdp import GeometricMechanism
>>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 4526))
>>> noisy = mechanism.release([512, 313, 353, 207])
>>> mechanism.map(1)
0.5
"""

from geomdp._release.certificate import Certificate
from geomdp._release.certificate import Digit as _Digit
from geomdp._release.kernel import kernel
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.samplers import sample_bernoulli, sample_geometric, sample_two_sided_geometric

# Pickles name this module, wherever a class is written.
_Digit.__qualname__ = "_Digit"
for _kind in (GeometricMechanism, Certificate, _Digit):
    _kind.__module__ = __name__

__version__ = "0.1.0"

__all__ = [
    "GeometricMechanism",
    "Certificate",
    "sample_two_sided_geometric",
    "sample_geometric",
    "sample_bernoulli",
    "kernel",
]
