//! The back end for x86-64 processors with AVX2: sixteen words in four registers.

use super::largest::{Best, Rule, compare_by};
use super::rows::Read;
use super::search::{ByGuide, Halves, Searched};
use super::tables::{CELLS, TABLE};
use super::vector::Vector;
use super::{Count, Kernel, add_noise_by};
use crate::draw::simd::Avx2;
use core::arch::x86_64::*;

/// See [`Kernel::add_noise`].
pub(super) fn add_noise<T: Count, const STEP: bool>(
    _token: Avx2,
    kernel: &Kernel,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { vectorised::<T, STEP>(kernel, lower, words, counts) }
}

#[target_feature(enable = "avx2")]
fn vectorised<T: Count, const STEP: bool>(
    kernel: &Kernel,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    add_noise_by::<Words, T, STEP>(kernel, lower, Read::new(kernel, words), counts);
}

/// See [`Kernel::compare`].
pub(super) fn compare<T: Count>(
    _token: Avx2,
    rule: &Rule<'_>,
    start: u64,
    noise: &[u64],
    counts: &[T],
    best: &mut Best,
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { compared(rule, start, noise, counts, best) }
}

#[target_feature(enable = "avx2")]
fn compared<T: Count>(rule: &Rule<'_>, start: u64, noise: &[u64], counts: &[T], best: &mut Best) {
    compare_by::<Words, T>(rule, start, noise, counts, best);
}

/// Four registers, so that one threshold serves all. The processor has AVX2 wherever this type is
/// used: it is private to this file, and only [`vectorised`] uses it, which requires a token.
#[derive(Clone, Copy)]
struct Words(__m256i, __m256i, __m256i, __m256i);

/// Applies an intrinsic to each register.
macro_rules! each {
    ($intrinsic:ident, $($words:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX2 (see `Words`).
        unsafe {
            Words(
                $intrinsic($($words.0),*),
                $intrinsic($($words.1),*),
                $intrinsic($($words.2),*),
                $intrinsic($($words.3),*),
            )
        }
    };
}

impl Searched for Words {
    type Search = ByGuide<HalfWords>;
}

impl Vector for Words {
    type Mask = Self;
    const WIDTH: usize = 16;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX2 (see `Words`).
        let register = unsafe { _mm256_set1_epi64x(word.cast_signed()) };
        Self(register, register, register, register)
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        let words = words[..Self::WIDTH].as_ptr().cast::<__m256i>();
        // SAFETY: the slice was just cut to the 128 bytes that are read; no alignment is needed, and
        // the processor has AVX2 (see `Words`).
        unsafe {
            Self(
                _mm256_loadu_si256(words),
                _mm256_loadu_si256(words.add(1)),
                _mm256_loadu_si256(words.add(2)),
                _mm256_loadu_si256(words.add(3)),
            )
        }
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        let words = words[..Self::WIDTH].as_mut_ptr().cast::<__m256i>();
        // SAFETY: the slice was just cut to the 128 bytes that are written; no alignment is needed,
        // and the processor has AVX2 (see `Words`).
        unsafe {
            _mm256_storeu_si256(words, self.0);
            _mm256_storeu_si256(words.add(1), self.1);
            _mm256_storeu_si256(words.add(2), self.2);
            _mm256_storeu_si256(words.add(3), self.3);
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
    fn xor(self, other: Self) -> Self {
        each!(_mm256_xor_si256, self, other)
    }

    #[inline(always)]
    fn below(self, other: Self) -> Self {
        // With their top bits flipped, the signed comparison orders them.
        let flip = Self::splat(1 << 63);
        self.xor(flip).less(other.xor(flip))
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

/// Sixteen half-words, in the order that `upper` and `join` have in common.
#[derive(Clone, Copy)]
struct HalfWords(__m256i, __m256i);

/// Applies an intrinsic to both registers.
macro_rules! both {
    ($intrinsic:ident, $($halves:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX2 (see `Words`).
        unsafe { HalfWords($intrinsic($($halves.0),*), $intrinsic($($halves.1),*)) }
    };
}

impl Halves for HalfWords {
    type Words = Words;

    #[inline(always)]
    fn splat(half: u32) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has AVX2 (see `Words`).
        let register = unsafe { _mm256_set1_epi32(half.cast_signed()) };
        Self(register, register)
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        both!(_mm256_srlv_epi32, self, Self::splat(bits))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        both!(_mm256_min_epu32, self, other)
    }

    #[inline(always)]
    fn leading_ones(self) -> Self {
        // SAFETY: the intrinsics use registers only, and the processor has AVX2 (see `Words`).
        let [first, second] = unsafe {
            // By the upper and by the lower four bits of a byte, or 32 where these are all ones.
            [
                _mm256_setr_epi32(
                    0,
                    0,
                    0x0101_0101,
                    0x2003_0202,
                    0,
                    0,
                    0x0101_0101,
                    0x2003_0202,
                ),
                _mm256_setr_epi32(
                    0x0404_0404,
                    0x0404_0404,
                    0x0505_0505,
                    0x2007_0606,
                    0x0404_0404,
                    0x0404_0404,
                    0x0505_0505,
                    0x2007_0606,
                ),
            ]
        };
        let four = Self::splat(0x0F0F_0F0F);
        let bits = both!(_mm256_and_si256, self, Self::splat(0xFFFF_FFFE));
        let upper = both!(_mm256_and_si256, bits.shr(4), four);
        let lower = both!(_mm256_and_si256, bits, four);
        let upper = both!(_mm256_shuffle_epi8, Self(first, first), upper);
        let lower = both!(_mm256_shuffle_epi8, Self(second, second), lower);
        let bytes = both!(_mm256_min_epu8, upper, lower);
        // With the bits above each byte, the byte with the first zero has the least.
        let bytes = both!(_mm256_add_epi32, bytes, Self::splat(0x0008_1018));
        let bytes = both!(_mm256_min_epu8, bytes, bytes.shr(16));
        let bytes = both!(_mm256_min_epu8, bytes, bytes.shr(8));
        both!(_mm256_and_si256, bytes, Self::splat(0xFF))
    }

    #[inline(always)]
    fn cell(self, cells: &[u8; CELLS]) -> Self {
        let cells = cells.as_ptr().cast::<__m128i>();
        // SAFETY: the cells are the 32 bytes that are read; no alignment is needed, and the
        // processor has AVX2 (see `Words`).
        let (first, second) = unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(cells)),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(cells.add(1))),
            )
        };
        // A look-up takes the low four bits of each byte, and gives 0 where the highest is set.
        let places = both!(_mm256_or_si256, self, Self::splat(0x8080_8000));
        let first = both!(_mm256_shuffle_epi8, Self(first, first), places);
        let second = both!(_mm256_shuffle_epi8, Self(second, second), places);
        self.either(4, first, second)
    }

    #[inline(always)]
    fn look_up(self, table: &[u32; TABLE]) -> Self {
        let table = table.as_ptr().cast::<__m256i>();
        // SAFETY: the table is the 64 bytes that are read; no alignment is needed, and the
        // processor has AVX2 (see `Words`).
        let (first, second) =
            unsafe { (_mm256_loadu_si256(table), _mm256_loadu_si256(table.add(1))) };
        // A look-up takes only the low three bits.
        let first = both!(_mm256_permutevar8x32_epi32, Self(first, first), self);
        let second = both!(_mm256_permutevar8x32_epi32, Self(second, second), self);
        self.either(3, first, second)
    }

    #[inline(always)]
    fn look_up_either(self, tables: &[[u32; TABLE]; 2]) -> Self {
        self.either(4, self.look_up(&tables[0]), self.look_up(&tables[1]))
    }

    #[inline(always)]
    fn step(self, key: Self, node: Self, weight: u32) -> Self {
        let below = both!(_mm256_cmpgt_epi32, node, key);
        let weight = both!(_mm256_and_si256, below, Self::splat(weight));
        both!(_mm256_add_epi32, self, weight)
    }

    #[inline(always)]
    fn upper(words: Words) -> Self {
        Self(odd(words.0, words.1), odd(words.2, words.3))
    }

    #[inline(always)]
    fn join(low: Self, high: Self) -> Words {
        // SAFETY: the intrinsics use registers only, and the processor has AVX2 (see `Words`).
        unsafe {
            Words(
                _mm256_unpacklo_epi32(low.0, high.0),
                _mm256_unpackhi_epi32(low.0, high.0),
                _mm256_unpacklo_epi32(low.1, high.1),
                _mm256_unpackhi_epi32(low.1, high.1),
            )
        }
    }
}

impl HalfWords {
    /// `second` where this bit of `self` is set, else `first`.
    #[inline(always)]
    fn either(self, bit: u32, first: Self, second: Self) -> Self {
        // The selection looks at the highest bit.
        let bit = both!(_mm256_sllv_epi32, self, Self::splat(31 - bit));
        Self(
            pick(first.0, second.0, bit.0),
            pick(first.1, second.1, bit.1),
        )
    }
}

/// Half-words of `second` where the highest bit of `bit` is set, else of `first`.
#[inline(always)]
fn pick(first: __m256i, second: __m256i, bit: __m256i) -> __m256i {
    // SAFETY: the intrinsics use registers only, and the processor has AVX2 (see `Words`).
    unsafe {
        let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
        _mm256_castps_si256(_mm256_blendv_ps(first, second, _mm256_castsi256_ps(bit)))
    }
}

/// The odd half-words of two registers.
#[inline(always)]
fn odd(first: __m256i, second: __m256i) -> __m256i {
    // SAFETY: the intrinsics use registers only, and the processor has AVX2 (see `Words`).
    unsafe {
        let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
        _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xDD))
    }
}
