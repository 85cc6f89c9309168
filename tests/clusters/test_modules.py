"""The checks of tests/fronts/test_import.py for the modules that need an engine."""

import doctest
import importlib
import json
import subprocess
import sys
from types import ModuleType

import pytest

from contract import night
from geomdp.tables._engines import CLUSTERS
from test_import import check_documentation, check_untried_version


@pytest.fixture(params=CLUSTERS, name="module")
def _module(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(f"geomdp.tables.{request.param}")


def test_public_objects_are_documented(module: ModuleType) -> None:
    assert module.__all__
    for name in module.__all__:
        check_documentation(f"{module.__name__}.{name}", getattr(module, name))


def test_docstring_examples() -> None:
    """The tests of Spark and Ray run theirs on a cluster."""
    failed, attempted = doctest.testmod(importlib.import_module("geomdp.tables.dask"), globs={})
    assert failed == 0
    assert attempted > 3


@pytest.mark.parametrize(
    ("package", "below"),
    [("pyspark", "4.4"), ("dask", "2027.0"), *night(("distributed", "2027.0"))],
)
def test_versions_with_untried_internals_raise(package: str, below: str) -> None:
    check_untried_version(f"tables.{'spark' if package == 'pyspark' else 'dask'}", package, below)


def test_package_needs_no_engine() -> None:
    script = "import json, sys, geomdp, geomdp.keyed; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert not set(json.loads(done.stdout)) & set(CLUSTERS.values())
