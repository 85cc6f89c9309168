//! Integers of a fixed width, which need no allocation.

use core::cmp::Ordering;
use num_bigint::BigUint;

/// A non-negative integer below `2^(64 N)`: its limbs, the least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wide<const N: usize>([u64; N]);

impl<const N: usize> Wide<N> {
    pub(crate) const ZERO: Self = Self([0; N]);

    /// `2^exponent`.
    pub(crate) fn power_of_two(exponent: u64) -> Self {
        let (limb, bit) = place(exponent);
        let mut power = Self::ZERO;
        power.0[limb] = 1 << bit;
        power
    }

    /// The low word of `self / 2^bits`.
    pub(crate) fn word(&self, bits: u64) -> u64 {
        word(&self.0, bits)
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut carry = false;
        let mut sum = *self;
        for (limb, other) in sum.0.iter_mut().zip(other.0) {
            let (partial, first) = limb.overflowing_add(other);
            let (total, second) = partial.overflowing_add(carry.into());
            (*limb, carry) = (total, first | second);
        }
        assert!(!carry, "the sum has more than {N} limbs");
        sum
    }

    /// `self - other`, for a number of at most `self`.
    pub(crate) fn sub(&self, other: &Self) -> Self {
        let mut borrow = false;
        let mut difference = *self;
        for (limb, other) in difference.0.iter_mut().zip(other.0) {
            let (partial, first) = limb.overflowing_sub(other);
            let (rest, second) = partial.overflowing_sub(borrow.into());
            (*limb, borrow) = (rest, first | second);
        }
        assert!(!borrow, "the difference is negative");
        difference
    }

    /// `self * other / 2^bits`, rounded down, and whether it is less for that.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn mul_shr(&self, other: &Self, bits: u64) -> (Self, bool) {
        let mut product = [[0; N]; 2];
        let limbs = product.as_flattened_mut();
        for (i, limb) in self.0.into_iter().enumerate() {
            let mut carry = 0;
            for (sum, other) in limbs[i..i + N].iter_mut().zip(other.0) {
                let whole = u128::from(limb) * u128::from(other) + u128::from(*sum) + carry;
                (*sum, carry) = (whole as u64, whole >> 64);
            }
            limbs[i + N] = carry as u64;
        }
        shr(limbs, bits)
    }

    /// `self / 2^bits`, rounded down.
    pub(crate) fn shr(&self, bits: u64) -> Self {
        shr(&self.0, bits).0
    }
}

impl<const N: usize> Ord for Wide<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl<const N: usize> PartialOrd for Wide<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> From<&BigUint> for Wide<N> {
    fn from(integer: &BigUint) -> Self {
        let mut wide = Self::ZERO;
        let digits = integer.iter_u64_digits();
        assert!(digits.len() <= N, "the integer has more than {N} limbs");
        for (limb, digit) in wide.0.iter_mut().zip(digits) {
            *limb = digit;
        }
        wide
    }
}

impl<const N: usize> From<&Wide<N>> for BigUint {
    #[allow(clippy::cast_possible_truncation)]
    fn from(wide: &Wide<N>) -> Self {
        let halves = wide
            .0
            .iter()
            .flat_map(|&limb| [limb as u32, (limb >> 32) as u32]);
        BigUint::new(halves.collect())
    }
}

/// The limb that holds a bit, and its place there.
#[allow(clippy::cast_possible_truncation)]
fn place(bit: u64) -> (usize, u32) {
    ((bit / 64) as usize, (bit % 64) as u32)
}

/// The low word of these limbs over `2^bits`.
#[inline]
fn word(limbs: &[u64], bits: u64) -> u64 {
    let (first, bit) = place(bits);
    let limb = |i: usize| limbs.get(i).copied().unwrap_or(0);
    limb(first) >> bit | limb(first + 1) << 1 << (63 - bit)
}

/// These limbs over `2^bits`, rounded down, and whether that is less.
fn shr<const N: usize>(limbs: &[u64], bits: u64) -> (Wide<N>, bool) {
    let (whole, bit) = place(bits);
    let (below, limbs) = limbs.split_at(whole.min(limbs.len()));
    let (kept, above) = limbs.split_at(limbs.len().min(N));
    let mut shifted = Wide::ZERO;
    shifted.0[..kept.len()].copy_from_slice(kept);
    let mut upper = above.first().map_or(0, |limb| *limb);
    let rest = above
        .get(1..)
        .unwrap_or_default()
        .iter()
        .fold(upper >> bit, |any, limb| any | limb);
    assert!(rest == 0, "the quotient has more than {N} limbs");
    let cut = shifted.0[0] & ((1 << bit) - 1);
    for limb in shifted.0.iter_mut().rev() {
        (*limb, upper) = (*limb >> bit | upper << 1 << (63 - bit), *limb);
    }
    (shifted, below.iter().fold(cut, |any, limb| any | limb) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Four = Wide<4>;

    /// Integers of up to 256 bits, with long runs of zeros and ones.
    fn integers() -> impl Strategy<Value = BigUint> {
        let limb = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..3u64];
        prop::array::uniform4(limb).prop_map(|limbs| BigUint::from(&Wide(limbs)))
    }

    proptest! {
        #[test]
        fn operations_agree_with_num_bigint(a in integers(), b in integers(), bits in 0u64..300) {
            let (x, y) = (Four::from(&a), Four::from(&b));
            prop_assert_eq!(BigUint::from(&x), a.clone());
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(BigUint::from(&x.shr(bits)), &a >> bits);
            let low = (&a >> bits).iter_u64_digits().next().unwrap_or(0);
            prop_assert_eq!(x.word(bits), low);
            if bits < 256 {
                prop_assert_eq!(BigUint::from(&Four::power_of_two(bits)), BigUint::from(1u32) << bits);
            }
            if a >= b {
                prop_assert_eq!(BigUint::from(&x.sub(&y)), &a - &b);
            }
            if (&a + &b).bits() <= 256 {
                prop_assert_eq!(BigUint::from(&x.add(&y)), &a + &b);
            }
            let product = &a * &b;
            let quotient = &product >> bits;
            if quotient.bits() <= 256 {
                let (found, less) = x.mul_shr(&y, bits);
                prop_assert_eq!(BigUint::from(&found), quotient.clone());
                prop_assert_eq!(less, quotient << bits != product);
            }
        }
    }

    /// Nothing is cut off silently.
    #[test]
    fn too_large_results_panic() {
        let (one, most) = (Four::power_of_two(0), Four::power_of_two(255));
        let panics: [&dyn Fn() -> Four; 5] = [
            &|| most.add(&most),
            &|| one.sub(&most),
            &|| most.mul_shr(&most, 254).0,
            &|| Four::power_of_two(256),
            &|| Four::from(&(BigUint::from(1u32) << 256)),
        ];
        for operation in panics {
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(operation)).is_err());
        }
        assert_eq!(most.mul_shr(&most, 255), (most, false));
    }
}
