//! The exact distribution that a plan samples. A draw is a function of a finite tape, so every
//! probability is an integer over a power of two.
//!
//! Given the shared word, the digits are independent. Each digit's distribution depends only on
//! which of its thresholds have a last limb above the shared limb. The result is therefore an
//! average over the few intervals between those limbs.

use crate::Error;
use crate::params::enclosure::exp_neg;
use crate::params::rate::{Rate, ratio};
use crate::plan::{Digit, Plan};
use num_bigint::BigUint;

/// Largest range for which the exact distribution is computed.
pub const MAX_RANGE: u64 = 100_000;

/// The exact distribution of a plan: the probability of each output given each count.
#[derive(Clone, Debug)]
pub struct Distribution {
    range: u64,
    /// Probabilities are integers over `2^bits`.
    bits: u64,
    /// Noise of at least 0, and negative noise.
    rises: Side,
    falls: Side,
    /// `P(floor)` times the distribution of the floor's value.
    floor: Vec<BigUint>,
    /// Of a step between tiers.
    keep: Option<Keep>,
}

/// The probabilities of keeping a value inside the range and at an end, over `2^bits`.
#[derive(Clone, Debug)]
struct Keep {
    numbers: [BigUint; 2],
    bits: u64,
}

/// The distribution of the noise in one direction.
#[derive(Clone, Debug)]
struct Side {
    /// `P(not floor, |noise| = t)`; the last entry is `P(not floor, |noise| >= range)`.
    masses: Vec<BigUint>,
    /// `P(not floor, |noise| >= t)`.
    tails: Vec<BigUint>,
}

impl Side {
    fn new(masses: Vec<BigUint>) -> Self {
        let mut tails = masses.clone();
        for t in (0..tails.len() - 1).rev() {
            let tail = &tails[t] + &tails[t + 1];
            tails[t] = tail;
        }
        Self { masses, tails }
    }
}

impl Distribution {
    /// Computes the distribution.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the range is above [`MAX_RANGE`].
    pub fn of(plan: &Plan) -> Result<Self, Error> {
        let range = plan.range();
        if range > MAX_RANGE {
            return Err(Error::parameter(
                "bounds",
                format!("{range} apart"),
                format!("at most {MAX_RANGE} apart for the exact distribution"),
            ));
        }
        let limb_bits = u64::from(plan.limb_bits());
        let value_bits = u64::from(plan.floor_value_bits());
        let own: u64 = plan.digits().iter().map(|d| d.limbs as u64).sum();
        // The shared word, the digits' own words, the sign and the floor's value.
        let word_bits = if own > 0 { limb_bits * (own + 1) } else { 0 };
        let bits = word_bits + 1 + value_bits;

        let size = index(range) + 1;
        let mut sums = Sums {
            range,
            low_mask: plan.low_mask,
            two_sided: plan.is_two_sided(),
            rises: vec![BigUint::ZERO; size],
            falls: vec![BigUint::ZERO; size],
            floor: BigUint::ZERO,
        };
        if let Some((_, rest)) = plan.digits().split_first() {
            let mut cuts: Vec<u64> = plan.digits().iter().flat_map(last_limbs).collect();
            cuts.extend([0, 1 << limb_bits]);
            cuts.sort_unstable();
            cuts.dedup();
            for interval in cuts.windows(2) {
                let masses: Vec<Vec<BigUint>> = plan
                    .digits()
                    .iter()
                    .map(|digit| masses(digit, limb_bits, interval[0]))
                    .collect();
                let weight = BigUint::from(interval[1] - interval[0]);
                // In the floor's slot the other digits do not matter.
                let others = rest.iter().map(|d| d.limbs as u64).sum::<u64>() * limb_bits;
                sums.floor += (&weight * &masses[0][0]) << others;
                sums.digits(plan.digits(), &masses, weight, 0);
            }
        } else {
            sums.rises[0] = BigUint::from(2u32);
        }
        let side =
            |sums: Vec<BigUint>| Side::new(sums.into_iter().map(|p| p << value_bits).collect());
        // min(uniform on 2^value_bits, range): one part for each output, the rest at the range.
        // Without a floor there may be fewer parts than outputs, but they have no mass.
        let unit = sums.floor << 1u32;
        let mut floor = vec![unit.clone(); size];
        floor[size - 1] = unit * (1u128 << value_bits).saturating_sub(range.into());
        Ok(Self {
            range,
            bits,
            rises: side(sums.rises),
            falls: side(sums.falls),
            floor,
            keep: plan.keeps().map(|(numbers, limbs)| Keep {
                numbers,
                bits: limb_bits * limbs as u64,
            }),
        })
    }

    /// Probabilities are integers over two to this power.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits + self.keep.as_ref().map_or(0, |keep| keep.bits)
    }

    /// `P(output = y | count = x)` for offsets from the lower bound, over `2^bits`.
    ///
    /// # Panics
    /// If `x` or `y` is beyond the range.
    #[must_use]
    pub fn probability(&self, y: u64, x: u64) -> BigUint {
        assert!(x <= self.range && y <= self.range);
        let (drawn, floor) = (self.outside(y, x), &self.floor[index(y)]);
        let Some(Keep { numbers, bits }) = &self.keep else {
            return drawn + floor;
        };
        let stays = &numbers[usize::from(x == 0 || x == self.range)];
        let kept = match x == y {
            true => (BigUint::from(1u32) << self.bits) - self.floor.iter().sum::<BigUint>(),
            false => BigUint::ZERO,
        };
        let unit = BigUint::from(1u32) << bits;
        stays * kept + (&unit - stays) * drawn + unit * floor
    }

    /// The same for an ordinary draw outside the floor's slot.
    fn outside(&self, y: u64, x: u64) -> BigUint {
        let part = |side: &Side, distance: Option<u64>, edge: bool| match distance {
            Some(t) if edge => side.tails[index(t)].clone(),
            Some(t) => side.masses[index(t)].clone(),
            None => BigUint::ZERO,
        };
        part(&self.rises, y.checked_sub(x), y == self.range)
            + part(&self.falls, x.checked_sub(y), y == 0)
    }

    /// The largest ratio `P(y | x) / P(y | x')` over all outputs and neighbours `|x - x'| = 1`, as
    /// numerator and denominator; `None` for a range of 0. In the interior the ratio depends on the
    /// distance alone, and at either edge on the distance to the edge. Not for a step between tiers.
    #[must_use]
    pub fn worst_ratio(&self) -> Option<(BigUint, BigUint)> {
        let mut pairs = Vec::new();
        for t in 0..self.range {
            // Outputs at the lower and upper edge, from distances t and t + 1.
            pairs.push((self.probability(0, t), self.probability(0, t + 1)));
            let r = self.range;
            pairs.push((self.probability(r, r - t), self.probability(r, r - t - 1)));
            // Inside: the lowest output from counts above it, and the highest from counts below.
            if r > 1 && t + 1 < r {
                pairs.push((self.probability(1, t + 1), self.probability(1, t + 2)));
                let (near, far) = (r - 1 - t, r - 2 - t);
                pairs.push((self.probability(r - 1, near), self.probability(r - 1, far)));
            }
        }
        pairs
            .into_iter()
            .map(|(p, q)| if p < q { (q, p) } else { (p, q) })
            .reduce(|best, next| {
                if &next.0 * &best.1 > &best.0 * &next.1 {
                    next
                } else {
                    best
                }
            })
    }
}

fn index(output: u64) -> usize {
    let Ok(index) = usize::try_from(output) else {
        unreachable!("outputs are at most MAX_RANGE")
    };
    index
}

struct Sums {
    range: u64,
    low_mask: u64,
    two_sided: bool,
    rises: Vec<BigUint>,
    falls: Vec<BigUint>,
    floor: BigUint,
}

impl Sums {
    /// Adds twice the mass of the noise with the value `base` in the digits above, from the top
    /// digit down. Noise at or above the range is summed in one entry.
    fn digits(&mut self, digits: &[Digit], masses: &[Vec<BigUint>], mass: BigUint, base: u64) {
        let values = &masses[digits.len() - 1];
        let Some((digit, below)) = digits.split_last().filter(|(_, below)| !below.is_empty())
        else {
            // Digit 0: the floor, the values from 1 on, and zero if there are two signs.
            let mut add = |rises: bool, noise: u64, p: &BigUint| {
                let sums = if rises {
                    &mut self.rises
                } else {
                    &mut self.falls
                };
                sums[index(noise.min(self.range))] += &mass * p;
            };
            let last = values.len() - usize::from(self.two_sided);
            for (value, p) in (1..).zip(&values[1..last]) {
                add(true, base + (value & self.low_mask), p);
                add(!self.two_sided, base + value, p);
            }
            for p in &values[last..] {
                add(true, base, &(p << 1u32));
            }
            return;
        };
        let is_top = digits.len() == masses.len();
        for (value, p) in values.iter().enumerate() {
            let at = u128::from(base) + ((value as u128) << digit.shift);
            let is_last = is_top && value + 1 == values.len();
            let at = u64::try_from(at).map_or(self.range, |at| at.min(self.range));
            let at = if is_last { self.range } else { at };
            let p = &mass * p;
            if at < self.range {
                self.digits(below, masses, p, at);
            } else {
                // Of the digits below, only the sign matters.
                let others: BigUint = masses[1..below.len()]
                    .iter()
                    .map(|values| values.iter().sum::<BigUint>())
                    .product();
                self.digits(&below[..1], masses, p * others, at);
            }
        }
    }
}

fn last_limbs(digit: &Digit) -> impl Iterator<Item = u64> + '_ {
    digit.thresholds.iter().map(|limbs| limbs[digit.limbs])
}

/// How many values of the digit's own words give each outcome if the shared limb is `tie`.
fn masses(digit: &Digit, limb_bits: u64, tie: u64) -> Vec<BigUint> {
    let total = BigUint::from(1u32) << (limb_bits * digit.limbs as u64);
    let mut masses = Vec::with_capacity(digit.thresholds.len() + 1);
    let mut from = BigUint::ZERO;
    for limbs in &digit.thresholds {
        let (last, own) = (limbs[digit.limbs], &limbs[..digit.limbs]);
        let to = own
            .iter()
            .fold(BigUint::ZERO, |sum, limb| (sum << limb_bits) + limb)
            + u32::from(tie < last);
        masses.push(&to - &from);
        from = to;
    }
    masses.push(total - from);
    masses
}

/// Whether `num / den <= exp(epsilon)`, decided by enclosures.
#[must_use]
pub fn within(num: &BigUint, den: &BigUint, epsilon: &Rate) -> bool {
    // num / den <= e^epsilon if and only if e^-epsilon <= den / num.
    let bits = num.bits().max(den.bits()) + 64;
    let [_, hi] = exp_neg(epsilon, bits);
    hi * num <= den << bits
}

/// The least float64 epsilon with `num / den <= exp(epsilon)`, for `num >= den > 0`.
#[must_use]
pub fn least_epsilon(num: &BigUint, den: &BigUint) -> f64 {
    if num <= den {
        return 0.0;
    }
    let enough = |bits: u64| {
        ratio(f64::from_bits(bits))
            .and_then(|(n, d)| Rate::from_ratio(n, d).ok())
            .is_some_and(|epsilon| within(num, den, &epsilon))
    };
    // Positive floats have the same order as their bits.
    let (mut low, mut high) = (0, f64::MAX.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    f64::from_bits(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::enclosure::Enclosure;
    use crate::plan::Widths;

    /// Lemma 3 of docs/proofs.md: outside the floor, every probability differs from `(1 - g) mu` by
    /// at most `delta (1 - g) mu + eta`, where `mu` is the distribution at the sampled rate.
    /// Returns the largest used fraction of that allowance, in thousandths.
    fn check_lemma(plan: &Plan) -> u64 {
        let numbers = plan.certificate().unwrap();
        let distribution = Distribution::of(plan).unwrap();
        let bits = distribution.bits() + 200;
        let unit = BigUint::from(1u32) << bits;
        let a = Enclosure::<32>::exp_neg(&numbers.sampled, bits);
        let odds = Enclosure::one(bits).add(&a);
        let interior = a.complement().div(&odds);
        let edge = Enclosure::one(bits).div(&odds);
        let rest = Enclosure::dyadic(&(&numbers.floor.value << (bits - numbers.floor.bits)), bits)
            .complement();
        let mut worst = 0;
        let r = distribution.range;
        for (x, y) in (0..=r).flat_map(|x| [(x, 0), (x, 1.min(r)), (x, r / 2), (x, r)]) {
            let factor = if y == 0 || y == r { &edge } else { &interior };
            let mu = rest.mul(factor).mul(&a.pow(x.abs_diff(y)));
            let sampled =
                distribution.probability(y, x) - &distribution.floor[usize::try_from(y).unwrap()];
            let sampled = sampled << (bits - distribution.bits());
            // The farther end of the enclosure, so that no error is missed.
            let error = if sampled > mu.lo() {
                &sampled - mu.lo()
            } else {
                mu.hi() - &sampled
            };
            let relative = (mu.lo() * &numbers.delta.value) >> numbers.delta.bits;
            let allowed = relative + ((&unit * &numbers.eta.value) >> numbers.eta.bits);
            assert!(
                error <= allowed,
                "P({y} | {x}) exceeds the allowed error: {plan:?}"
            );
            let used = error * 1000u32 / allowed;
            worst = worst.max(u64::try_from(used).unwrap());
        }
        worst
    }

    #[test]
    fn errors_satisfy_lemma_3_at_small_widths() {
        let (mut plans, mut mixed, mut worst) = (0, 0, 0);
        for limbs in 1..=3 {
            for limb_bits in [4, 5, 6, 8, 10] {
                for radix_bits in [
                    &[][..],
                    &[1],
                    &[2],
                    &[3],
                    &[1, 1],
                    &[2, 2],
                    &[2, 1],
                    &[1, 1, 1, 1],
                ] {
                    for scale in [0.3, 1.0, 1.8, 6.0, 25.0] {
                        for range in [1, 2, 7, 40] {
                            let widths = Widths {
                                limb_bits,
                                slack_bits: 1,
                                limbs,
                            };
                            let rate = Rate::from_scale(scale).unwrap();
                            let Some(plan) =
                                Plan::reduced(&rate, range, &widths, radix_bits).unwrap()
                            else {
                                continue;
                            };
                            worst = worst.max(check_lemma(&plan));
                            let (num, den) =
                                Distribution::of(&plan).unwrap().worst_ratio().unwrap();
                            assert!(within(&num, &den, &rate), "{plan:?}");
                            plans += 1;
                            mixed += u32::from(plan.digits()[0].limbs < limbs);
                        }
                    }
                }
            }
        }
        println!("{plans} plans, {mixed} with low digits; {worst}/1000 of the allowance used");
        assert!(
            plans > 500 && mixed > 50,
            "{plans} plans, {mixed} with low digits"
        );
    }

    #[test]
    fn errors_satisfy_lemma_3_at_full_width() {
        for (epsilon, range) in [
            (1.0, 1),
            (1.0, 50),
            (0.1, 400),
            (5.0, 300),
            (1e-4, 400),
            (1e-12, 64),
        ] {
            let plan = Plan::two_sided(&Rate::from_epsilon(epsilon, 1).unwrap(), range).unwrap();
            check_lemma(&plan);
            let (num, den) = Distribution::of(&plan).unwrap().worst_ratio().unwrap();
            assert!(within(&num, &den, &plan.certificate().unwrap().nominal));
            let tight = least_epsilon(&num, &den);
            assert!(
                tight <= epsilon && tight > 0.999 * epsilon,
                "{tight} for {epsilon}"
            );
        }
    }

    #[test]
    fn distribution_without_noise() {
        for range in [1, 3] {
            let distribution = Distribution::of(&Plan::noiseless(range)).unwrap();
            for (x, y) in (0..=range).flat_map(|x| (0..=range).map(move |y| (x, y))) {
                let expected = BigUint::from(u32::from(x == y)) << distribution.bits();
                assert_eq!(distribution.probability(y, x), expected, "P({y} | {x})");
            }
        }
        assert!(
            Distribution::of(&Plan::noiseless(0))
                .unwrap()
                .worst_ratio()
                .is_none()
        );
    }

    /// Mass beyond the top digit's reach is at the range, and none is in between. A digit alone keeps
    /// its last value.
    #[test]
    fn censored_mass_is_at_the_range() {
        for (epsilon, range, alone) in [(40.0, 1000, true), (2.0, 1000, false), (1.0, 1000, false)]
        {
            let plan = Plan::two_sided(&Rate::from_epsilon(epsilon, 1).unwrap(), range).unwrap();
            assert_eq!(plan.digits().len() == 1, alone);
            let top = plan.digits().last().unwrap();
            let beyond = (top.thresholds.len() << top.shift) + 1;
            let Distribution { rises, falls, .. } = Distribution::of(&plan).unwrap();
            for Side { masses, .. } in [rises, falls] {
                assert!(masses[1] > BigUint::ZERO);
                let (edge, between) = masses[beyond..].split_last().unwrap();
                assert!(between.len() > 200);
                assert!(between.iter().all(|mass| mass == &BigUint::ZERO));
                assert_eq!(edge == &BigUint::ZERO, alone);
            }
        }
    }

    #[test]
    fn largest_range_is_accepted_and_larger_ones_are_not() {
        let plan = |range| Plan::two_sided(&Rate::from_scale(0.05).unwrap(), range).unwrap();
        assert!(Distribution::of(&plan(MAX_RANGE)).is_ok());
        for range in [MAX_RANGE + 1, u64::MAX] {
            let refused = Distribution::of(&plan(range)).unwrap_err();
            assert!(refused.to_string().starts_with("bounds"));
        }
    }

    #[test]
    fn least_epsilon_is_the_least_upper_bound() {
        let (num, den) = (BigUint::from(3u32), BigUint::from(2u32));
        let epsilon = least_epsilon(&num, &den);
        assert!((epsilon - 1.5f64.ln()).abs() < 1e-15);
        assert!(within(&num, &den, &Rate::from_epsilon(epsilon, 1).unwrap()));
        assert!(!within(
            &num,
            &den,
            &Rate::from_epsilon(epsilon.next_down(), 1).unwrap()
        ));
        assert_eq!(least_epsilon(&den, &den), 0.0);
    }
}
