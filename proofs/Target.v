(** The targets of an output's boxes add up to the target distribution. *)
From Geomdp Require Export Outputs.
Open Scope R_scope.

Section Target.
Variables (pl : plan) (sampled g : R).
Hypothesis sampled_positive : 0 < sampled.
Hypothesis g_range : 0 <= g <= 1.
Notation a_to := (a_to sampled).
Notation target := (target sampled).
Let a := a_to 1.
Let r0 := radix pl.
Let rs := radices pl.
Let r := range pl.
Hypothesis r0_pos : (1 <= r0)%Z.
Hypothesis r_pos : (1 <= r)%Z.
Hypothesis rest_pos : positive rs.
Hypothesis top_pos : alone pl = false -> (1 <= last_place rs)%Z.

(** Digit 0's targets, from the floor's slot on. *)
Definition target0 (i : Z) : R :=
  if (i <=? 0)%Z then 0 else if (r0 + 1 <? i)%Z then 1 else first_target pl sampled g i.

Definition mass0 (e : event0) : R :=
  let '((lo0, hi0), (lo1, hi1)) := e in
  (target0 hi0 - target0 lo0 + (target0 hi1 - target0 lo1)) / 2.

Definition box_mass (eb : event0 * box) : R := mass0 (fst eb) * mass sampled r0 rs (snd eb).

(** The target distribution: two-sided geometric noise, clamped. *)
Definition mu (y x : Z) : R :=
  if (y =? r)%Z then a_to (r - x) / (1 + a)
  else if (y =? 0)%Z then a_to x / (1 + a)
  else (1 - a) / (1 + a) * a_to (Z.abs (y - x)).

(** The probability of each direction, outside of the floor. *)
Definition direction (falls : bool) : R := (1 - g) * (if falls then a / (1 + a) else 1 / (1 + a)).

Lemma a_range : 0 < a < 1.
Proof. split; [apply a_to_pos | apply a_to_lt_1; [assumption | lia]]. Qed.

Lemma rises_twice : (1 - g) * (1 - p_zero sampled) / 2 = direction true.
Proof. unfold p_zero, direction. fold a. pose proof a_range. field. lra. Qed.

(** [target0] at a value: the cut below value [k] of digit 0. *)
Lemma target0_value k : (0 <= k <= r0)%Z ->
  target0 (k + 1) = g + 2 * direction true * target (alone pl) 1 r0 k.
Proof.
  intros K. unfold target0. destruct (Z.leb_spec (k + 1) 0); [lia|].
  destruct (Z.ltb_spec (r0 + 1) (k + 1)); [lia|]. unfold first_target. fold r0.
  rewrite <- rises_twice. replace (k + 1 - 1)%Z with k by lia. lra.
Qed.

Lemma target0_zero : target0 0 = 0. Proof. reflexivity. Qed.
Lemma target0_slot : target0 1 = g.
Proof. change 1%Z with (0 + 1)%Z. rewrite target0_value, target_0 by lia. lra. Qed.
Lemma target0_values : target0 (r0 + 1) = g + 2 * direction true.
Proof. rewrite target0_value, target_last by (assumption || lia). lra. Qed.
Lemma target0_all : target0 (r0 + 2) = 1.
Proof.
  unfold target0. destruct (Z.leb_spec (r0 + 2) 0); [lia|].
  destruct (Z.ltb_spec (r0 + 1) (r0 + 2)); [reflexivity | lia].
Qed.

Lemma target0_at k : (1 <= k <= r0 + 1)%Z ->
  target0 k = g + 2 * direction true * target (alone pl) 1 r0 (k - 1).
Proof. intros K. rewrite <- target0_value by lia. f_equal. lia. Qed.

Lemma directions : direction false + direction true = 1 - g.
Proof. unfold direction. pose proof a_range. field. lra. Qed.

Lemma a_times : direction true = a * direction false.
Proof. unfold direction. pose proof a_range. field. lra. Qed.

Lemma a_to_S k : a_to (k + 1) = a_to k * a.
Proof. unfold a. apply a_to_add. Qed.

Lemma direction_range falls : 0 <= direction falls <= 1.
Proof.
  pose proof a_range. pose proof directions. pose proof a_times.
  assert (0 <= direction false).
  { unfold direction. apply Rmult_le_pos; [lra|].
    left. apply Rmult_lt_0_compat; [lra | apply Rinv_0_lt_compat; lra]. }
  destruct falls; split; nra.
Qed.

(** ** Several digits *)
Section Several.
Hypothesis several : alone pl = false.
Let c := (r0 * last_place rs)%Z.

Lemma rs_nonempty : rs <> [].
Proof. unfold rs, radices, alone in *. destruct (rest pl); discriminate. Qed.

Lemma target_false k : target false 1 r0 k = (1 - a_to k) / (1 - a_to r0).
Proof. unfold Statement.target. now rewrite !Z.mul_1_r. Qed.

Lemma a_r0 : 0 < 1 - a_to r0.
Proof. pose proof (a_to_lt_1 sampled sampled_positive r0 ltac:(lia)). lra. Qed.

Lemma mass_whole falls : mass0 (whole pl falls) = direction falls.
Proof.
  unfold mass0, whole, none. fold r0. pose proof directions. destruct falls.
  - rewrite target0_slot, target0_values, target0_zero. lra.
  - rewrite target0_slot, target0_values, target0_all. lra.
Qed.

Lemma mass_single falls k : (0 <= k < r0)%Z ->
  mass0 (single pl falls k) = direction falls * (a_to k * (1 - a) / (1 - a_to r0)).
Proof.
  intros K. pose proof a_r0. pose proof a_range as A. unfold mass0, single, zero, none. fold r0.
  destruct falls; [|destruct (Z.eqb_spec k 0) as [->|N]].
  - rewrite target0_zero, !target0_at, several, !target_false by lia.
    replace (k + 2 - 1)%Z with (k + 1)%Z by lia. replace (k + 1 - 1)%Z with k by lia.
    rewrite a_to_S. field. lra.
  - rewrite target0_values, target0_all, target0_at, several, target_false by lia.
    pose proof directions as D. pose proof a_times as T.
    assert (E : a_to r0 = a_to (r0 - 1) * a) by (rewrite <- a_to_S; f_equal; lia).
    rewrite a_to_0. rewrite E in *.
    assert (G : g = 1 - direction false - direction true) by lra. rewrite G, T. field. lra.
  - rewrite target0_zero, !target0_at, several, !target_false by lia.
    replace (k + 1 - 1)%Z with k by lia.
    assert (E : a_to k = a_to (k - 1) * a) by (rewrite <- a_to_S; f_equal; lia).
    rewrite E, a_times. field. lra.
Qed.

Lemma mass_above falls k : (0 <= k < r0)%Z ->
  mass0 (above pl falls k) = direction falls * ((a_to (k + 1) - a_to r0) / (1 - a_to r0)).
Proof.
  intros K. pose proof a_r0. unfold mass0, above, none. fold r0. destruct falls.
  - rewrite target0_zero, !target0_at, several, !target_false by lia.
    replace (r0 + 1 - 1)%Z with r0 by lia. replace (k + 2 - 1)%Z with (k + 1)%Z by lia. field. lra.
  - rewrite target0_zero, !target0_at, several, !target_false by lia.
    replace (k + 1 - 1)%Z with k by lia. rewrite a_to_S.
    assert (E : a_to r0 = a_to (r0 - 1) * a) by (rewrite <- a_to_S; f_equal; lia).
    rewrite E, a_times in *. field. lra.
Qed.

Lemma place k : (0 <= k < c)%Z -> (0 <= k / r0 < last_place rs)%Z.
Proof. intros K. split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]. Qed.

Lemma exactly_mass falls k : (0 <= k < c)%Z ->
  sum box_mass (exactly pl falls k) = direction falls * (a_to k * (1 - a)).
Proof.
  intros K. unfold exactly, sum, box_mass. cbn [fold_right fst snd]. rewrite Rplus_0_r.
  fold r0 rs. pose proof (Z.mod_pos_bound k r0 ltac:(lia)). pose proof a_r0.
  rewrite mass_single, mass_equal by
    (apply rs_nonempty || lia || assumption || now apply place).
  rewrite <- (mod_div k r0) at 3 by lia.
  replace (k mod r0 + r0 * (k / r0))%Z with (k mod r0 + k / r0 * r0)%Z by ring.
  rewrite a_to_add. field. lra.
Qed.

Lemma tail_mass falls k : (0 <= k <= c)%Z ->
  sum box_mass (tail pl falls k) = direction falls * a_to k.
Proof.
  intros K. unfold tail. destruct (Z.eqb_spec k 0) as [->|N].
  - unfold sum, box_mass. cbn [fold_right fst snd]. fold r0 rs.
    rewrite mass_whole, mass_full, a_to_0 by (assumption || lia). lra.
  - fold r0 rs. rewrite sum_app, sum_map. unfold box_mass at 1. cbn [fst snd].
    rewrite sum_scale, mass_whole, mass_greater by
      (apply rs_nonempty || lia || assumption || (apply place; lia)).
    unfold sum, box_mass. cbn [fold_right fst snd]. rewrite Rplus_0_r. fold r0 rs.
    pose proof (Z.mod_pos_bound (k - 1) r0 ltac:(lia)). pose proof a_r0.
    rewrite mass_above, mass_equal by
      (apply rs_nonempty || lia || assumption || (apply place; lia)).
    replace (a_to k) with (a_to ((k - 1) mod r0 + 1) * a_to ((k - 1) / r0 * r0)).
    2: { rewrite <- a_to_add. f_equal. pose proof (mod_div (k - 1) r0 ltac:(lia)). lia. }
    replace (((k - 1) / r0 + 1) * r0)%Z with ((k - 1) / r0 * r0 + r0)%Z by ring.
    rewrite (a_to_add _ _ r0). field. lra.
Qed.
End Several.

(** ** Both shapes *)

(** The censored value. *)
Let c := (if alone pl then r0 - 1 else r0 * last_place rs)%Z.
Variable e : R.
Hypothesis e_ge0 : 0 <= e.
Hypothesis reach_enough : (r <= c)%Z \/ a_to c <= e.

Lemma near_far u v d : 0 <= d <= 1 -> 0 <= u <= a_to c -> 0 <= v <= a_to c -> (c < r)%Z ->
  Rabs (d * u - d * v) <= e.
Proof.
  intros D U V L. destruct reach_enough as [|B]; [lia|].
  apply Rabs_le. split; nra.
Qed.

Lemma mu_rises y x : (0 <= x)%Z -> (x <= y < r)%Z -> (y <> 0)%Z ->
  (1 - g) * mu y x = direction false * (a_to (y - x) * (1 - a)).
Proof.
  intros X Y N. unfold mu, direction. destruct (Z.eqb_spec y r), (Z.eqb_spec y 0); try lia.
  rewrite Z.abs_eq by lia. pose proof a_range. field. lra.
Qed.

Lemma mu_falls y x : (0 < y < x)%Z -> (x <= r)%Z ->
  (1 - g) * mu y x = direction true * (a_to (x - 1 - y) * (1 - a)).
Proof.
  intros Y X. unfold mu, direction. destruct (Z.eqb_spec y r), (Z.eqb_spec y 0); try lia.
  rewrite Z.abs_neq by lia. replace (- (y - x))%Z with (x - 1 - y + 1)%Z by lia. rewrite a_to_S.
  pose proof a_range. field. lra.
Qed.

Lemma mu_top x : (1 - g) * mu r x = direction false * a_to (r - x).
Proof. unfold mu, direction. rewrite Z.eqb_refl. pose proof a_range. field. lra. Qed.

Lemma mu_bottom x : (1 <= x)%Z -> (1 - g) * mu 0 x = direction true * a_to (x - 1).
Proof.
  intros X. unfold mu, direction. destruct (Z.eqb_spec 0 r); [lia|]. cbn [Z.eqb].
  replace x with (x - 1 + 1)%Z at 1 by lia. rewrite a_to_S. pose proof a_range. field. lra.
Qed.

Lemma mu_stays : (1 - g) * mu 0 0 = direction false * (1 - a) + direction true.
Proof.
  unfold mu, direction. destruct (Z.eqb_spec 0 r); [lia|]. cbn [Z.eqb].
  rewrite a_to_0. pose proof a_range. field. lra.
Qed.

Lemma beyond t : (c <= t)%Z -> 0 <= a_to t <= a_to c.
Proof. intros T. split; [left; apply a_to_pos | now apply a_to_le]. Qed.

Lemma beyond_one t : (c <= t)%Z -> 0 <= a_to t * (1 - a) <= a_to c.
Proof. intros T. pose proof (beyond t T). pose proof a_range. split; nra. Qed.

Lemma same u v : u = v -> Rabs (u - v) <= e.
Proof. intros ->. rewrite Rminus_diag_eq, Rabs_R0; [assumption | reflexivity]. Qed.

Lemma missing d v : 0 <= d <= 1 -> 0 <= v <= a_to c -> (c < r)%Z -> Rabs (0 - d * v) <= e.
Proof.
  intros D V L. replace 0 with (d * 0) by ring. apply near_far; try assumption.
  split; [lra|]. left. apply a_to_pos.
Qed.

Theorem boxes_mass x y : (0 <= x <= r)%Z -> (0 <= y <= r)%Z ->
  Rabs (sum box_mass (boxes pl x y) - (1 - g) * mu y x) <= e.
Proof.
  intros X Y. unfold boxes. pose proof (direction_range true) as DT.
  pose proof (direction_range false) as DF. pose proof a_range as A.
  assert (AL : alone pl = true \/ alone pl = false) by (destruct (alone pl); tauto).
  destruct AL as [AL|AL]; rewrite AL.
  - (* a single digit *)
    assert (C : c = (r0 - 1)%Z) by (unfold c; now rewrite AL).
    assert (RS : rs = []) by (unfold rs, radices, alone in *; now destruct (rest pl)).
    assert (BM : forall ev, sum box_mass (only ev) = mass0 ev).
    { intros. unfold only, sum, box_mass. cbn [fold_right fst snd]. rewrite RS. cbn [mass]. ring. }
    assert (TT : forall k, (0 <= k < r0)%Z -> target true 1 r0 k = 1 - a_to k).
    { intros k K. unfold Statement.target. rewrite (proj2 (Z.ltb_lt _ _)), Z.mul_1_r by lia. ring. }
    assert (TL : target true 1 r0 r0 = 1) by (apply target_last; assumption || lia).
    assert (ST : sum box_mass (boxes_alone pl x y)
      = sum box_mass (ups_alone pl x y ++ downs_alone pl x y)).
    { unfold boxes_alone. destruct (Z.eqb_spec x 0) as [->|]; [|reflexivity].
      destruct (Z.eqb_spec y 0) as [->|]; [|reflexivity]. cbn [andb].
      rewrite sum_app. unfold ups_alone, downs_alone. fold r r0.
      destruct (Z.eqb_spec 0 r); [lia|]. cbn [Z.eqb Z.sub Z.opp Z.add].
      rewrite !BM. unfold mass0, stays, none. fold r0.
      replace (Z.min (Z.max (-1) 0) r0) with 0%Z by lia. cbn [Z.add]. rewrite target0_zero. field. }
    rewrite ST, sum_app. unfold ups_alone, downs_alone. fold r r0.
    destruct (Z.eqb_spec y r) as [->|NR].
    + destruct (Z.eqb_spec r 0); [lia|].
      destruct (Z.leb_spec 0 (x - 1 - r)); [lia|]. cbn [andb]. change (sum box_mass []) with 0.
      rewrite Rplus_0_r, BM, mu_top. destruct (Z.eqb_spec (r - x) 0) as [E|N].
      * rewrite E, a_to_0, mass_whole. apply same. ring.
      * unfold mass0, none. rewrite target0_zero, target0_values.
        destruct (Z.le_gt_cases (r - x) r0).
        { rewrite Z.min_l, target0_at, AL, TT by lia. apply same.
          replace (r - x)%Z with (r - x - 1 + 1)%Z at 2 by lia. rewrite a_to_S, a_times. field. }
        rewrite Z.min_r, target0_values by lia.
        match goal with |- Rabs (?u - _) <= _ => replace u with 0 by field end.
        apply missing; [assumption | apply beyond; rewrite C; lia | rewrite C; lia].
    + destruct (Z.eqb_spec y 0) as [->|N0].
      * destruct (Z.eqb_spec (0 - x) 0) as [E|N].
        { replace x with 0%Z by lia. rewrite !BM, mu_stays. unfold mass0, none.
          replace (Z.max (0 - 1 - 0) 0) with 0%Z by lia. rewrite Z.min_l by lia. cbn [Z.add].
          rewrite target0_slot, target0_values, target0_all, target0_zero.
          apply same. pose proof directions. pose proof a_times. lra. }
        destruct (Z.ltb_spec 0 (0 - x)); [lia|]. cbn [andb]. change (sum box_mass []) with 0.
        rewrite Rplus_0_l, BM, mu_bottom by lia. unfold mass0, none.
        rewrite Z.max_l, target0_zero, target0_values by lia.
        replace (x - 1 - 0)%Z with (x - 1)%Z by lia.
        destruct (Z.lt_ge_cases (x - 1) r0).
        { rewrite Z.min_l, target0_value, AL, TT by lia. apply same. field. }
        rewrite Z.min_r, target0_values by lia.
        match goal with |- Rabs (?u - _) <= _ => replace u with 0 by field end.
        apply missing; [assumption | apply beyond; rewrite C; lia | rewrite C; lia].
      * destruct (Z.eqb_spec (y - x) 0) as [E|N].
        { replace x with y by lia. destruct (Z.leb_spec 0 (y - 1 - y)); [lia|].
          cbn [andb]. change (sum box_mass []) with 0. rewrite Rplus_0_r, BM, mu_rises by lia.
          unfold mass0. rewrite target0_values, target0_all. rewrite Z.sub_diag, a_to_0.
          apply same. pose proof directions. pose proof a_times. lra. }
        destruct (Z.ltb_spec 0 (y - x)).
        { destruct (Z.leb_spec 0 (x - 1 - y)); [lia|]. cbn [andb]. change (sum box_mass []) with 0.
          rewrite Rplus_0_r, mu_rises by lia.
          assert (AY : a_to (y - x) = a_to (y - x - 1) * a) by (rewrite <- a_to_S; f_equal; lia).
          destruct (Z.leb_spec (y - x) r0).
          - rewrite BM. unfold mass0, none.
            rewrite target0_zero, target0_value, target0_at, AL by lia.
            rewrite (TT (y - x - 1)%Z) by lia. destruct (Z.eq_dec (y - x) r0) as [ER|NE].
            + rewrite ER in *. rewrite TL.
              match goal with |- Rabs (?u - _) <= _ =>
                replace u with (direction false * a_to r0) by (rewrite AY, a_times; field) end.
              apply near_far; [assumption | apply beyond; rewrite C; lia
                | apply beyond_one; rewrite C; lia | rewrite C; lia].
            + rewrite TT by lia. apply same. rewrite AY, a_times. field.
          - change (sum box_mass []) with 0.
            apply missing; [assumption | apply beyond_one; rewrite C; lia | rewrite C; lia]. }
        cbn [andb]. change (sum box_mass []) with 0. rewrite Rplus_0_l.
        destruct (Z.leb_spec 0 (x - 1 - y)); [|lia]. cbn [andb]. rewrite mu_falls by lia.
        destruct (Z.ltb_spec (x - 1 - y) r0).
        { rewrite BM. unfold mass0, none. rewrite target0_zero.
          replace (x - 1 - y + 2)%Z with (x - 1 - y + 1 + 1)%Z by lia.
          rewrite !target0_value, AL, (TT (x - 1 - y)%Z) by lia.
          destruct (Z.eq_dec (x - 1 - y + 1) r0) as [ER|NE].
          - rewrite ER, TL.
            match goal with |- Rabs (?u - _) <= _ =>
              replace u with (direction true * a_to (x - 1 - y)) by field end.
            apply near_far; [assumption | apply beyond; rewrite C; lia
              | apply beyond_one; rewrite C; lia | rewrite C; lia].
          - rewrite TT, a_to_S by lia. apply same. field. }
        change (sum box_mass []) with 0.
        apply missing; [assumption | apply beyond_one; rewrite C; lia | rewrite C; lia].
  - (* several digits *)
    rewrite sum_app. unfold ups, downs. fold r r0 rs.
    assert (C : c = (r0 * last_place rs)%Z) by (unfold c; now rewrite AL).
    assert (C1 : (1 <= c)%Z) by (pose proof (top_pos AL); nia).
    destruct (Z.eqb_spec y r) as [->|NR].
    + destruct (Z.eqb_spec r 0); [lia|]. destruct (Z.ltb_spec r x); [lia|]. cbn [andb].
      change (sum box_mass []) with 0.
      rewrite Rplus_0_r, mu_top, <- C, tail_mass by (assumption || lia).
      destruct (Z.le_gt_cases (r - x) c).
      * rewrite Z.min_l by lia. now apply same.
      * rewrite Z.min_r by lia. apply near_far; [assumption | apply beyond; lia
          | apply beyond; lia | lia].
    + rewrite <- C. destruct (Z.eqb_spec y 0) as [->|N0].
      * destruct (Z.eq_dec x 0) as [->|X0].
        { cbn [Z.leb Z.compare andb Z.sub Z.opp Z.add]. destruct (Z.ltb_spec 0 c); [|lia].
          rewrite exactly_mass, tail_mass by (assumption || lia).
          replace (Z.min (Z.max (-1) 0) c) with 0%Z by lia.
          rewrite a_to_0, mu_stays. apply same. ring. }
        destruct (Z.leb_spec x 0); [lia|]. cbn [andb]. change (sum box_mass []) with 0.
        rewrite Rplus_0_l, mu_bottom, tail_mass by (assumption || lia). rewrite Z.max_l by lia.
        destruct (Z.le_gt_cases (x - 1) c).
        { rewrite Z.min_l by lia. now apply same. }
        rewrite Z.min_r by lia. apply near_far; [assumption | apply beyond; lia
          | apply beyond; lia | lia].
      * destruct (Z.leb_spec x y).
        { destruct (Z.ltb_spec y x); [lia|]. cbn [andb]. change (sum box_mass []) with 0.
          rewrite Rplus_0_r, mu_rises by lia. destruct (Z.ltb_spec (y - x) c).
          - rewrite exactly_mass by (assumption || lia). now apply same.
          - change (sum box_mass []) with 0.
            apply missing; [assumption | apply beyond_one; lia | lia]. }
        cbn [andb]. change (sum box_mass []) with 0. rewrite Rplus_0_l, mu_falls by lia.
        destruct (Z.ltb_spec y x); [|lia]. cbn [andb].
        destruct (Z.ltb_spec (x - 1 - y) c).
        { rewrite exactly_mass by (assumption || lia). now apply same. }
        change (sum box_mass []) with 0. apply missing; [assumption | apply beyond_one; lia | lia].
Qed.

(** The target distribution is private at the sampled rate. *)
Lemma mu_private y x x' : (0 <= x <= r)%Z -> (0 <= x' <= r)%Z -> (0 <= y <= r)%Z ->
  0 <= mu y x <= exp (sampled * IZR (Z.abs (x - x'))) * mu y x'.
Proof.
  intros X X' Y. pose proof a_range.
  assert (P : forall m n k, 0 <= k -> (n <= m + Z.abs (x - x'))%Z ->
    0 <= k * a_to m <= exp (sampled * IZR (Z.abs (x - x'))) * (k * a_to n)).
  { intros m n k K M. pose proof (a_to_pos sampled m). split; [apply Rmult_le_pos; lra|].
    replace (exp (sampled * IZR (Z.abs (x - x'))) * (k * a_to n))
      with (k * (exp (sampled * IZR (Z.abs (x - x'))) * a_to n)) by ring.
    apply Rmult_le_compat_l; [assumption|]. unfold Statement.a_to. rewrite <- exp_plus.
    apply IZR_le in M. rewrite plus_IZR in M.
    assert (B : - sampled * IZR m <= sampled * IZR (Z.abs (x - x')) + - sampled * IZR n) by nra.
    destruct (Rle_lt_or_eq_dec _ _ B) as [L| ->]; [left; now apply exp_increasing | lra]. }
  assert (I : 0 < / (1 + a)) by (apply Rinv_0_lt_compat; lra).
  unfold mu. destruct (Z.eqb_spec y r); [|destruct (Z.eqb_spec y 0)]; unfold Rdiv.
  - rewrite !(Rmult_comm _ (/ (1 + a))). apply P; lra || lia.
  - rewrite !(Rmult_comm _ (/ (1 + a))). apply P; lra || lia.
  - apply P; [apply Rmult_le_pos; lra | lia].
Qed.
End Target.
