//! AES-256 in counter mode for processors that have AVX2: on vectors of 256 bits with VAES, else of
//! 128 bits. The blocks stay side by side in each round, which keeps the processor's units for AES
//! busy. In the crate `aes`, many rounds of a block follow each other in the machine code.
//!
//! Keys and words stay in vector registers and in the caller's memory; every block takes the same
//! instructions at the same addresses.

use crate::draw::simd::{Aes, Vaes};
use core::arch::x86_64::*;
use core::convert::identity;
use core::hint::black_box;
use zeroize::Zeroizing;

/// Vectors that are encrypted side by side. With a key they fit the registers, and they are as many
/// as hide the latency of a round.
const SIDE_BY_SIDE: usize = 12;
/// The words of the widest of these.
const MOST_WORDS: usize = 4 * SIDE_BY_SIDE;

/// The key of each round.
type RoundKeys = [__m128i; 15];

/// The blocks in a vector.
#[derive(Clone, Copy)]
pub(super) enum Way {
    One(Aes),
    Two(Vaes),
}

impl Way {
    /// The fastest one of this processor.
    pub(super) fn detect() -> Option<Self> {
        Vaes::detect()
            .map(Self::Two)
            .or(Aes::detect().map(Self::One))
    }

    /// The words that are encrypted side by side.
    fn words(self) -> usize {
        match self {
            Self::One(_) => MOST_WORDS / 2,
            Self::Two(_) => MOST_WORDS,
        }
    }
}

/// A stream of words: the ciphertexts of 0, 1, 2, ... as little-endian numbers.
pub(super) struct Counter {
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

    /// Writes the words of whole pieces, from the next block on.
    fn encrypt(&self, words: &mut [u64]) {
        let block = self.word / 2;
        // The compiler must not know how many rounds there are: it would unroll them, and then
        // encrypt one block after the other.
        let keys = black_box(&self.keys[..]);
        match self.way {
            // SAFETY: the processor has the features, as the token shows.
            Way::One(_) => unsafe { encrypt_ones(keys, block, words.as_chunks_mut().0) },
            // SAFETY: as above.
            Way::Two(_) => unsafe { encrypt_twos(keys, block, words.as_chunks_mut().0) },
        }
    }
}

/// Defines the encryption of pieces from a block on, with vectors of some blocks.
macro_rules! encrypt {
    ($name:ident, $features:literal, $blocks:literal, $first:expr, $all:ident, $xor:ident, $add:ident,
     $step:expr, $round:ident, $last:ident, $store:ident) => {
        #[inline(never)]
        #[target_feature(enable = $features)]
        fn $name(keys: &[__m128i], block: u64, pieces: &mut [[u64; 2 * $blocks * SIDE_BY_SIDE]]) {
            let end = keys.len() - 1;
            let (first, middle, last) = (keys[0], &keys[1..end], keys[end]);
            let mut counters = $first(block);
            for piece in pieces {
                let mut vectors = [counters; SIDE_BY_SIDE];
                for vector in &mut vectors {
                    *vector = $xor(counters, $all(first));
                    counters = $add(counters, $step);
                }
                for key in middle {
                    for vector in &mut vectors {
                        *vector = $round(*vector, $all(*key));
                    }
                }
                let words = piece.as_chunks_mut::<{ 2 * $blocks }>().0;
                for (words, vector) in words.iter_mut().zip(vectors) {
                    // SAFETY: the pointer is to as many words; the store needs no alignment.
                    unsafe { $store(words.as_mut_ptr().cast(), $last(vector, $all(last))) };
                }
            }
        }
    };
}

encrypt!(
    encrypt_ones,
    "aes,avx2",
    1,
    |block: u64| _mm_set_epi64x(0, block.cast_signed()),
    identity,
    _mm_xor_si128,
    _mm_add_epi64,
    _mm_set_epi64x(0, 1),
    _mm_aesenc_si128,
    _mm_aesenclast_si128,
    _mm_storeu_si128
);
encrypt!(
    encrypt_twos,
    "aes,avx2,vaes",
    2,
    |block: u64| _mm256_set_epi64x(
        0,
        block.wrapping_add(1).cast_signed(),
        0,
        block.cast_signed()
    ),
    _mm256_broadcastsi128_si256,
    _mm256_xor_si256,
    _mm256_add_epi64,
    _mm256_set_epi64x(0, 2, 0, 2),
    _mm256_aesenc_epi128,
    _mm256_aesenclast_epi128,
    _mm256_storeu_si256
);

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
