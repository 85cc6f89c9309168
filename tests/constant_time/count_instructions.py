"""Compare the instruction counts of the pieces of a release with a record: `make instructions`.

Times vary from run to run and can hide a slower draw; instruction counts do not vary. valgrind
counts the instructions of each piece in `benches/baseline/src/bin/instructions.rs`. It supports
neither AVX-512 nor VAES, so it counts the portable and AVX2 kernels, and the tape with AES-NI.

A figure that has risen or fallen fails, which keeps the record up to date: `--record` renews it.
The records are for x86-64 with AVX2 and, by scripts/arm64.sh, for AArch64 with NEON and AES.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The architecture that cargo compiles for.
MACHINE = os.environ.get("CARGO_BUILD_TARGET", platform.machine()).split("-")[0]
RECORD = ROOT / ("benches/instructions.json" if MACHINE == "x86_64" else f"benches/{MACHINE}.json")
#: The function that is called before and after every piece.
CUT = "instructions::cut"
#: One compiler version gives the same code for the same source. The rest is due to the C library,
#: which single releases and plans use.
TOLERANCE = 0.02
#: Other versions may unroll loops and allocate registers differently. Rust 1.97 changes no figure
#: by more than 1.0 %.
TOLERANCE_OF_OTHERS = 0.1
Figures = dict[str, float]


def count() -> tuple[Figures, dict[str, str]]:
    """Return the instructions per unit of each piece, and the name of the unit."""
    with tempfile.TemporaryDirectory() as directory:
        # Entering the function writes the count to a file and resets it.
        valgrind = [
            os.environ.get("VALGRIND", "valgrind"),
            "--quiet",
            "--tool=callgrind",
            f"--callgrind-out-file={directory}/count",
            f"--dump-before={CUT}",
        ]
        cargo = ["cargo", "run", "--locked", "--quiet", "--release"]
        done = subprocess.run(
            [
                *cargo,
                *("--package", "geomdp-baseline", "--bin", "instructions"),
                *("--config", f"target.'cfg(all())'.runner = {json.dumps(valgrind)}"),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        files = sorted(Path(directory).glob("count.*"), key=lambda file: int(file.suffix[1:]))
        totals = [re.findall(r"^summary: (\d+)$", file.read_text(), re.M) for file in files]
    # Each piece is before an even cut; the last file is the program's end.
    figures, units = {}, {}
    for line, (total,) in zip(done.stdout.splitlines(), totals[1::2], strict=True):
        name, units[name], number = line.split("\t")
        figures[name] = round(int(total) / int(number), 3)
    return figures, units


def faults(recorded: Figures, figures: Figures, tolerance: float) -> list[str]:
    """Return the pieces whose figure differs from the record by more than the tolerance."""
    names = sorted(recorded.keys() | figures.keys())
    return [
        name
        for name in names
        if name not in recorded
        or name not in figures
        or abs(figures[name] / recorded[name] - 1) > tolerance
    ]


def self_test() -> None:
    """Check that raised, lowered, missing and new figures are faults, and others are not."""
    recorded = {"rises": 100.0, "falls": 100.0, "stays": 100.0, "goes": 100.0}
    figures = {"rises": 102.1, "falls": 97.9, "stays": 101.9, "comes": 100.0}
    if faults(recorded, figures, 0.02) != ["comes", "falls", "goes", "rises"]:
        sys.exit("the comparison itself is wrong")


def main() -> int:
    """Count, print the table, and compare or record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the record anew")
    arguments = parser.parse_args()
    self_test()
    if not RECORD.exists() and not arguments.record:
        print(f"not compared: no record is of {MACHINE}")
        return 0
    figures, units = count()
    compiler = subprocess.run(
        ["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    if arguments.record:
        RECORD.write_text(json.dumps({"compiler": compiler, "figures": figures}, indent=1) + "\n")
    record = json.loads(RECORD.read_text())
    recorded: Figures = record["figures"]
    tolerance = TOLERANCE if compiler == record["compiler"] else TOLERANCE_OF_OTHERS
    print(f"{compiler}; recorded with {record['compiler']}: {tolerance:.0%} are tolerated\n")
    print("| instructions of | for each | recorded | now | change |")
    print("|---|---|---|---|---|")
    for name, figure in figures.items():
        old = recorded.get(name)
        was, change = (f"{old:.1f}", f"{figure / old - 1:+.1%}") if old else ("", "new")
        print(f"| {name} | {units[name]} | {was} | {figure:.1f} | {change} |")
    print()
    wrong = faults(recorded, figures, tolerance)
    for name in wrong:
        print(f"beyond the tolerance, or in one list alone: {name}")
    if wrong:
        print("If this is meant, renew the record with --record and commit it.")
    else:
        print(f"{len(figures)} figures as recorded")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
