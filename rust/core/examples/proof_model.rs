//! Prints a file for Coq that compares the draw of `proofs/Statement.v` with the compiled kernel on
//! all back ends: at every threshold, one off it, at the edges of the range, and on arbitrary words.
#![allow(clippy::unwrap_used)]

use geomdp_core::plan::{Digit, Plan};
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Backend, Kernel, LANES, Rate};
use num_bigint::BigUint;

const HEADER: &str = "From Coq Require Import Uint63.
From Geomdp Require Import Statement.
Open Scope Z_scope.
Inductive words := E | W (high low : int) (rest : words).
Fixpoint list_of (t : words) : list Z :=
  match t with
  | E => nil
  | W high low rest => to_Z high * 2 ^ 32 + to_Z low :: list_of rest
  end.
Inductive case := C (t : words) (x y : Z).
Definition agrees (p : plan) (c : case) : bool :=
  let (t, x, y) := c in draw p (list_of t) x =? y.";

/// The limbs of a number, most significant first.
fn limbs(number: &BigUint, digit: &Digit, bits: u32) -> Vec<u64> {
    let mask = (BigUint::from(1u32) << bits) - 1u32;
    let limb = |i: usize| u64::try_from((number >> (bits as usize * i)) & &mask).unwrap();
    (0..=digit.limbs()).rev().map(limb).collect()
}

fn coq_digit(digit: &Digit, bits: u32) -> String {
    let thresholds = digit.thresholds(bits);
    let rows: Vec<_> = thresholds
        .iter()
        .map(|t| format!("{:?}", limbs(t, digit, bits)))
        .collect();
    let list = rows.join("; ").replace(',', ";");
    format!(
        "(Digit {} {} [{list}])",
        digit.weight().trailing_zeros(),
        digit.limbs()
    )
}

/// A tape as halves of words: Coq reads those natively, and large numbers of `Z` slowly.
fn coq_words(tape: &[u64]) -> String {
    let halves = |word: &u64| format!("W {} {}", word >> 32, word & u64::from(u32::MAX));
    let words: Vec<_> = tape.iter().map(halves).collect();
    format!("({} E{}", words.join(" ("), ")".repeat(words.len()))
}

/// Tapes at every threshold and one off it, with both signs, and arbitrary ones.
fn tapes(plan: &Plan) -> Vec<Vec<u64>> {
    let (bits, mut at, mut tapes) = (plan.limb_bits(), 1, Vec::new());
    let mut random = Tape::from_key(&[1; 32]);
    let mut arbitrary = || {
        let mut tape = vec![0; plan.words()];
        random.fill(&mut tape).unwrap();
        tape
    };
    for digit in plan.digits() {
        for threshold in digit.thresholds(bits) {
            for number in [&threshold - 1u32, threshold.clone(), &threshold + 1u32] {
                let limbs = limbs(&number, digit, bits);
                for sign in [0, 1] {
                    let mut tape = arbitrary();
                    tape[0] = limbs[digit.limbs()] << (64 - bits) | sign;
                    for (word, limb) in tape[at..].iter_mut().zip(&limbs[..digit.limbs()]) {
                        *word = limb << (64 - bits) | sign;
                    }
                    tapes.push(tape);
                }
            }
        }
        at += digit.limbs();
    }
    tapes.extend((0..100).map(|_| arbitrary()));
    tapes
}

fn main() {
    println!("{HEADER}");
    for (scale, range) in [
        (0.1, 1),
        (0.3, u64::MAX),
        (1.0, 10),
        (7.0, 1000),
        (1e3, 1_000_000),
        (1e9, u64::MAX),
        (1e20, 1000),
        (1e38, 1000),
    ] {
        let plan = Plan::two_sided(&Rate::from_scale(scale).unwrap(), range).unwrap();
        let kernels: Vec<_> = Backend::available()
            .map(|backend| Kernel::on(backend, plan.clone()))
            .collect();
        let bits = plan.limb_bits();
        let digits: Vec<_> = plan
            .digits()
            .iter()
            .map(|digit| coq_digit(digit, bits))
            .collect();
        let mut cases = Vec::new();
        for (i, tape) in tapes(&plan).into_iter().enumerate() {
            let x = [0, 1.min(range), range / 2, range - 1, range][i % 5];
            let mut words = vec![0; plan.words() * LANES];
            for (j, word) in tape.iter().enumerate() {
                words[j * LANES] = *word;
            }
            let tape = coq_words(&tape);
            let mut outputs: Vec<_> = kernels
                .iter()
                .map(|kernel| {
                    let mut noisy = [x];
                    kernel.add_noise(0, &words, &mut noisy);
                    noisy[0]
                })
                .collect();
            // Back ends that differ give cases of one tape, which cannot all agree with the draw.
            outputs.dedup();
            cases.extend(outputs.iter().map(|y| format!("C {tape} {x} {y}")));
        }
        let (first, rest) = digits.split_first().unwrap();
        println!(
            "Goal forallb (agrees (Plan 64 {bits} {range} {} {first} [{}]))\n  [{}] = true.",
            plan.floor_value_bits(),
            rest.join("; "),
            cases.join(";\n   ")
        );
        println!(
            "Proof. vm_compute. reflexivity. Qed.\n(* {} draws *)",
            cases.len()
        );
    }
}
