//! The constant-time bit sampler.
//!
//! A float64 probability is a dyadic number `m / 2^s`. The bit is 1 if a uniform integer of whole
//! words is below `m`, scaled to the same denominator. This is exact for every probability. The
//! number of words depends on the probability alone, and every word is read whatever the others
//! are.

use crate::Error;
use crate::draw::ct;
use crate::params::dyadic::decompose;

/// A random bit that is 1 with an exact probability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bernoulli {
    /// Most significant word first.
    threshold: Vec<u64>,
    /// 1 for probability 1, which no threshold can represent.
    certain: u64,
}

impl Bernoulli {
    /// The bit with this probability, converted exactly.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 <= prob <= 1`.
    pub fn new(prob: f64) -> Result<Self, Error> {
        let refuse = || Error::parameter("prob", prob, "a number from 0 to 1");
        if !(0.0..=1.0).contains(&prob) {
            return Err(refuse());
        }
        let (mantissa, exponent) = decompose(prob).ok_or_else(refuse)?;
        if mantissa == 0 || exponent == 0 {
            return Ok(Self {
                threshold: vec![0],
                certain: mantissa,
            });
        }
        // m * 2^(64 n - s) in n words; the mantissa may span the last two.
        let places = exponent.unsigned_abs();
        let words = places.div_ceil(64);
        let shifted = u128::from(mantissa) << (64 * words - places);
        let mut threshold = vec![0; words as usize];
        for (word, part) in threshold.iter_mut().rev().zip([shifted, shifted >> 64]) {
            *word = u64::try_from(part & u128::from(u64::MAX)).map_err(|_| refuse())?;
        }
        Ok(Self {
            threshold,
            certain: 0,
        })
    }

    /// The bit that is 1 if a number of as many words, the most significant first, is below these.
    pub(crate) fn with_threshold(threshold: Vec<u64>) -> Self {
        Self {
            threshold,
            certain: 0,
        }
    }

    /// Words of tape for one bit: 1 for ordinary probabilities, more for those with a bit below
    /// `2^-64`, and 17 for the smallest.
    #[must_use]
    pub fn words(&self) -> usize {
        self.threshold.len()
    }

    /// Draws the bit, 0 or 1, from the first [`Self::words`] of `words`.
    ///
    /// # Panics
    /// If there are fewer words.
    #[must_use]
    #[inline]
    pub fn draw(&self, words: &[u64]) -> u64 {
        let words = &words[..self.threshold.len()];
        let below = words
            .iter()
            .zip(&self.threshold)
            .rev()
            .fold(0, |below, (word, threshold)| {
                ct::borrow(*word, *threshold, below)
            });
        below | self.certain
    }

    /// Fills `bits` with independent draws, 0 or 1.
    ///
    /// # Errors
    /// Any error of the source.
    pub fn fill(
        &self,
        source: &mut impl crate::draw::tape::Words,
        bits: &mut [u8],
    ) -> Result<(), Error> {
        let per_part = (2048 / self.words()).max(1);
        let mut buffer = zeroize::Zeroizing::new(vec![0; per_part.min(bits.len()) * self.words()]);
        for part in bits.chunks_mut(per_part) {
            let words = &mut buffer[..part.len() * self.words()];
            source.fill(words)?;
            for (bit, words) in part.iter_mut().zip(words.chunks_exact(self.words())) {
                *bit = self.draw(words).to_le_bytes()[0];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn value(words: &[u64]) -> BigUint {
        words
            .iter()
            .fold(BigUint::ZERO, |sum, word| (sum << 64u32) + word)
    }

    /// The threshold over 2^(64 n) is exactly the probability.
    fn check_exact(prob: f64) {
        let bit = Bernoulli::new(prob).unwrap();
        let (num, den) = crate::params::rate::ratio(prob).unwrap();
        let scale = BigUint::from(1u32) << (64 * bit.words());
        let threshold = value(&bit.threshold) + &scale * bit.certain;
        assert_eq!(threshold * den, num * scale, "{prob}");
    }

    /// Words below the threshold give 1 and all others 0, checked at the boundary.
    fn check_boundary(prob: f64) {
        let bit = Bernoulli::new(prob).unwrap();
        let threshold = value(&bit.threshold);
        let words = |x: &BigUint| {
            let mut digits: Vec<u64> = x.iter_u64_digits().collect();
            digits.resize(bit.words(), 0);
            digits.reverse();
            digits
        };
        assert_eq!(bit.draw(&words(&threshold)), bit.certain);
        if threshold.bits() > 0 {
            assert_eq!(bit.draw(&words(&(&threshold - 1u32))), 1);
        }
    }

    #[test]
    fn ordinary_probabilities_take_one_word() {
        for prob in [
            0.0,
            1.0,
            0.5,
            0.1,
            0.9,
            0.3,
            1.0 - f64::EPSILON / 2.0,
            2f64.powi(-64),
        ] {
            assert_eq!(Bernoulli::new(prob).unwrap().words(), 1, "{prob}");
        }
        assert_eq!(Bernoulli::new(2f64.powi(-65)).unwrap().words(), 2);
        assert_eq!(Bernoulli::new(5e-324).unwrap().words(), 17);
    }

    #[test]
    fn probabilities_zero_and_one() {
        for word in [0, 1, u64::MAX / 2, u64::MAX] {
            assert_eq!(Bernoulli::new(0.0).unwrap().draw(&[word]), 0);
            assert_eq!(Bernoulli::new(-0.0).unwrap().draw(&[word]), 0);
            assert_eq!(Bernoulli::new(1.0).unwrap().draw(&[word]), 1);
        }
    }

    /// All numbers of bits up to more than two buffers, and all places to begin at.
    #[test]
    fn each_word_is_read_once_for_its_own_bit() {
        use crate::draw::tape::{Tape, Words};
        for size in [1, 2, 17] {
            let bit = Bernoulli {
                threshold: [&[1 << 63][..], &[7; 16][..size - 1]].concat(),
                certain: 0,
            };
            let most = 2 * (2048 / size) + 1;
            let mut words = vec![0; (most + 1) * size];
            Tape::from_key(&[3; 32]).fill(&mut words).unwrap();
            let expected: Vec<_> = (words.chunks_exact(size))
                .map(|words| bit.draw(words).to_le_bytes()[0])
                .collect();
            for len in 0..=most {
                let (mut tape, mut bits) = (Tape::from_key(&[3; 32]), vec![7; len]);
                bit.fill(&mut tape, &mut bits).unwrap();
                assert_eq!(bits, expected[..len]);
                let mut next = [0];
                tape.fill(&mut next).unwrap();
                assert_eq!(next, words[len * size..][..1]);
                let mut tape = Tape::at(&[3; 32], len, size).unwrap();
                let mut bits = vec![7; most - len];
                bit.fill(&mut tape, &mut bits).unwrap();
                assert_eq!(bits, expected[len..most]);
            }
        }
    }

    #[test]
    fn invalid_probability_is_an_error() {
        for prob in [
            -0.1,
            1.0 + f64::EPSILON,
            2.0,
            f64::NAN,
            f64::INFINITY,
            -5e-324,
        ] {
            assert!(Bernoulli::new(prob).is_err(), "{prob}");
        }
    }

    proptest! {
        #[test]
        fn exact_for_every_float(bits in 0u64..=1f64.to_bits()) {
            check_exact(f64::from_bits(bits));
            check_boundary(f64::from_bits(bits));
        }
    }
}
