"""Bad input to measurements and transformations: the errors name the parameter, not the data."""

import math
import re
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import geomdp.measurement as m
from geomdp import GeometricMechanism, accuracy, sample_bernoulli
from geomdp.measurement import (
    AbsoluteDistance,
    AllDomain,
    L1Distance,
    MaxDivergence,
    SymmetricDistance,
    VectorDomain,
)

COUNT = AllDomain("i32")
COUNTS = VectorDomain(COUNT)
ONE = COUNT, AbsoluteDistance("i32")
MANY = COUNTS, L1Distance("i32")
SYMMETRIC = SymmetricDistance()
WORDS = VectorDomain(AllDomain(str)), SYMMETRIC
INTS = VectorDomain(AllDomain("i8")), SYMMETRIC
FLOATS = VectorDomain(AllDomain(float)), SYMMETRIC

scalar = m.make_geometric(*ONE, 1)
vector = m.make_geometric(*MANY, 1)
word_count = m.make_count(*WORDS)
int_count = m.make_count(*INTS)
int_sum = m.make_sum(*INTS, (0, 9))
by_words = m.make_count_by_categories(*WORDS, ["a", "b"])
by_ints = m.make_count_by_categories(*INTS, [1, 2])
by_bins = m.make_count_by_bins(*FLOATS, [0.0, 1.0])

SECRET = 987654321987654321987
ARG = "arg|counts"


class Bad(NamedTuple):
    #: Name of the parameter, as a pattern.
    name: str
    error: type[Exception]
    call: Callable[[Any], Any]
    value: Any
    #: Further required text.
    hint: str = ""


def each(
    name: str, error: type[Exception], call: Callable[[Any], Any], values: Any, hint: str = ""
) -> list[Bad]:
    return [Bad(name, error, call, value, hint) for value in values]


def bad_types() -> Iterator[list[Bad]]:
    types: list[Any] = [
        *(None, 3, "i128", "int", "I32", "", bytes, np.complex128, np.float16, np.longdouble),
        *(np.dtype("m8[s]"), np.dtype([("x", "i4")]), object, np.integer, np.int32(1), [int]),
    ]
    for make in (AllDomain, L1Distance):
        yield each("T", TypeError, make, types)
    no_integers = [float, "f32", bool, str]
    for metric in (AbsoluteDistance, L1Distance):
        yield each("T", TypeError, metric, no_integers)
    yield each("TO", TypeError, partial(m.make_count, *WORDS), no_integers)
    yield each("TO", TypeError, partial(m.make_sum, *INTS, (0, 9)), no_integers)
    for by_key in (
        partial(m.make_count_by_categories, *WORDS, ["a"], True),
        partial(m.make_count_by_bins, *FLOATS, [0.0, 1.0], True),
    ):
        yield each("TOA", TypeError, by_key, no_integers)
    no_floats = [int, "u8", bool, str]
    yield each("QO", TypeError, MaxDivergence, no_floats)
    yield each("QO", TypeError, lambda QO: m.make_base_geometric(1, QO=QO), types + no_floats)
    elements = [int, "i32", COUNTS, np.dtype("i4"), None, AllDomain, "AllDomain<i32>"]
    yield each("element_domain", TypeError, VectorDomain, elements)


def bad_pairings() -> Iterator[list[Bad]]:
    absolute, l1 = AbsoluteDistance("i32"), L1Distance("i32")
    pair = lambda space: m.make_geometric(*space, 1)  # noqa: E731
    then = lambda space: space >> m.then_geometric(1)  # noqa: E731
    scalars = [l1, SYMMETRIC, AbsoluteDistance("i64"), AbsoluteDistance("u32")]
    vectors = [absolute, SYMMETRIC, L1Distance("i64")]
    for call in (pair, then):
        wrong: Any = [(COUNT, metric) for metric in scalars]
        yield each("input_metric", ValueError, call, wrong, repr(absolute))
        wrong = [(COUNTS, metric) for metric in vectors]
        yield each("input_metric", ValueError, call, wrong, repr(l1))
    metrics: list[Any] = [None, AbsoluteDistance, COUNT, "AbsoluteDistance(int32)", MaxDivergence()]
    wrong = [(COUNT, metric) for metric in metrics]
    yield each("input_metric", TypeError, pair, wrong, "AbsoluteDistance(T)")
    strings = VectorDomain(AllDomain(str))
    no_counts = [None, AllDomain, absolute, "AllDomain<i32>", AllDomain(float), strings]
    wrong = [(domain, absolute) for domain in [*no_counts, AllDomain(bool)]]
    yield each("input_domain", TypeError, pair, [*wrong, (absolute, COUNT)])
    for make in (
        lambda space: m.make_count(*space),
        lambda space: m.make_sum(*space, (1, 2)),
        lambda space: m.make_count_by_categories(*space, [1]),
        lambda space: m.make_count_by_bins(*space, [1, 2]),
    ):
        wrong = [(COUNTS, l1), (COUNTS, absolute)]
        yield each("input_metric", ValueError, make, wrong, repr(SYMMETRIC))
        yield each("input_metric", TypeError, make, [(COUNTS, None)])
        wrong = [(COUNT, SYMMETRIC), (None, SYMMETRIC), (SYMMETRIC, COUNTS)]
        yield each("input_domain", TypeError, make, wrong)
    for make, kinds, accepted in [
        (lambda space: m.make_count_by_categories(*space, [0.0]), [float], "strings"),
        (lambda space: m.make_count_by_bins(*space, [0, 1]), [str, bool], "floats"),
        (lambda space: m.make_sum(*space, (0, 1)), [str, bool, float], "records of integers"),
    ]:
        wrong = [(VectorDomain(AllDomain(T)), SYMMETRIC) for T in kinds]
        yield each("input_domain", TypeError, make, wrong, accepted)


def bad_parameters() -> Iterator[list[Bad]]:
    no_domains = [
        *("", "i32", "AllDomain", "AllDomain<>", "AllDomain<f64>", "AllDomain<int>"),
        *("AllDomain<int32>", "AllDomain<i128>", "AllDomain<usize>", "AllDomain<String>"),
        *("AllDomain<i32", "AllDomain i32>", "AllDomain<i32>>", "AllDomain<<i32>>"),
        *("AllDomain<AllDomain<i32>>", "VectorDomain<i32>", "VectorDomain<AllDomain<i32>"),
        *("VectorDomain<AllDomain<i32>>>", "VectorDomain<AllDomain<f32>>"),
        *("VectorDomain<VectorDomain<AllDomain<i32>>>", "vectordomain<alldomain<i32>>"),
        *("Vec<i32>", "<i32>", "<", ">", None, int, AllDomain, L1Distance("i32")),
        *(np.dtype("i4"), AllDomain(float), VectorDomain(AllDomain(str))),
        "VectorDomain<" * 5000 + "AllDomain<i32>" + ">" * 5000,
    ]
    yield each("D", TypeError, lambda D: m.make_base_geometric(1, D=D), no_domains)
    yield each("measurements", TypeError, m.make_composition, [None, scalar, 3, {scalar}])
    yield each("measurements", TypeError, m.make_composition, [[scalar, None], [word_count]])
    narrow = m.make_base_geometric(1, D=COUNT, QO="f32")
    others = [[], [scalar, vector], [scalar, narrow], [scalar, m.make_base_geometric(1)]]
    yield each("measurements", ValueError, m.make_composition, others)


def bad_distances() -> Iterator[list[Bad]]:
    no_numbers: list[Any] = [True, None, b"1", 1j, np.longdouble(1)]
    loss, delta = partial(scalar.check, 1), partial(scalar.map_approx, 1)
    yield each("d_out", TypeError, loss, no_numbers)
    yield each("d_out", ValueError, loss, [math.nan, np.float32("nan"), -0.5, -math.inf])
    yield each("delta", TypeError, delta, no_numbers)
    yield each("delta", ValueError, delta, [-0.1, 1.1, math.nan, math.inf])
    yield each("d_out", TypeError, partial(word_count.check, 1), [1.0, math.inf, None])
    yield each("d_out", ValueError, partial(word_count.check, 1), [-1])


def bad_data() -> Iterator[list[Bad]]:
    # tests/fronts/test_refusals.py has what is no count in any domain.
    one: list[Any] = [
        *(np.int64(1), np.int8(1), np.uint32(1), np.array([1], "i4"), np.array(1, "i4"), [1]),
        *(1.0, True),
    ]
    many: list[Any] = [
        *(1, np.int32(1), np.array(1, "i4"), np.ones(2, "i8"), np.ones(2, "u4"), np.ones(2)),
        *([1, np.ma.masked], [np.ones((2, 2), "i4"), np.ones((2, 3), "i4")], "12", None),
    ]
    above: list[Any] = [
        *([1, 2**31], (1, -(2**31) - 1), [[1, 2], [3, 2**31]], [1, np.int64(2**31)], [1, 10**400]),
    ]
    yield each(ARG, TypeError, scalar.invoke, one)
    yield each(ARG, OverflowError, scalar.invoke, [2**31, -(2**31) - 1, 10**400])
    yield each(ARG, TypeError, vector, many)
    yield each(ARG, OverflowError, vector, above)
    words: list[Any] = [
        *(np.ones(2, "i8"), "ab", np.str_("ab"), np.array(["a", math.nan], object), 3, {"a": 1}),
        *(iter(["a"]), [1, 2], np.array([b"a", b"b"]), ["a", None], np.array(["a", 1], object)),
        *(np.array([["a", "b"]]), np.array([["a", "b"]], object), [["a", "b"]]),
    ]
    ints: list[Any] = [
        *(np.ones(2, "i8"), np.array(["1", "2"]), None, np.ones((2, 2), "i1"), [[1, 2], [3, 4]]),
        *(np.ma.masked_array(np.ones(2, "i1"), [True, False]), np.array(1, "i1")),
    ]
    yield each(ARG, TypeError, by_words, words)
    yield each(ARG, TypeError, word_count, words[:7])
    yield each(ARG, TypeError, by_bins, [np.ones(2, "f4"), [1, 2], np.ones((2, 2))])
    for step in (by_ints, int_count, int_sum):
        yield each(ARG, TypeError, step, ints)
        yield each(ARG, OverflowError, step, [[1, 128]])


def bad_keys() -> Iterator[list[Bad]]:
    masked = np.ma.masked_array(np.array([1, 2], "i1"), [True, False])
    for call, no_categories, wrong in [
        (
            partial(m.make_count_by_categories, *WORDS),
            ["ab", [1, 2], ["a", None], np.array([["a", "b"]]), [["a", "b"]], None, {"a"}],
            [[], ["a", "b", "a"]],
        ),
        (
            partial(m.make_count_by_categories, *INTS),
            [
                *(["a", "b"], [1.0, 2.0], [True, False], np.array([1, 2], "i8"), [[1, 2]]),
                *(np.array(1, "i1"), 1, masked),
            ],
            [np.array([], "i1"), [1, 2, 1]],
        ),
    ]:
        yield each("categories", TypeError, call, no_categories)
        yield each("categories", ValueError, call, wrong)
    of_floats = partial(m.make_count_by_bins, *FLOATS)
    of_ints = partial(m.make_count_by_bins, *INTS)
    no_edges = [10, "01", None, np.array([0, 1j]), np.array([[0.0, 1.0]]), np.array(1.0)]
    yield each("edges", TypeError, of_floats, no_edges)
    yield each("edges", TypeError, of_ints, [[0.0, 1.0], [[0, 1]], [[0, 1], [2]]])
    reversed_or_equal = [[], [0.0], [1.0, 0.0], [0.0, 0.0, 1.0], [-0.0, 0.0]]
    yield each("edges", ValueError, of_floats, reversed_or_equal)
    yield each("edges", ValueError, of_floats, [[0.0, math.nan], [math.nan, 0.0, 1.0]])
    yield each("edges", ValueError, of_ints, [[0, 2, 1]])
    yield each("edges", OverflowError, of_ints, [[0, 128], [-129, 0]])
    by_key = partial(m.make_count_by_categories, *INTS)
    yield each("categories", OverflowError, by_key, [[1, 128], [1, -129]])
    for make in (
        partial(m.make_count_by_categories, *WORDS, ["a"]),
        partial(m.make_count_by_bins, *FLOATS, [0.0, 1.0]),
    ):
        yield each("null_category", TypeError, make, [None, 1, 0, "yes", np.True_])


TABLES = (bad_types, bad_pairings, bad_parameters, bad_distances, bad_data, bad_keys)
BAD = [bad for table in TABLES for rows in table() for bad in rows]


@pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])
def test_bad_input_raises(bad: Bad) -> None:
    with pytest.raises(Exception) as error:  # noqa: PT011 (compared below)
        bad.call(bad.value)
    assert type(error.value) is bad.error
    message = str(error.value)
    assert re.search(rf"\b({bad.name})\b", message)
    assert bad.hint in message


def shown(error: BaseException | None) -> str:
    """Return everything a traceback shows of an error and its causes."""
    if error is None:
        return ""
    own = f"{error!r} {error} {error.args!r} {getattr(error, '__notes__', '')}"
    return own + shown(error.__cause__) + shown(error.__context__)


NARROW = m.make_geometric(VectorDomain(AllDomain("i8")), L1Distance("i8"), 1)
UNSIGNED = m.make_geometric(VectorDomain(AllDomain("u64")), L1Distance("u64"), 1)
TEXT = str(SECRET)
#: tests/fronts/test_refusals.py has what is no count, for every call.
SECRETS: dict[str, tuple[Any, Any]] = {
    "int": (scalar, SECRET),
    "negative-int": (scalar, -SECRET),
    "int-to-vector": (vector, SECRET),
    "list": (vector, [SECRET]),
    "tuple": (vector, (1, 2, SECRET)),
    "nested": (vector, [[1, 2], [3, SECRET]]),
    "negative": (vector, [-SECRET]),
    "unsigned": (UNSIGNED, [1, SECRET]),
    "narrow": (NARROW, [1, SECRET]),
    "records": (by_ints, [1, SECRET]),
    "counted-records": (int_count, [1, SECRET]),
    "word-records": (by_words, [TEXT, SECRET]),
    "word-objects": (by_words, np.array([TEXT, SECRET], object)),
    "one-word": (word_count, TEXT),
    "nested-words": (by_words, [[TEXT]]),
    "2d-words": (by_words, np.array([[TEXT]])),
    "2d-ints": (by_ints, np.full((2, 2), 98, "i1")),
    "binned": (by_bins, [float(SECRET), TEXT]),
    "chain": (by_words >> m.then_geometric(1), [TEXT, SECRET]),
    "postprocessed": (vector >> list, [SECRET]),
}


@pytest.mark.parametrize(("step", "arg"), SECRETS.values(), ids=SECRETS)
def test_messages_show_no_data(step: Any, arg: Any) -> None:
    with pytest.raises((TypeError, OverflowError)) as error:
        step(arg)
    message = shown(error.value)
    assert not re.search(r"98|9\.87|14109347", message)


# Extreme sizes


MANY_WORDS = [str(i) for i in range(10**5)]
LARGE: dict[str, Callable[[], Any]] = {
    "items": lambda: m.make_count_by_categories(*WORDS, [*MANY_WORDS, None]),
    "a word": lambda: m.make_count_by_categories(*WORDS, "x" * 10**6),
    "edges": lambda: m.make_count_by_bins(*INTS, list(range(10**5))),
    "a type": lambda: AllDomain("x" * 10**6),
    "a domain": lambda: VectorDomain(MANY_WORDS),  # type: ignore[arg-type]
    "a parameter": lambda: GeometricMechanism(MANY_WORDS),  # type: ignore[arg-type]
    "a nest": lambda: GeometricMechanism([[MANY_WORDS] * 100] * 100),  # type: ignore[arg-type]
    "bounds": lambda: GeometricMechanism(1, bounds=MANY_WORDS),  # type: ignore[arg-type]
    "a wide int": lambda: GeometricMechanism(1, bounds=[10**5000] * 3),  # type: ignore[arg-type]
    "a wide ratio": lambda: accuracy.scale_to_accuracy(1, Fraction(10**5000, 3)),
    "a dtype": lambda: GeometricMechanism(1).certificate("x" * 10**6),
    "a choice": lambda: accuracy.scale_to_accuracy(1, 0.1, method="x" * 10**6),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", LARGE.values(), ids=LARGE)
def test_messages_are_short(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)) as error:
        call()
    assert len(str(error.value)) < 1000


def nests() -> dict[str, list[Any]]:
    """Return lists that contain themselves."""
    one: list[Any] = [1]
    one.append(one)
    twice: list[Any] = []
    twice += [twice, twice]
    return {"one": one, "twice": twice, "within": [1, (2, twice)]}


@pytest.mark.parametrize("kind", nests())
def test_self_containing_lists_raise(kind: str) -> None:
    nest = nests()[kind]
    for call, name in [
        (lambda: GeometricMechanism(1).release(nest), "counts"),
        (lambda: vector(nest), "counts"),
        (lambda: accuracy.epsilon_to_accuracy(nest, 0.1), "epsilon"),
        (lambda: m.make_count_by_categories(*INTS, nest), "categories"),
    ]:
        with pytest.raises(TypeError, match=name):
            call()


def test_long_category_does_not_widen_others() -> None:
    long = "x" * 10**5
    # 200 MB in an array of numpy's fixed-width strings.
    categories = [long, "a", "a\0", *(f"c{i}" for i in range(500))]
    records = ["a", long, "a\0", "b", "a", "c499"]
    tracemalloc.start()
    count = m.make_count_by_categories(*WORDS, categories)
    counts = count(records)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6
    assert counts[:3].tolist() == [1, 2, 1]
    assert counts[-2:].tolist() == [1, 1]
    assert counts.sum() == 6
    assert (count(np.array(["a", "b"])) == count(["a", "b"])).all()


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (GeometricMechanism, "a finite number above 0"),
        (lambda value: accuracy.scale_to_accuracy(1, value), "a number above 0 and at most 1"),
        (lambda value: sample_bernoulli(value - 1), "a float64 number from 0 to 1"),
        (lambda value: GeometricMechanism(1, value), "an int of at least 1"),
    ],
)
def test_messages_end_with_what_is_accepted(call: Callable[[Any], Any], wanted: str) -> None:
    for value in (-1, 0, -math.inf, math.nan):
        with pytest.raises((ValueError, TypeError)) as error:
            call(value)
        assert str(error.value).endswith(f": give {wanted}")


def test_count_messages_suggest_a_fix() -> None:
    release = GeometricMechanism(1).release
    with pytest.raises(TypeError, match=r"such as counts\.astype\(np\.int64\)"):
        release(np.ones(3))
    with pytest.raises(OverflowError, match=f"give counts from {-(2**63)} to {2**63 - 1} "):
        release(2**63)
