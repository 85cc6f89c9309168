(** The comparison with a borrow is that of whole numbers. *)
From Geomdp Require Export Statement.
Open Scope Z_scope.

Section Limbs.
Variable pl : plan.
Let b := word_bits pl.
Let w := limb_bits pl.
Hypothesis widths : 0 < w <= b.

(** The own words of a digit as one number. *)
Fixpoint number (words : list Z) : Z :=
  match words with
  | [] => 0
  | word :: words => limb pl word * 2 ^ (w * Z.of_nat (length words)) + number words
  end.

Definition is_word (x : Z) : Prop := 0 <= x < 2 ^ b.

Lemma limb_range x : is_word x -> 0 <= limb pl x < 2 ^ w.
Proof.
  intros H. unfold limb. fold b w. assert (0 < 2 ^ (b - w)) by (apply Z.pow_pos_nonneg; lia).
  split; [apply Z.div_pos; unfold is_word in H; lia|].
  apply Z.div_lt_upper_bound; [assumption|]. rewrite <- Z.pow_add_r by lia.
  replace (b - w + w) with b by lia. apply H.
Qed.

Lemma pow_length {A} (x : A) l :
  2 ^ (w * Z.of_nat (length (x :: l))) = 2 ^ w * 2 ^ (w * Z.of_nat (length l)).
Proof.
  rewrite <- Z.pow_add_r by nia. f_equal.
  change (length (x :: l)) with (S (length l)). lia.
Qed.

Lemma number_range words : Forall is_word words ->
  0 <= number words < 2 ^ (w * Z.of_nat (length words)).
Proof.
  induction 1 as [|x words X W IH]; [simpl; rewrite Z.mul_0_r; simpl; lia|].
  rewrite pow_length. cbn [number]. pose proof (limb_range x X). nia.
Qed.

Lemma value_range limbs : Forall (fun t => 0 <= t < 2 ^ w) limbs ->
  0 <= value w limbs < 2 ^ (w * Z.of_nat (length limbs)).
Proof.
  induction 1 as [|t limbs T L IH]; [simpl; rewrite Z.mul_0_r; simpl; lia|].
  rewrite pow_length. cbn [value]. nia.
Qed.

Theorem less_value words limbs v :
  length limbs = S (length words) -> Forall is_word words ->
  Forall (fun t => 0 <= t < 2 ^ w) limbs -> 0 <= v < 2 ^ w ->
  less pl words limbs v = (2 ^ w * number words + v <? value w limbs).
Proof.
  intros L W T V. revert limbs L T.
  induction W as [|x words X W IH]; intros [|t limbs] L T; try discriminate.
  - destruct limbs; [|discriminate]. cbn [less number value length].
    change (Z.of_nat 0) with 0. rewrite !Z.mul_0_r. change (2 ^ 0) with 1. f_equal; lia.
  - inversion T as [|? ? T1 Ts]; subst. cbn [length] in L.
    cbn [less]. rewrite IH by (assumption || lia). cbn [value number].
    assert (P : 2 ^ (w * Z.of_nat (length limbs)) = 2 ^ w * 2 ^ (w * Z.of_nat (length words))).
    { rewrite <- Z.pow_add_r by nia. f_equal. assert (E : length limbs = S (length words)) by lia.
      rewrite E. lia. }
    pose proof (number_range words W) as N. pose proof (value_range limbs Ts) as Y.
    rewrite P in *. set (M := 2 ^ (w * Z.of_nat (length words))) in *.
    assert (0 < 2 ^ w) by (apply Z.pow_pos_nonneg; lia).
    replace (2 ^ w * (limb pl x * M + number words) + v)
      with (limb pl x * (2 ^ w * M) + (2 ^ w * number words + v)) by ring.
    set (X' := 2 ^ w * number words + v) in *.
    assert (0 <= X' < 2 ^ w * M) by (unfold X'; nia).
    set (MM := 2 ^ w * M) in *. set (Y' := value w limbs) in *. clearbody MM X' Y'.
    destruct (Z.ltb_spec X' Y'), (Z.ltb_spec (limb pl x * MM + X') (t * MM + Y'));
      symmetry; rewrite ?Z.ltb_lt, ?Z.ltb_ge; symmetry; rewrite ?Z.ltb_lt, ?Z.ltb_ge; nia.
Qed.
End Limbs.
