"""The primitives of the secret path, proved for all inputs from the text of the Rust source.

``rust_source.py`` reads them as terms of z3, and ``coq_source.py`` the draw of
``proofs/Statement.v``, which they are compared with. One function is proved at a time. Where it
calls another one, whose statement has been proved, any result that fits the statement is tried in
its place.
"""

import json
import operator
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import z3

from coq_source import WIDE, Coq, choose
from geomdp import _core
from rust_source import (
    ROOT,
    Induction,
    Int,
    Option,
    Rust,
    Slice,
    Source,
    Struct,
    Type,
    Variant,
    as_mask,
    convert,
    fits,
    leading_zeros,
    look_up,
    number,
    set_all,
    source,
    unsigned_max,
    unsigned_min,
    width,
)
from vectors import check

# --- Proofs. Each takes the source, so that faults can be planted in it. ---


class Refuted(Exception):  # noqa: N818
    """Inputs for which a statement does not hold."""


def prove(claim: z3.BoolRef, *given: z3.BoolRef) -> None:
    """Prove the claim for all values for which what is given holds; there must be some."""
    assert example(*given) is not None, "nothing is claimed"
    if (model := example(*given, z3.Not(claim))) is not None:
        raise Refuted(model)


@cache
def example(*conditions: z3.BoolRef) -> z3.ModelRef | None:
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(*conditions)
    found = solver.check()
    assert found != z3.unknown, solver.reason_unknown()
    return solver.model() if found == z3.sat else None


def prove_each(claims: list[z3.BoolRef], *given: z3.BoolRef) -> None:
    """Prove them one by one, and once those that are one term."""
    for claim in {claim.get_id(): claim for claim in claims}.values():
        prove(claim, *given)


def prove_lanes(claims: Any, lanes: Any, *given: z3.BoolRef) -> None:
    """Prove the claim of each lane, and once those that are one but for the names of its terms."""

    def renamed(claim: z3.BoolRef, terms: tuple[z3.ExprRef, ...]) -> z3.BoolRef:
        names = (z3.Const(f"lane's {i}", term.sort()) for i, term in enumerate(terms))
        return z3.substitute(claim, *zip(terms, names, strict=True))

    prove_each([*map(renamed, claims, lanes)], *given)


def word(name: str, kind: str = "u64") -> Int:
    return Int(kind, z3.BitVec(name, width(kind)))


def words(name: str, count: int, kind: str = "u64") -> list[Int]:
    return [word(f"{name}{i}", kind) for i in range(count)]


def wide(x: Any) -> z3.BitVecRef:
    """The number that a word stands for."""
    extend = z3.SignExt if isinstance(x, Int) and x.type[0] == "i" else z3.ZeroExt
    return extend(WIDE - x.term.size(), x.term)


def statement(rust: Rust, **plan: Any) -> Coq:
    """The draw of the machine-checked proof, for a plan."""
    plan = {"word_bits": 64, "limb_bits": LIMB_BITS, **plan}
    return Coq(rust.source.texts["Statement"], SimpleNamespace(**plan))


def flag(condition: z3.BoolRef) -> z3.BitVecRef:
    return z3.If(condition, z3.BitVecVal(1, 64), z3.BitVecVal(0, 64))


def close(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """Whether the difference of two signed words is one."""
    return fits(operator.sub)(Int("i64", x), Int("i64", y))


def comparisons(rust: Rust) -> None:
    """What the documentation of each function of `ct.rs` says."""
    x, y, b = word("x"), word("y"), word("b")
    is_bit = wide(b) <= 1
    less = rust.call("ct", "less_limb", x, y).term
    prove(less == flag(x.term < y.term), close(x.term, y.term))
    # Limbs of 63 bits, less a borrow, are such words.
    less = rust.call("ct", "less_limb", x.wrapping_sub(b), y).term
    limbs = [z3.LShR(limb.term, 63) == 0 for limb in (x, y)]
    prove(less == flag(wide(x) - wide(b) < wide(y)), is_bit, *limbs)
    borrow = rust.call("ct", "borrow", x, y, b).term
    prove(borrow == flag(wide(x) - wide(y) - wide(b) < 0), is_bit)
    mask = rust.call("ct", "mask", b)
    prove(mask.term == set_all(b.term == 1), is_bit)
    prove(rust.call("ct", "select", mask, x, y).term == z3.If(b.term == 1, x.term, y.term), is_bit)
    prove(rust.call("ct", "min", x, y).term == unsigned_min(x.term, y.term))
    prove(z3.And(*rust.needed))


def assume_comparisons(rust: Rust) -> None:
    """What has been proved by them serves the others."""

    def borrow(x: Int, y: Int, b: Any) -> Int:
        return Int("u64", flag(wide(x) - wide(y) - wide(convert(b, "u64")) < 0))

    def mask(b: Int) -> Int:
        rust.needed.append(wide(b) <= 1)
        return Int("u64", set_all(b.term == 1))

    rust.stubs["ct", "borrow"], rust.stubs["ct", "mask"] = borrow, mask
    rust.stubs["ct", "min"] = lambda x, y: Int("u64", unsigned_min(x.term, y.term))


# What the operations of a vector mean for each word, and of half-words for each half. `less` is for
# signed words that are close.
MEANING: dict[str, Callable[..., Any]] = {
    "splat": lambda x: x,
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": z3.LShR,
    "min": unsigned_min,
    "max": unsigned_max,
    "below": z3.ULT,
    "less": operator.lt,
    "decrease": lambda x, mask: x - flag(mask),
    "select": z3.If,
    "step": lambda path, key, node, weight: path + z3.If(z3.ULT(key, node), weight, 0),
    # At most 31, which a zero below the highest 31 bits stands for.
    "leading_ones": lambda half: leading_zeros(~half | 1),
}


@dataclass(frozen=True)
class Backend:
    type: Type
    width: int

    def load(self, rust: Rust, words: list[Int]) -> Any:
        return rust.call(self.type.name, "load", Slice(words))

    def words(self, rust: Rust, vector: Any) -> list[z3.BitVecRef]:
        words = Slice([None] * self.width)
        rust.call(self.type.name, "store", vector, words)
        return [word.term for word in words]

    def mask(self, truths: list[z3.BoolRef]) -> Any:
        """The mask that is set where these are true."""
        if self.width == 1:
            return Int("u64", set_all(truths[0]))
        if self.type.name == "kernel/avx512.Words":
            return Type("kernel/avx512.Mask")(as_mask(truths[:8]), as_mask(truths[8:]))
        size = self.width // 4
        spread = [tuple(map(set_all, truths[i : i + size])) for i in range(0, self.width, size)]
        return self.type(Slice(spread)) if size == 2 else self.type(*spread)


BACKENDS = {
    "portable": Backend(Type("u64"), 1),
    "avx2": Backend(Type("kernel/avx2.Words"), 16),
    "avx512": Backend(Type("kernel/avx512.Words"), 16),
    "neon": Backend(Type("kernel/neon.Words"), 8),
}


def term(x: Any) -> Any:
    return getattr(x, "term", x)


def same_mask(x: Any, y: Any) -> z3.BoolRef:
    if isinstance(x, Struct):
        return z3.And(x.type == y.type, *map(same_mask, x.fields.values(), y.fields.values()))
    return z3.And(*map(same_mask, x, y)) if isinstance(x, tuple | Slice) else term(x) == term(y)


def operations(rust: Rust, backend: str) -> None:
    """Each operation of a back end is what it means, for all its words at once."""
    vector = BACKENDS[backend]
    n = vector.width
    xs, ys, truths = words("x", n), words("y", n), [z3.Bool(f"m{i}") for i in range(n)]
    x, y, mask = vector.load(rust, xs), vector.load(rust, ys), vector.mask(truths)
    shift = word("shift", "u32")
    shifts = [shift.cast("u64")] * n
    call = partial(rust.call, vector.type.name)

    def meaning(name: str, *operands: Any) -> list[Any]:
        return [MEANING[name](*map(term, row)) for row in zip(*operands, strict=True)]

    for name, given, operands in [
        ("splat", [xs[0]], [[xs[0]] * n]),
        *((name, [x, y], [xs, ys]) for name in ("add", "sub", "and", "xor", "min", "max")),
        *((name, [x, shift], [xs, shifts]) for name in ("shl", "shr")),
        ("decrease", [x, mask], [xs, truths]),
        ("select", [mask, x, y], [truths, xs, ys]),
    ]:
        result = vector.words(rust, call(name, *given))
        equal = map(operator.eq, result, meaning(name, *operands))
        lanes = zip(map(term, xs), map(term, ys), truths, strict=True)
        if name == "splat":
            prove_each([*equal])
        else:
            prove_lanes(equal, lanes, wide(shift) < 64)
        prove_each(rust.needed, wide(shift) < 64)
    prove(same_mask(call("below", x, y), vector.mask(meaning("below", xs, ys))))
    equal = same_mask(call("less", x, y), vector.mask(meaning("less", xs, ys)))
    prove(equal, *(close(a.term, b.term) for a, b in zip(xs, ys, strict=True)))


def half_words(rust: Rust, backend: str) -> None:
    """Each operation on half-words is what it means; `join` undoes `upper`."""
    vector = BACKENDS[backend]
    call = partial(rust.call, f"kernel/{backend}.HalfWords")
    lanes = {name: words(name, vector.width) for name in "xyz"}
    x, y, z = (call("upper", vector.load(rust, lane)) for lane in lanes.values())
    uppers = [[z3.Extract(63, 32, word.term) for word in lane] for lane in lanes.values()]

    def are(found: Any, wanted: list[z3.BitVecRef]) -> z3.BoolRef:
        joined = vector.words(rust, call("join", found, y))
        pairs = zip(joined, uppers[1], wanted, strict=True)
        return z3.And(*(word == z3.Concat(high, low) for word, high, low in pairs))

    prove(are(x, uppers[0]))
    half, bits, weight = word("half", "u32"), word("bits", "u32"), word("weight", "u32")
    prove(are(call("splat", half), [half.term] * vector.width))
    shifted = [z3.LShR(half, bits.term) for half in uppers[0]]
    prove(are(call("shr", x, bits), shifted), wide(bits) < 32)
    for name, found, lanes_of in [
        ("min", call("min", x, y), zip(*uppers[:2], strict=True)),
        ("leading_ones", call("leading_ones", x), zip(uppers[0], strict=True)),
    ]:
        prove(are(found, [MEANING[name](*lane) for lane in lanes_of]))
    below = {size: z3.And(*(z3.ULT(half, size) for half in uppers[0])) for size in (16, 32)}
    cells = words("cell", 32, "u8")
    entries = [z3.ZeroExt(24, cell.term) for cell in cells]
    prove(are(call("cell", x, Slice(cells)), look_ups(uppers[0], entries)), below[32])
    tables = [Slice(words(f"{i}entry", 16, "u32")) for i in (0, 1)]
    entries = [entry.term for table in tables for entry in table]
    prove(are(call("look_up", x, tables[0]), look_ups(uppers[0], entries[:16])), below[16])
    found = call("look_up_either", x, Slice(tables))
    prove(are(found, look_ups(uppers[0], entries)), below[32])
    small = [half >= 0 for half in (*uppers[1], *uppers[2])]
    moved = [MEANING["step"](*row, weight.term) for row in zip(*uppers, strict=True)]
    prove(are(call("step", x, y, z, weight), moved), *small)


def look_ups(places: list[z3.BitVecRef], entries: list[z3.BitVecRef]) -> list[z3.BitVecRef]:
    return [look_up(place, *entries) for place in places]


COUNTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def keys(rust: Rust, kind: str) -> None:
    """Keys keep distances, and so the order, and lead back."""
    x, y = word("x", kind), word("y", kind)
    key_x, key_y = (rust.call(kind, "to_key", count) for count in (x, y))
    prove(wide(key_x) - wide(key_y) == wide(x) - wide(y))
    prove(z3.ULT(key_x.term, key_y.term) == (wide(x) < wide(y)))
    prove(rust.call(kind, "from_key", key_x).term == x.term)


# The portable back end's vectors, of one word.
ONE = {"V": Type("u64")}
NO_STEP = Option(False, None)
#: What is done beside a draw has no part in it.
BESIDE = SimpleNamespace(encrypt=lambda _: None)


class Secret(Int):
    """A word of a vector, on which no address may depend."""


def assume_operations(rust: Rust) -> None:
    """The operations on vectors of one word are what they mean. A mask is a truth."""

    def operation(name: str, *operands: Any) -> Any:
        terms = [x if z3.is_bool(x) else convert(x, "u64").term for x in operands]
        if name == "less":
            rust.needed.append(close(*terms))
        result = MEANING[name](*terms)
        return result if z3.is_bool(result) else Secret("u64", result)

    rust.stubs |= {("u64", name): partial(operation, name) for name in MEANING}
    rust.stubs["u64", "load"] = lambda words: Secret("u64", words[0].term)


def assume_half_words(rust: Rust) -> None:
    """The same for their half-words, of type `u32`."""

    def look_up_either(path: Int, tables: Slice) -> Int:
        entries = [term(entry) for table in tables for entry in table]
        rust.needed.append(z3.ULT(path.term, len(entries)))
        return Int("u32", look_up(path.term, *entries))

    def step(path: Int, key: Int, node: Int, weight: int) -> Int:
        rust.needed.append(z3.And(key.term >= 0, node.term >= 0))
        return Int("u32", MEANING["step"](*map(term, (path, key, node, convert(weight, "u32")))))

    meaning: dict[str, Callable[..., Int]] = {
        "splat": lambda half: convert(half, "u32"),
        "upper": lambda words: Int("u32", z3.Extract(63, 32, words.term)),
        "join": lambda low, high: Int("u64", z3.Concat(high.term, low.term)),
        "shr": lambda half, bits: Int("u32", z3.LShR(half.term, convert(bits, "u32").term)),
        "min": lambda half, other: Int("u32", unsigned_min(half.term, other.term)),
        "leading_ones": lambda half: Int("u32", MEANING["leading_ones"](half.term)),
        "cell": lambda half, above: above(half.term).cast("u32"),
        "look_up": lambda path, table: look_up_either(path, Slice([table])),
        "look_up_either": look_up_either,
        "step": step,
    }
    rust.stubs |= {("u32", name): operation for name, operation in meaning.items()}


def blocks(rust: Rust, kind: str, backend: str) -> None:
    """A block is a release of the proof: it draws for clamped counts above the lower bound, each
    with words of its own, and puts what is drawn above the lower bound again.
    """
    counts = [word(f"count{i}", kind) for i in range(16)]
    lower, upper = word("lower", kind), word("upper", kind)
    plan = SimpleNamespace(range=Int("u64", z3.Extract(63, 0, wide(upper) - wide(lower))))
    tape, block, offsets = words("word", 16), Slice(list(counts)), []
    vector = BACKENDS[backend]
    if backend == "portable":
        assume_operations(rust)

    def draw(_: Any, words: Slice, lane: int, offset: Any, stays: Option, beside: Any) -> Any:
        """Anything from 0 to the range: here, each draw's first word."""
        # A step asks of the same words and offsets what stays.
        prove(z3.BoolVal(stays == keep.map(lambda keep: (keep, words, lane, offset))))
        offsets.extend(vector.words(rust, offset))
        return vector.load(rust, [words[0][lane + i] for i in range(vector.width)])

    rust.stubs["kernel/mod", "draw"] = draw
    rust.stubs["kernel/mod", "kept"] = lambda _, *given: given
    least = rust.call(kind, "to_key", lower)
    generics = {"V": vector.type, "T": Type(kind)}
    kernel = SimpleNamespace(plan=plan)
    keep = Option(True, "a step")
    given = kernel, keep, least, Slice([Slice(tape)])
    rust.call("kernel/mod", "noise_block", *given, Slice(list(counts)), BESIDE, **generics)
    keep = NO_STEP
    offsets.clear()
    rust.call("kernel/mod", "noise_block", kernel, keep, *given[2:], block, BESIDE, **generics)
    proof, wanted = statement(rust, range=wide(plan.range)), []
    proof.names |= {"words": 1, "draw": lambda own, x: wanted.append(x) or own[0]}
    noisy = proof.release(wide(lower), [*map(wide, tape)], [*map(wide, counts)])
    given = (wide(Int("u64", x)) == above for x, above in zip(offsets, wanted, strict=True))
    back = (wide(x) == above for x, above in zip(block, noisy, strict=True))
    claims = []
    count, drawn = word("count", kind), word("drawn")
    for own_count, own, *pair in zip(counts, tape, given, back, strict=True):
        # The claims of all counts are one, but for the names.
        names = (own_count.term, count.term), (own.term, drawn.term)
        claims += [z3.simplify(z3.substitute(claim, *names)) for claim in pair]
    inside = wide(lower) <= wide(upper), wide(drawn) <= wide(plan.range)
    under, over = wide(count) < wide(lower), wide(count) > wide(upper)
    for case in (under, over, z3.Not(z3.Or(under, over))):
        prove_each([*claims, *rust.needed], *inside, case)


LIMB_BITS = 63
# Those of a top digit of the largest radix, and of the floor's slot and of no noise.
MOST_THRESHOLDS = 31 + 2


def limbs_of_digits(rust: Rust, limbs: int) -> None:
    """A digit's uniform number is its own words, and the tie is handed on."""
    tape, digit = words("word", 3 + limbs), SimpleNamespace(limbs=limbs)

    def reached(given: Any, first: Int, own: Slice, tie: Int) -> Any:
        assert given is digit
        assert own.len() == limbs
        return [first, *own, tie]

    assume_operations(rust)
    rust.stubs["kernel/search.OneByOne", "reached"] = reached
    tie = word("tie")
    rows = Slice([Slice([word] * 16) for word in tape[2:]])
    first, *own, last = rust.call("kernel/mod", "outcome", digit, rows, 3, 1, tie, **ONE)
    equal = [x.term == z3.LShR(word.term, 1) for x, word in zip(own, tape[2:], strict=False)]
    prove_each([*equal, first.term == tape[2].term, last.term == tie.term, *rust.needed])


def upper(word: Int) -> Int:
    """The bits of a word that its limb has."""
    return Int("u64", z3.LShR(word.term, 64 - LIMB_BITS))


def thresholds(rust: Rust, limbs: int) -> None:
    """How many thresholds a number has reached, one by one, for any thresholds."""
    tape, tie, size = words("word", limbs), word("tie"), 1 + limbs
    cuts = [words(f"limb{i}.", size) for i in range(MOST_THRESHOLDS)]
    own, proof = Slice(map(upper, tape)), statement(rust)
    assume_operations(rust)

    def reached(*cuts: list[Int]) -> z3.BitVecRef:
        arguments = rows(cuts), number(len(cuts)), own, tie
        generics = {"EQUAL": 0, "LIMBS": limbs, **ONE}
        found: Int = rust.call("kernel/search", "one_by_one", *arguments, **generics)
        return found.term

    def wanted(*cuts: list[Int]) -> z3.BitVecRef:
        digit = SimpleNamespace(thresholds=[[*map(wide, cut)] for cut in cuts])
        return proof.outcome(digit, [*map(wide, tape)], wide(tie))

    one = wide(Int("u64", reached(cuts[0]))) == wanted(cuts[0])
    small = [z3.LShR(limb.term, LIMB_BITS) == 0 for limb in [tie, *cuts[0]]]
    prove(z3.And(one, *rust.needed), *small)
    # Of several, as many as of each.
    prove(reached(*cuts) == sum(map(reached, cuts)))
    prove(wanted(*cuts) == sum(map(wanted, cuts)))


def levels(rust: Rust, limbs: int) -> None:
    """A number is below as many nested thresholds as there are above it, for any thresholds: one,
    and then several, of which the comparisons after the full limbs tell anything.
    """
    tape, tie, full = words("word", limbs), word("tie"), (1 << LIMB_BITS) - 1
    own, proof, count = Slice(map(upper, tape)), statement(rust), word("count")
    assume_operations(rust)

    def reached(*levels: list[list[Int]]) -> z3.BitVecRef:
        deeper = [sum(map(len, levels[place:])) for place in range(3)]
        nested = [
            Option(all_ > 0, SimpleNamespace(thresholds=rows(cuts), all=all_))
            for cuts, all_ in zip([*levels, [], [], []], deeper, strict=False)
        ]
        guide = SimpleNamespace(
            nested=Option(True, SimpleNamespace(full=full, levels=Slice(nested)))
        )
        arguments = guide, count, own, tie
        found: Int = rust.call("kernel/search", "nested", *arguments, LIMBS=limbs, **ONE)
        return found.term

    def cut(place: int, ones: int) -> list[Any]:
        return [*[number(full)] * ones, *words(f"limb{place}.", 1 + limbs - ones)]

    enough = z3.UGE(count.term, MOST_THRESHOLDS), z3.ULE(count.term, 1 << 32)
    for ones in range(1, 1 + limbs):
        one = cut(0, ones)
        small = [z3.LShR(limb.term, LIMB_BITS) == 0 for limb in [tie, *one]]
        below = proof.less([*map(wide, tape)], [*map(wide, one)], wide(tie))
        found = reached(*[[]] * (ones - 1), [one])
        prove_each(
            [found == count.term - z3.If(below, z3.BitVecVal(1, 64), 0), *rust.needed],
            *enough,
            *small,
        )
        rust.needed.clear()
    # Of several, as many as of each.
    flags: dict[int, z3.BoolRef] = {}

    def is_below(own: Slice, tie: Any, limbs: Slice, last: Any) -> z3.BoolRef:
        return flags.setdefault(last.term.get_id(), z3.Bool(f"below {last.term}"))

    rust.stubs["kernel/search", "is_below"] = is_below
    for sizes in product(range(3), repeat=limbs):
        if not sum(sizes):
            continue
        several = [
            [cut(10 * ones + i, ones) for i in range(size)] for ones, size in enumerate(sizes, 1)
        ]
        below = (
            count.term - reached(*[[]] * place, [one])
            for place, cuts in enumerate(several)
            for one in cuts
        )
        prove_each([reached(*several) == count.term - sum(below)], *enough)


def rows(cuts: Any) -> Slice:
    """Thresholds, padded with zeros."""
    padded = ([*cut, *[0] * (4 - len(cut))] for cut in cuts)
    return Slice([Slice([convert(limb, "u64") for limb in cut]) for cut in padded])


def guide(
    keys: list[int],
    cuts: list[list[int]],
    cells: Any,
    steps: int,
    entry: Callable[[int, int], Int] = lambda _, half: number(half, "u32"),
) -> SimpleNamespace:
    """What `tables.rs` says that it makes of thresholds, as limbs: first those that are guided,
    whose keys these are, then the rest, of which none is nested. An entry may depend on the place
    of its threshold. Cells are those of the upper bits.
    """
    count, size = len(keys), len(cuts[0])

    def tables(entries: list[Int]) -> Struct:
        entries = entries + [number(0, "u32")] * (32 - len(entries))
        return Struct(Type("kernel/tables.Tables"), {"0": Slice([*map(Slice, halved(entries))])})

    def halved(entries: list[Int]) -> list[list[Int]]:
        return [entries[:16], entries[16:]]

    down = [entry(place, keys[place]) for place in reversed(range(count))]
    ends = [
        [
            tables(
                [
                    entry(place, cuts[place][limb] >> shift & 0xFFFFFFFF)
                    for place in reversed(range(count))
                ]
            )
            for shift in (0, 32)
        ]
        for limb in (size - 1, *range(size - 1))
    ]
    return SimpleNamespace(
        single=rows(cuts[count:]),
        nested=Option(False, None),
        lead=Variant("Lead::Upper"),
        cells=cells,
        steps=Slice([tables(down[2**level - 1 :]) for level in range(steps)]),
        ends=Slice([SimpleNamespace(low=low, high=high) for low, high in ends] if count else []),
        wide=count >= 16,
    )


def cell_of(lead: Variant, key: z3.BitVecRef) -> z3.BitVecRef:
    """The cell of a key of 31 bits."""
    match lead.name:
        case "Lead::Upper":
            return z3.LShR(key, 26)
        case "Lead::Shifted":
            return unsigned_min(z3.LShR(key, lead.value.term), z3.BitVecVal(31, 32))
    return MEANING["leading_ones"](key << 1)


LEADS = {
    name: Variant(f"Lead::{name}", value)
    for name, value in [("Upper", None), ("Shifted", word("shift", "u32")), ("Ones", None)]
}
# That a key is shifted by less than its bits.
IS_SHIFT = z3.ULT(LEADS["Shifted"].value.term, 31)


def guides(rust: Rust, limbs: int, room: int, steps: int, lead: str) -> None:
    """A guide finds as many thresholds as there are, if its cell's entry tells how many are above
    the cell, if keys tell what they promise, and if the steps are enough for those in the cell.
    That is so for any number of thresholds that such tables have room for, and any entry.
    """
    # Two are outside the guide, one of which is nested. Only the order of keys matters. Places
    # below the first guided threshold have the zeros that tables end in, as if these were
    # thresholds that all reach.
    cuts, below, claims = places(rust, limbs, room + 2)
    keys = [(2 * place + 1) << 25 for place in range(room)]
    first = word("first")
    key = z3.Extract(31, 0, z3.LShR(first.term, 33))
    start, above = z3.BitVecs("start above", 32)
    guided = [place >= start for place in range(room)]

    def cells(cell: z3.BitVecRef) -> Int:
        claims.append(cell == cell_of(LEADS[lead], key))
        return Int("u8", z3.Extract(7, 0, above))

    def entry(place: int, half: int) -> Int:
        return Int("u32", z3.If(guided[place], z3.BitVecVal(half, 32), 0))

    nodes = [entry(place, node).term for place, node in enumerate(keys)]
    count = Int("u64", z3.ZeroExt(32, room + 2 - start))
    given = guide(keys, cuts[:-1], cells, steps, entry)
    given.lead = LEADS[lead]
    digit = SimpleNamespace(count=count, guide=given)
    assume_operations(rust)
    assume_half_words(rust)

    def nested(nested_in: Any, count: Int, *number: Any) -> Int:
        assert nested_in is given
        assert [*number] == [*arguments[2:]]
        return Secret("u64", count.term - flag(below[room + 1]))

    rust.stubs["kernel/search", "nested"] = nested
    generics = {"LIMBS": limbs, "H": Type("u32"), **ONE}
    arguments = digit, first, Slice([number(0)] * limbs), number(0)
    found = rust.call("kernel/search.ByGuide", "reached", *arguments, **generics)
    # Sixteen or more need both tables in a row.
    least, end = max(room // 16 * 16, min(room, 1)), room - above
    promised = [
        IS_SHIFT,
        z3.And(start >= 0, start <= room - least, above >= 0, end >= start),
        *(z3.Implies(place >= end, z3.ULT(key, nodes[place])) for place in range(room)),
        *(z3.Implies(place < end - 2**steps, z3.Not(below[place])) for place in range(room)),
        *(
            z3.Implies(z3.Not(is_guided), z3.Not(x))
            for is_guided, x in zip(guided, below, strict=False)
        ),
        *(z3.Implies(z3.ULT(key, node), x) for node, x in zip(nodes, below, strict=False)),
        *(
            z3.Implies(z3.And(is_guided, z3.ULE(node, key)), z3.Not(x))
            for is_guided, node, x in zip(guided[1:], nodes[1:], below, strict=False)
        ),
    ]
    total = count.term - sum(map(flag, below))
    prove_each([found.term == total, *claims, *rust.needed], *promised)


def key_promises(_: Rust) -> None:
    """A number is below a threshold if its key is. It has reached all with smaller keys than that
    of a threshold whose key it has reached, and all in lower cells, if limbs have the bits that
    cells depend on. Cells never fall as keys rise.
    """
    first, limb, less, more = z3.BitVecs("first limb less more", 64)
    key, own = z3.LShR(first, 33), z3.LShR(first, more)
    node, lower = z3.LShR(limb << more, 33), z3.LShR(less << more, 33)
    given = [more >= 1, more < 64, *(z3.LShR(x << more, more) == x for x in (limb, less))]
    prove(z3.ULT(own, limb), z3.ULT(key, node), *given)
    prove(z3.UGT(own, less), z3.ULT(lower, node), z3.ULE(node, key), *given)
    key, lower, node = (z3.Extract(31, 0, x) for x in (key, lower, node))
    shift = LEADS["Shifted"].value.cast("u64").term
    for lead, bits in {"Upper": 5, "Shifted": 31 - shift, "Ones": 31}.items():
        cell, below, of_node = (cell_of(LEADS[lead], x) for x in (key, lower, node))
        prove(z3.UGT(own, less), z3.ULT(below, cell), z3.ULE(more, 64 - bits), IS_SHIFT, *given)
        prove(z3.ULT(key, node), z3.ULT(cell, of_node), IS_SHIFT, *given)


def places(rust: Rust, limbs: int, count: int) -> tuple[list[list[int]], list[z3.BoolRef], Any]:
    """Thresholds whose limbs tell their place, and whether a number is below each. Those of 0 are
    of none.
    """
    size = 1 + limbs
    cuts = [[place * size + limb + 1 for limb in range(size)] for place in range(count)]
    below, claims = [z3.Bool(f"below{place}") for place in range(count)], []

    def is_below(own: Slice, tie: Any, limbs: Slice, last: Any) -> z3.BoolRef:
        """Whatever is below a threshold, given that these are the limbs of one."""

        def at(threshold: list[int]) -> z3.BoolRef:
            found = [*limbs, last]
            return z3.And(*(x.term == limb for x, limb in zip(found, threshold, strict=True)))

        claims.append(z3.Or(*map(at, cuts), at([0] * size)))
        return z3.Or(*(z3.And(at(cut), is_so) for cut, is_so in zip(cuts, below, strict=True)))

    rust.stubs["kernel/search", "is_below"] = is_below
    return cuts, below, claims


def ways(rust: Rust, backend: str, way: str) -> None:
    """Which of the two ways a back end takes."""
    file = "search" if backend == "portable" else backend
    taken = re.findall(r"type Search = (\w+)", rust.source.texts[f"kernel/{file}"])
    assert taken == [way]


def all_thresholds(rust: Rust) -> None:
    """The first way compares a number with all thresholds."""
    digit, own, tie = SimpleNamespace(thresholds=Slice([]), count=7), Slice([]), word("tie")
    given = (digit.thresholds, digit.count, own, tie)
    found = word("found")

    def one_by_one(*arguments: Any) -> Int:
        for x, y in zip(arguments, given, strict=True):
            if x is not y:
                prove(x.term == y)
        return found

    rust.stubs["kernel/search", "one_by_one"] = one_by_one
    assume_operations(rust)
    arguments = digit, word("first"), own, tie
    assert rust.call("kernel/search.OneByOne", "reached", *arguments, LIMBS=2, **ONE) is found


@dataclass(frozen=True)
class Tape:
    """The words of a tape from a place on: whatever a function of place and lane gives."""

    start: Any = 0

    def __getitem__(self, place: Any) -> Slice:
        place = self.start + self.public(place)
        return Slice([Int("u64", WORD(place, z3.BitVecVal(lane, 64))) for lane in range(16)])

    def part(self, start: Any, _: None) -> "Tape":
        return Tape(self.public(start))

    @staticmethod
    def public(place: Any) -> z3.BitVecRef:
        if isinstance(place, Secret):
            raise TypeError(f"an address that depends on {place}")
        return convert(place if isinstance(place, Int) else operator.index(place), "u64").term


WORD = z3.Function("word", *[z3.BitVecSort(64)] * 3)


def draw(rust: Rust) -> SimpleNamespace:
    """The kernel's draw for any digits: the loop over them is run for any one, from any state."""
    lane = 3
    offset, limit, sign_mask, low_mask = map(word, ("offset", "range", "sign_mask", "low_mask"))
    value_bits, claims = word("value_bits", "u32"), []

    def any_digit(name: str, at: z3.BitVecRef) -> Any:
        """A digit as the kernel and as the proof read it, and the place of its words."""
        limbs, count = (word(f"{name} {field}", "usize") for field in ("limbs", "count"))
        shift, reached = word(f"{name} shift", "u32"), word(f"{name} reached")
        own, weight_bits, value = limbs.term, wide(shift), wide(reached)
        return SimpleNamespace(**locals())

    first, digit = any_digit("first", z3.BitVecVal(1, 64)), any_digit("any", word("at").term)
    loop, shared = Induction(digit), Int("u64", WORD(0, lane))
    plan = SimpleNamespace(
        range=limit,
        limb_bits=LIMB_BITS,
        sign_mask=sign_mask,
        low_mask=low_mask,
        floor_value_bits=value_bits,
    )
    digits = SimpleNamespace(split_first=lambda: Option(True, (first, loop)))
    kernel = SimpleNamespace(plan=plan, digits=digits)

    def outcome(digit: Any, words: Tape, at: int, shift: int, tie: Any) -> Any:
        """Any outcome, but of the digit's own words and the upper bits of the shared one."""
        claims.extend([words.start == digit.at, z3.BoolVal((at, shift) == (lane, 1))])
        claims.append(tie.term == z3.LShR(shared.term, 1))
        return Secret("u64", digit.reached.term)

    rust.stubs["kernel/mod", "outcome"] = outcome
    rust.cuts = {"drawn": None, "value_mask": None}
    assume_operations(rust)
    own = Secret("u64", offset.term)
    noisy = rust.call("kernel/mod", "draw", kernel, Tape(), lane, own, NO_STEP, BESIDE, **ONE)
    given = [
        z3.And(wide(offset) <= wide(limit), wide(limit) > 0),
        z3.And(wide(sign_mask) <= 1, wide(value_bits) <= 64, wide(word("at")) < 1 << 32),
    ]
    for x in (first, digit):
        given.append(z3.And(wide(x.count) >= 1, wide(x.count) <= MOST_THRESHOLDS))
        given.append(z3.And(x.value <= wide(x.count), wide(x.limbs) <= 3, wide(x.shift) < 64))
    return SimpleNamespace(**locals())


def of_the_proof(rust: Rust, kernel: SimpleNamespace, rest: list[Any]) -> SimpleNamespace:
    """The draw of the proof, with any sum of the digits' values by weight, and a step of the
    recursion that gives this sum. One-sided noise is that of a tape whose sign never falls, with a
    zero that is never reached and a value that never wraps.
    """
    first, digit, shared, claims = kernel.first, kernel.digit, kernel.shared.term, kernel.claims
    sign_mask, tie, second = kernel.sign_mask, wide(kernel.shared) >> 1, first.at + first.own
    weighed, more = z3.BitVec("weighed", WIDE), z3.BitVec("more", WIDE)
    proof = statement(
        rust,
        range=wide(kernel.limit),
        value_bits=wide(kernel.value_bits),
        first=first,
        rest=rest,
    )

    def outcome(digit: Any, words: Any, v: Any) -> Any:
        claims.extend([words.start == digit.at, words.length == digit.own, v == tie])
        return digit.value

    def outcomes(at: Any, digits: list[Any], words: Tape, v: Any) -> list[Any]:
        claims.extend([words.start == at, v == tie])
        return [digit.value for digit in digits]

    wrap = z3.If(sign_mask.term == 1, rest[0].weight_bits, 64) if rest else z3.BitVecVal(64, WIDE)
    proof.names |= {
        "hd": lambda _, tape: wide(Int("u64", WORD(tape.start, kernel.lane))),
        "tl": lambda tape: Tape(tape.start + 1),
        "firstn": lambda n, tape: SimpleNamespace(start=tape.start, length=n),
        "skipn": lambda n, tape: Tape(tape.start + n),
        "outcome": outcome,
        "count": lambda x: wide(x.count) + (1 - wide(sign_mask) if x is first else 0),
        "wrap": choose(sign_mask.term == 1, proof.wrap, 1 << 64),
    }
    # The recursion ends, and takes a digit, its words and its value, with `more` from the others.
    all_outcomes, weigh = proof.outcomes, proof.weigh
    assert (all_outcomes([], Tape(), tie), weigh([], [])) == ([], 0)
    proof.names["outcomes"] = partial(outcomes, digit.at + digit.own)
    proof.names["weigh"] = lambda *_: more
    added = weigh([digit], all_outcomes([digit], Tape(digit.at), tie)) - more
    proof.names["outcomes"] = partial(outcomes, second)
    proof.names["weigh"] = lambda *_: weighed if rest else 0
    proof.cuts = {"low": None, "noise": None}
    never_falls = shared, shared & (sign_mask.term | -2)
    noisy = z3.substitute(proof.draw(Tape(), wide(kernel.offset)), never_falls)
    low, noise = z3.substitute(proof.cuts["low"], never_falls), proof.cuts["noise"]
    mask = kernel.low_mask.term == z3.Extract(63, 0, (1 << wrap) - 1)
    given = [*kernel.given, z3.And(mask, *(digit.weight_bits < 64 for digit in rest[:1]))]
    prove(z3.And(*claims, *proof.needed), *given)
    return SimpleNamespace(**locals())


def any_digits(rust: Rust) -> None:
    """The draw is that of the proof, whatever digits, outcomes, weights and range are: by induction
    over the digits, whose step is one of the kernel's loop and one of the proof's recursion.
    """
    kernel = draw(rust)
    digit, start, step = kernel.digit, kernel.loop.start, kernel.loop.step
    state, noise, beyond = (
        {name: word(name) for name in start},
        z3.BitVec("sum", WIDE),
        z3.Bool("end"),
    )

    def holds(state: dict[str, Any], noise: z3.BitVecRef, beyond: Any) -> z3.BoolRef:
        """What the loop keeps: the noise of the digits so far, but for whole words, and whether the
        last of them has its last outcome.
        """
        top, last = state["top"].term, state["last"].term
        counts = z3.And(z3.ULE(top, last), z3.ULE(last, MOST_THRESHOLDS), (top == last) == beyond)
        return z3.And(state["noise"].term == z3.Extract(63, 0, noise), counts)

    so_far, is_last = holds(state, noise, beyond), digit.value == wide(digit.count)
    # A digit adds its value times its weight, of which any may be tried.
    product, part = digit.value * (1 << digit.weight_bits), z3.BitVec("part", WIDE)
    shifted = digit.reached.term << digit.shift.cast("u64").term
    prove(z3.Extract(63, 0, product) == shifted, *kernel.given)
    floor_mask, drawn = (1 << wide(kernel.value_bits)) - 1, rust.cuts["drawn"]
    prove(wide(rust.cuts["value_mask"]) == floor_mask, *kernel.given)
    # Digit 0 alone, or below any others: the next one, whose weight is its radix, to the last.
    second = SimpleNamespace(value=wide(word("other")), weight_bits=wide(word("radix")))
    for rest in ([], [second, digit]):
        proof = of_the_proof(rust, kernel, rest)
        # Before the loop; a step, from any state; after it.
        prove(holds(start, proof.low, False), *proof.given)
        taken = z3.substitute(holds(step, noise + proof.added, is_last), (product, part))
        taken = z3.substitute(taken, (shifted, z3.Extract(63, 0, part)))
        prove(taken, so_far, *kernel.given)
        low = z3.BitVec("low", WIDE)
        at_end = holds(state, *((low + proof.weighed, is_last) if rest else (low, False)))
        prove(wide(drawn) == proof.noise, at_end, *kernel.given)
        # What is made of any noise, and of any mask for the floor's value.
        names = (
            (z3.BitVec("noise", WIDE), wide(word("drawn"))),
            (floor_mask, wide(word("value_mask"))),
        )
        prove(wide(kernel.noisy) == z3.substitute(proof.noisy, *names), *proof.given)
    prove(start["at"].term == proof.second)
    prove(step["at"].term == state["at"].term + digit.own)
    prove_each([*kernel.claims, *rust.needed], so_far, *kernel.given)


def steps(rust: Rust) -> None:
    """A step keeps the value where it stays and the draw is outside the floor's slot, and is the
    ordinary draw elsewhere.
    """
    kernel, stays = draw(rust), z3.Bool("stays")
    given = kernel.kernel, Tape(), kernel.lane, kernel.own, Option(True, stays), BESIDE
    noisy = rust.call("kernel/mod", "draw", *given, **ONE).term
    in_slot = kernel.first.reached.term == 0
    kept = z3.And(stays, z3.Not(in_slot))
    prove(noisy == z3.If(kept, kernel.offset.term, kernel.noisy.term), *kernel.given)


def keeps(rust: Rust, limbs: int) -> None:
    """The keep number, of the last words, is below the number for values inside or at an end."""
    assume_operations(rust)
    offset, limit = word("offset"), word("range")
    tape, numbers = words("word", 2 + limbs), [words(name, limbs) for name in ("inside", "end")]
    plan = SimpleNamespace(words=2 + limbs, range=limit, limb_bits=LIMB_BITS)
    kernel = SimpleNamespace(plan=plan)
    keep = Struct(Type("kernel/mod.Keep"), {"0": Slice(map(Slice, zip(*numbers, strict=True)))})
    rows = Slice([Slice([word] * 16) for word in tape])
    stays = rust.call("kernel/mod", "kept", kernel, keep, rows, 3, offset, **ONE)
    bits = [z3.Extract(63, 1, word.term) for word in tape[2:]]
    number, inside, end = (
        z3.Concat(z3.BitVecVal(0, 1), *limbs)
        for limbs in (bits, *([z3.Extract(62, 0, x.term) for x in own] for own in numbers))
    )
    at_end = z3.Or(offset.term == 0, offset.term == limit.term)
    wanted = z3.ULT(number, z3.If(at_end, end, inside))
    small = [z3.LShR(x.term, LIMB_BITS) == 0 for own in numbers for x in own]
    inside_range = wide(offset) <= wide(limit), wide(limit) >= 1
    prove_each([stays == wanted, *rust.needed], *small, *inside_range)


def noiseless(rust: Rust) -> None:
    """Without digits there is no noise, and no word of tape."""
    offset, kernel = word("offset"), SimpleNamespace(digits=Slice([]))
    given = kernel, Slice([]), 0, offset, NO_STEP, BESIDE
    assert rust.call("kernel/mod", "draw", *given, **ONE) is offset


def samplers(rust: Rust, n: int) -> None:
    """The bit is 1 if the words, as one number, are below the threshold; or if it is certain."""
    tape, threshold, certain = words("word", n), words("threshold", n), word("certain")
    bernoulli = {"threshold": Slice(threshold), "certain": certain}
    kind = Type("bernoulli.Bernoulli")
    bit = rust.call(kind.name, "draw", Struct(kind, bernoulli), Slice([*tape, word("more")]))
    number, limit = (
        z3.Concat(z3.BitVecVal(0, 1), *(word.term for word in number))
        for number in (tape, threshold)
    )
    certainly = certain.term == 1
    prove(bit.term == flag(z3.Or(certainly, number < limit)), wide(certain) <= 1)


def reflect(rust: Rust) -> SimpleNamespace:
    """The reflection of a key for some period, with any word for the key's remainder."""
    assume_comparisons(rust)
    key, period, half = word("key"), word("period"), word("half")
    folded = Struct(Type("fold.Folded"), {"period": period, "half": half})
    built = rust.call("fold.Folded", "reflection", folded, word("before", "i128"))
    given = [wide(period) >= 1, wide(half) <= 1]
    claims = [wide(built.fields["shift"]) < wide(period), *rust.needed]
    prove_each(claims, *given, *rust.given)
    rust.needed.clear()
    rest, shift, reduced = word("rest"), word("shift"), []
    reflection = Struct(built.type, built.fields | {"shift": shift})
    given.append(wide(shift) < wide(period))
    rust.stubs["fold", "reduce"] = lambda *given: reduced.append(given) or rest
    rust.cuts = {"phase": None}
    offset = rust.call("fold.Reflection", "offset", reflection, key)
    del rust.stubs["fold", "reduce"]
    return SimpleNamespace(**locals())


def remainders(rust: Rust) -> None:
    """The remainder of any key by any period is what its reciprocal gives, or a period less."""
    at = reflect(rust)
    [(x, modulus)] = at.reduced
    reciprocal = z3.UDiv(z3.BitVecVal(-1, 64), at.period.term)
    prove(at.built.fields["reciprocal"].term == reciprocal, *at.given)
    product = z3.ZeroExt(64, at.key.term) * z3.ZeroExt(64, reciprocal)
    wanted = at.key.term - z3.Extract(127, 64, product) * at.period.term
    for easy in ([at.period.term == 3], []):
        prove(z3.And(x.term == wanted, modulus.term == at.period.term), *easy)
    # The same in integers, products of 64 bits being too much for bits: `m` is the reciprocal.
    k, p, m, q = z3.Ints("k p m q")
    prove(
        z3.And(k - q * p >= 0, k - q * p < 2 * p),
        *(k >= 0, k < 2**64, p >= 1, p < 2**64),
        *(m * p < 2**64, (m + 1) * p >= 2**64),
        *(q * 2**64 <= k * m, k * m < (q + 1) * 2**64),
    )
    x = word("x")
    less = z3.If(z3.ULT(x.term, at.period.term), x.term, x.term - at.period.term)
    reduced = rust.call("fold", "reduce", x, modulus)
    prove_each([reduced.term == less, *rust.needed], wide(x) < 2 * wide(at.period), *at.given)


def reflections(rust: Rust) -> None:
    """The remainder is moved, modulo the period, and reflected at its middle."""
    at = reflect(rust)
    prove_each(rust.needed, *at.given)
    period, half = wide(at.period), wide(at.half)
    # In half units from the lower bound on, x is 2 x + half, and the upper bound is the period.
    phase, offset = wide(word("phase")), wide(at.offset)
    given, falls = [phase < period, *at.given], 2 * phase + half > period
    prove(offset == phase, z3.Not(falls), *given)
    prove(offset == period - half - phase, falls, *given)
    phase, moved = wide(rust.cuts["phase"]), wide(at.rest) + wide(at.shift)
    given, wraps = [wide(at.rest) < period, *at.given], moved >= period
    prove(phase == moved, z3.Not(wraps), *given)
    prove(phase == moved - period, wraps, *given)


def folds(rust: Rust, kind: str) -> None:
    """Offsets are laid around the zero of `i64`, as noise wants them, and brought back."""
    offset, middle, least = word("offset"), word("middle"), word("least", kind)
    rust.stubs["fold.Reflection", "offset"] = lambda *_: offset
    wanted = Slice([None])
    centre, small = (
        number(1 << 63).wrapping_sub(middle),
        [wide(x) < 1 << 63 for x in (offset, middle)],
    )
    reflection, call = Struct(Type("fold.Reflection"), {}), partial(rust.call, "fold", T=Type(kind))
    call("fold_in", reflection, centre, Slice([word("count", kind)]), wanted)
    prove(wide(wanted[0]) == wide(offset) - wide(middle), *small)
    call("fold_out", reflection, least, Slice([word("count", "i64")]), wanted)
    above, top = wide(least) + wide(offset), wide(word("top", kind))
    prove(wide(wanted[0]) == above, above <= top)


IDENTITY = """{
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    { let y; unsafe { core::arch::asm!("/* {0} */", inlateout(reg) x => y,
        options(pure, nomem, nostack, preserves_flags)); } y }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    core::hint::black_box(x)
}"""


def barriers(rust: Rust) -> None:
    """The barrier, on any platform, hands on what it is given: this is its text."""
    body = rust.source.functions["ct", "barrier"].node.child_by_field_name("body").text.decode()
    written, wanted = (re.sub(r"//.*|\s", "", text) for text in (body, IDENTITY))
    if written != wanted:
        raise Refuted("the barrier")


def constant(name: str) -> int:
    """A constant of the tables."""
    [found] = re.findall(rf"const {name}: \w+ = (\d+);", source().texts["kernel/tables"])
    return int(found)


# Own words, room for guided thresholds, and steps: all that a digit's tables can have.
SHAPES = [
    (limbs, rows * constant("TABLE") - 1, steps)
    for limbs in (1, 2, 3)
    for rows in (1, 2)
    for steps in range(constant("MAX_STEPS") + 1)
]
Case = tuple[Any, ...]
CASES: list[Case] = [
    (barriers,),
    (comparisons,),
    *((operations, backend) for backend in BACKENDS),
    *((half_words, backend) for backend in ("avx2", "avx512", "neon")),
    *((keys, kind) for kind in COUNTS),
    *((blocks, kind, "portable") for kind in COUNTS),
    *((blocks, "i8", backend) for backend in ("avx2", "avx512", "neon")),
    *((limbs_of_digits, limbs) for limbs in (1, 2, 3)),
    *((thresholds, limbs) for limbs in (1, 2, 3)),
    (key_promises,),
    *((levels, limbs) for limbs in (1, 2, 3)),
    (guides, 1, 0, 0, "Upper"),
    *((guides, *shape, "Upper") for shape in SHAPES),
    *((guides, 1, 15, 1, lead) for lead in ("Shifted", "Ones")),
    (ways, "portable", "OneByOne"),
    (ways, "avx2", "ByGuide"),
    (ways, "avx512", "ByGuide"),
    (ways, "neon", "ByGuide"),
    (all_thresholds,),
    (noiseless,),
    (any_digits,),
    (steps,),
    *((keeps, limbs) for limbs in (1, 2, 3)),
    *((samplers, n) for n in (1, 2, 3, 17)),
    *((remainders,), (reflections,)),
    *((folds, kind) for kind in COUNTS),
]
#: For each file, and a proof with what it is for: changes to the file that the proof refutes.
FAULTS: dict[Case, list[tuple[str, str]]] = {
    ("ct", barriers): [
        ('"/* {0} */"', '"shr {0}, 1"'),
    ],
    ("ct", comparisons): [
        ("barrier(x.wrapping_sub(y) >> 63)", "barrier(x.wrapping_sub(y) >> 62)"),
        ("(!x & y)", "(x & y)"),
        ("(!x | y)", "y"),
        ("difference)) >> 63", "difference)) >> 62"),
        (".wrapping_sub(borrow)", ".wrapping_add(borrow)"),
        ("bit.wrapping_neg()", "bit"),
        ("no ^ (mask & (yes ^ no))", "yes ^ (mask & (yes ^ no))"),
        ("borrow(x, y, 0)), x, y)", "borrow(x, y, 0)), y, x)"),
        ("select(mask(borrow(x, y, 0))", "select(mask(less_limb(x, y))"),
    ],
    ("kernel/vector", operations, "portable"): [
        ("self ^ other", "self"),
        ("ct::mask(ct::borrow(self, other, 0))", "ct::mask(ct::less_limb(self, other))"),
        ("(self.below(other), self, other)", "(self.less(other), self, other)"),
        ("(self.below(other), other, self)", "(self.below(other), self, other)"),
        ("self << bits", "self >> bits"),
        ("ct::mask(ct::less_limb(self, other))", "ct::less_limb(self, other)"),
        ("self.wrapping_add(mask)", "self.wrapping_sub(mask)"),
        ("ct::select(mask, yes, no)", "ct::select(mask, no, yes)"),
    ],
    ("kernel/avx2", operations, "avx2"): [
        ("Self::splat(1 << 63)", "Self::splat(1 << 62)"),
        ("_mm256_cmpgt_epi64, other, self", "_mm256_cmpgt_epi64, self, other"),
        ("_mm256_blendv_epi8, no, yes", "_mm256_blendv_epi8, yes, no"),
        ("_mm256_srlv_epi64", "_mm256_sllv_epi64"),
        ("$intrinsic($($words.1),*)", "$intrinsic($($words.0),*)"),
        ("_mm256_loadu_si256(words.add(1))", "_mm256_loadu_si256(words)"),
        ("self.add(mask)", "self.sub(mask)"),
    ],
    ("kernel/avx2", half_words, "avx2"): [
        ("_mm256_min_epu32, self, other", "_mm256_min_epu32, self, self"),
        ("0xFFFF_FFFE", "0xFFFF_FFFF"),
        ("0x0008_1018", "0x0008_1017"),
        ("bytes.shr(16)", "bytes.shr(24)"),
        ("0xDD", "0x88"),
        ("odd(words.2, words.3)", "odd(words.3, words.2)"),
        ("_mm256_unpackhi_epi32(low.0, high.0)", "_mm256_unpackhi_epi32(low.0, high.1)"),
        ("_mm256_cmpgt_epi32, node, key", "_mm256_cmpgt_epi32, key, node"),
        ("_mm256_add_epi32, self, weight", "_mm256_add_epi32, self, key"),
        ("self.either(3, first, second)", "self.either(2, first, second)"),
        ("self.either(4, first, second)", "self.either(3, first, second)"),
        ("0x8080_8000", "0x8080_0000"),
        ("_mm256_blendv_ps(first, second,", "_mm256_blendv_ps(second, first,"),
        ("$intrinsic($($halves.1),*)", "$intrinsic($($halves.0),*)"),
    ],
    ("kernel/avx512", operations, "avx512"): [
        ("_mm512_cmplt_epu64_mask", "_mm512_cmplt_epi64_mask"),
        ("_mm512_cmplt_epi64_mask, self, other", "_mm512_cmplt_epi64_mask, other, self"),
        ("_mm512_mask_blend_epi64, mask, no, yes", "_mm512_mask_blend_epi64, mask, yes, no"),
        ("ct::barrier(1)", "ct::barrier(2)"),
        ("_mm512_srlv_epi64", "_mm512_sllv_epi64"),
        ("$intrinsic($($words.1),*)", "$intrinsic($($words.0),*)"),
    ],
    ("kernel/avx512", half_words, "avx512"): [
        ("0xDD", "0x88"),
        ("_mm512_unpackhi_epi32(low.0, high.0)", "_mm512_unpackhi_epi32(high.0, low.0)"),
        ("_mm512_cmplt_epi32_mask(key.0, node.0)", "_mm512_cmplt_epi32_mask(node.0, key.0)"),
        ("below, self.0, weight.0", "below, key.0, weight.0"),
        ("_mm_loadu_si128(cells.add(1))", "_mm_loadu_si128(cells)"),
        ("Self::load(&tables[1])", "Self::load(&tables[0])"),
        ("_mm512_srlv_epi32", "_mm512_srlv_epi64"),
        ("_mm512_min_epu32", "_mm512_or_si512"),
        ("zeros, Self::splat(1)", "zeros, Self::splat(0)"),
    ],
    ("kernel/neon", operations, "neon"): [
        ("vcltq_u64", "vcltq_s64"),
        ("vreinterpretq_s64_u64(other[i])", "vreinterpretq_s64_u64(one[i])"),
        ("vbslq_u64, mask, yes, no", "vbslq_u64, mask, no, yes"),
        ("-i64::from(bits)", "i64::from(bits)"),
        ("$intrinsic($($words.0[i]),*)", "$intrinsic($($words.0[0]),*)"),
        ("vld1q_u64(words.add(2 * i))", "vld1q_u64(words.add(i))"),
        ("vst1q_u64(words.add(2 * i), register)", "vst1q_u64(words.add(6 - 2 * i), register)"),
        ("self.add(mask)", "self.sub(mask)"),
    ],
    ("kernel/neon", half_words, "neon"): [
        ("vuzp2q_u32(vreinterpretq_u32_u64(first)", "vzip2q_u32(vreinterpretq_u32_u64(first)"),
        ("words.0[2 * i + 1]]", "words.0[2 * i]]"),
        ("0 => vzip1q_u32", "1 => vzip1q_u32"),
        ("vcltq_u32, key, node", "vcltq_u32, node, key"),
        ("vminq_u32, self, other", "vminq_u32, self, self"),
        ("zeros, Self::splat(1)", "zeros, Self::splat(0)"),
        ("vandq_u32, below", "vandq_u32, key"),
        ("-bits.cast_signed()", "bits.cast_signed()"),
        ("0x8080_8000", "0x8080_0000"),
        ("vdupq_n_u8(64)", "vdupq_n_u8(32)"),
        ("vqtbx4q_u8(vreinterpretq_u8_u32(first.0[i])", "vqtbx4q_u8(vdupq_n_u8(0)"),
        ("0x0302_0100", "0x0302_0001"),
        ("0x0404_0404", "0x0404_0400"),
    ],
    ("kernel/count", keys, "i64"): [
        ("SIGN: u64 = 1 << 63", "SIGN: u64 = 1 << 62"),
    ],
    ("kernel/count", keys, "i8"): [
        ("i8, i64, SIGN;", "i8, u8, SIGN;"),
    ],
    ("kernel/count", keys, "i16"): [
        ("i16, i64, SIGN;", "i16, i64, 0;"),
    ],
    ("kernel/count", keys, "u32"): [
        ("(key ^ $flip) as $t", "(!key ^ $flip) as $t"),
    ],
    ("kernel/mod", blocks, "i8", "portable"): [
        (".max(base).sub(base)", ".sub(base)"),
        ("sub(base).min(range)", "sub(base)"),
        (
            "(kernel, words, lane, offset, stays, beside)",
            "(kernel, words, 0, offset, stays, beside)",
        ),
        ("&mut keys[lane..]", "&mut keys[0..]"),
        ("T::from_key(key);\n    }\n}", "T::from_key(key ^ 1);\n    }\n}"),
    ],
    ("kernel/mod", blocks, "i8", "avx2"): [
        ("keys.iter_mut().zip(&*block)", "keys.iter_mut().rev().zip(&*block)"),
    ],
    ("kernel/mod", limbs_of_digits, 2): [
        ("words[limb][lane..]", "words[0][lane..]"),
        ("[lane..]), &own, tie)", "[lane..]), &own, own[0])"),
        ("V::load(&words[0][lane..]), &own", "V::load(&words[1][lane..]), &own"),
    ],
    ("kernel/search", thresholds, 2): [
        ("tie.less(last)", "tie.less(limbs[0])"),
        (".zip(limbs).rev()", ".zip(limbs)"),
        ("own.decrease(below)", "own"),
        ("V::splat(threshold[LIMBS])", "V::splat(threshold[0])"),
        ("reached = reached.decrease(below);", ""),
    ],
    ("kernel/search", levels, 3): [
        ("own[FULL - 1].less", "own[0].less"),
        ("V::splat(count - level.all)", "V::splat(count)"),
        ("level::<2, LIMBS, V>(nested, count, inner, own, tie)", "inner"),
        ("level::<3, LIMBS, V>(nested, count, all, own, tie)", "all"),
        ("&own[EQUAL..]", "&own[..]"),
        ("&limbs[EQUAL..]", "&limbs[..]"),
    ],
    ("kernel/search", guides, 1, 15, 1, "Shifted"): [
        (".min(H::splat((1 << CELL_BITS) - 1))", ""),
        ("(1 << CELL_BITS) - 1", "(1 << CELL_BITS) - 2"),
    ],
    ("kernel/search", guides, 1, 15, 1, "Ones"): [
        ("H::upper(first).leading_ones()", "key.leading_ones()"),
    ],
    ("kernel/search", guides, 2, 15, 2, "Upper"): [
        ("H::upper(first).shr(1)", "H::upper(first)"),
        ("one_by_one::<0, LIMBS, V>(&guide.single, reached, own, tie)", "reached"),
        ("nested(guide, digit.count as u64, own, tie)", "V::splat(digit.count as u64)"),
        ("path.step(key, entry(path", "path.step(key, entry(key"),
        ("enumerate().rev()", "enumerate()"),
        ("1 << level", "1"),
        ("key.shr(31 - CELL_BITS)", "key.shr(30 - CELL_BITS)"),
        ("end(path, last, guide.wide)", "end(path, &ends[0], guide.wide)"),
        ("entry(path, &limb.high, wide)", "entry(path, &limb.low, wide)"),
        ("reached.sub(H::join(path, H::splat(0)))", "reached"),
        ("H::splat(0))).decrease(below)", "H::splat(0)))"),
    ],
    ("kernel/search", guides, 1, 31, 0, "Upper"): [
        ("path.look_up_either(&tables.0)", "path.look_up(&tables.0[0])"),
    ],
    ("kernel/mod", any_digits): [
        ("reached.less(one)", "reached.less(zero)"),
        ("as u64 + 1 - plan.sign_mask", "as u64 - plan.sign_mask"),
        ("V::select(not_zero, shared.and(V::splat(plan.sign_mask)), zero)", "shared.and(one)"),
        ("V::select(not_zero, reached.sub(sign), zero)", "reached.sub(sign)"),
        ("reached.sub(sign)", "reached"),
        ("low.and(V::splat(plan.low_mask))", "low"),
        ("last = digit.count;", "last = digit.count - 1;"),
        ("at += digit.limbs;", "at += 1;"),
        ("noise.add(top.shl(digit.shift))", "noise.add(top)"),
        ("as u64)), noise, range)", "as u64)), noise, noise)"),
        ("offset, range.sub(offset))", "offset, range)"),
        ("falls, offset, range", "falls, range, range"),
        ("drawn.xor(zero.sub(sign))", "drawn"),
        ("V::select(fits, moved, ", "V::select(falls, moved, "),
        ("V::select(falls, zero, range))", "range)"),
        ("shared.and(V::splat(plan.sign_mask))", "shared.and(V::splat(2))"),
        (".checked_shr(64 - plan", ".checked_shr(63 - plan"),
        ("V::splat(value_mask)).min(range);", "V::splat(value_mask));"),
        ("V::select(in_floor, value, noisy)", "noisy"),
        ("words[1 + first.limbs]", "words[first.limbs]"),
        ("shared.shr(shift)", "shared"),
        ("let mut last = 1", "let mut last = 0"),
        ("let mut at = 1 + first.limbs", "let mut at = 1"),
        ("V::load(&words[0][lane..]);\n    let tie", "V::load(&words[0]);\n    let tie"),
    ],
    ("kernel/mod", steps): [
        ("V::select(stays, offset, noisy)", "V::select(stays, range, noisy)"),
        (
            "V::select(in_floor, value, noisy)\n}",
            "let noisy = V::select(in_floor, value, noisy);\n"
            "stays.map_or(noisy, |stays| V::select(stays, offset, noisy))\n}",
        ),
    ],
    ("kernel/mod", keeps, 2): [
        (".decrease(below)", ""),
        (".rev()", ""),
        ("offset.sub(one).below(", "offset.below("),
        ("V::splat(plan.range).sub(one));", "V::splat(plan.range));"),
        ("V::splat(limb[0]), V::splat(limb[1])", "V::splat(limb[0]), V::splat(limb[0])"),
        ("words[plan.words - keep.0.len()..]", "words[..]"),
    ],
    ("Statement", any_digits): [
        ("reached <? count (first pl)", "reached <=? count (first pl)"),
        ("if not_zero then reached - sign else 0", "reached - sign"),
        ("d :: _ => 2 ^ weight_bits d end", "_ => 2 ^ word_bits pl end"),
        ("k * 2 ^ weight_bits d + weigh", "k * 2 ^ weight_bits top + weigh"),
        ("(skipn (own d) words) v", "words v"),
        ("if last values 0 <? count top then sum else range pl", "sum"),
        ("free mod 2 ^ value_bits pl", "free"),
        ("not_zero && (sign =? 1)", "sign =? 1"),
        ("Z.max (x - Z.min noise x) 1 - 1", "x - Z.min noise x"),
        ("Z.min noise (range pl - x)", "Z.min noise (range pl)"),
        ("(shared mod 2)", "(v mod 2)"),
        ("(hd 0 later) x", "(hd 0 words) x"),
    ],
    ("Statement", thresholds, 2): [
        ("word / 2 ^ (word_bits pl - limb_bits pl)", "word mod 2 ^ limb_bits pl"),
        ("(if less words limbs v then 1 else 0)", "0"),
        ("| _, [t] => v <? t", "| _, [t] => v <=? t"),
        ("negb (less words t v)", "less words t v"),
    ],
    ("Statement", blocks, "i8", "portable"): [
        ("Z.max x lower - lower", "x - lower"),
        ("lower + draw (firstn", "draw (firstn"),
        ("release lower (skipn words tape) xs", "release lower tape xs"),
    ],
    ("bernoulli", samplers, 2): [
        (".zip(&self.threshold)\n            .rev()", ".zip(&self.threshold)"),
        ("below | self.certain", "below"),
        ("ct::borrow(*word, *threshold, below)", "ct::borrow(*threshold, *word, below)"),
        ("ct::borrow(*word, *threshold, below)", "ct::borrow(*word, *threshold, 0)"),
    ],
    ("fold", remainders): [
        ("u64::MAX / self.period", "u64::MAX / self.period - 1"),
        ("(product >> 64)", "(product >> 63)"),
        ("quotient.wrapping_mul(self.period)", "quotient"),
        ("ct::borrow(x, period, 0) ^ 1", "ct::borrow(x, period, 0)"),
    ],
    ("fold", reflections): [
        ("ct::borrow(rest, room, 0) ^ 1", "ct::borrow(room, rest, 0)"),
        ("(self.period - half) / 2,", "(self.period - half) / 2 + 1,"),
        ("(self.period - half) / 2,", "self.period / 2,"),
        ("mirror: self.period - half,", "mirror: self.period,"),
        ("ct::borrow(self.turn, phase, 0)", "ct::borrow(phase, self.turn, 0)"),
    ],
    ("fold", folds, "i32"): [
        ("centre.wrapping_add(", "centre.wrapping_sub("),
        ("least.to_key().wrapping_add(", "least.to_key().wrapping_sub("),
    ],
}


def title(case: Any) -> str | None:
    """The name of a proof with what it is for."""
    if isinstance(case, str):
        return None
    return "-".join([case[0].__name__, *map(str, case[1:])])


def run(case: Case, source: Source) -> None:
    proof, *arguments = case
    proof(Rust(source), *arguments)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_proof(case: Case) -> None:
    run(case, source())


@pytest.mark.parametrize(
    ("file", "case", "old", "new"),
    [(file, case, *change) for (file, *case), changes in FAULTS.items() for change in changes],
    ids=title,
)
def test_a_fault_is_refuted(file: str, case: Case, old: str, new: str) -> None:
    with pytest.raises(Refuted):
        run(case, source(file, old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("drawn.xor(zero.sub(sign))", "if not_zero { offset } else { zero }"),
        ("V::select(falls, zero, range)", "V::load(&words[top..])"),
        ("V::select(in_floor, value, noisy)", "value.unheard_of(noisy)"),
    ],
)
def test_a_jump_or_an_address_that_is_secret_is_no_term(old: str, new: str) -> None:
    with pytest.raises((TypeError, AttributeError)):
        run((any_digits,), source("kernel/mod", old, new))


# --- The reader, on numbers, against the known answers of the compiled library. ---


def value(x: Int) -> int:
    found = z3.simplify(x.term)
    return found.as_signed_long() if x.type[0] == "i" else found.as_long()


def by_key(cuts: list[list[int]], steps: int) -> tuple[list[int], list[list[int]]]:
    """Return the keys that so many steps tell apart, and the thresholds: first those with them."""
    guided: dict[int, list[int]] = {}
    for cut in cuts:
        key = cut[0] >> 32
        crowd = sum(other >> 26 == key >> 26 for other in guided)
        if key not in guided and crowd < 2**steps and len(guided) < 31:
            guided[key] = cut
    return list(guided), [*guided.values(), *(cut for cut in cuts if cut not in guided.values())]


def guide_of(cuts: list[list[int]], steps: int = 2) -> SimpleNamespace:
    keys, cuts = by_key(cuts, steps)
    cells = Slice([number(sum(key >> 26 > cell for key in keys), "u8") for cell in range(32)])
    return guide(keys, cuts, cells, steps)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("file", "name", "own", "wide"),
    [
        ("keys", "int8 (-100, 100) epsilon 0.5 sensitivity 1", {1}, False),
        ("keys", "uint16 (0, 65535) epsilon 1 sensitivity 1", {1}, False),
        ("keys", "uint8 (0, 1) epsilon 1 sensitivity 1", {1}, False),
        ("keys", "int64 None epsilon 0.1 sensitivity 1", {1, 2}, True),
        ("tapes", "uint64 (0, 1000) epsilon 1e-38 sensitivity 1", {3}, False),
    ],
)
def test_noise_is_that_of_the_known_answers(
    backend: str, file: str, name: str, own: set[int], wide: bool
) -> None:
    document = json.loads((ROOT / f"vectors/{file}.json").read_text())
    known = check.Plan(document["plans"][name])
    vectors = [vector for vector in document["vectors"] if vector["plan"] == name]
    counts, noisy = (
        [int(x) for v in vectors for x in v[field]][:16] for field in ("counts", "noisy")
    )
    tapes = [tape for vector in vectors for tape in check.tapes(known, vector)][:16]
    digits, tables = [], []
    for digit in known.digits:
        places = [LIMB_BITS * limb for limb in reversed(range(1 + digit.own))]
        cuts = [[cut >> place & 2**LIMB_BITS - 1 for place in places] for cut in digit.thresholds]
        shift = digit.weight.bit_length() - 1
        digits.append(
            SimpleNamespace(
                limbs=digit.own,
                count=len(cuts),
                shift=shift,
                thresholds=rows(cuts),
                guide=guide_of(cuts),
            )
        )
        tables.append(SimpleNamespace(own=digit.own, weight_bits=shift, thresholds=cuts))
    assert {digit.own for digit in known.digits} == own
    assert any(digit.guide.wide for digit in digits) == wide
    plan = SimpleNamespace(
        range=number(known.range),
        limb_bits=LIMB_BITS,
        sign_mask=number(1),
        low_mask=number((1 << digits[1].shift) - 1 if len(digits) > 1 else 2**64 - 1),
        floor_value_bits=known.value_bits,
    )
    kind = re.sub("u?int", lambda found: found[0][0], document["plans"][name]["dtype"])
    block = Slice(number(count, kind) for count in counts)
    rust = Rust(source())
    least = rust.call(kind, "to_key", number(known.lower, kind))
    generics = {"V": BACKENDS[backend].type, "T": Type(kind)}
    kernel = SimpleNamespace(plan=plan, digits=Slice(digits))
    words = Slice(Slice(map(number, row)) for row in zip(*tapes, strict=True))
    rust.call("kernel/mod", "noise_block", kernel, NO_STEP, least, words, block, BESIDE, **generics)
    assert [*map(value, block)] == noisy
    # The draw of the proof, read as Coq, gives the same.
    plan = {"range": known.range, "value_bits": known.value_bits}
    proof = statement(rust, **plan, first=tables[0], rest=tables[1:])
    assert proof.words == known.words
    assert proof.release(known.lower, [word for tape in tapes for word in tape], counts) == noisy


@pytest.mark.parametrize("twice", [(0, 2), (-7, 40), (1, 1 + 2**40), (0, 0), (-(2**63), 2**63 - 1)])
def test_folding_is_that_of_the_library(twice: tuple[int, int]) -> None:
    rng, rust = random.Random(2), Rust(source())
    counts = [-(2**63), 2**63 - 1, *(rng.randrange(-(2**63), 2**63) >> i for i in range(60))]
    period, least = max(twice[1] - twice[0], 1), -(-twice[0] // 2)
    half = number(twice[0] % 2)
    fields = {"period": number(period), "half": half}
    folded = Struct(Type("fold.Folded"), fields)
    built = rust.call("fold.Folded", "reflection", folded, number(0, "i128"))
    shift = number(-(least + 2**63) % period)
    reflection = Struct(built.type, built.fields | {"shift": shift})
    places = Slice([None] * len(counts))
    given = Slice([number(count, "i64") for count in counts]), places
    # Offsets, for a least output of 0.
    rust.call("fold", "fold_in", reflection, number(2**63), *given, T=Type("i64"))
    noiseless = np.empty(len(counts), np.int64)
    _core.Folded(None, twice).release_into(np.array(counts), noiseless, None, 1)
    assert [least + value(place) for place in places] == noiseless.tolist()
