//! The back end for x86-64 processors with AVX2: eight words in two registers.

use super::place::Place;
use super::vector::Vector;
use super::{Count, add_noise_by};
use crate::draw::simd::Avx2;
use crate::plan::Plan;
use core::arch::x86_64::*;

/// See [`super::Backend::add_noise`].
pub(super) fn add_noise<T: Count>(
    _token: Avx2,
    plan: &Plan,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { vectorised(plan, lower, words, counts) }
}

#[target_feature(enable = "avx2")]
fn vectorised<T: Count>(plan: &Plan, lower: u64, words: &[u64], counts: &mut [T]) {
    add_noise_by::<Words, T>(plan, lower, words, counts);
}

/// Two registers, so that one threshold serves both. The processor has AVX2 wherever this type is
/// used: it is private to this file, and only [`vectorised`] uses it, which requires a token.
#[derive(Clone, Copy)]
struct Words(__m256i, __m256i);

/// Applies an intrinsic to each register.
macro_rules! each {
    ($intrinsic:ident, $($words:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX2 (see `Words`).
        unsafe { Words($intrinsic($($words.0),*), $intrinsic($($words.1),*)) }
    };
}

impl Words {
    /// Where `self < other`, for unsigned words: with their top bits flipped, the signed comparison
    /// orders them.
    #[inline(always)]
    fn below(self, other: Self) -> Self {
        let flip = Self::splat(1 << 63);
        each!(_mm256_xor_si256, self, flip).less(each!(_mm256_xor_si256, other, flip))
    }
}

impl Vector for Words {
    type Mask = Self;
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX2 (see `Words`).
        let register = unsafe { _mm256_set1_epi64x(word.cast_signed()) };
        Self(register, register)
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        let words = words[..Self::WIDTH].as_ptr().cast::<__m256i>();
        // SAFETY: the slice was just cut to the 64 bytes that are read; no alignment is needed, and
        // the processor has AVX2 (see `Words`).
        unsafe { Self(_mm256_loadu_si256(words), _mm256_loadu_si256(words.add(1))) }
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = words[..Self::WIDTH].as_mut_ptr().cast::<__m256i>();
        // SAFETY: the slice was just cut to the 64 bytes that are written; no alignment is needed,
        // and the processor has AVX2 (see `Words`).
        unsafe {
            _mm256_storeu_si256(words, self.0);
            _mm256_storeu_si256(words.add(1), self.1);
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(_mm256_add_epi64, self, other)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(_mm256_sub_epi64, self, other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        each!(_mm256_and_si256, self, other)
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        each!(_mm256_sllv_epi64, self, Self::splat(bits.into()))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        each!(_mm256_srlv_epi64, self, Self::splat(bits.into()))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(self.below(other), self, other)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.below(other), other, self)
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        each!(_mm256_cmpgt_epi64, other, self)
    }

    #[inline(always)]
    fn decrease(self, mask: Self) -> Self {
        // A set mask is -1.
        self.add(mask)
    }

    #[inline(always)]
    fn select(mask: Self, yes: Self, no: Self) -> Self {
        each!(_mm256_blendv_epi8, no, yes, mask)
    }
}

impl Place for Words {}
