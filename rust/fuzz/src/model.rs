//! Tapes that meet thresholds, for the model of the draw.

use crate::source::Source;
pub use draw::{Model, blocks};
use geomdp_core::Error;
use geomdp_core::tape::Words;
use num_bigint::BigUint;

#[path = "../../core/tests/common/model.rs"]
mod draw;

/// One draw's words. Own words and shared word are often parts of thresholds or one off them,
/// so that the floor's slot and ties occur.
pub fn words(model: &Model<'_>, source: &mut Source<'_>) -> Vec<u64> {
    let Model { plan, thresholds } = model;
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
        let mut digit = &thresholds[source.below(thresholds.len() as u64) as usize];
        if digit.is_empty() {
            // Digit 0 always has thresholds.
            digit = &thresholds[0];
        }
        let tie = &digit[source.below(digit.len() as u64) as usize];
        let tie = tie.iter_u64_digits().next().unwrap_or(0);
        put(0, near(source, tie) & mask);
    }
    let mut at = 1;
    for (digit, thresholds) in plan.digits().iter().zip(thresholds) {
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

/// Returns a number or one of its neighbours.
fn near(source: &mut Source<'_>, x: u64) -> u64 {
    x.wrapping_add(source.below(3)).wrapping_sub(1)
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
