"""The modules of the package that need no cluster; tests/clusters has the others."""

import inspect
import pkgutil
from typing import Any

import geomdp
from geomdp.tables._engines import CLUSTERS
from geomdp.tables._limits import Options
from geomdp.tables._release.steps import Publishing

_FOUND = {"geomdp", *(found.name for found in pkgutil.walk_packages(geomdp.__path__, "geomdp."))}
MODULES = sorted(
    name for name in _FOUND if name.rpartition(".")[2].removesuffix("_internals") not in CLUSTERS
)
#: Those for users.
PUBLIC = [name for name in MODULES if "._" not in name and name != "geomdp.__main__"]
#: The records of keywords that signatures unpack.
_RECORDS: dict[str, Any] = {f"Unpack[{each.__name__}]": each for each in (Publishing, Options)}


def signature(call: Any) -> inspect.Signature:
    """Return the signature of a call, with each keyword of a record that it unpacks."""
    made = inspect.signature(call)
    found = []
    for each in made.parameters.values():
        if each.kind is each.VAR_KEYWORD and str(each.annotation).startswith("Unpack"):
            known = _RECORDS[each.annotation].__annotations__
            found += [
                inspect.Parameter(name, each.KEYWORD_ONLY, default=None, annotation=of)
                for name, of in known.items()
            ]
        else:
            found.append(each)
    return made.replace(parameters=found)
