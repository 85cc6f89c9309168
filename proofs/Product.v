(** Lemma 3, the product of digits: given the shared word [v], each digit's event has a
    probability [q v] near its target [p]; how far the mean of the product is from the product of
    the targets. *)
From Coq Require Export Permutation.
From Geomdp Require Export Means.

Record factor := Factor { q : Z -> R; p : R; sigma : R }.

Definition eps (f : factor) (v : Z) : R := q f v - p f.
Fixpoint qs (fs : list factor) (v : Z) : R :=
  match fs with [] => 1 | f :: fs => q f v * qs fs v end.
Fixpoint ps (fs : list factor) : R := match fs with [] => 1 | f :: fs => p f * ps fs end.

(** The relative error of low digits, whose [sigma] is at most [s * p]: single terms and pairs. *)
Fixpoint total (ss : list R) : R := match ss with [] => 0 | s :: ss => s + total ss end.
Fixpoint delta (iota : R) (ss : list R) : R :=
  match ss with [] => 0 | s :: ss => delta iota ss + 2 * iota * s + s * total ss end.

Section Product.
Variables (vs : list Z) (iota : R).
Hypothesis vs_nonempty : vs <> [].
Hypothesis iota_small : 0 <= iota <= 1 / 8.
Notation E := (mean vs).

(** A digit's error: [sigma] is [2^-(w W)], [iota] is [2^-w]. *)
Record good (f : factor) : Prop := {
  p_range : 0 <= p f <= 1;
  q_range : forall v, In v vs -> 0 <= q f v <= 1;
  sigma_ge0 : 0 <= sigma f;
  bias : Rabs (E (eps f)) <= 2 * iota * sigma f;
  square : E (fun v => eps f v * eps f v) <= (1 / 4 + 4 * iota * iota) * (sigma f * sigma f);
  size : forall v, In v vs -> Rabs (eps f v) <= (1 + 2 * iota) * sigma f }.

Let c := 1 / 4 + 4 * iota * iota.

Lemma c_small : 0 < c <= 5 / 16.
Proof. unfold c. nra. Qed.

Lemma pair_error f g : good f -> good g ->
  E (fun v => Rabs (eps f v * eps g v)) <= c * (sigma f * sigma g).
Proof.
  intros F G. pose proof c_small. pose proof (sigma_ge0 f F). pose proof (sigma_ge0 g G).
  assert (Z0 : forall h, good h -> sigma h = 0 -> forall v, In v vs -> eps h v = 0).
  { intros h Hh S v Hv. pose proof (size h Hh v Hv) as B. rewrite S in B.
    destruct (Req_dec (eps h v) 0) as [|N]; [assumption|]. apply Rabs_pos_lt in N. lra. }
  destruct (Req_dec (sigma f) 0) as [F0|F0].
  { rewrite (mean_ext _ (fun _ => 0)), mean_const by
      (assumption || (intros; rewrite (Z0 f) by assumption; rewrite Rmult_0_l; apply Rabs_R0)).
    rewrite F0. lra. }
  destruct (Req_dec (sigma g) 0) as [G0|G0].
  { rewrite (mean_ext _ (fun _ => 0)), mean_const by
      (assumption || (intros; rewrite (Z0 g) by assumption; rewrite Rmult_0_r; apply Rabs_R0)).
    rewrite G0. lra. }
  (* |x y| <= (k x^2 + y^2 / k) / 2 with k = sigma g / sigma f. *)
  set (k := sigma g / sigma f).
  assert (K : 0 < k) by (apply Rdiv_lt_0_compat; lra).
  assert (K' : 0 < / k) by now apply Rinv_0_lt_compat.
  apply Rle_trans with (E (fun v => k / 2 * (eps f v * eps f v) + / k / 2 * (eps g v * eps g v))).
  { apply mean_le; [assumption|]. intros v _.
    assert (KK : k * / k = 1) by (field; lra).
    assert (Sq : forall x y, x * y <= k / 2 * (x * x) + / k / 2 * (y * y)).
    { intros x y. assert (0 <= / k * ((k * x - y) * (k * x - y))) by
        (apply Rmult_le_pos; [lra | apply Rle_0_sqr]).
      replace (/ k * ((k * x - y) * (k * x - y)))
        with (k * (k * / k) * (x * x) - 2 * (k * / k) * (x * y) + / k * (y * y)) in H2 by ring.
      rewrite KK in H2. lra. }
    rewrite Rabs_mult. eapply Rle_trans; [apply Sq|]. apply Req_le. f_equal; f_equal.
    all: rewrite <- Rabs_mult; apply Rabs_pos_eq, Rle_0_sqr. }
  rewrite mean_plus, !mean_scale.
  apply Rle_trans with (k / 2 * (c * (sigma f * sigma f)) + / k / 2 * (c * (sigma g * sigma g))).
  - apply Rplus_le_compat; apply Rmult_le_compat_l; try lra; [apply F | apply G].
  - apply Req_le. unfold k. field. lra.
Qed.

(** An event that depends on a fair bit. *)
Definition mix (f g : factor) : factor :=
  Factor (fun v => (q f v + q g v) / 2) ((p f + p g) / 2) ((sigma f + sigma g) / 2).

Lemma mix_good f g : good f -> good g -> good (mix f g).
Proof.
  intros F G. pose proof (sigma_ge0 f F). pose proof (sigma_ge0 g G).
  assert (X : forall v, eps (mix f g) v = 1 / 2 * eps f v + 1 / 2 * eps g v)
    by (intros; unfold eps, mix; simpl; field).
  constructor; simpl p; simpl sigma.
  - pose proof (p_range f F). pose proof (p_range g G). lra.
  - intros v Hv. simpl. pose proof (q_range f F v Hv). pose proof (q_range g G v Hv). lra.
  - lra.
  - rewrite (mean_ext _ _ _ (fun v _ => X v)), mean_plus, !mean_scale.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, (Rabs_pos_eq (1 / 2)) by lra.
    pose proof (bias f F). pose proof (bias g G). lra.
  - rewrite (mean_ext _ (fun v => 1 / 4 * (eps f v * eps f v) + (1 / 4 * (eps g v * eps g v)
      + 1 / 2 * (eps f v * eps g v)))) by (intros; rewrite X; field).
    rewrite !mean_plus, !mean_scale.
    pose proof (square f F) as Sf. pose proof (square g G) as Sg. fold c in Sf, Sg |- *.
    pose proof (pair_error f g F G).
    pose proof (mean_abs (fun v => eps f v * eps g v) vs vs_nonempty).
    pose proof (Rle_abs (E (fun v => eps f v * eps g v))).
    nra.
  - intros v Hv. rewrite X. eapply Rle_trans; [apply Rabs_triang|].
    rewrite !Rabs_mult, (Rabs_pos_eq (1 / 2)) by lra.
    pose proof (size f F v Hv). pose proof (size g G v Hv). lra.
Qed.

Lemma ps_range fs : Forall good fs -> 0 <= ps fs <= 1.
Proof.
  induction 1 as [|f fs F Fs IH]; simpl; [lra|]. pose proof (p_range f F).
  split; [apply Rmult_le_pos; lra|]. rewrite <- (Rmult_1_l 1). apply Rmult_le_compat; lra.
Qed.

Lemma qs_range fs v : Forall good fs -> In v vs -> 0 <= qs fs v <= 1.
Proof.
  intros Fs Hv. induction Fs as [|f fs F Fs IH]; simpl; [lra|]. pose proof (q_range f F v Hv).
  split; [apply Rmult_le_pos; lra|]. rewrite <- (Rmult_1_l 1). apply Rmult_le_compat; lra.
Qed.

(** One more factor: the product's error is the old one and that of [eps f] against the rest. *)
Lemma peel f fs :
  E (qs (f :: fs)) - ps (f :: fs) = p f * (E (qs fs) - ps fs) + E (fun v => eps f v * qs fs v).
Proof.
  rewrite (mean_ext (qs (f :: fs)) (fun v => p f * qs fs v + eps f v * qs fs v))
    by (intros; unfold eps; simpl; ring).
  rewrite mean_plus, mean_scale. simpl. ring.
Qed.

Lemma peel_against g f fs :
  E (fun v => eps g v * qs (f :: fs) v)
  = p f * E (fun v => eps g v * qs fs v) + E (fun v => eps g v * eps f v * qs fs v).
Proof.
  rewrite (mean_ext _ (fun v => p f * (eps g v * qs fs v) + eps g v * eps f v * qs fs v))
    by (intros; unfold eps; simpl; ring).
  now rewrite mean_plus, mean_scale.
Qed.

Lemma pair_against g f fs m : good g -> good f -> 0 <= m ->
  (forall v, In v vs -> 0 <= qs fs v <= m) ->
  Rabs (E (fun v => eps g v * eps f v * qs fs v)) <= c * (sigma g * sigma f) * m.
Proof.
  intros G F M Q. eapply Rle_trans; [now apply mean_abs|].
  apply Rle_trans with (E (fun v => m * Rabs (eps g v * eps f v))).
  - apply mean_le; [assumption|]. intros v Hv. specialize (Q v Hv).
    rewrite Rabs_mult, (Rabs_pos_eq (qs fs v)), Rmult_comm by lra.
    apply Rmult_le_compat_r; [apply Rabs_pos | lra].
  - rewrite mean_scale, Rmult_comm. apply Rmult_le_compat_r; [assumption|].
    now apply pair_error.
Qed.

(** ** Low digits: the error is relative *)

(** [low f s]: the digit [f] errs by at most [s] of its target. *)
Definition low (f : factor) (s : R) : Prop := good f /\ 0 <= s /\ sigma f <= s * p f.

Lemma low_good fs ss : Forall2 low fs ss -> Forall good fs.
Proof. induction 1 as [|f s fs ss [F _]]; constructor; auto. Qed.

Lemma total_ge0 fs ss : Forall2 low fs ss -> 0 <= total ss.
Proof. induction 1 as [|f s fs ss (_ & S & _)]; simpl; lra. Qed.

Lemma delta_ge0 fs ss : Forall2 low fs ss -> 0 <= delta iota ss.
Proof.
  induction 1 as [|f s fs ss (_ & S & _) Fs IH]; simpl; [lra|].
  pose proof (total_ge0 fs ss Fs). assert (0 <= iota * s) by (apply Rmult_le_pos; lra).
  assert (0 <= s * total ss) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma low_product fs ss v : Forall2 low fs ss -> In v vs ->
  qs fs v * (1 - (1 + 2 * iota) * total ss) <= ps fs.
Proof.
  intros Fs Hv. induction Fs as [|f s fs ss (F & S & L) Fs IH]; simpl; [lra|].
  pose proof (qs_range fs v (low_good _ _ Fs) Hv) as Q. pose proof (total_ge0 _ _ Fs) as T.
  pose proof (p_range f F) as P. pose proof (q_range f F v Hv) as Qf.
  set (x := (1 + 2 * iota) * s) in *. set (t := (1 + 2 * iota) * total ss) in *.
  assert (X : 0 <= x) by (apply Rmult_le_pos; lra).
  assert (T' : 0 <= t) by (apply Rmult_le_pos; lra).
  assert (B : q f v <= p f * (1 + x)).
  { pose proof (size f F v Hv) as B. unfold eps in B. pose proof (Rle_abs (q f v - p f)).
    assert ((1 + 2 * iota) * sigma f <= (1 + 2 * iota) * (s * p f))
      by (apply Rmult_le_compat_l; lra).
    replace (p f * (1 + x)) with (p f + (1 + 2 * iota) * (s * p f)) by (unfold x; ring). lra. }
  replace ((1 + 2 * iota) * (s + total ss)) with (x + t) by (unfold x, t; ring).
  destruct (Rle_dec (x + t) 1) as [H|H].
  - apply Rle_trans with (p f * (1 + x) * qs fs v * (1 - (x + t))).
    { apply Rmult_le_compat_r; [lra|]. now apply Rmult_le_compat_r. }
    apply Rle_trans with (p f * (qs fs v * (1 - t))).
    { replace (p f * (1 + x) * qs fs v * (1 - (x + t)))
        with (p f * (qs fs v * ((1 + x) * (1 - (x + t))))) by ring.
      apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; nra. }
    now apply Rmult_le_compat_l.
  - apply Rle_trans with 0.
    + assert (0 <= q f v * qs fs v) by (apply Rmult_le_pos; lra). nra.
    + apply Rmult_le_pos; [lra|]. apply ps_range, (low_good _ _ Fs).
Qed.

Lemma low_bounded fs ss v : Forall2 low fs ss -> total ss <= 1 / 4 -> In v vs ->
  0 <= qs fs v <= 2 * ps fs.
Proof.
  intros Fs T Hv. pose proof (qs_range fs v (low_good _ _ Fs) Hv).
  pose proof (low_product fs ss v Fs Hv). pose proof (total_ge0 _ _ Fs).
  assert ((1 + 2 * iota) * total ss <= 1 / 2) by nra. nra.
Qed.

Lemma low_against g s fs ss : low g s -> Forall2 low fs ss -> total ss <= 1 / 4 ->
  Rabs (E (fun v => eps g v * qs fs v)) <= (2 * iota * s + s * total ss) * (p g * ps fs).
Proof.
  intros (G & S & L) Fs. induction Fs as [|f t fs ss (F & T & Lf) Fs IH]; simpl total; intros Small.
  - rewrite (mean_ext _ (eps g)) by (intros; simpl; ring).
    eapply Rle_trans; [apply G|]. simpl. nra.
  - rewrite peel_against. eapply Rle_trans; [apply Rabs_triang|].
    pose proof (total_ge0 _ _ Fs) as T0. pose proof (p_range f F) as P.
    pose proof (ps_range fs (low_good _ _ Fs)) as Ps. pose proof (p_range g G) as Pg.
    rewrite Rabs_mult, (Rabs_pos_eq (p f)) by lra.
    assert (A : p f * Rabs (E (fun v => eps g v * qs fs v))
                <= p f * ((2 * iota * s + s * total ss) * (p g * ps fs)))
      by (apply Rmult_le_compat_l; [lra | apply IH; lra]).
    assert (B : Rabs (E (fun v => eps g v * eps f v * qs fs v))
                <= s * t * (p g * (p f * ps fs))).
    { eapply Rle_trans.
      { apply (pair_against g f fs (2 * ps fs)); [assumption|assumption|lra|].
        intros v Hv. apply (low_bounded fs ss); [assumption|lra|assumption]. }
      assert (SS : sigma g * sigma f <= s * p g * (t * p f))
        by (apply Rmult_le_compat; auto using sigma_ge0).
      pose proof c_small. pose proof (sigma_ge0 g G). pose proof (sigma_ge0 f F).
      assert (0 <= sigma g * sigma f) by now apply Rmult_le_pos.
      apply Rle_trans with (1 * (s * p g * (t * p f)) * ps fs); [|apply Req_le; ring].
      replace (c * (sigma g * sigma f) * (2 * ps fs))
        with (2 * c * (sigma g * sigma f) * ps fs) by ring.
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat; lra. }
    simpl ps. eapply Rle_trans; [apply Rplus_le_compat; [exact A | exact B]|].
    apply Req_le. ring.
Qed.

Lemma low_error fs ss : Forall2 low fs ss -> total ss <= 1 / 4 ->
  Rabs (E (qs fs) - ps fs) <= delta iota ss * ps fs.
Proof.
  intros Fs. induction Fs as [|f s fs ss Lf Fs IH]; intros T.
  - simpl. rewrite (mean_const 1) by assumption. rewrite Rminus_diag_eq, Rabs_R0; lra.
  - rewrite peel. eapply Rle_trans; [apply Rabs_triang|]. simpl total in T.
    destruct Lf as (F & S & L). pose proof (p_range f F) as P.
    pose proof (ps_range fs (low_good _ _ Fs)) as Ps.
    rewrite Rabs_mult, (Rabs_pos_eq (p f)) by lra.
    assert (T' : total ss <= 1 / 4) by lra.
    pose proof (low_against f s fs ss (conj F (conj S L)) Fs T') as A.
    pose proof (Rmult_le_compat_l (p f) _ _ (proj1 P) (IH T')) as B.
    simpl. eapply Rle_trans; [apply Rplus_le_compat; [exact B | exact A]|].
    apply Req_le. ring.
Qed.

(** ** High digits on top: the error is absolute *)

(** [unit] is [2^-K]. A high digit has so many own words that its pairs err by less. *)
Variable unit : R.
Hypothesis unit_ge0 : 0 <= unit.

Definition high (fs : list factor) (g : factor) : Prop :=
  good g /\ 2 * iota * sigma g <= 2 * unit /\ Forall (fun f => sigma g * sigma f <= unit) fs.

Lemma high_against g fs : high fs g -> Forall good fs ->
  Rabs (E (fun v => eps g v * qs fs v)) <= (2 + INR (length fs) / 2) * unit.
Proof.
  intros (G & Bias & H) Fs. induction Fs as [|f fs F Fs IH].
  - rewrite (mean_ext _ (eps g)) by (intros; simpl; ring).
    eapply Rle_trans; [apply G|]. simpl. lra.
  - rewrite peel_against. eapply Rle_trans; [apply Rabs_triang|].
    inversion H as [|? ? Hf Hs]; subst.
    pose proof (p_range f F) as P. rewrite Rabs_mult, (Rabs_pos_eq (p f)) by lra.
    assert (A : p f * Rabs (E (fun v => eps g v * qs fs v)) <=
      1 * ((2 + INR (length fs) / 2) * unit)).
    { apply Rmult_le_compat; [lra | apply Rabs_pos | lra | now apply IH]. }
    assert (B : Rabs (E (fun v => eps g v * eps f v * qs fs v)) <= c * (sigma g * sigma f) * 1).
    { apply pair_against; [assumption|assumption|lra|]. intros; now apply qs_range. }
    pose proof c_small.
    assert (c * (sigma g * sigma f) <= 5 / 16 * unit).
    { pose proof (sigma_ge0 g G). pose proof (sigma_ge0 f F).
      assert (0 <= sigma g * sigma f) by now apply Rmult_le_pos.
      apply Rmult_le_compat; lra. }
    change (length (f :: fs)) with (S (length fs)). rewrite S_INR. lra.
Qed.

(** Each high digit, with everything it meets. *)
Fixpoint highs (hs fs : list factor) : Prop :=
  match hs with [] => True | h :: hs => high (hs ++ fs) h /\ highs hs fs end.

Lemma highs_good hs fs : highs hs fs -> Forall good fs -> Forall good (hs ++ fs).
Proof. induction hs as [|h hs IH]; simpl; intros H Fs; [assumption|]. constructor; [apply H|].
  apply IH; tauto. Qed.

(** Lemma 3 for one product: [h] high digits and [n] digits in all. *)
Theorem product_error hs fs ss n : highs hs fs -> Forall2 low fs ss -> total ss <= 1 / 4 ->
  (length hs + length fs <= n)%nat ->
  Rabs (E (qs (hs ++ fs)) - ps (hs ++ fs))
  <= delta iota ss * ps (hs ++ fs) + INR (length hs) * (2 + INR n / 2) * unit.
Proof.
  intros H Fs T. induction hs as [|h hs IH]; intros L.
  - simpl. pose proof (low_error fs ss Fs T). lra.
  - destruct H as (Hh & H). simpl app. rewrite peel. eapply Rle_trans; [apply Rabs_triang|].
    pose proof (p_range h (proj1 Hh)) as P. rewrite Rabs_mult, (Rabs_pos_eq (p h)) by lra.
    simpl length in L. assert (L' : (length hs + length fs <= n)%nat) by lia.
    specialize (IH H L').
    pose proof (highs_good hs fs H (low_good _ _ Fs)) as Gs.
    pose proof (high_against h (hs ++ fs) Hh Gs) as A.
    rewrite app_length in A.
    assert (N : INR (length hs + length fs) <= INR n) by (apply le_INR; lia).
    assert (A' : (2 + INR (length hs + length fs) / 2) * unit <= (2 + INR n / 2) * unit)
      by (apply Rmult_le_compat_r; lra).
    pose proof (ps_range _ Gs) as Ps. pose proof (delta_ge0 _ _ Fs) as D.
    change (length (h :: hs)) with (S (length hs)). rewrite S_INR. simpl ps.
    pose proof (pos_INR (length hs)). pose proof (pos_INR n).
    assert (U : 0 <= INR (length hs) * (2 + INR n / 2) * unit)
      by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]).
    pose proof (Rmult_le_compat_l (p h) _ _ (proj1 P) IH) as B.
    assert (p h * (INR (length hs) * (2 + INR n / 2) * unit)
            <= 1 * (INR (length hs) * (2 + INR n / 2) * unit))
      by (apply Rmult_le_compat_r; lra).
    nra.
Qed.
End Product.

(** ** Low and high digits in any order *)

Lemma qs_perm fs fs' v : Permutation fs fs' -> qs fs v = qs fs' v.
Proof.
  induction 1 as [|f fs fs' _ IH|f g fs|fs1 fs2 fs3 _ IH _ IH']; simpl;
    [reflexivity | now rewrite IH | ring | now rewrite IH].
Qed.

Lemma ps_perm fs fs' : Permutation fs fs' -> ps fs = ps fs'.
Proof.
  induction 1 as [|f fs fs' _ IH|f g fs|fs1 fs2 fs3 _ IH _ IH']; simpl;
    [reflexivity | now rewrite IH | ring | now rewrite IH].
Qed.

(** A factor, whether its digit is low, and if so its relative error. *)
Record tagged := Tagged { fac : factor; tag : bool; rel : R }.
Definition low_part (l : list tagged) : list tagged := filter tag l.
Definition high_part (l : list tagged) : list tagged := filter (fun t => negb (tag t)) l.

Lemma split_perm l :
  Permutation (map fac l) (map fac (high_part l) ++ map fac (low_part l)).
Proof.
  unfold high_part, low_part. induction l as [|t l IH]; [constructor|]. simpl.
  destruct (tag t); simpl.
  - apply Permutation_cons_app. exact IH.
  - now constructor.
Qed.

Theorem digits_error (vs : list Z) (iota unit : R) (l : list tagged) :
  vs <> [] -> 0 <= iota <= 1 / 8 -> 0 <= unit ->
  Forall (fun t => good vs iota (fac t)) l ->
  (forall t, In t l -> tag t = true -> 0 <= rel t /\ sigma (fac t) <= rel t * p (fac t)) ->
  (forall t u, In t l -> In u l -> tag t = false -> sigma (fac t) * sigma (fac u) <= unit) ->
  (forall t, In t l -> tag t = false -> 2 * iota * sigma (fac t) <= 2 * unit) ->
  total (map rel (low_part l)) <= 1 / 4 ->
  Rabs (mean vs (qs (map fac l)) - ps (map fac l))
  <= delta iota (map rel (low_part l)) * ps (map fac l)
     + INR (length (high_part l)) * (2 + INR (length l) / 2) * unit.
Proof.
  intros N Hi Hu G L H B T. pose proof (split_perm l) as P.
  rewrite (mean_ext _ _ _ (fun v _ => qs_perm _ _ v P)), (ps_perm _ _ P).
  rewrite Forall_forall in G.
  assert (LP : Forall2 (low vs iota) (map fac (low_part l)) (map rel (low_part l))).
  { assert (S : forall t, In t (low_part l) -> In t l /\ tag t = true).
    { intros t I. unfold low_part in I. now apply filter_In in I. }
    clear -S L G. induction (low_part l) as [|t k IH]; [constructor|]. simpl.
    destruct (S t (or_introl eq_refl)) as [I E]. constructor.
    - split; [now apply G | now apply L].
    - apply IH. intros u U. apply S. now right. }
  assert (HP : highs vs iota unit (map fac (high_part l)) (map fac (low_part l))).
  { assert (S : forall t, In t (high_part l) -> In t l /\ tag t = false).
    { intros t I. unfold high_part in I. apply filter_In in I. destruct I as [I E].
      split; [assumption | now destruct (tag t)]. }
    assert (S' : forall t, In t (low_part l) -> In t l).
    { intros t I. unfold low_part in I. now apply filter_In in I. }
    clear -S S' H B G. induction (high_part l) as [|t k IH]; [exact I|]. simpl.
    destruct (S t (or_introl eq_refl)) as [I E]. split.
    - split; [now apply G|]. split; [now apply B|]. apply Forall_forall. intros f F.
      apply in_app_or in F.
      destruct F as [F|F]; apply in_map_iff in F; destruct F as (u & <- & U);
        apply H; try assumption; [apply S; now right | now apply S'].
    - apply IH. intros u U. apply S. now right. }
  pose proof (product_error vs iota N Hi unit Hu _ _ _ (length l) HP LP T) as E.
  rewrite !map_length in E. apply E.
  rewrite <- (map_length fac l), (Permutation_length P), app_length, !map_length. lia.
Qed.
