//! AES-256 in counter mode for processors that have AVX2: on vectors of 512 or 256 bits with VAES,
//! else of 128 bits. The blocks stay side by side in each round, which keeps the processor's units
//! for AES busy. In the crate `aes`, many rounds of a block follow each other in the machine code.
//! With AVX-512 the words also come row by row, as [`Stream`], beside the draws.
//!
//! Keys and words stay in vector registers and in the caller's memory; every block takes the same
//! instructions at the same addresses.

use crate::draw::kernel::LANES;
use crate::draw::simd::{Aes, Vaes, Vaes512};
use core::arch::x86_64::*;
use core::convert::identity;
use core::hint::black_box;
use zeroize::Zeroizing;

/// Vectors that are encrypted side by side. With a key they fit the registers, and they are as many
/// as hide the latency of a round.
const SIDE_BY_SIDE: usize = 12;
/// The same of 512 bits: a power of two, as are the lengths of most tapes.
const WIDE_SIDE_BY_SIDE: usize = 8;
/// The words of the widest of these.
const MOST_WORDS: usize = 8 * WIDE_SIDE_BY_SIDE;

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

    /// The words that are encrypted side by side.
    fn words(self) -> usize {
        match self {
            Self::One(_) => 2 * SIDE_BY_SIDE,
            Self::Two(_) => 4 * SIDE_BY_SIDE,
            Self::Four(_) => MOST_WORDS,
        }
    }
}

/// A stream of words: the ciphertexts of 0, 1, 2, ... as little-endian numbers.
pub struct Counter {
    keys: Zeroizing<RoundKeys>,
    /// The next word.
    word: u64,
    way: Way,
}

impl Counter {
    pub(super) fn new(way: Way, key: &[u8; 32]) -> Self {
        // SAFETY: the processor has the features, as the token in `way` shows.
        let keys = unsafe { round_keys(key) };
        Self { keys, word: 0, way }
    }

    pub(super) fn seek(&mut self, word: u64) {
        self.word = word;
    }

    pub(super) fn fill(&mut self, mut words: &mut [u64]) {
        let size = self.way.words();
        // Up to the next block, whole pieces, and a part of the last one.
        while !words.is_empty() {
            let (skipped, whole) = ((self.word % 2) as usize, words.len() / size * size);
            let taken = if skipped == 0 && whole > 0 {
                self.encrypt(&mut words[..whole]);
                whole
            } else {
                let mut piece = Zeroizing::new([0; MOST_WORDS]);
                self.encrypt(&mut piece[..size]);
                let piece = &piece[skipped..size];
                // An odd word alone, so that whole pieces follow.
                let taken = words.len().min(if skipped == 0 { size } else { 1 });
                words[..taken].copy_from_slice(&piece[..taken]);
                taken
            };
            words = &mut words[taken..];
            self.word += taken as u64;
        }
    }

    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// Whether the next word is the first of a block.
    pub(super) fn at_block(&self) -> bool {
        self.word.is_multiple_of(2)
    }

    /// A stream of so many words, which this counter gives no more.
    #[inline(always)]
    pub(super) fn take<B: Blocks>(&mut self, words: usize) -> Stream<'_, B> {
        let numbers = B::numbers(self.word / 2);
        self.word += words as u64;
        let keys = &self.keys;
        Stream { keys, numbers }
    }

    /// Writes the words of whole pieces, from the next block on.
    fn encrypt(&self, words: &mut [u64]) {
        let block = self.word / 2;
        // The compiler must not know how many rounds there are: it would unroll them, and then
        // encrypt one block after the other.
        let keys = black_box(&self.keys[..]);
        match self.way {
            // SAFETY: the processor has the features, as the token shows.
            Way::One(_) => unsafe { encrypt_ones(keys, block, words) },
            // SAFETY: as above.
            Way::Two(_) => unsafe { encrypt_twos(keys, block, words) },
            // SAFETY: as above.
            Way::Four(_) => unsafe { encrypt_fours(keys, block, words) },
        }
    }
}

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
    /// Stores the blocks to as many pairs of `words`.
    fn store(self, words: &mut [u64]);
}

/// Implements [`Blocks`]. `$same` gives blocks of the same number, and `$order` those from 0 on.
macro_rules! blocks {
    ($vector:ident, $count:literal, $same:expr, $order:expr, $all:ident, $xor:ident, $add:ident,
     $round:ident, $last:ident, $store:ident) => {
        // SAFETY, of the blocks below: the intrinsics use registers only, except for the store, and
        // the processor has them (see `Blocks`).
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
            fn store(self, words: &mut [u64]) {
                let words = words[..2 * $count].as_mut_ptr();
                // SAFETY: the slice was just cut to what is written; the store needs no alignment.
                unsafe { $store(words.cast(), self) }
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
    _mm_storeu_si128
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
    _mm256_storeu_si256
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
    _mm512_storeu_si512
);

/// Encrypts pieces of so many vectors from a block on.
#[inline(always)]
fn encrypt_by<B: Blocks, const VECTORS: usize>(keys: &[__m128i], block: u64, words: &mut [u64]) {
    let mut numbers = B::numbers(block);
    for piece in words.chunks_exact_mut(2 * B::COUNT * VECTORS) {
        numbers = encrypt_piece::<B, VECTORS>(keys, numbers, piece);
    }
}

/// Encrypts vectors of blocks side by side, from these numbers on, and returns the numbers after
/// them.
#[inline(always)]
fn encrypt_piece<B: Blocks, const VECTORS: usize>(
    keys: &[__m128i],
    mut numbers: B,
    words: &mut [u64],
) -> B {
    let end = keys.len() - 1;
    let (first, middle, last) = (keys[0], &keys[1..end], keys[end]);
    let mut vectors = [numbers; VECTORS];
    for vector in &mut vectors {
        *vector = numbers.xor(B::all(first));
        numbers = numbers.next();
    }
    for key in middle {
        for vector in &mut vectors {
            *vector = vector.round(B::all(*key));
        }
    }
    for (words, vector) in words.chunks_exact_mut(2 * B::COUNT).zip(vectors) {
        vector.last(B::all(last)).store(words);
    }
    numbers
}

/// Defines the encryption of pieces from a block on, with vectors of some blocks.
macro_rules! encrypt {
    ($name:ident, $features:literal, $vector:ident, $vectors:ident) => {
        #[inline(never)]
        #[target_feature(enable = $features)]
        fn $name(keys: &[__m128i], block: u64, words: &mut [u64]) {
            encrypt_by::<$vector, $vectors>(keys, block, words);
        }
    };
}

encrypt!(encrypt_ones, "aes,avx2", __m128i, SIDE_BY_SIDE);
encrypt!(encrypt_twos, "aes,avx2,vaes", __m256i, SIDE_BY_SIDE);
encrypt!(
    encrypt_fours,
    "aes,avx512f,vaes",
    __m512i,
    WIDE_SIDE_BY_SIDE
);

/// The words of a counter, a row at a time.
pub(super) struct Stream<'a, B> {
    keys: &'a RoundKeys,
    /// Those of the next blocks.
    numbers: B,
}

impl<B: Blocks> Stream<'_, B> {
    #[inline(always)]
    pub(super) fn encrypt(&mut self, row: &mut [u64; LANES]) {
        let (keys, numbers) = (&self.keys[..], self.numbers);
        self.numbers = match B::COUNT {
            4 => encrypt_piece::<B, { LANES / 8 }>(keys, numbers, row),
            2 => encrypt_piece::<B, { LANES / 4 }>(keys, numbers, row),
            _ => encrypt_piece::<B, { LANES / 2 }>(keys, numbers, row),
        };
    }
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
