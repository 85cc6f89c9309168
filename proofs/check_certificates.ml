(* Runs the extracted checker: prints [true] or [false] for each line of the input, a certificate in
   decimal integers, in the order of the fields of [certificate], [plan] and [digit] in the proof. A
   list has its length first; a digit's thresholds are [own + 1] limbs each. *)
open Checker

let rec nat n = if n = 0 then O else S (nat (n - 1))
let rec repeat n read = if n = 0 then [] else let x = read () in x :: repeat (n - 1) read

let certificate line =
  let left = ref (String.split_on_char ' ' line) in
  let integer () =
    match !left with
    | x :: others -> left := others; Big_int_Z.big_int_of_string x
    | [] -> failwith "a certificate is too short" in
  let small () = Big_int_Z.int_of_big_int (integer ()) in
  let fraction () = let num = integer () in let den = integer () in (num, den) in
  let digit () =
    let weight_bits = integer () in
    let own = small () in
    let count = small () in
    let thresholds = repeat count (fun () -> repeat (own + 1) integer) in
    { weight_bits; own = nat own; thresholds } in
  let word_bits = integer () in
  let limb_bits = integer () in
  let range = integer () in
  let value_bits = integer () in
  let first = digit () in
  let count = small () in
  let rest = repeat count digit in
  let nominal_rate = fraction () in
  let sampled_rate = fraction () in
  let floor_units = integer () in
  let delta_units = integer () in
  if !left <> [] then failwith "a certificate is too long";
  { plan_of = { word_bits; limb_bits; range; value_bits; first; rest };
    nominal_rate; sampled_rate; floor_units; delta_units }

let () =
  try
    while true do
      let read = certificate (read_line ()) in
      print_endline (string_of_bool (check read && check_small read))
    done
  with End_of_file -> ()
