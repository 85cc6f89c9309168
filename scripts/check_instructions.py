"""Check the instructions of what valgrind cannot judge: AVX-512 kernels, and folding.

The words of the tape and all that is made of them live in vector and mask registers from load to
store. As long as no instruction moves from these to a general register or to the flags, no jump and
no address can depend on them; and no instruction with a time of its own for each operand (division,
square root, gather, scatter) may be used at all.

Folding runs under valgrind like the rest; but valgrind does not mind a division, whose time depends
on what is divided. So there is to be none, and no call to anything that could hold one.

What it does not see: counts may pass through general registers on their way in, where their sign
bit is flipped and nothing else is done; valgrind sees that on the AVX2 code, which is compiled from
the same source.
"""

import re
import subprocess
import sys

VECTOR = re.compile(r"%[xyz]mm\d+|%k[0-7]")
GENERAL = re.compile(r"%(r[a-d]x|r[sd]i|r[sb]p|r\d+[dwb]?|e[a-d]x|e[sd]i|[a-d][lhx]|[sd]il?)$")
# Instructions that set flags from, or take addresses from, vector or mask registers, or whose time
# depends on what they work on.
FORBIDDEN = re.compile(
    r"^(vp?test|ptest|v?u?comis|kortest|ktest|v?p?movmsk|v?movmsk|v?maskmov"
    r"|v?p?gather|v?gather|v?p?scatter|v?scatter|v?div|v?sqrt|i?div)"
)
BACK_ENDS = ("avx512",)
DIVISION = re.compile(r"^(call|v?div|i?div|v?sqrt)")


def functions(listing: str) -> dict[str, list[str]]:
    """Return the instructions of each function of a disassembly."""
    found: dict[str, list[str]] = {}
    name = None
    for line in listing.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.+)>:", line):
            name = header[1]
            found[name] = []
        elif name is not None and (code := re.match(r"\s+[0-9a-f]+:\s+(.+)", line)):
            found[name].append(code[1].split("#")[0].strip())
    return found


def offence(instruction: str) -> bool:
    """Return whether an instruction could let a secret out of the vector registers."""
    mnemonic, _, operands = instruction.partition(" ")
    if FORBIDDEN.match(mnemonic):
        return True
    target = operands.rsplit(",", 1)[-1].strip()
    sources = operands.rsplit(",", 1)[0] if "," in operands else ""
    # AT&T order: the last operand is the target.
    return bool(VECTOR.search(sources) and GENERAL.search(target))


def main(program: str) -> int:
    """Check the program's kernels; show that planted instructions are caught."""
    planted = [
        "vmovq  %xmm0,%rax",
        "vpextrq $0x1,%xmm0,%rcx",
        "kmovd  %k1,%eax",
        "kortestb %k1,%k1",
        "vptest %ymm0,%ymm0",
        "vpmovmskb %ymm1,%ecx",
        "vpgatherqq %ymm0,(%rax,%ymm1,8),%ymm2",
        "idiv   %rcx",
        "vdivpd %ymm0,%ymm1,%ymm2",
    ]
    missed = [instruction for instruction in planted if not offence(instruction)]
    fine = ["vpaddq %ymm0,%ymm1,%ymm2", "kmovw  %eax,%k1", "vmovdqu (%rax),%ymm0", "add %rax,%rcx"]
    missed += [line for line in ("div %r14", "call 85520 <x>") if not DIVISION.match(line)]
    if missed or any(offence(instruction) for instruction in fine):
        print(f"the check itself is broken: {missed}")
        return 1
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = functions(listing)
    failures = 0
    for back_end in BACK_ENDS:
        kernels = {
            name: code
            for name, code in found.items()
            if f"6kernel{len(back_end)}{back_end}10vectorised" in name
        }
        offences = [line for code in kernels.values() for line in code if offence(line)]
        count = sum(map(len, kernels.values()))
        print(f"{back_end}: {len(kernels)} kernels, {count} instructions, {len(offences)} offences")
        for line in offences[:10]:
            print(f"    {line}")
        # One for each integer type.
        failures += len(offences) + (len(kernels) != 8)
    folds = {
        name: code for name, code in found.items() if re.search("4fold(7fold_in|8fold_out)", name)
    }
    divisions = [line for code in folds.values() for line in code if DIVISION.match(line)]
    print(f"folding: {len(folds)} functions, {len(divisions)} offences {divisions[:3]}")
    # One for each integer type on the way in; those of one width are merged on the way out.
    failures += len(divisions) + (len(folds) < 12)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
