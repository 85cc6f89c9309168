"""Check the instructions of the package's kernels and of the code around them.

The argument is the package's library, for x86-64 or AArch64; by default it is the installed one.

No instruction's time may depend on its operands (division, square root, gather, scatter): valgrind
does not report these. Nor may the code call a function that could contain one.

In AVX-512 code, which valgrind does not run, the words of the tape and all values derived from them
stay in vector and mask registers from load to store. If no instruction moves from these to a
general register or to the flags, no jump and no address can depend on them. Counts may pass through
general registers on their way in, only to have their sign bit flipped. valgrind checks that on the
AVX2 code, and MemorySanitizer on the AVX-512 code. The same rule holds for keys and words in the
tape's own code; valgrind does not run the part of it for VAES either.

The same rule applies to the NEON code, except that an upper half of a word may be moved straight
after it was loaded: the compiler loads two public fields of the plan at once. valgrind also runs
the NEON code.
"""

import re
import subprocess
import sys
from pathlib import Path

import geomdp._core

VECTOR = re.compile(r"%[xyz]mm\d+|%k[0-7]")
GENERAL = re.compile(r"%(r[a-d]x|r[sd]i|r[sb]p|r\d+[dwb]?|e[a-d]x|e[sd]i|[a-d][lhx]|[sd]il?)$")
# Instructions that set flags from, or take addresses from, vector or mask registers.
LEAK = re.compile(r"^(vp?test|ptest|v?u?comis|kortest|ktest|v?p?movmsk|v?movmsk|v?maskmov)")
# Instructions whose time depends on their operands.
UNEVEN = re.compile(r"^(v?div|v?sqrt|i?div|v?p?gather|v?p?scatter)")
# Copies of public lengths, and the panics of failed checks of lengths.
CALLED = re.compile(r"<(memcpy|memset|.*slice_index_fail|.*panic_bounds_check)\b")
#: For each name: a pattern of the functions' symbols, their least number, and whether the rule for
#: AVX-512 applies. There is one function per integer type, unless types of one width are merged; a
#: kernel has another one for steps between tiers.
X86 = {
    "portable kernel": ("6kernel8portable", 16, False),
    "AVX2 kernel": ("6kernel4avx210vectorised", 16, False),
    "AVX-512 kernel": ("6kernel6avx51210vectorised", 16, True),
    "AVX-512 kernel, with a tape beside": ("6kernel6avx5126beside", 8, True),
    "largest sums, portable": ("6kernel7largest8portable", 8, False),
    "largest sums, AVX2": ("6kernel4avx28compared", 8, False),
    "largest sums, AVX-512": ("6kernel6avx5128compared", 8, True),
    "AVX2 blocks of keyed tapes": ("4simd4Avx23run8compiled", 9, False),
    "AVX-512 blocks of keyed tapes": ("4simd6Avx5123run8compiled", 9, True),
    "folding": ("4fold(7fold_in|8fold_out)", 12, False),
    "own code for AES": ("10aes_blocks(4ones|4twos|5fours|10round_keys)", 10, True),
}
#: On AArch64 the compiler knows that NEON is there: it leaves the portable kernel out, and makes
#: blocks of keyed tapes a part of their callers.
ARM = {
    "NEON kernel": ("6kernel4neon10vectorised", 16, True),
    "largest sums, NEON": ("6kernel4neon8compared", 8, True),
    "folding": ("4fold(7fold_in|8fold_out)", 12, False),
}
ARM_LEAK = re.compile(r"^fc?cmp")
ARM_UNEVEN = re.compile(r"^([us]div|fdiv|fsqrt)$")


def functions(listing: str) -> dict[str, list[str]]:
    """Return the instructions of each function in a disassembly."""
    found: dict[str, list[str]] = {}
    name = None
    for line in listing.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.+)>:", line):
            name = header[1]
            found[name] = []
        elif name is not None and (code := re.match(r"\s+[0-9a-f]+:\s+(.+)", line)):
            found[name].append(" ".join(code[1].split()))
    return found


def offence(instruction: str, vectors_only: bool) -> bool:
    """Return whether an instruction is forbidden."""
    mnemonic, _, operands = instruction.partition(" ")
    if UNEVEN.match(mnemonic) or (mnemonic == "call" and not CALLED.search(operands)):
        return True
    if not vectors_only:
        return False
    operands = operands.split("#")[0]
    target = operands.rsplit(",", 1)[-1].strip()
    sources = operands.rsplit(",", 1)[0] if "," in operands else ""
    # In AT&T order the last operand is the target.
    moved = VECTOR.search(sources) and GENERAL.search(target)
    return bool(LEAK.match(mnemonic) or moved)


def offence_arm(instruction: str, before: list[str], vectors_only: bool) -> bool:
    """Return whether an instruction of AArch64, after these others, is forbidden."""
    mnemonic, _, operands = instruction.partition(" ")
    if ARM_UNEVEN.match(mnemonic):
        return True
    if mnemonic in ("bl", "blr"):
        return not CALLED.search(operands)
    if not vectors_only:
        return False
    # The first operand is the target.
    target, _, sources = operands.partition(", ")
    moved = re.match(r"[wx]\d+$", target) and re.match(r"[vqdsh](\d+)(\S*)", sources)
    if not moved:
        return bool(ARM_LEAK.match(mnemonic))
    register, lane = moved.groups()
    written = re.compile(rf"\S+ ([qd]\d+, )?\{{?[vqds]{register}\b")
    writer = next(filter(written.match, reversed(before)), "")
    return lane not in (".s[1]", ".s[3]") or not writer.startswith("ldr q")


def offences(code: list[str], vectors_only: bool, arm: bool) -> list[str]:
    """Return the instructions of a function that are forbidden."""
    return [
        line
        for at, line in enumerate(code)
        if (offence_arm(line, code[:at], vectors_only) if arm else offence(line, vectors_only))
    ]


def self_test_arm() -> None:
    """As for x86-64."""
    for line in ("udiv x0, x1, x2", "sdiv w0, w1, w2", "bl 7d30 <memcmp@plt>", "blr x8"):
        assert offence_arm(line, [], False), line
    load = ["ldr q4, [x9]"]
    leaking = [
        ("umov w0, v4.s[0]", load),
        ("fmov x0, d4", load),
        ("mov x0, v4.d[1]", load),
        ("mov w0, v4.s[3]", ["cmgt v4.2d, v0.2d, v1.2d"]),
        ("mov w0, v4.s[3]", [*load, "add v4.2d, v4.2d, v1.2d"]),
        ("mov w0, v4.s[3]", [*load, "ldp q3, q4, [x0]"]),
        ("fcmp d0, d1", []),
    ]
    for line, before in leaking:
        assert offence_arm(line, before, True), line
    fine = [
        "mov w0, v4.s[3]",
        "dup v0.2d, x10",
        "str q0, [x1, x2]",
        "bl 7990 <memcpy@plt>",
        "csel x0, x1, x2, ne",
        "cmgt v0.2d, v1.2d, v2.2d",
    ]
    for line in fine:
        assert not offence_arm(line, load, True), line


def self_test() -> None:
    """Show that planted instructions are caught, and harmless ones are not."""
    uneven = [
        "idiv   %rcx",
        "div %r14",
        "vdivpd %ymm0,%ymm1,%ymm2",
        "vpgatherqq %ymm0,(%rax,%ymm1,8),%ymm2",
        "call 85520 <__udivti3>",
        "call *0xac34e(%rip)",
        "call *0xac34e(%rip)  # ee7d0 <memcmp@GLIBC_2.2.5>",
    ]
    leaking = [
        "vmovq  %xmm0,%rax",
        "vpextrq $0x1,%xmm0,%rcx",
        "kmovd  %k1,%eax",
        "kortestb %k1,%k1",
        "vptest %ymm0,%ymm0",
        "vpmovmskb %ymm1,%ecx",
    ]
    fine = [
        "vpaddq %ymm0,%ymm1,%ymm2",
        "kmovw  %eax,%k1",
        "vmovdqu (%rax),%ymm0",
        "add %rax,%rcx",
        "call *0xab03d(%rip)        # ee7d0 <memcpy@GLIBC_2.14>",
        "call 85520 <_RNvNtNtCs_4core5slice5index16slice_index_fail>",
    ]
    for line in uneven:
        assert offence(line, False), line
    for line in uneven + leaking:
        assert offence(line, True), line
    for line in fine:
        assert not offence(line, True), line


def main() -> int:
    self_test()
    self_test_arm()
    program = sys.argv[1] if len(sys.argv) > 1 else geomdp._core.__file__
    # The machine in the file's header.
    arm = Path(program).read_bytes()[18] == 0xB7
    listing = subprocess.run(
        ["aarch64-linux-gnu-objdump" if arm else "objdump", "-d", "--no-show-raw-insn", program],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = functions(listing)
    failures = 0
    for group, (symbol, least, vectors_only) in (ARM if arm else X86).items():
        members = [code for name, code in found.items() if re.search(symbol, name)]
        lines = sum(map(len, members))
        wrong = [line for code in members for line in offences(code, vectors_only, arm)]
        print(f"{group}: {len(members)} functions, {lines} instructions, {wrong[:9]}")
        failures += bool(wrong) + (len(members) < least)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
