//! The thresholds of each digit: cuts of the unit interval, rounded to limbs.

use super::Widths;
use super::digit::Digit;
use super::layout::Layout;
use crate::params::enclosure::Enclosure;
use crate::params::rate::Rate;
use num_bigint::BigUint;

/// The cuts between each digit's values on the unit interval, least significant digit first. Lower
/// digits are geometric on `0..2^radix_bits`; the top digit is censored.
pub(super) fn thresholds(a: &Enclosure, layout: &Layout) -> Vec<Vec<Enclosure>> {
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
        // One division serves all cuts.
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

/// Returns how many digits, from the lowest on, need one own word only, and the relative error
/// `delta` that this causes, in units of `2^-(2 * limb_bits)`. The slack in the rate must cover `3
/// * delta` (docs/proofs.md, lemma 3 and theorem 2).
pub(super) fn low_digits(
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
        // The last value is the least likely.
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
pub(super) fn split(cuts: &[Enclosure], shift: u32, limbs: usize, limb_bits: u32) -> Digit {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::rate;

    /// Each condition of lemma 3 and theorem 2 on low digits, where it holds with equality and
    /// where it just fails.
    #[test]
    fn low_digits_up_to_each_limit() {
        let bits = 200;
        let part = |e: u64| Enclosure::dyadic(BigUint::from(1u32) << (bits - e), bits);
        let half = part(1);
        // The plan's `e` for digit 0 is 2 because of the zero, or the argument because of the last
        // value, whichever is larger.
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

        // 3 * 2^(1 + e) * 2^30 is at most 2^40, and at most the rate times 2^40.
        assert_eq!(low(&[first(7)], &one, 20, 30), (1, power(8)));
        assert_eq!(low(&[first(8)], &one, 20, 30), none);
        assert_eq!(low(&[first(5)], &rate(1, 2), 20, 30), (1, power(6)));
        assert_eq!(low(&[first(6)], &rate(1, 2), 20, 30), none);
        assert_eq!(low(&[first(7)], &rate(4, 0), 20, 30), (1, power(8)));
        assert_eq!(low(&[first(8)], &rate(4, 0), 20, 30), none);
        // Equality at rate 3/4.
        assert_eq!(low(&[first(7)], &rate(3, 2), 20, 30), (1, power(8)));
        assert_eq!(low(&[first(7)], &rate(2, 2), 20, 30), none);

        // The sum of 2^e is below 2^(10 - 2).
        assert_eq!(low(&[first(7)], &one, 10, 0), (1, power(8)));
        assert_eq!(low(&[first(8)], &one, 10, 0), none);
        let two = power(7) + power(7) + power(3 + 12);
        assert_eq!(low(&[first(6), next(6)], &one, 10, 0), (2, two.clone()));
        assert_eq!(low(&[first(6), next(6), next(7)], &one, 10, 0), (2, two));
        assert_eq!(low(&[first(7), next(7)], &one, 10, 0), (1, power(8)));

        // Single terms and pairs for three digits; the zero is the least likely value of digit 0.
        let three = power(3) + power(4) + power(5) + power(8) + power(9) + power(10);
        assert_eq!(
            low(&[first(2), next(3), next(4)], &one, 30, 0),
            (3, three.clone())
        );
        // A digit with a value of probability zero.
        let certain = vec![Enclosure::one(bits)];
        let digits = [first(2), next(3), next(4), certain, next(3)];
        assert_eq!(low(&digits, &one, 30, 0), (3, three));
    }
}
