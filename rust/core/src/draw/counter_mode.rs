//! AES-256 in counter mode for processors that have AVX2. With AVX-512 the words also come row by row,
//! as [`Stream`], beside the draws.

use crate::draw::aes_blocks::{Blocks, Job, Keys, Way, encrypt};
use crate::draw::kernel::LANES;
use core::arch::x86_64::__m128i;
use zeroize::Zeroizing;

/// Vectors that are encrypted side by side. With a key they fit the registers, and they are as many
/// as hide the latency of a round.
const SIDE_BY_SIDE: usize = 12;
/// The same of 512 bits: a power of two, as are the lengths of most tapes.
const WIDE_SIDE_BY_SIDE: usize = 8;
/// The words of the widest of these.
const MOST_WORDS: usize = 8 * WIDE_SIDE_BY_SIDE;

/// A stream of words: the ciphertexts of 0, 1, 2, ... as little-endian numbers.
pub struct Counter {
    keys: Keys,
    /// The next word.
    word: u64,
}

impl Counter {
    pub(super) fn new(way: Way, key: &[u8; 32]) -> Self {
        let keys = Keys::new(way, key);
        Self { keys, word: 0 }
    }

    pub(super) fn seek(&mut self, word: u64) {
        self.word = word;
    }

    pub(super) fn fill(&mut self, mut words: &mut [u64]) {
        let size = match self.way() {
            Way::One(_) => 2 * SIDE_BY_SIDE,
            Way::Two(_) => 4 * SIDE_BY_SIDE,
            Way::Four(_) => MOST_WORDS,
        };
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
        self.keys.way()
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
        let rounds = self.keys.rounds();
        Stream { rounds, numbers }
    }

    /// Writes the words of whole pieces, from the next block on.
    fn encrypt(&self, words: &mut [u64]) {
        let block = self.word / 2;
        self.keys.run(Pieces { block, words });
    }
}

/// Pieces of words, from a block on.
struct Pieces<'a> {
    block: u64,
    words: &'a mut [u64],
}

impl Job for Pieces<'_> {
    #[inline(always)]
    fn run<B: Blocks>(self, rounds: &[__m128i]) {
        match B::COUNT {
            4 => encrypt_by::<B, WIDE_SIDE_BY_SIDE>(rounds, self.block, self.words),
            _ => encrypt_by::<B, SIDE_BY_SIDE>(rounds, self.block, self.words),
        }
    }
}

/// Encrypts pieces of so many vectors from a block on.
#[inline(always)]
fn encrypt_by<B: Blocks, const VECTORS: usize>(rounds: &[__m128i], block: u64, words: &mut [u64]) {
    let mut numbers = B::numbers(block);
    for piece in words.chunks_exact_mut(2 * B::COUNT * VECTORS) {
        numbers = encrypt_piece::<B, VECTORS>(rounds, numbers, piece);
    }
}

/// Encrypts vectors of blocks side by side, from these numbers on, and returns the numbers after
/// them.
#[inline(always)]
fn encrypt_piece<B: Blocks, const VECTORS: usize>(
    rounds: &[__m128i],
    mut numbers: B,
    words: &mut [u64],
) -> B {
    let mut vectors = [numbers; VECTORS];
    for vector in &mut vectors {
        *vector = numbers;
        numbers = numbers.next();
    }
    let vectors = encrypt(rounds, vectors);
    for (words, vector) in words.chunks_exact_mut(2 * B::COUNT).zip(vectors) {
        vector.store(words);
    }
    numbers
}

/// The words of a counter, a row at a time.
pub(super) struct Stream<'a, B> {
    rounds: &'a [__m128i; 15],
    /// Those of the next blocks.
    numbers: B,
}

impl<B: Blocks> Stream<'_, B> {
    #[inline(always)]
    pub(super) fn encrypt(&mut self, row: &mut [u64; LANES]) {
        let (rounds, numbers) = (&self.rounds[..], self.numbers);
        self.numbers = match B::COUNT {
            4 => encrypt_piece::<B, { LANES / 8 }>(rounds, numbers, row),
            2 => encrypt_piece::<B, { LANES / 4 }>(rounds, numbers, row),
            _ => encrypt_piece::<B, { LANES / 2 }>(rounds, numbers, row),
        };
    }
}
