"""What holds on every engine: each file of tests has its own engine, and these tests of it."""

import datetime
import decimal
import doctest
import itertools
import math
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import geomdp
from geomdp import GeometricMechanism
from geomdp.accounting import Budget
from geomdp.keyed import ReleaseKey
from geomdp.tables import Design, Words, choose_limit
from individuals import CELLS, PAIRS, visits
from statistics_ import equal_as_often_as_independent

WIDE = GeometricMechanism.from_scale(1e6)
SECRET = 918_273_645
#: Ids of three rows, which are equal, by name: each twice with its type.
EQUAL = {
    "integers": ([3, None, 5], pa.int32(), [3, None, 5], pa.int64()),
    "strings": (["é", None, ""], pa.string(), ["é", None, ""], pa.large_string()),
    "durations": ([5, -7, 0], pa.duration("ms"), [5000, -7000, 0], pa.duration("us")),
    "times": ([-5, 7, 0], pa.timestamp("ms"), [-5000, 7000, 0], pa.timestamp("us")),
    "zones": ([5] * 3, pa.timestamp("us", "UTC"), [5] * 3, pa.timestamp("us", "Asia/Tokyo")),
    "zones and units": (
        [5] * 3,
        pa.timestamp("ms", "UTC"),
        [5000] * 3,
        pa.timestamp("us", "Asia/Tokyo"),
    ),
}


#: Two ids of individuals, and their type.
INDIVIDUALS: dict[str, tuple[Any, Any, pa.DataType]] = {
    "integers": (2**62, 2**62 + 1, pa.int64()),
    "small integers": (-1, 1, pa.int8()),
    "text": ("né", "né", pa.string()),
    "bytes": (b"\xff\x00", b"\xff", pa.binary()),
}
DAY = datetime.date(2026, 1, 1)
#: Columns of types that identify nobody.
NOBODY = {
    "float": pa.array([math.nan, -0.0, 0.0], pa.float32()),
    "double": pa.array([math.nan, -0.0, None], pa.float64()),
    "decimals": pa.array([decimal.Decimal("1.0")] * 3),
    "bools": pa.array([True] * 3),
    "dates": pa.array([DAY] * 3),
}


class Engine(NamedTuple):
    """How to use an engine."""

    #: Returns the engine's frame with the rows of a table, in parts.
    frame: Callable[[pa.Table], Any]
    release: Callable[..., Any]
    table: Callable[[Any], pa.Table]
    #: Keeps the rows of a frame, where the engine can.
    keep: Callable[[Any], Any]
    #: Lets all further releases of the test draw this key.
    draw: Callable[[pytest.MonkeyPatch, ReleaseKey], None]
    #: The error that an evaluation raises for an error of ours.
    error: type[Exception]
    #: Counts the records of a frame into the table of a design, where the engine can.
    tabulate: Any = None
    #: Adds up a column of a frame into the table of a design, where the engine can.
    add_up: Any = None
    #: Chooses a limit from the records of a frame, where the engine can.
    choose: Any = None


def night(*values: Any) -> list[Any]:
    """Return values of a parameter, or tuples of several, that only the night tries."""
    tuples = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*each, marks=pytest.mark.night) for each in tuples]


def copies(key: ReleaseKey) -> Callable[[], ReleaseKey]:
    return lambda: pickle.loads(pickle.dumps(key))


def record_keys(patch: pytest.MonkeyPatch, module: ModuleType) -> list[bytes]:
    """Return a list to which the module's keys add their bytes as they are drawn."""
    drawn: list[bytes] = []

    def draw() -> ReleaseKey:
        key = ReleaseKey()
        _, (_, secret) = key.__reduce__()
        assert len(secret) == 32
        drawn.append(secret)
        return key

    patch.setattr(module, "ReleaseKey", draw)
    return drawn


def tuples(table: pa.Table, names: list[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def by_ids(table: pa.Table, ids: list[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the counts of two columns by ids."""
    found = dict(zip(tuples(table, ids), tuples(table, ["n", "m"]), strict=True))
    assert len(found) == table.num_rows
    return found


class Contract:
    """The tests; a subclass runs them on the fixture `engine` of its module."""

    def test_equal_ids_of_other_types_have_equal_noise(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine.draw(monkeypatch, ReleaseKey())
        found = []
        for place in (0, 2):
            ids = {name: pa.array(*each[place : place + 2]) for name, each in EQUAL.items()}
            frame = engine.frame(pa.table({**ids, "n": np.zeros(3, np.int64)}))
            noisy = engine.release(frame, {"n": WIDE}, [*EQUAL], unique_ids=True).frame
            found.append(sorted(engine.table(noisy)["n"].to_pylist()))
        assert found[0] == found[1]
        assert len(set(found[0])) == 3

    def test_noise_is_independent_of_order_and_parts(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine.draw(monkeypatch, ReleaseKey())
        rows = pa.table({"id": np.arange(300), "n": np.zeros(300, np.int64)})
        found = []
        for places in (np.arange(300), np.random.default_rng(3).permutation(300)):
            frame = engine.frame(rows.take(places))
            noisy = engine.release(frame, {"n": WIDE}, ["id"], unique_ids=True).frame
            found.append(engine.table(noisy).sort_by("id")["n"].to_pylist())
        assert found[0] == found[1]
        assert len(set(found[0])) > 290

    def test_nulls(self, engine: Engine) -> None:
        """The error of a task shows no count."""
        counts = pa.array([SECRET, None, SECRET], pa.int64())
        frame = engine.frame(pa.table({"id": pa.array([1, None, 3]), "n": counts}))
        with pytest.raises(engine.error, match="column 'n' contains nulls") as caught:
            engine.table(engine.release(frame, {"n": WIDE}, ["id"], unique_ids=True).frame)
        assert str(SECRET) not in str(caught.value)
        noisy = engine.table(
            engine.release(frame, {"n": WIDE}, ["id"], nulls="keep", unique_ids=True).frame
        )
        missing = dict(zip(noisy["id"].to_pylist(), noisy["n"].is_null().to_pylist(), strict=True))
        assert missing == {1: False, None: True, 3: False}

    @pytest.mark.parametrize("ids", [[1, 1, 2], [1, 2, 1], [None, 2, None]])
    def test_repeated_ids_raise(self, engine: Engine, ids: list[Any]) -> None:
        """In one part and in two, and where an individual has no id."""
        frame = engine.frame(pa.table({"id": pa.array(ids, pa.int64()), "n": [SECRET] * 3}))
        with pytest.raises(ValueError, match=r"ids = \['id'\] are not unique") as caught:
            engine.release(frame, {"n": WIDE}, ["id"])
        assert str(SECRET) not in str(caught.value)

    def test_releases_and_columns_are_independent(self, engine: Engine) -> None:
        """Even of equal counts, and while the engine keeps the first release."""
        scale, zeros = 5.0, np.zeros(1000, np.int64)
        mechanisms = dict.fromkeys("nm", GeometricMechanism.from_scale(scale))
        frame = engine.frame(pa.table({"id": np.arange(1000), "n": zeros, "m": zeros}))
        found = []
        for _ in range(2):
            noisy = engine.keep(engine.release(frame, mechanisms, ["id"], unique_ids=True).frame)
            table = engine.table(noisy).sort_by("id")
            found += [table["n"].to_pylist(), table["m"].to_pylist()]
        for pair in itertools.combinations(found, 2):
            assert equal_as_often_as_independent(*pair, scale)
        assert not equal_as_often_as_independent(found[0], found[0], scale)

    def test_wiped_release_raises(self, engine: Engine) -> None:
        """Rows that the engine keeps stay, and other releases do."""
        frame = engine.frame(pa.table({"id": [1, 2, 3], "n": [7] * 3}))
        wiped, seen, other = (
            engine.release(frame, {"n": WIDE}, ["id"], unique_ids=True) for _ in range(3)
        )
        kept = engine.keep(seen.frame)
        first = engine.table(kept).sort_by("id")["n"]
        for release in (wiped, seen, wiped):
            release.wipe()
        with pytest.raises(engine.error, match=r"key (of this release )?is wiped"):
            engine.table(wiped.frame)
        assert engine.table(kept).sort_by("id")["n"] == first
        assert len(engine.table(other.frame)) == 3

    def test_invalid_arguments_raise(self, engine: Engine) -> None:
        columns = {"id": [1, 2], "town": ["x", "y"], "n": [7, 7], "x": [0.5, 1.5]}
        frame = engine.frame(pa.table({**columns, "m": pa.array([7, 7], pa.int32())}))
        low = GeometricMechanism(1, bounds=(0, 2**31))
        for error, arguments, text in [
            (TypeError, ({"x": WIDE}, ["id"]), "'x' of type"),
            (TypeError, ({"town": WIDE}, ["id"]), "'town' of type"),
            (TypeError, ({"n": WIDE}, ["x"]), "ids of type double"),
            (TypeError, ({"n": 1.0}, ["id"]), "mechanisms contains a float"),
            (TypeError, ({"n": WIDE}, "town"), "ids = 'town'"),
            (KeyError, ({"n": WIDE}, ["city"]), "'city'"),
            (KeyError, ({"N": WIDE}, ["id"]), "'N'"),
            (ValueError, ({"n": WIDE}, []), "ids is empty"),
            (ValueError, ({}, ["id"]), "mechanisms is empty"),
            (ValueError, ({"n": WIDE}, ["n"]), "no released column"),
            (OverflowError, ({"m": low}, ["id"]), "bounds"),
        ]:
            with pytest.raises(error, match=text):
                engine.release(frame, *arguments)
        with pytest.raises(ValueError, match="nulls = 'drop'"):
            engine.release(frame, {"n": WIDE}, ["id"], nulls="drop")
        with pytest.raises(TypeError, match="unique_ids = 1"):
            engine.release(frame, {"n": WIDE}, ["id"], unique_ids=1)
        for wrong in (None, pd.DataFrame(columns)):
            with pytest.raises(TypeError, match=r"has type .*: give a (DataFrame|Dataset) of"):
                engine.release(wrong, {"n": WIDE}, ["id"])


class Tables:
    """The same for engines that count the tables of designs."""

    def test_a_table_is_that_of_one_machine(self, engine: Engine) -> None:
        rows = np.arange(1000)
        towns = np.array(["a", "b", "z"])[rows % 3]
        records = pa.table({"who": rows % 20, "n": rows // 20 % 7, "town": towns})
        levels: dict[str, list[Any]] = {"town": ["b", "c", "a"], "n": [6, 9, 0]}
        frame = engine.frame(records)
        for design, weights in (
            (Design(levels), None),
            (Design(levels, margins={"n": -1}, other={"town": "else"}), None),
            (Design(levels, margins={"n": -1}), "who"),
            (Design(levels, individual="who", l0=9, linf=1000), None),
        ):
            found = engine.tabulate(design, frame, counts=weights)
            wanted = design.count(records, counts=weights)
            assert np.array_equal(found.frame["count"], wanted.frame["count"])
            assert found.design == design
        many = engine.frame(pa.table({"n": [1] * 4, "weight": [2**62] * 4}))
        most = engine.tabulate(Design({"n": [1]}), many, counts="weight")
        assert np.array_equal(most.frame["count"], [2**63 - 1])

    def test_chosen_tables_of_many_columns_are_those_of_one_machine(self, engine: Engine) -> None:
        """Of 70 columns, whose combinations have no number: tasks send the rows of the tables."""
        rng = np.random.default_rng(1)
        levels = {f"c{n}": [0, 1, 2] for n in range(70)}
        keys: list[Any] = ["c0", *((f"c{n}", f"c{n + 1}") for n in range(69)), ()]
        columns = {name: rng.integers(0, 3, 200) for name in levels}
        records = pa.table({**columns, "who": np.arange(200) // 2})
        frame = engine.frame(records)
        limits: list[dict[str, Any]] = [{}, {"l0": 2, "linf": 2}, {"l1": 2}]
        for limit in limits:
            who: dict[str, Any] = {"individual": "who"} if limit else {}
            design = Design(levels, tables=keys, **who, **limit)
            found, wanted = engine.tabulate(design, frame), design.count(records)
            assert found._nodes().tolist() == wanted._nodes().tolist()
            assert found._nodes()[-1] == 200
            assert found._occupied[0].size <= design.cells
        sums = Design(levels, tables=keys)
        found = engine.add_up(sums, frame, "who", bounds=(0, 9))._nodes()
        assert np.array_equal(found, sums.sum(records, "who", bounds=(0, 9))._nodes())
        # One draw of each individual, which is that of all tables.
        counts = engine.tabulate(
            Design(levels, tables=keys, individual="who", l0=1), frame
        )._nodes()
        assert counts[-1] == 100
        pairs = counts[3:-1].reshape(69, 3, 3)
        assert np.array_equal(pairs[0].sum(1), counts[:3])
        assert np.array_equal(pairs[1:].sum(2), pairs[:-1].sum(1))

    def test_words_and_ids_are_counted_without_a_list(self, engine: Engine) -> None:
        """Their cells may be beyond int64, and a task may have none."""
        rows = np.arange(1000)
        words = np.array(["weather", "news", "Capital", "a"])[rows % 4]
        records = pa.table({"who": rows % 20, "word": words, "id": rows % 3 * 2**61})
        frame = engine.frame(records)
        letters, wide = Words("abcdefghijklmnopqrstuvwxyz", 40), range(-(2**63), 2**63)
        limits: dict[str, Any] = {"individual": "who", "l0": 9, "linf": 1000}
        for design in (
            Design({"word": letters}, other="(other)"),
            Design({"word": letters, "id": wide}, **limits),
            Design({"id": wide}),
            Design({"word": Words("abcdenrstuvwxyz", 12)}, **limits),
            Design({"word": Words("xyz", 40)}),
            Design({("id", "word"): [(0, "news"), (2**62, "a"), (7, "a")]}, other=(9, "(other)")),
        ):
            found, wanted = engine.tabulate(design, frame), design.count(records)
            for own, other in zip(found._occupied, wanted._occupied, strict=True):
                assert own.tolist() == other.tolist()
                assert own.dtype == other.dtype
        noisy = engine.tabulate(Design({"word": letters}), frame).release(epsilon=1, at_least=140)
        assert {"a", "news", "weather"} <= {*noisy.to_dict()}

    def test_the_guide_of_searches_leads_from_a_log_to_a_page(
        self, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its block for this engine has the table of the one for pandas, and what follows runs."""
        monkeypatch.chdir(tmp_path)
        text = (Path(__file__).parents[2] / "docs/guides/searches.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        session = "".join(each for each in blocks if each.startswith(">>> "))
        names: dict[str, Any] = {}
        for example in doctest.DocTestParser().get_examples(session):
            exec(compile(example.source, "searches.md", "single"), names)
            if "log = " in example.source:
                # Nobody has more words than count.
                typed = np.resize([*names["typed"], None, "CAFÉ"], 8000)
                names["log"] = pd.DataFrame({"who": np.arange(8000) // 2, "query": typed})
                records = pa.Table.from_pandas(names["log"])
        wanted = names["design"].count(names["log"])
        names["log"] = engine.frame(records)
        [block] = [each for each in blocks if f"from {engine.tabulate.__module__} import" in each]
        [release] = re.findall(r"^noisy = table.*?^noisy.save.+?$", text, re.DOTALL | re.MULTILINE)
        exec(compile(block if release in block else block + release, "searches.md", "exec"), names)
        for own, other in zip(names["table"]._occupied, wanted._occupied, strict=True):
            assert own.tolist() == other.tolist()
        found = geomdp.read("december.csv").to_dict()
        assert {"café", "weather", "bus times"} <= {*found}
        assert "café" in Path("december.html").read_text()

    def test_bins_are_those_of_one_machine(self, engine: Engine) -> None:
        """Of integers, floats and dates, with and without ends, nulls among them."""
        rows = np.arange(600)
        days = [DAY + datetime.timedelta(int(n)) for n in rows % 30]
        records = pa.table(
            {
                "age": pa.array(rows % 101 - 5, mask=rows % 9 == 0),
                "euros": pa.array(rows / 7, mask=rows % 8 == 0),
                "day": days,
            }
        )
        labels, frame = ["a", "b", "c"], engine.frame(records)
        cuts: dict[str, list[Any]] = {"age": [18, 65], "euros": [0.5, 9.25], "day": [DAY, days[20]]}
        for design in (
            *(Design({name: labels}, bins={name: each}, other="x") for name, each in cuts.items()),
            Design(dict.fromkeys(cuts, labels), bins=cuts),
            Design({"age": ["adult"]}, bins={"age": [18, 65]}),
        ):
            found, wanted = engine.tabulate(design, frame), design.count(records)
            assert (found._nodes() == wanted._nodes()).all()
            assert found._nodes().sum() > 100

    def test_sums_are_those_of_one_machine(self, engine: Engine) -> None:
        """With values below 0 and null, and limits that cut nothing but single values."""
        rows = np.arange(1000)
        euros = pa.array(rows % 101 - 50, mask=rows % 9 == 0)
        records = pa.table({"who": rows % 20, "n": rows // 20 % 7, "euros": euros})
        levels, frame = {"n": [6, 9, 0]}, engine.frame(records)
        for design, bounds in (
            (Design(levels), (-30, 20)),
            (Design(levels), (0, 20)),
            (Design(levels, individual="who", l0=3), (-100, 60)),
            (Design(levels, individual="who", l1=10**6), (-30, 20)),
            (Design(levels, individual="who", l1=10**6), None),
        ):
            found = engine.add_up(design, frame, "euros", bounds=bounds)
            wanted = design.sum(records, "euros", bounds=bounds)
            assert np.array_equal(found.frame["euros"], wanted.frame["euros"])
            assert found.design == wanted.design
        each = Design({**levels, "who": list(range(20))}, individual="who", l1=7)
        # Values of one sign, which do not cancel in a cell.
        found = engine.add_up(each, frame, "euros", bounds=(0, 20))
        who, added = (np.array(found.frame[name]) for name in ("who", "euros"))
        assert np.bincount(who, added).tolist() == [7] * 20
        assert found.sensitivity == 7

    def test_a_limit_is_that_of_one_machine(self, engine: Engine) -> None:
        """Of individuals whose records are in several parts, without noise."""
        rows = np.arange(1000)
        who = rows % 40 % (1 + rows % 9)
        records = pa.table({"who": who, "n": rows // 40 % 7, "euros": rows % 101 - 40})
        levels, frame = {"n": [6, 9, 0, 3]}, engine.frame(records)
        for limit, design, column in (
            ("l0", Design(levels, individual="who", l0=4), None),
            ("linf", Design(levels, individual="who", l0=4, linf=90), None),
            ("l1", Design(levels, individual="who", l1=400), None),
            ("l1", Design(levels, individual="who", l1=10**4), "euros"),
            ("bounds", Design(levels, individual="who", l0=2), "euros"),
            ("bounds", Design(levels), "euros"),
        ):
            asked: Any = {"limit": limit, "column": column, "epsilon": 10**5, "share": "0.6"}
            found = engine.choose(design, frame, **asked)
            wanted = choose_limit(design, records, **asked)
            assert found.limit == wanted.limit
            assert found.design == wanted.design
            assert found.table.counts.tolist() == wanted.table.counts.tolist()
        with pytest.raises(TypeError, match=r"use geomdp\.tables\.\w+"):
            choose_limit(design, frame, "bounds", column="euros", epsilon=1)
        budget = Budget(epsilon=1)
        for limit, share in (("l2", "0.5"), ("bounds", 2)):
            with pytest.raises(ValueError, match=r"limit = 'l2'|share = 2"):
                engine.choose(
                    design, frame, limit, column="euros", epsilon=1, share=share, budget=budget
                )
        assert budget.spent == []

    def test_sums_that_cannot_be_bounded_raise(self, engine: Engine) -> None:
        frame = engine.frame(pa.table({"n": [1, 2], "x": [1.0, 2.0]}))
        design = Design({"n": [1]})
        for error, call, text in [
            (TypeError, lambda: engine.add_up(frame, design, "n"), "give a Design"),
            (TypeError, lambda: engine.add_up(design, frame, "n"), "bounds"),
            (ValueError, lambda: engine.add_up(design, frame, "n", bounds=(9, 0)), "bounds"),
            (TypeError, lambda: engine.add_up(design, frame, "x", bounds=(0, 9)), "values of 'x'"),
            (KeyError, lambda: engine.add_up(design, frame, "y", bounds=(0, 9)), "y"),
            (ValueError, lambda: engine.tabulate(Design({"n": [1]}, values=(0, 9)), frame), "sum"),
        ]:
            with pytest.raises(error, match=text):
                call()

    def test_uncountable_frames_raise(self, engine: Engine) -> None:
        columns: dict[str, Any] = {"n": [1, 2], "who": [1, 2], "x": [1.0, 2.0]}
        frame, count = engine.frame(pa.table(columns)), engine.tabulate
        few = engine.frame(pa.table({"n": [1, 2]}))
        design = Design({"n": [1]}, individual="who", l0=1)
        for error, call, text in [
            (TypeError, lambda: design.count(frame), r"use geomdp\.tables\.\w+"),
            (TypeError, lambda: count(frame, design), "give a Design"),
            (TypeError, lambda: count(design, pd.DataFrame(columns)), r"give a Data(Frame|set) of"),
            (KeyError, lambda: count(design, few), "no column 'who'"),
        ]:
            with pytest.raises(error, match=text):
                call()

    @pytest.mark.parametrize("kind", INDIVIDUALS)
    def test_one_individual_in_three_cells_is_one(self, engine: Engine, kind: str) -> None:
        """As on one machine; and two are two."""
        one, other, kind_of = INDIVIDUALS[kind]
        design = Design({"n": [1, 2, 3]}, individual="who", l0=1)
        for ids in ([one] * 3, [one, other, one]):
            frame = engine.frame(pa.table({"who": pa.array(ids, kind_of), "n": [1, 2, 3]}))
            found = engine.tabulate(design, frame).frame["count"]
            assert sum(map(int, found)) == len(set(ids))

    @pytest.mark.parametrize("case", [name for name in PAIRS if name != "dictionaries"])
    def test_tuples_of_ids_are_one_individual_only_if_they_are_equal(
        self, engine: Engine, case: str
    ) -> None:
        """As on one machine: no engine joins their texts."""
        table, size = visits(case)
        design = Design({"n": CELLS}, individual=("household", "person"), l0=1)
        found = engine.tabulate(design, engine.frame(table)).frame["count"]
        assert sum(map(int, found)) == size

    @pytest.mark.parametrize("kind", NOBODY)
    def test_other_types_identify_nobody(self, engine: Engine, kind: str) -> None:
        """The same types are refused as on one machine, before a task runs."""
        frame = engine.frame(pa.table({"who": NOBODY[kind], "n": [1, 2, 3]}))
        with pytest.raises(TypeError, match=r"individuals of type .* are not accepted"):
            engine.tabulate(Design({"n": [1, 2, 3]}, individual="who", l0=1), frame)
