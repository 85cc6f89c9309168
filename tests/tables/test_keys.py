"""What identifies: ids of individuals and labels, which are equal or not on every path alike."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geomdp import tables
from geomdp.tables import Design
from geomdp.tables._columns import ids as _ids

Make = Callable[[list[Any]], Any]
TOWNS = ["a", "b", "c"]


def numbers(table: Any) -> list[int]:
    """Return the exact counts of a table."""
    return [int(n) for n in np.asarray(table.frame[table.design.name])]


def frames_of(columns: dict[str, Any]) -> list[Any]:
    """Return the frames with these columns of the library of the first one."""
    first = columns["who"]
    if isinstance(first, pd.Series):
        return [pd.DataFrame(columns)]
    if isinstance(first, pl.Series):
        return [pl.DataFrame(columns), pl.LazyFrame(columns)]
    table = pa.table(columns)
    return [table, *table.to_batches()]


def top(frame: Any) -> int:
    """Return how many of the cells that are named have a record."""
    table = BOUNDED.count(frame)
    [town] = table.top(1, epsilon=400).to_dict()
    return numbers(table)[TOWNS.index(town)]


def bounded(frame: Any) -> int:
    kept = tables.bound_contributions(frame, "who", l0=1, cells=["town"])
    return len(kept.collect() if isinstance(kept, pl.LazyFrame) else kept)


BOUNDED = Design({"town": TOWNS}, individual="who", l0=1)
#: All that look at individuals, and return how many records they keep.
WAYS: dict[str, Callable[[Any], float]] = {
    "count": lambda frame: sum(numbers(BOUNDED.count(frame))),
    "l1": lambda frame: sum(numbers(Design({"town": TOWNS}, individual="who", l1=1).count(frame))),
    "sum": lambda frame: sum(numbers(BOUNDED.sum(frame, "n", bounds=(0, 7)))) / 7,
    "bound_contributions": bounded,
}


def ways(frame: Any) -> list[Callable[[Any], float]]:
    """Return those that take this frame: contributions of Arrow's are bounded by count alone."""
    of_arrow = isinstance(frame, pa.Table | pa.RecordBatch)
    return [way for name, way in WAYS.items() if not (of_arrow and name == "bound_contributions")]


def arrow_of_pandas(kind: pa.DataType) -> Make:
    return lambda x: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(x, kind)])))


def coded(kind: pa.DataType) -> Make:
    return lambda x: pa.array(x, kind).dictionary_encode()


TEXT, BYTES, INTS = ["né\ud7ff", ""], [b"\xff\x00", b""], [2**62 + 1, 2**62]
OBJECT = partial(pd.Series, dtype=object)
KNOWN = UUID(int=7)
#: Columns of ids, and two different ids in each.
KINDS: dict[str, tuple[Make, list[Any]]] = {
    **{
        f"pandas, {kind}": (partial(pd.Series, dtype=kind), INTS)
        for kind in ("int64", "uint64", "Int64", "UInt64")
    },
    **{
        f"pandas, {kind}": (partial(pd.Series, dtype=kind), [1, 2])
        for kind in ("int8", "uint8", "Int8", "uint16", "int32")
    },
    "pandas, str": (partial(pd.Series, dtype="str"), TEXT),
    "pandas, string[python]": (partial(pd.Series, dtype="string[python]"), ["\ud800", "a"]),
    "pandas, string[pyarrow]": (partial(pd.Series, dtype="string[pyarrow]"), TEXT),
    "pandas, objects": (OBJECT, ["\ud800", "b"]),
    "pandas, objects of ints": (OBJECT, [2**70, 2**70 + 1]),
    "pandas, objects of great ints": (OBJECT, [10**5000, 10**5000 + 1]),
    "pandas, objects of numpy's ints": (lambda x: OBJECT(list(map(np.int16, x))), [1, 2]),
    "pandas, objects of bytes": (OBJECT, BYTES),
    "pandas, UUIDs": (OBJECT, [KNOWN, UUID(int=8)]),
    "pandas, categories": (partial(pd.Series, dtype="category"), TEXT),
    "pandas, categories of ints": (partial(pd.Series, dtype="category"), INTS),
    "pandas, categories of objects": (lambda x: OBJECT(x).astype("category"), [1, "b"]),
    "polars, Int128": (partial(pl.Series, dtype=pl.Int128), [2**100, 2**100 + 1]),
    "polars, Int64": (partial(pl.Series, dtype=pl.Int64), INTS),
    "polars, UInt8": (partial(pl.Series, dtype=pl.UInt8), [1, 2]),
    "polars, String": (partial(pl.Series, dtype=pl.String), TEXT),
    "polars, Binary": (partial(pl.Series, dtype=pl.Binary), BYTES),
    "polars, Categorical": (partial(pl.Series, dtype=pl.Categorical), TEXT),
    "polars, Enum": (partial(pl.Series, dtype=pl.Enum(TEXT)), TEXT),
}
ARROW: dict[pa.DataType, list[Any]] = {
    pa.int64(): INTS,
    pa.uint16(): [1, 2],
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary(2): [b"\xff\x00", b"\xff\x01"],
}
for kind, items in ARROW.items():
    KINDS[f"pyarrow, {kind}"] = (partial(pa.array, type=kind), items)
    if kind != pa.string_view():  # Pandas cannot group these, nor Arrow their dictionaries.
        KINDS[f"pandas, {kind} of Arrow"] = (arrow_of_pandas(kind), items)
        KINDS[f"pyarrow, dictionary of {kind}"] = (coded(kind), items)


@pytest.mark.parametrize("cells", [None, ["who"]])
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_rows_of_views_in_pandas_are_not_bounded(kind: pa.DataType, cells: Any) -> None:
    """Arrow picks no rows of views; in a table they are individuals."""
    items = TEXT if kind == pa.string_view() else BYTES
    frame = pd.DataFrame({"who": arrow_of_pandas(kind)([items[0]] * 3), "town": TOWNS})
    with pytest.raises(TypeError, match=f"{kind}.* not accepted: give numbers, bools, strings"):
        tables.bound_contributions(frame, "who", l0=1, cells=cells)
    design = tables.Design({"town": [*TOWNS]}, individual="who", l0=1)
    assert design.count(frame).frame["count"].sum() == 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_individual_in_three_cells_is_one(kind: str) -> None:
    """By every library and every way; and two are two."""
    make, (one, other) = KINDS[kind]
    for ids, individuals in (([one] * 3, 1), ([one, other, one], 2)):
        columns = {"who": make(ids)}
        columns["town"] = like(columns["who"], TOWNS)
        columns["n"] = like(columns["who"], [7, 7, 7])
        for frame in frames_of(columns):
            assert {way(frame) for way in ways(frame)} == {individuals}
            assert top(frame) in range(1, individuals + 1)


def like(column: Any, items: list[Any]) -> Any:
    """Return a column of the library of another."""
    if isinstance(column, pd.Series):
        return pd.Series(items)
    return pl.Series(items) if isinstance(column, pl.Series) else pa.array(items)


#: A quiet NaN, a signalling one, and a negative one: all are NaN, and no two are equal.
NANS = np.array([0x7FF8 << 48, (0x7FF0 << 48) + 1, 0xFFF8 << 48], np.uint64).view(np.float64)
NANS_32 = np.array([0x7FC0 << 16, (0x7F80 << 16) + 1, 0xFFC0 << 16], np.uint32).view(np.float32)
FLOATS = [math.nan, float(NANS[1]), -0.0, 0.0, 2.0**15]
DAY = datetime.date(2026, 1, 1)


def refused() -> dict[str, Any]:
    """Return columns of types that identify nobody, by library."""
    found: dict[str, Any] = {}
    for kind in ("float16", "float32", "float64", "Float32", "Float64", "complex128", "bool"):
        found[f"pandas, {kind}"] = pd.Series(FLOATS[2:]).astype(kind)
    found["pandas, float64 with NaN"] = pd.Series(FLOATS)
    found["pandas, categories"] = pd.Series([0.5, 1.5, 0.5], dtype="category")
    found["pandas, sparse"] = pd.Series([0.5, 1.5], dtype="Sparse[float64]")
    found["pandas, times"] = pd.Series([pd.Timestamp(DAY)])
    for kind in (pl.Float16, pl.Float32, pl.Float64):
        found[f"polars, {kind}"] = pl.Series(FLOATS, dtype=kind)
    found["polars, decimals"] = pl.Series([Decimal("1.0")])
    found["polars, dates"] = pl.Series([DAY])
    found["polars, times"] = pl.Series([datetime.datetime(2026, 1, 1)])
    found["polars, lists"] = pl.Series([[1]])
    found["polars, objects"] = pl.Series([1], dtype=pl.Object)
    found["polars, Null"] = pl.Series([None])
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        items = pa.array(np.array(FLOATS, kind.to_pandas_dtype()))
        found[f"pyarrow, {kind}"] = items
        found[f"pandas, {kind} of Arrow"] = pd.Series(pd.arrays.ArrowExtensionArray(items))
    for kind in (pa.float32(), pa.float64()):
        codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(NANS, kind))
        found[f"pyarrow, dictionary of {kind}"] = codes
        found[f"pandas, dictionary of {kind}"] = pd.Series(pd.arrays.ArrowExtensionArray(codes))
    found["pyarrow, decimals"] = pa.array([Decimal(1)])
    found["pyarrow, bools"] = pa.array([True])
    found["pyarrow, dates"] = pa.array([DAY])
    return found


REFUSED = refused()


@pytest.mark.parametrize("kind", REFUSED)
def test_other_types_are_refused_before_anything_is_read(kind: str) -> None:
    """A NaN made an individual of each record, and floats one of two long ids."""
    ids = REFUSED[kind]
    for size in {len(ids), 0}:
        who = ids[:size]
        columns = {"who": who, "town": like(who, ["a"] * size), "n": like(who, [7] * size)}
        for each in frames_of(columns):
            frame = each
            if isinstance(each, pl.LazyFrame):
                frame = each.map_batches(unread, schema=each.collect_schema())
            for way in (*ways(frame), top):
                with pytest.raises(TypeError, match=r"individuals of type .* are not accepted"):
                    way(frame)


def unread(frame: Any) -> Any:
    raise AssertionError("read")


def test_long_ids_of_two_people_are_two() -> None:
    """As floats, 500,001 of 10^6 consecutive ones stayed distinct."""
    long = [10**16, 10**16 + 1]
    text = pd.DataFrame({"who": list(map(str, long)), "town": ["a", "b"]})
    assert numbers(BOUNDED.count(text)) == [1, 1, 0]
    whole = pd.DataFrame({"who": pd.array(long, "Int64"), "town": ["a", "b"]})
    assert numbers(BOUNDED.count(whole)) == [1, 1, 0]
    with pytest.raises(TypeError, match="in 'who' are not accepted: read them as text or Int64"):
        BOUNDED.count(whole.astype({"who": float}))


#: Ids that are one, of which a file that is read in pieces has both.
SAME = [["17", 17, np.int64(17)], [str(KNOWN), KNOWN, KNOWN]]


@pytest.mark.parametrize("ids", SAME)
@pytest.mark.parametrize("kind", [object, "category"])
def test_objects_are_known_by_their_text(ids: list[Any], kind: Any) -> None:
    frame = pd.DataFrame({"who": OBJECT(ids).astype(kind), "town": TOWNS, "n": [7] * 3})
    assert {way(frame) for way in ways(frame)} == {1}


@pytest.mark.parametrize(
    "item",
    [None, math.nan, 1.0, np.float32(1), Decimal("sNaN"), Decimal(1), True, np.True_, DAY, [1], {}],
    ids=repr,
)
def test_objects_without_an_id_are_refused_like_nulls(item: Any) -> None:
    """Neither one individual, which would merge people, nor one each, which would bound nobody."""
    frame = pd.DataFrame({"who": OBJECT(["x", item]), "town": ["a", "b"], "n": [7, 7]})
    for way in ways(frame):
        with pytest.raises(ValueError, match=r"column 'who' contains nulls, .*: give every record"):
            way(frame)


def test_the_columns_of_engines_are_judged_by_the_same_rule() -> None:
    """Those of adapters have no rows: a schema of Arrow for Spark, of pandas for Dask."""
    for kind in ARROW:
        assert len(_ids.checked("who", pa.array([], kind))) == 0
    for kind in (pa.float32(), pa.float64(), pa.decimal128(9, 0), pa.bool_(), pa.date32()):
        with pytest.raises(TypeError, match="individuals of type"):
            _ids.checked("who", pa.chunked_array([], kind))
    for kind in ("float32", "Float64", "double[pyarrow]", "bool", "datetime64[us]"):
        with pytest.raises(TypeError, match="individuals of type"):
            _ids.checked("who", pd.Series([], dtype=kind))


def test_ids_of_duckdb() -> None:
    """Its relations become frames of any library; pandas makes floats of integers with nulls."""
    visits = duckdb.sql("SELECT 2 ** 53 + i AS f, i, t FROM (VALUES (1, 'a'), (1, 'b')) x(i, t)")
    for frame in (visits, visits.pl(), visits.df(), visits.to_arrow_table()):
        assert sum(numbers(Design({"t": TOWNS}, individual="i", l0=1).count(frame))) == 1
        with pytest.raises(TypeError, match="individuals of type"):
            Design({"t": TOWNS}, individual="f", l0=1).count(frame)


# Labels

ZEROS = np.array([-0.0, 0.0, -0.0], np.float32)
#: Columns of floats, by library.
OF_FLOATS: dict[str, Make] = {
    "pandas": pd.Series,
    "pandas, float32": lambda _: pd.Series(np.concatenate([NANS_32, ZEROS, NANS_32])),
    "polars, bits of 32": lambda _: pl.Series(np.concatenate([NANS_32, ZEROS, NANS_32])),
    "pyarrow, bits of 32": lambda _: pa.array(np.concatenate([NANS_32, ZEROS, NANS_32])),
    "pandas, of Arrow": lambda x: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(x))),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "dictionary": lambda x: pa.array(x).dictionary_encode(),
}


@pytest.mark.parametrize("kind", OF_FLOATS)
def test_one_individual_has_one_cell_of_nans_and_one_of_zeros(kind: str) -> None:
    """Whatever their bits: all NaNs are outside the levels, and -0.0 is 0.0."""
    at = OF_FLOATS[kind](np.concatenate([NANS, ZEROS, NANS]))
    columns = {"who": like(at, [1] * 9), "at": at, "n": like(at, [7] * 9)}
    for frame in frames_of(columns):
        for l0, most in ((1, 1), (2, 2)):
            design = Design({"at": [0.0]}, other=-1.0, individual="who", l0=l0)
            assert sum(numbers(design.count(frame))) == most
            assert sum(numbers(design.sum(frame, "n", bounds=(0, 5)))) == 5 * most
            if not isinstance(frame, pa.Table | pa.RecordBatch):
                kept = tables.bound_contributions(frame, "who", l0=l0, cells=["at"])
                assert len(kept.collect() if isinstance(kept, pl.LazyFrame) else kept) == most
        assert numbers(Design({"at": [0.0]}).count(frame)) == [3]


class Hostile:
    """An object whose comparisons all fail."""

    def __hash__(self) -> int:
        raise ArithmeticError

    __eq__ = __lt__ = __hash__  # type: ignore[assignment]


FOREIGN: list[Any] = [
    "\ud800",
    [1],
    {},
    {1},
    np.array([1, 2]),
    Decimal("sNaN"),
    (1, [2]),
    (1, math.nan),
    (1, float(NANS[1])),
    Hostile(),
    object(),
    b"a",
    2**80,
    1j,
    KNOWN,
    DAY,
    datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
]


@pytest.mark.parametrize("place", range(len(FOREIGN) + 1))
@pytest.mark.parametrize("kind", [object, "string[python]"])
def test_a_foreign_record_is_outside_the_levels(place: int, kind: Any) -> None:
    """A lone surrogate, a list or a signalling NaN raised a TypeError for the whole table."""
    foreign = [FOREIGN[place]] if place < len(FOREIGN) else FOREIGN
    if kind is not object:
        foreign = [item for item in foreign if isinstance(item, str)]
    labels = pd.Series(["a", *foreign, "b", None, "a"], dtype=kind)
    frame = pd.DataFrame({"x": labels, "n": 1, "who": range(len(labels))})
    frame["town"] = pd.Categorical(["x"] * len(labels))
    for more in ({}, {"individual": "who", "l0": 1}):
        for weights in [None] if more else [None, "n"]:
            design = Design({"x": ["a", "b", None]}, **more)  # type: ignore[arg-type]
            assert numbers(design.count(frame, counts=weights)) == [2, 1, 1]
        design = Design({"x": ["a", "b"], "town": ["x"]}, other={"x": "?"}, **more)  # type: ignore[arg-type]
        assert numbers(design.count(frame)) == [2, 1, 1 + len(foreign)]
    assert numbers(tables.count(labels, ["a", "b"])) == [2, 1]
    kept = tables.bound_contributions(frame, "who", l0=1, cells=["x"])
    assert len(kept) == len(frame)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("foreign", [np.datetime64(DAY), np.datetime64(DAY, "ns"), DAY.isoformat()])
def test_what_equals_a_date_by_another_hash_is_outside_the_levels(
    foreign: Any, first: bool
) -> None:
    """One record of this type was an error of pandas, and so showed itself."""
    items = [DAY, DAY, None, DAY]
    items.insert(0 if first else 4, foreign)
    frame = pd.DataFrame({"x": pd.Series(items, dtype=object)})
    assert numbers(Design({"x": [DAY]}).count(frame)) == [3]
    assert numbers(Design({"x": [DAY, None]}, other=datetime.date(1, 1, 1)).count(frame)) == [
        3,
        1,
        1,
    ]


TENTHS = [0.1, 0.2, 0.1, 0.5]
#: Columns in which 0.1 is another number than the float 0.1.
PRECISE: dict[str, Any] = {
    "pandas, float32": pd.Series(TENTHS, dtype="float32"),
    "pandas, Float32": pd.Series(TENTHS, dtype="Float32"),
    "pandas, categories": pd.Series(TENTHS, dtype="float32").astype("category"),
    "pandas, of Arrow": pd.Series(TENTHS, dtype="float[pyarrow]"),
    "polars, Float32": pl.Series(TENTHS, dtype=pl.Float32),
    "polars, Float16": pl.Series(TENTHS, dtype=pl.Float16),
    "pyarrow, float": pa.array(TENTHS, pa.float32()),
    "pyarrow, halffloat": pa.array(np.array(TENTHS, np.float16)),
    "pyarrow, dictionary": pa.array(TENTHS, pa.float32()).dictionary_encode(),
    "pyarrow, decimals": pa.array([Decimal(repr(x)) for x in TENTHS], pa.decimal128(9, 3)),
    "polars, decimals": pl.Series([Decimal(repr(x)) for x in TENTHS]),
}


@pytest.mark.parametrize("kind", PRECISE)
def test_levels_are_compared_in_the_precision_of_the_column(kind: str) -> None:
    """Of 32 bits, level 0.1 counted nothing."""
    column = PRECISE[kind]
    assert numbers(tables.count(column, [0.1, 0.2])) == [2, 1]
    assert numbers(tables.count(column, [0.1, None], other=-1.0)) == [2, 0, 2]
    frame = {"x": column}
    table = pa.table(frame) if isinstance(column, pa.Array) else type(column.to_frame())(frame)
    design = Design({"x": [0.5, 0.1]})
    assert numbers(design.count(table)) == [1, 2]
    if isinstance(table, pl.DataFrame):
        assert numbers(design.count(table.lazy())) == [1, 2]
    assert list(design.count(table).release(epsilon=1).to_dict()) == [0.5, 0.1]


def test_levels_that_a_column_cannot_tell_apart_are_refused() -> None:
    column = pl.Series([0.1], dtype=pl.Float32)
    for levels in ([0.1, float(np.float32(0.1))], [1e300]):
        with pytest.raises(ValueError, match="give distinct numbers of its type, Float32"):
            tables.count(column, levels)


WIDE = range(-(2**63), 2**63)


@pytest.mark.parametrize("levels", [WIDE, [2**60 + 1, 7], range(2**53 + 2), range(-(2**60), 9)])
@pytest.mark.parametrize("kind", ["float32", "float64", "Float64", "double[pyarrow]", "category"])
def test_integers_that_a_column_of_floats_rounds_are_refused(levels: Any, kind: str) -> None:
    """Pandas makes floats of ids with a null, and of three ids one that nobody has."""
    ids = pd.Series([2**60 + 1, 2**60 + 3, None], dtype="Int64").astype("Float64")
    frame = pd.DataFrame({"id": ids.astype("float64").astype(kind)})
    frames = [frame] if kind == "category" else [frame, pl.from_pandas(frame).lazy()]
    for each in frames:
        with pytest.raises(ValueError, match=r"levels of 'id' are not accepted.* rounds such int"):
            Design({"id": levels}).count(each)


def test_integers_that_floats_hold_are_counted_in_them() -> None:
    for levels, dtype in ((range(2**53 + 1), "float64"), ([2**24, 7, None], "float32")):
        frame = pd.DataFrame({"id": pd.Series([2**24, 2**24, None], dtype=dtype)})
        assert 2 in Design({"id": levels}).count(frame)._occupied[1]


NOON = datetime.datetime(2026, 1, 1, 12)


def test_times_with_a_zone_say_how_to_take_it() -> None:
    zoned = pd.Series([NOON, NOON]).dt.tz_localize("Europe/Berlin")
    columns = (zoned, pl.from_pandas(zoned), pa.Array.from_pandas(zoned))
    for column in columns:
        for levels in ([NOON], [NOON.date()]):
            with pytest.raises(ValueError, match=r"tz_localize\(None\).*replace_time_zone\(None\)"):
                tables.count(column, levels)
    assert numbers(tables.count(zoned.dt.tz_localize(None), [NOON])) == [2]
    assert numbers(tables.count(columns[1].dt.replace_time_zone(None), [NOON])) == [2]
    assert numbers(tables.count(pa.compute.local_timestamp(columns[2]), [NOON])) == [2]
    assert numbers(tables.count(zoned.dt.date, [NOON.date()])) == [2]
    assert numbers(tables.count(columns[1].dt.date(), [NOON.date()])) == [2]


@pytest.mark.parametrize("least", [-(2**63), -50, 0, 2**63 - 100])
@pytest.mark.parametrize("dtype", ["int64", "int64[pyarrow]", "Int64", "object"])
def test_integers_are_found_by_number_as_by_equality(least: int, dtype: str) -> None:
    """Levels that are close integers are looked up in an array, others in a dict."""
    rng = np.random.default_rng(0)
    for size in (1, 7, 60):
        levels = (least + rng.permutation(100)[:size]).tolist()
        records = [*(least + rng.integers(0, 100, 200)).tolist(), -(2**63), 2**63 - 1, 0]
        data = pd.DataFrame({"a": pd.Series(records, dtype=dtype)})
        table = Design({"a": levels}).count(data).release(epsilon=200)
        assert table.to_dict() == {level: records.count(level) for level in levels}
