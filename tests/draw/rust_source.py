"""A reader of Rust: runs functions of ``rust/core/src`` on bit vectors of z3 instead of numbers.

So what ``test_primitives.py`` proves of a function is proved of what is written there: a change to
the source changes what is proved, and source that cannot be read is an error. Trusted are, besides
z3, the reader (``test_primitives.py`` compares it with the compiled library), the meaning of the
intrinsics (:data:`INTRINSICS`) and that of the methods of Rust's standard library (:class:`Int` and
what follows it).
"""

import operator
import re
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import z3

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rust/core/src/draw"
KERNEL = ["mod", "count", "search", "tables", "vector", "avx2", "avx512", "neon"]
FILES = ["ct", "bernoulli", "fold", *(f"kernel/{name}" for name in KERNEL)]


# --- Values: lengths, places and counts that are known are Python ints, words are `Int`. ---


@dataclass(frozen=True)
class Int:
    """A number of a Rust integer type, with those methods of the standard library that are used."""

    type: str
    term: z3.BitVecRef

    def cast(self, to: str) -> "Int":
        more = width(to) - self.term.size()
        if more > 0:
            return Int(to, (z3.SignExt if self.type[0] == "i" else z3.ZeroExt)(more, self.term))
        return Int(to, z3.Extract(width(to) - 1, 0, self.term) if more else self.term)

    def same(self, other: Any) -> z3.BitVecRef:
        """The other operand, of the same width: a number without a type, or how far to shift."""
        return convert(other, self.type).term

    def wrapping_add(self, other: Any) -> "Int":
        return Int(self.type, self.term + self.same(other))

    def wrapping_sub(self, other: Any) -> "Int":
        return Int(self.type, self.term - self.same(other))

    def wrapping_mul(self, other: Any) -> "Int":
        return Int(self.type, self.term * self.same(other))

    def wrapping_neg(self) -> "Int":
        return Int(self.type, -self.term)

    def checked_shr(self, bits: Any) -> "Option":
        bits = self.same(bits)
        return Option(z3.ULT(bits, self.term.size()), Int(self.type, z3.LShR(self.term, bits)))

    def cast_signed(self) -> "Int":
        return self.cast("i" + self.type[1:])

    def into(self) -> "Int":
        return self  # Parameters cast what they are given.


@dataclass(frozen=True)
class Option:
    present: Any
    value: Any

    def unwrap_or(self, other: Any) -> Int:
        value: Int = self.value
        return Int(value.type, z3.If(self.present, value.term, value.same(other)))


@dataclass(frozen=True)
class Type:
    """A type that the source gives methods to: ``u64``, or ``kernel/avx2.Words``."""

    name: str

    def __call__(self, *fields: Any) -> "Struct":
        return Struct(self, {str(i): value for i, value in enumerate(fields)})


@dataclass(frozen=True)
class Struct:
    type: Type
    fields: dict[str, Any]


class Items:
    """An iterator."""

    def __init__(self, items: Any) -> None:
        self.items = list(items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def zip(self, other: Any) -> "Items":
        return Items(zip(self, other, strict=False))

    def rev(self) -> "Items":
        return Items(reversed(self.items))

    def enumerate(self) -> "Items":
        return Items(enumerate(self))

    def step_by(self, step: int) -> "Items":
        return Items(self.items[::step])

    def fold(self, value: Any, step: Callable[[Any, Any], Any]) -> Any:
        for item in self:
            value = step(value, item)
        return value


@dataclass
class Induction:
    """Any number of items like this one: their loop is run for one of them, from any state."""

    item: Any
    # The variables that the loop assigns, before it and after a step.
    start: dict[str, Any] | None = None
    step: dict[str, Any] | None = None


class Slice:
    """A view of an array. Places outside are errors, as in Rust."""

    def __init__(self, items: list[Any], start: int = 0, stop: int | None = None) -> None:
        self.items, self.start = items, start
        self.stop = len(items) if stop is None else stop

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items[self.start : self.stop])

    def place(self, at: int, end: int) -> int:
        if not 0 <= at < end:
            raise IndexError(f"place {at} of {self.len()}")
        return self.start + at

    def __getitem__(self, at: int) -> Any:
        return self.items[self.place(at, self.len())]

    def __setitem__(self, at: int, value: Any) -> None:
        self.items[self.place(at, self.len())] = value

    def part(self, start: int | None, stop: int | None) -> "Slice":
        past = self.len() + 1
        stop = self.place(self.len() if stop is None else stop, past)
        return Slice(self.items, self.place(start or 0, past), stop)

    def len(self) -> int:
        return self.stop - self.start

    def into_iter(self) -> Items:
        return Items(self)

    iter = into_iter

    def map(self, step: Callable[[Any], Any]) -> "Slice":
        return Slice([*map(step, self)])

    def iter_mut(self) -> Items:
        return Items(Cell(self, at) for at in range(self.len()))

    def split_first(self) -> Option:
        return Option(self.len() > 0, (self[0], self.part(1, None)) if self.len() else None)

    def as_ptr(self) -> "Pointer":
        return Pointer(self)

    as_mut_ptr = as_ptr


@dataclass(frozen=True)
class Cell:
    """A reference to a place that can be written to."""

    place: Slice
    at: int


@dataclass(frozen=True)
class Pointer:
    """A pointer to registers of so many words each."""

    words: Slice
    size: int = 1
    at: int = 0

    def cast(self, to: Type | None = None) -> "Pointer":
        sizes = {"__m128i": 1, "__m256i": 4, "__m512i": 8}
        return Pointer(self.words, sizes[to.name], self.at) if to else self

    def add(self, registers: int) -> "Pointer":
        return Pointer(self.words, self.size, self.at + registers * self.size)


def width(name: str) -> int:
    return 64 if name.endswith("size") else int(name[1:])


def is_integer(name: str) -> bool:
    return re.fullmatch(r"[iu](8|16|32|64|128|size)", name) is not None


def number(value: int, kind: str = "u64") -> Int:
    return Int(kind, z3.BitVecVal(value, width(kind)))


def convert(value: Any, to: str) -> Int:
    """A number without a type, or one of a narrower type, as one of this type."""
    if not isinstance(value, Int):
        return number(value, to)
    assert value.term.size() <= width(to), f"{value.type} for {to}"
    return value.cast(to)


# --- What the intrinsics do, after Intel's and Arm's. A register is a tuple of words. ---

Register = tuple[z3.BitVecRef, ...]


def each(meaning: Callable[..., z3.BitVecRef]) -> Callable[..., Register]:
    return lambda *registers: tuple(map(meaning, *registers))


def halves(register: Register) -> list[z3.BitVecRef]:
    """The half-words of a register, the lowest first."""
    return [z3.Extract(low + 31, low, word) for word in register for low in (0, 32)]


def join(parts: Any) -> Register:
    parts = list(parts)
    return tuple(map(z3.Concat, parts[1::2], parts[::2]))


def each_half(meaning: Callable[..., z3.BitVecRef]) -> Callable[..., Register]:
    return lambda *registers: join(map(meaning, *map(halves, registers)))


def unpack(first: int) -> Callable[[Register, Register], Register]:
    """Two half-words of each part of 128 bits of `x`, from this one on, beside those of `y`."""

    def unpacked(x: Register, y: Register) -> Register:
        pairs = list(zip(halves(x), halves(y), strict=True))
        return join(
            half
            for i in range(0, len(pairs), 4)
            for pair in pairs[i + first :][:2]
            for half in pair
        )

    return unpacked


def shuffle(x: Register, y: Register, control: int) -> Register:
    """Two half-words of each part of 128 bits of `x`, then of `y`, each chosen by two bits."""
    places = [control >> 2 * i & 3 for i in range(4)]
    x_parts, y_parts = halves(x), halves(y)
    return join(
        parts[i + place]
        for i in range(0, len(x_parts), 4)
        for parts, place in zip((x_parts, x_parts, y_parts, y_parts), places, strict=True)
    )


def bits(mask: z3.BitVecRef) -> list[z3.BoolRef]:
    return [z3.Extract(i, i, mask) == 1 for i in range(mask.size())]


def load(source: Pointer) -> Register:
    if source.words[0].type == "u32":
        return join(source.words[2 * source.at + i].term for i in range(2 * source.size))
    return tuple(source.words[source.at + i].term for i in range(source.size))


def load_bytes(source: Pointer) -> Register:
    return join_bytes(source.words[16 * source.at + i].term for i in range(16))


def bytes_of(register: Register) -> list[z3.BitVecRef]:
    """The bytes of a register, the lowest first."""
    return [z3.Extract(low + 7, low, word) for word in register for low in range(0, 64, 8)]


def join_bytes(parts: Any) -> Register:
    parts = list(parts)
    return tuple(z3.Concat(*reversed(parts[i : i + 8])) for i in range(0, len(parts), 8))


def shuffle_bytes(table: list[z3.BitVecRef], places: list[z3.BitVecRef]) -> list[z3.BitVecRef]:
    """For each place of 16, the table's byte there, or 0 where its highest bit is set."""
    return [z3.If(place < 0, 0, look_up(place, *table[:16])) for place in places[:16]]


def store(target: Pointer, register: Register) -> None:
    for i, term in enumerate(register):
        target.words[target.at + i] = Int("u64", term)


def set_all(bit: z3.BoolRef, width: int = 64) -> z3.BitVecRef:
    return z3.If(bit, z3.BitVecVal(-1, width), z3.BitVecVal(0, width))


def blend_bytes(x: z3.BitVecRef, y: z3.BitVecRef, mask: z3.BitVecRef) -> z3.BitVecRef:
    """Bytes of `y` where the highest bit of the mask's byte is set, else of `x`."""
    places = [(8 * i + 7, 8 * i) for i in reversed(range(8))]
    return z3.Concat(
        *(
            z3.If(z3.Extract(top, top, mask) == 1, z3.Extract(top, low, y), z3.Extract(top, low, x))
            for top, low in places
        )
    )


def unsigned_min(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(z3.ULT(x, y), x, y)


def unsigned_max(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(z3.ULT(x, y), y, x)


def look_up(place: z3.BitVecRef, *table: z3.BitVecRef) -> z3.BitVecRef:
    """The entry of a table at this place, from whose low bits it is chosen."""
    if z3.is_bv_value(known := z3.simplify(place)):
        return table[known.as_long() % len(table)]
    for odd in bits(place)[: len(table).bit_length() - 1]:
        table = tuple(z3.If(odd, *pair) for pair in zip(table[1::2], table[::2], strict=True))
    return table[0]


def shift_by_byte(x: z3.BitVecRef, by: z3.BitVecRef) -> z3.BitVecRef:
    """Shifted left by the lowest byte, a signed one, or right if that is negative."""
    left = z3.SignExt(x.size() - 8, z3.Extract(7, 0, by))
    return z3.If(left < 0, z3.LShR(x, -left), x << left)


def load_table(source: Pointer, size: int) -> list[z3.BitVecRef]:
    """So many bytes."""
    return [
        z3.Extract(low + 7, low, item.term)
        for item in source.words.part(source.at, None)
        for low in range(0, item.term.size(), 8)
    ][:size]


def look_up_bytes(table: list[z3.BitVecRef], places: Register, old: Register) -> Register:
    """For each place, the table's byte there, or the old one where the table has none."""
    return join_bytes(
        z3.If(z3.ULT(place, len(table)), look_up(place, *table), byte)
        for place, byte in zip(bytes_of(places), bytes_of(old), strict=True)
    )


INTRINSICS: dict[str, Callable[..., Any]] = {
    "_mm256_set1_epi64x": lambda x: (x.term,) * 4,
    "_mm256_loadu_si256": load,
    "_mm256_storeu_si256": store,
    "_mm256_add_epi64": each(operator.add),
    "_mm256_sub_epi64": each(operator.sub),
    "_mm256_and_si256": each(operator.and_),
    "_mm256_xor_si256": each(operator.xor),
    # Shifts by 64 and more give 0, in z3 as well.
    "_mm256_sllv_epi64": each(operator.lshift),
    "_mm256_srlv_epi64": each(z3.LShR),
    "_mm256_cmpgt_epi64": each(lambda x, y: set_all(x > y)),
    "_mm256_blendv_epi8": each(blend_bytes),
    "_mm256_set1_epi32": lambda x: join([x.term] * 8),
    "_mm256_add_epi32": each_half(operator.add),
    "_mm256_sub_epi32": each_half(operator.sub),
    "_mm256_cmpgt_epi32": each_half(lambda x, y: set_all(x > y, 32)),
    "_mm256_permutevar8x32_epi32": lambda x, places: join(
        look_up(place, *halves(x)) for place in halves(places)
    ),
    "_mm256_unpacklo_epi32": unpack(0),
    "_mm256_unpackhi_epi32": unpack(2),
    "_mm256_castsi256_ps": lambda x: x,
    "_mm256_castps_si256": lambda x: x,
    "_mm256_shuffle_ps": shuffle,
    "_mm256_sllv_epi32": each_half(operator.lshift),
    "_mm256_srlv_epi32": each_half(z3.LShR),
    "_mm256_or_si256": each(operator.or_),
    "_mm256_blendv_ps": each_half(lambda x, y, mask: z3.If(mask < 0, y, x)),
    "_mm_loadu_si128": load_bytes,
    "_mm256_broadcastsi128_si256": lambda x: x + x,
    "_mm256_shuffle_epi8": lambda x, places: join_bytes(
        byte for i in (0, 16) for byte in shuffle_bytes(bytes_of(x)[i:], bytes_of(places)[i:])
    ),
    "_mm512_set1_epi64": lambda x: (x.term,) * 8,
    "_mm512_loadu_si512": load,
    "_mm512_storeu_si512": store,
    "_mm512_add_epi64": each(operator.add),
    "_mm512_sub_epi64": each(operator.sub),
    "_mm512_and_si512": each(operator.and_),
    "_mm512_sllv_epi64": each(operator.lshift),
    "_mm512_srlv_epi64": each(z3.LShR),
    "_mm512_xor_si512": each(operator.xor),
    "_mm512_cmplt_epu64_mask": lambda x, y: as_mask(each(z3.ULT)(x, y)),
    "_mm512_cmplt_epi64_mask": lambda x, y: as_mask(each(operator.lt)(x, y)),
    "_mm512_mask_sub_epi64": lambda source, mask, x, y: each(z3.If)(
        bits(mask), each(operator.sub)(x, y), source
    ),
    "_mm512_set1_epi32": lambda x: join([x.term] * 16),
    "_mm512_srlv_epi32": each_half(z3.LShR),
    "_mm512_cvtepu8_epi32": lambda x: join(z3.ZeroExt(24, byte) for byte in bytes_of(x)),
    "_mm512_permutexvar_epi32": lambda places, x: join(
        look_up(place, *halves(x)) for place in halves(places)
    ),
    "_mm512_permutex2var_epi32": lambda x, places, y: join(
        look_up(place, *halves(x), *halves(y)) for place in halves(places)
    ),
    "_mm512_cmplt_epi32_mask": lambda x, y: as_mask([*map(operator.lt, halves(x), halves(y))]),
    "_mm512_mask_add_epi32": lambda source, mask, x, y: join(
        z3.If(bit, a + b, old)
        for old, bit, a, b in zip(halves(source), bits(mask), halves(x), halves(y), strict=True)
    ),
    "_mm512_castsi512_ps": lambda x: x,
    "_mm512_castps_si512": lambda x: x,
    "_mm512_shuffle_ps": shuffle,
    "_mm512_unpacklo_epi32": unpack(0),
    "_mm512_unpackhi_epi32": unpack(2),
    "_mm512_mask_blend_epi64": lambda mask, x, y: each(z3.If)(bits(mask), y, x),
    "vdupq_n_u64": lambda x: (convert(x, "u64").term,) * 2,
    "vdupq_n_s64": lambda x: (convert(x, "i64").term,) * 2,
    "vdupq_n_u32": lambda x: join([convert(x, "u32").term] * 4),
    "vdupq_n_s32": lambda x: join([convert(x, "i32").term] * 4),
    "vdupq_n_u8": lambda x: join_bytes([convert(x, "u8").term] * 16),
    "vld1q_u64": lambda source: load(replace(source, size=2)),
    "vst1q_u64": store,
    "vaddq_u64": each(operator.add),
    "vsubq_u64": each(operator.sub),
    "vandq_u64": each(operator.and_),
    "veorq_u64": each(operator.xor),
    "vshlq_u64": each(shift_by_byte),
    "vcltq_u64": each(lambda x, y: set_all(z3.ULT(x, y))),
    "vcltq_s64": each(lambda x, y: set_all(x < y)),
    "vbslq_u64": each(lambda mask, x, y: mask & x | ~mask & y),
    "vaddq_u32": each_half(operator.add),
    "vandq_u32": each(operator.and_),
    "vorrq_u32": each(operator.or_),
    "vsubq_u8": lambda x, y: join_bytes(map(operator.sub, bytes_of(x), bytes_of(y))),
    "vmlaq_n_u32": lambda x, y, n: each_half(lambda x, y: x + y * n)(x, y),
    "vshlq_u32": each_half(shift_by_byte),
    "vcltq_u32": each_half(lambda x, y: set_all(z3.ULT(x, y), 32)),
    "vuzp2q_u32": partial(shuffle, control=0xDD),
    "vzip1q_u32": unpack(0),
    "vzip2q_u32": unpack(2),
    "vld1q_u8_x2": partial(load_table, size=32),
    "vld1q_u8_x4": partial(load_table, size=64),
    "vqtbl2q_u8": lambda table, places: look_up_bytes(table, places, (z3.BitVecVal(0, 64),) * 2),
    "vqtbl4q_u8": lambda table, places: look_up_bytes(table, places, (z3.BitVecVal(0, 64),) * 2),
    "vqtbx4q_u8": lambda old, table, places: look_up_bytes(table, places, old),
    **dict.fromkeys(
        (f"vreinterpretq_{to}" for to in ("s64_u64", "u32_u8", "u8_u32", "u32_u64", "u64_u32")),
        lambda x: x,
    ),
}


def as_mask(conditions: Any) -> z3.BitVecRef:
    """An AVX-512 mask, whose lowest bit belongs to the first word."""
    return z3.Concat(*(set_all(condition, 1) for condition in reversed(conditions)))


# --- Reading Rust. ---

TOKEN = re.compile(
    r"""\#\[cfg\(feature\ =\ "checkmsan"\)\](?s:.*?)\n\ {4}\}   # a function for MemorySanitizer
    | \s+ | //[^\n]* | \#!?\[[^\]]*\]            # nothing: space, comments, attributes
    | (?P<token> "(?:\\.|[^"\\])*" | '\w+\b(?!') | \w+
    | \.\.= | <<= | >>= | :: | -> | => | \.\. | && | \|\| | << | >> | [-+*/%^&|=!<>]=
    | [^\s\w] )""",
    re.VERBOSE,
)
OPEN, CLOSE = "([{", ")]}"
LEVELS: dict[str, int] = {
    operator: level
    for level, operators in enumerate(
        ["..", "||", "&&", "== != < > <= >=", "|", "^", "&", "<< >>", "+ -", "* / %", "as"], 1
    )
    for operator in operators.split()
}
Node = tuple[Any, ...]


@cache
def tokenize(text: str) -> tuple[str, ...]:
    tokens, at = [], 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, text[at : at + 40]
        at = found.end()
        tokens += [found["token"]] if found["token"] else []
    return tuple(tokens)


class Parser:
    """Statements and expressions as nested tuples, ``(kind, ...)``; types are skipped."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self.tokens, self.at = tokens, 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *wanted: str) -> str:
        return self.take() if self.next in wanted else ""

    def expect(self, wanted: str) -> None:
        if (found := self.take()) != wanted:
            raise SyntaxError(f"{wanted} wanted in: {' '.join(self.tokens[: self.at])} ({found})")

    def several(self, item: Callable[[], Any], *close: str) -> list[Any]:
        items = []
        while not self.accept(*close):
            items.append(item())
            if not self.accept(",") and self.next not in close:
                self.expect(close[0])
        return items

    def group(self) -> tuple[str, ...]:
        """The tokens within the brackets that come next."""
        start, depth = self.at + 1, 0
        while True:
            token = self.take()
            depth += (token in OPEN) - (token in CLOSE)
            if depth == 0:
                return self.tokens[start : self.at - 1]

    def type(self, *stops: str) -> str:
        start, depth = self.at, 0
        while depth or self.next not in stops:
            token = self.take()
            depth += (token in "([<") - (token in ")]>") - 2 * (token == ">>")
        return " ".join(self.tokens[start : self.at])

    def pattern(self) -> Node:
        while self.accept("&", "mut"):
            pass
        if bracket := self.accept("(", "["):
            return ("all", self.several(self.pattern, CLOSE[OPEN.index(bracket)]))
        name = self.take()
        if self.accept("("):
            return ("some", self.several(self.pattern, ")"))
        return ("name", name)

    def block(self) -> Node:
        self.expect("{")
        statements = []
        while not self.accept("}"):
            statements.append(self.statement())
        return ("block", statements)

    def statement(self) -> Node:
        if self.accept("let"):
            pattern = self.pattern()
            if self.accept(":"):
                self.type("=", ";")
            self.expect("=")
            value = self.expression()
            otherwise = self.block() if self.accept("else") else None
            self.expect(";")
            return ("let", pattern, value, otherwise)
        if self.accept("for"):
            pattern = self.pattern()
            self.expect("in")
            return ("for", pattern, self.expression(literals=False), self.block())
        if self.next in ("if", "match", "unsafe", "{"):
            node = self.operand(True)
        else:
            node = self.expression()
            if self.next.endswith("="):
                operator, value = self.take()[:-1], self.expression()
                node = ("assign", node, ("binary", operator, node, value) if operator else value)
            elif self.next != "}":
                self.expect(";")
                return ("forget", node)
        return ("forget", node) if self.accept(";") else node

    def expression(self, least: int = 0, literals: bool = True) -> Node:
        if self.accept(".."):
            return ("range", None, self.expression(1, literals))
        left = self.unary(literals)
        while (level := LEVELS.get(self.next, 0)) > least:
            operator = self.take()
            if operator == "as":
                left = ("as", left, self.take())
            elif operator == "..":
                open_end = self.next in ("]", ")")
                left = ("range", left, None if open_end else self.expression(level, literals))
            else:
                left = ("binary", operator, left, self.expression(level, literals))
        return left

    def unary(self, literals: bool) -> Node:
        if operator := self.accept("-", "!", "*"):
            return ("unary", operator, self.unary(literals))
        if self.accept("&"):
            self.accept("mut")
            return self.unary(literals)
        return self.postfix(self.operand(literals))

    def operand(self, literals: bool) -> Node:
        if self.accept("("):
            items = self.several(self.expression, ")")
            single = len(items) == 1 and self.tokens[self.at - 2] != ","
            return items[0] if single else ("tuple", items)
        if self.accept("["):
            items = self.several(self.expression, "]", ";")
            if self.tokens[self.at - 1] == "]":
                return ("array", items)
            node = ("repeat", items[0], self.expression())
            self.expect("]")
            return node
        if self.accept("|"):
            return ("closure", self.several(self.pattern, "|"), self.expression())
        if self.next == "{" or self.accept("unsafe"):
            return self.block()
        if self.accept("if"):
            condition, then = self.expression(literals=False), self.block()
            return ("if", condition, then, self.block() if self.accept("else") else None)
        if self.accept("match"):
            value = self.expression(literals=False)
            self.expect("{")
            return ("match", value, self.several(self.arm, "}"))
        if self.accept("return"):
            return ("return", self.expression())
        if re.match(r"\d", self.next):
            return ("number", int(re.sub(r"_|[iu](8|16|32|64|128|size)$", "", self.take()), 0))
        return self.path(literals)

    def arm(self) -> Node:
        pattern = self.take()
        self.expect("=>")
        return (pattern, self.expression())

    def path(self, literals: bool) -> Node:
        names, types = [self.take()], []
        if not re.match(r"\w", names[0]):
            raise SyntaxError(f"no expression: {' '.join(self.tokens[: self.at])}")
        while self.accept("::"):
            if self.accept("<"):
                types = self.types()
            else:
                names.append(self.take())
        if self.accept("!"):
            return ("macro", names[0], self.group())
        if literals and names[0][0].isupper() and self.accept("{"):
            return ("literal", names[0], self.several(self.entry, "}"))
        return ("path", names, types)

    def types(self) -> list[str]:
        return self.several(lambda: self.type(",", ">"), ">")

    def parameter(self) -> tuple[str, str]:
        while self.accept("&", "mut"):
            pass
        return self.take(), self.type(",", ")") if self.accept(":") else "Self"

    def body(self) -> Node:
        self.type("{")
        return self.block()

    def entry(self) -> Node:
        name = self.take()
        self.expect(":")
        return (name, self.expression())

    def postfix(self, node: Node) -> Node:
        while True:
            if self.accept("("):
                node = ("call", node, self.several(self.expression, ")"))
            elif self.accept("["):
                node = ("index", node, self.expression())
                self.expect("]")
            elif self.accept("."):
                name, types = self.take(), []
                if self.accept("::"):
                    self.expect("<")
                    types = self.types()
                if self.accept("("):
                    node = ("method", node, name, types, self.several(self.expression, ")"))
                else:
                    node = ("field", node, name)
            else:
                return node


@dataclass(frozen=True)
class Function:
    file: str
    owner: Type | None
    generics: list[str]
    parameters: list[tuple[str, str]]
    body: Node


@cache
def read(file: str, owner: Type | None, tokens: tuple[str, ...]) -> Function:
    parser = Parser(tokens)
    parser.take()
    generics = parser.types() if parser.accept("<") else []
    names = [generic.removeprefix("const ").split()[0] for generic in generics]
    parser.expect("(")
    return Function(file, owner, names, parser.several(parser.parameter, ")"), parser.body())


class Return(Exception):  # noqa: N818
    """The value of a function that returns early."""


class Source:
    """The items of the files: functions, constants and methods, as tokens until they are used."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.functions: dict[tuple[str, str], tuple[str, Type | None, tuple[str, ...]]] = {}
        self.constants: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
        self.types: dict[tuple[str, str], tuple[str, str]] = {}
        for file in FILES:
            self.items(file, None, tokenize(texts[file]))
        self.expand_counts(texts["kernel/count"])

    def function(self, scope: str, name: str) -> Function:
        if found := self.functions.get((scope, name)):
            return read(*found)
        # A method that the type leaves to its trait.
        file, _, tokens = self.functions["trait", name]
        return read(file, Type(scope), tokens)

    def imported(self, file: str, name: str) -> str:
        """The file in which the kernel's function of this name is, or this one."""
        uses = rf"^use super::(\w+)::(?:{name};|\{{[^}}]*\b{name}\b)"
        found = re.search(uses, self.texts.get(file, ""), re.MULTILINE)
        return f"kernel/{found[1]}" if found else file

    def length(self, kind: Type) -> int:
        """How many items the array has that is this type's only field."""
        file, name = kind.name.split(".")
        return int(re.findall(rf"struct {name}\(\[\w+; (\d+)\]\)", self.texts[file])[0])

    def items(self, file: str, owner: Type | None, tokens: tuple[str, ...]) -> None:
        parser = Parser(tokens)
        scope = owner.name if owner else file
        while parser.next:
            kind = parser.take()
            start = parser.at
            if kind == "fn" and parser.next != "(":
                parser.type("{", ";")
                if parser.next == "{":
                    parser.group()
                    value = (file, owner, tokens[start : parser.at])
                    self.functions[scope, tokens[start]] = value
            elif kind == "const":
                parser.type("=", ";")
                parser.accept("=")
                body = parser.at
                parser.type(";")
                self.constants[scope, tokens[start]] = (file, tokens[body : parser.at])
            elif kind == "type":
                parser.type("=", ";")
                if parser.accept("="):
                    self.types[scope, tokens[start]] = (file, parser.type(";"))
            elif kind == "impl":
                head = parser.type("{").split(" for ")[-1].split()[0]
                target = head if is_integer(head) else f"{file}.{head}"
                self.items(file, Type(target), parser.group())
            elif kind == "trait":
                parser.type("{")
                self.items(file, Type("trait"), parser.group())
            elif kind == "{":
                parser.at -= 1
                parser.group()

    def expand_counts(self, text: str) -> None:
        """The methods that a macro gives to the types of counts, by another macro's rows."""
        body = re.search(r"macro_rules! count \{.*?=> \{\$\((.*?)\)\*\};", text, re.DOTALL)
        rows = re.search(r"\$name! \{(.*?)\}", text, re.DOTALL)
        assert body
        assert rows
        for t, wide, flip in re.findall(r"(\w+), (\w+), (\w+);", rows[1]):
            one = body[1].replace("$t", t).replace("$wide", wide).replace("$flip", flip)
            self.items("kernel/count", None, tokenize(one))

    def expand(self, file: str, name: str, tokens: tuple[str, ...]) -> Node:
        """A call of the macro that applies an intrinsic to each register: `expand_each`."""
        macro = rf"macro_rules! {name} \{{\s*\((.*?)\) => \{{(.*?)\n    \}};"
        found = re.search(macro, self.texts[file], re.DOTALL)
        assert found
        return expand_each(*found.groups(), tokens)


@cache
def expand_each(head: str, body: str, tokens: tuple[str, ...]) -> Node:
    *singles, repeated = re.findall(r"\$(\w+):", head)
    parser = Parser((*tokens, "!"))
    first, *words = parser.several(lambda: parser.type(",", "!"), "!")
    all_words = rf"\$\(\${repeated}(.*?)\),\*"
    body = re.sub(all_words, lambda part: ", ".join(f"({word}){part[1]}" for word in words), body)
    for single, value in zip(singles, first.split(" : "), strict=True):
        body = body.replace(f"${single}", value)
    return Parser(tokenize(body)).expression()


@cache
def source(file: str = "ct", old: str = "", new: str = "") -> Source:
    """The source and the statement of the proof, with a fault if there is one to plant."""
    texts = {name: (CORE / f"{name}.rs").read_text() for name in FILES}
    texts["Statement"] = (ROOT / "proofs/Statement.v").read_text()
    if old:
        assert texts[file].count(old) == 1, f"{old} is not in {file} once"
        texts[file] = texts[file].replace(old, new)
    return Source(texts)


Scope = ChainMap[str, Any]


class Rust:
    """Runs functions of the source on terms.

    A jump that depends on a term is an error. What Rust would panic for, overflow in plain
    arithmetic, is collected as what is `needed` for the result to be as given.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.needed: list[z3.BoolRef] = []
        self.given: list[z3.BoolRef] = []
        # Variables from which on any value is tried, and the value that they have.
        self.cuts: dict[str, Any] = {}
        # Functions that are replaced by what has been proved of them.
        self.stubs: dict[tuple[str, str], Callable[..., Any]] = {
            ("ct", "barrier"): lambda x: x,
            ("fold", "word"): self.word,
        }

    def word(self, distance: Int) -> Int:
        """A word of a wider integer, for which the source panics where it does not fit."""
        word = distance.cast("u64")
        self.needed.append(z3.ZeroExt(64, word.term) == distance.term)
        return word

    def call(self, scope: str, name: str, *arguments: Any, **generics: Any) -> Any:
        """Call a function of a file, or of a type that has methods."""
        if stub := self.stubs.get((scope, name)):
            return stub(*arguments)
        function = self.source.function(scope, name)
        known = {"": function.file, "Self": function.owner, **generics}
        for (parameter, kind), value in zip(function.parameters, arguments, strict=True):
            known[parameter] = as_argument(value, kind)
        try:
            return self.evaluate(function.body, ChainMap({}, known))
        except Return as early:
            return early.args[0]

    def evaluate(self, node: Node, scope: Scope) -> Any:
        return getattr(self, f"on_{node[0]}")(scope, *node[1:])

    def all(self, nodes: list[Node], scope: Scope) -> list[Any]:
        return [self.evaluate(node, scope) for node in nodes]

    def bind(self, pattern: Node, value: Any, scope: Scope) -> None:
        kind, what = pattern
        if kind == "name":
            scope[what] = value
        else:
            for part, item in zip(what, value if kind == "all" else [value.value], strict=True):
                self.bind(part, item, scope)

    # Statements.

    def on_block(self, scope: Scope, statements: list[Node]) -> Any:
        value, inner = None, scope.new_child()
        for statement in statements:
            value = self.evaluate(statement, inner)
        return value

    def on_forget(self, scope: Scope, node: Node) -> None:
        self.evaluate(node, scope)

    def on_let(self, scope: Scope, pattern: Node, node: Node, otherwise: Node | None) -> None:
        value = self.evaluate(node, scope)
        if pattern[0] == "name" and pattern[1] in self.cuts:
            self.cuts[pattern[1]] = value
            value = any_like(pattern[1], value)
        if otherwise and not known(value.present):
            self.evaluate(otherwise, scope)
        self.bind(pattern, value, scope)

    def on_for(self, scope: Scope, pattern: Node, items: Node, body: Node) -> None:
        def run(item: Any) -> None:
            inner = scope.new_child()
            self.bind(pattern, item, inner)
            self.evaluate(body, inner)

        values = self.evaluate(items, scope)
        if not isinstance(values, Induction):
            for item in values:
                run(item)
            return
        names = {name for name in assigned(body) if name in scope}
        values.start = self.forget(names, scope)
        run(values.item)
        values.step = self.forget(names, scope)

    def forget(self, names: set[str], scope: Scope) -> dict[str, Any]:
        """The values of variables, which go on with any."""
        values = {name: scope[name] for name in names}
        values |= {name: number(x) for name, x in values.items() if isinstance(x, int)}
        for name, value in values.items():
            self.assign(name, any_like(name, value), scope)
        return values

    def assign(self, name: str, value: Any, scope: Scope) -> None:
        next(names for names in scope.maps if name in names)[name] = value

    def on_assign(self, scope: Scope, target: Node, node: Node) -> None:
        value = self.evaluate(node, scope)
        match target:
            case ("path", [name], _):
                self.assign(name, value, scope)
            case ("unary", "*", reference):
                cell = self.evaluate(reference, scope)
                cell.place[cell.at] = value
            case ("index", array, at):
                self.evaluate(array, scope)[self.evaluate(at, scope)] = value
            case _:
                raise SyntaxError(f"assignment to {target}")

    # Expressions.

    def on_return(self, scope: Scope, node: Node) -> None:
        raise Return(self.evaluate(node, scope))

    def on_if(self, scope: Scope, condition: Node, then: Node, otherwise: Node) -> Any:
        return self.evaluate(then if known(self.evaluate(condition, scope)) else otherwise, scope)

    def on_match(self, scope: Scope, node: Node, arms: list[Node]) -> Any:
        value = str(known(self.evaluate(node, scope)))
        return self.evaluate(next(body for name, body in arms if name in (value, "_")), scope)

    def on_closure(self, scope: Scope, patterns: list[Node], body: Node) -> Callable[..., Any]:
        def closure(*arguments: Any) -> Any:
            inner = scope.new_child()
            for pattern, argument in zip(patterns, arguments, strict=True):
                self.bind(pattern, argument, inner)
            return self.evaluate(body, inner)

        return closure

    def on_number(self, scope: Scope, number: int) -> int:
        return number

    def on_tuple(self, scope: Scope, items: list[Node]) -> tuple[Any, ...]:
        return tuple(self.all(items, scope))

    def on_array(self, scope: Scope, items: list[Node]) -> Slice:
        return Slice(self.all(items, scope))

    def on_repeat(self, scope: Scope, item: Node, count: Node) -> Slice:
        return Slice([self.evaluate(item, scope)] * known(self.evaluate(count, scope)))

    def on_literal(self, scope: Scope, name: str, fields: list[Node]) -> Struct:
        values = {field: self.evaluate(node, scope) for field, node in fields}
        return Struct(Type(f"{scope['']}.{name}"), values)

    def on_range(self, scope: Scope, start: Node, stop: Node) -> Items:
        return Items(range(*self.all([start, stop], scope)))

    def on_index(self, scope: Scope, array: Node, at: Node) -> Any:
        items = self.evaluate(array, scope)
        if at[0] != "range":
            return items[self.evaluate(at, scope)]
        return items.part(*(end and self.evaluate(end, scope) for end in at[1:]))

    def on_field(self, scope: Scope, node: Node, name: str) -> Any:
        value = self.evaluate(node, scope)
        return value.fields[name] if isinstance(value, Struct) else getattr(value, name)

    def on_as(self, scope: Scope, node: Node, to: str) -> Any:
        value = self.evaluate(node, scope)
        return value.cast(to) if isinstance(value, Int) else as_argument(value, to)

    def on_macro(self, scope: Scope, name: str, tokens: tuple[str, ...]) -> Any:
        return self.evaluate(self.source.expand(scope[""], name, tokens), scope)

    def on_call(self, scope: Scope, callee: Node, arguments: list[Node]) -> Any:
        function, values = self.evaluate(callee, scope), self.all(arguments, scope)
        if isinstance(function, Type) and callable(values[0]):
            values = [Slice([*map(values[0], range(self.source.length(function)))])]
        return function(*values)

    def on_method(
        self, scope: Scope, node: Node, name: str, types: list[str], arguments: list[Node]
    ) -> Any:
        value, values = self.evaluate(node, scope), self.all(arguments, scope)
        values += [self.type(scope, name) for name in types]
        kind = value.type if isinstance(value, Int | Struct) else ""
        owner = kind.name if isinstance(kind, Type) else kind
        left_to_trait = owner and ("trait", name) in self.source.functions
        if (owner, name) in self.source.functions or left_to_trait:
            return self.call(owner, name, value, *values)
        if isinstance(value, int):
            cast_signed = partial(number, kind="i32")
            return {"min": min, "into": int, "cast_signed": cast_signed}[name](value, *values)
        if isinstance(value, Int) and name == "rem_euclid":
            return self.remainder(value, *values)
        return getattr(value, name)(*values)

    def on_path(self, scope: Scope, names: list[str], types: list[str]) -> Any:
        *owners, name = names
        if not owners:
            if name in scope:
                return scope[name]
            if name in INTRINSICS:
                return INTRINSICS[name]
            return self.member(scope, scope[""], name, types)
        if owners == ["core", "array"]:
            return {"from_fn": lambda step: step}[name]  # See `on_call`.
        if owners == ["ct"]:
            return self.member(scope, "ct", name, types)
        owner = self.type(scope, owners[0])
        if not isinstance(owner, Type):
            return reduce(getattr, [*owners[1:], name], owner)
        if owners[1:]:
            return self.associated(owner, owners[1], name, scope)
        if is_integer(owner.name) and name in ("MAX", "from", "try_from"):
            return self.of_integer(owner.name, name)
        return self.member(scope, owner.name, name, types)

    def member(self, scope: Scope, owner: str, name: str, types: list[str]) -> Any:
        """A function, a constant, or the constructor of a tuple."""
        owner = self.source.imported(owner, name)
        if stub := self.stubs.get((owner, name)):
            return stub
        if (owner, name) in self.source.functions or ("trait", name) in self.source.functions:
            generics = self.source.function(owner, name).generics
            values = {generic: scope[generic] for generic in generics if generic in scope}
            values |= zip(generics, (self.type(scope, text) for text in types), strict=False)
            return partial(self.call, owner, name, **values)
        if (owner, name) in self.source.constants:
            file, tokens = self.source.constants[owner, name]
            return self.evaluate(Parser(tokens).expression(), ChainMap({"": file}))
        return self.type(scope, name)

    def associated(self, owner: Type, kind: str, name: str, scope: Scope) -> Any:
        """A function of the type that another one names, such as ``V::Search::reached``."""
        file, text = self.source.types[owner.name, kind]
        head, *arguments = re.findall(r"\w+", text)
        home = self.source.imported(file, head)
        parameters = re.findall(rf"struct {head}<(\w+)>", self.source.texts[home])
        values = [Type(f"{file}.{argument}") for argument in arguments]
        generics = {"V": owner, **dict(zip(parameters, values, strict=True))}
        return partial(self.member(scope, f"{home}.{head}", name, []), **generics)

    def type(self, scope: Scope, text: str) -> Any:
        """A type by its name, or the number that stands in its place."""
        if text.isdigit():
            return int(text)
        if text in scope:
            return scope[text]
        if is_integer(text) or text in ("__m128i", "__m256i", "__m512i"):
            return Type(text)
        if not re.search(rf"\bstruct {text}\b", self.source.texts[scope[""]]):
            raise NameError(f"{text} in {scope['']}")
        return Type(f"{scope['']}.{text}")

    @staticmethod
    def of_integer(kind: str, name: str) -> Any:
        def checked(value: Int) -> Option:
            back = value.cast(kind).cast(value.type)
            return Option(back.term == value.term, value.cast(kind))

        if name == "MAX":
            return number(2 ** (width(kind) - (kind[0] == "i")) - 1, kind)
        return checked if name == "try_from" else partial(convert, to=kind)

    def remainder(self, value: Int, modulus: Int) -> Int:
        """Some number from 0 to the modulus: all that is used of remainders."""
        result = z3.FreshConst(value.term.sort(), "remainder")
        self.given += [result >= 0, result < modulus.term]
        return Int(value.type, result)

    def on_unary(self, scope: Scope, operator: str, node: Node) -> Any:
        value = self.evaluate(node, scope)
        if operator == "*":
            return value.place[value.at] if isinstance(value, Cell) else value
        return Int(value.type, -value.term if operator == "-" else ~value.term)

    def on_binary(self, scope: Scope, operator: str, left: Node, right: Node) -> Any:
        x, y = self.all([left, right], scope)
        if isinstance(x, int) and isinstance(y, int):
            return KNOWN[operator](x, y)
        kind = x.type if isinstance(x, Int) else y.type
        x, y = convert(x, kind), convert(y, kind)
        if operator in NEEDED:
            self.needed.append(NEEDED[operator](x, y))
        return Int(kind, TERMS[operator](x, y))


def any_like(name: str, value: Any) -> Any:
    """Any value of this one's type."""
    return replace(value, term=z3.BitVec(name, value.term.size()))


def assigned(node: Any) -> Iterator[str]:
    """The variables that a statement assigns. It must assign nothing else."""
    match node:
        case ("assign", target, _):
            _, [name], _ = target
            yield name
    for part in node if isinstance(node, tuple | list) else ():
        yield from assigned(part)


def known(value: Any) -> Any:
    """The number or truth that decides a jump, which must not depend on a term."""
    if not isinstance(value, int):
        raise TypeError(f"a jump that depends on {value}")
    return value


def as_argument(value: Any, to: str) -> Any:
    """A value as an argument of this type. Known lengths and places stay ints."""
    stays = isinstance(value, int) and to in ("usize", "u32")
    return convert(value, to) if is_integer(to) and not stays else value


def logical(x: Int, y: Int) -> z3.BitVecRef:
    return x.term >> y.term if x.type[0] == "i" else z3.LShR(x.term, y.term)


def fits(calculate: Callable[..., z3.BitVecRef]) -> Callable[[Int, Int], z3.BoolRef]:
    """Whether a sum or a difference is what it is with one bit more."""

    def need(x: Int, y: Int) -> z3.BoolRef:
        more = partial(z3.SignExt if x.type[0] == "i" else z3.ZeroExt, 1)
        return more(calculate(x.term, y.term)) == calculate(more(x.term), more(y.term))

    return need


def product_fits(x: Int, y: Int) -> z3.BoolRef:
    """Whether both are of half of the bits: a product that needs more is not expected."""
    half = x.term.size() // 2
    return z3.And(*(z3.LShR(factor.term, half) == 0 for factor in (x, y)))


def quotient(x: Int, y: Int) -> z3.BitVecRef:
    assert x.type[0] == "u", "a signed division"
    return z3.UDiv(x.term, y.term)


KNOWN: dict[str, Callable[[int, int], int]] = {
    "/": operator.floordiv,
    "%": operator.mod,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
}
TERMS: dict[str, Callable[[Int, Int], z3.BitVecRef]] = {
    "+": lambda x, y: x.term + y.term,
    "-": lambda x, y: x.term - y.term,
    "*": lambda x, y: x.term * y.term,
    "/": quotient,
    "&": lambda x, y: x.term & y.term,
    "|": lambda x, y: x.term | y.term,
    "^": lambda x, y: x.term ^ y.term,
    "<<": lambda x, y: x.term << y.term,
    ">>": logical,
}
NEEDED: dict[str, Callable[[Int, Int], z3.BoolRef]] = {
    "+": fits(operator.add),
    "-": fits(operator.sub),
    "*": product_fits,
    "/": lambda x, y: y.term != 0,
    "<<": lambda x, y: z3.ULT(y.term, y.term.size()),
    ">>": lambda x, y: z3.ULT(y.term, y.term.size()),
}
