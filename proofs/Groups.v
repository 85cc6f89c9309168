(** Groups of a domain that nobody can list: lemmas 27 to 29 and theorems 30 and 31 of
    docs/proofs.md. The first part, up to [groups_add_up], says what is proved. *)
From Geomdp Require Export Means.
Open Scope Z_scope.

(** * The release *)

(** One-sided noise is a sum of blocks of this size. All are full but the last, which ends below
    it. *)
Record blocks := Blocks { size : nat; full : R; ends : nat -> R }.

Record class := Class {
  threshold : Z;
  cells : list Z;
  places : list Z;  (** its cells, and perhaps cells of other classes *)
  falls_on : Z -> R;  (** the probability that a point falls on a place *)
  part : nat -> R;  (** the distribution of a part's number of points *)
  parts : nat  (** of independent parts *) }.

Open Scope R_scope.

Definition product {A} (f : A -> R) (l : list A) : R := fold_right (fun x p => f x * p) 1 l.

Definition convolve (u v : nat -> R) (n : nat) : R := sum_f_R0 (fun i => u i * v (n - i)%nat) n.

(** The sum of a series of terms of at least 0. It is cut off at 1, which no probability exceeds. *)
Definition capped (u : nat -> R) (n : nat) : R := Rmin (sum_f_R0 u n) 1.
Lemma capped_bound u : bound (EUn (capped u)).
Proof. exists 1. intros s (n & ->). apply Rmin_r. Qed.
Definition series (u : nat -> R) : R :=
  proj1_sig (completeness (EUn (capped u)) (capped_bound u) (EUn_noempty (capped u))).

Section Release.
(** The noise, its signs' probabilities, and the greatest value that is published: greater ones are
    cut off. *)
Variables (b : blocks) (rises falls : R) (greatest : Z).

(** The probability of one-sided noise of [g]. *)
Definition f (g : nat) : R := full b ^ (g / size b) * ends b (g mod size b).

(** That of [t] and more. *)
Fixpoint tail (t : nat) : R := match t with O => 1 | S t => tail t - f t end.

(** Noise is [g] if it rises and [-1 - g] if it falls. *)
Definition noise (z : Z) : R :=
  if (0 <=? z)%Z then rises * f (Z.to_nat z) else falls * f (Z.to_nat (-1 - z)).
(** The probability of noise of [z] and more. *)
Definition reaches (z : Z) : R :=
  if (0 <=? z)%Z then rises * tail (Z.to_nat z) else 1 - falls * tail (Z.to_nat (- z)).

Section One.
Variable k : class.

(** The probability that an occupied cell with the count [x] shows a value, or nothing. *)
Definition occupied (x : Z) (seen : option Z) : R :=
  match seen with
  | None => 1 - reaches (threshold k - x)
  | Some o =>
      if (o <? threshold k)%Z then 0
      else if (o <? greatest)%Z then noise (o - x)
      else if (o =? greatest)%Z then reaches (o - x)
      else 0
  end.

(** The values that can be shown, and the probability that a point has one. *)
Definition values : list Z :=
  map (Z.add (threshold k)) (below (greatest - threshold k + 1)).
Definition point_value (o : Z) : R :=
  let g := Z.to_nat (o - threshold k) in if (o <? greatest)%Z then f g else tail g.

(** The mean of [h] over lists of [n] points on the places [on], each a place and a value. *)
Fixpoint mean_points (on : list Z) (n : nat) (h : list (Z * Z) -> R) : R :=
  match n with
  | O => h []
  | S n => sum (fun c => falls_on k c * sum (fun o =>
      point_value o * mean_points on n (fun points => h ((c, o) :: points))) values) on
  end.

(** A place has the value of its first point. *)
Fixpoint left_on (c : Z) (points : list (Z * Z)) : option Z :=
  match points with
  | [] => None
  | (d, o) :: points => if (d =? c)%Z then Some o else left_on c points
  end.

Definition same (v w : option Z) : bool :=
  match v, w with Some o, Some o' => (o =? o')%Z | None, None => true | _, _ => false end.

(** Do the points leave on each empty cell what is seen there? *)
Definition fits (x : Z -> Z) (seen : Z -> option Z) (on : list Z) (points : list (Z * Z)) : bool :=
  forallb (fun c => (0 <? x c)%Z || same (left_on c points) (seen c)) on.

(** The distribution of the number of points of all parts. *)
Fixpoint number_of (parts : nat) : nat -> R :=
  match parts with
  | O => fun n => if Nat.eqb n 0 then 1 else 0
  | S parts => convolve (part k) (number_of parts)
  end.
Definition number : nat -> R := number_of (parts k).

(** The probability that the cells [on] show what is [seen], whatever the others show. *)
Definition class_prob (on : list Z) (x : Z -> Z) (seen : Z -> option Z) : R :=
  series (fun n => number n
    * mean_points (places k) n (fun points => ind (fits x seen on points)))
  * product (fun c => if (0 <? x c)%Z then occupied (x c) (seen c) else 1) on.
End One.

(** The probability that the [known] cells show what is [seen], for the counts [x]. *)
Definition groups_prob (ks : list class) (known : Z -> bool) (x : Z -> Z) (seen : Z -> option Z)
  : R := product (fun k => class_prob k (filter known (cells k)) x seen) ks.
End Release.

(** By how much counts change, on the known cells. *)
Definition changes (ks : list class) (known : Z -> bool) (x x' : Z -> Z) : R :=
  sum (fun k => sum (fun c => IZR (Z.abs (x c - x' c))) (filter known (cells k))) ks.

(** * The hypotheses *)

(** Those of docs/proofs.md: the verifier recomputes (C1) and (C2). What bits and words give is below
    ([bits_count_points], [places_are_near]); the error of blocks is proved there. *)
Section Hypotheses.
Context {b : blocks} {rises falls a kappa theta r : R}.

(** Each probability of a block is near that of a geometric distribution. *)
Record certified_noise : Prop := {
  a_range : 0 < a < 1;
  size_pos : (0 < size b)%nat;
  ends_near : forall d, (d < size b)%nat ->
    Rabs (ends b d - (1 - a) * a ^ d) <= kappa * ((1 - a) * a ^ d);
  full_near : Rabs (full b - a ^ size b) <= kappa * a ^ size b;
  block_total : sum (ends b) (seq 0 (size b)) + full b = 1;
  kappa_range : 0 <= kappa <= 1 / 4;
  theta_large : 4 * kappa <= theta;
  signs : 0 < rises /\ 0 < falls /\ rises + falls = 1;
  C1 : - ln a + theta <= r /\ Rabs (ln (rises / falls)) <= r }.

(** The probability that points with the mean [m] hit a place. *)
Definition hit (m : R) : R := 1 - exp (- m).

(** A part's number of points is nearly Poisson of mean [lambda]: condition (points). *)
Definition like_poisson (lambda delta : R) (u : nat -> R) : Prop :=
  forall j, Rabs (INR (S j) * u (S j) - lambda * u j) <= delta * (lambda * u j).

Context {delta beta lambda : R} {greatest : Z} {k : class}.

Record certified_class : Prop := {
  threshold_range : (1 <= threshold k <= greatest)%Z;
  cells_once : NoDup (cells k);
  places_once : NoDup (places k);
  cells_placed : incl (cells k) (places k);
  errors : 0 <= delta <= 1 /\ 0 <= beta <= 1 /\ 0 <= lambda;
  falls_near : forall c, In c (places k) ->
    Rabs (falls_on k c * INR (length (places k)) - 1) <= beta;
  falls_total : sum (falls_on k) (places k) = 1;
  part_ge0 : forall j, 0 <= part k j;
  part_total : infinite_sum (part k) 1;
  points : like_poisson lambda delta (part k);
  C2 :
    let mu := INR (parts k) * lambda / INR (length (places k)) in
    let err := (1 + delta) * (1 + beta) - 1 in
    let hi := rises * (a * exp theta) ^ Z.to_nat (threshold k - 1) in
    let lo := rises * (a * exp (- theta)) ^ Z.to_nat (threshold k - 1) in
    Rmax (exp (- r) * hi) (1 - exp r * (1 - hi)) <= hit (mu * (1 - err))
    /\ hit (mu * (1 + err)) <= Rmin (exp r * lo) (1 - exp (- r) * (1 - lo)) }.
End Hypotheses.
Arguments certified_noise : clear implicits.
Arguments certified_class : clear implicits.

Definition certified_groups (b : blocks) (rises falls r : R) (greatest : Z) (ks : list class)
  : Prop :=
  (exists a kappa theta, certified_noise b rises falls a kappa theta r
    /\ Forall (fun k => exists delta beta lambda,
      certified_class rises a theta r delta beta lambda greatest k) ks)
  /\ NoDup (flat_map cells ks).  (* No class has cells of another one. *)

(** Theorem 30. *)
Definition groups_purely_private : Prop := forall b rises falls r greatest ks,
  certified_groups b rises falls r greatest ks ->
  forall known x x' seen,
  groups_prob b rises falls greatest ks known x seen
  <= exp (r * changes ks known x x') * groups_prob b rises falls greatest ks known x' seen.

(** Theorem 31: what appears on cells of equal counts has equal distributions, and each cell [c]
    whose counts differ is private given what is known of others, whatever their counts are: that
    probability is [prob (also c known)] over [prob known]. *)
Definition also (c : Z) (known : Z -> bool) (d : Z) : bool := (d =? c)%Z || known d.
Definition groups_private_one_by_one : Prop := forall b rises falls r greatest ks,
  certified_groups b rises falls r greatest ks ->
  forall known x x' seen,
  let prob := groups_prob b rises falls greatest ks in
  ((forall d, known d = true -> x d = x' d) -> prob known x seen = prob known x' seen)
  /\ forall c, In c (flat_map cells ks) -> known c = false ->
    (0 <= x c)%Z -> (0 <= x' c)%Z -> x c <> x' c ->
    prob (also c known) x seen * prob known x' seen
    <= exp (r * IZR (Z.abs (x c - x' c))) * (prob (also c known) x' seen * prob known x seen).

(** These are probabilities: if nothing is known, 1, and over all that a cell can show, their sum is
    the probability of what is known of the others. *)
Definition groups_add_up : Prop := forall b rises falls r greatest ks,
  certified_groups b rises falls r greatest ks ->
  forall known x seen,
  let prob := groups_prob b rises falls greatest ks in
  prob (fun _ => false) x seen = 1
  /\ forall k c, In k ks -> In c (cells k) -> known c = false ->
    sum (fun v => prob (also c known) x (fun d => if (d =? c)%Z then v else seen d))
      (None :: map Some (values greatest k)) = prob known x seen.

(** * Series *)

Lemma within x y e : Rabs (x - y) <= e -> y - e <= x <= y + e.
Proof. unfold Rabs. destruct (Rcase_abs _); lra. Qed.

Lemma series_sum u s : (forall n, 0 <= u n) -> infinite_sum u s -> s <= 1 ->
  infinite_sum u (series u).
Proof.
  intros P T L. unfold series. destruct (completeness _ _ _) as (m & M). cbn [proj1_sig].
  assert (E : forall n, capped u n = sum_f_R0 u n).
  { intros n. unfold capped. apply Rmin_left. apply Rle_trans with s; [|exact L].
    now apply sum_incr. }
  assert (G : Un_cv (sum_f_R0 u) m).
  { apply Un_cv_crit_lub.
    - intros n. cbn. specialize (P (S n)). lra.
    - destruct M as [U V]. split.
      + intros y (n & ->). apply U. exists n. now rewrite E.
      + intros y Y. apply V. intros z (n & ->). rewrite E. apply Y. now exists n. }
  exact G.
Qed.

Lemma series_ge0 u : 0 <= u 0%nat -> 0 <= series u.
Proof.
  intros P. unfold series. destruct (completeness _ _ _) as (m & M). cbn [proj1_sig].
  apply Rle_trans with (capped u 0); [apply Rmin_glb; cbn; lra|]. apply M. now exists 0%nat.
Qed.

Lemma series_ext u v : (forall n, u n = v n) -> series u = series v.
Proof. intros E. f_equal. now apply FunctionalExtensionality.functional_extensionality. Qed.

Lemma constant x : Un_cv (fun _ => x) x.
Proof.
  intros e E. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity.
  lra.
Qed.

(** A series of smaller terms. *)
Lemma series_less u v s : (forall n, 0 <= u n <= v n) -> infinite_sum v s -> s <= 1 ->
  infinite_sum u (series u).
Proof.
  intros P T L. destruct (Rseries_CV_comp u v P (exist _ s T)) as (t & U).
  apply (series_sum u t); [intros; apply P | exact U |].
  apply Rle_trans with s; [|exact L].
  apply (@Rle_cv_lim (sum_f_R0 u) (sum_f_R0 v) _ _); [|exact U|exact T].
  intros n. apply sum_Rle. intros; apply P.
Qed.

Lemma partial u s n : (forall n, 0 <= u n) -> infinite_sum u s -> sum_f_R0 u n <= s.
Proof. intros P T. now apply sum_incr. Qed.

Lemma limit_below u s c : (forall n, sum_f_R0 u n <= c) -> infinite_sum u s -> s <= c.
Proof.
  intros P T. apply (@Rle_cv_lim (sum_f_R0 u) (fun _ => c) _ _); [exact P|exact T|apply constant].
Qed.

Lemma sum_ge0 u n : (forall i, (i <= n)%nat -> 0 <= u i) -> 0 <= sum_f_R0 u n.
Proof.
  intros P. induction n as [|n IH]; cbn; [apply P; lia|].
  specialize (P (S n) ltac:(lia)) as Q.
  assert (0 <= sum_f_R0 u n) by (apply IH; intros; apply P; lia).
  lra.
Qed.

Lemma sum_of_ge0 {A} (g : A -> R) l : (forall x, In x l -> 0 <= g x) -> 0 <= sum g l.
Proof. intros P. rewrite <- (Rmult_0_r (INR (length l))), <- sum_const. now apply sum_le. Qed.

Lemma sum_longer u n m : (n <= m)%nat -> (forall i, 0 <= u i) -> sum_f_R0 u n <= sum_f_R0 u m.
Proof.
  intros L P. induction L as [|m L IH]; [lra|]. cbn. specialize (P (S m)). lra.
Qed.

(** A triangle of terms lies between two squares. *)
Definition triangle (t : nat -> nat -> R) (n : nat) : R :=
  sum_f_R0 (fun s => sum_f_R0 (fun j => t (s - j)%nat j) s) n.

Lemma triangle_rows t n : triangle t n = sum_f_R0 (fun m => sum_f_R0 (t m) (n - m)) n.
Proof.
  unfold triangle. induction n as [|n IH]; [reflexivity|].
  rewrite tech5, IH. rewrite (tech5 (fun m => sum_f_R0 (t m) (S n - m))), Nat.sub_diag.
  rewrite (sum_eq (fun m => sum_f_R0 (t m) (S n - m))
    (fun m => sum_f_R0 (t m) (n - m) + t m (S n - m)%nat)).
  2: { intros m M. replace (S n - m)%nat with (S (n - m)) by lia. apply tech5. }
  rewrite plus_sum.
  enough (E : forall m, (m <= S n)%nat -> sum_f_R0 (fun j => t (S n - j)%nat j) m
    = sum_f_R0 (fun i => t i (S n - i)%nat) (S n) - sum_f_R0 (fun i => t i (S n - i)%nat) (S n - m)
      + t (S n - m)%nat m).
  { rewrite (E (S n)) by lia. rewrite Nat.sub_diag, tech5, Nat.sub_diag. cbn [sum_f_R0].
    rewrite Nat.sub_0_r. ring. }
  intros m M. induction m as [|m IHm].
  - rewrite Nat.sub_0_r. cbn [sum_f_R0]. rewrite Nat.sub_0_r. lra.
  - rewrite tech5, IHm by lia. replace (S n - m)%nat with (S (S n - S m)) by lia.
    rewrite (tech5 _ (S n - S m)). replace (S n - S (S n - S m))%nat with m by lia. lra.
Qed.

Lemma squares t n : (forall m j, 0 <= t m j) ->
  triangle t n <= sum_f_R0 (fun m => sum_f_R0 (t m) n) n <= triangle t (n + n).
Proof.
  intros P. rewrite !triangle_rows. split.
  - apply sum_Rle. intros m M. apply sum_longer; [lia|apply P].
  - apply Rle_trans with (sum_f_R0 (fun m => sum_f_R0 (t m) (n + n - m)) n).
    + apply sum_Rle. intros m M. apply sum_longer; [lia|apply P].
    + apply sum_longer; [lia|]. intros m. apply sum_ge0. intros; apply P.
Qed.

(** As the derivative of a product of generating functions. *)
Lemma convolve_step u v n :
  INR (S n) * convolve u v (S n)
  = convolve (fun j => INR (S j) * u (S j)) v n + convolve u (fun j => INR (S j) * v (S j)) n.
Proof.
  unfold convolve. rewrite scal_sum.
  rewrite (sum_eq _ (fun i =>
    INR i * u i * v (S n - i)%nat + INR (S n - i) * (u i * v (S n - i)%nat))).
  2: { intros i I. rewrite minus_INR by exact I. ring. }
  rewrite plus_sum. f_equal.
  - rewrite decomp_sum by lia. change (INR 0) with 0. rewrite !Rmult_0_l, Rplus_0_l.
    apply sum_eq. intros i I. reflexivity.
  - rewrite tech5, Nat.sub_diag. change (INR 0) with 0. rewrite Rmult_0_l, Rplus_0_r.
    apply sum_eq. intros i I. replace (S n - i)%nat with (S (n - i)) by lia. ring.
Qed.

Lemma convolve_scale c d u v n :
  convolve (fun i => c * u i) (fun i => d * v i) n = c * d * convolve u v n.
Proof. unfold convolve. rewrite scal_sum. apply sum_eq. intros. ring. Qed.

Lemma product_ext {A} (g h : A -> R) l : (forall x, In x l -> g x = h x) ->
  product g l = product h l.
Proof.
  induction l as [|x l IH]; intros E; [reflexivity|]. cbn. rewrite (E x) by now left.
  f_equal. apply IH. intros. apply E. now right.
Qed.

Lemma product_ge0 {A} (g : A -> R) l : (forall x, In x l -> 0 <= g x) -> 0 <= product g l.
Proof.
  induction l as [|x l IH]; intros P; cbn; [lra|]. apply Rmult_le_pos; [apply P; now left|].
  apply IH. intros. apply P. now right.
Qed.

Lemma product_remove (g : Z -> R) c l : NoDup l -> In c l ->
  product g l = g c * product g (remove Z.eq_dec c l).
Proof.
  induction l as [|d l IH]; intros N I; [destruct I|]. inversion N as [|? ? Out N']; subst.
  cbn [remove]. destruct (Z.eq_dec c d) as [<-|D].
  - now rewrite notin_remove.
  - destruct I as [->|I]; [congruence|].
    change (g d * product g l = g c * (g d * product g (remove Z.eq_dec c l))). rewrite (IH N' I).
    ring.
Qed.

Lemma forallb_remove (p : Z -> bool) c l : In c l ->
  forallb p l = p c && forallb p (remove Z.eq_dec c l).
Proof.
  intros I. apply eq_true_iff_eq. rewrite andb_true_iff, !forallb_forall. split.
  - intros H. split; [now apply H|]. intros x X. apply H. now apply in_remove in X.
  - intros [Pc H] x X. destruct (Z.eq_dec x c) as [->|N]; [exact Pc|]. apply H.
    now apply in_in_remove.
Qed.

Lemma exp_series x : infinite_sum (fun i => / INR (fact i) * x ^ i) (exp x).
Proof. unfold exp. exact (proj2_sig (exist_exp x)). Qed.

Lemma fact_pos n : 0 < INR (fact n).
Proof. apply INR_fact_lt_0. Qed.

Lemma convolve_ge0 u v n : (forall i, 0 <= u i) -> (forall i, 0 <= v i) -> 0 <= convolve u v n.
Proof. intros U V. apply sum_ge0. intros i _. now apply Rmult_le_pos. Qed.

Lemma convolve_plus u v w n : convolve u (fun i => v i + w i) n = convolve u v n + convolve u w n.
Proof. unfold convolve. rewrite <- plus_sum. apply sum_eq. intros. ring. Qed.

Lemma convolve_sum {A} u (w : A -> R) (g : A -> nat -> R) l n :
  convolve u (fun i => sum (fun d => w d * g d i) l) n = sum (fun d => w d * convolve u (g d) n) l.
Proof.
  induction l as [|d l IH].
  - unfold convolve, sum. cbn. induction n as [|n IH]; cbn; [ring|]. rewrite IH. ring.
  - change (convolve u (fun i => w d * g d i + sum (fun d => w d * g d i) l) n
      = w d * convolve u (g d) n + sum (fun d => w d * convolve u (g d) n) l).
    rewrite convolve_plus, IH. f_equal.
    transitivity (convolve (fun i => 1 * u i) (fun i => w d * g d i) n).
    + unfold convolve. apply sum_eq. intros. ring.
    + rewrite convolve_scale. ring.
Qed.

(** (points) for parts is (points) for all of them. *)
Lemma poisson_adds u v l m delta : (forall i, 0 <= u i) -> (forall i, 0 <= v i) ->
  like_poisson l delta u -> like_poisson m delta v -> like_poisson (l + m) delta (convolve u v).
Proof.
  intros U V Pu Pv n. rewrite convolve_step.
  assert (E : forall (w w' x : nat -> R) k, (forall i, 0 <= x i) ->
    (forall i, Rabs (w i - k * w' i) <= delta * (k * w' i)) ->
    let s := sum_f_R0 (fun i => w' i * x i) n in
    Rabs (sum_f_R0 (fun i => w i * x i) n - k * s) <= delta * (k * s)).
  { intros w w' x k X P. cbn zeta. rewrite !scal_sum, <- minus_sum.
    eapply Rle_trans; [apply Rsum_abs|]. apply sum_Rle. intros i _.
    replace (w i * x i - w' i * x i * k) with ((w i - k * w' i) * x i) by ring.
    rewrite Rabs_mult, (Rabs_pos_eq (x i)) by apply X.
    apply Rle_trans with (delta * (k * w' i) * x i); [|apply Req_le; ring].
    apply Rmult_le_compat_r; [apply X | apply P]. }
  assert (T : forall v, convolve u v n = sum_f_R0 (fun i => v (n - i)%nat * u i) n)
    by (intros; apply sum_eq; intros; ring).
  pose proof (E _ _ (fun i => v (n - i)%nat) l ltac:(intros; apply V) Pu) as E1.
  pose proof (E _ _ u m U (fun i => Pv (n - i)%nat)) as E2. cbv beta zeta in E1, E2.
  rewrite <- (T v), <- (T (fun j => INR (S j) * v (S j))) in E2.
  apply within in E1, E2. apply Rabs_le. unfold convolve in *. lra.
Qed.

Lemma convolve_total u v s t : (forall i, 0 <= u i) -> (forall i, 0 <= v i) ->
  infinite_sum u s -> infinite_sum v t -> infinite_sum (convolve u v) (s * t).
Proof.
  intros U V Su Sv.
  set (p := fun m j => u j * v m).
  assert (P : forall m j, 0 <= p m j) by (intros; now apply Rmult_le_pos).
  assert (Q : forall n, sum_f_R0 (fun m => sum_f_R0 (p m) n) n = sum_f_R0 u n * sum_f_R0 v n).
  { intros n. rewrite scal_sum. apply sum_eq. intros m _. unfold p. rewrite scal_sum. apply sum_eq.
    intros. ring. }
  assert (M : Un_cv (fun n => sum_f_R0 u n * sum_f_R0 v n) (s * t)) by now apply CV_mult.
  intros e E. destruct (M e E) as (N & H). exists (N + N)%nat. intros n L.
  change (Rabs (triangle p n - s * t) < e). specialize (H N ltac:(lia)). unfold R_dist in H.
  destruct (squares p N P) as [_ Lo]. destruct (squares p n P) as [Up _]. rewrite Q in Lo, Up.
  assert (G : triangle p (N + N) <= triangle p n).
  { apply sum_longer; [lia|]. intros i. apply sum_ge0. intros; apply P. }
  assert (sum_f_R0 u n * sum_f_R0 v n <= s * t).
  { apply Rmult_le_compat; try (apply sum_ge0; intros; apply U || apply V); now apply partial. }
  apply Rabs_def2 in H. apply Rabs_def1; lra.
Qed.

Lemma sum_scale_r {A} (g : A -> R) x l : sum (fun y => g y * x) l = sum g l * x.
Proof. rewrite (sum_ext _ (fun y => x * g y)), sum_scale by (intros; ring). ring. Qed.

(** Probabilities whose ratio is at most [exp r]. *)
Definition close (r u v : R) : Prop := u <= exp r * v /\ v <= exp r * u.

Lemma close_scale r w u v : 0 <= w -> close r u v -> close r (w * u) (w * v).
Proof.
  intros W [U V]. apply (Rmult_le_compat_l w _ _ W) in U, V. unfold close. split; lra.
Qed.

Lemma steps r (g : Z -> R) m m' : (forall m, close r (g m) (g (m + 1)%Z)) ->
  g m <= exp (r * IZR (Z.abs (m - m'))) * g m'.
Proof.
  intros S.
  assert (N : forall n m, g m <= exp (r * INR n) * g (m + Z.of_nat n)%Z
    /\ g (m + Z.of_nat n)%Z <= exp (r * INR n) * g m).
  { intros n. induction n as [|n IH]; intros i.
    - cbn [Z.of_nat INR]. rewrite Rmult_0_r, exp_0, Z.add_0_r. lra.
    - rewrite S_INR, Rmult_plus_distr_l, Rmult_1_r, exp_plus.
      destruct (IH i) as [L U]. destruct (S (i + Z.of_nat n)%Z) as [L' U'].
      replace (i + Z.of_nat (Datatypes.S n))%Z with (i + Z.of_nat n + 1)%Z by lia.
      pose proof (exp_pos r). pose proof (exp_pos (r * INR n)). split.
      + eapply Rle_trans; [exact L|]. rewrite Rmult_assoc. apply Rmult_le_compat_l; lra.
      + eapply Rle_trans; [exact U'|]. rewrite (Rmult_comm (exp (r * INR n))), Rmult_assoc.
        apply Rmult_le_compat_l; lra. }
  rewrite <- (Z2Nat.id (Z.abs (m - m'))), <- INR_IZR_INZ by lia.
  destruct (Z_le_dec m m') as [L|L].
  - replace m' with (m + Z.of_nat (Z.to_nat (Z.abs (m - m'))))%Z at 2 by lia. apply N.
  - replace m with (m' + Z.of_nat (Z.to_nat (Z.abs (m - m'))))%Z at 1 by lia. apply N.
Qed.

(** * Lemma 27: noise *)

Section Noise.
Variables (b : blocks) (rises falls a kappa theta r : R).
Hypothesis C : certified_noise b rises falls a kappa theta r.
Let B := size b.
Notation F := (f b).
Notation Tail := (tail b).

Lemma B_pos : (0 < B)%nat. Proof. exact (size_pos C). Qed.

(** Three factors are within [exp theta]. *)
Lemma factors :
  (1 + kappa) ^ 2 <= (1 - kappa) * exp theta /\ 1 + kappa <= (1 - kappa) ^ 2 * exp theta.
Proof.
  pose proof (kappa_range C). pose proof (theta_large C).
  assert (E : (1 + 2 * kappa) ^ 2 <= exp theta).
  { apply Rle_trans with (exp (2 * kappa + 2 * kappa)).
    - rewrite exp_plus. pose proof (exp_ineq1_le (2 * kappa)). nra.
    - destruct (Req_dec (2 * kappa + 2 * kappa) theta) as [->|]; [lra|].
      left. apply exp_increasing. lra. }
  assert (0 <= 1 - kappa - 4 * kappa ^ 2) by nra.
  assert (0 <= 1 - 3 * kappa - 4 * kappa ^ 2 + 4 * kappa ^ 3) by nra.
  split.
  - apply Rle_trans with ((1 - kappa) * (1 + 2 * kappa) ^ 2); [nra|].
    apply Rmult_le_compat_l; lra.
  - apply Rle_trans with ((1 - kappa) ^ 2 * (1 + 2 * kappa) ^ 2); [nra|].
    apply Rmult_le_compat_l; [apply pow2_ge_0 | lra].
Qed.

Lemma full_bounds : (1 - kappa) * a ^ B <= full b <= (1 + kappa) * a ^ B.
Proof. pose proof (within _ _ _ (full_near C)) as N. fold B in N. lra. Qed.

Lemma ends_bounds d : (d < B)%nat ->
  (1 - kappa) * ((1 - a) * a ^ d) <= ends b d <= (1 + kappa) * ((1 - a) * a ^ d).
Proof. intros D. pose proof (within _ _ _ (ends_near C d D)). lra. Qed.

Lemma a_pow d : 0 < a ^ d.
Proof. apply pow_lt, (a_range C). Qed.

Lemma full_pos : 0 < full b.
Proof.
  pose proof full_bounds. pose proof (a_pow B). pose proof (kappa_range C).
  assert (0 < (1 - kappa) * a ^ B) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma ends_pos d : (d < B)%nat -> 0 < ends b d.
Proof.
  intros D. pose proof (ends_bounds d D). pose proof (a_pow d). pose proof (kappa_range C).
  pose proof (a_range C).
  assert (0 < (1 - kappa) * ((1 - a) * a ^ d)) by (repeat apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma f_pos g : 0 < F g.
Proof.
  apply Rmult_lt_0_compat; [apply pow_lt, full_pos|]. apply ends_pos. fold B.
  apply Nat.mod_upper_bound. pose proof B_pos. lia.
Qed.

(** The next value is in the same block, or begins one. *)
Lemma next g :
  (S (g mod B) < B)%nat /\ (S g / B = g / B)%nat /\ (S g mod B = S (g mod B))%nat
  \/ (S (g mod B) = B)%nat /\ (S g / B = S (g / B))%nat /\ (S g mod B = 0)%nat.
Proof.
  pose proof B_pos. pose proof (Nat.mod_upper_bound g B ltac:(lia)) as M.
  pose proof (Nat.div_mod g B ltac:(lia)) as E.
  destruct (Nat.eq_dec (S (g mod B)) B) as [F|F]; [right|left]; (split; [lia|]).
  - assert (Q : (S (g / B) = S g / B)%nat) by (apply Nat.div_unique with 0%nat; lia).
    assert (R : (0 = S g mod B)%nat) by (apply Nat.mod_unique with (S (g / B)); lia). lia.
  - assert (Q : (g / B = S g / B)%nat) by (apply Nat.div_unique with (S (g mod B)); lia).
    assert (R : (S (g mod B) = S g mod B)%nat) by (apply Nat.mod_unique with (g / B)%nat; lia). lia.
Qed.

Lemma f_ratio g : a * exp (- theta) * F g <= F (S g) <= a * exp theta * F g.
Proof.
  pose proof (a_range C) as A. pose proof (kappa_range C) as K.
  destruct factors as [F1 F2]. pose proof (exp_pos theta) as P.
  assert (I : exp (- theta) * exp theta = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  pose proof (exp_pos (- theta)) as P'.
  (* It is enough to bound [y / x] for [y] near [z a] and [x] near [z], with three factors. *)
  assert (G : forall w x y z, 0 <= w -> 0 < z -> (1 - kappa) * z <= x <= (1 + kappa) * z ->
    (1 - kappa) ^ 2 * (a * z) <= y <= (1 + kappa) ^ 2 * (a * z) ->
    a * exp (- theta) * (w * x) <= w * y <= a * exp theta * (w * x)).
  { intros w x y z W Z X Y.
    assert (U : y <= a * exp theta * x).
    { apply Rle_trans with (a * exp theta * ((1 - kappa) * z)).
      - apply Rle_trans with ((1 - kappa) * exp theta * (a * z)); [|lra].
        apply Rle_trans with ((1 + kappa) ^ 2 * (a * z)); [lra|].
        apply Rmult_le_compat_r; [|exact F1]. apply Rmult_le_pos; lra.
      - apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra]. }
    assert (V : a * exp (- theta) * x <= y).
    { apply Rle_trans with (a * exp (- theta) * ((1 + kappa) * z)).
      - apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra].
      - apply Rle_trans with ((1 - kappa) ^ 2 * (a * z)); [|lra].
        replace (a * exp (- theta) * ((1 + kappa) * z)) with (exp (- theta) * (1 + kappa) * (a * z))
          by ring.
        apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|].
        apply Rle_trans with (exp (- theta) * ((1 - kappa) ^ 2 * exp theta)).
        + apply Rmult_le_compat_l; lra.
        + apply Req_le. transitivity ((1 - kappa) ^ 2 * (exp (- theta) * exp theta)); [ring|].
          rewrite I. ring. }
    apply (Rmult_le_compat_l w) in U; [|exact W]. apply (Rmult_le_compat_l w) in V; [|exact W].
    lra. }
  assert (Pw : forall n, 0 <= full b ^ n) by (intros n; left; apply pow_lt, full_pos).
  unfold f. fold B.
  destruct (next g) as [(L & -> & ->)|(L & -> & ->)]; set (d := (g mod B)%nat) in *.
  - apply G with ((1 - a) * a ^ d); [apply Pw| |apply ends_bounds; lia|].
    { pose proof (a_pow d). apply Rmult_lt_0_compat; lra. }
    pose proof (ends_bounds (S d) L) as E. cbn [pow] in E. pose proof (a_pow d).
    set (z := (1 - a) * a ^ d).
    replace ((1 - a) * (a * a ^ d)) with (a * z) in E by (unfold z; ring).
    assert (0 <= a * z) by (unfold z; repeat apply Rmult_le_pos; lra). nra.
  - replace (full b ^ S (g / B) * ends b 0) with (full b ^ (g / B) * (full b * ends b 0))
      by (cbn [pow]; ring).
    apply G with ((1 - a) * a ^ d); [apply Pw| |apply ends_bounds; lia|].
    { pose proof (a_pow d). apply Rmult_lt_0_compat; lra. }
    pose proof (ends_bounds 0 B_pos) as E. pose proof full_bounds as Fb. rewrite <- L in Fb at 1.
    rewrite <- L in Fb. cbn [pow] in E, Fb. rewrite Rmult_1_r in E. pose proof (a_pow d) as Ad.
    replace ((1 - kappa) ^ 2 * (a * ((1 - a) * a ^ d)))
      with ((1 - kappa) * (a * a ^ d) * ((1 - kappa) * (1 - a))) by ring.
    replace ((1 + kappa) ^ 2 * (a * ((1 - a) * a ^ d)))
      with ((1 + kappa) * (a * a ^ d) * ((1 + kappa) * (1 - a))) by ring.
    assert (0 <= a * a ^ d) by (apply Rmult_le_pos; lra).
    pose proof full_pos. pose proof (ends_pos 0 B_pos).
    split; apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra.
Qed.

Definition after (d : nat) : R := 1 - sum (ends b) (seq 0 d).

Lemma after_step d : after (S d) = after d - ends b d.
Proof. unfold after. rewrite seq_S, sum_app. unfold sum; cbn. lra. Qed.

Lemma after_full : after B = full b.
Proof. unfold after. pose proof (block_total C) as T. fold B in T. lra. Qed.

Lemma tail_blocks t : Tail t = full b ^ (t / B) * after (t mod B).
Proof.
  pose proof B_pos. induction t as [|t IH].
  - rewrite Nat.div_0_l, Nat.mod_0_l by lia. unfold after, sum. cbn. lra.
  - cbn [tail]. rewrite IH. unfold f. fold B.
    destruct (next t) as [(L & -> & ->)|(L & -> & ->)].
    + rewrite after_step. ring.
    + assert (Z : after 0 = 1) by (unfold after, sum; cbn; lra).
      pose proof (after_step (t mod B)) as E. rewrite L, after_full in E. rewrite Z. cbn [pow].
      rewrite E. ring.
Qed.

Lemma after_range d : (d <= B)%nat -> 0 <= after d <= 1.
Proof.
  intros D. split.
  - replace d with (B - (B - d))%nat by lia. assert (B - d <= B)%nat as L by lia. revert L.
    generalize (B - d)%nat. intros n. induction n as [|n IH]; intros L.
    + rewrite Nat.sub_0_r, after_full. left. apply full_pos.
    + pose proof (after_step (B - S n)) as E. replace (S (B - S n)) with (B - n)%nat in E by lia.
      pose proof (ends_pos (B - S n) ltac:(lia)). specialize (IH ltac:(lia)). lra.
  - induction d as [|d IH]; [unfold after, sum; cbn; lra|].
    rewrite after_step. pose proof (ends_pos d ltac:(lia)). specialize (IH ltac:(lia)). lra.
Qed.

Lemma tail_vanishes : Un_cv Tail 0.
Proof.
  pose proof B_pos. intros e E. pose proof full_pos.
  assert (full b < 1).
  { pose proof (after_step 0) as Z. pose proof (ends_pos 0 B_pos). rewrite <- after_full.
    assert (forall n, (1 <= n <= B)%nat -> after n <= after 1) as M.
    { intros n. induction n as [|n IH]; intros N; [lia|]. destruct n; [lra|].
      rewrite after_step. pose proof (ends_pos (S n) ltac:(lia)). specialize (IH ltac:(lia)). lra. }
    specialize (M B ltac:(lia)). unfold after at 2 in Z. unfold sum in Z. cbn in Z. lra. }
  destruct (pow_lt_1_zero (full b) ltac:(rewrite Rabs_pos_eq; lra) e E) as (J & P).
  exists (J * B)%nat. intros t T. unfold R_dist. rewrite Rminus_0_r, tail_blocks.
  specialize (P (t / B)%nat). rewrite Rabs_mult.
  pose proof (after_range (t mod B)) as R. pose proof (Nat.mod_upper_bound t B ltac:(lia)).
  specialize (R ltac:(lia)). rewrite (Rabs_pos_eq (after _)) by lra.
  assert (J <= t / B)%nat by (apply Nat.div_le_lower_bound; lia). specialize (P ltac:(lia)).
  apply Rle_lt_trans with (Rabs (full b ^ (t / B)) * 1); [|lra].
  apply Rmult_le_compat_l; [apply Rabs_pos | lra].
Qed.

(** What falls in each step and vanishes is not negative. *)
Lemma tail_combination c d : (forall g, 0 <= c * F g + d * F (S g)) ->
  forall t, 0 <= c * Tail t + d * Tail (S t).
Proof.
  intros P. apply (decreasing_ineq (fun t => c * Tail t + d * Tail (S t)) 0).
  - intros t. specialize (P t). cbn [tail] in *. lra.
  - replace 0 with (c * 0 + d * 0) by ring.
    apply (CV_plus (fun t => c * Tail t) (fun t => d * Tail (S t))).
    + apply (CV_mult (fun _ => c)); [apply constant | exact tail_vanishes].
    + apply (CV_mult (fun _ => d) (fun t => Tail (S t))); [apply constant|].
      intros e E. destruct (tail_vanishes e E) as (N & H). exists N. intros n L. apply H. lia.
Qed.

Lemma tail_ge0 t : 0 <= Tail t.
Proof.
  pose proof (tail_combination 1 0) as T.
  specialize (T ltac:(intros g; pose proof (f_pos g); lra) t).
  lra.
Qed.

Lemma tail_ratio t : a * exp (- theta) * Tail t <= Tail (S t) <= a * exp theta * Tail t.
Proof.
  pose proof (tail_combination (a * exp theta) (-1)) as U.
  pose proof (tail_combination (- (a * exp (- theta))) 1) as V.
  specialize (U ltac:(intros g; pose proof (f_ratio g); lra) t).
  specialize (V ltac:(intros g; pose proof (f_ratio g); lra) t). lra.
Qed.

Lemma powers (u : nat -> R) (g t : nat) : (forall g, 0 <= u g) ->
  (forall g, a * exp (- theta) * u g <= u (S g) <= a * exp theta * u g) ->
  (a * exp (- theta)) ^ t * u g <= u (g + t)%nat <= (a * exp theta) ^ t * u g.
Proof.
  intros P H. pose proof (a_range C). pose proof (exp_pos theta). pose proof (exp_pos (- theta)).
  induction t as [|t IH]; [rewrite Nat.add_0_r; cbn; lra|].
  rewrite Nat.add_succ_r. cbn [pow]. rewrite !Rmult_assoc, <- !(Rmult_assoc a).
  specialize (H (g + t)%nat).
  assert (0 <= a * exp theta) by (apply Rmult_le_pos; lra).
  assert (0 <= a * exp (- theta)) by (apply Rmult_le_pos; lra).
  split.
  - eapply Rle_trans; [|apply H]. now apply Rmult_le_compat_l.
  - eapply Rle_trans; [apply H|]. now apply Rmult_le_compat_l.
Qed.

(** A step of one in the noise. *)
Lemma step_bounds : exp (- r) <= a * exp (- theta) /\ a * exp theta <= exp r.
Proof.
  pose proof (a_range C) as A. pose proof (proj1 (C1 C)) as L.
  pose proof (kappa_range C). pose proof (theta_large C).
  assert (ln a < 0) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (M : forall x y, x <= y -> exp x <= exp y).
  { intros x y [XY| ->]; [left; now apply exp_increasing | lra]. }
  replace a with (exp (ln a)) by (apply exp_ln; lra). rewrite <- !exp_plus. split; apply M; lra.
Qed.

Lemma step_same (u : nat -> R) : (forall g, 0 <= u g) ->
  (forall g, a * exp (- theta) * u g <= u (S g) <= a * exp theta * u g) ->
  forall g, u g <= exp r * u (S g) /\ u (S g) <= exp r * u g.
Proof.
  intros P H g. destruct step_bounds as [L U]. specialize (H g). specialize (P g) as P0.
  assert (I : exp r * exp (- r) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  pose proof (exp_pos r) as E. split.
  - apply Rle_trans with (exp r * (exp (- r) * u g)); [rewrite <- Rmult_assoc, I; lra|].
    apply Rmult_le_compat_l; [lra|]. apply Rle_trans with (a * exp (- theta) * u g); [|lra].
    now apply Rmult_le_compat_r.
  - apply Rle_trans with (a * exp theta * u g); [lra|]. now apply Rmult_le_compat_r.
Qed.

Lemma signs_ratio : rises <= exp r * falls /\ falls <= exp r * rises.
Proof.
  destruct (signs C) as (U & V & _).
  pose proof (proj2 (C1 C)) as L.
  unfold Rdiv in L. rewrite ln_mult, ln_Rinv in L by (try apply Rinv_0_lt_compat; assumption).
  change (Rabs (ln rises - ln falls) <= r) in L.
  apply within in L.
  assert (M : forall x y, 0 < x -> 0 < y -> ln x - ln y <= r -> x <= exp r * y).
  { intros x y X Y H. rewrite <- (exp_ln x), <- (exp_ln y), <- exp_plus by assumption.
    destruct (Rle_lt_or_eq_dec (ln x) (r + ln y)) as [K| <-]; [lra| |lra].
    left. now apply exp_increasing. }
  split; apply M; lra.
Qed.

Lemma f_close g : close r (f b g) (f b (S g)).
Proof.
  apply step_same; [|apply f_ratio].
  intros i. left. apply f_pos.
Qed.

Lemma tail_close g : close r (tail b g) (tail b (S g)).
Proof.
  apply step_same; [apply tail_ge0 | apply tail_ratio].
Qed.

Lemma rate_ge0 : 1 <= exp r.
Proof.
  destruct (tail_close 0) as [L _]. cbn [tail] in L. pose proof (f_pos 0). pose proof (exp_pos r).
  nra.
Qed.

Lemma exp_more x y : x <= y -> exp (r * x) <= exp (r * y).
Proof.
  intros L. assert (0 <= r).
  { pose proof rate_ge0. destruct (Rle_lt_dec 0 r); [assumption|].
    assert (exp r < exp 0) by now apply exp_increasing. rewrite exp_0 in *. lra. }
  apply (Rmult_le_compat_l r) in L; [|assumption].
  destruct L as [L| ->]; [left; now apply exp_increasing | lra].
Qed.

Lemma close_sym u v : close r u v -> close r v u.
Proof. intros []. now split. Qed.

(** Both signs. *)
Section Signs.
Variables u d : R.
Hypothesis UD : 0 < u /\ 0 < d /\ u + d = 1.
Hypothesis near : close r u d.

Lemma noise_ge0 z : 0 <= noise b u d z.
Proof.
  unfold noise. destruct (0 <=? z)%Z; apply Rmult_le_pos; try lra; left; apply f_pos.
Qed.

Lemma noise_close z : close r (noise b u d z) (noise b u d (z + 1)).
Proof.
  unfold noise. destruct (Z.leb_spec 0 z), (Z.leb_spec 0 (z + 1)); try lia.
  - replace (Z.to_nat (z + 1)) with (S (Z.to_nat z)) by lia.
    apply close_scale; [lra | apply f_close].
  - replace z with (-1)%Z by lia. cbn [Z.add Z.sub Z.opp Z.to_nat Z.pos_sub]. apply close_sym.
    rewrite !(Rmult_comm _ (f b _)). apply close_scale; [left; apply f_pos | exact near].
  - replace (Z.to_nat (-1 - z)) with (S (Z.to_nat (-1 - (z + 1)))) by lia.
    apply close_sym, close_scale; [lra | apply f_close].
Qed.

Lemma reaches_less z : reaches b u d z = noise b u d z + reaches b u d (z + 1).
Proof.
  unfold noise, reaches. destruct (Z.leb_spec 0 z), (Z.leb_spec 0 (z + 1)); try lia.
  - replace (Z.to_nat (z + 1)) with (S (Z.to_nat z)) by lia. cbn [tail]. ring.
  - replace z with (-1)%Z by lia. change (Z.to_nat (- -1)) with 1%nat.
    change (Z.to_nat (-1 - -1)) with 0%nat. change (Z.to_nat (-1 + 1)) with 0%nat. cbn [tail]. lra.
  - replace (Z.to_nat (- z)) with (S (Z.to_nat (- (z + 1)))) by lia.
    replace (-1 - z)%Z with (- (z + 1))%Z by lia. cbn [tail]. ring.
Qed.

Lemma reaches_ge0 z : 0 <= reaches b u d z.
Proof.
  unfold reaches. destruct (0 <=? z)%Z.
  - apply Rmult_le_pos; [lra | apply tail_ge0].
  - assert (T : forall t, 0 <= tail b t <= 1).
    { intros t. split; [apply tail_ge0|]. induction t as [|t IH]; cbn; [lra|].
      pose proof (f_pos t). lra. }
    specialize (T (Z.to_nat (- z))). nra.
Qed.

Lemma reaches_close z : close r (reaches b u d z) (reaches b u d (z + 1)).
Proof.
  pose proof rate_ge0 as E. split.
  - destruct (Z_le_dec 0 z) as [P|P].
    + unfold reaches. destruct (Z.leb_spec 0 z), (Z.leb_spec 0 (z + 1)); try lia.
      replace (Z.to_nat (z + 1)) with (S (Z.to_nat z)) by lia.
      exact (proj1 (close_scale r u _ _ ltac:(lra) (tail_close _))).
    + replace z with (0 - Z.of_nat (Z.to_nat (- z)))%Z by lia. generalize (Z.to_nat (- z)).
      intros n. clear P z. induction n as [|n IH].
      * unfold reaches. cbn [Z.of_nat Z.sub Z.add Z.opp Z.leb Z.compare].
        change (Z.to_nat 0) with 0%nat. change (Z.to_nat 1) with 1%nat.
        exact (proj1 (close_scale r u _ _ ltac:(lra) (tail_close 0))).
      * rewrite reaches_less, (reaches_less (0 - Z.of_nat (S n) + 1)%Z).
        destruct (noise_close (0 - Z.of_nat (S n))) as [N _].
        replace (0 - Z.of_nat (S n) + 1)%Z with (0 - Z.of_nat n)%Z in * by lia.
        rewrite reaches_less in IH. lra.
  - pose proof (reaches_ge0 z). pose proof (noise_ge0 z). pose proof (reaches_less z).
    assert (reaches b u d z <= exp r * reaches b u d z) by nra. lra.
Qed.
End Signs.

Lemma rises_near : close r rises falls.
Proof. apply signs_ratio. Qed.

Lemma reaches_other z : 1 - reaches b rises falls z = reaches b falls rises (- z).
Proof.
  destruct (signs C) as (_ & _ & T). unfold reaches.
  destruct (Z.leb_spec 0 z), (Z.leb_spec 0 (- z)); try lia.
  - replace z with 0%Z by lia. cbn [Z.opp Z.to_nat tail]. lra.
  - now rewrite Z.opp_involutive.
  - ring.
Qed.

Lemma occupied_ge0 greatest k x seen : 0 <= occupied b rises falls greatest k x seen.
Proof.
  pose proof (signs C) as S. unfold occupied. destruct seen as [o|].
  - destruct (o <? threshold k)%Z; [lra|]. destruct (o <? greatest)%Z; [now apply noise_ge0|].
    destruct (o =? greatest)%Z; [now apply reaches_ge0 | lra].
  - rewrite reaches_other. apply reaches_ge0. lra.
Qed.

Lemma occupied_close greatest k x seen :
  close r (occupied b rises falls greatest k x seen)
    (occupied b rises falls greatest k (x + 1) seen).
Proof.
  pose proof (signs C) as S. pose proof rises_near as N. unfold occupied.
  assert (Z0 : close r 0 0) by (unfold close; lra).
  destruct seen as [o|].
  - destruct (o <? threshold k)%Z; [exact Z0|].
    replace (o - x)%Z with (o - (x + 1) + 1)%Z by lia.
    destruct (o <? greatest)%Z; [now apply close_sym, noise_close|].
    destruct (o =? greatest)%Z; [now apply close_sym, reaches_close | exact Z0].
  - rewrite !reaches_other.
    replace (- (threshold k - (x + 1)))%Z with (- (threshold k - x) + 1)%Z by lia.
    apply reaches_close; [lra | now apply close_sym].
Qed.

(** * Lemma 28: points *)

Section Class.
Variables (delta beta lambda : R) (greatest : Z) (k : class).
Hypothesis K : certified_class rises a theta r delta beta lambda greatest k.
Notation Values := (values greatest k).
Notation P := (point_value b greatest k).
Notation q := (falls_on k).
Notation Lambda := (INR (parts k) * lambda).

Lemma number_of_ge0 m n : 0 <= number_of k m n.
Proof.
  revert n. induction m as [|m IH]; intros n; cbn; [destruct (Nat.eqb n 0); lra|].
  apply convolve_ge0; [exact (part_ge0 K) | exact IH].
Qed.
Definition number_ge0 : forall n, 0 <= number k n := number_of_ge0 (parts k).

Lemma number_total : infinite_sum (number k) 1.
Proof.
  unfold number. induction (parts k) as [|m IH]; cbn.
  - intros e E. exists 0%nat. intros n _. replace (sum_f_R0 _ n) with 1.
    + unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
    + induction n as [|n IH]; cbn; [reflexivity|]. rewrite <- IH. lra.
  - replace 1 with (1 * 1) by ring.
    apply convolve_total;
      [exact (part_ge0 K) | apply number_of_ge0 | exact (part_total K) | exact IH].
Qed.

Lemma number_points : like_poisson Lambda delta (number k).
Proof.
  unfold number. induction (parts k) as [|m IH].
  - intros j. cbn [number_of Nat.eqb INR].
    rewrite Rmult_0_l, !Rmult_0_l, !Rmult_0_r, Rminus_0_r, Rabs_R0. lra.
  - rewrite S_INR. replace ((INR m + 1) * lambda) with (lambda + INR m * lambda) by ring.
    apply poisson_adds; [exact (part_ge0 K) | apply number_of_ge0 | exact (points K) | exact IH].
Qed.

Lemma P_ge0 o : 0 <= P o.
Proof.
  unfold point_value. destruct (o <? greatest)%Z; [left; eapply f_pos | eapply tail_ge0]; exact C.
Qed.

Lemma P_total : sum P Values = 1.
Proof.
  destruct (threshold_range K) as [_ L].
  unfold values. rewrite sum_map.
  set (n := Z.to_nat (greatest - threshold k)).
  replace (greatest - threshold k + 1)%Z with (Z.of_nat (S n)) by lia.
  rewrite below_snoc, sum_app.
  assert (E : forall m, (m <= n)%nat ->
    sum (fun x => P (threshold k + x)) (below (Z.of_nat m)) = 1 - tail b m).
  { intros m M. induction m as [|m IH]; [unfold sum; cbn; lra|].
    rewrite below_snoc, sum_app, IH by lia. unfold sum, point_value. cbn [fold_right].
    destruct (Z.ltb_spec (threshold k + Z.of_nat m) greatest); [|lia].
    replace (Z.to_nat _) with m by lia. cbn [tail]. ring. }
  rewrite E by lia. unfold sum, point_value. cbn [fold_right].
  destruct (Z.ltb_spec (threshold k + Z.of_nat n) greatest); [lia|].
  replace (Z.to_nat _) with n by lia. ring.
Qed.

Lemma q_range c : In c (places k) ->
  0 < INR (length (places k)) /\ 0 <= q c
  /\ (1 - beta) <= q c * INR (length (places k)) <= 1 + beta.
Proof.
  intros I. pose proof (within _ _ _ (falls_near K c I)) as N.
  destruct (errors K) as (_ & Bt & _).
  assert (L : 0 < INR (length (places k))).
  { apply lt_0_INR. destruct (places k); [destruct I | cbn; lia]. }
  split; [exact L|]. split; [|lra].
  apply (Rmult_le_reg_r (INR (length (places k)))); [exact L|]. rewrite Rmult_0_l. lra.
Qed.

Notation mean_on := (mean_points b greatest k).

Lemma on_ext ps n h h' : (forall l, h l = h' l) -> mean_on ps n h = mean_on ps n h'.
Proof.
  revert h h'. induction n as [|n IH]; intros h h' E; cbn; [apply E|].
  apply sum_ext. intros d _. f_equal. apply sum_ext. intros o _. f_equal. apply IH. intros; apply E.
Qed.

Lemma on_scale ps n c h : mean_on ps n (fun l => c * h l) = c * mean_on ps n h.
Proof.
  revert h. induction n as [|n IH]; intros h; cbn; [reflexivity|].
  rewrite <- sum_scale. apply sum_ext. intros d _.
  rewrite (sum_ext _ (fun o => c * (P o * mean_on ps n (fun l => h ((d, o) :: l))))).
  - rewrite sum_scale. ring.
  - intros o _. rewrite IH. ring.
Qed.

Lemma on_range ps n h : incl ps (places k) -> sum q ps <= 1 -> (forall l, 0 <= h l <= 1) ->
  0 <= mean_on ps n h <= 1.
Proof.
  intros I T. revert h. induction n as [|n IH]; intros h H; cbn; [apply H|].
  assert (V : forall d, 0 <= sum (fun o => P o * mean_on ps n (fun l => h ((d, o) :: l))) Values
    <= 1).
  { intros d. split.
    - apply sum_of_ge0. intros o _. apply Rmult_le_pos; [apply P_ge0 | apply IH; intros; apply H].
    - rewrite <- P_total. apply sum_le. intros o _. rewrite <- (Rmult_1_r (P o)) at 2.
      apply Rmult_le_compat_l; [apply P_ge0 | apply IH; intros; apply H]. }
  split.
  - apply sum_of_ge0. intros d D. apply Rmult_le_pos; [apply q_range, I, D | apply V].
  - apply Rle_trans with (sum q ps); [|exact T]. apply sum_le. intros d D.
    rewrite <- (Rmult_1_r (q d)) at 2. apply Rmult_le_compat_l; [apply q_range, I, D | apply V].
Qed.

Lemma sum_remove (g : Z -> R) c l : NoDup l -> In c l ->
  sum g l = g c + sum g (remove Z.eq_dec c l).
Proof.
  induction l as [|d l IH]; intros N I; [destruct I|]. inversion N as [|? ? Out N']; subst.
  cbn [remove]. destruct (Z.eq_dec c d) as [<-|D].
  - now rewrite notin_remove.
  - destruct I as [->|I]; [congruence|]. unfold sum in *. cbn [fold_right]. rewrite (IH N' I). ring.
Qed.

Section Place.
Variable c : Z.
Hypothesis here : In c (cells k).
Let placed : In c (places k) := cells_placed K c here.
Notation others := (remove Z.eq_dec c (places k)).

Definition off (l : list (Z * Z)) : list (Z * Z) := filter (fun p => negb (fst p =? c)%Z) l.
Definition overall n A := mean_on (places k) n (fun l => A (off l)).
Definition missing n A := mean_on others n A.

Lemma q_others : incl others (places k) /\ 0 <= sum q others <= 1.
Proof.
  assert (I : incl others (places k)) by (intros d D; eapply in_remove; exact D).
  split; [exact I|]. split.
  - apply sum_of_ge0. intros d D. apply q_range, I, D.
  - pose proof (falls_total K) as T.
    rewrite (sum_remove _ c) in T by (try exact (places_once K); exact placed).
    pose proof (q_range c placed).  lra.
Qed.

(** Add a point in front. *)
Definition push (A : list (Z * Z) -> R) d o l := A ((d, o) :: l).

Lemma missing_S n A : missing (S n) A
  = sum (fun d => q d * sum (fun o => P o * missing n (push A d o)) Values) others.
Proof. reflexivity. Qed.

Lemma with_place_S n A h :
  mean_on (places k) (S n) (fun l => A (off l) * h (left_on c l))
  = q c * (sum (fun o => P o * h (Some o)) Values * overall n A)
    + sum (fun d => q d * sum (fun o => P o
        * mean_on (places k) n (fun l => push A d o (off l) * h (left_on c l))) Values) others.
Proof.
  cbn [mean_points]. rewrite (sum_remove _ c) by (try exact (places_once K); exact placed).
  f_equal.
  - f_equal. rewrite <- sum_scale_r. apply sum_ext. intros o _.
    rewrite (on_ext _ _ _ (fun l => h (Some o) * A (off l))).
    + rewrite on_scale. unfold overall. ring.
    + intros l. unfold off. cbn [filter left_on fst]. rewrite Z.eqb_refl. cbn [negb]. ring.
  - apply sum_ext. intros d D. f_equal. apply sum_ext. intros o _. f_equal.
    apply on_ext. intros l. unfold off. cbn [filter left_on fst].
    destruct (Z.eqb_spec d c) as [->|]; [|reflexivity]. now apply remove_In in D.
Qed.

Lemma overall_S n A : overall (S n) A = q c * overall n A
  + sum (fun d => q d * sum (fun o => P o * overall n (push A d o)) Values) others.
Proof.
  transitivity (mean_on (places k) (S n) (fun l => A (off l) * 1)).
  { apply on_ext. intros. ring. }
  etransitivity; [exact (with_place_S n A (fun _ => 1))|]. f_equal.
  - rewrite (sum_ext _ P), P_total by (intros; ring). ring.
  - apply sum_ext. intros d _. f_equal. apply sum_ext. intros o _. f_equal. apply on_ext. intros.
    ring.
Qed.

(** The first point of the place has a value of its own. *)
Lemma first_point n A h :
  mean_on (places k) n (fun l => A (off l) * h (left_on c l))
  = h None * missing n A
    + sum (fun o => P o * h (Some o)) Values * (overall n A - missing n A).
Proof.
  revert A. induction n as [|n IH]; intros A; [unfold overall, missing; cbn; ring|].
  rewrite (with_place_S n A h), overall_S, missing_S.
  set (s := sum (fun o => P o * h (Some o)) Values).
  rewrite (sum_ext _ (fun d =>
    (h None - s) * (q d * sum (fun o => P o * missing n (push A d o)) Values)
    + s * (q d * sum (fun o => P o * overall n (push A d o)) Values))).
  - rewrite sum_plus, !sum_scale. ring.
  - intros d _. rewrite (sum_ext _ (fun o =>
      (h None - s) * (P o * missing n (push A d o)) + s * (P o * overall n (push A d o)))).
    + rewrite sum_plus, !sum_scale. ring.
    + intros o _. rewrite IH. fold s. ring.
Qed.

(** Those on the place are any of the points: a binomial formula. *)
Lemma binomial n A : overall n A / INR (fact n)
  = convolve (fun j => / INR (fact j) * q c ^ j) (fun i => missing i A / INR (fact i)) n.
Proof.
  revert A. induction n as [|n IH]; intros A; [unfold convolve, overall, missing; cbn; field|].
  apply (Rmult_eq_reg_l (INR (S n))); [|apply not_0_INR; lia]. rewrite convolve_step.
  assert (Sf : forall m, INR (S m) / INR (fact (S m)) = / INR (fact m)).
  { intros m. change (fact (S m)) with (S m * fact m)%nat. rewrite mult_INR. field.
    split; [apply Rgt_not_eq, fact_pos | apply not_0_INR; lia]. }
  replace (INR (S n) * (overall (S n) A / INR (fact (S n))))
    with (overall (S n) A / INR (fact n)) by (unfold Rdiv; rewrite <- (Sf n); unfold Rdiv; ring).
  unfold Rdiv at 1. rewrite overall_S, Rmult_plus_distr_r. f_equal.
  - unfold Rdiv in IH. rewrite Rmult_assoc, IH.
    replace (q c) with (q c * 1) at 1 by ring. rewrite <- convolve_scale. unfold convolve.
    apply sum_eq. intros i _. rewrite <- (Sf i). unfold Rdiv. cbn [pow]. ring.
  - rewrite <- sum_scale_r.
    transitivity (convolve (fun j => / INR (fact j) * q c ^ j)
      (fun i => sum (fun d => q d * sum (fun o => P o * (missing i (push A d o) / INR (fact i)))
        Values) others) n).
    + rewrite convolve_sum. apply sum_ext. intros d _. rewrite convolve_sum.
      rewrite Rmult_assoc, <- sum_scale_r. f_equal. apply sum_ext. intros o _. rewrite <- IH.
      unfold Rdiv. ring.
    + apply sum_eq. intros i _. f_equal. unfold Rdiv.
      set (j := (n - i)%nat).
      replace (INR (S j) * (missing (S j) A * / INR (fact (S j))))
        with (missing (S j) A * / INR (fact j)) by (rewrite <- Sf; unfold Rdiv; ring).
      rewrite missing_S, <- sum_scale_r. apply sum_ext. intros d _.
      rewrite Rmult_assoc, <- sum_scale_r. f_equal. apply sum_ext. intros o _. ring.
Qed.

Section Rest.
Variable A : list (Z * Z) -> R.
Hypothesis A_range : forall l, 0 <= A l <= 1.

Lemma overall_range n : 0 <= overall n A <= 1.
Proof.
  apply on_range; [intros d D; exact D | | intros; apply A_range].
  apply Req_le, (falls_total K).
Qed.

Lemma missing_range n : 0 <= missing n A <= 1.
Proof. apply on_range; [apply q_others | apply q_others | exact A_range]. Qed.

Lemma number_sum (u : nat -> R) : (forall n, 0 <= u n <= 1) ->
  infinite_sum (fun n => number k n * u n) (series (fun n => number k n * u n)).
Proof.
  intros U. apply series_less with (number k) 1; [|exact number_total|lra].
  intros n. pose proof (number_ge0 n). specialize (U n). nra.
Qed.

Definition Tot : R := series (fun n => number k n * overall n A).
Definition Hid : R := series (fun n => number k n * missing n A).

Lemma number_powers m j :
  ((1 - delta) * Lambda) ^ j * (INR (fact m) * number k m)
    <= INR (fact (m + j)) * number k (m + j)%nat
  <= ((1 + delta) * Lambda) ^ j * (INR (fact m) * number k m).
Proof.
  destruct (errors K) as (D & _ & L0).
  assert (0 <= Lambda) by (apply Rmult_le_pos; [apply pos_INR | exact L0]).
  induction j as [|j IH]; [rewrite Nat.add_0_r; cbn; lra|].
  rewrite Nat.add_succ_r. change (fact (S (m + j))) with (S (m + j) * fact (m + j))%nat.
  rewrite mult_INR, (Rmult_comm (INR (S _))), Rmult_assoc. cbn [pow].
  pose proof (within _ _ _ (number_points (m + j)%nat)) as W. pose proof (fact_pos (m + j)) as F.
  assert (L : 0 <= (1 - delta) * Lambda) by (apply Rmult_le_pos; lra).
  assert (U : 0 <= (1 + delta) * Lambda) by (apply Rmult_le_pos; lra).
  destruct IH as [IL IU].
  apply (Rmult_le_compat_l _ _ _ L) in IL. apply (Rmult_le_compat_l _ _ _ U) in IU.
  destruct W as [WL WU].
  apply (Rmult_le_compat_l (INR (fact (m + j)))) in WL; [|lra].
  apply (Rmult_le_compat_l (INR (fact (m + j)))) in WU; [|lra].
  split; lra.
Qed.

(** Lemma 28: the probability of what appears on the other places, over that with no point here. *)
Theorem lemma_28 :
  exp ((1 - delta) * Lambda * q c) * Hid <= Tot
  <= exp ((1 + delta) * Lambda * q c) * Hid.
Proof.
  destruct (errors K) as (D & _ & L0).
  assert (Lp : 0 <= Lambda) by (apply Rmult_le_pos; [apply pos_INR | exact L0]).
  destruct (q_range c placed) as (_ & Q0 & _).
  pose proof (number_sum (fun n => overall n A) overall_range) as SA. fold Tot in SA.
  pose proof (number_sum (fun n => missing n A) missing_range) as SN. fold Hid in SN.
  assert (TA : forall n, 0 <= number k n * overall n A)
    by (intros; apply Rmult_le_pos; [apply number_ge0 | apply overall_range]).
  assert (TN : forall n, 0 <= number k n * missing n A)
    by (intros; apply Rmult_le_pos; [apply number_ge0 | apply missing_range]).
  set (t := fun m j => INR (fact (m + j)) * number k (m + j)%nat
    * (/ INR (fact j) * q c ^ j * (missing m A / INR (fact m)))).
  assert (Ip : forall n, 0 < / INR (fact n)) by (intros; apply Rinv_0_lt_compat, fact_pos).
  assert (E0 : forall j m, 0 <= / INR (fact j) * q c ^ j * (missing m A / INR (fact m))).
  { intros j m. apply Rmult_le_pos; apply Rmult_le_pos; try (left; apply Ip).
    - now apply pow_le. - apply missing_range. }
  assert (T0 : forall m j, 0 <= t m j).
  { intros m j. apply Rmult_le_pos; [|apply E0].
    apply Rmult_le_pos; [left; apply fact_pos | apply number_ge0]. }
  assert (Tri : forall n, triangle t n = sum_f_R0 (fun n => number k n * overall n A) n).
  { intros n. apply sum_eq. intros s _.
    replace (number k s * overall s A)
      with (INR (fact s) * number k s * (overall s A / INR (fact s)))
      by (field; apply Rgt_not_eq, fact_pos).
    rewrite binomial. unfold convolve. rewrite scal_sum. apply sum_eq. intros j J. unfold t.
    replace (s - j + j)%nat with s by lia. ring. }
  assert (Sq : forall x n, sum_f_R0 (fun m => sum_f_R0 (fun j => x ^ j * (INR (fact m) * number k m)
      * (/ INR (fact j) * q c ^ j * (missing m A / INR (fact m)))) n) n
    = sum_f_R0 (fun j => / INR (fact j) * (x * q c) ^ j) n
      * sum_f_R0 (fun m => number k m * missing m A) n).
  { intros x n. rewrite scal_sum. apply sum_eq. intros m _. rewrite scal_sum. apply sum_eq.
    intros j _. rewrite Rpow_mult_distr. field. split; apply Rgt_not_eq, fact_pos. }
  split.
  - apply (@Rle_cv_lim (fun n =>
      sum_f_R0 (fun j => / INR (fact j) * ((1 - delta) * Lambda * q c) ^ j) n
      * sum_f_R0 (fun m => number k m * missing m A) n) (fun _ => Tot) _ _).
    + intros n. rewrite <- Sq. apply Rle_trans with (sum_f_R0 (fun m => sum_f_R0 (t m) n) n).
      * apply sum_Rle. intros m _. apply sum_Rle. intros j _.
        apply Rmult_le_compat_r; [apply E0 | apply number_powers].
      * eapply Rle_trans; [apply squares, T0|]. rewrite Tri. now apply partial.
    + apply CV_mult; [apply exp_series | exact SN].
    + apply constant.
  - apply limit_below with (fun n => number k n * overall n A); [|exact SA].
    intros n. rewrite <- Tri. eapply Rle_trans; [apply squares, T0|].
    apply Rle_trans with (sum_f_R0 (fun j => / INR (fact j) * ((1 + delta) * Lambda * q c) ^ j) n
      * sum_f_R0 (fun m => number k m * missing m A) n).
    + rewrite <- Sq. apply sum_Rle. intros m _. apply sum_Rle. intros j _.
      apply Rmult_le_compat_r; [apply E0 | apply number_powers].
    + assert (X0 : 0 <= (1 + delta) * Lambda * q c)
        by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | exact Q0]).
      assert (X1 : forall j, 0 <= / INR (fact j) * ((1 + delta) * Lambda * q c) ^ j).
      { intros j. apply Rmult_le_pos; [left; apply Ip | now apply pow_le]. }
      apply Rmult_le_compat; try (apply sum_ge0; intros; (apply X1 || apply TN)).
      * apply partial; [exact X1 | apply exp_series].
      * now apply partial.
Qed.

(** * Lemma 29: one cell *)

Notation M := (INR (length (places k))).

Lemma Hid_ge0 : 0 <= Hid.
Proof. apply series_ge0, Rmult_le_pos; [apply number_ge0 | apply A_range]. Qed.

Lemma hit_increases x y : x <= y -> hit x <= hit y.
Proof.
  intros [L| ->]; [|lra]. unfold hit.
  assert (exp (- y) < exp (- x)) by (apply exp_increasing; lra). lra.
Qed.

Notation lo := (rises * (a * exp (- theta)) ^ Z.to_nat (threshold k - 1)).
Notation hi := (rises * (a * exp theta) ^ Z.to_nat (threshold k - 1)).

(** The cell is hit with nearly the same probability, whatever appears elsewhere. *)
Lemma hit_bounds : exists v w,
  v * Tot <= Tot - Hid <= w * Tot /\ 0 <= Tot /\ 0 <= Tot - Hid
  /\ hi <= exp r * v /\ 1 - v <= exp r * (1 - hi) /\ w <= exp r * lo /\ 1 - lo <= exp r * (1 - w).
Proof.
  pose proof lemma_28 as [L U].
  destruct (errors K) as (D & Bt & L0).
  destruct (C2 K) as [Lo Hi]. cbn zeta in Lo, Hi.
  destruct (q_range c placed) as (M0 & Q0 & Q).
  assert (Lp : 0 <= INR (parts k) * lambda) by (apply Rmult_le_pos; [apply pos_INR | exact L0]).
  set (Lambda := INR (parts k) * lambda) in *. set (q := falls_on k c) in *.
  set (xl := (1 - delta) * Lambda * q) in *. set (xu := (1 + delta) * Lambda * q) in *.
  set (err := (1 + delta) * (1 + beta) - 1) in *.
  assert (Qm : 0 <= Lambda / M)
    by (apply Rmult_le_pos; [exact Lp | left; now apply Rinv_0_lt_compat]).
  assert (El : Lambda / M * (1 - err) <= xl).
  { replace xl with (Lambda / M * ((1 - delta) * (q * M))) by (unfold xl; field; lra).
    apply Rmult_le_compat_l; [exact Qm|]. apply Rle_trans with ((1 - delta) * (1 - beta)).
    - unfold err. nra. - apply Rmult_le_compat_l; lra. }
  assert (Eu : xu <= Lambda / M * (1 + err)).
  { replace xu with (Lambda / M * ((1 + delta) * (q * M))) by (unfold xu; field; lra).
    apply Rmult_le_compat_l; [exact Qm|].
    replace (1 + err) with ((1 + delta) * (1 + beta)) by (unfold err; ring).
    apply Rmult_le_compat_l; lra. }
  pose proof Hid_ge0 as H0.
  assert (Inv : forall x, exp (- x) * exp x = 1)
    by (intros; rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  assert (Hl : Hid <= exp (- xl) * Tot).
  { apply Rle_trans with (exp (- xl) * (exp xl * Hid)).
    - rewrite <- Rmult_assoc, Inv. lra.
    - apply Rmult_le_compat_l; [left; apply exp_pos | exact L]. }
  assert (Hu : exp (- xu) * Tot <= Hid).
  { apply Rle_trans with (exp (- xu) * (exp xu * Hid)).
    - apply Rmult_le_compat_l; [left; apply exp_pos | exact U].
    - rewrite <- Rmult_assoc, Inv. lra. }
  assert (xl0 : 0 <= xl) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | exact Q0]).
  assert (T0 : 0 <= Tot - Hid).
  { pose proof (exp_ineq1_le xl).
    assert (1 * Hid <= exp xl * Hid) by (apply Rmult_le_compat_r; lra). lra. }
  exists (hit (Lambda / M * (1 - err))), (hit (Lambda / M * (1 + err))).
  apply hit_increases in El, Eu.
  set (v := hit (Lambda / M * (1 - err))) in *. set (w := hit (Lambda / M * (1 + err))) in *.
  assert (V : v * Tot <= hit xl * Tot) by (apply Rmult_le_compat_r; lra).
  assert (W : hit xu * Tot <= w * Tot) by (apply Rmult_le_compat_r; lra).
  unfold hit in V, W.
  pose proof (Rmax_l (exp (- r) * hi) (1 - exp r * (1 - hi))).
  pose proof (Rmax_r (exp (- r) * hi) (1 - exp r * (1 - hi))).
  pose proof (Rmin_l (exp r * lo) (1 - exp (- r) * (1 - lo))).
  pose proof (Rmin_r (exp r * lo) (1 - exp (- r) * (1 - lo))).
  assert (Back : forall x y, exp (- r) * x <= y -> x <= exp r * y).
  { intros x y XY. apply (Rmult_le_compat_l (exp r)) in XY; [|left; apply exp_pos].
    rewrite <- Rmult_assoc, (Rmult_comm (exp r) (exp (- r))), Inv in XY. lra. }
  split; [lra|]. split; [lra|]. split; [lra|]. split; [apply Back; lra|]. split; [lra|].
  split; [lra|]. apply Back. lra.
Qed.

(** The probability that a cell with the count [m] shows what is seen, as does all else. *)
Definition shows (seen : option Z) (v : option Z) : R := ind (same v seen).
Definition cell (seen : option Z) (m : Z) : R :=
  if (0 <? m)%Z then Tot * occupied b rises falls greatest k m seen
  else shows seen None * Hid
    + sum (fun o => point_value b greatest k o * shows seen (Some o)) (values greatest k)
      * (Tot - Hid).

Lemma value_chance o :
  sum (fun o' => point_value b greatest k o' * shows (Some o) (Some o')) (values greatest k)
  = if ((threshold k <=? o) && (o <=? greatest))%Z then point_value b greatest k o else 0.
Proof.
  unfold values, shows, same.
  assert (G : forall n, sum (fun o' => point_value b greatest k o' * ind (o' =? o)%Z)
      (map (Z.add (threshold k)) (below (Z.of_nat n)))
    = if ((threshold k <=? o) && (o <? threshold k + Z.of_nat n))%Z
      then point_value b greatest k o else 0).
  { induction n as [|n IH].
    - cbn [Z.of_nat]. rewrite Z.add_0_r.
      destruct (Z.leb_spec (threshold k) o), (Z.ltb_spec o (threshold k));
        cbn; try reflexivity; lia.
    - rewrite below_snoc, map_app, sum_app, IH. unfold sum at 1. cbn [map fold_right].
      destruct (Z.eqb_spec (threshold k + Z.of_nat n) o) as [<-|Ne]; unfold ind.
      + destruct (Z.leb_spec (threshold k) (threshold k + Z.of_nat n)); [|lia].
        rewrite Z.ltb_irrefl.
        destruct (Z.ltb_spec (threshold k + Z.of_nat n) (threshold k + Z.of_nat (S n)));
        [|lia]. cbn [andb]. ring.
      + replace (o <? threshold k + Z.of_nat (S n))%Z with (o <? threshold k + Z.of_nat n)%Z;
          [ring|].
        destruct (Z.ltb_spec o (threshold k + Z.of_nat n)),
          (Z.ltb_spec o (threshold k + Z.of_nat (S n)));
          try reflexivity; lia. }
  pose proof (threshold_range K).
  rewrite <- (Z2Nat.id (greatest - threshold k + 1)), G by lia.
  rewrite Z2Nat.id by lia.
  replace (o <=? greatest)%Z with (o <? threshold k + (greatest - threshold k + 1))%Z;
    [reflexivity|].
  destruct (Z.leb_spec o greatest), (Z.ltb_spec o (threshold k + (greatest - threshold k + 1)));
    try reflexivity; lia.
Qed.

Lemma shifted (u : nat -> R) g : (forall g, 0 <= u g) ->
  (forall g, a * exp (- theta) * u g <= u (S g) <= a * exp theta * u g) ->
  lo * u g <= rises * u (g + Z.to_nat (threshold k - 1))%nat <= hi * u g.
Proof.
  intros P H. destruct (signs C) as (S & _).
  destruct (powers u g (Z.to_nat (threshold k - 1)) P H) as [L U].
  rewrite !Rmult_assoc. split; apply Rmult_le_compat_l; lra.
Qed.

Lemma empty_close seen : close r (cell seen 0) (cell seen 1).
Proof.
  destruct hit_bounds as (v & w & [V W] & T & D & H1 & H2 & H3 & H4).
  destruct (threshold_range K) as [T1 Tg].
  pose proof (exp_pos r) as E. unfold cell. cbn [Z.ltb Z.compare].
  destruct seen as [o|].
  - rewrite value_chance. unfold shows at 1, same, ind, occupied.
    rewrite Rmult_0_l, Rplus_0_l.
    destruct (Z.leb_spec (threshold k) o), (Z.ltb_spec o (threshold k)); try lia; cbn [andb];
      [|rewrite Rmult_0_l, Rmult_0_r; unfold close; lra].
    assert (G : forall p y, 0 <= p -> lo * p <= y <= hi * p -> close r (p * (Tot - Hid)) (Tot * y)).
    { intros p y P0 [Y1 Y2]. split.
      - apply Rle_trans with (p * (w * Tot)); [apply Rmult_le_compat_l; lra|].
        apply Rle_trans with (p * (exp r * lo * Tot)).
        + apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; lra.
        + apply Rle_trans with (exp r * (Tot * (lo * p))); [apply Req_le; ring|].
          apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra.
      - apply Rle_trans with (Tot * (hi * p)); [apply Rmult_le_compat_l; lra|].
        apply Rle_trans with (Tot * (exp r * v * p)).
        + apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; lra.
        + apply Rle_trans with (exp r * (p * (v * Tot))); [apply Req_le; ring|].
          apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra. }
    assert (S : (Z.to_nat (o - 1) = Z.to_nat (o - threshold k) + Z.to_nat (threshold k - 1))%nat)
      by lia.
    destruct (Z.leb_spec o greatest), (Z.ltb_spec o greatest), (Z.eqb_spec o greatest); try lia.
    + apply G; [apply P_ge0|]. unfold noise, point_value.
      destruct (Z.leb_spec 0 (o - 1)), (Z.ltb_spec o greatest); try lia. rewrite S.
      apply shifted; [intros; left; apply f_pos | apply f_ratio].
    + apply G; [apply P_ge0|]. unfold reaches, point_value.
      destruct (Z.leb_spec 0 (o - 1)), (Z.ltb_spec o greatest); try lia. rewrite S.
      apply shifted; [apply tail_ge0 | apply tail_ratio].
    + rewrite Rmult_0_l, Rmult_0_r; unfold close; lra.
  - rewrite (sum_ext _ (fun _ => 0)), sum_const by (intros; unfold shows, same, ind; ring).
    unfold shows, same, ind, occupied, reaches. rewrite Rmult_0_r, Rmult_0_l, Rplus_0_r, Rmult_1_l.
    destruct (Z.leb_spec 0 (threshold k - 1)); [|lia].
    pose proof (shifted (tail b) 0 ltac:(apply tail_ge0) ltac:(apply tail_ratio)) as S.
    cbn [tail plus] in S. set (y := rises * tail b (Z.to_nat (threshold k - 1))) in S |- *. split.
    + apply Rle_trans with ((1 - v) * Tot); [lra|].
      apply Rle_trans with (exp r * (1 - hi) * Tot); [apply Rmult_le_compat_r; lra|].
      apply Rle_trans with (exp r * (Tot * (1 - hi))); [apply Req_le; ring|].
      apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra.
    + apply Rle_trans with (Tot * (1 - lo)); [apply Rmult_le_compat_l; lra|].
      apply Rle_trans with (Tot * (exp r * (1 - w))); [apply Rmult_le_compat_l; lra|].
      apply Rle_trans with (exp r * ((1 - w) * Tot)); [apply Req_le; ring|].
      apply Rmult_le_compat_l; lra.
Qed.

Lemma cell_ge0 seen m : 0 <= cell seen m.
Proof.
  destruct hit_bounds as (v & w & _ & T & D & _). unfold cell. destruct (0 <? m)%Z.
  - apply Rmult_le_pos; [exact T | apply occupied_ge0].
  - assert (I : forall b, 0 <= ind b) by (intros []; unfold ind; lra).
    apply Rplus_le_le_0_compat; [apply Rmult_le_pos; [apply I | apply Hid_ge0]|].
    apply Rmult_le_pos; [|exact D].
    apply sum_of_ge0. intros o _. apply Rmult_le_pos; [apply P_ge0 | apply I].
Qed.

Lemma cell_close seen m : close r (cell seen m) (cell seen (m + 1)).
Proof.
  destruct (Z_lt_dec m 0) as [N|N]; [|destruct (Z.eq_dec m 0) as [->|P]].
  - pose proof (cell_ge0 seen m) as G. pose proof rate_ge0. unfold cell in *.
    destruct (Z.ltb_spec 0 m), (Z.ltb_spec 0 (m + 1)); try lia. split; nra.
  - apply empty_close.
  - unfold cell. destruct (Z.ltb_spec 0 m), (Z.ltb_spec 0 (m + 1)); try lia.
    destruct hit_bounds as (v & w & _ & T & _). apply close_scale; [exact T | apply occupied_close].
Qed.

(** Its probabilities, for all that can be seen, are those of what appears elsewhere. *)
Lemma noise_sum m n :
  sum (fun i => noise b rises falls (threshold k + i - m)) (below (Z.of_nat n))
  = reaches b rises falls (threshold k - m) - reaches b rises falls (threshold k + Z.of_nat n - m).
Proof.
  pose proof (signs C) as S. induction n as [|n IH].
  - cbn [Z.of_nat]. rewrite Z.add_0_r. unfold sum. cbn. ring.
  - rewrite below_snoc, sum_app, IH. unfold sum. cbn [fold_right].
    rewrite (reaches_less rises falls S (threshold k + Z.of_nat n - m)).
    replace (threshold k + Z.of_nat n - m + 1)%Z
      with (threshold k + Z.of_nat (Datatypes.S n) - m)%Z by lia.
    ring.
Qed.

Lemma occupied_total m :
  sum (occupied b rises falls greatest k m) (None :: map Some (values greatest k)) = 1.
Proof.
  destruct (threshold_range K) as [_ T]. unfold sum at 1. cbn [fold_right].
  fold (sum (occupied b rises falls greatest k m) (map Some (values greatest k))).
  unfold values. rewrite !sum_map. set (n := Z.to_nat (greatest - threshold k)).
  replace (greatest - threshold k + 1)%Z with (Z.of_nat (S n)) by lia.
  rewrite below_snoc, sum_app.
  rewrite (sum_ext _ (fun i => noise b rises falls (threshold k + i - m))), noise_sum.
  - unfold sum, occupied. cbn [fold_right].
    destruct (Z.ltb_spec (threshold k + Z.of_nat n) (threshold k)),
      (Z.ltb_spec (threshold k + Z.of_nat n) greatest),
      (Z.eqb_spec (threshold k + Z.of_nat n) greatest); try lia. ring.
  - intros i I. apply in_below in I. unfold occupied.
    destruct (Z.ltb_spec (threshold k + i) (threshold k)), (Z.ltb_spec (threshold k + i) greatest);
      try lia. reflexivity.
Qed.

Lemma cell_total m : sum (fun v => cell v m) (None :: map Some (values greatest k)) = Tot.
Proof.
  destruct (0 <? m)%Z eqn:E.
  - rewrite (sum_ext _ (fun v => Tot * occupied b rises falls greatest k m v)).
    + rewrite sum_scale, occupied_total. ring.
    + intros v _. unfold cell. now rewrite E.
  - unfold sum at 1. cbn [fold_right].
    fold (sum (fun v => cell v m) (map Some (values greatest k))). rewrite sum_map.
    rewrite (sum_ext _ (fun o => point_value b greatest k o * (Tot - Hid))).
    + rewrite sum_scale_r, P_total. unfold cell. rewrite E.
      rewrite (sum_ext _ (fun _ => 0)), sum_const by (intros; unfold shows, same, ind; ring).
      unfold shows, same, ind. ring.
    + intros o O. unfold cell. rewrite E, value_chance. unfold shows, same, ind.
      unfold values in O. apply in_map_iff in O. destruct O as (i & <- & O). apply in_below in O.
      destruct (Z.leb_spec (threshold k) (threshold k + i)),
        (Z.leb_spec (threshold k + i) greatest);
        try lia. cbn [andb]. ring.
Qed.

End Rest.
End Place.

(** * Theorems 30 and 31 *)

Section Seen.
Variable on : list Z.
Hypothesis once : NoDup on.
Hypothesis inside : incl on (cells k).
Notation prob := (class_prob b rises falls greatest k on).

(** What is seen on the other cells. *)
Definition elsewhere (x : Z -> Z) (seen : Z -> option Z) c (points : list (Z * Z)) : R :=
  ind (fits x seen (remove Z.eq_dec c on) points).
Definition rest_of (x : Z -> Z) (seen : Z -> option Z) c : R :=
  product (fun c => if (0 <? x c)%Z then occupied b rises falls greatest k (x c) (seen c) else 1)
    (remove Z.eq_dec c on).

Lemma elsewhere_range x seen c l : 0 <= elsewhere x seen c l <= 1.
Proof. unfold elsewhere, ind. destruct (fits _ _ _ _); lra. Qed.

Lemma elsewhere_off x seen c l : elsewhere x seen c (off c l) = elsewhere x seen c l.
Proof.
  assert (L : forall d, d <> c -> left_on d (off c l) = left_on d l).
  { intros d D. unfold off. induction l as [|[e o] l' IH]; [reflexivity|]. cbn [filter fst left_on].
    destruct (Z.eqb_spec e c) as [->|]; cbn [negb left_on].
    - destruct (Z.eqb_spec c d); [congruence | exact IH].
    - destruct (e =? d)%Z; [reflexivity | exact IH]. }
  unfold elsewhere, fits. f_equal. apply eq_true_iff_eq. rewrite !forallb_forall.
  split; intros H d D; specialize (H d D); apply in_remove in D; destruct D as [_ D];
    now rewrite L in *.
Qed.

Lemma fits_split x seen c l : In c on ->
  ind (fits x seen on l)
  = elsewhere x seen c (off c l) * (if (0 <? x c)%Z then 1 else shows (seen c) (left_on c l)).
Proof.
  intros I. rewrite elsewhere_off. unfold fits, elsewhere. rewrite (forallb_remove _ c _ I).
  unfold fits, shows, ind. destruct (0 <? x c)%Z; cbn [orb andb]; [ring|].
  destruct (same _ _), (forallb _ _); cbn [andb]; ring.
Qed.

(** If the cell is not looked at. *)
Lemma class_free x seen c :
  class_prob b rises falls greatest k (remove Z.eq_dec c on) x seen
  = Tot c (elsewhere x seen c) * rest_of x seen c.
Proof.
  unfold class_prob. fold (rest_of x seen c). f_equal. apply series_ext. intros n. f_equal.
  apply on_ext. intros l. now rewrite elsewhere_off.
Qed.

Lemma class_cell x seen c : In c on ->
  prob x seen = cell c (elsewhere x seen c) (seen c) (x c) * rest_of x seen c.
Proof.
  intros I. unfold class_prob. rewrite (product_remove _ c _ once I).
  fold (rest_of x seen c). rewrite <- Rmult_assoc. f_equal. unfold cell.
  set (A := elsewhere x seen c). assert (Ar : forall l, 0 <= A l <= 1) by apply elsewhere_range.
  destruct (0 <? x c)%Z eqn:X.
  - f_equal. unfold Tot, overall. apply series_ext. intros n. f_equal.
    apply on_ext. intros l. rewrite (fits_split x seen c l I), X. fold A. ring.
  - rewrite Rmult_1_r.
    pose proof (number_sum _ (overall_range c A Ar)) as SO.
    pose proof (number_sum _ (missing_range c (inside c I) A Ar)) as SN.
    cbn beta in SO, SN. fold (Tot c A) in SO. fold (Hid c A) in SN.
    set (s := sum _ _). set (z := shows (seen c) None).
    set (u := fun n => mean_points b greatest k (places k) n (fun l => ind (fits x seen on l))).
    assert (U : forall n, u n = z * missing c n A + s * (overall c n A - missing c n A)).
    { intros n. unfold u.
      rewrite (on_ext _ _ _ (fun l => A (off c l) * shows (seen c) (left_on c l))).
      - now apply first_point, inside.
      - intros l. now rewrite (fits_split x seen c l I), X. }
    assert (Ur : forall n, 0 <= u n <= 1).
    { intros n. apply on_range.
      - intros d D. exact D.
      - apply Req_le, (falls_total K).
      - intros l. unfold ind. destruct (fits _ _ _ _); lra. }
    apply (UL_sequence (sum_f_R0 (fun n => number k n * u n))); [exact (number_sum u Ur)|].
    intros e E.
    destruct (CV_plus _ _ _ _ (CV_mult _ _ _ _ (constant (z - s)) SN)
      (CV_mult _ _ _ _ (constant s) SO) e E) as (n0 & H).
    exists n0. intros n L. specialize (H n L).
    replace (sum_f_R0 (fun n => number k n * u n) n)
      with ((z - s) * sum_f_R0 (fun n => number k n * missing c n A) n
        + s * sum_f_R0 (fun n => number k n * overall c n A) n).
    + replace (z * Hid c A + s * (Tot c A - Hid c A)) with ((z - s) * Hid c A + s * Tot c A)
        by ring.
      exact H.
    + rewrite !scal_sum, <- plus_sum. apply sum_eq. intros i _. rewrite U. ring.
Qed.

Lemma rest_ge0 x seen c : 0 <= rest_of x seen c.
Proof.
  apply product_ge0. intros d _. destruct (0 <? x d)%Z; [apply occupied_ge0 | lra].
Qed.

Lemma class_ge0 x seen : 0 <= prob x seen.
Proof.
  apply Rmult_le_pos.
  - apply series_ge0. apply Rmult_le_pos; [apply number_ge0|]. cbn. unfold ind.
    destruct (fits _ _ _ _); lra.
  - apply product_ge0. intros c _. destruct (0 <? x c)%Z; [apply occupied_ge0 | lra].
Qed.

(** Only these cells matter. *)
Lemma fits_ext l x x' seen seen' points : (forall d, In d l -> x d = x' d /\ seen d = seen' d) ->
  fits x seen l points = fits x' seen' l points.
Proof.
  intros E. unfold fits. apply eq_true_iff_eq. rewrite !forallb_forall.
  split; intros H d D; specialize (H d D); destruct (E d D) as [E1 E2]; now rewrite E1, E2 in *.
Qed.

Lemma class_ext x x' seen seen' : (forall d, In d on -> x d = x' d /\ seen d = seen' d) ->
  prob x seen = prob x' seen'.
Proof.
  intros E. unfold class_prob. f_equal.
  - apply series_ext. intros n. f_equal. apply on_ext. intros p. f_equal. now apply fits_ext.
  - apply product_ext. intros d D. destruct (E d D) as [E1 E2]. now rewrite E1, E2.
Qed.

Lemma elsewhere_ext x x' seen seen' c :
  (forall d, In d on -> d <> c -> x d = x' d /\ seen d = seen' d) ->
  elsewhere x seen c = elsewhere x' seen' c /\ rest_of x seen c = rest_of x' seen' c.
Proof.
  intros E. split.
  - apply FunctionalExtensionality.functional_extensionality. intros l. unfold elsewhere. f_equal.
    apply fits_ext. intros d D. apply in_remove in D. now apply E.
  - apply product_ext. intros d D. apply in_remove in D. destruct D as [D N].
    destruct (E d D N) as [E1 E2]. now rewrite E1, E2.
Qed.

(** Counts that differ in one cell. *)
Lemma one_cell x x' seen c : In c on -> (forall d, In d on -> d <> c -> x d = x' d) ->
  prob x seen <= exp (r * IZR (Z.abs (x c - x' c))) * prob x' seen.
Proof.
  intros I E. rewrite !(class_cell _ _ c I).
  destruct (elsewhere_ext x x' seen seen c) as [<- <-]; [now split; [apply E|]|].
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply rest_ge0|].
  apply steps. intros m. apply cell_close; [now apply inside | apply elsewhere_range].
Qed.

Lemma some_cells l x x' seen : incl l on ->
  (forall d, In d on -> ~ In d l -> x d = x' d) ->
  prob x seen <= exp (r * sum (fun c => IZR (Z.abs (x c - x' c))) l) * prob x' seen.
Proof.
  revert x. induction l as [|c l IH]; intros x L E.
  - unfold sum. cbn [fold_right]. rewrite Rmult_0_r, exp_0, Rmult_1_l. apply Req_le, class_ext.
    intros d D. split; [now apply E | reflexivity].
  - set (y := fun d => if (d =? c)%Z then x' c else x d).
    assert (Y : forall d, d <> c -> x d = y d).
    { intros d D. unfold y. destruct (Z.eqb_spec d c); congruence. }
    pose proof (one_cell x y seen c (L c (in_eq c l)) ltac:(intros; now apply Y)) as U.
    unfold y in U at 1. rewrite Z.eqb_refl in U.
    assert (E' : forall d, In d on -> ~ In d l -> y d = x' d).
    { intros d D N. unfold y. destruct (Z.eqb_spec d c) as [->|]; [reflexivity|].
      apply E; [exact D|]. intros [->|]; contradiction. }
    specialize (IH y ltac:(intros d D; apply L; now right) E').
    assert (S : sum (fun c => IZR (Z.abs (y c - x' c))) l
      <= sum (fun c => IZR (Z.abs (x c - x' c))) l).
    { apply sum_le. intros d _. apply IZR_le. unfold y. destruct (Z.eqb_spec d c) as [->|]; lia. }
    eapply Rle_trans; [exact U|].
    change (sum (fun c => IZR (Z.abs (x c - x' c))) (c :: l))
      with (IZR (Z.abs (x c - x' c)) + sum (fun c => IZR (Z.abs (x c - x' c))) l).
    rewrite Rmult_plus_distr_l, exp_plus, Rmult_assoc.
    apply Rmult_le_compat_l; [left; apply exp_pos|]. eapply Rle_trans; [exact IH|].
    apply Rmult_le_compat_r; [apply class_ge0 | now apply exp_more].
Qed.

(** One cell, given what is known of others. *)
Lemma given x x' seen c : In c on -> (0 <= x c)%Z -> (0 <= x' c)%Z -> x c <> x' c ->
  let free := class_prob b rises falls greatest k (remove Z.eq_dec c on) in
  prob x seen * free x' seen
  <= exp (r * IZR (Z.abs (x c - x' c))) * (prob x' seen * free x seen).
Proof.
  intros I P P' D free. unfold free. rewrite !class_free, !(class_cell _ _ c I).
  set (A := elsewhere x seen c). set (A' := elsewhere x' seen c). set (e := exp _).
  pose proof (rest_ge0 x seen c) as R0. pose proof (rest_ge0 x' seen c) as R0'.
  set (w := rest_of x seen c) in *. set (w' := rest_of x' seen c) in *.
  assert (Ar : forall l, 0 <= A l <= 1) by apply elsewhere_range.
  assert (Ar' : forall l, 0 <= A' l <= 1) by apply elsewhere_range.
  enough (G : cell c A (seen c) (x c) * Tot c A' <= e * (cell c A' (seen c) (x' c) * Tot c A)).
  { apply Rle_trans with (cell c A (seen c) (x c) * Tot c A' * (w * w')); [apply Req_le; ring|].
    apply Rle_trans with (e * (cell c A' (seen c) (x' c) * Tot c A) * (w * w'));
      [|apply Req_le; ring].
    apply Rmult_le_compat_r; [now apply Rmult_le_pos | exact G]. }
  pose proof (inside c I) as Ic.
  assert (T : forall B, (forall l, 0 <= B l <= 1) -> 0 <= Tot c B /\
    cell c B (seen c) (x c) <= e * cell c B (seen c) (x' c)).
  { intros B' Br. split.
    - destruct (hit_bounds c Ic B' Br) as (? & ? & _ & T & _). exact T.
    - apply steps. intros m. now apply cell_close. }
  destruct (T A Ar) as [T0 S]. destruct (T A' Ar') as [T0' S'].
  (* One of the counts is above 0, and what that cell shows does not depend on the others. *)
  destruct (Z.ltb_spec 0 (x' c)) as [L|L].
  - apply Rle_trans with (e * cell c A (seen c) (x' c) * Tot c A').
    + now apply Rmult_le_compat_r.
    + apply Req_le. unfold cell. destruct (Z.ltb_spec 0 (x' c)); [ring | lia].
  - apply Rle_trans with (cell c A' (seen c) (x c) * Tot c A).
    + apply Req_le. unfold cell. destruct (Z.ltb_spec 0 (x c)); [ring | lia].
    + rewrite <- Rmult_assoc. now apply Rmult_le_compat_r.
Qed.

(** What a cell shows adds up. *)
Lemma class_total x seen c : In c on ->
  sum (fun v => prob x (fun d => if (d =? c)%Z then v else seen d))
    (None :: map Some (values greatest k))
  = class_prob b rises falls greatest k (remove Z.eq_dec c on) x seen.
Proof.
  intros I. rewrite class_free, <- (cell_total c _ (x c)), <- sum_scale_r. apply sum_ext.
  intros v _.
  rewrite (class_cell _ _ c I), Z.eqb_refl.
  destruct (elsewhere_ext x x (fun d => if (d =? c)%Z then v else seen d) seen c) as [-> ->];
    [|reflexivity].
  intros d _ D. split; [reflexivity|]. destruct (Z.eqb_spec d c); congruence.
Qed.
End Seen.

Lemma class_nothing x seen : class_prob b rises falls greatest k [] x seen = 1.
Proof.
  unfold class_prob. cbn [product fold_right]. rewrite Rmult_1_r.
  apply (UL_sequence (sum_f_R0 (number k))); [|exact number_total].
  assert (One : forall n, mean_points b greatest k (places k) n (fun _ => 1) = 1).
  { induction n as [|n IH]; [reflexivity|]. cbn [mean_points]. rewrite IH.
    rewrite (sum_ext _ (falls_on k)); [exact (falls_total K)|].
    intros d _. rewrite sum_scale_r, P_total. ring. }
  change (infinite_sum (number k) (series (fun n => number k n
    * mean_points b greatest k (places k) n (fun _ => 1)))).
  rewrite (series_ext _ (number k)) by (intros n; rewrite One; ring).
  apply (series_sum _ 1); [exact number_ge0 | exact number_total | lra].
Qed.
End Class.
End Noise.

Lemma filter_also c known l : known c = false ->
  remove Z.eq_dec c (filter (also c known) l) = filter known l.
Proof.
  intros N. unfold also. induction l as [|d l IH]; [reflexivity|]. cbn [filter].
  destruct (Z.eqb_spec d c) as [->|D]; cbn [orb].
  - rewrite N. cbn [remove]. destruct (Z.eq_dec c c); [exact IH | congruence].
  - destruct (known d); [|exact IH]. cbn [remove]. destruct (Z.eq_dec c d); [congruence|].
    now rewrite IH.
Qed.

Lemma filter_without c known l : ~ In c l -> filter (also c known) l = filter known l.
Proof.
  intros N. apply filter_ext_in. intros d D. unfold also. destruct (Z.eqb_spec d c) as [->|];
  [contradiction | reflexivity].
Qed.

Lemma in_also c known l : In c l -> In c (filter (also c known) l).
Proof. intros I. apply filter_In. unfold also. now rewrite Z.eqb_refl. Qed.

Lemma apart (l l' : list Z) c : NoDup (l ++ l') -> In c l -> ~ In c l'.
Proof.
  induction l as [|d l IH]; intros N I; [destruct I|]. inversion N as [|? ? Out N']; subst.
  destruct I as [->|I]; [|now apply IH]. intros I'. apply Out, in_or_app. now right.
Qed.

Lemma nodup_right (l l' : list Z) : NoDup (l ++ l') -> NoDup l'.
Proof. induction l as [|d l IH]; [easy|]. intros N. now inversion N; subst; apply IH. Qed.

Section Groups.
Variables (b : blocks) (rises falls a kappa theta r : R) (greatest : Z).
Hypothesis C : certified_noise b rises falls a kappa theta r.
Notation certified k := (exists delta beta lambda,
  certified_class rises a theta r delta beta lambda greatest k).
Notation prob known x seen := (fun k =>
  class_prob b rises falls greatest k (filter known (cells k)) x seen).

Lemma once_each k known : certified k -> NoDup (filter known (cells k)).
Proof. intros (? & ? & ? & K). apply NoDup_filter. now destruct K. Qed.

Lemma inside_each k known : incl (filter known (cells k)) (cells k).
Proof. intros d D. now apply filter_In in D. Qed.

Lemma prob_ge0 known x seen ks : Forall (fun k => certified k) ks ->
  0 <= product (prob known x seen) ks.
Proof.
  intros Ks. apply product_ge0. intros k I. rewrite Forall_forall in Ks.
  destruct (Ks k I) as (? & ? & ? & K). eapply class_ge0; eassumption.
Qed.

Lemma private known x x' seen ks : Forall (fun k => certified k) ks ->
  product (prob known x seen) ks
  <= exp (r * changes ks known x x') * product (prob known x' seen) ks.
Proof.
  unfold changes. induction 1 as [|k ks Kk Ks IH]; unfold sum, product in *; cbn [fold_right].
  - rewrite Rmult_0_r, exp_0. lra.
  - rewrite Rmult_plus_distr_l, exp_plus. pose proof (prob_ge0 known x seen ks Ks) as P.
    pose proof Kk as (? & ? & ? & K).
    eapply Rle_trans;
      [apply Rmult_le_compat; [eapply class_ge0; eassumption | exact P | | exact IH]|].
    + eapply some_cells with (x' := x'); try eassumption;
        [now apply once_each | apply inside_each | apply incl_refl | intros; contradiction].
    + apply Req_le. unfold sum, product. ring.
Qed.

Lemma others known x seen v c ks : ~ In c (flat_map cells ks) -> product
    (prob (also c known) x (fun d => if (d =? c)%Z then v else seen d)) ks
  = product (prob known x seen) ks /\
  product (prob (also c known) x seen) ks = product (prob known x seen) ks.
Proof.
  intros N. assert (W : forall k, In k ks -> ~ In c (cells k)).
  { intros k I Ic. apply N, in_flat_map. now exists k. }
  split; apply product_ext; intros k I; rewrite filter_without by auto; [|reflexivity].
  apply class_ext. intros d D. split; [reflexivity|]. apply filter_In in D.
  destruct (Z.eqb_spec d c) as [->|]; [|reflexivity]. destruct (W k I). apply D.
Qed.

Lemma private_given known c x x' seen ks : known c = false ->
  (0 <= x c)%Z -> (0 <= x' c)%Z -> x c <> x' c ->
  Forall (fun k => certified k) ks -> NoDup (flat_map cells ks) -> In c (flat_map cells ks) ->
  product (prob (also c known) x seen) ks * product (prob known x' seen) ks
  <= exp (r * IZR (Z.abs (x c - x' c)))
     * (product (prob (also c known) x' seen) ks * product (prob known x seen) ks).
Proof.
  intros N P P' D. induction 1 as [|k ks Kk Ks IH]; intros U I; [destruct I|].
  cbn [flat_map] in U, I. set (e := exp _) in *.
  change (prob (also c known) x seen k * product (prob (also c known) x seen) ks
      * (prob known x' seen k * product (prob known x' seen) ks)
    <= e * (prob (also c known) x' seen k * product (prob (also c known) x' seen) ks
      * (prob known x seen k * product (prob known x seen) ks))).
  pose proof (fun x => prob_ge0 known x seen ks Ks) as G. cbn beta.
  pose proof Kk as (? & ? & ? & K). destruct (in_dec Z.eq_dec c (cells k)) as [Ic|Ic].
  - destruct (others known x seen None c ks (apart _ _ c U Ic)) as [_ ->].
    destruct (others known x' seen None c ks (apart _ _ c U Ic)) as [_ ->].
    pose proof (given b rises falls a kappa theta r C _ _ _ greatest k K _
      (once_each k (also c known) Kk) (inside_each k _) x x' seen c (in_also c known _ Ic) P P' D)
      as V.
    cbn zeta in V. rewrite filter_also in V by exact N. fold e in V.
    set (p := product (prob known x seen) ks). set (p' := product (prob known x' seen) ks).
    apply (Rmult_le_compat_r (p * p')) in V; [lra|]. apply Rmult_le_pos; apply G.
  - rewrite !filter_without by exact Ic. apply in_app_or in I.
    destruct I as [I|I]; [contradiction|].
    specialize (IH (nodup_right _ _ U) I).
    set (q := class_prob _ _ _ _ k _ x seen). set (q' := class_prob _ _ _ _ k _ x' seen).
    apply (Rmult_le_compat_l (q * q')) in IH; [lra|].
    apply Rmult_le_pos; eapply class_ge0; eassumption.
Qed.

Lemma adds_up known c x seen k ks : known c = false ->
  Forall (fun k => certified k) ks -> NoDup (flat_map cells ks) -> In k ks -> In c (cells k) ->
  sum (fun v => product
      (prob (also c known) x (fun d => if (d =? c)%Z then v else seen d)) ks)
    (None :: map Some (values greatest k)) = product (prob known x seen) ks.
Proof.
  intros N. induction 1 as [|k' ks Kk Ks IH]; intros U I Ic; [destruct I|].
  cbn [flat_map] in U.
  change (sum (fun v => prob (also c known) x (fun d => if (d =? c)%Z then v else seen d) k'
      * product (prob (also c known) x (fun d => if (d =? c)%Z then v else seen d)) ks)
    (None :: map Some (values greatest k)) = prob known x seen k' * product (prob known x seen) ks).
  cbn beta. destruct (in_dec Z.eq_dec c (cells k')) as [Ic'|Ic'].
  - destruct I as [->|I].
    2: { exfalso. apply (apart _ _ c U Ic'), in_flat_map. now exists k. }
    pose proof Kk as (? & ? & ? & K).
    rewrite (sum_ext _ (fun v => class_prob b rises falls greatest k
      (filter (also c known) (cells k)) x
      (fun d => if (d =? c)%Z then v else seen d) * product (prob known x seen) ks)).
    + rewrite sum_scale_r. f_equal.
      erewrite (class_total b rises falls a kappa theta r C); try eassumption.
      * now rewrite filter_also.
      * now apply once_each.
      * apply inside_each.
      * now apply in_also.
    + intros v _. f_equal. now apply others, (apart _ _ c U).
  - destruct I as [->|I]; [contradiction|].
    rewrite <- (IH (nodup_right _ _ U) I Ic), <- sum_scale. apply sum_ext. intros v _. f_equal.
    rewrite filter_without by exact Ic'. apply class_ext. intros d D. split; [reflexivity|].
    apply filter_In in D. destruct (Z.eqb_spec d c) as [->|]; [|reflexivity]. now destruct Ic'.
Qed.
End Groups.

Theorem groups_are_private : groups_purely_private.
Proof.
  intros b rises falls r greatest ks [(a & kappa & theta & C & Ks) _] known x x' seen.
  now apply (private b rises falls a kappa theta r greatest C).
Qed.

Theorem groups_are_private_one_by_one : groups_private_one_by_one.
Proof.
  intros b rises falls r greatest ks [(a & kappa & theta & C & Ks) U] known x x' seen. split.
  - intros E. apply product_ext. intros k _. apply class_ext. intros d D. apply filter_In in D.
    split; [now apply E | reflexivity].
  - intros c I N P P' D. now apply (private_given b rises falls a kappa theta r greatest C).
Qed.

Theorem groups_add_up_to_one : groups_add_up.
Proof.
  intros b rises falls r greatest ks [(a & kappa & theta & C & Ks) U] known x seen. split.
  - clear U. unfold groups_prob, product.
    induction Ks as [|k ks (? & ? & ? & K) _ IH]; cbn [fold_right].
    + reflexivity.
    + rewrite IH. assert (E : filter (fun _ : Z => false) (cells k) = [])
        by (induction (cells k); [reflexivity | assumption]).
      rewrite E. erewrite class_nothing; try eassumption. ring.
  - intros k c I Ic N. now apply (adds_up b rises falls a kappa theta r greatest C).
Qed.

(** * The draws of points *)

(** That bits and words give what [certified_class] asks of parts and places. *)

(** Of [j] points or more, there are more with the probability [bit j]. *)
Fixpoint passes (bit : nat -> R) (n : nat) : R :=
  match n with O => 1 | S n => passes bit n * bit n end.
Definition counted (bit : nat -> R) (j : nat) : R := passes bit j * (1 - bit j).

(** The series of [u k]: [lambda / (k + 1)], [lambda / (k + 1) * lambda / (k + 2)] and so on. *)
Fixpoint more (lambda : R) (k i : nat) : R :=
  let l := lambda / INR (S k) in
  match i with O => l | S i => l * more lambda (S k) i end.

Section Bits.
Variables (lambda epsilon : R) (bit u : nat -> R).
Hypothesis lambda_range : 0 <= lambda <= 1.
Hypothesis epsilon_range : 0 <= epsilon <= 1.
Hypothesis u_sum : forall k, infinite_sum (more lambda k) (u k).
Hypothesis near : forall k,
  (1 - epsilon) * (u k / (1 + u k)) <= bit k <= u k / (1 + u k).

Lemma S_pos k : 0 < INR (S k). Proof. apply lt_0_INR. lia. Qed.

Lemma more_bounds i m k : (m <= k)%nat ->
  0 <= more lambda k i <= INR (fact m) / INR (fact (S (m + i))).
Proof.
  revert m k. induction i as [|i IH]; intros m k L.
  all: assert (Lk : 0 <= lambda / INR (S k) <= / INR (S m)).
  1, 3: pose proof (S_pos k); pose proof (S_pos m);
    assert (I : / INR (S k) <= / INR (S m)) by (apply Rinv_le_contravar; [lra | apply le_INR; lia]);
    pose proof (Rinv_0_lt_compat _ (S_pos k)); unfold Rdiv; nra.
  - cbn [more]. rewrite Nat.add_0_r. change (fact (S m)) with (S m * fact m)%nat. rewrite mult_INR.
    replace (INR (fact m) / (INR (S m) * INR (fact m))) with (/ INR (S m)); [exact Lk|].
    field. split; apply Rgt_not_eq; [apply fact_pos | apply S_pos].
  - cbn [more]. destruct (IH (S m) (S k) ltac:(lia)) as [P U].
    replace (INR (fact m) / INR (fact (S (m + S i))))
      with (/ INR (S m) * (INR (fact (S m)) / INR (fact (S (S m + i))))).
    + split; [now apply Rmult_le_pos | now apply Rmult_le_compat].
    + change (fact (S m)) with (S m * fact m)%nat. rewrite mult_INR, Nat.add_succ_r. cbn [plus].
      field. split; apply Rgt_not_eq; [apply fact_pos | apply S_pos].
Qed.

Lemma u_range k : 0 <= u k <= exp 1 - 1.
Proof.
  split.
  - apply Rle_trans with (sum_f_R0 (more lambda k) 0); [apply (more_bounds 0 0 k); lia|].
    apply partial; [|apply u_sum]. intros i. apply (more_bounds i 0 k). lia.
  - apply (limit_below (more lambda k)); [|apply u_sum]. intros n.
    pose proof (partial _ _ (S n) (fun i => Rlt_le _ _ (Rmult_lt_0_compat _ _
      (Rinv_0_lt_compat _ (fact_pos i)) (pow_lt 1 i Rlt_0_1))) (exp_series 1)) as E.
    rewrite decomp_sum in E by lia. change (pred (S n)) with n in E.
    replace (/ INR (fact 0) * 1 ^ 0) with 1 in E by (cbn; field).
    apply Rle_trans with (sum_f_R0 (fun i => / INR (fact (S i)) * 1 ^ S i) n); [|lra].
    apply sum_Rle. intros i _. rewrite pow1, Rmult_1_r.
    destruct (more_bounds i 0 k ltac:(lia)) as [_ U]. unfold Rdiv in U.
    change (INR (fact 0)) with 1 in U. now rewrite Rmult_1_l in U.
Qed.

Lemma u_step k : u k = lambda / INR (S k) * (1 + u (S k)).
Proof.
  apply (UL_sequence (fun n => sum_f_R0 (more lambda k) (S n))).
  - intros e E. destruct (u_sum k e E) as (N & H). exists N. intros n L. apply H. lia.
  - set (l := lambda / INR (S k)). intros e E.
    destruct (CV_mult _ _ _ _ (constant l) (CV_plus _ _ _ _ (constant 1) (u_sum (S k))) e E)
      as (N & H).
    exists N. intros n L. specialize (H n L). rewrite decomp_sum by lia. cbn [pred more]. fold l.
    rewrite (sum_eq _ (fun i => more lambda (S k) i * l)), <- scal_sum by (intros; ring).
    now replace (l + l * sum_f_R0 (more lambda (S k)) n)
      with (l * (1 + sum_f_R0 (more lambda (S k)) n)) by ring.
Qed.

(** A bit as a share of the ideal one, with quotients cleared. *)
Lemma share k : exists t, 1 - epsilon <= t <= 1 /\ bit k * (1 + u k) = t * u k.
Proof.
  pose proof (u_range k) as U. destruct (near k) as [L H].
  assert (Q : u k / (1 + u k) * (1 + u k) = u k) by (field; lra).
  apply (Rmult_le_compat_r (1 + u k)) in L, H; try lra. rewrite Rmult_assoc, Q in L. rewrite Q in H.
  destruct (Req_dec (u k) 0) as [Z|Z].
  - exists 1. rewrite Z in *. lra.
  - exists (bit k * (1 + u k) / u k). split; [|field; exact Z].
    split; apply (Rmult_le_reg_r (u k)); try lra; unfold Rdiv;
      rewrite Rmult_assoc, Rinv_l by exact Z; lra.
Qed.

Lemma bit_range k : 0 <= bit k <= 1 - exp (-1).
Proof.
  pose proof (u_range k) as U. destruct (share k) as (t & T & E).
  assert (I : exp (-1) * exp 1 = 1).
  { rewrite <- exp_plus. replace (-1 + 1) with 0 by ring. apply exp_0. }
  pose proof (exp_pos (-1)). split; apply (Rmult_le_reg_r (1 + u k)); try lra; rewrite E; [nra|].
  assert (exp (-1) * (1 + u k) <= exp (-1) * exp 1) by (apply Rmult_le_compat_l; lra). nra.
Qed.

Lemma passes_range n : 0 <= passes bit n <= (1 - exp (-1)) ^ n.
Proof.
  induction n as [|n IH]; cbn; [lra|]. pose proof (bit_range n) as P.
  split; [apply Rmult_le_pos; lra|]. rewrite Rmult_comm. apply Rmult_le_compat; lra.
Qed.

(** (points), from bits that are rounded down. *)
Theorem bits_count_points :
  (forall j, 0 <= counted bit j) /\ infinite_sum (counted bit) 1
  /\ like_poisson lambda (exp 1 * epsilon) (counted bit).
Proof.
  pose proof (exp_pos (-1)) as E0. split; [|split].
  - intros j. pose proof (passes_range j). pose proof (bit_range j).
    apply Rmult_le_pos; lra.
  - assert (S : forall n, sum_f_R0 (counted bit) n = 1 - passes bit (S n)).
    { induction n as [|n IH]; [unfold counted; cbn; ring|]. rewrite tech5, IH. unfold counted.
      cbn. ring. }
    assert (E1 : exp (-1) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
    intros e E.
    destruct (pow_lt_1_zero (1 - exp (-1)) ltac:(rewrite Rabs_pos_eq; lra) e E) as (N & H).
    exists N. intros n L. unfold R_dist. rewrite S. specialize (H (Datatypes.S n) ltac:(lia)).
    pose proof (passes_range (Datatypes.S n)) as P. rewrite Rabs_pos_eq in H by lra.
    apply Rabs_def1; lra.
  - intros j. pose proof (passes_range j) as [P _].
    destruct (share j) as (t & T & Et), (share (S j)) as (s & Ss & Es).
    pose proof (u_range j) as U. pose proof (u_range (S j)) as V. pose proof (u_step j) as St.
    pose proof (S_pos j) as J. set (x := u j) in *. set (y := u (S j)) in *.
    assert (Eq : INR (S j) * x = lambda * (1 + y)) by (rewrite St; field; lra).
    assert (A : INR (S j) * counted bit (S j)
      = passes bit j / (1 + x) * (lambda * (t * (1 + (1 - s) * y)))).
    { apply (Rmult_eq_reg_r ((1 + x) * (1 + y))); [|apply Rgt_not_eq, Rmult_lt_0_compat; lra].
      unfold counted. cbn [passes].
      transitivity (passes bit j * INR (S j) * (bit j * (1 + x))
        * ((1 + y) - bit (S j) * (1 + y))); [ring|].
      rewrite Et, Es. transitivity (passes bit j * t * (INR (S j) * x) * (1 + y - s * y)); [ring|].
      rewrite Eq. field. lra. }
    assert (D : lambda * counted bit j = passes bit j / (1 + x) * (lambda * (1 + (1 - t) * x))).
    { apply (Rmult_eq_reg_r (1 + x)); [|lra]. unfold counted.
      transitivity (lambda * passes bit j * (1 + x - bit j * (1 + x))); [ring|]. rewrite Et. field.
      lra. }
    rewrite A, D. set (w := passes bit j / (1 + x)).
    assert (W : 0 <= w) by (apply Rmult_le_pos; [exact P | left; apply Rinv_0_lt_compat; lra]).
    replace (w * (lambda * (t * (1 + (1 - s) * y))) - w * (lambda * (1 + (1 - t) * x)))
      with (w * lambda * (t * (1 + (1 - s) * y) - (1 + (1 - t) * x))) by ring.
    rewrite Rabs_mult, (Rabs_pos_eq (w * lambda)) by (apply Rmult_le_pos; lra).
    replace (exp 1 * epsilon * (w * (lambda * (1 + (1 - t) * x))))
      with (w * lambda * (exp 1 * epsilon * (1 + (1 - t) * x))) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
    assert (X0 : 0 <= (1 - t) * x) by (apply Rmult_le_pos; lra).
    assert (Ee : 0 <= exp 1 * epsilon) by (apply Rmult_le_pos; lra).
    assert (B : exp 1 * epsilon <= exp 1 * epsilon * (1 + (1 - t) * x)) by nra.
    apply Rabs_le. split.
    + assert ((1 - t) * (1 + x) <= epsilon * exp 1) by (apply Rmult_le_compat; lra).
      assert (0 <= t * ((1 - s) * y)) by (repeat apply Rmult_le_pos; lra). lra.
    + assert ((1 - s) * y <= epsilon * exp 1) by (apply Rmult_le_compat; lra).
      assert (0 <= (1 - s) * y) by (apply Rmult_le_pos; lra).
      assert (t * ((1 - s) * y) <= 1 * ((1 - s) * y)) by (apply Rmult_le_compat_r; lra). lra.
Qed.
End Bits.

(** A place is [floor (W M / N)] for a uniform [W] below [N]. *)
Definition place_prob (N M i : Z) : R := mean (below N) (fun W => ind (W * M / N =? i)%Z).

Theorem places_are_near N M : (0 < M)%Z -> (0 < N)%Z ->
  sum (place_prob N M) (below M) = 1
  /\ forall i, (0 <= i < M)%Z -> Rabs (place_prob N M i * IZR M - 1) <= IZR M / IZR N.
Proof.
  intros Mp Np. assert (N0 : 0 < IZR N) by (now apply IZR_lt). split.
  - unfold place_prob. rewrite <- mean_sum.
    rewrite (mean_ext _ (fun _ => 1)), mean_const; [reflexivity | now apply below_nonempty|].
    intros W I. apply in_below in I.
    assert (R : (0 <= W * M / N < M)%Z)
      by (split; [apply Z.div_pos | apply Z.div_lt_upper_bound]; nia).
    revert R. generalize (W * M / N)%Z. intros x R. rewrite <- (Z2Nat.id M) by lia.
    assert (G : forall n,
      sum (fun i => ind (x =? i)%Z) (below (Z.of_nat n)) = ind (x <? Z.of_nat n)%Z).
    { induction n as [|n IH].
      { unfold sum, ind. cbn. destruct (Z.ltb_spec x 0); [lia | reflexivity]. }
      rewrite below_snoc, sum_app, IH. unfold sum, ind. cbn [fold_right].
      destruct (Z.ltb_spec x (Z.of_nat n)), (Z.eqb_spec x (Z.of_nat n)),
        (Z.ltb_spec x (Z.of_nat (S n))); try lia; ring. }
    rewrite G. unfold ind. destruct (Z.ltb_spec x (Z.of_nat (Z.to_nat M))); [reflexivity | lia].
  - intros i I. set (c := fun i => ((i * N + M - 1) / M)%Z).
    assert (Cb : forall i, (i * N <= c i * M < i * N + M)%Z).
    { intros j. unfold c. pose proof (Z.div_mod (j * N + M - 1) M ltac:(lia)).
      pose proof (Z.mod_pos_bound (j * N + M - 1) M Mp). nia. }
    assert (E : place_prob N M i = IZR (c (i + 1)%Z) / IZR N - IZR (c i) / IZR N).
    { rewrite <- !mean_less; try lia.
      2, 3: pose proof (Cb i); pose proof (Cb (i + 1)%Z); nia.
      rewrite <- mean_sub. apply mean_ext. intros W IW. apply in_below in IW.
      pose proof (Z.div_mod (W * M) N ltac:(lia)). pose proof (Z.mod_pos_bound (W * M) N Np).
      pose proof (Cb i). pose proof (Cb (i + 1)%Z). unfold ind.
      destruct (Z.eqb_spec (W * M / N) i), (Z.ltb_spec W (c (i + 1)%Z)), (Z.ltb_spec W (c i));
        try lra; exfalso; nia. }
    rewrite E. pose proof (Cb i) as B1. pose proof (Cb (i + 1)%Z) as B2.
    replace ((IZR (c (i + 1)%Z) / IZR N - IZR (c i) / IZR N) * IZR M - 1)
      with (IZR (c (i + 1)%Z * M - c i * M - N) / IZR N)
      by (rewrite !minus_IZR, !mult_IZR; field; lra).
    unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ IZR N)) by (left; now apply Rinv_0_lt_compat).
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
    rewrite <- abs_IZR. apply IZR_le. nia.
Qed.

(** * An example *)

(** The hypotheses are not contradictory: one cell with the threshold 1, at the rate [ln 2]. *)
Definition half : blocks := Blocks 1 (1 / 2) (fun _ => 1 / 2).
Definition one : class :=
  Class 1 [0%Z] [0%Z] (fun _ => 1) (fun j => / INR (fact j) * ln 2 ^ j / 2) 1.

Lemma example_certified : certified_groups half (1 / 2) (1 / 2) (ln 2) 1 [one].
Proof.
  assert (L : 0 < ln 2) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (E : exp (ln 2) = 2) by (apply exp_ln; lra).
  assert (E' : exp (- ln 2) = / 2) by (rewrite exp_Ropp, E; reflexivity).
  split; [exists (1 / 2), 0, 0; split|].
  - constructor; cbn [half size full ends]; try lra; try lia.
    + intros d D. replace d with 0%nat by lia. cbn [pow].
      rewrite Rmult_0_l. replace (_ - _) with 0 by lra. rewrite Rabs_R0. lra.
    + rewrite Rmult_0_l. cbn [pow]. replace (_ - _) with 0 by lra. rewrite Rabs_R0. lra.
    + unfold sum. cbn. lra.
    + replace (1 / 2 / (1 / 2)) with 1 by field. rewrite ln_1, Rabs_R0.
      replace (1 / 2) with (/ 2) by lra. rewrite ln_Rinv; lra.
  - constructor; [exists 0, 0, (ln 2)|constructor].
    constructor; cbn [one threshold cells places falls_on part parts length INR]; try lra; try lia.
    + repeat constructor. intros [].
    + repeat constructor. intros [].
    + apply incl_refl.
    + intros c _. replace (1 * 1 - 1) with 0 by ring. rewrite Rabs_R0. lra.
    + unfold sum. cbn. lra.
    + intros j. apply Rmult_le_pos; [|lra].
      apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, fact_pos|].
      apply pow_le. lra.
    + intros e P. destruct (CV_mult _ _ _ _ (exp_series (ln 2)) (constant (/ 2)) e P) as (N & H).
      exists N. intros n I. specialize (H n I). rewrite E, Rinv_r in H by lra.
      rewrite Rmult_comm, scal_sum in H. exact H.
    + intros j. rewrite Rmult_0_l. replace (_ - _) with 0; [rewrite Rabs_R0; lra|].
      change (fact (S j)) with (S j * fact j)%nat. rewrite mult_INR. cbn [pow]. field.
      split; [apply Rgt_not_eq, fact_pos | apply not_0_INR; lia].
    + change (Z.to_nat (1 - 1)) with 0%nat. cbn [pow]. unfold hit.
      replace (1 * ln 2 / 1 * _) with (ln 2) by field.
      replace (1 * ln 2 / 1 * _) with (ln 2) by field. rewrite E, E'.
      split; [apply Rmax_lub | apply Rmin_glb]; lra.
  - repeat constructor. intros [].
Qed.
