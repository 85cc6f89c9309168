//! The thresholds of each digit: cuts of the unit interval, rounded to limbs.

use super::Widths;
use super::digit::{Digit, Threshold};
use super::layout::Layout;
use crate::params::enclosure::Enclosure;
use crate::params::rate::Rate;
use crate::params::wide::Wide;
use num_bigint::BigUint;
use num_integer::Integer;

/// The cuts between each digit's values on the unit interval, least significant digit first. Lower
/// digits are geometric on `0..2^radix_bits`; the top digit is censored.
pub(super) fn thresholds<const N: usize>(
    a: &Enclosure<N>,
    layout: &Layout,
) -> Vec<Vec<Enclosure<N>>> {
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

/// Returns the cuts between the outcomes of digit 0's number: the floor's slot, the digit's values,
/// and zero.
pub(super) fn signed<const N: usize>(
    cuts: &[Enclosure<N>],
    p_zero: &Enclosure<N>,
    floor: &Enclosure<N>,
) -> Vec<Enclosure<N>> {
    let values = floor.complement().mul(&p_zero.complement());
    let mut signed = vec![floor.clone()];
    signed.extend(cuts.iter().map(|cut| floor.add(&values.mul(cut))));
    signed.push(floor.add(&values));
    signed
}

/// Returns the own words of each digit, and the relative error `delta` of the low digits, in units
/// of `2^-(2 * limb_bits)`. A digit below the top one has as few words as the slack in the rate
/// allows, which must cover `3 * delta` (docs/proofs.md, lemma 3 and theorem 2).
pub(super) fn own_words<const N: usize>(
    cuts: &[Vec<Enclosure<N>>],
    p_zero: &Enclosure<N>,
    rate: &Rate,
    widths: &Widths,
) -> (Vec<usize>, BigUint) {
    let unit = BigUint::from(1u32) << (2 * widths.limb_bits);
    let covered = |delta: &BigUint| {
        let triple = (delta * 3u32) << widths.slack_bits;
        triple <= unit && triple * rate.den() <= rate.num() * &unit
    };
    let (mut delta, mut sum) = (BigUint::ZERO, BigUint::ZERO);
    let mut own = Vec::with_capacity(cuts.len());
    for (j, digit) in cuts[..cuts.len() - 1].iter().enumerate() {
        // The last value is the least likely. Digit 0 shares its number with the zero and the floor,
        // which takes less than half; and half of the last value can count (lemma 3).
        let mut least = digit[digit.len() - 1].complement();
        if j == 0 {
            least = p_zero.complement().mul(&least);
        }
        let one = BigUint::from(1u32) << (p_zero.bits() + if j == 0 { 2 } else { 0 });
        let least = least.lo();
        let words = (1..widths.limbs).find(|words| {
            if least.bits() == 0 {
                return false;
            }
            let skipped = u64::from(widths.limb_bits) * (*words as u64 - 1);
            let inverse = one.div_ceil(&(&least << skipped));
            let next = &delta + (&inverse << 1u32) + &inverse * &sum;
            let next_sum = &sum + inverse;
            let low = covered(&next) && next_sum <= BigUint::from(1u32) << (widths.limb_bits - 2);
            if low {
                (delta, sum) = (next, next_sum);
            }
            low
        });
        own.push(words.unwrap_or(widths.limbs));
    }
    own.push(widths.limbs);
    (own, delta)
}

/// Rounds the cuts to `limb_bits * (limbs + 1)` bits and splits them into limbs.
pub(super) fn split<const N: usize>(
    cuts: &[Enclosure<N>],
    shift: u32,
    limbs: usize,
    limb_bits: u32,
) -> Digit {
    let places = u64::from(limb_bits) * (limbs as u64 + 1);
    let largest = Wide::power_of_two(places).sub(&Wide::power_of_two(0));
    let mask = (1 << limb_bits) - 1;
    let mut thresholds = vec![Threshold::default(); cuts.len()];
    for (cut, threshold) in cuts.iter().zip(&mut thresholds) {
        let Some(rounded) = cut.round(places) else {
            unreachable!("an enclosure has more than 100 bits beyond its threshold")
        };
        let rounded = rounded.min(largest);
        for (limb, i) in threshold[..=limbs].iter_mut().rev().zip(0u64..) {
            *limb = rounded.word(u64::from(limb_bits) * i) & mask;
        }
    }
    Digit {
        shift,
        limbs,
        thresholds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::rate;

    const BITS: u64 = 200;

    /// `2^-e`.
    fn part(e: u64) -> Enclosure<4> {
        Enclosure::dyadic(&(BigUint::from(1u32) << (BITS - e)), BITS)
    }

    fn power(e: u32) -> BigUint {
        BigUint::from(1u32) << e
    }

    /// Each condition of lemma 3 and theorem 2 on low digits, where it holds with equality and
    /// where it just fails.
    #[test]
    fn low_digits_up_to_each_limit() {
        // Digit 0 with a least value of `2^-(e - 2)`, a quarter of which counts, and digits with a
        // least value of `2^-e`.
        let own = |e: &[u64], rate: &Rate, limb_bits, slack_bits| {
            let widths = Widths {
                limb_bits,
                slack_bits,
                limbs: 3,
            };
            let mut cuts: Vec<_> = e.iter().map(|e| vec![part(*e).complement()]).collect();
            cuts[0] = vec![part(e[0] - 3).complement()];
            cuts.push(vec![part(1)]);
            let (mut own, delta) = own_words(&cuts, &part(1), rate, &widths);
            assert_eq!(own.pop(), Some(3));
            (own, delta)
        };
        let one = rate(1, 0);

        // 3 * 2 * 2^e * 2^30 is at most 2^40, and at most the rate times 2^40.
        assert_eq!(own(&[7], &one, 20, 30), (vec![1], power(8)));
        assert_eq!(own(&[8], &one, 20, 30), (vec![2], power(1)));
        assert_eq!(own(&[5], &rate(1, 2), 20, 30), (vec![1], power(6)));
        assert_eq!(own(&[6], &rate(1, 2), 20, 30), (vec![2], power(1)));
        assert_eq!(own(&[7], &rate(4, 0), 20, 30), (vec![1], power(8)));
        assert_eq!(own(&[8], &rate(4, 0), 20, 30), (vec![2], power(1)));
        // Equality at rate 3/4.
        assert_eq!(own(&[7], &rate(3, 2), 20, 30), (vec![1], power(8)));
        assert_eq!(own(&[7], &rate(2, 2), 20, 30), (vec![2], power(1)));
        // Two words: 2^(28 - 20) as well.
        assert_eq!(own(&[27], &one, 20, 30), (vec![2], power(8)));
        assert_eq!(own(&[28], &one, 20, 30), (vec![3], power(0) - 1u32));

        // The sum of 2^e is at most 2^(10 - 2).
        assert_eq!(own(&[8], &one, 10, 0), (vec![1], power(9)));
        assert_eq!(own(&[9], &one, 10, 0), (vec![2], power(1)));
        let two = power(8) + power(8) + power(14);
        assert_eq!(own(&[7, 7], &one, 10, 0), (vec![1, 1], two));
        let two = power(8) + power(1) + power(7);
        assert_eq!(own(&[7, 8], &one, 10, 0), (vec![1, 2], two));

        // Single terms and pairs for three digits, and a digit with a value of probability zero.
        let three = power(3) + power(4) + power(5) + power(5) + power(6) + power(7);
        assert_eq!(own(&[4, 3, 2], &one, 30, 0), (vec![1, 1, 1], three));
        let cuts = [vec![part(1)], vec![Enclosure::one(BITS)], vec![part(1)]];
        let widths = Widths {
            limb_bits: 30,
            slack_bits: 0,
            limbs: 2,
        };
        assert_eq!(
            own_words(&cuts, &part(1), &one, &widths),
            (vec![1, 2, 2], power(5))
        );
    }

    /// The slot, then the values, then zero.
    #[test]
    fn digit_zero_holds_floor_and_zero() {
        let eighths = |n: u32| Enclosure::dyadic(&(BigUint::from(n) << (BITS - 3)), BITS);
        // A floor of a quarter, and zero in half of the rest.
        let cuts = signed(&[eighths(4), eighths(6)], &part(1), &eighths(2));
        let cuts = cuts.iter().map(|cut| BigUint::from(&cut.round(5).unwrap()));
        assert_eq!(
            cuts.collect::<Vec<_>>(),
            [8u32, 14, 17, 20].map(BigUint::from)
        );
    }
}
