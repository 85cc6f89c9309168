//! AES-256 for processors that have AVX2: on vectors of 512 or 256 bits with VAES, else of 128 bits.
//! The blocks stay side by side in each round, which keeps the processor's units for AES busy. In the
//! crate `aes`, many rounds of a block follow each other in the machine code.
//!
//! Keys and blocks stay in vector registers and in the caller's memory; every block takes the same
//! instructions at the same addresses.

use crate::draw::simd::{Aes, Vaes, Vaes512};
use core::arch::x86_64::*;
use core::convert::identity;
use core::hint::black_box;
use zeroize::Zeroizing;

/// The key of each round.
type RoundKeys = [__m128i; 15];

/// The blocks in a vector.
#[derive(Clone, Copy)]
pub enum Way {
    One(Aes),
    Two(Vaes),
    Four(Vaes512),
}

impl Way {
    /// The fastest one of this processor.
    pub(super) fn detect() -> Option<Self> {
        Vaes512::detect()
            .map(Self::Four)
            .or(Vaes::detect().map(Self::Two))
            .or(Aes::detect().map(Self::One))
    }

    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let ways = [
            Aes::detect().map(Self::One),
            Vaes::detect_or_emulated().map(Self::Two),
            Vaes512::detect().map(Self::Four),
        ];
        ways.into_iter().flatten()
    }
}

/// A key, for vectors of this processor.
pub(super) struct Keys {
    rounds: Zeroizing<RoundKeys>,
    way: Way,
}

/// Work on vectors of blocks with the keys of all rounds.
pub(super) trait Job {
    fn run<B: Blocks>(self, rounds: &[__m128i]);
}

impl Keys {
    pub(super) fn new(way: Way, key: &[u8; 32]) -> Self {
        // SAFETY: the processor has the features, as the token in `way` shows.
        let rounds = unsafe { round_keys(key) };
        Self { rounds, way }
    }

    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// The keys of all rounds, for code that has the token of this way.
    #[inline(always)]
    pub(super) fn rounds(&self) -> &RoundKeys {
        &self.rounds
    }

    /// Runs the job with the widest vectors.
    pub(super) fn run(&self, job: impl Job) {
        // The compiler must not know how many rounds there are: it would unroll them, and then
        // encrypt one block after the other.
        let rounds = black_box(&self.rounds[..]);
        match self.way {
            // SAFETY: the processor has the features, as the token shows.
            Way::One(_) => unsafe { ones(rounds, job) },
            // SAFETY: as above.
            Way::Two(_) => unsafe { twos(rounds, job) },
            // SAFETY: as above.
            Way::Four(_) => unsafe { fours(rounds, job) },
        }
    }
}

/// Defines a job's code for vectors of some blocks.
macro_rules! compiled {
    ($name:ident, $features:literal, $vector:ident) => {
        #[inline(never)]
        #[target_feature(enable = $features)]
        fn $name(rounds: &[__m128i], job: impl Job) {
            job.run::<$vector>(rounds);
        }
    };
}

compiled!(ones, "aes,avx2", __m128i);
compiled!(twos, "aes,avx2,vaes", __m256i);
compiled!(fours, "aes,avx512f,vaes", __m512i);

/// A vector of blocks. The processor has the instructions wherever a type with this trait is used:
/// in functions that enable them, whose callers have a token.
pub(super) trait Blocks: Copy {
    /// The blocks in a vector.
    const COUNT: usize;

    /// This block in every place.
    fn all(block: __m128i) -> Self;
    /// The numbers from this one on, as blocks.
    fn numbers(first: u64) -> Self;
    /// The numbers after these.
    fn next(self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// A round of AES.
    fn round(self, key: Self) -> Self;
    /// The last round.
    fn last(self, key: Self) -> Self;
    /// Loads the blocks from as many pairs of `words`.
    fn load(words: &[u64]) -> Self;
    /// Stores the blocks to as many pairs of `words`.
    fn store(self, words: &mut [u64]);
    /// The blocks with these low and high words. Of blocks, it gives their low and high words.
    fn unpack(self, other: Self) -> [Self; 2];
}

/// Implements [`Blocks`]. `$same` gives blocks of the same number, and `$order` those from 0 on.
macro_rules! blocks {
    ($vector:ident, $count:literal, $same:expr, $order:expr, $all:ident, $xor:ident, $add:ident,
     $round:ident, $last:ident, $load:ident, $store:ident, $low:ident, $high:ident) => {
        // SAFETY, of the blocks below: the intrinsics use registers only, except for the load and
        // the store, and the processor has them (see `Blocks`).
        #[allow(unused_unsafe)]
        impl Blocks for $vector {
            const COUNT: usize = $count;

            #[inline(always)]
            fn all(block: __m128i) -> Self {
                // SAFETY: see above.
                unsafe { $all(block) }
            }

            #[inline(always)]
            fn numbers(first: u64) -> Self {
                // SAFETY: see above.
                unsafe { $add($same(first.cast_signed()), $order) }
            }

            #[inline(always)]
            fn next(self) -> Self {
                // SAFETY: see above.
                unsafe { $add(self, $same($count)) }
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: see above.
                unsafe { $xor(self, other) }
            }

            #[inline(always)]
            fn round(self, key: Self) -> Self {
                // SAFETY: see above.
                unsafe { $round(self, key) }
            }

            #[inline(always)]
            fn last(self, key: Self) -> Self {
                // SAFETY: see above.
                unsafe { $last(self, key) }
            }

            #[inline(always)]
            fn load(words: &[u64]) -> Self {
                let words = words[..2 * $count].as_ptr();
                // SAFETY: the slice was just cut to what is read; the load needs no alignment.
                unsafe { $load(words.cast()) }
            }

            #[inline(always)]
            fn store(self, words: &mut [u64]) {
                let words = words[..2 * $count].as_mut_ptr();
                // SAFETY: the slice was just cut to what is written; the store needs no alignment.
                unsafe { $store(words.cast(), self) }
            }

            #[inline(always)]
            fn unpack(self, other: Self) -> [Self; 2] {
                // SAFETY: see above.
                unsafe { [$low(self, other), $high(self, other)] }
            }
        }
    };
}

blocks!(
    __m128i,
    1,
    |number| _mm_set_epi64x(0, number),
    _mm_setzero_si128(),
    identity,
    _mm_xor_si128,
    _mm_add_epi64,
    _mm_aesenc_si128,
    _mm_aesenclast_si128,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_unpacklo_epi64,
    _mm_unpackhi_epi64
);
blocks!(
    __m256i,
    2,
    |number| _mm256_set_epi64x(0, number, 0, number),
    _mm256_set_epi64x(0, 1, 0, 0),
    _mm256_broadcastsi128_si256,
    _mm256_xor_si256,
    _mm256_add_epi64,
    _mm256_aesenc_epi128,
    _mm256_aesenclast_epi128,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_unpacklo_epi64,
    _mm256_unpackhi_epi64
);
blocks!(
    __m512i,
    4,
    |number| _mm512_maskz_set1_epi64(0x55, number),
    _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0),
    _mm512_broadcast_i32x4,
    _mm512_xor_si512,
    _mm512_add_epi64,
    _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_unpacklo_epi64,
    _mm512_unpackhi_epi64
);

/// Encrypts vectors of blocks side by side.
#[inline(always)]
pub(super) fn encrypt<B: Blocks, const VECTORS: usize>(
    rounds: &[__m128i],
    mut vectors: [B; VECTORS],
) -> [B; VECTORS] {
    let end = rounds.len() - 1;
    let (first, middle, last) = (rounds[0], &rounds[1..end], rounds[end]);
    for vector in &mut vectors {
        *vector = vector.xor(B::all(first));
    }
    for key in middle {
        for vector in &mut vectors {
            *vector = vector.round(B::all(*key));
        }
    }
    for vector in &mut vectors {
        *vector = vector.last(B::all(last));
    }
    vectors
}

/// The key schedule of FIPS 197 for 256 bits.
#[inline(never)]
#[target_feature(enable = "aes,avx2")]
fn round_keys(key: &[u8; 32]) -> Zeroizing<RoundKeys> {
    let halves: *const __m128i = key.as_ptr().cast();
    // SAFETY: the pointer is to two vectors of 16 bytes; the loads need no alignment.
    let mut last = unsafe { [_mm_loadu_si128(halves), _mm_loadu_si128(halves.add(1))] };
    let mut keys = Zeroizing::new([_mm_setzero_si128(); 15]);
    keys[..2].copy_from_slice(&last);
    for round in 2..15 {
        // The S-box of the last word, in all four: a round without a key, whose rows are equal and
        // so not shifted.
        let four = _mm_shuffle_epi32::<0xFF>(last[1]);
        let mut word = _mm_aesenclast_si128(four, _mm_setzero_si128());
        if round % 2 == 0 {
            word = _mm_or_si128(_mm_srli_epi32::<8>(word), _mm_slli_epi32::<24>(word));
            word = _mm_xor_si128(word, _mm_set1_epi32(1 << (round / 2 - 1)));
        }
        // Each word is added to those after it.
        let mut new = last[0];
        new = _mm_xor_si128(new, _mm_slli_si128::<4>(new));
        new = _mm_xor_si128(new, _mm_slli_si128::<8>(new));
        last = [last[1], _mm_xor_si128(new, word)];
        keys[round] = last[1];
    }
    keys
}
