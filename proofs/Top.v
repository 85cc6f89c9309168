(** The place of the largest noisy count: theorem 22 of docs/proofs.md. The first part, up to
    [top_purely_private], says what is proved. *)
From Geomdp Require Export Main.
Open Scope Z_scope.

(** * The search *)

Section Search.
Variable pl : plan.
(** The offset that the kernel adds noise to; the least infinite noise, and its sum; the greatest
    offset of a count. *)
Variables (middle infinite beyond width : Z).

(** One-sided noise: the kernel's is [g] or [-1 - g]. *)
Definition one_sided (o : Z) : Z := if o <? middle then middle - 1 - o else o - middle.

(** One more than the sum of an offset and its noise. *)
Definition score (tape : list Z) (x : Z) : Z :=
  let g := one_sided (draw pl tape middle) in
  if g <? infinite then Z.max 0 (Z.min x width) + g + 1 else beyond.

(** The place of the greatest sum from place [at] on, the first among equals, of those that are not
    named before; [best] is the greatest sum so far, at [found]. *)
Fixpoint search (named : list Z) (tape xs : list Z) (at_ best found : Z) : Z :=
  match xs with
  | [] => found
  | x :: xs =>
      let s := if existsb (Z.eqb at_) named then 0 else score (firstn (words pl) tape) x in
      let rest := skipn (words pl) tape in
      if best <? s then search named rest xs (at_ + 1) s at_
      else search named rest xs (at_ + 1) best found
  end.

Definition place_prob (named xs : list Z) (i : Z) : R :=
  let all := tapes pl (words pl * length xs) in
  (INR (length (filter (fun tape => search named tape xs 0 0 (-1) =? i) all)) / INR (length all))%R.

(** Names one by one, each with words of its own: the probability of this list. *)
Fixpoint top_prob (named : list Z) (xs places : list Z) : R :=
  match places with
  | [] => 1
  | i :: places => place_prob named xs i * top_prob (i :: named) xs places
  end.
End Search.

(** Counts change by amounts from [low] to [low + spread]. *)
Definition neighbours (low spread : Z) (xs xs' : list Z) : Prop :=
  low <= 0 <= low + spread /\ Forall2 (fun x x' => low <= x' - x <= low + spread) xs xs'.

Open Scope R_scope.

Definition top_purely_private : Prop := forall pl rate sampled g delta inverses,
  certified pl rate sampled g delta inverses ->
  forall middle infinite beyond width,
  (range pl = 2 * middle - 1 /\ 2 ^ value_bits pl = 2 * middle)%Z ->
  (0 < infinite < middle - 1 /\ 0 <= width /\ width + infinite < beyond)%Z ->
  1 <= rate * IZR (middle - infinite - 1) ->
  forall low spread xs xs' places, neighbours low spread xs xs' ->
  Forall (fun i => 0 <= i < Z.of_nat (length xs))%Z places ->
  top_prob pl middle infinite beyond width [] xs places
  <= exp (rate * IZR spread * INR (length places))
     * top_prob pl middle infinite beyond width [] xs' places.

(** * Lemma 21: tails *)

Section Tails.
Variables (pl : plan) (rate sampled g delta : R) (inverses : list R).
Hypothesis C : certified pl rate sampled g delta inverses.
Variables middle infinite : Z.
Hypothesis shape : (range pl = 2 * middle - 1 /\ 2 ^ value_bits pl = 2 * middle)%Z.
Hypothesis room : (0 < infinite < middle - 1)%Z.
Hypothesis enough : 1 <= rate * IZR (middle - infinite - 1).
Let r := range pl.

Lemma W : (0 < limb_bits pl <= word_bits pl)%Z.
Proof. pose proof (widths _ _ _ _ _ _ C). lia. Qed.

Definition in_slot (t : list Z) : bool :=
  (outcome pl (first pl) (firstn (own (first pl)) (tl t)) (limb pl (hd 0%Z t)) =? 0)%Z.
Definition slot_value (t : list Z) : Z :=
  (hd 0 (skipn (own (first pl)) (tl t)) mod 2 ^ value_bits pl)%Z.

(** The noise of a tape, and whether it falls. *)
Lemma draw_shape t : exists (falls : bool) (n : Z), (0 <= n)%Z /\ forall x,
  draw pl t x = if in_slot t then Z.min (slot_value t) r
    else if falls then (Z.max (x - Z.min n x) 1 - 1)%Z else (x + Z.min n (r - x))%Z.
Proof.
  unfold draw, output, in_slot, slot_value. cbn zeta.
  eexists (_ && _), _. split; [|intros x; reflexivity].
  assert (0 < 2 ^ word_bits pl)%Z by (apply pow2_pos; pose proof W; lia).
  pose proof (outputs _ _ _ _ _ _ C).
  destruct (rest pl); [apply Z.mod_pos_bound; lia|].
  destruct (_ <? _)%Z; [apply Z.mod_pos_bound|]; lia.
Qed.

Lemma mean_scale_r {A} (l : list A) f c : mean l (fun x => f x * c) = mean l f * c.
Proof. rewrite Rmult_comm, <- mean_scale. apply mean_ext. intros. ring. Qed.

(** Means of indicators. *)
Notation mean_w f := (mean (tapes pl (words pl)) f).

Lemma tapes_ne n : tapes pl n <> [].
Proof. apply tapes_nonempty, W. Qed.

Lemma prob_mean y x : prob pl y x = mean_w (fun t => ind (draw pl t x =? y)%Z).
Proof. unfold prob. now rewrite mean_filter. Qed.

Definition high (s : Z) : R := mean_w (fun t => ind (middle + s <=? draw pl t middle)%Z).
Definition low (s : Z) : R := mean_w (fun t => ind (draw pl t middle <=? middle - 1 - s)%Z).

Lemma ind_b (b b' : bool) : b = b' -> ind b = ind b'. Proof. now intros ->. Qed.

(** A tail of the noise is an edge of the range for another count, up to the slot. *)
Lemma high_edge s : (0 <= s < middle)%Z ->
  high s + mean_w (fun t => ind (in_slot t && (Z.min (slot_value t) r =? r)%Z))
  = prob pl r (r - s)
    + mean_w (fun t => ind (in_slot t && (middle + s <=? Z.min (slot_value t) r)%Z)).
Proof.
  intros S. rewrite prob_mean. unfold high. rewrite <- !mean_plus. apply mean_ext. intros t _.
  destruct (draw_shape t) as (f & n & N & D). rewrite !D. unfold ind.
  destruct (in_slot t); cbn [andb]; [lra|].
  assert (E : (middle + s <=? (if f then Z.max (middle - Z.min n middle) 1 - 1
      else middle + Z.min n (r - middle)))%Z
    = ((if f then Z.max (r - s - Z.min n (r - s)) 1 - 1
      else r - s + Z.min n (r - (r - s))) =? r)%Z).
  { unfold r in *. destruct f; cases. }
  rewrite E. lra.
Qed.

Lemma low_edge s : (0 <= s < middle)%Z ->
  low s + mean_w (fun t => ind (in_slot t && (Z.min (slot_value t) r =? 0)%Z))
  = prob pl 0 (s + 1)
    + mean_w (fun t => ind (in_slot t && (Z.min (slot_value t) r <=? middle - 1 - s)%Z)).
Proof.
  intros S. rewrite prob_mean. unfold low. rewrite <- !mean_plus. apply mean_ext. intros t _.
  destruct (draw_shape t) as (f & n & N & D). rewrite !D. unfold ind.
  destruct (in_slot t); cbn [andb]; [lra|].
  assert (E : ((if f then Z.max (middle - Z.min n middle) 1 - 1
      else middle + Z.min n (r - middle)) <=? middle - 1 - s)%Z
    = ((if f then Z.max (s + 1 - Z.min n (s + 1)) 1 - 1
      else s + 1 + Z.min n (r - (s + 1))) =? 0)%Z).
  { unfold r in *. destruct f; cases. }
  rewrite E. lra.
Qed.

Definition slot : R := mean_w (fun t => ind (in_slot t)).

(** The slot's values are uniform. *)
Lemma slot_tail u : (0 <= u <= 2 * middle)%Z ->
  mean_w (fun t => ind (in_slot t && (u <=? Z.min (slot_value t) r)%Z))
  = slot * (IZR (2 * middle - u) / IZR (2 * middle)).
Proof.
  intros U. pose proof (value_width _ _ _ _ _ _ C) as K. pose proof W as Wd.
  set (k := value_bits pl) in *. set (b := word_bits pl) in *.
  set (n := Nat.max (own_words (rest pl)) 1).
  assert (V : mean (tapes pl n) (fun t => ind (u <=? Z.min (hd 0 t mod 2 ^ k) r)%Z)
      = IZR (2 * middle - u) / IZR (2 * middle)).
  { assert (N : n = S (n - 1)) by lia. rewrite N, mean_tapes_S by assumption. cbn [hd]. fold b.
    rewrite (mean_ext _ (fun x => ind (u <=? Z.min (x mod 2 ^ k) r)%Z)).
    2: { intros x _. apply mean_const, tapes_ne. }
    assert (0 < 2 ^ k)%Z by (apply pow2_pos; lia).
    assert (0 < 2 ^ (b - k))%Z by (apply pow2_pos; lia).
    replace (2 ^ b)%Z with (2 ^ (b - k) * 2 ^ k)%Z by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
    rewrite mean_below_mul by assumption.
    rewrite (mean_ext _ (fun _ => IZR (2 * middle - u) / IZR (2 * middle))).
    { apply mean_const, below_nonempty. lia. }
    intros i _. rewrite (mean_ext _ (fun j => 1 - ind (j <? u)%Z)).
    2: { intros j J. apply in_below in J.
      rewrite Z.add_comm, Z.mod_add, Z.mod_small by lia. unfold ind, r.
      destruct (Z.leb_spec u (Z.min j (range pl))), (Z.ltb_spec j u); try lra; exfalso; lia. }
    rewrite mean_sub, mean_const, mean_less by (try apply below_nonempty; lia).
    destruct shape as [_ E]. fold k in E. rewrite E, minus_IZR. field. apply not_0_IZR. lia. }
  unfold slot, words. fold n. cbn [plus].
  rewrite !mean_tapes_S by assumption. rewrite <- mean_scale_r.
  apply mean_ext. intros x0 _.
  set (o := fun t0 => (outcome pl (first pl) t0 (limb pl x0) =? 0)%Z).
  set (v := fun t1 => (u <=? Z.min (hd 0 t1 mod 2 ^ k) r)%Z).
  change (mean (tapes pl (own (first pl) + n)) (fun t =>
      ind (o (firstn (own (first pl)) t) && v (skipn (own (first pl)) t)))
    = mean (tapes pl (own (first pl) + n)) (fun t => ind (o (firstn (own (first pl)) t)))
      * (IZR (2 * middle - u) / IZR (2 * middle))).
  rewrite (independent pl Wd (own (first pl)) n (fun t0 t1 => ind (o t0 && v t1))).
  rewrite (independent pl Wd (own (first pl)) n (fun t0 _ => ind (o t0))).
  rewrite <- mean_scale_r. apply mean_ext. intros t0 _.
  rewrite (mean_const (ind (o t0))) by apply tapes_ne. rewrite <- V, <- mean_scale.
  apply mean_ext. intros t1 _. apply ind_and.
Qed.

Lemma slot_ge0 : 0 <= slot.
Proof.
  apply mean_ge0; [apply tapes_ne|]. intros t _. unfold ind. destruct (in_slot t); lra.
Qed.

Let m2 := IZR (2 * middle).

Lemma high_eq s : (0 <= s < middle)%Z ->
  high s = prob pl r (r - s) + slot * (IZR (middle - s - 1) / m2).
Proof.
  intros S. pose proof (high_edge s S) as E.
  rewrite (mean_ext _ (fun t => ind (in_slot t && (r <=? Z.min (slot_value t) r)%Z))) in E.
  2: { intros t _. apply ind_b. f_equal. cases. }
  rewrite !slot_tail in E by (unfold r; lia). unfold r in E at 1.
  replace (2 * middle - range pl)%Z with 1%Z in E by lia.
  replace (2 * middle - (middle + s))%Z with (middle - s - 1 + 1)%Z in E by lia.
  rewrite plus_IZR in E. fold m2 in E. unfold Rdiv in *. lra.
Qed.

Lemma low_eq s : (0 <= s < middle)%Z ->
  low s = prob pl 0 (s + 1) + slot * (IZR (middle - s - 1) / m2).
Proof.
  intros S. pose proof (low_edge s S) as E.
  assert (F : forall c, (0 <= c < 2 * middle)%Z ->
    mean_w (fun t => ind (in_slot t && (Z.min (slot_value t) r <=? c)%Z))
    = slot * (IZR (c + 1) / m2)).
  { intros c Hc. rewrite (mean_ext _ (fun t =>
      ind (in_slot t) - ind (in_slot t && (c + 1 <=? Z.min (slot_value t) r)%Z))).
    - rewrite mean_sub, slot_tail by lia. fold slot m2.
      replace (IZR (2 * middle - (c + 1))) with (m2 - IZR (c + 1))
        by (unfold m2; now rewrite <- minus_IZR).
      field. apply not_0_IZR. lia.
    - intros t _. unfold ind. destruct (in_slot t); cbn [andb]; [|lra].
      destruct (Z.leb_spec (Z.min (slot_value t) r) c),
        (Z.leb_spec (c + 1) (Z.min (slot_value t) r)); try lra; exfalso; lia. }
  rewrite (mean_ext _ (fun t => ind (in_slot t && (Z.min (slot_value t) r <=? 0)%Z))) in E.
  2: { intros t _. apply ind_b. f_equal. unfold slot_value.
    pose proof (Z.mod_pos_bound (hd 0%Z (skipn (own (first pl)) (tl t))) (2 ^ value_bits pl)
      ltac:(lia)). unfold r. cases. }
  rewrite !F in E by lia. replace (middle - 1 - s + 1)%Z with (middle - s - 1 + 1)%Z in E by lia.
  change (0 + 1)%Z with 1%Z in E. rewrite plus_IZR in E. unfold Rdiv in *. lra.
Qed.

(** Lemma 21. *)
Definition noise (t : list Z) : Z := one_sided middle (draw pl t middle).
Definition tail (s : Z) : R := mean_w (fun t => ind ((s <=? noise t) || (infinite <=? noise t))%Z).

Lemma tail_eq s : (0 <= s <= infinite)%Z ->
  tail s = prob pl r (r - s) + prob pl 0 (s + 1) + slot * (2 * IZR (middle - s - 1) / m2).
Proof.
  intros S. transitivity (high s + low s).
  - unfold tail, high, low. rewrite <- mean_plus. apply mean_ext. intros t _.
    unfold noise, one_sided, ind. generalize (draw pl t middle). intros o.
    destruct (Z.ltb_spec o middle), (Z.leb_spec (middle + s) o), (Z.leb_spec o (middle - 1 - s));
    repeat match goal with |- context [(?x <=? ?y)%Z] => destruct (Z.leb_spec x y) end;
    cbn [orb]; try lra; exfalso; lia.
  - rewrite high_eq, low_eq by lia. unfold Rdiv. ring.
Qed.

Lemma tail_step s : tail s <= exp rate * tail (s + 1).
Proof.
  assert (R0 : 0 < rate).
  { pose proof (rate_ge0 _ _ _ _ _ _ C). destruct (Req_dec rate 0) as [Z0|]; [|lra].
    rewrite Z0 in enough. lra. }
  assert (E1 : 1 + rate <= exp rate) by apply exp_ineq1_le.
  assert (P : forall y x, 0 <= prob pl y x).
  { intros y x. rewrite prob_mean. apply mean_ge0; [apply tapes_ne|]. intros t _. unfold ind.
    destruct (_ =? _)%Z; lra. }
  assert (T0 : forall s, 0 <= tail s).
  { intros s'. apply mean_ge0; [apply tapes_ne|]. intros t _. unfold ind. destruct (_ || _); lra. }
  assert (Same : tail s = tail (s + 1) -> tail s <= exp rate * tail (s + 1)).
  { intros ->. pose proof (T0 (s + 1)%Z). nra. }
  assert (N0 : forall t, (0 <= noise t)%Z).
  { intros t. unfold noise, one_sided. destruct (Z.ltb_spec (draw pl t middle) middle); lia. }
  destruct (Z_lt_dec s 0) as [L|L]; [|destruct (Z_lt_dec s infinite) as [I|I]].
  - apply Same. apply mean_ext. intros t _. apply ind_b. pose proof (N0 t). cases.
  - rewrite !tail_eq by lia.
    assert (Q1 : prob pl r (r - s) <= exp rate * prob pl r (r - (s + 1))).
    { replace rate with (rate * IZR (Z.abs (r - s - (r - (s + 1))))) at 1
        by (replace (Z.abs _) with 1%Z by lia; ring).
      apply (draw_is_private pl rate sampled g delta inverses C); unfold r; lia. }
    assert (Q2 : prob pl 0 (s + 1) <= exp rate * prob pl 0 (s + 1 + 1)).
    { replace rate with (rate * IZR (Z.abs (s + 1 - (s + 1 + 1)))) at 1
        by (replace (Z.abs _) with 1%Z by lia; ring).
      apply (draw_is_private pl rate sampled g delta inverses C); unfold r; lia. }
    (* The slot's values go on for 1 / rate and more beyond infinite noise. *)
    assert (Q3 : IZR (middle - s - 1) <= exp rate * IZR (middle - (s + 1) - 1)).
    { replace (middle - s - 1)%Z with (middle - (s + 1) - 1 + 1)%Z by lia. rewrite plus_IZR.
      assert (IZR (middle - infinite - 1) <= IZR (middle - (s + 1) - 1)) by (apply IZR_le; lia).
      assert (1 <= IZR (middle - infinite - 1)) by (apply (IZR_le 1); lia).
      assert (rate * IZR (middle - infinite - 1) <= rate * IZR (middle - (s + 1) - 1))
        by (apply Rmult_le_compat_l; lra).
      assert (rate * IZR (middle - (s + 1) - 1) <= (exp rate - 1) * IZR (middle - (s + 1) - 1))
        by (apply Rmult_le_compat_r; lra).
      lra. }
    assert (M : 0 < m2) by (apply IZR_lt; lia).
    assert (Q4 : slot * (2 * IZR (middle - s - 1) / m2)
        <= exp rate * (slot * (2 * IZR (middle - (s + 1) - 1) / m2))).
    { replace (exp rate * (slot * (2 * IZR (middle - (s + 1) - 1) / m2)))
        with (slot * (2 * (exp rate * IZR (middle - (s + 1) - 1)) / m2)) by (field; lra).
      apply Rmult_le_compat_l; [apply slot_ge0|]. unfold Rdiv. apply Rmult_le_compat_r; [|lra].
      left. now apply Rinv_0_lt_compat. }
    lra.
  - apply Same. apply mean_ext. intros t _. apply ind_b. cases.
Qed.
End Tails.

(** * Theorem 22 *)

Lemma skipn_skipn' {A} m n (l : list A) : skipn m (skipn n l) = skipn (n + m) l.
Proof.
  revert l. induction n as [|n IH]; intros [|x l]; cbn; try apply IH; try reflexivity.
  apply skipn_nil.
Qed.

Lemma same_length {A B} (P : A -> B -> Prop) l l' : Forall2 P l l' -> length l = length l'.
Proof. induction 1; cbn; congruence. Qed.

Lemma sum_swap {A B} (f : A -> B -> R) l l' :
  sum (fun x => sum (f x) l') l = sum (fun y => sum (fun x => f x y) l) l'.
Proof.
  induction l as [|x l IH].
  - cbn. rewrite (sum_ext _ (fun _ => 0 * 1)), sum_scale by (intros; ring). ring.
  - change (sum (f x) l' + sum (fun x => sum (f x) l') l
      = sum (fun y => f x y + sum (fun x => f x y) l) l'). now rewrite IH, <- sum_plus.
Qed.

Lemma mean_swap {A B} (f : A -> B -> R) l l' :
  mean l (fun x => mean l' (f x)) = mean l' (fun y => mean l (fun x => f x y)).
Proof.
  unfold mean, Rdiv.
  rewrite (sum_ext _ (fun x => / INR (length l') * sum (f x) l')) by (intros; ring).
  rewrite (sum_ext (fun y => sum (fun x => f x y) l * _)
    (fun y => / INR (length l) * sum (fun x => f x y) l)) by (intros; ring).
  rewrite !sum_scale, sum_swap. ring.
Qed.

Section Private.
Variables (pl : plan) (rate sampled g delta : R) (inverses : list R).
Hypothesis C : certified pl rate sampled g delta inverses.
Variables middle infinite beyond width : Z.
Hypothesis shape : (range pl = 2 * middle - 1 /\ 2 ^ value_bits pl = 2 * middle)%Z.
Hypothesis room : (0 < infinite < middle - 1 /\ 0 <= width /\ width + infinite < beyond)%Z.
Hypothesis enough : 1 <= rate * IZR (middle - infinite - 1).
Variable named : list Z.

Let W' := W pl rate sampled g delta inverses C.
Let Tail := tail pl middle infinite.
Let Score := score pl middle infinite beyond width.
Let Search := search pl middle infinite beyond width named.

Lemma noise_ge0 t : (0 <= one_sided middle (draw pl t middle))%Z.
Proof. unfold one_sided. destruct (Z.ltb_spec (draw pl t middle) middle); lia. Qed.

Lemma tail_monotone s s' : (s <= s')%Z -> Tail s' <= Tail s.
Proof.
  intros L. apply mean_le; [now apply tapes_nonempty|]. intros t _. unfold ind.
  destruct (Z.leb_spec s' (noise pl middle t)), (Z.leb_spec s (noise pl middle t));
    cbn [orb]; try lra; try (exfalso; lia); destruct (_ <=? _)%Z; lra.
Qed.

Lemma tail_ge0 s : 0 <= Tail s.
Proof.
  apply mean_ge0; [now apply tapes_nonempty|]. intros t _. unfold ind. destruct (_ || _); lra.
Qed.

Lemma tail_steps n s : (0 <= n)%Z -> Tail s <= exp (rate * IZR n) * Tail (s + n)%Z.
Proof.
  intros N. rewrite <- (Z2Nat.id n N). generalize (Z.to_nat n). clear n N. intros n. revert s.
  induction n as [|n IH]; intros s.
  - cbn. rewrite Rmult_0_r, exp_0, Z.add_0_r. lra.
  - rewrite Nat2Z.inj_succ, succ_IZR, Rmult_plus_distr_l, Rmult_1_r, exp_plus.
    apply Rle_trans with (exp rate * Tail (s + 1)%Z).
    { apply (tail_step pl rate sampled g delta inverses C); try assumption. lia. }
    replace (s + Z.succ (Z.of_nat n))%Z with (s + 1 + Z.of_nat n)%Z by lia.
    replace (exp (rate * IZR (Z.of_nat n)) * exp rate * Tail (s + 1 + Z.of_nat n)%Z)
      with (exp rate * (exp (rate * IZR (Z.of_nat n)) * Tail (s + 1 + Z.of_nat n)%Z)) by ring.
    apply Rmult_le_compat_l; [left; apply exp_pos | apply IH].
Qed.

Definition clamp (x : Z) : Z := Z.max 0 (Z.min x width).

Lemma score_tail t x : (t <= beyond)%Z ->
  mean (tapes pl (words pl)) (fun tape => ind (t <=? Score tape x)%Z) = Tail (t - 1 - clamp x)%Z.
Proof.
  intros B. apply mean_ext. intros tape _. apply ind_b. unfold Score, score, clamp, noise.
  cbn zeta. generalize (one_sided middle (draw pl tape middle)). intros n. cases.
Qed.

(** The sum of a place, and the greatest of some. *)
Definition value_at (place : Z) (tape : list Z) (x : Z) : Z :=
  if existsb (Z.eqb place) named then 0%Z else Score tape x.

Fixpoint peak (tape xs : list Z) (place best : Z) : Z :=
  match xs with
  | [] => best
  | x :: xs => peak (skipn (words pl) tape) xs (place + 1)
      (Z.max best (value_at place (firstn (words pl) tape) x))
  end.

Lemma value_range place tape x : (0 <= value_at place tape x <= beyond)%Z.
Proof.
  unfold value_at, Score, score. cbn zeta. pose proof (noise_ge0 tape) as N.
  destruct (existsb _ _); [lia|].
  destruct (Z.ltb_spec (one_sided middle (draw pl tape middle)) infinite); lia.
Qed.

Lemma peak_max tape xs place b c :
  peak tape xs place (Z.max b c) = Z.max b (peak tape xs place c).
Proof.
  revert tape place c. induction xs as [|x xs IH]; intros tape place c; [reflexivity|].
  cbn [peak]. rewrite <- IH. f_equal. lia.
Qed.

Lemma peak_ge tape xs place b : (b <= peak tape xs place b)%Z.
Proof. rewrite <- (Z.max_id b) at 2. rewrite peak_max. lia. Qed.

Lemma peak_firstn tape xs place b :
  peak (firstn (words pl * length xs) tape) xs place b = peak tape xs place b.
Proof.
  revert tape place b. induction xs as [|x xs IH]; intros tape place b; [reflexivity|].
  cbn [peak length]. rewrite Nat.mul_succ_r, Nat.add_comm.
  rewrite firstn_firstn, Nat.min_l by lia. rewrite skipn_firstn_comm.
  replace (words pl + words pl * length xs - words pl)%nat with (words pl * length xs)%nat by lia.
  apply IH.
Qed.

Lemma search_after tape xs place best found i : (i < place)%Z ->
  (Search tape xs place best found =? i)%Z
  = ((found =? i) && (peak tape xs place best =? best))%Z.
Proof.
  revert tape place best found. induction xs as [|x xs IH]; intros tape place best found I.
  - cbn. rewrite Z.eqb_refl. now rewrite andb_true_r.
  - unfold Search in *. cbn [search peak]. fold Score.
    fold (value_at place (firstn (words pl) tape) x).
    set (v := value_at place (firstn (words pl) tape) x).
    destruct (Z.ltb_spec best v).
    + rewrite IH by lia. rewrite (Z.max_r best v) by lia.
      pose proof (peak_ge (skipn (words pl) tape) xs (place + 1) v).
      destruct (Z.eqb_spec place i); [lia|].
      destruct (Z.eqb_spec (peak (skipn (words pl) tape) xs (place + 1) v) best); [lia|].
      now rewrite andb_false_r.
    + rewrite IH by lia. now rewrite (Z.max_l best v) by lia.
Qed.

Lemma search_at before x after tape place best found : (found < place)%Z -> (0 <= best)%Z ->
  let i := (place + Z.of_nat (length before))%Z in
  let rest := skipn (words pl * length before) tape in
  (Search tape (before ++ x :: after) place best found =? i)%Z
  = (Z.max (peak tape before place best + 1) (peak (skipn (words pl) rest) after (i + 1) 0)
    <=? value_at i (firstn (words pl) rest) x)%Z.
Proof.
  revert tape place best found.
  induction before as [|y before IH]; intros tape place best found F B.
  - cbn [length app peak]. rewrite Nat.mul_0_r. cbn [skipn]. cbn zeta.
    replace (place + Z.of_nat 0)%Z with place by lia.
    unfold Search. cbn [search]. fold Score. fold (value_at place (firstn (words pl) tape) x).
    set (v := value_at place (firstn (words pl) tape) x). fold Search.
    destruct (Z.ltb_spec best v).
    + rewrite search_after, Z.eqb_refl by lia. cbn [andb].
      rewrite <- (Z.max_l v 0) at 1 by lia. rewrite peak_max.
      set (p := peak _ _ _ 0). cases.
    + rewrite search_after by lia. destruct (Z.eqb_spec found place); [lia|]. cbn [andb].
      set (p := peak _ _ _ 0). cases.
  - cbn zeta. cbn [length app peak]. unfold Search. cbn [search]. fold Score.
    fold (value_at place (firstn (words pl) tape) y).
    pose proof (value_range place (firstn (words pl) tape) y).
    set (v := value_at place (firstn (words pl) tape) y) in *. fold Search.
    rewrite Nat.mul_succ_r, Nat.add_comm, <- skipn_skipn'.
    replace (place + Z.of_nat (S (length before)))%Z
      with (place + 1 + Z.of_nat (length before))%Z by lia.
    destruct (Z.ltb_spec best v).
    + rewrite (Z.max_r best v) by lia. apply IH; lia.
    + rewrite (Z.max_l best v) by lia. apply IH; lia.
Qed.

(** The probability of a place: the other tapes decide what its sum must reach. *)
Lemma place_mean before x after :
  let nb := length before in let na := length after in let i := Z.of_nat nb in
  place_prob pl middle infinite beyond width named (before ++ x :: after) i
  = mean (tapes pl (words pl * nb)) (fun tb => mean (tapes pl (words pl * na)) (fun ta =>
      mean (tapes pl (words pl)) (fun t => ind
        (Z.max (peak tb before 0 0 + 1) (peak ta after (i + 1) 0) <=? value_at i t x)%Z))).
Proof.
  cbn zeta. set (nb := length before). set (na := length after). set (i := Z.of_nat nb).
  unfold place_prob. cbn zeta. rewrite mean_filter.
  replace (words pl * length (before ++ x :: after))%nat
    with (words pl * nb + (words pl + words pl * na))%nat
    by (rewrite app_length; cbn [length]; fold nb na; lia).
  set (F := fun tb t ta => ind
    (Z.max (peak tb before 0 0 + 1) (peak ta after (i + 1) 0) <=? value_at i t x)%Z).
  transitivity (mean (tapes pl (words pl * nb)) (fun tb =>
    mean (tapes pl (words pl + words pl * na)) (fun rest =>
      F tb (firstn (words pl) rest) (skipn (words pl) rest)))).
  - rewrite <- (independent pl W' (words pl * nb) (words pl + words pl * na)
      (fun tb rest => F tb (firstn (words pl) rest) (skipn (words pl) rest))).
    apply mean_ext. intros tape _. apply ind_b. unfold nb. rewrite peak_firstn.
    pose proof (search_at before x after tape 0 0 (-1) ltac:(lia) ltac:(lia)) as E.
    cbn zeta in E. exact E.
  - apply mean_ext. intros tb _. rewrite (independent pl W' (words pl) (words pl * na) (F tb)).
    apply mean_swap.
Qed.

Variables low spread : Z.
Hypothesis around : (low <= 0 <= low + spread)%Z.
Let Near (x x' : Z) : Prop := (low <= x' - x <= low + spread)%Z.

(** Two greatest sums of neighbours: within the same change, and infinite together. *)
Definition alike (b b' : Z) : Prop :=
  (low <= b' - b <= low + spread /\ 0 <= b <= beyond /\ 0 <= b' <= beyond
   /\ (b = beyond <-> b' = beyond))%Z.

Lemma value_alike place t x x' : Near x x' -> alike (value_at place t x) (value_at place t x').
Proof.
  intros N. unfold Near in N.
  pose proof (value_range place t x). pose proof (value_range place t x').
  unfold alike. revert H H0. unfold value_at, Score, score. cbn zeta. pose proof (noise_ge0 t).
  destruct (existsb _ _); [lia|].
  destruct (Z.ltb_spec (one_sided middle (draw pl t middle)) infinite); lia.
Qed.

Lemma peak_alike xs xs' : Forall2 Near xs xs' -> forall tape place b b', alike b b' ->
  alike (peak tape xs place b) (peak tape xs' place b').
Proof.
  induction 1 as [|x x' xs xs' N _ IH]; intros tape place b b' A; [exact A|].
  cbn [peak]. apply IH. pose proof (value_alike place (firstn (words pl) tape) x x' N) as V.
  unfold alike in *. lia.
Qed.

Lemma place_private xs xs' i : Forall2 Near xs xs' -> (0 <= i < Z.of_nat (length xs))%Z ->
  place_prob pl middle infinite beyond width named xs i
  <= exp (rate * IZR spread) * place_prob pl middle infinite beyond width named xs' i.
Proof.
  intros N I. destruct (nth_split xs 0%Z (n := Z.to_nat i) ltac:(lia)) as (before & after & E & L).
  set (x := nth (Z.to_nat i) xs 0%Z) in *. clearbody x. subst xs.
  apply Forall2_app_inv_l in N. destruct N as (before' & right' & Nb & Nr & ->).
  inversion Nr as [|? x' ? after' Nx Na]; subst.
  assert (Li : i = Z.of_nat (length before)) by lia.
  pose proof (same_length _ _ _ Nb) as Lb. pose proof (same_length _ _ _ Na) as La.
  rewrite Li at 1. rewrite place_mean. rewrite Li, Lb. rewrite place_mean. rewrite <- Lb, <- La.
  clear I L Li. rewrite <- mean_scale.
  apply mean_le; [now apply tapes_nonempty|]. intros tb _. rewrite <- mean_scale.
  apply mean_le; [now apply tapes_nonempty|]. intros ta _.
  set (p := Z.of_nat (length before)).
  assert (Z00 : alike 0 0) by (unfold alike; lia).
  pose proof (peak_alike before before' Nb tb 0%Z 0%Z 0%Z Z00) as A.
  pose proof (peak_alike after after' Na ta (p + 1)%Z 0%Z 0%Z Z00) as B.
  set (mb := peak tb before 0 0) in *. set (mb' := peak tb before' 0 0) in *.
  set (ma := peak ta after (p + 1) 0) in *. set (ma' := peak ta after' (p + 1) 0) in *.
  clearbody mb mb' ma ma'. unfold alike in A, B.
  assert (G : forall t z,
    0 <= mean (tapes pl (words pl)) (fun tape => ind (t <=? value_at p tape z)%Z)).
  { intros t z. apply mean_ge0; [now apply tapes_nonempty|]. intros tape _. unfold ind.
    destruct (_ <=? _)%Z; lra. }
  assert (Nothing : (forall tape, value_at p tape x < Z.max (mb + 1) ma)%Z ->
    mean (tapes pl (words pl)) (fun tape => ind (Z.max (mb + 1) ma <=? value_at p tape x)%Z)
    <= exp (rate * IZR spread) * mean (tapes pl (words pl))
        (fun tape => ind (Z.max (mb' + 1) ma' <=? value_at p tape x')%Z)).
  { intros None. rewrite (mean_ext _ (fun _ => 0)).
    - rewrite mean_const by now apply tapes_nonempty.
      apply Rmult_le_pos; [left; apply exp_pos | apply G].
    - intros tape _. specialize (None tape). unfold ind.
      destruct (Z.leb_spec (Z.max (mb + 1) ma) (value_at p tape x)); [lia|reflexivity]. }
  destruct (existsb (Z.eqb p) named) eqn:Named.
  { apply Nothing. intros tape. unfold value_at. rewrite Named. lia. }
  destruct (Z.eq_dec mb beyond) as [Full|Full].
  { apply Nothing. intros tape. pose proof (value_range p tape x). lia. }
  assert (V : forall z tape, value_at p tape z = Score tape z)
    by (intros; unfold value_at; now rewrite Named).
  rewrite (mean_ext _ (fun tape => ind (Z.max (mb + 1) ma <=? Score tape x)%Z))
    by (intros; now rewrite V).
  rewrite (mean_ext (fun tape => ind (_ <=? value_at p tape x')%Z)
    (fun tape => ind (Z.max (mb' + 1) ma' <=? Score tape x')%Z)) by (intros; now rewrite V).
  rewrite !score_tail by lia. unfold Near in Nx.
  eapply Rle_trans; [apply (tail_steps spread); lia|].
  apply Rmult_le_compat_l; [left; apply exp_pos|]. apply tail_monotone. unfold clamp. lia.
Qed.
End Private.

Theorem top_is_private : top_purely_private.
Proof.
  intros pl rate sampled g delta inverses C middle infinite beyond width shape room enough
    low spread xs xs' places [A N].
  generalize (@nil Z). induction places as [|i places IH]; intros named In.
  - cbn. rewrite Rmult_0_r, exp_0. lra.
  - inversion In as [|? ? I In']; subst. cbn [top_prob length].
    rewrite S_INR, Rmult_plus_distr_l, Rmult_1_r, exp_plus.
    pose proof (place_private pl rate sampled g delta inverses C middle infinite beyond width
      shape room enough named low spread A xs xs' i N I) as P.
    specialize (IH (i :: named) In').
    assert (G : forall named xs places,
      0 <= top_prob pl middle infinite beyond width named xs places).
    { intros n ys ps. revert n. induction ps as [|p ps IHp]; intros n; cbn; [lra|].
      apply Rmult_le_pos; [|apply IHp]. unfold place_prob. cbn zeta. rewrite mean_filter.
      apply mean_ge0; [apply tapes_nonempty, (W pl rate sampled g delta inverses C)|].
      intros t _. unfold ind. destruct (_ =? _)%Z; lra. }
    assert (P0 : 0 <= place_prob pl middle infinite beyond width named xs i).
    { specialize (G named xs [i]). cbn in G. lra. }
    replace (exp (rate * IZR spread * INR (length places)) * exp (rate * IZR spread)
      * (place_prob pl middle infinite beyond width named xs' i
         * top_prob pl middle infinite beyond width (i :: named) xs' places))
      with ((exp (rate * IZR spread) * place_prob pl middle infinite beyond width named xs' i)
        * (exp (rate * IZR spread * INR (length places))
           * top_prob pl middle infinite beyond width (i :: named) xs' places)) by ring.
    apply Rmult_le_compat; try assumption. apply G.
Qed.
