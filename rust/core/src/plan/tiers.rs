//! The plans of a table's tiers: an ordinary draw for the finest one, and from each tier a step to
//! the next coarser one (docs/proofs.md, section 20).

use super::thresholds::split;
use super::{LIMB_BITS, MAX_LIMBS, Plan, Widths};
use crate::Error;
use crate::params::dyadic::{Dyadic, Round, to_f64};
use crate::params::enclosure::Enclosure;
use crate::params::rate::Rate;
use num_bigint::BigUint;
use num_integer::Integer;

/// The most tiers of one table.
pub const MAX_TIERS: usize = 8;
/// Each step takes this part of the smallest rate, `2^-KEEP_SLACK_BITS`, for the relative error of
/// its keep probabilities: with one word for the keep number down to rates of about 1/18.
const KEEP_SLACK_BITS: u32 = 52;
/// No tier is farther than `2^-TOTAL_VARIATION_BITS` from the nominal distribution.
const TOTAL_VARIATION_BITS: i32 = 47;

/// The numbers below which the keep number of a step, of as many words, must be: for a value inside
/// the range, and for one at an end. By limb, the most significant first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keep(pub(crate) Vec<[u64; 2]>);

/// A tier, and the numbers that show it private together with all coarser ones.
#[derive(Clone, Debug)]
pub struct Tier {
    /// What the tier promises, together with the coarser ones.
    pub rate: Rate,
    /// The draw of the finest tier, or the step from the next finer one.
    pub plan: Plan,
    /// Relative error of a step by its keep probabilities.
    pub kappa: Dyadic,
    /// An upper bound of the total variation distance to the nominal distribution.
    pub total_variation: f64,
}

/// The tiers of a table with these rates, the finest first. Outputs are in `0..=range`.
///
/// # Errors
/// [`Error::Parameter`] unless the rates decrease, by enough for exact steps, and there are at most
/// [`MAX_TIERS`]; [`Error::Uncertifiable`] if the last rate is too small for the range.
pub fn plans(rates: &[Rate], range: u64) -> Result<Vec<Tier>, Error> {
    let of = |rate: &Rate, least: &Rate| Plan::with_floor(rate, Some(least), range).map(Some);
    let tiers = chain(rates, LIMB_BITS, KEEP_SLACK_BITS, of)?.unwrap_or_default();
    let close = |tier: &Tier| tier.total_variation <= 2f64.powi(-TOTAL_VARIATION_BITS);
    assert!(
        tiers.iter().all(close),
        "what a tier loses is a part of the smallest rate"
    );
    Ok(tiers)
}

/// Like [`plans`] at reduced widths; `None` if [`Plan::reduced`] would give none. For tests only.
#[doc(hidden)]
pub fn reduced(
    rates: &[Rate],
    range: u64,
    widths: &Widths,
    radix_bits: &[u32],
) -> Result<Option<Vec<Tier>>, Error> {
    let of = |rate: &Rate, least: &Rate| {
        Plan::reduced_with_floor(rate, Some(least), range, widths, radix_bits)
    };
    chain(rates, widths.limb_bits, widths.slack_bits, of)
}

fn chain(
    rates: &[Rate],
    limb_bits: u32,
    keep_slack_bits: u32,
    plan: impl Fn(&Rate, &Rate) -> Result<Option<Plan>, Error>,
) -> Result<Option<Vec<Tier>>, Error> {
    let few = (1..=MAX_TIERS).contains(&rates.len());
    let Some(least) = rates.last().filter(|_| few) else {
        let accepted = format!("1 to {MAX_TIERS} of them");
        return Err(Error::parameter("tiers", rates.len(), accepted));
    };
    let falls = |pair: &[Rate]| pair[1].less_than(&pair[0]);
    if !rates.windows(2).all(falls) {
        return Err(apart(rates, "rates that decrease"));
    }
    // What each step loses for its keep probabilities.
    let share = [
        least.num().min(least.den()).clone(),
        least.den() << keep_slack_bits,
    ];
    let unit = BigUint::from(1u32) << (2 * limb_bits);
    let mut deltas = BigUint::ZERO;
    let mut tiers: Vec<Tier> = Vec::new();
    for (rate, steps) in rates.iter().zip(0u32..) {
        // The errors of finer tiers, and of keep probabilities up to this step, are paid for by the
        // rate; the plan sees to its own.
        let nominal = rate
            .less(&(&deltas * 3u32), &unit)
            .and_then(|rate| rate.less(&(&share[0] * steps), &share[1]))
            .map_err(|_| apart(rates, EXACT))?;
        let Some(mut plan) = plan(&nominal, least)? else {
            return Ok(None);
        };
        let mut kappa = Dyadic::new(0u32, 0);
        if let (Some(finer), Some(own)) = (
            tiers.last().and_then(|tier| tier.plan.certificate()),
            plan.certificate(),
        ) {
            let (keep, error) = keep(&own.sampled, &finer.sampled, limb_bits, &share)
                .ok_or_else(|| apart(rates, EXACT))?;
            plan.words += keep.0.len();
            plan.keep = Some(keep);
            kappa = error;
        }
        if let Some(own) = plan.certificate() {
            deltas += &own.delta.value;
        }
        tiers.push(Tier {
            rate: rate.clone(),
            plan,
            kappa,
            total_variation: 0.0,
        });
        let total_variation = total_variation(&tiers);
        if let Some(tier) = tiers.last_mut() {
            tier.total_variation = total_variation;
        }
    }
    Ok(Some(tiers))
}

/// How often a step keeps a value, and the relative error of the step; `None` if three limbs
/// do not make it small enough, or if the finer rate is not greater.
fn keep(
    sampled: &Rate,
    finer: &Rate,
    limb_bits: u32,
    share: &[BigUint; 2],
) -> Option<(Keep, Dyadic)> {
    let between = finer.less(sampled.num(), sampled.den()).ok()?;
    let most = u64::from(limb_bits) * MAX_LIMBS as u64;
    let bits = most + sampled.magnitude() + 128;
    let one = Enclosure::<10>::one(bits);
    let rest = |rate: &Rate| Enclosure::<10>::exp_neg(rate, bits).complement();
    // (1 - a) / (1 - a'), expm1(s) / expm1(s') and (sinh(s / 2) / sinh(s' / 2))^2.
    let quotient = rest(sampled).div(&rest(finer));
    let end = Enclosure::exp_neg(&between, bits).mul(&quotient);
    let inside = end.mul(&quotient);
    // What is kept, and what is not, has at least these probabilities, of which an error is a part.
    let a = Enclosure::exp_neg(sampled, bits);
    let stays = rest(sampled).div(&one.add(&a)).lo();
    let least = end.complement().lo().min(stays);
    if least.bits() == 0 {
        return None;
    }
    let inverse = (BigUint::from(1u32) << bits).div_ceil(&least);
    let limbs = (1..=MAX_LIMBS).find(|limbs| {
        &inverse * 3u32 * &share[1] <= &share[0] << (u64::from(limb_bits) * *limbs as u64)
    })?;
    let places = u64::from(limb_bits) * limbs as u64;
    // No word is shared, which `split` counts beside the own ones.
    let numbers = split(&[inside, end], 0, limbs - 1, limb_bits).thresholds;
    let keep = (0..limbs).map(|limb| [numbers[0][limb], numbers[1][limb]]);
    Some((Keep(keep.collect()), Dyadic::new(inverse, places)))
}

/// Where no step is exact enough.
const EXACT: &str = "rates that differ more, and none below about 2**-67";

fn apart(rates: &[Rate], accepted: &str) -> Error {
    let shown = |rate: &Rate| to_f64(rate.num(), rate.den(), Round::Up);
    let shown: Vec<_> = rates.iter().map(shown).collect();
    Error::parameter("rates of tiers", format!("{shown:?}"), accepted)
}

/// `(rate - sampled) / rate + D + 2 (1 + D) G`, for the sums `D / 2` of all relative errors and `G`
/// of all floors so far, rounded up (docs/proofs.md, section 20).
fn total_variation(tiers: &[Tier]) -> f64 {
    let numbers = || tiers.iter().filter_map(|tier| tier.plan.certificate());
    let Some((last, own)) = tiers
        .last()
        .and_then(|last| Some((last, last.plan.certificate()?)))
    else {
        return 0.0;
    };
    let relative = numbers()
        .map(|numbers| &numbers.delta)
        .chain(tiers.iter().map(|tier| &tier.kappa));
    let floors = numbers().map(|numbers| &numbers.floor);
    let places = relative
        .clone()
        .chain(floors.clone())
        .map(|part| part.bits)
        .max()
        .unwrap_or(0);
    let at = |part: &Dyadic| &part.value << (places - part.bits);
    let twice = relative.map(at).sum::<BigUint>() << 1u32;
    let floor = floors.map(at).sum::<BigUint>() << 1u32;
    let sum = ((&twice + &floor) << places) + twice * floor;
    let full = last.rate.num() * own.sampled.den();
    let short = &full - own.sampled.num() * last.rate.den();
    let num = sum * &full + (short << (2 * places));
    to_f64(&num, &(full << (2 * places)), Round::Up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::rate;

    fn ratio(num: u32, den: u32) -> Rate {
        Rate::from_ratio(num.into(), den.into()).unwrap()
    }

    const RANGES: [u64; 5] = [1, 2, 1000, u32::MAX as u64, u64::MAX];

    /// The conditions of section 20, in exact arithmetic, and lemma 3's by [`Plan::two_sided`].
    #[test]
    fn conditions_hold() {
        let (mut several, mut low) = (0, 0);
        for rates in [
            vec![ratio(1, 2), ratio(1, 10)],
            vec![ratio(2, 1), ratio(1, 2), ratio(1, 10)],
            vec![ratio(8, 1), ratio(1, 100)],
            vec![ratio(1, 1), ratio(1000, 1001)],
            vec![rate(1, 10), rate(1, 20), rate(1, 40)],
            vec![ratio(100, 1), ratio(1, 1)],
            (0..8).map(|i| rate(1, i)).collect(),
        ] {
            for range in RANGES {
                let tiers = plans(&rates, range).unwrap();
                let least = rates.last().unwrap();
                let sum = |parts: &dyn Fn(&Tier) -> Dyadic, upto: usize| {
                    tiers[..=upto]
                        .iter()
                        .map(parts)
                        .map(|part| part.value << (256 - part.bits))
                        .sum::<BigUint>()
                };
                let mut finer: Option<&Rate> = None;
                for (i, tier) in tiers.iter().enumerate() {
                    let numbers = tier.plan.certificate().unwrap();
                    assert_eq!(tier.rate, rates[i]);
                    low += usize::from(numbers.delta.value > BigUint::ZERO);
                    // (b), with a lower bound of tanh(e_1 / 2).
                    let tanh = Enclosure::<10>::exp_neg(least, 500);
                    let tanh = tanh.complement().div(&Enclosure::one(500).add(&tanh));
                    assert!(&numbers.tanh.value << (500 - numbers.tanh.bits) <= tanh.hi());
                    let paid = &numbers.floor.value * &numbers.tanh.value;
                    let paid = paid << (numbers.eta.bits);
                    let owed = numbers.floor.bits + numbers.tanh.bits;
                    let owed = owed + u64::from(tier.plan.floor_value_bits);
                    assert!(&numbers.eta.value << owed <= paid);
                    // (c)
                    let delta = |tier: &Tier| tier.plan.certificate().unwrap().delta.clone();
                    let kappa = |tier: &Tier| tier.kappa.clone();
                    let lost = (sum(&delta, i) + sum(&kappa, i)) * 3u32;
                    let left = tier.rate.less(&lost, &(BigUint::from(1u32) << 256u32));
                    assert!(!left.unwrap().less_than(&numbers.sampled));
                    // All errors of finer tiers, and a share for each step.
                    let lost = if i > 0 {
                        sum(&delta, i - 1)
                    } else {
                        BigUint::ZERO
                    } * 3u32;
                    let left = tier.rate.less(&lost, &(BigUint::from(1u32) << 256u32));
                    let shares = least.num().min(least.den()) * i;
                    let left = left.unwrap().less(&shares, &(least.den() << 52u32));
                    assert!(!left.unwrap().less_than(&numbers.nominal));
                    assert!(finer.is_none_or(|finer| numbers.sampled.less_than(finer)));
                    finer = Some(&numbers.sampled);
                    assert_eq!(tier.plan.keeps().is_some(), i > 0);
                    several += usize::from(tier.plan.keeps().is_some_and(|(_, limbs)| limbs > 1));
                }
            }
        }
        assert!(several > 0 && low > 0);
    }

    /// One word for the keep number, where the smallest rate is 1/18 or more.
    #[test]
    fn keep_numbers_are_short() {
        for (fine, coarse, limbs) in [
            (ratio(1, 1), ratio(1, 10), 1),
            (ratio(2, 1), ratio(1, 2), 1),
            (ratio(1, 10), ratio(1, 18), 1),
            (ratio(1, 1), ratio(1, 100), 2),
            (rate(1, 40), rate(1, 45), 3),
        ] {
            let tiers = plans(&[fine, coarse], u64::MAX).unwrap();
            let finest = Plan::two_sided(&tiers[0].rate, u64::MAX).unwrap();
            // Where rates are small, low digits may need more words than for the finer rate alone.
            assert!(limbs > 1 || tiers[0].plan.words == finest.words);
            assert_eq!(tiers[1].plan.keeps().unwrap().1, limbs);
        }
    }

    /// Against floats: the two probabilities, and that they are not the same.
    #[test]
    fn keep_probabilities_are_those_of_the_construction() {
        for (fine, coarse) in [(1.0, 0.1), (2.0, 0.5), (0.5, 0.25), (30.0, 2.0), (3.0, 2.9)] {
            let rates = [fine, coarse].map(|rate| Rate::from_epsilon(rate, 1).unwrap());
            let tiers = plans(&rates, 100).unwrap();
            let ([inside, end], limbs) = tiers[1].plan.keeps().unwrap();
            let unit = BigUint::from(1u32) << (63 * limbs);
            let [inside, end] = [inside, end].map(|keep| to_f64(&keep, &unit, Round::Up));
            let (s, f): (f64, f64) = (coarse, fine);
            let sinh = (s / 2.0).sinh() / (f / 2.0).sinh();
            assert!((inside - sinh * sinh).abs() < 1e-14, "{inside}");
            assert!((end - s.exp_m1() / f.exp_m1()).abs() < 1e-14, "{end}");
            assert!(inside < end);
        }
    }

    #[test]
    fn rates_that_are_refused() {
        let refused = |rates: &[Rate]| plans(rates, 100).unwrap_err().to_string();
        assert!(refused(&[]).starts_with("tiers = 0"));
        let many: Vec<_> = (0..9).map(|i| rate(1, i)).collect();
        assert!(refused(&many).starts_with("tiers = 9"));
        for rates in [
            [ratio(1, 2), ratio(1, 2)],
            [ratio(1, 10), ratio(1, 2)],
            [rate(1, 0), rate(1, 80)],
        ] {
            assert!(refused(&rates).starts_with("rates of tiers = ["));
        }
        assert!(refused(&[rate(1, 0), rate(1, 300)]).starts_with("scale"));
    }

    #[test]
    fn one_output_has_no_noise_in_any_tier() {
        for tier in plans(&[ratio(1, 1), ratio(1, 10)], 0).unwrap() {
            assert!(tier.plan.digits().is_empty() && tier.plan.keeps().is_none());
            assert_eq!((tier.plan.words, tier.total_variation), (0, 0.0));
        }
    }
}
