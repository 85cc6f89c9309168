//! The back end for x86-64 processors with AVX-512: eight words in one register.

use super::vector::Vector;
use super::{Count, add_noise_by};
use crate::plan::Plan;
use core::arch::x86_64::*;

/// Whether this processor runs [`add_noise`].
#[inline]
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// See [`super::Backend::add_noise`].
pub(super) fn add_noise<T: Count>(plan: &Plan, lower: u64, words: &[u64], counts: &mut [T]) {
    assert!(available());
    // SAFETY: the processor has AVX-512, as just asserted.
    unsafe { vectorised(plan, lower, words, counts) }
}

#[target_feature(enable = "avx512f")]
fn vectorised<T: Count>(plan: &Plan, lower: u64, words: &[u64], counts: &mut [T]) {
    add_noise_by::<Words, T>(plan, lower, words, counts);
}

/// A register. Private to this file, where only [`vectorised`] names it: whoever has one runs on a
/// processor with AVX-512.
#[derive(Clone, Copy)]
struct Words(__m512i);

/// Calls an intrinsic on registers.
macro_rules! call {
    ($intrinsic:ident, $($argument:expr),*) => {
        // SAFETY: the intrinsic touches registers alone, and the processor has AVX-512 (see `Words`).
        unsafe { $intrinsic($($argument),*) }
    };
}

impl Vector for Words {
    type Mask = __mmask8;
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self(call!(_mm512_set1_epi64, word.cast_signed()))
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        let words = words[..Self::WIDTH].as_ptr().cast();
        // SAFETY: the slice has just been cut to the 64 bytes that are read; no alignment is
        // needed, and the processor has AVX-512 (see `Words`).
        Self(unsafe { _mm512_loadu_si512(words) })
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = words[..Self::WIDTH].as_mut_ptr().cast();
        // SAFETY: the slice has just been cut to the 64 bytes that are written; no alignment is
        // needed, and the processor has AVX-512 (see `Words`).
        unsafe { _mm512_storeu_si512(words, self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(call!(_mm512_add_epi64, self.0, other.0))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(call!(_mm512_sub_epi64, self.0, other.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(call!(_mm512_and_si512, self.0, other.0))
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        Self(call!(_mm512_sllv_epi64, self.0, Self::splat(bits.into()).0))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        Self(call!(_mm512_srlv_epi64, self.0, Self::splat(bits.into()).0))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(call!(_mm512_min_epu64, self.0, other.0))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(call!(_mm512_max_epu64, self.0, other.0))
    }

    #[inline(always)]
    fn less(self, other: Self) -> __mmask8 {
        call!(_mm512_cmplt_epi64_mask, self.0, other.0)
    }

    #[inline(always)]
    fn decrease(self, mask: __mmask8) -> Self {
        let one = Self::splat(1).0;
        Self(call!(_mm512_mask_sub_epi64, self.0, mask, self.0, one))
    }

    #[inline(always)]
    fn select(mask: __mmask8, yes: Self, no: Self) -> Self {
        Self(call!(_mm512_mask_blend_epi64, mask, no.0, yes.0))
    }
}
