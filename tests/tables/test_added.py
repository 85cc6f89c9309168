"""Sums of releases: their law over all noise, their files, and what is refused."""

import itertools
import json
import math
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import geomdp
from geomdp import accuracy, tables
from geomdp.accounting import Budget
from geomdp.tables import Design, Hierarchy
from geomdp.tables._facts import counted
from geomdp.tables._facts import parts as _parts
from published_kinds import least

PEOPLE = pd.DataFrame({"ward": ["A", "B", "A"] * 60, "sex": ["f", "m"] * 90})
FLAT = Design({"ward": ["A", "B"], "sex": ["f", "m"]})
UNEVEN = Hierarchy({"all": None, "A": "all", "S": "all", "B": "S", "C": "S"}, leaves_only=True)
OPEN = Hierarchy({"all": None, "A": "all", "S": "all", "B": "S", "C": "S"})
DESIGNS = {
    "flat": FLAT,
    "margins": Design({"ward": ["A", "B"], "sex": ["f", "m"]}, margins="all"),
    "shares": Design({"ward": ["A", "B"]}, margins=("all", "1/5")),
    "uneven tree": Design({"ward": UNEVEN, "sex": ["f", "m"]}),
    "open tree": Design({"ward": OPEN}),
    "tables": Design({"ward": ["A", "B"], "sex": ["f", "m"]}, tables=[("ward",), ("sex",)]),
    "no columns": Design({}),
}
EPSILONS = ("0.5", 1, "1.5")


def sites(design: Design = FLAT, epsilons: Any = EPSILONS) -> list[Any]:
    """Return a release of each site."""
    return [design.count(PEOPLE).release(epsilon=each, label=f"at {each}") for each in epsilons]


def test_more_sites_are_compared_by_their_ids_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each site was compared with the ids of all for each site before it: 3.5 s for 400 sites."""
    releases, calls, ids = sites(epsilons=[1] * 24), [0], counted._ids

    def counting(of: Any) -> set[str]:
        calls[0] += 1
        return ids(of)

    monkeypatch.setattr(counted, "_ids", counting)
    found = []
    for many in (12, 24):
        calls[0] = 0
        releases[0].plus(*releases[1:many])
        found.append(calls[0] / many)
    assert found[0] == found[1]


def noisy(rate: Any, cells: Any, noise: Any) -> Any:
    """Return a release of cells with this noise: a row for each outcome."""
    design = Design({"outcome": range(len(noise)), "x": range(len(cells))})
    found = design.count(pd.DataFrame({"outcome": [0], "x": [0]})).release(epsilon=rate)
    found.counts[:] = np.asarray(cells) + noise
    return found


def outcomes(rates: Any, cells: int, most: int) -> tuple[Any, Any]:
    """Return the noise of each site in each outcome, and the masses of outcomes."""
    one = np.tanh(np.array(rates, float) / 2)[:, None] * np.exp(
        -np.array(rates, float)[:, None] * np.abs(np.arange(-most, most + 1))
    )
    grid = np.indices((2 * most + 1,) * (len(rates) * cells)).reshape(len(rates), cells, -1)
    masses = np.prod([one[s][grid[s]].prod(axis=0) for s in range(len(rates))], axis=0)
    return np.moveaxis(grid - most, 2, 1), masses


@pytest.mark.parametrize(
    ("rates", "most"), [((1, 1, 1), 8), ((Fraction(7, 10), 1, 2), 8), ((1, 3), 40), ((2,), 40)]
)
@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_a_count_has_the_noise_of_all_sites(rates: Any, most: int, alpha: float) -> None:
    """Over all noise, intervals miss at most as often as they say, and shorter ones too often."""
    noise, masses = outcomes(rates, 1, most)
    pairs = enumerate(zip(rates, noise, strict=True))
    parts = [noisy(rate, [3 + place], each) for place, (rate, each) in pairs]
    found = parts[0].plus(*parts[1:]) if parts[1:] else parts[0]
    true = sum(3 + place for place in range(len(rates)))
    ends = found.intervals(alpha)
    estimate, lower, upper = (ends[name].to_numpy() for name in ("estimate", "lower", "upper"))
    assert (estimate == true + noise.sum(axis=0)[:, 0]).all()
    missed = masses[(true < lower) | (true > upper)].sum()
    assert missed <= alpha
    reach = least([float(rate) for rate in rates], alpha)
    assert (upper - np.maximum(estimate, 0) == reach).all()
    assert (lower == np.maximum(estimate - reach, 0)).all()


@pytest.mark.parametrize("true", [(3, 5), (0, 9)])
@pytest.mark.parametrize("alpha", [0.4, 0.1])
def test_questions_of_a_sum_hold_over_all_noise(true: Any, alpha: float) -> None:
    noise, masses = outcomes((Fraction(3, 2), 2), 2, 4)
    assert masses.sum() > 0.98
    one, two = map(noisy, (Fraction(3, 2), 2), (true, true), noise)
    found, (a, b) = one.plus(two), (2 * each for each in true)
    answers = {
        "total": (found.total("outcome", alpha=alpha), a + b),
        "ratio": (found.ratio({"x": 0}, {}, "outcome", alpha=alpha), a / (a + b)),
        "difference": (found.difference({"x": 0}, {"x": 1}, "outcome", alpha=alpha), a - b),
        "mean": (found.mean("x", "outcome", alpha=alpha), b / (a + b)),
        "rate": (found.rate([50] * len(masses), 100, "outcome", alpha=alpha), 2 * (a + b)),
    }
    for name, (answer, value) in answers.items():
        low, high = answer["lower"].to_numpy(), answer["upper"].to_numpy()
        missed = masses[(value < low - 1e-12) | (value > high + 1e-12)].sum()
        assert missed <= alpha, name
        assert missed > 0, name


@pytest.mark.parametrize("n", [2, 3, 10])
def test_equal_rates_have_the_exact_law(n: int) -> None:
    found = sites(epsilons=["0.5"] * n)
    ends = found[0].plus(*found[1:]).intervals(0.05)
    wanted = accuracy.sum_accuracy(geomdp.GeometricMechanism("0.5"), n, 0.05)
    assert (ends["upper"] - ends["estimate"] == wanted).all()


@pytest.mark.parametrize("name", DESIGNS)
def test_each_estimate_has_the_variance_of_all_noises(name: str) -> None:
    """By the weights of the tables, whatever the kind of the columns."""
    found = sites(DESIGNS[name])
    whole = found[0].plus(*found[1:])
    assert whole.design == DESIGNS[name]
    assert whole.epsilon == 3
    rates = [{b: each.mechanisms[b].rate for b in each.mechanisms} for each in found]
    load = whole._workload
    for asked in whole._asked_rows():
        [source] = asked.sources
        many, kinds = asked.kinds()
        assert many
        for _, errors in kinds:
            assert len({rate for rate, *_ in errors.parts}) >= len(found)
        nodes = [0 if each is None else int(each[0]) for each in source.nodes]
        [rooted] = source.rooted
        variances = (
            sum(0.5 / math.sinh(float(rate[block]) / 2) ** 2 for rate in rates)
            for block in rates[0]
        )
        weights = load.weights(rooted, nodes)
        own = sum(float((w**2).sum()) * v for w, v in zip(weights, variances, strict=True))
        assert source.errors(nodes).variances[0] == pytest.approx(own, rel=1e-9)
    # Total variations add up: no interval is at a level that the sampled noises do not allow.
    assert load.lost == sum(each._workload.lost for each in found)


def test_tables_are_weighed_by_the_noise_of_all_sites() -> None:
    """One site gave its totals a fifth of epsilon, and the other four fifths of a greater one."""
    one, two = (
        sites(Design({"ward": ["A", "B"]}, margins=("all", share)), [epsilon])[0]
        for share, epsilon in (("1/5", "0.5"), ("4/5", 1))
    )
    whole = one.plus(two)
    total, cell = (
        sum(0.5 / math.sinh(float(each.mechanisms[block].rate) / 2) ** 2 for each in (one, two))
        for block in ((0,), (1,))
    )
    [asked] = whole._asked_rows()
    [source] = asked.sources
    assert source.errors([0]).variances[0] == pytest.approx(1 / (1 / total + 1 / (2 * cell)))
    noisy = whole.frame["count"].tolist()
    wanted = (noisy[2] / total + (noisy[0] + noisy[1]) / (2 * cell)) / (1 / total + 0.5 / cell)
    assert whole.total(alpha=None)["estimate"][0] == pytest.approx(wanted)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_sum_is_the_same_in_any_order_and_from_any_file(name: str, tmp_path: Path) -> None:
    one, two, three = sites(DESIGNS[name])
    whole = one.plus(two, three)
    assert [part.label for part in whole.parts] == ["at 0.5", "at 1", "at 1.5"]
    for other in (three.plus(one).plus(two), two.plus(three.plus(one))):
        assert (other.id, other.epsilon) == (whole.id, whole.epsilon)
        assert other.intervals(0.1).equals(whole.intervals(0.1))
    ends = whole.intervals(0.1)
    for ending in ("csv", "parquet"):
        whole.save(tmp_path / f"a.{ending}", certificate=ending == "csv")
        read = geomdp.read(tmp_path / f"a.{ending}")
        assert read.parts == whole.parts
        assert (read.id, read.epsilon, read.design) == (whole.id, whole.epsilon, whole.design)
        assert read.intervals(0.1).equals(ends)
    again = pickle.loads(pickle.dumps(whole))
    assert (again.parts, again.id) == (whole.parts, whole.id)
    assert again.intervals(0.1).equals(ends)


def test_columns_and_levels_in_any_order_are_added_by_name() -> None:
    one = FLAT.count(PEOPLE).release(epsilon=1000)
    turned = Design({"sex": ["m", "f"], "ward": ["B", "A"]})
    found = one.plus(turned.count(PEOPLE).release(epsilon=1000))
    assert found.to_dict() == {key: 2 * count for key, count in one.to_dict().items()}
    assert list(found.frame.columns) == ["ward", "sex", "count"]


def test_a_sum_has_the_tables_of_all() -> None:
    flat, margins = sites(FLAT, [50])[0], sites(DESIGNS["margins"], [200])[0]
    chosen = sites(DESIGNS["tables"], [100])[0]
    for pair in ((flat, margins), (margins, flat)):
        found = pair[0].plus(pair[1])
        assert (found.design, found.epsilon) == (FLAT, 250)
        assert found.to_dict() == {key: 2 * n for key, n in flat.to_dict().items()}
    found = chosen.plus(margins)
    assert [*found.to_dict().values()] == [240, 120, 180, 180]
    part = Design({"ward": ["A", "B"], "sex": ["f", "m"]}, tables=[("ward", "sex"), ("sex",)])
    mixed = chosen.plus(sites(part, [100])[0])
    assert mixed.frame["sex"].tolist() == ["f", "m"]
    assert mixed.frame["count"].tolist() == [180, 180]
    with pytest.raises(ValueError, match="other has none of the tables of this release"):
        chosen.plus(flat)


def test_a_sum_has_the_margins_of_all_beside_combinations(tmp_path: Path) -> None:
    """They were refused as if they were chosen tables, which combinations do not take."""
    pairs = [("A", "f"), ("B", "m"), ("A", "m")]
    numbers = {"one": [0, 1], "two": [0, 1]}
    people = PEOPLE.assign(one=0, two=1)
    designs = [
        Design({("ward", "sex"): pairs, **numbers}, margins={"one": -1, "two": (-2, "1/3")}),
        Design({**numbers, ("ward", "sex"): pairs[::-1]}, margins={"one": -1}),
    ]
    for one, other in (designs, designs[::-1]):
        tables_ = [each.count(people).release(epsilon=900) for each in (one, other)]
        found = tables_[0].plus(tables_[1])
        assert found.design.tables is None
        assert [axis.label for axis in found.design._axes if axis.margin] == ["one"]
        found.save(tmp_path / "a.csv", overwrite=True)
        alone = tables_[0].total(("ward", "sex"))["estimate"]
        for each in (found, geomdp.read(tmp_path / "a.csv")):
            assert np.allclose(each.total(("ward", "sex"))["estimate"], 2 * alone, atol=0.1)


def test_all_that_is_complete_in_each_is_complete_in_the_sum() -> None:
    one, two = sites(epsilons=[1, 1])
    found = one.with_complete(True).plus(two.with_complete("sex")).design
    assert [axis.label for axis in found._axes if axis.complete] == ["sex"]


@pytest.mark.parametrize("name", ["flat", "margins"])
def test_rounding_before_and_after_widens_by_half_of_each_step(name: str, tmp_path: Path) -> None:
    one, two, three = sites(DESIGNS[name], ["0.5"] * 3)
    exact = one.plus(two).plus(three)
    rounded = one._to_multiples(5).plus(two)._to_multiples(7)
    rounded.save(tmp_path / "sum.csv")
    found = geomdp.read(tmp_path / "sum.csv").plus(three._to_multiples(10))
    assert (rounded._moved, found._moved) == (2, 2 + 3 + 5)
    found._to_multiples(4).save(tmp_path / "all.csv")
    last = geomdp.read(tmp_path / "all.csv")
    if name == "flat":
        for made, off in ((found, 10), (last, 12)):
            ends, own = made.intervals(0.05), exact.intervals(0.05)
            widths = own["upper"] - own["estimate"] + off
            assert (ends["upper"] - ends["estimate"] == widths).all()
    assert last.parts == found.parts
    assert last._moved == 10


def test_counts_at_a_limit_stay_there() -> None:
    one, two = sites(epsilons=[1, 1])
    limits = np.iinfo(np.int64)
    one.counts[0, 0], two.counts[0, 0] = limits.max, -5
    one.counts[1, 1], two.counts[1, 1] = 2**62, 2**62
    found = one.plus(two)
    assert found.counts[0, 0] == found.counts[1, 1] == limits.max
    ends = found.intervals(0.05)
    assert (ends["lower"] == 0).all()
    assert np.isinf(ends["upper"]).all()


def test_public_totals_of_all_add_up() -> None:
    one, two = sites(epsilons=[1, 1])
    found = one.with_totals(180).plus(two.with_totals(180))
    assert found.total(alpha=0.05).iloc[0].tolist() == [360, 360, 360]
    assert not one.with_totals(180).plus(two)._known


def test_sums_compare_and_combine(tmp_path: Path) -> None:
    old, new = (one.plus(two) for one, two in (sites(epsilons=[1, 2]), sites(epsilons=[2, 3])))
    assert len(new.change_since(old, "ward", alpha=0.05)) == 2
    assert len(new.per(old, "ward")) == 2
    both = old.combine(new).total(alpha=0.05)
    assert both["upper"][0] - both["lower"][0] < np.diff(old.total()[["lower", "upper"]])[0, 0]
    new.save(tmp_path / "new.csv")
    read = geomdp.read(tmp_path / "new.csv")
    for ask in (old.plus(read).plus, new.combine(old).combine, read.change_since):
        with pytest.raises(ValueError, match="so that they share noise: give another release"):
            ask(new)


VISITS = pd.DataFrame({"who": np.repeat(range(60), 4), "area": [*"ABCD"] * 60})


def test_a_sum_is_of_the_counts_of_its_parts() -> None:
    """Limits of individuals choose records anew in each count, so sums of others do not combine."""
    design = Design({"area": [*"ABCD"]}, individual="who", l0=1)
    north, south = design.count(VISITS), design.count(VISITS)
    one, two = (north.release(epsilon=1).plus(south.release(epsilon=1)) for _ in range(2))
    assert one.count_id == two.count_id is not None
    assert len(one.combine(two).total()) == 1
    other = north.release(epsilon=1).plus(design.count(VISITS).release(epsilon=1))
    with pytest.raises(ValueError, match="keep other records in each count"):
        one.combine(other)
    assert sites()[0].plus(sites()[1]).count_id is None


def test_what_is_no_sum_is_refused_by_name() -> None:
    one, two, three = sites()
    first = FLAT.count(PEOPLE).release(epsilon=1)
    second = FLAT.count(PEOPLE).release(epsilon=1, corrects=first)
    again = FLAT.count(PEOPLE).release(epsilon=1, corrects=first)
    groups = [FLAT.count(PEOPLE).release(epsilon=1, at_least=9, corrects=first) for _ in range(2)]
    limited = Design({"area": [*"ABCD"]}, individual="who", l0=1).count(VISITS)
    twice = [limited.release(epsilon=1) for _ in range(2)]
    apart = Design({"area": [*"ABCD"]}, individual="who", l0=1).count(VISITS).release(epsilon=1)
    bounded = FLAT.count(PEOPLE).release(epsilon=1, bounds=(0, 99))
    other = Hierarchy({"all": None, "A": "all", "S": "all", "B": "S", "C": "all"}, leaves_only=True)
    moved = Design({"ward": other, "sex": ["f", "m"]}).count(PEOPLE).release(epsilon=1)
    tiers = FLAT.count(PEOPLE).release(tiers={"a": "0.1", "b": 1})
    who = Design({"ward": ["A", "B"], "sex": ["f", "m"]}, l0=2)
    both = one.plus(two)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: both.plus(one), "is this release, or of the same stream"),
        (lambda: one.plus(two, one), "is this release, or of the same stream"),
        (lambda: one.plus(first).plus(second), "one of the releases corrects the other"),
        (lambda: second.plus(two).plus(three.plus(first)), "one of the releases corrects"),
        (lambda: second.plus(again), "other is about the same people"),
        (lambda: one.plus(second).plus(two.plus(again)), "other is about the same people"),
        (lambda: groups[0].plus(groups[1]), "other is about the same people"),
        (lambda: twice[0].plus(twice[1]), "other is about the same people"),
        (lambda: twice[0].plus(apart).plus(twice[1]), "other is about the same people"),
        (lambda: FLAT.count(PEOPLE).release(epsilon=1, corrects=both), "corrects is a sum of"),
        (lambda: one.plus(bounded), "a release with bounds has no interval for a sum of tables"),
        (lambda: one.plus(two.combine(three)), "other has the answers of two releases"),
        (
            lambda: one.plus(who.count(PEOPLE).release(epsilon=1)),
            "and l0 = 2, not 1, so that its true",
        ),
        (lambda: sites(DESIGNS["uneven tree"])[0].plus(moved), "another tree of 'ward'"),
        (lambda: tiers["a"].plus(one).plus(tiers["b"]), "so that they share noise"),
        (lambda: one.plus(sites(Design({"ward": ["A", "B"]}))[0]), r"the columns \['ward'\], not"),
        (lambda: both.number_of_cells(at_most=0), "answers are from several: ask each of them"),
        (both.variance, "answers are from several: ask each of them"),
        (lambda: both.diversity("entropy"), "answers are from several: ask each of them"),
    ]
    for ask, words in refused:
        with pytest.raises(ValueError, match=words):
            ask()
    with pytest.raises(ValueError, match="other is a release of groups that reached a threshold"):
        one.plus(FLAT.count(PEOPLE).release(epsilon=1, at_least=9))


def test_no_file_has_more_noises_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = sites(DESIGNS["margins"])
    monkeypatch.setattr(_parts, "MOST", 8)
    assert len(one.plus(two).parts) == 2
    with pytest.raises(
        ValueError, match="3 releases with 4 tables each are not accepted: give at most 8 tables"
    ):
        one.plus(two, three)


def test_a_picture_and_a_text_name_the_parts() -> None:
    one, two, _ = sites()
    both = one.plus(two)
    assert repr(both).startswith(
        "<NoisyTable of 4 counts, sum of 2 releases, privacy loss 1.5 for one individual in all"
    )
    with mpl.rc_context():
        figure = both.plot("ward").figure
        texts = " ".join(text.get_text() for text in [*figure.texts, *figure.axes[0].texts])
        assert "Noise of 2 releases, of epsilon 0.5 and 1." in texts + figure.axes[0].get_title()
    same = one.plus(sites()[0])
    assert "of 2 releases, of epsilon 0.5." in same._stated(["ward"], 0.05).noise


def test_a_page_names_the_parts_and_their_losses(tmp_path: Path) -> None:
    titled = FLAT.count(PEOPLE).release(epsilon=2, about={"title": "West"}, label="w")
    sites()[0].plus(sites()[1], titled).save(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert (
        "the numbers of 3 releases: “at 0.5” (epsilon 0.5), “at 1” (epsilon 1) and “West”" in text
    )
    assert "The privacy loss, epsilon, is 3.5" in text
    assert "This page does not add up these rows." in text
    many = sites(epsilons=[1] * 23)
    many[0].plus(*many[1:]).save(tmp_path / "b.html")
    assert "and 3 more." in (tmp_path / "b.html").read_text()


def test_a_sum_is_beside_its_parts_in_a_report(tmp_path: Path) -> None:
    budget = Budget.open(tmp_path / "b.jsonl", epsilon=9)
    one, two = (
        FLAT.count(PEOPLE).release(epsilon=1, budget=budget, label=name) for name in ("a", "b")
    )
    one.plus(two).save(tmp_path / "paid.csv")
    one.plus(sites()[0]).save(tmp_path / "half.csv")
    tables.report(budget, tmp_path / "r.html", [tmp_path / "paid.csv", tmp_path / "half.csv"])
    paid, others = (tmp_path / "r.html").read_text().split("Files that this budget did not pay for")
    assert (paid.count("paid.csv"), paid.count("half.csv")) == (2, 1)
    assert (others.count("paid.csv"), others.count("half.csv")) == (0, 1)


# Files


def forged() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield changes of the description of a sum, each by the words that refuse it."""
    part = "0" * 32
    yield "another privacy loss", lambda x: x.update(epsilon="1")
    lesser = {"epsilon": "1/4"}
    yield (
        "has a part with another",
        lambda x: x["parts"][0].update(lesser) or x.update(epsilon="5/4"),
    )
    yield "another privacy loss", lambda x: x["parts"][1].update(part_of="1/4")
    yield "not the sum of its parts", lambda x: x.update(id=part)
    yield "not the sum of its parts", lambda x: x["parts"][0].update(id=part)
    yield "not the sum of its parts", lambda x: x.update(count_id=part)
    yield "not the sum of its parts", lambda x: x["parts"][0].update(count_id=part)
    yield "not the sum of its parts", lambda x: x.update(corrects=[part])
    yield "not the sum of its parts", lambda x: x.update(part_of="9")
    yield "not the sum of its parts", lambda x: x.update(mechanisms=x["parts"][0]["mechanisms"])
    yield "so that they share noise", lambda x: x["parts"].append(x["parts"][0])
    yield (
        "about the same people as this release",
        lambda x: [each.update(count_id=part) for each in x["parts"]],
    )
    yield (
        "about the same people as this release",
        lambda x: [each.update(corrects=[part]) for each in x["parts"]],
    )
    yield "mechanisms of other depths", lambda x: x.update(parts=[])
    yield "mechanisms of other depths", lambda x: x["parts"][0]["mechanisms"].pop()
    yield "a part with bounds", lambda x: x["parts"][0]["mechanisms"][0].update(bounds=[0, 9])
    yield "a part with other fields", lambda x: x["parts"][0].update(rounded=5)
    yield "a part with other fields", lambda x: x["parts"][0].pop("label")
    yield "its field 'label' has another form", lambda x: x["parts"][0].update(label=5)
    yield "counts moved by another number", lambda x: x.update(moved=-1)
    yield "counts moved by another number", lambda x: x.update(moved=2**60)
    yield "moved", lambda x: x.update(moved="1")
    yield "cannot be read", lambda x: x.update(parts=5)
    yield "cannot be read", lambda x: x.update(parts=[5])
    yield "a sum of what has none", lambda x: x.update(at_least=3)
    yield "an id is not", lambda x: x["parts"][0].update(id="1")
    yield "about", lambda x: x["parts"][0].update(about={"colour": "red"})
    yield "a step of a stream with another", lambda x: x["parts"][0].update(part_of="1/100")
    yield "its field 'parts' has another form", lambda x: x.update(parts={})
    yield "the sum of more than", lambda x: x.update(parts=x["parts"] * 2**13)


@pytest.mark.parametrize(("words", "change"), [*forged()])
def test_a_file_that_states_another_law_is_refused(
    words: str, change: Callable[[Any], Any], tmp_path: Path
) -> None:
    one, two, _ = sites(DESIGNS["shares"])
    one.plus(two).save(tmp_path / "a.csv")
    path = tmp_path / "a.csv.json"
    whole = json.loads(path.read_text())
    change(whole["geomdp"])
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=words):
        geomdp.read(tmp_path / "a.csv")


def test_a_plain_file_has_no_counts_that_were_moved(tmp_path: Path) -> None:
    sites()[0].save(tmp_path / "a.csv")
    path = tmp_path / "a.csv.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"geomdp": whole["geomdp"] | {"moved": 1}}))
    with pytest.raises(ValueError, match="counts moved by another number"):
        geomdp.read(tmp_path / "a.csv")


def test_tiers_and_steps_of_streams_are_parts_as_they_are(tmp_path: Path) -> None:
    tiers = [FLAT.count(PEOPLE).release(tiers={"a": "0.1", "b": 1}) for _ in range(2)]
    both = tiers[0]["a"].plus(tiers[1]["b"])
    both.save(tmp_path / "a.csv")
    read = geomdp.read(tmp_path / "a.csv")
    assert [part._tier.name for part in read.parts] == ["a", "b"]
    assert read.parts == both.parts
    assert read._workload.lost == both._workload.lost == sum(
        each._workload.lost for each in (tiers[0]["a"], tiers[1]["b"])
    )  # fmt: skip
    assert both.epsilon == Fraction(11, 10)


def test_a_table_without_noise_adds_none(tmp_path: Path) -> None:
    exact = FLAT.count(PEOPLE).release(geomdp.GeometricMechanism.from_scale(0))
    one, _, _ = sites()
    found = exact.plus(one)
    assert found.epsilon == math.inf
    ends, own = found.intervals(0.05), one.intervals(0.05)
    assert (ends["upper"] - ends["estimate"] == own["upper"] - own["estimate"]).all()
    with pytest.raises(ValueError, match="a table without noise cannot be saved"):
        found.save(tmp_path / "a.csv")


def test_the_losses_of_decimals_add_up_exactly() -> None:
    parts = sites(epsilons=[0.1] * 10)
    assert parts[0].plus(*parts[1:]).epsilon == 1
    pairs = itertools.pairwise(parts)
    assert all(one.id != two.id for one, two in pairs)
