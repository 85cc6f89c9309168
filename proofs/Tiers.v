(** Tiers: noisy counts at several rates, each made by a step from the next finer one. *)
From Geomdp Require Export Main.
Open Scope R_scope.

(** * Lemma 23: ideal steps *)

Section Ideal.
Variables (pl : plan) (s s' : R).
Hypothesis s_pos : 0 < s.
Hypothesis s_less : s < s'.
Hypothesis r_pos : (1 <= range pl)%Z.
Let r := range pl.
Let a := a_to s 1.
Let b := a_to s' 1.

(** The probabilities of keeping a value, inside and at an end. *)
Definition keep_inside : R := b * (1 - a) ^ 2 / (a * (1 - b) ^ 2).
Definition keep_end : R := b * (1 - a) / (a * (1 - b)).
Definition keep (u : Z) : R := if ((u =? 0) || (u =? r))%Z then keep_end else keep_inside.

Definition ideal_step (y u : Z) : R := keep u * ind (u =? y)%Z + (1 - keep u) * mu pl s y u.

(** What undoes the noise at the rate [t]. *)
Definition undo (t : R) (f : Z -> R) (u : Z) : R :=
  let q := a_to t 1 in
  if (u =? 0)%Z then f u - q / (1 - q) * (f 1%Z - f 0%Z)
  else if (u =? r)%Z then f u - q / (1 - q) * (f (r - 1)%Z - f r)
  else f u - q / (1 - q) ^ 2 * (f (u + 1)%Z - 2 * f u + f (u - 1)%Z).

Lemma a_bounds : 0 < a < 1. Proof. split; [apply a_to_pos | apply a_to_lt_1; [assumption | lia]].
Qed.
Lemma b_bounds : 0 < b < 1. Proof. split; [apply a_to_pos | apply a_to_lt_1; [lra | lia]]. Qed.
Lemma b_less : b < a.
Proof. unfold a, b, a_to. apply exp_increasing. lra. Qed.

Lemma power t k : a_to t (k + 1) = a_to t k * a_to t 1. Proof. apply a_to_S. Qed.

(** Partial sums of the undone noise. *)
Lemma partial_sums (f : Z -> R) x n : (0 <= x <= r)%Z -> (Z.of_nat n < r)%Z ->
  sum (fun u => mu pl s' u x * undo s' f u) (below (Z.of_nat (S n)))
  = if (Z.of_nat n <? x)%Z
    then a_to s' (x - Z.of_nat n) / ((1 - b) * (1 + b)) * (f (Z.of_nat n) - b * f (Z.of_nat n +
      1)%Z)
    else f x + a_to s' (Z.of_nat n - x) * b / ((1 - b) * (1 + b))
      * (b * f (Z.of_nat n) - f (Z.of_nat n + 1)%Z).
Proof.
  intros X. pose proof b_bounds as B. induction n as [|n IH]; intros N.
  - change (below (Z.of_nat 1)) with [0%Z]. cbn [sum fold_right]. unfold undo, mu. cbv zeta.
    fold r b.
    change (Z.of_nat 0) with 0%Z. change (0 =? 0)%Z with true. destruct (Z.eqb_spec 0 r); [lia|].
    rewrite Z.sub_0_r. change (0 + 1)%Z with 1%Z.
    destruct (Z.ltb_spec 0 x).
    + unfold sum; simpl. field. lra.
    + assert (x = 0%Z) by lia. subst x. change (a_to s' (0 - 0)) with (a_to s' 0).
      assert (E : a_to s' 0 = 1) by (unfold a_to; rewrite Rmult_0_r; apply exp_0). rewrite E.
      unfold sum; simpl. field. lra.
  - rewrite below_snoc, sum_app, IH by lia. set (m := Z.of_nat n) in *.
    assert (M : Z.of_nat (S n) = (m + 1)%Z) by (unfold m; lia). rewrite M in *.
    assert (M0 : (0 <= m)%Z) by (unfold m; lia).
    unfold sum at 1. cbn [fold_right]. rewrite Rplus_0_r. unfold undo, mu. cbv zeta. fold r b.
    destruct (Z.eqb_spec (m + 1) 0); [lia|]. destruct (Z.eqb_spec (m + 1) r); [lia|].
    replace (m + 1 - 1)%Z with m by lia.
    destruct (Z.ltb_spec m x), (Z.ltb_spec (m + 1) x); try lia.
    + rewrite (Z.abs_neq (m + 1 - x)) by lia.
      replace (- (m + 1 - x))%Z with (x - (m + 1))%Z by lia.
      replace (x - m)%Z with (x - (m + 1) + 1)%Z by lia. rewrite power. fold b.
      field. lra.
    + assert (x = (m + 1)%Z) by lia. subst x. rewrite Z.sub_diag.
      replace (m + 1 - m)%Z with (0 + 1)%Z by lia. rewrite power. fold b.
      change (Z.abs 0) with 0%Z.
      assert (E : a_to s' 0 = 1) by (unfold a_to; rewrite Rmult_0_r; apply exp_0). rewrite E.
      field. lra.
    + rewrite (Z.abs_eq (m + 1 - x)) by lia.
      replace (m + 1 - x)%Z with (m - x + 1)%Z by lia. rewrite power. fold b. field. lra.
Qed.

Lemma undone (f : Z -> R) x : (0 <= x <= r)%Z ->
  sum (fun u => mu pl s' u x * undo s' f u) (below (r + 1)) = f x.
Proof.
  intros X. pose proof b_bounds as B.
  replace (r + 1)%Z with (Z.of_nat (S (Z.to_nat r))) by lia. rewrite below_snoc, sum_app.
  replace (Z.to_nat r) with (S (Z.to_nat (r - 1))) by lia.
  rewrite partial_sums by lia. rewrite Z2Nat.id by lia.
  replace (Z.of_nat (S (Z.to_nat (r - 1)))) with r by lia.
  unfold sum. cbn [fold_right]. rewrite Rplus_0_r. unfold undo, mu. cbv zeta. fold r b.
  rewrite Z.eqb_refl.
  destruct (Z.eqb_spec r 0); [lia|]. replace (r - 1 + 1)%Z with r by lia.
  destruct (Z.ltb_spec (r - 1) x).
  - assert (x = r) by lia. subst x. replace (r - (r - 1))%Z with (0 + 1)%Z by lia.
    rewrite power, Z.sub_diag. fold b.
    assert (E : a_to s' 0 = 1) by (unfold a_to; rewrite Rmult_0_r; apply exp_0). rewrite E.
    field. lra.
  - replace (r - x)%Z with (r - 1 - x + 1)%Z by lia. rewrite power. fold b. field. lra.
Qed.

Lemma undo_mu y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z ->
  undo s (mu pl s y) u = ind (u =? y)%Z.
Proof.
  intros Y U. pose proof a_bounds as A.
  assert (E : a_to s 0 = 1) by (unfold a_to; rewrite Rmult_0_r; apply exp_0).
  unfold undo, mu. cbv zeta. fold r a.
  destruct (Z.eqb_spec y r) as [->|]; [|destruct (Z.eqb_spec y 0) as [->|]];
    (destruct (Z.eqb_spec u 0) as [->|]; [|destruct (Z.eqb_spec u r) as [->|]]).
  - destruct (Z.eqb_spec 0 r); [lia|]. unfold ind. rewrite Z.sub_0_r.
    replace r with (r - 1 + 1)%Z at 1 3 by lia. rewrite power. fold a. field. lra.
  - rewrite Z.sub_diag. unfold ind. replace (r - (r - 1))%Z with (0 + 1)%Z by lia.
    rewrite power, E. fold a. field. lra.
  - destruct (Z.eqb_spec u r); [lia|]. unfold ind.
    replace (r - (u - 1))%Z with (r - (u + 1) + 1 + 1)%Z by lia.
    replace (r - u)%Z with (r - (u + 1) + 1)%Z by lia. rewrite !power. fold a. field. lra.
  - unfold ind. rewrite E. fold a. field. lra.
  - destruct (Z.eqb_spec r 0); [lia|]. unfold ind. replace r with (r - 1 + 1)%Z at 1 3 by lia.
    rewrite power. fold a. field. lra.
  - destruct (Z.eqb_spec u 0); [lia|]. unfold ind.
    replace (u + 1)%Z with (u - 1 + 1 + 1)%Z by lia. replace u with (u - 1 + 1)%Z at 1 3 by lia.
    rewrite !power. fold a. field. lra.
  - destruct (Z.eqb_spec 0 y); [lia|]. unfold ind. rewrite Z.sub_0_r, !Z.abs_eq by lia.
    replace y with (y - 1 + 1)%Z at 1 3 by lia. rewrite power. fold a. field. lra.
  - destruct (Z.eqb_spec r y); [lia|]. unfold ind. rewrite !Z.abs_neq by lia.
    replace (- (y - r))%Z with (- (y - (r - 1)) + 1)%Z by lia. rewrite power. fold a. field. lra.
  - destruct (Z.eqb_spec u y) as [->|]; unfold ind.
    + rewrite Z.sub_diag. change (Z.abs 0) with 0%Z. replace (y - (y + 1))%Z with (- (1))%Z by lia.
      replace (y - (y - 1))%Z with 1%Z by lia. cbn [Z.abs Z.opp]. rewrite E. fold a.
      field. lra.
    + destruct (Z_lt_le_dec u y).
      * rewrite !Z.abs_eq by lia. replace (y - (u - 1))%Z with (y - (u + 1) + 1 + 1)%Z by lia.
        replace (y - u)%Z with (y - (u + 1) + 1)%Z by lia. rewrite !power. fold a. field. lra.
      * rewrite !Z.abs_neq by lia. replace (- (y - (u + 1)))%Z with (- (y - (u - 1)) + 1 + 1)%Z by
          lia.
        replace (- (y - u))%Z with (- (y - (u - 1)) + 1)%Z by lia. rewrite !power. fold a. field.
        lra.
Qed.

Lemma undo_step y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z ->
  undo s' (mu pl s y) u = ideal_step y u.
Proof.
  intros Y U. pose proof a_bounds as A. pose proof b_bounds as B.
  pose proof (undo_mu y u Y U) as M. unfold ideal_step, keep. unfold undo in M |- *.
  cbv zeta in M |- *. fold r a b in M |- *.
  destruct (Z.eqb_spec u 0) as [->|]; [|destruct (Z.eqb_spec u r) as [->|]]; cbn [orb];
  rewrite <- M;
    unfold keep_end, keep_inside; field; lra.
Qed.

(** The finer tier and a step make the coarser tier. *)
Theorem lemma_23 y x : (0 <= y <= r)%Z -> (0 <= x <= r)%Z ->
  sum (fun u => mu pl s' u x * ideal_step y u) (below (r + 1)) = mu pl s y x.
Proof.
  intros Y X. rewrite <- (undone (mu pl s y) x X). apply sum_ext. intros u U.
  apply in_below in U. now rewrite undo_step by lia.
Qed.

Lemma keep_range u : 0 <= keep u <= keep_end /\ keep_end < 1.
Proof.
  pose proof a_bounds as A. pose proof b_bounds as B. pose proof b_less as L.
  assert (E : 0 < keep_end < 1).
  { unfold keep_end. split; [apply Rdiv_lt_0_compat; nra|].
    apply (Rmult_lt_reg_r (a * (1 - b))); [nra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; nra. }
  split; [|lra]. unfold keep. destruct (_ || _)%Z; [lra|].
  assert (I : keep_inside = keep_end * ((1 - a) / (1 - b))) by (unfold keep_inside, keep_end;
  field; lra).
  assert (Q : 0 <= (1 - a) / (1 - b) <= 1).
  { split; [apply Rlt_le, Rdiv_lt_0_compat; lra|].
    apply (Rmult_le_reg_r (1 - b)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  rewrite I. nra.
Qed.

Lemma mu_stays_large u : (0 <= u <= r)%Z -> p_zero s <= mu pl s u u.
Proof.
  intros U. pose proof a_bounds as A. unfold mu, p_zero. cbv zeta. fold r a. rewrite !Z.sub_diag.
  assert (E : a_to s 0 = 1) by (unfold a_to; rewrite Rmult_0_r; apply exp_0).
  assert (I : 0 < / (1 + a)) by (apply Rinv_0_lt_compat; lra).
  destruct (Z.eqb_spec u r) as [->|]; [|destruct (Z.eqb_spec u 0) as [->|]];
    rewrite ?Z.sub_diag; change (Z.abs 0) with 0%Z; rewrite E; unfold Rdiv; nra.
Qed.
End Ideal.

(** * Steps *)

(** Is the draw in the floor's slot? *)
Definition in_slot (pl : plan) (tape : list Z) : bool :=
  (outcome pl (first pl) (firstn (own (first pl)) (tl tape)) (limb pl (hd 0%Z tape)) =? 0)%Z.

(** A plan, and the limits of the keep number, as limbs: for values inside the range and at an end.
  *)
Record step := Step { of_step : plan; inside : list Z; at_end : list Z }.
Definition limit (st : step) (u : Z) : list Z :=
  if ((u =? 0) || (u =? range (of_step st)))%Z then at_end st else inside st.
Definition step_words (st : step) : nat := words (of_step st) + length (inside st).

(** The step from the finer tier's value [u]. The keep number is compared as a threshold is, with
    nothing for the shared word. *)
Definition take (st : step) (tape : list Z) (u : Z) : Z :=
  let pl := of_step st in
  let own := firstn (words pl) tape in
  if negb (in_slot pl own) && less pl (skipn (words pl) tape) (limit st u ++ [0%Z]) 0
  then u else draw pl own u.

Definition step_prob (st : step) (y u : Z) : R :=
  mean (tapes (of_step st) (step_words st)) (fun t => ind (take st t u =? y)%Z).

Section Step.
Variables (pl : plan) (g : R).
Notation w := (limb_bits pl).
Hypothesis widths : (3 <= w < word_bits pl)%Z.
Hypothesis formed : Forall (well_formed pl) (first pl :: rest pl).
Hypothesis radix_pos : (1 <= radix pl)%Z.
Hypothesis slot_mass : IZR (nth 0 (values w (first pl)) 0%Z) = g * IZR (2 ^ bits w (first pl)).

Lemma W0 : (0 < w <= word_bits pl)%Z. Proof. lia. Qed.

(** The slot is independent of the words after those of digit 0. *)
Lemma slot_mean (phi : list Z -> R) :
  mean (tapes pl (words pl))
    (fun t => ind (in_slot pl t) * phi (skipn (own (first pl)) (tl t)))
  = g * mean (tapes pl (Nat.max (own_words (rest pl)) 1)) phi.
Proof.
  pose proof W0 as W. unfold words. cbn [plus]. rewrite mean_tapes_S by assumption.
  set (n := Nat.max (own_words (rest pl)) 1).
  rewrite <- (slot_chance pl g widths formed radix_pos slot_mass).
  rewrite <- (mean_limb pl W (chance pl (first pl) 0 1)).
  rewrite Rmult_comm, <- mean_scale. apply mean_ext. intros x _. cbn [hd tl]. unfold in_slot.
  cbn [hd tl].
  set (f := fun s t : list Z => ind (outcome pl (first pl) s (limb pl x) =? 0)%Z * phi t).
  transitivity (mean (tapes pl (own (first pl))) (fun s => mean (tapes pl n) (f s))).
  { rewrite <- (independent pl W). apply mean_ext. intros t _. reflexivity. }
  unfold f, chance. rewrite <- mean_scale. apply mean_ext. intros s _. rewrite mean_scale.
  rewrite Rmult_comm. f_equal. f_equal. unfold within.
  pose proof (outcome_range pl (first pl) s (limb pl x)).
  destruct (Z.eqb_spec (outcome pl (first pl) s (limb pl x)) 0) as [E|E].
  - now rewrite E.
  - symmetry. apply andb_false_iff. right. apply Z.ltb_ge. lia.
Qed.

Lemma slot_prob : mean (tapes pl (words pl)) (fun t => ind (in_slot pl t)) = g.
Proof.
  transitivity (g * mean (tapes pl (Nat.max (own_words (rest pl)) 1)) (fun _ => 1)).
  - rewrite <- slot_mean. apply mean_ext. intros t _. ring.
  - rewrite mean_const by (apply tapes_nonempty, W0). ring.
Qed.

Lemma slot_output x y :
  mean (tapes pl (words pl)) (fun t => ind (in_slot pl t) * ind (draw pl t x =? y)%Z) = g * nu pl y.
Proof.
  unfold nu. rewrite <- slot_mean. apply mean_ext. intros t _. unfold in_slot, draw, output.
  cbn zeta.
  destruct (outcome pl (first pl) _ _ =? 0)%Z; [reflexivity | unfold ind; ring].
Qed.

(** The keep number is uniform. *)
Lemma kept_chance L : Forall (fun t => 0 <= t < 2 ^ w)%Z L ->
  mean (tapes pl (length L)) (fun t => ind (less pl t (L ++ [0%Z]) 0))
  = IZR (value w L) / IZR (2 ^ (w * Z.of_nat (length L))).
Proof.
  intros F. pose proof W0 as W. pose proof (value_range pl W L F) as V.
  assert (P : (0 < 2 ^ w)%Z) by (apply pow2_pos; lia).
  assert (A : forall M, (value w (M ++ [0]) = 2 ^ w * value w M)%Z).
  { induction M as [|t M IH]; [simpl; lia|]. cbn [app value]. rewrite IH, app_length.
    cbn [length]. replace (w * Z.of_nat (length M + 1))%Z with (w + w * Z.of_nat (length M))%Z by
      lia.
    rewrite Z.pow_add_r by nia. ring. }
  rewrite (mean_ext _ (fun t => (fun k => ind (k <? value w L)%Z) (number pl t))).
  - rewrite (mean_number pl W (length L) (fun k => ind (k <? value w L)%Z)).
    apply mean_less; [apply pow2_pos; nia | lia].
  - intros t T. destruct (in_tapes pl (length L) t T) as [Len Ws]. cbn beta.
    rewrite (less_value pl W) ; [|rewrite app_length, Len; cbn; lia|assumption| |lia].
    + f_equal. rewrite A, Z.add_0_r.
      destruct (Z.ltb_spec (number pl t) (value w L)), (Z.ltb_spec (2 ^ w * number pl t) (2 ^ w *
        value w L));
        try reflexivity; nia.
    + apply Forall_app. split; [assumption|]. constructor; [lia | constructor].
Qed.

Lemma step_law L1 L2 y u : Forall (fun t => 0 <= t < 2 ^ w)%Z (limit (Step pl L1 L2) u) ->
  length L1 = length L2 ->
  let k := IZR (value w (limit (Step pl L1 L2) u)) / IZR (2 ^ (w * Z.of_nat (length L1))) in
  step_prob (Step pl L1 L2) y u
  = g * nu pl y + k * (1 - g) * ind (u =? y)%Z + (1 - k) * (prob pl y u - g * nu pl y).
Proof.
  intros F Len. cbn zeta. pose proof W0 as W. set (st := Step pl L1 L2) in *.
  assert (LL : length (limit st u) = length L1) by (unfold limit; cbn; destruct (_ || _)%Z; auto).
  rewrite <- LL, <- (kept_chance _ F), LL.
  set (k := mean (tapes pl (length L1)) (fun t => ind (less pl t (limit st u ++ [0%Z]) 0))).
  unfold step_prob, step_words. cbn [of_step inside st].
  set (f := fun s t => ind (in_slot pl s) * ind (draw pl s u =? y)%Z
    + (1 - ind (in_slot pl s)) * ind (draw pl s u =? y)%Z
    + (1 - ind (in_slot pl s)) * (ind (u =? y)%Z - ind (draw pl s u =? y)%Z)
      * ind (less pl t (limit st u ++ [0%Z]) 0)).
  transitivity (mean (tapes pl (words pl)) (fun s => mean (tapes pl (length L1)) (f s))).
  { rewrite <- (independent pl W). apply mean_ext. intros t _. unfold f, take. cbn [of_step st].
    destruct (in_slot pl (firstn (words pl) t)), (less pl (skipn (words pl) t) _ 0);
      unfold ind; cbn [negb andb];
      destruct (u =? y)%Z, (draw pl (firstn (words pl) t) u =? y)%Z; ring. }
  unfold prob. cbn zeta. rewrite mean_filter. rewrite <- (slot_output u y).
  rewrite (mean_ext _ (fun s => ind (in_slot pl s) * ind (draw pl s u =? y)%Z
    + ((1 - k) * (ind (draw pl s u =? y)%Z - ind (in_slot pl s) * ind (draw pl s u =? y)%Z)
       + (k * ind (u =? y)%Z) * (1 - ind (in_slot pl s))))).
  - rewrite mean_plus, mean_plus, !mean_scale, !mean_sub, slot_prob, mean_const
      by (apply tapes_nonempty, W0). ring.
  - intros s _. unfold f. rewrite mean_plus, mean_const by (apply tapes_nonempty, W0).
    rewrite mean_scale. fold k. ring.
Qed.
End Step.

Lemma step_law_of st g y u : let pl := of_step st in let w := limb_bits pl in
  (3 <= w < word_bits pl)%Z -> Forall (well_formed pl) (first pl :: rest pl) -> (1 <= radix pl)%Z ->
  IZR (nth 0 (values w (first pl)) 0%Z) = g * IZR (2 ^ bits w (first pl)) ->
  Forall (fun t => 0 <= t < 2 ^ w)%Z (limit st u) -> length (inside st) = length (at_end st) ->
  let k := IZR (value w (limit st u)) * / IZR (2 ^ (w * Z.of_nat (length (inside st)))) in
  step_prob st y u
  = g * nu pl y + k * (1 - g) * ind (u =? y)%Z + (1 - k) * (prob pl y u - g * nu pl y).
Proof. destruct st as [p L1 L2]. cbn zeta. cbn [of_step inside at_end]. intros.
now apply step_law. Qed.

(** * Chains of tiers, and their hypotheses *)

(** The outputs of the steps after the value [u], finer ones first. *)
Fixpoint run (sts : list step) (tape : list Z) (u : Z) : list Z :=
  match sts with
  | [] => []
  | st :: sts =>
      let y := take st (firstn (step_words st) tape) u in
      y :: run sts (skipn (step_words st) tape) y
  end.

Fixpoint run_words (sts : list step) : nat :=
  match sts with [] => 0 | st :: sts => step_words st + run_words sts end.

(** All tiers of a count, an offset in the range: the finest is a draw by [pl]. *)
Definition tiers (pl : plan) (sts : list step) (tape : list Z) (x : Z) : list Z :=
  let y := draw pl (firstn (words pl) tape) x in y :: run sts (skipn (words pl) tape) y.

(** The share of tapes whose tiers, but for the [i] finest ones, are in the set [s]. *)
Definition tiers_prob (pl : plan) (sts : list step) (i : nat) (s : list Z -> bool) (x : Z) : R :=
  let all := tapes pl (words pl + run_words sts) in
  INR (length (filter (fun tape => s (skipn i (tiers pl sts tape x))) all)) / INR (length all).

Record tier := Tier {
  by_step : step;  (** of the finest tier, only the plan counts *)
  rate : R;
  sampled : R;
  mass : R;  (** of the floor *)
  error : R;  (** delta *)
  inverses : list R;
  keep_error : R  (** kappa; 0 for the finest tier *) }.
Definition its_plan (t : tier) : plan := of_step (by_step t).

Definition half_tangent (rate : R) : R := (exp rate - 1) / (exp rate + 1).

(** Conditions (a) and (b), with the smallest rate [least]. *)
Record planned (least : R) (t : tier) : Prop := {
  has_certificate : certified (its_plan t) (rate t) (sampled t) (mass t) (error t) (inverses t);
  not_less : least <= rate t;
  floor_pays :
    units (its_plan t) / IZR (2 ^ bits (limb_bits (its_plan t)) (top (its_plan t)))
    <= mass t / IZR (2 ^ value_bits (its_plan t)) * half_tangent least }.

(** Condition (d), and the error of a step from the tier [f] to [t]. *)
Definition one_unit (t : tier) : R :=
  / IZR (2 ^ (limb_bits (its_plan t) * Z.of_nat (length (inside (by_step t))))).
Definition limit_of (t : tier) (limbs : list Z) : R := IZR (value (limb_bits (its_plan t)) limbs) *
  one_unit t.
Definition in_limbs (t : tier) (limbs : list Z) : Prop :=
  Forall (fun limb => 0 <= limb < 2 ^ limb_bits (its_plan t))%Z limbs.
Record steps_from (f t : tier) : Prop := {
  same_words : word_bits (its_plan t) = word_bits (its_plan f);
  same_range : range (its_plan t) = range (its_plan f);
  slower : sampled t < sampled f;
  inside_limbs : in_limbs t (inside (by_step t));
  end_limbs : in_limbs t (at_end (by_step t));
  same_length : length (inside (by_step t)) = length (at_end (by_step t));
  inside_near :
    Rabs (limit_of t (inside (by_step t)) - keep_inside (sampled t) (sampled f)) <= one_unit t;
  end_near : Rabs (limit_of t (at_end (by_step t)) - keep_end (sampled t) (sampled f)) <= one_unit
    t;
  keep_error_moves : one_unit t <= keep_error t * (1 - keep_end (sampled t) (sampled f));
  keep_error_stays : one_unit t <= keep_error t * p_zero (sampled t);
  keep_error_small : keep_error t <= 1 / 4 }.

(** Condition (c), with the errors of all finer tiers. *)
Fixpoint paid (errors : R) (ts : list tier) : Prop :=
  match ts with
  | [] => True
  | t :: ts =>
      let errors := errors + error t + keep_error t in
      3 * errors <= rate t - sampled t /\ paid errors ts
  end.

Fixpoint linked (f : tier) (ts : list tier) : Prop :=
  match ts with [] => True | t :: ts => steps_from f t /\ linked t ts end.

Record certified_tiers (least : R) (f : tier) (ts : list tier) : Prop := {
  least_positive : 0 < least;
  all_planned : Forall (planned least) (f :: ts);
  all_linked : linked f ts;
  finest_kept : keep_error f = 0;
  all_paid : paid 0 (f :: ts) }.

(** * The law of a chain *)

Lemma tapes_same p q n : word_bits p = word_bits q -> tapes p n = tapes q n.
Proof. intros E. induction n as [|n IH]; cbn [tapes]; [reflexivity|]. now rewrite IH, E. Qed.

Lemma mu_same p q s y x : range p = range q -> mu p s y x = mu q s y x.
Proof. intros E. unfold mu. now rewrite E. Qed.

Lemma sum_swap {A B} (f : A -> B -> R) l m :
  sum (fun x => sum (f x) m) l = sum (fun y => sum (fun x => f x y) l) m.
Proof.
  induction l as [|x l IH].
  - transitivity (sum (fun _ : B => 0) m); [|reflexivity]. rewrite sum_const. unfold sum. cbn. ring.
  - change (sum (fun x => sum (f x) m) (x :: l)) with (sum (f x) m + sum (fun x => sum (f x) m) l).
    rewrite IH, <- sum_plus. apply sum_ext. intros y _. reflexivity.
Qed.

Lemma below_sum_ind n o : (0 <= o < n)%Z -> forall f,
  sum (fun y => ind (o =? y)%Z * f y) (below n) = f o.
Proof.
  intros O f. replace n with (Z.of_nat (Z.to_nat n)) by lia.
  assert (M : (o < Z.of_nat (Z.to_nat n))%Z) by lia. revert M.
  induction (Z.to_nat n) as [|m IH]; intros M; [lia|].
  rewrite below_snoc, sum_app. unfold sum at 2. cbn [fold_right]. rewrite Rplus_0_r.
  destruct (Z.eqb_spec o (Z.of_nat m)) as [->|N].
  - rewrite (sum_ext _ (fun _ => 0)).
    + rewrite sum_const. unfold ind. ring.
    + intros y Y. apply in_below in Y. destruct (Z.eqb_spec (Z.of_nat m) y); [lia|]. unfold ind;
      ring.
  - rewrite IH by lia. unfold ind. ring.
Qed.

Lemma draw_range pl t x : (0 < word_bits pl)%Z -> (0 <= value_bits pl)%Z -> (0 <= range pl)%Z ->
  (0 <= x <= range pl)%Z -> (0 <= draw pl t x <= range pl)%Z.
Proof.
  intros W V O X. unfold draw, output. cbn zeta.
  match goal with |- context [Z.min (?f mod _) _] =>
    pose proof (Z.mod_pos_bound f (2 ^ value_bits pl) ltac:(apply pow2_pos; lia)) end.
  match goal with |- context [Z.min ?n (range pl - x)] => assert (0 <= n)%Z;
    [|set (noise := n) in *] end.
  { assert (0 < 2 ^ word_bits pl)%Z by (apply pow2_pos; lia).
    destruct (rest pl); [apply Z.mod_pos_bound; lia|].
    destruct (_ <? _)%Z; [apply Z.mod_pos_bound|]; lia. }
  clearbody noise. destruct (_ =? 0)%Z; [lia|]. destruct (_ && _); lia.
Qed.

Section Chain.
Variables (least : R) (r : Z).
Let tau := half_tangent least.
Hypothesis least_pos : 0 < least.

Lemma tau_range : 0 < tau < 1.
Proof.
  unfold tau, half_tangent. assert (1 < exp least) by (rewrite <- exp_0; now apply exp_increasing).
  split; [apply Rdiv_lt_0_compat; lra|].
  apply (Rmult_lt_reg_r (exp least + 1)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** The mean of a function of the outputs of the steps after [u]. *)
Definition after (pl : plan) (sts : list step) (phi : list Z -> R) (u : Z) : R :=
  mean (tapes pl (run_words sts)) (fun t => phi (run sts t u)).

Definition outs := below (r + 1).

Definition law := Z -> Z -> R.
Definition weighed (q : law) (c : Z -> R) (x : Z) : R := sum (fun y => q y x * c y) outs.

(** A law, for counts and outputs in the range: the target times up to [low] and [high], and a part
    that does not depend on the count. *)
Record bounded (s : R) (low high : R) (pl : plan) (q : law) (N : R) (F : Z -> R) : Prop := {
  no_less : forall y x, (0 <= y <= r)%Z -> (0 <= x <= r)%Z ->
    low * N * mu pl s y x + (1 - tau) * F y <= q y x;
  no_more : forall y x, (0 <= y <= r)%Z -> (0 <= x <= r)%Z ->
    q y x <= high * N * mu pl s y x + (1 + tau) * F y;
  whole : forall x, (0 <= x <= r)%Z -> sum (fun y => q y x) outs = 1;
  not_negative : forall y x, (0 <= x <= r)%Z -> 0 <= q y x;
  main_ge0 : 0 <= N;
  rest_ge0 : forall y, (0 <= y <= r)%Z -> 0 <= F y }.

(** Such a law is private, whatever is made of its output. *)
Lemma bounded_private s low high pl q N F e (c : Z -> R) x x' :
  bounded s low high pl q N F -> range pl = r -> (1 <= r)%Z -> 0 < s -> 0 < low ->
  high * exp s <= low * exp e -> least <= e -> s <= e -> (forall y, 0 <= c y) ->
  (0 <= x <= r)%Z -> (0 <= x' <= r)%Z ->
  weighed q c x <= exp (e * IZR (Z.abs (x - x'))) * weighed q c x'.
Proof.
  intros B Rg R1 S0 L0 HL Le Se C X X'. pose proof tau_range as T.
  destruct (Z.eq_dec x x') as [->|Ne].
  { rewrite Z.sub_diag, Rmult_0_r, exp_0. lra. }
  unfold weighed. rewrite <- sum_scale. apply sum_le. intros y Y. apply in_below in Y.
  set (D := Z.abs (x - x')). assert (D1 : 1 <= IZR D) by (apply (IZR_le 1); unfold D; lia).
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply C|].
  pose proof (no_more _ _ _ _ _ _ _ B y x ltac:(lia) X) as U.
  pose proof (no_less _ _ _ _ _ _ _ B y x' ltac:(lia) X') as L.
  pose proof (rest_ge0 _ _ _ _ _ _ _ B y ltac:(lia)) as F0.
  pose proof (main_ge0 _ _ _ _ _ _ _ B) as N0.
  destruct (mu_private pl s S0 y x x' ltac:(rewrite Rg; lia) ltac:(rewrite Rg; lia)
    ltac:(rewrite Rg; lia)) as [M0 M].
  destruct (mu_private pl s S0 y x' x ltac:(rewrite Rg; lia) ltac:(rewrite Rg; lia)
    ltac:(rewrite Rg; lia)) as [M0' _].
  fold D in M. set (m := mu pl s y x) in *. set (m' := mu pl s y x') in *.
  assert (Es : exp (s * IZR D) = exp s * exp (s * (IZR D - 1))) by (rewrite <- exp_plus; f_equal;
  ring).
  assert (Ee : exp (e * IZR D) = exp e * exp (e * (IZR D - 1))) by (rewrite <- exp_plus; f_equal;
  ring).
  pose proof (exp_pos s) as Ps. pose proof (exp_pos e) as Pe.
  pose proof (exp_pos (s * (IZR D - 1))) as Ps1. pose proof (exp_pos (e * (IZR D - 1))) as Pe1.
  assert (Mono : exp (s * (IZR D - 1)) <= exp (e * (IZR D - 1))).
  { assert (Q : s * (IZR D - 1) <= e * (IZR D - 1)) by (apply Rmult_le_compat_r; lra).
    destruct (Rle_lt_or_eq_dec _ _ Q) as [Q'|Q']; [left; now apply exp_increasing | rewrite Q';
    lra]. }
  assert (One : 1 <= exp (e * (IZR D - 1))).
  { apply Rle_trans with (1 + e * (IZR D - 1)); [|apply exp_ineq1_le].
    assert (0 <= e * (IZR D - 1)) by (apply Rmult_le_pos; lra). lra. }
  assert (H1 : high * exp (s * IZR D) <= low * exp (e * IZR D)).
  { rewrite Es, Ee. apply Rle_trans with (low * exp e * exp (s * (IZR D - 1))).
    - rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra.
    - rewrite <- Rmult_assoc. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | assumption]. }
  assert (Main : high * N * m <= exp (e * IZR D) * (low * N * m')).
  { destruct (Rle_dec 0 high) as [H0|H0].
    - apply Rle_trans with (high * N * (exp (s * IZR D) * m')).
      + apply Rmult_le_compat_l; [now apply Rmult_le_pos | assumption].
      + replace (high * N * (exp (s * IZR D) * m')) with (high * exp (s * IZR D) * (N * m')) by
          ring.
        replace (exp (e * IZR D) * (low * N * m')) with (low * exp (e * IZR D) * (N * m')) by ring.
        apply Rmult_le_compat_r; [now apply Rmult_le_pos | assumption].
    - assert (high * (N * m) <= 0) by (assert (0 <= N * m) by (now apply Rmult_le_pos); nra).
      assert (0 <= exp (e * IZR D) * (low * N * m')).
      { apply Rmult_le_pos; [apply Rlt_le, exp_pos|]. apply Rmult_le_pos; [nra | assumption]. }
      lra. }
  assert (Floor : (1 + tau) * F y <= exp (e * IZR D) * ((1 - tau) * F y)).
  { assert (Ex : exp least <= exp (e * IZR D)).
    { assert (Q : least <= e * IZR D) by nra.
      destruct (Rle_lt_or_eq_dec _ _ Q) as [Q'|Q']; [left; now apply exp_increasing | rewrite Q';
      lra]. }
    assert (Eq : (1 + tau) = exp least * (1 - tau)).
    { unfold tau, half_tangent. pose proof (exp_pos least). field. lra. }
    rewrite Eq. rewrite !Rmult_assoc. apply Rmult_le_compat_r; [nra | assumption]. }
  apply Rle_trans with (exp (e * IZR D) * (low * N * m' + (1 - tau) * F y)); [lra|].
  apply Rmult_le_compat_l; [apply Rlt_le, exp_pos | lra].
Qed.

(** ** One step *)

Section Steps.
Variables (f t : tier).
Let pl := its_plan t.
Let s := sampled t.
Let s' := sampled f.
Let g := mass t.
Let d := error t.
Let k := keep_error t.
Hypothesis P : planned least t.
Hypothesis L : steps_from f t.
Hypothesis f_positive : range (its_plan f) = r.
Let C := has_certificate _ _ P.

Lemma t_range : range pl = r. Proof. unfold pl. rewrite (same_range _ _ L). assumption. Qed.
Lemma t_r : (1 <= r)%Z.
Proof. rewrite <- t_range. pose proof (outputs _ _ _ _ _ _ C) as O. apply O. Qed.
Lemma t_w : (3 <= limb_bits pl < word_bits pl)%Z. Proof. apply (widths _ _ _ _ _ _ C). Qed.
Lemma t_s : 0 < s. Proof. apply (sampled_positive _ _ _ _ _ _ C). Qed.
Lemma t_w' : (0 < limb_bits pl <= word_bits pl)%Z. Proof. pose proof t_w. lia. Qed.
Lemma t_radix : (1 <= radix pl)%Z. Proof. apply (several_values _ _ _ _ _ _ C). Qed.
Lemma t_formed : Forall (well_formed pl) (first pl :: rest pl).
Proof. apply (digits_formed _ _ _ _ _ _ C). Qed.
Lemma t_slot : IZR (nth 0 (values (limb_bits pl) (first pl)) 0%Z)
  = g * IZR (2 ^ bits (limb_bits pl) (first pl)).
Proof. apply (Statement.slot _ _ _ _ _ _ C). Qed.
Lemma t_g : 0 <= g <= 1.
Proof. exact (g_range pl (rate t) s g d (inverses t) C t_w t_w' t_radix t_formed). Qed.
Lemma t_d : 0 <= d. Proof. exact (dlt_ge0 pl (rate t) s g d (inverses t) C t_w). Qed.
Lemma t_one : 0 < one_unit t.
Proof.
  unfold one_unit. apply Rinv_0_lt_compat, (IZR_lt 0), pow2_pos. pose proof t_w. fold pl. nia.
Qed.
Lemma t_slower : s < s'. Proof. apply (slower _ _ L). Qed.
Lemma t_p_zero : 0 < p_zero s.
Proof.
  pose proof (a_bounds pl s t_s). unfold p_zero. apply Rdiv_lt_0_compat; lra.
Qed.
Lemma t_k : 0 <= k <= 1 / 4.
Proof.
  pose proof (keep_error_stays _ _ L) as S. pose proof t_one. pose proof t_p_zero as Z0.
  fold k s in S. split; [|apply (keep_error_small _ _ L)].
  destruct (Rle_dec 0 k); [assumption|]. exfalso.
  assert (k * p_zero s <= 0) by nra. lra.
Qed.

(** The sampled keep probability. *)
Definition kept (u : Z) : R := limit_of t (limit (by_step t) u).

Lemma kept_near u : Rabs (kept u - keep pl s s' u) <= one_unit t.
Proof.
  unfold kept, limit, keep. fold pl. destruct (_ || _)%Z.
  - apply (end_near _ _ L).
  - apply (inside_near _ _ L).
Qed.

Lemma limit_limbs u : in_limbs t (limit (by_step t) u).
Proof. unfold limit. destruct (_ || _)%Z; [apply (end_limbs _ _ L) | apply (inside_limbs _ _ L)].
Qed.

Lemma limit_length u : length (limit (by_step t) u) = length (inside (by_step t)).
Proof. unfold limit. destruct (_ || _)%Z; [symmetry; apply (same_length _ _ L) | reflexivity]. Qed.

Lemma kept_range u : 0 <= kept u <= 1.
Proof.
  pose proof (value_range pl t_w' _ (limit_limbs u)) as V. rewrite limit_length in V.
  unfold kept, limit_of, one_unit. fold pl.
  set (v := value (limb_bits pl) (limit (by_step t) u)) in *.
  set (n := (2 ^ (limb_bits pl * Z.of_nat (length (inside (by_step t)))))%Z) in *.
  assert (N : 0 < IZR n) by (apply (IZR_lt 0); lia).
  assert (0 <= IZR v <= IZR n) by (split; apply IZR_le; lia).
  assert (0 < / IZR n) by now apply Rinv_0_lt_compat.
  assert (IZR n * / IZR n = 1) by (apply Rinv_r; lra). split; nra.
Qed.

Definition ideal (y u : Z) : R := ideal_step pl s s' y u.
Definition share (y u : Z) : R := kept u * ind (u =? y)%Z + (1 - kept u) * mu pl s y u.

Lemma keep_facts u : 0 <= keep pl s s' u <= keep_end s s' /\ keep_end s s' < 1.
Proof. apply keep_range; [apply t_s | apply t_slower]. Qed.

Lemma mu_pos y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z -> 0 <= mu pl s y u.
Proof. intros Y U. apply mu_ge0; [apply t_s | rewrite t_range; lia | rewrite t_range; lia]. Qed.

Lemma mu_same_le_1 u : mu pl s u u <= 1.
Proof.
  pose proof (a_bounds pl s t_s) as A. unfold mu. cbv zeta. rewrite !Z.sub_diag.
  assert (E : a_to s 0 = 1) by (unfold a_to; rewrite Rmult_0_r; apply exp_0).
  assert (I : 0 < / (1 + a_to s 1) <= 1).
  { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  destruct (Z.eqb_spec u (range pl)) as [->|]; [|destruct (Z.eqb_spec u 0) as [->|]];
    rewrite ?Z.sub_diag; change (Z.abs 0) with 0%Z; rewrite E; unfold Rdiv; nra.
Qed.

Lemma T_ge0 y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z -> 0 <= ideal y u.
Proof.
  intros Y U. pose proof (keep_facts u). pose proof (mu_pos y u Y U).
  unfold ideal, ideal_step. unfold ind. destruct (u =? y)%Z; nra.
Qed.

(** The keep probabilities are off by a part of the step. *)
Lemma share_near y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z -> Rabs (share y u - ideal y u) <= k *
  ideal y u.
Proof.
  intros Y U. pose proof (keep_facts u) as [K K1]. pose proof (mu_pos y u Y U) as M.
  pose proof (kept_near u) as Nr. pose proof t_k as Kk. pose proof t_one as One.
  unfold share, ideal, ideal_step. set (c := keep pl s s' u) in *. set (q := kept u) in *.
  destruct (Z.eqb_spec u y) as [->|N]; unfold ind.
  - pose proof (mu_same_le_1 y) as M1.
    assert (Mz : p_zero s <= mu pl s y y) by (apply mu_stays_large; [apply t_s | rewrite t_range;
    lia]).
    pose proof (keep_error_stays _ _ L) as St. fold k s in St. set (m := mu pl s y y) in *.
    replace (q * 1 + (1 - q) * m - (c * 1 + (1 - c) * m)) with ((1 - m) * (q - c)) by ring.
    rewrite Rabs_mult, (Rabs_right (1 - m)) by lra.
    apply Rle_trans with (one_unit t).
    + pose proof (Rabs_pos (q - c)). nra.
    + apply Rle_trans with (k * p_zero s); [assumption|]. apply Rmult_le_compat_l; [lra|]. nra.
  - pose proof (keep_error_moves _ _ L) as Mv. fold k s s' in Mv. set (m := mu pl s y u) in *.
    replace (q * 0 + (1 - q) * m - (c * 0 + (1 - c) * m)) with (- m * (q - c)) by ring.
    rewrite Rabs_mult, Rabs_Ropp, (Rabs_right m) by lra.
    apply Rle_trans with (m * one_unit t); [apply Rmult_le_compat_l; assumption|].
    apply Rle_trans with (m * (k * (1 - keep_end s s'))); [apply Rmult_le_compat_l; assumption|].
    replace (k * (c * 0 + (1 - c) * m)) with (m * (k * (1 - c))) by ring.
    apply Rmult_le_compat_l; [assumption|]. apply Rmult_le_compat_l; lra.
Qed.

(** The main part of a step: all but the floor and the absolute error. *)
Definition near_target (y u : Z) : R :=
  let M := (1 - g) * mu pl s y u in
  Rmax ((1 - d) * M) (Rmin (prob pl y u - g * nu pl y) ((1 + d) * M)).
Definition main (y u : Z) : R := kept u * (1 - g) * ind (u =? y)%Z + (1 - kept u) * near_target y u.

Lemma near_bounds y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z ->
  (1 - d) * ((1 - g) * mu pl s y u) <= near_target y u <= (1 + d) * ((1 - g) * mu pl s y u)
  /\ Rabs (prob pl y u - g * nu pl y - near_target y u) <= g * nu pl y * tau.
Proof.
  intros Y U. pose proof t_d as D. pose proof t_g as G. pose proof (mu_pos y u Y U) as M.
  pose proof (lemma_3 pl (rate t) s g d (inverses t) C t_w t_w' t_s t_radix t_formed u y
    ltac:(rewrite t_range; lia) ltac:(rewrite t_range; lia)) as E.
  pose proof (floor_pays _ _ P) as Fl. fold pl g tau in Fl. unfold Rdiv in Fl at 1.
  pose proof (nu_large pl t_w y (value_width _ _ _ _ _ _ C) (outputs _ _ _ _ _ _ C)
    ltac:(rewrite t_range; lia)) as Nu.
  pose proof (tau_range) as Ta.
  assert (B : units pl * / IZR (2 ^ bits (limb_bits pl) (top pl)) <= g * nu pl y * tau).
  { eapply Rle_trans; [exact Fl|]. apply Rmult_le_compat_r; [lra|]. unfold Rdiv.
    apply Rmult_le_compat_l; lra. }
  assert (E0 : 0 <= g * nu pl y * tau).
  { assert (0 < / IZR (2 ^ value_bits pl)).
    { apply Rinv_0_lt_compat, (IZR_lt 0), pow2_pos. pose proof (value_width _ _ _ _ _ _ C) as V.
      fold pl in V. lia. }
    apply Rmult_le_pos; [apply Rmult_le_pos|]; lra. }
  unfold near_target. cbv zeta. set (m := (1 - g) * mu pl s y u) in *.
  assert (M0 : 0 <= m) by (apply Rmult_le_pos; lra).
  assert (DM : 0 <= d * m) by now apply Rmult_le_pos.
  pose proof (Rle_abs (prob pl y u - g * nu pl y - m)) as E1.
  pose proof (Rle_abs (- (prob pl y u - g * nu pl y - m))) as E2. rewrite Rabs_Ropp in E2.
  set (p := prob pl y u - g * nu pl y) in *. set (eta := g * nu pl y * tau) in *.
  unfold Rmax, Rmin. destruct (Rle_dec p ((1 + d) * m)) as [A1|A1];
    [destruct (Rle_dec ((1 - d) * m) p) as [A2|A2]
    |destruct (Rle_dec ((1 - d) * m) ((1 + d) * m)) as [A2|A2]];
    repeat match goal with H : ~ (_ <= _) |- _ => apply Rnot_le_lt in H end;
    (split; [split; lra | apply Rabs_le; split; lra]).
Qed.

Lemma main_bounds y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z ->
  0 <= main y u
  /\ (1 - k) * (1 - d) * (1 - g) * ideal y u <= main y u <= (1 + k) * (1 + d) * (1 - g) * ideal y u.
Proof.
  intros Y U. pose proof (near_bounds y u Y U) as [[N1 N2] _]. pose proof (kept_range u) as Q.
  pose proof t_d as D. pose proof t_g as G. pose proof t_k as K. pose proof (T_ge0 y u Y U) as T0.
  pose proof (share_near y u Y U) as S. pose proof (delta_small _ _ _ _ _ _ C) as Ds. fold d in Ds.
  pose proof (Rle_abs (share y u - ideal y u)) as S1.
  pose proof (Rle_abs (- (share y u - ideal y u))) as S2. rewrite Rabs_Ropp in S2.
  pose proof (mu_pos y u Y U) as M.
  set (i := ind (u =? y)%Z).
  assert (I : 0 <= i <= 1) by (unfold i, ind; destruct (u =? y)%Z; lra).
  assert (Up : main y u <= (1 + d) * (1 - g) * share y u).
  { unfold main, share. fold i.
    assert (A1 : (1 - kept u) * near_target y u <= (1 - kept u) * ((1 + d) * ((1 - g) * mu pl s y
      u)))
      by (apply Rmult_le_compat_l; lra).
    assert (A2 : 0 <= d * (kept u * (1 - g) * i)).
    { apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; lra. }
    lra. }
  assert (Lo : (1 - d) * (1 - g) * share y u <= main y u).
  { unfold main, share. fold i.
    assert (A1 : (1 - kept u) * ((1 - d) * ((1 - g) * mu pl s y u)) <= (1 - kept u) * near_target y
      u)
      by (apply Rmult_le_compat_l; lra).
    assert (A2 : 0 <= d * (kept u * (1 - g) * i)).
    { apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; lra. }
    lra. }
  assert (L1 : (1 - k) * (1 - d) * (1 - g) * ideal y u <= main y u).
  { eapply Rle_trans; [|exact Lo].
    replace ((1 - k) * (1 - d) * (1 - g) * ideal y u) with ((1 - d) * (1 - g) * ((1 - k) * ideal y
      u)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra]. }
  split; [|split; [exact L1|]].
  - eapply Rle_trans; [|exact L1]. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; [|lra].
    apply Rmult_le_pos; lra.
  - eapply Rle_trans; [exact Up|].
    replace ((1 + k) * (1 + d) * (1 - g) * ideal y u) with ((1 + d) * (1 - g) * ((1 + k) * ideal y
      u)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra].
Qed.

Definition stepped (y u : Z) : R := step_prob (by_step t) y u.

Lemma S_law y u : stepped y u = g * nu pl y + kept u * (1 - g) * ind (u =? y)%Z
  + (1 - kept u) * (prob pl y u - g * nu pl y).
Proof.
  exact (step_law_of (by_step t) g y u t_w t_formed t_radix t_slot (limit_limbs u)
    (same_length _ _ L)).
Qed.

Lemma floor_part y u : (0 <= y <= r)%Z -> (0 <= u <= r)%Z ->
  (1 - tau) * (g * nu pl y) <= stepped y u - main y u <= (1 + tau) * (g * nu pl y).
Proof.
  intros Y U. pose proof (near_bounds y u Y U) as [_ N]. pose proof (kept_range u) as Q.
  rewrite S_law. unfold main.
  pose proof (Rle_abs (prob pl y u - g * nu pl y - near_target y u)) as E1.
  pose proof (Rle_abs (- (prob pl y u - g * nu pl y - near_target y u))) as E2.
  rewrite Rabs_Ropp in E2. set (e := prob pl y u - g * nu pl y - near_target y u) in *.
  set (n := g * nu pl y) in *. pose proof (Rabs_pos e) as E0.
  replace (n + kept u * (1 - g) * ind (u =? y)%Z + (1 - kept u) * (prob pl y u - n)
      - (kept u * (1 - g) * ind (u =? y)%Z + (1 - kept u) * near_target y u))
    with (n + (1 - kept u) * e) by (unfold e; ring).
  assert (- (n * tau) <= (1 - kept u) * e <= n * tau) by (split; nra). lra.
Qed.

Lemma nu_ge0 y : 0 <= nu pl y.
Proof.
  unfold nu. apply mean_ge0; [apply tapes_nonempty, t_w'|]. intros x _. unfold ind.
  destruct (_ =? _)%Z; lra.
Qed.

Lemma S_ge0 y u : 0 <= stepped y u.
Proof.
  unfold stepped, step_prob. apply mean_ge0; [apply tapes_nonempty, t_w'|]. intros x _. unfold ind.
  destruct (_ =? _)%Z; lra.
Qed.

Lemma take_range x u : (0 <= u <= r)%Z -> (0 <= take (by_step t) x u <= r)%Z.
Proof.
  intros U. unfold take. fold (its_plan t). fold pl. destruct (_ && _); [assumption|].
  rewrite <- t_range. pose proof t_w. pose proof (value_width _ _ _ _ _ _ C) as V. fold pl in V.
  pose proof t_r as R. rewrite <- t_range in R, U. apply draw_range; lia.
Qed.

Lemma S_whole u : (0 <= u <= r)%Z -> sum (fun y => stepped y u) outs = 1.
Proof.
  intros U. unfold stepped, step_prob. fold (its_plan t). fold pl. rewrite <- mean_sum.
  rewrite (mean_ext _ (fun _ => 1)); [apply mean_const, tapes_nonempty, t_w'|].
  intros x _. rewrite <- (below_sum_ind (r + 1) (take (by_step t) x u)
    ltac:(pose proof (take_range x u U); lia) (fun _ => 1)).
  apply sum_ext. intros y _. ring.
Qed.

(** The next coarser tier is bounded too. *)
Definition next (q : law) : law := fun y x => sum (fun u => q u x * stepped y u) outs.

Lemma mu_of_f y x : mu (its_plan f) s' y x = mu pl s' y x.
Proof. apply mu_same. rewrite f_positive. symmetry. apply t_range. Qed.

Lemma target_sum y x : (0 <= y <= r)%Z -> (0 <= x <= r)%Z ->
  sum (fun u => mu (its_plan f) s' u x * ideal y u) outs = mu pl s y x.
Proof.
  intros Y X. rewrite (sum_ext _ (fun u => mu pl s' u x * ideal_step pl s s' y u)).
  - unfold outs. rewrite <- t_range. apply lemma_23; [apply t_s | apply t_slower | | |];
      rewrite t_range; try assumption. apply t_r.
  - intros u _. now rewrite mu_of_f.
Qed.

Lemma compose low high q N F : bounded s' low high (its_plan f) q N F -> 0 < low -> 0 <= high ->
  bounded s (low * ((1 - k) * (1 - d))) (high * ((1 + k) * (1 + d))) pl (next q) (N * (1 - g))
    (fun y => sum (fun u => F u * main y u) outs + g * nu pl y).
Proof.
  intros B L0 H0. pose proof t_g as G. pose proof t_d as D. pose proof t_k as K.
  pose proof (delta_small _ _ _ _ _ _ C) as Ds. fold d in Ds. pose proof tau_range as Ta.
  pose proof (main_ge0 _ _ _ _ _ _ _ B) as N0.
  assert (Inr : forall u, In u outs -> (0 <= u <= r)%Z) by (intros u U; apply in_below in U; lia).
  assert (Split : forall y x, next q y x
    = sum (fun u => q u x * main y u) outs + sum (fun u => q u x * (stepped y u - main y u)) outs).
  { intros y x. unfold next. rewrite <- sum_plus. apply sum_ext. intros u _. ring. }
  assert (Floor : forall c x, (0 <= x <= r)%Z -> sum (fun u => q u x * c) outs = c).
  { intros c x X. rewrite (sum_ext _ (fun u => c * q u x)) by (intros; ring).
    rewrite sum_scale, (whole _ _ _ _ _ _ _ B x X). ring. }
  constructor.
  - intros y x Y X. rewrite Split.
    assert (A : low * N * ((1 - k) * (1 - d) * (1 - g)) * mu pl s y x
        + (1 - tau) * sum (fun u => F u * main y u) outs <= sum (fun u => q u x * main y u) outs).
    { rewrite <- (target_sum y x Y X), <- !sum_scale, <- sum_plus. apply sum_le. intros u U.
      apply Inr in U. pose proof (main_bounds y u Y U) as (M0 & M1 & _).
      pose proof (no_less _ _ _ _ _ _ _ B u x U X) as Q.
      assert (Mu : 0 <= mu (its_plan f) s' u x).
      { apply mu_ge0; [pose proof t_s; pose proof t_slower; lra | rewrite f_positive; lia
          | rewrite f_positive; lia]. }
      assert (Q1 : (low * N * mu (its_plan f) s' u x + (1 - tau) * F u) * main y u <= q u x * main
        y u)
        by now apply Rmult_le_compat_r.
      assert (Q2 : low * N * mu (its_plan f) s' u x * ((1 - k) * (1 - d) * (1 - g) * ideal y u)
          <= low * N * mu (its_plan f) s' u x * main y u).
      { apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; [|assumption].
        apply Rmult_le_pos; lra. }
      lra. }
    assert (E : (1 - tau) * (g * nu pl y)
        <= sum (fun u => q u x * (stepped y u - main y u)) outs).
    { rewrite <- (Floor ((1 - tau) * (g * nu pl y)) x X). apply sum_le. intros u U. apply Inr in U.
      apply Rmult_le_compat_l; [apply (not_negative _ _ _ _ _ _ _ B); assumption|].
      apply floor_part; assumption. }
    lra.
  - intros y x Y X. rewrite Split.
    assert (A : sum (fun u => q u x * main y u) outs
        <= high * N * ((1 + k) * (1 + d) * (1 - g)) * mu pl s y x
          + (1 + tau) * sum (fun u => F u * main y u) outs).
    { rewrite <- (target_sum y x Y X), <- !sum_scale, <- sum_plus. apply sum_le. intros u U.
      apply Inr in U. pose proof (main_bounds y u Y U) as (M0 & _ & M1).
      pose proof (no_more _ _ _ _ _ _ _ B u x U X) as Q.
      assert (Mu : 0 <= mu (its_plan f) s' u x).
      { apply mu_ge0; [pose proof t_s; pose proof t_slower; lra | rewrite f_positive; lia
          | rewrite f_positive; lia]. }
      assert (Q1 : q u x * main y u <= (high * N * mu (its_plan f) s' u x + (1 + tau) * F u) * main
        y u)
        by now apply Rmult_le_compat_r.
      assert (Q2 : high * N * mu (its_plan f) s' u x * main y u
          <= high * N * mu (its_plan f) s' u x * ((1 + k) * (1 + d) * (1 - g) * ideal y u)).
      { apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; [|assumption].
        apply Rmult_le_pos; lra. }
      lra. }
    assert (E : sum (fun u => q u x * (stepped y u - main y u)) outs
        <= (1 + tau) * (g * nu pl y)).
    { rewrite <- (Floor ((1 + tau) * (g * nu pl y)) x X). apply sum_le. intros u U. apply Inr in U.
      apply Rmult_le_compat_l; [apply (not_negative _ _ _ _ _ _ _ B); assumption|].
      apply floor_part; assumption. }
    lra.
  - intros x X. unfold next. rewrite sum_swap.
    rewrite (sum_ext _ (fun u => q u x)); [apply (whole _ _ _ _ _ _ _ B x X)|].
    intros u U. apply Inr in U. rewrite sum_scale, S_whole by assumption. ring.
  - intros y x X. unfold next.
    apply Rle_trans with (sum (fun _ : Z => 0) outs).
    + rewrite sum_const. lra.
    + apply sum_le. intros u _. apply Rmult_le_pos;
        [apply (not_negative _ _ _ _ _ _ _ B); assumption | apply S_ge0].
  - apply Rmult_le_pos; lra.
  - intros y Y. assert (Z0 : 0 <= sum (fun u => F u * main y u) outs).
    { apply Rle_trans with (sum (fun _ : Z => 0) outs).
      - rewrite sum_const. lra.
      - apply sum_le. intros u U. apply Inr in U. apply Rmult_le_pos;
          [apply (rest_ge0 _ _ _ _ _ _ _ B); assumption | apply main_bounds; assumption]. }
    pose proof (nu_ge0 y). assert (0 <= g * nu pl y) by (apply Rmult_le_pos; lra). lra.
Qed.

(** The tiers after a step: by the step's output. *)
Lemma after_step p sts phi u : word_bits p = word_bits pl -> (0 <= u <= r)%Z ->
  after p (by_step t :: sts) phi u
  = sum (fun y => stepped y u * after p sts (fun l => phi (y :: l)) y) outs.
Proof.
  intros Wp U. unfold after. cbn [run run_words].
  rewrite !(tapes_same p pl _ Wp).
  set (n := step_words (by_step t)). set (m := run_words sts).
  set (h := fun a b : list Z => let y := take (by_step t) a u in phi (y :: run sts b y)).
  transitivity (mean (tapes pl n) (fun a => mean (tapes pl m) (h a))).
  { rewrite <- (independent pl t_w'). apply mean_ext. intros x _. reflexivity. }
  set (e := fun y => mean (tapes pl m) (fun b => phi (y :: run sts b y))).
  rewrite (mean_ext _ (fun a => sum (fun y => ind (take (by_step t) a u =? y)%Z * e y) outs)).
  - rewrite mean_sum. apply sum_ext. intros y _. unfold stepped, step_prob.
    fold (its_plan t). fold pl n. fold m. fold (e y).
    rewrite (mean_ext _ (fun a => e y * ind (take (by_step t) a u =? y)%Z)) by (intros; ring).
    rewrite mean_scale. ring.
  - intros a _. unfold outs. rewrite below_sum_ind; [reflexivity|].
    pose proof (take_range a u U). lia.
Qed.
End Steps.

(** ** The finest tier *)

Lemma finest f : planned least f -> range (its_plan f) = r ->
  bounded (sampled f) (1 - error f) (1 + error f) (its_plan f) (prob (its_plan f)) (1 - mass f)
    (fun y => mass f * nu (its_plan f) y).
Proof.
  intros P Rg. set (pl := its_plan f). pose proof (has_certificate _ _ P) as C. fold pl in C.
  pose proof (widths _ _ _ _ _ _ C) as W. pose proof (sampled_positive _ _ _ _ _ _ C) as S0.
  pose proof (outputs _ _ _ _ _ _ C) as O. pose proof (value_width _ _ _ _ _ _ C) as V.
  pose proof (several_values _ _ _ _ _ _ C) as Ra. pose proof (digits_formed _ _ _ _ _ _ C) as Fo.
  assert (W' : (0 < limb_bits pl <= word_bits pl)%Z) by lia.
  pose proof (g_range pl _ _ _ _ _ C W W' Ra Fo) as G.
  pose proof (floor_pays _ _ P) as Fl. fold pl tau in Fl. unfold Rdiv in Fl at 1.
  pose proof tau_range as Ta.
  assert (Rp : range pl = r) by exact Rg. rewrite Rp in O.
  assert (Nu0 : forall y, 0 <= nu pl y).
  { intros y. unfold nu. apply mean_ge0; [now apply tapes_nonempty|]. intros t _. unfold ind.
    destruct (_ =? _)%Z; lra. }
  assert (B : forall y, (0 <= y <= r)%Z ->
    units pl * / IZR (2 ^ bits (limb_bits pl) (top pl)) <= tau * (mass f * nu pl y)).
  { intros y Y. pose proof (nu_large pl W y V ltac:(rewrite Rp; lia) ltac:(rewrite Rp; lia)) as Nu.
    eapply Rle_trans; [exact Fl|]. rewrite (Rmult_comm tau). apply Rmult_le_compat_r; [lra|].
    unfold Rdiv. apply Rmult_le_compat_l; lra. }
  assert (E : forall y x, (0 <= y <= r)%Z -> (0 <= x <= r)%Z ->
    Rabs (prob pl y x - mass f * nu pl y - (1 - mass f) * mu pl (sampled f) y x)
    <= error f * ((1 - mass f) * mu pl (sampled f) y x)
      + units pl * / IZR (2 ^ bits (limb_bits pl) (top pl))).
  { intros y x Y X.
    exact (lemma_3 pl _ _ _ _ _ C W W' S0 Ra Fo x y ltac:(rewrite Rp; lia) ltac:(rewrite Rp;
    lia)). }
  constructor.
  - intros y x Y X. pose proof (E y x Y X). pose proof (B y Y).
    pose proof (Rle_abs (- (prob pl y x - mass f * nu pl y - (1 - mass f) * mu pl (sampled f) y
      x))) as A.
    rewrite Rabs_Ropp in A. lra.
  - intros y x Y X. pose proof (E y x Y X). pose proof (B y Y).
    pose proof (Rle_abs (prob pl y x - mass f * nu pl y - (1 - mass f) * mu pl (sampled f) y x)).
    lra.
  - intros x X. unfold prob. cbn zeta.
    rewrite (sum_ext _ (fun y => mean (tapes pl (words pl)) (fun t => ind (draw pl t x =? y)%Z)))
      by (intros y _; apply mean_filter).
    rewrite <- mean_sum. rewrite (mean_ext _ (fun _ => 1)); [apply mean_const;
    now apply tapes_nonempty|].
    intros t _. pose proof (draw_range pl t x ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia)) as D.
    rewrite <- (below_sum_ind (r + 1) (draw pl t x) ltac:(lia) (fun _ => 1)).
    apply sum_ext. intros y _. ring.
  - intros y x X. unfold prob. cbn zeta. rewrite mean_filter. apply mean_ge0;
    [now apply tapes_nonempty|].
    intros t _. unfold ind. destruct (_ =? _)%Z; lra.
  - lra.
  - intros y Y. apply Rmult_le_pos; [lra | apply Nu0].
Qed.

(** ** All tiers *)

Lemma ratio d : 0 <= d <= 1 / 4 -> 1 + d <= (1 - d) * exp (3 * d).
Proof.
  intros D. pose proof (exp_ineq1_le (3 * d)).
  apply Rle_trans with ((1 - d) * (1 + 3 * d)); [nra|]. apply Rmult_le_compat_l; lra.
Qed.

Lemma after_same p q sts phi u : word_bits p = word_bits q -> after p sts phi u = after q sts phi u.
Proof. intros E. unfold after. now rewrite (tapes_same p q _ E). Qed.

Lemma after_ge0 p sts phi u : (0 < limb_bits p <= word_bits p)%Z -> (forall l, 0 <= phi l) ->
  0 <= after p sts phi u.
Proof. intros W Ph. unfold after. apply mean_ge0; [now apply tapes_nonempty | intros; apply Ph].
Qed.

Lemma chain ts : forall f q low high N F errors phi i x x',
  (i <= length ts)%nat -> planned least f -> Forall (planned least) ts -> linked f ts ->
  range (its_plan f) = r -> (1 <= r)%Z ->
  bounded (sampled f) low high (its_plan f) q N F -> 0 < low -> 0 <= high -> 0 <= errors ->
  high <= low * exp (3 * errors) -> 3 * errors <= rate f - sampled f -> paid errors ts ->
  (forall l, 0 <= phi l) -> (0 <= x <= r)%Z -> (0 <= x' <= r)%Z ->
  let c := fun y => after (its_plan f) (map by_step ts) (fun l => phi (skipn i (y :: l))) y in
  weighed q c x <= exp (nth i (map rate (f :: ts)) 0 * IZR (Z.abs (x - x'))) * weighed q c x'.
Proof.
  induction ts as [|t ts IH]; intros f q low high N F errors phi i x x'
    I P Ps Lk Rg R1 B L0 H0 E0 HL Pd Pds Ph X X' c;
    pose proof (has_certificate _ _ P) as C; pose proof (widths _ _ _ _ _ _ C) as W;
    pose proof (sampled_positive _ _ _ _ _ _ C) as S0;
    (destruct i as [|i]; [
      cbn [map nth]; apply (bounded_private (sampled f) low high (its_plan f) q N F);
      try assumption;
      [ | apply (not_less _ _ P) | lra
      | intros y; apply after_ge0; [lia | intros; apply Ph]];
      apply Rle_trans with (low * exp (3 * errors) * exp (sampled f));
      [ apply Rmult_le_compat_r; [apply Rlt_le, exp_pos | assumption]
      | rewrite Rmult_assoc; apply Rmult_le_compat_l; [lra|]; rewrite <- exp_plus;
        destruct (Rle_lt_or_eq_dec (3 * errors + sampled f) (rate f)) as [Lt|Eq];
        [lra | left; now apply exp_increasing | rewrite Eq; lra]] |]).
  - simpl in I. lia.
  - destruct Lk as [Lk Lks]. inversion Ps as [|? ? Pt Pts]; subst. destruct Pds as [Pt1 Pts1].
    pose proof (same_words _ _ Lk) as Sw. pose proof (same_range _ _ Lk) as Sr.
    set (c' := fun y => after (its_plan t) (map by_step ts) (fun l => phi (skipn i (y :: l))) y).
    assert (Same : forall z, (0 <= z <= r)%Z -> weighed q c z = weighed (next t q) c' z).
    { intros z Zr. unfold weighed at 2. unfold next.
      rewrite (sum_ext _ (fun y => sum (fun u => q u z * stepped t y u * c' y) outs)).
      2: { intros y _. rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros u _. ring. }
      rewrite sum_swap. unfold weighed. apply sum_ext. intros u U.
      assert (Ur : (0 <= u <= r)%Z) by (apply in_below in U; lia).
      unfold c. cbn [map skipn].
      rewrite (after_step f t Pt Lk Rg (its_plan f) (map by_step ts)
        (fun l => phi (skipn i l)) u (eq_sym Sw) Ur).
      rewrite <- sum_scale. apply sum_ext. intros y _. unfold c'.
      rewrite (after_same (its_plan f) (its_plan t)) by (symmetry; exact Sw). ring. }
    rewrite !Same by assumption.
    change (nth (S i) (map rate (f :: t :: ts)) 0) with (nth i (map rate (t :: ts)) 0).
    pose proof (t_k f t Pt Lk) as K. pose proof (t_d t Pt) as D.
    pose proof (delta_small _ _ _ _ _ _ (has_certificate _ _ Pt)) as Ds.
    pose proof (compose f t Pt Lk Rg low high q N F B L0 H0) as B'.
    assert (K1 : 0 < (1 - keep_error t) * (1 - error t)) by (apply Rmult_lt_0_compat; lra).
    refine (IH t (next t q) _ _ _ _ (errors + error t + keep_error t) phi i x x' _ Pt Pts Lks _ R1
      B'
      _ _ _ _ Pt1 Pts1 Ph X X').
    + simpl in I. lia.
    + now rewrite Sr.
    + apply Rmult_lt_0_compat; lra.
    + apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; lra.
    + lra.
    + replace (3 * (errors + error t + keep_error t))
        with (3 * errors + (3 * keep_error t + 3 * error t)) by ring.
      rewrite !exp_plus. pose proof (ratio (keep_error t) K).
      pose proof (ratio (error t) ltac:(lra)).
      replace (low * ((1 - keep_error t) * (1 - error t))
          * (exp (3 * errors) * (exp (3 * keep_error t) * exp (3 * error t))))
        with (low * exp (3 * errors) * (((1 - keep_error t) * exp (3 * keep_error t))
          * ((1 - error t) * exp (3 * error t)))) by ring.
      apply Rmult_le_compat; [assumption | apply Rmult_le_pos; lra | assumption |].
      apply Rmult_le_compat; lra.
Qed.
End Chain.

(** * Theorem 24 *)

(** The [i]-th finest tier, together with all coarser ones, loses its rate. *)
Definition tiers_private : Prop := forall least f ts, certified_tiers least f ts ->
  forall i s x x', (i <= length ts)%nat ->
  (0 <= x <= range (its_plan f))%Z -> (0 <= x' <= range (its_plan f))%Z ->
  tiers_prob (its_plan f) (map by_step ts) i s x
  <= exp (nth i (map rate (f :: ts)) 0 * IZR (Z.abs (x - x')))
    * tiers_prob (its_plan f) (map by_step ts) i s x'.

Lemma tiers_weighed pl sts i s x : (0 < limb_bits pl <= word_bits pl)%Z -> (0 <= value_bits pl)%Z ->
  (0 <= range pl)%Z -> (0 <= x <= range pl)%Z ->
  tiers_prob pl sts i s x
  = weighed (range pl) (prob pl) (fun y => after pl sts (fun l => ind (s (skipn i (y :: l)))) y) x.
Proof.
  intros W V R0 X. unfold tiers_prob. cbn zeta. rewrite mean_filter.
  set (h := fun a b : list Z => let y := draw pl a x in ind (s (skipn i (y :: run sts b y)))).
  transitivity (mean (tapes pl (words pl)) (fun a => mean (tapes pl (run_words sts)) (h a))).
  { rewrite <- (independent pl W). apply mean_ext. intros t _. reflexivity. }
  unfold weighed, outs. set (e := fun y => after pl sts (fun l => ind (s (skipn i (y :: l)))) y).
  rewrite (mean_ext _ (fun a => sum (fun y => ind (draw pl a x =? y)%Z * e y) (below (range pl +
    1)))).
  - rewrite mean_sum. apply sum_ext. intros y _. unfold prob. cbn zeta. rewrite mean_filter.
    rewrite (mean_ext _ (fun a => e y * ind (draw pl a x =? y)%Z)) by (intros; ring).
    rewrite mean_scale. unfold e. ring.
  - intros a _. rewrite below_sum_ind; [reflexivity|].
    pose proof (draw_range pl a x ltac:(lia) V R0 X). lia.
Qed.

Theorem tiers_are_private : tiers_private.
Proof.
  intros least f ts [Lp All Lk Kf Pd] i s x x' I X X'.
  inversion All as [|? ? P Ps]; subst. destruct Pd as [Pf Pds].
  pose proof (has_certificate _ _ P) as C. pose proof (widths _ _ _ _ _ _ C) as W.
  pose proof (outputs _ _ _ _ _ _ C) as O. pose proof (value_width _ _ _ _ _ _ C) as V.
  pose proof (dlt_ge0 _ _ _ _ _ _ C W) as D. pose proof (delta_small _ _ _ _ _ _ C) as Ds.
  assert (W' : (0 < limb_bits (its_plan f) <= word_bits (its_plan f))%Z) by lia.
  rewrite Kf in Pf, Pds. rewrite !Rplus_0_l, !Rplus_0_r in Pf, Pds.
  rewrite !tiers_weighed by (assumption || lia).
  apply (chain least (range (its_plan f)) Lp ts f _ (1 - error f) (1 + error f) (1 - mass f)
    (fun y => mass f * nu (its_plan f) y) (error f) (fun l => ind (s l)) i x x' I P Ps Lk eq_refl);
    try assumption; try lra; try lia.
  - exact (finest least _ Lp f P eq_refl).
  - now apply ratio.
  - intros l. unfold ind. destruct (s l); lra.
Qed.
