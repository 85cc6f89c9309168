//! The linear sampler of the source notes: it follows the notes step by step, is exactly private,
//! and agrees with the kernel.
#![allow(clippy::unwrap_used)]

use geomdp_core::Rate;
use geomdp_core::distribution::{Distribution, within};
use geomdp_core::dyadic::decompose;
use geomdp_core::linear::Linear;
use geomdp_core::plan::Plan;
use geomdp_core::tape::{Tape, Words};
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

/// The exact distribution of the linear sampler's outputs, over `2^bits`, from its two coins.
struct LinearDistribution {
    magnitudes: Vec<BigUint>,
    bits: u64,
}

/// A float in [0, 1] over `2^200`, exactly.
fn over_200(x: f64) -> BigUint {
    let (mantissa, exponent) = decompose(x).unwrap();
    BigUint::from(mantissa) << u32::try_from(200 + exponent).unwrap()
}

impl LinearDistribution {
    fn of(linear: &Linear, range: usize) -> Self {
        let one = BigUint::from(1u32) << 200u32;
        let (zero, stop) = (over_200(linear.zero_prob()), over_200(linear.stop_prob()));
        let go = &one - &stop;
        let steps = range as u64;
        // P(|noise| = t), each over 2^(200 (range + 1)).
        let mut magnitudes = vec![&zero << (200 * steps)];
        let mut going = &one - &zero;
        for t in 1..=steps {
            let here = if t < steps {
                &going * &stop
            } else {
                &going << 200u32
            };
            magnitudes.push(here << (200 * (steps - t)));
            going *= &go;
        }
        Self {
            magnitudes,
            bits: 200 * (steps + 1),
        }
    }

    /// `P(y | x)` over `2^(bits + 1)`; the extra bit is the sign's 1/2.
    fn probability(&self, y: usize, x: usize) -> BigUint {
        let range = self.magnitudes.len() - 1;
        let side = |distance: Option<usize>, edge: bool| -> BigUint {
            distance.map_or(BigUint::ZERO, |t| {
                if edge {
                    self.magnitudes[t..].iter().sum()
                } else {
                    self.magnitudes[t].clone()
                }
            })
        };
        side(y.checked_sub(x), y == range) + side(x.checked_sub(y), y == 0)
    }
}

#[test]
fn probabilities_sum_to_one_and_loss_is_at_most_nominal() {
    for epsilon in [2f64.powi(-50), 1e-6, 0.001, 0.1, 0.5, 1.0, 3.0, 9.98, 20.0] {
        for range in [1usize, 2, 5, 20] {
            let rate = Rate::from_epsilon(epsilon, 1).unwrap();
            let distribution =
                LinearDistribution::of(&Linear::new(&rate, range as u64).unwrap(), range);
            for x in 0..range {
                let sum: BigUint = (0..=range).map(|y| distribution.probability(y, x)).sum();
                assert_eq!(sum, BigUint::from(1u32) << (distribution.bits + 1));
                for y in 0..=range {
                    let (p, q) = (
                        distribution.probability(y, x),
                        distribution.probability(y, x + 1),
                    );
                    assert!(
                        within(&p, &q, &rate) && within(&q, &p, &rate),
                        "{epsilon} {range}"
                    );
                }
            }
        }
    }
}

/// The total variation between the distributions of the two samplers is below 2^-48: both are near
/// the ideal one.
#[test]
fn agrees_with_the_kernel() {
    for epsilon in [0.05, 0.5, 1.0, 3.0] {
        for range in [1usize, 3, 10, 40] {
            let rate = Rate::from_epsilon(epsilon, 1).unwrap();
            let linear = LinearDistribution::of(&Linear::new(&rate, range as u64).unwrap(), range);
            let kernel = Distribution::of(&Plan::two_sided(&rate, range as u64).unwrap()).unwrap();
            for x in 0..=range {
                let mut distance = BigUint::ZERO;
                for y in 0..=range {
                    let p = BigInt::from(linear.probability(y, x) << kernel.bits());
                    let q =
                        BigInt::from(kernel.probability(y as u64, x as u64) << (linear.bits + 1));
                    distance += (p - q).magnitude();
                }
                let bits = linear.bits + 1 + kernel.bits();
                assert!(
                    distance >> 1u32 < BigUint::from(1u32) << (bits - 48),
                    "{epsilon} {range}"
                );
            }
        }
    }
}

/// Algorithm 2 of the notes, with given coins.
fn notes(zero: bool, minus: bool, coins: &[bool], range: i64, x: i64) -> i64 {
    if zero {
        return x;
    }
    let first = coins.iter().position(|&success| success);
    let g = first.map_or(range, |failures| i64::try_from(failures).unwrap() + 1);
    (if minus { x - g } else { x + g }).clamp(0, range)
}

#[test]
fn every_pattern_of_coins() {
    // The steps of the second rate take two words each.
    for (epsilon, per_step) in [(0.7, 1), (2f64.powi(-40) / 3.0, 2)] {
        let rate = Rate::from_epsilon(epsilon, 1).unwrap();
        for range in 1..=6u32 {
            let linear = Linear::new(&rate, range.into()).unwrap();
            let steps = range as usize * per_step;
            let zero = linear.words().unwrap() - 1 - steps;
            assert!(zero == 1 || zero == 2, "{zero}");
            for pattern in 0..1u32 << (range + 2) {
                let bit = |i: u32| pattern >> i & 1 == 1;
                let coins: Vec<bool> = (0..range).map(|i| bit(2 + i)).collect();
                // A word of 0 is below every threshold, a word of all ones below none.
                let coin = |success: bool| if success { 0 } else { u64::MAX };
                let mut words = vec![coin(bit(0)); zero];
                words.push(u64::from(bit(1)));
                for &success in &coins {
                    words.extend(vec![coin(success); per_step]);
                }
                for x in 0..=range {
                    let expected = notes(bit(0), bit(1), &coins, range.into(), x.into());
                    for enforce_constant_time in [false, true] {
                        let y = linear.draw(x.into(), &words, enforce_constant_time);
                        assert_eq!(i64::try_from(y).unwrap(), expected);
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn both_timings_give_the_same(key: [u8; 32], log_rate in -50i32..6, range in 1u64..300) {
        let rate = Rate::from_epsilon(2f64.powi(log_rate), 1).unwrap();
        let linear = Linear::new(&rate, range).unwrap();
        let mut words = vec![0; linear.words().unwrap()];
        Tape::from_key(&key).fill(&mut words).unwrap();
        let offset = words[0] % (range + 1);
        prop_assert_eq!(
            linear.draw_constant_time(offset, &words),
            linear.draw_variable_time(offset, &words)
        );
    }
}

#[test]
fn an_empty_range_and_a_tiny_rate_are_an_error() {
    let rate = Rate::from_epsilon(1.0, 1).unwrap();
    assert!(Linear::new(&rate, 0).is_err());
    // See theorem 4 of docs/proofs.md.
    let tiny = Rate::from_epsilon(2f64.powi(-50).next_down(), 1).unwrap();
    assert!(Linear::new(&tiny, 1).is_err());
}
