//! Turns public parameters into thresholds: everything about a draw that does not depend on a
//! secret.
//!
//! The noise is drawn digit by digit, as `docs/proofs.md` explains: it is a geometric `G`, or `-1 -
//! G`, and the sign and the digits of `G` in a power-of-two radix are independent. For each digit, a
//! plan lists the thresholds that a uniform number is compared with. Everything in a plan is public,
//! including the number of thresholds.

mod certificate;
pub(crate) mod digit;
pub mod hazards;
pub(crate) mod layout;
mod thresholds;
pub mod tiers;

use crate::Error;
use crate::params::dyadic::Dyadic;
use crate::params::enclosure::Enclosure;
use crate::params::rate::{Rate, ratio};
pub use certificate::Certificate;
pub use digit::Digit;
use layout::{Layout, SCALE_BITS};
use num_bigint::BigUint;
use num_integer::Integer;
use thresholds::{own_words, signed, split, thresholds};
use tiers::Keep;

/// Bits of a limb at full width: one less than a word, so that differences keep their sign.
pub const LIMB_BITS: u32 = 63;
/// Where low digits need it, the sampled rate is smaller than the nominal one by the factor `1 -
/// 2^-SLACK_BITS`.
const SLACK_BITS: u32 = 54;
/// The largest number of own words of a digit.
pub(crate) const MAX_LIMBS: usize = 3;
/// A floor of mass `g` on values below `2^k` may move the mean error by `g * 2^k <= 2^-20`.
const FLOOR_MEAN_BITS: u64 = 20;
/// `g <= 2^-52`, so that the total variation stays below `2^-50` (docs/proofs.md, theorem 3).
const FLOOR_MASS_BITS: u64 = 52;
/// Even with three limbs the floor exceeds its limit at every rate below `2^-HOPELESS_BITS`.
const HOPELESS_BITS: u64 = 200;
/// ln 2, rounded up, over [`LN2_DEN`].
const LN2_NUM: u64 = 6_931_471_806;
const LN2_DEN: u64 = 10_000_000_000;

/// Public instructions for the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub(crate) range: u64,
    pub(crate) limb_bits: u32,
    /// Least significant first. Empty: no noise.
    pub(crate) digits: Vec<Digit>,
    /// Words of tape for one draw. Stored so that the kernel need not sum them for every block.
    pub(crate) words: usize,
    /// Mask of the shared word's sign bit: 1, or 0 for noise that is never negative.
    pub(crate) sign_mask: u64,
    /// Mask of digit 0's value where noise rises: the digit's radix minus one, or all bits where it
    /// is the only digit.
    pub(crate) low_mask: u64,
    /// Bits of the value that replaces the output if the draw falls in the floor's slot.
    pub(crate) floor_value_bits: u32,
    /// Of a step between tiers.
    pub(crate) keep: Option<Keep>,
    certificate: Option<Certificate>,
}

/// Word widths. The exhaustive tests reduce them so that they can try every tape.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Bits of a limb.
    pub limb_bits: u32,
    /// The rate is reduced by `2^-slack_bits` of itself where there may be low digits.
    pub slack_bits: u32,
    /// Own words of a high digit; low digits have fewer.
    pub limbs: usize,
}

impl Widths {
    /// Bits of a high digit's thresholds.
    fn places(&self) -> u64 {
        u64::from(self.limb_bits) * (self.limbs as u64 + 1)
    }

    fn sampled(&self, rate: &Rate) -> Result<Rate, Error> {
        if self.limbs == 1 {
            return Ok(rate.clone());
        }
        rate.slacken(self.slack_bits)
    }
}

impl Plan {
    /// The plan that clamps and adds no noise: for scale 0, or bounds that allow one output only.
    #[must_use]
    pub fn noiseless(range: u64) -> Self {
        Self {
            range,
            limb_bits: LIMB_BITS,
            digits: Vec::new(),
            words: 0,
            sign_mask: 1,
            low_mask: 0,
            floor_value_bits: 0,
            keep: None,
            certificate: None,
        }
    }

    /// Two-sided geometric noise at `rate`, censored to outputs in `0..=range`.
    ///
    /// # Errors
    /// [`Error::Uncertifiable`] if the rate is too small for the range: three limbs do not make the
    /// floor negligible.
    pub fn two_sided(rate: &Rate, range: u64) -> Result<Self, Error> {
        Self::with_floor(rate, None, range)
    }

    /// [`Self::two_sided`] with errors small enough, and a floor that pays for them, at the rate
    /// `least` as well, which a coarser tier promises.
    fn with_floor(rate: &Rate, least: Option<&Rate>, range: u64) -> Result<Self, Error> {
        if range == 0 {
            return Ok(Self::noiseless(0));
        }
        let promised = least.unwrap_or(rate);
        // Thresholds could not resolve a rate this small: skip the computation.
        if promised.den().bits() > promised.num().bits() + HOPELESS_BITS {
            return Err(uncertifiable(promised, range));
        }
        let scale = fixed_point(rate);
        for limbs in 1..=MAX_LIMBS {
            let widths = Widths {
                limb_bits: LIMB_BITS,
                slack_bits: SLACK_BITS,
                limbs,
            };
            // The floor is too large even at a huge rate with the smallest eta.
            let value_bits = value_bits(range);
            if widths.places() < u64::from(value_bits) + 2 + floor_margin(value_bits) {
                continue;
            }
            let sampled = widths.sampled(rate)?;
            let reach = reach(range, &sampled, widths.places());
            let layout = Layout::cheapest(reach, limbs, scale);
            // The floor is too large even with the smallest eta for so many digits, since
            // tanh(rate / 2) <= rate / 2.
            let units = BigUint::from(eta(1, layout.radix_bits.len() as u64 + 1));
            let excess = u64::from(value_bits) + floor_margin(value_bits) + 1;
            if (units * promised.den()) << excess > promised.num() << widths.places() {
                continue;
            }
            let plan = Self::build(rate, sampled, least, range, &layout, &widths);
            if let Some(plan) = plan.filter(Self::floor_is_negligible) {
                assert!(
                    plan.certificate.as_ref().is_some_and(Certificate::is_small),
                    "the errors are as small as composition takes them to be"
                );
                return Ok(plan);
            }
        }
        Err(uncertifiable(promised, range))
    }

    /// Like [`Self::two_sided`] at reduced widths, with digits of these bits below the top one;
    /// `None` if this needs too large a top digit or a floor of at least one half. The sampled
    /// distribution is private, but not close to the nominal one: for tests only.
    #[doc(hidden)]
    pub fn reduced(
        rate: &Rate,
        range: u64,
        widths: &Widths,
        radix_bits: &[u32],
    ) -> Result<Option<Self>, Error> {
        Self::reduced_with_floor(rate, None, range, widths, radix_bits)
    }

    fn reduced_with_floor(
        rate: &Rate,
        least: Option<&Rate>,
        range: u64,
        widths: &Widths,
        radix_bits: &[u32],
    ) -> Result<Option<Self>, Error> {
        let sampled = widths.sampled(rate)?;
        let reach = reach(range, &sampled, widths.places());
        let layout = Layout::fit(radix_bits.to_vec(), reach);
        Ok(layout.and_then(|layout| Self::build(rate, sampled, least, range, &layout, widths)))
    }

    /// The number of trials up to the first success of probability `prob`, at most `trials`: noise
    /// that is never negative, without a zero and without a floor. The sampled distribution is
    /// within `2^-100` of this one.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 <= prob <= 1`.
    pub fn geometric(prob: f64, trials: u64) -> Result<Self, Error> {
        let (num, den) = ratio(prob)
            .filter(|(num, den)| num <= den)
            .ok_or_else(|| Error::parameter("prob", prob, "a number from 0 to 1"))?;
        if trials == 0 {
            return Err(Error::parameter(
                "trials",
                trials,
                "an integer of at least 1",
            ));
        }
        // A certain success has one output only, and no threshold to round.
        let range = if num == den { 1 } else { trials };
        let places = 2 * u64::from(LIMB_BITS);
        let (bound, scale) = match Rate::from_ratio(num.clone(), den.clone()) {
            // (1 - p)^m <= exp(-p m)
            Ok(rate) => (reach(range, &rate, places), fixed_point(&rate)),
            Err(_) => (range, u128::MAX),
        };
        let layout = Layout::cheapest(bound, 1, scale);
        let bits = places + 192;
        let ratio = Enclosure::<6>::ratio(&(&den - &num), &den, bits);
        let mut cuts = thresholds(&ratio, &layout);
        // The floor's slot has no mass, and there is no zero.
        cuts[0].insert(0, Enclosure::dyadic(&BigUint::ZERO, bits));
        let digits = cuts
            .iter()
            .zip(layout.shifts())
            .map(|(cuts, shift)| split(cuts, shift, 1, LIMB_BITS))
            .collect::<Vec<_>>();
        Ok(Self {
            range,
            limb_bits: LIMB_BITS,
            words: words(&digits),
            digits,
            sign_mask: 0,
            low_mask: u64::MAX,
            floor_value_bits: 0,
            keep: None,
            certificate: None,
        })
    }

    /// Returns `None` if these widths need a floor of at least one half, or bits beyond any limit.
    fn build(
        rate: &Rate,
        sampled: Rate,
        least: Option<&Rate>,
        range: u64,
        layout: &Layout,
        widths: &Widths,
    ) -> Option<Self> {
        // 1 - a is about equal to the rate, and powers up to 2^64 lose up to 64 bits.
        let small = least.map_or(0, Rate::magnitude).max(sampled.magnitude());
        let bits = widths.places() + small + 128;
        // A few more for sums.
        match (bits + 8).div_ceil(64) {
            0..=6 => Self::build_with::<6>(rate, sampled, least, range, layout, widths, bits),
            7 => Self::build_with::<7>(rate, sampled, least, range, layout, widths, bits),
            8..=10 => Self::build_with::<10>(rate, sampled, least, range, layout, widths, bits),
            _ => None,
        }
    }

    /// [`Self::build`] with enclosures of `N` limbs and of these bits.
    fn build_with<const N: usize>(
        rate: &Rate,
        sampled: Rate,
        least: Option<&Rate>,
        range: u64,
        layout: &Layout,
        widths: &Widths,
        bits: u64,
    ) -> Option<Self> {
        let limb_bits = u64::from(widths.limb_bits);
        let places = widths.places();
        let a = Enclosure::<N>::exp_neg(&sampled, bits);
        let half_tangent = |a: &Enclosure<N>| a.complement().div(&Enclosure::one(bits).add(a));
        let p_zero = half_tangent(&a);
        let mut cuts = thresholds(&a, layout);
        let (own, delta) = own_words(&cuts, &p_zero, least.unwrap_or(rate), widths);
        let digits = cuts.len() as u64;
        let high = own.iter().filter(|own| **own == widths.limbs).count() as u64;
        let eta = eta(high, digits);

        // The floor: eta <= g * 2^-k * tanh(rate / 2). tanh(rate / 2) = (1 - a) / (1 + a) is the
        // probability of zero, and a little smaller at the sampled rate. A coarser tier has its own.
        let floor_bits = limb_bits * (own[0] as u64 + 1);
        let floor_value_bits = value_bits(range);
        let tanh = least.map(|least| half_tangent(&Enclosure::exp_neg(least, bits)));
        let tanh = tanh.as_ref().unwrap_or(&p_zero).lo();
        assert!(tanh.bits() > 0, "the enclosure has bits for the rate");
        let need = BigUint::from(eta) << (u64::from(floor_value_bits) + bits + floor_bits);
        let floor = need.div_ceil(&(&tanh << places));
        if floor.bits() >= floor_bits {
            return None;
        }
        let floor_mass = Enclosure::dyadic(&(&floor << (bits - floor_bits)), bits);
        cuts[0] = signed(&cuts[0], &p_zero, &floor_mass);
        let digits = cuts
            .iter()
            .zip(layout.shifts())
            .zip(own)
            .map(|((cuts, shift), own)| split(cuts, shift, own, widths.limb_bits))
            .collect::<Vec<_>>();
        Some(Self {
            range,
            limb_bits: widths.limb_bits,
            words: words(&digits),
            digits,
            sign_mask: 1,
            low_mask: layout
                .radix_bits
                .first()
                .map_or(u64::MAX, |bits| (1 << bits) - 1),
            floor_value_bits,
            keep: None,
            certificate: Some(Certificate {
                nominal: rate.clone(),
                sampled,
                eta: Dyadic::new(eta, places),
                delta: Dyadic::new(delta, 2 * limb_bits),
                floor: Dyadic::new(floor, floor_bits),
                tanh: Dyadic::new(tanh, bits),
            }),
        })
    }

    fn floor_is_negligible(&self) -> bool {
        self.certificate
            .as_ref()
            .is_some_and(|Certificate { floor, .. }| {
                (floor.bits.checked_sub(floor_margin(self.floor_value_bits)))
                    .is_some_and(|bits| floor.value <= BigUint::from(1u32) << bits)
            })
    }

    /// Words of tape for one draw.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The largest output offset, `upper - lower`.
    #[must_use]
    pub fn range(&self) -> u64 {
        self.range
    }

    /// Bits of a limb: [`LIMB_BITS`] except in exhaustive tests.
    #[must_use]
    pub fn limb_bits(&self) -> u32 {
        self.limb_bits
    }

    /// The digits, least significant first; empty if there is no noise.
    #[must_use]
    pub fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// The floor's value is uniform on this many bits, censored to the range.
    #[must_use]
    pub fn floor_value_bits(&self) -> u32 {
        self.floor_value_bits
    }

    /// Of a step between tiers: the probabilities of keeping a value inside the range and one at an
    /// end, over `2^(limb_bits * limbs)`, and these limbs.
    #[must_use]
    pub fn keeps(&self) -> Option<([BigUint; 2], usize)> {
        let Keep(limbs) = self.keep.as_ref()?;
        let number = |of: usize| {
            let limbs = limbs.iter().map(|limb| limb[of]);
            limbs.fold(BigUint::ZERO, |sum, limb| (sum << self.limb_bits) + limb)
        };
        Some(([number(0), number(1)], limbs.len()))
    }

    /// Whether noise is added in both directions.
    #[must_use]
    pub fn is_two_sided(&self) -> bool {
        self.sign_mask == 1
    }

    /// The numbers that show the sampled distribution private; `None` for a plan without noise or
    /// without a floor.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }
}

/// How far the top digit must reach: to the range, or to the point beyond which the remaining mass
/// is below `2^-(places + 2)`.
fn reach(range: u64, rate: &Rate, places: u64) -> u64 {
    let num = rate.den() * (LN2_NUM * (places + 2));
    let den = rate.num() * LN2_DEN;
    let negligible: BigUint = num / den + 1u32;
    u64::try_from(negligible).unwrap_or(u64::MAX).min(range)
}

/// The absolute error in units of the thresholds (docs/proofs.md, lemma 3).
fn eta(high: u64, digits: u64) -> u64 {
    high * digits * (digits + 5) / 2 + 1
}

/// The noise scale, rounded down to [`SCALE_BITS`] binary places, for the choice of a layout.
fn fixed_point(rate: &Rate) -> u128 {
    let scale: BigUint = (rate.den() << SCALE_BITS) / rate.num();
    scale.try_into().unwrap_or(u128::MAX)
}

/// Words of one draw: the shared word, the digits' own words, and one for the floor's value if
/// there is no second digit to lend its word.
fn words(digits: &[Digit]) -> usize {
    let own: usize = digits.iter().map(|digit| digit.limbs).sum();
    1 + own.max(digits[0].limbs + 1)
}

/// The least `k` with `2^k > range`.
fn value_bits(range: u64) -> u32 {
    u64::BITS - range.leading_zeros()
}

/// A floor is negligible if its mass is at most `2^-floor_margin`.
fn floor_margin(value_bits: u32) -> u64 {
    FLOOR_MASS_BITS.max(FLOOR_MEAN_BITS + u64::from(value_bits))
}

/// The error that names a scale certain to be accepted at this range, by a crude estimate of the
/// floor: `eta < 2^18 * 2^-K` for up to 64 digits, and `tanh(rate / 2) >= rate / 4` below rate 2.
fn uncertifiable(rate: &Rate, range: u64) -> Error {
    let value_bits = value_bits(range);
    let places = u64::from(LIMB_BITS) * (MAX_LIMBS as u64 + 1);
    Error::Uncertifiable {
        scale_log2: rate.den().bits().cast_signed() - rate.num().bits().cast_signed(),
        range,
        max_scale_log2: places - 18 - u64::from(value_bits) - floor_margin(value_bits) - 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `num / 2^shift`.
    pub(super) fn rate(num: u32, shift: u64) -> Rate {
        Rate::from_ratio(num.into(), BigUint::from(1u32) << shift).unwrap()
    }

    #[test]
    fn the_suggested_scale_is_accepted() {
        for range in [1, 2, 1000, u64::from(u32::MAX), u64::MAX] {
            let Err(Error::Uncertifiable { max_scale_log2, .. }) =
                Plan::two_sided(&rate(1, 5000), range)
            else {
                panic!("a scale of 2^5000 is accepted for {range}");
            };
            assert!(
                Plan::two_sided(&rate(1, max_scale_log2), range).is_ok(),
                "{range}"
            );
            // Just above the early limit, the computation rejects the rate as well.
            assert!(
                Plan::two_sided(&rate(1, HOPELESS_BITS - 1), range).is_err(),
                "{range}"
            );
        }
    }

    #[test]
    fn a_huge_rate_is_accepted() {
        let huge = Rate::from_epsilon(f64::MAX, 1).unwrap();
        for range in [1, 1000, u64::MAX] {
            let plan = Plan::two_sided(&huge, range).unwrap();
            assert_eq!(plan.digits().len(), 1);
        }
    }

    #[test]
    fn low_digits_save_words() {
        // Unbounded 64-bit counts: all but the top digits take one word.
        let plan = Plan::two_sided(&rate(1, 10), u64::MAX).unwrap();
        let low = plan
            .digits()
            .iter()
            .filter(|digit| digit.limbs == 1)
            .count();
        assert!(low + 2 >= plan.digits().len() && low > 0, "{low}");
        assert_eq!(plan.digits().last().map(|digit| digit.limbs), Some(2));
    }

    /// The least reach beyond which the mass is at most `2^-(places + 2)`, or the range minus one.
    #[test]
    fn reach_is_minimal() {
        for (scale, places) in [(1.0, 126), (0.3, 126), (40.0, 189), (1e6, 252), (0.01, 4)] {
            let rate = Rate::from_scale(scale).unwrap();
            let least = reach(u64::MAX, &rate, places);
            let mass = |steps: u64| {
                let times = Rate::from_ratio(rate.num() * steps, rate.den().clone()).unwrap();
                Enclosure::<8>::exp_neg(&times, 400)
            };
            let limit = BigUint::from(1u32) << (400 - places - 2);
            assert!(mass(least).hi() <= limit, "{scale}");
            assert!(least == 1 || mass(least - 1).lo() > limit, "{scale}");
            assert_eq!(reach(least - 1, &rate, places), least - 1);
            assert_eq!(reach(least, &rate, places), least);
            assert_eq!(reach(least + 1, &rate, places), least);
        }
        assert_eq!(reach(u64::MAX, &rate(1, 100), 126), u64::MAX);
    }

    /// The cost of a draw changes only on purpose: digits, digits with one own word, words in
    /// total, and thresholds.
    #[test]
    fn cost_of_a_draw() {
        for (scale, range, expected) in [
            (0.1, u64::MAX, (2, 1, 4, 9)),
            (1.0, 1, (1, 1, 3, 3)),
            (1.0, 1000, (2, 2, 3, 23)),
            (1.0, u64::MAX, (2, 1, 4, 26)),
            (10.0, 255, (2, 2, 3, 41)),
            (10.0, u64::MAX, (3, 2, 5, 46)),
            (1000.0, 1_000_000, (4, 4, 5, 85)),
            (1000.0, u64::MAX, (4, 3, 6, 88)),
            (1e6, 1_000_000, (4, 4, 5, 126)),
            (1e6, u64::MAX, (6, 5, 8, 149)),
            (1e9, u64::MAX, (8, 7, 10, 211)),
            (1e12, u64::MAX, (11, 10, 14, 255)),
            (1e15, u64::MAX, (12, 10, 16, 337)),
        ] {
            let plan = Plan::two_sided(&Rate::from_scale(scale).unwrap(), range).unwrap();
            let low = plan.digits().iter().filter(|digit| digit.limbs == 1);
            let thresholds = plan
                .digits()
                .iter()
                .map(|digit| digit.thresholds.len())
                .sum::<usize>();
            let seen = (plan.digits().len(), low.count(), plan.words(), thresholds);
            assert_eq!(seen, expected, "scale {scale}, range {range}");
        }
    }

    /// `P(D_j < k)` of docs/proofs.md, lemma 1, as exact rationals with small powers of `1 - p`.
    #[test]
    fn geometric_thresholds_match_the_distribution() {
        let unit = BigUint::from(1u32) << 126u32;
        for (prob, trials) in [
            (1.0, 5),
            (0.5, 1),
            (0.5, 2),
            (0.5, 40),
            (0.5, u64::MAX),
            (0.75, 100),
            (0.999, 1000),
            (0.1, 33),
            (0.1, 100),
            (0.1, u64::MAX),
            (0.0, 7),
        ] {
            let plan = Plan::geometric(prob, trials).unwrap();
            assert!(!plan.is_two_sided() && plan.certificate().is_none());
            let range = if prob == 1.0 { 1 } else { trials };
            assert_eq!((plan.range(), plan.limb_bits()), (range, LIMB_BITS));
            let (num, den) = ratio(prob).unwrap();
            let fails = |power: u64| {
                let power = u32::try_from(power).unwrap();
                ((&den - &num).pow(power), den.pow(power))
            };
            let last = plan.digits().len() - 1;
            let mut weight = 1;
            for (j, digit) in plan.digits().iter().enumerate() {
                assert_eq!((digit.weight(), digit.limbs()), (weight, 1));
                let cuts = digit.thresholds(LIMB_BITS);
                assert_eq!(cuts.len(), digit.thresholds.len());
                let cuts = if j == 0 {
                    assert_eq!(cuts[0], BigUint::ZERO);
                    &cuts[1..]
                } else {
                    &cuts[..]
                };
                let radix = cuts.len() as u64 + 1;
                for (k, cut) in (1..).zip(cuts) {
                    // 1 - q^(k B), over 1 - q^(R B) below the top.
                    let (part, whole) = fails(k * weight);
                    let (rest, all) = fails(radix * weight);
                    let (num, den) = if j == last {
                        (&whole - part, whole)
                    } else {
                        ((&whole - part) * &all, (&all - rest) * whole)
                    };
                    let (exact, cut) = (num * &unit, cut * &den);
                    let error = exact.clone().max(cut.clone()) - exact.min(cut);
                    assert!(error <= den, "{prob} {trials}: digit {j}, {k}");
                }
                if j == last {
                    let (tail, whole) = fails((radix - 1) * weight);
                    let reached = (radix - 1) * weight >= range;
                    assert!(reached || tail << 128u32 <= whole, "{prob} {trials}");
                }
                weight *= radix;
            }
        }
    }

    /// The estimate at [`uncertifiable`]: four limbs minus 18 bits for eta, the bits of the value,
    /// the margin of the floor and three for the tangent.
    #[test]
    fn uncertifiable_error_names_both_scales() {
        for (range, most) in [
            (1, 252 - 18 - 1 - 52 - 3),
            (1000, 252 - 18 - 10 - 52 - 3),
            (u64::MAX, 252 - 18 - 64 - 84 - 3),
        ] {
            assert_eq!(
                Plan::two_sided(&rate(5, 5000), range),
                Err(Error::Uncertifiable {
                    scale_log2: 4998,
                    range,
                    max_scale_log2: most,
                })
            );
        }
    }

    #[test]
    fn a_certain_outcome_has_the_largest_threshold() {
        let huge = Rate::from_epsilon(f64::MAX, 1).unwrap();
        let widths = Widths {
            limb_bits: LIMB_BITS,
            slack_bits: SLACK_BITS,
            limbs: 1,
        };
        let plan = Plan::reduced(&huge, 1000, &widths, &[1]).unwrap().unwrap();
        let digit = &plan.digits()[1];
        let largest = (BigUint::from(1u32) << 126u32) - 1u32;
        assert_eq!(digit.thresholds(LIMB_BITS), [largest]);
        assert_eq!(digit.thresholds[0][..2], [(1 << 63) - 1; 2]);
    }
}
