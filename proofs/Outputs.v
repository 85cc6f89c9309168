(** Which outcomes lead from a count to an output, as boxes; and the target distribution. *)
From Geomdp Require Export Boxes.
Open Scope Z_scope.

(** An event of digit 0: an interval of outcomes for each value of the sign's bit. *)
Definition event0 : Type := (Z * Z) * (Z * Z).
Definition none : Z * Z := (0, 0).
Definition hit (e : event0) (sign o : Z) : bool :=
  let '(i0, i1) := e in
  if sign =? 1 then within (fst i1) (snd i1) o else within (fst i0) (snd i0) o.

Definition hits (eb : event0 * box) (sign o : Z) (os : list Z) : bool :=
  hit (fst eb) sign o && inbox (snd eb) os.

Lemma sum_ind_map {A} (b : bool) (l : list A) (f : A -> bool) :
  sum (fun x => ind (b && f x)) l = (ind b * sum (fun x => ind (f x)) l)%R.
Proof.
  rewrite <- sum_scale. apply sum_ext. intros. apply ind_and.
Qed.

Lemma mixed_last rs os : rs <> [] -> positive rs -> in_radices rs os ->
  (mixed rs os <? last_place rs) = (last os 0 <? last rs 0 - 1).
Proof.
  intros N P. revert os. induction P as [|r rs R P IH]; [congruence|].
  intros [|o os] H; [simpl in H; tauto|]. destruct rs as [|r' rs].
  - destruct os; [|simpl in H; tauto]. cbn [mixed last_place last]. f_equal. lia.
  - destruct H as [O H]. destruct os as [|o' os]; [simpl in H; tauto|].
    change (mixed (r :: r' :: rs) (o :: o' :: os)) with (o + r * mixed (r' :: rs) (o' :: os)).
    change (last_place (r :: r' :: rs)) with (r * last_place (r' :: rs)).
    change (last (r :: r' :: rs) 0) with (last (r' :: rs) 0).
    change (last (o :: o' :: os) 0) with (last (o' :: os) 0).
    rewrite <- IH by (assumption || discriminate).
    generalize (mixed (r' :: rs) (o' :: os)), (last_place (r' :: rs)). intros m p.
    destruct (Z.ltb_spec (o + r * m) (r * p)), (Z.ltb_spec m p); try reflexivity; exfalso; nia.
Qed.

(** Splits on every comparison of integers, those inside others first. *)
Ltac compare_all :=
  repeat match goal with
  | |- context [?x <=? ?y] => simple_pair x y; destruct (Z.leb_spec x y)
  | |- context [?x <? ?y] => simple_pair x y; destruct (Z.ltb_spec x y)
  | |- context [?x =? ?y] => simple_pair x y; destruct (Z.eqb_spec x y)
  end; cbn [andb orb negb Bool.eqb]
with simple_pair x y :=
  lazymatch constr:((x, y)) with context [if _ then _ else _] => fail | _ => idtac end.
Ltac cases := compare_all; try reflexivity; exfalso; lia.

Section Outputs.
Variable pl : plan.
Let r0 := radix pl.
Definition radices : list Z := map (fun d => count d + 1) (rest pl).
Let rs := radices.
Let r := range pl.
Hypothesis r0_pos : 1 <= r0.
Hypothesis r_pos : 1 <= r.

Definition falling (sign o : Z) : bool := (o <? count (first pl)) && (sign =? 1).

Lemma count_first : count (first pl) = r0 + 1.
Proof. unfold r0, radix. lia. Qed.

(** ** Several digits *)

Definition zero : event0 := ((r0, r0 + 2), (r0 + 1, r0 + 2)).
Definition single (falls : bool) (k : Z) : event0 :=
  if falls then (none, (k + 1, k + 2)) else if k =? 0 then zero else ((k, k + 1), none).
Definition above (falls : bool) (k : Z) : event0 :=
  if falls then (none, (k + 2, r0 + 1)) else ((k + 1, r0), none).
Definition whole (falls : bool) : event0 :=
  if falls then (none, (1, r0 + 1)) else ((1, r0 + 2), (r0 + 1, r0 + 2)).

Definition exactly (falls : bool) (k : Z) : list (event0 * box) :=
  [(single falls (k mod r0), equal rs (k / r0))].
Definition tail (falls : bool) (k : Z) : list (event0 * box) :=
  if k =? 0 then [(whole falls, full rs)]
  else map (pair (whole falls)) (greater rs ((k - 1) / r0))
    ++ [(above falls ((k - 1) mod r0), equal rs ((k - 1) / r0))].

Definition low_value (sign o : Z) : Z := (if o <? r0 + 1 then o - sign else 0) mod r0.

Lemma low_value_cases sign o : 0 <= sign <= 1 -> 1 <= o <= r0 + 1 ->
  low_value sign o = if o =? r0 + 1 then 0
    else if sign =? 1 then o - 1 else if o =? r0 then 0 else o.
Proof.
  intros S O. unfold low_value. destruct (Z.ltb_spec o (r0 + 1)), (Z.eqb_spec o (r0 + 1)); try lia.
  - destruct (Z.eqb_spec sign 1).
    + replace (o - sign) with (o - 1) by lia. apply Z.mod_small. lia.
    + replace (o - sign) with o by lia. destruct (Z.eqb_spec o r0) as [->|].
      * apply Z.mod_same. lia.
      * apply Z.mod_small. lia.
  - apply Z.mod_small. lia.
Qed.

Lemma hit_whole falls sign o : 0 <= sign <= 1 -> 1 <= o <= r0 + 1 ->
  hit (whole falls) sign o = Bool.eqb (falling sign o) falls.
Proof.
  intros S O. unfold hit, whole, falling, none, within. rewrite count_first.
  destruct falls; cbn [fst snd]; cases.
Qed.

Lemma hit_single falls sign o k : 0 <= sign <= 1 -> 1 <= o <= r0 + 1 -> 0 <= k < r0 ->
  hit (single falls k) sign o = Bool.eqb (falling sign o) falls && (low_value sign o =? k).
Proof.
  intros S O K. rewrite low_value_cases by assumption.
  unfold hit, single, zero, falling, none, within. rewrite count_first.
  destruct falls; [|destruct (Z.eqb_spec k 0)]; cbn [fst snd]; cases.
Qed.

Lemma hit_above falls sign o k : 0 <= sign <= 1 -> 1 <= o <= r0 + 1 -> 0 <= k < r0 ->
  hit (above falls k) sign o = Bool.eqb (falling sign o) falls && (k <? low_value sign o).
Proof.
  intros S O K. rewrite low_value_cases by assumption.
  unfold hit, above, falling, none, within. rewrite count_first.
  destruct falls; cbn [fst snd]; cases.
Qed.

Section Several.
Hypothesis several : rs <> [].
Hypothesis rs_pos : positive rs.
Let c := r0 * last_place rs.

Definition magnitude (sign o : Z) (os : list Z) : Z := low_value sign o + r0 * mixed rs os.

Lemma exactly_hits falls k sign o os : 0 <= sign <= 1 -> 1 <= o <= r0 + 1 -> in_radices rs os ->
  0 <= k -> sum (fun eb => ind (hits eb sign o os)) (exactly falls k)
  = ind (Bool.eqb (falling sign o) falls && (magnitude sign o os =? k)).
Proof.
  intros S O H K. unfold exactly, hits, sum; cbn [fold_right fst snd]. rewrite Rplus_0_r.
  pose proof (Z.mod_pos_bound k r0 ltac:(lia)) as B. pose proof (Z.div_mod k r0 ltac:(lia)) as E.
  rewrite hit_single, inbox_equal by assumption. rewrite <- andb_assoc. do 2 f_equal.
  unfold magnitude. assert (L : 0 <= low_value sign o < r0) by (apply Z.mod_pos_bound; lia).
  destruct (Z.eqb_spec (low_value sign o) (k mod r0)), (Z.eqb_spec (mixed rs os) (k / r0)),
    (Z.eqb_spec (low_value sign o + r0 * mixed rs os) k); cbn [andb]; try reflexivity; exfalso; nia.
Qed.

Lemma tail_hits falls k sign o os : 0 <= sign <= 1 -> 1 <= o <= r0 + 1 -> in_radices rs os ->
  0 <= k -> sum (fun eb => ind (hits eb sign o os)) (tail falls k)
  = ind (Bool.eqb (falling sign o) falls && (k <=? magnitude sign o os)).
Proof.
  intros S O H K. pose proof (mixed_ge0 rs os rs_pos H) as M.
  assert (L : 0 <= low_value sign o < r0) by (apply Z.mod_pos_bound; lia).
  unfold tail. destruct (Z.eqb_spec k 0) as [->|N].
  - unfold hits, sum; cbn [fold_right fst snd]. rewrite Rplus_0_r, hit_whole by assumption.
    rewrite inbox_full by assumption. do 2 f_equal. symmetry. apply Z.leb_le.
    unfold magnitude. nia.
  - rewrite sum_app, sum_map. unfold hits at 1. cbn [fst snd].
    rewrite sum_ind_map, inbox_greater, hit_whole by assumption.
    unfold hits, sum; cbn [fold_right fst snd]. rewrite Rplus_0_r.
    pose proof (Z.mod_pos_bound (k - 1) r0 ltac:(lia)) as B.
    pose proof (Z.div_mod (k - 1) r0 ltac:(lia)) as E.
    rewrite hit_above, inbox_equal by assumption.
    rewrite <- andb_assoc, !ind_and, <- Rmult_plus_distr_l. f_equal. unfold magnitude.
    set (m := mixed rs os) in *. set (l := low_value sign o) in *. clearbody m l.
    destruct (Z.ltb_spec ((k - 1) / r0) m), (Z.ltb_spec ((k - 1) mod r0) l),
      (Z.eqb_spec m ((k - 1) / r0)), (Z.leb_spec k (l + r0 * m)); unfold ind; try lra; exfalso; nia.
Qed.

Definition ups (x y : Z) : list (event0 * box) :=
  if y =? r then tail false (Z.min (r - x) c)
  else if (x <=? y) && (y - x <? c) then exactly false (y - x) else [].
Definition downs (x y : Z) : list (event0 * box) :=
  if y =? 0 then tail true (Z.min (Z.max (x - 1) 0) c)
  else if (y <? x) && (x - 1 - y <? c) then exactly true (x - 1 - y) else [].
End Several.

(** ** A single digit *)

Definition only (e : event0) : list (event0 * box) := [(e, [])].
Definition ups_alone (x y : Z) : list (event0 * box) :=
  let t := y - x in
  if y =? r then only (if t =? 0 then whole false else ((Z.min t (r0 + 1), r0 + 1), none))
  else if t =? 0 then only ((r0 + 1, r0 + 2), (r0 + 1, r0 + 2))
  else if (0 <? t) && (t <=? r0) then only ((t, t + 1), none) else [].
Definition downs_alone (x y : Z) : list (event0 * box) :=
  let t := x - 1 - y in
  if y =? 0 then only (none, (Z.min (Z.max t 0) r0 + 1, r0 + 1))
  else if (0 <=? t) && (t <? r0) then only (none, (t + 1, t + 2)) else [].

(** A count of 0 stays unless it rises: one event, not two. *)
Definition stays : event0 := ((r0 + 1, r0 + 2), (1, r0 + 2)).
Definition boxes_alone (x y : Z) : list (event0 * box) :=
  if (x =? 0) && (y =? 0) then only stays else ups_alone x y ++ downs_alone x y.

Definition boxes (x y : Z) : list (event0 * box) :=
  if alone pl then boxes_alone x y else ups x y ++ downs x y.

Lemma hits_alone x y sign o os : 1 <= o <= r0 + 1 ->
  sum (fun eb => ind (hits eb sign o os)) (boxes_alone x y)
  = sum (fun eb => ind (hits eb sign o os)) (ups_alone x y ++ downs_alone x y).
Proof.
  intros O. unfold boxes_alone. destruct (Z.eqb_spec x 0) as [->|]; [|reflexivity].
  destruct (Z.eqb_spec y 0) as [->|]; [|reflexivity]. cbn [andb].
  unfold ups_alone, downs_alone, only, stays. destruct (Z.eqb_spec 0 r); [lia|].
  cbn [Z.eqb Z.sub Z.opp Z.add app]. unfold hits, hit, none, within, sum.
  replace (Z.min (Z.max (-1) 0) r0) with 0 by lia. cbn [fold_right fst snd].
  destruct (inbox [] os); rewrite ?andb_true_r, ?andb_false_r; [|unfold ind; lra].
  unfold ind. destruct (sign =? 1); compare_all; try lra; exfalso; lia.
Qed.

(** What the proofs need of a box: its intervals are among the outcomes and do not contain the slot;
    where digit 0 is not alone, an event that is not empty contains one of its values. *)
Definition interval (i : Z * Z) : Prop :=
  0 <= fst i <= snd i /\ snd i <= r0 + 2 /\ (1 <= fst i \/ fst i = snd i).
Definition holds_value (i : Z * Z) : Prop := 1 <= fst i <= r0 /\ fst i < snd i.
Definition empty (i : Z * Z) : Prop := fst i = snd i.
Definition sound (eb : event0 * box) : Prop :=
  let '((i0, i1), bx) := eb in
  interval i0 /\ interval i1 /\ fits rs bx
  /\ (alone pl = false -> (empty i0 /\ empty i1) \/ holds_value i0 \/ holds_value i1).

Lemma sound_single falls k bx : 0 <= k < r0 -> fits rs bx -> sound (single falls k, bx).
Proof.
  intros K F. unfold single, zero, none.
  destruct falls; [|destruct (Z.eqb_spec k 0)]; repeat split; cbn [fst snd]; try lia;
    try assumption;
    intros _; unfold empty, holds_value; cbn [fst snd]; lia.
Qed.

Lemma sound_above falls k bx : 0 <= k < r0 -> fits rs bx -> sound (above falls k, bx).
Proof.
  intros K F. unfold above, none.
  destruct falls; repeat split; cbn [fst snd]; try lia; try assumption;
    intros _; unfold empty, holds_value; cbn [fst snd]; lia.
Qed.

Lemma sound_whole falls bx : fits rs bx -> sound (whole falls, bx).
Proof.
  intros F. unfold whole, none.
  destruct falls; repeat split; cbn [fst snd]; try lia; try assumption;
    intros _; unfold empty, holds_value; cbn [fst snd]; lia.
Qed.

Lemma sound_exactly falls k : positive rs -> 0 <= k < r0 * last_place rs ->
  Forall sound (exactly falls k).
Proof.
  intros P K. constructor; [|constructor]. apply sound_single; [apply Z.mod_pos_bound; lia|].
  apply equal_fits; [assumption|]. split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia].
Qed.

Lemma sound_tail falls k : positive rs -> 0 <= k <= r0 * last_place rs ->
  Forall sound (tail falls k) /\ (length (tail falls k) <= S (length rs))%nat
  /\ (k = 0 -> length (tail falls k) = 1%nat).
Proof.
  intros P K. unfold tail. destruct (Z.eqb_spec k 0) as [->|N].
  - split; [|split; [simpl; lia | reflexivity]]. constructor; [|constructor].
    now apply sound_whole, full_fits.
  - assert (Q : 0 <= (k - 1) / r0 < last_place rs)
      by (split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]).
    split; [|split; [rewrite app_length, map_length, greater_length; simpl; lia | lia]].
    apply Forall_app. split.
    + apply Forall_forall. intros eb I. apply in_map_iff in I. destruct I as (bx & <- & I).
      apply sound_whole. now apply (greater_fits rs ((k - 1) / r0)).
    + constructor; [|constructor]. apply sound_above; [apply Z.mod_pos_bound; lia|].
      now apply equal_fits.
Qed.

Lemma sound_only e : alone pl = true -> interval (fst e) -> interval (snd e) ->
  Forall sound (only e).
Proof.
  intros A I0 I1. constructor; [|constructor]. destruct e as [i0 i1]. repeat split;
    try apply I0; try apply I1; try congruence.
  unfold rs, radices, alone in *. destruct (rest pl); [exact I | discriminate].
Qed.

Theorem boxes_sound x y : positive rs -> (alone pl = false -> 1 <= last_place rs) ->
  0 <= x <= r -> 0 <= y <= r ->
  Forall sound (boxes x y) /\ (length (boxes x y) <= S (length rs))%nat.
Proof.
  intros P LP X Y. unfold boxes. destruct (alone pl) eqn:AL.
  - assert (SO : forall i0 i1, interval i0 -> interval i1 ->
      Forall sound (only (i0, i1)) /\ (length (only (i0, i1)) <= S (length rs))%nat)
      by (intros; split; [now apply sound_only | simpl; lia]).
    assert (SN : Forall sound [] /\ (length (@nil (event0 * box)) <= S (length rs))%nat)
      by (split; [constructor | simpl; lia]).
    unfold boxes_alone. destruct ((x =? 0) && (y =? 0)) eqn:XY.
    { apply SO; unfold interval, stays; cbn [fst snd]; lia. }
    destruct (Z.le_gt_cases x y).
    + assert (D : downs_alone x y = []).
      { unfold downs_alone. destruct (Z.eqb_spec y 0), (Z.eqb_spec x 0); try lia; try discriminate;
          destruct (Z.leb_spec 0 (x - 1 - y)); reflexivity || lia. }
      rewrite D, app_nil_r. unfold ups_alone, whole.
      destruct (Z.eqb_spec y r), (Z.eqb_spec (y - x) 0);
        try (apply SO; unfold interval, none; cbn [fst snd]; lia).
      destruct (Z.ltb_spec 0 (y - x)), (Z.leb_spec (y - x) r0); cbn [andb]; try exact SN.
      apply SO; unfold interval, none; cbn [fst snd]; lia.
    + assert (U : ups_alone x y = []).
      { unfold ups_alone. destruct (Z.eqb_spec y r), (Z.eqb_spec (y - x) 0); try lia.
        destruct (Z.ltb_spec 0 (y - x)); reflexivity || lia. }
      rewrite U, app_nil_l. unfold downs_alone.
      destruct (Z.eqb_spec y 0); [apply SO; unfold interval, none; cbn [fst snd]; lia|].
      destruct (Z.leb_spec 0 (x - 1 - y)), (Z.ltb_spec (x - 1 - y) r0); cbn [andb]; try exact SN.
      apply SO; unfold interval, none; cbn [fst snd]; lia.
  - specialize (LP eq_refl). unfold ups, downs. set (c := r0 * last_place rs) in *.
    assert (1 <= c) by (unfold c; nia).
    assert (N : (1 <= length rs)%nat).
    { unfold rs, radices, alone in *. destruct (rest pl); [discriminate|]. simpl. lia. }
    destruct (Z.eqb_spec y r) as [->|NR].
    { destruct (Z.eqb_spec r 0); [lia|]. destruct (Z.ltb_spec r x); [lia|]. cbn [andb].
      rewrite app_nil_r. destruct (sound_tail false (Z.min (r - x) c) P) as (A & B & _);
        [fold c; lia | now split]. }
    destruct (Z.eqb_spec y 0) as [->|N0].
    + destruct (sound_tail true (Z.min (Z.max (x - 1) 0) c) P) as (A & B & C); [fold c; lia|].
      destruct (Z.leb_spec x 0), (Z.ltb_spec (0 - x) c); cbn [andb]; try (now split).
      split.
      * apply Forall_app. split; [|assumption]. apply sound_exactly; [assumption|]. fold c. lia.
      * rewrite app_length, C by lia. simpl. lia.
    + destruct (Z.leb_spec x y), (Z.ltb_spec (y - x) c), (Z.ltb_spec y x),
        (Z.ltb_spec (x - 1 - y) c); cbn [andb]; try lia; rewrite ?app_nil_r, ?app_nil_l.
      all: split; [try constructor | simpl; lia].
      all: try (apply sound_exactly; [assumption | fold c; lia]).
      all: try (apply sound_single; [apply Z.mod_pos_bound; lia|]; apply equal_fits;
        [assumption|]; split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; fold c; lia]).
      all: constructor.
Qed.

(** With outcomes of all digits in range, exactly the boxes' outcomes give the output. *)
Hypothesis rest_pos : positive rs.
Hypothesis wrap_eq : wrap pl = if alone pl then 2 ^ word_bits pl else r0.
Hypothesis weigh_eq : forall os, in_radices rs os -> weigh (rest pl) os = r0 * mixed rs os.
Hypothesis top_eq : alone pl = false -> count (top pl) = last rs 0 - 1.
Hypothesis fits_word : (if alone pl then r0 + 1 else r0 * last_place rs) <= 2 ^ word_bits pl.

Theorem boxes_output x y sign o os free : 0 <= x <= r -> 0 <= y <= r ->
  0 <= sign <= 1 -> 1 <= o <= r0 + 1 -> in_radices rs os ->
  sum (fun eb => ind (hits eb sign o os)) (boxes x y) = ind (output pl sign o os free x =? y).
Proof.
  intros X Y S O H. unfold boxes. pose proof (mixed_ge0 rs os rest_pos H) as M.
  assert (O0 : (o =? 0) = false) by (apply Z.eqb_neq; lia).
  unfold output. rewrite O0, wrap_eq, weigh_eq by assumption. rewrite count_first.
  unfold alone in *. destruct (rest pl) as [|d ds] eqn:RP.
  - (* a single digit *)
    assert (E : rs = []) by (unfold rs, radices; now rewrite RP).
    rewrite hits_alone by assumption.
    rewrite E in *. destruct os; [|simpl in H; tauto]. clear M H. cbn [mixed] in *.
    rewrite sum_app. rewrite Z.mul_0_r, Z.add_0_r.
    set (low := if o <? r0 + 1 then o - sign else 0).
    assert (L : 0 <= low < 2 ^ word_bits pl).
    { unfold low. destruct (Z.ltb_spec o (r0 + 1)); lia. }
    rewrite !(Z.mod_small low) by assumption.
    unfold ups_alone, downs_alone, only, hits, hit, whole, none, within, sum, low. fold r.
    clear - X Y S O r_pos r0_pos.
    assert (S2 : sign = 0 \/ sign = 1) by lia.
    destruct S2 as [-> | ->]; cbn [Z.eqb Pos.eqb].
    all: destruct (Z.eqb_spec y r), (Z.eqb_spec (y - x) 0), (Z.eqb_spec y 0);
      destruct (Z.ltb_spec o (r0 + 1));
      repeat match goal with
      | |- context [if ?b && ?b' then _ else []] =>
          destruct b eqn:?; destruct b' eqn:?; cbn [andb]
      end; cbn [andb fold_right fst snd inbox]; rewrite ?andb_true_r; unfold ind;
        rewrite ?Rplus_0_r.
    all: rewrite ?Z.leb_le, ?Z.ltb_lt, ?Z.leb_gt, ?Z.ltb_ge in *.
    all: compare_all; try lra; exfalso; lia.
  - (* several digits *)
    assert (N : rs <> []) by (unfold rs, radices; rewrite RP; discriminate).
    rewrite sum_app. set (c := r0 * last_place rs) in *.
    pose proof (last_place_ge0 rs rest_pos) as LP. assert (C : 0 <= c) by (unfold c; nia).
    assert (L : 0 <= low_value sign o < r0) by (apply Z.mod_pos_bound; lia).
    change ((if o <? r0 + 1 then o - sign else 0) mod r0) with (low_value sign o).
    rewrite top_eq, <- mixed_last by auto.
    set (m := magnitude sign o os).
    assert (MC : (mixed rs os <? last_place rs) = (m <? c)).
    { unfold m, magnitude, c.
      destruct (Z.ltb_spec (mixed rs os) (last_place rs)),
        (Z.ltb_spec (low_value sign o + r0 * mixed rs os) (r0 * last_place rs));
        try reflexivity; exfalso; nia. }
    rewrite MC. change (low_value sign o + r0 * mixed rs os) with m.
    assert (M0 : 0 <= m) by (unfold m, magnitude; nia).
    assert (NO : (if m <? c then m mod 2 ^ word_bits pl else range pl) = if m <? c then m else r).
    { destruct (Z.ltb_spec m c); [apply Z.mod_small; lia | reflexivity]. }
    rewrite NO, <- count_first. fold (falling sign o).
    assert (U : sum (fun eb => ind (hits eb sign o os)) (ups x y)
      = ind (Bool.eqb (falling sign o) false &&
          (if y =? r then Z.min (r - x) c <=? m else (x <=? y) && (y - x <? c) && (m =? y - x)))).
    { unfold ups. fold c. destruct (Z.eqb_spec y r).
      - apply tail_hits; try assumption. lia.
      - destruct ((x <=? y) && (y - x <? c)) eqn:Q.
        + cbn [andb]. apply exactly_hits; try assumption. apply andb_prop in Q.
          rewrite Z.leb_le, Z.ltb_lt in Q. lia.
        + cbn [andb]. rewrite andb_false_r. reflexivity. }
    assert (D : sum (fun eb => ind (hits eb sign o os)) (downs x y)
      = ind (Bool.eqb (falling sign o) true &&
          (if y =? 0 then Z.min (Z.max (x - 1) 0) c <=? m
           else (y <? x) && (x - 1 - y <? c) && (m =? x - 1 - y)))).
    { unfold downs. fold c. destruct (Z.eqb_spec y 0).
      - apply tail_hits; try assumption. lia.
      - destruct ((y <? x) && (x - 1 - y <? c)) eqn:Q.
        + cbn [andb]. apply exactly_hits; try assumption. apply andb_prop in Q.
          rewrite !Z.ltb_lt in Q. lia.
        + cbn [andb]. rewrite andb_false_r. reflexivity. }
    rewrite U, D. fold r. clearbody m c. clear - X Y C M0 r_pos.
    destruct (falling sign o); cbn [Bool.eqb andb]; unfold ind.
    all: compare_all; try lra; exfalso; lia.
Qed.
End Outputs.
