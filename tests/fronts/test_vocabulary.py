"""The same words for the same things in all public names."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import geomdp.measurement as m
from geomdp import (
    GeometricMechanism,
    accounting,
    accuracy,
    sample_bernoulli,
    sample_two_sided_geometric,
)
from geomdp.compat import diffprivlib, smartnoise
from geomdp.distribution import TwoSidedGeometric
from geomdp.tables import Design, Hierarchy, plot
from geomdp.tables.streams import Stream
from test_import import PUBLIC

#: Attributes that depend on nothing else, and methods: each is one of them on all public classes.
VALUES = {"bounds", "counts", "delta", "epsilon", "frame", "levels", "mechanism", "mechanisms"}
VALUES |= {"scale", "sensitivity"}
METHODS = {"accuracy", "intervals", "privacy_loss", "release", "total"}
#: Given by keyword wherever it need not be given.
BY_KEYWORD = {"budget", "label", "nulls", "rho", "simultaneous", "threads"}
#: Parameters that are real numbers, wherever they occur.
NUMBERS = {"alpha", "delta", "epsilon", "epsilons", "per", "prob", "ratio", "rho", "scale"}
HIERARCHY = Hierarchy({"Oslo": "Europe", "Rome": "Europe"})
DESIGN, TREE = Design(["no", "yes"]), Design({"town": HIERARCHY})
TABLE, LOSSES = DESIGN.count(pd.Series(["no"])), DESIGN.loss_distribution(epsilon=1)
MECHANISM = GeometricMechanism(1)
MSE = {"lower": 0, "upper": 9}
#: Calls that return the same for the same number, 1/2.
CALLS: dict[str, Callable[[Any], Any]] = {
    "mechanism": lambda x: GeometricMechanism(x).privacy_loss(),
    "scale": lambda x: GeometricMechanism.from_scale(x).privacy_loss(),
    "alpha": MECHANISM.accuracy,
    "interval": lambda x: MECHANISM.confidence_interval(5, x),
    "compose": lambda x: accounting.compose({x: 10}, x),
    "compose_delta": lambda x: accounting.compose_delta([1], x),
    "zcdp": accounting.zcdp,
    "rdp": lambda x: accounting.rdp(x, 2),
    "budget": lambda x: accounting.Budget(x).remaining,
    "planned": lambda x: accounting.Budget(x, x, losses={x: 2}).epsilon_spent,
    "rho": lambda x: accounting.Budget(rho=x).rho_spent,
    "delta of losses": LOSSES.delta_at,
    "epsilon of losses": LOSSES.epsilon_at,
    "accuracies": lambda x: accuracy.epsilon_to_accuracy(x, 0.05),
    "relative": lambda x: accuracy.relative_accuracy(x, alpha=x, ratio=x),
    "diffprivlib": lambda x: diffprivlib.Geometric(epsilon=x).mse(0),
    "truncated": lambda x: diffprivlib.GeometricTruncated(epsilon=x, **MSE).mse(0),
    "folded": lambda x: diffprivlib.GeometricFolded(epsilon=x, **MSE).mse(0),
    "smartnoise": lambda x: smartnoise.simple_geometric_mechanism(5, x, 1, 5, 5),
    "smartnoise's accuracy": lambda x: smartnoise.privacy_usage_to_accuracy(x, x),
    "design": lambda x: DESIGN.accuracy(epsilon=x, alpha=x),
    "mechanisms": lambda x: [each.rate for each in DESIGN.mechanisms_for(x).values()],
    "losses": lambda x: DESIGN.loss_distribution(epsilon=x).epsilon_at(),
    "missed": lambda x: DESIGN.missed(5, epsilon=x, at_least=5),
    "spurious": lambda x: DESIGN.spurious(epsilon=x, at_least=5),
    "threshold": lambda x: DESIGN.threshold(epsilon=x, spurious=x),
    "preview": lambda x: DESIGN.preview(epsilons=[x], alpha=x).iloc[0, 1],
    "table": lambda x: TABLE.release(epsilon=x).privacy_loss(),
    "tree": lambda x: [each.rate for each in TREE.mechanisms_for(x).values()],
    "pipeline": lambda x: m.make_base_geometric(x).map(1),
    "noise": lambda x: TwoSidedGeometric(x).pmf(1),
}
#: Calls whose results are random, or pictures.
OTHERS: dict[str, Callable[[Any], Any]] = {
    "bit": sample_bernoulli,
    "sample": lambda x: sample_two_sided_geometric(3, x),
    "guess": lambda x: plot.guess([x]),
    "curve": lambda x: plot.accuracy([x, 1]),
}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("call", [*CALLS, *OTHERS])
def test_number_is_taken_as_text_and_as_a_decimal(call: str) -> None:
    if call in OTHERS:
        for half in ("0.5", "1/2", Decimal("0.5")):
            OTHERS[call](half)
        return
    take = CALLS[call]
    exact = take(Fraction(1, 2))
    for half in ("0.5", "1/2", "5e-1", ".5", "+0.50", Decimal("0.5"), np.str_("0.5")):
        assert take(half) == exact
    assert take("1/3") == take(Fraction(1, 3))


@pytest.mark.parametrize("call", [*CALLS, *OTHERS])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        *(
            (text, ValueError)
            for text in ("", "x", "0,1", "1/0", "1/3e2", "nan", "inf", "1_0", " 1")
        ),
        ("1e999999999", ValueError),
        ("9" * 10_000, ValueError),
        (Decimal("NaN"), ValueError),
        (Decimal("1e999999999"), OverflowError),
        (Decimal("1e-999999999"), OverflowError),
        (Decimal("0." + "1" * 100_000), OverflowError),
    ],
)
def test_text_that_is_no_number_is_refused_at_once(call: str, value: Any, error: Any) -> None:
    # Before it is converted, which could take unlimited time.
    wanted = "fewer digits" if error is OverflowError else "give"
    with pytest.raises(error, match=wanted):
        {**CALLS, **OTHERS}[call](value)


def test_stream_takes_text(tmp_path: Any) -> None:
    for name, tenth in enumerate(("0.1", Decimal("0.1"), Fraction(1, 10))):
        assert Stream.open(tmp_path / str(name), 9, tenth).epsilon == Fraction(1, 10)


def test_numbers_have_the_type_that_takes_text() -> None:
    found = 0
    for name, call in PUBLIC.items():
        # Certificates and parts hold results; other libraries' calls have their parameters.
        if not callable(call) or ".compat." in name:
            continue
        results = "Certificate" in name or name == "geomdp.tables.Part"
        parameters = () if results else inspect.signature(call).parameters.values()
        for parameter in parameters:
            if parameter.name in NUMBERS and parameter.annotation is not parameter.empty:
                stated = str(parameter.annotation)
                assert any(word in stated for word in ("Decimal", "Real", "Numbers")), name
                found += 1
    assert found > 40


def test_an_attribute_is_everywhere_a_value_or_everywhere_a_method() -> None:
    """The privacy loss was a method of a mechanism and a value of a table."""
    found = []
    for name, kind in PUBLIC.items():
        for part in (VALUES | METHODS) & set(dir(kind) if inspect.isclass(kind) else ()):
            found.append(part)
            is_method = inspect.isroutine(inspect.getattr_static(kind, part))
            assert is_method == (part in METHODS), f"{name}.{part}"
    assert {*found} == VALUES | METHODS
    assert len(found) > 50


def test_what_need_not_be_given_is_given_by_keyword() -> None:
    found = set()
    for name, call in PUBLIC.items():
        if not callable(call) or inspect.isclass(call) or ".compat." in name:
            continue
        for parameter in inspect.signature(call).parameters.values():
            if parameter.name in BY_KEYWORD and parameter.default is not parameter.empty:
                assert parameter.kind is parameter.KEYWORD_ONLY, f"{name}: {parameter.name}"
                found.add(parameter.name)
    assert found == BY_KEYWORD


def test_members_hold_numbers_texts_and_public_objects(tmp_path: Any) -> None:
    """Axes and trees of the machinery were members of designs, hierarchies and releases."""
    flat = DESIGN.count(pd.Series(["no"] * 90))
    shown = [DESIGN, TREE, HIERARCHY, Stream.open(tmp_path / "stream", 9), flat]
    shown += [flat.release(epsilon=1), flat.release(epsilon=1, at_least=9), flat.top(1, epsilon=1)]
    shown += [accounting.Budget(1)]
    public = {kind for kind in PUBLIC.values() if inspect.isclass(kind)}
    for each in shown:
        for name in dir(each):
            value = None if name[0] == "_" else getattr(each, name)
            if isinstance(value, Mapping | list | tuple):
                value = next(iter(value.values() if isinstance(value, Mapping) else value), None)
            kind = type(value)
            assert kind in public or not kind.__module__.startswith("geomdp"), f"{each!r}.{name}"


def test_top_shows_ranks_and_no_counts() -> None:
    """Its `counts` held ranks."""
    top = DESIGN.count(pd.Series(["no"] * 90)).top(2, epsilon=1)
    assert top.ranks.tolist() == [1, 2]
    assert {"counts", "at_least"}.isdisjoint(dir(top))
    assert not isinstance(HIERARCHY, Sequence)  # whose `count` and `index` are about leaves
    assert (len(HIERARCHY), list(HIERARCHY), HIERARCHY[-1]) == (2, ["Oslo", "Rome"], "Rome")
