"""Operations on releases give releases: what each of them can do, and what it refuses by name."""

import inspect
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp.tables import Design, NoisyGroups, NoisyTable, Top
from geomdp.tables._answers.answers import Combined

PEOPLE = pd.DataFrame({"ward": ["A", "B", "A"] * 60, "sex": ["f", "m"] * 90, "age": [3, 5] * 90})
LEVELS = {"ward": ["A", "B"], "sex": ["f", "m"]}
FLAT = Design(LEVELS)
WARDS, SEXES = (Design({x: LEVELS[x]}, complete=True) for x in LEVELS)
BOTH_LATER = Design(LEVELS, tables=[("ward",), ("ward", "sex")], complete=True)


def released(design: Design = FLAT, **how: Any) -> Any:
    return design.count(PEOPLE).release(**({"epsilon": 1} | how))


def summed() -> Any:
    return FLAT.sum(PEOPLE, "age", bounds=(0, 9)).release(epsilon=1)


NO_COUNTS = "answers of two releases have no 'save': noisy counts, and a file that states them, are"
NO_PLUS = "answers of two releases have no 'plus'"


class Row(NamedTuple):
    """What makes a release of others, which can always be drawn; and the words of refusals."""

    made: Callable[[], Any]
    asked: str = ""
    saved: str = ""
    added: str = ""


#: The operations and what they give, each asked, drawn, saved and added unless it says why not.
OPERATIONS: dict[str, list[Row]] = {
    "plus": [
        Row(lambda: released().plus(released(epsilon=2))),
        Row(lambda: released().plus(released(), released(epsilon="0.1")).plus(released())),
        Row(lambda: released().with_totals(180).plus(released().with_totals(180))),
        Row(lambda: released()._to_multiples(5).plus(released())),
        Row(lambda: released(BOTH_LATER).plus(released(BOTH_LATER))),
        Row(lambda: summed().plus(summed())),
        Row(lambda: released(tiers={"a": "0.1", "b": 1}, epsilon=None)["a"].plus(released())),
    ],
    "combine": [
        Row(made, saved=NO_COUNTS, added=NO_PLUS)
        for made in (
            lambda: released().combine(released(epsilon=2)),
            lambda: released(WARDS).combine(released(SEXES)),
            lambda: released().combine(released()).combine(released()),
            lambda: released().plus(released()).combine(released().plus(released())),
            lambda: released(BOTH_LATER).combine(released(WARDS)),
            lambda: released()._to_multiples(5).combine(released()),
            lambda: summed().combine(summed()),
        )
    ],
    "with_totals": [
        Row(lambda: released().with_totals(180)),
        Row(lambda: released(at_least=5).with_totals(180)),
        Row(
            lambda: released().combine(released()).with_totals(180), saved=NO_COUNTS, added=NO_PLUS
        ),
    ],
    "with_complete": [
        Row(lambda: released().with_complete()),
        Row(lambda: released(at_least=5).with_complete("ward")),
        Row(
            lambda: FLAT.count(PEOPLE).top(2, epsilon=1).with_complete(),
            asked="'Top' object has no attribute 'intervals'",
            added="'Top' object has no attribute 'plus'",
        ),
    ],
}
ROWS = [
    pytest.param(row, id=f"{name} {place}")
    for name, rows in OPERATIONS.items()
    for place, row in enumerate(rows)
]


def test_each_operation_is_in_the_list() -> None:
    """A method of a release that returns a release."""
    kinds = (NoisyTable, NoisyGroups, Top, Combined)
    made = {"Self", *(kind.__name__ for kind in kinds)}
    found = {
        name
        for kind in kinds
        for name, each in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and inspect.signature(each).return_annotation in made
    }
    assert found == {*OPERATIONS}


def tried(ask: Callable[[], Any], refused: str) -> Any:
    """Return what is asked, or None after the refusal that has these words."""
    if not refused:
        return ask()
    with pytest.raises(AttributeError, match=refused):
        ask()
    return None


@pytest.mark.parametrize("row", ROWS)
def test_what_an_operation_gives_is_a_release(row: Row, tmp_path: Path) -> None:
    found = row.made()
    assert found.privacy_loss() >= 1
    assert f"rivacy loss {found.privacy_loss():g} for" in repr(found)
    again = pickle.loads(pickle.dumps(found))
    assert (again.id, repr(again)) == (found.id, repr(found))
    ends = tried(lambda: found.intervals(0.1), row.asked)
    if ends is not None:
        assert (ends["lower"] <= ends["upper"]).all()
        assert again.intervals(0.1).equals(ends)
    found.plot()
    path = tmp_path / "a.csv"
    tried(lambda: found.save(path), row.saved)
    if not row.saved:
        read = geomdp.read(path)
        assert repr(read) == repr(found)
        assert ends is None or read.intervals(0.1).equals(ends)
        assert (read.id, read.epsilon, read.parts) == (found.id, found.epsilon, found.parts)
    tried(lambda: found.plus(row.made()), row.added)


@pytest.mark.parametrize("name", ["frame", "counts", "to_dict", "save", "plus", "consistent"])
def test_answers_of_two_releases_say_where_their_counts_are(name: str) -> None:
    for both in (released().combine(released()), released(WARDS).combine(released(SEXES))):
        assert not hasattr(both, name)
        with pytest.raises(AttributeError, match=f"'{name}'.*Save each, and readers combine"):
            getattr(both, name)
        assert (len(both.parts), len(both.estimates())) == (2, both.design.cells)


def test_readers_of_two_files_combine_them(tmp_path: Path) -> None:
    """Each file may be published, so that answers of both need no third one."""
    one, two = released(WARDS, epsilon="0.5"), released(label="cells")
    both = one.combine(two.with_complete())
    one.save(tmp_path / "one.csv")
    two.with_complete().save(tmp_path / "two.parquet")
    read = geomdp.read(tmp_path / "one.csv").combine(geomdp.read(tmp_path / "two.parquet"))
    assert (read.id, read.epsilon, read.parts) == (both.id, both.epsilon, both.parts)
    assert read.epsilon == 1.5
    assert [part.label for part in read.parts] == [None, "cells"]
    assert read.intervals(0.05).equals(both.intervals(0.05))
    for ask in ("total", "percent"):
        for by in ("ward", "sex", ("ward", "sex")):
            assert getattr(read, ask)(by).equals(getattr(both, ask)(by))


def test_the_loss_of_two_releases_is_that_of_all_of_them() -> None:
    """Of a sum, that of an individual in all its parts; of three releases, of each of them."""
    whole = released().plus(released(epsilon="0.1")).combine(released().plus(released()))
    assert (whole.epsilon, whole.privacy_loss()) == (Fraction("3.1"), 3.1)
    assert repr(whole).startswith(
        "<Answers of 4 releases, privacy loss 3.1 for one individual in all of them: Design("
    )
    three = released().combine(released()).combine(released(epsilon=3))
    assert (three.epsilon, len(three.parts)) == (5, 3)


def test_a_picture_of_two_releases_has_their_estimates_and_the_noise_of_both() -> None:
    both = released(WARDS, epsilon="0.5").combine(released(WARDS, epsilon=2))
    axes = both.plot("ward", alpha=0.1)
    figure: Any = axes.figure
    texts = " ".join(text.get_text() for text in figure.texts)
    assert "Count by ward" in texts
    assert "Line: 90% interval. Noise of 2 releases, of epsilon 0.5 and 2." in texts
    ends = both.total("ward", alpha=0.1)[["lower", "upper"]].to_numpy()
    [lines] = axes.collections
    drawn = np.array(lines.get_segments())[:, :, 0]  # type: ignore[attr-defined]
    assert np.allclose(drawn, ends)
    # Of both there are no wards by sex, so the columns of the first table are drawn.
    apart = released(WARDS).combine(released(SEXES))
    assert [x.get_text() for x in apart.plot().get_yticklabels()] == LEVELS["ward"]
    assert [x.get_text() for x in apart.plot("sex").get_yticklabels()] == LEVELS["sex"]
    with pytest.raises(ValueError, match="no released table has 'ward' and 'sex' together"):
        apart.plot(("ward", "sex"))


def test_counts_at_a_limit_have_open_intervals_by_two_releases() -> None:
    """The intervals of single cells were asked, which two releases do not have."""
    one, two = released(), released()
    one.counts[0, 0] = np.iinfo(np.int64).max
    found = one.combine(two).intervals(0.05)
    assert (found["lower"] == 0).all()
    assert np.isinf(found["upper"]).all()
