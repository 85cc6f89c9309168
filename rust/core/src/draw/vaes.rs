//! AES-256 in counter mode on 256-bit vectors, for processors that have VAES but no AVX-512: there
//! the crate `aes` encrypts one block at a time.
//!
//! Keys and words stay in vector registers and in the caller's memory; every block takes the same
//! instructions at the same addresses.

use crate::draw::simd::Vaes;
use core::arch::x86_64::{
    __m128i, __m256i, _mm_aesenclast_si128, _mm_loadu_si128, _mm_or_si128, _mm_set1_epi32,
    _mm_setzero_si128, _mm_shuffle_epi32, _mm_slli_epi32, _mm_slli_si128, _mm_srli_epi32,
    _mm_xor_si128, _mm256_add_epi64, _mm256_aesenc_epi128, _mm256_aesenclast_epi128,
    _mm256_broadcastsi128_si256, _mm256_set_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm256_xor_si256,
};
use zeroize::Zeroizing;

/// Vectors of two blocks that are encrypted side by side, as many as hide the latency of a round.
const SIDE_BY_SIDE: usize = 8;
/// Their words.
const WORDS: usize = 4 * SIDE_BY_SIDE;

/// The key of each round, twice.
type RoundKeys = [__m256i; 15];

/// A stream of words: the ciphertexts of 0, 1, 2, ... as little-endian numbers.
pub(super) struct Counter {
    keys: Zeroizing<RoundKeys>,
    /// The next word.
    word: u64,
    _token: Vaes,
}

impl Counter {
    pub(super) fn new(token: Vaes, key: &[u8; 32]) -> Self {
        // SAFETY: the processor has the features, as the token shows.
        let keys = unsafe { round_keys(key) };
        Self {
            keys,
            word: 0,
            _token: token,
        }
    }

    pub(super) fn seek(&mut self, word: u64) {
        self.word = word;
    }

    pub(super) fn fill(&mut self, mut words: &mut [u64]) {
        // Up to the next block, whole pieces, and a part of the last one.
        while !words.is_empty() {
            let (skipped, whole) = ((self.word % 2) as usize, words.len() / WORDS * WORDS);
            let block = self.word / 2;
            let taken = if skipped == 0 && whole > 0 {
                // SAFETY: the processor has the features, as the token shows.
                unsafe { encrypt(&self.keys, block, words[..whole].as_chunks_mut().0) };
                whole
            } else {
                let mut piece = Zeroizing::new([[0; WORDS]]);
                // SAFETY: as above.
                unsafe { encrypt(&self.keys, block, &mut *piece) };
                let piece = &piece[0][skipped..];
                // An odd word alone, so that whole pieces follow.
                let taken = words.len().min(if skipped == 0 { WORDS } else { 1 });
                words[..taken].copy_from_slice(&piece[..taken]);
                taken
            };
            words = &mut words[taken..];
            self.word += taken as u64;
        }
    }
}

/// Writes the words from a block on.
#[inline(never)]
#[target_feature(enable = "aes,avx2,vaes")]
fn encrypt(keys: &RoundKeys, block: u64, pieces: &mut [[u64; WORDS]]) {
    let next = block.wrapping_add(1);
    let mut counters = _mm256_set_epi64x(0, next.cast_signed(), 0, block.cast_signed());
    let two = _mm256_set_epi64x(0, 2, 0, 2);
    for piece in pieces {
        let mut blocks = [_mm256_setzero_si256(); SIDE_BY_SIDE];
        for blocks in &mut blocks {
            *blocks = _mm256_xor_si256(counters, keys[0]);
            counters = _mm256_add_epi64(counters, two);
        }
        for key in &keys[1..14] {
            for blocks in &mut blocks {
                *blocks = _mm256_aesenc_epi128(*blocks, *key);
            }
        }
        for (words, blocks) in piece.as_chunks_mut::<4>().0.iter_mut().zip(blocks) {
            let words: *mut __m256i = words.as_mut_ptr().cast();
            // SAFETY: the pointer is to four words; the store needs no alignment.
            unsafe { _mm256_storeu_si256(words, _mm256_aesenclast_epi128(blocks, keys[14])) };
        }
    }
}

/// The key schedule of FIPS 197 for 256 bits.
#[inline(never)]
#[target_feature(enable = "aes,avx2,vaes")]
fn round_keys(key: &[u8; 32]) -> Zeroizing<RoundKeys> {
    let halves: *const __m128i = key.as_ptr().cast();
    // SAFETY: the pointer is to two vectors of 16 bytes; the loads need no alignment.
    let mut last = unsafe { [_mm_loadu_si128(halves), _mm_loadu_si128(halves.add(1))] };
    let mut keys = Zeroizing::new([_mm256_setzero_si256(); 15]);
    keys[0] = _mm256_broadcastsi128_si256(last[0]);
    keys[1] = _mm256_broadcastsi128_si256(last[1]);
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
        keys[round] = _mm256_broadcastsi128_si256(last[1]);
    }
    keys
}
