(** Lemma 2: words of the tape are independent and uniform. *)
From Geomdp Require Export Limbs.
Open Scope Z_scope.

Section Tape.
Variable pl : plan.
Let b := word_bits pl.
Let w := limb_bits pl.
Hypothesis widths : 0 < w <= b.

Lemma pow2_pos n : 0 <= n -> 0 < 2 ^ n.
Proof. intros. now apply Z.pow_pos_nonneg. Qed.

Lemma words_nonempty : below (2 ^ b) <> [].
Proof. apply below_nonempty, pow2_pos. lia. Qed.

Lemma tapes_nonempty n : tapes pl n <> [].
Proof.
  induction n as [|n IH]; [discriminate|]. apply pairs_nonempty; [apply words_nonempty | apply IH].
Qed.

Lemma in_tapes n t : In t (tapes pl n) -> length t = n /\ Forall (is_word pl) t.
Proof.
  revert t. induction n as [|n IH]; intros t; cbn [tapes].
  - intros [<-|[]]. now split.
  - rewrite in_flat_map. intros (x & X & T). apply in_map_iff in T. destruct T as (t' & <- & T).
    apply IH in T. apply in_below in X. split; [simpl; lia|]. constructor; [apply X | apply T].
Qed.

Lemma mean_tapes_S n f :
  mean (tapes pl (S n)) f = mean (below (2 ^ b)) (fun x => mean (tapes pl n) (fun t => f (x :: t))).
Proof. apply mean_pairs; [apply words_nonempty | apply tapes_nonempty]. Qed.

(** A tape is two tapes. *)
Lemma mean_tapes_app m n f :
  mean (tapes pl (m + n)) f = mean (tapes pl m) (fun s => mean (tapes pl n) (fun t => f (s ++ t))).
Proof.
  revert f. induction m as [|m IH]; intros f.
  - assert (G : forall g : list Z -> R, mean [[]] g = g []) by (intros; cbv -[Rplus Rdiv]; field).
    cbn [tapes plus]. now rewrite G.
  - cbn [plus]. rewrite !mean_tapes_S. apply mean_ext. intros x _. now rewrite IH.
Qed.

Lemma independent m n (f : list Z -> list Z -> R) :
  mean (tapes pl (m + n)) (fun t => f (firstn m t) (skipn m t))
  = mean (tapes pl m) (fun s => mean (tapes pl n) (f s)).
Proof.
  rewrite mean_tapes_app. apply mean_ext. intros s S. apply mean_ext. intros t _.
  destruct (in_tapes m s S) as [L _]. subst m.
  now rewrite firstn_app, Nat.sub_diag, firstn_all, firstn_O, app_nil_r,
    skipn_app, Nat.sub_diag, skipn_all, skipn_O.
Qed.

Lemma mean_limb f : mean (below (2 ^ b)) (fun x => f (limb pl x)) = mean (below (2 ^ w)) f.
Proof.
  replace (2 ^ b) with (2 ^ w * 2 ^ (b - w)) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
  assert (0 < 2 ^ w) by (apply pow2_pos; lia). assert (0 < 2 ^ (b - w)) by (apply pow2_pos; lia).
  rewrite mean_below_mul by assumption. apply mean_ext. intros i _.
  rewrite (mean_ext _ (fun _ => f i)); [apply mean_const, below_nonempty; assumption|].
  intros j J. apply in_below in J. f_equal. unfold limb. fold b w.
  rewrite Z.div_add_l, Z.div_small by lia. lia.
Qed.

(** Own words, as one number, are uniform. *)
Lemma mean_number n f :
  mean (tapes pl n) (fun t => f (number pl t)) = mean (below (2 ^ (w * Z.of_nat n))) f.
Proof.
  revert f. induction n as [|n IH]; intros f.
  - change (Z.of_nat 0) with 0. rewrite Z.mul_0_r. reflexivity.
  - rewrite mean_tapes_S.
    replace (2 ^ (w * Z.of_nat (S n))) with (2 ^ w * 2 ^ (w * Z.of_nat n))
      by (rewrite <- Z.pow_add_r by nia; f_equal; lia).
    rewrite mean_below_mul by (apply pow2_pos; nia).
    rewrite <- (mean_limb (fun i => mean _ _)). apply mean_ext. intros x _.
    rewrite <- (IH (fun u => f (limb pl x * 2 ^ (w * Z.of_nat n) + u)%Z)).
    apply mean_ext. intros t T. destruct (in_tapes n t T) as [<- _]. reflexivity.
Qed.
End Tape.
