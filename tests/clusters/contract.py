"""What holds on every engine: each file of tests has its own engine, and these tests of it."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from geomdp import GeometricMechanism
from geomdp.distributed import ReleaseKey

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


class Engine(NamedTuple):
    """How to use an engine."""

    #: Returns the engine's frame with the rows of a table, in parts.
    frame: Callable[[pa.Table], Any]
    release: Callable[..., Any]
    table: Callable[[Any], pa.Table]
    #: Lets all further releases of the test draw this key.
    draw: Callable[[pytest.MonkeyPatch, ReleaseKey], None]
    #: The error that an evaluation raises for an error of ours.
    error: type[Exception]


def night(*values: Any) -> list[Any]:
    """Return values of a parameter, or tuples of several, that only the night tries."""
    tuples = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*each, marks=pytest.mark.night) for each in tuples]


def copies(key: ReleaseKey) -> Callable[[], ReleaseKey]:
    return lambda: pickle.loads(pickle.dumps(key))


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

    def test_repeated_null_ids_raise(self, engine: Engine) -> None:
        ids = pa.array([None, 2, None], pa.int64())
        frame = engine.frame(pa.table({"id": ids, "n": pa.array([SECRET] * 3)}))
        with pytest.raises(ValueError, match=r"ids = \['id'\] are not unique") as caught:
            engine.release(frame, {"n": WIDE}, ["id"])
        assert str(SECRET) not in str(caught.value)

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
        with pytest.raises(TypeError, match=r"has type .*: give a (DataFrame|Dataset) of"):
            engine.release(None, {"n": WIDE}, ["id"])
