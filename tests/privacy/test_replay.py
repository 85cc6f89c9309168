"""Neighbouring data, replayed: all that depends on the data goes through the noise.

After Cebere, Erb, Desfontaines, Bellet and Fitzsimons, *Privacy in Theory, Bugs in Practice*, 2026
(arXiv 2602.17454). Each entry point runs on some data and again on a neighbour. The first run
records the exact counts that reach the core, their rates, and the noisy counts. The second gets the
same noisy counts. Then all else that leaves must be equal in both runs, and the L1 distances of the
exact counts, each times its rate, add up to at most the privacy loss that the entry point says.
"""

import hashlib
import importlib
import inspect
import itertools
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import geomdp
import geomdp.measurement as m
import geomdp.tables.polars
import geomdp.tiers
from exact import stated
from geomdp import GeometricMechanism, tables
from geomdp._ground import identity
from geomdp._noise import Noise
from geomdp.accounting import Budget, _journal
from geomdp.cli import main
from geomdp.compat import diffprivlib, smartnoise
from geomdp.keyed import ReleaseKey
from geomdp.tables import Design, Hierarchy
from geomdp.tables._columns import ids as _ids
from geomdp.tables._count import contributions
from geomdp.tables._release import steps
from geomdp.tables.streams import Stream
from modules import PUBLIC

TOWNS, SEXES = ["a", "b", "c"], ["f", "m"]
LEVELS = {"town": TOWNS, "sex": SEXES}
EPSILON = Fraction(1, 2)
CORE = Noise.__dict__["_core"]


@dataclass
class Call:
    """Exact counts that reached the core, and the noisy counts that it returned."""

    rate: Fraction
    public: tuple[Any, ...]
    exact: list[int]
    noisy: Any


class Recorder:
    """Records the calls of a run. They get the noisy counts of an earlier run, if there is one."""

    def __init__(self, earlier: list[Call] | None = None) -> None:
        self.earlier, self.calls = earlier, list[Call]()

    def noise(self, rate: Fraction, public: tuple[Any, ...], exact: Any, draw: Any) -> Any:
        values = np.ravel(exact).tolist()
        noisy = draw() if self.earlier is None else self.earlier[len(self.calls)].noisy
        self.calls.append(Call(rate, public, values, noisy))
        return noisy


class Core:
    """The core of a mechanism, whose releases go through a recorder."""

    def __init__(self, core: Any, rate: Any, recorder: Recorder) -> None:
        self._core, self._noise = core, partial(recorder.noise, rate)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def release_scalar(self, count: int, dtype: str) -> Any:
        return self._noise((dtype,), count, lambda: self._core.release_scalar(count, dtype))

    def release_into(self, *given: Any) -> None:
        self._into(self._core.release_into, (), *given)

    def release_keyed(self, key: Any, name: str, ids: Any, start: int, *given: Any) -> None:
        into = partial(self._core.release_keyed, key, name, ids, start)
        self._into(into, (name, start), *given)

    def _into(
        self, into: Any, public: tuple[Any, ...], source: Any, target: Any, *rest: Any
    ) -> None:
        def draw() -> Any:
            into(source, target, *rest)
            return target.copy()

        target[...] = self._noise((*public, source.dtype.str, source.shape), source.copy(), draw)


class Tiers:
    """The core of several tiers, all of which are from one draw at the finest rate."""

    def __init__(self, core: Any, rate: Any, recorder: Recorder) -> None:
        self._core, self._noise = core, partial(recorder.noise, rate)

    def release_into(self, source: Any, targets: Any, *rest: Any) -> None:
        def draw() -> Any:
            self._core.release_into(source, targets, *rest)
            return [each.copy() for each in targets]

        public = (source.dtype.str, source.shape, len(targets))
        for target, noisy in zip(targets, self._noise(public, source.copy(), draw), strict=True):
            target[...] = noisy


def seen(result: Any, folder: Path) -> list[Any]:
    """Return all that is public about a result that can be saved."""
    result.save(folder / "file.csv")
    files = [path.read_bytes() for path in sorted(folder.glob("file*"))]
    rows = result.to_dict() if hasattr(result, "to_dict") else dict(result)
    return [repr(result), result.design, result.privacy_loss(), rows, files]


#: Draws public parameters, and returns what runs on data in a folder: it returns the loss that it
#: says, and all that is public.
Entry = Callable[[Any], Callable[[pl.DataFrame, Path], tuple[Any, Any]]]
ENTRIES: dict[str, Entry] = {}


def entry(*names: str) -> Callable[[Entry], Entry]:
    def listed(function: Entry) -> Entry:
        ENTRIES["; ".join(names)] = function
        return function

    return listed


def in_library(draw: Any) -> Any:
    return draw(st.sampled_from([pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame]))


def table_options(draw: Any) -> dict[str, Any]:
    return {
        "other": draw(st.sampled_from([None, "else"])),
        "margins": draw(st.sampled_from([None, "all", {"town": "all"}, {"sex": ("all", 0.25)}])),
        "neighbours": draw(st.sampled_from(["add-remove", "change"])),
    }


def of_table(design: Design, make: Any, data: Any, folder: Path) -> tuple[Any, Any]:
    table, budget = design.count(make(data)), Budget(epsilon=1)
    noisy = table.release(epsilon=EPSILON, budget=budget, label="table")
    history = [(booking.label, booking.loss) for booking in budget.history]
    told = [repr(table), table.sensitivity, table.design, history, repr(budget)]
    assert budget.epsilon_spent >= noisy.privacy_loss() == EPSILON
    return noisy.epsilon, told + seen(noisy, folder)


@entry("tables.Design.count", "tables.Table.release")
def whole_tables(draw: Any) -> Any:
    return partial(of_table, Design(LEVELS, **table_options(draw)), in_library(draw))


@entry("tables.Table.release of tiers")
def tiers_of_tables(draw: Any) -> Any:
    make, design = in_library(draw), Design(LEVELS, **table_options(draw))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        table, budget = design.count(make(data)), Budget(epsilon=1)
        tiers = table.release(tiers={"public": "1/5", "office": EPSILON}, budget=budget)
        told = [repr(tiers), repr(budget), budget.epsilon_of("public")]
        for name, each in tiers.items():
            (folder / name).mkdir()
            told += seen(each, folder / name)
        return tiers.epsilon, told

    return run


@entry("tables.Table.release of combinations")
def combinations(draw: Any) -> Any:
    """Domains that are no product: a listed pair may be left out, and an unlisted one be other."""
    pairs = draw(st.sampled_from([[("a", "f"), ("b", "m")], [("c", "m"), ("a", "m"), ("a", "f")]]))
    label = draw(st.sampled_from([None, {("town", "sex"): ("else", "any")}]))
    limits = draw(st.sampled_from([{}, {"individual": "who", "l0": 2, "linf": 2}]))
    neighbours = draw(st.sampled_from(["add-remove", "change"]))
    design = Design({("town", "sex"): pairs}, other=label, neighbours=neighbours, **limits)
    make, at_least = in_library(draw), draw(st.sampled_from([None, 2]))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        table = design.count(make(data))
        if at_least is not None:
            noisy = table.release(epsilon=EPSILON, at_least=at_least)
            return noisy.epsilon, seen(noisy, folder)
        whole = table.release(epsilon=EPSILON)
        told = [repr(table), str(whole.total("town")), str(whole.percent("sex"))]
        return whole.epsilon, [told, *seen(whole, folder)]

    return run


@entry("tables.SumAndCount.release")
def pairs(draw: Any) -> Any:
    make, design = in_library(draw), Design(LEVELS, individual="who", l0=draw(st.integers(1, 2)))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        pair, budget = design.sum_and_count(make(data), "age", bounds=(0, 9)), Budget(epsilon=1)
        noisy = pair.release(epsilon=EPSILON, budget=budget)
        told = [repr(pair), repr(budget), str(noisy.mean(alpha=0.05))]
        for name, table in (("sums", noisy.sums), ("counts", noisy.counts)):
            (folder / name).mkdir()
            told += seen(table, folder / name)
        return noisy.sums.epsilon + noisy.counts.epsilon, told

    return run


@entry("tables.Design.count of individuals")
def tables_of_individuals(draw: Any) -> Any:
    limits = {name: draw(st.integers(1, 3)) for name in ("l0", "linf")}
    design = Design(LEVELS, individual="who", **limits, **table_options(draw))
    return partial(of_table, design, in_library(draw))


@entry("tables.count", "tables.Table.release in groups")
def groups(draw: Any) -> Any:
    make, at_least = in_library(draw), draw(st.integers(1, 3))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        noisy = tables.count(make(data), LEVELS).release(epsilon=EPSILON, at_least=at_least)
        return noisy.epsilon, seen(noisy, folder)

    return run


@entry("tables.bound_contributions of individuals")
def bounded(draw: Any) -> Any:
    l0, linf = draw(st.integers(1, 2)), draw(st.integers(1, 2))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        kept = tables.bound_contributions(data, "who", cells=["town", "sex"], l0=l0, linf=linf)
        mechanism = GeometricMechanism(EPSILON, sensitivity=l0 * linf)
        noisy = Design(LEVELS).count(kept).release(mechanism)
        # The table knows one record; the individual has as many as the bounds allow.
        return noisy.mechanisms[0, 0].privacy_loss(l0 * linf), seen(noisy, folder)

    return run


@entry("tables.Table.release of trees")
def trees(draw: Any) -> Any:
    tree = Hierarchy({"a": "x", "b": "x", "c": "y", "x": "all", "y": "all"}, leaves_only=True)
    levels = draw(st.sampled_from([{"town": tree}, {"town": tree, "sex": SEXES}]))
    design = Design(levels, individual="who", l0=draw(st.integers(1, 2)))
    make, shares = in_library(draw), draw(st.sampled_from([None, [1, 2, 3]]))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        table, budget = design.count(make(data)), Budget(epsilon=1)
        by_depth = None if shares is None else {"town": shares}
        noisy = table.release(epsilon=EPSILON, shares=by_depth, budget=budget)
        told = [repr(budget), str(noisy.intervals(0.05))]
        return noisy.epsilon, [told, *seen(noisy, folder)]

    return run


@entry("tables.streams.Stream.release")
def streams(draw: Any) -> Any:
    arity, of_tables = draw(st.integers(2, 3)), draw(st.booleans())

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        stream = Stream.open(folder / "file.db", horizon=4, epsilon=EPSILON, arity=arity)
        told: list[Any] = []
        for step in range(3):
            known: Any = Design({"town": TOWNS[: step + 1], "sex": SEXES}).count(data)
            if not of_tables:
                known = known.frame["count"].to_numpy().reshape(-1, len(SEXES))
            told.append(repr(stream.release(step, known)))
        told += [repr(stream), repr(stream.interval(0, 3, 0.05))]
        return stream.epsilon, [*told, (folder / "file.db").read_text()]

    return run


@entry("measurement.Measurement.invoke", "measurement.make_composition")
def pipelines(draw: Any) -> Any:
    towns = m.vector_domain(m.atom_domain(str)), m.symmetric_distance()
    ages = m.vector_domain(m.atom_domain("i16")), m.symmetric_distance()
    scale, null = draw(st.integers(1, 9)), draw(st.booleans())
    low = draw(st.integers(-50, 50))
    high = draw(st.integers(low, 60))
    by_town: Any = towns >> m.then_count_by_categories(TOWNS, null_category=null)
    of_ages: list[Any] = [
        ages >> m.then_count(),
        ages >> m.then_count_by_bins([-10, 0, 25]),
        ages >> m.then_sum((low, high)),
    ]
    noisy = [each >> m.then_geometric(scale) for each in of_ages]

    def run(data: pl.DataFrame, _: Path) -> tuple[Any, Any]:
        count = by_town >> m.then_geometric(scale)
        told = [
            count([town or "" for town in data["town"]]),
            *m.make_composition(noisy)(data["age"].to_list()),
        ]
        losses = count.map(1), m.make_composition(noisy).map(1)
        return sum(map(stated, losses)), [repr(each) for each in told]

    return run


def released_in_sql(mechanism: GeometricMechanism, frame: pl.DataFrame, _: Path) -> Any:
    with closing(duckdb.connect()) as connection:
        query = connection.sql("SELECT n FROM frame")
        return tables.release_columns(query, {"n": mechanism}).to_pylist()


def released_by_command(_: GeometricMechanism, frame: pl.DataFrame, folder: Path) -> Any:
    frame.write_csv(folder / "in.csv")
    files = [str(folder / name) for name in ("in.csv", "out.csv")]
    assert main(["release", *files, "--column", "n", "--epsilon", "0.5"]) == 0
    return (folder / "out.csv").read_bytes()


def one_by_one(release: Callable[[int], Any]) -> Any:
    return lambda _, frame, __: [release(n) for n in frame["n"].to_list()]


RATE: dict[str, Any] = {"epsilon": 0.5, "sensitivity": 1}
#: What takes exact counts of the user, one of which changes by one: a frame of towns and counts.
OF_COUNTS: dict[str, Callable[[GeometricMechanism, pl.DataFrame, Path], Any]] = {
    "GeometricMechanism.release": lambda noise, frame, _: noise.release(frame["n"].to_numpy()),
    "GeometricMechanism.release of a column": lambda noise, frame, _: noise.release(frame["n"]),
    "GeometricMechanism.release of a mapping": lambda noise, frame, _: noise.release(
        dict(frame.rows())
    ),
    "accounting.Budget.release": lambda noise, frame, _: Budget(1).release(
        noise, frame["n"].to_numpy()
    ),
    "tables.release_columns": lambda noise, frame, _: tables.release_columns(frame, {"n": noise}),
    "tables.polars.SeriesNamespace.release": lambda noise, frame, _: frame["n"].geomdp.release(
        noise
    ),  # type: ignore[attr-defined]
    "tables.release_columns of a query": lambda noise, frame, _: tables.release_columns(
        frame.lazy(), {"n": noise}
    ),
    "keyed.ReleaseKey.release": lambda noise, frame, _: ReleaseKey().release(
        noise, frame["n"], [frame["town"]], name="n"
    ),
    "keyed.ReleaseKey.release_columns": lambda noise, frame, _: ReleaseKey().release_columns(
        frame, {"n": noise}, ["town"]
    ),
    "keyed.ReleaseKey.release_batches": lambda noise, frame, _: list(
        ReleaseKey().release_batches(
            frame.to_arrow().to_batches(), {"n": noise}, ["town"], part=True
        )
    ),
    "compat.diffprivlib.Geometric.randomise": one_by_one(
        lambda n: diffprivlib.Geometric(**RATE).randomise(n)
    ),
    "compat.diffprivlib.GeometricTruncated.randomise": one_by_one(
        lambda n: diffprivlib.GeometricTruncated(lower=0, upper=3, **RATE).randomise(n)
    ),
    "compat.smartnoise.simple_geometric_mechanism": one_by_one(
        lambda n: smartnoise.simple_geometric_mechanism(n, 0.5, 1, 0, 9)
    ),
    "sample_two_sided_geometric": one_by_one(lambda n: geomdp.sample_two_sided_geometric(n, 2.0)),
    "tables.release_columns in SQL": released_in_sql,
    "cli.main": released_by_command,
}


def counts(way: Any, draw: Any) -> Any:
    mechanism = GeometricMechanism(EPSILON, bounds=draw(st.sampled_from([None, (1, 3)])))

    def run(data: pl.DataFrame, folder: Path) -> tuple[Any, Any]:
        exact = [data.filter(pl.col("town") == town).height for town in TOWNS]
        noisy = way(mechanism, pl.DataFrame({"town": TOWNS, "n": exact}), folder)
        return mechanism.privacy_loss(1), repr(noisy)

    return run


ENTRIES.update({name: partial(counts, way) for name, way in OF_COUNTS.items()})


places = st.tuples(
    st.sampled_from([*TOWNS, "elsewhere", None]),
    st.sampled_from([*SEXES, "x"]),
    st.integers(-99, 99),
)


@st.composite
def neighbours(draw: Any, many: bool, change: bool) -> list[pl.DataFrame]:
    """Return two frames, in which one individual has other records, or in one of them none."""
    others = draw(st.lists(st.tuples(st.integers(0, 3), places), max_size=8))
    # Of few places, so that an individual has several records in one.
    some = st.sampled_from(draw(st.lists(places, min_size=1, max_size=3)))
    of_one = st.lists(some, min_size=1, max_size=6 if many else 1)
    schema = {"who": pl.Int64, "town": pl.String, "sex": pl.String, "age": pl.Int16}
    found = [
        pl.DataFrame(
            # The last individual: the draws of contributions of all others stay the same.
            [*((who, *place) for who, place in others), *((9, *place) for place in mine)],
            schema,
            orient="row",
        )
        for mine in (draw(of_one), draw(of_one) if change else [])
    ]
    return found if draw(st.booleans()) else found[::-1]


def replay(run: Any, pair: list[pl.DataFrame], seed: int) -> None:
    recorder = Recorder()
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            GeometricMechanism,
            "_core",
            property(lambda each: Core(CORE.__get__(each), each.rate, recorder), CORE.__set__),
        )
        real = geomdp.tiers.prepared

        def prepared(rates: Any, sensitivity: int, limits: Any) -> Any:
            core, certificate = real(rates, sensitivity, limits)
            return Tiers(core, rates[-1], recorder), certificate

        patch.setattr(geomdp.tiers, "prepared", prepared)
        reaching = steps._reaching

        def reached(release: Any, at_least: Any, occupied: Any) -> Any:
            # Groups have noise where there are records, and points elsewhere: what appears of all
            # cells is one draw, whose law test_groups_law.py enumerates.
            exact = np.zeros(release.design.cells, np.int64)
            exact[occupied[0]] = occupied[1]
            [mechanism] = release.mechanisms.values()
            return recorder.noise(
                mechanism.rate, (at_least,), exact, lambda: reaching(release, at_least, occupied)
            )

        patch.setattr(steps, "_reaching", reached)
        # The draws of contributions are those of the individual, in both runs.
        patch.setattr(_ids, "numbers", lambda ids: np.array([int(n) for n in ids[0]], np.int64))
        key = seed.to_bytes(8, "little")
        # So are the ids of releases and of counts, which no data decide.
        patch.setattr(identity, "fresh", lambda: next(ids))
        patch.setattr(_journal, "fresh", lambda: key.hex() * 2)
        patch.setattr(
            contributions,
            "words",
            lambda size: np.frombuffer(hashlib.shake_256(key).digest(8 * size), np.uint64),
        )
        for data in pair:
            ids = itertools.cycle(f"{key.hex()}{n:016x}" for n in range(8))
            with tempfile.TemporaryDirectory() as folder:
                said.append(run(data, Path(folder)))
            if data is pair[0]:
                first = recorder.calls
                recorder = Recorder(first)
    (loss, told), (other_loss, other_told) = said
    assert (loss, told) == (other_loss, other_told)
    assert first
    assert len(first) == len(recorder.calls)
    spent = Fraction(0)
    for one, two in zip(first, recorder.calls, strict=True):
        assert (one.rate, one.public) == (two.rate, two.public)
        spent += one.rate * sum(abs(x - y) for x, y in zip(one.exact, two.exact, strict=True))
    assert spent <= stated(loss)


@pytest.mark.parametrize("name", ENTRIES)
# The same examples in every run: they catch the planted faults always, or never.
@settings(max_examples=30, derandomize=True, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_neighbours_differ_by_what_is_paid(name: str, data: Any) -> None:
    run = ENTRIES[name](data.draw)
    design = getattr(run, "args", [None])[0]
    change = isinstance(design, Design) and design.neighbours == "change"
    pair = data.draw(neighbours(many="individual" in name, change=change))
    replay(run, pair, data.draw(st.integers(0, 2**64 - 1)))


#: What releases, by its last name.
RELEASES = {
    *("release", "release_columns", "release_batches", "randomise", "invoke", "register"),
    "make_composition",
}
#: What needs OpenDP, whose own tests see what they send; what reflects the noisy
#: counts in the core; exact results; what is not private, and says so.
ELSEWHERE = (
    *("compat.opendp", "compat.diffprivlib.GeometricFolded"),
    *("measurement.Transformation", "testing"),
)


def test_every_public_release_is_replayed() -> None:
    found = set()
    for module in PUBLIC:
        of = (module + ".").removeprefix("geomdp.")
        if of.startswith(ELSEWHERE):
            continue
        loaded = importlib.import_module(module)
        for public in getattr(loaded, "__all__", []):
            item = getattr(loaded, public)
            inside = [f"{public}.{each}" for each in dir(item)] if inspect.isclass(item) else []
            found |= {of + each for each in (public, *inside)}
    found = {
        name.removeprefix("mechanism.")
        for name in found
        if name.rpartition(".")[2] in RELEASES and not name.startswith(ELSEWHERE)
    }
    replayed = {each.split(" ")[0] for name in ENTRIES for each in name.split("; ")}
    assert len(found) > 12
    assert found <= replayed, found - replayed
