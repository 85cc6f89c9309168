(** The draw, its distribution, and the hypotheses under which it is private: read this file to know
    what is proved. [Main.v] proves it. Names are those of docs/proofs.md. *)
From Coq Require Export Sorted.
From Geomdp Require Export Means.
Open Scope Z_scope.

(** * The draw *)

Record digit := Digit {
  weight_bits : Z;  (** the digit's weight is [2^weight_bits] *)
  own : nat;  (** words of its own *)
  thresholds : list (list Z)  (** each [own + 1] limbs, the most significant first *) }.

Record plan := Plan {
  word_bits : Z;
  limb_bits : Z;
  range : Z;
  value_bits : Z;  (** bits of the floor's value *)
  first : digit;  (** digit 0, with the floor's slot and zero *)
  rest : list digit  (** the other digits, if any *) }.

Section Draw.
Variable pl : plan.

(** The upper bits of a word. *)
Definition limb (word : Z) : Z := word / 2 ^ (word_bits pl - limb_bits pl).

(** Is the number [(words, v)] less than the threshold? A borrow goes from limb to limb. *)
Fixpoint less (words limbs : list Z) (v : Z) : bool :=
  match words, limbs with
  | word :: words, t :: limbs => limb word - (if less words limbs v then 1 else 0) <? t
  | _, [t] => v <? t
  | _, _ => false
  end.

(** How many thresholds the number has reached. *)
Definition outcome (d : digit) (words : list Z) (v : Z) : Z :=
  Z.of_nat (length (filter (fun t => negb (less words t v)) (thresholds d))).

Fixpoint outcomes (ds : list digit) (words : list Z) (v : Z) : list Z :=
  match ds with
  | [] => []
  | d :: ds => outcome d (firstn (own d) words) v :: outcomes ds (skipn (own d) words) v
  end.

Fixpoint weigh (ds : list digit) (values : list Z) : Z :=
  match ds, values with
  | d :: ds, k :: values => k * 2 ^ weight_bits d + weigh ds values
  | _, _ => 0
  end.

Definition count (d : digit) : Z := Z.of_nat (length (thresholds d)).
Definition no_digit := Digit 0 0 [].
Definition top : digit := last (rest pl) (first pl).
(** Digit 0's value wraps at this power of two where it rises: if it is the only digit, never. *)
Definition wrap : Z :=
  match rest pl with [] => 2 ^ word_bits pl | d :: _ => 2 ^ weight_bits d end.

(** The output for the sign's bit, digit 0's outcome, the other digits' values, a word for the
    floor's value and the count [x], an offset in [0 .. range]. Digit 0's outcomes are the floor's
    slot, then its values from 1 on, then zero, which does not fall. *)
Definition output (sign reached : Z) (values : list Z) (free x : Z) : Z :=
  let not_zero := reached <? count (first pl) in
  let low := (if not_zero then reached - sign else 0) mod wrap in
  let sum := (low + weigh (rest pl) values) mod 2 ^ word_bits pl in
  (* The top digit's last value stands for everything above it. *)
  let noise :=
    match rest pl with
    | [] => sum
    | _ => if last values 0 <? count top then sum else range pl
    end in
  if reached =? 0 then Z.min (free mod 2 ^ value_bits pl) (range pl)
  else if not_zero && (sign =? 1) then Z.max (x - Z.min noise x) 1 - 1
  else x + Z.min noise (range pl - x).

(** The tape: the shared word, which gives the sign and [v], the digits' own words, and at least one
    word after those of digit 0. *)
Definition draw (tape : list Z) (x : Z) : Z :=
  let shared := hd 0 tape in
  let v := limb shared in
  let words := firstn (own (first pl)) (tl tape) in
  let later := skipn (own (first pl)) (tl tape) in
  output (shared mod 2) (outcome (first pl) words v) (outcomes (rest pl) later v) (hd 0 later) x.

(** * Its distribution: counting over all tapes *)

Fixpoint own_words (ds : list digit) : nat :=
  match ds with [] => 0 | d :: ds => own d + own_words ds end.
Definition words : nat := 1 + (own (first pl) + Nat.max (own_words (rest pl)) 1).

(** All lists of [n] words. *)
Fixpoint tapes (n : nat) : list (list Z) :=
  match n with
  | O => [[]]
  | S n => flat_map (fun word => map (cons word) (tapes n)) (below (2 ^ word_bits pl))
  end.

Definition prob (y x : Z) : R :=
  INR (length (filter (fun tape => draw tape x =? y) (tapes words))) / INR (length (tapes words)).

(** A release of many counts: each is clamped to [lower .. lower + range] and has its own words. *)
Fixpoint release (lower : Z) (tape xs : list Z) : list Z :=
  match xs with
  | [] => []
  | x :: xs =>
      lower + draw (firstn words tape) (Z.min (Z.max x lower - lower) (range pl))
      :: release lower (skipn words tape) xs
  end.

Definition release_prob (lower : Z) (ys xs : list Z) : R :=
  let all := tapes (words * length xs) in
  INR (length (filter (fun tape =>
    if list_eq_dec Z.eq_dec (release lower tape xs) ys then true else false) all))
  / INR (length all).
End Draw.

Fixpoint distance (xs xs' : list Z) : Z :=
  match xs, xs' with
  | x :: xs, x' :: xs' => Z.abs (x - x') + distance xs xs'
  | _, _ => 0
  end.

(** * The hypotheses: the fields of a certificate *)

(** A threshold as an integer. *)
Fixpoint value (w : Z) (limbs : list Z) : Z :=
  match limbs with
  | [] => 0
  | t :: limbs => t * 2 ^ (w * Z.of_nat (length limbs)) + value w limbs
  end.

Definition values (w : Z) (d : digit) : list Z := map (value w) (thresholds d).

(** Bits of a digit's thresholds. *)
Definition bits (w : Z) (d : digit) : Z := w * (Z.of_nat (own d) + 1).

Open Scope R_scope.

Section Certificate.
Variables (pl : plan) (rate sampled : R).
Let w := limb_bits pl.

(** [a ^ n] for [a = exp (- sampled)]. *)
Definition a_to (n : Z) : R := exp (- sampled * IZR n).

(** The target of [P(value < k)] for a digit of weight [B] with [r] values; the last value of the
    top digit stands for all larger ones. *)
Definition target (is_top : bool) (B r k : Z) : R :=
  if is_top then (if (k <? r)%Z then 1 - a_to (k * B) else 1)
  else (1 - a_to (k * B)) / (1 - a_to (r * B)).

(** Digit 0: the slot, of mass [g], its values, and zero. *)
Definition p_zero : R := (1 - a_to 1) / (1 + a_to 1).
Definition alone : bool := match rest pl with [] => true | _ => false end.
(** The number of its values. *)
Definition radix : Z := count (first pl) - 1.
Definition first_target (g : R) (k : Z) : R :=
  g + (1 - g) * (1 - p_zero) * target alone 1 radix (k - 1).

(** Thresholds number 1, 2, ... of the digit are within one unit of the targets. *)
Definition near (d : digit) (target : Z -> R) : Prop :=
  forall k, (1 <= k <= count d)%Z ->
    Rabs (IZR (nth (Z.to_nat (k - 1)) (values w d) 0%Z) - target k * IZR (2 ^ bits w d)) <= 1.

(** Limbs are in range, and thresholds ascend. *)
Definition well_formed (d : digit) : Prop :=
  Forall (fun limbs => length limbs = S (own d) /\ Forall (fun t => 0 <= t < 2 ^ w)%Z limbs)
    (thresholds d) /\ StronglySorted Z.le (values w d) /\ (0 < own d)%nat.

(** The digits from weight [B] on, up to the top one. *)
Fixpoint layout (B : Z) (ds : list digit) : Prop :=
  match ds with
  | [] => True
  | d :: ds =>
      let is_top := match ds with [] => true | _ => false end in
      (2 ^ weight_bits d = B /\ 1 <= count d)%Z
      /\ near d (target is_top B (count d + 1)) /\ layout (B * (count d + 1)) ds
  end.

(** From this value of the geometric on, the top digit has its last value. *)
Definition censored : Z :=
  if alone then radix - 1 else (count (top pl) * 2 ^ weight_bits (top pl))%Z.

(** A digit is low if it has fewer words than the top one. Its [inverse] is at least
    [2^-(w (own - 1))] over the probability of its least likely value. *)
Definition is_low (d : digit) : bool := (own d <? own (top pl))%nat.
Definition covers (d : digit) (inverse least : R) : Prop :=
  is_low d = true ->
  0 <= inverse /\ 1 <= inverse * least * IZR (2 ^ (w * (Z.of_nat (own d) - 1))).
Fixpoint cover (B : Z) (ds : list digit) (inverses : list R) : Prop :=
  match ds, inverses with
  | [], [] => True
  | d :: ds, i :: inverses =>
      covers d i (1 - target false B (count d + 1) (count d))
      /\ cover (B * (count d + 1)) ds inverses
  | _, _ => False
  end.

Fixpoint lows {A} (ds : list digit) (inverses : list A) : list A :=
  match ds, inverses with
  | d :: ds, i :: inverses => if is_low d then i :: lows ds inverses else lows ds inverses
  | _, _ => []
  end.

(** The relative error of low digits, in units of [2^-2w]: single terms and pairs. *)
Fixpoint pairs (inverses : list R) : R :=
  match inverses with
  | [] => 0
  | i :: inverses => pairs inverses + 2 * i + i * sum (fun x => x) inverses
  end.

(** Lemma 3's absolute error, in units of [2^-K]: [h] digits of [d] are high. *)
Definition units : R :=
  let ds := first pl :: rest pl in
  let d := INR (length ds) in
  let h := INR (length (filter (fun d => negb (is_low d)) ds)) in
  h * d * (d + 5) / 2 + 1.

Record certified (g delta : R) (inverses : list R) : Prop := {
  widths : (3 <= w < word_bits pl)%Z;
  value_width : (0 < value_bits pl <= word_bits pl)%Z;
  outputs : (1 <= range pl < 2 ^ value_bits pl)%Z;
  digits_formed : Forall well_formed (first pl :: rest pl);
  several_values : (1 <= radix)%Z;
  first_near : near (first pl) (first_target g);
  slot : IZR (nth 0 (values w (first pl)) 0%Z) = g * IZR (2 ^ bits w (first pl));
  rest_layout : layout radix (rest pl);
  no_overflow : ((if alone then count (first pl) else censored) <= 2 ^ word_bits pl)%Z;
  reach : (range pl <= censored)%Z \/ a_to censored * IZR (2 ^ (bits w (top pl) + 2)) <= 1;
  sampled_positive : 0 < sampled;
  first_covered :
    covers (first pl) (hd 0 inverses)
      ((1 - g) * (1 - p_zero) * (1 - target false 1 radix (radix - 1)) / 2);
  rest_covered : cover radix (rest pl) (tl inverses);
  one_each : length inverses = S (length (rest pl));
  low_total : 4 * sum (fun x => x) (lows (first pl :: rest pl) inverses) <= IZR (2 ^ w);
  low_delta : pairs (lows (first pl :: rest pl) inverses) <= delta * IZR (2 ^ (2 * w));
  slack : 3 * delta <= rate - sampled;
  delta_small : delta <= 1 / 4;
  floor_large : units / IZR (2 ^ bits w (top pl))
    <= g / IZR (2 ^ value_bits pl) * ((exp rate - 1) / (exp rate + 1)) }.
End Certificate.

(** * The theorems *)

Definition purely_private : Prop := forall pl rate sampled g delta inverses,
  certified pl rate sampled g delta inverses ->
  forall x x' y, (0 <= x <= range pl)%Z -> (0 <= x' <= range pl)%Z ->
  prob pl y x <= exp (rate * IZR (Z.abs (x - x'))) * prob pl y x'.

Definition release_purely_private : Prop := forall pl rate sampled g delta inverses,
  certified pl rate sampled g delta inverses ->
  forall lower xs xs' ys, length xs = length xs' ->
  release_prob pl lower ys xs
  <= exp (rate * IZR (distance xs xs')) * release_prob pl lower ys xs'.
