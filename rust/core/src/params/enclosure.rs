//! Non-negative reals enclosed by two integers over a power of two. Every operation rounds
//! outwards. No floats are used.

use super::rate::Rate;
use super::wide::Wide;
use num_bigint::BigUint;
use num_integer::Integer;

/// A real number in `[lo, hi] * 2^-bits`, with `0 <= lo <= hi`, both below `2^(64 N)`.
#[derive(Clone, Debug)]
pub(crate) struct Enclosure<const N: usize> {
    lo: Wide<N>,
    hi: Wide<N>,
    bits: u64,
}

fn floor_shr(x: BigUint, bits: u64) -> BigUint {
    x >> bits
}

fn ceil_shr(x: BigUint, bits: u64) -> BigUint {
    let low = x.trailing_zeros().is_some_and(|zeros| zeros < bits);
    (x >> bits) + u32::from(low)
}

/// The ends of an enclosure of `exp(-rate)`, in units of `2^-bits`: halves the argument until it is below `2^-8`, sums the Taylor series, squares
/// back.
pub(crate) fn exp_neg(rate: &Rate, bits: u64) -> [BigUint; 2] {
    let (num, den) = (rate.num(), rate.den());
    // exp(-x) < 2^-x, so the result is below one unit.
    if num > &(den * (bits + 1)) {
        return [BigUint::ZERO, BigUint::from(1u32)];
    }
    let halvings = (num.bits() + 9).saturating_sub(den.bits());
    // Each squaring at most doubles the error, which starts below 2^12 units.
    let work = bits + halvings + 16;
    let argument = (num << work) / (den << halvings);
    let unit = BigUint::from(1u32) << work;
    let (mut even, mut odd) = (unit.clone(), BigUint::ZERO);
    let mut term = unit.clone();
    let mut terms = 0u64;
    while term.bits() > 0 {
        terms += 1;
        term = floor_shr(term * &argument, work) / terms;
        if terms % 2 == 1 {
            odd += &term;
        } else {
            even += &term;
        }
    }
    // Every term is at most 2 units short of its true value, the omitted terms sum to less than
    // 1, and the argument was rounded by less than 1 (|d exp(-y)/dy| <= 1).
    let error = 2 * terms + 2;
    let middle = even - odd;
    let mut lo = &middle - error;
    let mut hi = (middle + error).min(unit);
    for _ in 0..halvings {
        lo = floor_shr(&lo * &lo, work);
        hi = ceil_shr(&hi * &hi, work);
    }
    [floor_shr(lo, work - bits), ceil_shr(hi, work - bits)]
}

impl<const N: usize> Enclosure<N> {
    fn new(lo: &BigUint, hi: &BigUint, bits: u64) -> Self {
        let (lo, hi) = (lo.into(), hi.into());
        Self { lo, hi, bits }
    }

    /// The number `num / den <= 1`.
    pub(crate) fn ratio(num: &BigUint, den: &BigUint, bits: u64) -> Self {
        let scaled = num << bits;
        Self::new(&(&scaled / den), &scaled.div_ceil(den), bits)
    }

    /// The number `value * 2^-bits`.
    pub(crate) fn dyadic(value: &BigUint, bits: u64) -> Self {
        Self::new(value, value, bits)
    }

    pub(crate) fn one(bits: u64) -> Self {
        let one = Wide::power_of_two(bits);
        Self {
            lo: one,
            hi: one,
            bits,
        }
    }

    /// `exp(-rate)`.
    pub(crate) fn exp_neg(rate: &Rate, bits: u64) -> Self {
        let [lo, hi] = exp_neg(rate, bits);
        Self::new(&lo, &hi, bits)
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let (lo, _) = self.lo.mul_shr(&other.lo, self.bits);
        let (hi, less) = self.hi.mul_shr(&other.hi, self.bits);
        let hi = if less {
            hi.add(&Wide::power_of_two(0))
        } else {
            hi
        };
        Self { lo, hi, ..*self }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        Self {
            lo: self.lo.add(&other.lo),
            hi: self.hi.add(&other.hi),
            ..*self
        }
    }

    /// `1 - self`, for a number of at most 1.
    pub(crate) fn complement(&self) -> Self {
        let one = Wide::power_of_two(self.bits);
        Self {
            lo: one.sub(&self.hi.min(one)),
            hi: one.sub(&self.lo),
            ..*self
        }
    }

    pub(crate) fn div(&self, other: &Self) -> Self {
        Self::new(
            &((self.lo() << self.bits) / other.hi()),
            &(self.hi() << self.bits).div_ceil(&other.lo()),
            self.bits,
        )
    }

    /// `self^exponent`.
    #[cfg(test)]
    pub(crate) fn pow(&self, exponent: u64) -> Self {
        (0..exponent).fold(Self::one(self.bits), |power, _| power.mul(self))
    }

    /// The lower end.
    pub(crate) fn lo(&self) -> BigUint {
        (&self.lo).into()
    }

    /// The upper end.
    pub(crate) fn hi(&self) -> BigUint {
        (&self.hi).into()
    }

    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    /// The multiple of `2^-places` nearest to the middle, over `2^-places`; `None` if the enclosure
    /// is wider than `2^-(places + 8)`, so that it could be off by more than
    /// `(1/2 + 2^-8) * 2^-places`.
    pub(crate) fn round(&self, places: u64) -> Option<Wide<N>> {
        let spare = self.bits.checked_sub(places + 8)?;
        if self.hi.sub(&self.lo) > Wide::power_of_two(spare) {
            return None;
        }
        let half = Wide::power_of_two(self.bits - places);
        Some(self.lo.add(&self.hi).add(&half).shr(self.bits - places + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::dyadic::{Round, to_f64};

    #[test]
    fn exponentials_are_enclosed_and_tight() {
        for x in [1e-19, 1e-3, 0.5, 1.0, 2.5, 100.0, 600.0] {
            let rate = Rate::from_epsilon(x, 1).unwrap();
            let a = Enclosure::<20>::exp_neg(&rate, 1100);
            let unit = BigUint::from(1u32) << 1100u32;
            let (lo, hi) = (
                to_f64(&a.lo(), &unit, Round::Down),
                to_f64(&a.hi(), &unit, Round::Up),
            );
            let float = (-x).exp();
            assert!((lo - float).abs() <= 4.0 * float * f64::EPSILON, "{x}");
            assert!((hi - float).abs() <= 4.0 * float * f64::EPSILON, "{x}");
            assert!(a.hi() - a.lo() <= BigUint::from(2u32), "{x}");
        }
    }

    #[test]
    fn tiny_exponential_is_within_one_unit_of_zero() {
        let rate = Rate::from_epsilon(1e300, 1).unwrap();
        let a = exp_neg(&rate, 200);
        assert_eq!(a, [BigUint::ZERO, BigUint::from(1u32)]);
    }

    #[test]
    fn shifts_round_down_and_up() {
        let big = |x: u32| BigUint::from(x);
        for (x, floor, ceil) in [
            (0, 0, 0),
            (1, 0, 1),
            (3, 0, 1),
            (4, 1, 1),
            (6, 1, 2),
            (8, 2, 2),
            (9, 2, 3),
        ] {
            assert_eq!(floor_shr(big(x), 2), big(floor));
            assert_eq!(ceil_shr(big(x), 2), big(ceil));
        }
    }

    /// The ends of an enclosure, in units.
    fn ends(x: &Enclosure<1>) -> (u32, u32) {
        let end = |x: BigUint| u32::try_from(x).unwrap();
        (end(x.lo()), end(x.hi()))
    }

    #[test]
    fn operations_round_outwards_by_less_than_a_unit() {
        let ratio = |num: u32, den: u32| Enclosure::ratio(&num.into(), &den.into(), 10);
        let (third, half, most) = (ratio(1, 3), ratio(1, 2), ratio(6, 7));
        // 1024 / 3 = 341.33, 1024 * 6 / 7 = 877.71
        assert_eq!(
            (ends(&third), ends(&half), ends(&most)),
            ((341, 342), (512, 512), (877, 878))
        );
        assert_eq!(ends(&third.add(&half)), (853, 854));
        // 341 * 877 / 1024 = 292.04, 342 * 878 / 1024 = 293.24
        assert_eq!(ends(&third.mul(&most)), (292, 294));
        assert_eq!(ends(&half.mul(&half)), (256, 256));
        // 341 * 1024 / 878 = 397.7, 342 * 1024 / 877 = 399.3
        assert_eq!(ends(&third.div(&most)), (397, 400));
        assert_eq!(ends(&half.div(&Enclosure::one(10))), (512, 512));
        assert_eq!(ends(&third.complement()), (682, 683));
        assert_eq!(ends(&Enclosure::one(10).complement()), (0, 0));
        let beyond = Enclosure::new(&1000u32.into(), &1030u32.into(), 10);
        assert_eq!(ends(&beyond.complement()), (0, 24));
    }

    #[test]
    fn rounds_to_nearest() {
        let round = |lo: u32, hi: u32| {
            let nearest = Enclosure::<1>::new(&lo.into(), &hi.into(), 20).round(4);
            nearest.map(|nearest| BigUint::from(&nearest))
        };
        let unit = 1u32 << 16;
        for (middle, nearest) in [
            (0, 0u32),
            (unit / 2 - 1, 0),
            (unit / 2, 1),
            (unit, 1),
            (unit * 3 / 2 - 1, 1),
            (unit * 3 / 2, 2),
            (unit * 16, 16),
        ] {
            assert_eq!(round(middle, middle), Some(nearest.into()), "{middle}");
        }
        // The largest accepted width, 2^-(4 + 8), and one unit more.
        assert_eq!(round(unit, unit + 256), Some(1u32.into()));
        assert_eq!(round(unit, unit + 257), None);
        assert_eq!(Enclosure::<1>::one(11).round(4), None);
        assert_eq!(
            Enclosure::<1>::one(12).round(4),
            Some(Wide::power_of_two(4))
        );
    }

    /// At every precision the enclosure contains a finer one and is at most two units wide.
    #[test]
    fn exponentials_at_all_precisions_agree() {
        for (num, den) in [
            (1u32, 3u32),
            (1, 1),
            (255, 256),
            (1, 1000),
            (77, 2),
            (513, 512),
            (1, 1 << 31),
        ] {
            let rate = Rate::from_ratio(num.into(), den.into()).unwrap();
            let [least, most] = exp_neg(&rate, 600);
            for bits in 1..300 {
                let [lo, hi] = exp_neg(&rate, bits);
                assert!(&hi - &lo <= BigUint::from(2u32));
                let (lo, hi) = (lo << (600 - bits), hi << (600 - bits));
                assert!(lo <= least && most <= hi, "{num}/{den} at {bits}");
            }
        }
    }

    #[test]
    fn a_wide_enclosure_is_not_rounded() {
        let wide = Enclosure::<2>::new(&BigUint::ZERO, &(BigUint::from(1u32) << 90u32), 100);
        assert_eq!(wide.round(20), None);
        assert!(wide.round(1).is_some());
    }
}
