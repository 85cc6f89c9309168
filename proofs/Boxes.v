(** Lemma 1 and the outputs: the outcomes that lead to an output are a disjoint union of boxes (a
    set of consecutive values for each digit), whose targets add up to the target distribution. *)
From Geomdp Require Export Digit.
Open Scope Z_scope.

Lemma ind_and a b : ind (a && b) = (ind a * ind b)%R.
Proof. destruct a, b; unfold ind; simpl; lra. Qed.

(** Decides integer comparisons in [ind]; leaves linear goals. *)
Ltac decide_ind :=
  unfold ind;
  repeat match goal with
  | |- context [(?x <=? ?y)] => destruct (Z.leb_spec x y)
  | |- context [(?x <? ?y)] => destruct (Z.ltb_spec x y)
  | |- context [(?x =? ?y)] => destruct (Z.eqb_spec x y)
  end; simpl; try lra; exfalso.

(** ** The digits above digit 0, by their numbers of values *)

Definition box : Type := list (Z * Z).

Fixpoint inbox (bx : box) (os : list Z) : bool :=
  match bx, os with
  | [], [] => true
  | (lo, hi) :: bx, o :: os => within lo hi o && inbox bx os
  | _, _ => false
  end.

(** The value of the digits in units of the first one's weight. *)
Fixpoint mixed (rs os : list Z) : Z :=
  match rs, os with r :: rs, o :: os => o + r * mixed rs os | _, _ => 0 end.

Fixpoint in_radices (rs os : list Z) : Prop :=
  match rs, os with
  | [], [] => True
  | r :: rs, o :: os => 0 <= o < r /\ in_radices rs os
  | _, _ => False
  end.

Fixpoint full (rs : list Z) : box := match rs with [] => [] | r :: rs => (0, r) :: full rs end.

(** The value is [k]. *)
Fixpoint equal (rs : list Z) (k : Z) : box :=
  match rs with
  | [] => []
  | [_] => [(k, k + 1)]
  | r :: rs => (k mod r, k mod r + 1) :: equal rs (k / r)
  end.

(** The value is greater than [k], split by the highest place where it differs. *)
Fixpoint greater (rs : list Z) (k : Z) : list box :=
  match rs with
  | [] => []
  | [r] => [[(k + 1, r)]]
  | r :: rs => map (cons (0, r)) (greater rs (k / r)) ++ [(k mod r + 1, r) :: equal rs (k / r)]
  end.

(** The first value beyond all digits but the top one's last value. *)
Fixpoint last_place (rs : list Z) : Z :=
  match rs with [] => 0 | [r] => r - 1 | r :: rs => r * last_place rs end.

Definition positive (rs : list Z) : Prop := Forall (fun r => 0 < r) rs.

Lemma mod_div k r : r <> 0 -> k mod r + r * (k / r) = k.
Proof. intros N. pose proof (Z.div_mod k r N). lia. Qed.

Lemma inbox_full rs os : in_radices rs os -> inbox (full rs) os = true.
Proof.
  revert os. induction rs as [|r rs IH]; intros [|o os] H; simpl in *; try tauto.
  rewrite IH by tauto. unfold within. rewrite (proj2 (Z.leb_le _ _)), (proj2 (Z.ltb_lt _ _)) by lia.
  reflexivity.
Qed.

Lemma mixed_ge0 rs os : positive rs -> in_radices rs os -> 0 <= mixed rs os.
Proof.
  intros P. revert os. induction P as [|r rs R P IH]; intros [|o os] H; simpl in *; try tauto;
    try lia.
  specialize (IH os ltac:(tauto)). nia.
Qed.

Lemma inbox_equal rs os k : rs <> [] -> positive rs -> in_radices rs os ->
  inbox (equal rs k) os = (mixed rs os =? k).
Proof.
  intros N P. revert os k. induction P as [|r rs R P IH]; [congruence|].
  intros [|o os] k H; [simpl in H; tauto|]. destruct rs as [|r' rs].
  - destruct os; [|simpl in H; tauto]. cbn [equal inbox mixed]. unfold within.
    rewrite andb_true_r. destruct (Z.leb_spec k o), (Z.ltb_spec o (k + 1)),
      (Z.eqb_spec (o + r * 0) k);
      simpl; try reflexivity; lia.
  - change (equal (r :: r' :: rs) k) with ((k mod r, k mod r + 1) :: equal (r' :: rs) (k / r)).
    cbn [inbox]. destruct H as [O H]. rewrite IH by (assumption || discriminate).
    change (mixed (r :: r' :: rs) (o :: os)) with (o + r * mixed (r' :: rs) os).
    pose proof (Z.div_mod k r ltac:(lia)) as E. pose proof (Z.mod_pos_bound k r R) as B.
    unfold within. set (m := mixed (r' :: rs) os) in *. clearbody m.
    destruct (Z.leb_spec (k mod r) o), (Z.ltb_spec o (k mod r + 1)), (Z.eqb_spec m (k / r)),
      (Z.eqb_spec (o + r * m) k); simpl; try reflexivity; exfalso; nia.
Qed.

Lemma sum_inbox_cons r o os bxs : 0 <= o < r ->
  sum (fun bx => ind (inbox bx (o :: os))) (map (cons (0, r)) bxs)
  = sum (fun bx => ind (inbox bx os)) bxs.
Proof.
  intros O. rewrite sum_map. apply sum_ext. intros bx _. cbn [inbox]. unfold within.
  rewrite (proj2 (Z.leb_le _ _)), (proj2 (Z.ltb_lt _ _)) by lia. reflexivity.
Qed.

Lemma inbox_greater rs os k : rs <> [] -> positive rs -> in_radices rs os ->
  sum (fun bx => ind (inbox bx os)) (greater rs k) = ind (k <? mixed rs os).
Proof.
  intros N P. revert os k. induction P as [|r rs R P IH]; [congruence|].
  intros [|o os] k H; [simpl in H; tauto|]. destruct rs as [|r' rs].
  - destruct os; [|simpl in H; tauto]. cbn [greater mixed]. unfold sum; simpl.
    unfold within. rewrite andb_true_r. destruct H as [O _].
    destruct (Z.leb_spec (k + 1) o), (Z.ltb_spec o r), (Z.ltb_spec k (o + r * 0));
      unfold ind; simpl; try lra; lia.
  - change (greater (r :: r' :: rs) k) with (map (cons (0, r)) (greater (r' :: rs) (k / r))
      ++ [(k mod r + 1, r) :: equal (r' :: rs) (k / r)]).
    destruct H as [O H]. rewrite sum_app, sum_inbox_cons, IH by (assumption || discriminate).
    unfold sum; cbn [fold_right]. cbn [inbox].
    rewrite inbox_equal by (assumption || discriminate).
    change (mixed (r :: r' :: rs) (o :: os)) with (o + r * mixed (r' :: rs) os).
    pose proof (Z.div_mod k r ltac:(lia)) as E. pose proof (Z.mod_pos_bound k r R) as B.
    unfold within. set (m := mixed (r' :: rs) os) in *. clearbody m.
    destruct (Z.leb_spec (k mod r + 1) o), (Z.ltb_spec o r), (Z.eqb_spec m (k / r)),
      (Z.ltb_spec (k / r) m), (Z.ltb_spec k (o + r * m)); unfold ind; simpl; try lra;
      exfalso; nia.
Qed.

Lemma greater_length rs k : length (greater rs k) = length rs.
Proof.
  revert k. induction rs as [|r rs IH]; intros k; [reflexivity|].
  destruct rs as [|r' rs]; [reflexivity|].
  change (greater (r :: r' :: rs) k) with (map (cons (0, r)) (greater (r' :: rs) (k / r))
    ++ [(k mod r + 1, r) :: equal (r' :: rs) (k / r)]).
  rewrite app_length, map_length, IH. simpl. lia.
Qed.

Lemma last_place_ge0 rs : positive rs -> 0 <= last_place rs.
Proof.
  induction 1 as [|r rs R P IH]; [simpl; lia|]. destruct rs; [simpl; lia|].
  change (last_place (r :: z :: rs)) with (r * last_place (z :: rs)). nia.
Qed.

(** Intervals of a box are between 0 and the number of values; only the top one can be empty, or a
    part above the last value. *)
Fixpoint fits (rs : list Z) (bx : box) : Prop :=
  match rs, bx with
  | [], [] => True
  | r :: rs, (lo, hi) :: bx => 0 <= lo <= hi /\ hi <= r /\ fits rs bx
  | _, _ => False
  end.

Lemma fits_cons r rs lo hi bx :
  fits (r :: rs) ((lo, hi) :: bx) = (0 <= lo <= hi /\ hi <= r /\ fits rs bx).
Proof. reflexivity. Qed.

Lemma full_fits rs : positive rs -> fits rs (full rs).
Proof. induction 1; simpl; auto. repeat split; try assumption; lia. Qed.

Lemma equal_fits rs k : positive rs -> 0 <= k < last_place rs -> fits rs (equal rs k).
Proof.
  intros P. revert k. induction P as [|r rs R P IH]; intros k K; [exact I|].
  destruct rs as [|r' rs]; [simpl in *; lia|].
  change (equal (r :: r' :: rs) k) with ((k mod r, k mod r + 1) :: equal (r' :: rs) (k / r)).
  change (last_place (r :: r' :: rs)) with (r * last_place (r' :: rs)) in K.
  pose proof (Z.mod_pos_bound k r R). rewrite fits_cons. repeat split; try lia.
  apply IH. split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia].
Qed.

Lemma greater_fits rs k bx : positive rs -> 0 <= k < last_place rs -> In bx (greater rs k) ->
  fits rs bx.
Proof.
  intros P. revert k bx. induction P as [|r rs R P IH]; intros k bx K I; [simpl in I; tauto|].
  destruct rs as [|r' rs].
  - destruct I as [<-|[]]. simpl in *. lia.
  - change (greater (r :: r' :: rs) k) with (map (cons (0, r)) (greater (r' :: rs) (k / r))
      ++ [(k mod r + 1, r) :: equal (r' :: rs) (k / r)]) in I.
    change (last_place (r :: r' :: rs)) with (r * last_place (r' :: rs)) in K.
    assert (K' : 0 <= k / r < last_place (r' :: rs))
      by (split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]).
    pose proof (Z.mod_pos_bound k r R).
    apply in_app_or in I. destruct I as [I|[<-|[]]].
    + apply in_map_iff in I. destruct I as (bx' & <- & I). rewrite fits_cons.
      repeat split; try lia. now apply (IH (k / r)).
    + rewrite fits_cons. repeat split; try lia. now apply equal_fits.
Qed.

(** ** Lemma 1: targets *)
Open Scope R_scope.

Section Targets.
Variable sampled : R.
Hypothesis sampled_positive : 0 < sampled.
Notation a_to := (a_to sampled).
Notation target := (target sampled).

Lemma a_to_pos n : 0 < a_to n.
Proof. apply exp_pos. Qed.

Lemma a_to_0 : a_to 0 = 1.
Proof. unfold Statement.a_to. rewrite Rmult_0_r. apply exp_0. Qed.

Lemma a_to_add m n : a_to (m + n) = a_to m * a_to n.
Proof. unfold Statement.a_to. rewrite plus_IZR, Rmult_plus_distr_l. apply exp_plus. Qed.

Lemma a_to_le m n : (m <= n)%Z -> a_to n <= a_to m.
Proof.
  intros H. unfold Statement.a_to. apply IZR_le in H.
  assert (A : - sampled * IZR n <= - sampled * IZR m) by nra.
  destruct (Rle_lt_or_eq_dec _ _ A) as [L| ->]; [left; now apply exp_increasing | lra].
Qed.

Lemma a_to_lt_1 n : (0 < n)%Z -> a_to n < 1.
Proof.
  intros H. rewrite <- exp_0. apply exp_increasing. apply (IZR_lt 0) in H. nra.
Qed.

Lemma a_to_le_1 n : (0 <= n)%Z -> a_to n <= 1.
Proof. intros H. rewrite <- a_to_0. now apply a_to_le. Qed.

Lemma target_0 t B r : (0 < r)%Z -> target t B r 0 = 0.
Proof.
  intros R. unfold Statement.target. rewrite Z.mul_0_l, a_to_0, Rminus_diag_eq by reflexivity.
  destruct t; [now rewrite (proj2 (Z.ltb_lt _ _))|]. unfold Rdiv; ring.
Qed.

Lemma target_last t B r : (0 < r)%Z -> (0 < B)%Z -> target t B r r = 1.
Proof.
  intros R HB. unfold Statement.target. destruct t; [now rewrite Z.ltb_irrefl|].
  apply Rinv_r. pose proof (a_to_lt_1 (r * B) ltac:(nia)). lra.
Qed.

Lemma target_le t B r j k : (0 < B)%Z -> (0 <= j <= k)%Z -> (k <= r)%Z ->
  target t B r j <= target t B r k.
Proof.
  intros HB J K. unfold Statement.target. destruct t.
  - pose proof (a_to_pos (j * B)). pose proof (a_to_le (j * B) (k * B) ltac:(nia)).
    destruct (Z.ltb_spec j r), (Z.ltb_spec k r); lra || lia.
  - pose proof (a_to_le (j * B) (k * B) ltac:(nia)).
    destruct (Z.eq_dec r 0) as [->|N].
    { replace j with 0%Z by lia. replace k with 0%Z by lia. lra. }
    pose proof (a_to_lt_1 (r * B) ltac:(nia)). unfold Rdiv.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|]; lra.
Qed.

(** The last value of a digit below the top is the least likely. *)
Lemma target_least B r lo hi : (0 < B)%Z -> (0 <= lo < hi)%Z -> (hi <= r)%Z ->
  1 - target false B r (r - 1) <= target false B r hi - target false B r lo.
Proof.
  intros HB L H. rewrite <- (target_last false B r) by lia.
  apply Rle_trans with (target false B r (lo + 1) - target false B r lo).
  2: { pose proof (target_le false B r (lo + 1) hi ltac:(lia) ltac:(lia) ltac:(lia)). lra. }
  unfold Statement.target. pose proof (a_to_lt_1 (r * B) ltac:(nia)).
  unfold Rdiv. rewrite <- !Rmult_minus_distr_r. apply Rmult_le_compat_r.
  { left; apply Rinv_0_lt_compat; lra. }
  replace (r * B)%Z with ((r - 1) * B + B)%Z by ring.
  replace ((lo + 1) * B)%Z with (lo * B + B)%Z by ring. rewrite !a_to_add.
  pose proof (a_to_le (lo * B) ((r - 1) * B) ltac:(nia)). pose proof (a_to_lt_1 B HB). nra.
Qed.

(** The mass of a box of digits from weight [B] on. *)
Fixpoint mass (B : Z) (rs : list Z) (bx : box) : R :=
  match rs, bx with
  | r :: rs, (lo, hi) :: bx =>
      let t := match rs with [] => true | _ => false end in
      (target t B r hi - target t B r lo) * mass (B * r) rs bx
  | _, _ => 1
  end.

Lemma mass_cons B r r' rs lo hi bx :
  mass B (r :: r' :: rs) ((lo, hi) :: bx)
  = (target false B r hi - target false B r lo) * mass (B * r) (r' :: rs) bx.
Proof. reflexivity. Qed.

Lemma mass_full B rs : (0 < B)%Z -> positive rs -> mass B rs (full rs) = 1.
Proof.
  intros HB P. revert B HB. induction P as [|r rs R P IH]; intros B HB; [reflexivity|].
  cbn [full mass]. rewrite IH, target_0, target_last by nia. lra.
Qed.

Lemma mass_equal B rs k : rs <> [] -> (0 < B)%Z -> positive rs -> (0 <= k < last_place rs)%Z ->
  mass B rs (equal rs k) = a_to (k * B) * (1 - a_to B).
Proof.
  intros N HB P. revert B HB k. induction P as [|r rs R P IH]; [congruence|].
  intros B HB k K. destruct rs as [|r' rs].
  - cbn [equal mass last_place] in *. unfold Statement.target.
    replace ((k + 1) * B)%Z with (k * B + B)%Z by ring. rewrite a_to_add.
    destruct (Z.ltb_spec (k + 1) r), (Z.ltb_spec k r); try lra; lia.
  - change (equal (r :: r' :: rs) k) with ((k mod r, k mod r + 1)%Z :: equal (r' :: rs) (k / r)).
    change (last_place (r :: r' :: rs)) with (r * last_place (r' :: rs))%Z in K.
    rewrite mass_cons, IH; [|discriminate|nia|].
    2: { split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]. }
    unfold Statement.target. pose proof (a_to_lt_1 (r * B) ltac:(nia)).
    replace ((k mod r + 1) * B)%Z with (k mod r * B + B)%Z by ring.
    rewrite <- (mod_div k r) at 4 by lia.
    replace ((k mod r + r * (k / r)) * B)%Z with (k mod r * B + k / r * (B * r))%Z by ring.
    replace (B * r)%Z with (r * B)%Z by ring. rewrite !a_to_add. field. lra.
Qed.

Lemma mass_greater B rs k : rs <> [] -> (0 < B)%Z -> positive rs -> (0 <= k < last_place rs)%Z ->
  sum (mass B rs) (greater rs k) = a_to ((k + 1) * B).
Proof.
  intros N HB P. revert B HB k. induction P as [|r rs R P IH]; [congruence|].
  intros B HB k K. destruct rs as [|r' rs].
  - cbn [greater last_place] in *. unfold sum; simpl. unfold Statement.target.
    rewrite Z.ltb_irrefl. destruct (Z.ltb_spec (k + 1) r); [ring|].
    lia.
  - change (greater (r :: r' :: rs) k) with (map (cons (0, r)%Z) (greater (r' :: rs) (k / r))
      ++ [(k mod r + 1, r)%Z :: equal (r' :: rs) (k / r)]).
    change (last_place (r :: r' :: rs)) with (r * last_place (r' :: rs))%Z in K.
    assert (K' : (0 <= k / r < last_place (r' :: rs))%Z)
      by (split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]).
    rewrite sum_app, sum_map, (sum_ext _ (mass (B * r) (r' :: rs))).
    2: { intros bx _. rewrite mass_cons, target_0, target_last by lia. lra. }
    rewrite IH; [|discriminate|nia|assumption].
    unfold sum; cbn [fold_right]. rewrite mass_cons, mass_equal;
      [|discriminate|nia|assumption|assumption].
    rewrite target_last by lia.
    unfold Statement.target. pose proof (a_to_lt_1 (r * B) ltac:(nia)).
    rewrite <- (mod_div k r) at 4 by lia.
    replace ((k mod r + r * (k / r) + 1) * B)%Z
      with ((k mod r + 1) * B + k / r * (B * r))%Z by ring.
    replace ((k / r + 1) * (B * r))%Z with (k / r * (B * r) + r * B)%Z by ring.
    replace (B * r)%Z with (r * B)%Z by ring. rewrite !a_to_add. field. lra.
Qed.
End Targets.
