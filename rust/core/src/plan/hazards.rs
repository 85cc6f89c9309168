//! The thresholds of the bits that count points on a domain: section 21 of `docs/proofs.md`.
//!
//! A number of points is Poisson, and right relative to each of its probabilities, however small
//! the mean: it is counted up by bits, and the one that decides between `k` points and more is 1
//! with the probability `P(K > k | K >= k)`.

use crate::Error;
use num_bigint::BigUint;
use num_integer::Integer;

/// A threshold is at least `2^PLACES`, so that rounding it down changes the probability by less
/// than `2^-PLACES` of itself.
const PLACES: u64 = 100;
/// Binary digits of the series beyond those of the threshold.
const GUARD: u64 = 128;
/// The most binary digits of a mean: more than any domain and threshold need.
const MOST_BITS: u64 = 1 << 14;

/// A mean number of points, at most 1: a part of the mean of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mean {
    num: BigUint,
    bits: u64,
}

impl Mean {
    /// The mean `num / 2^bits`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless it is positive and at most 1, and has at most 16384 digits.
    pub fn new(num: BigUint, bits: u64) -> Result<Self, Error> {
        if num.bits() == 0 || bits > MOST_BITS || num > BigUint::from(1u32) << bits {
            let accepted = format!("a number above 0 and at most 1 of at most {MOST_BITS} bits");
            return Err(Error::parameter(
                "mean",
                format!("{num} / 2^{bits}"),
                accepted,
            ));
        }
        Ok(Self { num, bits })
    }

    /// The words of the threshold of the bit after `k` points, the most significant first, over `2`
    /// to the power of their 64 bits each.
    ///
    /// With `t_i` the product of `mean / (k + 1)` to `mean / (k + i)`, the probability is `u / (1 +
    /// u)` for `u = t_1 + t_2 + ...`, since `P(K = k + i) / P(K = k) = t_i`.
    #[must_use]
    pub(crate) fn threshold(&self, k: u64) -> Vec<u64> {
        // The least number of words with mean / (k + 1) * 2^(64 words) >= 2^PLACES.
        let least = (BigUint::from(k) + 1u32) << (PLACES + self.bits);
        let mut words = 1;
        while &self.num << (64 * words) < least {
            words += 1;
        }
        let unit = BigUint::from(1u32) << (64 * words + GUARD);
        let (mut term, mut sum) = (unit.clone(), BigUint::ZERO);
        for i in 1u64.. {
            term = (term * &self.num) / ((BigUint::from(k) + i) << self.bits);
            if term.bits() == 0 {
                break;
            }
            sum += &term;
        }
        let threshold = (&sum << (64 * words)).div_floor(&(unit + &sum));
        let mut digits: Vec<u64> = threshold.iter_u64_digits().collect();
        assert!(digits.len() as u64 <= words, "a probability is below 1");
        digits.resize(usize::try_from(words).unwrap_or(usize::MAX), 0);
        digits.reverse();
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::rate::Rate;
    use num_bigint::BigUint;

    fn big(words: &[u64]) -> BigUint {
        words
            .iter()
            .fold(BigUint::ZERO, |sum, word| (sum << 64u32) + word)
    }

    /// P(K = k + 1) (k + 1) / (mean P(K = k)) lies within 1 +- 2^-97, which the proof asks for.
    #[test]
    fn ratios_of_numbers_of_points_are_those_of_poisson() {
        let means = [(1u32, 0u64), (3, 2), (1, 20), (3, 37), (1, 1100), (5, 1154)];
        for (num, bits) in means {
            let mean = Mean::new(num.into(), bits).unwrap();
            for k in 0..60u64 {
                let [here, next] = [k, k + 1].map(|k| {
                    let words = mean.threshold(k);
                    (big(&words), 64 * words.len() as u64)
                });
                let rest = |(part, bits): &(BigUint, u64)| (BigUint::from(1u32) << *bits) - part;
                // h_k (1 - h_{k+1}) (k + 1) 2^bits / ((1 - h_k) num), with common denominators.
                let above = (&here.0 * rest(&next) * (k + 1)) << bits;
                let below = (rest(&here) * num) << next.1;
                let off = if above > below {
                    &above - &below
                } else {
                    &below - &above
                };
                assert!(off << 97u32 < below, "{num} / 2^{bits}, {k}");
            }
        }
    }

    /// P(K = 0) = 1 - h_0 is exp(-mean), as the enclosure of the noise's decay has it.
    #[test]
    fn no_point_falls_with_the_probability_of_poisson() {
        for (num, bits) in [(1u32, 0u64), (3, 2), (1, 20)] {
            let words = Mean::new(num.into(), bits).unwrap().threshold(0);
            let rate = Rate::from_ratio(num.into(), BigUint::from(1u32) << bits).unwrap();
            let expected = (-crate::params::dyadic::to_f64(
                rate.num(),
                rate.den(),
                crate::params::dyadic::Round::Up,
            ))
            .exp_m1();
            let found = crate::params::dyadic::to_f64(
                &big(&words),
                &(BigUint::from(1u32) << (64 * words.len())),
                crate::params::dyadic::Round::Up,
            );
            assert!((found / -expected - 1.0).abs() < 1e-15, "{num} / 2^{bits}");
        }
    }

    #[test]
    fn means_beyond_one_are_errors() {
        for (num, bits) in [(0u32, 0u64), (2, 0), (5, 2), (1, MOST_BITS + 1)] {
            assert!(Mean::new(num.into(), bits).is_err(), "{num} / 2^{bits}");
        }
    }
}
