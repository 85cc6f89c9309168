"""Pickles name public modules alone, which stay where they are when code moves."""

import importlib
import inspect
import io
import pickle
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from geomdp import GeometricMechanism, accounting, distribution, keyed, tables
from geomdp import measurement as m
from geomdp.compat import diffprivlib
from leaves import of_leaves
from modules import PUBLIC

MECHANISM = GeometricMechanism(epsilon=0.5, bounds=(0, 9))
SPACE = m.vector_domain(m.atom_domain(T="String")), m.symmetric_distance()
INTEGERS = m.vector_domain(m.atom_domain(T=int)), m.symmetric_distance()
COUNT = SPACE >> m.then_count()
TREE = tables.Hierarchy({"a": "all", "b": "all"}, leaves_only=True)
STEPS = [
    COUNT,
    SPACE >> m.then_count_by_categories(["a", "b"]),
    INTEGERS >> m.then_count_by_bins([0, 5, 9]),
    INTEGERS >> m.then_sum((0, 9)),
    COUNT >> m.then_geometric(scale=2.0),
    m.then_geometric(scale=2.0),
    m.make_composition([COUNT >> m.then_geometric(scale=2.0)] * 2),
]
YES = tables.count(pd.Series(["no"]), ["yes", "no"])
SUMMED = tables.Design({"n": [1]}).sum_and_count(pd.DataFrame({"n": [1]}), "n", bounds=(0, 9))
PICKLED = [
    MECHANISM,
    GeometricMechanism.from_scale(2),
    MECHANISM.certificate(),
    accounting.loss_distribution(MECHANISM),
    accounting.Booking("2026", Fraction(1), Fraction(1), None, ("Norway",)),
    accounting.Protects("record", "add-remove"),
    distribution.TwoSidedGeometric(2),
    distribution.CensoredGeometric(3, 2, (0, 9)),
    diffprivlib.Geometric(epsilon=1),
    diffprivlib.GeometricTruncated(epsilon=1, lower=0, upper=9),
    diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=9),
    keyed.ReleaseKey(),
    tables.Design(["yes", "no"]),
    tables.EmptyTableWarning("no records"),
    tables.count(pd.Series(["no"]), ["yes", "no"]).release(epsilon=1),
    tables.count(pd.Series(["no"]), ["yes", "no"]).release(epsilon=1, at_least=1),
    tables.choose_limit(
        tables.Design({"n": ["no"]}, individual="who", l0=1),
        pd.DataFrame({"n": ["no"], "who": [1]}),
        "l0",
        epsilon=1,
    ),
    tables.count(pd.Series(["no"]), ["yes", "no"]).top(1, epsilon=1),
    SUMMED.release(epsilon=1),
    tables.count(pd.Series(["no"]), ["yes", "no"]).release(tiers={"a": "0.1", "b": 1}),
    *MECHANISM.tier_plans([Fraction(1, 9)]),
    MECHANISM.tier_plans([Fraction(1, 9)])[0].certificate(),
    MECHANISM.tiers([1, 2], [Fraction(1, 9)]),
    *YES.release(tiers={"a": "0.1", "b": 1})["a"].plus(YES.release(epsilon=1)).parts,
    TREE,
    tables.Words("ab", 3, common=["a"]),
    of_leaves(TREE, [3, 5]).release(epsilon=1),
    *SPACE,
    m.atom_domain(T=int),
    m.absolute_distance(T=int),
    m.l1_distance(T=int),
    m.max_divergence(),
    *STEPS,
]


class Names(pickle.Unpickler):
    """Notes the modules that a pickle names."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.modules.add(module)
        return super().find_class(module, name)


@pytest.mark.parametrize("made", PICKLED, ids=lambda made: type(made).__name__)
def test_pickles_name_public_modules(made: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        names = Names(pickle.dumps(made, protocol))
        assert type(names.load()) is type(made)
        ours = {name for name in names.modules if name.startswith("geomdp")}
        assert not any(part.startswith("_") for name in ours for part in name.split("."))


#: They hold exact counts, a budget, a session of a cluster, or what a library hands them.
NOT_PICKLED = {"Budget", "Release", "SeriesNamespace", "SumAndCount", "Table"}


def test_every_public_class_is_tried() -> None:
    modules = map(importlib.import_module, PUBLIC)
    public = [getattr(module, x) for module in modules for x in getattr(module, "__all__", [])]
    found = {value.__name__ for value in public if inspect.isclass(value)}
    # The first has a class for its objects, the second needs a file: tests/tables/test_streams.py.
    found -= {"Answers", "Stream"}
    assert found == NOT_PICKLED | {type(made).__name__ for made in PICKLED} - {"Partial"}
