//! Public parameters to thresholds: everything about a draw that does not depend on a secret.
//!
//! The noise is drawn digit by digit, as `docs/proofs.md` explains: `m = |Z|`, `G = m - 1`, and the
//! digits of `G` in a radix that is a power of two are independent. A plan lists, for each digit,
//! the thresholds with which a uniform number is compared; their number, like all that is in a
//! plan, is public.

use crate::Error;
pub use crate::digit::Digit;
use crate::digit::Search;
use crate::dyadic::{Round, to_f64};
use crate::enclosure::Enclosure;
use crate::rate::{Rate, ratio};
use num_bigint::BigUint;
use num_integer::Integer;

/// Bits of a limb at full width. One less than a word, so that differences keep their sign.
pub const LIMB_BITS: u32 = 63;
/// The sampled rate falls short of the nominal one by this power of two, where low digits need it.
const SLACK_BITS: u32 = 54;
/// Most own words that a digit may have.
const MAX_LIMBS: usize = 3;
/// Largest radix of the top digit, which need not be a power of two.
const MAX_TOP_RADIX: usize = 32;
/// A floor of mass `g` on values below `2^k` may move the mean error by `g * 2^k <= 2^-20`.
const FLOOR_MEAN_BITS: u64 = 20;
/// `g <= 2^-52`, so that the total variation stays below `2^-50` (docs/proofs.md, theorem 3).
const FLOOR_MASS_BITS: u64 = 52;
/// With three limbs the floor is above its limit for every rate below two to minus this.
const HOPELESS_BITS: u64 = 200;
/// ln 2, rounded up, over [`LN2_DEN`].
const LN2_NUM: u64 = 6_931_471_806;
const LN2_DEN: u64 = 10_000_000_000;

/// Why the law that a plan samples is private at the nominal rate (docs/proofs.md, theorem 2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The rate that the caller asked for and that the privacy map promises.
    pub nominal: Rate,
    /// The rate from which the thresholds were computed; at most the nominal one.
    pub sampled: Rate,
    /// Absolute error of an output's probability, in units of `2^-eta_bits`.
    pub eta: u64,
    /// See `eta`.
    pub eta_bits: u64,
    /// Relative error of an output's probability, in units of `2^-delta_bits`.
    pub delta: BigUint,
    /// See `delta`.
    pub delta_bits: u64,
    /// Mass of the uniform floor, in units of `2^-floor_bits`.
    pub floor: BigUint,
    /// See `floor`.
    pub floor_bits: u64,
    /// A lower bound of `tanh(rate / 2)`, in units of `2^-tanh_bits`.
    pub tanh: BigUint,
    /// See `tanh`.
    pub tanh_bits: u64,
}

impl Proof {
    /// A bound, rounded up, on the total variation between the sampled law and the nominal one
    /// (docs/proofs.md, theorem 3): `3/2 g + delta + (nominal - sampled) / nominal`.
    #[must_use]
    pub fn total_variation(&self) -> f64 {
        let common =
            (self.sampled.den() * self.nominal.num()) << (self.floor_bits + self.delta_bits + 1);
        let floor = (&self.floor * 3u32) << self.delta_bits;
        let delta = &self.delta << (self.floor_bits + 1);
        let full = self.sampled.den() * self.nominal.num();
        let short = &full - self.sampled.num() * self.nominal.den();
        let sum = (floor + delta) * &full + (short << (self.floor_bits + self.delta_bits + 1));
        to_f64(&sum, &common, Round::Up)
    }
}

/// Public instructions for the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub(crate) range: u64,
    pub(crate) limb_bits: u32,
    /// Least significant first. Empty: no noise.
    pub(crate) digits: Vec<Digit>,
    /// Words of tape for one draw; kept, so that the kernel need not add them up for every block.
    pub(crate) words: usize,
    /// The shared word's bit that gives the sign: 1, or 0 when noise goes up only.
    pub(crate) sign_mask: u64,
    /// Bits of the value that replaces the output in the floor's slot.
    pub(crate) floor_value_bits: u32,
    proof: Option<Proof>,
}

/// Word widths, reduced by the exhaustive tests so that every tape can be tried.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Bits of a limb.
    pub limb_bits: u32,
    /// By `2^-slack_bits` of itself the rate is slackened where there may be low digits.
    pub slack_bits: u32,
    /// Own words of a high digit; low ones have one.
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

/// Where the digits lie.
#[derive(Clone, Debug)]
struct Layout {
    /// The digits below the top one are in radix two to these powers.
    radix_bits: Vec<u32>,
    top_radix: usize,
}

impl Layout {
    /// The layout with so many bits in lower digits, as evenly as can be, and its top digit just large
    /// enough: `(top_radix - 1) * weight >= reach`.
    fn fit(bits: u32, lower: u32, reach: u64) -> Option<Self> {
        if bits >= 64 {
            return None;
        }
        let top_radix = usize::try_from(reach.div_ceil(1 << bits))
            .ok()?
            .checked_add(1)?;
        (top_radix <= MAX_TOP_RADIX).then(|| Self {
            radix_bits: (0..lower).map(|j| (bits + lower - 1 - j) / lower).collect(),
            top_radix,
        })
    }

    /// The layout of least cost.
    fn cheapest(reach: u64, limbs: usize) -> Self {
        // With more bits, nothing would be left for the top digit.
        let most = u64::BITS - reach.leading_zeros();
        let layouts = (1..=4).flat_map(|radix_bits| {
            (0..=most).filter_map(move |bits| Self::fit(bits, bits.div_ceil(radix_bits), reach))
        });
        let Some(layout) = layouts.min_by_key(|layout| layout.cost(reach, limbs)) else {
            unreachable!("with 63 bits below it, a top digit of radix 3 reaches 2^64")
        };
        layout
    }

    /// The digits step by two to this power: those below the top one, and the top one.
    fn shifts(&self) -> Vec<u32> {
        let mut shifts = vec![0];
        for bits in &self.radix_bits {
            shifts.push(shifts[shifts.len() - 1] + bits);
        }
        shifts
    }

    /// About what a draw takes, in comparisons of a limb by the AVX-512 back end: a word of keystream
    /// costs fourteen rounds of AES, each as much as a comparison, and its way to the kernel.
    fn cost(&self, reach: u64, limbs: usize) -> usize {
        const WORD: usize = 15;
        let digit = |j: usize, thresholds: usize, own: usize| {
            // Digit 0 has two more outcomes.
            let thresholds = thresholds + if j == 0 { 2 } else { 0 };
            own * WORD + (own + 1) * Search::cost(thresholds)
        };
        let lower = self.radix_bits.iter().zip(self.shifts()).enumerate();
        let costs = lower.map(|(j, (bits, shift))| {
            let last = (1usize << bits) - 1;
            // Digits whose last value is rare are going to be high ones, about.
            let rare = (last as u128) << shift > u128::from(reach / 3);
            digit(j, last, if rare { limbs } else { 1 })
        });
        costs.sum::<usize>() + digit(self.radix_bits.len(), self.top_radix - 1, limbs)
    }
}

impl Plan {
    /// The plan that clamps and adds nothing: scale 0, or bounds that leave one output.
    #[must_use]
    pub fn noiseless(range: u64) -> Self {
        Self {
            range,
            limb_bits: LIMB_BITS,
            digits: Vec::new(),
            words: 0,
            sign_mask: 1,
            floor_value_bits: 0,
            proof: None,
        }
    }

    /// Two-sided geometric noise at `rate`, censored to outputs in `0..=range`.
    ///
    /// # Errors
    /// [`Error::Uncertifiable`] if the rate is so small for the range that three limbs do not
    /// suffice for a negligible floor.
    pub fn two_sided(rate: &Rate, range: u64) -> Result<Self, Error> {
        if range == 0 {
            return Ok(Self::noiseless(0));
        }
        // No use to compute thresholds of a rate that is far below what they could resolve.
        if rate.den().bits() > rate.num().bits() + HOPELESS_BITS {
            return Err(uncertifiable(rate, range));
        }
        for limbs in 1..=MAX_LIMBS {
            let widths = Widths {
                limb_bits: LIMB_BITS,
                slack_bits: SLACK_BITS,
                limbs,
            };
            // Even at a huge rate, and for the least eta, the floor is too large.
            let value_bits = value_bits(range);
            if widths.places() < u64::from(value_bits) + 2 + floor_margin(value_bits) {
                continue;
            }
            let sampled = widths.sampled(rate)?;
            let reach = reach(range, &sampled, widths.places());
            let layout = Layout::cheapest(reach, limbs);
            let plan = Self::build(rate, sampled, range, &layout, &widths);
            if let Some(plan) = plan.filter(Self::floor_is_negligible) {
                return Ok(plan);
            }
        }
        Err(uncertifiable(rate, range))
    }

    /// The same at reduced widths, with `lower` digits in radix `2^radix_bits` below the top one;
    /// `None` if that takes too large a top digit or a floor of one half. The law is private, but not
    /// close to the nominal one: this serves tests alone.
    #[doc(hidden)]
    pub fn reduced(
        rate: &Rate,
        range: u64,
        widths: &Widths,
        radix_bits: u32,
        lower: u32,
    ) -> Result<Option<Self>, Error> {
        let sampled = widths.sampled(rate)?;
        let reach = reach(range, &sampled, widths.places());
        let layout = Layout::fit(radix_bits * lower, lower, reach);
        Ok(layout.and_then(|layout| Self::build(rate, sampled, range, &layout, widths)))
    }

    /// The number of trials up to the first success of probability `prob`, at most `trials`: noise
    /// that goes up only, without a zero and without a floor. The law is within `2^-100` of this.
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
        // A sure success leaves one output, and no threshold to round.
        let range = if num == den { 1 } else { trials };
        let places = 2 * u64::from(LIMB_BITS);
        let bound = match Rate::from_ratio(num.clone(), den.clone()) {
            // (1 - p)^m <= exp(-p m)
            Ok(rate) => reach(range, &rate, places),
            Err(_) => range - 1,
        };
        let layout = Layout::cheapest(bound, 1);
        let bits = places + 192;
        let ratio = Enclosure::ratio(&(&den - &num), &den, bits);
        let zero = Enclosure::dyadic(BigUint::ZERO, bits);
        let digits = thresholds(&ratio, &layout)
            .into_iter()
            .zip(layout.shifts())
            .map(|(mut cuts, shift)| {
                if shift == 0 {
                    // Neither the floor's slot nor the zero has any mass.
                    cuts.splice(0..0, [zero.clone(), zero.clone()]);
                }
                split(&cuts, shift, 1, LIMB_BITS)
            })
            .collect::<Vec<_>>();
        Ok(Self {
            range,
            limb_bits: LIMB_BITS,
            words: words(&digits),
            digits,
            sign_mask: 0,
            floor_value_bits: 0,
            proof: None,
        })
    }

    /// `None` if the widths leave no floor below one half.
    fn build(
        rate: &Rate,
        sampled: Rate,
        range: u64,
        layout: &Layout,
        widths: &Widths,
    ) -> Option<Self> {
        let limb_bits = u64::from(widths.limb_bits);
        let places = widths.places();
        // 1 - a is about the rate, and powers up to 2^64 lose up to 64 bits.
        let small = sampled.den().bits().saturating_sub(sampled.num().bits());
        let bits = places + small + 128;
        let a = Enclosure::exp_neg(&sampled, bits);
        let one = Enclosure::one(bits);
        let p_zero = a.complement().div(&one.add(&a));
        let cuts = thresholds(&a, layout);

        let (low, delta) = if widths.limbs > 1 {
            low_digits(&cuts, &p_zero, rate, widths)
        } else {
            (0, BigUint::ZERO)
        };
        let (digits, high) = (cuts.len() as u64, (cuts.len() - low) as u64);
        // docs/proofs.md, lemma 3.
        let eta = high * digits * (digits + 3) / 2 + 4;

        // The floor: eta <= g * 2^-k * tanh(rate / 2), and tanh(rate / 2) = (1 - a) / (1 + a), which
        // is the probability of zero, and a little smaller at the sampled rate.
        let floor_bits = if low > 0 { 2 * limb_bits } else { places };
        let floor_value_bits = value_bits(range);
        let tanh = p_zero.lo().clone();
        assert!(tanh.bits() > 0, "the enclosure has bits for the rate");
        let need = BigUint::from(eta) << (u64::from(floor_value_bits) + bits + floor_bits);
        let floor = need.div_ceil(&(&tanh << places));
        if floor.bits() >= floor_bits {
            return None;
        }
        let floor_mass = Enclosure::dyadic(&floor << (bits - floor_bits), bits);
        let rest = floor_mass.complement();

        let digits = cuts
            .into_iter()
            .zip(layout.shifts())
            .enumerate()
            .map(|(j, (mut cuts, shift))| {
                if j == 0 {
                    // Floor, zero, then the digit's values, on the same uniform number.
                    let positive = p_zero.complement();
                    for cut in &mut cuts {
                        *cut = floor_mass.add(&rest.mul(&p_zero.add(&positive.mul(cut))));
                    }
                    let zero = floor_mass.add(&rest.mul(&p_zero));
                    cuts.splice(0..0, [floor_mass.clone(), zero]);
                }
                let limbs = if j < low { 1 } else { widths.limbs };
                split(&cuts, shift, limbs, widths.limb_bits)
            })
            .collect::<Vec<_>>();
        Some(Self {
            range,
            limb_bits: widths.limb_bits,
            words: words(&digits),
            digits,
            sign_mask: 1,
            floor_value_bits,
            proof: Some(Proof {
                nominal: rate.clone(),
                sampled,
                eta,
                eta_bits: places,
                delta,
                delta_bits: 2 * limb_bits,
                floor,
                floor_bits,
                tanh,
                tanh_bits: bits,
            }),
        })
    }

    fn floor_is_negligible(&self) -> bool {
        self.proof.as_ref().is_some_and(|proof| {
            proof
                .floor_bits
                .checked_sub(floor_margin(self.floor_value_bits))
                .is_some_and(|bits| proof.floor <= BigUint::from(1u32) << bits)
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

    /// Bits of a limb: [`LIMB_BITS`] but in exhaustive tests.
    #[must_use]
    pub fn limb_bits(&self) -> u32 {
        self.limb_bits
    }

    /// The digits, least significant first; none if there is no noise.
    #[must_use]
    pub fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// The floor's value is uniform on this many bits, censored to the range.
    #[must_use]
    pub fn floor_value_bits(&self) -> u32 {
        self.floor_value_bits
    }

    /// Whether the noise goes both ways.
    #[must_use]
    pub fn is_two_sided(&self) -> bool {
        self.sign_mask == 1
    }

    /// Why the sampled law is private; none for a plan without noise or without a floor.
    #[must_use]
    pub fn proof(&self) -> Option<&Proof> {
        self.proof.as_ref()
    }
}

/// How far the top digit must reach: to the range, or to where the mass left is below
/// `2^-(places + 2)`.
fn reach(range: u64, rate: &Rate, places: u64) -> u64 {
    let num = rate.den() * (LN2_NUM * (places + 2));
    let den = rate.num() * LN2_DEN;
    let negligible: BigUint = num / den + 1u32;
    u64::try_from(negligible)
        .unwrap_or(u64::MAX)
        .min(range.saturating_sub(1))
}

/// The shared word, the digits' own, and one for the floor's value if there is no second digit whose
/// word is free to serve.
fn words(digits: &[Digit]) -> usize {
    let own: usize = digits.iter().map(|digit| digit.limbs).sum();
    1 + own.max(digits[0].limbs + 1)
}

/// The inner cuts of each digit's values on the unit interval, least significant digit first:
/// lower digits are geometric on `0..2^radix_bits`, the top digit is censored.
fn thresholds(a: &Enclosure, layout: &Layout) -> Vec<Vec<Enclosure>> {
    let mut digits = Vec::new();
    let mut ratio = a.clone();
    for radix_bits in &layout.radix_bits {
        let mut sums = vec![Enclosure::one(a.bits())];
        let mut power = Enclosure::one(a.bits());
        for _ in 1..1u32 << radix_bits {
            power = power.mul(&ratio);
            let sum = sums[sums.len() - 1].add(&power);
            sums.push(sum);
        }
        // One division for all of them.
        let share = Enclosure::one(a.bits()).div(&sums.remove(sums.len() - 1));
        digits.push(sums.iter().map(|sum| sum.mul(&share)).collect());
        ratio = power.mul(&ratio);
    }
    let mut power = Enclosure::one(a.bits());
    let mut top = Vec::new();
    for _ in 1..layout.top_radix {
        power = power.mul(&ratio);
        top.push(power.complement());
    }
    digits.push(top);
    digits
}

/// How many digits from the bottom can do with one own word, and the relative error `delta` that
/// this causes, in units of `2^-(2 * limb_bits)`: the slack in the rate must cover `3 * delta`
/// (docs/proofs.md, lemma 3 and theorem 2).
fn low_digits(
    cuts: &[Vec<Enclosure>],
    p_zero: &Enclosure,
    rate: &Rate,
    widths: &Widths,
) -> (usize, BigUint) {
    let one = Enclosure::one(p_zero.bits());
    let unit = BigUint::from(1u32) << (2 * widths.limb_bits);
    let covered = |delta: &BigUint| {
        let triple = (delta * 3u32) << widths.slack_bits;
        triple <= unit && triple * rate.den() <= rate.num() * &unit
    };
    let (mut delta, mut inverses) = (BigUint::ZERO, BigUint::ZERO);
    for (j, digit) in cuts[..cuts.len() - 1].iter().enumerate() {
        // The last value is the least likely one.
        let mut least = digit[digit.len() - 1].complement();
        if j == 0 {
            least = p_zero.complement().mul(&least);
            if p_zero.lo() < least.lo() {
                least = p_zero.clone();
            }
        }
        // least >= 2^-e; one more bit for the factor 1 - g of digit 0.
        let e = one.lo().bits() - least.lo().bits() + u64::from(j == 0);
        let inverse = BigUint::from(1u32) << e;
        let next = &delta + (&inverse << 1u32) + ((&inverse * &inverses) << 3u32);
        let sum = &inverses + inverse;
        if least.lo().bits() == 0 || !covered(&next) || sum.bits() > u64::from(widths.limb_bits) - 2
        {
            return (j, delta);
        }
        (delta, inverses) = (next, sum);
    }
    (cuts.len() - 1, delta)
}

/// Rounds the cuts to `limb_bits * (limbs + 1)` bits and splits them into limbs.
fn split(cuts: &[Enclosure], shift: u32, limbs: usize, limb_bits: u32) -> Digit {
    let places = u64::from(limb_bits) * (limbs as u64 + 1);
    let largest = (BigUint::from(1u32) << places) - 1u32;
    let mask = (BigUint::from(1u32) << limb_bits) - 1u32;
    let mut thresholds = Vec::with_capacity(cuts.len() * (limbs + 1));
    for cut in cuts {
        let Some(rounded) = cut.round(places) else {
            unreachable!("an enclosure has more than 100 bits beyond its threshold")
        };
        let rounded = rounded.min(largest.clone());
        for limb in (0..=limbs as u64).rev() {
            let limb = (&rounded >> (u64::from(limb_bits) * limb)) & &mask;
            thresholds.push(limb.iter_u64_digits().next().unwrap_or(0));
        }
    }
    Digit::new(shift, limbs, thresholds)
}

/// The least `k` with `2^k > range`.
fn value_bits(range: u64) -> u32 {
    u64::BITS - range.leading_zeros()
}

/// A floor is negligible if its mass is at most two to minus this.
fn floor_margin(value_bits: u32) -> u64 {
    FLOOR_MASS_BITS.max(FLOOR_MEAN_BITS + u64::from(value_bits))
}

/// A scale that is certain to be accepted at this range, by the crudest estimate of the floor:
/// `eta < 2^18 * 2^-K` for up to 64 digits, and `tanh(rate / 2) >= rate / 4` below rate 2.
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

    fn rate(num: u32, shift: u64) -> Rate {
        Rate::from_ratio(num.into(), BigUint::from(1u32) << shift).unwrap()
    }

    #[test]
    fn the_scale_that_a_refusal_names_is_accepted() {
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
            // Nor is what is refused without a computation far from what is refused by one.
            assert!(
                Plan::two_sided(&rate(1, HOPELESS_BITS - 1), range).is_err(),
                "{range}"
            );
        }
    }

    #[test]
    fn a_huge_rate_is_nothing_special() {
        let huge = Rate::from_epsilon(f64::MAX, 1).unwrap();
        for range in [1, 1000, u64::MAX] {
            let plan = Plan::two_sided(&huge, range).unwrap();
            assert_eq!(plan.digits().len(), 1);
        }
    }

    #[test]
    fn low_digits_spare_words() {
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

    /// The bound that theorem 3 states, of proofs whose numbers can be added by hand.
    #[test]
    fn total_variation_is_the_stated_sum_rounded_up() {
        let plan = Plan::two_sided(&rate(1, 3), 10).unwrap();
        let with = |nominal, sampled, floor: (u32, u64), delta: (u32, u64)| Proof {
            nominal,
            sampled,
            floor: floor.0.into(),
            floor_bits: floor.1,
            delta: delta.0.into(),
            delta_bits: delta.1,
            ..plan.proof().unwrap().clone()
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

    fn layout(radix_bits: u32, lower: usize, top_radix: usize) -> Layout {
        Layout {
            radix_bits: vec![radix_bits; lower],
            top_radix,
        }
    }

    /// 15 for each own word; for each limb one for a threshold by itself, two for a level of the tree.
    #[test]
    fn the_cost_of_a_layout() {
        // Five digits in radix 4, of which the last value of the one at 4^4 is rare; radix 9 on top.
        // Thresholds: 5, 3, 3, 3 of two limbs in 3, 2, 2, 2 levels; 3 and 8 of three, in 2 and 3 and one
        // by itself.
        let limbs = 2 * (6 + 3 * 4) + 3 * (4 + 7);
        assert_eq!(layout(2, 5, 9).cost(2000, 2), 8 * 15 + limbs);
        // 3 * 4^4 is not more than a third of 2304.
        let limbs = 2 * (6 + 4 * 4) + 3 * 7;
        assert_eq!(layout(2, 5, 9).cost(2304, 2), 7 * 15 + limbs);
        // One word for each digit.
        let limbs = 2 * (6 + 4 * 4 + 7);
        assert_eq!(layout(2, 5, 9).cost(2000, 1), 6 * 15 + limbs);
        // The top digit alone, of three words: three thresholds of four limbs.
        assert_eq!(layout(1, 0, 2).cost(1, 3), 3 * 15 + 4 * 4);
    }

    #[test]
    fn a_layout_reaches_as_far_as_it_must() {
        let fit = |radix_bits, lower, reach| {
            Layout::fit(radix_bits * lower, lower, reach).map(|layout| layout.top_radix)
        };
        assert_eq!(fit(1, 0, 0), Some(1));
        assert_eq!(fit(2, 3, 64), Some(2));
        assert_eq!(fit(2, 3, 65), Some(3));
        assert_eq!(fit(1, 0, MAX_TOP_RADIX as u64 - 1), Some(MAX_TOP_RADIX));
        assert_eq!(fit(1, 0, MAX_TOP_RADIX as u64), None);
        assert_eq!(fit(4, 15, u64::MAX), Some(17));
        assert_eq!(fit(4, 16, 1), None);
        assert_eq!(fit(1, 63, u64::MAX), Some(3));
        let uneven = Layout::fit(14, 4, 100_000).unwrap();
        assert_eq!(uneven.radix_bits, [4, 4, 3, 3]);
        assert_eq!(uneven.shifts(), [0, 4, 8, 11, 14]);
        assert_eq!(uneven.top_radix, 8);
    }

    /// The least reach beyond which the mass is at most `2^-(places + 2)`, or the range less one.
    #[test]
    fn reach_is_the_least_that_suffices() {
        for (scale, places) in [(1.0, 126), (0.3, 126), (40.0, 189), (1e6, 252), (0.01, 4)] {
            let rate = Rate::from_scale(scale).unwrap();
            let least = reach(u64::MAX, &rate, places);
            let mass = |steps: u64| {
                let times = Rate::from_ratio(rate.num() * steps, rate.den().clone()).unwrap();
                Enclosure::exp_neg(&times, 400)
            };
            let limit = Enclosure::dyadic(BigUint::from(1u32) << (400 - places - 2), 400);
            assert!(mass(least).hi() <= limit.lo(), "{scale}");
            assert!(least == 1 || mass(least - 1).lo() > limit.hi(), "{scale}");
            assert_eq!(reach(least, &rate, places), least - 1);
            assert_eq!(reach(least + 1, &rate, places), least);
            assert_eq!(reach(least + 2, &rate, places), least);
        }
        assert_eq!(reach(0, &rate(1, 0), 126), 0);
        assert_eq!(reach(u64::MAX, &rate(1, 100), 126), u64::MAX - 1);
    }

    /// Each condition of lemma 3 and theorem 2 on low digits, where it holds with equality or just fails.
    #[test]
    fn low_digits_up_to_each_limit() {
        let bits = 200;
        let part = |e: u64| Enclosure::dyadic(BigUint::from(1u32) << (bits - e), bits);
        let half = part(1);
        // The plan's own `e` is 2 for the zero, and `e` for the last value of digit 0, if that is more.
        let first = |e: u64| vec![part(e - 2).complement()];
        let next = |e: u64| vec![half.clone(), part(e).complement()];
        let low = |cuts: &[Vec<Enclosure>], rate: &Rate, limb_bits, slack_bits| {
            let widths = Widths {
                limb_bits,
                slack_bits,
                limbs: 2,
            };
            let mut cuts = cuts.to_vec();
            cuts.push(vec![half.clone()]);
            low_digits(&cuts, &half, rate, &widths)
        };
        let power = |e: u32| BigUint::from(1u32) << e;
        let none = (0, BigUint::ZERO);
        let one = rate(1, 0);

        // 3 * 2^(1 + e) * 2^30 is at most 2^40, and at most the rate's part of that.
        assert_eq!(low(&[first(7)], &one, 20, 30), (1, power(8)));
        assert_eq!(low(&[first(8)], &one, 20, 30), none);
        assert_eq!(low(&[first(5)], &rate(1, 2), 20, 30), (1, power(6)));
        assert_eq!(low(&[first(6)], &rate(1, 2), 20, 30), none);
        assert_eq!(low(&[first(7)], &rate(4, 0), 20, 30), (1, power(8)));
        assert_eq!(low(&[first(8)], &rate(4, 0), 20, 30), none);
        // With equality at the rate 3/4.
        assert_eq!(low(&[first(7)], &rate(3, 2), 20, 30), (1, power(8)));
        assert_eq!(low(&[first(7)], &rate(2, 2), 20, 30), none);

        // The sum of 2^e is below 2^(10 - 2).
        assert_eq!(low(&[first(7)], &one, 10, 0), (1, power(8)));
        assert_eq!(low(&[first(8)], &one, 10, 0), none);
        let two = power(7) + power(7) + power(3 + 12);
        assert_eq!(low(&[first(6), next(6)], &one, 10, 0), (2, two.clone()));
        assert_eq!(low(&[first(6), next(6), next(7)], &one, 10, 0), (2, two));
        assert_eq!(low(&[first(7), next(7)], &one, 10, 0), (1, power(8)));

        // Singles and pairs of three digits; the zero is the least likely value of digit 0.
        let three = power(3) + power(4) + power(5) + power(8) + power(9) + power(10);
        assert_eq!(
            low(&[first(2), next(3), next(4)], &one, 30, 0),
            (3, three.clone())
        );
        // A value of no probability, below others that have some.
        let certain = vec![Enclosure::one(bits)];
        let digits = [first(2), next(3), next(4), certain, next(3)];
        assert_eq!(low(&digits, &one, 30, 0), (3, three));
    }

    /// What a draw takes may change on purpose only: digits, those with one own word, words in all,
    /// and thresholds.
    #[test]
    fn what_a_draw_takes() {
        for (scale, range, expected) in [
            (0.1, u64::MAX, (1, 0, 4, 16)),
            (1.0, 1, (1, 1, 3, 2)),
            (1.0, 1000, (2, 2, 3, 21)),
            (1.0, u64::MAX, (2, 1, 4, 26)),
            (10.0, 255, (2, 2, 3, 33)),
            (1000.0, 1_000_000, (4, 4, 5, 69)),
            (1000.0, u64::MAX, (5, 4, 7, 59)),
            (1e6, 1_000_000, (5, 5, 6, 78)),
            (1e6, u64::MAX, (7, 6, 9, 100)),
            (1e15, u64::MAX, (15, 0, 46, 209)),
        ] {
            let plan = Plan::two_sided(&Rate::from_scale(scale).unwrap(), range).unwrap();
            let low = plan.digits().iter().filter(|digit| digit.limbs == 1);
            let thresholds = plan.digits().iter().map(|digit| digit.count).sum::<usize>();
            let seen = (plan.digits().len(), low.count(), plan.words(), thresholds);
            assert_eq!(seen, expected, "scale {scale}, range {range}");
        }
    }

    /// `P(D_j < k)` of docs/proofs.md, lemma 1, as exact rationals: `1 - p` to small powers.
    #[test]
    fn geometric_thresholds_are_those_of_the_law() {
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
            assert!(!plan.is_two_sided() && plan.proof().is_none());
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
                assert_eq!(cuts.len(), digit.count);
                let cuts = if j == 0 {
                    assert_eq!(cuts[..2], [BigUint::ZERO, BigUint::ZERO]);
                    &cuts[2..]
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
                    let (left, of) = fails((radix - 1) * weight);
                    let reached = (radix - 1) * weight >= range - 1;
                    assert!(reached || left << 128u32 <= of, "{prob} {trials}");
                }
                weight *= radix;
            }
        }
    }

    /// By the estimate at [`uncertifiable`]: four limbs less 18 bits for eta, those of the value, the
    /// margin of the floor and three for the tangent.
    #[test]
    fn a_refusal_names_both_scales() {
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
    fn a_certain_outcome_is_stored_as_the_largest_threshold() {
        let huge = Rate::from_epsilon(f64::MAX, 1).unwrap();
        let plan = Plan::two_sided(&huge, 1000).unwrap();
        let digit = &plan.digits()[0];
        let largest = (BigUint::from(1u32) << 126u32) - 1u32;
        assert_eq!(digit.thresholds(LIMB_BITS).last(), Some(&largest));
        assert_eq!(digit.thresholds.last(), Some(&((1 << 63) - 1)));
    }
}
