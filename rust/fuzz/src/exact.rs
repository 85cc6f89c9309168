//! Exact and nearly exact numbers: floats as fractions, exponentials and powers in fixed point.

use num_bigint::BigUint;

/// A finite non-negative float as numerator and denominator, not reduced.
pub fn fraction(x: f64) -> Option<(BigUint, BigUint)> {
    if !(0.0..f64::INFINITY).contains(&x) {
        return None;
    }
    let bits = x.abs().to_bits();
    let (field, mantissa) = (bits >> 52, bits & ((1 << 52) - 1));
    // The float is an integer times 2^-1074.
    let integer = match field {
        0 => BigUint::from(mantissa),
        _ => BigUint::from(mantissa | 1 << 52) << (field - 1),
    };
    Some((integer, power_of_two(1074)))
}

pub fn power_of_two(bits: u64) -> BigUint {
    BigUint::from(1u32) << bits
}

/// Extra bits of a computation, so that rounding errors stay far below the result's last bit.
const GUARD: u64 = 64;

/// `exp(-num / den) * 2^bits`, with an error below one unit. (This splits off the integer part; the
/// crate halves and squares.)
pub fn exp_neg(num: &BigUint, den: &BigUint, bits: u64) -> BigUint {
    let whole = num / den;
    // exp(-x) < 2^-x
    let Ok(whole) = u64::try_from(&whole) else {
        return BigUint::ZERO;
    };
    if whole > bits {
        return BigUint::ZERO;
    }
    let work = bits + GUARD;
    let part = ((num - den * whole) << work) / den;
    let inverse_e = series(&power_of_two(work), work);
    (series(&part, work) * power(&inverse_e, whole, work)) >> (2 * work - bits)
}

/// `exp(-x)` for `x <= 1`, both in units of `2^-work`, by its alternating series.
fn series(x: &BigUint, work: u64) -> BigUint {
    let (mut plus, mut minus) = (BigUint::ZERO, BigUint::ZERO);
    let (mut term, mut k) = (power_of_two(work), 0u64);
    while term.bits() > 0 {
        if k.is_multiple_of(2) {
            plus += &term;
        } else {
            minus += &term;
        }
        k += 1;
        term = ((term * x) >> work) / k;
    }
    plus - minus
}

/// `x^n` for `x <= 1`, both in units of `2^-bits`. The error is below `n` times the error of `x`
/// plus `4 n` units.
pub fn power(x: &BigUint, n: u64, bits: u64) -> BigUint {
    let mut result = power_of_two(bits);
    for i in (0..64 - n.leading_zeros()).rev() {
        result = (&result * &result) >> bits;
        if n >> i & 1 == 1 {
            result = (result * x) >> bits;
        }
    }
    result
}

/// Whether `num / den <= exp(rate_num / rate_den)`.
pub fn within(num: &BigUint, den: &BigUint, rate_num: &BigUint, rate_den: &BigUint) -> bool {
    let bits = num.bits().max(den.bits()) + 64;
    let a = exp_neg(rate_num, rate_den, bits) + 1u32;
    a * num <= den << bits
}

/// Whether a float is `num / den` rounded up: it is not below the quotient, and the next float
/// below it is.
pub fn is_rounded_up(x: f64, num: &BigUint, den: &BigUint) -> bool {
    let reaches = |x: f64| match fraction(x) {
        Some((n, d)) => n * den >= num * d,
        None => true,
    };
    reaches(x) && (x == 0.0 || !reaches(x.next_down()))
}

/// Whether a float is `num / den` rounded down.
pub fn is_rounded_down(x: f64, num: &BigUint, den: &BigUint) -> bool {
    let exceeds = |x: f64| match fraction(x) {
        Some((n, d)) => n * den > num * d,
        None => true,
    };
    !exceeds(x) && exceeds(x.next_up())
}
