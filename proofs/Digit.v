(** One digit: the probability of an interval of outcomes, given the shared word's number [v]. *)
From Geomdp Require Export Tape Product.
Open Scope Z_scope.

(** Among ascending numbers, [u] reaches the [i]th if and only if it reaches at least [i]. *)
Lemma reached_sorted (u : Z) (l : list Z) (i : nat) : StronglySorted Z.le l ->
  (i < length l)%nat ->
  Nat.leb (S i) (length (filter (fun t => negb (u <? t)) l)) = (nth i l 0 <=? u).
Proof.
  intros Sl. revert i. induction Sl as [|t l Sl IH F]; intros i L; [simpl in L; lia|].
  simpl filter. destruct (Z.ltb_spec u t); simpl negb; cbn iota.
  - assert (N : filter (fun t => negb (u <? t)) l = []).
    { clear -F H. induction F as [|t' l T F IH]; [reflexivity|]. simpl.
      destruct (Z.ltb_spec u t'); [apply IH | lia]. }
    rewrite N. change (Nat.leb (S i) (length [])) with false.
    destruct i as [|i]; simpl nth.
    + destruct (Z.leb_spec t u); [lia | reflexivity].
    + assert (t <= nth i l 0).
      { rewrite Forall_forall in F. apply F, nth_In. simpl in L. lia. }
      destruct (Z.leb_spec (nth i l 0) u); [lia | reflexivity].
  - destruct i as [|i]; simpl nth.
    + destruct (Z.leb_spec t u); [reflexivity | lia].
    + rewrite <- IH by (simpl in L; lia). reflexivity.
Qed.

Section Digit.
Variable pl : plan.
Let b := word_bits pl.
Let w := limb_bits pl.
Hypothesis widths : 0 < w <= b.
Variable d : digit.
Hypothesis formed : well_formed pl d.

(** The cut below outcome [i], of [bits w d] bits. *)
Definition cut (i : Z) : Z :=
  if i <=? 0 then 0
  else if count d <? i then 2 ^ bits w d
  else nth (Z.to_nat (i - 1)) (values w d) 0.

Let M := 2 ^ (w * Z.of_nat (own d)).
Let V := 2 ^ w.

Lemma M_pos : 0 < M. Proof. apply pow2_pos. nia. Qed.
Lemma V_pos : 0 < V. Proof. apply pow2_pos. nia. Qed.
Lemma bits_eq : 2 ^ bits w d = V * M.
Proof. unfold V, M, bits. rewrite <- Z.pow_add_r by nia. f_equal. lia. Qed.

Lemma values_length : length (values w d) = length (thresholds d).
Proof. apply map_length. Qed.

Lemma threshold_range i : (i < length (thresholds d))%nat -> 0 <= nth i (values w d) 0 < V * M.
Proof.
  intros I. rewrite <- bits_eq. destruct formed as (F & _ & _). unfold values.
  rewrite (nth_indep _ 0 (value w [])), map_nth by (rewrite map_length; assumption).
  rewrite Forall_forall in F. destruct (F (nth i (thresholds d) [])) as [L T]; [now apply nth_In|].
  pose proof (value_range pl widths _ T) as R. fold w in R. rewrite L in R.
  unfold bits. replace (w * (Z.of_nat (own d) + 1)) with (w * Z.of_nat (S (own d))) by lia. exact R.
Qed.

Lemma cut_range i : 0 <= cut i <= V * M.
Proof.
  pose proof M_pos. pose proof V_pos. unfold cut. rewrite bits_eq.
  destruct (Z.leb_spec i 0); [nia|]. destruct (Z.ltb_spec (count d) i); [nia|].
  unfold count in *. pose proof (threshold_range (Z.to_nat (i - 1))). lia.
Qed.

Lemma cut_le i j : i <= j -> cut i <= cut j.
Proof.
  intros I. unfold cut at 1. destruct (Z.leb_spec i 0); [apply cut_range|].
  destruct (Z.ltb_spec (count d) i).
  - unfold cut. destruct (Z.leb_spec j 0); [lia|]. destruct (Z.ltb_spec (count d) j); lia.
  - destruct (Z.eq_dec i j) as [->|N].
    { unfold cut. destruct (Z.leb_spec j 0); [lia|]. destruct (Z.ltb_spec (count d) j); lia. }
    unfold count in *. pose proof (threshold_range (Z.to_nat (i - 1)) ltac:(lia)).
    unfold cut. rewrite bits_eq. destruct (Z.leb_spec j 0); [lia|].
    destruct (Z.ltb_spec (count d) j); [lia|]. unfold count in *.
    destruct formed as (_ & S & _). fold w in S.
    assert (G : forall l i j, StronglySorted Z.le l -> (i < j < length l)%nat ->
                  nth i l 0 <= nth j l 0).
    { clear. intros l i j S. revert i j.
      induction S as [|t l S IH F]; intros i j L; [simpl in L; lia|].
      destruct j as [|j]; [lia|]. destruct i as [|i]; simpl in *.
      - rewrite Forall_forall in F. apply F, nth_In. lia.
      - apply IH. lia. }
    apply G; [assumption|]. rewrite values_length. lia.
Qed.

Lemma outcome_range words v : 0 <= outcome pl d words v <= count d.
Proof.
  unfold outcome, count. split; [lia|]. apply Nat2Z.inj_le.
  assert (G : forall (f : list Z -> bool) l, (length (filter f l) <= length l)%nat).
  { intros f l. induction l as [|x l IH]; simpl; [lia|]. destruct (f x); simpl; lia. }
  apply G.
Qed.

Lemma outcome_reached words v i : length words = own d -> Forall (is_word pl) words ->
  0 <= v < V -> 0 <= i <= count d + 1 ->
  (i <=? outcome pl d words v) = (cut i <=? V * number pl words + v).
Proof.
  intros L W Hv I. pose proof (number_range pl widths words W) as N. fold w in N.
  rewrite L in N. fold M in N. pose proof V_pos. pose proof (outcome_range words v) as O.
  unfold cut. destruct (Z.leb_spec i 0).
  { replace i with 0 by lia. symmetry. rewrite (proj2 (Z.leb_le 0 _)) by nia.
    symmetry. apply Z.leb_le. lia. }
  destruct (Z.ltb_spec (count d) i).
  { rewrite (proj2 (Z.leb_gt _ _)) by lia. symmetry. rewrite bits_eq. apply Z.leb_gt. nia. }
  unfold outcome. destruct formed as (F & Sd & _).
  assert (E : length (filter (fun t => negb (less pl words t v)) (thresholds d))
              = length (filter (fun t => negb (V * number pl words + v <? t)) (values w d))).
  { unfold values. clear -F L W Hv widths. induction F as [|t ts [T1 T2] F IH]; [reflexivity|].
    simpl. rewrite (less_value pl widths words t v) by (rewrite ?L; assumption).
    fold w V. destruct (_ <? _); simpl; rewrite ?IH; reflexivity. }
  rewrite E, <- (reached_sorted _ (values w d) (Z.to_nat (i - 1))).
  - replace (S (Z.to_nat (i - 1))) with (Z.to_nat i) by lia.
    match goal with |- (_ <=? Z.of_nat ?n) = _ => generalize n end. intros n.
    destruct (Z.leb_spec i (Z.of_nat n)), (Nat.leb_spec (Z.to_nat i) n); lia.
  - exact Sd.
  - rewrite values_length. unfold count in *. lia.
Qed.

Open Scope R_scope.

Definition within (lo hi o : Z) : bool := ((lo <=? o) && (o <? hi))%Z.

(** The probability of outcomes [lo .. hi - 1], given [v]. *)
Definition chance (lo hi v : Z) : R :=
  mean (tapes pl (own d)) (fun t => ind (within lo hi (outcome pl d t v))).

Definition share (i v : Z) : R := IZR (cut i / V) + ind (v <? cut i mod V)%Z.

Lemma mean_reached i v : (0 <= v < V)%Z -> (0 <= i <= count d + 1)%Z ->
  mean (tapes pl (own d)) (fun t => ind (i <=? outcome pl d t v)%Z) = 1 - share i v / IZR M.
Proof.
  intros Hv Hi. pose proof M_pos as HM. pose proof V_pos as HV. pose proof (cut_range i) as C.
  rewrite (mean_ext _ (fun t => ind (cut i <=? V * number pl t + v)%Z)).
  2: { intros t T. destruct (in_tapes pl _ t T) as [L W]. f_equal. now apply outcome_reached. }
  rewrite (mean_number pl widths (own d) (fun u => ind (cut i <=? V * u + v)%Z)). fold w M.
  set (t := (cut i / V + if v <? cut i mod V then 1 else 0)%Z).
  assert (T : share i v = IZR t).
  { unfold share, t. rewrite plus_IZR. f_equal. unfold ind. now destruct (v <? cut i mod V)%Z. }
  pose proof (Z.div_mod (cut i) V ltac:(lia)) as E.
  pose proof (Z.mod_pos_bound (cut i) V ltac:(lia)) as B.
  rewrite (mean_ext _ (fun u => 1 - ind (u <? t)%Z)).
  2: { intros u U. apply in_below in U. unfold ind.
    assert (D : (cut i <=? V * u + v)%Z = negb (u <? t)%Z).
    { unfold t. destruct (Z.ltb_spec v (cut i mod V));
      match goal with |- _ = negb (?a <? ?b)%Z => destruct (Z.ltb_spec a b) end;
      cbn [negb]; rewrite ?Z.leb_le, ?Z.leb_gt; nia. }
    rewrite D. destruct (u <? t)%Z; cbn [negb]; lra. }
  rewrite mean_sub, mean_const, mean_less, T.
  - reflexivity.
  - lia.
  - unfold t. destruct (Z.ltb_spec v (cut i mod V)); nia.
  - apply below_nonempty. lia.
Qed.

Lemma chance_share lo hi v : (0 <= v < V)%Z -> (0 <= lo <= hi)%Z -> (hi <= count d + 1)%Z ->
  chance lo hi v = (share hi v - share lo v) / IZR M.
Proof.
  intros Hv L H. unfold chance.
  rewrite (mean_ext _ (fun t => ind (lo <=? outcome pl d t v)%Z - ind (hi <=? outcome pl d t v)%Z)).
  - rewrite mean_sub, !mean_reached by lia. unfold Rdiv. ring.
  - intros t _. unfold within, ind.
    destruct (Z.leb_spec lo (outcome pl d t v)), (Z.leb_spec hi (outcome pl d t v)),
      (Z.ltb_spec (outcome pl d t v) hi); simpl; try lra; lia.
Qed.

Lemma mean_share i : mean (below V) (share i) = IZR (cut i) / IZR V.
Proof.
  pose proof V_pos as HV. pose proof (cut_range i).
  pose proof (Z.mod_pos_bound (cut i) V ltac:(lia)) as B.
  unfold share. rewrite mean_plus, mean_const, mean_less by (lia || apply below_nonempty; lia).
  rewrite (Z.div_mod (cut i) V) at 3 by lia. rewrite plus_IZR, mult_IZR.
  field. apply not_0_IZR. lia.
Qed.

Lemma mean_chance lo hi : (0 <= lo <= hi)%Z -> (hi <= count d + 1)%Z ->
  mean (below V) (chance lo hi) = IZR (cut hi - cut lo) / IZR (2 ^ bits w d).
Proof.
  intros L H. pose proof M_pos as HM. pose proof V_pos as HV.
  rewrite (mean_ext _ (fun v => / IZR M * (share hi v - share lo v))).
  - rewrite mean_scale, mean_sub, !mean_share, bits_eq, minus_IZR, mult_IZR.
    field. split; apply not_0_IZR; lia.
  - intros v Hv. apply in_below in Hv. rewrite chance_share by lia. unfold Rdiv. ring.
Qed.

Lemma chance_range lo hi v : 0 <= chance lo hi v <= 1.
Proof.
  pose proof (tapes_nonempty pl widths (own d)) as N. unfold chance. split.
  - apply mean_ge0; [assumption|]. intros. unfold ind. destruct (within _ _ _); lra.
  - rewrite <- (mean_const 1 (tapes pl (own d)) N). apply mean_le; [assumption|].
    intros. unfold ind. destruct (within _ _ _); lra.
Qed.

(** ** The digit as a factor of lemma 3 *)

Variable target : Z -> R.
(** Cuts are within one unit of their targets. *)
Hypothesis cuts_near : forall i, (0 <= i <= count d + 1)%Z ->
  Rabs (IZR (cut i) - target i * IZR (2 ^ bits w d)) <= 1.
Hypothesis wide : (3 <= w)%Z.

Definition event (lo hi : Z) : factor :=
  Factor (chance lo hi) (target hi - target lo) (if (lo =? hi)%Z then 0 else / IZR M).

Lemma event_good lo hi : (0 <= lo <= hi)%Z -> (hi <= count d + 1)%Z ->
  0 <= target hi - target lo <= 1 ->
  good (below V) (/ IZR V) (event lo hi).
Proof.
  intros L H P. pose proof M_pos as HM. pose proof V_pos as HV.
  assert (RM : 0 < IZR M) by (apply (IZR_lt 0); lia).
  assert (RV : 8 <= IZR V).
  { apply (IZR_le 8). unfold V. change 8%Z with (2 ^ 3)%Z. apply Z.pow_le_mono_r; lia. }
  assert (N : below V <> []) by (apply below_nonempty; lia).
  assert (IM : 0 < / IZR M) by now apply Rinv_0_lt_compat.
  assert (IV : 0 < / IZR V) by (apply Rinv_0_lt_compat; lra).
  destruct (Z.eqb_spec lo hi) as [->|NE].
  { assert (Q : forall v, In v (below V) -> eps (event hi hi) v = 0).
    { intros v Hv. apply in_below in Hv. unfold eps, event; simpl.
      rewrite chance_share by lia. unfold Rdiv. ring. }
    assert (SE : sigma (event hi hi) = 0) by (unfold event; simpl; now rewrite Z.eqb_refl).
    constructor; rewrite ?SE.
    - assumption.
    - intros; apply chance_range.
    - lra.
    - rewrite (mean_ext _ (fun _ => 0)), mean_const, Rabs_R0 by assumption. lra.
    - rewrite (mean_ext _ (fun _ => 0)), mean_const by
        (assumption || (intros v Hv; rewrite Q by assumption; ring)). lra.
    - intros v Hv. rewrite Q, Rabs_R0 by assumption. lra. }
  set (e := event lo hi). set (m := mean (below V) (chance lo hi)).
  assert (SE : sigma e = / IZR M).
  { unfold e, event; simpl. destruct (Z.eqb_spec lo hi); [contradiction | reflexivity]. }
  (* The mean is off by rounding. *)
  assert (B : Rabs (m - p e) <= 2 * / IZR V * / IZR M).
  { unfold m. rewrite mean_chance by lia. unfold e, event; simpl p.
    pose proof (cuts_near lo ltac:(lia)) as A1. pose proof (cuts_near hi ltac:(lia)) as A2.
    rewrite bits_eq, mult_IZR in *. set (T := IZR V * IZR M) in *.
    assert (HT : 0 < T) by (apply Rmult_lt_0_compat; lra).
    replace (IZR (cut hi - cut lo) / T - (target hi - target lo))
      with (/ T * ((IZR (cut hi) - target hi * T) - (IZR (cut lo) - target lo * T)))
      by (rewrite minus_IZR; field; lra).
    replace (2 * / IZR V * / IZR M) with (/ T * 2) by (unfold T; field; lra).
    rewrite Rabs_mult, (Rabs_pos_eq (/ T)) by (left; now apply Rinv_0_lt_compat).
    apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|].
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
  (* Given [v], it is off by the difference of two comparisons with [v], less its mean. *)
  set (D := fun v => ind (v <? cut hi mod V)%Z - ind (v <? cut lo mod V)%Z).
  set (mD := mean (below V) D).
  assert (X : forall v, In v (below V) -> chance lo hi v - m = / IZR M * (D v - mD)).
  { intros v Hv. unfold m, mD. rewrite (mean_ext (chance lo hi)
      (fun v => / IZR M * IZR (cut hi / V - cut lo / V) + / IZR M * D v)).
    - rewrite mean_plus, !mean_scale, mean_const by assumption. apply in_below in Hv.
      rewrite chance_share by lia. unfold share, D. rewrite minus_IZR. unfold Rdiv. ring.
    - intros u Hu. apply in_below in Hu. rewrite chance_share by lia. unfold share, D.
      rewrite minus_IZR. unfold Rdiv. ring. }
  assert (S : exists s, (s = 1 \/ s = -1) /\ forall v, D v = 0 \/ D v = s).
  { unfold D, ind. destruct (Z.le_ge_cases (cut lo mod V) (cut hi mod V)).
    - exists 1. split; [now left|]. intros v.
      destruct (Z.ltb_spec v (cut hi mod V)), (Z.ltb_spec v (cut lo mod V)); try lia;
        [left|right|left]; lra.
    - exists (-1). split; [now right|]. intros v.
      destruct (Z.ltb_spec v (cut hi mod V)), (Z.ltb_spec v (cut lo mod V)); try lia;
        [left|right|left]; lra. }
  destruct S as (s & Hs & HD).
  assert (MD : 0 <= s * mD <= 1).
  { unfold mD. rewrite <- mean_scale. split.
    - apply mean_ge0; [assumption|]. intros v _. destruct (HD v) as [->| ->], Hs; subst; lra.
    - rewrite <- (mean_const 1 (below V) N). apply mean_le; [assumption|].
      intros v _. destruct (HD v) as [->| ->], Hs; subst; lra. }
  assert (E1 : mean (below V) (eps e) = m - p e).
  { unfold eps, e, event; simpl. rewrite mean_sub, mean_const by assumption. reflexivity. }
  assert (E2 : mean (below V) (fun v => eps e v * eps e v)
               = / IZR M * / IZR M * (s * mD - mD * mD) + (m - p e) * (m - p e)).
  { rewrite (mean_ext _ (fun v => (/ IZR M * / IZR M * (s - 2 * mD) + 2 * / IZR M * (m - p e)) * D v
      + (/ IZR M * / IZR M * (mD * mD) - 2 * / IZR M * (m - p e) * mD + (m - p e) * (m - p e)))).
    - rewrite mean_plus, mean_scale, mean_const by assumption. fold mD. ring.
    - intros v Hv. replace (eps e v) with (/ IZR M * (D v - mD) + (m - p e))
        by (rewrite <- X by assumption; unfold eps, e, event; simpl; ring).
      assert (DD : D v * D v = s * D v) by (destruct (HD v) as [->| ->]; ring).
      replace ((/ IZR M * (D v - mD) + (m - p e)) * (/ IZR M * (D v - mD) + (m - p e)))
        with (/ IZR M * / IZR M * (D v * D v)
          + (2 * / IZR M * (m - p e) - 2 * / IZR M * / IZR M * mD) * D v
          + (/ IZR M * / IZR M * (mD * mD) - 2 * / IZR M * (m - p e) * mD
             + (m - p e) * (m - p e))) by ring.
      rewrite DD. ring. }
  assert (SQ : (m - p e) * (m - p e) <= (2 * / IZR V * / IZR M) * (2 * / IZR V * / IZR M)).
  { rewrite <- (Rabs_pos_eq ((m - p e) * (m - p e))) by apply Rle_0_sqr. rewrite Rabs_mult.
    apply Rmult_le_compat; auto using Rabs_pos. }
  constructor; rewrite ?SE.
  - exact P.
  - intros; apply chance_range.
  - lra.
  - rewrite E1. lra.
  - rewrite E2. assert (Q : s * mD - mD * mD <= 1 / 4).
    { assert (0 <= (mD - s / 2) * (mD - s / 2)) by apply Rle_0_sqr.
      destruct Hs; subst; nra. }
    assert (/ IZR M * / IZR M * (s * mD - mD * mD) <= / IZR M * / IZR M * (1 / 4)).
    { apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; lra. }
    nra.
  - intros v Hv. replace (eps e v) with (/ IZR M * (D v - mD) + (m - p e))
      by (rewrite <- X by assumption; unfold eps, e, event; simpl; ring).
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_pos_eq (/ IZR M)) by lra.
    assert (Rabs (D v - mD) <= 1).
    { apply Rabs_le. destruct (HD v) as [->| ->], Hs; subst; lra. }
    assert (/ IZR M * Rabs (D v - mD) <= / IZR M * 1) by (apply Rmult_le_compat_l; lra).
    lra.
Qed.
End Digit.
