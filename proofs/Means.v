(** Finite sums and means. The mean of a function over the list of all tapes is its expectation. *)
From Coq Require Export Reals ZArith List Bool Lia Lra Psatz.
Export ListNotations.
Open Scope R_scope.

(** [[b]] of the paper: 1 if [b] holds, else 0. *)
Definition ind (b : bool) : R := if b then 1 else 0.

Definition sum {A} (f : A -> R) (l : list A) : R := fold_right (fun x s => f x + s) 0 l.

Definition mean {A} (l : list A) (f : A -> R) : R := sum f l / INR (length l).

(** The integers from 0 up to, but not including, [n]. *)
Definition below (n : Z) : list Z := map Z.of_nat (seq 0 (Z.to_nat n)).

Section Sums.
Context {A : Type}.
Implicit Types (f g : A -> R) (l : list A).

Lemma sum_app f l l' : sum f (l ++ l') = sum f l + sum f l'.
Proof. induction l as [|x l IH]; simpl; [lra|]. unfold sum in *. simpl. lra. Qed.

Lemma sum_ext f g l : (forall x, In x l -> f x = g x) -> sum f l = sum g l.
Proof.
  induction l as [|x l IH]; intros E; [reflexivity|]. unfold sum in *; simpl.
  rewrite (E x) by (left; reflexivity). rewrite IH; [reflexivity|]. intros; apply E; now right.
Qed.

Lemma sum_plus f g l : sum (fun x => f x + g x) l = sum f l + sum g l.
Proof. induction l as [|x l IH]; unfold sum in *; simpl; lra. Qed.

Lemma sum_scale c f l : sum (fun x => c * f x) l = c * sum f l.
Proof. induction l as [|x l IH]; unfold sum in *; simpl; [lra|]. rewrite IH; lra. Qed.

Lemma sum_const c l : sum (fun _ => c) l = INR (length l) * c.
Proof.
  induction l as [|x l IH]; [unfold sum; simpl; lra|].
  change (length (x :: l)) with (S (length l)). rewrite S_INR.
  unfold sum in *; simpl. rewrite IH. lra.
Qed.

Lemma sum_le f g l : (forall x, In x l -> f x <= g x) -> sum f l <= sum g l.
Proof.
  induction l as [|x l IH]; intros H; unfold sum in *; simpl; [lra|].
  assert (f x <= g x) by (apply H; now left).
  assert (fold_right (fun x s => f x + s) 0 l <= fold_right (fun x s => g x + s) 0 l)
    by (apply IH; intros; apply H; now right).
  lra.
Qed.

Lemma sum_abs f l : Rabs (sum f l) <= sum (fun x => Rabs (f x)) l.
Proof.
  induction l as [|x l IH]; unfold sum in *; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma mean_ext f g l : (forall x, In x l -> f x = g x) -> mean l f = mean l g.
Proof. intros E. unfold mean. now rewrite (sum_ext f g). Qed.

Lemma mean_plus f g l : mean l (fun x => f x + g x) = mean l f + mean l g.
Proof. unfold mean. rewrite sum_plus. unfold Rdiv. lra. Qed.

Lemma mean_scale c f l : mean l (fun x => c * f x) = c * mean l f.
Proof. unfold mean. rewrite sum_scale. unfold Rdiv. lra. Qed.

Lemma length_pos l : l <> [] -> 0 < INR (length l).
Proof. intros H. apply lt_0_INR. destruct l; simpl; [congruence|lia]. Qed.

Lemma mean_const c l : l <> [] -> mean l (fun _ => c) = c.
Proof. intros H. unfold mean. rewrite sum_const. field. pose proof (length_pos l H). lra. Qed.

Lemma mean_le f g l : l <> [] -> (forall x, In x l -> f x <= g x) -> mean l f <= mean l g.
Proof.
  intros N H. unfold mean, Rdiv. apply Rmult_le_compat_r.
  - left; apply Rinv_0_lt_compat, length_pos, N.
  - now apply sum_le.
Qed.

Lemma mean_abs f l : l <> [] -> Rabs (mean l f) <= mean l (fun x => Rabs (f x)).
Proof.
  intros N. unfold mean, Rdiv. rewrite Rabs_mult.
  rewrite (Rabs_pos_eq (/ _)) by (left; apply Rinv_0_lt_compat, length_pos, N).
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, length_pos, N | apply sum_abs].
Qed.

Lemma mean_ge0 f l : l <> [] -> (forall x, In x l -> 0 <= f x) -> 0 <= mean l f.
Proof. intros N H. rewrite <- (mean_const 0 l N). now apply mean_le. Qed.

Lemma mean_sub f g l : mean l (fun x => f x - g x) = mean l f - mean l g.
Proof.
  rewrite (mean_ext _ (fun x => f x + (-1) * g x)) by (intros; lra).
  rewrite mean_plus, mean_scale. lra.
Qed.

(** Counting is a mean. *)
Lemma mean_filter (b : A -> bool) l :
  INR (length (filter b l)) / INR (length l) = mean l (fun x => ind (b x)).
Proof.
  unfold mean. f_equal. induction l as [|x l IH]; [reflexivity|].
  unfold sum in *; simpl fold_right; simpl filter. rewrite <- IH. destruct (b x); unfold ind.
  - change (length (x :: filter b l)) with (S (length (filter b l))). rewrite S_INR. lra.
  - lra.
Qed.
End Sums.

Lemma sum_map {A B} (h : A -> B) f l : sum f (map h l) = sum (fun x => f (h x)) l.
Proof. unfold sum. induction l as [|x l IH]; simpl; [reflexivity|]. now rewrite IH. Qed.

Lemma mean_map {A B} (h : A -> B) f l : mean (map h l) f = mean l (fun x => f (h x)).
Proof. unfold mean. now rewrite sum_map, map_length. Qed.

(** A mean over sums (finitely many) is the sum of means. *)
Lemma mean_sum {A B} (f : A -> B -> R) (l : list A) (bs : list B) :
  mean l (fun x => sum (f x) bs) = sum (fun b => mean l (fun x => f x b)) bs.
Proof.
  induction bs as [|b bs IH].
  - unfold sum; simpl. unfold mean. rewrite sum_const. unfold Rdiv; lra.
  - unfold sum in *; simpl. rewrite mean_plus. now rewrite IH.
Qed.

(** A list of all pairs: one mean inside the other. *)
Lemma mean_pairs {A B C} (h : A -> B -> C) f l l' : l <> [] -> l' <> [] ->
  mean (flat_map (fun x => map (h x) l') l) f = mean l (fun x => mean l' (fun y => f (h x y))).
Proof.
  intros N N'. pose proof (length_pos l N). pose proof (length_pos l' N').
  assert (L : INR (length (flat_map (fun x => map (h x) l') l))
              = INR (length l) * INR (length l')).
  { rewrite <- mult_INR. f_equal. clear. induction l as [|x l IH]; [reflexivity|].
    simpl. now rewrite app_length, map_length, IH. }
  assert (S : sum f (flat_map (fun x => map (h x) l') l)
              = sum (fun x => sum (fun y => f (h x y)) l') l).
  { clear. induction l as [|x l IH]; [reflexivity|]. simpl flat_map.
    rewrite sum_app, sum_map, IH. reflexivity. }
  unfold mean. rewrite L, S.
  rewrite (sum_ext (fun x => sum (fun y => f (h x y)) l' / INR (length l'))
             (fun x => / INR (length l') * sum (fun y => f (h x y)) l'))
    by (intros; apply Rmult_comm).
  rewrite sum_scale. field. lra.
Qed.

Lemma pairs_nonempty {A B C} (h : A -> B -> C) l l' :
  l <> [] -> l' <> [] -> flat_map (fun x => map (h x) l') l <> [].
Proof. destruct l; [contradiction|]. destruct l'; [contradiction|]. discriminate. Qed.

(** ** Means over the integers below [n] *)

Lemma in_below n x : In x (below n) <-> (0 <= x < n)%Z.
Proof.
  unfold below. rewrite in_map_iff. split.
  - intros (k & <- & H). apply in_seq in H. lia.
  - intros H. exists (Z.to_nat x). rewrite in_seq. lia.
Qed.

Lemma below_nonempty n : (0 < n)%Z -> below n <> [].
Proof. intros H E. assert (I : In 0%Z (below n)) by (apply in_below; lia). rewrite E in I.
  destruct I. Qed.

Lemma below_length n : (0 <= n)%Z -> INR (length (below n)) = IZR n.
Proof. intros H. unfold below. rewrite map_length, seq_length, INR_IZR_INZ. f_equal. lia. Qed.

Lemma below_snoc n : below (Z.of_nat (S n)) = below (Z.of_nat n) ++ [Z.of_nat n].
Proof. unfold below. rewrite !Nat2Z.id, seq_S, map_app. reflexivity. Qed.

(** Integers below [m * n] are pairs of a quotient and a remainder. *)
Lemma below_mul m n : (0 <= m)%Z -> (0 <= n)%Z ->
  below (m * n) = flat_map (fun i => map (fun j => i * n + j)%Z (below n)) (below m).
Proof.
  intros Hm Hn. rewrite <- (Z2Nat.id n Hn), <- (Z2Nat.id m Hm).
  generalize (Z.to_nat m), (Z.to_nat n). clear. intros m n. unfold below.
  rewrite <- Nat2Z.inj_mul, !Nat2Z.id.
  induction m as [|m IH]; [reflexivity|].
  rewrite seq_S, map_app, flat_map_app, <- IH. simpl Nat.mul.
  rewrite Nat.add_comm, seq_app, map_app. simpl. rewrite app_nil_r, map_map. f_equal.
  assert (G : forall s c t, map Z.of_nat (seq (c + t) s)
                 = map (fun x => (Z.of_nat c + Z.of_nat x)%Z) (seq t s)).
  { induction s as [|s IHs]; intros c t; simpl; [reflexivity|].
    f_equal; [lia|]. rewrite plus_n_Sm. apply IHs. }
  specialize (G n (m * n)%nat 0%nat). rewrite Nat.add_0_r in G. rewrite G.
  apply map_ext. intros. lia.
Qed.

Lemma mean_below_mul m n f : (0 < m)%Z -> (0 < n)%Z ->
  mean (below (m * n)) f = mean (below m) (fun i => mean (below n) (fun j => f (i * n + j)%Z)).
Proof. intros. rewrite below_mul by lia. apply mean_pairs; apply below_nonempty; lia. Qed.

Lemma mean_less n t : (0 < n)%Z -> (0 <= t <= n)%Z ->
  mean (below n) (fun v => ind (v <? t)%Z) = IZR t / IZR n.
Proof.
  intros Hn Ht. unfold mean. rewrite below_length by lia. f_equal.
  assert (G : forall k, sum (fun v => ind (v <? t)%Z) (map Z.of_nat (seq 0 k))
                        = IZR (Z.min (Z.of_nat k) t)).
  { induction k as [|k IH]; [simpl; rewrite Z.min_l by lia; reflexivity|].
    rewrite seq_S, map_app, sum_app, IH. unfold sum; simpl map; simpl fold_right.
    unfold ind. destruct (Z.ltb_spec (Z.of_nat k) t).
    - rewrite !Z.min_l by lia. rewrite Nat2Z.inj_succ. unfold Z.succ. rewrite plus_IZR. lra.
    - rewrite !Z.min_r by lia. lra. }
  unfold below. rewrite G. f_equal. lia.
Qed.
