(** The hypotheses can hold, and [check] accepts a certificate: a plan of one digit for counts 0 and
    1, with words of 9 bits, at rate 7 / 10. *)
From Geomdp Require Import Checker.
Open Scope Z_scope.

Definition example : certificate := Certificate
  (Plan 9 8 1 1 (Digit 0 1 [[0; 24]; [85; 150]; [169; 235]]) []) (7, 10) (7, 10) 24 0.

Theorem example_checked : check example = true.
Proof. vm_compute. reflexivity. Qed.

(** One unit less for the floor is not enough. *)
Definition small_floor : certificate := Certificate
  (Plan 9 8 1 1 (Digit 0 1 [[0; 23]; [85; 150]; [169; 235]]) []) (7, 10) (7, 10) 23 0.

Theorem small_floor_refused : check small_floor = false.
Proof. vm_compute. reflexivity. Qed.
