//! The draw of `docs/proofs.md`, section 1, in big integers.

use crate::Seen;
use crate::source::Source;
use geomdp_core::Error;
use geomdp_core::kernel::LANES;
use geomdp_core::plan::{Digit, Plan};
use geomdp_core::tape::Words;
use num_bigint::{BigInt, BigUint};

/// A plan and its thresholds as integers.
pub struct Model<'a> {
    plan: &'a Plan,
    thresholds: Vec<Vec<BigUint>>,
}

enum Noise {
    Add(BigInt),
    /// The floor's slot: an output that does not depend on the count.
    Replace(BigUint),
}

impl<'a> Model<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let thresholds = |digit: &Digit| digit.thresholds(plan.limb_bits());
        Self {
            plan,
            thresholds: plan.digits().iter().map(thresholds).collect(),
        }
    }

    /// The noisy count for one draw's words, with outputs from `least` to `least + plan.range()`.
    pub fn noisy(&self, words: &[u64], least: i128, count: i128, seen: &mut Seen) -> i128 {
        let range = self.plan.range();
        let (lower, upper) = (BigInt::from(least), BigInt::from(least) + range);
        let x = BigInt::from(count).clamp(lower.clone(), upper.clone());
        let y = match self.noise(words, seen) {
            Noise::Replace(value) => lower + BigInt::from(value.min(range.into())),
            Noise::Add(z) => (x + z).clamp(lower, upper),
        };
        i128::try_from(y).expect("it is within the bounds")
    }

    fn noise(&self, words: &[u64], seen: &mut Seen) -> Noise {
        let plan = self.plan;
        assert_eq!(words.len(), plan.words());
        if plan.digits().is_empty() {
            return Noise::Add(BigInt::ZERO);
        }
        let w = plan.limb_bits();
        let shared = words[0];
        let mut rest = &words[1..];
        // The sum of the digits' values times their weights.
        let mut magnitude = BigInt::ZERO;
        let mut falls = plan.is_two_sided() && shared & 1 == 1;
        for (j, digit) in plan.digits().iter().enumerate() {
            let (own, others) = rest.split_at(digit.limbs());
            rest = others;
            let own = own
                .iter()
                .fold(BigUint::ZERO, |u, &word| (u << w) + (word >> (64 - w)));
            let uniform = (own << w) + (shared >> (64 - w));
            let thresholds = &self.thresholds[j];
            let reached = thresholds.iter().filter(|&t| *t <= uniform).count();
            if thresholds.contains(&uniform) {
                seen.add("a word at a threshold");
            }
            let mut value = reached;
            if j == 0 {
                if reached == 0 {
                    if w == 63 {
                        seen.add(format!("the floor's slot, of {} words", digit.limbs()));
                    }
                    // The word after those of digit 0, whichever digit it belongs to.
                    let bits = plan.floor_value_bits();
                    return Noise::Replace(BigUint::from(rest[0]) % (BigUint::from(1u32) << bits));
                }
                // Two-sided noise has one more outcome than values: zero, with either sign.
                if plan.is_two_sided() {
                    let radix = thresholds.len() - 1;
                    if reached > radix {
                        seen.add("zero");
                        (value, falls) = (0, false);
                    } else if !falls && plan.digits().len() > 1 {
                        value %= radix;
                    }
                }
            }
            let is_top = j + 1 == plan.digits().len();
            if is_top && j > 0 && reached == thresholds.len() {
                seen.add("the top digit's last value");
                magnitude = BigInt::from(1) << 128;
            } else {
                magnitude += BigInt::from(digit.weight()) * value;
            }
        }
        seen.add(if falls { "downwards" } else { "upwards" });
        Noise::Add(if falls { -magnitude } else { magnitude })
    }

    /// One draw's words. Own words and shared word are often parts of thresholds or one off them,
    /// so that the floor's slot and ties occur.
    pub fn words(&self, source: &mut Source<'_>) -> Vec<u64> {
        let plan = self.plan;
        let w = plan.limb_bits();
        let mut words: Vec<u64> = (0..plan.words()).map(|_| source.word()).collect();
        if words.is_empty() {
            return words;
        }
        // Writes a limb into a word and keeps the word's other bits.
        let mut put = |at: usize, limb: u64| {
            let low = words[at] & (u64::MAX.checked_shr(w).unwrap_or(0));
            words[at] = low | limb << (64 - w);
        };
        let mask = (1u64 << w) - 1;
        if source.below(4) > 0 {
            let mut digit = &self.thresholds[source.below(self.thresholds.len() as u64) as usize];
            if digit.is_empty() {
                // Digit 0 always has thresholds.
                digit = &self.thresholds[0];
            }
            let tie = &digit[source.below(digit.len() as u64) as usize];
            let tie = tie.iter_u64_digits().next().unwrap_or(0);
            put(0, near(source, tie) & mask);
        }
        let mut at = 1;
        for (digit, thresholds) in plan.digits().iter().zip(&self.thresholds) {
            let n = digit.limbs() as u64;
            match source.below(4) {
                0 => {}
                // A digit of one value has no thresholds.
                choice if choice == 1 || thresholds.is_empty() => {
                    (0..digit.limbs()).for_each(|i| put(at + i, source.pick(&[0, 1, mask])));
                }
                _ => {
                    // The first threshold of digit 0 is the floor's.
                    let which = source.below(4) * source.below(thresholds.len() as u64);
                    let own = &thresholds[which as usize % thresholds.len()] >> w;
                    let one = BigUint::from(1u32);
                    let own = match source.below(3) {
                        0 if own >= one => own - one,
                        1 => own + one,
                        _ => own,
                    };
                    for i in 0..n {
                        let part = &own >> (u64::from(w) * (n - 1 - i));
                        let part = part.iter_u64_digits().next().unwrap_or(0) & mask;
                        put(at + i as usize, part);
                    }
                }
            }
            at += digit.limbs();
        }
        words
    }
}

/// Returns a number or one of its neighbours.
fn near(source: &mut Source<'_>, x: u64) -> u64 {
    x.wrapping_add(source.below(3)).wrapping_sub(1)
}

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

/// Supplies these words and no more.
pub struct Replay<'a>(pub &'a [u64]);

impl Words for Replay<'_> {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        if words.len() > self.0.len() {
            return Err(Error::Entropy("no words are left".into()));
        }
        let (now, later) = self.0.split_at(words.len());
        words.copy_from_slice(now);
        self.0 = later;
        Ok(())
    }
}
