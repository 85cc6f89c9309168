(** The checker in OCaml, on GMP's integers. *)
From Coq Require Import ExtrOcamlZBigInt.
From Geomdp Require Import Checker.
Extraction "checker.ml" check check_small.
