//! Branch-free word operations.
//!
//! Every function here compiles to straight-line code: results are formed by borrows, shifts and
//! masks. A barrier hides from the compiler that a value is a single bit, so that it cannot turn it
//! into a jump. (It did: `make ct`, which checks the machine code, found it.)

/// Returns `x`, opaque to the optimizer.
#[inline(always)]
pub(crate) fn barrier(x: u64) -> u64 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let y;
        // SAFETY: the statement is empty; it passes the register on unchanged.
        unsafe {
            core::arch::asm!(
                "/* {0} */",
                inlateout(reg) x => y,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        y
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    core::hint::black_box(x)
}

/// 1 if `x < y`, else 0, for words whose signed difference fits 64 bits; limbs satisfy this.
#[inline(always)]
pub(crate) fn less_limb(x: u64, y: u64) -> u64 {
    barrier(x.wrapping_sub(y) >> 63)
}

/// 1 if `x - y - borrow` is negative, else 0, for all words.
#[inline(always)]
pub(crate) fn borrow(x: u64, y: u64, borrow: u64) -> u64 {
    let difference = x.wrapping_sub(y).wrapping_sub(borrow);
    barrier(((!x & y) | ((!x | y) & difference)) >> 63)
}

/// All ones if `bit` is 1, zero if it is 0.
#[inline(always)]
pub(crate) fn mask(bit: u64) -> u64 {
    bit.wrapping_neg()
}

/// `yes` where the mask is set, else `no`.
#[inline(always)]
pub(crate) fn select(mask: u64, yes: u64, no: u64) -> u64 {
    no ^ (mask & (yes ^ no))
}

/// The smaller of two words.
#[cfg(any(test, feature = "reference"))]
#[inline(always)]
pub(crate) fn min(x: u64, y: u64) -> u64 {
    select(mask(borrow(x, y, 0)), x, y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(x: u64, y: u64, carry: u64) {
        let wide = i128::from(x) - i128::from(y) - i128::from(carry);
        assert_eq!(borrow(x, y, carry), u64::from(wide < 0));
        assert_eq!(min(x, y), x.min(y));
        let (x, y) = (x >> 1, y >> 1);
        assert_eq!(
            less_limb(x.wrapping_sub(carry), y),
            u64::from(x < y + carry)
        );
    }

    #[test]
    fn corners() {
        let corners = [
            0,
            1,
            2,
            u64::MAX / 2 - 1,
            u64::MAX / 2,
            u64::MAX / 2 + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        for x in corners {
            for y in corners {
                check(x, y, 0);
                check(x, y, 1);
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_wide_arithmetic(x: u64, y: u64, carry in 0u64..2) {
            check(x, y, carry);
        }
    }
}
