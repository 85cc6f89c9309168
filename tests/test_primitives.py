"""The primitives of the secret path, proved for all inputs from the text of the Rust source.

:class:`Rust` reads functions of ``rust/core/src`` and runs them on bit vectors of z3 instead of
numbers, so that what is proved is what is written there: a change to the source changes the statement
that is proved, and source that cannot be read is an error. Trusted are z3, the reader (which is
compared with the compiled library at the end), the meaning of the intrinsics (:data:`INTRINSICS`) and
that of the methods of Rust's standard library (:class:`Int` and what follows it).

The proofs are made for one function at a time; where a function calls another one, whose statement
has been proved, any result that fits the statement is tried in its place.
"""

import itertools
import operator
import random
import re
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import z3

from geomdp import GeometricMechanism, _core
from geomdp.testing import release_not_private

CORE = Path(__file__).parents[1] / "rust/core/src"
FILES = ["ct", "bernoulli", "fold", "kernel/mod", "kernel/vector", "kernel/avx2", "kernel/avx512"]


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
        return Int(to, z3.Extract(width(to) - 1, 0, self.term))

    def same(self, other: Any) -> z3.BitVecRef:
        """The other operand, of the same width."""
        if isinstance(other, Int):
            return other.cast(self.type).term
        return z3.BitVecVal(other, self.term.size())

    def wrapping_add(self, other: Any) -> "Int":
        return Int(self.type, self.term + self.same(other))

    def wrapping_sub(self, other: Any) -> "Int":
        return Int(self.type, self.term - self.same(other))

    def wrapping_mul(self, other: Any) -> "Int":
        return Int(self.type, self.term * self.same(other))

    def wrapping_neg(self) -> "Int":
        return Int(self.type, -self.term)

    def saturating_sub(self, other: Any) -> "Int":
        less = z3.ULT(self.term, self.same(other))
        return Int(self.type, z3.If(less, self.same(0), self.term - self.same(other)))

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

    def iter(self) -> Items:
        return Items(self)

    def iter_mut(self) -> Items:
        return Items(Cell(self, at) for at in range(self.len()))

    def chunks_exact(self, size: int) -> Items:
        return Items(self.part(at, at + size) for at in range(0, self.len() // size * size, size))

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

    def cast(self, to: Type) -> "Pointer":
        return Pointer(self.words, {"__m256i": 4, "__m512i": 8}[to.name], self.at)

    def add(self, registers: int) -> "Pointer":
        return Pointer(self.words, self.size, self.at + registers * self.size)


def width(name: str) -> int:
    return 64 if name.endswith("size") else int(name[1:])


def is_integer(name: str) -> bool:
    return re.fullmatch(r"[iu](8|16|32|64|128|size)", name) is not None


# --- What the intrinsics do, after Intel's guide. A register is a tuple of words. ---

Register = tuple[z3.BitVecRef, ...]


def each(meaning: Callable[..., z3.BitVecRef]) -> Callable[..., Register]:
    return lambda *registers: tuple(map(meaning, *registers))


def bits(mask: z3.BitVecRef) -> list[z3.BoolRef]:
    return [z3.Extract(i, i, mask) == 1 for i in range(mask.size())]


def load(source: Pointer) -> Register:
    return tuple(source.words[source.at + i].term for i in range(source.size))


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
    "_mm512_set1_epi64": lambda x: (x.term,) * 8,
    "_mm512_loadu_si512": load,
    "_mm512_storeu_si512": store,
    "_mm512_add_epi64": each(operator.add),
    "_mm512_sub_epi64": each(operator.sub),
    "_mm512_and_si512": each(operator.and_),
    "_mm512_sllv_epi64": each(operator.lshift),
    "_mm512_srlv_epi64": each(z3.LShR),
    "_mm512_min_epu64": each(unsigned_min),
    "_mm512_max_epu64": each(unsigned_max),
    "_mm512_cmplt_epi64_mask": lambda x, y: as_mask(each(operator.lt)(x, y)),
    "_mm512_mask_sub_epi64": lambda source, mask, x, y: each(z3.If)(
        bits(mask), each(operator.sub)(x, y), source
    ),
    "_mm512_mask_blend_epi64": lambda mask, x, y: each(z3.If)(bits(mask), y, x),
}


def as_mask(conditions: Any) -> z3.BitVecRef:
    """An AVX-512 mask, whose lowest bit belongs to the first word."""
    return z3.Concat(*(set_all(condition, 1) for condition in reversed(conditions)))


# --- Reading Rust. ---

TOKEN = re.compile(
    r"""\s+ | //[^\n]* | \#!?\[[^\]]*\]            # nothing: space, comments, attributes
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
def tokenize(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, text[at : at + 40]
        at = found.end()
        tokens += [found["token"]] if found["token"] else []
    return tokens


class Parser:
    """Statements and expressions as nested tuples, ``(kind, ...)``; types are skipped."""

    def __init__(self, tokens: list[str]) -> None:
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
            raise SyntaxError(f"{wanted} wanted in: {' '.join(self.tokens[:self.at])} ({found})")

    def several(self, item: Callable[[], Any], close: str) -> list[Any]:
        items = []
        while not self.accept(close):
            items.append(item())
            if not self.accept(","):
                self.expect(close)
                break
        return items

    def group(self) -> list[str]:
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
        if self.accept("("):
            return ("all", self.several(self.pattern, ")"))
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
            first = self.expression()
            self.expect(";")
            node = ("repeat", first, self.expression())
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
            raise SyntaxError(f"no expression: {' '.join(self.tokens[:self.at])}")
        while self.accept("::"):
            if self.accept("<"):
                types = self.several(lambda: self.type(",", ">"), ">")
            else:
                names.append(self.take())
        if self.accept("!"):
            return ("macro", names[0], self.group())
        if literals and names[0][0].isupper() and self.accept("{"):
            return ("literal", names[0], self.several(self.entry, "}"))
        return ("path", names, types)

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
                    types = self.several(lambda: self.type(",", ">"), ">")
                if self.accept("("):
                    node = ("method", node, name, types, self.several(self.expression, ")"))
                else:
                    node = ("field", node, name)
            else:
                return node


@dataclass(frozen=True)
class Function:
    name: str
    file: str
    owner: Type | None
    generics: list[str]
    parameters: list[tuple[str, str]]
    body: Node

    @classmethod
    def read(cls, file: str, owner: Type | None, tokens: list[str]) -> "Function":
        parser = Parser(tokens)
        name, generics = parser.take(), []
        if parser.accept("<"):
            text = parser.several(lambda: parser.type(",", ">"), ">")
            generics = [re.sub(r"^const ", "", generic).split()[0] for generic in text]
        parser.expect("(")
        parameters = []
        while not parser.accept(")"):
            while parser.accept("&", "mut"):
                pass
            parameter = parser.take()
            kind = parser.type(",", ")") if parser.accept(":") else "Self"
            parameters.append((parameter, kind))
            parser.accept(",")
        parser.type("{", "where")
        return cls(name, file, owner, generics, parameters, parser.block())


class Return(Exception):  # noqa: N818
    """The value of a function that returns early."""


class Source:
    """The items of the files: functions, constants and methods, as tokens until they are used."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.functions: dict[tuple[str, str], tuple[str, Type | None, list[str]]] = {}
        self.constants: dict[tuple[str, str], tuple[str, list[str]]] = {}
        for file, text in texts.items():
            self.items(file, None, tokenize(text))
        self.expand_counts(texts["kernel/mod"])

    @cache  # noqa: B019
    def function(self, scope: str, name: str) -> Function:
        return Function.read(*self.functions[scope, name])

    def items(self, file: str, owner: Type | None, tokens: list[str]) -> None:
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
            elif kind == "impl":
                head = parser.type("{").split(" for ")[-1].split()[0]
                target = head if is_integer(head) else f"{file}.{head}"
                self.items(file, Type(target), parser.group())
            elif kind == "{":
                parser.at -= 1
                parser.group()

    def expand_counts(self, text: str) -> None:
        """The methods that a macro gives to the eight types of counts."""
        body = re.search(r"macro_rules! count \{.*?=> \{\$\((.*?)\)\*\};", text, re.DOTALL)
        rows = re.search(r"^count! \{(.*?)^\}", text, re.DOTALL | re.MULTILINE)
        assert body
        assert rows
        for t, wide, flip in re.findall(r"(\w+), (\w+), (\w+);", rows[1]):
            one = body[1].replace("$t", t).replace("$wide", wide).replace("$flip", flip)
            self.items("kernel/mod", None, tokenize(one))

    def expand(self, file: str, name: str, tokens: list[str]) -> Node:
        """A call of the macro that applies an intrinsic to each register."""
        found = re.search(
            rf"macro_rules! {name} \{{\s*\((.*?)\) => \{{(.*?)\n    \}};",
            self.texts[file],
            re.DOTALL,
        )
        assert found
        *heads, repeated = re.findall(r"\$(\w+):", found[1])
        parser = Parser([*tokens, ","])
        arguments = []
        while parser.next:
            arguments.append(parser.type(","))
            parser.take()
        singles, words = arguments[0].split(" : "), arguments[1:]
        body = re.sub(
            rf"\$\(\${repeated}(.*?)\),\*",
            lambda part: ", ".join(f"({word}){part[1]}" for word in words),
            found[2],
        )
        for head, single in zip(heads, singles, strict=True):
            body = body.replace(f"${head}", single)
        return Parser(tokenize(body)).expression()


@cache
def source(file: str = "ct", old: str = "", new: str = "") -> Source:
    """The source, with a fault if there is one to plant."""
    texts = {name: (CORE / f"{name}.rs").read_text() for name in FILES}
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
        self.stubs: dict[tuple[str, str], Callable[..., Any]] = {("ct", "barrier"): lambda x: x}

    def call(self, scope: str, name: str, *arguments: Any, **generics: Any) -> Any:
        """Call a function of a file, or of a type that has methods."""
        if stub := self.stubs.get((scope, name)):
            return stub(*arguments)
        function = self.source.function(scope, name)
        known = {"": function.file, "Self": function.owner, **generics}
        for (parameter, kind), argument in zip(function.parameters, arguments, strict=True):
            known[parameter] = convert(argument, kind)
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
            value = self.cut(pattern[1], value)
        if otherwise and not known(value.present):
            self.evaluate(otherwise, scope)
        self.bind(pattern, value, scope)

    def cut(self, name: str, value: Any) -> Any:
        """Keep the value, and go on with any one."""
        self.cuts[name] = value
        return replace(value, term=z3.BitVec(name, value.term.size()))

    def on_for(self, scope: Scope, pattern: Node, items: Node, body: Node) -> None:
        for item in self.evaluate(items, scope):
            inner = scope.new_child()
            self.bind(pattern, item, inner)
            self.evaluate(body, inner)

    def on_assign(self, scope: Scope, target: Node, node: Node) -> None:
        value = self.evaluate(node, scope)
        match target:
            case ("path", [name], _):
                next(names for names in scope.maps if name in names)[name] = value
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
        return value.cast(to) if isinstance(value, Int) else convert(value, to)

    def on_macro(self, scope: Scope, name: str, tokens: list[str]) -> Any:
        return self.evaluate(self.source.expand(scope[""], name, tokens), scope)

    def on_call(self, scope: Scope, callee: Node, arguments: list[Node]) -> Any:
        return self.evaluate(callee, scope)(*self.all(arguments, scope))

    def on_method(
        self, scope: Scope, node: Node, name: str, types: list[str], arguments: list[Node]
    ) -> Any:
        value, values = self.evaluate(node, scope), self.all(arguments, scope)
        values += [self.type(scope, name) for name in types]
        kind = value.type if isinstance(value, Int | Struct) else ""
        owner = kind.name if isinstance(kind, Type) else kind
        if (owner, name) in self.source.functions:
            return self.call(owner, name, value, *values)
        if isinstance(value, int):
            return {"min": min, "into": int}[name](value, *values)
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
        if owners == ["ct"]:
            return self.member(scope, "ct", name, types)
        owner = self.type(scope, owners[0])
        if not isinstance(owner, Type):
            return getattr(owner, name)
        if is_integer(owner.name) and name in ("MAX", "from", "try_from"):
            return self.of_integer(owner.name, name)
        return self.member(scope, owner.name, name, types)

    def member(self, scope: Scope, owner: str, name: str, types: list[str]) -> Any:
        """A function, a constant, or the constructor of a tuple."""
        if stub := self.stubs.get((owner, name)):
            return stub
        if (owner, name) in self.source.functions:
            generics = self.source.function(owner, name).generics
            values = {generic: scope[generic] for generic in generics if generic in scope}
            values |= zip(generics, (self.type(scope, text) for text in types), strict=False)
            return partial(self.call, owner, name, **values)
        if (owner, name) in self.source.constants:
            file, tokens = self.source.constants[owner, name]
            return self.evaluate(Parser(tokens).expression(), ChainMap({"": file}))
        return self.type(scope, name)

    def type(self, scope: Scope, text: str) -> Any:
        """A type by its name, or the number that stands in its place."""
        if text.isdigit():
            return int(text)
        if text in scope:
            return scope[text]
        return Type(text if is_integer(text) or text[0] == "_" else f"{scope['']}.{text}")

    @staticmethod
    def of_integer(kind: str, name: str) -> Any:
        def checked(value: Int) -> Option:
            back = value.cast(kind).cast(value.type)
            return Option(back.term == value.term, value.cast(kind))

        if name == "MAX":
            return Int(kind, z3.BitVecVal(-1, width(kind)))  # Of unsigned types only.
        return checked if name == "try_from" else lambda value: value.cast(kind)

    def remainder(self, value: Int, modulus: Int) -> Int:
        """Some number from 0 to the modulus: all that is used of remainders."""
        result = z3.FreshConst(value.term.sort(), "remainder")
        self.given += [result >= 0, result < modulus.term]
        return Int(value.type, result)

    def on_unary(self, scope: Scope, operator: str, node: Node) -> Any:
        value = self.evaluate(node, scope)
        if operator == "*":
            return value.place[value.at] if isinstance(value, Cell) else value
        if not isinstance(value, Int):
            return {"-": lambda x: -x, "!": lambda x: not x}[operator](value)
        return Int(value.type, -value.term if operator == "-" else ~value.term)

    def on_binary(self, scope: Scope, operator: str, left: Node, right: Node) -> Any:
        x, y = self.all([left, right], scope)
        if not isinstance(x, Int | z3.BoolRef) and not isinstance(y, Int | z3.BoolRef):
            return KNOWN[operator](x, y)
        kind = x.type if isinstance(x, Int) else y.type
        x, y = (Int(kind, word("", kind).same(z)) for z in (x, y))
        if operator in NEEDED:
            self.needed.append(NEEDED[operator](x, y))
        return Int(kind, TERMS[operator](x, y))


def known(value: Any) -> Any:
    """The number or truth that decides a jump, which must not depend on a term."""
    if not isinstance(value, int):
        raise TypeError(f"a jump that depends on {value}")
    return value


def convert(value: Any, to: str) -> Any:
    """A value where this type is wanted. Known lengths and places stay ints."""
    if isinstance(value, Int) and is_integer(to) and value.type != to:
        return value.cast(to)
    if isinstance(value, int) and is_integer(to) and to not in ("usize", "u32"):
        return Int(to, z3.BitVecVal(value, width(to)))
    return value


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


KNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "<<": operator.lshift,
    "==": operator.eq,
}
TERMS: dict[str, Callable[[Int, Int], z3.BitVecRef]] = {
    "+": lambda x, y: x.term + y.term,
    "-": lambda x, y: x.term - y.term,
    "*": lambda x, y: x.term * y.term,
    "/": lambda x, y: z3.UDiv(x.term, y.term),  # Of unsigned types only.
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


# --- Proofs. Each takes the source, so that faults can be planted in it. ---


class Refuted(Exception):  # noqa: N818
    """Inputs for which a statement does not hold."""


def prove(claim: z3.BoolRef, *given: z3.BoolRef) -> None:
    assert answer(*given) is not None, "nothing is stated"
    if (model := answer(*given, z3.Not(claim))) is not None:
        raise Refuted(model)


def answer(*conditions: z3.BoolRef) -> z3.ModelRef | None:
    """Values that fulfil the conditions, if there are any."""
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


def word(name: str, kind: str = "u64") -> Int:
    return Int(kind, z3.BitVec(name, width(kind)))


def words(name: str, count: int) -> list[Int]:
    return [word(f"{name}{i}") for i in range(count)]


def wide(x: Any) -> z3.BitVecRef:
    """The number that a word stands for, in 80 bits, where nothing here overflows."""
    extend = z3.SignExt if isinstance(x, Int) and x.type[0] == "i" else z3.ZeroExt
    return extend(80 - x.term.size(), x.term)


def flag(condition: z3.BoolRef) -> z3.BitVecRef:
    return z3.If(condition, z3.BitVecVal(1, 64), z3.BitVecVal(0, 64))


def clamp(x: z3.BitVecRef, low: Any, high: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(x < low, low, z3.If(x > high, high, x))


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


# What the operations of a vector mean for each word. `less` is for signed words that are close.
MEANING: dict[str, Callable[..., Any]] = {
    "splat": lambda x: x,
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "shl": operator.lshift,
    "shr": z3.LShR,
    "min": unsigned_min,
    "max": unsigned_max,
    "less": operator.lt,
    "decrease": lambda x, mask: x - flag(mask),
    "select": z3.If,
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
        if self.width == 8:
            spread = tuple(map(set_all, truths))
            return self.type(spread[:4], spread[4:])
        return Type("kernel/avx512.Mask")(as_mask(truths[:8]), as_mask(truths[8:]))


BACKENDS = {
    "portable": Backend(Type("u64"), 1),
    "avx2": Backend(Type("kernel/avx2.Words"), 8),
    "avx512": Backend(Type("kernel/avx512.Words"), 16),
}


def term(x: Any) -> Any:
    return getattr(x, "term", x)


def same_mask(x: Any, y: Any) -> z3.BoolRef:
    if isinstance(x, Struct):
        return z3.And(x.type == y.type, *map(same_mask, x.fields.values(), y.fields.values()))
    return z3.And(*map(same_mask, x, y)) if isinstance(x, tuple) else term(x) == term(y)


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
        *((name, [x, y], [xs, ys]) for name in ("add", "sub", "and", "min", "max")),
        *((name, [x, shift], [xs, shifts]) for name in ("shl", "shr")),
        ("decrease", [x, mask], [xs, truths]),
        ("select", [mask, x, y], [truths, xs, ys]),
    ]:
        result = vector.words(rust, call(name, *given))
        equal = map(operator.eq, result, meaning(name, *operands))
        prove(z3.And(*equal, *rust.needed), wide(shift) < 64)
    equal = same_mask(call("less", x, y), vector.mask(meaning("less", xs, ys)))
    prove(equal, *(close(a.term, b.term) for a, b in zip(xs, ys, strict=True)))


COUNTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def keys(rust: Rust, kind: str) -> None:
    """Keys keep distances, and so the order, and lead back."""
    x, y = word("x", kind), word("y", kind)
    key_x, key_y = (rust.call(kind, "to_key", count) for count in (x, y))
    prove(wide(key_x) - wide(key_y) == wide(x) - wide(y))
    prove(z3.ULT(key_x.term, key_y.term) == (wide(x) < wide(y)))
    prove(rust.call(kind, "from_key", key_x).term == x.term)


def blocks(rust: Rust, kind: str, backend: str) -> None:
    """What is drawn for are clamped counts above the lower bound, each with words of its own; and
    what is drawn is put above the lower bound again.
    """
    counts = [word(f"count{i}", kind) for i in range(16)]
    lower, upper = word("lower", kind), word("upper", kind)
    plan = SimpleNamespace(range=Int("u64", z3.Extract(63, 0, wide(upper) - wide(lower))))
    tape, block, offsets = words("word", 32), Slice(list(counts)), []
    vector = BACKENDS[backend]

    def draw(_: Any, words: Slice, offset: Any) -> Any:
        """Anything from 0 to the range: here, each draw's first word."""
        offsets.extend(vector.words(rust, offset))
        return vector.load(rust, [words[i] for i in range(vector.width)])

    rust.stubs["kernel/mod", "draw"] = draw
    least = rust.call(kind, "to_key", lower)
    generics = {"V": vector.type, "T": Type(kind)}
    rust.call("kernel/mod", "noise_block", plan, least, Slice(tape), block, **generics)
    assert len(offsets) == len(counts)
    claims = []
    count, drawn = word("count", kind), word("drawn")
    for own_count, own, offset, noisy in zip(counts, tape, offsets, block, strict=False):
        above = clamp(wide(own_count), wide(lower), wide(upper)) - wide(lower)
        given = wide(Int("u64", offset)) == above
        back = wide(noisy) == wide(lower) + wide(own)
        # The claims of all counts are one, but for the names.
        names = (own_count.term, count.term), (own.term, drawn.term)
        claims += [z3.substitute(claim, *names) for claim in (given, back)]
    inside = wide(drawn) <= wide(plan.range)
    prove_each([*claims, *rust.needed], wide(lower) <= wide(upper), inside)


@dataclass(frozen=True)
class Ideals:
    """A type of vectors of one word, whose operations are what they mean. A mask is a truth."""

    rust: Rust
    WIDTH = 1

    def splat(self, value: Any) -> "Ideal":
        return Ideal(self, convert(value, "u64").term)

    def load(self, words: Slice) -> "Ideal":
        return self.splat(words[0])

    def select(self, mask: z3.BoolRef, yes: "Ideal", no: "Ideal") -> "Ideal":
        return Ideal(self, MEANING["select"](mask, yes.term, no.term))


@dataclass(frozen=True)
class Ideal:
    kind: Ideals
    term: z3.BitVecRef

    def less(self, other: "Ideal") -> z3.BoolRef:
        self.kind.rust.needed.append(close(self.term, other.term))
        return MEANING["less"](self.term, other.term)

    def __getattr__(self, name: str) -> Callable[[Any], "Ideal"]:
        def operation(other: Any) -> "Ideal":
            other = self.kind.splat(other) if isinstance(other, Int | int) else other
            return Ideal(self.kind, MEANING[name](self.term, term(other)))

        return operation


LIMB_BITS = 63
# Those of a top digit of the largest radix, and of the floor's slot and of no noise.
MOST_THRESHOLDS = 31 + 2


def outcomes(rust: Rust, limbs: int) -> None:
    """How many thresholds the number (own words, tie) has reached, for any thresholds."""
    tape, cuts = words("word", 1 + limbs), words("limb", (1 + limbs) * MOST_THRESHOLDS)
    lane = Slice([word for word in tape for _ in range(16)])
    ideals = Ideals(rust)

    def reached(cuts: list[Int]) -> z3.BitVecRef:
        count, tie = len(cuts) // (1 + limbs), ideals.splat(tape[0]).shr(1)
        digit = SimpleNamespace(limbs=limbs, count=count, thresholds=Slice(cuts))
        return rust.call("kernel/mod", "outcome", digit, lane, 1, 1, tie, V=ideals).term

    def number(parts: list[z3.BitVecRef]) -> z3.BitVecRef:
        return z3.Concat(*(z3.Extract(LIMB_BITS - 1, 0, part) for part in parts))

    size = 1 + limbs
    uniform = number([z3.LShR(word.term, 1) for word in [*tape[1:], tape[0]]])
    threshold = number([limb.term for limb in cuts[:size]])
    one = reached(cuts[:size]) == flag(z3.UGE(uniform, threshold))
    prove(z3.And(one, *rust.needed), *(z3.LShR(limb.term, LIMB_BITS) == 0 for limb in cuts[:size]))
    # Of several, as many as of each.
    prove(reached(cuts) == sum(reached(cuts[at : at + size]) for at in range(0, len(cuts), size)))


def draws(rust: Rust, limbs: list[int]) -> None:
    """The draw for digits of so many own words, whatever outcomes, counts, weights and range are:
    in the floor's slot the floor's value, else the count with its noise, clamped to the range.
    """
    n, ideals = len(limbs), Ideals(rust)
    offset, limit, sign_mask = word("offset"), word("range"), word("sign_mask")
    value_bits = word("value_bits", "u32")
    reached, counts = words("reached", n), [word(f"count{i}", "usize") for i in range(n)]
    shifts = [word(f"shift{i}", "u32") for i in range(n)]
    digits = [
        SimpleNamespace(limbs=own, count=count, shift=shift)
        for own, count, shift in zip(limbs, counts, shifts, strict=True)
    ]
    plan = SimpleNamespace(
        range=limit,
        limb_bits=LIMB_BITS,
        digits=Slice(digits),
        sign_mask=sign_mask,
        floor_value_bits=value_bits,
    )
    tape = words("word", 1 + max(sum(limbs), limbs[0] + 1))
    shared, free = tape[0], tape[1 + limbs[0]]
    claims = []

    def outcome(digit: Any, words: Slice, at: int, shift: int, tie: Any) -> Any:
        """Any outcome, but of the digit's own words and the upper bits of the shared one."""
        i = next(i for i in range(n) if digit is digits[i])
        claims.append(z3.BoolVal((words.start, at, shift) == (0, 1 + sum(limbs[:i]), 1)))
        claims.append(tie.term == z3.LShR(shared.term, 1))
        return ideals.splat(reached[i])

    rust.stubs["kernel/mod", "outcome"] = outcome
    rust.cuts = {"magnitude": None, "value_mask": None}
    lane = Slice([word for word in tape for _ in range(16)])
    noisy = rust.call("kernel/mod", "draw", plan, lane, ideals.splat(offset), V=ideals)
    at, end = wide(offset), wide(limit)
    given = [
        z3.And(at <= end, end > 0, wide(sign_mask) <= 1, wide(value_bits) <= 64),
        wide(counts[0]) >= 2,
        *(wide(count) <= MOST_THRESHOLDS for count in counts),
        *(wide(x) <= wide(count) for x, count in zip(reached, counts, strict=True)),
    ]
    prove_each([*claims, *rust.needed], *given, *(wide(shift) < 64 for shift in shifts))

    # The noise less one: the first digit, of which two outcomes are the floor's slot and no noise, and
    # of each other one its value times its weight, which is right where it is a word.
    total, names = reached[0].term - 2, []
    for value, shift, part in zip(reached[1:], shifts[1:], words("part", n - 1), strict=True):
        names.append((value.term << shift.cast("u64").term, part.term))
        total += part.term
        product = wide(value) << wide(shift)
        found = wide(Int("u64", names[-1][0]))
        prove(found == product, wide(shift) < 64, product < 1 << 64, *given)
    exact = wide(reached[0]) - 2 + sum(wide(Int("u64", part)) for _, part in names)
    prove(wide(Int("u64", total)) == exact, wide(reached[0]) >= 2, exact < 1 << 64, *given)
    # Plans promise that it is a word, but for the last outcome of the last digit, which is more than
    # any range; so the magnitude is right up to the range.
    less_one = word("less_one")
    noise = wide(less_one) + 1
    beyond = z3.Or(reached[-1].term == counts[-1].term, noise > end)
    wanted = z3.If(wide(reached[0]) < 2, 0, z3.If(beyond, end, noise))
    magnitude = wide(rust.cuts["magnitude"])
    for name in (*names, (total, less_one.term)):
        magnitude = z3.substitute(magnitude, name)
    prove(magnitude == wanted, *given)

    # What is made of any magnitude, and of any mask for the floor's value.
    prove(wide(rust.cuts["value_mask"]) == (1 << wide(value_bits)) - 1, *given)
    some, mask = wide(word("magnitude")), wide(word("value_mask"))
    in_floor, falls = reached[0].term == 0, shared.term & sign_mask.term == 1
    for result, *case in [
        (wide(free) & mask, in_floor),
        (at - some, z3.Not(in_floor), falls),
        (at + some, z3.Not(in_floor), z3.Not(falls)),
    ]:
        prove(wide(noisy) == clamp(result, 0, end), *case, *given)


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


def reflections(rust: Rust) -> None:
    """Keys are folded as it is defined, for all keys and all periods."""
    key, before, period, half = word("key"), word("before", "i128"), word("period"), word("half")
    folded = Struct(Type("fold.Folded"), {"period": period, "half": half})
    reflection = rust.call("fold.Folded", "reflection", folded, before)
    given = [wide(period) >= 1, wide(half) <= 1, *rust.given]
    # Any remainder is tried; which one it is, is proved below.
    rest, reduced = word("rest"), []
    rust.stubs["fold", "reduce"] = lambda x, modulus: reduced.append((x, modulus)) or rest
    rust.cuts = {"place": None}
    offset = rust.call("fold.Reflection", "offset", reflection, key)
    del rust.stubs["fold", "reduce"]
    prove_each(rust.needed, *given)

    # What is reduced: the key, less its product with the reciprocal, over 2^64, times the period.
    reciprocal = z3.UDiv(z3.BitVecVal(-1, 64), period.term)
    product = z3.ZeroExt(64, key.term) * z3.ZeroExt(64, reciprocal)
    [(x, modulus)] = reduced
    prove(x.term == key.term - z3.Extract(127, 64, product) * period.term)
    # It is the remainder or that and a period: in integers, 64 bits and their products being too much.
    k, p, m, q = z3.Ints("k p m q")
    words, divided, quotient = 2**64, [m * p < 2**64, (m + 1) * p >= 2**64], k * m - q * 2**64
    prove(
        z3.And(k - q * p >= 0, k - q * p < 2 * p),
        *(k >= 0, k < words, p >= 1, p < words, quotient >= 0, quotient < words, *divided),
    )
    x, once = word("x"), word("x").wrapping_sub(period).term
    mended = z3.If(z3.ULT(x.term, period.term), x.term, once)
    less = wide(x) < 2 * wide(period)
    prove(rust.call("fold", "reduce", x, modulus).term == mended, less, *given)
    # So the place is the remainder of the key moved by the shift,
    moved = wide(rest) + wide(reflection.fields["shift"])
    place = z3.If(moved < wide(period), moved, moved - wide(period))
    prove(wide(rust.cuts["place"]) == place, wide(rest) < wide(period), *given)
    # and the offset its reflection: in half units, at 0 and at the period.
    place = wide(word("place"))
    twice = 2 * place + wide(half)
    back = z3.If(twice <= wide(period), twice, 2 * wide(period) - twice)
    prove(2 * wide(offset) + wide(half) == back, place < wide(period), *given)
