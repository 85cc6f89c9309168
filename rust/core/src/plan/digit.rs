//! A digit of the noise, and its thresholds.

use super::MAX_LIMBS;
use num_bigint::BigUint;

/// A threshold's limbs, most significant limb first. Those that the digit does not need are zero.
pub(crate) type Threshold = [u64; MAX_LIMBS + 1];

/// One digit of the noise and the thresholds that cut the unit interval into its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digit {
    /// The digit's weight is `2^shift`.
    pub(crate) shift: u32,
    /// The digit's own words of tape. Thresholds have one limb more, which is compared with the
    /// shared word.
    pub(crate) limbs: usize,
    /// The thresholds, in ascending order.
    pub(crate) thresholds: Vec<Threshold>,
}

impl Digit {
    /// The digit's weight.
    #[must_use]
    pub fn weight(&self) -> u64 {
        1 << self.shift
    }

    /// The digit's own words of tape.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// The thresholds as integers of `limb_bits * (limbs + 1)` bits, in ascending order.
    #[must_use]
    pub fn thresholds(&self, limb_bits: u32) -> Vec<BigUint> {
        self.thresholds
            .iter()
            .map(|limbs| {
                limbs[..=self.limbs]
                    .iter()
                    .fold(BigUint::ZERO, |sum, limb| (sum << limb_bits) + limb)
            })
            .collect()
    }
}
