(** Lemma 1b: the search by guide finds how many thresholds a number has reached. It is that of
    [ByGuide] in [search.rs], with the tables of [tables.rs]. *)
From Geomdp Require Import Statement.
Open Scope Z_scope.

Section Guide.
Variable pl : plan.
(** Each step after the guide halves the thresholds that are left in a cell. *)
Variable steps : nat.
(** A key's cell is a function, which never falls, of so many of its upper bits. *)
Variable bits : Z.
Variable lead : Z -> Z.

(** The upper 31 bits of a word; that of a threshold; and the cell of a key. *)
Definition key (word : Z) : Z := word / 2 ^ (word_bits pl - 31).
Definition key_of (limbs : list Z) : Z := key (hd 0 limbs * 2 ^ (word_bits pl - limb_bits pl)).
Definition cell (k : Z) : Z := lead (k / 2 ^ (31 - bits)).

Definition in_cell (c : Z) (limbs : list Z) : bool := cell (key_of limbs) =? c.

Definition how_many {A} (holds : A -> bool) (l : list A) : nat := length (filter holds l).

(** The thresholds compared one by one, and those that are guided, from the last one down: with
    ascending keys, up to [2 ^ steps] in a cell and 31 in all, and none if a cell depends on more
    bits than a limb has. *)
Fixpoint split (ts guided : list (list Z)) : list (list Z) * list (list Z) :=
  match ts with
  | [] => ([], guided)
  | t :: ts =>
      let k := key_of t in
      let next := match guided with [] => 0 | g :: _ => key_of g + 1 end in
      if (next <=? k)
        && (how_many (in_cell (cell k)) guided <? 2 ^ steps)%nat
        && (length guided <? if Z.ltb (limb_bits pl) bits then 0 else 31)%nat
      then split ts (t :: guided)
      else let (single, guided) := split ts guided in (t :: single, guided)
  end.

(** A path leads to the guided threshold that has so many above it. Beyond the first one are zeros,
    which every number reaches. *)
Definition at_end (d : digit) (guided : list (list Z)) (path : nat) : list Z :=
  nth path guided (repeat 0 (S (own d))).

(** The path goes down by a step where the key is below that of the lowest threshold it passes. *)
Fixpoint descend (d : digit) (guided : list (list Z)) (k : Z) (levels path : nat) : nat :=
  match levels with
  | O => path
  | S level =>
      descend d guided k level
        (if k <? key_of (at_end d guided (path + 2 ^ level - 1)) then path + 2 ^ level else path)
  end.

Definition by_guide (d : digit) (words : list Z) (v : Z) : Z :=
  let (single, guided) := split (thresholds d) [] in
  let below := fun t => less pl words t v in
  let k := key (hd 0 words) in
  let path := descend d guided k steps (how_many (fun g => cell k <? cell (key_of g)) guided) in
  count d - Z.of_nat (how_many below single) - Z.of_nat path
    - (if below (at_end d guided path) then 1 else 0).

(** * Proofs *)

Lemma filter_split {A} (p q : A -> bool) l :
  how_many p l = (how_many (fun x => p x && q x) l + how_many (fun x => p x && negb (q x)) l)%nat.
Proof.
  unfold how_many. induction l as [|x l IH]; [reflexivity|]. cbn [filter].
  destruct (p x), (q x); cbn [andb negb length]; lia.
Qed.

Lemma complement {A} (p : A -> bool) l :
  (how_many p l + how_many (fun x => negb (p x)) l)%nat = length l.
Proof.
  unfold how_many. induction l as [|x l IH]; [reflexivity|]. cbn [filter].
  destruct (p x); cbn [negb length]; lia.
Qed.

Lemma filter_ext {A} (p q : A -> bool) l : (forall x, p x = q x) -> how_many p l = how_many q l.
Proof. intros E. unfold how_many. now rewrite (filter_ext _ _ E). Qed.

(** A list whose first items, as far as they go, have a property. *)
Lemma prefix {A} (R : A -> A -> Prop) (p : A -> bool) l (none : A) i :
  StronglySorted R l -> (forall x y, R x y -> p y = true -> p x = true) ->
  (i < length l)%nat -> p (nth i l none) = (i <? how_many p l)%nat.
Proof.
  unfold how_many. intros S M. revert i. induction S as [|x l S IH F]; intros i L; [simpl in L; lia|].
  cbn [filter]. destruct (p x) eqn:P.
  - destruct i as [|i]; [exact P|]. cbn [nth length] in *. rewrite IH by lia. reflexivity.
  - assert (N : filter p l = []).
    { rewrite Forall_forall in F. destruct (filter p l) as [|y f] eqn:E; [reflexivity|].
      assert (Y : In y (filter p l)) by (rewrite E; now left). apply filter_In in Y.
      destruct Y as [Y Y']. now rewrite (M x y (F y Y) Y') in P. }
    rewrite N. destruct i as [|i]; [exact P|]. cbn [nth length] in *.
    rewrite IH by lia. rewrite N. reflexivity.
Qed.

Lemma counted {A} (p : A -> bool) (none : A) l path :
  (forall i, (i < path)%nat -> p (nth i l none) = true) ->
  (forall i, (path < i)%nat -> p (nth i l none) = false) -> p none = false ->
  how_many p l = (path + if p (nth path l none) then 1 else 0)%nat.
Proof.
  unfold how_many. revert path. induction l as [|x l IH]; intros path T F N.
  - destruct path; [cbn; now rewrite N|]. specialize (T O (Nat.lt_0_succ _)). cbn in T. congruence.
  - destruct path as [|path].
    + assert (E : filter p l = []).
      { destruct (filter p l) as [|y f] eqn:E; [reflexivity|].
        assert (Y : In y (filter p l)) by (rewrite E; now left). apply filter_In in Y.
        destruct Y as [Y Y']. destruct (In_nth _ _ none Y) as [i [I J]].
        specialize (F (S i) (Nat.lt_0_succ _)). cbn in F. congruence. }
      cbn [filter nth]. rewrite E. now destruct (p x).
    + specialize (T O (Nat.lt_0_succ _)) as X. cbn [nth] in X. cbn [filter]. rewrite X.
      cbn [length nth]. rewrite (IH path); [reflexivity| | |exact N].
      * intros i I. apply (T (S i)). lia.
      * intros i I. apply (F (S i)). lia.
Qed.

Definition above (g h : list Z) : Prop := key_of h < key_of g.
Lemma split_good ts guided single guided' :
  split ts guided = (single, guided') ->
  StronglySorted above guided -> (forall c, how_many (in_cell c) guided <= 2 ^ steps)%nat ->
  (guided <> [] -> bits <= limb_bits pl) ->
  StronglySorted above guided' /\ (forall c, how_many (in_cell c) guided' <= 2 ^ steps)%nat
  /\ (guided' <> [] -> bits <= limb_bits pl)
  /\ forall p, (how_many p single + how_many p guided' = how_many p ts + how_many p guided)%nat.
Proof.
  revert guided single guided'. induction ts as [|t ts IH]; intros guided single guided' E S C W.
  - injection E as <- <-. repeat split; auto.
  - cbn [split] in E. cbv zeta in E.
    destruct (_ && _) eqn:G in E.
    + apply andb_true_iff in G as [G Room]. apply andb_true_iff in G as [Next Left].
      apply Z.leb_le in Next. apply Nat.ltb_lt in Left, Room.
      destruct (IH _ _ _ E) as (S' & C' & W' & P).
      * constructor; [exact S|]. destruct guided as [|g l]; constructor;
          inversion S as [|? ? _ F]; subst; [unfold above; lia|].
        revert F. apply Forall_impl. unfold above. intros h. lia.
      * intros c. unfold how_many in *. cbn [filter]. destruct (in_cell c t) eqn:T; [|apply C].
        apply Z.eqb_eq in T as <-. cbn [length]. lia.
      * intros _. destruct (Z.ltb_spec (limb_bits pl) bits); lia.
      * repeat split; auto. intros p. rewrite P. unfold how_many. cbn [filter].
        destruct (p t); cbn [length]; lia.
    + destruct (split ts guided) as [single1 guided1] eqn:E1. injection E as <- <-.
      destruct (IH _ _ _ E1 S C W) as (S' & C' & W' & P). repeat split; auto.
      intros p. specialize (P p). unfold how_many in *. cbn [filter].
      destruct (p t); cbn [length]; lia.
Qed.

Lemma quotient_less D c h x : 0 < D -> 0 < c -> h * D / (D * c) < x / (D * c) -> h < x / D.
Proof.
  intros HD Hc L. rewrite <- !Z.div_div in L by lia. rewrite Z.div_mul in L by lia.
  destruct (Z.lt_ge_cases h (x / D)) as [|G]; [assumption|].
  pose proof (Z.div_le_mono _ _ c Hc G). lia.
Qed.

Section Search.
Hypothesis widths : 0 < limb_bits pl <= word_bits pl.
Hypothesis room : 31 <= word_bits pl.
Hypothesis cell_bits : 0 <= bits <= 31.
Hypothesis rises : forall x y, x <= y -> lead x <= lead y.
Variable d : digit.
Variables (first : Z) (others : list Z) (v : Z).
Hypothesis words_positive : Forall (fun word => 0 <= word) (first :: others).
Hypothesis tie_positive : 0 <= v.
Let below (t : list Z) : bool := less pl (first :: others) t v.
Let k := key first.
Let D := 2 ^ (word_bits pl - limb_bits pl).
Let M := 2 ^ (word_bits pl - 31).

Lemma units_positive : 0 < D /\ 0 < M.
Proof. unfold D, M. split; apply Z.pow_pos_nonneg; lia. Qed.

(** The first limbs decide unless they are equal. *)
Lemma not_below t : hd 0 t < limb pl first -> below t = false.
Proof.
  destruct t as [|t limbs]; [reflexivity|]. unfold below. cbn [hd less]. intros L.
  destruct (less pl others limbs v); apply Z.ltb_ge; lia.
Qed.

Lemma key_below t : k < key_of t -> below t = true.
Proof.
  intros L. destruct units_positive as [HD HM].
  assert (H : limb pl first < hd 0 t).
  { destruct (Z.lt_ge_cases (limb pl first) (hd 0 t)) as [|G]; [assumption|].
    assert (hd 0 t * D <= first).
    { unfold limb in G. fold D in G. pose proof (Z.mul_div_le first D HD). nia. }
    pose proof (Z.div_le_mono (hd 0 t * D) first M HM ltac:(assumption)).
    unfold k, key_of, key in L. fold D M in L. lia. }
  inversion words_positive as [|? ? P _]; subst.
  assert (0 <= limb pl first) by (apply Z.div_pos; fold D; lia).
  destruct t as [|t limbs]; cbn [hd] in H; [lia|]. unfold below. cbn [less].
  apply Z.ltb_lt. destruct (less pl others limbs v); lia.
Qed.

Lemma key_reached g h : above g h -> key_of g <= k -> below h = false.
Proof.
  unfold above. intros A G. apply not_below. destruct units_positive as [HD HM].
  unfold k, key_of, key in A, G. unfold limb. fold D M in A, G |- *. destruct (Z.le_gt_cases 31 (limb_bits pl)).
  - assert (E : M = D * 2 ^ (limb_bits pl - 31)).
    { unfold M, D. rewrite <- Z.pow_add_r by lia. f_equal. lia. }
    assert (0 < 2 ^ (limb_bits pl - 31)) by (apply Z.pow_pos_nonneg; lia).
    rewrite E in A, G. apply (quotient_less D (2 ^ (limb_bits pl - 31))); lia.
  - set (c := 2 ^ (31 - limb_bits pl)). assert (0 < c) by (apply Z.pow_pos_nonneg; lia).
    assert (E : D = M * c).
    { unfold M, D, c. rewrite <- Z.pow_add_r by lia. f_equal. lia. }
    rewrite E, (Z.mul_comm M c), !Z.mul_assoc, !Z.div_mul in A by lia.
    rewrite E, (Z.mul_comm M c), Z.mul_assoc, Z.div_mul in G by lia.
    rewrite E, <- Z.div_div by lia.
    assert (hd 0 g <= first / M / c) by (apply Z.div_le_lower_bound; lia). nia.
Qed.

Lemma cell_reached h : bits <= limb_bits pl -> cell (key_of h) < cell k -> below h = false.
Proof.
  intros W L. apply not_below. destruct units_positive as [HD HM].
  assert (key_of h / 2 ^ (31 - bits) < k / 2 ^ (31 - bits)) as Q.
  { destruct (Z.lt_ge_cases (key_of h / 2 ^ (31 - bits)) (k / 2 ^ (31 - bits))) as [|G];
      [assumption|]. apply rises in G. unfold cell in L. lia. }
  unfold k, key_of, key in Q. unfold limb. fold D M in Q |- *.
  assert (0 < 2 ^ (31 - bits)) by (apply Z.pow_pos_nonneg; lia).
  assert (E : M * 2 ^ (31 - bits) = D * 2 ^ (limb_bits pl - bits)).
  { unfold M, D. rewrite <- !Z.pow_add_r by lia. f_equal. lia. }
  rewrite !Z.div_div, E in Q by lia.
  apply (quotient_less D (2 ^ (limb_bits pl - bits))); [lia|apply Z.pow_pos_nonneg; lia|exact Q].
Qed.

Lemma zeros_reached n : below (repeat 0 n) = false.
Proof.
  unfold below. revert n. generalize words_positive. generalize (first :: others).
  induction 1 as [|x l X F IH]; intros [|n]; cbn [repeat less]; try reflexivity.
  - destruct n; [apply Z.ltb_ge; exact tie_positive|reflexivity].
  - rewrite IH. apply Z.ltb_ge. rewrite Z.sub_0_r. apply Z.div_pos; [exact X|apply units_positive].
Qed.

Lemma key_of_zeros n : key_of (repeat 0 n) = 0.
Proof. unfold key_of, key. destruct n; cbn [repeat hd]; now rewrite Z.mul_0_l, Zdiv_0_l. Qed.

Variable guided : list (list Z).
Hypothesis sorted : StronglySorted above guided.
Let end_of := at_end d guided.

Lemma end_above i j : (i < j < length guided)%nat -> above (end_of i) (end_of j).
Proof.
  unfold end_of, at_end. revert i j. induction sorted as [|g l S IH F]; intros i j L.
  - simpl in L. lia.
  - destruct j as [|j]; [lia|]. cbn [length] in L. destruct i as [|i]; cbn [nth].
    + rewrite Forall_forall in F. apply F, nth_In. lia.
    + apply IH; [exact S|lia].
Qed.

Lemma end_beyond i : (length guided <= i)%nat -> end_of i = repeat 0 (S (own d)).
Proof. apply nth_overflow. Qed.

Lemma key_positive : 0 <= k.
Proof.
  inversion words_positive. apply Z.div_pos; [assumption|apply units_positive].
Qed.

Lemma descend_finds levels path :
  (forall i, (i < path)%nat -> below (end_of i) = true) ->
  (forall i, (path + 2 ^ levels <= i)%nat -> below (end_of i) = false) ->
  let found := descend d guided k levels path in
  (forall i, (i < found)%nat -> below (end_of i) = true)
  /\ forall i, (found < i)%nat -> below (end_of i) = false.
Proof.
  revert path. induction levels as [|level IH]; intros path T F; cbn [descend].
  - split; [exact T|]. intros i I. apply F. cbn. lia.
  - set (lowest := (path + 2 ^ level - 1)%nat).
    assert (P : (1 <= 2 ^ level)%nat) by (apply Nat.le_succ_l, Nat.neq_0_lt_0, Nat.pow_nonzero; lia).
    cbn [Nat.pow] in F. change (at_end d guided) with end_of.
    destruct (Z.ltb_spec k (key_of (end_of lowest))) as [L|L]; apply IH.
    + intros i I. assert (N : (lowest < length guided)%nat).
      { destruct (Nat.lt_ge_cases lowest (length guided)) as [|G]; [assumption|].
        rewrite end_beyond, key_of_zeros in L by exact G.
        pose proof key_positive. lia. }
      apply key_below. destruct (Nat.eq_dec i lowest) as [->|]; [exact L|].
      assert (A : above (end_of i) (end_of lowest)) by (apply end_above; unfold lowest in *; lia).
      unfold above in A. lia.
    + intros i I. apply F. lia.
    + exact T.
    + intros i I. destruct (Nat.lt_ge_cases i (length guided)) as [N|N].
      * apply (key_reached (end_of lowest)); [|exact L]. apply end_above. unfold lowest. lia.
      * rewrite end_beyond by exact N. apply zeros_reached.
Qed.

Hypothesis crowd : forall c, (how_many (in_cell c) guided <= 2 ^ steps)%nat.
Hypothesis limbs_hold_cells : guided <> [] -> bits <= limb_bits pl.

Lemma cell_mono x y : x <= y -> cell x <= cell y.
Proof. intros L. apply rises, Z.div_le_mono; [apply Z.pow_pos_nonneg; lia|exact L]. Qed.

Lemma cells_find :
  let path := how_many (fun g => cell k <? cell (key_of g)) guided in
  (forall i, (i < path)%nat -> below (end_of i) = true)
  /\ forall i, (path + 2 ^ steps <= i)%nat -> below (end_of i) = false.
Proof.
  set (higher := fun g => cell k <? cell (key_of g)). intros path.
  set (not_lower := fun g => cell k <=? cell (key_of g)).
  assert (E : how_many not_lower guided = (path + how_many (in_cell (cell k)) guided)%nat).
  { rewrite (filter_split not_lower higher). f_equal; apply filter_ext; intros g;
      unfold not_lower, higher, in_cell;
      destruct (Z.leb_spec (cell k) (cell (key_of g))), (Z.ltb_spec (cell k) (cell (key_of g))),
        (Z.eqb_spec (cell (key_of g)) (cell k)); cbn; lia. }
  pose proof (crowd (cell k)) as C.
  assert (Mono : forall g h, above g h -> cell (key_of h) <= cell (key_of g)).
  { intros g h A. apply cell_mono. unfold above in A. lia. }
  assert (N : (path <= length guided)%nat).
  { pose proof (complement higher guided). unfold path. fold higher. lia. }
  split; intros i I.
  - apply key_below. assert (P : higher (end_of i) = true).
    { unfold end_of, at_end. rewrite (prefix above); [apply Nat.ltb_lt; exact I|exact sorted| |lia].
      intros g h A. unfold higher. specialize (Mono g h A). rewrite !Z.ltb_lt. lia. }
    unfold higher in P. apply Z.ltb_lt in P.
    destruct (Z.lt_ge_cases k (key_of (end_of i))) as [|G]; [assumption|].
    apply cell_mono in G. lia.
  - destruct (Nat.lt_ge_cases i (length guided)) as [L|L];
      [|rewrite end_beyond by exact L; apply zeros_reached].
    apply cell_reached; [apply limbs_hold_cells; intros ->; simpl in L; lia|].
    assert (P : not_lower (end_of i) = false).
    { unfold end_of, at_end. rewrite (prefix above); [apply Nat.ltb_ge; lia|exact sorted| |lia].
      intros g h A. unfold not_lower. specialize (Mono g h A). rewrite !Z.leb_le. lia. }
    unfold not_lower in P. apply Z.leb_gt in P. exact P.
Qed.

Lemma search_finds :
  let path :=
    descend d guided k steps (how_many (fun g => cell k <? cell (key_of g)) guided) in
  how_many below guided = (path + if below (end_of path) then 1 else 0)%nat.
Proof.
  intros path. destruct cells_find as [T F]. destruct (descend_finds steps _ T F) as [T' F'].
  apply counted; [exact T'|exact F'|apply zeros_reached].
Qed.
End Search.

(** Whatever the thresholds are, and for any number of steps. *)
Theorem by_guide_outcome d first others v :
  0 < limb_bits pl <= word_bits pl -> 31 <= word_bits pl -> 0 <= bits <= 31 ->
  (forall x y, x <= y -> lead x <= lead y) ->
  Forall (fun word => 0 <= word) (first :: others) -> 0 <= v ->
  by_guide d (first :: others) v = outcome pl d (first :: others) v.
Proof.
  intros W R B I P V. unfold by_guide, outcome, count.
  destruct (split (thresholds d) []) as [single guided] eqn:E. cbn [hd].
  destruct (split_good _ _ _ _ E) as (S & C & L & T); [constructor|cbn; lia|easy|].
  pose proof (search_finds W R B I d first others v P V guided S C L) as F. cbv zeta in F.
  set (path := descend _ _ _ _ _) in *.
  set (below := fun t => less pl (first :: others) t v) in *.
  specialize (T below). unfold how_many in T at 4. cbn in T.
  pose proof (complement below (thresholds d)) as A. unfold how_many in *.
  subst below. cbv beta in *. destruct (less pl _ (at_end d guided path) v); lia.
Qed.
End Guide.

(** The leads of [tables.rs] never fall: the upper five bits, the key without so many bits but for
    the last cell, and the number of leading ones, those that the other bits do not need. *)
Definition upper (x : Z) : Z := x.
Definition shifted (x : Z) : Z := Z.min x 31.
Definition ones (k : Z) : Z := 31 - Z.log2_up (2 ^ 31 - k).

Theorem leads_rise x y :
  x <= y -> upper x <= upper y /\ shifted x <= shifted y /\ ones x <= ones y.
Proof.
  intros L. unfold upper, shifted, ones. repeat split; [exact L|lia|].
  assert (2 ^ 31 - y <= 2 ^ 31 - x) as G by lia. apply Z.log2_up_le_mono in G. lia.
Qed.

(** A number below [2 ^ 31] has so many leading ones if it is at least the number of them and zeros,
    and at most that with ones after the first zero. *)
Theorem ones_lead k n :
  0 <= n <= 30 -> ones k = n <-> 2 ^ 31 - 2 ^ (31 - n) <= k < 2 ^ 31 - 2 ^ (30 - n).
Proof.
  intros N. unfold ones.
  destruct (Z.le_gt_cases (2 ^ 31 - k) 1) as [S|S].
  - rewrite Z.log2_up_eqn0 by exact S.
    pose proof (Z.pow_pos_nonneg 2 (30 - n)). lia.
  - pose proof (Z.log2_up_spec (2 ^ 31 - k) S) as U. split.
    + intros E. assert (Z.log2_up (2 ^ 31 - k) = 31 - n) as A by lia. rewrite A in U.
      replace (Z.pred (31 - n)) with (30 - n) in U by lia. lia.
    + intros B. assert (Z.log2_up (2 ^ 31 - k) = 31 - n) as ->; [|lia].
      apply Z.log2_up_unique; [lia|]. replace (Z.pred (31 - n)) with (30 - n) by lia. lia.
Qed.

(** Thresholds that start with a limb full of ones compare it once: a number with a smaller limb is
    below all of them, and the other limbs decide for any other number. *)
Theorem full_limb pl first others t limbs v :
  0 < limb_bits pl <= word_bits pl -> first < 2 ^ word_bits pl ->
  less pl (first :: others) (2 ^ limb_bits pl - 1 :: t :: limbs) v
  = (limb pl first <? 2 ^ limb_bits pl - 1) || less pl others (t :: limbs) v.
Proof.
  intros W F. assert (limb pl first < 2 ^ limb_bits pl).
  { unfold limb. apply Z.div_lt_upper_bound; [apply Z.pow_pos_nonneg; lia|].
    rewrite <- Z.pow_add_r by lia. replace (word_bits pl - limb_bits pl + limb_bits pl)
      with (word_bits pl) by lia. exact F. }
  change (less pl (first :: others) (2 ^ limb_bits pl - 1 :: t :: limbs) v)
    with (limb pl first - (if less pl others (t :: limbs) v then 1 else 0)
            <? 2 ^ limb_bits pl - 1).
  destruct (less pl others (t :: limbs) v); rewrite ?orb_true_r, ?orb_false_r;
    [apply Z.ltb_lt; lia|f_equal; lia].
Qed.
