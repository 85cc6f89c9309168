(** Lemma 3 and theorem 2, from the hypotheses of a certificate. *)
From Geomdp Require Export Distribution.
Open Scope R_scope.

Lemma IZR_pow_pos n : (0 <= n)%Z -> 0 < IZR (2 ^ n).
Proof. intros. apply (IZR_lt 0), pow2_pos. assumption. Qed.

Lemma IZR_pow_add m n : (0 <= m)%Z -> (0 <= n)%Z -> IZR (2 ^ (m + n)) = IZR (2 ^ m) * IZR (2 ^ n).
Proof. intros. rewrite Z.pow_add_r, mult_IZR by assumption. reflexivity. Qed.

Lemma last_in {A} (l : list A) z : In (last l z) (z :: l).
Proof.
  revert z. induction l as [|x [|y l] IH]; intros z; [now left | now right; left |].
  destruct (IH z) as [E|I]; [now left | now right; right].
Qed.

Section Error.
Variables (pl : plan) (rate sampled g dlt : R) (inverses : list R).
Hypothesis C : certified pl rate sampled g dlt inverses.
Notation w := (limb_bits pl).
Notation a_to := (a_to sampled).
Let V := (2 ^ w)%Z.
Let iota := / IZR V.
Let H := own (top pl).
Let K := bits w (top pl).
Let unit := / IZR (2 ^ K).
Let r0 := radix pl.
Let rs := radices pl.

(* These follow from [C]. *)
Hypothesis Cw : (3 <= w < word_bits pl)%Z.
Hypothesis W : (0 < w <= word_bits pl)%Z.
Hypothesis Cs : 0 < sampled.
Hypothesis Cr : (1 <= r0)%Z.
Hypothesis Cf : Forall (well_formed pl) (first pl :: rest pl).

Lemma first_formed : well_formed pl (first pl). Proof. now inversion Cf. Qed.
Lemma rest_formed : Forall (well_formed pl) (rest pl). Proof. now inversion Cf. Qed.

Lemma V_large : 8 <= IZR V.
Proof. apply (IZR_le 8). unfold V. change 8%Z with (2 ^ 3)%Z. apply Z.pow_le_mono_r; lia. Qed.

Lemma iota_range : 0 <= iota <= 1 / 8.
Proof.
  pose proof V_large. unfold iota. split; [left; apply Rinv_0_lt_compat; lra|].
  unfold Rdiv. rewrite Rmult_1_l. apply Rinv_le_contravar; lra.
Qed.

Lemma top_formed : well_formed pl (top pl).
Proof. pose proof Cf as F. rewrite Forall_forall in F. apply F, last_in. Qed.

Lemma H_pos : (1 <= H)%nat. Proof. unfold H. pose proof top_formed as (_ & _ & P). lia. Qed.

Lemma unit_pos : 0 < unit.
Proof. unfold unit. apply Rinv_0_lt_compat, IZR_pow_pos. unfold K, bits. nia. Qed.

(** [sigma] of a digit with [n] own words. *)
Definition sig (n : nat) : R := / IZR (2 ^ (w * Z.of_nat n)).

Lemma sig_pos n : 0 < sig n.
Proof. apply Rinv_0_lt_compat, IZR_pow_pos. nia. Qed.

Lemma sig_le m n : (m <= n)%nat -> sig n <= sig m.
Proof.
  intros L. apply Rinv_le_contravar; [apply IZR_pow_pos; nia|].
  apply IZR_le, Z.pow_le_mono_r; nia.
Qed.

Lemma sig_S n : sig (S n) = iota * sig n.
Proof.
  unfold sig, iota, V. rewrite <- Rinv_mult.
  rewrite <- IZR_pow_add by nia. do 3 f_equal. lia.
Qed.

Lemma unit_sig : unit = iota * sig H.
Proof. rewrite <- sig_S. unfold unit, K, bits, sig, H. do 3 f_equal. lia. Qed.

(** ** The layout *)

Lemma layout_facts B ds : (1 <= B)%Z -> layout pl sampled B ds ->
  let rs := map (fun d => count d + 1)%Z ds in
  positive rs
  /\ (forall os, in_radices rs os -> weigh ds os = B * mixed rs os)%Z
  /\ (ds <> [] -> (1 <= last_place rs)%Z
       /\ forall z, count (last ds z) * 2 ^ weight_bits (last ds z) = B * last_place rs
       /\ count (last ds z) = last rs 0 - 1)%Z.
Proof.
  intros HB L. revert B HB L. induction ds as [|d ds IH]; intros B HB L; cbn zeta.
  - repeat split; try congruence. constructor. intros os _. simpl. lia.
  - cbn [layout] in L. destruct L as ((S & N) & _ & L).
    specialize (IH (B * (count d + 1))%Z ltac:(nia) L). cbn zeta in IH.
    destruct IH as (P & WE & LA). cbn [map].
    set (rs' := map (fun d => count d + 1)%Z ds) in *. split; [|split].
    + constructor; [lia | exact P].
    + intros [|o os] I; [simpl in I; tauto|]. cbn [weigh mixed]. rewrite WE by apply I.
      rewrite S. ring.
    + intros _. destruct ds as [|d' ds].
      * cbn. split; [lia|]. intros _. rewrite S. split; ring.
      * specialize (LA ltac:(discriminate)). destruct LA as (L1 & LA).
        assert (E : last_place ((count d + 1)%Z :: rs') = ((count d + 1) * last_place rs')%Z)
          by reflexivity.
        rewrite E. split; [nia|]. intros z. specialize (LA z). destruct LA as (A1 & A2).
        change (last (d :: d' :: ds) z) with (last (d' :: ds) z). split; [rewrite A1; ring|].
        rewrite A2. reflexivity.
Qed.

Lemma LF : ltac:(let t := type of (layout_facts r0 (rest pl) Cr (rest_layout _ _ _ _ _ _ C)) in
  exact t).
Proof. apply (layout_facts r0 (rest pl) Cr (rest_layout _ _ _ _ _ _ C)). Qed.

Lemma rs_pos : positive rs. Proof. apply LF. Qed.

Lemma weigh_mixed os : in_radices rs os -> (weigh (rest pl) os = r0 * mixed rs os)%Z.
Proof. apply LF. Qed.

Lemma not_alone : alone pl = false -> rest pl <> [].
Proof. unfold alone. destruct (rest pl); congruence. Qed.

Lemma last_place_pos : alone pl = false -> (1 <= last_place rs)%Z.
Proof. intros A. apply LF, not_alone, A. Qed.

Lemma top_count : alone pl = false -> (count (top pl) = last rs 0 - 1)%Z.
Proof. intros A. apply LF, not_alone, A. Qed.

Let c := (if alone pl then r0 - 1 else r0 * last_place rs)%Z.

Lemma censored_eq : censored pl = c.
Proof.
  unfold censored, c. fold r0. destruct (alone pl) eqn:A; [reflexivity|].
  apply (proj2 (proj2 (proj2 LF) (not_alone A))).
Qed.

Lemma wrap_radix : wrap pl = if alone pl then (2 ^ word_bits pl)%Z else r0.
Proof.
  pose proof (rest_layout _ _ _ _ _ _ C) as L. unfold wrap, alone.
  destruct (rest pl) as [|d ds]; [reflexivity|]. cbn [layout] in L. apply L.
Qed.

Lemma fits_word : ((if alone pl then r0 + 1 else r0 * last_place rs) <= 2 ^ word_bits pl)%Z.
Proof.
  pose proof (no_overflow _ _ _ _ _ _ C) as N. rewrite censored_eq in N. unfold c in N.
  destruct (alone pl); [|exact N]. unfold r0, radix. lia.
Qed.

Lemma g_range : 0 <= g <= 1.
Proof.
  pose proof (slot _ _ _ _ _ _ C) as S. pose proof first_formed as F.
  assert (B : 0 < IZR (2 ^ bits w (first pl))) by (apply IZR_pow_pos; unfold bits; nia).
  unfold r0, radix, count in Cr.
  pose proof (threshold_range pl W (first pl) F 0 ltac:(lia)) as [T0 T1].
  rewrite <- (bits_eq pl W) in T1. apply IZR_le in T0. apply IZR_lt in T1.
  rewrite S in T0, T1. nra.
Qed.

(** ** Each digit is a good factor *)

Lemma cut_near d t B : well_formed pl d -> (1 <= B)%Z -> (1 <= count d)%Z ->
  near pl d (target sampled t B (count d + 1)) ->
  forall i, (0 <= i <= count d + 1)%Z ->
  Rabs (IZR (cut pl d i) - target sampled t B (count d + 1) i * IZR (2 ^ bits w d)) <= 1.
Proof.
  intros F HB HC N i I. unfold cut. destruct (Z.leb_spec i 0).
  - replace i with 0%Z by lia. rewrite target_0, Rmult_0_l, Rminus_0_r, Rabs_R0 by lia. lra.
  - destruct (Z.ltb_spec (count d) i); [|apply N; lia].
    replace i with (count d + 1)%Z by lia. rewrite target_last by (assumption || lia).
    rewrite Rmult_1_l, Rminus_diag_eq, Rabs_R0; [lra | reflexivity].
Qed.

Lemma cut_near_first i : (0 <= i <= count (first pl) + 1)%Z ->
  Rabs (IZR (cut pl (first pl) i) - target0 pl sampled g i * IZR (2 ^ bits w (first pl))) <= 1.
Proof.
  intros I. pose proof (count_first pl) as E. fold r0 in E. rewrite E in I.
  unfold cut, target0. fold r0. rewrite E. destruct (Z.leb_spec i 0).
  - rewrite Rmult_0_l, Rminus_0_r, Rabs_R0. lra.
  - destruct (Z.ltb_spec (r0 + 1) i).
    + rewrite Rmult_1_l, Rminus_diag_eq, Rabs_R0; [lra | reflexivity].
    + apply (first_near _ _ _ _ _ _ C). lia.
Qed.

Lemma target0_le i j : (0 <= i <= j)%Z -> (j <= r0 + 2)%Z ->
  0 <= target0 pl sampled g j - target0 pl sampled g i <= 1.
Proof.
  intros I J. pose proof g_range as G.
  assert (P : forall i, (1 <= i <= r0 + 1)%Z -> g <= target0 pl sampled g i <= 1).
  { intros k Hk. rewrite target0_at by assumption.
    pose proof (target_le sampled Cs (alone pl) 1 r0 0 (k - 1) ltac:(lia) ltac:(lia) ltac:(lia))
      as A.
    pose proof (target_le sampled Cs (alone pl) 1 r0 (k - 1) r0 ltac:(lia) ltac:(lia) ltac:(lia))
      as B.
    rewrite target_0 in A by lia. rewrite target_last in B by (assumption || lia).
    pose proof (direction_range pl sampled g Cs G true).
    pose proof (direction_range pl sampled g Cs G false).
    pose proof (directions pl sampled g Cs). pose proof (a_times pl sampled g Cs).
    pose proof (a_range pl sampled Cs). fold r0. split; [nra|].
    apply Rle_trans with (g + 2 * direction sampled g true); [nra|]. nra. }
  assert (M : target0 pl sampled g i <= target0 pl sampled g j).
  { destruct (Z.eq_dec i 0) as [->|N0].
    - change (target0 pl sampled g 0) with 0. destruct (Z.eq_dec j 0) as [->|]; [apply Rle_refl|].
      destruct (Z.eq_dec j (r0 + 2)) as [->|]; [unfold r0; rewrite target0_all by assumption; lra|].
      pose proof (P j ltac:(lia)). lra.
    - destruct (Z.eq_dec j (r0 + 2)) as [->|N2].
      + unfold r0 at 1. rewrite target0_all by assumption. destruct (Z.eq_dec i (r0 + 2)) as [->|].
        * unfold r0. rewrite target0_all by assumption. lra.
        * pose proof (P i ltac:(lia)). lra.
      + rewrite !target0_at by (assumption || (fold r0; lia)). fold r0.
        pose proof (target_le sampled Cs (alone pl) 1 r0 (i - 1) (j - 1) ltac:(lia) ltac:(lia)
          ltac:(lia)).
        pose proof (direction_range pl sampled g Cs G true). nra. }
  assert (L : 0 <= target0 pl sampled g i).
  { destruct (Z.eq_dec i 0) as [->|]; [apply Rle_refl|].
    destruct (Z.eq_dec i (r0 + 2)) as [->|]; [unfold r0; rewrite target0_all by assumption; lra|].
    pose proof (P i ltac:(lia)). lra. }
  assert (U : target0 pl sampled g j <= 1).
  { destruct (Z.eq_dec j 0) as [->|]; [change (target0 pl sampled g 0) with 0; lra|].
    destruct (Z.eq_dec j (r0 + 2)) as [->|]; [unfold r0; rewrite target0_all by assumption; lra|].
    pose proof (P j ltac:(lia)). lra. }
  lra.
Qed.

(** What is known of each factor. *)
Definition ok (t : tagged) : Prop :=
  good (below V) iota (fac t) /\ sigma (fac t) <= iota
  /\ (tag t = true -> 0 <= rel t /\ sigma (fac t) <= rel t * p (fac t))
  /\ (tag t = false -> sigma (fac t) <= sig H).

Fixpoint tags (B : Z) (ds : list digit) (bx : box) (inv : list R) : list tagged :=
  match ds, bx, inv with
  | d :: ds, (lo, hi) :: bx, i :: inv =>
      let t := match ds with [] => true | _ => false end in
      Tagged (event pl d (target sampled t B (count d + 1)) lo hi) (is_low pl d) (i * iota)
      :: tags (B * (count d + 1)) ds bx inv
  | _, _, _ => []
  end.

Lemma covers_sig d i least : (0 < own d)%nat -> is_low pl d = true -> covers pl d i least ->
  0 <= i /\ sig (own d) <= i * iota * least.
Proof.
  intros O L Cv. destruct (Cv L) as (I & E). split; [assumption|].
  destruct (own d) as [|n]; [lia|]. rewrite sig_S.
  replace (Z.of_nat (S n) - 1)%Z with (Z.of_nat n) in E by lia.
  pose proof iota_range. replace (i * iota * least) with (iota * (i * least)) by ring.
  apply Rmult_le_compat_l; [lra|].
  unfold sig. pose proof (IZR_pow_pos (w * Z.of_nat n) ltac:(nia)) as P.
  apply Rmult_le_reg_r with (IZR (2 ^ (w * Z.of_nat n))); [assumption|].
  rewrite Rinv_l by lra. exact E.
Qed.

Lemma sigma_event d tg lo hi : sigma (event pl d tg lo hi) <= sig (own d)
  /\ (lo = hi -> sigma (event pl d tg lo hi) = 0).
Proof.
  unfold event; simpl. pose proof (sig_pos (own d)). unfold sig in *.
  destruct (Z.eqb_spec lo hi); split; intros; lra || contradiction.
Qed.

Lemma tags_ok B ds bx inv : (1 <= B)%Z -> layout pl sampled B ds -> cover pl sampled B ds inv ->
  Forall (well_formed pl) ds -> fits (map (fun d => count d + 1)%Z ds) bx ->
  (ds <> [] -> forall z, last ds z = top pl) ->
  Forall ok (tags B ds bx inv)
  /\ map fac (tags B ds bx inv) = events pl sampled B ds bx
  /\ map rel (low_part (tags B ds bx inv)) = map (fun i => i * iota) (lows pl ds inv)
  /\ length (high_part (tags B ds bx inv)) = length (filter (fun d => negb (is_low pl d)) ds)
  /\ length (tags B ds bx inv) = length ds.
Proof.
  revert B bx inv. induction ds as [|d ds IH]; intros B [|[lo hi] bx] [|i inv] HB L Cv F Ft T;
    try (simpl in Cv; tauto); try (simpl in Ft; tauto).
  - repeat split. constructor.
  - cbn [layout] in L. destruct L as ((S & N) & Nr & L). cbn [cover] in Cv.
    destruct Cv as (Cd & Cv).
    cbn [map] in Ft. rewrite fits_cons in Ft. destruct Ft as (I & I' & Ft).
    inversion F as [|? ? Fd Fs]; subst.
    destruct (IH (2 ^ weight_bits d * (count d + 1))%Z bx inv ltac:(nia) L Cv Fs Ft)
      as (A1 & A2 & A3 & A4 & A5).
    { intros D z. rewrite <- (T ltac:(discriminate) z). destruct ds; [congruence | reflexivity]. }
    set (B := (2 ^ weight_bits d)%Z) in *. cbn [tags events map].
    set (t := match ds with [] => true | _ => false end) in *.
    set (e := event pl d (target sampled t B (count d + 1)) lo hi).
    pose proof (sigma_event d (target sampled t B (count d + 1)) lo hi) as (SE & S0).
    fold e in SE, S0.
    assert (OD : (0 < own d)%nat) by apply Fd.
    assert (OK : ok (Tagged e (is_low pl d) (i * iota))).
    { unfold ok; cbn [fac tag rel]. split; [|split; [|split]].
      - unfold e, iota, V. apply event_good; try assumption; try lia.
        + apply cut_near; assumption.
        + split.
          * pose proof (target_le sampled Cs t B (count d + 1) lo hi
              ltac:(lia) ltac:(lia) ltac:(lia)). lra.
          * pose proof (target_le sampled Cs t B (count d + 1) hi (count d + 1)
              ltac:(lia) ltac:(lia) ltac:(lia)) as U.
            pose proof (target_le sampled Cs t B (count d + 1) 0 lo
              ltac:(lia) ltac:(lia) ltac:(lia)) as U'.
            rewrite target_last in U by (assumption || lia). rewrite target_0 in U' by lia. lra.
      - apply Rle_trans with (sig (own d)); [assumption|].
        apply Rle_trans with (sig 1); [apply sig_le; lia|]. rewrite sig_S. unfold sig. simpl.
        rewrite Z.mul_0_r. simpl. rewrite Rinv_1. lra.
      - intros Lw. destruct (covers_sig d i _ OD Lw Cd) as (I0 & Sg).
        pose proof iota_range as Io. split; [apply Rmult_le_pos; lra|].
        assert (TF : t = false).
        { unfold t. destruct ds; [|reflexivity]. specialize (T ltac:(discriminate) d).
          cbn [last] in T. unfold is_low in Lw. rewrite <- T, Nat.ltb_irrefl in Lw. discriminate. }
        destruct (Z.eq_dec lo hi) as [E|NE].
        + rewrite S0 by assumption. unfold e, event; simpl p. rewrite E. lra.
        + eapply Rle_trans; [exact SE|]. eapply Rle_trans; [exact Sg|].
          apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. unfold e, event; simpl p. rewrite TF.
          pose proof (target_least sampled Cs B (count d + 1) lo hi
            ltac:(lia) ltac:(lia) ltac:(lia)) as TL.
          replace (count d + 1 - 1)%Z with (count d) in TL by lia. exact TL.
      - intros Hh. eapply Rle_trans; [exact SE|]. apply sig_le. unfold is_low in Hh.
        apply Nat.ltb_ge in Hh. exact Hh. }
    split; [constructor; assumption|]. split; [cbn [fac]; now rewrite A2|].
    unfold low_part, high_part in *. cbn [filter tag lows].
    destruct (is_low pl d); cbn [negb map rel length].
    + rewrite A3. repeat split; try assumption. now rewrite A5.
    + repeat split; try assumption; [now rewrite A4 | now rewrite A5].
Qed.

Definition first_tag (e : event0) : tagged :=
  Tagged (event_first pl sampled g e) (is_low pl (first pl)) (hd 0 inverses * iota).

Lemma first_ok e bx : sound pl (e, bx) -> ok (first_tag e).
Proof.
  intros So. destruct e as [[lo0 hi0] [lo1 hi1]]. destruct So as (I0 & I1 & _ & R).
  unfold interval in I0, I1. cbn [fst snd] in I0, I1. fold r0 in I0, I1.
  pose proof (count_first pl) as E. fold r0 in E. pose proof first_formed as F.
  set (ev := fun lo hi => event pl (first pl) (target0 pl sampled g) lo hi).
  assert (GE : forall lo hi, (0 <= lo <= hi)%Z -> (hi <= r0 + 2)%Z
    -> good (below V) iota (ev lo hi)).
  { intros lo hi A B. unfold ev, iota, V. apply event_good; try assumption; try lia.
    - apply cut_near_first.
    - now apply target0_le. }
  pose proof (GE lo0 hi0 ltac:(lia) ltac:(lia)) as G0.
  pose proof (GE lo1 hi1 ltac:(lia) ltac:(lia)) as G1.
  pose proof (sigma_event (first pl) (target0 pl sampled g) lo0 hi0) as (S0 & Z0).
  pose proof (sigma_event (first pl) (target0 pl sampled g) lo1 hi1) as (S1 & Z1).
  fold (ev lo0 hi0) in S0, Z0. fold (ev lo1 hi1) in S1, Z1.
  assert (OD : (0 < own (first pl))%nat) by apply F.
  pose proof iota_range as Io.
  unfold ok, first_tag, event_first; cbn [fac tag rel]. fold (ev lo0 hi0). fold (ev lo1 hi1).
  assert (MS : sigma (mix (ev lo0 hi0) (ev lo1 hi1))
    = (sigma (ev lo0 hi0) + sigma (ev lo1 hi1)) / 2)
    by reflexivity.
  assert (MP : p (mix (ev lo0 hi0) (ev lo1 hi1))
    = (target0 pl sampled g hi0 - target0 pl sampled g lo0
       + (target0 pl sampled g hi1 - target0 pl sampled g lo1)) / 2) by reflexivity.
  rewrite MS, MP.
  split; [|split; [|split]].
  - apply mix_good; try assumption. apply below_nonempty, pow2_pos. lia.
  - apply Rle_trans with (sig (own (first pl))); [lra|].
    apply Rle_trans with (sig 1); [apply sig_le; lia|]. rewrite sig_S. unfold sig. simpl.
    rewrite Z.mul_0_r. simpl. rewrite Rinv_1. lra.
  - intros Lw. assert (AL : alone pl = false).
    { unfold alone. destruct (rest pl) eqn:Q; [|reflexivity]. unfold is_low, top in Lw.
      rewrite Q in Lw. cbn [last] in Lw. rewrite Nat.ltb_irrefl in Lw. discriminate. }
    pose proof (first_covered _ _ _ _ _ _ C) as Cv. fold r0 in Cv.
    destruct (covers_sig (first pl) _ _ OD Lw Cv) as (Ci & Sg).
    split; [apply Rmult_le_pos; lra|].
    pose proof (target0_le lo0 hi0 ltac:(lia) ltac:(lia)) as T0.
    pose proof (target0_le lo1 hi1 ltac:(lia) ltac:(lia)) as T1.
    pose proof (rises_twice pl sampled g Cs) as RT. pose proof g_range as G.
    set (least := (1 - g) * (1 - p_zero sampled) * (1 - target sampled false 1 r0 (r0 - 1)) / 2)
      in *.
    (* A value in one of the intervals has at least this mass. *)
    assert (HV : forall lo hi, (1 <= lo <= r0)%Z -> (lo < hi)%Z -> (hi <= r0 + 2)%Z ->
      2 * least <= target0 pl sampled g hi - target0 pl sampled g lo).
    { intros lo hi A B D.
      apply Rle_trans with (target0 pl sampled g (lo + 1) - target0 pl sampled g lo).
      - rewrite !target0_at by (assumption || (fold r0; lia)). fold r0. rewrite AL.
        replace (lo + 1 - 1)%Z with (lo - 1 + 1)%Z by lia.
        pose proof (target_least sampled Cs 1 r0 (lo - 1) (lo - 1 + 1)
          ltac:(lia) ltac:(lia) ltac:(lia)).
        pose proof (direction_range pl sampled g Cs G true).
        unfold least. rewrite <- RT in *. nra.
      - pose proof (target0_le (lo + 1) hi ltac:(lia) ltac:(lia)). lra. }
    pose proof (sig_pos (own (first pl))).
    assert (HI : 0 <= hd 0 inverses * iota) by (apply Rmult_le_pos; lra).
    specialize (R AL). unfold empty, holds_value in R. cbn [fst snd] in R. fold r0 in R.
    destruct R as [(R0 & R1)|R].
    + rewrite Z0, Z1 by assumption.
      assert (0 <= hd 0 inverses * iota * ((target0 pl sampled g hi0 - target0 pl sampled g lo0
        + (target0 pl sampled g hi1 - target0 pl sampled g lo1)) / 2)) by (apply Rmult_le_pos; lra).
      lra.
    + apply Rle_trans with (sig (own (first pl))); [lra|]. eapply Rle_trans; [exact Sg|].
      apply Rmult_le_compat_l; [assumption|].
      destruct R as [((R0 & R1) & R2)|((R0 & R1) & R2)].
      * pose proof (HV lo0 hi0 ltac:(lia) ltac:(lia) ltac:(lia)). lra.
      * pose proof (HV lo1 hi1 ltac:(lia) ltac:(lia) ltac:(lia)). lra.
  - intros Hh. apply Rle_trans with (sig (own (first pl))); [lra|]. apply sig_le.
    unfold is_low in Hh. apply Nat.ltb_ge in Hh. exact Hh.
Qed.

(** ** Lemma 3 *)

Let ds := first pl :: rest pl.
Let d := INR (length ds).
Let h := INR (length (filter (fun d => negb (is_low pl d)) ds)).

Lemma inverses_cons : inverses = hd 0 inverses :: tl inverses.
Proof.
  pose proof (one_each _ _ _ _ _ _ C) as L. destruct inverses; [discriminate | reflexivity].
Qed.

Lemma total_scale ss : total (map (fun i => i * iota) ss) = iota * sum (fun x => x) ss.
Proof. induction ss as [|s ss IH]; unfold sum in *; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma delta_scale ss : delta iota (map (fun i => i * iota) ss) = iota * iota * pairs ss.
Proof.
  induction ss as [|s ss IH]; simpl; [ring|]. rewrite IH, total_scale. ring.
Qed.

Lemma box_error eb : sound pl eb ->
  Rabs (mean (below V) (qs (factors pl sampled g eb)) - box_mass pl sampled g eb)
  <= dlt * box_mass pl sampled g eb + h * (2 + d / 2) * unit.
Proof.
  intros So. destruct eb as [e bx].
  assert (Ft : fits rs bx) by (destruct e as [i0 i1]; apply So).
  pose proof (first_ok e bx So) as OK0.
  destruct (tags_ok r0 (rest pl) bx (tl inverses) Cr (rest_layout _ _ _ _ _ _ C)
    (rest_covered _ _ _ _ _ _ C) rest_formed Ft) as (A1 & A2 & A3 & A4 & A5).
  { intros N z. unfold top. destruct (rest pl) as [|x xs]; [congruence|]. clear.
    revert x. induction xs as [|y ys IH]; intros x; [reflexivity|]. apply (IH y). }
  set (l := first_tag e :: tags r0 (rest pl) bx (tl inverses)).
  assert (ML : map fac l = factors pl sampled g (e, bx)).
  { unfold l, factors. cbn [map fst snd]. fold r0. rewrite A2. reflexivity. }
  assert (Fl : Forall ok l) by (now constructor).
  assert (LW : map rel (low_part l) = map (fun i => i * iota) (lows pl ds inverses)).
  { unfold l, ds, low_part in *. rewrite inverses_cons at 2. cbn [filter lows].
    change (tag (first_tag e)) with (is_low pl (first pl)).
    destruct (is_low pl (first pl)); cbn [map rel first_tag]; rewrite A3; reflexivity. }
  assert (HI : length (high_part l) = length (filter (fun d => negb (is_low pl d)) ds)).
  { unfold l, ds, high_part in *. cbn [filter].
    change (tag (first_tag e)) with (is_low pl (first pl)).
    destruct (is_low pl (first pl)); cbn [negb length]; rewrite A4; reflexivity. }
  assert (LL : length l = length ds) by (unfold l, ds; cbn [length]; now rewrite A5).
  rewrite <- ML, <- (ps_factors pl sampled g (e, bx)), <- ML by exact Ft.
  rewrite Forall_forall in Fl. pose proof iota_range as Io. pose proof unit_pos as U.
  pose proof V_large as VL.
  assert (NE : below V <> []) by (apply below_nonempty, pow2_pos; lia).
  eapply Rle_trans.
  - apply (digits_error (below V) iota unit l NE Io); [lra| | | | |].
    + apply Forall_forall. intros t T. apply (Fl t T).
    + intros t T. apply (Fl t T).
    + intros t u T Uu Ht. rewrite unit_sig, Rmult_comm.
      destruct (Fl t T) as (Gt & _ & _ & Hs). destruct (Fl u Uu) as (Gu & Su & _).
      apply Rmult_le_compat; [apply Gu | apply Gt | assumption | now apply Hs].
    + intros t T Ht. destruct (Fl t T) as (Gt & _ & _ & Hs). specialize (Hs Ht).
      rewrite unit_sig, !Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      now apply Rmult_le_compat_l.
    + rewrite LW, total_scale. pose proof (low_total _ _ _ _ _ _ C) as T. fold ds in T. fold V in T.
      unfold iota. apply Rmult_le_reg_l with (IZR V); [lra|].
      rewrite <- Rmult_assoc, Rinv_r by lra. lra.
  - rewrite HI, LL, LW, delta_scale. fold h d. apply Rplus_le_compat_r.
    apply Rmult_le_compat_r.
    + apply (ps_range (below V) iota). apply Forall_forall. intros f Hf.
      apply in_map_iff in Hf. destruct Hf as (t & <- & T). apply (Fl t T).
    + pose proof (low_delta _ _ _ _ _ _ C) as D. fold ds in D.
      assert (VV : IZR (2 ^ (2 * w)) = IZR V * IZR V).
      { unfold V. rewrite <- IZR_pow_add by lia. do 2 f_equal. lia. }
      rewrite VV in D. unfold iota.
      apply Rmult_le_reg_r with (IZR V * IZR V); [apply Rmult_lt_0_compat; lra|].
      replace (/ IZR V * / IZR V * pairs (lows pl ds inverses) * (IZR V * IZR V))
        with (pairs (lows pl ds inverses)) by (field; lra). exact D.
Qed.

Lemma dlt_ge0 : 0 <= dlt.
Proof.
  (* [delta] of the lemma is a sum of terms that are not negative. *)
  pose proof (low_delta _ _ _ _ _ _ C) as D. fold ds in D.
  assert (P : 0 <= pairs (lows pl ds inverses)).
  { assert (I : Forall (fun i => 0 <= i) (lows pl ds inverses)).
    { unfold ds. rewrite inverses_cons at 1. cbn [lows].
      assert (R : forall B xs inv, cover pl sampled B xs inv ->
        Forall (fun i => 0 <= i) (lows pl xs inv)).
      { intros B xs. revert B. induction xs as [|x xs IH]; intros B [|i inv] Cv;
          try (constructor; fail).
        cbn [cover lows] in *. destruct Cv as (Cx & Cv). specialize (IH _ _ Cv).
        destruct (is_low pl x) eqn:E; [|assumption]. constructor; [apply Cx, E | assumption]. }
      pose proof (R _ _ _ (rest_covered _ _ _ _ _ _ C)).
      destruct (is_low pl (first pl)) eqn:E; [|assumption]. constructor; [|assumption].
      apply (first_covered _ _ _ _ _ _ C), E. }
    clear D. induction I as [|i l I0 I IH]; [simpl; lra|]. cbn [pairs].
    assert (0 <= sum (fun x => x) l).
    { clear -I. induction I; unfold sum in *; simpl; lra. }
    assert (0 <= i * sum (fun x => x) l) by now apply Rmult_le_pos. lra. }
  assert (0 < IZR (2 ^ (2 * w))) by (apply IZR_pow_pos; lia). nra.
Qed.

Notation mu := (mu pl sampled).

Lemma mu_ge0 y x : (0 <= x <= range pl)%Z -> (0 <= y <= range pl)%Z -> 0 <= mu y x.
Proof.
  intros X Y. apply (mu_private pl sampled Cs y x x X X Y).
Qed.

(** Lemma 3: outside of the floor, the probability of an output is near its target. *)
Theorem lemma_3 x y : (0 <= x <= range pl)%Z -> (0 <= y <= range pl)%Z ->
  Rabs (prob pl y x - g * nu pl y - (1 - g) * mu y x)
  <= dlt * ((1 - g) * mu y x) + units pl * unit.
Proof.
  intros X Y. pose proof (outputs _ _ _ _ _ _ C) as O. pose proof g_range as G.
  destruct (boxes_sound pl Cr ltac:(lia) x y rs_pos last_place_pos X Y) as (So & Len).
  rewrite Forall_forall in So.
  rewrite (distribution pl sampled g Cw Cf Cr (slot _ _ _ _ _ _ C) x y (boxes pl x y)).
  2: { apply Forall_forall. intros eb Heb. specialize (So eb Heb).
    destruct eb as [[[lo0 hi0] [lo1 hi1]] bx]. destruct So as (I0 & I1 & Ft & _).
    split; [|exact Ft]. unfold interval in I0, I1. cbn [fst snd outside] in *. lia. }
  2: { intros s o os free S Oo Io.
    apply (boxes_output pl Cr ltac:(lia) rs_pos wrap_radix weigh_mixed top_count fits_word);
      assumption. }
  fold V. set (bxs := boxes pl x y) in *.
  set (B := sum (box_mass pl sampled g) bxs).
  assert (E1 : Rabs (sum (fun eb => mean (below V) (qs (factors pl sampled g eb))) bxs - B)
    <= dlt * B + INR (length bxs) * (h * (2 + d / 2) * unit)).
  { unfold B. replace (sum (fun eb => mean (below V) (qs (factors pl sampled g eb))) bxs
        - sum (box_mass pl sampled g) bxs)
      with (sum (fun eb => mean (below V) (qs (factors pl sampled g eb)) - box_mass pl sampled g eb)
        bxs).
    2: { rewrite (sum_ext _ (fun eb => mean (below V) (qs (factors pl sampled g eb))
        + (-1) * box_mass pl sampled g eb)) by (intros; ring). rewrite sum_plus, sum_scale. ring. }
    eapply Rle_trans; [apply sum_abs|].
    rewrite <- sum_scale, <- sum_const, <- sum_plus. apply sum_le.
    intros eb Heb. now apply box_error, So. }
  pose proof unit_pos as U.
  assert (E2 : Rabs (B - (1 - g) * mu y x) <= unit / 4).
  { apply (boxes_mass pl sampled g Cs G Cr ltac:(lia) rs_pos last_place_pos (unit / 4)); try lra;
      try assumption.
    pose proof (reach _ _ _ _ _ _ C) as R. rewrite censored_eq in R. fold K in R. fold c.
    fold r0 rs.
    destruct R as [R|R]; [left; exact R|right]. unfold unit.
    assert (PK : 0 < IZR (2 ^ K)) by (apply IZR_pow_pos; unfold K, bits; nia).
    rewrite IZR_pow_add in R by (unfold K, bits; nia). change (IZR (2 ^ 2)) with 4 in R.
    apply Rmult_le_reg_r with (IZR (2 ^ K) * 4); [lra|].
    replace (/ IZR (2 ^ K) / 4 * (IZR (2 ^ K) * 4)) with 1 by (field; lra). exact R. }
  pose proof dlt_ge0 as D0. pose proof (delta_small _ _ _ _ _ _ C) as D1.
  assert (LB : INR (length bxs) <= d).
  { unfold d, ds. apply le_INR. cbn [length]. unfold bxs. revert Len. unfold radices.
    rewrite map_length. trivial. }
  assert (H0 : 0 <= h) by apply pos_INR. assert (d0 : 1 <= d).
  { unfold d, ds. cbn [length]. rewrite S_INR. pose proof (pos_INR (length (rest pl))). lra. }
  assert (E3 : INR (length bxs) * (h * (2 + d / 2) * unit) <= d * (h * (2 + d / 2) * unit)).
  { apply Rmult_le_compat_r; [|assumption]. apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]. }
  assert (E4 : d * (h * (2 + d / 2) * unit) + 5 / 16 * unit <= units pl * unit).
  { unfold units. fold ds. fold h d.
    replace (d * (h * (2 + d / 2) * unit) + 5 / 16 * unit)
      with ((h * d * (d + 4) / 2 + 5 / 16) * unit) by field.
    apply Rmult_le_compat_r; [lra|]. assert (0 <= h * d) by (apply Rmult_le_pos; lra). nra. }
  set (S := sum (fun eb => mean (below V) (qs (factors pl sampled g eb))) bxs) in *.
  set (M := (1 - g) * mu y x) in *.
  replace (g * nu pl y + S - g * nu pl y - M) with ((S - B) + (B - M)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (E5 : dlt * B <= dlt * M + 1 / 16 * unit).
  { pose proof (Rle_abs (B - M)). assert (dlt * (B - M) <= 1 / 4 * (unit / 4)); [|lra].
    apply Rle_trans with (dlt * (unit / 4)).
    - apply Rmult_le_compat_l; lra.
    - apply Rmult_le_compat_r; lra. }
  lra.
Qed.

(** ** Theorem 2 *)

(** Outputs are within the range. *)
Lemma prob_outside x y : (0 <= x <= range pl)%Z -> ~ (0 <= y <= range pl)%Z -> prob pl y x = 0.
Proof.
  intros X Y. unfold prob. rewrite mean_filter, (mean_ext _ (fun _ => 0)).
  { apply mean_const, tapes_nonempty, W. }
  intros t _. assert (O : (0 <= draw pl t x <= range pl)%Z).
  2: { unfold ind. destruct (Z.eqb_spec (draw pl t x) y); [lia | reflexivity]. }
  unfold draw, output. cbn zeta.
  match goal with |- context [Z.min (?f mod _) _] =>
    pose proof (Z.mod_pos_bound f (2 ^ value_bits pl)
      ltac:(apply pow2_pos; pose proof (value_width _ _ _ _ _ _ C); lia)) end.
  match goal with |- context [Z.min ?n (range pl - x)] => assert (0 <= n)%Z;
    [|set (noise := n) in *] end.
  { assert (0 < 2 ^ word_bits pl)%Z by (apply pow2_pos; lia).
    destruct (rest pl); [apply Z.mod_pos_bound; lia|].
    destruct (_ <? _)%Z; [apply Z.mod_pos_bound|]; lia. }
  clearbody noise. destruct (_ =? 0)%Z; [lia|]. destruct (_ && _); lia.
Qed.

Theorem theorem_2 x x' y : (0 <= x <= range pl)%Z -> (0 <= x' <= range pl)%Z ->
  prob pl y x <= exp (rate * IZR (Z.abs (x - x'))) * prob pl y x'.
Proof.
  intros X X'. pose proof (outputs _ _ _ _ _ _ C) as O. pose proof g_range as G.
  destruct (Z.eq_dec x x') as [->|N].
  { rewrite Z.sub_diag, Rmult_0_r, exp_0. lra. }
  destruct (Z_le_dec 0 y) as [Y0|Y0]; [destruct (Z_le_dec y (range pl)) as [Y1|Y1]|].
  2,3: rewrite !prob_outside by lia; lra.
  set (D := Z.abs (x - x')). assert (D1 : 1 <= IZR D) by (apply (IZR_le 1); unfold D; lia).
  pose proof (lemma_3 x y X ltac:(lia)) as A. pose proof (lemma_3 x' y X' ltac:(lia)) as B.
  pose proof (proj2 (mu_private pl sampled Cs y x x' X X' ltac:(lia))) as Mu. fold D in Mu.
  pose proof (mu_ge0 y x X ltac:(lia)) as M0. pose proof (mu_ge0 y x' X' ltac:(lia)) as M0'.
  pose proof (nu_large pl Cw y (value_width _ _ _ _ _ _ C) O ltac:(lia)) as Nu.
  pose proof dlt_ge0 as Dl. pose proof (delta_small _ _ _ _ _ _ C) as Ds.
  pose proof (slack _ _ _ _ _ _ C) as Sl. pose proof (floor_large _ _ _ _ _ _ C) as Fl.
  fold K in Fl. change (units pl / IZR (2 ^ K)) with (units pl * unit) in Fl.
  set (eta := units pl * unit) in *. set (nk := / IZR (2 ^ value_bits pl)) in *.
  assert (NK : 0 < nk).
  { unfold nk. apply Rinv_0_lt_compat, IZR_pow_pos. pose proof (value_width _ _ _ _ _ _ C). lia. }
  set (M := (1 - g) * mu y x) in *. set (M' := (1 - g) * mu y x') in *.
  assert (HM : 0 <= M) by (apply Rmult_le_pos; lra).
  assert (HM' : 0 <= M') by (apply Rmult_le_pos; lra).
  set (cs := exp (sampled * IZR D)) in *. set (ce := exp (rate * IZR D)).
  assert (MM : M <= cs * M').
  { unfold M, M'. replace (cs * ((1 - g) * mu y x')) with ((1 - g) * (cs * mu y x')) by ring.
    apply Rmult_le_compat_l; lra. }
  (* The slack in the rate covers the relative error. *)
  assert (CS : (1 + dlt) * cs <= (1 - dlt) * ce).
  { assert (E : ce = cs * exp ((rate - sampled) * IZR D)).
    { unfold ce, cs. rewrite <- exp_plus. f_equal. ring. }
    rewrite E. assert (X1 : 1 + 3 * dlt <= exp ((rate - sampled) * IZR D)).
    { apply Rle_trans with (1 + (rate - sampled) * IZR D); [|apply exp_ineq1_le].
      assert (3 * dlt * 1 <= (rate - sampled) * IZR D) by (apply Rmult_le_compat; lra). lra. }
    pose proof (exp_pos (sampled * IZR D)) as Cp. fold cs in Cp.
    apply Rle_trans with (cs * ((1 - dlt) * (1 + 3 * dlt))).
    - rewrite Rmult_comm. apply Rmult_le_compat_l; [lra|]. nra.
    - replace ((1 - dlt) * (cs * exp ((rate - sampled) * IZR D)))
        with (cs * ((1 - dlt) * exp ((rate - sampled) * IZR D))) by ring.
      apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra. }
  (* The floor covers the absolute error. *)
  assert (CE : 1 < exp rate <= ce).
  { assert (0 < rate) by lra. split; [rewrite <- exp_0; now apply exp_increasing|].
    unfold ce. destruct (Rle_lt_or_eq_dec rate (rate * IZR D)) as [L|L]; [nra| |].
    - left. now apply exp_increasing.
    - rewrite <- L. lra. }
  assert (FE : eta * (ce + 1) <= g * nu pl y * (ce - 1)).
  { set (cr := exp rate) in *.
    assert (F1 : eta * (cr + 1) <= g * nk * (cr - 1)).
    { apply Rmult_le_compat_r with (r := cr + 1) in Fl; [|lra].
      replace (g / IZR (2 ^ value_bits pl) * ((cr - 1) / (cr + 1)) * (cr + 1))
        with (g * nk * (cr - 1)) in Fl; [exact Fl|].
      unfold nk. field. split; [lra|]. apply not_0_IZR, Z.pow_nonzero; [lia|].
      pose proof (value_width _ _ _ _ _ _ C). lia. }
    assert (GN : 0 <= g * nk) by (apply Rmult_le_pos; lra).
    assert (EN : eta <= g * nk).
    { destruct (Rle_dec eta (g * nk)); [assumption|]. exfalso.
      assert (g * nk * (cr - 1) <= g * nk * (cr + 1)) by (apply Rmult_le_compat_l; lra).
      assert (g * nk * (cr + 1) < eta * (cr + 1)) by (apply Rmult_lt_compat_r; lra). lra. }
    assert (F2 : eta * (ce + 1) <= g * nk * (ce - 1)).
    { assert ((g * nk - eta) * cr <= (g * nk - eta) * ce) by (apply Rmult_le_compat_l; lra). lra. }
    eapply Rle_trans; [exact F2|]. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
  assert (UP : prob pl y x <= (1 + dlt) * M + eta + g * nu pl y).
  { pose proof (Rle_abs (prob pl y x - g * nu pl y - M)). lra. }
  assert (LO : (1 - dlt) * M' - eta + g * nu pl y <= prob pl y x').
  { pose proof (Rle_abs (- (prob pl y x' - g * nu pl y - M'))) as L. rewrite Rabs_Ropp in L. lra. }
  assert (CP : 0 < ce) by apply exp_pos.
  apply Rle_trans with (ce * ((1 - dlt) * M' - eta + g * nu pl y)); [|apply Rmult_le_compat_l; lra].
  eapply Rle_trans; [exact UP|].
  assert (T1 : (1 + dlt) * M <= (1 - dlt) * ce * M').
  { apply Rle_trans with ((1 + dlt) * (cs * M')); [apply Rmult_le_compat_l; lra|].
    rewrite <- Rmult_assoc. now apply Rmult_le_compat_r. }
  nra.
Qed.
End Error.
