"""The measurements for OpenDP, against those of the installed OpenDP."""

import gc
import inspect
import itertools
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import ArgumentError
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.context import constructors
from opendp.mod import GLOBAL_FEATURES, OpenDPException, UnknownTypeException

import geomdp.compat.opendp as ours
from geomdp import GeometricMechanism

# Importing OpenDP turns backtraces on, which slows each of its thousands of errors here to 1/16 s.
os.environ["RUST_BACKTRACE"] = "0"

Space: TypeAlias = tuple[dp.Domain, dp.Metric]
REFUSALS = (
    *(OpenDPException, UnknownTypeException, ArgumentError),
    *(TypeError, ValueError, OverflowError, AttributeError),
)
CONTRIB, CURIOUS = "contrib", "honest-but-curious"
COUNT = 123_456_789

LIMITS = {
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
    "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
    "usize": (0, 2**64 - 1),
}
DTYPES = {"i32": "int32", "i64": "int64", "u32": "uint32", "u64": "uint64", "usize": "uint64"}
OTHER_TYPES = ["i8", "i16", "i128", "isize", "u8", "u16", "u128", "f32", "f64", "bool", "String"]
TYPES = [*LIMITS, *OTHER_TYPES]
INTEGER_DISTANCES = ["i32", "i64", "u32", "u64"]
FLOATS = ["f32", "f64"]
NAMES = ["make_geometric", "make_laplace"]
SCALES = [
    *(0.0, -0.0, 5e-324, 1e-310, 2.0**-1022, 1e-300, 1e-3, 0.1, 1 / 3, 0.5, 1.0, 1.5, 3.0, math.pi),
    *(7.0, 1e6, 2.0**31, 2.0**40, 2.0**53 + 2, 2.0**60, 1e20),
]

each_type = pytest.mark.parametrize("T", LIMITS)
each_name = pytest.mark.parametrize("name", NAMES)
each_form = pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])


@pytest.fixture(autouse=True)
def only_contrib() -> Iterator[None]:
    features, registered = set(GLOBAL_FEATURES), dict(constructors)
    GLOBAL_FEATURES.clear()
    dp.enable_features(CONTRIB)
    yield
    GLOBAL_FEATURES.clear()
    GLOBAL_FEATURES.update(features)
    constructors.clear()
    constructors.update(registered)


def space(T: str, vector: bool = False, Q: str = "i32") -> Space:
    if vector:
        return dp.vector_domain(dp.atom_domain(T=T)), dp.l1_distance(T=Q)
    return dp.atom_domain(T=T), dp.absolute_distance(T=Q)


def strings() -> Space:
    return dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()


def integers(size: int | None = None) -> Space:
    return dp.vector_domain(dp.atom_domain(T=int), size=size), dp.symmetric_distance()


def outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result, or the class of the exception."""
    try:
        return call(*arguments, **options)
    except REFUSALS as refusal:
        return type(refusal)


def is_refused(result: Any) -> bool:
    return isinstance(result, type) and issubclass(result, Exception)


def both(name: str, *arguments: Any, **options: Any) -> tuple[Any, Any]:
    """Return the outcomes of OpenDP's constructor and of ours."""
    theirs, own = getattr(dp.m, name), getattr(ours, name)
    return outcome(theirs, *arguments, **options), outcome(own, *arguments, **options)


def check_same_spaces(own: dp.Measurement, theirs: dp.Measurement) -> None:
    assert type(own) is dp.Measurement
    assert str(own) == str(theirs)
    for name in ("input_domain", "input_metric", "output_measure"):
        assert getattr(own, name) == getattr(theirs, name)
        assert str(getattr(own, name)) == str(getattr(theirs, name))
    for name in ("input_carrier_type", "input_distance_type", "output_distance_type"):
        assert getattr(own, name) == getattr(theirs, name)


def rounded_up(exact: Fraction) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(nearest, math.inf) if nearest < exact else nearest


def loss(d_in: float, scale: float) -> float:
    if scale == 0:
        return math.inf if d_in else 0.0
    return rounded_up(Fraction(d_in) / Fraction(scale))


# Accepted spaces


def built(constructor: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """Return the result in a list, or an empty list if OpenDP raises."""
    result = outcome(constructor, *arguments, **options)
    return [] if is_refused(result) else [result]


def domains(T: str) -> list[dp.Domain]:
    bounds = (0.0, 9.0) if T in FLOATS else (False, True) if T == "bool" else (0, 9)
    atoms = [
        *built(dp.atom_domain, T=T),
        *built(dp.atom_domain, T=T, nan=False),
        *built(dp.atom_domain, T=T, nan=True),
        *built(dp.atom_domain, T=T, bounds=bounds),
    ]
    vectors = [
        vector
        for atom in atoms
        for size in (None, 0, 3)
        for vector in built(dp.vector_domain, atom, size=size)
    ]
    options = [option for atom in atoms for option in built(dp.option_domain, atom)]
    lists = [vector for option in options for vector in built(dp.vector_domain, option)]
    return atoms + vectors + options + lists


@cache
def metrics() -> list[dp.Metric]:
    of_distances = [dp.absolute_distance, dp.l1_distance, dp.l2_distance, dp.linf_distance]
    return [
        *(metric for of in of_distances for T in TYPES for metric in built(of, T=T)),
        *(dp.symmetric_distance(), dp.hamming_distance(), dp.discrete_distance()),
    ]


def floats_accepted_by_opendp_alone(name: str, T: str) -> bool:
    return name == "make_laplace" and T in FLOATS


@pytest.mark.parametrize(
    ("name", "options"),
    [("make_geometric", {}), ("make_geometric", {"bounds": (0, 9)}), ("make_laplace", {})],
    ids=str,
)
@pytest.mark.parametrize("T", TYPES)
def test_accepts_same_spaces(T: str, name: str, options: dict[str, Any]) -> None:
    accepted = set()
    for domain in domains(T):
        for metric in metrics():
            theirs, own = both(name, domain, metric, 1.0, **options)
            if is_refused(theirs):
                assert own is theirs
            elif floats_accepted_by_opendp_alone(name, T):
                assert own is ValueError
            else:
                assert not is_refused(own)
                check_same_spaces(own, theirs)
                accepted.add((str(domain), str(metric.type)))
    # Some must be accepted: scalars and vectors of three sizes, each of all integers and of 0 to 9.
    distances = INTEGER_DISTANCES + (FLOATS if name == "make_laplace" else [])
    assert len(accepted) == (8 * len(distances) if T in LIMITS else 0)


@pytest.mark.parametrize("T", FLOATS)
def test_float_domain_raises(T: str) -> None:
    domain, metric = dp.atom_domain(T=T, nan=False), dp.absolute_distance(T=T)
    refusal = re.escape(f"input_domain = {domain} is not accepted: give a domain of integers")
    with pytest.raises(ValueError, match=refusal):
        (domain, metric) >> ours.then_laplace(1.0)


@each_name
def test_signatures_match_opendp(name: str) -> None:
    for of in (name, name.replace("make", "then")):
        theirs, own = (inspect.signature(getattr(module, of)).parameters for module in (dp.m, ours))
        assert list(own) == list(theirs)
        assert [p.default for p in own.values()] == [p.default for p in theirs.values()]


# Privacy map

POWERS = sorted({2**n + k for n in range(64) for k in (-1, 0, 1)} | {0, 3, 5, 7, 10, 1000, 10**6})
FEW = [0, 1, 2, 3, 7, 2**24 + 1]


def check_map(name: str, spaces: Space, scale: float, distances: list[int]) -> None:
    theirs, own = both(name, *spaces, scale)
    for d_in in distances:
        expected = loss(d_in, scale)
        assert own.map(d_in).hex() == expected.hex()
        assert theirs.map(d_in).hex() == expected.hex()


@pytest.mark.parametrize("scale", SCALES, ids=float.hex)
def test_map_matches_opendp_and_is_rounded_up(scale: float) -> None:
    for Q in INTEGER_DISTANCES:
        greatest = LIMITS[Q][1]
        distances = [d for d in [*POWERS, greatest - 1, greatest] if d <= greatest]
        check_map("make_geometric", space("i64", Q=Q), scale, distances)


@pytest.mark.parametrize("Q", INTEGER_DISTANCES)
@each_form
@each_type
@each_name
def test_map_is_independent_of_space(name: str, T: str, vector: bool, Q: str) -> None:
    for scale in SCALES[::3]:
        check_map(name, space(T, vector, Q), scale, [*FEW, LIMITS[Q][1]])


@each_type
def test_map_is_independent_of_bounds(T: str) -> None:
    for scale in SCALES:
        theirs, own = both("make_geometric", *space(T), scale, bounds=(0, 9))
        if is_refused(theirs):
            # OpenDP divides by the negative zero, and rounds exp(-1 / scale) to 1.
            assert own is theirs
            assert str(scale) == "-0.0" or scale > 2**53
            continue
        for d_in in FEW:
            assert own.map(d_in).hex() == theirs.map(d_in).hex() == loss(d_in, scale).hex()


FLOAT_DISTANCES = [0.0, -0.0, 2.0**-126, 0.1, 0.5, 1.0, 1.5, 3.0, 7.0, 2.0**24, 1e10, 2.0**100]
#: The least and the greatest positive values.
EXTREMES = {
    "f32": [2.0**-149, float(np.finfo(np.float32).max)],
    "f64": [5e-324, math.nextafter(math.inf, 0)],
}


@pytest.mark.parametrize("Q", FLOATS)
@each_form
@each_type
def test_map_of_float_distances(T: str, vector: bool, Q: str) -> None:
    for scale in SCALES:
        theirs, own = both("make_laplace", *space(T, vector, Q), scale)
        for d_in in FLOAT_DISTANCES + EXTREMES[Q]:
            taken = float(np.float32(d_in)) if Q == "f32" else d_in
            expected = loss(taken, scale)
            assert own.map(d_in).hex() == expected.hex()
            assert theirs.map(d_in).hex() == expected.hex()


@each_name
@pytest.mark.parametrize("Q", ["i32", *FLOATS])
def test_invalid_distance_raises_as_opendp(name: str, Q: str) -> None:
    invalid: list[Any] = [-1.0, math.nan, math.inf, -math.inf, "1", [1], None]
    if Q == "i32":
        invalid += [-1, -(2**31), 0.5, 1.0, True, 2**31, 2**70, np.int64(1)]
    elif name == "make_geometric":
        return
    theirs, own = both(name, *space("i32", Q=Q), 3.0)
    for d_in in [*invalid, -5e-324 if Q == "f64" else -1e-40]:
        refusal = outcome(theirs.map, d_in)
        assert is_refused(refusal)
        assert outcome(own.map, d_in) is refusal


# Parameters


NO_SCALES: list[Any] = [
    *(-1.0, -5e-324, -1, math.nan, math.inf, -math.inf, "1", b"1", None, 1j, [1.0], 10**400),
    *(np.array([1.0, 2.0]), np.float64("nan")),
]
NO_BOUNDS: list[Any] = [
    *((9, 0), (2**31 - 1, 0), [0, 9], (0.0, 9.0), (0, 9.0), (0, 2**32), (-(2**31) - 1, 0)),
    *((0, 2**70), (0,), (0, 1, 2), (), "ab", ("a", "b"), 5, (None, 9), (0, None), (None, None)),
    *((True, False), {0, 9}, range(2), np.array([0, 9]), (np.int64(0), np.int64(9))),
]
NO_MEASURES: list[Any] = [
    *("ZeroConcentratedDivergence", "RenyiDivergence", "Approximate<MaxDivergence>", "nothing"),
    *("MaxDivergence<f64>", "AbsoluteDistance<i32>", "", None, 5, float),
]
NO_GRANULARITIES: list[Any] = [1, -5, -1074, 2**40, 0.0, "1", True]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {"scale": scale}) for name in NAMES for scale in NO_SCALES),
        *(("make_geometric", {"bounds": bounds}) for bounds in NO_BOUNDS),
        *((name, {"MO": MO}) for name in NAMES for MO in NO_MEASURES),
        *(("make_laplace", {"k": k}) for k in NO_GRANULARITIES),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_invalid_parameter_raises_as_opendp(name: str, options: dict[str, Any]) -> None:
    options = {"scale": 1.0} | options
    for spaces in (space("i32"), space("u32", vector=True)):
        theirs, own = both(name, *spaces, **options)
        assert is_refused(theirs)
        assert own is theirs
        # Partial constructors raise once the space is known.
        partial = getattr(ours, name.replace("make", "then"))(**options)
        assert outcome(lambda then, of=spaces: of >> then, partial) is theirs


@each_name
def test_unusual_parameters_are_accepted_as_by_opendp(name: str) -> None:
    scales: list[Any] = [3, 0, True, Fraction(1, 3), np.float32(0.1), np.float64(0.1), np.int8(3)]
    for scale in scales:
        theirs, own = both(name, *space("i32"), scale)
        for d_in in FEW:
            assert own.map(d_in) == theirs.map(d_in) == loss(d_in, float(scale))
    for k in (None, 0):
        check_same_spaces(*both("make_laplace", *space("i32"), 1.0, k=k))
    theirs, own = both("make_geometric", *space("i32"), 3.0, bounds=(np.int32(0), np.int32(9)))
    check_same_spaces(own, theirs)
    assert all(0 <= own(5) <= 9 for _ in range(50))
    domain, metric = space("i32")
    for pair in [(metric, domain), (domain, domain), (metric, metric)]:
        theirs, own = both(name, *pair, 1.0)
        assert is_refused(theirs)
        assert own is theirs


@each_type
@each_name
def test_uncertifiable_scale_raises(name: str, T: str) -> None:
    for scale in (1e300, math.nextafter(math.inf, 0)):
        theirs, own = both(name, *space(T), scale)
        assert not is_refused(theirs)
        assert own is ValueError
        with pytest.raises(ValueError, match=r"scale = about 2\*\*\d+ is too large") as caught:
            getattr(ours, name)(*space(T), scale)
        found = re.search(r"scale of at most 2\*\*(\d+)", str(caught.value))
        assert found is not None
        check_same_spaces(*both(name, *space(T), 2.0 ** int(found[1]))[::-1])


# Chains and combinators


CATEGORIES = ["a", "b"]
#: Transformations, their input and the exact answer.
CHAINS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "scalar": (lambda: space("i32"), 50, 50),
    "vector": (lambda: space("i64", vector=True), [50, -3], [50, -3]),
    "count": (lambda: strings() >> dp.t.then_count(), ["a"] * 50, 50),
    "distinct": (lambda: strings() >> dp.t.then_count_distinct(), ["a", "b", "a"], 2),
    "categories": (
        lambda: strings() >> dp.t.then_count_by_categories(categories=CATEGORIES),
        ["a"] * 50 + ["b", "other"],
        [50, 1, 1],
    ),
    "sum": (lambda: integers() >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum(), [1, 2, 3, 400], 16),
    "sized sum": (
        lambda: integers(4) >> dp.t.then_clamp((-5, 10)) >> dp.t.then_sum(),
        [1, 2, 3, 400],
        16,
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("then", ["then_geometric", "then_laplace"])
def test_chains_match_opendp(chain: str, then: str) -> None:
    start, data, answer = CHAINS[chain]
    for scale in (0.0, 0.1, 3.0):
        own, theirs = (start() >> getattr(module, then)(scale) for module in (ours, dp.m))
        check_same_spaces(own, theirs)
        for d_in in (0, 1, 2, 3, 7, 10**6):
            assert own.map(d_in).hex() == theirs.map(d_in).hex()
        noisy = own(data)
        assert type(noisy) is type(answer)
        np.testing.assert_allclose(noisy, answer, atol=70 * scale)
    exact = start() >> ours.then_geometric(0.0, bounds=(2, 20))
    assert exact(data) == np.clip(answer, 2, 20).tolist()


def test_chain_combinator() -> None:
    count, partial = strings() >> dp.t.then_count(), ours.then_geometric(0.0)
    noise = ours.make_geometric(count.output_domain, count.output_metric, 0.0)
    chains = [dp.c.make_chain_mt(noise, count), count >> noise, count >> partial, count >> partial]
    gc.collect()
    assert [chain(["a"] * 7) for chain in chains] == [7] * 4


def test_example_of_composition_in_migration_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
    example = re.search(r"```python\n([^`]*make_composition[^`]*)```", guide)
    assert example is not None
    scope: dict[str, Any] = {}
    exec(example[1], scope)
    assert scope["both"].map(1) == 1.0
    count, table = scope["both"](["a"] * 1000)
    np.testing.assert_allclose([count, *table], [1000, 1000, 0, 0], atol=150)


def test_adaptive_composition() -> None:
    compositor = dp.c.make_adaptive_composition(
        *space("i32"), dp.max_divergence(), d_in=1, d_mids=[0.2, 0.1, 0.5]
    )
    query = compositor(50)
    for noise, scale in [(ours.make_geometric, 5.0), (ours.make_laplace, 10.0)]:
        assert type(query(noise(*space("i32"), scale))) is int
    with pytest.raises(OpenDPException):
        query(ours.make_laplace(*space("i32"), 1.0))
    assert type(query(dp.m.make_laplace(*space("i32"), 2.0))) is int
    with pytest.raises(OpenDPException, match="out of queries"):
        query(ours.make_laplace(*space("i32"), 5.0))


def test_fully_adaptive_composition_and_privacy_filter() -> None:
    odometer = dp.c.make_fully_adaptive_composition(*space("i32"), dp.max_divergence())
    noise = ours.make_geometric(*space("i32"), 4.0)
    query = odometer(50)
    assert [type(query(noise)) for _ in range(3)] == [int, int, int]
    assert query.privacy_loss(1) == 0.75
    filtered = dp.c.make_privacy_filter(odometer, d_in=1, d_out=0.5)(50)
    assert [type(filtered(noise)) for _ in range(2)] == [int, int]
    with pytest.raises(OpenDPException):
        filtered(noise)


# The Context API


def context(loss: tuple[Any, Any], queries: int = 1, contributions: int = 1) -> dp.Context:
    return dp.Context.compositor(
        data=["a"] * 1000 + ["b"] * 500,
        privacy_unit=dp.unit_of(contributions=contributions),
        privacy_loss=loss,
        split_evenly_over=queries,
        domain=strings()[0],
    )


def test_register_keeps_other_names_and_is_idempotent() -> None:
    before = dict(constructors)
    ours.register()
    assert {name: constructors[name] for name in before} == before
    once = dict(constructors)
    ours.register()
    assert constructors == once


def test_replace_laplace_affects_integers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours._Noise, "__call__", lambda self, arg: -1)
    theirs = context(dp.loss_of(epsilon=1.0), 2).query()
    integers = dp.space_of(list[int])
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    for replaced in (False, True):
        if replaced:
            ours.register(replace_laplace=True)
        # An existing Context uses the new noise too.
        for query in (theirs, context(dp.loss_of(epsilon=1.0), 2).query()):
            assert query.count().laplace().param() == 2.0
            assert (query.count().laplace().release() == -1) == replaced
        total = dp.Query(floats, dp.max_divergence(), d_in=1, d_out=1.0).clamp((0.0, 9.0)).sum()
        assert 0 <= total.laplace().resolve()([5.0] * 100) <= 1000
        total = dp.Query(integers, dp.max_divergence(), d_in=1, d_out=1.0).clamp((0, 9)).sum()
        assert (total.laplace().resolve()([5] * 100) == -1) == replaced
        with pytest.raises(ValueError, match="laplace is missing 1 parameter"):
            theirs.b_ary_tree(leaf_count=3).laplace()


@pytest.mark.parametrize("then", [ours.then_geometric, ours.then_laplace])
def test_partial_constructor_is_not_serializable(then: Callable[..., Any]) -> None:
    for unserializable in (then(1.0), space("i32") >> then(1.0)):
        with pytest.raises(Exception, match="OpenDP JSON Encoder does not handle"):
            dp.serialize(unserializable)


@pytest.mark.parametrize(("epsilon", "contributions"), [(1e-6, 3), (0.7, 1), (3.0, 3)])
def test_context_finds_same_scale(epsilon: float, contributions: int) -> None:
    ours.register()
    queries = context(dp.loss_of(epsilon=epsilon), 2, contributions)
    for of in ("count", "count_by_categories"):
        options = {} if of == "count" else {"categories": CATEGORIES}
        for name in ("laplace", "geometric"):
            theirs, own = (
                getattr(getattr(queries.query(), of)(**options), prefix + name)()
                for prefix in ("", "geomdp_")
            )
            assert own.param() == theirs.param()
            assert math.isclose(own.param(), 2 * contributions / epsilon)


def test_context_releases() -> None:
    ours.register()
    queries = context(dp.loss_of(epsilon=1.0), 4)
    count = queries.query().count().geomdp_laplace().release()
    assert type(count) is int
    assert abs(count - 1500) < 250
    bounded = queries.query().count().geomdp_geometric(scale=4.0, bounds=(0, 1400)).release()
    assert 1300 < bounded <= 1400
    categories = queries.query().count_by_categories(categories=CATEGORIES)
    counts = categories.geomdp_geometric().release()
    assert [type(count) for count in counts] == [int, int, int]
    np.testing.assert_allclose(counts, [1000, 500, 0], atol=250)
    assert len(queries.remaining_privacy_loss()) == 1
    with pytest.raises(OpenDPException):
        queries.query().count().geomdp_geometric(scale=3.9).release()


@pytest.mark.parametrize(
    "loss", [{"rho": 0.5}, {"epsilon": 0.5, "delta": 1e-7}], ids=["zCDP", "approximate"]
)
def test_context_converts_to_other_measures(loss: dict[str, float]) -> None:
    ours.register()
    queries = context(dp.loss_of(**loss))
    own = queries.query().count().geomdp_laplace()
    theirs = queries.query().count().laplace()
    assert own.resolve().map(1) == theirs.resolve().map(1)
    assert type(own.release()) is int


# Features


def promise_is_needed() -> bool:
    measure, nothing = dp.max_divergence(), float
    made = outcome(dp.m.make_user_measurement, *space("i32"), measure, nothing, nothing)
    return made is OpenDPException


def make_all() -> list[dp.Measurement]:
    return [
        ours.make_geometric(*space("i32"), 1.0),
        ours.make_laplace(*space("i32"), 1.0),
        space("i64", vector=True) >> ours.then_geometric(1.0, (0, 9)),
        strings() >> dp.t.then_count() >> ours.then_laplace(1.0),
    ]


def test_contrib_suffices_and_stays_the_only_feature() -> None:
    assert promise_is_needed()
    assert [type(made) for made in make_all()] == [dp.Measurement] * 4
    assert {CONTRIB} == GLOBAL_FEATURES
    assert promise_is_needed()


def test_enabled_features_stay_enabled() -> None:
    dp.enable_features(CURIOUS)
    make_all()
    assert {CONTRIB, CURIOUS} == GLOBAL_FEATURES
    assert not promise_is_needed()


@pytest.mark.parametrize("features", [set(), {CURIOUS}, {"floating-point"}], ids=str)
@each_name
def test_contrib_is_required(name: str, features: set[str]) -> None:
    spaces = space("i32")
    GLOBAL_FEATURES.clear()
    GLOBAL_FEATURES.update(features)
    theirs, own = both(name, *spaces, 1.0)
    assert own is theirs is OpenDPException
    with pytest.raises(OpenDPException, match=CONTRIB):
        spaces >> getattr(ours, name.replace("make", "then"))(1.0)
    assert features == GLOBAL_FEATURES


@pytest.mark.parametrize("features", [{CONTRIB}, {CONTRIB, CURIOUS}], ids=len)
def test_errors_keep_features(features: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        assert CURIOUS in GLOBAL_FEATURES
        raise MemoryError

    GLOBAL_FEATURES.update(features)
    for arguments in [(-1.0,), (1e300,), (1.0, (9, 0)), ("1",)]:
        assert is_refused(outcome(ours.make_geometric, *space("i32"), *arguments))
        assert features == GLOBAL_FEATURES
    monkeypatch.setattr(dp.m, "make_user_measurement", refuse)
    with pytest.raises(MemoryError):
        make_all()
    assert features == GLOBAL_FEATURES


@pytest.mark.parametrize("features", [{CONTRIB}, {CONTRIB, CURIOUS}], ids=len)
def test_threads_keep_features(features: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def make_slowly(*arguments: Any, **options: Any) -> dp.Measurement:
        # Long enough for another thread to finish.
        time.sleep(1e-3)
        return make(*arguments, **options)

    GLOBAL_FEATURES.update(features)
    make = dp.m.make_user_measurement
    monkeypatch.setattr(dp.m, "make_user_measurement", make_slowly)
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(make_all) for _ in range(40)]
        assert [len(future.result()) for future in made] == [4] * 40
    assert features == GLOBAL_FEATURES


# Releases


@each_type
def test_release_types(T: str) -> None:
    for make, scale in itertools.product((ours.make_geometric, ours.make_laplace), (0.0, 3.0)):
        assert type(make(*space(T), scale)(50)) is int
        counts = make(*space(T, vector=True), scale)([50] * 9)
        assert type(counts) is list
        assert [type(count) for count in counts] == [int] * 9


@each_type
def test_lists_tuples_and_arrays(T: str) -> None:
    theirs, exact = both("make_geometric", *space(T, vector=True), 0.0)
    array = np.array([*LIMITS[T], 5], DTYPES[T])
    listed = array.tolist()
    assert exact(listed) == exact(tuple(listed)) == listed
    assert [ours.make_laplace(*space(T), 0.0)(count) for count in listed] == listed
    # OpenDP 0.14 takes no arrays for usize.
    assert outcome(exact, array) == outcome(theirs, array)
    assert T == "usize" or exact(array) == listed
    assert exact([]) == exact(()) == exact(np.array([], DTYPES[T])) == []
    noise = ours.make_laplace(*space(T, vector=True), 2.0**40)
    assert T == "usize" or noise(array) != listed
    assert noise(listed) != listed
    assert array.tolist() == listed == [*LIMITS[T], 5]


@each_form
@each_type
def test_invalid_data_raises_as_opendp(T: str, vector: bool) -> None:
    theirs, own = both("make_geometric", *space(T, vector), 1.0)
    least, greatest = LIMITS[T]
    scalars: list[Any] = [greatest + 1, least - 1, 5.0, True, "5", None, [5], np.float64(5)]
    vectors = [*([value] for value in scalars), 5, "5", [[5]], np.ones((2, 2), DTYPES[T])]
    arrays = [np.array([True]), np.array([1.0]), np.array([5], "int16")]
    for data in [*vectors, *arrays] if vector else scalars:
        refusal = outcome(theirs, data)
        assert is_refused(refusal)
        assert outcome(own, data) is refusal


# Errors in the callback


@pytest.mark.parametrize("error", [OSError, ValueError, KeyError, MemoryError])
@each_form
def test_error_in_release_shows_no_count(
    error: type[Exception], vector: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_mechanism: GeometricMechanism, _counts: Any, *, out: Any = None) -> None:
        raise error("no random bytes")

    noise = ours.make_geometric(*space("i32", vector), 1.0)
    data = [COUNT] * 3 if vector else COUNT
    with monkeypatch.context() as patch:
        patch.setattr(GeometricMechanism, "release", fail)
        with pytest.raises(OpenDPException, match="no random bytes") as caught:
            noise(data)
    shown = f"{caught.value} {caught.value!r} {vars(caught.value)}"
    assert str(COUNT) not in shown
    np.testing.assert_allclose(noise(data), data, atol=100)
