from geomdp import accounting as accounting
from geomdp import accuracy as accuracy
from geomdp import distribution as distribution
from geomdp import keyed as keyed
from geomdp import measurement as measurement
from geomdp import tables as tables
from geomdp._kernel import kernel
from geomdp.certificate import Certificate
from geomdp.mechanism import GeometricMechanism
from geomdp.samplers import sample_bernoulli, sample_geometric, sample_two_sided_geometric
from geomdp.tables._reading.any_file import read

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
