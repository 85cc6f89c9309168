//! Non-negative reals enclosed by two integers over a power of two, every operation rounded
//! outwards. No float takes part.

use crate::rate::Rate;
use num_bigint::BigUint;
use num_integer::Integer;

/// A real number in `[lo, hi] * 2^-bits`, with `0 <= lo <= hi`.
#[derive(Clone, Debug)]
pub(crate) struct Enclosure {
    lo: BigUint,
    hi: BigUint,
    bits: u64,
}

fn floor_shr(x: BigUint, bits: u64) -> BigUint {
    x >> bits
}

fn ceil_shr(x: BigUint, bits: u64) -> BigUint {
    let low = x.trailing_zeros().is_some_and(|zeros| zeros < bits);
    (x >> bits) + u32::from(low)
}

impl Enclosure {
    fn new(lo: BigUint, hi: BigUint, bits: u64) -> Self {
        Self { lo, hi, bits }
    }

    /// The number `num / den <= 1`.
    pub(crate) fn ratio(num: &BigUint, den: &BigUint, bits: u64) -> Self {
        let scaled = num << bits;
        Self::new(&scaled / den, scaled.div_ceil(den), bits)
    }

    /// The number `value * 2^-bits`.
    pub(crate) fn dyadic(value: BigUint, bits: u64) -> Self {
        Self::new(value.clone(), value, bits)
    }

    pub(crate) fn one(bits: u64) -> Self {
        Self::dyadic(BigUint::from(1u32) << bits, bits)
    }

    /// `exp(-rate)`: halve the argument until it is below `2^-8`, sum the Taylor series, square back.
    pub(crate) fn exp_neg(rate: &Rate, bits: u64) -> Self {
        let (num, den) = (rate.num(), rate.den());
        // exp(-x) < 2^-x, so from here on it is below one unit.
        if num > &(den * (bits + 1)) {
            return Self::new(BigUint::ZERO, BigUint::from(1u32), bits);
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
        // Every term is at most 2 units short of its true value, the terms left out come to less
        // than 1, and the argument was rounded by less than 1 (|d exp(-y)/dy| <= 1).
        let error = 2 * terms + 2;
        let middle = even - odd;
        let mut lo = &middle - error;
        let mut hi = (middle + error).min(unit);
        for _ in 0..halvings {
            lo = floor_shr(&lo * &lo, work);
            hi = ceil_shr(&hi * &hi, work);
        }
        Self::new(floor_shr(lo, work - bits), ceil_shr(hi, work - bits), bits)
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        Self::new(
            floor_shr(&self.lo * &other.lo, self.bits),
            ceil_shr(&self.hi * &other.hi, self.bits),
            self.bits,
        )
    }

    /// The sum.
    pub(crate) fn add(&self, other: &Self) -> Self {
        Self::new(&self.lo + &other.lo, &self.hi + &other.hi, self.bits)
    }

    /// `1 - self`, for a number of at most 1.
    pub(crate) fn complement(&self) -> Self {
        let one = BigUint::from(1u32) << self.bits;
        let lo = &one - self.hi.clone().min(one.clone());
        Self::new(lo, one - &self.lo, self.bits)
    }

    /// `self / other`.
    pub(crate) fn div(&self, other: &Self) -> Self {
        Self::new(
            (&self.lo << self.bits) / &other.hi,
            (&self.hi << self.bits).div_ceil(&other.lo),
            self.bits,
        )
    }

    /// `self^exponent`.
    #[cfg(test)]
    pub(crate) fn pow(&self, exponent: u64) -> Self {
        (0..exponent).fold(Self::one(self.bits), |power, _| power.mul(self))
    }

    /// The lower end.
    pub(crate) fn lo(&self) -> &BigUint {
        &self.lo
    }

    /// The upper end.
    pub(crate) fn hi(&self) -> &BigUint {
        &self.hi
    }

    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    /// The multiple of `2^-places` nearest to the middle, over `2^-places`; `None` if the enclosure
    /// is wider than `2^-(places + 8)`, so that it could be off by more than
    /// `(1/2 + 2^-8) * 2^-places`.
    pub(crate) fn round(&self, places: u64) -> Option<BigUint> {
        let spare = self.bits.checked_sub(places + 8)?;
        if (&self.hi - &self.lo) > (BigUint::from(1u32) << spare) {
            return None;
        }
        let half = BigUint::from(1u32) << (self.bits - places);
        Some((&self.lo + &self.hi + half) >> (self.bits - places + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dyadic::{Round, to_f64};

    #[test]
    fn exponentials_are_enclosed_and_tight() {
        for x in [1e-19, 1e-3, 0.5, 1.0, 2.5, 100.0, 600.0] {
            let rate = Rate::from_epsilon(x, 1).unwrap();
            let a = Enclosure::exp_neg(&rate, 1100);
            let unit = BigUint::from(1u32) << 1100u32;
            let (lo, hi) = (
                to_f64(a.lo(), &unit, Round::Down),
                to_f64(a.hi(), &unit, Round::Up),
            );
            let float = (-x).exp();
            assert!((lo - float).abs() <= 4.0 * float * f64::EPSILON, "{x}");
            assert!((hi - float).abs() <= 4.0 * float * f64::EPSILON, "{x}");
            assert!(a.hi() - a.lo() <= BigUint::from(2u32), "{x}");
        }
    }

    #[test]
    fn tiny_exponentials_stay_above_zero_or_enclose_it() {
        let rate = Rate::from_epsilon(1e300, 1).unwrap();
        let a = Enclosure::exp_neg(&rate, 200);
        assert_eq!((a.lo(), a.hi()), (&BigUint::ZERO, &BigUint::from(1u32)));
    }

    #[test]
    fn a_wide_enclosure_is_not_rounded() {
        let wide = Enclosure::new(BigUint::ZERO, BigUint::from(1u32) << 90u32, 100);
        assert_eq!(wide.round(20), None);
        assert!(wide.round(1).is_some());
    }
}
