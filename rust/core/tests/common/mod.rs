//! Shared by the integration tests: a slow, simple model of the draw.
#![allow(dead_code, clippy::unwrap_used, clippy::cast_possible_truncation)]

use geomdp_core::kernel::LANES;
use geomdp_core::plan::Plan;
use num_bigint::BigUint;

/// The draw of `docs/proofs.md`, step by step, in big integers. `tape[j]` is word `j` of this draw.
pub fn model(plan: &Plan, tape: &[u64], offset: u64) -> u64 {
    let Some((first, _)) = plan.digits().split_first() else {
        return offset;
    };
    let w = plan.limb_bits();
    let limb = |word: u64| BigUint::from(word >> (64 - w));
    let (mut at, mut noise) = (1, BigUint::ZERO);
    let (mut floor, mut falls, mut saturated) = (false, false, false);
    for (j, digit) in plan.digits().iter().enumerate() {
        let own = &tape[at..at + digit.limbs()];
        let uniform = own
            .iter()
            .chain([&tape[0]])
            .fold(BigUint::ZERO, |sum, &word| (sum << w) + limb(word));
        let thresholds = digit.thresholds(w);
        let mut value = thresholds.iter().filter(|&t| *t <= uniform).count();
        if j > 0 {
            saturated = value == thresholds.len();
        } else {
            floor = value == 0;
            let is_zero = plan.is_two_sided() && value == thresholds.len();
            falls = plan.is_two_sided() && !is_zero && tape[0] & 1 == 1;
            // One-sided noise is one more than a geometric; the other sign counts from zero.
            if is_zero {
                value = 0;
            } else if plan.is_two_sided() && !falls && plan.digits().len() > 1 {
                value %= thresholds.len() - 1;
            }
        }
        noise += BigUint::from(value) * digit.weight();
        at += digit.limbs();
    }
    if floor {
        let k = plan.floor_value_bits();
        let word = u128::from(tape[1 + first.limbs()]);
        return (word % (1u128 << k)).min(plan.range().into()) as u64;
    }
    if saturated {
        noise = BigUint::from(1u32) << 100;
    }
    let range = BigUint::from(plan.range());
    let noisy = if falls {
        BigUint::from(offset) - noise.min(offset.into())
    } else {
        (BigUint::from(offset) + noise).min(range)
    };
    noisy.try_into().unwrap()
}

/// Arranges the tapes of single draws in blocks, as the kernel reads them.
pub fn interleave(plan: &Plan, tapes: &[Vec<u64>]) -> Vec<u64> {
    let mut words = vec![0; tapes.len().div_ceil(LANES) * plan.words() * LANES];
    for (i, tape) in tapes.iter().enumerate() {
        for (j, &word) in tape.iter().enumerate() {
            words[(i / LANES * plan.words() + j) * LANES + i % LANES] = word;
        }
    }
    words
}
