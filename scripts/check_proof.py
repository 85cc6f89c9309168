"""Compile the machine-checked proof from nothing, and check what it assumes: `make proof`.

An admitted lemma is an axiom to Coq, so the comparison of axioms finds it. Arguments are further
files to compile: those that `rust/core/examples/proof_model.rs` prints, in which the draw of the
proof must agree with the compiled kernel. The extracted checker of certificates goes to
`target/checker`, for `check_certificates.py`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROOFS = ROOT / "proofs"
CHECKER = ROOT / "target" / "checker"
THEOREMS = [
    "draw_is_private",
    "release_is_private",
    "checked_draw_is_private",
    "checked_release_is_private",
    "example_checked",
]
#: Those of Coq's real numbers.
AXIOMS = {
    "Classical_Prop.classic",
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
}


def coq(file: Path) -> str:
    """Compile a file, and return what it prints; exit if it does not compile."""
    run = ["coqc", "-q", "-Q", ".", "Geomdp", file.name]
    done = subprocess.run(run, cwd=file.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\n{file.name} does not compile")
    return done.stdout


def main() -> None:
    start = time.monotonic()
    listed = (PROOFS / "_CoqProject").read_text().split()
    files = [name for name in listed if name.endswith(".v")]
    with tempfile.TemporaryDirectory() as folder:
        for name in files:
            copy = Path(folder, name)
            copy.write_text((PROOFS / name).read_text())
            coq(copy)
        for given in map(Path, sys.argv[1:]):
            copy = Path(folder, given.name)
            copy.write_text(given.read_text())
            coq(copy)
        for theorem in THEOREMS:
            question = Path(folder, "Question.v")
            question.write_text(
                f"From Geomdp Require Import Checker Example.\nPrint Assumptions {theorem}.\n"
            )
            axioms = set(re.findall(r"^([\w.]+)\s*:", coq(question), re.MULTILINE)) - {"Axioms"}
            if axioms - AXIOMS:
                sys.exit(f"{theorem} assumes {sorted(axioms)}, not only {sorted(AXIOMS)}")
        CHECKER.mkdir(parents=True, exist_ok=True)
        for suffix in (".ml", ".mli"):
            shutil.copy(Path(folder, "checker").with_suffix(suffix), CHECKER)
    print(f"{', '.join(THEOREMS)}: proved in {time.monotonic() - start:.0f} s, from:")
    print(*sorted(AXIOMS), sep="\n")


if __name__ == "__main__":
    main()
