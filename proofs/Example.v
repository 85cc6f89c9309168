(** The hypotheses can hold: a plan of one digit for counts 0 and 1, words of 9 bits, at [rate = ln 2],
    so that [a = 1/2]. *)
From Geomdp Require Import Main.
Open Scope R_scope.

Definition example : plan := Plan 9 8 1 1 (Digit 0 1 [[0; 24]; [85; 101]; [170; 179]]%Z) [].

Lemma a_to_0_half : a_to (ln 2) 0 = 1.
Proof. unfold a_to. rewrite Rmult_0_r. apply exp_0. Qed.

Lemma a_to_1_half : a_to (ln 2) 1 = / 2.
Proof. unfold a_to. rewrite Rmult_1_r, exp_Ropp, exp_ln; lra. Qed.

Theorem example_certified : certified example (ln 2) (ln 2) (24 / 65536) 0 [0].
Proof.
  assert (P : p_zero (ln 2) = / 3) by (unfold p_zero; rewrite a_to_1_half; field).
  assert (L : lows example [first example] [0] = []) by reflexivity.
  constructor; try (cbn; lia).
  - repeat constructor; simpl; try lia; discriminate.
  - intros k K. change (count (first example)) with 3%Z in K.
    assert (C : (k = 1 \/ k = 2 \/ k = 3)%Z) by lia. unfold first_target. rewrite P.
    change (alone example) with true. change (radix example) with 2%Z.
    change (2 ^ bits _ _)%Z with 65536%Z. unfold target.
    destruct C as [->|[->| ->]]; cbn [Z.sub Z.add Z.opp Z.pos_sub Z.ltb Z.compare Pos.compare
      Pos.compare_cont Z.mul Pos.mul Pos.pred_double]; rewrite ?a_to_0_half, ?a_to_1_half;
      match goal with |- context [nth ?n ?l 0%Z] => let v := eval vm_compute in (nth n l 0%Z) in
        change (nth n l 0%Z) with v end;
      apply Rabs_le; lra.
  - vm_compute nth. change (2 ^ bits _ _)%Z with 65536%Z. lra.
  - rewrite <- ln_1. apply ln_increasing; lra.
  - intros H. discriminate H.
  - change (first example :: rest example) with [first example]. rewrite L. unfold sum. simpl. lra.
  - change (first example :: rest example) with [first example]. rewrite L. simpl. lra.
  - lra.
  - lra.
  - rewrite exp_ln by lra. unfold units. simpl length. change (2 ^ bits _ _)%Z with 65536%Z. simpl. lra.
Qed.

Corollary example_private x x' y : (0 <= x <= 1)%Z -> (0 <= x' <= 1)%Z ->
  prob example y x <= exp (ln 2 * IZR (Z.abs (x - x'))) * prob example y x'.
Proof. apply (draw_is_private _ _ _ _ _ _ example_certified). Qed.
