"""What every call refuses: the call, bad values of one parameter, and the error they raise.

``fronts/test_refusals.py`` is made of :data:`REFUSED`. Of the calls in :data:`CALLS`, any value
at all is accepted or refused with the parameter's name, and no error shows a count.
"""

import datetime
import inspect
import itertools
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import geomdp.measurement as m
from geomdp import (
    GeometricMechanism,
    accounting,
    accuracy,
    sample_bernoulli,
    sample_geometric,
    sample_two_sided_geometric,
    tables,
)
from geomdp.compat import diffprivlib, opendp_accuracy
from geomdp.compat.smartnoise import simple_geometric_mechanism as smartnoise
from geomdp.distribution import CensoredGeometric, TwoSidedGeometric
from geomdp.keyed import ReleaseKey
from geomdp.measurement import (
    AbsoluteDistance,
    AllDomain,
    L1Distance,
    MaxDivergence,
    SymmetricDistance,
    VectorDomain,
)
from geomdp.tables._facts import rounding
from geomdp.tables.streams import Stream
from geomdp.testing import release_not_private

KEY = bytes(32)
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
Truncated, Folded = diffprivlib.GeometricTruncated, diffprivlib.GeometricFolded
SMALL, BOUNDED = GeometricMechanism(1), GeometricMechanism(0.5, bounds=(0, 20))
CENSORED = CensoredGeometric(4, 2, (0, 20))
NOISE = TwoSidedGeometric(Fraction(7, 3))
IDS = [np.array([1])]
PEOPLE = pd.DataFrame({"town": ["a", "b"], "who": [1, 2]})
SUMS = tables.Design({"town": ["a", "b"]}, individual="who", l0=1)
PAIR = SUMS.sum_and_count(PEOPLE, "who", bounds=(0, 9))
VISITS = tables.Design({"town": ["a", "b"]}, individual="who", l0=2)
TWO_LEVELS = {"town": ["a", "b"], "who": [1, 2]}
NOISY_TOWNS = tables.Design({"town": ["a"]}).count(PEOPLE).release(epsilon=1)
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

ARG = "arg|counts"


class Refused(NamedTuple):
    #: Name of the parameter, as a pattern.
    name: str
    error: type[Exception]
    call: Callable[[Any], Any]
    values: Iterable[Any]
    #: A further pattern of the message.
    hint: str = ""
    #: Whether the message shows the value beside the name.
    shown: bool = False


class Limit(NamedTuple):
    """A parameter with limits: values at them, which a call accepts, and those just beyond."""

    #: Name of the parameter, as a pattern.
    name: str
    call: Callable[[Any], Any]
    within: Iterable[Any]
    beyond: Iterable[Any]
    error: type[Exception] = ValueError
    #: The constant of the package that is the limit, with its file.
    of: str = ""


def of_dtype(dtype: str) -> tuple[Any, Any]:
    return m.VectorDomain(m.AllDomain(dtype)), m.L1Distance(dtype)


# Numbers

NOT_NUMBERS: list[Any] = [
    *(True, False, np.True_, b"1", None, 1j, np.longdouble(1), np.complex128(1)),
    *(np.timedelta64(1, "s"), [1], {1}, {1: 2}, np.array([1.0])),
]
NAN: list[Any] = [math.nan, np.float32("nan")]
NEGATIVE: list[Any] = [
    *(-math.inf, -1, -0.5, -5e-324, Fraction(-1, 3), -(10**400)),
    *(np.int8(-1), np.float32(-1)),
]
INFINITE: list[Any] = [math.inf, np.float64("inf")]
ZERO: list[Any] = [0, 0.0, -0.0, Fraction(0), np.float64(0)]
NO_SCALE = NAN + NEGATIVE + INFINITE
#: The last two are not exactly a float64.
NO_PROB: list[Any] = [1 + 2**-52, 2, 10**400, Fraction(1, 3), Fraction(1, 10**40)]
#: Parameters that are numbers, by the names that errors may give, their own first; calls with them,
#: and the numbers out of their range.
NUMBERS: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("epsilon", GeometricMechanism, NO_SCALE + ZERO),
    (
        "epsilon|scale",
        lambda x: GeometricMechanism(x, bounds=(0, 9)).certificate(),
        NO_SCALE + ZERO,
    ),
    ("epsilon", lambda x: PAIR.release(epsilon=x), NO_SCALE + ZERO),
    ("share", lambda x: PAIR.release(epsilon=1, share=x), NO_SCALE + ZERO + [1, 1.5, 10**400]),
    ("scale", GeometricMechanism.from_scale, NO_SCALE),
    ("scale", lambda x: sample_two_sided_geometric(3, x), NO_SCALE),
    ("scale", lambda x: m.make_geometric(*ONE, x), NO_SCALE),
    ("scale", lambda x: m.make_geometric(*MANY, x), NO_SCALE),
    ("scale", m.make_base_geometric, NO_SCALE),
    ("scale", lambda x: m.make_base_geometric(x, D=COUNTS), NO_SCALE),
    ("epsilon|scale", lambda x: smartnoise(5, x, 1, 0, 9), NO_SCALE + ZERO),
    ("sensitivity|scale", lambda x: smartnoise(5, 1.0, x, 0, 9), NO_SCALE),
    ("scale", TwoSidedGeometric, NO_SCALE),
    ("scale", lambda x: TwoSidedGeometric(x).pmf([0, 1, 10**15]), NO_SCALE),
    ("scale", lambda x: CensoredGeometric(3, x, (0, 9)).logsf([-1, 0, 5]), NO_SCALE),
    ("prob", sample_bernoulli, NO_SCALE + NO_PROB),
    ("prob|trials", sample_geometric, NO_SCALE + NO_PROB),
    # An infinite epsilon adds no noise there.
    ("epsilon|scale", lambda x: diffprivlib.Geometric(epsilon=x), NAN + NEGATIVE + ZERO),
    ("epsilon|scale", lambda x: Truncated(epsilon=x, lower=0, upper=9), NAN + NEGATIVE),
    ("epsilon|scale", lambda x: Folded(epsilon=x, lower=0, upper=9), NAN + NEGATIVE),
]
NOT_INTEGERS: list[Any] = [
    *(True, np.True_, 1.0, math.nan, np.float64(1), Fraction(1), "1", None, 1j, [1]),
    np.timedelta64(1, "s"),
]
#: Parameters that are integers, by the names that errors may give, their own first; calls with
#: them, and the least one.
INTEGERS: list[tuple[str, Callable[[Any], Any], int | None]] = [
    ("sensitivity", lambda x: GeometricMechanism(1, x), 1),
    ("sensitivity|scale", lambda x: GeometricMechanism(1, x, (0, 9)).certificate(), 1),
    ("min|max|bounds", lambda x: smartnoise(5, 1, 1, x, 9), None),
    ("max|min|bounds", lambda x: smartnoise(5, 1, 1, 0, x), None),
    ("distance", SMALL.privacy_loss, 0),
    ("d_in", scalar.map, 0),
    ("d_in", lambda x: scalar.check(x, 1), 0),
    ("d_in", lambda x: scalar.map_approx(x, 0.1), 0),
    ("d_in", word_count.map, 0),
    ("d_in", lambda x: word_count.check(x, 1), 0),
    # That of save and release, which accept None.
    ("rounded", rounding.step, 2),
    ("sensitivity|scale", lambda x: diffprivlib.Geometric(epsilon=1, sensitivity=x), 0),
    ("sensitivity|scale", lambda x: Truncated(epsilon=1, sensitivity=x, lower=0, upper=9), 0),
    ("sensitivity|scale", lambda x: Folded(epsilon=1, sensitivity=x, lower=0, upper=9), 0),
]
#: This call accepts None.
OPTIONAL = SMALL.privacy_loss

# Bounds

NOT_PAIRS: list[Any] = [
    *(5, (), (1,), (1, 2, 3), "ab", {1, 2}, {1: 2, 3: 4}, np.array([1, 2]), range(2), b"ab"),
]
#: Calls with a pair of bounds, whether they need one, and whether they take counts of any dtype.
#: Elsewhere, None means the limits of the dtype.
PAIRS: list[tuple[Callable[[Any], Any], bool, bool]] = [
    (lambda x: GeometricMechanism(1, bounds=x), False, True),
    (lambda x: GeometricMechanism.from_scale(1, x), False, True),
    (lambda x: sample_two_sided_geometric(3, 1, x), False, True),
    (lambda x: m.make_geometric(*ONE, 1, x), False, False),
    (lambda x: m.make_geometric(*MANY, 0, x), False, False),
    (lambda x: m.make_base_geometric(1, x, COUNT), False, False),
    (lambda x: CensoredGeometric(3, 1, x), True, True),
    (lambda x: m.make_sum(COUNTS, SYMMETRIC, x), True, False),
]
BEYOND = [
    *((-1, 2**63), (-(2**63), 2**64 - 1), (0, 2**64), (-(2**63) - 1, 0), (2**64, 2**64)),
    *((0, 2**127 - 1), (0, 2**127), (-(2**127) - 1, 0), (-(2**200), 2**200)),
]
BEYOND_INT32 = [*BEYOND, (0, 2**31), (-(2**31) - 1, 0), (2**31, 2**32)]

# Mechanisms

WITH_MECHANISM: list[Callable[[Any], Any]] = [
    lambda x: tables.release_columns(pd.DataFrame({"n": [1]}), {"n": x}),
    tables.count(pd.Series(["a"]), ["a"]).design.privacy_loss,
    accounting.Budget(1).spend,
    lambda x: accuracy.simultaneous_accuracy(x, 0.5, n=5),
    lambda x: accuracy.bias(x, 5),
    lambda x: accuracy.unbiased(np.square, x),
    lambda x: accuracy.sum_accuracy(x, 3, 0.05),
    lambda x: accuracy.ratio_confidence_interval(SMALL, 1, 2, 0.05, denominator_mechanism=x),
]

# Counts


class ArrayLike:
    """Like the column of a data frame."""

    def __init__(self, counts: Any = (0, 0, 0)) -> None:
        self.counts = np.array(counts)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.counts


NOT_COUNTS: list[Any] = [
    *(True, np.True_, 1.0, float("nan"), np.float64(1), np.longdouble(1), 1j, Decimal(1)),
    *(Fraction(1), "1", b"1", None, object(), np.ma.masked, np.timedelta64(1, "s"), np.str_("1")),
    *(np.datetime64(1, "s"), np.void(b"1"), datetime.timedelta(1)),
    *([1, False], [np.True_], [np.float32(1)], [1, None], [b"1"], [Decimal(1)], [np.ma.masked]),
    *([[1], 2], [{1}], [ArrayLike, 1], [np.timedelta64(1, "s")], [np.array([True])]),
    *(np.zeros(shape, T) for shape in [(), (0,)] for T in ("?", "f4", "O", "M8[s]")),
]
#: Calls with counts alone.
COUNTED: dict[str, Callable[[Any], Any]] = {
    # None asks for the accuracy of any count.
    "accuracy": lambda x: SMALL.accuracy(0.05, counts=0.5 if x is None else x),
    "accuracy of several": lambda x: accuracy.simultaneous_accuracy(SMALL, 0.05, counts=x),
    "interval": lambda x: SMALL.confidence_interval(x, 0.05),
    "the bias": lambda x: accuracy.bias(SMALL, x),
    "unbiased": accuracy.unbiased(np.square, SMALL),
    "release": SMALL.release,
    "tiers": lambda x: SMALL.tiers(x, [0.5]),
    "known key": lambda x: release_not_private(SMALL, x, KEY),
    "two-sided": lambda x: sample_two_sided_geometric(x, 1),
    "smartnoise": lambda x: smartnoise(x, 1, 1, 0, 9),
    "measurement": m.make_geometric(*of_dtype("int64"), 1),
    "measurement of one": m.make_geometric(m.AllDomain(int), m.AbsoluteDistance(int), 1),
    **{
        f"{method} of {type(of).__name__}": getattr(of, method)
        for of, method in itertools.product(
            [
                diffprivlib.Geometric(epsilon=1),
                Truncated(epsilon=1, lower=0, upper=9),
                Folded(epsilon=1, lower=0, upper=9),
            ],
            ["randomise", "bias", "variance", "mse"],
        )
    },
}
#: Moments are functions of any int, and a measurement of arrays takes none.
NO_INT64 = {call for call in COUNTED if re.match("pmf|bias|variance|mse|measurement", call)}


# The table


def bad_types() -> Iterator[Refused]:
    types: list[Any] = [
        *(None, 3, "i128", "int", "I32", "", bytes, np.complex128, np.float16, np.longdouble),
        *(np.dtype("m8[s]"), np.dtype([("x", "i4")]), object, np.integer, np.int32(1), [int]),
    ]
    for make in (AllDomain, L1Distance):
        yield Refused("T", TypeError, make, types)
    no_integers = [float, "f32", bool, str]
    for metric in (AbsoluteDistance, L1Distance):
        yield Refused("T", TypeError, metric, no_integers)
    yield Refused("TO", TypeError, partial(m.make_count, *WORDS), no_integers)
    yield Refused("TO", TypeError, partial(m.make_sum, *INTS, (0, 9)), no_integers)
    for by_key in (
        partial(m.make_count_by_categories, *WORDS, ["a"], True),
        partial(m.make_count_by_bins, *FLOATS, [0.0, 1.0], True),
    ):
        yield Refused("TOA", TypeError, by_key, no_integers)
    no_floats = [int, "u8", bool, str]
    yield Refused("QO", TypeError, MaxDivergence, no_floats)
    yield Refused("QO", TypeError, lambda QO: m.make_base_geometric(1, QO=QO), types + no_floats)
    elements = [int, "i32", COUNTS, np.dtype("i4"), None, AllDomain, "AllDomain<i32>"]
    yield Refused("element_domain", TypeError, VectorDomain, elements)


def bad_pairings() -> Iterator[Refused]:
    absolute, l1 = AbsoluteDistance("i32"), L1Distance("i32")
    pair = lambda space: m.make_geometric(*space, 1)  # noqa: E731
    then = lambda space: space >> m.then_geometric(1)  # noqa: E731
    scalars = [l1, SYMMETRIC, AbsoluteDistance("i64"), AbsoluteDistance("u32")]
    vectors = [absolute, SYMMETRIC, L1Distance("i64")]
    for call in (pair, then):
        wrong: Any = [(COUNT, metric) for metric in scalars]
        yield Refused("input_metric", ValueError, call, wrong, re.escape(repr(absolute)))
        wrong = [(COUNTS, metric) for metric in vectors]
        yield Refused("input_metric", ValueError, call, wrong, re.escape(repr(l1)))
    metrics: list[Any] = [None, AbsoluteDistance, COUNT, "AbsoluteDistance(int32)", MaxDivergence()]
    wrong = [(COUNT, metric) for metric in metrics]
    yield Refused("input_metric", TypeError, pair, wrong, re.escape("AbsoluteDistance(T)"))
    strings = VectorDomain(AllDomain(str))
    no_counts = [None, AllDomain, absolute, "AllDomain<i32>", AllDomain(float), strings]
    wrong = [(domain, absolute) for domain in [*no_counts, AllDomain(bool)]]
    yield Refused("input_domain", TypeError, pair, [*wrong, (absolute, COUNT)])
    for make in (
        lambda space: m.make_count(*space),
        lambda space: m.make_sum(*space, (1, 2)),
        lambda space: m.make_count_by_categories(*space, [1]),
        lambda space: m.make_count_by_bins(*space, [1, 2]),
    ):
        wrong = [(COUNTS, l1), (COUNTS, absolute)]
        yield Refused("input_metric", ValueError, make, wrong, re.escape(repr(SYMMETRIC)))
        yield Refused("input_metric", TypeError, make, [(COUNTS, None)])
        wrong = [(COUNT, SYMMETRIC), (None, SYMMETRIC), (SYMMETRIC, COUNTS)]
        yield Refused("input_domain", TypeError, make, wrong)
    for make, kinds, accepted in [
        (lambda space: m.make_count_by_categories(*space, [0.0]), [float], "strings"),
        (lambda space: m.make_count_by_bins(*space, [0, 1]), [str, bool], "floats"),
        (lambda space: m.make_sum(*space, (0, 1)), [str, bool, float], "records of integers"),
    ]:
        wrong = [(VectorDomain(AllDomain(T)), SYMMETRIC) for T in kinds]
        yield Refused("input_domain", TypeError, make, wrong, accepted)


def bad_parameters() -> Iterator[Refused]:
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
    yield Refused("D", TypeError, lambda D: m.make_base_geometric(1, D=D), no_domains)
    yield Refused("measurements", TypeError, m.make_composition, [None, scalar, 3, {scalar}])
    yield Refused("measurements", TypeError, m.make_composition, [[scalar, None], [word_count]])
    narrow = m.make_base_geometric(1, D=COUNT, QO="f32")
    others = [[], [scalar, vector], [scalar, narrow], [scalar, m.make_base_geometric(1)]]
    yield Refused("measurements", ValueError, m.make_composition, others)


def bad_distances() -> Iterator[Refused]:
    no_numbers: list[Any] = [True, None, b"1", 1j, np.longdouble(1)]
    loss, delta = partial(scalar.check, 1), partial(scalar.map_approx, 1)
    yield Refused("d_out", TypeError, loss, no_numbers)
    yield Refused("d_out", ValueError, loss, [math.nan, np.float32("nan"), -0.5, -math.inf])
    yield Refused("delta", TypeError, delta, no_numbers)
    yield Refused("delta", ValueError, delta, [-0.1, 1.1, math.nan, math.inf])
    yield Refused("d_out", TypeError, partial(word_count.check, 1), [1.0, math.inf, None])
    yield Refused("d_out", ValueError, partial(word_count.check, 1), [-1])


def bad_data() -> Iterator[Refused]:
    # NOT_COUNTS has what is no count in any domain.
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
    yield Refused(ARG, TypeError, scalar.invoke, one)
    yield Refused(ARG, OverflowError, scalar.invoke, [2**31, -(2**31) - 1, 10**400])
    yield Refused(ARG, TypeError, vector, many)
    yield Refused(ARG, OverflowError, vector, above)
    words: list[Any] = [
        *(np.ones(2, "i8"), "ab", np.str_("ab"), np.array(["a", math.nan], object), 3, {"a": 1}),
        *(iter(["a"]), [1, 2], np.array([b"a", b"b"]), ["a", None], np.array(["a", 1], object)),
        *(np.array([["a", "b"]]), np.array([["a", "b"]], object), [["a", "b"]]),
    ]
    ints: list[Any] = [
        *(np.ones(2, "i8"), np.array(["1", "2"]), None, np.ones((2, 2), "i1"), [[1, 2], [3, 4]]),
        *(np.ma.masked_array(np.ones(2, "i1"), [True, False]), np.array(1, "i1")),
    ]
    yield Refused(ARG, TypeError, by_words, words)
    yield Refused(ARG, TypeError, word_count, words[:7])
    yield Refused(ARG, TypeError, by_bins, [np.ones(2, "f4"), [1, 2], np.ones((2, 2))])
    for step in (by_ints, int_count, int_sum):
        yield Refused(ARG, TypeError, step, ints)
        yield Refused(ARG, OverflowError, step, [[1, 128]])


def bad_keys() -> Iterator[Refused]:
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
        yield Refused("categories", TypeError, call, no_categories)
        yield Refused("categories", ValueError, call, wrong)
    of_floats = partial(m.make_count_by_bins, *FLOATS)
    of_ints = partial(m.make_count_by_bins, *INTS)
    no_edges = [10, "01", None, np.array([0, 1j]), np.array([[0.0, 1.0]]), np.array(1.0)]
    yield Refused("edges", TypeError, of_floats, no_edges)
    yield Refused("edges", TypeError, of_ints, [[0.0, 1.0], [[0, 1]], [[0, 1], [2]]])
    reversed_or_equal = [[], [0.0], [1.0, 0.0], [0.0, 0.0, 1.0], [-0.0, 0.0]]
    yield Refused("edges", ValueError, of_floats, reversed_or_equal)
    yield Refused("edges", ValueError, of_floats, [[0.0, math.nan], [math.nan, 0.0, 1.0]])
    yield Refused("edges", ValueError, of_ints, [[0, 2, 1]])
    yield Refused("edges", OverflowError, of_ints, [[0, 128], [-129, 0]])
    by_key = partial(m.make_count_by_categories, *INTS)
    yield Refused("categories", OverflowError, by_key, [[1, 128], [1, -129]])
    for make in (
        partial(m.make_count_by_categories, *WORDS, ["a"]),
        partial(m.make_count_by_bins, *FLOATS, [0.0, 1.0]),
    ):
        yield Refused("null_category", TypeError, make, [None, 1, 0, "yes", np.True_])


def bad_numbers() -> Iterator[Refused]:
    for names, call, out_of_range in NUMBERS:
        name = names.split("|")[0]
        yield Refused(name, TypeError, call, NOT_NUMBERS, shown=True)
        yield Refused(name, ValueError, call, out_of_range, shown=True)
    for names, call, least in INTEGERS:
        name = names.split("|")[0]
        others = [x for x in NOT_INTEGERS if x is not None or call != OPTIONAL]
        yield Refused(name, TypeError, call, others, shown=True)
        if least is not None:
            small = [least - 1, -(2**70), np.int8(-5)]
            yield Refused(name, ValueError, call, small, shown=True)

    def trials(x: Any) -> Any:
        return sample_geometric(0.5, trials=x)

    yield Refused("trials", TypeError, trials, [x for x in NOT_INTEGERS if x is not None])
    yield Refused("trials", ValueError, trials, [0, -1, np.int8(-5)])
    yield Refused("trials", OverflowError, trials, [2**63, 10**400])
    yield Refused("trials", ValueError, sample_geometric, [0])  # It would take for ever.
    # With what would be accepted.
    wrong: list[Any] = [-1, 0, -math.inf, math.nan]
    for name, call, accepted in [
        ("epsilon", GeometricMechanism, "a finite number above 0"),
        ("alpha", lambda x: accuracy.scale_to_accuracy(1, x), "a number above 0 and at most 1"),
        ("prob", lambda x: sample_bernoulli(x - 1), "a float64 number from 0 to 1"),
    ]:
        yield Refused(name, ValueError, call, wrong, f": give {accepted}$")
    for error, values in [(ValueError, wrong[:2]), (TypeError, wrong[2:])]:
        hint = ": give an int of at least 1$"
        yield Refused("sensitivity", error, partial(GeometricMechanism, 1), values, hint)


def bad_bounds() -> Iterator[Refused]:
    limits = {T: (int(np.iinfo(T).min), int(np.iinfo(T).max)) for T in DTYPES}
    for call, needed, any_dtype in PAIRS:
        yield Refused("bounds", TypeError, call, NOT_PAIRS + [None] * needed, shown=True)
        wrong = [pair for x in NOT_INTEGERS for pair in ((x, 5), (0, x))]
        hint = "bounds of type tuple with .* is not accepted: give a pair"
        yield Refused("bounds", TypeError, call, wrong, hint)
        reversed_: list[Any] = [
            pair
            for least, greatest in (limits.values() if any_dtype else [limits["int32"]])
            for pair in ((greatest, least), (greatest, greatest - 1), (least + 1, least))
        ]
        yield Refused("bounds", ValueError, call, [(1, 0), *reversed_], shown=True)
        beyond = BEYOND if any_dtype else BEYOND_INT32
        yield Refused("bounds", OverflowError, call, beyond, shown=True)

    most = 2**32
    for call, far in (
        (lambda x: SUMS.sum(PEOPLE, "who", bounds=x), [(1, 5), (-5, -1), (0, 0)]),
        (lambda x: SUMS.sum_and_count(PEOPLE, "who", bounds=x), [(5, 5)]),
    ):
        hint = r": give two ints \(lower, upper\) from -4294967296 to 4294967296, the lower"
        pairs: list[Any] = [5, None, "ab", {1, 2}, {1: 2, 3: 4}, np.array([1, 2]), range(2)]
        yield Refused("bounds", TypeError, call, pairs, hint)
        yield Refused("bounds", ValueError, call, [(), (1,), (1, 2, 3)], hint)
        wrong = [pair for x in NOT_INTEGERS for pair in ((x, 5), (0, x))]
        yield Refused("bounds", TypeError, call, wrong, hint)
        far += [(9, 0), (0, most + 1), (-most - 1, 0), (0, 10**400)]
        yield Refused("bounds", ValueError, call, far, hint)
    no_paths: list[Any] = ["a.csv", Path("a.csv"), 5, (1, 2), ("a.csv", "b.csv")]
    same: list[Any] = [{}, {"sums": "a.csv"}, {"a.csv": "b.csv"}]
    hint = r"give (a mapping with )?a path for each of \['sums', 'counts'\]"
    for save in (lambda x: PAIR.release(epsilon=1, save=x), PAIR.release(epsilon=1).save):
        yield Refused("save|path", TypeError, save, no_paths, hint)
        yield Refused("save|path", ValueError, save, same, hint)

    def of_smartnoise(pair: Any) -> Any:
        return smartnoise(5, 1.0, 1, *pair)

    for pair in ((1, 0), (2**64 - 1, -5), (np.int8(3), 2)):
        hint = f"min = {pair[0]} .* max = {pair[1]}"
        yield Refused("min", ValueError, of_smartnoise, [pair], hint)
    for pair in ((0, 2**63), (-1, 2**64), (-(2**200), 2**200)):
        yield Refused("bounds", OverflowError, of_smartnoise, [pair], re.escape(str(pair)))


def bad_mechanisms() -> Iterator[Refused]:
    hint = r"^mechanism has type .*: give a"
    for call in WITH_MECHANISM:
        wrong: list[Any] = [1.0, "mechanism", GeometricMechanism]
        yield Refused("mechanism", TypeError, call, wrong, hint)


def bad_counts() -> Iterator[Refused]:
    beyond = [
        [np.uint64(2**63)],
        *(
            y
            for x in (2**63, -(2**63) - 1, 2**300)
            for y in (x, [1, x], [[1], [x]], range(x, x + 1))
        ),
    ]
    for name, call in COUNTED.items():
        yield Refused("counts|arg|masked", TypeError, call, NOT_COUNTS)
        if name not in NO_INT64:
            yield Refused("int64", OverflowError, call, beyond)
    fix = r"such as counts\.astype\(np\.int64\)"
    yield Refused("counts", TypeError, SMALL.release, [np.ones(3)], fix)
    fix = f"give counts from {-(2**63)} to {2**63 - 1} "
    yield Refused("counts", OverflowError, SMALL.release, [2**63], fix)


def bad_labelled() -> Iterator[Refused]:
    def interval(x: Any) -> Any:
        return BOUNDED.confidence_interval(x, 0.05)

    for call in (BOUNDED.release, interval):
        yield Refused("nulls", ValueError, call, [pd.Series([1, None], dtype="Int64")])
        yield Refused("dtype", TypeError, call, [pd.Index(["a"])])
        yield Refused("float64", TypeError, call, [pd.Index([1.5])])
        yield Refused("float", TypeError, call, [{"a": 1.0}])
        yield Refused("int64", OverflowError, call, [{"a": 2**63}])
    frame = pd.DataFrame(
        {"year": [2024, 2024, 2025, 2025], "sick": ["yes", "no"] * 2, "n": [3, 20, 0, 7]}
    )
    pivot = frame.pivot(index="year", columns="sick", values="n")[["yes", "no"]]
    of_three = "rows are not all combinations of its first 3 columns"
    yield Refused(of_three, ValueError, interval, [frame.assign(more=1)])
    part = frame.iloc[[1, 0, 2]].reset_index(drop=True)
    yield Refused("combinations", ValueError, interval, [part])
    floats = [frame[["n"]].astype(float), pivot.astype(float)]
    yield Refused("float64", TypeError, interval, floats)
    no_number = pivot.astype("Int64").where(pivot > 0)
    yield Refused("nulls", ValueError, interval, [no_number], r"\['yes'\] contains nulls")
    yield Refused("without columns", ValueError, interval, [pd.DataFrame()])


def bad_nests() -> Iterator[Refused]:
    """Lists that contain themselves."""
    one: list[Any] = [1]
    one.append(one)
    twice: list[Any] = []
    twice += [twice, twice]
    for name, call in [
        ("counts", SMALL.release),
        ("counts", lambda x: SMALL.tiers(x, [0.5])),
        ("epsilons", lambda x: SMALL.tiers(1, x)),
        ("counts", vector),
        ("epsilon", lambda x: accuracy.epsilon_to_accuracy(x, 0.1)),
        ("categories", lambda x: m.make_count_by_categories(*INTS, x)),
    ]:
        yield Refused(name, TypeError, call, [one, twice, [1, (2, twice)]])


def bad_trees() -> Iterator[Refused]:
    from_paths, from_prefixes = tables.Hierarchy.from_paths, tables.Hierarchy.from_prefixes
    from_columns, tree = (
        partial(tables.Hierarchy.from_columns, PEOPLE),
        tables.Hierarchy({"a": None}),
    )
    no_text = [None, 7, b"x", ["x"]]
    calls: list[tuple[str, Callable[[Any], Any], list[Any], list[Any]]] = [
        (
            "paths",
            from_paths,
            [None, 7, "a/b", [7], [None]],
            [[], [()], [""], ["a//b"], ["a", "b"]],
        ),
        ("separator", lambda x: from_paths(["a"], separator=x), no_text, ["", "\ud800"]),
        (
            "labels",
            lambda x: from_paths(["a/b"], labels=x),
            [7, "a", ["a"]],
            [{"c": "x"}, {7: "x"}],
        ),
        ("label", lambda x: from_paths(["a/b"], labels={"a": x}), no_text, ["", "\ud800"]),
        ("root", lambda x: from_paths(["a", "b"], root=x), [[1], {}], [None, "", "a", math.nan]),
        ("codes", lambda x: from_prefixes(x, (1, 2)), [None, 7, "ab", [7], [None]], [[]]),
        ("code", lambda x: from_prefixes(x, (1, 2)), [], [["abc"], [""]]),
        ("lengths", lambda x: from_prefixes(["ab"], x), [None, 2, "2", [], [1.5]], [[2, 1], [0]]),
        ("columns", from_columns, [None, 7, "town", []], []),
        ("columns", lambda x: tables.Design({x: tree}), [], [(), ("a", "b"), ("a",)]),
        (
            "combinations of",
            lambda x: tables.Design({("town", "who"): x}),
            [None, 7, "ab", b"ab", {}, {("a", 1): 1}, ["ab"], [7], [("a", 1), None]],
            [[], [()], [("a",)], [("a", 1), ("b", 1, 2)], [("a", 1)] * 2, [("a", None)]],
        ),
        (
            "levels of '(?:town|who)",
            lambda x: tables.Design({("town", "who"): x}),
            [],
            [[("a", 1), (2, 2)], [("a", True), ("b", 1)], [("a", [1])], [("\ud800", 1)]],
        ),
        (
            "columns?",
            lambda x: tables.Design({x: [("a", 1)]}),
            [("town", 7), ("town", None)],
            [(), ("town",), ("town", "town")],
        ),
        ("leaves_only", lambda x: from_paths(["a"], leaves_only=x), [None, 1, "yes"], []),
    ]
    for name, call, types, values in calls:
        yield Refused(name, TypeError, call, types)
        yield Refused(name, ValueError, call, values)


def bad_statements() -> Iterator[Refused]:
    """Return what a design does not take as a statement about its records or individuals."""
    design, noisy = partial(tables.Design, TWO_LEVELS), NOISY_TOWNS.with_complete
    opened = partial(tables.streams.Stream.open, "a.jsonl", 4, 1)
    with_other = partial(tables.Design, TWO_LEVELS, other={"town": "c"})
    for call in (lambda x: design(unit=x), lambda x: opened(unit=x)):
        yield Refused("unit", ValueError, call, ["", "\ud800"])
        yield Refused("unit", TypeError, call, [7, b"x", ["x"], True])
    for name, call in (
        ("summed", lambda x: design(values=(0, 9), summed=x)),
        ("having", lambda x: design(having=x)),
    ):
        yield Refused(name, ValueError, call, ["\ud800"])
        yield Refused(name, TypeError, call, [7, b"x", ["x"], True])
    yield Refused("summed", ValueError, lambda x: design(summed=x), ["x"])
    for name, call in (("complete", lambda x: design(complete=x)), ("columns", noisy)):
        yield Refused(name, TypeError, call, [None, 7, {}, [7]])
        yield Refused(name, KeyError, call, ["nowhere", ("town", "nowhere")])
    yield Refused("complete", ValueError, lambda x: with_other(complete=x), ["town", ("town",)])


def bad_abouts() -> Iterator[Refused]:
    table = tables.count(PEOPLE["town"], ["a", "b"])

    def about(x: Any) -> Any:
        return table.release(epsilon=1, about=x)

    def title(x: Any) -> Any:
        return table.top(1, epsilon=1, about={"title": x})

    keys = "title, description, source, period, publisher, contact or licence"
    yield Refused("about", TypeError, about, [7, "x", ["title"], [("title", "x")]], keys)
    yield Refused("about", ValueError, about, [{"titel": "x"}, {"Title": "x"}, {7: "x"}], keys)
    yield Refused("about", TypeError, title, [None, 7, b"x", ["x"], {}])
    yield Refused("about", ValueError, title, ["", " \n", "\ud800", "a\x00", "\x1b[2J", "a\rb"])


def bad_groups() -> Iterator[Refused]:
    """Of a budget: groups that overlap by declaration, and those that it does not have."""
    budget = accounting.Budget(1, groups=["a", "b"])

    def make(groups: Any) -> Any:
        return accounting.Budget(1, groups=groups)

    def group(names: Any) -> Any:
        return budget.group(*names)

    yield Refused("groups", TypeError, make, ["ab", b"ab", None, 1, [1], [None], [["a"]], [b"a"]])
    yield Refused("groups", ValueError, make, [["a", "b", "a"], ("b", "b")], "groups are disjoint")
    yield Refused("groups", ValueError, make, [[""]], "not empty")
    for odd in ("\ud800", "\x1b[2J", "\x9b2J", "\0"):
        yield Refused("groups", ValueError, make, [[odd]], "text in UTF-8 without control chara")
    yield Refused("group", TypeError, group, [[1], [None], [("a", "b")], []])
    yield Refused("group", ValueError, group, [["c"], ["A"], ["a "], ["a", "c"]], "such as 'a'")
    yield Refused("group", ValueError, group, [["a", "a"]], "groups are disjoint")
    yield Refused("group", ValueError, budget.group("a").group, ["b"], "such as 'a'")
    yield Refused("groups", ValueError, accounting.Budget(1).group, ["a"], "has no groups")


def bad_questions() -> Iterator[Refused]:
    """Of a noisy table and of a function of counts."""
    number, diversity = NOISY_TOWNS.number_of_cells, NOISY_TOWNS.diversity
    for name, beyond in (("at_least", [0, -1, 2**53, 10**400]), ("at_most", [-1, 2**52, 10**400])):
        call = lambda x, name=name: number(**{name: x})  # noqa: E731
        yield Refused(name, TypeError, call, NOT_INTEGERS)
        yield Refused(name, ValueError, call, beyond, f"{name} = .* an int from", shown=True)
    yield Refused("index", ValueError, diversity, ["gini", "", "Entropy"])
    for error, labels in ((KeyError, ["city", ""]), (TypeError, [None, 7, ["town", 7], {"town"}])):
        yield Refused("by", error, lambda x: number(at_most=0, by=x), labels)
    no_functions: list[Any] = [None, 7, "square", [1]]
    yield Refused("function", TypeError, lambda x: accuracy.unbiased(x, SMALL), no_functions)
    others: list[Any] = [lambda y: 1, lambda y: y[:-1], lambda y: y * 1j, lambda y: y.astype(str)]
    yield Refused("function", TypeError, lambda x: accuracy.unbiased(x, SMALL), others)
    grown: list[Any] = [np.exp, np.reciprocal, np.log, np.sqrt]
    yield Refused("function", ValueError, lambda x: accuracy.unbiased(x, SMALL), grown)
    yield Refused("function", ValueError, lambda x: accuracy.unbiased(x, BOUNDED), grown[1:3])
    several: list[Any] = [[SMALL, SMALL], (SMALL,)]
    one = partial(accuracy.unbiased, np.square)
    yield Refused("mechanism", TypeError, one, several, "several noisy columns")


REFUSED = [
    *(*bad_numbers(), *bad_bounds(), *bad_mechanisms(), *bad_counts(), *bad_labelled()),
    *(*bad_nests(), *bad_types(), *bad_pairings(), *bad_parameters(), *bad_distances()),
    *bad_statements(),
    *(*bad_data(), *bad_keys(), *bad_trees(), *bad_groups(), *bad_abouts(), *bad_questions()),
]


# Limits


def saved(end: str, release: Callable[[Path], Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        release(Path(folder, f"a{end}"))


#: As many words as a table may have cells, but for a few bits; and words with a list.
WIDEST = tables.Words("abcdefghijklmnop", 265)
GROUPS = tables.count(PEOPLE["town"], ["a"]).release(epsilon=1, at_least=9)
COMMON = tables.Design({"town": tables.Words("ab", 9, common=["a"])})


def with_cells(n: int) -> tables.Table:
    """Return a table of so many cells, of a multiple of 10^8, which takes no memory."""
    wide = {"town": range(10**4), "who": range(10**4), "n": range(n // 10**8)}
    return tables.Design({label: [*levels] for label, levels in wide.items()}).count(
        PEOPLE.assign(town=1, n=0)
    )


def with_depths(n: int) -> tables.Design:
    """Return a design whose depths multiply to 2^n."""
    labels = [f"c{place}" for place in range(n)]
    return tables.Design({label: ["a"] for label in labels}, margins=dict.fromkeys(labels, "all"))


TOWNS = tables.Design({"town": ["a", "b"]})
TINY, ABOVE_1, BELOW_1 = 5e-324, 1 + 2**-52, 1 - 2**-53
UNIT = [0, TINY, BELOW_1, 1], [-TINY, ABOVE_1]
OPEN = [TINY, BELOW_1, 1], [0, -TINY, ABOVE_1]
MOST_SUM, MOST_BITS = 2**32, 14_000
SUM_BOUNDS = (
    [(0, MOST_SUM), (-MOST_SUM, 0), (-MOST_SUM, MOST_SUM)],
    [(0, MOST_SUM + 1), (-MOST_SUM - 1, 0)],
)
BILLION = [10**9], [10**9 + 1]

LIMITS = [
    *(
        Limit(names, call, [least], [least - 1])
        for names, call, least in INTEGERS
        if least is not None
    ),
    *(
        Limit(
            "bounds",
            call,
            [(-(2**bits), 2**bits - 1)],
            [(0, 2 ** (bits + any_dtype)), (-(2**bits) - 1, 0)],
            OverflowError,
        )
        for call, _, any_dtype in PAIRS
        for bits in [63 if any_dtype else 31]
    ),
    Limit("bounds", lambda x: GeometricMechanism(1, bounds=x), [(0, 2**64 - 1)], []),
    # Probabilities and parts
    Limit("prob", sample_bernoulli, *UNIT),
    Limit("delta", lambda x: accounting.compose([1], x), *UNIT),
    Limit("delta", partial(scalar.map_approx, 1), *UNIT),
    Limit("delta", lambda x: accounting.split(1, 3, x), [0, BELOW_1], [-TINY, 1]),
    Limit("alpha", lambda x: accuracy.scale_to_accuracy(1, x), *OPEN),
    Limit("alpha", BOUNDED.accuracy, *UNIT),
    Limit("share", lambda x: PAIR.release(epsilon=1, share=x), [2**-20, 1 - 2**-20], [0, 1]),
    # How many
    Limit(
        "n", lambda x: accounting.split(1, x), *BILLION, of="accounting/_compose.py:MOST_RELEASES"
    ),
    Limit("releases", lambda x: accounting.compose({1: x}), *BILLION),
    Limit("releases", lambda x: accounting.compose_delta({"1e-9": x}, 2), *BILLION),
    Limit("noisy counts", lambda x: accounting.loss_distribution(SMALL) * x, *BILLION),
    Limit("linf", lambda x: accounting.loss_distribution(SMALL, linf=x), [1, 4096], [4097]),
    Limit("trials", lambda x: sample_geometric(1, trials=x), [1], [0]),
    Limit(
        "trials",
        lambda x: sample_geometric(1, trials=x),
        *([2**63 - 1], [2**63], OverflowError, "samplers.py:_MAX_TRIALS"),
    ),
    Limit("threads", lambda x: SMALL.release([1], threads=x), [1, 2**70], [0]),
    Limit(
        "k", lambda x: tables.count(PEOPLE["town"], ["a", "b"]).top(x, epsilon=1), [1, 2], [0, 3]
    ),
    Limit(
        "limits",
        lambda x: tables.choose_limit(VISITS, PEOPLE, "l0", epsilon=1, limits=[x]),
        [1, 2],
        [0, 3],
    ),
    Limit(
        "horizon",
        lambda x: saved(".jsonl", partial(Stream.open, horizon=x, epsilon=1)),
        *([1, 10**5], [0, 10**5 + 1]),
        of="tables/streams/_stream.py:LONGEST",
    ),
    # Numbers
    Limit(
        "epsilon",
        GeometricMechanism,
        *(
            [2**MOST_BITS - 1, Fraction(1, 2**MOST_BITS - 1)],
            [2**MOST_BITS, Fraction(1, 2**MOST_BITS)],
        ),
        *(OverflowError, "_ground/parameters.py:_MOST_BITS"),
    ),
    Limit(
        "counts",
        SMALL.release,
        *([2**63 - 1, -(2**63)], [2**63, -(2**63) - 1], OverflowError),
    ),
    Limit(
        "counts",
        lambda x: SMALL.release(reduce(lambda inner, _: [inner], range(x), 1)),
        *([64], [65], TypeError, "_inputs/arrays.py:_DEEPEST"),
    ),
    Limit(
        "levels",
        lambda x: tables.count(pd.Series([1]), [x]),
        *([2**63 - 1, -(2**63)], [2**63, -(2**63) - 1]),
    ),
    Limit(
        "at_least",
        lambda x: NOISY_TOWNS.number_of_cells(at_least=x),
        *([1, 2**52], [0, 2**52 + 1]),
    ),
    Limit(
        "at_most",
        lambda x: NOISY_TOWNS.number_of_cells(at_most=x),
        *([0, 2**52 - 1], [-1, 2**52]),
    ),
    Limit(
        "counts",
        accuracy.unbiased(np.square, SMALL),
        *([2**53 - 1, 1 - 2**53], [2**53, -(2**53)], OverflowError),
        of="_numerics/inverse.py:_EXACT",
    ),
    Limit(
        "totals",
        NOISY_TOWNS.with_totals,
        *([0, 2**62], [-1, 2**62 + 1]),
        of="tables/_answers/public_totals.py:MOST",
    ),
    Limit(
        "rounded",
        lambda x: saved(
            ".csv", lambda path: TOWNS.count(PEOPLE).release(epsilon=1, save=path, rounded=x)
        ),
        *([2, 2**31], [1, 2**31 + 1]),
        of="tables/_facts/rounding.py:MOST",
    ),
    Limit(
        "rounded",
        lambda x: saved(".csv", partial(NOISY_TOWNS.save, rounded=x)),
        *([2, 2**31], [1, 2**31 + 1]),
    ),
    *(
        Limit("bounds", call, *SUM_BOUNDS, of="tables/_facts/layout.py:MOST_VALUE")
        for call in (
            lambda x: SUMS.sum(PEOPLE, "who", bounds=x),
            lambda x: SUMS.sum_and_count(PEOPLE, "who", bounds=x),
        )
    ),
    Limit(
        "values",
        lambda x: tables.Design({"town": ["a"]}, individual="who", l1=x).sum(PEOPLE, "who"),
        *([1, MOST_SUM], [MOST_SUM + 1]),
    ),
    # Tables
    Limit(
        "depths",
        lambda x: tables.Hierarchy.from_paths(["/".join(map(str, range(x)))]),
        *([100], [101]),
    ),
    Limit("depths", with_depths, [12], [13], of="tables/_facts/layout.py:_MOST_BLOCKS"),
    Limit(
        "rows",
        lambda x: saved(
            ".html",
            lambda path: tables.count(pd.Series([0]), [*range(x)]).release(epsilon=1, save=path),
        ),
        *([20_000], [20_001]),
        of="tables/_publish/described.py:MOST_ROWS",
    ),
    # At these limits, memory or time for noise are those of a large machine.
    Limit(
        "cells",
        lambda x: with_cells(x).release(epsilon=1),
        [],
        [10**12],
        of="tables/_facts/exact_sums.py:_MOST_CELLS",
    ),
    Limit(
        "cells",
        lambda x: with_cells(x).top(1, epsilon=1),
        *([], [10**12 + 10**8]),
        of="tables/_release/top.py:_MOST_CELLS",
    ),
    Limit(
        "cells",
        lambda x: tables.Design({"town": WIDEST, "who": range(x)}).count(PEOPLE),
        *([2**39], [2**40]),
        of="tables/_facts/exact_sums.py:MOST_BITS",
    ),
    Limit(
        "range",
        lambda x: tables.Design({"who": range(x - 2**30, x)}),
        *([2**63], [2**63 + 1]),
        of="tables/_facts/rules.py:_GREATEST",
    ),
    Limit(
        "range",
        lambda x: tables.Design({"who": range(x, x + 2**30)}),
        *([-(2**63)], [-(2**63) - 1]),
        of="tables/_facts/rules.py:_LEAST",
    ),
    Limit(
        "longest",
        lambda x: tables.Words("ab", x),
        *([1, 1099], [0, 1100, 10**9]),
        of="tables/_facts/rules.py:MOST_BITS",
    ),
    Limit(
        "at_least",
        lambda x: with_cells(10**9).release(epsilon=1, at_least=x),
        *([99], [1]),
        of="tables/_release/steps.py:_MOST_EMPTY",
    ),
    Limit(
        "people",
        lambda x: with_cells(10**9).release(epsilon=1, at_least=99, people=x),
        *([9], [2**27 + 1]),
        of="tables/_release/steps.py:_MOST_PADDED",
    ),
    Limit(
        "at_least",
        lambda x: COMMON.spurious(1, (9, x)),
        *([2**63 - 1], [0, 2**63]),
        of="tables/_facts/classes.py:_MOST",
    ),
    Limit(
        "rate",
        lambda x: TOWNS.count(PEOPLE).release(
            GeometricMechanism(Fraction(x, 10**9), 10**3), at_least=10**7
        ),
        *([10**4], [9999]),
        of="_numerics/scatter.py:_LEAST",
    ),
]
#: Constants in refusals of what is no parameter: in files, pictures, and noisy counts.
OTHER_LIMITS = {
    *(f"tables/_publish/formats.py:{name}" for name in ("LONGEST_ROW", "_MOST_COLUMNS")),
    *(f"tables/_publish/published.py:{what}" for what in ("_MOST_ROWS", "_MOST_TEXT")),
    *("tables/_publish/published.py:MOST_VALUES", "tables/_publish/footer.py:_DEEPEST"),
    *(f"tables/_reading/table_file.py:{name}" for name in ("_LONGEST", "_MOST_BITS", "MOST")),
    *("tables/_results/noisy_table.py:GREATEST", "tables/_answers/consistency.py:GREATEST"),
    *("tables/_pictures/charts.py:STEPS", "tables/streams/_nodes.py:LONGEST"),
    *("tables/_results/noisy_table.py:MOST", "tables/_facts/layout.py:_MOST_COLUMNS"),
}
#: Names of parameters, and calls with any value for them.
CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("prob|trials", lambda x: sample_geometric(x, 3)),
    ("trials", lambda x: sample_geometric(0.5, 3, x)),
    ("alpha", BOUNDED.accuracy),
    ("alpha", lambda x: accuracy.scale_to_accuracy(1, x)),
    ("scale", lambda x: accuracy.scale_to_accuracy(x, 0.05)),
    ("scale", lambda x: accuracy.scale_to_accuracy(x, 0.05, method="continuous")),
    ("accuracy", lambda x: accuracy.accuracy_to_scale(x, 0.05)),
    ("accuracy", lambda x: accuracy.accuracy_to_epsilon(x, 0.05, method="ceiling")),
    ("epsilon", lambda x: accuracy.epsilon_to_accuracy(x, 0.05)),
    ("sensitivity", lambda x: accuracy.accuracy_to_epsilon(3, 0.05, sensitivity=x)),
    ("scale", lambda x: opendp_accuracy.discrete_laplacian_scale_to_accuracy(x, 0.05)),
    ("accuracy", lambda x: opendp_accuracy.accuracy_to_discrete_laplacian_scale(x, 0.05)),
    ("n", lambda x: accuracy.simultaneous_accuracy(BOUNDED, 0.05, n=x) if x is not None else 0),
    ("n", lambda x: accuracy.scale_to_accuracy(1, 0.05, n=x)),
    ("weights", lambda x: accuracy.sum_confidence_interval(BOUNDED, [4, 5, 6], 0.05, weights=x)),
    ("ratio", lambda x: accuracy.relative_accuracy(0.5, 0.05, ratio=x)),
    ("denominator|counts", lambda x: accuracy.ratio_confidence_interval(BOUNDED, 3, x, 0.05)),
    ("side", lambda x: BOUNDED.confidence_interval(3, 0.05, side=x)),
    ("distribution", lambda x: accuracy.bias(BOUNDED, 3, distribution=x)),
    ("center|centers|count", lambda x: CensoredGeometric(x, 1, (0, 9)).mean()),
    ("q", NOISE.ppf),
    ("q", CENSORED.isf),
    ("confidence", NOISE.interval),
    ("k", NOISE.cdf),
    ("k", CENSORED.logpmf),
    ("epsilon|scale", lambda x: diffprivlib.Geometric(epsilon=x).randomise(3)),
    ("sensitivity|scale", lambda x: diffprivlib.Geometric(epsilon=1, sensitivity=x).randomise(3)),
    ("random_state", lambda x: diffprivlib.Geometric(epsilon=1, random_state=x)),
    ("lower|bounds", lambda x: diffprivlib.GeometricTruncated(epsilon=1, lower=x, upper=9)),
    ("upper|bounds", lambda x: diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=x)),
    ("scale", lambda x: m.make_geometric(m.AllDomain("i8"), m.AbsoluteDistance("i8"), x)),
    ("T", m.AllDomain),
    ("categories", lambda x: m.make_count_by_categories(*INTS, x)),
    ("edges", lambda x: m.make_count_by_bins(*INTS, x)),
    ("TO", lambda x: m.make_count(*INTS, x)),
    ("bounds", lambda x: m.make_sum(*INTS, x)),
    ("bounds", lambda x: m.make_sum(*INTS, (x, 9))),
    ("measurements", m.make_composition),
    ("delta", lambda x: m.make_base_geometric(1).map_approx(1, x)),
    ("dtype", BOUNDED.certificate),
    ("tight", lambda x: BOUNDED.certificate(tight=x)),
    ("threads", lambda x: BOUNDED.release([1], threads=x)),
    ("nulls", lambda x: BOUNDED.release(pd.Series([1]), nulls=x)),
    ("alpha", lambda x: BOUNDED.confidence_interval(3, x)),
    ("alpha", lambda x: accuracy.epsilon_to_accuracy(1, x)),
    ("accuracy", lambda x: accuracy.accuracy_to_epsilon(x, 0.2)),
    ("method", lambda x: accuracy.scale_to_accuracy(1, 0.1, method=x)),
    ("epsilon", accounting.Budget),
    ("delta", lambda x: accounting.Budget(1, x)),
    ("label", lambda x: accounting.Budget(1).spend(BOUNDED, label=x)),
    ("d_in|costs", lambda x: accounting.Budget(1).spend(BOUNDED, x)),
    ("counts", lambda x: accounting.Budget(1).release(BOUNDED, x)),
    ("groups", lambda x: accounting.Budget(1, groups=x)),
    ("group", lambda x: accounting.Budget(1, groups=["a"]).group(x)),
    ("releases|noisy counts", lambda x: accounting.loss_distribution(BOUNDED) * x),
    ("l0|noisy counts", lambda x: accounting.loss_distribution(BOUNDED, l0=x)),
    ("linf", lambda x: accounting.loss_distribution(BOUNDED, linf=x)),
    ("l0", lambda x: tables.bound_contributions(PEOPLE, "who", l0=x)),
    ("column|individual", lambda x: tables.bound_contributions(PEOPLE, x, l0=1)),
    (
        "individual|column",
        lambda x: tables.Design({"town": ["a"]}, individual=x, l0=1).count(PEOPLE),
    ),
    ("column", lambda x: tables.bound_contributions(PEOPLE, "who", l0=1, cells=[x])),
    ("bounds", lambda x: SUMS.sum(PEOPLE, "who", bounds=x)),
    ("bounds", lambda x: SUMS.sum_and_count(PEOPLE, "who", bounds=(0, x))),
    ("share", lambda x: PAIR.release(epsilon=1, share=x)),
    ("save", lambda x: PAIR.release(epsilon=1, save=(x, "b.csv"))),
    ("limit", lambda x: tables.choose_limit(VISITS, PEOPLE, x, epsilon=1)),
    ("share", lambda x: tables.choose_limit(VISITS, PEOPLE, "l0", epsilon=1, share=x)),
    ("limits", lambda x: tables.choose_limit(VISITS, PEOPLE, "l0", epsilon=1, limits=x)),
    ("epsilon|scale", lambda x: tables.choose_limit(VISITS, PEOPLE, "l0", epsilon=x)),
    ("label", lambda x: tables.choose_limit(VISITS, PEOPLE, "l0", epsilon=1, label=x)),
    ("column", lambda x: tables.choose_limit(VISITS, PEOPLE, "bounds", epsilon=1, column=x)),
    ("column|unhashable|hash", lambda x: tables.count(PEOPLE, {"town": ["a"]}, other={x: "else"})),
    ("name", lambda x: tables.count(PEOPLE, {"town": ["a"]}, name=x)),
    ("complete", lambda x: tables.Design(TWO_LEVELS, complete=x)),
    ("unit", lambda x: tables.Design(TWO_LEVELS, unit=x)),
    ("summed", lambda x: tables.Design(TWO_LEVELS, values=(0, 9), summed=x)),
    ("having", lambda x: tables.Design(TWO_LEVELS, having=x)),
    ("columns", NOISY_TOWNS.with_complete),
    ("other", lambda x: tables.count(PEOPLE, {"town": ["a"]}, other=[x])),
    ("margins|column", lambda x: tables.count(PEOPLE, {"who": [1]}, margins=x)),
    (
        "rest",
        lambda x: tables.count(PEOPLE["town"], ["a"]).release(epsilon=1, at_least=9, rest=x),
    ),
    ("about", lambda x: tables.count(PEOPLE["town"], ["a"]).release(epsilon=1, about=x)),
    (
        "about",
        lambda x: tables.count(PEOPLE["town"], ["a"]).release(epsilon=1, about={"title": x}),
    ),
    ("levels", lambda x: tables.count(PEOPLE, {"town": x})),
    ("combinations|levels|columns", lambda x: tables.Design({("town", "who"): x})),
    ("combinations|levels|columns", lambda x: tables.Design({("town", "who"): [x]})),
    ("combinations|levels|columns", lambda x: tables.Design({("town", "who"): [("a", x)]})),
    ("alphabet", lambda x: tables.Words(x, 3)),
    ("longest", lambda x: tables.Words("ab", x)),
    ("shortest", lambda x: tables.Words("ab", 3, shortest=x)),
    ("common", lambda x: tables.Words("ab", 3, common=x)),
    ("at_least", lambda x: COMMON.count(PEOPLE).release(epsilon=1, at_least=x)),
    ("at_least", lambda x: COMMON.spurious(1, (9, x))),
    ("rest", lambda x: COMMON.threshold(1, rest=x)),
    ("paths?|nodes", tables.Hierarchy.from_paths),
    ("codes?|nodes", lambda x: tables.Hierarchy.from_prefixes(x, (1, 2))),
    ("root|nodes", lambda x: tables.Hierarchy.from_paths(["a", "b"], root=x)),
    ("labels?", lambda x: tables.Hierarchy.from_paths(["a", "b"], root="c", labels=x)),
    ("separator", lambda x: tables.Hierarchy.from_paths(["a"], separator=x)),
    ("tables|column|unhashable", lambda x: tables.Design(TWO_LEVELS, tables=x)),
    ("tables|column|unhashable", lambda x: tables.Design(TWO_LEVELS, tables=[x])),
    ("tables|column|unhashable", lambda x: tables.Design(TWO_LEVELS, tables=[("town", x)])),
    ("tables", lambda x: tables.Design(TWO_LEVELS, tables={"town": x, "who": 1})),
    ("totals", NOISY_TOWNS.with_totals),
    ("totals", GROUPS.with_totals),
    ("total", GROUPS.left_out),
    ("alpha", GROUPS.most_left_out),
    ("earlier", lambda x: GROUPS.change_since(x, "town")),
    (
        "totals",
        lambda x: NOISY_TOWNS.with_totals(pd.DataFrame({"town": ["a"], "n": [x]}, dtype=object)),
    ),
    ("other", NOISY_TOWNS.combine),
    ("people", lambda x: with_cells(10**8).release(epsilon=1, at_least=99, people=x)),
    ("at_least", lambda x: NOISY_TOWNS.number_of_cells(at_least=x)),
    ("at_most", lambda x: NOISY_TOWNS.number_of_cells(at_most=x)),
    ("index", NOISY_TOWNS.diversity),
    ("function", lambda x: accuracy.unbiased(x, SMALL)),
    ("name", lambda x: ReleaseKey().release(BOUNDED, [1], IDS, name=x)),
    ("part", lambda x: ReleaseKey().release(BOUNDED, [1], IDS, name="n", part=x)),
    *((names, call) for names, call, _ in NUMBERS),
    *((names, call) for names, call, _ in INTEGERS),
    *(("bounds", call) for call, *_ in PAIRS),
]


def of_answers() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield each parameter of each method of what is released, and a call that gives it a value."""
    table = tables.Design({"town": ["a", "b"], "who": [1, 2]}).count(PEOPLE)
    noisy, other = (table.release(epsilon=1) for _ in range(2))
    known: dict[str, Any] = {
        **{"by": "who", "column": "who", "q": 0.5, "population": 9, "index": "entropy", "k": 1},
        **{"one": {"town": "a"}, "other": {"town": "a"}, "earlier": other, "totals": 2},
        "path": Path("no folder", "a.csv"),
    }
    kinds = (
        *(noisy, noisy.combine(other), noisy.plus(other), table.top(1, epsilon=1)),
        *(table.release(epsilon=1, at_least=1), table.release(tiers={"a": "0.1", "b": 1})),
    )
    for of in kinds:
        for method, function in inspect.getmembers(type(of), inspect.isfunction):
            if method.startswith("_"):
                continue
            given = known | ({"other": other} if method in ("per", "plus", "combine") else {})
            _, *wanted = inspect.signature(function).parameters.values()
            needed = [x.name for x in wanted if x.default is x.empty and x.name in given]
            args = {x: given[x] for x in needed}
            if method == "number_of_cells":
                args["at_most"] = 0
            for each in wanted:
                if each.kind is each.VAR_POSITIONAL:
                    yield each.name, partial(getattr(of, method), *args.values())
                else:
                    ask = partial(_with, getattr(of, method), args, each.name)
                    yield f"{method} {each.name}", ask


def _with(call: Callable[..., Any], known: dict[str, Any], name: str, value: Any) -> Any:
    return call(**known | {name: value})


#: Each parameter of each answer.
ANSWERS = [*of_answers()]
