//! The back end for AArch64 processors with NEON: eight words in four registers.

use super::place::Place;
use super::vector::Vector;
use super::{Count, add_noise_by};
use crate::draw::simd::Neon;
use crate::plan::Plan;
use core::arch::aarch64::*;

/// See [`super::Backend::add_noise`].
pub(super) fn add_noise<T: Count>(
    _token: Neon,
    plan: &Plan,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { vectorised(plan, lower, words, counts) }
}

/// Not inlined, so that its machine code can be told from the rest.
#[inline(never)]
#[target_feature(enable = "neon")]
fn vectorised<T: Count>(plan: &Plan, lower: u64, words: &[u64], counts: &mut [T]) {
    add_noise_by::<Words, T>(plan, lower, words, counts);
}

/// Four registers, so that one threshold serves all. The processor has NEON wherever this type
/// is used: it is private to this file, and only [`vectorised`] uses it, which requires a token.
#[derive(Clone, Copy)]
struct Words([uint64x2_t; 4]);

/// Applies an intrinsic to each register.
macro_rules! each {
    ($intrinsic:ident, $($words:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has NEON (see `Words`).
        Words(core::array::from_fn(|i| unsafe { $intrinsic($($words.0[i]),*) }))
    };
}

impl Words {
    /// Shifts left by `bits`, or right if it is negative.
    #[inline(always)]
    fn shift(self, bits: i64) -> Self {
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(self.0.map(|x| unsafe { vshlq_u64(x, vdupq_n_s64(bits)) }))
    }
}

impl Vector for Words {
    type Mask = Self;
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has NEON (see `Words`).
        Self([unsafe { vdupq_n_u64(word) }; 4])
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        let words = words[..Self::WIDTH].as_ptr();
        // SAFETY: the slice was just cut to the 64 bytes that are read; no alignment is needed, and
        // the processor has NEON (see `Words`).
        Self(core::array::from_fn(|i| unsafe {
            vld1q_u64(words.add(2 * i))
        }))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = words[..Self::WIDTH].as_mut_ptr();
        for (i, register) in self.0.into_iter().enumerate() {
            // SAFETY: the slice was just cut to the 64 bytes that are written; no alignment is
            // needed, and the processor has NEON (see `Words`).
            unsafe { vst1q_u64(words.add(2 * i), register) }
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(vaddq_u64, self, other)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(vsubq_u64, self, other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        each!(vandq_u64, self, other)
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self.shift(bits.into())
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self.shift(-i64::from(bits))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(each!(vcltq_u64, self, other), self, other)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(each!(vcltq_u64, self, other), other, self)
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        let (one, other) = (self.0, other.0);
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(core::array::from_fn(|i| unsafe {
            vcltq_s64(
                vreinterpretq_s64_u64(one[i]),
                vreinterpretq_s64_u64(other[i]),
            )
        }))
    }

    #[inline(always)]
    fn decrease(self, mask: Self) -> Self {
        // A set mask is -1.
        self.add(mask)
    }

    #[inline(always)]
    fn select(mask: Self, yes: Self, no: Self) -> Self {
        each!(vbslq_u64, mask, yes, no)
    }
}

impl Place for Words {}
