"""Compile the machine-checked proof from nothing; check what it states and assumes: `make proof`.

Nothing that `proofs/` says of itself counts. This script states the main theorems in full in a file
of its own, which uses `proofs/` by absolute names and imports none of its notations, and compares
the whole output of `Print Assumptions` for each. Then `coqchk` checks all compiled files again,
Coq's own included, and its whole summary is compared. It names every axiom, used or not, and
everything that was accepted with one of Coq's checks turned off.

Arguments are further files to compile: those that `rust/core/examples/proof_model.rs` prints, in
which the draw of the proof must agree with the compiled kernel. The extracted checker of
certificates goes to `target/checker`. After `--` follows a command that runs beside `coqchk`:
`check_certificates.py`. `--day` leaves out `coqchk`.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "proofs"
CHECKER = ROOT / "target" / "checker"
PRIVATE = """
  forall x x' y, (0 <= x <= S.range {plan})%Z -> (0 <= x' <= S.range {plan})%Z ->
  (S.prob {plan} y x <= exp ({rate} * IZR (Z.abs (x - x'))) * S.prob {plan} y x')%R"""
RELEASE_PRIVATE = """
  forall lower xs xs' ys, length xs = length xs' ->
  (S.release_prob {plan} lower ys xs
    <= exp ({rate} * IZR (S.distance xs xs')) * S.release_prob {plan} lower ys xs')%R"""
CERTIFIED = """forall pl rate sampled g delta inverses,
  S.certified pl rate sampled g delta inverses ->"""
CERTIFIED_GROUPS = """forall b rises falls r greatest ks,
  G.certified_groups b rises falls r greatest ks ->"""
CHECKED = "forall c, C.check c = true ->"
BY_PLAN = {"plan": "pl", "rate": "rate"}
BY_CHECK = {"plan": "(C.plan_of c)", "rate": "C.fraction (C.nominal_rate c)"}
#: Those of Coq's real numbers.
AXIOMS = {
    "Classical_Prop.classic": "forall P : Prop, P \\/ ~ P",
    "ClassicalDedekindReals.sig_forall_dec": (
        "forall P : nat -> Prop, (forall n : nat, {P n} + {~ P n}) -> "
        "{n : nat | ~ P n} + {forall n : nat, P n}"
    ),
    "ClassicalDedekindReals.sig_not_dec": "forall P : Prop, {~ ~ P} + {~ P}",
    "FunctionalExtensionality.functional_extensionality_dep": (
        "forall (A : Type) (B : A -> Type) (f g : forall x : A, B x), "
        "(forall x : A, f x = g x) -> f = g"
    ),
}


def axioms(*names: str) -> list[str]:
    """Return the lines that `Print Assumptions` gives for these."""
    return sorted(["Axioms:", *(f"{name} : {AXIOMS[name]}" for name in names)])


WITH_REALS = axioms(*AXIOMS)
#: The theorems, what each states, and the lines that `Print Assumptions` gives for it.
THEOREMS = {
    "Main.draw_is_private": (CERTIFIED + PRIVATE.format(**BY_PLAN), WITH_REALS),
    "Main.release_is_private": (CERTIFIED + RELEASE_PRIVATE.format(**BY_PLAN), WITH_REALS),
    "Checker.checked_draw_is_private": (CHECKED + PRIVATE.format(**BY_CHECK), WITH_REALS),
    "Checker.checked_release_is_private": (
        CHECKED + RELEASE_PRIVATE.format(**BY_CHECK),
        WITH_REALS,
    ),
    "Checker.checked_errors_are_small": (
        CHECKED
        + """ C.check_small c = true ->
  (3 * C.delta_of c * IZR (2 ^ 54) <= Rmin 1 (C.fraction (C.nominal_rate c))
    /\\ C.floor_of c * IZR (2 ^ 52) <= 1)%R""",
        WITH_REALS,
    ),
    "Guide.by_guide_outcome": (
        """forall pl steps bits lead d first others v,
  (0 < S.limb_bits pl <= S.word_bits pl)%Z -> (31 <= S.word_bits pl)%Z -> (0 <= bits <= 31)%Z ->
  (forall x y, x <= y -> lead x <= lead y)%Z ->
  Forall (fun word => 0 <= word)%Z (first :: others) -> (0 <= v)%Z ->
  Geomdp.Guide.by_guide pl steps bits lead d (first :: others) v
  = S.outcome pl d (first :: others) v""",
        ["Closed under the global context"],
    ),
    "Guide.leads_rise": (
        """forall x y, (x <= y)%Z ->
  (Geomdp.Guide.upper x <= Geomdp.Guide.upper y /\\
   Geomdp.Guide.shifted x <= Geomdp.Guide.shifted y /\\
   Geomdp.Guide.ones x <= Geomdp.Guide.ones y)%Z""",
        ["Closed under the global context"],
    ),
    "Guide.full_limb": (
        """forall pl first others t limbs v,
  (0 < S.limb_bits pl <= S.word_bits pl)%Z -> (first < 2 ^ S.word_bits pl)%Z ->
  S.less pl (first :: others) ((2 ^ S.limb_bits pl - 1)%Z :: t :: limbs) v
  = ((S.limb pl first <? 2 ^ S.limb_bits pl - 1)%Z || S.less pl others (t :: limbs) v)%bool""",
        ["Closed under the global context"],
    ),
    "Top.top_is_private": (
        CERTIFIED
        + """
  forall middle infinite beyond width,
  (S.range pl = 2 * middle - 1 /\\ 2 ^ S.value_bits pl = 2 * middle)%Z ->
  (0 < infinite < middle - 1 /\\ 0 <= width /\\ width + infinite < beyond)%Z ->
  (1 <= rate * IZR (middle - infinite - 1))%R ->
  forall low spread xs xs' places, (low <= 0 <= low + spread)%Z /\\
  Forall2 (fun x x' => low <= x' - x <= low + spread)%Z xs xs' ->
  Forall (fun i => 0 <= i < Z.of_nat (length xs))%Z places ->
  (Geomdp.Top.top_prob pl middle infinite beyond width nil xs places
    <= exp (rate * IZR spread * INR (length places))
      * Geomdp.Top.top_prob pl middle infinite beyond width nil xs' places)%R""",
        WITH_REALS,
    ),
    "Tiers.tiers_are_private": (
        """forall least f ts, Geomdp.Tiers.certified_tiers least f ts ->
  forall i s x x', (i <= length ts)%nat ->
  (0 <= x <= S.range (Geomdp.Tiers.its_plan f))%Z ->
  (0 <= x' <= S.range (Geomdp.Tiers.its_plan f))%Z ->
  (Geomdp.Tiers.tiers_prob (Geomdp.Tiers.its_plan f) (map Geomdp.Tiers.by_step ts) i s x
    <= exp (nth i (map Geomdp.Tiers.rate (cons f ts)) 0 * IZR (Z.abs (x - x')))
      * Geomdp.Tiers.tiers_prob (Geomdp.Tiers.its_plan f)
        (map Geomdp.Tiers.by_step ts) i s x')%R""",
        WITH_REALS,
    ),
    "Groups.groups_are_private": (
        CERTIFIED_GROUPS
        + """
  forall known x x' seen,
  (G.groups_prob b rises falls greatest ks known x seen
    <= exp (r * G.changes ks known x x')
      * G.groups_prob b rises falls greatest ks known x' seen)%R""",
        WITH_REALS,
    ),
    "Groups.groups_are_private_one_by_one": (
        CERTIFIED_GROUPS
        + """
  forall known x x' seen, let prob := G.groups_prob b rises falls greatest ks in
  ((forall d, known d = true -> x d = x' d) -> prob known x seen = prob known x' seen)
  /\\ forall c, In c (flat_map G.cells ks) -> known c = false ->
    (0 <= x c)%Z -> (0 <= x' c)%Z -> x c <> x' c ->
    let also := fun d => orb (d =? c)%Z (known d) in
    (prob also x seen * prob known x' seen
      <= exp (r * IZR (Z.abs (x c - x' c))) * (prob also x' seen * prob known x seen))%R""",
        WITH_REALS,
    ),
    "Groups.groups_add_up_to_one": (
        CERTIFIED_GROUPS
        + """
  forall known x seen, let prob := G.groups_prob b rises falls greatest ks in
  prob (fun _ => false) x seen = 1%R
  /\\ forall k c, In k ks -> In c (G.cells k) -> known c = false ->
    Geomdp.Means.sum (fun v => prob (fun d => orb (d =? c)%Z (known d)) x
        (fun d => if (d =? c)%Z then v else seen d))
      (cons None (map Some (G.values greatest k))) = prob known x seen""",
        WITH_REALS,
    ),
    "Groups.bits_count_points": (
        """forall lambda epsilon bit u,
  (0 <= lambda <= 1)%R -> (0 <= epsilon <= 1)%R ->
  (forall k, infinite_sum (G.more lambda k) (u k)) ->
  (forall k, (1 - epsilon) * (u k / (1 + u k)) <= bit k <= u k / (1 + u k))%R ->
  (forall j, 0 <= G.counted bit j)%R /\\ infinite_sum (G.counted bit) 1
  /\\ G.like_poisson lambda (exp 1 * epsilon) (G.counted bit)""",
        WITH_REALS,
    ),
    "Groups.places_are_near": (
        """forall N M, (0 < M)%Z -> (0 < N)%Z ->
  Geomdp.Means.sum (G.place_prob N M) (Geomdp.Means.below M) = 1%R
  /\\ forall i, (0 <= i < M)%Z ->
    (Rabs (G.place_prob N M i * IZR M - 1) <= IZR M / IZR N)%R""",
        axioms(
            "ClassicalDedekindReals.sig_forall_dec",
            "FunctionalExtensionality.functional_extensionality_dep",
        ),
    ),
    "Groups.example_certified": (
        "G.certified_groups G.half (1 / 2) (1 / 2) (ln 2) 1 (cons G.one nil)",
        WITH_REALS,
    ),
    "Example.example_checked": (
        "C.check Geomdp.Example.example = true",
        ["Closed under the global context"],
    ),
}
QUESTION = """From Coq Require Import Reals ZArith List.
From Geomdp Require {modules}.
Module S := Geomdp.Statement.
Module C := Geomdp.Checker.
Module G := Geomdp.Groups.
Theorem asked : {stated}.
Proof. exact Geomdp.{theorem}. Qed.
Set Printing Width 1000.
Print Assumptions asked.
"""
#: What `coqchk` prints if all is well.
SUMMARY = sorted(
    [
        "CONTEXT SUMMARY",
        "===============",
        "* Theory: Set is predicative",
        "* Axioms:",
        "Coq.Logic.Classical_Prop.classic",
        "Coq.Logic.FunctionalExtensionality.functional_extensionality_dep",
        "Coq.Reals.ClassicalDedekindReals.sig_forall_dec",
        "Coq.Reals.ClassicalDedekindReals.sig_not_dec",
        "* Constants/Inductives relying on type-in-type: <none>",
        "* Constants/Inductives relying on unsafe (co)fixpoints: <none>",
        "* Inductives whose positivity is assumed: <none>",
    ]
)


def coq(file: Path) -> str:
    """Compile a file, and return what it prints; exit if it does not compile."""
    run = ["coqc", "-q", "-Q", ".", "Geomdp", file.name]
    done = subprocess.run(run, cwd=file.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\n{file.name} does not compile")
    return done.stdout


def compare(subject: str, printed: str, expected: list[str]) -> None:
    """Exit unless these are the lines printed, in any order."""
    if sorted(line.strip() for line in printed.splitlines() if line.strip()) != expected:
        sys.exit("\n".join([f"{subject} gives", printed, "where this is expected:", *expected]))


def compiled(folder: Path) -> str:
    """Compile the proof in a folder, and return the names of its modules."""
    listed = (PROOFS / "_CoqProject").read_text().split()
    files = [name for name in listed if name.endswith(".v")]
    for file in files:
        shutil.copy(PROOFS / file, folder)
        coq(folder / file)
    return " ".join(name.removesuffix(".v") for name in files if name != "Extract.v")


def main() -> None:
    start = time.monotonic()
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given, beside = sys.argv[1:split], sys.argv[split + 1 :]
    if day := "--day" in given:
        given.remove("--day")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        modules = compiled(folder)
        for theorem, (stated, assumed) in THEOREMS.items():
            question = folder / "Question.v"
            question.write_text(QUESTION.format(modules=modules, stated=stated, theorem=theorem))
            compare(f"Print Assumptions {theorem}", coq(question), assumed)
        CHECKER.mkdir(parents=True, exist_ok=True)
        for suffix in (".ml", ".mli"):
            shutil.copy((folder / "checker").with_suffix(suffix), CHECKER)
        run = ["coqchk", "-silent", "-o", "-Q", ".", "Geomdp", "Geomdp.Question"]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            ["true"] if day else run, cwd=folder, stdout=pipe, stderr=subprocess.STDOUT, text=True
        ) as again:
            for path in map(Path, given):
                shutil.copy(path, folder)
                coq(folder / path.name)
            other = subprocess.run(beside, check=False).returncode if beside else 0
            compare("coqchk", again.communicate()[0], [] if day else SUMMARY)
    names = ", ".join(theorem.partition(".")[2] for theorem in THEOREMS)
    print(f"{names}: proved in {time.monotonic() - start:.0f} s, from:")
    print(*sorted(AXIOMS), sep="\n")
    sys.exit(again.returncode or other)


if __name__ == "__main__":
    main()
