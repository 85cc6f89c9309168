//! The place of the largest sum of a count and its noise, by masks: no jump and no address depends
//! on counts, noise or places.
//!
//! The noise is one-sided, and infinite from a limit on. `docs/proofs.md` says why the place
//! is private with that, and would not be with sums that saturate.

use super::Count;
use super::vector::Vector;
use crate::draw::ct;
use crate::draw::lanes::{LANES, Row};
use crate::plan::Plan;
use core::hint::black_box;
use core::ops::Range;
use zeroize::Zeroize;

/// Offsets of counts above the least one are at most this, so that sums fit a signed word.
pub(crate) const WIDEST: u64 = (1 << 62) - 1;
/// The sum of infinite noise. Finite ones are smaller, and an absent one is 0.
const BEYOND: u64 = u64::MAX >> 1;

/// The lanes of a block.
const NUMBERS: Row = {
    let (mut numbers, mut lane) = ([0; LANES], 1);
    while lane < LANES {
        numbers[lane] = numbers[lane - 1] + 1;
        lane += 1;
    }
    numbers
};

/// Which sums are compared.
#[derive(Clone, Copy)]
pub(crate) struct Rule<'a> {
    /// The key of the least count; smaller ones are raised to it.
    pub lower: u64,
    /// The greatest offset above it, at most [`WIDEST`].
    pub width: u64,
    /// Places that are left out. These are secret.
    pub named: &'a [u64],
    /// Binary logarithm of [`Self::middle`].
    half_bits: u32,
}

impl<'a> Rule<'a> {
    /// The rule for noise of this plan. Its range must be one less than a power of two, and at
    /// least 7.
    pub fn new(plan: &Plan, lower: u64, width: u64, named: &'a [u64]) -> Self {
        let half_bits = plan.range().count_ones() - 1;
        let rule = Self {
            lower,
            width,
            named,
            half_bits,
        };
        assert!(half_bits >= 2 && plan.range() == rule.middle() - 1 + rule.middle());
        assert!(width <= WIDEST && WIDEST + rule.infinite() < BEYOND);
        rule
    }

    /// The offset to which the kernel adds noise: as many outputs lie below it as from it on.
    pub fn middle(&self) -> u64 {
        1 << self.half_bits
    }

    /// The least noise that counts as infinite.
    fn infinite(&self) -> u64 {
        1 << (self.half_bits - 2)
    }
}

/// The largest sums so far with their places, one for each lane.
#[derive(Clone, Default)]
pub struct Best {
    sums: Row,
    places: Row,
}

impl Best {
    /// Takes over what another has found.
    pub fn merge(&mut self, other: &Self) {
        for lane in 0..LANES {
            self.meet(lane, other.sums[lane], other.places[lane]);
        }
    }

    /// The place of the largest sum, the first one among equals.
    #[must_use]
    pub fn place(mut self) -> u64 {
        for lane in 1..LANES {
            self.meet(0, self.sums[lane], self.places[lane]);
        }
        self.places[0]
    }

    /// Replaces a lane's sum by a larger one, or by an equal one at an earlier place.
    fn meet(&mut self, lane: usize, sum: u64, place: u64) {
        let (own_sum, own_place) = (self.sums[lane], self.places[lane]);
        let earlier = ct::borrow(place, own_place, 0);
        let larger = ct::mask(ct::borrow(own_sum, sum, earlier));
        self.sums[lane] = ct::select(larger, sum, own_sum);
        self.places[lane] = ct::select(larger, place, own_place);
    }
}

impl Drop for Best {
    fn drop(&mut self) {
        self.sums.zeroize();
        self.places.zeroize();
    }
}

impl core::fmt::Debug for Best {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Best { .. }")
    }
}

/// The portable back end: see [`super::Kernel::compare`].
#[inline(never)]
pub(super) fn portable<T: Count>(
    rule: &Rule<'_>,
    start: u64,
    noise: &[u64],
    counts: &[T],
    best: &mut Best,
) {
    compare_by::<u64, T>(rule, start, noise, counts, best);
}

/// Compares the sums of counts and noise, from place `start` on. `noise` is what the kernel made of
/// [`Rule::middle`], in whole blocks.
#[inline(always)]
pub(super) fn compare_by<V: Vector, T: Count>(
    rule: &Rule<'_>,
    start: u64,
    noise: &[u64],
    counts: &[T],
    best: &mut Best,
) {
    // AArch64's compiler would load this public field into a vector register, beside another. The
    // check of instructions allows no move from there to the shifts' general register.
    let half_bits = black_box(rule.half_bits);
    let rule = &Rule { half_bits, ..*rule };
    let end = start + counts.len() as u64;
    let (whole, rest) = counts.as_chunks();
    let (noise, _) = noise.as_chunks();
    let mut start = start;
    for (counts, noise) in whole.iter().zip(noise) {
        compare_block::<V, T>(rule, start..end, noise, counts, best);
        start += LANES as u64;
    }
    if !rest.is_empty() {
        let mut counts = [T::default(); LANES];
        counts[..rest.len()].copy_from_slice(rest);
        compare_block::<V, T>(rule, start..end, &noise[whole.len()], &counts, best);
    }
}

/// Compares a block of sums, at the first of these places.
#[inline(always)]
fn compare_block<V: Vector, T: Count>(
    rule: &Rule<'_>,
    places: Range<u64>,
    noise: &Row,
    counts: &[T; LANES],
    best: &mut Best,
) {
    let (keys, lanes) = (
        counts.map(T::to_key),
        NUMBERS.map(|lane| places.start + lane),
    );
    for lane in (0..LANES).step_by(V::WIDTH) {
        let place = V::load(&lanes[lane..]);
        let sum = sum(rule, V::load(&keys[lane..]), V::load(&noise[lane..]));
        let mut sum = V::select(place.less(V::splat(places.end)), sum, V::splat(0));
        for named in rule.named {
            let other = V::splat(0).less(place.xor(V::splat(*named)));
            sum = V::select(other, sum, V::splat(0));
        }
        let (sums, places) = (&mut best.sums[lane..], &mut best.places[lane..]);
        let larger = V::load(sums).less(sum);
        V::select(larger, sum, V::load(sums)).store(sums);
        V::select(larger, place, V::load(places)).store(places);
    }
}

/// One more than the sum of the counts' offsets and their noise.
#[inline(always)]
fn sum<V: Vector>(rule: &Rule<'_>, key: V, drawn: V) -> V {
    let base = V::splat(rule.lower);
    let offset = key.max(base).sub(base).min(V::splat(rule.width));
    // The kernel's noise is `G` or `-1 - G`, at random; this is `G`.
    let falls = drawn.shr(rule.half_bits).sub(V::splat(1));
    let noise = drawn.xor(falls).and(V::splat(rule.middle() - 1));
    let finite = noise.less(V::splat(rule.infinite()));
    V::select(finite, offset.add(noise).add(V::splat(1)), V::splat(BEYOND))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;
    use crate::draw::kernel::{Backend, Kernel};
    use crate::plan::Widths;
    use crate::reference::distribution::{Distribution, within};
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn index(place: u64) -> usize {
        usize::try_from(place).unwrap()
    }

    /// One more than the sum; `None` if the noise is infinite.
    fn model(rule: &Rule<'_>, key: u64, drawn: u64) -> Option<u128> {
        let offset = Ord::min(key.saturating_sub(rule.lower), rule.width);
        let noise = match drawn.checked_sub(rule.middle()) {
            Some(rises) => rises,
            None => rule.middle() - 1 - drawn,
        };
        (noise < rule.infinite()).then(|| u128::from(offset) + u128::from(noise) + 1)
    }

    /// The first place of the largest sum, by definition.
    fn first_largest(rule: &Rule<'_>, start: u64, noise: &[u64], counts: &[u64]) -> u64 {
        let sums: Vec<_> = (counts.iter().zip(noise))
            .map(|(&count, &drawn)| model(rule, count, drawn).unwrap_or(u128::MAX))
            .zip(start..)
            .filter(|(_, place)| !rule.named.contains(place))
            .collect();
        let largest = sums.iter().map(|&(sum, _)| sum).max().unwrap();
        sums.iter().find(|&&(sum, _)| sum == largest).unwrap().1
    }

    fn found(kernel: &Kernel, rule: &Rule<'_>, noise: &[u64], counts: &[u64]) -> u64 {
        best(kernel, rule, 0, noise, counts).place()
    }

    fn best(kernel: &Kernel, rule: &Rule<'_>, start: u64, noise: &[u64], counts: &[u64]) -> Best {
        let mut best = Best::default();
        let mut noise = noise.to_vec();
        // The noise of no count must not matter.
        noise.resize(
            noise.len().next_multiple_of(LANES),
            rule.middle() + rule.infinite(),
        );
        kernel.compare(rule, start, &noise, counts, &mut best);
        best
    }

    fn kernels(plan: &Plan) -> Vec<Kernel> {
        let on = |backend| Kernel::on(backend, plan.clone());
        Backend::available().map(on).collect()
    }

    /// All vectors of these items.
    fn vectors(items: u64, length: u32) -> impl Iterator<Item = Vec<u64>> {
        (0..items.pow(length)).map(move |number| {
            (0..length)
                .map(|place| number / items.pow(place) % items)
                .collect()
        })
    }

    /// The law of the compiled code over **all** noise of three counts, at small limb widths, in
    /// exact integers, against the definition; and the privacy loss of every pair of neighbours. The
    /// kernel's own law is that of all tapes (`tests/exhaustive.rs`).
    #[test]
    fn every_noise_at_small_widths() {
        let mut tight = 0;
        for (scale, range, radix_bits) in [
            (1.0, 7, &[][..]),
            (0.7, 15, &[]),
            (2.0, 15, &[2]),
            (3.0, 15, &[1]),
        ] {
            let rate = Rate::from_scale(scale).unwrap();
            // The least width that has a plan, so that its floor is large.
            let plan = |limb_bits| {
                let widths = Widths {
                    limb_bits,
                    slack_bits: 1,
                    limbs: 1,
                };
                Plan::reduced(&rate, range, &widths, radix_bits).unwrap()
            };
            let plan = (3..).find_map(plan).unwrap();
            let law = Distribution::of(&plan).unwrap();
            let kernels = kernels(&plan);
            for named in [&[][..], &[1]] {
                let rule = Rule::new(&plan, 0, 2, named);
                let mass: Vec<_> = (0..=range)
                    .map(|y| law.probability(y, rule.middle()))
                    .collect();
                let counts: Vec<_> = vectors(3, 3).collect();
                let mut places = vec![[const { BigUint::ZERO }; 3]; counts.len()];
                for noise in vectors(range + 1, 3) {
                    let weight: BigUint = noise.iter().map(|&y| &mass[index(y)]).product();
                    for (places, counts) in places.iter_mut().zip(&counts) {
                        let place = first_largest(&rule, 0, &noise, counts);
                        for kernel in &kernels {
                            let found = found(kernel, &rule, &noise, counts);
                            assert_eq!(found, place, "{kernel:?}, {noise:?}, {counts:?}");
                        }
                        places[index(place)] += &weight;
                    }
                }
                let twice = Rate::from_ratio(rate.num() * 2u32, rate.den().clone()).unwrap();
                let half = Rate::from_ratio(rate.num().clone(), rate.den() * 2u32).unwrap();
                for (x, before) in counts.iter().zip(&places) {
                    for (y, after) in counts.iter().zip(&places) {
                        let steps = x
                            .iter()
                            .zip(y)
                            .map(|(x, y)| y.cast_signed() - x.cast_signed());
                        let steps: Vec<i64> = steps.collect();
                        let loss = match (steps.iter().min().unwrap(), steps.iter().max().unwrap())
                        {
                            (0.., ..=1) | (-1.., ..=0) => &rate,
                            (-1.., ..=1) => &twice,
                            _ => continue,
                        };
                        for (num, den) in before.iter().zip(after) {
                            assert!(within(num, den, loss), "{plan:?}: {x:?}, {y:?}");
                            tight += usize::from(!within(num, den, &half));
                        }
                    }
                }
            }
        }
        assert!(tight > 100, "{tight}");
    }

    proptest! {
        /// Any lengths, places that are left out, counts and noise, on every back end and in parts.
        #[test]
        fn first_of_the_largest(
            bits in 3u32..=64,
            lower in prop_oneof![Just(0), Just(1 << 63), any::<u64>()],
            width in prop_oneof![Just(0), Just(2), 0..=WIDEST, Just(WIDEST)],
            lanes in prop::collection::vec((any::<u64>(), 0u32..64, any::<u64>(), 0u32..64), 3..70),
            split: prop::sample::Index,
            named in prop::collection::btree_set(0u64..70, 0..3),
        ) {
            let plan = Plan::noiseless(u64::MAX >> (64 - bits));
            let named: Vec<u64> = named.into_iter().collect();
            let rule = Rule::new(&plan, lower, width, &named);
            // Counts near the window, and noise near the middle, of all sizes.
            let near = |number: u64, shift: u32| (number.cast_signed() >> shift).cast_unsigned();
            let counts: Vec<u64> = (lanes.iter())
                .map(|&(count, shift, ..)| lower.wrapping_add(near(count, shift)))
                .collect();
            let noise: Vec<u64> = (lanes.iter())
                .map(|&(_, _, noise, shift)| {
                    rule.middle().wrapping_add(near(noise, shift)) & plan.range()
                })
                .collect();
            let left = (0..counts.len() as u64).filter(|place| !named.contains(place)).count();
            prop_assume!(left > 0);
            let expected = first_largest(&rule, 0, &noise, &counts);
            for kernel in kernels(&plan) {
                prop_assert_eq!(found(&kernel, &rule, &noise, &counts), expected);
                let at = split.index(counts.len());
                let one = best(&kernel, &rule, 0, &noise[..at], &counts[..at]);
                let mut other = best(&kernel, &rule, at as u64, &noise[at..], &counts[at..]);
                other.merge(&one);
                prop_assert_eq!(other.place(), expected);
            }
        }
    }
}
