(** The main theorems. *)
From Geomdp Require Export Error.
Open Scope R_scope.

Theorem draw_is_private : purely_private.
Proof.
  intros pl rate sampled g delta inverses C x x' y.
  pose proof (widths _ _ _ _ _ _ C) as W.
  apply (theorem_2 pl rate sampled g delta inverses C); try apply C; lia.
Qed.

Lemma rate_ge0 pl rate sampled g delta inverses :
  certified pl rate sampled g delta inverses -> 0 <= rate.
Proof.
  intros C. pose proof (widths _ _ _ _ _ _ C) as W.
  pose proof (dlt_ge0 pl rate sampled g delta inverses C ltac:(lia)).
  pose proof (slack _ _ _ _ _ _ C). pose proof (sampled_positive _ _ _ _ _ _ C). lra.
Qed.

(** ** Vectors *)

Section Release.
Variable pl : plan.
Hypothesis widths : (0 < limb_bits pl <= word_bits pl)%Z.
Variable lower : Z.

Definition offset (x : Z) : Z := Z.min (Z.max x lower - lower) (range pl).

(** Counts have words of their own: the joint probability is a product. *)
Lemma release_cons x xs y ys :
  release_prob pl lower (y :: ys) (x :: xs)
  = prob pl (y - lower) (offset x) * release_prob pl lower ys xs.
Proof.
  unfold release_prob, prob. cbn zeta. rewrite !mean_filter.
  replace (words pl * length (x :: xs))%nat with (words pl + words pl * length xs)%nat
    by (change (length (x :: xs)) with (S (length xs)); lia).
  set (f := fun t t' => ind (draw pl t (offset x) =? y - lower)%Z
    * ind (if list_eq_dec Z.eq_dec (release pl lower t' xs) ys then true else false)).
  transitivity (mean (tapes pl (words pl)) (fun t => mean (tapes pl (words pl * length xs)) (f t))).
  - rewrite <- (independent pl widths). apply mean_ext. intros t _. unfold f. rewrite <- ind_and.
    f_equal. change (release pl lower t (x :: xs))
      with (lower + draw pl (firstn (words pl) t) (offset x)
        :: release pl lower (skipn (words pl) t) xs)%Z.
    generalize (draw pl (firstn (words pl) t) (offset x)). intros o.
    destruct (list_eq_dec Z.eq_dec (_ :: _) (y :: ys)) as [E|N];
      destruct (Z.eqb_spec o (y - lower)) as [D|D];
      destruct (list_eq_dec Z.eq_dec (release pl lower (skipn (words pl) t) xs) ys) as [R|R];
      cbn [andb]; try reflexivity; exfalso.
    + apply R. now injection E.
    + apply D. injection E as E _. rewrite <- E. ring.
    + apply D. injection E as E _. rewrite <- E. ring.
    + apply N. rewrite D, R. f_equal. ring.
  - unfold f. rewrite (mean_ext _ (fun t =>
      mean (tapes pl (words pl * length xs)) (fun t' =>
        ind (if list_eq_dec Z.eq_dec (release pl lower t' xs) ys then true else false))
      * ind (draw pl t (offset x) =? y - lower)%Z)).
    + rewrite mean_scale. ring.
    + intros t _. rewrite mean_scale. ring.
Qed.

Lemma release_ge0 ys xs : 0 <= release_prob pl lower ys xs.
Proof.
  unfold release_prob. cbn zeta. rewrite mean_filter. apply mean_ge0; [now apply tapes_nonempty|].
  intros t _. unfold ind. destruct (list_eq_dec _ _ _); lra.
Qed.
End Release.

Theorem release_is_private : release_purely_private.
Proof.
  intros pl rate sampled g delta inverses C lower xs.
  pose proof (widths _ _ _ _ _ _ C) as W. pose proof (outputs _ _ _ _ _ _ C) as O.
  assert (W' : (0 < limb_bits pl <= word_bits pl)%Z) by lia.
  induction xs as [|x xs IH]; intros [|x' xs'] ys L; try discriminate.
  - simpl distance. rewrite Rmult_0_r, exp_0. lra.
  - injection L as L. cbn [distance]. destruct ys as [|y ys].
    { assert (Z0 : forall z zs, release_prob pl lower [] (z :: zs) = 0).
      { intros z zs. unfold release_prob. cbn zeta. rewrite mean_filter, (mean_ext _ (fun _ => 0)).
        - apply mean_const. now apply tapes_nonempty.
        - intros t _. unfold ind. cbn [release].
          destruct (list_eq_dec _ _ _); [discriminate | reflexivity]. }
      rewrite !Z0. lra. }
    rewrite !release_cons by assumption. rewrite plus_IZR, Rmult_plus_distr_l, exp_plus.
    set (o := offset pl lower x). set (o' := offset pl lower x').
    assert (P0 : forall z, 0 <= prob pl (y - lower) z).
    { intros z. unfold prob. rewrite mean_filter. apply mean_ge0; [now apply tapes_nonempty|].
      intros t _. unfold ind. destruct (_ =? _)%Z; lra. }
    assert (P : prob pl (y - lower) o
        <= exp (rate * IZR (Z.abs (x - x'))) * prob pl (y - lower) o').
    { eapply Rle_trans.
      - apply (draw_is_private pl rate sampled g delta inverses C o o'); unfold o, o', offset; lia.
      - apply Rmult_le_compat_r; [apply P0|].
        (* Clamping moves no two counts farther apart. *)
        assert (D : IZR (Z.abs (o - o')) <= IZR (Z.abs (x - x')))
          by (apply IZR_le; unfold o, o', offset; lia).
        pose proof (slack _ _ _ _ _ _ C). pose proof (sampled_positive _ _ _ _ _ _ C).
        pose proof (rate_ge0 pl rate sampled g delta inverses C).
        assert (E : rate * IZR (Z.abs (o - o')) <= rate * IZR (Z.abs (x - x')))
          by (apply Rmult_le_compat_l; lra).
        destruct (Rle_lt_or_eq_dec _ _ E) as [Lt| ->]; [left; now apply exp_increasing | lra]. }
    replace (exp (rate * IZR (Z.abs (x - x'))) * exp (rate * IZR (distance xs xs'))
        * (prob pl (y - lower) o' * release_prob pl lower ys xs'))
      with (exp (rate * IZR (Z.abs (x - x'))) * prob pl (y - lower) o'
        * (exp (rate * IZR (distance xs xs')) * release_prob pl lower ys xs')) by ring.
    apply Rmult_le_compat; try assumption; [apply P0 | now apply release_ge0 | now apply IH].
Qed.
