//! The back end for x86-64 processors with AVX-512: sixteen words in two registers.

use super::ahead::Ahead;
use super::largest::{Best, Rule, compare_by};
use super::rows::Read;
use super::search::{ByGuide, Halves, Searched};
use super::tables::{CELLS, TABLE};
use super::vector::Vector;
use super::{Count, Kernel, add_noise_by};
use crate::draw::counter_mode::Counter;
use crate::draw::ct;
use crate::draw::lanes::Row;
use crate::draw::simd::{Avx512, Vaes512};
use core::arch::x86_64::*;

/// See [`Kernel::add_noise`].
pub(super) fn add_noise<T: Count, const STEP: bool>(
    _token: Avx512,
    kernel: &Kernel,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { vectorised::<T, STEP>(kernel, lower, words, counts) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn vectorised<T: Count, const STEP: bool>(
    kernel: &Kernel,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    add_noise_by::<Words, T, STEP>(kernel, lower, Read::new(kernel, words), counts);
}

/// See [`Kernel::add_noise_from`].
pub(super) fn add_noise_from<T: Count>(
    _tokens: (Avx512, Vaes512),
    kernel: &Kernel,
    lower: u64,
    tape: Counter<'_>,
    rows: [&mut [Row]; 2],
    counts: &mut [T],
) {
    // SAFETY: the processor has the features, as the tokens show.
    unsafe { beside(kernel, lower, tape, rows, counts) }
}

/// [`vectorised`], with the tape beside it.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,aes,vaes")]
fn beside<T: Count>(
    kernel: &Kernel,
    lower: u64,
    tape: Counter<'_>,
    rows: [&mut [Row]; 2],
    counts: &mut [T],
) {
    let rows = Ahead::<__m512i>::new(tape, rows, counts.len());
    add_noise_by::<Words, T, false>(kernel, lower, rows, counts);
}

/// See [`Kernel::compare`].
pub(super) fn compare<T: Count>(
    _token: Avx512,
    rule: &Rule<'_>,
    start: u64,
    noise: &[u64],
    counts: &[T],
    best: &mut Best,
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { compared(rule, start, noise, counts, best) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn compared<T: Count>(rule: &Rule<'_>, start: u64, noise: &[u64], counts: &[T], best: &mut Best) {
    compare_by::<Words, T>(rule, start, noise, counts, best);
}

/// Two registers, so that one threshold serves both. The processor has AVX-512 wherever this type
/// is used: it is private to this file, and only functions that require a token use it.
#[derive(Clone, Copy)]
struct Words(__m512i, __m512i);

/// One bit for each word.
#[derive(Clone, Copy)]
struct Mask(__mmask8, __mmask8);

/// Applies an intrinsic to each register.
macro_rules! each {
    ($result:ident: $intrinsic:ident, $($words:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX-512 (see `Words`).
        unsafe { $result($intrinsic($($words.0),*), $intrinsic($($words.1),*)) }
    };
}

impl Searched for Words {
    type Search = ByGuide<HalfWords>;
}

impl Vector for Words {
    type Mask = Mask;
    const WIDTH: usize = 16;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX-512 (see `Words`).
        let register = unsafe { _mm512_set1_epi64(word.cast_signed()) };
        Self(register, register)
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        let words = words[..Self::WIDTH].as_ptr().cast::<__m512i>();
        // SAFETY: the slice was just cut to the 128 bytes that are read; no alignment is needed,
        // and the processor has AVX-512 (see `Words`).
        unsafe { Self(_mm512_loadu_si512(words), _mm512_loadu_si512(words.add(1))) }
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = words[..Self::WIDTH].as_mut_ptr().cast::<__m512i>();
        // SAFETY: the slice was just cut to the 128 bytes that are written; no alignment is needed,
        // and the processor has AVX-512 (see `Words`).
        unsafe {
            _mm512_storeu_si512(words, self.0);
            _mm512_storeu_si512(words.add(1), self.1);
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(Words: _mm512_add_epi64, self, other)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(Words: _mm512_sub_epi64, self, other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        each!(Words: _mm512_and_si512, self, other)
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        each!(Words: _mm512_sllv_epi64, self, Self::splat(bits.into()))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        each!(Words: _mm512_srlv_epi64, self, Self::splat(bits.into()))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        each!(Words: _mm512_xor_si512, self, other)
    }

    #[inline(always)]
    fn below(self, other: Self) -> Mask {
        each!(Mask: _mm512_cmplt_epu64_mask, self, other)
    }

    #[inline(always)]
    fn less(self, other: Self) -> Mask {
        each!(Mask: _mm512_cmplt_epi64_mask, self, other)
    }

    #[inline(always)]
    fn decrease(self, mask: Mask) -> Self {
        // If the compiler knew this number, it would expand the mask to a vector and add that.
        let one = Self::splat(ct::barrier(1));
        each!(Words: _mm512_mask_sub_epi64, self, mask, self, one)
    }

    #[inline(always)]
    fn select(mask: Mask, yes: Self, no: Self) -> Self {
        each!(Words: _mm512_mask_blend_epi64, mask, no, yes)
    }
}

/// Sixteen half-words, in the order that `upper` and `join` have in common.
#[derive(Clone, Copy)]
struct HalfWords(__m512i);

/// Applies an intrinsic to the register.
macro_rules! all {
    ($intrinsic:ident, $($halves:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX-512 (see `Words`).
        unsafe { HalfWords($intrinsic($($halves.0),*)) }
    };
}

impl HalfWords {
    #[inline(always)]
    fn load(table: &[u32; TABLE]) -> Self {
        // SAFETY: the table is the 64 bytes that are read; no alignment is needed, and the
        // processor has AVX-512 (see `Words`).
        Self(unsafe { _mm512_loadu_si512(table.as_ptr().cast::<__m512i>()) })
    }

    /// Looks up places among 32 half-words.
    #[cfg(not(feature = "checkmsan"))]
    #[inline(always)]
    fn either(self, first: Self, second: Self) -> Self {
        all!(_mm512_permutex2var_epi32, first, self, second)
    }

    /// The same for MemorySanitizer, which takes the places of that instruction for addresses: two
    /// look-ups among sixteen, and a choice by the fifth bit.
    #[cfg(feature = "checkmsan")]
    #[inline(always)]
    fn either(self, first: Self, second: Self) -> Self {
        let first = all!(_mm512_permutexvar_epi32, self, first);
        let second = all!(_mm512_permutexvar_epi32, self, second);
        // SAFETY: the intrinsics use registers only, and the processor has AVX-512 (see `Words`).
        Self(unsafe {
            let above = _mm512_test_epi32_mask(self.0, Self::splat(16).0);
            _mm512_mask_blend_epi32(above, first.0, second.0)
        })
    }
}

impl Halves for HalfWords {
    type Words = Words;

    #[inline(always)]
    fn splat(half: u32) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX-512 (see `Words`).
        Self(unsafe { _mm512_set1_epi32(half.cast_signed()) })
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        all!(_mm512_srlv_epi32, self, Self::splat(bits))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        all!(_mm512_min_epu32, self, other)
    }

    #[inline(always)]
    fn leading_ones(self) -> Self {
        // Leading zeros of the complement, whose last bit is set.
        let zeros = all!(_mm512_xor_si512, self, Self::splat(u32::MAX));
        let zeros = all!(_mm512_or_si512, zeros, Self::splat(1));
        all!(_mm512_lzcnt_epi32, zeros)
    }

    #[inline(always)]
    fn cell(self, cells: &[u8; CELLS]) -> Self {
        let cells = cells.as_ptr().cast::<__m128i>();
        // SAFETY: the cells are the 32 bytes that are read; no alignment is needed, and the
        // processor has AVX-512 (see `Words`).
        let (first, second) = unsafe {
            (
                Self(_mm512_cvtepu8_epi32(_mm_loadu_si128(cells))),
                Self(_mm512_cvtepu8_epi32(_mm_loadu_si128(cells.add(1)))),
            )
        };
        self.either(first, second)
    }

    #[inline(always)]
    fn look_up(self, table: &[u32; TABLE]) -> Self {
        all!(_mm512_permutexvar_epi32, self, Self::load(table))
    }

    #[inline(always)]
    fn look_up_either(self, tables: &[[u32; TABLE]; 2]) -> Self {
        let (first, second) = (Self::load(&tables[0]), Self::load(&tables[1]));
        self.either(first, second)
    }

    #[inline(always)]
    fn step(self, key: Self, node: Self, weight: u32) -> Self {
        let weight = Self::splat(weight);
        // SAFETY: the intrinsics use registers only, and the processor has AVX-512 (see `Words`).
        Self(unsafe {
            let below = _mm512_cmplt_epi32_mask(key.0, node.0);
            _mm512_mask_add_epi32(self.0, below, self.0, weight.0)
        })
    }

    #[inline(always)]
    fn upper(words: Words) -> Self {
        // SAFETY: the intrinsics use registers only, and the processor has AVX-512 (see `Words`).
        Self(unsafe {
            let (first, second) = (_mm512_castsi512_ps(words.0), _mm512_castsi512_ps(words.1));
            _mm512_castps_si512(_mm512_shuffle_ps(first, second, 0xDD))
        })
    }

    #[inline(always)]
    fn join(low: Self, high: Self) -> Words {
        // SAFETY: the intrinsics use registers only, and the processor has AVX-512 (see `Words`).
        unsafe {
            Words(
                _mm512_unpacklo_epi32(low.0, high.0),
                _mm512_unpackhi_epi32(low.0, high.0),
            )
        }
    }
}
