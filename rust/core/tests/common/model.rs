//! The draw of `docs/proofs.md`, section 1, in big integers. The fuzzing targets use it too.

use geomdp_core::LANES;
use geomdp_core::plan::{Digit, Plan};
use num_bigint::BigUint;

/// A plan and its thresholds as integers.
pub struct Model<'a> {
    pub plan: &'a Plan,
    pub thresholds: Vec<Vec<BigUint>>,
}

impl<'a> Model<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let thresholds = |digit: &Digit| digit.thresholds(plan.limb_bits());
        Self {
            plan,
            thresholds: plan.digits().iter().map(thresholds).collect(),
        }
    }

    /// The noisy offset for one draw's words. Calls `seen` with the cases that it meets.
    pub fn noisy(&self, words: &[u64], offset: u64, mut seen: impl FnMut(&str)) -> u64 {
        let plan = self.plan;
        assert_eq!(words.len(), plan.words());
        // The keep number of a step between tiers comes last.
        let keep = plan.keeps().map_or(0, |(_, limbs)| limbs);
        let (words, keep) = words.split_at(words.len() - keep);
        let keeps = plan.keeps().is_some_and(|(limits, _)| {
            let number = keep.iter().fold(BigUint::ZERO, |u, &word| {
                (u << plan.limb_bits()) + (word >> (64 - plan.limb_bits()))
            });
            number < limits[usize::from(offset == 0 || offset == plan.range())]
        });
        let Some((&shared, mut rest)) = words.split_first() else {
            return offset;
        };
        let w = plan.limb_bits();
        // The sum of the digits' values times their weights.
        let mut magnitude = BigUint::ZERO;
        let mut falls = plan.is_two_sided() && shared & 1 == 1;
        for (j, digit) in plan.digits().iter().enumerate() {
            let (own, others) = rest.split_at(digit.limbs());
            rest = others;
            let uniform = own
                .iter()
                .chain([&shared])
                .fold(BigUint::ZERO, |u, &word| (u << w) + (word >> (64 - w)));
            let thresholds = &self.thresholds[j];
            let reached = thresholds.iter().filter(|&t| *t <= uniform).count();
            if thresholds.contains(&uniform) {
                seen("a word at a threshold");
            }
            let mut value = reached;
            if j == 0 {
                if reached == 0 {
                    if w == 63 {
                        seen(&format!("the floor's slot, of {} words", digit.limbs()));
                    }
                    // The word after those of digit 0, whichever digit it belongs to.
                    let value = u128::from(rest[0]) % (1 << plan.floor_value_bits());
                    return u64::try_from(value).map_or(plan.range(), |x| x.min(plan.range()));
                }
                // Two-sided noise has one more outcome than values: zero, with either sign.
                if plan.is_two_sided() {
                    let radix = thresholds.len() - 1;
                    if reached > radix {
                        seen("zero");
                        (value, falls) = (0, false);
                    } else if !falls && plan.digits().len() > 1 {
                        value %= radix;
                    }
                }
            }
            let is_top = j + 1 == plan.digits().len();
            if is_top && j > 0 && reached == thresholds.len() {
                seen("the top digit's last value");
                magnitude = BigUint::from(1u32) << 128;
            } else {
                magnitude += BigUint::from(digit.weight()) * value;
            }
        }
        if keeps {
            seen("kept");
            return offset;
        }
        seen(if falls { "downwards" } else { "upwards" });
        let room = if falls { offset } else { plan.range() - offset };
        let moved = u64::try_from(magnitude).map_or(room, |magnitude| magnitude.min(room));
        if falls {
            offset - moved
        } else {
            offset + moved
        }
    }
}

#[allow(dead_code, reason = "not every test has several draws")]
/// Tape words for draws, arranged in blocks as the crate reads them.
pub fn blocks(plan: &Plan, draws: &[Vec<u64>]) -> Vec<u64> {
    let mut tape = Vec::new();
    for block in draws.chunks(LANES) {
        for j in 0..plan.words() {
            // The words in unused lanes must not matter.
            tape.extend((0..LANES).map(|lane| block.get(lane).map_or(!0, |words| words[j])));
        }
    }
    tape
}
