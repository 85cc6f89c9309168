//! Runs the targets on inputs from a simple generator and checks that they reach the intended
//! cases. These tests have no coverage feedback, but also run where libFuzzer does not.

use geomdp_fuzz::{Seen, coins, fold, groups, kernel, plan};

/// Inputs of fewer than 200 bytes.
fn inputs(n: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 1u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n).map(move |_| (0..next() % 200).map(|_| (next() >> 32) as u8).collect())
}

fn reaches(run: fn(&[u8], &mut Seen), n: u64, wanted: &[&str]) {
    let mut seen = Seen::default();
    inputs(n).for_each(|data| run(&data, &mut seen));
    println!("{n} inputs\n{seen}");
    for case in wanted {
        assert!(seen.count(case) >= 10, "{case}: {}", seen.count(case));
    }
}

#[test]
fn plans() {
    reaches(
        plan::run,
        10_000,
        &[
            "digits of 1 words",
            "digits of 2 words",
            "digits of 3 words",
            "digits of 1 and of 2 words",
            "digits of 1 and of 3 words",
            "digits of 2 and of 3 words",
            "1 digits",
            "5 or more digits",
            "reduced widths",
            "one-sided",
            "a top digit cut off by mass",
            "an exact distribution",
            "uncertifiable",
            "an epsilon",
            "a scale",
            "no rate",
            "bounds: reversed",
            "bounds: beyond all types",
            "bounds: beyond the type",
            "bounds: none for an unsigned type",
            "a plan of a mechanism",
        ],
    );
}

#[test]
fn kernels() {
    reaches(
        kernel::run,
        5000,
        &[
            "i8",
            "i16",
            "i32",
            "i64",
            "u8",
            "u16",
            "u32",
            "u64",
            "own words by digit: []",
            "own words by digit: [1]",
            "own words by digit: [2]",
            "own words by digit: [3]",
            "4 to 7 digits",
            "8 or more digits",
            "low digits and high ones",
            "one-sided",
            "reduced widths",
            "a word at a threshold",
            "the floor's slot, of 1 words",
            "the floor's slot, of 2 words",
            "the floor's slot, of 3 words",
            "zero",
            "the top digit's last value",
            "downwards",
            "upwards",
            "Portable",
        ],
    );
}

#[test]
fn folds() {
    reaches(
        fold::run,
        2000,
        &[
            "i8",
            "u64",
            "a half-integer lower bound",
            "a half-integer upper bound",
            "an output at the bound",
            "bounds",
            "bounds too far apart",
            "bounds beyond the type",
            "scale",
            "the floor's slot, of 1 words",
        ],
    );
}

#[test]
fn bits() {
    reaches(
        coins::run,
        5000,
        &[
            "words of a bit: 1",
            "words of a bit: 2",
            "words of a bit: 3 to 17",
            "heads",
            "tails",
            "not a probability",
            "an empty range",
            "a rate that is too small",
            "a success",
            "no success",
            "no noise",
        ],
    );
}

#[test]
fn groups_and_points() {
    reaches(
        groups::run,
        5000,
        &[
            "shown",
            "hidden",
            "more blocks than are always drawn",
            "points",
            "no point",
            "refused: stop",
            "refused: fall",
            "refused: block",
            "refused: blocks",
            "refused: mean",
            "refused: threshold",
        ],
    );
}
