"""Bad input to measurements and transformations: the errors name the parameter, not the data."""

import math
import operator
import re
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal
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
by_words = m.make_count_by_categories(*WORDS, ["a", "b"])
by_ints = m.make_count_by_categories(*INTS, [1, 2])
by_bins = m.make_count_by_bins(*FLOATS, [0.0, 1.0])

SECRET = 987654321987654321987
ARG = "arg|counts"


class Bad(NamedTuple):
    id: str
    call: Callable[[], Any]
    error: type[Exception]
    #: Name of the parameter, as a pattern.
    name: str
    #: Further required text.
    hint: str = ""


def geometric(scale: Any = 1, bounds: Any = None, space: Any = ONE) -> Any:
    return m.make_geometric(*space, scale, bounds)


def bad_types() -> Iterator[Bad]:
    types: dict[str, Any] = {
        "none": None,
        "number": 3,
        "unknown": "i128",
        "int-by-name": "int",
        "upper-case": "I32",
        "empty": "",
        "bytes": bytes,
        "complex": np.complex128,
        "half": np.float16,
        "longdouble": np.longdouble,
        "time": np.dtype("m8[s]"),
        "record": np.dtype([("x", "i4")]),
        "object": object,
        "abstract": np.integer,
        "value": np.int32(1),
        "list": [int],
    }
    for kind, T in types.items():
        for make in (AllDomain, L1Distance):
            yield Bad(f"{make.__name__}-{kind}", partial(make, T), TypeError, "T")
        yield Bad(f"QO-{kind}", partial(m.make_base_geometric, 1, QO=T), TypeError, "QO")
    by_categories = partial(m.make_count_by_categories, *WORDS, ["a"])
    by_bins = partial(m.make_count_by_bins, *FLOATS, [0.0, 1.0])
    for T in (float, "f32", bool, str):
        for metric in (AbsoluteDistance, L1Distance):
            yield Bad(f"{metric.__name__}-{T}", partial(metric, T), TypeError, "T")
        yield Bad(f"TO-{T}", partial(m.make_count, *WORDS, T), TypeError, "TO")
        yield Bad(f"TOA-categories-{T}", partial(by_categories, TOA=T), TypeError, "TOA")
        yield Bad(f"TOA-bins-{T}", partial(by_bins, TOA=T), TypeError, "TOA")
    for T in (int, "u8", bool, str):
        yield Bad(f"MaxDivergence-{T}", partial(MaxDivergence, T), TypeError, "QO")
        yield Bad(f"QO-{T}", partial(m.make_base_geometric, 1, QO=T), TypeError, "QO")
    for element in (int, "i32", COUNTS, np.dtype("i4"), None, AllDomain, "AllDomain<i32>"):
        bad = partial(VectorDomain, element)
        yield Bad(f"VectorDomain-{element!r}", bad, TypeError, "element_domain")


def bad_pairings() -> Iterator[Bad]:
    absolute, l1 = AbsoluteDistance("i32"), L1Distance("i32")
    values: dict[str, tuple[Any, Any, Any]] = {
        "scalar-l1": (COUNT, l1, absolute),
        "scalar-symmetric": (COUNT, SYMMETRIC, absolute),
        "scalar-other-type": (COUNT, AbsoluteDistance("i64"), absolute),
        "scalar-unsigned": (COUNT, AbsoluteDistance("u32"), absolute),
        "vector-absolute": (COUNTS, absolute, l1),
        "vector-symmetric": (COUNTS, SYMMETRIC, l1),
        "vector-other-type": (COUNTS, L1Distance("i64"), l1),
    }
    name = "input_metric"
    for kind, (domain, metric, right) in values.items():
        for how, call in {
            "pair": partial(m.make_geometric, domain, metric, 1),
            "then": partial(operator.rshift, (domain, metric), m.then_geometric(1)),
        }.items():
            yield Bad(f"{how}-{kind}", call, ValueError, name, repr(right))
    for kind, metric in {
        "none": None,
        "class": AbsoluteDistance,
        "domain": COUNT,
        "text": "AbsoluteDistance(int32)",
        "measure": MaxDivergence(),
    }.items():
        call = partial(m.make_geometric, COUNT, metric, 1)
        yield Bad(f"metric-{kind}", call, TypeError, name, "AbsoluteDistance(T)")
    for kind, domain in {
        "none": None,
        "class": AllDomain,
        "metric": absolute,
        "text": "AllDomain<i32>",
        "floats": AllDomain(float),
        "strings": VectorDomain(AllDomain(str)),
        "bools": AllDomain(bool),
    }.items():
        call = partial(m.make_geometric, domain, absolute, 1)
        yield Bad(f"domain-{kind}", call, TypeError, "input_domain")
    call = partial(m.make_geometric, absolute, COUNT, 1)
    yield Bad("pair-swapped", call, TypeError, "input_domain")
    makers: dict[str, Callable[..., Any]] = {
        "count": m.make_count,
        "categories": lambda *space: m.make_count_by_categories(*space, [1]),
        "bins": lambda *space: m.make_count_by_bins(*space, [1, 2]),
    }
    for how, make in makers.items():
        for kind, metric in {"l1": l1, "absolute": absolute}.items():
            call = partial(make, COUNTS, metric)
            yield Bad(f"{how}-{kind}", call, ValueError, name, repr(SYMMETRIC))
        yield Bad(f"{how}-metric", partial(make, COUNTS, None), TypeError, name)
        for kind, space in {
            "one": (COUNT, SYMMETRIC),
            "none": (None, SYMMETRIC),
            "swapped": (SYMMETRIC, COUNTS),
        }.items():
            yield Bad(f"{how}-{kind}", partial(make, *space), TypeError, "input_domain")
    call = partial(m.make_count_by_categories, *FLOATS, [0.0])
    yield Bad("categories-of-floats", call, TypeError, "input_domain", "strings")
    for T in (str, bool):
        call = partial(m.make_count_by_bins, VectorDomain(AllDomain(T)), SYMMETRIC, [0, 1])
        yield Bad(f"bins-of-{T}", call, TypeError, "input_domain", "floats")


def bad_parameters() -> Iterator[Bad]:
    scales: dict[str, tuple[Any, type[Exception]]] = {
        "text": ("1", TypeError),
        "none": (None, TypeError),
        "bool": (True, TypeError),
        "numpy-bool": (np.True_, TypeError),
        "decimal": (Decimal(1), TypeError),
        "complex": (1j, TypeError),
        "array": (np.array([1.0]), TypeError),
        "list": ([1], TypeError),
        "longdouble": (np.longdouble(1), TypeError),
        "time": (np.timedelta64(1, "s"), TypeError),
        "nan": (math.nan, ValueError),
        "infinite": (math.inf, ValueError),
        "minus-infinite": (-math.inf, ValueError),
        "negative": (-1, ValueError),
        "least-negative": (-5e-324, ValueError),
        "negative-fraction": (Fraction(-1, 3), ValueError),
        "huge": (1e308, ValueError),
        "huge-fraction": (Fraction(10**400, 3), ValueError),
    }
    for kind, (scale, error) in scales.items():
        for space in (ONE, MANY):
            call = partial(geometric, scale, space=space)
            yield Bad(f"scale-{kind}-{type(space[0]).__name__}", call, error, "scale")
        yield Bad(f"base-scale-{kind}", partial(m.make_base_geometric, scale), error, "scale")
    bounds: dict[str, tuple[Any, type[Exception]]] = {
        "three": ([0, 1, 2], TypeError),
        "one": ((0,), TypeError),
        "number": (5, TypeError),
        "floats": ((0.0, 1.0), TypeError),
        "half-open": ((0, None), TypeError),
        "texts": (("0", "1"), TypeError),
        "text": ("01", TypeError),
        "bools": ((False, True), TypeError),
        "array": (np.array([0, 1]), TypeError),
        "dict": ({"lower": 0, "upper": 1}, TypeError),
        "reversed": ((1, 0), ValueError),
        "above": ((0, 2**31), OverflowError),
        "below": ((-(2**31) - 1, 0), OverflowError),
        "all-above": ((2**31, 2**32), OverflowError),
        "far-above": ((0, 2**64), OverflowError),
        "farther": ((0, 2**200), OverflowError),
        "far-below": ((-(2**200), 0), OverflowError),
    }
    for kind, (pair, error) in bounds.items():
        for scale in (0, 1):
            yield Bad(
                f"bounds-{kind}-scale-{scale}", partial(geometric, scale, pair), error, "bounds"
            )
    for D in (
        *("", "i32", "AllDomain", "AllDomain<>", "AllDomain<f64>", "AllDomain<int>"),
        *("AllDomain<int32>", "AllDomain<i128>", "AllDomain<usize>", "AllDomain<String>"),
        *("AllDomain<i32", "AllDomain i32>", "AllDomain<i32>>", "AllDomain<<i32>>"),
        *("AllDomain<AllDomain<i32>>", "VectorDomain<i32>", "VectorDomain<AllDomain<i32>"),
        *("VectorDomain<AllDomain<i32>>>", "VectorDomain<AllDomain<f32>>"),
        *("VectorDomain<VectorDomain<AllDomain<i32>>>", "vectordomain<alldomain<i32>>"),
        *("Vec<i32>", "<i32>", "<", ">", None, int, AllDomain, L1Distance("i32")),
        *(np.dtype("i4"), AllDomain(float), VectorDomain(AllDomain(str))),
    ):
        yield Bad(f"D-{D!r}", partial(m.make_base_geometric, 1, D=D), TypeError, "D")
    deep = "VectorDomain<" * 5000 + "AllDomain<i32>" + ">" * 5000
    yield Bad("D-deep", partial(m.make_base_geometric, 1, D=deep), TypeError, "D")


def bad_distances() -> Iterator[Bad]:
    for kind, d_in, error in [
        ("negative", -1, ValueError),
        ("numpy-negative", np.int8(-1), ValueError),
        ("float", 1.0, TypeError),
        ("nan", math.nan, TypeError),
        ("infinite", math.inf, TypeError),
        ("fraction", Fraction(1), TypeError),
        ("bool", True, TypeError),
        ("none", None, TypeError),
        ("text", "1", TypeError),
        ("list", [1], TypeError),
        ("time", np.timedelta64(1), TypeError),
    ]:
        for step in (scalar, word_count):
            name = f"{kind}-{type(step).__name__}"
            yield Bad(f"d_in-{name}", partial(step.map, d_in), error, "d_in")
            yield Bad(f"d_in-check-{name}", partial(step.check, d_in, 1), error, "d_in")
    for kind, d_out, error in [
        ("nan", math.nan, ValueError),
        ("numpy-nan", np.float32("nan"), ValueError),
        ("negative", -0.5, ValueError),
        ("minus-infinite", -math.inf, ValueError),
        ("bool", True, TypeError),
        ("none", None, TypeError),
        ("text", "1", TypeError),
        ("decimal", Decimal(1), TypeError),
        ("complex", 1j, TypeError),
        ("longdouble", np.longdouble(1), TypeError),
    ]:
        yield Bad(f"d_out-{kind}", partial(scalar.check, 1, d_out), error, "d_out")
    for kind, d_out, error in [
        ("negative", -1, ValueError),
        ("float", 1.0, TypeError),
        ("infinite", math.inf, TypeError),
        ("none", None, TypeError),
    ]:
        yield Bad(f"d_out-count-{kind}", partial(word_count.check, 1, d_out), error, "d_out")


def bad_data() -> Iterator[Bad]:
    one: dict[str, tuple[Any, type[Exception]]] = {
        "float": (1.0, TypeError),
        "numpy-float": (np.float64(1), TypeError),
        "bool": (True, TypeError),
        "numpy-bool": (np.True_, TypeError),
        "text": ("1", TypeError),
        "bytes": (b"1", TypeError),
        "none": (None, TypeError),
        "fraction": (Fraction(1), TypeError),
        "wider": (np.int64(1), TypeError),
        "narrower": (np.int8(1), TypeError),
        "unsigned": (np.uint32(1), TypeError),
        "time": (np.timedelta64(1), TypeError),
        "array": (np.array([1], "i4"), TypeError),
        "array-0d": (np.array(1, "i4"), TypeError),
        "list": ([1], TypeError),
        "above": (2**31, OverflowError),
        "below": (-(2**31) - 1, OverflowError),
        "far-above": (10**400, OverflowError),
    }
    many: dict[str, tuple[Any, type[Exception]]] = {
        "int": (1, TypeError),
        "numpy-int": (np.int32(1), TypeError),
        "array-0d": (np.array(1, "i4"), TypeError),
        "wider": (np.ones(2, "i8"), TypeError),
        "unsigned": (np.ones(2, "u4"), TypeError),
        "float": (np.ones(2), TypeError),
        "bools": (np.ones(2, bool), TypeError),
        "objects": (np.array([1, 2], object), TypeError),
        "times": (np.array([1, 2], "m8[s]"), TypeError),
        "texts": (np.array(["1", "2"]), TypeError),
        "records": (np.zeros(2, [("x", "i4")]), TypeError),
        "masked": (np.ma.masked_array(np.ones(2, "i4"), [True, False]), TypeError),
        "masked-0d": (np.ma.masked_array(1, True, dtype="i4"), TypeError),
        "masked-items": ([1, np.ma.masked], TypeError),
        "list-of-masked": ([np.ma.masked_array([1, 2], [True, False])], TypeError),
        "list-of-floats": ([1.0, 2.0], TypeError),
        "list-with-bool": ([1, True], TypeError),
        "list-with-numpy-bool": ([1, np.True_], TypeError),
        "list-with-none": ([1, None], TypeError),
        "list-with-text": ([1, "2"], TypeError),
        "list-with-time": ([1, np.timedelta64(2)], TypeError),
        "ragged": ([[1, 2], [3]], TypeError),
        "ragged-depth": ([[1], 2], TypeError),
        "ragged-arrays": ([np.ones((2, 2), "i4"), np.ones((2, 3), "i4")], TypeError),
        "text": ("12", TypeError),
        "bytes": (b"12", TypeError),
        "bytearray": (bytearray(b"12"), TypeError),
        "none": (None, TypeError),
        "set": ({1, 2}, TypeError),
        "dict": ({1: 2}, TypeError),
        "iterator": (iter([1, 2]), TypeError),
        "above": ([1, 2**31], OverflowError),
        "below": ((1, -(2**31) - 1), OverflowError),
        "nested-above": ([[1, 2], [3, 2**31]], OverflowError),
        "numpy-above": ([1, np.int64(2**31)], OverflowError),
        "far-above": ([1, 10**400], OverflowError),
    }
    for kind, (arg, error) in one.items():
        yield Bad(f"scalar-{kind}", partial(scalar.invoke, arg), error, ARG)
    for kind, (arg, error) in many.items():
        yield Bad(f"vector-{kind}", partial(vector, arg), error, ARG)
    records: list[tuple[str, Any, Any]] = [
        ("wrong-dtype-count", word_count, np.ones(2, "i8")),
        ("wrong-dtype-ints", by_ints, np.ones(2, "i8")),
        ("wrong-dtype-bins", by_bins, np.ones(2, "f4")),
        ("texts-for-ints", by_ints, np.array(["1", "2"])),
        ("ints-for-floats", by_bins, [1, 2]),
        ("ints-for-words", by_words, [1, 2]),
        ("bytes-for-words", by_words, np.array([b"a", b"b"])),
        ("one-word", word_count, "ab"),
        ("one-numpy-word", word_count, np.str_("ab")),
        ("mixed-words", by_words, ["a", None]),
        ("mixed-objects", by_words, np.array(["a", 1], object)),
        ("nan-for-a-word", word_count, np.array(["a", math.nan], object)),
        ("number", word_count, 3),
        ("none", int_count, None),
        ("dict", word_count, {"a": 1}),
        ("iterator", word_count, iter(["a"])),
        ("masked", by_ints, np.ma.masked_array(np.ones(2, "i1"), [True, False])),
        ("2d-words", by_words, np.array([["a", "b"]])),
        ("2d-objects", by_words, np.array([["a", "b"]], object)),
        ("2d-lists", by_words, [["a", "b"]]),
        ("2d-ints", by_ints, np.ones((2, 2), "i1")),
        ("2d-int-lists", by_ints, [[1, 2], [3, 4]]),
        ("2d-floats", by_bins, np.ones((2, 2))),
        ("2d-count", int_count, np.ones((2, 2), "i1")),
        ("0d", int_count, np.array(1, "i1")),
    ]
    for kind, step, arg in records:
        yield Bad(f"records-{kind}", partial(step, arg), TypeError, ARG)
    yield Bad("records-above", partial(by_ints, [1, 128]), OverflowError, ARG)
    yield Bad("records-counted-above", partial(int_count, [1, 128]), OverflowError, ARG)


def bad_keys() -> Iterator[Bad]:
    for kind, space, categories, error in [
        ("empty", WORDS, [], ValueError),
        ("no-ints", INTS, np.array([], "i1"), ValueError),
        ("twice", WORDS, ["a", "b", "a"], ValueError),
        ("ints-twice", INTS, [1, 2, 1], ValueError),
        ("text", WORDS, "ab", TypeError),
        ("ints-for-words", WORDS, [1, 2], TypeError),
        ("words-for-ints", INTS, ["a", "b"], TypeError),
        ("floats-for-ints", INTS, [1.0, 2.0], TypeError),
        ("bools-for-ints", INTS, [True, False], TypeError),
        ("wider", INTS, np.array([1, 2], "i8"), TypeError),
        ("mixed", WORDS, ["a", None], TypeError),
        ("2d", WORDS, np.array([["a", "b"]]), TypeError),
        ("2d-list", WORDS, [["a", "b"]], TypeError),
        ("2d-ints", INTS, [[1, 2]], TypeError),
        ("0d", INTS, np.array(1, "i1"), TypeError),
        ("number", INTS, 1, TypeError),
        ("missing", WORDS, None, TypeError),
        ("set", WORDS, {"a"}, TypeError),
        ("masked", INTS, np.ma.masked_array(np.array([1, 2], "i1"), [True, False]), TypeError),
        ("above", INTS, [1, 128], OverflowError),
        ("below", INTS, [1, -129], OverflowError),
    ]:
        call = partial(m.make_count_by_categories, *space, categories)
        yield Bad(f"categories-{kind}", call, error, "categories")
    for kind, space, edges, error in [
        ("empty", FLOATS, [], ValueError),
        ("one", FLOATS, [0.0], ValueError),
        ("decreasing", FLOATS, [1.0, 0.0], ValueError),
        ("equal", FLOATS, [0.0, 0.0, 1.0], ValueError),
        ("equal-zeros", FLOATS, [-0.0, 0.0], ValueError),
        ("nan", FLOATS, [0.0, math.nan], ValueError),
        ("nan-first", FLOATS, [math.nan, 0.0, 1.0], ValueError),
        ("ints-decreasing", INTS, [0, 2, 1], ValueError),
        ("floats-for-ints", INTS, [0.0, 1.0], TypeError),
        ("number", FLOATS, 10, TypeError),
        ("text", FLOATS, "01", TypeError),
        ("missing", FLOATS, None, TypeError),
        ("complex", FLOATS, np.array([0, 1j]), TypeError),
        ("2d", FLOATS, np.array([[0.0, 1.0]]), TypeError),
        ("2d-list", INTS, [[0, 1]], TypeError),
        ("ragged", INTS, [[0, 1], [2]], TypeError),
        ("0d", FLOATS, np.array(1.0), TypeError),
        ("above", INTS, [0, 128], OverflowError),
        ("below", INTS, [-129, 0], OverflowError),
    ]:
        call = partial(m.make_count_by_bins, *space, edges)
        yield Bad(f"edges-{kind}", call, error, "edges")
    for flag in (None, 1, 0, "yes", np.True_):
        for make in (
            partial(m.make_count_by_categories, *WORDS, ["a"]),
            partial(m.make_count_by_bins, *FLOATS, [0.0, 1.0]),
        ):
            call, name = partial(make, null_category=flag), make.func.__name__
            yield Bad(f"null_category-{name}-{flag!r}", call, TypeError, "null_category")


BAD = [
    *bad_types(),
    *bad_pairings(),
    *bad_parameters(),
    *bad_distances(),
    *bad_data(),
    *bad_keys(),
]


@pytest.mark.parametrize("bad", BAD, ids=[bad.id for bad in BAD])
def test_bad_input_raises(bad: Bad) -> None:
    with pytest.raises(Exception) as error:  # noqa: PT011 (compared below)
        bad.call()
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
SECRETS: dict[str, tuple[Any, Any]] = {
    "int": (scalar, SECRET),
    "negative-int": (scalar, -SECRET),
    "float": (scalar, float(SECRET)),
    "fraction": (scalar, Fraction(SECRET, 7)),
    "text": (scalar, TEXT),
    "list-to-scalar": (scalar, [SECRET]),
    "object-to-scalar": (scalar, np.array(SECRET, object)),
    "int-to-vector": (vector, SECRET),
    "list": (vector, [SECRET]),
    "tuple": (vector, (1, 2, SECRET)),
    "nested": (vector, [[1, 2], [3, SECRET]]),
    "ragged": (vector, [[1, 2], [SECRET]]),
    "negative": (vector, [-SECRET]),
    "unsigned": (UNSIGNED, [1, SECRET]),
    "narrow": (NARROW, [1, SECRET]),
    "floats": (vector, [1.0, float(SECRET)]),
    "texts": (vector, [TEXT]),
    "objects": (vector, np.array([SECRET], object)),
    "text-array": (vector, np.array([TEXT])),
    "float-array": (vector, np.array([float(SECRET)])),
    "masked": (vector, np.ma.masked_array([SECRET], [True])),
    "dict": (vector, {SECRET: 1}),
    "set": (vector, {SECRET}),
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
