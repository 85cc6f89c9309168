"""Prove the machine code of the installed package's portable kernel: `make machine-code`.

gdb stops a release where it enters its kernel. From there the portable kernel runs on bit vectors
of z3: the words of the tape and the counts are unknown, the plan is that of the release. pyvex, a
part of angr, translates the instructions. A jump or an address that depends on an unknown is an
error. For all words and counts, each output must be that of docs/specification.md.
"""

import re
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import archinfo
import numpy as np
import pyvex
import z3
from pyvex import expr, stmt
from z3 import BitVecRef as Term

from geomdp import GeometricMechanism, _core

#: Plans of two digits and of one.
SETTINGS = [(Fraction(1, 3), (-5, 100)), (Fraction(20), (0, 1))]
LANES, BITS = 16, 80
COUNTS = np.array([-(2**63), 2**63 - 1, -5, 100, -6, 101, *range(10)])
#: With a tape for each count: with one for all, AVX-512 and VAES encrypt it beside the draws. The
#: package draws once as it is imported, so gdb waits for the kernel from the call of getppid on.
RELEASE = """
import os; from fractions import Fraction; import numpy as np
from geomdp import GeometricMechanism, keyed
from geomdp import _core
key, counts = keyed.ReleaseKey(), np.array({})
key._core = _core.ReleaseKey(bytes(32))
mechanism = GeometricMechanism(Fraction("{}"), bounds={})
os.getppid(); noisy = key.release(mechanism, counts, np.arange(counts.size), name="n")
"""
ARCH = archinfo.ArchAMD64()
ARGUMENTS = "rdi", "rsi", "rdx", "rcx", "r8", "r9"


def known(term: Term) -> int:
    """Return the number that decides a jump or an address; it must not depend on an unknown."""
    if not z3.is_bv_value(term):
        raise TypeError(f"a jump or an address depends on {term}")
    number: int = term.as_long()
    return number


def bit(condition: z3.BoolRef, width: int = 1) -> Term:
    return z3.If(condition, z3.BitVecVal(1, width), z3.BitVecVal(0, width))


#: VEX's operations on words.
WORDS: dict[str, Callable[..., Term]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "And": lambda x, y: x & y,
    "Or": lambda x, y: x | y,
    "Xor": lambda x, y: x ^ y,
    "Not": lambda x: ~x,
    "Shl": lambda x, y: x << z3.ZeroExt(x.size() - 8, y),
    "Shr": lambda x, y: z3.LShR(x, z3.ZeroExt(x.size() - 8, y)),
    "CmpEQ": lambda x, y: bit(x == y),
    "CmpNE": lambda x, y: bit(x != y),
    "CmpLTU": lambda x, y: bit(z3.ULT(x, y)),
    "CmpLEU": lambda x, y: bit(z3.ULE(x, y)),
}

#: The carries of VEX's additions, subtractions and logical operations of words.
CARRIES: dict[int, Callable[[Term, Term], z3.BoolRef]] = {
    4: lambda x, y: z3.ULT(x + y, x),
    8: z3.ULT,
    20: lambda x, y: z3.BoolVal(False),
}


def operation(name: str, x: Term, *more: Term) -> Term:
    if found := re.fullmatch(r"Iop_\d+U?to(\d+)", name):
        wider = int(found[1]) - x.size()
        return z3.ZeroExt(wider, x) if wider > 0 else z3.Extract(int(found[1]) - 1, 0, x)
    found = re.fullmatch(r"Iop_([A-Z][a-z]+[A-Z]*)(?:8|16|32|64|V128)(U?)", name)
    if not found or not (word := WORDS.get(found[1] + found[2])):
        raise NotImplementedError(name)
    return word(x, *more)


class Bytes:
    """Registers or memory: terms that were stored, and the bytes before."""

    def __init__(self, before: Callable[[int, int], bytes]) -> None:
        self.before = before
        self.stored: dict[int, tuple[Term, int]] = {}

    def store(self, at: int, term: Term) -> None:
        """Store a term, its lowest byte first."""
        self.stored.update((at + i, (term, i)) for i in range(term.size() // 8))

    def load(self, at: int, width: int) -> Term:
        """Return the term of so many bits that is there."""
        found = [self.stored.get(at + i) for i in range(width // 8)]
        if not any(found):
            return z3.BitVecVal(int.from_bytes(self.before(at, width // 8), "little"), width)
        parts = [
            z3.Extract(8 * byte[1] + 7, 8 * byte[1], byte[0])
            if byte
            else z3.BitVecVal(self.before(at + i, 1)[0], 8)
            for i, byte in enumerate(found)
        ]
        return z3.simplify(z3.Concat(*reversed(parts)) if parts[1:] else parts[0])


class Release:
    """A process that has just entered its kernel."""

    def __init__(self, rate: Fraction, bounds: Any) -> None:
        self.program = RELEASE.format(COUNTS.tolist(), rate, bounds)
        names = subprocess.check_output(["nm", _core.__file__], text=True)
        symbols = {name: int(at, 16) for at, name in re.findall(r"(\w+) \w (\S+)", names)}
        kernels = r"6kernel(8portable|.*10vectorised)"
        base = f"(char *)&PyInit__core - {symbols['PyInit__core']}"
        self.portable = [at for name, at in symbols.items() if "6kernel8portable" in name]
        state = [base, *(f"${name}" for name in ("rsp", *ARGUMENTS))]
        with tempfile.TemporaryDirectory() as directory:
            core = Path(directory, "core")
            commands = [
                *("set breakpoint pending on", "tbreak getppid", "run"),
                *(
                    f"break *({base} + {symbols[name]})"
                    for name in symbols
                    if re.search(kernels, name)
                ),
                *("continue", f'printf "\\nstate{" %lu" * 8}\\n", {", ".join(state)}'),
                *(f"gcore {core}", "kill"),
            ]
            gdb = ["gdb", "-q", "-nx", "-batch", *(f"-ex={command}" for command in commands)]
            child = ["--args", sys.executable, "-c", self.program]
            said = subprocess.check_output([*gdb, *child], text=True)
            found = re.search(r"^state (.+)$", said, re.MULTILINE)
            assert found, said
            self.base, self.stack, *self.arguments = map(int, found[1].split())
            self.core = core.read_bytes()
        # The table of segments, from the header of an ELF file: each one's type, its place in the
        # file, its address and its length in the file.
        (table,), size = struct.unpack_from("<Q", self.core, 32), struct.calcsize("<IIQQQQQQ")
        (count,) = struct.unpack_from("<H", self.core, 56)
        rows = struct.iter_unpack("<IIQQQQQQ", self.core[table : table + size * count])
        self.segments = [(row[2], row[3], row[5]) for row in rows if row[0] == 1]

    def memory(self, at: int, count: int) -> bytes:
        """Return bytes of the process."""
        for place, address, length in self.segments:
            if address <= at < address + length:
                start = place + at - address
                return self.core[start : start + count]
        raise IndexError(f"no memory at {at:x}")


class Machine:
    """Runs a portable kernel from the state of a release."""

    def __init__(self, release: Release) -> None:
        self.release, self.memory = release, Bytes(release.memory)
        self.registers = Bytes(lambda _, count: bytes(count))
        _, _, self.words, self.length, self.counts, _ = release.arguments

    def call(self, function: int) -> list[Term]:
        """Return what the function makes of the counts."""
        values = zip(
            ("rsp", *ARGUMENTS), (self.release.stack, *self.release.arguments), strict=True
        )
        for name, value in values:
            self.registers.store(ARCH.registers[name][0], z3.BitVecVal(value, 64))
        back = int.from_bytes(self.release.memory(self.release.stack, 8), "little")
        at, blocks = self.release.base + function, {}
        while at != back:
            if at not in blocks:
                blocks[at] = pyvex.lift(self.release.memory(at, 400), at, ARCH)
            at = self.run(blocks[at])
        return [self.memory.load(self.counts + 8 * lane, 64) for lane in range(LANES)]

    def run(self, block: Any) -> int:
        """Run a block, and return the address of the next one."""
        values: dict[int, Term] = {}

        def term(node: Any) -> Term:
            match node:
                case expr.RdTmp():
                    return values[node.tmp]
                case expr.Const():
                    return z3.BitVecVal(node.con.value, node.con.size)
                case expr.Get():
                    return self.registers.load(node.offset, node.result_size(block.tyenv))
                case expr.Load():
                    return self.memory.load(known(term(node.addr)), node.result_size(block.tyenv))
                case expr.ITE():
                    yes, no = map(term, (node.iftrue, node.iffalse))
                    return z3.simplify(z3.If(term(node.cond) == 1, yes, no))
                case expr.CCall() if node.callee.name == "amd64g_calculate_rflags_c":
                    kind, x, y, _ = map(term, node.args)
                    if known(kind) not in CARRIES:
                        raise NotImplementedError(node)
                    return z3.simplify(bit(CARRIES[known(kind)](x, y), 64))
                case expr.Unop() | expr.Binop():
                    return z3.simplify(operation(node.op, *map(term, node.args)))
            raise NotImplementedError(node)

        for statement in block.statements:
            match statement:
                case stmt.WrTmp():
                    values[statement.tmp] = term(statement.data)
                case stmt.Put():
                    self.registers.store(statement.offset, term(statement.data))
                case stmt.Store():
                    self.memory.store(known(term(statement.addr)), term(statement.data))
                case stmt.Exit():
                    if known(term(statement.guard)):
                        return int(statement.dst.value)
                case stmt.IMark() | stmt.AbiHint() | stmt.NoOp():
                    pass
                case _:
                    raise NotImplementedError(statement)
        return known(term(block.next))


def specified(found: Any, least: int, words: list[Term], count: Term) -> Term:
    """Return the output of docs/specification.md, in so many bits that nothing overflows."""

    def wide(term: Term) -> Term:
        return z3.ZeroExt(BITS - term.size(), term)

    def clamp(x: Term, low: int, high: int) -> Term:
        return z3.If(x < low, z3.BitVecVal(low, BITS), z3.If(x > high, high, x))

    limbs, at, values = [z3.Extract(63, 1, word) for word in words], 1, []
    for digit in found.digits:
        number = z3.Concat(*limbs[at : at + digit.limbs], limbs[0])
        values.append(wide(z3.Sum([bit(z3.UGE(number, t), 64) for t in digit.thresholds])))
        at += digit.limbs
    first, counts = values[0], [len(digit.thresholds) for digit in found.digits]
    falls = z3.And(z3.Extract(0, 0, words[0]) == 1, first != counts[0])
    rises = z3.URem(first, counts[0] - 1) if len(counts) > 1 else first
    noise = z3.If(first == counts[0], 0, z3.If(falls, first - 1, rises))
    noise += sum(x * digit.weight for x, digit in zip(values[1:], found.digits[1:], strict=True))
    if len(counts) > 1:
        noise = z3.If(values[-1] == counts[-1], found.range, noise)
    offset = clamp(z3.SignExt(BITS - 64, count), least, least + found.range) - least
    noisy = clamp(z3.If(falls, offset - 1 - noise, offset + noise), 0, found.range)
    free = wide(words[1 + found.digits[0].limbs]) & (2**found.floor_value_bits - 1)
    return z3.Extract(63, 0, z3.If(first == 0, clamp(free, 0, found.range), noisy) + least)


def run_on_unknowns(release: Release, function: int) -> tuple[set[Term], list[Term], Term]:
    """Return the outputs of a kernel, and the words and the count that they are made of."""
    machine, lanes = Machine(release), range(LANES)
    places = [machine.words + 8 * at for at in range(machine.length)]
    rows = [[*places[lane::LANES], machine.counts + 8 * lane] for lane in lanes]
    for at in [at for row in rows for at in row]:
        machine.memory.store(at, z3.BitVec(f"at {at}", 64))
    outputs = set()
    *words, count = [z3.BitVec(f"unknown {i}", 64) for i in range(len(rows[0]))]
    for row, output in zip(rows, machine.call(function), strict=True):
        # Claims of all lanes are one, but for the names.
        unknowns = [z3.BitVec(f"at {at}", 64) for at in row]
        names = zip(unknowns, (*words, count), strict=True)
        outputs.add(z3.simplify(z3.substitute(output, *names)))
    return outputs, words, count


def may_trace() -> bool:
    """Return whether gdb may run a process; a container may forbid it."""
    run = ["gdb", "-q", "-nx", "-batch", "-ex=run", "--args", "true"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return "exited normally" in done.stdout


def main() -> None:
    if not may_trace():
        print("skipped: make machine-code, since no process may be traced here")
        return
    for rate, bounds in SETTINGS:
        begin, mechanism = time.process_time(), GeometricMechanism(rate, bounds=bounds)
        release, functions = Release(rate, bounds), []
        variables: dict[str, Any] = {}
        exec(release.program, variables)
        noisy = variables["noisy"].view(np.uint64).tolist()
        for each in release.portable:
            try:
                functions += [each] * ([*map(known, Machine(release).call(each))] == noisy)
            except NotImplementedError:  # for another type, whose operations int64 does not have
                continue
        # Those that give the library's noise are for int64: of draws, and of steps between tiers,
        # which are draws if the plan has no tiers.
        assert len(functions) == 2
        for function in functions:
            outputs, words, count = run_on_unknowns(release, function)
            wanted = specified(mechanism.certificate(COUNTS.dtype), bounds[0], words, count)
            for output in outputs:
                solver = z3.SolverFor("QF_BV")
                solver.add(output != wanted)
                if solver.check() != z3.unsat:
                    sys.exit(f"rate {rate}, bounds {bounds}: not for {solver.model()}")
        seconds = time.process_time() - begin
        print(f"rate {rate}, bounds {bounds}: all outputs are as specified ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
