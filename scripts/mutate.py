"""Change one operator, number, name or statement of a function at a time; a test must fail.

    scripts/mutate.py FILE[:FUNCTION] ...     these modules or functions
    scripts/mutate.py --since COMMIT          the functions that changed since then

The tests of a change are those that run its function: `target/planted/runs.json` keeps which these
are, for each file of tests until one of its inputs changes. Each runs in a forked child (`planted`),
the shortest first. What survives is a gap of the tests, or an equivalent change: `# equal: WHY` at
the end of its line leaves out that line.
"""

import argparse
import ast
import copy
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import planted
from checks import differing
from inputs import Tree
from planted import ROOT, Planted

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMBINED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
PAIRS = "min max|all any|floor ceil|lower upper|left right|first last|append extend|sum max"
SWAPPED = {a: b for pair in PAIRS.split("|") for a, b in [pair.split(), pair.split()[::-1]]}
SWAPPED["sum"] = "max"
#: Their arguments may change places.
SYMMETRIC = {"min", "max", "minimum", "maximum", "gcd", "lcm", "add", "multiply"}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Return the nodes that may stand in place of one; None deletes a statement."""

    def new(**fields: Any) -> ast.AST:
        found = copy.copy(node)
        for name, value in fields.items():
            setattr(found, name, value)
        return found

    match node:
        case ast.Compare(ops=ops):
            for i, each in enumerate(ops):
                other = COMPARED[type(each)]()
                yield (
                    f"{type(each).__name__} is {type(other).__name__}",
                    new(ops=[*ops[:i], other, *ops[i + 1 :]]),
                )
        case ast.BinOp(op=op) if type(op) in COMBINED:
            yield f"{type(op).__name__} is another", new(op=COMBINED[type(op)]())
            yield "the left alone", node.left
            yield "the right alone", node.right
        case ast.BoolOp(op=op, values=values):
            yield "and is or", new(op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for i in range(len(values)):
                left = [*values[:i], *values[i + 1 :]]
                yield f"term {i} is left out", left[0] if len(left) == 1 else new(values=left)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield "no sign", operand
        case ast.Constant(value=bool(value)):
            yield "the other bool", new(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield f"{value} and one", new(value=value + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield "always the first", body
            yield "always the second", orelse
        case ast.If(test=test):
            yield "never", new(test=ast.Constant(False))
            yield "always", new(test=ast.Constant(True))
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield "returns None", new(value=ast.Constant(None))
        case ast.AugAssign(target=target, value=value):
            yield "no such statement", ast.Pass()
            yield "set, not changed", ast.Assign([target], value)
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Break() | ast.Continue():
            yield "no such statement", ast.Pass()
        case ast.Name(id=name) if name in SWAPPED:
            yield f"{name} is {SWAPPED[name]}", new(id=SWAPPED[name])
        case ast.Attribute(attr=name) if name in SWAPPED:
            yield f"{name} is {SWAPPED[name]}", new(attr=SWAPPED[name])
        case ast.Call(args=args, keywords=keywords):
            if (
                args
                and not isinstance(args[0], ast.Starred)
                and not isinstance(args[0], ast.Constant)
            ):
                yield "its first argument", args[0]
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if (
                len(args) > 1
                and called not in SYMMETRIC
                and not any(isinstance(each, ast.Starred) for each in args[:2])
            ):
                yield "arguments change places", new(args=[args[1], args[0], *args[2:]])
            for i, each in enumerate(keywords):
                if each.arg and each.arg != "strict":
                    left = [*keywords[:i], *keywords[i + 1 :]]
                    yield f"no {each.arg}", new(keywords=left)


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Return where each node is, but for annotations, docstrings, texts and messages of errors."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list"} or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and field == "args":
            continue  # a default is no code of the function
        if isinstance(node, ast.Raise | ast.Assert) and field in {"exc", "cause", "msg"}:
            continue
        for i, each in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(each, ast.AST):
                yield node, field, i if isinstance(value, list) else None
                yield from places(each)


def mutants(file: str, only: set[str] | None = None) -> Iterator[tuple[str, Planted]]:
    """Return the changes of a file's functions, each with its function."""
    text = (ROOT / file).read_text()
    equal = {i for i, line in enumerate(text.splitlines(), 1) if "# equal: " in line}
    tree = ast.parse(text)

    def functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.AST]]:
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + each.name, each
            elif isinstance(each, ast.ClassDef):
                yield from functions(each.body, f"{prefix}{each.name}.")

    for name, function in functions(tree.body, ""):
        if only is not None and name not in only:
            continue
        at = [
            place
            for place in places(function)
            if place[1] not in {"args"} or not isinstance(place[0], ast.FunctionDef)
        ]
        for parent, field, i in at:
            value = getattr(parent, field)
            node = value if i is None else value[i]
            line = getattr(node, "lineno", 0)
            if isinstance(parent, ast.arguments) or line in equal:
                continue
            for what, other in changes(node):
                assert other is not None
                ast.copy_location(other, node)
                if i is None:
                    setattr(parent, field, other)
                else:
                    value[i] = other
                changed = ast.unparse(ast.fix_missing_locations(tree))
                if i is None:
                    setattr(parent, field, node)
                else:
                    value[i] = node
                shown = ast.unparse(node).splitlines()[0][:60]
                yield name, Planted(f"{file}:{line} {name}: {what}: {shown}", file, changed, "")


def search(
    chosen: list[tuple[str, Planted]], runs: dict[str, dict[str, Any]], most: int
) -> list[Planted]:
    """Return the changes that no test notices, of the `most` shortest tests of each file."""
    left = {fault.name: (function, fault) for function, fault in chosen}
    for function, fault in list(left.values()):
        try:
            compile(fault.text, fault.file, "exec")
        except SyntaxError:
            del left[fault.name]

    # Files of tests in the order of how many of the changes they run.
    def of(file: str, tests: dict[str, Any], function: str) -> list[str]:
        key = f"{file}:{function}"
        hit = [(seconds, test) for test, (seconds, keys) in tests.items() if key in keys]
        return [test for _, test in sorted(hit)[:most]]

    order = sorted(
        runs, key=lambda each: -sum(bool(of(f.file, runs[each], n)) for n, f in left.values())
    )
    for tests in order:
        batch = [
            Planted(fault.name, fault.file, fault.text, tests, tuple(items))
            for function, fault in left.values()
            if (items := of(fault.file, runs[tests], function))
        ]
        if not batch:
            continue
        for found in planted.plant(batch, split=True):
            # What runs without an end is noticed too.
            if found.outcome == "caught" or found.by == "time":
                del left[found.name]
    return [fault for _, fault in left.values()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--since")
    parser.add_argument("--tests", nargs="*", help="files of tests to look at")
    parser.add_argument("--most", type=int, default=40)
    given = parser.parse_args()
    file = ROOT / "target/planted/runs.json"
    runs = json.loads(file.read_text()) if file.exists() else {}
    if new := [test for test in given.tests or [] if test not in runs]:
        runs |= planted.runs(new)
        file.write_text(json.dumps(runs))
    chosen = []
    for each in given.modules:
        module, _, function = each.partition(":")
        chosen += list(mutants(module, {function} if function else None))
    if given.since:
        before, after = Tree(given.since), Tree()
        for module in sorted(after.below("python/geomdp/**/*.py")):
            if before.files.get(module) != after.files[module]:
                chosen += list(mutants(module, {*differing(before, after, module)}))
    print(f"{len(chosen)} changes", flush=True)
    begin = time.monotonic()
    left = search(chosen, runs, given.most)
    for fault in left:
        print("SURVIVES", fault.name)
    count = Counter(fault.file for _, fault in chosen)
    lost = Counter(fault.file for fault in left)
    for name, number in count.items():
        print(f"{name}: {number} changes, {lost[name]} survive")
    print(f"{time.monotonic() - begin:.0f} s")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
