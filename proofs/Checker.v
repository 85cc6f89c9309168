(** [check], a function on integers: if it accepts a certificate, the hypotheses [certified] hold,
    so the draw is private. [make proof] extracts it to OCaml and runs it on certificates. *)
From Geomdp Require Export Exp Main.
Open Scope Z_scope.

(** Rates are numerators and denominators. *)
Record certificate := Certificate {
  plan_of : plan;
  nominal_rate : Z * Z;
  sampled_rate : Z * Z;
  floor_units : Z;  (** the mass of the floor's slot over [2^-bits] of digit 0 *)
  delta_units : Z  (** [delta] over [2^-2w] *) }.

(** * The checks *)

Section Check.
Variable pl : plan.
Variable places : Z.  (** the unit of enclosures is [1 / one] *)
Notation one := (Z.shiftl 1 places).
Let w := limb_bits pl.

Definition complement (i : enclosure) : enclosure := (one - snd i, one - fst i).
(** The unit of a product is [1 / one^2]. *)
Definition product (i j : enclosure) : enclosure := (fst i * fst j, snd i * snd j).

(** Is [T] within one unit of [N * q], for the quotient [q <= 1] of two enclosures? *)
Definition within (T N : Z) (num den : enclosure) : bool :=
  (0 <=? T) && (0 <=? N) && ((T - 1) * snd den <=? N * fst num)
  && ((N <=? T + 1) || (N * snd num <=? (T + 1) * fst den)).

(** Encloses [a ^ (k B)], or 0 for all [r] values of the top digit, if [b] encloses [a ^ B]: the
    [target] of [k] is [(1 - beyond k) / (1 - beyond r)]. *)
Definition beyond (is_top : bool) (b : enclosure) (r k : nat) : enclosure :=
  if is_top && (k =? r)%nat then (0, 0) else power places b k.

Definition check_near (is_top : bool) (b : enclosure) (d : digit) : bool :=
  let n := length (thresholds d) in
  let vs := values w d in
  let cut (k : nat) := complement (beyond is_top b (S n) k) in
  let all := cut (S n) in
  forallb (fun k => within (nth (k - 1) vs 0) (2 ^ bits w d) (cut k) all) (seq 1 n).

(** Digit 0's thresholds start after the slot. The factor [1 - p_zero] is [2 a / (1 + a)]. *)
Definition check_first (a : enclosure) : bool :=
  let d := first pl in
  let n := length (thresholds d) in
  let vs := values w d in
  let slot := nth 0 vs 0 in
  let cut (k : nat) := complement (beyond (alone pl) a (n - 1) k) in
  let all := product (one + fst a, one + snd a) (cut (n - 1)%nat) in
  forallb (fun k => within (nth (k - 1) vs 0 - slot) (2 ^ bits w d - slot)
      (product (2 * fst a, 2 * snd a) (cut (k - 1)%nat)) all)
    (seq 1 n).

(** [(x, y)]: for a low digit, [least * 2^(w (own - 1))] in [covers] is at least [x / y]. *)
Definition least_first (a : enclosure) : Z * Z :=
  let d := first pl in
  let r := (length (thresholds d) - 1)%nat in
  let slot := nth 0 (values w d) 0 in
  ((2 ^ bits w d - slot) * (fst a * (fst (power places a (r - 1)) - snd (power places a r)))
      * 2 ^ (w * (Z.of_nat (own d) - 1)),
   2 ^ bits w d * ((one + snd a) * (one - fst (power places a r)))).
Definition least_rest (b : enclosure) (d : digit) : Z * Z :=
  let n := length (thresholds d) in
  ((fst (power places b n) - snd (power places b (S n))) * 2 ^ (w * (Z.of_nat (own d) - 1)),
   one - fst (power places b (S n))).

Definition inverse (least : Z * Z) : Z := snd least / fst least + 1.
Definition check_inverse (d : digit) (least : Z * Z) : bool :=
  negb (is_low pl d) || (0 <=? inverse least) && (snd least <=? inverse least * fst least).

(** The digits above digit 0, from weight [B] on; [b] encloses [a ^ B]. *)
Fixpoint check_rest (B : Z) (b : enclosure) (ds : list digit) : bool :=
  match ds with
  | [] => true
  | d :: ds =>
      let is_top := match ds with [] => true | _ => false end in
      (2 ^ weight_bits d =? B) && (1 <=? count d) && check_near is_top b d
      && check_inverse d (least_rest b d)
      && check_rest (B * (count d + 1)) (power places b (S (length (thresholds d)))) ds
  end.
Fixpoint inverses_rest (b : enclosure) (ds : list digit) : list Z :=
  match ds with
  | [] => []
  | d :: ds =>
      inverse (least_rest b d) :: inverses_rest (power places b (S (length (thresholds d)))) ds
  end.

Fixpoint ascending (l : list Z) : bool :=
  match l with
  | x :: l => match l with y :: _ => x <=? y | [] => true end && ascending l
  | [] => true
  end.
Definition check_formed (d : digit) : bool :=
  forallb (fun limbs => (length limbs =? S (own d))%nat
    && forallb (fun t => (0 <=? t) && (t <? 2 ^ w)) limbs) (thresholds d)
  && ascending (values w d) && (0 <? own d)%nat.

Fixpoint total (l : list Z) : Z := match l with [] => 0 | q :: l => q + total l end.
(** [pairs] on integers. *)
Fixpoint total_pairs (l : list Z) : Z :=
  match l with [] => 0 | q :: l => total_pairs l + 2 * q + q * total l end.

(** Twice [units]. *)
Definition twice_units : Z :=
  let ds := first pl :: rest pl in
  let d := Z.of_nat (length ds) in
  Z.of_nat (length (filter (fun d => negb (is_low pl d)) ds)) * d * (d + 5) + 2.
End Check.

(** The precision: [check] is sound at any, but refuses good certificates if it is too low. *)
Definition squarings (c : certificate) : nat :=
  Z.to_nat (bits (limb_bits (plan_of c)) (top (plan_of c)) + 64 + Z.log2 (fst (sampled_rate c))).
Definition places_of (c : certificate) : Z :=
  Z.of_nat (squarings c) + bits (limb_bits (plan_of c)) (top (plan_of c)) + 128
    + Z.log2 (snd (sampled_rate c)).
(** An enclosure of [a ^ n]. *)
Definition a_enclosure (c : certificate) (n : Z) : enclosure :=
  exp_enclosure (places_of c) (fst (sampled_rate c) * n) (snd (sampled_rate c)) (squarings c).

Definition inverses_of (c : certificate) : list Z :=
  let pl := plan_of c in
  let places := places_of c in
  let a := a_enclosure c 1 in
  inverse (least_first pl places a)
  :: inverses_rest pl places (power places a (Z.to_nat (radix pl))) (rest pl).

Definition check (c : certificate) : bool :=
  let pl := plan_of c in
  let w := limb_bits pl in
  let K := bits w (top pl) in
  let slot := nth 0 (values w (first pl)) 0 in
  let '(rn, rd) := nominal_rate c in
  let '(sn, sd) := sampled_rate c in
  let places := places_of c in
  let one := Z.shiftl 1 places in
  let a := a_enclosure c 1 in
  let qs := lows pl (first pl :: rest pl) (inverses_of c) in
  (* The plan's shape. *)
  (3 <=? w) && (w <? word_bits pl) && (0 <? value_bits pl) && (value_bits pl <=? word_bits pl)
  && (1 <=? range pl) && (range pl <? 2 ^ value_bits pl)
  && forallb (check_formed pl) (first pl :: rest pl) && (1 <=? radix pl)
  && ((if alone pl then count (first pl) else censored pl) <=? 2 ^ word_bits pl)
  (* Thresholds and inverses. *)
  && (0 <=? places) && (0 <? rd) && (0 <? sn) && (0 <? sd)
  && check_first pl places a && check_inverse pl (first pl) (least_first pl places a)
  && check_rest pl places (radix pl) (power places a (Z.to_nat (radix pl))) (rest pl)
  (* The reach of the top digit. *)
  && ((range pl <=? censored pl) || (snd (a_enclosure c (censored pl)) * 2 ^ (K + 2) <=? one))
  (* [delta] and the slack. *)
  && (4 * total qs <=? 2 ^ w) && (total_pairs qs <=? delta_units c)
  && (0 <=? delta_units c)
  && (3 * delta_units c * rd * sd <=? (rn * sd - sn * rd) * 2 ^ (2 * w))
  && (4 * delta_units c <=? 2 ^ (2 * w))
  (* The floor: [tanh] is larger still at the nominal rate. *)
  && (floor_units c =? slot)
  && (twice_units pl * 2 ^ value_bits pl * 2 ^ bits w (first pl) * (one + snd a)
      <=? 2 * slot * 2 ^ K * (one - snd a)).

(** What the joint loss of many releases rests on beside privacy (docs/proofs.md, lemma 14):
    [3 delta] is at most [2^-54] and [2^-54] of the rate, and the floor's mass is at most [2^-52]. *)
Definition check_small (c : certificate) : bool :=
  let w := limb_bits (plan_of c) in
  let '(rn, rd) := nominal_rate c in
  let slack := 3 * 2 ^ 54 * delta_units c in
  (slack <=? 2 ^ (2 * w)) && (slack * rd <=? rn * 2 ^ (2 * w))
  && (2 ^ 52 * floor_units c <=? 2 ^ bits w (first (plan_of c))).

(** * Their soundness *)
Open Scope R_scope.

Definition fraction (q : Z * Z) : R := IZR (fst q) / IZR (snd q).
Definition floor_of (c : certificate) : R :=
  IZR (floor_units c) / IZR (2 ^ bits (limb_bits (plan_of c)) (first (plan_of c))).
Definition delta_of (c : certificate) : R :=
  IZR (delta_units c) / IZR (2 ^ (2 * limb_bits (plan_of c))).

Section Sound.
Variables (pl : plan) (places : Z) (s : R).
Notation one := (Z.shiftl 1 places).
Hypothesis places_nonneg : (0 <= places)%Z.
Let positive : (0 < one)%Z := one_positive places places_nonneg.
Hypothesis s_positive : 0 < s.
Notation w := (limb_bits pl).
Notation a_to := (a_to s).

Lemma a_to_pow B k : a_to B ^ k = a_to (Z.of_nat k * B).
Proof.
  unfold Statement.a_to. rewrite exp_pow, INR_IZR_INZ. f_equal. rewrite mult_IZR. ring.
Qed.

Lemma power_a b B k :
  encloses places b (a_to B) -> encloses places (power places b k) (a_to (Z.of_nat k * B)).
Proof. intros E. rewrite <- a_to_pow. now apply power_encloses. Qed.

Lemma complement_bounds i v : bounds one i v -> bounds one (complement places i) (1 - v).
Proof. intros (L & H). unfold bounds, complement. cbn [fst snd]. rewrite !minus_IZR. lra. Qed.

Lemma product_bounds i j v u : encloses places i v -> bounds one j u -> 0 <= u ->
  bounds (one * one) (product i j) (v * u).
Proof.
  intros I (LJ & HJ) U. pose proof (encloses_ge0 places places_nonneg _ _ I) as V.
  destruct I as (FI & LI & HI). pose proof (one_pos places places_nonneg) as P. apply IZR_le in FI.
  unfold bounds, product. cbn [fst snd]. rewrite !mult_IZR.
  assert (0 <= v * IZR one) by (apply Rmult_le_pos; lra).
  assert (0 <= u * IZR one) by (apply Rmult_le_pos; lra).
  replace (v * u * (IZR one * IZR one)) with (v * IZR one * (u * IZR one)) by ring. split.
  - apply Rle_trans with (IZR (fst i) * (u * IZR one)).
    + now apply Rmult_le_compat_l.
    + now apply Rmult_le_compat_r.
  - now apply Rmult_le_compat.
Qed.

Lemma within_sound unit T N num den n d : (0 < unit)%Z -> within T N num den = true ->
  bounds unit num n -> bounds unit den d -> 0 <= n <= d -> 0 < d ->
  Rabs (IZR T - IZR N * (n / d)) <= 1.
Proof.
  intros P C (LN & HN) (LD & HD) (N0 & ND) D0. unfold within in C.
  rewrite !andb_true_iff, orb_true_iff, !Z.leb_le in C.
  destruct C as (((CT & CN) & CL) & CU). apply (IZR_lt 0) in P. pose proof (IZR_le _ _ CN) as N1.
  assert (Q : 0 <= n / d <= 1).
  { split; [apply Rmult_le_pos; [lra | left; now apply Rinv_0_lt_compat]|].
    apply Rmult_le_reg_r with d; [assumption|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. assumption. }
  assert (E : IZR N * (n / d) * (d * IZR unit) = IZR N * (n * IZR unit)) by (field; lra).
  assert (DU : 0 < d * IZR unit) by now apply Rmult_lt_0_compat.
  apply Rabs_le. split.
  - destruct CU as [CU|CU].
    + apply IZR_le in CU. rewrite plus_IZR in CU.
      assert (IZR N * (n / d) <= IZR N * 1) by (apply Rmult_le_compat_l; lra). lra.
    + apply IZR_le in CU. rewrite !mult_IZR, plus_IZR in CU. apply IZR_le in CT.
      assert (IZR N * (n / d) <= IZR T + 1); [|lra].
      apply Rmult_le_reg_r with (d * IZR unit); [assumption|]. rewrite E.
      apply Rle_trans with (IZR N * IZR (snd num)); [now apply Rmult_le_compat_l|].
      eapply Rle_trans; [exact CU|]. apply Rmult_le_compat_l; lra.
  - assert (IZR T - 1 <= IZR N * (n / d)); [|lra].
    destruct (Z_le_dec T 1) as [T1|T1].
    + apply IZR_le in T1. assert (0 <= IZR N * (n / d)) by (apply Rmult_le_pos; lra). lra.
    + assert (T2 : 1 <= IZR T) by (apply (IZR_le 1); lia).
      apply IZR_le in CL. rewrite !mult_IZR, minus_IZR in CL.
      apply Rmult_le_reg_r with (d * IZR unit); [assumption|]. rewrite E.
      apply Rle_trans with ((IZR T - 1) * IZR (snd den)); [apply Rmult_le_compat_l; lra|].
      eapply Rle_trans; [exact CL|]. now apply Rmult_le_compat_l.
Qed.

(** [beyond] as a real number. *)
Definition tail (is_top : bool) (B : Z) (r k : nat) : R :=
  if is_top && (k =? r)%nat then 0 else a_to (Z.of_nat k * B).

Lemma beyond_bounds is_top b B r k : encloses places b (a_to B) ->
  bounds one (complement places (beyond places is_top b r k)) (1 - tail is_top B r k).
Proof.
  intros E. apply complement_bounds. unfold beyond, tail. destruct (_ && _).
  - unfold bounds. cbn [fst snd]. lra.
  - now apply power_a.
Qed.

Lemma tail_range is_top B r k : (0 < B)%Z -> (k <= r)%nat -> (0 < r)%nat ->
  0 <= 1 - tail is_top B r k <= 1 - tail is_top B r r /\ 0 < 1 - tail is_top B r r.
Proof.
  intros HB K R. unfold tail. rewrite Nat.eqb_refl, andb_true_r.
  pose proof (a_to_le s s_positive (Z.of_nat k * B) (Z.of_nat r * B) ltac:(nia)).
  pose proof (a_to_le_1 s s_positive (Z.of_nat k * B) ltac:(nia)).
  pose proof (a_to_lt_1 s s_positive (Z.of_nat r * B) ltac:(nia)).
  pose proof (a_to_pos s (Z.of_nat k * B)).
  destruct is_top; cbn [andb]; [destruct (k =? r)%nat|]; lra.
Qed.

Lemma target_tail is_top B r k : (0 < B)%Z -> (k <= r)%nat -> (0 < r)%nat ->
  target s is_top B (Z.of_nat r) (Z.of_nat k)
  = (1 - tail is_top B r k) / (1 - tail is_top B r r).
Proof.
  intros HB K R. unfold target, tail. rewrite Nat.eqb_refl, andb_true_r.
  destruct is_top; cbn [andb]; [|reflexivity].
  destruct (Nat.eqb_spec k r) as [->|N].
  - rewrite Z.ltb_irrefl. field.
  - rewrite (proj2 (Z.ltb_lt _ _)) by lia. field.
Qed.

Lemma check_near_sound is_top b B d : (0 < B)%Z -> encloses places b (a_to B) ->
  check_near pl places is_top b d = true -> near pl d (target s is_top B (count d + 1)).
Proof.
  intros HB E C k K. unfold count in *. unfold check_near in C. rewrite forallb_forall in C.
  set (n := length (thresholds d)) in *. specialize (C (Z.to_nat k)). rewrite in_seq in C.
  replace (Z.to_nat (k - 1)) with (Z.to_nat k - 1)%nat by lia.
  pose proof (tail_range is_top B (S n) (Z.to_nat k) HB ltac:(lia) ltac:(lia)) as (T1 & T2).
  replace (Z.of_nat n + 1)%Z with (Z.of_nat (S n)) by lia.
  rewrite <- (Z2Nat.id k) at 2 by lia. rewrite target_tail, Rmult_comm by lia.
  apply (within_sound one _ _ _ _ _ _ positive (C ltac:(lia))); try assumption;
    now apply beyond_bounds.
Qed.

Lemma check_inverse_sound d x y Y m : check_inverse pl d (x, y) = true ->
  0 < Y <= IZR y -> IZR x <= m * Y ->
  is_low pl d = true -> 0 <= IZR (inverse (x, y)) /\ 1 <= IZR (inverse (x, y)) * m.
Proof.
  intros C HY HX L. unfold check_inverse in C. rewrite L in C. cbn [negb orb fst snd] in C.
  rewrite andb_true_iff, !Z.leb_le in C. set (q := inverse (x, y)) in *.
  destruct C as (Q & C). apply IZR_le in Q, C. rewrite mult_IZR in C. split; [assumption|].
  assert (IZR q * IZR x <= IZR q * (m * Y)) by now apply Rmult_le_compat_l.
  apply Rmult_le_reg_r with Y; lra.
Qed.

Lemma least_rest_sound b B d :
  (0 < B)%Z -> (0 < w)%Z -> encloses places b (a_to B) -> (0 < own d)%nat ->
  check_inverse pl d (least_rest pl places b d) = true ->
  covers pl d (IZR (inverse (least_rest pl places b d)))
    (1 - target s false B (count d + 1) (count d)).
Proof.
  intros HB HW E O C Lw. unfold count. set (n := length (thresholds d)).
  replace (Z.of_nat n + 1)%Z with (Z.of_nat (S n)) by lia.
  pose proof (power_a b B n E) as (_ & An & _). pose proof (power_a b B (S n) E) as (_ & Ar & Hr).
  pose proof (a_to_lt_1 s s_positive (Z.of_nat (S n) * B) ltac:(nia)) as R1.
  pose proof (IZR_pow_pos (w * (Z.of_nat (own d) - 1)) ltac:(nia)) as P.
  rewrite Rmult_assoc. unfold least_rest in *. fold n in C |- *.
  pose proof (one_pos places places_nonneg) as P1.
  refine (check_inverse_sound d _ _ ((1 - a_to (Z.of_nat (S n) * B)) * IZR one) _ C _ _ Lw).
  - split; [apply Rmult_lt_0_compat; lra|]. rewrite minus_IZR. lra.
  - rewrite mult_IZR, minus_IZR. unfold target.
    set (p := IZR (2 ^ _)) in *. set (ar := a_to (Z.of_nat (S n) * B)) in *.
    set (an := a_to (Z.of_nat n * B)) in *.
    replace ((1 - (1 - an) / (1 - ar)) * p * ((1 - ar) * IZR one))
      with ((an * IZR one - ar * IZR one) * p) by (field; lra).
    apply Rmult_le_compat_r; lra.
Qed.

Lemma check_rest_sound ds : forall B b, (0 < B)%Z -> (0 < w)%Z -> encloses places b (a_to B) ->
  Forall (fun d => (0 < own d)%nat) ds -> check_rest pl places B b ds = true ->
  layout pl s B ds /\ cover pl s B ds (map IZR (inverses_rest pl places b ds)).
Proof.
  induction ds as [|d ds IH]; intros B b HB HW E O C; [split; exact I|].
  cbn [check_rest] in C. rewrite !andb_true_iff, Z.eqb_eq, Z.leb_le in C.
  destruct C as ((((CB & C1) & CN) & CI) & C). inversion O as [|? ? Od Os]; subst.
  set (B := (2 ^ weight_bits d)%Z) in *.
  assert (EN : encloses places (power places b (S (length (thresholds d))))
    (a_to (B * (count d + 1)))).
  { replace (B * (count d + 1))%Z with (Z.of_nat (S (length (thresholds d))) * B)%Z
      by (unfold count; lia). now apply power_a. }
  destruct (IH (B * (count d + 1))%Z _ ltac:(nia) HW EN Os C) as (L & Cv).
  cbn [layout cover inverses_rest map]. split; [split; [now split|]; split|split]; try assumption.
  - now apply (check_near_sound _ b).
  - now apply least_rest_sound.
Qed.

Section First.
Variable a : enclosure.
Hypothesis a_enclosed : encloses places a (a_to 1).
Hypothesis several : (1 <= radix pl)%Z.
Let d := first pl.
Let slot := nth 0 (values w d) 0%Z.
Let g := IZR slot / IZR (2 ^ bits w d).
Let r := (length (thresholds d) - 1)%nat.
Hypothesis w_positive : (0 < w)%Z.
Hypothesis formed : (0 < own d)%nat.
Hypothesis checked : check_first pl places a = true.

Lemma radix_r : radix pl = Z.of_nat r /\ length (thresholds d) = S r /\ (0 < r)%nat.
Proof. unfold r, radix, count in *. fold d in several |- *. lia. Qed.

Lemma a1 : 0 < a_to 1 < 1.
Proof. split; [apply a_to_pos | apply a_to_lt_1; [assumption | lia]]. Qed.

Lemma bits_pos : 0 < IZR (2 ^ bits w d).
Proof. apply IZR_pow_pos. unfold bits. nia. Qed.

Lemma check_first_within k : (k <= r)%nat ->
  within (nth k (values w d) 0%Z - slot) (2 ^ bits w d - slot)
    (product (2 * fst a, 2 * snd a)%Z (complement places (beyond places (alone pl) a r k)))
    (product (one + fst a, one + snd a)%Z
      (complement places (beyond places (alone pl) a r r))) = true.
Proof.
  intros K. pose proof radix_r as (_ & R & R0). unfold check_first in checked.
  rewrite forallb_forall in checked. specialize (checked (S k)). rewrite in_seq in checked.
  fold d in checked. rewrite R in checked. replace (S r - 1)%nat with r in checked by lia.
  replace (S k - 1)%nat with k in checked by lia. apply checked. lia.
Qed.

Lemma check_first_sound : near pl d (first_target pl s g).
Proof.
  intros k K. pose proof radix_r as (R & L & R0). unfold count in K. rewrite L in K.
  set (i := Z.to_nat (k - 1)). unfold first_target. rewrite R.
  replace (k - 1)%Z with (Z.of_nat i) by lia. rewrite (target_tail (alone pl) 1 r i) by lia.
  pose proof (tail_range (alone pl) 1 r i ltac:(lia) ltac:(lia) R0) as (T1 & T2).
  set (n := 1 - tail _ _ _ i) in *. set (m := 1 - tail _ _ _ r) in *.
  pose proof a1 as A. pose proof bits_pos as P. pose proof (one_pos places places_nonneg) as P1.
  destruct a_enclosed as (F & AB). destruct AB as (AL & AH).
  assert (E2 : encloses places (2 * fst a, 2 * snd a)%Z (2 * a_to 1)).
  { split; cbn [fst snd]; [lia|]. unfold bounds. cbn [fst snd]. rewrite !mult_IZR. lra. }
  assert (E1 : encloses places (one + fst a, one + snd a)%Z (1 + a_to 1)).
  { split; cbn [fst snd]; [lia|]. unfold bounds. cbn [fst snd]. rewrite !plus_IZR. lra. }
  pose proof (within_sound (one * one) _ _ _ _ (2 * a_to 1 * n) ((1 + a_to 1) * m) ltac:(nia)
    (check_first_within i ltac:(lia))) as B. rewrite !minus_IZR in B.
  replace (IZR (nth i (values w d) 0%Z)
      - (g + (1 - g) * (1 - p_zero s) * (n / m)) * IZR (2 ^ bits w d))
    with (IZR (nth i (values w d) 0%Z) - IZR slot - (IZR (2 ^ bits w d) - IZR slot)
      * (2 * a_to 1 * n / ((1 + a_to 1) * m)))
    by (unfold g, p_zero; field; lra).
  apply B.
  - apply product_bounds; [assumption | now apply beyond_bounds | lra].
  - apply product_bounds; [assumption | now apply beyond_bounds | lra].
  - split; [apply Rmult_le_pos; lra | apply Rmult_le_compat; lra].
  - apply Rmult_lt_0_compat; lra.
Qed.

Lemma slot_small : 0 <= IZR (2 ^ bits w d) - IZR slot.
Proof.
  pose proof (check_first_within 0 ltac:(lia)) as C. unfold within in C.
  rewrite !andb_true_iff, !Z.leb_le in C. destruct C as (((_ & C) & _) & _).
  apply IZR_le in C. rewrite minus_IZR in C. exact C.
Qed.

Lemma least_first_sound : check_inverse pl d (least_first pl places a) = true ->
  covers pl d (IZR (inverse (least_first pl places a)))
    ((1 - g) * (1 - p_zero s) * (1 - target s false 1 (radix pl) (radix pl - 1)) / 2).
Proof.
  intros C Lw. pose proof radix_r as (R & L & R0). rewrite R.
  replace (Z.of_nat r - 1)%Z with (Z.of_nat (r - 1)) by lia. unfold target. rewrite !Z.mul_1_r.
  pose proof a1 as A. pose proof bits_pos as P. pose proof (one_pos places places_nonneg) as P1.
  pose proof slot_small as SS. destruct a_enclosed as (F & AL & AH).
  pose proof (power_a a 1 (r - 1) a_enclosed) as (_ & Ln & _).
  pose proof (power_a a 1 r a_enclosed) as (_ & Lr & Hr). rewrite !Z.mul_1_r in Ln, Lr, Hr.
  pose proof (a_to_lt_1 s s_positive (Z.of_nat r) ltac:(lia)) as R1.
  pose proof (a_to_le s s_positive (Z.of_nat (r - 1)) (Z.of_nat r) ltac:(lia)) as R2.
  pose proof (IZR_pow_pos (w * (Z.of_nat (own d) - 1)) ltac:(nia)) as PE.
  unfold least_first in *. fold d slot r in C |- *. apply IZR_le in F.
  set (an := a_to (Z.of_nat (r - 1))) in *. set (ar := a_to (Z.of_nat r)) in *.
  rewrite Rmult_assoc.
  refine (check_inverse_sound d _ _
    (IZR (2 ^ bits w d) * ((1 + a_to 1) * IZR one * ((1 - ar) * IZR one))) _ C _ _ Lw).
  - rewrite !mult_IZR, plus_IZR, minus_IZR. split.
    + repeat apply Rmult_lt_0_compat; lra.
    + apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra.
  - rewrite !mult_IZR, !minus_IZR. set (p := IZR (2 ^ (w * _))) in *.
    replace ((1 - g) * (1 - p_zero s) * (1 - (1 - an) / (1 - ar)) / 2 * p
        * (IZR (2 ^ bits w d) * ((1 + a_to 1) * IZR one * ((1 - ar) * IZR one))))
      with ((IZR (2 ^ bits w d) - IZR slot)
        * (a_to 1 * IZR one * (an * IZR one - ar * IZR one)) * p)
      by (unfold g, p_zero; field; lra).
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; [assumption|].
    assert (0 <= (an - ar) * IZR one) by (apply Rmult_le_pos; lra).
    apply Rle_trans with (IZR (fst a) * (an * IZR one - ar * IZR one)).
    + apply Rmult_le_compat_l; lra.
    + apply Rmult_le_compat_r; lra.
Qed.
End First.
End Sound.

(** ** The rest of the checks *)

Lemma ascending_sound l : ascending l = true -> StronglySorted Z.le l.
Proof.
  intros A. apply Sorted_StronglySorted; [exact Z.le_trans|].
  induction l as [|x [|y l] IH]; [constructor | repeat constructor|].
  cbn [ascending] in A. rewrite andb_true_iff, Z.leb_le in A. destruct A as (XY & A).
  constructor; [now apply IH | now constructor].
Qed.

Lemma formed_sound pl d : check_formed pl d = true -> well_formed pl d.
Proof.
  unfold check_formed. rewrite !andb_true_iff, Nat.ltb_lt. intros ((F & A) & O).
  split; [|split; [now apply ascending_sound | assumption]].
  rewrite forallb_forall in F. apply Forall_forall. intros limbs I. specialize (F _ I).
  rewrite andb_true_iff, Nat.eqb_eq, forallb_forall in F. destruct F as (L & F).
  split; [assumption|]. apply Forall_forall. intros t T. specialize (F _ T).
  rewrite andb_true_iff, Z.leb_le, Z.ltb_lt in F. exact F.
Qed.

Lemma lows_map pl ds : forall qs, lows pl ds (map IZR qs) = map IZR (lows pl ds qs).
Proof.
  induction ds as [|d ds IH]; intros [|q qs]; try reflexivity.
  cbn [map lows]. rewrite IH. now destruct (is_low pl d).
Qed.

Lemma total_sound qs : sum (fun x => x) (map IZR qs) = IZR (total qs).
Proof.
  unfold sum. induction qs as [|q qs IH]; [reflexivity|].
  cbn [map fold_right total]. now rewrite IH, plus_IZR.
Qed.

Lemma pairs_sound qs : pairs (map IZR qs) = IZR (total_pairs qs).
Proof.
  induction qs as [|q qs IH]; [reflexivity|]. cbn [map pairs total_pairs].
  now rewrite IH, total_sound, !plus_IZR, !mult_IZR.
Qed.

Lemma units_sound pl : 2 * units pl = IZR (twice_units pl).
Proof.
  unfold units, twice_units. rewrite !INR_IZR_INZ, plus_IZR, !mult_IZR, plus_IZR. field.
Qed.

Lemma inverses_length pl places ds : forall b, length (inverses_rest pl places b ds) = length ds.
Proof. induction ds as [|d ds IH]; intros b; [reflexivity|]. cbn. now rewrite IH. Qed.

Lemma a_enclosure_sound c n : (0 <= places_of c)%Z -> (0 < fst (sampled_rate c))%Z ->
  (0 < snd (sampled_rate c))%Z -> (0 <= n)%Z ->
  encloses (places_of c) (a_enclosure c n) (a_to (fraction (sampled_rate c)) n).
Proof.
  intros O N D P. unfold a_to, fraction.
  replace (- (IZR (fst (sampled_rate c)) / IZR (snd (sampled_rate c))) * IZR n)
    with (- (IZR (fst (sampled_rate c) * n) / IZR (snd (sampled_rate c)))).
  - apply exp_encloses; nia.
  - rewrite mult_IZR. field. apply not_0_IZR. lia.
Qed.

(** [(c - 1) / (c + 1)] for [c = exp rate] is at least its value at a smaller rate. *)
Lemma tanh_le rate s : s <= rate ->
  (1 - a_to s 1) / (1 + a_to s 1) <= (exp rate - 1) / (exp rate + 1).
Proof.
  intros L. unfold a_to. rewrite Rmult_1_r.
  pose proof (exp_pos (- s)) as P. pose proof (exp_pos rate) as Q.
  assert (E : 1 <= exp rate * exp (- s)).
  { rewrite <- exp_plus. eapply Rle_trans; [|apply exp_ineq1_le]. lra. }
  apply Rmult_le_reg_r with ((1 + exp (- s)) * (exp rate + 1)); [apply Rmult_lt_0_compat; lra|].
  replace ((1 - exp (- s)) / (1 + exp (- s)) * ((1 + exp (- s)) * (exp rate + 1)))
    with ((1 - exp (- s)) * (exp rate + 1)) by (field; lra).
  replace ((exp rate - 1) / (exp rate + 1) * ((1 + exp (- s)) * (exp rate + 1)))
    with ((exp rate - 1) * (1 + exp (- s))) by (field; lra).
  lra.
Qed.

Lemma fraction_le p q : (0 < snd p)%Z -> (0 < snd q)%Z ->
  (fst p * snd q <= fst q * snd p)%Z -> fraction p <= fraction q.
Proof.
  intros P Q L. unfold fraction. apply IZR_lt in P, Q. apply IZR_le in L.
  rewrite !mult_IZR in L. apply Rmult_le_reg_r with (IZR (snd p) * IZR (snd q)).
  - now apply Rmult_lt_0_compat.
  - replace (IZR (fst p) / IZR (snd p) * (IZR (snd p) * IZR (snd q)))
      with (IZR (fst p) * IZR (snd q)) by (field; lra).
    replace (IZR (fst q) / IZR (snd q) * (IZR (snd p) * IZR (snd q)))
      with (IZR (fst q) * IZR (snd p)) by (field; lra). exact L.
Qed.

(** Each hypothesis of [certified], from the comparison of integers that implies it. *)
Theorem check_sound c : check c = true ->
  certified (plan_of c) (fraction (nominal_rate c)) (fraction (sampled_rate c)) (floor_of c)
    (delta_of c) (map IZR (inverses_of c)).
Proof.
  unfold check, inverses_of.
  pose proof (a_enclosure_sound c) as AE.
  unfold floor_of, delta_of.
  destruct c as [pl [rn rd] [sn sd] floor delta]. cbn [plan_of nominal_rate sampled_rate] in *.
  set (c := Certificate _ _ _ _ _) in *. change (floor_units c) with floor in *.
  change (delta_units c) with delta in *.
  set (places := places_of c) in *. set (one := Z.shiftl 1 places) in *.
  set (a := a_enclosure c 1) in *.
  set (s := fraction (sn, sd)) in *. set (rate := fraction (rn, rd)).
  set (qs := inverse (least_first pl places a) :: _).
  rewrite !andb_true_iff, !orb_true_iff, !Z.leb_le, !Z.ltb_lt, !Z.eqb_eq.
  intros (((((((((((((((((((((((Hw & Hw') & Hv) & Hv') & Hr) & Hr') & Hf) & Hrad) & Hov) & Ho) &
    Hrd) & Hsn) & Hsd) & CF) & CI) & CR) & Re) & To) & Pa) & D0) & Sl) & De) & Fl) & La).
  cbn [fst snd] in AE.
  specialize (fun n => AE n Ho Hsn Hsd).
  pose proof (one_pos places Ho : 0 < IZR one) as P1.
  assert (S0 : 0 < s).
  { unfold s, fraction. apply IZR_lt in Hsn, Hsd. apply Rdiv_lt_0_compat; assumption. }
  set (w := limb_bits pl) in *. set (d := first pl) in *.
  assert (F : Forall (well_formed pl) (d :: rest pl)).
  { rewrite forallb_forall in Hf. apply Forall_forall. intros x X. now apply formed_sound, Hf. }
  pose proof (Forall_inv F) as Fd. pose proof (Forall_inv_tail F) as Fs.
  assert (Od : (0 < own d)%nat) by apply Fd.
  assert (Os : Forall (fun d => (0 < own d)%nat) (rest pl)).
  { eapply Forall_impl; [|exact Fs]. intros x X. apply X. }
  pose proof (AE 1%Z ltac:(lia)) as Ea. fold a in Ea.
  set (b := power places a (Z.to_nat (radix pl))) in *.
  assert (Eb : encloses places b (a_to s (radix pl))).
  { replace (radix pl) with (Z.of_nat (Z.to_nat (radix pl)) * 1)%Z at 1 by lia.
    now apply power_a. }
  destruct (check_rest_sound pl places s Ho S0 (rest pl) (radix pl) b ltac:(lia) ltac:(lia) Eb Os
    CR) as (LA & CV).
  assert (Kd : 0 < IZR (2 ^ bits w d)) by (apply IZR_pow_pos; unfold bits; nia).
  assert (Kt : (0 <= bits w (top pl))%Z) by (unfold bits; nia).
  assert (W2 : 0 < IZR (2 ^ (2 * w))) by (apply IZR_pow_pos; lia).
  assert (Dl : IZR delta / IZR (2 ^ (2 * w)) * IZR (2 ^ (2 * w)) = IZR delta) by (field; lra).
  assert (Slk : 3 * (IZR delta / IZR (2 ^ (2 * w))) <= rate - s).
  { apply IZR_le in Sl. rewrite !mult_IZR, minus_IZR, !mult_IZR in Sl.
    apply IZR_lt in Hrd, Hsd. unfold rate, s, fraction. cbn [fst snd].
    apply Rmult_le_reg_r with (IZR (2 ^ (2 * w)) * (IZR rd * IZR sd)).
    - repeat apply Rmult_lt_0_compat; assumption.
    - replace (3 * (IZR delta / IZR (2 ^ (2 * w))) * (IZR (2 ^ (2 * w)) * (IZR rd * IZR sd)))
        with (3 * IZR delta * IZR rd * IZR sd) by (field; lra).
      replace ((IZR rn / IZR rd - IZR sn / IZR sd) * (IZR (2 ^ (2 * w)) * (IZR rd * IZR sd)))
        with ((IZR rn * IZR sd - IZR sn * IZR rd) * IZR (2 ^ (2 * w))) by (field; lra).
      exact Sl. }
  constructor; fold w d; try assumption; try lia.
  - subst floor. now apply (check_first_sound pl places s Ho S0 a Ea Hrad ltac:(lia) Od CF).
  - subst floor. field. lra.
  - destruct Re as [Re|Re]; [now left | right].
    assert (C0 : (0 <= censored pl)%Z).
    { unfold censored. destruct (alone pl); [lia|]. unfold count.
      pose proof (Z.pow_nonneg 2 (weight_bits (top pl)) ltac:(lia)). nia. }
    destruct (AE (censored pl) C0) as (_ & _ & U). change (Z.shiftl 1 places) with one in U.
    apply IZR_le in Re. rewrite mult_IZR in Re.
    pose proof (IZR_pow_pos (bits w (top pl) + 2) ltac:(lia)) as PK.
    apply Rmult_le_reg_r with (IZR one); [assumption|].
    rewrite Rmult_1_l. eapply Rle_trans; [|exact Re].
    replace (a_to s (censored pl) * IZR (2 ^ (bits w (top pl) + 2)) * IZR one)
      with (a_to s (censored pl) * IZR one * IZR (2 ^ (bits w (top pl) + 2))) by ring.
    apply Rmult_le_compat_r; lra.
  - subst floor. cbn [map hd].
    now apply (least_first_sound pl places s Ho S0 a Ea Hrad ltac:(lia) Od CF CI).
  - unfold qs. rewrite map_length. cbn [length]. now rewrite inverses_length.
  - rewrite lows_map, total_sound. apply IZR_le in To. now rewrite mult_IZR in To.
  - rewrite lows_map, pairs_sound, Dl. now apply IZR_le.
  - apply Rmult_le_reg_r with (IZR (2 ^ (2 * w))); [assumption|]. rewrite Dl.
    apply IZR_le in De. rewrite mult_IZR in De. lra.
  - set (slot := nth 0 (values w d) 0%Z) in *. subst floor.
    assert (S1 : (0 <= slot)%Z).
    { unfold slot, d. apply (threshold_range pl ltac:(lia) (first pl) Fd 0).
      unfold radix, count in Hrad. lia. }
    assert (L : s <= rate).
    { apply IZR_le in D0. assert (0 <= IZR delta / IZR (2 ^ (2 * w))); [|lra].
      apply Rmult_le_pos; [assumption | left; now apply Rinv_0_lt_compat]. }
    pose proof (a_to_pos s 1) as A0. pose proof (units_sound pl) as US.
    assert (U0 : (0 <= twice_units pl)%Z) by (unfold twice_units; nia).
    assert (V0 : 0 < IZR (2 ^ value_bits pl)) by (apply IZR_pow_pos; lia).
    pose proof (IZR_pow_pos _ Kt) as PK. apply IZR_le in U0, S1, La.
    rewrite !mult_IZR, plus_IZR, minus_IZR in La. destruct Ea as (_ & _ & H).
    change (Z.shiftl 1 places) with one in H.
    set (u := IZR (twice_units pl)) in *. set (V := IZR (2 ^ value_bits pl)) in *.
    set (D := IZR (2 ^ bits w d)) in *. set (T := IZR (2 ^ bits w (top pl))) in *.
    set (h := IZR (snd a)) in *. set (a1 := a_to s 1) in *.
    replace (units pl) with (u / 2) by lra.
    apply Rle_trans with (IZR slot / D / V * ((1 - a1) / (1 + a1))).
    + apply Rmult_le_reg_r with (2 * T * D * V * ((1 + a1) * IZR one)).
      { repeat apply Rmult_lt_0_compat; lra. }
      replace (u / 2 / T * (2 * T * D * V * ((1 + a1) * IZR one)))
        with (u * V * D * ((1 + a1) * IZR one)) by (field; lra).
      replace (IZR slot / D / V * ((1 - a1) / (1 + a1)) * (2 * T * D * V * ((1 + a1) * IZR one)))
        with (2 * IZR slot * T * ((1 - a1) * IZR one)) by (field; lra).
      apply Rle_trans with (u * V * D * (IZR one + h)).
      * apply Rmult_le_compat_l; [repeat apply Rmult_le_pos; lra | lra].
      * eapply Rle_trans; [exact La|].
        apply Rmult_le_compat_l; [repeat apply Rmult_le_pos; lra | lra].
    + apply Rmult_le_compat_l; [|now apply tanh_le].
      repeat apply Rmult_le_pos; try lra; left; now apply Rinv_0_lt_compat.
Qed.

Theorem checked_errors_are_small c : check c = true -> check_small c = true ->
  3 * delta_of c * IZR (2 ^ 54) <= Rmin 1 (fraction (nominal_rate c))
  /\ floor_of c * IZR (2 ^ 52) <= 1.
Proof.
  intros C S. pose proof (check_sound c C) as Cd.
  pose proof (widths _ _ _ _ _ _ Cd) as W.
  assert (Rd : (0 < snd (nominal_rate c))%Z).
  { unfold check in C. destruct (nominal_rate c), (sampled_rate c).
    rewrite !andb_true_iff, !Z.ltb_lt in C. tauto. }
  unfold check_small in S. destruct c as [pl [rn rd] sampled floor delta].
  unfold floor_of, delta_of, fraction in *.
  cbn [plan_of nominal_rate floor_units delta_units fst snd] in *.
  rewrite !andb_true_iff, !Z.leb_le in S. destruct S as ((S1 & S2) & S3).
  set (w := limb_bits pl) in *.
  assert (P : 0 < IZR (2 ^ (2 * w))) by (apply IZR_pow_pos; lia).
  assert (Q : 0 < IZR (2 ^ bits w (first pl))) by (apply IZR_pow_pos; unfold bits; nia).
  apply IZR_lt in Rd. apply IZR_le in S1, S2, S3.
  rewrite !mult_IZR in S1. rewrite !mult_IZR in S2. rewrite !mult_IZR in S3.
  set (t := IZR (2 ^ 54)) in *. set (u := IZR (2 ^ 52)) in *. split.
  - replace (3 * (IZR delta / IZR (2 ^ (2 * w))) * t)
      with (3 * t * IZR delta / IZR (2 ^ (2 * w))) by (field; lra).
    apply Rmin_glb; apply Rmult_le_reg_r with (IZR (2 ^ (2 * w))); try assumption.
    + replace (3 * t * IZR delta / IZR (2 ^ (2 * w)) * IZR (2 ^ (2 * w)))
        with (3 * t * IZR delta) by (field; lra). lra.
    + apply Rmult_le_reg_r with (IZR rd); [assumption|].
      replace (3 * t * IZR delta / IZR (2 ^ (2 * w)) * IZR (2 ^ (2 * w)) * IZR rd)
        with (3 * t * IZR delta * IZR rd) by (field; lra).
      replace (IZR rn / IZR rd * IZR (2 ^ (2 * w)) * IZR rd)
        with (IZR rn * IZR (2 ^ (2 * w))) by (field; lra). assumption.
  - apply Rmult_le_reg_r with (IZR (2 ^ bits w (first pl))); [assumption|].
    replace (IZR floor / IZR (2 ^ bits w (first pl)) * u * IZR (2 ^ bits w (first pl)))
      with (u * IZR floor) by (field; lra). lra.
Qed.

(** ** A checked certificate's draw is private at its nominal rate *)

Theorem checked_draw_is_private c : check c = true ->
  forall x x' y, (0 <= x <= range (plan_of c))%Z -> (0 <= x' <= range (plan_of c))%Z ->
  prob (plan_of c) y x
  <= exp (fraction (nominal_rate c) * IZR (Z.abs (x - x'))) * prob (plan_of c) y x'.
Proof. intros C. exact (draw_is_private _ _ _ _ _ _ (check_sound c C)). Qed.

Theorem checked_release_is_private c : check c = true ->
  forall lower xs xs' ys, length xs = length xs' ->
  release_prob (plan_of c) lower ys xs
  <= exp (fraction (nominal_rate c) * IZR (distance xs xs'))
    * release_prob (plan_of c) lower ys xs'.
Proof. intros C. exact (release_is_private _ _ _ _ _ _ (check_sound c C)). Qed.
