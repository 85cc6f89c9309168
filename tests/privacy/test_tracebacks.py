"""No public call leaves in a traceback what it was given.

The calls are found by walking the package, their refusals by their signatures: a new call is tried
without being listed. Those that take or hold exact counts are refused in more ways, and fail if
nothing here can call them.
"""

import ast
import gc
import importlib
import inspect
import pkgutil
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
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
from geomdp import GeometricMechanism, accounting, tables
from geomdp._ground.uncopied import HIDING_THEMSELVES, Withheld, hide, is_unseen, unseen
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
    pl.LazyFrame(PEOPLE).with_columns(who=pl.lit(None).cast(pl.Int64)),
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
    for found in pkgutil.walk_packages(geomdp.__path__, "geomdp."):
        if not any(part.startswith("_") for part in found.name.split(".")[1:]):
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # An extra that is not installed.
                continue
    yield geomdp  # Last, as it protects itself what it takes from other modules.


def public_classes() -> dict[str, type]:
    everything = (getattr(x, name) for x in modules() for name in getattr(x, "__all__", ()))
    return {each.__name__: each for each in everything if inspect.isclass(each)}


def plain(call: Any, _: Any) -> Any:
    return call


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what users call of a class, as its descriptor has it, and what else runs for them."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        call = getattr(member, "fget", getattr(member, "__func__", member))
        private = name.startswith("_") and not name.startswith("__")
        ours = getattr(inspect.unwrap(call), "__globals__", {}).get("__name__", "")
        if ours.startswith("geomdp") and not private and name != "__class__":
            yield name, member


def everything() -> Iterator[tuple[str, Any]]:
    """Yield each public function, method and getter of a property by its name."""
    for module in modules():
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            if inspect.isclass(found):
                for each, member in members(found):
                    call = getattr(member, "fget", getattr(member, "__func__", member))
                    yield f"{found.__name__}.{each}", call
            elif callable(found):
                yield f"{module.__name__}.{name}", found


EVERYTHING = dict(everything())


def owner_of(name: str) -> type | None:
    return public_classes().get(name.partition(".")[0])


def takes(name: str) -> bool:
    """Return whether a call takes more than its object; properties do not."""
    bound = owner_of(name) is not None
    return len(inspect.signature(EVERYTHING[name]).parameters) > bound


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
        return abs(int(value)) in MARKS
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
    for each in chain_of(error):
        known = {id(each.__traceback__), id(each.__cause__), id(each.__context__)}
        if holds(str(each)) or any(holds(x) for x in gc.get_referents(each) if id(x) not in known):
            yield f"the message {each}"
    yield from frames_left(error)


def chain_of(error: BaseException) -> list[BaseException]:
    chain = [error]
    for each in chain:
        causes = (each.__cause__, each.__context__)
        chain += [x for x in causes if x is not None and x not in chain]
    return chain


def frames_left(error: BaseException) -> Iterator[str]:
    """Yield the variables among these."""
    for each in chain_of(error):
        inside = False
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


def test_every_public_call_is_unseen() -> None:
    seen = {name for name, call in EVERYTHING.items() if not is_unseen(call)}
    assert seen == HIDING_THEMSELVES
    assert len(EVERYTHING) > 400
    assert {"geomdp.read", "Table.frame", "Design.__init__", "Budget.open"} <= {*EVERYTHING}


#: What no parameter takes as it is, or nearly none.
PLANTED: list[Any] = [
    MARKS,
    np.array(MARKS, float),
    COUNTED,
    pl.LazyFrame(PEOPLE),
    {"x": MARKS},
    str(MARKS),
    -MARKS[0],
    lambda *_: MARKS[0] // [],
]


def with_planted(signature: inspect.Signature) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield arguments of which one is planted, or is a keyword that no call has, or all are."""
    named = signature.parameters.values()
    for planted in PLANTED:
        for at in [None, *named]:
            args, kwargs = [], {}
            for each in named:
                value = planted if at in (None, each) else GOOD.get(each.name)
                if each.kind is each.VAR_POSITIONAL:
                    args += [value] * (at is each)
                elif each.kind is each.POSITIONAL_ONLY:
                    args.append(value)
                elif each.kind is not each.VAR_KEYWORD and (
                    at is each or each.default is each.empty
                ):
                    kwargs[each.name] = value
            yield args, kwargs | ({"mispelt": planted} if at is None else {})


def object_of(kind: type) -> Any:
    """Return an object, half made if there is none above: its calls are refused all the same."""
    if kind.__name__ in SELVES:
        return SELVES[kind.__name__]()
    return kind._make(kind._fields) if hasattr(kind, "_make") else kind.__new__(kind)


@pytest.mark.parametrize("name", [*filter(takes, EVERYTHING)])
def test_no_error_leaves_what_was_given(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the parameter is called, and whether or not its values are public."""
    monkeypatch.chdir(tmp_path)  # Some text is the name of a file.
    if name == "geomdp.compat.opendp.register":  # It would change the process for other tests.
        monkeypatch.setattr(f"{name.rpartition('.')[0]}.constructors", {})
    if of_opendp := name.startswith("geomdp.compat.opendp"):
        # A domain that OpenDP could not make of a value raises another error when it is freed.
        monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    call, owner, member = EVERYTHING[name], owner_of(name), name.rpartition(".")[2]
    if owner is not None:
        call = owner if member == "__init__" else getattr(object_of(owner), member)
    refused = 0
    for args, kwargs in with_planted(inspect.signature(call)):
        error = refusal(lambda _: call, None, kwargs, args)
        if error is not None:
            refused += 1
            assert not [*frames_left(error)], (args, kwargs)
    if of_opendp:
        del error
        gc.collect()
    assert refused or name.endswith("__class_getitem__")


@pytest.mark.parametrize("kind", ["Measurement", "Transformation"])
def test_the_function_of_a_step_leaves_nothing(kind: str) -> None:
    step = SELVES[kind]()
    for planted in PLANTED:
        if (error := refusal(attrgetter("function"), step, {}, [planted])) is not None:
            assert not [*frames_left(error)], planted


#: The calls by which engines take a function that sees records or counts.
ENGINES = {"map_batches", "mapInArrow", "map_partitions", "map_blocks", "delayed"}


def handed_to_engines(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield each function that a module hands to an engine, and whether it is unseen."""
    marked, called = set(), set(ENGINES)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() if "unseen" in map(ast.unparse, node.decorator_list):
                marked.add(node.name)
            case ast.AnnAssign(value=ast.Attribute()) if node.value.attr in ENGINES:
                called.add(ast.unparse(node.target))  # Another name of the call.
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func).rpartition(".")[2] in called:
            given = ast.unparse(node.args[0])
            yield given, given in marked or given.startswith("unseen(")


def test_what_engines_call_is_unseen() -> None:
    trees = (ast.parse(file.read_text()) for file in Path(PACKAGE).rglob("*.py"))
    found = [each for tree in trees for each in handed_to_engines(tree)]
    assert len(found) >= 10
    assert [name for name, hidden in found if not hidden] == []


def test_the_calls_are_found() -> None:
    assert {"Table.release", "Table.top", "Table.frame", "Stream.release", "Design.count"} <= {
        *CALLS
    }
    assert {"geomdp.tables.count", "ReleaseKey.release_batches", "Measurement.__call__"} <= {*CALLS}
    withheld = [each for each in Withheld.__subclasses__() if each.__module__.startswith("geomdp")]
    for each in withheld:
        assert any(issubclass(kind, each) for kind in public_classes().values())


def refusal(
    get: Callable[[Any], Any], own: Any, arguments: dict[str, Any], more: Sequence[Any] = ()
) -> Exception | None:
    try:
        found = get(own)
        found = found(*more, **arguments) if callable(found) else found  # A property is its value.
        if inspect.isgenerator(found):
            list(found)
        if isinstance(found, pl.LazyFrame):
            found.collect()
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
