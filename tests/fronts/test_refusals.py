"""What every call refuses, from the table of ``calls.py``, and what holds for every refusal."""

import ast
import collections
import itertools
import math
import re
import traceback
from array import array
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from scipy import sparse

import geomdp
import geomdp.measurement as m
from calls import (
    ANSWERS,
    CALLS,
    COUNTED,
    DTYPES,
    INTS,
    KEY,
    LIMITS,
    ONE,
    OTHER_LIMITS,
    REFUSED,
    WORDS,
    ArrayLike,
    Folded,
    Limit,
    Refused,
    Truncated,
    by_bins,
    by_ints,
    by_words,
    int_count,
    of_dtype,
    scalar,
    vector,
    word_count,
)
from geomdp import GeometricMechanism, accuracy, sample_two_sided_geometric
from geomdp._ground import parameters
from geomdp.compat import diffprivlib
from geomdp.compat.smartnoise import simple_geometric_mechanism as smartnoise
from geomdp.measurement import AllDomain, L1Distance, VectorDomain
from geomdp.testing import release_not_private
from unsigned import limits


def named(name: str, value: Any) -> str:
    """Return a pattern of a message that names the parameter; it shows no containers."""
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64 | np.bool_):
        # Shown as the numpy scalar or as a plain number.
        return rf"{name} = ({re.escape(repr(value))}|{re.escape(repr(value.item()))})"
    is_pair = isinstance(value, tuple) and len(value) == 2
    if isinstance(value, Iterable) and not isinstance(value, str) and not is_pair:
        kind = type(value).__name__
        return f"{name} (of|has) type {kind}( with [^:]*)?( is not accepted)?: give "
    return re.escape(f"{name} = {value!r}")


def refusal(call: Callable[[Any], Any], value: Any) -> Exception:
    try:
        call(value)
    except Exception as error:
        return error
    raise AssertionError(f"accepted: {value!r:.200}")


@pytest.mark.parametrize(
    "row", REFUSED, ids=[f"{row.name}-{row.error.__name__}" for row in REFUSED]
)
def test_refused_values_raise_with_the_name(row: Refused) -> None:
    for value in row.values:
        error = refusal(row.call, value)
        assert type(error) is row.error, value
        message = str(error)
        name = named(row.name, value) if row.shown else rf"\b({row.name})\b"
        assert re.search(name, message), value
        assert re.search(row.hint, message), value


# Limits


@pytest.mark.filterwarnings("ignore:alpha = .* is the probability of a miss")
@pytest.mark.parametrize("row", LIMITS, ids=[row.of or row.name for row in LIMITS])
def test_values_at_limits_are_accepted_and_those_beyond_refused(row: Limit) -> None:
    for value in row.within:
        row.call(value)
    for value in row.beyond:
        error = refusal(row.call, value)
        assert type(error) is row.error, value
        assert re.search(rf"\b({row.name})\b", str(error)), value


def in_refusals() -> Iterator[str]:
    """Yield the constants that refusals compare numbers with, with their files."""
    package = Path(geomdp.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.If) or not any(isinstance(x, ast.Raise) for x in node.body):
                continue
            for each in filter(lambda x: isinstance(x, ast.Compare), ast.walk(node.test)):
                for x in (each.left, *each.comparators):
                    name = getattr(x, "id", getattr(x, "attr", ""))
                    if name.isupper() and isinstance(
                        each.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE
                    ):
                        yield f"{path.relative_to(package).as_posix()}:{name}"


def test_each_constant_in_a_refusal_is_tried_on_both_sides() -> None:
    tried = {row.of for row in LIMITS if row.of}
    assert tried.isdisjoint(OTHER_LIMITS)
    assert sorted(tried | OTHER_LIMITS) == sorted({*in_refusals()})


# Bounds


def test_bounds_without_an_upper_limit_say_how_to_write_them() -> None:
    """It asked somebody who gave a tuple for a pair, and said nothing of its missing limit."""
    for upper in (None, math.inf):
        with pytest.raises(TypeError, match=r"; \(0, 2\*\*63 - 1\) is without an upper limit"):
            GeometricMechanism(1, bounds=(0, upper))


#: Calls with counts of any dtype.
BOUNDED: dict[str, Callable[[Any, int, int], Any]] = {
    "release": lambda x, *bounds: GeometricMechanism(1, bounds=bounds).release(x),
    "two-sided": lambda x, *bounds: sample_two_sided_geometric(x, 1, bounds),
    "smartnoise": lambda x, *bounds: smartnoise(x, 1, 1, *bounds),
    "truncated": lambda x, *of: Truncated(epsilon=1, lower=of[0], upper=of[1]).randomise(x),
    "folded": lambda x, *of: Folded(epsilon=1, lower=of[0], upper=of[1]).randomise(x),
}


@pytest.mark.parametrize("call", BOUNDED)
@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        *(((0, 256), "uint8"), ((-1, 5), "uint8"), ((-1, 5), "uint64"), ((0, 128), "int8")),
        *(((-129, 0), "int8"), ((300, 400), "int8"), ((0, 2**15), "int16"), ((0, 2**16), "uint16")),
        *(((0, 2**31), "int32"), ((0, 2**32), "uint32"), ((2**63, 2**63 + 5), "int64")),
    ],
)
def test_bounds_outside_dtype_raise(call: str, bounds: tuple[int, int], dtype: str) -> None:
    release = BOUNDED[call]
    for counts in (np.array(1, dtype), np.ones(3, dtype), np.array([], dtype)):
        with pytest.raises(OverflowError, match=r"bounds = |(lower|upper) = "):
            release(counts, *bounds)
    within = int(np.iinfo(dtype).max) - 9, int(np.iinfo(dtype).max)
    assert release(np.array([1], dtype), *within).dtype == dtype


# Scales too large for any certified draw


#: Calls with counts of a dtype and a scale.
SCALED: dict[str, Callable[[Any, Any], Any]] = {
    "release": lambda x, s: GeometricMechanism.from_scale(s, limits(x.dtype)).release(x),
    "epsilon": lambda x, s: GeometricMechanism(1 / Fraction(s), bounds=limits(x.dtype)).release(x),
    "measurement": lambda x, s: m.make_geometric(*of_dtype(x.dtype.name), s)(x),
    "smartnoise": lambda x, s: smartnoise(x, 1, s, *(limits(x.dtype) or (-5, 5))),
    "free": lambda x, s: diffprivlib.Geometric(epsilon=1 / Fraction(s)).randomise(x),
    "truncated": lambda x, s: Truncated(epsilon=1 / Fraction(s), lower=0, upper=9).randomise(x),
    "folded": lambda x, s: Folded(epsilon=1 / Fraction(s), lower=0, upper=9).randomise(x),
}


def max_scale(refused: Callable[[], object]) -> Fraction:
    with pytest.raises(ValueError, match=r"scale = about 2\*\*\d+ is too large|2\^56") as caught:
        refused()
    found = re.search(r"scale.* of at most 2(\*\*|\^)(-?\d+)", str(caught.value))
    assert found is not None
    return Fraction(2) ** int(found[2])


@pytest.mark.parametrize("call", SCALED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scale_limit_in_message_is_accepted(call: str, dtype: str) -> None:
    release = SCALED[call]
    for counts in (np.zeros(3, dtype), np.array([], dtype)):
        for scale in (2.0**400, 1e308, Fraction(10**300, 7), Fraction(10**400)):
            limit = max_scale(lambda x=counts, s=scale: release(x, s))  # type: ignore[misc]
        assert release(counts, limit).dtype == dtype


def check_limit(upper: int, factor: Fraction) -> None:
    limit = max_scale(lambda: GeometricMechanism.from_scale(2.0**400, bounds=(0, upper)))
    assert GeometricMechanism.from_scale(limit * factor, bounds=(0, upper)).bounds == (0, upper)


@pytest.mark.parametrize("bits", range(1, 65))
def test_scale_limit_in_message_is_accepted_for_width(bits: int) -> None:
    for upper in {2 ** (bits - 1), 2**bits - 1}:
        check_limit(upper, Fraction(1))


@settings(deadline=None)
@given(
    st.integers(1, 64).flatmap(lambda bits: st.integers(1, 2**bits - 1)),
    st.fractions(min_value=0, max_value=1).filter(bool),
)
def test_scales_up_to_limit_are_accepted(upper: int, factor: Fraction) -> None:
    check_limit(upper, factor)


def test_scale_limit_of_unbounded_64_bit_counts_and_of_one_output() -> None:
    limit = max_scale(lambda: GeometricMechanism.from_scale(2.0**100).release(1))
    assert 2**64 < limit < 2**100
    mechanism = GeometricMechanism.from_scale(2**400, bounds=(7, 7))
    assert mechanism.release([0, 7, 100]).tolist() == [7, 7, 7]
    assert m.make_geometric(*ONE, 2**400, (7, 7)).map(0) == 0


# Counts


class InterfaceLike:
    def __init__(self, counts: Any) -> None:
        self.__array_interface__ = counts.__array_interface__


class BufferLike:
    def __init__(self, counts: Any) -> None:
        self.counts = counts

    def __buffer__(self, _: int) -> memoryview:
        return memoryview(self.counts)


#: What may carry counts and is no integer array or sequence of ints.
CARRIERS: dict[str, Callable[[Any], Any]] = {
    "__array__": ArrayLike,
    "__array_interface__": InterfaceLike,
    "__buffer__": BufferLike,
    "memoryview": lambda x: memoryview(x.tobytes()),
    "bytes": bytes,
    "bytearray": bytearray,
    "iterator": lambda x: iter(x.tolist()),
    "set": lambda x: set(x.tolist()),
    "dict": lambda x: dict.fromkeys(x.tolist()),
    "values": lambda x: dict.fromkeys(x.tolist()).values(),
    "floats": lambda x: x.astype("f4"),
    "complex": lambda x: x.astype(complex),
    "bools": lambda x: x.astype(bool),
    "strings": lambda x: x.astype(str).astype("U30"),
    "objects": lambda x: x.astype(object),
    "times": lambda x: x.astype("i8").view("m8[s]"),
    "dates": lambda x: x.astype("i8").view("M8[s]"),
    "record": lambda x: np.array(x, [("x", "i8")]),
    "masked": lambda x: np.ma.masked_array(x, mask=x > 3),
    "array of floats": lambda x: array("d", x.tolist()),
    "list of floats": lambda x: [float(v) for v in x],
    "list of bools": lambda x: [v > 3 for v in x.tolist()],
    "list of strings": lambda x: [str(v) for v in x],
    "list of masked": lambda x: [np.ma.masked_array(x)],
    "list of times": lambda x: [[x.astype("i8").view("m8[ns]")]],
    "list of arrays": lambda x: [x.astype(float)],
    "ragged": lambda x: [x[:2].tolist(), x.tolist()],
    "nested at the end": lambda x: [*x.tolist(), x.tolist()],
    "a bool at the end": lambda x: [x.tolist(), [*x.tolist()[1:], True]],
}


@pytest.mark.parametrize("call", COUNTED)
def test_errors_are_independent_of_data(call: str) -> None:
    for carrier in CARRIERS.values():
        outcomes = set()
        for seed in range(6):
            rng = np.random.default_rng(seed)
            first = rng.choice([-(2**63), 2**63 - 1, rng.integers(-(2**63), 2**63 - 1), 5])
            with pytest.raises(TypeError, match=r"\b(counts|arg)\b|masked") as error:
                COUNTED[call](carrier(np.array([first, *rng.permutation(9)])))
            # With its causes and notes.
            outcomes.add("".join(traceback.format_exception(error.value)))
        assert len(outcomes) == 1, outcomes


# out

HUGE = GeometricMechanism.from_scale(2.0**80)


def keyed(counts: Any, *, out: Any) -> Any:
    return release_not_private(HUGE, counts, KEY, out=out)


@pytest.mark.parametrize(
    "out",
    [
        np.full(3, 9, np.uint64),
        np.full(3, 9.0),
        np.ma.array([9, 9, 9]),
        [9, 9, 9],
        ArrayLike(),
        9,
        memoryview(b"9"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_out_of_other_type_raises(out: Any) -> None:
    before = np.copy(out)
    for counts, release in itertools.product(
        (np.zeros(3, np.int64), [0, 0, 0]), (HUGE.release, keyed)
    ):
        with pytest.raises(TypeError, match="out"):
            release(counts, out=out)
    assert np.array_equal(before, np.copy(out))


@pytest.mark.parametrize("shape", [(2,), (1, 3), (0,)])
def test_out_of_other_shape_raises(shape: tuple[int, ...]) -> None:
    out = np.full(shape, 9)
    counted = 5, np.int64(5), np.array(5), np.zeros(3, np.int64)
    for counts, release in itertools.product(counted, (HUGE.release, keyed)):
        with pytest.raises(ValueError, match="out is of shape"):
            release(counts, out=out)
    assert (out == 9).all()


def test_out_that_is_read_only_or_shares_items_raises() -> None:
    memory = np.full(8, 9)
    frozen = memory[:1].copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        HUGE.release([5], out=frozen)
    for out in (
        sliding_window_view(memory, 5, writeable=True),
        np.broadcast_to(memory[:5], (4, 5)),
        as_strided(memory, (4, 5), (0, 8)),
        as_strided(memory, (4, 5), (8, 0)),
    ):
        with pytest.raises(ValueError, match=r"out (is read-only|has items)"):
            HUGE.release(np.zeros((4, 5), np.int64), out=out)
    assert (memory == 9).all()
    assert frozen[0] == 9


@pytest.mark.parametrize(
    ("release", "counts", "dtype", "error"),
    [
        (GeometricMechanism(1, bounds=(0, 300)).release, np.zeros(3, "u1"), "u1", OverflowError),
        (HUGE.release, np.zeros(3, "u1"), "u1", ValueError),
        (GeometricMechanism.from_scale(2.0**300).release, np.zeros(3, "i1"), "i1", ValueError),
        *((HUGE.release, counts, "i8", TypeError) for counts in ([1, 2, True], np.zeros(3))),
        (HUGE.release, [1, 2, 2**63], "i8", OverflowError),
    ],
)
def test_out_is_unchanged_after_errors(
    release: Callable[..., Any], counts: Any, dtype: str, error: type[Exception]
) -> None:
    out = np.full(3, 9, dtype)
    with pytest.raises(error):
        release(counts, out=out)
    assert (out == 9).all()


# Arrays of other libraries


def of_library(name: str, **methods: Any) -> Any:
    """Return an object of a class like that of another library."""
    module, kind = name.split(".")
    return type(kind, (), {"__module__": module, **methods})()


def made(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    return np.array([3, 5])


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        (sparse.csr_array([[3, 5]]), "counts.toarray()"),
        (sparse.coo_matrix([[3, 5]]), "counts.toarray()"),
        (of_library("torch.Tensor", __array__=made), "numpy.asarray(counts)"),
        # Newer versions of xarray offer their arrays as columns of Arrow too.
        (of_library("xarray.DataArray", __array__=made), "numpy.asarray(counts)"),
        (
            of_library("xarray.DataArray", __array__=made, __arrow_c_stream__=made),
            "numpy.asarray(counts)",
        ),
    ],
)
def test_arrays_of_other_libraries_are_refused_with_the_line_that_converts_them(
    counts: Any, line: str
) -> None:
    mechanism = GeometricMechanism.from_scale(0)
    with pytest.raises(TypeError, match=re.escape(line)):
        mechanism.release(counts)
    converted = eval(line, {"counts": counts, "numpy": np})
    assert mechanism.release(converted).ravel().tolist() == [3, 5]
    with pytest.raises(TypeError, match=re.escape(line).replace("counts", "(counts|released)")):
        mechanism.confidence_interval(counts, alpha=0.05)


def test_sparse_columns_are_refused_with_the_line_that_converts_them() -> None:
    counts = pd.Series(pd.arrays.SparseArray([3, 5]))
    mechanism = GeometricMechanism.from_scale(0)
    with pytest.raises(TypeError, match=r"sparse\[int64, 0\] .* sparse\.to_dense\(\)"):
        mechanism.release(counts)
    assert mechanism.release(counts.sparse.to_dense()).tolist() == [3, 5]


# Messages


SECRET = 987654321987654321987


def shown(error: BaseException | None) -> str:
    """Return everything a traceback shows of an error and its causes."""
    if error is None:
        return ""
    own = f"{error!r} {error} {error.args!r} {getattr(error, '__notes__', '')}"
    return own + shown(error.__cause__) + shown(error.__context__)


NARROW = m.make_geometric(VectorDomain(AllDomain("i8")), L1Distance("i8"), 1)
UNSIGNED = m.make_geometric(VectorDomain(AllDomain("u64")), L1Distance("u64"), 1)
TEXT = str(SECRET)
#: NOT_COUNTS has what is no count, for every call.
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


#: Counts in the wrong place.
COUNTS: dict[str, Any] = {
    "array": np.array([98761, 98762]),
    "list": [98761, 98762, 98763],
    "pair": (98761.0, 98762.0),
    "dict": {"a": 98761},
    "Counter": collections.Counter(a=98761),
    "Series": pd.Series([98761, 98762]),
    "Series of Polars": pl.Series([98761, 98762]),
    "Array": pa.array([98761, 98762]),
    "DataFrame": pd.DataFrame({"n": [98761]}),
    "numpy record": np.array([(98761,)], [("n", "i8")])[0],
    "bytes": b"98761",
    "set": {98761},
    "frozenset": frozenset([98761]),
    "range": range(98761, 98763),
    "array of Python": array("l", [98761]),
    "deque": collections.deque([98761]),
    "frame of Polars": pl.DataFrame({"n": [98761]}),
    "table": pa.table({"n": [98761]}),
    "a column and an array": ["town", np.array([98761])],
    "a column and a Series": ("town", pd.Series([98761])),
    "a Series by name": {"town": pd.Series([98761])},
    "nested": [[98761]],
}
#: Texts in the wrong place, of records and not of a design.
TEXTS = {"Series": pd.Series(["98761 Elm St", "98762 Elm St"]), "Index": pd.Index(["98761 Elm St"])}


def refuses_unseen(call: Callable[[Any], Any], counts: Any) -> None:
    """Check that a call shows no count."""
    try:
        call(counts)
    except (TypeError, ValueError, OverflowError, KeyError, AttributeError) as error:
        text = "".join(traceback.format_exception(error))
        assert "9876" not in text


@pytest.mark.parametrize("counts", COUNTS)
def test_messages_do_not_show_counts_in_the_wrong_place(counts: str) -> None:
    """Of a list given as `by`, the first count was shown, and whole sets and ranges."""
    for _, call in (*CALLS, *ANSWERS):
        refuses_unseen(call, COUNTS[counts])


@pytest.mark.parametrize("texts", TEXTS)
def test_answers_do_not_show_texts_of_records(texts: str) -> None:
    for _, call in ANSWERS:
        refuses_unseen(call, TEXTS[texts])


@pytest.mark.parametrize("data", [*COUNTS.values(), *TEXTS.values()], ids=[*COUNTS, *TEXTS])
def test_messages_show_no_object_that_may_be_data(data: Any) -> None:
    """By default: what is shown is of a list of types, alone or in plain containers."""
    plain = isinstance(data, list | tuple | dict | set | frozenset | range)
    for value in [data] * (not plain) + [[np.array([98761])], {"a": pd.Series([98761])}]:
        assert "9876" not in parameters.shown(value)
    assert parameters.shown(pd.DataFrame({"a": [1]})) == "<DataFrame>"


# Words

#: Numbers in messages that are never 1, and the things of which they are numbers.
NEVER_ONE = {
    ("_percent(alpha)", "intervals"),
    ("array.ndim", "dimensions"),
    ("cells", "cells"),
    ("count", "precisions"),
    ("design.cells", "cells"),
    ("facts['top']", "largest groups"),  # one is handled beside it, and so is once
    ("linf", "times"),
    ("found", "times"),
    ("groups.total()", "releases"),
    ("len(axes)", "columns"),
    ("len(items)", "columns"),  # 1 is handled above it
    ("len(line)", "bytes"),
    ("len(rows)", "bytes"),
    ("len(text)", "bytes"),
    ("len(whole)", "bytes"),
    ("len(self.tiers)", "tiers"),
    ("n", "noisy counts"),
    ("number(upper)", "or less"),
    ("n", "times"),
    ("n", "true counts"),  # 1 is handled beside it
    ("records.ndim", "dimensions"),
    ("said.rows", "rows"),
    ("self.limb_bits * (limbs + 1)", "bits"),
    ("size", "bytes"),
    ("value.bit_length()", "bits"),
    ("values", "values"),
    ("x.bit_length()", "bits"),
    ("what", "needs"),
}
VERB = "contains|reaches|differs|occurs|of|is|has|was|does|without|beyond|reads|rounds|and"


def test_numbers_of_things_have_a_singular() -> None:
    """It said "1 digits": only _ground.notebook.many adds an "s" to what may be one thing."""
    package, found = Path(m.__file__).parents[1], set()
    for path in package.rglob("*.py"):
        for text in ast.walk(ast.parse(path.read_text())):
            if not isinstance(text, ast.JoinedStr):
                continue
            for value, after in itertools.pairwise(text.values):
                if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                number = ast.unparse(value.value)
                thing = re.match(rf" ((?!{VERB})(\w+ )?(?!{VERB})[a-z]+s)\b", str(after.value))
                if thing and not re.fullmatch("[A-Z_]+", number):
                    found.add((number, thing[1]))
    assert found == NEVER_ONE
