//! The numbers that show a plan's sampled distribution private.

use crate::params::dyadic::{Dyadic, Round, to_f64};
use crate::params::rate::Rate;
use num_bigint::BigUint;

/// The numbers that the conditions of privacy at the nominal rate are about, besides those of the
/// plan (docs/proofs.md, theorem 2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The requested rate, which the privacy map promises.
    pub nominal: Rate,
    /// The rate that the thresholds were computed from; at most the nominal one.
    pub sampled: Rate,
    /// Absolute error of an output's probability.
    pub eta: Dyadic,
    /// Relative error of an output's probability.
    pub delta: Dyadic,
    /// Mass of the uniform floor.
    pub floor: Dyadic,
    /// A lower bound of `tanh(rate / 2)`.
    pub tanh: Dyadic,
}

impl Certificate {
    /// An upper bound, rounded up, on the total variation distance between the sampled distribution
    /// and the nominal one (docs/proofs.md, theorem 3): `3/2 g + delta + (nominal - sampled) /
    /// nominal`.
    #[must_use]
    pub fn total_variation(&self) -> f64 {
        let common =
            (self.sampled.den() * self.nominal.num()) << (self.floor.bits + self.delta.bits + 1);
        let floor = (&self.floor.value * 3u32) << self.delta.bits;
        let delta = &self.delta.value << (self.floor.bits + 1);
        let full = self.sampled.den() * self.nominal.num();
        let short = &full - self.sampled.num() * self.nominal.den();
        let sum = (floor + delta) * &full + (short << (self.floor.bits + self.delta.bits + 1));
        to_f64(&sum, &common, Round::Up)
    }

    /// Whether the errors are as small as the joint loss of many releases takes them to be:
    /// `3 delta <= 2^-54 min(1, nominal)` and a floor of at most `2^-52` (docs/proofs.md, lemma 14).
    pub(super) fn is_small(&self) -> bool {
        let triple = (&self.delta.value * 3u32) << 54;
        let unit = BigUint::from(1u32) << self.delta.bits;
        triple <= unit
            && triple * self.nominal.den() <= unit * self.nominal.num()
            && &self.floor.value << 52 <= BigUint::from(1u32) << self.floor.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::plan::tests::rate;

    /// The bound of theorem 3, for certificates whose numbers can be summed by hand.
    #[test]
    fn total_variation_is_rounded_up() {
        let plan = Plan::two_sided(&rate(1, 3), 10).unwrap();
        let with = |nominal, sampled, floor: (u32, u64), delta: (u32, u64)| Certificate {
            nominal,
            sampled,
            floor: Dyadic::new(floor.0, floor.1),
            delta: Dyadic::new(delta.0, delta.1),
            ..plan.certificate().unwrap().clone()
        };
        let ratio = |num: u32, den: u32| Rate::from_ratio(num.into(), den.into()).unwrap();
        // 3/2 * 1/16 + 1/256 + (1/2 - 3/8) / (1/2)
        let sum = with(ratio(1, 2), ratio(3, 8), (1, 4), (1, 8)).total_variation();
        assert_eq!(sum, 89.0 / 256.0);
        // 3/2 * 3/128 + 5/512 + (3/5 - 4/7) / (3/5)
        let sum = with(ratio(3, 5), ratio(4, 7), (3, 7), (5, 9)).total_variation();
        let expected = to_f64(&995u32.into(), &10752u32.into(), Round::Up);
        assert_eq!(sum, expected);
        assert_eq!(
            with(ratio(1, 2), ratio(1, 2), (0, 4), (0, 8)).total_variation(),
            0.0
        );
    }
}
