"""The modules of the package that need no cluster; tests/clusters has the others."""

import pkgutil

import geomdp
from geomdp.tables._engines import CLUSTERS

_FOUND = {"geomdp", *(found.name for found in pkgutil.walk_packages(geomdp.__path__, "geomdp."))}
MODULES = sorted(
    name for name in _FOUND if name.rpartition(".")[2].removesuffix("_internals") not in CLUSTERS
)
#: Those for users.
PUBLIC = [name for name in MODULES if "._" not in name and name != "geomdp.__main__"]
