"""Levels that are rules: words of an alphabet, and ranges of any length."""

import itertools
import json
import math
import pickle
import time
import unicodedata
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geomdp
from geomdp import GeometricMechanism, accounting, tables
from geomdp._numerics import scatter
from geomdp.tables import Design, Hierarchy, Words
from geomdp.tables._count import counting
from geomdp.tables._facts import axes, classes, exact_sums, rules
from geomdp.tables._facts.rules import Common

LETTERS = "abcdefghijklmnopqrstuvwxyz"
FRAME = pd.DataFrame(
    {
        "who": np.arange(6000) % 1500,
        "word": ["the", "noise", "zebra", "Upper"] * 1500,
        "id": [7, -5, 2**40, 10**17] * 1500,
        "country": ["DE", "BR"] * 3000,
        "n": 1,
        "cents": 5,
    }
)
ACCENTED = unicodedata.normalize("NFC", "e\u0301")


def dictionary(alphabet: str, shortest: int, longest: int) -> list[str]:
    """Return all words, in the order of a dictionary by the alphabet."""
    found = (
        "".join(word)
        for length in range(shortest, longest + 1)
        for word in itertools.product(alphabet, repeat=length)
    )
    return sorted(found, key=lambda word: [alphabet.index(letter) for letter in word])


# Rules


@pytest.mark.parametrize(
    ("alphabet", "shortest", "longest"),
    [("ab", 1, 4), ("abc", 2, 4), ("ba", 3, 3), ("x\U0001f600-,", 1, 3), (f"b{ACCENTED}a", 1, 3)],
)
def test_places_are_those_of_a_dictionary(alphabet: str, shortest: int, longest: int) -> None:
    words = Words(alphabet, longest, shortest=shortest)
    listed = dictionary(alphabet, shortest, longest)
    assert words.size == len(listed)
    assert [words.place(word) for word in listed] == [*range(len(listed))]
    assert [words.label(place) for place in range(words.size)] == listed
    beyond = [alphabet[0] * n for n in (0, shortest - 1, longest + 1)]
    for item in (
        *beyond,
        alphabet[0] + "?" * (longest - 1),
        "?",
        None,
        5,
        2.5,
        b"ab",
        ("a",),
        True,
    ):
        assert words.place(item) == -1


@given(st.text(LETTERS, min_size=1, max_size=200), st.text(LETTERS, min_size=1, max_size=200))
def test_long_words_keep_their_order(one: str, other: str) -> None:
    words = Words(LETTERS, 200)
    places = [words.place(each) for each in (one, other)]
    assert [words.label(place) for place in places] == [one, other]
    assert (places[0] < places[1]) == (one < other)


@pytest.mark.parametrize(
    "within",
    [range(-(2**63), 2**63), range(10**9, -(10**9), -3), range(0, 2**62, 2**30 + 1), range(2**25)],
)
def test_ranges_of_any_length_are_rules(within: range) -> None:
    rule = rules.of(within)
    assert isinstance(rule, rules.Integers)
    # Lengths beyond int64 are no lengths for Python.
    assert rule.size == (within[-1] - within[0]) // within.step + 1
    for place in (0, 1, rule.size // 3, rule.size - 1):
        label = rule.label(place)
        assert label == within[place]
        assert rule.place(label) == rule.place(np.int64(label)) == place
        assert rule.of_text(str(label)) == label
    for item in (
        within[0] - within.step,
        "7",
        None,
        0.5,
        math.nan,
        math.inf,
        b"7",
        object(),
        "9" * 9999,
    ):
        assert rule.place(item) == -1
    for text in ("07", "+7", " 7", "7.0", "x", "9" * 9999):
        assert rule.of_text(text) is None
    assert (
        Design({"id": within}) == eval(repr(Design({"id": within}))) != Design({"id": range(2**30)})
    )
    assert rules.of(range(2**24)) is None


def test_words_that_are_not_in_nfc_are_none() -> None:
    words = Words("\u0323\u0301ae", 3)
    assert words.place("a\u0323") == words.place(unicodedata.normalize("NFD", "e\u0301")) == -1
    axis = Design({"word": words})._axes[0]
    places = range(words.size)
    levels = [words.label(place) for place in places if axis.is_level(place)]
    assert levels == [x for x in map(words.label, places) if unicodedata.is_normalized("NFC", x)]
    assert 0 < len(levels) < words.size


def test_a_rule_has_no_length_and_cannot_be_listed() -> None:
    for rule in (Words(LETTERS, 30), Design({"id": range(2**60)}).levels["id"]):
        for listing in (list, set, sorted, enumerate, lambda x: [*x]):
            with pytest.raises(TypeError, match="cannot be listed"):
                listing(rule)
        with pytest.raises(TypeError):
            len(rule)
        with pytest.raises(TypeError, match=r"not iterable|cannot be listed"):
            5 in rule  # noqa: B015


# Cells


def product_of_rules() -> tuple[Design, list[tuple[str, str, str]], set[tuple[str, str, str]]]:
    """Return a small design of two rules and a list, its cells, and those of common words."""
    one, two = Words("ab", 2, common=["b", "ab"]), Words("xyz", 1, common=["z"])
    design = Design({"one": one, "sex": ["f", "m"], "two": two}, other={"one": "(other)"})
    cells = list(
        itertools.product(
            ["a", "aa", "ab", "b", "ba", "bb", "(other)"], ["f", "m"], ["x", "y", "z"]
        )
    )
    common = {x for x in cells if x[0] in ("b", "ab", "(other)") and x[2] == "z"}
    return design, cells, common


def test_points_of_a_class_fall_on_each_of_its_cells_once() -> None:
    design, cells, common = product_of_rules()
    both = classes.Classes(design._axes, (3, 9))
    assert both.places == (len(common), len(cells))
    fallen = [both.cells(number, range(both.places[number])) for number in (0, 1)]
    assert sorted(fallen[0]) == [x for x, cell in enumerate(cells) if cell in common]
    # Those of the last class may fall on others, where they are dropped.
    assert fallen[1] == [-1 if cell in common else x for x, cell in enumerate(cells)]
    assert both.least(np.arange(len(cells))).tolist() == [3 if x in common else 9 for x in cells]
    [alone] = [classes.Classes(design._axes, 4)]
    assert alone.places == (len(cells),)
    assert alone.cells(0, range(len(cells))) == [*range(len(cells))]


def test_common_words_stand_beside_ids_of_64_bits() -> None:
    """A length beyond int64 is none for Python: fuzzing found it."""
    words = Words(LETTERS, 40, common=["the", "noise"])
    design = Design({"word": words, "id": range(-(2**63), 2**63)})
    at_least = design.threshold(epsilon=1)
    both = classes.Classes(design._axes, at_least)
    assert both.places == (2**65, words.size * 2**64)
    [last] = both.cells(0, [2**65 - 1])
    assert last == words.place("noise") * 2**64 + 2**64 - 1
    assert both.least(np.array([last, last + 1], object)).tolist() == [*at_least]
    noisy = design.count(FRAME).release(epsilon=1, at_least=at_least)
    assert {("the", 7), ("noise", -5), ("zebra", 2**40)} <= {*noisy.to_dict()}


@pytest.mark.parametrize("asked", [3, 10**4])
def test_a_long_list_of_common_words_is_looked_up_by_the_cells(asked: int) -> None:
    """The places of a list of 2 * 10^5 words in a file took 40 seconds."""
    listed = ["".join(each) for each in itertools.product("xyz", LETTERS, LETTERS)]
    words = Words(LETTERS, 9, common=listed)
    design, found = Design({"word": words}, other="(other)"), list[str]()

    class Counted(Words):
        def place(self, item: Any) -> int:
            found.append(item)
            return super().place(item)

    known = Common(Counted(LETTERS, 9, common=words.common), words.size + 1)
    cells = [words.place("xab"), words.place("abx"), words.size, *range(asked - 3)]
    common = [words.label(x) in words.common for x in cells[:2]]
    own = [*known.among(cells)]
    assert own[:3] == [*common, True] == [True, False, True]
    assert not any(own[3:])
    assert len(found) == (0 if asked == 3 else len(listed))
    assert len(known) == classes.Classes(design._axes, (3, 9)).places[0]


def test_points_on_texts_that_are_no_words_are_dropped() -> None:
    words = Words("\u0301ae", 2)
    all_cells = classes.Classes(Design({"word": words})._axes, 5)
    for place, cell in enumerate(all_cells.cells(0, range(words.size))):
        assert cell == (place if unicodedata.is_normalized("NFC", words.label(place)) else -1)


@given(st.data())
def test_cells_beyond_int64_are_numbered_as_others(draw: st.DataObject) -> None:
    sizes = draw.draw(st.lists(st.integers(1, 2**70), min_size=1, max_size=4))
    places = [draw.draw(st.lists(st.integers(0, n - 1), min_size=3, max_size=3)) for n in sizes]
    arrays = [
        np.array(x, np.int64 if n <= 2**62 else object) for x, n in zip(places, sizes, strict=True)
    ]
    cells = axes.raveled(arrays, sizes, 3)
    wanted = [0, 0, 0]
    for at, size in zip(places, sizes, strict=True):
        wanted = [cell * size + x for cell, x in zip(wanted, at, strict=True)]
    assert cells.tolist() == wanted
    assert [each.tolist() for each in axes.unraveled(cells, sizes)] == places
    assert exact_sums.received(exact_sums.sent(cells)).tolist() == wanted
    numbers = exact_sums.numbered(cells).tolist()
    assert [numbers[x] == numbers[y] for x in range(3) for y in range(3)] == [
        wanted[x] == wanted[y] for x in range(3) for y in range(3)
    ]
    counts = np.arange(1, 4)
    added = exact_sums._added(math.prod(sizes), cells, counts)
    found = dict(zip(*(x.tolist() for x in added), strict=True))
    by_cell: Counter[int] = Counter()
    for cell, n in zip(wanted, counts.tolist(), strict=True):
        by_cell[cell] += n
    assert +Counter(found) == by_cell
    assert list(found) == sorted(found)


# Counting


MAKERS: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "objects": lambda x: pd.DataFrame(x, dtype=object),
    "categories": lambda x: pd.DataFrame(x).astype({"word": "category"}),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}
SMALL = Words("abc", 3)
ODD = ["a", "abc", "ABC", "", "abcd", "cab", "é", "a", None, "ccc"]


@pytest.mark.parametrize("library", MAKERS)
@pytest.mark.parametrize("other", [None, "(other)"])
def test_a_rule_counts_as_a_list_of_its_words_does(library: str, other: str | None) -> None:
    if library in ("polars", "lazy", "pyarrow", "pandas", "categories", "objects"):
        data = {"who": [*range(5)] * 8, "word": ODD * 4, "sex": ["f", "m", "m", "f"] * 10}
        if library == "objects":
            data["who"] = [str(x) for x in data["who"]]  # type: ignore[misc]
    frame, listed = MAKERS[library](data), dictionary("abc", 1, 3)
    for limits in ({}, {"individual": "who", "l0": 80, "linf": 2}):
        how: dict[str, Any] = {"other": None if other is None else {"word": other}, **limits}
        by_rule = Design({"sex": ["f", "m"], "word": SMALL}, **how).count(frame)
        by_list = Design({"sex": ["f", "m"], "word": listed}, **how).count(frame)
        found, wanted = (
            {cell: n for cell, n in zip(*(x.tolist() for x in table._occupied), strict=True) if n}
            for table in (by_rule, by_list)
        )
        assert found == wanted
        assert by_rule.design.sensitivity == by_list.design.sensitivity


WIDE = range(-(2**63), 2**63)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([5, -3, 2**40, 5, 2**50, -(2**50)], "int64"),
        ([5, None, 2**40, 5], "Int64"),
        ([5, 255, 7, 5], "uint8"),
        ([5.0, 0.5, math.nan, 5.0], "float64"),
        ([5, "5", None, 5], "object"),
    ],
)
@pytest.mark.parametrize("within", [WIDE, range(-10, 2**41), range(2**41, -11, -1)])
def test_integers_count_by_value(values: list[Any], dtype: str, within: range) -> None:
    frame = pd.DataFrame({"id": pd.array(values, dtype)})
    if dtype == "float64" and within is WIDE:  # which floats would round
        within = range(-(2**53), 2**53 + 1)
    table = Design({"id": within}).count(frame)
    cells, records = table._occupied
    rule = rules.of(within)
    assert rule is not None
    found = {rule.label(x): n for x, n in zip(cells.tolist(), records.tolist(), strict=True)}
    whole = [int(x) for x in values if isinstance(x, int | float) and x % 1 == 0]
    wanted = Counter(x for x in whole if x in within)
    assert found == wanted
    assert len({type(x) for x in cells.tolist()} - {int}) == 0


@pytest.mark.parametrize("levels", [[5, 2**40], range(2**50), range(-(2**63), 2**63)])
def test_columns_of_128_bits_count_by_value(levels: Any) -> None:
    frame = pl.DataFrame({"id": pl.Series([5, 2**64 + 5, 2**40, 5], dtype=pl.Int128)})
    _, records = Design({"id": levels}).count(frame)._occupied
    assert records.tolist() == [2, 1]


def test_sums_and_limits_are_those_of_lists() -> None:
    words = Words(LETTERS, 40)
    table = Design({"word": words}, individual="who", l0=2).sum(FRAME, "cents", bounds=(0, 10))
    assert table._occupied[0].dtype == object
    assert table.sensitivity == 20
    assert set(table._occupied[1].tolist()) <= {10 * n for n in range(1501)} | {5 * 1500 * 2}
    limit = tables.choose_limit(
        Design({"word": words}, individual="who", l0=5), FRAME, "l0", epsilon=8
    )
    assert limit.limit == 1  # Everybody has one word.


def test_counts_by_a_rule_refuse_what_may_be_totals() -> None:
    design = Design({"word": Words(LETTERS, 12)})
    with pytest.raises(ValueError, match="'all' of 'word', which is named like a total"):
        design.count(FRAME, counts="n")
    stated = [x for x in counting._TOTALS_LISTED if x.islower()]
    table = design.count(FRAME, counts="n", not_totals=stated)
    assert table._occupied[1].tolist() == [1500, 1500, 1500]
    short = Design({"word": Words("xyz", 12)})
    assert short.count(FRAME, counts="n")._occupied[1].size == 0
    with pytest.raises(ValueError, match="not_totals have 'A'"):
        design.count(FRAME, not_totals=["A"])


# Releases


def drawn(monkeypatch: pytest.MonkeyPatch, reach: Any, fallen: Any) -> None:
    """Make noise of these shifts, and points of these values on these places."""

    def points(plan: Any) -> list[Any]:
        found = []
        for each, own in zip(plan.classes, fallen, strict=True):
            bits = 64 * each.words
            words = [-(-(place << bits) // each.places) for place, _ in own]
            assert [each.place(_split(x, each.words)) for x in words] == [x for x, _ in own]
            rows = np.array([_split(x, each.words) for x in words], np.uint64)
            values = np.array([value for _, value in own], np.int64)
            found.append((values, rows.reshape(len(own), each.words)))
        return found

    monkeypatch.setattr(scatter.Plan, "reach", reach)
    monkeypatch.setattr(scatter.Plan, "points", points)


def _split(number: int, words: int) -> list[int]:
    return [number >> 64 * at & 2**64 - 1 for at in reversed(range(words))]


def test_rows_are_those_of_noise_and_points(monkeypatch: pytest.MonkeyPatch) -> None:
    design, cells, common = product_of_rules()
    at = {cell: place for place, cell in enumerate(cells)}
    records = [("b", "f", "z")] * 5 + [("ab", "m", "x")] * 7 + [("ba", "f", "y")] * 2
    seen: list[Any] = []

    def reach(plan: Any, counts: Any, least: Any, number: int, **_: Any) -> Any:
        seen.append((counts.tolist(), least.tolist(), number >= counts.size))
        return np.where(counts + 1 >= least, counts + 1, 0)

    listed = sorted(at[x] for x in common)
    fallen = [
        [
            (listed.index(at["b", "f", "z"]), 99),  # It has records.
            (listed.index(at["ab", "m", "z"]), 4),
            (listed.index(at["ab", "m", "z"]), 88),  # The first one counts.
            (listed.index(at["(other)", "f", "z"]), 3),
        ],
        [
            (at["ab", "f", "z"], 77),  # It is common.
            (at["bb", "m", "x"], 9),
            (at["ba", "f", "y"], 66),  # It has records, which did not reach.
        ],
    ]
    # The places of the first class are in the order of its lists.
    order = [x for x, _ in sorted(enumerate(_class_cells(design)), key=lambda pair: pair[1])]
    fallen[0] = [(order[place], value) for place, value in fallen[0]]
    drawn(monkeypatch, reach, fallen)
    frame = pd.DataFrame(records, columns=["one", "sex", "two"])
    noisy = design.count(frame).release(epsilon=1, at_least=(3, 9))
    assert seen == [([7, 5, 2], [9, 3, 9], True)] or sorted(zip(*seen[0][:2], strict=True)) == [
        (2, 9),
        (5, 3),
        (7, 9),
    ]
    assert noisy.to_dict() == {
        ("ab", "m", "z"): 4,
        ("b", "f", "z"): 6,
        ("bb", "m", "x"): 9,
        ("(other)", "f", "z"): 3,
    }
    assert list(noisy.to_dict()) == sorted(noisy.to_dict(), key=at.__getitem__)


def _class_cells(design: Design) -> list[int]:
    return classes.Classes(design._axes, (3, 9)).cells(0, range(6))


def test_points_beyond_the_greatest_threshold_count_from_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    design = Design({"word": Words("ab", 3)})
    fallen = [[(0, 900), (0, 5000), (1, 1999), (2, 2000), (3, 2500)]]
    drawn(monkeypatch, lambda _, counts, *__, **___: counts * 0, fallen)
    noisy = design.count(pd.DataFrame({"word": []}, dtype=str)).release(epsilon=1, at_least=2000)
    # The first point of a cell was below.
    assert noisy.counts.tolist() == [2000, 2500]


def test_no_cell_is_in_two_states_when_there_is_no_noise() -> None:
    # A rate beyond floats has noise once in 10^13 counts.
    design = Design({"id": range(2**50)})
    noisy = design.count(FRAME).release(epsilon=10**6, at_least=5)
    assert noisy.to_dict() == {7: 1500, 2**40: 1500}


def test_thresholds_are_the_least_that_keep_few_empty_cells() -> None:
    words = Words(LETTERS, 25, common=["the", "noise"])
    for epsilon, l0, spurious in itertools.product(
        (Fraction(1, 9), 1, 4), (1, 6), (1, Fraction(1, 50))
    ):
        design = Design({"word": words, "sex": ["f", "m"]}, individual="who", l0=l0)
        found = design.threshold(epsilon, spurious)
        assert isinstance(found, tuple)
        places = classes.Classes(design._axes, found).places
        rate = Fraction(epsilon) / l0
        for least, many in zip(found, places, strict=True):
            assert scatter.plan_of(rate).spurious(many, least) <= spurious / 2
            assert least == 1 or scatter.plan_of(rate).spurious(many, least - 1) > spurious / 2
        assert 0 < design.spurious(epsilon, found) <= spurious
        low, high = design.missed(60, epsilon, found)  # type: ignore[misc]
        assert 0 <= low <= high <= 1
        alone = Design({"word": Words(LETTERS, 25), "sex": ["f", "m"]}, individual="who", l0=l0)
        assert isinstance(alone.threshold(epsilon, spurious), int)
        assert design.spurious(epsilon, 900) == alone.spurious(epsilon, 900)


def test_numbers_of_empty_cells_beyond_floats_are_infinite_or_refused() -> None:
    design = Design({"word": Words("ab", 1098)})
    assert design.spurious(epsilon=1, at_least=1) == math.inf
    assert 0 < design.spurious(epsilon=1, at_least=700) < math.inf
    assert design.threshold(epsilon=1, spurious=1e300) < design.threshold(epsilon=1)
    assert design.spurious(1, design.threshold(1, 1e-300)) <= 1e-300
    for most in (10**400, Fraction(1, 10**400)):
        with pytest.raises(ValueError, match=r"spurious = .* give a number from 1e-300 to 1e300"):
            design.threshold(epsilon=1, spurious=most)


def test_intervals_use_the_threshold_of_each_row() -> None:
    words = Words(LETTERS, 25, common=["the", "noise"])
    # At 70, an interval given that this is reached would begin at 0.
    frame = pd.DataFrame({"word": ["the"] * 70 + ["noise"] * 71 + ["zebra"] * 100})
    noisy = Design({"word": words}).count(frame).release(epsilon=1, at_least=(3, 70))
    of_one: dict[Any, Any] = {}
    for least in (3, 70):
        each = tables.NoisyGroups(
            noisy.design,
            noisy.mechanisms,
            None,
            None,
            noisy.counts,
            cells=noisy._picked,
            at_least=least,
            identity=geomdp._ground.identity.Identity(noisy.id),
        )
        lower, upper = each._ends(0.05, simultaneous=False)
        of_one[least] = dict(
            zip(noisy.to_dict(), zip(lower.tolist(), upper.tolist(), strict=True), strict=True)
        )
    lower, upper = noisy._ends(0.05, simultaneous=False)
    assert {"the", "noise", "zebra"} <= noisy.to_dict().keys()
    for word, *ends in zip(noisy.to_dict(), lower.tolist(), upper.tolist(), strict=True):
        assert tuple(ends) == of_one[3 if word in ("the", "noise") else 70][word]


# Files


RULED = {
    "words": Design({"word": Words(LETTERS, 32)}, individual="who", l0=3, other="(other)"),
    "common": Design(
        {"word": Words(LETTERS, 32, common=["the", "of"]), "country": ["DE", "BR"]}, complete="word"
    ),
    "ids": Design({"id": range(-(2**63), 2**63), "country": ["DE", "BR"]}),
    "small": Design({"word": Words("abehntz", 5)}),
    "shortest": Design({"word": Words(LETTERS, 9, shortest=3)}, other={"word": "-"}),
}


@pytest.mark.parametrize("name", RULED)
@pytest.mark.parametrize("end", ["csv", "parquet"])
@pytest.mark.parametrize("rest", [False, True])
def test_files_keep_rules(tmp_path: Path, name: str, end: str, rest: bool) -> None:
    design = RULED[name]
    label: Any = {x: 2**63 - 1 if x == "id" else "(rest)" for x in design.levels}
    if name == "ids":
        label["id"] = 5
        design = Design({"id": range(6, 2**60), "country": ["DE", "BR"]}) if rest else design
    how: dict[str, Any] = {"rest": (label, "0.1")} if rest else {}
    least = design.threshold(epsilon="0.9")
    path = tmp_path / f"x.{end}"
    noisy = design.count(FRAME).release(epsilon=1, at_least=least, save=path, **how)
    read = geomdp.read(path)
    assert isinstance(read, tables.NoisyGroups)
    assert read.design == design
    assert repr(read.design) == repr(design)
    assert read.at_least == least
    assert read.to_dict() == noisy.to_dict()
    assert read.intervals().equals(noisy.intervals())
    again = pickle.loads(pickle.dumps(noisy))
    assert again.to_dict() == noisy.to_dict()
    assert again.design == design
    assert (read.rest is not None) == rest
    read.save(tmp_path / "page.html")
    read.plot()


def edited(path: Path, change: Any) -> None:
    """Change the description of a file."""
    beside = Path(f"{path}.json")
    said = json.loads(beside.read_text())
    change(said["geomdp"])
    beside.write_text(json.dumps(said))


def _axis(key: str, value: Any) -> Any:
    return lambda said: said["axes"]["word"]["levels"]["words"].__setitem__(key, value)


@pytest.mark.parametrize(
    "change",
    [
        *(_axis("longest", x) for x in (10**9, 10**300, 2000, -1, 0, 1.5, "5", None, [5], True)),
        *(_axis("shortest", x) for x in (0, 33, 10**9, "1", None)),
        *(
            _axis("alphabet", x)
            for x in ("", "a", "aa", "e\u0301a", 5, None, ["a", "b"], "xyz" * 10**6)
        ),
        *(
            _axis("common", x)
            for x in ("ab", ["ab", "ab"], [5], [None], ["Upper"], 5, {"a": 1}, [[]])
        ),
        lambda said: said["axes"]["word"].__setitem__("levels", {"words": {}, "range": [0, 1, 1]}),
        lambda said: said["axes"]["word"].__setitem__("levels", {"range": [0, 2**62, 1]}),
        lambda said: said["axes"]["word"].__setitem__("levels", {"range": [0, 2**62, 0]}),
        lambda said: said["axes"]["word"].__setitem__("levels", {"range": [0, 5, 1]}),
        lambda said: said["axes"]["word"].__setitem__("levels", {"range": [0, 10**400, 1]}),
        lambda said: said["axes"]["word"].__setitem__("levels", {"range": "x"}),
        lambda said: said["axes"]["word"].__setitem__("levels", {"other": []}),
        lambda said: said["axes"]["word"].__setitem__("levels", {}),
        lambda said: said["axes"]["word"].__setitem__("margin", ["all"]),
        lambda said: said["axes"]["word"].__setitem__("other", ["abc"]),
        lambda said: said.__setitem__("at_least", [3, 30]),
        lambda said: said.__setitem__("at_least", [3, 30, 300]),
        lambda said: said.__setitem__("at_least", None),
        lambda said: said.__setitem__("at_least", 10**9),
        lambda said: said.__setitem__("tables", [{"columns": [["word", None]], "part": "1"}]),
    ],
)
def test_hostile_rules_are_refused_in_a_second(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "x.csv"
    design = Design({"word": Words(LETTERS, 32)})
    design.count(FRAME).release(epsilon=1, at_least=design.threshold(1), save=path)
    edited(path, change)
    start = time.process_time()
    with pytest.raises(ValueError, match=r"x\.csv cannot be read"):
        geomdp.read(path)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "row", ["the,5", "Upper,500", "the2,500", ",500", "zz,500", "th\u0065\u0301,500"]
)
def test_rows_that_are_no_levels_are_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "x.csv"
    design = Design({"word": Words(LETTERS, 32)})
    design.count(FRAME).release(epsilon=1, at_least=design.threshold(1), save=path)
    rows = path.read_bytes().replace(b"noise,", row.rpartition(",")[0].encode() + b",")
    if row.endswith(",5"):
        rows = b"word,count\r\nthe,5\r\n"
    _rewritten(path, rows)
    with pytest.raises(ValueError, match="other rows"):
        geomdp.read(path)


def _rewritten(path: Path, rows: bytes) -> None:
    import hashlib  # noqa: PLC0415

    path.write_bytes(rows)
    beside = Path(f"{path}.json")
    said = json.loads(beside.read_text())
    said |= {"bytes": len(rows), "hash": f"sha256:{hashlib.sha256(rows).hexdigest()}"}
    beside.write_text(json.dumps(said))


def test_a_page_says_that_a_row_may_be_random(tmp_path: Path) -> None:
    for name in ("common", "words"):
        design = RULED[name]
        least, path = design.threshold(1), tmp_path / f"{name}.html"
        design.count(FRAME).release(epsilon=1, at_least=least, save=path)
        text = path.read_text()
        assert "such a row may be any text" in text
        assert ("(words of a public list) or" in text) == (name == "common")


# Refusals


LISTING: dict[str, Any] = {
    "frame": lambda _, table: table.frame,
    "release": lambda _, table: table.release(epsilon=1, budget=BUDGET),
    "release a mechanism": lambda design, table: table.release(
        GeometricMechanism(1, design.sensitivity), budget=BUDGET
    ),
    "tiers": lambda _, table: table.release(tiers={"a": 1, "b": 2}, budget=BUDGET),
    "top": lambda _, table: table.top(1, epsilon=1, budget=BUDGET),
    "top_accuracy": lambda design, _: design.top_accuracy(1, epsilon=1),
    "preview": lambda design, _: design.preview(),
    "plot": lambda design, _: design.plot(),
    "accuracy of all": lambda design, _: design.accuracy(epsilon=1, of="all"),
    "accuracy of a sum": lambda design, _: design.accuracy(epsilon=1, of=()),
    "a low threshold": lambda _, table: table.release(epsilon=1, at_least=1, budget=BUDGET),
    "bounds": lambda _, table: table.release(epsilon=1, at_least=900, bounds=(0, 9), budget=BUDGET),
    "three thresholds": lambda _, table: table.release(
        epsilon=1, at_least=(1, 2, 3), budget=BUDGET
    ),
    "a rest that is a level": lambda design, table: table.release(
        epsilon=1, at_least=900, rest=("a" if "word" in design.levels else 5, "0.1"), budget=BUDGET
    ),
    "a page of too much": lambda _, table: table.release(epsilon=1e-9, at_least=900, budget=BUDGET),
    "sum and count": lambda design, _: design.sum_and_count(FRAME, "cents", bounds=(0, 9)).release(
        epsilon=1, budget=BUDGET
    ),
}
BUDGET = accounting.Budget(epsilon=100)


@pytest.mark.parametrize("name", ["words", "common", "ids", "small"])
@pytest.mark.parametrize("asked", LISTING)
def test_what_would_list_a_rule_is_refused_before_payment(name: str, asked: str) -> None:
    design = RULED[name]
    if (name, asked) in (("small", "a low threshold"), ("common", "bounds")):
        pytest.skip("it has few cells")
    table = design.count(FRAME)
    start = time.process_time()
    with pytest.raises(ValueError, match=r"a rule|not accepted|level|no noise|threshold"):
        LISTING[asked](design, table)
    assert time.process_time() - start < 5
    assert not BUDGET.spent


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ({"margins": "all"}, "margins are not accepted with levels of 'word' that are a rule"),
        (
            {"shares": {"word": [1]}},
            "shares are not accepted with levels of 'word' that are a rule",
        ),
        ({"tables": ["word"]}, "tables are not accepted with levels of 'word' that are a rule"),
        ({"other": "abc"}, "repeat one"),
        ({"other": 5}, "types are"),
    ],
)
def test_a_rule_refuses_what_needs_a_list(how: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        Design({"word": Words(LETTERS, 32)}, **how)


def test_pairs_of_thresholds_are_for_lists_of_common_words() -> None:
    for design in (RULED["words"], Design({"sex": ["f", "m"]})):
        with pytest.raises(ValueError, match="at_least with 2 thresholds is not accepted"):
            design.spurious(1, (3, 30))
        with pytest.raises(ValueError, match="at_least with 2 thresholds is not accepted"):
            design.missed(3, 1, (3, 30))
    design = RULED["common"]
    for bad in ((0, 3), (3, 0), (3,), (1, 2, 3), ()):
        with pytest.raises(ValueError, match="at_least"):
            design.spurious(1, bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="at_least"):
        design.spurious(1, (3, "30"))  # type: ignore[arg-type]


def test_designs_have_at_most_2_to_the_1100_cells() -> None:
    words = Words(LETTERS, 230)
    Design({"one": words}).count(pd.DataFrame({"one": ["a"]}))
    with pytest.raises(ValueError, match=r"a table of about 2\^\d+ cells is not accepted"):
        Design({"one": words, "two": words}).count(pd.DataFrame({"one": ["a"], "two": ["a"]}))


def test_products_of_lists_may_be_beyond_int64() -> None:
    design = Design({str(place): range(10**4) for place in range(8)})
    frame = pd.DataFrame({str(place): [place, 9 - place] * 200 for place in range(8)})
    noisy = design.count(frame).release(epsilon=1, at_least=design.threshold(1))
    assert {tuple(range(8)), tuple(9 - x for x in range(8))} <= noisy.to_dict().keys()


def test_releases_with_other_lists_of_common_words_are_compared() -> None:
    """A list only lowers the threshold of its words: the true counts are the same."""
    designs = [
        Design({"word": Words(LETTERS, 9, common=each)}) for each in (["the"], ["the", "noise"], ())
    ]
    releases = [x.count(FRAME).release(epsilon=9, at_least=x.threshold(9)) for x in designs]
    for one, other in itertools.permutations(releases, 2):
        found = one.change_since(other, "word", alpha=1e-9)
        assert "the" in found["word"].tolist()
        assert ((found["lower"] <= 0) & (found["upper"] >= 0)).all()
        assert len(one.plus(other)) == len(one.per(other)) == len(found)
    longer = Design({"word": Words(LETTERS, 10, common=["the"])}).count(FRAME)
    with pytest.raises(ValueError, match="has other levels of 'word'"):
        releases[0].change_since(longer.release(epsilon=9, at_least=9), "word")


def test_left_out_compares_rules_without_listing_them() -> None:
    design = Design({"word": Words(LETTERS, 32)}, complete=True)
    table = design.count(FRAME)
    noisy = table.release(epsilon=1, at_least=design.threshold(1))
    total = Design({"country": ["DE", "BR"]}, complete=True).count(FRAME).release(epsilon=1)
    found = noisy.left_out(total, alpha=1e-9)
    hidden = int((~FRAME["word"].isin(noisy.frame["word"])).sum())
    assert found["lower"].item() <= hidden <= found["upper"].item()
    listed = tables.count(FRAME["word"], ["the"]).release(epsilon=1)
    with pytest.raises(ValueError, match="levels"):
        noisy.left_out(listed)


def test_a_tree_and_a_rule_are_no_groups_together() -> None:
    tree = Hierarchy({"DE": "all", "BR": "all"})
    design = Design({"word": Words(LETTERS, 32), "country": tree})
    assert design.sensitivity == 2
    with pytest.raises(ValueError, match="hierarchies"):
        design.count(FRAME).release(epsilon=1, at_least=900)
