//! Converts floats to exact numbers, and exact numbers to floats with directed rounding. For public
//! parameters only: no secret passes through here.

use num_bigint::BigUint;

/// The number `value / 2^bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dyadic {
    /// The numerator.
    pub value: BigUint,
    /// The binary logarithm of the denominator.
    pub bits: u64,
}

impl Dyadic {
    pub(crate) fn new(value: impl Into<BigUint>, bits: u64) -> Self {
        Self {
            value: value.into(),
            bits,
        }
    }
}

/// Bits of a float64 significand, including the hidden one.
const PRECISION: u64 = 53;
/// The smallest positive float64 is `2^-MIN_EXPONENT`.
const MIN_EXPONENT: u64 = 1074;

/// Splits a finite `x >= 0` into `(mantissa, exponent)` with `x = mantissa * 2^exponent` and an odd
/// mantissa; zero gives `(0, 0)`. `None` for negative numbers, infinities and NaN.
#[must_use]
pub fn decompose(x: f64) -> Option<(u64, i32)> {
    if !x.is_finite() || (x.is_sign_negative() && x != 0.0) {
        return None;
    }
    let bits = x.to_bits() & (u64::MAX >> 1);
    if bits == 0 {
        return Some((0, 0));
    }
    let fraction = bits & ((1 << 52) - 1);
    let biased = i32::try_from(bits >> 52).ok()?;
    let (mantissa, exponent) = match biased {
        0 => (fraction, -1074),
        _ => (fraction | (1 << 52), biased - 1075),
    };
    let zeros = mantissa.trailing_zeros();
    Some((mantissa >> zeros, exponent + i32::try_from(zeros).ok()?))
}

/// The rounding direction of [`to_f64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Towards zero.
    #[cfg(any(test, feature = "reference"))]
    Down,
    /// Away from zero; numbers above the largest float64 become infinity.
    Up,
}

/// `num / den` as a float64, rounded in the given direction. `den` must not be zero.
#[must_use]
pub fn to_f64(num: &BigUint, den: &BigUint, round: Round) -> f64 {
    if num.bits() == 0 {
        return 0.0;
    }
    // The quotient lies in [2^(e-1), 2^(e+1)): scale it to 53 or 54 bits, but never below the
    // smallest subnormal.
    let shift = PRECISION
        .saturating_add(den.bits())
        .saturating_sub(num.bits());
    let excess = num.bits().saturating_sub(PRECISION + den.bits());
    let shift = shift.min(MIN_EXPONENT);
    let (scaled_num, scaled_den) = (num << shift, den << excess);
    let mut quotient = &scaled_num / &scaled_den;
    let mut exact = &quotient * &scaled_den == scaled_num;
    let mut extra = quotient.bits().saturating_sub(PRECISION);
    exact &= (&quotient >> extra) << extra == quotient;
    quotient >>= extra;
    if !exact && round == Round::Up {
        quotient += 1u32;
    }
    // Rounding up can carry into one more bit; the number is then a power of two.
    if quotient.bits() > PRECISION {
        quotient >>= 1u32;
        extra += 1;
    }
    let mantissa = quotient.iter_u64_digits().next().unwrap_or(0);
    assemble(mantissa, excess + extra, shift, round)
}

/// `mantissa * 2^(up - down)` for a mantissa of at most 53 bits that is exact at that exponent.
fn assemble(mantissa: u64, up: u64, down: u64, round: Round) -> f64 {
    let Ok(exponent) = i64::try_from(up).map(|up| up - i64::try_from(down).unwrap_or(i64::MAX))
    else {
        return overflow(round);
    };
    let length = i64::from(64 - mantissa.leading_zeros());
    if length + exponent > 1024 {
        return overflow(round);
    }
    if mantissa == 0 {
        return 0.0;
    }
    // Normalise to 53 bits, or stop at the subnormal exponent.
    let lift = (53 - length).min(exponent + 1074);
    let (fraction, biased) = if length + lift == 53 {
        (mantissa << lift, exponent - lift + 1075)
    } else {
        (mantissa << lift, 0)
    };
    f64::from_bits((fraction & ((1 << 52) - 1)) | (biased.unsigned_abs() << 52))
}

fn overflow(round: Round) -> f64 {
    match round {
        #[cfg(any(test, feature = "reference"))]
        Round::Down => f64::MAX,
        Round::Up => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(x: f64) -> (BigUint, BigUint) {
        let (mantissa, exponent) = decompose(x).unwrap();
        let shift = exponent.unsigned_abs();
        if exponent < 0 {
            (mantissa.into(), BigUint::from(1u32) << shift)
        } else {
            (BigUint::from(mantissa) << shift, 1u32.into())
        }
    }

    #[test]
    fn decompose_rejects_negative_and_non_finite_floats() {
        for x in [-1.0, -5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(decompose(x), None);
        }
        assert_eq!(decompose(-0.0), Some((0, 0)));
    }

    #[test]
    fn overflow_and_underflow_round_in_the_given_direction() {
        let (one, huge) = (BigUint::from(1u32), BigUint::from(1u32) << 5000);
        assert_eq!(to_f64(&huge, &one, Round::Up), f64::INFINITY);
        assert_eq!(to_f64(&huge, &one, Round::Down), f64::MAX);
        assert_eq!(to_f64(&one, &huge, Round::Up), 5e-324);
        assert_eq!(to_f64(&one, &huge, Round::Down), 0.0);
        let above_max = (BigUint::from(1u32) << 1024u32) - 1u32;
        assert_eq!(to_f64(&above_max, &one, Round::Up), f64::INFINITY);
        assert_eq!(to_f64(&above_max, &one, Round::Down), f64::MAX);
    }

    #[test]
    fn float64_limits_round_trip() {
        for x in [
            0.0,
            5e-324,
            f64::MIN_POSITIVE.next_down(),
            f64::MIN_POSITIVE,
            1.0,
            1.0f64.next_down(),
            2f64.powi(1023).next_down(),
            2f64.powi(1023),
            f64::MAX.next_down(),
            f64::MAX,
        ] {
            let (num, den) = exact(x);
            for round in [Round::Down, Round::Up] {
                assert_eq!(to_f64(&num, &den, round), x);
            }
            // Larger by far less than the last bit.
            let (num, den) = ((num << 1200u32) + 1u32, den << 1200u32);
            assert_eq!(to_f64(&num, &den, Round::Down), x);
            assert_eq!(to_f64(&num, &den, Round::Up), x.next_up());
        }
    }

    proptest! {
        #[test]
        fn every_float_round_trips(bits in 0u64..f64::INFINITY.to_bits()) {
            let x = f64::from_bits(bits);
            let (num, den) = exact(x);
            prop_assert_eq!(to_f64(&num, &den, Round::Up), x);
            prop_assert_eq!(to_f64(&num, &den, Round::Down), x);
        }

        #[test]
        fn neighbours_enclose_every_ratio(num: u128, den in 1u128.., shift in 0u32..1100, lift in 0u32..900) {
            let (num, den) = (BigUint::from(num) << lift, BigUint::from(den) << shift);
            let (low, high) = (to_f64(&num, &den, Round::Down), to_f64(&num, &den, Round::Up));
            let (low_num, low_den) = exact(low);
            prop_assert!(&low_num * &den <= &num * &low_den);
            let (high_num, high_den) = exact(high);
            prop_assert!(&high_num * &den >= &num * &high_den);
            prop_assert!(high == low || high == low.next_up());
        }
    }
}
