//! The back end for AArch64 processors with NEON: eight words in four registers.

use super::largest::{Best, Rule, compare_by};
use super::rows::Read;
use super::search::{ByGuide, Halves, Searched};
use super::tables::{CELLS, TABLE};
use super::vector::Vector;
use super::{Count, Kernel, add_noise_by};
use crate::draw::simd::Neon;
use core::arch::aarch64::*;

/// See [`Kernel::add_noise`].
pub(super) fn add_noise<T: Count, const STEP: bool>(
    _token: Neon,
    kernel: &Kernel,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { vectorised::<T, STEP>(kernel, lower, words, counts) }
}

/// Not inlined, so that its machine code can be told from the rest.
#[inline(never)]
#[target_feature(enable = "neon")]
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
    _token: Neon,
    rule: &Rule<'_>,
    start: u64,
    noise: &[u64],
    counts: &[T],
    best: &mut Best,
) {
    // SAFETY: the processor has the features, as the token shows.
    unsafe { compared(rule, start, noise, counts, best) }
}

/// Not inlined, like `vectorised`.
#[inline(never)]
#[target_feature(enable = "neon")]
fn compared<T: Count>(rule: &Rule<'_>, start: u64, noise: &[u64], counts: &[T], best: &mut Best) {
    compare_by::<Words, T>(rule, start, noise, counts, best);
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

impl Searched for Words {
    type Search = ByGuide<HalfWords>;
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
    fn xor(self, other: Self) -> Self {
        each!(veorq_u64, self, other)
    }

    #[inline(always)]
    fn below(self, other: Self) -> Self {
        each!(vcltq_u64, self, other)
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

/// Half-words, in the order that `upper` and `join` have in common.
#[derive(Clone, Copy)]
struct HalfWords([uint32x4_t; 2]);

/// Applies an intrinsic to both registers.
macro_rules! both {
    ($intrinsic:ident, $($halves:expr),*) => {
        // SAFETY: the intrinsic uses registers only, and the processor has NEON (see `Words`).
        HalfWords(core::array::from_fn(|i| unsafe { $intrinsic($($halves.0[i]),*) }))
    };
}

impl Halves for HalfWords {
    type Words = Words;

    #[inline(always)]
    fn splat(half: u32) -> Self {
        // SAFETY: the intrinsic uses registers only, and the processor has NEON (see `Words`).
        Self([unsafe { vdupq_n_u32(half) }; 2])
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(
            self.0
                .map(|x| unsafe { vshlq_u32(x, vdupq_n_s32(-bits.cast_signed())) }),
        )
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        both!(vminq_u32, self, other)
    }

    #[inline(always)]
    fn leading_ones(self) -> Self {
        // Leading zeros of the complement, whose last bit is set.
        let zeros = both!(veorq_u32, self, Self::splat(u32::MAX));
        let zeros = both!(vorrq_u32, zeros, Self::splat(1));
        both!(vclzq_u32, zeros)
    }

    #[inline(always)]
    fn cell(self, cells: &[u8; CELLS]) -> Self {
        // SAFETY: the cells are the 32 bytes that are read; no alignment is needed, and the
        // processor has NEON (see `Words`).
        let cells = unsafe { vld1q_u8_x2(cells.as_ptr()) };
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(self.0.map(|x| unsafe {
            // Places beyond the table give 0.
            let places = vorrq_u32(x, vdupq_n_u32(0x8080_8000));
            vreinterpretq_u32_u8(vqtbl2q_u8(cells, vreinterpretq_u8_u32(places)))
        }))
    }

    #[inline(always)]
    fn look_up(self, table: &[u32; TABLE]) -> Self {
        // SAFETY: the table is the 64 bytes that are read; no alignment is needed, and the
        // processor has NEON (see `Words`).
        let table = unsafe { vld1q_u8_x4(table.as_ptr().cast()) };
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(
            self.0
                .map(|x| unsafe { vreinterpretq_u32_u8(vqtbl4q_u8(table, bytes(x))) }),
        )
    }

    #[inline(always)]
    fn look_up_either(self, tables: &[[u32; TABLE]; 2]) -> Self {
        let first = self.look_up(&tables[0]);
        // SAFETY: the table is the 64 bytes that are read; no alignment is needed, and the
        // processor has NEON (see `Words`).
        let table = unsafe { vld1q_u8_x4(tables[1].as_ptr().cast()) };
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(core::array::from_fn(|i| unsafe {
            // Places beyond the table leave the entry of the first one, whose places wrap around.
            let places = vsubq_u8(bytes(self.0[i]), vdupq_n_u8(64));
            vreinterpretq_u32_u8(vqtbx4q_u8(vreinterpretq_u8_u32(first.0[i]), table, places))
        }))
    }

    #[inline(always)]
    fn step(self, key: Self, node: Self, weight: u32) -> Self {
        let below = both!(vcltq_u32, key, node);
        let weight = both!(vandq_u32, below, Self::splat(weight));
        both!(vaddq_u32, self, weight)
    }

    #[inline(always)]
    fn upper(words: Words) -> Self {
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Self(core::array::from_fn(|i| unsafe {
            let [first, second] = [words.0[2 * i], words.0[2 * i + 1]];
            vuzp2q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second))
        }))
    }

    #[inline(always)]
    fn join(low: Self, high: Self) -> Words {
        // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
        Words(core::array::from_fn(|i| unsafe {
            let (low, high) = (low.0[i / 2], high.0[i / 2]);
            vreinterpretq_u64_u32(match i % 2 {
                0 => vzip1q_u32(low, high),
                _ => vzip2q_u32(low, high),
            })
        }))
    }
}

/// The places of the bytes of each entry.
#[inline(always)]
fn bytes(entries: uint32x4_t) -> uint8x16_t {
    // SAFETY: the intrinsics use registers only, and the processor has NEON (see `Words`).
    unsafe {
        let places = vmlaq_n_u32(vdupq_n_u32(0x0302_0100), entries, 0x0404_0404);
        vreinterpretq_u8_u32(places)
    }
}
