"""Prove in Coq that the draws of certificates are private: `make proof-certificates`.

`make proof` runs the checker of certificates as a program that OCaml compiles. Here Coq's kernel
evaluates it, so that neither extraction nor OCaml is trusted for these certificates: those of the
documentation's mechanisms, and of two corners of the sweep's grid. Each gives the theorem for its
own plan and rate. First, Coq must refuse a certificate with a moved threshold.
"""

import os
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from check_certificates import documented, fields, is_of, made, with_moved_threshold
from check_proof import BY_CHECK, PRIVATE, WITH_REALS, compare, compiled, coq
from sweep_certificates import SEED, grid

CHECKED = """From Coq Require Import Reals ZArith List.
From Geomdp Require Checker.
Import ListNotations.
Module S := Geomdp.Statement.
Module C := Geomdp.Checker.
Open Scope Z_scope.
Definition c := C.Certificate {certificate}.
Theorem checked : C.check c = {accepted}.
Proof. vm_cast_no_check (eq_refl {accepted}). Qed.
"""
THEOREM = f"""Theorem small : C.check_small c = true.
Proof. vm_compute. reflexivity. Qed.
Theorem private : {PRIVATE.format(**BY_CHECK)}.
Proof. exact (C.checked_draw_is_private c checked). Qed.
Set Printing Width 1000.
Print Assumptions private.
"""


def term(certificate: Any) -> str:
    """Return the fields of a certificate in Coq."""
    plan, digits, (rate, under, sampled, under_sampled, *units) = fields(certificate)
    first, *rest = (
        f"(S.Digit {weight} {own} {thresholds})".replace(",", ";")
        for weight, own, thresholds in digits
    )
    return (
        f"(S.Plan {' '.join(map(str, plan))} {first} [{'; '.join(rest)}])"
        f" ({rate}, {under}) ({sampled}, {under_sampled}) {' '.join(map(str, units))}"
    )


def main() -> None:
    start = time.monotonic()
    settings = list(dict.fromkeys(documented()))
    certificates = {setting: made(setting) for setting in settings}
    corners = [(setting, found) for setting in grid() if (found := made(setting))]
    certificates.update([corners[0], corners[-1]])
    low = sum(
        len({digit["limbs"] for digit in found["digits"]}) > 1 for found in certificates.values()
    )
    if not settings or not low or not all(map(is_of, certificates, certificates.values())):
        sys.exit("a certificate is missing, or of another rate or range")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiled(folder)

        def prove(number: int, subject: str, certificate: Any, accepted: bool) -> None:
            begin, file = time.monotonic(), folder / f"Certificate{number}.v"
            answer = str(accepted).lower()
            text = CHECKED.format(certificate=term(certificate), accepted=answer)
            file.write_text(text + THEOREM * accepted)
            compare(subject, coq(file), WITH_REALS if accepted else [])
            print(f"{subject}: {answer}, {time.monotonic() - begin:.0f} s", flush=True)

        damaged = with_moved_threshold(certificates[settings[0]], random.Random(SEED))
        prove(0, "a threshold is moved", damaged, accepted=False)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = [
                pool.submit(prove, number, str(setting), found, accepted=True)
                for number, (setting, found) in enumerate(certificates.items(), 1)
            ]
            for each in done:
                each.result()
    print(
        f"{len(certificates)} certificates proved in Coq, {low} of them with low digits; one with a"
        f" moved threshold refused; {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
