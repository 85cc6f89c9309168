"""A reader of Rust: runs functions of ``rust/core/src`` on bit vectors of z3 instead of numbers.

So what ``test_primitives.py`` proves of a function is proved of what is written there: a change to
the source changes what is proved, and source that cannot be read is an error. Trusted are, besides
z3 and tree-sitter's grammar of Rust, the reader (``test_primitives.py`` compares it with the known
answers of the compiled library), the meaning of the intrinsics (:data:`INTRINSICS`) and that of the
methods of Rust's standard library (:class:`Int` and what follows it).
"""

import operator
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import tree_sitter_rust
import z3
from tree_sitter import Language, Node, Parser

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rust/core/src/draw"
KERNEL = ["mod", "count", "search", "tables", "vector", "avx2", "avx512", "neon"]
FILES = ["ct", "lanes", "bernoulli", "fold", *(f"kernel/{name}" for name in KERNEL)]


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

    def map(self, function: Callable[[Any], Any]) -> "Option":
        return replace(self, value=function(self.value)) if known(self.present) else self

    def map_or(self, other: Any, function: Callable[[Any], Any]) -> Any:
        return self.map(function).value if known(self.present) else other


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


@dataclass(frozen=True)
class Variant:
    """A value of an enumeration, with what it holds."""

    name: str
    value: Any = None


@dataclass
class Induction:
    """Any number of items like this one: their loop is run for one of them, from any state."""

    item: Any
    # The variables that the loop assigns, before it and after a step.
    start: dict[str, Any] | None = None
    step: dict[str, Any] | None = None


class Slice:
    """A view of an array, or an iterator. Places outside are errors, as in Rust."""

    def __init__(self, items: Iterable[Any], start: int = 0, stop: int | None = None) -> None:
        self.items = items if isinstance(items, list) else list(items)
        self.start, self.stop = start, len(self.items) if stop is None else stop

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

    def into_iter(self) -> "Slice":
        return self

    def iter_mut(self) -> "Slice":
        return Slice(Cell(self, at) for at in range(self.len()))

    def zip(self, other: Iterable[Any]) -> "Slice":
        return Slice(zip(self, other, strict=False))

    def rev(self) -> "Slice":
        return Slice(reversed(list(self)))

    def enumerate(self) -> "Slice":
        return Slice(enumerate(self))

    def step_by(self, step: int) -> "Slice":
        return Slice(list(self)[::step])

    def map(self, step: Callable[[Any], Any]) -> "Slice":
        return Slice(map(step, self))

    def fold(self, value: Any, step: Callable[[Any, Any], Any]) -> Any:
        return reduce(step, self, value)

    def split_first(self) -> Option:
        return Option(self.len() > 0, (self[0], self.part(1, None)) if self.len() else None)

    def as_ptr(self) -> "Pointer":
        return Pointer(self)

    iter, as_mut_ptr = into_iter, as_ptr


@dataclass(frozen=True)
class Cell:
    """A reference to a place that can be written to."""

    place: Slice
    at: int


@dataclass(frozen=True)
class Pointer:
    """A pointer to registers of so many words each."""

    target: Slice
    words: int = 1
    at: int = 0

    def cast(self, to: Type | None = None) -> "Pointer":
        sizes = {"__m128i": 2, "__m256i": 4, "__m512i": 8}
        return Pointer(self.target, sizes[to.name], self.at) if to else self

    def add(self, registers: int) -> "Pointer":
        return replace(self, at=self.at + registers * self.words)


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
ZEROS = (z3.BitVecVal(0, 64),) * 2


def lanes(register: Register, width: int) -> list[z3.BitVecRef]:
    """The numbers of so many bits in a register, the lowest first."""
    if width == 64:
        return [*register]
    return [z3.Extract(at + width - 1, at, word) for word in register for at in range(0, 64, width)]


def join(parts: Iterable[z3.BitVecRef]) -> Register:
    """The register with these numbers."""
    parts = list(parts)
    each = 64 // parts[0].size()
    if each == 1:
        return tuple(parts)
    return tuple(z3.Concat(*reversed(parts[i : i + each])) for i in range(0, len(parts), each))


def by_lane(width: int, meaning: Callable[..., z3.BitVecRef]) -> Callable[..., Register]:
    return lambda *registers: join(map(meaning, *(lanes(each, width) for each in registers)))


def by_part(chosen: Callable[..., list[z3.BitVecRef]]) -> Callable[..., Register]:
    """The half-words that are chosen from each part of 128 bits of two registers."""

    def choose(x: Register, y: Register, *control: int) -> Register:
        x_halves, y_halves = lanes(x, 32), lanes(y, 32)
        return join(
            half
            for i in range(0, len(x_halves), 4)
            for half in chosen(x_halves[i : i + 4], y_halves[i : i + 4], *control)
        )

    return choose


unpack_low = by_part(lambda x, y: [x[0], y[0], x[1], y[1]])
unpack_high = by_part(lambda x, y: [x[2], y[2], x[3], y[3]])
shuffle = by_part(lambda x, y, by: [x[by & 3], x[by >> 2 & 3], y[by >> 4 & 3], y[by >> 6]])


def splat(size: int, width: int) -> Callable[[Any], Register]:
    """So many bits of one number, which has this width."""
    return lambda x: join([convert(x, f"u{width}").term] * (size // width))


def bits(mask: z3.BitVecRef) -> list[z3.BoolRef]:
    return [z3.Extract(i, i, mask) == 1 for i in range(mask.size())]


def as_mask(conditions: Iterable[z3.BoolRef]) -> z3.BitVecRef:
    """An AVX-512 mask, whose lowest bit belongs to the first word."""
    return z3.Concat(*(set_all(condition, 1) for condition in reversed([*conditions])))


def less_mask(width: int, less: Callable[..., z3.BoolRef]) -> Callable[..., z3.BitVecRef]:
    return lambda x, y: as_mask(map(less, lanes(x, width), lanes(y, width)))


def by_mask(width: int, meaning: Callable[..., z3.BitVecRef]) -> Callable[..., Register]:
    """What this gives where the mask is set, else the numbers of the first register."""

    def masked(old: Register, mask: z3.BitVecRef, *registers: Register) -> Register:
        new = map(meaning, *(lanes(each, width) for each in registers))
        return join(map(z3.If, bits(mask), new, lanes(old, width)))

    return masked


def load(source: Pointer, words: int | None = None) -> Register:
    each = 64 // source.target[0].term.size()
    start, count = each * source.at, each * (words or source.words)
    return join(item.term for item in source.target.part(start, start + count))


def store(target: Pointer, register: Register) -> None:
    for i, term in enumerate(register):
        target.target[target.at + i] = Int("u64", term)


def set_all(bit: z3.BoolRef, width: int = 64) -> z3.BitVecRef:
    return z3.If(bit, z3.BitVecVal(-1, width), z3.BitVecVal(0, width))


def unsigned_min(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(z3.ULT(x, y), x, y)


def leading_zeros(x: z3.BitVecRef) -> z3.BitVecRef:
    found = z3.BitVecVal(x.size(), x.size())
    for place, is_one in enumerate(bits(x)):
        found = z3.If(is_one, x.size() - 1 - place, found)
    return found


def unsigned_max(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(z3.ULT(x, y), y, x)


def look_up(place: z3.BitVecRef, *table: z3.BitVecRef) -> z3.BitVecRef:
    """The entry of a table at this place, from whose low bits it is chosen."""
    if z3.is_bv_value(known := z3.simplify(place)):
        return table[known.as_long() % len(table)]
    for odd in bits(place)[: len(table).bit_length() - 1]:
        table = tuple(z3.If(odd, *pair) for pair in zip(table[1::2], table[::2], strict=True))
    return table[0]


def permute(places: Register, *tables: Register) -> Register:
    """For each place, the half-word there of all tables in a row."""
    table = [half for each in tables for half in lanes(each, 32)]
    return join(look_up(place, *table) for place in lanes(places, 32))


def shuffle_bytes(x: Register, places: Register) -> Register:
    """For each place, the byte there of the same 128 bits, or 0 where its highest bit is set."""
    table = lanes(x, 8)
    return join(
        z3.If(place < 0, z3.BitVecVal(0, 8), look_up(place, *table[i // 16 * 16 :][:16]))
        for i, place in enumerate(lanes(places, 8))
    )


def look_up_bytes(table: Register, places: Register, old: Register = ZEROS) -> Register:
    """For each place, the table's byte there, or the old one where the table has none."""
    entries = lanes(table, 8)

    def entry(place: z3.BitVecRef, byte: z3.BitVecRef) -> z3.BitVecRef:
        return z3.If(z3.ULT(place, len(entries)), look_up(place, *entries), byte)

    return by_lane(8, entry)(places, old)


def shift_by_byte(x: z3.BitVecRef, by: z3.BitVecRef) -> z3.BitVecRef:
    """Shifted left by the lowest byte, a signed one, or right if that is negative."""
    left = z3.SignExt(x.size() - 8, z3.Extract(7, 0, by))
    return z3.If(left < 0, z3.LShR(x, -left), x << left)


def unchanged(register: Register) -> Register:
    return register


#: What an intrinsic for integers does to each lane, by the middle of its name.
BY_LANE: dict[str, Callable[..., z3.BitVecRef]] = {
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "or": operator.or_,
    "orr": operator.or_,
    "xor": operator.xor,
    "eor": operator.xor,
    # Shifts by all bits and more give 0, in z3 as well.
    "sllv": operator.lshift,
    "srlv": z3.LShR,
    "shl": shift_by_byte,
    "cmpgt": lambda x, y: set_all(x > y, x.size()),
    "blendv": lambda x, y, mask: z3.If(mask < 0, y, x),
}
NAME = re.compile(r"_mm(?:256|512)_(\w+)_(?:epi|si)(\d+)|v([a-z]+)q_u(\d+)")
#: All others.
INTRINSICS: dict[str, Callable[..., Any]] = {
    "_mm256_set1_epi64x": splat(256, 64),
    "_mm512_set1_epi64": splat(512, 64),
    "_mm256_set1_epi32": splat(256, 32),
    "_mm512_set1_epi32": splat(512, 32),
    "_mm256_setr_epi32": lambda *halves: join(convert(half, "u32").term for half in halves),
    "_mm256_loadu_si256": load,
    "_mm512_loadu_si512": load,
    "_mm_loadu_si128": load,
    "_mm256_storeu_si256": store,
    "_mm512_storeu_si512": store,
    "_mm256_castsi256_ps": unchanged,
    "_mm256_castps_si256": unchanged,
    "_mm512_castsi512_ps": unchanged,
    "_mm512_castps_si512": unchanged,
    "_mm256_permutevar8x32_epi32": lambda x, places: permute(places, x),
    "_mm512_permutexvar_epi32": permute,
    "_mm512_permutex2var_epi32": lambda x, places, y: permute(places, x, y),
    "_mm256_unpacklo_epi32": unpack_low,
    "_mm256_unpackhi_epi32": unpack_high,
    "_mm512_unpacklo_epi32": unpack_low,
    "_mm512_unpackhi_epi32": unpack_high,
    "_mm256_shuffle_ps": shuffle,
    "_mm512_shuffle_ps": shuffle,
    "_mm256_blendv_ps": by_lane(32, BY_LANE["blendv"]),
    "_mm256_broadcastsi128_si256": lambda x: x + x,
    "_mm256_shuffle_epi8": shuffle_bytes,
    "_mm256_min_epu8": by_lane(8, unsigned_min),
    "_mm256_min_epu32": by_lane(32, unsigned_min),
    "_mm512_min_epu32": by_lane(32, unsigned_min),
    "_mm512_lzcnt_epi32": by_lane(32, leading_zeros),
    "_mm512_cvtepu8_epi32": lambda x: join(z3.ZeroExt(24, byte) for byte in lanes(x, 8)),
    "_mm512_cmplt_epu64_mask": less_mask(64, z3.ULT),
    "_mm512_cmplt_epi64_mask": less_mask(64, operator.lt),
    "_mm512_cmplt_epi32_mask": less_mask(32, operator.lt),
    "_mm512_mask_sub_epi64": by_mask(64, operator.sub),
    "_mm512_mask_add_epi32": by_mask(32, operator.add),
    "_mm512_mask_blend_epi64": lambda mask, x, y: by_mask(64, lambda y: y)(x, mask, y),
    "vdupq_n_u64": splat(128, 64),
    "vdupq_n_s64": splat(128, 64),
    "vdupq_n_u32": splat(128, 32),
    "vdupq_n_s32": splat(128, 32),
    "vdupq_n_u8": splat(128, 8),
    "vld1q_u64": partial(load, words=2),
    "vld1q_u8_x2": partial(load, words=4),
    "vld1q_u8_x4": partial(load, words=8),
    "vst1q_u64": store,
    "vcltq_u64": by_lane(64, lambda x, y: set_all(z3.ULT(x, y))),
    "vcltq_s64": by_lane(64, lambda x, y: set_all(x < y)),
    "vclzq_u32": by_lane(32, leading_zeros),
    "vminq_u32": by_lane(32, unsigned_min),
    "vcltq_u32": by_lane(32, lambda x, y: set_all(z3.ULT(x, y), 32)),
    "vbslq_u64": by_lane(64, lambda mask, x, y: mask & x | ~mask & y),
    "vmlaq_n_u32": lambda x, y, n: by_lane(32, lambda x, y: x + y * n)(x, y),
    "vuzp2q_u32": by_part(lambda x, y: [x[1], x[3], y[1], y[3]]),
    "vzip1q_u32": unpack_low,
    "vzip2q_u32": unpack_high,
    "vqtbl2q_u8": look_up_bytes,
    "vqtbl4q_u8": look_up_bytes,
    "vqtbx4q_u8": lambda old, table, places: look_up_bytes(table, places, old),
}


def intrinsic(name: str) -> Callable[..., Any] | None:
    if name in INTRINSICS or name.startswith("vreinterpretq"):
        return INTRINSICS.get(name, unchanged)
    if not (found := NAME.fullmatch(name)):
        return None
    operation, width = found[1] or found[3], found[2] or found[4]
    # That of bits does the same to lanes of any width.
    return by_lane(64 if width in ("256", "512") else int(width), BY_LANE[operation])


# --- Reading Rust. ---

RUST = Language(tree_sitter_rust.language())
SKIPPED = ("line_comment", "attribute_item", "mutable_specifier")


@cache
def parse(written: str) -> Node:
    root = Parser(RUST).parse(written.encode()).root_node
    if root.has_error:
        raise SyntaxError(f"this is no Rust: {written}")
    return root


@cache
def expression(written: str) -> Node:
    return field(parse(f"const X: X = {written};").named_children[0], "value")


@cache
def parts(node: Node) -> list[Node]:
    return [part for part in node.named_children if part.type not in SKIPPED]


def field(node: Node, name: str) -> Any:
    return node.child_by_field_name(name)


def text(node: Node | None) -> str:
    return node.text.decode() if node and node.text else ""


def generics_of(node: Node) -> list[str]:
    generics = field(node, "type_parameters")
    return [text(field(each, "name")) for each in parts(generics)] if generics else []


@dataclass(frozen=True)
class Function:
    file: str
    owner: Type | None
    node: Node

    @property
    def parameters(self) -> list[tuple[str, str]]:
        found = [
            (field(x, "pattern"), field(x, "type")) for x in parts(field(self.node, "parameters"))
        ]
        return [(text(name) or "self", text(kind)) for name, kind in found]


class Return(Exception):  # noqa: N818
    """The value of a function that returns early."""


class Source:
    """The items of the files: functions, constants and methods."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.functions: dict[tuple[str, str], Function] = {}
        self.constants: dict[tuple[str, str], tuple[str, Node]] = {}
        self.types: dict[tuple[str, str], tuple[str, str]] = {}
        self.structs: dict[tuple[str, str], Node] = {}
        self.imports: dict[tuple[str, str], str] = {}
        for file in FILES:
            self.items(file, None, parse(texts[file]))
        self.expand_counts(texts["kernel/count"])

    def function(self, scope: str, name: str) -> Function:
        # A method that the type leaves to its trait is the trait's.
        found = self.functions.get((scope, name))
        return found or replace(self.functions["trait", name], owner=Type(scope))

    def imported(self, file: str, name: str) -> str:
        """The file in which the kernel's function of this name is, or this one."""
        return self.imports.get((file, name), file)

    def items(self, file: str, owner: Type | None, node: Node) -> None:
        scope, attributes = owner.name if owner else file, ""
        for item in node.named_children:
            name, kind, body = (field(item, part) for part in ("name", "type", "body"))
            at = scope, text(name)
            match item.type:
                case "function_item" if 'cfg(feature = "checkmsan")' not in attributes:
                    self.functions[at] = Function(file, owner, item)
                case "const_item":
                    self.constants[at] = (file, field(item, "value"))
                case "type_item":
                    self.types[at] = (file, text(kind))
                case "struct_item":
                    self.structs[at] = item
                case "use_declaration":
                    way = r"use (?:super|crate::draw)::(\w+)::([^:]+);"
                    if found := re.fullmatch(way, text(item)):
                        home = found[1] if found[1] in FILES else f"kernel/{found[1]}"
                        for used in re.findall(r"\w+", found[2]):
                            self.imports[file, used] = home
                case "impl_item":
                    head = text(field(kind, "type") or kind)
                    self.items(file, Type(head if is_integer(head) else f"{file}.{head}"), body)
                case "trait_item":
                    self.items(file, Type("trait"), body)
            attributes = attributes + text(item) if item.type in SKIPPED else ""

    def expand_counts(self, written: str) -> None:
        """The methods that a macro gives to the types of counts, by another macro's rows."""
        body = re.search(r"macro_rules! count \{.*?=> \{\$\((.*?)\)\*\};", written, re.DOTALL)
        rows = re.search(r"\$name! \{(.*?)\}", written, re.DOTALL)
        assert body
        assert rows
        for t, wide, flip in re.findall(r"(\w+), (\w+), (\w+);", rows[1]):
            one = body[1].replace("$t", t).replace("$wide", wide).replace("$flip", flip)
            self.items("kernel/count", None, parse(one))

    def expand(self, file: str, name: str, given: str) -> Node:
        """A call of the macro that applies an intrinsic to each register."""
        macro = rf"macro_rules! {name} \{{\s*\((.*?)\) => \{{(.*?)\n    \}};"
        found = re.search(macro, self.texts[file], re.DOTALL)
        assert found
        pattern, body = found.groups()
        *singles, repeated = re.findall(r"\$(\w+):", pattern)
        # The arguments as those of a function, all separated by commas.
        values = map(
            text, parts(field(expression(f"f{given.replace(': ', ', ', 1)}"), "arguments"))
        )
        for single in singles:
            body = body.replace(f"${single}", next(values))
        words = [*values]
        all_words = rf"\$\(\${repeated}(.*?)\),\*"
        return expression(
            re.sub(all_words, lambda part: ", ".join(f"({word}){part[1]}" for word in words), body)
        )


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
            return self.evaluate(field(function.node, "body"), ChainMap({}, known))
        except Return as early:
            return early.args[0]

    def evaluate(self, node: Node, scope: Scope) -> Any:
        """The value of a node. There is a method for each kind of the grammar's that is used."""
        return getattr(self, f"on_{node.type}")(scope, node)

    def field(self, scope: Scope, node: Node, name: str) -> Any:
        return self.evaluate(field(node, name), scope)

    def all(self, scope: Scope, node: Node) -> list[Any]:
        return [self.evaluate(part, scope) for part in parts(node)]

    def bind(self, pattern: Node, value: Any, scope: Scope) -> None:
        match pattern.type:
            case "identifier":
                scope[text(pattern)] = value
            case "mut_pattern":
                self.bind(parts(pattern)[0], value, scope)
            case "tuple_struct_pattern":
                self.bind(parts(pattern)[1], value.value, scope)
            case "tuple_pattern" | "slice_pattern":
                for part, item in zip(parts(pattern), value, strict=True):
                    self.bind(part, item, scope)
            case _:
                raise SyntaxError(f"a pattern: {text(pattern)}")

    # Statements.

    def on_block(self, scope: Scope, node: Node) -> Any:
        value, inner = None, scope.new_child()
        for statement in parts(node):
            value = self.evaluate(statement, inner)
        return value

    def on_unsafe_block(self, scope: Scope, node: Node) -> Any:
        return self.all(scope, node)[0]

    on_parenthesized_expression = on_unsafe_block

    def on_expression_statement(self, scope: Scope, node: Node) -> Any:
        [value] = self.all(scope, node)
        return None if text(node).endswith(";") else value

    def on_let_declaration(self, scope: Scope, node: Node) -> None:
        pattern, otherwise = field(node, "pattern"), field(node, "alternative")
        value = self.field(scope, node, "value")
        if text(pattern) in self.cuts:
            self.cuts[text(pattern)] = value
            value = any_like(text(pattern), value)
        if otherwise and not known(value.present):
            self.evaluate(otherwise, scope)
        self.bind(pattern, value, scope)

    def on_for_expression(self, scope: Scope, node: Node) -> None:
        body = field(node, "body")

        def run(item: Any) -> None:
            inner = scope.new_child()
            self.bind(field(node, "pattern"), item, inner)
            self.evaluate(body, inner)

        values = self.field(scope, node, "value")
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

    def on_assignment_expression(self, scope: Scope, node: Node, value: Any = None) -> None:
        target, value = field(node, "left"), value or self.field(scope, node, "right")
        match target.type:
            case "identifier":
                self.assign(text(target), value, scope)
            case "unary_expression":
                [cell] = self.all(scope, target)
                cell.place[cell.at] = value
            case "index_expression":
                array, at = self.all(scope, target)
                array[at] = value
            case _:
                raise SyntaxError(f"assignment to {text(target)}")

    def on_compound_assignment_expr(self, scope: Scope, node: Node) -> None:
        self.on_assignment_expression(scope, node, self.on_binary_expression(scope, node))

    # Expressions.

    def on_return_expression(self, scope: Scope, node: Node) -> None:
        raise Return(*self.all(scope, node))

    def on_if_expression(self, scope: Scope, node: Node) -> Any:
        chosen = "consequence" if known(self.field(scope, node, "condition")) else "alternative"
        return self.field(scope, node, chosen)

    on_else_clause = on_unsafe_block

    def on_match_expression(self, scope: Scope, node: Node) -> Any:
        value = self.field(scope, node, "value")
        name = value.name if isinstance(value, Variant) else str(known(value))
        arms = parts(field(node, "body"))
        arm = next(x for x in arms if text(field(x, "pattern")).split("(")[0] in (name, "_"))
        [*pattern] = parts(field(arm, "pattern"))
        inner = scope.new_child()
        if pattern and pattern[0].type == "tuple_struct_pattern":
            self.bind(pattern[0], value, inner)
        return self.field(inner, arm, "value")

    def on_closure_expression(self, scope: Scope, node: Node) -> Callable[..., Any]:
        def closure(*arguments: Any) -> Any:
            inner = scope.new_child()
            for pattern, value in zip(parts(field(node, "parameters")), arguments, strict=True):
                self.bind(pattern, value, inner)
            return self.field(inner, node, "body")

        return closure

    def on_integer_literal(self, scope: Scope, node: Node) -> int:
        return int(re.sub(r"_|[iu](8|16|32|64|128|size)$", "", text(node)), 0)

    def on_tuple_expression(self, scope: Scope, node: Node) -> tuple[Any, ...]:
        return tuple(self.all(scope, node))

    def on_array_expression(self, scope: Scope, node: Node) -> Slice:
        items = self.all(scope, node)
        return Slice(items[:1] * known(items[1]) if field(node, "length") else items)

    def on_struct_expression(self, scope: Scope, node: Node) -> Struct:
        entries = parts(field(node, "body"))
        values = {text(field(x, "field")): self.field(scope, x, "value") for x in entries}
        return Struct(Type(f"{scope['']}.{text(field(node, 'name'))}"), values)

    def ends(self, scope: Scope, node: Node) -> list[Any]:
        """The start and the stop of a range, where it has them."""
        whole = [part for part in node.children if part.type not in SKIPPED]
        at = [part.type for part in whole].index("..")
        sides = whole[:at], whole[at + 1 :]
        return [self.evaluate(side[0], scope) if side else None for side in sides]

    def on_range_expression(self, scope: Scope, node: Node) -> Slice:
        start, stop = self.ends(scope, node)
        return Slice(range(start, stop))

    def on_index_expression(self, scope: Scope, node: Node) -> Any:
        array, at = parts(node)
        items = self.evaluate(array, scope)
        if at.type == "range_expression":
            return items.part(*self.ends(scope, at))
        return items[self.evaluate(at, scope)]

    def on_field_expression(self, scope: Scope, node: Node) -> Any:
        value, name = self.field(scope, node, "value"), text(field(node, "field"))
        return value.fields[name] if isinstance(value, Struct) else getattr(value, name)

    def on_type_cast_expression(self, scope: Scope, node: Node) -> Any:
        value, to = self.field(scope, node, "value"), text(field(node, "type"))
        return value.cast(to) if isinstance(value, Int) else as_argument(value, to)

    def on_macro_invocation(self, scope: Scope, node: Node) -> Any:
        name, given = map(text, parts(node))
        return self.evaluate(self.source.expand(scope[""], name, given), scope)

    def on_call_expression(self, scope: Scope, node: Node) -> Any:
        callee, types = field(node, "function"), []
        values = self.all(scope, field(node, "arguments"))
        if callee.type == "generic_function":
            types = [self.type(scope, text(x)) for x in parts(field(callee, "type_arguments"))]
            callee = field(callee, "function")
        if callee.type == "field_expression":
            value = self.field(scope, callee, "value")
            return self.method(value, text(field(callee, "field")), *values, *types)
        function = self.path(scope, text(callee), types)
        if isinstance(function, Type) and callable(values[0]):
            # The array is the only field, and its type tells how many items it has.
            file, name = function.name.split(".")
            [array] = parts(field(self.source.structs[file, name], "body"))
            values = [Slice(map(values[0], range(int(text(field(array, "length"))))))]
        return function(*values)

    def method(self, value: Any, name: str, *values: Any) -> Any:
        kind = value.type if isinstance(value, Int | Struct) else ""
        owner = kind.name if isinstance(kind, Type) else kind
        if owner and self.has(owner, name):
            return self.call(owner, name, value, *values)
        if isinstance(value, int):
            signed = partial(number, kind="i32")
            methods: dict[str, Callable[..., Any]] = {
                "min": min,
                "into": int,
                "cast_signed": signed,
            }
            return methods[name](value, *values)
        if isinstance(value, Int) and name == "rem_euclid":
            return self.remainder(value, *values)
        return getattr(value, name)(*values)

    def has(self, owner: str, name: str) -> bool:
        """Whether this is a function of the file or type, or one of a trait."""
        places = {*self.stubs, *self.source.functions}
        return (owner, name) in places or ("trait", name) in places

    def on_identifier(self, scope: Scope, node: Node) -> Any:
        return self.path(scope, text(node), [])

    on_scoped_identifier = on_self = on_identifier

    def path(self, scope: Scope, path: str, types: list[Any]) -> Any:
        *owners, name = path.split("::")
        if not owners:
            if name in scope:
                return scope[name]
            return intrinsic(name) or self.member(scope, scope[""], name, types)
        if owners == ["core", "array"]:
            return {"from_fn": lambda step: step}[name]  # See `on_call_expression`.
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

    def member(self, scope: Scope, owner: str, name: str, types: list[Any]) -> Any:
        """A function, a constant, or the constructor of a tuple."""
        owner = self.source.imported(owner, name)
        if stub := self.stubs.get((owner, name)):
            return lambda *arguments, **_: stub(*arguments)
        if self.has(owner, name):
            generics = generics_of(self.source.function(owner, name).node)
            values = {generic: scope[generic] for generic in generics if generic in scope}
            return partial(
                self.call, owner, name, **values | dict(zip(generics, types, strict=False))
            )
        if (owner, name) in self.source.constants:
            file, value = self.source.constants[owner, name]
            return self.evaluate(value, ChainMap({"": file}))
        return self.type(scope, name)

    def associated(self, owner: Type, kind: str, name: str, scope: Scope) -> Any:
        """A function of the type that another one names, such as ``V::Search::reached``."""
        file, written = self.source.types[owner.name, kind]
        head, *arguments = re.findall(r"\w+", written)
        home = self.source.imported(file, head)
        parameters = generics_of(self.source.structs[home, head])
        values = [Type(f"{file}.{argument}") for argument in arguments]
        generics = {"V": owner, **dict(zip(parameters, values, strict=True))}
        return partial(self.member(scope, f"{home}.{head}", name, []), **generics)

    def type(self, scope: Scope, name: str) -> Any:
        """A type by its name, or the number that stands in its place."""
        if name.isdigit():
            return int(name)
        if name in scope:
            return scope[name]
        if is_integer(name) or name in ("__m128i", "__m256i", "__m512i"):
            return Type(name)
        if (scope[""], name) not in self.source.structs:
            raise NameError(f"{name} in {scope['']}")
        return Type(f"{scope['']}.{name}")

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

    def on_reference_expression(self, scope: Scope, node: Node) -> Any:
        return self.field(scope, node, "value")

    def on_unary_expression(self, scope: Scope, node: Node) -> Any:
        [value], operator = self.all(scope, node), node.children[0].type
        if operator == "*":
            return value.place[value.at] if isinstance(value, Cell) else value
        return Int(value.type, -value.term if operator == "-" else ~value.term)

    def on_binary_expression(self, scope: Scope, node: Node) -> Any:
        x, y = (self.field(scope, node, side) for side in ("left", "right"))
        operator = text(field(node, "operator")).removesuffix("=")
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


def assigned(node: Node) -> Iterator[str]:
    """The variables that a statement assigns. It must assign nothing else."""
    if node.type in ("assignment_expression", "compound_assignment_expr"):
        target = field(node, "left")
        assert target.type == "identifier", f"an assignment to {text(target)}"
        yield text(target)
    for part in node.named_children:
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
