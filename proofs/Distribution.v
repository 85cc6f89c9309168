(** The distribution over all tapes is a sum over boxes of products of digits, and the floor. *)
From Geomdp Require Export Target.
Open Scope R_scope.

(** The lowest bit of the shared word is the sign, independent of its upper bits. *)
Lemma mean_sign pl (f : Z -> Z -> R) : (0 < limb_bits pl < word_bits pl)%Z ->
  mean (below (2 ^ word_bits pl)) (fun x => f (x mod 2)%Z (limb pl x))
  = mean (below (2 ^ limb_bits pl)) (fun v => (f 0%Z v + f 1%Z v) / 2).
Proof.
  intros W. set (b := word_bits pl) in *. set (w := limb_bits pl) in *.
  assert (0 < 2 ^ w)%Z by (apply pow2_pos; lia).
  assert (0 < 2 ^ (b - w - 1))%Z by (apply pow2_pos; lia).
  assert (S : (2 ^ (b - w) = 2 ^ (b - w - 1) * 2)%Z).
  { rewrite <- (Z.pow_1_r 2) at 3. rewrite <- Z.pow_add_r by lia. f_equal. lia. }
  replace (2 ^ b)%Z with (2 ^ w * 2 ^ (b - w))%Z by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
  rewrite mean_below_mul by lia. apply mean_ext. intros v V.
  rewrite S, mean_below_mul by lia.
  rewrite (mean_ext _ (fun _ => (f 0%Z v + f 1%Z v) / 2)).
  { apply mean_const, below_nonempty. assumption. }
  intros j J. apply in_below in J. unfold mean. change (below 2) with [0; 1]%Z.
  unfold sum; cbn [fold_right length]. unfold limb. fold b w. rewrite S.
  set (P := (2 ^ (b - w - 1))%Z) in *.
  replace (v * (P * 2) + (j * 2 + 0))%Z with (0 + (v * P + j) * 2)%Z by ring.
  replace (v * (P * 2) + (j * 2 + 1))%Z with (1 + (v * P + j) * 2)%Z by ring.
  rewrite !Z.mod_add by lia.
  replace (0 + (v * P + j) * 2)%Z with (v * (P * 2) + j * 2)%Z by ring.
  replace (1 + (v * P + j) * 2)%Z with (v * (P * 2) + (j * 2 + 1))%Z by ring.
  rewrite !Z.div_add_l, !Z.div_small, !Z.add_0_r by lia. simpl.
  change (0 mod 2)%Z with 0%Z. change (1 mod 2)%Z with 1%Z. field.
Qed.

Section Distribution.
Variables (pl : plan) (sampled g : R).
Notation w := (limb_bits pl).
Hypothesis sampled_positive : 0 < sampled.
Hypothesis widths : (3 <= w < word_bits pl)%Z.
Hypothesis formed : Forall (well_formed pl) (first pl :: rest pl).

Lemma w_pos : (0 < w <= word_bits pl)%Z. Proof. lia. Qed.

(** The box's interval in each digit from weight [B] on, as factors of lemma 3. *)
Fixpoint events (B : Z) (ds : list digit) (bx : box) : list factor :=
  match ds, bx with
  | d :: ds, (lo, hi) :: bx =>
      let t := match ds with [] => true | _ => false end in
      event pl d (target sampled t B (count d + 1)) lo hi :: events (B * (count d + 1)) ds bx
  | _, _ => []
  end.

Definition event_first (e : event0) : factor :=
  let '((lo0, hi0), (lo1, hi1)) := e in
  mix (event pl (first pl) (target0 pl sampled g) lo0 hi0)
      (event pl (first pl) (target0 pl sampled g) lo1 hi1).

Definition factors (eb : event0 * box) : list factor :=
  event_first (fst eb) :: events (radix pl) (rest pl) (snd eb).

Lemma ps_events B ds bx : fits (map (fun d => count d + 1)%Z ds) bx ->
  ps (events B ds bx) = mass sampled B (map (fun d => count d + 1)%Z ds) bx.
Proof.
  revert B bx. induction ds as [|d ds IH]; intros B [|[lo hi] bx] F; try reflexivity;
    try (simpl in F; tauto).
  cbn [events map ps mass]. rewrite IH by (apply F). destruct ds; reflexivity.
Qed.

Lemma ps_factors eb : fits (radices pl) (snd eb) -> ps (factors eb) = box_mass pl sampled g eb.
Proof.
  intros F. unfold factors, box_mass. cbn [ps]. rewrite ps_events by exact F. f_equal.
  destruct eb as [[[lo0 hi0] [lo1 hi1]] bx]. reflexivity.
Qed.

(** Lemma 2: given [v], the digits of a box are independent. *)
Lemma mean_inbox B ds bx v n : fits (map (fun d => count d + 1)%Z ds) bx ->
  mean (tapes pl (own_words ds + n)) (fun t => ind (inbox bx (outcomes pl ds t v)))
  = qs (events B ds bx) v.
Proof.
  revert B bx. induction ds as [|d ds IH]; intros B [|[lo hi] bx] F; try (simpl in F; tauto).
  - cbn. rewrite mean_const by (apply tapes_nonempty, w_pos). reflexivity.
  - cbn [own_words events qs]. rewrite <- (IH (B * (count d + 1))%Z bx) by apply F.
    rewrite <- Nat.add_assoc.
    set (f := fun t1 t2 =>
      ind (within lo hi (outcome pl d t1 v)) * ind (inbox bx (outcomes pl ds t2 v))).
    transitivity (mean (tapes pl (own d)) (fun t1 => mean (tapes pl (own_words ds + n)) (f t1))).
    { rewrite <- (independent pl w_pos). apply mean_ext. intros t _. apply ind_and. }
    unfold f, event, chance; simpl q.
    rewrite (mean_ext _ (fun t1 =>
      mean (tapes pl (own_words ds + n)) (fun t2 => ind (inbox bx (outcomes pl ds t2 v)))
      * ind (within lo hi (outcome pl d t1 v)))).
    + rewrite mean_scale. ring.
    + intros t1 _. rewrite mean_scale. ring.
Qed.

Lemma in_radices_outcomes ds t v :
  in_radices (map (fun d => count d + 1)%Z ds) (outcomes pl ds t v).
Proof.
  revert t. induction ds as [|d ds IH]; intros t; cbn [map outcomes in_radices]; [exact I|].
  split; [|apply IH]. pose proof (outcome_range pl d (firstn (own d) t) v). lia.
Qed.

(** The probability of an output in the floor. *)
Definition nu (y : Z) : R :=
  mean (tapes pl (Nat.max (own_words (rest pl)) 1))
    (fun t => ind (Z.min (hd 0 t mod 2 ^ value_bits pl) (range pl) =? y)%Z).

(** Boxes within the digits' outcomes, without the slot. *)
Definition outside (e : event0) : Prop :=
  let '((lo0, hi0), (lo1, hi1)) := e in
  (1 <= lo0 \/ lo0 = hi0)%Z /\ (1 <= lo1 \/ lo1 = hi1)%Z.

Lemma hit_slot e s : outside e -> hit e s 0 = false.
Proof.
  destruct e as [[lo0 hi0] [lo1 hi1]]. unfold outside, hit, within. cbn [fst snd]. intros [A B].
  destruct (s =? 1)%Z.
  - destruct (Z.leb_spec lo1 0), (Z.ltb_spec 0 hi1); try reflexivity; lia.
  - destruct (Z.leb_spec lo0 0), (Z.ltb_spec 0 hi0); try reflexivity; lia.
Qed.

Hypothesis radix_pos : (1 <= radix pl)%Z.
Hypothesis slot_mass : IZR (nth 0 (values w (first pl)) 0%Z) = g * IZR (2 ^ bits w (first pl)).

Lemma slot_chance : mean (below (2 ^ w)) (chance pl (first pl) 0 1) = g.
Proof.
  inversion formed as [|? ? F Fs]; subst. unfold radix in radix_pos.
  rewrite mean_chance by (apply w_pos || assumption || lia).
  unfold cut. destruct (Z.leb_spec 1 0); [lia|]. destruct (Z.ltb_spec (count (first pl)) 1); [lia|].
  cbn [Z.leb Z.compare]. change (Z.to_nat (1 - 1)) with 0%nat. rewrite Z.sub_0_r, slot_mass.
  field. apply not_0_IZR. assert (0 < 2 ^ bits w (first pl))%Z; [|lia].
  apply pow2_pos. unfold bits. nia.
Qed.

Theorem distribution x y (bxs : list (event0 * box)) :
  Forall (fun eb => outside (fst eb) /\ fits (radices pl) (snd eb)) bxs ->
  (forall s o os free, (0 <= s <= 1)%Z -> (1 <= o <= radix pl + 1)%Z ->
    in_radices (radices pl) os ->
    sum (fun eb => ind (hits eb s o os)) bxs = ind (output pl s o os free x =? y)%Z) ->
  prob pl y x = g * nu y + sum (fun eb => mean (below (2 ^ w)) (qs (factors eb))) bxs.
Proof.
  intros F O. inversion formed as [|? ? FD FS]; subst.
  pose proof w_pos as W. unfold prob. rewrite mean_filter. unfold words. cbn [plus].
  rewrite mean_tapes_S by assumption.
  set (n := Nat.max (own_words (rest pl)) 1).
  set (os := fun t v => outcomes pl (rest pl) t v).
  set (o := fun t v => outcome pl (first pl) t v).
  set (floor := fun t => ind (Z.min (hd 0 t mod 2 ^ value_bits pl) (range pl) =? y)%Z).
  (* The indicator of the output, for the sign [s], [v], digit 0's words and the later ones. *)
  set (I := fun s v t0 t => ind (within 0 1 (o t0 v)) * floor t
    + sum (fun eb => ind (hit (fst eb) s (o t0 v)) * ind (inbox (snd eb) (os t v))) bxs).
  rewrite (mean_ext _ (fun x0 =>
    (fun s v => mean (tapes pl (own (first pl))) (fun t0 => mean (tapes pl n) (I s v t0)))
      (x0 mod 2)%Z (limb pl x0))).
  2: { intros x0 _. cbn beta. rewrite <- (independent pl W (own (first pl)) n (I _ _)).
    apply mean_ext. intros t _. unfold draw. cbn [hd tl].
    set (v := limb pl x0). set (s := (x0 mod 2)%Z).
    set (t0 := firstn (own (first pl)) t). set (t1 := skipn (own (first pl)) t).
    fold (o t0 v). fold (os t1 v). unfold I.
    pose proof (Z.mod_pos_bound x0 2 ltac:(lia)) as S. fold s in S.
    pose proof (outcome_range pl (first pl) t0 v) as R. fold (o t0 v) in R.
    assert (RX : count (first pl) = (radix pl + 1)%Z) by (unfold radix; lia). rewrite RX in R.
    destruct (Z.eq_dec (o t0 v) 0) as [Z0|Z0].
    - rewrite Z0. unfold output. cbn [Z.eqb within Z.leb Z.ltb Z.compare andb].
      rewrite (sum_ext _ (fun _ => 0)).
      + rewrite sum_const. unfold floor. unfold within, ind; simpl. lra.
      + intros eb Heb. rewrite Forall_forall in F. rewrite hit_slot by apply F, Heb.
        unfold ind; ring.
    - rewrite <- (O s (o t0 v) (os t1 v) (hd 0%Z t1)); [|lia|lia|apply in_radices_outcomes].
      assert (N : within 0 1 (o t0 v) = false).
      { unfold within. destruct (Z.leb_spec 0 (o t0 v)), (Z.ltb_spec (o t0 v) 1); try reflexivity;
          lia. }
      rewrite N. unfold ind at 2. rewrite Rmult_0_l, Rplus_0_l. apply sum_ext. intros eb _.
      apply ind_and. }
  rewrite (mean_sign pl (fun s v => mean (tapes pl (own (first pl)))
    (fun t0 => mean (tapes pl n) (I s v t0)))) by lia.
  (* For each sign and [v]. *)
  assert (M : forall s v, mean (tapes pl (own (first pl))) (fun t0 => mean (tapes pl n) (I s v t0))
    = nu y * chance pl (first pl) 0 1 v + sum (fun eb =>
        qs (events (radix pl) (rest pl) (snd eb)) v
        * mean (tapes pl (own (first pl))) (fun t0 => ind (hit (fst eb) s (o t0 v)))) bxs).
  { intros s v.
    rewrite (mean_ext _ (fun t0 => nu y * ind (within 0 1 (o t0 v))
      + sum (fun eb => qs (events (radix pl) (rest pl) (snd eb)) v * ind (hit (fst eb) s (o t0 v)))
          bxs)).
    - rewrite mean_plus, mean_scale, mean_sum. f_equal. apply sum_ext. intros eb _.
      now rewrite mean_scale.
    - intros t0 _. unfold I. rewrite mean_plus, mean_scale, mean_sum. fold n.
      unfold nu. fold n floor. rewrite Rmult_comm. f_equal. apply sum_ext. intros eb Heb.
      rewrite mean_scale, Rmult_comm. f_equal. unfold os, n.
      rewrite Forall_forall in F.
      replace (Nat.max (own_words (rest pl)) 1)
        with (own_words (rest pl) + (Nat.max (own_words (rest pl)) 1 - own_words (rest pl)))%nat
          by lia.
      apply mean_inbox, F, Heb. }
  rewrite (mean_ext _ (fun v => nu y * chance pl (first pl) 0 1 v
    + sum (fun eb => qs (factors eb) v) bxs)).
  - rewrite mean_plus, mean_scale, slot_chance, mean_sum. rewrite Rmult_comm. reflexivity.
  - intros v _. rewrite !M.
    match goal with |- (?n + ?s0 + (?n + ?s1)) / 2 = _ =>
      replace ((n + s0 + (n + s1)) / 2) with (n + / 2 * (s0 + s1)) by field end.
    f_equal. rewrite <- sum_plus, <- sum_scale. apply sum_ext. intros eb _.
    unfold factors. cbn [qs]. destruct eb as [[[lo0 hi0] [lo1 hi1]] bx].
    unfold event_first, mix, hit.
    cbn [fst snd q Z.eqb Pos.eqb event]. unfold chance, o. field.
Qed.

(** Every output has a share of the floor. *)
Lemma nu_large y : (0 < value_bits pl <= word_bits pl)%Z -> (1 <= range pl < 2 ^ value_bits pl)%Z ->
  (0 <= y <= range pl)%Z -> / IZR (2 ^ value_bits pl) <= nu y.
Proof.
  intros K R Y. pose proof w_pos as W. set (b := word_bits pl) in *. set (k := value_bits pl) in *.
  assert (0 < 2 ^ k)%Z by (apply pow2_pos; lia).
  assert (0 < 2 ^ (b - k))%Z by (apply pow2_pos; lia).
  unfold nu. set (n := Nat.max (own_words (rest pl)) 1).
  assert (N : n = S (n - 1)) by lia. rewrite N, mean_tapes_S by assumption. fold b k. cbn [hd].
  rewrite (mean_ext _ (fun x => ind (Z.min (x mod 2 ^ k) (range pl) =? y)%Z)).
  2: { intros x _. apply mean_const, tapes_nonempty, W. }
  replace (2 ^ b)%Z with (2 ^ (b - k) * 2 ^ k)%Z by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
  rewrite mean_below_mul by lia.
  rewrite (mean_ext _ (fun _ => mean (below (2 ^ k)) (fun x => ind (Z.min x (range pl) =? y)%Z))).
  2: { intros i _. apply mean_ext. intros j J. apply in_below in J. do 2 f_equal. f_equal.
    rewrite Z.add_comm, Z.mod_add, Z.mod_small; lia. }
  rewrite mean_const by (apply below_nonempty; lia).
  (* The word [y] itself. *)
  apply Rle_trans with (mean (below (2 ^ k)) (fun x => ind (x <? y + 1)%Z - ind (x <? y)%Z)).
  - rewrite mean_sub, !mean_less by lia. rewrite plus_IZR.
    match goal with |- _ <= ?u => replace u with (/ IZR (2 ^ k)) end; [lra|].
    field. apply not_0_IZR. lia.
  - apply mean_le; [apply below_nonempty; lia|]. intros x X. apply in_below in X. unfold ind.
    destruct (Z.ltb_spec x (y + 1)), (Z.ltb_spec x y), (Z.eqb_spec (Z.min x (range pl)) y);
      try lra; lia.
Qed.
End Distribution.
