from geomdp import accounting as accounting
from geomdp import accuracy as accuracy
from geomdp import consistency as consistency
from geomdp import distribution as distribution
from geomdp import frames as frames
from geomdp import measurement as measurement
from geomdp import plot as plot
from geomdp import streams as streams
from geomdp._kernel import kernel
from geomdp._reading import read
from geomdp.certificate import Certificate
from geomdp.mechanism import GeometricMechanism
from geomdp.samplers import sample_bernoulli, sample_geometric, sample_two_sided_geometric

__all__ = [
    "GeometricMechanism",
    "Certificate",
    "sample_two_sided_geometric",
    "sample_geometric",
    "sample_bernoulli",
    "kernel",
    "read",
]

__version__: str
