"""No public call that takes or holds exact counts leaves them in a traceback.

The calls are found by walking the package, their refusals by their signatures: a new call is tried
without being listed, and fails if nothing here can call it.
"""

import gc
import importlib
import inspect
import pkgutil
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp
import geomdp.measurement as m
import geomdp.tables.polars
from calls import CALLS as CALLS_WITH
from geomdp import GeometricMechanism, accounting, tables
from geomdp._ground.uncopied import Withheld, hide, unseen
from geomdp.compat import diffprivlib
from geomdp.keyed import ReleaseKey
from geomdp.tables import streams

#: Exact counts that occur nowhere by chance.
MARKS = [48_611_903, 76_543_217]
PEOPLE = pd.DataFrame({"town": ["a", "b", "a"], "who": [1, 2, 3], "n": [*MARKS, 0]})
COUNTED = pd.DataFrame({"town": ["a", "b"], "n": MARKS})
DESIGN = tables.Design({"town": ["a", "b"]}, name="n")
RECORDS = m.vector_domain(m.atom_domain(int)), m.symmetric_distance()
PACKAGE = str(Path(geomdp.__file__).parent)
MECHANISM = GeometricMechanism(1, bounds=(0, 10**9))
FOLDER = tempfile.TemporaryDirectory()


def stream() -> streams.Stream:
    return streams.Stream.open(Path(FOLDER.name) / "s.jsonl", horizon=4, epsilon="1e-9", arity=2)


#: An object of each class whose calls see exact counts.
SELVES: dict[str, Callable[[], Any]] = {
    "Table": lambda: DESIGN.count(COUNTED, counts="n"),
    "SumAndCount": lambda: DESIGN.sum_and_count(COUNTED, "n", bounds=(0, 2**31)),
    "Design": lambda: DESIGN,
    "Hierarchy": lambda: tables.Hierarchy({"a": "all", "b": "all"}),
    "GeometricMechanism": lambda: MECHANISM,
    "TierPlan": lambda: MECHANISM.tier_plans(["0.1"])[0],
    "ReleaseKey": ReleaseKey,
    "Budget": lambda: accounting.Budget(100),
    "Stream": stream,
    "SeriesNamespace": lambda: pl.Series("n", MARKS).geomdp,  # type: ignore[attr-defined]
    "Geometric": lambda: diffprivlib.Geometric(epsilon=1),
    "GeometricTruncated": lambda: diffprivlib.GeometricTruncated(epsilon=1, lower=0, upper=9),
    "GeometricFolded": lambda: diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=9),
    "Measurement": lambda: m.make_count(*RECORDS) >> m.then_geometric(scale=2),
    "Transformation": lambda: m.make_count(*RECORDS),
    "VectorDomain": lambda: m.VectorDomain(m.AllDomain(int)),
    "AllDomain": lambda: m.AllDomain(int),
}
#: Good values of parameters without a default.
GOOD: dict[str, Any] = {
    "mechanism": MECHANISM,
    "mechanisms": {"n": MECHANISM},
    "epsilon": 0.5,
    "alpha": 0.05,
    "k": 1,
    "ids": ["town"],
    "name": "n",
    "part": True,
    "step": 0,
    "levels": {"town": ["a", "b"]},
    "column": "n",
    "individual": "who",
    "bounds": (0, 10**9),
    "l0": 1,
    "key": bytes(32),
    "sensitivity": 1,
    "min": 0,
    "max": 10**9,
    "other": "else",
}
#: Counts or records, by the names of the parameters that take them.
SECRET = {"arg", "batches", "counts", "counts_so_far", "data", "frame", "value"}


def of_batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch(COUNTED)
    raise ValueError("no more")


SECRETS: list[Any] = [
    np.array(MARKS),
    MARKS,
    pd.Series(MARKS, name="n"),
    COUNTED,
    PEOPLE,
    pl.DataFrame(PEOPLE),
    pl.LazyFrame(PEOPLE),
    dict(zip("ab", MARKS, strict=True)),
    MARKS[0],
    of_batches,
    # Refused.
    np.array(MARKS, float),
    np.ma.masked_array(MARKS, [True, False]),
    [MARKS, ["x"]],
    [*MARKS, "x"],
    {"a": MARKS},
    {"x": MARKS[0], "y": MARKS[1]},
    pd.Series([*MARKS, None]),
    pd.Series([*MARKS, None], dtype="Int64"),
    pd.DataFrame({"town": [1, 2], "n": MARKS}),
    pl.LazyFrame({"town": [1, 2], "n": MARKS}),
    pa.chunked_array([[*MARKS, None]]),
    lambda start, stop: np.array(MARKS) // [],
]
#: What some parameter refuses.
WRONG: list[Any] = [
    None,
    object(),
    "x",
    -1,
    0,
    10**400,
    2**63,
    [],
    {},
    {"x": 1},
    ["who"],
    (5, 2),
    (0, 2**64 - 1),
    accounting.Budget(epsilon=1e-9),
    GeometricMechanism(1),
    GeometricMechanism(1, bounds=(0, 2**64 - 1)),
]


def modules() -> Iterator[types.ModuleType]:
    yield geomdp
    for found in pkgutil.walk_packages(geomdp.__path__, "geomdp."):
        if not any(part.startswith("_") for part in found.name.split(".")[1:]):
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # An extra that is not installed.
                continue


def public_classes() -> dict[str, type]:
    everything = (getattr(x, name) for x in modules() for name in getattr(x, "__all__", ()))
    return {each.__name__: each for each in everything if inspect.isclass(each)}


def plain(call: Any, _: Any) -> Any:
    return call


def calls() -> Iterator[tuple[str, Callable[[Any], Any], inspect.Signature]]:
    """Yield the public calls that see exact counts: a name, the call for an object, parameters."""
    for module in modules():
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            if inspect.isfunction(found) and SECRET & set(inspect.signature(found).parameters):
                yield f"{module.__name__}.{name}", partial(plain, found), inspect.signature(found)
    for kind, found in public_classes().items():
        for name in dir(found):
            member = inspect.getattr_static(found, name)
            if name.startswith("_") and name != "__call__":
                continue
            if isinstance(member, property) and issubclass(found, Withheld):
                yield f"{kind}.{name}", attrgetter(name), inspect.Signature()
            if not inspect.isfunction(member) or not member.__module__.startswith("geomdp"):
                continue
            signature = inspect.signature(member)
            signature = signature.replace(parameters=[*signature.parameters.values()][1:])
            if issubclass(found, Withheld) or SECRET & set(signature.parameters):
                yield f"{kind}.{name}", attrgetter(name), signature


CALLS = {name: (get, signature) for name, get, signature in calls()}


def ways(signature: inspect.Signature) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a parameter and arguments, of which at most that one is wrong."""
    named = signature.parameters
    must = [each for each, x in named.items() if x.default is x.empty]
    secret = next((each for each in named if each in SECRET), None)
    good = {each: GOOD.get(each) for each in must if each != secret}
    more = [{}, *({each: GOOD[each]} for each in named if each in GOOD and each not in must)]
    for held in SECRETS if secret else [None]:
        for extra in more:
            base = good | extra | ({secret: held} if secret else {})
            yield secret or "", base
            for each in named:
                if each != secret and (held is None or held is SECRETS[0] or not extra):
                    yield from ((each, base | {each: wrong}) for wrong in WRONG)


def holds(value: Any, depth: int = 6, known: set[int] | None = None) -> bool:
    """Return whether an object refers to exact counts; those that withhold them show none."""
    known = set() if known is None else known
    if isinstance(value, int | np.integer):
        return int(value) in MARKS
    if isinstance(value, float | np.floating):
        return float(value) in MARKS
    if id(value) in known or not depth or isinstance(value, Withheld | type | types.ModuleType):
        return False
    known.add(id(value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return bool(np.isin(value, MARKS).any())
    if isinstance(value, pd.Series | pd.DataFrame | pl.Series | pl.DataFrame):
        return holds(value.to_numpy().tolist(), depth, known)
    if isinstance(value, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        return holds(value.to_pylist(), depth, known)
    if isinstance(value, str):
        return any(str(mark) in value for mark in MARKS)
    inside = value.__closure__ or () if isinstance(value, types.FunctionType) else None
    found = gc.get_referents(value) if inside is None else [x.cell_contents for x in inside]
    return any(holds(each, depth - 1, known) for each in found)


def left(error: BaseException) -> Iterator[str]:
    """Yield the places in which an error and its causes show exact counts.

    They are the package's calls and those below, not those of a caller, such as Polars.
    """
    chain: list[BaseException] = [error]
    for each in chain:
        inside = False
        if holds(str(each)) or holds(each.args):
            yield f"the message {each}"
        at = each.__traceback__
        while at is not None:
            code = at.tb_frame.f_code
            inside |= code.co_filename.startswith((PACKAGE, "elsewhere"))
            if inside and code.co_filename != __file__:
                yield from (
                    f"{name} in {code.co_qualname}"
                    for name, value in at.tb_frame.f_locals.items()
                    if holds(value)
                )
            at = at.tb_next
        for cause in (each.__cause__, each.__context__):
            if cause is not None and cause not in chain:
                chain.append(cause)


def test_the_calls_are_found() -> None:
    assert {"Table.release", "Table.top", "Table.frame", "Stream.release", "Design.count"} <= {
        *CALLS
    }
    assert {"geomdp.tables.count", "ReleaseKey.release_batches", "Measurement.__call__"} <= {*CALLS}
    withheld = [each for each in Withheld.__subclasses__() if each.__module__.startswith("geomdp")]
    for each in withheld:
        assert any(issubclass(kind, each) for kind in public_classes().values())


def refusal(get: Callable[[Any], Any], own: Any, arguments: dict[str, Any]) -> Exception | None:
    try:
        found = get(own)
        found = found(**arguments) if callable(found) else found  # A property is its value.
        if inspect.isgenerator(found):
            list(found)
        if isinstance(found, pl.Expr):
            pl.select(found)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", CALLS)
def test_no_refusal_shows_a_count(name: str) -> None:
    get, signature = CALLS[name]
    kind, _, rest = name.partition(".")
    make = (lambda: None) if "." in rest or kind == "geomdp" else SELVES[kind]
    refused = set()
    for parameter, given in ways(signature):
        arguments = {key: x() if x is of_batches else x for key, x in given.items()}
        if (error := refusal(get, make(), arguments)) is not None:
            refused.add(parameter)
            assert not [*left(error)], (parameter, arguments)
    # Otherwise the refusals of one parameter may hide those of another. No value is refused here:
    assert refused >= {*signature.parameters} or name == "AllDomain.member"


@pytest.mark.parametrize("name", CALLS)
def test_a_misspelt_keyword_shows_no_count(name: str) -> None:
    """Whatever the parameter is called: of a generator, the batches stayed in a variable."""
    get, signature = CALLS[name]
    kind, _, rest = name.partition(".")
    own = None if "." in rest or kind == "geomdp" else SELVES[kind]()
    given = {each: MARKS for each, x in signature.parameters.items() if x.kind is not x.VAR_KEYWORD}
    given = {each: x for each, x in given.items() if not each.startswith("*")}
    named = [*signature.parameters.values()]
    if not named or any(x.kind in (x.VAR_POSITIONAL, x.POSITIONAL_ONLY) for x in named):
        return
    error = refusal(get, own, given | {"mispelt": MARKS})
    assert error is not None
    assert not [*left(error)]


def test_records_of_a_lazy_frame_are_not_shown() -> None:
    """Refused for a null id when it was collected, they were in six variables."""
    frame = pl.DataFrame(PEOPLE).with_columns(who=pl.lit(None).cast(pl.Int64))
    bounded = tables.bound_contributions(frame.lazy(), "who", l0=1)
    with pytest.raises(Exception, match="null") as error:
        bounded.collect()
    assert not [*left(error.value)]


def test_the_center_of_a_sampler_is_not_shown() -> None:
    for how in ({"scale": -1}, {"scale": 1, "bounds": (1, 0)}, {"scale": 1, "x": 1}):
        with pytest.raises((TypeError, ValueError)) as error:
            geomdp.sample_two_sided_geometric(MARKS, **how)  # type: ignore[arg-type]
        assert not [*left(error.value)]


#: Not in this file.
CANARIES = """
def converts(held):
    int("x")

def refuses(counts):
    try:
        converts(counts)
    except ValueError as error:
        raise TypeError from error

def yields(counts):
    yield 1
    refuses(counts)
"""


def test_the_search_finds_counts() -> None:
    """In calls that are not decorated, and no longer in those that are."""
    space: dict[str, Any] = {}
    exec(compile(CANARIES, "elsewhere", "exec"), space)
    for call in (space["refuses"], lambda counts: [*space["yields"](counts)]):
        with pytest.raises(TypeError) as error:
            call(SECRETS[0])
        assert len([*left(error.value)]) >= 2
    refuses, yields = unseen(space["refuses"]), unseen(space["yields"])
    for call in (refuses, lambda counts: [*yields(counts)]):
        with pytest.raises(TypeError) as error:
            call(SECRETS[0])
        assert isinstance(error.value.__cause__, ValueError)
        assert not [*left(error.value)]


def test_the_variables_of_the_caller_stay() -> None:
    """Also those of an error that it is handling."""

    def fails() -> None:
        mine = 1
        raise KeyError(mine)

    with pytest.raises(KeyError) as before:
        fails()

    def handles() -> None:
        try:
            raise before.value
        except KeyError:
            MECHANISM.release(3, threads=-1)

    with pytest.raises(ValueError, match="threads") as error:
        handles()
    assert error.value.__context__ is before.value
    assert "mine" in before.traceback[-1].frame.f_locals


def test_errors_that_are_their_own_cause_end() -> None:
    error = ValueError()
    error.__cause__ = error
    hide(error)
    assert sys.exc_info()[0] is None


def kind_of(value: Any) -> str:
    return type(value).__name__


def half_made() -> Iterator[Any]:
    """Yield an object of each class of the package, its private ones too, without its values."""
    for found in pkgutil.walk_packages(geomdp.__path__, "geomdp."):
        with suppress(ImportError):  # An extra that is not installed.
            module = importlib.import_module(found.name)
            own = [each for each in vars(module).values() if inspect.isclass(each)]
            for each in own:
                # Python makes others as a whole: tuples, errors, objects of the core.
                with suppress(TypeError):
                    if each.__module__.startswith("geomdp"):
                        yield object.__new__(each)


@pytest.mark.parametrize("half", {type(each): each for each in half_made()}.values(), ids=kind_of)
def test_half_made_objects_have_a_text(half: Any) -> None:
    assert repr(half)
    assert getattr(half, "_repr_html_", half.__repr__)()


def test_the_objects_of_a_refusal_have_a_text() -> None:
    """Those whose `__init__` refused a value are half made."""
    found = set()
    for _, call in CALLS_WITH:
        for wrong in (None, object(), "x", -1, []):
            try:
                call(wrong)
            except Exception as error:
                at = error.__traceback__ and error.__traceback__.tb_next
                while at is not None:
                    found |= {repr(each) for each in at.tb_frame.f_locals.values()}
                    at = at.tb_next
    assert "GeometricMechanism, half made" in found
