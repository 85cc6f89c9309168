"""What users in a hurry type: they are told what to type instead, or asked what they meant."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from geomdp import GeometricMechanism
from geomdp.accounting import Budget
from geomdp.tables import Design
from geomdp.tables.streams import Stream

DESIGN = Design({"town": ["Oslo", "Rome"]})
TABLE = DESIGN.count(pd.DataFrame({"town": ["Oslo", "Rome"] * 50, "n": 1}))
RELEASES: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE.release(epsilon=1),
    "groups": lambda: TABLE.release(epsilon=1, at_least=10),
    "top": lambda: TABLE.top(1, epsilon=1),
    "tier": lambda: TABLE.release(tiers={"a": 1, "b": 2})["a"],
}


@pytest.mark.parametrize("kind", RELEASES)
def test_a_release_that_is_used_as_a_frame_says_where_its_frame_is(kind: str) -> None:
    noisy = RELEASES[kind]()
    for name in ("head", "to_csv", "plot_it", "columns", "groupby"):
        with pytest.raises(AttributeError, match=rf"{name}'.* in \.frame, and \.save\(path\)"):
            getattr(noisy, name)
        assert not hasattr(noisy, name)
    with pytest.raises(TypeError, match=r"not subscriptable: its columns are those of \.frame"):
        noisy["count"]
    with pytest.raises(TypeError, match="not iterable"):
        iter(noisy)
    # What the hints name is there, and errors of attributes are their own.
    assert "town" in noisy.frame
    assert len(noisy.to_dict()) >= 1
    for name in ("__array__", "__dataframe__", "_repr_latex_"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(noisy, name)


def asked(call: Callable[[], Any]) -> list[str]:
    """Return the questions of a call; they are of the place that called the library."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {each.filename for each in caught} <= {__file__}
    return [str(each.message) for each in caught if "percentage" in str(each.message)]


LARGE: dict[str, Callable[[Any, Any], Any]] = {
    "epsilon": lambda x, _: TABLE.release(epsilon=x),
    "mechanism": lambda x, _: TABLE.release(GeometricMechanism(x)),
    "groups": lambda x, _: TABLE.release(epsilon=x, at_least=3),
    "tiers": lambda x, _: TABLE.release(tiers={"a": "0.1", "b": x}),
    "top": lambda x, _: TABLE.top(1, epsilon=x),
    "stream": lambda x, path: Stream.open(path / f"{x}.jsonl", horizon=5, epsilon=x),
}


@pytest.mark.parametrize("kind", LARGE)
def test_an_epsilon_above_10_asks_once_whether_a_percentage_was_meant(
    kind: str, tmp_path: Path
) -> None:
    [question] = asked(lambda: LARGE[kind](50, tmp_path))
    assert question.startswith("epsilon = 50 is above 10: ")
    assert "Was a percentage meant? 50% is epsilon = 0.5. " in question
    assert asked(lambda: LARGE[kind](10, tmp_path)) == []


def test_the_question_comes_before_anything_is_paid(tmp_path: Path) -> None:
    budget = Budget(epsilon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="percentage"):
            TABLE.release(epsilon=50, budget=budget, label="x", save=tmp_path / "a.csv")
        with pytest.raises(UserWarning, match="percentage"):
            Stream.open(tmp_path / "s.jsonl", horizon=5, epsilon=50, budget=budget)
    assert budget.spent == []
    assert [*tmp_path.iterdir()] == []
