(** Enclosures of [exp (- s)] and of its powers, in fixed-point integers. *)
From Geomdp Require Export Means.
Open Scope Z_scope.

(** A lower and an upper bound, in units of [1 / one]. *)
Definition enclosure : Type := Z * Z.
Definition bounds (one : Z) (i : enclosure) (v : R) : Prop :=
  (IZR (fst i) <= v * IZR one <= IZR (snd i))%R.

Section Exp.
Variable places : Z.
Notation one := (Z.shiftl 1 places).  (* [2 ^ places] *)

(** Products are rounded outwards. Coq shifts faster than it divides. *)
Definition times (i j : enclosure) : enclosure :=
  (Z.shiftr (fst i * fst j) places, Z.shiftr (snd i * snd j) places + 1).

(** An enclosure of [v ^ (2 ^ n)]. *)
Fixpoint squares (n : nat) (i : enclosure) : enclosure :=
  match n with O => i | S n => squares n (times i i) end.

(** An enclosure of [v ^ n]. *)
Fixpoint power (i : enclosure) (n : nat) : enclosure :=
  match n with O => (one, one) | S n => times i (power i n) end.

(** [exp (- s)] for [s = num / den] is [exp (- x) ^ (2 ^ n)] for [x = s / 2 ^ n]. If [x] is small,
    the two bounds [1 - x <= exp (- x) <= 1 / (1 + x)] are close enough: they differ by less than
    [x ^ 2], so that the bounds of [exp (- s)] differ by about [s ^ 2 / 2 ^ n]. *)
Definition exp_enclosure (num den : Z) (n : nat) : enclosure :=
  let den := den * 2 ^ Z.of_nat n in
  squares n (one * Z.max 0 (den - num) / den, one * den / (den + num) + 1).

(** * Their soundness *)

Hypothesis places_nonneg : 0 <= places.
Lemma one_power : one = 2 ^ places.
Proof. now rewrite Z.shiftl_1_l. Qed.
Lemma one_positive : 0 < one.
Proof. rewrite one_power. now apply Z.pow_pos_nonneg. Qed.
Open Scope R_scope.

Definition encloses (i : enclosure) (v : R) : Prop := (0 <= fst i)%Z /\ bounds one i v.

Lemma one_pos : 0 < IZR one. Proof. apply (IZR_lt 0), one_positive. Qed.

(** Division rounds down. *)
Lemma div_bounds n d : (0 < d)%Z -> IZR (n / d) * IZR d <= IZR n <= IZR (n / d + 1) * IZR d.
Proof.
  intros D. pose proof (Z.div_mod n d ltac:(lia)). pose proof (Z.mod_pos_bound n d D).
  rewrite <- !mult_IZR. split; apply IZR_le; nia.
Qed.

Lemma encloses_ge0 i v : encloses i v -> 0 <= v.
Proof.
  intros (F & L & _). apply IZR_le in F. pose proof one_pos.
  apply Rmult_le_reg_r with (IZR one); [assumption|]. lra.
Qed.

Lemma times_encloses i j v u : encloses i v -> encloses j u -> encloses (times i j) (v * u).
Proof.
  intros I J. pose proof (encloses_ge0 _ _ I) as V. pose proof (encloses_ge0 _ _ J) as U.
  destruct I as (FI & LI & HI), J as (FJ & LJ & HJ). pose proof one_pos as P.
  unfold times, encloses, bounds. cbn [fst snd].
  rewrite !Z.shiftr_div_pow2, <- one_power by exact places_nonneg.
  pose proof one_positive as O. split; [apply Z.div_pos; nia|].
  pose proof (proj1 (div_bounds (fst i * fst j) one O)) as L.
  pose proof (proj2 (div_bounds (snd i * snd j) one O)) as H.
  rewrite mult_IZR in L, H. apply IZR_le in FI, FJ.
  assert (0 <= v * IZR one) by (apply Rmult_le_pos; lra).
  assert (0 <= u * IZR one) by (apply Rmult_le_pos; lra).
  assert (A : IZR (fst i) * IZR (fst j) <= v * IZR one * (u * IZR one))
    by (apply Rmult_le_compat; assumption).
  assert (B : v * IZR one * (u * IZR one) <= IZR (snd i) * IZR (snd j))
    by (apply Rmult_le_compat; assumption).
  split; apply Rmult_le_reg_r with (IZR one); try assumption; lra.
Qed.

Lemma power_encloses i v n : encloses i v -> encloses (power i n) (v ^ n).
Proof.
  intros I. induction n as [|n IH]; [|simpl pow; now apply times_encloses].
  pose proof one_positive.
  unfold encloses, bounds. cbn [power fst snd pow]. split; [lia | lra].
Qed.

Lemma squares_encloses n : forall i v, encloses i v -> encloses (squares n i) (v ^ (2 ^ n)).
Proof.
  induction n as [|n IH]; intros i v I; [now rewrite pow_1|].
  replace (v ^ (2 ^ S n)) with ((v * v) ^ (2 ^ n)); [now apply IH, times_encloses|].
  change (2 ^ S n)%nat with (2 * 2 ^ n)%nat. rewrite pow_mult. f_equal. ring.
Qed.

Lemma exp_pow x n : exp x ^ n = exp (x * INR n).
Proof.
  induction n as [|n IH]; [now rewrite Rmult_0_r, exp_0|].
  rewrite S_INR, Rmult_plus_distr_l, Rmult_1_r, exp_plus, <- IH. simpl. ring.
Qed.

Theorem exp_encloses num den n : (0 <= num)%Z -> (0 < den)%Z ->
  encloses (exp_enclosure num den n) (exp (- (IZR num / IZR den))).
Proof.
  intros N D. unfold exp_enclosure. set (e := (den * 2 ^ Z.of_nat n)%Z).
  assert (P2 : (0 < 2 ^ Z.of_nat n)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (E : (0 < e)%Z) by (unfold e; nia).
  assert (D' : 0 < IZR den) by now apply (IZR_lt 0).
  assert (E' : 0 < IZR e) by now apply (IZR_lt 0).
  assert (N' : 0 <= IZR num) by now apply (IZR_le 0).
  set (x := IZR num / IZR e).
  replace (exp (- (IZR num / IZR den))) with (exp (- x) ^ (2 ^ n)).
  2: { rewrite exp_pow. f_equal. unfold x, e. rewrite mult_IZR, INR_IZR_INZ, <- pow_IZR.
    rewrite Nat2Z.inj_pow. change (Z.of_nat 2) with 2%Z. rewrite pow_IZR.
    apply IZR_lt in P2. field. lra. }
  apply squares_encloses. pose proof one_pos as P. pose proof (exp_pos (- x)) as X.
  pose proof one_positive.
  unfold encloses, bounds. cbn [fst snd]. split; [apply Z.div_pos; nia|]. split.
  - destruct (Z.max_spec 0 (e - num)) as [(L & ->)|(L & ->)].
    2: { rewrite Z.mul_0_r, Zdiv_0_l. apply Rmult_le_pos; lra. }
    apply Rmult_le_reg_r with (IZR e); [assumption|].
    eapply Rle_trans; [apply div_bounds, E|]. rewrite mult_IZR, minus_IZR.
    (* [1 - x <= exp (- x)] *)
    pose proof (exp_ineq1_le (- x)) as B.
    assert (Q : x * IZR e = IZR num) by (unfold x; field; lra).
    replace (IZR one * (IZR e - IZR num)) with ((1 + - x) * IZR one * IZR e)
      by (rewrite <- Q; ring).
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
  - apply Rmult_le_reg_r with (IZR (e + num)); [apply (IZR_lt 0); lia|].
    eapply Rle_trans; [|apply div_bounds; lia]. rewrite mult_IZR, plus_IZR.
    (* [(1 + x) exp (- x) <= 1] *)
    assert (B : exp (- x) * (1 + x) <= 1).
    { replace 1 with (exp (- x) * exp x) at 2 by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
      apply Rmult_le_compat_l; [lra | apply exp_ineq1_le]. }
    assert (Q : x * IZR e = IZR num) by (unfold x; field; lra).
    replace (exp (- x) * IZR one * (IZR e + IZR num))
      with (exp (- x) * (1 + x) * (IZR one * IZR e)) by (rewrite <- Q; ring).
    rewrite <- (Rmult_1_l (IZR one * IZR e)) at 2.
    apply Rmult_le_compat_r; [|exact B]. apply Rmult_le_pos; lra.
Qed.
End Exp.
