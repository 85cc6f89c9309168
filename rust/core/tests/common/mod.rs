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
    let mut saturated = false;
    let (mut floor, mut zero) = (false, false);
    for (j, digit) in plan.digits().iter().enumerate() {
        let own = &tape[at..at + digit.limbs()];
        let uniform = own
            .iter()
            .chain([&tape[0]])
            .fold(BigUint::ZERO, |sum, &word| (sum << w) + limb(word));
        let thresholds = digit.thresholds(w);
        let mut reached = thresholds.iter().filter(|&t| *t <= uniform).count();
        let mut values = thresholds.len();
        if j == 0 {
            (floor, zero) = (reached == 0, reached == 1);
            reached = reached.saturating_sub(2);
            values -= 2;
        }
        noise += BigUint::from(reached) * digit.weight();
        saturated = reached == values;
        at += digit.limbs();
    }
    if floor {
        let k = plan.floor_value_bits();
        let word = u128::from(tape[1 + first.limbs()]);
        return (word % (1u128 << k)).min(plan.range().into()) as u64;
    }
    let magnitude = match (zero, saturated) {
        (true, _) => BigUint::ZERO,
        (false, true) => BigUint::from(1u32) << 100,
        (false, false) => noise + 1u32,
    };
    if plan.is_two_sided() && tape[0] & 1 == 1 {
        let left = BigUint::from(offset);
        if magnitude > left {
            0
        } else {
            (left - magnitude).try_into().unwrap()
        }
    } else {
        (BigUint::from(offset) + magnitude)
            .min(plan.range().into())
            .try_into()
            .unwrap()
    }
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
