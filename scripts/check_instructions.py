"""Check the instructions of the installed package's kernels and of the code around them.

No instruction's time may depend on its operands (division, square root, gather, scatter): valgrind
does not report these. Nor may the code call a function that could contain one.

In AVX-512 code, which valgrind does not run, the words of the tape and all values derived from them
stay in vector and mask registers from load to store. If no instruction moves from these to a
general register or to the flags, no jump and no address can depend on them. Counts may pass through
general registers on their way in, only to have their sign bit flipped. valgrind checks that on the
AVX2 code, and MemorySanitizer on the AVX-512 code.
"""

import re
import subprocess
import sys

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
#: AVX-512 applies. There is one function per integer type, unless types of one width are merged.
GROUPS = {
    "portable kernel": ("6kernel8portable", 8, False),
    "AVX2 kernel": ("6kernel4avx210vectorised", 8, False),
    "AVX-512 kernel": ("6kernel6avx51210vectorised", 8, True),
    "AVX2 blocks of keyed tapes": ("4simd4Avx23run8compiled", 9, False),
    "AVX-512 blocks of keyed tapes": ("4simd6Avx5123run8compiled", 9, True),
    "folding": ("4fold(7fold_in|8fold_out)", 12, False),
}


def functions(listing: str) -> dict[str, list[str]]:
    """Return the instructions of each function in a disassembly."""
    found: dict[str, list[str]] = {}
    name = None
    for line in listing.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.+)>:", line):
            name = header[1]
            found[name] = []
        elif name is not None and (code := re.match(r"\s+[0-9a-f]+:\s+(.+)", line)):
            found[name].append(code[1].strip())
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
    program = geomdp._core.__file__
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = functions(listing)
    failures = 0
    for group, (symbol, least, vectors_only) in GROUPS.items():
        members = [code for name, code in found.items() if re.search(symbol, name)]
        lines = [line for code in members for line in code]
        offences = [line for line in lines if offence(line, vectors_only)]
        print(f"{group}: {len(members)} functions, {len(lines)} instructions, {offences[:9]}")
        failures += bool(offences) + (len(members) < least)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
