"""A reader of Coq: evaluates the functions of ``proofs/Statement.v`` on numbers or terms of z3.

So the specification in ``test_primitives.py`` is the text that Coq's theorems are about. A list has
a known length. A `Z` is an int or a word of :data:`WIDE` bits, where nothing here overflows. Text
that cannot be read is an error.
"""

import operator
import re
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import z3

WIDE = 80
Scope = dict[str, Any]
Meaning = Callable[[Scope], Any]


def choose(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, bool):
        return yes if condition else no
    return z3.If(
        condition, *(z3.BitVecVal(x, WIDE) if isinstance(x, int) else x for x in (yes, no))
    )


def both(x: Any, y: Any) -> Any:
    return x and y if isinstance(x, bool) and isinstance(y, bool) else z3.And(x, y)


def known_filter(holds: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """For each item whether it is left, if that is a term. Only the length is used."""
    return [truth for truth in map(holds, items) if truth is not False]


def length(items: list[Any]) -> Any:
    terms = [item for item in items if isinstance(item, z3.BoolRef)]
    return reduce(operator.add, (choose(term, 1, 0) for term in terms), len(items) - len(terms))


PRELUDE: Scope = {
    "negb": lambda x: not x if isinstance(x, bool) else z3.Not(x),
    "Z.min": lambda x, y: choose(x < y, x, y),
    "Z.max": lambda x, y: choose(x < y, y, x),
    "Z.of_nat": lambda n: n,
    "Nat.max": max,
    "hd": lambda default, items: items[0] if items else default,
    "tl": lambda items: items[1:],
    "last": lambda items, default: items[-1] if items else default,
    "firstn": lambda n, items: items[:n],
    "skipn": lambda n, items: items[n:],
    "filter": known_filter,
    "length": length,
}
#: The operators from the loosest on, and those that bind to the right.
LEVELS = {
    name: level
    for level, names in enumerate(["=? <? <=?", "::", "+ -", "* / mod &&", "^"], 1)
    for name in names.split()
}
RIGHT = ("::", "^")
TOKEN = re.compile(r"[\w.']+|::|:=|=>|<=\?|[<=]\?|&&|\S")
STOPS = {"", ")", "]", ";", ",", "|", "in", "then", "else", "with", "end", *LEVELS}


class Coq:
    """The definitions of a file, for one plan. Those in `names` replace what the file says."""

    def __init__(self, text: str, plan: Any) -> None:
        self.names: Scope = {**PRELUDE, "pl": plan}
        #: Names bound by `let` from which on any value is tried, and the value that they have.
        self.cuts: Scope = {}
        #: What must hold for the results to be as given.
        self.needed: list[z3.BoolRef] = []
        form = r"(?:Definition|Fixpoint) (\w+)(.*?):=(.*)"
        text = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
        sentences = (
            re.fullmatch(form, part.strip(), re.DOTALL) for part in re.split(r"\.\s", text)
        )
        self.definitions = {found[1]: found.groups()[1:] for found in sentences if found}
        self.operators: dict[str, Callable[[Any, Any], Any]] = {
            "=?": operator.eq,
            "<?": operator.lt,
            "<=?": operator.le,
            "::": lambda x, items: [x, *items],
            "+": operator.add,
            "-": operator.sub,
            "*": operator.mul,
            "/": self.quotient,
            "mod": self.remainder,
            "&&": both,
            "^": self.power,
        }

    def __getattr__(self, name: str) -> Any:
        """A definition, or the projection of a record."""
        if name in self.names:
            return self.names[name]
        if name not in self.definitions:
            return operator.attrgetter(name)
        head, body = self.definitions[name]
        names = " ".join(re.findall(r"\(([\w ]+) :", head)).split()
        value = Parser(body, self).expression()

        def function(*arguments: Any) -> Any:
            return value(dict(zip(names, arguments, strict=True)))

        self.names[name] = function if names else function()
        return self.names[name]

    @staticmethod
    def power(base: int, exponent: Any) -> Any:
        assert base == 2
        return 1 << exponent

    @staticmethod
    def quotient(x: Any, y: int) -> Any:
        """By a power of two, rounded down."""
        assert y & (y - 1) == 0
        return x >> y.bit_length() - 1

    def remainder(self, x: Any, y: Any) -> Any:
        """By a power of two."""
        self.needed.append(y & (y - 1) == 0)
        return x & (y - 1)

    def cut(self, name: str, value: Any) -> Any:
        if name not in self.cuts:
            return value
        self.cuts[name] = value
        return z3.BitVec(name, WIDE)


class Parser:
    """Expressions, as functions of the names that are bound around them."""

    def __init__(self, text: str, coq: Coq) -> None:
        self.tokens, self.at, self.coq = [*TOKEN.findall(text), ""], 0, coq

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str:
        self.at += 1
        token = self.tokens[self.at - 1]
        if wanted and token not in wanted:
            raise SyntaxError(f"{wanted} wanted in: {' '.join(self.tokens[: self.at])}")
        return token

    def until(self, *stops: str) -> list[str]:
        start = self.at
        while self.next not in stops:
            self.take()
        return self.tokens[start : self.at]

    def expression(self, least: int = 0) -> Meaning:
        special = {"let": self.let, "if": self.condition, "match": self.match, "fun": self.function}
        if self.next in special:
            return special[self.take()]()
        left = self.application()
        while (level := LEVELS.get(self.next, 0)) > least:
            name = self.take()
            operands = left, self.expression(level - (name in RIGHT))
            left = partial(self.operation, self.coq.operators[name], operands)
        return left

    @staticmethod
    def operation(meaning: Callable[..., Any], operands: Any, scope: Scope) -> Any:
        return meaning(*(operand(scope) for operand in operands))

    def let(self) -> Meaning:
        name = self.take()
        self.take(":=")
        value = self.expression()
        self.take("in")
        rest = self.expression()
        return lambda scope: rest(scope | {name: self.coq.cut(name, value(scope))})

    def condition(self) -> Meaning:
        parts = [self.expression()]
        for word in ("then", "else"):
            self.take(word)
            parts.append(self.expression())
        return partial(self.operation, choose, parts)

    def function(self) -> Meaning:
        name = self.take()
        self.take("=>")
        body = self.expression()
        return lambda scope: lambda value: body(scope | {name: value})

    def match(self) -> Meaning:
        values, arms = [self.expression()], []
        while self.take(",", "with") == ",":
            values.append(self.expression())
        while self.next != "end":
            if self.next == "|":
                self.take()
            patterns = [self.until(",", "=>")]
            while self.take() == ",":
                patterns.append(self.until(",", "=>"))
            arms.append((patterns, self.expression()))
        self.take()

        def meaning(scope: Scope) -> Any:
            given = [value(scope) for value in values]
            for patterns, body in arms:
                found = [*map(bound, patterns, given)]
                if None not in found:
                    return body(reduce(operator.or_, found, scope))
            raise ValueError("no pattern fits")

        return meaning

    def application(self) -> Meaning:
        parts = [self.atom()]
        while self.next not in STOPS:
            parts.append(self.atom())
        if len(parts) == 1:
            return parts[0]
        return partial(self.operation, lambda function, *values: function(*values), parts)

    def atom(self) -> Meaning:
        token = self.take()
        if token == "(":
            inside = self.expression()
            self.take(")")
            return inside
        if token == "[":
            items = []
            while self.next != "]":
                items.append(self.expression())
                if self.next == ";":
                    self.take()
            self.take()
            return partial(self.operation, lambda *values: [*values], items)
        if token.isdigit():
            return lambda _: int(token)
        if not re.match(r"\w", token):
            raise SyntaxError(f"no expression: {' '.join(self.tokens[: self.at])}")
        return lambda scope: scope[token] if token in scope else getattr(self.coq, token)


def bound(pattern: list[str], value: Any) -> Scope | None:
    """The names that a pattern binds, if the value fits."""
    match pattern:
        case ["_"]:
            return {}
        case ["[", "]"]:
            return None if value else {}
        case ["[", name, "]"]:
            return {name: value[0]} if len(value) == 1 else None
        case [name, "::", rest]:
            return {name: value[0], rest: value[1:]} if value else None
        case [name]:
            return {name: value}
    raise SyntaxError(f"no pattern: {' '.join(pattern)}")
