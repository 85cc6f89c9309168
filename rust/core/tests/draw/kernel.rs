//! The kernel at full width against the slow model: at every threshold, for every integer type, and
//! on every back end. `split.rs` has all ways to split the work.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic
)]

use crate::model::{Model, blocks};
use geomdp_core::plan::{Plan, Widths, tiers};
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Backend, Count, Kernel, LANES, Mechanism, Rate};
use num_bigint::BigUint;
use proptest::prelude::*;
use std::sync::LazyLock;

/// Plans with one to three limbs and with low and high digits.
static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| {
    let mut plans = Vec::new();
    for log_rate in [-64, -40, -20, -10, -3, -1, 0, 1, 3, 6, 9] {
        for range in [
            0,
            1,
            2,
            5,
            100,
            255,
            1_000_000,
            u32::MAX.into(),
            i64::MAX as u64,
            u64::MAX,
        ] {
            let rate = Rate::from_epsilon(2f64.powi(log_rate) * 0.7, 1).unwrap();
            plans.push(Plan::two_sided(&rate, range).unwrap());
        }
    }
    for prob in [0.0, 5e-324, 1e-9, 0.01, 0.5, 0.999, 1.0] {
        for trials in [1, 2, 1000, i64::MAX as u64, u64::MAX] {
            plans.push(Plan::geometric(prob, trials).unwrap());
        }
    }
    for (limbs, limb_bits, radix_bits) in [
        (1, 6, &[1, 1][..]),
        (1, 20, &[]),
        (2, 6, &[1, 1]),
        (2, 31, &[1]),
        (3, 5, &[1, 1]),
    ] {
        let widths = Widths {
            limb_bits,
            slack_bits: 1,
            limbs,
        };
        let rate = Rate::from_scale(7.0).unwrap();
        plans.extend(Plan::reduced(&rate, 20, &widths, radix_bits).unwrap());
    }
    plans.push(Plan::noiseless(1000));
    // Steps between tiers, with keep numbers of one to three words.
    for (fine, coarse) in [(1.0, 0.1), (2.0, 0.01), (1e-12, 1e-14), (30.0, 0.5)] {
        for range in [1, 2, 100, u64::MAX] {
            let rates = [fine, coarse].map(|rate| Rate::from_epsilon(rate, 1).unwrap());
            let [_, step] = <[_; 2]>::try_from(tiers::plans(&rates, range).unwrap()).unwrap();
            plans.push(step.plan);
        }
    }
    plans
});

fn interesting_offsets(range: u64) -> Vec<u64> {
    let mut offsets = vec![0, 1, 2, range / 2, range - range.min(1), range];
    offsets.retain(|&offset| offset <= range);
    offsets
}

fn check(plan: &Plan, tapes: &[Vec<u64>]) {
    let (model, words) = (Model::new(plan), blocks(plan, tapes));
    for offset in interesting_offsets(plan.range()) {
        let noisy = |tape: &Vec<u64>| model.noisy(tape, offset, |_| ());
        let expected: Vec<_> = tapes.iter().map(noisy).collect();
        for backend in Backend::available() {
            let mut noisy = vec![offset; tapes.len()];
            Kernel::on(backend, plan.clone()).add_noise(0u64, &words, &mut noisy);
            assert_eq!(noisy, expected, "{backend:?}, offset {offset}, {plan:?}");
        }
    }
}

#[test]
fn plans_cover_all_limb_counts() {
    let mut seen = std::collections::BTreeSet::new();
    for plan in &*PLANS {
        let limbs: Vec<_> = plan.digits().iter().map(|digit| digit.limbs()).collect();
        seen.extend(limbs.iter().copied());
        assert!(limbs.iter().max() == limbs.last());
        for digit in plan.digits() {
            let thresholds = digit.thresholds(plan.limb_bits());
            assert!(thresholds.is_sorted(), "{plan:?}");
            let places = u64::from(plan.limb_bits()) * (digit.limbs() as u64 + 1);
            assert!(thresholds.iter().all(|t| t.bits() <= places));
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn just_below_at_and_above_every_threshold() {
    for plan in &*PLANS {
        let w = plan.limb_bits();
        let mut tapes = Vec::new();
        let mut at = 1;
        for digit in plan.digits() {
            for threshold in digit.thresholds(w) {
                let largest =
                    (BigUint::from(1u32) << (u64::from(w) * (digit.limbs() as u64 + 1))) - 1u32;
                for uniform in [
                    (threshold.bits() > 0).then(|| &threshold - 1u32),
                    Some(threshold.clone()),
                    Some(&threshold + 1u32).filter(|uniform| uniform <= &largest),
                ]
                .into_iter()
                .flatten()
                {
                    // The other digits' words at both extremes, with both signs.
                    for (rest, sign) in [(0, 0), (0, 1), (u64::MAX, 0), (u64::MAX, 1)] {
                        let mut tape = vec![rest; plan.words()];
                        let mask = (1u64 << w) - 1;
                        let limb = |i: usize| {
                            let part =
                                (&uniform >> (u64::from(w) * i as u64)) & BigUint::from(mask);
                            u64::try_from(part).unwrap() << (64 - w)
                        };
                        tape[0] = limb(0) | sign;
                        for i in 0..digit.limbs() {
                            tape[at + i] = limb(digit.limbs() - i) | (rest & 1);
                        }
                        tapes.push(tape);
                    }
                }
            }
            at += digit.limbs();
        }
        check(plan, &tapes);
    }
}

/// A step keeps a value if the keep number is below its limit, unless the draw is in the slot.
#[test]
fn just_below_at_and_above_every_keep_limit() {
    let mut seen = std::collections::BTreeSet::new();
    for plan in &*PLANS {
        let Some((limits, limbs)) = plan.keeps() else {
            continue;
        };
        seen.insert(limbs);
        let own = plan.words() - limbs;
        let mut tapes = Vec::new();
        for number in limits.iter().flat_map(|limit| {
            let below = (limit.bits() > 0).then(|| limit - 1u32);
            [below, Some(limit.clone()), Some(limit + 1u32)]
        }) {
            let Some(number) = number else { continue };
            if number.bits() > 63 * limbs as u64 {
                continue;
            }
            // All zeros are in the floor's slot.
            for (rest, low) in [(0, 0), (0, 1), (u64::MAX / 3, 0), (u64::MAX, 1)] {
                let mut tape = vec![rest; plan.words()];
                for (i, word) in tape[own..].iter_mut().rev().enumerate() {
                    let limb = (&number >> (63 * i)) & BigUint::from(u64::MAX >> 1);
                    *word = u64::try_from(limb).unwrap() << 1 | low;
                }
                tapes.push(tape);
            }
        }
        check(plan, &tapes);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

/// Checks a mechanism at the limits of the integer type and at its bounds, against 128-bit
/// arithmetic. Unsigned types always have bounds.
fn check_type<T: Count + TryFrom<i128> + PartialEq + std::fmt::Debug>(
    rate: &Rate,
    key: &[u8; 32],
    bounds: Option<(i128, i128)>,
) where
    <T as TryFrom<i128>>::Error: std::fmt::Debug,
{
    let (low, high) = bounds.unwrap_or((T::MIN, T::MAX));
    let bounds = bounds.or((T::MIN == 0).then_some((low, high)));
    let mechanism = Mechanism::new(Some(rate.clone()), bounds).unwrap();
    let (kernel, lower) = mechanism.kernel_for::<T>().unwrap();
    let plan = kernel.plan();
    let model = Model::new(plan);
    let counts: Vec<T> = [
        T::MIN,
        T::MIN + 1,
        -1,
        0,
        1,
        low,
        low + 1,
        high - 1,
        high,
        T::MAX - 1,
        T::MAX,
    ]
    .into_iter()
    .filter_map(|x| T::try_from(x).ok())
    .cycle()
    .take(11 * 9)
    .collect();
    let mut words = vec![0; counts.len().div_ceil(LANES) * plan.words() * LANES];
    Tape::from_key(key).fill(&mut words).unwrap();
    let expected: Vec<T> = counts
        .iter()
        .enumerate()
        .map(|(i, &count)| {
            let tape: Vec<u64> = (0..plan.words())
                .map(|j| words[(i / LANES * plan.words() + j) * LANES + i % LANES])
                .collect();
            let offset = (count.into().clamp(low, high) - low) as u64;
            T::try_from(i128::from(model.noisy(&tape, offset, |_| ())) + low).unwrap()
        })
        .collect();
    for backend in Backend::available() {
        let mut noisy = counts.clone();
        Kernel::on(backend, plan.clone()).add_noise(lower, &words, &mut noisy);
        assert_eq!(noisy, expected, "{backend:?}");
    }
    let mut noisy = counts.clone();
    mechanism
        .release_with(&mut Tape::from_key(key), &mut noisy)
        .unwrap();
    assert_eq!(noisy, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_with_the_model(seed: [u8; 32], which in 0..1000usize) {
        let plan = &PLANS[which % PLANS.len()];
        let mut tapes = vec![vec![0; plan.words()]; 50];
        let mut tape = Tape::from_key(&seed);
        for draw in &mut tapes {
            tape.fill(draw).unwrap();
        }
        check(plan, &tapes);
    }

    #[test]
    fn every_type_at_its_edges(key: [u8; 32], log_rate in -30i32..8, narrow: bool) {
        let rate = Rate::from_epsilon(2f64.powi(log_rate), 1).unwrap();
        let bounds = narrow.then_some((3, 100));
        check_type::<i8>(&rate, &key, bounds);
        check_type::<i16>(&rate, &key, bounds);
        check_type::<i32>(&rate, &key, bounds);
        check_type::<i64>(&rate, &key, bounds);
        check_type::<u8>(&rate, &key, bounds);
        check_type::<u16>(&rate, &key, bounds);
        check_type::<u32>(&rate, &key, bounds);
        check_type::<u64>(&rate, &key, bounds);
    }
}
