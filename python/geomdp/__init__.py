"""The geometric mechanism of differential privacy: exactly private, constant time, fast.

>>> from geomdp import GeometricMechanism
>>> mechanism = GeometricMechanism(epsilon=0.5, bounds=(0, 4526))
>>> noisy = mechanism.release([512, 313, 353, 207])
>>> mechanism.privacy_loss()
0.5
"""

#: The module of each name, imported at first use: the command begins before numpy is imported. The
#: stub says the same to type checkers.
_HOMES = {
    "GeometricMechanism": "mechanism",
    "Certificate": "certificate",
    "sample_two_sided_geometric": "samplers",
    "sample_geometric": "samplers",
    "sample_bernoulli": "samplers",
    "kernel": "_kernel",
    "read": "tables._reading.any_file",
}
#: Modules that are imported at first use as attributes.
_MODULES = ("accounting", "accuracy", "distribution", "keyed", "measurement", "tables")
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 (not a public name)

    if name == "__version__":
        globals()[name] = import_module("importlib.metadata").version("geomdp")
        return globals()[name]
    if name in _MODULES:
        return import_module(f"geomdp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"geomdp.{_HOMES[name]}"), name)
    hiding = import_module("geomdp._ground.uncopied")
    value = globals()[name] = hiding.published(found, __name__)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES, "__version__"})
