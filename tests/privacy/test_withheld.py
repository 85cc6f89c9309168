"""Objects with exact counts or keys, and the tools that walk objects: none shows them."""

import base64
import copy
import dataclasses
import inspect
import io
import json
import logging
import pickle
import pprint
import reprlib
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpickle
import jsonpickle.ext.pandas
import msgspec
import numpy as np
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pydantic_core
import pytest
import rich.console
import rich.pretty

import geomdp.tables.polars  # noqa: F401 (registers the namespace)
from geomdp import GeometricMechanism, accounting, tables
from geomdp.keyed import Release, ReleaseKey

MANY = [4321, 8765]
LIBRARIES: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Table": pa.table}


def table(library: str) -> tables.Table:
    people = LIBRARIES[library]({"town": np.repeat(["a", "b"], MANY)})
    return tables.count(people, {"town": ["a", "b"]}, margins="all")


def of_counts() -> list[bytes]:
    counts = [*MANY, sum(MANY)]
    return [b"%d" % count for count in counts] + [np.array(counts).tobytes()]


def of_key(key: ReleaseKey) -> list[bytes]:
    secret = key._core.secret()
    printed = [secret.hex(), repr(secret)[2:-1], repr(list(secret))[1:-1]]
    return [secret, base64.b64encode(secret), *map(str.encode, printed)]


@dataclasses.dataclass
class Open:
    """Shows all that it holds."""

    frame: str
    levels: int


KEY = ReleaseKey()
#: Objects, and the bytes that nothing may show.
HELD: dict[str, tuple[Any, list[bytes]]] = {
    **{f"Table of {library}": (table(library), of_counts()) for library in LIBRARIES},
    "namespace of Series": (table("polars").frame["count"].geomdp, of_counts()),
    "ReleaseKey": (KEY, of_key(KEY)),
    "Release": (Release("a lazy frame", KEY.wipe), of_key(KEY)),
}


def inspected(value: Any, **more: bool) -> str:
    console = rich.console.Console(file=io.StringIO(), width=200)
    rich.inspect(value, console=console, **more)  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def logged(value: Any) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.emit(logging.LogRecord("", 10, "", 1, "%s %r", (value, value), None))
    return stream.getvalue()


def with_locals(value: Any) -> str:
    """Return the traceback of an error, with local variables."""
    try:
        json.dumps([value])
    except TypeError as error:
        return "".join(
            traceback.TracebackException.from_exception(error, capture_locals=True).format()
        )
    raise AssertionError


def pickled_as_json(value: Any) -> str:
    jsonpickle.ext.pandas.register_handlers()
    try:
        return jsonpickle.encode(value, keys=True) + jsonpickle.encode(
            value, keys=True, unpicklable=False
        )
    finally:
        jsonpickle.ext.pandas.unregister_handlers()


TOOLS: dict[str, Callable[[Any], Any]] = {
    "orjson": lambda value: orjson.dumps(value, default=str),
    "msgspec": lambda value: msgspec.json.encode(value, enc_hook=str),
    "msgspec builtins": lambda value: msgspec.to_builtins(value, enc_hook=str),
    "pydantic": lambda value: pydantic_core.to_json(value, fallback=str),
    "pydantic of unknowns": lambda value: pydantic_core.to_json(value, serialize_unknown=True),
    "asdict": dataclasses.asdict,
    "astuple": dataclasses.astuple,
    "fields": lambda value: [getattr(value, each.name) for each in dataclasses.fields(value)],
    "getstate": lambda value: value.__getstate__(),
    "vars": vars,
    "members": inspect.getmembers,
    "rich.inspect": inspected,
    "rich.inspect of all": lambda value: inspected(value, all=True),
    "rich.pretty": rich.pretty.pretty_repr,
    "jsonpickle": pickled_as_json,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pprint": pprint.pformat,
    "reprlib": reprlib.repr,
    "repr": repr,
    "str": str,
    "format": format,
    "html": lambda value: getattr(value, "_repr_html_", value.__repr__)(),
    "logging": logged,
    "traceback": with_locals,
}


def shown(tool: str, value: Any) -> bytes:
    found = TOOLS[tool](value)
    return found if isinstance(found, bytes) else str(found).encode()


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_show_an_open_object(tool: str) -> None:
    assert b"8765" in shown(tool, Open("4321", 8765)) or tool == "pickle"
    assert b"4321" in pickle.dumps(Open("4321", 8765))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", HELD)
def test_no_tool_shows_what_is_withheld(name: str, tool: str) -> None:
    value, secrets = HELD[name]
    if name == "ReleaseKey" and tool in ("pickle", "jsonpickle"):
        pytest.skip("keys are sent to other processes by pickling")
    try:
        found = shown(tool, value)
    except Exception as error:  # Each tool has its own.
        found = f"{error!r}".encode()
    assert not [secret for secret in secrets if secret in found]


class Fails(GeometricMechanism):
    """Fails in the draw."""

    def release(self, *_: Any, **__: Any) -> Any:
        raise ValueError


@pytest.mark.parametrize("library", LIBRARIES)
def test_tracebacks_of_a_table_show_no_count(library: str) -> None:
    counted = table(library)
    for arguments in (
        {"mechanism": None},
        {"mechanism": GeometricMechanism(1), "threads": -1},
        {"epsilon": 1, "budget": accounting.Budget(epsilon=0.5)},
        {"mechanism": Fails(1, sensitivity=2)},
        # Refused where the counts are read.
        {"mechanism": GeometricMechanism(1, bounds=(0, 2**64 - 1))},
    ):
        given: Any = arguments
        with pytest.raises((TypeError, ValueError, OverflowError)) as error:
            counted.release(**given)
        captured = traceback.TracebackException.from_exception(error.value, capture_locals=True)
        text = "".join(captured.format()).encode()
        assert b"counted = <Table" in text
        assert not [secret for secret in of_counts() if secret in text]


def test_pytest_shows_no_count(tmp_path: Path) -> None:
    """Its explanation of a comparison, and its lists of local variables."""
    code = f"""
import dataclasses
import numpy as np
import pandas as pd
from geomdp import tables

def table(many):
    people = pd.DataFrame({{"town": np.repeat(["a", "b"], many)}})
    return tables.count(people, {{"town": ["a", "b"]}})

def test_equal():
    one, other = table({MANY[0]} + np.arange(2)), table({MANY[1]} + np.arange(2))
    assert one == other

@dataclasses.dataclass
class Open:
    n: int

def test_canary():
    one, other = Open(1357), Open(2468)
    assert one == other
"""
    (tmp_path / "test_it.py").write_text(
        code.replace("4321", "4300 + 21").replace("8765", "8700 + 65")
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vv", "-l", "-p", "no:cacheprovider", "test_it.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "2 failed" in done.stdout
    assert "Table of 2 counts, not shown" in done.stdout
    assert "1357" in done.stdout
    assert not [count for count in ("4321", "4322", "8765", "8766") if count in done.stdout]


def test_withheld_objects_are_not_copied() -> None:
    for value in (
        table("pandas"),
        pl.Series([1]).geomdp,  # type: ignore[attr-defined]
        Release("a lazy frame", KEY.wipe),
        accounting.Budget(1),
    ):
        for leave in (pickle.dumps, copy.copy, copy.deepcopy, lambda each: each.__getstate__()):
            with pytest.raises(TypeError, match="cannot be copied or pickled: "):
                leave(value)
        assert jsonpickle.encode(value, keys=True) == "null"
    assert "frame" not in dir(table("pandas"))
    assert {"design", "release", "sensitivity", "top"} <= set(dir(table("pandas")))
